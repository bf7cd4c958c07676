/* simplex.c - transport between any two marginals at least cost, by the primal network simplex
 * on a dense bipartite graph.
 *
 * Notation: sources i with weights a, sinks j with weights b, nodes 0 .. n-1 and n .. n+m-1, a
 * spanning tree of n + m - 1 arcs i -> j that carry flow, duals with u_i + v_j = c_ij on them.  A
 * pivot enters an arc of negative reduced cost c_ij - u_i - v_j, sends the largest feasible flow
 * along its cycle and removes the arc whose flow becomes 0; the subtree that this cuts off is
 * linked to the other end of the new arc, and its duals are moved.
 *
 * Weights are integers, a_i S + 1 with S above the number of nodes, the surplus on the largest b:
 * no proper subset of the sources has the sum of a proper subset of the sinks (Orden 1956), so that
 * no arc of a tree is empty, every pivot lowers the cost and no tree is met twice.  The mass of the
 * result is computed from the weights themselves along the last tree, in double.
 *
 * A look at all costs, by both threads, keeps of each row the least reduced cost of each of 32
 * classes of columns; the next one comes after half as many pivots as there are nodes, or where
 * these arcs are used up.  The best ones of 256 rows make a list; pivots take the best one of it
 * until none is negative any more, and the next ones come from the rows behind.  No arc of the last
 * look is negative.  The first tree is greedy by the duals of the problem of every second row and
 * column.
 * The costs of the next problem are nearly the same in a conditional-gradient iteration, so that it
 * begins with the last tree: that is what a primal method is for, and why this is no library's.
 */
#include <math.h>
#include <string.h>

#include "transport/assign.h"

enum { PIVOTS_AT_ONCE = 256, MOST_LISTED = 256, COARSENED = 512 };

typedef struct {
    int32_t i, j; /* row and column */
    double cost;
} frgi_arc;

/** A node of the tree, half a cache line. */
typedef struct {
    int64_t flow; /* of the arc to the parent */
    double dual;
    int32_t parent, child, next, prev; /* -1: none */
} tree_node;

/** Arcs that may be of negative reduced cost. */
typedef struct {
    int32_t *column; /* n x FRGI_ASSIGN_NEAR: of each row */
    void *cost;      /* theirs */
    int64_t looked;  /* pivots that were done before all costs were looked at for them */
    int64_t row;     /* that arcs are listed of next */
} near_arcs;

struct frgi_simplex {
    int64_t n, m, nodes, ld, every; /* every: rows and columns of all that these are apart */
    const frg_context *ctx;
    bool single, has_tree;
    const frgi_assign_ops *ops;
    const double *a, *b; /* borrowed */
    int64_t *weight;     /* integers, of all nodes */
    tree_node *node;
    int32_t *size, *order;   /* nodes of a node's subtree; of one subtree, parents first */
    void *v;                 /* ld reals: duals of sinks, for the searches of rows */
    frgi_simplex *coarse;    /* of every second row and column; NULL: small */
    frgi_costs coarse_costs; /* its costs */
    near_arcs near;
    double *net;
    int64_t pivots;
    frgi_arc list[MOST_LISTED]; /* arcs of negative reduced cost, some of which may have lost it */
    int64_t listed;
};

/* ---- memory and weights ---------------------------------------------------------------------- */

/** w[i] <- S round(T x_i / sum x), at least S, of n weights that are `every` apart. */
static int64_t integer_weights(const double *x, int64_t n, int64_t every, double units,
                               int64_t spread, int64_t *w)
{
    double total = 0;
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        total += x[i * every];
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t most = llround(units * x[i * every] / total);
        w[i] = spread * (most > 1 ? most : 1);
        sum += w[i];
    }
    return sum;
}

