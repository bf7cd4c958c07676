/* spd_cpu.tmpl.h - the kernels of spd_ops.h for one type; included by spd_cpu.c for f64
 * and f32.
 *
 * Template parameters: SUFFIX, real, whole (the integer of its size), ROOT, INDICES (0, 1, ... a
 * vector's lanes). */

typedef real FN(vec) __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef whole FN(mask) __attribute__((vector_size(VECTOR_BYTES), may_alias));
enum { FN(GROUP) = SPD_LINE / (int)sizeof(real), FN(LANES) = VECTOR_BYTES / (int)sizeof(real) };
#define GROUP FN(GROUP)
#define LANES FN(LANES)
#define vec   FN(vec)

INLINE vec FN(load)(const real *p)
{
    return *(const vec *)p;
}

INLINE void FN(keep)(real *p, vec v)
{
    *(vec *)p = v;
}

/* ---- the register tile ---- */

/** Where a tile's columns go: vector v of column j to at + (v / PIECES) * group + j * column. */
typedef struct {
    real *at;
    ptrdiff_t group, column;
} FN(place);
/** The left operand: rows in groups `group` apart, kk in steps of `step`; the right one: column j
 *  at j * column. */
typedef struct {
    const real *at;
    ptrdiff_t group, step;
} FN(left);
typedef struct {
    const real *at;
    ptrdiff_t step, column;
} FN(right);

INLINE ptrdiff_t FN(within)(ptrdiff_t v, ptrdiff_t group)
{
    return v / PIECES * group + v % PIECES * LANES;
}

INLINE void FN(tile)(const store how, const int vectors, const int columns, ptrdiff_t first,
                     ptrdiff_t k, FN(left) a, FN(right) b, FN(place) c, const FN(place) * p)
{
    vec sum[TILE_COLUMNS][VECTOR_ROWS];
    const real *rows[VECTOR_ROWS];
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++)
        rows[v] = a.at + FN(within)(first + v, a.group);
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            sum[j][v] = (vec){0};
        }
    /* What the next 8 columns of this row panel are added to is fetched while this one is summed,
     * evenly: a burst of them would hold up the operands.  So is the right operand of the next 8
     * columns, which another core may have packed. */
    const bool adds = how == STORE_MINUS || how == STORE_PLUS;
    const real *next = c.at + FN(within)(first, c.group) + SPD_COLUMNS * c.column;
    for (ptrdiff_t kk = 0; kk < k;) {
        const ptrdiff_t stop = adds && k >= SPLIT_FROM ? kk + k / columns : k;
        if (adds) {
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                __builtin_prefetch(next + v * LANES, 1);
            next += c.column;
        }
        for (; kk < stop; kk++) {
            vec x[VECTOR_ROWS];
            if (adds)
                __builtin_prefetch(b.at + kk * b.step + SPD_COLUMNS * k);
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                x[v] = FN(load)(rows[v] + kk * a.step);
#pragma GCC unroll 8
            for (int j = 0; j < columns; j++) {
                const real y = b.at[kk * b.step + j * b.column];
#pragma GCC unroll 3
                for (int v = 0; v < vectors; v++)
                    sum[j][v] += x[v] * y;
            }
        }
    }
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            real *const to = c.at + FN(within)(first + v, c.group) + j * c.column;
            vec s = sum[j][v];
            if (how == STORE_NEGATIVE)
                s = -s;
            if (how == STORE_MINUS)
                s = FN(load)(to) - s;
            if (how == STORE_PLUS)
                s = FN(load)(to) + s;
            FN(keep)(to, s);
            if (p)
                FN(keep)(p->at + FN(within)(first + v, p->group) + j * p->column, s);
        }
}

/** 1 to 3 groups of rows by 8 columns.  in_place: the left operand is overwritten from column k - 8
 *  on, and columns of the right one beyond k - 8 + j are zero: later columns first, each with what
 *  it needs. */
INLINE void FN(piece)(const store how, const int groups, const int in_place, ptrdiff_t k,
                      FN(left) a, FN(right) b, FN(place) c, const FN(place) * p)
{
    const int all = groups * PIECES;
    const int vectors = all <= VECTOR_ROWS ? all : all % VECTOR_ROWS == 0 ? VECTOR_ROWS : 2;
    for (int v = 0; v < all; v += vectors) {
        for (int j = SPD_COLUMNS - TILE_COLUMNS; j >= 0; j -= TILE_COLUMNS) {
            const FN(right) bj = {b.at + j * b.column, b.step, b.column};
            const FN(place) cj = {c.at + j * c.column, c.group, c.column};
            const FN(place) pj = p ? (FN(place)){p->at + j * p->column, p->group, p->column} : c;
            const ptrdiff_t kj = in_place ? k - SPD_COLUMNS + j + TILE_COLUMNS : k;
            FN(tile)(how, vectors, TILE_COLUMNS, v, kj, a, bj, cj, p ? &pj : NULL);
        }
    }
}

