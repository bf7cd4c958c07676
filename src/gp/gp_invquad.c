/* gp_invquad.c - r' K^-1 r and log |K| of dense matrices, and their backward: the dense core for
 * other frameworks.
 *
 *     K = L L'     z = L^-1 r     inv_quad = z'z     logdet = 2 sum log L_ii     a = L^-T z
 *     dK = g_ld K^-1 - g_iq a a'     dr = 2 g_iq a
 *
 * A batch of matrices is factored first, all of it, and inverted and written afterwards: a member
 * that is not positive definite leaves every output as it was.  Members whose matrix is the same
 * place in memory (stride 0) share one factor.  Many small matrices are done one a thread, few or
 * large ones one after another by all.
 *
 * Rounding: in f32 the error of ell = -1/2 (inv_quad + logdet + n log 2 pi) must be proved or
 * estimated (gp_trust.c) to be within a thousandth of |ell| + 1, or the call is refused; in f64 a
 * bound above |ell| (and above 1e-3) is a warning.
 *
 * Memory: the factors, n^2/2 elements each (n^2 up to a few hundred rows); without an inverse one a
 * thread. Cost: n^3/3 flop, n^3 with the inverse.  Rasmussen and Williams (2006), algorithm 2.1. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "core/host_alone.h"
#include "fourge/gp.h"
#include "gp/gp_trust.h"
#include "linalg/spd.h"
#include "linalg/team.h"

static const double LOG_2PI = 1.8378770664093454836;
static const double ACCURACY = 1e-3; /* the default of frg_gp_opts */
enum { SQUARE = 48 };                /* lies in one tile */
enum { ONE_A_THREAD_BELOW = 500, COPY_THREADS_FROM = 200 };

/** Leading axes of a view, flattened. */
typedef struct {
    int axes;
    int64_t shape[FRG_MAX_DIM], stride[FRG_MAX_DIM];
    char *base;
    size_t size;
} batch;

static batch batch_of(const frg_array *a, int own_axes)
{
    batch b = {
        .axes = a->ndim - own_axes, .base = frgi_array_base(a), .size = frg_sizeof(a->dtype)};
    for (int d = 0; d < b.axes; d++) {
        b.shape[d] = a->shape[d];
        b.stride[d] = a->stride[d];
    }
    return b;
}

static char *member(const batch *b, int64_t m)
{
    int64_t at = 0;
    for (int d = b->axes - 1; d >= 0; d--) {
        at += m % b->shape[d] * b->stride[d];
        m /= b->shape[d];
    }
    return b->base + at * (int64_t)b->size;
}

static int64_t members(const frg_array *a, int own_axes)
{
    int64_t count = 1;
    for (int d = 0; d < a->ndim - own_axes; d++)
        count *= a->shape[d];
    return count;
}

/* ---- between views and triangles ---- */

/** to[i * to_row + j * to_col] <- from[i * row + j * col] for m rows and n columns, i >= j alone
 *  where `diagonal`. */
#define COPY_SQUARE(type)                                                                          \
    for (ptrdiff_t j = 0; j < n; j++)                                                              \
        for (ptrdiff_t i = diagonal ? j : 0; i < m; i++)                                           \
    ((type *)to)[i * to_row + j * to_col] = ((const type *)from)[i * row + j * col]

static void copy_square(size_t size, ptrdiff_t m, ptrdiff_t n, bool diagonal, const void *from,
                        ptrdiff_t row, ptrdiff_t col, void *to, ptrdiff_t to_row, ptrdiff_t to_col)
{
    if (size == sizeof(uint64_t))
        COPY_SQUARE(uint64_t);
    else
        COPY_SQUARE(uint32_t);
}

/** Copies the lower triangle square by square: in from a view, or out into both triangles of a full
 *  matrix. */
