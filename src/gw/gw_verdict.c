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
 * assignments cannot, all this would take as long as the run; it is left out then, and the report
 * says so.
 */
#include <math.h>
#include <string.h>

#include "gw/gw_align.h"
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
    frgi_costs turned;   /* P' C: m x n */
    int32_t *place;      /* of a point among those of positive weight, -1: none */
    double *by_row;      /* sum_j p (log p - 1) */
    double *duals;       /* n + m */
    frgi_sparse lowest;  /* the lowest other vertex; no entries: the one that the run began at */
    double plan;         /* J of P without its entropy, caller's units */
    double with_entropy; /* J of P, and of what it is compared with */
    double other_with_entropy;
    gw_tasks tasks;
} verdict;

/* ---- the plan and its costs ------------------------------------------------------------------ */

static double entropy_of(double p)
{
    return p > 0 ? p * (log(p) - 1) : 0;
}

/** A row of a plan into d.vertex; of_y: NULL where columns are those of the spaces. */
static void put_row(const verdict *v, int64_t at, const double *row, const int32_t *of_y)
{
    const frgi_spaces *const s = &v->p.s;
    void *const to = frgi_costs_row(&v->d.vertex, at);
    double sum = 0;
    for (int64_t j = 0; j < s->m; j++) {
        const double p = row[of_y ? of_y[j] : j];
        sum += entropy_of(p);
        if (s->single) {
            ((float *)to)[j] = (float)p;
        } else {
            ((double *)to)[j] = p;
        }
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
    for (int64_t first = 0; first < count && gw_tasks_go_on(&v->tasks); first += AT_ONCE) {
        const int64_t many = count - first < AT_ONCE ? count - first : AT_ONCE;
        frgi_costs_add(&v->d.products, to, frgi_costs_row(left, first), left->ld,
                       frgi_costs_row(right, first), right->ld, many, scale);
        gw_tasks_count(&v->tasks, v->g->ctx, "verdict", 1, 0);
    }
}

/** One of LOOKS is done; whether to go on. */
static bool beat(verdict *v, int64_t done)
{
    if (gw_tasks_go_on(&v->tasks)) {
        v->tasks.status =
            (int)frgi_level_beat(&v->g->level, "verdict", done, LOOKS, (double)NAN, (double)NAN);
    }
    return gw_tasks_go_on(&v->tasks);
}

/** <K, P> of what is in now and vertex, and theta <M, P>. */
static double cost_of_plan(const verdict *v)
{
    const frgi_spaces *const s = &v->p.s;
    double sum = 0;
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t j = 0; j < s->m; j++) {
            const double linear =
                s->linear ? s->theta * (double)s->linear[i * s->ld_linear + j] : 0;
            sum += frgi_costs_get(&v->d.vertex, i, j) * (frgi_costs_get(&v->d.now, i, j) + linear);
        }
    }
    return sum;
}

/** now <- K of the plan in vertex; its J without entropy, caller's units. */
static double linearise(verdict *v)
{
    const frgi_spaces *const s = &v->p.s;
    memset(v->turned.at, 0, (size_t)(s->m * v->turned.ld) * frgi_costs_size(s->single));
    add_product(v, &v->turned, &v->d.vertex, &s->x, s->n, 1);
    frgi_costs_linear(s, &v->d.now);
    add_product(v, &v->d.now, &v->turned, &s->y, s->m, -2 * (1 - s->theta));
    return ((1 - s->theta) * s->constant + cost_of_plan(v)) * v->p.square;
}

/** 2 epsilon in the units of the report's energies. */
static double temperature(const verdict *v)
{
    const frg_gw *const g = v->g;
    const double scales = (double)g->x.scale * (double)g->y.scale;
    return 2 * g->level.epsilon / (v->p.s.theta > 0 ? 1 : scales);
}

/** 2 epsilon times the entropy of the plan in vertex. */
static double entropy_term(const verdict *v)
{
    double sum = 0;
    for (int64_t i = 0; i < v->p.s.n; i++) {
        sum += v->by_row[i];
    }
    return temperature(v) * sum;
}

/** now <- K(P). */
static void take_plan(verdict *v)
{
    frgi_transport_rows(&v->g->level.t, 0, v->g->x.n, CHUNKS, take_row, v);
    const double energy = linearise(v);
    v->plan = v->p.s.theta > 0 ? energy : v->g->report.energy;
    v->with_entropy = v->plan + entropy_term(v);
}

/* ---- vertices -------------------------------------------------------------------------------- */

/** J of where conditional gradient ends from the vertex of least d.now, caller's units. */
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
    for (int which = 0; which < others && gw_tasks_go_on(&v->tasks); which++) {
        frgi_start_costs(&v->f, which, &v->d);
        const double energy = descend(v);
        if (!(energy >= r->other_energy)) {
            r->other_energy = energy;
            v->lowest.count = v->d.plan.count;
            memcpy(v->lowest.entries, v->d.plan.entries,
                   (size_t)v->d.plan.count * sizeof *v->d.plan.entries);
        }
    }
}

