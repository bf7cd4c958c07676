/* tree_rows.tmpl.h - the tree of tree_sum.h over rows of numbers, a block of columns at a time, as
 * it is defined: the first rows, a power of two of them, and the others.
 *
 * Template parameters: part (the type of the numbers), TREE(name).
 */

/** sum[j] <- the sum over k < count of x[k * stride + j], j < length <= TREE_BLOCK, count >= 1. */
static void TREE(rows)(const part *x, int64_t count, int64_t stride, int64_t length, double *sum)
{
    if (count == 1) {
        for (int64_t j = 0; j < length; j++) {
            sum[j] = (double)x[j];
        }
    } else if (count == 2) {
        const part *const y = x + stride;
        for (int64_t j = 0; j < length; j++) {
            sum[j] = (double)x[j] + (double)y[j];
        }
    } else {
        const int64_t first = INT64_C(1) << (63 - __builtin_clzll((uint64_t)count - 1));
        double others[TREE_BLOCK];
        TREE(rows)(x, first, stride, length, sum);
        TREE(rows)(x + first * stride, count - first, stride, length, others);
        for (int64_t j = 0; j < length; j++) {
            sum[j] += others[j];
        }
    }
}
