/* test_soap_forms.c - closed forms, the basis invariant, saved states, views, and what must be
 * refused. */
#include <unistd.h>

#include "fault.h"
#include "soap_data.h"

enum { ROOM = 4096 };

static frg_soap_opts options(frg_soap_profile profile)
{
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, profile);
    o.lr = 0.1;
    o.weight_decay = 0;
    return o;
}

/* ---- closed forms ---------------------------------------------------------------------------- */

/** 1 x 1 and diagonal gradients: the bases are permutations, SOAP is Adam: W = -lr g / (|g| + eps)
 *  at t = 1. */
static void diagonal(void)
{
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    o.eps = 1e-3;
    for (int n = 1; n <= 5; n += 4) {
        float w[25] = {0}, g[25] = {0}, plain[25] = {0};
        frg_soap_opts adam = o;
        adam.max_precond_dim = 0;
        frg_soap *soap = optimizer(ctx, &o, matrix(w, n, n));
        frg_soap *other = optimizer(ctx, &adam, matrix(plain, n, n));
        for (int t = 0; t < 10; t++) {
            for (int i = 0; i < n; i++)
                g[i * n + i] = (float)((i * 7 + 3) % 5 + 1) * (i % 2 ? -1 : 1);
            const frg_array grad = matrix(g, n, n);
            CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
            CHECK_OK(ctx, frg_soap_step(other, &grad, 1, NULL));
            for (int i = 0; i < n * n; i++)
                CHECK_NEAR((double)w[i], (double)plain[i], 1e-6);
            if (t == 0)
                CHECK_NEAR((double)w[0], -0.1 * (double)g[0] / (fabs((double)g[0]) + 1e-3), 1e-6);
        }
        frg_soap_destroy(soap);
        frg_soap_destroy(other);
    }
    frg_context_destroy(ctx);
}

/** Standard normal numbers; returns u'u. */
static double random_vector(double *u, int n)
{
    double square = 0;
    for (int i = 0; i < n; i++) {
        u[i] = test_normal();
        square += u[i] * u[i];
    }
    return square;
}

/** G = s u v': one nonzero entry in the bases, W = -lr u v' s / (s + eps). */
static void rank_one(void)
{
    enum { M = 12, N = 7 };
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    const double s = 3;
    o.eps = 1e-3 * s;
    double u[M], v[N];
    const double uu = random_vector(u, M), vv = random_vector(v, N);
    float w[M * N] = {0}, g[M * N];
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            g[i * N + j] = (float)(s * u[i] * v[j] / sqrt(uu * vv));
    frg_soap *soap = optimizer(ctx, &o, matrix(w, M, N));
    const frg_array grad = matrix(g, M, N);
    CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
    /* residues of u s = 2e-7 s over eps = 1e-3 s: 84 entries of up to 4e-4 each, rotated */
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            CHECK_NEAR((double)w[i * N + j], -0.1 * u[i] * v[j] / sqrt(uu * vv) * s / (s + o.eps),
                       2e-4);
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

/** The same G = sum_i s_i u_i v_i' at every step: bias-corrected moments are those of G, so that
 *  every direction moves by lr s_i / (s_i + eps) a step. */
static void constant(void)
{
    enum { M = 6, N = 4, STEPS = 15 };
    static const double s[N] = {4, 3, 2, 1};
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    o.eps = 0.5;
    double u[M], v[N];
    const double uu = random_vector(u, M), vv = random_vector(v, N);
    float w[M * N] = {0}, g[M * N];
    double moves[M * N];
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) { /* singular vectors: columns of I - 2 u u' / u'u */
            double sum = 0, move = 0;
            for (int k = 0; k < N; k++) {
                const double p =
                    ((i == k) - 2 * u[i] * u[k] / uu) * ((j == k) - 2 * v[j] * v[k] / vv);
                sum += s[k] * p;
                move += 0.1 * s[k] / (s[k] + o.eps) * p;
            }
            g[i * N + j] = (float)sum;
            moves[i * N + j] = move;
        }
    frg_soap *soap = optimizer(ctx, &o, matrix(w, M, N));
    const frg_array grad = matrix(g, M, N);
    for (int t = 1; t <= STEPS; t++) {
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        /* residues of 4 u s = 1e-6 off the diagonal over eps: 24 entries of 2e-6 a step, and what
         * they add up to */
        for (int i = 0; i < M * N; i++)
            CHECK_NEAR((double)w[i], -t * moves[i], 1e-5 * t);
    }
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

/** Gradients turned by orthogonal A and B: the trajectory is turned. */
static void equivariance(void)
{
    enum { N = 8 };
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    o.eps = 0.05;
    float a[N * N], b[N * N], w[N * N] = {0}, x[N * N] = {0}, g[N * N], h[N * N];
    gaussian(1, a, N * N);
    gaussian(1, b, N * N);
    const frg_qr_item items[2] = {{.a = matrix(a, N, N), .q = matrix(a, N, N)},
                                  {.a = matrix(b, N, N), .q = matrix(b, N, N)}};
    frg_qr *qr = NULL;
    CHECK_OK(ctx, frg_qr_create(&qr, ctx, 2, items, NULL));
    CHECK_OK(ctx, frg_qr_run(qr, items, NULL, NULL));
    frg_qr_destroy(qr);
    frg_soap *one = optimizer(ctx, &o, matrix(w, N, N)), *two = optimizer(ctx, &o, matrix(x, N, N));
    for (int t = 0; t < 20; t++) {
        gaussian(1, g, N * N);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0;
                for (int k = 0; k < N; k++)
                    for (int l = 0; l < N; l++)
                        sum += (double)a[i * N + k] * (double)g[k * N + l] * (double)b[l * N + j];
                h[i * N + j] = (float)sum;
            }
        const frg_array grad = matrix(g, N, N), turned = matrix(h, N, N);
        CHECK_OK(ctx, frg_soap_step(one, &grad, 1, NULL));
        CHECK_OK(ctx, frg_soap_step(two, &turned, 1, NULL));
    }
    double worst = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                for (int l = 0; l < N; l++)
                    sum += (double)a[i * N + k] * (double)w[k * N + l] * (double)b[l * N + j];
            worst = fmax(worst, fabs(sum - (double)x[i * N + j]));
        }
    /* residues of 2e-6 over eps, lr of it a step, 4e-6 a step at most; Adam would show lr */
    CHECK_SAYS(worst <= 1e-4, "turned trajectories differ by %g", worst);
    frg_soap_destroy(one);
    frg_soap_destroy(two);
    frg_context_destroy(ctx);
}

/** What rounding to f32, of u each, can have done to an entry of AdamW: bounds of the errors of m,
 *  v and W. */
typedef struct {
    double m, v, w;
} adamw_error;

/** One step of AdamW in double, and the errors that a step in f32 adds to those so far, to first
 *  order in u. */
