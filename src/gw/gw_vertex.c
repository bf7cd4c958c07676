/* gw_vertex.c - conditional gradient (Frank and Wolfe 1956) on the energy of a plan, without
 * entropy and without sampling.
 *
 *     J(P) = (1 - theta) E(P) + 2 theta <M, P>,     K(P) = -2 (1 - theta) C P D + theta M,
 *     dJ(P)[S] = 2 <K(P), S>
 *
 * for S of zero marginals (the terms of rows and of columns in E's gradient vanish there).  With
 * M the cost between features this is the fused problem of Vayer, Chapel, Flamary, Tavenard and
 * Courty (2019), their alpha being (1 - theta) / (1 + theta).  V is the vertex of the transport
 * polytope where <K(P), V> is least, by an assignment or the network simplex from the last duals or
 * tree.  On the segment J is a quadratic,
 *
 *     J(P + t (V - P)) = J(P) + 2 t <K(P), V - P> + t^2 <K(V) - K(P), V - P>
 *
 * whose minimiser t in [0, 1] is in closed form.  Where C and D are of negative type (Euclidean
 * distances, trees), it is concave: t = 1, and the plan goes from vertex to vertex (Rioux, Goldfeld
 * and Kato 2023).
 *
 * Plans are lists: a vertex has at most n + m - 1 entries, P those of the vertices that it is made
 * of.  K(V) is kept and moved by the entries that V has changed, those of a row a product of a
 * column of C and a sum of rows of D; K(P) mixes as P does.  A step costs n m times the changed
 * rows (or columns), a linear problem and looks at n m costs.  Costs of many points are floats; the
 * energies that decide are sums over lists in double.  Costs are used where they are only rounded
 * in floats: a step that gains less than their rounding is the last one.
 */
#include "gw/gw_vertex.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/tree_sum.h"
#include "linalg/blas.h"

enum { GATHERED = 256, BLOCK = 128 };
#define NO_GAIN      1e-9 /* of J, that a step has to gain */
#define FLOOR_SINGLE 1e-7 /* the same of J's constant: rounding of costs */
#define FLOOR_DOUBLE 1e-13
#define MOST_AHEAD   2.0 /* beta of the costs of a plan further on, frgi_descent_rough */

/* ---- memory ---------------------------------------------------------------------------------- */

size_t frgi_spaces_bytes(int64_t n, int64_t m, bool single)
{
    return frgi_costs_size(single) * (size_t)(n * frgi_costs_ld(n) + m * frgi_costs_ld(m));
}

size_t frgi_descent_bytes(int64_t n, int64_t m, bool single)
{
    return frgi_costs_size(single) * (size_t)(2 * n * frgi_costs_ld(m) + n * m / 3);
}

/** Costs that are written as a whole, padding included, before they are read: by the thread that
 *  does it, as the first touch of fresh memory takes as long as some passes over it. */
static frg_status open_costs(frgi_costs *c, frg_context *ctx, int64_t rows, int64_t columns,
                             bool single)
{
    char *at = NULL;
    *c = (frgi_costs){NULL, rows, columns, frgi_costs_ld(columns), single};
    TRY(NEW(ctx, &at, frgi_mul(frgi_mul((size_t)rows, (size_t)c->ld), frgi_costs_size(single)),
            "costs of a plan"));
    c->at = at;
    return FRG_OK;
}

static void close_costs(frgi_costs *c, frg_context *ctx)
{
    char *at = c->at;
    DROP(ctx, &at);
    c->at = NULL;
}

static void take_workspaces(frgi_products *p, frgi_arena *a)
{
    const frgi_product_way usual = frgi_product_way_of(p->ctx);
    /* OpenBLAS takes CPUs that are younger than itself for ones without vectors */
    const bool own = usual == PRODUCT_BLAS && frgi_context_isa(p->ctx) == ISA_V4;
    const frgi_product_way way = own ? PRODUCT_AVX2 : usual;
    for (int t = 0; t < p->count; t++) {
        frgi_product_workspace_take(a, &p->workspaces[t], way);
    }
}

frg_status frgi_products_open(frgi_products *p, frg_context *ctx, int threads)
{
    *p = (frgi_products){.ctx = ctx, .count = threads};
    TRY(NEW0(ctx, &p->workspaces, p->count, "products of costs"));
    take_workspaces(p, &p->arena);
    TRY(frgi_arena_open(&p->arena, ctx, "products of costs"));
    take_workspaces(p, &p->arena);
    return FRG_OK;
}

