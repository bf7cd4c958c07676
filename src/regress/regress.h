/* regress.h - a fitted regression from the inside: data, policy, state and result apart, each
 * filled by one file.  regress.c fits it; reg_matrix.c, reg_absorb.c and reg_estimate.c are its
 * steps; reg_vcov.c adds covariances, reg_effects.c recovers effects, reg_predict.c predicts. */
#ifndef FRGI_REGRESS_H
#define FRGI_REGRESS_H

#include "fourge/fe.h"
#include "regress/reg_family.h"
#include "regress/reg_frame.h"
#include "regress/reg_gram.h"
#include "regress/reg_panel.h"

#pragma GCC visibility push(hidden)

typedef enum { SSC_NONE, SSC_NONNESTED, SSC_FULL } frgi_ssc_fixef;

/** fixest's small-sample rule. */
typedef struct {
    bool adj, cluster_adj, cluster_min, t_min;
    frgi_ssc_fixef fixef;
} frgi_ssc;

enum { FRGI_CLUSTERS = 4 };
/** What stands behind the variables of a covariance, by name or, the first that its kind takes, by
 *  its place: "nw=unit,year,2", "hc3,leverage=approx". */
typedef enum {
    VCOV_LAG,
    VCOV_CUTOFF,
    VCOV_KERNEL,
    VCOV_LEVERAGE,
    VCOV_DRAWS,
    VCOV_REPS,
    VCOV_WEIGHTS,
    VCOV_CHOICES
} frgi_vcov_choice;

struct frgi_vcov_kind;
/** A covariance as asked for. */
typedef struct {
    char *spec;
    const struct frgi_vcov_kind *kind; /* reg_vcov.h */
    int n;                             /* variables: clusters, units, periods, coordinates */
    frgi_key keys[FRGI_CLUSTERS];
    char *names[FRGI_CLUSTERS];
    double choice[VCOV_CHOICES]; /* a number, or the place in a list of words; NaN: not given */
} frgi_vcov_request;

/** A covariance with its memory. */
typedef struct frgi_vcov {
    frg_fe_vcov v;
    frgi_vcov_request request;
    frgi_ssc ssc;
    char ssc_text[96];
    double *matrix, *df; /* df: each coefficient's own; NULL: v.df_t for all */
    frg_coefficient *coefficients;
    struct frgi_vcov *next;
} frgi_vcov;

/** What is regressed on what: fixed once the rows and columns are known (regress.c). */
typedef struct {
    const frg_table *table; /* the caller's, or `lagged`; it lives as long as the fit */
    frg_table *lagged;      /* the caller's columns, and those of l(), f(), d(); NULL: none */
    char *panel;            /* as asked for, kept for predictions */
    frgi_formula formula;
    frgi_program depvar;
    frgi_syntax offset_text; /* of the offset's expression */
    frgi_program offset;     /* has_offset */
    bool has_offset;
    frgi_variable *variables;
    frgi_frame frame;
    frgi_design design;
    int p;        /* columns right of y, the ones of an intercept first */
    bool ones;    /* an intercept that no effect spans: a column of ones, the first */
    bool centred; /* ones, and no effects at all: the others are centred in place of demeaned */
} frgi_fe_data;

/** How: as asked for. */
typedef struct {
    frg_fe_opts options; /* its strings belong to the caller and are not read after the fit */
    frgi_ssc ssc;
    bool leverages, estimated_leverages; /* a covariance takes them, exact or by draws */
    frgi_pool *pool; /* while the models of one call are fitted; NULL: a fit by itself */
} frgi_fe_policy;

/** [y X], then [y~ X~] in its place (reg_matrix.c, reg_absorb.c). */
typedef struct {
    double *values;             /* n x (p + 1), column-major: y, then X, demeaned or centred;
                                   NULL where the sample has the columns (reg_pool.c) */
    double **columns;           /* p + 1, each of n: those of `values`, or the table's own */
    bool lent;                  /* the latter, which nobody writes to: until they are demeaned */
    int32_t *shared;            /* p + 1: their places in the sample; NULL without one */
    frgi_moments *moments;      /* p + 1, before demeaning */
    frg_demean_column *reports; /* p + 1; NULL without effects */
} frgi_fe_matrix;

