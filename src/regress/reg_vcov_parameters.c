/* reg_vcov_parameters.c - K, the parameters that the small-sample rule counts.
 *
 * none: k; full: k + rank of the effects; nonnested: k + rank of the effects that no cluster
 * variable nests, at least 1 for the constant.  Slopes go with their effect, as in reghdfe and
 * FixedEffectModels.jl; fixest counts them under all three rules.  The rank is counted as --dof
 * says; naively it is fixest's sum of the levels - (Q - 1) - sum over the nested of (levels - 1).
 */
#include <string.h>

#include "fe/fe_demean.h"
#include "regress/reg_vcov.h"

/** Is a column of the effect's key also a whole cluster variable?  Then a cluster contains the
 *  level. */
static bool is_listed(const frgi_key *effect, const frgi_vcov_request *r)
{
    for (int k = 0; k < r->n; k++) {
        if (strcmp(effect->name, r->keys[k].name) == 0) {
            return true;
        }
        for (int c = 0; c < effect->n && r->keys[k].n == 1; c++) {
            if (effect->columns[c] == r->keys[k].columns[0]) {
                return true;
            }
        }
    }
    return false;
}

frg_status frgi_vcov_nested(const frgi_vcov_work *w, int q, bool *nested)
{
    const frg_fe *const f = w->f;
    const frgi_vcov_request *const r = &w->v->request;
    const int32_t *const codes = f->data.frame.codes + q * f->data.frame.n;
    int32_t *cluster;
    *nested = is_listed(&f->data.frame.keys[q], r);
    if (*nested) {
        return FRG_OK;
    }
    TRY(NEW(f->ctx, &cluster, f->data.frame.levels[q], "clusters of the levels"));
    for (int k = 0; k < r->n && !*nested; k++) {
        memset(cluster, 0xff, sizeof *cluster * (size_t)f->data.frame.levels[q]);
        *nested = true; /* ends at the first level that is not */
        for (int64_t i = 0; i < f->data.frame.n && *nested; i++) {
            int32_t *const at = &cluster[codes[i]];
            *nested = *at < 0 || *at == w->codes[k][i];
            *at = w->codes[k][i];
        }
    }
    DROP(f->ctx, &cluster);
    return FRG_OK;
}

frg_status frgi_vcov_plan(const frg_fe *f, uint64_t chosen, frg_demean **out)
{
    const int64_t n = f->data.frame.n;
    const int Q = f->data.frame.n_effects, n_slopes = f->data.formula.n_slopes;
    int32_t *codes = NULL;
    frg_slope *slopes = NULL;
    uint64_t no_intercept = 0;
    int count = 0, sloped = 0, place[FRGI_EFFECTS];
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &codes, n * Q, "codes"));
    TRY_TO(done, NEW(f->ctx, &slopes, n_slopes, "slopes"));
    for (int q = 0; q < Q; q++) {
        if (chosen >> q & 1) {
            no_intercept |= (uint64_t)!f->data.formula.effects[q].intercept << count;
            memcpy(codes + count * n, f->data.frame.codes + q * n, sizeof *codes * (size_t)n);
            place[q] = count++;
        }
    }
    for (int s = 0; s < n_slopes; s++) {
        const int q = f->data.formula.slopes[s].effect;
        if (chosen >> q & 1) {
            slopes[sloped++] = (frg_slope){.factor = place[q], .z = f->data.frame.slopes + s * n};
        }
    }
    const frg_array weights = frg_vector(f->data.frame.weights, FRG_F64, n);
    frg_demean_opts opts = f->policy.options.demean;
    opts.cond_limit = 0; /* slopes may be gone */
    opts.dtype = FRG_FE_F64;
    status = frgi_fe_demean_within(out, f->ctx, frg_matrix_columns(codes, FRG_I32, n, count, n),
                                   f->data.frame.weights ? &weights : NULL,
                                   &(fe_slopes_asked){sloped ? slopes : NULL, sloped, no_intercept},
                                   &opts);
done:
    DROP(f->ctx, &codes);
    DROP(f->ctx, &slopes);
    return status;
}

/** The rank of the effects in `chosen` alone; as it was where the count was stopped. */
static frg_status rank_of(const frg_fe *f, uint64_t chosen, double *rank)
{
    frg_demean *plan = NULL;
    frg_demean_rank found;
    TRY(frgi_vcov_plan(f, chosen, &plan));
    const frg_status status = frgi_fe_demean_rank(plan, &found);
    *rank = status == FRG_OK ? (double)found.rank : *rank;
    frg_demean_destroy(plan);
    return status;
}

/** K, and in *naive as it is without regard to linear dependence: 0 with slopes, which others count
 *  otherwise. */
frg_status frgi_vcov_parameters(const frgi_vcov_work *w, double *K, int64_t *naive)
{
    const frg_fe *const f = w->f;
    const int Q = f->data.frame.n_effects;
    *K = f->fit.k;
    *naive = f->data.formula.n_slopes > 0 ? 0 : f->fit.k;
    if (Q == 0 || w->v->ssc.fixef == SSC_NONE) {
        return FRG_OK;
    }
    int64_t levels = 0;
    uint64_t counted = 0;
    int n_counted = 0, last = 0;
    for (int q = 0; q < Q; q++) {
        bool nested = false;
        if (w->v->ssc.fixef == SSC_NONNESTED && w->v->request.kind->rule == RULE_CLUSTERS) {
            TRY(frgi_vcov_nested(w, q, &nested));
        }
        counted |= (uint64_t)!nested << q;
        n_counted += !nested;
        last = nested ? last : q;
        levels += nested ? 0 : f->data.frame.levels[q];
    }
    double rank = f->absorbed.rank;
    frg_status status = FRG_OK;
    if (n_counted == 0) {
        rank = f->data.ones ? 0 : 1; /* the constant, unless it is one of the k */
    } else if (n_counted == 1 && Q > 1 && f->data.formula.n_slopes == 0) {
        rank = (double)f->data.frame.levels[last];
    } else if (n_counted < Q) {
        status = rank_of(f, counted, &rank);
    }
    *K += rank;
    if (f->data.formula.n_slopes == 0) {
        *naive = n_counted == 0 ? (int64_t)*K : f->fit.k + levels - (n_counted - 1);
    }
    return status;
}
