/* gw_vertex_run.c - an alignment whose plan is a vertex: descents from several starts, of which the
 * lowest energy wins (a race).  By the points of the larger side:
 *
 *     up to FEW         all starts on all points, each to its end; where fewer than ENOUGH agree,
 *                       MORE that are reheated
 *     up to SOME        STARTS on COARSE farthest points a side, weighted by what is nearest to
 *                       them.  The best plans of these and profiles are starts on all points, each
 *                       to its end; where fewer than ENOUGH agree, the product and the annealed
 *                       one; then reheated ones in groups, spectra and near distances first
 *     up to VERY_MANY   the best plan of MIDDLE farthest points alone, where ENOUGH starts agree
 *                       there and nothing else comes near it.  Else profiles as well, then the
 *                       annealed one, then groups as above up to MOST_REHEATED points: of their
 *                       vertices those that are not far above the least take steps on costs of
 *                       some rows, and the best one goes to its end
 *     above             the best plan of FINE points alone, one of each part of the space, whose
 *                       weights are equal, so that theirs is an assignment; their starts are the
 *                       best plans of MIDDLE points, profiles, the annealed one and groups.  It
 *                       takes steps on distances of low rank (costs of some rows where that leaves
 *                       too much out), and goes to its end with the same duals or tree; above
 *                       FRGI_WHOLE_COSTS points, where costs of all rows are never made, these
 *                       steps are the end, on more and more rows where the rank is not low
 *
 * Starts are shared out to the threads, which multiply alone then unless there is one start, or are
 * run one by one where a device multiplies; what a start finds depends on it alone, and of equal
 * energies the first start's plan is kept: the bits do not depend on the threads.  Whether there
 * are more starts is decided when all before have ended.
 */
#include "gw/gw_align.h"
#include "gw/gw_vertex.h"

#include <limits.h>
#include <math.h>
#include <omp.h>
#include <string.h>

/* Points of a side: limits, and sizes of the coarser levels. */
enum { FEW = 130, SOME = 450, MOST_REHEATED = 1500, VERY_MANY = 2500 };
enum { COARSE = 64, MIDDLE = FRGI_FARTHEST, FINE = 1024 };
enum { MIDDLE_COARSE = 96 }; /* COARSE of a race on MIDDLE points */
enum { STARTS_OF_TINY = 64, STARTS = 24, TINY = 32, MOST_STARTS = 120 };
enum { ENOUGH = 3, ENOUGH_OF_MANY = 2, MORE = 32, GROUP = 8, GROUP_OF_MANY = 3 };
enum {
    GIVEN = 4,
    GIVEN_OF_MANY = 1,
    GIVEN_OF_MIDDLE = 2,
    GIVEN_OF_FINE = FRGI_PLANS, /* each another plan */
    ROUGH_ROWS = 256,
    ROUGH_STEPS = 2,
    STEPS_ALONE = 6,
    TRANSPORT_STEPS_ALONE = 100 /* many and small, each a quarter of the work of one on all costs */
};
enum { MOST_STEPS = 100, ROUNDS = 8, MOST_TO_SWAP = 2000 };
enum { LARGE_STEPS = 3 };
#define DISTINCT 1e-3 /* of the product's energy: that of plans which are worth another start */
#define GAIN                                                                                       \
    2e-3 /* of the least energy, by which a group of starts has to lower it for another one */
#define MOST_TAIL 0.05 /* of distances' variance, that a low rank may leave out */
#define NEARLY    5e-3 /* of the least energy, of starts that agree */
#define FAR_ABOVE 20.0 /* energy over the least one, of starts on many points that take no steps */
#define CUT       1.5  /* the same of starts on fewer points that leave the best one certain */
#define AS_LOW    1e-6 /* energies of plans that are as good, relative to the product's */

/** What a start came to. */
typedef struct {
    double energy;
    frgi_sparse plan; /* borrowed from one block */
    bool is_vertex, stationary;
    frg_gw_start kind;
    int64_t steps;
    double dual; /* <K, V> of the first vertex */
} outcome;

/** A race on one level. */
typedef struct {
    const frgi_spaces *s;
    frgi_features *f;
    const frgi_sparse *given;      /* plans to start from, the first ones */
    int64_t n_given, count, usual; /* usual: of count, those that are not reheated */
    int64_t second;                /* starts where fewer than ENOUGH of these agree, and */
    int64_t more;  /* starts that are reheated where fewer than ENOUGH agree, as long as */
    int64_t group; /* as many of them lower the least energy */
    int starts[MOST_STARTS]; /* of the others, which */
    int64_t every;           /* > 1: usual ones on costs of some rows alone */
    int64_t most;            /* steps */
    bool alone; /* the one given plan is all there is: no other start takes its duals */
    const frgi_lifted *lifted; /* both sides, for its steps; NULL: they are not of low rank */
    outcome *out;
    frgi_entry *memory;
    graph_tasks *tasks;
} race;

/* ---- all permutations ------------------------------------------------------------------------ */

enum { ALL = 7 }; /* points whose permutations are all looked at */

