/* fe_map.c - see fe_map.h. */
#include "fe/fe_map.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { WARM_UP = 15, EXTRA_SWEEPS_AFTER = 40, KEEP_EVERY = 4 };
/* roundings of ||W^(1/2) z||: a gradient below them is zero */
static const double ZERO_GRADIENT = 16;
static const double LEAST_D2 = 1e3; /* roundings of ||c||: a shorter D2 says nothing of lambda */

void frgi_fe_map_layout(frgi_arena *a, const fe_basis *b, int64_t lanes, fe_map *m)
{
    double **const vectors[] = {&m->c,       &m->one,  &m->start,  &m->kept[0],
                                &m->kept[1], &m->step, &m->pending};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        *vectors[i] = TAKE(a, double, frgi_mul((size_t)b->n_reduced, (size_t)lanes));
    }
    m->order = TAKE(a, const fe_basis_factor *, b->g->n_remaining);
}

/** Insertion by falling numbers of levels; of equal ones the caller's first. */
static void put_in_order(fe_map *m, const fe_basis *b)
{
    for (int r = 0; r < b->g->n_remaining; r++) {
        int at = r;
        for (; at > 0 && m->order[at - 1]->levels < b->remaining[r].levels; at--) {
            m->order[at] = m->order[at - 1];
        }
        m->order[at] = &b->remaining[r];
    }
}

void frgi_fe_map_start(fe_map *m, const fe_basis *b, int64_t k)
{
    const size_t bytes = (size_t)(b->n_reduced * k) * sizeof *m->c;
    m->k = k;
    put_in_order(m, b);
    memset(m->c, 0, bytes);
    memset(m->start, 0, bytes);
    memset(m->step, 0, bytes);
    memset(m->pending, 0, bytes);
    for (int64_t c = 0; c < k; c++) {
        m->lane[c] = (fe_map_lane){.phase = b->g->n_remaining > 1 ? FE_MAP_WARM_UP : FE_MAP_ALL,
                                   .before = -1,
                                   .lambda = (double)NAN};
    }
}

/* ---- a sweep --------------------------------------------------------------------------------- */

/** Does a factor take part in the lane's sweep? */
static bool takes_part(const fe_map_lane *l, int place)
{
    return l->stop == FRG_LSMR_RUNNING && (place == 0 || l->phase != FE_MAP_FIRST_TWO);
}

/** The place of the last factor of the lane's sweeps. */
static int last_place(const fe_map_lane *l, int n_remaining)
{
    return l->phase == FE_MAP_FIRST_TWO ? 0 : n_remaining - 1;
}

static int factors_of_sweep(const fe_map *m, int n_remaining)
{
    for (int64_t c = 0; c < m->k; c++) {
        if (takes_part(&m->lane[c], 1)) {
            return n_remaining;
        }
    }
    return 1;
}

/** c += m and the gradient, of the factor at `place`; m <- 0 in the lanes that it is no part of,
 *  and in those whose last factor it is: there z hears of it in the next sweep, whatever the others
 *  do. */
static void take_step(fe_map *m, int place, int n_remaining, const double *square)
{
    const fe_basis_factor *const f = m->order[place];
    const int64_t k = m->k;
    for (int64_t c = 0; c < k; c++) {
        fe_map_lane *const l = &m->lane[c];
        const bool takes = takes_part(l, place), last = place == last_place(l, n_remaining);
        for (int64_t j = f->first; j < f->first + f->levels * f->width; j++) {
            double *const s = &m->step[j * k + c];
            *s = takes ? *s : 0;
            m->c[j * k + c] += *s;
            l->gradient2 += *s * *s;
            m->pending[j * k + c] = last ? *s : 0;
            *s = last ? 0 : *s;
        }
        l->square = takes ? square[c] : l->square;
        l->before = l->before < 0 ? l->square : l->before;
    }
}

frg_status frgi_fe_map_sweep(fe_map *m, frg_context *ctx, const fe_basis_work *w, double *z,
                             double *elim)
{
    const fe_basis *const b = w->b;
    const int64_t k = m->k;
    const int factors = factors_of_sweep(m, b->g->n_remaining);
    const fe_basis_factor *from = NULL;
    double square[BASIS_MAX_LANES];
    frgi_basis_residual(w, k, m->pending, z, elim, NULL);
    memset(m->pending, 0, (size_t)(b->n_reduced * k) * sizeof *m->pending);
    for (int64_t c = 0; c < k; c++) {
        m->lane[c].gradient2 = m->lane[c].stop ? m->lane[c].gradient2 : 0;
        m->lane[c].sweeps += m->lane[c].stop == FRG_LSMR_RUNNING;
    }
    for (int q = 0; q < factors; q++) {
        frgi_basis_shift(w, k, from, m->step, m->order[q], z, m->step, square);
        const frg_status stopped = frgi_stopped(ctx);
        if (stopped != FRG_OK) {
            return stopped;
        }
        take_step(m, q, b->g->n_remaining, square);
        from = m->order[q];
    }
    return FRG_OK;
}

/* ---- acceleration ---------------------------------------------------------------------------- */

static void copy_lane(const fe_map *m, int64_t n, int64_t c, const double *from, double *to)
{
    for (int64_t j = 0; j < n; j++) {
        to[j * m->k + c] = from[j * m->k + c];
    }
}

