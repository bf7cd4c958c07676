/* supernodal.c - left-looking supernodal Cholesky factor.
 *
 * Symbolic.  Elimination tree (Liu) in a postorder; column counts by the skeleton's leaves
 * (Gilbert, Ng, Peyton 1994), both almost linear in the entries of A.  Columns j, j+1 with
 * parent[j] = j+1 and counts that differ by one have the same rows below: a supernode.  Then a
 * child that ends where its parent begins is merged into it while the explicit zeros stay few
 * (relaxed supernodes), so that the dense kernels have something to work on.  A merged supernode
 * has the rows of its topmost column, hence the size is known before any row is written.  Rows: i
 * belongs to every supernode on the path from the supernode of k to that of i, for each a_ik != 0,
 * k < i; taking i in order makes every list ascending without a sort.
 *
 * Numeric.  Supernode s gathers what each descendant d passes on, the product of two row ranges of
 * d (one of them the rows that are columns of s), 8 x 8 tiles at a time, then factors its panels by
 * the kernel that the envelope has too.  Descendants wait in a linked list at the supernode of
 * their next row, so that the order of the sums is fixed.  Work space: one map of n, one address
 * per row of the tallest supernode.
 *
 * Notation: n_s columns and m_s rows of supernode s (its columns included), row l of it is column
 * first + l for l < n_s and rows[below + l - n_s] otherwise; l is its place within the panels. */
#include "sparse/supernodal.h"

#include "core/checkpoint_bytes.h"

#include <math.h>
#include <string.h>

/* ---- symbolic -------------------------------------------------------------------------------- */

/** Temporary arrays of n. */
typedef struct {
    frgi_arena memory;
    int32_t *parent, *counts, *ancestor, *first_leaf, *last_leaf, *highest, *head, *next, *work;
} tree;

static void tree_layout(frgi_arena *a, tree *t, int64_t n)
{
    int32_t **const arrays[] = {&t->parent,     &t->counts,    &t->ancestor,
                                &t->first_leaf, &t->last_leaf, &t->highest,
                                &t->head,       &t->next,      &t->work};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = TAKE(a, int32_t, n + 1);
}

/** parent[j]: the smallest i > j with l_ij != 0.  Ancestors are shortcuts to it. */
static void elimination_tree(const tree *t, const frgi_pattern *a, const int32_t *order,
                             const int32_t *place)
{
    for (int32_t k = 0; k < a->n; k++) {
        t->parent[k] = t->ancestor[k] = -1;
        const int32_t v = order[k];
        for (int64_t e = a->starts[v]; e < a->starts[v + 1]; e++) {
            for (int32_t i = place[a->columns[e]]; i >= 0 && i < k;) {
                const int32_t up = t->ancestor[i];
                t->ancestor[i] = k;
                if (up < 0)
                    t->parent[i] = k;
                i = up;
            }
        }
    }
}

/** work[new] = old in a postorder of the tree; children in ascending order, the roots too. */
static void postorder(const tree *t, int64_t n)
{
    int32_t *const stack = t->ancestor;
    for (int64_t i = 0; i <= n; i++)
        t->head[i] = -1;
    for (int32_t i = (int32_t)n - 1; i >= 0; i--) {
        const int64_t p = t->parent[i] < 0 ? n : t->parent[i]; /* n: the forest's root */
        t->next[i] = t->head[p];
        t->head[p] = i;
    }
    int64_t done = 0;
    for (int32_t root = t->head[n]; root >= 0; root = t->next[root]) {
        int64_t depth = 0;
        stack[depth++] = root;
        while (depth > 0) {
            const int32_t i = stack[depth - 1], child = t->head[i];
            if (child >= 0) {
                t->head[i] = t->next[child];
                stack[depth++] = child;
            } else {
                t->work[done++] = i;
                depth--;
            }
        }
    }
}

