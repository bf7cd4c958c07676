/* reg_vcov.c - covariances of the estimates with fixest's small-sample rules.
 *
 * B = (X~'WX~)^-1, scores s_i = w_i e_i x~_i, n rows (the sum of frequency weights), K parameters:
 *
 *     iid      RSS / (n - 1) B                                   times (n - 1) / (n - K)
 *     hc1      B (sum_i s_i s_i') B n / (n - 1)                  times (n - 1) / (n - K)
 *     cluster  B (sum_J (-1)^(|J|+1) G_J / (G_J - 1) M_J) B      times (n - 1) / (n - K)
 *
 * over the non-empty subsets J of the cluster variables (Cameron, Gelbach and Miller 2011), M_J the
 * sum over the joint clusters of (sum of scores)(sum of scores)'.  With cluster.df=min every G_J is
 * the least count of the single variables.  `adj` switches the factors with n - K, `cluster.adj`
 * those with G - 1 and hc1's with n - 1, as fixest does (pyfixest has n / (n - K) for hc1 under
 * `adj` and nothing under `cluster.adj`); t has n - K degrees of freedom, for clusters the least
 * count less one (t.df=min).  A sum over subsets need not be positive: where a variance is not, the
 * negative eigenvalues are set to 0, as Cameron, Gelbach and Miller advise.  V = P - N with the
 * projection P and a positive N, so that no variance shrinks; but where V_jj <= 0 the formula says
 * nothing of b_j, and P_jj is what the other coefficients' variances happen to leave there (0 for
 * one coefficient alone; fixest puts eigenvalues of 1e-10 in its place, in the data's units): such
 * a coefficient has no error.
 *
 * Scores are squared and B is taken twice, so that columns or residuals of 1e-80 would leave the
 * range of a double though their standard errors are ordinary numbers.  Where exponents are beyond
 * COMMON, everything is computed in powers of two of its own: e = 2^a e', x~_j = 2^-c_j x'_j, B_ij
 * = 2^(c_i + c_j) B'_ij, and so V_ij = 2^(2 a + c_i + c_j) V'_ij.
 *
 * K: none k; full k + rank of the effects; nonnested k + rank of the effects that no cluster
 * variable nests, at least 1 for the constant.  Slopes go with their effect, as in reghdfe and
 * FixedEffectModels.jl; fixest counts them under all three rules.  The rank is counted as --dof
 * says; naively it is fixest's sum of the levels - (Q - 1) - sum over the nested of (levels - 1).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formula/keys.h"
#include "linalg/cholesky.h"
#include "linalg/small.h"
#include "linalg/stat.h"
#include "regress/regress.h"

static const double SINGULAR = 1e-12;  /* a pivot of correlations: rounding */
static const double CANCELLED = 1e-13; /* of the sum of its terms: a variance that is rounding */
enum { COMMON = 200 };                 /* binary digits: sixth powers are numbers still */

/* ---- computing ------------------------------------------------------------------------------- */

typedef struct {
    frg_fe *f;
    frgi_vcov *v;
    const int32_t
        *codes[FRGI_CLUSTERS]; /* of the cluster variables; an effect's where they are the same */
    int64_t groups[FRGI_CLUSTERS];
    int32_t *own;         /* codes that are no effect's */
    int64_t least;        /* of the groups */
    const double *scores; /* n: w e, the factor of x in a row's score; e itself without weights */
    double *weighted;     /* their memory where they are not e */
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
} work;

/** The rows of a fit are fixed: none may lack a cluster that is asked for later. */
static frg_status check_complete(const frg_fe *f, const frgi_key *key)
{
    for (int c = 0; c < key->n; c++) {
        const frg_column *const column = key->columns[c];
        for (int64_t i = 0; i < f->data.frame.n && column->n_missing > 0; i++) {
            double value;
            frgi_column_block(column, f->data.frame.rows, i, 1, &value);
            if (isnan(value)) {
                const long long row = (f->data.frame.rows ? f->data.frame.rows[i] : i) + 1;
                frgi_at(f->ctx, "%s:%lld", column->name, row);
                FAIL(f->ctx, E_CLUSTER,
                     "cluster variable '%s' is missing in row %lld, which the fit uses; ask for "
                     "this vcov when fitting, so that such rows are left out",
                     column->name, row);
            }
        }
    }
    return FRG_OK;
}

