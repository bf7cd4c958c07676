/* reg_vcov_matrix.c - from the meat to the matrix, the errors and the joint test.
 *
 *     V = B M B,    nearest positive semidefinite where a variance is not positive
 *
 * A sum over subsets of clusters need not be positive: where a variance is not, the negative
 * eigenvalues are set to 0, as Cameron, Gelbach and Miller (2011) advise.  V = P - N with the
 * projection P and a positive N, so that no variance shrinks; but where V_jj <= 0 the formula says
 * nothing of b_j, and P_jj is what the other coefficients' variances happen to leave there (0 for
 * one coefficient alone; fixest puts eigenvalues of 1e-10 in its place, in the data's units): such
 * a coefficient has no error.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "linalg/cholesky.h"
#include "linalg/small.h"
#include "linalg/stat.h"
#include "regress/reg_vcov.h"

static const double SINGULAR = 1e-12;  /* a pivot of correlations: rounding */
static const double CANCELLED = 1e-13; /* of the sum of its terms: a variance that is rounding */
static const double VANISHED = 1e-20;  /* the same of scores that cancel in their sums, squared */
static const double SUSPECT = 1e-14;   /* of an iid variance: the scores are looked at */

/** out <- scale a m a for symmetric a. */
frg_status frgi_vcov_sandwich(const frg_fe *f, const double *a, const double *m, double scale,
                              double *out)
{
    const int64_t k = f->fit.k;
    double *half;
    TRY(NEW0(f->ctx, &half, k * k, "a covariance"));
    memset(out, 0, sizeof *out * (size_t)k * (size_t)k);
    for (int i = 0; i < k && !frgi_fe_gives_up(f); i++) {
        for (int l = 0; l < k; l++) {
            for (int j = 0; j < k; j++) {
                half[i * k + j] += scale * a[i * k + l] * m[l * k + j];
            }
        }
    }
    for (int i = 0; i < k && !frgi_fe_gives_up(f); i++) {
        for (int l = 0; l < k; l++) {
            for (int j = 0; j <= i; j++) {
                out[i * k + j] += half[i * k + l] * a[l * k + j];
            }
        }
    }
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < i; j++) {
            out[j * k + i] = out[i * k + j];
        }
    }
    DROP(f->ctx, &half);
    return FRG_OK;
}

/** From [mean-centred constant, b] to [intercept as written, b]:  b0 <- b0 - sum_j mean_j b_j. */
void frgi_vcov_shift(const frgi_vcov_work *w, double *m)
{
    const frg_fe *const f = w->f;
    const int64_t k = f->fit.k;
    for (int side = 0; side < 2; side++) { /* rows, then columns */
        for (int j = 0; j < k; j++) {
            double *const first = side ? &m[j * k] : &m[j];
            for (int i = 1; i < k; i++) {
                const double mean =
                    ldexp(f->matrix.moments[f->fit.column_of[i]].mean, w->c[i] - w->c[0]);
                *first -= mean * (side ? m[j * k + i] : m[i * k + j]);
            }
        }
    }
}

/** sum_i (s_i a x_i)^2, s_i x_i the score of row i and a row j of B, of the intercept as written:
 *  the variance of b_j were rows independent.  a: memory of k numbers. */
static double variance_by_rows(const frgi_vcov_work *w, int64_t j, double *a)
{
    const frg_fe *const f = w->f;
    const int64_t k = f->fit.k;
    double total = 0;
    memcpy(a, w->bread + j * k, sizeof *a * (size_t)k);
    for (int64_t m = 1; m < k && j == 0 && f->data.centred; m++) {
        const double mean = ldexp(f->matrix.moments[f->fit.column_of[m]].mean, w->c[m] - w->c[0]);
        for (int64_t l = 0; l < k; l++) {
            a[l] -= mean * w->bread[m * k + l];
        }
    }
    for (int64_t i = 0; i < f->data.frame.n; i++) {
        double sum = 0;
        for (int64_t l = 0; l < k; l++) {
            sum += a[l] * w->x[l][i];
        }
        total += (w->scores[i] * sum) * (w->scores[i] * sum);
    }
    return total;
}

/** Marks the coefficients whose scores cancel in the sums that the meat squares, all but for their
 *  rounding: clusters or periods in which they add up to 0. */
