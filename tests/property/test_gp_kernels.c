/* test_gp_kernels.c - covariance functions over tiles: values against a slow text, derivatives
 * against differences.
 *
 * For a symmetric P the pass gives 1/2 sum_ij P_ij dC_ij/dlog theta, so f(theta) = 1/2 sum_ij P_ij
 * C_ij(theta) is a function whose differences are known.  A central difference with step h = 1e-5
 * in log theta errs by h^2/6 f''' plus u |f| / h: about 1e-10 plus 1e-11 of the sum of absolute
 * terms, so 1e-6 of that sum is asked for.
 */
#include <math.h>

#include "core/tree_sum.h"
#include "gp/gp_bound.h"
#include "gp/gp_kernel.h"
#include "test.h"

enum { N = 83, MOST = 400, WIDEST = 80 };

typedef struct {
    frg_context *ctx;
    frgi_gp_kernel *kernel;
    frgi_gp_params params;
    double theta[256];
    ptrdiff_t n, d;
    double *x; /* n x d row-major */
    frgi_gp_points points;
    void *columns, *memory;
    frgi_gp_bound *bound;
    frgi_spd m;
    void *a, *kept;
    double centre[WIDEST];
} setting;

static double *random_points(ptrdiff_t n, ptrdiff_t d)
{
    double *const x = malloc(sizeof *x * (size_t)(n * d + 1));
    for (ptrdiff_t i = 0; i < n * d; i++)
        x[i] = 0.3 + 2 * test_uniform();
    return x;
}

static void fill_points(const setting *s, const double *x, ptrdiff_t n, frg_dtype dtype,
                        void *columns, frgi_gp_points *p)
{
    *p = (frgi_gp_points){.dtype = dtype,
                          .n = n,
                          .d = s->d,
                          .ld = n + 3,
                          .x = columns,
                          .centre = s->centre,
                          .raw = x};
    for (ptrdiff_t k = 0; k < s->d; k++) {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double v = x[i * s->d + k] - s->centre[k];
            if (dtype == FRG_F64)
                ((double *)columns)[k * p->ld + i] = v;
            else
                ((float *)columns)[k * p->ld + i] = (float)v;
        }
    }
}

static void rebind(setting *s)
{
    s->bound =
        frgi_gp_bind(s->ctx, s->kernel, s->theta, &s->points, s->memory, frg_threads(s->ctx));
}

static void close_setting(setting *s)
{
    frgi_gp_kernel_destroy(&s->kernel, s->ctx);
    frgi_gp_params_close(&s->params);
    frg_context_destroy(s->ctx);
    free(s->x);
    free(s->columns);
    free(s->memory);
    free(s->a);
    free(s->kept);
}

static void *aligned(size_t bytes)
{
    void *const p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    memset(p, 0x7f, (bytes + 127) / 64 * 64); /* what is not written is seen */
    return p;
}

static bool open_setting(setting *s, const char *text, ptrdiff_t n, ptrdiff_t d, frg_dtype dtype,
                         int threads, const frg_gp_user_kernel *user)
{
    *s = (setting){.ctx = test_context_with(threads, NULL, NULL), .n = n, .d = d};
    frgi_gp_params_open(&s->params, s->ctx);
    s->x = random_points(n, d);
    for (ptrdiff_t k = 0; k < d; k++)
        s->centre[k] = 1.25 + 0.01 * (double)k;
    if (!CHECK_OK(s->ctx,
                  frgi_gp_kernel_parse(&s->kernel, s->ctx, text, d, NULL, user, &s->params)))
        return false;
    for (int i = 0; i < s->params.count; i++) {
        s->theta[i] = s->params.p[i].value;
        CHECK_SAYS(s->theta[i] > 0, "%s: parameter %d has no value", text, i);
    }
    s->columns = malloc(sizeof(double) * (size_t)(d * (n + 3) + 1));
    fill_points(s, s->x, n, dtype, s->columns, &s->points);
    s->memory = aligned(frgi_gp_bound_bytes(s->kernel, dtype, n, threads));
    s->a = aligned(frgi_spd_bytes(n, dtype));
    s->kept = aligned(frgi_spd_bytes(n, dtype));
    s->m = frgi_spd_place(n, dtype, s->a, NULL, "gp");
    rebind(s);
    return true;
}

/** Entry (i, j), i >= j, of a triangle. */
static ptrdiff_t place(const frgi_spd *m, ptrdiff_t i, ptrdiff_t j)
{
    return frgi_spd_at(&m->layout, i, j);
}

static double entry(const setting *s, const void *a, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t at = place(&s->m, i > j ? i : j, i > j ? j : i);
    return frgi_spd_dtype(&s->m) == FRG_F64 ? ((const double *)a)[at]
                                            : (double)((const float *)a)[at];
}

/* ---- the slow text --------------------------------------------------------------------------- */

typedef double (*slow)(const double *x, const double *z, int d, const double *t, bool same);

static double scaled(const double *x, const double *z, int d, const double *l, int stride)
{
    double s = 0;
    for (int k = 0; k < d; k++)
        s += pow((x[k] - z[k]) / l[k * stride], 2);
    return s;
}

static double slow_rbf(const double *x, const double *z, int d, const double *t, bool same)
{
    (void)same;
    return t[0] * exp(-scaled(x, z, d, t + 1, 0) / 2);
}

static double slow_rbf_ard(const double *x, const double *z, int d, const double *t, bool same)
{
    (void)same;
    return t[0] * exp(-scaled(x, z, d, t + 1, 1) / 2);
}

static double slow_matern12(const double *x, const double *z, int d, const double *t, bool same)
{
    (void)same;
    return exp(-sqrt(scaled(x, z, d, t, 0)));
}

static double slow_matern32_ard(const double *x, const double *z, int d, const double *t, bool same)
{
    (void)same;
    const double c = sqrt(3 * scaled(x, z, d, t + 1, 1));
    return t[0] * (1 + c) * exp(-c);
}

static double slow_matern52(const double *x, const double *z, int d, const double *t, bool same)
{
    (void)same;
    const double c = sqrt(5 * scaled(x, z, d, t + 1, 0));
    return t[0] * (1 + c + c * c / 3) * exp(-c);
}

static double slow_rq(const double *x, const double *z, int d, const double *t, bool same)
{
    (void)same;
    return t[0] * pow(1 + scaled(x, z, d, t + 1, 1) / (2 * t[1 + d]), -t[1 + d]);
}

