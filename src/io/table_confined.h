/* table_confined.h - a table out of the pipe of a child process, for who starts one by himself. */
#ifndef FRGI_TABLE_CONFINED_H
#define FRGI_TABLE_CONFINED_H

#include "core/confine.h"
#include "io/io.h"

#pragma GCC visibility push(hidden)

/** What the child sends, up to its table: its warnings and lines of the log become the context's,
 *  its failure the status.  E_CRASHED for what is no table. */
FRG_MUST_USE frg_status frgi_table_take(frgi_confined *c, frg_table **out);

#pragma GCC visibility pop

#endif