static void copy_triangle(frg_context *ctx, const frgi_spd *a, char *view, ptrdiff_t row,
                          ptrdiff_t col, bool in)
{
    const size_t size = frg_sizeof(frgi_spd_dtype(a));
    const ptrdiff_t order = frgi_spd_order(a);
    const ptrdiff_t squares = (order + SQUARE - 1) / SQUARE;
    const int threads = frgi_team_size(ctx, order >= COPY_THREADS_FROM);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (ptrdiff_t c = 0; c < squares; c++) {
        const ptrdiff_t j = c * SQUARE, n = order - j < SQUARE ? order - j : SQUARE;
        for (ptrdiff_t i = j; i < order; i += SQUARE) {
            const ptrdiff_t m = order - i < SQUARE ? order - i : SQUARE;
            const frgi_spd_piece p = frgi_spd_piece_at(a, i, j);
            char *const lower = view + (i * row + j * col) * (ptrdiff_t)size;
            char *const upper = view + (j * row + i * col) * (ptrdiff_t)size;
            if (in) {
                copy_square(size, m, n, i == j, lower, row, col, p.at, 1, p.ld);
            } else {
                copy_square(size, m, n, i == j, p.at, 1, p.ld, lower, row, col);
                copy_square(size, m, n, i == j, p.at, 1, p.ld, upper, col, row);
            }
        }
    }
}

static double at(frg_dtype t, const void *x, ptrdiff_t i)
{
    return t == FRG_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* ---- forward ---- */

typedef struct {
    frg_context *ctx;
    ptrdiff_t n; /* order */
    frg_dtype dtype;
    int64_t count, groups;
    int64_t *first; /* of each group of members that share a matrix; groups + 1 */
    batch k, r;
    ptrdiff_t row, col, step; /* strides of a matrix and of a vector */
    bool inverse;
    int threads; /* groups at a time */
    size_t matrix_bytes, work_bytes, error_bytes;
    char *matrices;          /* one a group with an inverse, one a thread otherwise */
    char *work;              /* one a thread */
    char *error_memory;      /* one a thread: of the error bounds */
    char *a;                 /* count x n: r, z, a */
    double *iq, *ld, *error; /* count; error: of ell */
    frgi_spd_pivots *pivots; /* groups */
    frg_status *status;      /* groups */
} job;

/** Work memory of the error bounds of a member. */
typedef struct {
    double *roots; /* n: L_ii */
    double *r, *a; /* n, of f32 */
    void *trust;
} error_work;

static size_t lay_out_error_work(char *memory, const job *j, error_work *k)
{
    frgi_arena arena = {.base = memory, .bytes = SIZE_MAX};
    const bool single = j->dtype == FRG_F32;
    k->roots = TAKE(&arena, double, j->n);
    k->r = TAKE(&arena, double, single ? j->n : 0);
    k->a = TAKE(&arena, double, single ? j->n : 0);
    k->trust = frgi_take(&arena, single ? frgi_gp_trust_bytes(j->n) : 0);
    return arena.used;
}

static void lay_out(frgi_arena *arena, job *j)
{
    const size_t size = frg_sizeof(j->dtype);
    const int64_t matrices = j->inverse ? j->groups : j->threads;
    j->matrices = frgi_take(arena, frgi_mul((size_t)matrices, j->matrix_bytes));
    j->work = frgi_take(arena, frgi_mul((size_t)j->threads, j->work_bytes));
    j->error_memory = frgi_take(arena, frgi_mul((size_t)j->threads, j->error_bytes));
    j->a = frgi_take(arena, frgi_mul(frgi_mul((size_t)j->count, (size_t)j->n), size));
    j->iq = TAKE(arena, double, j->count);
    j->ld = TAKE(arena, double, j->count);
    j->error = TAKE(arena, double, j->count);
    j->pivots = TAKE(arena, frgi_spd_pivots, j->groups);
    j->status = TAKE(arena, frg_status, j->groups);
}

static size_t thread_of(const job *j)
{
    return j->threads > 1 ? (size_t)omp_get_thread_num() : 0;
}

/** The matrix of a group, with the work of the thread that asks. */
static frgi_spd matrix_of(const job *j, int64_t group)
{
    const size_t place = j->inverse ? (size_t)group : thread_of(j);
    return frgi_spd_place(j->n, j->dtype, j->matrices + place * j->matrix_bytes,
                          j->work + thread_of(j) * j->work_bytes, "gp");
}

/* ---- error bounds ---- */

static double ell_of(const job *j, int64_t m)
{
    return -0.5 * (j->iq[m] + j->ld[m] + (double)j->n * LOG_2PI);
}

static bool is_finite_column(const job *j, int64_t m)
{
    const char *const r = member(&j->r, m);
    for (ptrdiff_t i = 0; i < j->n; i++)
        if (!isfinite(at(j->dtype, r, i * j->step)))
            return false;
    return true;
}

static double allowed(const job *j, int64_t m)
{
    return ACCURACY * (fabs(ell_of(j, m)) + 1);
}

/** Is the error small enough?  A value that is not finite because r is not is right. */
static bool is_accurate(const job *j, int64_t m)
{
    return isfinite(ell_of(j, m)) ? j->error[m] <= allowed(j, m) : !is_finite_column(j, m);
}

/** error[m] of a group's members by the bound of the dense steps. */
static void bound_errors(const job *j, int64_t g, const frgi_spd *matrix, const error_work *k)
{
    const ptrdiff_t n = j->n;
    const char *const from = member(&j->k, j->first[g]);
    double largest = 0, inverse = 0;
    frgi_spd_diagonal(matrix, k->roots);
    for (ptrdiff_t i = 0; i < n; i++) {
        largest = fmax(largest, at(j->dtype, from, i * (j->row + j->col)));
        inverse += 1 / (k->roots[i] * k->roots[i]);
    }
    for (int64_t m = j->first[g]; m < j->first[g + 1]; m++) {
        double square = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            const double a = at(j->dtype, j->a, i + m * n);
            square += a * a;
        }
        j->error[m] = frgi_gp_rounding_bound(j->dtype, n, largest * (square + inverse));
    }
}

