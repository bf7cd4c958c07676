/* fe_row_lsmr.c - the run of the row-space path: blocks of columns through LSMR, audit, refinement.
 *
 * For a block of columns x, each scaled by a power of two that brings its largest value near 1:
 *
 *     z = (I - P_1) x                                     P_1 = W^(-1/2) U U' W^(1/2)
 *     c = argmin || W^(1/2) z - (I - U U') A_r c ||       by LSMR
 *     r = (I - P_1)(x - phi_r c)                          A_r = W^(1/2) phi_r
 *
 * U and A_r carry the factor W^(1/2), the rows x, z and r do not: P_1 takes phi_j m out of them, m
 * the sum of w phi_j z over the rows of an eliminated level.  r is written in the caller's type and
 * the audit is computed from what was written.  In the notation of fe_basis.h, with the orthonormal
 * columns phi of level l (N_l the weight, phi_0 = 1 / sqrt(N_l)):
 *
 *     g_lj = sum w phi_j r,   eta = ||g|| / (sqrt(Q) ||W^(1/2)(x - mean)||)
 *     level mean = |g_lj| / sqrt(N_l)
 *
 * so a slope counts by its weighted mean with the standardised z.  The mean is 0 in eta where no
 * factor has an intercept.  A column that fails is refined alone, so that its bits stay its own:
 * LSMR on r as the new right-hand side, stopped where the audit is expected to pass.  Status:
 * FRG_MAX_ITER where a round ended by max_iter, FRG_STALLED after STALLS rounds in which the
 * failure was not halved.
 *
 * A factor whose smallest pivot is rounding has a direction that D does not have, and effects
 * without bound along it: a column that is lost in their rounding (fe_verify.h), or that refinement
 * with the factor does not converge for, goes on without it, unless the factor was asked for by
 * name.
 *
 * Error bound: ||W^(1/2)(r - r*)||^2 <= ||g_eliminated||^2 + ||g_reduced||^2 / lambda, because U is
 * taken out exactly; lambda is the smallest Ritz value of LSMR's steps (with a preconditioner g'
 * P^-1 g / lambda takes its place).
 *
 * By method map alternating projections (fe_map.h) give c in LSMR's place; all else is the same.
 *
 * Vectors are reached by steps alone (fe_row_lsmr_plan.h), which fe_row_lsmr_host.c has, and of
 * rows on a device fe_row_lsmr_device.c: there r stays in double until the block ends, and so is
 * its audit.
 *
 * Cost of a step: two passes over the rows.  Memory: (3 n + 8 R) doubles a column of the block and
 * what fe_basis.h says; laid out by the first run of a shape and kept.
 */
#include "fe/fe_row_lsmr.h"
#include "fe/fe_verify.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/host_step.h"
#include "fe/fe_basis.h"
#include "fe/fe_row_lsmr_plan.h"
#include "sparse/lsmr.h"
#include "sparse/ritz.h"

enum { STALLS = 3, ROUNDS_MAX = 30, EXPONENT_MAX = 1000, HISTORY = 512 };
/* LSMR's atol over tol: ||g|| is spread unevenly over the levels */
static const double FIRST_ATOL = 1.0 / 32;
/* roundings of ||W^(1/2) x||: a gradient below them is zero */
static const double ZERO_GRADIENT = 4;
static const double AIM = 0.25;        /* a refinement aims at this fraction of the tolerance */
static const double LONGER = 1 + 1e-6; /* no correction by least squares makes r so much longer */

/* ---- plan ------------------------------------------------------------------------------------ */

/** An exact rank needs the slopes' values. */
static bool counts_exactly(const frg_demean_opts *o)
{
    return o->dof == FRG_DOF_AUTO || o->dof == FRG_DOF_EXACT;
}

static const fe_steps *table_of(const fe_row_lsmr *f)
{
    return f->basis.g->steps ? f->basis.g->steps : &frgi_fe_host_steps;
}

static const struct fe_row_lsmr_steps *steps_of(const fe_row_lsmr *f)
{
    return f->there.passes ? &frgi_fe_row_lsmr_device_steps : table_of(f)->row_lsmr;
}

