/* fe_graph.c - union-find over the rows. */
#include "fe/fe_graph.h"

#include "fe/fe_union.h"

static int rest_of(const fe_rows *g, int q)
{
    return q < g->unit_factor ? q : q - 1;
}

/** The units are never vertices of their own: every unit has a row, so its component is that row's. */
static int64_t join_units(const fe_rows *g, int32_t *parent, int rest)
{
    int64_t joined = 0;
    for (int64_t u = 0; u < g->n_units; u++) {
        const int32_t *index = g->index + g->unit_start[u] * g->n_rest + rest;
        int32_t before = *index;
        for (int64_t i = g->unit_start[u]; i < g->unit_start[u + 1]; i++, index += g->n_rest) {
            if (*index != before) {
                joined += fe_join(parent, before, *index);
                before = *index;
            }
        }
    }
    return joined;
}

static int64_t join_pair(const fe_rows *g, int32_t *parent, int r, int s)
{
    int64_t joined = 0;
    for (int64_t i = 0; i < g->n; i++) {
        const int32_t *index = g->index + i * g->n_rest;
        joined += fe_join(parent, index[r], index[s]);
    }
    return joined;
}

frg_status frgi_fe_components(const fe_rows *g, frg_context *ctx, int p, int q, int64_t *out)
{
    if (g->n_rest == 0) {
        *out = g->n_units;
        return FRG_OK;
    }
    int32_t *parent;
    TRY(NEW(ctx, &parent, g->n_coef, "components"));
    for (int64_t l = 0; l < g->n_coef; l++) {
        parent[l] = (int32_t)l;
    }
    int64_t vertices = 0, joined = 0;
    if (q < 0) {
        vertices = g->n_coef;
        joined = join_units(g, parent, 0);
        for (int r = 1; r < g->n_rest; r++) {
            joined += join_pair(g, parent, 0, r);
        }
    } else if (p == g->unit_factor || q == g->unit_factor) {
        const int other = p == g->unit_factor ? q : p;
        vertices = g->factor[other].levels;
        joined = join_units(g, parent, rest_of(g, other));
    } else {
        vertices = g->factor[p].levels + g->factor[q].levels;
        joined = join_pair(g, parent, rest_of(g, p), rest_of(g, q));
    }
    DROP(ctx, &parent);
    *out = vertices - joined;
    return FRG_OK;
}

frg_status frgi_fe_count_rank(const fe_rows *g, frg_context *ctx, frg_fe_dof how, int64_t *rank)
{
    int64_t levels = g->n_units + g->n_coef, redundant = 0;
    for (int q = 1; q < g->n_factors && g->n > 0; q++) {
        int64_t most = 1;
        const int earlier = how == FRG_DOF_NAIVE || (how == FRG_DOF_FIRSTPAIR && q > 1) ? 0 : q;
        for (int p = 0; p < earlier; p++) {
            int64_t components;
            TRY(frgi_fe_components(g, ctx, p, q, &components));
            most = components > most ? components : most;
        }
        redundant += most;
    }
    *rank = levels - redundant;
    return FRG_OK;
}
