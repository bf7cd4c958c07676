/* reg_glm.c - generalised linear models by iteratively reweighted least squares with the effects
 * taken out (McCullagh and Nelder 1989, 2.5; Correia, Guimaraes and Zylkin 2020, ppmlhdfe).
 *
 *     eta = X b + D a + o,  mu = mean(eta),  w prior weights, V the family's variance
 *     z = eta - o + (y - mu) / mu'(eta),     W = w mu'(eta)^2 / V(mu)
 *     [z~ X~] = (I - P_D) [z X] under W,     b = (X~'W X~)^-1 X~'W z~,   e = z~ - X~ b
 *     eta <- z - e + o, halved towards the eta before while the deviance rises
 *
 * What stands in the place of z and X before a step is what the last step left of them: they differ
 * from z and X by columns of D alone, so that the answer is the same and the solver begins near it.
 * Its tolerance follows the deviance, max(tol, 0.1 of its relative change); once the deviance is at
 * rest, steps at tol follow until sum W (step of eta)^2, and how fast it falls, say that the next
 * is round-off.  `converged` wants both, and the audit of
 * the last step.
 *
 * Where the information of a row depends on its outcome (the negative binomial) scoring converges
 * slowly, by up to half a digit a step; near the maximum W is the observed information then, which
 * makes Newton's steps, and the expected one again in the last, whose W the covariances take.
 *
 * A theta of the negative binomial that is estimated takes its own step before each but the first:
 * to its maximum at the means of now (reg_negbin.c), Poisson's limit, where it begins, among them.
 * Both steps climb one likelihood, that of theta adds its squared length in its own information to
 * the other's, and
 * `converged` wants theta at its maximum at the last means.
 *
 * Dangers: W over many orders of magnitude; below LIGHTEST of the largest it is raised, and e is
 * scaled so that W e stays (y - mu) w mu' / V.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/tree_sum.h"
#include "fe/fe_demean.h"
#include "regress/reg_dense.h"
#include "regress/reg_screen.h"

static const double LIGHTEST = 1e-20, AT_REST = 1e-18, FIRST_TOL = 1e-8, LOOSEST = 1e-4;
static const double NEAR_MAXIMUM = 0.1; /* a relative change of the deviance */
static const double SURE = 1e-8;        /* a probability this near 0 or 1 */
static const double PERFECT =
    1e-6; /* of a binary outcome: a deviance that means no row is unsure */
enum { HALVINGS = 12, RUN = 4096 };

typedef struct {
    frg_fe *f;
    frgi_fe_glm *g;
    int64_t n;
    double *w;         /* n: W */
    double *z;         /* n */
    double *next;      /* n: the next eta */
    double *sums;      /* of runs of RUN rows */
    double *gradient;  /* k + 1 */
    double tol;        /* of the demeaner now */
    double deviance;   /* of mu; infinite before the first step */
    double decrement;  /* sum W (step of eta)^2, and of theta */
    bool newton;       /* W is the observed information in this step */
    bool finishes;     /* ... and is the expected one from now on */
    bool moves_theta;  /* it is estimated */
    double theta_move; /* its information (step of theta)^2 */
    bool halved;       /* the last step was */
    bool screened;     /* the columns to be kept are known */
    frg_status inner;  /* of the last demeaning */
    frgi_means *means; /* of many rows; NULL: row by row */
} irls;

/* ---- rows ------------------------------------------------------------------------------------ */

static double prior_of(const frgi_fe_glm *g, int64_t i)
{
    return g->prior ? g->prior[i] : 1;
}

/** The sum of the runs' sums. */
static double add_up(const irls *s)
{
    double total;
    frgi_tree_rows(s->sums, (s->n + RUN - 1) / RUN, 1, 1, &total);
    return total;
}

static int threads_of(const irls *s)
{
    return frgi_pass_threads(s->f->ctx, s->n);
}

