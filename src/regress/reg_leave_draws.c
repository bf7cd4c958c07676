/* reg_leave_draws.c - leave-out corrections by random projections (Johnson and Lindenstrauss;
 * Kline, Saggio and Soelvsten 2020), for graphs of firms too large for an inverse.  Notation of
 * reg_leave_out.h; v of independent signs, R draws each:
 *
 *     t = L^+ sum_m T_m^(1/2) v_m u_m      E (u_m't)^2 = u_m'L^+u_m           v by matches
 *     s = L^+ (y - F sum y / W),           E (u_m's)^2 = q_m,                 v by firms,
 *         y_j = F_j^(1/2) v_j              E (u_m's) v_j(m) F_j(m)^(-1/2) = h_m
 *
 * Leverages.  c = 1 - T / W_k is what a match's own worker leaves of it, and with z = T^(1/2) u't
 * and x = v less the part of v that the worker's mean and z take, z^2 and x^2 have means c rho and
 * c (1 - rho).  With a, b the means of A = z^2 and B = x^2 over draws, rho ~ a / (a + b), and for a
 * unit of weight w
 *
 *     1 / (1 - P) = f(a, b) = (a + b) / D,    D = (1 - w / T) a + (1 - w / W_k) b
 *
 * whose bias of order 1 / R, from the second derivatives and the draws' variances V and covariance,
 *
 *     d / (R D^3) (-(1 - w/T) b V_A + ((1 - w/T) a - (1 - w/W_k) b) V_AB + (1 - w/W_k) a V_B),
 *     d = w / T - w / W_k,
 *
 * is taken off.  The errors of the sums: over draws of s, which are independent of those of t, the
 * variance of the corrections themselves; over those of t that of their linear parts,
 * df = d (b A - a B) / D^2.
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/tree_sum.h"
#include "regress/reg_leave_out.h"
#include "sparse/laplacian.h"

enum { CHUNKS = 64 };
static const uint64_t BY_MATCH = 0x6d617463, BY_FIRM = 0x6669726d; /* streams of signs */

/** Sums of each draw: of the projections on firms, and of what leverages' errors move. */
enum { SUM_KEPT_Q, SUM_KEPT_H, SUM_TRACE, SUM_FIRST, SUM_SECOND, SUM_COVARIANCE, SUMS };
enum { ALL_KEPT, ALL_REST, ALL };

typedef struct {
    const frgi_leave_panel *p;
    int64_t draws;
    double *t, *s; /* n_second x draws */
    frgi_firm_graph graph;
} projections;

enum { WORD = 32 };

/** The signs of draws 32 block .. of number i, a bit each. */
static uint32_t bits_of(const projections *w, uint64_t stream, int64_t i, int64_t block)
{
    uint32_t words[4];
    frgi_philox(frg_seed(w->p->ctx), stream, (uint64_t)i, (uint64_t)(block / 4), words);
    return words[block % 4];
}

static double sign_in(uint32_t bits, int64_t r)
{
    return bits >> r & 1 ? 1 : -1;
}

/** signs <- those of all draws of number i. */
static void signs_of(const projections *w, uint64_t stream, int64_t i, double *signs)
{
    for (int64_t begin = 0; begin < w->draws; begin += WORD) {
        const int64_t left = w->draws - begin, count = left < WORD ? left : WORD;
        const uint32_t bits = bits_of(w, stream, i, begin / WORD);
        for (int64_t r = 0; r < count; r++) {
            signs[begin + r] = sign_in(bits, r);
        }
    }
}

/* ---- right-hand sides ------------------------------------------------------------------------ */

