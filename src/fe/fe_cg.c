/* fe_cg.c - the recurrence of fe_cg.h (Hestenes and Stiefel 1952), column by column in a block.
 *
 *     q = S p, alpha = rho / p'q,  a += alpha p,  r -= alpha q,
 *     rho' = r'M^-1 r,  p = M^-1 r + (rho'/rho) p
 *
 * b'a grows by alpha rho a step; what is left of the within sum of squares is the demeaned
 * column's, which gives the scale of the stopping test without touching a row.  The coefficients
 * alpha and beta are the Lanczos matrix of M^-1 S,
 *
 *     T_jj = 1/alpha_j + beta_(j-1)/alpha_(j-1),   T_(j,j-1)^2 = beta_(j-1)/alpha_(j-1)^2,
 *
 * and its smallest eigenvalue bounds the error (error_bound of fourge/fe.h).
 *
 * The last step of a column needs no product where alpha can be predicted: on a graph that mixes
 * well alpha converges after a few steps, and a relative error e of alpha adds e |r| to the
 * residual.  The last pass over the rows audits what is left.
 *
 * Where the method is forced, so that no other solver follows, a column is given up once two
 * forecasts agree that it needs 4 times the steps it has left (`forecast` of fe_cg_target).  d_k is
 * the logarithm of what step k has left over the target.  From the contraction of the last half of
 * the steps, and from the extreme Ritz values theta of T,
 *
 *     d_k (k/2) / (d_(k/2) - d_k)   and   d_k sqrt(theta_max / theta_min) / 2
 *
 * are two forecasts of the steps still needed.  The first is too large on a plateau before
 * superlinear convergence, the second where few eigenvalues are small: neither is a bound, and a
 * column that is given up might have converged.
 */
#include "fe/fe_cg.h"

#include "core/host_step.h"
#include "core/tree_sum.h"
#include "fe/fe_runs.h"
#include "fe/fe_steps.h"
#include "sparse/ritz.h"

#include <math.h>
#include <string.h>

enum { FORECAST_STEPS = 6 /* steps before the contraction is known */ };
static const double PROBE_GOAL = 1e-11;
enum {
    FE_LOW_LEVELS = 8192, /* below, the pairs of four columns lie in the nearer caches anyway */
    FE_LOW_SUM = 1024     /* rows of a level of either factor that are added up in float32 */
};
enum {
    FORECAST_CHECKS = 32
}; /* of the steps a column may make; the first after an eighth of them */
static const double FORECAST_CAUTION = 4; /* the forecast exceeds the steps left by this factor */
static const double LOW_ERROR = 1e-6;     /* relative error assumed of a product in float32 */
static const double CAUTION =
    3; /* safety factor on the residual predicted after a step without a product */

/** The last step of a column. */
typedef struct {
    double alpha, alpha_change; /* its length, and the relative change since the step before */
    double gradient, max_mean, rate;
    int64_t steps;
} step_record;

/** The state of the recurrence, by lane. */
struct fe_recurrence {
    double rho[FE_MAX_LANES], first_rho[FE_MAX_LANES]; /* r'M^-1 r, now and at the start */
    double first_gradient[FE_MAX_LANES];
    double alpha[FE_MAX_LANES], beta[FE_MAX_LANES];
    double last[FE_MAX_LANES]; /* the step without a product that follows this one; 0: none */
    double carry[FE_MAX_LANES], carry2[FE_MAX_LANES]; /* beta/alpha, beta/alpha^2 */
    double sums[FE_SUMS][FE_MAX_LANES];               /* of the residual */
    step_record history[FE_MAX_LANES];
    double worst; /* what the last step has left of the gradients */
    double distance[FORECAST_CHECKS + 1][FE_MAX_LANES]; /* after each 32nd of a column's steps */
    fe_cg_target target[FE_MAX_LANES];
    fe_cg_column column[FE_MAX_LANES];
};
typedef struct fe_recurrence fe_recurrence;

