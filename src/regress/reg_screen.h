/* reg_screen.h - which columns of a regression are kept: what the effects absorb and what is a
 * combination of columns before it goes, by name.
 *
 *     R = L L'  of the correlations R of X~, in formula order; a column without a pivot is dropped
 */
#ifndef FRGI_REG_SCREEN_H
#define FRGI_REG_SCREEN_H

#include "regress/regress.h"

#pragma GCC visibility push(hidden)

/** Gram matrix and scales of the demeaned columns of a fit; p of them without y. */
typedef struct {
    frg_fe *f;
    double *gram;        /* packed, of X and then y */
    double *scale;       /* p: sqrt of the diagonal, 0 for absorbed columns */
    double *correlation; /* p x p, then its Cholesky rows; X'WX itself under collin=fixest */
    double *relation;    /* p */
    unsigned char *kept; /* p */
} frgi_screen;

/** The Gram matrix of [X~ y~] under `weights`, with the fit's moments and reports to compare it
 *  with.  Nothing is there where the fit gives up. */
FRG_MUST_USE frg_status frgi_screen_create(frgi_screen *w, frg_fe *f, const double *weights);
void frgi_screen_destroy(frgi_screen *w);
/** column_of[0 .. *k-1] <- the columns of the matrix that can be kept, in their order, as if those
 *  of begin .. end-1 were not there; those from `first` on that are dropped are listed in
 *  f->fit.dropped. */
FRG_MUST_USE frg_status frgi_screen_keep(frgi_screen *w, int begin, int end, int first,
                                         int32_t *column_of, int *k);
/** W_DROPPED with all that was dropped; E_NO_REGRESSOR where k is 0. */
FRG_MUST_USE frg_status frgi_screen_report(const frgi_screen *w, int k);
/** out (k x k) <- the inverse of the Gram matrix of the columns, through their correlations. */
FRG_MUST_USE frg_status frgi_screen_inverse(const frgi_screen *w, int k, const int32_t *column_of,
                                            double *out);
/** y's variation is round-off beside what it had: it is set to 0, so that its round-off does not
 *  become estimates.  tss and within by the way. */
void frgi_screen_depvar(frgi_screen *w);
/** x_a' W x_b of columns a, b of the matrix (0: y). */
static inline double frgi_screen_gram(const frgi_screen *w, int a, int b)
{
    const int p = w->f->data.p, i = a == 0 ? p : a - 1, j = b == 0 ? p : b - 1;
    return w->gram[i > j ? frgi_packed(i, j) : frgi_packed(j, i)];
}

#pragma GCC visibility pop
#endif