static void adamw_step(const frg_soap_opts *o, int t, double g, double *w, double *m, double *v,
                       adamw_error *e)
{
    const double u = 0x1p-24, r1 = 1 - o->beta1, r2 = 1 - o->beta2;
    const double to_m = r1 * (g - *m), to_v = r2 * (g * g - *v);
    const double c1 = 1 - pow(o->beta1, t), c2 = 1 - pow(o->beta2, t);
    *m += to_m;
    *v += to_v;
    *w *= 1 - o->lr * o->weight_decay;
    const double above = *m / c1, root = sqrt(*v / c2), a = above / (root + o->eps);
    *w -= o->lr * a;
    e->m = o->beta1 * e->m + u * (fabs(*m) + 3 * fabs(to_m)); /* rate, difference, product; sum */
    e->v = o->beta2 * e->v + u * (*v + 3 * fabs(to_v) + r2 * g * g); /* and the square */
    /* 1 / c1 and its product, 1 / c2, its product, root, eps, sum and quotient: 7 u at most */
    const double to_a = e->m / c1 / (root + o->eps) + fabs(a) * (e->v / (2 * *v) + 7 * u);
    /* keep and its product, lr and its product, the difference */
    e->w += o->lr * to_a + u * (3 * fabs(*w) + 5 * o->lr * fabs(a));
}

/** No factors: AdamW, decay first, within the errors of its own roundings, entry by entry; and the
 *  same bits from factors that wait for a warm-up without end. */
static void adamw(void)
{
    enum { N = 60 };
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    o.max_precond_dim = 0;
    o.weight_decay = 0.1;
    float w[N], g[N], never[N];
    double exact[N], m[N] = {0}, v[N] = {0};
    adamw_error error[N] = {{0}};
    gaussian(1, w, N);
    for (int i = 0; i < N; i++)
        exact[i] = never[i] = w[i];
    frg_soap *soap = optimizer(ctx, &o, matrix(w, 6, 10));
    frg_soap_opts late = o; /* factors, but a warm-up that never ends */
    late.max_precond_dim = -1;
    late.adam_warmup_steps = 1000000;
    frg_soap *waiting = optimizer(ctx, &late, matrix(never, 6, 10));
    for (int t = 1; t <= 20; t++) {
        gaussian(1, g, N);
        const frg_array grad = matrix(g, 6, 10);
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        CHECK_OK(ctx, frg_soap_step(waiting, &grad, 1, NULL));
        CHECK_BITS(never, w, sizeof w);
        for (int i = 0; i < N; i++) {
            adamw_step(&o, t, (double)g[i], &exact[i], &m[i], &v[i], &error[i]);
            CHECK_NEAR((double)w[i], exact[i], 1.01 * error[i].w); /* some 1e-6 after 20 steps */
        }
    }
    frg_soap_destroy(soap);
    frg_soap_destroy(waiting);
    frg_context_destroy(ctx);
}

/** Entry-by-entry limits on the update's size. */
static void clip(void)
{
    static const double limits[] = {1, 0, 0.5};
    frg_context *ctx = test_context();
    for (int k = 0; k < 3; k++) {
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        o.max_precond_dim = 0;
        o.beta1 = o.beta2 = 0;
        o.correct_bias = 0;
        o.eps = 1;
        o.max_update_rms = limits[k];
        o.lr = 1;
        float w[5] = {0}, g[5] = {1, -2, 3, 0, 8};
        double d[5], sum = 0;
        frg_soap *soap = optimizer(ctx, &o, frg_vector(w, FRG_F32, 5));
        const frg_array grad = frg_vector(g, FRG_F32, 5);
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        for (int i = 0; i < 5; i++) {
            d[i] = (double)g[i] / (fabs((double)g[i]) + 1);
            sum += d[i] * d[i];
        }
        const double scale = limits[k] > 0 ? fmin(1, limits[k] / (sqrt(sum / 5) + 1e-7)) : 1;
        for (int i = 0; i < 5; i++)
            CHECK_NEAR((double)w[i], -scale * d[i], 1e-6);
        frg_soap_destroy(soap);
    }
    frg_context_destroy(ctx);
}

/** Both divisors are kept off zero by their constants, 1e-7 and 1e-30, which count where updates
 *  are as short: d = 1 / (1 + eps) with c1 = c2 = 1. */
static void short_updates(void)
{
    static const struct {
        double eps, limit;
        int normalize;
    } rows[] = {
        {1e7, 1e-7, 0}, {1e7, 1.5e-7, 0}, {1e7, 3e-7, 0}, {1e30, 0, 1},
        {1e29, 0, 1},   {1e30, 0.25, 1},  {1, 0.25, 1},
    };
    frg_context *ctx = test_context();
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        o.max_precond_dim = 0;
        o.beta1 = o.beta2 = 0;
        o.correct_bias = 0;
        o.eps = rows[k].eps;
        o.max_update_rms = rows[k].limit;
        o.normalize_update = rows[k].normalize;
        o.lr = 1;
        float w[4] = {0}, g[4] = {1, -1, -1, 1};
        frg_soap *soap = optimizer(ctx, &o, frg_vector(w, FRG_F32, 4));
        const frg_array grad = frg_vector(g, FRG_F32, 4);
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        const double d = 1 / (1 + o.eps), unit = rows[k].normalize ? d / (1e-30 + d) : d;
        const double want =
            rows[k].limit > 0 ? unit * fmin(1, rows[k].limit / (unit + 1e-7)) : unit;
        for (int i = 0; i < 4; i++) /* four roundings to f32: eps, d, the scale, the product */
            CHECK_SAYS(fabs((double)w[i] * (double)g[i] + want) <= 4 * 0x1p-24 * want,
                       "row %d: %g, expected %g", (int)k, fabs((double)w[i]), want);
        frg_soap_destroy(soap);
    }
    frg_context_destroy(ctx);
}

/* ---- the basis invariant --------------------------------------------------------------------- */

/** Every factor passes the adaptive test at every step: the moment must not stay outside its basis
 *  (what the review of the batched-QR pull request found).  Equal to the bit to a run with no
 *  refresh due. */
static void all_skip_leaves_momentum_in_its_basis(void)
{
    enum { N = 6, STEPS = 20 };
    frg_context *ctx = test_context();
    static const frg_soap_basis bases[] = {FRG_BASIS_EIGEN, FRG_BASIS_ORIGINAL};
    for (int b = 0; b < 2; b++) {
        for (int kind = 0; kind < 2;
             kind++) { /* constant diagonal gradients; any, with tolerance 1 */
            frg_soap_opts o = options(FRG_SOAP_EMERGING), never;
            o.moment1_basis = bases[b];
            never = o;
            never.precondition_frequency = 1000000;
            o.use_adaptive_criteria = 1;
            o.adaptive_tolerance = kind ? 1 : 1e-7;
            float w[N * N], x[N * N], g[N * N] = {0};
            gaussian(1, w, N * N);
            memcpy(x, w, sizeof x);
            frg_soap *one = optimizer(ctx, &o, matrix(w, N, N));
            frg_soap *two = optimizer(ctx, &never, matrix(x, N, N));
            for (int t = 0; t < STEPS; t++) {
                for (int i = 0; i < N && !kind; i++)
                    g[i * N + i] = (float)(i + 1);
                if (kind)
                    gaussian(1, g, N * N);
                const frg_array grad = matrix(g, N, N);
                frg_soap_report report;
                CHECK_OK(ctx, frg_soap_step(one, &grad, 1, &report));
                CHECK_OK(ctx, frg_soap_step(two, &grad, 1, NULL));
                if (t > 0) {
                    CHECK_INT(report.due, 2);
                    CHECK_INT(report.skipped, 2);
                }
                CHECK_BITS(w, x, sizeof w);
            }
            frg_soap_destroy(one);
            frg_soap_destroy(two);
        }
    }
    frg_context_destroy(ctx);
}

