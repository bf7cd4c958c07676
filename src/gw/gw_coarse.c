/* gw_coarse.c - the start of a large problem from a small one.
 *
 * Representatives are farthest points; every point belongs to the nearest one, whose weight is the sum.  The
 * small problem keeps the distances of the large one (a graph on the representatives alone would take other
 * ways).  It is solved n_start times with different random numbers, the plan of lowest exact energy is kept:
 * noisy first steps can lock a plan into a fold, and only the energy tells.  The large problem takes over
 * anchors (pairs of representatives are pairs of its points) and potentials (of the nearest representative).
 */
#include <math.h>
#include <string.h>

#include "gw/gw_solver.h"

typedef struct {
    int64_t n, m;
    int32_t *chosen_x, *chosen_y, *nearest_x, *nearest_y;
    double *a, *b;
    frgi_distances x, y;
    frgi_level level;
    /* of the best start */
    double *F, *G;
    frgi_pair *pairs;
    double energy;
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
    TRY(NEW(ctx, &c->F, c->n, "representatives"));
    TRY(NEW(ctx, &c->G, c->m, "representatives"));
    TRY(frgi_distances_spread(fine->x, c->n, c->chosen_x, c->nearest_x));
    TRY(frgi_distances_spread(fine->y, c->m, c->chosen_y, c->nearest_y));
    gather_weights(fine->a, n, c->nearest_x, c->a, c->n);
    gather_weights(fine->b, m, c->nearest_y, c->b, c->m);
    TRY(frgi_distances_subset(&c->x, fine->x, c->chosen_x, c->n));
    TRY(frgi_distances_subset(&c->y, fine->y, c->chosen_y, c->m));
    TRY(frgi_level_open(&c->level, ctx, fine->o, &c->x, &c->y, c->a, c->b, NULL, true));
    c->level.smooths = true;
    return NEW(ctx, &c->pairs, c->level.room, "anchors");
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
    DROP(ctx, &c->F);
    DROP(ctx, &c->G);
    DROP(ctx, &c->pairs);
}

/** Row and column sums exact, so that energies of different starts compare. */
static frg_status settle(frgi_level *l)
{
    frgi_marginal_error before, after;
    l->t.accelerate = true;
    TRY(frgi_transport_solve(&l->t, 1e-4, 60));
    l->t.accelerate = false;
    return frgi_transport_finish(&l->t, true, &before, &after);
}

/** Some steps for every start, the rest for the best one. */
static frg_status best_start(coarse *c, frgi_level *fine, frg_gw_report *report)
{
    frgi_level *const l = &c->level;
    const frg_gw_opts *const o = fine->o;
    frg_gw_reason reason;
    uint64_t best = 0;
    double lowest = (double)INFINITY;
    const int64_t trial = o->max_iter < 15 ? o->max_iter : 15;
    for (int64_t run = 0; run < o->n_start; run++) {
        TRY(frgi_level_reset(l, fine->run + (uint64_t)run));
        frg_status status =
            frgi_level_loop(l, trial, trial, false, &reason, &report->coarse_iterations);
        if (status != FRG_OK) {
            return status;
        }
        TRY(settle(l));
        frgi_plan_sums sums;
        TRY(frgi_plan_sums_take(l, false, &sums));
        const double energy = frgi_energy_of(&sums, 1, 1);
        if (energy < lowest) {
            lowest = energy;
            best = fine->run + (uint64_t)run;
            memcpy(c->F, l->t.s.F, (size_t)c->n * sizeof *c->F);
            memcpy(c->G, l->t.s.G, (size_t)c->m * sizeof *c->G);
            memcpy(c->pairs, l->ages[0], (size_t)l->room * sizeof *c->pairs);
        }
    }
    /* back to the best one; its next draws are those of a longer run */
    l->run = best;
    frgi_transport_restart(&l->t);
    memcpy(l->t.s.F, c->F, (size_t)c->n * sizeof *c->F);
    memcpy(l->t.s.G, c->G, (size_t)c->m * sizeof *c->G);
    memcpy(l->ages[0], c->pairs, (size_t)l->room * sizeof *c->pairs);
    l->n_ages = 1;
    l->age_used[0] = 0;
    l->age_count[0] = l->room;
    c->energy = lowest;
    const bool anneal = o->anneal != FRG_GW_ANNEAL_NONE;
    const int64_t rest = o->max_iter - trial, enough = anneal || rest < 25 ? rest : 25;
    return enough > 0 ? frgi_level_loop(l, enough, anneal ? o->min_iter : enough, anneal, &reason,
                                        &report->coarse_iterations)
                      : FRG_OK;
}

static frg_status hand_over(coarse *c, frgi_level *fine)
{
    frgi_level *const l = &c->level;
    frgi_sweep *const s = &fine->t.s;
    const double *const F = l->t.s.F, *const G = l->t.s.G;
    /* the coarse epsilon is where the fine level goes on; potentials are in its units of log 2 */
    fine->epsilon = l->epsilon;
    fine->t.k = FRGI_LOG2_E / l->epsilon;
    for (int64_t i = 0; i < s->n; i++) {
        const int32_t r = c->nearest_x[i];
        s->F[i] = s->log_a[i] + (c->a[r] > 0 ? F[r] - log2(c->a[r]) : 0);
    }
    for (int64_t j = 0; j < s->m; j++) {
        const int32_t r = c->nearest_y[j];
        s->G[j] = c->b[r] > 0 && s->b[j] > 0 ? G[r] + s->log_b[j] - log2(c->b[r]) : 0;
    }
    l->step++;
    TRY(frgi_draw_pairs(l, fine->room, STREAM_ROWS + 50, fine->ages[0]));
    for (int64_t r = 0; r < fine->room; r++) {
        fine->ages[0][r].i = c->chosen_x[fine->ages[0][r].i];
        fine->ages[0][r].j = c->chosen_y[fine->ages[0][r].j];
    }
    fine->n_ages = 1;
    fine->age_count[0] = fine->room;
    fine->age_used[0] = 0;
    return FRG_OK;
}

frg_status frgi_coarse_start(frgi_level *fine, int64_t n_coarse, frg_gw_report *report, bool *done)
{
    coarse c = {.n = n_coarse, .m = n_coarse};
    const int64_t n = fine->x->n, m = fine->y->n;
    *done = false;
    if (n_coarse <= 0) {
        c.n = n / 4 < 500 ? n / 4 : 400;
        c.m = m / 4 < 500 ? m / 4 : 500;
        c.n = c.n > 10 ? c.n : 10;
        c.m = c.m > 10 ? c.m : 10;
    }
    if (c.n >= n || c.m >= m) {
        return FRG_OK;
    }
    frg_status status = open_coarse(&c, fine);
    if (status >= 0) {
        status = best_start(&c, fine, report);
    }
    if (status >= 0) {
        const frg_status handed = hand_over(&c, fine);
        status = handed < 0 ? handed : status;
    }
    report->inner_iterations += c.level.inner;
    close_coarse(&c, fine->ctx);
    *done = status >= 0;
    return status;
}