/** J of permutations that have `order` for their first `done` points; the least is kept. */
static void permute(const frgi_spaces *s, int32_t *order, int done, double *least, int32_t *best)
{
    frgi_entry entries[ALL];
    if (done >= (int)s->n || done >= ALL) {
        for (int i = 0; i < done; i++) {
            entries[i] = (frgi_entry){i, order[i], s->a[i]};
        }
        const double energy = frgi_sparse_energy(s, &(frgi_sparse){entries, done});
        if (energy < *least) {
            *least = energy;
            memcpy(best, order, (size_t)done * sizeof *best);
        }
        return;
    }
    for (int j = done; j < (int)s->n && j < ALL; j++) {
        const int32_t now = order[j];
        order[j] = order[done];
        order[done] = now;
        permute(s, order, done + 1, least, best);
        order[done] = order[j];
        order[j] = now;
    }
}

static void best_permutation(const frgi_spaces *s, frgi_sparse *plan)
{
    int32_t order[ALL], best[ALL];
    double least = (double)INFINITY;
    for (int i = 0; i < ALL; i++) {
        order[i] = best[i] = i;
    }
    permute(s, order, 0, &least, best);
    plan->count = s->n;
    for (int32_t i = 0; i < (int32_t)s->n; i++) {
        plan->entries[i] = (frgi_entry){i, best[i], s->a[i]};
    }
}

/* ---- one race -------------------------------------------------------------------------------- */

static void keep_outcome(const race *r, int64_t q, const frgi_descent *d)
{
    outcome *const to = &r->out[q];
    to->energy = d->energy;
    to->plan.count = d->plan.count;
    frgi_descent_plan(d, to->plan.entries);
    to->is_vertex = d->is_vertex;
    to->stationary = d->stationary;
    to->steps += d->done;
    to->kind = q < r->n_given ? FRG_GW_START_COARSE : frgi_start_kind(r->starts[q - r->n_given]);
}

/** A descent to its end, and again from exchanges that lower J. */
static void descend_and_swap(frgi_descent *d, int64_t most)
{
    frgi_descend(d, most);
    for (int round = 0; round < ROUNDS && d->stationary && d->is_vertex && d->s->assigns &&
                        d->s->n <= MOST_TO_SWAP && frgi_descent_swap(d);
         round++) {
        frgi_descend(d, most);
    }
}

/** One start to its end; the last one of very few points is the best of all permutations. */
static void run_start(const race *r, int64_t q, frgi_descent *d)
{
    outcome *const to = &r->out[q];
    if (r->s->assigns && r->s->n <= ALL && q == r->count - 1) {
        best_permutation(r->s, &to->plan);
        frgi_descent_resume(d, &to->plan, frgi_sparse_energy(r->s, &to->plan), true, false);
        frgi_descend(d, r->most);
        keep_outcome(r, q, d);
        return;
    }
    if (q < r->n_given) {
        d->steps->descent->linearise(d, &r->given[q]);
    } else {
        frgi_start_costs(r->f, r->starts[q - r->n_given], d);
    }
    frgi_descent_begin(d);
    if (!graph_tasks_go_on(r->tasks)) { /* there is no plan yet */
        return;
    }
    to->dual = frgi_descent_dual(d);
    if (r->every == 1 || q >= r->usual) {
        descend_and_swap(d, r->most);
    }
    keep_outcome(r, q, d);
}

static int64_t best_of(const race *r)
{
    int64_t best = 0;
    for (int64_t q = 1; q < r->count; q++) {
        best = r->out[q].energy < r->out[best].energy ? q : best;
    }
    return best;
}

/** The column with most of a row's mass; *at: the row's first entry, behind it the next row's. */
static int32_t image_of(const frgi_sparse *p, int64_t *at)
{
    const int32_t row = p->entries[*at].i;
    int64_t most = *at;
    for (; *at < p->count && p->entries[*at].i == row; ++*at) {
        most = p->entries[*at].mass > p->entries[most].mass ? *at : most;
    }
    return p->entries[most].j;
}

/** Whether most rows of both plans have the same images. */
static bool is_same_plan(const frgi_sparse *p, const frgi_sparse *q)
{
    int64_t at = 0, to = 0, rows = 0, same = 0;
    for (; at < p->count && to < q->count; rows++) { /* every row has an entry */
        same += image_of(p, &at) == image_of(q, &to);
    }
    return 2 * same > rows;
}

/** How many starts reached the least energy; of more than a few points nearly, by much the same
 *  plan. */
static int64_t reached(const race *r)
{
    const outcome *const best = &r->out[best_of(r)];
    const double same = AS_LOW * fabs(r->s->product),
                 near = r->s->single ? NEARLY * fabs(best->energy) : 0;
    int64_t count = 0;
    for (int64_t q = 0; q < r->count; q++) {
        const outcome *const o = &r->out[q];
        count += o->energy <= best->energy + same ||
                 (o->energy <= best->energy + near && is_same_plan(&o->plan, &best->plan));
    }
    return count;
}

/** Which starts take steps from their vertices, to be compared by what they come to: those that are
 *  not far above the least one, where there are several. */
static void choose_to_step(const race *r, bool *which)
{
    const double most = FAR_ABOVE * fabs(r->out[best_of(r)].energy);
    int64_t near = 0;
    for (int64_t q = 0; q < r->count; q++) {
        near += r->out[q].energy <= most;
    }
    for (int64_t q = 0; q < r->count; q++) {
        which[q] = (near > 1 || r->alone) && r->out[q].energy <= most && r->out[q].steps == 0;
    }
}

