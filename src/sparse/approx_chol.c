/* approx_chol.c - approximate Cholesky factor of a graph Laplacian by sampled elimination.
 *
 * Eliminating vertex v with edges w_1 <= ... <= w_d turns its star into a clique with edges w_j w_k
 * / T, T = w_1 + ... + w_d.  Instead, with R_j = w_j + ... + w_d, each j < d gets one edge, to a k
 * > j drawn with probability w_k / R_{j+1}, of weight w_j R_{j+1} / T.  The expectation is the
 * clique, the number of edges falls by one with every vertex, and the factor stays as sparse as the
 * graph.  As row operations the elimination of v is: for j < d pass the fraction f_j = w_j / R_j of
 * what is left to j, the remainder to d, and the pivot is w_d^2 / T; so a column of the factor is
 * the list (j, f_j) and one pivot.
 *
 * AC(k), k = `split`: every edge is k copies of weight w / k at the start, and when a vertex is
 * eliminated its copies to one neighbour are merged down to k.  Smaller pieces have a smaller
 * variance: k = 2 holds where k = 1 now and then fails, for twice the entries.  A sampled edge from
 * a neighbour to itself is dropped, as it adds nothing to a Laplacian.
 *
 * Order: smallest current degree first, from a bucket queue.  A tree is eliminated leaf by leaf
 * without any sample: exactly.  Randomness is Philox with key (seed, vertex, step), so that the
 * factor depends on the seed alone.
 *
 * A matrix with surplus on the diagonal is the Laplacian of the graph with one more vertex, the
 * ground, joined by the surplus (Gremban 1996); the ground is never eliminated and its value is 0.
 *
 * Data: half-edges 2 e and 2 e + 1 are the two ends of edge e; each lies in the list of the vertex
 * it belongs to and names the other one.  An edge of v that is resampled keeps its two halves: that
 * of j stays in j's list and names k, that of v moves to k's list.  Memory while building: 16 bytes
 * a half and 16 an edge; kept: 12 bytes an entry of the factor and some 40 a vertex.  Time: about
 * linear times log of the degrees.
 *
 * References: Gao, Kyng, Spielman (2023), "Robust and practical solution of Laplacian equations by
 * approximate elimination"; Kyng, Sachdeva (2016). */
#include "sparse/approx_chol.h"

#include <math.h>
#include <string.h>

#include "core/checkpoint_bytes.h"
#include "sparse/approx_chol_ops.h"

static const double SURPLUS = 1e-12; /* of the diagonal: less is rounding */
enum { POLL_VERTICES = 1 << 15, LANES = 8 };
static const uint64_t STREAM =
    0x61635f65646765; /* of the context's random numbers: these draws alone */

struct frgi_ac {
    frg_context *ctx;
    int64_t n, components, grounded;
    frgi_arena memory;
    int32_t *place;     /* n: number in the order of elimination */
    int32_t *component; /* n */
    double *weight;     /* components: 1 / vertices, 0 for a grounded one */
    int64_t *starts;    /* n + 1 */
    double *inverse;    /* n */
    int32_t *rows;      /* entries; growing blocks */
    double *f;
    int64_t capacity;
    const frgi_ac_ops *ops;
};

void frgi_ac_defaults(frgi_ac_opts *o)
{
    *o = (frgi_ac_opts){.split = 2, .seed = 0, .solver = "ac"};
}

/* ---- the graph ------------------------------------------------------------------------------- */

typedef struct {
    double w; /* 0: deleted */
    int32_t other;
    int32_t next; /* in the list of the vertex that this half belongs to; -1: the last */
} half;

/** A live edge of the vertex that is being eliminated. */
typedef struct {
    double w;
    int32_t other;
    int32_t at; /* the half in its list */
} spoke;

typedef struct {
    int64_t n, edges; /* the ground is vertex n */
    int split;
    half *halves;
    int32_t *head;                    /* n + 1: lists of halves */
    int32_t *degree;                  /* n + 1: live halves */
    int32_t *bucket, *before, *after; /* n + 2, n, n: vertices by degree, in lists both ways */
    int64_t lowest;                   /* no bucket below it is filled */
    spoke *spokes;                    /* edges */
    double *tail;                     /* edges + 1: R_j */
    int32_t *order;                   /* n: vertices as they are eliminated */
    frgi_arena memory;
} graph;

static double surplus_of(const double *diagonal, const double *edges, int64_t i)
{
    const double s = diagonal[i] - edges[i];
    return s > SURPLUS * diagonal[i] ? s : 0;
}

