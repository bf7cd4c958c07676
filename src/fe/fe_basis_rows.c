/* fe_basis_rows.c - products with the orthonormal columns, chunk by chunk of whole eliminated
 * levels.
 *
 *     times        each u:  y = W^(1/2) sum of phi c over the others;   y <- y - U_u (U_u' y)
 *     transposed   each u:  m = U_u' y;   partial[l] += W^(1/2) phi_l (y - U_u m)
 *     residual     each u:  z <- z - sum of phi c;  each j:  m = sum w phi_j z,  z <- z - phi_j m
 *     scatter      each u:  g_j = sum w phi_j z;   partial[l] += w phi_l z
 *     shift        each row: z <- z - phi c of one factor;   partial[l] += w phi_l z of another
 *
 * U_u has as many columns as an eliminated level has intercept and slopes; taking them out one
 * after the other (residual, times) is modified Gram-Schmidt and keeps digits where the mean is
 * large.  Each body is inlined with the usual numbers of lanes as constants; a lane's operations
 * are the same in all of them, so are its bits.
 */
#include <math.h>
#include <string.h>

#include "core/tree_sum.h"
#include "fe/fe_basis.h"

#define INLINE static inline __attribute__((always_inline))

/** Calls body(..., lanes) with a constant for narrow blocks. */
#define WIDTH(lanes, body, ...)                                                                    \
    case lanes:                                                                                    \
        body(__VA_ARGS__, lanes);                                                                  \
        break;
#define FOR_WIDTH(k, body, ...)                                                                    \
    switch (k) {                                                                                   \
        WIDTH(1, body, __VA_ARGS__)                                                                \
        WIDTH(2, body, __VA_ARGS__)                                                                \
        WIDTH(3, body, __VA_ARGS__)                                                                \
        WIDTH(4, body, __VA_ARGS__)                                                                \
        WIDTH(5, body, __VA_ARGS__)                                                                \
        WIDTH(6, body, __VA_ARGS__)                                                                \
        WIDTH(7, body, __VA_ARGS__)                                                                \
        WIDTH(8, body, __VA_ARGS__)                                                                \
    default:                                                                                       \
        body(__VA_ARGS__, k);                                                                      \
    }

