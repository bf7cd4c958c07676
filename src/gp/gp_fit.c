/* gp_fit.c - the fit: ell + log prior as a function of free coordinates, starts, limits, and what
 * is reported.
 *
 * Coordinates u (gp_coordinates.h): logarithms; for Adam raw values, v = T(raw) with the transform
 * T of the parameter, as torch has it.  D_ii = d log v_i / d u_i.
 *
 *     f(u)    = -(ell + log prior) / n                      compute_value
 *     df/du_i = -D_ii d(ell + log prior) / d log v_i / n    compute_gradient
 *     H       = D (AI + curvature of the prior) D / n       compute_information, AI the average
 *                                                           information (gp_information.c)
 *     an answer of the process, or that of a saved state    ask
 *     a search from a point: trust region on H, L-BFGS-B,   search_from
 *     Adam (gp_ai.c, gp_lbfgsb.c, gp_adam.c)
 *     a start, again with more noise where it has no value  run_start
 *     all starts, in turn or side by side; the lowest f     run_starts
 *     the best point without jitter, standard errors        finish
 *
 * Within one start the jitter of the iterates never decreases (monotone), so that f is continuous;
 * a trial that was not taken leaves it as it was.  The best point is evaluated again without it.
 * An evaluation that fails (not positive definite; f32 not good enough) is a step that is not
 * taken.  A start that fails is tried again up to five times: with ten times the noise where noise
 * is free, from another random start where it is not.
 *
 * With up to a thousand points starts run side by side, one a thread, each on a copy of the
 * process; with more each uses all threads.  The bits are the same: a start knows nothing of
 * another.
 *
 * Letters: p free coordinates, u a point, theta all parameters.  Memory p^2 + O(p); time is the
 * likelihood's.
 */
#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>

#include "core/opts.h"
#include "gp/gp_coordinates.h"
#include "gp/gp_fit.h"
#include "gp/gp_information.h"
#include "gp/gp_optimise.h"
#include "gp/gp_state.h"
#include "linalg/team.h"

enum { MAX_RESTARTS = 5, FIRST_TRACE = 64 };
enum { AI_MOST = 64, AI_FROM = 200 }; /* free parameters and points of a trust region, by default */
enum { TOGETHER_MOST = 1000 };        /* points of starts that run side by side */
static const double RELATIVE = 2.2e-9; /* of L-BFGS-B's customary factr = 1e7 */
static const double AT_BOUND = 1e-9;   /* of a value: so near to its bound it is there */

/** A trace under way. */
typedef struct {
    frg_gp_trace *rows;
    int64_t n, capacity;
} record;

/** The best point of a start, and all that must be remembered of it. */
typedef struct {
    double *theta;
    double f, norm;
    frg_gp_value value;
    record trace;
    frg_status status;
    const char *ended;
    int start;
} candidate;

/** A fit, or what a thread of it has of its own. */
typedef struct {
    frg_gp *gp;
    frg_gp_fit_opts opts;
    frg_gp_optimizer method;
    double began;           /* frgi_seconds */
    frgi_gp_coordinates to; /* the free parameters as coordinates u */
    double *u;              /* of the search, to.count */
    double *theta;          /* params.count: where the search is */
    double *given;          /* where it began */
    double *gradient;       /* of all parameters */
    double *information;    /* count x count; NULL for Adam */
    frgi_gp_found found;    /* of the start under way, at the end of all together */
    frg_gp_start *each;     /* what became of each start; NULL where nothing is free */
    candidate now, best;
    candidate seen; /* theta, f, value: the best value of this start, taken or not */
    double jitter;  /* of the last accepted iterate: trials begin with it */
    struct frgi_gp_fit_state *fit_state; /* NULL: no states are wanted */
    frgi_gp_cursor cursor;
    bool offers;        /* this thread calls the saver of states */
    double elapsed;     /* when the last answer was given */
    frg_status refused; /* the last failed evaluation */
} fit;

#define OPTIONS_OF frg_gp_fit_opts
static const frg_option options[] = {
#include "gp/gp_fit_opts.def"
    {.name = NULL}};

const frg_option *frg_gp_fit_options(void)
{
    return options;
}

