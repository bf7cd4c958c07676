/* reg_vcov.c - covariances of the estimates with fixest's small-sample rules; `compute` is the way.
 *
 * B = (X~'WX~)^-1, scores s_i = w_i e_i x~_i, n rows (the sum of frequency weights), K parameters:
 *
 *     iid      RSS / (n - 1) B                                   times (n - 1) / (n - K)
 *     hc1      B (sum_i s_i s_i') B n / (n - 1)                  times (n - 1) / (n - K)
 *     cluster  B (sum_J (-1)^(|J|+1) G_J / (G_J - 1) M_J) B      times (n - 1) / (n - K)
 *     nw dk    B M B T / (T - 1), T periods                      times (n - 1) / (n - K)
 *
 * `adj` switches the factors with n - K, `cluster.adj` those with G - 1, T - 1 and hc1's with
 * n - 1, as fixest does (pyfixest has n / (n - K) for hc1 under `adj` and nothing under
 * `cluster.adj`); t has n - K degrees of freedom, for clusters the least count less one, with
 * periods T - 1 (t.df=min).
 *
 * Scores are squared and B is taken twice, so that columns or residuals of 1e-80 would leave the
 * range of a double though their standard errors are ordinary numbers.  Where exponents are beyond
 * COMMON, everything is computed in powers of two of its own: e = 2^a e', x~_j = 2^-c_j x'_j, B_ij
 * = 2^(c_i + c_j) B'_ij, and so V_ij = 2^(2 a + c_i + c_j) V'_ij.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fe/fe_demean.h"
#include "regress/reg_vcov.h"

enum { COMMON = 200 }; /* binary digits: sixth powers are numbers still */

/* ---- powers of two --------------------------------------------------------------------------- */

/** Half the exponent of v where it is beyond what is common, else 0. */
static int uncommon(double v)
{
    const int half = v > 0 && isfinite(v) ? ilogb(v) / 2 : 0;
    return abs(half) > COMMON ? half : 0;
}

static frg_status scale_columns(frgi_vcov_work *w)
{
    const frg_fe *const f = w->f;
    const int64_t k = f->fit.k, n = f->data.frame.n;
    int64_t count = 0;
    TRY(NEW(f->ctx, &w->c, k, "a covariance"));
    TRY(NEW(f->ctx, &w->x, k, "a covariance"));
    TRY(NEW(f->ctx, &w->bread, k * k, "a covariance"));
    w->a = uncommon(f->fit.rss);
    for (int64_t j = 0; j < k; j++) {
        w->c[j] = uncommon(f->fit.bread[j * k + j]);
        count += w->c[j] != 0;
    }
    for (int64_t i = 0; i < k * k; i++) {
        w->bread[i] = ldexp(f->fit.bread[i], -w->c[i / k] - w->c[i % k]);
    }
    TRY(NEW(f->ctx, &w->scaled, !w->v->request.kind->meat ? 0 : count * n, "scaled columns"));
    double *next = w->scaled;
    for (int64_t j = 0; j < k; j++) {
        w->x[j] = f->fit.x[j];
        if (w->c[j] != 0 && w->v->request.kind->meat) {
            for (int64_t i = 0; i < n; i++) {
                next[i] = ldexp(f->fit.x[j][i], w->c[j]);
            }
            w->x[j] = next;
            next += n;
        }
    }
    return FRG_OK;
}

/** Columns of the scores of two stages in the place of x', times 2^(c_j - a). */
static frg_status take_scores(frgi_vcov_work *w)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n;
    DROP(f->ctx, &w->scaled);
    TRY(NEW(f->ctx, &w->scaled, f->fit.k * n, "scores"));
    for (int j = 0; j < f->fit.k; j++) {
        double *const to = w->scaled + j * n;
        for (int64_t i = 0; i < n; i++) {
            to[i] = ldexp(f->two_stage.scores[j * n + i], w->c[j] - w->a);
        }
        w->x[j] = to;
    }
    return FRG_OK;
}

/** The covariance in the coefficients' own units. */
static void unscale(const frgi_vcov_work *w)
{
    const int64_t k = w->f->fit.k;
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) {
            double *const v = &w->v->matrix[i * k + j];
            *v = ldexp(*v, 2 * w->a + w->c[i] + w->c[j]);
        }
    }
}

