/* test_soap.c - the optimizer against a literal double-precision one (tests/oracle/oracle_soap.c).
 *
 * What is compared is W after every step.  Two things make bases of two programs differ by more
 * than rounding, and the cases avoid them: eigenvalues that are equal (gradients are Gaussian, and
 * a parameter that is not square first warms up until its factors have full rank), and Adam on
 * numbers that are rounding residues (eps is far above u times the gradients: 0.05 against 1e-6).
 * A residue r of the projections, about 4 u times the norm of a row of G, about 2e-6, moves the
 * update by r / eps = 4e-5; bases differ by u over relative gaps, which for 8 Gaussian eigenvalues
 * are 1e-2 and now and then 1e-4: 6e-4.  Hence 3e-3 lr per step, against updates of size lr; a
 * wrong basis, decay or order shows as 1e-1 lr. */
#include <stddef.h>
#include <stdlib.h>

#include "fourge/soap.h"
#include "oracle/oracle_soap.h"
#include "test.h"

enum { MOST = 4096, SETTINGS = 4 };

/** An option other than the profile's. */
typedef struct {
    enum { AS_IS, A_WHOLE, A_REAL, BY_CALLBACK, BY_TABLE } kind;
    size_t at, bytes;
    int64_t whole;
    double real;
} setting;

typedef struct {
    const char *name;
    frg_soap_profile profile;
    int axes;
    int64_t d[4];
    int steps;
    setting settings[SETTINGS];
} scenario;

static frg_array view_of(const void *x, frg_dtype t, int axes, const int64_t d[])
{
    frg_array a = {.data = (void *)(uintptr_t)x, .dtype = t, .ndim = axes};
    int64_t stride = 1;
    for (int k = axes - 1; k >= 0; k--) {
        a.shape[k] = d[k];
        a.stride[k] = stride;
        stride *= d[k];
    }
    return a;
}

static int64_t count_of(int axes, const int64_t d[])
{
    int64_t n = 1;
    for (int k = 0; k < axes; k++)
        n *= d[k];
    return n;
}

/* ---- options --------------------------------------------------------------------------------- */

static int64_t three_then_two(int64_t t0, void *user)
{
    (void)user;
    return t0 < 6 ? 3 : 2;
}

static const int64_t four_then_one[2][2] = {{0, 4}, {7, 1}};

#define FIELD(f)    offsetof(frg_soap_opts, f), sizeof(((frg_soap_opts *)0)->f)
#define WHOLE(f, x) A_WHOLE, FIELD(f), x, 0
#define REAL(f, x)  A_REAL, FIELD(f), 0, x

static void apply(const setting *s, frg_soap_opts *o)
{
    const int narrow = (int)s->whole;
    char *const to = (char *)o + s->at;
    switch (s->kind) {
    case AS_IS:
        break;
    case A_WHOLE:
        memcpy(to, s->bytes == sizeof narrow ? (const void *)&narrow : &s->whole, s->bytes);
        break;
    case A_REAL:
        memcpy(to, &s->real, s->bytes);
        break;
    case BY_CALLBACK:
        o->frequency = three_then_two;
        break;
    case BY_TABLE:
        o->frequencies = four_then_one;
        o->n_frequencies = 2;
        break;
    }
}

static void compare(const scenario *c)
{
    frg_context *ctx = test_context();
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, c->profile);
    o.lr = 0.1;
    o.eps = 0.05;
    for (int i = 0; i < SETTINGS; i++) {
        const frg_soap_opts before = o;
        apply(&c->settings[i], &o);
        CHECK((memcmp(&before, &o, sizeof o) == 0) == (c->settings[i].kind == AS_IS));
    }
    const int64_t n = count_of(c->axes, c->d);
    float w[MOST], g[MOST];
    double exact_w[MOST], exact_g[MOST];
    for (int64_t i = 0; i < n; i++)
        exact_w[i] = w[i] = (float)test_normal();
    soap_oracle *oracle = soap_oracle_create(&o, c->axes, c->d, exact_w);
    frg_soap *soap = NULL;
    if (!CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o)) ||
        !CHECK_OK(ctx, frg_soap_add_param(soap, 0, view_of(w, FRG_F32, c->axes, c->d), NULL, NULL)))
        return;
    for (int t = 1; t <= c->steps; t++) {
        for (int64_t i = 0; i < n; i++)
            exact_g[i] = g[i] = (float)test_normal();
        const frg_array grad = view_of(g, FRG_F32, c->axes, c->d);
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        soap_oracle_step(oracle, exact_g);
        double worst = 0;
        for (int64_t i = 0; i < n; i++)
            worst = fmax(worst, fabs((double)w[i] - oracle->w[i]));
        if (!CHECK_SAYS(worst <= 3e-3 * o.lr * t, "%s: step %d: W differs by %.2g", c->name, t,
                        worst))
            break;
    }
    frg_soap_destroy(soap);
    soap_oracle_destroy(oracle);
    frg_context_destroy(ctx);
}