void frg_gp_fit_defaults(frg_gp_fit_opts *o, size_t struct_size)
{
    frg_gp_fit_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

/* ---- the objective --------------------------------------------------------------------------- */

/** The status of an evaluation as an optimiser reads it: FRG_NOT_POSDEF, a step that is not taken,
 *  for every point without a value or without one that is good enough (a period too short to know
 *  the phase, overflow). */
static frg_status for_optimiser(fit *m, frg_status status)
{
    if (status != FRG_NOT_POSDEF && status != FRG_BROKE_DOWN && status != FRG_BAD_DATA) {
        return status;
    }
    m->refused = status;
    return FRG_NOT_POSDEF;
}

/** What the process computes at its parameters: *out, or as many numbers as were asked for. */
typedef frg_status answer_fn(fit *m, double *out);

/** The process's answer to a question at its parameters: from the state where it is there, else
 *  computed and kept. */
static frg_status ask(fit *m, frgi_gp_question question, answer_fn *compute, int64_t numbers,
                      double *out)
{
    frg_gp *const gp = m->gp;
    frgi_gp_answer a = {.question = question, .start = m->cursor.start, .numbers = numbers};
    bool known = false;
    if (m->fit_state) {
        a.point =
            frg_hash(0, gp->model.theta, gp->model.params.count * (int64_t)sizeof *gp->model.theta);
        TRY(frgi_gp_state_recall(m->fit_state, &m->cursor, &a, out, &known));
    }
    if (known) {
        m->elapsed = a.seconds;
        frgi_gp_recall(gp, (frg_status)a.status, &a.value, a.jitter, a.swapped != 0);
        return for_optimiser(m, (frg_status)a.status);
    }
    const frg_status raw = compute(m, out), status = for_optimiser(m, raw);
    m->elapsed = frgi_seconds() - m->began;
    if (m->fit_state && (status == FRG_OK || status == FRG_NOT_POSDEF)) {
        a.numbers = status == FRG_OK ? numbers : 0;
        a.status = raw;
        a.swapped = gp->state.swapped;
        a.jitter = gp->state.jitter;
        a.seconds = m->elapsed;
        a.value = gp->result.value;
        TRY(frgi_gp_state_add(m->fit_state, &m->cursor, &a, out));
    }
    return status;
}

static frg_status compute_value(fit *m, double *f)
{
    if (m->gp->state.matrix == MATRIX_NONE) { /* no factor at this point */
        frgi_gp_set_jitter(m->gp, m->jitter);
    }
    frgi_gp_expect_inverse(m->gp, m->method == FRG_GP_ADAM); /* a gradient at every step */
    const frg_status status = frgi_gp_value(m->gp);
    frgi_gp_expect_inverse(m->gp, false);
    const frg_gp_value *v = &m->gp->result.value;
    *f = -(v->log_likelihood + v->log_prior) / (double)m->gp->data.n;
    return status;
}

static frg_status objective_value(void *user, const double *u, double *f)
{
    fit *m = user;
    if (m->opts.max_evaluations > 0 && m->found.values > m->opts.max_evaluations) {
        m->found.values--; /* asked for, not made */
        return FRG_MAX_ITER;
    }
    frgi_gp_coordinates_values(&m->to, u, m->theta);
    TRY(frgi_gp_set_theta(m->gp, m->theta));
    const frg_status status = ask(m, GP_ASKED_VALUE, compute_value, 1, f);
    if (status == FRG_OK && *f < m->seen.f) { /* recalled ones too: a resumed fit may stop */
        memcpy(m->seen.theta, m->gp->model.theta,
               (size_t)m->gp->model.params.count * sizeof *m->seen.theta);
        m->seen.f = *f;
        m->seen.value = m->gp->result.value;
    }
    return status;
}

static frg_status compute_gradient(fit *m, double *g)
{
    const frg_status status = frgi_gp_gradient(m->gp, m->gradient, NULL);
    if (status != FRG_OK) {
        return status;
    }
    frgi_gp_coordinates_gradient(&m->to, m->gradient, g);
    for (int c = 0; c < m->to.count; c++) {
        g[c] = -g[c] / (double)m->gp->data.n;
    }
    return FRG_OK;
}

static frg_status objective_gradient(void *user, double *g)
{
    fit *m = user;
    return ask(m, GP_ASKED_GRADIENT, compute_gradient, m->to.count, g);
}

static frg_status compute_information(fit *m, double *h)
{
    const frg_gp *gp = m->gp;
    const size_t p = (size_t)gp->model.params.count;
    const frg_status status = frgi_gp_information(m->gp, m->information);
    if (status != FRG_OK) {
        return status;
    }
    memset(m->gradient, 0, p * sizeof *m->gradient);
    frgi_gp_params_prior(&gp->model.params, gp->model.theta, NULL, m->gradient);
    frgi_gp_coordinates_curvature(&m->to, m->information, m->gradient, h);
    for (int k = 0; k < m->to.count * m->to.count; k++) {
        h[k] /= (double)gp->data.n;
    }
    return FRG_OK;
}

static frg_status objective_information(void *user, double *h)
{
    fit *m = user;
    const int64_t p = m->to.count;
    return ask(m, GP_ASKED_INFORMATION, compute_information, p * p, h);
}

static double objective_rounding(void *user)
{
    const fit *const m = user;
    return m->now.value.error_estimate / (double)m->gp->data.n;
}

/** The iterate becomes the last row of the trace and the candidate of this start. */
static frg_status keep_iterate(fit *m, double f, double norm)
{
    record *t = &m->now.trace;
    if (t->n == t->capacity) {
        const int64_t capacity = t->capacity > 0 ? 2 * t->capacity : FIRST_TRACE;
        TRY(GROW(m->gp->ctx, &t->rows, capacity, "the trace of the fit"));
        t->capacity = capacity;
    }
    t->rows[t->n++] = (frg_gp_trace){.log_likelihood = m->gp->result.value.log_likelihood,
                                     .gradient_norm = norm,
                                     .seconds = m->elapsed,
                                     .values = m->found.values,
                                     .gradients = m->found.gradients};
    memcpy(m->now.theta, m->gp->model.theta,
           (size_t)m->gp->model.params.count * sizeof *m->now.theta);
    m->now.value = m->gp->result.value;
    m->now.f = f;
    m->now.norm = norm;
    m->jitter = m->gp->state.jitter;
    return FRG_OK;
}

static const char *method_name(frg_gp_optimizer method)
{
    static const char *const names[] = {"auto", "ai", "lbfgsb", "adam"};
    return names[method];
}

static frg_status objective_accepted(void *user, const double *u, double f, double norm)
{
    fit *m = user;
    (void)u;
    TRY(keep_iterate(m, f, norm));
    if (m->offers) {
        TRY(frgi_gp_state_offer(m->fit_state, 0));
    }
    return frgi_heartbeat(m->gp->ctx, &(frg_progress){.solver = "gp",
                                                      .phase = method_name(m->method),
                                                      .done = m->found.iterations,
                                                      .total = m->opts.max_iter,
                                                      .residual = norm,
                                                      .target = m->opts.tol,
                                                      .seconds = frgi_seconds() - m->began});
}

/* ---- starts ---------------------------------------------------------------------------------- */

/** The test that ended a search, as the result has it. */
static const char *end_of(const fit *m, frg_status status)
{
    static const char *const names[] = {
        [GP_ENDED_BY_GAIN] = "gain", [GP_ENDED_BY_ROUNDING] = "rounding"};
    if (status != FRG_OK) {
        return "";
    }
    return m->method == FRG_GP_ADAM       ? "steps"
           : m->found.norm <= m->opts.tol ? "gradient"
                                          : names[m->found.end];
}

static bool was_stopped(frg_status status)
{
    return status == FRG_INTERRUPTED || status == FRG_TIME_LIMIT;
}

/** A search that was stopped between a value and its gradient, or at a trial, ends at the best
 *  point that has a value. */
static void take_best_seen(fit *m)
{
    if (m->seen.f < m->now.f) {
        memcpy(m->now.theta, m->seen.theta,
               (size_t)m->gp->model.params.count * sizeof *m->now.theta);
        m->now.f = m->seen.f;
        m->now.value = m->seen.value;
        m->now.norm = (double)NAN;
    }
}

static frg_status search_from(fit *m)
{
    typedef frg_status optimiser(frg_context *, const frgi_gp_objective *, const frgi_gp_search *,
                                 double *, frgi_gp_found *);
    static optimiser *const methods[] = {
        [FRG_GP_AI] = frgi_gp_ai, [FRG_GP_LBFGSB] = frgi_gp_lbfgsb, [FRG_GP_ADAM] = frgi_gp_adam};
    const frgi_gp_objective objective = {.n = m->to.count,
                                         .lower = m->to.lower,
                                         .upper = m->to.upper,
                                         .value = objective_value,
                                         .gradient = objective_gradient,
                                         .information = objective_information,
                                         .accepted = objective_accepted,
                                         .rounding = objective_rounding,
                                         .user = m};
    const frgi_gp_search search = {.max_iter = m->found.iterations + m->opts.max_iter,
                                   .tol = m->opts.tol,
                                   .relative = RELATIVE,
                                   .rate = m->opts.learning_rate};
    const bool warned = m->gp->mode.jitter_warned; /* one warning for all starts */
    frgi_gp_set_monotone(m->gp, false); /* no promotion, jitter or matrix of the start before */
    frgi_gp_forget(m->gp);
    frgi_gp_set_monotone(m->gp, true);
    (void)frgi_gp_mute_jitter(m->gp, warned);
    m->now.trace.n = 0;
    m->now.f = m->seen.f = (double)INFINITY;
    m->jitter = 0;
    const frg_status status = methods[m->method](m->gp->ctx, &objective, &search, m->u, &m->found);
    if (was_stopped(status)) {
        take_best_seen(m);
    } else if (status >= 0 && m->method == FRG_GP_ADAM) { /* the last point, not the best one */
        frgi_gp_coordinates_values(&m->to, m->u, m->now.theta);
        m->now.f = m->found.f;
    }
    m->now.ended = end_of(m, status);
    return status;
}

/** Another start after one that could not be evaluated: more noise, or another place. */
static void move_start(const fit *m, int start, int attempt, double *theta)
{
    const frgi_gp_params *ps = &m->gp->model.params;
    bool moved = false;
    for (int i = ps->noise_first; i < ps->noise_first + ps->noise_count; i++) {
        const double upper = frgi_gp_params_range(ps, i).upper;
        if (frgi_gp_params_moves(ps, i) && theta[i] < upper) {
            theta[i] = fmin(10 * theta[i], upper);
            moved = true;
        }
    }
    if (!moved) {
        frgi_gp_random_start(m->gp, (int64_t)m->opts.starts + start * MAX_RESTARTS + attempt,
                             theta);
    }
}

static frg_status run_start(fit *m, int start)
{
    double *theta = m->now.theta;
    frg_status status = FRG_NOT_POSDEF;
    m->cursor = m->fit_state ? frgi_gp_state_seek(m->fit_state, start) : (frgi_gp_cursor){0};
    memcpy(theta, m->given, (size_t)m->gp->model.params.count * sizeof *theta);
    if (start > 0) {
        frgi_gp_random_start(m->gp, start, theta);
    }
    for (int attempt = 0; status == FRG_NOT_POSDEF && attempt <= MAX_RESTARTS; attempt++) {
        if (attempt > 0) {
            move_start(m, start, attempt, theta);
        }
        frgi_gp_coordinates_of(&m->to, theta, m->u);
        status = search_from(m);
    }
    m->now.status = status;
    m->now.start = start;
    return status;
}

/** Of two candidates with the same f that of the first start. */
static bool is_better(const candidate *a, const candidate *b)
{
    return a->f < b->f || (a->f == b->f && isfinite(a->f) && a->start < b->start);
}

static void keep_better(fit *m)
{
    if (m->now.status >= 0 && is_better(&m->now, &m->best)) {
        const candidate other = m->best;
        m->best = m->now;
        m->now = other;
    }
}

/** Does the fit end with it?  FRG_NOT_POSDEF: a start that has no value, others may have. */
static bool is_error(frg_status status)
{
    return status < 0 && status != FRG_NOT_POSDEF;
}

/** Runs a start, records what became of it and keeps it where it is the best so far. */
static frg_status take_start(fit *m, int start)
{
    m->found = (frgi_gp_found){0};
    const frg_status status = run_start(m, start);
    m->each[start] = (frg_gp_start){.status = status,
                                    .objective = status >= 0 && isfinite(m->now.f)
                                                     ? -m->now.f * (double)m->gp->data.n
                                                     : (double)NAN,
                                    .iterations = m->found.iterations,
                                    .values = m->found.values,
                                    .gradients = m->found.gradients,
                                    .failures = m->found.failures};
    keep_better(m);
    return status;
}

static frg_status run_in_turn(fit *m)
{
    for (int start = 0; start < m->opts.starts; start++) {
        const frg_status status = take_start(m, start);
        if (is_error(status)) {
            return status;
        }
        if (was_stopped(status)) {
            m->best.status = status;
            return FRG_OK;
        }
    }
    if (isfinite(m->best.f)) {
        return FRG_OK;
    }
    TRY(m->refused);
    TRY(frgi_gp_params_check_priors(&m->gp->model.params, m->gp->model.theta, true));
    FAIL(m->gp->ctx, E_NOT_POSDEF, "the objective is not finite at any of the starts");
}

/** The process's parameters are where all starts come from. */
static void begin(fit *m)
{
    const frg_gp *const gp = m->gp;
    const size_t bytes = (size_t)gp->model.params.count * sizeof *m->given;
    memcpy(m->given, gp->model.theta, bytes);
    memcpy(m->theta, gp->model.theta, bytes);
    memcpy(m->best.theta, gp->model.theta, bytes);
    m->best.f = (double)INFINITY;
    m->best.value.log_likelihood = (double)NAN;
    frgi_gp_coordinates_set(&m->to, m->method == FRG_GP_ADAM, m->opts.standardize);
}

static void lay_out(frgi_arena *a, fit *m)
{
    const size_t p = (size_t)m->gp->model.params.count;
    double **const vectors[] = {&m->u,         &m->theta,      &m->given,     &m->gradient,
                                &m->now.theta, &m->best.theta, &m->seen.theta};
    frgi_gp_coordinates_take(a, m->gp, &m->to);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        *vectors[i] = TAKE(a, double, p);
    }
    m->information = m->method == FRG_GP_ADAM ? NULL : TAKE(a, double, p *p);
}