/** Where run r ends. */
static int64_t end_of(const irls *s, int64_t r)
{
    return (r + 1) * RUN < s->n ? (r + 1) * RUN : s->n;
}

/** mu <- mean(eta) of a run; its deviance. */
static double means_of_run(const irls *s, int64_t r, const double *eta)
{
    const frgi_fe_glm *const g = s->g;
    const int64_t begin = r * RUN, end = end_of(s, r);
    double sum = 0;
    if (s->means) {
        return s->means(end - begin, eta + begin, g->y + begin, g->prior ? g->prior + begin : NULL,
                        g->mu + begin);
    }
    for (int64_t i = begin; i < end; i++) {
        const double mu = g->link->mean(eta[i]);
        g->mu[i] = mu;
        sum += g->family->allows(mu) ? prior_of(g, i) * g->family->deviance(g->y[i], mu, g->theta)
                                     : (double)INFINITY;
    }
    return sum;
}

/** mu <- mean(eta); the deviance, infinite where a mean is none. */
static double means(const irls *s, const double *eta)
{
#pragma omp parallel for schedule(static) num_threads(threads_of(s))
    for (int64_t r = 0; r <= (s->n - 1) / RUN; r++) {
        s->sums[r] = means_of_run(s, r, eta);
    }
    const double total = add_up(s);
    return isfinite(total) ? total : (double)INFINITY;
}

/** sum W (to - from)^2 */
static double distance(const irls *s, const double *to, const double *from)
{
#pragma omp parallel for schedule(static) num_threads(threads_of(s))
    for (int64_t r = 0; r <= (s->n - 1) / RUN; r++) {
        double sum = 0;
        for (int64_t i = r * RUN; i < end_of(s, r); i++) {
            sum += s->w[i] * (to[i] - from[i]) * (to[i] - from[i]);
        }
        s->sums[r] = sum;
    }
    return add_up(s);
}

/** d mu / d eta */
static double slope_of(const frgi_fe_glm *g, int64_t i)
{
    return g->link->slope_is_mean ? g->mu[i] : g->link->slope(g->eta[i]);
}

/** Row i's share of W: expected, or in Newton's steps the row's own. */
static double information_of(const irls *s, int64_t i)
{
    const frgi_fe_glm *const g = s->g;
    const double slope = slope_of(g, i);
    return s->newton ? g->family->information(g->y[i], g->mu[i], g->theta)
                     : (slope * slope) / g->family->variance(g->mu[i], g->theta);
}

/** The score of row i's predictor over its information. */
static double score_step(const irls *s, int64_t i)
{
    const frgi_fe_glm *const g = s->g;
    const double slope = slope_of(g, i), r = g->y[i] - g->mu[i];
    return s->newton ? r * slope / g->family->variance(g->mu[i], g->theta) / information_of(s, i)
                     : r / slope;
}

/** W; returns the largest. */
static double weigh(const irls *s)
{
    const frgi_fe_glm *const g = s->g;
#pragma omp parallel for schedule(static) num_threads(threads_of(s))
    for (int64_t r = 0; r <= (s->n - 1) / RUN; r++) {
        double heaviest = 0;
        for (int64_t i = r * RUN; i < end_of(s, r); i++) {
            const double w = prior_of(g, i) * information_of(s, i);
            heaviest = w > heaviest ? w : heaviest;
            s->w[i] = w;
        }
        s->sums[r] = heaviest;
    }
    double heaviest = 0;
    for (int64_t r = 0; r * RUN < s->n; r++) {
        heaviest = fmax(heaviest, s->sums[r]);
    }
    return heaviest;
}

/** W, and z in the place of the z before, of which the first column of the matrix holds what is
 *  left; false where a weight is infinite. */