/** What the demeaner says of the effects (reg_absorb.c); zeros without effects. */
typedef struct {
    frg_demean *plan;    /* while effects may be asked for */
    frg_demean *unsaved; /* without effects, until opts.plan is written; NULL: nothing is to be */
    bool plan_read;      /* the solver came from opts.plan */
    bool plan_waits;     /* plan, or unsaved, is to be written */
    double rank;
    bool rank_exact;
    int64_t components; /* connected sets of the levels */
    char *rank_method;
    char *method;
    frg_demean_report report;
    frg_demean_part *subproblems; /* report.n_parts */
} frgi_fe_absorbed;

/** The estimates (reg_estimate.c). */
typedef struct {
    int k;                   /* coefficients */
    int32_t *column_of;      /* k: columns of the matrix, 1 .. p */
    const double **x;        /* k */
    double *b;               /* k, of the model as written */
    double *bread;           /* k x k, (X'WX)^-1 of the columns in the matrix */
    double *e;               /* n; NULL: it is formed where it is wanted, */
    double *b_of_e;          /* as y~ - X~ b_of_e, k: b but for the last step of its refinement */
    double within, rss, tss; /* y~' W y~, e' W e, and about the mean; of the frame's weights */
    bool no_variation;       /* nothing of y is left: b and e are 0 */
    const char *stage;       /* in warnings: the first stage of this variable, "": moments of the
                              * instruments; NULL: the regression itself */
    int n_dropped;
    frg_dropped_term *dropped; /* their reasons are blocks of their own */
} frgi_fe_estimates;

/** Two-stage least squares (reg_iv.c); zeros without instruments. */
typedef struct {
    int n_exogenous, n_endogenous, n_instruments; /* columns that are kept */
    int32_t *column_of; /* of Z: the exogenous columns and the instruments */
    double *fitted;     /* n x n_endogenous: X^ */
    double *pi;         /* n_endogenous rows of coefficients on Z */
    double *bread;      /* (Z'WZ)^-1 */
    double *gram;       /* [Z X y]'W[Z X y], full, X the endogenous columns */
    /* what the caller is shown of it (reg_iv_tests.c) */
    frg_fe_iv result;
    frg_fe_first_stage *stages;
    frg_fe_iv_tests *tests;
    frg_coefficient *coefficients; /* of all stages */
    double *stage_f;               /* of all tests and stages, f and p */
    const char **names;            /* of the instruments */
} frgi_fe_iv;

/** A generalised linear model (reg_glm.c); zeros for least squares.  Its fit is the last weighted
 *  least squares: frame.weights are W then, fit.e the working residuals, so scores are W e x. */
typedef struct {
    const frgi_family *family;
    const frgi_link *link;
    double *y, *offset; /* n; offset NULL: none */
    double *prior;      /* n: the weights that were given; NULL: all 1 */
    double *eta, *mu;   /* n: X b + D alpha + offset, and the mean */
    double *raw;        /* n x (p + 1): the columns before demeaning, where effects are kept */
    double theta;       /* of negbin; infinite: Poisson's variance */
    bool searched;      /* no row that is left is predicted perfectly (reg_separation.c) */
    frg_fe_glm result;
} frgi_fe_glm;

/** Coefficients that are means of those of the columns (reg_means.c); zeros where none is. */
typedef struct {
    int n;
    double *shares;    /* n x k: their weights in each mean; NULL: every coefficient is shown */
    const char **name; /* n */
    int n_events;
    frg_fe_event *events;
} frgi_fe_means;

/** Difference in differences in two stages (reg_two_stage.c); zeros in one. */
typedef struct {
    char *text;                  /* first_stage as given */
    const frg_column *treatment; /* of the caller's table */
    frg_table *table;            /* that, and which rows are untreated: while `first` is there */
    frg_fe *first;               /* the first stage, until the scores are known */
    double *scores;              /* n x k, with the first stage's share; NULL: w e x */
} frgi_fe_two_stage;

/** What the caller is shown (regress.c). */
typedef struct {
    const char **factor_names;
    const char **column_names; /* p + 1, of the demeaned columns */
    char *split_name, *split_value;
    frgi_vcov *vcovs;        /* newest first (reg_vcov.c) */
    frg_fe_vcov *vcov_array; /* of the fit */
    frg_fe_result result;
} frgi_fe_report;

