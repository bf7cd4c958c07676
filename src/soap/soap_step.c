/* soap_step.c - one step over all parameters: measure the gradients, decide, then three parallel
 * loops.
 *
 * Everything that can fail comes first: shapes, aliases, callbacks of the frequency, memory.  From
 * the first write on nothing does: an eigendecomposition that does not converge leaves its basis,
 * and says so. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/denormals.h"
#include "linalg/blas.h"
#include "soap/soap_state.h"

/* ---- the gradients --------------------------------------------------------------------------- */

static frg_status check_gradient(const frg_soap *soap, const soap_param *p, const frg_array *g)
{
    static const unsigned floats = 1u << FRG_F32 | 1u << FRG_F64 | 1u << FRG_F16 | 1u << FRG_BF16;
    frg_context *const ctx = soap->ctx;
    frgi_at(ctx, "%s", p->name);
    TRY(frgi_array_check(ctx, g, "the gradient", p->w.ndim, floats));
    for (int d = 0; d < p->w.ndim; d++) {
        if (g->shape[d] != p->w.shape[d]) {
            FAIL(ctx, E_SHAPE,
                 "axis %d of the gradient of '%s' has length %lld, the parameter %lld", d, p->name,
                 (long long)g->shape[d], (long long)p->w.shape[d]);
        }
    }
    const soap_param *const owner = frgi_soap_owner(soap, g);
    if (owner) {
        FAIL(ctx, E_ALIAS, "the gradient of '%s' shares memory with the parameter '%s'", p->name,
             owner->name);
    }
    return FRG_OK;
}

static frg_status check_gradients(frg_soap *soap, const frg_array grads[], int64_t n)
{
    REQUIRE(soap->ctx, n == soap->n_params, "n is %lld, the optimizer has %lld parameters",
            (long long)n, (long long)soap->n_params);
    REQUIRE(soap->ctx, grads || n == 0, "grads is NULL");
    for (int64_t i = 0; i < n; i++) {
        soap_param *const p = soap->params[i];
        p->grad = grads[i].data ? &grads[i] : NULL;
        if (p->grad && p->count > 0) {
            TRY(check_gradient(soap, p, p->grad));
        }
        p->grad = p->count > 0 ? p->grad : NULL;
    }
    frgi_at(soap->ctx, "%s", "");
    return FRG_OK;
}

static void measure_gradient(const frg_soap *soap, soap_param *p, soap_workspace *work)
{
    const float *g;
    if (p->grad->dtype == FRG_F32 && frgi_soap_contiguous(p->grad)) {
        g = (const float *)(const void *)frgi_array_base(p->grad);
    } else {
        frgi_soap_take(p->grad, 1, work->g);
        g = work->g;
    }
    p->largest = soap->ops->largest(p->count, g);
}

/** Threads for a loop of so many multiply-adds. */
static int team_for(frg_soap *soap, double work)
{
    const int team = frgi_team_for(soap->most, work);
    soap->work += work;
    soap->worth_more |= frgi_team_for(soap->threads, work) > 1;
    soap->loops_dealt += team > 1;
    return team;
}

static void measure_gradients(frg_soap *soap)
{
    enum { ELEMENT = 8 }; /* reading one takes as long as so many multiply-adds */
    double work = 0;
    for (int64_t i = 0; i < soap->n_params; i++) {
        work += soap->params[i]->grad ? ELEMENT * (double)soap->params[i]->count : 0;
    }
    const int team = team_for(soap, work);
#pragma omp parallel for schedule(dynamic, 1) num_threads(team)
    for (int64_t i = 0; i < soap->n_params; i++) {
        if (soap->param_tasks[i].param->grad) {
            measure_gradient(soap, soap->param_tasks[i].param,
                             &soap->workspaces[omp_get_thread_num()]);
        }
    }
}

/** What to do about NaN and infinities, by the groups' policies. */
static frg_status apply_policies(frg_soap *soap, frg_soap_report *report)
{
    const char *first = NULL;
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        if (!p->grad || !isnan(p->largest)) {
            continue;
        }
        const frg_soap_nonfinite policy = soap->groups[p->group].nonfinite;
        if (policy == FRG_NONFINITE_ERROR) {
            FAIL(soap->ctx, E_GRADIENT, "the gradient of '%s' holds NaN or infinity", p->name);
        }
        if (policy == FRG_NONFINITE_SKIP) {
            first = first ? first : p->name;
            report->nonfinite++;
            p->grad = NULL;
        }
    }
    if (report->nonfinite > 0) {
        frgi_warn(soap->ctx, W_GRADIENT, "%lld parameters were left alone, the first is '%s'",
                  (long long)report->nonfinite, first);
    }
    return FRG_OK;
}