#define E_ FRG_SOAP_EMERGING
#define F_ FRG_SOAP_EMERGING_04
#define N_ FRG_SOAP_NIKHILVYAS

/* clang-format off */
static const scenario scenarios[] = {
    {"emerging 12 x 12", E_, 2, {12, 12}, 12, {{AS_IS, 0, 0, 0, 0}}},
    {"emerging 3 x 3", E_, 2, {3, 3}, 20, {{AS_IS, 0, 0, 0, 0}}},
    {"frequency 2", E_, 2, {9, 9}, 12, {{WHOLE(precondition_frequency, 2)}}},
    {"frequency 5", E_, 2, {9, 9}, 14, {{WHOLE(precondition_frequency, 5)}}},
    {"frequency by callback", E_, 2, {9, 9}, 14, {{BY_CALLBACK, 0, 0, 0, 0}}},
    {"frequency by table", E_, 2, {9, 9}, 14, {{BY_TABLE, 0, 0, 0, 0}}},
    {"m in the basis", E_, 2, {9, 9}, 12, {{WHOLE(moment1_basis, FRG_BASIS_EIGEN)}}},
    {"m outside, frequency 5", E_, 2, {9, 9}, 12, {{WHOLE(moment1_basis, FRG_BASIS_ORIGINAL)}, {WHOLE(precondition_frequency, 5)}}},
    {"warm-up, 12 x 6", E_, 2, {12, 6}, 14, {{WHOLE(adam_warmup_steps, 4)}}},
    {"warm-up between refreshes", E_, 2, {9, 9}, 14, {{WHOLE(adam_warmup_steps, 3)}, {WHOLE(precondition_frequency, 5)}}},
    {"the same, m in the basis", E_, 2, {9, 9}, 14, {{WHOLE(adam_warmup_steps, 4)}, {WHOLE(precondition_frequency, 3)}, {WHOLE(moment1_basis, FRG_BASIS_EIGEN)}}},
    {"the same by callback", E_, 2, {9, 9}, 14, {{BY_CALLBACK, 0, 0, 0, 0}, {WHOLE(adam_warmup_steps, 5)}}},
    {"the same, adaptive", E_, 2, {8, 8}, 14, {{WHOLE(adam_warmup_steps, 3)}, {WHOLE(precondition_frequency, 2)}, {WHOLE(use_adaptive_criteria, 1)}, {REAL(adaptive_tolerance, 0.02)}}},
    {"the same, three iterations", E_, 2, {9, 9}, 14, {{WHOLE(adam_warmup_steps, 3)}, {WHOLE(precondition_frequency, 5)}, {WHOLE(power_iter_steps, 3)}}},
    {"the same, eigh", E_, 2, {9, 9}, 14, {{WHOLE(adam_warmup_steps, 3)}, {WHOLE(precondition_frequency, 5)}, {WHOLE(use_eigh, 1)}}},
    {"the same, KL", E_, 2, {8, 8}, 14, {{WHOLE(adam_warmup_steps, 3)}, {WHOLE(precondition_frequency, 2)}, {WHOLE(use_kl_shampoo, 1)}}},
    {"warm-up between refreshes, v begun anew", E_, 2, {9, 9}, 14, {{WHOLE(adam_warmup_steps, 3)}, {WHOLE(precondition_frequency, 5)}, {WHOLE(warmup_v, FRG_WARMUP_V_RESET)}}},
    {"warm-up, v begun anew", E_, 2, {12, 6}, 14, {{WHOLE(adam_warmup_steps, 4)}, {WHOLE(warmup_v, FRG_WARMUP_V_RESET)}}},
    {"warm-up, v rotated", E_, 2, {12, 6}, 14, {{WHOLE(adam_warmup_steps, 4)}, {WHOLE(warmup_v, FRG_WARMUP_V_ROTATE)}}},
    {"refresh warm-up", E_, 2, {9, 9}, 12, {{WHOLE(precondition_frequency, 7)}, {WHOLE(precondition_warmup_steps, 4)}}},
    {"nesterov", E_, 2, {8, 8}, 10, {{WHOLE(nesterov, 1)}}},
    {"maximize", E_, 2, {8, 8}, 10, {{WHOLE(maximize, 1)}}},
    {"without bias correction", E_, 2, {8, 8}, 10, {{WHOLE(correct_bias, 0)}}},
    {"without that of the factors", E_, 2, {8, 8}, 10, {{WHOLE(correct_shampoo_beta_bias, 0)}}},
    {"independent decay", E_, 2, {8, 8}, 10, {{WHOLE(weight_decay_method, FRG_DECAY_INDEPENDENT)}}},
    {"decay after", E_, 2, {8, 8}, 10, {{WHOLE(weight_decay_method, FRG_DECAY_DECOUPLED_AFTER)}, {REAL(weight_decay, 0.3)}}},
    {"l2", E_, 2, {8, 8}, 10, {{WHOLE(weight_decay_method, FRG_DECAY_L2)}, {REAL(weight_decay, 0.3)}}},
    {"palm", E_, 2, {8, 8}, 10, {{WHOLE(weight_decay_method, FRG_DECAY_PALM)}, {REAL(weight_decay, 0.3)}}},
    {"shampoo_beta of beta2", E_, 2, {8, 8}, 10, {{REAL(shampoo_beta, -1)}, {REAL(beta2, 0.8)}}},
    {"clip", E_, 2, {8, 8}, 10, {{REAL(max_update_rms, 0.3)}}},
    {"normalized", E_, 2, {8, 8}, 10, {{WHOLE(normalize_update, 1)}}},
    {"normalized and clipped", E_, 2, {8, 8}, 10, {{WHOLE(normalize_update, 1)}, {REAL(max_update_rms, 0.3)}}},
    /* updates are some 8 times as long */
    {"trace", E_, 2, {8, 8}, 10, {{WHOLE(trace_normalization, 1)}, {REAL(eps, 0.5)}}},
    {"three power steps", E_, 2, {8, 8}, 10, {{WHOLE(power_iter_steps, 3)}}},
    {"eigh", E_, 2, {8, 8}, 10, {{WHOLE(use_eigh, 1)}}},
    {"adaptive", E_, 2, {8, 8}, 16, {{WHOLE(use_adaptive_criteria, 1)}, {REAL(adaptive_tolerance, 0.02)}}},
    {"adaptive by factor", E_, 2, {8, 8}, 16, {{WHOLE(use_adaptive_criteria, 1)}, {REAL(adaptive_tolerance, 0.02)}, {WHOLE(adaptive_scope, FRG_SCOPE_FACTOR)}}},
    {"adaptive, m in the basis", E_, 2, {8, 8}, 16, {{WHOLE(use_adaptive_criteria, 1)}, {REAL(adaptive_tolerance, 0.02)}, {WHOLE(moment1_basis, FRG_BASIS_EIGEN)}}},
    {"adaptive, off-diagonal", E_, 2, {8, 8}, 16, {{WHOLE(use_adaptive_criteria, 1)}, {REAL(adaptive_tolerance, 0.02)}, {WHOLE(adaptive_form, FRG_ADAPTIVE_OFFDIAGONAL)}, {REAL(adaptive_tolerance, 0.2)}}},
    {"one side", E_, 2, {8, 20}, 10, {{WHOLE(max_precond_dim, 8)}}},
    {"other side", E_, 2, {20, 8}, 10, {{WHOLE(max_precond_dim, 8)}}},
    {"one axis, plain", E_, 1, {30}, 10, {{AS_IS, 0, 0, 0, 0}}},
    {"one axis, factored", E_, 1, {10}, 24, {{WHOLE(precondition_1d, 1)}, {WHOLE(adam_warmup_steps, 16)}, {REAL(shampoo_beta, 0.98)}}},
    {"three axes", E_, 3, {4, 5, 6}, 10, {{AS_IS, 0, 0, 0, 0}}},
    {"four axes", E_, 4, {4, 3, 5, 2}, 10, {{AS_IS, 0, 0, 0, 0}}},
    {"an axis of 1", E_, 3, {6, 1, 6}, 10, {{AS_IS, 0, 0, 0, 0}}},
    {"sorted after", E_, 2, {8, 8}, 12, {{WHOLE(sort_when, FRG_SORT_AFTER_QR)}}},
    {"v by rank", E_, 2, {8, 8}, 12, {{WHOLE(moment2_order, FRG_MOMENT2_RANK)}}},
    {"v rotated", E_, 2, {8, 8}, 12, {{WHOLE(moment2_order, FRG_MOMENT2_ROTATE)}}},
    {"KL", E_, 2, {8, 8}, 12, {{WHOLE(use_kl_shampoo, 1)}, {WHOLE(adam_warmup_steps, 3)}}},
    {"KL, 12 x 6", E_, 2, {12, 6}, 12, {{WHOLE(use_kl_shampoo, 1)}, {WHOLE(adam_warmup_steps, 4)}}},
    {"KL, unit start", E_, 2, {8, 8}, 12, {{WHOLE(use_kl_shampoo, 1)}, {WHOLE(adam_warmup_steps, 3)}, {WHOLE(kl_init, FRG_KL_UNIT)}}},
    {"KL, a stack of matrices", E_, 3, {2, 6, 5}, 10, {{WHOLE(use_kl_shampoo, 1)}, {WHOLE(adam_warmup_steps, 4)}, {WHOLE(merge_dims, 1)}, {WHOLE(merge_rule, FRG_MERGE_STACKED)}}},
    {"KL, blocks", E_, 2, {8, 6}, 10, {{WHOLE(use_kl_shampoo, 1)}, {WHOLE(adam_warmup_steps, 4)}, {WHOLE(block_dim, 5)}}},
    {"KL, one side", E_, 2, {8, 20}, 10, {{WHOLE(use_kl_shampoo, 1)}, {WHOLE(max_precond_dim, 8)}}},
    /* K is that of one gradient: its gaps may be small */
    {"betas of 0", E_, 2, {8, 8}, 2, {{REAL(beta1, 0)}, {REAL(beta2, 0)}, {REAL(shampoo_beta, 0)}, {REAL(eps, 1)}}},
    {"noise floor", E_, 2, {8, 8}, 10, {{REAL(denom_floor, 16)}}},
    {"noise floor above eps", E_, 2, {12, 6}, 10, {{REAL(denom_floor, 1e6)}, {WHOLE(adam_warmup_steps, 4)}}},
    {"LAPACK", E_, 2, {8, 8}, 10, {{WHOLE(qr_method, FRG_QR_VENDOR)}}},
    {"Cholesky", E_, 2, {8, 8}, 10, {{WHOLE(qr_method, FRG_QR_CHOLESKY)}}},
    {"emerging-0.4", F_, 2, {8, 8}, 14, {{AS_IS, 0, 0, 0, 0}}},
    {"emerging-0.4, KL", F_, 2, {8, 8}, 12, {{WHOLE(use_kl_shampoo, 1)}, {WHOLE(adam_warmup_steps, 3)}}},
    {"emerging-0.4, v rotated", F_, 2, {8, 8}, 12, {{WHOLE(moment2_order, FRG_MOMENT2_ROTATE)}}},
    {"v rotated, three iterations", F_, 2, {8, 8}, 12, {{WHOLE(moment2_order, FRG_MOMENT2_ROTATE)}, {WHOLE(power_iter_steps, 3)}}},
    {"nikhilvyas", N_, 2, {8, 8}, 24, {{AS_IS, 0, 0, 0, 0}}},
    {"nikhilvyas, every step", N_, 2, {8, 8}, 12, {{WHOLE(precondition_frequency, 1)}}},
    {"nikhilvyas, v rotated", N_, 2, {8, 8}, 12, {{WHOLE(moment2_order, FRG_MOMENT2_ROTATE)}, {WHOLE(precondition_frequency, 2)}}},
    {"nikhilvyas, three axes", N_, 3, {4, 5, 6}, 22, {{AS_IS, 0, 0, 0, 0}}},
};
/* clang-format on */

