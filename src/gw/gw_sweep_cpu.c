/* gw_sweep_cpu.c - the passes of Sinkhorn's iteration for one CPU level; the formulas are in
 * gw_sweep.h.
 *
 * 2^z in double as in floats (lanes.h), of degree 10: a relative error of 2.9e-16.
 *
 * Compiled once per level with -DISA=plain, v3, v4.
 */
#include <math.h>

#include "core/denormals.h"
#include "core/lanes.h"
#include "gw/gw_sweep.h"
#include "linalg/elementary.h"

#define LOG2_E 1.4426950408889634
#define LN_2   0.69314718055994531

INLINE reals reals_power(reals z)
{
#if defined(__AVX512F__)
    const reals r = (reals)_mm512_reduce_pd((__m512d)z, 0x09);
    reals q = (reals){} + 0x1.57abd0af446adp-27;
    q = q * r + 0x1.95480f1723331p-24;
    q = q * r + 0x1.65801c61dd860p-20;
    q = q * r + 0x1.ff816c0810ef7p-17;
    q = q * r + 0x1.430b987b1eaeap-13;
    q = q * r + 0x1.5d87e288334afp-10;
    q = q * r + 0x1.3b2ab7bc315adp-7;
    q = q * r + 0x1.c6b08d6a405ccp-5;
    q = q * r + 0x1.ebfbdff8452c3p-3;
    q = q * r + 0x1.62e42fefa3773p-1;
    q = q * r + 1;
    return (reals)_mm512_scalef_pd((__m512d)q, (__m512d)z);
#else
    const double magic = 0x1.8p52;
    z = reals_smaller(reals_larger(z, (reals){} - 1000), (reals){} + 1000);
    const reals t = z + magic, n = t - magic, r = z - n;
    reals q = (reals){} + 0x1.e6063f7217bc6p-28;
    q = q * r + 0x1.b675bca4eeebbp-24;
    q = q * r + 0x1.62bfd47773353p-20;
    q = q * r + 0x1.ffcb54062e698p-17;
    q = q * r + 0x1.430913096fd9fp-13;
    q = q * r + 0x1.5d87fe9d7a584p-10;
    q = q * r + 0x1.3b2ab6fba1ddap-7;
    q = q * r + 0x1.c6b08d703ce49p-5;
    q = q * r + 0x1.ebfbdff82c598p-3;
    q = q * r + 0x1.62e42fefa3a19p-1;
    q = q * r + 0x1.0000000000000p+0;
    return (reals)((real_mask)q + ((real_mask)t << 52));
#endif
}

INLINE double power_of_two(double z)
{
    return frgi_exp_f64(z * LN_2);
}

/** p_i; the sum is relative to 2^guess. Both wait in F and mass for final_rows. */
INLINE double finish_row(const frgi_sweep *s, int64_t i, double sum, double guess)
{
    s->F[i] = guess;
    s->mass[i] = sum;
    if (s->to.tau_a == 1) {
        s->p[i] = s->to.a[i] / sum;
    } else {
        const double raw = guess - frgi_log_f64(sum) * LOG2_E;
        const double F = (s->to.product ? 1 : s->to.tau_a) * s->to.log_a[i] + s->to.tau_a * raw;
        s->p[i] = s->to.a[i] > 0 ? power_of_two(F - guess) : 0;
    }
    return s->p[i];
}

/** F and mass of rows first .. last-1 of a chunk: logarithms in vectors. */
static void final_rows(const frgi_sweep *s, int64_t first, int64_t last)
{
    const double tau = s->to.tau_a, weight = tau == 1 || s->to.product ? 1 : tau;
    const double *restrict const p = s->p, *restrict const log_a = s->to.log_a;
    const double *restrict const dummy = s->dummy.row;
    double *restrict const F = s->F, *restrict const mass = s->mass;
    last = last < s->n ? last : s->n;
    for (int64_t i = first; i < last; i++) {
        F[i] = weight * log_a[i] + tau * (F[i] - frgi_log_f64(mass[i]) * LOG2_E);
        mass[i] = p[i] * mass[i] - dummy[i];
    }
}

/** The exponents of 8 rows: where they are stored or, of a store without memory, in `built`.  Some
 *  groups are filled at a time, so that the right factor is read once for all of them; `done` were
 *  visited, `left` are to come. */
