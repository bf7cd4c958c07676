/* reg_matches.c - matches of two effects, and the sets of rows that stay connected without any one
 * of them (Kline, Saggio and Soelvsten 2020).
 *
 * Vertices: the levels of both effects; edges: the matches.  Without an edge its set falls apart
 * exactly where the edge is a bridge, one on no cycle; a match of several rows is none where single
 * rows are left out.  What is left without the bridges has none, so that one search finds the sets:
 *
 *     number(v)   by the order in which a depth-first search comes to v
 *     low(v)      the least number that v's subtree reaches by an edge outside the tree
 *     bridge      an edge of the tree from u down to v with low(v) = number(v)   (Tarjan 1974)
 *
 * A level of the first effect with one match, a worker who stays, is a leaf and its match a bridge;
 * its rows tell their own variance where there are two, and stay with their firm.
 */
#include <string.h>

#include "fe/fe_union.h"
#include "regress/reg_matches.h"

/* ---- matches --------------------------------------------------------------------------------- */

/** order <- the rows by level, in their order within one; start: n_levels + 1. */
static void sort_by_level(int64_t n, const int32_t *level, int64_t n_levels, int64_t *start,
                          int64_t *order)
{
    memset(start, 0, sizeof *start * (size_t)(n_levels + 1));
    for (int64_t i = 0; i < n; i++) {
        start[level[i] + 1]++;
    }
    for (int64_t l = 0; l < n_levels; l++) {
        start[l + 1] += start[l];
    }
    for (int64_t i = 0; i < n; i++) {
        order[start[level[i]]++] = i;
    }
    memmove(start + 1, start, sizeof *start * (size_t)n_levels);
    start[0] = 0;
}

/** Numbers the matches of the rows in `order`; place: n_second values of -1. */
static void number_matches(frgi_matches *m, const int64_t *order, const int32_t *b,
                           const double *counts, int64_t *place)
{
    int64_t row = 0;
    for (int64_t k = 0; k < m->n_first; k++) {
        const int64_t end = m->start[k + 1];
        m->start[k] = m->count;
        for (; row < end; row++) {
            const int64_t i = order[row];
            int64_t *const at = &place[b[i]];
            if (*at < m->start[k]) {
                *at = m->count++;
                m->first[*at] = (int32_t)k;
                m->second[*at] = b[i];
                m->rows[*at] = 0;
            }
            m->of_row[i] = *at;
            m->rows[*at] += counts ? counts[i] : 1;
        }
    }
    m->start[m->n_first] = m->count;
}

frg_status frgi_matches_create(frgi_matches *m, frg_context *ctx, int64_t n, const int32_t *a,
                               int64_t n_first, const int32_t *b, int64_t n_second,
                               const double *counts)
{
    int64_t *order = NULL, *place = NULL;
    frg_status status;
    *m = (frgi_matches){.n_first = n_first, .n_second = n_second};
    TRY_TO(done, NEW(ctx, &order, n, "an order of the rows"));
    TRY_TO(done, NEW(ctx, &place, n_second, "matches"));
    TRY_TO(done, NEW(ctx, &m->start, n_first + 1, "matches"));
    TRY_TO(done, NEW(ctx, &m->first, n, "matches"));
    TRY_TO(done, NEW(ctx, &m->second, n, "matches"));
    TRY_TO(done, NEW(ctx, &m->rows, n, "matches"));
    TRY_TO(done, NEW(ctx, &m->of_row, n, "matches"));
    TRY_TO(done, NEW(ctx, &m->back_start, n_second + 1, "matches"));
    memset(place, 0xff, sizeof *place * (size_t)n_second);
    sort_by_level(n, a, n_first, m->start, order);
    number_matches(m, order, b, counts, place);
    TRY_TO(done, NEW(ctx, &m->back, m->count, "matches"));
    sort_by_level(m->count, m->second, n_second, m->back_start, m->back);
done:
    DROP(ctx, &order);
    DROP(ctx, &place);
    if (status < 0) {
        frgi_matches_destroy(m, ctx);
    }
    return status;
}

void frgi_matches_destroy(frgi_matches *m, frg_context *ctx)
{
    DROP(ctx, &m->start);
    DROP(ctx, &m->first);
    DROP(ctx, &m->second);
    DROP(ctx, &m->rows);
    DROP(ctx, &m->of_row);
    DROP(ctx, &m->back_start);
    DROP(ctx, &m->back);
}

/* ---- bridges --------------------------------------------------------------------------------- */

/** A vertex during the search; those of the second effect stand behind the first's. */
typedef struct {
    int64_t number, low; /* number 0: not seen */
    int64_t cursor;      /* edges looked at */
    int64_t entry;       /* the edge that the search came by; -1: a root */
} vertex;

typedef struct {
    const frgi_matches *m;
    vertex *vertices; /* n_first + n_second */
    int64_t seen;
    unsigned char *bridge; /* count */
} search;

static int64_t degree(const frgi_matches *m, int64_t v)
{
    const int64_t l = v - m->n_first;
    return l < 0 ? m->start[v + 1] - m->start[v] : m->back_start[l + 1] - m->back_start[l];
}

static int64_t edge_of(const frgi_matches *m, int64_t v, int64_t i)
{
    const int64_t l = v - m->n_first;
    return l < 0 ? m->start[v] + i : m->back[m->back_start[l] + i];
}

