/* gw_transport.c - Sinkhorn's iteration around the passes of gw_sweep.h.
 *
 * Acceleration: the plain step is a preconditioned ascent of the concave semi-dual in g, so
 * momentum in the manner of Nesterov (1983) with restart (O'Donoghue and Candes 2015) needs no
 * constant of the problem:
 *
 *     G <- G+ + mu_t (G+ - G+_last),     mu_t = t / (t + 3),     t <- 0 where the error has grown
 *
 * Rows stay exact throughout, so the error is always that of the columns alone.
 *
 * Relaxed marginals: the mean of f - g converges as (1 - epsilon / rho) on its own.  f + l, g - l
 * is the same plan, and the l of the largest dual value is known (Sejourne, Vialard and Peyre
 * 2022); it is taken behind every pass:
 *
 *     l = (log sum_i a_i exp(-f_i / rho_a) - log sum_j b_j exp(-g_j / rho_b))
 *         / (1 / rho_a + 1 / rho_b)
 *
 * Partial mass: with the dummy row and column alone the mass of the other entries converges to s
 * slowly, by a factor 1 - s / sum a a pass.  But s is one more constraint, and the projection on it
 * is a constant added to G, the dummy row unchanged.  After a plain step to G+ from G, whose
 * columns sum to b with the dummy row's share (sum b - s) softmax(G) of them,
 *
 *     G <- G+ + log2(s / R),    R = sum b - (sum b - s) sum_j 2^(G+_j) / sum_j 2^(G_j)
 */
#include "gw/gw_transport.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/tree_sum.h"
#include "gw/gw_build.h"
#include "gw/gw_marginals.h"

enum { PLAIN_PASSES = 5, COLUMN_BLOCK = 1024, MOMENTUM_WAITS = 32 };
#define NO_WEIGHT (-1e30) /* log2 of 0 that survives sums */
#define NO_ROW                                                                                     \
    (-1e5) /* of a row without weight, whose potential must not drown in it: 2^-1e5 is 0 as well */

#pragma GCC visibility push(hidden)
DECLARE_LEVELS(frgi_sweep_ops, frgi_sweep_ops);
DECLARE_LEVELS(frgi_build_ops, frgi_build_ops);
#pragma GCC visibility pop

const frgi_sweep_ops *frgi_sweep_ops_of(const frg_context *ctx)
{
    static const frgi_sweep_ops *const table[ISA_COUNT] = EACH_LEVEL(&frgi_sweep_ops);
    return table[frgi_context_isa(ctx)];
}

const frgi_build_ops *frgi_build_ops_of(const frg_context *ctx)
{
    static const frgi_build_ops *const table[ISA_COUNT] = EACH_LEVEL(&frgi_build_ops);
    return table[frgi_context_isa(ctx)];
}

static size_t element(frgi_store store)
{
    static const size_t bytes[FRGI_STORES] = {[FRGI_X32] = 4,  [FRGI_X16] = 2, [FRGI_X64] = 8,
                                              [FRGI_X32W] = 4, [FRGI_K32] = 4, [FRGI_K16] = 2};
    return bytes[store];
}

static bool is_kernel(const frgi_sweep *s)
{
    return s->x.store == FRGI_K32 || s->x.store == FRGI_K16;
}

/* ---- opening --------------------------------------------------------------------------------- */

/** Bytes of a potential, a weight or a sum of the widest passes that there will be. */
static size_t real_size(const frgi_cost_storage *k)
{
    return k->store == FRGI_X64 || k->widens ? sizeof(double) : sizeof(float);
}