static void close_run(fe_row_lsmr *f, frg_context *ctx)
{
    frgi_arena_close(&f->arena, ctx);
    if (f->vectors.bytes > 0) {
        table_of(f)->close(&f->vectors, ctx);
    }
    f->vectors = (frgi_arena){0}; /* measured, where it was not opened */
}

frg_status frgi_fe_row_lsmr_create(fe_row_lsmr **out, frg_context *ctx, const fe_rows *g,
                                   const frg_slope *slopes, int n_slopes, uint64_t no_intercept,
                                   const frg_demean_opts *o)
{
    *out = NULL;
    fe_row_lsmr *f;
    frg_status status;
    TRY(NEW0(ctx, &f, 1, "row-space plan"));
    f->opts = *o;
    if (n_slopes > 0) {
        frgi_host_step(ctx, FRGI_HOST_SLOPES);
    }
    TRY_TO(failed,
           frgi_basis_create(&f->basis, ctx, g, slopes, n_slopes, no_intercept, counts_exactly(o)));
    *out = f;
    return FRG_OK;
failed:
    frgi_fe_row_lsmr_destroy(f, ctx);
    return status;
}

void frgi_fe_row_lsmr_destroy(fe_row_lsmr *f, frg_context *ctx)
{
    if (!f) {
        return;
    }
    close_run(f, ctx);
    frgi_fe_device_destroy(f->device);
    frgi_fe_slopes_destroy(f->factor, ctx);
    frgi_basis_destroy(&f->basis, ctx);
    DROP(ctx, &f);
}

frg_status frgi_fe_row_lsmr_factor(fe_row_lsmr *f, frg_context *ctx, size_t byte_cap, bool forced)
{
    if (f->basis.n_reduced == 0 || f->basis.g->n == 0) {
        return FRG_OK;
    }
    TRY(frgi_fe_slopes_create(&f->factor, ctx, &f->basis, byte_cap, forced));
    f->may_drop = !forced;
    if (f->factor) {
        frgi_fe_row_lsmr_precondition(f, frgi_fe_slopes_solve, f->factor);
    }
    return FRG_OK;
}

/** Are projections what solves? */
static bool projects(const fe_row_lsmr *f)
{
    return f->opts.method == FRG_FE_MAP;
}

/** Steps that a column may take. */
static int64_t most_steps(const fe_row_lsmr *f)
{
    return projects(f) ? f->opts.max_sweeps : f->opts.max_iter;
}

const fe_basis *frgi_fe_row_lsmr_basis(const fe_row_lsmr *f)
{
    return &f->basis;
}

void frgi_fe_row_lsmr_take_device(fe_row_lsmr *f, fe_device *device)
{
    f->device = device;
    f->there.passes = frgi_fe_device_has_passes(device);
}

bool frgi_fe_row_lsmr_passes(const fe_row_lsmr *f)
{
    return f && f->there.passes;
}

const char *frgi_fe_row_lsmr_place(const fe_row_lsmr *f)
{
    return f->device ? frgi_fe_device_place(f->device) : "cpu";
}

const char *frgi_fe_row_lsmr_method(const fe_row_lsmr *f)
{
    return f->device     ? frgi_fe_device_method(f->device)
           : projects(f) ? "map"
           : !f->factor  ? "lsmr"
           : f->dropped  ? "lsmr, with and without direct factor"
                         : "lsmr, direct factor";
}

void frgi_fe_row_lsmr_precondition(fe_row_lsmr *f, fe_row_lsmr_precond *apply, const void *data)
{
    f->precond = apply;
    f->precond_data = data;
}

size_t frgi_fe_row_lsmr_bytes(const fe_row_lsmr *f)
{
    return sizeof *f + f->basis.arena.bytes + f->arena.bytes + f->vectors.bytes +
           frgi_fe_row_lsmr_factor_bytes(f);
}

size_t frgi_fe_row_lsmr_factor_bytes(const fe_row_lsmr *f)
{
    return f->factor ? frgi_fe_slopes_bytes(f->factor) : 0;
}

int64_t frgi_fe_row_lsmr_levels(const fe_row_lsmr *f)
{
    return f->basis.n_reduced + f->basis.n_elim_columns;
}

/* ---- memory of a run ------------------------------------------------------------------------- */

