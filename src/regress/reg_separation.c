/* reg_separation.c - rows that a Poisson, negbin, logit or probit model predicts perfectly.
 *
 * A direction z = X g + D a with z_i = 0 where y_i > 0 and z_i >= 0 where y_i = 0, not all 0, lets
 * the likelihood grow for ever: it tends to that of the rows with z_i = 0, which alone say anything
 * of the rest (Correia, Guimaraes and Zylkin 2019, Verifying the existence of maximum likelihood
 * estimates for generalized linear models).  A level whose outcomes are all 0 is one such;
 * a slope within a level (reg_separation_slopes.c) and two effects (reg_separation_pairs.c) have
 * others; what is left is found by their iterated rectifier:
 *
 *     u <- [y = 0];  repeat  v <- the fit of u on X and D, weights 1 where y = 0, K where y > 0;
 *                            z <- z + t (v - z), the first time v;
 *                            u <- max(z, 0) where y = 0, 0 elsewhere
 *     until z >= 0 within WRONG: separated are the rows with z > EDGE
 *
 * With binary outcomes both sides are bounded: z s >= 0 with s = 1 where y = 0, -1 where y = 1, and
 * all weights are 1.  The weights never change, so that X~ and the plan are made once and each
 * iteration demeans one column; where no row is separated the fit goes on with the plan.
 *
 * A step projects on the directions X g + D a and on the cone u s >= 0 by turns.  Two facts of a
 * direction c that lies in both and is not 0, products under the weights, are used:
 *
 *     <z, c> never falls, as u - z >= 0 where c > 0, and it began at sum |c|: thus max z s >= 1.
 *         Where all z s < 1 there is no such c, and nothing is separated.
 *     each z of t <= |u - z|^2 / |v - z|^2, a number >= 1, is no further from c than the z before
 *         (extrapolated projections: Bauschke, Combettes and Kruk 2006): t is this number where
 *         all weights are 1, in place of 1; K makes noise of the rows y > 0 of it.
 *
 * Dangers: K is a penalty in the place of an equation.  z at y > 0 is about 1 / K times what the
 * equation's multiplier is, and EDGE has to lie between the two.  z of a row that is not separated
 * tends to 0 slowly, often from above: WRONG is smaller than EDGE, so that it is there in time.  A
 * search that ends without an answer after MOST steps drops nothing, and says so.
 */
#include <math.h>
#include <string.h>

#include "fe/fe_demean.h"
#include "regress/reg_screen.h"

static const double EDGE = 1e-5, WRONG = 1e-6, HEAVIEST = 1e10;
static const double BELOW_ONE = 1 - 1e-4; /* for sure, beside the demeaner's tolerance */
enum { MOST = 500 };

/* ---- levels ---------------------------------------------------------------------------------- */

static frg_status refuse_outcome(frg_context *ctx, const frgi_frame *f, const frgi_frame_input *in,
                                 int64_t i, double y)
{
    const long long row = (f->rows ? f->rows[i] : i) + 1;
    const frgi_formula *const formula = in->formula;
    const char *const name = frgi_names_text(&formula->names, formula->depvar);
    frgi_at(ctx, "%s:%lld", name, row);
    FAIL(ctx, E_FAMILY, "'%s', row %lld: %.15g; family %s takes outcomes that are %s", name, row, y,
         in->family->name, in->family->outcomes);
}

/** y of the rows in use, checked. */
static frg_status outcomes(frg_context *ctx, const frgi_frame *f, const frgi_frame_input *in,
                           double *y)
{
    double *scratch;
    TRY(NEW(ctx, &scratch, ((int64_t)in->depvar->stack + 1) * FRGI_BLOCK, "outcomes"));
    for (int64_t i = 0; i < f->n; i += FRGI_BLOCK) {
        const int64_t m = f->n - i < FRGI_BLOCK ? f->n - i : FRGI_BLOCK;
        frgi_program_block(in->depvar, f->rows, i, m, y + i, scratch);
    }
    DROP(ctx, &scratch);
    for (int64_t i = 0; i < f->n; i++) {
        if (!in->family->has(y[i])) {
            return refuse_outcome(ctx, f, in, i, y[i]);
        }
    }
    return FRG_OK;
}

