/* reg_absorb.c - the effects taken out of the columns of a regression.
 *
 *     [y~ X~] = (I - P_D) [y X],   P_D the weighted projection on the dummies and slopes D
 *
 * by the demeaner, in place, and what it says of D: its rank, the solver, the subproblems.  Where
 * the caller has a store the columns go in blocks, each kept as soon as it is done, and those that
 * it has of an earlier run are not computed again.
 */
#include <math.h>
#include <string.h>

#include "core/checkpoint_bytes.h"
#include "core/row_order.h"
#include "fe/fe_demean.h"
#include "regress/regress.h"

frg_status frgi_fe_slopes(const frg_fe *f, frg_slope **slopes, uint64_t *no_intercept)
{
    *no_intercept = 0;
    TRY(NEW(f->ctx, slopes, f->data.formula.n_slopes, "slopes"));
    for (int k = 0; k < f->data.formula.n_slopes; k++) {
        (*slopes)[k] = (frg_slope){.factor = f->data.formula.slopes[k].effect,
                                   .z = f->data.frame.slopes + k * f->data.frame.n};
    }
    for (int q = 0; q < f->data.frame.n_effects; q++) {
        *no_intercept |= (uint64_t)!f->data.formula.effects[q].intercept << q;
    }
    return FRG_OK;
}

frg_status frgi_fe_plan(const frg_fe *f, frg_demean **out)
{
    const frgi_frame *const frame = &f->data.frame;
    const frg_array codes =
        frg_matrix_columns(frame->codes, FRG_I32, frame->n, frame->n_effects, frame->n);
    const frg_array weights = frg_vector(frame->weights, FRG_F64, frame->n);
    fe_slopes_asked asked = {.count = f->data.formula.n_slopes};
    frg_slope *slopes = NULL;
    TRY(frgi_fe_slopes(f, &slopes, &asked.no_intercept));
    asked.slopes = asked.count ? slopes : NULL;
    const frg_column_store *const store = f->policy.options.store;
    const frg_status status =
        frgi_fe_demean_lent(out, f->ctx, codes, frame->weights ? &weights : NULL, &asked,
                            &f->policy.options.demean, store ? store->layout : NULL);
    DROP(f->ctx, &slopes);
    return status;
}

/* ---- plans in files -------------------------------------------------------------------------- */

/** The plan's solver becomes that of opts.plan where that file is there; a positive status:
 *  stopped. */
static frg_status read_plan(frg_fe *f)
{
    const char *const path = f->policy.options.plan;
    if (!path) {
        return FRG_OK;
    }
    TRY(frgi_fe_plan_check(f->absorbed.plan));
    f->absorbed.plan_read = frgi_checkpoint_is_there(f->ctx, path);
    f->absorbed.plan_waits = !f->absorbed.plan_read;
    return f->absorbed.plan_read ? frgi_fe_plan_load(f->absorbed.plan, path) : FRG_OK;
}

frg_status frg_fe_save_plan(frg_fe *f, const char *path)
{
    if (!f) {
        return FRG_BAD_ARG;
    }
    frgi_fe_absorbed *const a = &f->absorbed;
    REQUIRE(f->ctx, path, "frg_fe_save_plan takes a path");
    if (!a->plan_waits) {
        FAIL(f->ctx, E_OPTION, "the fit has no plan to be written: %s",
             a->plan_read ? "it read one" : "its options name none, or it was written before");
    }
    TRY(frg_demean_save(a->unsaved ? a->unsaved : a->plan, path));
    a->plan_waits = false;
    frg_demean_destroy(a->unsaved);
    a->unsaved = NULL;
    return FRG_OK;
}

/* ---- columns that did not converge ----------------------------------------------------------- */

/** The remedy for a column, by what ended its run. */
static void warn_columns(const frg_fe *f, frg_status end)
{
    const frgi_error why = end == FRG_TIME_LIMIT    ? E_TIME_LIMIT
                           : end == FRG_INTERRUPTED ? E_STOPPED
                                                    : W_NOT_CONVERGED;
    for (int c = 0; c <= f->data.p; c++) {
        const frg_demean_column *const r = &f->matrix.reports[c];
        if (!r->converged) {
            const char *const name = frgi_fe_column_name(f, c);
            const bool known = r->worst_factor >= 0 && r->worst_factor < f->data.frame.n_effects;
            frgi_warn(f->ctx, why,
                      "'%s' after %lld iterations: eta %.3g, largest level mean %.3g, at level "
                      "%lld of '%s'",
                      name, (long long)r->iterations, r->gradient, r->audit,
                      (long long)r->worst_level + 1,
                      known ? f->data.frame.keys[r->worst_factor].name : "?");
        }
    }
}