static int64_t block_width(const fe_row_lsmr *f, int64_t p)
{
    const int64_t usual = f->device ? frgi_fe_device_lanes(f->device) : FE_HOST_LANES;
    const int64_t block = f->opts.block > 0 ? f->opts.block : usual;
    const int64_t most = f->device && block > usual ? usual : block;
    return p < most ? p : most;
}

/** Numbers of the run itself. */
static void lay_out_run(frgi_arena *a, fe_row_lsmr *f, int64_t p)
{
    const int64_t k = block_width(f, p);
    f->state = TAKE(a, fe_row_column, p);
    f->diagonal = TAKE(a, double, HISTORY *k);
    f->below2 = TAKE(a, double, HISTORY *k);
}

/** What the steps alone touch. */
static void lay_out_vectors(frgi_arena *a, fe_row_lsmr *f, int64_t p)
{
    const fe_basis *b = &f->basis;
    const int64_t k = block_width(f, p);
    f->c = TAKE(a, double, b->n_reduced *k + 1); /* there is memory where R = 0, too */
    f->s = TAKE(a, double, b->n_reduced *k);
    f->effects = TAKE(a, double, frgi_mul((size_t)frgi_fe_row_lsmr_kept(f), (size_t)p));
    if (f->there.passes) {
        f->there.a = TAKE(a, double, b->n_reduced *k);
        return;
    }
    f->z = TAKE(a, double, frgi_mul((size_t)b->g->n, (size_t)k));
    f->elim = TAKE(a, double, b->n_elim_columns *k);
    frgi_basis_work_layout(a, b, k, &f->work);
    f->lsmr = (frgi_lsmr){.m = b->g->n, .n = b->n_reduced, .k = k};
    if (b->n_reduced > 0 && projects(f)) {
        frgi_fe_map_layout(a, b, k, &f->map);
    } else if (b->n_reduced > 0 && !f->device) {
        frgi_lsmr_layout(a, &f->lsmr);
    }
}

size_t frgi_fe_row_lsmr_shape(const fe_rows *g, const frg_slope *slopes, int n_slopes,
                              uint64_t no_intercept, const frg_demean_opts *o, int64_t p)
{
    fe_row_lsmr f = {.opts = *o};
    frgi_arena a = {0};
    const size_t basis =
        frgi_basis_shape(&f.basis, g, slopes, n_slopes, no_intercept, counts_exactly(o));
    lay_out_run(&a, &f, p);
    lay_out_vectors(&a, &f, p);
    return sizeof f + basis + a.used;
}

static frg_status open_run(fe_row_lsmr *f, frg_context *ctx, int64_t p)
{
    const char *const what = "work memory of the row-space path";
    close_run(f, ctx);
    lay_out_run(&f->arena, f, p);
    TRY(frgi_arena_open(&f->arena, ctx, what));
    lay_out_run(&f->arena, f, p);
    lay_out_vectors(&f->vectors, f, p);
    TRY(table_of(f)->open(&f->vectors, ctx, what));
    lay_out_vectors(&f->vectors, f, p);
    f->columns = p;
    return FRG_OK;
}

static frg_status prepare_run(fe_row_lsmr *f, frg_context *ctx, int64_t p)
{
    if (!f->vectors.base || f->columns != p) {
        const frg_status status = open_run(f, ctx, p);
        if (status < 0) {
            close_run(f, ctx);
            return status;
        }
    }
    f->work.threads = frg_threads(ctx);
    f->work.stops = ctx;
    return FRG_OK;
}

/* ---- the caller's columns -------------------------------------------------------------------- */

/** What is known of a column of `a` before its run. */
static fe_row_column column_of(const frg_array *a, double max_abs)
{
    int e = max_abs > 0 ? ilogb(max_abs) : 0;
    e = e < -EXPONENT_MAX ? -EXPONENT_MAX : e;
    return (fe_row_column){.scale = ldexp(1, -e),
                           .unscale = ldexp(1, e),
                           .max_abs = ldexp(max_abs, -e),
                           .epsilon = a->dtype == FRG_F32 ? (double)FLT_EPSILON : DBL_EPSILON,
                           .lambda = (double)NAN};
}