typedef struct {
    const job *j;
    const float *k; /* of the group */
} given_matrix;

/** Rows of the matrix that was given, from its lower triangle. */
static frg_status given_rows(void *user, ptrdiff_t first, ptrdiff_t count, double *to)
{
    const given_matrix *const u = user;
    const job *const j = u->j;
    for (ptrdiff_t c = 0; c < j->n; c++)
        for (ptrdiff_t b = 0; b < count; b++) {
            const ptrdiff_t i = first + b, row = i > c ? i : c, col = i > c ? c : i;
            to[b + c * TRUST_BLOCK] = (double)u->k[row * j->row + col * j->col];
        }
    return FRG_OK;
}

/** error[m] of a group's members in f32 by residuals in f64, where that is less than the bound. */
static frg_status estimate_errors(const job *j, int64_t g, const frgi_spd *matrix,
                                  const error_work *k)
{
    const ptrdiff_t n = j->n;
    given_matrix given = {j, (const float *)(const void *)member(&j->k, j->first[g])};
    const frgi_gp_trust t = {.ctx = j->ctx,
                             .factor = matrix,
                             .memory = k->trust,
                             .q = 1,
                             .r = k->r,
                             .a = k->a,
                             .rows = given_rows,
                             .user = &given};
    double trace = 0;
    for (int64_t m = j->first[g]; m < j->first[g + 1]; m++) {
        for (ptrdiff_t i = 0; i < n; i++) {
            k->r[i] = at(FRG_F32, member(&j->r, m), i * j->step);
            k->a[i] = at(FRG_F32, j->a, i + m * n);
        }
        double quad;
        TRY(frgi_gp_trust_errors(&t, &quad, m == j->first[g] ? &trace : NULL));
        j->error[m] = fmin(j->error[m], 0.5 * (quad + trace));
    }
    return FRG_OK;
}

