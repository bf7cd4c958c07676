/* fe_graph.c - union-find over the rows. */
#include "fe/fe_graph.h"

#include <string.h>

#include "fe/fe_runs.h"
#include "fe/fe_union.h"

/** The eliminated levels are never vertices of their own: every eliminated level has a row, so its
 *  component is that row's.  Ends when `most` pairs are joined, with the eliminated level that
 *  joined the last. */
static int64_t join_levels(const fe_rows *g, int32_t *parent, int position, int64_t most)
{
    int64_t joined = 0;
    for (int64_t u = 0; u < g->n_elim && joined < most; u++) {
        const int32_t *index = g->index + g->elim_start[u] * g->n_remaining + position;
        int32_t before = *index;
        for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++, index += g->n_remaining) {
            if (*index != before) {
                joined += fe_join(parent, before, *index);
                before = *index;
            }
        }
    }
    return joined;
}

/** The same for the levels of two other factors. */
static int64_t join_pair(const fe_rows *g, int32_t *parent, int r, int s, int64_t most)
{
    int64_t joined = 0;
    for (int64_t i = 0; i < g->n && joined < most; i++) {
        const int32_t *index = g->index + i * g->n_remaining;
        joined += fe_join(parent, index[r], index[s]);
    }
    return joined;
}

/** *joined <- the pairs joined along all rows, at most `most`: levels of remaining factor r and the
 *  eliminated levels (s < 0), or of remaining factors r and s. */
static frg_status join(const fe_rows *g, frg_context *ctx, int32_t *parent, int r, int s,
                       int64_t most, int64_t *joined)
{
    fe_runs runs = frgi_fe_runs(g, ctx);
    *joined = 0;
    for (const fe_rows *w; *joined < most && (w = frgi_fe_runs_next(&runs));) {
        const int64_t left = most - *joined;
        *joined += s < 0 ? join_levels(w, parent, r, left) : join_pair(w, parent, r, s, left);
    }
    return frgi_fe_runs_close(&runs);
}

static frg_status lone_vertices(const fe_rows *g, frg_context *ctx, int32_t **parent)
{
    TRY(NEW(ctx, parent, g->n_reduced, "components"));
    for (int64_t l = 0; l < g->n_reduced; l++) {
        (*parent)[l] = (int32_t)l;
    }
    return FRG_OK;
}

/** Joins the levels of all factors along the rows; *count <- the components. */
static frg_status join_all(const fe_rows *g, frg_context *ctx, int32_t *parent, int64_t *count)
{
    int64_t vertices = fe_remaining(g, 0)->levels, joined = 0, more;
    frg_status status = join(g, ctx, parent, 0, -1, vertices - 1, &joined);
    for (int r = 1; status == FRG_OK && r < g->n_remaining; r++) {
        vertices += fe_remaining(g, r)->levels;
        status = join(g, ctx, parent, 0, r, vertices - 1 - joined, &more);
        joined += more;
    }
    *count = vertices - joined;
    return status;
}

frg_status frgi_fe_components(const fe_rows *g, frg_context *ctx, int p, int q, int64_t *out)
{
    if (g->n_remaining == 0) {
        *out = g->n_elim;
        return FRG_OK;
    }
    int32_t *parent;
    TRY(lone_vertices(g, ctx, &parent));
    frg_status status;
    if (q < 0) {
        status = join_all(g, ctx, parent, out);
    } else {
        const bool with_elim = p == g->elim_factor || q == g->elim_factor;
        const int first = p == g->elim_factor ? q : p;
        const int64_t vertices = g->factor[first].levels + (with_elim ? 0 : g->factor[q].levels);
        int64_t joined;
        status = join(g, ctx, parent, fe_remaining_place(g, first),
                      with_elim ? -1 : fe_remaining_place(g, q), vertices - 1, &joined);
        *out = vertices - joined;
    }
    DROP(ctx, &parent);
    return status;
}

frg_status frgi_fe_label_components(const fe_rows *g, frg_context *ctx, int32_t **label,
                                    int64_t *count)
{
    int32_t *parent;
    *label = NULL;
    TRY(lone_vertices(g, ctx, &parent));
    const frg_status status = join_all(g, ctx, parent, count);
    if (status != FRG_OK || *count <= 1) {
        DROP(ctx, &parent);
        return status;
    }
    /* a root is the smallest of its component: it is numbered before any other asks for its
     * number */
    int32_t next = 0;
    for (int64_t l = 0; l < g->n_reduced; l++) {
        const int32_t root = fe_root_of(parent, (int32_t)l);
        parent[l] = root;
    }
    for (int64_t l = 0; l < g->n_reduced; l++) {
        parent[l] = parent[l] == l ? next++ : parent[parent[l]];
    }
    *label = parent;
    return FRG_OK;
}

frg_status frgi_fe_label_pair(const fe_rows *g, frg_context *ctx, int r, int s, int32_t *label,
                              int64_t *count)
{
    const int64_t levels = fe_remaining(g, r)->levels;
    const int64_t first = fe_remaining(g, r)->first;
    const int64_t vertices = levels + (s < 0 ? 0 : fe_remaining(g, s)->levels);
    int32_t *parent = NULL, *number = NULL;
    int64_t joined = 0;
    frg_status status;
    TRY_TO(done, lone_vertices(g, ctx, &parent));
    TRY_TO(done, NEW(ctx, &number, g->n_reduced, "components"));
    status = join(g, ctx, parent, r, s, vertices - 1, &joined);
    memset(number, -1, (size_t)g->n_reduced * sizeof *number);
    *count = 0;
    for (int64_t l = 0; l < levels; l++) {
        int32_t *const mine = &number[fe_root_of(parent, (int32_t)(first + l))];
        *mine = *mine < 0 ? (int32_t)(*count)++ : *mine;
        label[l] = *mine;
    }
done:
    DROP(ctx, &parent);
    DROP(ctx, &number);
    return status;
}

frg_status frgi_fe_count_rank(const fe_rows *g, frg_context *ctx, frg_fe_dof how, int64_t *rank)
{
    int64_t levels = g->n_elim + g->n_reduced, redundant = 0;
    for (int q = 1; q < g->n_factors && g->n > 0; q++) {
        int64_t most = 1;
        const int earlier = how == FRG_DOF_NAIVE || (how == FRG_DOF_FIRSTPAIR && q > 1) ? 0 : q;
        for (int p = 0; p < earlier; p++) {
            int64_t components;
            const frg_status status = frgi_fe_components(g, ctx, p, q, &components);
            if (status != FRG_OK) {
                return status;
            }
            most = components > most ? components : most;
        }
        redundant += most;
    }
    *rank = levels - redundant;
    return FRG_OK;
}
