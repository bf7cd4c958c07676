/* reg_design.h - from terms to columns of numbers.
 *
 *     formula + table -> variables      what each atom is in this table: a number, a factor, an i()
 *     variables + rows -> design        the columns, each a product of numbers and level indicators
 *     design + table   -> values        a chunk of rows at a time, for the fit and for predictions
 */
#ifndef FRGI_REG_DESIGN_H
#define FRGI_REG_DESIGN_H

#include "formula/formula.h"
#include "formula/key_levels.h"
#include "formula/keys.h"
#include "formula/program.h"

#pragma GCC visibility push(hidden)

/* ---- variables ------------------------------------------------------------------------------- */

typedef enum {
    VARIABLE_NONE,
    VARIABLE_NUMBER,
    VARIABLE_FACTOR,
    VARIABLE_CATEGORIES,
    VARIABLE_COHORTS /* sunab() */
} frgi_variable_kind;

typedef struct {
    frgi_variable_kind kind;
    int n_factors;               /* 1, or 2 for i(f, g) */
    const frg_column *factor[2]; /* FACTOR, CATEGORIES; COHORTS: the period and the cohort */
    bool has_number;             /* NUMBER, and i(f, x) */
    frgi_program number;
    int32_t node;
} frgi_variable;

/** Factor `which` of a variable as a key. */
static inline frgi_key frgi_variable_key(const frgi_variable *v, int which)
{
    const frg_column *const c = v->factor[which];
    return (frgi_key){.name = c->name, .n = 1, .columns = {c}};
}

/** variables[id] for every atom of the terms. */
FRG_MUST_USE frg_status frgi_variables_create(frgi_variable **out, frg_context *ctx,
                                              const frgi_formula *f, const frg_table *table);
void frgi_variables_destroy(frgi_variable **v, frg_context *ctx, const frgi_formula *f);

/* ---- design ---------------------------------------------------------------------------------- */

/** The number of the variable (of a logical: [it is true]), or one less it: [it is false]. */
enum { FRGI_MULTIPLICAND_NUMBER = -1, FRGI_MULTIPLICAND_FALSE = -2 };
enum { FRGI_WHICH_CELL = 2 };
/** level: one of these two; otherwise [the variable's factor `which` is at the level], or, of
 *  sunab() with bins, [the cell of the row's period and cohort has this number]. */
typedef struct {
    int32_t variable, which, level;
} frgi_multiplicand;

/** The mean of no coefficients, and of some that are not shown. */
enum { FRGI_NO_MEAN = -1, FRGI_HIDDEN = -2 };

typedef struct {
    int32_t name; /* id in names */
    int32_t n_multiplicands;
    int32_t first_multiplicand;
    int32_t mean;  /* of sunab(): what its coefficient is averaged into, or one of these two */
    double weight; /* of this coefficient in the mean: that of the column's rows */
} frgi_design_column;

typedef struct {
    int32_t n, capacity;
    int32_t n_exogenous, n_endogenous; /* columns before those of the instruments */
    frgi_design_column *columns;
    frgi_multiplicand *multiplicands;
    int32_t n_multiplicands, multiplicand_capacity;
    frgi_names names, means; /* of columns; of the means of coefficients of sunab() */
    double *mean_time;       /* means.count: relative periods, ascending; NaN: of several */
    int32_t *cell_of;        /* of sunab() with bins: cohort * periods + period -> its cell or -1 */
    int32_t n_variables;
    frgi_levels (*levels)[2]; /* by variable and factor */
} frgi_design;

/** Codes of the factors over the rows in use, by variable and factor; NULL where there is none. */
typedef struct {
    int32_t *codes[2];
} frgi_factor_codes;

/** n rows (rows NULL: the first n) with weights (NULL: 1).  `constant`: the model has an intercept
 *  or fixed effects, so that i() loses a level, and every factor beside an i().  numbered: keys
 *  whose codes there are.  codes: n_variables, filled; free with frgi_factor_codes_free. */
FRG_MUST_USE frg_status frgi_design_create(frgi_design *d, frgi_factor_codes **codes,
                                           frg_context *ctx, const frgi_formula *f,
                                           const frgi_variable *variables, bool constant,
                                           const int64_t *rows, const double *weights, int64_t n,
                                           const frgi_key_list *numbered);
void frgi_design_destroy(frgi_design *d, frg_context *ctx);
/** The codes of other data, all rows; -1 for an unseen level. */
FRG_MUST_USE frg_status frgi_design_match(const frgi_design *d, frgi_factor_codes **codes,
                                          frg_context *ctx, const frgi_variable *variables,
                                          int64_t n);
void frgi_factor_codes_free(frgi_factor_codes **codes, frg_context *ctx, int32_t n_variables);

/** Blocks of FRGI_BLOCK doubles that frgi_design_block needs. */
int32_t frgi_design_scratch(const frgi_design *d, const frgi_variable *variables);
/** Values of column k at n <= FRGI_BLOCK rows from `begin` on; NaN where a level is unseen. */
void frgi_design_block(const frgi_design *d, const frgi_variable *variables,
                       const frgi_factor_codes *codes, int32_t k, const int64_t *rows,
                       int64_t begin, int64_t n, double *out, double *scratch);

#pragma GCC visibility pop
#endif
