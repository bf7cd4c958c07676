/* soap_views.c - parts of the state by the names and conventions of other packages'
 * checkpoints.
 *
 * exp_avg and exp_avg_sq stand in the bases, columns in descending order of the eigenvalues,
 * whatever the handle stores; a power of two taken off huge gradients is put back.  Setting a part
 * first applies the permutation of the parameter, so that bases and moments that are set one after
 * the other belong together: set bases first. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "linalg/half.h"
#include "soap/soap_state.h"

typedef enum {
    STATE_NONE,
    STATE_STEP,
    STATE_M,
    STATE_M_PLAIN,
    STATE_V,
    STATE_K,
    STATE_Q,
    STATE_LAMBDA
} tensor_kind;

typedef struct {
    tensor_kind kind;
    soap_factor *factor;
} state_tensor;

/** "3" or "3.1" after a dot: axis and block. */
static bool read_place(const char *text, int *axis, int *block)
{
    *axis = *block = 0;
    if (*text < '0' || *text > '9') {
        return false;
    }
    while (*text >= '0' && *text <= '9' && *axis < 1000) {
        *axis = 10 * *axis + (*text++ - '0');
    }
    if (*text == '.' && text[1] >= '0' && text[1] <= '9') {
        text++;
        while (*text >= '0' && *text <= '9' && *block < 100000) {
            *block = 10 * *block + (*text++ - '0');
        }
    }
    return *text == '\0';
}

static soap_factor *factor_at(const soap_param *p, int axis, int block)
{
    for (int i = 0; i < p->n_factors; i++) {
        if (p->factors[i].axis == axis && block-- == 0) {
            return &p->factors[i];
        }
    }
    return NULL;
}

static const struct {
    const char *key;
    tensor_kind kind;
    int axis; /* -1: none, -2: a number follows */
} KEYS[] = {
    {"step", STATE_STEP, -1},
    {"exp_avg", STATE_M, -1},
    {"exp_avg.plain", STATE_M_PLAIN, -1},
    {"exp_avg_sq", STATE_V, -1},
    {"GG.", STATE_K, -2},
    {"Q.", STATE_Q, -2},
    {"eig.", STATE_LAMBDA, -2},
    {"L", STATE_K, 0},
    {"R", STATE_K, 1},
    {"Q_L", STATE_Q, 0},
    {"Q_R", STATE_Q, 1},
    {"eigvals_L", STATE_LAMBDA, 0},
    {"eigvals_R", STATE_LAMBDA, 1},
};

static frg_status find_tensor(frg_soap *soap, int64_t id, const char *key, soap_param **p,
                              state_tensor *out)
{
    TRY(frgi_soap_check_id(soap, id));
    frgi_soap_wait(soap);
    frg_context *const ctx = soap->ctx;
    REQUIRE(ctx, key, "key is NULL");
    *p = soap->params[id];
    *out = (state_tensor){STATE_NONE, NULL};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const size_t length = strlen(KEYS[i].key);
        int axis = KEYS[i].axis, block = 0;
        if (axis == -2
                ? strncmp(key, KEYS[i].key, length) != 0 || !read_place(key + length, &axis, &block)
                : strcmp(key, KEYS[i].key) != 0) {
            continue;
        }
        out->kind = KEYS[i].kind;
        if (axis >= 0) {
            out->factor = factor_at(*p, axis, block);
            out->kind = out->factor ? out->kind : STATE_NONE;
        }
        return FRG_OK;
    }
    FAIL(ctx, E_OPTION,
         "there is no part '%s' of the state; parts are step, exp_avg, exp_avg.plain, "
         "exp_avg_sq, GG.i, Q.i, eig.i, and for two axes L, R, Q_L, Q_R, eigvals_L, eigvals_R",
         key);
}

static frg_array shape_of(const soap_param *p, const state_tensor *x)
{
    frg_array a = {.dtype = FRG_F32};
    switch (x->kind) {
    case STATE_NONE:
        break;
    case STATE_STEP:
        a.ndim = 1;
        a.shape[0] = a.stride[0] = 1;
        a.dtype = FRG_I64;
        break;
    case STATE_M:
    case STATE_M_PLAIN:
    case STATE_V:
        a.ndim = p->stacked ? p->axes : p->w.ndim;
        for (int d = 0; d < a.ndim; d++) {
            a.shape[d] = p->stacked ? (int64_t)p->dims[d] : p->w.shape[d];
        }
        break;
    case STATE_LAMBDA:
        a.ndim = 1;
        a.shape[0] = x->factor->size;
        break;
    case STATE_K:
    case STATE_Q:
        a.ndim = 2;
        a.shape[0] = a.shape[1] = x->factor->size;
        break;
    }
    int64_t stride = 1;
    for (int d = a.ndim - 1; d >= 0; d--) {
        a.stride[d] = stride;
        stride *= a.shape[d];
    }
    return a;
}

