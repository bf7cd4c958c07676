/* test_soap.c - the optimizer against a literal double-precision one (tests/oracle/oracle_soap.c).
 *
 * What is compared is W after every step.  Two things make bases of two programs differ by more than rounding,
 * and the cases avoid them: eigenvalues that are equal (gradients are Gaussian, and a parameter that is not
 * square first warms up until its factors have full rank), and Adam on numbers that are rounding residues (eps is
 * far above u times the gradients: 0.05 against 1e-6).  A residue r of the projections, about 4 u times the
 * norm of a row of G, about 2e-6, moves the update by r / eps = 4e-5; bases differ by u over relative gaps, which
 * for 8 Gaussian eigenvalues are 1e-2 and now and then 1e-4: 6e-4.  Hence 3e-3 lr per step, against updates of
 * size lr; a wrong basis, decay or order shows as 1e-1 lr. */
#include "fourge/soap.h"
#include "oracle/oracle_soap.h"
#include "test.h"

enum { MOST = 4096 };

typedef struct {
    const char *name;
    frg_soap_profile profile;
    int axes;
    int64_t d[4];
    int steps;
    void (*set)(frg_soap_opts *o);
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

static void compare(const scenario *c)
{
    frg_context *ctx = test_context();
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, c->profile);
    o.lr = 0.1;
    o.eps = 0.05;
    if (c->set)
        c->set(&o);
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

/* ---- options ------------------------------------------------------------------------------------- */

static int64_t three_then_two(int64_t t0, void *user)
{
    (void)user;
    return t0 < 6 ? 3 : 2;
}

static void frequency_2(frg_soap_opts *o)
{
    o->precondition_frequency = 2;
}
static void frequency_5(frg_soap_opts *o)
{
    o->precondition_frequency = 5;
}
static void frequency_callback(frg_soap_opts *o)
{
    o->frequency = three_then_two;
}
static void frequency_table(frg_soap_opts *o)
{
    static const int64_t rows[2][2] = {{0, 4}, {8, 1}};
    o->frequencies = rows;
    o->n_frequencies = 2;
}
static void basis_eigen(frg_soap_opts *o)
{
    o->moment1_basis = FRG_BASIS_EIGEN;
}
static void basis_original_5(frg_soap_opts *o)
{
    o->moment1_basis = FRG_BASIS_ORIGINAL;
    o->precondition_frequency = 5;
}
static void warmup(frg_soap_opts *o)
{
    o->adam_warmup_steps = 4;
}
static void warmup_reset(frg_soap_opts *o)
{
    o->adam_warmup_steps = 4;
    o->warmup_v = FRG_WARMUP_V_RESET;
}
static void warmup_rotate(frg_soap_opts *o)
{
    o->adam_warmup_steps = 4;
    o->warmup_v = FRG_WARMUP_V_ROTATE;
}
static void refresh_warmup(frg_soap_opts *o)
{
    o->precondition_frequency = 7;
    o->precondition_warmup_steps = 4;
}
static void nesterov(frg_soap_opts *o)
{
    o->nesterov = 1;
}
static void maximize(frg_soap_opts *o)
{
    o->maximize = 1;
}
static void no_bias(frg_soap_opts *o)
{
    o->correct_bias = 0;
}
static void no_shampoo_bias(frg_soap_opts *o)
{
    o->correct_shampoo_beta_bias = 0;
}
static void independent(frg_soap_opts *o)
{
    o->weight_decay_method = FRG_DECAY_INDEPENDENT;
}
static void after(frg_soap_opts *o)
{
    o->weight_decay_method = FRG_DECAY_DECOUPLED_AFTER;
    o->weight_decay = 0.3;
}
static void l2(frg_soap_opts *o)
{
    o->weight_decay_method = FRG_DECAY_L2;
    o->weight_decay = 0.3;
}
static void palm(frg_soap_opts *o)
{
    o->weight_decay_method = FRG_DECAY_PALM;
    o->weight_decay = 0.3;
}
static void clip(frg_soap_opts *o)
{
    o->max_update_rms = 0.3;
}
static void normalize(frg_soap_opts *o)
{
    o->normalize_update = 1;
}
static void trace(frg_soap_opts *o) /* updates are some 8 times as long */
{
    o->trace_normalization = 1;
    o->eps = 0.5;
}
static void two_powers(frg_soap_opts *o)
{
    o->power_iter_steps = 3;
}
static void eigh(frg_soap_opts *o)
{
    o->use_eigh = 1;
}
static void adaptive(frg_soap_opts *o)
{
    o->use_adaptive_criteria = 1;
    o->adaptive_tolerance = 0.02;
}
static void adaptive_factor(frg_soap_opts *o)
{
    adaptive(o);
    o->adaptive_scope = FRG_SCOPE_FACTOR;
}
static void adaptive_eigen(frg_soap_opts *o)
{
    adaptive(o);
    o->moment1_basis = FRG_BASIS_EIGEN;
}
static void adaptive_off(frg_soap_opts *o)
{
    adaptive(o);
    o->adaptive_form = FRG_ADAPTIVE_OFFDIAGONAL;
    o->adaptive_tolerance = 0.2;
}
static void one_sided(frg_soap_opts *o)
{
    o->max_precond_dim = 8;
}
static void one_dimension(frg_soap_opts *o)
{
    o->precondition_1d = 1;
    o->adam_warmup_steps = 16;
    o->shampoo_beta = 0.98;
}
static void after_qr(frg_soap_opts *o)
{
    o->sort_when = FRG_SORT_AFTER_QR;
}
static void rank(frg_soap_opts *o)
{
    o->moment2_order = FRG_MOMENT2_RANK;
}
static void rotate(frg_soap_opts *o)
{
    o->moment2_order = FRG_MOMENT2_ROTATE;
}
static void rotate_first(frg_soap_opts *o)
{
    o->moment2_order = FRG_MOMENT2_ROTATE;
    o->precondition_frequency = 2;
}
static void kl(frg_soap_opts *o)
{
    o->use_kl_shampoo = 1;
    o->adam_warmup_steps = 3;
}
static void kl_unit(frg_soap_opts *o)
{
    kl(o);
    o->kl_init = FRG_KL_UNIT;
}
static void zero_betas(frg_soap_opts *o) /* K is that of one gradient: its gaps may be small */
{
    o->beta1 = o->beta2 = o->shampoo_beta = 0;
    o->eps = 1;
}
static void floor_16(frg_soap_opts *o)
{
    o->denom_floor = 16;
}
static void vendor(frg_soap_opts *o)
{
    o->qr_method = FRG_QR_VENDOR;
}
static void cholesky(frg_soap_opts *o)
{
    o->qr_method = FRG_QR_CHOLESKY;
}
static void every(frg_soap_opts *o)
{
    o->precondition_frequency = 1;
}

#define E_ FRG_SOAP_EMERGING
#define F_ FRG_SOAP_EMERGING_04
#define N_ FRG_SOAP_NIKHILVYAS

static const scenario scenarios[] = {
    {"emerging 12 x 12", E_, 2, {12, 12}, 12, NULL},
    {"emerging 3 x 3", E_, 2, {3, 3}, 20, NULL},
    {"frequency 2", E_, 2, {9, 9}, 12, frequency_2},
    {"frequency 5", E_, 2, {9, 9}, 14, frequency_5},
    {"frequency by callback", E_, 2, {9, 9}, 14, frequency_callback},
    {"frequency by table", E_, 2, {9, 9}, 14, frequency_table},
    {"m in the basis", E_, 2, {9, 9}, 12, basis_eigen},
    {"m outside, frequency 5", E_, 2, {9, 9}, 12, basis_original_5},
    {"warm-up, 12 x 6", E_, 2, {12, 6}, 14, warmup},
    {"warm-up, v begun anew", E_, 2, {12, 6}, 14, warmup_reset},
    {"warm-up, v rotated", E_, 2, {12, 6}, 14, warmup_rotate},
    {"refresh warm-up", E_, 2, {9, 9}, 12, refresh_warmup},
    {"nesterov", E_, 2, {8, 8}, 10, nesterov},
    {"maximize", E_, 2, {8, 8}, 10, maximize},
    {"without bias correction", E_, 2, {8, 8}, 10, no_bias},
    {"without that of the factors", E_, 2, {8, 8}, 10, no_shampoo_bias},
    {"independent decay", E_, 2, {8, 8}, 10, independent},
    {"decay after", E_, 2, {8, 8}, 10, after},
    {"l2", E_, 2, {8, 8}, 10, l2},
    {"palm", E_, 2, {8, 8}, 10, palm},
    {"clip", E_, 2, {8, 8}, 10, clip},
    {"normalized", E_, 2, {8, 8}, 10, normalize},
    {"trace", E_, 2, {8, 8}, 10, trace},
    {"three power steps", E_, 2, {8, 8}, 10, two_powers},
    {"eigh", E_, 2, {8, 8}, 10, eigh},
    {"adaptive", E_, 2, {8, 8}, 16, adaptive},
    {"adaptive by factor", E_, 2, {8, 8}, 16, adaptive_factor},
    {"adaptive, m in the basis", E_, 2, {8, 8}, 16, adaptive_eigen},
    {"adaptive, off-diagonal", E_, 2, {8, 8}, 16, adaptive_off},
    {"one side", E_, 2, {8, 20}, 10, one_sided},
    {"other side", E_, 2, {20, 8}, 10, one_sided},
    {"one axis, plain", E_, 1, {30}, 10, NULL},
    {"one axis, factored", E_, 1, {10}, 24, one_dimension},
    {"three axes", E_, 3, {4, 5, 6}, 10, NULL},
    {"four axes", E_, 4, {4, 3, 5, 2}, 10, NULL},
    {"an axis of 1", E_, 3, {6, 1, 6}, 10, NULL},
    {"sorted after", E_, 2, {8, 8}, 12, after_qr},
    {"v by rank", E_, 2, {8, 8}, 12, rank},
    {"v rotated", E_, 2, {8, 8}, 12, rotate},
    {"KL", E_, 2, {8, 8}, 12, kl},
    {"KL, unit start", E_, 2, {8, 8}, 12, kl_unit},
    {"betas of 0", E_, 2, {8, 8}, 2, zero_betas},
    {"noise floor", E_, 2, {8, 8}, 10, floor_16},
    {"LAPACK", E_, 2, {8, 8}, 10, vendor},
    {"Cholesky", E_, 2, {8, 8}, 10, cholesky},
    {"emerging-0.4", F_, 2, {8, 8}, 14, NULL},
    {"emerging-0.4, KL", F_, 2, {8, 8}, 12, kl},
    {"emerging-0.4, v rotated", F_, 2, {8, 8}, 12, rotate},
    {"nikhilvyas", N_, 2, {8, 8}, 24, NULL},
    {"nikhilvyas, every step", N_, 2, {8, 8}, 12, every},
    {"nikhilvyas, v rotated", N_, 2, {8, 8}, 12, rotate_first},
    {"nikhilvyas, three axes", N_, 3, {4, 5, 6}, 22, NULL},
};

static void against_the_oracle(void)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        compare(&scenarios[i]);
}

static const test_case cases[] = {
    {"against the oracle", against_the_oracle},
};
TEST_MAIN(cases)
