/* fe_solvers.c - builds the solvers of S and solves by them.  Costs are seconds of one thread,
 * measured on two machines, of which only the ratios matter. */
#include "fe/fe_solvers.h"

#include <math.h>
#include <string.h>

#include "core/host_step.h"
#include "fe/fe_coupling.h"
#include "fe/fe_device.h"
#include "fe/fe_groups.h"
#include "fe/fe_steps.h"
#include "fe/fe_union.h"

/* Entries between two factors are differences, w less c_u c_u' / N_u, and carry the rounding of
 * N_u. */
static const double NULL_PIVOT = 1e-9;
static const double FORECAST_WORTH =
    1e8; /* entries in all steps, some tenths of a second: cheaper ones are made */
/* Of minimum degree: an entry, and on graphs that mix an entry and unknown of the last front
 * (random graphs of 1.25e4 to 2.5e6 vertices; grids and bands have small fronts). */
static const double AMD_ENTRY = 1e-7, AMD_FRONT_ENTRY = 1.1e-11;
static const double MIXING_STEPS = 30; /* that CG takes on a graph whose fronts are a part of all */

const char *frgi_fe_solver_name(fe_solver which)
{
    static const char *const names[] = {
        "cg rows", "cg explicit", "direct", "cg approximate cholesky", "cg schwarz", "subproblems"};
    return names[which];
}

const char *frgi_fe_solver_name_beside_device(fe_solver which)
{
    return which == FE_SOLVER_DIRECT ? "direct, on the host"
           : which == FE_SOLVER_AC   ? "cg approximate cholesky, on the host"
                                     : "cg schwarz, on the host";
}

/* ---- building -------------------------------------------------------------------------------- */

size_t frgi_fe_fill_cap(const frg_context *ctx, const frg_demean_opts *o)
{
    return o->fill_cap > 0 ? o->fill_cap : frgi_memory_allowed(ctx) / 4;
}

double frgi_fe_solvers_schur_bytes(const fe_solvers *all)
{
    const double levels = (double)all->g->n_reduced;
    return 12 * fmin(all->products, levels * levels);
}

void frgi_fe_solvers_drop_factor(fe_solvers *all)
{
    frgi_direct_destroy(all->direct);
    all->direct = NULL;
    all->factored = all->previous.usable = false;
}

static bool same_pattern(const fe_schur *a, const fe_schur *b)
{
    const size_t starts = (size_t)(a->n + 1) * sizeof *a->starts;
    return a->n == b->n && memcmp(a->starts, b->starts, starts) == 0 &&
           memcmp(a->columns, b->columns, (size_t)a->starts[a->n] * sizeof *a->columns) == 0 &&
           a->n_border == b->n_border;
}

/** The order of the factor of other weights is that of S where the patterns are the same. */
static void keep_order(fe_solvers *all, frg_context *ctx)
{
    all->previous.usable =
        all->previous.schur.n > 0 && same_pattern(&all->schur, &all->previous.schur);
    if (all->previous.schur.n > 0 && !all->previous.usable) {
        frgi_fe_solvers_drop_factor(all);
    }
    frgi_fe_schur_destroy(&all->previous.schur, ctx);
}

frg_status frgi_fe_solvers_assemble(fe_solvers *all, frg_context *ctx)
{
    if (all->schur.n > 0 || all->refused) {
        return FRG_OK;
    }
    const size_t cap = frgi_fe_fill_cap(ctx, &all->opts);
    if (frgi_fe_solvers_schur_bytes(all) > (double)cap) {
        all->refused = true;
        return FRG_OK;
    }
    frgi_host_step(ctx, FRGI_HOST_ASSEMBLY);
    const frg_status status = frgi_fe_schur_create(&all->schur, ctx, all->g, cap);
    all->refused = frgi_direct_refused(ctx, status);
    if (status == FRG_OK) {
        keep_order(all, ctx);
    }
    return all->refused ? FRG_OK : status;
}

/** Scratch for the factors' solves; two factors share the larger. */
static frg_status need_scratch(fe_solvers *all, frg_context *ctx, size_t doubles)
{
    if (doubles > all->scratch.doubles) {
        DROP(ctx, &all->scratch.memory);
        all->scratch.doubles = 0;
        TRY(NEW(ctx, &all->scratch.memory, doubles, "scratch of the factor"));
        all->scratch.doubles = doubles;
    }
    return FRG_OK;
}

