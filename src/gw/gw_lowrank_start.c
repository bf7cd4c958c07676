/* gw_lowrank_start.c - factors to start from, out of a dense plan.
 *
 * The dense plan T is one that was given, or that of groups of points: farthest points and what is
 * nearest to them, at most 200 a side, so that up to 200 points it is that of the points
 * themselves; it is found by the exact mode at the first epsilon.  Components are the `rank`
 * farthest points of the side with fewer of them, here X, and what is nearest:
 *
 *     Q_ic = a_i [i in c],   h_c = sum_i Q_ic,
 *     W_jc = b_j V_cj / sum_c V_cj,   V_cj = sum_i Q_ic T_ij / sum_j T_ij
 *
 * where a point has the row of its group.  At full rank Q diag(1/h) W' is T.  A thousandth of each
 * row is spread over all components, as a mirror step never changes an entry that is 0.
 */
#include <string.h>

#include "gw/gw_lowrank.h"

enum { GROUPS = 200, GROUP_STEPS = 200, GROUP_PASSES = 100 };
#define SPREAD 1e-3

/** One side: its points, their groups. */
typedef struct {
    frgi_distances *d;
    const double *weight;
    int64_t groups;
    int32_t *chosen, *group; /* groups; points */
    double *mass;            /* groups */
    frgi_distances among;    /* the chosen */
    double *factor;          /* n x rank */
} side;

typedef struct {
    side sides[2];
    float *plan; /* groups x groups */
} grouped;

/** Distances that are not scaled (beyond 2; infinite ones stand for 1.5) to 1 at most: exponents of
 *  the exact mode are floats. */
static void bring_near_1(frgi_distances *d)
{
    float most = 0;
    for (int64_t i = 0; i < d->n * d->n; i++) {
        most = d->dense[i] > most ? d->dense[i] : most;
    }
    for (int64_t i = 0; i < d->n * d->n && most > 2; i++) {
        d->dense[i] /= most;
    }
}

static frg_status open_side(side *s, frg_context *ctx, bool alone)
{
    const int64_t n = s->d->n;
    s->groups = alone || n < GROUPS ? n : GROUPS;
    TRY(NEW(ctx, &s->chosen, s->groups, "groups of points"));
    TRY(NEW(ctx, &s->group, n, "groups of points"));
    TRY(NEW0(ctx, &s->mass, s->groups, "groups of points"));
    if (alone) {
        for (int64_t i = 0; i < n; i++) {
            s->group[i] = (int32_t)i;
        }
        return FRG_OK;
    }
    TRY(frgi_distances_spread(s->d, s->groups, s->chosen, s->group));
    for (int64_t i = 0; i < n; i++) {
        s->mass[s->group[i]] += s->weight[i];
    }
    TRY(frgi_distances_subset(&s->among, s->d, s->chosen, s->groups));
    bring_near_1(&s->among);
    return FRG_OK;
}

static void close_side(side *s, frg_context *ctx)
{
    frgi_distances_close(&s->among);
    DROP(ctx, &s->chosen);
    DROP(ctx, &s->group);
    DROP(ctx, &s->mass);
}

static void keep_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    grouped *const g = user;
    const int64_t m = g->sides[1].groups;
    (void)chunk;
    for (int64_t j = 0; j < m; j++) {
        g->plan[i * m + j] = (float)row[j];
    }
}

/** g->plan <- the plan of the groups.  Positive: stopped, with the plan there is. */
static frg_status solve_groups(grouped *g, frgi_level *l, int64_t *steps)
{
    frg_gw_opts o = *l->o;
    frgi_level level = {0};
    frg_gw_reason reason;
    o.mode = FRG_GW_EXACT;
    o.anneal = FRG_GW_ANNEAL_NONE;
    o.rank = 0;
    o.polish = 0;
    o.anchors = 1;
    o.max_iter = GROUP_STEPS;
    o.max_inner = GROUP_PASSES;
    frgi_cost_storage storage = frgi_level_storage(&o, true);
    storage.steps = l->t.steps;
    frg_status status = frgi_level_open(&level, l->ctx, &o, &g->sides[0].among, &g->sides[1].among,
                                        g->sides[0].mass, g->sides[1].mass, NULL, storage, false);
    if (status >= 0) {
        level.trace = l->trace;
        level.is_coarse = true;
        status = frgi_level_reset(&level, 0);
    }
    if (status >= 0) {
        status = frgi_exact_loop(&level, false, &reason, steps);
    }
    if (status >= 0) {
        frgi_transport_rows(&level.t, 0, level.x->n, 64, keep_row, g);
    }
    l->spent.passes += level.spent.passes;
    l->spent.build += level.spent.build;
    l->spent.inner += level.spent.inner;
    l->spent.sample += level.spent.sample;
    frgi_level_close(&level);
    return status;
}

