/* reg_vcov.h - what the kinds of covariances share: the table of kinds, what they work on, and the
 * steps from scores to a table of errors.
 *
 *     V = factor B M B,    B = (X~'WX~)^-1,   s_i = w_i e_i x~_i,   M = sum_ij K_ij s_i s_j'
 *
 * A kind is a row of the table in reg_vcov_spec.c and a function that fills M (or V itself). */
#ifndef FRGI_REG_VCOV_H
#define FRGI_REG_VCOV_H

#include "regress/regress.h"

#pragma GCC visibility push(hidden)

typedef struct frgi_vcov_work frgi_vcov_work;

/** What a variable of a specification is. */
typedef enum {
    VARIABLE_CLUSTERS, /* a + b^c: up to four keys */
    VARIABLE_KEY,      /* a or a^b */
    VARIABLE_NUMBERS   /* a column: a period or a coordinate */
} frgi_vcov_variable_kind;

/** How many parameters, clusters and degrees of freedom the small-sample rule counts. */
typedef enum {
    RULE_ROWS,     /* no clusters: n / (n - 1); t has n - K */
    RULE_CLUSTERS, /* the variables cluster, each term has its own factor; t has least G - 1 */
    RULE_PERIODS,  /* T / (T - 1) with T periods, the last variable; t has T - 1 */
    RULE_TWO_WAY,  /* the same with the lesser of units and periods */
    RULE_NONE,     /* neither factor: the kind corrects by itself; t has n - K */
    RULE_LEFT_OUT  /* the same of clusters; t has G - 1, or degrees of freedom of its own */
} frgi_vcov_rule;

typedef struct frgi_vcov_kind {
    const char *name;  /* of the specification; upper and lower case are the same */
    const char *type;  /* of the result */
    const char *usage; /* what stands behind "NAME=" */
    int n_variables;
    frgi_vcov_variable_kind variables[FRGI_CLUSTERS];
    unsigned choices;   /* bits 1 << frgi_vcov_choice */
    int positional;     /* the choice that may stand without its name; VCOV_CHOICES: none */
    bool required;      /* it must be given */
    bool least_squares; /* it takes the bread for (x'Wx)^-1, and solves without a row or cluster */
    bool single;        /* its degrees of freedom or p values are of one coefficient each */
    frgi_vcov_rule rule;
    frg_status (*meat)(frgi_vcov_work *w); /* NULL: iid */
    /** p values and intervals of its own in the table; NULL: those of t.  factor: of B M B. */
    frg_status (*tests)(frgi_vcov_work *w, double factor);
} frgi_vcov_kind;

/** Covariances by the way of one specification, in powers of two of their own (reg_vcov.c). */
struct frgi_vcov_work {
    frg_fe *f;
    frgi_vcov *v;
    const int32_t *codes[FRGI_CLUSTERS]; /* of the keys; an effect's where they are the same */
    int64_t groups[FRGI_CLUSTERS];
    int32_t *own;         /* codes that are no effect's */
    int64_t least;        /* of the groups, or the number of periods */
    const double *scores; /* n: 2^-a w e, the factor of x in a row's score; of two stages 1 */
    double *weighted;     /* their memory where they are not e */
    bool unkept;          /* scores, NULL, are the residuals, which nobody keeps */
    double *meat;         /* k x k */
    double *gross;        /* k x k: the same with all terms added; NULL where there is one */
    double *terms;        /* k: the variances that gross gives */
    bool *unknown;        /* k: no variance */
    /* powers of two: */
    int a;
    int *c;           /* k */
    const double **x; /* k: x' */
    double *scaled;   /* memory of those that are not f->fit.x */
    double *bread;    /* k x k: B' */
    frg_status ended; /* stopped before the meat was there: the errors are NaN */
};

/** The names of the table, for messages. */
const frgi_vcov_kind *frgi_vcov_kinds(int *count);
/** The word of a choice that is a list of words. */
const char *frgi_vcov_word(const frgi_vcov_request *r, frgi_vcov_choice choice);

/* ---- meats: each adds to w->meat ---- */
FRG_MUST_USE frg_status frgi_vcov_rows_meat(frgi_vcov_work *w);     /* hc1 */
FRG_MUST_USE frg_status frgi_vcov_clusters_meat(frgi_vcov_work *w); /* cluster */
FRG_MUST_USE frg_status frgi_vcov_nw_meat(frgi_vcov_work *w);       /* reg_hac.c */
FRG_MUST_USE frg_status frgi_vcov_dk_meat(frgi_vcov_work *w);
FRG_MUST_USE frg_status frgi_vcov_hac_meat(frgi_vcov_work *w);
FRG_MUST_USE frg_status frgi_vcov_conley_meat(frgi_vcov_work *w); /* reg_conley.c */
FRG_MUST_USE frg_status frgi_vcov_hc2_meat(frgi_vcov_work *w);    /* reg_leverage.c */
FRG_MUST_USE frg_status frgi_vcov_hc3_meat(frgi_vcov_work *w);
FRG_MUST_USE frg_status frgi_vcov_cr2_meat(frgi_vcov_work *w); /* reg_jackknife.c */
FRG_MUST_USE frg_status frgi_vcov_cr3_meat(frgi_vcov_work *w);
FRG_MUST_USE frg_status frgi_vcov_jackknife_meat(frgi_vcov_work *w);
FRG_MUST_USE frg_status frgi_vcov_crv3_meat(frgi_vcov_work *w);

