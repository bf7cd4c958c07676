/* test_product_tiles.c - products on tiles, and the QR by wide blocks that is made of them, on CPUs
 * without tiles: the same text as the library's over tiles in plain C (emulated_tiles.h), by the
 * tests of test_product.c.  It needs AVX-512, which packs; bounds as there. */
#if defined(__x86_64__)
#define EMULATED_TILES
#include "emulated_tiles.h"
#include "linalg/product.c"
#include "test_product.c"

#include "linalg/qr_engine.h"

static bool can_run(void)
{
    frg_context *ctx = test_context();
    const bool can = frgi_context_isa(ctx) == ISA_V4;
    frg_context_destroy(ctx);
    if (!can)
        test_skip("packing for tiles needs AVX-512");
    return can;
}

static void with_products(void (*body)(void))
{
    if (!can_run())
        return;
    const int before = emulated_products;
    body();
    CHECK(emulated_products > before); /* not by BLAS */
    CHECK_INT(emulated_closed_uses, 0);
}

static void products(void)
{
    with_products(on_tiles);
}

static void columns(void)
{
    with_products(many_columns);
}

static void batches(void)
{
    with_products(several);
}

static void non_finite(void)
{
    with_products(not_finite);
}

/** Q of a matrix of `rows` x n by a team, a column of it zero and another one a copy: its distance
 *  from orthogonal, and that of A from Q Q'A over the largest column. */
static void factor(int rows, int n, int team, float *q, double *orthogonality, double *residual)
{
    frg_context *ctx = test_context();
    frgi_arena arena = {0};
    frgi_qr_workspace room;
    frgi_qr_extent extent = {0};
    frg_qr_report report;
    frgi_qr_extend(&extent, rows, n);
    frgi_qr_workspace_take(&arena, &room, PRODUCT_TILES, false, &extent, team, false, true, false);
    CHECK_OK(ctx, frgi_arena_open(&arena, ctx, "a test"));
    frgi_qr_workspace_take(&arena, &room, PRODUCT_TILES, false, &extent, team, false, true, false);
    frgi_qr_workspace_shape(frgi_qr_ops_of(ctx, false), &room, rows, n);
    room.x.team = team;
    CHECK(frgi_qr_is_wide(&room.wide, &room.x));
    float *const a = room.x.a;
    const size_t each = (size_t)room.x.ld;
    memset(a, 0, each * (size_t)room.x.columns * sizeof *a);
    float *const kept = malloc(each * (size_t)n * sizeof *kept);
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < rows; i++) {
            const float x = j == n - 3 ? a[i] : (float)test_normal();
            a[(size_t)j * each + (size_t)i] = j == 7 ? 0 : x;
        }
    }
    memcpy(kept, a, each * (size_t)n * sizeof *kept);
    for (int j = 0; j < n; j++) {
        frgi_qr_scale_column(frgi_qr_ops_of(ctx, false), &room, j, NULL);
    }
    const frgi_qr_request wish = {.method = FRG_QR_HOUSEHOLDER, .verify = FRG_QR_VERIFY_FULL};
    frgi_qr_solve(frgi_qr_ops_of(ctx, false), &room, &wish, &report);
    CHECK_INT(report.method, FRG_QR_HOUSEHOLDER);
    *orthogonality = report.orthogonality;
    *residual = 0;
    double *const coefficients = malloc((size_t)n * sizeof *coefficients);
    for (int j = 0; j < n; j += 37) { /* some columns: a = Q Q'a in double */
        const float *const x = kept + (size_t)j * each;
        double rest = 0, all = 0;
        for (int k = 0; k < n; k++) {
            coefficients[k] = 0;
            for (int i = 0; i < rows; i++)
                coefficients[k] +=
                    (double)((const float *)room.q)[(size_t)k * each + (size_t)i] * (double)x[i];
        }
        for (int i = 0; i < rows; i++) {
            double left = (double)x[i];
            for (int k = 0; k < n; k++)
                left -=
                    coefficients[k] * (double)((const float *)room.q)[(size_t)k * each + (size_t)i];
            rest += left * left;
            all += (double)x[i] * (double)x[i];
        }
        *residual = fmax(*residual, all > 0 ? sqrt(rest / all) : 0);
    }
    for (int j = 0; j < n; j++)
        memcpy(q + (size_t)j * (size_t)rows, (const float *)room.q + (size_t)j * each,
               (size_t)rows * sizeof *q);
    free(coefficients);
    free(kept);
    frgi_arena_close(&arena, ctx);
    frg_context_destroy(ctx);
}

/** Blocks of 128: four whole ones and a last one of 20 columns more, a column that is zero, one
 *  twice.  Householder's Q is within m n^(1/2) u of orthogonal and A as near to its span (Higham
 *  2002, 19.4: gamma_mn with constants; rounding errors that do not conspire come to its root); u =
 *  2^-24.  The bits are those of one thread. */
static void wide_qr(void)
{
    enum { ROWS = 540, N = 532 };
    static float one[ROWS * N], team[ROWS * N];
    const double bound = sqrt((double)ROWS * N) * 0x1p-24;
    double orthogonality, residual;
    if (!can_run())
        return;
    if (test_size(1, 0) == 0) {
        test_skip("emulated tiles take minutes under the thread sanitizer");
        return;
    }
    const uint64_t seed = test_random();
    test_now.random = seed;
    factor(ROWS, N, 1, one, &orthogonality, &residual);
    CHECK_SAYS(orthogonality <= bound, "off by %.1e of %.1e", orthogonality, bound);
    CHECK_SAYS(residual <= bound, "residual %.1e of %.1e", residual, bound);
    test_now.random = seed;
    factor(ROWS, N, 3, team, &orthogonality, &residual);
    CHECK_BITS(one, team, sizeof one);
}

static const test_case cases[] = {{"products", products},         {"columns", columns},
                                  {"batches", batches},           {"not finite", non_finite},
                                  {"QR by wide blocks", wide_qr}, {"on AVX2", on_avx2},
                                  {"on AVX-512", on_avx512},      {"the bits of AVX2", same_bits},
                                  {"by BLAS", by_blas},           {"one BLAS thread", one_thread}};
TEST_MAIN(cases)
#else
#include "test.h"
static void nothing(void)
{
    test_skip("tiles are x86's");
}
static const test_case cases[] = {{"products", nothing}};
TEST_MAIN(cases)
#endif