/** Whether enough starts agree, and all others that are not far above them. */
static bool is_sure(const race *r)
{
    const outcome *const best = &r->out[best_of(r)];
    bool alone = true;
    for (int64_t q = 0; q < r->count; q++) {
        const outcome *const o = &r->out[q];
        alone =
            alone && (o->energy > CUT * fabs(best->energy) || is_same_plan(&o->plan, &best->plan));
    }
    return alone && reached(r) >= ENOUGH;
}

static void resume(const race *r, int64_t q, frgi_descent *d)
{
    frgi_descent_resume(d, &r->out[q].plan, r->out[q].energy, r->out[q].is_vertex, r->alone);
}

static void take_steps(const race *r, int64_t q, frgi_descent *d)
{
    resume(r, q, d);
    const int64_t many = r->s->assigns ? STEPS_ALONE : TRANSPORT_STEPS_ALONE,
                  alone = r->most - 1 < many ? r->most - 1 : many;
    frgi_descent_rough(d, r->every, r->alone ? alone : ROUGH_STEPS);
    keep_outcome(r, q, d);
}

/** Each start of `which` by one of the team's descents, the last first: it takes the longest.  One
 *  that is alone is the first descent's, whose steps all threads share. */
static void share_out(const race *r, frgi_descent *d, int team, const bool *which,
                      void (*run)(const race *, int64_t, frgi_descent *))
{
    int64_t many = 0;
    for (int64_t q = 0; q < r->count; q++) {
        many += which[q];
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads(team) if (team > 1 && many > 1)
    for (int64_t last = 0; last < r->count; last++) {
        const int64_t q = r->count - 1 - last;
        if (which[q] && graph_tasks_poll(r->tasks, r->s->ctx)) {
            run(r, q, &d[omp_get_thread_num()]);
        }
    }
}

/** Larger than what costs of all rows are made for. */
static bool is_large(int64_t n, int64_t m)
{
    return n > FRGI_WHOLE_COSTS || m > FRGI_WHOLE_COSTS;
}

/** The best one goes to its end: on costs of all rows; of large problems on those of more and more
 *  rows, or not at all where its steps were on distances of low rank. */
static void finish_best(const race *r, frgi_descent *d)
{
    static const int64_t rows[] = {1024, 2048};
    const int64_t q = best_of(r);
    if (!(r->out[q].energy < (double)INFINITY) || (r->lifted && is_large(r->s->n, r->s->m))) {
        return;
    }
    resume(r, q, d);
    if (!is_large(r->s->n, r->s->m)) {
        descend_and_swap(d, r->alone ? r->most - r->out[q].steps : r->most);
    }
    for (size_t k = 0; k < sizeof rows / sizeof *rows && is_large(r->s->n, r->s->m); k++) {
        frgi_descent_rough(d, (r->s->n + rows[k] - 1) / rows[k], LARGE_STEPS);
    }
    keep_outcome(r, q, d);
}

/** Starts that agree on enough. */
static bool agree(const race *r)
{
    return reached(r) >= (r->every > 1 ? ENOUGH_OF_MANY : ENOUGH);
}

/** The next `group` starts; of many points they end behind their first steps. */
static void run_group(race *r, frgi_descent *d, int team, bool *which, int64_t group)
{
    const int64_t before = r->count;
    r->count += group;
    for (int64_t q = 0; q < r->count; q++) {
        which[q] = q >= before;
    }
    share_out(r, d, team, which, run_start);
    if (r->every > 1 && r->count <= r->usual) {
        choose_to_step(r, which);
        share_out(r, d, team, which, take_steps);
    }
}

/** Groups of more starts where few agree. */
static frg_status reheat(race *r, frgi_descent *d, int team, bool *which)
{
    bool gains = r->more > 0 && !agree(r);
    if (gains) {
        TRY(frgi_features_more(r->f));
    }
    for (int64_t left = r->more; gains && left > 0; left -= r->group) {
        const double before = r->out[best_of(r)].energy;
        run_group(r, d, team, which, left < r->group ? left : r->group);
        gains = r->out[best_of(r)].energy < before - GAIN * fabs(before) && !agree(r);
    }
    return FRG_OK;
}

/** The usual starts, and more where they do not agree. */
static frg_status run_groups(race *r, frgi_descent *d, int team, bool *which)
{
    const int64_t first = r->count;
    r->count = 0;
    r->usual = first + r->second;
    run_group(r, d, team, which, first);
    if (r->second > 0 && !agree(r)) {
        TRY(frgi_features_lift(r->f));
        run_group(r, d, team, which, r->second);
    }
    r->usual = r->count;
    return reheat(r, d, team, which);
}

/** Descents that half of the memory left has room for, one at least. */
static int64_t descents_that_fit(const frgi_spaces *s)
{
    const double left = (double)frgi_memory_allowed(s->ctx) - (double)frg_bytes_held(s->ctx);
    const double most = 0.5 * left / (double)frgi_descent_bytes(s->n, s->m, s->single);
    return most < 1 ? 1 : most < INT_MAX ? (int64_t)most : INT_MAX;
}

/** All starts; to be closed, failed or not. */
static frg_status run_race(race *r)
{
    frg_context *const ctx = r->s->ctx;
    const bool in_turn =
        r->s->dev || is_large(r->s->n, r->s->m) || !graph_tasks_poll(r->tasks, ctx);
    const int64_t most = r->count + r->second + r->more, fit = descents_that_fit(r->s);
    const int64_t threads = in_turn ? 1 : frg_threads(ctx),
                  usable = threads < most ? threads : most;
    const int team = (int)(usable < fit ? usable : fit);
    bool which[MOST_STARTS + GIVEN];
    frgi_descent *d = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW0(ctx, &d, team, "descents"));
    for (int t = 0; t < team; t++) {
        TRY_TO(done, frgi_descent_open(&d[t], r->s, t == 0 ? frg_threads(ctx) : 1));
        d[t].tasks = r->tasks;
        d[t].lifted = r->lifted;
    }
    const int64_t each = d[0].most;
    TRY_TO(done, NEW0(ctx, &r->out, most, "plans of starts"));
    TRY_TO(done, NEW(ctx, &r->memory, frgi_mul((size_t)most, (size_t)each), "plans of starts"));
    for (int64_t q = 0; q < most; q++) {
        r->out[q].energy = (double)INFINITY;
        r->out[q].plan.entries = r->memory + q * each;
    }
    TRY_TO(done, run_groups(r, d, team, which));
    if (r->every > 1) {
        finish_best(r, &d[0]);
    }
done:
    for (int t = 0; d && t < team; t++) {
        frgi_descent_close(&d[t]);
    }
    DROP(ctx, &d);
    return status;
}