/** Columns begin .. of t, `count` of them, += what worker k adds to sum_m T_m^(1/2) v_m u_m. */
static void draw_worker(const projections *w, int64_t k, int64_t begin, int64_t count)
{
    const frgi_leave_panel *const p = w->p;
    const frgi_matches *const m = &p->matches;
    double sum[WORD] = {0};
    for (int64_t e = m->start[k]; e < m->start[k + 1]; e++) {
        const uint32_t bits = bits_of(w, BY_MATCH, e, begin / WORD);
        const double root = sqrt(p->weight[e]);
        double *const t = w->t + m->second[e] * w->draws + begin;
        for (int64_t r = 0; r < count; r++) {
            const double v = root * sign_in(bits, r);
            t[r] += v;
            sum[r] += v;
        }
    }
    for (int64_t e = m->start[k]; e < m->start[k + 1]; e++) {
        const double share = p->weight[e] / p->worker[k];
        double *const t = w->t + m->second[e] * w->draws + begin;
        for (int64_t r = 0; r < count; r++) {
            t[r] -= share * sum[r];
        }
    }
}

/** Columns begin .. of t <- sum_m T_m^(1/2) v_m u_m; workers with one match have u = 0. */
static void draw_matches(const projections *w, int64_t begin, int64_t count)
{
    const frgi_matches *const m = &w->p->matches;
    for (int64_t j = 0; j < m->n_second; j++) {
        memset(w->t + j * w->draws + begin, 0, sizeof *w->t * (size_t)count);
    }
    for (int64_t k = 0; k < m->n_first; k++) {
        if (m->start[k + 1] - m->start[k] > 1) {
            draw_worker(w, k, begin, count);
        }
    }
}

/** Columns begin .. of s <- y - F sum y / W. */
static void draw_firms(const projections *w, int64_t begin, int64_t count)
{
    const frgi_leave_panel *const p = w->p;
    const int64_t firms = p->matches.n_second;
    double sum[WORD] = {0};
    for (int64_t j = 0; j < firms; j++) {
        const uint32_t bits = bits_of(w, BY_FIRM, j, begin / WORD);
        double *const s = w->s + j * w->draws + begin;
        for (int64_t r = 0; r < count; r++) {
            s[r] = sqrt(p->firm[j]) * sign_in(bits, r);
            sum[r] += s[r];
        }
    }
    for (int64_t j = 0; j < firms; j++) {
        double *const s = w->s + j * w->draws + begin;
        for (int64_t r = 0; r < count; r++) {
            s[r] -= p->firm[j] / p->total * sum[r];
        }
    }
}

/** frgi_leave_solve by conjugate gradients. */
static frg_status solve(void *of, int64_t columns, double *x, frgi_leave_sums *out)
{
    const projections *const w = of;
    frgi_laplacian_opts o;
    frgi_laplacian_report report = {0};
    frgi_laplacian_defaults(&o);
    o.seed = frg_seed(w->p->ctx);
    o.solver = "fe";
    const frg_status status =
        frgi_laplacian_solve(w->p->ctx, &w->graph.view, columns, x, &o, &report);
    out->iterations = report.iterations > out->iterations ? report.iterations : out->iterations;
    out->failed += report.failed;
    return status;
}

static frg_status project(projections *w, frgi_leave_sums *out)
{
    frg_context *const ctx = w->p->ctx;
    const int64_t size = w->p->matches.n_second * w->draws;
    TRY(NEW(ctx, &w->t, size, "random projections"));
    TRY(NEW(ctx, &w->s, size, "random projections"));
#pragma omp parallel for schedule(static) num_threads(frg_threads(ctx))
    for (int64_t begin = 0; begin < w->draws; begin += WORD) {
        const int64_t left = w->draws - begin, count = left < WORD ? left : WORD;
        if (frgi_stopped(ctx) != FRG_OK) {
            continue;
        }
        draw_matches(w, begin, count);
        draw_firms(w, begin, count);
    }
    TRY(frgi_stopped(ctx));
    TRY(frgi_firm_graph_create(&w->graph, w->p, false));
    const frg_status status = solve(w, w->draws, w->t, out);
    return status == FRG_OK ? solve(w, w->draws, w->s, out) : status;
}