static void layout_sums(frgi_arena *a, int64_t n, int lanes, fe_cg_work *w)
{
    w->state = TAKE(a, fe_recurrence, 1);
    w->sums = TAKE(a, double, (fe_pieces(n) + 1) * FE_SUMS * lanes);
    w->diagonal = TAKE(a, double, (int64_t)FE_HISTORY *lanes);
    w->below2 = TAKE(a, double, (int64_t)FE_HISTORY *lanes);
}

void frgi_fe_cg_layout(frgi_arena *a, int64_t n, int lanes, fe_cg_work *w)
{
    double **const vectors[] = {&w->x, &w->r, &w->q, &w->z};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        *vectors[i] = TAKE(a, double, frgi_mul((size_t)n, (size_t)lanes));
    }
    w->p = TAKE(a, double, frgi_mul((size_t)n, (size_t)lanes));
    layout_sums(a, n, lanes, w);
}

/** Everything one run carries. */
typedef struct {
    const fe_system *s;
    const fe_reduced_ops *ops, *ops64; /* for the direction's type, and for double */
    const fe_cg_work *w;
    int lanes, threads;
    int64_t n, pieces;
} cg;

static inline int64_t piece_end(const cg *c, int64_t piece)
{
    const int64_t end = (piece + 1) * FE_PIECE;
    return end < c->n ? end : c->n;
}

/* One string literal: clang joins none in _Pragma. */
/* clang-format off */
#define FOR_PIECES(c, piece)                                                                       \
    _Pragma("omp parallel for num_threads((c)->threads) if ((c)->pieces > 4)")                     \
    for (int64_t piece = 0; piece < (c)->pieces; piece++)
/* clang-format on */

/** total[k] = p_k . q_k */
static void dots(const cg *c, const fe_reduced_ops *ops, const void *p, const double *q,
                 double *total)
{
    FOR_PIECES(c, i)
    {
        ops->dot(i * FE_PIECE, piece_end(c, i), p, q, c->w->sums + i * c->lanes);
    }
    frgi_tree_rows(c->w->sums, c->pieces, c->lanes, c->lanes, total);
}

/** sums[FE_SUM_..][k] over all pieces */
static void update(const cg *c, const double *alpha, double sums[FE_SUMS][FE_MAX_LANES])
{
    const fe_cg_work *w = c->w;
    const int64_t stride = FE_SUMS * c->lanes;
    FOR_PIECES(c, i)
    {
        c->ops->update(i * FE_PIECE, piece_end(c, i), alpha, w->p, w->q, c->s->inverse_diag,
                       c->s->level_inverse, w->x, w->r, w->sums + i * stride);
    }
    memset(sums, 0, FE_SUMS * sizeof *sums);
    frgi_tree_rows(w->sums + FE_SUM_RHO * c->lanes, c->pieces, stride, c->lanes, sums[FE_SUM_RHO]);
    frgi_tree_rows(w->sums + FE_SUM_GRADIENT * c->lanes, c->pieces, stride, c->lanes,
                   sums[FE_SUM_GRADIENT]);
    for (int64_t i = 0; i < c->pieces; i++) {
        for (int k = 0; k < c->lanes; k++) {
            const double max_mean = w->sums[i * stride + FE_SUM_MAX * c->lanes + k];
            sums[FE_SUM_MAX][k] = max_mean > sums[FE_SUM_MAX][k] ? max_mean : sums[FE_SUM_MAX][k];
        }
    }
}

static void direction(const cg *c, const double *beta)
{
    const double *d = c->s->precondition ? NULL : c->s->inverse_diag;
    const double *z = c->s->precondition ? c->w->z : c->w->r;
    FOR_PIECES(c, i)
    {
        c->ops->direction(i * FE_PIECE, piece_end(c, i), beta, d, z, c->w->p);
    }
}

