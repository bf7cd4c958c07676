/* oracle_soap.h - SOAP the slow and literal way: one parameter, loops, double precision.
 *
 * Bases are columns that are sorted and moved, second moments move with them, the first moment
 * lives in the basis and is taken out and put back around every refresh; QR by Gram-Schmidt twice
 * over, eigenvectors by Jacobi. Shares no code with the library, and none of its ways of storing
 * things.  All options of the options struct that decide numbers but ridge_c, nonfinite and
 * stochastic_rounding. */
#ifndef FOURGE_ORACLE_SOAP_H
#define FOURGE_ORACLE_SOAP_H

#include "fourge/soap.h"

enum { SOAP_ORACLE_FACTORS = 32 };

/** A factor: an axis, or a block of one. */
typedef struct {
    int axis;
    int64_t at, n;          /* along the axis */
    double *k, *q, *lambda; /* by columns */
    double *exact, *turns; /* of the last refresh: eigenvectors, norm(K) over the gap to the next */
    int64_t turn;          /* staggered: refreshed so many steps early */
    int has_turn;
} soap_oracle_factor;

typedef struct {
    frg_soap_opts o;
    int axes;        /* after merging, as d and the order of m and v */
    int64_t d[4], n; /* n: in all */
    int64_t *from;   /* where entry i of m stands in w and in gradients */
    double *w, *m, *v;
    int factors;
    soap_oracle_factor factor[SOAP_ORACLE_FACTORS];
    double ridge; /* 0; refreshes by QR see K + ridge norm_F(K) I */
    int64_t t;
    int based, started;
    double travelled; /* sum of norm(lr D) */
    /* What turns of bases by rounding of K, u norm(K), do to coordinates, in units of u: the
     * largest norm(K) / (lambda_j - lambda_j+1) times the share of coordinates j and j + 1 in a
     * gradient, over the steps, and times sqrt(lambda_j / norm(K)), over the refreshes. */
    double enlarges;
} soap_oracle;

/** w, and gradients later on, in the parameter's own shape d.  Axes longer than max_precond_dim, of
 *  length 1, and those of a parameter of one axis without precondition_1d have no factor. */
soap_oracle *soap_oracle_create(const frg_soap_opts *o, int axes, const int64_t d[],
                                const double *w);
/** Staggered refreshes of the n parameters of a handle: the dearest factor first, each at the step
 *  of the interval that has least so far. */
void soap_oracle_take_turns(soap_oracle *const s[], int n);
void soap_oracle_step(soap_oracle *s, const double *gradient);
void soap_oracle_destroy(soap_oracle *s);

#endif
