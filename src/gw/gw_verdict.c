/* gw_verdict.c - what two vertices say of a plan P of the modes with entropy, behind its run.
 *
 *     sharpened   conditional gradient from the vertex that is least to first order at P, min
 *                 <K(P), V>: what is left of P without its entropy.  Where distances are of
 *                 negative type J is concave, and J(V) <= J(P)
 *     other       the same from starts that know nothing of P: profiles and, of few points, the
 *                 product of gw_vertex_starts.c, and the vertex that sampled steps began at
 *
 * They are compared with each other, as the entropy blurs every plan: `other` has to be lower by
 * LOWER.  A plan that is blurred as P is has to be lower than P besides, in what the run minimises,
 * entropy counted: so that P is not measured by an energy that a large epsilon keeps every plan
 * from.  That plan comes from V, the other vertex, by a few steps of the exact mode; where V is the
 * one that the run began at and has blurred itself, V as it is.  Then "converged" is not said of P.
 *
 * K(P) = -2 (1 - theta) C P D + theta M is one product with each of the distance matrices.  Where n
 * m (n + m) is more than MOST_WORK, or TRANSPORT_WORK where a network simplex has to do what
 * assignments cannot, all this would take as long as the run.  Then starts are raced on a sample of
 * FEWEST to FRGI_FARTHEST farthest points a side, weighted by what is nearest to them, and the best
 * plan R of these is compared with P (a linear cost is that of the points of the sample):
 *
 *     P sends three quarters of the sample to within NEAR neighbours of where R does: R leads to P
 *     else pairs of R are what steps of the sampled mode on all points begin at, at the epsilon of
 *          P: a plan P' with the marginals of P
 *
 * What the sample adds to energies is of the size of its neighbours' distances, and may be more
 * than all that plans of all points differ by.  So R alone says nothing of P; J(P') does, entropy
 * counted, of which the entropies are exact and the energies U-statistics of independent pairs
 * without bias.  P is beaten where
 *
 *     J(P') + SURE sqrt(error(P')^2 + error(P)^2) < J(P)
 *
 * which a P' that is no lower comes to in one run of 700 (the normal law's one-sided 3 standard
 * errors).  It is a plan of all points that is lower then, whatever the sample lost: images of a
 * symmetric shape are not, but for that share.  P' is blurred by epsilon as P is, and has the noise
 * of its few steps besides, which can only keep it from being lower: "no other start is lower on a
 * sample" is no proof.  It is not said where other plans of the sample come near the energy of R
 * (sample_decides), as near symmetries do.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gw/gw_align.h"
#include "gw/gw_level_device.h"
#include "gw/gw_sinkhorn.h"
#include "gw/gw_vertex.h"

enum { MOST_STEPS = 30, CHUNKS = 16, AT_ONCE = 256 };
enum { FEW = 300 }; /* points of a side up to which the product is a start as well */
enum { LOOKS = 3 }; /* at the plan, at what it is without its blur, at other starts */
enum { PASSES = 200, ROUNDS = 4 }; /* of Sinkhorn's iteration; of linearisations */
#define MOST_WORK      5e8
#define TRANSPORT_WORK 1e7
#define LOWER          1e-3 /* of the sharpened energy: equally good ones are nearer */
#define ROUNDING       1e-6 /* of the product's energy: that of costs in floats */

typedef struct {
    frg_gw *g;
    frgi_gw_problem p;
    frgi_features f;
    frgi_descent d;
    frgi_products products;
    frgi_costs dense, costs; /* P, K(P): n x m */
    frgi_costs turned;       /* P' C: m x n */
    int32_t *place;          /* of a point among those of positive weight, -1: none */
    double *by_row;          /* sum_j p (log p - 1) */
    double *duals;           /* n + m */
    frgi_sparse lowest;  /* the lowest other vertex; no entries: the one that the run began at */
    double plan;         /* J of P without its entropy, caller's units */
    double with_entropy; /* J of P, and of what it is compared with */
    double other_with_entropy;
    graph_tasks tasks;
} verdict;

/* ---- the plan and its costs ------------------------------------------------------------------ */

static double entropy_of(double p)
{
    return p > 0 ? p * (log(p) - 1) : 0;
}

