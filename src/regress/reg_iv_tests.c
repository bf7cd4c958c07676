/* reg_iv_tests.c - first stages and tests of two-stage least squares; letters of reg_iv.h.
 *
 *     Kleibergen and Paap (2006):  S_xz S_zz^-1 S_zx c = s B c,  B = S_vv (Wald), S_xx (LM);
 *         c of the least s, A a basis of the Z_p that are orthogonal to the others' fitted values:
 *         lambda = A S_zx c,  rk = lambda' (A M(V c) A')^-1 lambda, with X_p in place of V for LM
 *     Montiel Olea and Pflueger (2013):  pi'S_zz pi / tr(V S_zz), V the covariance of pi
 *     Hansen (1982):  min_b (Z'W e)' M(e_2sls)^-1 Z'W e with [E Z] for Z
 *     Wu (1973), Hausman (1978):  d = S_vv^-1 V'W e,
 *         d' (S_vv^-1 + B_xx)^-1 d / m over (e'W e - d'S_vv d) / df,  B_xx of (X^'W X^)^-1
 *
 * Memory: n (L + 2 m + 2) numbers while it runs.
 */
#include <math.h>
#include <string.h>

#include "linalg/stat.h"
#include "regress/reg_iv.h"
#include "regress/reg_vcov.h"

static const double SINGULAR = 1e-13; /* a pivot of correlations: rounding */

/* ---- columns and sums ------------------------------------------------------------------------ */

static void lay_out(frgi_arena *a, frgi_iv_work *w)
{
    const int64_t n = w->f->data.frame.n, l = w->l, m = w->m;
    w->own_zp = TAKE(a, double, w->e ? n *l : 0);
    w->v = TAKE(a, double, n *m);
    w->xp = TAKE(a, double, n *m);
    w->vy = TAKE(a, double, n);
    w->t = TAKE(a, double, n);
    w->szz = TAKE(a, double, l *l);
    w->szx = TAKE(a, double, l *m);
    w->szy = TAKE(a, double, l);
    w->sxx = TAKE(a, double, m *m);
    w->svv = TAKE(a, double, m *m);
    w->pi = TAKE(a, double, l *m);
    w->block = TAKE(a, double, l *l);
    w->z = TAKE(a, const double *, w->e + l);
    w->zp = TAKE(a, const double *, l);
}

/** a'W b of what E leaves of the columns a, b of iv.gram, [E Z X y];  coefficients: e rows. */
static double partial(const frgi_iv_work *w, const double *coefficients, int a, int b)
{
    const int side = w->e + w->l + w->m + 1;
    const double *const g = w->f->iv.gram;
    double s = g[a * (ptrdiff_t)side + b];
    for (int i = 0; i < w->e; i++) {
        s -= g[a * (ptrdiff_t)side + i] * coefficients[i * (ptrdiff_t)side + b];
    }
    return s;
}

/** coefficients (e x side) <- (E'WE)^-1 E'W [E Z X y] */
static frg_status project_on_exogenous(const frgi_iv_work *w, double *coefficients)
{
    const int side = w->e + w->l + w->m + 1;
    double *bread;
    bool sound;
    TRY(NEW(w->f->ctx, &bread, (int64_t)w->e * w->e, "first stages"));
    for (int i = 0; i < w->e; i++) {
        memcpy(bread + i * (ptrdiff_t)w->e, w->f->iv.gram + i * (ptrdiff_t)side,
               sizeof *bread * (size_t)w->e);
    }
    const frg_status status = frgi_dense_inverse(w->f->ctx, w->e, bread, 0, &sound);
    frgi_dense_product(w->e, w->e, side, bread, w->f->iv.gram, coefficients);
    DROP(w->f->ctx, &bread);
    return status;
}

/** to <- x less the columns z times b; sum <- to'W to. */
static frg_status residual(const frgi_iv_work *w, int k, const double *x, const double *b,
                           double *to, double *sum)
{
    const frgi_frame *const frame = &w->f->data.frame;
    double *gradient;
    TRY(NEW(w->f->ctx, &gradient, k + 1, "first stages"));
    const frg_status status =
        frgi_gram_residual(w->f->ctx, k, w->z, x, b, frame->weights, frame->n, to, gradient);
    *sum = gradient[k];
    DROP(w->f->ctx, &gradient);
    return status;
}

