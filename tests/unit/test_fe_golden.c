/* test_fe_golden.c - regressions against the peers' numbers in tests/golden, and the published
 * ones.
 *
 * tests/golden/README.md says what the columns are.  One fit an id, every line of it compared.
 * Tolerances are the contract's, 1e-8 relative for estimates and 1e-6 for standard errors, and what
 * follows from them:
 *
 *     t             2e-6 relative p d(log p) = t dt, and -log p > t^2 / 2:  4e-6 (1 + |log p|)
 *     covariance    2e-6 sd_a sd_b                Wald f    4e-6 relative
 *     fitted, residual, effect     1e-8 of the largest of them in the fit
 *
 * Each fit is made beyond memory, too, with arrays of 32 and of 4096 numbers and more in files: the
 * same bits.
 */
#include "core/context.h"
#include "fourge/fe.h"
#include "test.h"

enum { COLUMNS = 14, TABLES = 16, LIMITS = 2, LIMIT = 64 << 20 };
static const size_t in_files[LIMITS] = {256, 1 << 15}; /* bytes, from which on arrays are */
enum {
    ID,
    DATA,
    FORMULA,
    VCOV,
    WEIGHTS,
    KIND,
    SSC,
    SINGLETONS,
    DOF,
    PEER,
    QUANTITY,
    TERM,
    VALUE,
    TOLERANCE
};

typedef struct {
    char *field[COLUMNS];
} line;

typedef struct {
    frg_context *ctx, *disk[LIMITS];
    int n_tables;
    char *name[TABLES];
    frg_table *table[TABLES];
    /* of the fit at hand */
    frg_fe *fit;
    const frg_fe_result *r;
    const frg_table *data;
    frg_table *effects;
    double *fitted, *residual;
    double scale; /* of fitted values and effects */
    int checked, fits;
} golden;

/* ---- files ----------------------------------------------------------------------------------- */

static char *slurp(const char *path)
{
    FILE *const f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    const size_t n = (size_t)ftell(f);
    rewind(f);
    char *const text = calloc(n + 1, 1);
    const size_t got = fread(text, 1, n, f);
    fclose(f);
    text[got] = '\0';
    return text;
}

static line split(char *text)
{
    line l = {0};
    for (int c = 0; c < COLUMNS && text; c++) {
        l.field[c] = text;
        text = strchr(text, '\t');
        if (text)
            *text++ = '\0';
    }
    return l;
}

static const frg_table *table_of(golden *g, const char *name)
{
    for (int i = 0; i < g->n_tables; i++)
        if (strcmp(g->name[i], name) == 0)
            return g->table[i];
    char path[512];
    snprintf(path, sizeof path, "%s/%s", FOURGE_SOURCE_DIR, name);
    if (g->n_tables == TABLES ||
        !CHECK_OK(g->ctx, frg_table_read(&g->table[g->n_tables], g->ctx, path, NULL)))
        return NULL;
    g->name[g->n_tables] = strdup(name);
    return g->table[g->n_tables++];
}

/* ---- one fit --------------------------------------------------------------------------------- */

static const char *given(const char *s)
{
    return strcmp(s, "-") == 0 ? NULL : s;
}

static void end_fit(golden *g)
{
    frg_table_destroy(g->effects);
    frg_fe_destroy(g->fit);
    free(g->fitted);
    free(g->residual);
    g->effects = NULL;
    g->fit = NULL;
    g->r = NULL;
    g->fitted = g->residual = NULL;
}

/** Coefficients, covariance, residuals, fitted values, effects: every bit of the fit at hand. */
static bool is_same(const golden *g, const frg_fe *f)
{
    const frg_fe_result *const a = frg_fe_get(f), *const b = g->r;
    const size_t k = (size_t)b->n_coefficients, n = (size_t)b->n_rows * sizeof(double);
    double *const fitted = malloc(n), *const residual = malloc(n);
    frg_table *effects = NULL;
    bool same = frg_fe_residuals(f, residual, fitted) == FRG_OK &&
                memcmp(residual, g->residual, n) == 0 && memcmp(fitted, g->fitted, n) == 0;
    same = same && a->n_coefficients == b->n_coefficients && a->rank == b->rank && a->n == b->n &&
           memcmp(&a->rss, &b->rss, sizeof a->rss) == 0 &&
           memcmp(a->vcov[0].matrix, b->vcov[0].matrix, k * k * sizeof(double)) == 0;
    for (size_t i = 0; same && i < k; i++)
        same = memcmp(&a->coefficients[i].estimate, &b->coefficients[i].estimate, 8) == 0;
    if (same && g->effects && frg_fe_effects(f, &effects) == FRG_OK) {
        const frg_column *const e = frg_table_column(effects, 2), *const w = frg_table_column(
                                                                      g->effects, 2);
        same = e->n == w->n && memcmp(e->numbers, w->numbers, (size_t)w->n * sizeof(double)) == 0;
    }
    frg_table_destroy(effects);
    free(fitted);
    free(residual);
    return same;
}

