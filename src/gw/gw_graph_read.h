/* gw_graph_read.h - the parser behind frg_graph_read, on bytes, for the fuzzer. */
#ifndef FRGI_GW_GRAPH_READ_H
#define FRGI_GW_GRAPH_READ_H

#include "core/core.h"
#include "fourge/gw.h"

#pragma GCC visibility push(hidden)

/** `name` stands in messages. */
FRG_MUST_USE frg_status frgi_graph_parse(frg_graph **out, frg_context *ctx, const char *bytes,
                                         int64_t count, const char *name, int directed);

#pragma GCC visibility pop
#endif
