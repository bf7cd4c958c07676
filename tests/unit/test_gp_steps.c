/* test_gp_steps.c - a process touches its matrix and its vectors within the steps of gp_steps.h
 * alone: processes of all arithmetics, means and noises are evaluated, fitted, predicted from and
 * changed with their state in pages without rights in between (pages.h), with the bits of a run
 * without; a touch outside faults; each step that can fail does so once.  The same of batches of
 * small processes with their lanes.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"
#include "gp/gp_batch.h"
#include "gp/gp_create.h"
#include "gp/gp_process.h"
#include "gp_data.h"
#include "pages.h"

/* ---- the host's steps within their rights ---------------------------------------------------- */

/** guarded_NAME: the host's step of one of its groups; of a VOID one nothing can fail. */
#define STEP(name, of, parameters, arguments)                                                      \
    static frg_status guarded_##name parameters                                                    \
    {                                                                                              \
        return guard_enter() ? guard_leave(frgi_gp_host_steps.of.name arguments) : FRG_IO;         \
    }
#define VOID_STEP(name, of, parameters, arguments)                                                 \
    static void guarded_##name parameters                                                          \
    {                                                                                              \
        guard_begin();                                                                             \
        frgi_gp_host_steps.of.name arguments;                                                      \
        (void)guard_leave(FRG_OK);                                                                 \
    }
/* clang-format off */
VOID_STEP(basis, value, (frg_gp *gp), (gp))
VOID_STEP(noise, value, (frg_gp *gp), (gp))
VOID_STEP(residual, value, (frg_gp *gp), (gp))
STEP(build, value, (frg_gp *gp), (gp))
STEP(factor, value, (frg_gp *gp), (gp))
STEP(refactor, value, (frg_gp *gp), (gp))
STEP(forward, value, (frg_gp *gp), (gp))
STEP(solve, value, (frg_gp *gp, bool swept), (gp, swept))
VOID_STEP(bound, value, (frg_gp *gp), (gp))
STEP(sampled_error, value, (frg_gp *gp, double *error), (gp, error))
VOID_STEP(adopt, value, (frg_gp *gp), (gp))
VOID_STEP(take_over, value, (frg_gp *gp), (gp))
STEP(invert, gradient, (frg_gp *gp), (gp))
STEP(low_inverse, gradient, (frg_gp *gp), (gp))
STEP(pass, gradient, (frg_gp *gp, bool low, double *gradient, double *dx), (gp, low, gradient, dx))
VOID_STEP(of_points, gradient, (frg_gp *gp, double *gradient, double *dx), (gp, gradient, dx))
VOID_STEP(of_values, gradient, (const frg_gp *gp, const frg_array *to), (gp, to))
STEP(leave_out, gradient, (frg_gp *gp, frgi_gp_left_out *l), (gp, l))
STEP(leave_blocks_out, gradient, (frg_gp *gp, frgi_gp_folding *f), (gp, f))
STEP(information, gradient, (frg_gp *gp, frgi_gp_informing *k, double *out), (gp, k, out))
STEP(predict, factor, (frgi_gp_predictor *p, ptrdiff_t first, ptrdiff_t rows), (p, first, rows))
VOID_STEP(read, factor, (const frg_gp *gp, ptrdiff_t j, ptrdiff_t from, ptrdiff_t end, double *v),
          (gp, j, from, end, v))
VOID_STEP(write, factor, (const frg_gp *gp, ptrdiff_t j, ptrdiff_t from, ptrdiff_t end, const double *v),
          (gp, j, from, end, v))
/* clang-format on */

static double guarded_mean_diagonal(const frg_gp *gp)
{
    guard_begin();
    const double mean = frgi_gp_host_steps.value.mean_diagonal(gp);
    (void)guard_leave(FRG_OK);
    return mean;
}

static frg_status guarded_columns(const frg_gp *gp, ptrdiff_t m, double *b)
{
    return guard_enter() ? guard_leave(frgi_gp_host_steps.factor.forward(gp, m, b)) : FRG_IO;
}

static int64_t lanes_run;

static frg_status guarded_lanes(frgi_gp_batch_lanes *r, bool gradient)
{
    lanes_run++;
    return guard_enter() ? guard_leave(frgi_gp_host_steps.lanes.run(r, gradient)) : FRG_IO;
}