/** FRG_BROKE_DOWN where f32 is not good enough for a member of the group. */
static frg_status check_errors(const job *j, int64_t g, const frgi_spd *matrix)
{
    error_work k;
    lay_out_error_work(j->error_memory + thread_of(j) * j->error_bytes, j, &k);
    bound_errors(j, g, matrix, &k);
    bool enough = true;
    for (int64_t m = j->first[g]; m < j->first[g + 1]; m++)
        enough = enough && is_accurate(j, m);
    if (enough || j->dtype == FRG_F64)
        return FRG_OK;
    TRY(estimate_errors(j, g, matrix, &k));
    for (int64_t m = j->first[g]; m < j->first[g + 1]; m++)
        if (!is_accurate(j, m))
            return FRG_BROKE_DOWN;
    return FRG_OK;
}

/** "member 3 of the batch: ", "" where there is one alone. */
static const char *name_member(const job *j, int64_t m, char text[64])
{
    text[0] = '\0';
    if (j->count > 1)
        snprintf(text, 64, "member %lld of the batch: ", frgi_nth(j->ctx, m));
    return text;
}

static frg_status refuse_single(const job *j, int64_t g)
{
    char text[64];
    int64_t m = j->first[g];
    while (m + 1 < j->first[g + 1] && is_accurate(j, m))
        m++;
    if (!isfinite(ell_of(j, m)))
        FAIL(j->ctx, E_RANGE_GP, "%sr'K^-1 r overflows in f32", name_member(j, m, text));
    FAIL(j->ctx, E_PRECISION_GP,
         "%sthe log-likelihood %.6g may be wrong by %.2g in float32, %.2g is allowed: give k and r "
         "in f64",
         name_member(j, m, text), ell_of(j, m), j->error[m], allowed(j, m));
}

/** One warning for all members in f64 whose value may be rounding alone. */
static void warn_of_rounding(const job *j)
{
    char text[64], others[64] = "";
    int64_t first = -1, count = 0;
    for (int64_t m = 0; m < j->count; m++)
        if (isfinite(ell_of(j, m)) && frgi_gp_is_rounding(ell_of(j, m), j->error[m])) {
            first = count++ == 0 ? m : first;
        }
    if (count > 1)
        snprintf(others, sizeof others, ", and so may %lld more", (long long)(count - 1));
    if (count > 0)
        frgi_warn(j->ctx, W_ROUNDING_GP,
                  "%sthe log-likelihood %.6g may be wrong by %.2g in float64%s",
                  name_member(j, first, text), ell_of(j, first), j->error[first], others);
}

/* ---- steps ---- */

static frg_status value(const job *j, int64_t g)
{
    const frgi_spd matrix = matrix_of(j, g);
    copy_triangle(j->ctx, &matrix, member(&j->k, j->first[g]), j->row, j->col, true);
    double logdet;
    const frg_status status = frgi_spd_factor(j->ctx, &matrix, &logdet, &j->pivots[g]);
    if (status != FRG_OK)
        return status;
    const ptrdiff_t n = j->n, q = j->first[g + 1] - j->first[g];
    const size_t size = frg_sizeof(j->dtype);
    char *const b = j->a + (size_t)(j->first[g] * n) * size;
    for (ptrdiff_t c = 0; c < q; c++)
        copy_square(size, n, 1, false, member(&j->r, j->first[g] + c), j->step, 0,
                    b + (size_t)(c * n) * size, 1, 0);
    TRY(frgi_spd_forward(j->ctx, &matrix, q, b, n));
    for (ptrdiff_t c = 0; c < q; c++) {
        double sum = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            const double z = at(j->dtype, b, i + c * n);
            sum += z * z;
        }
        j->iq[j->first[g] + c] = sum;
        j->ld[j->first[g] + c] = logdet;
    }
    TRY(frgi_spd_backward(j->ctx, &matrix, q, b, n));
    return check_errors(j, g, &matrix);
}

