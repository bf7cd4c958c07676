/* graph_cpu.c - searches of 16 sources, min-plus tiles and nearest neighbours for one CPU level.
 *
 * Sixteen sources at once: distance[v] is a vector of 16 lanes, one per source, and a visit of the
 * arc v -> t
 *
 *     distance[t] <- min(distance[t], distance[v] + length)
 *
 * serves all of them.  Sources that lie close together want their nodes in about the same order, so
 * an arc is visited little more than once for all 16 (1.2 to 1.4 times on nearest-neighbour
 * graphs).  Nodes wait in buckets by the distance of what is pending there to the nearest source;
 * the order costs visits, never correctness: the search ends when no lane of any node can be
 * lowered, and as rounding is monotone the result is the same to the bit as Dijkstra's: both are
 * the least, over all paths, of the sums rounded arc by arc. The visits can be exponentially many
 * where lengths fall by halves; the search gives up at a bound.
 *
 * Compiled once per level with -DISA=plain, v3, v4.
 */
#include <math.h>

#include "core/lanes.h"
#include "graph/graph.h"

enum { PARTS = FRGI_LANES / FLOATS }; /* vectors that hold the 16 sources or points of a block */

/* ---- label correction ------------------------------------------------------------------------ */

INLINE void bucket_remove(const frgi_search *s, int32_t *heads, int32_t v)
{
    const int32_t next = s->next[v], before = s->before[v];
    if (before >= 0) {
        s->next[before] = next;
    } else {
        heads[s->bucket[v]] = next;
    }
    if (next >= 0) {
        s->before[next] = before;
    }
}

INLINE void bucket_insert(const frgi_search *s, int32_t *heads, int32_t v, int32_t b)
{
    const int32_t head = heads[b];
    s->next[v] = head;
    s->before[v] = -1;
    s->bucket[v] = b;
    if (head >= 0) {
        s->before[head] = v;
    }
    heads[b] = v;
}

enum { ARCS = 64 };

/** distance[t] <- min(distance[t], here + length) over `count` arcs; closer: those that lowered a
 *  lane, by number; returns how many.  Without a branch on what cannot be foreseen. */
INLINE int64_t relax(float *distance, const lanes here[PARTS], const frgi_arc *arcs, int64_t count,
                     int32_t closer[ARCS])
{
    int64_t found = 0;
    for (int64_t e = 0; e < count; e++) {
        float *const at = distance + (int64_t)arcs[e].to * FRGI_LANES;
        unsigned lowered = 0;
        for (int q = 0; q < PARTS; q++) {
            const lanes through = here[q] + arcs[e].length, old = lanes_at(at + q * FLOATS);
            lowered |= lanes_less(through, old);
            lanes_put(at + q * FLOATS, lanes_smaller(through, old));
        }
        closer[found] = (int32_t)e;
        found += lowered != 0;
    }
    return found;
}

