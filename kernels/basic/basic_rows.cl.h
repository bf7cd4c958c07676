/* basic_rows.cl.h - rows of a strided matrix into an order of their own, side by side, and back.
 *
 * Element (i, j) of the matrix lies at `at + i row + j column` of its block; row i of the order is
 * its row order[i], or i where `order` begins at -1.  The order's rows have K elements, a power of
 * two or not, of which the matrix has the first `count`; the others are 0.
 */

FUNCTION i64 row_of(GLOBAL const i32 *w, i64 order, i64 i)
{
    return order < 0 ? i : (i64)w[order + i];
}

/* to[to_at + i K + j] <- element (order[i], j) */
KERNEL void gather_rows(ITEM GLOBAL wide *to, i64 to_at, GLOBAL const real *from, i64 from_at,
                        i64 row, i64 column, GLOBAL const i32 *w, i64 order, i64 n, i32 k,
                        i32 count)
{
    const i64 end = least(n * k, (GID0 + 1) * BASIC_CHUNK);
    for (i64 e = GID0 * BASIC_CHUNK + LID0; e < end; e += LSIZE0) {
        const i64 i = e / k, j = e % k;
        to[to_at + e] =
            j < count ? W(from[from_at + row_of(w, order, i) * row + j * column]) : W(0);
    }
}

/* element (order[i], j) <- from[from_at + i K + j] */
KERNEL void scatter_rows(ITEM GLOBAL real *to, i64 to_at, GLOBAL const wide *from, i64 from_at,
                         i64 row, i64 column, GLOBAL const i32 *w, i64 order, i64 n, i32 k,
                         i32 count)
{
    const i64 end = least(n * k, (GID0 + 1) * BASIC_CHUNK);
    for (i64 e = GID0 * BASIC_CHUNK + LID0; e < end; e += LSIZE0) {
        const i64 i = e / k, j = e % k;
        if (j < count) {
            to[to_at + row_of(w, order, i) * row + j * column] = R(from[from_at + e]);
        }
    }
}
