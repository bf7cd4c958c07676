/* program.h - an expression of a formula, compiled for the columns of one table. */
#ifndef FRGI_PROGRAM_H
#define FRGI_PROGRAM_H

#include "formula/syntax.h"
#include "fourge/table.h"

#pragma GCC visibility push(hidden)

enum { FRGI_BLOCK = 512 }; /* rows evaluated at a time */

typedef struct {
    frgi_node_kind kind;
    double (*function)(double); /* of a NODE_CALL */
    const frg_column *column;   /* of a NODE_NAME */
    double value;               /* of a NODE_NUMBER */
    int32_t pool, n_pool;       /* the set of a NODE_IN */
} frgi_step;

typedef struct {
    const frg_column *column; /* the expression is this column and nothing else */
    bool logical;             /* its value is true or false */
    bool makes_missing;       /* its value can be NaN where no column is missing */
    frgi_step *steps;
    int32_t n_steps, stack; /* blocks that the evaluation needs */
    double *pool;
    int32_t n_pool;
} frgi_program;

/** Has the call at `node` the name of a function that expressions know: log, exp, sqrt, abs, I? */
bool frgi_program_has_function(const frgi_syntax *s, int32_t node);
/** E_COLUMN with the nearest name, E_TYPE where text stands in arithmetic.  A bare text column
 *  compiles. */
FRG_MUST_USE frg_status frgi_program_create(frgi_program *p, frg_context *ctx, const frgi_syntax *s,
                                            int32_t node, const frg_table *table);
void frgi_program_destroy(frgi_program *p, frg_context *ctx);

/** The column that a name node means, the first `skip` bytes of the name left out. */
FRG_MUST_USE frg_status frgi_column_find(const frg_column **out, frg_context *ctx,
                                         const frgi_syntax *s, int32_t node, int32_t skip,
                                         const frg_table *table);
/** The same by a string; `role` ("weights", "cluster") stands in the message. */
FRG_MUST_USE frg_status frgi_column_named(const frg_column **out, frg_context *ctx,
                                          const char *name, const char *role,
                                          const frg_table *table);

/** Values of n rows from `begin` on (of rows[], or of the table where rows is NULL), n <=
 *  FRGI_BLOCK unless the program is a bare column; scratch: p->stack * FRGI_BLOCK doubles.  Missing
 *  is NaN. */
void frgi_program_block(const frgi_program *p, const int64_t *rows, int64_t begin, int64_t n,
                        double *out, double *scratch);
/** Can a row of it be missing at all? */
bool frgi_program_may_miss(const frgi_program *p);
/** A column as numbers: codes for text. */
void frgi_column_block(const frg_column *c, const int64_t *rows, int64_t begin, int64_t n,
                       double *out);

#pragma GCC visibility pop
#endif
