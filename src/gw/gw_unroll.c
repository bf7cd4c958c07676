/* gw_unroll.c - a loss through the passes that gave a plan, in reverse order.
 *
 * With potentials p, q in natural logarithms, w_ij = exp(p_i + q_j - c_ij / eps) and v_j the
 * dummy row, a pass is
 *
 *     p_i  = t_a (log a_i - log S_i) + const,   S_i = sum_j exp(q_j - c_ij / eps) + exp(s)
 *     q+_j = t_b (log b_j + q_j - log col_j),   col_j = sum_i w_ij + v_j
 *
 * t = rho / (rho + eps), 1 where marginals hold.  Of derivatives q+~ of the loss by q+ it makes,
 * with h_j = t_b q+~_j / col_j,
 *
 *     p~_i = -sum_j h_j w_ij,    e_i = t_a p~_i / sum_j w_ij,    q~_j = -sum_i e_i w_ij,
 *     c~_ij += w_ij (h_j + e_i) / eps,    a~_i += t_a p~_i / a_i,    b~_j += t_b q+~_j / b_j
 *
 * With relaxed marginals every pass ends with p + l, q+ - l (gw_transport.c): l~ = sum p~ - sum q+~
 * is added to p~ and q+~ times the derivatives of l by p and q+, the shares of points in its two
 * sums.  With momentum, q = q+ + mu (q+ - q+_before), so that q+~ = (1 + mu) q~ and q+_before~ gets
 * -mu q~.  Partial mass: the dummy row and column are one more of each, of cost 0; s is the
 * potential of the column.  What is added to q+ there, z = log(mass / R) with R = B - dummy_b r and
 * r = sum exp(q+) / sum exp(q), has the derivatives dummy_b r / R softmax(q+) by q+, minus that
 * with softmax(q) by q, and (r - 1) / R by the weights.
 *
 * The plan itself: rows exact for the last q (balanced), or the last p and q.  Rounding is not
 * differentiated, as it moves a plan by no more than the error of its marginals, nor is what
 * potentials the first of the passes began with.
 *
 * Memory.  q is known every FRGI_SAVED_STRIDE passes; between them the passes are done once more,
 * so that there are FRGI_SAVED_STRIDE (n + 2 m) doubles beside the arrays of a pass, whatever their
 * number.  Time: that of the passes, and a look at the rows in double for each.
 */
#include <math.h>
#include <string.h>

#include "gw/gw_marginals.h"
#include "gw/gw_plan.h"

typedef struct {
    frgi_transport
        t; /* a copy with potentials of its own: what it borrows is read alone, or scratch */
    const frgi_transport *from;
    const frg_array *g, *out;
    int64_t n, m, ld;
    double *memory, *doubles;
    double per_epsilon;
    bool exact_rows; /* the plan's rows are those of its last q */
    /* of the passes between two saved iterates */
    double *q, *plain, *p, dummy_g[FRGI_SAVED_STRIDE]; /* before l has gone over, z is put on */
    /* of one pass */
    double *h, *extra, *sums;       /* m; n: what the plan and l add to p~; chunks x m */
    double *by_a, *by_b, *of_dummy; /* n, m, n: e_i times what the dummy column takes of row i */
    double dummy_pull, dummy_now;   /* p~_i -= dummy_pull times that */
} unrolled;

/* ---- rows ------------------------------------------------------------------------------------ */

/** What the dummy column takes of row i. */
static double dummy_of(const unrolled *w, int64_t i)
{
    const frgi_sweep *const s = &w->t.s;
    return s->dummy.a > 0 && s->to.a[i] > 0 ? exp2(s->F[i] + w->dummy_now) : 0;
}

static void add_entry(const unrolled *w, int64_t i, int64_t j, double value)
{
    frgi_array_put(w->out, i, j, frgi_array_get(w->out, i, j) + w->per_epsilon * value);
}

