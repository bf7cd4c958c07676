/* test_gw_sampled.c - what sampled alignments are known to get wrong: tolerances that any plan
 * meets, annealing that hangs on the limit of steps, scales that hang on the draw, energies of a
 * draw, seeds, graphs of the caller, costs below 0. */
#include "gw_data.h"

#include "gw/gw_solver.h"

static double *cloud(int64_t n, int64_t d)
{
    double *x = malloc((size_t)(n * d) * sizeof *x);
    for (int64_t i = 0; i < n * d; i++)
        x[i] = test_normal();
    return x;
}

/* Tolerances are of the mass, not of an entry: with n points no marginal is more than 1/n off,
 * which is below the tolerance here, so that a test of the largest error would end at once. */
static void tolerances(void)
{
    const int64_t n = test_size(700, 300);
    const double tol = 2 / (double)n;
    frg_context *ctx = test_context();
    double *cost = malloc((size_t)(n * n) * sizeof *cost);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            cost[i * n + j] = pow((double)(i * i) / (double)(n * n) - (double)j / (double)n, 2);
    double before[2] = {0, 0};
    for (int t = 0; t < 2; t++) {
        frg_sinkhorn_opts o;
        frg_sinkhorn_defaults(&o, sizeof o);
        o.epsilon = 0.01;
        o.tol = t ? tol : 0;
        o.max_iter = t ? 1000 : 10; /* ten passes: where others look for the first time */
        frg_sinkhorn *s = NULL;
        CHECK_OK(ctx, frg_sinkhorn_create(&s, ctx, matrix(cost, n, n), NULL, NULL, &o));
        CHECK(frg_sinkhorn_run(s, NULL) >= 0);
        before[t] = frg_plan_get(frg_sinkhorn_plan(s)).target_before;
        frg_sinkhorn_destroy(s);
    }
    CHECK_SAYS(before[0] > 2 * tol, "ten passes are enough here: %g", before[0]);
    CHECK_SAYS(before[1] <= 1.01 * tol, "off by %g, %g was asked for", before[1], tol);
    free(cost);
    frg_context_destroy(ctx);
}

/* Epsilon falls with progress: a run that settles does not know how many steps it might have
 * taken. */
static void limits_of_steps(void)
{
    enum { N = 50, M = 45 };
    frg_context *ctx = test_context_with(1, NULL, NULL);
    double *const x = cloud(N, 2), *const y = cloud(M, 3), first[N * M], plan[N * M];
    const frg_array ax = matrix(x, N, 2), ay = matrix(y, M, 3);
    for (int t = 0; t < 3; t++) {
        frg_plan_report p = {0};
        frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.max_iter = t == 0 ? 600 : t == 1 ? 900 : 20000;
        const frg_gw_report r =
            align_sides(ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ay}, NULL, &o,
                        t ? plan : first, &p);
        CHECK_SAYS(r.reason != FRG_GW_MAX_ITER && r.outer_iterations < 600, "%lld steps, %s",
                   (long long)r.outer_iterations, frg_gw_reason_name(r.reason));
        CHECK_NEAR(r.epsilon_end, 5e-4, 1e-12);
        if (t)
            CHECK_BITS(plan, first, sizeof first);
    }
    free(x);
    free(y);
    frg_context_destroy(ctx);
}

/* Two clouds of points in the plane with equal weights, and a level over their distances. */
typedef struct {
    frg_context *ctx;
    double *x, *y, *a, *b;
    frg_array ax, ay;
    frgi_distances sx, sy;
    frgi_level l;
} bed;

static bed make_bed(int n, int m)
{
    bed t = {.ctx = test_context(), .x = cloud(n, 2), .y = cloud(m, 2)};
    t.a = malloc((size_t)n * sizeof *t.a);
    t.b = malloc((size_t)m * sizeof *t.b);
    for (int i = 0; i < n; i++)
        t.a[i] = 1.0 / n;
    for (int j = 0; j < m; j++)
        t.b[j] = 1.0 / m;
    t.ax = matrix(t.x, n, 2);
    t.ay = matrix(t.y, m, 2);
    return t;
}

static void open_level(bed *t, const frg_gw_opts *o, const float *linear)
{
    CHECK_OK(t->ctx,
             frgi_distances_open(&t->sx, t->ctx, &(frg_gw_side){.data = &t->ax}, o, "source"));
    CHECK_OK(t->ctx,
             frgi_distances_open(&t->sy, t->ctx, &(frg_gw_side){.data = &t->ay}, o, "target"));
    CHECK_OK(t->ctx, frgi_level_open(&t->l, t->ctx, o, &t->sx, &t->sy, t->a, t->b, linear,
                                     frgi_level_storage(o, true), false));
    CHECK_OK(t->ctx, frgi_level_reset(&t->l, 0));
}

static void close_level(bed *t)
{
    frgi_level_close(&t->l);
    frgi_distances_close(&t->sx);
    frgi_distances_close(&t->sy);
}

static void drop_bed(bed *t)
{
    free(t->x);
    free(t->y);
    free(t->a);
    free(t->b);
    frg_context_destroy(t->ctx);
}

/* The plan of the last step. */
static void read_plan(bed *t, double *plan)
{
    struct frg_plan view = {.ctx = t->ctx, .t = &t->l.t};
    view.report = (frg_plan_report){.n = t->ax.shape[0], .m = t->ay.shape[0]};
    CHECK_OK(t->ctx,
             frg_plan_rows(&view, 0, t->ax.shape[0], matrix(plan, t->ax.shape[0], t->ay.shape[0])));
}