static frg_status invert(const job *j, int64_t g)
{
    const frgi_spd matrix = matrix_of(j, g);
    return frgi_spd_inverse(j->ctx, &matrix, NULL);
}

/** Every group through `step`; the first one that fails, in their order, gives the status. */
static frg_status each_group(const job *j, frg_status (*step)(const job *, int64_t),
                             int64_t *failed)
{
    if (j->threads == 1) {
        for (*failed = 0; *failed < j->groups; ++*failed) {
            const frg_status status = step(j, *failed);
            if (status != FRG_OK)
                return status;
        }
        return FRG_OK;
    }
#pragma omp parallel for num_threads(j->threads) schedule(dynamic)
    for (int64_t g = 0; g < j->groups; g++)
        j->status[g] = step(j, g);
    for (*failed = 0; *failed < j->groups && j->status[*failed] == FRG_OK; ++*failed)
        ;
    return *failed < j->groups ? j->status[*failed] : FRG_OK;
}

static frg_status not_posdef(const job *j, int64_t g)
{
    char text[64];
    FAIL(j->ctx, E_NOT_POSDEF, "%sthe pivot of row %lld of %lld is %.6g",
         name_member(j, j->first[g], text), frgi_nth(j->ctx, j->pivots[g].pivot), (long long)j->n,
         j->pivots[g].value);
}

static frg_status run(job *j, double *inv_quad, double *logdet, const frg_array *a,
                      const frg_array *inverse)
{
    int64_t failed = 0;
    frg_status status = each_group(j, value, &failed);
    if (status == FRG_NOT_POSDEF)
        return not_posdef(j, failed);
    if (status == FRG_BROKE_DOWN)
        return refuse_single(j, failed);
    if (status == FRG_OK && j->inverse)
        status = each_group(j, invert, &failed);
    if (status != FRG_OK)
        return status;
    const size_t n = (size_t)j->n, size = frg_sizeof(j->dtype), count = (size_t)j->count;
    if (inv_quad)
        memcpy(inv_quad, j->iq, count * sizeof *inv_quad);
    if (logdet)
        memcpy(logdet, j->ld, count * sizeof *logdet);
    if (a)
        memcpy(frgi_array_base(a), j->a, count * n * size);
    for (int64_t g = 0; j->inverse && g < j->groups; g++) {
        const frgi_spd matrix = matrix_of(j, g);
        for (int64_t m = j->first[g]; m < j->first[g + 1]; m++)
            copy_triangle(j->ctx, &matrix, frgi_array_base(inverse) + (size_t)m * n * n * size,
                          j->n, 1, false);
    }
    if (j->dtype == FRG_F64)
        warn_of_rounding(j);
    return FRG_OK;
}

/* ---- checks ---- */

enum { REAL = 1u << FRG_F64 | 1u << FRG_F32 };

static bool contiguous(const frg_array *a)
{
    int64_t step = 1;
    for (int d = a->ndim - 1; d >= 0; step *= a->shape[d--])
        if (a->shape[d] > 1 && a->stride[d] != step)
            return false;
    return true;
}

/** a must have the type of `like` and its shape without the last `drop` axes of it, and n as its
 *  last `own`. */
static frg_status same_batch(frg_context *ctx, const frg_array *a, const char *name, int own,
                             int64_t n, const frg_array *like, int drop)
{
    TRY(frgi_array_check(ctx, a, name, like->ndim - drop + own, REAL));
    if (a->dtype != like->dtype)
        FAIL(ctx, E_DTYPE, "%s has elements of type %s, the others %s", name,
             frg_dtype_name(a->dtype), frg_dtype_name(like->dtype));
    for (int d = 0; d < a->ndim; d++) {
        const int64_t want = d < a->ndim - own ? like->shape[d] : n;
        if (a->shape[d] != want)
            FAIL(ctx, E_SHAPE, "axis %d of %s has length %lld, expected %lld", d, name,
                 (long long)a->shape[d], (long long)want);
    }
    return FRG_OK;
}