void frgi_basis_work_layout(frgi_arena *a, const fe_basis *b, int64_t lanes, fe_basis_work *w)
{
    const size_t chunks = (size_t)b->g->n_chunks;
    w->b = b;
    w->partial = TAKE(a, double, frgi_mul(chunks * (size_t)lanes, (size_t)b->n_reduced));
    w->along = TAKE(a, double, chunks *(size_t)lanes *(size_t)b->elim.width);
    w->sums = TAKE(a, double, chunks *BASIS_MAX_LANES);
    w->audit = TAKE(a, fe_basis_audit, chunks);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/** y += a x */
INLINE void add(double *restrict y, double a, const double *restrict x, ptrdiff_t k)
{
    for (ptrdiff_t c = 0; c < k; c++) {
        y[c] += a * x[c];
    }
}

/** Coefficients of the row's level of a remaining factor. */
INLINE int64_t place_of(const fe_basis *b, const fe_basis_factor *f, int64_t row, int64_t *level)
{
    *level = b->g->index[row * b->g->n_remaining + f->position] - f->index_base;
    return f->first + *level * f->width;
}

/** v += sum over the factor's columns of phi c */
INLINE void gather(const fe_basis *b, const fe_basis_factor *f, int64_t row, const double *c,
                   double *v, ptrdiff_t k)
{
    int64_t level;
    const double *at = c + place_of(b, f, row, &level) * k;
    if (f->intercept) {
        add(v, f->root[level], at, k);
        at += k;
    }
    for (int s = 0; s < f->slopes; s++, at += k) {
        add(v, f->phi[row * f->slopes + s], at, k);
    }
}

/** at += phi v, `at` the coefficients of the row's level of one factor */
INLINE void scatter_level(const fe_basis_factor *f, int64_t row, int64_t level, const double *v,
                          double *at, ptrdiff_t k)
{
    if (f->intercept) {
        add(at, f->root[level], v, k);
        at += k;
    }
    for (int s = 0; s < f->slopes; s++, at += k) {
        add(at, f->phi[row * f->slopes + s], v, k);
    }
}

/** x += phi v, for all columns of all remaining factors */
INLINE void scatter(const fe_basis *b, int64_t row, const double *v, double *x, ptrdiff_t k)
{
    for (int r = 0; r < b->g->n_remaining; r++) {
        const fe_basis_factor *f = &b->remaining[r];
        int64_t level;
        double *at = x + place_of(b, f, row, &level) * k;
        scatter_level(f, row, level, v, at, k);
    }
}

int frgi_basis_row(const fe_basis *b, int64_t row, int32_t *place, double *value)
{
    int count = 0;
    for (int r = 0; r < b->g->n_remaining; r++) {
        const fe_basis_factor *f = &b->remaining[r];
        int64_t level;
        const int64_t at = place_of(b, f, row, &level);
        for (int j = 0; j < f->width; j++) {
            place[count] = (int32_t)(at + j);
            value[count++] = fe_basis_value(f, level, row, j);
        }
    }
    return count;
}

int frgi_basis_row_width(const fe_basis *b)
{
    int width = 0;
    for (int r = 0; r < b->g->n_remaining; r++) {
        width += b->remaining[r].width;
    }
    return width;
}

/** along = sum over the eliminated level's rows of (weight) phi_j y */
INLINE void sum_along(const fe_basis *b, int64_t elim, int j, const double *weight, const double *y,
                      double *along, ptrdiff_t k)
{
    for (ptrdiff_t c = 0; c < k; c++) {
        along[c] = 0;
    }
    for (int64_t i = b->g->elim_start[elim]; i < b->g->elim_start[elim + 1]; i++) {
        const double phi = fe_basis_value(&b->elim, elim, i, j);
        add(along, weight ? weight[i] * phi : phi, y + i * k, k);
    }
}

/* ---- A_r and its transpose ------------------------------------------------------------------- */

INLINE void times_chunk(const fe_basis *b, int chunk, const double *c, double *y, const ptrdiff_t k)
{
    const fe_rows *g = b->g;
    const double *root = b->root_weight;
    for (int64_t u = g->chunk_elim[chunk]; u < g->chunk_elim[chunk + 1]; u++) {
        const int64_t begin = g->elim_start[u], end = g->elim_start[u + 1];
        for (int64_t i = begin; i < end; i++) {
            double v[BASIS_MAX_LANES] = {0};
            for (int r = 0; r < g->n_remaining; r++) {
                gather(b, &b->remaining[r], i, c, v, k);
            }
            for (ptrdiff_t l = 0; l < k; l++) {
                y[i * k + l] = root ? root[i] * v[l] : v[l];
            }
        }
        for (int j = 0; j < b->elim.width; j++) {
            double along[BASIS_MAX_LANES];
            sum_along(b, u, j, root, y, along, k);
            for (int64_t i = begin; i < end; i++) {
                const double phi = fe_basis_value(&b->elim, u, i, j);
                add(y + i * k, root ? -root[i] * phi : -phi, along, k);
            }
        }
    }
}

/** Chunks of a product are skipped then: the caller polls again and discards the product. */
static bool is_stopped(const fe_basis_work *w)
{
    return w->stops && frgi_stopped(w->stops) != FRG_OK;
}

void frgi_basis_times(const void *data, int64_t k, const double *c, double *y)
{
    const fe_basis_work *w = data;
    const fe_basis *b = w->b;
#pragma omp parallel for num_threads(w->threads) schedule(static, 1) if (b->g->n_chunks > 1)
    for (int i = 0; i < b->g->n_chunks; i++) {
        if (is_stopped(w)) {
            continue;
        }
        FOR_WIDTH(k, times_chunk, b, i, c, y)
    }
}

INLINE void transposed_chunk(const fe_basis *b, int chunk, const double *y, double *along,
                             double *partial, const ptrdiff_t k)
{
    const fe_rows *g = b->g;
    const double *root = b->root_weight;
    for (int64_t u = g->chunk_elim[chunk]; u < g->chunk_elim[chunk + 1]; u++) {
        for (int j = 0; j < b->elim.width; j++) {
            sum_along(b, u, j, root, y, along + j * k, k);
        }
        for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
            const double weight = root ? root[i] : 1;
            double v[BASIS_MAX_LANES];
            for (ptrdiff_t l = 0; l < k; l++) {
                v[l] = y[i * k + l];
            }
            for (int j = 0; j < b->elim.width; j++) {
                add(v, -weight * fe_basis_value(&b->elim, u, i, j), along + j * k, k);
            }
            for (ptrdiff_t l = 0; l < k; l++) {
                v[l] *= weight;
            }
            scatter(b, i, v, partial, k);
        }
    }
}

void frgi_basis_transposed(const void *data, int64_t k, const double *y, double *x)
{
    const fe_basis_work *w = data;
    const fe_basis *b = w->b;
    const int64_t length = b->n_reduced * k;
#pragma omp parallel for num_threads(w->threads) schedule(static, 1) if (b->g->n_chunks > 1)
    for (int i = 0; i < b->g->n_chunks; i++) {
        double *partial = w->partial + i * length, *along = w->along + i * b->elim.width * k;
        memset(partial, 0, (size_t)length * sizeof *partial);
        if (is_stopped(w)) {
            continue;
        }
        FOR_WIDTH(k, transposed_chunk, b, i, y, along, partial)
    }
    frgi_fe_add_chunks(b->g, w->partial, w->threads, length, x);
}

