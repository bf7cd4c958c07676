/* fe_row_lsmr_rank.c - the rank of D with varying slopes.
 *
 * With the eliminated levels' columns U orthonormal, rank D = rank U + rank S, S = A_r'(I - U U')
 * A_r, whose diagonal is at most 1.  Where S is small enough it is assembled densely, one
 * eliminated level after the other, and eliminated with diagonal pivots (blocked as in LAPACK's
 * dpstrf; Lucas 2004) down to PIVOT; the count of pivots is the rank.
 *
 * A larger S that has a sparse factor (fe_slopes.h) has as many pivots as that.  Otherwise a bound:
 * the columns kept by each factor for itself, less redundancies between pairs of factors. A column
 * kind that two factors share (intercepts, or slopes with the same values) has a null vector for
 * each connected component of the two: the sum over one side's levels less that over the other's.
 * For every kind of every factor the earlier factor with the most components counts; these null
 * vectors are independent since each has columns of its own.  Slopes of a factor that dropped a
 * column in some level are left out.
 *
 * The count over the rationals (fe_slope_rank.c) is the rank where it is not larger.  Where it is,
 * columns depend on each other but for rounding, and the demeaner, whose columns are dropped at
 * 1e-9, takes them for dependent, too: the pivots stand, and are called that.
 */
#include <math.h>
#include <string.h>

#include "fe/fe_cascade.h"
#include "fe/fe_graph.h"
#include "fe/fe_row_lsmr_plan.h"
#include "linalg/blas.h"

enum { EXACT_MAX = 3000, PANEL = 48 };
static const double WORK_MAX = 4e9; /* multiply-adds of assembling S */
static const double PIVOT = 1e-9;

/* ---- S, dense -------------------------------------------------------------------------------- */

/** Lower triangle, column-major, and what an eliminated level needs to be added. */
typedef struct {
    const fe_basis *b;
    int64_t n;           /* R */
    double *s;           /* n x n */
    double *along;       /* n: A_r' u_j of an eliminated level, zero elsewhere */
    int32_t *touched;    /* n: coefficients of the eliminated level's rows */
    unsigned char *seen; /* n */
    int32_t *place;      /* of one row's columns */
    double *value;
} dense;

static double *entry(const dense *d, int64_t i, int64_t j)
{
    return d->s + (i > j ? j * d->n + i : i * d->n + j);
}

/** S += w a a' for the rows of an eliminated level; returns the number of coefficients touched. */
static int64_t add_rows(const dense *d, int64_t elim)
{
    const fe_rows *g = d->b->g;
    int64_t touched = 0;
    for (int64_t i = g->elim_start[elim]; i < g->elim_start[elim + 1]; i++) {
        const int count = frgi_basis_row(d->b, i, d->place, d->value);
        const double w = g->weight ? g->weight[i] : 1;
        for (int a = 0; a < count; a++) {
            if (!d->seen[d->place[a]]) {
                d->seen[d->place[a]] = 1;
                d->touched[touched++] = d->place[a];
            }
            for (int c = 0; c <= a; c++) {
                *entry(d, d->place[a], d->place[c]) += w * d->value[a] * d->value[c];
            }
        }
    }
    return touched;
}

/** S -= (A_r' u)(A_r' u)' for column j of an eliminated level. */
static void subtract_column(const dense *d, int64_t elim, int j, int64_t touched)
{
    const fe_rows *g = d->b->g;
    const fe_basis_factor *f = &d->b->elim;
    for (int64_t i = g->elim_start[elim]; i < g->elim_start[elim + 1]; i++) {
        const int count = frgi_basis_row(d->b, i, d->place, d->value);
        const double phi = fe_basis_value(f, elim, i, j);
        for (int a = 0; a < count; a++) {
            d->along[d->place[a]] += (g->weight ? g->weight[i] : 1) * phi * d->value[a];
        }
    }
    for (int64_t a = 0; a < touched; a++) {
        for (int64_t c = 0; c <= a; c++) {
            *entry(d, d->touched[a], d->touched[c]) -=
                d->along[d->touched[a]] * d->along[d->touched[c]];
        }
    }
    for (int64_t a = 0; a < touched; a++) {
        d->along[d->touched[a]] = 0;
    }
}