/** A row of a plan into `dense`; of_y: NULL where columns are those of the spaces. */
static void put_row(const verdict *v, int64_t at, const double *row, const int32_t *of_y)
{
    double sum = 0;
    for (int64_t j = 0; j < v->p.s.m; j++) {
        const double p = row[of_y ? of_y[j] : j];
        sum += entropy_of(p);
        frgi_costs_put(&v->dense, at, j, p);
    }
    v->by_row[at] = sum;
}

/** A frgi_row_visitor, user a verdict: of the plan of all points. */
static void take_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const verdict *const v = user;
    (void)chunk;
    if (v->place[i] >= 0) {
        put_row(v, v->place[i], row, v->p.of_y);
    }
}

/** The same of a plan of those of positive weight. */
static void take_place(void *user, int64_t i, const double *row, int64_t chunk)
{
    (void)chunk;
    put_row(user, i, row, NULL);
}

/** to <- to + scale left' right over `count` rows of both. */
static void add_product(verdict *v, frgi_costs *to, const frgi_costs *left, const frgi_costs *right,
                        int64_t count, double scale)
{
    for (int64_t first = 0; first < count && graph_tasks_go_on(&v->tasks); first += AT_ONCE) {
        const int64_t many = count - first < AT_ONCE ? count - first : AT_ONCE;
        frgi_costs_add(&v->products, to, frgi_costs_row(left, first), left->ld,
                       frgi_costs_row(right, first), right->ld, many, scale);
        graph_tasks_count(&v->tasks, v->g->ctx, "verdict", 1, 0);
    }
}

/** One of LOOKS is done; whether to go on. */
static bool beat(verdict *v, int64_t done)
{
    if (graph_tasks_go_on(&v->tasks)) {
        v->tasks.status =
            (int)frgi_level_beat(&v->g->level, "verdict", done, LOOKS, (double)NAN, (double)NAN);
    }
    return graph_tasks_go_on(&v->tasks);
}

/** <K, P>, and theta <M, P>. */
static double cost_of_plan(const verdict *v)
{
    const frgi_spaces *const s = &v->p.s;
    double sum = 0;
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t j = 0; j < s->m; j++) {
            const double linear =
                s->linear ? s->theta * (double)s->linear[i * s->ld_linear + j] : 0;
            sum += frgi_costs_get(&v->dense, i, j) * (frgi_costs_get(&v->costs, i, j) + linear);
        }
    }
    return sum;
}

/** costs <- K of the dense plan; its J without entropy, caller's units. */
static double linearise(verdict *v)
{
    const frgi_spaces *const s = &v->p.s;
    memset(v->turned.at, 0, frgi_costs_bytes(&v->turned));
    add_product(v, &v->turned, &v->dense, &s->x, s->n, 1);
    frgi_costs_linear(s, &v->costs);
    add_product(v, &v->costs, &v->turned, &s->y, s->m, -2 * (1 - s->theta));
    return ((1 - s->theta) * s->constant + cost_of_plan(v)) * v->p.square;
}

/** What costs are divided by in the steps of the run, caller's units: of scale batch_max, which
 *  changes by the step, about the largest distances. */
static double unit_of_costs(const frg_gw *g)
{
    return g->o.scale == FRG_GW_SCALE_BATCH_MAX ? (double)g->x.most * (double)g->y.most
                                                : 1 / ((double)g->x.scale * (double)g->y.scale);
}

/** 2 epsilon in the units of the report's energies. */
static double temperature(const verdict *v)
{
    return 2 * v->g->level.epsilon * (v->p.s.theta > 0 ? 1 : unit_of_costs(v->g));
}

/** 2 epsilon times the entropy of the dense plan. */
static double entropy_term(const verdict *v)
{
    double sum = 0;
    for (int64_t i = 0; i < v->p.s.n; i++) {
        sum += v->by_row[i];
    }
    return temperature(v) * sum;
}

/** costs <- K(P). */
static void take_plan(verdict *v)
{
    frgi_transport_rows(&v->g->level.t, 0, v->g->x.n, CHUNKS, take_row, v);
    const double energy = linearise(v);
    v->plan = v->p.s.theta > 0 ? energy : v->g->report.energy;
    v->with_entropy = v->plan + entropy_term(v);
}

/* ---- vertices -------------------------------------------------------------------------------- */

