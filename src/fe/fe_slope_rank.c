/* fe_slope_rank.c - the exact rank of D with varying slopes.
 *
 * A double is an integer times a power of two, so that D is a rational matrix and has a rank there,
 * which is counted modulo p = 2^61 - 1, where m 2^e is m 2^(e mod 61).  Row by row the columns of
 * an eliminated level are eliminated by the first of its rows that are independent in them,
 *
 *     c_i d_i = sum_j c_ij d_j  in its columns, j over pivot rows:  v_i = c_i r_i - sum_j c_ij r_j,
 *
 * r the row's entries in the other factors' columns, and rank D = sum of the eliminated levels'
 * ranks + rank of the v_i (prime_rank.h).  The factors c_i save the inverses of the pivots, 100
 * products each.
 *
 * Dangers: values whose sizes are 2^61 apart and more may be the same modulo p; then there is no
 * count.  Columns that depend on each other but for the rounding of their values (z and 0.1 z) are
 * independent here, and not for the demeaner: fe_row_lsmr_rank.c compares both counts.
 *
 * Cost: two passes over the rows with (columns of an eliminated level)^2 products each; then the
 * sparse factor.
 */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "fe/fe_row_lsmr_plan.h"
#include "sparse/prime.h"
#include "sparse/prime_rank.h"

enum { EXPONENTS = 61 };

typedef struct {
    const fe_basis *b;
    int width;          /* columns of an eliminated level */
    int64_t elim_ranks; /* added up */
    uint64_t *image;    /* n a slope that has values of its own, as in b->z */
    uint64_t *row;      /* width: the eliminated level's columns of the current row, reduced */
    uint64_t scale;     /* c_i */
    uint64_t *along;    /* width: c_ij */
    uint64_t *basis;    /* width x width: reduced pivot rows, */
    uint64_t *made;     /* width x width: of which pivot rows they are made */
    int64_t *pivot_row; /* width */
    int *pivot;         /* width: its column */
    int32_t *at, *slot; /* places that the current vector has; R: their number in it, or -1 */
    uint64_t *value;    /* as at */
    int count;
} elimination;

/** z modulo the prime. */
static uint64_t image_of(double z)
{
    int e;
    const uint64_t m = (uint64_t)ldexp(frexp(fabs(z), &e), DBL_MANT_DIG);
    const int shift = ((e - DBL_MANT_DIG) % EXPONENTS + EXPONENTS) % EXPONENTS;
    const uint64_t size = frgi_prime_times(m, (uint64_t)1 << shift);
    return z < 0 ? frgi_prime_minus(size) : size;
}

/** Makes the images; false where the sizes of a slope's values are too far apart. */
static bool make_images(const elimination *m)
{
    const fe_basis *const b = m->b;
    for (int s = 0; s < b->n_z; s++) {
        const double *const z = b->z + s * b->g->n;
        int least = INT_MAX, most = INT_MIN;
        for (int64_t i = 0; i < b->g->n; i++) {
            const int e = z[i] == 0 ? 0 : ilogb(z[i]);
            least = z[i] != 0 && e < least ? e : least;
            most = z[i] != 0 && e > most ? e : most;
            m->image[s * b->g->n + i] = image_of(z[i]);
        }
        if (most >= least && most - least >= EXPONENTS) {
            return false;
        }
    }
    return true;
}

static const uint64_t *image(const elimination *m, const fe_basis_factor *f, int s, int64_t i)
{
    return m->image + (int64_t)f->z_place[s] * m->b->g->n + i;
}

/* ---- an eliminated level --------------------------------------------------------------------- */

/** to <- e to + f from */
static void combine(uint64_t *to, uint64_t e, uint64_t f, const uint64_t *from, int n)
{
    for (int k = 0; k < n; k++) {
        to[k] = frgi_prime_plus(frgi_prime_times(e, to[k]), frgi_prime_times(f, from[k]));
    }
}

/** Reduces row i in the eliminated level's columns: m->row = m->scale d_i - sum_j m->along_j
 *  d_j. */
static void reduce(elimination *m, int64_t i, int pivots)
{
    const fe_basis_factor *const f = &m->b->elim;
    m->row[0] = m->scale = 1;
    for (int s = 0; s < f->slopes; s++) {
        m->row[f->intercept + s] = *image(m, f, s, i);
    }
    memset(m->along, 0, (size_t)m->width * sizeof *m->along);
    for (int p = 0; p < pivots; p++) {
        const uint64_t *const basis = m->basis + p * m->width;
        const uint64_t c = m->row[m->pivot[p]], e = basis[m->pivot[p]];
        if (c) {
            combine(m->row, e, frgi_prime_minus(c), basis, m->width);
            combine(m->along, e, c, m->made + p * m->width, m->width);
            m->scale = frgi_prime_times(e, m->scale);
        }
    }
}

