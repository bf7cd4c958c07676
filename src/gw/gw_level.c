/* gw_level.c - one level of the outer iteration: a step, and the loop of steps with annealing and
 * stopping.
 *
 * A step of the sampled mode (frgi_level_step), R pairs at a time:
 *
 *     gather   pairs (i_r, j_r) from the averaged plan (gw_anchors.c); Dx_ir = C(i, i_r) and
 *              Dy_jr = D(j, j_r), their distances to all points (gw_pairs.c)
 *
 *                  L_ij = mean_r Dx_ir^2 + mean_r Dy_jr^2 - (2/R) sum_r Dx_ir Dy_jr
 *
 *              an unbiased estimate of L(P)
 *     solve    a few passes of Sinkhorn's iteration on L from the potentials of the last step: Pnew
 *     keep     P <- (1 - alpha) P + alpha Pnew, as pairs of Pnew for the steps to come
 *
 * The first two terms of L change nothing but the potentials where the marginals are balanced; they
 * are left out there, so that their noise does not disturb the warm start.  There the mean
 * distances u_i = sum_k C_ik a_k and v_j = sum_l D_jl b_l need no pairs either:
 *
 *     (2/R) sum_r (Dx_ir - u_i)(Dy_jr - v_j) + 2 u_i v_j
 *
 * has the mean of (2/R) sum_r Dx_ir Dy_jr and, as distances differ from each other by less than
 * from 0, a small part of its variance.
 *
 * Stopping and annealing look at E from pairs that no step has used, every fifth step; with a
 * linear cost at (1 - theta) E + 2 theta <Clin, P>.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gw/gw_level_device.h"
#include "gw/gw_state.h"

enum { WIDE_PASSES = 20, NEAR_PASSES = 10 };
#define SETTLED                                                                                    \
    0.01                /* error of columns from which epsilon alone decides how long the rest
                           takes */
#define WIDEST     16   /* epsilon where a settling begins, in units of the last one */
#define FLOATS_END 2e-5 /* error of columns where passes in double go on */

double frgi_epsilon_start(const frg_gw_opts *o)
{
    return o->epsilon > 0 ? o->epsilon : 1e-4;
}

double frgi_epsilon_end(const frg_gw_opts *o)
{
    const double start = frgi_epsilon_start(o);
    return fmax(start / 10, fmin(5e-4, start));
}

int64_t frgi_starts(const frg_gw_opts *o, int64_t trial)
{
    const int64_t possible = trial > 0 ? o->max_iter / 2 / trial : 1;
    const int64_t starts = o->n_start < possible ? o->n_start : possible;
    return starts > 1 ? starts : 1;
}

bool frgi_is_balanced(const frg_gw_opts *o)
{
    return isinf(o->rho_source) && isinf(o->rho_target) && !(o->mass > 0);
}

/* ---- opening --------------------------------------------------------------------------------- */

int64_t frgi_drawn_of(const frg_gw_opts *o, int64_t count)
{
    return (int64_t)ceil((double)count * fmin(1 / o->damping, 4)) + 8;
}

frgi_cost_storage frgi_level_storage(const frg_gw_opts *o, bool store)
{
    const bool widens = o->polish && o->polish_tol < FLOATS_END && o->rank == 0;
    return (frgi_cost_storage){.store = FRGI_X32, .stored = store, .widens = widens};
}