static void layout(frgi_arena *weights, frgi_arena *a, frgi_transport *t)
{
    frgi_sweep *const s = &t->s;
    const bool with_store = t->storage.stored;
    const size_t real = real_size(&t->storage);
    const int64_t n_blocks = s->ld / COLUMN_BLOCK + 1;
    s->to.a = TAKE(weights, double, s->n);
    s->to.b = TAKE(weights, double, s->m);
    s->to.log_a = TAKE(weights, double, s->n);
    s->to.log_b = TAKE(weights, double, s->m);
    s->base.H0 = TAKE(a, double, s->rows);
    s->base.G0 = TAKE(a, double, s->ld);
    s->base.h = TAKE(a, float, s->rows);
    s->base.g = TAKE(a, float, s->ld);
    s->base.past_h = TAKE(a, float, s->rows);
    s->base.past_g = TAKE(a, float, s->ld);
    s->F = TAKE(a, double, s->rows);
    s->G = TAKE(a, double, s->ld);
    s->G_last = TAKE(a, double, s->ld);
    s->p = TAKE(a, double, s->rows);
    s->dummy.row = TAKE(a, double, s->rows);
    s->mass = TAKE(a, double, s->rows);
    s->col = TAKE(a, double, s->ld);
    t->saved.G = TAKE(a, double, FRGI_SAVED_SLOTS * s->ld);
    t->saved.G_last = TAKE(a, double, FRGI_SAVED_SLOTS * s->ld);
    t->rounding.y = TAKE(a, double, s->ld);
    t->rounding.u = TAKE(a, double, s->rows);
    t->rounding.v = TAKE(a, double, s->ld);
    t->work.blocks = TAKE(a, frgi_columns_result, n_blocks);
    s->out_of_range = TAKE(a, int64_t, s->chunks);
    const int64_t groups = with_store && s->x.store == FRGI_X32 ? s->rows / FRGI_GROUP : 0;
    t->skip.G = TAKE(a, double, s->ld);
    s->active.listed = TAKE(a, int64_t, groups);
    s->active.lists = TAKE(a, uint16_t, groups * (s->ld / FRGI_MARK));
    s->g = frgi_take(a, (size_t)s->ld * real);
    s->partial = frgi_take(a, frgi_mul((size_t)(s->chunks * s->ld), real));
    t->work.scratch = frgi_take(a, frgi_mul((size_t)t->work.threads, t->work.scratch_bytes));
    s->x.at =
        with_store
            ? frgi_take(a, frgi_mul(frgi_mul((size_t)s->rows, (size_t)s->ld), element(s->x.store)))
            : NULL;
}

static void fill_weights(const double *from, int64_t n, const double *to, const double *log_to,
                         double log_zero)
{
    double *const w = (double *)(uintptr_t)to, *const l = (double *)(uintptr_t)log_to;
    for (int64_t i = 0; i < n; i++) {
        w[i] = from[i];
        l[i] = from[i] > 0 ? log2(from[i]) : log_zero;
    }
}

double frgi_log_sum(const double *x, const double *w, int64_t n)
{
    double top = NO_WEIGHT, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        top = w[j] > 0 ? fmax(top, x[j]) : top;
    }
    for (int64_t j = 0; j < n; j++) {
        sum += w[j] > 0 ? exp2(x[j] - top) : 0;
    }
    return top + log2(sum);
}

static void set_dummy(frgi_transport *t)
{
    frgi_sweep *const s = &t->s;
    if (s->dummy.a > 0) {
        s->dummy.g = log2(s->dummy.a) - frgi_log_sum(s->F, s->to.a, s->n);
    }
}

/** Shapes and what memory they need. */
static void measure(frgi_transport *t, const frg_context *ctx, int64_t n, int64_t m,
                    frgi_cost_storage storage)
{
    memset(t, 0, sizeof *t);
    t->storage = storage;
    t->work.threads = frg_threads(ctx);
    frgi_sweep *const s = &t->s;
    s->n = n;
    s->m = m;
    s->rows = (n + FRGI_GROUP - 1) / FRGI_GROUP * FRGI_GROUP;
    const int64_t pad =
        storage.store == FRGI_K16 ? 2 * FRGI_PAD : FRGI_PAD; /* two vectors lie in one */
    s->ld = (m + pad - 1) / pad * pad;
    /* at most 64, of whole fills; of the data alone, so that bits do not depend on threads */
    const int64_t fill = FRGI_FILL_GROUPS * FRGI_GROUP, each = (n + 64 * fill - 1) / (64 * fill);
    s->chunks = (n + each * fill - 1) / (each * fill);
    s->x.store = storage.store;
    t->work.scratch_bytes = (size_t)(FRGI_SCRATCH_ROWS * s->ld) * real_size(&storage) + 64;
    t->work.scratch_bytes = (t->work.scratch_bytes + 63) / 64 * 64;
    layout(&t->weights, &t->memory, t);
}

size_t frgi_transport_bytes(const frg_context *ctx, int64_t n, int64_t m, frgi_cost_storage storage)
{
    frgi_transport t;
    measure(&t, ctx, n, m, storage);
    return frgi_add(t.weights.used, t.memory.used);
}

