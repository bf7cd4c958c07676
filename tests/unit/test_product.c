/* Products of matrices on tiles, by the kernels of AVX2 and by BLAS beside sums in double
 * precision.
 *
 * Bound of an entry with |a|'|b| = s: tiles leave out less than 2u s (u = 2^-24), sum 16 products
 * of each half of a word one after another, add six such sums for every 32 of k to past C, and
 * round that and the weight's multiples once; every rounding is at most u s.  BLAS and AVX2 round
 * at most k times.  (16 + 1 + 6 ceil(k / 32) + 2 + 2) u s and (k + 2) u s hold for both below. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "linalg/blas.h"
#include "linalg/product.h"
#include "test.h"

enum { LD = 301, SPACE = LD * LD };

typedef struct {
    frg_context *ctx;
    frgi_arena arena;
    frgi_product_workspace room;
    float *a, *b, *c, *old;
} work;

static void fill(float *x)
{
    for (int i = 0; i < SPACE; i++) {
        x[i] = (float)ldexp(test_uniform() - 0.5, (int)(16 * test_uniform()) - 8);
    }
}

/** The machine's own tiles, AVX-512 or AVX2; BLAS where it has them not. */
static frgi_product_way possible(const work *w, frgi_product_way way)
{
#ifdef EMULATED_TILES
    const bool tiles = true;
#else
    const bool tiles = frgi_context_tiles(w->ctx);
#endif
    const bool has = way == PRODUCT_TILES
                         ? tiles
                         : frgi_context_isa(w->ctx) >= (way == PRODUCT_AVX512 ? ISA_V4 : ISA_V3);
    return has ? way : PRODUCT_BLAS;
}

static bool open_work(work *w, frgi_product_way way)
{
    *w = (work){.ctx = test_context()};
    for (int pass = 0; pass < 2; pass++) {
        frgi_product_workspace_take(&w->arena, &w->room, possible(w, way));
        w->a = TAKE(&w->arena, float, SPACE);
        w->b = TAKE(&w->arena, float, SPACE);
        w->c = TAKE(&w->arena, float, SPACE);
        w->old = TAKE(&w->arena, float, SPACE);
        if (pass == 0 && frgi_arena_open(&w->arena, w->ctx, "a test") < 0) {
            return false;
        }
    }
    fill(w->a);
    fill(w->b);
    fill(w->c);
    memcpy(w->old, w->c, SPACE * sizeof *w->c);
    return true;
}

static void close_work(work *w)
{
    frgi_arena_close(&w->arena, w->ctx);
    frg_context_destroy(w->ctx);
}

typedef double (*element)(const work *w, int i, int k);

static double a_plain(const work *w, int i, int k)
{
    return (double)w->a[k * LD + i];
}

static double a_turned(const work *w, int i, int k)
{
    return (double)w->a[i * LD + k];
}

static double a_symmetric(const work *w, int i, int k)
{
    return i >= k ? a_plain(w, i, k) : a_plain(w, k, i);
}

static double b_plain(const work *w, int j, int k)
{
    return (double)w->b[j * LD + k];
}

static double b_turned(const work *w, int j, int k)
{
    return (double)w->b[k * LD + j];
}

/** C = past old + weight (left right'), within rounding; what lies outside C or above `lower` is
 *  untouched. */
static bool right(const work *w, int m, int n, int k, element left, element other, double past,
                  double weight, bool lower)
{
    const double u = 0x1p-24,
                 roundings = k + 2 > 21 + 6 * (k / 32 + 1) ? k + 2 : 21 + 6 * (k / 32 + 1);
    for (int j = 0; j < LD; j++) {
        for (int i = 0; i < LD; i++) {
            const double was = (double)w->old[j * LD + i], is = (double)w->c[j * LD + i];
            double sum = past * was, size = fabs(sum);
            if (i >= m || j >= n || (lower && i < j)) {
                if (is != was) {
                    return false;
                }
                continue;
            }
            for (int p = 0; p < k; p++) {
                const double x = weight * left(w, i, p) * other(w, j, p);
                sum += x;
                size += fabs(x);
            }
            if (!(fabs(is - sum) <= roundings * u * size)) {
                return false;
            }
        }
    }
    return true;
}

static void restore(work *w)
{
    memcpy(w->c, w->old, SPACE * sizeof *w->c);
}

/** Every way in every size: whole tiles, one more and one less, below and beyond a block of k. */
static void every_way(frgi_product_way with)
{
    static const int sizes[][3] = {{1, 1, 1},     {31, 64, 64},   {32, 32, 32},
                                   {33, 47, 35},  {47, 34, 40},   {64, 96, 128},
                                   {70, 33, 129}, {150, 40, 300}, {211, 38, 41}};
    work w;
    if (!open_work(&w, with)) {
        CHECK(false);
        return;
    }
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
        for (int way = 0; way < 4; way++) {
            restore(&w);
            frgi_product(&w.room, way & 1 ? 'T' : 'N', way & 2 ? 'T' : 'N', m, n, k, w.a, LD, w.b,
                         LD, w.c, LD);
            CHECK(right(&w, m, n, k, way & 1 ? a_turned : a_plain, way & 2 ? b_turned : b_plain, 0,
                        1, false));
        }
        restore(&w);
        frgi_product_symmetric(&w.room, m, n, w.a, LD, w.b, LD, w.c, LD);
        CHECK(right(&w, m, n, m, a_symmetric, b_plain, 0, 1, false));
        for (int turned = 0; turned < 2; turned++) {
            const element x = turned ? a_turned : a_plain;
            restore(&w);
            frgi_product_square(&w.room, turned ? 'T' : 'N', n, k, 0.25f, w.a, LD, 0.5f, w.c, LD);
            CHECK(right(&w, n, n, k, x, x, 0.5, 0.25, true));
        }
    }
    close_work(&w);
}