/** Renumbers order and parent by the postorder in t->work. */
static void renumber(const tree *t, int64_t n, int32_t *order)
{
    int32_t *const old_order = t->head, *const new_of = t->next, *const old_parent = t->ancestor;
    memcpy(old_order, order, (size_t)n * sizeof *order);
    memcpy(old_parent, t->parent, (size_t)n * sizeof *order);
    frgi_order_invert(n, t->work, new_of);
    for (int64_t i = 0; i < n; i++) {
        order[i] = old_order[t->work[i]];
        const int32_t p = old_parent[t->work[i]];
        t->parent[i] = p < 0 ? -1 : new_of[p];
    }
}

/** The root of i's current tree of columns done, with path compression. */
static int32_t find(int32_t *ancestor, int32_t i)
{
    int32_t root = i;
    while (ancestor[root] != root)
        root = ancestor[root];
    while (i != root) {
        const int32_t up = ancestor[i];
        ancestor[i] = root;
        i = up;
    }
    return root;
}

/** counts[j] = entries of column j of L, the diagonal included; columns are in postorder. Column j
 *  is a leaf of row i's subtree when no descendant of j had an entry in row i; each leaf adds 1,
 *  and 1 is taken off where the paths of two leaves meet. */
static void column_counts(const tree *t, const frgi_pattern *a, const int32_t *order,
                          const int32_t *place)
{
    const int32_t n = (int32_t)a->n;
    for (int32_t j = 0; j < n; j++) {
        t->first_leaf[j] = t->highest[j] = t->last_leaf[j] = -1;
        t->ancestor[j] = j;
    }
    for (int32_t j = 0; j < n; j++) {
        t->counts[j] = t->first_leaf[j] < 0; /* a leaf of the tree */
        for (int32_t i = j; i >= 0 && t->first_leaf[i] < 0; i = t->parent[i])
            t->first_leaf[i] = j;
    }
    for (int32_t j = 0; j < n; j++) {
        if (t->parent[j] >= 0)
            t->counts[t->parent[j]]--;
        const int32_t v = order[j];
        for (int64_t e = a->starts[v]; e < a->starts[v + 1]; e++) {
            const int32_t i = place[a->columns[e]];
            if (i <= j || t->first_leaf[j] <= t->highest[i])
                continue;
            t->highest[i] = t->first_leaf[j];
            const int32_t previous = t->last_leaf[i];
            t->last_leaf[i] = j;
            t->counts[j]++;
            if (previous >= 0)
                t->counts[find(t->ancestor, previous)]--;
        }
        if (t->parent[j] >= 0)
            t->ancestor[j] = t->parent[j];
    }
    for (int32_t j = 0; j < n; j++)
        if (t->parent[j] >= 0)
            t->counts[t->parent[j]] += t->counts[j];
}

/** Doubles that n columns with m rows take, padded to whole tiles. */
static int64_t stored(int64_t n, int64_t m)
{
    return TILE * ((n + PANEL - 1) / PANEL) * ((m + PANEL - 1) / PANEL);
}

/** Is the merged supernode (n columns, m rows, z explicit zeros) worth having? */
static bool worth_merging(int64_t n, int64_t m, double z)
{
    static const struct {
        int64_t columns;
        double zeros;
    } rule[] = {{8, 0.9}, {16, 0.6}, {32, 0.3}, {64, 0.15}, {INT64_MAX, 0.05}};
    const double entries = (double)n * ((double)m - (double)(n - 1) / 2);
    int r = 0;
    while (n > rule[r].columns)
        r++;
    return z <= rule[r].zeros * entries;
}

/** Supernodes into first (= t->work); zeros of each in `zeros`, indexed by supernode.  Returns the
 *  count. */
