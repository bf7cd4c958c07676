/* gw_profiles.c - a start from the points' local distance distributions.
 *
 * The local distribution of a point is that of its distances to all points, weighted.  With the
 * quantile functions p_i(q), q in (0, 1), of one side and r_j(q) of the other,
 *
 *     c_ij = int_0^1 (p_i(q) - r_j(q))^2 dq
 *
 * is the squared Wasserstein distance of the two distributions, and the least transport cost under
 * c bounds E from below (Memoli 2011, the third lower bound).  Isometries leave the distributions
 * as they are, so that of an isometric copy the plan of this problem is the answer, but for points
 * of equal distributions; it does not depend on random numbers.  With the quantiles at
 * (r + 1/2) / R, R = FRGI_QUANTILES, in place of the distances to R pairs
 *
 *     c_ij = mean_r (p_ir - r_jr)^2 = row and column terms - (2/R) sum_r p_ir r_jr
 *
 * is a cost like that of a step (gw_level.c), and is solved as one is, with epsilon lowered from
 * FIRST to LAST of the mean cost of a random pair.
 */
#include <math.h>
#include <string.h>

#include "gw/gw_state.h"

enum { BINS = 512, SAMPLED_POINTS = 512 };
enum { STAGES = 5, STAGE_PASSES = 6 };
#define FIRST 0.3 /* epsilon, in units of the mean cost of a random pair */
#define LAST  3e-3
#define ABOVE 30 /* epsilon where the passes of the first step begin, in units of its last one */

bool frgi_starts_from_distributions(const frgi_level *l, bool several)
{
    const frg_gw_opts *const o = l->o;
    const bool given = l->initial.plan || l->initial.f || l->initial.g;
    const bool fits = frgi_is_balanced(o) && o->rank == 0 && o->linear_weight == 0;
    return !given && (o->start_from == FRG_GW_START_PROFILES ||
                      (o->start_from == FRG_GW_START_AUTO && several && fits));
}

typedef struct {
    const frg_context *ctx;
    float bins_per_distance;
    float *bins;
} histograms;

/** A frgi_batch_visitor, user histograms. */
static void count_batch(void *user, const frgi_row_batch *batch)
{
    const histograms *const h = user;
    const int64_t n = batch->n, count = batch->count;
#pragma omp parallel for schedule(static) num_threads(frg_threads(h->ctx)) if (count * n > 10000)
    for (int64_t i = 0; i < n; i++) {
        for (int64_t r = 0; r < count; r++) {
            const int64_t at = (int64_t)(batch->rows[r * n + i] * h->bins_per_distance);
            h->bins[i * BINS + (at < BINS ? at : BINS - 1)] += (float)batch->shares[r];
        }
    }
}

/** bins[i * BINS + b] <- weight of the points whose distance from i is in b; distances from
 *  SAMPLED_POINTS points at equal steps of the weights where there are more. */
static frg_status count_distances(frgi_distances *d, const double *w, float top, float *bins)
{
    histograms h = {
        .ctx = d->ctx, .bins_per_distance = top > 0 ? (float)BINS / top : 0, .bins = bins};
    return frgi_distances_walk(d, w, SAMPLED_POINTS, count_batch, &h);
}

/** out[r * n] <- the quantile at (r + 1/2) / FRGI_QUANTILES of a point, linear inside a bin. */
static void quantiles(const float *bins, double width, int64_t n, float *out)
{
    double total = 0, below = 0;
    int64_t b = 0;
    for (int64_t k = 0; k < BINS; k++) {
        total += (double)bins[k];
    }
    for (int64_t r = 0; r < FRGI_QUANTILES; r++) {
        const double at = ((double)r + 0.5) / FRGI_QUANTILES * total;
        while (b < BINS - 1 && below + (double)bins[b] < at) {
            below += (double)bins[b++];
        }
        const double part = bins[b] > 0 ? fmin((at - below) / (double)bins[b], 1) : 0;
        out[r * n] = (float)(width * ((double)b + part));
    }
}

/** Each quantile less its mean over the points; *spread += the mean square of these. */
static void centre(float *rows, const double *w, int64_t n, double *spread)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
        total += w[i];
    }
    for (int64_t r = 0; r < FRGI_QUANTILES; r++) {
        float *const row = rows + r * n;
        double mean = 0, square = 0;
        for (int64_t i = 0; i < n; i++) {
            mean += w[i] * (double)row[i] / total;
        }
        for (int64_t i = 0; i < n; i++) {
            row[i] = (float)((double)row[i] - mean);
            square += w[i] * (double)row[i] * (double)row[i] / total;
        }
        *spread += square / FRGI_QUANTILES;
    }
}

