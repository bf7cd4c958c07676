/* fe_gram.c - ordered sums over rows.
 *
 * Rows come in chunks of FRGI_GRAM_CHUNK; chunks come in at most GROUPS runs of consecutive ones, each run
 * summed by one thread, and the runs are added in order:  ((chunk 0 + chunk 1 + ...) + (run 1) + ...).
 */
#include "fe/fe_gram.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "fe/fe_program.h"

enum { GROUPS = 64 };

#pragma GCC visibility push(hidden)
DECLARE_LEVELS(frgi_gram_ops, frgi_gram_ops);
#pragma GCC visibility pop

const frgi_gram_ops *frgi_gram_ops_of(const frg_context *ctx)
{
    static const frgi_gram_ops *const table[ISA_COUNT] = EACH_LEVEL(&frgi_gram_ops);
    return table[frgi_context_isa(ctx)];
}

typedef struct {
    int64_t n, chunks, groups;
} plan;

static plan plan_of(int64_t n)
{
    const int64_t chunks = (n + FRGI_GRAM_CHUNK - 1) / FRGI_GRAM_CHUNK;
    /* short runs are not worth a partial sum each */
    const int64_t runs = (chunks + 7) / 8;
    return (plan){.n = n, .chunks = chunks, .groups = runs < GROUPS ? runs : GROUPS};
}

static int64_t chunk_rows(const plan *p, int64_t chunk)
{
    const int64_t left = p->n - chunk * FRGI_GRAM_CHUNK;
    return left < FRGI_GRAM_CHUNK ? left : FRGI_GRAM_CHUNK;
}

/** total <- the partial sums in order. */
static void add_up(const plan *p, int64_t length, const double *partial, double *total)
{
    memset(total, 0, sizeof *total * (size_t)length);
    for (int64_t g = 0; g < p->groups; g++) {
        for (int64_t i = 0; i < length; i++) {
            total[i] += partial[g * length + i];
        }
    }
}

double frgi_gram_bytes(int64_t p, int64_t n)
{
    const plan all = plan_of(n);
    const double k = (double)(p < n ? p : n), square = (double)p * (double)p;
    const double estimate = ((double)all.groups + 1) * square / 2 + square, covariance = 5 * k * k;
    return sizeof(double) * ((double)p * (double)n + fmax(estimate, covariance));
}

static bool is_stopped(const frg_context *stops)
{
    return stops && frgi_stopped(stops) != FRG_OK;
}

/** One run of chunks, by bands of rows of g: a look at the stop costs nothing beside one. */
static void gram_of_run(const frg_context *stops, const frgi_gram_ops *ops, const plan *p,
                        int64_t r, int k, const double *const *x, const double *w, double *g)
{
    enum { BAND = 256 };
    double scratch[2 * FRGI_GRAM_CHUNK];
    if (is_stopped(stops)) {
        return;
    }
    memset(g, 0, sizeof *g * (size_t)frgi_packed(k, 0));
    for (int64_t c = r * p->chunks / p->groups; c < (r + 1) * p->chunks / p->groups; c++) {
        for (int from = 0; from < k; from += BAND) {
            if (is_stopped(stops)) {
                return;
            }
            ops->gram(from, from + BAND < k ? from + BAND : k, x, w, c * FRGI_GRAM_CHUNK,
                      chunk_rows(p, c), scratch, g);
        }
    }
}

frg_status frgi_gram(frg_context *ctx, int k, const double *const *x, const double *w, int64_t n,
                     double *g, const frg_context *stops)
{
    const frgi_gram_ops *const ops = frgi_gram_ops_of(ctx);
    const plan p = plan_of(n);
    const int64_t length = frgi_packed(k, 0);
    double *partial;
    TRY(NEW(ctx, &partial, p.groups * length, "a Gram matrix"));
#pragma omp parallel for schedule(dynamic, 1) num_threads(frgi_pass_threads(ctx, n))
    for (int64_t r = 0; r < p.groups; r++) {
        gram_of_run(stops, ops, &p, r, k, x, w, partial + r * length);
    }
    if (!is_stopped(stops)) {
        add_up(&p, length, partial, g);
    }
    DROP(ctx, &partial);
    return FRG_OK;
}

frg_status frgi_gram_residual(frg_context *ctx, int k, const double *const *x, const double *y,
                              const double *b, const double *w, int64_t n, double *e,
                              double *gradient)
{
    const frgi_gram_ops *const ops = frgi_gram_ops_of(ctx);
    const plan p = plan_of(n);
    const int64_t length = k + 1;
    double *partial;
    TRY(NEW0(ctx, &partial, p.groups * length, "a gradient"));
#pragma omp parallel for schedule(dynamic, 1) num_threads(frgi_pass_threads(ctx, n))
    for (int64_t r = 0; r < p.groups; r++) {
        double scratch[FRGI_GRAM_CHUNK];
        for (int64_t c = r * p.chunks / p.groups; c < (r + 1) * p.chunks / p.groups; c++) {
            ops->residual(k, x, y, b, w, c * FRGI_GRAM_CHUNK, chunk_rows(&p, c), e, scratch,
                          partial + r * length);
        }
    }
    add_up(&p, length, partial, gradient);
    DROP(ctx, &partial);
    return FRG_OK;
}

/** Every column is summed by one thread in the order of the rows; four of them share the look at the groups
 *  and a line of memory.  What a last bunch of fewer lacks is its last column again. */
frg_status frgi_gram_by_group(frg_context *ctx, int k, const double *const *x, const double *s,
                              const int32_t *groups, int64_t n, int64_t n_groups, double *sums)
{
    const frgi_gram_ops *const ops = frgi_gram_ops_of(ctx);
    const int bunches = (k + 3) / 4;
    double *four;
    TRY(NEW0(ctx, &four, 4 * bunches * n_groups, "sums by group"));
#pragma omp parallel for schedule(dynamic, 1) num_threads(frgi_pass_threads(ctx, n))
    for (int b = 0; b < bunches; b++) {
        const double *columns[4];
        double *const mine = four + 4 * b * n_groups;
        for (int j = 0; j < 4; j++) {
            columns[j] = x[4 * b + j < k ? 4 * b + j : k - 1];
        }
        ops->by_group(columns, s, groups, n, mine);
        for (int j = 4 * b; j < k && j < 4 * b + 4; j++) {
            for (ptrdiff_t g = 0; g < n_groups; g++) {
                sums[j * n_groups + g] = mine[4 * g + j % 4];
            }
        }
    }
    DROP(ctx, &four);
    return FRG_OK;
}

frgi_moments frgi_moments_join(frgi_moments a, frgi_moments b)
{
    const double weight = a.weight + b.weight, shift = b.mean - a.mean;
    if (!(weight > 0)) {
        return a;
    }
    return (frgi_moments){.weight = weight,
                          .mean = a.mean + shift * (b.weight / weight),
                          .square =
                              a.square + b.square + shift * shift * (a.weight * b.weight / weight)};
}