static void against_the_oracle(void)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        compare(&scenarios[i]);
}

/* ---- gaps ------------------------------------------------------------------------------------ */

/** W after each of `steps` steps on G_t = H diag(s) J + noise, H and J reflections, within 1e-5 of
 *  the oracle's in the norm.  Eigenvalues s^2 are apart by a factor of 4 and eps is of the size of
 *  s, so that rounding has nothing that enlarges it: some u a step. */
static void gapped(const scenario *c)
{
    enum { N = 6 };
    frg_context *ctx = test_context();
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, c->profile);
    o.lr = 0.02;
    o.eps = 1;
    for (int i = 0; i < SETTINGS; i++)
        apply(&c->settings[i], &o);
    double h[N], j[N], exact_w[N * N], exact_g[N * N], hh = 0, jj = 0;
    float w[N * N], g[N * N];
    for (int i = 0; i < N; i++) {
        h[i] = test_normal();
        j[i] = test_normal();
        hh += h[i] * h[i];
        jj += j[i] * j[i];
    }
    for (int i = 0; i < N * N; i++)
        exact_w[i] = w[i] = (float)test_normal();
    soap_oracle *oracle = soap_oracle_create(&o, 2, c->d, exact_w);
    frg_soap *soap = NULL;
    if (!CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o)) ||
        !CHECK_OK(ctx, frg_soap_add_param(soap, 0, view_of(w, FRG_F32, 2, c->d), NULL, NULL)))
        return;
    for (int t = 1; t <= c->steps; t++) {
        for (int a = 0; a < N; a++)
            for (int b = 0; b < N; b++) {
                double sum = 0.02 * test_normal();
                for (int k = 0; k < N; k++)
                    sum += ldexp(4, -k) * ((a == k) - 2 * h[a] * h[k] / hh) *
                           ((b == k) - 2 * j[b] * j[k] / jj) * (t % 3 ? 1 : -0.5);
                exact_g[a * N + b] = g[a * N + b] = (float)sum;
            }
        const frg_array grad = view_of(g, FRG_F32, 2, c->d);
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        soap_oracle_step(oracle, exact_g);
        double off = 0, all = 0;
        for (int i = 0; i < N * N; i++) {
            const double d = (double)w[i] - oracle->w[i];
            off += d * d;
            all += oracle->w[i] * oracle->w[i];
        }
        if (!CHECK_SAYS(sqrt(off / all) <= 1e-5, "%s: step %d: W differs by %.2g", c->name, t,
                        sqrt(off / all)))
            break;
    }
    frg_soap_destroy(soap);
    soap_oracle_destroy(oracle);
    frg_context_destroy(ctx);
}