void frgi_products_close(frgi_products *p)
{
    if (p->ctx) {
        frgi_arena_close(&p->arena, p->ctx);
        DROP(p->ctx, &p->workspaces);
    }
}

frg_status frgi_descent_open(frgi_descent *d, const frgi_spaces *s, int threads)
{
    const char *const what = "a descent";
    frg_context *const ctx = s->ctx;
    const size_t size = frgi_costs_size(s->single);
    char *left = NULL, *right = NULL;
    frg_status status = FRG_OK;
    *d = (frgi_descent){.s = s, .energy = (double)INFINITY, .most = 12 * (s->n + s->m)};
    TRY_TO(done, open_costs(&d->k_plan, ctx, s->n, s->m, s->single));
    TRY_TO(done, open_costs(&d->k_vertex, ctx, s->n, s->m, s->single));
    TRY_TO(done, NEW(ctx, &d->plan.entries, d->most, what));
    TRY_TO(done, NEW(ctx, &d->scratch.entries, d->most, what));
    TRY_TO(done, NEW(ctx, &d->vertex.entries, s->n + s->m, what));
    TRY_TO(done, NEW(ctx, &d->last.entries, s->n + s->m, what));
    TRY_TO(done, NEW0(ctx, &left, frgi_mul(GATHERED * (size_t)s->x.ld, size), what));
    d->left = left;
    TRY_TO(done, NEW0(ctx, &right, frgi_mul(GATHERED * (size_t)s->y.ld, size), what));
    d->right = right;
    d->products = (frgi_products){.ctx = ctx, .count = threads};
    if (s->single) {
        TRY_TO(done, frgi_products_open(&d->products, ctx, threads));
    }
    if (s->assigns) {
        TRY_TO(done, frgi_assign_open(&d->assign, ctx, s->n, s->single));
        TRY_TO(done, NEW(ctx, &d->exchanges, s->n, what));
        TRY_TO(done, NEW(ctx, &d->images, s->n, what));
        TRY_TO(done, NEW(ctx, &d->taken, s->n, what));
    } else {
        TRY_TO(done, frgi_simplex_open(&d->simplex, ctx, s->a, s->n, s->b, s->m, s->single));
    }
done:
    return status;
}

void frgi_descent_close(frgi_descent *d)
{
    if (!d->s) {
        return;
    }
    frg_context *const ctx = d->s->ctx;
    char *left = d->left, *right = d->right;
    close_costs(&d->k_plan, ctx);
    close_costs(&d->k_vertex, ctx);
    DROP(ctx, &d->plan.entries);
    DROP(ctx, &d->scratch.entries);
    DROP(ctx, &d->vertex.entries);
    DROP(ctx, &d->last.entries);
    DROP(ctx, &left);
    DROP(ctx, &right);
    frgi_assign_close(&d->assign, ctx);
    frgi_simplex_close(&d->simplex, ctx);
    frgi_products_close(&d->products);
    DROP(ctx, &d->exchanges);
    DROP(ctx, &d->images);
    DROP(ctx, &d->taken);
    *d = (frgi_descent){0};
}

/* ---- spaces ---------------------------------------------------------------------------------- */

/** sum w C^2 w, and sum w C w. */
static void moments(const frgi_costs *c, const double *w, double *square, double *mean)
{
    *square = *mean = 0;
    for (int64_t i = 0; i < c->rows; i++) {
        double of_square = 0, of_mean = 0;
        for (int64_t k = 0; k < c->columns; k++) {
            const double x = frgi_costs_get(c, i, k);
            of_square += x * x * w[k];
            of_mean += x * w[k];
        }
        *square += w[i] * of_square;
        *mean += w[i] * of_mean;
    }
}

