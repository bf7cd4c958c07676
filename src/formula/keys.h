/* keys.h - dense codes 0, 1, 2, ... in order of first appearance, for keys of any type.
 *
 * The codes do not depend on the number of threads.  O(n) time; integers of a small range go
 * through a table, everything else through a hash table that grows with the number of levels.
 */
#ifndef FRGI_KEYS_H
#define FRGI_KEYS_H

#include "formula/formula.h"
#include "fourge/table.h"

#pragma GCC visibility push(hidden)

/** One column to encode; no row of it may be missing.  codes has room for the n rows. */
typedef struct {
    const frg_column *column;
    int32_t *codes;
    int64_t n_levels; /* out */
} frgi_key_job;

/** Encodes several columns of the same rows (rows NULL: the first n), tables in parallel.
 *  E_NOT_FINITE for an infinite key, E_TYPE for whole numbers of
 *  2^53 or more held as doubles, E_TOO_BIG beyond 2^31 - 1 levels. */
FRG_MUST_USE frg_status frgi_keys_encode(frg_context *ctx, frgi_key_job jobs[], int count,
                                         const int64_t *rows, int64_t n);
/** codes <- joint code of (codes, other). */
FRG_MUST_USE frg_status frgi_keys_join(frg_context *ctx, int64_t n, int32_t *codes,
                                       int64_t *n_levels, const int32_t *other,
                                       int64_t other_levels);
/** Codes that lost rows: dense again, in order of first appearance. */
FRG_MUST_USE frg_status frgi_keys_compact(frg_context *ctx, int64_t n, int32_t *codes,
                                          int64_t *n_levels);
/** first[c] <- the smallest i with codes[i] == c. */
void frgi_keys_first(int64_t n, const int32_t *codes, int64_t n_levels, int64_t *first);

/** A joint category by its columns: an effect or a cluster variable. */
typedef struct {
    const char *name;
    int n;
    const frg_column *columns[FRGI_KEY_COLUMNS];
} frgi_key;

/** Are they the same columns? */
bool frgi_key_is(const frgi_key *a, const frgi_key *b);

/** Resolves the columns of a key. */
FRG_MUST_USE frg_status frgi_key_find(frgi_key *key, frg_context *ctx, const frgi_syntax *s,
                                      const frgi_key_spec *spec, const char *name,
                                      const frg_table *table);
/** Dense codes of several keys over the same rows: codes[k * n ...], levels[k]. */
FRG_MUST_USE frg_status frgi_key_codes(frg_context *ctx, const frgi_key keys[], int count,
                                       const int64_t *rows, int64_t n, int32_t *codes,
                                       int64_t levels[]);

/** Keys of the same rows, no two of the same columns, that are numbered once for whoever wants them
 *  later; begins as {0}. */
typedef struct {
    int n;
    frgi_key *keys;
    int64_t rows;
    int32_t *codes; /* rows x n, column-major; NULL: they are not numbered */
    int64_t *levels;
} frgi_key_list;

/** Adds a key, unless one of its columns is there; its name stays the caller's. */
FRG_MUST_USE frg_status frgi_key_list_add(frgi_key_list *l, frg_context *ctx, const frgi_key *key);
/** Leaves out the key of the columns of this one. */
void frgi_key_list_without(frgi_key_list *l, const frgi_key *key);
/** Numbers them (rows NULL: the first n). */
FRG_MUST_USE frg_status frgi_key_list_number(frgi_key_list *l, frg_context *ctx,
                                             const int64_t *rows, int64_t n);
/** Codes and levels of a key that was numbered; NULL: it was not. */
const int32_t *frgi_key_list_find(const frgi_key_list *l, const frgi_key *key, int64_t *levels);
/** codes <- those of the list or, where it has none, numbered: frgi_key_codes of one key. */
FRG_MUST_USE frg_status frgi_key_list_codes(const frgi_key_list *l, frg_context *ctx,
                                            const frgi_key *key, const int64_t *rows, int64_t n,
                                            int32_t *codes, int64_t *levels);
void frgi_key_list_destroy(frgi_key_list *l, frg_context *ctx);

#pragma GCC visibility pop
#endif
