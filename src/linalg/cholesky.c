/* cholesky.c - a = L L', R = L^-1 and a^-1 = R'R, each in the place of the one before.
 *
 * With I, J, K tiles of rows and columns, X_<I the columns before those of I, P = a^-1:
 *
 *     L_JI = (A_JI - L_J,<I L_I,<I') L_II^-T        by columns of tiles; threads share the rows J
 *     R_JI = -R_JJ sum_{I <= K < J} L_JK R_KI       threads share the rows J of a product with R_KI
 *     P_IJ = sum_{K >= J} R_KI' R_KJ                threads share the tiles, in the upper triangle
 *
 * Cost k^3 / 3 for each.  Inside a tile plain loops; sums over other tiles are BLAS's.
 */
#include "linalg/cholesky.h"

#include <math.h>
#include <string.h>

#include "linalg/blas.h"

enum { TILE = FRGI_CHOLESKY_TILE };

typedef struct {
    double *a; /* k x k, row-major */
    int k, threads;
    const frg_context *stops;
} matrix;

static double *at(const matrix *m, int i, int j)
{
    return m->a + (size_t)i * (size_t)m->k + (size_t)j;
}

/** Rows of the tile that begins with row i. */
static int height(const matrix *m, int i)
{
    return m->k - i < TILE ? m->k - i : TILE;
}

/** Threads that share its tiles. */
static int team(const matrix *m)
{
    return m->k > 2 * TILE ? m->threads : 1;
}

/* One string literal: clang joins none in _Pragma. */
/* clang-format off */
#define FOR_TILES(m, i, from)                                                                      \
    _Pragma("omp parallel for schedule(dynamic, 1) num_threads(team(m))")                          \
    for (int i = (from); i < (m)->k; i += TILE)
/* clang-format on */

static bool is_stopped(const matrix *m)
{
    return m->stops && m->k > TILE && frgi_stopped(m->stops) != FRG_OK;
}

/** One tile needs no BLAS, and so nothing from its threads. */
static frgi_blas_guard begin(int k)
{
    return k > TILE ? frgi_blas_begin() : (frgi_blas_guard){0};
}

static double dot(int n, const double *a, const double *b)
{
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int i = 0; i < n; i++) {
        s += a[i] * b[i];
    }
    return s;
}

/* ---- L --------------------------------------------------------------------------------------- */

/** L_ji of row j for columns first .. end-1, the columns before them taken off: 0 where the
 *  column's row is dropped. */
static void solve_row(const matrix *m, int j, int first, int end, const unsigned char *kept)
{
    double *const row = at(m, j, first);
    for (int i = first; i < end; i++) {
        const double *const earlier = at(m, i, first);
        const int n = i - first;
        row[n] = !kept || kept[i] ? (row[n] - dot(n, row, earlier)) / earlier[n] : 0;
    }
}

/** A_JI -= L_J,<I L_I,<I' */
static void take_off_before(const matrix *m, int j, int i)
{
    if (i > 0) {
        frgi_dgemm('T', 'N', height(m, i), height(m, j), i, -1, at(m, i, 0), m->k, at(m, j, 0),
                   m->k, 1, at(m, j, i), m->k);
    }
}

/** kept NULL: a pivot that is not above tol ends it.  false: ended, or stopped. */
static bool factor(const matrix *m, double tol, unsigned char *kept)
{
    for (int i = 0; i < m->k; i += TILE) {
        const int end = i + height(m, i);
        if (is_stopped(m)) {
            return false;
        }
        take_off_before(m, i, i);
        for (int j = i; j < end; j++) {
            solve_row(m, j, i, j, kept);
            const double left = *at(m, j, j) - dot(j - i, at(m, j, i), at(m, j, i));
            const bool stays = kept ? left >= tol && left > 0 : left > tol;
            if (!kept && !stays) {
                return false;
            }
            if (kept) {
                kept[j] = stays;
            }
            *at(m, j, j) = stays ? sqrt(left) : left;
        }
        FOR_TILES(m, below, end)
        {
            frgi_blas_single();
            take_off_before(m, below, i);
            for (int j = below; j < below + height(m, below); j++) {
                solve_row(m, j, i, end, kept);
            }
        }
    }
    return true;
}

int frgi_cholesky_keep(int k, double *a, double tol, unsigned char *kept, int threads,
                       const frg_context *stops)
{
    const matrix m = {a, k, threads, stops};
    const frgi_blas_guard guard = begin(k);
    memset(kept, 0, (size_t)k);
    (void)factor(&m, tol, kept);
    frgi_blas_end(guard);
    int count = 0;
    for (int j = 0; j < k; j++) {
        count += kept[j];
    }
    return count;
}

