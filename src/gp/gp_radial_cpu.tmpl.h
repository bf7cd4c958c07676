/* gp_radial_cpu.tmpl.h - [variance *] one radial leaf, in few loops; included once for each type.
 *
 * The general interpreter writes every step's values down; here a pair costs its squares (3d
 * operations), one exponential, and one store.  With c = sqrt(3 s) and the like, f the variance and
 * E the array that is kept:
 *
 *                  E                C = E times              dC/ds = -1/2 E times
 *     rbf          f e^(-s/2)       1                        1
 *     matern12     f e^-c           1                        1/c
 *     matern32     f e^-c           1 + c                    3
 *     matern52     f e^-c           1 + c + c^2/3            5/3 (1 + c)
 *     rq           f b^-alpha       1                        1/b         b = 1 + s/(2 alpha)
 *
 * The pass reads E where it was kept and needs no exponential then; s is cheaper to compute again
 * than to read.  From WIDE_FROM columns of x on it is the other way round: s is kept.  Distances
 * stay sums of squared differences: on CPUs whose adders are other units than the multipliers they
 * cost what |x|^2 + |y|^2 - 2 x'y does, and lose nothing where points are close. Rows go in whole
 * vectors (LINE elements, 64 bytes), from the one that holds the diagonal on; columns four at a
 * time, so that sums over them are loaded and stored once.
 *
 * Template parameters: real, SUF, LINE, SQRT, FN(name), EF(name).
 */

/** E and C of one column. */
static void FN(column)(frgi_gp_kind kind, real f, real alpha, int begin, int m,
                       const real *restrict s, real *restrict value, real *restrict kept)
{
    const real one_third = (real)(1.0 / 3);
    switch (kind) {
    case GP_RBF:
        EACH_LINE(i, begin)
        {
            value[i] = kept[i] = f * EF(exp_low)((real)-0.5 * s[i]);
        }
        break;
    case GP_MATERN12:
        EACH_LINE(i, begin)
        {
            value[i] = kept[i] = f * EF(exp_low)(-SQRT(s[i]));
        }
        break;
    case GP_MATERN32:
        EACH_LINE(i, begin)
        {
            const real c = SQRT(3 * s[i]), e = f * EF(exp_low)(-c);
            value[i] = (1 + c) * e;
            kept[i] = e;
        }
        break;
    case GP_MATERN52:
        EACH_LINE(i, begin)
        {
            const real c = SQRT(5 * s[i]), e = f * EF(exp_low)(-c);
            value[i] = (1 + c + c * c * one_third) * e;
            kept[i] = e;
        }
        break;
    default:
        EACH_LINE(i, begin)
        {
            const real raw = s[i] * ((real)0.5 / alpha), t = raw > FAR ? FAR : raw;
            value[i] = kept[i] = f * EF(exp_low)(-alpha * EF(log1p)(t));
        }
        break;
    }
}

static inline real FN(variance)(const frgi_gp_program *g)
{
    return g->n_steps > 1 ? FN(constants)(&g->step[1])[0] : 1;
}

static inline real FN(alpha)(const frgi_gp_program *g)
{
    return g->step[0].kind == GP_RQ ? FN(constants)(&g->step[0])[0] : 0;
}

/** Where distances cost more than an exponential the pass is left s and not E, unless it needs no
 *  s. */
static inline bool FN(keeps_squares)(const frgi_gp_program *g)
{
    const frgi_gp_step *const step = &g->step[0];
    return step->dims >= WIDE_FROM && !(step->kind == GP_RBF && step->group[0].vector);
}

/** The rows of the patch that are wanted, from one place to another. */
static void FN(copy_squares)(const frgi_gp_patch *p, const real *from, ptrdiff_t ld, real *to,
                             ptrdiff_t ldt)
{
    const int m = FN(lines)(p);
    for (int j = 0; j < p->cols; j++) {
        const int begin = FN(begin)(p, j);
        if (begin < m)
            memcpy(to + j * ldt + begin, from + j * ld + begin, sizeof *to * (size_t)(m - begin));
    }
}