static int64_t supernodes(const tree *t, int64_t n, double *zeros)
{
    int32_t *const first = t->work;
    int64_t count = 0;
    for (int32_t j = 0; j < n;) {
        int32_t end = j + 1;
        while (end < n && t->parent[end - 1] == end && t->counts[end - 1] == t->counts[end] + 1)
            end++;
        const int64_t top = t->counts[end - 1]; /* rows of the topmost column */
        int32_t from = j;
        double z = 0;
        while (count > 0) {
            const int32_t child = first[count - 1];
            const int32_t tied = t->parent[from - 1];
            if (tied < from || tied >= end)
                break;
            const int64_t nc = from - child, mc = nc - 1 + t->counts[from - 1];
            const int64_t np = end - from, mp = np - 1 + top;
            const double zc = (double)nc * (double)(nc + mp - mc); /* rows its columns gain */
            const double total = z + zeros[count - 1] + zc;
            if (!worth_merging(nc + np, nc + mp, total))
                break;
            z = total;
            from = child;
            count--;
        }
        first[count] = from;
        zeros[count++] = z;
        j = end;
    }
    first[count] = (int32_t)n;
    return count;
}

static void layout(frgi_arena *a, frgi_supernodal *t)
{
    t->first = TAKE(a, int32_t, t->count + 1);
    t->parent = TAKE(a, int32_t, t->count);
    t->below = TAKE(a, int64_t, t->count + 1);
    t->offset = TAKE(a, int64_t, t->count + 1);
    t->diagonal = TAKE(a, int64_t, t->count + 1);
}

/** Sizes and costs of the supernodes; of[j] is the supernode of column j. */
static void measure(frgi_supernodal *t, const tree *w, int32_t *of)
{
    memcpy(t->first, w->work, (size_t)(t->count + 1) * sizeof *t->first);
    t->below[0] = t->offset[0] = t->diagonal[0] = 0;
    for (int64_t s = 0; s < t->count; s++) {
        const int64_t n = t->first[s + 1] - t->first[s];
        const int64_t m = n - 1 + w->counts[t->first[s + 1] - 1];
        const int64_t blocks = (n + PANEL - 1) / PANEL, panels = (m + PANEL - 1) / PANEL;
        t->below[s + 1] = t->below[s] + m - n;
        t->offset[s + 1] = t->offset[s] + stored(n, m);
        t->diagonal[s + 1] = t->diagonal[s] + PANEL * blocks;
        t->tallest = PANEL * panels > t->tallest ? PANEL * panels : t->tallest;
        /* its own factor and what it passes on: tiles times columns */
        const double b = (double)blocks, h = (double)(panels - blocks);
        t->flops +=
            (double)(TILE * PANEL) * (b * b * b / 6 + b * b * h / 2 + b * h * h / 2 + b + h);
        t->solve_flops += 2 * (double)stored(n, m);
        for (int32_t j = t->first[s]; j < t->first[s + 1]; j++)
            of[j] = (int32_t)s;
    }
    for (int64_t s = 0; s < t->count; s++) {
        const int32_t up = w->parent[t->first[s + 1] - 1];
        t->parent[s] = up < 0 ? -1 : of[up];
    }
}

frg_status frgi_supernodal_analyse(frgi_supernodal *t, frg_context *ctx, const frgi_pattern *a,
                                   int32_t *order, int32_t *place)
{
    frg_status status;
    *t = (frgi_supernodal){.n = a->n};
    tree w = {0};
    double *zeros = NULL;
    tree_layout(&w.memory, &w, a->n);
    TRY(frgi_arena_open(&w.memory, ctx, "elimination tree"));
    tree_layout(&w.memory, &w, a->n);
    TRY_TO(done, NEW(ctx, &zeros, a->n + 1, "supernodes"));
    frgi_order_invert(a->n, order, place);
    elimination_tree(&w, a, order, place);
    postorder(&w, a->n);
    renumber(&w, a->n, order);
    frgi_order_invert(a->n, order, place);
    column_counts(&w, a, order, place);
    t->count = supernodes(&w, a->n, zeros);
    layout(&t->memory, t);
    TRY_TO(done, frgi_arena_open(&t->memory, ctx, "supernodes"));
    layout(&t->memory, t);
    measure(t, &w, w.ancestor);
done:
    DROP(ctx, &zeros);
    frgi_arena_close(&w.memory, ctx);
    return status;
}