static void wide_gaps(void)
{
    /* clang-format off */
    static const scenario rows[] = {
        {"emerging", E_, 2, {6, 6}, 50, {{AS_IS, 0, 0, 0, 0}}},
        {"m in the basis", E_, 2, {6, 6}, 50, {{WHOLE(moment1_basis, FRG_BASIS_EIGEN)}}},
        {"frequency 5", E_, 2, {6, 6}, 50, {{WHOLE(precondition_frequency, 5)}}},
        {"warm-up", E_, 2, {6, 6}, 50, {{WHOLE(adam_warmup_steps, 5)}}},
        {"nesterov", E_, 2, {6, 6}, 50, {{WHOLE(nesterov, 1)}}},
        {"l2", E_, 2, {6, 6}, 50, {{WHOLE(weight_decay_method, FRG_DECAY_L2)}}},
        {"eigh", E_, 2, {6, 6}, 50, {{WHOLE(use_eigh, 1)}}},
        {"Cholesky", E_, 2, {6, 6}, 50, {{WHOLE(qr_method, FRG_QR_CHOLESKY)}}},
        {"v rotated", E_, 2, {6, 6}, 50, {{WHOLE(moment2_order, FRG_MOMENT2_ROTATE)}}},
        {"emerging-0.4", F_, 2, {6, 6}, 50, {{AS_IS, 0, 0, 0, 0}}},
        {"KL", E_, 2, {6, 6}, 50, {{WHOLE(use_kl_shampoo, 1)}, {WHOLE(adam_warmup_steps, 3)}}},
        {"nikhilvyas", N_, 2, {6, 6}, 50, {{AS_IS, 0, 0, 0, 0}}},
        {"nikhilvyas, every step", N_, 2, {6, 6}, 50, {{WHOLE(precondition_frequency, 1)}}},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        gapped(&rows[i]);
}

/** Eigenvalues that cross at step 5: the library keeps columns in their slots, the oracle moves
 *  them and the second moments with them, or without. */
static void crossing(void)
{
    static const frg_soap_moment2 orders[] = {FRG_MOMENT2_FOLLOW, FRG_MOMENT2_RANK};
    for (int k = 0; k < 2; k++) {
        frg_context *ctx = test_context();
        frg_soap_opts o;
        frg_soap_defaults(&o, sizeof o, FRG_SOAP_EMERGING);
        o.lr = 0.1;
        o.shampoo_beta = 0.5;
        o.eps = 0.05; /* what a column that moves leaves beside it is no update */
        o.moment2_order = orders[k];
        const int64_t d[2] = {3, 3};
        double exact_w[9] = {0}, exact_g[9] = {0};
        float w[9] = {0}, g[9] = {0};
        soap_oracle *oracle = soap_oracle_create(&o, 2, d, exact_w);
        frg_soap *soap = NULL;
        CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o));
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, view_of(w, FRG_F32, 2, d), NULL, NULL));
        for (int t = 1; t <= 14; t++) {
            exact_g[0] = g[0] = t < 5 ? 3 : 0.5f;
            exact_g[4] = g[4] = t < 5 ? 2 : 1;
            exact_g[8] = g[8] = t < 5 ? 1 : 4;
            const frg_array grad = view_of(g, FRG_F32, 2, d);
            CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
            soap_oracle_step(oracle, exact_g);
            for (int i = 0; i < 9; i++) /* u times W, 1.4 at the end, a step */
                CHECK_NEAR((double)w[i], oracle->w[i], 1e-6);
        }
        frg_soap_destroy(soap);
        soap_oracle_destroy(oracle);
        frg_context_destroy(ctx);
    }
}