/** Sums of the edges and diagonals; returns the number of edges with both ends below n. */
static int64_t scan(const frgi_symmetric *s, double *diagonal, double *sums)
{
    int64_t edges = 0;
    for (int64_t i = 0; i < s->n; i++)
        diagonal[i] = sums[i] = 0;
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
            const int32_t j = s->columns[e];
            const double w = -s->values[e];
            if (j == i)
                diagonal[i] = -w;
            if (j == i || w <= 0 || (s->upper && j < i))
                continue;
            edges += j > i;
            sums[i] += w;
            if (s->upper)
                sums[j] += w;
        }
    }
    return edges;
}

static void graph_layout(frgi_arena *a, graph *g)
{
    g->halves = TAKE(a, half, 2 * g->edges);
    g->head = TAKE(a, int32_t, g->n + 1);
    g->degree = TAKE(a, int32_t, g->n + 1);
    g->bucket = TAKE(a, int32_t, g->n + 2);
    g->before = TAKE(a, int32_t, g->n);
    g->after = TAKE(a, int32_t, g->n);
    g->spokes = TAKE(a, spoke, g->edges);
    g->tail = TAKE(a, double, g->edges + 1);
    g->order = TAKE(a, int32_t, g->n);
}

static void add_end(graph *g, int64_t h, int32_t owner, int32_t other, double w)
{
    g->halves[h] = (half){.w = w, .other = other, .next = g->head[owner]};
    g->head[owner] = (int32_t)h;
    g->degree[owner]++;
}

/** Adds `split` copies; returns the number of edges then. */
static int64_t add_edge(graph *g, int64_t e, int32_t i, int32_t j, double w)
{
    for (int c = 0; c < g->split; c++, e++) {
        add_end(g, 2 * e, i, j, w / g->split);
        add_end(g, 2 * e + 1, j, i, w / g->split);
    }
    return e;
}

static void fill_graph(graph *g, const frgi_symmetric *s, const double *diagonal,
                       const double *sums)
{
    int64_t e = 0;
    for (int64_t i = 0; i <= g->n; i++) {
        g->head[i] = -1;
        g->degree[i] = 0;
    }
    for (int32_t i = 0; i < g->n; i++) {
        for (int64_t t = s->starts[i]; t < s->starts[i + 1]; t++)
            if (s->columns[t] > i && s->values[t] < 0)
                e = add_edge(g, e, i, s->columns[t], -s->values[t]);
        const double w = surplus_of(diagonal, sums, i);
        if (w > 0)
            e = add_edge(g, e, i, (int32_t)g->n, w);
    }
    assert(e == g->edges);
}

/** Labels the components (the ground connects nothing) by searches; g->order is the queue. */
static void label(frgi_ac *f, const graph *g)
{
    for (int64_t i = 0; i < g->n; i++)
        f->component[i] = -1;
    for (int32_t root = 0; root < g->n; root++) {
        if (f->component[root] >= 0)
            continue;
        int64_t head = 0, tail = 0;
        bool grounded = false;
        g->order[tail++] = root;
        f->component[root] = (int32_t)f->components;
        while (head < tail) {
            const int32_t v = g->order[head++];
            for (int32_t h = g->head[v]; h >= 0; h = g->halves[h].next) {
                const int32_t u = g->halves[h].other;
                grounded |= u == g->n;
                if (u == g->n || f->component[u] >= 0)
                    continue;
                f->component[u] = (int32_t)f->components;
                g->order[tail++] = u;
            }
        }
        f->weight[f->components++] = grounded ? 0 : 1 / (double)tail;
        f->grounded += grounded;
    }
}

/* ---- the queue by degree --------------------------------------------------------------------- */

static int64_t bucket_of(const graph *g, int32_t v)
{
    return g->degree[v] < g->n ? g->degree[v] : g->n;
}

static void insert(graph *g, int32_t v)
{
    const int64_t b = bucket_of(g, v);
    const int32_t first = g->bucket[b];
    g->before[v] = -1;
    g->after[v] = first;
    if (first >= 0)
        g->before[first] = v;
    g->bucket[b] = v;
    g->lowest = b < g->lowest ? b : g->lowest;
}

static void take_out(graph *g, int32_t v)
{
    if (g->before[v] >= 0)
        g->after[g->before[v]] = g->after[v];
    else
        g->bucket[bucket_of(g, v)] = g->after[v];
    if (g->after[v] >= 0)
        g->before[g->after[v]] = g->before[v];
}