frg_status frg_soap_reset(frg_soap *soap, int64_t id)
{
    soap_param *p = NULL;
    state_tensor step;
    TRY(find_tensor(soap, id, "step", &p, &step));
    TRY(frgi_soap_open(soap));
    frgi_soap_clear(p);
    return FRG_OK;
}

frg_status frg_soap_state_shape(frg_soap *soap, int64_t id, const char *key, frg_array *shape)
{
    soap_param *p;
    state_tensor x;
    TRY(find_tensor(soap, id, key, &p, &x));
    REQUIRE(soap->ctx, shape, "shape is NULL");
    *shape = shape_of(p, &x);
    return FRG_OK;
}

static frg_status check_there(frg_soap *soap, const soap_param *p, const state_tensor *x,
                              const char *key)
{
    if (x->kind == STATE_NONE) {
        FAIL(soap->ctx, E_SHAPE, "'%s' has no part %s", p->name, key);
    }
    return FRG_OK;
}

static frg_status check_array(frg_soap *soap, const soap_param *p, const state_tensor *x,
                              const char *key, const frg_array *a)
{
    const frg_array want = shape_of(p, x);
    frg_context *const ctx = soap->ctx;
    TRY(check_there(soap, p, x, key));
    const unsigned types =
        1u << FRG_F32 | 1u << FRG_F64 | (x->kind == STATE_STEP ? 1u << FRG_I64 : 0);
    TRY(frgi_array_check(ctx, a, key, want.ndim, types));
    for (int d = 0; d < want.ndim; d++) {
        if (a->shape[d] != want.shape[d]) {
            FAIL(ctx, E_SHAPE, "axis %d of %s has length %lld, expected %lld", d, key,
                 (long long)a->shape[d], (long long)want.shape[d]);
        }
    }
    return frgi_soap_plan(soap);
}

/** Element (i, j) of an array of one or two axes. */
static char *place(const frg_array *a, int64_t i, int64_t j)
{
    const int64_t at = i * a->stride[0] + (a->ndim > 1 ? j * a->stride[1] : 0);
    return frgi_array_base(a) + at * (int64_t)frg_sizeof(a->dtype);
}

static void put(const frg_array *a, int64_t i, int64_t j, double x)
{
    char *const at = place(a, i, j);
    if (a->dtype == FRG_I64) {
        const int64_t n = (int64_t)x;
        memcpy(at, &n, sizeof n);
    } else {
        frgi_element_put(at, a->dtype, x);
    }
}

static double get(const frg_array *a, int64_t i, int64_t j)
{
    const char *const at = place(a, i, j);
    if (a->dtype == FRG_I64) {
        int64_t n;
        memcpy(&n, at, sizeof n);
        return (double)n;
    }
    return frgi_element_get(at, a->dtype);
}

/** The first moment in the bases, columns in their order. */
static const float *moment_in_bases(const soap_param *p, const soap_workspace *work)
{
    float *values = work->x;
    memcpy(values, p->m, (size_t)p->count * sizeof *values);
    if (p->m_generation == 0 && p->generation > 0) {
        values = frgi_soap_contract_all(p, work, SOAP_IN, 1, values, work->y);
    }
    return frgi_soap_in_order(p, values, values == work->x ? work->y : work->x);
}

/** The first moment in the parameter's own coordinates. */
static const float *moment_in_coordinates(const soap_param *p, const soap_workspace *work)
{
    memcpy(work->x, p->m, (size_t)p->count * sizeof *p->m);
    return p->m_generation == 0 ? work->x
                                : frgi_soap_contract_all(p, work, SOAP_OUT, 1, work->x, work->y);
}

/** A factor of the gradients as they are, over the one that is kept. */
static double factor_scale(const frg_soap *soap, const soap_param *p)
{
    return ldexp(1, frgi_soap_power(&soap->groups[p->group]) * p->exponent);
}