static int64_t search(const frgi_search *s, const int32_t *sources, int count, int32_t *heads)
{
    const int64_t n = s->n;
    const float inverse = 1 / s->bucket_width;
    float start[FRGI_LANES];
    for (int l = 0; l < FRGI_LANES; l++) { /* lanes without a source never change */
        start[l] = l < count ? INFINITY : -INFINITY;
    }
    for (int64_t v = 0; v < n; v++) {
        memcpy(s->distance + v * FRGI_LANES, start, sizeof start);
        s->bucket[v] = -1;
    }
    memset(heads, 0xff, FRGI_BUCKETS * sizeof *heads);
    int64_t waiting = 0, visits = 0;
    int64_t now = 0; /* the bucket in work, counted from the start; list now % FRGI_BUCKETS */
    for (int l = 0; l < count; l++) {
        const int32_t v = sources[l];
        s->distance[(int64_t)v * FRGI_LANES + l] = 0;
        s->key[v] = 0;
        if (s->bucket[v] < 0) {
            bucket_insert(s, heads, v, 0);
            waiting++;
        }
    }
    while (waiting) {
        const int32_t v = heads[now % FRGI_BUCKETS];
        if (v < 0) {
            now++;
            continue;
        }
        bucket_remove(s, heads, v);
        s->bucket[v] = -1;
        waiting--;
        lanes here[PARTS];
        for (int q = 0; q < PARTS; q++) {
            here[q] = lanes_at(s->distance + (int64_t)v * FRGI_LANES + q * FLOATS);
        }
        const float key = s->key[v];
        const int64_t end = s->starts[v + 1];
        visits += end - s->starts[v];
        if (visits > s->most_visits) {
            break;
        }
        for (int64_t first = s->starts[v]; first < end; first += ARCS) {
            const frgi_arc *const arcs = s->arcs + first;
            int32_t closer[ARCS];
            const int64_t width = end - first < ARCS ? end - first : ARCS;
            const int64_t found = relax(s->distance, here, arcs, width, closer);
            for (int64_t q = 0; q < found; q++) {
                const int32_t t = arcs[closer[q]].to;
                const float pending = key + arcs[closer[q]].length;
                if (s->bucket[t] >= 0 && !(pending < s->key[t])) {
                    continue;
                }
                /* what lies beyond the window waits in its last bucket */
                const float place = pending * inverse;
                int64_t b = place < (float)(now + FRGI_BUCKETS - 1) ? (int64_t)place
                                                                    : now + FRGI_BUCKETS - 1;
                b = b < now ? now : b;
                if (s->bucket[t] >= 0) {
                    bucket_remove(s, heads, t);
                } else {
                    waiting++;
                }
                s->key[t] = pending;
                bucket_insert(s, heads, t, (int32_t)(b % FRGI_BUCKETS));
            }
        }
    }
    return visits;
}

static void spread(int64_t n, const float *distance, const int32_t *place, int count, float *out,
                   int64_t stride)
{
    float block[FRGI_LANES][FRGI_LANES];
    for (int64_t j = 0; j < n; j += FRGI_LANES) {
        const int width = (int)(n - j < FRGI_LANES ? n - j : FRGI_LANES);
        for (int c = 0; c < width; c++) {
            const float *const from = distance + (int64_t)place[j + c] * FRGI_LANES;
            for (int l = 0; l < FRGI_LANES; l++) {
                block[l][c] = from[l];
            }
        }
        for (int l = 0; l < count; l++) {
            memcpy(out + l * stride + j, block[l], (size_t)width * sizeof(float));
        }
    }
}

/* ---- Floyd and Warshall ---------------------------------------------------------------------- */

#if defined(__AVX512F__)
enum { STRIP = 4 };
#else
enum { STRIP = 2 };
#endif

/** Four rows of c and STRIP vectors of columns stay in registers over all steps k. */
INLINE void tile_panel(float *c, const float *a, const float *b, int64_t ld)
{
    lanes sum[4][STRIP];
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < STRIP; j++) {
            sum[i][j] = lanes_at(c + i * ld + j * FLOATS);
        }
    }
    for (int k = 0; k < FRGI_TILE; k++) {
        for (int j = 0; j < STRIP; j++) {
            const lanes right = lanes_at(b + k * ld + j * FLOATS);
            for (int i = 0; i < 4; i++) {
                sum[i][j] = lanes_smaller(a[i * ld + k] + right, sum[i][j]);
            }
        }
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < STRIP; j++) {
            lanes_put(c + i * ld + j * FLOATS, sum[i][j]);
        }
    }
}

static void tile(float *c, const float *a, const float *b, int64_t ld, bool in_order)
{
    if (!in_order) {
        for (int i = 0; i < FRGI_TILE; i += 4) {
            for (int j = 0; j < FRGI_TILE; j += STRIP * FLOATS) {
                tile_panel(c + i * ld + j, a + i * ld, b + j, ld);
            }
        }
        return;
    }
    for (int k = 0; k < FRGI_TILE; k++) {
        for (int i = 0; i < FRGI_TILE; i++) {
            const float left = a[i * ld + k];
            for (int j = 0; j < FRGI_TILE; j += FLOATS) {
                float *const at = c + i * ld + j;
                lanes_put(at, lanes_smaller(left + lanes_at(b + k * ld + j), lanes_at(at)));
            }
        }
    }
}

/* ---- nearest neighbours ---------------------------------------------------------------------- */

enum { DIMENSIONS = 64 };

