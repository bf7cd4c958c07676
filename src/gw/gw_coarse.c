/* gw_coarse.c - the start of a large problem from a small one.
 *
 * Representatives are farthest points; every point belongs to the nearest one, whose weight is the
 * sum.  The small problem keeps the distances of the large one (a graph on the representatives
 * alone would have longer paths).  It is solved n_start times with different random numbers, and
 * the plan of lowest exact energy is kept: the first steps are noisy and may end near a local
 * minimum in which a part of the shape is mirrored, which the energy alone shows.  The large
 * problem takes over the sampled pairs (pairs of representatives are pairs of its points) and the
 * potentials (of the nearest representative).
 */
#include <math.h>
#include <string.h>

#include "gw/gw_level_device.h"
#include "gw/gw_state.h"

/* Representatives at most: of 4000 and 5000 points of two spirals these many gave every one of 40
 * seeds the right order (rank correlation .998 and more). */
enum { MOST_OF_SOURCE = 400, MOST_OF_TARGET = 500 };

typedef struct {
    int64_t n, m;
    int32_t *chosen_x, *chosen_y, *nearest_x, *nearest_y;
    double *a, *b;
    frgi_distances x, y;
    frgi_level level;
} coarse;

static void gather_weights(const double *from, int64_t n, const int32_t *nearest, double *to,
                           int64_t count)
{
    memset(to, 0, (size_t)count * sizeof *to);
    for (int64_t i = 0; i < n; i++) {
        to[nearest[i]] += from[i];
    }
}

static frg_status open_coarse(coarse *c, frgi_level *fine)
{
    frg_context *const ctx = fine->ctx;
    const int64_t n = fine->x->n, m = fine->y->n;
    TRY(NEW(ctx, &c->chosen_x, c->n, "representatives"));
    TRY(NEW(ctx, &c->chosen_y, c->m, "representatives"));
    TRY(NEW(ctx, &c->nearest_x, n, "representatives"));
    TRY(NEW(ctx, &c->nearest_y, m, "representatives"));
    TRY(NEW(ctx, &c->a, c->n, "representatives"));
    TRY(NEW(ctx, &c->b, c->m, "representatives"));
    TRY(frgi_distances_spread(fine->x, c->n, c->chosen_x, c->nearest_x));
    TRY(frgi_distances_spread(fine->y, c->m, c->chosen_y, c->nearest_y));
    gather_weights(fine->a, n, c->nearest_x, c->a, c->n);
    gather_weights(fine->b, m, c->nearest_y, c->b, c->m);
    TRY(frgi_distances_subset(&c->x, fine->x, c->chosen_x, c->n));
    TRY(frgi_distances_subset(&c->y, fine->y, c->chosen_y, c->m));
    frgi_cost_storage storage = frgi_level_storage(fine->o, true);
    storage.steps = fine->t.steps;
    TRY(frgi_level_open(&c->level, ctx, fine->o, &c->x, &c->y, c->a, c->b, NULL, storage, true));
    c->level.average.on = true;
    c->level.saved.state = fine->saved.state;
    c->level.trace = fine->trace;
    return FRG_OK;
}

static void close_coarse(coarse *c, frg_context *ctx)
{
    frgi_level_close(&c->level);
    frgi_distances_close(&c->x);
    frgi_distances_close(&c->y);
    DROP(ctx, &c->chosen_x);
    DROP(ctx, &c->chosen_y);
    DROP(ctx, &c->nearest_x);
    DROP(ctx, &c->nearest_y);
    DROP(ctx, &c->a);
    DROP(ctx, &c->b);
}

/** E of the plan with exact row and column sums, so that energies of different starts compare. */
static frg_status final_energy(frgi_level *l, double *energy)
{
    frgi_marginal_error before, after;
    frgi_plan_sums sums;
    l->t.accelerate = true;
    const frg_status status = frgi_transport_solve(&l->t, 1e-4, 60);
    l->t.accelerate = false;
    TRY(status);
    TRY(frgi_transport_finish(&l->t, true, &before, &after));
    TRY(frgi_plan_sums_take(l, false, &sums));
    *energy = frgi_energy_of(&sums, 1, 1);
    frgi_trace_cost(l, *energy, 0);
    return FRG_OK;
}

static double sum_w_log_w(const double *w, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += w[i] > 0 ? w[i] * log(w[i]) : 0;
    }
    return sum;
}

/** KL(P | a b') = sum P log (P / a b') of the present plan, of mass 1: the mutual information of a
 *  point and its image. */
static double information_of(const frgi_level *l)
{
    return frgi_plan_entropy(l, NULL) + 1 - sum_w_log_w(l->a, l->x->n) - sum_w_log_w(l->b, l->y->n);
}

