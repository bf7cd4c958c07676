/* gw_embed.c - one embedding for several aligned sets.
 *
 * An anchor set Y with a graph, query sets X_q with graphs and plans P_q (n_q x m).  With the
 * weights 1 / (length + 1e-10) on the edges and Lap = diag(W 1) - W,
 *
 *     S_q = Lap_q + lambda diag(P_q 1),   S_Y = Lap_Y + lambda sum_q diag(P_q' 1),
 *     H = the blocks S_q^-1 P_q S_Y^-1, one below the other
 *
 * The leading singular vectors of H are the coordinates: left ones of the queries, right ones of
 * the anchor.
 *
 * Randomised subspace iteration (Halko, Martinsson and Tropp 2011): V <- orth(H' H V) until each of
 * the singular values of H V that are wanted has converged, measured by itself: the first is often
 * thousands of times the others, as the constant is nearly in the null space of a Laplacian.  They
 * come from the eigenvalues of (H V)'(H V).  H is never formed: a product is two sets of solves by
 * conjugate gradients with Jacobi's preconditioner and one pass over each plan.  A column is solved
 * by one thread, so the bits do not depend on how many there are.  Signs: the largest component of
 * each right vector is positive.
 */
#include <math.h>
#include <string.h>

#include "core/host_alone.h"
#include "core/opts.h"
#include "graph/graph.h"
#include "gw/gw_marginals.h"
#include "gw/gw_plan.h"
#include "linalg/blas.h"

enum { EXTRA = 6, ROUNDS = 60, STREAM_EMBED = 190 };
#define SETTLED 1e-10 /* of a squared singular value, so that vectors are within 1e-5 */
#define ROUNDED 1e-15 /* of the largest */

/** S = Lap + lambda diag(mass) of one set. */
typedef struct {
    const frg_graph *graph;
    int64_t n;
    double *weight;   /* by arc */
    double *diagonal; /* of S, 1 where it is 0 */
    double *mass;     /* lambda times the mass of each point */
} laplacian;

typedef struct {
    frg_context *ctx;
    const frg_embed_query *queries;
    int64_t n_queries;
    int64_t total, m, width; /* queries' points, anchor's, columns of a block */
    double tol;
    laplacian anchor, *sets;
    double *v, *u, *z; /* m, total, m; by width */
    double *scratch;   /* threads x 4 max(n, m) */
    double *gram, *values, *work;
    double *before; /* the largest values of the last round, rising */
    int *integers;
} embedding;

/* ---- S --------------------------------------------------------------------------------------- */

static frg_status open_laplacian(laplacian *s, frg_context *ctx, const frg_graph *g)
{
    s->graph = g;
    s->n = g->n;
    TRY(NEW(ctx, &s->weight, g->starts[g->n], "an embedding"));
    TRY(NEW0(ctx, &s->diagonal, g->n, "an embedding"));
    TRY(NEW0(ctx, &s->mass, g->n, "an embedding"));
    for (int64_t i = 0; i < g->n; i++) {
        for (int64_t a = g->starts[i]; a < g->starts[i + 1]; a++) {
            s->weight[a] = 1 / ((double)g->lengths[a] + 1e-10);
            s->diagonal[i] += s->weight[a];
        }
    }
    return FRG_OK;
}

static void close_laplacian(laplacian *s, frg_context *ctx)
{
    DROP(ctx, &s->weight);
    DROP(ctx, &s->diagonal);
    DROP(ctx, &s->mass);
}

/** diagonal <- degree + lambda mass. */
static void add_masses(laplacian *s, double lambda)
{
    for (int64_t i = 0; i < s->n; i++) {
        s->mass[i] *= lambda;
        s->diagonal[i] += s->mass[i];
        s->diagonal[i] = s->diagonal[i] > 0 ? s->diagonal[i] : 1;
    }
}