struct frg_fe {
    frg_context *ctx;
    frgi_fe_data data;
    frgi_fe_policy policy;
    frgi_fe_matrix matrix;
    frgi_fe_absorbed absorbed;
    frgi_fe_estimates fit;
    frgi_fe_iv iv;
    frgi_fe_glm glm;
    frgi_fe_two_stage two_stage;
    frgi_fe_means means;
    frgi_fe_report report;
    bool fitted; /* regress.c: further covariances are not stopped */
};

/** The context, where what follows the demeaning takes longer than seconds, p^2 (n + 10 p) steps,
 *  and a stop has to end it without a result; NULL: it is done in a stopped run too, whose result
 *  is marked. */
static inline const frg_context *frgi_fe_stops(const frg_fe *f)
{
    const double p = f->data.p, n = (double)f->data.frame.n;
    return !f->fitted && p * p * (n + 10 * p) > 1e11 ? f->ctx : NULL;
}
/** Was such a fit stopped? */
static inline bool frgi_fe_gives_up(const frg_fe *f)
{
    return frgi_fe_stops(f) && frgi_stopped(f->ctx) != FRG_OK;
}

/** Whether a fit with so much to do that a stop ends it was stopped: then it has no result. *worst
 *  becomes the stop's status where there was one. */
bool frgi_fe_ended(const frg_fe *f, frg_status *worst);

/** [y X] with their moments, block of rows after block; codes: of the factors among the columns.
 *  E_NOT_FINITE for a value that cannot be squared and added. */
FRG_MUST_USE frg_status frgi_fe_fill_matrix(frg_fe *f, frgi_factor_codes *codes);
/** The columns of the matrix are its own from now on. */
void frgi_fe_own_columns(frg_fe *f);
/** Subtracts the columns' means, all but that of the ones. */
void frgi_fe_centre(frg_fe *f);
/** The name of column c of the matrix: that of y, "(Intercept)" or a term. */
const char *frgi_fe_column_name(const frg_fe *f, int32_t c);

/** A plan of the fit's effects. */
FRG_MUST_USE frg_status frgi_fe_plan(const frg_fe *f, frg_demean **out);
/** The formula's slopes for the demeaner, to be dropped; *no_intercept: the effects that have
 *  slopes alone. */
FRG_MUST_USE frg_status frgi_fe_slopes(const frg_fe *f, frg_slope **slopes, uint64_t *no_intercept);
/** Are columns on the disk brought together by eliminated level?  The demeaner does so, which would
 *  jump about in them otherwise. */
bool frgi_fe_is_scattered(const frg_fe *f);
/** [y~ X~] <- (I - P_D) [y X] in place, the rank of D and the reports.  *worst becomes the
 *  demeaner's status where that is positive; *stopped: the run ended before there was a result. */
FRG_MUST_USE frg_status frgi_fe_absorb(frg_fe *f, frg_status *worst, bool *stopped);

/** A fit of one formula, the options taken over; pool: of what it shares with others, or NULL. */
FRG_MUST_USE frg_status frgi_fe_fit_one(frg_fe **out, frg_context *ctx, const char *formula,
                                        const frg_table *data, const frg_fe_opts *o,
                                        frgi_pool *pool);
/** frg_fe_fit_many as a part of a run that has begun already: the clock of the time limit goes
 *  on. */
FRG_MUST_USE frg_status frgi_fe_fit_many(frg_fe_many **out, frg_context *ctx, const char *formula,
                                         const frg_table *data, const frg_fe_opts *o);
/** What the plan says of the effects, with the columns' warnings; drops it where it is not kept. */
FRG_MUST_USE frg_status frgi_fe_describe_absorbed(frg_fe *f, frg_status worst);

/** The family and its link; E_OPTION for what does not go together. */
FRG_MUST_USE frg_status frgi_glm_choose(frg_fe *f);
/** Absorbs and estimates by iteratively reweighted least squares.  *worst and *stopped as
 *  frgi_fe_absorb's. */