/** (2/R) sum_r (C(i_r, i) - u_i)(D(j_r, j) - v_j) + 2 u_i v_j of the last step's pairs, u and v the
 *  means of C and D. */
static void cross_term(const bed *t, const double *c, const double *d, double *cross)
{
    const int n = (int)t->ax.shape[0], m = (int)t->ay.shape[0], R = (int)t->l.o->anchors;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            double u = 0, v = 0, sum = 0;
            for (int k = 0; k < n; k++)
                u += c[i * n + k] / n;
            for (int k = 0; k < m; k++)
                v += d[j * m + k] / m;
            for (int r = 0; r < R; r++)
                sum +=
                    (c[t->l.sampled.now[r].i * n + i] - u) * (d[t->l.sampled.now[r].j * m + j] - v);
            cross[i * m + j] = 2 * sum / R + 2 * u * v;
        }
}

/* How factors of R pairs are packed where epsilon is not very small. */
static frgi_packed way_to_pack(const frg_context *ctx, int R)
{
    return R < 16                    ? FRGI_AS_FLOATS
           : frgi_context_tiles(ctx) ? FRGI_AS_TILES
                                     : frgi_build_ops_of(ctx)->prefers;
}

/* Steps by hand: log2 P_ij = F_i + G_j + log2(e) / epsilon times the cross term of the pairs, C and
 * D divided by their largest distance, whatever was drawn, and no terms of rows and columns, which
 * no balanced plan can feel. Exponents are up to 60 in f32: 60 x 2^-23 with the roundings of R
 * terms.  Of many pairs distances may be taken to the nearest 1/11585 of the largest, each off by
 * half of that: products by 1/11585 of the largest two, and twice their mean is in the cost; or as
 * two bfloat16, products off by 3 x 2^-18 at most.  40 rows are blocks of 16 and one of 8.
 * Averaged: the share of a new term is 2 / (k + 2) from the second step on, 0.5 at most.  Then E of
 * that plan within five standard errors of its estimate. */
static void steps_by_hand(const int R)
{
    enum { N = 36, M = 26, STEPS = 6 };
    static const double off[] = {[FRGI_AS_WHOLE] = 2.0 / 11585, [FRGI_AS_TILES] = 6 * 0x1p-18};
    bed t = make_bed(N, M);
    frg_context *const ctx = t.ctx;
    const double *const x = t.x, *const y = t.y;
    double plan[N * M];
    frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
    o.anchors = R;
    o.epsilon = 0.05;
    o.damping = 1;
    double c[N * N], d[M * M], most_c = 0, most_d = 0;
    for (int i = 0; i < N * N; i++)
        most_c = fmax(
            most_c, c[i] = hypot(x[i / N * 2] - x[i % N * 2], x[i / N * 2 + 1] - x[i % N * 2 + 1]));
    for (int j = 0; j < M * M; j++)
        most_d = fmax(
            most_d, d[j] = hypot(y[j / M * 2] - y[j % M * 2], y[j / M * 2 + 1] - y[j % M * 2 + 1]));
    for (int averaged = 0; averaged < 2; averaged++) {
        static const double shares[STEPS] = {1, 0.5, 0.5, 0.4, 1.0 / 3, 2.0 / 7};
        double cross[N * M], mean[N * M] = {0};
        const double unit = 1.4426950408889634 / o.epsilon;
        open_level(&t, &o, NULL);
        t.l.average.on = averaged;
        t.l.average.from = 1;
        /* the largest of two sweeps: no point lies further from where they began than half of the
         * largest of all, at least */
        CHECK((double)t.sx.most <= 1.0001 * most_c && (double)t.sx.most >= 0.5 * most_c);
        CHECK((double)t.sy.most <= 1.0001 * most_d && (double)t.sy.most >= 0.5 * most_d);
        for (int i = 0; i < N * N && !averaged; i++)
            c[i] /= (double)t.sx.most;
        for (int j = 0; j < M * M && !averaged; j++)
            d[j] /= (double)t.sy.most;
        for (int step = 0; step < STEPS; step++) {
            double worst = 0;
            CHECK_OK(ctx, frgi_level_step(&t.l, 20, 0));
            read_plan(&t, plan);
            cross_term(&t, c, d, cross);
            for (int i = 0; i < N * M; i++) {
                mean[i] += (averaged ? shares[step] : 1) * (cross[i] - mean[i]);
                const double want = t.l.t.s.F[i / M] + t.l.t.s.G[i % M] + unit * mean[i];
                worst = fmax(worst, fabs(log2(plan[i]) - want));
            }
            CHECK(t.l.product.packed == way_to_pack(ctx, R));
            CHECK_SAYS(worst < 1e-3 + unit * off[t.l.product.packed],
                       "step %d of %d pairs: %g in the logarithm of the plan", step, R, worst);
        }
        close_level(&t);
    }
    open_level(&t, &o, NULL);
    CHECK_OK(ctx, frgi_level_step(&t.l, 20, 0));
    frgi_marginal_error before, after; /* what the means tell needs marginals that hold */
    CHECK_OK(ctx, frgi_transport_finish(&t.l.t, true, &before, &after));
    read_plan(&t, plan);
    double energy, error, by_hand = 0, errors[2];
    for (int i = 0; i < N * M; i++) /* pairs are drawn from rows of their proper mass */
        for (int k = 0; k < N * M; k++) {
            const double gap = c[i / M * N + k / M] * most_c - d[i % M * M + k % M] * most_d;
            by_hand += gap * gap * plan[i] * plan[k];
        }
    frgi_means means = {0};
    CHECK_OK(ctx, frgi_means_open(&means, &t.l));
    for (int centred = 0; centred < 2; centred++) {
        CHECK_OK(ctx, frgi_energy_estimate(&t.l, 512, most_c, most_d, centred ? &means : NULL,
                                           &energy, &error));
        CHECK_SAYS(fabs(energy - by_hand) <= 5 * error && error < 0.2 * by_hand,
                   "estimate %g, by hand %g, standard error %g", energy, by_hand, error);
        errors[centred] = error;
    }
    /* each is a deviation of 512 numbers, itself known to 5 % where their kurtosis is 6 */
    CHECK_SAYS(errors[1] < 1.15 * errors[0], "standard errors %g, centred %g", errors[0],
               errors[1]);
    DROP(ctx, &means.u);
    close_level(&t);
    drop_bed(&t);
}