frg_status frg_soap_state_get(frg_soap *soap, int64_t id, const char *key, frg_array to)
{
    soap_param *p;
    state_tensor x;
    TRY(find_tensor(soap, id, key, &p, &x));
    TRY(check_array(soap, p, &x, key, &to));
    soap_workspace *const work = &soap->plan.workspaces[0];
    const soap_factor *const f = x.factor;
    const ptrdiff_t n = f ? f->size : 0;
    const double once = ldexp(1, p->exponent), unit = factor_scale(soap, p);
    switch (x.kind) {
    case STATE_NONE:
        break;
    case STATE_STEP:
        put(&to, 0, 0, (double)p->step);
        break;
    case STATE_M:
        frgi_soap_put(&to, once, moment_in_bases(p, work));
        break;
    case STATE_M_PLAIN:
        frgi_soap_put(&to, once, moment_in_coordinates(p, work));
        break;
    case STATE_V:
        memcpy(work->x, p->v, (size_t)p->count * sizeof *p->v);
        frgi_soap_put(&to, once * once, frgi_soap_in_order(p, work->x, work->y));
        break;
    case STATE_K:
        for (ptrdiff_t j = 0; j < n; j++) {
            for (ptrdiff_t i = j; i < n; i++) {
                put(&to, i, j, unit * (double)f->k[j * n + i]);
                put(&to, j, i, unit * (double)f->k[j * n + i]);
            }
        }
        break;
    case STATE_Q:
        for (ptrdiff_t j = 0; j < n; j++) {
            for (ptrdiff_t i = 0; i < n; i++) {
                put(&to, i, j, (double)f->q[f->order[j] * n + i]);
            }
        }
        break;
    case STATE_LAMBDA:
        for (ptrdiff_t j = 0; j < n; j++) {
            put(&to, j, 0, unit * f->lambda[f->order[j]]);
        }
        break;
    }
    return FRG_OK;
}

frg_status frg_soap_state_view(frg_soap *soap, int64_t id, const char *key, frg_soap_view *view)
{
    soap_param *p;
    state_tensor x;
    TRY(find_tensor(soap, id, key, &p, &x));
    REQUIRE(soap->ctx, view, "view is NULL");
    TRY(check_there(soap, p, &x, key));
    if (x.kind == STATE_M_PLAIN) {
        FAIL(soap->ctx, E_OPTION, "%s is not kept by itself: see frg_soap_state_get", key);
    }
    TRY(frgi_soap_open(soap));
    const soap_factor *const f = x.factor;
    const double once = ldexp(1, p->exponent), unit = factor_scale(soap, p);
    *view = (frg_soap_view){.array = shape_of(p, &x), .order = f ? f->order : NULL, .unit = 1};
    switch (x.kind) {
    case STATE_NONE:
    case STATE_M_PLAIN:
        break;
    case STATE_STEP:
        view->array.data = &p->step;
        break;
    case STATE_M:
        view->array.data = p->m;
        view->unit = once;
        view->in_bases = p->m_generation != 0;
        break;
    case STATE_V:
        view->array.data = p->v;
        view->unit = once * once;
        view->in_bases = p->generation > 0;
        break;
    case STATE_K:
    case STATE_Q:
        view->array =
            frg_matrix_columns(x.kind == STATE_K ? f->k : f->q, FRG_F32, f->size, f->size, f->size);
        view->unit = x.kind == STATE_K ? unit : 1;
        break;
    case STATE_LAMBDA:
        view->array = frg_vector(f->lambda, FRG_F64, f->size);
        view->unit = unit;
        break;
    }
    return FRG_OK;
}

static frg_status set_step(frg_soap *soap, soap_param *p, double step)
{
    REQUIRE(soap->ctx, step >= 0 && step <= 0x1p53 && step == floor(step),
            "step is %g, expected a whole number >= 0", step);
    p->step = (int64_t)step;
    p->started = p->started || step > 0;
    return FRG_OK;
}

frg_status frg_soap_state_set(frg_soap *soap, int64_t id, const char *key, frg_array from)
{
    soap_param *p;
    state_tensor x;
    TRY(find_tensor(soap, id, key, &p, &x));
    TRY(check_array(soap, p, &x, key, &from));
    if (x.kind == STATE_STEP) {
        return set_step(soap, p, get(&from, 0, 0));
    }
    frgi_soap_apply_permutation(p, &soap->plan.workspaces[0]);
    soap_factor *const f = x.factor;
    const ptrdiff_t n = f ? f->size : 0;
    const double once = ldexp(1, -p->exponent), unit = factor_scale(soap, p);
    if (x.kind == STATE_M || x.kind == STATE_M_PLAIN) {
        frgi_soap_take(&from, once, p->m);
        p->m_generation = x.kind == STATE_M ? p->generation : 0;
    } else if (x.kind == STATE_V) {
        frgi_soap_take(&from, once * once, p->v);
    }
    for (ptrdiff_t j = 0; j < n; j++) {
        if (x.kind == STATE_LAMBDA) {
            f->lambda[j] = get(&from, j, 0) / unit;
            continue;
        }
        for (ptrdiff_t i = 0; i < n; i++) {
            if (x.kind == STATE_K) {
                f->k[j * n + i] = (float)(get(&from, i, j) / unit);
            } else {
                f->q[j * n + i] = (float)get(&from, i, j);
            }
        }
    }
    if (x.kind == STATE_Q && p->generation == 0) {
        p->generation = 1;
        p->started = true;
    }
    return FRG_OK;
}