/** The same for a number of groups known at run time. */
INLINE void FN(rows)(const store how, ptrdiff_t groups, const int in_place, ptrdiff_t k, FN(left) a,
                     FN(right) b, FN(place) c, const FN(place) * p)
{
    if (groups >= 3)
        FN(piece)(how, 3, in_place, k, a, b, c, p);
    else if (groups == 2)
        FN(piece)(how, 2, in_place, k, a, b, c, p);
    else
        FN(piece)(how, 1, in_place, k, a, b, c, p);
}

INLINE ptrdiff_t FN(panel_groups)(ptrdiff_t rows)
{
    return rows >= 3 * GROUP ? 3 : rows / GROUP;
}

/** The same where a triangle is the left operand, whose rows begin at the diagonal. */
INLINE ptrdiff_t FN(slope_groups)(ptrdiff_t rows)
{
    return rows >= SLOPE_GROUPS * GROUP ? SLOPE_GROUPS : rows / GROUP;
}

/* ---- updates ---- */

INLINE void FN(update)(const store how, ptrdiff_t k, ptrdiff_t rows, const real *a, ptrdiff_t cols,
                       const real *b, real *c, ptrdiff_t ld, ptrdiff_t below)
{
    for (ptrdiff_t r = 0; r < rows; r += 3 * GROUP) {
        const ptrdiff_t groups = FN(panel_groups)(rows - r);
        const ptrdiff_t reach = r + groups * GROUP + below, end = reach < cols ? reach : cols;
        for (ptrdiff_t j = 0; j < end; j += SPD_COLUMNS) {
            const ptrdiff_t above = j - below - r, skip = above > 0 ? above / GROUP : 0;
            const FN(left) x = {a + (r + skip * GROUP) * k, k * GROUP, GROUP};
            const FN(right) y = {b + j / GROUP * GROUP * k + j % GROUP, GROUP, 1};
            FN(rows)
            (how, groups - skip, 0, k, x, y, (FN(place)){c + r + skip * GROUP + j * ld, GROUP, ld},
             NULL);
        }
    }
}

static void FN(update_minus)(ptrdiff_t k, ptrdiff_t rows, const void *a, ptrdiff_t cols,
                             const void *b, void *c, ptrdiff_t ld, ptrdiff_t below)
{
    FN(update)(STORE_MINUS, k, rows, a, cols, b, c, ld, below);
}

static void FN(update_plus)(ptrdiff_t k, ptrdiff_t rows, const void *a, ptrdiff_t cols,
                            const void *b, void *c, ptrdiff_t ld, ptrdiff_t below)
{
    FN(update)(STORE_PLUS, k, rows, a, cols, b, c, ld, below);
}

/* ---- products with the inverse of a pivot block ---- */

/** x <- x z' in place for `rows` rows, wherever x lies; p receives a copy where it is not NULL. */
INLINE void FN(divide_in)(ptrdiff_t k, ptrdiff_t rows, FN(place) x, const real *z, ptrdiff_t ldz,
                          FN(place) p)
{
    for (ptrdiff_t r = 0; r < rows; r += 3 * GROUP) {
        const ptrdiff_t groups = FN(panel_groups)(rows - r);
        real *const xr = x.at + r / GROUP * x.group;
        for (ptrdiff_t j = k - SPD_COLUMNS; j >= 0; j -= SPD_COLUMNS) {
            const FN(place) to = {xr + j * x.column, x.group, x.column};
            const FN(place) copy = {p.at + r / GROUP * p.group + j * p.column, p.group, p.column};
            FN(rows)
            (STORE_SET, groups, 1, j + SPD_COLUMNS, (FN(left)){xr, x.group, x.column},
             (FN(right)){z + j, ldz, 1}, to, p.at ? &copy : NULL);
        }
    }
}

static void FN(trsm)(ptrdiff_t k, ptrdiff_t rows, void *a, ptrdiff_t ld, const void *z,
                     ptrdiff_t ldz, void *p)
{
    FN(divide_in)(k, rows, (FN(place)){a, GROUP, ld}, z, ldz, (FN(place)){p, k * GROUP, GROUP});
}