/** Row i, reduced, as pivot row `p` where something is left of it. */
static bool take_pivot(const elimination *m, int64_t i, int p)
{
    int column = 0;
    while (column < m->width && m->row[column] == 0) {
        column++;
    }
    if (column == m->width) {
        return false;
    }
    for (int k = 0; k < m->width; k++) {
        m->basis[p * m->width + k] = m->row[k];
        m->made[p * m->width + k] = k == p ? m->scale : frgi_prime_minus(m->along[k]);
    }
    m->pivot[p] = column;
    m->pivot_row[p] = i;
    return true;
}

static void add_place(elimination *m, int64_t place, uint64_t value)
{
    int32_t *const slot = &m->slot[place];
    if (*slot < 0) {
        *slot = m->count;
        m->at[m->count] = (int32_t)place;
        m->value[m->count++] = 0;
    }
    m->value[*slot] = frgi_prime_plus(m->value[*slot], value);
}

/** v <- v + c r_i */
static void add_remaining(elimination *m, int64_t i, uint64_t c)
{
    const fe_rows *const g = m->b->g;
    for (int r = 0; c && r < g->n_remaining; r++) {
        const fe_basis_factor *const f = &m->b->remaining[r];
        const int64_t first =
            f->first + (g->index[i * g->n_remaining + r] - f->index_base) * f->width;
        if (f->intercept) {
            add_place(m, first, c);
        }
        for (int s = 0; s < f->slopes; s++) {
            add_place(m, first + f->intercept + s, frgi_prime_times(c, *image(m, f, s, i)));
        }
    }
}

/** Hands v_i on without its zeros. */
static void give(elimination *m, int64_t i, frgi_prime_take *take, void *to)
{
    int kept = 0;
    for (int k = 0; k < m->count; k++) {
        m->slot[m->at[k]] = -1;
        if (m->value[k]) {
            m->at[kept] = m->at[k];
            m->value[kept++] = m->value[k];
        }
    }
    m->count = 0;
    if (kept) {
        take(to, i, kept, m->at, m->value);
    }
}

static frg_status each_row(void *data, frgi_prime_take *take, void *to)
{
    elimination *const m = data;
    const fe_rows *const g = m->b->g;
    m->elim_ranks = 0;
    for (int64_t u = 0; u < g->n_elim; u++) {
        int pivots = 0;
        for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
            if (g->weight && !(g->weight[i] > 0)) {
                continue;
            }
            reduce(m, i, pivots);
            if (take_pivot(m, i, pivots)) {
                pivots++;
                continue;
            }
            add_remaining(m, i, m->scale);
            for (int p = 0; p < pivots; p++) {
                add_remaining(m, m->pivot_row[p], frgi_prime_minus(m->along[p]));
            }
            give(m, i, take, to);
        }
        m->elim_ranks += pivots;
    }
    return FRG_OK;
}

/* ---- the count ------------------------------------------------------------------------------- */

static void lay_out(frgi_arena *a, elimination *m)
{
    const int64_t width = m->width, columns = frgi_basis_row_width(m->b);
    m->image = TAKE(a, uint64_t, m->b->n_z * m->b->g->n);
    m->row = TAKE(a, uint64_t, width);
    m->along = TAKE(a, uint64_t, width);
    m->basis = TAKE(a, uint64_t, width * width);
    m->made = TAKE(a, uint64_t, width * width);
    m->pivot_row = TAKE(a, int64_t, width);
    m->pivot = TAKE(a, int, width);
    m->at = TAKE(a, int32_t, columns * (width + 1));
    m->value = TAKE(a, uint64_t, columns * (width + 1));
    m->slot = TAKE(a, int32_t, m->b->n_reduced);
}

frg_status frgi_fe_slope_rank(const fe_basis *b, frg_context *ctx, double work_most,
                              size_t byte_cap, int64_t *rank)
{
    elimination m = {.b = b, .width = b->elim.width};
    frgi_arena memory = {0};
    int64_t remaining_rank = -1;
    frg_status status = FRG_OK;
    *rank = -1;
    if (!b->z || b->n_reduced > INT32_MAX) {
        return FRG_OK;
    }
    lay_out(&memory, &m);
    TRY(frgi_arena_open(&memory, ctx, "exact rank of the effects"));
    lay_out(&memory, &m);
    memset(m.slot, -1, (size_t)b->n_reduced * sizeof *m.slot);
    if (make_images(&m)) {
        const frgi_prime_limits most = {
            .work = work_most, .entries = (double)INFINITY, .bytes = byte_cap, .solver = "fe"};
        status = frgi_prime_rank(ctx, b->n_reduced, each_row, &m, &most, &remaining_rank);
        *rank = status >= 0 && remaining_rank >= 0 ? m.elim_ranks + remaining_rank : -1;
    }
    frgi_arena_close(&memory, ctx);
    return status;
}