static void one_step(void)
{
    steps_by_hand(3);
    steps_by_hand(41); /* an odd number */
}

/* Exponents may be moved by 0.06, root mean square.  Of 20 pairs at epsilon 1e-6 2 log2(e) 1e6 /
 * sqrt(20) times 2^-18 of the largest product, which is 0.1 or more of squares of 1, is 0.25; whole
 * numbers move them further. */
static void small_epsilon(void)
{
    bed t = make_bed(30, 26);
    frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
    o.anchors = 20;
    for (int small = 0; small < 2; small++) {
        o.epsilon = small ? 1e-6 : 0.05;
        open_level(&t, &o, NULL);
        CHECK_OK(t.ctx, frgi_level_step(&t.l, 3, 0));
        CHECK(t.l.product.packed == (small ? FRGI_AS_FLOATS : way_to_pack(t.ctx, 20)));
        close_level(&t);
    }
    drop_bed(&t);
}

/* Means of distances: all of a matrix; of many vectors some hundred at equal steps of the weights,
 * which are off by no more than five standard errors of an independent draw; rows of the padding
 * and points without weight left out. */
static void means(void)
{
    enum { N = 700 };
    frg_context *ctx = test_context();
    double *const x = cloud(N, 2), *const c = malloc(sizeof(double) * N * N), w[N];
    float got[N];
    for (int i = 0; i < N; i++)
        w[i] = i % 7 == 0 ? 0 : test_uniform();
    for (int i = 0; i < N * N; i++)
        c[i] = hypot(x[i / N * 2] - x[i % N * 2], x[i / N * 2 + 1] - x[i % N * 2 + 1]);
    const frg_array points = matrix(x, N, 2), matrices = matrix(c, N, N);
    for (int way = 0; way < 2; way++) {
        const frg_gw_opts o = options(way ? FRG_GW_DISTANCE_EUCLIDEAN : FRG_GW_DISTANCE_MATRIX);
        frgi_distances d;
        CHECK_OK(ctx,
                 frgi_distances_open(&d, ctx, &(frg_gw_side){.data = way ? &points : &matrices}, &o,
                                     "source"));
        CHECK_OK(ctx, frgi_distances_means(&d, w, way ? 512 : N, got));
        for (int i = 0; i < N; i++) {
            double sum = 0, square = 0, total = 0;
            for (int k = 0; k < N; k++) {
                const double scaled = (double)d.scale * c[i * N + k];
                sum += w[k] * scaled;
                square += w[k] * scaled * scaled;
                total += w[k];
            }
            const double mean = sum / total, off = sqrt(square / total - mean * mean) / sqrt(512);
            CHECK_SAYS(fabs((double)got[i] - mean) <= (way ? 5 * off : 1e-6),
                       "way %d, point %d: %g, %g", way, i, (double)got[i], mean);
        }
        frgi_distances_close(&d);
    }
    free(x);
    free(c);
    frg_context_destroy(ctx);
}

/* Pairs are centred by the same means whether shortest paths are there or come when they are
 * needed, where all points are looked at.  Centred rows are rows less the means, to the rounding of
 * a product and a sum of numbers up to 2, of vectors and of paths, of which some are infinite. */
static void centred(void)
{
    enum { N = 60, M = 50, ROWS = 7 };
    bed t = make_bed(N, M);
    static const frg_gw_distance ways[] = {FRG_GW_DISTANCE_PRECOMPUTED, FRG_GW_DISTANCE_DIJKSTRA,
                                           FRG_GW_DISTANCE_EUCLIDEAN};
    float first[N + M], rows[ROWS * N], less[ROWS * N];
    int32_t nodes[ROWS];
    for (int r = 0; r < ROWS; r++)
        nodes[r] = (int32_t)(test_uniform() * N);
    for (int i = 0; i < 2 * N; i++)
        t.x[i] += i < N ? 0 : 100;
    for (int way = 0; way < 3; way++) {
        frg_gw_opts o = options(ways[way]);
        o.k = 5;
        o.stitch = way == 2; /* two parts */
        open_level(&t, &o, NULL);
        CHECK(t.l.product.means != NULL);
        for (int i = 0; i < N + M && way < 2; i++) { /* two sweeps need not find the largest */
            const float mean = t.l.product.means[i] / (i < N ? t.sx.scale : t.sy.scale);
            first[i] = way ? first[i] : mean;
            CHECK_SAYS(fabsf(mean - first[i]) <= 1e-6f * mean, "%g, %g", (double)mean,
                       (double)first[i]);
        }
        CHECK_OK(t.ctx, frgi_distances_rows(&t.sx, nodes, ROWS, rows, N));
        CHECK_OK(t.ctx, frgi_distances_centred(&t.sx, nodes, ROWS, t.l.product.means, less, N));
        float most = 0;
        for (int q = 0; q < ROWS * N; q++) {
            CHECK_NEAR(less[q], rows[q] - t.l.product.means[q % N], 4e-7);
            most = fmaxf(most, rows[q]);
        }
        CHECK(way == 2 || most == t.sx.scale * t.sx.beyond);
        close_level(&t);
    }
    drop_bed(&t);
}

