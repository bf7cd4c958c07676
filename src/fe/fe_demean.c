/* fe_demean.c - a run of the demeaner: solve, write, verify, refine, report.
 *
 * A run takes the columns in blocks.  For each block (notation of fe_rows.h):
 *
 *     b   = D_r' W (I - P_1) x     one pass over the rows, with the moments of x
 *     S a = b                      the cascade of solvers, on the reduced unknowns alone
 *     r   = (I - P_1)(x - D_r a)   the second pass writes the result and scatters it by level:
 *     s   = D_r' W r               the audit, and the right-hand side of a refinement
 *
 * `converged` is decided from s alone.  A column that fails the test, or passes it by the rounding
 * of its effects alone, is refined by itself: solve S da = s, r <- (I - P_1)(r - D_r da), at most
 * MAX_ROUNDS times, escalating to the next solver when a round gained little.  max_iter counts the
 * steps of all rounds of a column.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "fe/fe_demean_plan.h"
#include "fe/fe_steps.h"
#include "fe/fe_subproblems.h"
#include "fe/fe_verify.h"

enum { MAX_ROUNDS = 4 };
static const double NOISE = 1e-13; /* relative rounding of a sum of squares */

/* ---- verifying a column ---------------------------------------------------------------------- */

/** The state of one column during its run. */
typedef struct {
    fe_column_size size;
    double within;         /* sum of w (x - eliminated level's mean)^2 */
    double epsilon;        /* relative rounding that is expected of level means */
    double floor;          /* level means that are rounding in the current solve, */
    double noise;          /* and the sum of squares */
    double scale;          /* power of two that brings the column near 1 */
    double lambda;         /* smallest Ritz value seen */
    int lane;              /* its place in the block */
    bool direct;           /* the last solve used the direct factor: no solver does better */
    bool stagnated;        /* the last refinement did not halve the level means */
    bool escalated;        /* a solver beyond the rows was used */
    double steps_forecast; /* steps, where a forecast has given it up; else 0 */
} column_state;

/** in_double: level means are judged in double whatever the column's type: what is left of it is
 *  stored so, or solves in float leave level means as large as its rounding. */
static column_state study_column(const fe_moments *m, int k, double epsilon, bool in_double)
{
    const double total_weight = m->weight[k];
    const double total = total_weight > 0 ? m->square[k] - m->sum[k] / total_weight * m->sum[k] : 0;
    column_state c = {.size = {.total_weight = total_weight,
                               .total = fmax(total, m->within[k]),
                               .max_abs = m->max_abs[k],
                               .epsilon = epsilon},
                      .within = m->within[k],
                      .epsilon = in_double ? DBL_EPSILON : epsilon,
                      .lambda = (double)NAN,
                      .lane = k};
    const double deviation = total_weight > 0 ? sqrt(c.size.total / total_weight) : 0;
    c.floor = 16 * c.epsilon * deviation;
    c.noise = NOISE * c.size.total;
    c.scale = deviation > 0 ? ldexp(1, -ilogb(deviation)) : 1;
    return c;
}

static int32_t label_of(const fe_factor *f, int64_t level)
{
    return f->label ? f->label[level] : (int32_t)level;
}

static void name_worst(const fe_rows *g, const fe_reduced_audit *a, int64_t worst_elim,
                       bool is_elim, frg_demean_column *out)
{
    if (is_elim || a->worst < 0) {
        const int64_t level = g->elim_level ? g->elim_level[worst_elim] : worst_elim;
        out->worst_factor = g->elim_factor;
        out->worst_level = label_of(&g->factor[g->elim_factor], level);
        return;
    }
    for (int q = 0; q < g->n_factors; q++) {
        const fe_factor *f = &g->factor[q];
        if (f->first >= 0 && a->worst >= f->first && a->worst < f->first + f->levels) {
            out->worst_factor = q;
            out->worst_level = label_of(f, a->worst - f->first);
        }
    }
}

/** Fills the certificate of column k from the sums s that the last pass left; `error` is the
 *  cascade's || W^(1/2) D_r S^+ s ||^2.  s may be d->left, which the subproblems use. */
static frg_status verify(const frg_demean *d, const column_state *c, const fe_elim_audit *u, int k,
                         const double *s, int lanes, double error, frg_demean_column *out)
{
    const fe_rows *g = &d->rows;
    fe_reduced_audit a;
    TRY(g->steps->reduced.audit(g, lanes, s, k, &a));
    const fe_column_audit audit = {.square = u->square[k],
                                   .gradient = a.gradient + u->gradient[k],
                                   .mean = fmax(a.mean, u->mean[k])};
    frgi_fe_verify(d->opts.tol, g->n_factors, &c->size, &audit, fabs(error) + u->gradient[k], out);
    name_worst(g, &a, u->worst[k], u->mean[k] >= a.mean, out);
    fe_subproblems *const subproblems = frgi_fe_cascade_subproblems(d->cascade);
    if (!subproblems) {
        return FRG_OK;
    }
    TRY(g->steps->reduced.means(g, lanes, s, k, d->left));
    return frgi_fe_subproblems_record(subproblems, c->lane, d->left,
                                      audit.mean > 0 ? out->audit / audit.mean : 0);
}