/** J of where conditional gradient ends from the vertex of least cost, caller's units. */
static double descend(verdict *v)
{
    v->d.tasks = &v->tasks;
    frgi_descent_begin(&v->d);
    frgi_descend(&v->d, MOST_STEPS);
    return v->d.energy * v->p.square;
}

/** The vertex that sampled steps began at, if there is one. */
static void try_vertex(verdict *v)
{
    frg_gw_report *const r = &v->g->report;
    if (!isfinite(r->vertex_energy)) {
        return;
    }
    double sum_a = 0, sum_b = 0; /* no plan has more: it divides the rows, and the columns */
    for (int64_t i = 0; i < v->p.s.n; i++) {
        sum_a += entropy_of(v->p.s.a[i]);
    }
    for (int64_t j = 0; j < v->p.s.m; j++) {
        sum_b += entropy_of(v->p.s.b[j]);
    }
    r->other_energy = r->vertex_energy;
    v->other_with_entropy = r->vertex_energy + temperature(v) * fmin(sum_a, sum_b);
}

/** The lowest vertex of starts that know nothing of P. */
static void try_others(verdict *v)
{
    frg_gw_report *const r = &v->g->report;
    const int others = v->p.s.n <= FEW && v->p.s.m <= FEW ? 2 : 1;
    try_vertex(v);
    for (int which = 0; which < others && graph_tasks_go_on(&v->tasks); which++) {
        frgi_start_costs(&v->f, which, &v->d);
        const double energy = descend(v);
        if (!(energy >= r->other_energy)) {
            r->other_energy = energy;
            v->lowest.count = v->d.plan.count;
            frgi_descent_plan(&v->d, v->lowest.entries);
        }
    }
}

/** dense <- Sinkhorn's plan for the costs, from the potentials in duals, which become its own; J of
 *  it. */
static frg_status blur(verdict *v)
{
    const frgi_spaces *const s = &v->p.s;
    const frg_dtype dtype = s->single ? FRG_F32 : FRG_F64;
    frg_sinkhorn_opts o;
    frg_sinkhorn *k = NULL;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = temperature(v) / (2 * v->p.square);
    o.tol = v->g->o.polish_tol;
    o.max_iter = PASSES;
    frg_status status =
        frgi_sinkhorn_open(&k, s->ctx, (frgi_sinkhorn_place){.dev = s->dev, .group = s->group},
                           frg_matrix(v->costs.at, dtype, s->n, s->m, v->costs.ld), s->a, s->b, &o);
    status = status < 0 ? status : frg_sinkhorn_start(k, v->duals, v->duals + s->n);
    status = status < 0 ? status : frgi_sinkhorn_solve(k, NULL);
    if (status == FRG_OK || status == FRG_MAX_ITER || status == FRG_STALLED) {
        frgi_transport_rows(frg_sinkhorn_plan(k)->t, 0, s->n, CHUNKS, take_place, v);
        status = frg_sinkhorn_potentials(k, v->duals, v->duals + s->n);
        v->other_with_entropy = linearise(v) + entropy_term(v);
    }
    frg_sinkhorn_destroy(k);
    return status == FRG_OK ? v->tasks.status : status;
}

/** Lowers J of the lowest other vertex, entropy counted, by steps of the exact mode until it is
 *  below that of P, ROUNDS at most.  Positive: stopped. */