/* ---- what is due ----------------------------------------------------------------------------- */

/** Is a refresh due at the parameter's step, for a factor that is refreshed so many steps early? */
static bool due_now(const frg_soap_opts *o, const soap_param *p, int64_t offset, int64_t freq)
{
    const bool after = o->order == FRG_UPDATE_FIRST; /* counts the step just made */
    const bool early = p->step <= o->precondition_warmup_steps && o->precondition_warmup_steps > 0;
    return early || (p->step + (after ? 1 : 0) + offset) % freq == 0;
}

/** Emerging-Optimizers 0.2 makes eigenvectors at the end of Adam's warm-up where a refresh is due
 *  there.  Else its bases are I until one is due, which is a step of orthogonal iteration from
 *  I. */
static bool begins_at_identity(const frg_soap_opts *o, const soap_param *p)
{
    return o->profile == FRG_SOAP_EMERGING && o->order == FRG_GRAD_FIRST && !o->stagger &&
           o->warmup_v == FRG_WARMUP_V_KEEP && p->step >= o->adam_warmup_steps;
}

static void decide_factor(const frg_soap *soap, const soap_param *p, soap_factor *f, int64_t freq)
{
    const frg_soap_opts *const o = &soap->groups[p->group];
    const int64_t offset = o->stagger ? f->refresh_offset % freq : 0;
    f->tested = f->passes = false;
    f->done = SOAP_UNTOUCHED;
    f->due = p->first ||
             ((p->generation > 0 || begins_at_identity(o, p)) && due_now(o, p, offset, freq));
    f->refresh = f->due;
    const bool none = f->due && (p->first || f->lost);
    f->fresh = none && (frgi_soap_shampoo_beta(o, p->step + 1) <= 0 || !f->k ||
                        frgi_soap_norm(soap, f) <= 0);
}

bool frgi_soap_decomposes(const frg_soap_opts *o, const soap_param *p, const soap_factor *f)
{
    return (p->first && !frgi_soap_follows(o, p, f)) || o->use_eigh || f->lost;
}

static frg_status decide(frg_soap *soap, ptrdiff_t *eigh)
{
    *eigh = 0;
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        const frg_soap_opts *const o = &soap->groups[p->group];
        p->first = p->basis_changes = false;
        for (int k = 0; k < p->n_factors; k++) {
            p->factors[k].due = p->factors[k].refresh = false;
            p->factors[k].done = SOAP_UNTOUCHED;
        }
        if (!p->grad) {
            continue;
        }
        const bool after = o->order == FRG_UPDATE_FIRST;
        int64_t f;
        TRY(frgi_soap_frequency(soap->ctx, o, p->step, &f));
        p->updates = !after || p->started;
        p->first = p->n_factors > 0 && p->generation == 0 &&
                   (after ? !p->started : p->step >= o->adam_warmup_steps);
        if (begins_at_identity(o, p)) {
            p->first = p->first && p->step == o->adam_warmup_steps && due_now(o, p, 0, f);
        }
        for (int k = 0; k < p->n_factors; k++) {
            decide_factor(soap, p, &p->factors[k], f);
        }
        for (int k = 0; k < p->n_factors; k++) {
            const soap_factor *const factor = &p->factors[k];
            if (factor->due && frgi_soap_decomposes(o, p, factor) && factor->size > *eigh) {
                *eigh = factor->size;
            }
        }
    }
    return FRG_OK;
}

frg_status frgi_soap_foresee(frg_soap *soap, ptrdiff_t *eigh)
{
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        p->grad = p->count > 0 ? &p->w : NULL;
    }
    return decide(soap, eigh);
}

/** Gradients beyond 2^40 get a power of two taken off, moments and factors with them, so that
 *  squares stay in range.  It never shrinks again: what such a gradient left behind is as large. */
static void rescale(frg_soap *soap)
{
    static const int most = 40;
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        int exponent;
        if (p->grad && isfinite(p->largest)) {
            (void)frexp(p->largest, &exponent);
            if (exponent - p->exponent > most) {
                frgi_soap_rescale(soap, p, exponent);
            }
        }
    }
}