static double slow_rq_limit(const double *x, const double *z, int d, const double *t, bool same)
{
    (void)same;
    return exp(-t[1] * log1p(scaled(x, z, d, t, 0) / (2 * t[1])));
}

static double slow_periodic(const double *x, const double *z, int d, const double *t, bool same)
{
    double s = 0;
    (void)same;
    for (int k = 0; k < d; k++)
        s += pow(sin(M_PI * (x[k] - z[k]) / t[d + k]) / t[k], 2);
    return exp(-2 * s);
}

static double slow_periodic_gpytorch(const double *x, const double *z, int d, const double *t,
                                     bool same)
{
    double s = 0;
    (void)same;
    for (int k = 0; k < d; k++)
        s += pow(sin(M_PI * (x[k] - z[k]) / t[1]), 2) / t[0];
    return exp(-2 * s);
}

static double slow_linear(const double *x, const double *z, int d, const double *t, bool same)
{
    double s = 0;
    (void)same;
    for (int k = 0; k < d; k++)
        s += t[k] * x[k] * z[k];
    return s;
}

static double slow_linear_one(const double *x, const double *z, int d, const double *t, bool same)
{
    double s = 0;
    (void)same;
    for (int k = 0; k < d; k++)
        s += t[0] * x[k] * z[k];
    return s;
}

static double slow_poly(const double *x, const double *z, int d, const double *t, bool same)
{
    double s = t[0];
    (void)same;
    for (int k = 0; k < d; k++)
        s += x[k] * z[k];
    return s * s * s;
}

static double slow_cosine(const double *x, const double *z, int d, const double *t, bool same)
{
    double p = 1;
    (void)same;
    for (int k = 0; k < d; k++)
        p *= cos(2 * M_PI * (x[k] - z[k]) / t[k]);
    return p;
}

static double slow_cosine_gpytorch(const double *x, const double *z, int d, const double *t,
                                   bool same)
{
    (void)same;
    (void)d;
    return cos(M_PI * (x[1] - z[1]) / t[0]);
}

static double slow_sm(const double *x, const double *z, int d, const double *t, bool same)
{
    double sum = 0;
    (void)same;
    for (int q = 0; q < 2; q++) {
        double term = t[q];
        for (int k = 0; k < d; k++) {
            const double D = x[k] - z[k];
            term *= exp(-2 * M_PI * M_PI * t[2 + 2 * d + q * d + k] * D * D) *
                    cos(2 * M_PI * t[2 + q * d + k] * D);
        }
        sum += term;
    }
    return sum;
}

static double slow_sm_gpytorch(const double *x, const double *z, int d, const double *t, bool same)
{
    double product = 1;
    (void)same;
    for (int k = 0; k < d; k++) {
        double sum = 0;
        for (int q = 0; q < 2; q++) {
            const double D = x[k] - z[k], s = t[2 + 2 * d + q * d + k];
            sum +=
                t[q] * exp(-2 * M_PI * M_PI * s * s * D * D) * cos(2 * M_PI * t[2 + q * d + k] * D);
        }
        product *= sum;
    }
    return product;
}

static double slow_const_white(const double *x, const double *z, int d, const double *t, bool same)
{
    (void)x;
    (void)z;
    (void)d;
    return t[0] + (same ? t[1] : 0);
}

/* 1.3*rbf*(linear(v=[..]) + 0.5*on(2; periodic)*(matern32(ard) + white)) + const */
static double slow_deep(const double *x, const double *z, int d, const double *t, bool same)
{
    const double rbf = exp(-scaled(x, z, d, t + 1, 0) / 2),
                 linear = slow_linear(x, z, d, t + 2, same);
    const double *u = t + 2 + d; /* 0.5, l, p, l x d, white, const */
    const double periodic = slow_periodic(x + 1, z + 1, 1, u + 1, same);
    const double c = sqrt(3 * scaled(x, z, d, u + 3, 1)), matern = (1 + c) * exp(-c);
    return t[0] * rbf * (linear + u[0] * periodic * (matern + (same ? u[3 + d] : 0))) + u[4 + d];
}

/* rbf * matern12(ard) * rq * on(1; cosine) : a long product with values of 0 in it */
static double slow_product(const double *x, const double *z, int d, const double *t, bool same)
{
    const double a = exp(-scaled(x, z, d, t, 0) / 2), b = slow_matern12(x, z, d, t + 1, same);
    const double c = pow(1 + scaled(x, z, d, t + 2, 0) / (2 * t[3]), -t[3]);
    return a * b * c * cos(2 * M_PI * (x[0] - z[0]) / t[4]);
}

static double slow_columns(const double *x, const double *z, int d, const double *t, bool same)
{
    const double xs[2] = {x[2], x[0]}, zs[2] = {z[2], z[0]};
    (void)d;
    (void)same;
    return t[0] * exp(-scaled(xs, zs, 2, t + 1, 1) / 2) +
           exp(-sqrt(scaled(x + 1, z + 1, 1, t + 3, 0)));
}

/* ---- a user's kernel: t0 exp(-|x - z| / t1) over the columns it sees ------------------------- */

static double user_value(const double *t, const double *x, const double *z, int64_t d)
{
    double s = 0;
    for (int64_t k = 0; k < d; k++)
        s += pow(x[k] - z[k], 2);
    return t[0] * exp(-sqrt(s) / t[1]);
}

static void user_fill(const double *t, int64_t m, const double *rows, int64_t n, const double *cols,
                      int64_t d, double *k, int64_t ld, void *user)
{
    (void)user;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            k[i + j * ld] = user_value(t, rows + i * d, cols + j * d, d);
}

static void user_pull(const double *t, int64_t m, const double *rows, int64_t n, const double *cols,
                      int64_t d, const double *w, int64_t ld, double *gradient, void *user)
{
    (void)user;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < m; i++) {
            const double k = user_value(t, rows + i * d, cols + j * d, d);
            gradient[0] += w[i + j * ld] * k;
            if (k > 0 && k < t[0])
                gradient[1] += w[i + j * ld] * k * log(t[0] / k);
        }
    }
}

static const double user_start[] = {1.1, 0.9};
static const frg_gp_user_kernel user_kernel = {2, user_start, user_fill, user_pull, NULL};

static double slow_user(const double *x, const double *z, int d, const double *t, bool same)
{
    (void)same;
    (void)d;
    return t[0] * user_value(t + 1, x + 1, z + 1, 2) * exp(-scaled(x, z, d, t + 3, 0) / 2);
}