/** rho = r'M^-1 r where the preconditioner is a callback; the Jacobi one comes with the update. */
static frg_status precondition(const cg *c, double *rho)
{
    if (!c->s->precondition) {
        return FRG_OK;
    }
    const frg_status status =
        c->s->precondition(c->s->precondition_data, c->lanes, c->w->r, c->w->z);
    if (status == FRG_OK) {
        dots(c, c->ops64, c->w->r, c->w->z, rho);
    }
    return status;
}

/** The largest level mean allowed: half the tolerance, so that the audit passes.  The energy left
 *  is a difference: where it is rounding, the column is absorbed or nearly so, and the level means
 *  must reach their own rounding floor. */
static double largest_mean(const fe_cg_target *t, double energy)
{
    const double left = t->within - energy;
    const double mean = 0.5 * t->tol * sqrt((left > t->noise ? left : t->noise) / t->total_weight);
    return mean > t->floor ? mean : t->floor;
}

/** Is the column's residual at the target? */
static int at_target(const fe_cg_target *t, double energy, double gradient, double max_mean)
{
    if (!(t->total_weight > 0) || max_mean == 0) {
        return 1;
    }
    return max_mean <= largest_mean(t, energy) && sqrt(gradient) <= 0.5 * t->tol * sqrt(t->total);
}

/** d_k of a column that is not at its target. */
static double distance(const fe_cg_target *t, double energy, double gradient, double max_mean)
{
    return log(
        fmax(max_mean / largest_mean(t, energy), sqrt(gradient) / (0.5 * t->tol * sqrt(t->total))));
}

/** Does the forecast of a column's steps exceed its limit?  The contraction so far is taken for
 *  what is left too; gradient = sum r^2 / N, now and at the start. */
static int exceeds_forecast_limit(const fe_cg_target *t, int64_t steps, double first,
                                  double gradient)
{
    const double goal = 0.5 * t->tol * sqrt(t->total);
    if (t->forecast_limit == 0 || steps < FORECAST_STEPS || !(first > goal * goal)) {
        return 0;
    }
    const double gained = log(first / gradient), wanted = log(first / (goal * goal));
    return !(gained * (double)t->forecast_limit > wanted * (double)steps);
}

/** The smaller of two forecasts of the steps of a column at a distance `now`, `before` at half its
 *  steps. */
static double forecast_steps(const cg *c, int k, int64_t steps, double before, double now)
{
    const int64_t known = steps < FE_HISTORY ? steps : FE_HISTORY;
    const double *const diagonal = c->w->diagonal + k, *const below2 = c->w->below2 + k;
    const double smallest = frgi_ritz_smallest(diagonal, below2, c->lanes, known);
    const double largest = frgi_ritz_largest(diagonal, below2, c->lanes, known);
    const double by_spectrum = 0.5 * now * sqrt(largest / smallest);
    const double by_gain = now < before ? now * (double)(steps / 2) / (before - now) : HUGE_VAL;
    return fmin(by_gain, isnan(by_spectrum) ? 0 : by_spectrum);
}

static void record_step(step_record *g, double alpha, double gradient, double max_mean)
{
    g->alpha_change = fabs(alpha / g->alpha - 1);
    g->rate = fmax(max_mean / g->max_mean, sqrt(gradient / g->gradient));
    g->alpha = alpha;
    g->gradient = gradient;
    g->max_mean = max_mean;
    g->steps++;
}

/** Is one more step, as long as the last one, predicted to reach the target?  The change of alpha
 *  and the contraction are the larger ones of the last two steps. */
static int converges_next(const fe_cg_target *t, double energy, const step_record *before,
                          const step_record *now)
{
    const double rate = now->rate > before->rate ? now->rate : before->rate;
    const double alpha_change =
        now->alpha_change > before->alpha_change ? now->alpha_change : before->alpha_change;
    const double reduction = CAUTION * (rate + alpha_change);
    return now->steps > 3 && reduction < 0.5 &&
           at_target(t, energy, reduction * reduction * now->gradient, reduction * now->max_mean);
}