static frg_status blur_other(verdict *v, double gap)
{
    frg_status status = FRG_OK;
    v->d.steps->descent->linearise(&v->d, &v->lowest);
    frgi_descent_begin(&v->d);
    v->d.steps->descent->get_costs(&v->d, &v->costs);
    frgi_descent_duals(&v->d, v->duals, v->duals + v->p.s.n); /* potentials at no epsilon */
    v->other_with_entropy = (double)INFINITY;
    for (int round = 0;
         round < ROUNDS && status == FRG_OK && !(v->other_with_entropy < v->with_entropy - gap);
         round++) {
        status = blur(v);
    }
    return status;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static frg_status open_verdict(verdict *v)
{
    frg_gw *const g = v->g;
    frg_context *const ctx = g->ctx;
    const char *const what = "a verdict";
    TRY(frgi_gw_problem_open(g, FRG_GW_DTYPE_AUTO, &v->p));
    const frgi_spaces *const s = &v->p.s;
    TRY(frgi_descent_open(&v->d, s, frg_threads(s->ctx)));
    TRY(frgi_features_open(&v->f, s, false));
    TRY(NEW(ctx, &v->by_row, s->n, what));
    TRY(NEW(ctx, &v->duals, s->n + s->m, what));
    TRY(NEW(ctx, &v->lowest.entries, v->d.most, what));
    TRY(NEW(ctx, &v->place, g->x.n, what));
    TRY(frgi_costs_open(&v->dense, ctx, s->n, s->m, s->single, what));
    TRY(frgi_costs_open(&v->costs, ctx, s->n, s->m, s->single, what));
    TRY(frgi_costs_open(&v->turned, ctx, s->m, s->n, s->single, what));
    TRY(frgi_products_open(&v->products, ctx, frg_threads(ctx), s->single));
    memset(v->place, -1, (size_t)g->x.n * sizeof *v->place);
    for (int64_t i = 0; i < s->n; i++) {
        v->place[v->p.of_x[i]] = (int32_t)i;
    }
    return FRG_OK;
}

static void close_verdict(verdict *v)
{
    frg_context *const ctx = v->g->ctx;
    frgi_products_close(&v->products);
    frgi_costs_close(&v->dense, ctx);
    frgi_costs_close(&v->costs, ctx);
    frgi_costs_close(&v->turned, ctx);
    DROP(ctx, &v->place);
    DROP(ctx, &v->lowest.entries);
    DROP(ctx, &v->duals);
    DROP(ctx, &v->by_row);
    frgi_features_close(&v->f);
    frgi_descent_close(&v->d);
    frgi_gw_problem_close(&v->p);
}

static void say_beaten(frg_gw *g, double energy, double sharpened)
{
    frg_gw_report *const r = &g->report;
    char without[64] = "";
    if (isfinite(sharpened)) {
        snprintf(without, sizeof without, ", %.5g without the blur of epsilon", sharpened);
    }
    r->verdict = "another start is lower";
    frgi_warn(
        g->ctx, W_BEATEN,
        "the energy is %.5g%s; another start ends at %.5g: the mode vertex tries more starts, "
        "start_from vertex begins the sampled steps at the best of them",
        energy, without, r->other_energy);
    if (r->reason == FRG_GW_CONVERGED_CHANGE || r->reason == FRG_GW_CONVERGED_PLATEAU) {
        r->reason = FRG_GW_BEATEN;
    }
}

/** What is said of the plan.  Positive: stopped. */
static frg_status conclude(verdict *v)
{
    frg_gw_report *const r = &v->g->report;
    const double rounding = ROUNDING * fabs(v->p.s.product * v->p.square);
    r->verdict = "no other start is lower";
    if (!(r->other_energy <
          r->sharpened_energy - fmax(LOWER * fabs(r->sharpened_energy), rounding))) {
        return FRG_OK;
    }
    if (v->lowest.count > 0) {
        const frg_status status = blur_other(v, rounding);
        if (status != FRG_OK) {
            return status;
        }
    }
    if (!(v->other_with_entropy < v->with_entropy - rounding)) {
        r->verdict = "another start is lower, but not with the entropy of epsilon";
        return FRG_OK;
    }
    say_beaten(v->g, v->plan, r->sharpened_energy);
    return FRG_OK;
}

/* ---- many points: a sample ------------------------------------------------------------------- */

enum { FEWEST = 64, EACH = 64 }; /* points of a sample; points of a side for one of them */
enum { STEPS = 2, STEP_PASSES = 5, END_PASSES = 40 }; /* of the other start on all points */
#define OTHER_RUN (UINT64_C(1) << 40) /* of random numbers: no start of a run has it */
#define END_ERROR 1e-3                /* of columns, before they are made right */
#define SURE      3.0                 /* standard errors */
#define NEAR      2.0                 /* distances between neighbours in the sample */
#define MOST_NEAR 0.75                /* of the mass */
#define CUT       1.5                 /* energy over the least one that leaves the latter certain */

/** A start of the points of a sample, and the run of all points that goes on from it. */
typedef struct {
    frg_gw *g;
    double units[2], unit; /* frgi_gw_units: of distances, of those of the sample */
    frgi_spaces s;         /* of the sample */
    int32_t *of_x, *of_y;
    float *linear;  /* cost of the sample's points, or NULL */
    int32_t *place; /* of a point of x in the sample, -1: none */
    int32_t *image; /* of a point of the sample, among all of y, by the run's plan */
    frgi_plans found;
    frg_gw_opts o;
    frgi_level level;
    graph_tasks tasks;
} sampled;

/** Farthest points of a side that have weight, that of what is nearest to them, and the distances
 *  between them times unit. */
static frg_status sample_side(frgi_distances *d, const double *w, double unit, frgi_costs *c,
                              double **share, int32_t **chosen)
{
    const char *const what = "a sample of the points";
    frg_context *const ctx = d->ctx;
    const int64_t few = d->n / EACH < FEWEST ? FEWEST : d->n / EACH;
    const int64_t wanted = few < FRGI_FARTHEST ? few : FRGI_FARTHEST,
                  most = wanted < d->n ? wanted : d->n;
    int32_t *nearest = NULL;
    float *rows = NULL;
    double total = 0;
    int64_t count = 0;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW(ctx, &nearest, d->n, what));
    TRY_TO(done, NEW(ctx, chosen, most, what));
    TRY_TO(done, NEW0(ctx, share, most, what));
    TRY_TO(done, frgi_distances_spread(d, most, *chosen, nearest));
    for (int64_t i = 0; i < d->n; i++) {
        (*share)[nearest[i]] += w[i];
        total += w[i];
    }
    for (int64_t q = 0; q < most; q++) { /* of equal points the first alone has any */
        if ((*share)[q] > 0) {
            (*chosen)[count] = (*chosen)[q];
            (*share)[count++] = (*share)[q] / total;
        }
    }
    TRY_TO(done, frgi_costs_open(c, ctx, count, count, true, what));
    TRY_TO(done, NEW(ctx, &rows, count * count, what));
    TRY_TO(done, frgi_distances_cross(d, *chosen, count, *chosen, count, rows));
    for (int64_t e = 0; e < count * count; e++) {
        frgi_costs_put(c, e / count, e % count, unit * (double)rows[e]);
    }
done:
    DROP(ctx, &nearest);
    DROP(ctx, &rows);
    return status;
}