/** No outcome differs from the edge. */
static frg_status check_outcomes(frg_context *ctx, const frgi_frame *f, const frgi_frame_input *in,
                                 const double *y)
{
    const bool binary = in->family->edges == EDGES_BINARY;
    int64_t i = 0;
    while (i < f->n && (binary ? y[i] == y[0] : y[i] == 0)) {
        i++;
    }
    if (f->n > 0 && i == f->n) {
        FAIL(ctx, E_SEPARATED, "'%s' is %g in each of the %lld rows",
             frgi_names_text(&in->formula->names, in->formula->depvar), y[0], (long long)f->n);
    }
    return FRG_OK;
}

/** Marks the rows of effect q's levels that have no outcome but the edge's. */
static frg_status mark_levels(frg_context *ctx, const frgi_frame *f, bool binary, int q,
                              const double *y, unsigned char *gone)
{
    const int32_t *const codes = f->codes + q * f->n;
    unsigned char *seen; /* bit 0: an outcome of 0, bit 1: another */
    TRY(NEW0(ctx, &seen, f->levels[q], "separated levels"));
    for (int64_t i = 0; i < f->n; i++) {
        seen[codes[i]] |= y[i] == 0 ? 1 : 2;
    }
    for (int64_t i = 0; i < f->n; i++) {
        gone[i] |= seen[codes[i]] == 1 || (binary && seen[codes[i]] == 2);
    }
    DROP(ctx, &seen);
    return FRG_OK;
}

/** Marks the rows that a slope predicts perfectly, or two effects, whichever. */
static frg_status mark_slopes_and_pairs(frg_context *ctx, const frgi_frame *f,
                                        const frgi_frame_input *in, const double *y,
                                        unsigned char *gone)
{
    const bool binary = in->family->edges == EDGES_BINARY;
    for (int k = 0; k < in->formula->n_slopes; k++) {
        TRY(frgi_separated_by_slope(ctx, f, in, k, y, gone));
    }
    for (int q = 0; q < f->n_effects; q++) {
        for (int r = q + 1; r < f->n_effects; r++) {
            if (in->formula->effects[q].intercept && in->formula->effects[r].intercept) {
                TRY(frgi_separated_by_pair(ctx, f, q, r, y, binary, gone));
            }
        }
    }
    return FRG_OK;
}

static int64_t count_marked(const unsigned char *gone, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        count += gone[i];
    }
    return count;
}

frg_status frgi_separated_levels(frg_context *ctx, const frgi_frame *f, const frgi_frame_input *in,
                                 unsigned char *gone, int64_t *count)
{
    const bool binary = in->family->edges == EDGES_BINARY;
    double *y;
    *count = 0;
    TRY(NEW(ctx, &y, f->n, "outcomes"));
    frg_status status = outcomes(ctx, f, in, y);
    if (status >= 0 && in->family->edges != EDGES_NONE) {
        status = check_outcomes(ctx, f, in, y);
    }
    const bool looks =
        in->family->edges != EDGES_NONE && in->options->separation != FRG_SEPARATION_NONE;
    for (int q = 0; q < f->n_effects && looks && status >= 0; q++) {
        if (in->formula->effects[q].intercept) {
            status = mark_levels(ctx, f, binary, q, y, gone);
        }
    }
    *count = count_marked(gone, f->n);
    const bool by_levels = *count > 0; /* others are looked for once these are gone */
    if (status >= 0 && looks && !by_levels && in->options->separation == FRG_SEPARATION_AUTO) {
        status = mark_slopes_and_pairs(ctx, f, in, y, gone);
        *count = count_marked(gone, f->n);
    }
    DROP(ctx, &y);
    if (status >= 0 && *count == f->n && f->n > 0) {
        FAIL(ctx, E_SEPARATED, "%s",
             by_levels ? "every row has a level of an effect whose outcomes are all the same"
             : in->formula->n_slopes ? "two effects, or slopes, predict every row perfectly"
                                     : "two effects predict every row perfectly");
    }
    return status;
}

/* ---- the iterated rectifier ------------------------------------------------------------------ */

typedef struct {
    frg_fe *f;
    int64_t n;
    double *sign;    /* 1 where y = 0, 0 where y > 0, -1 where a binary y = 1 */
    double *weights; /* 1, K */
    double *columns; /* n x (p + 1): u, then X~ */
    double *u;       /* n */
    frg_demean *plan;
    frg_demean_column *reports;
    const double **x;
    int32_t *column_of;
    int k;
    double *bread, *gradient, *b;
} rectifier;

static void prepare(rectifier *r)
{
    const frg_fe *const f = r->f;
    const bool binary = f->glm.family->edges == EDGES_BINARY;
    double zeros = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const double y = f->matrix.values[i];
        r->sign[i] = y == 0 ? 1 : binary ? -1 : 0;
        zeros += y == 0;
    }
    const double heavy = fmin(zeros / (EDGE * EDGE), HEAVIEST);
    for (int64_t i = 0; i < r->n; i++) {
        r->weights[i] = r->sign[i] == 0 ? heavy : 1;
        r->u[i] = r->sign[i];
    }
}

