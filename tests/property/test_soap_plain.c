/* test_soap_plain.c - whole runs of handles of several parameters on options by chance, beside the
 * literal optimizer of tests/oracle/oracle_soap.c: merged and split axes, missing factors, missing
 * gradients, options that change on the way, staggered and concurrent refreshes.
 *
 * Bound, u = 2^-24.  W is rounded three times a step, 1 - lr wd among them: 3 u norm(W).  An
 * update has a relative error of c u: sums over axes of length d <= 12 have d u at worst and
 * sqrt(d) u as a rule, of which there are two an axis for the projections and two for K and its
 * product; with Adam's 8 u, c < 64.  Bases turn by u norm(K) over their gaps, which moves a
 * coordinate by its neighbour's size times that (soap_oracle.enlarges), and eps = 1, which is of
 * the size of gradients, enlarges nothing.  Errors add up over the steps:
 *
 *     norm(W - W_exact) <= u (3 t norm(W) + 64 (1 + enlarges) travelled)
 *
 * Gradients are a_i b_j ... times Gaussian numbers, turned by a reflection along each axis, with
 * a, b, ... falling by half, so that eigenvalues have gaps; draws without gaps tell nothing and are
 * few.  KL weights, which feed small eigenvalues back into the factors and enlarge errors every
 * step, are in test_soap.c.
 */
#include "oracle/oracle_soap.h"
#include "soap_data.h"

enum { PARAMS = 4, AXES = 4, LONGEST = 6, NUMBERS = 1296, STEPS = 14, RUNS = 240 };
static const double U = 0x1p-24;

typedef struct {
    int axes;
    int64_t shape[AXES], n;
    double mirror[AXES][LONGEST];
    float w[NUMBERS], g[NUMBERS];
    double exact_w[NUMBERS], exact_g[NUMBERS];
    soap_oracle *oracle;
    int64_t taken; /* steps */
} param;

/** Do `of` in `in` draws have it? */
static bool chance(int of, int in)
{
    return test_below(in) < of;
}

/* ---- options --------------------------------------------------------------------------------- */

/** What may change between two steps. */
static void draw_rates(frg_soap_opts *o)
{
    static const frg_soap_decay decays[] = {FRG_DECAY_DECOUPLED, FRG_DECAY_DECOUPLED_AFTER,
                                            FRG_DECAY_INDEPENDENT, FRG_DECAY_L2, FRG_DECAY_PALM};
    o->lr = chance(1, 2) ? 0.05 : 0.01;
    o->weight_decay_method = decays[test_below(5)];
    o->weight_decay = chance(1, 2) ? 0.05 : 0;
    o->nesterov = o->profile != FRG_SOAP_NIKHILVYAS && chance(1, 3);
    o->maximize = chance(1, 5);
    o->max_update_rms = chance(1, 4) ? 0.1 : 0;
    o->normalize_update = chance(1, 6);
    o->trace_normalization = chance(1, 6);
    o->denom_floor = chance(1, 4) ? 16 : 0;
    o->beta1 = chance(1, 5) ? 0.5 : 0.9;
    o->beta2 = chance(1, 5) ? 0.8 : 0.95;
    o->precondition_warmup_steps = chance(1, 5) ? 3 : 0;
    o->moment1_basis = (frg_soap_basis)test_below(3);
    o->qr_method = (frg_qr_method)test_below(4);
    o->use_adaptive_criteria = chance(1, 4);
    o->adaptive_form = (frg_soap_form)test_below(2);
    o->adaptive_scope = (frg_soap_scope)test_below(2);
    o->adaptive_tolerance = o->adaptive_form == FRG_ADAPTIVE_DIAGONAL ? 0.01 : 0.1;
    o->refresh_async = o->order == FRG_UPDATE_FIRST && chance(1, 2);
}