static void clear(frgi_transport *t)
{
    frgi_sweep *const s = &t->s;
    for (int64_t j = 0; j < s->ld; j++) {
        s->G[j] = s->base.G0[j] = s->G_last[j] = 0;
        t->rounding.y[j] = 1;
        t->rounding.v[j] = 0;
    }
    for (int64_t i = 0; i < s->rows; i++) {
        s->F[i] = i < s->n ? s->to.log_a[i] : 0;
        s->base.H0[i] = s->p[i] = s->dummy.row[i] = s->mass[i] = t->rounding.u[i] = 0;
        s->base.h[i] = i < s->n ? 0 : (float)NO_WEIGHT; /* rows of the padding have no weight */
    }
    if (t->storage.stored) { /* rows beyond n stay finite */
        const size_t row = (size_t)s->ld * element(t->storage.store);
        memset((char *)s->x.at + (size_t)s->n * row, 0, (size_t)(s->rows - s->n) * row);
    }
}

/** What is not carried: 0 where it is rounding. */
static double not_carried(double all, double mass)
{
    return all - mass > 1e-12 * mass ? all - mass : 0;
}

frg_status frgi_transport_open(frgi_transport *t, frg_context *ctx, int64_t n, int64_t m,
                               frgi_cost_storage storage, const frgi_marginals *how)
{
    measure(t, ctx, n, m, storage);
    t->ctx = ctx;
    t->how = *how;
    frgi_sweep *const s = &t->s;
    s->to.product = how->product;
    t->steps = storage.steps ? storage.steps : &frgi_transport_host_steps;
    TRY(frgi_arena_open(&t->weights, ctx, "weights of a transport plan"));
    TRY(t->steps->open(&t->memory, ctx, "transport plan"));
    layout(&t->weights, &t->memory, t);
    fill_weights(how->a, n, s->to.a, s->to.log_a, NO_ROW);
    fill_weights(how->b, m, s->to.b, s->to.log_b, NO_WEIGHT);
    t->how.a = s->to.a;
    t->how.b = s->to.b;
    const double mass_a = frgi_transport_sum(s->to.a, n), mass_b = frgi_transport_sum(s->to.b, m);
    t->total = how->mass > 0 ? how->mass : mass_b;
    if (how->mass > 0) {
        s->dummy.a = not_carried(mass_a, how->mass);
        s->dummy.b = not_carried(mass_b, how->mass);
    }
    double least = 1 / (double)m; /* of the columns' weights */
    for (int64_t j = 0; j < m; j++) {
        least = s->to.b[j] > 0 ? fmin(least, s->to.b[j] / mass_b) : least;
    }
    s->active.negligible = (float)(FRGI_NEGLIGIBLE * least * (double)m);
    t->kept = s->x.at;
    t->steps->clear(t);
    return FRG_OK;
}

void frgi_transport_close(frgi_transport *t)
{
    if (t->ctx) {
        frgi_arena_close(&t->weights, t->ctx);
        t->steps->close(&t->memory, t->ctx);
    }
}

static void unround(frgi_transport *t)
{
    const frgi_sweep *const s = &t->s;
    t->rounding.done = false;
    for (int64_t j = 0; j < s->ld; j++) {
        t->rounding.y[j] = 1;
        t->rounding.v[j] = 0;
    }
    for (int64_t i = 0; i < s->rows; i++) {
        t->rounding.u[i] = 0;
    }
}

static void restart(frgi_transport *t)
{
    t->s.x.at = t->kept;
    t->s.x.store = t->storage.store;
    frgi_transport_forget(t);
    unround(t);
}

/* ---- potentials ------------------------------------------------------------------------------ */

/** g from G - G0, in the form of the store. */
static void set_increments(frgi_transport *t)
{
    frgi_sweep *const s = &t->s;
    const double none = is_kernel(s) ? 0 : NO_WEIGHT;
    for (int64_t j = 0; j < s->ld; j++) {
        const bool live = j < s->m && s->to.b[j] > 0;
        const double increment = live ? s->G[j] - s->base.G0[j] : 0;
        const double value = !live ? none : is_kernel(s) ? exp2(increment) : increment;
        if (frgi_is_wide(s)) {
            ((double *)s->g)[j] = value;
        } else {
            ((float *)s->g)[j] = (float)value;
        }
    }
}