static bool guarded_take_value(const frgi_gp_batch_lanes *r, int lane)
{
    guard_begin();
    const bool good = frgi_gp_host_steps.lanes.take_value(r, lane);
    (void)guard_leave(FRG_OK);
    return good;
}

static void guarded_take_gradient(const frgi_gp_batch_lanes *r, int lane)
{
    guard_begin();
    frgi_gp_host_steps.lanes.take_gradient(r, lane);
    (void)guard_leave(FRG_OK);
}

static const frgi_gp_steps guarded_steps = {
    .open = guard_open,
    .close = guard_close,
    .value = {.basis = guarded_basis,
              .noise = guarded_noise,
              .residual = guarded_residual,
              .build = guarded_build,
              .factor = guarded_factor,
              .refactor = guarded_refactor,
              .forward = guarded_forward,
              .solve = guarded_solve,
              .bound = guarded_bound,
              .sampled_error = guarded_sampled_error,
              .mean_diagonal = guarded_mean_diagonal,
              .adopt = guarded_adopt,
              .take_over = guarded_take_over},
    .gradient = {.invert = guarded_invert,
                 .low_inverse = guarded_low_inverse,
                 .pass = guarded_pass,
                 .of_points = guarded_of_points,
                 .of_values = guarded_of_values,
                 .leave_out = guarded_leave_out,
                 .leave_blocks_out = guarded_leave_blocks_out,
                 .information = guarded_information},
    .factor = {.predict = guarded_predict,
               .forward = guarded_columns,
               .read = guarded_read,
               .write = guarded_write},
    .lanes = {.run = guarded_lanes,
              .take_value = guarded_take_value,
              .take_gradient = guarded_take_gradient}};

/* ---- processes ------------------------------------------------------------------------------- */

typedef enum { LEARNED, KNOWN, GROUPS, GIVEN } noise_kind; /* GIVEN: values of the mean instead */

typedef struct {
    const char *kernel, *mean;
    int64_t n, d, q;
    frg_gp_precision precision;
    noise_kind kind;
    bool packed, reml, profile_scale;
    bool twice;     /* every point is there twice: without noise there is no factor */
    bool gives_way; /* f32 is not enough */
} process;

static const process processes[] = {
    {"0.8*rbf(l=0.3) + noise(0.05)", "const", 40, 2, 1, .packed = false},
    {"matern52(ard) + linear(0.1) + noise(0.05)", "linear", 40, 2, 1, .packed = true},
    {"0.8*rbf(l=0.3) + noise(0.05)", "zero", 310, 1, 1, .packed = true},
    {"0.8*rbf(l=0.3) + noise(0.05)", "profiled(linear)", 40, 2, 2, .reml = true},
    {"rbf(l=0.3) + noise(0.05)", "profiled", 40, 1, 1, .profile_scale = true},
    {"0.8*rbf(l=0.3)", "const", 40, 1, 1, .kind = KNOWN},
    {"0.8*rbf(l=0.3) + noise(0.05)", "const", 40, 1, 1, .kind = GROUPS},
    {"0.8*rbf(l=0.3) + white(0.02) + noise(0.05)", "values", 40, 1, 1, .kind = GIVEN},
    {"0.8*rbf(l=0.3)", "const", 40, 1, 1, .twice = true},
    {"0.8*rbf(l=0.3) + noise(0.05)", "const", 40, 2, 1, .precision = FRG_GP_MIXED},
    {"rbf(l=0.9) + noise(1e-7)", "const", 40, 1, 1, .precision = FRG_GP_MIXED},
    {"0.8*rbf(l=0.3) + noise(0.05)", "const", 40, 2, 2, .precision = FRG_GP_F32},
    {"0.8*rbf(l=0.3) + noise(0.05)", "profiled", 40, 1, 1, .precision = FRG_GP_F32, .reml = true},
    {"rbf(l=0.9) + noise(1e-6)", "const", 40, 1, 1, .precision = FRG_GP_F32, .gives_way = true},
};
enum { PROCESSES = sizeof processes / sizeof *processes, NEW = 5, ADDED = 3, FOLDS = 7 };

typedef struct {
    const process *p;
    gp_data g;
    double noise[512];
    int32_t codes[512], folds[512];
    double out[4][GP_DATA_ROOM]; /* results of a call */
} problem;

