/* test_gw_steps.c - potentials, exponents, sums and rounding of a transport problem, pairs of points
 * and the factors of their cost, plans that are averaged, in factors or kept, and plans and costs of
 * a descent are touched within the steps of gw_transport.h alone: alignments of all modes and
 * Sinkhorn solvers of all stores run with them in pages without rights in between (pages.h), with
 * the bits of a run without; a touch outside faults; each step that can fail does so once; and
 * alignments run on steps of pairs in plain loops (plain_pairs.h), with the same bits.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"
#include "gw/gw_align.h"
#include "gw/gw_sinkhorn.h"
#include "gw/gw_vertex.h"
#include "gw_data.h"
#include "pages.h"
#include "plain_pairs.h"
#include "state.h"

/* ---- the host's steps within their rights ---------------------------------------------------- */

/** guarded_TABLE_NAME: step NAME of frgi_TABLE_host_steps. */
#define STEP(table, name, parameters, arguments)                                                   \
    static frg_status guarded_##table##_##name parameters                                          \
    {                                                                                              \
        taken_##table++;                                                                           \
        return guard_enter() ? guard_leave(frgi_##table##_host_steps.name arguments) : FRG_IO;     \
    }
#define VOID_STEP(table, name, parameters, arguments)                                              \
    static void guarded_##table##_##name parameters                                                \
    {                                                                                              \
        taken_##table++;                                                                           \
        guard_begin();                                                                             \
        frgi_##table##_host_steps.name arguments;                                                  \
        (void)guard_leave(FRG_OK);                                                                 \
    }
/** A step that cannot fail and says something. */
#define ANSWER(type, table, name, parameters, arguments)                                           \
    static type guarded_##table##_##name parameters                                                \
    {                                                                                              \
        taken_##table++;                                                                           \
        guard_begin();                                                                             \
        const type result = frgi_##table##_host_steps.name arguments;                              \
        (void)guard_leave(FRG_OK);                                                                 \
        return result;                                                                             \
    }
static _Atomic int64_t taken_transport, taken_exact, taken_landmark, taken_lowrank, taken_pairs,
    taken_kept, taken_descent;

/* clang-format off */
VOID_STEP(transport, clear, (frgi_transport *t), (t))
VOID_STEP(transport, restart, (frgi_transport *t), (t))
VOID_STEP(transport, unround, (frgi_transport *t), (t))
VOID_STEP(transport, copy, (const frgi_transport *t, void *to, const void *from, size_t bytes), (t, to, from, bytes))
VOID_STEP(transport, set_dummy, (frgi_transport *t), (t))
VOID_STEP(transport, renew, (frgi_transport *t, double epsilon, frgi_fill fill, const void *source),
          (t, epsilon, fill, source))
VOID_STEP(transport, widen, (frgi_transport *t), (t))
VOID_STEP(transport, pass, (frgi_transport *t), (t))
VOID_STEP(transport, end_plain, (frgi_transport *t), (t))
STEP(transport, solve, (frgi_transport *t, double tol, int64_t most), (t, tol, most))
ANSWER(double, transport, change, (const frgi_transport *t, const double *before), (t, before))
VOID_STEP(transport, marginals, (const frgi_transport *t, double *rows, double *columns), (t, rows, columns))
ANSWER(double, transport, share, (const frgi_transport *t, const int32_t *row, const int32_t *column),
       (t, row, column))
VOID_STEP(transport, rows, (const frgi_transport *t, int64_t first, int64_t last, int64_t chunks,
          const int64_t *chosen, frgi_row_visitor visit, void *user), (t, first, last, chunks, chosen, visit, user))
STEP(transport, finish, (frgi_transport *t, bool round, frgi_marginal_error *before, frgi_marginal_error *after),
     (t, round, before, after))
STEP(transport, unroll, (const frgi_transport *t, const frg_array *g, const frg_array *out, double *a, double *b),
     (t, g, out, a, b))
VOID_STEP(transport, move, (frgi_transport *t, const int32_t *row, const int32_t *column,
          const unsigned char *first, double *room), (t, row, column, first, room))

#define AVERAGE_STEPS(table)                                                                       \
    VOID_STEP(table, load, (frgi_average *e, bool second, const float *all), (e, second, all))     \
    VOID_STEP(table, begin, (frgi_average *e), (e))                                                \
    STEP(table, linearise, (frgi_average *e), (e))                                                 \
    STEP(table, average, (frgi_average *e), (e))                                                   \
    static const struct frgi_average_steps guarded_##table##_steps = {                             \
        .load = guarded_##table##_load,                                                            \
        .begin = guarded_##table##_begin,                                                          \
        .linearise = guarded_##table##_linearise,                                                  \
        .average = guarded_##table##_average};
AVERAGE_STEPS(exact)
AVERAGE_STEPS(landmark)

VOID_STEP(lowrank, clear, (frgi_lowrank *w), (w))
STEP(lowrank, random, (frgi_lowrank *w, uint64_t run), (w, run))
STEP(lowrank, again, (frgi_lowrank *w, int64_t passes), (w, passes))
VOID_STEP(lowrank, draw, (const frgi_lowrank *w, int64_t count, uint64_t stream, frgi_pair *out),
          (w, count, stream, out))
VOID_STEP(lowrank, centre, (frgi_lowrank *w, bool second, const float *rows, double scale), (w, second, rows, scale))
STEP(lowrank, derive, (frgi_lowrank *w, double *value), (w, value))
STEP(lowrank, mirror, (frgi_lowrank *w, double pace), (w, pace))
VOID_STEP(lowrank, copy, (frgi_lowrank *w, frgi_copy what), (w, what))
VOID_STEP(lowrank, round, (frgi_lowrank *w), (w))
VOID_STEP(lowrank, pack, (frgi_factored *f, const double *a), (f, a))

VOID_STEP(pairs, clear, (frgi_level *l), (l))
VOID_STEP(pairs, no_cost, (frgi_level *l), (l))
STEP(pairs, means, (frgi_level *l), (l))
VOID_STEP(pairs, draw_product, (frgi_level *l, uint64_t stream), (l, stream))
STEP(pairs, draw, (frgi_level *l, bool averaged, int64_t count, uint64_t stream, frgi_pair *out),
     (l, averaged, count, stream, out))
VOID_STEP(pairs, take, (frgi_level *l, const frgi_waiting *places, int64_t count), (l, places, count))
STEP(pairs, distances, (frgi_level *l, int64_t R), (l, R))
VOID_STEP(pairs, divide, (frgi_level *l, int64_t R), (l, R))
VOID_STEP(pairs, terms, (frgi_level *l, int64_t R, double scale), (l, R, scale))
VOID_STEP(pairs, put_terms, (frgi_level *l, const double *of_rows, const double *of_columns),
          (l, of_rows, of_columns))
VOID_STEP(pairs, pack, (frgi_level *l, int64_t R), (l, R))
VOID_STEP(pairs, mean_squares, (const frgi_level *l, bool second, double *out), (l, second, out))
STEP(pairs, order, (const frgi_level *l, bool second, int32_t *order), (l, second, order))

VOID_STEP(kept, clear, (frgi_level *l), (l))
VOID_STEP(kept, reset, (frgi_level *l, bool known), (l, known))
VOID_STEP(kept, fold_plan, (frgi_level *l), (l))
VOID_STEP(kept, fold_sums, (frgi_level *l), (l))
VOID_STEP(kept, rows, (const frgi_level *l, const int64_t *first, frgi_row_visitor visit, void *user),
          (l, first, visit, user))

VOID_STEP(descent, clear, (frgi_descent *d), (d))
VOID_STEP(descent, start, (const frgi_features *f, int which, frgi_descent *d), (f, which, d))
VOID_STEP(descent, linearise, (frgi_descent *d, const frgi_sparse *p), (d, p))
VOID_STEP(descent, put_costs, (frgi_descent *d, const frgi_costs *from), (d, from))
VOID_STEP(descent, get_costs, (const frgi_descent *d, frgi_costs *to), (d, to))
VOID_STEP(descent, begin, (frgi_descent *d), (d))
VOID_STEP(descent, resume, (frgi_descent *d, const frgi_sparse *plan, double energy, bool is_vertex, bool follows),
          (d, plan, energy, is_vertex, follows))
VOID_STEP(descent, get_plan, (const frgi_descent *d, frgi_entry *out), (d, out))
ANSWER(double, descent, dual, (const frgi_descent *d), (d))
VOID_STEP(descent, duals, (const frgi_descent *d, double *x, double *y), (d, x, y))
ANSWER(bool, descent, rough_vertex, (frgi_descent *d, int64_t every, double beta), (d, every, beta))
ANSWER(double, descent, vertex_energy, (const frgi_descent *d), (d))
VOID_STEP(descent, move_to_vertex, (frgi_descent *d, double energy), (d, energy))
VOID_STEP(descent, know_costs, (frgi_descent *d), (d))
ANSWER(bool, descent, vertex, (frgi_descent *d, bool moved), (d, moved))
ANSWER(double, descent, line_search, (const frgi_descent *d, double *gain), (d, gain))
ANSWER(bool, descent, take_vertex, (frgi_descent *d), (d))
ANSWER(bool, descent, move_inside, (frgi_descent *d, double t, double gain), (d, t, gain))
VOID_STEP(descent, take_last, (frgi_descent *d), (d))
ANSWER(bool, descent, exchange, (frgi_descent *d), (d))
/* clang-format on */

static const struct frgi_lowrank_steps guarded_lowrank_steps = {.clear = guarded_lowrank_clear,
                                                                .random = guarded_lowrank_random,
                                                                .again = guarded_lowrank_again,
                                                                .draw = guarded_lowrank_draw,
                                                                .centre = guarded_lowrank_centre,
                                                                .derive = guarded_lowrank_derive,
                                                                .mirror = guarded_lowrank_mirror,
                                                                .copy = guarded_lowrank_copy,
                                                                .round = guarded_lowrank_round,
                                                                .pack = guarded_lowrank_pack};

static const struct frgi_pairs_steps guarded_pairs_steps = {
    .clear = guarded_pairs_clear,
    .no_cost = guarded_pairs_no_cost,
    .means = guarded_pairs_means,
    .draw_product = guarded_pairs_draw_product,
    .draw = guarded_pairs_draw,
    .take = guarded_pairs_take,
    .distances = guarded_pairs_distances,
    .divide = guarded_pairs_divide,
    .terms = guarded_pairs_terms,
    .put_terms = guarded_pairs_put_terms,
    .pack = guarded_pairs_pack,
    .mean_squares = guarded_pairs_mean_squares,
    .order = guarded_pairs_order};

static const struct frgi_kept_steps guarded_kept_steps = {.clear = guarded_kept_clear,
                                                          .reset = guarded_kept_reset,
                                                          .fold_plan = guarded_kept_fold_plan,
                                                          .fold_sums = guarded_kept_fold_sums,
                                                          .rows = guarded_kept_rows};
static const struct frgi_descent_steps guarded_descent_steps = {
    .clear = guarded_descent_clear,
    .start = guarded_descent_start,
    .linearise = guarded_descent_linearise,
    .put_costs = guarded_descent_put_costs,
    .get_costs = guarded_descent_get_costs,
    .begin = guarded_descent_begin,
    .resume = guarded_descent_resume,
    .get_plan = guarded_descent_get_plan,
    .dual = guarded_descent_dual,
    .duals = guarded_descent_duals,
    .rough_vertex = guarded_descent_rough_vertex,
    .vertex_energy = guarded_descent_vertex_energy,
    .move_to_vertex = guarded_descent_move_to_vertex,
    .know_costs = guarded_descent_know_costs,
    .vertex = guarded_descent_vertex,
    .line_search = guarded_descent_line_search,
    .take_vertex = guarded_descent_take_vertex,
    .move_inside = guarded_descent_move_inside,
    .take_last = guarded_descent_take_last,
    .exchange = guarded_descent_exchange};

static int64_t moves;

static void counted_move(frgi_transport *t, const int32_t *row, const int32_t *column,
                         const unsigned char *first, double *room)
{
    moves++;
    guarded_transport_move(t, row, column, first, room);
}

static const frgi_transport_steps guarded_steps = {.open = guard_open,
                                                   .close = guard_close,
                                                   .clear = guarded_transport_clear,
                                                   .restart = guarded_transport_restart,
                                                   .unround = guarded_transport_unround,
                                                   .copy = guarded_transport_copy,
                                                   .set_dummy = guarded_transport_set_dummy,
                                                   .renew = guarded_transport_renew,
                                                   .widen = guarded_transport_widen,
                                                   .pass = guarded_transport_pass,
                                                   .end_plain = guarded_transport_end_plain,
                                                   .solve = guarded_transport_solve,
                                                   .change = guarded_transport_change,
                                                   .marginals = guarded_transport_marginals,
                                                   .share = guarded_transport_share,
                                                   .move = counted_move,
                                                   .rows = guarded_transport_rows,
                                                   .finish = guarded_transport_finish,
                                                   .unroll = guarded_transport_unroll,
                                                   .exact = &guarded_exact_steps,
                                                   .landmark = &guarded_landmark_steps,
                                                   .lowrank = &guarded_lowrank_steps,
                                                   .pairs = &guarded_pairs_steps,
                                                   .kept = &guarded_kept_steps,
                                                   .descent = &guarded_descent_steps};

/* ---- problems -------------------------------------------------------------------------------- */

enum { N = 40, M = 36, CELLS = N * M, MANY = 1008, TOP = 3 };

static double points_x[MANY * 2], points_y[MANY * 2], cells[CELLS], weights[N];
static char path[sizeof STATE_PATH];

typedef enum {
    RELAXED,
    PARTIAL,
    PRODUCT,
    FLY,
    EXACT,
    LANDMARK,
    FACTORS,
    COARSE,
    STORED,
    DIAGONAL,
    LINEAR,
    WIDE,
    GIVEN_PLAN,
    GIVEN_POTENTIALS,
    NO_STEPS,
    AT_VERTEX,
    STARTS,
    BATCH,
    MULTINOMIAL,
    SAMPLED,
    ORDERED,
    VERTICES,   /* a transport in doubles, with a linear cost */
    ASSIGNMENT, /* in doubles, with exchanges */
    FLOATS,
    RACED, /* on fewer points first, and in floats first */
    ROUGH, /* steps on costs of some rows */
    KINDS
} kind;

static void make_data(uint64_t seed)
{
    test_now.random = seed;
    for (int i = 0; i < MANY * 2; i++)
        points_x[i] = points_y[i] = test_normal();
    for (int i = 0; i < 2 * M; i++)
        points_y[i] = test_normal();
    for (int i = 0; i < CELLS; i++)
        cells[i] = test_uniform();
    for (int i = 0; i < N; i++)
        weights[i] = 0.5 + test_uniform();
}

/** Points of a side; VERTICES and those with entropy have N and M. */
static int64_t points_of(kind k)
{
    return k == ORDERED ? MANY : k == RACED ? 140 : k == ROUGH ? 470 : M;
}

/** Few pairs and distances as they are, for runs whose bits those in plain loops have. */
static bool few_pairs;

static frg_gw_opts options_of(kind k)
{
    if (k >= VERTICES) {
        frg_gw_opts vertex;
        frg_gw_defaults(&vertex, sizeof vertex);
        vertex.mode = FRG_GW_VERTEX;
        vertex.distance = FRG_GW_DISTANCE_EUCLIDEAN;
        vertex.dtype = k == FLOATS  ? FRG_GW_DTYPE_F32
                       : k == RACED ? FRG_GW_DTYPE_F64
                                    : FRG_GW_DTYPE_AUTO;
        vertex.linear_weight = k == VERTICES ? 0.4 : 0;
        return vertex;
    }
    frg_gw_opts o = options(k == LANDMARK ? FRG_GW_DISTANCE_LANDMARK : FRG_GW_DISTANCE_EUCLIDEAN);
    o.mode = k == EXACT ? FRG_GW_EXACT : k == LANDMARK ? FRG_GW_LANDMARK : FRG_GW_SAMPLED;
    o.k = o.landmarks = 8;
    o.epsilon = 0.01;
    o.multiscale = k == COARSE ? FRG_GW_MULTISCALE_ON : FRG_GW_MULTISCALE_OFF;
    o.n_start = k == STARTS || k == COARSE ? 2 : 1;
    o.min_iter = 10;
    o.max_iter = k == NO_STEPS ? 0 : k == STARTS ? 60 : k == ORDERED ? 12 : 20;
    o.lambda_ema_beta = 0.5;
    o.polish_passes = 30;
    o.rho_source = o.rho_target = k == RELAXED || k == PRODUCT ? 0.5 : o.rho_source;
    o.reference = k == PRODUCT ? FRG_GW_REFERENCE_PRODUCT : FRG_GW_REFERENCE_COUNTING;
    o.mass = k == PARTIAL || k == DIAGONAL ? 0.7 : 0;
    o.cost_store = k == FLY ? FRG_GW_STORE_FLY : FRG_GW_STORE_AUTO;
    o.rank = k == FACTORS ? 3 : 0;
    o.store_plan = k == STORED;
    o.diag_exact = k == DIAGONAL;
    o.anchors = few_pairs && k != EXACT && k != LANDMARK ? 12 : o.anchors;
    o.scale = k == BATCH ? FRG_GW_SCALE_BATCH_MAX : few_pairs ? FRG_GW_SCALE_NONE : o.scale;
    o.sampling = k == MULTINOMIAL ? FRG_GW_MULTINOMIAL : FRG_GW_SYSTEMATIC;
    o.linear_weight = k == LINEAR ? 0.4 : 0;
    o.polish_tol = k == WIDE ? 1e-8 : 1e-4;
    o.start_from = k == AT_VERTEX ? FRG_GW_START_VERTEX : FRG_GW_START_PRODUCT;
    if (k == ORDERED) { /* a narrow plan, which is polished in another order */
        o.epsilon = 1e-4;
        o.start_from = FRG_GW_START_PROFILES;
    }
    return o;
}

static frg_status start(frg_gw *s, kind k)
{
    double f[N + M];
    for (int i = 0; i < N + M; i++)
        f[i] = 0.01 * cells[i];
    return k == GIVEN_POTENTIALS              ? frg_gw_start_potentials(s, f, f + N)
           : k == GIVEN_PLAN || k == NO_STEPS ? frg_gw_start_plan(s, matrix(cells, N, M))
                                              : FRG_OK;
}

static frg_status open_kind(frg_gw **s, frg_context *ctx, kind k, const frgi_transport_steps *steps)
{
    const bool equal = k == ORDERED || k > VERTICES, linear_cost = k == LINEAR || k == VERTICES;
    const int64_t m = points_of(k), n = equal ? m : N;
    const frg_array x = matrix(points_x, n, 2), y = matrix(points_y, m, 2),
                    linear = matrix(cells, N, M);
    const frg_gw_opts o = options_of(k);
    const frg_status status =
        frgi_gw_open(s, ctx, (frgi_gw_place){.steps = steps},
                     (frg_gw_side){.data = &x, .weights = equal ? NULL : weights},
                     (frg_gw_side){.data = &y}, linear_cost ? &linear : NULL, &o);
    return status < 0 ? status : start(*s, k);
}

/** Everything that is read of a plan. */
static frg_status read_plan(const frg_plan *p, uint64_t *hash)
{
    static double rows[MANY * MANY / 8], value[MANY * TOP], out[MANY * 2];
    static int64_t index[MANY * TOP], starts[MANY + 1];
    const frg_plan_report r = frg_plan_get(p);
    const int64_t few = r.n < 100 ? r.n : 100;
    frg_status status = frg_plan_rows(p, 0, few, matrix(rows, few, r.m));
    fault_hash(hash, &r, sizeof r);
    fault_hash(hash, rows, (size_t)(few * r.m) * sizeof *rows);
    status = status < 0 ? status : frg_plan_top(p, TOP, index, value);
    fault_hash(hash, value, (size_t)(r.n * TOP) * sizeof *value);
    status = status < 0 ? status : frg_plan_argmax(p, index);
    fault_hash(hash, index, (size_t)r.n * sizeof *index);
    status = status < 0 ? status : frg_plan_sparse(p, 1e-4, starts, NULL, NULL);
    fault_hash(hash, starts, (size_t)(r.n + 1) * sizeof *starts);
    status =
        status < 0 ? status : frg_plan_apply(p, matrix(points_y, r.m, 2), 0, matrix(out, r.n, 2));
    fault_hash(hash, out, (size_t)(r.n * 2) * sizeof *out);
    return status;
}

static frg_status run_once(frg_gw *s, uint64_t *hash)
{
    double f[MANY], g[MANY];
    const frg_status ended = frg_gw_run(s, NULL);
    if (ended < 0)
        return ended;
    const frg_gw_report *const r = frg_gw_get(s);
    const double numbers[] = {
        r->energy,      r->energy_standard_error,    r->objective,
        r->epsilon_end, (double)r->outer_iterations, (double)r->inner_iterations};
    fault_hash(hash, numbers, sizeof numbers);
    frg_status status = read_plan(frg_gw_plan(s), hash);
    if (status >= 0 && frg_gw_rank(s) == 0 && !s->level.t.list) {
        status = frg_gw_potentials(s, f, g);
        fault_hash(hash, f, (size_t)r->n * sizeof *f);
        fault_hash(hash, g, (size_t)r->m * sizeof *g);
    }
    return status;
}

static frg_status put_state(const void *solver, frg_checkpoint *c)
{
    return frg_gw_save(solver, c);
}

static frg_status keep_run(void *user, const frg_gw *s, int stopped)
{
    return stopped ? FRG_OK : keep(user, s, stopped);
}

/** A run that writes its third state, and one that goes on from it. */
static frg_status align(frg_context *ctx, int row, const frgi_transport_steps *steps,
                        uint64_t *hash)
{
    const kind k = (kind)row;
    keeper keep_one = {.ctx = ctx, .name = "gw", .put = put_state, .path = path, .at = 3};
    frg_gw *s = NULL, *again = NULL;
    frg_checkpoint *c = NULL;
    make_data((uint64_t)row + 1);
    frg_status status = open_kind(&s, ctx, k, steps);
    if (status >= 0) {
        frg_gw_keep(s, keep_run, &keep_one);
        status = run_once(s, hash);
    }
    frg_gw_destroy(s);
    if (status >= 0 && keep_one.calls >= keep_one.at && k != ORDERED) {
        status = frg_checkpoint_load(&c, ctx, path);
        status = status < 0 ? status : open_kind(&again, ctx, k, steps);
        status = status < 0 ? status : frg_gw_resume(again, c);
        status = status < 0 ? status : run_once(again, hash);
    }
    frg_gw_destroy(again);
    frg_checkpoint_destroy(c);
    return status;
}

/* ---- Sinkhorn -------------------------------------------------------------------------------- */

enum { SOLVERS = 10 };

static frg_sinkhorn_opts solver_options(int row)
{
    static const frg_gw_store stores[SOLVERS] = {
        FRG_GW_STORE_F32, FRG_GW_STORE_U16, FRG_GW_STORE_U16R, FRG_GW_STORE_FLY, FRG_GW_STORE_F64};
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = 0.02;
    o.max_iter = 300;
    o.cost_store = stores[row];
    o.domain = row == 5 || row == 6 ? FRG_GW_DOMAIN_KERNEL : FRG_GW_DOMAIN_AUTO;
    o.kernel_store = row == 6 ? FRG_GW_KERNEL_BF16 : FRG_GW_KERNEL_AUTO;
    o.rho_source = o.rho_target = row == 7 ? 0.5 : o.rho_source;
    o.mass = row == 8 ? 0.6 : 0;
    o.round = row < 9;
    return o;
}

static frg_status pull(const frg_plan *p, frg_gw_grad_mode mode, uint64_t *hash)
{
    double out[CELLS] = {0}, a[N] = {0}, b[M] = {0};
    const frg_status status = frg_plan_vjp(p, matrix(cells, N, M), mode, matrix(out, N, M), a, b);
    if (status >= 0) {
        fault_hash(hash, out, sizeof out);
        fault_hash(hash, a, sizeof a);
        fault_hash(hash, b, sizeof b);
    }
    return status == FRG_UNSUPPORTED ? FRG_OK : status;
}

static frg_status transport(frg_context *ctx, int row, const frgi_transport_steps *steps,
                            uint64_t *hash)
{
    double f[N], g[M];
    frg_sinkhorn *s = NULL;
    const frg_sinkhorn_opts o = solver_options(row);
    make_data((uint64_t)row + 100);
    frg_status status =
        frgi_sinkhorn_open(&s, ctx, (frgi_sinkhorn_place){.steps = steps}, matrix(cells, N, M),
                           row == 7 ? weights : NULL, NULL, &o);
    for (int turn = 0; turn < 2 && status >= 0; turn++) { /* then from other potentials */
        status = turn == 0 ? FRG_OK : frg_sinkhorn_start(s, cells, cells + N);
        status = status < 0 ? status : frg_sinkhorn_run(s, NULL);
        status = status < 0 ? status : read_plan(frg_sinkhorn_plan(s), hash);
        status = status < 0 ? status : frg_sinkhorn_potentials(s, f, g);
        fault_hash(hash, f, sizeof f);
        fault_hash(hash, g, sizeof g);
        for (int mode = 0; mode < 3 && status >= 0; mode++)
            status = pull(frg_sinkhorn_plan(s), (frg_gw_grad_mode)mode, hash);
    }
    frg_sinkhorn_destroy(s);
    return status;
}

/* ---- cases ----------------------------------------------------------------------------------- */

typedef frg_status (*solver)(frg_context *ctx, int row, const frgi_transport_steps *steps,
                             uint64_t *hash);

/** Rows from `raced` on have steps of several threads that overlap; they run with one thread, too. */
static void compare(solver run, int rows, int raced)
{
    open_path(path);
    for (int row = 0; row < rows; row++) {
        frg_context *ctx = test_context(), *alone = test_context_with(1, NULL, NULL);
        uint64_t want = 0;
        const frg_status ended = run(ctx, row, NULL, &want);
        CHECK_SAYS(ended >= 0, "%d: %s", row, frg_message(ctx));
        for (int turn = row < raced; turn < 2; turn++) {
            uint64_t got = 0;
            guard.opened = 0;
            CHECK_STATUS(run(turn ? ctx : alone, row, &guarded_steps, &got), ended);
            CHECK_SAYS(got == want, "%d: other bits", row);
            CHECK(guard.opened > 0);
            CHECK_INT(guard.arenas, 0);
            CHECK_INT(guard.depth, 0);
        }
        frg_context_destroy(alone);
        frg_context_destroy(ctx);
    }
    close_path(path);
}

static void alignments(void)
{
    moves = 0;
    compare(align, KINDS, VERTICES);
    CHECK_SAYS(taken_exact > 50 && taken_landmark > 50 && taken_lowrank > 100,
               "steps: exact %lld, landmark %lld, factors %lld", (long long)taken_exact,
               (long long)taken_landmark, (long long)taken_lowrank);
    CHECK_SAYS(taken_pairs > 1000, "%lld steps of pairs", (long long)taken_pairs);
    CHECK_SAYS(taken_kept > 50, "%lld steps of plans that are kept", (long long)taken_kept);
    CHECK_SAYS(taken_descent > 1000, "%lld steps of descents", (long long)taken_descent);
    CHECK_SAYS(moves > 0 && moves % 2 == 0, "%lld moves", (long long)moves); /* there and back */
}

/** Whole runs on steps of pairs in plain loops have the bits of the host's. */
static void pairs_in_plain_loops(void)
{
    static frgi_transport_steps steps;
    steps = frgi_transport_host_steps;
    steps.pairs = &plain_pairs_steps;
    few_pairs = true;
    open_path(path);
    for (int row = 0; row <= SAMPLED; row++) {
        frg_context *ctx = test_context();
        uint64_t want = 0, got = 0;
        plain_calls = 0;
        const frg_status ended = align(ctx, row, NULL, &want);
        CHECK_SAYS(ended >= 0, "%d: %s", row, frg_message(ctx));
        CHECK_STATUS(align(ctx, row, &steps, &got), ended);
        CHECK_SAYS(got == want, "%d: other bits in plain loops", row);
        CHECK_SAYS(plain_calls >= 3, "%d: %lld steps", row, (long long)plain_calls);
        frg_context_destroy(ctx);
    }
    close_path(path);
    few_pairs = false;
}

static void solvers(void)
{
    compare(transport, SOLVERS, SOLVERS);
}

/** Reads a number between two steps: of an alignment, of a descent. */
static double touch(frg_context *ctx, kind k)
{
    frg_gw *s = NULL;
    frgi_gw_problem p;
    frgi_descent d;
    make_data(1);
    if (open_kind(&s, ctx, k, &guarded_steps) < 0)
        _exit(3);
    if (k == VERTICES) {
        if (frgi_gw_problem_open(s, FRG_GW_DTYPE_F64, &p) < 0 || frgi_descent_open(&d, &p.s, 1) < 0)
            _exit(3);
        return *(volatile double *)d.k_plan.at;
    }
    if (frg_gw_run(s, NULL) < 0)
        _exit(3);
    if (k == SAMPLED)
        return (double)*(volatile float *)s->level.product.right;
    return *(volatile double *)(k == FACTORS ? s->factors.q : s->level.t.s.F);
}

/** In a process of its own. */
static bool touch_faults(kind k)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        frg_context *ctx = test_context_with(1, NULL, NULL);
        signal(SIGSEGV, SIG_DFL);
        _exit(touch(ctx, k) > 0 ? 1 : 2);
    }
    int how = 0;
    return CHECK(child > 0 && waitpid(child, &how, 0) == child) &&
           (WIFSIGNALED(how) ||
            WEXITSTATUS(how) > 3); /* a sanitizer ends it with a status of its own */
}