static void fit_beyond_memory(golden *g, const line *l, const frg_fe_opts *o)
{
    for (int k = 0; k < LIMITS; k++) {
        frg_fe *f = NULL;
        if (CHECK_OK(g->disk[k], frg_fe_fit(&f, g->disk[k], l->field[FORMULA], g->data, o)))
            CHECK_SAYS(is_same(g, f), "%s: other bits with arrays of %zu bytes in files",
                       l->field[ID], in_files[k]);
        frg_fe_destroy(f);
    }
}

static frg_context *open_disk(size_t from)
{
    frg_context_opts o;
    frg_context *ctx = NULL;
    frg_context_defaults(&o, sizeof o);
    o.threads = test_now.threads;
    o.memory_limit = LIMIT;
    o.spool = ".";
    if (CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK))
        frgi_spool_from(ctx, from);
    return ctx;
}

static void begin_fit(golden *g, const line *l)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[0] = l->field[VCOV];
    o.weights = given(l->field[WEIGHTS]);
    o.weights_kind =
        strcmp(l->field[KIND], "frequency") == 0 ? FRG_WEIGHTS_FREQUENCY : FRG_WEIGHTS_ANALYTIC;
    o.ssc = given(l->field[SSC]);
    o.keep_singletons = strcmp(l->field[SINGLETONS], "keep") == 0;
    o.demean.dof = strcmp(l->field[DOF], "naive") == 0   ? FRG_DOF_NAIVE
                   : strcmp(l->field[DOF], "exact") == 0 ? FRG_DOF_EXACT
                                                         : FRG_DOF_AUTO;
    o.keep_effects = 1;
    g->data = table_of(g, l->field[DATA]);
    if (!g->data)
        return;
    const frg_status status = frg_fe_fit(&g->fit, g->ctx, l->field[FORMULA], g->data, &o);
    if (!CHECK_SAYS(status == FRG_OK, "%s: %s: %s", l->field[ID], frg_status_name(status),
                    frg_message(g->ctx)))
        return;
    g->fits++;
    g->r = frg_fe_get(g->fit);
    g->fitted = calloc((size_t)g->r->n_rows, sizeof(double));
    g->residual = calloc((size_t)g->r->n_rows, sizeof(double));
    CHECK_OK(g->ctx, frg_fe_residuals(g->fit, g->residual, g->fitted));
    g->scale = 0;
    for (int64_t i = 0; i < g->r->n_rows; i++)
        g->scale = fmax(g->scale, isnan(g->fitted[i]) ? 0 : fabs(g->fitted[i]));
    if (g->r->n_factors > 0)
        CHECK_OK(g->ctx, frg_fe_effects(g->fit, &g->effects));
    fit_beyond_memory(g, l, &o);
}

static const frg_coefficient *coefficient(const golden *g, const char *term)
{
    for (int i = 0; i < g->r->n_coefficients; i++)
        if (strcmp(g->r->coefficients[i].term, term) == 0)
            return &g->r->coefficients[i];
    return NULL;
}

static int position(const golden *g, const char *term, size_t length)
{
    for (int i = 0; i < g->r->n_coefficients; i++)
        if (strlen(g->r->coefficients[i].term) == length &&
            memcmp(g->r->coefficients[i].term, term, length) == 0)
            return i;
    return -1;
}

static bool compare(golden *g, const line *l, double got, double allowed)
{
    const double want = strtod(l->field[VALUE], NULL);
    const double published = l->field[TOLERANCE] ? strtod(l->field[TOLERANCE], NULL) : 0;
    g->checked++;
    return CHECK_SAYS(got == want || fabs(got - want) <= allowed + published,
                      "%s: %s %s is %.17g, expected %.17g: error %.2g > %.2g", l->field[ID],
                      l->field[QUANTITY], l->field[TERM], got, want, fabs(got - want),
                      allowed + published);
}

/* ---- quantities ------------------------------------------------------------------------------ */

