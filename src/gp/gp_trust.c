/* gp_trust.c - how far a value in f32 is off: residuals of its solutions, in f64, on a sample of rows.
 *
 * The factor belongs to K + D, D being the rounding of the kernel and of the factor.  To first order in D
 *
 *     r'(K + D)^-1 r - r'K^-1 r = -a'D a,           D a = r - K a
 *     log |K + D| - log |K| = tr (K + D)^-1 D = E v'D w,   D w = v - K w,  w = (K + D)^-1 v,  v = +-1 at random
 *
 * so that rows of K in f64 against a and w tell both.  Bounds cannot: D is far from random where points lie close
 * (rounded kernels of equal distances are equal), up to n / 5 times what independent entries would do, and hardly
 * ever that much.  128 rows in blocks of 16, all where n is less: 128 n kernel values.
 */
#include <math.h>
#include <string.h>

#include "gp/gp_room.h"

enum { BLOCK = 16, BLOCKS = 8, PROBES = 2 };
#define PROBE_STREAM UINT64_C(0x67702d70726f6265)

/** Contributions of the sampled rows to a sum over all of them. */
typedef struct {
    double sum, square;
    ptrdiff_t count;
} sample;

static void add(sample *s, double v)
{
    s->sum += v;
    s->square += v * v;
    s->count++;
}

/** |sum over n rows| and twice the error that taking a sample leaves in it. */
static double extrapolate(const sample *s, ptrdiff_t n)
{
    const double count = (double)s->count, mean = s->sum / count;
    const double variance = fmax(s->square / count - mean * mean, 0);
    const double left = 1 - count / (double)n; /* nothing where all rows were seen */
    return (double)n * (fabs(mean) + 2 * sqrt(variance / count * fmax(left, 0)));
}

size_t frgi_gp_trust_bytes(ptrdiff_t n)
{
    return frgi_mul((size_t)n,
                    BLOCK * sizeof(double) + 2 * PROBES * sizeof(double) + PROBES * sizeof(float)) +
           256;
}

typedef struct {
    double *rows;  /* BLOCK x n: of K */
    double *v, *w; /* n x PROBES */
    float *low;    /* n x PROBES */
} work;

static void lay_out(frgi_arena *a, ptrdiff_t n, work *k)
{
    k->rows = TAKE(a, double, BLOCK *n);
    k->v = TAKE(a, double, PROBES *n);
    k->w = TAKE(a, double, PROBES *n);
    k->low = TAKE(a, float, PROBES *n);
}

static frg_status solve_probes(frg_gp *gp, const work *k)
{
    const ptrdiff_t n = gp->n;
    for (ptrdiff_t i = 0; i < n; i++) {
        uint32_t words[4];
        frgi_philox(0, PROBE_STREAM, (uint64_t)i, 0, words);
        for (ptrdiff_t p = 0; p < PROBES; p++) {
            k->v[p * n + i] = words[p] & 1 ? 1 : -1;
        }
    }
    frgi_gp_narrow(n * PROBES, k->v, k->low);
    frg_status status =
        frgi_spd_forward(gp->ctx, &gp->shape, gp->matrix, PROBES, k->low, n, gp->work);
    if (status == FRG_OK) {
        status = frgi_spd_backward(gp->ctx, &gp->shape, gp->matrix, PROBES, k->low, n, gp->work);
    }
    frgi_gp_widen(n * PROBES, k->low, k->w);
    return status;
}

/** Row i of a block of K times column x. */
static double product(const double *row, ptrdiff_t n, const double *x)
{
    double sum = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        sum += row[j * BLOCK] * x[j];
    }
    return sum;
}

static void add_rows(const frg_gp *gp, const work *k, ptrdiff_t first, ptrdiff_t count,
                     sample *quad, sample *logdet)
{
    const ptrdiff_t n = gp->n;
    double white[BLOCK];
    frgi_gp_white(gp->other.bound, &gp->other.points, first, count, white);
    for (ptrdiff_t b = 0; b < count; b++) {
        const ptrdiff_t i = first + b;
        const double more = white[b] + gp->noise[i] + gp->jitter;
        const double *const row = k->rows + b;
        for (ptrdiff_t c = 0; c < gp->q; c++) {
            const double *const a = gp->alpha + c * n;
            const double left = gp->residual[c * n + i] - product(row, n, a) - more * a[i];
            add(quad, a[i] * left);
        }
        for (ptrdiff_t p = 0; p < PROBES; p++) {
            const double *const w = k->w + p * n, v = k->v[p * n + i];
            add(&logdet[p], v * (v - product(row, n, w) - more * w[i]));
        }
    }
}

frg_status frgi_gp_sampled_error(frg_gp *gp, double *error)
{
    const ptrdiff_t n = gp->n, blocks = (n + BLOCK - 1) / BLOCK;
    frgi_gp_side *const wide = &gp->other;
    frgi_arena memory = {.base = gp->trust_memory, .bytes = frgi_gp_trust_bytes(n)};
    work k;
    lay_out(&memory, n, &k);
    TRY(solve_probes(gp, &k));
    frgi_gp_need_other_bound(gp);
    sample quad = {0}, logdet[PROBES] = {{0}};
    for (ptrdiff_t b = 0; b < (blocks < BLOCKS ? blocks : BLOCKS); b++) {
        const ptrdiff_t first = (blocks <= BLOCKS ? b : b * (blocks - 1) / (BLOCKS - 1)) * BLOCK;
        const ptrdiff_t count = n - first < BLOCK ? n - first : BLOCK;
        TRY(frgi_gp_cross(gp->ctx, wide->bound, &wide->points, first, count, k.rows, BLOCK));
        add_rows(gp, &k, first, count, &quad, logdet);
    }
    quad.count /= gp->q; /* the columns' contributions belong to one row */
    double trace = 0;
    for (ptrdiff_t p = 0; p < PROBES; p++) {
        trace = fmax(trace, extrapolate(&logdet[p], n));
    }
    *error = 0.5 * (extrapolate(&quad, n) + (double)gp->q * trace);
    return FRG_OK;
}
