/* gw_run.c - the run of an alignment, in this order:
 *
 *     coarse start, or several short starts           (large; small)
 *     outer steps: L(P) from anchors, a few passes of Sinkhorn's iteration, new anchors
 *     polish: accelerated passes on the last L to marginals of polish_tol, then rounding
 *     energy, standard error, lower bound
 *
 * References: Peyre, Cuturi and Solomon (2016), entropic Gromov-Wasserstein; Kerdoncuff, Emonet and
 * Sebban (2021), sampled Gromov-Wasserstein; Altschuler, Weed and Rigollet (2017), rounding; Memoli
 * (2011), lower bounds.
 */
#include <math.h>
#include <string.h>

#include "gw/gw_align.h"
#include "gw/gw_level_device.h"

enum { TRIAL_STEPS = 5 }; /* of one of several starts: enough for a poor local minimum to show */
enum { CANDIDATE_STEPS = 10 }; /* of the candidate start, whose energy meets that of an ended run */

/* Multiply-adds of an exact energy that are worth doing unasked. */
#define EXACT_ENERGY 2e9
/* Coordinates, of all pairs of points of both sides, that are worth looking at unasked: for a
 * bound; for a figure. */
#define ALL_DISTANCES 1e9
#define FEW_DISTANCES 5e7

/* ---- starts ---------------------------------------------------------------------------------- */

/** Anchors of a plan that is given: independent draws by inversion over all entries. */
static frg_status draw_from_start(frg_gw *s)
{
    frgi_level *const l = &s->level;
    const int64_t m = s->y.n, count = s->x.n * m;
    for (int64_t r = 0; r < l->sampled.drawn; r++) {
        double u[2], below = 0;
        frgi_uniforms(l->seed, STREAM_START, (uint64_t)r, 0, u);
        int64_t at = 0;
        for (; at < count - 1; at++) {
            below += (double)s->start[at];
            if (below > u[0]) {
                break;
            }
        }
        l->sampled.given[r] = (frgi_pair){(int32_t)(at / m), (int32_t)(at % m)};
    }
    return frgi_level_put_pairs(l, l->sampled.drawn);
}

/** The start from local distance distributions and CANDIDATE_STEPS steps of it: the candidate
 *  start, kept until the others have come to their end. */
static frg_status run_candidate(frg_gw *s)
{
    frgi_level *const l = &s->level;
    frg_gw_reason reason;
    double energy, error;
    frg_status status = FRG_OK;
    if (!frgi_state_waits(l, FRGI_STARTS)) {
        status = frgi_distributions_start(l);
    }
    if (status == FRG_OK) {
        status = frgi_level_loop(l, CANDIDATE_STEPS, CANDIDATE_STEPS, false, &reason,
                                 &s->report.outer_iterations);
    }
    if (status != FRG_OK) {
        return status;
    }
    TRY(frgi_cost_estimate(l, 2 * FRGI_CHECK_PAIRS, &energy, &error));
    frgi_trace_cost(l, energy, error);
    return frgi_level_keep_candidate(l, energy, error);
}

/** Several short runs; the one of lowest energy, or objective, goes on from where it was. */
static frg_status short_starts(frg_gw *s, int64_t starts)
{
    frgi_level *const l = &s->level;
    frg_gw_reason reason;
    l->saved.phase = FRGI_STARTS;
    for (int64_t run = frgi_state_turn(l, FRGI_STARTS); run < starts; run++) {
        double energy, error;
        TRY(frgi_level_reset(l, (uint64_t)run));
        l->saved.turn = run;
        if (run == 0 && frgi_starts_from_distributions(l, true)) {
            const frg_status tried = run_candidate(s);
            if (tried != FRG_OK) {
                return tried;
            }
            continue;
        }
        const frg_status status = frgi_level_loop(l, TRIAL_STEPS, TRIAL_STEPS, false, &reason,
                                                  &s->report.outer_iterations);
        if (status != FRG_OK) {
            return status;
        }
        TRY(frgi_cost_estimate(l, 2 * FRGI_CHECK_PAIRS, &energy, &error));
        frgi_trace_cost(l, energy, error);
        if (s->o.linear_weight > 0) { /* the whole of J: a linear cost may be paid for in entropy */
            double entropy = 0;
            if (l->device) {
                TRY(frgi_level_device_entropy(l, &entropy));
            } else {
                entropy = frgi_plan_entropy(l, NULL);
            }
            energy += 2 * l->epsilon * entropy;
        }
        TRY(frgi_level_remember(l, energy, (double)INFINITY));
    }
    TRY(frgi_level_recall(l, &l->starts[0]));
    frgi_level_forget(l, FRGI_STARTS_KEPT);
    return FRG_OK;
}