static void change_degree(graph *g, int32_t v, int32_t by)
{
    if (v == g->n)
        return;
    take_out(g, v);
    g->degree[v] += by;
    insert(g, v);
}

static int32_t smallest(graph *g)
{
    while (g->bucket[g->lowest] < 0)
        g->lowest++;
    return g->bucket[g->lowest];
}

/* ---- elimination ----------------------------------------------------------------------------- */

static bool by_other(spoke a, spoke b)
{
    return a.other < b.other || (a.other == b.other && a.at < b.at);
}

static bool by_weight(spoke a, spoke b)
{
    return a.w < b.w || (a.w == b.w && by_other(a, b));
}

/** Shell's sort with Knuth's gaps: a few spokes as a rule, a whole star's at times. */
static void sort(spoke *s, int64_t count, bool (*less)(spoke, spoke))
{
    int64_t gap = 1;
    while (gap < count / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
        for (int64_t i = gap; i < count; i++) {
            const spoke x = s[i];
            int64_t j = i;
            for (; j >= gap && less(x, s[j - gap]); j -= gap)
                s[j] = s[j - gap];
            s[j] = x;
        }
    }
}

/** The live edges of v, more than `split` copies to one neighbour merged into that many of equal
 *  weight. */
static int64_t gather(graph *g, int32_t v)
{
    int64_t count = 0, kept = 0;
    for (int32_t h = g->head[v]; h >= 0; h = g->halves[h].next)
        if (g->halves[h].w > 0)
            g->spokes[count++] = (spoke){g->halves[h].w, g->halves[h].other, h};
    sort(g->spokes, count, by_other);
    for (int64_t i = 0, end; i < count; i = end) {
        double sum = 0;
        for (end = i; end < count && g->spokes[end].other == g->spokes[i].other; end++)
            sum += g->spokes[end].w;
        const bool merge = end - i > g->split;
        for (int64_t t = i; t < end; t++) {
            spoke p = g->spokes[t];
            if (merge && t - i >= g->split) {
                g->halves[p.at ^ 1].w = 0;
                change_degree(g, p.other, -1);
                continue;
            }
            p.w = merge ? sum / g->split : p.w;
            g->spokes[kept++] = p;
        }
    }
    sort(g->spokes, kept, by_weight);
    return kept;
}

/** A k > j with probability w_k / R_{j+1}, from u in (0, 1): the last k with R_k >= u R_{j+1}. */
static int64_t draw(const graph *g, int64_t j, int64_t d, double u)
{
    const double target = u * g->tail[j + 1];
    int64_t low = j + 1, high = d; /* R_low >= target > R_high */
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        *(g->tail[middle] >= target ? &low : &high) = middle;
    }
    return low;
}

/** Edge j of v becomes an edge between its neighbour and the neighbour of a later spoke. */
static void resample(graph *g, spoke from, spoke to, double w)
{
    half *const stays = &g->halves[from.at ^ 1], *const moves = &g->halves[from.at];
    if (from.other == to.other || !(w > 0)) {
        stays->w = 0;
        change_degree(g, from.other, -1);
        return;
    }
    *stays = (half){.w = w, .other = to.other, .next = stays->next};
    *moves = (half){.w = w, .other = from.other, .next = g->head[to.other]};
    g->head[to.other] = from.at;
    change_degree(g, to.other, 1);
}

static frg_status reserve(frgi_ac *f, int64_t count)
{
    if (count <= f->capacity)
        return FRG_OK;
    int64_t capacity = f->capacity + f->capacity / 2;
    capacity = capacity < count ? count : capacity;
    TRY(GROW(f->ctx, &f->rows, capacity, "approximate factor"));
    TRY(GROW(f->ctx, &f->f, capacity, "approximate factor"));
    f->capacity = capacity;
    return FRG_OK;
}