/** q <- S p.  The rounding of a product adds a fraction of the residual at that step: once this is
 *  small beside the target, float32 suffices (inexact Krylov, van den Eshof and Sleijpen 2004).
 *  Each column has its own precision; where they differ both products are made. */
static frg_status multiply(const cg *c, const fe_cg_target *target, const fe_cg_column *column,
                           double sums[FE_SUMS][FE_MAX_LANES])
{
    frg_status status = FRG_OK;
    const fe_cg_work *w = c->w;
    bool low[FE_MAX_LANES] = {false};
    int running = 0, n_low = 0;
    for (int k = 0; k < c->lanes; k++) {
        if (column[k].done || column[k].given_up) {
            continue;
        }
        running++;
        low[k] = c->s->times_low && at_target(&target[k], column[k].energy,
                                              LOW_ERROR * LOW_ERROR * sums[FE_SUM_GRADIENT][k],
                                              LOW_ERROR * sums[FE_SUM_MAX][k]);
        n_low += low[k];
    }
    if (n_low < running) {
        status = c->s->times(c->s->data, c->lanes, w->p, w->q);
    }
    if (status != FRG_OK || n_low == 0) {
        return status;
    }
    double *const y = n_low < running ? w->z : w->q;
    status = c->s->times_low(c->s->data, c->lanes, w->p, y);
    for (int64_t j = 0; y != w->q && j < c->n * c->lanes; j++) {
        w->q[j] = low[j % c->lanes] ? y[j] : w->q[j];
    }
    return status;
}

/** The last step of the columns that are predicted to converge, along the direction in w->p. */
static void advance(const cg *c, const double *alpha)
{
    FOR_PIECES(c, i)
    {
        c->ops->advance(i * FE_PIECE, piece_end(c, i), alpha, c->w->p, c->w->x);
    }
}

static bool is_running(const fe_cg_column *column)
{
    return !column->done && !column->given_up;
}

static cg cg_of(const fe_cg_call *c)
{
    const frgi_isa isa = frgi_context_isa(c->ctx);
    return (cg){c->s,
                frgi_fe_reduced_ops(isa, c->f32, c->lanes),
                frgi_fe_reduced_ops(isa, 0, c->lanes),
                c->w,
                c->lanes,
                frg_threads(c->ctx),
                c->s->n,
                fe_pieces(c->s->n)};
}

frg_status frgi_fe_host_cg_start(const fe_cg_call *call, const fe_cg_target *target)
{
    const cg run = cg_of(call), *const c = &run;
    fe_recurrence *const m = c->w->state;
    const size_t bytes = (size_t)(c->n * c->lanes) * sizeof(double);
    memset(c->w->x, 0, bytes);
    memset(c->w->p, 0, bytes);
    memset(c->w->q, 0, bytes);
    memset(m, 0, sizeof *m);
    memcpy(m->target, target, (size_t)c->lanes * sizeof *target);
    update(c, m->alpha, m->sums); /* a step of length 0: the sums of the start */
    memcpy(m->rho, m->sums[FE_SUM_RHO], sizeof m->rho);
    const frg_status status = precondition(c, m->rho);
    memcpy(m->first_rho, m->rho, sizeof m->rho);
    memcpy(m->first_gradient, m->sums[FE_SUM_GRADIENT], sizeof m->first_gradient);
    for (int k = 0; k < c->lanes; k++) {
        const double max_mean = m->sums[FE_SUM_MAX][k];
        /* a right-hand side of rounding alone: a Krylov space made of it would only enlarge it */
        const int done = max_mean <= target[k].floor ||
                         at_target(&target[k], 0, m->sums[FE_SUM_GRADIENT][k], max_mean);
        m->column[k] = (fe_cg_column){.done = done, .given_up = !done && target[k].most <= 0};
    }
    direction(c, m->beta);
    return status;
}

