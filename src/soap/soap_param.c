/* soap_param.c - parameters: what is taken of a caller, how axes merge and which have factors, and
 * the memory of a state: m, v, and K, Q of every factor. */
#include <stdio.h>
#include <string.h>

#include "soap/soap_state.h"

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
    TRY(frgi_soap_check_group(soap, group));
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
        frgi_soap_drop_param(soap, &p);
        return status;
    }
    if (id) {
        *id = soap->n_params;
    }
    soap->params[soap->n_params++] = p;
    soap->plan.ready = false;
    return FRG_OK;
}

void frgi_soap_drop_param(frg_soap *soap, soap_param **at)
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
