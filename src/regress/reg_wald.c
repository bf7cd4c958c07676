/* reg_wald.c - joint tests of linear restrictions.
 *
 *     W = (R b - q)' (R V R')^-1 (R b - q),   F = W / df1,   df1 = rows of R
 *
 * F is compared with F(df1, df2), df2 that of the covariance's t, and W with chi squared of df1.  R
 * V R' is scaled to correlations before it is inverted, as the units of the coefficients differ. */
#include <math.h>

#include "linalg/cholesky.h"
#include "linalg/stat.h"
#include "regress/regress.h"

static const double SINGULAR = 1e-12; /* a pivot of correlations: rounding */

/** a (rows x rows) <- R V R', d (rows) <- R b - q; both over the square roots of the diagonal.
 *  False where that is not positive. */
static bool restrict_to(const frg_fe_vcov *v, int k, const double *r, const double *q, int rows,
                        double *a, double *d)
{
    for (int i = 0; i < rows; i++) {
        d[i] = q ? -q[i] : 0;
        for (int j = 0; j < k; j++) {
            d[i] += r[i * k + j] * v->coefficients[j].estimate;
        }
        for (int l = 0; l < rows; l++) {
            double sum = 0;
            for (int s = 0; s < k; s++) {
                for (int t = 0; t < k; t++) {
                    sum += r[i * k + s] * v->matrix[s * k + t] * r[l * k + t];
                }
            }
            a[i * rows + l] = sum;
        }
    }
    bool sound = !v->projected;
    for (int i = 0; i < rows; i++) {
        sound &= a[i * rows + i] > 0;
    }
    for (int i = 0; i < rows && sound; i++) {
        for (int l = 0; l < i; l++) {
            a[i * rows + l] /= sqrt(a[i * rows + i]) * sqrt(a[l * rows + l]);
            a[l * rows + i] = a[i * rows + l];
        }
        d[i] /= sqrt(a[i * rows + i]);
    }
    for (int i = 0; i < rows && sound; i++) {
        a[i * rows + i] = 1;
    }
    return sound;
}

static bool are_finite(const double *x, int64_t n)
{
    for (int64_t i = 0; x && i < n; i++) {
        if (!isfinite(x[i])) {
            return false;
        }
    }
    return true;
}

frg_status frg_fe_wald(const frg_fe *f, const frg_fe_vcov *v, const double *r, const double *q,
                       int64_t rows, frg_fe_test *out)
{
    if (!f) {
        return FRG_BAD_ARG;
    }
    const int k = frgi_fe_shown(f), m = (int)rows;
    REQUIRE(f->ctx, v && r && out,
            "frg_fe_wald takes a covariance, restrictions and a place for the result");
    REQUIRE(f->ctx, rows >= 1 && rows <= k, "there are %lld restrictions of %d coefficients",
            (long long)rows, k);
    REQUIRE(f->ctx, are_finite(r, rows * k) && are_finite(q, rows),
            "a restriction is not a finite number");
    double *a;
    TRY(NEW(f->ctx, &a, rows * rows + rows, "a joint test"));
    double *const d = a + rows * rows;
    const bool sound =
        restrict_to(v, k, r, q, m, a, d) && frgi_inverse(m, a, SINGULAR, frg_threads(f->ctx), NULL);
    double sum = 0;
    for (int i = 0; i < m && sound; i++) {
        for (int j = 0; j < m; j++) {
            sum += d[i] * a[i * m + j] * d[j];
        }
    }
    DROP(f->ctx, &a);
    REQUIRE(f->ctx, sound,
            "the restrictions depend on each other, or their covariance is singular");
    *out = (frg_fe_test){.wald = sum,
                         .f = sum / m,
                         .df1 = m,
                         .df2 = v->df_t,
                         .p_f = frgi_f_upper(sum / m, m, v->df_t),
                         .p_chi2 = frgi_f_upper(sum / m, m, INFINITY)};
    return FRG_OK;
}
