/* test_fe_panel.c - lags, leads and differences by unit and time.
 *
 * The oracle looks each lag up by comparing all rows, and puts it into the table as a column: the
 * fit that names the column has the bits of the one that says l(x, k).
 */
#include "fault.h"
#include "fourge/fe.h"
#include "fourge/table.h"
#include "test.h"

enum { ROWS = 240, UNITS = 20, TIMES = 16 };

/** Rows of an unbalanced panel in random order: a unit has each time at most once, with gaps. */
typedef struct {
    int64_t unit[ROWS], time[ROWS];
    double y[ROWS], x[ROWS], z[ROWS];
} panel_data;

static void draw_panel(panel_data *d)
{
    bool taken[UNITS][TIMES] = {{false}};
    for (int i = 0; i < ROWS; i++) {
        do {
            d->unit[i] = test_below(UNITS);
            d->time[i] = test_below(TIMES);
        } while (taken[d->unit[i]][d->time[i]]);
        taken[d->unit[i]][d->time[i]] = true;
        d->time[i] += 1990;
        d->y[i] = test_normal();
        d->x[i] = test_below(15) ? test_normal() : (double)NAN;
        d->z[i] = 1 + test_uniform();
    }
}

/** x_u,t-k by looking at all rows; difference: x less it. */
static void look_up(const panel_data *d, const double *x, int64_t k, bool difference, double *out)
{
    for (int i = 0; i < ROWS; i++) {
        out[i] = (double)NAN;
        for (int j = 0; j < ROWS; j++) {
            if (d->unit[j] == d->unit[i] && d->time[j] == d->time[i] - k) {
                out[i] = difference ? x[i] - x[j] : x[j];
            }
        }
    }
}

static frg_table *make_table(frg_context *ctx, const panel_data *d)
{
    double column[ROWS], logs[ROWS];
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, ROWS));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", d->y));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", d->x));
    CHECK_OK(ctx, frg_table_add_numbers(t, "z", d->z));
    CHECK_OK(ctx, frg_table_add_integers(t, "unit", d->unit));
    CHECK_OK(ctx, frg_table_add_integers(t, "the time", d->time));
    for (int i = 0; i < ROWS; i++) {
        logs[i] = log(d->z[i]);
    }
    const struct {
        const char *name;
        const double *x;
        int64_t k;
        bool difference;
    } lags[] = {{"x_1", d->x, 1, false},     {"x_2", d->x, 2, false},
                {"x_lead", d->x, -1, false}, {"x_lead3", d->x, -3, false},
                {"dx", d->x, 1, true},       {"dy", d->y, 1, true},
                {"y_lead", d->y, -1, false}, {"logz_2", logs, 2, false}};
    for (size_t i = 0; i < sizeof lags / sizeof *lags; i++) {
        look_up(d, lags[i].x, lags[i].k, lags[i].difference, column);
        CHECK_OK(ctx, frg_table_add_numbers(t, lags[i].name, column));
    }
    return t;
}

static frg_fe_opts options(void)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[0] = "cluster=unit";
    o.panel = "unit, `the time`";
    return o;
}

/** Both formulas have the same estimates, errors and rows; the first one's terms are named. */
static void check_pair(frg_context *ctx, const frg_table *t, const char *lags, const char *columns,
                       const char *terms)
{
    const frg_fe_opts o = options();
    frg_fe *f = NULL, *g = NULL;
    char names[200] = "";
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, lags, t, &o)) &&
        CHECK_OK(ctx, frg_fe_fit(&g, ctx, columns, t, &o))) {
        const frg_fe_result *const r = frg_fe_get(f), *const s = frg_fe_get(g);
        CHECK_TEXT(r->formula, lags);
        CHECK_INT(r->n, s->n);
        CHECK_INT(r->n_missing, s->n_missing);
        CHECK(r->n_missing > 0);
        if (CHECK_INT(r->n_coefficients, s->n_coefficients)) {
            for (int i = 0; i < r->n_coefficients; i++) {
                CHECK_BITS(&r->coefficients[i].estimate, &s->coefficients[i].estimate,
                           6 * sizeof(double));
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ";" : "",
                         r->coefficients[i].term);
            }
            CHECK_TEXT(names, terms);
        }
    }
    frg_fe_destroy(f);
    frg_fe_destroy(g);
}