static void FN(pack)(ptrdiff_t k, ptrdiff_t rows, const void *from, ptrdiff_t ld,
                     const double *scale, void *to)
{
    const real *const a = from;
    real *p = to;
    for (ptrdiff_t r = 0; r < rows; r += GROUP)
        for (ptrdiff_t kk = 0; kk < k; kk++)
            for (int v = 0; v < PIECES; v++, p += LANES)
                FN(keep)(p, FN(load)(a + r + v * LANES + kk * ld) * (scale ? (real)scale[kk] : 1));
}

#if defined(__AVX2__)
/** Lanes with bit s of the number of their vector and of their own exchanged. */
INLINE void FN(exchange)(vec *v, const int s)
{
    const FN(mask) lane = {INDICES};
    const FN(mask) low = lane + (((lane & s) != 0) & (LANES - s));
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) {
        if ((i & s) == 0) {
            const vec x = v[i], y = v[i + s];
            v[i] = FRGI_SHUFFLE(x, y, low);
            v[i + s] = FRGI_SHUFFLE(x, y, low + s);
        }
    }
}

/** to[r * ldt + c] <- from[r + c * ld], a square of LANES. */
INLINE void FN(transpose_lanes)(const real *from, ptrdiff_t ld, real *to, ptrdiff_t ldt)
{
    vec v[LANES];
#pragma GCC unroll 16
    for (int c = 0; c < LANES; c++)
        v[c] = FN(load)(from + c * ld);
    FN(exchange)(v, 1);
    FN(exchange)(v, 2);
    if (LANES > 4)
        FN(exchange)(v, LANES > 4 ? 4 : 0);
    if (LANES > 8)
        FN(exchange)(v, LANES > 8 ? 8 : 0);
#pragma GCC unroll 16
    for (int r = 0; r < LANES; r++)
        FN(keep)(to + r * ldt, v[r]);
}
#else
INLINE void FN(transpose_lanes)(const real *from, ptrdiff_t ld, real *to, ptrdiff_t ldt)
{
    for (int c = 0; c < LANES; c++)
        for (int r = 0; r < LANES; r++)
            to[r * ldt + c] = from[r + c * ld];
}
#endif

/** The same for a square of a group. */
INLINE void FN(transpose_square)(const real *from, ptrdiff_t ld, real *to, ptrdiff_t ldt)
{
    for (int c = 0; c < GROUP; c += LANES)
        for (int r = 0; r < GROUP; r += LANES)
            FN(transpose_lanes)(from + r + c * ld, ld, to + r * ldt + c, ldt);
}

static void FN(pack_transposed)(ptrdiff_t k, ptrdiff_t rows, const void *from, ptrdiff_t ld,
                                const double *scale, void *to)
{
    const real *const a = from;
    real *p = to;
    for (ptrdiff_t r = 0; r < rows; r += GROUP)
        for (ptrdiff_t kk = 0; kk < k; kk += GROUP, p += GROUP * GROUP) {
            FN(transpose_square)(a + kk + r * ld, ld, p, GROUP);
            for (int c = 0; scale && c < GROUP; c++)
                for (int v = 0; v < GROUP; v += LANES)
                    FN(keep)(p + c * GROUP + v, FN(load)(p + c * GROUP + v) * (real)scale[kk + c]);
        }
}

static void FN(pack_symmetric)(ptrdiff_t k, const void *from, ptrdiff_t ld, const double *scale,
                               void *to)
{
    const real *const a = from;
    real *const p = to;
    for (ptrdiff_t j = 0; j < k; j++)
        for (ptrdiff_t i = 0; i < k; i++)
            p[i / GROUP * GROUP * k + j * GROUP + i % GROUP] =
                (i >= j ? a[i + j * ld] : a[j + i * ld]) * (scale ? (real)scale[j] : 1);
}

static void FN(update_panel)(ptrdiff_t k, ptrdiff_t rows, void *a, ptrdiff_t ld, const void *t,
                             ptrdiff_t ldz, void *p)
{
    FN(pack)(k, rows, a, ld, NULL, p);
    for (ptrdiff_t r = 0; r < rows; r += 3 * GROUP) {
        const ptrdiff_t groups = FN(panel_groups)(rows - r);
        for (ptrdiff_t j = 0; j < k; j += SPD_COLUMNS)
            FN(rows)
        (STORE_NEGATIVE, groups, 0, k - j,
         (FN(left)){(const real *)p + r * k + j * GROUP, k * GROUP, GROUP},
         (FN(right)){(const real *)t + j * ldz + j, ldz, 1},
         (FN(place)){(real *)a + r + j * ld, GROUP, ld}, NULL);
    }
}