static void close_race(race *r)
{
    if (r->s) {
        DROP(r->s->ctx, &r->out);
        DROP(r->s->ctx, &r->memory);
    }
}

/* ---- spaces ---------------------------------------------------------------------------------- */

/** Points of positive weight, and their weights as shares of all. */
static frg_status positive_weights(frg_context *ctx, const double *w, int64_t n, int32_t **nodes,
                                   double **share, int64_t *count)
{
    double total = 0;
    TRY(NEW(ctx, nodes, n, "points of an alignment"));
    TRY(NEW(ctx, share, n, "points of an alignment"));
    *count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (w[i] > 0) {
            (*nodes)[*count] = (int32_t)i;
            (*share)[(*count)++] = w[i];
            total += w[i];
        }
    }
    for (int64_t i = 0; i < *count; i++) {
        (*share)[i] /= total;
    }
    return FRG_OK;
}

/** All distances of the points, times `unit`. */
static frg_status dense_side(frgi_distances *d, const int32_t *nodes, int64_t n, bool single,
                             double unit, frgi_costs *c)
{
    enum { BATCH = 64 };
    const bool exact = !single && d->exact;
    float *rows = NULL;
    double *wide = NULL;
    frg_status status = FRG_OK;
    char *at = NULL;
    *c = (frgi_costs){NULL, n, n, frgi_costs_ld(n), single};
    TRY_TO(done, NEW(d->ctx, &at, frgi_costs_bytes(c), "distances of an alignment"));
    c->at = at;
    TRY_TO(done, NEW(d->ctx, &rows, frgi_mul(BATCH, (size_t)n), "distances of an alignment"));
    TRY_TO(done, NEW(d->ctx, &wide, exact ? BATCH * n : 1, "distances of an alignment"));
    for (int64_t first = 0; first < n; first += BATCH) {
        const int64_t many = n - first < BATCH ? n - first : BATCH;
        if (exact) {
            frgi_distances_exact(d, nodes + first, many, nodes, n, wide);
        } else {
            TRY_TO(done, frgi_distances_cross(d, nodes + first, many, nodes, n, rows));
        }
#pragma omp parallel for schedule(static) num_threads(frg_threads(d->ctx)) if (many * n > 10000)
        for (int64_t r = 0; r < many; r++) {
            for (int64_t k = 0; k < n; k++) {
                const int64_t from = r * n + k;
                frgi_costs_put(c, first + r, k, unit * (exact ? wide[from] : (double)rows[from]));
            }
            for (int64_t k = n; k < c->ld; k++) {
                frgi_costs_put(c, first + r, k, 0);
            }
        }
    }
done:
    DROP(d->ctx, &rows);
    DROP(d->ctx, &wide);
    return status;
}

/* ---- the coarse race ------------------------------------------------------------------------- */

static int64_t fill_starts(race *r, int64_t count)
{
    for (int64_t q = 0; q < count; q++) {
        r->starts[q] = (int)q;
    }
    return count;
}

/** Starts on more than a few points: profiles; where these and the given ones do not agree the
 *  product and the annealed one, of many the annealed one alone. */
static void choose_staged_starts(race *r, bool lifts, bool product)
{
    int64_t count = 0;
    r->starts[count++] = FRGI_BY_PROFILES;
    if (product) {
        r->starts[count++] = FRGI_BY_PRODUCT;
    }
    if (lifts) {
        r->starts[count++] = FRGI_BY_ANNEALING;
    }
    r->count = r->n_given + 1;
    r->second = count - 1;
}