/** Checks every value before anything is written. */
static frg_status study_columns(fe_row_lsmr *f, frg_context *ctx, const frg_array *in)
{
    for (int64_t c = 0; c < in->shape[1]; c++) {
        double max_abs = 0;
        for (int64_t i = 0; i < in->shape[0]; i++) {
            const double v = fabs(frgi_array_get(in, i, c));
            if (!(v <= FE_LARGEST)) {
                return frgi_fe_refuse_value(ctx, i, c, frgi_array_get(in, i, c));
            }
            max_abs = v > max_abs ? v : max_abs;
        }
        f->state[c] = column_of(in, max_abs);
    }
    return FRG_OK;
}

/** Column k of a block on the device, whose sum of squares overflows or is none: *max_abs <- its
 *  largest |value|, where no value is refused. */
static frg_status study_values(fe_row_lsmr *f, frg_context *ctx, const fe_device_block *b, int k,
                               int64_t n, double *max_abs)
{
    double *x;
    TRY(NEW(ctx, &x, n, "a column from a device"));
    frg_status status = frgi_fe_device_column(f->device, b, k, x);
    *max_abs = 0;
    for (int64_t i = 0; i < n && status >= 0; i++) {
        const double v = fabs(x[i]);
        if (!(v <= FE_LARGEST)) {
            status = frgi_fe_refuse_value(ctx, i, b->first + k, x[i]);
        }
        *max_abs = v > *max_abs ? v : *max_abs;
    }
    DROP(ctx, &x);
    return status;
}

/** The same of columns that lie on the device. */
static frg_status study_there(fe_row_lsmr *f, frg_context *ctx, const frg_array *in)
{
    const int64_t p = in->shape[1], n = in->shape[0], width = block_width(f, p);
    for (int64_t c = 0; c < p; c++) {
        f->state[c] = column_of(in, 1);
    }
    for (int64_t first = 0; first < p; first += width) {
        const int64_t k = p - first < width ? p - first : width;
        const fe_device_block b = {first, first, (int)k, (int)k};
        double most[FE_MAX_LANES];
        TRY(frgi_fe_row_lsmr_largest(f, in, first, k, most));
        for (int64_t c = 0; c < k; c++) {
            if (!(most[c] <= FE_LARGEST)) {
                TRY(study_values(f, ctx, &b, (int)c, n, &most[c]));
            }
            f->state[first + c] = column_of(in, most[c]);
        }
    }
    return FRG_OK;
}

/* ---- verifying a column ---------------------------------------------------------------------- */

/** The caller's code of a level. */
static int64_t label_of(const fe_rows *g, const fe_basis_factor *f, int64_t level)
{
    const int64_t l = f->position < 0 && g->elim_level ? g->elim_level[level] : level;
    return g->factor[f->factor].label ? g->factor[f->factor].label[l] : l;
}

/** The column's size as frgi_fe_verify takes it. */
static fe_column_size size_of(const fe_row_lsmr *f, const fe_row_column *c)
{
    return (fe_column_size){.total_weight = f->basis.total_weight,
                            .total = c->total,
                            .max_abs = c->max_abs,
                            .effect = c->effect,
                            .epsilon = c->epsilon};
}

/** Fills the certificate; error2 is the bound's square, NaN where there is none. */
static void verify(const fe_row_lsmr *f, const fe_row_column *c, const fe_row_audit *a,
                   double error2, frg_demean_column *out)
{
    const fe_basis *b = &f->basis;
    const fe_column_size size = size_of(f, c);
    const fe_column_audit audit = {a->square, a->eliminated + a->reduced, a->mean};
    frgi_fe_verify(f->opts.tol, b->g->n_factors, &size, &audit, error2, out);
    out->worst_factor = a->factor->factor;
    out->worst_level = label_of(b->g, a->factor, a->level);
}

static fe_row_lsmr_precond *precond_of(const fe_row_lsmr *f, const fe_row_column *c)
{
    return c->plain ? NULL : f->precond;
}

/** Drops the preconditioner for a column where it has one and may; returns whether it did. */
static bool drop_precond(fe_row_lsmr *f, fe_row_column *c)
{
    if (!f->may_drop || !precond_of(f, c)) {
        return false;
    }
    c->lambda = (double)NAN;
    return f->dropped = c->plain = true;
}

/** The audit, gradient and bound over their limits, the largest; above 1 where the column is not
 *  accepted. */