static bool reweight(const irls *s)
{
    const frgi_fe_glm *const g = s->g;
    double *const column = s->f->matrix.values;
    const double lightest = weigh(s) * LIGHTEST;
    if (isinf(lightest)) {
        return false;
    }
#pragma omp parallel for schedule(static) num_threads(threads_of(s))
    for (int64_t i = 0; i < s->n; i++) {
        const double share = s->w[i] < lightest ? s->w[i] / lightest : 1;
        const double z = g->eta[i] - (g->offset ? g->offset[i] : 0) + share * score_step(s, i);
        s->w[i] = s->w[i] < lightest ? lightest : s->w[i];
        column[i] += z - s->z[i];
        s->z[i] = z;
    }
    return true;
}

static void begin(const irls *s)
{
    const frgi_fe_glm *const g = s->g;
    double sum = 0, weight = 0;
    for (int64_t i = 0; i < s->n; i++) {
        sum += prior_of(g, i) * g->y[i];
        weight += prior_of(g, i);
    }
#pragma omp parallel for schedule(static) num_threads(threads_of(s))
    for (int64_t i = 0; i < s->n; i++) {
        g->mu[i] = g->family->start(g->y[i], sum / weight);
        g->eta[i] = g->link->link(g->mu[i]);
        s->f->matrix.values[i] = s->z[i] = 0;
    }
}

/* ---- the effects out ------------------------------------------------------------------------- */

/** Moments of the columns under W; with an intercept and no effects they are centred, and the means
 *  add up over the steps. */
static void study_columns(const irls *s)
{
    frg_fe *const f = s->f;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads_of(s))
    for (int c = 0; c <= f->data.p; c++) {
        double *const x = f->matrix.values + c * s->n;
        frgi_moments m = frgi_moments_of(f->ctx, x, s->w, s->n);
        const bool centres = f->data.centred && c != 1;
        for (int64_t i = 0; i < s->n && centres; i++) {
            x[i] -= m.mean;
        }
        if (centres) { /* the mean of z is that of this step: its column began at z */
            m.mean += s->screened ? f->matrix.moments[c].mean : 0;
        }
        f->matrix.moments[c] = m;
    }
}

/** The plan with the weights W and the tolerance of now. */
static frg_status plan(const irls *s)
{
    frg_fe *const f = s->f;
    if (f->absorbed.plan) {
        const frg_status status = frgi_demean_reweight(f->absorbed.plan, s->w, s->tol);
        if (status != FRG_UNSUPPORTED) {
            return status;
        }
        frg_demean_destroy(f->absorbed.plan);
        f->absorbed.plan = NULL;
    }
    const double tol = f->policy.options.demean.tol;
    f->policy.options.demean.tol = s->tol;
    const frg_status status = frgi_fe_plan(f, &f->absorbed.plan);
    f->policy.options.demean.tol = tol;
    return status;
}

static frg_status take_out(irls *s)
{
    frg_fe *const f = s->f;
    if (!s->screened || f->data.centred) {
        study_columns(s);
    }
    if (f->data.frame.n_effects == 0) {
        return FRG_OK;
    }
    TRY(plan(s));
    const frg_array all = frg_matrix_columns(f->matrix.values, FRG_F64, s->n, f->data.p + 1, s->n);
    s->inner = frgi_fe_demean_run(f->absorbed.plan, all, all, f->matrix.reports, NULL);
    return s->inner;
}

/* ---- least squares --------------------------------------------------------------------------- */

/** Which columns are kept is decided under the first weights; the others are 0 from then on. */
static frg_status screen(irls *s)
{
    frg_fe *const f = s->f;
    frgi_screen w = {.f = f};
    frg_status status;
    TRY_TO(done, frgi_screen_create(&w, f, s->w));
    TRY_TO(done, frgi_screen_keep(&w, 0, 0, 1, f->fit.column_of, &f->fit.k));
    TRY_TO(done, frgi_screen_report(&w, f->fit.k));
    TRY_TO(done, NEW(f->ctx, &f->fit.bread, (int64_t)f->fit.k * f->fit.k, "estimates"));
    for (int j = 0, c = 1; c <= f->data.p; c++) {
        if (j < f->fit.k && f->fit.column_of[j] == c) {
            f->fit.x[j++] = f->matrix.values + c * s->n;
        } else {
            memset(f->matrix.values + c * s->n, 0, sizeof(double) * (size_t)s->n);
        }
    }
    s->screened = true;
done:
    frgi_screen_destroy(&w);
    return status;
}

