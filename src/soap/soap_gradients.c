/* soap_gradients.c - the gradients of a step: checked, measured, and what is done about those that
 * are NaN, infinite or too large. */
#include <math.h>
#include <omp.h>

#include "soap/soap_state.h"

static frg_status check_gradient(const frg_soap *soap, const soap_param *p, const frg_array *g)
{
    frg_context *const ctx = soap->ctx;
    frgi_at(ctx, "%s", p->name);
    TRY(frgi_array_check(ctx, g, "the gradient", p->w.ndim, SOAP_TYPES));
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

static void measure_gradients(frg_soap *soap)
{
    enum { ELEMENT = 8 }; /* reading one takes as long as so many multiply-adds */
    double work = 0;
    for (int64_t i = 0; i < soap->n_params; i++) {
        work += soap->params[i]->grad ? ELEMENT * (double)soap->params[i]->count : 0;
    }
    const int team = frgi_soap_team_for(soap, work);
#pragma omp parallel for schedule(dynamic, 1) num_threads(team)
    for (int64_t i = 0; i < soap->n_params; i++) {
        if (soap->plan.param_tasks[i].param->grad) {
            measure_gradient(soap, soap->plan.param_tasks[i].param,
                             &soap->plan.workspaces[omp_get_thread_num()]);
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

frg_status frgi_soap_take_gradients(frg_soap *soap, const frg_array grads[], int64_t n,
                                    frg_soap_report *report)
{
    TRY(check_gradients(soap, grads, n));
    measure_gradients(soap);
    return apply_policies(soap, report);
}

/** Gradients beyond 2^40 are divided by a power of two, 2^exponent, and moments and factors by it
 *  or its square, so that squares stay in range.  The exponent never shrinks again: what such a
 *  gradient left in the averages is as large. */
void frgi_soap_fit_range(frg_soap *soap)
{
    static const int most = 40;
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        int exponent;
        if (p->grad && isfinite(p->largest)) {
            (void)frexp(p->largest, &exponent);
            if (exponent - p->exponent > most) {
                soap->steps->rescale(soap, p, exponent);
            }
        }
    }
}
