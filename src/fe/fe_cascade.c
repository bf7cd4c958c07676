/* fe_cascade.c - which solver of fe_solvers.h a solve begins with, and how it escalates from one to
 * the next.
 *
 * Costs that decide are seconds of one thread, measured on two machines; only their ratios matter.
 */
#include "fe/fe_cascade.h"

#include <math.h>
#include <string.h>

#include "core/checkpoint_bytes.h"
#include "core/host_step.h"
#include "fe/fe_coupling.h"
#include "fe/fe_device.h"
#include "fe/fe_groups.h"
#include "fe/fe_solvers.h"
#include "fe/fe_steps.h"
#include "fe/fe_subproblems.h"

enum {
    ROW_STEPS = 30, /* through the rows before the choice is made again: easy graphs need 5 to 15 */
    ROW_FORECAST = 60,   /* with more iterations forecast the choice is made again at once */
    FEW_STEPS = 20,      /* CG iterations that need no factor */
    MANY_STEPS = 150,    /* CG iterations that pay for an approximate factor */
    SCHWARZ_STEPS = 500, /* that a solve by Schwarz costs, measured */
    PROBE_LENGTHS = 3    /* of the steps forecast, in which a stall shows */
};
static const double CHEAP_PRODUCTS = 1; /* a row: S is assembled at once */
static const double WORTH_PRODUCTS =
    30; /* a row: S is assembled when CG through the rows is slow */
static const double SECONDS_PER_ROW = 1e-8;
static const double SECONDS_PER_ENTRY = 1e-9;  /* of S, and column */
static const double COLUMNS_A_PLAN_SOLVES = 4; /* for which its factor is made once */

struct fe_cascade {
    fe_solvers all;
    bool chosen;
    fe_solver choice;            /* beyond the rows */
    bool split_tried;            /* frgi_fe_subproblems_create was called */
    fe_subproblems *subproblems; /* NULL: S is solved as a whole */
    bool beyond;                 /* CG through the rows is known to be too slow */
    fe_solver used;
};

void frgi_fe_block_work_layout(frgi_arena *a, const fe_rows *g, int lanes, bool passes,
                               fe_block_work *w)
{
    w->lanes = lanes;
    if (passes) {
        frgi_fe_row_work_layout(a, g, lanes, &w->rows);
    }
    frgi_fe_cg_layout(a, g->n_reduced, lanes, &w->cg);
    w->answer = TAKE(a, double, frgi_mul((size_t)g->n_reduced, (size_t)lanes));
    w->keep = TAKE(a, double, frgi_mul((size_t)g->n_reduced, (size_t)lanes));
}

frg_status frgi_fe_cascade_create(fe_cascade **out, frg_context *ctx, const fe_rows *g,
                                  const frg_demean_opts *o)
{
    *out = NULL;
    fe_cascade *c;
    TRY(NEW0(ctx, &c, 1, "solver cascade"));
    c->all.g = g;
    c->all.ctx = ctx;
    c->all.opts = *o;
    c->all.products = -1;
    *out = c;
    return FRG_OK;
}

void frgi_fe_cascade_take_device(fe_cascade *c, fe_device *device)
{
    c->all.device = device;
}

fe_device *frgi_fe_cascade_device(const fe_cascade *c)
{
    return c->all.device;
}

fe_device *frgi_fe_cascade_passes(const fe_cascade *c)
{
    return c && frgi_fe_device_has_passes(c->all.device) ? c->all.device : NULL;
}

frg_status frgi_fe_cascade_reweight_device(fe_cascade *c)
{
    return c->all.device ? frgi_fe_device_reweight(c->all.device) : FRG_OK;
}

bool frgi_fe_cascade_in_float(const fe_cascade *c)
{
    return c->all.device && frgi_fe_device_in_float(c->all.device);
}

const char *frgi_fe_cascade_place(const fe_cascade *c)
{
    return c->all.device_used || frgi_fe_cascade_passes(c) ? frgi_fe_device_place(c->all.device)
                                                           : "cpu";
}