/** reg_wild.c */
FRG_MUST_USE frg_status frgi_vcov_wild_tests(frgi_vcov_work *w, double factor);

/* ---- steps ---- */
/** Codes of the request's keys, ranks of the periods: w->codes, w->groups, w->least.  E_CLUSTER
 *  where there is a single one. */
FRG_MUST_USE frg_status frgi_vcov_encode(frgi_vcov_work *w);
/** The rows of a fit are fixed: E_CLUSTER where one lacks a variable that is asked for later. */
FRG_MUST_USE frg_status frgi_vcov_check_complete(const frg_fe *f, const frgi_key *key);
/** Codes of variable i are the ranks of its values (reg_hac.c).  E_TYPE for text without an
 *  order. */
FRG_MUST_USE frg_status frgi_vcov_periods(frgi_vcov_work *w, int i);
/** w->gross, zeros: M is no square, so that a variance may be negative. */
FRG_MUST_USE frg_status frgi_vcov_gross(frgi_vcov_work *w);
/** Does every level of effect q lie in one cluster of one of the variables? */
FRG_MUST_USE frg_status frgi_vcov_nested(const frgi_vcov_work *w, int q, bool *nested);
/** Demeans `count` columns of n values in place; w->ended where that was stopped. */
FRG_MUST_USE frg_status frgi_vcov_demean(frgi_vcov_work *w, frg_demean *plan, double *values,
                                         int64_t count);
/** A plan of the effects in `chosen` alone, without slopes that are not theirs. */
FRG_MUST_USE frg_status frgi_vcov_plan(const frg_fe *f, uint64_t chosen, frg_demean **out);
/** h_i of the full model, of one of w_i rows where weights are frequencies. */
FRG_MUST_USE frg_status frgi_vcov_leverages(frgi_vcov_work *w, double *h);
/** Does this covariance take leverages; *approx: by draws? */
bool frgi_vcov_takes_leverages(const frgi_vcov_request *r, bool *approx);
/** Bytes for each row that leverages take beside matrix and residuals, at most; *columns: of those,
 *  columns of a plan of their own; *beside: bytes that do not grow with the rows. */
size_t frgi_vcov_leverage_bytes(const frg_fe *f, bool approx, int64_t *columns, size_t *beside);
/** w->scores. */
FRG_MUST_USE frg_status frgi_vcov_scores(frgi_vcov_work *w);
/** meat += scale sum_i h_i x_i x_i', h NULL: 1; gross += |scale| of the same. */
FRG_MUST_USE frg_status frgi_vcov_add_gram(const frgi_vcov_work *w, const double *const *x,
                                           const double *h, int64_t n, double scale);
/** meat += scale S'S, S the sums of the scores by group. */
FRG_MUST_USE frg_status frgi_vcov_add_groups(const frgi_vcov_work *w, const int32_t *codes,
                                             int64_t groups, double scale);
/** meat += scale (S'T + T'S) of k columns of n rows each; gross += |scale| (S'S + T'T), which is
 *  at least as large. */
FRG_MUST_USE frg_status frgi_vcov_add_cross(const frgi_vcov_work *w, const double *const *s,
                                            const double *const *t, int64_t n, double scale);
/** K, and in *naive as it is without regard to linear dependence: 0 with slopes, which others count
 *  otherwise. */
FRG_MUST_USE frg_status frgi_vcov_parameters(const frgi_vcov_work *w, double *K, int64_t *naive);
/** out <- scale a m a for symmetric a. */
FRG_MUST_USE frg_status frgi_vcov_sandwich(const frg_fe *f, const double *a, const double *m,
                                           double scale, double *out);
/** From [mean-centred constant, b] to [intercept as written, b]:  b0 <- b0 - sum_j mean_j b_j. */
void frgi_vcov_shift(const frgi_vcov_work *w, double *m);
/** w->unknown: the coefficients without a variance: it is negative, or what the rounding of its
 *  terms leaves of them. */
FRG_MUST_USE frg_status frgi_vcov_find_unknown(frgi_vcov_work *w, double adjust);
/** The nearest positive semidefinite matrix where a variance is not positive. */
FRG_MUST_USE frg_status frgi_vcov_project(frgi_vcov_work *w);
void frgi_vcov_tabulate(const frgi_vcov_work *w);
/** Means of coefficients in their place, with S V S' (reg_means.c). */
FRG_MUST_USE frg_status frgi_vcov_means(frgi_vcov_work *w);
/** b' V^-1 b / k of the k coefficients but the intercept; NaN where V is singular. */
FRG_MUST_USE frg_status frgi_vcov_wald(frgi_vcov_work *w, int64_t k);

#pragma GCC visibility pop
#endif
