/* soap_step.c - one step over all parameters: SOAP, Vyas et al. (2024), Algorithm 3.
 *
 *     G' = Q_L^T G Q_R                       into the bases
 *     M <- b1 M + (1 - b1) G,  M' = Q_L^T M Q_R
 *     V <- b2 V + (1 - b2) G' o G'           Adam in the bases
 *     N' = M' / (sqrt(V) + eps)
 *     N = Q_L N' Q_R^T                       out of them
 *     W <- W - lr N
 *     L <- b L + (1 - b) G G^T,  R <- b R + (1 - b) G^T G
 *     every f steps   Q_L <- Eigenvectors(L, Q_L),  Q_R <- Eigenvectors(R, Q_R)
 *
 * with Algorithm 4 for Eigenvectors(K, Q): one step of orthogonal iteration, S = K Q, Q <- orth(S).
 * ^T is the transpose, G' is G in the bases; K stands for L or R, which a parameter has for each
 * axis; b is shampoo_beta, f the frequency.  In this order for groups of order FRG_UPDATE_FIRST
 * (profile nikhilvyas, the paper's); the others average and refresh first, so that a step uses the
 * bases that it makes.
 *
 * A step is a sequence of loops over the arrays of tasks of all parameters, or of all factors.
 * What a loop does to a task is decided before (soap_decide.c) and masks it; how tasks are dealt to
 * threads is in soap_tasks.c.  Everything that can fail comes first: shapes, aliases, callbacks of
 * the frequency, memory.  From the first write on nothing does: an eigendecomposition that does not
 * converge leaves its basis, and says so. */
#include "linalg/blas.h"
#include "soap/soap_state.h"

/* ---- factors and their bases ----------------------------------------------------------------- */

/** With FRG_SORT_AFTER_QR the last refresh left the quotients of its new basis. */
static bool needs_weights(const frg_soap_opts *o, const soap_task *t)
{
    (void)t;
    return o->use_kl_shampoo && o->sort_when == FRG_SORT_BEFORE_QR;
}

/** KL weights are the Rayleigh quotients of the old factor in the old basis. */
static void find_weights(frg_soap *soap, const soap_task *t, soap_workspace *work)
{
    frgi_soap_rayleigh(soap, t->param, t->factor, work);
}

static void average(frg_soap *soap, const soap_task *t, soap_workspace *work)
{
    frgi_soap_accumulate(soap, t->param, t->factor, work);
}

static bool is_due(const frg_soap_opts *o, const soap_task *t)
{
    (void)o;
    return t->factor->decided.due;
}

/** The adaptive test, and the new basis where nothing has to wait for it. */
static void examine(frg_soap *soap, const soap_task *t, soap_workspace *work)
{
    const frg_soap_opts *const o = &soap->groups[t->param->group];
    const bool tested = frgi_soap_tests(o, t->param, t->factor);
    if (tested) {
        frgi_soap_test(soap, t->param, t->factor, work);
    }
    if (frgi_soap_at_once(o, t->param, t->factor)) {
        frgi_soap_refresh(soap, t->param, t->factor, work, tested);
    }
}

/** One task, as the average is still in the caches. */
static void average_and_examine(frg_soap *soap, const soap_task *t, soap_workspace *work)
{
    average(soap, t, work);
    examine(soap, t, work);
}

static bool basis_changes(const frg_soap_opts *o, const soap_task *t)
{
    (void)o;
    return t->param->decided.basis_changes;
}

static void project_back(frg_soap *soap, const soap_task *t, soap_workspace *work)
{
    (void)soap;
    frgi_soap_project_back(t->param, work);
}

/** Is its first basis derived from that of the parameter's other factor? */
static bool is_derived(const frg_soap_opts *o, const soap_task *t)
{
    return frgi_soap_is_derived(o, t->param, t->factor);
}

static bool refreshes_alone(const frg_soap_opts *o, const soap_task *t)
{
    return t->factor->decided.refresh && !is_derived(o, t);
}