/* ---- starts side by side --------------------------------------------------------------------- */

/** A thread: its context, a copy of the process, the best of the starts that came its way. */
typedef struct {
    frg_context *ctx;
    frgi_arena memory;
    fit fit;
    int warned; /* the start that the context's warning is about */
} worker;

static frg_status open_worker(worker *w, const fit *m, int parts)
{
    fit *const f = &w->fit;
    *f = (fit){.opts = m->opts,
               .method = m->method,
               .began = m->began,
               .each = m->each,
               .fit_state = m->fit_state};
    w->warned = m->opts.starts;
    TRY(frgi_context_fork(&w->ctx, m->gp->ctx, parts, NULL));
    TRY(frgi_gp_worker_copy(&f->gp, w->ctx, m->gp));
    lay_out(&w->memory, f);
    TRY(frgi_arena_open(&w->memory, w->ctx, "work memory of the fit"));
    lay_out(&w->memory, f);
    begin(f);
    return FRG_OK;
}

static void close_worker(worker *w)
{
    if (w->ctx) {
        DROP(w->ctx, &w->fit.now.trace.rows);
        DROP(w->ctx, &w->fit.best.trace.rows);
        frgi_arena_close(&w->memory, w->ctx);
        frg_gp_destroy(w->fit.gp);
        frg_context_destroy(w->ctx);
    }
}