/* ---- residuals and their audit --------------------------------------------------------------- */

INLINE void raise(double *max_abs, const double *v, ptrdiff_t k)
{
    for (ptrdiff_t c = 0; c < k; c++) {
        max_abs[c] = fabs(v[c]) > max_abs[c] ? fabs(v[c]) : max_abs[c];
    }
}

INLINE void residual_chunk(const fe_basis *b, int chunk, const double *c, double *z, double *elim,
                           double *effect, const ptrdiff_t k)
{
    const fe_rows *g = b->g;
    for (int64_t u = g->chunk_elim[chunk]; u < g->chunk_elim[chunk + 1]; u++) {
        const int64_t begin = g->elim_start[u], end = g->elim_start[u + 1];
        for (int64_t i = begin; c && i < end; i++) {
            for (int r = 0; r < g->n_remaining; r++) {
                double v[BASIS_MAX_LANES] = {0};
                gather(b, &b->remaining[r], i, c, v, k);
                add(z + i * k, -1, v, k);
                raise(effect, v, k);
            }
        }
        double *of_elim = elim + u * b->elim.width * k;
        for (int j = 0; j < b->elim.width; j++) {
            double along[BASIS_MAX_LANES], contribution[BASIS_MAX_LANES];
            sum_along(b, u, j, g->weight, z, along, k);
            for (int64_t i = begin; i < end; i++) {
                for (ptrdiff_t l = 0; l < k; l++) {
                    contribution[l] = fe_basis_value(&b->elim, u, i, j) * along[l];
                    z[i * k + l] -= contribution[l];
                }
                raise(effect, contribution, k);
            }
            add(of_elim + j * k, 1, along, k);
        }
    }
}

void frgi_basis_residual(const fe_basis_work *w, int64_t k, const double *c, double *z,
                         double *elim, double *effect)
{
    const fe_basis *b = w->b;
#pragma omp parallel for num_threads(w->threads) schedule(static, 1) if (b->g->n_chunks > 1)
    for (int i = 0; i < b->g->n_chunks; i++) {
        double *max_abs = w->sums + i * BASIS_MAX_LANES;
        memset(max_abs, 0, BASIS_MAX_LANES * sizeof *max_abs);
        FOR_WIDTH(k, residual_chunk, b, i, c, z, elim, max_abs)
    }
    for (int64_t l = 0; effect && l < k; l++) {
        effect[l] = 0;
        for (int i = 0; i < b->g->n_chunks; i++) {
            effect[l] = fmax(effect[l], w->sums[i * BASIS_MAX_LANES + l]);
        }
    }
}

INLINE void scatter_chunk(const fe_basis *b, int chunk, const double *z, double *along,
                          double *partial, fe_basis_audit *a, const ptrdiff_t k)
{
    const fe_rows *g = b->g;
    for (ptrdiff_t l = 0; l < k; l++) {
        a->worst[l] = g->chunk_elim[chunk];
    }
    for (int64_t u = g->chunk_elim[chunk]; u < g->chunk_elim[chunk + 1]; u++) {
        for (int j = 0; j < b->elim.width; j++) {
            sum_along(b, u, j, g->weight, z, along, k);
            for (ptrdiff_t l = 0; l < k; l++) {
                const double mean = fabs(along[l]) * b->elim.root[u];
                a->gradient[l] += along[l] * along[l];
                a->worst[l] = mean > a->mean[l] ? u : a->worst[l];
                a->mean[l] = mean > a->mean[l] ? mean : a->mean[l];
            }
        }
        for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
            double v[BASIS_MAX_LANES];
            for (ptrdiff_t l = 0; l < k; l++) {
                v[l] = g->weight ? g->weight[i] * z[i * k + l] : z[i * k + l];
                a->square[l] += v[l] * z[i * k + l];
            }
            scatter(b, i, v, partial, k);
        }
    }
}

static void merge_audits(fe_basis_audit *t, const fe_basis_audit *m, int64_t k)
{
    for (int64_t l = 0; l < k; l++) {
        t->square[l] += m->square[l];
        t->gradient[l] += m->gradient[l];
        t->worst[l] = m->mean[l] > t->mean[l] ? m->worst[l] : t->worst[l];
        t->mean[l] = m->mean[l] > t->mean[l] ? m->mean[l] : t->mean[l];
    }
}