/* ---- a run ----------------------------------------------------------------------------------- */

typedef struct {
    frg_demean *d;
    frg_array in, out;
    int f32;
    frg_demean_column *columns;
    frg_status stopped; /* the heartbeat's status once it has stopped the run */
    int64_t first;      /* the column that is the first in the order of the levels, */
    int64_t width;      /* and the columns there; 0: the caller's arrays are worked on */
    int64_t given_up;   /* columns that a forecast has given up, and of the first */
    int64_t first_given_up;
    double steps_forecast;
    fe_device *there; /* where the columns' passes run; NULL: here */
} run;

/** The same of the columns that are worked on: the caller's, or those in the order of the
 *  levels. */
static fe_block worked_on(const run *r, const frg_array *a, int64_t column, int live)
{
    const int64_t size = (int64_t)frg_sizeof(a->dtype);
    return r->width > 0
               ? (fe_block){r->d->detour.columns + (column - r->first) * size, r->width, 1, live}
               : fe_block_of(a, column, live);
}

/** rhs of fe_steps.h for a block's columns as they came, or for what is left of its column
 *  k >= 0. */
static frg_status pass_rhs(const run *r, const fe_block_effects *e, int k, double *sums,
                           fe_moments *m)
{
    const frg_demean *const d = r->d;
    const int lanes = k < 0 ? e->lanes : 1;
    const fe_device_block block = fe_block_on_device(e);
    const fe_block x = k < 0 ? worked_on(r, &r->in, e->first_column, e->live)
                             : worked_on(r, &r->out, e->first_column + k, 1);
    return r->there ? frgi_fe_device_rhs(r->there, &block, k, sums, m)
                    : d->rows.steps->rows.rhs(&d->rows, d->ctx, r->f32, lanes, &d->work[lanes].rows,
                                              &x, sums, m);
}

/** The same of its residual; the effects of eliminated levels are kept. */
static frg_status pass_residual(const run *r, const fe_block_effects *e, int k, const double *a,
                                double *sums, fe_elim_audit *audit)
{
    const frg_demean *const d = r->d;
    const fe_rows *const g = &d->rows;
    const fe_device_block block = fe_block_on_device(e);
    const int64_t first = e->first_column + (k < 0 ? 0 : k);
    const int lanes = k < 0 ? e->lanes : 1, live = k < 0 ? e->live : 1;
    if (r->there) {
        return frgi_fe_device_residual(
            r->there, &block, k, k < 0 ? FE_RESIDUALS_FIRST : FE_RESIDUALS_ADDED, a, sums, audit);
    }
    const fe_block x = worked_on(r, k < 0 ? &r->in : &r->out, first, live);
    const fe_block y = worked_on(r, &r->out, first, live);
    TRY(g->steps->rows.residual(g, d->ctx, r->f32, lanes, &d->work[lanes].rows, &x, &y, a, sums,
                                k < 0 ? e->elim : d->refined_elim, audit));
    return k < 0 ? FRG_OK
                 : g->steps->reduced.add_column(g->n_elim, e->lanes, k, d->refined_elim, e->elim);
}

/** Is a column's largest value so small that its weighted squares may underflow? */
static bool vanishes(const frg_demean *d, double max_abs)
{
    return max_abs > 0 && max_abs * d->rows.weight_root < FE_SMALLEST;
}

/** Refuses a column of `in`, the caller's column number `column`, whose largest |value| is max_abs,
 *  NaN where its values are not all finite. */
static frg_status refuse_values(const frg_demean *d, const frg_array *in, int64_t at,
                                int64_t column, double max_abs)
{
    frg_context *ctx = d->ctx;
    for (int64_t i = 0; i < in->shape[0]; i++) {
        const double v = frgi_array_get(in, i, at);
        if (!(fabs(v) <= FE_LARGEST) || (vanishes(d, max_abs) && fabs(v) == max_abs)) {
            return frgi_fe_refuse_value(ctx, i, column, v);
        }
    }
    FAIL(ctx, E_BUG, "column %lld has moments that are not finite", (long long)column + 1);
}

/** The same for column k of a block that has just been looked at. */
static frg_status refuse_column(const run *r, const fe_block_effects *e, int k, double max_abs)
{
    const fe_device_block block = fe_block_on_device(e);
    const int64_t n = r->in.shape[0], column = e->first_column + k;
    double *x;
    if (r->in.device.kind == FRG_CPU) {
        return refuse_values(r->d, &r->in, column, column, max_abs);
    }
    TRY(NEW(r->d->ctx, &x, n, "a column from a device"));
    const frg_array here = frg_matrix(x, FRG_F64, n, 1, 1);
    frg_status status = frgi_fe_device_column(r->there, &block, k, x);
    status = status < 0 ? status : refuse_values(r->d, &here, 0, column, max_abs);
    DROP(r->d->ctx, &x);
    return status;
}

