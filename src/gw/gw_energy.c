/* gw_energy.c - the energy of a plan: estimated from pairs, exact by matrix products, and bounded
 * from below.
 *
 *     E(P) = sum_i r_i sum_k C_ik^2 r_k + sum_j c_j sum_l D_jl^2 c_l - 2 <C P D, P>,
 *     r = P 1, c = P' 1
 *
 * The estimate, of a plan of unit mass, draws two independent sets of pairs from P:
 *
 *     h(r, q) = (C(i_r, i_q) - D(j_r, j_q))^2,  r of the one set, q of the other
 *
 * averaged over all r and q is unbiased, with the variance of its row means and column means
 * (Hoeffding 1948).  Where the marginals hold and the mean distances u_i = sum_k C_ik a_k,
 * v_j = sum_l D_jl b_l are known, most of the variance goes: with C~_ik = C_ik - u_i - u_k + a'u
 * and D~ alike
 *
 *     E(P) = sum (C~_ik - D~_jl)^2 P_ij P_kl + 2 sum_ij (u_i - v_j)^2 P_ij - (a'u - b'v)^2
 *
 * as sums of C~ and D~ over one of their points vanish; the middle term is exact, from a look at
 * the plan.
 */
#include <math.h>
#include <string.h>

#include "core/host_alone.h"
#include "core/tree_sum.h"
#include "gw/gw_level_device.h"
#include "linalg/product.h"

/* ---- estimate -------------------------------------------------------------------------------- */

static double variance_of_mean(const double *x, int64_t n)
{
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        mean += x[i] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        square += (x[i] - mean) * (x[i] - mean);
    }
    return n > 1 ? square / (double)(n - 1) / (double)n : 0;
}

/** Distances between the first and the second half of the pairs less those of both ends to all, on
 *  average. */
static void centre(float *gaps, const frgi_pair *pairs, int64_t count, const float *u, double mean,
                   bool target)
{
    for (int64_t r = 0; r < count; r++) {
        const double of_row = (double)u[target ? pairs[r].j : pairs[r].i] - mean;
        for (int64_t q = 0; q < count; q++) {
            const frgi_pair *const other = &pairs[count + q];
            const double both = of_row + (double)u[target ? other->j : other->i];
            gaps[r * count + q] -= (float)both;
        }
    }
}

/** Two sets of pairs drawn on a device, and what the energy between them is made from. */
static frg_status moments_there(frgi_level *l, int64_t count, double scale_x, double scale_y,
                                const frgi_means *means, frgi_pair *pairs, frgi_pair_moments *out)
{
    TRY(frgi_draw_checks(l, count, pairs, pairs + count));
    return frgi_level_device_energy(l, count, scale_x, scale_y, means, out);
}

frg_status frgi_energy_of_pairs(frgi_level *l, int64_t count, double scale_x, double scale_y,
                                const frgi_means *means, const frgi_pair *pairs, double *energy,
                                double *error)
{
    frg_context *const ctx = l->ctx;
    int32_t *nodes = NULL;
    float *x = NULL, *y = NULL;
    double *sides = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW(ctx, &nodes, 2 * count, "held-out pairs"));
    TRY_TO(done, NEW(ctx, &x, count * count, "held-out pairs"));
    TRY_TO(done, NEW(ctx, &y, count * count, "held-out pairs"));
    TRY_TO(done, NEW0(ctx, &sides, 2 * count, "held-out pairs"));
    for (int64_t r = 0; r < 2 * count; r++) {
        nodes[r] = pairs[r].i;
    }
    TRY_TO(done, frgi_distances_cross(l->x, nodes, count, nodes + count, count, x));
    for (int64_t r = 0; r < 2 * count; r++) {
        nodes[r] = pairs[r].j;
    }
    TRY_TO(done, frgi_distances_cross(l->y, nodes, count, nodes + count, count, y));
    if (means) {
        centre(x, pairs, count, means->u, means->mean_u, false);
        centre(y, pairs, count, means->v, means->mean_v, true);
    }
    double sum = 0;
    for (int64_t r = 0; r < count; r++) {
        sides[r] = frgi_sweep_ops_of(ctx)->gaps(x + r * count, y + r * count, scale_x, scale_y,
                                                count, sides + count);
        sum += sides[r];
    }
    for (int64_t r = 0; r < 2 * count; r++) {
        sides[r] /= (double)count;
    }
    *energy = sum / (double)count / (double)count;
    *error = sqrt(variance_of_mean(sides, count) + variance_of_mean(sides + count, count));