static void make_weights(frgi_simplex *s)
{
    const int64_t spread = 4 * s->nodes;
    const double units = 0x1p59 / (double)spread;
    const int64_t sum_a = integer_weights(s->a, s->n, s->every, units, spread, s->weight);
    const int64_t sum_b = integer_weights(s->b, s->m, s->every, units, spread, s->weight + s->n);
    int64_t *const b = s->weight + s->n, largest = 0;
    for (int64_t i = 0; i < s->n; i++) {
        s->weight[i]++;
    }
    for (int64_t j = 0; j < s->m; j++) {
        largest = b[j] > b[largest] ? j : largest;
    }
    b[largest] += sum_a + s->n - sum_b;
}

/** The problem of the rows and columns that are `every` apart in that of the weights a (n) and b
 *  (m), and the one of half of them. */
static frg_status open_level(frgi_simplex **out, frg_context *ctx, const frgi_simplex *of,
                             int64_t every)
{
    const int64_t n = (of->n + every - 1) / every, m = (of->m + every - 1) / every, nodes = n + m;
    const size_t size = frgi_costs_size(of->single);
    const char *const what = "a transport problem";
    frgi_simplex *s;
    frg_status status = FRG_OK;
    char *v = NULL, *near_cost = NULL, *costs = NULL;
    TRY(NEW0(ctx, &s, 1, what));
    s->ctx = ctx;
    s->n = n;
    s->m = m;
    s->nodes = nodes;
    s->ld = frgi_costs_ld(m);
    s->every = every;
    s->single = of->single;
    s->ops = &frgi_assign_ops_of(ctx)[s->single];
    s->a = of->a;
    s->b = of->b;
    TRY_TO(done, NEW(ctx, &s->weight, nodes, what));
    TRY_TO(done, NEW(ctx, &s->node, nodes, what));
    TRY_TO(done, NEW(ctx, &s->size, 2 * nodes, what));
    TRY_TO(done, NEW(ctx, &s->net, nodes, what));
    TRY_TO(done, NEW0(ctx, &v, frgi_mul((size_t)s->ld, size), what));
    s->v = v;
    TRY_TO(done, NEW(ctx, &s->near.column, frgi_mul((size_t)n, FRGI_ASSIGN_NEAR), what));
    TRY_TO(done, NEW(ctx, &near_cost, frgi_mul((size_t)n, FRGI_ASSIGN_NEAR * size), what));
    s->near.cost = near_cost;
    s->order = s->size + nodes;
    make_weights(s);
    if (n >= COARSENED && m >= COARSENED) {
        TRY_TO(done, open_level(&s->coarse, ctx, of, 2 * every));
        const frgi_simplex *const half = s->coarse;
        s->coarse_costs = (frgi_costs){NULL, half->n, half->m, half->ld, s->single};
        TRY_TO(done, NEW0(ctx, &costs, frgi_costs_bytes(&s->coarse_costs), what));
        s->coarse_costs.at = costs;
    }
done:
    if (status < 0) {
        frgi_simplex_close(&s, ctx);
    }
    *out = s;
    return status;
}

frg_status frgi_simplex_open(frgi_simplex **out, frg_context *ctx, const double *a, int64_t n,
                             const double *b, int64_t m, bool single)
{
    const frgi_simplex of = {.n = n, .m = m, .a = a, .b = b, .single = single};
    return open_level(out, ctx, &of, 1);
}

void frgi_simplex_close(frgi_simplex **s, frg_context *ctx)
{
    if (*s) {
        char *v = (*s)->v, *near_cost = (*s)->near.cost, *costs = (*s)->coarse_costs.at;
        frgi_simplex_close(&(*s)->coarse, ctx);
        DROP(ctx, &costs);
        DROP(ctx, &(*s)->weight);
        DROP(ctx, &(*s)->node);
        DROP(ctx, &(*s)->size);
        DROP(ctx, &v);
        DROP(ctx, &(*s)->near.column);
        DROP(ctx, &near_cost);
        DROP(ctx, &(*s)->net);
        DROP(ctx, s);
    }
}

/* ---- the tree -------------------------------------------------------------------------------- */

static void link_node(frgi_simplex *s, int32_t w, int32_t parent)
{
    s->node[w].parent = parent;
    s->node[w].prev = -1;
    s->node[w].next = s->node[parent].child;
    if (s->node[w].next >= 0) {
        s->node[s->node[w].next].prev = w;
    }
    s->node[parent].child = w;
}