/** bread <- (X~'W X~)^-1 */
static frg_status invert(const irls *s)
{
    frg_fe *const f = s->f;
    const int k = f->fit.k;
    double *packed;
    bool sound = true;
    TRY(NEW(f->ctx, &packed, frgi_packed(k, 0), "estimates"));
    frg_status status = frgi_gram(f->ctx, k, f->fit.x, s->w, s->n, packed, frgi_fe_stops(f));
    for (int i = 0; i < k; i++) {
        for (int j = 0; j <= i; j++) {
            f->fit.bread[i * (ptrdiff_t)k + j] = f->fit.bread[j * (ptrdiff_t)k + i] =
                packed[frgi_packed(i, j)];
        }
    }
    DROP(f->ctx, &packed);
    TRY(status);
    TRY(frgi_dense_inverse(f->ctx, k, f->fit.bread, 0, &sound));
    if (!sound) {
        FAIL(f->ctx, E_SEPARATED,
             "the weights leave nothing of a regressor: some rows are predicted perfectly");
    }
    return FRG_OK;
}

/** b and e; one refinement. */
static frg_status least_squares(irls *s)
{
    frg_fe *const f = s->f;
    const int k = f->fit.k;
    TRY(invert(s));
    memset(f->fit.b, 0, sizeof *f->fit.b * (size_t)k);
    for (int pass = 0; pass < 3; pass++) { /* the first has the gradient alone */
        TRY(frgi_gram_residual(f->ctx, k, f->fit.x, f->matrix.values, f->fit.b, s->w, s->n,
                               f->fit.e, s->gradient));
        for (int i = 0; i < k && pass < 2; i++) {
            for (int j = 0; j < k; j++) {
                f->fit.b[i] += f->fit.bread[i * (ptrdiff_t)k + j] * s->gradient[j];
            }
        }
    }
    return FRG_OK;
}

/* ---- a step ---------------------------------------------------------------------------------- */

/** eta <- z - e + o, halved towards the eta before; false where no shorter step helps. */
static bool step(irls *s)
{
    frgi_fe_glm *const g = s->g;
    const double allowed = s->deviance + 1e-9 * (0.1 + fabs(s->deviance));
#pragma omp parallel for schedule(static) num_threads(threads_of(s))
    for (int64_t i = 0; i < s->n; i++) {
        s->next[i] = s->z[i] - s->f->fit.e[i] + (g->offset ? g->offset[i] : 0);
    }
    double deviance = means(s, s->next);
    s->halved = false;
    for (int h = 0; h < HALVINGS && (isinf(deviance) || deviance > allowed); h++) {
        for (int64_t i = 0; i < s->n; i++) {
            s->next[i] = 0.5 * (s->next[i] + g->eta[i]);
        }
        deviance = means(s, s->next);
        s->halved = true;
    }
    s->decrement = distance(s, s->next, g->eta) + s->theta_move;
    double *const swap = g->eta;
    g->eta = s->next;
    s->next = swap;
    const bool sound = isfinite(deviance);
    s->deviance = sound ? deviance : s->deviance;
    return sound;
}

/** E_MEAN of row i: what its mean at the predictor eta is not. */
static frg_status refuse_mean(const irls *s, int64_t i, const char *what)
{
    const frgi_fe_glm *const g = s->g;
    const int64_t *const rows = s->f->data.frame.rows;
    char offset[160] = "";
    if (g->offset) {
        snprintf(offset, sizeof offset, ", of which offset '%.80s' is %.6g",
                 s->f->policy.options.offset, g->offset[i]);
    }
    FAIL(s->f->ctx, E_MEAN, "row %lld: %s at the predictor %.6g%s",
         (long long)(rows ? rows[i] : i) + 1, what, g->eta[i], offset);
}