/** Goes on from the candidate start, where its energy is below that of the present plan by more
 *  than the noise of both and there are steps left. */
static frg_status go_on_from_candidate(frg_gw *s)
{
    frgi_level *const l = &s->level;
    const frgi_start *const candidate = &l->starts[FRGI_CANDIDATE];
    const frgi_state_numbers *const saved = &s->state.numbers;
    int64_t left = s->o.max_iter - s->report.outer_iterations;
    if (frgi_state_waits(l, FRGI_MAIN)) {
        left = s->o.max_iter - (saved->report.outer - saved->t);
    } else {
        double energy, error;
        if (!candidate->F || left < 1) {
            return FRG_OK;
        }
        TRY(frgi_cost_estimate(l, 2 * FRGI_CHECK_PAIRS, &energy, &error));
        frgi_trace_cost(l, energy, error);
        if (!(candidate->energy + 2 * hypot(error, candidate->error) < energy)) {
            return FRG_OK;
        }
        TRY(frgi_level_reset(l, 0));
        TRY(frgi_level_recall(l, candidate));
        l->step = CANDIDATE_STEPS;
        l->epsilon = candidate->epsilon;
        s->report.started_from = FRG_GW_START_PROFILES;
    }
    l->saved.turn = 1;
    return frgi_level_loop(l, left, s->o.min_iter, false, &s->report.reason,
                           &s->report.outer_iterations);
}

/* ---- running --------------------------------------------------------------------------------- */

/** Steps at full size after a coarse start. */
static frg_status fine_steps(frg_gw *s)
{
    frgi_level *const l = &s->level;
    frg_gw_report *const r = &s->report;
    int64_t t = 0;
    l->saved.phase = FRGI_FINE;
    l->saved.turn = 0;
    l->average.from = l->sampled.drawn > frgi_drawn_of(&s->o, s->o.anchors) ? 2 : 1;
    r->multiscale = 1;
    r->reason = FRG_GW_CONVERGED_PLATEAU;
    const int64_t steps = s->o.fine_steps < s->o.max_iter ? s->o.fine_steps : s->o.max_iter;
    TRY(frgi_state_enter(l, steps, &t));
    for (; t < steps; t++) {
        TRY(frgi_state_point(l, t));
        /* of a broad plan pairs of the first plan of this size on */
        l->sampled.count = t > 0 && l->sampled.drawn > frgi_drawn_of(&s->o, s->o.anchors)
                               ? l->sampled.count_most
                               : l->sampled.count;
        TRY(frgi_level_step(l, 5, s->o.marginal_tol));
        r->outer_iterations++;
        TRY(frgi_trace_add(l));
        const frg_status beat = frgi_level_beat(l, "fine", t + 1, steps, (double)NAN, (double)NAN);
        if (beat != FRG_OK) {
            return beat;
        }
    }
    return FRG_OK;
}

/** Its state says which run it is and no more: one that is taken up begins anew, and ends with the
 *  same bits. */
static frg_status vertex(frg_gw *s)
{
    TRY(frgi_level_reset(&s->level, 0));
    TRY(frgi_state_anew(&s->level, FRGI_VERTEX));
    return frgi_gw_vertex(s);
}

