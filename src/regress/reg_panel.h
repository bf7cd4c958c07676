/* reg_panel.h - rows by unit and time, and the columns that lag by them. */
#ifndef FRGI_REG_PANEL_H
#define FRGI_REG_PANEL_H

#include "formula/formula.h"
#include "fourge/table.h"

#pragma GCC visibility push(hidden)

/** The rows that have a unit and a time, by these. */
typedef struct {
    int64_t n, n_rows; /* of them, of the table */
    int64_t *order;    /* n */
    int32_t *unit;     /* n_rows: dense, -1 missing */
    double *time;      /* n_rows: whole numbers, NaN missing */
} frgi_panel;

/** "UNIT,TIME" -> two names, of which *memory has the bytes.  E_OPTION where it is not that. */
FRG_MUST_USE frg_status frgi_panel_names(frg_context *ctx, const char *spec, char **memory,
                                         const char **unit, const char **time);
/** E_COLUMN, E_TYPE for times that are no whole numbers, E_DUPLICATE for two rows of a unit at the
 *  same time. */
FRG_MUST_USE frg_status frgi_panel_create(frgi_panel *p, frg_context *ctx, const char *spec,
                                          const frg_table *table);
/** out_ut <- x_u,t-k, or x_ut less it; NaN where there is none. */
void frgi_panel_lag(const frgi_panel *p, const double *x, int64_t k, bool difference, double *out);
void frgi_panel_destroy(frgi_panel *p, frg_context *ctx);
/** The table with a column for each lag of the formula, of its right side alone where `right`; NULL
 *  where it has none.  panel NULL: made of spec.  E_OPTION where spec is needed and NULL. */
FRG_MUST_USE frg_status frgi_panel_extend(frg_table **out, frg_context *ctx,
                                          const frgi_formula *formula, const frg_table *table,
                                          const char *spec, bool right, const frgi_panel *panel);

#pragma GCC visibility pop
#endif