frg_status frgi_level_open(frgi_level *l, frg_context *ctx, const frg_gw_opts *o, frgi_distances *x,
                           frgi_distances *y, const double *a, const double *b, const float *linear,
                           frgi_cost_storage storage, bool may_widen)
{
    memset(l, 0, sizeof *l);
    *l = (frgi_level){.ctx = ctx, .o = o, .x = x, .y = y, .a = a, .b = b, .linear = linear};
    l->seed = frg_seed(ctx);
    l->epsilon = frgi_epsilon_start(o);
    frgi_level_forget(l, FRGI_STARTS_HELD);
    const frgi_marginals how = {.a = a,
                                .b = b,
                                .rho_a = o->rho_source,
                                .rho_b = o->rho_target,
                                .product = o->reference == FRG_GW_REFERENCE_PRODUCT,
                                .mass = o->mass};
    TRY(frgi_transport_open(&l->t, ctx, x->n, y->n, storage, &how));
    l->sampled.count = o->anchors;
    l->sampled.count_most = may_widen ? FRGI_WIDE * o->anchors : o->anchors;
    l->sampled.drawn = frgi_drawn_of(o, l->sampled.count);
    const int64_t capacity = frgi_drawn_of(o, l->sampled.count_most);
    for (int q = 0; q < FRGI_LAGS; q++) {
        l->sampled.area[q] = q;
    }
    TRY(NEW(ctx, &l->sampled.places, capacity, "anchors"));
    TRY(NEW(ctx, &l->sampled.given, capacity, "anchors"));
    TRY(NEW0(ctx, &l->product.row, l->t.s.rows + l->t.s.ld, "row and column terms"));
    TRY(frgi_pairs_open(l));
    return frgi_kept_open(l);
}

void frgi_level_close(frgi_level *l)
{
    if (!l->ctx) {
        return;
    }
    frgi_level_device_close(l);
    frgi_transport_close(&l->t);
    frgi_pairs_close(l);
    frgi_kept_close(l);
    DROP(l->ctx, &l->sampled.places);
    DROP(l->ctx, &l->sampled.given);
    DROP(l->ctx, &l->product.row);
    frgi_level_forget(l, FRGI_STARTS_HELD);
}

frg_status frgi_level_potentials(frgi_level *l)
{
    frgi_sweep *const s = &l->t.s;
    const double k = FRGI_LOG2_E / l->epsilon;
    frgi_transport_restart(&l->t);
    double *const F = l->product.row, *const G = F + s->rows;
    for (int64_t j = 0; j < s->ld; j++) {
        G[j] = l->initial.g && j < s->m ? k * l->initial.g[j] : 0;
    }
    for (int64_t i = 0; i < s->n; i++) {
        F[i] = l->initial.f && s->to.a[i] > 0 ? k * l->initial.f[i] : s->to.log_a[i];
    }
    frgi_transport_copy(&l->t, s->F, F, (size_t)s->n * sizeof *F);
    frgi_transport_copy(&l->t, s->G, G, (size_t)s->ld * sizeof *G);
    frgi_transport_copy(&l->t, s->mass, s->to.a, (size_t)s->n * sizeof *F);
    l->t.k = 0; /* whatever epsilon was */
    frgi_transport_set_dummy(&l->t);
    return l->device ? frgi_level_device_potentials(l) : FRG_OK;
}

frg_status frgi_level_reset(frgi_level *l, uint64_t run)
{
    l->run = run;
    l->step = 0;
    l->sampled.n_lagged = 1;
    l->stopping.best = (double)INFINITY;
    l->stopping.ema = (double)NAN;
    l->stopping.bad = l->stopping.stale = 0;
    l->stopping.floor = frgi_floor_begin();
    l->average.steps = 0;
    l->average.from = FRGI_SMOOTH_FROM;
    l->sampled.count = l->o->anchors;
    l->sampled.drawn = frgi_drawn_of(l->o, l->sampled.count);
    l->epsilon = frgi_epsilon_start(l->o);
    TRY(frgi_level_potentials(l));
    TRY(frgi_kept_reset(l, true));
    l->sampled.lagged_count[0] = l->sampled.drawn;
    l->sampled.lagged_used[0] = 0;
    l->t.steps->pairs->draw_product(l, STREAM_START);
    return l->device ? frgi_level_device_put_pairs(l) : FRG_OK;
}

void frgi_level_widen(frgi_level *l)
{
    l->sampled.count = l->sampled.count_most;
    l->sampled.drawn = frgi_drawn_of(l->o, l->sampled.count);
}

/* ---- several starts -------------------------------------------------------------------------- */

static void close_start(frg_context *ctx, frgi_start *s)
{
    DROP(ctx, &s->F);
    DROP(ctx, &s->G);
    DROP(ctx, &s->pairs);
    s->energy = (double)INFINITY;
}