/** Several products with one B are the products one by one, to the bit. */
static void several(void)
{
    enum { COUNT = 3, M = 40, N = 70, K = 33, APART = 80 * 70 };
    for (frgi_product_way with = PRODUCT_BLAS; with <= PRODUCT_TILES; with++) {
        work w;
        if (!open_work(&w, with)) {
            CHECK(false);
            return;
        }
        for (int turned = 0; turned < 2; turned++) {
            const char way = turned ? 'T' : 'N';
            frgi_product_each(&w.room, way, COUNT, APART, M, N, K, w.a, M, w.b, LD, w.c, M);
            for (int i = 0; i < COUNT; i++) {
                frgi_product(&w.room, 'N', way, M, N, K, w.a + i * APART, M, w.b, LD, w.old, M);
                CHECK_BITS(w.c + i * APART, w.old, M * N * sizeof *w.old);
            }
        }
        close_work(&w);
    }
}

static void on_tiles(void)
{
    every_way(PRODUCT_TILES);
}

static void on_avx2(void)
{
    every_way(PRODUCT_AVX2);
}

static void on_avx512(void)
{
    every_way(PRODUCT_AVX512);
}

static void by_blas(void)
{
    every_way(PRODUCT_BLAS);
}

/** More columns than are packed at a time. */
static void many_columns_with(frgi_product_way with)
{
    enum { M = 40, N = 1546, K = 33 };
    work w;
    if (!open_work(&w, with)) {
        CHECK(false);
        return;
    }
    float *const x = w.old; /* N columns of K, then of M */
    frgi_product(&w.room, 'N', 'N', M, N, K, w.a, LD, w.b, K, x, M);
    double worst = 0;
    for (int j = 0; j < N; j++) {
        for (int i = 0; i < M; i++) {
            double sum = 0, size = 0;
            for (int p = 0; p < K; p++) {
                const double y = (double)w.a[p * LD + i] * (double)w.b[j * K + p];
                sum += y;
                size += fabs(y);
            }
            worst = fmax(worst, fabs((double)x[j * M + i] - sum) / size);
        }
    }
    CHECK(worst <= 35 * 0x1p-24);
    close_work(&w);
}

static void many_columns(void)
{
    many_columns_with(PRODUCT_TILES);
    many_columns_with(PRODUCT_AVX2);
    many_columns_with(PRODUCT_AVX512);
}

/** AVX-512 has the bits of AVX2: rows by four panels and what is left over, k in pieces, over what C
 *  holds or not. */
static void same_bits(void)
{
    enum { M = 217, N = 37, K = 301 };
    work w;
    if (!open_work(&w, PRODUCT_AVX512)) {
        CHECK(false);
        return;
    }
    frgi_product_workspace narrow = w.room;
    narrow.way = PRODUCT_AVX2;
    for (int past = 0; past < 2 && w.room.way == PRODUCT_AVX512; past++) {
        memcpy(w.old, w.c, sizeof *w.c * M * N);
        frgi_product_blend(&w.room, 'N', 'T', M, N, K, -2, w.a, M, w.b, N, (float)past, w.c, M);
        frgi_product_blend(&narrow, 'N', 'T', M, N, K, -2, w.a, M, w.b, N, (float)past, w.old, M);
        CHECK_BITS(w.c, w.old, M * N * sizeof *w.c);
    }
    close_work(&w);
}

/** A NaN or an infinity shows in its row and column, and nowhere else. */
static void not_finite(void)
{
    enum { N = 64 };
    for (frgi_product_way with = PRODUCT_BLAS; with <= PRODUCT_TILES; with++) {
        work w;
        if (!open_work(&w, with)) {
            CHECK(false);
            return;
        }
        w.a[3 * LD + 5] = NAN;      /* row 5 */
        w.b[7 * LD + 2] = INFINITY; /* column 7 */
        frgi_product(&w.room, 'N', 'N', N, N, N, w.a, LD, w.b, LD, w.c, LD);
        bool fine = true;
        for (int j = 0; j < N; j++) {
            for (int i = 0; i < N; i++) {
                fine &= isfinite(w.c[j * LD + i]) == (i != 5 && j != 7);
            }
        }
        CHECK(fine);
        close_work(&w);
    }
}

extern int openblas_get_parallel(void) __attribute__((weak));

/** Between the guards an OpenMP build of OpenBLAS runs on the thread that calls it, whatever number
 *  of threads there is; guards may stand in each other. */
static void one_thread(void)
{
    enum { WITH_OPENMP = 2 };
    const int before = omp_get_max_threads();
    omp_set_num_threads(3);
    const frgi_blas_guard outer = frgi_blas_begin();
    if (openblas_get_parallel && openblas_get_parallel() == WITH_OPENMP) {
        const frgi_blas_guard inner = frgi_blas_begin();
        CHECK_INT(omp_get_max_threads(), 1);
        frgi_blas_end(inner);
        CHECK_INT(omp_get_max_threads(), 1);
    }
    frgi_blas_end(outer);
    CHECK_INT(omp_get_max_threads(), 3);
    omp_set_num_threads(before);
}

#ifndef EMULATED_TILES
static const test_case cases[] = {{"on tiles", on_tiles},         {"on AVX2", on_avx2},
                                  {"on AVX-512", on_avx512},      {"the bits of AVX2", same_bits},
                                  {"by BLAS", by_blas},           {"many columns", many_columns},
                                  {"several", several},           {"not finite", not_finite},
                                  {"one BLAS thread", one_thread}};
TEST_MAIN(cases)
#endif