void frgi_spaces_finish(frgi_spaces *s)
{
    double square_x, square_y, mean_x, mean_y, linear = 0;
    bool equal = s->n == s->m;
    moments(&s->x, s->a, &square_x, &mean_x);
    moments(&s->y, s->b, &square_y, &mean_y);
    for (int64_t i = 0; i < s->n && equal; i++) {
        equal = fabs(s->a[i] - s->a[0]) <= 1e-12 * s->a[0] &&
                fabs(s->b[i] - s->a[0]) <= 1e-12 * s->a[0];
    }
    for (int64_t i = 0; i < s->n && s->linear; i++) {
        for (int64_t j = 0; j < s->m; j++) {
            linear += s->a[i] * s->b[j] * (double)s->linear[i * s->ld_linear + j];
        }
    }
    s->assigns = equal;
    s->constant = square_x + square_y;
    s->product = (1 - s->theta) * (s->constant - 2 * mean_x * mean_y) + 2 * s->theta * linear;
}

void frgi_spaces_close(frgi_spaces *s)
{
    if (s->ctx) {
        close_costs(&s->x, s->ctx);
        close_costs(&s->y, s->ctx);
        DROP(s->ctx, &s->a);
        DROP(s->ctx, &s->b);
    }
}

/** sum over the entries e of first .. last-1, and f <= e, of m_e m_f C_ef D_ef, pairs of two
 *  entries twice: distances are symmetric. */
static double cross_of(const frgi_spaces *s, const frgi_sparse *p, int64_t first, int64_t last)
{
    double cross = 0;
    for (int64_t e = first; e < last; e++) {
        const frgi_entry *const at = &p->entries[e];
        const void *const x = frgi_costs_row(&s->x, at->i), *const y = frgi_costs_row(&s->y, at->j);
        double sum = 0;
        for (int64_t f = 0; f < e && s->single; f++) {
            const frgi_entry *const to = &p->entries[f];
            sum += to->mass * (double)((const float *)x)[to->i] * (double)((const float *)y)[to->j];
        }
        for (int64_t f = 0; f < e && !s->single; f++) {
            const frgi_entry *const to = &p->entries[f];
            sum += to->mass * ((const double *)x)[to->i] * ((const double *)y)[to->j];
        }
        const double own =
            frgi_costs_get(&s->x, at->i, at->i) * frgi_costs_get(&s->y, at->j, at->j);
        cross += at->mass * (2 * sum + at->mass * own);
    }
    return cross;
}

double frgi_sparse_energy(const frgi_spaces *s, const frgi_sparse *p)
{
    enum { PARTS = 64 };
    double part[PARTS], cross, linear = 0;
    const bool many = p->count > 1500;
#pragma omp parallel for schedule(static, 1) num_threads(frg_threads(s->ctx)) if (many)
    for (int64_t q = 0; q < PARTS; q++) { /* the later, the longer */
        part[q] = cross_of(s, p, q * p->count / PARTS, (q + 1) * p->count / PARTS);
    }
    frgi_tree_rows(part, PARTS, 1, 1, &cross);
    for (int64_t e = 0; e < p->count && s->linear; e++) {
        const frgi_entry *const at = &p->entries[e];
        linear += at->mass * (double)s->linear[at->i * s->ld_linear + at->j];
    }
    return (1 - s->theta) * (s->constant - 2 * cross) + 2 * s->theta * linear;
}

/* ---- costs ----------------------------------------------------------------------------------- */

void frgi_costs_add(const frgi_products *w, frgi_costs *to, const void *left, int64_t ld_left,
                    const void *right, int64_t ld_right, int64_t count, double scale)
{
    const frgi_blas_guard guard = frgi_blas_begin();
    const int64_t blocks = (to->rows + BLOCK - 1) / BLOCK;
    const bool large = to->rows * to->columns * count > 1000000;
#pragma omp parallel for schedule(static) num_threads(w->count) if (large)
    for (int64_t block = 0; block < blocks; block++) {
        const int64_t first = block * BLOCK;
        const int rows = (int)(to->rows - first < BLOCK ? to->rows - first : BLOCK);
        if (frgi_stopped(w->ctx) != FRG_OK) { /* who asked for it asks that, too */
            continue;
        }
        frgi_blas_single();
        if (to->single) { /* row-major C = A' B is column-major C' = B' A */
            frgi_product_blend(&w->workspaces[omp_get_thread_num()], 'N', 'T', to->columns, rows,
                               count, (float)scale, right, ld_right, (const float *)left + first,
                               ld_left, 1, (float *)to->at + first * to->ld, to->ld);
        } else {
            frgi_dgemm('N', 'T', (int)to->columns, rows, (int)count, scale, right, (int)ld_right,
                       (const double *)left + first, (int)ld_left, 1,
                       (double *)to->at + first * to->ld, (int)to->ld);
        }
    }
    frgi_blas_end(guard);
}