/** Pairs of a plan that is a list: independent draws by inversion. */
static frg_status draw_from_list(frgi_level *l, const frgi_transport_list *p)
{
    const int64_t n = l->x->n;
    for (int64_t r = 0; r < l->sampled.drawn; r++) {
        double u[2], below = 0;
        frgi_uniforms(l->seed, STREAM_START, (uint64_t)r, 0, u);
        int64_t i = 0, e = 0;
        for (; e < p->starts[n] - 1; e++) {
            below += p->values[e];
            if (below > u[0]) {
                break;
            }
        }
        while (p->starts[i + 1] <= e) {
            i++;
        }
        l->sampled.given[r] = (frgi_pair){(int32_t)i, p->columns[e]};
    }
    return frgi_level_put_pairs(l, l->sampled.drawn);
}

/** Pairs of the plan of the mode vertex.  Positive: stopped, and the plan is the list that there
 *  is. */
static frg_status start_at_vertex(frg_gw *s)
{
    frgi_level *const l = &s->level;
    frg_gw_report *const r = &s->report;
    const frg_status status = vertex(s);
    if (status != FRG_OK) {
        return status;
    }
    TRY(draw_from_list(l, l->t.list));
    l->t.list = NULL;
    if (l->device) {
        TRY(frgi_level_device_put_pairs(l));
    }
    TRY(frgi_kept_reset(l, false));
    r->vertex_energy = s->o.linear_weight > 0 ? (double)NAN : r->energy;
    r->energy_product = r->next_energy = (double)NAN;
    r->starts_agree = r->outer_iterations = 0;
    r->vertex = r->symmetric = 0;
    r->starts = 1;
    r->started_from = FRG_GW_START_VERTEX;
    return frgi_start_from_pairs(l);
}

/** All steps on all points, from one start or several. */
static frg_status whole_size(frg_gw *s)
{
    frgi_level *const l = &s->level;
    frg_gw_report *const r = &s->report;
    const int64_t starts = frgi_starts(&s->o, TRIAL_STEPS);
    const bool alone = s->o.start_from == FRG_GW_START_PROFILES;
    const bool given = s->start || s->potentials;
    const bool at_vertex = s->o.start_from == FRG_GW_START_VERTEX && !given;
    const bool many = starts > 1 && !alone && !at_vertex && !given && s->o.max_iter >= 40 &&
                      s->o.min_iter < s->o.max_iter;
    const bool by_distributions = !many && frgi_starts_from_distributions(l, false);
    const bool waits = frgi_state_waits(l, FRGI_MAIN);
    frg_status status = FRG_OK;
    r->starts = many ? starts : 1;
    if (many && !waits) {
        status = short_starts(s, starts);
    } else if (at_vertex && !waits) {
        status = start_at_vertex(s);
    } else if (by_distributions && !waits) {
        status = frgi_distributions_start(l);
    }
    if (status != FRG_OK) {
        return status;
    }
    r->started_from = by_distributions ? FRG_GW_START_PROFILES : r->started_from;
    l->saved.phase = FRGI_MAIN;
    l->saved.turn = 0;
    if (frgi_state_turn(l, FRGI_MAIN) == 0) {
        const bool anneal = s->o.anneal != FRG_GW_ANNEAL_NONE && !by_distributions && !at_vertex;
        const bool has_candidate = many && frgi_starts_from_distributions(l, true);
        const int64_t spent = many ? starts * TRIAL_STEPS : 0,
                      more = has_candidate ? CANDIDATE_STEPS - TRIAL_STEPS : 0;
        status = frgi_level_loop(l, s->o.max_iter - spent - more, s->o.min_iter, anneal, &r->reason,
                                 &r->outer_iterations);
    }
    return many && status == FRG_OK ? go_on_from_candidate(s) : status;
}

static frg_status sampled_loop(frg_gw *s)
{
    frgi_level *const l = &s->level;
    frg_gw_report *const r = &s->report;
    TRY(frgi_level_reset(l, 0));
    if (s->start) {
        TRY(draw_from_start(s));
    }
    bool coarse = frgi_state_waits(l, FRGI_FINE);
    if (frgi_gw_is_multiscale(s) && !coarse) {
        frgi_host_step_open(s->ctx, FRGI_HOST_COARSE);
        const frg_status status = frgi_coarse_start(l, s->o.n_coarse, r, &coarse);
        frgi_host_step_close(s->ctx);
        if (status > 0) { /* stopped: what the coarse level knows, at full size */
            TRY(frgi_level_step(l, 5, s->o.marginal_tol));
        }
        if (status != FRG_OK) {
            return status;
        }
    }
    if (coarse) {
        return fine_steps(s);
    }
    return whole_size(s);
}