static bool refreshes_derived(const frg_soap_opts *o, const soap_task *t)
{
    return t->factor->decided.refresh && is_derived(o, t);
}

static void refresh(frg_soap *soap, const soap_task *t, soap_workspace *work)
{
    frgi_soap_refresh(soap, t->param, t->factor, work, false);
}

static bool has_rotation(const frg_soap_opts *o, const soap_task *t)
{
    (void)o;
    bool any = t->param->decided.first_bases; /* warmup_v */
    for (int k = 0; k < t->param->n_factors; k++) {
        any |= t->param->factors[k].rotated;
    }
    return any;
}

static void rotate(frg_soap *soap, const soap_task *t, soap_workspace *work)
{
    frgi_soap_rotate(soap, t->param, work);
}

static const soap_loop FIND_WEIGHTS = {false, needs_weights, frgi_soap_work_product, find_weights},
                       AVERAGE = {false, NULL, frgi_soap_work_average, average},
                       AVERAGE_AND_EXAMINE = {false, NULL, frgi_soap_work_average_examine,
                                              average_and_examine},
                       EXAMINE = {false, is_due, frgi_soap_work_examine, examine},
                       PROJECT_BACK = {true, basis_changes, frgi_soap_work_param, project_back},
                       REFRESH = {false, refreshes_alone, frgi_soap_work_refresh, refresh},
                       REFRESH_DERIVED = {false, refreshes_derived, frgi_soap_work_refresh,
                                          refresh},
                       ROTATE = {true, has_rotation, frgi_soap_work_rotate, rotate};

/** The bases that had to wait until all factors were tested. */
static void change_waiting(frg_soap *soap)
{
    if (frgi_soap_decide_waiting(soap)) {
        /* M <- Q_L M' Q_R^T: must be before the bases change */
        soap->steps->run(soap, &PROJECT_BACK);
        /* S = K Q, Q <- orth(S): Algorithm 4; the first time Q <- eigenvectors of K */
        soap->steps->run(soap, &REFRESH);
        /* the first time, where G alone made both factors: Q_R <- orth(G^T Q_L) */
        soap->steps->run(soap, &REFRESH_DERIVED);
    }
}

void frgi_soap_change_bases(frg_soap *soap)
{
    /* S = K Q, lambda_j = q_j^T s_j, the adaptive test; Q <- orth(S) where nothing waits for it */
    soap->steps->run(soap, &EXAMINE);
    change_waiting(soap);
}

/** Bases that changed get a new number. */
static void count_generations(frg_soap *soap)
{
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        if (!frgi_soap_in_pass(soap, p)) {
            continue;
        }
        bool changed = p->decided.first_bases;
        for (int k = 0; k < p->n_factors; k++) {
            const soap_outcome done = p->factors[k].result.done;
            changed |=
                done == SOAP_BY_QR || done == SOAP_BY_EIGH; /* one that failed is as before */
        }
        assert(!changed || p->m_generation == 0);
        p->generation += changed;
        p->started = true;
    }
}

void frgi_soap_end_refresh(frg_soap *soap, frg_soap_report *report)
{
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        for (int k = 0; k < p->n_factors && frgi_soap_in_pass(soap, p); k++) {
            frgi_soap_end_factor(soap, p, &p->factors[k]);
        }
    }
    frgi_soap_count_factors(soap, report);
    count_generations(soap);
    /* moment2_order rotate, warmup_v: v_j <- sum_i (Q_old^T Q_new)_ij^2 v_i along every axis */
    soap->steps->run(soap, &ROTATE);
}

