/* gp_create.c - the process as callers see it: options, data, parameters, value and gradient.
 *
 * create: options -> shapes -> finite values -> kernel, noise, mean, priors -> memory -> copies ->
 * starts.  Nothing of the caller's is kept: a process lives on its copies.  All memory is taken
 * here, in two arenas (gp_memory.c) beside the small parts; an evaluation takes none.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/host_alone.h"
#include "core/opts.h"
#include "gp/gp_create.h"
#include "gp/gp_process.h"

static const double LARGEST_F32_Y = 1e18, LARGEST_F32_X = 1e38, LARGEST_Y = 1e150;

double frgi_gp_largest_x(const frg_gp_opts *o)
{
    return o->precision == FRG_GP_F32 ? LARGEST_F32_X : DBL_MAX;
}

double frgi_gp_largest_y(const frg_gp_opts *o)
{
    return o->precision != FRG_GP_F64 ? LARGEST_F32_Y : LARGEST_Y;
}

enum { FLOATS = 1 << FRG_F32 | 1 << FRG_F64, MOST_GROUPS = 4096, COUNT_MOST = 1 << 28 };

/* ---- options --------------------------------------------------------------------------------- */

#define OPTIONS_OF frg_gp_opts
static const frg_option options[] = {
#include "gp/gp_opts.def"
    {.name = NULL}};

const frg_option *frg_gp_options(void)
{
    return options;
}