static frg_status copy_text(frg_context *ctx, char **out, const char *s)
{
    return frgi_strdup(ctx, out, s ? s : "", s ? strlen(s) : 0);
}

/** Copies the reports of the subproblems: the plan may go.  Their methods are texts of the
 *  library. */
static frg_status copy_subproblems(frg_fe *f, int64_t n)
{
    TRY(NEW0(f->ctx, &f->absorbed.subproblems, n, "subproblems"));
    for (int64_t i = 0; i < n; i++) {
        TRY(frg_demean_get_part(f->absorbed.plan, i, &f->absorbed.subproblems[i]));
    }
    return FRG_OK;
}

/* ---- rows on the disk ------------------------------------------------------------------------ */

/** The effect that the demeaner eliminates. */
static int eliminated(const frgi_frame *frame)
{
    fe_factor f[FRGI_EFFECTS] = {{0}};
    for (int q = 0; q < frame->n_effects; q++) {
        f[q].levels = frame->levels[q];
    }
    return frgi_fe_largest_factor(f, frame->n_effects);
}

bool frgi_fe_is_scattered(const frg_fe *f)
{
    const frgi_frame *const frame = &f->data.frame;
    const int q = eliminated(frame);
    return frgi_spools(f->ctx) &&
           !frgi_row_order_is_grouped(frame->codes + q * frame->n, frame->n, frame->levels[q]);
}

/* ---- the columns ----------------------------------------------------------------------------- */

/** Columns first .. first + count - 1 demeaned, in place or into it; *lost: there is no result of
 *  them. */
static frg_status run_columns(frg_fe *f, int64_t first, int64_t count, bool *lost)
{
    const int64_t n = f->data.frame.n;
    double *const *const x = f->matrix.columns + first;
    const intptr_t apart = count > 1 ? ((intptr_t)x[1] - (intptr_t)x[0]) / (intptr_t)sizeof **x : n;
    const frg_array in = frg_matrix_columns(x[0], FRG_F64, n, count, apart);
    const frg_array out = frg_matrix_columns(f->matrix.values + first * n, FRG_F64, n, count, n);
    const frg_status status =
        frgi_fe_demean_run(f->absorbed.plan, in, out, f->matrix.reports + first, NULL);
    *lost = frgi_fe_demean_lost(f->absorbed.plan);
    return status;
}

/** In blocks of columns that the caller's store keeps; what it has of an earlier run is not done
 *  again. */
static frg_status demean_blocks(frg_fe *f, frg_status *worst, bool *stopped)
{
    const frg_column_store *const s = f->policy.options.store;
    const int64_t n = f->data.frame.n, p = f->data.p + 1, block = s->block > 0 ? s->block : 8;
    int64_t done = 0;
    TRY(s->load(s->user, n, p, f->matrix.values, f->matrix.reports, &done, worst));
    REQUIRE(f->ctx, done >= 0 && done < p, "the store has %lld of %lld columns", (long long)done,
            (long long)p);
    for (;;) {
        const int64_t m = p - done < block ? p - done : block;
        bool lost;
        frg_status status = frgi_stopped(f->ctx); /* a short block may end without a look */
        status = status == FRG_OK ? run_columns(f, done, m, &lost) : status;
        TRY(status);
        *stopped = status == FRG_INTERRUPTED || status == FRG_TIME_LIMIT;
        done += *stopped ? 0 : m;
        if (done == p) {
            *worst = status > 0 ? status : *worst;
            return FRG_OK;
        }
        TRY(s->save(s->user, n, p, f->matrix.values, f->matrix.reports, done,
                    status > 0 && !*stopped ? status : *worst, *stopped));
        *worst = status > 0 ? status : *worst;
        if (*stopped) {
            return FRG_OK;
        }
    }
}