frg_status frgi_supernodal_rows(frgi_supernodal *t, frg_context *ctx, const frgi_pattern *a,
                                const int32_t *order, const int32_t *place)
{
    frg_status status;
    int32_t *of = NULL, *seen = NULL, *rows = NULL;
    int64_t *end = NULL;
    TRY_TO(done, NEW(ctx, &of, t->n, "supernode of each column"));
    TRY_TO(done, NEW(ctx, &seen, t->count, "marks of supernodes"));
    TRY_TO(done, NEW(ctx, &end, t->count, "ends of row lists"));
    TRY_TO(done, NEW(ctx, &rows, t->below[t->count], "rows of the factor"));
    for (int32_t s = 0; s < t->count; s++) {
        seen[s] = -1;
        end[s] = t->below[s];
        for (int32_t j = t->first[s]; j < t->first[s + 1]; j++)
            of[j] = s;
    }
    for (int32_t i = 0; i < t->n; i++) {
        seen[of[i]] = i;
        const int32_t v = order[i];
        for (int64_t e = a->starts[v]; e < a->starts[v + 1]; e++) {
            const int32_t k = place[a->columns[e]];
            if (k >= i)
                continue;
            for (int32_t s = of[k]; s >= 0 && seen[s] != i; s = t->parent[s]) {
                seen[s] = i;
                rows[end[s]++] = i;
            }
        }
    }
    for (int64_t s = 0; s < t->count; s++)
        assert(end[s] == t->below[s + 1]);
    t->rows = rows;
    rows = NULL;
done:
    DROP(ctx, &of);
    DROP(ctx, &seen);
    DROP(ctx, &end);
    DROP(ctx, &rows);
    return status;
}

size_t frgi_supernodal_bytes(const frgi_supernodal *t)
{
    return t->memory.bytes + (size_t)t->below[t->count] * sizeof *t->rows;
}

void frgi_supernodal_close(frgi_supernodal *t, frg_context *ctx)
{
    DROP(ctx, &t->rows);
    frgi_arena_close(&t->memory, ctx);
}

/* ---- saved and read back --------------------------------------------------------------------- */

enum { SECTIONS = 5 };

/** The arrays whose lengths count tells. */
static void sections_of(const frgi_supernodal *t, frgi_section *p)
{
    const size_t count = (size_t)t->count;
    p[0] = (frgi_section){"d.first", t->first, (count + 1) * sizeof *t->first};
    p[1] = (frgi_section){"d.parent", t->parent, count * sizeof *t->parent};
    p[2] = (frgi_section){"d.below", t->below, (count + 1) * sizeof *t->below};
    p[3] = (frgi_section){"d.offset", t->offset, (count + 1) * sizeof *t->offset};
    p[4] = (frgi_section){"d.diagonal", t->diagonal, (count + 1) * sizeof *t->diagonal};
}

frg_status frgi_supernodal_put(const frgi_supernodal *t, frg_checkpoint *c)
{
    frgi_section p[SECTIONS];
    sections_of(t, p);
    TRY(frgi_checkpoint_put_all(c, p, SECTIONS));
    return frg_checkpoint_put(c, "d.rows", t->rows, t->below[t->count] * (int64_t)sizeof *t->rows);
}

/** Do supernode s's sizes follow from its columns and rows?  Sets the tallest. */
static bool is_sound(frgi_supernodal *t, int64_t s)
{
    const int64_t n = t->first[s + 1] - (int64_t)t->first[s], lower = t->below[s + 1] - t->below[s];
    if (n < 1 || t->first[s + 1] > t->n || lower < 0 || lower > t->n - t->first[s + 1]) {
        return false;
    }
    const int64_t panels = (n + lower + PANEL - 1) / PANEL;
    t->tallest = PANEL * panels > t->tallest ? PANEL * panels : t->tallest;
    return t->offset[s + 1] == t->offset[s] + stored(n, n + lower) &&
           t->diagonal[s + 1] == t->diagonal[s] + PANEL * ((n + PANEL - 1) / PANEL) &&
           t->parent[s] >= -1 && t->parent[s] < t->count;
}

