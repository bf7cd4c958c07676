/* gw_vertex_anneal.c - the annealed start of more than a few points, in floats, on the lifted
 * problem (Rioux, Goldfeld and Kato 2023): distances are Q W Q' of rank FRGI_RANK at most, so that
 *
 *     C P D = Q_x [W_x (Q_x' P Q_y) W_y] Q_y'
 *
 * and costs follow from the small matrix in brackets.  A step of cooling takes the powers of n m
 * entries, passes over them and 4 n m FRGI_RANK operations; what the rank leaves out matters at the
 * end alone, which is the descent's.
 */
#include "gw/gw_vertex.h"

#include <math.h>
#include <string.h>

#include "gw/gw_solver.h"
#include "linalg/blas.h"

enum { STEPS = 20, PASSES = 20, STEPS_OF_MANY = 14, PASSES_OF_MANY = 10, MANY = 500 };
enum { SEVERAL = 500, ROWS_AT_ONCE = 8 }; /* entries that are worth a team; rows of Q_x' */
#define BROAD  1.0                        /* epsilon, of the spread of costs: first and last */
#define NARROW 0.01

#pragma GCC visibility push(hidden)
DECLARE_LEVELS(frgi_anneal_ops, frgi_anneal_ops);
#pragma GCC visibility pop

const frgi_anneal_ops *frgi_anneal_ops_of(const frg_context *ctx)
{
    static const frgi_anneal_ops *const table[ISA_COUNT] = EACH_LEVEL(&frgi_anneal_ops);
    return table[frgi_context_isa(ctx)];
}

/* ---- distances of low rank ------------------------------------------------------------------- */

static frgi_costs floats_at(float *at, int64_t rows, int64_t columns, int64_t ld)
{
    return (frgi_costs){at, rows, columns, ld, true};
}

/** to <- sum_k left_k right_k' over `count` rows of both. */
static void multiply(const frgi_products *w, frgi_costs to, const float *left, int64_t ld_left,
                     const float *right, int64_t ld_right, int64_t count, double scale)
{
    frgi_costs_blend(w, 0, &to, left, ld_left, right, ld_right, count, scale);
}

/** to_ks <- scale_k from_sk of rank rows; scale NULL: 1 */
static void transpose(const float *from, int64_t ld_from, int64_t rank, int64_t n,
                      const float *scale, float *to, int64_t ld_to)
{
    for (int64_t k = 0; k < n; k++) {
        const float by = scale ? scale[k] : 1;
        for (int64_t s = 0; s < rank; s++) {
            to[k * ld_to + s] = by * from[s * ld_from + k];
        }
    }
}

/** Q from a random start by subspace iteration, W = Q' C Q. */
static frg_status lift_side(frgi_lifted *l, const frgi_spaces *s, int side, const frgi_costs *c,
                            int steps, const frgi_products *w)
{
    const char *const what = "an annealed start";
    const int64_t n = c->rows, rank = l->rank, ld = l->ld;
    float *scratch = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW0(s->ctx, &l->rows, frgi_mul((size_t)(n + rank), (size_t)ld), what));
    TRY_TO(done, NEW0(s->ctx, &l->columns, frgi_mul((size_t)rank, (size_t)c->ld), what));
    TRY_TO(done, NEW(s->ctx, &scratch, frgi_mul((size_t)(c->ld + 65), (size_t)rank), what));
    l->inner = l->rows + n * ld;
    float *const image = scratch, *const tau = scratch + c->ld * rank, *const work = tau + rank;
    for (int64_t q = 0; q < n * rank; q++) {
        double both[2];
        frgi_normals(s->seed, STREAM_START + 6 + (uint64_t)side, (uint64_t)q, 0, both);
        l->rows[q / rank * ld + q % rank] = (float)both[0];
    }
    for (int step = 0; step < steps; step++) {
        multiply(w, floats_at(l->columns, rank, n, c->ld), l->rows, ld, c->at, c->ld, n, 1);
        const frgi_blas_guard guard = frgi_blas_begin();
        frgi_blas_single();
        frgi_sgeqrf((int)n, (int)rank, l->columns, (int)c->ld, tau, work);
        frgi_sorgqr((int)n, (int)rank, l->columns, (int)c->ld, tau, work);
        frgi_blas_end(guard);
        transpose(l->columns, c->ld, rank, n, NULL, l->rows, ld);
    }
    multiply(w, floats_at(image, rank, n, c->ld), l->rows, ld, c->at, c->ld, n, 1);
    for (int64_t p = 0; p < rank; p++) {
        for (int64_t q = 0; q < rank; q++) {
            double sum = 0;
            for (int64_t k = 0; k < n; k++) {
                sum += (double)l->columns[p * c->ld + k] * (double)image[q * c->ld + k];
            }
            l->inner[p * ld + q] = (float)sum;
        }
    }