static frgi_direct_opts factor_options(const fe_solvers *all)
{
    frgi_direct_opts o;
    frgi_direct_defaults(&o);
    o.solver = "fe";
    o.byte_cap = frgi_fe_fill_cap(all->ctx, &all->opts);
    if (all->g->n_remaining > 1) {
        o.null_pivot = NULL_PIVOT;
    }
    return o;
}

/** Unknowns of the last front: a set of vertices that separates a graph of eigenvalue gap g has
 *  about g n of them (Chandran, Subramanian 2003), and the gap falls as the square of the steps.
 *  Unknowns of one neighbour or two, beside themselves, go before without any fill. */
static double last_front(const fe_schur *s, double steps)
{
    const double root = MIXING_STEPS / fmax(steps, MIXING_STEPS);
    int64_t core = 0;
    for (int64_t i = 0; i < s->n; i++) {
        core += s->starts[i + 1] - s->starts[i] > 3;
    }
    return (double)core * root * root;
}

frg_status frgi_fe_solvers_analyse(fe_solvers *all, frg_context *ctx, double seconds_to_beat,
                                   double steps)
{
    if (all->direct) {
        return FRG_OK;
    }
    frgi_direct_opts o = factor_options(all);
    const double entry = AMD_ENTRY + AMD_FRONT_ENTRY * last_front(&all->schur, steps);
    const double entries = seconds_to_beat / entry;
    o.amd_max_nnz = entries < (double)o.amd_max_nnz ? (int64_t)entries : o.amd_max_nnz;
    const frgi_symmetric s = frgi_fe_schur_view(&all->schur);
    frgi_host_step(ctx, FRGI_HOST_ORDERING);
    return frgi_direct_analyse(&all->direct, ctx, &s, all->schur.border, all->schur.n_border, &o);
}

double frgi_fe_solvers_factor_seconds(const fe_solvers *all)
{
    return frgi_direct_costs(all->direct, frgi_direct_chosen(all->direct)).seconds;
}

/** Columns that a solve with a factor may be asked for. */
static int most_lanes(const fe_solvers *all)
{
    return all->device ? FE_MAX_LANES : FE_HOST_LANES;
}

static frg_status build_factor(fe_solvers *all, frg_context *ctx)
{
    if (all->factored) {
        return FRG_OK;
    }
    TRY(frgi_fe_solvers_analyse(all, ctx, INFINITY, INFINITY));
    const frgi_symmetric s = frgi_fe_schur_view(&all->schur);
    frgi_host_step(ctx, FRGI_HOST_FACTOR);
    const frg_status status = frgi_direct_factor(all->direct, &s);
    if (status != FRG_OK) {
        return status;
    }
    TRY(need_scratch(all, ctx, frgi_direct_scratch(all->direct, most_lanes(all))));
    all->factored = true;
    return FRG_OK;
}

/** The approximate factor of the blocks or, of Schwarz, of the pairs. */
static frg_status build_approximate(fe_solvers *all, frg_context *ctx, bool pairs)
{
    if (all->approximate.ac && (all->approximate.level != NULL) == pairs) {
        return FRG_OK;
    }
    frgi_fe_schwarz_destroy(&all->approximate, ctx);
    frgi_host_step(ctx, FRGI_HOST_FACTOR);
    const frg_status status =
        frgi_fe_schwarz_create(&all->approximate, ctx, all->g, &all->schur, pairs);
    if (status != FRG_OK) {
        return status;
    }
    return need_scratch(all, ctx, frgi_fe_schwarz_scratch(&all->approximate, most_lanes(all)));
}

frg_status frgi_fe_solvers_build(fe_solvers *all, frg_context *ctx, fe_solver which)
{
    return which == FE_SOLVER_DIRECT ? build_factor(all, ctx)
           : frgi_fe_solver_approximate(which)
               ? build_approximate(all, ctx, which == FE_SOLVER_SCHWARZ)
               : FRG_OK;
}

frg_status frgi_fe_solvers_border(fe_solvers *all, frg_context *ctx)
{
    if (all->bordered_tried) {
        return FRG_OK;
    }
    frg_status status = frgi_fe_bordered_create(&all->bordered, ctx, all->g);
    if (status == FRG_OK) {
        status = frgi_fe_has_low(all->bordered.width > 0 ? &all->bordered.lean : all->g, ctx,
                                 &all->has_low);
        all->bordered_tried = status == FRG_OK;
    }
    return status;
}

