/* reg_iv_ar.c - the test of Anderson and Rubin (1949) and the values that it does not reject.
 *
 *     g(b) = (S_zy - S_zx b)' M(v_y - V b)^-1 (S_zy - S_zx b) / L     beside F(L, df)
 *
 * holds whatever the instruments' strength.  M is quadratic in b.  With one endogenous regressor
 * the set g(b) <= F is bounded by the roots of a quadratic where errors are iid or L = 1; else they
 * are looked for along b = b_2sls + s tan(a), and what lies between the outer ones is given.
 */
#include <math.h>
#include <string.h>

#include "linalg/stat.h"
#include "regress/reg_iv.h"

enum { STEPS = 1024, HALVINGS = 80 };

/** What g(b) is made of, for one endogenous regressor: v_y and V over their roots sy, sv. */
typedef struct {
    const frgi_iv_work *w;
    double sy, sv;
    double *uu, *uv, *vv; /* l x l: M(u), the mixed term, M(v) */
    double *m, *d;        /* l x l, l: scratch */
    double bound;         /* L times the quantile of F */
} set_search;

/** The f with P(F(d1, d2) > f) = p. */
static double f_quantile(double p, double d1, double d2)
{
    double low = 0, high = 1;
    while (frgi_f_upper(high, d1, d2) > p && high < 1e300) {
        high *= 2;
    }
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = 0.5 * (low + high);
        *(frgi_f_upper(middle, d1, d2) > p ? &low : &high) = middle;
    }
    return 0.5 * (low + high);
}

/** out <- M(t) of t = v_y / sy + sign v / sv, sign 0 for none, both NULL-safe by their factors. */
static frg_status meat_of(const set_search *s, double of_y, double of_v, double *out)
{
    const frgi_iv_work *const w = s->w;
    const int64_t n = w->f->data.frame.n;
    for (int64_t i = 0; i < n; i++) {
        w->t[i] = of_y * w->vy[i] / s->sy + of_v * w->v[i] / s->sv;
    }
    const double *const columns[1] = {w->t};
    double zero = 0, sums[2];
    double *work;
    TRY(NEW(w->f->ctx, &work, n, "a test"));
    const frg_status status = frgi_gram_residual(w->f->ctx, 1, columns, w->t, &zero,
                                                 w->f->data.frame.weights, n, work, sums);
    DROP(w->f->ctx, &work);
    TRY(status);
    return frgi_iv_meat(w, w->l, w->zp, w->szz, w->t, sums[0], true, out);
}

static frg_status make_meats(const set_search *s)
{
    const ptrdiff_t cells = (ptrdiff_t)s->w->l * s->w->l;
    TRY(meat_of(s, 1, 0, s->uu));
    TRY(meat_of(s, 0, 1, s->vv));
    TRY(meat_of(s, 1, 1, s->uv));
    for (ptrdiff_t i = 0; i < cells; i++) {
        s->uv[i] = 0.5 * (s->uv[i] - s->uu[i] - s->vv[i]);
    }
    return FRG_OK;
}

/** L g(b) - bound; NaN where M is not positive definite. */
static frg_status excess(const set_search *s, double b, double *out)
{
    const frgi_iv_work *const w = s->w;
    const double x = -b * s->sv / s->sy;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)w->l * w->l; i++) {
        s->m[i] = s->uu[i] + 2 * x * s->uv[i] + x * x * s->vv[i];
    }
    for (int i = 0; i < w->l; i++) {
        s->d[i] = (w->szy[i] - w->szx[i] * b) / s->sy;
    }
    TRY(frgi_dense_form(w->f->ctx, w->l, s->m, s->d, out));
    *out -= s->bound;
    return FRG_OK;
}

/** {b: a b^2 + 2 h b + c <= 0} */
static void quadratic_set(frg_fe_iv_tests *t, double a, double h, double c)
{
    const double square = h * h - a * c;
    if (!isfinite(square) || a == 0) {
        return;
    }
    if (square < 0) {
        t->ar_set = a > 0 ? FRG_AR_EMPTY : FRG_AR_LINE;
        return;
    }
    const double q = -(h + copysign(sqrt(square), h)); /* the root that does not cancel first */
    const double one = q / a, other = q != 0 ? c / q : 0;
    t->ar_set = a > 0 ? FRG_AR_INTERVAL : FRG_AR_RAYS;
    t->ar_low = fmin(one, other);
    t->ar_high = fmax(one, other);
}