/** Refuses a block with a column that cannot be squared and added, by its moments. */
static frg_status check_moments(const run *r, const fe_block_effects *e, const fe_moments *m)
{
    for (int k = 0; k < e->live; k++) {
        const double largest = m->max_abs[k];
        if (!(largest <= FE_LARGEST) || !isfinite(m->square[k]) || vanishes(r->d, largest)) {
            return refuse_column(r, e, k, largest);
        }
    }
    return FRG_OK;
}

/** made: steps of earlier rounds */
static fe_cg_target target_of(const frg_demean *d, const column_state *c, double within,
                              int64_t made)
{
    const double s = c->scale;
    return (fe_cg_target){.total_weight = c->size.total_weight,
                          .within = within * s * s,
                          .noise = c->noise * s * s,
                          .total = c->size.total * s * s,
                          .tol = d->opts.tol,
                          .floor = c->floor * s,
                          .lambda = c->lambda,
                          .lane = c->lane,
                          .most = d->opts.max_iter - made};
}

/** Solves S a = w->cg.r for the block, each column scaled by its own factor, into w->answer. */
static frg_status solve_block(run *r, const fe_block_work *w, fe_cascade_start start,
                              const double *within, int live, column_state *state,
                              frg_demean_column *columns)
{
    frg_demean *d = r->d;
    const fe_rows *g = &d->rows;
    const int lanes = w->lanes;
    double factor[FE_MAX_LANES], inverse[FE_MAX_LANES];
    fe_cg_target target[FE_MAX_LANES];
    fe_cg_column column[FE_MAX_LANES];
    for (int k = 0; k < lanes; k++) {
        factor[k] = k < live ? state[k].scale : 0;
        inverse[k] = k < live ? 1 / state[k].scale : 0;
        target[k] = k < live ? target_of(d, &state[k], within[k], columns[k].iterations)
                             : (fe_cg_target){.lambda = (double)NAN, .lane = k};
    }
    TRY(g->steps->reduced.scale(g->n_reduced, w->lanes, factor, w->cg.r));
    const frg_status status =
        frgi_fe_cascade_solve(d->cascade, d->ctx, w, d->work, start, target, column);
    TRY(status);
    r->stopped = status != FRG_OK ? status : r->stopped;
    TRY(g->steps->reduced.scale(g->n_reduced, w->lanes, inverse, w->answer));
    for (int k = 0; k < live; k++) {
        columns[k].iterations += column[k].steps;
        state[k].steps_forecast = column[k].steps_forecast;
        state[k].escalated = state[k].escalated || column[k].escalated;
        columns[k].status = column[k].done ? FRG_OK : FRG_MAX_ITER;
        state[k].lambda = column[k].lambda < state[k].lambda || isnan(state[k].lambda)
                              ? column[k].lambda
                              : state[k].lambda;
    }
    return FRG_OK;
}

/** Does the result hold? */
static bool accepted(const frg_demean *d, const column_state *c, const frg_demean_column *report)
{
    return frgi_fe_accepted(d->opts.tol, report) || (report->converged && c->direct);
}

/** Are the level means below tol, or below their rounding? */
static bool within_tolerance(const frg_demean *d, const column_state *c,
                             const frg_demean_column *report)
{
    return report->audit <= frgi_fe_reachable(d->opts.tol, c->epsilon);
}

/** Is nothing left to be done for the column?  Effects a million times the result leave level means
 *  that are their rounding.  The result is stored to its own size, so that one more round takes
 *  most of them out. */
static bool finished(const frg_demean *d, const column_state *c, const frg_demean_column *report)
{
    return accepted(d, c, report) && (c->stagnated || within_tolerance(d, c, report));
}

/** One round of refinement: solves for the effects left in the result, subtracts them and verifies
 *  again.  *written: the result is another now, also where that failed. */
static frg_status refine_once(run *r, const fe_block_effects *b, int k, bool escalate,
                              column_state *state, double *square, frg_demean_column *report,
                              bool *written)
{
    frg_demean *d = r->d;
    const fe_rows *g = &d->rows;
    const fe_block_work *w = &d->work[1];
    const double before = report->audit;
    if (!(report->converged && within_tolerance(d, state, report)) && !report->absorbed) {
        /* what is subtracted now is of the size of the result, not of the input or of its
         * effects */
        state->floor = 16 * state->epsilon * sqrt(*square / state->size.total_weight);
        state->noise = NOISE * *square;
    }
    const fe_cascade_start start = escalate           ? FE_FROM_FACTOR
                                   : state->escalated ? FE_FROM_ASSEMBLED
                                                      : FE_FROM_ROWS;
    if (g->n_reduced > 0) {
        /* not the sums that the last pass left: their total is that of the eliminated levels'
         * roundings, and what is outside the range of S would end in one level of each component */
        fe_moments moments;
        TRY(pass_rhs(r, b, k, w->cg.r, &moments));
        TRY(solve_block(r, w, start, square, 1, state, report));
    }
    fe_elim_audit audit;
    *written = true;
    TRY(pass_residual(r, b, k, w->answer, d->left, &audit));
    TRY(g->steps->reduced.add_column(g->n_reduced, b->lanes, k, w->answer, b->reduced));
    *square = audit.square[0];
    double error;
    TRY(frgi_fe_cascade_error(d->cascade, w, d->left, &state->lambda, false, &error));
    TRY(verify(d, state, &audit, 0, d->left, 1, error, report));
    state->direct = frgi_fe_cascade_is_direct(d->cascade);
    state->stagnated = report->audit > 0.5 * before;
    return FRG_OK;
}