static void run_worker(worker *w, int start, atomic_int *halted)
{
    const frg_status status = take_start(&w->fit, start);
    if (frg_warning_count(w->ctx) > 0 && start < w->warned) {
        w->warned = start; /* a search warns of its jitter alone, and once */
    }
    if (is_error(status) || was_stopped(status)) {
        atomic_store(halted, (int)status);
    }
}

static int run_workers(const fit *m, worker *w, int threads)
{
    atomic_int halted;
    atomic_init(&halted, FRG_OK);
    /* in order on each thread: the first warning of one is that of its lowest start */
#pragma omp parallel for num_threads(threads) schedule(monotonic : dynamic)
    for (int start = 0; start < m->opts.starts; start++) {
        const int me = omp_get_thread_num();
        w[me].fit.offers = m->offers && me == 0;
        int halt = atomic_load(&halted);
        if (halt == FRG_OK && me == 0) {
            halt = (int)frgi_heartbeat(m->gp->ctx, &(frg_progress){.solver = "gp",
                                                                   .phase = "starts",
                                                                   .done = start,
                                                                   .total = m->opts.starts,
                                                                   .residual = (double)NAN,
                                                                   .target = m->opts.tol});
            if (halt != FRG_OK) {
                atomic_store(&halted, halt);
            }
        }
        if (halt == FRG_OK) {
            run_worker(&w[me], start, &halted);
        }
    }
    return atomic_load(&halted);
}

