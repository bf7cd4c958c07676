/* qr_cpu.tmpl.h - Householder QR by panels; included once per element type.
 *
 * Data first.  A trailing update takes a band of some columns C at a time: W = V' C, X = T' W, C -=
 * V X.  V by rows goes through L1 in pieces of 128 rows, each used for all columns of the band, V
 * by columns in tiles of three vectors, likewise; the band itself stays in L2 between the two
 * products.  Neither C nor W is ever packed: both products take single numbers of them as
 * broadcasts and whole vectors of V alone.
 *
 * A panel is factored 8 columns at a time (a leaf), each leaf first brought up to date with the
 * panel's leaves before it (left-looking), so that the leaf is the only part that runs at the speed
 * of L1. In a leaf one pass per column applies the reflector and already forms the inner products
 * that the next column's reflector needs.  For column j with its diagonal in row r, and k > j:
 *
 *     s_k = sum_{i > r} a_ij a_ik,   alpha = a_rj
 *     beta = -sign(alpha) sqrt(alpha^2 + s_j),   tau = (beta - alpha) / beta
 *     v = (1, a_ij / (alpha - beta)),   w_k = tau (a_rk + s_k / (alpha - beta)),   a_ik -= v_i w_k
 *
 * Then R_jj = beta.
 *
 * T comes from the inner products of the V that was stored, with half of v'v on the diagonal of its
 * inverse: I - V T V' is then orthogonal to rounding whatever beta was rounded to.
 *
 * Template parameters: real, integer (of its width), SUF, UNIT (unit roundoff), ROOT.
 */

enum {
    FN(LANES) = VECTOR_BYTES / sizeof(real),
    FN(CHUNK) = 2 * VECTOR_BYTES / sizeof(real), /* rows of W that a tile makes */
    FN(TILE) = 3 * VECTOR_BYTES / sizeof(real),  /* rows of C that a tile updates */
};
typedef real FN(oct) __attribute__((vector_size(QR_LEAF * sizeof(real)), may_alias));
typedef real FN(four) __attribute__((vector_size(4 * sizeof(real)), may_alias));
typedef double FN(four_doubles) __attribute__((vector_size(4 * sizeof(double))));
typedef integer FN(oct_mask) __attribute__((vector_size(QR_LEAF * sizeof(real))));
#define vec   FN(vec)
#define mask  FN(mask)
#define LANES FN(LANES)
#define CHUNK FN(CHUNK)
#define TILE  FN(TILE)

INLINE vec FN(load)(const real *p)
{
    return *(const vec *)p;
}