/** From dLoss/dP. */
static void plan_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    unrolled *const w = user;
    double *const sums = w->sums + chunk * w->m, pulled = 0, mass = 0;
    for (int64_t j = 0; j < w->m; j++) {
        pulled += row[j] * frgi_array_get(w->g, i, j);
        mass += row[j];
    }
    const double scale = !w->exact_rows ? 1 : mass > 0 ? w->t.s.to.a[i] / mass : 0;
    const double each = w->exact_rows && mass > 0 ? pulled / mass : 0;
    for (int64_t j = 0; j < w->m; j++) {
        const double value = scale * row[j] * (frgi_array_get(w->g, i, j) - each);
        sums[j] += value;
        frgi_array_put(w->out, i, j, -w->per_epsilon * value);
    }
    w->extra[i] = w->exact_rows ? 0 : pulled;
    w->by_a[i] = each;
}

/** From q+~ of a pass to q~ of the one before. */
static void pass_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    unrolled *const w = user;
    const frgi_sweep *const s = &w->t.s;
    double *const sums = w->sums + chunk * w->m, dummy = dummy_of(w, i);
    double pull = w->extra[i] - w->dummy_pull * dummy, mass = dummy;
    for (int64_t j = 0; j < w->m; j++) {
        pull -= w->h[j] * row[j];
        mass += row[j];
    }
    const double each = mass > 0 ? s->to.tau_a * pull / mass : 0;
    for (int64_t j = 0; j < w->m; j++) {
        sums[j] -= each * row[j];
        add_entry(w, i, j, row[j] * (w->h[j] + each));
    }
    w->extra[i] = 0;
    w->of_dummy[i] = each * dummy;
    w->by_a[i] += s->to.a[i] > 0 ? (s->to.product ? 1 : s->to.tau_a) * pull / s->to.a[i] : 0;
}

/** The rows of the plan that F and G give, without rounding; their sums over the chunks into q. */
static void through_rows(unrolled *w, const double *G, const double *F, frgi_row_visitor visit,
                         double *q)
{
    frgi_sweep *const s = &w->t.s;
    memcpy(s->G, G, (size_t)w->m * sizeof *G);
    memcpy(s->F, F, (size_t)w->n * sizeof *F);
    frgi_transport_place(&w->t);
    for (int64_t i = 0; i < w->n; i++) {
        s->p[i] = s->to.a[i] > 0 ? exp2(F[i] - s->base.H0[i]) : 0;
    }
    memset(w->sums, 0, (size_t)(FRGI_GRAD_CHUNKS * w->m) * sizeof *w->sums);
    frgi_transport_rows(&w->t, 0, w->n, FRGI_GRAD_CHUNKS, visit, w);
    frgi_sum_chunks(w->sums, w->m, q);
}

/* ---- passes ---------------------------------------------------------------------------------- */

/** The passes from `first` on once more, `count` of them, from the saved iterate that `first`
 *  has. */
static void replay(unrolled *w, int64_t first, int64_t count)
{
    frgi_transport *const t = &w->t;
    frgi_sweep *const s = &t->s;
    const frgi_saved_iterates *const saved = &w->from->saved;
    const int64_t slot = first % FRGI_SAVED_MOST / FRGI_SAVED_STRIDE;
    memcpy(s->G, saved->G + slot * w->ld, (size_t)w->ld * sizeof *s->G);
    frgi_transport_place(t); /* may renew, which sets G_last */
    memcpy(s->G_last, saved->G_last + slot * w->ld, (size_t)w->ld * sizeof *s->G_last);
    s->dummy.g = saved->dummy_g[slot];
    for (int64_t r = 0; r < count; r++) {
        memcpy(w->q + r * w->m, s->G, (size_t)w->m * sizeof *s->G);
        w->dummy_g[r] = s->dummy.g;
        t->momentum = saved->momentum[(first + r) % FRGI_SAVED_MOST];
        frgi_transport_pass(t);
        for (int64_t j = 0; j < w->m; j++) {
            w->plain[r * w->m + j] = s->G_last[j] - (s->to.b[j] > 0 ? t->last.raised : 0);
        }
        for (int64_t i = 0; i < w->n; i++) {
            w->p[r * w->n + i] = s->F[i] - (s->to.a[i] > 0 ? t->last.shift : 0);
        }
    }
}