INLINE const void *exponents_of(const frgi_sweep *s, int64_t i0, void *built, int64_t done,
                                int64_t left, size_t size)
{
    const size_t group = (size_t)(FRGI_GROUP * s->ld) * size;
    const int64_t ahead = done % FRGI_FILL_GROUPS;
    char *const at = s->x.at ? (char *)s->x.at + (size_t)(i0 * s->ld) * size
                             : (char *)built + (size_t)ahead * group;
    if (ahead == 0 && (s->x.fresh || !s->x.at)) {
        s->x.fill(s, i0, left < FRGI_FILL_GROUPS ? left : FRGI_FILL_GROUPS, at);
    }
    return at;
}

/* ---- stores ---------------------------------------------------------------------------------- */

INLINE lane_mask load_shorts(const uint16_t *p)
{
#if defined(__AVX512F__)
    return (lane_mask)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif defined(__AVX2__)
    return (lane_mask)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
#else
    typedef uint16_t half __attribute__((vector_size(VECTOR_BYTES / 2)));
    half v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, lane_mask);
#endif
}

INLINE lanes load_u16(const uint16_t *p)
{
    return __builtin_convertvector(load_shorts(p), lanes);
}

/** Two vectors of bfloat16 lie in one, the first in its lower halves. */
INLINE lanes load_bf16(const uint16_t *p, int v)
{
    lane_mask both;
    memcpy(&both, p, sizeof both);
    if (v == 0) {
        return (lanes)(both << 16);
    }
    return (lanes)(both & (int32_t)0xffff0000);
}

INLINE lane_mask nearest_bf16(lanes y)
{
    const lane_mask bits = (lane_mask)y;
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16; /* ties to even */
}

#define real                 float
#define vec                  lanes
#define LANES                FLOATS
#define FN(name)             lanes_##name
#define KERNEL               0

#define stored               float
#define RN(name)             x32_##name
#define SHIFT(g)             (g)
#define EXPONENT(p, shifted) (lanes_at(p) + (shifted))
#define ROWS(s, i0, built, done, left)                                                             \
    exponents_of((s), (i0), (built), (done), (left), sizeof(float))
#include "gw/gw_sweep.tmpl.h"
#undef stored
#undef RN
#undef SHIFT
#undef EXPONENT
#undef ROWS

static void keep(const frgi_sweep *s, const float *rows, int64_t i0);

/** What is kept of 8 rows of exponents. */
INLINE const void *kept_rows(const frgi_sweep *s, int64_t i0, void *built, size_t size)
{
    if (s->x.fresh) {
        s->x.fill(s, i0, 1, built);
        keep(s, built, i0);
    }
    return (const char *)s->x.at + (size_t)(i0 * s->ld) * size;
}

#define ROWS(s, i0, built, done, left) kept_rows((s), (i0), (built), sizeof(stored))
#define stored                         uint16_t
#define RN(name)                       x16_##name
#define SHIFT(g)                       ((g) + low)
#define EXPONENT(p, shifted)           (load_u16(p) * step + (shifted))
#include "gw/gw_sweep.tmpl.h"
#undef RN
#undef SHIFT
#undef EXPONENT
#undef KERNEL

#define EACH_OF_ONCE _Pragma("GCC unroll 2") for (int v = 0; v < AT_ONCE; v++)
#define KERNEL       1
#define SHIFT(g)     (g)
#define RN(name)     k16_##name
#define LOAD(p, v)   load_bf16(p, v)
#define AT_ONCE      2
#include "gw/gw_sweep.tmpl.h"
#undef stored
#undef RN
#undef LOAD
#undef AT_ONCE

#define stored     float
#define RN(name)   k32_##name
#define LOAD(p, v) lanes_at(p)
#define AT_ONCE    1
#include "gw/gw_sweep.tmpl.h"
#undef stored
#undef RN
#undef LOAD
#undef AT_ONCE
#undef SHIFT
#undef ROWS
#undef KERNEL
#undef real
#undef vec
#undef LANES
#undef FN

#define real                 double
#define vec                  reals
#define LANES                REALS
#define FN(name)             reals_##name
#define KERNEL               0
#define stored               double
#define RN(name)             x64_##name
#define SHIFT(g)             (g)
#define EXPONENT(p, shifted) (reals_at(p) + (shifted))
#define ROWS(s, i0, built, done, left)                                                             \
    exponents_of((s), (i0), (built), (done), (left), sizeof(double))
#include "gw/gw_sweep.tmpl.h"
#undef stored
#undef RN
#undef EXPONENT
#undef ROWS