static bool rows_are_sound(const frgi_supernodal *t, int64_t s)
{
    int64_t above = t->first[s + 1] - 1;
    for (int64_t r = t->below[s]; r < t->below[s + 1]; r++) {
        if (t->rows[r] <= above || t->rows[r] >= t->n) {
            return false;
        }
        above = t->rows[r];
    }
    return true;
}

static frg_status get_sections(frgi_supernodal *t, frg_context *ctx, const frg_checkpoint *c)
{
    frgi_section p[SECTIONS];
    sections_of(t, p);
    TRY(frgi_checkpoint_copy_all(c, p, SECTIONS));
    bool sound = t->first[0] == 0 && t->below[0] == 0 && t->offset[0] == 0 && t->diagonal[0] == 0;
    for (int64_t s = 0; sound && s < t->count; s++) {
        sound = is_sound(t, s);
    }
    if (!sound || t->first[t->count] != t->n) {
        return frgi_checkpoint_unsound(c, "d.first");
    }
    const size_t rows = (size_t)t->below[t->count];
    int64_t there = 0;
    if (!frg_checkpoint_get(c, "d.rows", &there) || there != (int64_t)(rows * sizeof *t->rows)) {
        return frgi_checkpoint_unsound(c, "d.rows");
    }
    TRY(NEW(ctx, &t->rows, rows, "rows of the factor"));
    TRY(frgi_checkpoint_copy(c, "d.rows", t->rows, rows * sizeof *t->rows));
    for (int64_t s = 0; s < t->count; s++) {
        if (!rows_are_sound(t, s)) {
            return frgi_checkpoint_unsound(c, "d.rows");
        }
    }
    return FRG_OK;
}

frg_status frgi_supernodal_get(frgi_supernodal *t, frg_context *ctx, const frg_checkpoint *c,
                               int64_t n, int64_t count)
{
    *t = (frgi_supernodal){.n = n, .count = count};
    layout(&t->memory, t);
    TRY(frgi_arena_open(&t->memory, ctx, "supernodes"));
    layout(&t->memory, t);
    const frg_status status = get_sections(t, ctx, c);
    if (status < 0) {
        frgi_supernodal_close(t, ctx);
    }
    return status;
}

/* ---- numeric --------------------------------------------------------------------------------- */

static int64_t columns_of(const frgi_supernodal *t, int64_t s)
{
    return t->first[s + 1] - t->first[s];
}

static int64_t rows_of(const frgi_supernodal *t, int64_t s)
{
    return columns_of(t, s) + t->below[s + 1] - t->below[s];
}

static frgi_panels panels_of(const frgi_supernodal *t, int64_t s, double *panels, double *inverse,
                             const double *lowest)
{
    return (frgi_panels){
        .values = panels + t->offset[s],
        .blocks = (columns_of(t, s) + PANEL - 1) / PANEL,
        .columns = columns_of(t, s),
        .inverse = inverse + t->diagonal[s],
        .floor = lowest ? lowest + t->diagonal[s] : NULL,
    };
}

static int64_t panel_count(const frgi_supernodal *t, int64_t s)
{
    return (rows_of(t, s) + PANEL - 1) / PANEL;
}

/** map[row] = place of the row in supernode s. */
static void map_rows(const frgi_supernodal *t, const frgi_supernodal_work *w, int64_t s)
{
    int32_t l = 0;
    for (int32_t j = t->first[s]; j < t->first[s + 1]; j++)
        w->map[j] = l++;
    for (int64_t r = t->below[s]; r < t->below[s + 1]; r++)
        w->map[t->rows[r]] = l++;
}