/* The seed decides and nothing else: the same plan again, another one for another seed; a graph of
 * the caller's is the graph of nearest neighbours where it has its arcs. */
static void seeds_and_graphs(void)
{
    enum { N = 40, M = 35 };
    double *const x = cloud(N, 2), *const y = cloud(M, 2), plans[4][N * M];
    const frg_array ax = matrix(x, N, 2), ay = matrix(y, M, 2);
    for (int t = 0; t < 4; t++) {
        frg_context_opts c;
        frg_context_defaults(&c, sizeof c);
        c.seed = t == 2 ? 8 : 7;
        c.threads = 2;
        frg_context *ctx = NULL;
        CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
        frg_gw_opts o = options(t == 3 ? FRG_GW_DISTANCE_GRAPH : FRG_GW_DISTANCE_PRECOMPUTED);
        o.k = 5;
        o.max_iter = o.min_iter = 30;
        frg_gw_side sides[2] = {{.data = &ax}, {.data = &ay}};
        frg_graph *own[2] = {NULL, NULL};
        for (int q = 0; q < 2 && t == 3; q++) {
            const int64_t *starts, n = sides[q].data->shape[0];
            const int32_t *targets;
            const float *lengths;
            frg_graph_opts g;
            frg_graph *found = NULL;
            frg_graph_defaults(&g, sizeof g);
            g.k = o.k;
            CHECK_OK(ctx, frg_graph_knn(&found, ctx, *sides[q].data, &g));
            frg_graph_arcs(found, &starts, &targets, &lengths);
            const frg_array w = frg_vector(lengths, FRG_F32, starts[n]);
            CHECK_OK(ctx, frg_graph_csr(&own[q], ctx, frg_vector(starts, FRG_I64, n + 1),
                                        frg_vector(targets, FRG_I32, starts[n]), &w, 0));
            frg_graph_destroy(found);
            sides[q] = (frg_gw_side){.graph = own[q]};
        }
        frg_plan_report p = {0};
        align_sides(ctx, sides[0], sides[1], NULL, &o, plans[t], &p);
        for (int q = 0; q < 2; q++)
            frg_graph_destroy(own[q]);
        frg_context_destroy(ctx);
    }
    CHECK_BITS(plans[1], plans[0], sizeof plans[0]);
    CHECK(memcmp(plans[2], plans[0], sizeof plans[0]) != 0);
    CHECK_BITS(plans[3], plans[0], sizeof plans[0]);
    free(x);
    free(y);
}

/* A constant taken off the linear cost changes no plan and must not change when a run ends: below 0
 * too, and with a damping of 1.  Costs are multiples of 1/64, so that both are exact in f32;
 * exponents are rounded elsewhere. */
static void costs_below_zero(void)
{
    enum { N = 40, M = 36 };
    frg_context *ctx = test_context_with(1, NULL, NULL);
    double *const x = cloud(N, 2), *const y = cloud(M, 2), linear[N * M], plan[N * M];
    const frg_array ax = matrix(x, N, 2), ay = matrix(y, M, 2), al = matrix(linear, N, M);
    double cost[2] = {0, 0};
    for (int t = 0; t < 2; t++) {
        for (int i = 0; i < N * M; i++)
            linear[i] = (double)((i * 37) % 64) / 64 - 2 * t;
        frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.linear_weight = 0.7;
        o.damping = 1;
        o.max_iter = 3000;
        frg_plan_report p = {0};
        const frg_gw_report r = align_sides(ctx, (frg_gw_side){.data = &ax},
                                            (frg_gw_side){.data = &ay}, &al, &o, plan, &p);
        /* beaten: it has converged, and another start is lower */
        CHECK_SAYS(r.reason == FRG_GW_CONVERGED_CHANGE || r.reason == FRG_GW_CONVERGED_PLATEAU ||
                       r.reason == FRG_GW_BEATEN,
                   "%s after %lld steps", frg_gw_reason_name(r.reason),
                   (long long)r.outer_iterations);
        CHECK_NEAR(r.epsilon_end, 5e-4, 1e-12);
        CHECK(p.source_error <= 1e-12 && p.target_error <= 1e-12);
        for (int i = 0; i < N * M; i++)
            cost[t] += plan[i] * (linear[i] + 2 * t);
    }
    CHECK_NEAR(cost[1], cost[0], 0.01);
    free(x);
    free(y);
    frg_context_destroy(ctx);
}

/* What the plateau and the starts look at where a linear cost counts: (1 - theta) E + 2 theta
 * <Clin, P> of the present plan, partial mass too, within five standard errors; its entropy to
 * rounding of floats. */