/** Starts that are reheated where those before do not agree. */
static void choose_more(race *r, int64_t group, bool lifts)
{
    const int64_t others = lifts ? FRGI_MORE_STARTS : 0;
    r->more = MORE;
    r->group = group;
    for (int64_t q = 0; q < r->more; q++) {
        r->starts[r->count + r->second - r->n_given + q] =
            (int)(q < others ? FRGI_SPECTRAL + q : FRGI_REHEATED + q - others);
    }
}

/** Starts on `wanted` points, which those on all points begin with. */
static void choose_coarse_starts(race *r, int64_t wanted)
{
    if (wanted <= FEW) {
        r->count = fill_starts(r, STARTS);
        return;
    }
    choose_staged_starts(r, true, false);
    if (wanted > MIDDLE) {
        choose_more(r, GROUP_OF_MANY, true);
        r->every = wanted / ROUGH_ROWS;
    }
}

/** The best of a race, each with another energy, or where many are wanted, images; as plans of the
 *  points chosen. */
static void take_best(const race *r, int64_t most, const int32_t *of_x, const int32_t *of_y,
                      int64_t capacity, frgi_plans *out)
{
    const double near = DISTINCT * fabs(r->s->product);
    for (int64_t k = 0; k < most; k++) {
        const int64_t at = best_of(r);
        const outcome *const o = &r->out[at];
        const double energy = o->energy;
        if (!(energy < (double)INFINITY) || o->plan.count > capacity) {
            break;
        }
        for (int64_t e = 0; e < o->plan.count; e++) {
            const frgi_entry *const entry = &o->plan.entries[e];
            out->plans[k].entries[e] = (frgi_entry){of_x[entry->i], of_y[entry->j], entry->mass};
        }
        out->plans[k].count = o->plan.count;
        out->count++;
        for (int64_t q = 0; q < r->count; q++) {
            const bool same = most > GIVEN ? q == at || is_same_plan(&r->out[q].plan, &o->plan)
                                           : r->out[q].energy < energy + near;
            r->out[q].energy = same ? (double)INFINITY : r->out[q].energy;
        }
    }
}

/** The `most` best plans of `wanted` farthest points a side; of more than a few points from plans
 *  of fewer again. */
static frg_status coarse_plans(const frgi_spaces *s, int64_t wanted, int64_t most, frgi_plans *out,
                               int64_t max_iter, graph_tasks *tasks, int64_t *starts)
{
    const int64_t n = s->n < wanted ? s->n : wanted, m = s->m < wanted ? s->m : wanted;
    const int64_t capacity = s->n + s->m;
    const bool few = wanted <= FEW;
    frgi_spaces small = {.ctx = s->ctx,
                         .n = n,
                         .m = m,
                         .single = !few,
                         .theta = s->theta,
                         .seed = s->seed,
                         .steps = s->steps,
                         .dev = s->dev,
                         .group = s->group};
    frgi_features f = {0};
    frgi_plans given = {0};
    race r = {.s = &small,
              .f = &f,
              .given = given.plans,
              .most = max_iter < MOST_STEPS ? max_iter : MOST_STEPS,
              .every = 1,
              .tasks = tasks};
    int32_t *of_x = NULL, *of_y = NULL;
    float *linear = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW(s->ctx, &out->memory, most * capacity, "plans of starts"));
    for (int64_t k = 0; k < most; k++) {
        out->plans[k].entries = out->memory + k * capacity;
    }
    TRY_TO(done, frgi_coarse_side(s->ctx, &s->x, s->a, n, !few, &small.x, &small.a, &of_x));
    TRY_TO(done, frgi_coarse_side(s->ctx, &s->y, s->b, m, !few, &small.y, &small.b, &of_y));
    if (s->linear) {
        TRY_TO(done, frgi_linear_of(&small, s->linear, s->ld_linear, of_x, of_y, &linear));
    }
    frgi_spaces_finish(&small);
    TRY_TO(done, frgi_features_open(&f, &small, few));
    if (!few) {
        const bool fine = wanted > MIDDLE;
        TRY_TO(done, coarse_plans(&small, fine ? MIDDLE : MIDDLE_COARSE,
                                  most > GIVEN ? most
                                  : fine       ? GIVEN_OF_MANY
                                               : GIVEN_OF_MIDDLE,
                                  &given, max_iter, tasks, starts));
    }
    r.n_given = given.count;
    choose_coarse_starts(&r, wanted);
    TRY_TO(done, run_race(&r));
    *starts += r.count;
    out->sure = is_sure(&r);
    take_best(&r, most, of_x, of_y, capacity, out);
done:
    close_race(&r);
    frgi_features_close(&f);
    frgi_spaces_close(&small);
    DROP(s->ctx, &given.memory);
    DROP(s->ctx, &of_x);
    DROP(s->ctx, &of_y);
    DROP(s->ctx, &linear);
    return status;
}

frg_status frgi_plans_of(const frgi_spaces *s, graph_tasks *tasks, frgi_plans *out)
{
    int64_t starts = 0;
    return coarse_plans(s, s->n > s->m ? s->n : s->m, FRGI_PLANS, out, MOST_STEPS, tasks, &starts);
}

/* ---- all points ------------------------------------------------------------------------------ */