/** An output's members must not share memory. */
static frg_status check_output(frg_context *ctx, const frg_array *a, const char *name)
{
    for (int d = 0; d < a->ndim; d++)
        REQUIRE(ctx, a->stride[d] != 0 || a->shape[d] <= 1,
                "%s is written: axis %d must not have stride 0", name, d);
    return FRG_OK;
}

static frg_status find_groups(job *j)
{
    TRY(NEW(j->ctx, &j->first, j->count + 1, "batch"));
    j->groups = 0;
    for (int64_t m = 0; m < j->count; m++)
        if (m == 0 || member(&j->k, m) != member(&j->k, m - 1))
            j->first[j->groups++] = m;
    j->first[j->groups] = j->count;
    return FRG_OK;
}

/** k, r and the outputs of one call fit each other. */
static frg_status check_call(frg_context *ctx, const frg_array *k, const frg_array *r,
                             const frg_array *a, const frg_array *inverse)
{
    REQUIRE(ctx, k->ndim >= 2 && k->ndim <= FRG_MAX_DIM, "k must have 2 to %d axes, got %d",
            FRG_MAX_DIM, k->ndim);
    TRY(frgi_array_check(ctx, k, "k", k->ndim, REAL));
    const int64_t n = k->shape[k->ndim - 1];
    if (k->shape[k->ndim - 2] != n)
        FAIL(ctx, E_SHAPE, "k must be square, got %lld x %lld", (long long)k->shape[k->ndim - 2],
             (long long)n);
    TRY(same_batch(ctx, r, "r", 1, n, k, 2));
    if (a) {
        TRY(same_batch(ctx, a, "a", 1, n, k, 2));
        REQUIRE(ctx, contiguous(a), "a must be contiguous");
    }
    if (inverse) {
        TRY(same_batch(ctx, inverse, "inverse", 2, n, k, 2));
        REQUIRE(ctx, contiguous(inverse), "inverse must be contiguous");
    }
    return FRG_OK;
}

/** The values of matrices without rows. */
static void set_zero(int64_t count, double *out)
{
    for (int64_t m = 0; m < count && out; m++)
        out[m] = 0;
}

frg_status frg_gp_invquad_logdet(frg_context *ctx, frg_array k, frg_array r, double *inv_quad,
                                 double *logdet, const frg_array *a, const frg_array *inverse)
{
    TRY(frgi_host_alone(ctx, "invquad_logdet"));
    TRY(check_call(ctx, &k, &r, a, inverse));
    frgi_run_begins(ctx);
    const int64_t n = k.shape[k.ndim - 1], count = members(&k, 2);
    if (count == 0 || n == 0) {
        set_zero(count, inv_quad);
        set_zero(count, logdet);
        return FRG_OK;
    }
    job j = {.ctx = ctx,
             .n = n,
             .dtype = k.dtype,
             .count = count,
             .k = batch_of(&k, 2),
             .r = batch_of(&r, 1)};
    j.row = k.stride[k.ndim - 2];
    j.col = k.stride[k.ndim - 1];
    j.step = r.stride[r.ndim - 1];
    j.inverse = inverse != NULL;
    frg_status status;
    frgi_arena arena = {0};
    TRY_TO(done, find_groups(&j));
    const int team = frgi_team_size(ctx, true);
    j.threads = j.groups >= team && n < ONE_A_THREAD_BELOW ? team : 1;
    j.matrix_bytes = frgi_spd_bytes(n, k.dtype);
    j.work_bytes = frgi_spd_work_bytes(n, k.dtype, team);
    j.error_bytes = lay_out_error_work(NULL, &j, &(error_work){0});
    lay_out(&arena, &j);
    TRY_TO(done, frgi_arena_open(&arena, ctx, "factors of the matrices"));
    lay_out(&arena, &j);
    status = run(&j, inv_quad, logdet, a, inverse);
done:
    frgi_arena_close(&arena, ctx);
    DROP(ctx, &j.first);
    return status;
}

