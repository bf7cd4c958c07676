/* gw_plan_device.c - what is made of an alignment's plan on a device.
 *
 *     E(P)                        frgi_level_device_energy from pairs; frgi_level_device_sums
 *     polish; rounding            frgi_level_device_final_passes; frgi_level_device_finish
 *
 * Behind the passes in floats `end`, in double over the same cost, makes the columns of the plan
 * exact where more is asked for than floats can tell, and adds the plan's sums.
 */
#include <math.h>

#include "gw/gw_level_there.h"

enum { WIDE_PASSES = 20, WIDEST = 16 };
#define SETTLED    0.01
#define FLOATS_END 2e-5

/* ---- energies -------------------------------------------------------------------------------- */

frg_status frgi_pairs_there_moments(const frgi_stage_place *place, const frgi_program *steps,
                                    const frgi_pairs_there *p, const frgi_means_there *means,
                                    bool fused, const double scales[2], double *moments,
                                    frgi_pair_moments *out)
{
    const frgi_means_there none = {p->x, p->y, 0, 0}, *const u = means ? means : &none;
    TRY(LAUNCH(place->dev, steps, "level_gaps", 2 * p->count, 1, place->group, BUFFER(p->sides),
               BUFFER(p->x), BUFFER(p->y), BUFFER(p->row), BUFFER(p->column), BUFFER(u->u),
               BUFFER(u->v), INT64(p->n), INT64(p->m), INT64(p->first), INT64(p->other),
               INT64(p->count), WIDE(scales[0]), WIDE(scales[1]), INT32(means != NULL),
               WIDE(u->mean_u), WIDE(u->mean_v)));
    TRY(LAUNCH(place->dev, steps, "level_moments", 1, 1, place->group, BUFFER(p->moments),
               BUFFER(p->sides), INT64(p->count)));
    if (fused) {
        TRY(LAUNCH(place->dev, steps, "level_linear", 1, 1, place->group, BUFFER(p->moments),
                   BUFFER(p->linear), BUFFER(p->row), BUFFER(p->column), INT64(p->m),
                   INT64(p->first), INT64(p->other), INT64(p->count)));
    }
    TRY(frgi_device_get(place->dev, moments, p->moments, LV_MOMENTS * sizeof *moments));
    TRY(frgi_device_wait(place->dev));
    *out = (frgi_pair_moments){.energy = moments[LV_ENERGY],
                               .error = moments[LV_ERROR],
                               .linear = moments[LV_LINEAR],
                               .linear_square = moments[LV_LINEAR_SQUARE],
                               .mass = moments[LV_MASS]};
    return FRG_OK;
}

/** frgi_level_device_energy with its means there, or NULL. */
static frg_status energy_of_pairs(frgi_level *l, int64_t count, const double scales[2],
                                  const frgi_means_there *means, frgi_pair_moments *out)
{
    frgi_level_device *const d = l->device;
    const int64_t first = FRGI_AREA_CHECK * d->pairs.count;
    const frgi_pairs_there pairs = {.x = d->x,
                                    .y = d->y,
                                    .linear = d->linear,
                                    .row = d->pairs.row,
                                    .column = d->pairs.column,
                                    .sides = d->sides,
                                    .moments = d->moments,
                                    .n = l->x->n,
                                    .m = l->y->n,
                                    .first = first,
                                    .other = first + d->pairs.count,
                                    .count = count};
    return frgi_pairs_there_moments(&d->place, d->steps, &pairs, means, l->linear != NULL, scales,
                                    d->host.moments, out);
}

frg_status frgi_level_device_energy(frgi_level *l, int64_t count, double scale_x, double scale_y,
                                    const frgi_means *means, frgi_pair_moments *out)
{
    frgi_device *const dev = l->device->place.dev;
    const double scales[2] = {scale_x, scale_y};
    frgi_means_there there = {.mean_u = 0};
    frg_status status = FRG_OK;
    if (!means) {
        return energy_of_pairs(l, count, scales, NULL, out);
    }
    there.mean_u = means->mean_u;
    there.mean_v = means->mean_v;
    TRY_TO(done, frgi_device_alloc(dev, (size_t)l->x->n * sizeof(float), "means", &there.u));
    TRY_TO(done, frgi_device_alloc(dev, (size_t)l->y->n * sizeof(float), "means", &there.v));
    TRY_TO(done, frgi_level_device_put_means(l, there.u, there.v, means->u, means->v));
    status = energy_of_pairs(l, count, scales, &there, out);
done:
    frgi_device_free(dev, &there.u);
    frgi_device_free(dev, &there.v);
    return status;
}