static frg_status encode_clusters(work *w)
{
    const frg_fe *const f = w->f;
    const frgi_vcov_request *const r = &w->v->request;
    const int64_t n = f->data.frame.n;
    if (r->n == 0) {
        return FRG_OK;
    }
    TRY(NEW(f->ctx, &w->own, r->n * n, "clusters"));
    for (int k = 0; k < r->n; k++) {
        int q = 0;
        while (q < f->data.frame.n_effects &&
               strcmp(f->data.frame.keys[q].name, r->keys[k].name) != 0) {
            q++;
        }
        if (q < f->data.frame.n_effects) {
            w->codes[k] = f->data.frame.codes + q * n;
            w->groups[k] = f->data.frame.levels[q];
        } else {
            TRY(check_complete(f, &r->keys[k]));
            TRY(frgi_key_codes(f->ctx, &r->keys[k], 1, f->data.frame.rows, n, w->own + k * n,
                               &w->groups[k]));
            w->codes[k] = w->own + k * n;
        }
        if (w->groups[k] < 2) {
            FAIL(f->ctx, E_CLUSTER,
                 "the cluster variable '%s' has a single cluster in the %lld rows used",
                 r->keys[k].name, (long long)n);
        }
        w->least = k == 0 || w->groups[k] < w->least ? w->groups[k] : w->least;
    }
    return FRG_OK;
}

/* ---- powers of two --------------------------------------------------------------------------- */

/** Half the exponent of v where it is beyond what is common, else 0. */
static int uncommon(double v)
{
    const int half = v > 0 && isfinite(v) ? ilogb(v) / 2 : 0;
    return abs(half) > COMMON ? half : 0;
}

static frg_status scale_columns(work *w)
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
    TRY(NEW(f->ctx, &w->scaled, w->v->request.type == VCOV_IID ? 0 : count * n, "scaled columns"));
    double *next = w->scaled;
    for (int64_t j = 0; j < k; j++) {
        w->x[j] = f->fit.x[j];
        if (w->c[j] != 0 && w->v->request.type != VCOV_IID) {
            for (int64_t i = 0; i < n; i++) {
                next[i] = ldexp(f->fit.x[j][i], w->c[j]);
            }
            w->x[j] = next;
            next += n;
        }
    }
    return FRG_OK;
}

/** The covariance in the coefficients' own units. */
static void unscale(const work *w)
{
    const int64_t k = w->f->fit.k;
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) {
            double *const v = &w->v->matrix[i * k + j];
            *v = ldexp(*v, 2 * w->a + w->c[i] + w->c[j]);
        }
    }
}

/* ---- K --------------------------------------------------------------------------------------- */

/** Is a column of the effect's key also a whole cluster variable?  Then a cluster contains the
 *  level. */
static bool is_listed(const frgi_key *effect, const frgi_vcov_request *r)
{
    for (int k = 0; k < r->n; k++) {
        if (strcmp(effect->name, r->keys[k].name) == 0) {
            return true;
        }
        for (int c = 0; c < effect->n && r->keys[k].n == 1; c++) {
            if (effect->columns[c] == r->keys[k].columns[0]) {
                return true;
            }
        }
    }
    return false;
}

/** Does every level lie in one cluster?  Ends at the first level that does not. */
static frg_status is_nested(const work *w, int q, bool *nested)
{
    const frg_fe *const f = w->f;
    const int32_t *const codes = f->data.frame.codes + q * f->data.frame.n;
    int32_t *cluster;
    *nested = is_listed(&f->data.frame.keys[q], &w->v->request);
    if (*nested || w->v->request.n == 0) {
        return FRG_OK;
    }
    TRY(NEW(f->ctx, &cluster, f->data.frame.levels[q], "clusters of the levels"));
    for (int k = 0; k < w->v->request.n && !*nested; k++) {
        memset(cluster, 0xff, sizeof *cluster * (size_t)f->data.frame.levels[q]);
        *nested = true;
        for (int64_t i = 0; i < f->data.frame.n && *nested; i++) {
            int32_t *const at = &cluster[codes[i]];
            *nested = *at < 0 || *at == w->codes[k][i];
            *at = w->codes[k][i];
        }
    }
    DROP(f->ctx, &cluster);
    return FRG_OK;
}

