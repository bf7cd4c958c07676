/* gw_vertex_starts.c - costs whose vertices are plans to start from, without looking at any plan
 * before.
 *
 * profiles   c_ij = int_0^1 (p_i(q) - r_j(q))^2 dq between the quantile functions of the distances
 *            from a point (the third lower bound of Memoli 2011; isometries leave these as they
 *            are)
 * product    K(a b') = -2 (1 - theta) (C a)(D b)' + theta M
 * annealed   steps of Sinkhorn's iteration on K(P) from the product on, epsilon from the spread of
 *            K to a hundredth
 * axes       classical multidimensional scaling of both sides, K_ij = -sum_r s_r x_ir y_jr with
 *            each choice of the signs s_r, as an axis has none of its own
 * turned     the same with a rotation drawn at random: a start of the small matrix of the lifted
 *            problem (Rioux, Goldfeld and Kato 2023)
 * random     independent points in place of the axes
 * reheated   the vertex of one of the last three, annealed as above with its K in place of K(P)
 *            until epsilon is a tenth, or a thirtieth, of the spread
 * spectral, near    gw_vertex_spectral.c; reheated from their vertices as well
 */
#include "gw/gw_vertex.h"

#include <math.h>
#include <string.h>

#include "gw/gw_solver.h"
#include "linalg/blas.h"

enum { SAMPLED_POINTS = 256, SCALING_STEPS = 30, COOLING_STEPS = 20, COOLING_PASSES = 20 };
enum { FIRST_TURNED = FRGI_BY_AXES + (1 << FRGI_AXES) };
enum {
    HELD = 10,
    HELD_LONG = 15
}; /* steps of cooling in which a start's K stays: to an epsilon of .1 and .03 of the spread */
#define BROAD   1.0 /* epsilon of the annealed start, of the spread of costs: first and last */
#define NARROW  0.01
#define MOST_UP 300.0 /* of an exponent */

static void put(const frgi_spaces *s, void *rows, int64_t at, double x)
{
    if (s->single) {
        ((float *)rows)[at] = (float)x;
    } else {
        ((double *)rows)[at] = x;
    }
}

/* ---- profiles -------------------------------------------------------------------------------- */

typedef struct {
    double x, weight;
} weighed;

/** The order of x, by merges of sorted parts that double; scratch: as many. */
static void sort_weighed(weighed *v, weighed *scratch, int64_t count)
{
    weighed *from = v, *to = scratch;
    for (int64_t part = 1; part < count; part *= 2) {
        for (int64_t first = 0; first < count; first += 2 * part) {
            const int64_t middle = first + part < count ? first + part : count;
            const int64_t end = middle + part < count ? middle + part : count;
            int64_t p = first, q = middle;
            for (int64_t k = first; k < end; k++) {
                const bool second = q < end && (p == middle || from[q].x < from[p].x);
                to[k] = from[second ? q : p];
                q += second;
                p += !second;
            }
        }
        weighed *const sorted = to;
        to = from;
        from = sorted;
    }
    if (from != v) {
        memcpy(v, from, (size_t)count * sizeof *v);
    }
}

/** Means of the quantile function over FRGI_QUANTILES equal parts of (0, 1): their squared
 *  differences are never more than those of the functions. */
static void quantile_means(const weighed *v, int64_t count, double total, double *out)
{
    double below = 0;
    int64_t r = 0;
    memset(out, 0, FRGI_QUANTILES * sizeof *out);
    for (int64_t k = 0; k < count; k++) {
        double has = v[k].weight / total * FRGI_QUANTILES;
        while (has > 0) {
            const double lacking = (double)(r + 1) - below;
            const double part = r < FRGI_QUANTILES - 1 ? fmin(has, lacking) : has;
            out[r] += part * v[k].x;
            below += part;
            has -= part;
            if (!(has > 0)) {
                break;
            }
            r++;
        }
    }
}

/** Profiles and mean distances of a side, from SAMPLED_POINTS points where there are more. */
static frg_status side_profiles(frgi_features *f, int side, double *square)
{
    const frgi_spaces *const s = f->s;
    const frgi_costs *const c = side ? &s->y : &s->x;
    const double *const w = side ? s->b : s->a;
    const int64_t n = c->rows, count = n < SAMPLED_POINTS ? n : SAMPLED_POINTS;
    weighed *scratch = NULL;
    double *squares = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done,
           NEW(s->ctx, &scratch, frgi_mul((size_t)n, 2 * (size_t)count), "profiles of points"));
    TRY_TO(done, NEW(s->ctx, &squares, n, "profiles of points"));