static void renew(frgi_transport *t, double epsilon, frgi_fill fill, const void *source)
{
    frgi_sweep *const s = &t->s;
    const double k = FRGI_LOG2_E / epsilon, scale = t->k > 0 ? k / t->k : 1;
    if (fabs(k - t->k) > 1e-12 * k) { /* not where it went through epsilon and back */
        frgi_transport_forget(t);
    }
    /* potentials are kept in cost units across epsilon */
    for (int64_t j = 0; j < s->ld; j++) {
        s->G[j] *= scale;
        s->G_last[j] = s->G[j];
        s->base.g[j] = (float)s->G[j];
        s->base.G0[j] = (double)s->base.g[j];
    }
    for (int64_t i = 0; i < s->n; i++) {
        /* relaxed rows without weight have no potential */
        const bool live = s->to.a[i] > 0 || isinf(t->how.rho_a);
        const double base = live ? s->F[i] - s->to.log_a[i] : 0;
        s->base.h[i] = (float)(base * scale);
        s->base.H0[i] = (double)s->base.h[i];
        s->F[i] = s->to.log_a[i] + base * scale;
    }
    t->k = k;
    s->to.tau_a = isinf(t->how.rho_a) ? 1 : t->how.rho_a / (t->how.rho_a + epsilon);
    s->to.tau_b = isinf(t->how.rho_b) ? 1 : t->how.rho_b / (t->how.rho_b + epsilon);
    s->x.fill = fill;
    s->x.source = source;
    s->x.fresh = true;
    s->dummy.g *= scale;
    t->momentum = 0;
    t->since = 0;
    t->last.error = INFINITY;
    t->last.increment = 0;
    t->rounding.done = false;
    t->skip.holds = false;
    set_increments(t);
}

void frgi_transport_place(frgi_transport *t)
{
    frgi_sweep *const s = &t->s;
    double increment = 0;
    for (int64_t j = 0; j < s->m; j++) {
        increment = s->to.b[j] > 0 ? fmax(increment, fabs(s->G[j] - s->base.G0[j])) : increment;
    }
    if (increment <= 60) {
        set_increments(t);
        return;
    }
    s->x.store = s->x.store == FRGI_X64 ? FRGI_X64 : FRGI_X32;
    s->x.at = NULL;
    renew(t, FRGI_LOG2_E / t->k, s->x.fill, s->x.source);
}

static void widen(frgi_transport *t)
{
    t->s.x.store = FRGI_X32W;
    frgi_transport_watch(t);
    set_increments(t);
}

/* ---- saved iterates -------------------------------------------------------------------------- */

void frgi_transport_forget(frgi_transport *t)
{
    t->saved.passes = 0;
    frgi_transport_watch(t);
}

/* ---- the floor of rounding ------------------------------------------------------------------- */

void frgi_transport_watch(frgi_transport *t)
{
    t->floor = frgi_floor_begin();
    t->last.at_floor = false;
}

/** A bound of the error that rounding leaves, relative to the mass: half a unit of the last place
 *  times the sum of
 *
 *      64          exponents of powers, whose rounding is relative to them
 *      n / 64      roundings of a sum of n terms in vectors of 16 and in chunks
 *      max |G_j|   in double: rounding of potentials (in floats they are in the exponents) */
static double noise_of(const frgi_transport *t)
{
    const frgi_sweep *const s = &t->s;
    const bool wide = frgi_is_wide(s);
    double reach = 64 + (double)s->n / 64, most = 0;
    for (int64_t j = 0; wide && j < s->m; j++) {
        most = s->to.b[j] > 0 ? fmax(most, fabs(s->G[j])) : most;
    }
    return 0.5 * (wide ? 0x1p-53 : 0x1p-24) * (reach + most);
}

static void record(frgi_transport *t)
{
    const frgi_sweep *const s = &t->s;
    frgi_saved_iterates *const saved = &t->saved;
    const int64_t at = saved->passes++ % FRGI_SAVED_MOST, slot = at / FRGI_SAVED_STRIDE;
    saved->momentum[at] = t->momentum;
    if (at % FRGI_SAVED_STRIDE == 0) {
        memcpy(saved->G + slot * s->ld, s->G, (size_t)s->ld * sizeof *s->G);
        memcpy(saved->G_last + slot * s->ld, s->G_last, (size_t)s->ld * sizeof *s->G_last);
        saved->dummy_g[slot] = s->dummy.g;
    }
}