void frgi_level_forget(frgi_level *l, int count)
{
    for (int q = 0; q < count; q++) {
        close_start(l->ctx, &l->starts[q]);
    }
}

frg_status frgi_start_open(const frgi_level *l, frgi_start *s)
{
    TRY(NEW(l->ctx, &s->F, l->t.s.n, "starts"));
    TRY(NEW(l->ctx, &s->G, l->t.s.m, "starts"));
    return NEW0(l->ctx, &s->pairs, frgi_drawn_of(l->o, l->sampled.count_most), "starts");
}

void frgi_start_fill(const frgi_level *l, frgi_start *s)
{
    frgi_transport_copy(&l->t, s->F, l->t.s.F, (size_t)l->t.s.n * sizeof *s->F);
    frgi_transport_copy(&l->t, s->G, l->t.s.G, (size_t)l->t.s.m * sizeof *s->G);
    frgi_transport_copy(&l->t, s->pairs, l->sampled.lagged[0],
                        (size_t)l->sampled.drawn * sizeof *s->pairs);
    s->run = l->run;
    s->epsilon = l->epsilon;
    s->drawn = l->sampled.drawn;
}

/** What l is now, its potentials and pairs brought back from a device; *out is left alone where it
 *  fails. */
static frg_status start_of(frgi_level *l, double energy, frgi_start *out)
{
    frgi_start s = {0};
    frg_status status = frgi_start_open(l, &s);
    if (status >= 0 && l->device) {
        status = frgi_level_device_fetch(l);
    }
    if (status < 0) {
        close_start(l->ctx, &s);
        return status;
    }
    frgi_start_fill(l, &s);
    s.energy = energy;
    *out = s;
    return FRG_OK;
}

frg_status frgi_level_remember(frgi_level *l, double energy, double information)
{
    int q = 0;
    energy = isfinite(energy) ? energy : DBL_MAX;
    while (q < FRGI_STARTS_KEPT && l->starts[q].energy <= energy) {
        q++;
    }
    if (q == FRGI_STARTS_KEPT) {
        return FRG_OK;
    }
    frgi_start s;
    TRY(start_of(l, energy, &s));
    s.information = information;
    close_start(l->ctx, &l->starts[FRGI_STARTS_KEPT - 1]);
    for (int r = FRGI_STARTS_KEPT - 1; r > q; r--) {
        l->starts[r] = l->starts[r - 1];
    }
    l->starts[q] = s;
    return FRG_OK;
}

frg_status frgi_level_keep_candidate(frgi_level *l, double energy, double error)
{
    frgi_start s;
    TRY(start_of(l, isfinite(energy) ? energy : DBL_MAX, &s));
    s.error = error;
    close_start(l->ctx, &l->starts[FRGI_CANDIDATE]);
    l->starts[FRGI_CANDIDATE] = s;
    return FRG_OK;
}

frg_status frgi_level_recall(frgi_level *l, const frgi_start *from)
{
    l->run = from->run;
    frgi_transport_restart(&l->t);
    frgi_transport_copy(&l->t, l->t.s.F, from->F, (size_t)l->t.s.n * sizeof *from->F);
    frgi_transport_copy(&l->t, l->t.s.G, from->G, (size_t)l->t.s.m * sizeof *from->G);
    frgi_transport_set_dummy(&l->t);
    TRY(frgi_kept_reset(l, false));
    if (l->device) {
        TRY(frgi_level_device_potentials(l));
    }
    memcpy(l->sampled.given, from->pairs, (size_t)from->drawn * sizeof *from->pairs);
    return frgi_level_put_pairs(l, from->drawn);
}

/* ---- one step -------------------------------------------------------------------------------- */

frg_status frgi_level_put_pairs(frgi_level *l, int64_t count)
{
    const frgi_pair *const from = l->sampled.given;
    frgi_transport_copy(&l->t, l->sampled.lagged[0], from, (size_t)count * sizeof *from);
    l->sampled.n_lagged = 1;
    l->sampled.lagged_used[0] = 0;
    l->sampled.lagged_count[0] = count;
    return l->device ? frgi_level_device_put_pairs(l) : FRG_OK;
}