/** One parameter skips, another does not; each is what it is alone. */
static void mixed_skip(void)
{
    enum { N = 6 };
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    o.use_adaptive_criteria = 1;
    o.moment1_basis = FRG_BASIS_EIGEN;
    float w[2][N * N], alone[2][N * N], g[2][N * N] = {{0}};
    gaussian(1, w[0], 2 * N * N);
    memcpy(alone, w, sizeof w);
    frg_soap *both = optimizer(ctx, &o, matrix(w[0], N, N));
    CHECK_OK(ctx, frg_soap_add_param(both, 0, matrix(w[1], N, N), "second", NULL));
    frg_soap *each[2] = {optimizer(ctx, &o, matrix(alone[0], N, N)),
                         optimizer(ctx, &o, matrix(alone[1], N, N))};
    int64_t skipped = 0, done = 0;
    for (int t = 0; t < 12; t++) {
        for (int i = 0; i < N; i++)
            g[0][i * N + i] = (float)(i + 1);
        gaussian(1, g[1], N * N);
        const frg_array grads[2] = {matrix(g[0], N, N), matrix(g[1], N, N)};
        frg_soap_report report;
        CHECK_OK(ctx, frg_soap_step(both, grads, 2, &report));
        skipped += report.skipped;
        done += report.householder + report.single_pass;
        for (int k = 0; k < 2; k++) {
            CHECK_OK(ctx, frg_soap_step(each[k], &grads[k], 1, NULL));
            CHECK_BITS(w[k], alone[k], sizeof w[k]);
        }
    }
    CHECK_INT(skipped, 2 * 11);
    CHECK_INT(done, 1 + 2 * 11); /* the first: the second basis of a matrix follows the first one */
    frg_soap_destroy(both);
    frg_soap_destroy(each[0]);
    frg_soap_destroy(each[1]);
    frg_context_destroy(ctx);
}

/** The basis of m can be changed in the middle of a run: the same trajectory to rounding. */
static void storage_changes(void)
{
    enum { N = 8 };
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    o.eps = 0.05;
    float w[N * N] = {0}, x[N * N] = {0}, g[N * N];
    frg_soap *one = optimizer(ctx, &o, matrix(w, N, N)), *two = optimizer(ctx, &o, matrix(x, N, N));
    for (int t = 0; t < 12; t++) {
        o.moment1_basis = t / 3 % 2 ? FRG_BASIS_EIGEN : FRG_BASIS_ORIGINAL;
        CHECK_OK(ctx, frg_soap_set_group(two, 0, &o));
        gaussian(1, g, N * N);
        const frg_array grad = matrix(g, N, N);
        CHECK_OK(ctx, frg_soap_step(one, &grad, 1, NULL));
        CHECK_OK(ctx, frg_soap_step(two, &grad, 1, NULL));
        for (int i = 0; i < N * N; i++)
            CHECK_NEAR((double)w[i], (double)x[i], 1e-4); /* residues over eps, as in test_soap.c */
    }
    frg_soap_destroy(one);
    frg_soap_destroy(two);
    frg_context_destroy(ctx);
}

/** Eigenvalues cross at step 5: moments that follow and moments that stay with the rank differ. */
static void crossing(void)
{
    enum { N = 2 };
    frg_context *ctx = test_context();
    float w[2][N * N] = {{0}}, g[N * N] = {0};
    frg_soap *soap[2];
    for (int k = 0; k < 2; k++) {
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        o.moment2_order = k ? FRG_MOMENT2_RANK : FRG_MOMENT2_FOLLOW;
        o.shampoo_beta = 0.5;
        soap[k] = optimizer(ctx, &o, matrix(w[k], N, N));
    }
    for (int t = 0; t < 12; t++) {
        g[0] = t < 5 ? 2 : 0.1f;
        g[3] = t < 5 ? 1 : 3;
        const frg_array grad = matrix(g, N, N);
        for (int k = 0; k < 2; k++)
            CHECK_OK(ctx, frg_soap_step(soap[k], &grad, 1, NULL));
        if (t < 5)
            CHECK_BITS(w[0], w[1], sizeof w[0]);
    }
    CHECK(fabs((double)w[0][0] - (double)w[1][0]) > 1e-2);
    frg_soap_destroy(soap[0]);
    frg_soap_destroy(soap[1]);
    frg_context_destroy(ctx);
}

/* ---- hard gradients -------------------------------------------------------------------------- */

static void spikes(void)
{
    enum { M = 24, N = 16 };
    frg_context *ctx = test_context();
    static const double sizes[] = {1e3, 1e5, 1e25};
    for (int k = 0; k < 3; k++) {
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        float w[M * N] = {0}, g[M * N];
        frg_soap *soap = optimizer(ctx, &o, matrix(w, M, N));
        for (int t = 1; t <= 210; t++) {
            gaussian(1, g, M * N);
            for (int i = 0; i < M * N && t == 11; i++)
                g[i] *= (float)sizes[k];
            const frg_array grad = matrix(g, M, N);
            frg_soap_report report;
            float before[M * N], moved = 0;
            memcpy(before, w, sizeof w);
            CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, &report));
            CHECK(report.orthogonality <= 1e-5 && report.eigh_failures == 0);
            for (int i = 0; i < M * N; i++) {
                CHECK(isfinite(w[i]));
                moved = fmaxf(moved, fabsf(w[i] - before[i]));
            }
            /* a basis that turns leaves m large where v is small, so that steps may be long while
             * the spike is in m (in the oracle's double precision as often as here: 1 of 30 runs
             * moves an entry by 10 lr after 20 steps). Of 1e5 what is left after 190 steps is 0.05
             * * 0.95^190 * 1e5 = 0.3, and steps are Adam's: |m| <= sqrt(v) (1 - b1) / sqrt(1 - b2),
             * some lr an entry, 384 of them rotated */
            CHECK_SAYS(k == 2 || t <= 200 || moved <= 10 * (float)o.lr,
                       "spike %g, step %d: an entry moved by %g", sizes[k], t, (double)moved);
        }
        frg_soap_destroy(soap);
    }
    frg_context_destroy(ctx);
}

static void zero_gradients(void)
{
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    o.eps = 0; /* 0 / 0 is 0 */
    float w[12], first[12], g[12] = {0};
    gaussian(1, w, 12);
    memcpy(first, w, sizeof w);
    frg_soap *soap = optimizer(ctx, &o, matrix(w, 4, 3));
    const frg_array grad = matrix(g, 4, 3);
    for (int t = 0; t < 3; t++)
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
    CHECK_BITS(w, first, sizeof w);
    gaussian(1, g, 12); /* and goes on from there */
    frg_soap_report report;
    CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, &report));
    CHECK_INT(report.eigh, 1); /* and the other basis follows */
    CHECK_INT(report.householder, 1);
    for (int i = 0; i < 12; i++)
        CHECK(isfinite(w[i]));
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