/** The rank of the effects in `chosen` alone. */
static frg_status rank_of(const frg_fe *f, uint64_t chosen, double *rank)
{
    const int64_t n = f->data.frame.n;
    const int Q = f->data.frame.n_effects, n_slopes = f->data.formula.n_slopes;
    int32_t *codes = NULL;
    frg_slope *slopes = NULL;
    frg_demean *plan = NULL;
    uint64_t no_intercept = 0;
    int count = 0, sloped = 0, place[FRGI_EFFECTS];
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &codes, n * Q, "codes"));
    TRY_TO(done, NEW(f->ctx, &slopes, n_slopes, "slopes"));
    for (int q = 0; q < Q; q++) {
        if (chosen >> q & 1) {
            no_intercept |= (uint64_t)!f->data.formula.effects[q].intercept << count;
            memcpy(codes + count * n, f->data.frame.codes + q * n, sizeof *codes * (size_t)n);
            place[q] = count++;
        }
    }
    for (int s = 0; s < n_slopes; s++) {
        const int q = f->data.formula.slopes[s].effect;
        if (chosen >> q & 1) {
            slopes[sloped++] = (frg_slope){.factor = place[q], .z = f->data.frame.slopes + s * n};
        }
    }
    const frg_array weights = frg_vector(f->data.frame.weights, FRG_F64, n);
    frg_demean_opts counting =
        f->policy.options.demean; /* nothing is solved, and slopes may be gone */
    counting.cond_limit = 0;
    counting.dtype = FRG_FE_F64;
    TRY_TO(done, frg_demean_create(&plan, f->ctx, frg_matrix_columns(codes, FRG_I32, n, count, n),
                                   f->data.frame.weights ? &weights : NULL, sloped ? slopes : NULL,
                                   sloped, no_intercept, &counting));
    frg_demean_rank found;
    TRY_TO(done, frg_demean_get_rank(plan, &found));
    *rank = (double)found.rank;
done:
    frg_demean_destroy(plan);
    DROP(f->ctx, &codes);
    DROP(f->ctx, &slopes);
    return status;
}

/** K, and in *naive as it is without regard to linear dependence: 0 with slopes, which others count
 *  otherwise. */
static frg_status count_parameters(const work *w, double *K, int64_t *naive)
{
    const frg_fe *const f = w->f;
    const int Q = f->data.frame.n_effects;
    *K = f->fit.k;
    *naive = f->data.formula.n_slopes > 0 ? 0 : f->fit.k;
    if (Q == 0 || w->v->ssc.fixef == SSC_NONE) {
        return FRG_OK;
    }
    int64_t levels = 0;
    uint64_t counted = 0;
    int n_counted = 0, last = 0;
    for (int q = 0; q < Q; q++) {
        bool nested = false;
        if (w->v->ssc.fixef == SSC_NONNESTED) {
            TRY(is_nested(w, q, &nested));
        }
        counted |= (uint64_t)!nested << q;
        n_counted += !nested;
        last = nested ? last : q;
        levels += nested ? 0 : f->data.frame.levels[q];
    }
    double rank = f->absorbed.rank;
    if (n_counted == 0) {
        rank = f->data.ones ? 0 : 1; /* the constant, unless it is one of the k */
    } else if (n_counted == 1 && Q > 1 && f->data.formula.n_slopes == 0) {
        rank = (double)f->data.frame.levels[last];
    } else if (n_counted < Q) {
        TRY(rank_of(f, counted, &rank));
    }
    *K += rank;
    if (f->data.formula.n_slopes == 0) {
        *naive = n_counted == 0 ? (int64_t)*K : f->fit.k + levels - (n_counted - 1);
    }
    return FRG_OK;
}

/* ---- the meat -------------------------------------------------------------------------------- */

static void unpack(int64_t k, const double *packed, double scale, double *full)
{
    for (int i = 0; i < k; i++) {
        for (int j = 0; j <= i; j++) {
            full[i * k + j] += scale * packed[frgi_packed(i, j)];
            if (j < i) {
                full[j * k + i] += scale * packed[frgi_packed(i, j)];
            }
        }
    }
}