done:
    DROP(ctx, &nodes);
    DROP(ctx, &x);
    DROP(ctx, &y);
    DROP(ctx, &sides);
    return status;
}

/** means: NULL, or what is taken off.  From the pairs (2 count of them), which are drawn here. */
static frg_status estimate(frgi_level *l, int64_t count, double scale_x, double scale_y,
                           const frgi_means *means, frgi_pair *pairs, double *energy, double *error)
{
    if (l->device) {
        frgi_pair_moments of;
        TRY(moments_there(l, count, scale_x, scale_y, means, pairs, &of));
        *energy = of.energy;
        *error = of.error;
        return FRG_OK;
    }
    TRY(frgi_draw_checks(l, count, pairs, pairs + count));
    return frgi_energy_of_pairs(l, count, scale_x, scale_y, means, pairs, energy, error);
}

enum { CHUNKS = 64 }; /* runs of rows whose sums are added by the tree of core/tree_sum.h */

typedef struct {
    const frgi_means *means;
    double scale_x, scale_y;
    int64_t m;
    double sums[CHUNKS];
} middle_term;

static void add_middle(void *user, int64_t i, const double *row, int64_t chunk)
{
    middle_term *const t = user;
    const double u = t->scale_x * (double)t->means->u[i];
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < t->m; j++) {
        const double gap = u - t->scale_y * (double)t->means->v[j];
        sum += row[j] * gap * gap;
    }
    t->sums[chunk] += sum;
}

/** sum_ij (u_i - v_j)^2 P_ij. */
static frg_status middle_of(frgi_level *l, double scale_x, double scale_y, const frgi_means *means,
                            double *middle)
{
    if (l->device) {
        return frgi_level_device_middle(l, scale_x, scale_y, means, middle);
    }
    middle_term t = {.means = means, .scale_x = scale_x, .scale_y = scale_y, .m = l->y->n};
    frgi_transport_rows(&l->t, 0, l->x->n, CHUNKS, add_middle, &t);
    frgi_tree_rows(t.sums, CHUNKS, 1, 1, middle);
    return FRG_OK;
}

frg_status frgi_energy_estimate(frgi_level *l, int64_t count, double scale_x, double scale_y,
                                const frgi_means *means, double *energy, double *error)
{
    frgi_pair *pairs;
    TRY(NEW(l->ctx, &pairs, 2 * count, "held-out pairs"));
    frg_status status = estimate(l, count, scale_x, scale_y, means, pairs, energy, error);
    if (status >= 0 && means) {
        const double gap = scale_x * means->mean_u - scale_y * means->mean_v;
        double middle = 0;
        status = middle_of(l, scale_x, scale_y, means, &middle);
        *energy += 2 * middle - gap * gap;
    }
    DROP(l->ctx, &pairs);
    return status;
}

/** The mean distances of one side and their own mean. */
static frg_status means_of(frgi_distances *d, const double *w, float *out, double *mean)
{
    double sum = 0, total = 0;
    TRY(frgi_distances_means(d, w, d->n, out));
    for (int64_t i = 0; i < d->n; i++) {
        sum += w[i] * (double)out[i];
        total += w[i];
    }
    *mean = sum / total;
    return FRG_OK;
}

frg_status frgi_means_open(frgi_means *means, frgi_level *l)
{
    TRY(NEW(l->ctx, &means->u, l->x->n + l->y->n, "means of distances"));
    means->v = means->u + l->x->n;
    TRY(means_of(l->x, l->a, means->u, &means->mean_u));
    return means_of(l->y, l->b, means->v, &means->mean_v);
}