/** The data and the options of a process: the same at every call. */
static frg_gp_opts set(problem *b, int row)
{
    const process *const p = &processes[row];
    frg_gp_opts o = gp_data_opts(p->mean);
    b->p = p;
    test_now.random = (uint64_t)row + 1;
    gp_data_random(&b->g, p->n, p->d, p->q);
    for (int64_t i = 0; p->twice && i < p->n / 2; i++)
        b->g.x[p->n / 2 + i] = b->g.x[i];
    for (int64_t i = 0; i < p->n; i++) {
        b->noise[i] = 0.02 + 0.05 * test_uniform();
        b->codes[i] = (int32_t)(i % 2);
        b->folds[i] = (int32_t)(i % FOLDS);
    }
    o.precision = p->precision;
    o.storage = p->packed ? FRG_GP_PACKED : FRG_GP_FULL;
    o.auto_promote = 1;
    o.reml = p->reml;
    o.profile_scale = p->profile_scale;
    o.noise_variances = p->kind == KNOWN ? b->noise : NULL;
    o.noise_groups = p->kind == GROUPS ? b->codes : NULL;
    o.mean_values = p->kind == GIVEN ? b->noise : NULL;
    return o;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static frg_status gradient_of(frg_gp *gp, problem *b)
{
    const int64_t n = frg_gp_get(gp).n;
    const frg_array dx = frg_matrix(b->out[1], FRG_F64, n, b->p->d, b->p->d);
    const frg_array dy = frg_matrix_columns(b->out[2], FRG_F64, n, b->p->q, n);
    return frg_gp_eval_gradient(gp, b->out[0], &dx, &dy, NULL);
}

static frg_status value_of(frg_gp *gp, problem *b)
{
    frg_gp_value v;
    const frg_status status = frg_gp_eval(gp, &v);
    if (status == FRG_OK) {
        CHECK(v.jitter > 0 || !b->p->twice);
        CHECK(v.promoted || !b->p->gives_way);
        memcpy(b->out[0],
               (double[]){v.log_likelihood, v.jitter, v.error_estimate, v.scale, v.promoted},
               5 * sizeof(double));
    }
    return status;
}

static frg_array new_points(const problem *b)
{
    static const double at[2 * NEW] = {0.05, 0.9, 0.4, 0.35, 1.3, 0.2, 0.7, 0.15, 0.5, 0.55};
    return frg_matrix(at, FRG_F64, NEW, b->p->d, b->p->d);
}

static frg_status prediction_of(frg_gp *gp, problem *b)
{
    const int64_t d = b->p->d, q = b->p->q;
    frg_array mean = frg_matrix(b->out[0], FRG_F64, NEW, q, q),
              covariance = frg_matrix(b->out[1], FRG_F64, NEW, NEW, NEW),
              mean_dx = frg_matrix(b->out[2], FRG_F64, NEW, d, d),
              variance_dx = frg_matrix(b->out[3], FRG_F64, NEW, d, d);
    frg_array variance = frg_vector(b->out[1] + NEW * NEW, FRG_F64, NEW);
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    o.observed = 1;
    o.mean = &mean;
    o.variance = &variance;
    o.covariance = &covariance;
    o.mean_dx = q == 1 ? &mean_dx : NULL;
    o.variance_dx = &variance_dx;
    o.mean_values = b->p->kind == GIVEN ? b->noise : NULL;
    return frg_gp_predict(gp, new_points(b), &o);
}

static frg_status information_of(frg_gp *gp, problem *b)
{
    return frg_gp_eval_information(gp, b->out[0]);
}

static frg_status left_out_of(frg_gp *gp, problem *b)
{
    const frg_status status = frg_gp_eval_loo(gp, b->out[0], b->out[1], b->out[2], NULL);
    return status < 0 ? status : frg_gp_eval_loo_latent(gp, b->out[3]);
}

static frg_status folds_of(frg_gp *gp, problem *b)
{
    return frg_gp_eval_folds(gp, b->folds, b->out[0], b->out[1], b->out[2], NULL);
}

static frg_status draws_of(frg_gp *gp, problem *b)
{
    const frg_array to = {.data = b->out[0],
                          .dtype = FRG_F64,
                          .ndim = b->p->q == 1 ? 2 : 3,
                          .shape = {2, NEW, b->p->q},
                          .stride = {NEW * b->p->q, b->p->q, 1}};
    return frg_gp_sample(gp, new_points(b), 2, 0, 1, to);
}

/** Two of the new points as a set of candidates, the same as test points. */
static frg_status fantasies_of(frg_gp *gp, problem *b)
{
    const int64_t d = b->p->d, q = b->p->q;
    const frg_array at = new_points(b);
    const frg_array x = {
        .data = at.data, .dtype = FRG_F64, .ndim = 3, .shape = {1, 2, d}, .stride = {2 * d, d, 1}};
    const frg_array y = {
        .data = b->g.y, .dtype = FRG_F64, .ndim = 3, .shape = {1, 2, q}, .stride = {2 * q, q, 1}};
    frg_array mean = {.data = b->out[0],
                      .dtype = FRG_F64,
                      .ndim = 3,
                      .shape = {1, NEW, q},
                      .stride = {NEW * q, q, 1}};
    frg_gp_fantasy_opts o;
    frg_gp_fantasy_defaults(&o, sizeof o);
    o.noise_variances = b->p->kind == KNOWN ? b->noise : NULL;
    o.mean = &mean;
    return frg_gp_predict_fantasies(gp, x, y, at, &o);
}

static frg_status more_noise(frg_gp *gp, problem *b)
{
    return b->p->kind == KNOWN ? frg_gp_update_noise(gp, 4, 0.3) : FRG_OK;
}

static frg_status more_points(frg_gp *gp, problem *b)
{
    frg_array x = new_points(b), y = gp_data_y(&b->g);
    x.shape[0] = y.shape[0] = ADDED;
    return frg_gp_update_append(gp, x, y, b->p->kind == KNOWN ? b->noise : NULL);
}

static frg_status a_point_less(frg_gp *gp, problem *b)
{
    (void)b;
    return frg_gp_update_remove(gp, 2);
}

/** The present y, twice as large. */
static frg_status other_values(frg_gp *gp, problem *b)
{
    const frg_gp_report r = frg_gp_get(gp);
    for (int64_t i = 0; i < r.n * r.q; i++)
        b->out[0][i] = 2 * r.y[i];
    return frg_gp_update_y(gp, r.q == 1 ? frg_vector(b->out[0], FRG_F64, r.n)
                                        : frg_matrix_columns(b->out[0], FRG_F64, r.n, r.q, r.n));
}

/** What a file holds predicts as the process that it was made of. */
static frg_status saved_and_read(frg_gp *gp, problem *b)
{
    char path[] = "/tmp/fourge-gp-steps-XXXXXX";
    frg_gp *back = NULL;
    const int file = mkstemp(path);
    if (!CHECK(file >= 0))
        return FRG_OK;
    close(file);
    frg_status status = frg_gp_save(gp, path);
    status = status < 0 ? status : frg_gp_load(&back, gp->ctx, path);
    status = status < 0 ? status : prediction_of(back, b);
    frg_gp_destroy(back);
    unlink(path);
    return status;
}

static frg_status fit_of(frg_gp *gp, problem *b)
{
    frg_gp_fit_opts o;
    frg_gp_fit_result r;
    frg_gp_fit_defaults(&o, sizeof o);
    o.optimizer = b->p->d == 1 ? FRG_GP_AI : FRG_GP_LBFGSB;
    o.max_iter = 4;
    o.starts = frg_threads(gp->ctx) == 1 ? 2 : 1; /* the guard is one thread's */
    const frg_status status = frg_gp_fit(gp, &o, &r);
    for (int i = 0; i < frg_gp_parameter_count(gp); i++) {
        frg_gp_parameter p;
        CHECK_STATUS(frg_gp_get_parameter(gp, i, &p), FRG_OK);
        b->out[0][2 * i] = p.value;
        b->out[0][2 * i + 1] = p.std_error;
    }
    return status;
}

typedef frg_status (*call)(frg_gp *gp, problem *b);
static const call calls[] = {
    value_of,       gradient_of, prediction_of, information_of, left_out_of,  folds_of,
    information_of, draws_of,    fantasies_of,  saved_and_read, more_noise,   prediction_of,
    more_points,    value_of,    a_point_less,  prediction_of,  other_values, value_of,
    gradient_of,    fit_of,      prediction_of};
enum { CALLS = sizeof calls / sizeof *calls };

/** All calls on one process; what came of each is in *hash.  FRG_OK, or how it could not be made,
 *  or the first FRG_IO. */
static frg_status run(frg_context *ctx, int row, const frgi_gp_steps *steps, uint64_t *hash)
{
    static problem b;
    frg_gp *gp = NULL;
    const frg_gp_opts o = set(&b, row);
    frg_status made =
        frgi_gp_create(&gp, ctx, gp_data_x(&b.g), gp_data_y(&b.g), b.p->kernel, &o, steps);
    for (int k = 0; k < CALLS && made >= 0; k++) {
        memset(b.out, 0, sizeof b.out);
        const frg_status status = calls[k](gp, &b);
        if (status == FRG_IO)
            made = status;
        fault_hash(hash, &status, sizeof status);
        fault_hash(hash, b.out, sizeof b.out);
    }
    frg_gp_destroy(gp);
    frg_warnings_clear(ctx);
    return made;
}

/* ---- batches --------------------------------------------------------------------------------- */

enum { MEMBERS = 5, MOST_PARAMETERS = 8 };
static const struct {
    const char *kernel;
    frg_gp_precision precision;
    bool fits, twice; /* twice: a member has every point twice, which its lane cannot factor */
} batches[] = {
    {"0.8*rbf(l=0.3) + noise(0.05)", FRG_GP_F64, .fits = false},
    {"matern32(ard) + noise(0.05)", FRG_GP_F32, .fits = false},
    {"0.8*rbf(l=0.3) + noise(0.05)", FRG_GP_F64, .fits = true},
    {"0.8*rbf(l=0.3)", FRG_GP_F64, .twice = true},
    {"0.8*rbf(l=0.3)*periodic(p=2) + noise(0.05)", FRG_GP_F64, .fits = false}, /* in no lane */
};
enum { BATCHES = sizeof batches / sizeof *batches };

/** A batch of members of different sizes; the first FRG_IO of a member, or what the call gave. */
static frg_status run_batch(frg_context *ctx, int row, const frgi_gp_steps *steps, uint64_t *hash)
{
    static gp_data data[MEMBERS];
    double numbers[MEMBERS][3][MOST_PARAMETERS] = {{{0}}};
    frg_gp_member members[MEMBERS] = {{.gradient = NULL}};
    frg_gp_opts o = gp_data_opts("const");
    frg_gp_fit_opts fit;
    frg_gp_fit_defaults(&fit, sizeof fit);
    fit.optimizer = FRG_GP_ADAM;
    fit.max_iter = 6;
    o.precision = batches[row].precision;
    test_now.random = (uint64_t)row + 50;
    for (int i = 0; i < MEMBERS; i++) {
        gp_data_random(&data[i], 9 + 4 * i, 2, 1);
        for (int64_t k = 0; batches[row].twice && i == 2 && k < 2 * (data[i].n / 2); k++)
            data[i].x[2 * (data[i].n / 2) + k] = data[i].x[k];
        members[i].x = gp_data_x(&data[i]);
        members[i].y = gp_data_y(&data[i]);
        members[i].gradient = numbers[i][0];
        members[i].fitted = numbers[i][1];
    }
    frg_status status = frgi_gp_batch(ctx, MEMBERS, members, batches[row].kernel, &o,
                                      batches[row].fits ? &fit : NULL, steps);
    for (int i = 0; i < MEMBERS; i++) {
        CHECK(members[i].value.jitter > 0 || !batches[row].twice || i != 2 || status < 0 ||
              members[i].status != FRG_OK);
        numbers[i][2][0] = members[i].value.log_likelihood;
        numbers[i][2][1] = members[i].value.error_estimate;
        fault_hash(hash, &members[i].status, sizeof members[i].status);
        status = members[i].status == FRG_IO ? FRG_IO : status;
    }
    fault_hash(hash, numbers, sizeof numbers);
    frg_warnings_clear(ctx);
    return status;
}

/* ---- cases ----------------------------------------------------------------------------------- */

typedef frg_status (*runner)(frg_context *ctx, int row, const frgi_gp_steps *steps, uint64_t *hash);

static void compare(runner once, int row, int threads)
{
    frg_context *ctx = test_context_with(threads, NULL, NULL);
    uint64_t want = 0, got = 0;
    CHECK_OK(ctx, once(ctx, row, &frgi_gp_host_steps, &want));
    guard.opened = 0;
    CHECK_OK(ctx, once(ctx, row, &guarded_steps, &got));
    CHECK_SAYS(got == want, "%d: other bits", row);
    CHECK(guard.opened > 0);
    CHECK_INT(guard.arenas, 0);
    CHECK_INT(guard.depth, 0);
    frg_context_destroy(ctx);
}

static void out_of_reach(void)
{
    for (int row = 0; row < PROCESSES; row++)
        compare(run, row, 1 + row % 2);
}

/** One thread, as the guard is one thread's.  The level plain has too few doubles in a vector for
 *  lanes. */
static void batches_out_of_reach(void)
{
    frg_context *ctx = test_context();
    for (int row = 0; row < BATCHES; row++) {
        const frg_dtype type = batches[row].precision == FRG_GP_F32 ? FRG_F32 : FRG_F64;
        const bool wide = frgi_gp_lanes_of(ctx, type)->width > 2;
        lanes_run = 0;
        compare(run_batch, row, 1);
        CHECK_SAYS((lanes_run > 0) == (wide && row != BATCHES - 1), "batch %d: %lld runs of lanes",
                   row, (long long)lanes_run);
    }
    frg_context_destroy(ctx);
}

/** A solution is read between two steps. */
static void a_touch_faults(void)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        static problem b;
        frg_context *ctx = test_context_with(1, NULL, NULL);
        const frg_gp_opts o = set(&b, 0);
        frg_gp *gp = NULL;
        signal(SIGSEGV, SIG_DFL);
        if (frgi_gp_create(&gp, ctx, gp_data_x(&b.g), gp_data_y(&b.g), b.p->kernel, &o,
                           &guarded_steps) == FRG_OK &&
            frg_gp_eval(gp, NULL) == FRG_OK)
            _exit(((volatile double *)gp->vectors.alpha)[0] > 0 ? 1 : 2);
        _exit(3);
    }
    int how = 0;
    CHECK(child > 0 && waitpid(child, &how, 0) == child);
    CHECK(WIFSIGNALED(how) ||
          WEXITSTATUS(how) > 3); /* a sanitizer ends it with a status of its own */
}