static void end_plain(frgi_transport *t)
{
    frgi_sweep *const s = &t->s;
    for (int64_t j = 0; j < s->m; j++) { /* columns without weight have none */
        s->G[j] = s->to.b[j] > 0 ? s->G_last[j] : s->G[j];
    }
    t->saved.momentum[(t->saved.passes - 1) % FRGI_SAVED_MOST] = 0;
    set_increments(t);
}

/* ---- relaxed marginals ----------------------------------------------------------------------- */

double frgi_log_penalty(const double *w, const double *log_w, const double *x, int64_t n,
                        bool product, double rate)
{
    double top = -(double)INFINITY, reach = 0, total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double exponent = -rate * (x[i] - (product ? log_w[i] : 0));
        top = w[i] > 0 ? fmax(top, log_w[i] / FRGI_LOG2_E + exponent) : top;
        reach = w[i] > 0 ? fmax(reach, fabs(exponent)) : reach;
        total += w[i];
    }
    const bool near = reach < 1; /* every power counts by its distance to 1 */
    for (int64_t i = 0; i < n; i++) {
        const double exponent = -rate * (x[i] - (product ? log_w[i] : 0));
        if (w[i] > 0) {
            sum += near ? w[i] * expm1(exponent) : exp(log_w[i] / FRGI_LOG2_E + exponent - top);
        }
    }
    return near ? log(total) + log1p(sum / total) : top + log(sum);
}

/** Moves the constant between F and G to where the dual is largest; the plan stays. */
static void translate(frgi_transport *t)
{
    frgi_sweep *const s = &t->s;
    const double unit = 1 / t->k; /* cost units of one of log 2 */
    const double by_a = 1 / t->how.rho_a, by_b = 1 / t->how.rho_b;
    const double gap =
        frgi_log_penalty(s->to.a, s->to.log_a, s->F, s->n, s->to.product, unit * by_a) -
        frgi_log_penalty(s->to.b, s->to.log_b, s->G, s->m, s->to.product, unit * by_b);
    t->last.shift = t->k * gap / (by_a + by_b);
    const double scale = exp2(t->last.shift);
    for (int64_t i = 0; i < s->n; i++) {
        s->F[i] += s->to.a[i] > 0 ? t->last.shift : 0;
        s->p[i] *= scale;
    }
    for (int64_t j = 0; j < s->m; j++) {
        s->G[j] -= s->to.b[j] > 0 ? t->last.shift : 0;
    }
    t->last.increment += fabs(t->last.shift);
    set_increments(t);
}

/* ---- one pass -------------------------------------------------------------------------------- */

/** The dummy row of partial transport before the columns, the dummy column after the rows. */
static void update_dummy(frgi_transport *t)
{
    frgi_sweep *const s = &t->s;
    if (s->dummy.b > 0) {
        s->dummy.f = log2(s->dummy.b) - frgi_log_sum(s->G, s->to.b, s->m);
    }
    if (s->dummy.a > 0) {
        const double taken = frgi_transport_sum(s->dummy.row, s->n);
        t->work.blocks[0].error = fabs(taken - s->dummy.a);
        s->dummy.g += log2(s->dummy.a / fmax(taken, 1e-300));
    }
}

/** The mass of a partial plan behind the step of the columns; see above. */
static void carry_mass(frgi_transport *t)
{
    frgi_sweep *const s = &t->s;
    const double all = s->dummy.b + t->total, before = log2(s->dummy.b) - s->dummy.f;
    const double left = all - s->dummy.b * exp2(frgi_log_sum(s->G_last, s->to.b, s->m) - before);
    t->last.raised = left > 1e-9 * t->total ? log2(t->total / left) : 0;
    for (int64_t j = 0; j < s->m; j++) {
        if (s->to.b[j] > 0) {
            s->G[j] += t->last.raised;
            s->G_last[j] += t->last.raised;
        }
    }
    t->last.increment += fabs(t->last.raised);
    set_increments(t);
}

/** Potentials of columns whose sums are below or above what f32 can tell, by a sum relative to the
 *  largest term; their steps into `all`. */