static frg_status one_step(irls *s, bool *sound)
{
    if (!reweight(s)) {
        int64_t i = 0;
        while (!isinf(s->w[i])) {
            i++;
        }
        return refuse_mean(s, i, "the weight of a step is infinite");
    }
    const frg_status inner = take_out(s);
    TRY(inner);
    if (inner == FRG_INTERRUPTED || inner == FRG_TIME_LIMIT) {
        return FRG_OK;
    }
    if (!s->screened) {
        TRY(screen(s));
    }
    TRY(least_squares(s));
    *sound = step(s);
    return FRG_OK;
}

/** Would the next step be round-off beside the estimates' errors?  Steps shrink by c each (Fisher's
 *  scoring) or faster (Newton's method, canonical links); the demeaner's tolerance is a floor. */
static bool at_rest(const irls *s, double before)
{
    const frgi_fe_glm *const g = s->g;
    const double left = s->f->data.frame.count - s->f->fit.k, square = s->gradient[s->f->fit.k];
    const double scale = g->family->dispersed && left > 0 ? s->deviance / left : 1;
    const double c = before > 0 ? sqrt(s->decrement / before) : 1;
    const double next = c < 1 ? s->decrement * c * c / ((1 - c) * (1 - c)) : (double)INFINITY;
    const double floor = s->f->data.frame.n_effects ? 100 * s->tol * s->tol * square : 0;
    return s->decrement <= floor || next <= AT_REST * scale || s->decrement <= AT_REST * AT_REST;
}

/* ---- theta ----------------------------------------------------------------------------------- */

static frgi_counts counts_of(const irls *s)
{
    const frgi_fe_glm *const g = s->g;
    return (frgi_counts){.ctx = s->f->ctx, .n = s->n, .y = g->y, .w = g->prior, .mu = g->mu};
}

/** theta <- its best at the means of now, and the deviance that they have then. */
static void move_theta(irls *s)
{
    frgi_fe_glm *const g = s->g;
    const frgi_counts counts = counts_of(s);
    const double before = g->theta;
    if (!s->moves_theta || isinf(s->deviance)) {
        return;
    }
    g->theta = frgi_theta_best(&counts, before);
    if (isinf(before) && isinf(g->theta)) {
        s->theta_move = 0;
        return;
    }
    const double step = g->theta - before; /* infinite, from or to Poisson's limit */
    s->theta_move =
        isinf(step) ? fabs(step) : -frgi_theta_slopes_at(&counts, g->theta).second * (step * step);
    s->deviance = means(s, g->eta);
}

static bool theta_stands(const irls *s)
{
    const frgi_counts counts = counts_of(s);
    return !s->moves_theta || frgi_theta_stands(&counts, s->g->theta);
}

/** theta and how sure it is; in Poisson's limit a warning. */
static void describe_theta(const irls *s)
{
    frgi_fe_glm *const g = s->g;
    const frgi_counts counts = counts_of(s);
    g->result.theta = s->f->policy.options.family == FRG_FAMILY_NEGBIN ? g->theta : (double)NAN;
    g->result.theta_std_error = (double)NAN;
    if (!s->moves_theta) {
        return;
    }
    if (isfinite(g->theta)) {
        const double information = -frgi_theta_slopes_at(&counts, g->theta).second;
        g->result.theta_std_error = information > 0 ? 1 / sqrt(information) : (double)NAN;
    } else if (g->result.converged) {
        frgi_warn(s->f->ctx, W_THETA,
                  "'%s' is no more dispersed than Poisson's: theta is infinite, and the answer is "
                  "that of family poisson",
                  frgi_fe_column_name(s->f, 0));
    }
}

/* ---- the iteration --------------------------------------------------------------------------- */