/** The starts on all points; sure: those of many that were given do. */
static void choose_starts(race *r, bool sure)
{
    const int64_t n = r->s->n, m = r->s->m, larger = n > m ? n : m;
    if (larger <= FEW) {
        r->count = fill_starts(r, larger <= TINY ? STARTS_OF_TINY : STARTS);
    } else if (sure || (is_large(n, m) && r->n_given > 0)) {
        r->count = r->n_given;
        return;
    } else {
        choose_staged_starts(r, larger <= FRGI_WHOLE_COSTS, larger <= SOME);
    }
    if (larger <= MOST_REHEATED && (larger > FEW || frgi_may_anneal(r->f))) {
        choose_more(r, larger <= FEW ? MORE : larger <= SOME ? GROUP : GROUP_OF_MANY, larger > FEW);
    }
}

/** Starts that reached the least energy, the next energy, and whether several plans have the least
 *  one. */
static void report_starts(const race *r, const outcome *best, frg_gw_report *report)
{
    const double near = AS_LOW * fabs(r->s->product);
    report->starts_agree = 0;
    report->next_energy = (double)INFINITY;
    report->symmetric = 0;
    for (int64_t q = 0; q < r->count; q++) {
        const outcome *const o = &r->out[q];
        if (o->energy <= best->energy + near) {
            report->starts_agree++;
            report->symmetric |=
                o->is_vertex && best->is_vertex && !is_same_plan(&o->plan, &best->plan);
        } else {
            report->next_energy = fmin(report->next_energy, o->energy);
        }
    }
}

/** best <- the plan that a race of fewer points gave, where assignments are wanted: its pairs,
 *  and what is left in the order of the points; that of the north-west corner rule where it is
 *  lower.  The run was stopped before a start on all points had a plan. */
static frg_status plan_of_stopped(const frgi_spaces *s, const frgi_plans *given, outcome *best)
{
    bool *taken = NULL;
    int32_t *of_row = NULL;
    frg_status status = FRG_OK;
    frgi_descent_first(s, &best->plan);
    best->energy = frgi_sparse_energy(s, &best->plan);
    best->is_vertex = true;
    if (given->count == 0 || !s->assigns) {
        return FRG_OK;
    }
    TRY_TO(done, NEW0(s->ctx, &taken, s->m, "a plan"));
    TRY_TO(done, NEW(s->ctx, &of_row, s->n, "a plan"));
    memset(of_row, -1, (size_t)s->n * sizeof *of_row);
    for (int64_t e = 0; e < given->plans[0].count; e++) {
        const frgi_entry *const at = &given->plans[0].entries[e];
        if (of_row[at->i] < 0 && !taken[at->j]) {
            of_row[at->i] = at->j;
            taken[at->j] = true;
        }
    }
    const frgi_sparse corner = best->plan;
    frgi_sparse plan = {.entries = corner.entries + corner.count};
    for (int64_t i = 0, free = 0; i < s->n; i++) {
        for (; of_row[i] < 0; free++) {
            of_row[i] = taken[free] ? -1 : (int32_t)free;
        }
        plan.entries[plan.count++] = (frgi_entry){(int32_t)i, of_row[i], s->a[i]};
    }
    const double energy = frgi_sparse_energy(s, &plan);
    if (energy < best->energy) {
        memmove(best->plan.entries, plan.entries, (size_t)plan.count * sizeof *plan.entries);
        best->plan.count = plan.count;
        best->energy = energy;
        best->kind = FRG_GW_START_COARSE;
    }
done:
    DROP(s->ctx, &taken);
    DROP(s->ctx, &of_row);
    return status;
}

/** Both sides' distances of low rank, where that leaves little out. */
static frg_status lift_very_many(const frgi_spaces *s, frgi_lifted lifted[2],
                                 const frgi_lifted **use)
{
    TRY(frgi_lifted_open(lifted, s));
    const double tail =
        fmax(frgi_lifted_tail(&lifted[0], &s->x), frgi_lifted_tail(&lifted[1], &s->y));
    *use = tail < MOST_TAIL ? lifted : NULL;
    return FRG_OK;
}