/** Distance in total variation to the product plan of the mass that is carried, from the rows. */
typedef struct {
    const frg_gw *s;
    double scale; /* of a b' */
    double *by_row;
} product_gap;

static void gap_of_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const product_gap *const g = user;
    double sum = 0;
    (void)chunk;
    for (int64_t j = 0; j < g->s->y.n; j++) {
        sum += fabs(row[j] - g->scale * g->s->a[i] * g->s->b[j]);
    }
    g->by_row[i] = sum / 2;
}

/** A warning where the plan is the product: then every row is, and some are enough to know. */
static frg_status warn_of_product(frg_gw *s)
{
    enum { ROWS = 128 };
    const double all_a = frgi_transport_sum(s->a, s->x.n), all_b = frgi_transport_sum(s->b, s->y.n);
    const double carried = s->plan.report.mass;
    product_gap g = {.s = s, .scale = carried / (all_a * all_b)};
    int64_t *first = NULL;
    frg_status status = FRG_OK;
    const int64_t n = s->x.n, rows = n < ROWS ? n : ROWS;
    double gap = 0, mass = 0;
    TRY_TO(done, NEW0(s->ctx, &g.by_row, n, "a plan"));
    TRY_TO(done, NEW0(s->ctx, &first, n + 1, "a plan"));
    for (int64_t q = 0; q < rows; q++) {
        first[q * n / rows + 1] = 1;
        mass += carried * s->a[q * n / rows] / all_a;
    }
    for (int64_t i = 0; i < n; i++) {
        first[i + 1] += first[i];
    }
    frgi_transport_some_rows(&s->level.t, first, gap_of_row, &g);
    for (int64_t i = 0; i < n; i++) {
        gap += g.by_row[i];
    }
    if (gap < 1e-3 * mass && !s->degenerate && n > 1 && s->y.n > 1) {
        s->report.reason = FRG_GW_STALLED_PRODUCT;
        frgi_warn(s->ctx, W_PRODUCT, "the plan is within %.1e of the product of its marginals",
                  mass > 0 ? gap / mass : 0);
    }
done:
    DROP(s->ctx, &g.by_row);
    DROP(s->ctx, &first);
    return status;
}

void frgi_gw_deny(frg_gw *s)
{
    frg_gw_reason *const reason = &s->report.reason;
    if (*reason == FRG_GW_CONVERGED_CHANGE || *reason == FRG_GW_CONVERGED_PLATEAU) {
        *reason = FRG_GW_NOT_CONFIRMED;
    }
}

/** Whether the marginals of the plan as it is are those that polish_tol asks for: of partial plans
 *  the mass, and no more of rows and columns than there is; of relaxed ones the side that holds. */
static void confirm_marginals(frg_gw *s, const frgi_marginal_error *after)
{
    const frg_gw_opts *const o = &s->o;
    const bool partial = o->mass > 0;
    const double of_rows = partial || isfinite(o->rho_source) ? 0 : after->source_l1,
                 of_columns = partial || isfinite(o->rho_target) ? 0 : after->target_l1,
                 of_parts = partial ? after->over + fabs(after->mass - o->mass) : 0;
    const double error = fmax(of_parts, fmax(of_rows, of_columns)) / s->level.t.total;
    if (error > o->polish_tol && (o->polish || o->rank > 0)) {
        frgi_warn(s->ctx, W_MARGINALS, "the plan's marginals are off by %.1e (L1)", error);
        frgi_gw_deny(s);
    }
}

