/* gp_trust.c - how far a value in f32 is off: residuals of its solutions, in f64, on a sample of
 * rows.
 *
 * The factor belongs to K + D, D being the rounding of the kernel and of the factor.  To first
 * order in D
 *
 *     r'(K + D)^-1 r - r'K^-1 r = -a'D a,           D a = r - K a
 *     log |K + D| - log |K| = tr (K + D)^-1 D = E v'D w,   D w = v - K w, w = (K + D)^-1 v, v = +-1
 *                                                          at random
 *
 * so that rows of K in f64 against a and w tell both.  Up to EXACT points the trace is that of all
 * unit vectors; above it is the mean over PROBES vectors v of random signs, and twice its standard
 * error.  Bounds cannot tell: D is far from random where points lie close (rounded kernels of equal
 * distances are equal), up to n / 5 times what independent entries would do, and hardly ever that
 * much.  128 rows in blocks of 16, all where n is less: 128 n kernel values.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gp/gp_process.h"
#include "gp/gp_trust.h"

enum { BLOCK = TRUST_BLOCK, BLOCKS = 8, PROBES = 16, EXACT = 128 };
#define PROBE_STREAM UINT64_C(0x67702d70726f6265)
static const double BOUND = 8, BOUND_PER_POINT = 0.25, HARMLESS = 1e-3;

double frgi_gp_rounding_bound(frg_dtype t, ptrdiff_t n, double rounding)
{
    const double unit = t == FRG_F32 ? (double)FLT_EPSILON / 2 : DBL_EPSILON / 2;
    return fmax(BOUND, BOUND_PER_POINT * (double)n) * unit * rounding;
}

bool frgi_gp_is_rounding(double ell, double error)
{
    return error > fmax(fabs(ell), HARMLESS);
}

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

static double total(const sample *s, double n)
{
    return n * s->sum / (double)s->count;
}

/** Twice the standard deviation of a sum of n of them by chance: rounding in the solutions, which
 *  is not in D, may cancel a sum, but not its terms. */
static double chance(const sample *s, double n)
{
    return 2 * sqrt(n * s->square / (double)s->count);
}