static void assemble(const dense *d)
{
    for (int64_t u = 0; u < d->b->g->n_elim; u++) {
        const int64_t touched = add_rows(d, u);
        for (int j = 0; j < d->b->elim.width; j++) {
            subtract_column(d, u, j, touched);
        }
        for (int64_t a = 0; a < touched; a++) {
            d->seen[d->touched[a]] = 0;
        }
    }
}

/* ---- its rank -------------------------------------------------------------------------------- */

static void exchange(double *a, double *b)
{
    const double t = *a;
    *a = *b;
    *b = t;
}

/** Rows and columns j < p of the lower triangle change places. */
static void swap_pivot(double *a, int64_t n, int64_t j, int64_t p)
{
    for (int64_t c = 0; c < j; c++) {
        exchange(&a[c * n + j], &a[c * n + p]);
    }
    for (int64_t t = j + 1; t < p; t++) {
        exchange(&a[j * n + t], &a[t * n + p]);
    }
    for (int64_t i = p + 1; i < n; i++) {
        exchange(&a[j * n + i], &a[p * n + i]);
    }
    exchange(&a[j * n + j], &a[p * n + p]);
}

/** Cholesky with diagonal pivoting of the lower triangle; done[i] are the squares taken off the
 *  diagonal within a panel. */
static int64_t count_pivots(double *a, int64_t n, double *done)
{
    for (int64_t begin = 0; begin < n; begin += PANEL) {
        const int64_t end = begin + PANEL < n ? begin + PANEL : n;
        memset(done, 0, (size_t)n * sizeof *done);
        for (int64_t j = begin; j < end; j++) {
            int64_t p = j;
            for (int64_t i = j; i < n; i++) {
                done[i] += j > begin ? a[(j - 1) * n + i] * a[(j - 1) * n + i] : 0;
                p = a[i * n + i] - done[i] > a[p * n + p] - done[p] ? i : p;
            }
            const double pivot = a[p * n + p] - done[p];
            if (!(pivot > PIVOT)) {
                return j;
            }
            if (p != j) {
                swap_pivot(a, n, j, p);
                exchange(&done[j], &done[p]);
            }
            for (int64_t c = begin; c < j; c++) {
                const double of_row = a[c * n + j];
                for (int64_t i = j + 1; i < n; i++) {
                    a[j * n + i] -= of_row * a[c * n + i];
                }
            }
            a[j * n + j] = sqrt(pivot);
            for (int64_t i = j + 1; i < n; i++) {
                a[j * n + i] /= a[j * n + j];
            }
        }
        if (end < n) {
            frgi_dsyrk('N', (int)(n - end), (int)(end - begin), -1, a + begin * n + end, (int)n, 1,
                       a + end * n + end, (int)n);
        }
    }
    return n;
}

static void lay_out(frgi_arena *a, dense *d, int row_width)
{
    d->s = TAKE(a, double, d->n * d->n);
    d->along = TAKE(a, double, d->n);
    d->touched = TAKE(a, int32_t, d->n);
    d->seen = TAKE(a, unsigned char, d->n);
    d->place = TAKE(a, int32_t, row_width);
    d->value = TAKE(a, double, row_width);
}

static frg_status dense_rank(const fe_basis *b, frg_context *ctx, int64_t *rank)
{
    dense d = {.b = b, .n = b->n_reduced};
    frgi_arena memory = {0};
    lay_out(&memory, &d, frgi_basis_row_width(b));
    TRY(frgi_arena_open(&memory, ctx, "rank of the effects"));
    lay_out(&memory, &d, frgi_basis_row_width(b));
    memset(memory.base, 0, memory.bytes);
    assemble(&d);
    const frgi_blas_guard guard = frgi_blas_begin();
    *rank = b->elim.rank + count_pivots(d.s, d.n, d.along);
    frgi_blas_end(guard);
    frgi_arena_close(&memory, ctx);
    return FRG_OK;
}

