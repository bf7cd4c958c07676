/* reg_screen.c - see reg_screen.h.
 *
 * Dangers: a column that the effects absorb leaves round-off, not zero, so it is compared with its
 * variation before demeaning; everything is compared on the correlation scale, so that units do not
 * matter.
 */
#include "regress/reg_screen.h"

#include <math.h>
#include <string.h>

#include "linalg/cholesky.h"

static const double ABSORBED = 1e-6;   /* of the variation before demeaning */
static const double ABSORBED_Y = 1e-9; /* the same of y: the demeaner's figure */
static const double ROUND_OFF = 1e-14; /* of a mean: what centring a constant leaves */

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
static frg_status name_relation(const frgi_screen *w, int j, frgi_text *text)
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

static frg_status drop_term(const frgi_screen *w, int j)
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

frg_status frgi_screen_report(const frgi_screen *w, int k)
{
    const frg_fe *const f = w->f;
    frgi_text text = {0};
    frg_status status;
    if (f->fit.n_dropped == 0) {
        return FRG_OK;
    }
    TRY_TO(done, list_dropped(f, &text));
    if (k == 0) {
        status = no_regressor(f, text.text);
    } else {
        frgi_warn(f->ctx, W_DROPPED, "dropped: %s", text.text);
    }
done:
    frgi_text_free(f->ctx, &text);
    return status;
}

/** Correlations of the columns that have variation; the others, and the hidden ones, become rows of
 *  zeros, which are dropped. */
static void correlate(const frgi_screen *w, int begin, int end)
{
    const frg_fe *const f = w->f;
    const int p = f->data.p;
    for (int i = 0; i < p; i++) {
        const bool hidden = i + 1 >= begin && i + 1 < end;
        for (int j = 0; j <= i; j++) {
            const double scale = w->scale[i] * w->scale[j];
            const double elim = f->policy.options.collin == FRG_COLLIN_FIXEST ? 1 : scale;
            const bool out = hidden || (j + 1 >= begin && j + 1 < end) || scale <= 0;
            const double r = out ? 0 : w->gram[frgi_packed(i, j)] / elim;
            w->correlation[(int64_t)i * p + j] = w->correlation[(int64_t)j * p + i] = r;
        }
    }
}

frg_status frgi_screen_keep(frgi_screen *w, int begin, int end, int first, int32_t *column_of,
                            int *k)
{
    frg_fe *const f = w->f;
    correlate(w, begin, end);
    *k = 0;
    frgi_cholesky_keep(f->data.p, w->correlation, f->policy.options.collin_tol, w->kept,
                       frg_threads(f->ctx), frgi_fe_stops(f));
    for (int c = 1; c <= f->data.p && !frgi_fe_gives_up(f); c++) {
        if (w->kept[c - 1]) {
            column_of[(*k)++] = c;
        } else if (c >= first && !(c >= begin && c < end)) {
            TRY(drop_term(w, c - 1));
        }
    }
    return FRG_OK;
}

frg_status frgi_screen_inverse(const frgi_screen *w, int k, const int32_t *column_of, double *out)
{
    frg_fe *const f = w->f;
    for (int i = 0; i < k; i++) {
        for (int j = 0; j <= i; j++) {
            const int a = column_of[i] - 1, b = column_of[j] - 1;
            out[i * (int64_t)k + j] = out[j * (int64_t)k + i] =
                w->gram[frgi_packed(a, b)] / (w->scale[a] * w->scale[b]);
        }
    }
    if (!frgi_inverse(k, out, 0, frg_threads(f->ctx), frgi_fe_stops(f)) && !frgi_fe_gives_up(f)) {
        FAIL(f->ctx, E_BUG, "the correlations of the kept terms have no Cholesky factor");
    }
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) {
            out[i * (int64_t)k + j] /= w->scale[column_of[i] - 1] * w->scale[column_of[j] - 1];
        }
    }
    return FRG_OK;
}

void frgi_screen_depvar(frgi_screen *w)
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

/** Roots of the diagonal; 0 for what the effects absorb. */
static void measure(const frgi_screen *w)
{
    const frg_fe *const f = w->f;
    for (int j = 0; j < f->data.p; j++) {
        const double square = w->gram[frgi_packed(j, j)];
        const bool constant = f->data.centred && j == 0;
        w->scale[j] = !constant && is_absorbed(f, j + 1, square, ABSORBED) ? 0 : sqrt(square);
    }
}

static frg_status allocate(frgi_screen *w)
{
    const frg_fe *const f = w->f;
    const int64_t p = f->data.p;
    TRY(NEW(f->ctx, &w->gram, frgi_packed(p + 1, 0), "a Gram matrix"));
    TRY(NEW(f->ctx, &w->scale, p, "scales"));
    TRY(NEW(f->ctx, &w->correlation, p * p, "correlations"));
    TRY(NEW(f->ctx, &w->relation, p, "correlations"));
    return NEW0(f->ctx, &w->kept, p, "correlations");
}

frg_status frgi_screen_create(frgi_screen *w, frg_fe *f, const double *weights)
{
    const double **x = NULL;
    const int p = f->data.p;
    *w = (frgi_screen){.f = f};
    frg_status status;
    TRY_TO(done, allocate(w));
    TRY_TO(done, NEW(f->ctx, &x, p + 1, "columns"));
    for (int j = 0; j <= p; j++) {
        x[j] = f->matrix.columns[j < p ? j + 1 : 0];
    }
    TRY_TO(done, frgi_gram(f->ctx, p + 1, x, weights, f->data.frame.n, w->gram, frgi_fe_stops(f)));
    if (!frgi_fe_gives_up(f)) {
        measure(w);
    }
done:
    DROP(f->ctx, &x);
    return status;
}

void frgi_screen_destroy(frgi_screen *w)
{
    frg_context *const ctx = w->f->ctx;
    DROP(ctx, &w->gram);
    DROP(ctx, &w->scale);
    DROP(ctx, &w->correlation);
    DROP(ctx, &w->relation);
    DROP(ctx, &w->kept);
}