/** out <- out + scale row */
static void add_scaled(const frgi_costs *c, int64_t i, double scale, void *out)
{
    if (c->single) {
        const float *const row = frgi_costs_row(c, i);
        for (int64_t k = 0; k < c->columns; k++) {
            ((float *)out)[k] += (float)scale * row[k];
        }
    } else {
        const double *const row = frgi_costs_row(c, i);
        for (int64_t k = 0; k < c->columns; k++) {
            ((double *)out)[k] += scale * row[k];
        }
    }
}

/** The point of an entry by which entries are grouped. */
static int32_t key_of(const frgi_entry *e, bool by_column)
{
    return by_column ? e->j : e->i;
}

static int in_columns(const void *p, const void *q, const void *user)
{
    const frgi_entry *const a = p, *const b = q;
    (void)user;
    return a->j != b->j ? a->j - b->j : a->i - b->i;
}

/** Row q of left and right <- C_i and sum_e m_e D_je of entries of one row i, or sum_e m_e C_ie and
 *  D_j of those of one column j. */
static void gather_group(frgi_descent *d, const frgi_entry *e, int64_t count, bool by_column,
                         int64_t q)
{
    const frgi_spaces *const s = d->s;
    const size_t size = frgi_costs_size(s->single), bytes_x = (size_t)s->x.ld * size,
                 bytes_y = (size_t)s->y.ld * size;
    char *const left = (char *)d->left + (size_t)q * bytes_x;
    char *const right = (char *)d->right + (size_t)q * bytes_y;
    memset(left, 0, bytes_x);
    memset(right, 0, bytes_y);
    for (int64_t k = 0; k < count; k++) {
        if (by_column || k == 0) {
            add_scaled(&s->x, e[k].i, by_column ? e[k].mass : 1, left);
        }
        if (!by_column || k == 0) {
            add_scaled(&s->y, e[k].j, by_column ? 1 : e[k].mass, right);
        }
    }
}

/** to <- to + K of the entries without the linear cost, their masses times scale: a product
 *  C_i (sum_e m_e D_je)' for all entries of a row i, or of a column where these are fewer, in whose
 *  order the list is left then. */
static void add_entries(frgi_descent *d, frgi_entry *e, int64_t count, double scale, frgi_costs *to)
{
    const frgi_spaces *const s = d->s;
    const bool by_column = s->m < s->n;
    int64_t starts[GATHERED + 1] = {0};
    if (by_column) {
        frgi_sort(e, count, sizeof *e, in_columns, NULL);
    }
    while (starts[0] < count) {
        int64_t many = 0, at = starts[0];
        while (many < GATHERED && at < count) {
            const int32_t key = key_of(&e[at], by_column);
            starts[many++] = at;
            while (at < count && key_of(&e[at], by_column) == key) {
                at++;
            }
        }
        starts[many] = at;
#pragma omp parallel for schedule(static)                                                          \
    num_threads(frg_threads(s->ctx)) if (many * (s->n + s->m) > 100000)
        for (int64_t q = 0; q < many; q++) {
            gather_group(d, e + starts[q], starts[q + 1] - starts[q], by_column, q);
        }
        frgi_costs_add(&d->products, to, d->left, s->x.ld, d->right, s->y.ld, many,
                       -2 * (1 - s->theta) * scale);
        starts[0] = at;
    }
}

frg_status frgi_linear_of(frgi_spaces *s, const float *all, int64_t ld, const int32_t *of_x,
                          const int32_t *of_y, float **to)
{
    TRY(NEW(s->ctx, to, frgi_mul((size_t)s->n, (size_t)s->m), "the linear cost"));
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t j = 0; j < s->m; j++) {
            (*to)[i * s->m + j] = all[of_x[i] * ld + of_y[j]];
        }
    }
    s->linear = *to;
    s->ld_linear = s->m;
    return FRG_OK;
}