/** The same from the mean of Clin over the pairs and the sum of the squares of its differences. */
static void join(const frgi_level *l, double mean, double square, int64_t count, double mass,
                 double *cost, double *error)
{
    const double theta = l->o->linear_weight, share = (1 - theta) * mass * mass;
    const double of_linear = 2 * theta * mass * sqrt(square) / (double)count;
    *cost = share * *cost + 2 * theta * mass * mean;
    *error = hypot(share * *error, of_linear);
}

void frgi_join_linear(const frgi_level *l, const frgi_pair *pairs, int64_t count, double mass,
                      double *cost, double *error)
{
    if (!(l->o->linear_weight > 0)) {
        return;
    }
    double mean = 0, square = 0;
    for (int64_t r = 0; r < count; r++) {
        const double x = (double)l->linear[pairs[r].i * l->t.s.ld + pairs[r].j];
        const double gap = x - mean;
        mean += gap / (double)(r + 1);
        square += gap * (x - mean);
    }
    join(l, mean, square, count, mass, cost, error);
}

void frgi_join_moments(const frgi_level *l, const frgi_pair_moments *of, int64_t count, double mass,
                       double *cost, double *error)
{
    *cost = of->energy;
    *error = of->error;
    if (l->o->linear_weight > 0) {
        join(l, of->linear, of->linear_square, count, mass, cost, error);
    }
}

/** frgi_cost_estimate on a device. */
static frg_status estimate_there(frgi_level *l, int64_t count, double mass, frgi_pair *pairs,
                                 double *cost, double *error)
{
    frgi_pair_moments of;
    TRY(moments_there(l, count, 1, 1, NULL, pairs, &of));
    frgi_join_moments(l, &of, 2 * count, frgi_is_balanced(l->o) ? mass : of.mass, cost, error);
    return FRG_OK;
}

frg_status frgi_cost_estimate(frgi_level *l, int64_t count, double *cost, double *error)
{
    frgi_pair *pairs;
    double mass = 0;
    frgi_transport_marginals(&l->t, l->product.row, NULL);
    for (int64_t i = 0; i < l->x->n; i++) {
        mass += l->product.row[i];
    }
    TRY(NEW(l->ctx, &pairs, 2 * count, "held-out pairs"));
    const frg_status status = l->device ? estimate_there(l, count, mass, pairs, cost, error)
                                        : estimate(l, count, 1, 1, NULL, pairs, cost, error);
    if (status >= 0 && !l->device) {
        frgi_join_linear(l, pairs, 2 * count, mass, cost, error);
    }
    DROP(l->ctx, &pairs);
    return status;
}

/* ---- exact ----------------------------------------------------------------------------------- */

/** sum x^2 w */
static double weighted_square(const double *x, const double *w, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < n; k++) {
        sum += x[k] * x[k] * w[k];
    }
    return sum;
}

double frgi_energy_of(const frgi_plan_sums *s, double scale_x, double scale_y)
{
    return scale_x * scale_x * s->x + scale_y * scale_y * s->y - 2 * scale_x * scale_y * s->cross;
}

