/* reg_iv.c - two-stage least squares (Wooldridge 2010, chapter 5).
 *
 * X~ = [exogenous, endogenous], Z~ = [exogenous, instruments], the effects taken out of all:
 *
 *     Pi = (Z~'W Z~)^-1 Z~'W X~_endogenous,   V = X~_endogenous - Z~ Pi,   X^ = X~ - [0 V]
 *     b  = (X^'W X^)^-1 X^'W y~,              e = y~ - X~ b
 *
 * so that the scores are w e x^ and the covariances are those of reg_vcov.c with X^ in the place of
 * X~.  Both stages are refined where a step of it still moves them.  Z^ is what is kept beside the
 * columns: n numbers for each endogenous regressor.
 *
 * Dangers: instruments that leave nothing of X^ beside the exogenous regressors give any b; the
 * pivots of X^ are compared with the variation of X~ itself, by collin_tol.
 */
#include <math.h>
#include <string.h>

#include "linalg/cholesky.h"
#include "regress/reg_dense.h"
#include "regress/reg_screen.h"

static const double SETTLED = 1e-14; /* a refinement by less than this share is the last */
enum { PASSES = 3 };

typedef struct {
    frg_fe *f;
    frgi_screen screen;
    int first_endogenous, first_instrument; /* columns of the matrix */
    const double **z;                       /* the columns of Z~ */
    const double **x;                       /* those of X~ */
    double *gradient;                       /* of a stage */
    double *step;                           /* of a stage */
    double *work;                           /* n */
} two_stage;

/* ---- columns --------------------------------------------------------------------------------- */

static frg_status check_counts(const two_stage *s, int given)
{
    const frgi_fe_iv *const iv = &s->f->iv;
    if (iv->n_endogenous == 0) {
        FAIL(s->f->ctx, E_IDENT,
             "every endogenous variable is absorbed by the effects or collinear with the exogenous "
             "regressors");
    }
    if (iv->n_instruments < iv->n_endogenous) {
        FAIL(s->f->ctx, E_IDENT,
             "%d endogenous variable%s, %d instrument%s of %d given that %s not absorbed or "
             "collinear",
             iv->n_endogenous, iv->n_endogenous == 1 ? "" : "s", iv->n_instruments,
             iv->n_instruments == 1 ? "" : "s", given, iv->n_instruments == 1 ? "is" : "are");
    }
    return FRG_OK;
}

/** X~ and Z~: the structural columns as if there were no instruments, and those of the first stage
 *  as if there were no endogenous ones. */
static frg_status choose_columns(two_stage *s)
{
    frg_fe *const f = s->f;
    frgi_fe_iv *const iv = &f->iv;
    const int p = f->data.p;
    int n_z;
    TRY(NEW(f->ctx, &iv->column_of, p, "instruments"));
    TRY(frgi_screen_keep(&s->screen, s->first_instrument, p + 1, 1, f->fit.column_of, &f->fit.k));
    TRY(frgi_screen_keep(&s->screen, s->first_endogenous, s->first_instrument, s->first_instrument,
                         iv->column_of, &n_z));
    if (frgi_fe_gives_up(f)) {
        return FRG_OK;
    }
    while (iv->n_exogenous < f->fit.k && f->fit.column_of[iv->n_exogenous] < s->first_endogenous) {
        iv->n_exogenous++;
    }
    iv->n_endogenous = f->fit.k - iv->n_exogenous;
    iv->n_instruments = n_z - iv->n_exogenous;
    TRY(frgi_screen_report(&s->screen, f->fit.k));
    return check_counts(s, p + 1 - s->first_instrument);
}

static frg_status gather_columns(two_stage *s)
{
    frg_fe *const f = s->f;
    frgi_fe_iv *const iv = &f->iv;
    const int64_t n = f->data.frame.n;
    const int m = iv->n_endogenous, n_z = iv->n_exogenous + iv->n_instruments, k = f->fit.k;
    TRY(NEW(f->ctx, &s->z, n_z, "instruments"));
    TRY(NEW(f->ctx, &s->x, k, "regressors"));
    TRY(NEW(f->ctx, &s->gradient, n_z + k + 1, "gradients"));
    TRY(NEW0(f->ctx, &s->step, n_z + k, "gradients"));
    TRY(NEW(f->ctx, &s->work, n, "residuals"));
    TRY(NEW(f->ctx, &iv->fitted, n * m, "fitted endogenous regressors"));
    TRY(NEW0(f->ctx, &iv->pi, (int64_t)m * n_z, "first stages"));
    TRY(NEW(f->ctx, &iv->bread, (int64_t)n_z * n_z, "first stages"));
    TRY(NEW(f->ctx, &f->fit.bread, (int64_t)k * k, "estimates"));
    for (int j = 0; j < n_z; j++) {
        s->z[j] = f->matrix.values + iv->column_of[j] * n;
    }
    for (int j = 0; j < k; j++) {
        s->x[j] = f->matrix.values + f->fit.column_of[j] * n;
        f->fit.x[j] = j < iv->n_exogenous ? s->x[j] : iv->fitted + (j - iv->n_exogenous) * n;
    }
    return FRG_OK;
}

