/* gw_store.h - the form of costs that memory has room for. */
#ifndef FRGI_GW_STORE_H
#define FRGI_GW_STORE_H

#include "fourge/gw.h"
#include "gw/gw_transport.h"

#pragma GCC visibility push(hidden)

/** A form of the costs as it is asked for, and what a transport problem keeps of it. */
typedef struct {
    frg_gw_store store;
    frgi_cost_storage storage;
} frgi_form;

/** *chosen <- the first of `count` forms of an n x m problem, falling in size, that memory has room
 *  for.  E_MEMORY where that is none, or not the first and the form may not be changed. */
FRG_MUST_USE frg_status frgi_fit_store(frg_context *ctx, int64_t n, int64_t m,
                                       const frgi_form *forms, int count, bool may_shrink,
                                       const frgi_form **chosen);

#pragma GCC visibility pop
#endif