/** The rows of a side, product.rows_x or rows_y: rows[r * n + i] <- quantile r of point i, centred;
 *  *spread += their mean square. */
static frg_status local_distributions(frgi_level *l, bool second, bool unit, double *spread)
{
    frgi_distances *const d = second ? l->y : l->x;
    const double *const w = second ? l->b : l->a;
    const char *const what = "local distance distributions";
    const int64_t n = d->n;
    const float top = d->scale > 0 ? d->most * d->scale : d->most;
    const double width = (unit ? 1 : (double)top) / BINS;
    const size_t count = frgi_mul((size_t)n, FRGI_QUANTILES);
    float *bins = NULL, *rows = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW0(d->ctx, &bins, frgi_mul((size_t)n, BINS), what));
    TRY_TO(done, NEW(d->ctx, &rows, count, what));
    TRY_TO(done, count_distances(d, w, top, bins));
#pragma omp parallel for schedule(static) num_threads(frg_threads(d->ctx)) if (n > 100)
    for (int64_t i = 0; i < n; i++) {
        quantiles(bins + i * BINS, width, n, rows + i);
    }
    centre(rows, w, n, spread);
    frgi_transport_copy(&l->t, second ? l->product.rows_y : l->product.rows_x, rows,
                        count * sizeof *rows);
done:
    DROP(d->ctx, &bins);
    DROP(d->ctx, &rows);
    return status;
}

/** Passes on the factors at epsilon `last`, lowered to it from `first`: without potentials to begin
 *  with, passes at the last one alone would take hundreds to move the mass.  done: stages
 *  before. */
static frg_status lower_epsilon(frgi_level *l, double first, double last, int64_t done)
{
    for (int stage = 0; stage < STAGES; stage++) {
        l->epsilon = first * pow(last / first, (double)stage / (STAGES - 1));
        TRY(frgi_level_solve(l, STAGE_PASSES, l->o->marginal_tol));
        const frg_status beat = frgi_level_beat(l, "profiles", done + stage + 1, 2 * STAGES,
                                                l->t.last.error, (double)NAN);
        if (beat != FRG_OK) {
            return beat;
        }
    }
    return FRG_OK;
}

/** The plan between the local distance distributions, and pairs of it. */
static frg_status match_distributions(frgi_level *l, double spread)
{
    l->epsilon = spread * LAST;
    TRY(frgi_level_pack(l, FRGI_QUANTILES));
    if (l->product.means) { /* rows are centred by their own means, which potentials take up */
        double *const none = l->product.row;
        memset(none, 0, (size_t)(l->t.s.rows + l->t.s.ld) * sizeof *none);
        l->t.steps->pairs->put_terms(l, none, none);
    }
    const frg_status status = lower_epsilon(l, spread * FIRST, spread * LAST, 0);
    if (status != FRG_OK) {
        return status;
    }
    TRY(frgi_kept_reset(l, false));
    TRY(frgi_kept_fold(l));
    return frgi_draw_start(l);
}

frg_status frgi_start_from_pairs(frgi_level *l)
{
    const bool anneals = l->o->anneal != FRG_GW_ANNEAL_NONE;
    const double end = anneals ? frgi_epsilon_end(l->o) : frgi_epsilon_start(l->o);
    l->epsilon = end;
    TRY(frgi_level_potentials(l));
    TRY(frgi_level_gather(l));
    const frg_status status = lower_epsilon(l, ABOVE * end, end, STAGES);
    if (status != FRG_OK) {
        return status;
    }
    TRY(frgi_kept_fold(l));
    TRY(frgi_keep_lagged(l));
    return FRG_OK;
}

frg_status frgi_distributions_start(frgi_level *l)
{
    frgi_host_step(l->ctx, FRGI_HOST_PROFILES);
    TRY(frgi_state_anew(l, FRGI_LOCAL_DISTRIBUTIONS));
    const bool unit = l->o->scale == FRG_GW_SCALE_BATCH_MAX;
    double spread = 0;
    TRY(local_distributions(l, false, unit, &spread));
    TRY(local_distributions(l, true, unit, &spread));
    if (spread > 1e-12) { /* else all points have one distribution: the pairs of a b' are as good */
        const frg_status status = match_distributions(l, spread);
        if (status != FRG_OK) {
            return status;
        }
    }
    return frgi_start_from_pairs(l);
}