static void not_finite(void)
{
    enum { N = 5 };
    frg_context *ctx = test_context();
    for (int policy = 0; policy < 2; policy++) {
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        o.nonfinite = (frg_soap_nonfinite)policy;
        float w[2][N * N], before[2][N * N], g[2][N * N];
        gaussian(1, w[0], 2 * N * N);
        frg_soap *soap = optimizer(ctx, &o, matrix(w[0], N, N));
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(w[1], N, N), "second", NULL));
        const frg_array grads[2] = {matrix(g[0], N, N), matrix(g[1], N, N)};
        gaussian(1, g[0], 2 * N * N);
        CHECK_OK(ctx, frg_soap_step(soap, grads, 2, NULL));
        g[1][3] = policy ? INFINITY : NAN;
        memcpy(before, w, sizeof w);
        frg_soap_report report;
        const frg_status s = frg_soap_step(soap, grads, 2, &report);
        int64_t steps[2];
        for (int i = 0; i < 2; i++)
            CHECK_OK(ctx, frg_soap_state_get(soap, i, "step", frg_vector(&steps[i], FRG_I64, 1)));
        CHECK_BITS(w[1], before[1], sizeof w[1]);
        CHECK_INT(steps[1], 1);
        if (policy == FRG_NONFINITE_SKIP) {
            CHECK_INT(s, FRG_PARTIAL);
            CHECK_INT(report.nonfinite, 1);
            CHECK_INT(steps[0], 2);
            CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-SOAP-101");
            CHECK(strstr(frg_warning_message(ctx, 0), "second"));
        } else {
            CHECK_INT(s, FRG_BAD_DATA);
            CHECK(strstr(frg_message(ctx), "second"));
            CHECK_BITS(w[0], before[0], sizeof w[0]);
            CHECK_INT(steps[0], 1);
        }
        frg_soap_destroy(soap);
    }
    frg_context_destroy(ctx);
}

/* ---- independence ---------------------------------------------------------------------------- */

/** Any number of threads, together or alone: the same bits. */
static void bits(void)
{
    enum { PARAMS = 6, STEPS = 6 };
    static const int64_t shape[PARAMS][2] = {{40, 24}, {24, 24}, {7, 50},
                                             {33, 17}, {1, 30},  {64, 3}};
    float w[PARAMS][2000], first[PARAMS][2000], start[PARAMS][2000], g[STEPS][PARAMS][2000];
    for (int p = 0; p < PARAMS; p++) {
        gaussian(1, start[p], 2000);
        for (int t = 0; t < STEPS; t++)
            gaussian(1, g[t][p], 2000);
    }
    static const int threads[] = {1, 2, 3, 8, 2};
    for (int trial = 0; trial < 5; trial++) {
        frg_context *ctx = test_context_with(threads[trial], NULL, NULL);
        const bool apart = trial == 4;
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        frg_soap *soap[PARAMS] = {NULL};
        memcpy(w, start, sizeof w);
        for (int p = 0; p < PARAMS; p++) {
            const int owner = apart ? p : 0;
            if (!soap[owner])
                CHECK_OK(ctx, frg_soap_create(&soap[owner], ctx, &o));
            CHECK_OK(ctx, frg_soap_add_param(soap[owner], 0, matrix(w[p], shape[p][0], shape[p][1]),
                                             NULL, NULL));
        }
        for (int t = 0; t < STEPS; t++) {
            frg_array grads[PARAMS];
            for (int p = 0; p < PARAMS; p++)
                grads[p] = matrix(g[t][p], shape[p][0], shape[p][1]);
            if (apart)
                for (int p = 0; p < PARAMS; p++)
                    CHECK_OK(ctx, frg_soap_step(soap[p], &grads[p], 1, NULL));
            else
                CHECK_OK(ctx, frg_soap_step(soap[0], grads, PARAMS, NULL));
        }
        if (trial == 0)
            memcpy(first, w, sizeof w);
        CHECK_BITS(w, first, sizeof w);
        for (int p = 0; p < PARAMS; p++)
            frg_soap_destroy(soap[p]);
        frg_context_destroy(ctx);
    }
}

static void allocates_nothing(void)
{
    fault_memory memory;
    fault_memory_open(&memory);
    frg_context *ctx = test_context_with(2, &memory.table, NULL);
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    float w[200], g[200];
    gaussian(1, w, 200);
    frg_soap *soap = optimizer(ctx, &o, matrix(w, 20, 10));
    const frg_array grad = matrix(g, 20, 10);
    for (int t = 0; t < 5; t++) {
        gaussian(1, g, 200);
        const int64_t before = memory.calls;
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        CHECK(t < 2 || memory.calls == before);
    }
    CHECK(frg_soap_state_bytes(soap) >= 4 * (2 * 200 + 2 * (400 + 100)));
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
    CHECK_INT(memory.live_blocks, 0);
}

/* ---- types and strides ----------------------------------------------------------------------- */