static void FN(radial_build)(const frgi_gp_program *g, frgi_gp_patch *p, void *out, void *kept,
                             ptrdiff_t ld)
{
    real *const s = FN(aux)(p, 0, 0), *const spare = FN(lane)(p, 0);
    FN(squares)(g, p, &g->step[0], s);
    const bool squares = kept && FN(keeps_squares)(g);
    if (squares) {
        FN(copy_squares)(p, s, GP_ROWS, kept, ld);
    }
    for (int j = 0; j < p->cols; j++) {
        FN(column)
        (g->step[0].kind, FN(variance)(g), FN(alpha)(g), FN(begin)(p, j), FN(lines)(p),
         s + j * GP_ROWS, (real *)out + j * ld, kept && !squares ? (real *)kept + j * ld : spare);
    }
}

/* ---- the pass -------------------------------------------------------------------------------- */

/** Is W = a a' - K^-1? */
static inline bool FN(is_plain)(const frgi_gp_weights *w)
{
    return w->alpha && w->q == 1 && !w->beta && !w->extra_q;
}

/** A line with its diagonal at `at`: half of that, 0 above it. No element is written alone, as the
 *  sums read vectors. */
static inline void FN(halve)(real *restrict x, int at)
{
    for (int i = 0; i < LINE; i++) {
        const real half = i == at ? (real)0.5 : 1;
        x[i] = i < at ? 0 : half * x[i];
    }
}

/** A line of which `rows` are rows: 0 behind them. */
static inline void FN(clip)(real *restrict x, int rows)
{
    for (int i = 0; i < LINE; i++) {
        x[i] = i < rows ? x[i] : 0;
    }
}

/** W and K^-1 of the first m rows of the patch, halved on the diagonal, 0 above it and beyond the
 *  rows. */
static void FN(radial_weights)(const frgi_gp_weights *w, frgi_gp_patch *p, int m,
                               real *restrict weight, real *restrict inverse)
{
    const bool plain = FN(is_plain)(w);
    real *restrict a = FN(lane)(p, 0);
    FN(set)(a, 0, p->m);
    if (plain) {
        memcpy(a, (const real *)w->alpha + p->i0, sizeof *a * (size_t)p->rows);
    }
    for (int j = 0; j < p->cols; j++) {
        const real *restrict from = (const real *)w->tile + w->row + (w->col + j) * w->ld;
        real *restrict wj = weight + j * GP_ROWS, *restrict vj = inverse + j * GP_ROWS;
        const int begin = FN(begin)(p, j);
        if (plain) {
            const real aj = ((const real *)w->alpha)[p->j0 + j];
            EACH_LINE(i, begin)
            {
                vj[i] = from[i];
                wj[i] = a[i] * aj - from[i];
            }
        } else {
            FN(weights_column)(w, p, j, wj);
            EACH_LINE(i, begin)
            {
                vj[i] = from[i];
            }
        }
        const ptrdiff_t same = p->j0 + j - p->i0;
        if (same >= 0 && same < p->rows) {
            FN(halve)(wj + begin, (int)same - begin);
            FN(halve)(vj + begin, (int)same - begin);
        }
        if (m > p->rows) {
            FN(clip)(wj + m - LINE, p->rows - m + LINE);
            FN(clip)(vj + m - LINE, p->rows - m + LINE);
        }
    }
}

/** Where W and K^-1 of a pair come from: rows before `inside` have two patches of them; the others,
 *  all of whose pairs lie below the diagonal where alpha is one vector, the inverse itself: W = a_i
 *  column_j - inverse_ij. */
typedef struct {
    int inside;
    const real *near; /* the patch of K^-1 */
    const real *inverse;
    ptrdiff_t ld;
    const real *a, *column;
} FN(weight_source);

/** Sums over `count` columns from j on, before or in the rows inside:  of_f += W C, of_k += K^-1 C,
 *  and with G = W q: of_l += G s where the lengthscale is one, weight <- G where there are many;
 *  of_a += W dC/dlog alpha. */