static void FN(transpose_panel)(ptrdiff_t k, ptrdiff_t rows, void *a, ptrdiff_t ld, const void *z,
                                const void *t, ptrdiff_t ldz, void *p)
{
    FN(pack_transposed)(k, rows, a, ld, NULL, p);
    FN(divide_in)(k, rows, (FN(place)){p, k * GROUP, GROUP}, z, ldz, (FN(place)){NULL, 0, 0});
    for (ptrdiff_t r = 0; r < k; r += SLOPE_GROUPS * GROUP) {
        const ptrdiff_t groups = FN(slope_groups)(k - r);
        for (ptrdiff_t j = 0; j < rows; j += SPD_COLUMNS)
            FN(rows)
        (STORE_SET, groups, 0, k - r, (FN(left)){(const real *)t + r * ldz + r, GROUP, ldz},
         (FN(right)){(const real *)p + j / GROUP * GROUP * k + j % GROUP + r * GROUP, GROUP, 1},
         (FN(place)){(real *)a + r + j * ld, GROUP, ld}, NULL);
    }
}

static void FN(square)(ptrdiff_t k, const void *from, ptrdiff_t ldz, void *a, ptrdiff_t ld)
{
    const real *const t = from;
    for (ptrdiff_t r = 0; r < k; r += SLOPE_GROUPS * GROUP) {
        const ptrdiff_t groups = FN(slope_groups)(k - r);
        for (ptrdiff_t j = 0; j < r + groups * GROUP; j += SPD_COLUMNS) {
            const ptrdiff_t from_kk = j > r ? j : r;
            FN(rows)
            (STORE_SET, groups, 0, k - from_kk, (FN(left)){t + from_kk * ldz + r, GROUP, ldz},
             (FN(right)){t + from_kk * ldz + j, ldz, 1},
             (FN(place)){(real *)a + r + j * ld, GROUP, ld}, NULL);
        }
    }
}

/* ---- pivot blocks ---- */

/** What lies below row j of a column held in vectors. */
INLINE vec FN(below)(const real *column, ptrdiff_t first, ptrdiff_t j)
{
    const FN(mask) lane = {INDICES};
    const FN(mask) m = lane + (whole)first > (whole)j;
    return (vec)((FN(mask))FN(load)(column + first) & m);
}

/** The square of a group in registers, column by column; of a lower triangle column j is vectors j
 *  / LANES and after, and what they hold above the diagonal is never used. */
enum { FN(PARTS) = GROUP / LANES };
#define PARTS FN(PARTS)
typedef struct {
    vec at[GROUP][PARTS];
} FN(square_of);

/** Lane `lane` of v in all lanes. */
INLINE vec FN(broadcast)(vec v, const int lane)
{
    const FN(mask) none = {0};
    return FRGI_SHUFFLE(v, v, none + (whole)lane);
}

INLINE void FN(take_lower)(FN(square_of) * c, const real *a, ptrdiff_t ld)
{
#pragma GCC unroll 16
    for (int j = 0; j < GROUP; j++)
#pragma GCC unroll 4
        for (int v = j / LANES; v < PARTS; v++)
            c->at[j][v] = FN(load)(a + v * LANES + j * ld);
}

/** c_k -= c_j c_kj / c_jj for k > j, one pivot j after the other: c_j / sqrt(c_jj) is then column j
 *  of L, and between pivots lies a division but no root (1 / c_jj is finite for every normal
 *  number).  p <- the c_jj. */
INLINE void FN(eliminate_columns)(FN(square_of) * c, real *p)
{
#pragma GCC unroll 16
    for (int j = 0; j < GROUP; j++) {
        const vec pivot = FN(broadcast)(c->at[j][j / LANES], j % LANES), over = 1 / pivot;
        p[j] = pivot[0];
#pragma GCC unroll 16
        for (int k = j + 1; k < GROUP; k++) {
            const vec s = FN(broadcast)(c->at[j][k / LANES], k % LANES) * over;
#pragma GCC unroll 4
            for (int v = k / LANES; v < PARTS; v++)
                c->at[k][v] -= c->at[j][v] * s;
        }
    }
}

/** z <- the inverse of l, row by row: z_j *= 1 / l_jj, z_i -= l_ij z_j for i > j, from the unit
 *  matrix on. */
