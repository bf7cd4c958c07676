/* reg_estimate.c - from demeaned columns to estimates.
 *
 *     drop what is absorbed or collinear     (Cholesky of the correlations, in formula order)
 *     b = (X~'W X~)^-1 X~'W y~, e = y~ - X~ b  (refined where a step of it still moves b)
 *
 * Dangers: a column that the effects absorb leaves round-off, not zero, so it is compared with its
 * variation before demeaning; everything is compared on the correlation scale, so that units do not
 * matter.
 */
#include <math.h>
#include <string.h>

#include "linalg/cholesky.h"
#include "regress/regress.h"

static const double ABSORBED = 1e-6;   /* of the variation before demeaning */
static const double ABSORBED_Y = 1e-9; /* the same of y: the demeaner's figure */
static const double ROUND_OFF = 1e-14; /* of a mean: what centring a constant leaves */
static const double SETTLED = 1e-14;   /* a refinement by less than this share of y is the last */
enum { PASSES = 3 };

/* ---- collinearity ---------------------------------------------------------------------------- */

typedef struct {
    frg_fe *f;
    double *gram;        /* packed, of X and then y */
    double *scale;       /* p: sqrt of the diagonal, 0 for absorbed columns */
    double *correlation; /* p x p, then its Cholesky rows; X'WX itself under collin=fixest */
    double *relation;    /* p */
    unsigned char *kept; /* p */
} screening;

/** Is the variation left, `square`, round-off beside what the column had? */
static bool is_absorbed(const frg_fe *f, int c, double square, double share)
{
    const frgi_moments *const m = &f->matrix.moments[c];
    const double floor = ROUND_OFF * fabs(m->mean) * sqrt(m->weight);
    if (f->data.frame.n_effects == 0 && !f->data.ones) {
        return square == 0; /* nothing was projected out */
    }
    const double before = f->data.ones && c == 1 ? m->weight : m->square; /* ones do not vary */
    return (f->matrix.reports && f->matrix.reports[c].absorbed) ||
           square <= fmax(share * share * before, floor * floor);
}

/** "collinear with x1, x2": the kept columns before column j that it is a combination of. */
static frg_status name_relation(const screening *w, int j, frgi_text *text)
{
    enum { NAMED = 8 };
    const frg_fe *const f = w->f;
    int named = 0;
    double remainder = f->matrix.moments[j + 1].mean / w->scale[j], size = fabs(remainder);
    frgi_cholesky_relation(f->data.p, w->correlation, w->kept, j, w->relation);
    for (int i = 0; i < j && f->policy.options.collin == FRG_COLLIN_FIXEST; i++) {
        w->relation[i] *= w->scale[i] / w->scale[j];
    }
    for (int i = f->data.centred; i < j; i++) {
        const double share =
            w->kept[i] ? w->relation[i] * f->matrix.moments[i + 1].mean / w->scale[i] : 0;
        remainder -= share;
        size += fabs(share);
    }
    TRY(frgi_text_append(f->ctx, text, "collinear with ", 15));
    if (f->data.centred && fabs(remainder) > 1e-8 * size) {
        TRY(frgi_text_append(f->ctx, text, "(Intercept)", 11));
        named++;
    }
    for (int i = f->data.centred; i < j && named <= NAMED; i++) {
        if (w->kept[i] && fabs(w->relation[i]) > 1e-6) {
            TRY(frgi_text_printf(f->ctx, text, "%s%s", named ? ", " : "",
                                 named == NAMED ? "..." : frgi_fe_column_name(f, i + 1)));
            named++;
        }
    }
    return FRG_OK;
}

static frg_status drop_term(const screening *w, int j)
{
    frg_fe *const f = w->f;
    const char *const why = f->data.frame.n_effects ? "absorbed by the fixed effects"
                            : f->data.ones          ? "collinear with (Intercept)"
                                                    : "zero in every row";
    frgi_text text = {0};
    char *reason = NULL;
    frg_status status;
    if (w->scale[j] > 0) {
        TRY_TO(done, name_relation(w, j, &text));
        TRY_TO(done, frgi_strdup(f->ctx, &reason, text.text, text.length));
    } else {
        TRY_TO(done, frgi_strdup(f->ctx, &reason, why, strlen(why)));
    }
    f->fit.dropped[f->fit.n_dropped++] =
        (frg_dropped_term){.term = frgi_fe_column_name(f, j + 1), .reason = reason};
done:
    frgi_text_free(f->ctx, &text);
    return status;
}