frg_status frgi_level_device_middle(frgi_level *l, double scale_x, double scale_y,
                                    const frgi_means *means, double *middle)
{
    frgi_level_device *const d = l->device;
    const frgi_stage *const g = &d->end;
    const int64_t n = l->x->n, m = l->y->n;
    frgi_buffer u = {0}, v = {0};
    double *by_row = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW(l->ctx, &by_row, n, "an energy"));
    TRY_TO(done, frgi_device_alloc(d->place.dev, (size_t)n * sizeof(float), "means", &u));
    TRY_TO(done, frgi_device_alloc(d->place.dev, (size_t)m * sizeof(float), "means", &v));
    TRY_TO(done, frgi_level_device_put_means(l, u, v, means->u, means->v));
    TRY_TO(done,
           LAUNCH(d->place.dev, g->program, "level_middle", n, 1, d->place.group, BUFFER(g->costs),
                  BUFFER(g->v), BUFFER(g->at), BUFFER(u), BUFFER(v), REAL(scale_x), REAL(scale_y)));
    TRY_TO(done, frgi_stage_get(&d->place, g, SK_ROW_COST, by_row, n));
    *middle = frgi_transport_sum(by_row, n);
done:
    DROP(l->ctx, &by_row);
    frgi_device_free(d->place.dev, &u);
    frgi_device_free(d->place.dev, &v);
    return status;
}

frg_status frgi_level_device_entropy(frgi_level *l, double *entropy)
{
    frgi_level_device *const d = l->device;
    const int64_t n = l->x->n;
    double *const sums = d->host.moments;
    TRY(LAUNCH(d->place.dev, d->steps, "level_entropy", n, 1, d->place.group, BUFFER(d->by_row),
               BUFFER(d->costs), BUFFER(d->loop.v), BUFFER(d->loop.at), INT32(d->loop.slot)));
    TRY(LAUNCH(d->place.dev, d->steps, "level_two_sums", 1, 1, d->place.group, BUFFER(d->moments),
               BUFFER(d->by_row), INT64(n)));
    TRY(frgi_device_get(d->place.dev, sums, d->moments, 2 * sizeof *sums));
    TRY(frgi_device_wait(d->place.dev));
    *entropy = sums[0] - sums[1];
    return FRG_OK;
}

enum { SUMS_OF_ROW = 4 }; /* of level_row_sums */

/** Memory of frgi_level_device_sums on the device: P, P' C and P' C D in doubles, sums. */
typedef struct {
    frgi_device_arena memory;
    frgi_buffer plan, middle, product, by_row, by_column, squares;
} sums_memory;

static void layout_sums(const frgi_level *l, sums_memory *s)
{
    const size_t n = (size_t)l->x->n, m = (size_t)l->y->n, all = frgi_mul(n, m) * sizeof(double);
    s->plan = frgi_device_take(&s->memory, all);
    s->middle = frgi_device_take(&s->memory, all);
    s->product = frgi_device_take(&s->memory, all);
    s->by_row = frgi_device_take(&s->memory, SUMS_OF_ROW * n * sizeof(double));
    s->by_column = frgi_device_take(&s->memory, m * sizeof(double));
    s->squares = frgi_device_take(&s->memory, (n > m ? n : m) * sizeof(double));
}

/** *out <- sum_i w_i sum_k C_ik^2 w_k, w (n) there and here. */
static frg_status square_sum(const frgi_level_device *d, frgi_buffer all, frgi_buffer w,
                             frgi_buffer squares, const double *weights, double *scratch, int64_t n,
                             double *out)
{
    TRY(LAUNCH(d->place.dev, d->end.program, "level_squares", n, 1, d->place.group, BUFFER(squares),
               BUFFER(all), BUFFER(w), INT64(n)));
    const size_t bytes = (size_t)n * sizeof *scratch;
    TRY(frgi_device_get(d->place.dev, scratch, frgi_device_slice(squares, 0, bytes), bytes));
    TRY(frgi_device_wait(d->place.dev));
    *out = 0;
    for (int64_t i = 0; i < n; i++) {
        *out += weights[i] * scratch[i];
    }
    return FRG_OK;
}