#define stored               float
#define RN(name)             x32w_##name
#define EXPONENT(p, shifted) (reals_of_floats(p) + (shifted))
#define ROWS(s, i0, built, done, left)                                                             \
    exponents_of((s), (i0), (built), (done), (left), sizeof(float))
#include "gw/gw_sweep.tmpl.h"

/* ---- marked vectors -------------------------------------------------------------------------- */

/** Weights of the marked vectors of 8 rows, [mark][row][column]; their sums, also of what is not
 *  marked. */
INLINE int64_t vector_weights(const frgi_sweep *s, const float *x, uint16_t *list, int64_t count,
                              bool mark, float *w, double *sums)
{
    enum { AHEAD = 3 };
    const ptrdiff_t ld = s->ld;
    const float *const g = s->g;
    lanes total[FRGI_GROUP] = {{0}};
    int64_t kept = 0;
    for (int64_t k = 0; k < count; k++) {
        const ptrdiff_t j = FRGI_MARK * (ptrdiff_t)(mark ? k : list[k]);
        const ptrdiff_t soon =
            mark ? j + 8 * FRGI_MARK : FRGI_MARK * list[k + AHEAD < count ? k + AHEAD : k];
        lanes most = {0};
        for (int c = 0; c < FRGI_MARK; c += FLOATS) {
            const lanes gj = lanes_at(g + j + c);
#pragma GCC unroll 8
            for (int r = 0; r < FRGI_GROUP; r++) {
                if (c == 0) {
                    __builtin_prefetch(x + r * ld + soon);
                }
                const lanes y = lanes_power(lanes_at(x + r * ld + j + c) + gj);
                lanes_put(w + (kept * FRGI_GROUP + r) * FRGI_MARK + c, y);
                total[r] += y;
                most = mark ? lanes_larger(most, y) : most;
            }
        }
        if (!mark) {
            kept++;
        } else if (lanes_less(lanes_all(s->active.negligible), most)) {
            list[kept++] = (uint16_t)k;
        }
    }
    for (int r = 0; r < FRGI_GROUP; r++) {
        sums[r] = lanes_sum(total[r]);
    }
    return kept;
}

INLINE void some_of_chunk(const frgi_sweep *s, int64_t chunk, void *scratch, bool mark)
{
    const unsigned mode = frgi_flush_denormals();
    const ptrdiff_t ld = s->ld;
    const int64_t groups = s->rows / FRGI_GROUP, marks = ld / FRGI_MARK;
    const int64_t first = chunk * groups / s->chunks, last = (chunk + 1) * groups / s->chunks;
    float *const w = scratch, *const full = w + FRGI_GROUP * ld;
    float *const col = (float *)s->partial + chunk * ld;
    memset(col, 0, (size_t)ld * sizeof *col);
    s->out_of_range[chunk] = 0;
    for (int64_t group = first; group < last; group++) {
        const int64_t i0 = group * FRGI_GROUP;
        const float *const x = (const float *)s->x.at + i0 * ld;
        uint16_t *const list = s->active.lists + group * marks;
        double sums[FRGI_GROUP];
        float p[FRGI_GROUP] = {0};
        const int64_t kept =
            vector_weights(s, x, list, mark ? marks : s->active.listed[group], mark, w, sums);
        s->active.listed[group] = kept;
        for (int r = 0; r < FRGI_GROUP && i0 + r < s->n; r++) {
            const int64_t far = s->out_of_range[chunk];
            p[r] = x32_end_of_row(s, x + r * ld, i0 + r, full, sums[r], &s->out_of_range[chunk]);
            if (s->out_of_range[chunk] > far) { /* all of the row, relative to its maximum */
                for (ptrdiff_t j = 0; j < ld; j += FLOATS) {
                    lanes_put(col + j, lanes_at(col + j) + p[r] * lanes_at(full + j * FRGI_GROUP));
                }
                p[r] = 0;
            }
        }
        for (int64_t k = 0; k < kept; k++) {
            const float *const weights = w + k * FRGI_GROUP * FRGI_MARK;
            for (int j = 0; j < FRGI_MARK; j += FLOATS) {
                float *const at = col + FRGI_MARK * list[k] + j;
                lanes c = lanes_at(at);
#pragma GCC unroll 8
                for (int r = 0; r < FRGI_GROUP; r++) {
                    c += p[r] * lanes_at(weights + r * FRGI_MARK + j);
                }
                lanes_put(at, c);
            }
        }
    }
    final_rows(s, first * FRGI_GROUP, last * FRGI_GROUP);
    frgi_restore_denormals(mode);
}