static frg_status find_vanished(frgi_vcov_work *w)
{
    const frg_fe *const f = w->f;
    double *a;
    const int64_t k = f->fit.k;
    const double s2 = ldexp(f->fit.rss, -2 * w->a) / f->data.frame.count;
    TRY(NEW(f->ctx, &a, k, "a covariance"));
    frg_status status = FRG_OK;
    for (int64_t j = 0; j < k && (w->scores || w->unkept); j++) {
        const double variance = w->v->matrix[j * k + j];
        if (fabs(variance) >= SUSPECT * s2 * w->bread[j * k + j]) {
            continue;
        }
        TRY_TO(done, w->unkept ? frgi_vcov_scores(w) : FRG_OK);
        const double rows = variance_by_rows(w, j, a);
        if (fabs(variance) < VANISHED * rows) {
            w->terms[j] = fmax(w->terms[j], rows);
            w->unknown[j] = true;
            w->v->v.projected = true;
        }
    }
done:
    DROP(f->ctx, &a);
    return status;
}

/** Marks the coefficients without a variance: it is negative, or what the rounding of its terms
 *  leaves of them. */
frg_status frgi_vcov_find_unknown(frgi_vcov_work *w, double adjust)
{
    const frg_fe *const f = w->f;
    const int64_t k = f->fit.k;
    double *gross = NULL;
    TRY(NEW0(f->ctx, &w->unknown, k, "a covariance"));
    TRY(NEW(f->ctx, &w->terms, k, "a covariance"));
    for (int64_t j = 0; j < k; j++) {
        w->terms[j] = w->v->matrix[j * k + j];
    }
    if (!w->gross) { /* one term, which is a square */
        return find_vanished(w);
    }
    TRY(NEW(f->ctx, &gross, k * k, "a covariance"));
    const frg_status status = frgi_vcov_sandwich(f, w->bread, w->gross, adjust, gross);
    if (status >= 0 && f->data.centred) {
        frgi_vcov_shift(w, gross);
    }
    for (int64_t j = 0; j < k && status >= 0; j++) {
        w->terms[j] = gross[j * k + j];
        w->unknown[j] = w->v->matrix[j * k + j] < CANCELLED * w->terms[j];
        w->v->v.projected |= w->unknown[j];
    }
    DROP(f->ctx, &gross);
    return status < 0 ? status : find_vanished(w);
}

/** `name` and `more` of a shadow of the fit, a first stage or moments, have no variance.  Said
 *  once: the tests of the instruments come to one covariance by several ways. */
static void warn_of_stage(const frgi_vcov_work *w, const char *name, const char *more)
{
    const char *const spec = w->v->request.spec, *const stage = w->f->fit.stage;
    char text[400];
    if (*stage) {
        snprintf(
            text, sizeof text,
            "vcov '%.100s', first stage of '%.80s': the variance of '%.80s'%s is not positive, "
            "so that it has no standard error and the stage no F",
            spec, stage, name, more);
    } else {
        snprintf(
            text, sizeof text,
            "vcov '%.100s', tests of the instruments: the variance of a moment of '%.80s'%s is "
            "not positive, so that those that need it are not numbers",
            spec, name, more);
    }
    if (!frgi_has_said(w->f->ctx, text)) {
        frgi_warn(w->f->ctx, W_PSD, "%s", text);
    }
}

static void warn_of_projection(const frgi_vcov_work *w)
{
    const frg_fe *const f = w->f;
    int first = 0, count = 0;
    for (int j = f->fit.k - 1; j >= 0; j--) {
        first = w->unknown[j] ? j : first;
        count += w->unknown[j];
    }
    char more[40] = "";
    if (count > 1) {
        snprintf(more, sizeof more, " and %d more", count - 1);
    }
    if (f->fit.stage) {
        warn_of_stage(w, frgi_fe_column_name(f, f->fit.column_of[first]), more);
        return;
    }
    frgi_warn(
        f->ctx, W_PSD,
        "vcov '%s': the variance of '%s'%s is not positive, so that it has no standard error; "
        "for the others the negative eigenvalues of the matrix were set to 0",
        w->v->request.spec, frgi_fe_column_name(f, f->fit.column_of[first]), more);
}

/** m_ij <- m_ij (s_i s_j)^power, s_i^2 the variances of all terms added: what is left has no
 *  units. */
static void scale_by_terms(const frgi_vcov_work *w, double *m, int power)
{
    const int64_t k = w->f->fit.k;
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) {
            const double s =
                w->terms[i] > 0 && w->terms[j] > 0 ? sqrt(w->terms[i]) * sqrt(w->terms[j]) : 1;
            m[i * k + j] = power > 0 ? m[i * k + j] * s : m[i * k + j] / s;
        }
    }
}

