/* reg_cluster_space.c - clusters in the columns' space.
 *
 * An effect that clusters nest goes with them: what is left of the other rows stays as it is.  Of
 * the effects that clusters cut the dummies T~, demeaned by the nested ones, are regressors again:
 * Z = [X~ T~].  A cluster's block of the hat matrix then acts through C_g = Z-_g' W Z-_g, K x K.
 * n K doubles, O(n K^2) time; levels of cut effects up to COLUMNS.
 */
#include "regress/reg_cluster_space.h"

#include <math.h>
#include <string.h>

#include "linalg/cholesky.h"

enum { COLUMNS = 1024 };
static const double STEPS = 4e10; /* G K^3, each about ten operations */
static const double DEPENDENT = 1e-9;

/** The effects that the clusters cut; E_UNSUPPORTED for slopes among them. */
static frg_status find_cut(const frgi_cluster_space *s, uint64_t *cut, int64_t *levels)
{
    const frg_fe *const f = s->w->f;
    *cut = 0;
    *levels = 0;
    for (int q = 0; q < f->data.frame.n_effects; q++) {
        bool nested;
        TRY(frgi_vcov_nested(s->w, q, &nested));
        *cut |= (uint64_t)!nested << q;
        *levels += nested ? 0 : f->data.frame.levels[q];
        for (int j = 0; j < f->data.formula.n_slopes && !nested; j++) {
            if (f->data.formula.slopes[j].effect == q) {
                frgi_at(f->ctx, "vcov");
                FAIL(f->ctx, E_UNSUPPORTED, "vcov '%s': clusters that cut '%s', which has slopes,",
                     s->w->v->request.spec, f->data.frame.keys[q].name);
            }
        }
    }
    const double K = (double)(*levels + s->k);
    if (K > COLUMNS || K * K * K * (double)s->G > STEPS) {
        frgi_at(f->ctx, "vcov");
        FAIL(f->ctx, E_TOO_BIG,
             "vcov '%s': %lld clusters cut effects of %lld levels, which would be as many "
             "regressors; cluster by what nests an effect, or take cluster=",
             s->w->v->request.spec, (long long)s->G, (long long)*levels);
    }
    return FRG_OK;
}

/** T~: the dummies of the cut effects, demeaned by the others. */
static frg_status make_dummies(frgi_cluster_space *s, uint64_t cut, int64_t levels)
{
    const frg_fe *const f = s->w->f;
    const int Q = f->data.frame.n_effects;
    const uint64_t nested = ~cut & (((uint64_t)1 << (Q - 1) << 1) - 1);
    TRY(NEW0(f->ctx, &s->dummies, s->n * levels, "dummies of the effects that clusters cut"));
    double *column = s->dummies;
    for (int q = 0; q < Q; q++) {
        for (int64_t i = 0; i < s->n && (cut >> q & 1); i++) {
            column[f->data.frame.codes[q * s->n + i] * s->n + i] = 1;
        }
        column += cut >> q & 1 ? f->data.frame.levels[q] * s->n : 0;
    }
    if (nested == 0) {
        return FRG_OK;
    }
    frg_demean *plan;
    TRY(frgi_vcov_plan(f, nested, &plan));
    const frg_status status = frgi_vcov_demean(s->w, plan, s->dummies, levels);
    frg_demean_destroy(plan);
    return status;
}

/** z <- those of the `levels` dummies that do not depend on the ones before. */
static frg_status keep_independent(frgi_cluster_space *s, int64_t levels)
{
    frg_context *const ctx = s->w->f->ctx;
    const double **t = NULL;
    double *packed = NULL, *a = NULL;
    unsigned char *kept = NULL;
    frg_status status;
    TRY_TO(done, NEW(ctx, &t, levels, "dummies"));
    TRY_TO(done, NEW(ctx, &packed, frgi_packed(levels, 0), "dummies"));
    TRY_TO(done, NEW0(ctx, &a, levels * levels, "dummies"));
    TRY_TO(done, NEW(ctx, &kept, levels, "dummies"));
    for (int64_t l = 0; l < levels; l++) {
        t[l] = s->dummies + l * s->n;
    }
    TRY_TO(done, frgi_gram(ctx, (int)levels, t, s->w->f->data.frame.weights, s->n, packed, NULL));
    for (int64_t l = 0; l < levels; l++) {
        for (int64_t r = 0; r < levels; r++) {
            const double scale = sqrt(packed[frgi_packed(l, l)]) * sqrt(packed[frgi_packed(r, r)]);
            const double g = packed[l > r ? frgi_packed(l, r) : frgi_packed(r, l)];
            a[l * levels + r] = scale > 0 ? g / scale : 0;
        }
    }
    frgi_cholesky_keep((int)levels, a, DEPENDENT, kept, frg_threads(ctx), NULL);
    for (int64_t l = 0; l < levels; l++) {
        if (kept[l]) {
            s->z[s->K++] = t[l];
        }
    }
done:
    DROP(ctx, &t);
    DROP(ctx, &packed);
    DROP(ctx, &a);
    DROP(ctx, &kept);
    return status;
}

/** L L' = Z'WZ, K x K; plain loops, K is small. */
static bool factor(frgi_cluster_space *s, const double *packed)
{
    for (int i = 0; i < s->K; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = packed[frgi_packed(i, j)];
            if ((i < s->k) != (j < s->k)) {
                sum = 0; /* X~ and T~ are orthogonal but for rounding */
            }
            for (int l = 0; l < j; l++) {
                sum -= s->L[i * s->K + l] * s->L[j * s->K + l];
            }
            if (i == j && !(sum > 0)) {
                return false;
            }
            s->L[i * s->K + j] = i == j ? sqrt(sum) : sum / s->L[j * s->K + j];
        }
    }
    return true;
}