/** meat += scale sum_i h_i x_i x_i' */
static frg_status add_gram(const work *w, const double *const *x, const double *h, int64_t n,
                           double scale)
{
    const frg_fe *const f = w->f;
    double *packed;
    TRY(NEW(f->ctx, &packed, frgi_packed(f->fit.k, 0), "a covariance"));
    const frg_status status = frgi_gram(f->ctx, f->fit.k, x, h, n, packed, frgi_fe_stops(f));
    if (status >= 0) {
        unpack(f->fit.k, packed, scale, w->meat);
    }
    if (status >= 0 && w->gross) {
        unpack(f->fit.k, packed, fabs(scale), w->gross);
    }
    DROP(f->ctx, &packed);
    return status;
}

/** Every row is a cluster.  A frequency weight of 2 is two rows, so its square does not come in. */
static frg_status add_rows(work *w)
{
    const frg_fe *const f = w->f;
    const bool frequency = f->policy.options.weights_kind == FRG_WEIGHTS_FREQUENCY;
    const double *const weights = f->data.frame.weights;
    const double *const times = f->glm.family ? f->glm.prior : weights;
    const double scale = ldexp(1, -w->a);
    TRY(NEW(f->ctx, &w->weighted, f->data.frame.n, "squares of the scores"));
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(f->ctx, f->data.frame.n))
    for (int64_t i = 0; i < f->data.frame.n; i++) {
        const double e = scale * f->fit.e[i], weight = weights ? weights[i] : 1;
        w->weighted[i] = weight * e * (weight * e) / (frequency && times ? times[i] : 1);
    }
    return add_gram(w, w->x, w->weighted, f->data.frame.n, 1);
}

/** meat += scale S'S,  S the sums of the scores by group. */
static frg_status add_groups(const work *w, const int32_t *codes, int64_t groups, double scale)
{
    const frg_fe *const f = w->f;
    double *sums = NULL;
    const double **columns = NULL;
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &sums, f->fit.k * groups, "sums by cluster"));
    TRY_TO(done, NEW(f->ctx, &columns, f->fit.k, "sums by cluster"));
    TRY_TO(done, frgi_gram_by_group(f->ctx, f->fit.k, w->x, w->scores, codes, f->data.frame.n,
                                    groups, sums));
    for (int j = 0; j < f->fit.k; j++) {
        columns[j] = sums + j * groups;
    }
    status = add_gram(w, columns, NULL, groups, scale);
done:
    DROP(f->ctx, &sums);
    DROP(f->ctx, &columns);
    return status;
}

/** The subset of the cluster variables with the bits of `subset`. */
static frg_status add_subset(const work *w, unsigned subset)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n;
    int32_t *joint = NULL;
    const int32_t *codes = NULL;
    int64_t groups = 0;
    int size = 0;
    frg_status status = FRG_OK;
    for (int k = 0; k < w->v->request.n; k++) {
        if (!(subset >> k & 1)) {
            continue;
        }
        if (size++ == 0) {
            codes = w->codes[k];
            groups = w->groups[k];
            continue;
        }
        if (!joint) {
            TRY_TO(done, NEW(f->ctx, &joint, n, "joint clusters"));
            memcpy(joint, codes, sizeof *joint * (size_t)n);
            codes = joint;
        }
        TRY_TO(done, frgi_keys_join(f->ctx, n, joint, &groups, w->codes[k], w->groups[k]));
    }
    const double count = (double)(w->v->ssc.cluster_min ? w->least : groups);
    const double factor = w->v->ssc.cluster_adj ? count / (count - 1) : 1;
    status = add_groups(w, codes, groups, size % 2 ? factor : -factor);
done:
    DROP(f->ctx, &joint);
    return status;
}

static frg_status add_clusters(work *w)
{
    const frg_fe *const f = w->f;
    const double scale = ldexp(1, -w->a), *const weights = f->data.frame.weights;
    w->scores = f->fit.e;
    if (weights || w->a != 0) {
        TRY(NEW(f->ctx, &w->weighted, f->data.frame.n, "scores"));
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(f->ctx, f->data.frame.n))
        for (int64_t i = 0; i < f->data.frame.n; i++) {
            w->weighted[i] = (weights ? weights[i] : 1) * (scale * f->fit.e[i]);
        }
        w->scores = w->weighted;
    }
    if (w->v->request.n > 1) {
        TRY(NEW0(f->ctx, &w->gross, (int64_t)f->fit.k * f->fit.k, "a covariance"));
    }
    for (unsigned subset = 1; subset < 1u << w->v->request.n; subset++) {
        TRY(add_subset(w, subset));
    }
    return FRG_OK;
}