static void apply(const laplacian *s, const double *x, double *out)
{
    for (int64_t i = 0; i < s->n; i++) {
        double sum = s->diagonal[i] * x[i];
        for (int64_t a = s->graph->starts[i]; a < s->graph->starts[i + 1]; a++) {
            sum -= s->weight[a] * x[s->graph->targets[a]];
        }
        out[i] = sum;
    }
}

static double dot(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

/** x <- S^-1 x for one column of a block; scratch: 4 n. */
static void solve_column(const laplacian *s, double *column, int64_t stride, double tol,
                         double *scratch)
{
    const int64_t n = s->n, most = 10 * n + 100;
    double *const r = scratch, *const p = r + n, *const q = p + n, *const x = q + n;
    double rz = 0;
    for (int64_t i = 0; i < n; i++) {
        r[i] = column[i * stride];
        x[i] = 0;
        p[i] = r[i] / s->diagonal[i];
        rz += r[i] * p[i];
    }
    const double enough = tol * tol * dot(r, r, n);
    for (int64_t step = 0; step < most && dot(r, r, n) > enough; step++) {
        apply(s, p, q);
        const double alpha = rz / dot(p, q, n);
        double next = 0;
        for (int64_t i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            next += r[i] * r[i] / s->diagonal[i];
        }
        for (int64_t i = 0; i < n; i++) {
            p[i] = r[i] / s->diagonal[i] + next / rz * p[i];
        }
        rz = next;
    }
    for (int64_t i = 0; i < n; i++) {
        column[i * stride] = x[i];
    }
}

static void solve_block(const embedding *e, const laplacian *s, double *block)
{
    const int threads = frg_threads(e->ctx);
    const int64_t each = 4 * (e->total > e->m ? e->total : e->m);
#pragma omp parallel for schedule(static, 1) num_threads(threads)
    for (int part = 0; part < threads; part++) {
        for (int64_t c = part; c < e->width; c += threads) {
            solve_column(s, block + c, e->width, e->tol, e->scratch + part * each);
        }
    }
}

/* ---- H --------------------------------------------------------------------------------------- */

static frg_array block(double *x, int64_t n, int64_t width)
{
    return frg_matrix(x, FRG_F64, n, width, width);
}

/** u <- H v; z is used. */
static frg_status product(embedding *e)
{
    memcpy(e->z, e->v, (size_t)(e->m * e->width) * sizeof *e->z);
    solve_block(e, &e->anchor, e->z);
    double *u = e->u;
    for (int64_t q = 0; q < e->n_queries; q++) {
        const int64_t n = e->sets[q].n;
        TRY(frg_plan_apply(e->queries[q].plan, block(e->z, e->m, e->width), 0,
                           block(u, n, e->width)));
        solve_block(e, &e->sets[q], u);
        u += n * e->width;
    }
    return FRG_OK;
}

/** v <- H' u; u is used up. */
static frg_status product_back(embedding *e)
{
    double *u = e->u;
    memset(e->v, 0, (size_t)(e->m * e->width) * sizeof *e->v);
    for (int64_t q = 0; q < e->n_queries; q++) {
        const int64_t n = e->sets[q].n;
        solve_block(e, &e->sets[q], u);
        TRY(frg_plan_apply(e->queries[q].plan, block(u, n, e->width), 1,
                           block(e->z, e->m, e->width)));
        for (int64_t i = 0; i < e->m * e->width; i++) {
            e->v[i] += e->z[i];
        }
        u += n * e->width;
    }
    solve_block(e, &e->anchor, e->v);
    return FRG_OK;
}

/** Columns of v orthonormal, by Gram and Schmidt twice. */
static void orthonormalise(embedding *e)
{
    const int64_t w = e->width;
    for (int64_t c = 0; c < w; c++) {
        for (int64_t d = 0; d < 2 * c; d++) {
            double sum = 0;
            for (int64_t j = 0; j < e->m; j++) {
                sum += e->v[j * w + c] * e->v[j * w + d % c];
            }
            for (int64_t j = 0; j < e->m; j++) {
                e->v[j * w + c] -= sum * e->v[j * w + d % c];
            }
        }
        double square = 0;
        for (int64_t j = 0; j < e->m; j++) {
            square += e->v[j * w + c] * e->v[j * w + c];
        }
        for (int64_t j = 0; j < e->m; j++) {
            e->v[j * w + c] = square > 0 ? e->v[j * w + c] / sqrt(square) : 0;
        }
    }
}

/** values (rising) and gram (eigenvectors) of u'u. */
static frg_status decompose(embedding *e)
{
    const int64_t w = e->width;
    for (int64_t c = 0; c < w; c++) {
        for (int64_t d = 0; d < w; d++) {
            double sum = 0;
            for (int64_t i = 0; i < e->total; i++) {
                sum += e->u[i * w + c] * e->u[i * w + d];
            }
            e->gram[c * w + d] = sum;
        }
    }
    const int n_work = (int)(1 + 6 * w + 2 * w * w), n_integers = (int)(3 + 5 * w);
    bool converged = false;
    const frgi_blas_guard guard = frgi_blas_begin();
#pragma omp parallel num_threads(1) /* outside of a team the BLAS would make its own */
    {
        frgi_blas_single();
        converged = frgi_dsyevd((int)w, e->gram, (int)w, e->values, e->work, n_work, e->integers,
                                n_integers);
    }
    frgi_blas_end(guard);
    if (!converged) {
        FAIL(e->ctx, E_NUMERIC, "the singular values of an embedding did not converge");
    }
    return FRG_OK;
}

/** Whether the k largest values are those of the round before, which e->before then has: to SETTLED
 *  of themselves, or where rounding in the products leaves no figure of them.  0 before: there was
 *  no such round. */
static bool have_converged(const embedding *e, int64_t k)
{
    const double *const now = e->values + e->width - k, most = e->values[e->width - 1];
    bool converged = e->before[k - 1] > 0;
    for (int64_t q = 0; q < k; q++) {
        converged = converged && fabs(now[q] - e->before[q]) <= SETTLED * now[q] + ROUNDED * most;
    }
    memcpy(e->before, now, (size_t)k * sizeof *now);
    return converged;
}

static frg_status iterate(embedding *e, int64_t k)
{
    const int64_t w = e->width;
    for (int64_t i = 0; i < e->m * w; i += 2) {
        double z[2];
        frgi_normals(frg_seed(e->ctx), STREAM_EMBED, (uint64_t)i, 0, z);
        e->v[i] = z[0];
        if (i + 1 < e->m * w) {
            e->v[i + 1] = z[1];
        }
    }
    orthonormalise(e);
    for (int round = 0; round < ROUNDS; round++) {
        TRY(product(e));
        TRY(decompose(e));
        const frg_status beat = frgi_heartbeat(e->ctx, &(frg_progress){.solver = "gw",
                                                                       .phase = "embedding",
                                                                       .done = round + 1,
                                                                       .total = ROUNDS,
                                                                       .residual = (double)NAN,
                                                                       .target = (double)NAN});
        if (beat != FRG_OK) {
            return beat;
        }
        if (have_converged(e, k)) {
            return FRG_OK;
        }
        TRY(product_back(e));
        orthonormalise(e);
    }
    TRY(product(e));
    TRY(decompose(e));
    return FRG_MAX_ITER;
}

/* ---- in and out ------------------------------------------------------------------------------ */

/** Column `to` of out <- scale times x (n x width) times the eigenvector at `place`. */
static void rotate(const double *x, int64_t n, const embedding *e, int64_t place, double scale,
                   const frg_array *out, int64_t to)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t c = 0; c < e->width; c++) {
            sum += x[i * e->width + c] * e->gram[place * e->width + c];
        }
        *(double *)(void *)(frgi_array_base(out) + (i * out->stride[0] + to * out->stride[1]) *
                                                       (int64_t)sizeof(double)) = scale * sum;
    }
}