/* ---- the loops ------------------------------------------------------------------------------- */

static bool adaptive_over_parameter(const frg_soap_opts *o)
{
    return o->use_adaptive_criteria && o->adaptive_scope == FRG_SCOPE_PARAMETER;
}

static bool tests(const frg_soap_opts *o, const soap_param *p, const soap_factor *f)
{
    return o->use_adaptive_criteria && f->due && !p->first && !f->lost;
}

/** Must a basis wait until all factors of its parameter were seen, or the first moment has left? */
static bool waits(const frg_soap_opts *o, const soap_param *p, const soap_factor *f)
{
    return o->use_kl_shampoo || frgi_soap_follows(o, p, f) ||
           (!p->first && (adaptive_over_parameter(o) || !frgi_soap_original(o) || p->label != 0));
}

/** The adaptive test, and the new basis where nothing has to wait for it. */
static void examine_task(frg_soap *soap, const soap_task *t, soap_workspace *work, int thread)
{
    const frg_soap_opts *const o = &soap->groups[t->param->group];
    soap_factor *const f = t->factor;
    if (tests(o, t->param, f)) {
        frgi_soap_rayleigh(soap, t->param, f, work);
        if (!adaptive_over_parameter(o)) {
            f->refresh = !f->passes;
        }
    }
    if (f->refresh && !waits(o, t->param, f)) {
        frgi_soap_refresh(soap, t->param, f, work, thread);
        f->refresh = false;
    }
    f->tested = false; /* the workspace will hold another product by then */
}

/** KL weights are the Rayleigh quotients of the old factor in the old basis. */
static void kl_scale_task(frg_soap *soap, const soap_task *t, soap_workspace *work)
{
    const frg_soap_opts *const o = &soap->groups[t->param->group];
    if (o->use_kl_shampoo && o->sort_when == FRG_SORT_BEFORE_QR) {
        frgi_soap_rayleigh(soap, t->param, t->factor, work);
        t->factor->tested = t->factor->passes = false; /* that was the old factor's test */
    }
}

typedef enum {
    LOOP_KL_WEIGHTS,
    LOOP_COLLECT, /* K and what examine_task does */
    LOOP_ACCUMULATE,
    LOOP_EXAMINE,
    LOOP_PROJECT_BACK,
    LOOP_REFRESH,
    LOOP_FOLLOW, /* first bases that come from another's */
    LOOP_ROTATE,
    LOOP_APPLY
} loop_kind;

static bool follows(const frg_soap *soap, const soap_task *t)
{
    return frgi_soap_follows(&soap->groups[t->param->group], t->param, t->factor);
}

static void do_task(frg_soap *soap, loop_kind kind, const soap_task *t, int thread)
{
    soap_workspace *const work = &soap->workspaces[thread];
    switch (kind) {
    case LOOP_KL_WEIGHTS:
        kl_scale_task(soap, t, work);
        break;
    case LOOP_COLLECT:
        frgi_soap_accumulate(soap, t->param, t->factor, work);
        examine_task(soap, t, work, thread);
        break;
    case LOOP_ACCUMULATE:
        frgi_soap_accumulate(soap, t->param, t->factor, work);
        break;
    case LOOP_EXAMINE:
        examine_task(soap, t, work, thread);
        break;
    case LOOP_PROJECT_BACK:
        if (t->param->basis_changes) {
            frgi_soap_project_back(soap, t->param, work);
        }
        break;
    case LOOP_REFRESH:
    case LOOP_FOLLOW:
        if (t->factor->refresh && follows(soap, t) == (kind == LOOP_FOLLOW)) {
            frgi_soap_refresh(soap, t->param, t->factor, work, thread);
        }
        break;
    case LOOP_ROTATE:
        frgi_soap_rotate(soap, t->param, work);
        break;
    case LOOP_APPLY:
        if (t->param->updates) {
            frgi_soap_apply(soap, t->param, work);
        }
        break;
    }
}

/** Moments of what has no gradient for long, as rows of rare words, end at 0: at the least
 *  denormal, which times 0.95 is rounded to itself, a step took eighty times as long. */
static void run_task(frg_soap *soap, loop_kind kind, const soap_task *t, int thread)
{
    if (t->param->grad) {
        const unsigned mode = frgi_flush_denormals();
        do_task(soap, kind, t, thread);
        frgi_restore_denormals(mode);
    }
}