/* ---- the cases ------------------------------------------------------------------------------- */

typedef struct {
    const char *text;
    int d;
    slow k;
    bool no_dx; /* a user's kernel, or a point where k has a corner */
    bool deep;  /* products of many factors: more rounding in f32 */
} example;

static const example examples[] = {
    {"1.7*rbf(l=0.6)", 3, slow_rbf, false, false},
    {"1.7*rbf(l=[0.6,1.1,0.9,2,0.5])", 5, slow_rbf_ard, false, false},
    {"matern12(l=0.8)", 2, slow_matern12, true, false},
    {"0.7*matern32(l=[0.8,1.2,0.6])", 3, slow_matern32_ard, false, false},
    {"2*matern52(l=0.9)", 5, slow_matern52, false, false},
    {"2*rq(l=[0.9,0.7], alpha=0.8)", 2, slow_rq, false, false},
    {"rq(l=0.9, alpha=3e6)", 2, slow_rq_limit, false, false},
    {"periodic(l=[1.1,0.8], p=[0.9,1.4])", 2, slow_periodic, false, false},
    {"periodic(l=1.1, p=1.3, form=gpytorch)", 3, slow_periodic_gpytorch, false, false},
    {"linear(v=[0.5,1.5,0.7])", 3, slow_linear, false, false},
    {"linear(v=0.5)", 3, slow_linear_one, false, false},
    {"poly(q=3, c=0.7)", 2, slow_poly, false, false},
    {"cosine(p=[1.5,2.5,3])", 3, slow_cosine, false, false},
    {"on(2; cosine(p=1.5, form=gpytorch))", 3, slow_cosine_gpytorch, false, false},
    {"sm(q=2, w=[0.5,1.2], mu=[0.3,0.6,0.2,0.5], v=[0.05,0.02,0.1,0.07])", 2, slow_sm, false,
     false},
    {"sm(q=2, w=[0.5,1.2], mu=[0.3,0.6,0.2,0.5], s=[0.2,0.15,0.3,0.2], form=gpytorch)", 2,
     slow_sm_gpytorch, false, false},
    {"const(v=0.4) + white(v=0.3)", 2, slow_const_white, false, false},
    {"1.3*rbf(l=1.4)*(linear(v=[0.3,0.8,0.5]) + 0.5*on(2; periodic(l=1.2, "
     "p=0.8))*(matern32(l=[1,2,1.5]) + "
     "white(v=0.2))) + const(v=0.6)",
     3, slow_deep, false, true},
    {"rbf(l=1.4)*matern12(l=2)*rq(l=1.5, alpha=2)*on(1; cosine(p=2.2))", 2, slow_product, true,
     true},
    {"0.8*on(3,1; rbf(l=[0.7,1.3])) + on(x2; matern12(l=0.4))", 3, slow_columns, true, false},
    {"0.9*on(2,3; user)*rbf(l=2)", 3, slow_user, true, true},
};
enum { EXAMPLES = sizeof examples / sizeof *examples };

static const frg_gp_user_kernel *user_of(const example *e)
{
    return strstr(e->text, "user") ? &user_kernel : NULL;
}

static double slow_value(const setting *s, const example *e, ptrdiff_t i, ptrdiff_t j)
{
    return e->k(s->x + i * s->d, s->x + j * s->d, (int)s->d, s->theta, i == j);
}

/** f64: the exponent s is a sum of d squares of differences whose coordinates were scaled and
 *  centred before, each rounded to u: |x/l| <= 8 in these data, so s errs by d 2 D 8 u <= 200 u and
 *  k by half of that; 1e-13 in all. f32 in the same way with 2^-24, and up to 16 factors: 2e-4. */
static void values(void)
{
    for (int c = 0; c < EXAMPLES; c++) {
        for (int type = 0; type < 2; type++) {
            const example *const e = &examples[c];
            setting s;
            if (open_setting(&s, e->text, N, e->d, type ? FRG_F32 : FRG_F64, test_now.threads,
                             user_of(e))) {
                double worst = 0, size = 1;
                CHECK_OK(s.ctx, frgi_gp_build(s.ctx, s.bound, &s.m, s.kept));
                for (ptrdiff_t i = 0; i < N; i++) {
                    for (ptrdiff_t j = 0; j <= i; j++) {
                        const double want = slow_value(&s, e, i, j), got = entry(&s, s.a, i, j);
                        size = fmax(size, fabs(want));
                        worst = fmax(worst, fabs(got - want));
                        if (isnan(got))
                            worst = HUGE_VAL;
                    }
                }
                CHECK_SAYS(worst <= size * (type ? 2e-4 : 1e-13), "%s, %s: error %.3g", e->text,
                           type ? "f32" : "f64", worst / size);
            }
            close_setting(&s);
        }
    }
}

/** A symmetric P with entries in [-1, 1], diagonal too; sizes: sum |P_ij C_ij|. */
static void random_weights(setting *s, void *p)
{
    for (ptrdiff_t i = 0; i < s->n; i++) {
        for (ptrdiff_t j = 0; j <= i; j++) {
            const double v = 2 * test_uniform() - 1;
            if (frgi_spd_dtype(&s->m) == FRG_F64)
                ((double *)p)[place(&s->m, i, j)] = v;
            else
                ((float *)p)[place(&s->m, i, j)] = (float)v;
        }
    }
}

/** 1/2 sum P C, and the sum of absolute terms. */
static double objective(setting *s, const void *p, double *size)
{
    double sum = 0;
    *size = 0;
    CHECK_OK(s->ctx, frgi_gp_build(s->ctx, s->bound, &s->m, NULL));
    for (ptrdiff_t i = 0; i < s->n; i++) {
        for (ptrdiff_t j = 0; j <= i; j++) {
            const double term = (i == j ? 0.5 : 1) * entry(s, p, i, j) * entry(s, s->a, i, j);
            sum += term;
            *size += fabs(term);
        }
    }
    return sum;
}

/** The sums of the last pass over all stretches of GP_ROWS rows have the bits of one tree. */
static void check_tree(const setting *s, const char *text, const double *gradient, double trace)
{
    const frgi_spd_layout *const m = &s->m.layout;
    const ptrdiff_t stretches = (m->tile + GP_ROWS - 1) / GP_ROWS * m->tiles;
    const int stride = s->bound->program.n_parameters + 1;
    for (int t = 0; t < stride; t++) {
        frgi_tree_sum sum = {0};
        for (ptrdiff_t u = 0; u < stretches; u++)
            frgi_tree_add(&sum, s->bound->partial[u * stride + t]);
        CHECK_SAYS((t < stride - 1 ? gradient[t] : trace) == frgi_tree_total(&sum),
                   "%s: sum %d of %d is another", text, t, stride);
    }
}