/** The sums of E over dense row-major arrays. */
static frg_status dense_sums(frg_context *ctx, const frg_context *stops, int64_t n, int64_t m,
                             const double *c, const double *d, const double *p, frgi_plan_sums *out)
{
    double *cp = NULL, *pd = NULL, *r = NULL, *q = NULL;
    frg_status status = FRG_OK;
    REQUIRE(ctx, n <= INT32_MAX && m <= INT32_MAX, "at most 2^31 - 1 points");
    TRY_TO(done, NEW(ctx, &cp, frgi_mul((size_t)n, (size_t)m), "an energy"));
    TRY_TO(done, NEW(ctx, &pd, frgi_mul((size_t)n, (size_t)m), "an energy"));
    TRY_TO(done, NEW0(ctx, &r, n, "an energy"));
    TRY_TO(done, NEW0(ctx, &q, m, "an energy"));
    frgi_product_dense(ctx, 'N', 'N', n, m, n, 1, c, p, 0, cp);
    if (stops && (status = frgi_stopped(stops)) != FRG_OK) {
        goto done;
    }
    frgi_product_dense(ctx, 'N', 'N', n, m, m, 1, p, d, 0, pd);
    const frgi_sweep_ops *const ops = frgi_sweep_ops_of(ctx);
    out->x = out->y = out->cross = 0;
    for (int64_t i = 0; i < n; i++) {
        r[i] = ops->sum(p + i * m, m);
        ops->add(q, p + i * m, 1, m);
        out->cross += ops->multiply(cp + i * m, pd + i * m, m);
    }
    for (int64_t i = 0; i < n; i++) {
        out->x += r[i] * weighted_square(c + i * n, r, n);
    }
    for (int64_t j = 0; j < m; j++) {
        out->y += q[j] * weighted_square(d + j * m, q, m);
    }
done:
    DROP(ctx, &cp);
    DROP(ctx, &pd);
    DROP(ctx, &r);
    DROP(ctx, &q);
    return status;
}

typedef struct {
    const frgi_sweep_ops *ops;
    double *plan;
    int64_t m;
    const float *linear; /* NULL: none */
    int64_t ld;
    bool objective;
    double entropy[CHUNKS], cost[CHUNKS];
} plan_copy;

static void copy_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    plan_copy *const c = user;
    if (c->plan) {
        memcpy(c->plan + i * c->m, row, (size_t)c->m * sizeof *row);
    }
    c->entropy[chunk] += c->objective ? c->ops->entropy(row, c->m) : 0;
    for (int64_t j = 0; j < c->m && c->objective && c->linear; j++) {
        c->cost[chunk] += row[j] * (double)c->linear[i * c->ld + j];
    }
}

double frgi_plan_entropy(const frgi_level *l, double *linear)
{
    plan_copy sums = {.ops = frgi_sweep_ops_of(l->ctx),
                      .m = l->y->n,
                      .linear = linear ? l->linear : NULL,
                      .ld = l->t.s.ld,
                      .objective = true};
    double entropy;
    frgi_transport_rows(&l->t, 0, l->x->n, CHUNKS, copy_row, &sums);
    frgi_tree_rows(sums.entropy, CHUNKS, 1, 1, &entropy);
    if (linear) {
        frgi_tree_rows(sums.cost, CHUNKS, 1, 1, linear);
    }
    return entropy;
}

frg_status frgi_distances_all(frgi_distances *d, double **out)
{
    float *rows = NULL;
    int32_t *nodes = NULL;
    frg_status status = FRG_OK;
    *out = NULL;
    TRY_TO(done, NEW(d->ctx, &rows, frgi_mul((size_t)d->n, (size_t)d->n), "distances"));
    TRY_TO(done, NEW(d->ctx, &nodes, d->n, "distances"));
    TRY_TO(done, NEW(d->ctx, out, frgi_mul((size_t)d->n, (size_t)d->n), "distances"));
    for (int64_t i = 0; i < d->n; i++) {
        nodes[i] = (int32_t)i;
    }
    TRY_TO(done, frgi_distances_rows(d, nodes, d->n, rows, d->n));
    for (int64_t i = 0; i < d->n * d->n; i++) {
        (*out)[i] = (double)rows[i];
    }
done:
    DROP(d->ctx, &rows);
    DROP(d->ctx, &nodes);
    if (status < 0) {
        DROP(d->ctx, out);
    }
    return status;
}

