/* reg_vcov_cluster.c - the meat of rows (hc1) and of clusters of one to four ways.
 *
 *     rows     M = sum_i s_i s_i'
 *     cluster  M = sum_J (-1)^(|J|+1) G_J / (G_J - 1) M_J,   M_J = sum_g (sum_i in g s_i)(...)'
 *
 * over the non-empty subsets J of the cluster variables (Cameron, Gelbach and Miller 2011), M_J of
 * the joint clusters.  With cluster.df=min every G_J is the least count of the single variables.
 */
#include <math.h>
#include <string.h>

#include "formula/keys.h"
#include "regress/reg_vcov.h"

/** The rows of a fit are fixed: none may lack a cluster that is asked for later. */
frg_status frgi_vcov_check_complete(const frg_fe *f, const frgi_key *key)
{
    for (int c = 0; c < key->n; c++) {
        const frg_column *const column = key->columns[c];
        for (int64_t i = 0; i < f->data.frame.n && column->n_missing > 0; i++) {
            double value;
            frgi_column_block(column, f->data.frame.rows, i, 1, &value);
            if (isnan(value)) {
                const long long row = (f->data.frame.rows ? f->data.frame.rows[i] : i) + 1;
                frgi_at(f->ctx, "%s:%lld", column->name, row);
                FAIL(f->ctx, E_CLUSTER,
                     "variable '%s' of the standard errors is missing in row %lld, which the fit "
                     "uses; ask for "
                     "this vcov when fitting, so that such rows are left out",
                     column->name, row);
            }
        }
    }
    return FRG_OK;
}

/** The codes of an effect that is the same key, or those that were numbered with the effects;
 *  NULL: there are none. */
static const int32_t *codes_there(const frg_fe *f, const frgi_key *key, int64_t *groups)
{
    const frgi_frame *const frame = &f->data.frame;
    for (int q = 0; q < frame->n_effects; q++) {
        if (frgi_key_is(&frame->keys[q], key)) {
            *groups = frame->levels[q];
            return frame->codes + q * frame->n;
        }
    }
    return frgi_key_list_find(&frame->later, key, groups);
}

/** Codes of key i. */
static frg_status encode_key(frgi_vcov_work *w, int i)
{
    const frg_fe *const f = w->f;
    const frgi_key *const key = &w->v->request.keys[i];
    const int64_t n = f->data.frame.n;
    w->codes[i] = codes_there(f, key, &w->groups[i]);
    if (w->codes[i]) {
        return FRG_OK;
    }
    TRY(frgi_vcov_check_complete(f, key));
    w->codes[i] = w->own + i * n;
    return frgi_key_codes(f->ctx, key, 1, f->data.frame.rows, n, w->own + i * n, &w->groups[i]);
}

frg_status frgi_vcov_encode(frgi_vcov_work *w)
{
    const frg_fe *const f = w->f;
    const frgi_vcov_request *const r = &w->v->request;
    if (r->n == 0 || r->kind->rule == RULE_ROWS) {
        return FRG_OK;
    }
    const bool panel = r->kind->rule == RULE_PERIODS || r->kind->rule == RULE_TWO_WAY;
    bool own = panel;
    for (int i = 0; i < r->n; i++) {
        own = own || !codes_there(f, &r->keys[i], &w->groups[i]);
    }
    if (own) {
        TRY(NEW(f->ctx, &w->own, r->n * f->data.frame.n, "clusters"));
    }
    for (int i = 0; i < r->n; i++) {
        const bool period = panel && i == r->n - 1;
        TRY(period ? frgi_vcov_periods(w, i) : encode_key(w, i));
        if (w->groups[i] < 2 && (period || r->kind->rule != RULE_PERIODS)) {
            FAIL(f->ctx, E_CLUSTER, "the %s variable '%s' has a single %s in the %lld rows used",
                 period ? "time" : "cluster", r->keys[i].name, period ? "period" : "cluster",
                 (long long)f->data.frame.n);
        }
        if (i == 0 || w->groups[i] < w->least || r->kind->rule == RULE_PERIODS) {
            w->least = w->groups[i];
        }
    }
    return FRG_OK;
}

/* ---- the meat -------------------------------------------------------------------------------- */