/* ---- from meat to matrix --------------------------------------------------------------------- */

/** out <- scale a m a for symmetric a. */
static frg_status sandwich(const frg_fe *f, const double *a, const double *m, double scale,
                           double *out)
{
    const int64_t k = f->fit.k;
    double *half;
    TRY(NEW0(f->ctx, &half, k * k, "a covariance"));
    memset(out, 0, sizeof *out * (size_t)k * (size_t)k);
    for (int i = 0; i < k && !frgi_fe_gives_up(f); i++) {
        for (int l = 0; l < k; l++) {
            for (int j = 0; j < k; j++) {
                half[i * k + j] += scale * a[i * k + l] * m[l * k + j];
            }
        }
    }
    for (int i = 0; i < k && !frgi_fe_gives_up(f); i++) {
        for (int l = 0; l < k; l++) {
            for (int j = 0; j <= i; j++) {
                out[i * k + j] += half[i * k + l] * a[l * k + j];
            }
        }
    }
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < i; j++) {
            out[j * k + i] = out[i * k + j];
        }
    }
    DROP(f->ctx, &half);
    return FRG_OK;
}

/** From [mean-centred constant, b] to [intercept as written, b]:  b0 <- b0 - sum_j mean_j b_j. */
static void shift_intercept(const work *w, double *m)
{
    const frg_fe *const f = w->f;
    const int64_t k = f->fit.k;
    for (int side = 0; side < 2; side++) { /* rows, then columns */
        for (int j = 0; j < k; j++) {
            double *const first = side ? &m[j * k] : &m[j];
            for (int i = 1; i < k; i++) {
                const double mean =
                    ldexp(f->matrix.moments[f->fit.column_of[i]].mean, w->c[i] - w->c[0]);
                *first -= mean * (side ? m[j * k + i] : m[i * k + j]);
            }
        }
    }
}

/** Marks the coefficients without a variance: it is negative, or what the rounding of its terms
 *  leaves of them. */
static frg_status find_unknown(work *w, double adjust)
{
    const frg_fe *const f = w->f;
    const int64_t k = f->fit.k;
    double *gross = NULL;
    TRY(NEW0(f->ctx, &w->unknown, k, "a covariance"));
    if (!w->gross) {
        return FRG_OK; /* one term, which is a square */
    }
    TRY(NEW(f->ctx, &w->terms, k, "a covariance"));
    TRY(NEW(f->ctx, &gross, k * k, "a covariance"));
    const frg_status status = sandwich(f, w->bread, w->gross, adjust, gross);
    if (status >= 0 && f->data.centred) {
        shift_intercept(w, gross);
    }
    for (int64_t j = 0; j < k && status >= 0; j++) {
        w->terms[j] = gross[j * k + j];
        w->unknown[j] = w->v->matrix[j * k + j] < CANCELLED * w->terms[j];
        w->v->v.projected |= w->unknown[j];
    }
    DROP(f->ctx, &gross);
    return status;
}

static void warn_of_projection(const work *w)
{
    const frg_fe *const f = w->f;
    int first = 0, count = 0;
    for (int j = f->fit.k - 1; j >= 0; j--) {
        first = w->unknown[j] ? j : first;
        count += w->unknown[j];
    }
    char more[40] = "";
    if (count > 1) {
        snprintf(more, sizeof more, " and %d more", count - 1);
    }
    frgi_warn(
        f->ctx, W_PSD,
        "vcov '%s': the variance of '%s'%s is not positive, so that it has no standard error; "
        "for the others the negative eigenvalues of the matrix were set to 0",
        w->v->request.spec, frgi_fe_column_name(f, f->fit.column_of[first]), more);
}

/** m_ij <- m_ij (s_i s_j)^power, s_i^2 the variances of all terms added: what is left has no
 *  units. */
static void scale_by_terms(const work *w, double *m, int power)
{
    const int64_t k = w->f->fit.k;
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) {
            const double s =
                w->terms[i] > 0 && w->terms[j] > 0 ? sqrt(w->terms[i]) * sqrt(w->terms[j]) : 1;
            m[i * k + j] = power > 0 ? m[i * k + j] * s : m[i * k + j] / s;
        }
    }
}