/** The race on all points; the best plan into the rows of out. */
static frg_status race_all(const frgi_spaces *s, int64_t max_iter, graph_tasks *tasks,
                           frgi_sparse *out, frg_gw_report *report)
{
    const int64_t larger = s->n > s->m ? s->n : s->m;
    const bool very_many = larger > VERY_MANY;
    frgi_plans given = {0};
    frgi_features f = {0};
    frgi_lifted lifted[2] = {{0}};
    race r = {.s = s, .f = &f, .given = given.plans, .most = max_iter, .every = 1, .tasks = tasks};
    frg_status status = FRG_OK;
    report->starts = 0;
    if (larger > FEW && !s->linear) {
        const bool many = larger > SOME;
        TRY_TO(done, coarse_plans(s,
                                  very_many ? FINE
                                  : many    ? MIDDLE
                                            : COARSE,
                                  very_many ? GIVEN_OF_FINE
                                  : many    ? GIVEN_OF_MANY
                                            : GIVEN,
                                  &given, max_iter, tasks, &report->starts));
        if (very_many) {
            TRY_TO(done, frgi_place_best(s, given.plans, &given.count, tasks));
        }
    }
    r.n_given = given.count;
    r.alone = very_many && given.count > 0;
    if (r.alone) {
        TRY_TO(done, lift_very_many(s, lifted, &r.lifted));
    }
    const bool sure = r.alone || (given.sure && given.count > 0 && larger > SOME);
    if (!sure) {
        TRY_TO(done, frgi_features_open(&f, s, larger <= FEW));
    }
    choose_starts(&r, sure);
    r.every = larger > SOME ? (s->n + ROUGH_ROWS - 1) / ROUGH_ROWS : 1;
    TRY_TO(done, run_race(&r));
    report->starts += r.count;
    outcome *const best = &r.out[best_of(&r)];
    if (!(best->energy < (double)INFINITY)) { /* stopped before there was anything */
        TRY_TO(done, plan_of_stopped(s, &given, best));
    }
    report_starts(&r, best, report);
    if (f.whole && r.n_given == 0 && !s->linear && isfinite(r.out[0].energy)) {
        report->lower_bound = fmax(0, f.square + 2 * r.out[0].dual);
    }
    for (int64_t q = 0; q < r.count; q++) {
        report->outer_iterations += r.out[q].steps;
    }
    report->verdict_points = !sure ? 0 : very_many ? FINE : MIDDLE;
    report->started_from = best->kind;
    report->vertex = best->is_vertex;
    report->energy = best->energy;
    report->reason = !graph_tasks_go_on(tasks) ? FRG_GW_CANCELLED
                     : !best->stationary       ? FRG_GW_MAX_ITER
                     : is_large(s->n, s->m)    ? FRG_GW_CONVERGED_PLATEAU
                                               : FRG_GW_STATIONARY;
    status = NEW(s->ctx, &out->entries, best->plan.count + s->n + s->m, "a plan");
    if (status >= 0) {
        memcpy(out->entries, best->plan.entries, (size_t)best->plan.count * sizeof *out->entries);
        out->count = best->plan.count;
    }
done:
    close_race(&r);
    frgi_features_close(&f);
    frgi_lifted_close(lifted, s->ctx);
    DROP(s->ctx, &given.memory);
    return status;
}

/* ---- an alignment ---------------------------------------------------------------------------- */

/** Whether starts are raced in floats. */
static bool is_single(frg_gw_dtype dtype, int64_t n, int64_t m)
{
    return dtype == FRG_GW_DTYPE_F32 || n > FEW || m > FEW;
}

bool frgi_gw_fits_vertex(const frg_gw *g)
{
    const int64_t n = g->x.n, m = g->y.n;
    const bool single = is_single(g->o.dtype, n, m);
    const int threads = frg_threads(g->ctx) < 2 || is_large(n, m) ? 1 : 2;
    const double bytes = (double)frgi_spaces_bytes(n, m, single) +
                         threads * (double)frgi_descent_bytes(n, m, single);
    const double in_doubles =
        (double)frgi_spaces_bytes(n, m, false) + (double)frgi_descent_bytes(n, m, false);
    return fmax(bytes, g->o.dtype == FRG_GW_DTYPE_F64 ? in_doubles : 0) <
           0.5 * (double)frgi_memory_allowed(g->ctx);
}

/** The plan by rows of all points. */
static frg_status keep_plan(frg_gw *g, const frgi_sparse *p, const int32_t *of_x,
                            const int32_t *of_y)
{
    frgi_transport_list *const to = &g->list;
    TRY(GROW(g->ctx, &to->starts, g->x.n + 1, "a plan"));
    TRY(GROW(g->ctx, &to->columns, p->count, "a plan"));
    TRY(GROW(g->ctx, &to->values, p->count, "a plan"));
    memset(to->starts, 0, (size_t)(g->x.n + 1) * sizeof *to->starts);
    for (int64_t e = 0; e < p->count; e++) {
        to->starts[of_x[p->entries[e].i] + 1]++;
        to->columns[e] = of_y[p->entries[e].j];
        to->values[e] = p->entries[e].mass;
    }
    for (int64_t i = 0; i < g->x.n; i++) {
        to->starts[i + 1] += to->starts[i];
    }
    g->level.t.list = to;
    return FRG_OK;
}

double frgi_gw_units(const frg_gw *g, double units[2])
{
    const bool scaled = g->o.linear_weight > 0;
    units[0] = scaled ? 1 : 1 / (double)g->x.scale;
    units[1] = scaled ? 1 : 1 / (double)g->y.scale;
    return fmax(units[0], units[1]);
}