void frg_gp_defaults(frg_gp_opts *o, size_t struct_size)
{
    frg_gp_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

static frg_status take_opts(frg_context *ctx, frg_gp_opts *o, const frg_gp_opts *given)
{
    frg_gp_defaults(o, sizeof *o);
    TRY(frgi_take_opts(ctx, o, sizeof *o, given));
    return frgi_options_check(ctx, options, o);
}

static frg_status check_together(const frg_gp *gp)
{
    const frg_gp_opts *const o = &gp->opts;
    if (o->reml && gp->mean.kind != GP_MEAN_PROFILED) {
        FAIL(gp->ctx, E_OPTION, "reml needs mean \"profiled\"");
    }
    if (o->profile_scale && o->noise_variances) {
        FAIL(gp->ctx, E_OPTION,
             "profile_scale multiplies the noise too: known noise variances do not go with it");
    }
    if (gp->mean.kind == GP_MEAN_VALUES && !o->mean_values) {
        FAIL(gp->ctx, E_OPTION, "mean \"values\" needs mean_values");
    }
    if (gp->mean.kind != GP_MEAN_VALUES && o->mean_values) {
        FAIL(gp->ctx, E_OPTION,
             "mean_values are given, and the mean is \"%s\": ask for mean \"values\"",
             o->mean ? o->mean : "const");
    }
    return FRG_OK;
}

/* ---- arrays of the caller -------------------------------------------------------------------- */

static int64_t columns_of(const frg_array *y)
{
    return y->ndim == 2 ? y->shape[1] : 1;
}

static frg_status check_arrays(frg_context *ctx, const frg_array *x, const frg_array *y)
{
    TRY(frgi_array_check(ctx, x, "x", 2, FLOATS));
    TRY(frgi_array_check(ctx, y, "y", y->ndim == 2 ? 2 : 1, FLOATS));
    if (x->shape[0] != y->shape[0]) {
        FAIL(ctx, E_SHAPE, "x has %lld rows, y has %lld", (long long)x->shape[0],
             (long long)y->shape[0]);
    }
    if (x->dtype != y->dtype) {
        FAIL(ctx, E_DTYPE, "x is %s, y is %s: give both in one type", frg_dtype_name(x->dtype),
             frg_dtype_name(y->dtype));
    }
    if (x->shape[0] == 0) {
        FAIL(ctx, E_NO_POINTS, "x and y have no rows");
    }
    REQUIRE(ctx, columns_of(y) > 0, "y has no columns");
    return FRG_OK;
}

static frg_status refuse_value(frg_context *ctx, const char *name, int64_t i, int64_t j, double v)
{
    FAIL(ctx, E_NOT_FINITE_GP, "%s is %g in row %lld, column %lld", name, v, frgi_nth(ctx, i),
         frgi_nth(ctx, j));
}

frg_status frgi_gp_refuse_size(frg_context *ctx, const char *name, int64_t i, int64_t j, double v,
                               double most)
{
    if (!isfinite(v)) {
        return refuse_value(ctx, name, i, j, v);
    }
    FAIL(ctx, E_RANGE_GP, "%s is %g in row %lld: %s cannot hold what follows from it", name, v,
         frgi_nth(ctx, i), most < LARGEST_Y ? "float32" : "float64");
}

/** The arrays of a caller; what is read of them, and what they may hold. */
typedef struct {
    frg_context *ctx;
    const frg_gp_opts *o;
    frgi_gp_reader x, y;
    int64_t n, d, q;
    double most_x, most_y;
} given;

static given given_data(frg_context *ctx, const frg_array *x, const frg_array *y,
                        const frg_gp_opts *o)
{
    return (given){.ctx = ctx,
                   .o = o,
                   .x = frgi_gp_read(x),
                   .y = frgi_gp_read(y),
                   .n = x->shape[0],
                   .d = x->shape[1],
                   .q = columns_of(y),
                   .most_x = frgi_gp_largest_x(o),
                   .most_y = frgi_gp_largest_y(o)};
}

/** Is row i left out for a NaN in y? */
static bool is_masked(const given *g, int64_t i)
{
    bool nan = false;
    for (int64_t c = 0; c < g->q; c++) {
        nan = nan || isnan(frgi_gp_element(&g->y, i, c, 0));
    }
    return nan && g->o->nan == FRG_GP_NAN_MASK;
}

static frg_status check_row(const given *g, int64_t i, bool masked)
{
    for (int64_t k = 0; k < g->d; k++) {
        const double v = frgi_gp_element(&g->x, i, k, 0);
        if (!(fabs(v) <= g->most_x)) {
            return frgi_gp_refuse_size(g->ctx, "x", i, k, v, g->most_x);
        }
    }
    for (int64_t c = 0; c < g->q; c++) {
        const double v = frgi_gp_element(&g->y, i, c, 0);
        if (!(fabs(v) <= g->most_y) && !(isnan(v) && masked)) {
            return frgi_gp_refuse_size(g->ctx, "y", i, c, v, g->most_y);
        }
    }
    const double *const noise = g->o->noise_variances, *const mean = g->o->mean_values;
    if (noise && !(noise[i] >= 0 && isfinite(noise[i]))) {
        FAIL(g->ctx, E_NOISE, "noise variance %lld is %g", frgi_nth(g->ctx, i), noise[i]);
    }
    if (mean && !isfinite(mean[i])) {
        return refuse_value(g->ctx, "mean_values", i, 0, mean[i]);
    }
    return FRG_OK;
}

/** Bits of numbers without their signs are in the order of the numbers, infinity and NaN last: what
 *  is beyond `most` makes a difference negative. Integers, as a comparison of doubles would not
 *  become vector code. */
static bool all_within(const double *v, int64_t count, double most)
{
    int64_t limit, outside = 0;
    memcpy(&limit, &most, sizeof limit);
    for (int64_t i = 0; i < count; i++) {
        int64_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        outside |= limit - (bits & INT64_MAX);
    }
    return outside >= 0;
}

/** The common case in one pass each over x and y; false: rows have to be checked one by one. */
static bool is_sound(const given *g)
{
    const double *const x = frgi_gp_run(&g->x, g->d), *const y = frgi_gp_run(&g->y, g->q);
    return x && y && !g->o->noise_variances && !g->o->mean_values &&
           all_within(x, g->n * g->d, g->most_x) && all_within(y, g->n * g->q, g->most_y);
}

static frg_status count_groups(frg_context *ctx, const int32_t *groups, int64_t n, int *count)
{
    *count = 0;
    for (int64_t i = 0; groups && i < n; i++) {
        REQUIRE(ctx, groups[i] >= 0 && groups[i] < MOST_GROUPS,
                "noise group %lld is %d; groups are numbered 0 .. G - 1, G at most %d",
                frgi_nth(ctx, i), groups[i], MOST_GROUPS);
        *count = groups[i] >= *count ? groups[i] + 1 : *count;
    }
    return FRG_OK;
}

/* ---- a process without its points ------------------------------------------------------------ */

static frg_status name_columns(frg_gp *gp, const char *const *names)
{
    TRY(NEW0(gp->ctx, &gp->data.column_names, gp->data.d, "names of the columns"));
    for (ptrdiff_t k = 0; k < gp->data.d; k++) {
        TRY(names ? frgi_text_append(gp->ctx, &gp->data.names, names[k], strlen(names[k]))
                  : frgi_text_printf(gp->ctx, &gp->data.names, "x%lld", (long long)k + 1));
        TRY(frgi_text_append(gp->ctx, &gp->data.names, "", 1));
    }
    char *at = gp->data.names.text; /* now that it moves no more */
    for (ptrdiff_t k = 0; k < gp->data.d; k++) {
        gp->data.column_names[k] = at;
        at += strlen(at) + 1;
    }
    return FRG_OK;
}

/** Groups are learned even where the expression has no noise(...). */
static frg_status add_group_noise(frg_gp *gp, int groups)
{
    frgi_gp_params *const ps = &gp->model.params;
    if (ps->noise_count == 0) {
        ps->noise_first = ps->count;
        ps->noise_count = 1;
        TRY(frgi_gp_params_add(ps, "noise",
                               (frgi_gp_param){.entry = -1,
                                               .role = GP_ROLE_NOISE,
                                               .column = -1,
                                               .value = (double)NAN,
                                               .lower = (double)NAN,
                                               .upper = (double)NAN,
                                               .std_error = (double)NAN}));
    }
    return frgi_gp_params_noise_groups(ps, groups);
}

static frg_status parse_all(frg_gp *gp, const char *kernel, const frg_gp_opts *o, int groups)
{
    frgi_gp_params *const ps = &gp->model.params;
    TRY(name_columns(gp, o->column_names));
    TRY(frgi_gp_mean_parse(gp, o->mean));
    TRY(check_together(gp));
    TRY(frgi_gp_kernel_parse(&gp->model.kernel, gp->ctx, kernel, gp->data.d,
                             (const char *const *)gp->data.column_names, o->user_kernel, ps));
    if (groups > 0) {
        TRY(add_group_noise(gp, groups));
    }
    TRY(frgi_gp_mean_add(gp));
    ps->jacobian = o->prior_jacobian != 0;
    frgi_gp_scale_hold(gp);
    if (o->priors) {
        TRY(frgi_gp_params_priors(ps, o->priors));
    }
    TRY(NEW0(gp->ctx, &gp->model.theta, ps->count, "parameters"));
    TRY(NEW0(gp->ctx, &gp->result.gradient, ps->count, "the gradient"));
    TRY(NEW0(gp->ctx, &gp->model.printed, 1, "the expression"));
    return FRG_OK;
}

/** Everything that does not grow with n.  o->noise_groups: of `rows` rows. */
static frg_status create_empty(frg_gp **out, frg_context *ctx, int64_t rows, int64_t d, int64_t q,
                               const char *kernel, const frg_gp_opts *o)
{
    frg_gp *gp;
    frg_status status;
    int groups;
    REQUIRE(ctx, kernel, "kernel is NULL");
    TRY(count_groups(ctx, o->noise_groups, rows, &groups));
    TRY(NEW0(ctx, &gp, 1, "process"));
    gp->ctx = ctx;
    gp->steps = &frgi_gp_host_steps;
    gp->opts = *o;
    gp->data.d = d;
    gp->data.q = q;
    gp->data.has_known_noise = o->noise_variances != NULL;
    gp->data.has_groups = groups > 0;
    frgi_gp_params_open(&gp->model.params, ctx);
    TRY_TO(failed, parse_all(gp, kernel, o, groups));
    *out = gp;
    return FRG_OK;
failed:
    frg_gp_destroy(gp);
    return status;
}

void frg_gp_destroy(frg_gp *gp)
{
    if (!gp) {
        return;
    }
    frg_context *ctx = gp->ctx;
    frgi_arena_close(&gp->memory.information, ctx);
    frgi_arena_close(&gp->memory.loo, ctx);
    frgi_gp_memory_close(gp);
    DROP(ctx, &gp->result.trace);
    DROP(ctx, &gp->result.starts);
    if (gp->model.printed) {
        frgi_text_free(ctx, gp->model.printed);
    }
    DROP(ctx, &gp->model.printed);
    DROP(ctx, &gp->result.gradient);
    DROP(ctx, &gp->model.theta);
    if (gp->model.shared) {
        DROP(ctx, &gp->model.params.p);
    } else {
        DROP(ctx, &gp->model.unset);
        frgi_gp_kernel_destroy(&gp->model.kernel, ctx);
        frgi_gp_params_close(&gp->model.params);
        frgi_text_free(ctx, &gp->data.names);
        DROP(ctx, &gp->data.column_names);
    }
    DROP(ctx, &gp);
}

/* ---- a process with its points --------------------------------------------------------------- */

static void copy_rows(frg_gp *gp, const given *g)
{
    ptrdiff_t to = 0;
    const double *const x = gp->data.masked == 0 ? frgi_gp_run(&g->x, g->d) : NULL;
    const double *const y = gp->data.masked == 0 && g->q == 1 ? frgi_gp_run(&g->y, 1) : NULL;
    if (x) {
        memcpy(gp->data.x, x, (size_t)(g->n * g->d) * sizeof *x);
    }
    if (y) {
        memcpy(gp->data.y, y, (size_t)g->n * sizeof *y);
    }
    for (int64_t i = 0; i < g->n; i++) {
        if (gp->data.masked > 0 && is_masked(g, i)) {
            continue;
        }
        for (ptrdiff_t k = 0; k < gp->data.d && !x; k++) {
            gp->data.x[to * gp->data.d + k] = frgi_gp_element(&g->x, i, k, 0);
        }
        for (ptrdiff_t c = 0; c < gp->data.q && !y; c++) {
            gp->data.y[c * gp->data.n + to] = frgi_gp_element(&g->y, i, c, 0);
        }
        if (gp->data.known_noise) {
            gp->data.known_noise[to] = g->o->noise_variances[i];
        }
        if (gp->data.groups) {
            gp->data.groups[to] = g->o->noise_groups[i];
        }
        if (gp->data.given_mean) {
            gp->data.given_mean[to] = g->o->mean_values[i];
        }
        to++;
    }
}

static frg_status start_parameters(frg_gp *gp)
{
    frgi_gp_params *const ps = &gp->model.params;
    frgi_gp_mean_start(gp);
    TRY(frgi_gp_params_start(ps, gp->data.x, gp->opts.profile_scale ? NULL : gp->data.y, gp->data.n,
                             gp->data.d, gp->data.q, gp->opts.preset,
                             gp->opts.precision == FRG_GP_F32 ? FRG_F32 : FRG_F64));
    for (int i = 0; i < ps->count; i++) {
        gp->model.theta[i] = ps->p[i].value;
    }
    TRY(frgi_gp_params_check(ps, gp->model.theta));
    return frgi_gp_params_check_priors(ps, gp->model.theta, false);
}

/** Shapes and values; *masked: rows that are left out. */
static frg_status check_data(frg_context *ctx, const frg_array *x, const frg_array *y,
                             const frg_gp_opts *o, given *g, ptrdiff_t *masked)
{
    TRY(check_arrays(ctx, x, y));
    *g = given_data(ctx, x, y, o);
    *masked = 0;
    for (int64_t i = is_sound(g) ? g->n : 0; i < g->n; i++) {
        const bool out = is_masked(g, i);
        TRY(check_row(g, i, out));
        *masked += out;
    }
    if (*masked == g->n) {
        FAIL(ctx, E_NO_POINTS, "y is NaN in all %lld rows", (long long)g->n);
    }
    return FRG_OK;
}

/** Checked data into a process whose parameters are as the expression left them. */
static frg_status fill(frg_gp *gp, const given *g, ptrdiff_t masked)
{
    gp->data.masked = masked;
    TRY(frgi_gp_resize(gp, g->n - masked));
    copy_rows(gp, g);
    frgi_gp_refresh(gp);
    TRY(frgi_gp_mean_check(gp));
    return start_parameters(gp);
}

frg_status frg_gp_create(frg_gp **out, frg_context *ctx, frg_array x, frg_array y,
                         const char *kernel, const frg_gp_opts *o)
{
    if (!out || !ctx) {
        return FRG_BAD_ARG;
    }
    *out = NULL;
    TRY(frgi_host_alone(ctx, "a Gaussian process"));
    return frgi_gp_create(out, ctx, x, y, kernel, o, &frgi_gp_host_steps);
}

frg_status frgi_gp_create(frg_gp **out, frg_context *ctx, frg_array x, frg_array y,
                          const char *kernel, const frg_gp_opts *o, const frgi_gp_steps *steps)
{
    frg_gp_opts opts;
    frg_gp *gp;
    frg_status status;
    ptrdiff_t masked;
    given g;
    TRY(take_opts(ctx, &opts, o));
    TRY(check_data(ctx, &x, &y, &opts, &g, &masked));
    TRY(create_empty(&gp, ctx, g.n, g.d, g.q, kernel, &opts));
    gp->steps = steps;
    TRY_TO(failed, fill(gp, &g, masked));
    *out = gp;
    return FRG_OK;
failed:
    frg_gp_destroy(gp);
    return status;
}

/** Removes what the last data, or a fit, left in the process. */
static void clear(frg_gp *gp)
{
    memcpy(gp->model.params.p, gp->model.unset,
           (size_t)gp->model.params.count * sizeof *gp->model.unset);
    frgi_gp_forget_fit(gp);
    gp->data.n = 0; /* no rows to keep */
    gp->result.n_trace = 0;
    DROP(gp->ctx, &gp->result.trace);
    DROP(gp->ctx, &gp->result.starts);
}

/** All that does not grow with n, from the model where it has the same columns. */
static frg_status create_like(frg_gp **out, frg_context *ctx, const given *g, const char *kernel,
                              const frg_gp_opts *o, const frg_gp *model)
{
    if (model && model->model.unset && model->data.d == g->d && model->data.q == g->q &&
        !o->noise_groups) {
        return frgi_gp_empty_copy(out, ctx, model);
    }
    TRY(create_empty(out, ctx, g->n, g->d, g->q, kernel, o));
    frg_gp *const gp = *out;
    TRY(NEW(ctx, &gp->model.unset, gp->model.params.count, "parameters"));
    memcpy(gp->model.unset, gp->model.params.p,
           (size_t)gp->model.params.count * sizeof *gp->model.unset);
    return FRG_OK;
}

frg_status frgi_gp_create_from(frg_gp **reused, frg_context *ctx, frg_array x, frg_array y,
                               const char *kernel, const frg_gp_opts *o, const frg_gp *model,
                               const frgi_gp_steps *steps)
{
    frg_gp *gp = *reused;
    frg_gp_opts opts;
    ptrdiff_t masked;
    given g;
    TRY(take_opts(ctx, &opts, o));
    TRY(check_data(ctx, &x, &y, &opts, &g, &masked));
    if (gp && (!gp->model.unset || gp->data.d != g.d || gp->data.q != g.q ||
               gp->data.capacity < g.n - masked)) {
        frg_gp_destroy(gp);
        gp = *reused = NULL;
    }
    if (!gp) {
        TRY(create_like(reused, ctx, &g, kernel, &opts, model));
        gp = *reused;
        gp->steps = steps;
    }
    clear(gp);
    return fill(gp, &g, masked);
}

frg_status frg_gp_estimate(frg_context *ctx, int64_t n, int64_t d, int64_t q, const char *kernel,
                           const frg_gp_opts *o, size_t *bytes)
{
    if (!ctx) {
        return FRG_BAD_ARG;
    }
    frg_gp_opts opts;
    TRY(take_opts(ctx, &opts, o));
    REQUIRE(ctx, bytes, "bytes is NULL");
    REQUIRE(ctx, n >= 1 && d >= 0 && q >= 1, "n, q must be >= 1 and d >= 0, got %lld, %lld, %lld",
            (long long)n, (long long)q, (long long)d);
    if (n > COUNT_MOST || d > COUNT_MOST || q > COUNT_MOST) {
        FAIL(ctx, E_TOO_BIG_GP, "%lld points of %lld columns, %lld outputs: no machine holds these",
             (long long)n, (long long)d, (long long)q);
    }
    frg_gp *gp;
    const size_t before = frg_bytes_held(ctx);
    TRY(create_empty(&gp, ctx, n, d, q, kernel, &opts));
    const size_t others = frg_bytes_held(ctx) - before;
    const size_t points = frgi_gp_memory_bytes(gp, (ptrdiff_t)n);
    frg_gp_destroy(gp);
    *bytes = frgi_add(others, points);
    return FRG_OK;
}

/* ---- parameters and report ------------------------------------------------------------------- */

int frg_gp_parameter_count(const frg_gp *gp)
{
    return gp ? gp->model.params.count : 0;
}

static frg_status check_index(const frg_gp *gp, int i)
{
    REQUIRE(gp->ctx, i >= 0 && i < gp->model.params.count,
            "parameter %d does not exist, there are %d", i, gp->model.params.count);
    return FRG_OK;
}

frg_status frg_gp_get_parameter(const frg_gp *gp, int i, frg_gp_parameter *out)
{
    if (!gp || !out) {
        return FRG_BAD_ARG;
    }
    TRY(check_index(gp, i));
    const frgi_gp_param *const p = &gp->model.params.p[i];
    *out = (frg_gp_parameter){.name = p->name,
                              .entry = p->entry,
                              .value = gp->model.theta[i],
                              .lower = p->lower,
                              .upper = p->upper,
                              .transform = p->transform,
                              .fixed = p->fixed,
                              .active = p->active,
                              .std_error = p->std_error,
                              .tied = p->tie - 1};
    return FRG_OK;
}

frg_status frg_gp_update_parameters(frg_gp *gp, const double *theta)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    REQUIRE(gp->ctx, theta || gp->model.params.count == 0, "theta is NULL");
    TRY(frgi_gp_set_theta(gp, theta));
    frgi_gp_parameters_changed(gp);
    return FRG_OK;
}