/** Z_p and X_p as columns. */
static frg_status partial_columns(frgi_iv_work *w, const double *coefficients)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n;
    const int side = w->e + w->l + w->m + 1;
    double *b, sum;
    TRY(NEW(f->ctx, &b, w->e, "first stages"));
    frg_status status = FRG_OK;
    for (int c = 0; c < w->l + w->m && status >= 0; c++) {
        const bool is_z = c < w->l;
        const double *const from =
            is_z ? w->z[w->e + c] : f->matrix.values + f->fit.column_of[w->e + c - w->l] * n;
        double *const to = is_z ? w->own_zp + c * n : w->xp + (c - w->l) * n;
        for (int i = 0; i < w->e; i++) {
            b[i] = coefficients[i * (ptrdiff_t)side + w->e + c];
        }
        if (is_z && w->e == 0) {
            w->zp[c] = from;
            continue;
        }
        status = residual(w, w->e, from, b, to, &sum);
        if (is_z) {
            w->zp[c] = to;
        }
    }
    DROP(f->ctx, &b);
    return status;
}

/** v_y: y on [E Z]. */
static frg_status reduced_form(frgi_iv_work *w)
{
    const frg_fe *const f = w->f;
    const int q = w->e + w->l, side = q + w->m + 1;
    double *b;
    TRY(NEW0(f->ctx, &b, q, "the reduced form"));
    for (int i = 0; i < q; i++) {
        for (int j = 0; j < q; j++) {
            b[i] += f->iv.bread[i * (ptrdiff_t)q + j] * f->iv.gram[j * (ptrdiff_t)side + side - 1];
        }
    }
    const frg_status status = residual(w, q, f->matrix.values, b, w->vy, &w->vyy);
    DROP(f->ctx, &b);
    return status;
}

static frg_status first_stage_residuals(frgi_iv_work *w)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n;
    const double *columns[1];
    for (int j = 0; j < w->m; j++) {
        const double *const x = f->matrix.values + f->fit.column_of[w->e + j] * n;
        for (int64_t i = 0; i < n; i++) {
            w->v[j * n + i] = x[i] - f->iv.fitted[j * n + i];
        }
        for (int i = 0; i <= j; i++) { /* few of them: one sum a pass */
            double zero = 0, sums[2];
            columns[0] = w->v + i * n;
            TRY(frgi_gram_residual(f->ctx, 1, columns, w->v + j * n, &zero, f->data.frame.weights,
                                   n, w->t, sums));
            w->svv[i * w->m + j] = w->svv[j * w->m + i] = sums[0];
        }
    }
    return FRG_OK;
}

static void fill_sums(frgi_iv_work *w, const double *coefficients)
{
    const int first = w->e + w->l, q = first;
    for (int i = 0; i < w->l; i++) {
        for (int j = 0; j < w->l; j++) {
            w->szz[i * (ptrdiff_t)w->l + j] = partial(w, coefficients, w->e + i, w->e + j);
        }
        for (int j = 0; j < w->m; j++) {
            w->szx[i * (ptrdiff_t)w->m + j] = partial(w, coefficients, w->e + i, first + j);
            w->pi[i * (ptrdiff_t)w->m + j] = w->f->iv.pi[j * (ptrdiff_t)q + w->e + i];
        }
        w->szy[i] = partial(w, coefficients, w->e + i, first + w->m);
    }
    for (int i = 0; i < w->m; i++) {
        for (int j = 0; j < w->m; j++) {
            w->sxx[i * (ptrdiff_t)w->m + j] = partial(w, coefficients, first + i, first + j);
        }
    }
}

static frg_status gather(frgi_iv_work *w)
{
    const frg_fe *const f = w->f;
    double *coefficients;
    for (int j = 0; j < w->e + w->l; j++) {
        w->z[j] = f->matrix.values + f->iv.column_of[j] * f->data.frame.n;
    }
    TRY(NEW(f->ctx, &coefficients, (int64_t)w->e * (w->e + w->l + w->m + 1), "first stages"));
    frg_status status = project_on_exogenous(w, coefficients);
    status = status < 0 ? status : partial_columns(w, coefficients);
    fill_sums(w, coefficients);
    DROP(f->ctx, &coefficients);
    TRY(status);
    TRY(reduced_form(w));
    return first_stage_residuals(w);
}

