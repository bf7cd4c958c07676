/* reg_effects.h - the coefficients of the fixed effects of a fit. */
#ifndef FRGI_REG_EFFECTS_H
#define FRGI_REG_EFFECTS_H

#include "regress/regress.h"

#pragma GCC visibility push(hidden)

/** Blocks of a factor's levels, the constants before the slopes, factor after factor. */
typedef struct {
    int64_t total;
    int64_t constant[FRGI_EFFECTS]; /* start of a factor's block; -1: slopes alone */
    int64_t *slope;                 /* start of each slope's block */
    double *value;                  /* total */
    bool identified;                /* unique under the normalisation */
} frgi_effects;

/** E_OPTION where the fit did not keep them. */
FRG_MUST_USE frg_status frgi_effects_create(frgi_effects *a, const frg_fe *f);
void frgi_effects_destroy(frgi_effects *a, frg_context *ctx);

#pragma GCC visibility pop
#endif