/** One line that names every dropped term: a warning, or the error where none is left. */
static frg_status list_dropped(const frg_fe *f, frgi_text *text)
{
    enum { LISTED = 10 };
    for (int i = 0; i < f->fit.n_dropped && i < LISTED; i++) {
        TRY(frgi_text_printf(f->ctx, text, "%s'%s' (%s)", i ? ", " : "", f->fit.dropped[i].term,
                             f->fit.dropped[i].reason));
    }
    const int more = f->fit.n_dropped - LISTED;
    return more > 0 ? frgi_text_printf(f->ctx, text, " and %d more", more) : FRG_OK;
}

static frg_status no_regressor(const frg_fe *f, const char *reasons)
{
    FAIL(f->ctx, E_NO_REGRESSOR, "no regressor is left: %s", reasons);
}

static frg_status report_dropped(const frg_fe *f)
{
    frgi_text text = {0};
    frg_status status;
    TRY_TO(done, list_dropped(f, &text));
    if (f->fit.k == 0) {
        status = no_regressor(f, text.text);
    } else {
        frgi_warn(f->ctx, W_DROPPED, "dropped: %s", text.text);
    }
done:
    frgi_text_free(f->ctx, &text);
    return status;
}

/** Correlations of the columns that have variation; the others become rows of zeros, which are
 *  dropped. */
static void correlate(const screening *w)
{
    const frg_fe *const f = w->f;
    const int p = f->data.p;
    for (int j = 0; j < p; j++) {
        const double square = w->gram[frgi_packed(j, j)];
        const bool constant = f->data.centred && j == 0;
        w->scale[j] = !constant && is_absorbed(f, j + 1, square, ABSORBED) ? 0 : sqrt(square);
    }
    for (int i = 0; i < p; i++) {
        for (int j = 0; j <= i; j++) {
            const double scale = w->scale[i] * w->scale[j];
            const double elim = f->policy.options.collin == FRG_COLLIN_FIXEST ? 1 : scale;
            const double r = scale > 0 ? w->gram[frgi_packed(i, j)] / elim : 0;
            w->correlation[(int64_t)i * p + j] = w->correlation[(int64_t)j * p + i] = r;
        }
    }
}

static frg_status keep_columns(screening *w)
{
    frg_fe *const f = w->f;
    correlate(w);
    f->fit.k = frgi_cholesky_keep(f->data.p, w->correlation, f->policy.options.collin_tol, w->kept,
                                  frg_threads(f->ctx), frgi_fe_stops(f));
    int k = 0;
    for (int j = 0; j < f->data.p && !frgi_fe_gives_up(f); j++) {
        if (w->kept[j]) {
            f->fit.x[k] = f->matrix.columns[j + 1];
            f->fit.column_of[k++] = j + 1;
        } else {
            TRY(drop_term(w, j));
        }
    }
    return f->fit.n_dropped && !frgi_fe_gives_up(f) ? report_dropped(f) : FRG_OK;
}

/* ---- estimates ------------------------------------------------------------------------------- */

/** bread <- (X'WX)^-1 through the correlations. */
static frg_status invert(const screening *w)
{
    frg_fe *const f = w->f;
    const int64_t k = f->fit.k;
    double *const bread = f->fit.bread;
    for (int i = 0; i < k; i++) {
        for (int j = 0; j <= i; j++) {
            const int a = f->fit.column_of[i] - 1, b = f->fit.column_of[j] - 1;
            bread[i * k + j] = bread[j * k + i] =
                w->gram[frgi_packed(a, b)] / (w->scale[a] * w->scale[b]);
        }
    }
    if (!frgi_inverse(f->fit.k, bread, 0, frg_threads(f->ctx), frgi_fe_stops(f)) &&
        !frgi_fe_gives_up(f)) {
        FAIL(f->ctx, E_BUG, "the correlations of the kept terms have no Cholesky factor");
    }
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) {
            bread[i * k + j] /=
                w->scale[f->fit.column_of[i] - 1] * w->scale[f->fit.column_of[j] - 1];
        }
    }
    return FRG_OK;
}