static frg_status add_sums(const frgi_level *l, const sums_memory *s, double *host,
                           frgi_plan_sums *out)
{
    const frgi_level_device *const d = l->device;
    frgi_device *const dev = d->place.dev;
    const frgi_program *const p = d->end.program;
    const int64_t n = l->x->n, m = l->y->n;
    double *const by_column = host + SUMS_OF_ROW * n, *const scratch = by_column + m;
    TRY(LAUNCH(dev, p, "level_plan", n, 1, d->place.group, BUFFER(s->plan), BUFFER(d->costs),
               BUFFER(d->end.v), BUFFER(d->end.at)));
    TRY(frgi_level_device_product(d, p, s->middle, s->plan, d->x, m, n, n)); /* P' C */
    TRY(frgi_level_device_product(d, p, s->product, s->middle, d->y, n, m, m));
    TRY(LAUNCH(dev, p, "level_row_sums", n, 1, d->place.group, BUFFER(s->by_row), BUFFER(s->plan),
               BUFFER(s->product), BUFFER(d->linear), INT64(n), INT64(m),
               INT32(l->linear != NULL)));
    TRY(LAUNCH(dev, p, "level_column_sums", (m + SK_BLOCK_COLUMNS - 1) / SK_BLOCK_COLUMNS, 1,
               d->place.group, BUFFER(s->by_column), BUFFER(s->plan), INT64(n), INT64(m)));
    TRY(frgi_device_get(dev, host, s->by_row, SUMS_OF_ROW * (size_t)n * sizeof *host));
    TRY(frgi_device_get(dev, by_column, s->by_column, (size_t)m * sizeof *host));
    TRY(frgi_device_wait(dev));
    out->cross = frgi_transport_sum(host + n, n);
    out->entropy = frgi_transport_sum(host + 2 * n, n);
    out->linear = frgi_transport_sum(host + 3 * n, n);
    TRY(square_sum(d, d->x, s->by_row, s->squares, host, scratch, n, &out->x));
    return square_sum(d, d->y, s->by_column, s->squares, by_column, scratch, m, &out->y);
}

frg_status frgi_level_device_sums(frgi_level *l, frgi_plan_sums *out)
{
    frgi_level_device *const d = l->device;
    const int64_t n = l->x->n, m = l->y->n;
    sums_memory s = {.memory = {.align = frgi_device_is(d->place.dev)->align}};
    double *host = NULL;
    frg_status status = FRG_OK;
    *out = (frgi_plan_sums){0};
    TRY_TO(done, NEW(l->ctx, &host, SUMS_OF_ROW * n + m + (n > m ? n : m), "an energy"));
    layout_sums(l, &s);
    TRY_TO(done, frgi_device_arena_open(&s.memory, d->place.dev, "an energy on a device"));
    layout_sums(l, &s);
    TRY_TO(done, add_sums(l, &s, host, out));
done:
    frgi_device_arena_close(&s.memory, d->place.dev);
    DROP(l->ctx, &host);
    return status;
}

/* ---- the end --------------------------------------------------------------------------------- */

/** x_ij = G0_j + H0_i - k c_ij in double from the cost that came over, a frgi_fill. */
static void fill_exponents(const frgi_sweep *s, int64_t i0, int64_t groups, void *rows)
{
    const frgi_level *const l = s->x.source;
    const float *const costs = l->device->host.costs;
    double *const out = rows;
    for (int64_t i = i0; i < i0 + groups * FRGI_GROUP; i++) {
        double *const row = out + (i - i0) * s->ld;
        for (int64_t j = 0; j < s->ld; j++) {
            const bool live = i < s->n && j < s->m;
            row[j] =
                live ? (s->base.G0[j] + s->base.H0[i]) - l->t.k * (double)costs[i * s->m + j] : 0;
        }
    }
}