#pragma omp parallel for schedule(static) num_threads(frg_threads(s->ctx)) if (n > 64)
    for (int64_t i = 0; i < n; i++) {
        weighed *const v = scratch + 2 * i * count;
        double out[FRGI_QUANTILES], total = 0, mean = 0;
        squares[i] = 0;
        if (frgi_stopped(s->ctx) != FRG_OK) { /* no start will use them */
            continue;
        }
        for (int64_t k = 0; k < count; k++) {
            const int64_t at = k * n / count;
            v[k] = (weighed){frgi_costs_get(c, i, at), w[at]};
            total += w[at];
        }
        sort_weighed(v, v + count, count);
        quantile_means(v, count, total, out);
        for (int64_t r = 0; r < FRGI_QUANTILES; r++) {
            const double x = out[r] / sqrt(FRGI_QUANTILES);
            put(s, f->profile[side], r * c->ld + i, x);
            squares[i] += x * x;
            mean += out[r] / FRGI_QUANTILES;
        }
        put(s, f->mean[side], i, mean);
    }
    for (int64_t i = 0; i < n; i++) {
        *square += w[i] * squares[i];
    }
    f->whole = f->whole && count == n;
done:
    DROP(s->ctx, &scratch);
    DROP(s->ctx, &squares);
    return status;
}

/* ---- axes ------------------------------------------------------------------------------------ */

static void centre(const double *w, double *x, int64_t n)
{
    double mean = 0;
    for (int64_t i = 0; i < n; i++) {
        mean += w[i] * x[i];
    }
    for (int64_t i = 0; i < n; i++) {
        x[i] -= mean;
    }
}

/** x[axis] orthogonal to those before, of length 1; the length it had. */
static double orthonormal(double *x, int axis, int64_t n)
{
    double *const own = x + axis * n, norm = 0;
    for (int before = 0; before < axis; before++) {
        const double *const other = x + before * n;
        double inner = 0;
        for (int64_t i = 0; i < n; i++) {
            inner += own[i] * other[i];
        }
        for (int64_t i = 0; i < n; i++) {
            own[i] -= inner * other[i];
        }
    }
    for (int64_t i = 0; i < n; i++) {
        norm += own[i] * own[i];
    }
    norm = sqrt(norm);
    for (int64_t i = 0; i < n; i++) {
        own[i] = norm > 0 ? own[i] / norm : 0;
    }
    return norm;
}

/** image <- -D^2 x / 2, the squares of entries, of FRGI_AXES vectors one after another. */
static void scale_squares(const frg_context *ctx, const frgi_costs *c, const double *x,
                          double *image)
{
    const int64_t n = c->rows;
#pragma omp parallel for schedule(static) num_threads(frg_threads(ctx)) if (n > 500)
    for (int64_t i = 0; i < n; i++) {
        double sum[FRGI_AXES] = {0};
        for (int64_t k = 0; k < n; k++) {
            const double d = frgi_costs_get(c, i, k), g = -0.5 * d * d;
            for (int axis = 0; axis < FRGI_AXES; axis++) {
                sum[axis] += g * x[axis * n + k];
            }
        }
        for (int axis = 0; axis < FRGI_AXES; axis++) {
            image[axis * n + i] = sum[axis];
        }
    }
}

/** The leading axes of classical scaling, -1/2 of the centred squared distances, by orthogonal
 *  iteration. */