static void costs_of_both(void)
{
    enum { N = 30, M = 26, PAD = 48 };
    bed t = make_bed(N, M);
    frg_context *const ctx = t.ctx;
    const double *const x = t.x, *const y = t.y;
    double plan[N * M];
    float *const linear = calloc((size_t)32 * PAD, sizeof *linear);
    for (int i = 0; i < N * M; i++)
        linear[i / M * PAD + i % M] = (float)test_uniform();
    for (int kind = 0; kind < 3; kind++) {
        frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.anchors = 20;
        o.epsilon = 0.02;
        o.linear_weight = kind == 1 ? 1 : 0.3;
        o.mass = kind == 2 ? 0.6 : 0;
        open_level(&t, &o, linear);
        CHECK_OK(ctx, frgi_level_step(&t.l, 400, 1e-6));
        double cost, error, exact = 0, entropy = 0;
        CHECK_OK(ctx, frgi_cost_estimate(&t.l, 512, &cost, &error));
        read_plan(&t, plan);
        for (int i = 0; i < N * M; i++) {
            const int p = i / M, q = i % M;
            for (int k = 0; k < N * M; k++) {
                const int r = k / M, s = k % M;
                const double gap =
                    hypot(x[2 * p] - x[2 * r], x[2 * p + 1] - x[2 * r + 1]) / (double)t.sx.most -
                    hypot(y[2 * q] - y[2 * s], y[2 * q + 1] - y[2 * s + 1]) / (double)t.sy.most;
                exact += (1 - o.linear_weight) * gap * gap * plan[i] * plan[k];
            }
            exact += 2 * o.linear_weight * plan[i] * (double)linear[p * PAD + q];
            entropy += plan[i] > 0 ? plan[i] * (log(plan[i]) - 1) : 0;
        }
        CHECK_SAYS(fabs(cost - exact) <= 5 * error && error < 0.1 * exact,
                   "kind %d: %g +- %g, exactly %g", kind, cost, error, exact);
        CHECK_NEAR(frgi_plan_entropy(&t.l, NULL), entropy, 1e-9);
        close_level(&t);
    }
    free(linear);
    drop_bed(&t);
}

/* The cost of pairs (1 - theta) s^2 E + 2 theta s <Clin>, s the mass, and its standard error, which
 * adds that of a mean of independent draws to E's as the sides of a right angle: by two passes over
 * the pairs here, in doubles.  Nothing of it without a linear cost. */
static void error_of_both(void)
{
    enum { N = 9, M = 7, PAD = 48, COUNT = 25 };
    bed t = make_bed(N, M);
    float *const linear = calloc((size_t)16 * PAD, sizeof *linear);
    frgi_pair pairs[COUNT];
    double sum = 0, square = 0;
    const double mass = 0.7, energy = 3, off = 0.25;
    for (int i = 0; i < N * M; i++)
        linear[i / M * PAD + i % M] = (float)test_uniform() - 2;
    for (int r = 0; r < COUNT; r++) {
        pairs[r] = (frgi_pair){r % N, r * 3 % M};
        sum += (double)linear[pairs[r].i * PAD + pairs[r].j];
    }
    for (int r = 0; r < COUNT; r++)
        square += pow((double)linear[pairs[r].i * PAD + pairs[r].j] - sum / COUNT, 2);
    static const double weights[] = {0, 0.3, 1};
    for (int w = 0; w < 3; w++) {
        const double theta = weights[w];
        frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.linear_weight = theta;
        open_level(&t, &o, linear);
        double cost = energy, error = off;
        frgi_join_linear(&t.l, pairs, COUNT, mass, &cost, &error);
        const double share = theta > 0 ? (1 - theta) * mass * mass : 1;
        CHECK_NEAR(cost, share * energy + 2 * theta * mass * sum / COUNT, 1e-12);
        CHECK_NEAR(error, hypot(share * off, 2 * theta * mass * sqrt(square) / COUNT), 1e-12);
        close_level(&t);
    }
    free(linear);
    drop_bed(&t);
}

/* What is kept of the plans of four steps against averages made here; terms of L from the marginals
 * of the average. Floats: 2^-24 of each entry and again of what is left of it in the next averages,
 * 1e-7. */
