/* fe_cascade.c - builds the solvers of fe_cascade.h when they are needed, and escalates from one to
 * the next.
 *
 * Costs that decide are seconds of one thread, measured on two machines; only their ratios matter.
 * compare_solvers() counts SECONDS_PER_ENTRY an entry of S and column, and 4 columns an iteration.
 */
#include "fe/fe_cascade.h"

#include <math.h>
#include <string.h>

#include "core/checkpoint_bytes.h"
#include "fe/fe_bordered.h"
#include "fe/fe_coupling.h"
#include "fe/fe_device.h"
#include "fe/fe_groups.h"
#include "fe/fe_schur.h"
#include "fe/fe_schwarz.h"
#include "fe/fe_steps.h"
#include "fe/fe_subproblems.h"
#include "fe/fe_union.h"
#include "sparse/direct.h"

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
/* Entries between two factors are differences, w less c_u c_u' / N_u, and carry the rounding of
 * N_u. */
static const double NULL_PIVOT = 1e-9;
static const double FORECAST_WORTH =
    1e8; /* entries in all steps, some tenths of a second: cheaper ones are made */
static const double SECONDS_PER_ROW = 1e-8, SECONDS_PER_ENTRY = 1e-9, SECONDS_PER_AMD_ENTRY = 1e-7;

typedef enum {
    SOLVER_ROWS,
    SOLVER_EXPLICIT,
    SOLVER_DIRECT,
    SOLVER_AC,
    SOLVER_SCHWARZ,
    SOLVER_SUBPROBLEMS
} solver;
static const char *const solver_names[] = {
    "cg rows", "cg explicit", "direct", "cg approximate cholesky", "cg schwarz", "subproblems"};

struct fe_cascade {
    const fe_rows *g;
    frg_demean_opts opts;
    frg_context *ctx;
    int threads;
    frgi_isa isa;
    fe_device *device;    /* NULL: the host */
    double products;      /* estimate of the products that S takes; -1: not yet made */
    bool refused;         /* S does not fit fill_cap */
    fe_schur schur;       /* n > 0 once assembled */
    bool bordered_tried;  /* `bordered` was built where it pays, and has_low is known */
    fe_bordered bordered; /* the rows' product where all factors but one are small */
    bool has_low;         /* float32 products through the rows are faster and exact enough */
    bool chosen;
    solver choice;               /* beyond the rows */
    bool split_tried;            /* frgi_fe_subproblems_create was called */
    fe_subproblems *subproblems; /* NULL: S is solved as a whole */
    bool beyond;                 /* CG through the rows is known to be too slow */
    frgi_direct *direct;
    bool factored;
    struct {            /* of other weights */
        fe_schur schur; /* the pattern that `direct` was analysed for; or empty */
        bool usable;    /* `direct` is still that, and its order is right for S */
    } previous;
    fe_schwarz approximate; /* of the blocks or of the pairs */
    int32_t
        *null_set; /* n_reduced: sets of levels whose indicator z has S z = 0; made when needed */
    double *ones;  /* Jacobi turned off */
    struct {
        double *memory;
        size_t doubles;
    } scratch; /* of a factor's solves */
    solver used;
};

void frgi_fe_block_work_layout(frgi_arena *a, const fe_rows *g, int kind, fe_block_work *w)
{
    const int lanes = 1 << kind;
    w->kind = kind;
    frgi_fe_row_work_layout(a, g, lanes, &w->rows);
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
    c->g = g;
    c->ctx = ctx;
    c->opts = *o;
    c->threads = frg_threads(ctx);
    c->isa = frgi_context_isa(ctx);
    c->products = -1;
    *out = c;
    return FRG_OK;
}

void frgi_fe_cascade_take_device(fe_cascade *c, fe_device *device)
{
    c->device = device;
}

bool frgi_fe_cascade_has_device(const fe_cascade *c)
{
    return c->device != NULL;
}

bool frgi_fe_cascade_in_float(const fe_cascade *c)
{
    return c->device && frgi_fe_device_in_float(c->device);
}

const char *frgi_fe_cascade_place(const fe_cascade *c)
{
    return c->device ? frgi_fe_device_place(c->device) : "cpu";
}

void frgi_fe_cascade_destroy(fe_cascade *c, frg_context *ctx)
{
    if (!c) {
        return;
    }
    frgi_fe_device_destroy(c->device);
    frgi_direct_destroy(c->direct);
    frgi_fe_schwarz_destroy(&c->approximate, ctx);
    frgi_fe_schur_destroy(&c->schur, ctx);
    frgi_fe_schur_destroy(&c->previous.schur, ctx);
    frgi_fe_bordered_destroy(&c->bordered, ctx);
    frgi_fe_subproblems_destroy(c->subproblems, ctx);
    DROP(ctx, &c->null_set);
    DROP(ctx, &c->ones);
    DROP(ctx, &c->scratch.memory);
    DROP(ctx, &c);
}

/* ---- building -------------------------------------------------------------------------------- */

size_t frgi_fe_fill_cap(const frg_context *ctx, const frg_demean_opts *o)
{
    return o->fill_cap > 0 ? o->fill_cap : frgi_memory_allowed(ctx) / 4;
}