/* ---- covariances of scores ------------------------------------------------------------------- */

/** The covariance `spec` of the regression that w->shadow is. */
static frg_status covariance(const frgi_iv_work *w, const frgi_ssc *ssc, frgi_vcov **out)
{
    frgi_vcov_request request;
    TRY(frgi_vcov_request_create(&request, w->f->ctx, w->spec, w->f->data.table));
    return frgi_vcov_create(out, w->shadow, &request, ssc);
}

/** Takes the covariance out of the shadow's list. */
static void release(const frgi_iv_work *w, frgi_vcov *v)
{
    w->shadow->report.vcovs = v->next;
    frgi_vcov_destroy(v, w->f->ctx);
}

frg_status frgi_iv_meat(const frgi_iv_work *w, int k, const double *const *z, const double *gram,
                        const double *t, double tt, bool adjusted, double *out)
{
    const frg_fe *const f = w->f;
    const double n = f->data.frame.count;
    frgi_ssc ssc = f->policy.ssc;
    if (w->iid) {
        for (ptrdiff_t i = 0; i < (ptrdiff_t)k * k; i++) {
            out[i] = adjusted ? tt / (n - 1) * w->factor * gram[i] : tt / n * gram[i];
        }
        return FRG_OK;
    }
    ssc.adj = false;
    ssc.fixef = SSC_NONE;
    ssc.cluster_adj = adjusted && ssc.cluster_adj;
    double *bread = NULL, *b = NULL;
    frgi_vcov *v;
    frg_status status;
    TRY_TO(done, NEW0(f->ctx, &bread, (int64_t)k * k, "a covariance"));
    TRY_TO(done, NEW0(f->ctx, &b, k, "a covariance"));
    for (int i = 0; i < k; i++) {
        bread[i * (ptrdiff_t)k + i] = 1 / gram[i * (ptrdiff_t)k + i];
    }
    *w->shadow = *f;
    w->shadow->report.vcovs = NULL;
    w->shadow->data.centred = false;
    w->shadow->fit = (frgi_fe_estimates){.k = k,
                                         .column_of = f->iv.column_of + w->e + w->l - k,
                                         .x = (const double **)(uintptr_t)z,
                                         .b = b,
                                         .bread = bread,
                                         .e = (double *)(uintptr_t)t,
                                         .rss = tt,
                                         .stage = ""};
    TRY_TO(done, covariance(w, &ssc, &v));
    for (ptrdiff_t i = 0; i < (ptrdiff_t)k * k; i++) {
        const double di = gram[i / k * (k + 1)], dj = gram[i % k * (k + 1)];
        out[i] = v->v.projected ? (double)NAN : v->matrix[i] * di * dj * (adjusted ? w->factor : 1);
    }
    release(w, v);
done:
    DROP(f->ctx, &bread);
    DROP(f->ctx, &b);
    return status;
}

/* ---- first stages ---------------------------------------------------------------------------- */

/** F of the instruments from the covariance of stage j; of the first one its block is kept. */
static frg_status test_stage(frgi_iv_work *w, int j, const frgi_vcov *v)
{
    const int q = w->e + w->l, l = w->l;
    double *block = w->block, form, *pi = NULL;
    const double df = v->v.df_t;
    frg_status status;
    TRY_TO(done, NEW(w->f->ctx, &block, (int64_t)l * l, "a test"));
    TRY_TO(done, NEW(w->f->ctx, &pi, l, "a test"));
    for (int a = 0; a < l; a++) {
        pi[a] = w->pi[a * (ptrdiff_t)w->m + j];
        memcpy(block + a * (ptrdiff_t)l, v->matrix + (w->e + a) * (ptrdiff_t)q + w->e,
               sizeof *block * (size_t)l);
    }
    if (j == 0) {
        memcpy(w->block, block, sizeof *block * (size_t)l * (size_t)l);
        w->df_t = df;
        const double n = w->f->data.frame.count;
        w->factor = v->ssc.adj ? (n - 1) / (n - (double)v->v.k) : 1;
        w->iid = v->request.kind->meat == NULL;
    }
    TRY_TO(done, frgi_dense_form(w->f->ctx, l, block, pi, &form));
    double *const to = (double *)(uintptr_t)w->test->first_stage_f;
    to[j] = v->v.projected ? (double)NAN : form / l;
    to[w->m + j] = isfinite(to[j]) ? frgi_f_upper(to[j], l, df) : (double)NAN;
done:
    DROP(w->f->ctx, &block);
    DROP(w->f->ctx, &pi);
    return status;
}