/** Passes of a stage from the host's potentials at `epsilon`, which are scaled to it. */
static frg_status passes_at(frgi_level *l, frgi_stage *g, double epsilon, double tol, int64_t most)
{
    frgi_level_device *const d = l->device;
    const frgi_stage_problem of = {.epsilon = epsilon, .tol = tol};
    const frgi_stage_run_limits limits = {.most = most,
                                          .pass_bytes =
                                              (double)l->x->n * (double)l->y->n * sizeof(float),
                                          .phase = "polish",
                                          .total = l->o->polish_passes,
                                          .target = l->o->polish_tol};
    frgi_transport_renew(&l->t, epsilon, fill_exponents, l);
    TRY(frgi_stage_set(&d->place, g, &l->t, &of));
    const frg_status status = frgi_stage_run(&d->place, g, &l->t, &limits, &d->state);
    l->t.last.error = d->state.of[SKS_ERROR];
    l->t.last.at_floor = d->state.count[SKC_DONE] == SKD_AT_FLOOR;
    return status;
}

/** As final_passes of gw_level.c: mass that has a long way to go is carried at larger epsilon
 *  first. */
static frg_status passes_at_larger_epsilon(frgi_level *l, int64_t *left)
{
    const double start = frgi_epsilon_start(l->o);
    for (double wide = WIDEST; wide > 1; wide /= 2) {
        if (wide * l->epsilon > start) {
            continue;
        }
        const int64_t before = l->t.passes;
        const frg_status status =
            passes_at(l, &l->device->loop, wide * l->epsilon, SETTLED, WIDE_PASSES);
        *left -= l->t.passes - before;
        if (status != FRG_OK) {
            return status;
        }
    }
    return FRG_OK;
}

frg_status frgi_level_device_final_passes(frgi_level *l, double tol, int64_t most)
{
    frgi_level_device *const d = l->device;
    const double goal = fmax(tol, FLOATS_END);
    int64_t left = most;
    frg_status status = FRG_OK;
    TRY(frgi_level_device_fetch(l));
    if (l->t.last.error > SETTLED && frgi_is_balanced(l->o) && most > 4 * WIDE_PASSES) {
        status = passes_at_larger_epsilon(l, &left);
        TRY(status);
    }
    if (status > 0) { /* stopped: one pass at the last epsilon makes rows exact */
        TRY(passes_at(l, &d->loop, l->epsilon, tol, 1));
        return status;
    }
    const int64_t before = l->t.passes;
    status = passes_at(l, &d->loop, l->epsilon, goal, left);
    left -= l->t.passes - before;
    const bool reached = l->t.last.error <= goal || l->t.last.at_floor;
    if (status != FRG_OK || tol >= FLOATS_END || !reached || left <= 0) {
        return status;
    }
    return passes_at(l, &d->end, l->epsilon, tol, left);
}

frg_status frgi_level_device_finish(frgi_level *l, bool round, frgi_marginal_error *before,
                                    frgi_marginal_error *after)
{
    frgi_level_device *const d = l->device;
    const frgi_stage_plan plan = {&d->place, &d->end, &l->t, true};
    const frgi_stage_problem of = {.epsilon = l->epsilon};
    const frgi_pass_result last = l->t.last;
    if (d->ahead) { /* no passes at the end brought the potentials over */
        TRY(frgi_level_device_fetch(l));
    }
    const size_t row_x = (size_t)l->x->n * sizeof(float), row_y = (size_t)l->y->n * sizeof(float);
    TRY(frgi_device_get(d->place.dev, d->host.costs, d->costs, d->costs.bytes));
    if (l->o->mode == FRG_GW_SAMPLED &&
        frgi_is_balanced(l->o)) { /* the row and column terms of potentials are of these */
        const size_t R = (size_t)d->of_cost.rank;
        TRY(frgi_device_get(d->place.dev, l->product.rows_x, d->of_pairs.rows_x, R * row_x));
        TRY(frgi_device_get(d->place.dev, l->product.rows_y, d->of_pairs.rows_y, R * row_y));
    }
    TRY(frgi_device_wait(d->place.dev));
    frgi_transport_renew(&l->t, l->epsilon, fill_exponents, l);
    l->t.last = last;
    TRY(frgi_stage_set(&d->place, &d->end, &l->t, &of));
    return frgi_stage_finish(&plan, round, before, after);
}