/** Bytes that S may take: an entry for each product, but no more of them than pairs of levels. */
static double schur_bytes(const fe_cascade *c)
{
    const double levels = (double)c->g->n_reduced;
    return 12 * fmin(c->products, levels * levels);
}

static void drop_factor(fe_cascade *c)
{
    frgi_direct_destroy(c->direct);
    c->direct = NULL;
    c->factored = c->previous.usable = false;
}

static bool same_pattern(const fe_schur *a, const fe_schur *b)
{
    const size_t starts = (size_t)(a->n + 1) * sizeof *a->starts;
    return a->n == b->n && memcmp(a->starts, b->starts, starts) == 0 &&
           memcmp(a->columns, b->columns, (size_t)a->starts[a->n] * sizeof *a->columns) == 0 &&
           a->n_border == b->n_border;
}

/** The order of the factor of other weights is that of S where the patterns are the same. */
static void keep_order(fe_cascade *c, frg_context *ctx)
{
    c->previous.usable = c->previous.schur.n > 0 && same_pattern(&c->schur, &c->previous.schur);
    if (c->previous.schur.n > 0 && !c->previous.usable) {
        drop_factor(c);
    }
    frgi_fe_schur_destroy(&c->previous.schur, ctx);
}

/** Assembles S unless it is there; a matrix over the cap is no failure: the solvers that need it
 *  are then left out. */
static frg_status build_schur(fe_cascade *c, frg_context *ctx)
{
    if (c->schur.n > 0 || c->refused) {
        return FRG_OK;
    }
    const size_t cap = frgi_fe_fill_cap(ctx, &c->opts);
    if (schur_bytes(c) > (double)cap) {
        c->refused = true;
        return FRG_OK;
    }
    const frg_status status = frgi_fe_schur_create(&c->schur, ctx, c->g, cap);
    c->refused = frgi_direct_refused(ctx, status);
    if (status == FRG_OK) {
        keep_order(c, ctx);
    }
    return c->refused ? FRG_OK : status;
}

/** Scratch for the factors' solves; two factors share the larger. */
static frg_status need_scratch(fe_cascade *c, frg_context *ctx, size_t doubles)
{
    if (doubles > c->scratch.doubles) {
        DROP(ctx, &c->scratch.memory);
        c->scratch.doubles = 0;
        TRY(NEW(ctx, &c->scratch.memory, doubles, "scratch of the factor"));
        c->scratch.doubles = doubles;
    }
    return FRG_OK;
}

static frgi_direct_opts factor_options(const fe_cascade *c)
{
    frgi_direct_opts o;
    frgi_direct_defaults(&o);
    o.solver = "fe";
    o.byte_cap = frgi_fe_fill_cap(c->ctx, &c->opts);
    if (c->g->n_remaining > 1) {
        o.null_pivot = NULL_PIVOT;
    }
    return o;
}

static frg_status analyse(fe_cascade *c, frg_context *ctx, double seconds_to_beat)
{
    if (c->direct) {
        return FRG_OK;
    }
    frgi_direct_opts o = factor_options(c);
    const double entries = seconds_to_beat / SECONDS_PER_AMD_ENTRY;
    o.amd_max_nnz = entries < (double)o.amd_max_nnz ? (int64_t)entries : o.amd_max_nnz;
    const frgi_symmetric s = frgi_fe_schur_view(&c->schur);
    return frgi_direct_analyse(&c->direct, ctx, &s, c->schur.border, c->schur.n_border, &o);
}

static double factor_seconds(const fe_cascade *c)
{
    return frgi_direct_costs(c->direct, frgi_direct_chosen(c->direct)).seconds;
}

static frg_status build_factor(fe_cascade *c, frg_context *ctx)
{
    if (c->factored) {
        return FRG_OK;
    }
    TRY(analyse(c, ctx, INFINITY));
    const frgi_symmetric s = frgi_fe_schur_view(&c->schur);
    const frg_status status = frgi_direct_factor(c->direct, &s);
    if (status != FRG_OK) {
        return status;
    }
    TRY(need_scratch(c, ctx, frgi_direct_scratch(c->direct, FE_MAX_LANES)));
    c->factored = true;
    return FRG_OK;
}

/** The approximate factor of the blocks or, of Schwarz, of the pairs. */
static frg_status build_approximate(fe_cascade *c, frg_context *ctx, bool pairs)
{
    if (c->approximate.ac && (c->approximate.level != NULL) == pairs) {
        return FRG_OK;
    }
    frgi_fe_schwarz_destroy(&c->approximate, ctx);
    const frg_status status = frgi_fe_schwarz_create(&c->approximate, ctx, c->g, &c->schur, pairs);
    if (status != FRG_OK) {
        return status;
    }
    return need_scratch(c, ctx, frgi_fe_schwarz_scratch(&c->approximate, FE_MAX_LANES));
}

/* ---- applying -------------------------------------------------------------------------------- */

typedef struct {
    const fe_cascade *c;
    const fe_row_work *work;
    int kind, f32; /* width, and type of the search direction */
} product;

static frg_status rows_product(const product *p, bool low, const void *a, double *y)
{
    const fe_cascade *c = p->c;
    return c->g->steps->reduced.apply(c->g, c->bordered.width > 0 ? &c->bordered : NULL, c->ctx,
                                      p->f32, p->kind, p->work, low, a, y);
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
    const fe_cascade *c = p->c;
    return c->g->steps->reduced.multiply(&c->schur, c->ctx, p->f32, p->kind, a, y);
}