/** Refines column k of a block alone, so that its bits stay its own.  The result is already
 *  written: a solver that cannot be built now ends the refinement, and the column's status says
 *  so. */
static frg_status refine(run *r, const fe_block_effects *b, int k, column_state *state,
                         double square, frg_demean_column *report)
{
    const frg_demean *d = r->d;
    const bool may_escalate = d->opts.method == FRG_FE_AUTO;
    bool escalate = may_escalate && report->converged && !accepted(d, state, report);
    for (int round = 0; round < MAX_ROUNDS && r->stopped == FRG_OK && state->steps_forecast == 0 &&
                        !finished(d, state, report);
         round++) {
        const double before = report->gradient;
        if (report->iterations >= d->opts.max_iter && !escalate && !state->direct) {
            return FRG_OK; /* a round that may make no step */
        }
        bool written = false;
        const frg_status status = refine_once(r, b, k, escalate, state, &square, report, &written);
        if (status < 0) {
            return written ? status : FRG_OK;
        }
        escalate = may_escalate && !accepted(d, state, report) &&
                   (report->gradient > 0.5 * before || report->converged);
    }
    return FRG_OK;
}

/** Counts a column that is not accepted because a forecast gave it up. */
static void note_forecast(run *r, int64_t column, double steps_forecast)
{
    if (steps_forecast > 0 && r->given_up++ == 0) {
        r->first_given_up = column;
        r->steps_forecast = steps_forecast;
    }
}

/** Warns of columns that ended before max_iter because of a forecast. */
static void warn_forecast(const run *r)
{
    const frg_demean *d = r->d;
    char others[64] = "";
    if (r->given_up > 1) {
        snprintf(others, sizeof others, " (and %lld columns more)", (long long)r->given_up - 1);
    }
    frgi_warn(d->ctx, W_FORECAST,
              "column %lld%s was given up after %lld of %lld steps (%s): about %.2g more are "
              "forecast",
              (long long)r->first_given_up + 1, others,
              (long long)r->columns[r->first_given_up].iterations, (long long)d->opts.max_iter,
              frgi_fe_cascade_method(d->cascade), r->steps_forecast);
}

/* ---- a block of columns ---------------------------------------------------------------------- */

/** A block on its way: x comes in, r goes out; the reduced unknowns are in w. */
typedef struct {
    run *r;
    const fe_block_effects *effects;
    const fe_block_work *w;
    int lanes, live;
    frg_demean_column *columns;
    column_state state[FE_MAX_LANES];
    double error[FE_MAX_LANES]; /* || W^(1/2) D_r S^+ s ||^2 */
    fe_elim_audit audit;
} block_run;

static block_run block_run_of(run *r, const fe_block_effects *e)
{
    return (block_run){.r = r,
                       .effects = e,
                       .w = &r->d->work[e->lanes],
                       .lanes = e->lanes,
                       .live = e->live,
                       .columns = r->columns + e->first_column};
}

/** w->cg.r <- b = D_r' W (I - P_1) x, and the columns' sizes.  E_NOT_FINITE for a value that
 *  cannot be squared and added. */
static frg_status form_rhs(block_run *b)
{
    run *const r = b->r;
    const frg_demean *d = r->d;
    const bool in_double = r->there || frgi_fe_cascade_in_float(d->cascade);
    fe_moments moments;
    TRY(pass_rhs(r, b->effects, -1, b->w->cg.r, &moments));
    TRY(check_moments(r, b->effects, &moments));
    for (int k = 0; k < b->live; k++) {
        b->state[k] =
            study_column(&moments, k, r->f32 ? (double)FLT_EPSILON : DBL_EPSILON, in_double);
        b->columns[k] = (frg_demean_column){.status = FRG_OK, .error_bound = NAN};
    }
    return FRG_OK;
}

/** w->answer <- a with S a = b. */
static frg_status solve_reduced(block_run *b)
{
    double within[FE_MAX_LANES];
    for (int k = 0; k < b->live; k++) {
        within[k] = b->state[k].within;
    }
    if (b->r->d->rows.n_reduced == 0) {
        return FRG_OK;
    }
    return solve_block(b->r, b->w, FE_FROM_ROWS, within, b->live, b->state, b->columns);
}

