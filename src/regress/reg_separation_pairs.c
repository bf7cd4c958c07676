/* reg_separation_pairs.c - rows that two effects predict perfectly, whatever the regressors.
 *
 * A direction a_p + b_f of two effects has to be >= 0 in the rows where y = 0, and 0 where y > 0,
 * <= 0 where a binary y = 1 (reg_separation.c).  With u = a on the levels of the one and u = -b on
 * those of the other each row is an arc of a directed graph of levels:
 *
 *     y = 0         u_p >= u_f      p -> f
 *     binary y = 1  u_p <= u_f      f -> p
 *     y > 0         u_p  = u_f      both
 *
 * u is the same on all levels of a cycle, thus on a strongly connected component; and as arcs
 * between components have no cycles, their order is a u that differs along each of them.  So the
 * separated rows are those whose levels lie in different components, exactly, found by Tarjan
 * (1972) in one walk over the arcs, where the rectifier needs hundreds of steps along long chains.
 *
 * What it takes: two arcs a row, 4 bytes each, and 36 bytes a level, which are jumped about in.
 */
#include "regress/reg_frame.h"

/** Arcs of a level stand together: to[start[v]] .. to[start[v + 1] - 1]. */
typedef struct {
    int64_t levels;
    int64_t *start;
    int32_t *to;
} arcs;

/** What the walk knows of a level. */
typedef struct {
    int64_t next;      /* arc to be followed */
    int32_t order;     /* of being met, from 1; 0: not yet */
    int32_t lowest;    /* order that is reached from it, among levels without a component */
    int32_t from;      /* level that it was met from, -1: none */
    int32_t component; /* -1: none yet */
} visit;

/** Row i's arcs, one or two, each counted at its level or, where `fill`, entered. */
static void take_arcs(arcs *g, const int32_t *p, const int32_t *f, int32_t first, double y,
                      bool binary, int64_t i, bool fill)
{
    const int32_t ends[2] = {p[i], first + f[i]};
    const bool has[2] = {y == 0 || !binary, y != 0};
    for (int k = 0; k < 2; k++) {
        if (has[k] && fill) {
            g->to[g->start[ends[k]]++] = ends[1 - k];
        } else if (has[k]) {
            g->start[ends[k] + 1]++;
        }
    }
}

static frg_status make_arcs(arcs *g, frg_context *ctx, const frgi_frame *frame, int q, int r,
                            const double *y, bool binary)
{
    const int32_t *const p = frame->codes + q * frame->n, *const f = frame->codes + r * frame->n;
    const int32_t first = (int32_t)frame->levels[q];
    TRY(NEW0(ctx, &g->start, g->levels + 1, "arcs between levels"));
    for (int64_t i = 0; i < frame->n; i++) {
        take_arcs(g, p, f, first, y[i], binary, i, false);
    }
    for (int64_t v = 0; v < g->levels; v++) {
        g->start[v + 1] += g->start[v];
    }
    TRY(NEW(ctx, &g->to, g->start[g->levels], "arcs between levels"));
    for (int64_t i = 0; i < frame->n; i++) {
        take_arcs(g, p, f, first, y[i], binary, i, true);
    }
    for (int64_t v = g->levels; v > 0; v--) { /* each stands at its end now */
        g->start[v] = g->start[v - 1];
    }
    g->start[0] = 0;
    return FRG_OK;
}

/** The levels down to v, which reach each other, become component v. */
static void close_component(visit *at, int32_t *stack, int32_t *height, int32_t v)
{
    int32_t w;
    do {
        w = stack[--*height];
        at[w].component = v;
    } while (w != v);
}

/** Components of all that is reached from `root`. */
static void walk(const arcs *g, visit *at, int32_t *stack, int32_t *met, int32_t root)
{
    int32_t height = 0, v = root;
    at[root].from = -1;
    while (v >= 0) {
        visit *const here = &at[v];
        if (here->order == 0) {
            here->order = here->lowest = ++*met;
            here->next = g->start[v];
            stack[height++] = v;
        }
        if (here->next < g->start[v + 1]) {
            const int32_t w = g->to[here->next++];
            if (at[w].order == 0) {
                at[w].from = v;
                v = w;
            } else if (at[w].component < 0 && at[w].order < here->lowest) {
                here->lowest = at[w].order;
            }
            continue;
        }
        if (here->lowest == here->order) {
            close_component(at, stack, &height, v);
        } else if (here->lowest < at[here->from].lowest) {
            at[here->from].lowest = here->lowest;
        }
        v = here->from;
    }
}

static void mark_rows(const frgi_frame *frame, int q, int r, const visit *at, unsigned char *gone)
{
    const int32_t *const p = frame->codes + q * frame->n, *const f = frame->codes + r * frame->n;
    for (int64_t i = 0; i < frame->n; i++) {
        gone[i] |= at[p[i]].component != at[frame->levels[q] + f[i]].component;
    }
}

frg_status frgi_separated_by_pair(frg_context *ctx, const frgi_frame *frame, int q, int r,
                                  const double *y, bool binary, unsigned char *gone)
{
    arcs g = {.levels = frame->levels[q] + frame->levels[r]};
    visit *at = NULL;
    int32_t *stack = NULL, met = 0;
    frg_status status;
    if (g.levels > INT32_MAX) {
        return FRG_OK; /* the rectifier looks for them */
    }
    TRY_TO(done, make_arcs(&g, ctx, frame, q, r, y, binary));
    TRY_TO(done, NEW0(ctx, &at, g.levels, "levels of two effects"));
    TRY_TO(done, NEW(ctx, &stack, g.levels, "levels of two effects"));
    for (int64_t v = 0; v < g.levels; v++) {
        at[v].component = -1;
    }
    for (int64_t v = 0; v < g.levels; v++) {
        if (at[v].order == 0) {
            walk(&g, at, stack, &met, (int32_t)v);
        }
    }
    mark_rows(frame, q, r, at, gone);
done:
    DROP(ctx, &g.start);
    DROP(ctx, &g.to);
    DROP(ctx, &at);
    DROP(ctx, &stack);
    return status;
}