static frg_status apply_approximate(const void *data, int lanes, const void *r, double *z)
{
    (void)lanes;
    const product *p = data;
    const fe_cascade *c = p->c;
    return frgi_fe_schwarz_apply(&c->approximate, c->g, p->kind, r, z, c->scratch.memory);
}

static bool is_approximate(solver which)
{
    return which == SOLVER_AC || which == SOLVER_SCHWARZ;
}

static const double *jacobi(const fe_cascade *c, solver which)
{
    if (c->ones) {
        return c->ones;
    }
    return which == SOLVER_ROWS ? c->g->level_inverse : c->schur.inverse_diag;
}

/** Moves the small factors out of the rows' product, once. */
static frg_status build_bordered(fe_cascade *c, frg_context *ctx)
{
    if (c->bordered_tried) {
        return FRG_OK;
    }
    frg_status status = frgi_fe_bordered_create(&c->bordered, ctx, c->g);
    if (status == FRG_OK) {
        status =
            frgi_fe_has_low(c->bordered.width > 0 ? &c->bordered.lean : c->g, ctx, &c->has_low);
        c->bordered_tried = status == FRG_OK;
    }
    return status;
}

void frgi_fe_cascade_renew(fe_cascade *c, frg_context *ctx, double tol)
{
    c->opts.tol = tol;
    if (c->factored && c->choice == SOLVER_DIRECT) {
        frgi_fe_schur_destroy(&c->previous.schur, ctx);
        c->previous.schur = c->schur;
        c->schur = (fe_schur){0};
        DROP(ctx, &c->previous.schur.values);
        c->factored = false;
    } else if (c->previous.schur.n == 0) {
        drop_factor(c);
    }
    frgi_fe_schur_destroy(&c->schur, ctx);
    frgi_fe_bordered_destroy(&c->bordered, ctx);
    frgi_fe_schwarz_destroy(&c->approximate, ctx);
    DROP(ctx, &c->null_set);
    c->bordered = (fe_bordered){.width = 0};
    c->bordered_tried = c->chosen = c->beyond = false;
    c->used = SOLVER_ROWS;
}

/** Is the solver the cascade's to choose? */
static bool is_free(const fe_cascade *c)
{
    return c->opts.method == FRG_FE_AUTO && c->opts.precond == FRG_FE_PRECOND_AUTO;
}

/** Do the columns make forecasts?  They do where no other solver follows and max_iter iterations
 *  take long. */
static bool may_forecast(const fe_cascade *c, solver which)
{
    const int64_t entries =
        which == SOLVER_ROWS ? c->g->n * c->g->n_remaining : c->schur.starts[c->schur.n];
    return !is_free(c) && (double)entries * (double)c->opts.max_iter >= FORECAST_WORTH;
}

/** Conjugate gradients on one of the operators, from w->cg.r, added to w->answer. */
static frg_status run_cg(fe_cascade *c, frg_context *ctx, solver which, const fe_block_work *w,
                         int64_t max_steps, const fe_cg_target *goal, fe_cg_column *column)
{
    const int lanes = 1 << w->kind;
    fe_cg_target target[FE_MAX_LANES];
    memcpy(target, goal, (size_t)lanes * sizeof *target);
    for (int k = 0; k < lanes; k++) {
        target[k].forecast = may_forecast(c, which);
    }
    if (c->device) {
        const frg_status status = frgi_fe_device_cg(c->device, &w->cg, lanes, max_steps,
                                                    solver_names[which], target, column);
        TRY(status);
        TRY(c->g->steps->reduced.add(c->g->n_reduced, w->kind, 1, w->cg.x, w->answer));
        return status;
    }
    const product p = {c, &w->rows, w->kind, c->opts.dtype != FRG_FE_F64};
    if (which == SOLVER_ROWS) {
        const frg_status status = build_bordered(c, ctx);
        if (status != FRG_OK) {
            return status;
        }
    }
    const fe_system s = {
        .n = c->g->n_reduced,
        .steps = c->g->steps,
        .times = which == SOLVER_ROWS ? times_rows : times_schur,
        .times_low = which == SOLVER_ROWS && c->has_low ? times_rows_low : NULL,
        .data = &p,
        .inverse_diag = jacobi(c, which),
        .precondition = is_approximate(which) ? apply_approximate : NULL,
        .precondition_data = &p,
        .level_inverse = c->g->level_inverse,
    };
    const fe_cg_call call = {ctx, &s, &w->cg, w->kind, p.f32};
    const frg_status status = frgi_fe_cg_run(&call, max_steps, solver_names[which], target, column);
    TRY(status);
    TRY(s.steps->reduced.add(s.n, w->kind, 1, w->cg.x, w->answer));
    return status;
}

/** Finds the null space of S that belongs to the graph: levels of one factor that eliminated levels
 *  join, whose indicator z is the sum of the dummies of these. Within a factor S has an entry where
 *  an eliminated level joins two levels. */
