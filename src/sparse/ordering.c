/* ordering.c - reverse Cuthill-McKee, and SuiteSparse's AMD.
 *
 * Reverse Cuthill-McKee: breadth-first search from an end of the graph, neighbours in order of
 * degree, then the whole order turned round.  The end is found as George and Liu do: search from a
 * vertex of small degree, go to a vertex of smallest degree in the last level, search again, as
 * long as the graph gets longer (at most SEARCHES times).  Every search already is a Cuthill-McKee
 * order, so the last one is kept. Time: a few passes over the entries; no memory but the level of
 * each vertex.
 *
 * AMD's internal routine is called, because it takes its work space from us: the public one calls
 * malloc. It may not be interrupted, so callers cap the number of entries.
 *
 * References: Cuthill, McKee (1969); George, Liu (1981), chapter 4; Amestoy, Davis, Duff (2004). */
#include "sparse/ordering.h"

#include <amd.h>
#include <limits.h>
#include <string.h>

enum { SEARCHES = 3, UNSEEN = -1, HELD_BACK = -2 };

static int64_t degree(const frgi_pattern *a, int32_t i)
{
    return a->starts[i + 1] - a->starts[i];
}

/** Appends the late variables to the `count` others. */
static void append_late(int64_t n, const uint8_t *late, int32_t *order, int64_t count)
{
    for (int32_t i = 0; i < n; i++)
        if (late[i])
            order[count++] = i;
    assert(count == n);
}

void frgi_order_natural(int64_t n, const uint8_t *late, int32_t *order)
{
    int64_t count = 0;
    for (int32_t i = 0; i < n; i++)
        if (!late[i])
            order[count++] = i;
    append_late(n, late, order, count);
}

/** Shell's sort by degree with Knuth's gaps; nearly always a few vertices, at a star's centre all
 *  of them. */
static void sort_by_degree(const frgi_pattern *a, int32_t *v, int64_t count)
{
    int64_t gap = 1;
    while (gap < count / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
        for (int64_t i = gap; i < count; i++) {
            const int32_t x = v[i];
            const int64_t d = degree(a, x);
            int64_t j = i;
            for (; j >= gap && degree(a, v[j - gap]) > d; j -= gap)
                v[j] = v[j - gap];
            v[j] = x;
        }
    }
}

typedef struct {
    int64_t count;  /* vertices reached */
    int32_t levels; /* eccentricity of the root, plus 1 */
    int64_t last;   /* where the last level begins */
} search_result;

/** Breadth-first search from root; writes the order and the levels of what it reaches. */
static search_result search(const frgi_pattern *a, int32_t root, int32_t *order, int32_t *level)
{
    int64_t count = 1, last = 0;
    int32_t depth = 0;
    order[0] = root;
    level[root] = 0;
    for (int64_t head = 0; head < count; head++) {
        const int32_t v = order[head];
        if (level[v] > depth) {
            depth = level[v];
            last = head;
        }
        const int64_t from = count;
        for (int64_t e = a->starts[v]; e < a->starts[v + 1]; e++) {
            const int32_t w = a->columns[e];
            if (level[w] == UNSEEN) {
                level[w] = depth + 1;
                order[count++] = w;
            }
        }
        sort_by_degree(a, order + from, count - from);
    }
    return (search_result){.count = count, .levels = depth + 1, .last = last};
}

static int32_t smallest_degree(const frgi_pattern *a, const int32_t *v, int64_t count)
{
    int32_t best = v[0];
    for (int64_t i = 1; i < count; i++)
        if (degree(a, v[i]) < degree(a, best))
            best = v[i];
    return best;
}

/** Cuthill-McKee order of root's component, from an end of it. */
static int64_t component(const frgi_pattern *a, int32_t root, int32_t *order, int32_t *level)
{
    search_result r = search(a, root, order, level);
    for (int i = 1; i < SEARCHES && r.levels > 2; i++) {
        const int32_t end = smallest_degree(a, order + r.last, r.count - r.last);
        for (int64_t j = 0; j < r.count; j++)
            level[order[j]] = UNSEEN;
        const search_result next = search(a, end, order, level);
        const bool longer = next.levels > r.levels;
        r = next;
        if (!longer)
            break;
    }
    return r.count;
}

void frgi_order_rcm(const frgi_pattern *a, const uint8_t *late, int32_t *order, int32_t *level)
{
    for (int64_t i = 0; i < a->n; i++)
        level[i] = late[i] ? HELD_BACK : UNSEEN;
    int64_t count = 0;
    for (int32_t i = 0; i < a->n; i++)
        if (level[i] == UNSEEN)
            count += component(a, i, order + count, level);
    for (int64_t i = 0; i < count / 2; i++) {
        const int32_t t = order[i];
        order[i] = order[count - 1 - i];
        order[count - 1 - i] = t;
    }
    append_late(a->n, late, order, count);
}

/** Copies the pattern of the early variables, without diagonal, renumbered by `early`; returns its
 *  length. */
static int64_t copy_pattern(const frgi_pattern *a, const int32_t *order, int64_t count,
                            const int32_t *early, int *starts, int *lengths, int *entries)
{
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t v = order[i];
        starts[i] = (int)used;
        for (int64_t e = a->starts[v]; e < a->starts[v + 1]; e++) {
            const int32_t w = a->columns[e];
            if (early[w] >= 0 && w != v)
                entries[used++] = early[w];
        }
        lengths[i] = (int)(used - starts[i]);
    }
    return used;
}

frg_status frgi_order_amd(frg_context *ctx, const frgi_pattern *a, const uint8_t *late,
                          int32_t *order)
{
    const int64_t n = a->n, nnz = a->starts[n];
    frgi_order_natural(n, late, order);
    int64_t count = n;
    while (count > 0 && late[order[count - 1]])
        count--;
    const int64_t capacity = nnz + nnz / 5 + n + 1; /* amd_order's own elbow room */
    if (capacity > INT_MAX)
        FAIL(ctx, E_TOO_BIG, "minimum degree needs fewer than 2^31 entries, there are %lld",
             (long long)nnz);
    if (count == 0)
        return FRG_OK;
    int *work; /* eight arrays of n and the pattern */
    TRY(NEW(ctx, &work, 10 * n + capacity, "minimum degree ordering"));
    int *const starts = work, *const lengths = starts + n, *const nv = lengths + n;
    int *const next = nv + n, *const last = next + n, *const head = last + n;
    int *const elements = head + n, *const degrees = elements + n, *const w = degrees + n;
    int *const early = w + n, *const entries = early + n;
    for (int64_t i = 0; i < n; i++)
        early[i] = -1;
    for (int64_t i = 0; i < count; i++)
        early[order[i]] = (int)i;
    const int64_t used = copy_pattern(a, order, count, early, starts, lengths, entries);
    double control[AMD_CONTROL], info[AMD_INFO];
    amd_defaults(control);
    amd_2((int)count, starts, entries, lengths, (int)capacity, (int)used, nv, next, last, head,
          elements, degrees, w, control, info);
    for (int64_t i = 0; i < count; i++) /* order[early number] is the variable; early is free now */
        early[i] = order[last[i]];
    memcpy(order, early, (size_t)count * sizeof *order);
    DROP(ctx, &work);
    return FRG_OK;
}