static void update_bases(frg_soap *soap, frg_soap_report *report)
{
    /* KL-Shampoo, Lin et al. (2025): lambda_j = q_j^T L q_j, the weights of R's average */
    soap->steps->run(soap, &FIND_WEIGHTS);
    /* L <- b L + (1 - b) G G^T, R <- b R + (1 - b) G^T G; then each as in frgi_soap_change_bases */
    soap->steps->run(soap, &AVERAGE_AND_EXAMINE);
    change_waiting(soap);
    frgi_soap_end_refresh(soap, report);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static bool is_updated(const frg_soap_opts *o, const soap_task *t)
{
    (void)o;
    return t->param->decided.updates;
}

static void update(frg_soap *soap, const soap_task *t, soap_workspace *work)
{
    soap_update u;
    /* G' = Q_L^T G Q_R; M <- b1 M + (1 - b1) G, M' = Q_L^T M Q_R */
    frgi_soap_into_bases(soap, t->param, work, &u);
    /* V <- b2 V + (1 - b2) G' o G'; N' = M' / (sqrt(V) + eps) */
    frgi_soap_adam(soap, t->param, work, &u);
    /* N = Q_L N' Q_R^T */
    frgi_soap_out_of_bases(t->param, work, &u);
    /* W <- (1 - lr decay) W - lr N */
    frgi_soap_write(soap, t->param, work, &u);
}

static const soap_loop UPDATE = {true, is_updated, frgi_soap_work_param, update};

/* ---- the step -------------------------------------------------------------------------------- */

/** Begins the pass of the groups of one order, which share the lists of tasks; false: there are no
 *  gradients of such. */
static bool begin_pass(frg_soap *soap, frg_soap_order order)
{
    soap->order = order;
    bool any = false;
    for (int64_t i = 0; i < soap->n_params; i++) {
        any |= frgi_soap_in_pass(soap, soap->params[i]);
    }
    return any;
}

/** Are the bases of the current pass refreshed after the step?  All of them are where one group has
 *  refresh_async. */
static bool is_async(const frg_soap *soap)
{
    bool any = false;
    for (int64_t i = 0; i < soap->n_params; i++) {
        const soap_param *const p = soap->params[i];
        any |= frgi_soap_in_pass(soap, p) && soap->groups[p->group].refresh_async;
    }
    return any;
}

/** Both passes; true: bases are to be changed after the step. */
static bool run_passes(frg_soap *soap, frg_soap_report *report)
{
    if (begin_pass(soap, FRG_GRAD_FIRST)) {
        update_bases(soap, report);
        soap->steps->run(soap, &UPDATE);
    }
    if (!begin_pass(soap, FRG_UPDATE_FIRST)) {
        return false;
    }
    soap->steps->run(soap, &UPDATE);
    if (is_async(soap)) {
        soap->steps->run(soap, &FIND_WEIGHTS);
        soap->steps->run(soap, &AVERAGE); /* reads the gradients: must be before the step returns */
        return true;
    }
    update_bases(soap, report);
    return false;
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
    frg_soap_report report = soap->async.report;
    TRY(frg_soap_prepare(soap));
    frgi_soap_begin_threading(soap);
    TRY(frgi_soap_take_gradients(soap, grads, n, &report));
    TRY(frgi_soap_decide(soap, false, &eigh));
    frgi_soap_choose_team(soap);
    if (eigh > 0) {
        TRY(frgi_soap_eigh_open(soap, eigh));
    }
    frgi_soap_count_updates(soap, &report);
    frgi_soap_clear_times(soap);
    const frgi_blas_guard guard = frgi_blas_begin();
    frgi_soap_fit_range(soap);
    const bool later = run_passes(soap, &report);
    frgi_blas_end(guard);
    frgi_soap_sum_times(soap, &report);
    /* before a refresh beside the caller, which counts work of its own, begins */
    frgi_soap_end_threading(soap, eigh > 0, frgi_seconds() - start);
    soap->async.report = (frg_soap_report){0};
    if (later) {
        frgi_soap_launch(soap);
    } else {
        frgi_soap_eigh_end(soap);
    }
    report.seconds = frgi_seconds() - start;
    if (to) {
        *to = report;
    }
    return report.nonfinite > 0 ? FRG_PARTIAL : FRG_OK;
}
