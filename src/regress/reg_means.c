/* reg_means.c - the coefficients that are shown, where these are means of those of the columns, and
 * the points of an event study.
 *
 * sunab() estimates d, a coefficient for each cohort and period, with the covariance V.  Shown are
 * the means over cohorts at a relative period E, one row of S each (delta method, S being fixed):
 *
 *     b = S d,   s_E,g = n_gE / sum_g n_gE,   V_b = S V S'
 *
 * n the weights of a column's rows, over the columns that were not dropped.  Other regressors have
 * a row of their own with a single 1.
 *
 * Source: Sun and Abraham (2021), equations 25 and 26.
 */
#include <math.h>
#include <string.h>

#include "linalg/stat.h"
#include "regress/reg_vcov.h"

/** The column of the design of coefficient j; NULL: the intercept. */
static const frgi_design_column *column_of(const frg_fe *f, int j)
{
    const int32_t c = f->fit.column_of[j] - 1 - f->data.ones;
    return c >= 0 ? &f->data.design.columns[c] : NULL;
}

/* ---- means ----------------------------------------------------------------------------------- */

/** Rows of S by coefficient, in the order of the coefficients; place: by mean, -1: none. */
static void lay_out(frg_fe *f, int32_t *row_of, int32_t *place)
{
    frgi_fe_means *const m = &f->means;
    memset(place, 0xff, sizeof *place * (size_t)f->data.design.means.count);
    for (int j = 0; j < f->fit.k; j++) {
        const frgi_design_column *const c = column_of(f, j);
        if (c && c->mean == FRGI_HIDDEN) {
            row_of[j] = -1;
            continue;
        }
        if (!c || c->mean == FRGI_NO_MEAN) {
            m->name[m->n] = frgi_fe_column_name(f, f->fit.column_of[j]);
            row_of[j] = m->n++;
            continue;
        }
        if (place[c->mean] < 0) {
            m->name[m->n] = frgi_names_text(&f->data.design.means, c->mean);
            place[c->mean] = m->n++;
        }
        row_of[j] = place[c->mean];
    }
}

static void fill_shares(frg_fe *f, const int32_t *row_of, double *sum)
{
    frgi_fe_means *const m = &f->means;
    const int k = f->fit.k;
    memset(m->shares, 0, sizeof *m->shares * (size_t)m->n * (size_t)k);
    memset(sum, 0, sizeof *sum * (size_t)m->n);
    for (int pass = 0; pass < 2; pass++) {
        for (int j = 0; j < k; j++) {
            const frgi_design_column *const c = column_of(f, j);
            const double weight = c && c->mean >= 0 ? c->weight : 1;
            if (row_of[j] >= 0 && pass == 0) {
                sum[row_of[j]] += weight;
            } else if (row_of[j] >= 0) {
                m->shares[row_of[j] * k + j] = weight / sum[row_of[j]];
            }
        }
    }
}

/** A point for each mean that is of one relative period. */
static frg_status mean_events(frg_fe *f, const int32_t *place)
{
    frgi_fe_means *const m = &f->means;
    const int32_t count = f->data.design.means.count;
    TRY(NEW(f->ctx, &m->events, count, "event study"));
    for (int32_t i = 0; i < count; i++) {
        if (!isnan(f->data.design.mean_time[i])) {
            m->events[m->n_events++] =
                (frg_fe_event){.time = f->data.design.mean_time[i], .coefficient = place[i]};
        }
    }
    return FRG_OK;
}

static frg_status make_means(frg_fe *f)
{
    const int32_t k = f->fit.k;
    int32_t *row_of = NULL, *place = NULL;
    double *sum = NULL;
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &f->means.name, k + 1, "means of coefficients"));
    TRY_TO(done, NEW(f->ctx, &row_of, k + 1, "means of coefficients"));
    TRY_TO(done, NEW(f->ctx, &place, f->data.design.means.count, "means of coefficients"));
    lay_out(f, row_of, place);
    TRY_TO(done, NEW(f->ctx, &sum, f->means.n + 1, "means of coefficients"));
    TRY_TO(done, NEW(f->ctx, &f->means.shares, (int64_t)(f->means.n + 1) * (k + 1),
                     "means of coefficients"));
    fill_shares(f, row_of, sum);
    status = mean_events(f, place);
done:
    DROP(f->ctx, &row_of);
    DROP(f->ctx, &place);
    DROP(f->ctx, &sum);
    return status;
}

/* ---- events of i() --------------------------------------------------------------------------- */

/** The first i(f) or i(f, x) whose levels are numbers, -1: none. */
static int32_t find_time(const frg_fe *f)
{
    const frgi_formula *const formula = &f->data.formula;
    for (int32_t t = 0; t < formula->n_exogenous; t++) {
        const int32_t id = formula->terms[t].atom[0];
        const frgi_variable *const v = &f->data.variables[id];
        const bool numbers =
            v->kind == VARIABLE_CATEGORIES && v->n_factors == 1 &&
            (v->factor[0]->kind == FRG_NUMBER || v->factor[0]->kind == FRG_INTEGER);
        if (numbers) {
            return id;
        }
    }
    return -1;
}