/** log2 of the column sum that led from q to the plain step. */
static double log_column(const frgi_sweep *s, double q, double plain, int64_t j)
{
    const double weight = s->to.tau_b == 1 || s->to.product ? 1 : s->to.tau_b;
    return q - (plain - weight * s->to.log_b[j]) / s->to.tau_b;
}

typedef struct {
    const double *weights, *logs, *potentials;
    double rho, sign;
    int64_t n;
    double *by_potential, *by_weight;
} shifted_side;

/** Through what relaxed marginals move from q to p behind a pass. */
static void pull_shift(unrolled *w, const double *plain, const double *p, double *by_plain)
{
    const frgi_sweep *const s = &w->t.s;
    const frgi_marginals *const how = &w->t.how;
    const double strength = 1 / (1 / how->rho_a + 1 / how->rho_b), unit = 1 / w->t.k;
    const shifted_side sides[] = {
        {s->to.a, s->to.log_a, p, how->rho_a, -1, w->n, w->extra, w->by_a},
        {s->to.b, s->to.log_b, plain, how->rho_b, 1, w->m, by_plain, w->by_b}};
    double pulled = 0;
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < sides[side].n; i++) {
            pulled -=
                sides[side].sign * (sides[side].weights[i] > 0 ? sides[side].by_potential[i] : 0);
        }
    }
    for (int side = 0; side < 2; side++) {
        const shifted_side *const z = &sides[side];
        const double rate = unit / z->rho;
        const double sum =
            frgi_log_penalty(z->weights, z->logs, z->potentials, z->n, s->to.product, rate);
        for (int64_t i = 0; i < z->n; i++) {
            if (!(z->weights[i] > 0)) {
                continue;
            }
            const double x = z->potentials[i] - (s->to.product ? z->logs[i] : 0);
            const double share = z->weights[i] * exp(-rate * x - sum);
            const double each = z->sign * pulled * strength / z->rho * share;
            z->by_potential[i] += each;
            /* and by the weights in the sum; relative to the product log w is taken out of the
             * potential again */
            z->by_weight[i] -= (z->sign * pulled * strength * w->per_epsilon * share +
                                (s->to.product ? each : 0)) /
                               z->weights[i];
        }
    }
}

/** softmax of the potentials of live columns, times scale, added to `to`. */
static void add_softmax(const frgi_sweep *s, const double *potentials, double scale, double *to)
{
    double top = -(double)INFINITY, sum = 0;
    for (int64_t j = 0; j < s->m; j++) {
        top = s->to.b[j] > 0 ? fmax(top, potentials[j]) : top;
    }
    for (int64_t j = 0; j < s->m; j++) {
        sum += s->to.b[j] > 0 ? exp2(potentials[j] - top) : 0;
    }
    for (int64_t j = 0; j < s->m; j++) {
        to[j] += s->to.b[j] > 0 ? scale * exp2(potentials[j] - top) / sum : 0;
    }
}

/** Through what partial mass puts on the plain step, by which the derivative is `pulled`; returns
 *  what is to be taken off the derivative by q, in units of softmax(q). */
static double pull_raise(unrolled *w, const double *q, const double *plain, double pulled,
                         double *by_plain)
{
    const frgi_sweep *const s = &w->t.s;
    const double mass = w->t.total;
    const double ratio = exp2(frgi_log_sum(plain, s->to.b, w->m) - frgi_log_sum(q, s->to.b, w->m));
    const double left = s->dummy.b + mass - s->dummy.b * ratio;
    if (!(left > 1e-9 * mass)) {
        return 0;
    }
    const double each = pulled * s->dummy.b * ratio / left;
    add_softmax(s, plain, each, by_plain);
    for (int64_t j = 0; j < w->m; j++) {
        w->by_b[j] += pulled * (ratio - 1) / left;
    }
    return each;
}

/** Through pass r of those replayed: from the derivative by its plain step to that by its q; dummy:
 *  by s.  by_both: that by what is put on the step. */