static frg_status find_null_sets(fe_cascade *c, frg_context *ctx)
{
    if (c->null_set) {
        return FRG_OK;
    }
    const fe_schur *const s = &c->schur;
    TRY(NEW(ctx, &c->null_set, s->n, "null space of S"));
    for (int32_t i = 0; i < s->n; i++) {
        c->null_set[i] = i;
    }
    for (int q = 0; q < c->g->n_factors; q++) {
        const int64_t first = c->g->factor[q].first, end = first + c->g->factor[q].levels;
        for (int64_t i = first < 0 ? end : first; i < end; i++) {
            for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
                if (s->columns[e] >= first && s->columns[e] < end) {
                    fe_join(c->null_set, (int32_t)i, s->columns[e]);
                }
            }
        }
    }
    for (int32_t i = 0; i < s->n; i++) {
        c->null_set[i] = fe_root_of(c->null_set, i);
    }
    return FRG_OK;
}

/** The factor's solution, in every round but the first of what the rounds before have left: x <- x
 *  + S^+ r, r <- r - S x; `project`: of right-hand sides in the range of S, since what rounding has
 *  left of z'r would all end in the mean of the level that the factor grounds, which may be a light
 *  one. */
static frg_status solve_direct(fe_cascade *c, const fe_block_work *w, int rounds, bool project,
                               fe_cg_column *column)
{
    const fe_steps *const steps = c->g->steps;
    const int64_t n = c->g->n_reduced;
    frg_status status = FRG_OK;
    for (int round = 1; status == FRG_OK && round <= rounds; round++) {
        if (project) {
            status = steps->reduced.project(c->g, w->kind, c->null_set, w->cg.r, w->cg.q, w->cg.z);
        }
        status = status == FRG_OK ? steps->reduced.copy(n, w->kind, w->cg.r, w->cg.x) : status;
        status = status == FRG_OK
                     ? steps->reduced.solve(c->direct, w->kind, w->cg.x, c->scratch.memory)
                     : status;
        status = status == FRG_OK ? steps->reduced.add(n, w->kind, 1, w->cg.x, w->answer) : status;
        if (round == rounds || status != FRG_OK) {
            break;
        }
        status = steps->reduced.multiply(&c->schur, c->ctx, 0, w->kind, w->cg.x, w->cg.q);
        status = status == FRG_OK ? steps->reduced.add(n, w->kind, -1, w->cg.q, w->cg.r) : status;
    }
    for (int k = 0; k < 1 << w->kind; k++) {
        column[k] = (fe_cg_column){.done = status == FRG_OK, .lambda = (double)NAN};
    }
    return status;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/** CG iterations that an operator will need. */
static frg_status probe(fe_cascade *c, frg_context *ctx, solver which, const fe_block_work *single,
                        int64_t length, double *steps)
{
    const product p = {c, &single->rows, 0, 0};
    const fe_system s = {.n = c->g->n_reduced,
                         .steps = c->g->steps,
                         .times = which == SOLVER_ROWS ? times_rows : times_schur,
                         .data = &p,
                         .inverse_diag = jacobi(c, which),
                         .level_inverse = c->g->level_inverse};
    return frgi_fe_cg_predict(ctx, &s, &single->cg, length, steps);
}

/** Splits S into the subproblems of its components where several of them are large; tried once. */
static frg_status split_components(fe_cascade *c, frg_context *ctx)
{
    if (c->split_tried || !is_free(c)) {
        return FRG_OK;
    }
    const frg_status status = frgi_fe_subproblems_create(&c->subproblems, ctx, c->g, &c->opts);
    if (status != FRG_OK) {
        return status;
    }
    c->split_tried = true;
    if (c->subproblems) {
        c->choice = SOLVER_SUBPROBLEMS;
        drop_factor(c);
        frgi_fe_schur_destroy(&c->schur, ctx);
    }
    return FRG_OK;
}

/** Takes the factor if it costs less than `steps` CG iterations of `step` seconds. */
static frg_status compare_factor(fe_cascade *c, frg_context *ctx, double steps, double step)
{
    drop_factor(c);
    const frg_status status = analyse(c, ctx, steps * step);
    if (status == FRG_OK && factor_seconds(c) < steps * step) {
        c->choice = SOLVER_DIRECT;
    }
    return frgi_direct_refused(ctx, status) ? FRG_OK : status;
}

/** The same for a design with two large factors beside the eliminated one: a few steps do not show
 *  that these are joined badly with each other, as a random right-hand side hardly sees it; with
 *  many iterations forecast, Schwarz bounds what a factor may cost. */
static frg_status compare_schwarz(fe_cascade *c, frg_context *ctx, const fe_block_work *single,
                                  double steps, double step)
{
    frg_status status = compare_factor(c, ctx, fmin(steps, SCHWARZ_STEPS), step);
    if (status != FRG_OK || c->choice != SOLVER_EXPLICIT) {
        return status;
    }
    const int64_t length = PROBE_LENGTHS * (int64_t)steps;
    status =
        probe(c, ctx, SOLVER_EXPLICIT, single, length < MANY_STEPS ? length : MANY_STEPS, &steps);
    if (status != FRG_OK || steps <= MANY_STEPS) {
        return status;
    }
    c->choice = SOLVER_SCHWARZ;
    return compare_factor(c, ctx, SCHWARZ_STEPS, step);
}

/** Chooses between CG and a factor for the assembled S.  An envelope that costs less than FEW_STEPS
 *  CG iterations needs no probe.  Otherwise: few iterations -> CG; a factor that costs less than
 *  the iterations -> direct; several large components -> a subproblem each; many iterations -> the
 *  approximate factor, of pairs where there are any beside those with the eliminated factor. */
static frg_status compare_solvers(fe_cascade *c, frg_context *ctx, const fe_block_work *single)
{
    const double step = (double)c->schur.starts[c->schur.n] * 4 * SECONDS_PER_ENTRY;
    if (c->previous.usable) { /* it was the cheapest for other weights */
        c->choice = SOLVER_DIRECT;
        return FRG_OK;
    }
    frg_status status = analyse(c, ctx, 0);
    if (status != FRG_OK && !frgi_direct_refused(ctx, status)) {
        return status;
    }
    if (status == FRG_OK && factor_seconds(c) < FEW_STEPS * step) {
        c->choice = SOLVER_DIRECT;
        return FRG_OK;
    }
    double steps;
    status = probe(c, ctx, SOLVER_EXPLICIT, single, FE_PROBE_STEPS, &steps);
    if (status != FRG_OK) {
        return status;
    }
    const bool pairs = frgi_fe_split_factors(c->g).n_sparse > 1;
    c->choice = steps <= MANY_STEPS ? SOLVER_EXPLICIT : pairs ? SOLVER_SCHWARZ : SOLVER_AC;
    if (steps <= FEW_STEPS) {
        return FRG_OK;
    }
    status = split_components(c, ctx);
    if (status != FRG_OK || c->subproblems) {
        return status;
    }
    return pairs ? compare_schwarz(c, ctx, single, steps, step)
                 : compare_factor(c, ctx, steps, step);
}

/** Do the options force a solver that needs the assembled S? */
static bool is_forced(const fe_cascade *c)
{
    return c->opts.method == FRG_FE_DIRECT || c->opts.precond == FRG_FE_PRECOND_AC ||
           c->opts.precond == FRG_FE_PRECOND_SCHWARZ;
}

/** Chooses the solver beyond the rows, once for the plan.  The components are labelled before S is
 *  assembled, unless assembly costs no more than labelling them. */
static frg_status choose(fe_cascade *c, frg_context *ctx, const fe_block_work *single)
{
    if (c->chosen) {
        return FRG_OK;
    }
    frg_status status = FRG_OK;
    if (c->products > CHEAP_PRODUCTS * (double)c->g->n) {
        status = split_components(c, ctx);
    }
    if (status == FRG_OK && !c->subproblems) {
        status = build_schur(c, ctx);
    }
    if (status != FRG_OK) {
        return status;
    }
    if (c->refused && is_forced(c)) {
        FAIL(ctx, E_TOO_BIG,
             "%s needs an assembled matrix of about %.0f bytes, fill_cap allows %zu",
             c->opts.method == FRG_FE_DIRECT        ? "method direct"
             : c->opts.precond == FRG_FE_PRECOND_AC ? "precond ac"
                                                    : "precond schwarz",
             schur_bytes(c), frgi_fe_fill_cap(ctx, &c->opts));
    }
    if (c->subproblems) {
        c->choice = SOLVER_SUBPROBLEMS;
    } else if (c->refused) {
        status = split_components(c, ctx);
        c->choice = c->subproblems ? SOLVER_SUBPROBLEMS : SOLVER_ROWS;
    } else if (c->opts.precond == FRG_FE_PRECOND_AC) {
        c->choice = SOLVER_AC;
    } else if (c->opts.precond == FRG_FE_PRECOND_SCHWARZ) {
        c->choice = SOLVER_SCHWARZ;
    } else if (c->opts.method == FRG_FE_DIRECT) {
        c->choice = SOLVER_DIRECT;
    } else if (c->opts.precond != FRG_FE_PRECOND_AUTO) {
        c->choice = SOLVER_EXPLICIT;
    } else {
        status = compare_solvers(c, ctx, single);
    }
    c->chosen = status == FRG_OK;
    return status;
}

/** Estimates once what S would cost; where that is too much, the components are split before an
 *  iteration is made. */
static frg_status study(fe_cascade *c, frg_context *ctx)
{
    if (c->products < 0) {
        double products;
        const frg_status status = frgi_fe_groups_estimate(c->g, ctx, &products);
        if (status != FRG_OK) {
            return status;
        }
        if (products > WORTH_PRODUCTS * (double)c->g->n) {
            const frg_status split = split_components(c, ctx);
            if (split != FRG_OK) {
                return split;
            }
            c->beyond = c->subproblems != NULL;
        }
        c->products = products;
    }
    return FRG_OK;
}

/** Does a solve begin beyond the rows? */
static bool skips_rows(const fe_cascade *c, fe_cascade_start start)
{
    return c->beyond || is_forced(c) || start != FE_FROM_ROWS ||
           (c->opts.method != FRG_FE_CG && c->products <= CHEAP_PRODUCTS * (double)c->g->n);
}

/** Sets the right-hand sides of finished columns to 0; *left <- how many columns go on. */
static frg_status drop_finished(const fe_rows *g, const fe_block_work *w,
                                const fe_cg_column *column, fe_cg_target *target, int *left)
{
    double keeps[FE_MAX_LANES];
    *left = 0;
    for (int k = 0; k < 1 << w->kind; k++) {
        target[k].within -= column[k].energy;
        target[k].most -= column[k].steps;
        keeps[k] = !column[k].done;
        *left += !column[k].done;
    }
    return *left > 0 ? g->steps->reduced.scale(g->n_reduced, w->kind, keeps, w->cg.r) : FRG_OK;
}

static frg_status build_solver(fe_cascade *c, frg_context *ctx, solver which)
{
    return which == SOLVER_DIRECT  ? build_factor(c, ctx)
           : is_approximate(which) ? build_approximate(c, ctx, which == SOLVER_SCHWARZ)
                                   : FRG_OK;
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
    if (!skips_rows(c, FE_FROM_ROWS) && c->products <= WORTH_PRODUCTS * (double)c->g->n) {
        status = build_bordered(c, ctx);
        status =
            status == FRG_OK ? probe(c, ctx, SOLVER_ROWS, single, FE_PROBE_STEPS, &steps) : status;
        c->beyond = status == FRG_OK && steps > ROW_STEPS;
    }
    if (status == FRG_OK && skips_rows(c, FE_FROM_ROWS)) {
        status = choose(c, ctx, single);
        status = status == FRG_OK ? build_solver(c, ctx, c->choice) : status;
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
    const fe_steps *const steps = c->g->steps;
    const bool shared = single->cg.r == w->cg.r;
    frg_status status = FRG_OK;
    if (shared) {
        status = steps->reduced.copy(c->g->n_reduced, 0, w->cg.r, w->cg.z);
    }
    status = status == FRG_OK ? choose(c, ctx, single) : status;
    if (shared && status >= 0) {
        TRY(steps->reduced.copy(c->g->n_reduced, 0, w->cg.z, w->cg.r));
    }
    if (status != FRG_OK) {
        return status;
    }
    solver next = c->choice;
    if (start == FE_FROM_FACTOR && next != SOLVER_SUBPROBLEMS && !c->refused) {
        next = SOLVER_DIRECT;
    }
    const frg_status built = build_solver(c, ctx, next);
    if (built != FRG_OK) { /* `used` stays what it was: an interrupted solver does not exist */
        return built;
    }
    c->used = next;
    if (next == SOLVER_SUBPROBLEMS) {
        return frgi_fe_subproblems_solve(c->subproblems, ctx, w, start, target, column);
    }
    if (next == SOLVER_DIRECT) {
        const bool project = start == FE_FROM_FACTOR;
        if (project) {
            TRY(find_null_sets(c, ctx));
        }
        /* a refinement is audited right afterwards, and may be repeated */
        return solve_direct(c, w, start == FE_FROM_ASSEMBLED ? 1 : 2, project, column);
    }
    return run_cg(c, ctx, next, w, c->opts.max_iter, target, column);
}

frg_status frgi_fe_cascade_solve(fe_cascade *c, frg_context *ctx, const fe_block_work *w,
                                 const fe_block_work *single, fe_cascade_start start,
                                 const fe_cg_target *goal, fe_cg_column *column)
{
    const int lanes = 1 << w->kind;
    fe_cg_target target[FE_MAX_LANES];
    fe_cg_column before[FE_MAX_LANES] = {0};
    memcpy(target, goal, (size_t)lanes * sizeof *target);
    TRY(c->g->steps->reduced.copy(c->g->n_reduced, w->kind, NULL, w->answer));
    memset(column, 0, (size_t)lanes * sizeof *column);
    if (c->opts.precond == FRG_FE_PRECOND_OFF && !c->ones) {
        TRY(NEW(ctx, &c->ones, c->g->n_reduced, "ones"));
        for (int64_t i = 0; i < c->g->n_reduced; i++) {
            c->ones[i] = 1;
        }
    }

    const frg_status studied = study(c, ctx);
    if (studied != FRG_OK) {
        return studied;
    }
    if (!skips_rows(c, start)) {
        const bool further =
            c->opts.method != FRG_FE_CG && c->products <= WORTH_PRODUCTS * (double)c->g->n;
        const int64_t steps =
            further && c->opts.max_iter > ROW_STEPS ? ROW_STEPS : c->opts.max_iter;
        c->used = SOLVER_ROWS;
        for (int k = 0; k < lanes; k++) {
            target[k].forecast_limit = further ? ROW_FORECAST : 0;
        }
        int left = 0;
        const frg_status status = run_cg(c, ctx, SOLVER_ROWS, w, steps, target, column);
        if (status != FRG_OK || !further) {
            return status;
        }
        TRY(drop_finished(c->g, w, column, target, &left));
        if (left == 0) {
            return FRG_OK;
        }
        memcpy(before, column, sizeof before);
        for (int k = 0; k < lanes; k++) {
            target[k].forecast_limit = 0;
        }
    }
    const frg_status status = escalate(c, ctx, w, single, start, target, column);
    for (int k = 0; k < lanes; k++) {
        column[k].steps += before[k].steps;
        column[k].lambda = before[k].done ? before[k].lambda : column[k].lambda;
        column[k].escalated = c->used != SOLVER_ROWS && !before[k].done;
    }
    return status;
}

frg_status frgi_fe_cascade_error(const fe_cascade *c, const fe_block_work *w, const double *s,
                                 const double *lambda, bool prepared, double *error)
{
    const solver which = !prepared                          ? c->used
                         : frgi_fe_cascade_begins_beyond(c) ? c->choice
                                                            : SOLVER_ROWS;
    const fe_steps *const steps = c->g->steps;
    const int64_t n = c->g->n_reduced;
    double *const z = w->cg.z;
    if (which == SOLVER_SUBPROBLEMS) {
        return frgi_fe_subproblems_error(c->subproblems, w, s, lambda, prepared, error);
    }
    if (which == SOLVER_DIRECT) {
        TRY(steps->reduced.copy(n, w->kind, s, z));
        TRY(steps->reduced.solve(c->direct, w->kind, z, c->scratch.memory));
    } else if (is_approximate(which)) {
        TRY(frgi_fe_schwarz_apply(&c->approximate, c->g, w->kind, s, z, c->scratch.memory));
    } else {
        TRY(steps->reduced.times_diagonal(n, w->kind, jacobi(c, which), s, z));
    }
    TRY(steps->reduced.dot(n, w->kind, s, z, error));
    for (int k = 0; k < 1 << w->kind && which != SOLVER_DIRECT; k++) {
        error[k] /= lambda[k];
    }
    return FRG_OK;
}

/* ---- reporting ------------------------------------------------------------------------------- */

bool frgi_fe_cascade_is_direct(const fe_cascade *c)
{
    return c->used == SOLVER_SUBPROBLEMS ? frgi_fe_subproblems_at_end(c->subproblems)
                                         : c->used == SOLVER_DIRECT;
}

fe_subproblems *frgi_fe_cascade_subproblems(const fe_cascade *c)
{
    return c->subproblems;
}

const char *frgi_fe_cascade_method(const fe_cascade *c)
{
    if (c->g->n_reduced == 0) {
        return "closed form";
    }
    if (c->used == SOLVER_SUBPROBLEMS) {
        return frgi_fe_subproblems_method(c->subproblems);
    }
    if (c->device) {
        return frgi_fe_device_method(c->device);
    }
    return c->used == SOLVER_ROWS && c->opts.dtype != FRG_FE_F64 ? "cg rows, float32 directions"
                                                                 : solver_names[c->used];
}

size_t frgi_fe_cascade_factor_bytes(const fe_cascade *c)
{
    return frgi_fe_schur_bytes(&c->schur) + frgi_fe_bordered_bytes(&c->bordered) +
           (c->direct ? frgi_direct_bytes(c->direct) : 0) + frgi_fe_schwarz_bytes(&c->approximate) +
           (c->subproblems ? frgi_fe_subproblems_bytes(c->subproblems) : 0);
}

/** Rank of S where a factor has counted it; -1 otherwise. */
static int64_t counted_rank(const fe_cascade *c)
{
    return c->factored ? frgi_direct_rank(c->direct) : -1;
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
    const double rows = (double)c->g->n;
    *rank = counted_rank(c);
    if (*rank >= 0 || (cheap_only && c->products > CHEAP_PRODUCTS * rows)) {
        return FRG_OK;
    }
    const frg_status built = build_schur(c, ctx);
    if (built != FRG_OK || (c->refused && cheap_only)) {
        return built;
    }
    if (c->refused) {
        FAIL(ctx, E_TOO_BIG, "the exact rank needs a factor that fill_cap does not allow");
    }
    if (cheap_only) {
        const frg_status status = analyse(c, ctx, 0);
        if (frgi_direct_refused(ctx, status) ||
            (status == FRG_OK && factor_seconds(c) > SECONDS_PER_ROW * rows)) {
            return FRG_OK;
        }
        if (status != FRG_OK) {
            return status;
        }
    }
    const frg_status factored = build_factor(c, ctx);
    *rank = counted_rank(c);
    return factored;
}

/* ---- saved and read back --------------------------------------------------------------------- */

static frg_status put_schur(const fe_schur *s, frg_checkpoint *to)
{
    const int64_t entries = s->starts[s->n];
    TRY(frg_checkpoint_put(to, "s.starts", s->starts, (s->n + 1) * (int64_t)sizeof *s->starts));
    TRY(frg_checkpoint_put(to, "s.columns", s->columns, entries * (int64_t)sizeof *s->columns));
    TRY(frg_checkpoint_put(to, "s.values", s->values, entries * (int64_t)sizeof *s->values));
    TRY(frg_checkpoint_put(to, "s.inverse", s->inverse_diag,
                           s->n * (int64_t)sizeof *s->inverse_diag));
    return frg_checkpoint_put(to, "s.border", s->border, s->n_border * (int64_t)sizeof *s->border);
}

frg_status frgi_fe_cascade_put(const fe_cascade *c, fe_cascade_facts *facts, frg_checkpoint *to)
{
    if (c->device || c->subproblems) {
        FAIL(c->ctx, E_UNSUPPORTED, "a plan %s is not saved: make it anew where it is needed",
             c->device ? "on a device" : "whose components are solved apart");
    }
    *facts = (fe_cascade_facts){.products = c->products,
                                .refused = c->refused,
                                .chosen = c->chosen,
                                .choice = (int64_t)c->choice,
                                .split_tried = c->split_tried,
                                .beyond = c->beyond,
                                .used = (int64_t)c->used,
                                .assembled = c->schur.n > 0,
                                .border = c->schur.n_border,
                                .groups = c->schur.groups,
                                .factored = c->factored,
                                .approximate = c->approximate.ac != NULL};
    if (facts->assembled) {
        TRY(put_schur(&c->schur, to));
    }
    if (c->factored) {
        TRY(frgi_direct_put(c->direct, &facts->direct, to));
    }
    if (c->approximate.ac) {
        TRY(frgi_ac_put(c->approximate.ac, &facts->ac, to));
    }
    return frg_checkpoint_put(to, "cascade", facts, sizeof *facts);
}

static bool facts_are_sound(const fe_cascade *c, const fe_cascade_facts *f)
{
    const int64_t flags = f->refused | f->chosen | f->split_tried | f->beyond | f->assembled |
                          f->factored | f->approximate;
    const bool knows = f->choice >= SOLVER_ROWS && f->choice <= SOLVER_SCHWARZ &&
                       f->used >= SOLVER_ROWS && f->used <= SOLVER_SCHWARZ;
    const bool needs_s = f->used == SOLVER_EXPLICIT || f->factored || f->approximate ||
                         (f->chosen && f->choice != SOLVER_ROWS);
    return (flags & ~INT64_C(1)) == 0 && knows && (f->assembled || !needs_s) && f->border >= 0 &&
           f->border <= c->g->n_reduced && f->groups >= 0 &&
           (f->used != SOLVER_DIRECT || f->factored) &&
           (!is_approximate((solver)f->used) || f->approximate);
}

/** Rows of ascending columns that are there, and a border of them. */
static bool schur_is_sound(const fe_schur *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
            const int64_t before = e > s->starts[i] ? s->columns[e - 1] : -1;
            if (s->columns[e] <= before || s->columns[e] >= s->n) {
                return false;
            }
        }
    }
    for (int64_t i = 0; i < s->n_border; i++) {
        if (s->border[i] < 0 || s->border[i] >= s->n) {
            return false;
        }
    }
    return true;
}