/* ---- matches --------------------------------------------------------------------------------- */

/** A worker's means and a match's numbers, a draw each. */
typedef struct {
    double *t, *s, *v; /* of the worker: sum_l T_l (t, s)_j(l) / W_k, sum_l T_l^(1/2) v_l / W_k */
    double *sign;      /* of a match, or a firm */
    double *A, *B, *q, *h;
    double *sums; /* SUMS x draws, and ALL, of the chunk */
    double leverage_max;
} workspace;

enum { VECTORS = 8 };

/** Means over draws. */
typedef struct {
    double a, b, V_A, V_B, V_AB, q, h;
} match_means;

static void take_worker(const projections *w, int64_t k, workspace *x)
{
    const frgi_leave_panel *const p = w->p;
    const frgi_matches *const m = &p->matches;
    const int64_t R = w->draws;
    memset(x->t, 0, sizeof *x->t * (size_t)(3 * R)); /* s and v stand behind t */
    for (int64_t e = m->start[k]; e < m->start[k + 1]; e++) {
        const double share = p->weight[e] / p->worker[k];
        const double root = sqrt(p->weight[e]) / p->worker[k];
        const double *const t = w->t + m->second[e] * R, *const s = w->s + m->second[e] * R;
        signs_of(w, BY_MATCH, e, x->sign);
        for (int64_t r = 0; r < R; r++) {
            x->t[r] += share * t[r];
            x->s[r] += share * s[r];
            x->v[r] += root * x->sign[r];
        }
    }
}

static void take_match(const projections *w, int64_t e, workspace *x)
{
    const frgi_leave_panel *const p = w->p;
    const int64_t R = w->draws, j = p->matches.second[e];
    const double root = sqrt(p->weight[e]), firm = 1 / sqrt(p->firm[j]);
    const double *const t = w->t + j * R, *const s = w->s + j * R;
    signs_of(w, BY_MATCH, e, x->sign);
    for (int64_t r = 0; r < R; r++) {
        const double z = root * (t[r] - x->t[r]), rest = x->sign[r] - root * x->v[r] - z;
        x->A[r] = z * z;
        x->B[r] = rest * rest;
    }
    signs_of(w, BY_FIRM, j, x->sign);
    for (int64_t r = 0; r < R; r++) {
        const double z = s[r] - x->s[r];
        x->q[r] = z * z;
        x->h[r] = z * x->sign[r] * firm;
    }
}

static double mean_of(const double *x, int64_t R)
{
    double sum = 0;
    for (int64_t r = 0; r < R; r++) {
        sum += x[r];
    }
    return sum / (double)R;
}

static double covariance_of(const double *x, double mean_x, const double *y, double mean_y,
                            int64_t R)
{
    double sum = 0;
    for (int64_t r = 0; r < R; r++) {
        sum += (x[r] - mean_x) * (y[r] - mean_y);
    }
    return sum / (double)(R - 1);
}

static match_means average(const workspace *x, int64_t R)
{
    match_means a = {
        .a = mean_of(x->A, R), .b = mean_of(x->B, R), .q = mean_of(x->q, R), .h = mean_of(x->h, R)};
    a.V_A = covariance_of(x->A, a.a, x->A, a.a, R);
    a.V_B = covariance_of(x->B, a.b, x->B, a.b, R);
    a.V_AB = covariance_of(x->A, a.a, x->B, a.b, R);
    return a;
}

/** 1 / (1 - P) of a unit, and d / D^2 of its linear part. */
typedef struct {
    double inverse, slope;
} unit_inverse;

static unit_inverse invert_unit(const match_means *a, double weight, double match, double worker,
                                int64_t R)
{
    const double alpha = 1 - weight / match, beta = 1 - weight / worker, d = beta - alpha;
    const double D = alpha * a->a + beta * a->b;
    const double curve =
        -alpha * a->b * a->V_A + (alpha * a->a - beta * a->b) * a->V_AB + beta * a->a * a->V_B;
    return (unit_inverse){(a->a + a->b) / D - d * curve / ((double)R * D * D * D), d / (D * D)};
}

