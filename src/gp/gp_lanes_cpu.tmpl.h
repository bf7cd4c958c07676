/* gp_lanes_cpu.tmpl.h - the steps of gp_lanes.h for one type; included by gp_lanes_cpu.c for f64
 * and f32.
 *
 * Template parameters: SUFFIX, real, whole (the integer of its size), ROOT, FAR (squared distances
 * stop here). */

typedef real FN(vec) __attribute__((vector_size(VECTOR_BYTES)));
typedef whole FN(mask) __attribute__((vector_size(VECTOR_BYTES)));
enum { FN(WIDTH) = VECTOR_BYTES / (int)sizeof(real) };
#define WIDTH FN(WIDTH)
#define vec   FN(vec)

/* ---- B x B blocks ---- */

/** s[r][c] += sum_kk a[r * ar + kk * ak] b[c * bc + kk * bk] */
INLINE void FN(sum_block)(ptrdiff_t k, const vec *a, ptrdiff_t ar, ptrdiff_t ak, const vec *b,
                          ptrdiff_t bc, ptrdiff_t bk, vec s[B][B])
{
#pragma GCC unroll 2
    for (int half = 0; half < B; half += HALF) {
        vec t[B][HALF];
#pragma GCC unroll 4
        for (int r = 0; r < B; r++)
#pragma GCC unroll 4
            for (int c = 0; c < HALF; c++)
                t[r][c] = s[r][half + c];
        for (ptrdiff_t kk = 0; kk < k; kk++) {
            vec y[HALF];
#pragma GCC unroll 4
            for (int c = 0; c < HALF; c++)
                y[c] = b[(half + c) * bc + kk * bk];
#pragma GCC unroll 4
            for (int r = 0; r < B; r++) {
                /* volatile: one load for all its products; GCC would read it from memory for
                 * each */
                const vec x = *(const volatile vec *)&a[r * ar + kk * ak];
#pragma GCC unroll 4
                for (int c = 0; c < HALF; c++)
                    t[r][c] += x * y[c];
            }
        }
#pragma GCC unroll 4
        for (int r = 0; r < B; r++)
#pragma GCC unroll 4
            for (int c = 0; c < HALF; c++)
                s[r][half + c] = t[r][c];
    }
}

INLINE void FN(clear)(vec s[B][B])
{
#pragma GCC unroll 4
    for (int r = 0; r < B; r++)
#pragma GCC unroll 4
        for (int c = 0; c < B; c++)
            s[r][c] = (vec){0};
}

INLINE vec FN(root)(vec x)
{
    real s[WIDTH];
    memcpy(s, &x, sizeof s);
    for (int l = 0; l < WIDTH; l++)
        s[l] = ROOT(s[l]);
    memcpy(&x, s, sizeof x);
    return x;
}

/* ---- covariances ---- */

/** The smaller of s and FAR, by masks: a choice of numbers becomes branches where there is AVX2
 *  alone. */
INLINE vec FN(near)(vec s)
{
    const vec limit = (vec){0} + FAR;
    const FN(mask) beyond = s > limit;
    return (vec)(((FN(mask))limit & beyond) | ((FN(mask))s & ~beyond));
}

/** value <- k and slope <- -2 dk/ds over it (k is kept, not its slope) of B vectors of squared
 *  distances; either may be NULL.  One loop a step, so that each becomes vector code. */
INLINE void FN(radial)(const frgi_gp_lanes_kind kind, const vec s[B], real *value, real *slope)
{
    const real factor = kind == LANES_MATERN12 ? 1 : kind == LANES_MATERN32 ? 3 : 5;
    vec near[B];
    real *const r = (real *)near;
    real e[B * WIDTH] __attribute__((aligned(VECTOR_BYTES)));
#pragma GCC unroll 4
    for (int c = 0; c < B; c++)
        near[c] = kind == LANES_RBF ? s[c] : FN(near)(s[c]); /* exp does not care */
    for (int i = 0; i < B * WIDTH; i++)
        r[i] = kind == LANES_RBF ? (real)0.5 * r[i] : ROOT(factor * r[i]);
    if (value) {
        for (int i = 0; i < B * WIDTH; i++)
            e[i] = EF(exp_low)(-r[i]);
        for (int i = 0; i < B * WIDTH; i++)
            value[i] = kind == LANES_MATERN32   ? (1 + r[i]) * e[i]
                       : kind == LANES_MATERN52 ? (1 + r[i] + r[i] * r[i] * (real)(1.0 / 3)) * e[i]
                                                : e[i];
    }
    for (int i = 0; slope && i < B * WIDTH; i++) {
        const real over = kind == LANES_MATERN12 ? r[i] : 1 + r[i];
        slope[i] = kind == LANES_RBF        ? 1
                   : kind == LANES_MATERN12 ? (r[i] > 0 ? 1 / over : 0)
                   : kind == LANES_MATERN32
                       ? 3 / over
                       : (real)(5.0 / 3) * over / (over + r[i] * r[i] * (real)(1.0 / 3));
    }
}