/** iid errors: (S_zy - S_zx b)'S_zz^-1 (S_zy - S_zx b) <= bound s^2(b). */
static frg_status set_of_iid(const set_search *s)
{
    const frgi_iv_work *const w = s->w;
    const double *const szz = w->szz;
    double yy = 0, xy = 0, xx = 0;
    double *inverse;
    bool sound;
    TRY(NEW(w->f->ctx, &inverse, (int64_t)w->l * w->l, "a test"));
    memcpy(inverse, szz, sizeof *inverse * (size_t)w->l * (size_t)w->l);
    const frg_status status = frgi_dense_inverse(w->f->ctx, w->l, inverse, 0, &sound);
    for (int i = 0; i < w->l && sound; i++) {
        for (int j = 0; j < w->l; j++) {
            const double p = inverse[i * (ptrdiff_t)w->l + j];
            yy += w->szy[i] * p * w->szy[j];
            xy += w->szx[i] * p * w->szy[j];
            xx += w->szx[i] * p * w->szx[j];
        }
    }
    /* M(t) = c t'Wt S_zz with the same c for all t: that of the first entry */
    const double scale = s->bound / szz[0];
    if (status >= 0 && sound) {
        quadratic_set(w->test, xx - scale * s->vv[0] * s->sv * s->sv,
                      scale * s->uv[0] * s->sv * s->sy - xy, yy - scale * s->uu[0] * s->sy * s->sy);
    }
    DROP(w->f->ctx, &inverse);
    return status;
}

/** One instrument: (S_zy - S_zx b)^2 <= bound M(b). */
static void set_of_one(const set_search *s)
{
    const frgi_iv_work *const w = s->w;
    const double zx = w->szx[0], zy = w->szy[0];
    quadratic_set(w->test, zx * zx - s->bound * s->vv[0] * s->sv * s->sv,
                  s->bound * s->uv[0] * s->sv * s->sy - zx * zy,
                  zy * zy - s->bound * s->uu[0] * s->sy * s->sy);
}

static double place(const set_search *s, double a, double unit)
{
    return s->w->f->fit.b[s->w->e] + unit * tan(a);
}

/** The root between angles low and high, where the sign of `excess` changes. */
static frg_status root(const set_search *s, double low, double high, double unit, double *out)
{
    double at_low;
    TRY(excess(s, place(s, low, unit), &at_low));
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = 0.5 * (low + high);
        double at;
        TRY(excess(s, place(s, middle, unit), &at));
        *((at > 0) == (at_low > 0) ? &low : &high) = middle;
    }
    *out = place(s, 0.5 * (low + high), unit);
    return FRG_OK;
}

/** The outer roots along the circle of angles. */
static frg_status set_by_search(const set_search *s)
{
    static const double half = 1.57079632679489662;
    const frgi_iv_work *const w = s->w;
    const double unit = s->sy / s->sv;
    frg_fe_iv_tests *const t = w->test;
    double before = 0, first = 0;
    int roots = 0;
    for (int i = 1; i < STEPS; i++) {
        const double angle = half * (2.0 * i / STEPS - 1);
        double at;
        TRY(excess(s, place(s, angle, unit), &at));
        if (isnan(at)) {
            return FRG_OK;
        }
        if (i > 1 && (at > 0) != (before > 0)) {
            double found;
            TRY(root(s, angle - 2 * half / STEPS, angle, unit, &found));
            t->ar_low = roots == 0 ? found : t->ar_low;
            t->ar_high = found;
            roots++;
        }
        first = i == 1 ? at : first;
        before = at;
    }
    t->ar_set = roots == 0  ? first > 0 ? FRG_AR_EMPTY : FRG_AR_LINE
                : first > 0 ? FRG_AR_INTERVAL
                            : FRG_AR_RAYS;
    return FRG_OK;
}

static frg_status find_set(const set_search *s)
{
    const frgi_iv_work *const w = s->w;
    TRY(make_meats(s));
    if (w->iid) {
        return set_of_iid(s);
    }
    if (w->l == 1) {
        set_of_one(s);
        return FRG_OK;
    }
    return set_by_search(s);
}

static frg_status test_zero(const frgi_iv_work *w, double *meat)
{
    frg_fe_iv_tests *const t = w->test;
    double form;
    TRY(frgi_iv_meat(w, w->l, w->zp, w->szz, w->vy, w->vyy, true, meat));
    TRY(frgi_dense_form(w->f->ctx, w->l, meat, w->szy, &form));
    t->ar_f = form / w->l;
    t->ar_df = w->df_t;
    t->ar_p = isfinite(t->ar_f) ? frgi_f_upper(t->ar_f, w->l, w->df_t) : (double)NAN;
    return FRG_OK;
}

frg_status frgi_iv_anderson_rubin(frgi_iv_work *w)
{
    const int64_t cells = (int64_t)w->l * w->l;
    const double level = w->f->policy.options.level;
    double *memory;
    TRY(NEW(w->f->ctx, &memory, 4 * cells + w->l, "a test"));
    set_search s = {.w = w,
                    .sy = sqrt(w->vyy),
                    .sv = sqrt(w->svv[0]),
                    .uu = memory,
                    .uv = memory + cells,
                    .vv = memory + 2 * cells,
                    .m = memory + 3 * cells,
                    .d = memory + 4 * cells,
                    .bound = w->l * f_quantile(1 - level, w->l, w->df_t)};
    w->test->ar_low = w->test->ar_high = (double)NAN;
    frg_status status = test_zero(w, s.m);
    if (status >= 0 && w->m == 1 && s.sy > 0 && s.sv > 0) {
        status = find_set(&s);
    }
    DROP(w->f->ctx, &memory);
    return status;
}
