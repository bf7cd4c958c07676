/* names.h - interned strings: equal texts get equal ids, 0, 1, 2, ... in order of first
 * appearance. */
#ifndef FRGI_NAMES_H
#define FRGI_NAMES_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

typedef struct {
    frgi_text pool;   /* the texts, each with its NUL */
    int64_t *offsets; /* of the texts in the pool */
    int32_t *slots;   /* open addressing, id or -1 */
    int32_t count, capacity, n_slots;
} frgi_names;

FRG_MUST_USE frg_status frgi_names_intern(frgi_names *names, frg_context *ctx, const char *s,
                                          size_t length, int32_t *id);
/** The id of a text, -1 where it is not there. */
int32_t frgi_names_find(const frgi_names *names, const char *s, size_t length);
/** Valid until the next intern. */
const char *frgi_names_text(const frgi_names *names, int32_t id);
void frgi_names_free(frgi_names *names, frg_context *ctx);

#pragma GCC visibility pop
#endif