static int64_t other_end(const frgi_matches *m, int64_t v, int64_t edge)
{
    return v < m->n_first ? m->n_first + m->second[edge] : m->first[edge];
}

static void discover(search *s, int64_t v, int64_t entry)
{
    s->seen++;
    s->vertices[v] = (vertex){.number = s->seen, .low = s->seen, .entry = entry};
}

/** Back from v to where the search came from; -1 from a root. */
static int64_t retreat(search *s, int64_t v)
{
    const vertex *const from = &s->vertices[v];
    if (from->entry < 0) {
        return -1;
    }
    const int64_t u = other_end(s->m, v, from->entry);
    vertex *const to = &s->vertices[u];
    s->bridge[from->entry] = from->low == from->number;
    to->low = from->low < to->low ? from->low : to->low;
    return u;
}

static void search_from(search *s, int64_t root)
{
    discover(s, root, -1);
    for (int64_t v = root; v >= 0;) {
        vertex *const at = &s->vertices[v];
        if (at->cursor == degree(s->m, v)) {
            v = retreat(s, v);
            continue;
        }
        const int64_t edge = edge_of(s->m, v, at->cursor++);
        const int64_t u = other_end(s->m, v, edge);
        const vertex *const to = &s->vertices[u];
        if (edge == at->entry) {
            continue;
        }
        if (to->number == 0) {
            discover(s, u, edge);
            v = u;
        } else {
            at->low = to->number < at->low ? to->number : at->low;
        }
    }
}

static frg_status find_bridges(const frgi_matches *m, frg_context *ctx, unsigned char *bridge)
{
    search s = {.m = m, .bridge = bridge};
    TRY(NEW0(ctx, &s.vertices, m->n_first + m->n_second, "bridges"));
    memset(bridge, 0, (size_t)m->count);
    for (int64_t v = 0; v < m->n_first; v++) { /* every edge has an end there */
        if (s.vertices[v].number == 0) {
            search_from(&s, v);
        }
    }
    DROP(ctx, &s.vertices);
    return FRG_OK;
}

/* ---- sets ------------------------------------------------------------------------------------ */

/** Does the match stay although it is a bridge? */
static bool stays(const frgi_matches *m, int64_t edge)
{
    return m->rows[edge] >= 2;
}

/** of_match <- the set of each match. */
static frg_status number_matched(const frgi_matches *m, frg_context *ctx, bool observations,
                                 int32_t *of_match, int32_t *n_groups)
{
    const int64_t all = m->n_first + m->n_second;
    unsigned char *bridge = NULL;
    int32_t *parent = NULL, *group = NULL;
    double *rows = NULL;
    frg_status status;
    TRY_TO(done, NEW(ctx, &bridge, m->count, "bridges"));
    TRY_TO(done, NEW(ctx, &parent, all, "connected sets"));
    TRY_TO(done, NEW(ctx, &group, all, "connected sets"));
    TRY_TO(done, NEW0(ctx, &rows, all, "connected sets"));
    TRY_TO(done, find_bridges(m, ctx, bridge));
    for (int64_t v = 0; v < all; v++) {
        parent[v] = (int32_t)v;
    }
    for (int64_t e = 0; e < m->count; e++) {
        bridge[e] &= !(observations && stays(m, e));
        if (!bridge[e]) {
            fe_join(parent, m->first[e], (int32_t)(m->n_first + m->second[e]));
        }
    }
    for (int64_t v = 0; v < all; v++) {
        parent[v] = fe_root_of(parent, (int32_t)v);
    }
    for (int64_t e = 0; e < m->count; e++) {
        rows[parent[m->n_first + m->second[e]]] += bridge[e] && !stays(m, e) ? 0 : m->rows[e];
    }
    TRY_TO(done, frgi_number_sets(ctx, parent, rows, all, group, n_groups));
    for (int64_t e = 0; e < m->count; e++) {
        of_match[e] = bridge[e] && !stays(m, e) ? 0 : group[m->n_first + m->second[e]];
    }
done:
    DROP(ctx, &bridge);
    DROP(ctx, &parent);
    DROP(ctx, &group);
    DROP(ctx, &rows);
    return status;
}

frg_status frgi_leave_out_rows(int32_t *group, int32_t *n_groups, frg_context *ctx,
                               const frgi_frame *f, const frgi_formula *formula,
                               const double *counts, bool observations)
{
    int pair[2];
    frgi_matches m = {0};
    int32_t *of_match = NULL;
    frg_status status;
    TRY(frgi_find_pair(ctx, formula, f, pair));
    TRY(frgi_matches_create(&m, ctx, f->n, f->codes + pair[0] * f->n, f->levels[pair[0]],
                            f->codes + pair[1] * f->n, f->levels[pair[1]], counts));
    TRY_TO(done, NEW(ctx, &of_match, m.count, "matches"));
    TRY_TO(done, number_matched(&m, ctx, observations, of_match, n_groups));
    for (int64_t i = 0; i < f->n; i++) {
        group[i] = of_match[m.of_row[i]];
    }
done:
    DROP(ctx, &of_match);
    frgi_matches_destroy(&m, ctx);
    return status;
}