void frgi_costs_linear(const frgi_spaces *s, frgi_costs *to)
{
    memset(to->at, 0, (size_t)(to->rows * to->ld) * frgi_costs_size(to->single));
    for (int64_t i = 0; i < s->n && s->linear; i++) {
        const float *const from = s->linear + i * s->ld_linear;
        for (int64_t j = 0; j < s->m; j++) {
            const double x = s->theta * (double)from[j];
            if (to->single) {
                ((float *)to->at)[i * to->ld + j] = (float)x;
            } else {
                ((double *)to->at)[i * to->ld + j] = x;
            }
        }
    }
}

void frgi_descent_costs(frgi_descent *d, const frgi_sparse *p, int64_t every, frgi_costs *to)
{
    double mass = 0;
    int64_t count = 0;
    for (int64_t e = 0; e < p->count; e++) {
        if (p->entries[e].i % every == 0) {
            mass += p->entries[e].mass;
            d->scratch.entries[count++] = p->entries[e];
        }
    }
    frgi_costs_linear(d->s, to);
    add_entries(d, d->scratch.entries, count, every > 1 ? 1 / mass : 1, to);
}

/** to <- (1 - t) to + t from */
static void mix(frgi_costs *to, const frgi_costs *from, double t)
{
    const int64_t count = to->rows * to->ld;
    if (to->single) {
        float *const x = to->at;
        const float *const y = from->at, share = (float)t;
        for (int64_t q = 0; q < count; q++) {
            x[q] += share * (y[q] - x[q]);
        }
    } else {
        double *const x = to->at;
        const double *const y = from->at;
        for (int64_t q = 0; q < count; q++) {
            x[q] += t * (y[q] - x[q]);
        }
    }
}