static float half_of(uint16_t h, bool bf16)
{
    if (bf16) {
        const uint32_t bits = (uint32_t)h << 16;
        float x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    const double sign = h & 0x8000 ? -1 : 1;
    const int e = h >> 10 & 31;
    return (float)(sign * (e ? ldexp(1 + (h & 1023) / 1024.0, e - 15) : ldexp(h & 1023, -24)));
}

/** 16-bit parameters: each step is the f32 step from the rounded W, rounded once: 1 ulp at most. */
static void half_parameters(void)
{
    enum { N = 6 };
    frg_context *ctx = test_context();
    for (int bf16 = 0; bf16 < 2; bf16++) {
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        o.lr = 1e-2;
        uint16_t h[N * N];
        float w[N * N], g[N * N];
        for (int i = 0; i < N * N; i++) {
            h[i] = (uint16_t)((bf16 ? 0x3f80 : 0x3c00) + test_below(60)); /* 1 .. */
            w[i] = half_of(h[i], bf16);
        }
        const frg_dtype t = bf16 ? FRG_BF16 : FRG_F16;
        frg_soap *one = optimizer(ctx, &o, frg_matrix(h, t, N, N, N));
        frg_soap *two = optimizer(ctx, &o, matrix(w, N, N));
        for (int step = 0; step < 8; step++) {
            gaussian(1, g, N * N);
            const frg_array grad = matrix(g, N, N);
            for (int i = 0; i < N * N; i++)
                w[i] = half_of(h[i], bf16); /* the same start: state does not depend on W here */
            CHECK_OK(ctx, frg_soap_step(one, &grad, 1, NULL));
            CHECK_OK(ctx, frg_soap_step(two, &grad, 1, NULL));
            for (int i = 0; i < N * N; i++) {
                const double ulp = bf16 ? 0x1p-7 : 0x1p-10, got = (double)half_of(h[i], bf16);
                CHECK_SAYS(fabs(got - (double)w[i]) <= 0.51 * ulp * fmax(1, fabs(got)),
                           "%s: %g, f32 has %g", frg_dtype_name(t), got, (double)w[i]);
            }
        }
        frg_soap_destroy(one);
        frg_soap_destroy(two);
    }
    frg_context_destroy(ctx);
}

/** Updates of 1/20 unit: to the nearest they are lost; by chance they arrive in the mean.  The
 *  number of N N units gone up after T steps is binomial with variance below N N T / 20: five
 *  deviations. */
static void rounded_by_chance(void)
{
    enum { N = 40, T = 40 };
    static const int threads[] = {1, 2, 1};
    for (int bf16 = 0; bf16 < 2; bf16++) {
        static uint16_t h[3][N * N];
        const double unit = bf16 ? 0x1p-7 : 0x1p-10;
        const frg_dtype t = bf16 ? FRG_BF16 : FRG_F16;
        for (int trial = 0; trial < 3; trial++) { /* the last one rounds to the nearest */
            frg_context *ctx = test_context_with(threads[trial], NULL, NULL);
            frg_soap_opts o = options(FRG_SOAP_EMERGING);
            o.max_precond_dim = 0;
            o.weight_decay = 0;
            o.lr = unit / 20;
            o.maximize = 1; /* W grows, away from where the unit is half as large */
            o.stochastic_rounding = trial < 2;
            o.rounding_seed = 3;
            float g[N * N];
            for (int i = 0; i < N * N; i++) {
                h[trial][i] = bf16 ? 0x3f80 : 0x3c00; /* 1 */
                g[i] = 1;
            }
            frg_soap *soap = optimizer(ctx, &o, frg_matrix(h[trial], t, N, N, N));
            const frg_array grad = matrix(g, N, N);
            for (int step = 0; step < T; step++)
                CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
            frg_soap_destroy(soap);
            frg_context_destroy(ctx);
        }
        double up = 0;
        for (int i = 0; i < N * N; i++) {
            up += ((double)half_of(h[0][i], bf16) - 1) / unit;
            CHECK(h[2][i] == (bf16 ? 0x3f80 : 0x3c00));
        }
        CHECK_BITS(h[1], h[0], sizeof h[0]);
        CHECK_SAYS(fabs(up - N * N * T / 20.) <= 5 * sqrt(N * N * T / 20.), "%g units, %g expected",
                   up, N * N * T / 20.);
    }
}

static void strides(void)
{
    enum { M = 5, N = 4 };
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    float w[M * N], columns[M * N], wide[M * 9], g[M * N], h[M * N];
    gaussian(1, w, M * N);
    memset(wide, 0, sizeof wide);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            columns[j * M + i] = wide[i * 9 + 2 * j] = w[i * N + j];
    frg_array odd = frg_matrix(wide, FRG_F32, M, N, 9);
    odd.stride[1] = 2;
    frg_soap *a = optimizer(ctx, &o, matrix(w, M, N));
    frg_soap *b = optimizer(ctx, &o, frg_matrix_columns(columns, FRG_F32, M, N, M));
    frg_soap *c = optimizer(ctx, &o, odd);
    for (int t = 0; t < 6; t++) {
        gaussian(1, g, M * N);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++)
                h[j * M + i] = g[i * N + j];
        const frg_array row = matrix(g, M, N), column = frg_matrix_columns(h, FRG_F32, M, N, M);
        CHECK_OK(ctx, frg_soap_step(a, &row, 1, NULL));
        CHECK_OK(ctx, frg_soap_step(b, &column, 1, NULL));
        CHECK_OK(ctx, frg_soap_step(c, &column, 1, NULL));
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N;
                 j++) { /* W itself may be rounded once more where it is strided */
                CHECK_NEAR((double)columns[j * M + i], (double)w[i * N + j], 1e-6);
                CHECK_NEAR((double)wide[i * 9 + 2 * j], (double)w[i * N + j], 1e-6);
                CHECK(wide[i * 9 + 1] == 0);
            }
    }
    frg_soap_destroy(a);
    frg_soap_destroy(b);
    frg_soap_destroy(c);
    frg_context_destroy(ctx);
}

/** Merged: (6, 2, 3) is (6, 6); blocks of the whole length are no blocks; blocks split gradients
 *  apart. */
static void merged_and_blocked(void)
{
    frg_context *ctx = test_context();
    frg_soap_opts plain = options(FRG_SOAP_EMERGING), merged = plain, blocked = plain,
                  halves = plain;
    merged.merge_dims = 1;
    merged.max_precond_dim = 6;
    blocked.block_dim = 6;
    halves.block_dim = 3;
    float w[4][36], g[36], parts[2][18], g2[2][18];
    gaussian(1, w[0], 36);
    for (int k = 1; k < 4; k++)
        memcpy(w[k], w[0], sizeof w[0]);
    memcpy(parts, w[0], sizeof parts);
    frg_array three = {
        .data = w[1], .dtype = FRG_F32, .ndim = 3, .shape = {6, 2, 3}, .stride = {6, 3, 1}};
    frg_soap *soap[4] = {optimizer(ctx, &plain, matrix(w[0], 6, 6)), optimizer(ctx, &merged, three),
                         optimizer(ctx, &blocked, matrix(w[2], 6, 6)),
                         optimizer(ctx, &halves, matrix(w[3], 6, 6))};
    frg_array shape;
    CHECK_OK(ctx, frg_soap_state_shape(soap[3], 0, "GG.1.1", &shape));
    CHECK_INT(shape.shape[0], 3);
    CHECK_OK(ctx, frg_soap_state_shape(soap[3], 0, "GG.1.2", &shape));
    CHECK_INT(shape.ndim, 0);
    for (int t = 0; t < 8; t++) {
        gaussian(1, g, 36);
        memcpy(g2, g, sizeof g2);
        const frg_array grad = matrix(g, 6, 6);
        for (int k = 0; k < 4; k++) {
            frg_array at = grad;
            if (k == 1) {
                at = three;
                at.data = g;
            }
            CHECK_OK(ctx, frg_soap_step(soap[k], &at, 1, NULL));
        }
        CHECK_BITS(w[1], w[0], sizeof w[0]);
        CHECK_BITS(w[2], w[0], sizeof w[0]);
    }
    CHECK(memcmp(w[3], w[0], sizeof w[0]) != 0);
    for (int k = 0; k < 4; k++)
        frg_soap_destroy(soap[k]);
    frg_context_destroy(ctx);
}

/** A refresh after the step is the one within it, to the bit: over steps, in saved states at any
 *  time, with tests that skip, with options changed between steps, and where a handle is destroyed
 *  while one goes on. */
