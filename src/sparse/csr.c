/* csr.c - products with a sparse matrix and with its transpose.
 *
 * The transpose is stored too (a counting sort by column, entries of a column in order of row),
 * because a product that scatters needs either atomics or a copy of the result per thread, and
 * neither is as fast as rows that gather.  12 bytes an entry each way. */
#include "sparse/csr.h"

#include <math.h>
#include <string.h>

#include "sparse/lsmr_ops.h"

enum { ROWS_AT_A_TIME = 256 };

frg_status frgi_csr_check(frg_context *ctx, const frg_csr *a)
{
    REQUIRE(ctx, a->m >= 0 && a->n >= 0 && a->m <= INT32_MAX && a->n <= INT32_MAX,
            "a sparse matrix has 0 to 2^31 - 1 rows and columns, got %lld x %lld", (long long)a->m,
            (long long)a->n);
    REQUIRE(ctx, a->starts && a->starts[0] == 0, "starts must begin with 0");
    for (int64_t i = 0; i < a->m; i++)
        REQUIRE(ctx, a->starts[i] <= a->starts[i + 1], "starts falls at row %lld",
                (long long)i + 1);
    REQUIRE(ctx, a->columns || a->starts[a->m] == 0, "columns is missing");
    for (int64_t i = 0; i < a->m; i++) {
        for (int64_t e = a->starts[i]; e < a->starts[i + 1]; e++) {
            REQUIRE(ctx, a->columns[e] >= 0 && a->columns[e] < a->n,
                    "row %lld has column %d of %lld, counted from 0", (long long)i + 1,
                    (int)a->columns[e], (long long)a->n);
            if (a->values && !isfinite(a->values[e]))
                FAIL(ctx, E_NOT_FINITE, "row %lld, column %d of the matrix is %g", (long long)i + 1,
                     (int)a->columns[e] + 1, a->values[e]);
        }
    }
    return FRG_OK;
}

void frgi_csr_pair_layout(frgi_arena *arena, frgi_csr_pair *p)
{
    p->values = TAKE(arena, double, p->nnz);
    p->starts_t = TAKE(arena, int64_t, p->n + 2);
    p->columns_t = TAKE(arena, int32_t, p->nnz);
    p->values_t = TAKE(arena, double, p->nnz);
}

void frgi_csr_pair_fill(frgi_csr_pair *p, const frg_context *ctx, const frg_csr *a,
                        const double *row_scale, const double *column_scale)
{
    p->threads = frg_threads(ctx);
    p->ops = frgi_lsmr_ops_of(ctx);
    p->starts = a->starts;
    p->columns = a->columns;
    /* two places ahead while counting, one while filling: starts_t ends as it should without a
     * copy */
    memset(p->starts_t, 0, (size_t)(p->n + 2) * sizeof *p->starts_t);
    for (int64_t e = 0; e < p->nnz; e++)
        p->starts_t[a->columns[e] + 2]++;
    for (int64_t j = 0; j < p->n; j++)
        p->starts_t[j + 2] += p->starts_t[j + 1];
    for (int64_t i = 0; i < p->m; i++) {
        const double scale = row_scale ? row_scale[i] : 1;
        for (int64_t e = a->starts[i]; e < a->starts[i + 1]; e++) {
            const int32_t j = a->columns[e];
            const double value = (a->values ? a->values[e] : 1) * scale;
            p->values[e] = column_scale ? value * column_scale[j] : value;
            const int64_t to = p->starts_t[j + 1]++;
            p->columns_t[to] = (int32_t)i;
            p->values_t[to] = p->values[e];
        }
    }
}

static void product(const frgi_csr_pair *p, int64_t rows, int64_t k, const int64_t *starts,
                    const int32_t *columns, const double *values, const double *x, double *y)
{
    const int64_t blocks = (rows + ROWS_AT_A_TIME - 1) / ROWS_AT_A_TIME;
#pragma omp parallel for schedule(dynamic, 4) num_threads(p->threads) if (blocks > 4)
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t first = i * ROWS_AT_A_TIME, end = first + ROWS_AT_A_TIME;
        p->ops->sparse(first, end < rows ? end : rows, k, starts, columns, values, x, y);
    }
}

void frgi_csr_pair_times(const void *data, int64_t k, const double *x, double *y)
{
    const frgi_csr_pair *const p = data;
    product(p, p->m, k, p->starts, p->columns, p->values, x, y);
}

void frgi_csr_pair_transposed(const void *data, int64_t k, const double *y, double *x)
{
    const frgi_csr_pair *const p = data;
    product(p, p->n, k, p->starts_t, p->columns_t, p->values_t, y, x);
}