void frgi_fe_cascade_destroy(fe_cascade *c, frg_context *ctx)
{
    if (!c) {
        return;
    }
    frgi_fe_solvers_destroy(&c->all, ctx);
    frgi_fe_subproblems_destroy(c->subproblems, ctx);
    DROP(ctx, &c);
}

void frgi_fe_cascade_renew(fe_cascade *c, frg_context *ctx, double tol)
{
    frgi_fe_solvers_renew(&c->all, ctx, tol, c->choice == FE_SOLVER_DIRECT);
    c->chosen = c->beyond = false;
    c->used = FE_SOLVER_ROWS;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/** Splits S into the subproblems of its components where several of them are large; tried once, and
 *  not for a device, which holds the rows of all of them. */
static frg_status split_components(fe_cascade *c, frg_context *ctx)
{
    if (c->split_tried || c->all.device || !frgi_fe_solvers_are_free(&c->all)) {
        return FRG_OK;
    }
    const frg_status status =
        frgi_fe_subproblems_create(&c->subproblems, ctx, c->all.g, &c->all.opts);
    if (status != FRG_OK) {
        return status;
    }
    c->split_tried = true;
    if (c->subproblems) {
        c->choice = FE_SOLVER_SUBPROBLEMS;
        frgi_fe_solvers_drop_factor(&c->all);
        frgi_fe_schur_destroy(&c->all.schur, ctx);
    }
    return FRG_OK;
}

/** Takes the factor if it costs less than `seconds`; steps: what CG is forecast to take. */
static frg_status compare_factor(fe_cascade *c, frg_context *ctx, double seconds, double steps)
{
    frgi_fe_solvers_drop_factor(&c->all);
    const frg_status status = frgi_fe_solvers_analyse(&c->all, ctx, seconds, steps);
    if (status == FRG_OK && frgi_fe_solvers_factor_seconds(&c->all) < seconds) {
        c->choice = FE_SOLVER_DIRECT;
    }
    return frgi_direct_refused(ctx, status) ? FRG_OK : status;
}

/** The same for a design with two large factors beside the eliminated one: a few steps do not show
 *  that these are joined badly with each other, as a random right-hand side hardly sees it; with
 *  many iterations forecast, Schwarz bounds what a factor may cost. */
static frg_status compare_schwarz(fe_cascade *c, frg_context *ctx, const fe_block_work *single,
                                  double steps, double step)
{
    frg_status status = compare_factor(c, ctx, fmin(steps, SCHWARZ_STEPS) * step, steps);
    if (status != FRG_OK || c->choice != FE_SOLVER_EXPLICIT) {
        return status;
    }
    const int64_t length = PROBE_LENGTHS * (int64_t)steps;
    status = frgi_fe_solvers_probe(&c->all, ctx, FE_SOLVER_EXPLICIT, single,
                                   length < MANY_STEPS ? length : MANY_STEPS, &steps);
    if (status != FRG_OK || steps <= MANY_STEPS) {
        return status;
    }
    c->choice = FE_SOLVER_SCHWARZ;
    return compare_factor(c, ctx, SCHWARZ_STEPS * step, steps);
}

/** Chooses between CG and a factor for the assembled S.  An envelope that costs less than FEW_STEPS
 *  CG iterations needs no probe.  Otherwise: few iterations -> CG; a factor that costs less than
 *  the iterations -> direct; several large components -> a subproblem each; many iterations -> the
 *  approximate factor, of pairs where there are any beside those with the eliminated factor. */
static frg_status compare_solvers(fe_cascade *c, frg_context *ctx, const fe_block_work *single)
{
    const double step =
        (double)c->all.schur.starts[c->all.schur.n] * COLUMNS_A_PLAN_SOLVES * SECONDS_PER_ENTRY;
    if (c->all.previous.usable) { /* it was the cheapest for other weights */
        c->choice = FE_SOLVER_DIRECT;
        return FRG_OK;
    }
    frg_status status = frgi_fe_solvers_analyse(&c->all, ctx, 0, 0);
    if (status != FRG_OK && !frgi_direct_refused(ctx, status)) {
        return status;
    }
    if (status == FRG_OK && frgi_fe_solvers_factor_seconds(&c->all) < FEW_STEPS * step) {
        c->choice = FE_SOLVER_DIRECT;
        return FRG_OK;
    }
    double steps;
    status =
        frgi_fe_solvers_probe(&c->all, ctx, FE_SOLVER_EXPLICIT, single, FE_PROBE_STEPS, &steps);
    if (status != FRG_OK) {
        return status;
    }
    const bool pairs = frgi_fe_split_factors(c->all.g).n_sparse > 1;
    c->choice = steps <= MANY_STEPS ? FE_SOLVER_EXPLICIT : pairs ? FE_SOLVER_SCHWARZ : FE_SOLVER_AC;
    if (steps <= FEW_STEPS) {
        return FRG_OK;
    }
    status = split_components(c, ctx);
    if (status != FRG_OK || c->subproblems) {
        return status;
    }
    return pairs ? compare_schwarz(c, ctx, single, steps, step)
                 : compare_factor(c, ctx, steps * step, steps);
}

/** Do the options force a solver that needs the assembled S? */
static bool is_forced(const fe_cascade *c)
{
    return c->all.opts.method == FRG_FE_DIRECT || c->all.opts.precond == FRG_FE_PRECOND_AC ||
           c->all.opts.precond == FRG_FE_PRECOND_SCHWARZ;
}

/** Chooses the solver beyond the rows, once for the plan.  The components are labelled before S is
 *  assembled, unless assembly costs no more than labelling them.  A device has products with S
 *  through the rows alone; the factors are the host's. */
static frg_status choose(fe_cascade *c, frg_context *ctx, const fe_block_work *single)
{
    if (c->chosen) {
        return FRG_OK;
    }
    frg_status status = FRG_OK;
    if (c->all.products > CHEAP_PRODUCTS * (double)c->all.g->n) {
        status = split_components(c, ctx);
    }
    if (status == FRG_OK && !c->subproblems) {
        status = frgi_fe_solvers_assemble(&c->all, ctx);
    }
    if (status != FRG_OK) {
        return status;
    }
    if (c->all.refused && is_forced(c)) {
        FAIL(ctx, E_TOO_BIG,
             "%s needs an assembled matrix of about %.0f bytes, fill_cap allows %zu",
             c->all.opts.method == FRG_FE_DIRECT        ? "method direct"
             : c->all.opts.precond == FRG_FE_PRECOND_AC ? "precond ac"
                                                        : "precond schwarz",
             frgi_fe_solvers_schur_bytes(&c->all), frgi_fe_fill_cap(ctx, &c->all.opts));
    }
    if (c->subproblems) {
        c->choice = FE_SOLVER_SUBPROBLEMS;
    } else if (c->all.refused) {
        status = split_components(c, ctx);
        c->choice = c->subproblems ? FE_SOLVER_SUBPROBLEMS : FE_SOLVER_ROWS;
    } else if (c->all.opts.precond == FRG_FE_PRECOND_AC) {
        c->choice = FE_SOLVER_AC;
    } else if (c->all.opts.precond == FRG_FE_PRECOND_SCHWARZ) {
        c->choice = FE_SOLVER_SCHWARZ;
    } else if (c->all.opts.method == FRG_FE_DIRECT) {
        c->choice = FE_SOLVER_DIRECT;
    } else if (c->all.opts.precond != FRG_FE_PRECOND_AUTO) {
        c->choice = FE_SOLVER_EXPLICIT;
    } else {
        status = compare_solvers(c, ctx, single);
    }
    if (c->all.device && c->choice == FE_SOLVER_EXPLICIT) {
        c->choice = FE_SOLVER_ROWS;
    }
    c->chosen = status == FRG_OK;
    return status;
}

/** Estimates once what S would cost; where that is too much, the components are split before an
 *  iteration is made. */
static frg_status study(fe_cascade *c, frg_context *ctx)
{
    if (c->all.products < 0) {
        double products;
        const frg_status status = frgi_fe_groups_estimate(c->all.g, ctx, &products);
        if (status != FRG_OK) {
            return status;
        }
        if (products > WORTH_PRODUCTS * (double)c->all.g->n) {
            const frg_status split = split_components(c, ctx);
            if (split != FRG_OK) {
                return split;
            }
            c->beyond = c->subproblems != NULL;
        }
        c->all.products = products;
    }
    return FRG_OK;
}

/** Does a solve begin beyond the rows? */
static bool skips_rows(const fe_cascade *c, fe_cascade_start start)
{
    return c->beyond || is_forced(c) || start != FE_FROM_ROWS ||
           (c->all.opts.method != FRG_FE_CG &&
            c->all.products <= CHEAP_PRODUCTS * (double)c->all.g->n);
}

/** Sets the right-hand sides of finished columns to 0; *left <- how many columns go on. */
static frg_status drop_finished(const fe_rows *g, const fe_block_work *w,
                                const fe_cg_column *column, fe_cg_target *target, int *left)
{
    double keeps[FE_MAX_LANES];
    *left = 0;
    for (int k = 0; k < w->lanes; k++) {
        target[k].within -= column[k].energy;
        target[k].most -= column[k].steps;
        keeps[k] = !column[k].done;
        *left += !column[k].done;
    }
    return *left > 0 ? g->steps->reduced.scale(g->n_reduced, w->lanes, keeps, w->cg.r) : FRG_OK;
}

bool frgi_fe_cascade_begins_beyond(const fe_cascade *c)
{
    return skips_rows(c, FE_FROM_ROWS);
}

frg_status frgi_fe_cascade_prepare(fe_cascade *c, frg_context *ctx, const fe_block_work *single)
{
    double steps = 0;
    frg_status status = study(c, ctx);
    if (status != FRG_OK) {
        return status;
    }
    if (!skips_rows(c, FE_FROM_ROWS) && c->all.products <= WORTH_PRODUCTS * (double)c->all.g->n) {
        status = frgi_fe_solvers_border(&c->all, ctx);
        status = status == FRG_OK ? frgi_fe_solvers_probe(&c->all, ctx, FE_SOLVER_ROWS, single,
                                                          FE_PROBE_STEPS, &steps)
                                  : status;
        c->beyond = status == FRG_OK && steps > ROW_STEPS;
    }
    if (status == FRG_OK && skips_rows(c, FE_FROM_ROWS)) {
        status = choose(c, ctx, single);
        status = status == FRG_OK ? frgi_fe_solvers_build(&c->all, ctx, c->choice) : status;
    }
    return status;
}

/** Solves by the solver beyond the rows. */
static frg_status escalate(fe_cascade *c, frg_context *ctx, const fe_block_work *w,
                           const fe_block_work *single, fe_cascade_start start,
                           const fe_cg_target *target, fe_cg_column *column)
{
    /* the probe takes the work memory of one column: what w holds is kept aside when they are the
     * same */
    const fe_steps *const steps = c->all.g->steps;
    const bool shared = single->cg.r == w->cg.r;
    frg_status status = FRG_OK;
    if (shared) {
        status = steps->reduced.copy(c->all.g->n_reduced, 1, w->cg.r, w->cg.z);
    }
    status = status == FRG_OK ? choose(c, ctx, single) : status;
    if (shared && status >= 0) {
        TRY(steps->reduced.copy(c->all.g->n_reduced, 1, w->cg.z, w->cg.r));
    }
    if (status != FRG_OK) {
        return status;
    }
    fe_solver next = c->choice;
    if (start == FE_FROM_FACTOR && next != FE_SOLVER_SUBPROBLEMS && !c->all.refused) {
        next = FE_SOLVER_DIRECT;
    }
    const frg_status built = frgi_fe_solvers_build(&c->all, ctx, next);
    if (built != FRG_OK) { /* `used` stays what it was: an interrupted solver does not exist */
        return built;
    }
    c->used = next;
    if (next == FE_SOLVER_SUBPROBLEMS) {
        return frgi_fe_subproblems_solve(c->subproblems, ctx, w, start, target, column);
    }
    if (next == FE_SOLVER_DIRECT) {
        /* a refinement is audited right afterwards, and may be repeated */
        return frgi_fe_solvers_direct(&c->all, ctx, w, start == FE_FROM_ASSEMBLED ? 1 : 2,
                                      start == FE_FROM_FACTOR, column);
    }
    return frgi_fe_solvers_cg(&c->all, ctx, next, w, c->all.opts.max_iter, target, column);
}

/** The same for a block of a number of lanes that the host's solvers do not have: these take so
 *  many of its columns as they have at a time, behind which the last have none. */
static frg_status escalate_block(fe_cascade *c, frg_context *ctx, const fe_block_work *w,
                                 const fe_block_work *work, fe_cascade_start start,
                                 const fe_cg_target *target, fe_cg_column *column)
{
    const fe_system_steps *const steps = &c->all.g->steps->reduced;
    const int64_t n = c->all.g->n_reduced;
    const int lanes = frgi_fe_host_lanes(frgi_context_isa(ctx), w->lanes);
    const frg_status chosen = lanes == w->lanes ? FRG_OK : choose(c, ctx, &work[1]);
    if (chosen != FRG_OK) {
        return chosen;
    }
    if (lanes == w->lanes || c->choice == FE_SOLVER_ROWS) {
        return escalate(c, ctx, w, &work[1], start, target, column);
    }
    for (int k = 0; k < w->lanes; k++) {
        column[k] = (fe_cg_column){.lambda = (double)NAN}; /* of those that a stop leaves out */
    }
    for (int first = 0; first < w->lanes; first += lanes) {
        const fe_block_work *const own = &work[lanes];
        const int left = w->lanes - first, count = left < lanes ? left : lanes;
        fe_cg_target goal[FE_HOST_LANES];
        fe_cg_column ended[FE_HOST_LANES] = {0};
        for (int k = 0; k < lanes; k++) {
            goal[k] = k < count ? target[first + k]
                                : (fe_cg_target){.lambda = (double)NAN, .lane = first + k};
        }
        TRY(steps->copy(n, lanes, NULL, own->cg.r));
        TRY(steps->copy(n, lanes, NULL, own->answer));
        TRY(steps->move(n, count, w->lanes, first, w->cg.r, lanes, 0, own->cg.r));
        TRY(steps->move(n, count, w->lanes, first, w->answer, lanes, 0, own->answer));
        const frg_status status = escalate(c, ctx, own, &work[1], start, goal, ended);
        TRY(status);
        TRY(steps->move(n, count, lanes, 0, own->answer, w->lanes, first, w->answer));
        memcpy(column + first, ended, (size_t)count * sizeof *column);
        if (status != FRG_OK) {
            return status;
        }
    }
    return FRG_OK;
}

frg_status frgi_fe_cascade_solve(fe_cascade *c, frg_context *ctx, const fe_block_work *w,
                                 const fe_block_work *work, fe_cascade_start start,
                                 const fe_cg_target *goal, fe_cg_column *column)
{
    const int lanes = w->lanes;
    fe_cg_target target[FE_MAX_LANES];
    fe_cg_column before[FE_MAX_LANES] = {0};
    memcpy(target, goal, (size_t)lanes * sizeof *target);
    frgi_host_step(ctx, FRGI_HOST_UNKNOWNS);
    TRY(c->all.g->steps->reduced.copy(c->all.g->n_reduced, w->lanes, NULL, w->answer));
    memset(column, 0, (size_t)lanes * sizeof *column);
    TRY(frgi_fe_solvers_ones(&c->all, ctx));
    const frg_status studied = study(c, ctx);
    if (studied != FRG_OK) {
        return studied;
    }
    if (!skips_rows(c, start)) {
        const bool further = c->all.opts.method != FRG_FE_CG &&
                             c->all.products <= WORTH_PRODUCTS * (double)c->all.g->n;
        const int64_t steps =
            further && c->all.opts.max_iter > ROW_STEPS ? ROW_STEPS : c->all.opts.max_iter;
        c->used = FE_SOLVER_ROWS;
        for (int k = 0; k < lanes; k++) {
            target[k].forecast_limit = further ? ROW_FORECAST : 0;
        }
        int left = 0;
        const frg_status status =
            frgi_fe_solvers_cg(&c->all, ctx, FE_SOLVER_ROWS, w, steps, target, column);
        if (status != FRG_OK || !further) {
            return status;
        }
        TRY(drop_finished(c->all.g, w, column, target, &left));
        if (left == 0) {
            return FRG_OK;
        }
        memcpy(before, column, sizeof before);
        for (int k = 0; k < lanes; k++) {
            target[k].forecast_limit = 0;
        }
    }
    const frg_status status = escalate_block(c, ctx, w, work, start, target, column);
    for (int k = 0; k < lanes; k++) {
        column[k].steps += before[k].steps;
        column[k].lambda = before[k].done ? before[k].lambda : column[k].lambda;
        column[k].escalated = c->used != FE_SOLVER_ROWS && !before[k].done;
    }
    return status;
}

frg_status frgi_fe_cascade_error(const fe_cascade *c, const fe_block_work *w, const double *s,
                                 const double *lambda, bool prepared, double *error)
{
    const fe_solver which = !prepared                          ? c->used
                            : frgi_fe_cascade_begins_beyond(c) ? c->choice
                                                               : FE_SOLVER_ROWS;
    double *const z = w->cg.z;
    if (which == FE_SOLVER_SUBPROBLEMS) {
        return frgi_fe_subproblems_error(c->subproblems, w, s, lambda, prepared, error);
    }
    TRY(frgi_fe_solvers_precondition(&c->all, which, w->lanes, s, z));
    TRY(c->all.g->steps->reduced.dot(c->all.g->n_reduced, w->lanes, s, z, error));
    for (int k = 0; k < w->lanes && which != FE_SOLVER_DIRECT; k++) {
        error[k] /= lambda[k];
    }
    return FRG_OK;
}

/* ---- reporting ------------------------------------------------------------------------------- */

bool frgi_fe_cascade_is_direct(const fe_cascade *c)
{
    return c->used == FE_SOLVER_SUBPROBLEMS ? frgi_fe_subproblems_at_end(c->subproblems)
                                            : c->used == FE_SOLVER_DIRECT;
}

fe_subproblems *frgi_fe_cascade_subproblems(const fe_cascade *c)
{
    return c->subproblems;
}

const char *frgi_fe_cascade_method(const fe_cascade *c)
{
    if (c->all.g->n_reduced == 0) {
        return frgi_fe_cascade_passes(c) ? "closed form on a device" : "closed form";
    }
    if (c->used == FE_SOLVER_SUBPROBLEMS) {
        return frgi_fe_subproblems_method(c->subproblems);
    }
    if (c->all.device) {
        return c->used == FE_SOLVER_ROWS ? frgi_fe_device_method(c->all.device)
                                         : frgi_fe_solver_name_beside_device(c->used);
    }
    return c->used == FE_SOLVER_ROWS && c->all.opts.dtype != FRG_FE_F64
               ? "cg rows, float32 directions"
               : frgi_fe_solver_name(c->used);
}

size_t frgi_fe_cascade_factor_bytes(const fe_cascade *c)
{
    return frgi_fe_solvers_bytes(&c->all) +
           (c->subproblems ? frgi_fe_subproblems_bytes(c->subproblems) : 0);
}

/** Rank of S where a factor has counted it; -1 otherwise. */
static int64_t counted_rank(const fe_cascade *c)
{
    return c->all.factored ? frgi_direct_rank(c->all.direct) : -1;
}

frg_status frgi_fe_cascade_count(fe_cascade *c, frg_context *ctx, bool cheap_only, int64_t *rank)
{
    const frg_status studied = study(c, ctx);
    if (studied != FRG_OK) {
        *rank = -1;
        return studied;
    }
    if (c->subproblems) {
        return frgi_fe_subproblems_rank(c->subproblems, ctx, cheap_only, rank);
    }
    const double rows = (double)c->all.g->n;
    *rank = counted_rank(c);
    if (*rank >= 0 || (cheap_only && c->all.products > CHEAP_PRODUCTS * rows)) {
        return FRG_OK;
    }
    const frg_status built = frgi_fe_solvers_assemble(&c->all, ctx);
    if (built != FRG_OK || (c->all.refused && cheap_only)) {
        return built;
    }
    if (c->all.refused) {
        FAIL(ctx, E_TOO_BIG, "the exact rank needs a factor that fill_cap does not allow");
    }
    if (cheap_only) {
        const frg_status status = frgi_fe_solvers_analyse(&c->all, ctx, 0, 0);
        if (frgi_direct_refused(ctx, status) ||
            (status == FRG_OK &&
             frgi_fe_solvers_factor_seconds(&c->all) > SECONDS_PER_ROW * rows)) {
            return FRG_OK;
        }
        if (status != FRG_OK) {
            return status;
        }
    }
    const frg_status factored = frgi_fe_solvers_build(&c->all, ctx, FE_SOLVER_DIRECT);
    *rank = counted_rank(c);
    return factored;
}

/* ---- saved and read back --------------------------------------------------------------------- */

frg_status frgi_fe_cascade_put(const fe_cascade *c, fe_cascade_facts *facts, frg_checkpoint *to)
{
    if (c->all.device || c->subproblems) {
        FAIL(c->all.ctx, E_UNSUPPORTED, "a plan %s is not saved: make it anew where it is needed",
             c->all.device ? "on a device" : "whose components are solved apart");
    }
    *facts = (fe_cascade_facts){.chosen = c->chosen,
                                .choice = (int64_t)c->choice,
                                .split_tried = c->split_tried,
                                .beyond = c->beyond,
                                .used = (int64_t)c->used};
    TRY(frgi_fe_solvers_put(&c->all, facts, to));
    return frg_checkpoint_put(to, "cascade", facts, sizeof *facts);
}

static bool facts_are_sound(const fe_cascade *c, const fe_cascade_facts *f)
{
    const int64_t flags = f->refused | f->chosen | f->split_tried | f->beyond | f->assembled |
                          f->factored | f->approximate;
    const bool knows = f->choice >= FE_SOLVER_ROWS && f->choice <= FE_SOLVER_SCHWARZ &&
                       f->used >= FE_SOLVER_ROWS && f->used <= FE_SOLVER_SCHWARZ;
    const bool needs_s = f->used == FE_SOLVER_EXPLICIT || f->factored || f->approximate ||
                         (f->chosen && f->choice != FE_SOLVER_ROWS);
    return (flags & ~INT64_C(1)) == 0 && knows && (f->assembled || !needs_s) && f->border >= 0 &&
           f->border <= c->all.g->n_reduced && f->groups >= 0 &&
           (f->used != FE_SOLVER_DIRECT || f->factored) &&
           (!frgi_fe_solver_approximate((fe_solver)f->used) || f->approximate);
}

frg_status frgi_fe_cascade_get(fe_cascade *c, const frg_checkpoint *from)
{
    fe_cascade_facts f;
    TRY(frgi_checkpoint_copy(from, "cascade", &f, sizeof f));
    if (!facts_are_sound(c, &f)) {
        return frgi_checkpoint_unsound(from, "cascade");
    }
    c->chosen = f.chosen != 0;
    c->choice = (fe_solver)f.choice;
    c->split_tried = f.split_tried != 0;
    c->beyond = f.beyond != 0;
    c->used = (fe_solver)f.used;
    const fe_solver which = frgi_fe_solver_approximate(c->choice) ? c->choice : c->used;
    return frgi_fe_solvers_get(&c->all, &f, which == FE_SOLVER_SCHWARZ, from);
}