static void kept(void)
{
    enum { N = 30, M = 26 };
    bed t = make_bed(N, M);
    frg_context *const ctx = t.ctx;
    const double *const x = t.x, *const y = t.y;
    double plan[N * M];
    for (int kind = 0; kind < 3; kind++) { /* balanced, partial, relaxed */
        frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.anchors = 8;
        o.epsilon = 0.05;
        o.damping = 0.6;
        o.store_plan = o.diag_exact = 1;
        o.mass = kind == 1 ? 0.6 : 0;
        o.rho_source = kind == 2 ? 0.1 : (double)INFINITY;
        o.rho_target = kind == 2 ? 0.2 : (double)INFINITY;
        open_level(&t, &o, NULL);
        double mean[N * M], rows[N], columns[M];
        for (int i = 0; i < N * M; i++)
            mean[i] = t.a[0] * t.b[0];
        for (int step = 0; step < 4; step++) {
            for (int i = 0; i < N; i++)
                rows[i] = 0;
            for (int j = 0; j < M; j++)
                columns[j] = 0;
            for (int i = 0; i < N * M; i++) {
                rows[i / M] += mean[i];
                columns[i % M] += mean[i];
            }
            CHECK_OK(ctx, frgi_level_step(&t.l, 200, 1e-7));
            double total = 0, square = 0, term = 0, column_term = 0;
            for (int i = 0; i < N; i++)
                total += rows[i];
            for (int l = 0; l < M; l++) {
                const double gap = hypot(y[6] - y[2 * l], y[7] - y[2 * l + 1]) / (double)t.sy.most;
                column_term += gap * gap * columns[l] / total;
            }
            for (int k = 0; k < N; k++) {
                const double gap = hypot(x[8] - x[2 * k], x[9] - x[2 * k + 1]) / (double)t.sx.most;
                term += gap * gap * rows[k] / total;
            }
            if (kind) { /* in units of epsilon, of points whose marginals the passes left 1e-6 off
                           at most */
                const double unit = 1.4426950408889634 / t.l.epsilon;
                CHECK_NEAR((double)t.l.product.terms[4], term * unit, 1e-4);
                CHECK_NEAR((double)t.l.product.terms[t.l.t.s.rows + 3], column_term * unit, 1e-4);
            }
            read_plan(&t, plan);
            for (int i = 0; i < N * M; i++) {
                const double gap = 0.6 * (plan[i] - mean[i]);
                square += gap * gap;
                mean[i] += gap;
                CHECK_SAYS(fabs((double)t.l.kept.plan[i] - mean[i]) <= 2e-7 * mean[i] + 1e-12,
                           "kind %d, step %d, entry %d: %g, %g", kind, step, i,
                           (double)t.l.kept.plan[i], mean[i]);
            }
            CHECK_NEAR(t.l.stopping.change, sqrt(square), 1e-7);
        }
        /* of a plan that nothing is known of the next one is taken whole */
        CHECK_OK(ctx, frgi_kept_reset(&t.l, false));
        CHECK_OK(ctx, frgi_level_step(&t.l, 200, 1e-7));
        CHECK(isinf(t.l.stopping.change));
        read_plan(&t, plan);
        for (int i = 0; i < N * M; i++)
            CHECK_SAYS(fabs((double)t.l.kept.plan[i] - plan[i]) <= 2e-7 * plan[i] + 1e-12,
                       "kind %d, entry %d: %g, %g", kind, i, (double)t.l.kept.plan[i], plan[i]);
        close_level(&t);
    }
    drop_bed(&t);
}

/* Anchors of a plan that is kept follow the average, not the last plan: half of what each has. */
static void kept_anchors(void)
{
    enum { N = 12, M = 14, R = 20000 };
    bed t = make_bed(N, M);
    frg_context *const ctx = t.ctx;
    frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
    o.anchors = R;
    o.epsilon = 0.002; /* a narrow plan, far from a b' */
    o.damping = 0.5;
    o.store_plan = 1;
    open_level(&t, &o, NULL);
    CHECK_OK(ctx, frgi_level_step(&t.l, 200, 1e-5));
    double counts[N * M] = {0};
    for (int64_t r = 0; r < t.l.sampled.drawn; r++)
        counts[t.l.sampled.lagged[0][r].i * M + t.l.sampled.lagged[0][r].j]++;
    for (int i = 0; i < N * M; i++) {
        const double want = (double)t.l.kept.plan[i] * (double)t.l.sampled.drawn;
        /* half of a b' is everywhere; five standard deviations and the rows' rounding */
        CHECK_SAYS(t.l.kept.plan[i] >= 0.499f / (N * M) &&
                       fabs(counts[i] - want) <= 5 * sqrt(want) + 1,
                   "entry %d: %g pairs, %g expected", i, counts[i], want);
    }
    close_level(&t);
    drop_bed(&t);
}

static double *distances(const double *x, int64_t n, int64_t d)
{
    double *c = calloc((size_t)(n * n), sizeof *c);
    for (int64_t i = 0; i < n * n; i++) {
        for (int64_t q = 0; q < d; q++)
            c[i] += pow(x[i / n * d + q] - x[i % n * d + q], 2);
        c[i] = sqrt(c[i]);
    }
    return c;
}

/* Behind a coarse level a broad plan, of clouds that have little to do with each other, gets more
 * pairs: the noise of few sharpens it, which lowers E and raises the objective; a narrow one does
 * not.  The objective is within a tenth of what 1 nat of information costs of the exact mode's. */
static void broad(void)
{
    enum { N = 200, M = 230 };
    double *const x = cloud(N, 3), *const y = cloud(M, 5), exact = 0;
    double *const line = malloc((size_t)M * sizeof *line);
    for (int i = 0; i < M; i++)
        line[i] = i + 0.3 * test_uniform();
    double *const c = distances(x, N, 3), *const d = distances(y, M, 5),
                  *const e = distances(line, M, 1);
    const frg_array ax = matrix(c, N, N), ay = matrix(d, M, M), al = matrix(e, M, M);
    for (int run = 0; run < 4; run++) {
        frg_context *ctx = test_context_with(1, NULL, NULL);
        frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
        o.anneal = FRG_GW_ANNEAL_NONE;
        o.epsilon = run == 3 ? 0.002 : 0.02;
        o.mode = run ? FRG_GW_SAMPLED : FRG_GW_EXACT;
        o.multiscale = run < 2 ? FRG_GW_MULTISCALE_OFF : FRG_GW_MULTISCALE_ON;
        const frg_array *const one = run == 3 ? &al : &ax, *const other = run == 3 ? &al : &ay;
        const frg_gw_report r = align_sides(ctx, (frg_gw_side){.data = one},
                                            (frg_gw_side){.data = other}, NULL, &o, NULL, NULL);
        exact = run ? exact : r.objective;
        CHECK_INT(r.anchors, run == 0 ? 0 : run == 2 ? 640 : 80);
        CHECK_SAYS(run == 3 || fabs(r.objective - exact) <= 0.1 * 2 * o.epsilon,
                   "run %d: objective %g, %g in the exact mode", run, r.objective, exact);
        frg_context_destroy(ctx);
    }
    free(x);
    free(y);
    free(line);
    free(c);
    free(d);
    free(e);
}

