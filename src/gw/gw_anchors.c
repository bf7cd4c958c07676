/* gw_anchors.c - pairs of points drawn from a plan that is never stored.
 *
 * A row i comes with probability r_i (its mass) by a systematic draw: one uniform number places
 * `count` equally spaced points on the line of cumulative masses, which has the smallest variance
 * there is.  The column comes by inversion of the distribution in row i, which is computed for
 * these rows alone.
 *
 * The plan that the next step linearises at is the average
 *
 *     P_t = sum_q alpha (1 - alpha)^q Pnew_(t-q)
 *
 * To draw from it draw the lag q from that geometric distribution, then a pair of Pnew_(t-q).
 * Pairs of a plan are drawn when it is the newest, as many as later steps need on average, so that
 * no plan is kept.  The distribution is cut at FRGI_LAGS plans.  Where the averaged plan is kept
 * all the same (gw_kept.c), pairs come from it.
 */
#include <math.h>
#include <stdlib.h>

#include "gw/gw_level_device.h"

static double uniform(const frgi_level *l, uint64_t stream, int64_t index)
{
    double u[2];
    frgi_uniforms(l->seed + l->run * UINT64_C(0x9e3779b97f4a7c15), stream, (uint64_t)index,
                  (uint64_t)l->step, u);
    return u[0];
}

/** Systematic (or independent) draw of `count` indices with weights w; rising. */
static void draw_indices(const frgi_level *l, const double *w, int64_t n, int64_t count,
                         uint64_t stream, frgi_pair *out, bool target)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
        total += w[i];
    }
    const bool flat = !(total > 1e-9); /* no plan to speak of: uniform */
    const double sum = flat ? (double)n : total, shift = uniform(l, stream, -1);
    const bool independent = l->o->sampling == FRG_GW_MULTINOMIAL;
    double below = 0;
    int64_t i = 0;
    for (int64_t q = 0; q < count; q++) {
        double at = ((double)q + shift) / (double)count * sum;
        if (independent) { /* each from the start: the order says nothing */
            at = uniform(l, stream, q) * sum;
            below = 0;
            i = 0;
        }
        while (i < n - 1 && below + (flat ? 1 : w[i]) <= at) {
            below += flat ? 1 : w[i];
            i++;
        }
        while (!flat && i > 0 && !(w[i] > 0)) { /* rounding at the end: never an empty row */
            i--;
        }
        if (target) {
            out[q].j = (int32_t)i;
        } else {
            out[q].i = (int32_t)i;
        }
    }
}

/** A random order (Fisher and Yates). */
static void shuffle(const frgi_level *l, int64_t count, uint64_t stream, frgi_pair *pairs,
                    bool columns_alone)
{
    for (int64_t q = count - 1; q > 0; q--) {
        const int64_t other = (int64_t)(uniform(l, stream, q) * (double)(q + 1));
        if (columns_alone) {
            const int32_t swap = pairs[q].j;
            pairs[q].j = pairs[other].j;
            pairs[other].j = swap;
        } else {
            const frgi_pair swap = pairs[q];
            pairs[q] = pairs[other];
            pairs[other] = swap;
        }
    }
}

void frgi_host_draw_product(frgi_level *l, uint64_t stream)
{
    frgi_host_step(l->ctx, FRGI_HOST_DRAWS);
    const uint64_t s = stream * 16;
    const int64_t count = l->sampled.drawn;
    frgi_pair *const out = l->sampled.lagged[0];
    draw_indices(l, l->a, l->x->n, count, s + 1, out, false);
    draw_indices(l, l->b, l->y->n, count, s + 2, out, true);
    shuffle(l, count, s + 3, out, true);
    shuffle(l, count, s + 4, out, false);
}

/* ---- columns --------------------------------------------------------------------------------- */

typedef struct {
    frgi_level *l;
    frgi_pair *pairs;
    int64_t count;
    const int64_t *first; /* n + 1: pairs of row i */
    uint64_t stream;
} column_draw;