static double failure(const fe_row_lsmr *f, const frg_demean_column *c)
{
    const double tol = f->opts.tol;
    return fmax(fmax(c->audit, c->gradient) / tol, c->error_bound / (FE_BOUND_MOST * tol));
}

/** *out <- the squared bound of || W^(1/2) (r - r*) || of column c of the k that were audited;
 *  spoils f->c. */
static frg_status bound_error(fe_row_lsmr *f, const fe_row_column *s, const fe_row_audit *a,
                              int64_t k, int64_t c, double *out)
{
    double sum = a->reduced;
    if (precond_of(f, s)) {
        TRY(steps_of(f)->energy(f, k, c, &sum));
    }
    *out = sum > 0 ? a->eliminated + sum / s->lambda : a->eliminated;
    return FRG_OK;
}

/* ---- a block --------------------------------------------------------------------------------- */

typedef struct {
    fe_row_lsmr *f;
    frg_context *ctx;
    const frg_array *in, *out;
    frg_demean_column *columns;
    frg_status stopped; /* the heartbeat's status once it has stopped the run */
} run;

/** One step of LSMR, and what it adds, where it was not given up, to T = B'B of each column, B
 *  being Golub and Kahan's bidiagonal matrix:
 *      T_jj = al_j^2 + be_(j+1)^2,    T_(j+1,j) = al_(j+1) be_(j+1) */
static frg_status step_and_record(fe_row_lsmr *f, int64_t steps[])
{
    frgi_lsmr *const e = &f->lsmr;
    double al[BASIS_MAX_LANES] = {0}; /* before the step; 0: the column has stopped */
    int64_t done[BASIS_MAX_LANES] = {0};
    const frgi_lsmr_scalars *after[BASIS_MAX_LANES] = {NULL};
    for (int64_t l = 0; l < e->width; l++) {
        al[e->lane[l].column] = e->lane[l].stop ? 0 : e->lane[l].al;
        done[e->lane[l].column] = e->lane[l].k;
    }
    const frg_status status = steps_of(f)->step(f);
    for (int64_t l = 0; l < e->width; l++) {
        after[e->lane[l].column] = e->lane[l].stop ? NULL : &e->lane[l];
    }
    for (int64_t c = 0; c < e->k; c++) {
        const frgi_lsmr_scalars *q = after[c] ? after[c] : &e->ended[c];
        if (al[c] > 0 && q->k == done[c]) {
            continue;
        }
        if (al[c] > 0 && steps[c] < HISTORY) {
            f->diagonal[steps[c] * e->k + c] = al[c] * al[c] + q->be * q->be;
            steps[c]++;
        }
        if (al[c] > 0 && steps[c] < HISTORY) {
            f->below2[steps[c] * e->k + c] = q->al * q->al * q->be * q->be;
        }
    }
    return status;
}

/** What a solve of column c has ended with. */
static void note_solve(run *r, int64_t column, frg_lsmr_stop stop, int64_t steps, double norm_a,
                       double lambda)
{
    fe_row_column *const s = &r->f->state[column];
    s->stop = stop;
    s->norm_a = norm_a;
    s->lambda = lambda < s->lambda || isnan(s->lambda) ? lambda : s->lambda;
    r->columns[column].iterations += steps;
}

/** The answer of the device; the gradient that it begins with is the host's, in double. */
static frg_status solve_on_device(run *r, int64_t first, int64_t k, const frgi_lsmr_rule *rule)
{
    fe_row_lsmr *const f = r->f;
    fe_row_audit audits[BASIS_MAX_LANES];
    fe_device_column column[FE_MAX_LANES];
    fe_device_system system = {.columns = k,
                               .b = f->there.passes ? NULL : f->z,
                               .block = f->there.block,
                               .k = f->there.k,
                               .gradient = f->s};
    TRY(steps_of(f)->audit(f, k, audits));
    for (int64_t c = 0; c < k; c++) {
        system.square[c] = audits[c].square;
        system.gradient_square[c] = audits[c].reduced;
    }
    const frg_status status = frgi_fe_device_lsmr(f->device, &system, rule, f->c, column);
    TRY(status);
    r->stopped = r->stopped != FRG_OK ? r->stopped : status;
    for (int64_t c = 0; c < k; c++) {
        note_solve(r, first + c, column[c].stop, column[c].steps, column[c].norm_a,
                   column[c].lambda);
    }
    return FRG_OK;
}