/** The covariance of first stage j.  first: of vcov[0], which the coefficients are shown under. */
static frg_status examine_stage(frgi_iv_work *w, int j, bool first)
{
    frg_fe *const f = w->f;
    const int q = w->e + w->l;
    double *b;
    frgi_vcov *v;
    TRY(NEW(f->ctx, &b, q, "a first stage"));
    memcpy(b, f->iv.pi + j * (ptrdiff_t)q, sizeof *b * (size_t)q);
    *w->shadow = *f;
    w->shadow->report.vcovs = NULL;
    w->shadow->fit =
        (frgi_fe_estimates){.k = q,
                            .column_of = f->iv.column_of,
                            .x = w->z,
                            .b = b,
                            .bread = f->iv.bread,
                            .e = w->v + j * f->data.frame.n,
                            .rss = w->svv[j * (w->m + 1)],
                            .stage = frgi_fe_column_name(f, f->fit.column_of[w->e + j])};
    if (f->data.centred) {
        b[0] += f->matrix.moments[f->fit.column_of[w->e + j]].mean;
        for (int i = 1; i < q; i++) {
            b[0] -= b[i] * f->matrix.moments[f->iv.column_of[i]].mean;
        }
    }
    frg_status status = covariance(w, &f->policy.ssc, &v);
    if (status >= 0) {
        if (first) {
            memcpy(f->iv.coefficients + j * (ptrdiff_t)q, v->coefficients,
                   sizeof *v->coefficients * (size_t)q);
        }
        status = test_stage(w, j, v);
        release(w, v);
    }
    DROP(f->ctx, &b);
    return status;
}

/** pi'S_zz pi / tr(V S_zz) */
static double effective_f(const frgi_iv_work *w)
{
    double strength = 0, trace = 0;
    for (int i = 0; i < w->l; i++) {
        for (int j = 0; j < w->l; j++) {
            const double s = w->szz[i * (ptrdiff_t)w->l + j];
            strength += w->pi[i * (ptrdiff_t)w->m] * s * w->pi[j * (ptrdiff_t)w->m];
            trace += w->block[i * (ptrdiff_t)w->l + j] * s;
        }
    }
    return w->m == 1 ? strength / trace : (double)NAN;
}

/* ---- the rank of the first stages ------------------------------------------------------------ */

/** Scratch of one rank test. */
typedef struct {
    double *fit, *norm;       /* m x m: S_xz S_zz^-1 S_zx, and B */
    double *values, *c;       /* m, m x m */
    double *basis;            /* l x l: rows of A, the first l - m + 1 */
    double *meat, *half;      /* l x l */
    double *lambda, *scratch; /* l, 2 l x l */
} rank_test;

static void lay_out_rank(frgi_arena *a, const frgi_iv_work *w, rank_test *r)
{
    const int64_t l = w->l, m = w->m;
    r->fit = TAKE(a, double, m *m);
    r->norm = TAKE(a, double, m *m);
    r->values = TAKE(a, double, m);
    r->c = TAKE(a, double, m *m);
    r->basis = TAKE(a, double, l *l);
    r->meat = TAKE(a, double, l *l);
    r->half = TAKE(a, double, l *l);
    r->lambda = TAKE(a, double, l);
    r->scratch = TAKE(a, double, 3 * l * l + l);
}

/** r->c, r->values of the pencil; S_zx c is r->lambda times no basis yet. */
static frg_status solve_pencil(const frgi_iv_work *w, rank_test *r, const double *norm, bool *sound)
{
    frgi_dense_cross(w->l, w->m, w->m, w->pi, w->szx, r->fit);
    for (int i = 0; i < w->m; i++) { /* symmetric but for rounding */
        for (int j = 0; j < i; j++) {
            r->fit[i * w->m + j] = r->fit[j * w->m + i] =
                0.5 * (r->fit[i * w->m + j] + r->fit[j * w->m + i]);
        }
    }
    memcpy(r->norm, norm, sizeof *norm * (size_t)w->m * (size_t)w->m);
    return frgi_dense_pencil(w->f->ctx, w->m, r->fit, r->norm, r->values, r->c, sound);
}