frg_status frgi_level_pack(frgi_level *l, int64_t R)
{
    if (l->device) {
        return frgi_level_device_pack(l, R);
    }
    l->t.steps->pairs->pack(l, R);
    return FRG_OK;
}

frg_status frgi_level_gather(frgi_level *l)
{
    const struct frgi_pairs_steps *const steps = l->t.steps->pairs;
    const int64_t R = l->sampled.count;
    const double unit = FRGI_LOG2_E / l->epsilon * (1 - l->o->linear_weight);
    frgi_take_samples(l);
    if (l->device) {
        return frgi_level_device_rows(l, R);
    }
    TRY(steps->distances(l, R));
    if (l->o->scale == FRG_GW_SCALE_BATCH_MAX) {
        steps->divide(l, R);
    }
    TRY(frgi_level_pack(l, R));
    if (l->kept.sums) {
        return frgi_kept_terms(l, unit);
    }
    if (l->product.means || !frgi_is_balanced(l->o)) {
        steps->terms(l, R, unit);
    }
    return FRG_OK;
}

bool frgi_level_may_average(const frgi_level *l)
{
    const double beta = l->o->lambda_ema_beta;
    return l->average.on && beta > 0 && beta < 1;
}

bool frgi_level_averages(const frgi_level *l)
{
    return frgi_level_may_average(l) && l->step >= l->average.from;
}

frg_status frgi_level_solve(frgi_level *l, int64_t passes, double tol)
{
    frgi_sweep *const s = &l->t.s;
    const frgi_build_ops *const ops = frgi_build_ops_of(l->ctx);
    const double beta = l->o->lambda_ema_beta;
    const bool averages = frgi_level_averages(l);
    /* the noise of all steps at one epsilon averages out: a share of 2 / (k + 2), which trusts the
     * later plans more */
    l->average.steps = averages ? l->average.steps + 1 : 0;
    const double share = fmin(beta, 2 / (double)(l->average.steps + 2));
    if (l->device) {
        return frgi_level_device_solve(l, averages ? share : 1, passes, tol);
    }
    const bool plain = frgi_is_balanced(l->o);
    l->factors = (frgi_factors){.rank = l->product.rank,
                                .left = l->product.left,
                                .right = l->product.right,
                                .packed = l->product.packed,
                                .scale = l->product.scale,
                                .mean_row = l->product.means ? l->product.terms : NULL,
                                .mean_column = l->product.means ? l->product.terms + s->rows : NULL,
                                .k = (float)(FRGI_LOG2_E / l->epsilon),
                                .row = plain ? NULL : l->product.terms,
                                .column = plain ? NULL : l->product.terms + s->rows,
                                .past = averages ? l->t.kept : NULL,
                                .keep = 1 - (float)share,
                                .linear = l->linear,
                                .theta = (float)l->o->linear_weight};
    frgi_transport_forget(&l->t);
    frgi_transport_renew(&l->t, l->epsilon, ops->build, &l->factors);
    frgi_transport_copy(&l->t, l->stopping.g_before, s->G, (size_t)s->m * sizeof *s->G);
    l->t.accelerate = plain && tol > 0 && tol < FRGI_CLOSE;
    const int64_t before = l->t.passes, most = passes + NEAR_PASSES;
    for (int64_t p = 0; p < passes; p++) {
        frgi_transport_pass(&l->t);
        if (!(l->t.last.error < (double)INFINITY)) {
            FAIL(l->ctx, E_NUMERIC, "outer step %lld at epsilon %g gave %g", (long long)l->step + 1,
                 l->epsilon, l->t.last.error);
        }
        l->factors.past =
            l->t.kept; /* the costs are in the exponents: only their potentials change */
        l->factors.keep = 1;
        const bool far = l->t.last.out_of_range > 0 || l->t.last.increment > 60;
        if (far) { /* rows are read after this: their exponents have to be near 0 */
            frgi_transport_renew(&l->t, l->epsilon, ops->build, &l->factors);
            passes += p == passes - 1 && passes < most;
        } else if (l->t.last.error <= tol || (tol > 0 && l->t.last.at_floor)) {
            break;
        }
    }
    if (l->t.accelerate) {
        frgi_transport_end_plain(&l->t);
        l->t.accelerate = false;
    }
    l->spent.passes += l->t.passes - before;
    l->stopping.change = frgi_transport_change(&l->t, l->stopping.g_before);
    return FRG_OK;
}