/** The effects out of `count` columns from `first` on; without effects nothing. */
static frg_status take_out(const rectifier *r, int64_t first, int64_t count)
{
    if (!r->plan || count == 0) {
        return FRG_OK;
    }
    const frg_array some =
        frg_matrix_columns(r->columns + first * r->n, FRG_F64, r->n, count, r->n);
    return frgi_fe_demean_run(r->plan, some, some, r->reports + first, NULL);
}

/** The matrix of f in `values`, which holds its columns one behind the other. */
static void look_at(frg_fe *f, double *values)
{
    f->matrix.values = values;
    for (int c = 0; c <= f->data.p; c++) {
        f->matrix.columns[c] = values + c * f->data.frame.n;
    }
}

/** X~ under the weights and the columns of it that can be kept, and the first u~. */
static frg_status prepare_columns(rectifier *r)
{
    frg_fe *const f = r->f;
    const double *const own = f->data.frame.weights;
    double *const values = f->matrix.values;
    frg_demean_column *const reports = f->matrix.reports;
    const int n_dropped = f->fit.n_dropped;
    frgi_screen screen = {.f = f};
    f->data.frame.weights = r->weights;
    frg_status status = f->data.frame.n_effects ? frgi_fe_plan(f, &r->plan) : FRG_OK;
    memcpy(r->columns, r->u, sizeof *r->u * (size_t)r->n);
    status = status < 0 ? status : take_out(r, 0, f->data.p + 1);
    look_at(f, r->columns);
    f->matrix.reports = r->plan ? r->reports : NULL;
    status = status < 0 ? status : frgi_screen_create(&screen, f, r->weights);
    status =
        status < 0 ? status : frgi_screen_keep(&screen, 0, 0, f->data.p + 1, r->column_of, &r->k);
    status = status < 0 ? status : frgi_screen_inverse(&screen, r->k, r->column_of, r->bread);
    frgi_screen_destroy(&screen);
    look_at(f, values);
    f->matrix.reports = reports;
    f->data.frame.weights = (double *)(uintptr_t)own;
    f->fit.n_dropped = n_dropped;
    for (int j = 0; j < r->k; j++) {
        r->x[j] = r->columns + r->column_of[j] * r->n;
    }
    return status;
}

/** v <- the fit of u, into the place of u~: u~ - (u~ - X~ b) is what X explains, u - u~ what the
 *  effects do; u~ of the first u is there. */
static frg_status fit_direction(const rectifier *r, bool first, double *v)
{
    const frg_fe *const f = r->f;
    if (!first) {
        memcpy(r->columns, r->u, sizeof *r->u * (size_t)r->n);
        TRY(take_out(r, 0, 1));
    }
    memset(r->b, 0, sizeof *r->b * (size_t)(r->k + 1));
    for (int pass = 0; pass < 3; pass++) { /* the first has the gradient alone */
        TRY(frgi_gram_residual(f->ctx, r->k, r->x, r->columns, r->b, r->weights, r->n, v,
                               r->gradient));
        for (int i = 0; i < r->k && pass < 2; i++) {
            for (int j = 0; j < r->k; j++) {
                r->b[i] += r->bread[i * (ptrdiff_t)r->k + j] * r->gradient[j];
            }
        }
    }
    for (int64_t i = 0; i < r->n; i++) {
        v[i] = r->u[i] - v[i];
    }
    return FRG_OK;
}

/** z <- z + t (v - z) with t = |u - z|^2 / |v - z|^2 where all weights are 1, else t = 1. */
static void extrapolate(const rectifier *r, const double *v, double *z)
{
    double above = 0, below = 0;
    for (int64_t i = 0; i < r->n; i++) {
        above += (r->u[i] - z[i]) * (r->u[i] - z[i]);
        below += (v[i] - z[i]) * (v[i] - z[i]);
    }
    const bool binary = r->f->glm.family->edges == EDGES_BINARY;
    const double t = binary && below > 0 ? fmax(above / below, 1) : 1;
    for (int64_t i = 0; i < r->n; i++) {
        z[i] += t * (v[i] - z[i]);
    }
}