/** Each step that can fail does so once: a call says so or copes, the calls after it work, and
 *  nothing is left behind. */
static void fail_each(runner once, int row, int64_t least)
{
    fault_memory memory;
    fault_memory_open(&memory);
    frg_context *ctx = test_context_with(1, &memory.table, NULL);
    uint64_t whole = 0;
    CHECK_OK(ctx, once(ctx, row, &frgi_gp_host_steps, &whole));
    const int64_t live = memory.live_blocks; /* the context keeps room for warnings */
    bool reached = true;
    int64_t failed = 0;
    for (int64_t k = 1; reached && k < 2000; k += 1 + k / 10) {
        uint64_t hash = 0;
        guard.calls = 0;
        guard.fail_at = k;
        const frg_status s = once(ctx, row, &guarded_steps, &hash);
        reached = guard.calls >= k;
        failed += reached && s == FRG_IO;
        CHECK_SAYS(s == FRG_IO || s == FRG_OK, "step %lld: %s", (long long)k, frg_status_name(s));
        CHECK_INT(guard.arenas, 0);
        CHECK_INT(guard.depth, 0);
        CHECK_INT(memory.live_blocks, live);
    }
    CHECK_SAYS(failed >= least, "%d: %lld failed", row, (long long)failed);
    guard.fail_at = 0;
    frg_context_destroy(ctx);
    CHECK_INT(memory.broken, 0);
}

static void each_step_fails(void)
{
    static const int rows[] = {0, 3, 8, 9, 13};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        fail_each(run, rows[r], 6);
}

static void each_step_of_a_batch_fails(void)
{
    for (int row = 0; row < BATCHES; row++)
        fail_each(run_batch, row, 3);
}

static const test_case cases[] = {
    {"states out of reach", out_of_reach},
    {"batches out of reach", batches_out_of_reach},
    {"a touch faults", a_touch_faults},
    {"each step fails once", each_step_fails},
    {"each step of a batch fails once", each_step_of_a_batch_fails},
};
TEST_MAIN(cases)