static void a_touch_faults(void)
{
    CHECK(touch_faults(SAMPLED));
    CHECK(touch_faults(FACTORS));
    CHECK(touch_faults(EXACT));
    CHECK(touch_faults(VERTICES));
}

/** Each step that can fail does so once: a run says so, and nothing is left behind. */
static void each_step_fails(void)
{
    static const int rows[] = {SAMPLED, COARSE, EXACT, LANDMARK, FACTORS, VERTICES};
    open_path(path);
    for (size_t r = 0; r < sizeof rows / sizeof *rows + 1; r++) {
        fault_memory memory;
        fault_memory_open(&memory);
        frg_context *ctx = test_context_with(1, &memory.table, NULL);
        const solver run = r < sizeof rows / sizeof *rows ? align : transport;
        const int row = run == align ? rows[r] : 0;
        uint64_t hash = 0;
        CHECK(run(ctx, row, NULL, &hash) >= 0);
        frg_warnings_clear(ctx);
        const int64_t live = memory.live_blocks; /* the context keeps room for warnings */
        int64_t failed = 0;
        bool reached = true;
        for (int64_t k = 1; reached && k < 200; k += 1 + k / 6) {
            guard.calls = 0;
            guard.fail_at = k;
            const frg_status s = run(ctx, row, &guarded_steps, &hash);
            reached = guard.calls >= k;
            failed += reached && s == FRG_IO;
            CHECK_SAYS(s == FRG_IO || s >= 0, "step %lld: %s", (long long)k, frg_status_name(s));
            frg_warnings_clear(ctx);
            CHECK_INT(guard.arenas, 0);
            CHECK_INT(guard.depth, 0);
            CHECK_INT(memory.live_blocks, live);
        }
        CHECK(failed > 1);
        guard.fail_at = 0;
        frg_context_destroy(ctx);
        CHECK_INT(memory.broken, 0);
    }
    close_path(path);
}

static const test_case cases[] = {
    {"alignments out of reach", alignments},   {"pairs in plain loops", pairs_in_plain_loops},
    {"solvers out of reach", solvers},         {"a touch faults", a_touch_faults},
    {"each step fails once", each_step_fails},
};
TEST_MAIN(cases)
