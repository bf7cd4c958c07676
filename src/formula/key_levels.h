/* key_levels.h - the levels of a category in a sample: their order, their texts, and finding
 * them in other data. */
#ifndef FRGI_KEY_LEVELS_H
#define FRGI_KEY_LEVELS_H

#include "formula/names.h"
#include "fourge/table.h"

#pragma GCC visibility push(hidden)

/** The levels of a category in a sample, to be found again in other data. */
typedef struct {
    frg_column_kind kind;
    bool by_text; /* labels without an order of their own */
    int32_t n;
    int32_t *sorted; /* codes by value, or by bytes of the label */
    double *values;  /* by code: numbers, integers, booleans; the label's place */
    int64_t *whole;  /* by code, of integers, which doubles round above 2^53; NULL: others */
    frgi_names text; /* id = code: "1981", "CA", "TRUE" */
} frgi_levels;

/** Appends `before` and the level in a row: "1981", "CA", "TRUE". */
FRG_MUST_USE frg_status frgi_level_text(frg_context *ctx, const frg_column *c, int64_t row,
                                        const char *before, frgi_text *out);
/** codes: of the n rows, dense. */
FRG_MUST_USE frg_status frgi_levels_create(frgi_levels *l, frg_context *ctx, const frg_column *c,
                                           const int64_t *rows, int64_t n, const int32_t *codes,
                                           int64_t n_levels);
void frgi_levels_destroy(frgi_levels *l, frg_context *ctx);
/** The code of a value, -1 where there is none; not for text.  Of integers beyond 2^53 in size
 *  there is none, as the double may stand for another one. */
int32_t frgi_levels_find(const frgi_levels *l, double value);
/** Is any row's value there?  A column without one is of any kind. */
bool frgi_column_has_values(const frg_column *c);
enum { FRGI_LEVEL_UNSEEN = -1, FRGI_LEVEL_MISSING = -2 };
/** out[i] <- the code of row i of another column, or one of these two.  E_TYPE if the kinds
 *  do not compare and the column has a value. */
FRG_MUST_USE frg_status frgi_levels_match(const frgi_levels *l, frg_context *ctx,
                                          const frg_column *c, int32_t *out);

#pragma GCC visibility pop
#endif