frg_status frg_gp_update_fixed(frg_gp *gp, int i, int fixed)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    TRY(check_index(gp, i));
    const int leader = frgi_gp_params_leader(&gp->model.params, i);
    for (int k = 0; k < gp->model.params.count; k++) {
        if (frgi_gp_params_leader(&gp->model.params, k) == leader) {
            gp->model.params.p[k].fixed = fixed != 0;
            gp->model.params.p[k].held = false;
        }
    }
    return FRG_OK;
}

/** Can parameter i have the leader's value, now and in a fit? */
static frg_status check_tie(const frg_gp *gp, int i, int leader)
{
    const frgi_gp_param *const p = &gp->model.params.p[i], *const q = &gp->model.params.p[leader];
    const double v = gp->model.theta[leader];
    char label[96], other[96];
    frgi_gp_params_label(&gp->model.params, i, label);
    frgi_gp_params_label(&gp->model.params, leader, other);
    REQUIRE(gp->ctx, i != leader, "%s cannot be tied to itself", label);
    REQUIRE(gp->ctx, p->per_value == q->per_value,
            "%s cannot be tied to %s: one of them may be negative, the other may not", label,
            other);
    if (!(v >= p->lower && v <= p->upper)) {
        FAIL(gp->ctx, E_PARAMETER, "%s cannot be tied to %s, whose value %g is out of [%g, %g]",
             label, other, v, p->lower, p->upper);
    }
    return FRG_OK;
}