/** The nearest positive semidefinite matrix in place of one with a variance that is not positive,
 *  nearest where each coefficient is measured in the standard error of all terms added, so that
 *  units do not matter (in fixest they do).  One with negative eigenvalues alone stays, as in
 *  fixest: its variances are those of the formula, and joint tests see that it is none. */
static frg_status project(work *w)
{
    const frg_fe *const f = w->f;
    const int64_t k = f->fit.k;
    double *const m = w->v->matrix, *a = NULL, *values = NULL, *vectors = NULL;
    frg_status status;
    if (!w->v->v.projected) {
        return FRG_OK;
    }
    TRY_TO(done, NEW(f->ctx, &a, k * k, "eigenvalues"));
    TRY_TO(done, NEW(f->ctx, &values, k, "eigenvalues"));
    TRY_TO(done, NEW(f->ctx, &vectors, k * k, "eigenvalues"));
    scale_by_terms(w, m, -1);
    memcpy(a, m, sizeof *m * (size_t)k * (size_t)k);
    frgi_eigen(f->fit.k, a, values, vectors);
    memset(m, 0, sizeof *m * (size_t)k * (size_t)k);
    for (int l = 0; l < k; l++) {
        for (int i = 0; i < k && values[l] > 0; i++) {
            for (int j = 0; j < k; j++) {
                m[i * k + j] += values[l] * vectors[l * k + i] * vectors[l * k + j];
            }
        }
    }
    scale_by_terms(w, m, 1);
    warn_of_projection(w);
done:
    DROP(f->ctx, &a);
    DROP(f->ctx, &values);
    DROP(f->ctx, &vectors);
    return status;
}

/** b' V^-1 b / k of the coefficients but the intercept; NaN where V is singular. */
static frg_status wald(work *w)
{
    const frg_fe *const f = w->f;
    const int64_t k = f->fit.k, first = frgi_fe_has_intercept(f), m = k - first;
    double *inverse;
    w->v->v.wald_f = (double)NAN;
    if (m == 0) {
        return FRG_OK;
    }
    TRY(NEW(f->ctx, &inverse, m * m, "a covariance"));
    bool sound =
        !w->v->v.projected; /* scaled to correlations, as the units of the coefficients differ */
    for (int i = 0; i < m; i++) {
        sound &= w->v->matrix[(i + first) * k + i + first] > 0;
    }
    for (int i = 0; i < m && sound; i++) {
        for (int j = 0; j < m; j++) {
            const int64_t a = i + first, b = j + first;
            inverse[i * m + j] = w->v->matrix[a * k + b] / sqrt(w->v->matrix[a * k + a]) /
                                 sqrt(w->v->matrix[b * k + b]);
        }
    }
    if (sound && frgi_inverse((int)m, inverse, SINGULAR, frg_threads(f->ctx), frgi_fe_stops(f))) {
        double sum = 0;
        for (int i = 0; i < m; i++) {
            for (int j = 0; j < m; j++) {
                sum += w->v->coefficients[i + first].statistic * inverse[i * m + j] *
                       w->v->coefficients[j + first].statistic;
            }
        }
        w->v->v.wald_f = sum / (double)m;
    }
    DROP(f->ctx, &inverse);
    return FRG_OK;
}

static void tabulate(const work *w)
{
    const frg_fe *const f = w->f;
    const double df = w->v->v.df_t,
                 quantile = frgi_t_quantile(0.5 + 0.5 * f->policy.options.level, df);
    for (int j = 0; j < f->fit.k; j++) {
        const double variance =
            w->unknown[j] ? (double)NAN : w->v->matrix[(int64_t)j * f->fit.k + j];
        const double b = f->fit.b[j], error = ldexp(sqrt(variance), w->a + w->c[j]);
        w->v->coefficients[j] =
            (frg_coefficient){.term = frgi_fe_column_name(f, f->fit.column_of[j]),
                              .estimate = b,
                              .std_error = error,
                              .statistic = b / error,
                              .p_value = frgi_t_two_sided(b / error, df),
                              .conf_low = b - quantile * error,
                              .conf_high = b + quantile * error};
    }
}