/** Passes to columns of error tol, `most` at most; looks up every few of them.  The last ones are
 *  wide where floats cannot tell an error of tol. */
static frg_status pass_on(frgi_level *l, double tol, int64_t most)
{
    enum { AT_ONCE = 10 };
    frg_status status = FRG_OK;
    const int64_t before = l->t.passes;
    frgi_transport_watch(&l->t);
    for (int64_t left = most; left > 0 && status == FRG_OK; left = most - (l->t.passes - before)) {
        const bool widens = l->t.storage.widens && tol < FLOATS_END && !frgi_is_wide(&l->t.s);
        const double goal = widens ? FLOATS_END : tol;
        TRY(frgi_transport_solve(&l->t, goal, left < AT_ONCE ? left : AT_ONCE));
        if (goal > 0 && (l->t.last.error <= goal || l->t.last.at_floor)) {
            if (!widens) {
                return FRG_OK;
            }
            frgi_transport_widen(&l->t);
        }
        status = frgi_level_beat(l, "polish", l->t.passes - before, most, l->t.last.error, tol);
    }
    return status;
}

/** frgi_level_final_passes without a change of the points' order: at epsilon times WIDEST, halved
 *  down to epsilon, WIDE_PASSES each, where columns are far off; then at epsilon. */
static frg_status final_passes(frgi_level *l, double tol, int64_t most)
{
    const double epsilon = l->epsilon;
    const int64_t before = l->t.passes;
    frg_status status = FRG_OK;
    if (l->t.last.error > SETTLED && frgi_is_balanced(l->o) && most > 4 * WIDE_PASSES) {
        for (double wide = WIDEST; wide > 1 && status == FRG_OK; wide /= 2) {
            if (wide * epsilon > frgi_epsilon_start(l->o)) {
                continue;
            }
            l->factors.k = (float)(FRGI_LOG2_E / (wide * epsilon));
            frgi_transport_renew(&l->t, wide * epsilon, l->t.s.x.fill, &l->factors);
            status = pass_on(l, SETTLED, WIDE_PASSES);
            TRY(status);
        }
        if (l->t.passes > before) {
            l->factors.k = (float)(FRGI_LOG2_E / epsilon);
            frgi_transport_renew(&l->t, epsilon, l->t.s.x.fill, &l->factors);
        }
    }
    if (status > 0) { /* stopped: one pass at the last epsilon makes rows exact */
        TRY(frgi_transport_solve(&l->t, tol, 1));
        return status;
    }
    return pass_on(l, tol, most - (l->t.passes - before));
}

frg_status frgi_level_final_passes(frgi_level *l, double tol, int64_t most)
{
    frgi_order order;
    if (l->device) {
        return frgi_level_device_final_passes(l, tol, most);
    }
    frg_status status = frgi_order_open(&order, l);
    if (status >= 0) {
        status = final_passes(l, tol, most);
    }
    frgi_order_close(&order, l);
    return status;
}

frg_status frgi_level_finish(frgi_level *l, bool round, frgi_marginal_error *before,
                             frgi_marginal_error *after)
{
    return l->device ? frgi_level_device_finish(l, round, before, after)
                     : frgi_transport_finish(&l->t, round, before, after);
}

frg_status frgi_level_step(frgi_level *l, int64_t passes, double tol)
{
    double begin = frgi_seconds();
    TRY(frgi_level_gather(l));
    double now = frgi_seconds();
    l->spent.build += now - begin;
    begin = now;
    TRY(frgi_level_solve(l, passes, tol));
    now = frgi_seconds();
    l->spent.inner += now - begin;
    begin = now;
    TRY(frgi_kept_fold(l));
    TRY(frgi_keep_lagged(l));
    l->spent.sample += frgi_seconds() - begin;
    l->step++;
    return FRG_OK;
}

/* ---- the loop -------------------------------------------------------------------------------- */