static frg_status side_axes(frgi_features *f, int side)
{
    const frgi_spaces *const s = f->s;
    const frgi_costs *const c = side ? &s->y : &s->x;
    const double *const w = side ? s->b : s->a;
    const int64_t n = c->rows;
    double *x = NULL, *const size = (double[FRGI_AXES]){0};
    TRY(NEW(s->ctx, &x, frgi_mul(2 * FRGI_AXES, (size_t)n), "axes of points"));
    double *const image = x + FRGI_AXES * n;
    for (int64_t q = 0; q < FRGI_AXES * n; q++) {
        double both[2];
        frgi_normals(s->seed, STREAM_START + 1, (uint64_t)q, (uint64_t)side, both);
        x[q] = both[0];
    }
    for (int step = 0; step < SCALING_STEPS; step++) {
        for (int axis = 0; axis < FRGI_AXES; axis++) {
            centre(w, x + axis * n, n);
            size[axis] = orthonormal(x, axis, n);
        }
        if (step + 1 < SCALING_STEPS) {
            scale_squares(s->ctx, c, x, image);
            memcpy(x, image, (size_t)(FRGI_AXES * n) * sizeof *x);
        }
    }
    for (int axis = 0; axis < FRGI_AXES; axis++) {
        for (int64_t i = 0; i < n; i++) {
            put(s, f->axes[side], axis * c->ld + i, sqrt(size[axis]) * x[axis * n + i]);
        }
    }
    DROP(s->ctx, &x);
    return FRG_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static frg_status open_axes(frgi_features *f)
{
    for (int side = 0; side < 2 && !f->has_axes; side++) {
        TRY(side_axes(f, side));
    }
    f->has_axes = true;
    return FRG_OK;
}

frg_status frgi_features_more(frgi_features *f)
{
    static const double quantile[FRGI_NEAR] = {0.05, 0.2};
    TRY(open_axes(f));
    if (!f->lifted[1].rows || f->spectrum[0].vectors) {
        return FRG_OK;
    }
    TRY(frgi_spectra_open(f->spectrum, f->s));
    for (int k = 0; k < FRGI_NEAR; k++) {
        TRY(frgi_near_open(f->near[k], f->s, quantile[k]));
    }
    return FRG_OK;
}

frg_status frgi_features_open(frgi_features *f, const frgi_spaces *s, bool axes)
{
    const char *const what = "starts of an alignment";
    const size_t size = frgi_costs_size(s->single);
    *f = (frgi_features){.s = s, .whole = true};
    for (int side = 0; side < 2; side++) {
        const size_t bytes = (size_t)(side ? s->y.ld : s->x.ld) * size;
        char *at = NULL;
        TRY(NEW0(s->ctx, &at, frgi_mul(bytes, FRGI_QUANTILES + 1 + FRGI_AXES), what));
        f->profile[side] = at;
        f->mean[side] = at + bytes * FRGI_QUANTILES;
        f->axes[side] = at + bytes * (FRGI_QUANTILES + 1);
        TRY(side_profiles(f, side, &f->square));
    }
    if (axes) {
        TRY(open_axes(f));
    }
    f->anneals = axes && !s->single;
    return FRG_OK;
}

frg_status frgi_features_lift(frgi_features *f)
{
    return f->lifted[1].rows ? FRG_OK : frgi_lifted_open(f->lifted, f->s);
}

void frgi_features_close(frgi_features *f)
{
    for (int side = 0; side < 2 && f->s; side++) {
        char *at = f->profile[side];
        DROP(f->s->ctx, &at);
    }
    if (f->s) {
        frgi_lifted_close(f->lifted, f->s->ctx);
        frgi_spectra_close(f->spectrum, f->s->ctx);
        for (int k = 0; k < FRGI_NEAR; k++) {
            frgi_lifted_close(f->near[k], f->s->ctx);
        }
    }
    *f = (frgi_features){0};
}

bool frgi_may_anneal(const frgi_features *f)
{
    return f->anneals || f->lifted[1].rows;
}

frg_gw_start frgi_start_kind(int which)
{
    static const frg_gw_start kinds[FRGI_BY_AXES] = {FRG_GW_START_PROFILES, FRG_GW_START_PRODUCT,
                                                     FRG_GW_START_ANNEALED};
    static const frg_gw_start more[FRGI_MORE_STARTS] = {
        FRG_GW_START_SPECTRAL, FRG_GW_START_NEAR, FRG_GW_START_NEAR,
        FRG_GW_START_SPECTRAL, FRG_GW_START_NEAR, FRG_GW_START_NEAR};
    return which < FRGI_BY_AXES     ? kinds[which]
           : which >= FRGI_SPECTRAL ? more[which - FRGI_SPECTRAL]
           : which >= FRGI_REHEATED ? FRG_GW_START_ANNEALED
           : which < FIRST_TURNED   ? FRG_GW_START_AXES
                                    : FRG_GW_START_RANDOM;
}

/** Independent normals, which orthonormal rows of a rotation are made from. */
static void random_rows(const frgi_features *f, int which, double *out, int64_t count)
{
    for (int64_t q = 0; q < count; q++) {
        double both[2];
        frgi_normals(f->s->seed, STREAM_START + 2, (uint64_t)q, (uint64_t)which, both);
        out[q] = both[0];
    }
}

/** The axes of X with signs, or turned. */
static void turned_axes(const frgi_features *f, int which, frgi_descent *d)
{
    const frgi_spaces *const s = f->s;
    double turn[FRGI_AXES * FRGI_AXES] = {0};
    if (which < FIRST_TURNED) {
        for (int axis = 0; axis < FRGI_AXES; axis++) {
            turn[axis * FRGI_AXES + axis] = (which - FRGI_BY_AXES) >> axis & 1 ? -1 : 1;
        }
    } else {
        random_rows(f, which, turn, FRGI_AXES * FRGI_AXES);
        for (int axis = 0; axis < FRGI_AXES; axis++) {
            (void)orthonormal(turn, axis, FRGI_AXES);
        }
    }
    for (int64_t i = 0; i < s->n; i++) {
        for (int to = 0; to < FRGI_AXES; to++) {
            double sum = 0;
            for (int axis = 0; axis < FRGI_AXES; axis++) {
                const int64_t at = axis * s->x.ld + i;
                sum += turn[to * FRGI_AXES + axis] * (s->single
                                                          ? (double)((const float *)f->axes[0])[at]
                                                          : ((const double *)f->axes[0])[at]);
            }
            put(s, d->left, to * s->x.ld + i, sum);
        }
    }
}

/** FRGI_AXES coordinates of every point of a side, independent normals. */
static void random_points(const frgi_features *f, int which, int side, void *rows)
{
    const int64_t n = side ? f->s->m : f->s->n, ld = side ? f->s->y.ld : f->s->x.ld;
    for (int64_t i = 0; i < n; i++) {
        for (int axis = 0; axis < FRGI_AXES; axis++) {
            double both[2];
            frgi_normals(f->s->seed, STREAM_START + 4 + (uint64_t)side,
                         (uint64_t)(i * FRGI_AXES + axis), (uint64_t)which, both);
            put(f->s, rows, axis * ld + i, both[0]);
        }
    }
}

/* ---- annealing ------------------------------------------------------------------------------- */

/** k_plan <- -2 (1 - theta) C P D + theta M of the dense plan in k_vertex.  C P stands behind the
 *  potentials in the descent's own memory, as other starts run at the same time. */
static void dense_costs(const frgi_features *f, frgi_descent *d)
{
    const frgi_spaces *const s = f->s;
    double *const cp = (double *)d->right + 2 * s->y.ld;
    const frgi_blas_guard guard = frgi_blas_begin();
    const int n = (int)s->n, m = (int)s->m, ld = (int)s->y.ld;
    frgi_blas_single();
    frgi_dgemm('N', 'N', m, n, n, 1, d->k_vertex.at, ld, s->x.at, (int)s->x.ld, 0, cp, ld);
    frgi_dgemm('N', 'N', m, n, m, -2 * (1 - s->theta), s->y.at, ld, cp, ld, 0, d->k_plan.at, ld);
    frgi_blas_end(guard);
    double *const now = d->k_plan.at;
    for (int64_t i = 0; i < s->n && s->linear; i++) {
        for (int64_t j = 0; j < s->m; j++) {
            now[i * ld + j] += s->theta * (double)s->linear[i * s->ld_linear + j];
        }
    }
}

/** Standard deviation of the gradient at a b', terms of rows and columns included. */
static double spread_of(const frgi_spaces *s, const frgi_costs *now)
{
    double sum = 0, square = 0;
    for (int64_t i = 0; i < s->n; i++) {
        double of_row = 0;
        for (int64_t k = 0; k < s->n; k++) {
            of_row += pow(frgi_costs_get(&s->x, i, k), 2) * s->a[k];
        }
        for (int64_t j = 0; j < s->m; j++) {
            double x = (1 - s->theta) * of_row + frgi_costs_get(now, i, j);
            sum += s->a[i] * s->b[j] * x;
            square += s->a[i] * s->b[j] * x * x;
        }
    }
    return sqrt(fmax(square - sum * sum, 0));
}

/** Sinkhorn's iteration at one epsilon, K in k_plan, from u = 1:
 *
 *      k_ij = exp((f_i + g_j - K_ij) / epsilon)
 *      v_j <- b_j / sum_i u_i k_ij,   u_i <- a_i / sum_j k_ij v_j
 *
 *  COOLING_PASSES times; f += epsilon log u, g += epsilon log v; the plan u_i k_ij v_j into
 *  k_vertex. */
static void cool(const frgi_spaces *s, frgi_descent *d, double epsilon, double *f, double *g)
{
    const int64_t n = s->n, m = s->m, ld = s->y.ld;
    double *const k = d->k_vertex.at, *const u = d->left, *const v = d->right;
    const double *const now = d->k_plan.at;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < m; j++) {
            k[i * ld + j] = exp(fmin((f[i] + g[j] - now[i * ld + j]) / epsilon, MOST_UP));
        }
        u[i] = 1;
    }
    for (int pass = 0; pass < COOLING_PASSES; pass++) {
        memset(v, 0, (size_t)m * sizeof *v);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < m; j++) {
                v[j] += u[i] * k[i * ld + j];
            }
        }
        for (int64_t j = 0; j < m; j++) {
            v[j] = v[j] > 1e-290 ? s->b[j] / v[j] : 1;
        }
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;
            for (int64_t j = 0; j < m; j++) {
                sum += k[i * ld + j] * v[j];
            }
            u[i] = sum > 1e-290 ? s->a[i] / sum : 1;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < m; j++) {
            k[i * ld + j] *= u[i] * v[j];
        }
        f[i] += epsilon * log(u[i]);
    }
    for (int64_t j = 0; j < m; j++) {
        g[j] += epsilon * log(v[j]);
    }
}