/** The nearest positive semidefinite matrix in place of one with a variance that is not positive,
 *  nearest where each coefficient is measured in the standard error of all terms added, so that
 *  units do not matter (in fixest they do).  One with negative eigenvalues alone stays, as in
 *  fixest: its variances are those of the formula, and joint tests see that it is none. */
frg_status frgi_vcov_project(frgi_vcov_work *w)
{
    const frg_fe *const f = w->f;
    const int64_t k = f->fit.k;
    double *const m = w->v->matrix, *a = NULL, *values = NULL, *vectors = NULL;
    frg_status status;
    if (!w->v->v.projected) {
        return FRG_OK;
    }
    TRY_TO(done, NEW(f->ctx, &a, k * k, "eigenvalues"));
    TRY_TO(done, NEW(f->ctx, &values, k, "eigenvalues"));
    TRY_TO(done, NEW(f->ctx, &vectors, k * k, "eigenvalues"));
    scale_by_terms(w, m, -1);
    memcpy(a, m, sizeof *m * (size_t)k * (size_t)k);
    frgi_eigen(f->fit.k, a, values, vectors);
    memset(m, 0, sizeof *m * (size_t)k * (size_t)k);
    for (int l = 0; l < k; l++) {
        for (int i = 0; i < k && values[l] > 0; i++) {
            for (int j = 0; j < k; j++) {
                m[i * k + j] += values[l] * vectors[l * k + i] * vectors[l * k + j];
            }
        }
    }
    scale_by_terms(w, m, 1);
    warn_of_projection(w);
done:
    DROP(f->ctx, &a);
    DROP(f->ctx, &values);
    DROP(f->ctx, &vectors);
    return status;
}

/** b' V^-1 b / k of the k coefficients but the intercept; NaN where V is singular. */
frg_status frgi_vcov_wald(frgi_vcov_work *w, int64_t k)
{
    const frg_fe *const f = w->f;
    const int64_t first = frgi_fe_has_intercept(f), m = k - first;
    double *inverse;
    w->v->v.wald_f = (double)NAN;
    if (m == 0) {
        return FRG_OK;
    }
    TRY(NEW(f->ctx, &inverse, m * m, "a covariance"));
    bool sound =
        !w->v->v.projected; /* scaled to correlations, as the units of the coefficients differ */
    for (int i = 0; i < m; i++) {
        sound &= w->v->matrix[(i + first) * k + i + first] > 0;
    }
    for (int i = 0; i < m && sound; i++) {
        for (int j = 0; j < m; j++) {
            const int64_t a = i + first, b = j + first;
            inverse[i * m + j] = w->v->matrix[a * k + b] / sqrt(w->v->matrix[a * k + a]) /
                                 sqrt(w->v->matrix[b * k + b]);
        }
    }
    if (sound && frgi_inverse((int)m, inverse, SINGULAR, frg_threads(f->ctx), frgi_fe_stops(f))) {
        double sum = 0;
        for (int i = 0; i < m; i++) {
            for (int j = 0; j < m; j++) {
                sum += w->v->coefficients[i + first].statistic * inverse[i * m + j] *
                       w->v->coefficients[j + first].statistic;
            }
        }
        w->v->v.wald_f = sum / (double)m;
    }
    DROP(f->ctx, &inverse);
    return FRG_OK;
}

void frgi_vcov_tabulate(const frgi_vcov_work *w)
{
    const frg_fe *const f = w->f;
    for (int j = 0; j < f->fit.k; j++) {
        const double df = w->v->df ? w->v->df[j] : w->v->v.df_t;
        const double quantile = frgi_t_quantile(0.5 + 0.5 * f->policy.options.level, df);
        const double variance =
            w->unknown[j] ? (double)NAN : w->v->matrix[(int64_t)j * f->fit.k + j];
        const double b = f->fit.b[j], error = ldexp(sqrt(variance), w->a + w->c[j]);
        w->v->coefficients[j] =
            (frg_coefficient){.term = frgi_fe_column_name(f, f->fit.column_of[j]),
                              .estimate = b,
                              .std_error = error,
                              .statistic = b / error,
                              .p_value = frgi_t_two_sided(b / error, df),
                              .conf_low = b - quantile * error,
                              .conf_high = b + quantile * error};
    }
}