static frg_status open_sample(sampled *v)
{
    frg_gw *const g = v->g;
    frgi_spaces *const s = &v->s;
    v->unit = frgi_gw_units(g, v->units);
    *s = (frgi_spaces){.ctx = g->ctx,
                       .single = true,
                       .theta = g->o.linear_weight,
                       .seed = g->level.seed,
                       .steps = g->where.steps};
    TRY(sample_side(&g->x, g->a, v->units[0] / v->unit, &s->x, &s->a, &v->of_x));
    TRY(sample_side(&g->y, g->b, v->units[1] / v->unit, &s->y, &s->b, &v->of_y));
    s->n = s->x.rows;
    s->m = s->y.rows;
    if (g->linear) {
        TRY(frgi_linear_of(s, g->linear, g->level.t.s.ld, v->of_x, v->of_y, &v->linear));
    }
    frgi_spaces_finish(s);
    return FRG_OK;
}

static void close_sample(sampled *v)
{
    frg_context *const ctx = v->g->ctx;
    frgi_level_close(&v->level);
    DROP(ctx, &v->found.memory);
    DROP(ctx, &v->of_x);
    DROP(ctx, &v->of_y);
    DROP(ctx, &v->linear);
    DROP(ctx, &v->place);
    DROP(ctx, &v->image);
    frgi_spaces_close(&v->s);
}

/** Pairs of points from a plan of the sample: any number of the first of them are spread over its
 *  mass, as multiples of the golden ratio are. */
static frg_status take_pairs(sampled *v)
{
    const frgi_sparse *const plan = &v->found.plans[0];
    frgi_samples *const to = &v->level.sampled;
    for (int64_t r = 0; r < to->drawn; r++) {
        const double turns = ((double)r + 0.5) * 0.61803398874989485, at = turns - floor(turns);
        double below = 0;
        int64_t e = 0;
        for (; e < plan->count - 1 && below + plan->entries[e].mass <= at; e++) {
            below += plan->entries[e].mass;
        }
        to->given[r] = (frgi_pair){v->of_x[plan->entries[e].i], v->of_y[plan->entries[e].j]};
    }
    TRY(frgi_kept_reset(&v->level, false));
    return frgi_level_put_pairs(&v->level, to->drawn);
}