void frgi_cholesky_relation(int k, const double *a, const unsigned char *kept, int j, double *x)
{
    memcpy(x, a + (size_t)j * (size_t)k, sizeof *x * (size_t)j);
    for (int i = j - 1; i >= 0; i--) {
        const double *const row = a + (size_t)i * (size_t)k;
        x[i] = kept[i] ? x[i] / row[i] : 0;
        for (int l = 0; l < i; l++) {
            x[l] -= row[l] * x[i];
        }
    }
}

/* ---- R = L^-1 -------------------------------------------------------------------------------- */

/** R_II of L_II, zeros above its diagonal: R_ji = -(sum_{i <= l < j} L_jl R_li) / L_jj. */
static void invert_tile(const matrix *m, int first)
{
    for (int j = first; j < first + height(m, first); j++) {
        double *const row = at(m, j, 0);
        const double scale = 1 / row[j];
        for (int i = first; i < j; i++) { /* row[i] is L_ji until then */
            double s = 0;
            for (int l = i; l < j; l++) {
                s += row[l] * *at(m, l, i);
            }
            row[i] = -s * scale;
        }
        row[j] = scale;
        memset(row + j + 1, 0, sizeof *row * (size_t)(first + height(m, first) - j - 1));
    }
}

/** C <- beta C + alpha times the product of the tiles at (j, k) and (k, i); rows of C are ld
 *  apart. */
static void multiply(const matrix *m, double alpha, int j, int k, int i, double beta, double *c,
                     int ld)
{
    frgi_dgemm('N', 'N', height(m, i), height(m, j), height(m, k), alpha, at(m, k, i), m->k,
               at(m, j, k), m->k, beta, c, ld);
}

/** The tile at (j, i) <- alpha times the product of the tiles at (j, k) and (k, i), one of which it
 *  may be. */
static void replace(const matrix *m, double alpha, int j, int k, int i)
{
    double c[TILE * TILE];
    multiply(m, alpha, j, k, i, 0, c, TILE);
    for (int l = 0; l < height(m, j); l++) {
        memcpy(at(m, j + l, i), c + (ptrdiff_t)l * TILE, sizeof *c * (size_t)height(m, i));
    }
}

/** The column of tiles below R_II.  Sums come in the order of K, in the place of L_JI, which only
 *  the first needs. */
static void invert_column(const matrix *m, int i)
{
    FOR_TILES(m, j, i + TILE)
    {
        frgi_blas_single();
        replace(m, 1, j, i, i);
    }
    for (int k = i + TILE; k < m->k; k += TILE) {
        replace(m, -1, k, k, i);
        FOR_TILES(m, j, k + TILE)
        {
            frgi_blas_single();
            multiply(m, 1, j, k, i, 1, at(m, j, i), m->k);
        }
    }
}

static bool invert_factor(const matrix *m)
{
    FOR_TILES(m, i, 0)
    {
        invert_tile(m, i);
    }
    for (int i = 0; i < m->k; i += TILE) {
        if (is_stopped(m)) {
            return false;
        }
        invert_column(m, i);
    }
    return true;
}

/* ---- P = R'R --------------------------------------------------------------------------------- */

/** P_IJ for all I before J. */
static void square_above(const matrix *m, int j)
{
    if (j > 0) {
        frgi_dgemm('N', 'T', height(m, j), j, m->k - j, 1, at(m, j, j), m->k, at(m, j, 0), m->k, 0,
                   at(m, 0, j), m->k);
    }
}

/** P_II, from R_II and the tiles below it. */
static void square_diagonal(const matrix *m, int first)
{
    const int n = height(m, first), below = first + n;
    double p[TILE * TILE] = {0};
    if (below < m->k) {
        frgi_dgemm('N', 'T', n, n, m->k - below, 1, at(m, below, first), m->k, at(m, below, first),
                   m->k, 0, p, TILE);
    }
    for (int i = 0; i < n; i++) {
        for (int j = i; j < n; j++) {
            double s = 0;
            for (int l = j; l < n; l++) {
                s += *at(m, first + l, first + i) * *at(m, first + l, first + j);
            }
            p[i * TILE + j] += s;
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = i; j < n; j++) {
            *at(m, first + i, first + j) = *at(m, first + j, first + i) = p[i * TILE + j];
        }
    }
}

static bool square(const matrix *m)
{
    if (is_stopped(m)) {
        return false;
    }
    FOR_TILES(m, j, 0)
    {
        frgi_blas_single();
        square_above(m, j);
    }
    FOR_TILES(m, i, 0)
    {
        frgi_blas_single();
        square_diagonal(m, i);
    }
    for (int i = 0; i < m->k; i++) {
        for (int j = 0; j < i; j++) {
            *at(m, i, j) = *at(m, j, i);
        }
    }
    return true;
}

bool frgi_inverse(int k, double *a, double tol, int threads, const frg_context *stops)
{
    const matrix m = {a, k, threads, stops};
    const frgi_blas_guard guard = begin(k);
    const bool done = factor(&m, tol, NULL) && invert_factor(&m) && square(&m);
    frgi_blas_end(guard);
    return done;
}