done:
    DROP(s->ctx, &scratch);
    return status;
}

frg_status frgi_lifted_side(frgi_lifted *l, const frgi_spaces *s, int side, const frgi_costs *c,
                            int steps)
{
    const int64_t smaller = s->n < s->m ? s->n : s->m,
                  rank = smaller < FRGI_RANK ? smaller : FRGI_RANK;
    frgi_products w = {0};
    frg_status status = frgi_products_open(&w, s->ctx, frg_threads(s->ctx), true);
    l->rank = rank;
    l->ld = frgi_costs_ld(rank);
    status = status >= 0 ? lift_side(l, s, side, c, steps, &w) : status;
    frgi_products_close(&w);
    return status;
}

frg_status frgi_lifted_open(frgi_lifted l[2], const frgi_spaces *s)
{
    TRY(frgi_lifted_side(&l[0], s, 0, &s->x, FRGI_LIFTING));
    return frgi_lifted_side(&l[1], s, 1, &s->y, FRGI_LIFTING);
}

void frgi_lifted_close(frgi_lifted l[2], frg_context *ctx)
{
    for (int side = 0; side < 2; side++) {
        DROP(ctx, &l[side].rows);
        DROP(ctx, &l[side].columns);
    }
}

double frgi_lifted_tail(const frgi_lifted *l, const frgi_costs *c)
{
    enum { ROWS = 64 };
    const int64_t step = (c->rows + ROWS - 1) / ROWS;
    double left_out = 0, spread = 0;
    for (int64_t i = 0; i < c->rows; i += step) {
        const float *const row = frgi_costs_row(c, i);
        float turned[FRGI_RANK] = {0};
        double sum = 0, square = 0;
        for (int64_t p = 0; p < l->rank; p++) { /* row i of Q W */
            for (int64_t q = 0; q < l->rank; q++) {
                turned[q] += l->rows[i * l->ld + p] * l->inner[p * l->ld + q];
            }
        }
        for (int64_t k = 0; k < c->columns; k++) {
            float gap = row[k];
            for (int64_t q = 0; q < l->rank; q++) {
                gap -= turned[q] * l->rows[k * l->ld + q];
            }
            left_out += (double)gap * (double)gap;
            sum += (double)row[k];
            square += (double)row[k] * (double)row[k];
        }
        spread += square - sum * sum / (double)c->columns;
    }
    return spread > 0 ? left_out / spread : 0;
}

/** turned <- (W_x S W_y)' Q_x', S in small[0]; d->k_plan <- -2 (1 - theta) turned' Q_y' and the
 *  linear cost. */