/** The answer of this machine. */
static frg_status solve_on_host(run *r, int64_t first, int64_t k, const frgi_lsmr_rule *rule)
{
    fe_row_lsmr *const f = r->f;
    frg_lsmr_column reports[BASIS_MAX_LANES];
    int64_t steps[BASIS_MAX_LANES] = {0};
    TRY(steps_of(f)->start(f, r->ctx, k, precond_of(f, &f->state[first]) != NULL, rule, reports));
    r->stopped = r->stopped != FRG_OK ? r->stopped : frgi_stopped(r->ctx);
    while (!frgi_lsmr_done(&f->lsmr) && r->stopped == FRG_OK) {
        r->stopped = step_and_record(f, steps);
        TRY(r->stopped);
    }
    TRY(steps_of(f)->finish(f));
    for (int64_t c = 0; c < k; c++) {
        const double lambda = frgi_ritz_smallest(f->diagonal + c, f->below2 + c, k, steps[c]);
        note_solve(r, first + c, reports[c].stop, reports[c].iterations, reports[c].norm_a, lambda);
    }
    return FRG_OK;
}

/** The answer of alternating projections. */
static frg_status solve_by_projections(run *r, int64_t first, int64_t k, double atol)
{
    fe_row_lsmr *const f = r->f;
    const fe_map_rule rule = {atol, most_steps(f) - r->columns[first].iterations};
    const frg_status status = steps_of(f)->project(f, r->ctx, k, &rule);
    TRY(status);
    r->stopped = r->stopped != FRG_OK ? r->stopped : status;
    for (int64_t c = 0; c < k; c++) {
        const fe_map_lane *const l = &f->map.lane[c];
        note_solve(r, first + c, l->stop, l->sweeps, 1, l->lambda);
    }
    return FRG_OK;
}

/** c <- the answer for the right-hand side W^(1/2) z; z is overwritten.  The columns of a block
 *  all have the preconditioner, or it is a single column. */
static frg_status solve(run *r, int64_t first, int64_t k, double atol)
{
    const fe_row_lsmr *const f = r->f;
    if (projects(f)) {
        return solve_by_projections(r, first, k, atol);
    }
    const frgi_lsmr_rule rule = {.atol = atol,
                                 .btol = atol,
                                 .cond_limit = f->opts.cond_limit,
                                 .max_iter = f->opts.max_iter - r->columns[first].iterations,
                                 .solver = "lsmr",
                                 .phase = "rows"};
    return f->device ? solve_on_device(r, first, k, &rule) : solve_on_host(r, first, k, &rule);
}

/** z <- `from` without the effects c and the eliminated levels'. */
static frg_status subtract(fe_row_lsmr *f, const frg_array *from, int64_t first, int64_t k,
                           fe_taken_out how)
{
    double effect[BASIS_MAX_LANES];
    TRY(steps_of(f)->again(f, from, first, k));
    TRY(steps_of(f)->take_out(f, k, how, effect));
    for (int64_t c = 0; c < k; c++) {
        fe_row_column *s = &f->state[first + c];
        s->effect = effect[c] > s->effect ? effect[c] : s->effect;
    }
    return FRG_OK;
}

static bool is_lost(const fe_row_lsmr *f, const fe_row_column *c)
{
    const fe_column_size size = size_of(f, c);
    return frgi_fe_is_lost(&size);
}

/** The certificates of z. */
static frg_status certify(run *r, int64_t first, int64_t k)
{
    fe_row_lsmr *f = r->f;
    fe_row_audit audits[BASIS_MAX_LANES];
    TRY(steps_of(f)->audit(f, k, audits));
    for (int64_t c = 0; c < k; c++) {
        const fe_row_audit *const a = &audits[c];
        fe_row_column *s = &f->state[first + c];
        double error2;
        TRY(bound_error(f, s, a, k, c, &error2));
        verify(f, s, a, error2, &r->columns[first + c]);
        s->reduced = sqrt(a->reduced);
        s->size = sqrt(a->square);
    }
    return FRG_OK;
}