static void marking(const frgi_sweep *s, int64_t chunk, void *scratch)
{
    some_of_chunk(s, chunk, scratch, true);
}

static void marked(const frgi_sweep *s, int64_t chunk, void *scratch)
{
    some_of_chunk(s, chunk, scratch, false);
}

/* ---- storage --------------------------------------------------------------------------------- */

/** The lower halves of v. */
INLINE void put_shorts(uint16_t *p, lane_mask v)
{
#if defined(__AVX512F__)
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16((__m512i)v));
#else
    typedef uint16_t half __attribute__((vector_size(VECTOR_BYTES / 2)));
    const half narrow = __builtin_convertvector(v, half);
    memcpy(p, &narrow, sizeof narrow);
#endif
}

static void keep(const frgi_sweep *s, const float *rows, int64_t i0)
{
    const ptrdiff_t ld = s->ld, count = FRGI_GROUP * ld;
    uint16_t *const half = (uint16_t *)s->x.at + i0 * ld;
    float *const full = (float *)s->x.at + i0 * ld / (s->x.store == FRGI_K16 ? 2 : 1);
    const float low = s->x.low, inverse = s->x.step > 0 ? 1 / s->x.step : 0;
    for (ptrdiff_t j = 0; j < count && s->x.store == FRGI_X16; j += FLOATS) {
        const lanes q = (lanes_at(rows + j) - low) * inverse + 0.5f;
        const lanes within = lanes_smaller(lanes_larger(q, lanes_all(0)), lanes_all(65535));
        put_shorts(half + j, __builtin_convertvector(within, lane_mask));
    }
    for (ptrdiff_t j = 0; j < count && s->x.store == FRGI_K32; j += FLOATS) {
        lanes_put(full + j, lanes_power(lanes_at(rows + j)));
    }
    for (ptrdiff_t j = 0; j < count && s->x.store == FRGI_K16; j += 2 * FLOATS) {
        const lane_mask first = nearest_bf16(lanes_power(lanes_at(rows + j)));
        const lane_mask second = nearest_bf16(lanes_power(lanes_at(rows + j + FLOATS)));
        lanes_put(full + j / 2, (lanes)(first | second << 16));
    }
}

static void span(const frgi_sweep *s, const float *exponents, float *least, float *most)
{
    const float *const g = s->g;
    lanes low = lanes_all(1e30f), high = lanes_all(-1e30f);
    for (ptrdiff_t j = 0; j < s->ld; j += FLOATS) {
        const lanes x = lanes_at(exponents + j), gj = lanes_at(g + j);
        low = lanes_smaller(low, x - gj);
        high = lanes_larger(high, x + gj);
    }
    *least = low[0];
    *most = high[0];
    for (int l = 1; l < FLOATS; l++) {
        *least = low[l] < *least ? low[l] : *least;
        *most = high[l] > *most ? high[l] : *most;
    }
}

/* ---- columns --------------------------------------------------------------------------------- */

enum { TREE_BLOCK = 256 };
#define part       double
#define TREE(name) reals_##name
#include "core/tree_rows.tmpl.h"
#undef part
#undef TREE
#define part       float
#define TREE(name) floats_##name
#include "core/tree_rows.tmpl.h"
#undef part
#undef TREE