static void costs_of_small(const frgi_lifted l[2], float small[2][FRGI_RANK * FRGI_RANK],
                           float *turned, frgi_descent *d)
{
    const frgi_spaces *const s = d->s;
    const frgi_products *const w = &d->products;
    const int64_t rank = l->rank, ld = l->ld, ld_x = s->x.ld;
    multiply(w, floats_at(small[1], rank, rank, ld), l[0].inner, ld, small[0], ld, rank, 1);
    transpose(small[1], ld, rank, rank, NULL, small[0], ld);
    multiply(w, floats_at(small[1], rank, rank, ld), small[0], ld, l[1].inner, ld, rank, 1);
    multiply(w, floats_at(turned, rank, s->n, ld_x), small[1], ld, l[0].columns, ld_x, rank, 1);
    frgi_costs_set(w, s, &d->k_plan, turned, ld_x, l[1].columns, s->y.ld, rank,
                   -2 * (1 - s->theta));
}

/** sum <- sum + Q_x' P Q_y, some of its rows. */
static void add_rows(const frgi_lifted l[2], const frgi_sparse *p, int64_t first, int64_t rows,
                     double *sum)
{
    const int64_t rank = l->rank, ld = l->ld;
    for (int64_t e = 0; e < p->count; e++) {
        const frgi_entry *const at = &p->entries[e];
        const float *const x = l[0].rows + at->i * ld + first;
        const float *const y = l[1].rows + at->j * ld;
        for (int64_t r = 0; r < rows; r++) {
            const double of_x = at->mass * (double)x[r];
            double *const to = sum + (first + r) * ld;
            for (int64_t q = 0; q < rank; q++) {
                to[q] += of_x * (double)y[q];
            }
        }
    }
}

void frgi_lifted_costs(const frgi_lifted l[2], const frgi_sparse *p, frgi_descent *d)
{
    const int64_t rank = l->rank, ld = l->ld;
    float small[2][FRGI_RANK * FRGI_RANK] = {{0}};
    double sum[FRGI_RANK * FRGI_RANK] = {0};
#pragma omp parallel for schedule(static)                                                          \
    num_threads(frg_threads(d->s->ctx)) if (p->count > SEVERAL)
    for (int64_t first = 0; first < rank; first += ROWS_AT_ONCE) {
        add_rows(l, p, first, rank - first < ROWS_AT_ONCE ? rank - first : ROWS_AT_ONCE, sum);
    }
    for (int64_t q = 0; q < rank * ld; q++) {
        small[0][q] = (float)sum[q];
    }
    costs_of_small(l, small, d->left, d);
}

/* ---- cooling --------------------------------------------------------------------------------- */

/** Vectors of a cooling, in the descent's scratch behind the factors. */
typedef struct {
    float *a, *u, *f, *log_f; /* n */
    float *b, *v, *g, *log_g, *sums;
    float *turned, *rows; /* rank x ld_x, n x ld */
    float *image, *back;  /* rank x ld_y, m x ld */
} cooling;

static cooling cooling_in(const frgi_lifted *l, frgi_descent *d)
{
    const frgi_spaces *const s = d->s;
    const int64_t ld_x = s->x.ld, ld_y = s->y.ld, step = 2 * l->ld;
    float *const left = d->left, *const right = d->right;
    float *const of_x = left + step * ld_x, *const of_y = right + step * ld_y;
    cooling c = {of_x,
                 of_x + ld_x,
                 of_x + 2 * ld_x,
                 of_x + 3 * ld_x,
                 of_y,
                 of_y + ld_y,
                 of_y + 2 * ld_y,
                 of_y + 3 * ld_y,
                 of_y + 4 * ld_y,
                 left,
                 left + l->ld * ld_x,
                 right,
                 right + l->ld * ld_y};
    memset(of_y, 0, (size_t)(5 * ld_y) * sizeof *of_y);
    for (int64_t i = 0; i < s->n; i++) {
        c.a[i] = (float)s->a[i];
    }
    for (int64_t j = 0; j < s->m; j++) {
        c.b[j] = (float)s->b[j];
    }
    return c;
}