frg_status frgi_fe_solvers_ones(fe_solvers *all, frg_context *ctx)
{
    if (all->opts.precond == FRG_FE_PRECOND_OFF && !all->ones) {
        TRY(NEW(ctx, &all->ones, all->g->n_reduced, "ones"));
        for (int64_t i = 0; i < all->g->n_reduced; i++) {
            all->ones[i] = 1;
        }
    }
    return FRG_OK;
}

void frgi_fe_solvers_renew(fe_solvers *all, frg_context *ctx, double tol, bool by_factor)
{
    all->opts.tol = tol;
    if (all->factored && by_factor) {
        frgi_fe_schur_destroy(&all->previous.schur, ctx);
        all->previous.schur = all->schur;
        all->schur = (fe_schur){0};
        DROP(ctx, &all->previous.schur.values);
        all->factored = false;
    } else if (all->previous.schur.n == 0) {
        frgi_fe_solvers_drop_factor(all);
    }
    frgi_fe_schur_destroy(&all->schur, ctx);
    frgi_fe_bordered_destroy(&all->bordered, ctx);
    frgi_fe_schwarz_destroy(&all->approximate, ctx);
    DROP(ctx, &all->null_set);
    all->bordered = (fe_bordered){.width = 0};
    all->bordered_tried = false;
}

void frgi_fe_solvers_destroy(fe_solvers *all, frg_context *ctx)
{
    frgi_fe_device_destroy(all->device);
    frgi_direct_destroy(all->direct);
    frgi_fe_schwarz_destroy(&all->approximate, ctx);
    frgi_fe_schur_destroy(&all->schur, ctx);
    frgi_fe_schur_destroy(&all->previous.schur, ctx);
    frgi_fe_bordered_destroy(&all->bordered, ctx);
    DROP(ctx, &all->null_set);
    DROP(ctx, &all->ones);
    DROP(ctx, &all->scratch.memory);
}

size_t frgi_fe_solvers_bytes(const fe_solvers *all)
{
    return frgi_fe_schur_bytes(&all->schur) + frgi_fe_bordered_bytes(&all->bordered) +
           (all->direct ? frgi_direct_bytes(all->direct) : 0) +
           frgi_fe_schwarz_bytes(&all->approximate);
}

/* ---- applying -------------------------------------------------------------------------------- */

typedef struct {
    const fe_solvers *all;
    const fe_row_work *work;
    int lanes, f32; /* width, and type of the search direction */
} product;

static frg_status rows_product(const product *p, bool low, const void *a, double *y)
{
    const fe_solvers *const all = p->all;
    return all->g->steps->reduced.apply(all->g, all->bordered.width > 0 ? &all->bordered : NULL,
                                        all->ctx, p->f32, p->lanes, p->work, low, a, y);
}

static frg_status times_rows(const void *data, int lanes, const void *a, double *y)
{
    (void)lanes;
    return rows_product(data, false, a, y);
}

static frg_status times_rows_low(const void *data, int lanes, const void *a, double *y)
{
    (void)lanes;
    return rows_product(data, true, a, y);
}

static frg_status times_schur(const void *data, int lanes, const void *a, double *y)
{
    (void)lanes;
    const product *p = data;
    const fe_solvers *const all = p->all;
    return all->g->steps->reduced.multiply(&all->schur, all->ctx, p->f32, p->lanes, a, y);
}

static frg_status apply_approximate(const void *data, int lanes, const void *r, double *z)
{
    (void)lanes;
    const product *p = data;
    const fe_solvers *const all = p->all;
    frgi_host_step(all->ctx, FRGI_HOST_TRIANGULAR);
    return frgi_fe_schwarz_apply(&all->approximate, all->g, p->lanes, r, z, all->scratch.memory);
}

static const double *jacobi(const fe_solvers *all, fe_solver which)
{
    if (all->ones) {
        return all->ones;
    }
    return which == FE_SOLVER_ROWS ? all->g->level_inverse : all->schur.inverse_diag;
}

/** Do the columns make forecasts?  They do where no other solver follows and max_iter iterations
 *  take long. */