static void rescue(frgi_transport *t, frgi_columns_result *all)
{
    frgi_sweep *const s = &t->s;
    double *const sum = (double *)(void *)t->work.scratch; /* 8 rows are filled behind it */
    for (int64_t j = 0; j < s->m; j++) {
        if (!(s->to.b[j] > 0) || frgi_sum_in_range(s->col[j])) {
            continue;
        }
        double top = NO_WEIGHT;
        sum[0] = 0;
        for (int64_t i0 = 0; i0 < s->n; i0 += FRGI_GROUP) {
            const void *const rows = frgi_transport_group(s, i0, t->work.scratch + 64);
            for (int64_t i = i0; i < i0 + FRGI_GROUP && i < s->n; i++) {
                const int64_t at = (i - i0) * s->ld + j;
                const double x = s->x.store == FRGI_X64 ? ((const double *)rows)[at]
                                                        : (double)((const float *)rows)[at];
                const double z = x + s->F[i] - s->base.H0[i] + s->G[j] - s->base.G0[j];
                if (!(s->to.a[i] > 0)) {
                    continue;
                }
                sum[0] = z > top ? sum[0] * exp2(top - z) + 1 : sum[0] + exp2(z - top);
                top = fmax(top, z);
            }
        }
        const double log_col = top + log2(sum[0]);
        const double next = s->to.tau_b == 1 ? s->G[j] + s->to.log_b[j] - log_col
                                             : (s->to.product ? 1 : s->to.tau_b) * s->to.log_b[j] +
                                                   s->to.tau_b * (s->G[j] - log_col);
        all->low = fmin(all->low, next - s->G[j]);
        all->high = fmax(all->high, next - s->G[j]);
        s->G[j] = s->G_last[j] = next;
        t->last.increment = fmax(t->last.increment, fabs(s->G[j] - s->base.G0[j]));
    }
    set_increments(t);
}

typedef void (*chunk_pass)(const frgi_sweep *, int64_t, void *);

/** A marking pass costs as much as one over everything and is worth its while where many follow. */
static chunk_pass choose_pass(const frgi_transport *t, const frgi_sweep_ops *ops)
{
    const frgi_sweep *const s = &t->s;
    const bool balanced =
        s->to.tau_a == 1 && s->to.tau_b == 1 && !(s->dummy.a > 0) && !(s->dummy.b > 0);
    const bool may = t->skip.allowed && balanced && s->x.at && s->x.store == FRGI_X32 &&
                     !s->x.fresh && s->ld / FRGI_MARK <= UINT16_MAX;
    if (!may || (t->skip.holds && t->skip.share > 0.6)) {
        return ops->chunk[s->x.store];
    }
    return t->skip.holds ? ops->marked : ops->marking;
}

/** Whether the lists still hold, and how much is on new ones. */
static void watch_active(frgi_transport *t, bool now)
{
    const frgi_sweep *const s = &t->s;
    double moved = 0;
    for (int64_t j = 0; j < s->m; j++) {
        moved = s->to.b[j] > 0 ? fmax(moved, fabs(s->G[j] - t->skip.G[j])) : moved;
    }
    t->skip.holds = moved <= FRGI_MARKS_HOLD;
    if (now) {
        int64_t listed = 0;
        for (int64_t group = 0; group < s->rows / FRGI_GROUP; group++) {
            listed += s->active.listed[group];
        }
        t->skip.share = (double)listed * FRGI_MARK * FRGI_GROUP / ((double)s->rows * (double)s->ld);
    }
}

/** The range of fixed point, of the exponents that are about to be stored: none is above it, and
 *  what is below weighs less than e^-40 of its row. */
static void set_range(frgi_transport *t, const frgi_sweep_ops *ops)
{
    frgi_sweep *const s = &t->s;
    float least = INFINITY, most = -INFINITY, least_top = INFINITY;
#pragma omp parallel for schedule(static) num_threads(t->work.threads)                             \
    reduction(min                                                                                  \
              : least, least_top) reduction(max                                                    \
                                            : most)
    for (int64_t group = 0; group < s->rows / FRGI_GROUP; group++) {
        const int64_t i0 = group * FRGI_GROUP;
        float *const rows =
            (void *)(t->work.scratch + (size_t)omp_get_thread_num() * t->work.scratch_bytes);
        s->x.fill(s, i0, 1, rows);
        for (int64_t i = i0; i < i0 + FRGI_GROUP && i < s->n; i++) {
            float low, high;
            if (!(s->to.a[i] > 0) && s->to.tau_a < 1) { /* has no potential */
                continue;
            }
            ops->span(s, rows + (i - i0) * s->ld, &low, &high);
            least = low < least ? low : least;
            most = high > most ? high : most;
            least_top = high < least_top ? high : least_top;
        }
    }
    const float floor = least_top - (float)(40 * FRGI_LOG2_E);
    t->cut = least < floor;
    s->x.low = t->cut ? floor : least;
    s->x.step = (most - s->x.low) / 65535;
}