/** r <- (I - P_1)(x - D_r a) into the caller's array, w->keep <- s = D_r' W r; the effects are
 *  kept. */
static frg_status write_residual(block_run *b)
{
    run *const r = b->r;
    const fe_rows *g = &r->d->rows;
    const fe_block_effects *e = b->effects;
    double max_abs[FE_MAX_LANES];
    TRY(g->steps->reduced.copy(g->n_reduced, b->lanes, b->w->answer, e->reduced));
    TRY(pass_residual(r, e, -1, b->w->answer, b->w->keep, &b->audit));
    TRY(g->steps->reduced.largest(g->n_reduced, b->lanes, b->w->answer, max_abs));
    for (int k = 0; k < b->live; k++) {
        b->state[k].size.effect = fmax(max_abs[k], b->audit.effect[k]);
    }
    return FRG_OK;
}

/** The certificates of all columns from s, before any is refined: what is said of one depends on
 *  the solve that they have in common and on no other's refinement. */
static frg_status verify_block(block_run *b)
{
    const frg_demean *d = b->r->d;
    double lambda[FE_MAX_LANES] = {0};
    for (int k = 0; k < b->live; k++) {
        lambda[k] = b->state[k].lambda;
    }
    TRY(frgi_fe_cascade_error(d->cascade, b->w, b->w->keep, lambda, false, b->error));
    for (int k = 0; k < b->live; k++) {
        TRY(verify(d, &b->state[k], &b->audit, k, b->w->keep, b->lanes, b->error[k],
                   &b->columns[k]));
        b->state[k].direct = frgi_fe_cascade_is_direct(d->cascade) && d->rows.n_reduced > 0;
    }
    return FRG_OK;
}

/** Column by column where the certificate did not hold.  Where a refinement is what makes
 *  the subproblems, they record the columns verified before it, too. */
static frg_status refine_block(block_run *b)
{
    const frg_demean *d = b->r->d;
    const bool had_subproblems = frgi_fe_cascade_subproblems(d->cascade) != NULL;
    bool refined[FE_MAX_LANES];
    for (int k = 0; k < b->live; k++) {
        refined[k] = !finished(d, &b->state[k], &b->columns[k]);
        if (refined[k]) {
            TRY(refine(b->r, b->effects, k, &b->state[k], b->audit.square[k], &b->columns[k]));
        }
    }
    const bool made = !had_subproblems && frgi_fe_cascade_subproblems(d->cascade);
    for (int k = 0; k < b->live && made; k++) {
        if (!refined[k]) { /* the same certificate once more, and its record */
            TRY(verify(d, &b->state[k], &b->audit, k, b->w->keep, b->lanes, b->error[k],
                       &b->columns[k]));
        }
    }
    return FRG_OK;
}

/** A status for every column, and the forecasts that gave one up. */
static void conclude(const block_run *b)
{
    run *const r = b->r;
    fe_subproblems *const subproblems = frgi_fe_cascade_subproblems(r->d->cascade);
    if (subproblems) {
        frgi_fe_subproblems_commit(subproblems, b->live);
    }
    for (int k = 0; k < b->live; k++) {
        frg_demean_column *const c = &b->columns[k];
        if (accepted(r->d, &b->state[k], c)) {
            c->status = FRG_OK;
            continue;
        }
        c->converged = 0; /* its bound may be too large where its residual is not */
        note_forecast(r, b->effects->first_column + k, b->state[k].steps_forecast);
        if (r->stopped != FRG_OK) {
            c->status = r->stopped;
        } else if (c->status == FRG_OK) {
            c->status = FRG_STALLED;
        }
    }
}

/** The block's columns to the device that runs their passes, or what is left of them back. */
static frg_status move_block(const run *r, const fe_block_effects *e, bool back)
{
    const fe_device_block block = fe_block_on_device(e);
    const fe_block x = worked_on(r, back ? &r->out : &r->in, e->first_column, e->live);
    return !r->there ? FRG_OK
           : back    ? frgi_fe_device_columns_give(r->there, &block, &x)
                     : frgi_fe_device_columns_take(r->there, &block, &x);
}

/** The algorithm, for one block of columns. */
static frg_status run_block(run *r, const fe_block_effects *e)
{
    block_run b = block_run_of(r, e);
    TRY(move_block(r, e, false));

    /* b = D_r' W (I - P_1) x */
    TRY(form_rhs(&b));

    /* S a = b,  S = D_r' W (I - P_1) D_r */
    TRY(solve_reduced(&b));

    /* r = (I - P_1)(x - D_r a),  s = D_r' W r */
    TRY(write_residual(&b));

    /* converged where eta = || N^(-1/2) s || / (sqrt(Q) || W^(1/2)(x - mean) ||) <= tol and
     * max |s_l| / N_l <= tol sd(r);  || W^(1/2)(r - r*) ||^2 = s' S^+ s */
    TRY(verify_block(&b));

    /* S da = s,  r <- (I - P_1)(r - D_r da), column by column where that did not hold */
    TRY(refine_block(&b));
    TRY(move_block(r, e, true));
    conclude(&b);
    return FRG_OK;
}

