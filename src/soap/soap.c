/* soap.c - the handle: groups, parameters, the plan of tasks and workspaces.
 *
 * A step (soap_step.c) is a sequence of parallel loops over the tasks of the plan, largest first,
 * each task one thread.  Where that leaves threads idle, the largest tasks are done first, each by
 * all of them (soap_team.c).  Tasks share nothing but read-only state, so bits do not depend on
 * threads or on what else is in the handle (but for staggered refreshes, whose turns are dealt over
 * all of its factors).
 *
 * Memory: m, v, K, Q of every parameter; per thread one workspace for the largest: 5 tensors, 3
 * matrices, panels. */
#include <stdio.h>
#include <string.h>

#include "core/host_alone.h"
#include "soap/soap_state.h"

/* ---- the handle ------------------------------------------------------------------------------ */

frg_status frg_soap_create(frg_soap **out, frg_context *ctx, const frg_soap_opts *o)
{
    if (!out) {
        FAIL(ctx, E_ARG, "out is NULL");
    }
    *out = NULL;
    if (!ctx) {
        FAIL(NULL, E_ARG, "ctx is NULL");
    }
    TRY(frgi_host_alone(ctx, "the SOAP optimizer"));
    static const soap_ops *const tables[ISA_COUNT] = EACH_LEVEL(&frgi_soap_ops);
    frg_soap_opts defaults;
    frg_soap_defaults(&defaults, sizeof defaults, FRG_SOAP_EMERGING);
    frg_status status;
    frg_soap *soap = NULL;
    TRY(NEW0(ctx, &soap, 1, "an optimizer"));
    soap->ctx = ctx;
    soap->steps = &frgi_soap_host_steps;
    soap->ops = tables[frgi_context_isa(ctx)];
    soap->qr = frgi_qr_ops_of(ctx, false);
    soap->threads = soap->threading.most = frg_threads(ctx);
    soap->threading.oversubscription[0] = soap->threading.oversubscription[1] =
        frgi_oversubscription_doubtful();
    TRY_TO(failed, frg_soap_add_group(soap, o ? o : &defaults, NULL));
    *out = soap;
    return FRG_OK;
failed:
    frg_soap_destroy(soap);
    return status;
}

static void drop_param(frg_soap *soap, soap_param **at)
{
    frg_context *const ctx = soap->ctx;
    soap_param *const p = *at;
    if (p) {
        soap->steps->close(soap, p);
        DROP(ctx, &p->factors);
        DROP(ctx, &p->name);
        DROP(ctx, at);
    }
}

static void drop_plan(frg_soap *soap)
{
    frgi_arena_close(&soap->plan.arena, soap->ctx);
    soap->plan.arena = (frgi_arena){0};
    DROP(soap->ctx, &soap->plan.workspaces);
    DROP(soap->ctx, &soap->plan.factor_tasks);
    DROP(soap->ctx, &soap->plan.param_tasks);
    DROP(soap->ctx, &soap->plan.costs);
    DROP(soap->ctx, &soap->plan.ranges);
    soap->plan.n_factors = 0;
    soap->plan.ready = false;
}

void frg_soap_destroy(frg_soap *soap)
{
    if (!soap) {
        return;
    }
    frgi_soap_wait(soap);
    frg_context *const ctx = soap->ctx;
    drop_plan(soap);
    frgi_soap_eigh_close(soap);
    for (int64_t i = 0; i < soap->n_params; i++) {
        drop_param(soap, &soap->params[i]);
    }
    DROP(ctx, &soap->params);
    DROP(ctx, &soap->groups);
    DROP(ctx, &soap);
}

frg_status frg_soap_add_group(frg_soap *soap, const frg_soap_opts *o, int *group)
{
    if (!soap) {
        FAIL(NULL, E_ARG, "soap is NULL");
    }
    frgi_soap_wait(soap);
    frg_context *const ctx = soap->ctx;
    REQUIRE(ctx, o, "the options of a group are NULL");
    frg_soap_opts taken;
    frg_soap_defaults(&taken, sizeof taken, FRG_SOAP_EMERGING);
    TRY(frgi_take_opts(ctx, &taken, sizeof taken, o));
    TRY(frgi_soap_check(ctx, &taken));
    if (soap->n_groups == soap->groups_capacity) {
        TRY(GROW(ctx, &soap->groups, 2 * soap->groups_capacity + 2, "groups"));
        soap->groups_capacity = 2 * soap->groups_capacity + 2;
    }
    soap->groups[soap->n_groups] = taken;
    if (group) {
        *group = (int)soap->n_groups;
    }
    soap->n_groups++;
    return FRG_OK;
}

