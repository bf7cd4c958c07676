/* reg_hac.c - serial correlation in panels: Newey-West, Driscoll-Kraay, and units and periods both.
 *
 * Periods t = 1 .. T are the ranks of the time variable's values (a gap in the calendar is none),
 * b_l = 1 - l / (L + 1) Bartlett's weights, L = floor(T^(1/4)) where no lag is given:
 *
 *     nw   M = sum_u sum_{t, l} b_|l| s_{u,t} s_{u,t-l}'          Newey and West (1987), by unit
 *     dk   M = sum_{t, l} b_|l| S_t S_{t-l}',  S_t = sum_u s_{u,t}   Driscoll and Kraay (1998)
 *     hac  M = sum_u S_u S_u' + M_dk - M_nw,  S_u = sum_t s_{u,t}    Chiang, Hansen and Sasaki
 *                                                                   (2024), after Thompson (2011)
 *
 * Each is S'S + S'T + T'S of sorted scores S, T the weighted sum of the lags of each.  O(n L k + n
 * k^2) time, 2 n k doubles.  hac need not be positive: reg_vcov_matrix.c mends it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formula/keys.h"
#include "regress/reg_vcov.h"

/* ---- periods --------------------------------------------------------------------------------- */

typedef struct {
    double number;
    int64_t integer;
    const char *label;
    int32_t code;
} period;

static int by_value(const void *a, const void *b, const void *user)
{
    const period *const p = a, *const q = b;
    (void)user;
    if (p->label) {
        return strcmp(p->label, q->label);
    }
    return p->number != q->number ? (p->number > q->number) - (p->number < q->number)
                                  : (p->integer > q->integer) - (p->integer < q->integer);
}

/** Texts of digits, '-', ':', 'T' and blanks, all as long as the first, are dates in order. */
static bool is_date(const char *label, size_t length)
{
    return strlen(label) == length && strspn(label, "0123456789-:/T ") == length && length > 0;
}

static frg_status fill_period(frg_context *ctx, const frg_column *c, int64_t row, period *p)
{
    if (c->kind == FRG_NUMBER) {
        p->number = c->numbers[row];
    } else if (c->kind == FRG_INTEGER) {
        p->integer = c->integers[row];
    } else if (c->kind == FRG_BOOL || c->ordered) {
        p->integer = c->codes[row];
    } else {
        p->label = c->labels[c->codes[row]];
        if (!is_date(p->label, strlen(c->labels[0]))) {
            frgi_at(ctx, "%s:%lld", c->name, (long long)row + 1);
            FAIL(ctx, E_TYPE,
                 "the time variable '%s' holds text without an order, as '%s' in row %lld; "
                 "periods are numbers or dates written as 2024-01-31",
                 c->name, p->label, (long long)row + 1);
        }
    }
    return FRG_OK;
}

/** rank[code] by the values of the column at the first rows of the codes. */
static frg_status rank_periods(const frg_fe *f, const frg_column *c, const int32_t *codes,
                               int64_t T, int32_t *rank)
{
    period *periods = NULL;
    int64_t *first = NULL;
    frg_status status;
    TRY_TO(done, NEW0(f->ctx, &periods, T, "periods"));
    TRY_TO(done, NEW(f->ctx, &first, T, "periods"));
    frgi_keys_first(f->data.frame.n, codes, T, first);
    for (int64_t t = 0; t < T; t++) {
        periods[t].code = (int32_t)t;
        TRY_TO(done,
               fill_period(f->ctx, c, f->data.frame.rows ? f->data.frame.rows[first[t]] : first[t],
                           &periods[t]));
    }
    frgi_sort(periods, T, sizeof *periods, by_value, NULL);
    for (int64_t t = 0; t < T; t++) {
        rank[periods[t].code] = (int32_t)t;
    }
done:
    DROP(f->ctx, &periods);
    DROP(f->ctx, &first);
    return status;
}

frg_status frgi_vcov_periods(frgi_vcov_work *w, int i)
{
    const frg_fe *const f = w->f;
    const frgi_key *const key = &w->v->request.keys[i];
    const int64_t n = f->data.frame.n;
    int32_t *const codes = w->own + i * n, *rank = NULL;
    TRY(frgi_vcov_check_complete(f, key));
    TRY(frgi_key_list_codes(&f->data.frame.later, f->ctx, key, f->data.frame.rows, n, codes,
                            &w->groups[i]));
    TRY(NEW(f->ctx, &rank, w->groups[i], "periods"));
    const frg_status status = rank_periods(f, key->columns[0], codes, w->groups[i], rank);
    for (int64_t r = 0; r < n && status >= 0; r++) {
        codes[r] = rank[codes[r]];
    }
    w->codes[i] = codes;
    DROP(f->ctx, &rank);
    return status;
}