ALWAYS void FN(radial_sums)(const frgi_gp_patch *p, const frgi_gp_kind kind, const bool vector,
                            const int count, int j, real alpha, const real *restrict s,
                            const real *restrict logs, const real *restrict e, ptrdiff_t ld,
                            real *restrict weight, const FN(weight_source) * from,
                            const bool inside, real *restrict sums)
{
    const int m = inside ? FN(lines)(p) : from->inside;
    const real *restrict inverse = inside ? from->inverse : from->near;
    const ptrdiff_t ldv = inside ? from->ld : GP_ROWS;
    const real one_third = (real)(1.0 / 3), five_thirds = (real)(5.0 / 3),
               over_alpha = (real)0.5 / alpha;
    real *restrict of_f = sums, *restrict of_k = sums + GP_ROWS,
                   *restrict of_l = sums + 2 * GP_ROWS;
    real *restrict of_a = sums + 3 * GP_ROWS;
    EACH_LINE(i, inside ? from->inside : FN(begin)(p, j))
    {
        real total_f = of_f[i], total_k = of_k[i], total_l = vector ? 0 : of_l[i];
        real total_a = kind == GP_RQ ? of_a[i] : 0;
#pragma GCC unroll 4
        for (int n = 0; n < count; n++) {
            const ptrdiff_t at = (j + n) * GP_ROWS + i;
            const real ei = e[(j + n) * ld + i], v = inverse[(j + n) * ldv + i];
            const real w = inside ? from->a[i] * from->column[j + n] - v : weight[at];
            real value = ei, slope = ei, si = vector && kind == GP_RBF ? 0 : s[at];
            if (kind == GP_MATERN12) {
                const real r = SQRT(si);
                slope = vector ? (r > 0 ? ei / r : 0) : ei * r;
                si = 1;
            } else if (kind == GP_MATERN32) {
                const real c = SQRT(3 * si);
                value = (1 + c) * ei;
                slope = 3 * ei;
            } else if (kind == GP_MATERN52) {
                const real c = SQRT(5 * si);
                value = (1 + c + c * c * one_third) * ei;
                slope = five_thirds * (1 + c) * ei;
            } else if (kind == GP_RQ) {
                const real raw = si * over_alpha, t = raw > FAR ? FAR : raw, over = 1 / (1 + t);
                slope = ei * over;
                total_a += w * (ei * (alpha * (t * over - logs[at])));
            }
            total_f += w * value;
            total_k += v * value;
            if (vector) {
                weight[at] = w * slope;
            } else {
                total_l += w * (slope * si);
            }
        }
        of_f[i] = total_f;
        of_k[i] = total_k;
        if (!vector) {
            of_l[i] = total_l;
        }
        if (kind == GP_RQ) {
            of_a[i] = total_a;
        }
    }
}

/** The columns of the patch, four at a time and then one. */
#define ALL_COLUMNS(kind, vector)                                                                  \
    do {                                                                                           \
        int j = 0;                                                                                 \
        for (; j + 4 <= p->cols; j += 4) {                                                         \
            FN(radial_sums)                                                                        \
            (p, kind, vector, 4, j, alpha, s, logs, e, ld, weight, from, false, sums);             \
            FN(radial_sums)                                                                        \
            (p, kind, vector, 4, j, alpha, s, logs, e, ld, weight, from, true, sums);              \
        }                                                                                          \
        for (; j < p->cols; j++) {                                                                 \
            FN(radial_sums)                                                                        \
            (p, kind, vector, 1, j, alpha, s, logs, e, ld, weight, from, false, sums);             \
        }                                                                                          \
    } while (0)

static void FN(radial_sweep)(const frgi_gp_program *g, frgi_gp_patch *p, const real *s,
                             const real *logs, const real *e, ptrdiff_t ld, real *weight,
                             const FN(weight_source) * from, real *sums)
{
    const frgi_gp_step *const step = &g->step[0];
    const bool vector = step->group[0].vector;
    const real alpha = FN(alpha)(g);
    switch (2 * (int)step->kind + vector) {
    case 2 * GP_RBF:
        ALL_COLUMNS(GP_RBF, false);
        break;
    case 2 * GP_RBF + 1:
        ALL_COLUMNS(GP_RBF, true);
        break;
    case 2 * GP_MATERN12:
        ALL_COLUMNS(GP_MATERN12, false);
        break;
    case 2 * GP_MATERN12 + 1:
        ALL_COLUMNS(GP_MATERN12, true);
        break;
    case 2 * GP_MATERN32:
        ALL_COLUMNS(GP_MATERN32, false);
        break;
    case 2 * GP_MATERN32 + 1:
        ALL_COLUMNS(GP_MATERN32, true);
        break;
    case 2 * GP_MATERN52:
        ALL_COLUMNS(GP_MATERN52, false);
        break;
    case 2 * GP_MATERN52 + 1:
        ALL_COLUMNS(GP_MATERN52, true);
        break;
    case 2 * GP_RQ:
        ALL_COLUMNS(GP_RQ, false);
        break;
    default:
        ALL_COLUMNS(GP_RQ, true);
        break;
    }
}
#undef ALL_COLUMNS

