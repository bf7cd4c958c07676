/* test_gp_state.c - fits that are stopped, killed or refused anywhere and go on: the same bits, or
 * an error. */
#include "fields.h"
#include "gp_data.h"
#include "state.h"

enum { POINTS = 45, TRIALS = 6 };

typedef struct {
    const char *name, *kernel, *mean;
    frg_gp_optimizer method;
    frg_gp_precision precision;
    int starts, profile_scale, points;
    int64_t max_evaluations;
} kind;

static const kind kinds[] = {
    {"lbfgsb", "scale*rbf(ard) + noise", "const", FRG_GP_LBFGSB, FRG_GP_F64, 1, 0, POINTS, 0},
    {"lbfgsb, starts", "scale*rbf(ard) + noise", "const", FRG_GP_LBFGSB, FRG_GP_F64, 4, 0, POINTS,
     0},
    {"ai", "scale*matern52(ard) + noise", "linear", FRG_GP_AI, FRG_GP_F64, 1, 0, POINTS, 0},
    {"ai, mixed, starts", "scale*matern52(ard) + noise", "linear", FRG_GP_AI, FRG_GP_MIXED, 3, 0,
     POINTS, 0},
    {"adam", "scale*rbf + noise", "profiled", FRG_GP_ADAM, FRG_GP_F64, 2, 0, POINTS, 0},
    {"f32 that is promoted", "scale*rbf + noise", "const", FRG_GP_LBFGSB, FRG_GP_F32, 3, 0, POINTS,
     0},
    {"jitter", "scale*rbf", "zero", FRG_GP_LBFGSB, FRG_GP_F64, 3, 0, POINTS, 0},
    {"jitter, ai", "scale*rbf", "zero", FRG_GP_AI, FRG_GP_F64, 1, 0, POINTS, 0},
    {"profiled scale", "rbf(ard) + noise", "zero", FRG_GP_LBFGSB, FRG_GP_F64, 2, 1, POINTS, 0},
    {"few evaluations", "scale*rbf(ard) + noise", "const", FRG_GP_LBFGSB, FRG_GP_F64, 3, 0, POINTS,
     7},
    {"more points than go side by side", "scale*rbf + noise", "const", FRG_GP_AI, FRG_GP_F64, 2, 0,
     1030, 0}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static gp_data data;
static char path[sizeof STATE_PATH];

static frg_status put_state(const void *solver, frg_checkpoint *c)
{
    return frg_gp_fit_save(solver, c);
}

/** A frg_gp_saver, user a keeper. */
static frg_status keep_fit(void *user, const frg_gp *gp, int stopped)
{
    return keep(user, gp, stopped);
}

static frg_gp *open_kind(frg_context *ctx, const kind *k)
{
    frg_gp_opts o = gp_data_opts(k->mean);
    o.precision = k->precision;
    o.accuracy = 1e-2;
    o.auto_promote = 1;
    o.profile_scale = k->profile_scale;
    data.n = k->points;
    return gp_data_open(ctx, &data, k->kernel, &o);
}

static frg_gp_fit_opts options(const kind *k)
{
    frg_gp_fit_opts f;
    frg_gp_fit_defaults(&f, sizeof f);
    f.optimizer = k->method;
    f.starts = k->starts;
    f.max_iter = k->points == POINTS ? 12 : 4;
    f.max_evaluations = k->max_evaluations;
    return f;
}

typedef struct {
    double theta[GP_DATA_PARAMETERS], errors[GP_DATA_PARAMETERS], numbers[16];
    double trace[3 * 64], ends[8];
    char warnings[512], ended[16];
    frg_status status;
} result;

static void read_result(frg_context *ctx, const frg_gp *gp, const frg_gp_fit_result *r, result *out)
{
    memset(out, 0, sizeof *out);
    const int p = gp_data_theta(gp, out->theta);
    for (int i = 0; i < p; i++) {
        frg_gp_parameter parameter;
        CHECK_STATUS(frg_gp_get_parameter(gp, i, &parameter), FRG_OK);
        out->errors[i] = isnan(parameter.std_error) ? -1 : parameter.std_error;
    }
    const double numbers[] = {
        r->log_likelihood,      r->gradient_norm,        (double)r->iterations,
        (double)r->values,      (double)r->gradients,    (double)r->failures,
        r->best_start,          (double)r->n_trace,      r->value.log_likelihood,
        r->value.log_prior,     r->value.jitter,         r->value.jitter_tries,
        (double)r->value.pivot, r->value.error_estimate, r->value.promoted,
        r->value.scale};
    memcpy(out->numbers, numbers, sizeof numbers);
    for (int64_t i = 0; i < r->n_trace && i < 64; i++) {
        out->trace[3 * i] = r->trace[i].log_likelihood;
        out->trace[3 * i + 1] = r->trace[i].gradient_norm;
        out->trace[3 * i + 2] = (double)(1000 * r->trace[i].values + r->trace[i].gradients);
        CHECK(i == 0 || r->trace[i].seconds >= r->trace[i - 1].seconds);
    }
    for (int64_t s = 0; s < r->n_starts; s++)
        out->ends[s] = isnan(r->starts[s].objective) ? -1 : r->starts[s].objective;
    for (int i = 0; i < frg_warning_count(ctx); i++) {
        const size_t used = strlen(out->warnings);
        snprintf(out->warnings + used, sizeof out->warnings - used, "%s\n",
                 frg_warning_message(ctx, i));
    }
    snprintf(out->ended, sizeof out->ended, "%s", r->ended);
    out->status = r->status;
}

/** Fits kind k to its end or to the state `at`; returns how many states there were. */
static int64_t run_to(const kind *k, int threads, int64_t at, ending how, result *out)
{
    frg_context *ctx = test_context_with(threads, NULL, NULL);
    keeper keeps = {.ctx = ctx, .name = "gp", .put = put_state, .path = path, .at = at, .how = how};
    frg_gp *gp = open_kind(ctx, k);
    const frg_gp_fit_opts f = options(k);
    frg_gp_fit_result r;
    frg_gp_fit_keep(gp, keep_fit, &keeps);
    const frg_status status = frg_gp_fit(gp, &f, &r);
    if (at == 0) {
        CHECK_SAYS(status >= 0, "%s: %s", k->name, frg_message(ctx));
        read_result(ctx, gp, &r, out);
    } else if (how == IS_STOPPED) {
        CHECK_STATUS(status, FRG_INTERRUPTED);
        CHECK_SAYS(keeps.said_stopped, "%s, state %" PRId64, k->name, at);
    } else if (how == IS_KILLED) {
        CHECK_STATUS(status, FRG_IO);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
    return keeps.calls;
}

static void go_on(const kind *k, int threads, result *out)
{
    frg_context *ctx = test_context_with(threads, NULL, NULL);
    frg_checkpoint *c = NULL;
    frg_gp *gp = open_kind(ctx, k);
    const frg_gp_fit_opts f = options(k);
    frg_gp_fit_result r;
    if (CHECK_OK(ctx, frg_checkpoint_load(&c, ctx, path)) &&
        CHECK_OK(ctx, frg_gp_fit_resume(gp, c))) {
        const frg_status status = frg_gp_fit(gp, &f, &r);
        if (CHECK_SAYS(status >= 0, "%s: %s", k->name, frg_message(ctx)))
            read_result(ctx, gp, &r, out);
    }
    frg_checkpoint_destroy(c);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static void make_data(void)
{
    open_path(path);
    gp_data_random(&data, 1030, 2, 1);
    memcpy(data.x + 2, data.x, 2 * sizeof *data.x); /* kernels without noise need jitter */
}

static void same_bits(void)
{
    static result whole, resumed;
    make_data();
    for (int i = 0; i < KINDS; i++) {
        const kind *const k = &kinds[i];
        if (k->points > POINTS && test_size(0, 1))
            continue;
        const int64_t calls = run_to(k, 1, 0, RUNS_ON, &whole);
        CHECK_SAYS(calls > 2, "%s: %" PRId64 " states", k->name, calls);
        CHECK(strstr(k->name, "jitter") == NULL || strlen(whole.warnings) > 0);
        for (int trial = 0; trial < TRIALS; trial++) {
            const int64_t at = trial == 0   ? 1
                               : trial == 1 ? calls
                                            : 1 + (int64_t)(test_uniform() * (double)calls);
            run_to(k, 1, at, trial % 2 ? IS_STOPPED : IS_KILLED, &resumed);
            go_on(k, 1 + trial % 3, &resumed);
            CHECK_SAYS(memcmp(&whole, &resumed, sizeof whole) == 0,
                       "%s, state %" PRId64 " of %" PRId64 ": log likelihood %.17g and %.17g, "
                       "%g and %g values, theta %.17g and %.17g; %s| %s",
                       k->name, at, calls, whole.numbers[0], resumed.numbers[0], whole.numbers[3],
                       resumed.numbers[3], whole.theta[0], resumed.theta[0], whole.warnings,
                       resumed.warnings);
        }
    }
    close_path(path);
}

/** A fit of starts side by side that is killed again and again; which of them a state has, and in
 *  which order, is the threads' matter, and so is whether the first thread gets to its next state
 *  at all. */
static void again_and_again(void)
{
    static result whole, resumed;
    const kind *const k = &kinds[1];
    make_data();
    run_to(k, 1, 0, RUNS_ON, &whole);
    frg_context *ctx = test_context_with(3, NULL, NULL);
    frg_gp *gp = open_kind(ctx, k);
    const frg_gp_fit_opts f = options(k);
    frg_checkpoint *c = NULL;
    frg_status status = FRG_IO;
    for (int round = 0; round < 4 && status == FRG_IO; round++) {
        keeper keeps = {.ctx = ctx,
                        .name = "gp",
                        .put = put_state,
                        .path = path,
                        .at = 1 + 4 * round,
                        .how = IS_KILLED};
        frg_gp_fit_result r;
        frg_gp_fit_keep(gp, keep_fit, &keeps);
        if (round > 0 && CHECK_OK(ctx, frg_checkpoint_load(&c, ctx, path)))
            CHECK_OK(ctx, frg_gp_fit_resume(gp, c));
        status = frg_gp_fit(gp, &f, &r);
        CHECK_SAYS(keeps.calls < keeps.at ? status >= 0 : status == FRG_IO, "round %d: %s, %s",
                   round, frg_status_name(status), frg_message(ctx));
        frg_checkpoint_destroy(c);
        c = NULL;
        if (status == FRG_IO) {
            go_on(k, 2, &resumed);
            CHECK_BITS(&whole, &resumed, sizeof whole);
        }
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
    close_path(path);
}

/** Another process, other options, damaged answers: errors, and the process as it was. */
static void refusals(void)
{
    static result unused;
    make_data();
    const kind *const k = &kinds[0];
    run_to(k, 1, 4, IS_KILLED, &unused);
    const struct {
        const char *what;
        frg_status status;
        double x, tol;
        int byte; /* of the answers that is changed, -1: none; then the number of the other kind */
        int other;
    } trials[] = {{"the same", FRG_OK, 0, 1e-5, -1, 0},
                  {"another x", FRG_MISMATCH, 1e-9, 1e-5, -1, 0},
                  {"another tol", FRG_MISMATCH, 0, 1e-6, -1, 0},
                  {"another optimiser", FRG_MISMATCH, 0, 1e-5, -1, 2},
                  {"no question", FRG_BAD_DATA, 0, 1e-5, 0, 0},
                  {"no start", FRG_BAD_DATA, 0, 1e-5, 8, 0},
                  {"no count", FRG_BAD_DATA, 0, 1e-5, 18, 0},
                  {"no status", FRG_BAD_DATA, 0, 1e-5, 24, 0},
                  {"no promotion", FRG_BAD_DATA, 0, 1e-5, 32, 0},
                  {"another point", FRG_MISMATCH, 0, 1e-5, 40, 0}};
    for (size_t t = 0; t < sizeof trials / sizeof *trials; t++) {
        frg_context *ctx = test_context();
        frg_checkpoint *c = NULL, *changed = NULL;
        CHECK_OK(ctx, frg_checkpoint_load(&c, ctx, path));
        int64_t head_bytes, bytes;
        const void *const head = frg_checkpoint_get(c, "fit", &head_bytes);
        char *const answers = malloc(65536);
        const void *const was = frg_checkpoint_get(c, "answers", &bytes);
        if (!CHECK(head && was && answers && bytes <= 65536))
            return;
        memcpy(answers, was, (size_t)bytes);
        if (trials[t].byte >= 0)
            answers[trials[t].byte] ^= 0x40;
        CHECK_OK(ctx, frg_checkpoint_create(&changed, ctx, "gp", 1, 2));
        CHECK_OK(ctx, frg_checkpoint_put(changed, "fit", head, head_bytes));
        CHECK_OK(ctx, frg_checkpoint_put(changed, "answers", answers, bytes));
        data.x[7] += trials[t].x;
        frg_gp *gp = open_kind(ctx, &kinds[trials[t].other]);
        data.x[7] -= trials[t].x;
        frg_gp_fit_opts f = options(&kinds[trials[t].other]);
        frg_gp_fit_result r;
        double before[GP_DATA_PARAMETERS], after[GP_DATA_PARAMETERS];
        f.tol = trials[t].tol;
        const int p = gp_data_theta(gp, before);
        CHECK_OK(ctx, frg_gp_fit_resume(gp, changed));
        const frg_status status = frg_gp_fit(gp, &f, &r);
        CHECK_SAYS(trials[t].status == FRG_OK ? status >= 0 : status == trials[t].status,
                   "%s: %s, %s", trials[t].what, frg_status_name(status), frg_message(ctx));
        gp_data_theta(gp, after);
        if (status < 0) {
            CHECK_BITS(after, before, (size_t)p * sizeof *after);
            CHECK_SAYS(frg_gp_fit(gp, &f, &r) >= 0, "%s, without it", trials[t].what);
        }
        frg_gp_destroy(gp);
        frg_checkpoint_destroy(changed);
        frg_checkpoint_destroy(c);
        free(answers);
        frg_context_destroy(ctx);
    }
    close_path(path);
}

/* ---- states of other options ----------------------------------------------------------------- */

static const char *const other_names[] = {"a", "b"};
static double other_values[POINTS], other_noise[POINTS];
static int32_t other_groups[POINTS];

#define GP(name, kind, value, what) FIELD(frg_gp_opts, name, kind, value, what, 0)
#define GP_TO(name, pointer, what)  FIELD_TO(frg_gp_opts, name, pointer, what, 0)
#define FIT(name, kind, value)      FIELD(frg_gp_fit_opts, name, kind, value, DECIDES, 1)

/* mean_values go with the mean "values" alone, and a kernel of the user, which cannot be kept, with
 * its word. */
static const field others[] = {GP_TO(column_names, other_names, LEAVES_BITS),
                               GP_TO(mean, "linear", DECIDES),
                               GP_TO(mean_values, other_values, DECIDES),
                               GP(reml, INT, 1, DECIDES),
                               GP_TO(noise_variances, other_noise, DECIDES),
                               GP_TO(noise_groups, other_groups, DECIDES),
                               GP_TO(priors, "rbf.l=gamma(3,6)", DECIDES),
                               GP(prior_jacobian, INT, 1, DECIDES),
                               GP(preset, INT, FRG_GP_PRESET_SKLEARN, DECIDES),
                               GP(precision, INT, FRG_GP_MIXED, DECIDES),
                               GP(storage, INT, FRG_GP_PACKED, LEAVES_BITS),
                               GP(auto_promote, INT, 1, DECIDES),
                               GP(accuracy, REAL, 2e-3, DECIDES),
                               GP(jitter, INT, FRG_GP_JITTER_NONE, DECIDES),
                               GP(nan, INT, FRG_GP_NAN_MASK, LEAVES_BITS), /* there is none */
                               GP_TO(user_kernel, NULL, LEAVES_BITS),
                               GP(profile_scale, INT, 1, DECIDES)};
static const field fit_others[] = {FIT(optimizer, INT, FRG_GP_AI),
                                   FIT(max_iter, INT64, 13),
                                   FIT(tol, REAL, 2e-5),
                                   FIT(learning_rate, REAL, 0.2),
                                   FIT(starts, INT, 3),
                                   FIT(standardize, INT, 0),
                                   FIT(standard_errors, INT, 0),
                                   FIT(max_evaluations, INT64, 50)};
enum {
    OTHERS = sizeof others / sizeof *others,
    FIT_OTHERS = sizeof fit_others / sizeof *fit_others
};

/** A fit with the option of f at its other value, up to its third state where `keeps` is there,
 *  from `c` where that is. */
static frg_status fit_other(frg_context *ctx, const field *f, keeper *keeps,
                            const frg_checkpoint *c, double *theta)
{
    const bool profiled = f && strcmp(f->name, "reml") == 0;
    const bool given = f && strcmp(f->name, "mean_values") == 0;
    frg_gp_opts o = gp_data_opts(profiled ? "profiled" : given ? "values" : "const");
    frg_gp_fit_opts fit = options(&kinds[0]);
    frg_gp_fit_result r;
    if (f)
        field_set(f, f->where ? (void *)&fit : (void *)&o);
    data.n = POINTS;
    const bool grouped = f && strcmp(f->name, "noise_groups") == 0;
    frg_gp *const gp = gp_data_open(ctx, &data, grouped ? "scale*rbf(ard)" : kinds[0].kernel, &o);
    if (keeps)
        frg_gp_fit_keep(gp, keep_fit, keeps);
    if (c)
        CHECK_OK(ctx, frg_gp_fit_resume(gp, c));
    const frg_status status = frg_gp_fit(gp, &fit, &r);
    gp_data_theta(gp, theta);
    frg_gp_destroy(gp);
    return status;
}

static void other_options(void)
{
    double whole[GP_DATA_PARAMETERS], theta[GP_DATA_PARAMETERS] = {0};
    fields_cover(others, OTHERS, sizeof(frg_gp_opts));
    fields_cover(fit_others, FIT_OTHERS, sizeof(frg_gp_fit_opts));
    fields_follow(others, OTHERS, frg_gp_options());
    fields_follow(fit_others, FIT_OTHERS, frg_gp_fit_options());
    make_data();
    for (int i = 0; i < POINTS; i++) {
        other_values[i] = test_normal();
        other_noise[i] = 0.01 + 0.01 * test_uniform();
        other_groups[i] = i % 2;
    }
    frg_context *ctx = test_context();
    frg_checkpoint *c = NULL;
    keeper keeps = {
        .ctx = ctx, .name = "gp", .put = put_state, .path = path, .at = 3, .how = IS_KILLED};
    CHECK_STATUS(fit_other(ctx, NULL, &keeps, NULL, theta), FRG_IO);
    CHECK_OK(ctx, frg_checkpoint_load(&c, ctx, path));
    CHECK(fit_other(ctx, NULL, NULL, NULL, whole) >= 0);
    for (int i = 0; i < OTHERS + FIT_OTHERS; i++) {
        const field *const f = i < OTHERS ? &others[i] : &fit_others[i - OTHERS];
        const frg_status status = fit_other(ctx, f, NULL, c, theta);
        CHECK_SAYS(f->what == DECIDES ? status == FRG_MISMATCH : status >= 0, "%s: %s, %s", f->name,
                   frg_status_name(status), frg_message(ctx));
        CHECK_SAYS(f->what == DECIDES || memcmp(theta, whole, sizeof *theta * 4) == 0,
                   "another fit by %s", f->name);
    }
    frg_checkpoint_destroy(c);
    frg_context_destroy(ctx);
    close_path(path);
}

static const test_case cases[] = {{"same bits", same_bits},
                                  {"again and again", again_and_again},
                                  {"refusals", refusals},
                                  {"other options", other_options}};
TEST_MAIN(cases)