/* ---- lags ------------------------------------------------------------------------------------ */

/** L, which the result tells: as given, or floor(T^(1/4)); no more than T - 1. */
static int64_t choose_lag(frgi_vcov_work *w, int64_t T)
{
    const double given = w->v->request.choice[VCOV_LAG];
    const double wanted = isnan(given) ? floor(pow((double)T, 0.25) + 1e-9) : given;
    w->v->v.lag = (int64_t)wanted;
    w->v->v.kernel = "bartlett";
    return wanted < (double)T ? (int64_t)wanted : T - 1;
}

/** Scores in an order, k columns of n, and the unit and period of each; unit NULL: one. */
typedef struct {
    int64_t n;
    double *s, *t;
    const int32_t *unit, *time;
} ordered;

/** t_i = sum_{l=1}^L (1 - l / (bandwidth + 1)) s_{i-l}, the lags of a row those before it of the
 *  same unit whose period is l less. */
static void add_lags(const frg_context *ctx, const ordered *o, int k, int64_t L, int64_t bandwidth)
{
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(ctx, o->n *(L + 1)))
    for (int64_t i = 0; i < o->n; i++) {
        for (int j = 0; j < k; j++) {
            o->t[j * o->n + i] = 0;
        }
        for (int64_t p = i - 1; p >= 0 && (!o->unit || o->unit[p] == o->unit[i]); p--) {
            const int64_t l = o->time[i] - o->time[p];
            if (l > L) {
                break;
            }
            const double b = 1 - (double)l / ((double)bandwidth + 1);
            for (int j = 0; j < k; j++) {
                o->t[j * o->n + i] += b * o->s[j * o->n + p];
            }
        }
    }
}

/** meat += scale (S'S + S'T + T'S). */
static frg_status add_serial(frgi_vcov_work *w, const ordered *o, int64_t L, double scale)
{
    const frg_fe *const f = w->f;
    const int k = f->fit.k;
    const double **columns;
    add_lags(f->ctx, o, k, L, w->v->v.lag);
    TRY(NEW(f->ctx, &columns, 2 * (int64_t)k, "a covariance"));
    for (int j = 0; j < k; j++) {
        columns[j] = o->s + j * o->n;
        columns[k + j] = o->t + j * o->n;
    }
    frg_status status = frgi_vcov_add_gram(w, columns, NULL, o->n, scale);
    if (status >= 0 && L > 0) {
        status = frgi_vcov_add_cross(w, columns, columns + k, o->n, scale);
    }
    DROP(f->ctx, &columns);
    return status;
}

/* ---- Newey-West ------------------------------------------------------------------------------ */

/** order[] <- rows by unit, then period: counting by one, then by the other, both stable. */
static frg_status sort_panel(const frgi_vcov_work *w, int64_t *order)
{
    const int64_t n = w->f->data.frame.n;
    const int last = w->v->request.n - 1;
    int64_t *by_period = NULL;
    int64_t *start = NULL;
    frg_status status;
    TRY_TO(done, NEW(w->f->ctx, &by_period, n, "an order"));
    for (int pass = 0; pass < 2; pass++) {
        const int32_t *const codes = w->codes[pass ? 0 : last];
        const int64_t groups = w->groups[pass ? 0 : last];
        TRY_TO(done, NEW0(w->f->ctx, &start, groups + 1, "an order"));
        for (int64_t i = 0; i < n; i++) {
            start[codes[i] + 1]++;
        }
        for (int64_t g = 0; g < groups; g++) {
            start[g + 1] += start[g];
        }
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = pass ? by_period[i] : i;
            (pass ? order : by_period)[start[codes[row]]++] = row;
        }
        DROP(w->f->ctx, &start);
    }
done:
    DROP(w->f->ctx, &by_period);
    DROP(w->f->ctx, &start);
    return status;
}