static void unlink_node(frgi_simplex *s, int32_t w)
{
    if (s->node[w].prev >= 0) {
        s->node[s->node[w].prev].next = s->node[w].next;
    } else {
        s->node[s->node[w].parent].child = s->node[w].next;
    }
    if (s->node[w].next >= 0) {
        s->node[s->node[w].next].prev = s->node[w].prev;
    }
}

/** Nodes of the subtree of w into s->order, parents first. */
static int64_t subtree(const frgi_simplex *s, int32_t w)
{
    int64_t count = 1;
    s->order[0] = w;
    for (int64_t q = 0; q < count; q++) {
        for (int32_t c = s->node[s->order[q]].child; c >= 0; c = s->node[c].next) {
            s->order[count++] = c;
        }
    }
    return count;
}

static double cost_of(const frgi_simplex *s, const frgi_costs *c, int32_t w, int32_t p)
{
    return w < s->n ? frgi_costs_get(c, w, p - s->n) : frgi_costs_get(c, p, w - s->n);
}

static void put_v(frgi_simplex *s, int64_t j, double v)
{
    if (s->single) {
        ((float *)s->v)[j] = (float)v;
    } else {
        ((double *)s->v)[j] = v;
    }
}

/** All duals from the root, and the sizes of all subtrees. */
static void set_duals(frgi_simplex *s, const frgi_costs *c)
{
    const int64_t count = subtree(s, 0);
    s->node[0].dual = 0;
    s->size[0] = 1;
    for (int64_t q = 1; q < count; q++) {
        const int32_t w = s->order[q], p = s->node[w].parent;
        s->node[w].dual = cost_of(s, c, w, p) - s->node[p].dual;
        s->size[w] = 1;
    }
    for (int64_t q = count - 1; q > 0; q--) {
        s->size[s->node[s->order[q]].parent] += s->size[s->order[q]];
    }
    for (int64_t j = 0; j < s->m; j++) {
        put_v(s, j, s->node[s->n + j].dual);
    }
}

/** v_j <- min over the rows of the half of c_ij - u_i, by the duals of its solution; without it
 *  min_i c_ij. */
static void first_duals(frgi_simplex *s, const frgi_costs *c, double *v)
{
    const frgi_simplex *const half = s->coarse;
    const int64_t every = half ? 2 : 1;
    for (int64_t j = 0; j < s->m; j++) {
        v[j] = (double)INFINITY;
    }
    for (int64_t i = 0; i < s->n; i += every) {
        const double u = half ? half->node[i / 2].dual : 0;
        for (int64_t j = 0; j < s->m; j++) {
            v[j] = fmin(v[j], frgi_costs_get(c, i, j) - u);
        }
    }
}

/** Rows one after another send what they have to the nearest sinks that still want some, by costs
 *  less the first duals: arcs, the source of one in s->size and its sink in s->order; how many.
 *  An arc exhausts one of its ends, the last both: a tree. */
static int64_t greedy_arcs(frgi_simplex *s, const frgi_costs *c)
{
    double *const least = s->net;
    int64_t arcs = 0;
    first_duals(s, c, least);
    for (int64_t j = 0; j < s->ld; j++) {
        put_v(s, j, j < s->m ? least[j] : -2 * FRGI_ASSIGN_FAR);
    }
    for (int64_t w = 0; w < s->nodes; w++) {
        s->node[w].flow = s->weight[w]; /* what is left */
    }
    for (int64_t i = 0; i < s->n; i++) {
        int64_t *const has = &s->node[i].flow;
        while (*has > 0) {
            double least_two[2];
            const int64_t j = s->ops->two(frgi_costs_row(c, i), s->v, s->ld, least_two);
            int64_t *const wants = &s->node[s->n + j].flow;
            const int64_t sent = *has < *wants ? *has : *wants;
            *has -= sent;
            *wants -= sent;
            if (*wants == 0) {
                put_v(s, j, -2 * FRGI_ASSIGN_FAR);
            }
            s->size[arcs] = (int32_t)i;
            s->order[arcs++] = (int32_t)(s->n + j);
        }
    }
    return arcs;
}

