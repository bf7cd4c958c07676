/* oracle.h - fixed-effects regression the slow and certain way: dense, in quadruple precision.
 *
 * The columns of W^(1/2) D, every dummy and slope column of every factor, are orthonormalised by
 * modified Gram-Schmidt with one re-orthogonalisation; what is left of a dependent column is
 * rounding, 1e-33 of it, so the rank is a count.  Residuals, coefficients and covariances follow
 * from the basis.  Shares no code and no algorithm with the library, and uses nothing of quadruple
 * precision but + - * /. Cost: O(n M^2) for M columns in all; meant for n and M up to some
 * hundreds.
 */
#ifndef FOURGE_ORACLE_H
#define FOURGE_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t n;
    int n_factors;
    const int32_t *codes;  /* n x n_factors, row-major, >= 0, gaps allowed */
    const double *weights; /* n, > 0; NULL: all 1 */
    int n_slopes;
    const int *slope_factor;    /* n_slopes */
    const double *const *slope; /* n_slopes arrays of n */
    uint64_t no_intercept;      /* bit q: factor q has slopes alone */
} oracle_design;

typedef struct oracle oracle;
oracle *oracle_create(const oracle_design *design);
void oracle_destroy(oracle *o);

int64_t oracle_rank(const oracle *o);
/** Columns of D, empty levels left out. */
int64_t oracle_columns(const oracle *o);
/** r = b - D alpha, the weighted least-squares residual. */
void oracle_demean(const oracle *o, const double *b, double *r);
/** The smallest non-zero eigenvalue of A'A, A = W^(1/2) D with columns scaled to unit norm; in
 *  double, right to about 1e-10 of the largest. */
double oracle_smallest_eigenvalue(const oracle *o);

/** Regression of y on the k columns of x (column-major, leading dimension n) and D. */
typedef struct {
    int k;
    double *beta;      /* k */
    double *residuals; /* n, unweighted: y - X beta - D alpha */
    double *bread;     /* k x k: (X~' W X~)^-1 */
    double rss;        /* sum w e^2 */
    void *scores;      /* n x k in quadruple precision: w e x~ */
} oracle_fit;
/** False where the columns are collinear given D; then nothing is set. */
bool oracle_regress(const oracle *o, const double *y, const double *x, int k, oracle_fit *out);
/** bread (sum_g s_g s_g') bread without any small-sample factor; s_g sums the scores of a group.
 *  groups NULL: every row is its own group, which is HC0. */
void oracle_sandwich(const oracle *o, const oracle_fit *f, const int32_t *groups, double *vcov);
void oracle_fit_free(oracle_fit *f);

#endif