static frg_status check_group(const frg_soap *soap, int group)
{
    if (!soap) {
        FAIL(NULL, E_ARG, "soap is NULL");
    }
    REQUIRE(soap->ctx, group >= 0 && group < soap->n_groups, "group is %d, there are 0 .. %lld",
            group, (long long)soap->n_groups - 1);
    return FRG_OK;
}

frg_status frg_soap_get_group(const frg_soap *soap, int group, frg_soap_opts *o, size_t struct_size)
{
    TRY(check_group(soap, group));
    REQUIRE(soap->ctx, o, "o is NULL");
    const size_t bytes = struct_size < sizeof *o ? struct_size : sizeof *o;
    frg_soap_opts copy = soap->groups[group];
    copy.struct_size = bytes;
    memcpy(o, &copy, bytes);
    return FRG_OK;
}

enum { MOST_STEPS = 1024 };

/** Over how many steps a staggered group's refreshes are dealt: the frequency, the largest of a
 *  table, MOST_STEPS for a function.  A refresh_offset counts modulo the step's frequency. */
static int64_t stagger_interval(const frg_soap_opts *o)
{
    int64_t most = o->frequency ? MOST_STEPS : o->precondition_frequency;
    for (int64_t i = 0; i < o->n_frequencies && o->frequencies; i++) {
        most = o->frequencies[i][1] > most ? o->frequencies[i][1] : most;
    }
    return most < MOST_STEPS ? most : MOST_STEPS;
}

/** What was laid out when parameters were added cannot change any more. */
static frg_status check_layout(frg_context *ctx, const frg_soap_opts *a, const frg_soap_opts *b)
{
    const struct {
        const char *name;
        int64_t is, was;
    } rows[] = {
        {"precondition_1d", a->precondition_1d, b->precondition_1d},
        {"max_precond_dim", a->max_precond_dim, b->max_precond_dim},
        {"block_dim", a->block_dim, b->block_dim},
        {"merge_dims", a->merge_dims, b->merge_dims},
        {"merge_rule", a->merge_rule, b->merge_rule},
        {"profile", a->profile, b->profile},
        {"order", a->order, b->order},
        {"use_kl_shampoo", a->use_kl_shampoo, b->use_kl_shampoo},
        {"moment2_order", a->moment2_order, b->moment2_order},
        {"warmup_v", a->warmup_v, b->warmup_v},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        REQUIRE(ctx, rows[i].is == rows[i].was,
                "%s cannot change after parameters were added; make another group", rows[i].name);
    }
    return FRG_OK;
}

