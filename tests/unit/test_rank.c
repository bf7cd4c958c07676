/* test_rank.c - the exact rank of D, by classes of levels and a sparse factor in a prime field, against dense
 * elimination.
 *
 * The dense rank is taken modulo three primes below 2^31, other ones than the library's, and the largest counts: the
 * rank modulo a prime is never more than the rational one, so that a disagreement is a mistake somewhere.  For
 * designs whose rank is known by hand it is compared with that.
 */
#include "core/core.h"
#include "fault.h"
#include "fe/fe_graph.h"
#include "fourge/fe.h"
#include "panel.h"
#include "test.h"

enum { MOST = 160 }; /* rows of a dense design */

/* ---- dense elimination -------------------------------------------------------------------------- */

static uint64_t power(uint64_t a, uint64_t e, uint64_t p)
{
    uint64_t r = 1;
    for (; e; e >>= 1, a = a * a % p)
        r = e & 1 ? r * a % p : r;
    return r;
}

static int64_t dense_rank_modulo(const panel *d, uint64_t p)
{
    enum { COLUMNS = 6 * 64 };
    static uint64_t a[MOST][COLUMNS];
    memset(a, 0, sizeof a);
    for (int64_t i = 0; i < d->n; i++)
        for (int q = 0; q < d->q; q++)
            a[i][q * 64 + d->codes[i * d->q + q]] = 1;
    int64_t rank = 0;
    for (int c = 0; c < COLUMNS && rank < d->n; c++) {
        int64_t pivot = rank;
        while (pivot < d->n && a[pivot][c] == 0)
            pivot++;
        if (pivot == d->n)
            continue;
        for (int k = 0; k < COLUMNS; k++) {
            const uint64_t t = a[pivot][k];
            a[pivot][k] = a[rank][k];
            a[rank][k] = t;
        }
        const uint64_t inverse = power(a[rank][c], p - 2, p);
        for (int64_t i = rank + 1; i < d->n; i++) {
            const uint64_t f = a[i][c] * inverse % p;
            for (int k = c; f && k < COLUMNS; k++)
                a[i][k] = (a[i][k] + (p - f) * a[rank][k]) % p;
        }
        rank++;
    }
    return rank;
}

static int64_t dense_rank(const panel *d)
{
    static const uint64_t primes[] = {2147483647, 2147483629, 1999999973};
    int64_t most = 0;
    for (int k = 0; k < 3; k++) {
        const int64_t rank = dense_rank_modulo(d, primes[k]);
        most = rank > most ? rank : most;
    }
    return most;
}

/* ---- ours --------------------------------------------------------------------------------------- */

static int64_t sparse_rank(const panel *d, double work_most, size_t byte_cap)
{
    frg_context *const ctx = test_context();
    fe_rows g = {0};
    int64_t rank = -2;
    const frg_array codes = frg_matrix(d->codes, FRG_I32, d->n, d->q, d->q);
    if (CHECK_OK(ctx, frgi_fe_rows_create(&g, ctx, &codes, NULL)))
        CHECK_OK(ctx, frgi_fe_sparse_rank(&g, ctx, work_most, byte_cap, &rank));
    frgi_fe_rows_destroy(&g, ctx);
    frg_context_destroy(ctx);
    return rank;
}

/** Random designs of three to five factors: sparse ones, ones with a common parity, Latin squares with holes, and
 *  copies of a factor. */
static void random_designs(void)
{
    int below = 0, left = 0;
    for (int trial = 0; trial < test_size(600, 60) && test_now.printed < TEST_PRINTED_MAX;
         trial++) {
        const int q = 3 + (int)test_below(3);
        panel d = panel_make(8 + test_below(MOST - 8), q, 1);
        int64_t levels[5];
        for (int f = 0; f < q; f++)
            levels[f] = 2 + test_below(1 + test_below(50));
        panel_random_codes(&d, levels);
        const int64_t kind = test_below(4), m = 2 + test_below(20);
        for (int64_t i = 0; i < d.n; i++) {
            int32_t *const c = d.codes + i * q;
            if (kind == 1)
                for (int f = 1; f < q; f++)
                    c[f] = (int32_t)(2 * (c[f] / 2) + c[0] % 2);
            if (kind == 2) {
                c[0] = (int32_t)(i / 3);
                c[1] = (int32_t)test_below(m);
                c[2] = (int32_t)((c[0] + c[1]) % m);
            }
            if (kind == 3)
                c[q - 1] = 63 - c[1];
        }
        const int64_t want = dense_rank(&d), got = sparse_rank(&d, 1e12, SIZE_MAX);
        CHECK_SAYS(got == want, "trial %d, kind %d, n %lld, Q %d: rank %lld, dense %lld", trial,
                   (int)kind, (long long)d.n, q, (long long)got, (long long)want);
        int64_t sum = 1 - q;
        for (int f = 0; f < q; f++) {
            char seen[64] = {0};
            for (int64_t i = 0; i < d.n; i++)
                sum += !seen[d.codes[i * q + f]]++;
        }
        below += want < sum;
        left += sparse_rank(&d, 0, SIZE_MAX) < 0; /* the classes alone did not do */
        panel_free(&d);
    }
    CHECK_SAYS(below > test_size(200, 10) && left > test_size(100, 5), "%d below, %d left", below,
               left);
}