static bool may_forecast(const fe_solvers *all, fe_solver which)
{
    const int64_t entries =
        which == FE_SOLVER_ROWS ? all->g->n * all->g->n_remaining : all->schur.starts[all->schur.n];
    return !frgi_fe_solvers_are_free(all) &&
           (double)entries * (double)all->opts.max_iter >= FORECAST_WORTH;
}

frg_status frgi_fe_solvers_cg(fe_solvers *all, frg_context *ctx, fe_solver which,
                              const fe_block_work *w, int64_t max_steps, const fe_cg_target *goal,
                              fe_cg_column *column)
{
    const int lanes = w->lanes;
    fe_cg_target target[FE_MAX_LANES];
    memcpy(target, goal, (size_t)lanes * sizeof *target);
    for (int k = 0; k < lanes; k++) {
        target[k].forecast = may_forecast(all, which);
    }
    if (all->device && which == FE_SOLVER_ROWS) {
        all->device_used = true;
        const frg_status status = frgi_fe_device_cg(all->device, &w->cg, lanes, max_steps,
                                                    frgi_fe_solver_name(which), target, column);
        TRY(status);
        TRY(all->g->steps->reduced.add(all->g->n_reduced, w->lanes, 1, w->cg.x, w->answer));
        return status;
    }
    const product p = {all, &w->rows, w->lanes, all->opts.dtype != FRG_FE_F64};
    if (which == FE_SOLVER_ROWS) {
        const frg_status status = frgi_fe_solvers_border(all, ctx);
        if (status != FRG_OK) {
            return status;
        }
    }
    const fe_system s = {
        .n = all->g->n_reduced,
        .steps = all->g->steps,
        .times = which == FE_SOLVER_ROWS ? times_rows : times_schur,
        .times_low = which == FE_SOLVER_ROWS && all->has_low ? times_rows_low : NULL,
        .data = &p,
        .inverse_diag = jacobi(all, which),
        .precondition = frgi_fe_solver_approximate(which) ? apply_approximate : NULL,
        .precondition_data = &p,
        .level_inverse = all->g->level_inverse,
    };
    const fe_cg_call call = {ctx, &s, &w->cg, w->lanes, p.f32};
    const frg_status status =
        frgi_fe_cg_run(&call, max_steps, frgi_fe_solver_name(which), target, column);
    TRY(status);
    TRY(s.steps->reduced.add(s.n, w->lanes, 1, w->cg.x, w->answer));
    return status;
}

/** Finds the null space of S that belongs to the graph: levels of one factor that eliminated levels
 *  join, whose indicator z is the sum of the dummies of these. Within a factor S has an entry where
 *  an eliminated level joins two levels. */
static frg_status find_null_sets(fe_solvers *all, frg_context *ctx)
{
    if (all->null_set) {
        return FRG_OK;
    }
    const fe_schur *const s = &all->schur;
    TRY(NEW(ctx, &all->null_set, s->n, "null space of S"));
    for (int32_t i = 0; i < s->n; i++) {
        all->null_set[i] = i;
    }
    for (int q = 0; q < all->g->n_factors; q++) {
        const int64_t first = all->g->factor[q].first, end = first + all->g->factor[q].levels;
        for (int64_t i = first < 0 ? end : first; i < end; i++) {
            for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
                if (s->columns[e] >= first && s->columns[e] < end) {
                    fe_join(all->null_set, (int32_t)i, s->columns[e]);
                }
            }
        }
    }
    for (int32_t i = 0; i < s->n; i++) {
        all->null_set[i] = fe_root_of(all->null_set, i);
    }
    return FRG_OK;
}