static bool rotates(const soap_param *p)
{
    bool any = p->first; /* warmup_v */
    for (int k = 0; k < p->n_factors; k++) {
        any |= p->factors[k].rotated;
    }
    return any;
}

/** Work of a task, in multiply-adds, below zero where one thread has to do it: small ones,
 *  eigendecompositions. */
static double cost_of(const frg_soap *soap, loop_kind kind, const soap_task *t)
{
    enum {
        WORTH_IT = 256
    }; /* size of a factor, or of a square parameter, from which a team gains */
    const soap_param *const p = t->param;
    const soap_factor *const f = t->factor;
    const double count = (double)p->count;
    if (!p->grad || (kind == LOOP_ROTATE && !rotates(p)) ||
        (kind == LOOP_PROJECT_BACK && !p->basis_changes) || (kind == LOOP_APPLY && !p->updates)) {
        return 0;
    }
    if (kind == LOOP_ROTATE) {
        return -t->cost;
    }
    if (!f) {
        return count >= WORTH_IT * WORTH_IT ? t->cost : -t->cost;
    }
    const frg_soap_opts *const o = &soap->groups[p->group];
    const double n = (double)f->size;
    const bool last = kind == LOOP_REFRESH || kind == LOOP_FOLLOW;
    const bool here = last ? follows(soap, t) == (kind == LOOP_FOLLOW)
                           : kind != LOOP_ACCUMULATE && !waits(o, p, f);
    const bool needs_product = !last && kind != LOOP_ACCUMULATE && tests(o, p, f);
    double cost = kind == LOOP_COLLECT || kind == LOOP_ACCUMULATE ? n * count : 0;
    cost += needs_product || kind == LOOP_KL_WEIGHTS ? 2 * n * n * n : 0;
    if (f->refresh && here && kind != LOOP_KL_WEIGHTS) {
        const bool by_eigh = frgi_soap_decomposes(o, p, f);
        cost += (by_eigh ? 20 : 5) * n * n * n;
        return by_eigh || f->size < WORTH_IT ? -cost : cost;
    }
    return f->size < WORTH_IT ? -cost : cost;
}

/** The first tasks of a loop, which all of the team take part in, one after the other. */
static void run_shared(frg_soap *soap, loop_kind kind, int team, int64_t shared,
                       const soap_task *tasks)
{
    soap_workspace *const lead = &soap->workspaces[0];
    double before[SOAP_TIMES];
    memcpy(before, lead->seconds, sizeof before);
    const int was = omp_get_max_threads();
    frgi_blas_single(); /* for what the lead does alone */
    lead->team = team;
    for (int64_t i = 0; i < shared; i++) {
        run_task(soap, kind, &tasks[i], 0);
    }
    lead->team = 1;
    soap->tasks_shared += shared;
    omp_set_num_threads(was);
    for (int k = 0; k < SOAP_TIMES; k++) {
        lead->seconds[k] += (team - 1) * (lead->seconds[k] - before[k]);
    }
}

static void run_loop(frg_soap *soap, loop_kind kind)
{
    const bool by_param = kind == LOOP_PROJECT_BACK || kind == LOOP_ROTATE || kind == LOOP_APPLY;
    const soap_task *const tasks = by_param ? soap->param_tasks : soap->factor_tasks;
    const int64_t n = by_param ? soap->n_params : soap->n_tasks;
    double work = 0;
    for (int64_t i = 0; i < n; i++) {
        soap->costs[i] = cost_of(soap, kind, &tasks[i]);
        work += fabs(soap->costs[i]);
    }
    if (work == 0) {
        return;
    }
    const int team = team_for(soap, work);
    const int64_t shared = frgi_soap_shared_tasks(team, n, soap->costs);
    run_shared(soap, kind, team, shared, tasks);
#pragma omp parallel num_threads(team)
    {
        frgi_blas_single();
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = shared; i < n; i++) {
            run_task(soap, kind, &tasks[i], omp_get_thread_num());
        }
    }
}

/** Which bases change, once all factors were tested: a parameter's moment is projected back only
 *  then. */
static bool decide_refreshes(frg_soap *soap)
{
    bool any = false;
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        const frg_soap_opts *const o = &soap->groups[p->group];
        if (!p->grad) {
            continue;
        }
        bool all_pass = adaptive_over_parameter(o) && !p->first;
        for (int k = 0; k < p->n_factors; k++) {
            all_pass = all_pass && (!p->factors[k].due || p->factors[k].passes);
        }
        for (int k = 0; k < p->n_factors; k++) {
            p->factors[k].refresh = p->factors[k].refresh && !all_pass;
            p->basis_changes |= p->factors[k].refresh;
        }
        any |= p->basis_changes;
    }
    return any;
}