INLINE void FN(store)(real *p, vec x)
{
    *(vec *)p = x;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/** w[vectors LANES x columns] = (first ? 0 : w) + sum_p v_p c_p': rows v_p of a chunk, entries c[j
 *  ld + p]. */
INLINE void FN(inner_tile)(const int vectors, const int columns, bool first, ptrdiff_t k,
                           const real *restrict v, const real *restrict c, ptrdiff_t ld,
                           real *restrict w, ptrdiff_t ldw)
{
    vec x[WIDEST] = {{0}}, y[WIDEST] = {{0}};
    for (ptrdiff_t p = 0; p < k; p++) {
        const vec v0 = FN(load)(v + CHUNK * p);
        const vec v1 = vectors > 1 ? FN(load)(v + CHUNK * p + LANES) : v0;
        UNROLL(8)
        for (int j = 0; j < columns; j++) {
            const real t = c[j * ld + p];
            x[j] += v0 * t;
            if (vectors > 1) {
                y[j] += v1 * t;
            }
        }
    }
    UNROLL(8)
    for (int j = 0; j < columns; j++) {
        real *const to = w + j * ldw;
        x[j] += first ? (vec){0} : FN(load)(to);
        FN(store)(to, x[j]);
        if (vectors > 1) {
            y[j] += first ? (vec){0} : FN(load)(to + LANES);
            FN(store)(to + LANES, y[j]);
        }
    }
}

/** The chunk of W whose rows start at v, all its columns. */
INLINE void FN(inner_chunk)(const int vectors, bool first, ptrdiff_t k, const real *v,
                            const real *c, ptrdiff_t ld, ptrdiff_t columns, real *w, ptrdiff_t ldw)
{
    ptrdiff_t width;
    for (ptrdiff_t j = 0; j < columns; j += width) {
        const ptrdiff_t after = columns - j - WIDEST;
        if (after == 0 || after >= TOGETHER) {
            width = WIDEST;
            FN(inner_tile)(vectors, WIDEST, first, k, v, c + j * ld, ld, w + j * ldw, ldw);
        } else {
            width = TOGETHER;
            FN(inner_tile)(vectors, TOGETHER, first, k, v, c + j * ld, ld, w + j * ldw, ldw);
        }
    }
}

/** w (rows x columns) = V' C over k rows, `rows` whole vectors; v starts at a row of the chunks,
 *  which are `chunk` apart. */
static void FN(inner)(ptrdiff_t k, ptrdiff_t rows, const real *v, ptrdiff_t chunk, const real *c,
                      ptrdiff_t ld, ptrdiff_t columns, real *w, ptrdiff_t ldw)
{
    enum { PIECE = 128 };
    for (ptrdiff_t p = 0; p < k; p += PIECE) {
        const ptrdiff_t piece = k - p < PIECE ? k - p : PIECE;
        for (ptrdiff_t i = 0; i < rows; i += CHUNK) {
            const real *const from = v + i / CHUNK * chunk + p * CHUNK;
            if (rows - i > LANES) {
                FN(inner_chunk)(2, p == 0, piece, from, c + p, ld, columns, w + i, ldw);
            } else {
                FN(inner_chunk)(1, p == 0, piece, from, c + p, ld, columns, w + i, ldw);
            }
        }
    }
}

/** vectors x LANES rows of TOGETHER columns:  c -= sum_p v_p x_p', v_p vectors x LANES apart */
INLINE void FN(outer_tile)(const int vectors, ptrdiff_t k, const real *restrict v,
                           const real *restrict x, ptrdiff_t ldx, real *restrict c, ptrdiff_t ld)
{
    vec s[3][TOGETHER];
    UNROLL(8)
    for (int j = 0; j < TOGETHER; j++) {
        UNROLL(3)
        for (int i = 0; i < vectors; i++) {
            s[i][j] = FN(load)(c + j * ld + i * LANES);
        }
    }
    for (ptrdiff_t p = 0; p < k; p++, v += vectors * LANES) {
        vec y[3];
        UNROLL(3)
        for (int i = 0; i < vectors; i++) {
            y[i] = FN(load)(v + i * LANES);
        }
        UNROLL(8)
        for (int j = 0; j < TOGETHER; j++) {
            const real t = x[j * ldx + p];
            UNROLL(3)
            for (int i = 0; i < vectors; i++) {
                s[i][j] -= y[i] * t;
            }
        }
    }
    UNROLL(8)
    for (int j = 0; j < TOGETHER; j++) {
        UNROLL(3)
        for (int i = 0; i < vectors; i++) {
            FN(store)(c + j * ld + i * LANES, s[i][j]);
        }
    }
}

/** `columns` columns of `rows` rows:  C -= V X, X (k x columns), V in tiles that are `panel`
 *  columns wide */
static void FN(outer)(ptrdiff_t rows, ptrdiff_t k, const real *v, ptrdiff_t panel, const real *x,
                      ptrdiff_t ldx, real *c, ptrdiff_t ld, ptrdiff_t columns)
{
    for (ptrdiff_t at = 0; at < rows; at += TILE) {
        const ptrdiff_t left = (rows - at) / LANES;
        const real *const tile = v + at * panel;
        for (ptrdiff_t j = 0; j < columns; j += TOGETHER) {
            real *const to = c + at + j * ld;
            if (left >= 3) {
                FN(outer_tile)(3, k, tile, x + j * ldx, ldx, to, ld);
            } else if (left == 2) {
                FN(outer_tile)(2, k, tile, x + j * ldx, ldx, to, ld);
            } else {
                FN(outer_tile)(1, k, tile, x + j * ldx, ldx, to, ld);
            }
        }
    }
}

/* ---- a panel and its block reflector --------------------------------------------------------- */

/** The current panel.  Sizes count from its first row and column. */
typedef struct {
    ptrdiff_t rows, width; /* width: columns, a multiple of 8 */
    ptrdiff_t chunk;       /* elements from chunk to chunk of v_rows */
    real *v_leaf, *v_tiles, *v_rows;
    real *t;       /* chunks of rows: t[chunk][k][i] = T_ki, for X = T' W */
    real *t2;      /* the same of T': for X = T W */
    real *w, *x;   /* panel x 8 */
    ptrdiff_t ldw; /* panel */
} FN(panel);

INLINE ptrdiff_t FN(whole)(ptrdiff_t width)
{
    return (width + LANES - 1) / LANES * LANES;
}

/** x <- T'w (`transposed`), else T w, with the half of T that is not zero, by chunks. */
static void FN(multiply_t)(const FN(panel) * p, ptrdiff_t whole, bool transposed, ptrdiff_t columns)
{
    const real *const t = transposed ? p->t : p->t2;
    for (ptrdiff_t i = 0; i < whole; i += CHUNK) {
        const ptrdiff_t left = whole - i, rows = left < CHUNK ? left : CHUNK;
        const ptrdiff_t from = transposed ? 0 : i, to = transposed ? i + rows : whole;
        FN(inner)
        (to - from, rows, t + i * p->ldw + from * CHUNK, 0, p->w + from, p->ldw, columns, p->x + i,
         p->ldw);
    }
}

/** Up to BAND columns c <- (I - V T V')' c for the first `width` columns of V (`transposed`), else
 *  (I - V T V') c; the first `zeros` rows of c are known to be zero. */
static void FN(apply)(const FN(panel) * p, ptrdiff_t width, bool transposed, ptrdiff_t zeros,
                      real *c, ptrdiff_t ld, ptrdiff_t columns)
{
    const ptrdiff_t whole = FN(whole)(width);
    FN(inner)
    (p->rows - zeros, whole, p->v_rows + zeros * CHUNK, p->chunk, c + zeros, ld, columns, p->w,
     p->ldw);
    FN(multiply_t)(p, whole, transposed, columns);
    FN(outer)(p->rows, width, p->v_tiles, p->ldw, p->x, p->ldw, c, ld, columns);
}

INLINE mask FN(below)(ptrdiff_t at, ptrdiff_t row)
{
    mask index;
    for (int i = 0; i < LANES; i++) {
        index[i] = i;
    }
    return index > (integer)(row - at);
}

INLINE vec FN(keep)(vec x, mask m)
{
    return (vec)((mask)x & m);
}

/** The sum of the lanes, by halves. */
INLINE real FN(total)(vec x)
{
    UNROLL(4)
    for (int h = LANES / 2; h > 0; h /= 2) {
        mask other;
        for (int i = 0; i < LANES; i++) {
            other[i] = (integer)(i ^ h);
        }
        x += FRGI_SHUFFLE(x, x, other);
    }
    return x[0];
}

/** One block of rows of the pass below. */
INLINE void FN(sweep_block)(const int j, const int masked, ptrdiff_t at, real *restrict a,
                            ptrdiff_t ld, ptrdiff_t r, real scale, const real *restrict w,
                            vec *restrict s)
{
    const vec old = FN(load)(a + j * ld + at);
    vec v = old * scale;
    if (masked) {
        const mask tail = FN(below)(at, r);
        v = FN(keep)(v, tail);
        FN(store)(a + j * ld + at, (vec)((mask)v | ((mask)old & ~tail)));
    } else {
        FN(store)(a + j * ld + at, v);
    }
    if (j + 1 == QR_LEAF) {
        return;
    }
    vec next = FN(load)(a + (j + 1) * ld + at) - v * w[j + 1];
    FN(store)(a + (j + 1) * ld + at, next);
    if (masked) {
        next = FN(keep)(next, FN(below)(at, r + 1));
    }
    s[j + 1] += next * next;
    UNROLL(8)
    for (int k = j + 2; k < QR_LEAF; k++) {
        const vec y = FN(load)(a + k * ld + at) - v * w[k];
        FN(store)(a + k * ld + at, y);
        s[k] += next * y;
    }
}

/** Column j of the leaf becomes v, reflects the columns after it, and gives s of column j + 1. */
INLINE void FN(sweep)(const int j, ptrdiff_t rows, real *restrict a, ptrdiff_t ld, ptrdiff_t r,
                      real scale, const real *restrict w, real *restrict s)
{
    vec sum[QR_LEAF] = {{0}};
    ptrdiff_t at = r / LANES * LANES;
    for (int i = 0; i < 2 && at < rows; i++, at += LANES) {
        FN(sweep_block)(j, 1, at, a, ld, r, scale, w, sum);
    }
    for (; at < rows; at += LANES) {
        FN(sweep_block)(j, 0, at, a, ld, r, scale, w, sum);
    }
    UNROLL(8)
    for (int k = j + 1; k < QR_LEAF; k++) {
        s[k] = FN(total)(sum[k]);
    }
}

/** s_k of the leaf's first column, whose diagonal is in row r. */
INLINE void FN(first_products)(ptrdiff_t rows, const real *restrict a, ptrdiff_t ld, ptrdiff_t r,
                               real *restrict s)
{
    vec sum[QR_LEAF] = {{0}};
    for (ptrdiff_t at = r / LANES * LANES; at < rows; at += LANES) {
        vec x = FN(load)(a + at);
        if (at < r + 1) {
            x = FN(keep)(x, FN(below)(at, r));
        }
        UNROLL(8)
        for (int k = 0; k < QR_LEAF; k++) {
            sum[k] += x * FN(load)(a + k * ld + at);
        }
    }
    UNROLL(8)
    for (int k = 0; k < QR_LEAF; k++) {
        s[k] = FN(total)(sum[k]);
    }
}

/** The reflector of column j: `live` is whether there is one. */
INLINE void FN(reflect)(const int j, ptrdiff_t rows, real *restrict a, ptrdiff_t ld, ptrdiff_t r,
                        real *restrict s, bool *live)
{
    const real alpha = a[j * ld + r], square = alpha * alpha + s[j];
    live[j] = s[j] > 0 && square > UNIT * UNIT * UNIT * UNIT;
    real w[QR_LEAF] = {0}, scale = 0, beta = alpha;
    if (live[j]) {
        beta = alpha > 0 ? -ROOT(square) : ROOT(square);
        scale = 1 / (alpha - beta);
        const real tau = (beta - alpha) / beta;
        for (int k = j + 1; k < QR_LEAF; k++) {
            w[k] = tau * (a[k * ld + r] + s[k] * scale);
        }
    }
    FN(sweep)(j, rows, a, ld, r, scale, w, s);
    a[j * ld + r] = beta;
    for (int k = j + 1; k < QR_LEAF; k++) {
        a[k * ld + r] -= w[k];
    }
}

/** Factors 8 columns whose first diagonal is in row `first`. */
static void FN(leaf)(ptrdiff_t rows, real *restrict a, ptrdiff_t ld, ptrdiff_t first,
                     bool live[QR_LEAF])
{
    real s[QR_LEAF];
    FN(first_products)(rows, a, ld, first, s);
    FN(reflect)(0, rows, a, ld, first, s, live);
    FN(reflect)(1, rows, a, ld, first + 1, s, live);
    FN(reflect)(2, rows, a, ld, first + 2, s, live);
    FN(reflect)(3, rows, a, ld, first + 3, s, live);
    FN(reflect)(4, rows, a, ld, first + 4, s, live);
    FN(reflect)(5, rows, a, ld, first + 5, s, live);
    FN(reflect)(6, rows, a, ld, first + 6, s, live);
    FN(reflect)(7, rows, a, ld, first + 7, s, live);
}

/** One round of the transposition below: the blocks of s lanes beside the diagonal change
 *  places. */
INLINE void FN(transpose_step)(const int s, FN(oct_mask) low, FN(oct_mask) high, FN(oct) x[QR_LEAF])
{
    UNROLL(8)
    for (int j = 0; j < QR_LEAF; j++) {
        if (!(j & s)) {
            const FN(oct) y = FRGI_SHUFFLE(x[j], x[j | s], low);
            x[j | s] = FRGI_SHUFFLE(x[j], x[j | s], high);
            x[j] = y;
        }
    }
}

/** Eight rows by columns, x[j] those of column at + j from row i on, go to v_rows: a transposition
 *  of 8 x 8 in three rounds.  The lanes that stand there are constants, which make one instruction
 *  of every exchange. */
INLINE void FN(place_rows)(const FN(panel) * p, ptrdiff_t at, ptrdiff_t i, FN(oct) x[QR_LEAF])
{
    FN(transpose_step)
    (1, (FN(oct_mask)){0, 8, 2, 10, 4, 12, 6, 14}, (FN(oct_mask)){1, 9, 3, 11, 5, 13, 7, 15}, x);
    FN(transpose_step)
    (2, (FN(oct_mask)){0, 1, 8, 9, 4, 5, 12, 13}, (FN(oct_mask)){2, 3, 10, 11, 6, 7, 14, 15}, x);
    FN(transpose_step)
    (4, (FN(oct_mask)){0, 1, 2, 3, 8, 9, 10, 11}, (FN(oct_mask)){4, 5, 6, 7, 12, 13, 14, 15}, x);
    const int step = CHUNK < (int)QR_LEAF ? CHUNK : QR_LEAF;
    UNROLL(8)
    for (int r = 0; r < QR_LEAF; r++) {
        for (int c = 0; c < QR_LEAF; c += step) {
            real *const to = p->v_rows + (at + c) / CHUNK * p->chunk + (i + r) * CHUNK;
            memcpy(to + (at + c) % CHUNK, (const real *)&x[r] + c, (size_t)step * sizeof *to);
        }
        if (LANES > (int)QR_LEAF &&
            at % LANES == 0) { /* the vector's other half: read, to no effect */
            real *const to = p->v_rows + at / CHUNK * p->chunk + (i + r) * CHUNK + at % CHUNK;
            memset(to + QR_LEAF, 0, QR_LEAF * sizeof *to);
        }
    }
}

/** The same go to the tiles, and to v_leaf. */
INLINE void FN(place_columns)(const FN(panel) * p, ptrdiff_t at, ptrdiff_t i,
                              const FN(oct) x[QR_LEAF])
{
    const int step = LANES < (int)QR_LEAF ? LANES : QR_LEAF;
    UNROLL(8)
    for (int j = 0; j < QR_LEAF; j++) {
        *(FN(oct) *)(p->v_leaf + j * p->rows + i) = x[j];
    }
    for (int c = 0; c < QR_LEAF; c += step) {
        const ptrdiff_t top = (i + c) / TILE * TILE, left = p->rows - top;
        const ptrdiff_t height = left < TILE ? left : TILE;
        real *const to = p->v_tiles + top * p->ldw + at * height + i + c - top;
        UNROLL(8)
        for (int j = 0; j < QR_LEAF; j++) {
            memcpy(to + j * height, (const real *)&x[j] + c, (size_t)step * sizeof *to);
        }
    }
}

/** Columns at .. at + 7 of V: explicit, by columns (from row `at` on), in tiles and by rows. */
static void FN(take_leaf)(const FN(panel) * panel, const real *restrict a, ptrdiff_t ld,
                          ptrdiff_t at, const bool live[QR_LEAF])
{
    const FN(panel) own = *panel, *const p = &own; /* which no store reaches */
    FN(oct) x[QR_LEAF];
    for (ptrdiff_t i = 0; i < at; i += QR_LEAF) {
        for (int j = 0; j < QR_LEAF; j++) {
            x[j] = (FN(oct)){0};
        }
        FN(place_columns)(p, at, i, x);
        FN(place_rows)(p, at, i, x);
    }
    for (int j = 0; j < QR_LEAF; j++) {
        real *const v = (real *)&x[j];
        for (int i = 0; i < QR_LEAF; i++) {
            v[i] = i > j ? a[j * ld + at + i] : i == j && live[j] ? 1 : 0;
        }
    }
    for (ptrdiff_t i = at;;) {
        FN(place_columns)(p, at, i, x);
        FN(place_rows)(p, at, i, x);
        i += QR_LEAF;
        if (i >= p->rows) {
            break;
        }
        UNROLL(8)
        for (int j = 0; j < QR_LEAF; j++) {
            x[j] = *(const FN(oct) *)(a + j * ld + i);
        }
    }
}

INLINE real *FN(t_at)(real *t, ptrdiff_t panel, ptrdiff_t k, ptrdiff_t i)
{
    return t + i / CHUNK * panel * CHUNK + k * CHUNK + i % CHUNK;
}

/** Squared norms of the leaf's columns of V: in double, as what T makes of them decides how
 *  orthogonal Q is. */
static void FN(leaf_norms)(const FN(panel) * p, ptrdiff_t at, double norm2[QR_LEAF])
{
    FN(four_doubles) sum[QR_LEAF] = {{0}};
    for (ptrdiff_t i = at; i < p->rows; i += 4) {
        UNROLL(8)
        for (int j = 0; j < QR_LEAF; j++) {
            const FN(four_doubles) v = __builtin_convertvector(
                *(const FN(four) *)(p->v_leaf + j * p->rows + i), FN(four_doubles));
            sum[j] += v * v;
        }
    }
    for (int j = 0; j < QR_LEAF; j++) {
        norm2[j] = (sum[j][0] + sum[j][2]) + (sum[j][1] + sum[j][3]);
    }
}

/** T grows by the leaf at `at`:  T_leaf^-1 = striu(S) + diag(S) / 2,  T_old,leaf = -T_old S T_leaf,
 *  S = V' V_leaf without its diagonal, which is norm2. */
static void FN(grow_t)(const FN(panel) * p, ptrdiff_t at)
{
    double norm2[QR_LEAF];
    FN(leaf_norms)(p, at, norm2);
    const ptrdiff_t whole = FN(whole)(at + QR_LEAF), ldw = p->ldw;
    FN(inner)
    (p->rows - at, whole, p->v_rows + at * CHUNK, p->chunk, p->v_leaf + at, p->rows, QR_LEAF, p->w,
     ldw);
    const real *const s = p->w + at;
    real leaf[QR_LEAF][QR_LEAF] = {{0}}; /* [row][column] */
    for (int j = 0; j < QR_LEAF; j++) {
        leaf[j][j] = norm2[j] > 0 ? (real)(2 / norm2[j]) : 1;
        for (int i = j - 1; i >= 0; i--) {
            real sum = 0;
            for (int k = i + 1; k <= j; k++) {
                sum += s[k * ldw + i] * leaf[k][j];
            }
            leaf[i][j] = -sum * leaf[i][i];
        }
        for (int i = 0; i <= j; i++) {
            *FN(t_at)(p->t, ldw, at + i, at + j) = leaf[i][j];
            *FN(t_at)(p->t2, ldw, at + j, at + i) = leaf[i][j];
        }
    }
    if (at == 0) {
        return;
    }
    FN(inner)(at, FN(whole)(at), p->t2, ldw * CHUNK, p->w, ldw, QR_LEAF, p->x, ldw);
    for (ptrdiff_t i = 0; i < at; i++) {
        for (int j = 0; j < QR_LEAF; j++) {
            real sum = 0;
            for (int k = 0; k <= j; k++) {
                sum += p->x[k * ldw + i] * leaf[k][j];
            }
            *FN(t_at)(p->t, ldw, i, at + j) = -sum;
            *FN(t_at)(p->t2, ldw, at + j, i) = -sum;
        }
    }
}

/** The panel that starts at row and column `first`. */
INLINE FN(panel) FN(open_panel)(const frgi_qr_matrix *x, ptrdiff_t first)
{
    const ptrdiff_t left = x->columns - first, square = x->panel * x->panel;
    real *const small = x->small;
    return (FN(panel)){
        .rows = x->rows - first,
        .width = left < x->panel ? left : x->panel,
        .chunk = (x->rows - first) * CHUNK,
        .v_leaf = x->v_leaf,
        .v_tiles = x->v_tiles,
        .v_rows = x->v_rows,
        .t = small,
        .t2 = (real *)x->t + first / x->panel * square,
        .w = small + square,
        .x = small + square + QR_BAND * x->panel,
        .ldw = x->panel,
    };
}

/** The band whose first column is c, by thread `thread` of the team; where Q is formed it has zeros
 *  beside the panel. */
static void FN(update_band)(const frgi_qr_matrix *x, const FN(panel) * p, ptrdiff_t c, int thread,
                            bool transposed)
{
    const ptrdiff_t band = x->columns - c < BAND ? x->columns - c : BAND;
    real *const a = (real *)x->a + c * x->ld + x->rows - p->rows;
    FN(panel) mine = *p;
    mine.w += thread * 2 * QR_BAND * p->ldw;
    mine.x += thread * 2 * QR_BAND * p->ldw;
    for (ptrdiff_t j = 0; j < (transposed ? 0 : band); j++) {
        memset(a + j * x->ld, 0, (size_t)p->width * sizeof *a);
    }
    FN(apply)(&mine, p->width, transposed, transposed ? 0 : p->width, a, x->ld, band);
}

/** All columns right of the panel.  A band is computed alone: bits do not depend on the team. */
static void FN(update)(const frgi_qr_matrix *x, const FN(panel) * p, ptrdiff_t first,
                       bool transposed)
{
    const ptrdiff_t from = first + p->width;
    if (x->team == 1) { /* within a region of the caller's */
        for (ptrdiff_t c = from; c < x->columns; c += BAND) {
            FN(update_band)(x, p, c, 0, transposed);
        }
        return;
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads(x->team)
    for (ptrdiff_t c = from; c < x->columns; c += BAND) {
        FN(update_band)(x, p, c, omp_get_thread_num(), transposed);
    }
}

/* ---- the two calls --------------------------------------------------------------------------- */

static void FN(factor)(const frgi_qr_matrix *x)
{
    real *const restrict diagonal = x->diagonal;
    const ptrdiff_t square = x->panel * x->panel;
    for (ptrdiff_t first = 0; first < x->columns; first += x->panel) {
        const FN(panel) p = FN(open_panel)(x, first);
        real *const a = (real *)x->a + first * x->ld + first;
        memset(p.t, 0, (size_t)square * sizeof(real));
        memset(p.t2, 0, (size_t)square * sizeof(real));
        for (ptrdiff_t at = 0; at < p.width; at += QR_LEAF) {
            real *const columns = a + at * x->ld;
            bool live[QR_LEAF];
            if (at > 0) {
                FN(apply)(&p, at, true, 0, columns, x->ld, QR_LEAF);
            }
            FN(leaf)(p.rows, columns, x->ld, at, live);
            for (int j = 0; j < QR_LEAF; j++) {
                diagonal[first + at + j] = columns[j * x->ld + at + j];
            }
            FN(take_leaf)(&p, columns, x->ld, at, live);
            FN(grow_t)(&p, at);
        }
        FN(update)(x, &p, first, true);
    }
}

/** The columns of the panel itself:  E - V T V_1', V_1 the first `width` rows of V. */
static void FN(form_own)(const FN(panel) * p, real *a, ptrdiff_t ld)
{
    for (ptrdiff_t at = 0; at < p->width; at += QR_LEAF) {
        const ptrdiff_t whole = FN(whole)(p->width);
        memset(p->w, 0, (size_t)(QR_LEAF * p->ldw) * sizeof(real));
        for (int j = 0; j < QR_LEAF; j++) {
            for (ptrdiff_t k = 0; k <= at + j; k++) {
                p->w[j * p->ldw + k] =
                    p->v_rows[k / CHUNK * p->chunk + (at + j) * CHUNK + k % CHUNK];
            }
            memset(a + (at + j) * ld, 0, (size_t)p->rows * sizeof(real));
            a[(at + j) * ld + at + j] = 1;
        }
        FN(multiply_t)(p, whole, false, QR_LEAF);
        FN(outer)(p->rows, p->width, p->v_tiles, p->ldw, p->x, p->ldw, a + at * ld, ld, QR_LEAF);
    }
}

static void FN(form)(const frgi_qr_matrix *x)
{
    const ptrdiff_t last = (x->columns - 1) / x->panel * x->panel;
    for (ptrdiff_t first = last; first >= 0; first -= x->panel) {
        const FN(panel) p = FN(open_panel)(x, first);
        real *const a = (real *)x->a + first * x->ld + first;
        for (ptrdiff_t at = 0; at < p.width; at += QR_LEAF) {
            bool live[QR_LEAF];
            for (int j = 0; j < QR_LEAF; j++) { /* a reflector that is none left zeros */
                const real *const v = a + (at + j) * x->ld;
                live[j] = false;
                for (ptrdiff_t i = at + j + 1; i < p.rows && !live[j]; i++) {
                    live[j] = v[i] != 0;
                }
            }
            FN(take_leaf)(&p, a + at * x->ld, x->ld, at, live);
        }
        FN(update)(x, &p, first, false);
        FN(form_own)(&p, a, x->ld);
    }
}

/* ---- columns --------------------------------------------------------------------------------- */

/** Without their sign, the bits of floating-point numbers are ordered as integers, infinities and
 *  NaN last. */
static double FN(largest)(ptrdiff_t rows, const void *column)
{
    /* so many at once: one alone would wait for its last result */
    enum { APART = QR_ROW_STEP / LANES };
    const real *const a = column;
    mask top[APART] = {{0}};
    for (ptrdiff_t i = 0; i < rows; i += QR_ROW_STEP) {
        UNROLL(8)
        for (int k = 0; k < APART; k++) {
            const mask bits = (mask)FN(keep)(FN(load)(a + i + k * LANES), ~(mask)(-(vec){0}));
            const mask above = bits > top[k];
            top[k] = (bits & above) | (top[k] & ~above);
        }
    }
    real most = 0;
    for (int k = 0; k < QR_ROW_STEP; k++) {
        const real x = ((vec)top[k / LANES])[k % LANES];
        most = x > most || x != x ? x : most;
    }
    return isfinite(most) ? (double)most : (double)NAN;
}

static double FN(scale)(ptrdiff_t rows, double factor, void *column)
{
    enum { APART = QR_ROW_STEP / LANES };
    real *const a = column;
    vec sum[APART] = {{0}};
    for (ptrdiff_t i = 0; i < rows; i += QR_ROW_STEP) {
        UNROLL(8)
        for (int k = 0; k < APART; k++) {
            const vec x = FN(load)(a + i + k * LANES) * (real)factor;
            FN(store)(a + i + k * LANES, x);
            sum[k] += x * x;
        }
    }
    for (int k = 1; k < APART; k++) {
        sum[0] += sum[k];
    }
    return (double)FN(total)(sum[0]);
}

INLINE real FN(sign_of)(ptrdiff_t j)
{
    return __builtin_popcountll((unsigned long long)j) % 2 ? -1 : 1;
}

/** y += columns .. of Q times their signs, one after the other. */
INLINE void FN(probe_add)(const int columns, ptrdiff_t rows, ptrdiff_t j, const real *restrict q,
                          ptrdiff_t ld, real *restrict y)
{
    for (ptrdiff_t i = 0; i < rows; i += LANES) {
        vec sum = FN(load)(y + i);
        UNROLL(4)
        for (int k = 0; k < columns; k++) {
            sum += FN(sign_of)(j + k) * FN(load)(q + k * ld + i);
        }
        FN(store)(y + i, sum);
    }
}

/** The largest error of q'y of so many columns, which should be their signs. */
INLINE double FN(probe_columns)(const int columns, ptrdiff_t rows, ptrdiff_t j,
                                const real *restrict q, ptrdiff_t ld, const real *restrict y)
{
    vec sum[4] = {{0}};
    double worst = 0;
    for (ptrdiff_t i = 0; i < rows; i += LANES) {
        UNROLL(4)
        for (int k = 0; k < columns; k++) {
            sum[k] += FN(load)(q + k * ld + i) * FN(load)(y + i);
        }
    }
    for (int k = 0; k < columns; k++) {
        const double error = fabs((double)(FN(total)(sum[k]) - FN(sign_of)(j + k)));
        worst = error <= worst ? worst : error;
    }
    return worst;
}

static double FN(probe)(ptrdiff_t rows, ptrdiff_t n, const void *q_, ptrdiff_t ld, void *y_)
{
    enum { APART = 4 }; /* columns at once */
    const real *const q = q_;
    real *const y = y_;
    const ptrdiff_t whole = n / APART * APART;
    double worst = 0;
    memset(y, 0, (size_t)rows * sizeof *y);
    for (ptrdiff_t j = 0; j < whole; j += APART) {
        FN(probe_add)(APART, rows, j, q + j * ld, ld, y);
    }
    for (ptrdiff_t j = whole; j < n; j++) {
        FN(probe_add)(1, rows, j, q + j * ld, ld, y);
    }
    for (ptrdiff_t j = 0; j < n; j += j < whole ? APART : 1) {
        const double error = j < whole ? FN(probe_columns)(APART, rows, j, q + j * ld, ld, y)
                                       : FN(probe_columns)(1, rows, j, q + j * ld, ld, y);
        worst = error <= worst ? worst : error;
    }
    return worst;
}

#undef vec
#undef mask
#undef LANES
#undef CHUNK
#undef TILE