static void columns_of_lags(void)
{
    frg_context *const ctx = test_context();
    panel_data *const d = malloc(sizeof *d);
    draw_panel(d);
    frg_table *const t = make_table(ctx, d);
    check_pair(ctx, t, "y ~ l(x) + z | unit", "y ~ x_1 + z | unit", "l(x, 1);z");
    check_pair(ctx, t, "y ~ l(x, 0:2)", "y ~ x + x_1 + x_2", "(Intercept);l(x, 0);l(x, 1);l(x, 2)");
    check_pair(ctx, t, "y ~ f(x, 1) + l(x, -3)", "y ~ x_lead + x_lead3",
               "(Intercept);f(x, 1);l(x, -3)");
    check_pair(ctx, t, "y ~ l(x, -1:1)", "y ~ x_lead + x + x_1",
               "(Intercept);l(x, -1);l(x, 0);l(x, 1)");
    check_pair(ctx, t, "d(y) ~ d(x) - 1", "dy ~ dx - 1", "d(x, 1)");
    check_pair(ctx, t, "f(y) ~ z:l(x, 1:2) + l(log(z), 2)", "y_lead ~ logz_2 + z:x_1 + z:x_2",
               "(Intercept);l(log(z), 2);z:l(x, 1);z:l(x, 2)");
    check_pair(ctx, t, "y ~ z + I(l(x)^2 + x) | unit[l(x)]", "y ~ z + I(x_1^2 + x) | unit[x_1]",
               "z;I(l(x, 1)^2 + x)");
    free(d);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Several models with lags; predictions take the lags of the new data. */
static void models_and_predictions(void)
{
    frg_context *const ctx = test_context();
    panel_data *const d = malloc(sizeof *d);
    draw_panel(d);
    frg_table *const t = make_table(ctx, d);
    frg_fe_opts o = options();
    frg_fe_many *m = NULL;
    double p[ROWS], fitted[ROWS];
    if (CHECK_OK(ctx, frg_fe_fit_many(&m, ctx, "y ~ csw(l(x), z, f(z)) | unit", t, &o))) {
        CHECK_INT(frg_fe_many_count(m), 3);
        for (int i = 0; i < 3; i++) {
            const frg_fe_result *const r = frg_fe_get(frg_fe_many_get(m, i));
            frg_fe *single = NULL;
            CHECK_OK(ctx, frg_fe_fit(&single, ctx, r->formula, t, &o));
            CHECK_BITS(&r->coefficients[0].estimate, &frg_fe_get(single)->coefficients[0].estimate,
                       6 * sizeof(double));
            frg_fe_destroy(single);
        }
    }
    frg_fe_many_destroy(m);
    frg_fe *f = NULL;
    CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ l(x) + z", t, &o));
    CHECK_OK(ctx, frg_fe_predict(f, t, p, NULL));
    CHECK_OK(ctx, frg_fe_residuals(f, NULL, fitted));
    for (int i = 0; i < ROWS; i++) { /* two orders of a sum of three terms of size 1 */
        CHECK(isnan(p[i]) == isnan(fitted[i]));
        CHECK(isnan(p[i]) || fabs(p[i] - fitted[i]) < 1e-12);
    }
    frg_fe_destroy(f);
    free(d);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static void refused(void)
{
    static const struct {
        const char *formula, *panel, *code, *says;
    } table[] = {
        {"y ~ l(x)", NULL, "FRG-CORE-006", "which is not given"},
        {"y ~ l(x)", "unit", "FRG-CORE-006", "expected UNIT,TIME"},
        {"y ~ l(x)", "unit,the tim", "FRG-IO-008", "did you mean"},
        {"y ~ l(x)", "one,the time", "FRG-FE-030", "are of one unit at time"},
        {"y ~ l(x)", "unit,z", "FRG-FE-011", "lags count by ones"},
        {"y ~ l(x, z)", "unit,the time", "FRG-FE-001", "a whole number"},
        {"y ~ l(x, 0.5)", "unit,the time", "FRG-FE-001", "a whole number"},
        {"y ~ l()", "unit,the time", "FRG-FE-001", "take a column"},
        {"y ~ l(d(x))", "unit,the time", "FRG-FE-001", "do not stand in each other"},
        {"l(y, 1:2) ~ x", "unit,the time", "FRG-FE-001", "an outcome has one lag"},
        {"y ~ l(nothing)", "unit,the time", "FRG-IO-008", "'nothing' is not in the data"},
        {"y ~ x | l(unit)", "unit,the time", "FRG-FE-001", "expected a column"},
    };
    frg_context *const ctx = test_context();
    panel_data *const d = malloc(sizeof *d);
    draw_panel(d);
    frg_table *const t = make_table(ctx, d);
    int64_t one[ROWS] = {0};
    CHECK_OK(ctx, frg_table_add_integers(t, "one", one));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        frg_fe_opts o = options();
        frg_fe *f;
        o.panel = table[i].panel;
        CHECK(frg_fe_fit(&f, ctx, table[i].formula, t, &o) < 0 && !f);
        CHECK_SAYS(strcmp(frg_error_code(ctx), table[i].code) == 0 &&
                       strstr(frg_message(ctx), table[i].says),
                   "'%s': %s %s", table[i].formula, frg_error_code(ctx), frg_message(ctx));
    }
    frg_fe_opts o = options();
    frg_fe *f;
    o.subset = "l(x) > 0";
    CHECK_STATUS(frg_fe_fit(&f, ctx, "y ~ x", t, &o), FRG_BAD_ARG);
    free(d);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static frg_status lag_body(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    double x[24], y[24];
    int64_t unit[24], time[24];
    test_now.random = 9; /* the same data each time */
    for (int i = 0; i < 24; i++) {
        x[i] = test_normal();
        y[i] = test_normal();
        unit[i] = i / 8;
        time[i] = 8 - i % 8;
    }
    frg_table *t = NULL;
    frg_fe *f = NULL;
    frg_fe_opts o = options();
    o.panel = "unit,time";
    frg_status status = frg_table_create(&t, ctx, 24);
    status = status < 0 ? status : frg_table_add_numbers(t, "x", x);
    status = status < 0 ? status : frg_table_add_numbers(t, "y", y);
    status = status < 0 ? status : frg_table_add_integers(t, "unit", unit);
    status = status < 0 ? status : frg_table_add_integers(t, "time", time);
    status = status < 0 ? status : frg_fe_fit(&f, ctx, "d(y) ~ l(x, 1:2)", t, &o);
    if (status >= 0) {
        fault_hash(hash, &frg_fe_get(f)->coefficients[0].estimate, 6 * sizeof(double));
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return status;
}

static void memory(void)
{
    CHECK(fault_sweep("lags", lag_body, NULL, 1) > 50);
}

static const test_case cases[] = {
    {"columns of lags", columns_of_lags},
    {"models and predictions", models_and_predictions},
    {"refused", refused},
    {"memory", memory},
};

TEST_MAIN(cases)