/** The lowest Rayleigh quotient over norm(K); 0: none is below zero. */
static double lowest_quotient(const soap_factor *f)
{
    double lowest = 0;
    for (ptrdiff_t j = 0; j < f->size; j++) {
        lowest = f->lambda[j] < lowest ? f->lambda[j] : lowest;
    }
    return lowest < 0 ? lowest / f->norm : 0;
}

/** Failed decompositions are tried in double precision; then bases that changed get a new
 *  number. */
static void count_generations(frg_soap *soap, frg_soap_report *report)
{
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        bool changed = p->grad && p->first;
        for (int k = 0; k < p->n_factors && p->grad; k++) {
            soap_factor *const f = &p->factors[k];
            if (f->lost && f->done == SOAP_FAILED && frgi_soap_rescue(soap, p, f)) {
                f->done = SOAP_BY_EIGH;
            }
            if (f->done == SOAP_FAILED) {
                report->eigh_failures++;
                frgi_warn(soap->ctx, W_BASIS, "factor %d of '%s'", k, p->name);
            }
            const bool refreshed = f->done == SOAP_BY_QR || f->done == SOAP_BY_EIGH;
            changed |= refreshed; /* one that failed left its basis */
            report->due += f->due;
            report->skipped += f->due && f->passes && !refreshed;
            report->eigh += f->done == SOAP_BY_EIGH;
            const double lowest = refreshed ? lowest_quotient(f) : 0;
            report->indefinite += lowest < 0;
            report->lowest_quotient = fmin(report->lowest_quotient, lowest);
            if (f->done == SOAP_BY_QR) {
                const bool cholesky = f->report.method == FRG_QR_CHOLESKY;
                report->householder += !cholesky;
                report->single_pass += cholesky && f->report.passes == 1;
                report->second_pass += cholesky && f->report.passes > 1;
                const double error = f->report.orthogonality;
                report->orthogonality =
                    error > report->orthogonality ? error : report->orthogonality;
            }
        }
        if (changed) {
            assert(p->label == 0);
            p->generation++;
        }
        p->started = p->started || p->grad;
    }
}

static void apply_kl_weights(frg_soap *soap)
{
    bool any = false;
    for (int64_t g = 0; g < soap->n_groups; g++) {
        any |= soap->groups[g].use_kl_shampoo != 0;
    }
    if (any) {
        run_loop(soap, LOOP_KL_WEIGHTS);
    }
}

/** The bases that had to wait. */
static void change_waiting(frg_soap *soap)
{
    if (decide_refreshes(soap)) {
        run_loop(soap, LOOP_PROJECT_BACK);
        run_loop(soap, LOOP_REFRESH);
        run_loop(soap, LOOP_FOLLOW);
    }
}

void frgi_soap_change_bases(frg_soap *soap)
{
    run_loop(soap, LOOP_EXAMINE);
    change_waiting(soap);
}

void frgi_soap_end_refresh(frg_soap *soap, frg_soap_report *report)
{
    count_generations(soap, report);
    run_loop(soap, LOOP_ROTATE);
}

void frgi_soap_end_eigh(frg_soap *soap)
{
    bool again = false;
    for (int64_t g = 0; g < soap->n_groups; g++) {
        again |= soap->groups[g].use_eigh != 0;
    }
    if (!again) {
        frgi_soap_eigh_close(soap);
    }
}

static void refresh_bases(frg_soap *soap, frg_soap_report *report)
{
    apply_kl_weights(soap);
    run_loop(soap, LOOP_COLLECT);
    change_waiting(soap);
    frgi_soap_end_refresh(soap, report);
}

/** Does any parameter of the pass in hand leave its refresh to a thread of its own? */
static bool goes_on(const frg_soap *soap)
{
    bool any = false;
    for (int64_t i = 0; i < soap->n_params; i++) {
        const soap_param *const p = soap->params[i];
        any |= p->grad && soap->groups[p->group].refresh_async;
    }
    return any;
}

void frgi_soap_sum_times(const frg_soap *soap, frg_soap_report *report)
{
    double *const to[SOAP_TIMES] = {&report->factors_seconds, &report->refresh_seconds,
                                    &report->project_seconds, &report->update_seconds};
    for (int t = 0; t < soap->threads; t++) {
        for (int k = 0; k < SOAP_TIMES; k++) {
            *to[k] += soap->workspaces[t].seconds[k];
        }
    }
}