/** Multiply-adds of assembling S: squares of the numbers of coefficients that eliminated levels
 *  touch, from above. */
static double assembly_work(const fe_basis *b)
{
    const double width = frgi_basis_row_width(b), n = (double)b->n_reduced;
    double work = 0;
    for (int64_t u = 0; u < b->g->n_elim; u++) {
        const double rows = (double)(b->g->elim_start[u + 1] - b->g->elim_start[u]);
        const double touched = rows * width < n ? rows * width : n;
        work += rows * width * width + b->elim.width * touched * touched;
    }
    return work;
}

/* ---- the bound ------------------------------------------------------------------------------- */

/** Has every level kept every column? */
static bool complete(const fe_basis_factor *f)
{
    return f->rank == f->levels * f->width;
}

/** Has the factor column kind `id`?  0 is the intercept, others are slopes (fe_basis.h). */
static bool has_kind(const fe_basis_factor *f, int id)
{
    if (id == 0) {
        return f->intercept;
    }
    bool found = false;
    for (int s = 0; s < f->slopes; s++) {
        found = found || f->slope_id[s] == id;
    }
    return found && complete(f);
}

/** Most components that factor q has with an earlier factor of the same column kind; 0: there is
 *  none. */
static int64_t redundancy(const fe_basis *b, int q, int id, const int64_t *components)
{
    int64_t most = 0;
    for (int p = 0; p < q && has_kind(frgi_basis_factor(b, q), id); p++) {
        if (has_kind(frgi_basis_factor(b, p), id) && components[p] > most) {
            most = components[p];
        }
    }
    return most;
}

static frg_status bound_rank(const fe_basis *b, frg_context *ctx, int64_t *rank)
{
    int64_t *components;
    TRY(NEW(ctx, &components, b->g->n_factors, "components"));
    frg_status status = FRG_OK;
    int64_t sum = 0;
    for (int q = 0; q < b->g->n_factors; q++) {
        const fe_basis_factor *f = frgi_basis_factor(b, q);
        for (int p = 0; p < q; p++) {
            status = frgi_fe_components(b->g, ctx, p, q, &components[p]);
            if (status != FRG_OK) {
                goto done;
            }
        }
        sum += f->rank - redundancy(b, q, 0, components);
        for (int s = 0; s < f->slopes; s++) {
            sum -= redundancy(b, q, f->slope_id[s], components);
        }
    }
    *rank = sum;
done:
    DROP(ctx, &components);
    return status;
}

/* ---- the count ------------------------------------------------------------------------------- */

/** By pivots where there are any, else the bound. */
static frg_status numerical_rank(const fe_row_lsmr *f, frg_context *ctx, int64_t *rank,
                                 const char **method)
{
    const fe_basis *const b = &f->basis;
    *method = "pivots";
    if (b->n_reduced <= EXACT_MAX && assembly_work(b) <= WORK_MAX) {
        return dense_rank(b, ctx, rank);
    }
    if (f->factor) {
        *rank = b->elim.rank + frgi_fe_slopes_rank(f->factor);
        return FRG_OK;
    }
    *method = "bound";
    return bound_rank(b, ctx, rank);
}

frg_status frgi_fe_row_lsmr_rank(const fe_row_lsmr *f, frg_context *ctx, double work_most,
                                 int64_t *rank, const char **method)
{
    int64_t exact = -1;
    frg_status status = numerical_rank(f, ctx, rank, method);
    if (status == FRG_OK) {
        status =
            frgi_fe_slope_rank(&f->basis, ctx, work_most, frgi_fe_fill_cap(ctx, &f->opts), &exact);
    }
    if (status == FRG_OK && exact >= 0 && exact <= *rank) {
        *rank = exact;
        *method = "exact";
    }
    return status;
}