/** may_pass: a run that was stopped takes no more passes. */
static frg_status polish(frg_gw *s, bool may_pass)
{
    frgi_level *const l = &s->level;
    frgi_marginal_error before, after;
    frg_status status = FRG_OK;
    if (may_pass && s->o.polish && s->o.polish_passes > 0 && s->o.rank == 0) {
        const bool relaxed = isfinite(s->o.rho_source) || isfinite(s->o.rho_target);
        const int64_t had = l->t.passes;
        l->t.accelerate = !relaxed;
        l->t.since = 0;
        status = frgi_level_final_passes(l, s->o.polish_tol, s->o.polish_passes);
        l->t.accelerate = false;
        TRY(status);
        l->spent.passes += l->t.passes - had;
        if (status == FRG_OK && l->t.last.error > s->o.polish_tol && !relaxed && s->o.round) {
            frgi_warn(s->ctx, W_MARGINALS,
                      "after %lld passes the column sums were off by %.1e (L1)",
                      (long long)(l->t.passes - had), l->t.last.error);
        }
    }
    TRY(frgi_level_finish(l, s->o.round != 0, &before, &after));
    if (!isfinite(after.mass + after.source_l1 + after.target_l1)) {
        FAIL(s->ctx, E_NUMERIC, "the plan at epsilon %g has mass %g", l->epsilon, after.mass);
    }
    frgi_plan_set(&s->plan, &l->t, before, after);
    s->plan.factored = s->o.rank > 0;
    if (may_pass) {
        confirm_marginals(s, &after);
    }
    return status;
}

/** J = (1 - theta) E + 2 theta <Clin, P> + 2 eps sum P (log P - 1), scaled units. */
static double objective_of(const frg_gw *s, const frgi_plan_sums *sums)
{
    const double theta = s->o.linear_weight;
    return (1 - theta) * frgi_energy_of(sums, 1, 1) + 2 * theta * sums->linear +
           2 * s->level.epsilon * sums->entropy;
}

/** Coordinates that a look at all distances of a side takes. */
static double cost_of_all(const frgi_distances *d)
{
    const double each = frgi_distances_whole(d)  ? 1
                        : d->kind == FRGI_VECTOR ? (double)d->d
                                                 : (double)INFINITY;
    return each * (double)d->n * (double)d->n;
}

/** Whether all distances may be looked at unasked. */
static bool are_cheap(const frg_gw *s)
{
    return cost_of_all(&s->x) + cost_of_all(&s->y) <= ALL_DISTANCES;
}

frg_status frgi_gw_estimate(frg_gw *s, frgi_level *l, const double units[2], double *energy,
                            double *error)
{
    const double mass = s->plan.report.mass;
    frgi_means means = {0};
    frg_status status = FRG_OK;
    l->step++;
    const bool centred = frgi_is_balanced(&s->o) && s->plan.report.rounded && are_cheap(s);
    if (centred) {
        TRY_TO(done, frgi_means_open(&means, l));
    }
    TRY_TO(done, frgi_energy_estimate(l, 1024, units[0], units[1], centred ? &means : NULL, energy,
                                      error));
    *energy *= mass * mass;
    *error *= mass * mass;
done:
    DROP(s->ctx, &means.u);
    return status;
}

/** E of a b' from the squared eccentricities of both sides: sum a C^2 a + sum b D^2 b - 2 (a C a)
 *  (b D b). */
static frg_status product_energy(frg_gw *s, const double *square, double *energy)
{
    frgi_means means = {0};
    const frg_status status = frgi_means_open(&means, &s->level);
    double sum = 0;
    for (int64_t i = 0; i < s->x.n; i++) {
        sum += s->a[i] * square[i];
    }
    for (int64_t j = 0; j < s->y.n; j++) {
        sum += s->b[j] * square[s->x.n + j];
    }
    *energy = sum - 2 * means.mean_u / (double)s->x.scale * means.mean_v / (double)s->y.scale;
    DROP(s->ctx, &means.u);
    return status;
}

/** The lower bound of a balanced problem without a linear cost, and E of a b' where it is cheaper
 *  still, from the eccentricities of both sides. */
