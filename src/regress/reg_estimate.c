/* reg_estimate.c - from demeaned columns to estimates.
 *
 *     drop what is absorbed or collinear       (reg_screen.c)
 *     b = (X~'W X~)^-1 X~'W y~, e = y~ - X~ b  (refined where a step of it still moves b)
 */
#include <math.h>
#include <string.h>

#include "regress/reg_screen.h"

static const double SETTLED = 1e-14; /* a refinement by less than this share of y is the last */
enum { PASSES = 3 };

/** b += bread g; returns the largest change in units of y's scale. */
static double improve(const frgi_screen *w, const double *gradient, double y_scale)
{
    const frg_fe *const f = w->f;
    const int64_t k = f->fit.k;
    double largest = 0;
    for (int i = 0; i < k; i++) {
        double change = 0;
        for (int j = 0; j < k; j++) {
            change += f->fit.bread[i * k + j] * gradient[j];
        }
        f->fit.b[i] += change;
        largest = fmax(largest, fabs(change) * w->scale[f->fit.column_of[i] - 1] / y_scale);
    }
    return largest;
}

/** b and e; rss by the way. */
static frg_status solve(frgi_screen *w)
{
    frg_fe *const f = w->f;
    const int k = f->fit.k;
    const double y_square = w->gram[frgi_packed(f->data.p, f->data.p)];
    double *gradient;
    frg_status status = FRG_OK;
    TRY(NEW(f->ctx, &gradient, k + 1, "estimates"));
    for (int j = 0; j < k; j++) {
        f->fit.b[j] = 0;
        gradient[j] = w->gram[frgi_packed(f->data.p, f->fit.column_of[j] - 1)];
    }
    const double y_scale = y_square > 0 ? sqrt(y_square) : 1;
    improve(w, gradient, y_scale);
    for (int pass = 0; pass < PASSES; pass++) {
        memcpy(f->fit.b_of_e, f->fit.b, (size_t)k * sizeof *f->fit.b);
        TRY_TO(done,
               frgi_gram_residual(f->ctx, k, f->fit.x, f->matrix.columns[0], f->fit.b,
                                  f->data.frame.weights, f->data.frame.n, f->fit.e, gradient));
        if (pass == PASSES - 1 || improve(w, gradient, y_scale) < SETTLED) {
            break;
        }
    }
    f->fit.rss = gradient[k];
done:
    DROP(f->ctx, &gradient);
    return status;
}

static frg_status allocate_but_residuals(frg_fe *f)
{
    TRY(NEW(f->ctx, &f->fit.x, f->data.p + 1, "estimates"));
    TRY(NEW(f->ctx, &f->fit.column_of, f->data.p, "estimates"));
    TRY(NEW(f->ctx, &f->fit.dropped, f->data.p, "dropped terms"));
    TRY(NEW(f->ctx, &f->fit.b_of_e, f->data.p, "estimates"));
    return NEW(f->ctx, &f->fit.b, f->data.p, "estimates");
}

frg_status frgi_fe_allocate_estimates(frg_fe *f)
{
    TRY(allocate_but_residuals(f));
    return NEW(f->ctx, &f->fit.e, f->data.frame.n, "residuals");
}

/** Residuals of columns that stay as they are, by coefficients that do, need not be kept, but for
 *  who looks one up. */
static bool keeps_residuals(const frg_fe *f)
{
    return f->data.frame.n_effects == 0 || f->two_stage.text || f->policy.options.keep_effects;
}

frgi_errors frgi_fe_errors_of(const frg_fe *f)
{
    return (frgi_errors){f->fit.k, f->fit.x, f->matrix.columns[0], f->fit.b_of_e};
}

void frgi_fe_errors(const frg_fe *f, int64_t begin, int64_t n, double *out)
{
    if (f->fit.e) {
        memcpy(out, f->fit.e + begin, (size_t)n * sizeof *out);
        return;
    }
    const frgi_errors e = frgi_fe_errors_of(f);
    frgi_gram_ops_of(f->ctx)->errors(e.k, e.x, e.y, e.b, begin, n, out);
}

void frgi_fe_intercept(frg_fe *f)
{
    if (!f->data.centred) {
        return;
    }
    f->fit.b[0] += f->matrix.moments[0].mean;
    for (int j = 1; j < f->fit.k; j++) {
        f->fit.b[0] -= f->fit.b[j] * f->matrix.moments[f->fit.column_of[j]].mean;
    }
}

frg_status frgi_fe_estimate(frg_fe *f)
{
    frgi_screen w = {.f = f};
    frg_status status;
    TRY(keeps_residuals(f) ? frgi_fe_allocate_estimates(f) : allocate_but_residuals(f));
    TRY_TO(done, frgi_screen_create(&w, f, f->data.frame.weights));
    if (frgi_fe_gives_up(f)) {
        goto done;
    }
    frgi_screen_depvar(&w);
    TRY_TO(done, frgi_screen_keep(&w, 0, 0, 1, f->fit.column_of, &f->fit.k));
    if (frgi_fe_gives_up(f)) {
        goto done;
    }
    TRY_TO(done, frgi_screen_report(&w, f->fit.k));
    for (int j = 0; j < f->fit.k; j++) {
        f->fit.x[j] = f->matrix.columns[f->fit.column_of[j]];
    }
    TRY_TO(done, NEW(f->ctx, &f->fit.bread, (int64_t)f->fit.k * f->fit.k, "estimates"));
    TRY_TO(done, frgi_screen_inverse(&w, f->fit.k, f->fit.column_of, f->fit.bread));
    TRY_TO(done, solve(&w));
    frgi_fe_intercept(f);
done:
    frgi_screen_destroy(&w);
    return status;
}