/** A: what is orthogonal, in S_zz, to pi c_j of all j but the last.  With P the projection that
 *  leaves it,  P'S_zz P a = S_zz a. */
static frg_status make_basis(const frgi_iv_work *w, rank_test *r, bool *sound)
{
    const int l = w->l, m = w->m;
    double *const left = r->scratch, *const right = left + (ptrdiff_t)l * l,
                  *const values = right + (ptrdiff_t)l * l + (ptrdiff_t)l * l;
    memcpy(left, w->szz, sizeof *left * (size_t)l * (size_t)l);
    memcpy(right, w->szz, sizeof *left * (size_t)l * (size_t)l);
    for (int j = 0; j < m - 1; j++) { /* P'S P = S - sum_j (S h_j)(S h_j)' / h_j'S h_j */
        double *const image = right + (ptrdiff_t)l * l;
        frgi_dense_product(l, m, 1, w->szx, r->c + j * (ptrdiff_t)m, image);
        for (ptrdiff_t i = 0; i < (ptrdiff_t)l * l; i++) {
            left[i] -= image[i / l] * image[i % l] / r->values[j];
        }
    }
    return frgi_dense_pencil(w->f->ctx, l, left, right, values, r->basis, sound);
}

/** The rk statistic with the residuals or regressors x (n x m) under the norm x'Wx. */
static frg_status rank_statistic(const frgi_iv_work *w, const double *x, const double *norm,
                                 bool adjusted, double *out)
{
    const int64_t n = w->f->data.frame.n;
    const int l = w->l, m = w->m, r_rows = l - m + 1;
    frgi_arena a = {0};
    rank_test r = {0};
    bool sound;
    frg_status status;
    *out = (double)NAN;
    lay_out_rank(&a, w, &r);
    TRY(frgi_arena_open(&a, w->f->ctx, "a rank test"));
    lay_out_rank(&a, w, &r);
    TRY_TO(done, solve_pencil(w, &r, norm, &sound));
    if (!sound) {
        goto done;
    }
    TRY_TO(done, make_basis(w, &r, &sound));
    if (!sound) {
        goto done;
    }
    const double *const c = r.c + (m - 1) * (ptrdiff_t)m;
    memset(w->t, 0, sizeof *w->t * (size_t)n);
    for (int j = 0; j < m; j++) {
        for (int64_t i = 0; i < n; i++) {
            w->t[i] += c[j] * x[j * n + i];
        }
    }
    TRY_TO(done, frgi_iv_meat(w, l, w->zp, w->szz, w->t, 1, adjusted, r.meat));
    frgi_dense_product(l, m, 1, w->szx, c, r.scratch);
    frgi_dense_product(r_rows, l, 1, r.basis, r.scratch, r.lambda);
    frgi_dense_product(r_rows, l, l, r.basis, r.meat, r.half);
    for (int i = 0; i < r_rows; i++) { /* A M A' */
        for (int j = 0; j < r_rows; j++) {
            double s = 0;
            for (int h = 0; h < l; h++) {
                s += r.half[i * (ptrdiff_t)l + h] * r.basis[j * (ptrdiff_t)l + h];
            }
            r.meat[i * (ptrdiff_t)r_rows + j] = s;
        }
    }
    status = frgi_dense_form(w->f->ctx, r_rows, r.meat, r.lambda, out);
done:
    frgi_arena_close(&a, w->f->ctx);
    return status;
}

static frg_status kleibergen_paap(const frgi_iv_work *w)
{
    frg_fe_iv_tests *const t = w->test;
    double wald;
    TRY(rank_statistic(w, w->v, w->svv, true, &wald));
    TRY(rank_statistic(w, w->xp, w->sxx, false, &t->kp_lm));
    t->kp_f = wald / w->l;
    t->kp_df = w->l - w->m + 1;
    t->kp_p = isfinite(t->kp_lm)
                  ? frgi_f_upper(t->kp_lm / (double)t->kp_df, (double)t->kp_df, INFINITY)
                  : (double)NAN;
    return FRG_OK;
}