static void write_out(const embedding *e, frg_array anchor, int64_t found)
{
    for (int64_t to = 0; to < found; to++) {
        const int64_t place = e->width - 1 - to;
        const double sigma = sqrt(fmax(e->values[place], 0));
        double most = 0;
        for (int64_t j = 0; j < e->m; j++) {
            double sum = 0;
            for (int64_t c = 0; c < e->width; c++) {
                sum += e->v[j * e->width + c] * e->gram[place * e->width + c];
            }
            most = fabs(sum) > fabs(most) ? sum : most;
        }
        const double sign = most < 0 ? -1 : 1;
        rotate(e->v, e->m, e, place, sign, &anchor, to);
        const double *u = e->u;
        for (int64_t q = 0; q < e->n_queries; q++) {
            rotate(u, e->sets[q].n, e, place, sigma > 0 ? sign / sigma : 0, &e->queries[q].out, to);
            u += e->sets[q].n * e->width;
        }
    }
}

static frg_status check_out(frg_context *ctx, const frg_array *out, int64_t n, int64_t d)
{
    TRY(frgi_array_check(ctx, out, "out", 2, 1u << FRG_F64));
    if (out->shape[0] != n || out->shape[1] != d) {
        FAIL(ctx, E_SHAPE, "out is %lld x %lld, %lld x %lld is needed", (long long)out->shape[0],
             (long long)out->shape[1], (long long)n, (long long)d);
    }
    return FRG_OK;
}