static void add_units(const projections *w, int64_t e, const match_means *a, workspace *x)
{
    const frgi_leave_panel *const p = w->p;
    const int64_t R = w->draws;
    const double W = p->total, worker = p->worker[p->matches.first[e]];
    double kept = 0, rest = 0, slope_kept = 0, slope_rest = 0;
    for (int64_t i = p->start[e]; i < p->start[e + 1]; i++) {
        const double weight = p->unit[i], s = weight * frgi_leave_score(p, i);
        const unit_inverse f = invert_unit(a, weight, p->weight[e], worker, R);
        kept += weight * s * f.inverse;
        rest += s * (f.inverse - 1);
        slope_kept += weight * s * f.slope;
        slope_rest += s * f.slope;
        p->inverse[i] = f.inverse;
        x->leverage_max = fmax(x->leverage_max, 1 - 1 / f.inverse);
    }
    p->q[e] = a->q;
    p->h[e] = a->h;
    const double second = slope_kept * a->q / W, covariance = slope_kept * (a->h - a->q) / W;
    const double first = (slope_rest - slope_kept / W) / W - second - 2 * covariance;
    for (int64_t r = 0; r < R; r++) {
        double *const sums = x->sums + r * SUMS;
        const double linear = a->b * x->A[r] - a->a * x->B[r];
        sums[SUM_KEPT_Q] += kept * x->q[r];
        sums[SUM_KEPT_H] += kept * x->h[r];
        sums[SUM_TRACE] += p->weight[e] * x->q[r];
        sums[SUM_FIRST] += first * linear;
        sums[SUM_SECOND] += second * linear;
        sums[SUM_COVARIANCE] += covariance * linear;
    }
    x->sums[R * SUMS + ALL_KEPT] += kept;
    x->sums[R * SUMS + ALL_REST] += rest;
}

/** A worker with one match has neither q nor h, and leverages that are known. */
static void add_stayer(const projections *w, int64_t e, workspace *x)
{
    const frgi_leave_panel *const p = w->p;
    double *const all = x->sums + w->draws * SUMS;
    for (int64_t i = p->start[e]; i < p->start[e + 1]; i++) {
        const double weight = p->unit[i], s = weight * frgi_leave_score(p, i);
        const double inverse = p->inverse[i] = 1 / (1 - weight / p->weight[e]);
        all[ALL_KEPT] += weight * s * inverse;
        all[ALL_REST] += s * (inverse - 1);
        x->leverage_max = fmax(x->leverage_max, 1 - 1 / inverse);
    }
}

static void add_worker(const projections *w, int64_t k, workspace *x)
{
    const frgi_matches *const m = &w->p->matches;
    if (m->start[k + 1] - m->start[k] == 1) {
        add_stayer(w, m->start[k], x);
        return;
    }
    take_worker(w, k, x);
    for (int64_t e = m->start[k]; e < m->start[k + 1]; e++) {
        take_match(w, e, x);
        const match_means a = average(x, w->draws);
        add_units(w, e, &a, x);
    }
}

/* ---- sums ------------------------------------------------------------------------------------ */

/** Mean over draws of one of the sums, and the variance of that mean. */
static double mean_sum(const double *sums, int64_t R, int which, double *variance)
{
    double mean = 0, square = 0;
    for (int64_t r = 0; r < R; r++) {
        mean += sums[r * SUMS + which] / (double)R;
    }
    for (int64_t r = 0; r < R; r++) {
        const double x = sums[r * SUMS + which] - mean;
        square += x * x;
    }
    *variance = square / ((double)R * (double)(R - 1));
    return mean;
}

