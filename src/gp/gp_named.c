/* gp_named.c - parameters by their names: where they are, and another value or other bounds for
 * them.
 *
 * What was not possible leaves everything as it was.  A value goes to the whole of a tied group,
 * bounds belong to the parameter alone: a fit stays within those of all.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gp/gp_process.h"

/** E_PARAMETER with the names that there are. */
static frg_status refuse_name(const frg_gp *gp, const char *name)
{
    const frgi_gp_params *const ps = &gp->model.params;
    char names[640] = "none";
    for (int i = 0, used = 0; i < ps->count && used < (int)sizeof names; i++) {
        if (ps->p[i].entry <= 0) {
            used += snprintf(names + used, sizeof names - (size_t)used, "%s%s", i > 0 ? ", " : "",
                             ps->p[i].name);
        }
    }
    FAIL(gp->ctx, E_PARAMETER, "there is no parameter '%s'; there are: %s", name, names);
}

frg_status frg_gp_find_parameter(const frg_gp *gp, const char *name, int *first, int *entries)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    const frgi_gp_params *const ps = &gp->model.params;
    REQUIRE(gp->ctx, name && first, "name or first is NULL");
    int i = 0, end;
    while (i < ps->count && strcmp(ps->p[i].name, name) != 0) {
        i++;
    }
    if (i == ps->count) {
        return refuse_name(gp, name);
    }
    for (end = i + 1; end < ps->count && ps->p[end].entry > 0; end++) {
    }
    *first = i;
    if (entries) {
        *entries = end - i;
    }
    return FRG_OK;
}

/** Other bounds for p: NaN stays.  GPyTorch's parameters are transformed by what their bounds
 *  are. */
static frg_status set_bounds(const frgi_gp_params *ps, int i, double lower, double upper)
{
    frgi_gp_param *const p = &ps->p[i];
    char label[96];
    frgi_gp_params_label(ps, i, label);
    p->lower = isnan(lower) ? p->lower : lower;
    p->upper = isnan(upper) ? p->upper : upper;
    if (!(p->lower < p->upper) || (p->lower < 0 && !p->per_value)) {
        frgi_at(ps->ctx, "%s", label);
        FAIL(ps->ctx, E_PARAMETER, "bounds of %s are %g and %g: expected lower < upper%s", label,
             p->lower, p->upper, p->per_value ? "" : ", and none below 0");
    }
    const bool closed = isfinite(p->lower) && isfinite(p->upper);
    if (p->transform == FRG_GP_SOFTPLUS || p->transform == FRG_GP_INTERVAL) {
        p->transform = closed ? FRG_GP_INTERVAL : FRG_GP_SOFTPLUS;
    }
    p->bounded = closed && p->lower > 0; /* as the text can say it */
    return FRG_OK;
}

/** One change, into the list and into theta. */
static frg_status change(frg_gp *gp, const frg_gp_change *c, double *theta)
{
    int first, entries;
    TRY(frg_gp_find_parameter(gp, c->name, &first, &entries));
    frgi_gp_params *const ps = &gp->model.params;
    REQUIRE(gp->ctx, c->entry >= -1 && c->entry < entries, "%s has %d entr%s, %d is none of them",
            c->name, entries, entries == 1 ? "y" : "ies", c->entry);
    const int begin = first + (c->entry < 0 ? 0 : c->entry);
    const int end = c->entry < 0 ? first + entries : begin + 1;
    for (int i = begin; i < end; i++) {
        if (!isnan(c->lower) || !isnan(c->upper)) {
            TRY(set_bounds(ps, i, c->lower, c->upper));
        }
        if (!isnan(c->value)) {
            theta[frgi_gp_params_leader(ps, i)] = c->value;
        }
    }
    return FRG_OK;
}

static frg_status change_all(frg_gp *gp, const frg_gp_change *changes, int count, double *theta)
{
    for (int k = 0; k < count; k++) {
        TRY(change(gp, &changes[k], theta));
    }
    frgi_gp_params_follow(&gp->model.params, theta);
    TRY(frgi_gp_params_check(&gp->model.params, theta));
    return frgi_gp_params_check_priors(&gp->model.params, theta, true);
}

frg_status frg_gp_update_named(frg_gp *gp, const frg_gp_change *changes, int count)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    REQUIRE(gp->ctx, count >= 0 && (changes || count == 0), "changes is NULL, or count is %d",
            count);
    const frgi_gp_params *const ps = &gp->model.params;
    const size_t all = (size_t)ps->count;
    frgi_gp_param *before;
    double *theta = NULL;
    TRY(NEW(gp->ctx, &before, all, "the parameters before a change"));
    frg_status status = NEW(gp->ctx, &theta, all, "the parameters after a change");
    if (status == FRG_OK) {
        memcpy(before, ps->p, all * sizeof *before);
        memcpy(theta, gp->model.theta, all * sizeof *theta);
        status = change_all(gp, changes, count, theta);
        if (status < 0) {
            memcpy(ps->p, before, all * sizeof *before);
        } else {
            status = frg_gp_update_parameters(gp, theta);
        }
    }
    DROP(gp->ctx, &theta);
    DROP(gp->ctx, &before);
    return status;
}