#define OPTIONS_OF frg_embed_opts
static const frg_option options[] = {
#include "gw/embed_opts.def"
    {.name = NULL}};

static frg_status check(frg_context *ctx, const frg_graph *anchor, const frg_array *out,
                        const frg_embed_query *queries, int64_t n_queries, const frg_embed_opts *o)
{
    REQUIRE(ctx, anchor && queries && n_queries >= 1, "an anchor and queries are needed");
    TRY(frgi_options_check(ctx, options, o));
    TRY(check_out(ctx, out, anchor->n, o->dimensions));
    bool directed = anchor->report.directed;
    for (int64_t q = 0; q < n_queries; q++) {
        REQUIRE(ctx, queries[q].graph && queries[q].plan, "query %lld has no graph or no plan",
                (long long)q + 1);
        const frg_plan_report p = frg_plan_get(queries[q].plan);
        if (p.n != queries[q].graph->n || p.m != anchor->n) {
            FAIL(ctx, E_SHAPE,
                 "the plan of query %lld is %lld x %lld, the graphs have %lld and %lld nodes",
                 (long long)q + 1, (long long)p.n, (long long)p.m, (long long)queries[q].graph->n,
                 (long long)anchor->n);
        }
        directed = directed || queries[q].graph->report.directed;
        TRY(check_out(ctx, &queries[q].out, p.n, o->dimensions));
    }
    if (directed) {
        FAIL(ctx, E_UNSUPPORTED, "an embedding of directed graphs");
    }
    return FRG_OK;
}