/** Lays the matrix's columns of supernode s into its panels, and sets its floors. */
static void fill(const frgi_supernodal *t, const frgi_supernodal_work *w, int64_t s)
{
    const frgi_pattern *const a = w->pattern;
    double *const panels = w->panels;
    double *const lowest = w->lowest + t->diagonal[s];
    const int64_t width = t->diagonal[s + 1] - t->diagonal[s]; /* columns, padded */
    const int64_t size = t->offset[s + 1] - t->offset[s], spare = t->offset[t->count];
    memset(panels + t->offset[s], 0, (size_t)size * sizeof *panels);
    for (int32_t j = t->first[s]; j < t->first[s + 1]; j++) {
        const int32_t v = w->order[j], c = j - t->first[s];
        const int64_t column = t->offset[s] + PANEL * (int64_t)c;
        for (int64_t e = a->starts[v]; e < a->starts[v + 1]; e++) {
            const int32_t i = w->place[a->columns[e]];
            const int32_t l = w->map[i];
            const int64_t at = column + l / PANEL * PANEL * width + l % PANEL;
            panels[frgi_lower(i, j, at, spare)] = w->matrix[a->where ? a->where[e] : e];
        }
        lowest[c] = w->null_pivot * panels[column + c / PANEL * PANEL * width + c % PANEL];
    }
    for (int64_t c = columns_of(t, s); c < width; c++)
        lowest[c] = HUGE_VAL;
}

/** Multiply-adds since the last poll of the context's stop. */
typedef struct {
    frg_context *ctx;
    const char *solver;
    double since;
    int64_t done, total; /* supernodes */
} poll_state;

static frg_status poll(poll_state *w, double flops)
{
    w->since += flops;
    return frgi_direct_poll(w->ctx, w->solver, &w->since, w->done, w->total);
}

/** Takes from supernode s the product of rows [from, end) of d with rows [from, to), those that are
 *  columns of s; rows are places within d.  map holds the places within s. */
static frg_status subtract(const frgi_supernodal *t, const frgi_supernodal_work *w, int64_t s,
                           int64_t d, int64_t from, int64_t to, int64_t end, poll_state *stops)
{
    const int64_t n = t->diagonal[d + 1] - t->diagonal[d];     /* columns of d, padded */
    const int64_t width = t->diagonal[s + 1] - t->diagonal[s]; /* of s */
    const int32_t *const rows = t->rows + t->below[d] - columns_of(t, d);
    const double *const a = w->panels + t->offset[d];
    double *const target = w->panels + t->offset[s];
    for (int64_t l = from; l < end; l++) {
        const int64_t to_row = w->map[rows[l]];
        w->address[l] = to_row / PANEL * PANEL * width + to_row % PANEL;
    }
    _Alignas(64) double tile[TILE];
    for (int64_t j = from / PANEL; PANEL * j < to; j++) {
        for (int64_t i = j; PANEL * i < end; i++) {
            w->ops->product(n, a + PANEL * n * i, a + PANEL * n * j, tile);
            const int64_t c1 = PANEL * (j + 1) < to ? PANEL * (j + 1) : to;
            const int64_t r1 = PANEL * (i + 1) < end ? PANEL * (i + 1) : end;
            for (int64_t c = PANEL * j < from ? from : PANEL * j; c < c1; c++) {
                double *const column = target + PANEL * (int64_t)w->map[rows[c]];
                for (int64_t r = PANEL * i < c ? c : PANEL * i; r < r1; r++)
                    column[w->address[r]] -= tile[PANEL * (c - PANEL * j) + r - PANEL * i];
            }
        }
        const frg_status status = poll(stops, (double)(PANEL * n) * (double)(end - PANEL * j));
        if (status)
            return status;
    }
    return FRG_OK;
}

/** Supernode d waits for the supernode that holds its row number done[d]. */
static void queue(const frgi_supernodal_work *w, int32_t d, int32_t s)
{
    w->next[d] = w->head[s];
    w->head[s] = d;
}

/** The supernode that column i belongs to, somewhere above d. */
static int32_t owner(const frgi_supernodal *t, int32_t d, int32_t i)
{
    int32_t s = t->parent[d];
    while (t->first[s + 1] <= i)
        s = t->parent[s];
    return s;
}