/** The best of all workers becomes that of m. */
static frg_status take_best(fit *m, const worker *w, int threads)
{
    const worker *first = &w[0], *warned = &w[0];
    for (int t = 1; t < threads; t++) {
        first = is_better(&w[t].fit.best, &first->fit.best) ? &w[t] : first;
        warned = w[t].warned < warned->warned ? &w[t] : warned;
    }
    const candidate *const found = &first->fit.best;
    candidate *const best = &m->best;
    TRY(GROW(m->gp->ctx, &best->trace.rows, found->trace.n, "the trace of the fit"));
    best->trace.n = best->trace.capacity = found->trace.n;
    memcpy(best->theta, found->theta, (size_t)m->gp->model.params.count * sizeof *best->theta);
    if (found->trace.n > 0) {
        memcpy(best->trace.rows, found->trace.rows,
               (size_t)found->trace.n * sizeof *best->trace.rows);
    }
    best->f = found->f;
    best->norm = found->norm;
    best->value = found->value;
    best->status = found->status;
    best->ended = found->ended;
    best->start = found->start;
    if (warned->warned < m->opts.starts) {
        frgi_warn(m->gp->ctx, W_JITTER, "%s", frg_warning_message(warned->ctx, 0));
    }
    return FRG_OK;
}

/** All starts side by side.  False where something failed: run_in_turn then repeats it, with the
 *  message on the caller's context, or does with the memory of one process. */