/* ---- the ridge ------------------------------------------------------------------------------- */

enum { RIDGED = 16, RIDGED_STEPS = 30 };

/** norm(W - W_exact) / norm(W_exact) after 30 steps on gradients diag(i^-1/2) N diag(j^-1/2): of
 *  the library in w; of the literal algorithm in double on K + 64 u norm_F(K) I in place of K. */
static void distances(double *of_library, double *of_ridge, float *w, const frg_soap_opts *o)
{
    enum { N = RIDGED * RIDGED };
    const int64_t d[2] = {RIDGED, RIDGED};
    double zero[N] = {0}, exact_g[N], sums[3] = {0};
    float g[N];
    frg_context *ctx = test_context();
    soap_oracle *exact = soap_oracle_create(o, 2, d, zero),
                *ridged = soap_oracle_create(o, 2, d, zero);
    ridged->ridge = 64 * 0x1p-24;
    frg_soap *soap = NULL;
    memset(w, 0, N * sizeof *w);
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, o));
    CHECK_OK(ctx, frg_soap_add_param(soap, 0, view_of(w, FRG_F32, 2, d), NULL, NULL));
    for (int t = 0; t < RIDGED_STEPS; t++) {
        for (int i = 0; i < N; i++) {
            const double size = sqrt((double)((i / RIDGED + 1) * (i % RIDGED + 1)));
            exact_g[i] = g[i] = (float)(test_normal() / size);
        }
        const frg_array grad = view_of(g, FRG_F32, 2, d);
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        soap_oracle_step(exact, exact_g);
        soap_oracle_step(ridged, exact_g);
    }
    for (int i = 0; i < N; i++) {
        const double a = (double)w[i] - exact->w[i], b = ridged->w[i] - exact->w[i];
        sums[0] += a * a;
        sums[1] += b * b;
        sums[2] += exact->w[i] * exact->w[i];
    }
    *of_library = sqrt(sums[0] / sums[2]);
    *of_ridge = sqrt(sums[1] / sums[2]);
    frg_soap_destroy(soap);
    soap_oracle_destroy(exact);
    soap_oracle_destroy(ridged);
    frg_context_destroy(ctx);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Where no quotient is below 64 u norm(K) the ridge has no part in a trajectory: its bits are
 *  those without one, and all that rounding does is less than half of what a ridge of that size
 *  alone would do to the exact trajectory (some tenth; the median of nine, since single draws have
 *  close eigenvalues). */
static void ridge(void)
{
    enum { DRAWS = 9 };
    double ratios[DRAWS];
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, E_);
    o.lr = 0.1;
    o.eps = 0.05;
    o.weight_decay = 0;
    for (int k = 0; k < DRAWS; k++) {
        float with[RIDGED * RIDGED], without[RIDGED * RIDGED];
        double library, added;
        frg_soap_opts none = o;
        none.ridge_c = 0;
        const uint64_t at = test_now.random;
        distances(&library, &added, without, &none);
        test_now.random = at;
        distances(&library, &added, with, &o);
        CHECK_BITS(with, without, sizeof with);
        ratios[k] = library / added;
    }
    qsort(ratios, DRAWS, sizeof *ratios, by_size);
    CHECK_SAYS(ratios[DRAWS / 2] <= 0.5, "the distance is %.2g of that of a ridge",
               ratios[DRAWS / 2]);
}

static const test_case cases[] = {
    {"against the oracle", against_the_oracle},
    {"the ridge", ridge},
    {"wide gaps", wide_gaps},
    {"crossing eigenvalues", crossing},
};
TEST_MAIN(cases)