static void gradients(void)
{
    for (int c = 0; c < EXAMPLES; c++) {
        const example *const e = &examples[c];
        setting s;
        if (!open_setting(&s, e->text, N, e->d, FRG_F64, test_now.threads, user_of(e))) {
            close_setting(&s);
            continue;
        }
        void *const p = aligned(frgi_spd_bytes(frgi_spd_order(&s.m), frgi_spd_dtype(&s.m)));
        double gradient[64], trace, size;
        random_weights(&s, p);
        const frgi_gp_pass pass = {.inverse = &(frgi_spd){.layout = s.m.layout, .elements = p},
                                   .gradient = gradient,
                                   .trace = &trace,
                                   .kept = s.kept};
        CHECK_OK(s.ctx, frgi_gp_build(s.ctx, s.bound, &s.m, s.kept));
        CHECK_OK(s.ctx, frgi_gp_run_pass(s.ctx, s.bound, &pass));
        check_tree(&s, e->text, gradient, trace);
        const double f = objective(&s, p, &size);
        CHECK_SAYS(fabs(trace - 2 * f) <= 1e-12 * size, "%s: trace %.17g, expected %.17g", e->text,
                   trace, 2 * f);
        for (int t = 0; t < s.params.count; t++) {
            const double old = s.theta[t], h = 1e-5;
            double ignored;
            s.theta[t] = old * exp(h);
            rebind(&s);
            const double up = objective(&s, p, &ignored);
            s.theta[t] = old * exp(-h);
            rebind(&s);
            const double down = objective(&s, p, &ignored), want = (up - down) / (2 * h);
            s.theta[t] = old;
            CHECK_SAYS(fabs(gradient[t] - want) <= 1e-6 * size,
                       "%s: %s[%d] %.12g, expected %.12g (%.3g)", e->text, s.params.p[t].name,
                       s.params.p[t].entry, gradient[t], want, fabs(gradient[t] - want) / size);
        }
        free(p);
        close_setting(&s);
    }
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/** sum_j P_ij k(x_i, x_j) with x_i replaced by z; the point with itself counts half. */
static double row_sum(const setting *s, const example *e, const void *p, ptrdiff_t i,
                      const double *z)
{
    double sum = 0;
    for (ptrdiff_t j = 0; j < s->n; j++) {
        if (i == j)
            sum += 0.5 * entry(s, p, i, i) * e->k(z, z, (int)s->d, s->theta, true);
        else
            sum += entry(s, p, i, j) * e->k(z, s->x + j * s->d, (int)s->d, s->theta, false);
    }
    return sum;
}

/** Differences of the slow text with step 1e-5: third derivatives up to 1e3 cost 2e-8 a term,
 *  rounding 1e-11. */
static void inputs(void)
{
    for (int c = 0; c < EXAMPLES; c++) {
        const example *const e = &examples[c];
        setting s;
        const ptrdiff_t n = 70;
        if (e->no_dx || !open_setting(&s, e->text, n, e->d, FRG_F64, test_now.threads, NULL))
            continue;
        void *const p = aligned(frgi_spd_bytes(frgi_spd_order(&s.m), frgi_spd_dtype(&s.m)));
        double *const dx = malloc(sizeof *dx * (size_t)(n * s.d)), gradient[64];
        random_weights(&s, p);
        const frgi_gp_pass pass = {.inverse = &(frgi_spd){.layout = s.m.layout, .elements = p},
                                   .gradient = gradient,
                                   .dx = dx};
        CHECK_OK(s.ctx, frgi_gp_run_pass(s.ctx, s.bound, &pass));
        for (ptrdiff_t i = 0; i < n; i += 13) {
            for (ptrdiff_t k = 0; k < s.d; k++) {
                double z[8];
                memcpy(z, s.x + i * s.d, sizeof *z * (size_t)s.d);
                z[k] += 1e-5;
                const double up = row_sum(&s, e, p, i, z);
                z[k] -= 2e-5;
                const double want = (up - row_sum(&s, e, p, i, z)) / 2e-5;
                CHECK_SAYS(fabs(dx[i * s.d + k] - want) <= 1e-6 * (double)n,
                           "%s: dx[%td][%td] %.12g, expected %.12g", e->text, i, k, dx[i * s.d + k],
                           want);
            }
        }
        free(p);
        free(dx);
        close_setting(&s);
    }
}

/** A user's kernel is refused; at the corner of matern12 the derivative is taken as 0. */
static void corners(void)
{
    setting s;
    double dx[3 * 10], gradient[4];
    if (open_setting(&s, "user", 10, 3, FRG_F64, 1, &user_kernel)) {
        const frgi_gp_pass pass = {.inverse = &s.m, .gradient = gradient, .dx = dx};
        random_weights(&s, s.a);
        CHECK_STATUS(frgi_gp_run_pass(s.ctx, s.bound, &pass), FRG_UNSUPPORTED);
    }
    close_setting(&s);
    if (open_setting(&s, "matern12(l=1)", 10, 3, FRG_F64, 1, NULL)) {
        const frgi_gp_pass pass = {.inverse = &s.m, .gradient = gradient, .dx = dx};
        for (int i = 0; i < 30; i++)
            ((double *)s.columns)[i % 3 * s.points.ld + i / 3] = 0.5;
        rebind(&s);
        random_weights(&s, s.a);
        CHECK_OK(s.ctx, frgi_gp_run_pass(s.ctx, s.bound, &pass));
        for (int i = 0; i < 30; i++)
            CHECK(dx[i] == 0);
        CHECK(gradient[0] == 0);
        CHECK(!frgi_gp_kernel_smooth(s.kernel));
    }
    close_setting(&s);
}

/* ---- new points ------------------------------------------------------------------------------ */

enum { M = 75 };

static void check_derivatives(const setting *s, const example *e, const frgi_gp_points *p,
                              const double *z)
{
    static double weight[N * M], gx[M * 8], self_dx[M * 8];
    for (int i = 0; i < N * M; i++)
        weight[i] = test_uniform();
    CHECK_OK(s->ctx, frgi_gp_cross_dx(s->ctx, s->bound, p, 0, M, weight, M, gx));
    frgi_gp_self_dx(s->bound, p, 0, M, self_dx);
    for (int i = 1; i < M; i += 17) {
        for (ptrdiff_t k = 0; k < s->d; k++) {
            double sum[2] = {0, 0}, own[2], at[8];
            for (int side = 0; side < 2; side++) {
                memcpy(at, z + i * s->d, sizeof *at * (size_t)s->d);
                at[k] += side ? 1e-5 : -1e-5;
                for (ptrdiff_t j = 0; j < N; j++)
                    sum[side] +=
                        weight[i + j * M] * e->k(at, s->x + j * s->d, (int)s->d, s->theta, false);
                own[side] = e->k(at, at, (int)s->d, s->theta, false);
            }
            CHECK_NEAR(gx[i * s->d + k] / N, (sum[1] - sum[0]) / 2e-5 / N, 1e-6);
            CHECK_NEAR(self_dx[i * s->d + k], (own[1] - own[0]) / 2e-5, 1e-6);
        }
    }
}

static void new_points(void)
{
    for (int c = 0; c < EXAMPLES; c++) {
        const example *const e = &examples[c];
        setting s;
        if (!open_setting(&s, e->text, N, e->d, FRG_F64, test_now.threads, user_of(e)))
            continue;
        double *const z = random_points(M, s.d), *const columns = malloc(sizeof(double) *
                                                                         (size_t)(s.d * (M + 3)));
        static double cross[N * (M + 2)], self[M];
        frgi_gp_points p;
        memcpy(z, s.x, sizeof *z * (size_t)s.d); /* a training point: white has no say in it */
        fill_points(&s, z, M, FRG_F64, columns, &p);
        CHECK_OK(s.ctx, frgi_gp_cross(s.ctx, s.bound, &p, 2, M - 2, cross, M + 2));
        for (ptrdiff_t i = 2; i < M; i++)
            for (ptrdiff_t j = 0; j < N; j++)
                CHECK_NEAR(cross[i - 2 + j * (M + 2)],
                           e->k(z + i * s.d, s.x + j * s.d, (int)s.d, s.theta, false), 1e-12);
        CHECK_OK(s.ctx, frgi_gp_cross(s.ctx, s.bound, &p, 0, 1, cross, 1));
        CHECK_NEAR(cross[0], e->k(z, s.x, (int)s.d, s.theta, false), 1e-12);
        frgi_gp_self(s.bound, &p, 1, M - 1, self);
        for (ptrdiff_t i = 1; i < M; i++)
            CHECK_NEAR(self[i - 1], e->k(z + i * s.d, z + i * s.d, (int)s.d, s.theta, false),
                       1e-12);
        if (user_of(e))
            CHECK_STATUS(frgi_gp_cross_dx(s.ctx, s.bound, &p, 0, 1, cross, 1, self),
                         FRG_UNSUPPORTED);
        if (!e->no_dx)
            check_derivatives(&s, e, &p, z);
        free(z);
        free(columns);
        close_setting(&s);
    }
}

/** What white adds to the diagonal. */
static void white(void)
{
    static const struct {
        const char *text;
        double want;
    } all[] = {{"rbf(l=1)", 0},
               {"rbf(l=1) + white(v=0.3)", 0.3},
               {"2*(rbf(l=1) + white(v=0.3))*const(v=3) + on(1; white(v=0.1))", 1.9},
               {"sm(q=2, w=[1,2], mu=1, v=1)*white(v=0.5)", 1.5},
               {"sm(q=2, w=[1,2], mu=1, s=1, form=gpytorch)*white(v=0.5)", 4.5},
               {"on(1; linear(v=2))*white(v=0.5)", NAN /* x^2 */}};
    for (size_t c = 0; c < sizeof all / sizeof *all; c++) {
        setting s;
        double got[5], *const columns = malloc(sizeof(double) * 2 * (5 + 3));
        frgi_gp_points p;
        if (open_setting(&s, all[c].text, 5, 2, FRG_F64, 1, NULL)) {
            fill_points(&s, s.x, 5, FRG_F64, columns, &p);
            frgi_gp_white(s.bound, &p, 1, 4, got);
            for (int i = 0; i < 4; i++) {
                const double x = s.x[2 * (i + 1)];
                CHECK_NEAR(got[i], isnan(all[c].want) ? x * x : all[c].want, 1e-14);
            }
        }
        free(columns);
        close_setting(&s);
    }
}

/* ---- weights and products -------------------------------------------------------------------- */

enum { LONG = 401 };

/** W entry by entry. */
static void whole_weights(const setting *s, const frgi_gp_pass *parts, const void *p, double *whole)
{
    const double *const alpha = parts->alpha, *const beta = parts->beta;
    for (ptrdiff_t i = 0; i < LONG; i++) {
        for (ptrdiff_t j = 0; j <= i; j++) {
            double w = -(double)parts->q * entry(s, p, i, j);
            for (ptrdiff_t c = 0; c < parts->q; c++) {
                const double *const a = alpha + c * LONG, *const b = beta ? beta + c * LONG : a;
                w += 0.5 * (a[i] * b[j] + b[i] * a[j]);
            }
            for (ptrdiff_t c = 0; c < parts->extra_q; c++)
                w += parts->extra[c * LONG + i] * parts->extra[c * LONG + j];
            whole[place(&s->m, i, j)] = w;
        }
    }
}

/** W from alpha, beta, the inverse and extra columns equals the same matrix given whole. */
static void weights(void)
{
    static const char *const texts[] = {"1.3*matern52(l=[0.7,1.2])*rq(l=1, alpha=2)",
                                        "1.3*matern52(l=[0.7,1.2])", "1.3*rbf(l=0.7)"};
    static double alpha[2 * LONG], beta[2 * LONG], extra[3 * LONG], dx[2][2 * LONG];
    for (int i = 0; i < 2 * LONG; i++) {
        alpha[i] = test_normal();
        beta[i] = test_normal();
    }
    for (int i = 0; i < 3 * LONG; i++)
        extra[i] = test_normal();
    for (int c = 0; c < 3 * 4; c++) {
        setting s;
        if (!open_setting(&s, texts[c / 4], LONG, 2, FRG_F64, test_now.threads, NULL))
            return;
        void *const p = aligned(frgi_spd_bytes(frgi_spd_order(&s.m), frgi_spd_dtype(&s.m)));
        void *const whole = aligned(frgi_spd_bytes(frgi_spd_order(&s.m), frgi_spd_dtype(&s.m)));
        double gradient[2][16], trace[2];
        const int kind = c % 4;
        random_weights(&s, p);
        const frgi_gp_pass parts = {.inverse = &(frgi_spd){.layout = s.m.layout, .elements = p},
                                    .alpha = alpha,
                                    .beta = kind >= 2 ? beta : NULL,
                                    .q = kind == 0 ? 1 : 2,
                                    .extra = kind == 3 ? extra : NULL,
                                    .extra_q = kind == 3 ? 3 : 0,
                                    .gradient = gradient[0],
                                    .trace = &trace[0],
                                    .dx = dx[0]};
        whole_weights(&s, &parts, p, whole);
        const frgi_gp_pass one = {.inverse = &(frgi_spd){.layout = s.m.layout, .elements = whole},
                                  .gradient = gradient[1],
                                  .dx = dx[1],
                                  .trace = &trace[1]};
        CHECK_OK(s.ctx, frgi_gp_run_pass(s.ctx, s.bound, &parts));
        CHECK_OK(s.ctx, frgi_gp_run_pass(s.ctx, s.bound, &one));
        for (int t = 0; t < s.params.count; t++) /* n^2 terms of size 1 to 10 */
            CHECK_SAYS(fabs(gradient[0][t] - gradient[1][t]) <= 1e-12 * LONG * LONG,
                       "kind %d: %.17g, %.17g", kind, gradient[0][t], gradient[1][t]);
        for (int i = 0; i < 2 * LONG; i++)
            CHECK_NEAR(dx[0][i], dx[1][i], 1e-11);
        const double given = 42;
        frgi_gp_pass with_scale = parts;
        with_scale.scale = &given;
        CHECK_OK(s.ctx, frgi_gp_run_pass(s.ctx, s.bound, &with_scale));
        CHECK(gradient[0][0] == 42 && frgi_gp_kernel_scale(s.kernel) == 0);
        free(p);
        free(whole);
        close_setting(&s);
    }
}

static void products(void)
{
    for (int c = 0; c < EXAMPLES; c++) {
        const example *const e = &examples[c];
        setting s;
        if (!open_setting(&s, e->text, N, e->d, FRG_F64, test_now.threads, user_of(e)))
            continue;
        double a[N], *const v = malloc(sizeof *v * (size_t)(s.params.count * N));
        for (int i = 0; i < N; i++)
            a[i] = test_normal();
        CHECK_OK(s.ctx, frgi_gp_derivative_products(s.ctx, s.bound, &s.m, a, v));
        for (int t = 0; t < s.params.count; t++) {
            const double old = s.theta[t];
            double want[N] = {0};
            for (int side = -1; side < 2; side += 2) {
                s.theta[t] = old * exp(side * 1e-5);
                rebind(&s);
                CHECK_OK(s.ctx, frgi_gp_build(s.ctx, s.bound, &s.m, NULL));
                for (int i = 0; i < N; i++)
                    for (int j = 0; j < N; j++)
                        want[i] += side * entry(&s, s.a, i, j) * a[j] / 2e-5;
            }
            s.theta[t] = old;
            for (int i = 0; i < N; i++) /* 83 terms of size up to 10 */
                CHECK_SAYS(fabs(v[t * N + i] - want[i]) <= 1e-6 * N,
                           "%s: parameter %d, row %d: %.12g, %.12g", e->text, t, i, v[t * N + i],
                           want[i]);
        }
        free(v);
        close_setting(&s);
    }
}

/* ---- the same bits, other precisions, other places ------------------------------------------- */

typedef struct {
    double gradient[16], dx[3 * LONG], trace, v[8 * LONG];
    void *built;
} outcome;

static size_t run_all(const char *text, frg_dtype dtype, int n_threads, outcome *o)
{
    setting s;
    if (!open_setting(&s, text, LONG, 3, dtype, n_threads, NULL))
        return 0;
    const size_t bytes = frgi_spd_bytes(frgi_spd_order(&s.m), frgi_spd_dtype(&s.m));
    const double a[LONG] = {1, 2, 3};
    memset(o, 0, sizeof *o);
    o->built = aligned(bytes);
    CHECK_OK(s.ctx, frgi_gp_build(s.ctx, s.bound,
                                  &(frgi_spd){.layout = s.m.layout, .elements = o->built}, s.kept));
    random_weights(&s, s.a);
    const frgi_gp_pass pass = {
        .inverse = &s.m, .kept = s.kept, .gradient = o->gradient, .dx = o->dx, .trace = &o->trace};
    CHECK_OK(s.ctx, frgi_gp_run_pass(s.ctx, s.bound, &pass));
    CHECK_OK(s.ctx, frgi_gp_derivative_products(s.ctx, s.bound, &s.m, a, o->v));
    close_setting(&s);
    return bytes;
}

static void threads(void)
{
    static const char *const texts[] = {
        "1.2*rbf(l=0.7)", "matern52(l=[0.7,1,2])", "0.3*rq(l=1,alpha=1)",
        "1.3*rbf(l=1.4)*(linear(v=0.3) + periodic(l=1, p=2)) + white(v=0.1)"};
    static outcome one, many;
    for (size_t c = 0; c < sizeof texts / sizeof *texts; c++) {
        for (int type = 0; type < 2; type++) {
            const uint64_t seed = test_now.random;
            const frg_dtype dtype = type ? FRG_F32 : FRG_F64;
            const size_t bytes = run_all(texts[c], dtype, 1, &one);
            for (int n_threads = 2; n_threads <= 5; n_threads += 3) {
                test_now.random = seed;
                if (!CHECK(run_all(texts[c], dtype, n_threads, &many) == bytes))
                    return;
                CHECK_BITS(many.built, one.built, bytes);
                free(many.built);
                many.built = one.built;
                CHECK_BITS(&many, &one, sizeof one);
            }
            free(one.built);
        }
    }
}

/** "1.3*NAME(l=4)" or with a length a column, 4 to 5. */
static void write_wide(char *text, size_t room, const char *name, ptrdiff_t d, bool ard)
{
    int at = snprintf(text, room, "1.3*%s(l=%s", name, ard ? "[" : "4");
    for (ptrdiff_t k = 0; ard && k < d; k++)
        at += snprintf(text + at, room - (size_t)at, "%s%.2f", k ? "," : "",
                       4 + (double)k / (double)d);
    snprintf(text + at, room - (size_t)at, "%s)", ard ? "]" : "");
}

/** C and dC/dlog l_k / u_k^2 at s, variance 1.3. */
static void wide_leaf(int leaf, double s, double *value, double *slope)
{
    const double c = sqrt(5 * s), e = 1.3 * exp(leaf ? -c : -s / 2);
    *value = leaf ? (1 + c + c * c / 3) * e : e;
    *slope = leaf ? 5.0 / 3 * (1 + c) * e : e;
}

/** Many columns of x: more than the compiler knows by number, than a block, than from where squares
 *  are kept.  Against loops over all pairs; where squares are kept, the bits of a pass that
 *  computes them again.  Errors as above: f64 d u a pair, f32 2e-4. */
static void wide(void)
{
    static const int dims[] = {8, 9, 24, 25, 33, WIDEST};
    static const char *const leaves[] = {"rbf", "matern52"};
    for (int c = 0; c < 6 * 8; c++) {
        if (!test_turn(c, 4))
            continue;
        const ptrdiff_t d = dims[c / 8];
        const int leaf = c / 4 % 2;
        const bool ard = c / 2 % 2, single = c % 2;
        char text[1024];
        setting s;
        write_wide(text, sizeof text, leaves[leaf], d, ard);
        if (!open_setting(&s, text, LONG, d, single ? FRG_F32 : FRG_F64, test_now.threads, NULL))
            return;
        void *const p = aligned(frgi_spd_bytes(frgi_spd_order(&s.m), frgi_spd_dtype(&s.m)));
        double gradient[2][WIDEST + 1], trace[2], want[WIDEST + 1] = {0}, size[WIDEST + 1] = {0};
        random_weights(&s, p);
        CHECK_OK(s.ctx, frgi_gp_build(s.ctx, s.bound, &s.m, s.kept));
        for (int again = 0; again < 2; again++) {
            const frgi_gp_pass pass = {.inverse = &(frgi_spd){.layout = s.m.layout, .elements = p},
                                       .kept = again ? NULL : s.kept,
                                       .gradient = gradient[again],
                                       .trace = &trace[again]};
            CHECK_OK(s.ctx, frgi_gp_run_pass(s.ctx, s.bound, &pass));
        }
        double worst = 0;
        for (ptrdiff_t i = 0; i < LONG; i++) {
            for (ptrdiff_t j = 0; j <= i; j++) {
                const double *const x = s.x + i * d, *const z = s.x + j * d;
                const double half = (i == j ? 0.5 : 1) * entry(&s, p, i, j);
                double value, slope;
                wide_leaf(leaf, scaled(x, z, (int)d, s.theta + 1, ard), &value, &slope);
                worst = fmax(worst, fabs(entry(&s, s.a, i, j) - value));
                want[0] += half * value;
                size[0] += fabs(half * value);
                for (ptrdiff_t k = 0; k < d; k++) {
                    const double u = (x[k] - z[k]) / s.theta[1 + (ard ? k : 0)];
                    want[1 + (ard ? k : 0)] += half * slope * u * u;
                    size[1 + (ard ? k : 0)] += fabs(half * slope * u * u);
                }
            }
        }
        CHECK_SAYS(worst <= (single ? 2e-4 : 1e-13), "%s of %td: error %.3g", text, d, worst);
        CHECK_NEAR((trace[0] - 2 * want[0]) / size[0], 0, single ? 2e-4 : 1e-12);
        for (int t = 0; t < s.params.count; t++)
            CHECK_SAYS(fabs(gradient[0][t] - want[t]) <= (single ? 2e-4 : 1e-12) * size[t],
                       "%s of %td: parameter %d is %.17g, expected %.17g", text, d, t,
                       gradient[0][t], want[t]);
        if (d >= 25 && (leaf || !ard))
            CHECK_BITS(gradient[0], gradient[1], sizeof(double) * (size_t)s.params.count);
        free(p);
        close_setting(&s);
    }
}

/** f32: entries of C err by 2e-4 (see values), so sums by no more than the sum of absolute terms
 *  times that. */
static void single_precision(void)
{
    for (int c = 0; c < EXAMPLES; c++) {
        const example *const e = &examples[c];
        double gradient[2][64], size[2] = {1, 1}, trace[2];
        int count = 0;
        const uint64_t seed = test_now.random;
        for (int type = 0; type < 2; type++) {
            setting s;
            test_now.random = seed;
            if (!open_setting(&s, e->text, N, e->d, type ? FRG_F32 : FRG_F64, test_now.threads,
                              user_of(e)))
                return;
            void *const p = aligned(frgi_spd_bytes(frgi_spd_order(&s.m), frgi_spd_dtype(&s.m)));
            random_weights(&s, p);
            const frgi_gp_pass pass = {.inverse = &(frgi_spd){.layout = s.m.layout, .elements = p},
                                       .gradient = gradient[type],
                                       .kept = s.kept,
                                       .trace = &trace[type]};
            CHECK_OK(s.ctx, frgi_gp_build(s.ctx, s.bound, &s.m, s.kept));
            CHECK_OK(s.ctx, frgi_gp_run_pass(s.ctx, s.bound, &pass));
            objective(&s, p, &size[type]);
            count = s.params.count;
            free(p);
            close_setting(&s);
        }
        for (int t = 0; t < count; t++)
            CHECK_SAYS(fabs(gradient[0][t] - gradient[1][t]) <= 2e-4 * size[0],
                       "%s: parameter %d: %.9g, f32 %.9g", e->text, t, gradient[0][t],
                       gradient[1][t]);
        CHECK_SAYS(fabs(trace[0] - trace[1]) <= 2e-4 * size[0], "%s: trace %.9g, f32 %.9g", e->text,
                   trace[0], trace[1]);
    }
}

/** sum_i x_ik df/dx_ik + df/dlog l_k = 0: scaling column k and its length together changes nothing.
 *  For cosine and periodic the period takes the length's place. */
static void scale_identity(void)
{
    static const struct {
        const char *text;
        int first; /* parameter of column 0 */
    } all[] = {{"rbf(l=[0.5,0.9,1.3])", 0},
               {"2*matern32(l=[0.5,0.9,1.3])", 1},
               {"matern52(l=[0.5,0.9,1.3])", 0},
               {"rq(l=[0.5,0.9,1.3], alpha=0.7)", 0},
               {"periodic(l=[0.5,0.9,1.3], p=[1,2,3])", 3},
               {"cosine(p=[1,2,3])", 0}};
    for (size_t c = 0; c < sizeof all / sizeof *all; c++) {
        setting s;
        if (!open_setting(&s, all[c].text, N, 3, FRG_F64, test_now.threads, NULL))
            return;
        void *const p = aligned(frgi_spd_bytes(frgi_spd_order(&s.m), frgi_spd_dtype(&s.m)));
        static double dx[3 * N], gradient[16];
        random_weights(&s, p);
        const frgi_gp_pass pass = {.inverse = &(frgi_spd){.layout = s.m.layout, .elements = p},
                                   .gradient = gradient,
                                   .dx = dx};
        CHECK_OK(s.ctx, frgi_gp_run_pass(s.ctx, s.bound, &pass));
        for (int k = 0; k < 3; k++) {
            double sum = gradient[all[c].first + k], size = 1;
            for (int i = 0; i < N; i++) {
                sum += s.x[i * 3 + k] * dx[i * 3 + k];
                size += fabs(s.x[i * 3 + k] * dx[i * 3 + k]);
            }
            CHECK_SAYS(fabs(sum) <= 1e-12 * size, "%s, column %d: %.3g of %.3g", all[c].text, k,
                       sum, size);
        }
        free(p);
        close_setting(&s);
    }
}

static void check_extreme(const char *text, frg_dtype dtype, bool vanishes)
{
    setting s;
    double gradient[8], dx[2 * 20], trace;
    if (!open_setting(&s, text, 20, 2, dtype, 1, NULL))
        return;
    const size_t size = frg_sizeof(dtype);
    for (int k = 0; k < 2; k++) { /* points 0 and 1 coincide */
        char *const column = (char *)s.columns + (size_t)(k * s.points.ld) * size;
        memcpy(column + size, column, size);
    }
    rebind(&s);
    CHECK_OK(s.ctx, frgi_gp_build(s.ctx, s.bound, &s.m, s.kept));
    for (int i = 0; i < 20; i++) {
        CHECK_SAYS(entry(&s, s.a, i, i) == (dtype == FRG_F64 ? 1.7 : (double)1.7F), "%s: diagonal",
                   text);
        for (int j = 0; j < i; j++) {
            const double k = entry(&s, s.a, i, j);
            CHECK_SAYS(isfinite(k), "%s: entry %d, %d is %g", text, i, j, k);
            if (i == 1 && j == 0)
                CHECK_SAYS(k == entry(&s, s.a, 0, 0), "%s: coincident points: %g", text, k);
            else if (vanishes)
                CHECK_SAYS(k == 0, "%s: entry %d, %d is %g", text, i, j, k);
        }
    }
    random_weights(&s, s.a);
    const frgi_gp_pass pass = {
        .inverse = &s.m, .kept = s.kept, .gradient = gradient, .dx = dx, .trace = &trace};
    CHECK_OK(s.ctx, frgi_gp_run_pass(s.ctx, s.bound, &pass));
    for (int t = 0; t < s.params.count; t++)
        CHECK_SAYS(isfinite(gradient[t]), "%s, %s: gradient %d is %g", text, frg_dtype_name(dtype),
                   t, gradient[t]);
    for (int i = 0; i < 40; i++)
        CHECK_SAYS(!isnan(dx[i]), "%s, %s: dx %d is %g", text, frg_dtype_name(dtype), i, dx[i]);
    CHECK(isfinite(trace));
    close_setting(&s);
}

/** Coincident points and lengths at the ends of the range: numbers, and the right ones; the
 *  diagonal is exactly the variance. */
static void extremes(void)
{
    static const struct {
        const char *format;
        bool decays; /* faster than any power */
    } leaves[] = {{"1.7*rbf(l=[%g,1])", true},
                  {"1.7*matern12(l=[%g,1])", true},
                  {"1.7*matern32(l=[%g,1])", true},
                  {"1.7*matern52(l=[%g,1])", true},
                  {"1.7*rq(l=[%g,1], alpha=1)", false},
                  {"1.7*periodic(l=[%g,1], p=3)", false},
                  {"1.7*cosine(p=[%g,1])", false},
                  {"1.7*rbf(l=%g)*rq(l=1, alpha=1)", true},
                  {"1.7*periodic(l=1, p=[%g,1])", false},
                  {"1.7*rq(l=1, alpha=%g)", false}};
    static const double lengths[] = {1e-300, 1e-30, 1e30, 1e300};
    for (size_t c = 0; c < sizeof leaves / sizeof *leaves; c++) {
        for (int l = 0; l < 4; l++) {
            char text[128];
            snprintf(text, sizeof text, leaves[c].format, lengths[l]);
            check_extreme(text, FRG_F64, leaves[c].decays && lengths[l] < 1);
            check_extreme(text, FRG_F32, leaves[c].decays && lengths[l] < 1);
        }
    }
}

/** Moving all points changes nothing once the centre is taken out, not even x = 2^20 + [0, 1] in
 *  f32. */
static void translation(void)
{
    for (int type = 0; type < 2; type++) {
        const frg_dtype dtype = type ? FRG_F32 : FRG_F64;
        setting s, far;
        const uint64_t seed = test_now.random;
        if (!open_setting(&s, "1.5*rbf(l=[0.5,1])", N, 2, dtype, 1, NULL))
            return;
        test_now.random = seed;
        if (!open_setting(&far, "1.5*rbf(l=[0.5,1])", N, 2, dtype, 1, NULL))
            return;
        for (int i = 0; i < 2 * N; i++)
            far.x[i] += 1048576;
        far.centre[0] = s.centre[0] + 1048576;
        far.centre[1] = s.centre[1] + 1048576;
        fill_points(&far, far.x, N, dtype, far.columns, &far.points);
        rebind(&far);
        CHECK_OK(s.ctx, frgi_gp_build(s.ctx, s.bound, &s.m, NULL));
        CHECK_OK(far.ctx, frgi_gp_build(far.ctx, far.bound, &far.m, NULL));
        for (int i = 0; i < N; i++) /* x itself keeps 2^-33 behind 2^20 */
            for (int j = 0; j <= i; j++)
                CHECK_NEAR(entry(&far, far.a, i, j), entry(&s, s.a, i, j), type ? 1e-5 : 1e-8);
        close_setting(&s);
        close_setting(&far);
    }
}

static const test_case cases[] = {
    {"values", values},
    {"gradients", gradients},
    {"inputs", inputs},
    {"corners", corners},
    {"new_points", new_points},
    {"white", white},
    {"weights", weights},
    {"products", products},
    {"threads", threads},
    {"single_precision", single_precision},
    {"wide", wide},
    {"scale_identity", scale_identity},
    {"extremes", extremes},
    {"translation", translation},
};
TEST_MAIN(cases)