static void pull_pass(unrolled *w, int64_t r, double by_both, double *by_plain, double *by_q,
                      double *by_dummy)
{
    frgi_sweep *const s = &w->t.s;
    const double *const q = w->q + r * w->m, *const plain = w->plain + r * w->m;
    double sums = 0, top = -(double)INFINITY, of_row = 0, taken = 0;
    if (s->to.tau_a < 1 || s->to.tau_b < 1) {
        pull_shift(w, plain, w->p + r * w->n, by_plain);
    }
    const double raise = s->dummy.b > 0 ? pull_raise(w, q, plain, by_both, by_plain) : 0;
    for (int64_t j = 0; j < w->m; j++) {
        const bool live = s->to.b[j] > 0;
        w->h[j] = live ? s->to.tau_b * by_plain[j] * exp2(-log_column(s, q[j], plain[j], j)) : 0;
        w->by_b[j] += live ? (s->to.product ? 1 : s->to.tau_b) * by_plain[j] / s->to.b[j] : 0;
        top = live ? fmax(top, q[j]) : top;
    }
    for (int64_t j = 0; j < w->m; j++) {
        sums += s->to.b[j] > 0 ? exp2(q[j] - top) : 0;
    }
    /* the dummy row: v_j = dummy_b softmax(q)_j */
    for (int64_t j = 0; j < w->m && s->dummy.b > 0; j++) {
        of_row -= s->to.b[j] > 0 ? w->h[j] * s->dummy.b * exp2(q[j] - top) / sums : 0;
    }
    memcpy(s->F, w->p + r * w->n, (size_t)w->n * sizeof *s->F);
    w->dummy_now = w->dummy_g[r];
    for (int64_t i = 0; i < w->n; i++) {
        taken += dummy_of(w, i);
    }
    w->dummy_pull = taken > 0 ? *by_dummy / taken : 0;
    through_rows(w, q, w->p + r * w->n, pass_row, by_q);
    for (int64_t j = 0; j < w->m && s->dummy.b > 0; j++) {
        by_q[j] -= s->to.b[j] > 0 ? of_row * exp2(q[j] - top) / sums : 0;
        w->by_b[j] += of_row / s->dummy.b;
    }
    add_softmax(s, q, -raise, by_q);
    for (int64_t i = 0; i < w->n && s->dummy.a > 0; i++) {
        w->by_a[i] += *by_dummy / s->dummy.a;
    }
    *by_dummy = 0;
    for (int64_t i = 0; i < w->n; i++) {
        *by_dummy -= w->of_dummy[i];
    }
}

/** All passes that are saved, the last one first; by_q (3 x m): the derivative by the last q, then
 *  scratch. */