/** A frgi_row_visitor, user a sampled: where most of a row's mass is. */
static void take_image(void *user, int64_t i, const double *row, int64_t chunk)
{
    const sampled *const v = user;
    int64_t most = 0;
    (void)chunk;
    for (int64_t j = 1; j < v->g->y.n; j++) {
        most = row[j] > row[most] ? j : most;
    }
    if (v->place[i] >= 0) {
        v->image[v->place[i]] = (int32_t)most;
    }
}

/** image <- those of the run's plan. */
static frg_status take_images(sampled *v)
{
    frg_gw *const g = v->g;
    const int64_t n = g->x.n;
    int64_t *first = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW(g->ctx, &v->place, n, "a sample of the points"));
    TRY_TO(done, NEW(g->ctx, &v->image, v->s.n, "a sample of the points"));
    TRY_TO(done, NEW0(g->ctx, &first, n + 1, "a sample of the points"));
    memset(v->place, -1, (size_t)n * sizeof *v->place);
    for (int64_t k = 0; k < v->s.n; k++) {
        v->place[v->of_x[k]] = (int32_t)k;
    }
    for (int64_t i = 0; i < n; i++) {
        first[i + 1] = first[i] + (v->place[i] >= 0);
    }
    frgi_transport_some_rows(&g->level.t, first, take_image, v);
done:
    DROP(g->ctx, &first);
    return status;
}

/** The mean distance from a point of the sample of y to the nearest other one, scaled as s.y. */
static double spacing(const sampled *v)
{
    double sum = 0;
    for (int64_t j = 0; j < v->s.m; j++) {
        double least = (double)INFINITY;
        for (int64_t l = 0; l < v->s.m; l++) {
            least = l == j ? least : fmin(least, frgi_costs_get(&v->s.y, j, l));
        }
        sum += least / (double)v->s.m;
    }
    return sum;
}

/** Whether the best plan of the sample is the lowest by more than the sample may have changed.  A
 *  point moves by up to half of gap either way along a line, which has the variance gap^2 / 12,
 *  both ends of a distance do, and those of both sides: gap^2 / 3. */
static bool sample_decides(const sampled *v)
{
    const double gap = spacing(v), least = frgi_sparse_energy(&v->s, &v->found.plans[0]);
    bool decides = true;
    for (int64_t q = 1; q < v->found.count; q++) {
        const double energy = frgi_sparse_energy(&v->s, &v->found.plans[q]);
        decides = decides && energy > fmax(CUT * least, gap * gap / 3);
    }
    return decides;
}

/** *same <- whether the run's plan is what the best start of the sample leads to: of three quarters
 *  of the mass the images of both are no further apart than NEAR points of the sample. */
static frg_status is_near(sampled *v, bool *same)
{
    frg_gw *const g = v->g;
    const frgi_sparse *const plan = &v->found.plans[0];
    const double most = NEAR * spacing(v) / (v->units[1] / v->unit);
    double near = 0;
    for (int64_t e = 0; e < plan->count; e++) {
        const frgi_entry *const at = &plan->entries[e];
        float gap;
        TRY(frgi_distances_cross(&g->y, &v->of_y[at->j], 1, &v->image[at->i], 1, &gap));
        near += (double)gap <= most ? at->mass : 0;
    }
    *same = near >= MOST_NEAR;
    return FRG_OK;
}

/** A level of all points at the epsilon where the run ended. */
static frg_status open_other(sampled *v)
{
    frg_gw *const g = v->g;
    v->o = g->o;
    v->o.mode = FRG_GW_SAMPLED;
    v->o.anneal = FRG_GW_ANNEAL_NONE;
    v->o.epsilon = g->level.epsilon;
    v->o.store_plan = v->o.diag_exact = 0;
    const double left = (double)frgi_memory_allowed(g->ctx) - (double)frg_bytes_held(g->ctx);
    const bool fits = 4.0 * (double)g->x.n * (double)g->y.n < 0.5 * left,
               there = g->level.device && fits, stores = g->level.t.storage.stored && fits;
    TRY(frgi_level_open(&v->level, g->ctx, &v->o, &g->x, &g->y, g->a, g->b, g->linear,
                        (frgi_cost_storage){.store = there ? FRGI_X64 : FRGI_X32,
                                            .stored = stores,
                                            .there = there,
                                            .steps = g->level.t.steps},
                        false));
    v->level.average.on = stores || there;
    TRY(there ? frgi_level_device_lend(&v->level, &g->level) : FRG_OK);
    return frgi_level_reset(&v->level, OTHER_RUN);
}