FRG_MUST_USE frg_status frgi_glm_fit(frg_fe *f, frg_status *worst, bool *stopped);
/** Deviances, likelihoods and what else is said of the model, and iid errors' sum in fit.rss. */
FRG_MUST_USE frg_status frgi_glm_describe(frg_fe *f);
void frgi_glm_destroy(frg_fe *f);
/** gone[i] <- 1 where row i is predicted perfectly by the columns of the matrix and the effects;
 *  *count of them. */
FRG_MUST_USE frg_status frgi_separated_rows(frg_fe *f, unsigned char *gone, int64_t *count);

/** Drops what is absorbed or collinear, by name, and estimates the rest: k, b, bread, e, rss and
 *  what was dropped.  E_NO_REGRESSOR with the reasons where nothing is left.  FRG_OK and no
 *  estimates where the fit gives up. */
FRG_MUST_USE frg_status frgi_fe_estimate(frg_fe *f);
/** Memory of the estimates of up to p columns: x, column_of, dropped, b, e. */
FRG_MUST_USE frg_status frgi_fe_allocate_estimates(frg_fe *f);
/** out[0 .. n-1] <- the residuals of rows begin .. begin + n - 1, the same bits whether they are
 *  kept or formed anew. */
void frgi_fe_errors(const frg_fe *f, int64_t begin, int64_t n, double *out);
/** What the residuals are formed of, where they are not kept. */
frgi_errors frgi_fe_errors_of(const frg_fe *f);
/** b[0] <- the intercept as written, where the columns are centred. */
void frgi_fe_intercept(frg_fe *f);
/** The same by two-stage least squares (reg_iv.c): x holds X^, b and e belong to X.  E_IDENT where
 *  the instruments do not identify the endogenous regressors. */
FRG_MUST_USE frg_status frgi_iv_estimate(frg_fe *f);
/** First stages and tests, after the covariances (reg_iv_tests.c). */
FRG_MUST_USE frg_status frgi_iv_describe(frg_fe *f);
void frgi_iv_destroy(frg_fe *f);

/** The means of the estimates, and the points of an event study.  E_NO_REGRESSOR where nothing is
 *  shown. */
FRG_MUST_USE frg_status frgi_fe_make_means(frg_fe *f);
void frgi_fe_destroy_means(frg_fe *f);
/** How many coefficients the caller is shown. */
int frgi_fe_shown(const frg_fe *f);

/** Is the first coefficient the intercept? */
static inline bool frgi_fe_has_intercept(const frg_fe *f)
{
    return f->data.ones && f->fit.k > 0 && f->fit.column_of[0] == 1;
}

/** The number of covariances is one that the options have room for, E_OPTION. */
FRG_MUST_USE frg_status frgi_fe_check_vcovs(frg_context *ctx, const frg_fe_opts *o);
FRG_MUST_USE frg_status frgi_ssc_parse(frgi_ssc *ssc, frg_context *ctx, const char *text);
/** The rule in full, all keys. */
void frgi_ssc_print(const frgi_ssc *ssc, char *out, size_t capacity);
/** Parses "iid", "cluster=a+b^c", "nw=unit,year,2" by the table of kinds and finds the columns. */
FRG_MUST_USE frg_status frgi_vcov_request_create(frgi_vcov_request *r, frg_context *ctx,
                                                 const char *spec, const frg_table *table);
void frgi_vcov_request_destroy(frgi_vcov_request *r, frg_context *ctx);
/** The joint key of the variables with the bits of `subset`; of none (n 0) where a key has not so
 *  many columns. */
frgi_key frgi_vcov_joint_key(const frgi_vcov_request *r, unsigned subset);
/** Adds the keys whose codes the covariance takes, single and joint. */
FRG_MUST_USE frg_status frgi_vcov_add_keys(const frgi_vcov_request *r, frg_context *ctx,
                                           frgi_key_list *keys);
/** The text of variable i of a specification; false: it has no such one, or is none. */
bool frgi_vcov_variable(const char *spec, int i, const char **text, size_t *length);
/** Computes what is asked for and keeps it in f; takes the request over, also on failure. */
FRG_MUST_USE frg_status frgi_vcov_create(frgi_vcov **out, frg_fe *f, frgi_vcov_request *request,
                                         const frgi_ssc *ssc);
void frgi_vcov_destroy(frgi_vcov *v, frg_context *ctx);

#pragma GCC visibility pop
#endif
