/* expand.h - a formula that stands for several: sw(), sw0(), csw(), csw0(), mvsw(), c(y1, y2). */
#ifndef FRGI_EXPAND_H
#define FRGI_EXPAND_H

#include "formula/syntax.h"

#pragma GCC visibility push(hidden)

enum { FRGI_MODELS_LIMIT = 4096 };

/** Formulas of one model each, in the order of estimation. */
typedef struct {
    char **text;
    int32_t n;
} frgi_formulas;

/** sw(a, b): a, then b.  sw0: before them neither.  csw: a, then a + b.  csw0 likewise.  mvsw: all
 *  subsets, by size.  c(y1, y2) left of the tilde: an outcome each.  Several calls make all their
 *  combinations; the effects change slowest, then the outcomes, then the regressors.  A formula
 *  without such calls comes back as it was.  E_FORMULA for nested calls, calls without arguments,
 *  and more than FRGI_MODELS_LIMIT models. */
FRG_MUST_USE frg_status frgi_formula_expand(frgi_formulas *out, frg_context *ctx, const char *text,
                                            int64_t length);
void frgi_formulas_free(frgi_formulas *f, frg_context *ctx);

/** Is this node sw(), sw0(), csw(), csw0() or mvsw()? */
bool frgi_formula_is_stepwise(const frgi_syntax *s, int32_t node);

#pragma GCC visibility pop
#endif