/** Those of one coefficient. */
static bool compare_coefficient(golden *g, const line *l)
{
    const char *const q = l->field[QUANTITY];
    const double want = strtod(l->field[VALUE], NULL), size = fabs(want);
    static const char *const names[] = {"estimate", "std_error", "statistic", "p_value",
                                        "conf_low", "conf_high", "df"};
    int which = 0;
    while (which < 7 && strcmp(q, names[which]) != 0)
        which++;
    if (which == 7)
        return false;
    const frg_coefficient *const c = coefficient(g, l->field[TERM]);
    if (!CHECK_SAYS(c != NULL, "%s: no coefficient '%s'", l->field[ID], l->field[TERM]))
        return true;
    const double *const df = g->r->vcov[0].df;
    const double got[] = {c->estimate,
                          c->std_error,
                          c->statistic,
                          c->p_value,
                          c->conf_low,
                          c->conf_high,
                          df ? df[c - g->r->coefficients] : g->r->vcov[0].df_t};
    const double interval = 1e-8 * fabs(c->estimate) + 1e-6 * fabs(c->conf_high - c->conf_low);
    const double allowed[] = {
        1e-8 * size, 1e-6 * size, 2e-6 * size, 4e-6 * size * (1 + (want > 0 ? fabs(log(want)) : 0)),
        interval,    interval,    1e-6 * size};
    compare(g, l, got[which], allowed[which]);
    return true;
}

/** "a,b": terms may hold commas, so every comma is tried. */
static bool compare_covariance(golden *g, const line *l)
{
    if (strcmp(l->field[QUANTITY], "covariance") != 0)
        return false;
    const char *const term = l->field[TERM];
    for (const char *comma = strchr(term, ','); comma; comma = strchr(comma + 1, ',')) {
        const int a = position(g, term, (size_t)(comma - term)),
                  b = position(g, comma + 1, strlen(comma + 1));
        if (a >= 0 && b >= 0) {
            const double sd = g->r->coefficients[a].std_error * g->r->coefficients[b].std_error;
            compare(g, l, g->r->vcov[0].matrix[a * g->r->n_coefficients + b], 2e-6 * sd);
            return true;
        }
    }
    CHECK_SAYS(false, "%s: no covariance '%s'", l->field[ID], term);
    return true;
}

/** Those of the whole fit. */
static bool compare_fit(golden *g, const line *l)
{
    const frg_fe_result *const r = g->r;
    const frg_fe_vcov *const v = &r->vcov[0];
    const bool naive = strcmp(l->field[DOF], "naive") == 0,
               exact = strcmp(l->field[DOF], "exact") == 0;
    const double rank = (double)r->rank, skip = strtod(l->field[VALUE], NULL);
    const struct {
        const char *name;
        double got, tolerance;
    } all[] = {{"n", (double)r->n, 0},
               {"missing", (double)r->n_missing, 0},
               {"singleton", (double)r->n_singleton, 0},
               {"k", r->n_coefficients, 0},
               {"k_full", (double)(r->n - r->df_residual), 0},
               {"k_counted", (double)v->k, 0},
               {"df_t", v->df_t, 0},
               {"absorbed_rank", naive ? skip : rank, 0},
               {"absorbed_naive", exact ? skip : rank, 0},
               {"rss", r->rss, 1e-8},
               {"r2", r->r2, 1e-8},
               {"r2_adjusted", r->r2_adjusted, 1e-8},
               {"r2_within", r->r2_within, 1e-8},
               {"rmse", r->rmse, 1e-8},
               {"wald_f", v->wald_f, 4e-6}};
    if (v->projected && strcmp(l->field[QUANTITY], "wald_f") == 0)
        return CHECK(isnan(v->wald_f)); /* the matrix is singular; theirs is b' b over rounding */
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(l->field[QUANTITY], all[i].name) == 0) {
            compare(g, l, all[i].got, all[i].tolerance * fabs(strtod(l->field[VALUE], NULL)));
            return true;
        }
    }
    return false;
}

static bool compare_clusters(golden *g, const line *l)
{
    if (strcmp(l->field[QUANTITY], "clusters") != 0)
        return false;
    const frg_fe_vcov *const v = &g->r->vcov[0];
    int k = 0;
    while (k < v->n_clusters && strcmp(v->cluster_name[k], l->field[TERM]) != 0)
        k++;
    if (CHECK_SAYS(k < v->n_clusters, "%s: no cluster variable '%s'", l->field[ID], l->field[TERM]))
        compare(g, l, (double)v->cluster_count[k], 0);
    return true;
}

static bool compare_row(golden *g, const line *l)
{
    const bool fitted = strcmp(l->field[QUANTITY], "fitted") == 0;
    if (!fitted && strcmp(l->field[QUANTITY], "residual") != 0)
        return false;
    const int64_t row = atoll(l->field[TERM]) - 1;
    if (CHECK(row >= 0 && row < g->r->n_rows))
        compare(g, l, fitted ? g->fitted[row] : g->residual[row], 1e-8 * g->scale);
    return true;
}