/** The factors, components on side `own`. */
static frg_status make_factors(const grouped *g, frg_context *ctx, int own, int64_t rank, double *h)
{
    const side *const s = &g->sides[own], *const t = &g->sides[!own];
    const int64_t n = s->d->n, m = t->d->n, row = own ? 1 : t->groups, column = own ? s->groups : 1;
    int32_t *chosen = NULL, *component = NULL;
    double *v = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW(ctx, &chosen, rank, "components"));
    TRY_TO(done, NEW(ctx, &component, n, "components"));
    TRY_TO(done, NEW0(ctx, &v, frgi_mul((size_t)t->groups, (size_t)rank), "components"));
    TRY_TO(done, frgi_distances_spread(s->d, rank, chosen, component));
    for (int64_t c = 0; c < rank; c++) {
        h[c] = SPREAD / (double)rank;
    }
    for (int64_t i = 0; i < n; i++) {
        const float *const from = g->plan + s->group[i] * row;
        const int32_t c = component[i];
        double sum = 0;
        for (int64_t k = 0; k < t->groups; k++) {
            sum += (double)from[k * column];
        }
        for (int64_t k = 0; k < t->groups && sum > 0; k++) {
            v[k * rank + c] += s->weight[i] / sum * (double)from[k * column];
        }
        for (int64_t q = 0; q < rank; q++) {
            s->factor[i * rank + q] = s->weight[i] * SPREAD / (double)rank;
        }
        s->factor[i * rank + c] += (1 - SPREAD) * s->weight[i];
        h[c] += (1 - SPREAD) * s->weight[i];
    }
    for (int64_t j = 0; j < m; j++) {
        const double *const from = v + t->group[j] * rank;
        double sum = 0;
        for (int64_t c = 0; c < rank; c++) {
            sum += from[c];
        }
        const double share = sum > 0 ? (1 - SPREAD) * t->weight[j] / sum : 0;
        for (int64_t c = 0; c < rank; c++) {
            t->factor[j * rank + c] = share * from[c] + SPREAD * t->weight[j] / (double)rank;
        }
    }
done:
    DROP(ctx, &chosen);
    DROP(ctx, &component);
    DROP(ctx, &v);
    return status;
}

frg_status frgi_lowrank_groups(frgi_level *l, frgi_factored *f, int64_t *steps)
{
    frg_context *const ctx = l->ctx;
    const bool given = l->initial.plan != NULL;
    grouped g = {.sides = {{.d = l->x, .weight = l->a}, {.d = l->y, .weight = l->b}}};
    const struct {
        double *to;
        int64_t count;
    } parts[3] = {{f->q, f->n * f->rank}, {f->w, f->m * f->rank}, {f->h, f->rank}};
    double *factors = NULL;
    frg_status status = FRG_OK, solved = FRG_OK;
    TRY_TO(done, open_side(&g.sides[0], ctx, given));
    TRY_TO(done, open_side(&g.sides[1], ctx, given));
    const size_t entries = frgi_mul((size_t)g.sides[0].groups, (size_t)g.sides[1].groups);
    TRY_TO(done, NEW(ctx, &g.plan, entries, "a plan of groups"));
    if (given) {
        memcpy(g.plan, l->initial.plan, entries * sizeof *g.plan);
    } else {
        TRY_TO(done, solved = solve_groups(&g, l, steps));
    }
    TRY_TO(done, NEW(ctx, &factors, frgi_mul((size_t)(f->n + f->m + 1), (size_t)f->rank),
                     "factors of a plan"));
    g.sides[0].factor = factors;
    g.sides[1].factor = factors + parts[0].count;
    TRY_TO(done, make_factors(&g, ctx, f->n > f->m, f->rank, g.sides[1].factor + parts[1].count));
    const double *from = factors;
    for (int p = 0; p < 3; from += parts[p++].count) {
        frgi_transport_copy(&l->t, parts[p].to, from, (size_t)parts[p].count * sizeof *from);
    }
done:
    DROP(ctx, &factors);
    DROP(ctx, &g.plan);
    close_side(&g.sides[0], ctx);
    close_side(&g.sides[1], ctx);
    return status < 0 ? status : solved;
}