/** Duals of the vertex of least d.now: what Sinkhorn's potentials are at no epsilon. */
static void take_duals(verdict *v)
{
    const frgi_spaces *const s = &v->p.s;
    double *const f = v->duals, *const g = f + s->n;
    if (!s->assigns) {
        frgi_simplex_duals(v->d.simplex, f, g);
        return;
    }
    for (int64_t j = 0; j < s->m; j++) {
        g[j] = s->single ? (double)((const float *)v->d.assign.v)[j]
                         : ((const double *)v->d.assign.v)[j];
    }
    for (int64_t i = 0; i < s->n; i++) {
        const int32_t j = v->d.assign.column[i];
        f[i] = frgi_costs_get(&v->d.now, i, j) - g[j];
    }
}

/** vertex <- Sinkhorn's plan for the costs in now, from the potentials in duals, which become its
 *  own; J of it. */
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
    frg_status status = frg_sinkhorn_create(
        &k, s->ctx, frg_matrix(v->d.now.at, dtype, s->n, s->m, v->d.now.ld), s->a, s->b, &o);
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
    frgi_descent_costs(&v->d, &v->lowest, 1, &v->d.now);
    frgi_descent_begin(&v->d);
    take_duals(v);
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
    char *at = NULL;
    TRY(frgi_gw_problem_open(g, FRG_GW_DTYPE_AUTO, &v->p));
    const frgi_spaces *const s = &v->p.s;
    TRY(frgi_descent_open(&v->d, s, frg_threads(s->ctx)));
    TRY(frgi_features_open(&v->f, s, false));
    TRY(NEW(ctx, &v->by_row, s->n, what));
    TRY(NEW(ctx, &v->duals, s->n + s->m, what));
    TRY(NEW(ctx, &v->lowest.entries, v->d.most, what));
    TRY(NEW(ctx, &v->place, g->x.n, what));
    v->turned = (frgi_costs){NULL, s->m, s->n, frgi_costs_ld(s->n), s->single};
    TRY(NEW0(ctx, &at, frgi_mul((size_t)(s->m * v->turned.ld), frgi_costs_size(s->single)), what));
    v->turned.at = at;
    memset(v->place, -1, (size_t)g->x.n * sizeof *v->place);
    for (int64_t i = 0; i < s->n; i++) {
        v->place[v->p.of_x[i]] = (int32_t)i;
    }
    return FRG_OK;
}

static void close_verdict(verdict *v)
{
    frg_context *const ctx = v->g->ctx;
    char *at = v->turned.at;
    DROP(ctx, &at);
    DROP(ctx, &v->place);
    DROP(ctx, &v->lowest.entries);
    DROP(ctx, &v->duals);
    DROP(ctx, &v->by_row);
    frgi_features_close(&v->f);
    frgi_descent_close(&v->d);
    frgi_gw_problem_close(&v->p);
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
    r->verdict = "another start is lower";
    frgi_warn(v->g->ctx, W_BEATEN,
              "the energy is %.5g, %.5g without the blur of epsilon; another start ends at %.5g: "
              "the mode "
              "vertex goes on from more of them, and start_from vertex blurs the best",
              v->plan, r->sharpened_energy, r->other_energy);
    if (r->reason == FRG_GW_CONVERGED_CHANGE || r->reason == FRG_GW_CONVERGED_PLATEAU) {
        r->reason = FRG_GW_BEATEN;
    }
    return FRG_OK;
}

/** Why there are no vertices beside the plan; NULL: there are. */
static const char *left_out(const frg_gw *g)
{
    const double n = (double)g->x.n, m = (double)g->y.n, work = n * m * (n + m);
    const bool few = work <= (frgi_gw_assigns(g) ? MOST_WORK : TRANSPORT_WORK);
    return g->degenerate || g->o.max_iter == 0 ? "not compared: no steps were done"
           : !frgi_is_balanced(&g->o)          ? "not compared: marginals are relaxed or partial"
           : g->where.dev                      ? "not compared: on a device"
           : g->o.rank > 0                     ? "not compared: the rank is bounded"
           : !few                              ? "not compared: too many points"
           : !frgi_gw_fits_vertex(g)           ? "not compared: no memory for it"
                                               : NULL;
}

/** The mode vertex has raced its starts. */
static void of_vertex(frg_gw_report *r)
{
    r->verdict = "no other start is lower";
    r->sharpened_energy = r->energy;
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

frg_status frgi_gw_verdict(frg_gw *g)
{
    frg_gw_report *const r = &g->report;
    r->verdict = left_out(g);
    if (g->level.t.list) {
        of_vertex(r);
    } else if (!r->verdict) {
        verdict v = {.g = g, .tasks = {.quiet = true}};
        const frg_status status = compare(&v);
        close_verdict(&v);
        return status;
    }
    return FRG_OK;
}
