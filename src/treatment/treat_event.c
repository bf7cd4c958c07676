/* treat_event.c - event studies: the columns of a treatment that begins at different times.
 *
 *     treated    D_it = 1 from the cohort's period g on, 0 before it and for the never treated
 *     since      t - g, the reference for the never treated
 *     first      g, one period behind the last for the never treated
 *
 * The reference is the last relative period before the treatment that the rows have, -1 where
 * periods follow each other.  A regression on treated, on i(since, ref=), by sunab(first, time) or
 * in two stages is an ordinary fit of them.
 */
#include <math.h>
#include <string.h>

#include "core/opts.h"
#include "formula/program.h"
#include "io/io.h"
#include "regress/regress.h"
#include "treatment/treat_cohorts.h"

#define OPTIONS_OF frg_event_study_opts
static const frg_option options[] = {
#include "treatment/event_study_opts.def"
    {.name = NULL}};

const frg_option *frg_event_study_options(void)
{
    return options;
}

void frg_event_study_defaults(frg_event_study_opts *o, size_t struct_size)
{
    frg_event_study_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

/** The study while its columns are made: of the table's n rows. */
typedef struct {
    frg_context *ctx;
    frg_event_study_opts o;
    const frg_table *data;
    int64_t n;
    double *arrays; /* all of these */
    double *time, *treated, *since, *first;
    unsigned char *used;
    int64_t *rows; /* in use, of treated cohorts: cohort by cohort */
    int64_t n_treated;
    double *periods; /* of the rows in use, ascending */
    int64_t n_periods;
    double reference;
} study;

static frg_status read_time(const study *s)
{
    const frg_column *c;
    if (!s->o.unit || !s->o.time || !s->o.cohort) {
        FAIL(s->ctx, E_OPTION, "event_study: the column '%s' is not named",
             !s->o.unit   ? "unit"
             : !s->o.time ? "time"
                          : "cohort");
    }
    TRY(frgi_column_named(&c, s->ctx, s->o.time, "event_study", s->data));
    if (c->kind == FRG_CATEGORY) {
        FAIL(s->ctx, E_COHORT, "event_study: the period '%s' holds text", c->name);
    }
    frgi_column_block(c, NULL, 0, s->n, s->time);
    return FRG_OK;
}

/** since, NaN for the never treated, and the reference: -1 where a row has it, else the last that
 *  is below 0. */
static void find_since(study *s)
{
    s->reference = -INFINITY;
    for (int64_t i = 0; i < s->n; i++) {
        s->since[i] = isfinite(s->first[i]) ? s->time[i] - s->first[i] : (double)NAN;
        const double since = s->used[i] && s->since[i] < 0 ? s->since[i] : (double)-INFINITY;
        if (s->reference != -1 && (since > s->reference || since == -1)) {
            s->reference = since;
        }
    }
}

static int ascending(const void *a, const void *b, const void *user)
{
    (void)user;
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int by_cohort(const void *a, const void *b, const void *user)
{
    const double *const first = user;
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    return first[i] != first[j] ? (first[i] < first[j] ? -1 : 1) : i < j ? -1 : i > j;
}

static void sort_rows(study *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        if (s->used[i] && !isnan(s->time[i])) {
            s->periods[s->n_periods++] = s->time[i];
            s->rows[s->n_treated] = i;
            s->n_treated += isfinite(s->first[i]);
        }
    }
    frgi_sort(s->periods, s->n_periods, sizeof *s->periods, ascending, NULL);
    frgi_sort(s->rows, s->n_treated, sizeof *s->rows, by_cohort, s->first);
}

/** The first period in use that is g or later. */
static double period_from(const study *s, double g)
{
    int64_t low = 0, high = s->n_periods;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (s->periods[middle] < g) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return s->periods[low]; /* a cohort that is treated has such rows */
}

/** E_REFERENCE for cohorts that sunab() would take for never treated or could compare with
 *  nothing. */
static frg_status check_calendar(const study *s)
{
    for (int64_t k = 0; k < s->n_treated; k++) {
        const double g = s->first[s->rows[k]], there = period_from(s, g);
        if (there != g) {
            FAIL(s->ctx, E_REFERENCE,
                 "event_study: no row is of the period %.15g in which a cohort's treatment begins, "
                 "and sunab() takes such cohorts for never treated; write %.15g, the next period "
                 "that is there",
                 g, there);
        }
    }
    for (int64_t k = 0, end; k < s->n_treated; k = end) {
        const double g = s->first[s->rows[k]];
        bool there = false;
        for (end = k; end < s->n_treated && s->first[s->rows[end]] == g; end++) {
            there |= s->since[s->rows[end]] == s->reference;
        }
        if (!there) {
            FAIL(s->ctx, E_REFERENCE,
                 "event_study: the cohort %.15g has no row at %.15g, which it is compared with; "
                 "leave its rows out",
                 g, g + s->reference);
        }
    }
    return FRG_OK;
}

/** The never treated: the reference, and a period behind the last. */
static void fill_never(const study *s)
{
    const double behind = s->periods[s->n_periods - 1] + 1;
    for (int64_t i = 0; i < s->n; i++) {
        if (isinf(s->first[i])) {
            s->since[i] = s->reference;
            s->first[i] = behind;
        }
    }
}

static frg_status allocate(study *s)
{
    double **const parts[] = {&s->time, &s->treated, &s->since, &s->first, &s->periods};
    enum { PARTS = sizeof parts / sizeof *parts };
    TRY(NEW(s->ctx, &s->arrays, frgi_mul(PARTS, (size_t)s->n), "an event study"));
    for (int i = 0; i < PARTS; i++) {
        *parts[i] = s->arrays + i * s->n;
    }
    TRY(NEW(s->ctx, &s->used, s->n, "an event study"));
    return NEW(s->ctx, &s->rows, s->n, "an event study");
}

static frg_status run(study *s)
{
    TRY(frgi_options_check(s->ctx, options, &s->o));
    TRY(allocate(s));
    TRY(read_time(s));
    const frgi_cohorts c = {.ctx = s->ctx,
                            .what = "event_study",
                            .data = s->data,
                            .n = s->n,
                            .unit = s->o.unit,
                            .cohort = s->o.cohort,
                            .subset = s->o.subset,
                            .never = s->o.never_treated,
                            .or_less = true,
                            .time = s->time,
                            .first = s->first,
                            .treated = s->treated,
                            .used = s->used};
    TRY(frgi_cohorts_find(&c));
    find_since(s);
    sort_rows(s);
    TRY(s->o.calendar ? check_calendar(s) : FRG_OK);
    fill_never(s);
    return FRG_OK;
}

frg_status frg_event_study(frg_context *ctx, const frg_table *data, const frg_event_study_opts *o,
                           double *treated, double *since, double *first, double *reference)
{
    REQUIRE(ctx, ctx && data && o, "frg_event_study takes a context, a table and options");
    study s = {.ctx = ctx, .data = data, .n = frg_table_rows(data)};
    frg_event_study_defaults(&s.o, sizeof s.o);
    TRY(frgi_take_opts(ctx, &s.o, sizeof s.o, o));
    const frg_status status = run(&s);
    double *const to[] = {treated, since, first}, *const from[] = {s.treated, s.since, s.first};
    for (int c = 0; c < 3 && status >= 0; c++) {
        if (to[c]) {
            memcpy(to[c], from[c], sizeof *to[c] * (size_t)s.n);
        }
    }
    if (reference && status >= 0) {
        *reference = s.reference;
    }
    DROP(ctx, &s.arrays);
    DROP(ctx, &s.used);
    DROP(ctx, &s.rows);
    return status;
}