/** q = S p,  alpha = rho / p'q,  a += alpha p,  r -= alpha q;  next = r'M^-1 r. */
static frg_status step_along(const cg *c, fe_recurrence *m, double *next)
{
    double curvature[FE_MAX_LANES];
    const frg_status status = multiply(c, m->target, m->column, m->sums);
    if (status != FRG_OK) {
        return status;
    }
    dots(c, c->ops, c->w->p, c->w->q, curvature);
    for (int k = 0; k < c->lanes; k++) {
        const bool moves = is_running(&m->column[k]) && curvature[k] > 0 && m->rho[k] > 0;
        m->alpha[k] = moves ? m->rho[k] / curvature[k] : 0;
        m->beta[k] = m->last[k] = 0;
        m->column[k].energy += m->alpha[k] * m->rho[k];
    }
    update(c, m->alpha, m->sums);
    memcpy(next, m->sums[FE_SUM_RHO], sizeof m->rho);
    return precondition(c, next);
}

/** The steps forecast for lane k, where they are so many more than it has left that it is given up;
 *  else 0. */
static double forecast(const cg *c, fe_recurrence *m, int64_t step, int k,
                       const fe_cg_target *target, const fe_cg_column *column)
{
    const int64_t each = target->most / FORECAST_CHECKS;
    if (!target->forecast || each == 0 || step % each != 0 || step / each > FORECAST_CHECKS) {
        return 0;
    }
    const int64_t check = step / each;
    double *const past = &m->distance[0][k];
    past[check * FE_MAX_LANES] =
        distance(target, column->energy, m->sums[FE_SUM_GRADIENT][k], m->sums[FE_SUM_MAX][k]);
    if (check % 2 != 0 || check < FORECAST_CHECKS / 8) {
        return 0;
    }
    const double steps =
        forecast_steps(c, k, step, past[check / 2 * FE_MAX_LANES], past[check * FE_MAX_LANES]);
    return steps > FORECAST_CAUTION * (double)(target->most - step) ? steps : 0;
}

/** beta = next / rho of lane k, its entries of the Lanczos matrix, and whether it goes on. */
static void update_lane(const cg *c, fe_recurrence *m, int64_t step, int k, double next,
                        const fe_cg_target *target, fe_cg_column *column)
{
    const double gradient = m->sums[FE_SUM_GRADIENT][k], max_mean = m->sums[FE_SUM_MAX][k];
    if (m->alpha[k] == 0) { /* no residual left in the range of S */
        column->done = 1;
        return;
    }
    m->beta[k] = next / m->rho[k];
    if (step < FE_HISTORY) {
        c->w->diagonal[step * c->lanes + k] = 1 / m->alpha[k] + m->carry[k];
        c->w->below2[step * c->lanes + k] = m->carry2[k];
    }
    m->carry[k] = m->beta[k] / m->alpha[k];
    m->carry2[k] = m->carry[k] / m->alpha[k];
    m->rho[k] = next;
    column->steps = step + 1;
    column->done = at_target(target, column->energy, gradient, max_mean);
    column->steps_forecast = column->done ? 0 : forecast(c, m, step + 1, k, target, column);
    column->given_up =
        !column->done && (column->steps >= target->most || column->steps_forecast > 0 ||
                          exceeds_forecast_limit(target, step + 1, m->first_gradient[k], gradient));
    const step_record before = m->history[k];
    record_step(&m->history[k], m->alpha[k], gradient, max_mean);
    if (is_running(column) && converges_next(target, column->energy, &before, &m->history[k])) {
        m->last[k] = m->alpha[k];
        column->energy += m->alpha[k] * m->rho[k];
        column->done = column->unseen = 1;
        column->steps++;
    }
}