INLINE void FN(distances)(const vec *u, ptrdiff_t d, ptrdiff_t i, ptrdiff_t j, vec s[B])
{
#pragma GCC unroll 4
    for (int c = 0; c < B; c++)
        s[c] = (vec){0};
    for (ptrdiff_t k = 0; k < d; k++) {
        const vec x = u[i * d + k];
#pragma GCC unroll 4
        for (int c = 0; c < B; c++) {
            const vec t = x - u[(j + c) * d + k];
            s[c] += t * t;
        }
    }
}

/** C below the diagonal and, once more, above it; columns in blocks of B, the last of which crosses
 *  the diagonal: what it writes above is what belongs there, and the diagonal comes last. */
INLINE void FN(build)(const frgi_gp_lanes_kind kind, const frgi_gp_lanes *g)
{
    vec *const a = g->matrix, *const u = g->u;
    const vec *const x = g->x, *const reciprocal = g->reciprocal, *const live = g->live;
    for (ptrdiff_t i = 0; i < g->n; i++)
        for (ptrdiff_t k = 0; k < g->d; k++)
            u[i * g->d + k] = x[i * g->d + k] * reciprocal[k];
    for (ptrdiff_t i = 0; i < g->n; i++) {
        const vec f = *(const vec *)g->variance * live[i];
        for (ptrdiff_t j = 0; j < i; j += B) {
            vec s[B], k[B];
            FN(distances)(u, g->d, i, j, s);
            FN(radial)(kind, s, (real *)k, NULL);
#pragma GCC unroll 4
            for (int c = 0; c < B; c++) {
                const vec value = f * k[c]; /* j is live where i is */
                a[i * g->ld + j + c] = value;
                a[(j + c) * g->ld + i] = value;
            }
        }
        a[i * g->ld + i] = ((const vec *)g->diagonal)[i];
    }
}

/* ---- factor ---- */

/** p where it is a pivot, 1 where it is not; the first row that is not is noted. */
INLINE vec FN(check_pivot)(frgi_gp_lanes *g, vec p, ptrdiff_t row)
{
    const vec zero = {0};
    const FN(mask) good = (p > zero) & (p < zero + (real)(sizeof(real) == 4 ? 3e38 : 1e308));
    whole m[WIDTH];
    memcpy(m, &good, sizeof m);
    whole all = -1;
    for (int l = 0; l < WIDTH; l++)
        all &= m[l];
    if (all)
        return p;
    for (int l = 0; l < WIDTH; l++) {
        if (m[l])
            continue;
        if (g->pivot[l] < 0) {
            g->pivot[l] = (int32_t)row;
            g->bad[l] = (double)p[l];
        }
        p[l] = 1;
    }
    return p;
}

/** The diagonal block s: its Cholesky factor below, reciprocals of the diagonal beside. */
INLINE void FN(factor_square)(frgi_gp_lanes *g, vec s[B][B], vec reciprocal[B], ptrdiff_t row)
{
    for (int j = 0; j < B; j++) {
        const vec l = FN(root)(FN(check_pivot)(g, s[j][j], row + j)), r = 1 / l;
        s[j][j] = l;
        reciprocal[j] = r;
        for (int i = j + 1; i < B; i++)
            s[i][j] *= r;
        for (int c = j + 1; c < B; c++)
            for (int i = c; i < B; i++)
                s[i][c] -= s[i][j] * s[c][j];
    }
}

static void FN(factor)(frgi_gp_lanes *g)
{
    vec *const a = g->matrix, *const root = g->root;
    const ptrdiff_t ld = g->ld;
    for (ptrdiff_t j = 0; j < g->n; j += B) {
        vec *const aj = a + j * ld;
        vec square[B][B], reciprocal[B], s[B][B];
        FN(clear)(s);
        FN(sum_block)(j, aj, ld, 1, aj, ld, 1, s);
        for (int r = 0; r < B; r++)
            for (int c = 0; c <= r; c++)
                square[r][c] = aj[r * ld + j + c] - s[r][c];
        FN(factor_square)(g, square, reciprocal, j);
        for (int r = 0; r < B; r++) {
            root[j + r] = square[r][r];
            for (int c = 0; c <= r; c++)
                aj[r * ld + j + c] = square[r][c];
        }
        for (ptrdiff_t i = j + B; i < g->n; i += B) {
            vec *const ai = a + i * ld;
            FN(clear)(s);
            FN(sum_block)(j, ai, ld, 1, aj, ld, 1, s);
#pragma GCC unroll 4
            for (int r = 0; r < B; r++) {
                vec t[B];
#pragma GCC unroll 4
                for (int c = 0; c < B; c++) {
                    t[c] = ai[r * ld + j + c] - s[r][c];
#pragma GCC unroll 4
                    for (int k = 0; k < c; k++)
                        t[c] -= t[k] * square[c][k];
                    t[c] *= reciprocal[c];
                    ai[r * ld + j + c] = t[c];
                }
            }
        }
    }
}