/** "factor::level"; the parts of a joint level are joined by '_' here and by '^' there. */
static bool compare_effect(golden *g, const line *l)
{
    if (strcmp(l->field[QUANTITY], "effect") != 0)
        return false;
    char *const factor = l->field[TERM], *const level = strstr(factor, "::");
    if (!CHECK(level && g->effects))
        return true;
    const frg_column *const factors = frg_table_column(g->effects, 0), *const levels =
                                                                           frg_table_column(
                                                                               g->effects, 1);
    const frg_column *const values = frg_table_column(g->effects, 2);
    for (int64_t i = 0; i < values->n; i++) {
        char label[256];
        snprintf(label, sizeof label, "%s::%s", factors->labels[factors->codes[i]],
                 levels->labels[levels->codes[i]]);
        for (char *c = strstr(label, "::"); *c; c++)
            *c = *c == '_' && strchr(factor, '^') ? '^' : *c;
        if (strcmp(label, l->field[TERM]) == 0) {
            compare(g, l, values->numbers[i], 1e-8 * g->scale);
            return true;
        }
    }
    CHECK_SAYS(false, "%s: no effect '%s'", l->field[ID], l->field[TERM]);
    return true;
}

static bool compare_dropped(golden *g, const line *l)
{
    if (strcmp(l->field[QUANTITY], "dropped") != 0)
        return false;
    bool found = false;
    for (int i = 0; i < g->r->n_dropped; i++)
        found |= strcmp(g->r->dropped[i].term, l->field[TERM]) == 0;
    g->checked++;
    CHECK_SAYS(found, "%s: '%s' is not dropped", l->field[ID], l->field[TERM]);
    return true;
}

static void compare_line(golden *g, const line *l)
{
    static bool (*const all[])(golden *, const line *) = {
        compare_coefficient, compare_covariance, compare_fit,    compare_clusters,
        compare_row,         compare_effect,     compare_dropped};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i](g, l))
            return;
    CHECK_SAYS(false, "%s: the quantity '%s' is not known", l->field[ID], l->field[QUANTITY]);
}

/* ---- one file -------------------------------------------------------------------------------- */

static void run_file(const char *name)
{
    char path[512], *id = NULL;
    snprintf(path, sizeof path, "%s/tests/golden/%s", FOURGE_SOURCE_DIR, name);
    char *const text = slurp(path), *next = text;
    golden g = {.ctx = test_context()};
    for (int k = 0; k < LIMITS; k++)
        g.disk[k] = open_disk(in_files[k]);
    if (!CHECK_SAYS(text != NULL, "%s is not there", path))
        return;
    for (bool header = true; next && *next; header = false) {
        char *const end = strchr(next, '\n');
        if (end)
            *end = '\0';
        line l = split(next);
        next = end ? end + 1 : NULL;
        if (header || !l.field[VALUE])
            continue;
        if (!id || strcmp(id, l.field[ID]) != 0) {
            end_fit(&g);
            begin_fit(&g, &l);
            id = l.field[ID];
        }
        if (g.r)
            compare_line(&g, &l);
    }
    CHECK(g.fits > 0 && g.checked > 0);
    printf("# %s: %d fits, %d numbers\n", name, g.fits, g.checked);
    end_fit(&g);
    for (int i = 0; i < g.n_tables; i++) {
        frg_table_destroy(g.table[i]);
        free(g.name[i]);
    }
    frg_context_destroy(g.ctx);
    for (int k = 0; k < LIMITS; k++)
        frg_context_destroy(g.disk[k]);
    free(text);
}

static void cigar(void)
{
    run_file("cigar.tsv");
}
static void empluk(void)
{
    run_file("empluk.tsv");
}
static void grunfeld(void)
{
    run_file("grunfeld.tsv");
}
static void jobtraining(void)
{
    run_file("jobtraining.tsv");
}
static void munnell(void)
{
    run_file("munnell.tsv");
}
static void wage_panel(void)
{
    run_file("wage_panel.tsv");
}
static void fixest(void)
{
    run_file("fixest.tsv");
}
static void vcov(void)
{
    run_file("vcov.tsv");
}
static void published(void)
{
    run_file("published.tsv");
}

static const test_case cases[] = {
    {"cigar", cigar},       {"empluk", empluk},
    {"grunfeld", grunfeld}, {"jobtraining", jobtraining},
    {"munnell", munnell},   {"wage_panel", wage_panel},
    {"fixest", fixest},     {"published", published},
    {"vcov", vcov},
};
TEST_MAIN(cases)