static void refresh_after_the_step(void)
{
    enum { PARAMS = 3, SIZE = 40 * 24, STEPS = 9 };
    static const int64_t shape[PARAMS][2] = {{40, 24}, {24, 40}, {7, 50}};
    static float w[2][PARAMS][SIZE], g[PARAMS][SIZE], given[PARAMS][SIZE];
    for (int kind = 0; kind < 4; kind++) {
        frg_context *ctx = test_context_with(2, NULL, NULL);
        frg_soap *soap[2];
        int64_t due[2] = {0};
        frg_soap_opts o = options(FRG_SOAP_NIKHILVYAS);
        o.precondition_frequency = kind == 1 ? 3 : 1;
        o.use_adaptive_criteria = kind == 2;
        o.adaptive_tolerance = 0.05;
        o.use_kl_shampoo = kind == 3;
        for (int p = 0; p < PARAMS; p++) {
            gaussian(1, w[0][p], SIZE);
            memcpy(w[1][p], w[0][p], sizeof w[0][p]);
        }
        for (int k = 0; k < 2; k++) {
            o.refresh_async = k;
            CHECK_OK(ctx, frg_soap_create(&soap[k], ctx, &o));
            for (int p = 0; p < PARAMS; p++)
                CHECK_OK(ctx,
                         frg_soap_add_param(soap[k], 0, matrix(w[k][p], shape[p][0], shape[p][1]),
                                            NULL, NULL));
        }
        for (int t = 0; t < STEPS; t++) {
            gaussian(1, g[0], PARAMS * SIZE);
            for (int k = 0; k < 2; k++) {
                frg_soap_report report;
                frg_array grads[PARAMS];
                memcpy(given, g, sizeof given);
                for (int p = 0; p < PARAMS; p++)
                    grads[p] = matrix(given[p], shape[p][0], shape[p][1]);
                CHECK_OK(ctx, frg_soap_step(soap[k], grads, PARAMS, &report));
                memset(given, 0xff, sizeof given); /* the gradients are the caller's again */
                due[k] += report.due;
            }
            CHECK_BITS(w[1], w[0], sizeof w[0]);
            if (t == 4) {
                int64_t bytes[2] = {0};
                char *state[2];
                for (int k = 0; k < 2; k++) {
                    CHECK_OK(ctx, frg_soap_save_bytes(soap[k], NULL, 0, &bytes[k]));
                    state[k] = malloc((size_t)bytes[k]);
                    CHECK_OK(ctx, frg_soap_save_bytes(soap[k], state[k], bytes[k], &bytes[k]));
                }
                CHECK_INT(bytes[1], bytes[0]);
                CHECK_BITS(state[1], state[0], (size_t)bytes[0]);
                free(state[0]);
                free(state[1]);
            }
        }
        frg_soap_report last;
        CHECK_OK(ctx, frg_soap_step(soap[1], (frg_array[PARAMS]){{0}}, PARAMS, &last));
        CHECK_INT(due[1] + last.due, due[0]); /* counted in the step after */
        frg_soap_destroy(soap[0]);
        frg_soap_destroy(soap[1]);
        frg_context_destroy(ctx);
    }
}

static void late_parameter(void)
{
    enum { N = 4 };
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    float w[2][N * N], x[N * N], g[2][N * N];
    gaussian(1, w[0], 2 * N * N);
    memcpy(x, w[1], sizeof x);
    frg_soap *soap = optimizer(ctx, &o, matrix(w[0], N, N)),
             *alone = optimizer(ctx, &o, matrix(x, N, N));
    CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(w[1], N, N), NULL, NULL));
    for (int t = 0; t < 8;
         t++) { /* the second one gets gradients from step 4 on: its own counter */
        gaussian(1, g[0], 2 * N * N);
        const frg_array grads[2] = {matrix(g[0], N, N),
                                    t < 4 ? (frg_array){0} : matrix(g[1], N, N)};
        CHECK_OK(ctx, frg_soap_step(soap, grads, 2, NULL));
        if (t >= 4)
            CHECK_OK(ctx, frg_soap_step(alone, &grads[1], 1, NULL));
    }
    CHECK_BITS(w[1], x, sizeof x);
    frg_soap_destroy(soap);
    frg_soap_destroy(alone);
    frg_context_destroy(ctx);
}

/* ---- the state ------------------------------------------------------------------------------- */

enum { SM = 7, SN = 5 };

static frg_soap_opts saved_options(int kind)
{
    frg_soap_opts o = options(kind == 2 ? FRG_SOAP_NIKHILVYAS : FRG_SOAP_EMERGING);
    o.precondition_frequency = 5;
    o.adam_warmup_steps = kind == 2 ? 0 : 2;
    o.moment1_basis = kind == 1 ? FRG_BASIS_ORIGINAL : FRG_BASIS_AUTO;
    return o;
}

/** Saved at every step of 12 and resumed in a new handle: the same bits at the end. */
static void resume(void)
{
    char path[256];
    snprintf(path, sizeof path, "/tmp/fourge_soap_%d.state", (int)getpid());
    for (int kind = 0; kind < 3; kind++) {
        frg_context *ctx = test_context();
        const frg_soap_opts o = saved_options(kind);
        float start[SM * SN], g[12][SM * SN], w[SM * SN], x[SM * SN];
        gaussian(1, start, SM * SN);
        gaussian(1, g[0], 12 * SM * SN);
        for (int at = 0; at <= 12; at++) {
            frg_soap *soap = NULL;
            memcpy(w, start, sizeof w);
            soap = optimizer(ctx, &o, matrix(w, SM, SN));
            for (int t = 0; t < 12; t++) {
                if (t == at) {
                    CHECK_OK(ctx, frg_soap_save(soap, path));
                    frg_soap_destroy(soap);
                    soap = optimizer(ctx, &o, matrix(w, SM, SN));
                    CHECK_OK(ctx, frg_soap_load(soap, path));
                }
                const frg_array grad = matrix(g[t], SM, SN);
                CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
            }
            if (at == 0)
                memcpy(x, w, sizeof x);
            CHECK_BITS(w, x, sizeof w);
            frg_soap_destroy(soap);
        }
        frg_context_destroy(ctx);
    }
    remove(path);
}

/** Parts read from one handle and set in another under the peers' names: the same trajectory to
 *  rounding, from GG.i and Q.i as from L, R, Q_L, Q_R. */
static void parts(void)
{
    static const char *const layouts[2][8] = {
        {"GG.0", "GG.1", "Q.0", "Q.1", "eig.0", "eig.1", "exp_avg", "exp_avg_sq"},
        {"L", "R", "Q_L", "Q_R", "eigvals_L", "eigvals_R", "exp_avg", "exp_avg_sq"}};
    for (int layout = 0; layout < 2; layout++) {
        frg_context *ctx = test_context();
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        o.eps = 0.05;
        float w[SM * SN], x[SM * SN], g[SM * SN];
        gaussian(1, w, SM * SN);
        frg_soap *one = optimizer(ctx, &o, matrix(w, SM, SN));
        const frg_array grad = matrix(g, SM, SN);
        for (int t = 0; t < 6; t++) {
            gaussian(1, g, SM * SN);
            CHECK_OK(ctx, frg_soap_step(one, &grad, 1, NULL));
        }
        memcpy(x, w, sizeof x);
        frg_soap *two = optimizer(ctx, &o, matrix(x, SM, SN));
        int64_t step = 0;
        CHECK_OK(ctx, frg_soap_state_get(one, 0, "step", frg_vector(&step, FRG_I64, 1)));
        CHECK_INT(step, 6);
        CHECK_OK(ctx, frg_soap_state_set(two, 0, "step", frg_vector(&step, FRG_I64, 1)));
        for (int k = 0; k < 8; k++) {
            double room[SM * SM];
            frg_array a;
            CHECK_OK(ctx, frg_soap_state_shape(one, 0, layouts[layout][k], &a));
            a.data = room;
            a.dtype = FRG_F64;
            CHECK_OK(ctx, frg_soap_state_get(one, 0, layouts[layout][k], a));
            CHECK_OK(ctx, frg_soap_state_set(two, 0, layouts[layout][k], a));
            if (k == 4 || k == 5) /* descending */
                for (int64_t i = 1; i < a.shape[0]; i++)
                    CHECK(room[i - 1] >= room[i]);
        }
        for (int t = 0; t < 4; t++) {
            gaussian(1, g, SM * SN);
            CHECK_OK(ctx, frg_soap_step(one, &grad, 1, NULL));
            CHECK_OK(ctx, frg_soap_step(two, &grad, 1, NULL));
            for (int i = 0; i < SM * SN; i++)
                CHECK_NEAR((double)x[i], (double)w[i], 1e-4);
        }
        frg_soap_destroy(one);
        frg_soap_destroy(two);
        frg_context_destroy(ctx);
    }
}