/* Pairs of a step come from the latest plans, with the shares alpha (1 - alpha)^q of the average,
 * and from all rows alike: five standard deviations. */
static void ages(void)
{
    enum { N = 12, M = 14, R = 20000, STEPS = 3 };
    bed t = make_bed(N, M);
    frg_context *const ctx = t.ctx;
    frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
    o.anchors = R;
    o.damping = 0.6;
    open_level(&t, &o, NULL);
    for (int step = 0; step < STEPS; step++)
        CHECK_OK(ctx, frgi_level_step(&t.l, 20, 1e-5));
    CHECK_INT(t.l.sampled.n_lagged, STEPS + 1);
    for (int q = 0; q < FRGI_LAGS; q++)
        t.l.sampled.lagged_used[q] = 0;
    frgi_take_samples(&t.l);
    double mean = 0;
    for (int r = 0; r < R; r++)
        mean += (double)t.l.sampled.now[r].i / R;
    CHECK_SAYS(fabs(mean - 0.5 * (N - 1)) <= 5 * N / sqrt(12.0 * R), "rows of mean %g", mean);
    for (int q = 0; q <= STEPS; q++) {
        const double want = R * 0.6 * pow(0.4, q) / (1 - pow(0.4, STEPS + 1));
        CHECK_SAYS(fabs((double)t.l.sampled.lagged_used[q] - want) <= 5 * sqrt(want),
                   "age %d: %g, not %g", q, (double)t.l.sampled.lagged_used[q], want);
    }
    close_level(&t);
    drop_bed(&t);
}

/* T19: where the cost stays the same the first look sets the mark and patience / 5 looks more end
 * the run: 20 steps before the first, patience steps more, and no noise to hide it, as all pairs
 * cost the same. */
static void patience(void)
{
    enum { N = 20, M = 24 };
    frg_context *ctx = test_context_with(1, NULL, NULL);
    double *const x = cloud(N, 2), *const y = cloud(M, 2), linear[N * M];
    const frg_array ax = matrix(x, N, 2), ay = matrix(y, M, 2), al = matrix(linear, N, M);
    static const int64_t first[] = {20, 60}, patience[] = {20, 30};
    for (int t = 0; t < 4; t++) {
        for (int i = 0; i < N * M; i++)
            linear[i] = t % 2 ? -0.5 : 0.5;
        frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.anneal = FRG_GW_ANNEAL_NONE;
        o.linear_weight = 1;
        o.tol = 0;
        o.n_start = 1;
        o.min_iter = first[t / 2];
        const frg_gw_report r = align_sides(ctx, (frg_gw_side){.data = &ax},
                                            (frg_gw_side){.data = &ay}, &al, &o, NULL, NULL);
        CHECK_INT(r.outer_iterations, first[t / 2] + patience[t / 2]);
    }
    free(x);
    free(y);
    frg_context_destroy(ctx);
}

/* A plan on noisy copies of points, whose cost is linear; in_order: the points come along a
 * line. */
static bed make_narrow(int n, int m, bool in_order, float *linear, int64_t ld)
{
    bed t = make_bed(n, m);
    double sum_a = 0, sum_b = 0;
    for (int i = 0; i < 2 * n; i++)
        t.x[i] = in_order ? 4.0 * (i / 2) / n : 2 * test_uniform();
    for (int j = 0; j < 2 * m; j++)
        t.y[j] = t.x[j / 2 * (in_order ? 1 : 7) % n * 2 + j % 2] + 0.05 * test_normal();
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            linear[i * ld + j] =
                (float)(pow(t.x[2 * i] - t.y[2 * j], 2) + pow(t.x[2 * i + 1] - t.y[2 * j + 1], 2));
    for (int i = 0; i < n; i++)
        sum_a += t.a[i] = 0.8 + 0.2 * (i % 3);
    for (int j = 0; j < m; j++)
        sum_b += t.b[j] = j ? 0.8 + 0.1 * (j % 5) : 0.01;
    for (int i = 0; i < n; i++)
        t.a[i] /= sum_a;
    for (int j = 0; j < m; j++)
        t.b[j] /= sum_b;
    return t;
}

/* Points in any order, a narrow plan: in an order of proximity passes leave most of it out, and
 * afterwards everything is in its place, the exponents to the bit, though they were built again on
 * the way.  What is left out is below m 2^-48 of a row, so that 40 passes over everything give the
 * same potentials to the roundings of f32, 40 times 2^-23 of exponents up to 20, in another order
 * of sums; and the tape of what passes began with.  Once a potential has moved by more than 12 the
 * lists of what weighs something are void. */