/** In doubles: k_plan <- K of the plan at the last epsilon; what is in k_plan stays for the first
 *  `held` steps. */
static void annealed_costs(const frgi_features *f, double spread, int held, frgi_descent *d)
{
    const frgi_spaces *const s = f->s;
    double *const u = (double *)d->left + s->x.ld, *const v = (double *)d->right + s->y.ld;
    memset(u, 0, (size_t)s->n * sizeof *u);
    memset(v, 0, (size_t)s->m * sizeof *v);
    for (int step = 0; step < COOLING_STEPS && spread > 0 && graph_tasks_go_on(d->tasks); step++) {
        const double share = (double)step / (COOLING_STEPS - 1);
        cool(s, d, spread * BROAD * pow(NARROW / BROAD, share), u, v);
        if (step >= held) {
            dense_costs(f, d);
        }
    }
}

/** k_plan <- K(a b'). */
static void product_costs(const frgi_features *f, frgi_descent *d)
{
    const frgi_spaces *const s = f->s;
    frgi_costs_set(&d->products, s, &d->k_plan, f->mean[0], s->x.ld, f->mean[1], s->y.ld, 1,
                   -2 * (1 - s->theta));
}

/** Anneals from the product, or from the vertex of another start, whose K stays until epsilon is
 *  small. */