/** Eliminates v as number `number`; entries name vertices by their old numbers yet. */
static frg_status eliminate(frgi_ac *f, graph *g, int32_t v, int64_t number, uint64_t seed)
{
    take_out(g, v);
    g->order[number] = v;
    const int64_t d = gather(g, v), at = f->starts[number];
    f->starts[number + 1] = at + d;
    f->inverse[number] = 0;
    if (d == 0)
        return FRG_OK;
    TRY(reserve(f, at + d));
    g->tail[d] = 0;
    for (int64_t j = d - 1; j >= 0; j--)
        g->tail[j] = g->tail[j + 1] + g->spokes[j].w;
    const double total = g->tail[0];
    double u[2];
    for (int64_t j = 0; j < d - 1; j++) {
        const spoke p = g->spokes[j];
        if (j % 2 == 0)
            frgi_uniforms(seed, STREAM, (uint64_t)v, (uint64_t)(j / 2), u);
        f->rows[at + j] = p.other;
        f->f[at + j] = p.w / g->tail[j];
        resample(g, p, g->spokes[draw(g, j, d, u[j % 2])], p.w * (g->tail[j + 1] / total));
    }
    const spoke last = g->spokes[d - 1];
    f->rows[at + d - 1] = last.other;
    f->f[at + d - 1] = 1;
    f->inverse[number] = total / last.w / last.w;
    g->halves[last.at ^ 1].w = 0;
    change_degree(g, last.other, -1);
    return FRG_OK;
}

static frg_status eliminate_all(frgi_ac *f, graph *g, const frgi_ac_opts *o)
{
    for (int64_t b = 0; b <= g->n + 1; b++)
        g->bucket[b] = -1;
    g->lowest = g->n;
    for (int32_t v = (int32_t)g->n - 1; v >= 0; v--)
        insert(g, v);
    f->starts[0] = 0;
    for (int64_t i = 0; i < g->n; i++) {
        TRY(eliminate(f, g, smallest(g), i, o->seed));
        if ((i + 1) % POLL_VERTICES == 0) {
            const frg_progress p = {.solver = o->solver,
                                    .phase = "approximate factor",
                                    .done = i + 1,
                                    .total = g->n,
                                    .residual = (double)NAN,
                                    .target = (double)NAN};
            const frg_status status = frgi_heartbeat(f->ctx, &p);
            if (status)
                return status;
        }
    }
    for (int32_t i = 0; i < g->n; i++)
        f->place[g->order[i]] = i;
    for (int64_t e = 0; e < f->starts[g->n]; e++)
        f->rows[e] = f->rows[e] == g->n ? (int32_t)g->n : f->place[f->rows[e]];
    return FRG_OK;
}

/* ---- creating and destroying ----------------------------------------------------------------- */

static const frgi_ac_ops *ops_of(const frg_context *ctx)
{
    static const frgi_ac_ops *const table[ISA_COUNT] = EACH_LEVEL(&frgi_ac_ops);
    return table[frgi_context_isa(ctx)];
}

static void layout(frgi_arena *a, frgi_ac *f)
{
    f->place = TAKE(a, int32_t, f->n);
    f->component = TAKE(a, int32_t, f->n);
    f->weight = TAKE(a, double, f->n);
    f->starts = TAKE(a, int64_t, f->n + 1);
    f->inverse = TAKE(a, double, f->n);
}

static frg_status build(frgi_ac *f, const frgi_symmetric *s, const frgi_ac_opts *o)
{
    frg_status status;
    graph g = {.n = s->n, .split = o->split};
    double *sums = NULL, *diagonal = NULL;
    TRY_TO(done, NEW(f->ctx, &sums, s->n, "sums of edges"));
    TRY_TO(done, NEW(f->ctx, &diagonal, s->n, "diagonal"));
    g.edges = scan(s, diagonal, sums);
    for (int64_t i = 0; i < s->n; i++)
        g.edges += surplus_of(diagonal, sums, i) > 0;
    g.edges *= g.split;
    if (2 * g.edges > INT32_MAX) {
        status = frgi_fail(f->ctx, E_TOO_BIG, __FILE__, __LINE__,
                           "an approximate factor takes fewer than 2^30 edges, there are %lld",
                           (long long)g.edges);
        goto done;
    }
    graph_layout(&g.memory, &g);
    TRY_TO(done, frgi_arena_open(&g.memory, f->ctx, "graph of the approximate factor"));
    graph_layout(&g.memory, &g);
    fill_graph(&g, s, diagonal, sums);
    label(f, &g);
    TRY_TO(done, reserve(f, 1 + 3 * g.edges / 2));
    status = eliminate_all(f, &g, o);
done:
    frgi_arena_close(&g.memory, f->ctx);
    DROP(f->ctx, &sums);
    DROP(f->ctx, &diagonal);
    return status;
}