/** Twice the error that taking a sample of n leaves in `total`; nothing where all were seen. */
static double missed(const sample *s, double n)
{
    const double count = (double)s->count, mean = s->sum / count;
    const double variance = fmax(s->square / count - mean * mean, 0);
    return 2 * sqrt(n * variance * fmax(n / count - 1, 0));
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

size_t frgi_gp_trust_bytes(ptrdiff_t n)
{
    frgi_arena measure = {0};
    lay_out(&measure, n, &(work){0});
    return measure.used;
}

/** v <- unit vectors first, first + 1, ... of all n (zeros behind the last), or random signs. */
static void fill_probes(ptrdiff_t n, ptrdiff_t first, double *v)
{
    if (n <= EXACT) {
        memset(v, 0, sizeof *v * (size_t)(n * PROBES));
        for (ptrdiff_t p = 0; p < PROBES && first + p < n; p++) {
            v[p * n + first + p] = 1;
        }
        return;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        uint32_t words[4];
        frgi_philox(0, PROBE_STREAM, (uint64_t)i, 0, words);
        for (ptrdiff_t p = 0; p < PROBES; p++) {
            v[p * n + i] = words[0] >> p & 1 ? 1 : -1;
        }
    }
}

/** w <- (L L')^-1 v */
static frg_status solve_probes(const frgi_gp_trust *t, const work *k)
{
    const ptrdiff_t n = frgi_spd_order(t->factor);
    frgi_gp_narrow(n * PROBES, k->v, k->low);
    TRY(frgi_spd_forward(t->ctx, t->factor, PROBES, k->low, n));
    TRY(frgi_spd_backward(t->ctx, t->factor, PROBES, k->low, n));
    frgi_gp_widen(n * PROBES, k->low, k->w);
    return FRG_OK;
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

/** s += left'(right - K x) over `count` rows from `first` on. */
static void add_rows(const work *k, ptrdiff_t n, ptrdiff_t first, ptrdiff_t count,
                     const double *left, const double *right, const double *x, sample *s)
{
    for (ptrdiff_t b = 0; b < count; b++) {
        const ptrdiff_t i = first + b;
        add(s, left[i] * (right[i] - product(k->rows + b, n, x)));
    }
}

/** The sampled rows once: quad of the columns, and probe[p] of the probes, each where it is not
 *  NULL. */
static frg_status go_over_rows(const frgi_gp_trust *t, const work *k, sample *quad, sample *probe)
{
    const ptrdiff_t n = frgi_spd_order(t->factor), blocks = (n + BLOCK - 1) / BLOCK;
    for (ptrdiff_t b = 0; b < (blocks < BLOCKS ? blocks : BLOCKS); b++) {
        const ptrdiff_t first = (blocks <= BLOCKS ? b : b * (blocks - 1) / (BLOCKS - 1)) * BLOCK;
        const ptrdiff_t count = n - first < BLOCK ? n - first : BLOCK;
        TRY(t->rows(t->user, first, count, k->rows));
        for (ptrdiff_t c = 0; quad && c < t->q; c++) {
            add_rows(k, n, first, count, t->a + c * n, t->r + c * n, t->a + c * n, quad);
        }
        for (ptrdiff_t p = 0; probe && p < PROBES; p++) {
            add_rows(k, n, first, count, k->v + p * n, k->v + p * n, k->w + p * n, &probe[p]);
        }
    }
    return FRG_OK;
}

frg_status frgi_gp_trust_errors(const frgi_gp_trust *t, double *quad, double *trace)
{
    const ptrdiff_t n = frgi_spd_order(t->factor),
                    batches = trace && n <= EXACT ? (n + PROBES - 1) / PROBES : 1;
    frgi_arena memory = {.base = t->memory, .bytes = frgi_gp_trust_bytes(n)};
    work k;
    lay_out(&memory, n, &k);
    const double all = (double)n;
    sample columns = {0}, traces = {0};
    double unseen = 0;
    for (ptrdiff_t batch = 0; batch < batches; batch++) {
        sample probe[PROBES] = {{0}};
        if (trace) {
            fill_probes(n, batch * PROBES, k.v);
            TRY(solve_probes(t, &k));
        }
        TRY(go_over_rows(t, &k, batch == 0 ? &columns : NULL, trace ? probe : NULL));
        for (ptrdiff_t p = 0; trace && p < PROBES && batch * PROBES + p < n; p++) {
            add(&traces, total(&probe[p], all));
            unseen += missed(&probe[p], all) / PROBES;
        }
    }
    columns.count /= t->q; /* the columns' contributions belong to one row */
    *quad = fabs(total(&columns, all)) + chance(&columns, all) + missed(&columns, all);
    if (trace && n <= EXACT) {
        *trace = fabs(traces.sum) + chance(&traces, all);
    } else if (trace) {
        const double mean = total(&traces, 1), square = traces.square / PROBES - mean * mean;
        *trace = fabs(mean) + 2 * sqrt(fmax(square, 0) / (PROBES - 1)) + unseen;
    }
    return FRG_OK;
}

/* ---- of a process ---------------------------------------------------------------------------- */

static frg_status kernel_rows(void *user, ptrdiff_t first, ptrdiff_t count, double *to)
{
    frg_gp *const gp = user;
    const frgi_gp_side *const wide = &gp->other;
    double white[BLOCK];
    TRY(frgi_gp_cross(gp->ctx, wide->bound, &wide->points, first, count, to, BLOCK));
    frgi_gp_white(wide->bound, &wide->points, first, count, white);
    for (ptrdiff_t b = 0; b < count; b++) {
        to[b + (first + b) * BLOCK] += white[b] + gp->vectors.noise[first + b] + gp->state.jitter;
    }
    return FRG_OK;
}

frg_status frgi_gp_sampled_error(frg_gp *gp, double *error)
{
    frgi_gp_need_other_bound(gp);
    const frgi_gp_trust t = {.ctx = gp->ctx,
                             .factor = &gp->own.matrix,
                             .memory = gp->vectors.trust_memory,
                             .q = gp->data.q,
                             .r = gp->vectors.residual,
                             .a = gp->vectors.alpha,
                             .rows = kernel_rows,
                             .user = gp};
    double quad, trace;
    TRY(frgi_gp_trust_errors(&t, &quad, &trace));
    *error = 0.5 * (quad + (double)gp->data.q * trace);
    return FRG_OK;
}