/* ---- overidentification ---------------------------------------------------------------------- */

/** zx (q x k) <- [E Z]'W[E X], zy (q) <- [E Z]'W y. */
static void moments_of(const frgi_iv_work *w, double *zx, double *zy)
{
    const int q = w->e + w->l, k = w->e + w->m, side = q + w->m + 1;
    for (int i = 0; i < q; i++) {
        const double *const row = w->f->iv.gram + i * (ptrdiff_t)side;
        for (int j = 0; j < k; j++) {
            zx[i * (ptrdiff_t)k + j] = row[j < w->e ? j : q + j - w->e];
        }
        zy[i] = row[side - 1];
    }
}

/** The least (zy - zx b)' S^-1 (zy - zx b) over b; s (q x q) is spoilt. */
static frg_status minimise(const frgi_iv_work *w, double *s, const double *zx, const double *zy,
                           double *out)
{
    const int q = w->e + w->l, k = w->e + w->m;
    double *half = NULL, *normal = NULL, *right = NULL, *b = NULL;
    bool sound;
    frg_status status;
    *out = (double)NAN;
    TRY_TO(done, NEW(w->f->ctx, &half, (int64_t)q * k, "a test"));
    TRY_TO(done, NEW(w->f->ctx, &normal, (int64_t)k * k, "a test"));
    TRY_TO(done, NEW(w->f->ctx, &right, k + q, "a test"));
    TRY_TO(done, NEW(w->f->ctx, &b, k, "a test"));
    TRY_TO(done, frgi_dense_inverse(w->f->ctx, q, s, SINGULAR, &sound));
    if (!sound) {
        goto done;
    }
    frgi_dense_product(q, q, k, s, zx, half);
    frgi_dense_cross(q, k, k, zx, half, normal);
    frgi_dense_cross(q, k, 1, half, zy, right);
    TRY_TO(done, frgi_dense_inverse(w->f->ctx, k, normal, SINGULAR, &sound));
    if (!sound) {
        goto done;
    }
    frgi_dense_product(k, k, 1, normal, right, b);
    double *const left = right + k;
    for (int i = 0; i < q; i++) {
        left[i] = zy[i];
        for (int j = 0; j < k; j++) {
            left[i] -= zx[i * (ptrdiff_t)k + j] * b[j];
        }
    }
    *out = 0;
    for (int i = 0; i < q; i++) {
        for (int j = 0; j < q; j++) {
            *out += left[i] * s[i * (ptrdiff_t)q + j] * left[j];
        }
    }
done:
    DROP(w->f->ctx, &half);
    DROP(w->f->ctx, &normal);
    DROP(w->f->ctx, &right);
    DROP(w->f->ctx, &b);
    return status;
}

static frg_status overidentification(const frgi_iv_work *w)
{
    const frg_fe *const f = w->f;
    const int q = w->e + w->l, k = w->e + w->m, side = q + w->m + 1;
    frg_fe_iv_tests *const t = w->test;
    double *s = NULL, *gram = NULL, *zx = NULL;
    frg_status status = FRG_OK;
    t->overid = t->overid_p = (double)NAN;
    t->overid_df = w->l - w->m;
    if (t->overid_df == 0 || !(f->fit.rss > 0)) {
        return FRG_OK;
    }
    TRY_TO(done, NEW(f->ctx, &s, (int64_t)q * q, "a test"));
    TRY_TO(done, NEW(f->ctx, &gram, (int64_t)q * q, "a test"));
    TRY_TO(done, NEW(f->ctx, &zx, (int64_t)q * k + q, "a test"));
    for (int i = 0; i < q; i++) {
        memcpy(gram + i * (ptrdiff_t)q, f->iv.gram + i * (ptrdiff_t)side, sizeof *gram * (size_t)q);
    }
    TRY_TO(done, frgi_iv_meat(w, q, w->z, gram, f->fit.e, f->fit.rss, false, s));
    moments_of(w, zx, zx + (ptrdiff_t)q * k);
    TRY_TO(done, minimise(w, s, zx, zx + (ptrdiff_t)q * k, &t->overid));
    const double df = (double)t->overid_df;
    t->overid_p = isfinite(t->overid) ? frgi_f_upper(t->overid / df, df, INFINITY) : (double)NAN;
done:
    DROP(f->ctx, &s);
    DROP(f->ctx, &gram);
    DROP(f->ctx, &zx);
    return status;
}