/** out <- sum over the coordinates first .. last-1 of (block - query)^2. */
INLINE void some_coordinates(const float *const query[FRGI_QUERIES], const float *block,
                             int64_t first, int64_t last, float out[FRGI_QUERIES][FRGI_LANES])
{
    lanes sum[FRGI_QUERIES][PARTS] = {{{0}}};
    for (int64_t c = first; c < last; c++) {
        for (int part = 0; part < PARTS; part++) {
            const lanes x = lanes_at(block + c * FRGI_LANES + part * FLOATS);
            for (int q = 0; q < FRGI_QUERIES; q++) {
                const lanes difference = x - query[q][c];
                sum[q][part] += difference * difference;
            }
        }
    }
    for (int q = 0; q < FRGI_QUERIES; q++) {
        for (int part = 0; part < PARTS; part++) {
            lanes_put(out[q] + part * FLOATS, sum[q][part]);
        }
    }
}

/** Squared distances of 4 points to a block of 16; differences are taken first, so equal points are
 *  at 0. Sums of more than 64 dimensions are carried on in double. */
INLINE void block_distances(const float *const query[FRGI_QUERIES], const float *block, int64_t d,
                            float out[FRGI_QUERIES][FRGI_LANES])
{
    if (d <= DIMENSIONS) {
        some_coordinates(query, block, 0, d, out);
        return;
    }
    double sum[FRGI_QUERIES][FRGI_LANES] = {{0}};
    for (int64_t from = 0; from < d; from += DIMENSIONS) {
        some_coordinates(query, block, from, from + DIMENSIONS < d ? from + DIMENSIONS : d, out);
        for (int q = 0; q < FRGI_QUERIES; q++) {
            for (int l = 0; l < FRGI_LANES; l++) {
                sum[q][l] += (double)out[q][l];
            }
        }
    }
    for (int q = 0; q < FRGI_QUERIES; q++) {
        for (int l = 0; l < FRGI_LANES; l++) {
            out[q][l] = (float)sum[q][l];
        }
    }
}

/** Bit l: value[l] < bound; not greater than it where `or_equal`. */
INLINE unsigned below(const float value[FRGI_LANES], float bound, int or_equal)
{
    unsigned bits = 0;
    for (int part = 0; part < PARTS; part++) {
        const lanes x = lanes_at(value + part * FLOATS);
        const unsigned is = or_equal ? ~lanes_less(lanes_all(bound), x) & ((1u << FLOATS) - 1)
                                     : lanes_less(x, lanes_all(bound));
        bits |= is << part * FLOATS;
    }
    return bits;
}

/** Inserts into a list that rises by (distance, index). */
INLINE void list_insert(float *squared, int32_t *index, int64_t k, float value, int32_t who)
{
    int64_t at = k - 1;
    for (; at > 0 && (squared[at - 1] > value || (squared[at - 1] == value && index[at - 1] > who));
         at--) {
        squared[at] = squared[at - 1];
        index[at] = index[at - 1];
    }
    squared[at] = value;
    index[at] = who;
}

/** Blocks are visited from the queries' own outwards: the lists are short of their final ones at
 *  once, and few of the later points enter them. */
static void nearest(const float *blocks, const int32_t *order, int64_t n, int64_t d,
                    const float *points, int64_t first, int64_t last, int64_t k, float *squared,
                    int32_t *index)
{
    const int64_t n_blocks = (n + FRGI_LANES - 1) / FRGI_LANES;
    for (int64_t i = first; i < last; i += FRGI_QUERIES) {
        const int width = (int)(last - i < FRGI_QUERIES ? last - i : FRGI_QUERIES);
        const float *query[FRGI_QUERIES];
        float *list[FRGI_QUERIES];
        int32_t *who[FRGI_QUERIES];
        for (int q = 0; q < FRGI_QUERIES; q++) {
            const int64_t row = order[i + (q < width ? q : 0)];
            query[q] = points + row * d;
            list[q] = squared + row * k;
            who[q] = index + row * k;
            for (int64_t s = 0; s < k && q < width; s++) {
                list[q][s] = INFINITY;
                who[q][s] = INT32_MAX;
            }
        }
        for (int64_t step = 0, own = i / FRGI_LANES; step < 2 * n_blocks; step++) {
            const int64_t block = step & 1 ? own - (step + 1) / 2 : own + step / 2;
            if (block < 0 || block >= n_blocks) {
                continue;
            }
            float distance[FRGI_QUERIES][FRGI_LANES];
            block_distances(query, blocks + block * FRGI_LANES * d, d, distance);
            for (int q = 0; q < width; q++) {
                unsigned closer = below(distance[q], list[q][k - 1], 1);
                for (; closer; closer &= closer - 1) {
                    const int l = __builtin_ctz(closer);
                    const int64_t at = block * FRGI_LANES + l;
                    const float value = distance[q][l];
                    const float worst = list[q][k - 1];
                    if (at < n && at != i + q &&
                        (value < worst || (value == worst && order[at] < who[q][k - 1]))) {
                        list_insert(list[q], who[q], k, value, order[at]);
                    }
                }
            }
        }
    }
}