/** z = L^-1 r, quad = z'z, alpha = L^-T z; logdet by mantissas and exponents, in double. */
static void FN(solve)(frgi_gp_lanes *g)
{
    const vec *const a = g->matrix, *const r = g->residual, *const root = g->root;
    vec *const z = g->alpha;
    for (ptrdiff_t i = 0; i < g->n; i++) {
        vec s[B] = {{0}};
        ptrdiff_t k = 0;
        for (; k + B <= i; k += B)
#pragma GCC unroll 4
            for (int c = 0; c < B; c++)
                s[c] += a[i * g->ld + k + c] * z[k + c];
        for (; k < i; k++)
            s[0] += a[i * g->ld + k] * z[k];
        z[i] = (r[i] - ((s[0] + s[1]) + (s[2] + s[3]))) / root[i];
    }
    double quad[WIDTH] = {0}, product[WIDTH], sum[WIDTH] = {0};
    int64_t exponent[WIDTH] = {0};
    for (int l = 0; l < WIDTH; l++)
        product[l] = 1;
    for (ptrdiff_t i = 0; i < g->n; i++) {
        const real *const zi = (const real *)(z + i), *const li = (const real *)(root + i);
        for (int l = 0; l < WIDTH; l++) {
            quad[l] += (double)zi[l] * (double)zi[l];
            const uint64_t bits = frgi_bits_f64((double)li[l]);
            exponent[l] += (int64_t)(bits >> 52) - 1023;
            product[l] *=
                frgi_of_bits_f64((bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1023 << 52);
        }
        if (i % 64 == 63 || i == g->n - 1) {
            for (int l = 0; l < WIDTH; l++) {
                sum[l] += frgi_log_f64(product[l]);
                product[l] = 1;
            }
        }
    }
    for (int l = 0; l < WIDTH; l++) {
        g->quad[l] = quad[l];
        g->logdet[l] = 2 * (sum[l] + (double)exponent[l] * 0.693147180559945309417);
    }
    for (ptrdiff_t i = g->n - 1; i >= 0; i--) {
        const vec t = z[i] / root[i];
        z[i] = t;
        for (ptrdiff_t k = 0; k < i; k++)
            z[k] -= a[i * g->ld + k] * t;
    }
}

/* ---- inverse ---- */

/** x <- the inverse of the lower triangle in s. */
INLINE void FN(invert_square)(vec *s, ptrdiff_t ld, const vec *root, vec x[B][B])
{
    for (int c = 0; c < B; c++) {
        x[c][c] = 1 / root[c];
        for (int r = c + 1; r < B; r++) {
            vec t = {0};
            for (int k = c; k < r; k++)
                t += s[r * ld + k] * x[k][c];
            x[r][c] = -t / root[r];
        }
    }
}

static void FN(invert_triangle)(const frgi_gp_lanes *g)
{
    vec *const a = g->matrix;
    const vec *const root = g->root;
    const ptrdiff_t ld = g->ld;
    for (ptrdiff_t i = 0; i < g->n; i += B) {
        vec *const ai = a + i * ld;
        vec x[B][B], s[B][B];
        FN(invert_square)(ai + i, ld, root + i, x);
        for (ptrdiff_t j = 0; j < i; j += B) {
            FN(clear)(s);
#pragma GCC unroll 4
            for (int r = 0; r < B; r++) /* the block on the diagonal: above it stands C */
#pragma GCC unroll 4
                for (int c = 0; c < B; c++)
#pragma GCC unroll 4
                    for (int k = c; k < B; k++)
                        s[r][c] += ai[r * ld + j + k] * a[(j + k) * ld + j + c];
            FN(sum_block)(i - j - B, ai + j + B, ld, 1, a + (j + B) * ld + j, 1, ld, s);
#pragma GCC unroll 4
            for (int r = 0; r < B; r++)
#pragma GCC unroll 4
                for (int c = 0; c < B; c++) {
                    vec t = {0};
#pragma GCC unroll 4
                    for (int k = 0; k <= r; k++)
                        t -= x[r][k] * s[k][c];
                    ai[r * ld + j + c] = t;
                }
        }
        for (int r = 0; r < B; r++)
            for (int c = 0; c <= r; c++)
                ai[r * ld + i + c] = x[r][c];
    }
}

static void FN(multiply_triangles)(const frgi_gp_lanes *g)
{
    vec *const a = g->matrix;
    const ptrdiff_t ld = g->ld;
    for (ptrdiff_t i = 0; i < g->n; i += B) {
        vec *const ai = a + i * ld;
        vec s[B][B];
        for (ptrdiff_t j = 0; j <= i; j += B) {
            FN(clear)(s);
            FN(sum_block)(g->n - i - B, ai + B * ld + i, 1, ld, ai + B * ld + j, 1, ld, s);
#pragma GCC unroll 4
            for (int r = 0; r < B; r++)
#pragma GCC unroll 4
                for (int c = 0; c < B; c++)
#pragma GCC unroll 4
                    for (int k = r; k < B; k++)
                        if (j < i || k >= c)
                            s[r][c] += ai[k * ld + i + r] * ai[k * ld + j + c];
            for (int r = 0; r < B; r++)
                for (int c = 0; c < B; c++)
                    if (j < i || c <= r)
                        ai[r * ld + j + c] = s[r][c];
        }
    }
}

/* ---- gradient ---- */

INLINE void FN(add)(double *sum, vec partial)
{
    for (int l = 0; l < WIDTH; l++)
        sum[l] += (double)partial[l];
}

/** sum_{i>j} W_ij C_ij, and times q/k u_k^2, of all columns together where they have one length; a
 *  row's sums in the arithmetic's type, rows in double. */
INLINE void FN(sum_pairs)(const frgi_gp_lanes_kind kind, const bool one_length, frgi_gp_lanes *g)
{
    const vec *const a = g->matrix, *const u = g->u, *const alpha = g->alpha;
    const ptrdiff_t d = g->d, ld = g->ld, lengths = one_length ? 1 : d;
    for (ptrdiff_t i = 1; i < g->n; i++) {
        vec length[LANES_MOST_DIMS], scale = {0};
        for (ptrdiff_t k = 0; k < lengths; k++)
            length[k] = (vec){0};
        for (ptrdiff_t j = 0; j < i; j += B) {
            vec w[B], s[B], over[B];
#pragma GCC unroll 4
            for (int c = 0; c < B; c++) {
                w[c] = (alpha[i] * alpha[j + c] - a[i * ld + j + c]) * a[(j + c) * ld + i];
                if (j + c >= i)
                    w[c] = (vec){0};
                scale += w[c];
            }
            if (kind != LANES_RBF || one_length)
                FN(distances)(u, d, i, j, s);
            if (kind != LANES_RBF) {
                FN(radial)(kind, s, NULL, (real *)over);
#pragma GCC unroll 4
                for (int c = 0; c < B; c++)
                    w[c] *= over[c];
            }
#pragma GCC unroll 4
            for (int c = 0; one_length && c < B; c++)
                length[0] += w[c] * s[c];
            for (ptrdiff_t k = 0; k < d && !one_length; k++) {
                const vec x = u[i * d + k];
                vec sum = length[k];
#pragma GCC unroll 4
                for (int c = 0; c < B; c++) {
                    const vec t = x - u[(j + c) * d + k];
                    sum += w[c] * (t * t);
                }
                length[k] = sum;
            }
        }
        FN(add)(g->scale, scale);
        for (ptrdiff_t k = 0; k < lengths; k++)
            FN(add)(g->length[k], length[k]);
    }
}

INLINE void FN(pass)(const frgi_gp_lanes_kind kind, frgi_gp_lanes *g)
{
    if (g->one_length)
        FN(sum_pairs)(kind, true, g);
    else
        FN(sum_pairs)(kind, false, g);
}

#define EACH_KIND(step)                                                                            \
    switch (g->kind) {                                                                             \
    case LANES_MATERN12:                                                                           \
        step(LANES_MATERN12, g);                                                                   \
        break;                                                                                     \
    case LANES_MATERN32:                                                                           \
        step(LANES_MATERN32, g);                                                                   \
        break;                                                                                     \
    case LANES_MATERN52:                                                                           \
        step(LANES_MATERN52, g);                                                                   \
        break;                                                                                     \
    default:                                                                                       \
        step(LANES_RBF, g);                                                                        \
    }

static void FN(value)(frgi_gp_lanes *g)
{
    for (int l = 0; l < LANES_MOST; l++)
        g->pivot[l] = -1;
    EACH_KIND(FN(build))
    FN(factor)(g);
    FN(solve)(g);
}

static void FN(gradient)(frgi_gp_lanes *g)
{
    memset(g->scale, 0, sizeof g->scale);
    memset(g->length, 0, sizeof g->length);
    FN(invert_triangle)(g);
    FN(multiply_triangles)(g);
    EACH_KIND(FN(pass))
}

#undef EACH_KIND
#undef WIDTH
#undef vec