/* ---- tests of iid errors --------------------------------------------------------------------- */

static frg_status cragg_donald(const frgi_iv_work *w)
{
    frg_fe *const f = w->f;
    frgi_arena a = {0};
    rank_test r = {0};
    bool sound;
    lay_out_rank(&a, w, &r);
    TRY(frgi_arena_open(&a, f->ctx, "a rank test"));
    lay_out_rank(&a, w, &r);
    const frg_status status = solve_pencil(w, &r, w->svv, &sound);
    const double left = f->data.frame.count - (w->e + w->l) - f->absorbed.rank;
    f->iv.result.cragg_donald_f =
        status >= 0 && sound ? r.values[w->m - 1] * left / w->l : (double)NAN;
    frgi_arena_close(&a, f->ctx);
    return status;
}

/** d <- V'W e */
static frg_status residual_products(const frgi_iv_work *w, double *d)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n;
    const double **columns = NULL;
    double *zeros = NULL;
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &columns, w->m, "a test"));
    TRY_TO(done, NEW0(f->ctx, &zeros, w->m, "a test"));
    for (int j = 0; j < w->m; j++) {
        columns[j] = w->v + j * n;
    }
    status = frgi_gram_residual(f->ctx, w->m, columns, f->fit.e, zeros, f->data.frame.weights, n,
                                w->t, d);
done:
    DROP(f->ctx, &columns);
    DROP(f->ctx, &zeros);
    return status;
}

/** The form d' (S_vv^-1 + B_xx)^-1 d and d'S_vv d, d = S_vv^-1 V'W e. */
static frg_status hausman_form(const frgi_iv_work *w, double *form, double *explained)
{
    const frg_fe *const f = w->f;
    const int m = w->m, k = f->fit.k;
    double *a = NULL, *d = NULL;
    bool sound;
    frg_status status;
    *form = (double)NAN;
    *explained = 0;
    TRY_TO(done, NEW(f->ctx, &a, (int64_t)m * m, "a test"));
    TRY_TO(done, NEW0(f->ctx, &d, 2 * m + 1, "a test"));
    double *const product = d + m;
    memcpy(a, w->svv, sizeof *a * (size_t)m * (size_t)m);
    TRY_TO(done, frgi_dense_inverse(f->ctx, m, a, SINGULAR, &sound));
    if (!sound) {
        goto done;
    }
    TRY_TO(done, residual_products(w, product));
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < m; j++) {
            d[i] += a[i * (ptrdiff_t)m + j] * product[j];
            a[i * (ptrdiff_t)m + j] += f->fit.bread[(w->e + i) * (ptrdiff_t)k + w->e + j];
        }
        *explained += d[i] * product[i];
    }
    status = frgi_dense_form(f->ctx, m, a, d, form);
done:
    DROP(f->ctx, &a);
    DROP(f->ctx, &d);
    return status;
}