static frg_status beat(const irls *s, double change)
{
    const frg_fe_opts *const o = &s->f->policy.options;
    const frg_progress p = {.solver = "fe",
                            .phase = "reweighted least squares",
                            .done = s->g->result.iterations,
                            .total = o->glm_iter,
                            .residual = change,
                            .target = o->glm_tol};
    return frgi_heartbeat(s->f->ctx, &p);
}

/** Is the next step Newton's?  In Poisson's limit scoring is the same. */
static bool takes_newton(const irls *s, double change)
{
    return s->g->family->information && isfinite(s->g->theta) && !s->finishes &&
           change < NEAR_MAXIMUM;
}

static frg_status iterate(irls *s, bool *stopped)
{
    const frg_fe_opts *const o = &s->f->policy.options;
    const double tol = o->demean.tol;
    bool tight = s->f->data.frame.n_effects == 0;
    s->tol = fmax(tol, FIRST_TOL); /* what is absorbed is decided under it */
    s->deviance = (double)INFINITY;
    for (int i = 0; i < o->glm_iter; i++) {
        const double last_step = s->decrement;
        bool sound = true;
        s->g->result.iterations = i + 1;
        move_theta(s);
        const double before = s->deviance;
        TRY(one_step(s, &sound));
        *stopped = frgi_stopped(s->f->ctx) != FRG_OK;
        if (*stopped || !sound) {
            return FRG_OK;
        }
        const double change =
            isfinite(before) ? fabs(s->deviance - before) / (0.1 + fabs(s->deviance)) : 1;
        *stopped = beat(s, change) > 0;
        if (*stopped) {
            return FRG_OK;
        }
        const bool rests = change < o->glm_tol && !s->halved;
        const bool arrived = s->finishes && s->decrement <= AT_REST;
        if (rests && tight && (arrived || at_rest(s, last_step)) && theta_stands(s)) {
            if (!s->newton) {
                s->g->result.converged = 1;
                return FRG_OK;
            }
            s->finishes = true;
        }
        s->newton = takes_newton(s, change) && i + 2 < o->glm_iter; /* not in the last one */
        tight |= rests;
        s->tol = tight ? tol : fmax(tol, fmin(0.1 * change, LOOSEST));
    }
    return FRG_OK;
}

/** A binary outcome of which no row is unsure any more has no estimate. */
static frg_status check_perfect(const irls *s)
{
    const bool binary = s->g->family->edges == EDGES_BINARY;
    double weight = 0;
    for (int64_t i = 0; i < s->n && binary; i++) {
        weight += prior_of(s->g, i);
    }
    if (binary && s->deviance <= PERFECT * weight) {
        FAIL(s->f->ctx, E_SEPARATED,
             "the regressors and effects predict '%s' in all of the %lld rows",
             frgi_fe_column_name(s->f, 0), (long long)s->n);
    }
    return FRG_OK;
}

/** The regressor whose share of row i's predictor, b x~, is the largest. */
static const char *largest_share(const irls *s, int64_t i)
{
    const frg_fe *const f = s->f;
    int32_t best = f->fit.column_of[0];
    double most = -1;
    for (int j = frgi_fe_has_intercept(f); j < f->fit.k; j++) {
        const double share = fabs(f->fit.b[j] * f->fit.x[j][i]);
        best = share > most ? f->fit.column_of[j] : best;
        most = fmax(most, share);
    }
    return frgi_fe_column_name(f, best);
}

/** Warns of probabilities of almost 0 or 1 where nobody has looked whether the rows are predicted
 *  perfectly. */