static frgi_columns_result columns(const frgi_sweep *s, int64_t first, int64_t last,
                                   double momentum)
{
    const bool kernel = s->x.store == FRGI_K32 || s->x.store == FRGI_K16, wide = frgi_is_wide(s);
    frgi_columns_result result = {.low = (double)INFINITY, .high = -(double)INFINITY};
    for (int64_t from = first; from < last; from += TREE_BLOCK) {
        const int64_t to = from + TREE_BLOCK < last ? from + TREE_BLOCK : last;
        double sum[TREE_BLOCK];
        if (wide) {
            reals_rows((const double *)s->partial + from, s->chunks, s->ld, to - from, sum);
        } else {
            floats_rows((const float *)s->partial + from, s->chunks, s->ld, to - from, sum);
        }
        for (int64_t j = from; j < to; j++) {
            if (kernel) {
                sum[j - from] *= (double)((const float *)s->g)[j];
            }
            if (s->dummy.b > 0 && s->to.b[j] > 0) {
                sum[j - from] += power_of_two(s->dummy.f + s->G[j]);
            }
        }
        double step[TREE_BLOCK];
        for (int64_t j = from; j < to; j++) {
            s->col[j] = sum[j - from];
            step[j - from] = s->to.log_b[j] - frgi_log_f64(sum[j - from]) * LOG2_E;
            result.error += fmin(fabs(sum[j - from] - s->to.b[j]), FRGI_BURST);
        }
        for (int64_t j = from; j < to; j++) {
            const double log_col = s->to.log_b[j] - step[j - from];
            const double plain = s->to.tau_b == 1
                                     ? s->G[j] + step[j - from]
                                     : (s->to.product ? 1 : s->to.tau_b) * s->to.log_b[j] +
                                           s->to.tau_b * (s->G[j] - log_col);
            const double next = plain + momentum * (plain - s->G_last[j]);
            s->G_last[j] = plain;
            if (!(s->to.b[j] > 0)) {
                continue;
            }
            if (!frgi_sum_in_range(sum[j - from])) {
                result.lost++;
                continue;
            }
            result.low = fmin(result.low, next - s->G[j]);
            result.high = fmax(result.high, next - s->G[j]);
            s->G[j] = next;
            const double increment = next - s->base.G0[j];
            result.increment = fmax(result.increment, fabs(increment));
            if (wide) {
                ((double *)s->g)[j] = increment;
            } else {
                ((float *)s->g)[j] = (float)(kernel ? power_of_two(increment) : increment);
            }
        }
    }
    return result;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void row(const frgi_sweep *s, int64_t i, const void *exponents, double *out)
{
    const double p = s->p[i];
    const unsigned mode = frgi_flush_denormals(); /* widening one takes a hundred times as long */
    if (s->x.store == FRGI_X64) {
        const double *const x = exponents, *const g = s->g;
        for (ptrdiff_t j = 0; j < s->ld; j += REALS) {
            reals_put(out + j, p * reals_power(reals_at(x + j) + reals_at(g + j)));
        }
    } else if (s->x.store == FRGI_X32W) {
        const float *const x = exponents;
        const double *const g = s->g;
        for (ptrdiff_t j = 0; j < s->ld; j += REALS) {
            reals_put(out + j, p * reals_power(reals_of_floats(x + j) + reals_at(g + j)));
        }
    } else {
        const float *const x = exponents, *const g = s->g;
        for (ptrdiff_t j = 0; j < s->ld; j += FLOATS) {
            reals low, high;
            lanes_widen(lanes_power(lanes_at(x + j) + lanes_at(g + j)), &low, &high);
            reals_put(out + j, p * low);
            reals_put(out + j + REALS, p * high);
        }
    }
    frgi_restore_denormals(mode);
}

static double sum_of(const double *x, int64_t n)
{
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t j = 0; j < n; j++) {
        s += x[j];
    }
    return s;
}

static double entropy(const double *restrict x, int64_t n)
{
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t j = 0; j < n; j++) {
        s += x[j] > 0 ? x[j] * (frgi_log_f64(x[j]) - 1) : 0;
    }
    return s;
}

static double gaps(const float *restrict x, const float *restrict y, double scale_x, double scale_y,
                   int64_t n, double *restrict columns)
{
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t j = 0; j < n; j++) {
        const double gap = scale_x * (double)x[j] - scale_y * (double)y[j], square = gap * gap;
        columns[j] += square;
        s += square;
    }
    return s;
}

static double multiply(double *restrict row, const double *restrict y, int64_t m)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < m; j++) {
        row[j] *= y[j];
        sum += row[j];
    }
    return sum;
}

static void add(double *restrict to, const double *restrict row, double scale, int64_t m)
{
    for (int64_t j = 0; j < m; j++) {
        to[j] += scale * row[j];
    }
}

#pragma GCC visibility push(hidden)
extern const frgi_sweep_ops CAT(frgi_sweep_ops, ISA);
#pragma GCC visibility pop
const frgi_sweep_ops CAT(frgi_sweep_ops, ISA) = {.chunk = {[FRGI_X32] = x32_chunk,
                                                           [FRGI_X16] = x16_chunk,
                                                           [FRGI_X64] = x64_chunk,
                                                           [FRGI_X32W] = x32w_chunk,
                                                           [FRGI_K32] = k32_chunk,
                                                           [FRGI_K16] = k16_chunk},
                                                 .marking = marking,
                                                 .marked = marked,
                                                 .columns = columns,
                                                 .keep = keep,
                                                 .span = span,
                                                 .row = row,
                                                 .sum = sum_of,
                                                 .entropy = entropy,
                                                 .gaps = gaps,
                                                 .multiply = multiply,
                                                 .add = add};