static frg_status bound_energy(frg_gw *s, bool with_product)
{
    frg_gw_report *const r = &s->report;
    double *square, bound = (double)NAN;
    TRY(NEW(s->ctx, &square, s->x.n + s->y.n, "eccentricities"));
    frg_status status = frgi_gw_eccentricities(&s->x, s->a, square);
    if (status >= 0) {
        status = frgi_gw_eccentricities(&s->y, s->b, square + s->x.n);
    }
    if (status >= 0) {
        status =
            frgi_lower_bound(s->ctx, square, s->a, s->x.n, square + s->x.n, s->b, s->y.n, &bound);
        r->lower_bound = fmax(r->lower_bound, bound);
    }
    if (status >= 0 && with_product) {
        status = product_energy(s, square, &r->energy_product);
    }
    DROP(s->ctx, &square);
    return status;
}

/** Energy and objective of the plan, exact where that is cheap, else E from pairs; the lower bound;
 *  E of a b'.  A list comes with its energy, and may have a bound. */
static frg_status evaluate(frg_gw *s)
{
    frg_gw_report *const r = &s->report;
    const double n = (double)s->x.n, m = (double)s->y.n;
    const double units[] = {1 / (double)s->x.scale, 1 / (double)s->y.scale};
    const bool known = s->level.t.list, balanced = frgi_is_balanced(&s->o);
    r->lower_bound = known ? r->lower_bound : (double)NAN;
    r->objective = known ? r->objective : (double)NAN;
    r->energy_standard_error = 0;
    if (!known && n * m * (n + m) <= EXACT_ENERGY) {
        frgi_plan_sums sums;
        const bool objective = balanced && s->o.rank == 0 && s->o.scale != FRG_GW_SCALE_BATCH_MAX;
        TRY(frgi_plan_sums_take(&s->level, objective, &sums));
        r->energy = frgi_energy_of(&sums, units[0], units[1]);
        r->objective = objective ? objective_of(s, &sums) : r->objective;
    } else if (!known) {
        TRY(frgi_gw_estimate(s, &s->level, units, &r->energy, &r->energy_standard_error));
    }
    if (!(r->energy_standard_error > 0)) { /* a sum of squares, of which rounding may leave less */
        r->energy = fmax(r->energy, 0);
    }
    if (!balanced || s->o.linear_weight > 0 || !are_cheap(s)) {
        return FRG_OK;
    }
    return bound_energy(s, !known && cost_of_all(&s->x) + cost_of_all(&s->y) <= FEW_DISTANCES);
}

/** Exponents of the plan to start from: log2(P_ij / a_i), with the potentials that the sweep wants
 *  inside. */
static void fill_start(const frgi_sweep *w, int64_t i0, int64_t groups, void *rows)
{
    const float *const plan = w->x.source;
    float *const out = rows;
    for (int64_t q = 0; q < groups * FRGI_GROUP; q++) {
        const int64_t i = i0 + q;
        const float a = i < w->n && w->to.a[i] > 0 ? (float)w->to.a[i] : 1;
        for (int64_t j = 0; j < w->ld; j++) {
            const float p = i < w->n && j < w->m ? plan[i * w->m + j] / a : 0;
            out[q * w->ld + j] = log2f(fmaxf(p, 0x1p-120f)) + w->base.h[i] + w->base.g[j];
        }
    }
}

/** No steps: the plan to start from, its rows and columns scaled to the marginals. */
static frg_status keep_start(frg_gw *s)
{
    frgi_transport *const t = &s->level.t;
    TRY(frgi_level_reset(&s->level, 0));
    frgi_transport_renew(t, s->level.epsilon, fill_start, s->start);
    TRY(frgi_transport_solve(t, s->o.polish_tol, s->o.polish_passes > 1 ? s->o.polish_passes : 1));
    s->level.spent.passes += t->passes;
    return FRG_OK;
}