int64_t frgi_patience(int64_t min_iter)
{
    return min_iter / 2 > 20 ? min_iter / 2 : 20;
}

bool frgi_level_falls(frgi_level *l, double cost, double error)
{
    l->stopping.ema = isnan(l->stopping.ema) ? cost : 0.8 * l->stopping.ema + 0.2 * cost;
    /* an average of weight 0.2 has a third of the standard error: less is no improvement */
    const double least = fmax(0.005 * fmax(fabs(l->stopping.best), 1e-12), error / 3);
    if (l->stopping.best - l->stopping.ema > least || isinf(l->stopping.best)) {
        l->stopping.best = l->stopping.ema;
        l->stopping.bad = l->stopping.stale = 0;
        return true;
    }
    l->stopping.bad += FRGI_CHECK_EVERY;
    l->stopping.stale++;
    return false;
}

/** Annealing and the plateau test on a new held-out cost; true where the loop may end. */
static bool may_end(frgi_level *l, double cost, double error, double end, bool anneal,
                    int64_t min_iter)
{
    if (frgi_level_falls(l, cost, error)) {
        return false;
    }
    if (anneal && l->epsilon > end) {
        if (l->stopping.stale >=
            2) { /* three checks with the lowest one: the next epsilon, which has its own lowest */
            l->epsilon = fmax(end, l->epsilon * pow(10, -0.125));
            l->stopping.best = (double)INFINITY;
            l->stopping.ema = (double)NAN;
            l->average.steps = 0;
        }
        return false;
    }
    return l->stopping.bad >= frgi_patience(min_iter);
}

frg_status frgi_level_beat(const frgi_level *l, const char *phase, int64_t done, int64_t most,
                           double residual, double target)
{
    return frgi_heartbeat(l->ctx, &(frg_progress){.solver = "gw",
                                                  .phase = phase,
                                                  .done = done,
                                                  .total = most,
                                                  .residual = residual,
                                                  .target = target});
}

frg_status frgi_level_loop(frgi_level *l, int64_t max_iter, int64_t min_iter, bool anneal,
                           frg_gw_reason *reason, int64_t *steps)
{
    const frg_gw_opts *const o = l->o;
    const double start = frgi_epsilon_start(o), end = frgi_epsilon_end(o);
    const bool progress = anneal && o->anneal == FRG_GW_ANNEAL_PROGRESS;
    const bool tests = progress || min_iter < max_iter;
    int64_t t = 0;
    *reason = FRG_GW_MAX_ITER;
    TRY(frgi_state_enter(l, max_iter, &t));
    for (; t < max_iter; t++) {
        TRY(frgi_state_point(l, t));
        if (anneal && o->anneal == FRG_GW_ANNEAL_ITER) {
            l->epsilon =
                start * pow(end / start, (double)t / (double)(max_iter > 1 ? max_iter : 1));
            l->average.steps = 0;
        }
        TRY(frgi_level_step(l, o->max_inner, o->marginal_tol));
        ++*steps;
        TRY(frgi_trace_add(l));
        const frg_status beat =
            frgi_level_beat(l, "outer", t + 1, max_iter, l->stopping.ema, (double)NAN);
        if (beat != FRG_OK) {
            *reason = FRG_GW_CANCELLED;
            return beat;
        }
        if (t + 1 >= min_iter && l->stopping.change < o->tol && (!progress || l->epsilon <= end)) {
            *reason = FRG_GW_CONVERGED_CHANGE;
            return FRG_OK;
        }
        /* earlier the average would drag the cost of the first steps along */
        if (tests && t + 1 >= min_iter && (t + 1) % FRGI_CHECK_EVERY == 0) {
            const double begin = frgi_seconds();
            double cost, error;
            TRY(frgi_cost_estimate(l, FRGI_CHECK_PAIRS, &cost, &error));
            frgi_trace_cost(l, cost, error);
            l->spent.sample += frgi_seconds() - begin;
            if (may_end(l, cost, error, end, progress, min_iter)) {
                *reason = FRG_GW_CONVERGED_PLATEAU;
                return FRG_OK;
            }
        }
    }
    return FRG_OK;
}