/** `trial` steps from every start; the two plans of lowest energy are kept. */
static frg_status try_starts(coarse *c, const frgi_level *fine, int64_t trial,
                             frg_gw_report *report)
{
    frgi_level *const l = &c->level;
    frg_gw_reason reason;
    l->saved.phase = FRGI_COARSE_STARTS;
    for (int64_t run = frgi_state_turn(l, FRGI_COARSE_STARTS); run < fine->o->n_start; run++) {
        TRY(frgi_level_reset(l, fine->run + (uint64_t)run));
        l->saved.turn = run;
        frg_status status =
            frgi_level_loop(l, trial, trial, false, &reason, &report->coarse_iterations);
        if (status != FRG_OK) {
            return status;
        }
        double energy;
        TRY(final_energy(l, &energy));
        TRY(frgi_level_remember(l, energy, information_of(l)));
    }
    return FRG_OK;
}

/** E_CHECKPOINT where start q is missing: a damaged state may name one that it does not hold. */
static frg_status is_kept(const frgi_level *l, int64_t q)
{
    if (!l->starts[q].F) {
        FAIL(l->ctx, E_CHECKPOINT, "the state of the alignment has no start %lld",
             (long long)q + 1);
    }
    return FRG_OK;
}

/** The rest of the steps from a start, whose place the result takes; its next draws are those of a
 *  longer run. */
static frg_status refine(coarse *c, const frgi_level *fine, int64_t q, int64_t trial,
                         frg_gw_report *report)
{
    frgi_level *const l = &c->level;
    const frg_gw_opts *const o = fine->o;
    const bool anneal = o->anneal != FRG_GW_ANNEAL_NONE;
    const int64_t rest = o->max_iter - trial, enough = anneal || rest < 25 ? rest : 25;
    frg_gw_reason reason;
    l->saved.phase = FRGI_COARSE;
    if (enough <= 0) {
        return FRG_OK; /* the trial was all */
    }
    TRY(frgi_level_reset(l, 0));
    if (!frgi_state_waits(l, FRGI_COARSE)) {
        l->step = trial;
        TRY(frgi_level_recall(l, &l->starts[q]));
        if (!anneal && l->starts[q].information < FRGI_BROAD) {
            frgi_level_widen(l);
        }
    }
    const frg_status status = frgi_level_loop(l, enough, anneal ? o->min_iter : enough, anneal,
                                              &reason, &report->coarse_iterations);
    if (status != FRG_OK) {
        return status;
    }
    TRY(is_kept(l, q));
    const double information = information_of(l);
    /* pairs for the fine level, before final_energy changes the potentials */
    l->step++;
    TRY(frgi_draw_pairs(l, l->sampled.drawn, STREAM_ROWS + 50, l->sampled.lagged[0]));
    frgi_start_fill(l, &l->starts[q]);
    l->starts[q].information = information;
    return FRG_OK;
}

/** Whether two starts found different plans: of more than a quarter of the pairs of one, the pair
 *  of the other that is nearest in X is not near in Y. */
static frg_status are_different(coarse *c, const frgi_start *one, const frgi_start *other,
                                bool *out)
{
    frgi_level *const l = &c->level;
    const int64_t count = l->sampled.drawn;
    int32_t *nodes = NULL;
    float *gaps = NULL;
    int64_t near = 0;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW(l->ctx, &nodes, 4 * count, "starts"));
    TRY_TO(done, NEW(l->ctx, &gaps, frgi_mul(2, frgi_mul((size_t)count, (size_t)count)), "starts"));
    for (int64_t r = 0; r < count; r++) {
        nodes[r] = one->pairs[r].i;
        nodes[count + r] = other->pairs[r].i;
        nodes[2 * count + r] = one->pairs[r].j;
        nodes[3 * count + r] = other->pairs[r].j;
    }
    float *const in_y = gaps + count * count;
    TRY_TO(done, frgi_distances_cross(&c->x, nodes, count, nodes + count, count, gaps));
    TRY_TO(done,
           frgi_distances_cross(&c->y, nodes + 2 * count, count, nodes + 3 * count, count, in_y));
    for (int64_t r = 0; r < count; r++) {
        int64_t nearest = 0;
        for (int64_t q = 0; q < count; q++) {
            nearest = gaps[r * count + q] < gaps[r * count + nearest] ? q : nearest;
        }
        near += in_y[r * count + nearest] < 0.15f; /* of the largest distance */
    }
    *out = 4 * near < 3 * count;
done:
    DROP(l->ctx, &nodes);
    DROP(l->ctx, &gaps);
    return status;
}

/** The start of lowest energy, refined; where the energy of a different plan is within 5 % of it (a
 *  near symmetry), both are refined and the lower one is taken. */