static void order(void)
{
    enum { N = 1010, M = 1003, PASSES = 40 };
    const int64_t rows = (N + 7) / 8 * 8, ld = (M + 47) / 48 * 48;
    float *linear = calloc((size_t)(rows * ld), sizeof *linear);
    bed t = make_narrow(N, M, false, linear, ld);
    double *plan = malloc(sizeof(double) * N * M), *G = malloc(sizeof(double) * 2 * M);
    float *x = malloc((size_t)(rows * ld) * sizeof *x);
    frg_gw_opts o = options(FRG_GW_DISTANCE_EUCLIDEAN);
    o.epsilon = 0.01;
    o.linear_weight = 1;
    double share = 1;
    for (int run = 0; run < 4; run++) {
        const bool moved = run % 2 == 0, again = run / 2 == 1;
        frgi_order places = {0};
        open_level(&t, &o, linear);
        frgi_transport *const w = &t.l.t;
        CHECK_NEAR((double)w->s.active.negligible, 0x1p-60 * t.b[0] * M, 1e-6 * 0x1p-60);
        CHECK_OK(t.ctx, frgi_level_step(&t.l, 100, 0));
        frgi_transport_renew(w, o.epsilon, w->s.x.fill,
                             w->s.x.source); /* potentials in the exponents */
        frgi_transport_pass(w);
        if (moved) {
            CHECK_OK(t.ctx, frgi_order_open(&places, &t.l));
            CHECK(places.moved);
            for (int p = 0; p < M && places.moved; p++)
                CHECK(((const float *)w->s.g)[p] == (float)(w->s.G[p] - w->s.base.G0[p]));
        }
        if (again)
            frgi_transport_renew(w, o.epsilon, w->s.x.fill, w->s.x.source);
        w->accelerate = true;
        CHECK_OK(t.ctx, frgi_transport_solve(w, 0, PASSES));
        CHECK(w->last.out_of_range == 0 && w->skip.holds);
        CHECK_SAYS(!moved || w->skip.share < 0.5, "%g of the vectors are looked at", w->skip.share);
        CHECK_SAYS(moved || w->skip.share > 2 * share, "%g of them, %g in order", w->skip.share,
                   share);
        share = w->skip.share;
        frgi_order_close(&places, &t.l);
        CHECK(!w->skip.holds || !moved);
        if (!moved)
            CHECK_BITS(w->s.x.at, x, (size_t)(rows * ld) * sizeof *x);
        memcpy(x, w->s.x.at, (size_t)(rows * ld) * sizeof *x);
        double worst = 0, error = 0;
        const double *const taped = w->saved.G + 4 * ld; /* the 129th pass over this cost */
        for (int j = 0; j < M && !moved; j++)
            worst = fmax(worst, fmax(fabs(w->s.G[j] - G[j]), fabs(taped[j] - G[M + j])));
        CHECK_SAYS(worst < 1e-4, "potentials are %g apart", worst);
        memcpy(G, w->s.G, sizeof(double) * M);
        memcpy(G + M, taped, sizeof(double) * M);
        w->accelerate = false;
        frgi_transport_pass(w); /* ends on its momentum */
        frgi_transport_pass(w); /* exact columns, rows no further off than columns were */
        read_plan(&t, plan);
        for (int i = 0; i < N; i++) {
            double sum = -t.a[i];
            for (int j = 0; j < M; j++)
                sum += plan[i * M + j];
            error += fabs(sum);
        }
        CHECK_SAYS(error < w->last.error + 1e-4, "rows are off by %g", error);
        CHECK_OK(t.ctx, frgi_transport_solve(w, 0, 2));
        CHECK(w->skip.holds);
        for (int j = 0; j < M; j++)
            w->s.G[j] += j % 2 ? 20 : 0;
        frgi_transport_place(w);
        CHECK_OK(t.ctx, frgi_transport_solve(w, 0, 1));
        CHECK(!w->skip.holds);
        for (int j = 0; j < M; j++) /* further than f32 reaches: what is stored is read no more */
            w->s.G[j] += j % 2 ? 100 : 0;
        CHECK(w->s.x.at != NULL);
        frgi_transport_place(w);
        CHECK(w->s.x.at == NULL);
        close_level(&t);
    }
    drop_bed(&t);
    t = make_narrow(N, M, true, linear, ld); /* no order is better than that of a line */
    frgi_order places = {0};
    open_level(&t, &o, linear);
    CHECK_OK(t.ctx, frgi_level_step(&t.l, 100, 0));
    CHECK_OK(t.ctx, frgi_order_open(&places, &t.l));
    CHECK(!places.moved);
    frgi_order_close(&places, &t.l);
    close_level(&t);
    free(linear);
    free(plan);
    free(x);
    free(G);
    drop_bed(&t);
}

static const test_case cases[] = {{"kept", kept},
                                  {"order", order},
                                  {"broad", broad},
                                  {"kept_anchors", kept_anchors},
                                  {"ages", ages},
                                  {"patience", patience},
                                  {"tolerances", tolerances},
                                  {"limits of steps", limits_of_steps},
                                  {"one step", one_step},
                                  {"small epsilon", small_epsilon},
                                  {"means", means},
                                  {"centred", centred},
                                  {"seeds and graphs", seeds_and_graphs},
                                  {"costs below zero", costs_below_zero},
                                  {"costs of both", costs_of_both},
                                  {"error of both", error_of_both}};
TEST_MAIN(cases)