static frg_soap_opts draw_options(void)
{
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, (frg_soap_profile)test_below(3));
    o.eps = 1;
    o.correct_bias = !chance(1, 5);
    o.correct_shampoo_beta_bias = (int)test_below(3) - 1;
    o.shampoo_beta = chance(1, 5) ? -1 : chance(1, 2) ? 0.9 : o.shampoo_beta;
    o.order = chance(1, 5) ? (frg_soap_order)test_below(2) : o.order;
    o.precondition_frequency = 1 + test_below(4);
    o.use_eigh = chance(1, 6);
    o.power_iter_steps = !o.use_eigh && chance(1, 6) ? 2 : 1;
    o.moment2_order = (frg_soap_moment2)test_below(o.use_eigh ? 2 : 3);
    o.sort_when = (frg_soap_sort)test_below(2);
    o.warmup_v = o.order == FRG_GRAD_FIRST ? (frg_soap_warmup_v)test_below(3) : FRG_WARMUP_V_KEEP;
    o.stagger = chance(1, 6);
    o.precondition_1d = o.order == FRG_GRAD_FIRST && chance(1, 4);
    o.max_precond_dim = chance(1, 4) ? 5 : chance(1, 8) ? 0 : 12;
    o.block_dim = !o.stagger && chance(1, 4) ? 3 : 0;
    o.merge_dims = chance(1, 3);
    o.merge_rule = (frg_soap_merge)test_below(3);
    draw_rates(&o);
    return o;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/** Steps of Adam after which factors have full rank. */
static int64_t steps_to_fill(const soap_oracle *s)
{
    int64_t most = 0;
    for (int i = 0; i < s->factors; i++) {
        const int64_t n = s->factor[i].n, others = s->n / s->d[s->factor[i].axis];
        if (n > others && (n - 1) / others + 1 > most)
            most = (n - 1) / others + 1;
    }
    return most;
}

/** A shape whose factors have full rank, where no warm-up fills them. */
static void draw_param(param *p, const frg_soap_opts *o)
{
    const bool stacks = o->merge_dims && o->merge_rule == FRG_MERGE_STACKED;
    const bool matrices = o->profile == FRG_SOAP_EMERGING_04;
    p->taken = 0;
    p->axes =
        matrices ? 2 + (int)test_below(stacks ? 2 : 1) : 1 + (int)test_below(o->stagger ? 2 : AXES);
    p->n = 1;
    for (int a = 0; a < p->axes; a++) {
        p->shape[a] = 1 + test_below(p->axes > 2 ? 4 : LONGEST);
        p->n *= p->shape[a];
        for (int64_t i = 0; i < p->shape[a]; i++)
            p->mirror[a][i] = test_normal();
    }
    for (int64_t i = 0; i < p->n; i++)
        p->exact_w[i] = p->w[i] = (float)test_normal();
    p->oracle = soap_oracle_create(o, p->axes, p->shape, p->exact_w);
    if (o->order == FRG_UPDATE_FIRST && steps_to_fill(p->oracle) > 0) {
        soap_oracle_destroy(p->oracle);
        draw_param(p, o);
    }
}

/** x <- x (I - 2 h h' / h'h) along an axis of length d whose entries are `inner` apart. */
static void reflect(double *x, int64_t outer, int64_t d, int64_t inner, const double *h)
{
    double hh = 0;
    for (int64_t i = 0; i < d; i++)
        hh += h[i] * h[i];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < inner; k++) {
            double *const at = x + o * d * inner + k, dot = 0;
            for (int64_t i = 0; i < d; i++)
                dot += h[i] * at[i * inner];
            for (int64_t i = 0; i < d; i++)
                at[i * inner] -= 2 * dot / hh * h[i];
        }
}

static void draw_gradient(param *p)
{
    int64_t inner = p->n, outer = 1;
    for (int64_t i = 0; i < p->n; i++)
        p->exact_g[i] = 2 * test_normal();
    for (int a = 0; a < p->axes; a++) {
        const int64_t d = p->shape[a];
        inner /= d;
        for (int64_t i = 0; i < p->n; i++)
            p->exact_g[i] *= ldexp(1, -(int)(i / inner % d));
        reflect(p->exact_g, outer, d, inner, p->mirror[a]);
        outer *= d;
    }
    for (int64_t i = 0; i < p->n; i++)
        p->exact_g[i] = p->g[i] = (float)p->exact_g[i];
}