/** FNV-1a over words of 8 bytes, as states end with it. */
static uint64_t hash_of(const unsigned char *bytes, size_t count)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325), word = 0;
    for (size_t i = 0; i < count; i++) {
        word |= (uint64_t)bytes[i] << (8 * (i % 8));
        if (i % 8 == 7) {
            hash = (hash ^ word) * UINT64_C(0x100000001b3);
            word = 0;
        }
    }
    return (hash ^ word ^ (uint64_t)(count % 8)) * UINT64_C(0x100000001b3);
}

/** A state that is whole but says that two columns have one place, or that one has none. */
static void impossible_places(void)
{
    enum { BYTES = 4096, TAIL = 2 * sizeof(int64_t) }; /* after the last order: lost, checksum */
    static const int32_t orders[3][3] = {{2, 0, 1}, {1, 1, 0}, {0, 1, 3}};
    frg_context *ctx = test_context();
    const frg_soap_opts o = options(FRG_SOAP_EMERGING);
    float w[12] = {0}, g[12];
    gaussian(1, g, 12);
    frg_soap *soap = optimizer(ctx, &o, matrix(w, 4, 3));
    const frg_array grad = matrix(g, 4, 3);
    CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
    unsigned char bytes[BYTES];
    int64_t count = 0;
    CHECK_OK(ctx, frg_soap_save_bytes(soap, bytes, BYTES, &count));
    for (int k = 0; k < 3; k++) {
        memcpy(bytes + count - TAIL - sizeof orders[k], orders[k], sizeof orders[k]);
        const uint64_t hash = hash_of(bytes, (size_t)count - sizeof hash);
        memcpy(bytes + count - sizeof hash, &hash, sizeof hash);
        CHECK_STATUS(frg_soap_load_bytes(soap, bytes, count, "x"), k == 0 ? FRG_OK : FRG_MISMATCH);
        CHECK(k == 0 || strstr(frg_message(ctx), "places") != NULL);
    }
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

static void damaged_states(void)
{
    char path[256];
    snprintf(path, sizeof path, "/tmp/fourge_soap_%d.bad", (int)getpid());
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    float w[12], g[12], x[12];
    gaussian(1, w, 12);
    gaussian(1, g, 12);
    frg_soap *soap = optimizer(ctx, &o, matrix(w, 4, 3)),
             *other = optimizer(ctx, &o, matrix(x, 3, 4));
    const frg_array grad = matrix(g, 4, 3);
    CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
    CHECK_OK(ctx, frg_soap_save(soap, path));
    unsigned char bytes[8192];
    FILE *f = fopen(path, "rb");
    const size_t count = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f)
        fclose(f);
    CHECK(count > 100 && count < sizeof bytes);
    unsigned char in_memory[sizeof bytes];
    int64_t in_all = 0;
    CHECK_STATUS(frg_soap_save_bytes(soap, in_memory, (int64_t)count - 1, &in_all), FRG_BAD_ARG);
    CHECK_OK(ctx, frg_soap_save_bytes(soap, NULL, 0, &in_all));
    CHECK_INT(in_all, (int64_t)count);
    CHECK_OK(ctx, frg_soap_save_bytes(soap, in_memory, in_all, &in_all));
    CHECK_BITS(in_memory, bytes, count);
    CHECK_STATUS(frg_soap_load_bytes(other, bytes, (int64_t)count, "x"), FRG_MISMATCH);
    CHECK_STATUS(frg_soap_load(soap, "/tmp/no/such/file"), FRG_NO_INPUT);
    float before[12], again[12];
    CHECK_OK(ctx, frg_soap_state_get(soap, 0, "exp_avg", matrix(before, 4, 3)));
    for (size_t cut = 0; cut < count; cut += 7)
        CHECK_STATUS(frg_soap_load_bytes(soap, bytes, (int64_t)cut, "x"), FRG_MISMATCH);
    for (size_t at = 0; at < count; at += 3) {
        bytes[at] ^= 0x10;
        CHECK_STATUS(frg_soap_load_bytes(soap, bytes, (int64_t)count, "x"), FRG_MISMATCH);
        bytes[at] ^= 0x10;
    }
    CHECK_OK(ctx, frg_soap_state_get(soap, 0, "exp_avg", matrix(again, 4, 3)));
    CHECK_BITS(again, before, sizeof before);
    CHECK_OK(ctx, frg_soap_load_bytes(soap, bytes, (int64_t)count, "x"));
    frg_soap_destroy(soap);
    frg_soap_destroy(other);
    frg_context_destroy(ctx);
    remove(path);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static int64_t zero_frequency(int64_t t0, void *user)
{
    (void)user;
    return t0 < 2 ? 1 : 0;
}

/** Options of which one leaves another nothing to act on are refused, by name, at the start and
 *  later. */
static void contradictions(void)
{
    frg_context *ctx = test_context();
    static const struct {
        const char *word;
        frg_soap_profile profile;
        size_t field;
        int value, use_eigh;
    } rows[] = {
#define WHOLE(profile, f, v) #f, profile, offsetof(frg_soap_opts, f), v
        {WHOLE(FRG_SOAP_EMERGING, refresh_async, 1), 0},
        {WHOLE(FRG_SOAP_NIKHILVYAS, nesterov, 1), 0},
        {WHOLE(FRG_SOAP_EMERGING_04, moment2_order, FRG_MOMENT2_ROTATE), 1},
        {WHOLE(FRG_SOAP_EMERGING, power_iter_steps, 2), 1},
        {WHOLE(FRG_SOAP_NIKHILVYAS, adam_warmup_steps, 2), 0}, /* the low half of an int64_t */
#undef WHOLE
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const frg_soap_opts usual = options(rows[i].profile);
        frg_soap_opts o = usual;
        frg_soap *soap = NULL;
        memcpy((char *)&o + rows[i].field, &rows[i].value, sizeof(int));
        o.use_eigh = rows[i].use_eigh;
        CHECK_STATUS(frg_soap_create(&soap, ctx, &o), FRG_UNSUPPORTED);
        CHECK_SAYS(strstr(frg_message(ctx), rows[i].word) != NULL, "'%s' does not name %s",
                   frg_message(ctx), rows[i].word);
        CHECK_OK(ctx, frg_soap_create(&soap, ctx, &usual));
        CHECK_STATUS(frg_soap_set_group(soap, 0, &o), FRG_UNSUPPORTED);
        frg_soap_destroy(soap);
    }
    frg_context_destroy(ctx);
}

static void refusals(void)
{
    frg_context *ctx = test_context();
    static const struct {
        const char *word;
        size_t field;
        bool is_int;
        double value;
    } bad[] = {
#define REAL(f, v) {#f, offsetof(frg_soap_opts, f), false, v}
        REAL(lr, -1),
        REAL(lr, NAN),
        REAL(beta1, 1),
        REAL(beta2, -0.1),
        REAL(shampoo_beta, 1),
        REAL(eps, -1),
        REAL(weight_decay, -1),
        REAL(weight_decay, INFINITY),
        REAL(max_update_rms, -1),
        REAL(ridge_c, -1),
#undef REAL
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        frg_soap_opts o = options(FRG_SOAP_EMERGING);
        frg_soap *soap = (frg_soap *)&o;
        memcpy((char *)&o + bad[i].field, &bad[i].value, sizeof(double));
        CHECK_STATUS(frg_soap_create(&soap, ctx, &o), FRG_BAD_ARG);
        CHECK(!soap);
        CHECK_SAYS(strstr(frg_message(ctx), bad[i].word) != NULL, "'%s' does not name %s",
                   frg_message(ctx), bad[i].word);
    }
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    frg_soap *soap = NULL;
    o.precondition_frequency = 0;
    CHECK_STATUS(frg_soap_create(&soap, ctx, &o), FRG_BAD_ARG);
    o = options(FRG_SOAP_EMERGING);
    o.power_iter_steps = 0;
    CHECK_STATUS(frg_soap_create(&soap, ctx, &o), FRG_BAD_ARG);
    o = options(FRG_SOAP_EMERGING);
    o.qr_method = (frg_qr_method)9;
    CHECK_STATUS(frg_soap_create(&soap, ctx, &o), FRG_BAD_ARG);
    CHECK_STATUS(frg_soap_create(NULL, ctx, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_soap_create(&soap, NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_soap_step(NULL, NULL, 0, NULL), FRG_BAD_ARG);

    float w[12] = {0}, g[12] = {0}, before[12];
    o = options(FRG_SOAP_EMERGING);
    o.use_kl_shampoo = 1;
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o));
    CHECK_STATUS(frg_soap_add_param(soap, 0, frg_vector(w, FRG_F32, 12), NULL, NULL), FRG_BAD_ARG);
    frg_soap_destroy(soap);
    o.merge_dims = 1; /* 4 x 3 becomes one axis of 12 */
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o));
    CHECK_STATUS(frg_soap_add_param(soap, 0, matrix(w, 4, 3), NULL, NULL), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "set merge_dims to 0") != NULL);
    frg_soap_destroy(soap);
    o = options(FRG_SOAP_EMERGING_04);
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o));
    CHECK_STATUS(frg_soap_add_param(soap, 0, frg_vector(w, FRG_F32, 12), NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_soap_add_param(soap, 1, matrix(w, 4, 3), NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_soap_add_param(soap, 0, frg_matrix(w, FRG_I32, 4, 3, 3), NULL, NULL),
                 FRG_BAD_ARG);
    frg_soap_destroy(soap);

    o = options(FRG_SOAP_EMERGING);
    o.frequency = zero_frequency;
    gaussian(1, w, 12);
    gaussian(1, g, 12);
    soap = optimizer(ctx, &o, matrix(w, 4, 3));
    frg_array grad = matrix(g, 4, 3);
    CHECK_STATUS(frg_soap_step(soap, &grad, 2, NULL), FRG_BAD_ARG);
    grad = matrix(g, 3, 4);
    CHECK_STATUS(frg_soap_step(soap, &grad, 1, NULL), FRG_BAD_ARG);
    grad = frg_matrix(g, FRG_I32, 4, 3, 3);
    CHECK_STATUS(frg_soap_step(soap, &grad, 1, NULL), FRG_BAD_ARG);
    grad = matrix(w, 4, 3);
    CHECK_STATUS(frg_soap_step(soap, &grad, 1, NULL), FRG_BAD_ARG);
    CHECK_TEXT(frg_error_code(ctx), "FRG-SOAP-002");
    grad = matrix(g, 4, 3);
    grad.device.kind = FRG_CUDA;
    CHECK_STATUS(frg_soap_step(soap, &grad, 1, NULL), FRG_NO_DEVICE);
    grad = matrix(g, 4, 3);
    CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
    CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
    memcpy(before, w, sizeof w);
    CHECK_STATUS(frg_soap_step(soap, &grad, 1, NULL), FRG_BAD_ARG); /* the callback gives 0 */
    CHECK_BITS(w, before, sizeof w);
    CHECK_STATUS(frg_soap_state_get(soap, 0, "exp_avgs", grad), FRG_BAD_ARG);
    CHECK_STATUS(frg_soap_state_get(soap, 1, "exp_avg", grad), FRG_BAD_ARG);
    o.block_dim = 2;
    CHECK_STATUS(frg_soap_set_group(soap, 0, &o), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "block_dim"));
    frg_soap_destroy(soap);
    frg_soap_destroy(NULL);
    frg_context_destroy(ctx);
}