/* ---- backward ---- */

/** One row of dK: out_j <- g_ld inverse_j - g_iq (a_i a_j), the same bits on both sides of the
 *  diagonal. */
#define ROW_OF(type)                                                                               \
    for (ptrdiff_t j = 0; j < n; j++) {                                                            \
        const double x = inverse ? ld * (double)((const type *)inverse)[j * inverse_step] : 0;     \
        const double product = ai * (double)((const type *)a)[j * a_step];                         \
        ((type *)out)[j * out_step] = (type)(x - iq * product);                                    \
    }

static void row_of(frg_dtype t, ptrdiff_t n, double ld, const void *inverse, ptrdiff_t inverse_step,
                   double iq, double ai, const void *a, ptrdiff_t a_step, void *out,
                   ptrdiff_t out_step)
{
    if (t == FRG_F64)
        ROW_OF(double)
    else
        ROW_OF(float)
}

static void put(frg_dtype t, void *x, ptrdiff_t i, double v)
{
    if (t == FRG_F64)
        ((double *)x)[i] = v;
    else
        ((float *)x)[i] = (float)v;
}

frg_status frg_gp_invquad_logdet_backward(frg_context *ctx, const frg_array *inverse, frg_array a,
                                          const double *g_iq, const double *g_ld,
                                          const frg_array *dk, const frg_array *dr)
{
    TRY(frgi_host_alone(ctx, "the gradient of invquad_logdet"));
    REQUIRE(ctx, a.ndim >= 1 && a.ndim < FRG_MAX_DIM, "a must have 1 to %d axes, got %d",
            FRG_MAX_DIM - 1, a.ndim);
    TRY(frgi_array_check(ctx, &a, "a", a.ndim, REAL));
    const int64_t n = a.shape[a.ndim - 1], count = members(&a, 1);
    const bool needs_inverse = dk && g_ld;
    REQUIRE(ctx, inverse || !needs_inverse,
            "the gradient of logdet with respect to k needs the inverse");
    if (needs_inverse)
        TRY(same_batch(ctx, inverse, "inverse", 2, n, &a, 1));
    if (dk) {
        TRY(same_batch(ctx, dk, "dk", 2, n, &a, 1));
        TRY(check_output(ctx, dk, "dk"));
    }
    if (dr) {
        TRY(same_batch(ctx, dr, "dr", 1, n, &a, 1));
        TRY(check_output(ctx, dr, "dr"));
    }
    if (count == 0 || n == 0)
        return FRG_OK;
    const frg_dtype t = a.dtype;
    const ptrdiff_t size = (ptrdiff_t)frg_sizeof(t), step = a.stride[a.ndim - 1];
    const batch from = batch_of(&a, 1), to = dk ? batch_of(dk, 2) : from,
                to_r = dr ? batch_of(dr, 1) : from;
    const batch with = needs_inverse ? batch_of(inverse, 2) : from;
    const int threads = frgi_team_size(ctx, n >= COPY_THREADS_FROM || count > 1);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t u = 0; u < count * n; u++) {
        const int64_t m = u / n, i = u % n;
        const char *const am = member(&from, m);
        const double iq = g_iq ? g_iq[m] : 0, ld = g_ld ? g_ld[m] : 0, ai = at(t, am, i * step);
        if (dk) {
            const ptrdiff_t across = needs_inverse ? inverse->stride[a.ndim] : 0;
            const char *const row =
                needs_inverse ? member(&with, m) + i * inverse->stride[a.ndim - 1] * size : NULL;
            char *const out = member(&to, m) + i * dk->stride[a.ndim - 1] * size;
            row_of(t, n, ld, row, across, iq, ai, am, step, out, dk->stride[a.ndim]);
        }
        if (dr)
            put(t, member(&to_r, m), i * dr->stride[a.ndim - 1], 2 * iq * ai);
    }
    return FRG_OK;
}