/* ---- runs ------------------------------------------------------------------------------------ */

typedef struct {
    int64_t compared, without_gaps; /* steps of parameters */
} tally;

/** false: it is too far from the oracle's. */
static bool compare(const param *p, int run, int which, tally *all)
{
    const soap_oracle *const s = p->oracle;
    double off = 0, norm = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double d = (double)p->w[i] - s->w[i];
        off += d * d;
        norm += s->w[i] * s->w[i];
    }
    if (s->enlarges > 1e3) {
        all->without_gaps++;
        return true;
    }
    const double bound =
        U * (3 * (double)p->taken * sqrt(norm) + 64 * (1 + s->enlarges) * s->travelled);
    all->compared++;
    return CHECK_SAYS(sqrt(off) <= bound,
                      "run %d, parameter %d, step %lld: W is off by %.2g, %.2g allowed", run, which,
                      (long long)p->taken, sqrt(off), bound);
}

static void one_step(frg_soap *soap, frg_context *ctx, param *p, int n)
{
    frg_array grads[PARAMS];
    for (int i = 0; i < n; i++) {
        grads[i] = (frg_array){0};
        if (chance(1, 8))
            continue; /* it has no gradient */
        draw_gradient(&p[i]);
        grads[i] = tensor(p[i].g, p[i].axes, p[i].shape);
        soap_oracle_step(p[i].oracle, p[i].exact_g);
        p[i].taken++;
    }
    CHECK_OK(ctx, frg_soap_step(soap, grads, n, NULL));
}

/** New rates for the group, of the library and of the oracles. */
static void change_options(frg_soap *soap, frg_context *ctx, frg_soap_opts *o, param *p, int n)
{
    draw_rates(o);
    CHECK_OK(ctx, frg_soap_set_group(soap, 0, o));
    for (int i = 0; i < n; i++)
        p[i].oracle->o = *o;
}

static bool whole_run(int run, frg_context *ctx, param *p, tally *all)
{
    frg_soap_opts o = draw_options();
    const int n = 1 + (int)test_below(o.stagger ? 2 : PARAMS);
    soap_oracle *oracles[PARAMS];
    bool fine = true;
    for (int i = 0; i < n; i++) {
        draw_param(&p[i], &o);
        oracles[i] = p[i].oracle;
        const int64_t fill = steps_to_fill(p[i].oracle);
        if (o.order == FRG_GRAD_FIRST && fill > o.adam_warmup_steps)
            o.adam_warmup_steps = fill + 2;
    }
    frg_soap *soap = NULL;
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o));
    for (int i = 0; i < n; i++) {
        p[i].oracle->o = o;
        CHECK_OK(ctx,
                 frg_soap_add_param(soap, 0, tensor(p[i].w, p[i].axes, p[i].shape), NULL, NULL));
    }
    if (o.stagger)
        soap_oracle_take_turns(oracles, n);
    for (int t = 0; t < STEPS && fine; t++) {
        if (t == STEPS / 2 && chance(1, 2))
            change_options(soap, ctx, &o, p, n);
        one_step(soap, ctx, p, n);
        for (int i = 0; i < n; i++)
            fine &= compare(&p[i], run, i, all);
    }
    frg_soap_destroy(soap);
    for (int i = 0; i < n; i++)
        soap_oracle_destroy(p[i].oracle);
    return fine;
}

static void whole_runs(void)
{
    frg_context *ctx = test_context();
    param *const p = calloc(PARAMS, sizeof *p);
    tally all = {0};
    int failed = 0;
    for (int run = 0; run < RUNS && failed < 3; run++)
        failed += !whole_run(run, ctx, p, &all);
    CHECK_SAYS(all.without_gaps * 5 <= all.compared, "%lld of %lld steps have bases without gaps",
               (long long)all.without_gaps, (long long)all.compared);
    free(p);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"whole runs on options by chance", whole_runs}};
TEST_MAIN(cases)