static void describe(const work *w, double K)
{
    static const char *const types[] = {"iid", "hc1", "cluster"};
    frgi_vcov *const v = w->v;
    const double left = fmax(w->f->data.frame.count - K, 1);
    frgi_ssc_print(&v->ssc, v->ssc_text, sizeof v->ssc_text);
    v->v.spec = v->request.spec;
    v->v.type = types[v->request.type];
    v->v.n_clusters = v->request.n;
    for (int k = 0; k < v->request.n; k++) {
        v->v.cluster_name[k] = v->request.names[k];
        v->v.cluster_count[k] = w->groups[k];
    }
    const frgi_family *const family = w->f->glm.family;
    v->v.df_t = family && !family->dispersed   ? (double)INFINITY
                : v->request.n && v->ssc.t_min ? (double)w->least - 1
                                               : left;
    v->v.k = (int64_t)K;
    v->v.ssc = v->ssc_text;
    v->v.matrix = v->matrix;
    v->v.coefficients = v->coefficients;
}

static frg_status compute(work *w)
{
    frg_fe *const f = w->f;
    frgi_vcov *const v = w->v;
    const int64_t k = f->fit.k;
    const double n = f->data.frame.count;
    double K;
    TRY(encode_clusters(w));
    TRY(count_parameters(w, &K, &v->v.k_naive));
    if (v->ssc.adj && n - K <= 0 && k > 0) {
        FAIL(f->ctx, E_DF, "vcov '%s': %lld parameters (K, fixef=%s) for n = %lld", v->request.spec,
             (long long)K,
             v->ssc.fixef == SSC_NONE   ? "none"
             : v->ssc.fixef == SSC_FULL ? "full"
                                        : "nonnested",
             (long long)n);
    }
    TRY(NEW(f->ctx, &v->matrix, k * k, "a covariance"));
    TRY(NEW(f->ctx, &v->coefficients, k, "coefficients"));
    TRY(NEW0(f->ctx, &w->meat, k * k, "a covariance"));
    TRY(scale_columns(w));
    describe(w, K);
    const bool single = v->request.type == VCOV_HC1 && v->ssc.cluster_adj;
    const double adjust = (v->ssc.adj ? (n - 1) / (n - K) : 1) * (single ? n / (n - 1) : 1);
    if (v->request.type == VCOV_IID) {
        const double rss = ldexp(f->fit.rss, -2 * w->a);
        for (int64_t i = 0; i < k * k; i++) {
            v->matrix[i] = rss / (n - 1) * adjust * w->bread[i];
        }
    } else {
        TRY(v->request.type == VCOV_HC1 ? add_rows(w) : add_clusters(w));
        TRY(sandwich(f, w->bread, w->meat, adjust, v->matrix));
    }
    if (f->data.centred) {
        shift_intercept(w, v->matrix);
    }
    TRY(find_unknown(w, adjust));
    TRY(project(w));
    tabulate(w);
    TRY(wald(w));
    unscale(w);
    return FRG_OK;
}

frg_status frgi_vcov_create(frgi_vcov **out, frg_fe *f, frgi_vcov_request *request,
                            const frgi_ssc *ssc)
{
    work w = {.f = f};
    frg_status status;
    TRY_TO(done, NEW0(f->ctx, &w.v, 1, "a covariance"));
    w.v->request = *request;
    *request = (frgi_vcov_request){0};
    w.v->ssc = *ssc;
    if (w.v->request.type == VCOV_IID &&
        f->policy.options.weights_kind == FRG_WEIGHTS_PROBABILITY && f->data.frame.weights) {
        w.v->request.type = VCOV_HC1; /* sampling weights have no iid errors; the type says so */
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
    return FRG_OK;
}

void frgi_vcov_destroy(frgi_vcov *v, frg_context *ctx)
{
    if (v) {
        frgi_vcov_request_destroy(&v->request, ctx);
        DROP(ctx, &v->matrix);
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
    frgi_ssc rule = f->policy.ssc;
    frgi_vcov_request request;
    frgi_vcov *v;
    if (ssc) {
        TRY(frgi_ssc_parse(&rule, f->ctx, ssc));
    }
    TRY(frgi_vcov_request_create(&request, f->ctx, spec, f->data.table));
    TRY(frgi_vcov_create(&v, f, &request, &rule));
    *out = &v->v;
    return FRG_OK;
}