/* ---- through the order of the levels --------------------------------------------------------- */

/** Columns first .. first + width - 1 of `in` into the order of the levels, or from there into
 *  `out`; a positive status: stopped, with `out` as it was. */
static frg_status move_columns(const run *r, bool back)
{
    const frg_demean *const d = r->d;
    const frg_array *const a = back ? &r->out : &r->in;
    const size_t size = frg_sizeof(a->dtype);
    for (int64_t c = 0; c < r->width; c += FRGI_ORDER_COLUMNS) {
        const int64_t left = r->width - c;
        const int count = (int)(left < FRGI_ORDER_COLUMNS ? left : FRGI_ORDER_COLUMNS);
        const fe_block own = fe_block_of(a, r->first + c, count);
        const frgi_columns x = {own.base, own.row, own.column, count, size};
        const frgi_columns y = {d->detour.columns + c * (int64_t)size, r->width, 1, count, size};
        const frg_progress p = {.solver = "fe",
                                .phase = back ? "back to the rows' order" : "order by level",
                                .done = r->first + c,
                                .total = a->shape[1],
                                .residual = (double)NAN,
                                .target = (double)NAN};
        frg_status status = frgi_heartbeat(d->ctx, &p);
        const bool stops = !back || c == 0; /* out is written to behind the first */
        status = stops ? status : FRG_OK;
        if (status == FRG_OK) { /* to the buckets, and to the places */
            frgi_pass_begins(d->ctx, "fe", p.phase, 2 * r->in.shape[0] * count * (int64_t)size);
            status = back ? frgi_row_order_back(&d->detour.order, d->ctx, &y, &x, stops)
                          : frgi_row_order_forward(&d->detour.order, d->ctx, &x, &y, stops);
        }
        if (status != FRG_OK) {
            return status;
        }
    }
    return FRG_OK;
}

/** The columns at hand as they came, and their reports. */
static void leave_columns(run *r, frg_status stopped)
{
    const size_t size = frg_sizeof(r->in.dtype);
    for (int64_t c = r->first; c < r->first + r->width; c++) {
        const fe_block x = fe_block_of(&r->in, c, 1), y = fe_block_of(&r->out, c, 1);
        for (int64_t i = 0; x.base != y.base && i < r->in.shape[0]; i++) {
            memcpy(y.base + i * y.row * (ptrdiff_t)size, x.base + i * x.row * (ptrdiff_t)size,
                   size);
        }
        r->columns[c] = (frg_demean_column){.status = stopped,
                                            .audit = (double)NAN,
                                            .gradient = (double)NAN,
                                            .error_bound = (double)NAN,
                                            .worst_factor = -1};
    }
    r->d->detour.lost = true;
    r->stopped = stopped;
}

/** The largest |value| of a few columns; infinite where one is no number or too large. */
static void largest_of(const frg_array *in, int64_t first, int count, int threads,
                       double largest[FE_MAX_LANES])
{
    enum { PARTS = 64, MANY = 10000 };
    double most[PARTS][FE_MAX_LANES] = {{0}};
    const int64_t n = in->shape[0];
#pragma omp parallel for schedule(static) num_threads(threads) if (n > MANY)
    for (int64_t q = 0; q < PARTS; q++) {
        for (int64_t i = q * n / PARTS; i < (q + 1) * n / PARTS; i++) {
            for (int k = 0; k < count; k++) {
                const double v = fabs(frgi_array_get(in, i, first + k));
                most[q][k] = fmax(most[q][k], v <= FE_LARGEST ? v : (double)INFINITY);
            }
        }
    }
    for (int k = 0; k < count; k++) {
        largest[k] = 0;
        for (int q = 0; q < PARTS; q++) {
            largest[k] = fmax(largest[k], most[q][k]);
        }
    }
}

/** Refuses what a block of columns from `first` on would when those before it are written, and a
 *  solver of rows would name by its place in the order of the levels. */
static frg_status check_values(const frg_demean *d, const frg_array *in, int64_t first)
{
    double largest[FE_MAX_LANES];
    for (int64_t c = first; c < in->shape[1]; c += FE_MAX_LANES) {
        const int64_t left = in->shape[1] - c;
        const int count = (int)(left < FE_MAX_LANES ? left : FE_MAX_LANES);
        largest_of(in, c, count, frg_threads(d->ctx), largest);
        for (int k = 0; k < count; k++) {
            if (!(largest[k] <= FE_LARGEST) || vanishes(d, largest[k])) {
                return refuse_values(d, in, c + k, c + k, largest[k]);
            }
        }
    }
    return FRG_OK;
}

