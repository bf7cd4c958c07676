/* gp_file.h - a process from the bytes of a model file. */
#ifndef FRGI_GP_FILE_H
#define FRGI_GP_FILE_H

#include "gp/gp_process.h"

#pragma GCC visibility push(hidden)

/** `name` stands in messages.  E_MODEL where the bytes are not a whole, unchanged model of a known
 *  version. */
FRG_MUST_USE frg_status frgi_gp_parse_model(frg_gp **out, frg_context *ctx, const char *bytes,
                                            size_t count, const char *name);

#pragma GCC visibility pop
#endif