frg_status frgi_plan_sums_take(frgi_level *l, bool objective, frgi_plan_sums *out)
{
    if (l->device) {
        return frgi_level_device_sums(l, out);
    }
    frg_context *const ctx = l->ctx;
    const int64_t n = l->x->n, m = l->y->n;
    double *c = NULL, *d = NULL, *p = NULL;
    frg_status status = FRG_OK;
    *out = (frgi_plan_sums){0};
    TRY_TO(done, frgi_distances_all(l->x, &c));
    TRY_TO(done, frgi_distances_all(l->y, &d));
    TRY_TO(done, NEW(ctx, &p, frgi_mul((size_t)n, (size_t)m), "a plan"));
    plan_copy copy = {.ops = frgi_sweep_ops_of(ctx),
                      .plan = p,
                      .m = m,
                      .linear = l->linear,
                      .ld = l->t.s.ld,
                      .objective = objective};
    frgi_transport_rows(&l->t, 0, n, CHUNKS, copy_row, &copy);
    frgi_tree_rows(copy.entropy, CHUNKS, 1, 1, &out->entropy);
    frgi_tree_rows(copy.cost, CHUNKS, 1, 1, &out->linear);
    status = dense_sums(ctx, NULL, n, m, c, d, p, out);
done:
    DROP(ctx, &c);
    DROP(ctx, &d);
    DROP(ctx, &p);
    return status;
}

/* ---- public ---------------------------------------------------------------------------------- */

/** A dense row-major copy of an f64 or f32 view of finite numbers. */
static frg_status dense_copy(frg_context *ctx, const frg_array *a, const char *name, double **out)
{
    TRY(NEW(ctx, out, frgi_mul((size_t)a->shape[0], (size_t)a->shape[1]), "a matrix"));
    for (int64_t i = 0; i < a->shape[0]; i++) {
        for (int64_t j = 0; j < a->shape[1]; j++) {
            const double x = frgi_array_get(a, i, j);
            if (!isfinite(x)) {
                frgi_at(ctx, "%s, row %lld, column %lld", name, (long long)i + 1, (long long)j + 1);
                FAIL(ctx, E_DISTANCE, "an entry is %g", x);
            }
            (*out)[i * a->shape[1] + j] = x;
        }
    }
    return FRG_OK;
}

static frg_status check_square(frg_context *ctx, const frg_array *a, const char *name)
{
    TRY(frgi_array_check(ctx, a, name, 2, 1u << FRG_F64 | 1u << FRG_F32));
    if (a->shape[0] != a->shape[1]) {
        FAIL(ctx, E_SHAPE, "%s is %lld x %lld, a square matrix is needed", name,
             (long long)a->shape[0], (long long)a->shape[1]);
    }
    return FRG_OK;
}

frg_status frg_gw_energy(frg_context *ctx, frg_array c, frg_array d, frg_array plan, double *energy)
{
    TRY(frgi_host_alone(ctx, "the energy of a plan"));
    REQUIRE(ctx, energy, "energy is NULL");
    TRY(check_square(ctx, &c, "c"));
    TRY(check_square(ctx, &d, "d"));
    TRY(frgi_array_check(ctx, &plan, "plan", 2, 1u << FRG_F64 | 1u << FRG_F32));
    if (plan.shape[0] != c.shape[0] || plan.shape[1] != d.shape[0]) {
        FAIL(ctx, E_SHAPE, "the plan is %lld x %lld, the distances need %lld x %lld",
             (long long)plan.shape[0], (long long)plan.shape[1], (long long)c.shape[0],
             (long long)d.shape[0]);
    }
    double *cc = NULL, *dd = NULL, *pp = NULL;
    frgi_plan_sums sums;
    frg_status status = FRG_OK;
    frgi_run_begins(ctx);
    TRY_TO(done, dense_copy(ctx, &c, "c", &cc));
    TRY_TO(done, dense_copy(ctx, &d, "d", &dd));
    TRY_TO(done, dense_copy(ctx, &plan, "plan", &pp));
    TRY_TO(done, dense_sums(ctx, ctx, plan.shape[0], plan.shape[1], cc, dd, pp, &sums));
    if (status == FRG_OK) {
        *energy = frgi_energy_of(&sums, 1, 1);
    }
done:
    DROP(ctx, &cc);
    DROP(ctx, &dd);
    DROP(ctx, &pp);
    return status;
}