/** Steps from the best plan of the sample, and the end of a run.  Positive: stopped. */
static frg_status run_other(sampled *v)
{
    frgi_level *const l = &v->level;
    frgi_marginal_error before, after;
    TRY(take_pairs(v));
    frg_status status = frgi_start_from_pairs(l);
    l->average.from = l->step + 1;
    for (int step = 0; step < STEPS && status == FRG_OK; step++) {
        status = frgi_level_step(l, STEP_PASSES, v->o.marginal_tol);
    }
    status = status == FRG_OK
                 ? frgi_level_beat(&v->g->level, "verdict", 2, LOOKS, (double)NAN, (double)NAN)
                 : status;
    if (status == FRG_OK) {
        l->t.accelerate = true;
        status = frgi_level_final_passes(l, END_ERROR, END_PASSES);
        l->t.accelerate = false;
    }
    return status == FRG_OK ? frgi_level_finish(l, true, &before, &after) : status;
}

/** J of a plan of all points without its entropy, caller's units (with a linear cost: scaled
 *  ones). */
typedef struct {
    double energy, error; /* standard error */
    double with_entropy;
} plan_value;

/** From E of the plan and its standard error. */
static plan_value value_of(const sampled *v, const frgi_level *l, double energy, double error)
{
    const double theta = v->g->o.linear_weight,
                 temperature = 2 * v->g->level.epsilon * (theta > 0 ? 1 : unit_of_costs(v->g));
    double linear;
    frgi_host_step_open(l->ctx, FRGI_HOST_VERDICT);
    const double entropy = frgi_plan_entropy(l, &linear);
    frgi_host_step_close(l->ctx);
    const double without = (1 - theta) * energy + 2 * theta * linear;
    return (plan_value){without, (1 - theta) * error, without + temperature * entropy};
}

/** *now <- that of the run's plan.  On a device before the other plan takes its place. */
static frg_status value_of_run(const sampled *v, plan_value *now)
{
    frg_gw *const g = v->g;
    double energy = g->report.energy, error = g->report.energy_standard_error;
    if (g->linear) { /* the report's is in the caller's units */
        TRY(frgi_gw_estimate(g, &g->level, v->units, &energy, &error));
    }
    *now = value_of(v, &g->level, energy, error);
    return FRG_OK;
}

/** Whether the plan of the other level is lower than that of the run, entropy counted, by more than
 *  the noise of both. */
static frg_status compare_values(sampled *v, plan_value now)
{
    frg_gw *const g = v->g;
    frg_gw_report *const r = &g->report;
    double energy, error;
    TRY(frgi_gw_estimate(g, &v->level, v->units, &energy, &error));
    const plan_value other = value_of(v, &v->level, energy, error);
    const double rounding = ROUNDING * v->unit * v->unit * fabs(v->s.product);
    r->other_energy = other.energy;
    if (other.with_entropy + SURE * hypot(other.error, now.error) + rounding < now.with_entropy) {
        say_beaten(g, now.energy, (double)NAN);
    }
    return FRG_OK;
}

/** The best start of a sample, and where the run's plan is another, what it leads to on all points.
 *  Positive: stopped. */