static frg_status open_all(embedding *e, const frg_graph *anchor, double lambda, int64_t k)
{
    frg_context *const ctx = e->ctx;
    const int64_t full = e->total < e->m ? e->total : e->m;
    e->width = k + EXTRA < full ? k + EXTRA : full;
    const int64_t w = e->width, most = e->total > e->m ? e->total : e->m;
    TRY(NEW(ctx, &e->v, frgi_mul((size_t)e->m, (size_t)w), "an embedding"));
    TRY(NEW(ctx, &e->z, frgi_mul((size_t)e->m, (size_t)w), "an embedding"));
    TRY(NEW(ctx, &e->u, frgi_mul((size_t)e->total, (size_t)w), "an embedding"));
    TRY(NEW(ctx, &e->scratch, frgi_mul(4 * (size_t)frg_threads(ctx), (size_t)most),
            "an embedding"));
    TRY(NEW(ctx, &e->gram, w * w, "an embedding"));
    TRY(NEW(ctx, &e->values, w, "an embedding"));
    TRY(NEW0(ctx, &e->before, w, "an embedding"));
    TRY(NEW(ctx, &e->work, 1 + 6 * w + 2 * w * w, "an embedding"));
    TRY(NEW(ctx, &e->integers, 3 + 5 * w, "an embedding"));
    TRY(open_laplacian(&e->anchor, ctx, anchor));
    double *ones;
    TRY(NEW(ctx, &ones, most, "an embedding"));
    for (int64_t i = 0; i < most; i++) {
        ones[i] = 1;
    }
    frg_status status = FRG_OK;
    for (int64_t q = 0; q < e->n_queries && status >= 0; q++) {
        laplacian *const s = &e->sets[q];
        const frg_plan *const plan = e->queries[q].plan;
        TRY_TO(done, open_laplacian(s, ctx, e->queries[q].graph));
        TRY_TO(done, frg_plan_apply(plan, block(ones, e->m, 1), 0, block(s->mass, s->n, 1)));
        TRY_TO(done, frg_plan_apply(plan, block(ones, s->n, 1), 1, block(e->z, e->m, 1)));
        for (int64_t j = 0; j < e->m; j++) {
            e->anchor.mass[j] += e->z[j];
        }
        add_masses(s, lambda);
    }
    add_masses(&e->anchor, lambda);
done:
    DROP(ctx, &ones);
    return status;
}

static void close_all(embedding *e)
{
    frg_context *const ctx = e->ctx;
    close_laplacian(&e->anchor, ctx);
    for (int64_t q = 0; e->sets && q < e->n_queries; q++) {
        close_laplacian(&e->sets[q], ctx);
    }
    DROP(ctx, &e->sets);
    DROP(ctx, &e->v);
    DROP(ctx, &e->u);
    DROP(ctx, &e->z);
    DROP(ctx, &e->scratch);
    DROP(ctx, &e->gram);
    DROP(ctx, &e->values);
    DROP(ctx, &e->before);
    DROP(ctx, &e->work);
    DROP(ctx, &e->integers);
}

const frg_option *frg_embed_options(void)
{
    return options;
}

void frg_embed_defaults(frg_embed_opts *o, size_t struct_size)
{
    frg_embed_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

frg_status frg_gw_embed(frg_context *ctx, const frg_graph *anchor, frg_array anchor_out,
                        const frg_embed_query *queries, int64_t n_queries, const frg_embed_opts *o,
                        int64_t *found)
{
    TRY(frgi_host_alone(ctx, "an embedding"));
    frg_embed_opts opts;
    frg_embed_defaults(&opts, sizeof opts);
    TRY(frgi_take_opts(ctx, &opts, sizeof opts, o));
    REQUIRE(ctx, found, "found is NULL");
    TRY(check(ctx, anchor, &anchor_out, queries, n_queries, &opts));
    embedding e = {
        .ctx = ctx, .queries = queries, .n_queries = n_queries, .m = anchor->n, .tol = opts.tol};
    for (int64_t q = 0; q < n_queries; q++) {
        e.total += queries[q].graph->n;
    }
    const int64_t least = (e.total < e.m ? e.total : e.m) - 1;
    const int64_t k = opts.dimensions + 2 < least ? opts.dimensions + 2 : least;
    REQUIRE(ctx, k >= 1, "an embedding needs two points on each side");
    frgi_run_begins(ctx);
    TRY(NEW0(ctx, &e.sets, n_queries, "an embedding"));
    frg_status status = open_all(&e, anchor, opts.lambda, k);
    if (status >= 0) {
        status = iterate(&e, k);
    }
    if (status == FRG_OK || status == FRG_MAX_ITER) {
        *found = opts.dimensions < k ? opts.dimensions : k;
        write_out(&e, anchor_out, *found);
    }
    close_all(&e);
    return status;
}