frg_status frgi_fe_solvers_direct(fe_solvers *all, frg_context *ctx, const fe_block_work *w,
                                  int rounds, bool project, fe_cg_column *column)
{
    const fe_steps *const steps = all->g->steps;
    const int64_t n = all->g->n_reduced;
    frg_status status = FRG_OK;
    if (project) {
        TRY(find_null_sets(all, ctx));
    }
    for (int round = 1; status == FRG_OK && round <= rounds; round++) {
        if (project) {
            status =
                steps->reduced.project(all->g, w->lanes, all->null_set, w->cg.r, w->cg.q, w->cg.z);
        }
        status = status == FRG_OK ? steps->reduced.copy(n, w->lanes, w->cg.r, w->cg.x) : status;
        frgi_host_step(ctx, FRGI_HOST_TRIANGULAR);
        status = status == FRG_OK
                     ? steps->reduced.solve(all->direct, w->lanes, w->cg.x, all->scratch.memory)
                     : status;
        status = status == FRG_OK ? steps->reduced.add(n, w->lanes, 1, w->cg.x, w->answer) : status;
        if (round == rounds || status != FRG_OK) {
            break;
        }
        status = steps->reduced.multiply(&all->schur, all->ctx, 0, w->lanes, w->cg.x, w->cg.q);
        status = status == FRG_OK ? steps->reduced.add(n, w->lanes, -1, w->cg.q, w->cg.r) : status;
    }
    for (int k = 0; k < w->lanes; k++) {
        column[k] = (fe_cg_column){.done = status == FRG_OK, .lambda = (double)NAN};
    }
    return status;
}

frg_status frgi_fe_solvers_probe(fe_solvers *all, frg_context *ctx, fe_solver which,
                                 const fe_block_work *single, int64_t length, double *steps)
{
    const product p = {all, &single->rows, 1, 0};
    const fe_system s = {.n = all->g->n_reduced,
                         .steps = all->g->steps,
                         .times = which == FE_SOLVER_ROWS ? times_rows : times_schur,
                         .data = &p,
                         .inverse_diag = jacobi(all, which),
                         .level_inverse = all->g->level_inverse};
    return frgi_fe_cg_predict(ctx, &s, &single->cg, length, steps);
}

frg_status frgi_fe_solvers_precondition(const fe_solvers *all, fe_solver which, int lanes,
                                        const double *s, double *z)
{
    const fe_steps *const steps = all->g->steps;
    const int64_t n = all->g->n_reduced;
    if (which == FE_SOLVER_DIRECT || frgi_fe_solver_approximate(which)) {
        frgi_host_step(all->ctx, FRGI_HOST_TRIANGULAR);
    }
    if (which == FE_SOLVER_DIRECT) {
        TRY(steps->reduced.copy(n, lanes, s, z));
        return steps->reduced.solve(all->direct, lanes, z, all->scratch.memory);
    }
    return frgi_fe_solver_approximate(which)
               ? frgi_fe_schwarz_apply(&all->approximate, all->g, lanes, s, z, all->scratch.memory)
               : steps->reduced.times_diagonal(n, lanes, jacobi(all, which), s, z);
}

/* ---- saved and read back --------------------------------------------------------------------- */

frg_status frgi_fe_solvers_put(const fe_solvers *all, fe_cascade_facts *facts, frg_checkpoint *to)
{
    facts->products = all->products;
    facts->refused = all->refused;
    facts->assembled = all->schur.n > 0;
    facts->border = all->schur.n_border;
    facts->groups = all->schur.groups;
    facts->factored = all->factored;
    facts->approximate = all->approximate.ac != NULL;
    if (facts->assembled) {
        TRY(frgi_fe_schur_put(&all->schur, to));
    }
    if (all->factored) {
        TRY(frgi_direct_put(all->direct, &facts->direct, to));
    }
    return all->approximate.ac ? frgi_ac_put(all->approximate.ac, &facts->ac, to) : FRG_OK;
}

frg_status frgi_fe_solvers_get(fe_solvers *all, const fe_cascade_facts *facts, bool pairs,
                               const frg_checkpoint *from)
{
    frg_context *const ctx = all->ctx;
    all->products = facts->products;
    all->refused = facts->refused != 0;
    if (facts->assembled) {
        all->schur.n_border = facts->border;
        all->schur.groups = facts->groups;
        TRY(frgi_fe_schur_get(&all->schur, ctx, from, all->g->n_reduced));
    }
    if (facts->factored) {
        const frgi_direct_opts o = factor_options(all);
        const frgi_symmetric s = frgi_fe_schur_view(&all->schur);
        TRY(frgi_direct_get(&all->direct, ctx, from, &s, &o));
        TRY(need_scratch(all, ctx, frgi_direct_scratch(all->direct, most_lanes(all))));
        all->factored = true;
    }
    if (facts->approximate) {
        TRY(frgi_fe_schwarz_get(&all->approximate, ctx, from, all->g, pairs));
        TRY(need_scratch(all, ctx, frgi_fe_schwarz_scratch(&all->approximate, most_lanes(all))));
    }
    return FRG_OK;
}