static frg_status wu_hausman(const frgi_iv_work *w)
{
    frg_fe *const f = w->f;
    frg_fe_iv *const r = &f->iv.result;
    double form, explained;
    r->wu_hausman_f = r->wu_hausman_p = (double)NAN;
    r->wu_hausman_df = (int64_t)(f->data.frame.count - f->fit.k - f->absorbed.rank) - w->m;
    if (r->wu_hausman_df <= 0) {
        return FRG_OK;
    }
    TRY(hausman_form(w, &form, &explained));
    const double left = (f->fit.rss - explained) / (double)r->wu_hausman_df;
    r->wu_hausman_f = left > 0 ? form / w->m / left : (double)NAN;
    r->wu_hausman_p = isfinite(r->wu_hausman_f)
                          ? frgi_f_upper(r->wu_hausman_f, w->m, (double)r->wu_hausman_df)
                          : (double)NAN;
    return FRG_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/** All that depends on covariance i. */
static frg_status examine(frgi_iv_work *w, int i)
{
    frg_fe *const f = w->f;
    w->test = &f->iv.tests[i];
    w->spec = f->report.vcov_array[i].spec;
    *w->test = (frg_fe_iv_tests){.vcov = w->spec,
                                 .first_stage_f = f->iv.stage_f + 2 * (ptrdiff_t)w->m * i,
                                 .first_stage_p = f->iv.stage_f + 2 * (ptrdiff_t)w->m * i + w->m};
    for (int j = w->m - 1; j >= 0; j--) { /* the first last: the others need its rule */
        TRY(examine_stage(w, j, i == 0));
    }
    w->test->effective_f = effective_f(w);
    TRY(kleibergen_paap(w));
    TRY(overidentification(w));
    return frgi_iv_anderson_rubin(w);
}

static frg_status allocate_result(frgi_iv_work *w)
{
    frg_fe *const f = w->f;
    const int64_t q = w->e + w->l, m = w->m, count = f->policy.options.n_vcov;
    TRY(NEW0(f->ctx, &f->iv.stages, m, "first stages"));
    TRY(NEW0(f->ctx, &f->iv.tests, count, "tests of the instruments"));
    TRY(NEW0(f->ctx, &f->iv.coefficients, m * q, "first stages"));
    TRY(NEW0(f->ctx, &f->iv.stage_f, 2 * m * count, "tests of the instruments"));
    TRY(NEW(f->ctx, &f->iv.names, w->l, "names"));
    TRY(NEW0(f->ctx, &w->shadow, 1, "a first stage"));
    return FRG_OK;
}

static void describe(const frgi_iv_work *w)
{
    frg_fe *const f = w->f;
    frgi_fe_iv *const iv = &f->iv;
    const int q = w->e + w->l, exponent = f->data.frame.weight_exponent;
    for (int i = 0; i < w->l; i++) {
        iv->names[i] = frgi_fe_column_name(f, iv->column_of[w->e + i]);
    }
    for (int j = 0; j < w->m; j++) {
        const double rss = w->svv[j * (w->m + 1)];
        iv->stages[j] =
            (frg_fe_first_stage){.endogenous = frgi_fe_column_name(f, f->fit.column_of[w->e + j]),
                                 .n_coefficients = q,
                                 .coefficients = iv->coefficients + j * (ptrdiff_t)q,
                                 .rss = ldexp(rss, exponent),
                                 .partial_r2 = 1 - rss / w->sxx[j * (w->m + 1)]};
    }
    iv->result.n_endogenous = w->m;
    iv->result.n_instruments = w->l;
    iv->result.instruments = iv->names;
    iv->result.first_stages = iv->stages;
    iv->result.tests = iv->tests;
    f->report.result.iv = &iv->result;
}

frg_status frgi_iv_describe(frg_fe *f)
{
    frgi_iv_work w = {
        .f = f, .e = f->iv.n_exogenous, .l = f->iv.n_instruments, .m = f->iv.n_endogenous};
    frgi_arena a = {0};
    frg_status status;
    if (w.m == 0) {
        return FRG_OK;
    }
    TRY_TO(done, allocate_result(&w));
    lay_out(&a, &w);
    TRY_TO(done, frgi_arena_open(&a, f->ctx, "first stages"));
    lay_out(&a, &w);
    TRY_TO(done, gather(&w));
    for (int i = 0; i < f->policy.options.n_vcov; i++) {
        TRY_TO(done, examine(&w, i));
    }
    TRY_TO(done, cragg_donald(&w));
    TRY_TO(done, wu_hausman(&w));
    describe(&w);
done:
    frgi_arena_close(&a, f->ctx);
    DROP(f->ctx, &w.shadow);
    return status;
}

void frgi_iv_destroy(frg_fe *f)
{
    DROP(f->ctx, &f->iv.column_of);
    DROP(f->ctx, &f->iv.fitted);
    DROP(f->ctx, &f->iv.pi);
    DROP(f->ctx, &f->iv.bread);
    DROP(f->ctx, &f->iv.gram);
    DROP(f->ctx, &f->iv.stages);
    DROP(f->ctx, &f->iv.tests);
    DROP(f->ctx, &f->iv.coefficients);
    DROP(f->ctx, &f->iv.stage_f);
    DROP(f->ctx, &f->iv.names);
}