/** c <- c - (D1'D2 / D2'D2) D1 of x0, x1 and c in lane c; gives_lambda: an estimate of it, too. */
static void extrapolate(fe_map *m, int64_t n, int64_t c, const double *x0, const double *x1,
                        bool gives_lambda)
{
    const int64_t k = m->k;
    fe_map_lane *const l = &m->lane[c];
    double d12 = 0, d22 = 0, norm2 = 0;
    for (int64_t j = c; j < n * k; j += k) {
        const double d1 = m->c[j] - x1[j], d2 = d1 - (x1[j] - x0[j]);
        d12 += d1 * d2;
        d22 += d2 * d2;
        norm2 += m->c[j] * m->c[j];
    }
    const double a = d12 / d22, lambda = 1 / (1 - a);
    if (!(d22 > 0) || !isfinite(a)) {
        return;
    }
    if (gives_lambda && sqrt(d22) > LEAST_D2 * DBL_EPSILON * sqrt(norm2) && lambda > 0 &&
        !(lambda >= l->lambda)) {
        l->lambda = lambda;
    }
    for (int64_t j = c; j < n * k; j += k) {
        const double d1 = m->c[j] - x1[j];
        m->c[j] -= a * d1;
        m->pending[j] -= a * d1;
    }
}

/** What a lane does with the iterate of a sweep. */
static void accelerate(fe_map *m, int64_t n, int64_t c)
{
    fe_map_lane *const l = &m->lane[c];
    if (l->place == 0) {
        copy_lane(m, n, c, m->c, m->one);
        l->place = 1;
        return;
    }
    if (l->place == 1) {
        extrapolate(m, n, c, m->start, m->one, true);
        if (++l->accelerations % KEEP_EVERY == 0 && l->kept < 2) {
            copy_lane(m, n, c, m->c, m->kept[l->kept++]);
        } else if (l->accelerations % KEEP_EVERY == 0) {
            extrapolate(m, n, c, m->kept[0], m->kept[1], false);
            l->kept = 0;
        }
    }
    l->place = l->place == 1 && l->accelerations > EXTRA_SWEEPS_AFTER ? 2 : 0;
    copy_lane(m, n, c, m->c, m->start);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/** Why a lane stops after its sweep, or FRG_LSMR_RUNNING. */
static frg_lsmr_stop why_stop(const fe_map_lane *l, const fe_map_rule *rule)
{
    const double gradient = sqrt(l->gradient2), size = sqrt(l->square);
    if (size <= rule->atol * sqrt(l->before)) {
        return FRG_LSMR_CONSISTENT;
    }
    if (gradient <= rule->atol * size) {
        return FRG_LSMR_LEAST_SQUARES;
    }
    if (gradient <= ZERO_GRADIENT * DBL_EPSILON * sqrt(l->before)) {
        return FRG_LSMR_LEAST_SQUARES_EPS;
    }
    return FRG_LSMR_RUNNING;
}

/** The phase after a sweep; `holds`: the sweep's factors are taken out. */
static void go_on(fe_map *m, int64_t n, int64_t c, bool holds, int64_t max_sweeps)
{
    fe_map_lane *const l = &m->lane[c];
    const int before = (int)l->phase;
    if (l->phase == FE_MAP_WARM_UP && l->sweeps >= WARM_UP) {
        l->phase = FE_MAP_FIRST_TWO;
    } else if (l->phase == FE_MAP_FIRST_TWO && (holds || l->sweeps >= max_sweeps / 2)) {
        l->phase = FE_MAP_ALL;
    }
    if ((int)l->phase == before) {
        accelerate(m, n, c);
        return;
    }
    l->place = l->kept = 0;
    copy_lane(m, n, c, m->c, m->start);
}

static frg_status heartbeat(const fe_map *m, frg_context *ctx, const fe_map_rule *rule)
{
    frg_progress p = {
        .solver = "map", .phase = "rows", .total = rule->max_sweeps, .target = rule->atol};
    for (int64_t c = 0; c < m->k; c++) {
        const fe_map_lane *const l = &m->lane[c];
        p.done = l->sweeps > p.done ? l->sweeps : p.done;
        if (l->stop == FRG_LSMR_RUNNING && l->square > 0) {
            p.residual = fmax(p.residual, sqrt(l->gradient2 / l->square));
        }
    }
    return frgi_heartbeat(ctx, &p);
}

/** Tests the lanes after a sweep; returns how many go on. */
static int64_t test_lanes(fe_map *m, int64_t n, const fe_map_rule *rule)
{
    int64_t running = 0;
    for (int64_t c = 0; c < m->k; c++) {
        fe_map_lane *const l = &m->lane[c];
        if (l->stop != FRG_LSMR_RUNNING) {
            continue;
        }
        const frg_lsmr_stop why = why_stop(l, rule);
        const bool ends = l->phase != FE_MAP_FIRST_TWO && why != FRG_LSMR_RUNNING;
        l->stop = ends ? why : l->sweeps >= rule->max_sweeps ? FRG_LSMR_MAX_ITER : FRG_LSMR_RUNNING;
        if (l->stop == FRG_LSMR_RUNNING) {
            go_on(m, n, c, why != FRG_LSMR_RUNNING, rule->max_sweeps);
            running++;
        }
    }
    return running;
}

frg_status frgi_fe_map_solve(fe_map *m, frg_context *ctx, const fe_basis_work *w,
                             const fe_map_rule *rule, double *z, double *elim)
{
    const int64_t n = w->b->n_reduced;
    for (int64_t running = m->k; running > 0;) {
        frg_status status = frgi_fe_map_sweep(m, ctx, w, z, elim);
        if (status == FRG_OK) {
            running = test_lanes(m, n, rule);
            status = heartbeat(m, ctx, rule);
        }
        if (status != FRG_OK) {
            return status;
        }
    }
    return FRG_OK;
}