/** Columns of which rows i .. i + LINE - 1 are wanted: see begin(). */
static inline int FN(end)(const frgi_gp_patch *p, int i)
{
    const ptrdiff_t below = p->i0 + i + LINE - p->j0;
    return !p->lower || below >= p->cols ? p->cols : below > 0 ? (int)below : 0;
}

/** part_k[i] <- sum_j G (x_ik - x_jk)^2 for LINE rows and `count` columns of x: what is read of G
 *  serves them all. */
ALWAYS void FN(length_sums)(const frgi_gp_program *g, const frgi_gp_patch *p, int slot,
                            const int count, int i, const real *weight, real *partial)
{
    const int end = FN(end)(p, i);
    FN(vec) sum[2][PIECES], x[2][PIECES];
#pragma GCC unroll 2
    for (int k = 0; k < count; k++)
#pragma GCC unroll 4
        for (int v = 0; v < PIECES; v++) {
            sum[k][v] = (FN(vec)){0};
            x[k][v] = ((const FN(vec) *)(FN(rows)(p, slot + k) + i))[v];
        }
    for (int j = 0; j < end; j++) {
        const FN(vec) *const w = (const FN(vec) *)(weight + j * GP_ROWS + i);
#pragma GCC unroll 2
        for (int k = 0; k < count; k++) {
            const real c = FN(cols)(g, p, slot + k)[j];
#pragma GCC unroll 4
            for (int v = 0; v < PIECES; v++) {
                const FN(vec) u = x[k][v] - c;
                sum[k][v] += w[v] * (u * u);
            }
        }
    }
#pragma GCC unroll 2
    for (int k = 0; k < count; k++)
#pragma GCC unroll 4
        for (int v = 0; v < PIECES; v++)
            ((FN(vec) *)(partial + k * GP_ROWS + i))[v] = sum[k][v];
}

/** Sums of rows behind the last one, which may be anything, become 0. */
static inline void FN(clip_sums)(const frgi_gp_patch *p, real *sums, int count)
{
    const int m = FN(lines)(p);
    for (int i = 0; i < count && m > p->rows; i++)
        FN(clip)(sums + i * GP_ROWS + m - LINE, p->rows - m + LINE);
}

/** Lengthscales k .. k + count - 1. */
ALWAYS void FN(length_pair)(const frgi_gp_program *g, frgi_gp_patch *p, int k, const int count,
                            const real *weight)
{
    const frgi_gp_step *const step = &g->step[0];
    const int m = FN(lines)(p);
    real *const partial = FN(lane)(p, 0);
    for (int i = 0; i < m; i += LINE)
        FN(length_sums)(g, p, step->slot + k, count, i, weight, partial);
    FN(clip_sums)(p, partial, count);
    for (int c = 0; c < count; c++) {
        double *const total = p->sum + (ptrdiff_t)(step->group[0].first + k + c) * GP_ROWS;
        FN(flush)(total, partial + c * GP_ROWS, 1, p->m);
    }
}

static void FN(lengths)(const frgi_gp_program *g, frgi_gp_patch *p, const real *weight)
{
    real *const partial = FN(lane)(p, 0);
    int k = 0;
    FN(set)(partial, 0, p->m); /* rows behind the last line */
    FN(set)(partial + GP_ROWS, 0, p->m);
    for (; k + 2 <= g->step[0].dims; k += 2)
        FN(length_pair)(g, p, k, 2, weight);
    if (k < g->step[0].dims)
        FN(length_pair)(g, p, k, 1, weight);
}

/** The rows of the patch that lie below the diagonal in all its columns are read where they are if
 *  W = a a' - K^-1 and columns come in fours, with what stands behind the last row: the sums leave
 *  that out. */