frg_status frgi_gw_problem_open(frg_gw *g, frg_gw_dtype dtype, frgi_gw_problem *p)
{
    frg_context *const ctx = g->ctx;
    const double theta = g->o.linear_weight;
    double units[2]; /* the energy is that of distances in one unit */
    const double most = frgi_gw_units(g, units);
    *p = (frgi_gw_problem){.s = {.ctx = ctx,
                                 .theta = theta,
                                 .seed = g->level.seed,
                                 .steps = g->where.steps,
                                 .dev = g->where.dev,
                                 .group = g->where.group},
                           .square = most * most};
    frgi_spaces *const s = &p->s;
    TRY(positive_weights(ctx, g->a, g->x.n, &p->of_x, &s->a, &s->n));
    TRY(positive_weights(ctx, g->b, g->y.n, &p->of_y, &s->b, &s->m));
    s->single = dtype != FRG_GW_DTYPE_F64 && is_single(dtype, s->n, s->m);
    TRY(dense_side(&g->x, p->of_x, s->n, s->single, units[0] / most, &s->x));
    TRY(dense_side(&g->y, p->of_y, s->m, s->single, units[1] / most, &s->y));
    if (g->linear && theta > 0) {
        TRY(frgi_linear_of(s, g->linear, g->level.t.s.ld, p->of_x, p->of_y, &p->linear));
    }
    frgi_spaces_finish(s);
    return FRG_OK;
}

void frgi_gw_problem_close(frgi_gw_problem *p)
{
    if (p->s.ctx) {
        DROP(p->s.ctx, &p->of_x);
        DROP(p->s.ctx, &p->of_y);
        DROP(p->s.ctx, &p->linear);
        frgi_spaces_close(&p->s);
    }
}

/** The best plan of a race in floats to its end in doubles; p becomes that problem. */
static frg_status end_in_doubles(frg_gw *g, frgi_gw_problem *p, graph_tasks *tasks,
                                 frgi_sparse *plan)
{
    frg_gw_report *const r = &g->report;
    frgi_descent d = {0};
    frg_status status = FRG_OK;
    frgi_gw_problem_close(p);
    TRY_TO(done, frgi_gw_problem_open(g, FRG_GW_DTYPE_F64, p));
    TRY_TO(done, frgi_descent_open(&d, &p->s, frg_threads(p->s.ctx)));
    d.tasks = tasks;
    frgi_descent_resume(&d, plan, frgi_sparse_energy(&p->s, plan), r->vertex != 0, false);
    descend_and_swap(&d, g->o.max_iter);
    TRY_TO(done, GROW(g->ctx, &plan->entries, d.plan.count + 1, "a plan"));
    frgi_descent_plan(&d, plan->entries);
    plan->count = d.plan.count;
    r->energy = d.energy;
    r->vertex = d.is_vertex;
    r->outer_iterations += d.done;
    r->reason = !graph_tasks_go_on(tasks) ? FRG_GW_CANCELLED
                : d.stationary            ? FRG_GW_STATIONARY
                                          : FRG_GW_MAX_ITER;
done:
    frgi_descent_close(&d);
    return status;
}

/** E where distances of the problem are multiplied by x and by y, from E of the problem. */
static double rescaled(const frgi_spaces *s, double energy, double x, double y)
{
    const double cross = (s->constant - energy) / 2, square_y = s->constant - s->square_x;
    return x < y || x > y ? fmax(x * x * s->square_x + y * y * square_y - 2 * x * y * cross, 0)
                          : x * x * energy;
}

/** Of a plan whose J in the units of the problem is r->energy: J in scaled units, and E in the
 *  caller's.  The problem is in one of them: without a linear cost in the caller's. */
static void convert_energies(const frg_gw *g, const frgi_gw_problem *p, const frgi_sparse *plan,
                             frg_gw_report *r)
{
    const double of_x = (double)g->x.scale, of_y = (double)g->y.scale, unit = sqrt(p->square);
    frgi_spaces alone = p->s;
    if (alone.theta > 0) {
        alone.theta = 0;
        alone.linear = NULL;
        r->objective = r->energy;
        r->energy = rescaled(&alone, frgi_sparse_energy(&alone, plan), 1 / of_x, 1 / of_y);
    } else {
        r->objective = rescaled(&alone, r->energy, unit * of_x, unit * of_y);
        r->energy *= p->square;
    }
}

frg_status frgi_gw_vertex(frg_gw *g)
{
    frg_gw_report *const r = &g->report;
    graph_tasks tasks = {.solver = "gw"};
    frgi_gw_problem p = {0};
    frgi_sparse plan = {0};
    frg_status status = FRG_OK;
    r->lower_bound = (double)NAN;
    const bool doubles = g->o.dtype == FRG_GW_DTYPE_F64;
    const frg_gw_dtype raced = doubles ? FRG_GW_DTYPE_AUTO : g->o.dtype; /* few in doubles */
    TRY_TO(done, frgi_gw_problem_open(g, raced, &p));
    TRY_TO(done, race_all(&p.s, g->o.max_iter, &tasks, &plan, r));
    if (doubles && p.s.single) {
        TRY_TO(done, end_in_doubles(g, &p, &tasks, &plan));
    }
    r->dtype = p.s.single ? FRG_GW_DTYPE_F32 : FRG_GW_DTYPE_F64;
    TRY_TO(done, tasks.status < 0 ? tasks.status : FRG_OK); /* a device has failed */
    TRY_TO(done, keep_plan(g, &plan, p.of_x, p.of_y));
    convert_energies(g, &p, &plan, r);
    r->energy_product = p.s.product * p.square;
    r->next_energy *= p.square;
    r->lower_bound *= p.square;
    r->epsilon_end = 0;
    status = tasks.status;
done:
    DROP(g->ctx, &plan.entries);
    frgi_gw_problem_close(&p);
    return status;
}