static void unpack(int64_t k, const double *packed, double scale, double *full)
{
    for (int i = 0; i < k; i++) {
        for (int j = 0; j <= i; j++) {
            full[i * k + j] += scale * packed[frgi_packed(i, j)];
            if (j < i) {
                full[j * k + i] += scale * packed[frgi_packed(i, j)];
            }
        }
    }
}

/** meat += scale sum_i h_i x_i x_i' */
frg_status frgi_vcov_add_gram(const frgi_vcov_work *w, const double *const *x, const double *h,
                              int64_t n, double scale)
{
    const frg_fe *const f = w->f;
    double *packed;
    TRY(NEW(f->ctx, &packed, frgi_packed(f->fit.k, 0), "a covariance"));
    const frg_status status = frgi_gram(f->ctx, f->fit.k, x, h, n, packed, frgi_fe_stops(f));
    if (status >= 0) {
        unpack(f->fit.k, packed, scale, w->meat);
    }
    if (status >= 0 && w->gross) {
        unpack(f->fit.k, packed, fabs(scale), w->gross);
    }
    DROP(f->ctx, &packed);
    return status;
}

/** Every row is a cluster.  A frequency weight of 2 is two rows, so its square does not come in. */
frg_status frgi_vcov_rows_meat(frgi_vcov_work *w)
{
    const frg_fe *const f = w->f;
    const bool frequency = f->policy.options.weights_kind == FRG_WEIGHTS_FREQUENCY;
    const double *const weights = f->data.frame.weights;
    const double *const times = f->glm.family ? f->glm.prior : weights;
    const double scale = ldexp(1, -w->a);
    const int64_t n = f->data.frame.n;
    TRY(NEW(f->ctx, &w->weighted, n, "squares of the scores"));
    double *const squares = w->weighted;
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(f->ctx, n))
    for (int64_t begin = 0; begin < n; begin += FRGI_BLOCK) {
        const int64_t end = n - begin < FRGI_BLOCK ? n : begin + FRGI_BLOCK;
        frgi_fe_errors(f, begin, end - begin, squares + begin);
        for (int64_t i = begin; i < end; i++) {
            const double weight = weights ? weights[i] : 1;
            const double score = f->two_stage.scores ? 1 : weight * (scale * squares[i]);
            squares[i] = score * score / (frequency && times ? times[i] : 1);
        }
    }
    return frgi_vcov_add_gram(w, w->x, w->weighted, f->data.frame.n, 1);
}

/** meat += scale S'S,  S the sums of the scores by group. */
frg_status frgi_vcov_add_groups(const frgi_vcov_work *w, const int32_t *codes, int64_t groups,
                                double scale)
{
    const frg_fe *const f = w->f;
    double *sums = NULL;
    const double **columns = NULL;
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &sums, f->fit.k * groups, "sums by cluster"));
    TRY_TO(done, NEW(f->ctx, &columns, f->fit.k, "sums by cluster"));
    const frgi_errors e = frgi_fe_errors_of(f);
    status = w->unkept ? frgi_gram_errors_by_group(f->ctx, f->fit.k, w->x, &e, codes,
                                                   f->data.frame.n, groups, sums)
                       : frgi_gram_by_group(f->ctx, f->fit.k, w->x, w->scores, codes,
                                            f->data.frame.n, groups, sums);
    TRY_TO(done, status);
    for (int j = 0; j < f->fit.k; j++) {
        columns[j] = sums + j * groups;
    }
    status = frgi_vcov_add_gram(w, columns, NULL, groups, scale);
done:
    DROP(f->ctx, &sums);
    DROP(f->ctx, &columns);
    return status;
}