/** What all blocks of columns tell. */
static frgi_columns_result of_all_blocks(const frgi_transport *t, int64_t count)
{
    for (frgi_tree_pair p = {.n = count}; frgi_tree_next(&p);) {
        frgi_columns_result *const to = &t->work.blocks[p.to];
        const frgi_columns_result *const from = &t->work.blocks[p.from];
        to->error += from->error;
        to->increment = fmax(to->increment, from->increment);
        to->lost += from->lost;
        to->low = fmin(to->low, from->low);
        to->high = fmax(to->high, from->high);
    }
    return t->work.blocks[0];
}

static int64_t rows_out_of_range(const frgi_sweep *s)
{
    int64_t far = 0;
    for (int64_t c = 0; c < s->chunks; c++) {
        far += s->out_of_range[c];
    }
    return far;
}

static void run_pass(frgi_transport *t)
{
    frgi_host_step(t->ctx, FRGI_HOST_SINKHORN);
    frgi_sweep *const s = &t->s;
    const frgi_sweep_ops *const ops = frgi_sweep_ops_of(t->ctx);
    const chunk_pass chunk = choose_pass(t, ops);
    const bool marking = chunk == ops->marking;
    if (s->x.fresh && s->x.at && s->x.store == FRGI_X16) {
        set_range(t, ops);
    }
    if (t->saved.G) {
        record(t);
    }
    if (marking) {
        memcpy(t->skip.G, s->G, (size_t)s->ld * sizeof *s->G);
    }
    const int64_t n_blocks = (s->m + COLUMN_BLOCK - 1) / COLUMN_BLOCK;
    const bool parallel = (double)s->rows * (double)s->ld > 2e4;
    /* costs as much as the others that are compared: what is stored is neither made nor passed
     * over */
    const bool usual = parallel && !s->x.fresh && !marking && (s->x.at || !t->kept);
    const int threads = frgi_oversubscription_team(&t->work.oversubscription, t->work.threads);
    const double began = frgi_seconds();
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (parallel)
    for (int64_t c = 0; c < s->chunks; c++) {
        chunk(s, c, t->work.scratch + (size_t)omp_get_thread_num() * t->work.scratch_bytes);
    }
    t->work.blocks[0].error = 0;
    update_dummy(t);
    double error = t->work.blocks[0].error;
#pragma omp parallel for schedule(static) num_threads(threads) if (n_blocks > 1)
    for (int64_t b = 0; b < n_blocks; b++) {
        const int64_t first = b * COLUMN_BLOCK, last = first + COLUMN_BLOCK;
        t->work.blocks[b] = ops->columns(s, first, last < s->m ? last : s->m, t->momentum);
    }
    if (usual) {
        const double share = chunk == ops->marked ? t->skip.share : 1;
        frgi_oversubscription_note(&t->work.oversubscription, t->work.threads,
                                   (frgi_seconds() - began) / fmax(share, 0.01));
    }
    frgi_columns_result all = of_all_blocks(t, n_blocks);
    error += all.error;
    t->last.increment = all.increment;
    t->bytes += s->x.at ? (chunk == ops->marked ? t->skip.share : 1) * (double)s->rows *
                              (double)s->ld * (double)element(s->x.store)
                        : 0;
    if (s->x.fresh && s->x.at) {
        memcpy(s->base.past_h, s->base.h, (size_t)s->rows * sizeof *s->base.past_h);
        memcpy(s->base.past_g, s->base.g, (size_t)s->ld * sizeof *s->base.past_g);
        s->base.past_k = t->k;
    }
    s->x.fresh = false;
    t->last.out_of_range = rows_out_of_range(s);
    if (all.lost) {
        rescue(t, &all);
    }
    if (s->dummy.b > 0) {
        carry_mass(t);
    }
    if (marking || t->skip.holds) {
        watch_active(t, marking);
    }
    error /= t->total;
    if (s->to.tau_a < 1 || s->to.tau_b < 1) {
        translate(t);
        /* relaxed columns come near b no further than they have to: what is left of the equation
         * for G, its constant with it, as the translation leaves F + G as they are */
        const double step = fmax(fabs(all.high), fabs(all.low)) / FRGI_LOG2_E;
        error = s->to.tau_b < 1 && isfinite(error) ? step : error;
    }
    t->passes++;
    t->since++;
    if (!t->accelerate || t->since < PLAIN_PASSES || all.lost) {
        t->momentum = 0;
    } else if (error > 1.0 * t->last.error) {
        t->since = PLAIN_PASSES; /* restart */
        t->momentum = 0;
    } else {
        const double step = (double)(t->since - PLAIN_PASSES);
        t->momentum = step / (step + 3);
    }
    t->last.error = error;
    t->last.at_floor = frgi_floor_reached(&t->floor, error, noise_of(t));
}