static void cooled_costs(const frgi_features *f, int which, frgi_descent *d)
{
    product_costs(f, d);
    const double spread = spread_of(f->s, &d->k_plan);
    int held = 0;
    if (which >= FRGI_REHEATED) {
        const int base = which >= FRGI_HELD ? which - FRGI_HELD + FRGI_SPECTRAL
                                            : FRGI_BY_AXES + (which - FRGI_REHEATED) / 2;
        frgi_host_start(f, base, d);
        frgi_host_begin(d);
        frgi_descent_costs(d, &d->plan, 1, &d->k_plan);
        held = which < FRGI_HELD && which % 2 ? HELD_LONG : HELD;
    }
    if (f->anneals) {
        annealed_costs(f, spread, held, d);
    } else {
        frgi_annealed_costs(f->lifted, spread, held, d);
    }
}

/** Costs from the distances alone: the linear cost is left to the descents, as it would outweigh
 *  the differences between these starts. */
static void shape_costs(const frgi_features *f, int which, frgi_descent *d)
{
    const frgi_spaces *const s = f->s;
    const void *left = d->left, *right = f->axes[1];
    int64_t count = FRGI_AXES;
    memset(d->k_plan.at, 0, frgi_costs_bytes(&d->k_plan));
    if (which == FRGI_BY_PROFILES) {
        left = f->profile[0];
        right = f->profile[1];
        count = FRGI_QUANTILES;
    } else if (which < FIRST_TURNED || which % 2) {
        turned_axes(f, which, d);
    } else {
        random_points(f, which, 0, d->left);
        random_points(f, which, 1, d->right);
        right = d->right;
    }
    frgi_costs_add(&d->products, &d->k_plan, left, s->x.ld, right, s->y.ld, count, -1);
}

void frgi_host_start(const frgi_features *f, int which, frgi_descent *d)
{
    if (which == FRGI_BY_PRODUCT || (which == FRGI_BY_ANNEALING && !frgi_may_anneal(f))) {
        product_costs(f, d);
    } else if (which == FRGI_SPECTRAL) {
        frgi_spectral_costs(f->spectrum, d);
    } else if (which >= FRGI_FIRST_NEAR && which < FRGI_HELD) {
        frgi_near_costs(f->near[which - FRGI_FIRST_NEAR], d);
    } else if (which == FRGI_BY_ANNEALING || which >= FRGI_REHEATED) {
        cooled_costs(f, which, d);
    } else {
        shape_costs(f, which, d);
    }
}