static void warn_of_edge(const irls *s)
{
    const frgi_fe_glm *const g = s->g;
    const bool binary = g->family->edges == EDGES_BINARY;
    int64_t count = 0, first = 0;
    for (int64_t i = s->n - 1; i >= 0 && binary && !g->searched; i--) {
        if (fmin(g->mu[i], 1 - g->mu[i]) < SURE) {
            count++;
            first = i;
        }
    }
    if (count > 0) {
        const int64_t *const rows = s->f->data.frame.rows;
        frgi_warn(s->f->ctx, W_EDGE,
                  "%lld of %lld rows have a probability within %g of 0 or 1, the first row %lld, "
                  "most of it by '%s'",
                  (long long)count, (long long)s->n, SURE,
                  (long long)(rows ? rows[first] : first) + 1, largest_share(s, first));
    }
}

/** One step more from the columns as they were, whose effects are then those of the model. */
static frg_status recover_effects(irls *s)
{
    frg_fe *const f = s->f;
    if (!s->g->raw) {
        return FRG_OK;
    }
    memcpy(f->matrix.values, s->g->raw, sizeof(double) * (size_t)(s->n * (f->data.p + 1)));
    DROP(f->ctx, &s->g->raw);
    memcpy(f->matrix.values, s->z, sizeof(double) * (size_t)s->n);
    for (int j = 0, c = 1; c <= f->data.p; c++) {
        if (j < f->fit.k && f->fit.column_of[j] == c) {
            j++;
        } else {
            memset(f->matrix.values + c * s->n, 0, sizeof(double) * (size_t)s->n);
        }
    }
    const frg_array all = frg_matrix_columns(f->matrix.values, FRG_F64, s->n, f->data.p + 1, s->n);
    s->inner = frgi_fe_demean_run(f->absorbed.plan, all, all, f->matrix.reports, NULL);
    TRY(s->inner);
    return least_squares(s);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static frg_status evaluate_offset(const irls *s)
{
    frg_fe *const f = s->f;
    double *scratch;
    if (!f->data.has_offset) {
        return FRG_OK;
    }
    TRY(NEW(f->ctx, &s->g->offset, s->n, "the offset"));
    TRY(NEW(f->ctx, &scratch, ((int64_t)f->data.offset.stack + 1) * FRGI_BLOCK, "the offset"));
    for (int64_t i = 0; i < s->n; i += FRGI_BLOCK) {
        const int64_t m = s->n - i < FRGI_BLOCK ? s->n - i : FRGI_BLOCK;
        frgi_program_block(&f->data.offset, f->data.frame.rows, i, m, s->g->offset + i, scratch);
    }
    DROP(f->ctx, &scratch);
    for (int64_t i = 0; i < s->n; i++) {
        if (!isfinite(s->g->offset[i])) {
            FAIL(f->ctx, E_NOT_FINITE, "offset '%s', row %lld: the value is infinite",
                 f->policy.options.offset,
                 (long long)(f->data.frame.rows ? f->data.frame.rows[i] : i) + 1);
        }
    }
    return FRG_OK;
}

static frg_status allocate(irls *s)
{
    frg_fe *const f = s->f;
    frgi_fe_glm *const g = s->g;
    frgi_frame *const frame = &f->data.frame;
    TRY(NEW(f->ctx, &g->y, s->n, "outcomes"));
    TRY(NEW(f->ctx, &g->eta, s->n, "linear predictors"));
    TRY(NEW(f->ctx, &g->mu, s->n, "means"));
    TRY(NEW(f->ctx, &s->z, s->n, "working outcomes"));
    TRY(NEW(f->ctx, &s->next, s->n, "linear predictors"));
    TRY(NEW(f->ctx, &s->sums, s->n / RUN + 1, "sums"));
    TRY(NEW(f->ctx, &s->gradient, f->data.p + 1, "gradients"));
    if (frame->n_effects) {
        TRY(NEW0(f->ctx, &f->matrix.reports, f->data.p + 1, "reports"));
    }
    TRY(frgi_fe_allocate_estimates(f));
    if (f->policy.options.keep_effects && frame->n_effects) {
        TRY(NEW(f->ctx, &g->raw, s->n * (f->data.p + 1), "the model matrix"));
        memcpy(g->raw, f->matrix.values, sizeof(double) * (size_t)(s->n * (f->data.p + 1)));
    }
    TRY(NEW(f->ctx, &s->w, s->n, "working weights"));
    g->prior = frame->weights; /* the fit's weights are W from here on */
    frame->weights = s->w;
    for (int64_t i = 0; i < s->n && g->prior; i++) {
        g->prior[i] = ldexp(g->prior[i], frame->weight_exponent);
    }
    frame->weight_exponent = 0;
    memcpy(g->y, f->matrix.values, sizeof(double) * (size_t)s->n);
    return evaluate_offset(s);
}

/** What ended the iteration, and what to do about it. */
static void warn(const irls *s)
{
    const frgi_fe_glm *const g = s->g;
    const char *const why =
        s->halved ? "shorter steps do not lower it: look for rows that are predicted perfectly"
        : s->inner == FRG_TIME_LIMIT ? "the time limit came: raise it"
        : s->inner > 0 ? "the effects were not taken out to the tolerance: raise --max-iter"
                       : "the limit of iterations was reached: raise --glm-iter";
    if (!g->result.converged) {
        frgi_warn(s->f->ctx, W_GLM, "after %d iteration%s the deviance is %.10g; %s",
                  g->result.iterations, g->result.iterations == 1 ? "" : "s", s->deviance, why);
    }
}

/** E_MEAN where the first step left a mean that is none. */
static frg_status check_means(const irls *s)
{
    const frgi_fe_glm *const g = s->g;
    int64_t i = 0;
    while (isinf(s->deviance) && i < s->n && isfinite(g->mu[i]) && g->family->allows(g->mu[i])) {
        i++;
    }
    if (isinf(s->deviance) && i < s->n) {
        return refuse_mean(s, i, "no shorter step has a mean");
    }
    return FRG_OK;
}

static frg_status fit(irls *s, frg_status *worst, bool *stopped)
{
    frg_fe *const f = s->f;
    TRY(allocate(s));
    begin(s);
    TRY(iterate(s, stopped));
    if (*stopped) {
        *worst = frgi_stopped(f->ctx);
        return FRG_OK;
    }
    TRY(check_means(s));
    TRY(check_perfect(s));
    TRY(recover_effects(s));
    const frg_status now = frgi_stopped(f->ctx);
    *stopped = now != FRG_OK || (f->absorbed.plan && frgi_fe_demean_lost(f->absorbed.plan));
    *worst = now != FRG_OK ? now : s->inner > 0 ? s->inner : *worst;
    if (*stopped) {
        return FRG_OK;
    }
    s->g->result.converged = s->g->result.converged && s->inner == FRG_OK;
    describe_theta(s);
    if (*worst == FRG_OK && !s->g->result.converged) {
        *worst = FRG_MAX_ITER;
    }
    s->g->result.deviance = s->deviance;
    frgi_fe_intercept(f);
    warn(s);
    warn_of_edge(s);
    return f->data.frame.n_effects ? frgi_fe_describe_absorbed(f, s->inner) : FRG_OK;
}

frg_status frgi_glm_fit(frg_fe *f, frg_status *worst, bool *stopped)
{
    irls s = {.f = f, .g = &f->glm, .n = f->data.frame.n};
    const double theta = f->policy.options.theta;
    s.moves_theta = f->policy.options.family == FRG_FAMILY_NEGBIN && !(theta > 0);
    f->glm.theta = theta > 0 ? theta : (double)INFINITY;
    s.means = frgi_means_of(f->ctx, f->glm.family, f->glm.link);
    const frg_status status = fit(&s, worst, stopped);
    if (s.w && f->data.frame.weights != s.w) {
        DROP(f->ctx, &s.w);
    }
    DROP(f->ctx, &s.z);
    DROP(f->ctx, &s.next);
    DROP(f->ctx, &s.sums);
    DROP(f->ctx, &s.gradient);
    return status;
}