/** One step; false where it was the last: z >= 0, or nothing is separated and u = 0. */
static bool rectify(const rectifier *r, const double *z)
{
    double lowest = 0, highest = 0;
    for (int64_t i = 0; i < r->n; i++) {
        lowest = fmin(lowest, r->sign[i] * z[i]);
        highest = fmax(highest, r->sign[i] * z[i]);
    }
    const bool none = highest < BELOW_ONE;
    for (int64_t i = 0; i < r->n; i++) {
        r->u[i] = none ? 0 : r->sign[i] * fmax(r->sign[i] * z[i], 0);
    }
    return !none && lowest < -WRONG;
}

static frg_status allocate(rectifier *r)
{
    frg_context *const ctx = r->f->ctx;
    const int64_t p = r->f->data.p;
    TRY(NEW(ctx, &r->sign, r->n, "separated rows"));
    TRY(NEW(ctx, &r->weights, r->n, "separated rows"));
    TRY(NEW(ctx, &r->u, r->n, "separated rows"));
    TRY(NEW(ctx, &r->columns, r->n * (p + 1), "separated rows"));
    TRY(NEW0(ctx, &r->reports, p + 1, "separated rows"));
    TRY(NEW(ctx, &r->x, p + 1, "separated rows"));
    TRY(NEW(ctx, &r->column_of, p + 1, "separated rows"));
    TRY(NEW(ctx, &r->bread, p * p, "separated rows"));
    TRY(NEW(ctx, &r->gradient, p + 1, "separated rows"));
    return NEW(ctx, &r->b, p + 1, "separated rows");
}

static void release(rectifier *r)
{
    frg_context *const ctx = r->f->ctx;
    frg_demean_destroy(r->plan);
    DROP(ctx, &r->sign);
    DROP(ctx, &r->weights);
    DROP(ctx, &r->u);
    DROP(ctx, &r->columns);
    DROP(ctx, &r->reports);
    DROP(ctx, &r->x);
    DROP(ctx, &r->column_of);
    DROP(ctx, &r->bread);
    DROP(ctx, &r->gradient);
    DROP(ctx, &r->b);
}

static frg_status search(rectifier *r, unsigned char *gone, int64_t *count)
{
    frg_fe *const f = r->f;
    double *v = NULL, *z = NULL;
    frg_status status;
    memcpy(r->columns, f->matrix.values, sizeof *r->columns * (size_t)(r->n * (f->data.p + 1)));
    prepare(r);
    TRY(prepare_columns(r));
    TRY_TO(done, NEW(f->ctx, &v, r->n, "separated rows"));
    TRY_TO(done, NEW(f->ctx, &z, r->n, "separated rows"));
    bool goes_on = true;
    for (int step = 0; step < MOST && goes_on; step++) {
        if (frgi_stopped(f->ctx) != FRG_OK) {
            goto done;
        }
        TRY_TO(done, fit_direction(r, step == 0, step == 0 ? z : v));
        if (step > 0) {
            extrapolate(r, v, z);
        }
        goes_on = rectify(r, z);
    }
    f->glm.searched = !goes_on;
    for (int64_t i = 0; i < r->n && !goes_on; i++) {
        gone[i] = fabs(r->u[i]) > EDGE;
        *count += gone[i];
    }
    if (goes_on) {
        frgi_warn(f->ctx, W_SEARCH,
                  "after %d steps it is not known which rows the regressors and effects predict "
                  "perfectly: none was left out",
                  MOST);
    }
done:
    DROP(f->ctx, &v);
    DROP(f->ctx, &z);
    return status;
}

frg_status frgi_separated_rows(frg_fe *f, unsigned char *gone, int64_t *count)
{
    rectifier r = {.f = f, .n = f->data.frame.n};
    bool any = f->glm.family->edges == EDGES_BINARY;
    *count = 0;
    for (int64_t i = 0; i < r.n && !any; i++) {
        any = f->matrix.values[i] == 0;
    }
    if (!any || (f->data.p == 0 && f->data.frame.n_effects < 2)) {
        f->glm.searched = true;
        return FRG_OK;
    }
    frg_status status = allocate(&r);
    status = status < 0 ? status : search(&r, gone, count);
    if (status >= 0 && *count == 0) { /* the same rows: reg_glm.c changes its weights */
        f->absorbed.plan = r.plan;
        r.plan = NULL;
    }
    release(&r);
    if (status >= 0 && *count == r.n) {
        FAIL(f->ctx, E_SEPARATED, "the regressors and effects predict '%s' in all of the %lld rows",
             frgi_fe_column_name(f, 0), (long long)(r.n + f->data.frame.n_separated));
    }
    return status;
}