static FN(weight_source)
    FN(find_weights)(const frgi_gp_weights *w, frgi_gp_patch *p, real *weight, real *inverse)
{
    const int lines = FN(lines)(p);
    const ptrdiff_t diagonal = p->j0 + p->cols - p->i0;
    int inside = lines;
    if (FN(is_plain)(w) && p->cols % 4 == 0 && diagonal < lines) {
        inside = diagonal > 0 ? (int)((diagonal + LINE - 1) / LINE * LINE) : 0;
    }
    FN(radial_weights)(w, p, inside, weight, inverse);
    FN(weight_source) from = {.inside = inside, .near = inverse};
    if (inside < lines) {
        real *const a = FN(lane)(p, 4);
        FN(set)(a, 0, p->m);
        memcpy(a, (const real *)w->alpha + p->i0, sizeof *a * (size_t)p->rows);
        from.inverse = (const real *)w->tile + w->row + w->col * w->ld;
        from.ld = w->ld;
        from.a = a;
        from.column = (const real *)w->alpha + p->j0;
    }
    return from;
}

/** log(1 + s/(2 alpha)), in a loop of its own: among the sums it keeps them from becoming vector
 *  code. */
static void FN(logarithms)(const frgi_gp_patch *p, real alpha, const real *restrict s,
                           real *restrict logs)
{
    const int m = FN(lines)(p);
    const real over_alpha = (real)0.5 / alpha;
    for (int j = 0; j < p->cols; j++) {
        const real *restrict sj = s + j * GP_ROWS;
        real *restrict to = logs + j * GP_ROWS;
        EACH_LINE(i, FN(begin)(p, j))
        {
            const real raw = sj[i] * over_alpha, t = raw > FAR ? FAR : raw;
            to[i] = EF(log1p)(t);
        }
    }
}

static void FN(radial_pass)(const frgi_gp_program *g, const frgi_gp_weights *w, frgi_gp_patch *p,
                            const void *kept, ptrdiff_t ld, double *trace)
{
    const frgi_gp_step *const step = &g->step[0];
    const bool vector = step->group[0].vector;
    real *const s = FN(aux)(p, 0, 0), *const own = FN(aux)(p, 0, 1),
                *const value = FN(aux)(p, 0, 2), *const logs = value; /* the values are not used */
    real *const weight = FN(adjoints)(p, 0), *const inverse = FN(values)(p, 0),
                *const sums = FN(lane)(p, 0);
    if (kept && FN(keeps_squares)(g)) {
        FN(copy_squares)(p, kept, ld, s, GP_ROWS);
        kept = NULL;
    } else if (!kept || !vector || step->kind != GP_RBF) {
        FN(squares)(g, p, step, s);
    }
    for (int j = 0; j < p->cols && !kept; j++) {
        FN(column)
        (step->kind, FN(variance)(g), FN(alpha)(g), FN(begin)(p, j), FN(lines)(p), s + j * GP_ROWS,
         value + j * GP_ROWS, own + j * GP_ROWS);
    }
    if (step->kind == GP_RQ) {
        FN(logarithms)(p, FN(alpha)(g), s, logs);
    }
    const FN(weight_source) from = FN(find_weights)(w, p, weight, inverse);
    for (int i = 0; i < 4; i++) {
        FN(set)(sums + (ptrdiff_t)i * GP_ROWS, 0, p->m);
    }
    FN(radial_sweep)
    (g, p, s, logs, kept ? (const real *)kept : own, kept ? ld : GP_ROWS, weight, &from, sums);
    FN(clip_sums)(p, sums, 4);
    FN(flush)(trace, sums + GP_ROWS, 2, p->m);
    if (g->n_steps > 1) {
        FN(flush)(p->sum + (ptrdiff_t)g->step[1].group[0].first * GP_ROWS, sums, 1, p->m);
    }
    if (step->kind == GP_RQ) {
        FN(flush)(p->sum + (ptrdiff_t)step->group[1].first * GP_ROWS, sums + 3 * GP_ROWS, 1, p->m);
    }
    if (vector) {
        FN(lengths)(g, p, weight);
    } else {
        FN(flush)(p->sum + (ptrdiff_t)step->group[0].first * GP_ROWS, sums + 2 * GP_ROWS, 1, p->m);
    }
}