static bool run_together(fit *m, int threads)
{
    worker *w;
    bool good = true;
    if (NEW0(m->gp->ctx, &w, threads, "threads of a fit") < 0) {
        return false;
    }
    for (int t = 0; t < threads && good; t++) {
        good = open_worker(&w[t], m, threads) == FRG_OK;
    }
    const int halted = good ? run_workers(m, w, threads) : FRG_OK;
    good = good && !is_error((frg_status)halted) && take_best(m, w, threads) == FRG_OK;
    if (halted > 0) {
        m->best.status = (frg_status)halted;
    } else {
        good = good && isfinite(m->best.f);
    }
    for (int t = 0; t < threads; t++) {
        close_worker(&w[t]);
    }
    DROP(m->gp->ctx, &w);
    return good;
}

/** Nothing has become of any start yet. */
static frg_status prepare_starts(fit *m)
{
    TRY(NEW(m->gp->ctx, &m->each, m->opts.starts, "what becomes of the starts"));
    for (int start = 0; start < m->opts.starts; start++) {
        m->each[start] = (frg_gp_start){.status = FRG_INTERRUPTED, .objective = (double)NAN};
    }
    return FRG_OK;
}

/** All starts, and what they have cost together; the trace counts from the first start on. */
static frg_status run_starts(fit *m)
{
    frg_context *const ctx = m->gp->ctx;
    const int team = frgi_team_size(ctx, m->opts.starts > 1 && m->gp->data.n <= TOGETHER_MOST);
    const int threads = team < m->opts.starts ? team : m->opts.starts;
    const bool together = threads > 1 && run_together(m, threads);
    frg_status status = FRG_OK;
    if (m->fit_state && atomic_load(&m->fit_state->failed) < 0) {
        return (frg_status)atomic_load(&m->fit_state->failed);
    }
    if (together) { /* as if the process itself had searched */
        frgi_gp_set_monotone(m->gp, true);
    } else {
        begin(m);
        if (m->fit_state) {
            frgi_gp_state_rewind(m->fit_state);
        }
        status = run_in_turn(m);
    }
    if (m->opts.starts > 1) {
        /* standard errors from L and from K^-1 differ by rounding: from L, whichever start was
         * last */
        frgi_gp_forget(m->gp);
    }
    m->found = (frgi_gp_found){0};
    for (int start = 0; start < m->opts.starts; start++) {
        const frg_gp_start *const cost = &m->each[start];
        for (int64_t i = 0; start == m->best.start && i < m->best.trace.n; i++) {
            m->best.trace.rows[i].values += m->found.values;
            m->best.trace.rows[i].gradients += m->found.gradients;
        }
        m->found.iterations += cost->iterations;
        m->found.values += cost->values;
        m->found.gradients += cost->gradients;
        m->found.failures += cost->failures;
    }
    return status;
}

/* ---- the end --------------------------------------------------------------------------------- */