static frg_status level_events(frg_fe *f)
{
    frgi_fe_means *const m = &f->means;
    const int32_t id = find_time(f);
    if (id < 0) {
        return FRG_OK;
    }
    const frgi_levels *const l = &f->data.design.levels[id][0];
    int32_t *place;
    TRY(NEW(f->ctx, &place, l->n, "event study"));
    memset(place, 0xff, sizeof *place * (size_t)l->n);
    for (int j = 0; j < f->fit.k; j++) {
        const frgi_design_column *const c = column_of(f, j);
        const frgi_multiplicand *const first =
            c ? &f->data.design.multiplicands[c->first_multiplicand] : NULL;
        if (first && first->variable == id && first->level >= 0) {
            place[first->level] = j;
        }
    }
    const frg_status status = NEW(f->ctx, &m->events, l->n, "event study");
    for (int32_t i = 0; i < l->n && status >= 0; i++) {
        const int32_t code = l->sorted[i];
        m->events[m->n_events++] =
            (frg_fe_event){.time = l->values[code], .coefficient = place[code]};
    }
    DROP(f->ctx, &place);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

int frgi_fe_shown(const frg_fe *f)
{
    return f->means.shares && !f->fit.stage ? f->means.n : f->fit.k;
}

frg_status frgi_fe_make_means(frg_fe *f)
{
    bool any = false;
    for (int j = 0; j < f->data.design.n; j++) {
        any |= f->data.design.columns[j].mean != FRGI_NO_MEAN;
    }
    TRY(any ? make_means(f) : level_events(f));
    if (any && f->means.n == 0) {
        FAIL(f->ctx, E_NO_REGRESSOR, "no regressor is left: %s",
             "every period from the treatment on is collinear or absorbed");
    }
    f->report.result.n_events = f->means.n_events;
    f->report.result.events = f->means.events;
    return FRG_OK;
}

void frgi_fe_destroy_means(frg_fe *f)
{
    DROP(f->ctx, &f->means.shares);
    DROP(f->ctx, &f->means.name);
    DROP(f->ctx, &f->means.events);
}

/** b = S d with the errors of V. */
static frg_coefficient row(const frgi_vcov_work *w, int r, const double *v)
{
    const frg_fe *const f = w->f;
    const int k = f->fit.k;
    const double *const share = f->means.shares + (ptrdiff_t)r * k;
    double b = 0, error = sqrt(v[(ptrdiff_t)r * f->means.n + r]);
    for (int j = 0; j < k; j++) {
        b += share[j] * f->fit.b[j];
        error = share[j] != 0 && w->unknown[j] ? (double)NAN : error;
    }
    const double quantile = frgi_t_quantile(0.5 + 0.5 * f->policy.options.level, w->v->v.df_t);
    return (frg_coefficient){.term = f->means.name[r],
                             .estimate = b,
                             .std_error = error,
                             .statistic = b / error,
                             .p_value = frgi_t_two_sided(b / error, w->v->v.df_t),
                             .conf_low = b - quantile * error,
                             .conf_high = b + quantile * error};
}

/** out (m x m) <- S v S', half (m x k) <- S v. */
static void surround(const frgi_fe_means *m, int k, const double *v, double *half, double *out)
{
    memset(half, 0, sizeof *half * (size_t)m->n * (size_t)k);
    memset(out, 0, sizeof *out * (size_t)m->n * (size_t)m->n);
    for (int r = 0; r < m->n; r++) {
        for (int i = 0; i < k; i++) {
            const double share = m->shares[(ptrdiff_t)r * k + i];
            for (int j = 0; j < k && share != 0; j++) {
                half[(ptrdiff_t)r * k + j] += share * v[(ptrdiff_t)i * k + j];
            }
        }
    }
    for (int r = 0; r < m->n; r++) {
        for (int s = 0; s <= r; s++) {
            double sum = 0;
            for (int j = 0; j < k; j++) {
                sum += half[(ptrdiff_t)r * k + j] * m->shares[(ptrdiff_t)s * k + j];
            }
            out[(ptrdiff_t)r * m->n + s] = out[(ptrdiff_t)s * m->n + r] = sum;
        }
    }
}

frg_status frgi_vcov_means(frgi_vcov_work *w)
{
    frg_fe *const f = w->f;
    frgi_vcov *const v = w->v;
    const int64_t m = f->means.n, k = f->fit.k;
    double *half = NULL, *matrix = NULL;
    frg_coefficient *coefficients = NULL;
    frg_status status;
    if (!f->means.shares || f->fit.stage) {
        return FRG_OK;
    }
    TRY_TO(done, NEW(f->ctx, &half, m * k, "a covariance"));
    TRY_TO(done, NEW(f->ctx, &matrix, m * m, "a covariance"));
    TRY_TO(done, NEW(f->ctx, &coefficients, m, "coefficients"));
    surround(&f->means, (int)k, v->matrix, half, matrix);
    for (int r = 0; r < m; r++) {
        coefficients[r] = row(w, r, matrix);
    }
    DROP(f->ctx, &v->matrix);
    DROP(f->ctx, &v->coefficients);
    v->v.matrix = v->matrix = matrix;
    v->v.coefficients = v->coefficients = coefficients;
    matrix = NULL;
    coefficients = NULL;
    status = frgi_vcov_wald(w, m);
done:
    DROP(f->ctx, &half);
    DROP(f->ctx, &matrix);
    DROP(f->ctx, &coefficients);
    return status;
}