/** All that the descendants pass on to s; they move on to the supernodes of their next rows. */
static frg_status gather(const frgi_supernodal *t, const frgi_supernodal_work *w, int32_t s,
                         poll_state *stops)
{
    for (int32_t d = w->head[s], following; d >= 0; d = following) {
        following = w->next[d];
        const int64_t n = columns_of(t, d), end = rows_of(t, d);
        const int32_t *const rows = t->rows + t->below[d] - n;
        const int64_t from = w->done[d];
        int64_t to = from;
        while (to < end && rows[to] < t->first[s + 1])
            to++;
        const frg_status status = subtract(t, w, s, d, from, to, end, stops);
        if (status)
            return status;
        w->done[d] = (int32_t)to;
        if (to < end)
            queue(w, d, owner(t, s, rows[to]));
    }
    return FRG_OK;
}

frg_status frgi_supernodal_factor(const frgi_supernodal *t, const frgi_supernodal_work *w,
                                  frg_context *ctx, int64_t *nulls)
{
    poll_state stops = {.ctx = ctx, .solver = w->solver, .total = t->count};
    *nulls = 0;
    for (int64_t s = 0; s < t->count; s++)
        w->head[s] = -1;
    for (int32_t s = 0; s < t->count; s++) {
        map_rows(t, w, s);
        fill(t, w, s);
        stops.done = s;
        frg_status status = gather(t, w, s, &stops);
        const frgi_panels panels = panels_of(t, s, w->panels, w->inverse, w->lowest);
        for (int64_t i = 0; i < panel_count(t, s) && !status; i++) {
            *nulls += w->ops->factor(&panels, i);
            status = poll(&stops, (double)TILE * (double)panels.blocks * (double)panels.columns);
        }
        if (status)
            return status;
        w->done[s] = (int32_t)columns_of(t, s);
        if (t->parent[s] >= 0)
            queue(w, s, t->parent[s]);
    }
    return FRG_OK;
}

static void copy_in(const frgi_supernodal *t, int64_t s, int64_t w, const double *x, double *local)
{
    const int64_t n = columns_of(t, s), m = rows_of(t, s);
    memcpy(local, x + t->first[s] * w, (size_t)(n * w) * sizeof *x);
    const int32_t *const rows = t->rows + t->below[s];
    for (int64_t r = 0; r < m - n; r++)
        for (int64_t c = 0; c < w; c++)
            local[(n + r) * w + c] = x[rows[r] * w + c];
    memset(local + m * w, 0, (size_t)((PANEL * panel_count(t, s) - m) * w) * sizeof *x);
}

static void copy_out(const frgi_supernodal *t, int64_t s, int64_t w, const double *local, double *x)
{
    const int64_t n = columns_of(t, s), m = rows_of(t, s);
    memcpy(x + t->first[s] * w, local, (size_t)(n * w) * sizeof *x);
    const int32_t *const rows = t->rows + t->below[s];
    for (int64_t r = 0; r < m - n; r++)
        for (int64_t c = 0; c < w; c++)
            x[rows[r] * w + c] = local[(n + r) * w + c];
}

void frgi_supernodal_solve(const frgi_supernodal *t, const frgi_direct_ops *ops, double *panels,
                           double *inverse, int width, double *x, double *local)
{
    static const int64_t lanes[WIDTH_COUNT] = {[WIDTH_4] = 4, [WIDTH_8] = 8};
    const int64_t w = lanes[width];
    for (int64_t s = 0; s < t->count; s++) {
        const frgi_panels p = panels_of(t, s, panels, inverse, NULL);
        copy_in(t, s, w, x, local);
        for (ptrdiff_t i = 0; i < panel_count(t, s); i++)
            ops->forward[width](&p, i, local);
        copy_out(t, s, w, local, x);
    }
    for (int64_t s = t->count - 1; s >= 0; s--) {
        const frgi_panels p = panels_of(t, s, panels, inverse, NULL);
        copy_in(t, s, w, x, local);
        for (ptrdiff_t i = panel_count(t, s) - 1; i >= 0; i--)
            ops->backward[width](&p, i, local);
        memcpy(x + t->first[s] * w, local, (size_t)(columns_of(t, s) * w) * sizeof *x);
    }
}