void frgi_gp_set_active(frg_gp *gp)
{
    frgi_gp_params *const ps = &gp->model.params;
    frgi_gp_list ended = {0};
    for (int i = 0; i < ps->count; i++) {
        frgi_gp_param *const p = &ps->p[i];
        const double v = gp->model.theta[i], margin = AT_BOUND * fabs(v);
        const bool moved = !ps->p[frgi_gp_params_leader(ps, i)].fixed;
        const frgi_gp_range r = frgi_gp_params_range(ps, i);
        p->std_error = (double)NAN;
        p->active = !moved ? 0 : v <= r.lower + margin ? -1 : v >= r.upper - margin ? 1 : 0;
        if (p->active != 0 && p->tie == 0) {
            char label[96];
            frgi_gp_params_label(ps, i, label);
            frgi_gp_list_add(&ended, "%s at its %s one, %g", label,
                             p->active < 0 ? "lower" : "upper", gp->model.theta[i]);
        }
    }
    if (ended.count > 0) {
        frgi_warn(gp->ctx, W_BOUNDS, "%d parameter%s ended at a bound: %s", ended.count,
                  ended.count > 1 ? "s" : "", frgi_gp_list_text(&ended));
    }
}

/** The projected gradient per point at the process's parameters. */
static frg_status final_norm(fit *m, double *norm)
{
    const frgi_gp_objective box = {.n = m->to.count, .lower = m->to.lower, .upper = m->to.upper};
    double *g = m->now.theta; /* work memory from here on */
    frgi_gp_coordinates_of(&m->to, m->gp->model.theta, m->u);
    const frg_status status = objective_gradient(m, g);
    *norm = status == FRG_OK ? frgi_gp_projected_norm(&box, m->u, g) : (double)NAN;
    return status == FRG_NOT_POSDEF ? FRG_OK : status;
}

/** The process at its best point, evaluated once more without the jitter of the search. */
static frg_status finish(fit *m)
{
    frg_gp *gp = m->gp;
    candidate *best = &m->best;
    /* the search ends here: a jitter of the result has a warning of its own */
    frgi_gp_set_monotone(gp, false);
    TRY(frgi_gp_set_theta(gp, best->theta));
    if (gp->state.jitter > 0) {
        frgi_gp_forget(gp);
    }
    frgi_gp_set_active(gp);
    if (was_stopped(best->status)) {
        return FRG_OK;
    }
    frg_status status = frgi_gp_value(gp);
    TRY(status);
    if (status == FRG_OK) {
        best->value = gp->result.value;
    }
    if (status == FRG_OK && m->method == FRG_GP_ADAM) {
        status = final_norm(m, &best->norm);
        TRY(status);
    }
    if (status == FRG_OK && m->opts.standard_errors && m->to.count > 0) {
        status = frgi_gp_standard_errors(gp);
        TRY(status);
    }
    for (int i = 0; i < gp->model.params.count; i++) { /* a parameter at a bound has none */
        frgi_gp_param *p = &gp->model.params.p[i];
        p->std_error = p->active != 0 ? (double)NAN : p->std_error;
    }
    best->status = was_stopped(status) ? status : best->status;
    return FRG_OK;
}

/** How many starts ended within FRG_GP_REACHED of the best objective, and how far below it the best
 *  of the others. */
static void compare_starts(const frg_gp_start *starts, int64_t count, frg_gp_fit_result *out)
{
    double best = -HUGE_VAL, next = -HUGE_VAL;
    for (int64_t i = 0; i < count; i++) {
        best = starts[i].objective > best ? starts[i].objective : best;
    }
    for (int64_t i = 0; i < count; i++) {
        const double f = starts[i].objective;
        if (f >= best - FRG_GP_REACHED) {
            out->starts_reached++;
        } else if (f > next) {
            next = f;
        }
    }
    out->next_optimum = next > -HUGE_VAL ? best - next : (double)NAN;
}

static void report(fit *m, frg_gp_fit_result *out)
{
    frg_gp *gp = m->gp;
    DROP(gp->ctx, &gp->result.trace);
    gp->result.trace = m->best.trace.rows;
    gp->result.n_trace = m->best.trace.n;
    m->best.trace.rows = NULL;
    DROP(gp->ctx, &gp->result.starts);
    gp->result.starts = m->each;
    m->each = NULL;
    const int64_t count = gp->result.starts ? m->opts.starts : 0;
    *out = (frg_gp_fit_result){.status = m->best.status,
                               .log_likelihood = m->best.value.log_likelihood,
                               .gradient_norm = m->best.norm,
                               .iterations = m->found.iterations,
                               .values = m->found.values,
                               .gradients = m->found.gradients,
                               .failures = m->found.failures,
                               .best_start = m->best.start,
                               .optimizer = method_name(m->method),
                               .n_trace = gp->result.n_trace,
                               .trace = gp->result.trace,
                               .value = m->best.value,
                               .total_seconds = frgi_seconds() - m->began,
                               .ended = m->best.ended ? m->best.ended : "",
                               .n_starts = count,
                               .starts = gp->result.starts,
                               .choice_values = gp->result.start_values,
                               .choice_points = gp->result.start_points};
    compare_starts(gp->result.starts, count, out);
}