static frg_status best_start(coarse *c, frgi_level *fine, frg_gw_report *report)
{
    frgi_level *const l = &c->level;
    const int64_t trial = fine->o->max_iter < 15 ? fine->o->max_iter : 15;
    const int64_t turn = frgi_state_turn(l, FRGI_COARSE); /* 0: the one; 1, 2: the two in turn */
    frg_status status = FRG_OK;
    bool two = turn > 0;
    if (!frgi_state_waits(l, FRGI_COARSE)) {
        status = try_starts(c, fine, trial, report);
        if (status == FRG_OK && l->starts[1].F &&
            l->starts[1].energy <= 1.05 * l->starts[0].energy) {
            TRY(are_different(c, &l->starts[0], &l->starts[1], &two));
        }
    }
    two = two && fine->o->max_iter > trial;
    for (int64_t q = turn > 1; status == FRG_OK && q < 1 + two; q++) {
        l->saved.turn = two ? q + 1 : 0;
        status = refine(c, fine, q, trial, report);
        if (status == FRG_OK && two) {
            TRY(final_energy(l, &l->starts[q].energy));
        }
    }
    if (status == FRG_OK && two && l->starts[1].energy < l->starts[0].energy) {
        const frgi_start lower = l->starts[1];
        l->starts[1] = l->starts[0];
        l->starts[0] = lower;
    }
    return status;
}

static frg_status hand_over(const coarse *c, const frgi_start *from, frgi_level *fine)
{
    frgi_sweep *const s = &fine->t.s;
    double *const F = fine->product.row, *const G = F + s->rows;
    /* the coarse epsilon is where the fine level goes on; potentials are in its units of log 2 */
    fine->epsilon = from->epsilon;
    fine->t.k = FRGI_LOG2_E / from->epsilon;
    for (int64_t i = 0; i < s->n; i++) {
        const int32_t r = c->nearest_x[i];
        F[i] = s->to.log_a[i] + (c->a[r] > 0 ? from->F[r] - log2(c->a[r]) : 0);
    }
    for (int64_t j = 0; j < s->m; j++) {
        const int32_t r = c->nearest_y[j];
        G[j] = c->b[r] > 0 && s->to.b[j] > 0 ? from->G[r] + s->to.log_b[j] - log2(c->b[r]) : 0;
    }
    frgi_transport_copy(&fine->t, s->F, F, (size_t)s->n * sizeof *F);
    frgi_transport_copy(&fine->t, s->G, G, (size_t)s->m * sizeof *G);
    for (int64_t r = 0; r < from->drawn; r++) {
        fine->sampled.given[r].i = c->chosen_x[from->pairs[r].i];
        fine->sampled.given[r].j = c->chosen_y[from->pairs[r].j];
    }
    if (from->information < FRGI_BROAD) {
        /* rows of a broad plan are averages over many columns, which the noise of the cost of few
         * pairs would make narrower */
        fine->sampled.drawn = frgi_drawn_of(fine->o, fine->sampled.count_most);
    }
    TRY(frgi_kept_reset(fine, false));
    TRY(fine->device ? frgi_level_device_potentials(fine) : FRG_OK);
    return frgi_level_put_pairs(fine, from->drawn);
}

frg_status frgi_coarse_start(frgi_level *fine, int64_t n_coarse, frg_gw_report *report, bool *done)
{
    coarse c = {.n = n_coarse, .m = n_coarse};
    const int64_t n = fine->x->n, m = fine->y->n;
    *done = false;
    if (n_coarse <= 0) {
        c.n = n / 4 < MOST_OF_SOURCE ? n / 4 : MOST_OF_SOURCE;
        c.m = m / 4 < MOST_OF_TARGET ? m / 4 : MOST_OF_TARGET;
        c.n = c.n > 10 ? c.n : 10;
        c.m = c.m > 10 ? c.m : 10;
    }
    if (c.n >= n || c.m >= m) {
        return FRG_OK;
    }
    report->starts = fine->o->n_start;
    frg_status status = open_coarse(&c, fine);
    if (status >= 0) {
        status = best_start(&c, fine, report);
    }
    if (status == FRG_OK) {
        status = is_kept(&c.level, 0);
    }
    if (status > 0 && !c.level.starts[0].F) { /* stopped in the first start */
        const frg_status kept = frgi_level_remember(&c.level, 0, (double)INFINITY);
        status = kept < 0 ? kept : status;
    }
    if (status >= 0) {
        const frg_status handed = hand_over(&c, &c.level.starts[0], fine);
        status = handed < 0 ? handed : status;
    }
    report->inner_iterations += c.level.spent.passes;
    fine->spent.build += c.level.spent.build;
    fine->spent.inner += c.level.spent.inner;
    fine->spent.sample += c.level.spent.sample;
    close_coarse(&c, fine->ctx);
    *done = status == FRG_OK;
    return status;
}