/** v <- L^-1 v. */
static void solve_lower(const frgi_cluster_space *s, double *v, int64_t stride)
{
    for (int i = 0; i < s->K; i++) {
        double sum = v[i * stride];
        for (int l = 0; l < i; l++) {
            sum -= s->L[i * s->K + l] * v[l * stride];
        }
        v[i * stride] = sum / s->L[i * s->K + i];
    }
}

static frg_status make_orthogonal(frgi_cluster_space *s)
{
    const frg_fe *const f = s->w->f;
    double *packed;
    TRY(NEW(f->ctx, &packed, frgi_packed(s->K, 0), "a covariance"));
    frg_status status = frgi_gram(f->ctx, s->K, s->z, f->data.frame.weights, s->n, packed, NULL);
    const bool sound = status >= 0 && factor(s, packed);
    DROP(f->ctx, &packed);
    TRY(status);
    REQUIRE(f->ctx, sound, "vcov '%s': the columns depend on each other", s->w->v->request.spec);
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(f->ctx, s->n))
    for (int64_t i = 0; i < s->n; i++) {
        double *const z = s->orthogonal + i * s->K; /* by rows: a cluster's rows are gathered */
        for (int j = 0; j < s->K; j++) {
            z[j] = s->z[j][i];
        }
        solve_lower(s, z, 1);
    }
    return FRG_OK;
}

/** L^-1 c for coefficient j as it is written: the intercept is the centred one less the means'
 *  share. */
static void fill_contrast(const frgi_cluster_space *s, int j)
{
    const frg_fe *const f = s->w->f;
    double *const c = s->contrast + (int64_t)j * s->K;
    memset(c, 0, sizeof *c * (size_t)s->K);
    c[j] = 1;
    for (int i = 1; i < s->k && j == 0 && f->data.centred; i++) {
        c[i] = -ldexp(f->matrix.moments[f->fit.column_of[i]].mean, s->w->c[i] - s->w->c[0]);
    }
    solve_lower(s, c, 1);
}

static frg_status sort_clusters(frgi_cluster_space *s)
{
    const int32_t *const codes = s->w->codes[0];
    TRY(NEW0(s->w->f->ctx, &s->start, s->G + 2, "an order"));
    TRY(NEW(s->w->f->ctx, &s->row, s->n, "an order"));
    for (int64_t i = 0; i < s->n; i++) {
        s->start[codes[i] + 2]++;
    }
    for (int64_t g = 1; g <= s->G; g++) {
        s->start[g + 1] += s->start[g];
    }
    for (int64_t i = 0; i < s->n; i++) { /* afterwards start[g] is the end of g - 1 */
        s->row[s->start[codes[i] + 1]++] = i;
    }
    return FRG_OK;
}

frg_status frgi_cluster_space_open(frgi_cluster_space *s, frgi_vcov_work *w)
{
    frg_context *const ctx = w->f->ctx;
    uint64_t cut;
    int64_t levels;
    *s = (frgi_cluster_space){
        .w = w, .n = w->f->data.frame.n, .G = w->groups[0], .k = w->f->fit.k, .K = w->f->fit.k};
    if (!w->scores) {
        TRY(frgi_vcov_scores(w));
    }
    TRY(find_cut(s, &cut, &levels));
    TRY(NEW(ctx, &s->z, s->k + levels, "columns"));
    memcpy(s->z, w->x, sizeof *s->z * (size_t)s->k);
    if (cut) {
        TRY(make_dummies(s, cut, levels));
        TRY(keep_independent(s, levels));
    }
    TRY(NEW(ctx, &s->orthogonal, s->n * s->K, "columns"));
    TRY(NEW0(ctx, &s->L, (int64_t)s->K * s->K, "a covariance"));
    TRY(make_orthogonal(s));
    TRY(sort_clusters(s));
    TRY(NEW(ctx, &s->contrast, (int64_t)s->k * s->K, "contrasts"));
    for (int j = 0; j < s->k; j++) {
        fill_contrast(s, j);
    }
    return FRG_OK;
}

void frgi_cluster_space_close(frgi_cluster_space *s)
{
    frg_context *const ctx = s->w->f->ctx;
    DROP(ctx, &s->z);
    DROP(ctx, &s->dummies);
    DROP(ctx, &s->orthogonal);
    DROP(ctx, &s->L);
    DROP(ctx, &s->start);
    DROP(ctx, &s->row);
    DROP(ctx, &s->contrast);
}

void frgi_cluster_space_fill(const frgi_cluster_space *s, int64_t g, double *C, double *score)
{
    const int K = s->K;
    const double *const weights = s->w->f->data.frame.weights;
    memset(C, 0, sizeof *C * (size_t)(K * K));
    memset(score, 0, sizeof *score * (size_t)K);
    for (int64_t r = s->start[g]; r < s->start[g + 1]; r++) {
        const int64_t i = s->row[r];
        const double *const z = s->orthogonal + i * K;
        for (int p = 0; p < K; p++) {
            const double wz = weights ? weights[i] * z[p] : z[p];
            score[p] += s->w->scores[i] * z[p];
            for (int q = 0; q <= p; q++) {
                C[p * K + q] += wz * z[q];
            }
        }
    }
    for (int p = 0; p < K; p++) {
        for (int q = 0; q < p; q++) {
            C[q * K + p] = C[p * K + q];
        }
    }
}