/** Sizes without work: nothing, one number, an empty tensor. */
static void odd_shapes(void)
{
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_SOAP_EMERGING);
    frg_soap *soap = NULL;
    float w = 1, g = 2, row[3] = {1, 2, 3}, grow[3] = {1, 1, 1};
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o));
    CHECK_OK(ctx, frg_soap_step(soap, NULL, 0, NULL));
    const frg_array scalar = {.data = &w, .dtype = FRG_F32}, empty = matrix(&w, 0, 3);
    CHECK_OK(ctx, frg_soap_add_param(soap, 0, scalar, NULL, NULL));
    CHECK_OK(ctx, frg_soap_add_param(soap, 0, empty, NULL, NULL));
    CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(row, 1, 3), NULL, NULL));
    const frg_array grads[3] = {
        {.data = &g, .dtype = FRG_F32}, matrix(&g, 0, 3), matrix(grow, 1, 3)};
    for (int t = 0; t < 3; t++)
        CHECK_OK(ctx, frg_soap_step(soap, grads, 3, NULL));
    CHECK_NEAR((double)w, 1 - 3 * 0.1, 1e-6);
    CHECK(isfinite(row[0]) && row[0] < 1);
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"diagonal gradients", diagonal},
    {"rank one", rank_one},
    {"constant gradient", constant},
    {"turned coordinates", equivariance},
    {"AdamW without factors", adamw},
    {"clip", clip},
    {"all_skip_leaves_momentum_in_its_basis", all_skip_leaves_momentum_in_its_basis},
    {"mixed skip", mixed_skip},
    {"storage of m changes", storage_changes},
    {"crossing eigenvalues", crossing},
    {"spikes", spikes},
    {"zero gradients", zero_gradients},
    {"not finite", not_finite},
    {"bits", bits},
    {"allocates nothing", allocates_nothing},
    {"half parameters", half_parameters},
    {"rounded by chance", rounded_by_chance},
    {"strides", strides},
    {"merged and blocked", merged_and_blocked},
    {"refresh after the step", refresh_after_the_step},
    {"late parameter", late_parameter},
    {"resume", resume},
    {"parts", parts},
    {"damaged states", damaged_states},
    {"impossible places", impossible_places},
    {"short updates", short_updates},
    {"contradictions", contradictions},
    {"refusals", refusals},
    {"odd shapes", odd_shapes},
};
TEST_MAIN(cases)