/** No steps, and no plan to start from: a b'. */
static frg_status take_product(frg_gw *s)
{
    frgi_level *const l = &s->level;
    TRY(frgi_level_reset(l, 0));
    l->t.steps->pairs->no_cost(l);
    if (l->device) {
        float *const rows[] = {l->product.rows_x, l->product.rows_y};
        memset(l->product.row, 0, (size_t)(l->t.s.rows + l->t.s.ld) * sizeof *l->product.row);
        frgi_transport_copy(&l->t, rows[0], l->product.row, (size_t)s->x.n * sizeof *rows[0]);
        frgi_transport_copy(&l->t, rows[1], l->product.row, (size_t)s->y.n * sizeof *rows[1]);
        TRY(frgi_level_pack(l, 1));
    }
    return frgi_level_solve(l, 3, 0);
}

/** The plan of a run that takes no steps; every plan is as good where there is nothing to align. */
static frg_status without_steps(frg_gw *s, bool stays)
{
    s->report.reason = s->degenerate ? FRG_GW_DEGENERATE : FRG_GW_MAX_ITER;
    return stays ? keep_start(s) : take_product(s);
}

/** The steps of the mode.  Positive: stopped. */
static frg_status take_steps(frg_gw *s)
{
    frgi_level *const l = &s->level;
    frg_gw_report *const r = &s->report;
    if (s->o.mode == FRG_GW_VERTEX) {
        return vertex(s);
    }
    if (s->o.mode == FRG_GW_EXACT || s->o.mode == FRG_GW_LANDMARK) {
        TRY(frgi_level_reset(l, 0));
        return frgi_exact_loop(l, s->o.mode == FRG_GW_LANDMARK, &r->reason, &r->outer_iterations);
    }
    return s->o.rank > 0 ? frgi_lowrank_loop(l, &s->factors, s->factors_there, r) : sampled_loop(s);
}

/** The plan of the last step to its marginals, and its energy; status: of the steps. */
static frg_status end_plan(frg_gw *s, frg_status status, bool stays)
{
    const double begin = frgi_seconds();
    const frg_status polished = polish(s, status == FRG_OK && !stays && !s->level.t.list);
    TRY(polished);
    TRY(warn_of_product(s));
    s->report.polish_seconds = frgi_seconds() - begin;
    TRY(evaluate(s));
    return status == FRG_OK ? polished : status;
}

/** The run but for the verdict.  Positive: stopped. */
static frg_status make_plan(frg_gw *s)
{
    const bool steps = s->o.max_iter > 0 && !s->degenerate,
               stays = !steps && s->start && !s->degenerate;
    frg_status status = steps ? take_steps(s) : FRG_OK;
    if (status < 0) {
        return status;
    }
    /* a device has the steps of a plan in factors alone, and no level of the mode vertex */
    const bool here = s->factors_there || (!steps && !s->level.device);
    if (here) {
        frgi_host_step_open(s->ctx, s->factors_there ? FRGI_HOST_FACTORED : FRGI_HOST_PRODUCT);
    }
    if (!steps) {
        status = without_steps(s, stays);
    } else if (s->o.rank > 0) {
        frgi_lowrank_give_plan(&s->level, &s->factors);
    }
    status = status < 0 ? status : end_plan(s, status, stays);
    if (here) {
        frgi_host_step_close(s->ctx);
    }
    return status;
}

static frg_status run(frg_gw *s)
{
    frgi_level *const l = &s->level;
    frgi_transport_restart(&l->t);
    l->t.list = NULL;
    l->t.passes = 0;
    l->spent.passes = 0;
    frg_status status = make_plan(s);
    TRY(status);
    if (status == FRG_OK) {
        status = frgi_gw_verdict(s);
        TRY(status);
    }
    s->report.reason = status > 0 ? FRG_GW_CANCELLED : s->report.reason;
    return status;
}

/** What a device has counted since `before`, and while the alignment was made. */
static void report_counts(frg_gw *s, frgi_device_counts before)
{
    frgi_device_counts all = s->opened;
    frg_gw_report *const r = &s->report;
    frgi_device_counts_since(s->where.dev, before, &all);
    r->device_launches = all.launches;
    r->device_waits = all.waits;
    r->device_bytes_in = all.bytes_in;
    r->device_bytes_out = all.bytes_out;
}