static frg_status compare_starts_of_sample(sampled *v)
{
    frg_gw_report *const r = &v->g->report;
    bool same = false;
    TRY(open_sample(v));
    TRY(frgi_plans_of(&v->s, &v->tasks, &v->found));
    frg_status status = v->tasks.status;
    if (status == FRG_OK && v->found.count == 0) {
        r->verdict = "not compared: no start of a sample came to its end";
        return FRG_OK;
    }
    r->verdict = sample_decides(v) ? "no other start is lower on a sample"
                                   : "other plans are as low on a sample";
    r->verdict_points = v->s.n > v->s.m ? v->s.n : v->s.m;
    if (status == FRG_OK) {
        status = frgi_level_beat(&v->g->level, "verdict", 1, LOOKS, (double)NAN, (double)NAN);
    }
    if (status == FRG_OK) {
        TRY(take_images(v));
        TRY(is_near(v, &same));
    }
    if (status == FRG_OK && !same) {
        plan_value now;
        TRY(value_of_run(v, &now));
        TRY(open_other(v));
        const bool stays = v->g->level.device && !v->level.device;
        if (stays) {
            frgi_host_step_open(v->g->ctx, FRGI_HOST_VERDICT);
        }
        status = run_other(v);
        status = status == FRG_OK ? compare_values(v, now) : status;
        if (stays) {
            frgi_host_step_close(v->g->ctx);
        }
    }
    return status;
}

static frg_status compare_on_sample(frg_gw *g)
{
    sampled v = {.g = g, .tasks = {.solver = NULL}};
    const frg_status status = compare_starts_of_sample(&v);
    close_sample(&v);
    if (status > 0) {
        g->report.verdict = "not compared: stopped";
        g->report.verdict_points = 0;
    }
    return status;
}

/** Whether there is time for vertices of all points. */
static bool are_few(const frg_gw *g)
{
    const double n = (double)g->x.n, m = (double)g->y.n, work = n * m * (n + m);
    return work <= (frgi_gw_assigns(g) ? MOST_WORK : TRANSPORT_WORK) && frgi_gw_fits_vertex(g);
}

/** Why there is no other start beside the plan; NULL: there is. */
static const char *left_out(const frg_gw *g)
{
    return g->degenerate || g->o.max_iter == 0 ? "not compared: no steps were done"
           : g->o.rank > 0                     ? "not compared: the rank is bounded"
           : g->o.scale == FRG_GW_SCALE_BATCH_MAX && g->o.linear_weight > 0
               ? "not compared: the unit of costs changes by the step"
               : NULL;
}

/** The mode vertex has raced its starts. */
static void of_vertex(frg_gw_report *r, bool fused)
{
    r->verdict =
        r->verdict_points > 0 ? "no other start is lower on a sample" : "no other start is lower";
    r->sharpened_energy = fused ? r->objective : r->energy;
    r->blur = 0;
    r->other_energy = r->next_energy;
}

static frg_status compare(verdict *v)
{
    frg_gw_report *const r = &v->g->report;
    TRY(open_verdict(v));
    const double product = v->p.s.product * v->p.square;
    take_plan(v);
    if (beat(v, 1)) {
        v->d.steps->descent->put_costs(&v->d, &v->costs);
        r->sharpened_energy = fmin(descend(v), v->plan);
    }
    if (beat(v, 2)) {
        r->blur = v->plan - r->sharpened_energy;
        r->energy_product = isfinite(r->energy_product) ? r->energy_product : product;
        try_others(v);
    }
    const frg_status status = beat(v, LOOKS) ? conclude(v) : v->tasks.status;
    if (status > 0) { /* stopped: nothing is known */
        r->sharpened_energy = r->blur = r->other_energy = (double)NAN;
        r->verdict = "not compared: stopped";
    }
    return status;
}

static frg_status compare_vertices(frg_gw *g)
{
    verdict v = {.g = g, .tasks = {.solver = NULL}};
    const frg_status status = compare(&v);
    close_verdict(&v);
    return status;
}

frg_status frgi_gw_verdict(frg_gw *g)
{
    frg_gw_report *const r = &g->report;
    if (g->level.t.list) {
        of_vertex(r, g->o.linear_weight > 0);
        return FRG_OK;
    }
    r->verdict = left_out(g);
    r->verdict_points = 0; /* those of a vertex that the run began at */
    if (r->verdict) {
        return FRG_OK;
    }
    const bool balanced = frgi_is_balanced(&g->o);
    if (balanced && !are_few(g)) {
        return compare_on_sample(g);
    }
    frgi_host_step_open(g->ctx, FRGI_HOST_VERDICT);
    const frg_status status = balanced ? compare_vertices(g) : frgi_gw_audit(g);
    frgi_host_step_close(g->ctx);
    return status;
}