/** Demeans, all columns at once or in the store's blocks, by the plan or its file. */
static frg_status demean(frg_fe *f, frg_status *worst, bool *stopped)
{
    const frg_status read = read_plan(f);
    TRY(read);
    *stopped = read > 0;
    if (*stopped) {
        *worst = read;
        return FRG_OK;
    }
    if (f->policy.options.store) {
        return demean_blocks(f, worst, stopped);
    }
    const frg_status status = run_columns(f, 0, f->data.p + 1, stopped);
    frgi_fe_own_columns(f);
    TRY(status);
    *worst = status > 0 ? status : *worst;
    return FRG_OK;
}

/** What needs no pass over the rows: all columns of D but for the intercepts, which share one. */
static frg_demean_rank bound_of_rank(const frg_fe *f)
{
    int64_t columns = 0, intercepts = 0;
    for (int q = 0; q < f->data.frame.n_effects; q++) {
        columns += f->data.formula.effects[q].intercept ? f->data.frame.levels[q] : 0;
        intercepts += f->data.formula.effects[q].intercept;
    }
    for (int k = 0; k < f->data.formula.n_slopes; k++) {
        columns += f->data.frame.levels[f->data.formula.slopes[k].effect];
    }
    return (frg_demean_rank){.rank = intercepts > 1 ? columns - intercepts + 1 : columns,
                             .method = "bound"};
}

/** The rank, the method, and what became of the subproblems: copies, as the plan may go.  A count
 *  that was stopped leaves a bound: the fit is marked as stopped. */
static frg_status describe(frg_fe *f)
{
    frgi_fe_absorbed *const a = &f->absorbed;
    frgi_sample *const s = f->data.frame.sample;
    frg_demean_rank rank = bound_of_rank(f);
    frg_status counted = FRG_OK;
    if (s && s->ranked) {
        rank = s->rank;
    } else {
        counted = frgi_fe_demean_rank(a->plan, &rank);
        TRY(counted);
    }
    if (s && counted == FRG_OK) {
        s->rank = rank;
        s->ranked = true;
    }
    a->rank = (double)rank.rank;
    a->rank_exact = rank.exact;
    a->components = rank.components;
    a->report = frg_demean_get(a->plan);
    TRY(copy_text(f->ctx, &a->rank_method, rank.method));
    TRY(copy_text(f->ctx, &a->method, a->report.method));
    a->report.method = a->method;
    return copy_subproblems(f, a->report.n_parts);
}

static void warn_rank(const frg_fe *f)
{
    const frgi_fe_absorbed *const a = &f->absorbed;
    if (!a->rank_exact) {
        const bool pivots = strcmp(a->rank_method, "pivots") == 0;
        frgi_warn(f->ctx, W_DOF_BOUND,
                  pivots ? "the rank of the effects is %lld by the %s of a factor, not verified"
                         : "the rank of the effects is at most %lld (%s)",
                  (long long)a->rank, a->rank_method);
    }
}

/** By the plan of the sample, of the columns that no model before had. */
static frg_status absorb_shared(frg_fe *f, frg_status *worst, bool *stopped)
{
    TRY(frgi_sample_demean(f, worst, stopped));
    if (*stopped) {
        return FRG_OK;
    }
    f->absorbed.plan = f->data.frame.sample->plan; /* for as long as it is described */
    const frg_status status = describe(f);
    f->absorbed.plan = NULL;
    TRY(status);
    warn_columns(f, *worst);
    warn_rank(f);
    return FRG_OK;
}

frg_status frgi_fe_absorb(frg_fe *f, frg_status *worst, bool *stopped)
{
    TRY(NEW0(f->ctx, &f->matrix.reports, f->data.p + 1, "reports"));
    *stopped = false;
    if (f->data.frame.sample) {
        return absorb_shared(f, worst, stopped);
    }
    TRY(frgi_fe_plan(f, &f->absorbed.plan));
    TRY(demean(f, worst, stopped));
    *stopped = *stopped || frgi_fe_ended(f, worst);
    return *stopped ? FRG_OK : frgi_fe_describe_absorbed(f, *worst);
}

frg_status frgi_fe_describe_absorbed(frg_fe *f, frg_status worst)
{
    TRY(describe(f));
    warn_columns(f, worst);
    warn_rank(f);
    if (!f->policy.options.keep_effects) {
        f->absorbed.unsaved = f->absorbed.plan_waits ? f->absorbed.plan : NULL;
        frg_demean_destroy(f->absorbed.plan_waits ? NULL : f->absorbed.plan);
        f->absorbed.plan = NULL;
    }
    return FRG_OK;
}