/** Parents, by a walk from node 0 along the arcs. */
static void walk_arcs(frgi_simplex *s, int64_t arcs)
{
    tree_node *const node = s->node;
    /* the arcs of a node are a list: its head in child, arc q's next one at its source in
     * node[q].next, at its sink in node[q].prev */
    for (int64_t w = 0; w < s->nodes; w++) {
        node[w].child = -1;
    }
    for (int64_t q = 0; q < arcs; q++) {
        node[q].next = node[s->size[q]].child;
        node[s->size[q]].child = (int32_t)q;
        node[q].prev = node[s->order[q]].child;
        node[s->order[q]].child = (int32_t)q;
    }
    int64_t count = 1; /* of the walk's queue, in flow */
    node[0].flow = 0;
    node[0].parent = -1;
    for (int64_t at = 0; at < count; at++) {
        const int32_t w = (int32_t)node[at].flow;
        const bool source = w < s->n;
        for (int32_t q = node[w].child; q >= 0; q = source ? node[q].next : node[q].prev) {
            const int32_t other = source ? s->order[q] : s->size[q];
            if (other != node[w].parent) {
                node[other].parent = w;
                node[count++].flow = other;
            }
        }
    }
}

/** The flows of the tree. */
static void set_flows(frgi_simplex *s)
{
    tree_node *const node = s->node;
    subtree(s, 0);
    for (int64_t w = 0; w < s->nodes; w++) {
        node[w].flow = w < s->n ? s->weight[w] : -s->weight[w];
    }
    for (int64_t q = s->nodes - 1; q > 0; q--) { /* net of subtrees, then the size of it */
        const int32_t w = s->order[q];
        node[node[w].parent].flow += node[w].flow;
        node[w].flow = w < s->n ? node[w].flow : -node[w].flow;
    }
}

static bool least_tree(frgi_simplex *s, const frgi_costs *c);

static void first_tree(frgi_simplex *s, const frgi_costs *c)
{
    if (s->coarse) {
        s->ops->coarsen(c, &s->coarse_costs);
        frgi_simplex_forget(s->coarse);
        (void)least_tree(s->coarse, &s->coarse_costs);
    }
    walk_arcs(s, greedy_arcs(s, c));
    for (int64_t w = 0; w < s->nodes; w++) {
        s->node[w].child = -1;
    }
    for (int32_t w = 1; w < (int32_t)s->nodes; w++) {
        link_node(s, w, s->node[w].parent);
    }
    set_flows(s);
    s->has_tree = true;
}

/* ---- pivots ---------------------------------------------------------------------------------- */

/** Duals of the nodes below `from`, without those of `without`: of sources they rise by step, of
 *  sinks they fall by it. */
static void move_duals(frgi_simplex *s, int32_t from, int32_t without, double step)
{
    int64_t count = 1;
    s->order[0] = from;
    for (int64_t q = 0; q < count; q++) {
        const int32_t x = s->order[q];
        tree_node *const node = &s->node[x];
        node->dual += x < s->n ? step : -step;
        if (x >= s->n) {
            put_v(s, x - s->n, node->dual);
        }
        for (int32_t c = node->child; c >= 0; c = s->node[c].next) {
            if (c != without) {
                s->order[count++] = c;
            }
        }
    }
}

/** Along a path from w up to `meet` flows change by least, those out of sources by the sign, and
 *  subtrees by `more` nodes. */
static void change_path(frgi_simplex *s, int32_t w, int32_t meet, int64_t of_sources, int32_t more)
{
    for (; w != meet; w = s->node[w].parent) {
        s->node[w].flow += w < s->n ? of_sources : -of_sources;
        s->size[w] += more;
    }
}

/** The path from w to `out`, of a subtree of `all` nodes that are no longer counted in their sizes,
 *  is turned round and hangs on `above`, by an arc of this flow. */