static frg_status refuse_duplicates(const frgi_vcov_work *w, const ordered *o, const int64_t *order)
{
    const frg_fe *const f = w->f;
    for (int64_t i = 1; i < o->n; i++) {
        if (o->unit[i] == o->unit[i - 1] && o->time[i] == o->time[i - 1]) {
            const int64_t *const rows = f->data.frame.rows;
            const int64_t a = rows ? rows[order[i - 1]] : order[i - 1],
                          b = rows ? rows[order[i]] : order[i];
            frgi_at(f->ctx, "vcov");
            FAIL(f->ctx, E_DUPLICATE, "vcov '%s': rows %lld and %lld are of the same %s and %s",
                 w->v->request.spec, (long long)a + 1, (long long)b + 1, w->v->request.names[0],
                 w->v->request.names[w->v->request.n - 1]);
        }
    }
    return FRG_OK;
}

/** The scores by unit and period. */
static void gather(const frgi_vcov_work *w, const int64_t *order, int32_t *unit, int32_t *time,
                   double *s)
{
    const int64_t n = w->f->data.frame.n;
    const int last = w->v->request.n - 1;
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(w->f->ctx, n))
    for (int64_t i = 0; i < n; i++) {
        unit[i] = w->codes[0][order[i]];
        time[i] = w->codes[last][order[i]];
        for (int j = 0; j < w->f->fit.k; j++) {
            s[j * n + i] = w->scores[order[i]] * w->x[j][order[i]];
        }
    }
}

static frg_status add_units(frgi_vcov_work *w, double scale)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n, k = f->fit.k, T = w->groups[w->v->request.n - 1];
    const int64_t L = choose_lag(w, T);
    int64_t *order = NULL;
    int32_t *unit = NULL, *time = NULL;
    ordered o = {.n = n};
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &order, n, "an order"));
    TRY_TO(done, NEW(f->ctx, &unit, n, "an order"));
    TRY_TO(done, NEW(f->ctx, &time, n, "an order"));
    TRY_TO(done, NEW(f->ctx, &o.s, k * n, "scores"));
    TRY_TO(done, NEW(f->ctx, &o.t, k * n, "lagged scores"));
    TRY_TO(done, sort_panel(w, order));
    gather(w, order, unit, time, o.s);
    o.unit = unit;
    o.time = time;
    TRY_TO(done, refuse_duplicates(w, &o, order));
    status = add_serial(w, &o, L, scale);
done:
    DROP(f->ctx, &order);
    DROP(f->ctx, &unit);
    DROP(f->ctx, &time);
    DROP(f->ctx, &o.s);
    DROP(f->ctx, &o.t);
    return status;
}

/* ---- Driscoll-Kraay -------------------------------------------------------------------------- */

static frg_status add_periods(frgi_vcov_work *w, double scale)
{
    const frg_fe *const f = w->f;
    const int last = w->v->request.n - 1;
    const int64_t k = f->fit.k, T = w->groups[last], L = choose_lag(w, T);
    int32_t *time = NULL;
    ordered o = {.n = T};
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &time, T, "periods"));
    TRY_TO(done, NEW(f->ctx, &o.s, k * T, "scores by period"));
    TRY_TO(done, NEW(f->ctx, &o.t, k * T, "lagged scores"));
    for (int64_t t = 0; t < T; t++) {
        time[t] = (int32_t)t;
    }
    o.time = time;
    TRY_TO(done, frgi_gram_by_group(f->ctx, f->fit.k, w->x, w->scores, w->codes[last],
                                    f->data.frame.n, T, o.s));
    status = add_serial(w, &o, L, scale);
done:
    DROP(f->ctx, &time);
    DROP(f->ctx, &o.s);
    DROP(f->ctx, &o.t);
    return status;
}

frg_status frgi_vcov_nw_meat(frgi_vcov_work *w)
{
    TRY(frgi_vcov_scores(w));
    return add_units(w, 1);
}

frg_status frgi_vcov_dk_meat(frgi_vcov_work *w)
{
    TRY(frgi_vcov_scores(w));
    return add_periods(w, 1);
}

frg_status frgi_vcov_hac_meat(frgi_vcov_work *w)
{
    TRY(frgi_vcov_scores(w));
    TRY(frgi_vcov_gross(w));
    TRY(frgi_vcov_add_groups(w, w->codes[0], w->groups[0], 1));
    TRY(add_periods(w, 1));
    return add_units(w, -1);
}