/** b += bread g; returns the largest change in units of y's scale. */
static double improve(const screening *w, const double *gradient, double y_scale)
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
static frg_status solve(screening *w)
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

static frg_status allocate_screening(screening *w)
{
    const frg_fe *const f = w->f;
    const int64_t p = f->data.p;
    TRY(NEW(f->ctx, &w->gram, frgi_packed(p + 1, 0), "a Gram matrix"));
    TRY(NEW(f->ctx, &w->scale, p, "scales"));
    TRY(NEW(f->ctx, &w->correlation, p * p, "correlations"));
    TRY(NEW(f->ctx, &w->relation, p, "correlations"));
    return NEW0(f->ctx, &w->kept, p, "correlations");
}

static frg_status allocate_estimates(frg_fe *f)
{
    TRY(NEW(f->ctx, &f->fit.x, f->data.p + 1, "estimates"));
    TRY(NEW(f->ctx, &f->fit.column_of, f->data.p, "estimates"));
    TRY(NEW(f->ctx, &f->fit.dropped, f->data.p, "dropped terms"));
    TRY(NEW(f->ctx, &f->fit.b, f->data.p, "estimates"));
    return NEW(f->ctx, &f->fit.e, f->data.frame.n, "residuals");
}

/** y without variation: its round-off must not become estimates. */
static void check_depvar(screening *w)
{
    frg_fe *const f = w->f;
    f->fit.no_variation = is_absorbed(f, 0, w->gram[frgi_packed(f->data.p, f->data.p)], ABSORBED_Y);
    if (f->fit.no_variation) {
        memset(f->matrix.columns[0], 0, sizeof(double) * (size_t)f->data.frame.n);
        memset(w->gram + frgi_packed(f->data.p, 0), 0, sizeof *w->gram * (size_t)(f->data.p + 1));
    }
    f->fit.tss = f->matrix.moments[0].square;
    f->fit.within = w->gram[frgi_packed(f->data.p, f->data.p)];
}

frg_status frgi_fe_estimate(frg_fe *f)
{
    screening w = {.f = f};
    frg_status status;
    TRY(allocate_estimates(f));
    TRY_TO(done, allocate_screening(&w));
    for (int j = 0; j < f->data.p; j++) {
        f->fit.x[j] = f->matrix.columns[j + 1];
    }
    f->fit.x[f->data.p] = f->matrix.columns[0];
    TRY_TO(done, frgi_gram(f->ctx, f->data.p + 1, f->fit.x, f->data.frame.weights, f->data.frame.n,
                           w.gram, frgi_fe_stops(f)));
    if (frgi_fe_gives_up(f)) {
        goto done;
    }
    check_depvar(&w);
    TRY_TO(done, keep_columns(&w));
    if (frgi_fe_gives_up(f)) {
        goto done;
    }
    TRY_TO(done, NEW(f->ctx, &f->fit.bread, (int64_t)f->fit.k * f->fit.k, "estimates"));
    TRY_TO(done, invert(&w));
    TRY_TO(done, solve(&w));
    if (f->data.centred) { /* the intercept as written */
        f->fit.b[0] += f->matrix.moments[0].mean;
        for (int j = 1; j < f->fit.k; j++) {
            f->fit.b[0] -= f->fit.b[j] * f->matrix.moments[f->fit.column_of[j]].mean;
        }
    }
done:
    DROP(f->ctx, &w.gram);
    DROP(f->ctx, &w.scale);
    DROP(f->ctx, &w.correlation);
    DROP(f->ctx, &w.relation);
    DROP(f->ctx, &w.kept);
    return status;
}