static frg_gp_optimizer choose(const frg_gp *gp, frg_gp_optimizer asked)
{
    int free = 0;
    for (int i = 0; i < gp->model.params.count; i++) {
        free += frgi_gp_params_moves(&gp->model.params, i);
    }
    if (asked != FRG_GP_OPT_AUTO) {
        return asked;
    }
    return free <= AI_MOST && gp->data.n >= AI_FROM ? FRG_GP_AI : FRG_GP_LBFGSB;
}

static void put_back(frg_gp *gp, const double *theta)
{
    for (int i = 0; i < gp->model.params.count; i++) {
        gp->model.theta[i] = gp->model.params.p[i].value = theta[i];
    }
    frgi_gp_forget(gp);
}

static frg_status run(fit *m)
{
    TRY(frgi_gp_params_check_priors(&m->gp->model.params, m->gp->model.theta, false));
    const frg_status checked = frgi_gp_check_start(m->gp, m->opts.starts);
    TRY(checked);
    begin(m);
    if (m->to.count > 0) {
        TRY(prepare_starts(m));
    }
    if (was_stopped(checked)) {
        m->best.status = checked;
    } else if (m->to.count > 0) {
        TRY(run_starts(m));
    }
    TRY(finish(m));
    return m->offers && was_stopped(m->best.status) ? frgi_gp_state_offer(m->fit_state, 1) : FRG_OK;
}

/** The run, with the state that is wanted or that it goes on from. */
static frg_status run_kept(fit *m)
{
    frg_gp *const gp = m->gp;
    if (!gp->saving.save && !gp->saving.from) {
        return run(m);
    }
    struct frgi_gp_fit_state fit_state;
    frgi_gp_coordinates_set(&m->to, m->method == FRG_GP_ADAM, m->opts.standardize);
    frg_status status =
        frgi_gp_state_open(&fit_state, gp, &m->opts, m->method, m->to.count, &m->began);
    if (status >= 0) {
        m->fit_state = &fit_state;
        m->offers = gp->saving.save != NULL;
        status = run(m);
    }
    gp->saving.fit_state = NULL;
    frgi_gp_state_close(&fit_state);
    return status;
}

frg_status frg_gp_fit(frg_gp *gp, const frg_gp_fit_opts *o, frg_gp_fit_result *out)
{
    if (!gp || !out) {
        return FRG_BAD_ARG;
    }
    frg_context *ctx = gp->ctx;
    fit m = {.gp = gp, .began = frgi_seconds()};
    frg_gp_fit_defaults(&m.opts, sizeof m.opts);
    TRY(frgi_take_opts(ctx, &m.opts, sizeof m.opts, o));
    TRY(frgi_options_check(ctx, options, &m.opts));
    frgi_run_begins(ctx);
    m.method = choose(gp, m.opts.optimizer);
    frgi_arena a = {0};
    double *before; /* the parameters to go back to */
    const size_t count = (size_t)gp->model.params.count;
    lay_out(&a, &m);
    TRY(NEW(ctx, &before, count, "the parameters before the fit"));
    memcpy(before, gp->model.theta, count * sizeof *before);
    frg_status status;
    TRY_TO(failed, frgi_arena_open(&a, ctx, "work memory of the fit"));
    lay_out(&a, &m);
    status = run_kept(&m);
    if (status < 0) {
        goto failed;
    }
    if (was_stopped(m.best.status) && !isfinite(m.best.f)) { /* before its first value */
        put_back(gp, before);
    }
    report(&m, out);
    status = m.best.status;
failed:
    frgi_gp_set_monotone(gp, false);
    if (status < 0) {
        put_back(gp, before);
    }
    DROP(ctx, &m.each);
    DROP(ctx, &m.now.trace.rows);
    DROP(ctx, &m.best.trace.rows);
    frgi_arena_close(&a, ctx);
    DROP(ctx, &before);
    return status;
}