static void pull_passes(unrolled *w, double *by_q)
{
    const frgi_saved_iterates *const saved = &w->from->saved;
    double *const by_plain = by_q + w->m, *const later =
                                              by_plain + w->m; /* by the plain step before */
    double by_dummy = 0;
    int64_t end = saved->passes;
    const int64_t whole = (end - 1) / FRGI_SAVED_STRIDE * FRGI_SAVED_STRIDE;
    const int64_t oldest = whole - FRGI_SAVED_MOST + FRGI_SAVED_STRIDE;
    memset(later, 0, (size_t)w->m * sizeof *later);
    for (int64_t first = whole; first >= 0 && first >= oldest; first -= FRGI_SAVED_STRIDE) {
        replay(w, first, end - first);
        for (int64_t r = end - first - 1; r >= 0; r--) {
            const double mu = saved->momentum[(first + r) % FRGI_SAVED_MOST];
            double by_both = 0;
            for (int64_t j = 0; j < w->m; j++) {
                by_plain[j] = (1 + mu) * by_q[j] + later[j];
                by_both += w->t.s.to.b[j] > 0 ? by_q[j] + later[j] : 0;
                later[j] = -mu * by_q[j];
            }
            pull_pass(w, r, by_both, by_plain, by_q, &by_dummy);
        }
        end = first;
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

/** The next `count` doubles of a block. */
static double *take_doubles(double **from, int64_t count)
{
    double *const at = *from;
    *from += count;
    return at;
}

static frg_status open_unrolled(unrolled *w, frg_context *ctx)
{
    frgi_sweep *const s = &w->t.s;
    const frgi_sweep *const known = &w->from->s;
    const int64_t n = w->n, m = w->m, ld = w->ld, rows = s->rows;
    const int64_t each = 9 * rows + 8 * ld + FRGI_GRAD_CHUNKS * m;
    TRY(NEW0(ctx, &w->memory, frgi_mul(FRGI_SAVED_STRIDE, (size_t)(n + 2 * m)), "a derivative"));
    TRY(NEW0(ctx, &w->doubles, each, "a derivative"));
    double *memory = w->memory, *at = w->doubles;
    w->p = take_doubles(&memory, FRGI_SAVED_STRIDE * n);
    w->q = take_doubles(&memory, FRGI_SAVED_STRIDE * m);
    w->plain = take_doubles(&memory, FRGI_SAVED_STRIDE * m);
    s->F = take_doubles(&at, rows);
    s->base.H0 = take_doubles(&at, rows);
    s->p = take_doubles(&at, rows);
    s->dummy.row = take_doubles(&at, rows);
    s->mass = take_doubles(&at, rows);
    s->base.h = (float *)(void *)take_doubles(&at, rows);
    w->extra = take_doubles(&at, rows);
    w->by_a = take_doubles(&at, rows);
    w->of_dummy = take_doubles(&at, rows);
    s->G = take_doubles(&at, ld);
    s->base.G0 = take_doubles(&at, ld);
    s->G_last = take_doubles(&at, ld);
    s->col = take_doubles(&at, ld);
    s->base.g = (float *)(void *)take_doubles(&at, ld);
    s->g = take_doubles(&at, ld);
    w->h = take_doubles(&at, ld);
    w->by_b = take_doubles(&at, ld);
    w->sums = take_doubles(&at, FRGI_GRAD_CHUNKS * m);
    memcpy(s->F, known->F, (size_t)rows * sizeof *s->F);
    memcpy(s->base.H0, known->base.H0, (size_t)rows * sizeof *s->base.H0);
    memcpy(s->base.h, known->base.h, (size_t)rows * sizeof *s->base.h);
    memcpy(s->G, known->G, (size_t)ld * sizeof *s->G);
    memcpy(s->base.G0, known->base.G0, (size_t)ld * sizeof *s->base.G0);
    memcpy(s->base.g, known->base.g, (size_t)ld * sizeof *s->base.g);
    w->t.saved.G = NULL; /* nothing is recorded */
    w->t.rounding.done = w->t.skip.allowed = w->t.skip.holds = w->t.accelerate = false;
    return FRG_OK;
}

frg_status frgi_host_unroll(const frgi_transport *t, const frg_array *g, const frg_array *out,
                            double *a, double *b)
{
    frg_context *const ctx = t->ctx;
    const bool holds = t->s.to.tau_a == 1 && t->s.to.tau_b == 1 && !(t->how.mass > 0);
    unrolled w = {.t = *t,
                  .from = t,
                  .g = g,
                  .out = out,
                  .n = t->s.n,
                  .m = t->s.m,
                  .ld = t->s.ld,
                  .exact_rows = t->s.to.tau_a == 1 && !(t->how.mass > 0),
                  .per_epsilon = t->k / FRGI_LOG2_E};
    double *by_q = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, open_unrolled(&w, ctx));
    TRY_TO(done, NEW0(ctx, &by_q, 3 * w.m, "a derivative"));
    through_rows(&w, t->s.G, t->s.F, plan_row, by_q);
    if (t->saved.passes > 0) {
        pull_passes(&w, by_q);
    }
    if (holds) {
        frgi_centre(w.by_a, t->s.to.a, w.n);
        frgi_centre(w.by_b, t->s.to.b, w.m);
    }
    if (a) {
        memcpy(a, w.by_a, (size_t)w.n * sizeof *a);
    }
    if (b) {
        memcpy(b, w.by_b, (size_t)w.m * sizeof *b);
    }
done:
    DROP(ctx, &w.memory);
    DROP(ctx, &w.doubles);
    DROP(ctx, &by_q);
    return status;
}