static void turn_path(frgi_simplex *s, int32_t w, int32_t out, int32_t above, int32_t all,
                      int64_t flow)
{
    int32_t below = 0; /* what was below the last one */
    for (;;) {
        const int32_t next = s->node[w].parent, had = s->size[w] + all;
        const int64_t was = s->node[w].flow;
        unlink_node(s, w);
        link_node(s, w, above);
        s->node[w].flow = flow;
        s->size[w] = all - below;
        if (w == out) {
            return;
        }
        below = had;
        above = w;
        w = next;
        flow = was;
    }
}

/** Flow along the cycle of the arc i -> j, and the tree without the arc whose flow becomes 0.  Of
 *  the two parts that this leaves the smaller one has its duals moved. */
static void pivot(frgi_simplex *s, int32_t i, int32_t j, double reduced)
{
    int32_t p = i, q = j, out = -1;
    int64_t least = INT64_MAX;
    bool out_at_i = true;
    while (p !=
           q) { /* to where the paths meet: what has fewer nodes below is not above the other */
        const bool of_i = s->size[p] <= s->size[q];
        const int32_t w = of_i ? p : q;
        const bool falls = of_i == (w < s->n);
        if (falls && s->node[w].flow < least) {
            least = s->node[w].flow;
            out = w;
            out_at_i = of_i;
        }
        *(of_i ? &p : &q) = s->node[w].parent;
    }
    const int32_t meet = p, all = s->size[out], root = out_at_i ? i : j;
    change_path(s, i, meet, -least, out_at_i ? -all : all);
    change_path(s, j, meet, least, out_at_i ? all : -all);
    turn_path(s, root, out, out_at_i ? j : i, all, least);
    const double step = out_at_i ? reduced : -reduced; /* u_i rises by it, or v_j by -it */
    if (2 * all <= s->nodes) {
        move_duals(s, root, -1, step);
    } else {
        move_duals(s, 0, root, -step);
    }
    s->pivots++;
}

/** The reduced cost of an arc. */
static double reduced_of(const frgi_simplex *s, const frgi_arc *arc)
{
    return arc->cost - s->node[arc->i].dual - s->node[s->n + arc->j].dual;
}

/** The listed arc of least reduced cost below -tol, taken off the list with those above. */
static bool listed_arc(frgi_simplex *s, double tol, frgi_arc *out)
{
    int64_t kept = 0;
    double best = -tol;
    for (int64_t q = 0; q < s->listed; q++) {
        const frgi_arc arc = s->list[q];
        const double reduced = reduced_of(s, &arc);
        if (reduced < best) {
            if (best < -tol) {
                s->list[kept++] = *out;
            }
            best = reduced;
            *out = arc;
        } else if (reduced < -tol) {
            s->list[kept++] = arc;
        }
    }
    s->listed = kept;
    return best < -tol;
}

/** Columns near each row, by the duals that are there. */
static void look_at_rows(frgi_simplex *s, const frgi_costs *c)
{
    const size_t size = frgi_costs_size(s->single);
    s->near.looked = s->pivots;
#pragma omp parallel for schedule(static) num_threads(frg_threads(s->ctx)) if (s->n * s->m > 200000)
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t first = i * FRGI_ASSIGN_NEAR;
        s->ops->near(frgi_costs_row(c, i), s->v, s->ld, s->near.column + first,
                     (char *)s->near.cost + (size_t)first * size);
    }
}

/** The best near arcs of the next rows into the list, and of more where these have none. */
static void list_arcs(frgi_simplex *s, double tol)
{
    const size_t size = frgi_costs_size(s->single);
    for (int64_t q = 0; q < s->n && !(s->listed > 0 && q % MOST_LISTED == 0); q++) {
        const int64_t first = s->near.row * FRGI_ASSIGN_NEAR;
        const int k = s->ops->nearest(s->near.column + first,
                                      (char *)s->near.cost + (size_t)first * size, s->v);
        const double cost = s->single ? (double)((const float *)s->near.cost)[first + k]
                                      : ((const double *)s->near.cost)[first + k];
        const frgi_arc arc = {(int32_t)s->near.row, s->near.column[first + k], cost};
        if (arc.j >= 0 && reduced_of(s, &arc) < -tol) {
            s->list[s->listed++] = arc;
        }
        s->near.row = s->near.row + 1 < s->n ? s->near.row + 1 : 0;
    }
}