void frgi_basis_scatter(const fe_basis_work *w, int64_t k, const double *z, double *s,
                        fe_basis_audit *total)
{
    const fe_basis *b = w->b;
    const int64_t length = b->n_reduced * k;
#pragma omp parallel for num_threads(w->threads) schedule(static, 1) if (b->g->n_chunks > 1)
    for (int i = 0; i < b->g->n_chunks; i++) {
        double *partial = w->partial + i * length, *along = w->along + i * b->elim.width * k;
        memset(partial, 0, (size_t)length * sizeof *partial);
        memset(&w->audit[i], 0, sizeof w->audit[i]);
        FOR_WIDTH(k, scatter_chunk, b, i, z, along, partial, &w->audit[i])
    }
    frgi_fe_add_chunks(b->g, w->partial, w->threads, length, s);
    for (frgi_tree_pair p = {.n = b->g->n_chunks}; frgi_tree_next(&p);) {
        merge_audits(&w->audit[p.to], &w->audit[p.from], k);
    }
    *total = w->audit[0];
}

INLINE void shift_chunk(const fe_basis *b, int chunk, const fe_basis_factor *from, const double *c,
                        const fe_basis_factor *to, double *z, double *partial, double *square,
                        const ptrdiff_t k)
{
    const fe_rows *g = b->g;
    const int64_t end = g->elim_start[g->chunk_elim[chunk + 1]];
    for (int64_t i = g->elim_start[g->chunk_elim[chunk]]; i < end; i++) {
        double v[BASIS_MAX_LANES] = {0};
        if (from) {
            gather(b, from, i, c, v, k);
            add(z + i * k, -1, v, k);
        }
        for (ptrdiff_t l = 0; l < k; l++) {
            v[l] = g->weight ? g->weight[i] * z[i * k + l] : z[i * k + l];
            square[l] += v[l] * z[i * k + l];
        }
        int64_t level;
        place_of(b, to, i, &level);
        scatter_level(to, i, level, v, partial + level * to->width * k, k);
    }
}

void frgi_basis_shift(const fe_basis_work *w, int64_t k, const fe_basis_factor *from,
                      const double *c, const fe_basis_factor *to, double *z, double *s,
                      double *square)
{
    const fe_basis *b = w->b;
    const int64_t length = to->levels * to->width * k;
#pragma omp parallel for num_threads(w->threads) schedule(static, 1) if (b->g->n_chunks > 1)
    for (int i = 0; i < b->g->n_chunks; i++) {
        double *partial = w->partial + i * length, *sums = w->sums + i * BASIS_MAX_LANES;
        memset(partial, 0, (size_t)length * sizeof *partial);
        memset(sums, 0, BASIS_MAX_LANES * sizeof *sums);
        if (is_stopped(w)) {
            continue;
        }
        switch (k) {
            WIDTH(1, shift_chunk, b, i, from, c, to, z, partial, sums)
        default:
            shift_chunk(b, i, from, c, to, z, partial, sums, k);
        }
    }
    frgi_fe_add_chunks(b->g, w->partial, w->threads, length, s + to->first * k);
    frgi_tree_rows(w->sums, b->g->n_chunks, BASIS_MAX_LANES, k, square);
}

/* ---- size of a column ------------------------------------------------------------------------ */

/** sums <- sum of w (z - mean)^power, power 1 or 2 */
INLINE void power_chunk(const fe_basis *b, int chunk, const double *z, const double *mean,
                        bool square, double *sums, const ptrdiff_t k)
{
    const fe_rows *g = b->g;
    const int64_t begin = g->elim_start[g->chunk_elim[chunk]];
    const int64_t end = g->elim_start[g->chunk_elim[chunk + 1]];
    for (int64_t i = begin; i < end; i++) {
        const double weight = g->weight ? g->weight[i] : 1;
        for (ptrdiff_t l = 0; l < k; l++) {
            const double d = z[i * k + l] - mean[l];
            sums[l] += weight * (square ? d * d : d);
        }
    }
}

static void add_powers(const fe_basis_work *w, int64_t k, const double *z, const double *mean,
                       bool square, double *out)
{
    const fe_basis *b = w->b;
#pragma omp parallel for num_threads(w->threads) schedule(static, 1) if (b->g->n_chunks > 1)
    for (int i = 0; i < b->g->n_chunks; i++) {
        double *sums = w->sums + i * BASIS_MAX_LANES;
        memset(sums, 0, BASIS_MAX_LANES * sizeof *sums);
        FOR_WIDTH(k, power_chunk, b, i, z, mean, square, sums)
    }
    frgi_tree_rows(w->sums, b->g->n_chunks, BASIS_MAX_LANES, k, out);
}

void frgi_basis_moments(const fe_basis_work *w, int64_t k, const double *z, double *norm2,
                        double *square)
{
    double mean[BASIS_MAX_LANES] = {0}, sum[BASIS_MAX_LANES];
    add_powers(w, k, z, mean, true, norm2);
    if (w->b->centred && w->b->total_weight > 0) {
        add_powers(w, k, z, mean, false, sum);
        for (int64_t l = 0; l < k; l++) {
            mean[l] = sum[l] / w->b->total_weight;
        }
    }
    add_powers(w, k, z, mean, true, square);
}