static void outside(const float *blocks, const int32_t *order, int64_t n, int64_t d,
                    const float *points, const int32_t *component, int64_t first, int64_t last,
                    float *squared, int32_t *index)
{
    for (int64_t i = first; i < last; i += FRGI_QUERIES) {
        const int width = (int)(last - i < FRGI_QUERIES ? last - i : FRGI_QUERIES);
        const float *query[FRGI_QUERIES];
        for (int q = 0; q < FRGI_QUERIES; q++) {
            query[q] = points + (i + (q < width ? q : 0)) * d;
        }
        for (int q = 0; q < width; q++) {
            squared[i - first + q] = INFINITY;
            index[i - first + q] = -1;
        }
        for (int64_t j = 0; j < n; j += FRGI_LANES) {
            float distance[FRGI_QUERIES][FRGI_LANES];
            block_distances(query, blocks + j * d, d, distance);
            for (int q = 0; q < width; q++) {
                float *const best = squared + i - first + q;
                unsigned closer = below(distance[q], *best, 0);
                for (; closer; closer &= closer - 1) {
                    const int l = __builtin_ctz(closer);
                    if (j + l < n && component[order[j + l]] != component[i + q] &&
                        distance[q][l] < *best) {
                        *best = distance[q][l];
                        index[i - first + q] = order[j + l];
                    }
                }
            }
        }
    }
}

static void euclid(const float *blocks, int64_t n, int64_t d, const float *const *queries,
                   int count, float *out, int64_t stride)
{
    const float *query[FRGI_QUERIES];
    for (int q = 0; q < FRGI_QUERIES; q++) {
        query[q] = queries[q < count ? q : 0];
    }
    for (int64_t j = 0; j < n; j += FRGI_LANES) {
        float squared[FRGI_QUERIES][FRGI_LANES];
        block_distances(query, blocks + j * d, d, squared);
        const int64_t width = n - j < FRGI_LANES ? n - j : FRGI_LANES;
        for (int q = 0; q < count; q++) {
            float root[FRGI_LANES];
            for (int l = 0; l < FRGI_LANES; l++) {
                root[l] = sqrtf(squared[q][l]);
            }
            memcpy(out + q * stride + j, root, (size_t)width * sizeof *root);
        }
    }
}

static void rescale(const float *from, int64_t n, float scale, float beyond, const float *means,
                    float *to)
{
    if (means) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            to[i] = scale * (from[i] < INFINITY ? from[i] : beyond) - means[i];
        }
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        to[i] = scale * (from[i] < INFINITY ? from[i] : beyond);
    }
}

static float farthest(const float *row, int64_t n, bool *cut)
{
    float most = 0, gone = 0;
#pragma omp simd reduction(max : most, gone)
    for (int64_t i = 0; i < n; i++) {
        const float x = row[i] < INFINITY ? row[i] : 0, infinite = row[i] < INFINITY ? 0.0f : 1.0f;
        most = x > most ? x : most;
        gone = infinite > gone ? infinite : gone;
    }
    *cut |= gone > 0;
    return most;
}

#pragma GCC visibility push(hidden)
extern const frgi_graph_ops CAT(frgi_graph_ops, ISA);
#pragma GCC visibility pop
const frgi_graph_ops CAT(frgi_graph_ops, ISA) = {.search = search,
                                                 .spread = spread,
                                                 .tile = tile,
                                                 .nearest = nearest,
                                                 .outside = outside,
                                                 .euclid = euclid,
                                                 .rescale = rescale,
                                                 .farthest = farthest};