/** [Z X y]'W[Z X y] of the kept columns, for the tests. */
static frg_status keep_gram(const two_stage *s)
{
    frg_fe *const f = s->f;
    frgi_fe_iv *const iv = &f->iv;
    const int n_z = iv->n_exogenous + iv->n_instruments, m = iv->n_endogenous, side = n_z + m + 1;
    TRY(NEW(f->ctx, &iv->gram, (int64_t)side * side, "first stages"));
    for (int i = 0; i < side; i++) {
        for (int j = 0; j < side; j++) {
            const int32_t *const x = f->fit.column_of + iv->n_exogenous;
            const int a = i < n_z ? iv->column_of[i] : i < n_z + m ? x[i - n_z] : 0;
            const int b = j < n_z ? iv->column_of[j] : j < n_z + m ? x[j - n_z] : 0;
            iv->gram[i * (ptrdiff_t)side + j] = frgi_screen_gram(&s->screen, a, b);
        }
    }
    return FRG_OK;
}

/* ---- the stages ------------------------------------------------------------------------------ */

/** b += bread g; returns the largest change times its column's scale. */
static double improve(int k, const double *bread, const double *gradient, double *b,
                      const double *scale)
{
    double largest = 0;
    for (int i = 0; i < k; i++) {
        double change = 0;
        for (int j = 0; j < k; j++) {
            change += bread[i * (ptrdiff_t)k + j] * gradient[j];
        }
        b[i] += change;
        largest = fmax(largest, fabs(change) * scale[i]);
    }
    return largest;
}

/** Pi and X^ of endogenous regressor j. */
static frg_status first_stage(const two_stage *s, int j)
{
    frg_fe *const f = s->f;
    frgi_fe_iv *const iv = &f->iv;
    const int64_t n = f->data.frame.n;
    const int n_z = iv->n_exogenous + iv->n_instruments, side = n_z + iv->n_endogenous + 1;
    const double *const x = s->x[iv->n_exogenous + j];
    double *const pi = iv->pi + (ptrdiff_t)j * n_z, *const to = iv->fitted + j * n;
    const double size = sqrt(iv->gram[(n_z + j) * (ptrdiff_t)(side + 1)]);
    for (int i = 0; i < n_z; i++) {
        s->step[i] = sqrt(iv->gram[i * (ptrdiff_t)(side + 1)]);
        s->gradient[i] = iv->gram[i * (ptrdiff_t)side + n_z + j];
    }
    improve(n_z, iv->bread, s->gradient, pi, s->step);
    for (int pass = 0; pass < PASSES; pass++) {
        TRY(frgi_gram_residual(f->ctx, n_z, s->z, x, pi, f->data.frame.weights, n, s->work,
                               s->gradient));
        if (pass == PASSES - 1 ||
            improve(n_z, iv->bread, s->gradient, pi, s->step) < SETTLED * size) {
            break;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        to[i] = x[i] - s->work[i];
    }
    return FRG_OK;
}

static frg_status not_identified(const two_stage *s, const unsigned char *kept)
{
    const frg_fe *const f = s->f;
    int j = 0;
    while (kept[j]) {
        j++;
    }
    FAIL(f->ctx, E_IDENT,
         "what the %d instrument%s make%s of '%s' is a combination of the other regressors",
         f->iv.n_instruments, f->iv.n_instruments == 1 ? "" : "s",
         f->iv.n_instruments == 1 ? "s" : "", frgi_fe_column_name(f, f->fit.column_of[j]));
}

/** Are the pivots of X^'W X^ more than round-off of the variation of X~? */
static frg_status check_rank(const two_stage *s)
{
    const frg_fe *const f = s->f;
    const int k = f->fit.k;
    double *a = NULL;
    unsigned char *kept = NULL;
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &a, (int64_t)k * k, "estimates"));
    TRY_TO(done, NEW0(f->ctx, &kept, k, "estimates"));
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) {
            const double scale =
                s->screen.scale[f->fit.column_of[i] - 1] * s->screen.scale[f->fit.column_of[j] - 1];
            a[i * (ptrdiff_t)k + j] = f->fit.bread[i * (ptrdiff_t)k + j] / scale;
        }
    }
    const double tol = fmax(
        f->policy.options.collin == FRG_COLLIN_SHARE ? f->policy.options.collin_tol : 1e-9, 1e-14);
    if (frgi_cholesky_keep(k, a, tol, kept, frg_threads(f->ctx), frgi_fe_stops(f)) < k &&
        !frgi_fe_gives_up(f)) {
        status = not_identified(s, kept);
    }