static frg_status get_schur(fe_schur *s, frg_context *ctx, const frg_checkpoint *from, int64_t n)
{
    int64_t bytes = 0;
    TRY(NEW(ctx, &s->starts, n + 1, "Schur complement"));
    TRY(frgi_checkpoint_copy(from, "s.starts", s->starts, (size_t)(n + 1) * sizeof *s->starts));
    const void *const columns = frg_checkpoint_get(from, "s.columns", &bytes);
    const int64_t entries = bytes / (int64_t)sizeof *s->columns;
    bool sound = columns && s->starts[0] == 0 && s->starts[n] == entries;
    for (int64_t i = 0; sound && i < n; i++) {
        sound = s->starts[i] <= s->starts[i + 1];
    }
    if (!sound) {
        return frgi_checkpoint_unsound(from, "s.starts");
    }
    const size_t count = (size_t)entries;
    TRY(NEW(ctx, &s->columns, entries, "Schur complement"));
    TRY(NEW(ctx, &s->values, entries, "Schur complement"));
    TRY(NEW(ctx, &s->inverse_diag, n, "Schur complement"));
    TRY(NEW(ctx, &s->border, s->n_border, "Schur complement"));
    TRY(frgi_checkpoint_copy(from, "s.columns", s->columns, count * sizeof *s->columns));
    TRY(frgi_checkpoint_copy(from, "s.values", s->values, count * sizeof *s->values));
    TRY(frgi_checkpoint_copy(from, "s.inverse", s->inverse_diag,
                             (size_t)n * sizeof *s->inverse_diag));
    TRY(frgi_checkpoint_copy(from, "s.border", s->border, (size_t)s->n_border * sizeof *s->border));
    s->n = n;
    return schur_is_sound(s) ? FRG_OK : frgi_checkpoint_unsound(from, "s.columns");
}

