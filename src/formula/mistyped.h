/* mistyped.h - text columns that stand where numbers were meant. */
#ifndef FRGI_MISTYPED_H
#define FRGI_MISTYPED_H

#include "formula/syntax.h"
#include "fourge/table.h"

#pragma GCC visibility push(hidden)

/** E_TYPE, with the place of `node` (s NULL: none), for a text column most of whose cells are
 *  numbers or dates; FRG_OK for columns of words, and for those whose labels have an order that
 *  somebody gave them. */
FRG_MUST_USE frg_status frgi_refuse_mistyped(frg_context *ctx, const frgi_syntax *s, int32_t node,
                                             const frg_column *c);

#pragma GCC visibility pop
#endif