frg_status frg_gp_update_tied(frg_gp *gp, int i, int to)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    frgi_gp_params *const ps = &gp->model.params;
    TRY(check_index(gp, i));
    if (to < 0) {
        ps->p[i].tie = 0;
        return FRG_OK;
    }
    TRY(check_index(gp, to));
    const int leader = frgi_gp_params_leader(ps, to);
    TRY(check_tie(gp, i, leader));
    for (int k = 0; k < ps->count; k++) {
        if (k == i || ps->p[k].tie == i + 1) {
            ps->p[k].tie = leader + 1;
            ps->p[k].fixed = ps->p[leader].fixed;
        }
    }
    frgi_gp_params_follow(ps, gp->model.theta);
    for (int k = 0; k < ps->count; k++) {
        ps->p[k].value = gp->model.theta[k];
    }
    frgi_gp_forget(gp);
    return FRG_OK;
}

frg_gp_report frg_gp_get(const frg_gp *gp)
{
    if (!gp) {
        return (frg_gp_report){0};
    }
    gp->model.printed->length = 0;
    const frg_status printed =
        frgi_gp_kernel_print(gp->model.kernel, gp->ctx, &gp->model.params, gp->model.printed);
    return (frg_gp_report){.n = gp->data.n,
                           .d = gp->data.d,
                           .q = gp->data.q,
                           .n_masked = gp->data.masked,
                           .kernel = printed == FRG_OK ? gp->model.printed->text : "",
                           .given_mean = gp->mean.kind == GP_MEAN_VALUES,
                           .column_names = (const char *const *)gp->data.column_names,
                           .storage = gp->memory.storage,
                           .precision = gp->opts.precision,
                           .bytes = gp->memory.data.bytes + gp->memory.state.bytes,
                           .x = gp->data.x,
                           .y = gp->data.y};
}