frg_status frgi_ac_create(frgi_ac **out, frg_context *ctx, const frgi_symmetric *s,
                          const frgi_ac_opts *o)
{
    *out = NULL;
    frgi_ac_opts opts;
    frgi_ac_defaults(&opts);
    if (o)
        opts = *o;
    REQUIRE(ctx, opts.split >= 1 && opts.split <= 8, "split must be 1 to 8, got %d", opts.split);
    if (s->n >= INT32_MAX - 1)
        FAIL(ctx, E_TOO_BIG, "an approximate factor takes fewer than 2^31 unknowns, there are %lld",
             (long long)s->n);
    frg_status status;
    frgi_ac *f;
    TRY(NEW0(ctx, &f, 1, "approximate factor"));
    f->ctx = ctx;
    f->n = s->n;
    f->ops = ops_of(ctx);
    layout(&f->memory, f);
    TRY_TO(failed, frgi_arena_open(&f->memory, ctx, "approximate factor"));
    layout(&f->memory, f);
    status = build(f, s, &opts);
    if (status != FRG_OK)
        goto failed;
    *out = f;
    return FRG_OK;
failed:
    frgi_ac_destroy(f);
    return status;
}

size_t frgi_ac_bytes(const frgi_ac *f)
{
    return sizeof *f + f->memory.bytes + (size_t)f->capacity * (sizeof *f->rows + sizeof *f->f);
}

int64_t frgi_ac_entries(const frgi_ac *f)
{
    return f->starts[f->n];
}

int64_t frgi_ac_components(const frgi_ac *f)
{
    return f->components;
}

int64_t frgi_ac_grounded(const frgi_ac *f)
{
    return f->grounded;
}

void frgi_ac_destroy(frgi_ac *f)
{
    if (!f)
        return;
    frg_context *const ctx = f->ctx;
    DROP(ctx, &f->rows);
    DROP(ctx, &f->f);
    frgi_arena_close(&f->memory, ctx);
    DROP(ctx, &f);
}

/* ---- application ----------------------------------------------------------------------------- */

static size_t group_scratch(const frgi_ac *f)
{
    return LANES * (size_t)(f->n + 1 + f->components);
}

static int64_t groups_of(int64_t k)
{
    return (k + LANES - 1) / LANES;
}

size_t frgi_ac_scratch(const frgi_ac *f, int64_t k)
{
    return frgi_mul(group_scratch(f), (size_t)groups_of(k)) + LANES;
}

/** means (components x w) of x (n x w, in the order of elimination); 0 for components on the
 *  ground. */
static void means(const frgi_ac *f, int64_t w, const double *x, double *mean)
{
    memset(mean, 0, (size_t)(f->components * w) * sizeof *mean);
    for (int64_t i = 0; i < f->n; i++)
        for (int64_t c = 0; c < w; c++)
            mean[f->component[i] * w + c] += x[f->place[i] * w + c];
    for (int64_t i = 0; i < f->components; i++)
        for (int64_t c = 0; c < w; c++)
            mean[i * w + c] *= f->weight[i];
}

/** Columns c0 .. c0 + count - 1, at most 8. */
static void apply_group(const frgi_ac *f, int64_t k, int64_t c0, int64_t count, const double *b,
                        double *out, double *x)
{
    const int width = count <= 4 ? AC_WIDTH_4 : AC_WIDTH_8;
    const int64_t w = count <= 4 ? 4 : 8;
    double *const mean = x + (f->n + 1) * w;
    const frgi_ac_factor factor = {f->n, f->starts, f->rows, f->f, f->inverse};
    for (int64_t i = 0; i < f->n; i++)
        for (int64_t c = 0; c < w; c++)
            x[f->place[i] * w + c] = c < count ? b[i * k + c0 + c] : 0;
    means(f, w, x, mean);
    for (int64_t i = 0; i < f->n; i++)
        for (int64_t c = 0; c < w; c++)
            x[f->place[i] * w + c] -= mean[f->component[i] * w + c];
    memset(x + f->n * w, 0, (size_t)w * sizeof *x);
    f->ops->forward[width](&factor, x);
    memset(x + f->n * w, 0, (size_t)w * sizeof *x);
    f->ops->backward[width](&factor, x);
    means(f, w, x, mean);
    for (int64_t i = 0; i < f->n; i++)
        for (int64_t c = 0; c < count; c++)
            out[i * k + c0 + c] = x[f->place[i] * w + c] - mean[f->component[i] * w + c];
}