frg_status frg_soap_set_group(frg_soap *soap, int group, const frg_soap_opts *o)
{
    TRY(check_group(soap, group));
    REQUIRE(soap->ctx, o, "the options of a group are NULL");
    frgi_soap_wait(soap);
    frg_soap_opts taken = soap->groups[group];
    TRY(frgi_take_opts(soap->ctx, &taken, sizeof taken, o));
    TRY(frgi_soap_check(soap->ctx, &taken));
    bool used = false;
    for (int64_t i = 0; i < soap->n_params; i++) {
        used |= soap->params[i]->group == group;
    }
    if (used) {
        TRY(check_layout(soap->ctx, &taken, &soap->groups[group]));
    }
    const frg_soap_opts *const was = &soap->groups[group];
    if (taken.qr_method != was->qr_method || taken.stagger != was->stagger ||
        (taken.stagger && stagger_interval(&taken) != stagger_interval(was))) {
        soap->plan.ready = false;
    }
    soap->groups[group] = taken;
    return FRG_OK;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/** Is w a stack of matrices that becomes one? */
static bool stacks(const frg_soap_opts *o, const frg_array *w)
{
    return o->merge_dims && o->merge_rule == FRG_MERGE_STACKED && w->ndim == 3;
}

/** b matrices of m x n: b m x n, or m x b n where n <= m. */
static void stack_matrices(soap_param *p)
{
    const ptrdiff_t b = (ptrdiff_t)p->w.shape[0], m = (ptrdiff_t)p->w.shape[1],
                    n = (ptrdiff_t)p->w.shape[2];
    p->stacked = true;
    p->swapped = n <= m;
    p->axes = 2;
    p->dims[0] = p->swapped ? m : b * m;
    p->dims[1] = p->swapped ? b * n : n;
}

/** Sizes after merging.  Left: axes join while their product stays within the limit; fan-in: axis 0
 *  stays, the others are joined from the right. */
static void merge_axes(const frg_soap_opts *o, soap_param *p)
{
    if (stacks(o, &p->w)) {
        stack_matrices(p);
        return;
    }
    const bool merges = o->merge_dims && o->merge_rule != FRG_MERGE_STACKED;
    const int64_t limit = o->max_precond_dim < 0 ? INT64_MAX : o->max_precond_dim;
    int64_t sizes[FRG_MAX_DIM];
    int n = 0;
    const int ndim = p->w.ndim;
    const bool from_right = o->merge_rule == FRG_MERGE_FAN_IN;
    for (int k = 0; k < ndim; k++) {
        const int64_t size = p->w.shape[from_right ? ndim - 1 - k : k];
        const bool joins = merges && n > 0 && !(from_right && k == ndim - 1) &&
                           size <= limit / (sizes[n - 1] > 0 ? sizes[n - 1] : 1);
        if (joins) {
            sizes[n - 1] *= size;
        } else {
            sizes[n++] = size;
        }
    }
    p->axes = n;
    for (int k = 0; k < n; k++) {
        p->dims[k] = (ptrdiff_t)sizes[from_right ? n - 1 - k : k];
    }
}

/** Would an axis have a factor, were it short enough?  Parameters of one axis have some with
 *  precondition_1d alone; axes that merge into one are none of these. */
static bool wants_factor(const frg_soap_opts *o, const soap_param *p, int axis)
{
    return p->count > 0 && p->dims[axis] > 1 && o->max_precond_dim != 0 &&
           (p->w.ndim > 1 || o->precondition_1d);
}

static bool too_long(const frg_soap_opts *o, const soap_param *p, int axis)
{
    return o->max_precond_dim >= 0 && p->dims[axis] > o->max_precond_dim;
}

static int blocks_of(const frg_soap_opts *o, const soap_param *p, int axis)
{
    if (!wants_factor(o, p, axis) || too_long(o, p, axis)) {
        return 0;
    }
    return o->block_dim > 0 ? (int)((p->dims[axis] - 1) / o->block_dim + 1) : 1;
}

/** The arrays of a state; runs twice over the arena p->state (see core.h). */
static void layout_param(const frg_soap_opts *o, soap_param *p)
{
    frgi_arena *const a = &p->state;
    const bool rotates =
        o->moment2_order == FRG_MOMENT2_ROTATE || o->warmup_v == FRG_WARMUP_V_ROTATE;
    p->m = TAKE(a, float, p->count);
    p->v = TAKE(a, float, p->count);
    for (int i = 0; i < p->n_factors; i++) {
        soap_factor *const f = &p->factors[i];
        const size_t square = frgi_mul((size_t)f->size, (size_t)f->size);
        f->k = TAKE(a, float, square);
        f->q = TAKE(a, float, square);
        f->rotation = rotates ? TAKE(a, float, square) : NULL;
        f->lambda = TAKE(a, double, f->size);
        f->order = TAKE(a, int32_t, f->size);
    }
}

frg_status frgi_soap_check_id(const frg_soap *soap, int64_t id)
{
    if (!soap) {
        FAIL(NULL, E_ARG, "soap is NULL");
    }
    REQUIRE(soap->ctx, id >= 0 && id < soap->n_params,
            "id is %lld, the optimizer has %lld parameters, numbered from 0", (long long)id,
            (long long)soap->n_params);
    return FRG_OK;
}

void frgi_soap_clear(soap_param *p)
{
    memset(p->state.base, 0, p->state.bytes);
    p->step = p->generation = p->m_generation = 0;
    p->exponent = 0;
    p->started = false;
    for (int i = 0; i < p->n_factors; i++) {
        soap_factor *const f = &p->factors[i];
        for (ptrdiff_t j = 0; j < f->size; j++) {
            f->q[j * f->size + j] = 1;
            f->order[j] = (int32_t)j;
        }
        f->decompose_again = false;
    }
}

static frg_status check_param(frg_soap *soap, const frg_array *w, const frg_soap_opts *o)
{
    frg_context *const ctx = soap->ctx;
    REQUIRE(ctx, w->ndim >= 0 && w->ndim <= FRG_MAX_DIM, "w has %d axes, at most %d are possible",
            w->ndim, FRG_MAX_DIM);
    TRY(frgi_array_check(ctx, w, "w", w->ndim, SOAP_TYPES));
    const bool empty = frgi_soap_is_empty(w);
    for (int d = 0; d < w->ndim; d++) {
        REQUIRE(ctx, w->shape[d] <= INT32_MAX / 64, "axis %d of w has length %lld, at most %d", d,
                (long long)w->shape[d], INT32_MAX / 64);
        REQUIRE(ctx, empty || w->shape[d] <= 1 || w->stride[d] != 0, "axis %d of w has stride 0",
                d);
    }
    const bool matrices = w->ndim == 2 || stacks(o, w);
    if (stacks(o, w)) {
        const int64_t shorter = w->shape[1] < w->shape[2] ? w->shape[1] : w->shape[2];
        const int64_t merged = w->shape[0] * shorter;
        REQUIRE(ctx, merged <= INT32_MAX / 64,
                "w is a stack whose shorter axes come to %lld, at most %d", (long long)merged,
                INT32_MAX / 64);
    }
    if (o->use_kl_shampoo && !matrices) {
        FAIL(ctx, E_SHAPE, "use_kl_shampoo takes parameters of two axes, w has %d", w->ndim);
    }
    if (o->profile == FRG_SOAP_EMERGING_04 && !matrices && o->max_precond_dim != 0) {
        FAIL(ctx, E_SHAPE,
             "the profile emerging-0.4 takes matrices and stacks of them, w has %d axes; put it "
             "into a group with max_precond_dim 0",
             w->ndim);
    }
    return FRG_OK;
}

static frg_status build_param(frg_context *ctx, const frg_soap_opts *o, soap_param *p,
                              const char *name, int64_t number)
{
    char made[32];
    snprintf(made, sizeof made, "param.%lld", (long long)number);
    const char *const called = name ? name : made;
    TRY(frgi_strdup(ctx, &p->name, called, strlen(called)));
    p->count = 1;
    for (int d = 0; d < p->w.ndim; d++) {
        p->count *= (ptrdiff_t)p->w.shape[d];
    }
    merge_axes(o, p);
    if (o->use_kl_shampoo && p->axes != 2) {
        FAIL(ctx, E_SHAPE,
             "use_kl_shampoo takes parameters of two axes, merge_dims makes one of those of '%s': "
             "set merge_dims to 0 for its group",
             called);
    }
    for (int axis = 0; axis < p->axes; axis++) {
        p->n_factors += blocks_of(o, p, axis);
        p->long_axes += wants_factor(o, p, axis) && too_long(o, p, axis);
    }
    TRY(NEW0(ctx, &p->factors, p->n_factors, "factors"));
    soap_factor *f = p->factors;
    for (int axis = 0; axis < p->axes; axis++) {
        const int blocks = blocks_of(o, p, axis);
        const ptrdiff_t step = o->block_dim > 0 ? (ptrdiff_t)o->block_dim : p->dims[axis];
        for (int b = 0; b < blocks; b++, f++) {
            const ptrdiff_t left = p->dims[axis] - b * step;
            *f = (soap_factor){.axis = axis, .at = b * step, .size = left < step ? left : step};
            if (f->size > SOAP_ORDER) {
                FAIL(ctx, E_SHAPE,
                     "axis %d of '%s' would have a factor of order %lld, at most %d: set "
                     "max_precond_dim or block_dim",
                     axis, called, (long long)f->size, SOAP_ORDER);
            }
        }
    }
    layout_param(o, p); /* counts */
    p->state_bytes = p->state.used;
    p->state = (frgi_arena){0};
    if (p->state_bytes > frgi_memory_allowed(ctx)) {
        FAIL(ctx, E_MEMORY, "%zu bytes for the state of '%s' are more than the %zu that there are",
             p->state_bytes, called, frgi_memory_allowed(ctx));
    }
    return FRG_OK;
}

static frg_status open_state(frg_soap *soap, soap_param *p)
{
    p->state = (frgi_arena){.used = p->state_bytes};
    TRY(frgi_arena_open(&p->state, soap->ctx, "the state of a parameter"));
    frgi_soap_lay_out(soap, p);
    return FRG_OK;
}

void frgi_soap_lay_out(const frg_soap *soap, soap_param *p)
{
    layout_param(&soap->groups[p->group], p);
    frgi_soap_clear(p);
}

static void close_state(frg_soap *soap, soap_param *p)
{
    frgi_arena_close(&p->state, soap->ctx);
}

const soap_steps frgi_soap_host_steps = {.open = open_state,
                                         .close = close_state,
                                         .run = frgi_soap_run,
                                         .norm = frgi_soap_norm,
                                         .rescale = frgi_soap_rescale,
                                         .eigh_f64 = frgi_soap_eigh_f64};

frg_status frgi_soap_open(frg_soap *soap)
{
    frgi_soap_wait(soap);
    for (; soap->n_open < soap->n_params; soap->n_open++) {
        TRY(soap->steps->open(soap, soap->params[soap->n_open]));
    }
    return FRG_OK;
}

frg_status frg_soap_add_param(frg_soap *soap, int group, frg_array w, const char *name, int64_t *id)
{
    TRY(check_group(soap, group));
    frgi_soap_wait(soap);
    frg_context *const ctx = soap->ctx;
    const frg_soap_opts *const o = &soap->groups[group];
    TRY(check_param(soap, &w, o));
    const soap_param *const owner = frgi_soap_owner(soap, &w);
    if (owner) {
        FAIL(ctx, E_ALIAS, "w of %s shares memory with the parameter '%s'",
             name ? name : "the parameter", owner->name);
    }
    if (soap->n_params == soap->params_capacity) {
        TRY(GROW(ctx, &soap->params, 2 * soap->params_capacity + 16, "parameters"));
        soap->params_capacity = 2 * soap->params_capacity + 16;
    }
    soap_param *p = NULL;
    TRY(NEW0(ctx, &p, 1, "a parameter"));
    p->group = group;
    p->w = w;
    p->range = frgi_soap_range(&w);
    const frg_status status = build_param(ctx, o, p, name, soap->n_params);
    if (status < 0) {
        drop_param(soap, &p);
        return status;
    }
    if (id) {
        *id = soap->n_params;
    }
    soap->params[soap->n_params++] = p;
    soap->plan.ready = false;
    return FRG_OK;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/** Most work first, by Shell's sort.  The order of equal ones decides the turns of staggered
 *  refreshes, and so their bits: it must stay. */
static void sort_by_cost(soap_task *tasks, int64_t n)
{
    int64_t gap = 1;
    while (gap < n / 3) {
        gap = 3 * gap + 1;
    }
    for (; gap > 0; gap /= 3) {
        for (int64_t i = gap; i < n; i++) {
            const soap_task x = tasks[i];
            int64_t j = i;
            for (; j >= gap && tasks[j - gap].cost < x.cost; j -= gap) {
                tasks[j] = tasks[j - gap];
            }
            tasks[j] = x;
        }
    }
}

/** Refreshes of staggered groups are dealt to the steps of the interval, the dearest first, each to
 *  the step that has least so far. */
static void stagger_refreshes(frg_soap *soap)
{
    for (int64_t g = 0; g < soap->n_groups; g++) {
        const frg_soap_opts *const o = &soap->groups[g];
        double load[MOST_STEPS] = {0};
        const int64_t f = stagger_interval(o);
        for (int64_t i = 0; o->stagger && i < soap->plan.n_factors; i++) {
            const soap_task *const t = &soap->plan.factor_tasks[i];
            if (t->param->group != g) {
                continue;
            }
            int64_t least = 0;
            for (int64_t s = 1; s < f; s++) {
                least = load[s] < load[least] ? s : least;
            }
            const double n = (double)t->factor->size;
            load[least] += n * n * n;
            t->factor->refresh_offset = least;
        }
    }
}

/** Sizes of the largest parameter and factor, and how many factors there are. */
typedef struct {
    ptrdiff_t count, size;
    int64_t factors;
} extent;

static extent extent_of(const frg_soap *soap)
{
    extent e = {0};
    for (int64_t i = 0; i < soap->n_params; i++) {
        const soap_param *const p = soap->params[i];
        e.factors += p->n_factors;
        e.count = p->count > e.count ? p->count : e.count;
        for (int k = 0; k < p->n_factors; k++) {
            e.size = p->factors[k].size > e.size ? p->factors[k].size : e.size;
        }
    }
    return e;
}

/** The workspace of thread t. */
static soap_workspace layout_workspace(const frg_soap *soap, frgi_arena *a, int t, const extent *e)
{
    const frgi_product_way way = frgi_product_way_of(soap->ctx);
    soap_workspace work = {.team = 1};
    if (e->size > 0) {
        const int team = t == 0 ? soap->threads : 1; /* it leads where all take part */
        frgi_qr_extent largest = {0};
        frgi_qr_extend(&largest, e->size, e->size);
        frgi_qr_workspace_take(a, &work.qr, way, false, &largest, team, true, true, false);
    }
    frgi_product_workspace_take(a, &work.product, way);
    work.g = TAKE(a, float, e->count);
    work.x = TAKE(a, float, 2 * e->count);
    work.y = TAKE(a, float, 2 * e->count);
    return work;
}

static size_t task_bytes(const frg_soap *soap, int64_t factors)
{
    return (size_t)(factors + soap->n_params) * sizeof(soap_task);
}

size_t frgi_soap_plan_bytes(const frg_soap *soap)
{
    frgi_arena counted = {0};
    const extent e = extent_of(soap);
    for (int t = 0; t < soap->threads; t++) {
        (void)layout_workspace(soap, &counted, t, &e);
    }
    return frgi_add(counted.used, task_bytes(soap, e.factors));
}

frg_status frgi_soap_plan(frg_soap *soap)
{
    TRY(frgi_soap_open(soap));
    if (soap->plan.ready) {
        return FRG_OK;
    }
    frg_context *const ctx = soap->ctx;
    drop_plan(soap);
    const extent e = extent_of(soap);
    const int64_t n = e.factors;
    TRY(NEW(ctx, &soap->plan.factor_tasks, n, "tasks"));
    TRY(NEW(ctx, &soap->plan.param_tasks, soap->n_params, "tasks"));
    TRY(NEW(ctx, &soap->plan.costs, n > soap->n_params ? n : soap->n_params, "tasks"));
    TRY(NEW(ctx, &soap->plan.ranges, soap->n_params, "ranges"));
    TRY(NEW0(ctx, &soap->plan.workspaces, soap->threads, "workspaces"));
    frgi_soap_note_ranges(soap);
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        double sizes = 1;
        for (int k = 0; k < p->n_factors; k++) {
            const double d = (double)p->factors[k].size;
            sizes += d;
            soap->plan.factor_tasks[soap->plan.n_factors++] =
                (soap_task){p, &p->factors[k], 5 * d * d * d + d * (double)p->count};
        }
        soap->plan.param_tasks[i] = (soap_task){p, NULL, sizes * (double)p->count};
    }
    sort_by_cost(soap->plan.factor_tasks, soap->plan.n_factors);
    sort_by_cost(soap->plan.param_tasks, soap->n_params);
    stagger_refreshes(soap);
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < soap->threads; t++) {
            soap->plan.workspaces[t] = layout_workspace(soap, &soap->plan.arena, t, &e);
        }
        if (pass == 0) {
            TRY(frgi_arena_open(&soap->plan.arena, ctx, "room for the threads of an optimizer"));
        }
    }
    soap->plan.ready = true;
    return FRG_OK;
}

size_t frg_soap_state_bytes(const frg_soap *soap)
{
    size_t sum = 0;
    for (int64_t i = 0; soap && i < soap->n_params; i++) {
        sum = frgi_add(sum, soap->params[i]->state_bytes);
    }
    return sum;
}

size_t frg_soap_bytes(const frg_soap *soap)
{
    if (!soap) {
        return 0;
    }
    size_t states = 0;
    for (int64_t i = 0; i < soap->n_open; i++) {
        states += soap->params[i]->state.bytes;
    }
    const size_t tasks = soap->plan.ready ? task_bytes(soap, soap->plan.n_factors) : 0;
    return states + soap->plan.arena.bytes + soap->eigh.arena.bytes + tasks;
}