/** The errors of the components from both projections; sums of leverages' errors are used up. */
static void add_errors(const projections *w, double *sums, frgi_leave_sums *out)
{
    const double W = w->p->total;
    const int64_t R = w->draws;
    double from_leverage[3], from_firms[3];
    for (int c = 0; c < 3; c++) {
        mean_sum(sums, R, SUM_FIRST + c, &from_leverage[c]);
    }
    for (int64_t r = 0; r < R; r++) {
        double *const s = sums + r * SUMS;
        const double second = s[SUM_KEPT_Q] / W, covariance = s[SUM_KEPT_H] / W - second;
        s[SUM_FIRST] = -second - 2 * covariance;
        s[SUM_SECOND] = second;
        s[SUM_COVARIANCE] = covariance;
    }
    for (int c = 0; c < 3; c++) {
        mean_sum(sums, R, SUM_FIRST + c, &from_firms[c]);
    }
    out->first_variance = from_leverage[0] + from_firms[0];
    out->second_variance = from_leverage[1] + from_firms[1];
    out->covariance_variance = from_leverage[2] + from_firms[2];
}

static void finish(const projections *w, double *sums, frgi_leave_sums *out)
{
    const int64_t R = w->draws;
    double unused;
    const double kept_q = mean_sum(sums, R, SUM_KEPT_Q, &unused);
    const double kept_h = mean_sum(sums, R, SUM_KEPT_H, &unused);
    const double *const all = sums + R * SUMS;
    out->trace = mean_sum(sums, R, SUM_TRACE, &out->trace_variance);
    frgi_leave_combine(w->p, all[ALL_KEPT], all[ALL_REST], kept_q, kept_h, out);
    add_errors(w, sums, out);
}

/** Chunks of workers, by their number alone. */
static frg_status add_all(const projections *w, frgi_leave_sums *out)
{
    frg_context *const ctx = w->p->ctx;
    const int64_t R = w->draws, workers = w->p->matches.n_first, length = R * SUMS + ALL;
    const int threads = frg_threads(ctx);
    double *sums = NULL, *vectors = NULL, most[CHUNKS] = {0};
    frg_status status;
    TRY_TO(done, NEW0(ctx, &sums, length * CHUNKS, "random projections"));
    TRY_TO(done, NEW(ctx, &vectors, R * VECTORS * threads, "random projections"));
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t c = 0; c < CHUNKS; c++) {
        double *const v = vectors + R * VECTORS * omp_get_thread_num();
        workspace x = {.t = v,
                       .s = v + R,
                       .v = v + 2 * R,
                       .sign = v + 3 * R,
                       .A = v + 4 * R,
                       .B = v + 5 * R,
                       .q = v + 6 * R,
                       .h = v + 7 * R,
                       .sums = sums + c * length};
        const int64_t end = (c + 1) * workers / CHUNKS;
        for (int64_t k = c * workers / CHUNKS; k < end && frgi_stopped(ctx) == FRG_OK; k++) {
            add_worker(w, k, &x);
        }
        most[c] = x.leverage_max;
    }
    frgi_tree_rows(sums, CHUNKS, length, length, sums);
    for (int c = 0; c < CHUNKS; c++) {
        out->leverage_max = fmax(out->leverage_max, most[c]);
    }
    finish(w, sums, out);
    status = frgi_stopped(ctx);
done:
    DROP(ctx, &sums);
    DROP(ctx, &vectors);
    return status;
}

frg_status frgi_leave_draws(const frgi_leave_panel *p, frgi_leave_sums *out)
{
    projections w = {.p = p, .draws = p->draws};
    *out = (frgi_leave_sums){0};
    frg_status status = project(&w, out);
    if (status == FRG_OK) {
        status = add_all(&w, out);
    }
    if (status == FRG_OK) {
        status = frgi_leave_errors(p, solve, &w, out);
    }
    frgi_firm_graph_destroy(&w.graph, p->ctx);
    DROP(p->ctx, &w.t);
    DROP(p->ctx, &w.s);
    return status;
}