/** Groups that update first and groups that collect first are separate passes over the same lists.
 *  true: bases are to be changed after the step. */
static bool run_pass(frg_soap *soap, const frg_array grads[], frg_soap_order order,
                     frg_soap_report *report)
{
    bool any = false;
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        const bool mine = p->updates_in_order == (int)order;
        p->grad = mine && p->active ? &grads[i] : NULL;
        any |= p->grad != NULL;
    }
    if (!any) {
        return false;
    }
    if (order == FRG_GRAD_FIRST) {
        refresh_bases(soap, report);
        run_loop(soap, LOOP_APPLY);
        return false;
    }
    run_loop(soap, LOOP_APPLY);
    if (goes_on(soap)) {
        apply_kl_weights(soap);
        run_loop(soap, LOOP_ACCUMULATE);
        return true;
    }
    refresh_bases(soap, report);
    return false;
}

/** Steps without and with new bases are watched apart, as one takes many times as long as the
 *  other. */
static frgi_oversubscription *oversubscription_of(frg_soap *soap)
{
    bool anew = false;
    for (int64_t i = 0; i < soap->n_params; i++) {
        for (int k = 0; k < soap->params[i]->n_factors; k++) {
            anew |= soap->params[i]->factors[k].due;
        }
    }
    return &soap->oversubscription[anew];
}

/** What the step has taken, where that tells whether its threads gain: one thread would take some
 *  0.1 s at most, so that trying it costs little.  Eigendecompositions are none of the loops that
 *  the next steps have. */
static void note_seconds(frg_soap *soap, frgi_oversubscription *oversubscription, bool by_eigh,
                         double seconds)
{
    static const double MOST_WORK = 4e9;
    if (soap->work >= MOST_WORK) {
        *oversubscription = frgi_oversubscription_doubtful();
    } else if (soap->worth_more && !by_eigh) {
        frgi_oversubscription_note(oversubscription, soap->threads, seconds / soap->work);
    }
}

frg_status frg_soap_step(frg_soap *soap, const frg_array grads[], int64_t n, frg_soap_report *to)
{
    if (!soap) {
        FAIL(NULL, E_ARG, "soap is NULL");
    }
    const double start = frgi_seconds();
    ptrdiff_t eigh;
    frgi_run_begins(soap->ctx);
    frgi_soap_wait(soap);
    frg_soap_report report = soap->late;
    TRY(frg_soap_prepare(soap));
    TRY(check_gradients(soap, grads, n));
    soap->work = 0;
    soap->worth_more = false;
    measure_gradients(soap);
    TRY(apply_policies(soap, &report));
    TRY(decide(soap, &eigh));
    frgi_oversubscription *const oversubscription = oversubscription_of(soap);
    soap->most = frgi_oversubscription_team(oversubscription, soap->threads);
    if (eigh > 0) {
        TRY(frgi_soap_eigh_open(soap, eigh));
    }
    for (int64_t i = 0; i < n; i++) {
        soap_param *const p = soap->params[i];
        p->active = p->grad != NULL;
        p->updates_in_order = (int)soap->groups[p->group].order;
        report.updated += p->grad && p->updates;
        report.long_axes += p->grad ? p->long_axes : 0;
    }
    for (int t = 0; t < soap->threads; t++) {
        memset(soap->workspaces[t].seconds, 0, sizeof soap->workspaces[t].seconds);
    }
    const frgi_blas_guard guard = frgi_blas_begin();
    rescale(soap);
    (void)run_pass(soap, grads, FRG_GRAD_FIRST, &report);
    const bool later = run_pass(soap, grads, FRG_UPDATE_FIRST, &report);
    frgi_blas_end(guard);
    frgi_soap_sum_times(soap, &report);
    /* before a refresh beside the caller, which counts work of its own, begins */
    note_seconds(soap, oversubscription, eigh > 0, frgi_seconds() - start);
    soap->late = (frg_soap_report){0};
    if (later) {
        frgi_soap_launch(soap);
    } else {
        frgi_soap_end_eigh(soap);
    }
    report.seconds = frgi_seconds() - start;
    if (to) {
        *to = report;
    }
    return report.nonfinite > 0 ? FRG_PARTIAL : FRG_OK;
}