/** sum of the costs of a list */
static double cost_of(const frgi_costs *c, const frgi_sparse *p)
{
    double sum = 0;
    for (int64_t e = 0; e < p->count; e++) {
        sum += p->entries[e].mass * frgi_costs_get(c, p->entries[e].i, p->entries[e].j);
    }
    return sum;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void copy_list(frgi_sparse *to, const frgi_sparse *from)
{
    memcpy(to->entries, from->entries, (size_t)from->count * sizeof *from->entries);
    to->count = from->count;
}

/** out <- scale_p p + scale_q q, by rows, entries of both added, those of no mass left out; `most`
 *  at most: -1 where that does not do. */
static int64_t add_lists(const frgi_sparse *p, double scale_p, const frgi_sparse *q, double scale_q,
                         frgi_entry *out, int64_t most)
{
    int64_t count = 0, at = 0, to = 0;
    while (at < p->count || to < q->count) {
        const int32_t of_p = at < p->count ? p->entries[at].i : INT32_MAX;
        const int32_t of_q = to < q->count ? q->entries[to].i : INT32_MAX;
        const int32_t row = of_p < of_q ? of_p : of_q;
        const int64_t first = count;
        for (; at < p->count && p->entries[at].i == row && count < most; at++) {
            out[count] = p->entries[at];
            out[count++].mass *= scale_p;
        }
        for (; to < q->count && q->entries[to].i == row && count < most; to++) {
            int64_t same = first;
            while (same < count && out[same].j != q->entries[to].j) {
                same++;
            }
            if (same == count) {
                out[count++] = (frgi_entry){row, q->entries[to].j, 0};
            }
            out[same].mass += scale_q * q->entries[to].mass;
        }
        if (count >= most) {
            return -1;
        }
        int64_t kept = first;
        for (int64_t e = first; e < count; e++) {
            if (fabs(out[e].mass) > 1e-17) {
                out[kept++] = out[e];
            }
        }
        count = kept;
    }
    return count;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/** vertex <- that of least cost c; false: the simplex has run out of pivots before it. */
static bool least_vertex(frgi_descent *d, const frgi_costs *c)
{
    const frgi_spaces *const s = d->s;
    if (!s->assigns) {
        return frgi_simplex_solve(d->simplex, c, d->vertex.entries, &d->vertex.count);
    }
    frgi_assign_solve(&d->assign, c);
    d->vertex.count = s->n;
    for (int64_t i = 0; i < s->n; i++) {
        d->vertex.entries[i] = (frgi_entry){(int32_t)i, d->assign.column[i], s->a[i]};
    }
    return true;
}

/** k_vertex <- K(V), from that of the last vertex by the entries that differ where that is less
 *  work. */
static void vertex_costs(frgi_descent *d)
{
    const int64_t changed =
        d->last.count > 0 ? add_lists(&d->last, -1, &d->vertex, 1, d->scratch.entries, d->most)
                          : -1;
    if (changed >= 0 && changed < d->vertex.count) {
        add_entries(d, d->scratch.entries, changed, 1, &d->k_vertex);
    } else {
        frgi_descent_costs(d, &d->vertex, 1, &d->k_vertex);
    }
    copy_list(&d->last, &d->vertex);
}

void frgi_descent_begin(frgi_descent *d)
{
    d->assign.warm = d->follows = false; /* what a start finds does not depend on those before */
    if (d->simplex) {
        frgi_simplex_forget(d->simplex);
    }
    (void)least_vertex(d, &d->k_plan); /* a start */
    copy_list(&d->plan, &d->vertex);
    d->is_vertex = true;
    d->stationary = d->known = false;
    d->last.count = 0;
    d->energy = graph_tasks_poll(d->tasks, d->s->ctx) ? frgi_sparse_energy(d->s, &d->plan)
                                                      : (double)INFINITY;
}

double frgi_descent_dual(const frgi_descent *d)
{
    return cost_of(&d->k_plan, &d->vertex);
}

void frgi_descent_resume(frgi_descent *d, const frgi_sparse *plan, double energy, bool is_vertex,
                         bool follows)
{
    copy_list(&d->plan, plan);
    d->energy = energy;
    d->is_vertex = is_vertex;
    d->stationary = d->known = false;
    d->last.count = 0;
    d->follows = follows;
    d->assign.warm = d->assign.warm && follows;
    if (d->simplex && !follows) {
        frgi_simplex_forget(d->simplex);
    }
}

void frgi_descent_first(const frgi_spaces *s, frgi_sparse *plan)
{
    int64_t i = 0, j = 0;
    double has = s->a[0], wants = s->b[0];
    plan->count = 0;
    while (i < s->n && j < s->m) {
        const bool row_ends = has <= wants || j + 1 == s->m;
        const double sent = i + 1 == s->n ? wants : j + 1 == s->m ? has : fmin(has, wants);
        plan->entries[plan->count++] = (frgi_entry){(int32_t)i, (int32_t)j, sent};
        has -= sent;
        wants -= sent;
        if (row_ends && i + 1 < s->n) {
            has = s->a[++i];
        } else if (j + 1 < s->m) {
            wants = s->b[++j];
        } else {
            break;
        }
    }
}

/** P + beta (P - P_before); P itself where there is none before. */
static frgi_sparse look_ahead(frgi_descent *d, double beta)
{
    const int64_t count =
        beta > 0 ? add_lists(&d->plan, 1 + beta, &d->last, -beta, d->scratch.entries, d->most) : -1;
    return count > 0 ? (frgi_sparse){d->scratch.entries, count} : d->plan;
}

/** The plan before, and V instead of it. */
static void move_to_vertex(frgi_descent *d, double energy)
{
    if (d->is_vertex) {
        copy_list(&d->last, &d->plan);
    }
    copy_list(&d->plan, &d->vertex);
    d->energy = energy;
    d->is_vertex = true;
}

void frgi_descent_rough(frgi_descent *d, int64_t every, int64_t most)
{
    /* > 0: the costs of a plan further on, where steps are many; back to 0 where J does not fall */
    double beta = 0;
    d->assign.moved = d->follows;
    d->last.count = 0;
    for (int64_t step = 0; step < most && graph_tasks_go_on(d->tasks); step++) {
        const frgi_sparse at = look_ahead(d, beta);
        if (d->lifted) {
            frgi_lifted_costs(d->lifted, &at, d);
        } else {
            frgi_descent_costs(d, &at, every, &d->k_plan);
        }
        const bool least = least_vertex(d, &d->k_plan);
        if (!graph_tasks_poll(d->tasks, d->s->ctx)) {
            break;
        }
        const double energy = frgi_sparse_energy(d->s, &d->vertex);
        d->steps++;
        graph_tasks_count(d->tasks, d->s->ctx, "vertex", 1, 0);
        if (energy < d->energy * (1 - 1e-6)) {
            move_to_vertex(d, energy);
            beta = d->simplex && d->last.count > 0 ? fmin(beta > 0 ? 2 * beta : 1, MOST_AHEAD) : 0;
        } else if (beta > 0) {
            beta = 0;
        } else {
            d->stationary = least;
            break;
        }
    }
    d->last.count = 0; /* k_vertex is of no plan */
}

/** The t of least J along the segment from the plan to the vertex (formula above). */
static double line_search(const frgi_descent *d, double *gain)
{
    const double k_v = cost_of(&d->k_plan, &d->vertex), k_p = cost_of(&d->k_plan, &d->plan);
    const double slope = 2 * (k_v - k_p);
    const double square =
        cost_of(&d->k_vertex, &d->vertex) - k_v - cost_of(&d->k_vertex, &d->plan) + k_p;
    const double t = square > 0 ? fmin(1, fmax(0, -slope / (2 * square))) : 1;
    *gain = -(t * slope + t * t * square);
    return t;
}

/** plan <- vertex, whose costs k_vertex has. */
static void become_vertex(frgi_descent *d, double energy)
{
    copy_list(&d->plan, &d->vertex);
    d->energy = energy;
    d->is_vertex = true;
    memcpy(d->k_plan.at, d->k_vertex.at,
           (size_t)(d->k_plan.rows * d->k_plan.ld) * frgi_costs_size(d->k_plan.single));
}

/** plan <- vertex, if that is lower. */
static bool take_vertex(frgi_descent *d)
{
    const double energy = frgi_sparse_energy(d->s, &d->vertex);
    if (!(energy < d->energy)) {
        return false;
    }
    become_vertex(d, energy);
    return true;
}

bool frgi_descent_take(frgi_descent *d)
{
    const double energy = frgi_sparse_energy(d->s, &d->vertex);
    if (!(energy < d->energy - NO_GAIN * fabs(d->energy))) {
        return false;
    }
    vertex_costs(d);
    become_vertex(d, energy);
    d->stationary = false;
    return true;
}

/** The plan, its costs and its energy after a step inside the segment; false: its list is full. */
static bool move_inside(frgi_descent *d, double t, double gain)
{
    const int64_t count = add_lists(&d->plan, 1 - t, &d->vertex, t, d->scratch.entries, d->most);
    if (count < 0) {
        return false;
    }
    const frgi_sparse mixed = {d->scratch.entries, count};
    copy_list(&d->plan, &mixed);
    mix(&d->k_plan, &d->k_vertex, t);
    d->energy -= gain;
    d->is_vertex = false;
    return true;
}

/** k_plan <- K(P), and k_vertex where the plan is a vertex. */
static void know_costs(frgi_descent *d)
{
    frgi_descent_costs(d, &d->plan, 1, &d->k_plan);
    if (d->is_vertex) {
        copy_list(&d->last, &d->plan);
        memcpy(d->k_vertex.at, d->k_plan.at,
               (size_t)(d->k_plan.rows * d->k_plan.ld) * frgi_costs_size(d->k_plan.single));
    }
    d->known = true;
}

void frgi_descend(frgi_descent *d, int64_t most)
{
    const double floor = d->s->constant * (d->s->single ? FLOOR_SINGLE : FLOOR_DOUBLE);
    d->assign.moved = d->follows && !d->known;
    if (!d->known) {
        know_costs(d);
    }
    for (int64_t step = 0; step < most && !d->stationary && graph_tasks_go_on(d->tasks); step++) {
        double gain;
        const bool least = least_vertex(d, &d->k_plan);
        d->assign.moved = false;
        vertex_costs(d);
        if (!graph_tasks_poll(d->tasks, d->s->ctx)) { /* costs or vertex may be unfinished */
            break;
        }
        const double t = line_search(d, &gain);
        d->steps++;
        graph_tasks_count(d->tasks, d->s->ctx, "vertex", 1, 0);
        const bool rests =
            !(gain > fmax(NO_GAIN * fabs(d->energy), floor)) || (t >= 1 && !take_vertex(d));
        d->stationary = rests && least;
        if (rests || (t < 1 && !move_inside(d, t, gain))) {
            break;
        }
    }
    if (!d->is_vertex && d->last.count > 0 &&
        graph_tasks_go_on(d->tasks)) { /* is the last vertex as low? */
        const double energy = frgi_sparse_energy(d->s, &d->last);
        if (energy <= d->energy) {
            copy_list(&d->vertex, &d->last);
            become_vertex(d, energy);
        }
    }
}