static void describe(const frgi_vcov_work *w, double K)
{
    frgi_vcov *const v = w->v;
    const frgi_vcov_request *const r = &v->request;
    const double left = fmax(w->f->data.frame.count - K, 1);
    const bool counted = r->kind->rule != RULE_ROWS && r->kind->rule != RULE_NONE;
    frgi_ssc_print(&v->ssc, v->ssc_text, sizeof v->ssc_text);
    v->v.spec = r->spec;
    v->v.type = r->kind->type;
    v->v.n_clusters = r->kind->rule == RULE_ROWS ? 0 : r->n;
    for (int i = 0; i < v->v.n_clusters; i++) {
        v->v.cluster_name[i] = r->names[i];
        v->v.cluster_count[i] = w->groups[i];
    }
    const frgi_family *const family = w->f->glm.family;
    v->v.df_t = family && !family->dispersed ? (double)INFINITY
                : counted && v->ssc.t_min    ? (double)w->least - 1
                                             : left;
    v->v.k = (int64_t)K;
    v->v.ssc = v->ssc_text;
    v->v.matrix = v->matrix;
    v->v.lag = -1;
    v->v.cutoff = v->v.leverage_max = v->v.leverage_error = (double)NAN;
    v->v.coefficients = v->coefficients;
}

/** The factor of B M B: of K, and of what is one factor for all terms. */
static double small_sample(const frgi_vcov_work *w, double K)
{
    const frgi_ssc *const ssc = &w->v->ssc;
    const frgi_vcov_kind *const kind = w->v->request.kind;
    const double n = w->f->data.frame.count, T = (double)w->least;
    const bool periods = kind->rule == RULE_PERIODS || kind->rule == RULE_TWO_WAY;
    const double single = !kind->meat || !ssc->cluster_adj ? 1
                          : kind->rule == RULE_ROWS        ? n / (n - 1)
                          : periods                        ? T / (T - 1)
                                                           : 1;
    return (ssc->adj ? (n - 1) / (n - K) : 1) * single;
}

static frg_status check_freedom(const frgi_vcov_work *w, double K)
{
    const frg_fe *const f = w->f;
    const frgi_vcov *const v = w->v;
    if (v->ssc.adj && f->data.frame.count - K <= 0 && f->fit.k > 0) {
        FAIL(f->ctx, E_DF, "vcov '%s': %lld parameters (K, fixef=%s) for n = %lld", v->request.spec,
             (long long)K,
             v->ssc.fixef == SSC_NONE   ? "none"
             : v->ssc.fixef == SSC_FULL ? "full"
                                        : "nonnested",
             (long long)f->data.frame.count);
    }
    return FRG_OK;
}

static frg_status make_room(frgi_vcov_work *w)
{
    const int64_t k = w->f->fit.k;
    TRY(NEW(w->f->ctx, &w->v->matrix, k * k, "a covariance"));
    TRY(NEW(w->f->ctx, &w->v->coefficients, k, "coefficients"));
    return NEW0(w->f->ctx, &w->meat, k * k, "a covariance");
}

frg_status frgi_vcov_demean(frgi_vcov_work *w, frg_demean *plan, double *values, int64_t count)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n;
    const frg_array block = frg_matrix_columns(values, FRG_F64, n, count, n);
    const frg_status status = frgi_fe_demean_run(plan, block, block, NULL, NULL);
    TRY(status);
    if (status == FRG_INTERRUPTED || status == FRG_TIME_LIMIT) {
        w->ended = status;
    } else if (status > 0 && !frgi_has_warned(f->ctx, W_NOT_CONVERGED)) {
        frgi_warn(f->ctx, W_NOT_CONVERGED, "vcov '%s': a column that it demeaned",
                  w->v->request.spec);
    }
    return FRG_OK;
}

/** V <- factor B M B. */
static frg_status fill(frgi_vcov_work *w, double factor)
{
    const frg_fe *const f = w->f;
    frgi_vcov *const v = w->v;
    const int64_t k = f->fit.k;
    if (v->request.kind->meat) {
        TRY(v->request.kind->meat(w));
        return frgi_vcov_sandwich(f, w->bread, w->meat, factor, v->matrix);
    }
    const double rss = ldexp(f->fit.rss, -2 * w->a);
    for (int64_t i = 0; i < k * k; i++) {
        v->matrix[i] = rss / (f->data.frame.count - 1) * factor * w->bread[i];
    }
    return FRG_OK;
}

static frg_status compute(frgi_vcov_work *w)
{
    double K;
    TRY(frgi_vcov_encode(w));
    const frg_status counted = frgi_vcov_parameters(w, &K, &w->v->v.k_naive);
    TRY(counted);
    w->ended = counted;
    TRY(check_freedom(w, K));
    TRY(make_room(w));
    TRY(scale_columns(w));
    TRY(w->f->two_stage.scores ? take_scores(w) : FRG_OK);
    describe(w, K);
    const double factor = w->ended > 0 ? (double)NAN : small_sample(w, K); /* K is a bound then */
    TRY(fill(w, factor));
    if (w->f->data.centred) {
        frgi_vcov_shift(w, w->v->matrix);
    }
    TRY(frgi_vcov_find_unknown(w, factor));
    TRY(frgi_vcov_project(w));
    w->v->v.df = w->v->df;
    frgi_vcov_tabulate(w);
    if (w->v->request.kind->tests) {
        TRY(w->v->request.kind->tests(w, factor));
    }
    TRY(frgi_vcov_wald(w, w->f->fit.k));
    unscale(w);
    return frgi_vcov_means(w);
}