done:
    DROP(f->ctx, &a);
    DROP(f->ctx, &kept);
    return status;
}

/** bread <- (X^'W X^)^-1;  s->step <- the norms of X^. */
static frg_status invert(const two_stage *s)
{
    frg_fe *const f = s->f;
    const int k = f->fit.k;
    double *packed;
    bool sound = true;
    TRY(NEW(f->ctx, &packed, frgi_packed(k, 0), "estimates"));
    frg_status status = frgi_gram(f->ctx, k, f->fit.x, f->data.frame.weights, f->data.frame.n,
                                  packed, frgi_fe_stops(f));
    for (int i = 0; i < k && status >= 0; i++) {
        s->step[i] = sqrt(packed[frgi_packed(i, i)]);
        for (int j = 0; j <= i; j++) {
            f->fit.bread[i * (ptrdiff_t)k + j] = f->fit.bread[j * (ptrdiff_t)k + i] =
                packed[frgi_packed(i, j)];
        }
    }
    DROP(f->ctx, &packed);
    TRY(status);
    TRY(check_rank(s));
    TRY(frgi_dense_inverse(f->ctx, k, f->fit.bread, 0, &sound));
    if (!sound && !frgi_fe_gives_up(f)) {
        FAIL(f->ctx, E_BUG, "the fitted regressors have no Cholesky factor");
    }
    return FRG_OK;
}

/** gradient <- X^'W e */
static frg_status moment_conditions(const two_stage *s)
{
    const frg_fe *const f = s->f;
    const int k = f->fit.k;
    double *zeros;
    TRY(NEW0(f->ctx, &zeros, k, "gradients"));
    const frg_status status =
        frgi_gram_residual(f->ctx, k, f->fit.x, f->fit.e, zeros, f->data.frame.weights,
                           f->data.frame.n, s->work, s->gradient);
    DROP(f->ctx, &zeros);
    return status;
}

/** b and e of the second stage. */
static frg_status second_stage(const two_stage *s)
{
    frg_fe *const f = s->f;
    const int64_t n = f->data.frame.n;
    const int k = f->fit.k;
    const double size = sqrt(f->fit.within);
    memset(f->fit.b, 0, sizeof *f->fit.b * (size_t)k);
    memcpy(f->fit.e, f->matrix.values, sizeof *f->fit.e * (size_t)n);
    for (int pass = 0; pass < PASSES; pass++) {
        TRY(moment_conditions(s));
        const double change = improve(k, f->fit.bread, s->gradient, f->fit.b, s->step);
        TRY(frgi_gram_residual(f->ctx, k, s->x, f->matrix.values, f->fit.b, f->data.frame.weights,
                               n, f->fit.e, s->gradient));
        f->fit.rss = s->gradient[k];
        if (change <= SETTLED * size) {
            break;
        }
    }
    frgi_fe_intercept(f);
    return FRG_OK;
}

static frg_status estimate(two_stage *s)
{
    frg_fe *const f = s->f;
    frgi_screen_depvar(&s->screen);
    TRY(choose_columns(s));
    if (frgi_fe_gives_up(f)) {
        return FRG_OK;
    }
    TRY(gather_columns(s));
    TRY(keep_gram(s));
    TRY(frgi_screen_inverse(&s->screen, f->iv.n_exogenous + f->iv.n_instruments, f->iv.column_of,
                            f->iv.bread));
    for (int j = 0; j < f->iv.n_endogenous; j++) {
        TRY(first_stage(s, j));
    }
    TRY(invert(s));
    return second_stage(s);
}

frg_status frgi_iv_estimate(frg_fe *f)
{
    two_stage s = {.f = f, .first_endogenous = 1 + f->data.ones + f->data.design.n_exogenous};
    s.first_instrument = s.first_endogenous + f->data.design.n_endogenous;
    TRY(frgi_fe_allocate_estimates(f));
    frg_status status = frgi_screen_create(&s.screen, f, f->data.frame.weights);
    if (status >= 0 && !frgi_fe_gives_up(f)) {
        status = estimate(&s);
    }
    frgi_screen_destroy(&s.screen);
    DROP(f->ctx, &s.z);
    DROP(f->ctx, &s.x);
    DROP(f->ctx, &s.gradient);
    DROP(f->ctx, &s.step);
    DROP(f->ctx, &s.work);
    return status;
}