void frgi_ac_apply(const frgi_ac *f, int64_t k, const double *b, double *x, double *scratch)
{
    double *const aligned = (double *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    const int64_t groups = groups_of(k);
#pragma omp parallel for schedule(static, 1) num_threads(frg_threads(f->ctx)) if (groups > 1)
    for (int64_t g = 0; g < groups; g++)
        apply_group(f, k, LANES * g, k - LANES * g < LANES ? k - LANES * g : LANES, b, x,
                    aligned + (size_t)g * group_scratch(f));
}

/* ---- saved and read back --------------------------------------------------------------------- */

enum { SECTIONS = 5 };

/** The arrays whose lengths n and the components tell. */
static void sections_of(const frgi_ac *f, frgi_section *p)
{
    const size_t n = (size_t)f->n;
    p[0] = (frgi_section){"a.place", f->place, n * sizeof *f->place};
    p[1] = (frgi_section){"a.component", f->component, n * sizeof *f->component};
    p[2] = (frgi_section){"a.weight", f->weight, (size_t)f->components * sizeof *f->weight};
    p[3] = (frgi_section){"a.starts", f->starts, (n + 1) * sizeof *f->starts};
    p[4] = (frgi_section){"a.inverse", f->inverse, n * sizeof *f->inverse};
}

frg_status frgi_ac_put(const frgi_ac *f, frgi_ac_facts *facts, frg_checkpoint *c)
{
    frgi_section p[SECTIONS];
    sections_of(f, p);
    *facts = (frgi_ac_facts){f->n, f->components, f->grounded};
    TRY(frg_checkpoint_put(c, "ac", facts, sizeof *facts));
    TRY(frgi_checkpoint_put_all(c, p, SECTIONS));
    const int64_t entries = frgi_ac_entries(f);
    TRY(frg_checkpoint_put(c, "a.rows", f->rows, entries * (int64_t)sizeof *f->rows));
    return frg_checkpoint_put(c, "a.fractions", f->f, entries * (int64_t)sizeof *f->f);
}

/** Are places, components and starts such that no sweep leaves its arrays? */
static bool is_sound(const frgi_ac *f)
{
    bool sound = f->starts[0] == 0;
    for (int64_t i = 0; sound && i < f->n; i++) {
        sound = f->place[i] >= 0 && f->place[i] < f->n && f->component[i] >= 0 &&
                f->component[i] < f->components && f->starts[i] <= f->starts[i + 1];
    }
    return sound;
}

static frg_status get_sections(frgi_ac *f, const frg_checkpoint *c)
{
    frgi_section p[SECTIONS];
    sections_of(f, p);
    TRY(frgi_checkpoint_copy_all(c, p, SECTIONS));
    int64_t bytes = 0;
    const void *const rows = frg_checkpoint_get(c, "a.rows", &bytes);
    const int64_t entries = bytes / (int64_t)sizeof *f->rows;
    if (!is_sound(f) || !rows || frgi_ac_entries(f) != entries) {
        return frgi_checkpoint_unsound(c, "a.starts");
    }
    TRY(reserve(f, entries));
    TRY(frgi_checkpoint_copy(c, "a.rows", f->rows, (size_t)entries * sizeof *f->rows));
    for (int64_t e = 0; e < entries; e++) {
        if (f->rows[e] < 0 || f->rows[e] > f->n) {
            return frgi_checkpoint_unsound(c, "a.rows");
        }
    }
    return frgi_checkpoint_copy(c, "a.fractions", f->f, (size_t)entries * sizeof *f->f);
}

frg_status frgi_ac_get(frgi_ac **out, frg_context *ctx, const frg_checkpoint *c, int64_t n)
{
    *out = NULL;
    frgi_ac_facts facts;
    TRY(frgi_checkpoint_copy(c, "ac", &facts, sizeof facts));
    if (facts.n != n || facts.components < 0 || facts.components > n || facts.grounded < 0 ||
        facts.grounded > facts.components) {
        return frgi_checkpoint_unsound(c, "ac");
    }
    frgi_ac *f;
    frg_status status;
    TRY(NEW0(ctx, &f, 1, "approximate factor"));
    f->ctx = ctx;
    f->n = n;
    f->components = facts.components;
    f->grounded = facts.grounded;
    f->ops = ops_of(ctx);
    layout(&f->memory, f);
    TRY_TO(failed, frgi_arena_open(&f->memory, ctx, "approximate factor"));
    layout(&f->memory, f);
    TRY_TO(failed, get_sections(f, c));
    *out = f;
    return FRG_OK;
failed:
    frgi_ac_destroy(f);
    return status;
}