/** All columns where rows are solved for, else those of block e. */
static frg_status solve_there(run *r, const fe_block_effects *e)
{
    const frg_demean *const d = r->d;
    const int64_t n = d->rows.n;
    if (e) {
        return run_block(r, e);
    }
    const frg_array x = frg_matrix(d->detour.columns, r->in.dtype, n, r->width, r->width);
    return frgi_fe_row_lsmr_run(d->row_lsmr, d->ctx, x, x, r->columns);
}

static frg_status run_through_order(run *r, const fe_block_effects *e)
{
    r->first = e ? e->first_column : 0;
    r->width = e ? e->live : r->in.shape[1];
    TRY(e ? FRG_OK : check_values(r->d, &r->in, 0));
    frg_status stopped = r->stopped != FRG_OK ? r->stopped : move_columns(r, false);
    if (stopped == FRG_OK) {
        TRY(solve_there(r, e));
        stopped = move_columns(r, true);
    }
    if (stopped != FRG_OK) {
        leave_columns(r, stopped);
    }
    return FRG_OK;
}

bool frgi_fe_demean_lost(const frg_demean *d)
{
    return d->detour.lost;
}

/** Solves for all columns, block by block or together. */
static frg_status run_columns(run *r)
{
    frg_demean *const d = r->d;
    const bool there = d->detour.there && r->in.shape[1] > 0;
    d->detour.lost = false;
    if (d->row_lsmr) {
        return there ? run_through_order(r, NULL)
                     : frgi_fe_row_lsmr_run(d->row_lsmr, d->ctx, r->in, r->out, r->columns);
    }
    for (int i = 0; i < d->n_blocks && d->rows.n > 0; i++) {
        TRY(there ? run_through_order(r, &d->blocks[i]) : run_block(r, &d->blocks[i]));
    }
    return FRG_OK;
}

/* ---- the calls ------------------------------------------------------------------------------- */

/** Why a plan takes the columns of host arrays alone; NULL: its passes are a device's. */
static const char *host_columns(const frg_demean *d)
{
    const bool passes = frgi_fe_row_lsmr_passes(d->row_lsmr) || frgi_fe_cascade_passes(d->cascade);
    return !frgi_device_of(d->ctx) ? "the plan is for the cpu"
           : d->detour.there       ? "a spool brings rows together in host memory"
           : !passes               ? "passes over columns take a device with double"
                                   : NULL;
}

/** An array of the host, or of the device that the passes run on, which looks at it itself. */
static frg_status check_array(const frg_demean *d, const frg_array *a, const char *name)
{
    const unsigned floats = 1u << FRG_F64 | 1u << FRG_F32;
    const char *const why = host_columns(d);
    frg_array own = *a;
    own.device = (frg_device){FRG_CPU, 0};
    if (a->device.kind != FRG_CPU && why) {
        FAIL(d->ctx, E_DEVICE_HANDLE, "%s lies on a device, and %s: give a copy in host memory",
             name, why);
    }
    return frgi_array_check(d->ctx, &own, name, 2, floats);
}

static frg_status check_run(frg_demean *d, const frg_array *in, const frg_array *out)
{
    frg_context *ctx = d->ctx;
    TRY(check_array(d, in, "x"));
    TRY(check_array(d, out, "out"));
    if (in->dtype != out->dtype) {
        FAIL(ctx, E_DTYPE, "x holds %s and out %s", frg_dtype_name(in->dtype),
             frg_dtype_name(out->dtype));
    }
    if (in->shape[0] != d->rows.n || out->shape[0] != in->shape[0] ||
        out->shape[1] != in->shape[1]) {
        FAIL(ctx, E_SHAPE, "the plan has %lld rows, x is %lld x %lld, out is %lld x %lld",
             (long long)d->rows.n, (long long)in->shape[0], (long long)in->shape[1],
             (long long)out->shape[0], (long long)out->shape[1]);
    }
    return FRG_OK;
}

/** Worse statuses first: the run's status is the worst column's. */
static int severity(frg_status s)
{
    static const frg_status order[] = {FRG_OK, FRG_STALLED, FRG_MAX_ITER, FRG_TIME_LIMIT,
                                       FRG_INTERRUPTED};
    int i = 0;
    while (i < 4 && order[i] != s) {
        i++;
    }
    return i;
}

/** Notes, and says once, that a column converged by what its type can reach and not by tol. */
static void note_raised_tol(frg_demean *d, const frg_array *in, const frg_demean_column *reports)
{
    const double tol = d->opts.tol;
    const bool f32 = in->dtype == FRG_F32;
    const double reached = frgi_fe_reachable(tol, f32 ? (double)FLT_EPSILON : DBL_EPSILON);
    bool raised = false;
    for (int64_t c = 0; c < in->shape[1]; c++) {
        const frg_demean_column *const r = &reports[c];
        raised |= r->converged && (r->gradient > tol || (f32 && r->audit > tol));
    }
    if (raised && reached > tol) {
        frgi_fe_say_raised(d->ctx, tol, reached, f32 ? "float32 columns" : "float64 columns");
        d->tol_used = reached;
    }
}