frg_status frgi_fe_host_cg_step(const fe_cg_call *call, int64_t step)
{
    const cg c = cg_of(call);
    frgi_host_step(call->ctx, FRGI_HOST_CG);
    fe_recurrence *const m = c.w->state;
    double next[FE_MAX_LANES];
    bool ending = false;
    m->worst = 0;
    const frg_status status = step_along(&c, m, next);
    if (status != FRG_OK) {
        return status;
    }
    for (int k = 0; k < c.lanes; k++) {
        if (is_running(&m->column[k])) {
            update_lane(&c, m, step, k, next[k], &m->target[k], &m->column[k]);
            m->worst = fmax(m->worst, sqrt(m->sums[FE_SUM_GRADIENT][k] / m->target[k].total));
        }
        ending = ending || m->last[k] > 0;
    }
    direction(&c, m->beta);
    if (ending) {
        advance(&c, m->last);
    }
    return FRG_OK;
}

static void finish(const cg *c, const fe_recurrence *m, fe_cg_column *column)
{
    for (int k = 0; k < c->lanes; k++) {
        fe_cg_column *col = &column[k];
        *col = m->column[k];
        const int64_t seen = col->steps - col->unseen;
        const int64_t known = seen < FE_HISTORY ? seen : FE_HISTORY;
        col->lambda = frgi_ritz_smallest(c->w->diagonal + k, c->w->below2 + k, c->lanes, known);
        col->rate = seen > 0 && m->first_rho[k] > 0
                        ? pow(m->rho[k] / m->first_rho[k], 0.5 / (double)seen)
                        : 0;
    }
}

frg_status frgi_fe_host_cg_poll(const fe_cg_call *call, fe_cg_summary *summary,
                                fe_cg_column *column)
{
    const cg c = cg_of(call);
    const fe_recurrence *const m = c.w->state;
    *summary = (fe_cg_summary){.worst = m->worst};
    for (int k = 0; k < c.lanes; k++) {
        summary->running += is_running(&m->column[k]);
    }
    if (column) {
        finish(&c, m, column);
    }
    return FRG_OK;
}

/* ---- a run on any implementation of the steps ------------------------------------------------ */

frg_status frgi_fe_cg_run(const fe_cg_call *c, int64_t max_steps, const char *phase,
                          const fe_cg_target *target, fe_cg_column *column)
{
    const fe_steps *const steps = c->s->steps;
    fe_cg_summary now = {0};
    frg_status status = steps->recurrence.start(c, target);
    status = status == FRG_OK ? steps->recurrence.poll(c, &now, NULL) : status;
    for (int64_t step = 0; status == FRG_OK && now.running > 0 && step < max_steps; step++) {
        status = steps->recurrence.step(c, step);
        status = status == FRG_OK ? steps->recurrence.poll(c, &now, NULL) : status;
        if (status != FRG_OK) {
            break;
        }
        const frg_progress report = {.solver = "fe",
                                     .phase = phase,
                                     .done = step + 1,
                                     .total = max_steps,
                                     .residual = now.worst,
                                     .target = target[0].tol};
        status = frgi_heartbeat(c->ctx, &report);
    }
    const frg_status polled = status < 0 ? status : steps->recurrence.poll(c, &now, column);
    return polled < 0 ? polled : status;
}

frg_status frgi_fe_cg_predict(frg_context *ctx, const fe_system *s, const fe_cg_work *w,
                              int64_t length, double *steps)
{
    const fe_cg_target never = {.total_weight = 1, .total = 1, .within = 1, .most = length};
    const fe_cg_call call = {ctx, s, w, 1, 0};
    fe_cg_column column = {0};
    frg_status status = s->steps->reduced.draw(s->n, ctx, w->p);
    status = status == FRG_OK ? s->times(s->data, 1, w->p, w->r) : status;
    if (status != FRG_OK) {
        return status;
    }
    status = frgi_fe_cg_run(&call, length, "probe", &never, &column);
    const double rate = column.rate < 0.999 ? column.rate : 0.999;
    *steps = column.done || rate <= 0 ? 1 : log(PROBE_GOAL) / log(rate);
    return status;
}