typedef struct {
    double x, w;
} weighted;

static int by_x(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const weighted *const p = a, *const q = b;
    return (p->x > q->x) - (p->x < q->x);
}

/** Transport in one dimension with squared cost: sorted, mass by mass. */
static double line_transport(weighted *s, int64_t n, weighted *t, int64_t m)
{
    frgi_sort(s, n, sizeof *s, by_x, NULL);
    frgi_sort(t, m, sizeof *t, by_x, NULL);
    double cost = 0;
    for (int64_t i = 0, j = 0; i < n && j < m;) {
        const double move = fmin(s[i].w, t[j].w), gap = s[i].x - t[j].x;
        cost += move * gap * gap;
        s[i].w -= move;
        t[j].w -= move;
        if (s[i].w <= t[j].w) {
            i++;
        } else {
            j++;
        }
    }
    return cost;
}

frg_status frgi_lower_bound(frg_context *ctx, const double *square_x, const double *a, int64_t n,
                            const double *square_y, const double *b, int64_t m, double *bound)
{
    weighted *s;
    TRY(NEW(ctx, &s, n + m, "a lower bound"));
    for (int64_t i = 0; i < n; i++) {
        s[i] = (weighted){sqrt(square_x[i]), a[i]};
    }
    for (int64_t j = 0; j < m; j++) {
        s[n + j] = (weighted){sqrt(square_y[j]), b[j]};
    }
    *bound = line_transport(s, n, s + n, m);
    DROP(ctx, &s);
    return FRG_OK;
}

/** square_i = sum_k C_ik^2 w_k, with the same bits on any number of threads. */
static void eccentricities(frg_context *ctx, const double *c, const double *w, int64_t n,
                           double *square)
{
#pragma omp parallel for schedule(static) num_threads(frg_threads(ctx)) if (n > 256)
    for (int64_t i = 0; i < n; i++) {
        square[i] = frgi_stopped(ctx) == FRG_OK ? weighted_square(c + i * n, w, n) : 0;
    }
}

frg_status frg_gw_lower_bound(frg_context *ctx, frg_array c, const double *a, frg_array d,
                              const double *b, double *bound)
{
    TRY(frgi_host_alone(ctx, "the lower bound of the energy"));
    REQUIRE(ctx, bound, "bound is NULL");
    TRY(check_square(ctx, &c, "c"));
    TRY(check_square(ctx, &d, "d"));
    const int64_t n = c.shape[0], m = d.shape[0];
    double *cc = NULL, *dd = NULL, *w = NULL, *square = NULL, sum_a, sum_b;
    frg_status status = FRG_OK;
    frgi_run_begins(ctx);
    TRY_TO(done, NEW(ctx, &w, n + m, "weights"));
    TRY_TO(done, NEW0(ctx, &square, n + m, "eccentricities"));
    TRY_TO(done, frgi_take_weights(ctx, a, n, "a", w, &sum_a));
    TRY_TO(done, frgi_take_weights(ctx, b, m, "b", w + n, &sum_b));
    TRY_TO(done, frgi_normalise_weights(ctx, (frgi_weights){w, n, sum_a, a != NULL},
                                        (frgi_weights){w + n, m, sum_b, b != NULL}));
    TRY_TO(done, dense_copy(ctx, &c, "c", &cc));
    TRY_TO(done, dense_copy(ctx, &d, "d", &dd));
    eccentricities(ctx, cc, w, n, square);
    eccentricities(ctx, dd, w + n, m, square + n);
    if ((status = frgi_stopped(ctx)) != FRG_OK) {
        goto done;
    }
    double value = 0;
    TRY_TO(done, frgi_lower_bound(ctx, square, w, n, square + n, w + n, m, &value));
    *bound = value;
done:
    DROP(ctx, &cc);
    DROP(ctx, &dd);
    DROP(ctx, &w);
    DROP(ctx, &square);
    return status;
}