INLINE void FN(invert_group)(const FN(square_of) * l, const real *reciprocal, real *z,
                             ptrdiff_t ldz)
{
    const FN(mask) lane = {INDICES};
    real rows[GROUP * GROUP] __attribute__((aligned(SPD_LINE)));
    FN(square_of) x;
#pragma GCC unroll 16
    for (int i = 0; i < GROUP; i++)
#pragma GCC unroll 4
        for (int v = 0; v < PARTS; v++)
            x.at[i][v] = (vec)((lane + (whole)(v * LANES) == (whole)i) & (FN(mask))((vec){0} + 1));
#pragma GCC unroll 16
    for (int j = 0; j < GROUP; j++) {
#pragma GCC unroll 4
        for (int v = 0; v <= j / LANES; v++)
            x.at[j][v] *= reciprocal[j];
#pragma GCC unroll 16
        for (int i = j + 1; i < GROUP; i++) {
            const vec s = FN(broadcast)(l->at[j][i / LANES], i % LANES);
#pragma GCC unroll 4
            for (int v = 0; v <= j / LANES; v++)
                x.at[i][v] -= x.at[j][v] * s;
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < GROUP; i++)
#pragma GCC unroll 4
        for (int v = 0; v < PARTS; v++)
            FN(keep)(rows + i * GROUP + v * LANES, x.at[i][v]);
    FN(transpose_square)(rows, GROUP, z, ldz);
}

/** Cholesky factor and inverse of a group's square. */
static ptrdiff_t FN(small)(real *a, ptrdiff_t ld, real *z, ptrdiff_t ldz, double *pivot)
{
    real p[GROUP] __attribute__((aligned(SPD_LINE))),
        root[GROUP] __attribute__((aligned(SPD_LINE)));
    real reciprocal[GROUP] __attribute__((aligned(SPD_LINE)));
    FN(square_of) c;
    FN(take_lower)(&c, a, ld);
    FN(eliminate_columns)(&c, p);
    for (int j = 0; j < GROUP; j++) {
        if (!(p[j] > 0) || !isfinite(p[j])) {
            *pivot = (double)p[j];
            return j;
        }
    }
    for (int j = 0; j < GROUP; j++)
        root[j] = ROOT(p[j]);
    for (int j = 0; j < GROUP; j++)
        reciprocal[j] = 1 / root[j];
#pragma GCC unroll 16
    for (int j = 0; j < GROUP; j++) {
#pragma GCC unroll 4
        for (int v = j / LANES; v < PARTS; v++) {
            c.at[j][v] *= reciprocal[j];
            FN(keep)(a + v * LANES + j * ld, c.at[j][v]);
        }
        a[j + j * ld] = root[j];
    }
    FN(invert_group)(&c, reciprocal, z, ldz);
    return -1;
}

static void FN(small_inverse)(const real *a, ptrdiff_t ld, real *z, ptrdiff_t ldz)
{
    real reciprocal[GROUP];
    FN(square_of) l;
    FN(take_lower)(&l, a, ld);
    for (int j = 0; j < GROUP; j++)
        reciprocal[j] = 1 / a[j * (ld + 1)];
    FN(invert_group)(&l, reciprocal, z, ldz);
}

/** z's groups on the diagonal are there: what is below them, z_iq = -z_ii sum_q' l_iq' z_q'q, row
 *  by row. */
static void FN(complete)(ptrdiff_t k, const real *l, ptrdiff_t ld, real *z, ptrdiff_t ldz)
{
    real row[GROUP * SPD_COLUMNS] __attribute__((aligned(SPD_LINE)));
    for (ptrdiff_t q = 0; q < k; q += GROUP) {
        for (ptrdiff_t j = 0; j < q; j += SPD_COLUMNS) {
            for (int c = 0; c < SPD_COLUMNS; c++)
                memcpy(row + c * GROUP, z + q + (j + c) * ldz, GROUP * sizeof(real));
            FN(rows)
            (STORE_SET, 1, 0, GROUP, (FN(left)){z + q + q * ldz, GROUP, ldz},
             (FN(right)){row, 1, GROUP}, (FN(place)){z + q + j * ldz, GROUP, ldz}, NULL);
        }
        for (ptrdiff_t r = q + GROUP; r < k; r += 3 * GROUP) {
            const ptrdiff_t groups = FN(panel_groups)(k - r);
            const FN(left) x = {l + r + q * ld, GROUP, ld};
            for (ptrdiff_t j = 0; j < q; j += SPD_COLUMNS)
                FN(rows)
            (STORE_MINUS, groups, 0, GROUP, x, (FN(right)){z + q + j * ldz, 1, ldz},
             (FN(place)){z + r + j * ldz, GROUP, ldz}, NULL);
            for (ptrdiff_t j = q; j < q + GROUP; j += SPD_COLUMNS)
                FN(rows)
            (STORE_NEGATIVE, groups, 0, GROUP, x, (FN(right)){z + q + j * ldz, 1, ldz},
             (FN(place)){z + r + j * ldz, GROUP, ldz}, NULL);
        }
    }
}

static ptrdiff_t FN(cholesky)(ptrdiff_t k, void *block, ptrdiff_t ld, void *inverse, ptrdiff_t ldz,
                              void *scratch, double *pivot)
{
    real *const a = block, *const z = inverse;
    for (ptrdiff_t q = 0; q < k; q += GROUP) {
        const ptrdiff_t rows = k - q - GROUP;
        real *const d = a + q * (ld + 1), *const zq = z + q * (ldz + 1);
        const ptrdiff_t bad = FN(small)(d, ld, zq, ldz, pivot);
        if (bad >= 0)
            return q + bad;
        if (rows > 0) {
            FN(trsm)(GROUP, rows, d + GROUP, ld, zq, ldz, scratch);
            FN(update_minus)(GROUP, rows, scratch, rows, scratch, d + GROUP * (ld + 1), ld, 0);
        }
    }
    FN(complete)(k, a, ld, z, ldz);
    return -1;
}

static void FN(invert)(ptrdiff_t k, const void *lower, ptrdiff_t ld, void *inverse, ptrdiff_t ldz)
{
    const real *const l = lower;
    real *const z = inverse;
    for (ptrdiff_t q = 0; q < k; q += GROUP)
        FN(small_inverse)(l + q * (ld + 1), ld, z + q * (ldz + 1), ldz);
    FN(complete)(k, l, ld, z, ldz);
}

static void FN(transpose)(ptrdiff_t k, const void *inverse, void *transposed, ptrdiff_t ldz)
{
    const real *const z = inverse;
    real *const t = transposed;
    for (ptrdiff_t g = 0; g < k; g += GROUP) {
        for (ptrdiff_t j = 0; j <= g; j += GROUP)
            FN(transpose_square)(z + g + j * ldz, ldz, t + g * ldz + j, ldz);
        for (ptrdiff_t i = g; i < g + GROUP; i++)
            memset(t + i * ldz + g + GROUP, 0, (size_t)(k - g - GROUP) * sizeof(real));
    }
}

/* ---- solves and products with few columns ---- */

/** y -= or += a x for one column; `vectors` of rows at a time. */
INLINE ptrdiff_t FN(times_rows)(const store how, const int vectors, ptrdiff_t r, ptrdiff_t rows,
                                ptrdiff_t k, const real *a, ptrdiff_t ld, const real *x, real *y)
{
    for (; r + vectors * LANES <= rows; r += vectors * LANES) {
        vec sum[4] = {{0}};
        for (ptrdiff_t kk = 0; kk < k; kk++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sum[v] += FN(load)(a + r + v * LANES + kk * ld) * x[kk];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            const vec old = FN(load)(y + r + v * LANES);
            if (how == STORE_MINUS)
                sum[v] = -sum[v];
            FN(keep)(y + r + v * LANES, old + sum[v]);
        }
    }
    return r;
}

INLINE void FN(times)(const store how, ptrdiff_t rows, ptrdiff_t k, const real *a, ptrdiff_t ld,
                      ptrdiff_t q, const real *x, ptrdiff_t ldx, real *y, ptrdiff_t ldy)
{
    if (q == 1) {
        const ptrdiff_t r = FN(times_rows)(how, 4, 0, rows, k, a, ld, x, y);
        FN(times_rows)(how, 1, r, rows, k, a, ld, x, y);
        return;
    }
    for (ptrdiff_t r = 0; r < rows; r += 3 * GROUP)
        for (ptrdiff_t j = 0; j < q; j += SPD_COLUMNS)
            FN(rows)
    (how, FN(panel_groups)(rows - r), 0, k, (FN(left)){a + r, GROUP, ld},
     (FN(right)){x + j * ldx, 1, ldx}, (FN(place)){y + r + j * ldy, GROUP, ldy}, NULL);
}

static void FN(times_minus)(ptrdiff_t rows, ptrdiff_t k, const void *a, ptrdiff_t ld, ptrdiff_t q,
                            const void *x, ptrdiff_t ldx, void *y, ptrdiff_t ldy)
{
    FN(times)(STORE_MINUS, rows, k, a, ld, q, x, ldx, y, ldy);
}

static void FN(times_plus)(ptrdiff_t rows, ptrdiff_t k, const void *a, ptrdiff_t ld, ptrdiff_t q,
                           const void *x, ptrdiff_t ldx, void *y, ptrdiff_t ldy)
{
    FN(times)(STORE_PLUS, rows, k, a, ld, q, x, ldx, y, ldy);
}

#if defined(__AVX2__)
/** v[i] <- sums of the halves of v[i] and v[i + s] that differ in bit s: one round of adding up 8
 *  vectors' lanes. */
INLINE void FN(fold)(vec *v, const int s)
{
    const FN(mask) lane = {INDICES};
    const FN(mask) low = lane + (((lane & s) != 0) & (LANES - s));
#pragma GCC unroll 8
    for (int i = 0; i < SPD_COLUMNS; i += 2 * s)
        v[i] = FRGI_SHUFFLE(v[i], v[i + s], low) + FRGI_SHUFFLE(v[i], v[i + s], low + s);
}
#else
/** The sum of a vector's lanes, halves first. */
INLINE real FN(total)(vec v)
{
    real s[LANES];
    memcpy(s, &v, sizeof s);
#pragma GCC unroll 4
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            s[i] += s[i + half];
    return s[0];
}
#endif

/** to[i] -= or += the sum of v[i]'s lanes, i < 8. */
INLINE void FN(add_totals)(const store how, vec *v, real *to)
{
    real sum[SPD_COLUMNS];
#if defined(__AVX2__)
    FN(fold)(v, 1);
    FN(fold)(v, 2);
    if (LANES > 4)
        FN(fold)(v, LANES > 4 ? 4 : 0);
    for (int i = 0; i < SPD_COLUMNS; i += LANES)
        memcpy(sum + i, &v[i], LANES > 8 ? sizeof sum : sizeof *v);
    if ((int)LANES > (int)SPD_COLUMNS)
        for (int i = 0; i < SPD_COLUMNS; i++)
            sum[i] += v[0][(i + SPD_COLUMNS) % (int)LANES];
#else
    for (int i = 0; i < SPD_COLUMNS; i++)
        sum[i] = FN(total)(v[i]);
#endif
    for (int i = 0; i < SPD_COLUMNS; i++)
        to[i] = how == STORE_MINUS ? to[i] - sum[i] : to[i] + sum[i];
}

/** y (k x q) -= or += a' x, 8 columns of a at a time. */
INLINE void FN(transposed)(const store how, ptrdiff_t rows, ptrdiff_t k, const real *a,
                           ptrdiff_t ld, ptrdiff_t q, const real *x, ptrdiff_t ldx, real *y,
                           ptrdiff_t ldy)
{
    for (ptrdiff_t c = 0; c < k; c += SPD_COLUMNS, a += SPD_COLUMNS * ld) {
        for (ptrdiff_t j = 0; j < q; j++) {
            vec sum[SPD_COLUMNS] = {{0}};
            for (ptrdiff_t r = 0; r < rows; r += LANES) {
                const vec xr = FN(load)(x + r + j * ldx);
#pragma GCC unroll 8
                for (int i = 0; i < SPD_COLUMNS; i++)
                    sum[i] += FN(load)(a + r + i * ld) * xr;
            }
            FN(add_totals)(how, sum, y + c + j * ldy);
        }
    }
}

static void FN(transposed_minus)(ptrdiff_t rows, ptrdiff_t k, const void *a, ptrdiff_t ld,
                                 ptrdiff_t q, const void *x, ptrdiff_t ldx, void *y, ptrdiff_t ldy)
{
    FN(transposed)(STORE_MINUS, rows, k, a, ld, q, x, ldx, y, ldy);
}

static void FN(transposed_plus)(ptrdiff_t rows, ptrdiff_t k, const void *a, ptrdiff_t ld,
                                ptrdiff_t q, const void *x, ptrdiff_t ldx, void *y, ptrdiff_t ldy)
{
    FN(transposed)(STORE_PLUS, rows, k, a, ld, q, x, ldx, y, ldy);
}

/** The triangle of one group: column j (transposed: row j) without its diagonal, over that; and the
 *  reciprocal diagonal. */
typedef struct {
    FN(square_of) scaled;
    vec reciprocal[PARTS];
} FN(triangle);

INLINE void FN(take_triangle)(FN(triangle) * t, const real *l, ptrdiff_t ld, const int transposed)
{
    real reciprocal[GROUP] __attribute__((aligned(SPD_LINE)));
    real square[GROUP * GROUP] __attribute__((aligned(SPD_LINE)));
    for (int j = 0; j < GROUP; j++)
        reciprocal[j] = 1 / l[j * (ld + 1)];
    for (int j = 0; j < GROUP; j++)
        for (int v = 0; v < GROUP; v += LANES)
            FN(keep)(square + j * GROUP + v, FN(below)(l + j * ld, v, j));
    if (transposed) {
        real rows[GROUP * GROUP] __attribute__((aligned(SPD_LINE)));
        FN(transpose_square)(square, GROUP, rows, GROUP);
        memcpy(square, rows, sizeof rows);
    }
#pragma GCC unroll 16
    for (int j = 0; j < GROUP; j++)
#pragma GCC unroll 4
        for (int v = 0; v < PARTS; v++)
            t->scaled.at[j][v] = FN(load)(square + j * GROUP + v * LANES) * reciprocal[j];
#pragma GCC unroll 4
    for (int v = 0; v < PARTS; v++)
        t->reciprocal[v] = FN(load)(reciprocal + v * LANES);
}

/** The system of one group, in registers: x_i -= l_ij / l_jj x_j for j in the order given, and in
 *  the end x_j / l_jj. */
INLINE void FN(eliminate)(const FN(triangle) * t, real *x, const int last_first)
{
    vec y[PARTS];
#pragma GCC unroll 4
    for (int v = 0; v < PARTS; v++)
        y[v] = FN(load)(x + v * LANES);
#pragma GCC unroll 16
    for (int n = 0; n < GROUP; n++) {
        const int j = last_first ? GROUP - 1 - n : n;
        const vec s = FN(broadcast)(y[j / LANES], j % LANES);
#pragma GCC unroll 4
        for (int v = 0; v < PARTS; v++)
            y[v] -= t->scaled.at[j][v] * s;
    }
#pragma GCC unroll 4
    for (int v = 0; v < PARTS; v++)
        FN(keep)(x + v * LANES, y[v] * t->reciprocal[v]);
}

static void FN(forward)(ptrdiff_t k, const void *lower, ptrdiff_t ld, ptrdiff_t q, void *to,
                        ptrdiff_t ldx)
{
    const real *const l = lower;
    real *const x = to;
    FN(triangle) t;
    for (ptrdiff_t g = 0; g < k; g += GROUP) {
        FN(take_triangle)(&t, l + g * (ld + 1), ld, 0);
        for (ptrdiff_t j = 0; j < q; j++)
            FN(eliminate)(&t, x + g + j * ldx, 0);
        FN(times)
        (STORE_MINUS, k - g - GROUP, GROUP, l + g + GROUP + g * ld, ld, q, x + g, ldx,
         x + g + GROUP, ldx);
    }
}

static void FN(backward)(ptrdiff_t k, const void *lower, ptrdiff_t ld, ptrdiff_t q, void *to,
                         ptrdiff_t ldx)
{
    const real *const l = lower;
    real *const x = to;
    FN(triangle) t;
    for (ptrdiff_t g = k - GROUP; g >= 0; g -= GROUP) {
        FN(transposed)
        (STORE_MINUS, k - g - GROUP, GROUP, l + g + GROUP + g * ld, ld, q, x + g + GROUP, ldx,
         x + g, ldx);
        FN(take_triangle)(&t, l + g * (ld + 1), ld, 1);
        for (ptrdiff_t j = 0; j < q; j++)
            FN(eliminate)(&t, x + g + j * ldx, 1);
    }
}

static void FN(times_symmetric)(ptrdiff_t k, const void *matrix, ptrdiff_t ld, ptrdiff_t q,
                                const void *from, ptrdiff_t ldx, void *to, ptrdiff_t ldy)
{
    const real *const a = matrix;
    for (ptrdiff_t c = 0; c < q; c++) {
        const real *const restrict x = (const real *)from + c * ldx;
        real *const restrict y = (real *)to + c * ldy;
        for (ptrdiff_t j = 0; j < k; j++) {
            real s = a[j + j * ld] * x[j];
            const real xj = x[j];
            for (ptrdiff_t i = j + 1; i < k; i++) {
                y[i] += a[i + j * ld] * xj;
                s += a[i + j * ld] * x[i];
            }
            y[j] += s;
        }
    }
}

#undef PARTS
#undef GROUP
#undef LANES
#undef vec