/** Writes z with the current effects, and verifies what was written. */
static frg_status finish(run *r, int64_t first, int64_t k)
{
    fe_row_lsmr *f = r->f;
    TRY(steps_of(f)->add_effects(f, first, k));
    TRY(steps_of(f)->store(f, r->out, first, k));
    TRY(steps_of(f)->again(f, r->out, first, k));
    return certify(r, first, k);
}

/** One round of refinement: LSMR with the result as right-hand side.  *longer: r would be longer
 *  than before, and is left as it was.
 *
 *  The device begins with A_r' W r, which is A' of the projected r alone: the means of eliminated
 *  levels that the rounding of a stored r leaves have a part along the null space of A, and LSMR
 *  would follow it without end.  Where r lies there its projection takes its place. */
static frg_status refine_once(run *r, int64_t column, double before, bool *longer)
{
    fe_row_lsmr *f = r->f;
    fe_row_column *c = &f->state[column];
    const double atol = AIM * c->reduced / (before * c->size * fmax(c->norm_a, 1));
    const double effect = c->effect;
    double norm2, square;
    TRY(steps_of(f)->again(f, r->out, column, 1));
    if (f->device) {
        TRY(steps_of(f)->take_out(f, 1, FE_PROJECTED, NULL));
    }
    TRY(f->there.passes ? certify(r, column, 1) : FRG_OK);
    TRY(f->basis.n_reduced > 0 ? solve(r, column, 1, fmin(atol, FIRST_ATOL * f->opts.tol))
                               : steps_of(f)->no_answer(f, 1));
    TRY(subtract(f, r->out, column, 1, FE_TRIED));
    TRY(steps_of(f)->moments(f, 1, &norm2, &square));
    *longer = !(sqrt(norm2) <= LONGER * c->size);
    if (*longer) {
        c->effect = effect;
        return FRG_OK;
    }
    return finish(r, column, 1);
}

/** Are the level means below tol, or below their rounding?  Only a solve in float leaves as much as
 *  the rounding floor excuses in a column of float, and what is left on a device is in double. */
static bool within_tolerance(const fe_row_lsmr *f, const fe_row_column *c,
                             const frg_demean_column *report)
{
    const double epsilon = f->there.passes ? DBL_EPSILON : c->epsilon;
    return !(f->device && frgi_fe_device_in_float(f->device)) ||
           report->audit <= frgi_fe_reachable(f->opts.tol, epsilon);
}

/** LSMR again with the result as right-hand side, until it is accepted or stalls. */
static frg_status refine(run *r, int64_t column)
{
    fe_row_lsmr *f = r->f;
    fe_row_column *c = &f->state[column];
    frg_demean_column *report = &r->columns[column];
    int stalls = 0;
    for (int round = 0; round < ROUNDS_MAX && stalls < STALLS; round++) {
        const bool ended = r->stopped != FRG_OK || c->stop == FRG_LSMR_MAX_ITER ||
                           report->iterations >= most_steps(f);
        if (frgi_fe_accepted(f->opts.tol, report) &&
            (ended || stalls > 0 || within_tolerance(f, c, report))) {
            return FRG_OK;
        }
        if (is_lost(f, c)) { /* with its input */
            return r->stopped != FRG_OK ? r->stopped : FRG_STALLED;
        }
        if (ended) {
            return r->stopped != FRG_OK ? r->stopped : FRG_MAX_ITER;
        }
        const double before = failure(f, report);
        bool longer;
        TRY(refine_once(r, column, before, &longer));
        stalls = longer ? STALLS : failure(f, report) > 0.5 * before ? stalls + 1 : 0;
        if (stalls == STALLS && drop_precond(f, c)) {
            stalls = 0;
        }
    }
    return frgi_fe_accepted(f->opts.tol, report) ? FRG_OK : FRG_STALLED;
}

/** Sets the lanes to 0 in which nothing but rounding is left for the other factors: a Krylov space
 *  made of rounding has no meaning, and LSMR would take its size for that of A. */
static frg_status clear_finished(fe_row_lsmr *f, int64_t k, const double *norm2)
{
    fe_row_audit audits[BASIS_MAX_LANES];
    bool finished[BASIS_MAX_LANES];
    TRY(steps_of(f)->audit(f, k, audits));
    for (int64_t c = 0; c < k; c++) {
        finished[c] = sqrt(audits[c].reduced) <= ZERO_GRADIENT * DBL_EPSILON * sqrt(norm2[c]);
    }
    return steps_of(f)->zero(f, k, finished);
}