/** Memory on the device that runs the columns' passes, where there is one. */
static frg_status open_columns(run *r)
{
    const frg_demean *const d = r->d;
    fe_device_run there = {.f32 = r->f32};
    if (d->row_lsmr || d->n_blocks == 0 || d->rows.n == 0) {
        return FRG_OK;
    }
    r->there = frgi_fe_cascade_passes(d->cascade);
    for (int i = 0; i < d->n_blocks; i++) {
        const int lanes = d->blocks[i].lanes;
        there.lanes += lanes;
        there.most = lanes > there.most ? lanes : there.most;
    }
    if (!d->detour.there) {
        there.in = &r->in;
        there.out = &r->out;
    }
    return r->there ? frgi_fe_device_columns_open(r->there, &there) : FRG_OK;
}

/** Refuses what the blocks behind the first would when those before them are written. */
static frg_status check_blocks(run *r)
{
    frg_demean *const d = r->d;
    const bool written_last = r->there && frgi_fe_device_columns_whole(r->there);
    if (d->n_blocks < 2 || d->rows.n == 0 || written_last) {
        return FRG_OK;
    }
    if (r->in.device.kind == FRG_CPU) {
        return check_values(d, &r->in, d->blocks[1].first_column);
    }
    for (int i = 1; i < d->n_blocks; i++) {
        const fe_block_effects *const e = &d->blocks[i];
        fe_moments moments;
        TRY(move_block(r, e, false));
        TRY(pass_rhs(r, e, -1, d->work[e->lanes].cg.r, &moments));
        TRY(check_moments(r, e, &moments));
    }
    return FRG_OK;
}

/** whole: nothing is written where a value is refused, which takes a look at all but the first
 *  block, unless all columns are written together. */
static frg_status run_all(frg_demean *d, frg_array in, frg_array out, bool whole,
                          frg_demean_column columns[], frg_info *info)
{
    const double began = frgi_seconds();
    frg_info summary = {.objective = (double)NAN, .setup_seconds = d->setup_seconds};
    run r = {.d = d, .in = in, .out = out, .f32 = in.dtype == FRG_F32};
    const frgi_device_counts before = frgi_device_counts_now(d->dev);
    frgi_host_steps *const outer = frgi_host_steps_begin(d->ctx, &d->host_steps);
    frg_status status;
    TRY_TO(done, check_run(d, &in, &out));
    const int64_t p = in.shape[1];
    TRY_TO(done, frgi_fe_demean_prepare(d, p));
    TRY_TO(done, open_columns(&r));
    if (whole) {
        TRY_TO(done, check_blocks(&r));
    }
    memset(d->reports, 0, (size_t)p * sizeof *d->reports);
    frg_demean_column *reports = r.columns = d->reports;
    TRY_TO(done, run_columns(&r));
    if (r.there) {
        TRY_TO(done, frgi_fe_device_columns_close(r.there, &out));
    }
    for (int64_t c = 0; c < p && d->rows.n == 0; c++) { /* nothing is left of nothing */
        reports[c] = (frg_demean_column){.status = FRG_OK, .converged = 1};
    }
    for (int64_t c = 0; c < p; c++) {
        status = severity(reports[c].status) > severity(status) ? reports[c].status : status;
        summary.iterations =
            reports[c].iterations > summary.iterations ? reports[c].iterations : summary.iterations;
        summary.residual =
            reports[c].audit > summary.residual ? reports[c].audit : summary.residual;
    }
    if (columns) {
        memcpy(columns, reports, (size_t)p * sizeof *columns);
    }
    if (r.given_up > 0) {
        warn_forecast(&r);
    }
    note_raised_tol(d, &in, reports);
done:
    if (r.there) {
        frgi_fe_device_columns_drop(r.there);
    }
    frgi_device_counts_since(d->dev, before, &d->counted);
    frgi_host_steps_end(d->ctx, outer);
    summary.status = status;
    summary.device_name =
        d->row_lsmr ? frgi_fe_row_lsmr_place(d->row_lsmr) : frgi_fe_cascade_place(d->cascade);
    summary.solve_seconds = frgi_seconds() - began;
    summary.peak_bytes = frg_peak_bytes(d->ctx);
    if (info) {
        *info = summary;
    }
    return status;
}

frg_status frgi_fe_demean_run(frg_demean *d, frg_array in, frg_array out,
                              frg_demean_column columns[], frg_info *info)
{
    return run_all(d, in, out, false, columns, info);
}

frg_status frg_demean_run(frg_demean *d, frg_array x, frg_array out, frg_demean_column columns[],
                          frg_info *info)
{
    if (!d) {
        return FRG_BAD_ARG;
    }
    frgi_run_begins(d->ctx);
    const frg_status status = run_all(d, x, out, true, columns, info);
    TRY(status);
    TRY(frgi_spool_check(d->ctx));
    return status;
}