static void draw_in_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    enum { BLOCK = 64 };
    const column_draw *const c = user;
    const frgi_sweep_ops *const ops = frgi_sweep_ops_of(c->l->ctx);
    const int64_t m = c->l->y->n;
    (void)chunk;
    if (c->first[i] == c->first[i + 1]) {
        return;
    }
    double total = 0;
    for (int64_t j = 0; j < m; j += BLOCK) {
        total += ops->sum(row + j, m - j < BLOCK ? m - j : BLOCK);
    }
    for (int64_t q = c->first[i]; q < c->first[i + 1]; q++) {
        const double at = uniform(c->l, c->stream, q) * total;
        double below = 0, next = 0;
        int64_t j = 0, last = 0;
        for (;; j += BLOCK) { /* the block that reaches it, of the sums that made the total */
            next = below + ops->sum(row + j, m - j < BLOCK ? m - j : BLOCK);
            if (next > at || j + BLOCK >= m) {
                break;
            }
            below = next;
        }
        for (int64_t end = j + BLOCK < m ? j + BLOCK : m; j < end && !(below > at); j++) {
            below += row[j];
            last = row[j] > 0 ? j : last;
        }
        c->pairs[q].j = (int32_t)(below > at ? j - 1 : last);
    }
}

static int by_row(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const frgi_pair *const x = a, *const y = b;
    return (x->i > y->i) - (x->i < y->i);
}

static int rising(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const double *const x = a, *const y = b;
    return (*x > *y) - (*x < *y);
}

/** Rows of the present plan, or of the averaged one that is kept; rising. */
static void draw_rows(const frgi_level *l, bool averaged, int64_t count, uint64_t s, frgi_pair *out)
{
    const int64_t n = l->x->n;
    double *const sums = l->product.row; /* of rows */
    if (averaged) {
        frgi_transport_copy(&l->t, sums, l->kept.rows, (size_t)n * sizeof *sums);
    } else {
        frgi_transport_marginals(&l->t, sums, NULL);
    }
    draw_indices(l, sums, n, count, s + 1, out, false);
    if (l->o->sampling == FRG_GW_MULTINOMIAL) {
        frgi_sort(out, count, sizeof *out, by_row, NULL);
    }
}

/** The shares of the plan's mass below which rows are, in the order of draw_indices. */
static void draw_shares(const frgi_level *l, int64_t count, uint64_t stream, double *shares)
{
    const bool independent = l->o->sampling == FRG_GW_MULTINOMIAL;
    const double shift = uniform(l, stream, -1);
    for (int64_t q = 0; q < count; q++) {
        shares[q] = independent ? uniform(l, stream, q) : ((double)q + shift) / (double)count;
    }
    if (independent) {
        frgi_sort(shares, count, sizeof *shares, rising, NULL);
    }
}

/** Rows are drawn here where marginals hold and the plan is not an averaged one that is kept, and
 *  else there from the plan's row sums; each pair takes the random numbers of its row and column
 *  along through the random order, and columns are found there. */
static frg_status draw_on_device(frgi_level *l, int area, bool averaged, int64_t count, uint64_t s,
                                 frgi_pair *out)
{
    double *const uniforms = frgi_level_device_uniforms(l, area), *const shares = uniforms + count;
    const bool rows_here = frgi_is_balanced(l->o) && !averaged;
    if (rows_here) {
        draw_rows(l, false, count, s, out);
    }
    for (int64_t q = 0; q < count; q++) {
        out[q].j = (int32_t)q;
    }
    shuffle(l, count, s + 4, out, false);
    if (!rows_here) { /* `uniforms` has room for the ordered ones until they are filled */
        draw_shares(l, count, s + 1, uniforms);
        for (int64_t q = 0; q < count; q++) {
            shares[q] = uniforms[out[q].j];
        }
    }
    for (int64_t q = 0; q < count; q++) {
        uniforms[q] = uniform(l, s + 2, out[q].j);
    }
    return frgi_level_device_draw(l, area, averaged, rows_here ? out : NULL, count);
}

frg_status frgi_host_draw(frgi_level *l, bool averaged, int64_t count, uint64_t stream,
                          frgi_pair *out)
{
    frgi_not_beside_device(l->ctx, "pairs drawn from a plan");
    const uint64_t s = stream * 16;
    const int64_t n = l->x->n;
    int64_t *first;
    draw_rows(l, averaged, count, s, out);
    TRY(NEW0(l->ctx, &first, n + 1, "anchors"));
    for (int64_t q = 0; q < count; q++) {
        first[out[q].i + 1]++;
    }
    for (int64_t i = 0; i < n; i++) {
        first[i + 1] += first[i];
    }
    column_draw c = {l, out, count, first, s + 2};
    if (averaged) {
        frgi_kept_rows(l, first, draw_in_row, &c);
    } else {
        frgi_transport_some_rows(&l->t, first, draw_in_row, &c);
    }
    DROP(l->ctx, &first);
    shuffle(l, count, s + 4, out, false);
    return FRG_OK;
}