/** Computes the columns' sizes, solves for their effects and leaves the residuals in z. */
static frg_status begin_block(run *r, int64_t first, int64_t k)
{
    fe_row_lsmr *f = r->f;
    double norm2[BASIS_MAX_LANES], square[BASIS_MAX_LANES];
    TRY(steps_of(f)->load(f, r->in, first, k));
    TRY(steps_of(f)->moments(f, k, norm2, square));
    for (int64_t c = 0; c < k; c++) {
        f->state[first + c].total = square[c];
        f->state[first + c].effect = 0;
    }
    TRY(steps_of(f)->no_effects(f, first, k));
    if (f->basis.n_reduced > 0 && r->stopped == FRG_OK) {
        TRY(steps_of(f)->take_out(f, k, FE_PROJECTED, NULL));
        TRY(clear_finished(f, k, norm2));
        TRY(solve(r, first, k, FIRST_ATOL * f->opts.tol));
    } else {
        TRY(steps_of(f)->no_answer(f, k));
    }
    return subtract(f, r->in, first, k, FE_SUBTRACTED);
}

/** Nothing is written of a block with a lost column: each is begun by itself, which gives the
 *  others the same bits, and the lost one then without the preconditioner. */
static frg_status run_block(run *r, int64_t first, int64_t k)
{
    fe_row_lsmr *f = r->f;
    bool lost = false;
    memset(r->columns + first, 0, (size_t)k * sizeof *r->columns);
    TRY(begin_block(r, first, k));
    for (int64_t c = 0; c < k; c++) {
        lost = lost || is_lost(f, &f->state[first + c]);
    }
    lost = lost && f->precond; /* else there is nothing else to begin with */
    for (int64_t c = 0; lost && k > 1 && c < k; c++) {
        TRY(run_block(r, first + c, 1));
    }
    if (lost && k > 1) {
        return FRG_OK;
    }
    if (lost && drop_precond(f, &f->state[first])) {
        TRY(begin_block(r, first, 1));
    }
    TRY(finish(r, first, k));
    for (int64_t c = 0; c < k; c++) {
        const frg_status status = refine(r, first + c);
        TRY(status);
        r->columns[first + c].status = status;
        if (status != FRG_OK) { /* its bound may be too large where its residual is not */
            r->columns[first + c].converged = 0;
        }
    }
    return steps_of(f)->end(f, r->out, first, k);
}

frg_status frgi_fe_row_lsmr_run(fe_row_lsmr *f, frg_context *ctx, frg_array in, frg_array out,
                                frg_demean_column columns[])
{
    const int64_t p = in.shape[1];
    run r = {.f = f, .ctx = ctx, .in = &in, .out = &out, .columns = columns};
    memset(columns, 0, (size_t)p * sizeof *columns);
    if (f->basis.g->n == 0 || p == 0) {
        return FRG_OK;
    }
    const int64_t width = block_width(f, p);
    const fe_device_run there = {in.dtype == FRG_F32, p, (int)width, &in, &out};
    frg_status status = FRG_OK;
    TRY(prepare_run(f, ctx, p));
    TRY(in.device.kind == FRG_CPU ? study_columns(f, ctx, &in) : FRG_OK);
    TRY_TO(done, f->there.passes ? frgi_fe_device_columns_open(f->device, &there) : FRG_OK);
    TRY_TO(done, in.device.kind == FRG_CPU ? FRG_OK : study_there(f, ctx, &in));
    f->dropped = false;
    f->there.width = width;
    for (int64_t c = 0; c < p; c += width) {
        TRY_TO(done, run_block(&r, c, p - c < width ? p - c : width));
    }
    TRY_TO(done, f->there.passes ? frgi_fe_device_columns_close(f->device, &out) : FRG_OK);
done:
    if (f->there.passes) {
        frgi_fe_device_columns_drop(f->device);
    }
    return status;
}

frg_status frgi_fe_row_lsmr_effects(const fe_row_lsmr *f, int64_t column, double *alpha)
{
    if (!f->vectors.base || column < 0 || column >= f->columns) {
        return FRG_BAD_ARG;
    }
    return steps_of(f)->effects(f, column, alpha);
}
