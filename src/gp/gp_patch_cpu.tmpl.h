/* gp_patch_cpu.tmpl.h - where the parts of a patch lie, and sums over columns of x; included once
 * for each type.
 *
 * Template parameters: real, SUF, LINE, FN(name).
 */

typedef real FN(vec) __attribute__((vector_size(VECTOR_BYTES), may_alias));

static inline real *FN(values)(const frgi_gp_patch *p, int step)
{
    return (real *)p->value + (ptrdiff_t)step * GP_PATCH;
}

static inline real *FN(aux)(const frgi_gp_patch *p, int step, int which)
{
    return (real *)p->aux + ((ptrdiff_t)step * GP_AUX + which) * GP_PATCH;
}

static inline real *FN(adjoints)(const frgi_gp_patch *p, int step)
{
    return (real *)p->adjoint + (ptrdiff_t)step * GP_PATCH;
}

static inline const real *FN(rows)(const frgi_gp_patch *p, int slot)
{
    return (const real *)p->x + (ptrdiff_t)slot * GP_ROWS;
}

static inline const real *FN(cols)(const frgi_gp_program *g, const frgi_gp_patch *p, int slot)
{
    return (const real *)g->slot[slot].cols + p->j0;
}

static inline const real *FN(constants)(const frgi_gp_step *s)
{
    return (const real *)s->constant;
}

/** lane[0 ..]: work arrays of GP_ROWS */
static inline real *FN(lane)(const frgi_gp_patch *p, ptrdiff_t i)
{
    return (real *)p->lane + i * GP_ROWS;
}

static inline void FN(set)(real *restrict x, real value, int m)
{
    EACH_ROW(i)
    {
        x[i] = value;
    }
}

/** total += partial: from the patch's arithmetic to double */
static inline void FN(flush)(double *restrict total, const real *restrict partial, double factor,
                             int m)
{
    EACH_ROW(i)
    {
        total[i] += factor * (double)partial[i];
    }
}

/* ---- sums over columns of x ------------------------------------------------------------------ */

/** First row of column j that is wanted: where only pairs on or below the diagonal are, the vector
 *  that holds the diagonal.  The same for LINE columns. */
static inline int FN(begin)(const frgi_gp_patch *p, int j)
{
    const ptrdiff_t same = p->j0 + j - p->i0;
    return p->lower && same > 0 ? (int)(same / LINE * LINE) : 0;
}

static inline int FN(lines)(const frgi_gp_patch *p)
{
    return (p->rows + LINE - 1) / LINE * LINE;
}

ALWAYS void FN(add_squares)(const frgi_gp_program *g, const frgi_gp_patch *p, int slot, int j,
                            const int count, bool more, real *restrict s)
{
    const int m = p->m;
    const real *restrict x = FN(rows)(p, slot);
    real c[MOST_AT_ONCE];
    for (int k = 0; k < count; k++) {
        c[k] = FN(cols)(g, p, slot + k)[j];
    }
    EACH_LINE(i, FN(begin)(p, j))
    {
        real sum = more ? s[i] : 0;
#pragma GCC unroll 8
        for (int k = 0; k < count; k++) {
            const real u = x[k * GP_ROWS + i] - c[k];
            sum += u * u;
        }
        s[i] = sum;
    }
}

/** s of LINE rows and COLUMNS_AT_ONCE columns, over `count` columns of x: 8 vectors of sums in
 *  registers. */
ALWAYS void FN(block_squares)(const frgi_gp_program *g, const frgi_gp_patch *p, int slot, int count,
                              int i, int j, bool more, real *s)
{
    FN(vec) sum[COLUMNS_AT_ONCE][PIECES];
#pragma GCC unroll 8
    for (int n = 0; n < COLUMNS_AT_ONCE; n++)
#pragma GCC unroll 4
        for (int v = 0; v < PIECES; v++)
            sum[n][v] = more ? ((const FN(vec) *)(s + (j + n) * GP_ROWS + i))[v] : (FN(vec)){0};
    for (int k = 0; k < count; k++) {
        const FN(vec) *const x = (const FN(vec) *)(FN(rows)(p, slot + k) + i);
        const real *const c = FN(cols)(g, p, slot + k) + j;
#pragma GCC unroll 8
        for (int n = 0; n < COLUMNS_AT_ONCE; n++)
#pragma GCC unroll 4
            for (int v = 0; v < PIECES; v++) {
                const FN(vec) u = x[v] - c[n];
                sum[n][v] += u * u;
            }
    }
#pragma GCC unroll 8
    for (int n = 0; n < COLUMNS_AT_ONCE; n++)
#pragma GCC unroll 4
        for (int v = 0; v < PIECES; v++)
            ((FN(vec) *)(s + (j + n) * GP_ROWS + i))[v] = sum[n][v];
}

/** The same for the first `cols` columns and all columns of x, as many at a time as the L1 cache
 *  holds. */
static void FN(wide_squares)(const frgi_gp_program *g, const frgi_gp_patch *p,
                             const frgi_gp_step *step, int cols, real *s)
{
    for (int k = 0; k < step->dims; k += BLOCK_DIMS) {
        const int count = step->dims - k < BLOCK_DIMS ? step->dims - k : BLOCK_DIMS;
        for (int j = 0; j < cols; j += COLUMNS_AT_ONCE)
            for (int i = FN(begin)(p, j); i < p->m; i += LINE)
                FN(block_squares)(g, p, step->slot + k, count, i, j, k > 0, s);
    }
}

/** Up to MOST_AT_ONCE columns of x at once, their number known to the compiler, so that s stays in
 *  a register; where there are more, by blocks.  Each s is the same sum in the same order in any
 *  way. */
static void FN(squares)(const frgi_gp_program *g, const frgi_gp_patch *p, const frgi_gp_step *step,
                        real *restrict s)
{
    const int whole = step->dims > MOST_AT_ONCE ? p->cols / COLUMNS_AT_ONCE * COLUMNS_AT_ONCE : 0;
    FN(wide_squares)(g, p, step, whole, s);
#define COUNT(n)                                                                                   \
    case n:                                                                                        \
        FN(add_squares)(g, p, slot, j, n, k > 0, to);                                              \
        break;
    for (int k = 0; k < step->dims; k += MOST_AT_ONCE) {
        const int slot = step->slot + k, left = step->dims - k;
        for (int j = whole; j < p->cols; j++) {
            real *const to = s + j * GP_ROWS;
            switch (left < MOST_AT_ONCE ? left : MOST_AT_ONCE) {
                COUNT(1) COUNT(2) COUNT(3) COUNT(4) COUNT(5) COUNT(6) COUNT(7) COUNT(8)
            }
        }
    }
#undef COUNT
}

/** sum_k v_k x_ik x_jk; v NULL: 1 */
ALWAYS void FN(products)(const frgi_gp_program *g, const frgi_gp_patch *p, const frgi_gp_step *step,
                         int j, const real *v, real start, real *restrict out)
{
    const int m = p->m;
    FN(set)(out, start, m);
    for (int k = 0; k < step->dims; k++) {
        const real *restrict x = FN(rows)(p, step->slot + k);
        const real c = FN(cols)(g, p, step->slot + k)[j] * (v ? v[k] : 1);
        EACH_ROW(i)
        {
            out[i] += x[i] * c;
        }
    }
}