/** From the present plan, or from the averaged one that is kept; to that area of a device. */
static frg_status draw(frgi_level *l, int area, int64_t count, uint64_t stream, frgi_pair *out)
{
    const bool averaged = area < FRGI_AREA_CHECK && frgi_keeps_plan(l);
    return l->device ? draw_on_device(l, area, averaged, count, stream * 16, out)
                     : l->t.steps->pairs->draw(l, averaged, count, stream, out);
}

frg_status frgi_draw_pairs(frgi_level *l, int64_t count, uint64_t stream, frgi_pair *out)
{
    return draw(l, FRGI_AREA_CHECK, count, stream, out);
}

frg_status frgi_draw_checks(frgi_level *l, int64_t count, frgi_pair *one, frgi_pair *other)
{
    TRY(draw(l, FRGI_AREA_CHECK, count, STREAM_CHECK, one));
    return draw(l, FRGI_AREA_CHECK + 1, count, STREAM_CHECK + 1, other);
}

frg_status frgi_draw_start(frgi_level *l)
{
    return draw(l, l->sampled.area[0], l->sampled.drawn, STREAM_START, l->sampled.lagged[0]);
}

/* ---- the averaged plan ----------------------------------------------------------------------- */

frg_status frgi_keep_lagged(frgi_level *l)
{
    frgi_pair *const oldest = l->sampled.lagged[FRGI_LAGS - 1];
    const int area = l->sampled.area[FRGI_LAGS - 1];
    const int64_t kept = l->o->damping < 1 && !frgi_keeps_plan(l) ? FRGI_LAGS : 1;
    for (int64_t q = FRGI_LAGS - 1; q > 0; q--) {
        l->sampled.lagged[q] = l->sampled.lagged[q - 1];
        l->sampled.area[q] = l->sampled.area[q - 1];
        l->sampled.lagged_count[q] = l->sampled.lagged_count[q - 1];
        l->sampled.lagged_used[q] = l->sampled.lagged_used[q - 1];
    }
    l->sampled.lagged[0] = oldest;
    l->sampled.area[0] = area;
    l->sampled.n_lagged = l->sampled.n_lagged + 1 < kept ? l->sampled.n_lagged + 1 : kept;
    l->sampled.lagged_count[0] = l->sampled.drawn;
    l->sampled.lagged_used[0] = 0;
    return draw(l, area, l->sampled.drawn, STREAM_ROWS, l->sampled.lagged[0]);
}

/** The pair of the next step with number r: its plan is as old as the geometric distribution has
 *  it, cut at the plans there are; the newest where all pairs of that one are used. */
static frgi_waiting next_waiting(frgi_level *l, int64_t r)
{
    frgi_samples *const p = &l->sampled;
    const double alpha = l->o->damping;
    int64_t age = 0;
    if (alpha < 1 && p->n_lagged > 1) {
        const double cut = 1 - pow(1 - alpha, (double)p->n_lagged);
        const double u = uniform(l, STREAM_AGE, r) * cut;
        age = (int64_t)(log1p(-u) / log1p(-alpha));
        age = age < p->n_lagged ? age : p->n_lagged - 1;
        if (p->lagged_used[age] >= p->lagged_count[age]) {
            age = 0;
            p->truncated++;
        }
    }
    const int64_t at = p->lagged_used[age]++ % p->lagged_count[age];
    return (frgi_waiting){(int32_t)age, (int32_t)at};
}

void frgi_take_samples(frgi_level *l)
{
    frgi_samples *const p = &l->sampled;
    for (int64_t r = 0; r < p->count; r++) {
        p->places[r] = next_waiting(l, r);
    }
    if (!l->device) {
        l->t.steps->pairs->take(l, p->places, p->count);
        return;
    }
    for (int64_t r = 0; r < p->count; r++) {
        frgi_level_device_index(l)[r] =
            frgi_level_device_place(l, p->area[p->places[r].age], p->places[r].at);
    }
}