#pragma GCC visibility push(hidden)
DECLARE_LEVELS(fe_reduced_ops[2][FE_LANE_KINDS], frgi_fe_reduced_table);
#pragma GCC visibility pop

const fe_reduced_ops *frgi_fe_reduced_ops(frgi_isa isa, int f32, int lanes)
{
    static const fe_reduced_ops(*const tables[ISA_COUNT])[FE_LANE_KINDS] =
        EACH_LEVEL(frgi_fe_reduced_table);
    return &tables[isa][f32][__builtin_ctz((unsigned)lanes)];
}

/** Has every eliminated level of a window few rows? */
static bool sums_are_short(const fe_rows *g, int threads)
{
    enum { PIECES = 64 };
    int64_t longest[PIECES] = {0}; /* rows of an eliminated level, piece by piece */
#pragma omp parallel for num_threads(threads) schedule(static) if (g->n_chunks > 1)
    for (int64_t i = 0; i < PIECES; i++) {
        const int64_t end = g->n_elim * (i + 1) / PIECES;
        for (int64_t u = g->n_elim * i / PIECES; u < end; u++) {
            const int64_t rows = g->elim_start[u + 1] - g->elim_start[u];
            longest[i] = rows > longest[i] ? rows : longest[i];
        }
    }
    bool sums_fit = true;
    for (int64_t i = 0; i < PIECES; i++) {
        sums_fit = sums_fit && longest[i] <= FE_LOW_SUM;
    }
    return sums_fit;
}

frg_status frgi_fe_has_low(const fe_rows *g, frg_context *ctx, bool *has)
{
    *has = g->n_remaining == 1 && !g->weighted && g->n_reduced >= FE_LOW_LEVELS;
    fe_runs runs = frgi_fe_runs(g, ctx);
    for (const fe_rows *w; *has && (w = frgi_fe_runs_next(&runs));) {
        *has = sums_are_short(w, frg_threads(ctx));
    }
    for (int64_t l = 0; *has && l < g->n_reduced; l++) {
        *has = g->level_weight[l] <= FE_LOW_SUM;
    }
    return frgi_fe_runs_close(&runs);
}

void frgi_fe_apply_window(const fe_rows *g, const fe_reduced_ops *ops, const fe_row_work *w,
                          int threads, int lanes, bool low, const void *p)
{
    const int64_t length = 2 * g->n_reduced * lanes;
    float *const pairs = (float *)(void *)w->partial;
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (g->n_chunks > 1)
    for (int k = 0; k < g->n_chunks; k++) {
        const int64_t at = (g->at.chunk + k) * length;
        if (low) {
            ops->apply_low(g, k, p, pairs + at);
        } else {
            ops->apply(g, k, p, w->partial + at);
        }
    }
}

void frgi_fe_apply_total(const fe_rows *g, const fe_reduced_ops *ops, const fe_row_work *w,
                         int threads, bool low, const void *p, double *y)
{
    enum { PIECE = 512 };
    const int64_t pieces = (g->n_reduced + PIECE - 1) / PIECE;
    const float *const pairs = (const float *)(const void *)w->partial;
    if (!low) {
        frgi_fe_add_pairs(g, ops->add_pairs, w->partial, threads, y);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static) if (g->n_chunks > 1)
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t end = (i + 1) * PIECE;
        ops->add_low(g, i * PIECE, end < g->n_reduced ? end : g->n_reduced, p, pairs, y);
    }
}

void frgi_fe_apply(const fe_rows *g, const fe_reduced_ops *ops, const fe_row_work *w, int threads,
                   int lanes, bool low, const void *p, double *y)
{
    frgi_fe_apply_window(g, ops, w, threads, lanes, low, p);
    frgi_fe_apply_total(g, ops, w, threads, low, p, y);
}