/** The subset of the cluster variables with the bits of `subset`. */
static frg_status add_subset(const frgi_vcov_work *w, unsigned subset)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n;
    const frgi_key key = frgi_vcov_joint_key(&w->v->request, subset);
    int32_t *joint = NULL;
    int64_t groups = 0;
    const int32_t *codes = codes_there(f, &key, &groups);
    const int size = __builtin_popcount(subset), keys = codes ? 0 : w->v->request.n;
    frg_status status = FRG_OK;
    for (int k = 0; k < keys; k++) {
        if (!(subset >> k & 1)) {
            continue;
        }
        if (!codes) {
            codes = w->codes[k];
            groups = w->groups[k];
            continue;
        }
        if (!joint) {
            TRY_TO(done, NEW(f->ctx, &joint, n, "joint clusters"));
            memcpy(joint, codes, sizeof *joint * (size_t)n);
            codes = joint;
        }
        TRY_TO(done, frgi_keys_join(f->ctx, n, joint, &groups, w->codes[k], w->groups[k]));
    }
    const double count = (double)(w->v->ssc.cluster_min ? w->least : groups);
    const double factor = w->v->ssc.cluster_adj ? count / (count - 1) : 1;
    status = frgi_vcov_add_groups(w, codes, groups, size % 2 ? factor : -factor);
done:
    DROP(f->ctx, &joint);
    return status;
}

/** Are the scores' factors of x the residuals themselves? */
static bool are_residuals(const frgi_vcov_work *w)
{
    const frg_fe *const f = w->f;
    return !f->two_stage.scores && !f->data.frame.weights && w->a == 0;
}

frg_status frgi_vcov_scores(frgi_vcov_work *w)
{
    const frg_fe *const f = w->f;
    const double scale = ldexp(1, -w->a), *const weights = f->data.frame.weights;
    const int64_t n = f->data.frame.n;
    w->scores = f->fit.e;
    w->unkept = false;
    if (!f->fit.e || !are_residuals(w)) {
        TRY(NEW(f->ctx, &w->weighted, n, "scores"));
        double *const s = w->weighted;
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(f->ctx, n))
        for (int64_t begin = 0; begin < n; begin += FRGI_BLOCK) {
            const int64_t end = n - begin < FRGI_BLOCK ? n : begin + FRGI_BLOCK;
            frgi_fe_errors(f, begin, end - begin, s + begin);
            for (int64_t i = begin; i < end; i++) {
                const double score = (weights ? weights[i] : 1) * (scale * s[i]);
                s[i] = f->two_stage.scores ? 1 : score; /* w->x has all of it */
            }
        }
        w->scores = s;
    }
    return FRG_OK;
}

frg_status frgi_vcov_gross(frgi_vcov_work *w)
{
    return NEW0(w->f->ctx, &w->gross, (int64_t)w->f->fit.k * w->f->fit.k, "a covariance");
}

frg_status frgi_vcov_add_cross(const frgi_vcov_work *w, const double *const *s,
                               const double *const *t, int64_t n, double scale)
{
    const frg_fe *const f = w->f;
    const int k = f->fit.k;
    const double **both = NULL;
    double *packed = NULL;
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &both, 2 * (int64_t)k, "a covariance"));
    TRY_TO(done, NEW(f->ctx, &packed, frgi_packed(2 * (int64_t)k, 0), "a covariance"));
    memcpy(both, s, sizeof *both * (size_t)k);
    memcpy(both + k, t, sizeof *both * (size_t)k);
    TRY_TO(done, frgi_gram(f->ctx, 2 * k, both, NULL, n, packed, frgi_fe_stops(f)));
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) {
            const double cross = packed[frgi_packed(k + i, j)] + packed[frgi_packed(k + j, i)];
            const int high = i > j ? i : j, low = i > j ? j : i;
            w->meat[i * k + j] += scale * cross;
            if (w->gross) {
                w->gross[i * k + j] += fabs(scale) * (packed[frgi_packed(high, low)] +
                                                      packed[frgi_packed(k + high, k + low)]);
            }
        }
    }
done:
    DROP(f->ctx, &both);
    DROP(f->ctx, &packed);
    return status;
}

frg_status frgi_vcov_clusters_meat(frgi_vcov_work *w)
{
    enum { TOGETHER = 4 }; /* columns for which residuals are formed once, as they are summed */
    w->unkept = !w->f->fit.e && are_residuals(w) && w->f->fit.k <= TOGETHER;
    TRY(w->unkept ? FRG_OK : frgi_vcov_scores(w));
    if (w->v->request.n > 1) {
        TRY(frgi_vcov_gross(w));
    }
    for (unsigned subset = 1; subset < 1u << w->v->request.n; subset++) {
        TRY(add_subset(w, subset));
    }
    return FRG_OK;
}