/** A Latin square of order m: all differences are in two factors, so that nothing merges; rank 3 m - 2. */
static void latin_square(void)
{
    const int64_t m = test_size(150, 40);
    panel d = panel_make(m * m, 3, 1);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) {
            int32_t *const c = d.codes + 3 * (i * m + j);
            c[0] = (int32_t)i;
            c[1] = (int32_t)j;
            c[2] = (int32_t)((i + j) % m);
        }
    CHECK_INT(sparse_rank(&d, 1e12, SIZE_MAX), 3 * m - 2);
    CHECK_INT(sparse_rank(&d, 1e3, SIZE_MAX), -1); /* too long */
    CHECK_INT(sparse_rank(&d, 1e12, 1000), -1);    /* too big */
    panel_free(&d);
}

/** 5000 units that seldom leave their firm, 600 firms and 500 occupations of the firms' parity: three redundant
 *  columns, and no factor can be had.  The public count says exact; so it does, by the prime field, where every row
 *  changes firm and occupation. */
static void two_large_factors(void)
{
    for (int kind = 0; kind < 2; kind++) {
        panel d = panel_make(40000, 3, 1);
        int64_t k = 0;
        for (int64_t i = 0; i < d.n; i++) {
            int32_t *const c = d.codes + 3 * i;
            const int64_t u = i / 8;
            k = kind ? u / 9 + i % 8 : i % 8 == 0 || test_below(5) == 0 ? test_below(600) : k;
            c[0] = (int32_t)u;
            c[1] = (int32_t)k;
            c[2] = (int32_t)(kind ? (k * k + u) % 500 : k % 2 + 2 * test_below(250));
        }
        frg_demean_opts o = panel_options();
        o.fill_cap = kind ? 0 : 8192;
        o.dof = FRG_DOF_EXACT;
        frg_demean *plan = NULL;
        frg_demean_rank rank = {0};
        frg_context *ctx = test_context();
        CHECK_OK(ctx, panel_create(&plan, ctx, &d, &o));
        CHECK_OK(ctx, frg_demean_get_rank(plan, &rank));
        CHECK(rank.exact && strcmp(rank.method, "exact") == 0);
        CHECK_SAYS(kind || rank.rank == 5000 + 600 + 500 - 3, "rank %lld", (long long)rank.rank);
        frg_demean_destroy(plan);
        frg_context_destroy(ctx);
        panel_free(&d);
    }
}

/** Every allocation failed in turn; a count that is stopped gives none. */
static frg_status count_square(frg_context *ctx, void *user, uint64_t *hash)
{
    const panel *const d = user;
    fe_rows g = {0};
    int64_t rank = -1;
    const frg_array codes = frg_matrix(d->codes, FRG_I32, d->n, d->q, d->q);
    frg_status s = frgi_fe_rows_create(&g, ctx, &codes, NULL);
    if (s >= 0)
        s = frgi_fe_sparse_rank(&g, ctx, 1e12, SIZE_MAX, &rank);
    fault_hash(hash, &rank, sizeof rank);
    frgi_fe_rows_destroy(&g, ctx);
    return s;
}

static void faults(void)
{
    panel d = panel_make(100, 3, 1);
    for (int32_t i = 0; i < 100; i++)
        memcpy(d.codes + 3 * i, (int32_t[]){i / 10, i % 10, (i / 10 + i) % 10}, 12);
    CHECK_INT(sparse_rank(&d, 1e12, SIZE_MAX), 28);
    CHECK(fault_sweep("sparse rank", count_square, &d, 1) > 15);
    panel_free(&d);
}

static const test_case cases[] = {
    {"faults", faults},
    {"random designs", random_designs},
    {"Latin square", latin_square},
    {"two large factors", two_large_factors},
};
TEST_MAIN(cases)