/** Kernels leave their range; what fixed point has cut off, 2^-57 of a row, comes up to 2^-37 of
 *  it. */
static double increment_limit(const frgi_transport *t)
{
    return is_kernel(&t->s) || (t->s.x.store == FRGI_X16 && t->cut) ? 10 : 60;
}

static frg_status solve(frgi_transport *t, double tol, int64_t most)
{
    for (int64_t pass = 0; pass < most; pass++) {
        t->skip.allowed = true;
        run_pass(t);
        t->skip.allowed = false;
        if (!(t->last.error < (double)INFINITY)) {
            FAIL(t->ctx, E_NUMERIC, "pass %lld of Sinkhorn's iteration at epsilon %g gave %g",
                 (long long)pass + 1, FRGI_LOG2_E / t->k, t->last.error);
        }
        /* momentum goes up and down on its way */
        t->last.at_floor = t->last.at_floor && (!t->accelerate || t->floor.stale >= MOMENTUM_WAITS);
        if (tol > 0 && (t->last.error <= tol || t->last.at_floor)) {
            if (t->accelerate) {
                end_plain(t);
            }
            break;
        }
        if (t->last.out_of_range > 0 || t->last.increment > increment_limit(t)) {
            const double error = t->last.error; /* still that of the latest pass */
            renew(t, FRGI_LOG2_E / t->k, t->s.x.fill, t->s.x.source);
            t->last.error = error;
        }
    }
    return FRG_OK;
}

/* ---- what is read of it, and the table ------------------------------------------------------- */

static void copy(const frgi_transport *t, void *to, const void *from, size_t bytes)
{
    (void)t;
    memcpy(to, from, bytes);
}

static double change(const frgi_transport *t, const double *before)
{
    frgi_not_beside_device(t->ctx, "the change of potentials");
    const frgi_sweep *const s = &t->s;
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (int64_t j = 0; j < s->m; j++) {
        if (s->to.b[j] > 0) {
            const double d = s->G[j] - before[j];
            low = fmin(low, d);
            high = fmax(high, d);
        }
    }
    return high >= low ? (high - low) / 2 / FRGI_LOG2_E : 0;
}

static void marginals(const frgi_transport *t, double *rows, double *columns)
{
    const frgi_sweep *const s = &t->s;
    memcpy(rows, s->mass, (size_t)s->n * sizeof *rows);
    for (int64_t j = 0; columns && j < s->m; j++) {
        /* of partial columns the dummy row had 2^(dummy_f + G) with the G before the step to b */
        const double others =
            s->dummy.b > 0 && s->to.b[j] > 0 ? exp2(s->dummy.f + s->G[j] - s->to.log_b[j]) : 0;
        columns[j] = s->col[j] * (1 - others);
    }
}

const frgi_transport_steps frgi_transport_host_steps = {.open = frgi_arena_open,
                                                        .close = frgi_arena_close,
                                                        .clear = clear,
                                                        .restart = restart,
                                                        .unround = unround,
                                                        .copy = copy,
                                                        .set_dummy = set_dummy,
                                                        .renew = renew,
                                                        .widen = widen,
                                                        .pass = run_pass,
                                                        .end_plain = end_plain,
                                                        .solve = solve,
                                                        .change = change,
                                                        .marginals = marginals,
                                                        .share = frgi_host_share,
                                                        .move = frgi_host_move,
                                                        .rows = frgi_host_rows,
                                                        .finish = frgi_host_finish,
                                                        .unroll = frgi_host_unroll,
                                                        .exact = &frgi_exact_host_steps,
                                                        .landmark = &frgi_landmark_host_steps,
                                                        .lowrank = &frgi_lowrank_host_steps,
                                                        .pairs = &frgi_pairs_host_steps,
                                                        .kept = &frgi_kept_host_steps,
                                                        .descent = &frgi_descent_host_steps};