frg_status frgi_fe_cascade_get(fe_cascade *c, const frg_checkpoint *from)
{
    fe_cascade_facts f;
    TRY(frgi_checkpoint_copy(from, "cascade", &f, sizeof f));
    if (!facts_are_sound(c, &f)) {
        return frgi_checkpoint_unsound(from, "cascade");
    }
    c->products = f.products;
    c->refused = f.refused != 0;
    c->chosen = f.chosen != 0;
    c->choice = (solver)f.choice;
    c->split_tried = f.split_tried != 0;
    c->beyond = f.beyond != 0;
    c->used = (solver)f.used;
    if (f.assembled) {
        c->schur.n_border = f.border;
        c->schur.groups = f.groups;
        TRY(get_schur(&c->schur, c->ctx, from, c->g->n_reduced));
    }
    if (f.factored) {
        const frgi_direct_opts o = factor_options(c);
        const frgi_symmetric s = frgi_fe_schur_view(&c->schur);
        TRY(frgi_direct_get(&c->direct, c->ctx, from, &s, &o));
        TRY(need_scratch(c, c->ctx, frgi_direct_scratch(c->direct, FE_MAX_LANES)));
        c->factored = true;
    }
    if (f.approximate) {
        const solver which = is_approximate(c->choice) ? c->choice : c->used;
        TRY(frgi_fe_schwarz_get(&c->approximate, c->ctx, from, c->g, which == SOLVER_SCHWARZ));
        TRY(need_scratch(c, c->ctx, frgi_fe_schwarz_scratch(&c->approximate, FE_MAX_LANES)));
    }
    return FRG_OK;
}