/** hc1 in place of iid: sampling weights have no iid errors; the type says so. */
static const frgi_vcov_kind *kind_in_force(const frg_fe *f, const frgi_vcov_kind *kind)
{
    int count;
    const frgi_vcov_kind *const kinds = frgi_vcov_kinds(&count);
    for (int i = 0; i < count && !kind->meat; i++) {
        if (f->policy.options.weights_kind == FRG_WEIGHTS_PROBABILITY && f->data.frame.weights &&
            strcmp(kinds[i].name, "hc1") == 0) {
            return &kinds[i];
        }
    }
    return kind;
}

/** What takes leverages or leaves clusters out is of least squares: instruments and reweighted rows
 *  would have to be solved for again. */
static frg_status check_kind(const frg_fe *f, const frgi_vcov_request *r)
{
    if (r->kind->least_squares && (f->glm.family || f->data.design.n_endogenous)) {
        FAIL(f->ctx, E_UNSUPPORTED,
             "vcov '%s' is of least squares alone; with instruments and in generalised linear "
             "models there are iid, hc1, cluster=, nw=, dk=, hac= and conley=",
             r->spec);
    }
    if (f->two_stage.scores && r->kind->meat != frgi_vcov_clusters_meat &&
        r->kind->meat != frgi_vcov_rows_meat) {
        frgi_at(f->ctx, "vcov");
        FAIL(f->ctx, E_UNSUPPORTED,
             "vcov '%s' knows nothing of a first stage; with first_stage there are cluster= and "
             "hc1, as in cluster=unit",
             r->spec);
    }
    if (f->means.shares && !f->fit.stage && r->kind->single) {
        FAIL(f->ctx, E_UNSUPPORTED,
             "vcov '%s' tests single coefficients, and sunab() shows means of several; with "
             "no_agg=TRUE it shows each",
             r->spec);
    }
    return FRG_OK;
}

frg_status frgi_vcov_create(frgi_vcov **out, frg_fe *f, frgi_vcov_request *request,
                            const frgi_ssc *ssc)
{
    frgi_vcov_work w = {.f = f};
    frg_status status;
    TRY_TO(done, check_kind(f, request));
    TRY_TO(done, NEW0(f->ctx, &w.v, 1, "a covariance"));
    w.v->request = *request;
    *request = (frgi_vcov_request){0};
    w.v->ssc = *ssc;
    w.v->request.kind = kind_in_force(f, w.v->request.kind);
    if (w.v->request.kind->rule == RULE_NONE ||
        w.v->request.kind->rule == RULE_LEFT_OUT) { /* the rule says so, too */
        w.v->ssc.adj = w.v->ssc.cluster_adj = false;
    }
    status = compute(&w);
done:
    DROP(f->ctx, &w.own);
    DROP(f->ctx, &w.weighted);
    DROP(f->ctx, &w.meat);
    DROP(f->ctx, &w.gross);
    DROP(f->ctx, &w.terms);
    DROP(f->ctx, &w.unknown);
    DROP(f->ctx, &w.c);
    DROP(f->ctx, &w.x);
    DROP(f->ctx, &w.scaled);
    DROP(f->ctx, &w.bread);
    if (status < 0) {
        frgi_vcov_request_destroy(request, f->ctx);
        frgi_vcov_destroy(w.v, f->ctx);
        return status;
    }
    w.v->next = f->report.vcovs;
    f->report.vcovs = w.v;
    *out = w.v;
    return w.ended;
}

void frgi_vcov_destroy(frgi_vcov *v, frg_context *ctx)
{
    if (v) {
        frgi_vcov_request_destroy(&v->request, ctx);
        DROP(ctx, &v->matrix);
        DROP(ctx, &v->df);
        DROP(ctx, &v->coefficients);
        DROP(ctx, &v);
    }
}

frg_status frg_fe_vcov_add(frg_fe *f, const char *spec, const char *ssc, const frg_fe_vcov **out)
{
    if (!f) {
        return FRG_BAD_ARG;
    }
    REQUIRE(f->ctx, spec && out, "frg_fe_vcov_add takes a spec and a place for the result");
    TRY(frgi_spool_check(f->ctx));
    frgi_ssc rule = f->policy.ssc;
    frgi_vcov_request request;
    frgi_vcov *v;
    if (ssc) {
        TRY(frgi_ssc_parse(&rule, f->ctx, ssc));
    }
    TRY(frgi_vcov_request_create(&request, f->ctx, spec, f->data.table));
    frgi_run_begins(f->ctx);
    const frg_status status = frgi_vcov_create(&v, f, &request, &rule);
    TRY(status);
    *out = &v->v;
    return status;
}
