/* gp_oracle.h - Gaussian processes the slow and certain way: dense, by definition, in quadruple
 * precision.
 *
 * The value is the density of y under N(m, K), K entry by entry from the textbook formula of each
 * kernel and a Cholesky factor of three nested loops.  Derivatives are central differences of that
 * value with a step of 1e-9, which in quadruple precision leaves an error of about 1e-18 of the
 * third derivative: no derivative of any kernel stands here.  Exponential, logarithm and cosine are
 * series of their own.  Shares no code with the library.  Cost: n^3 / 3 quadruple operations (60 ns
 * each) for a value; meant for n up to 160.
 */
#ifndef FOURGE_GP_ORACLE_H
#define FOURGE_GP_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    ORACLE_SUM, /* of its two children */
    ORACLE_PRODUCT,
    ORACLE_SCALE, /* of one child, at[0]: the variance */
    ORACLE_RBF,   /* at[0]: lengthscales */
    ORACLE_MATERN12,
    ORACLE_MATERN32,
    ORACLE_MATERN52,
    ORACLE_RQ,                /* lengthscales, alpha */
    ORACLE_PERIODIC,          /* exp(-2 sum sin^2(pi D/p) / l^2): lengthscales, periods */
    ORACLE_PERIODIC_GPYTORCH, /* the same with l in place of l^2 */
    ORACLE_LINEAR,            /* variances */
    ORACLE_POLY,              /* offset; degree */
    ORACLE_COSINE,            /* prod cos(2 pi D/p): periods */
    ORACLE_SM,                /* weights, means, variances of `degree` components */
    ORACLE_SM_GPYTORCH, /* the product over columns of sums, exp(-2 pi^2 (D s)^2): weights, means,
                           widths */
    ORACLE_CONST,
    ORACLE_WHITE
} gp_oracle_kind;

enum { ORACLE_COLUMNS = 8 };

/** A node of the expression in postfix order. */
typedef struct {
    gp_oracle_kind kind;
    int at[3];                  /* first parameter of each group */
    bool vector[3];             /* one entry a column (a component and column), or one for all */
    int columns;                /* how many, 0: all */
    int column[ORACLE_COLUMNS]; /* which */
    int degree;                 /* of poly, components of sm */
} gp_oracle_node;

typedef enum {
    ORACLE_ZERO,
    ORACLE_CONSTANT,
    ORACLE_LINEAR_MEAN,
    ORACLE_GLS,
    ORACLE_GLS_LINEAR
} gp_oracle_mean;

typedef struct {
    int64_t n, d, q;
    double *x, *y; /* n x d row-major, n x q column-major */
    const gp_oracle_node *node;
    int n_nodes;
    int noise_first, noise_count; /* parameters; groups NULL: one for all */
    const int32_t *groups;
    const double *known_noise; /* n or NULL */
    gp_oracle_mean mean; /* the parameters of CONSTANT and LINEAR_MEAN, column after column of y */
    int mean_first;
    bool reml;
} gp_oracle;

/** ell at theta; NaN where K is not positive definite. */
double gp_oracle_value(const gp_oracle *o, const double *theta);
/** d ell / d log theta_t for t < mean_first (all p without a mean's), per value from there on. */
void gp_oracle_gradient(const gp_oracle *o, const double *theta, int p, double *gradient);
/** d ell / dx (n x d row-major) and d ell / dy (n x q column-major); either may be NULL.  Uses o->x
 *  and o->y as scratch and leaves them as they were. */
void gp_oracle_data_gradient(const gp_oracle *o, const double *theta, double *dx, double *dy);
/** 1/2 sum_c (K_s a)' K^-1 (K_t a) over the p parameters before the mean's, dense, K_t by
 *  differences. */
void gp_oracle_information(const gp_oracle *o, const double *theta, int p, double *information);
/** A point given the others: the means of the q outputs, the variance of an observation there, and
 *  that of the function. */
typedef struct {
    double mean[ORACLE_COLUMNS], variance, latent;
} gp_oracle_point;
/** At x (d), with the mean over the data of the noise, and white; a profiled mean is estimated
 *  (universal kriging). */
gp_oracle_point gp_oracle_predict(const gp_oracle *o, const double *theta, const double *x);
/** Row i without its observation, a profiled mean estimated anew. */
gp_oracle_point gp_oracle_left_out(const gp_oracle *o, const double *theta, int64_t i);
/** sum_i log p(y_i | the others), and its gradient as above where that is not NULL. */
double gp_oracle_loo(const gp_oracle *o, const double *theta, int p, double *gradient);
/** |K|_F |K^-1|_F. */
double gp_oracle_condition(const gp_oracle *o, const double *theta);

#endif