/* ---- value and gradient ---------------------------------------------------------------------- */

frg_status frg_gp_eval(frg_gp *gp, frg_gp_value *out)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    frgi_run_begins(gp->ctx);
    const frg_status status = frgi_gp_value(gp);
    if (status == FRG_OK && out) {
        *out = gp->result.value;
    }
    return status;
}

static frg_status check_result(const frg_gp *gp, const frg_array *a, const char *name,
                               int64_t columns)
{
    if (!a) {
        return FRG_OK;
    }
    TRY(frgi_array_check(gp->ctx, a, name, a->ndim == 2 || columns > 1 ? 2 : 1, 1u << FRG_F64));
    if (a->shape[0] != gp->data.n || (a->ndim == 2 && a->shape[1] != columns)) {
        FAIL(gp->ctx, E_SHAPE, "the gradient of %s must have %lld rows and %lld columns", name,
             (long long)gp->data.n, (long long)columns);
    }
    return FRG_OK;
}

frg_status frg_gp_eval_gradient(frg_gp *gp, double *gradient, const frg_array *x,
                                const frg_array *y, frg_gp_value *out)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    TRY(check_result(gp, x, "x", gp->data.d));
    TRY(check_result(gp, y, "y", gp->data.q));
    frgi_run_begins(gp->ctx);
    const frg_status status = frgi_gp_gradient(gp, gp->result.gradient, x ? gp->result.dx : NULL);
    if (status != FRG_OK) {
        return status;
    }
    if (gradient) {
        memcpy(gradient, gp->result.gradient, (size_t)gp->model.params.count * sizeof *gradient);
    }
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        for (ptrdiff_t k = 0; x && k < gp->data.d; k++) {
            frgi_gp_set_element(x, i, k, gp->result.dx[i * gp->data.d + k]);
        }
    }
    if (y) {
        gp->steps->gradient.of_values(gp, y);
    }
    if (out) {
        *out = gp->result.value;
        out->cusps = x && !frgi_gp_kernel_smooth(gp->model.kernel);
    }
    return FRG_OK;
}