/** d->k_plan <- the costs of the plan u_i k_ij v_j, k in d->k_vertex. */
static void costs_of_plan(const frgi_lifted l[2], cooling *c, frgi_descent *d)
{
    const frgi_spaces *const s = d->s;
    const frgi_products *const w = &d->products;
    const int64_t rank = l->rank, ld = l->ld, ld_y = s->y.ld;
    float small[2][FRGI_RANK * FRGI_RANK];
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t r = 0; r < ld; r++) {
            c->rows[i * ld + r] = c->u[i] * l[0].rows[i * ld + r];
        }
    }
    multiply(w, floats_at(c->image, rank, s->m, ld_y), c->rows, ld, d->k_vertex.at, ld_y, s->n, 1);
    transpose(c->image, ld_y, rank, s->m, c->v, c->back, ld);
    multiply(w, floats_at(small[0], rank, rank, ld), c->back, ld, l[1].rows, ld, s->m, 1);
    costs_of_small(l, small, c->turned, d);
}

/** f_i <- mean of row i, g_j <- that of column j less the mean of all. */
static void centre_costs(const frgi_spaces *s, const frgi_costs *now, cooling *c)
{
    double all = 0;
    memset(c->g, 0, (size_t)s->y.ld * sizeof *c->g);
    for (int64_t i = 0; i < s->n; i++) {
        const float *const row = (const float *)now->at + i * now->ld;
        double sum = 0;
        for (int64_t j = 0; j < s->m; j++) {
            sum += (double)c->b[j] * (double)row[j];
            c->g[j] += c->a[i] * row[j];
        }
        c->f[i] = (float)sum;
        all += s->a[i] * sum;
    }
    for (int64_t j = 0; j < s->m; j++) {
        c->g[j] -= (float)all;
    }
}

/** Sinkhorn's iteration at one epsilon from u = v = 1 on the kernel with the potentials inside,
 *  k_ij = exp((f_i + g_j - K_ij) / epsilon); then f += epsilon log u, g += epsilon log v. */
static void cool(const frgi_anneal_ops *ops, const frgi_spaces *s, frgi_descent *d, cooling *c,
                 double epsilon, int passes)
{
    const double scale = FRGI_LOG2_E / epsilon;
    for (int64_t i = 0; i < s->n; i++) {
        c->log_f[i] = (float)((double)c->f[i] * scale);
        c->u[i] = 1;
    }
    for (int64_t j = 0; j < s->m; j++) {
        c->log_g[j] = (float)((double)c->g[j] * scale);
        c->v[j] = s->b[j] > 0 ? 1 : 0;
    }
    ops->kernel(&d->k_plan, c->log_f, c->log_g, (float)scale, &d->k_vertex);
    for (int pass = 0; pass < passes; pass++) {
        ops->pass(&d->k_vertex, c->a, c->b, c->u, c->v, c->sums);
    }
    for (int64_t i = 0; i < s->n; i++) {
        c->f[i] += (float)(epsilon * log((double)c->u[i]));
    }
    for (int64_t j = 0; j < s->m; j++) {
        c->g[j] += (float)(epsilon * log((double)c->v[j]));
    }
}

void frgi_annealed_costs(const frgi_lifted l[2], double spread, int held, frgi_descent *d)
{
    const frgi_spaces *const s = d->s;
    const frgi_anneal_ops *const ops = frgi_anneal_ops_of(s->ctx);
    const bool many = s->n > MANY || s->m > MANY;
    const int steps = many ? STEPS_OF_MANY : STEPS, passes = many ? PASSES_OF_MANY : PASSES;
    cooling c = cooling_in(l, d);
    centre_costs(s, &d->k_plan, &c);
    for (int step = 0; step < steps && spread > 0 && graph_tasks_go_on(d->tasks); step++) {
        const double share = (double)step / (steps - 1);
        cool(ops, s, d, &c, spread * BROAD * pow(NARROW / BROAD, share), passes);
        if (step * STEPS >= held * steps) {
            costs_of_plan(l, &c, d);
        }
    }
}