/** The state that stopped runs leave, and none that was waiting for another kind of run. */
static frg_status end_states(frg_gw *s, frg_status status)
{
    struct frgi_state *const state = &s->state;
    if (state->from && status >= 0) {
        state->from = NULL;
        FAIL(s->ctx, E_MISMATCH, "the checkpoint is of another kind of run");
    }
    state->from = NULL;
    if (status > 0 && state->save && state->filled) {
        TRY(state->save(state->user, s, 1));
    }
    return status;
}

/** What no run before has left. */
static void begin_report(frg_gw *s)
{
    frg_gw_report *const r = &s->report;
    r->outer_iterations = r->inner_iterations = r->coarse_iterations = 0;
    r->mode = s->o.mode;
    r->starts = 1;
    r->starts_agree = 0;
    r->vertex = r->symmetric = 0;
    r->energy_product = r->next_energy = r->rounding_floor = r->vertex_energy = (double)NAN;
    r->sharpened_energy = r->blur = r->other_energy = r->step_gain = (double)NAN;
    r->verdict = "not compared: stopped";
    r->verdict_points = 0;
    r->started_from = s->start || s->potentials ? FRG_GW_START_GIVEN : FRG_GW_START_PRODUCT;
    s->state.filled = false;
    s->trace.n = 0;
    s->level.spent = (frgi_spent){0};
}

/** What the level has counted. */
static void end_report(frg_gw *s)
{
    frg_gw_report *const r = &s->report;
    const frgi_level *const l = &s->level;
    r->inner_iterations += l->spent.passes;
    r->build_seconds = l->spent.build;
    r->inner_seconds = l->spent.inner;
    r->sample_seconds = l->spent.sample;
    r->truncated_ages = l->sampled.truncated;
    r->anchors = s->o.mode == FRG_GW_SAMPLED ? l->sampled.count : 0;
    r->epsilon_end = l->t.list ? 0 : l->epsilon;
    r->rounding_floor = r->reason == FRG_GW_ROUNDING_FLOOR ? l->stopping.floor.least : (double)NAN;
}

/** The status of a run that was not stopped, by the reason of its end. */
static frg_status status_of(const frg_gw *s)
{
    switch (s->report.reason) {
    case FRG_GW_MAX_ITER: /* with min_iter equal to max_iter the steps are those asked for */
        return s->o.min_iter != s->o.max_iter ? FRG_MAX_ITER : FRG_OK;
    case FRG_GW_ROUNDING_FLOOR:
    case FRG_GW_STALLED_PRODUCT:
    case FRG_GW_BEATEN:
    case FRG_GW_NOT_CONFIRMED:
        return FRG_STALLED;
    default:
        return FRG_OK;
    }
}

frg_status frg_gw_run(frg_gw *s, frg_info *info)
{
    if (!s) {
        return FRG_BAD_ARG;
    }
    frgi_run_begins(s->ctx);
    const frgi_device_counts before = frgi_device_counts_now(s->where.dev);
    frgi_host_steps_rewind(&s->host_steps);
    frgi_host_steps *const outer = frgi_host_steps_begin(s->ctx, &s->host_steps);
    frg_gw_report *const r = &s->report;
    const double begin = frgi_seconds(), set_up = r->graph_seconds + r->distances_seconds;
    begin_report(s);
    frg_status status = s->stopped ? s->stopped : end_states(s, run(s));
    end_report(s);
    r->total_seconds = set_up + frgi_seconds() - begin;
    report_counts(s, before);
    frgi_host_steps_end(s->ctx, outer);
    r->host_steps = s->host_steps.list;
    status = status == FRG_OK ? status_of(s) : status;
    if (info) {
        *info = (frg_info){.status = status,
                           .iterations = r->outer_iterations,
                           .residual = s->plan.report.target_before,
                           .objective = r->energy,
                           .setup_seconds = set_up,
                           .solve_seconds = frgi_seconds() - begin,
                           .peak_bytes = frg_peak_bytes(s->ctx),
                           .device_name = s->where.dev ? frgi_device_name(s->where.dev) : "cpu"};
    }
    return status;
}