/** An arc of negative reduced cost; false: there is none. */
static bool next_arc(frgi_simplex *s, const frgi_costs *c, double tol, frgi_arc *out)
{
    if (listed_arc(s, tol, out)) {
        return true;
    }
    for (int look = 0; look < 2; look++) {
        if (look > 0 || s->pivots - s->near.looked >= s->nodes / 2) {
            look_at_rows(s, c);
        }
        list_arcs(s, tol);
        if (listed_arc(s, tol, out)) {
            return true;
        }
    }
    return false;
}

/** The rounding of costs and of duals in a search of rows: reduced costs above minus this are 0. */
static double floor_of(const frgi_simplex *s)
{
    double most = 0;
    for (int64_t w = 0; w < s->nodes; w++) {
        most = fmax(most, fabs(s->node[w].dual));
    }
    return most * (s->single ? 0x1p-21 : 0x1p-46);
}

/** Mass along the tree into out; how many entries there are. */
static int64_t list_entries(frgi_simplex *s, frgi_entry *out)
{
    subtree(s, 0);
    for (int64_t w = 0; w < s->nodes; w++) {
        s->net[w] = w < s->n ? s->a[w] : -s->b[w - s->n];
    }
    for (int64_t q = s->nodes - 1; q > 0; q--) {
        const int32_t w = s->order[q];
        s->net[s->node[w].parent] += s->net[w];
        s->net[w] = fmax(w < s->n ? s->net[w] : -s->net[w], 0);
    }
    int64_t count = 0;
    for (int32_t i = 0; i < (int32_t)s->n; i++) { /* arcs to its parent, and to its children */
        if (s->node[i].parent >= 0 && s->net[i] > 0) {
            out[count++] = (frgi_entry){i, s->node[i].parent - (int32_t)s->n, s->net[i]};
        }
        for (int32_t w = s->node[i].child; w >= 0; w = s->node[w].next) {
            if (s->net[w] > 0) {
                out[count++] = (frgi_entry){i, w - (int32_t)s->n, s->net[w]};
            }
        }
    }
    return count;
}

/** The tree of least cost, from that of the last problem where there is one; false: the most pivots
 *  were done before it was reached, or the run was stopped. */
static bool least_tree(frgi_simplex *s, const frgi_costs *c)
{
    const int64_t most = s->pivots + 200 * s->nodes + 1000;
    frgi_arc arc = {0};
    s->near.row = s->listed = 0;
    if (!s->has_tree) {
        first_tree(s, c);
    }
    set_duals(s, c);
    for (int64_t q = s->m; q < s->ld; q++) {
        put_v(s, q, -2 * FRGI_ASSIGN_FAR);
    }
    look_at_rows(s, c);
    const double tol = floor_of(s);
    bool found;
    while ((found = next_arc(s, c, tol, &arc)) && s->pivots < most &&
           (s->pivots % PIVOTS_AT_ONCE || frgi_stopped(s->ctx) == FRG_OK)) {
        pivot(s, arc.i, (int32_t)s->n + arc.j, reduced_of(s, &arc));
    }
    return !found;
}

bool frgi_simplex_solve(frgi_simplex *s, const frgi_costs *c, frgi_entry *out, int64_t *count)
{
    const bool least = least_tree(s, c);
    *count = list_entries(s, out);
    return least;
}

void frgi_simplex_forget(frgi_simplex *s)
{
    s->has_tree = false;
}

void frgi_simplex_duals(const frgi_simplex *s, double *u, double *v)
{
    for (int64_t i = 0; i < s->n; i++) {
        u[i] = s->node[i].dual;
    }
    for (int64_t j = 0; j < s->m; j++) {
        v[j] = s->node[s->n + j].dual;
    }
}
