/* test_fe_fault.c - every allocation of a regression failed in turn: fit, another covariance,
 * residuals, effects, predictions. */
#include "fault.h"
#include "fourge/fe.h"

typedef struct {
    const char *csv, *formula, *subset, *weights;
    const char *vcov[3];
    frg_fe_connected connected;
    int64_t n;
} job;

static frg_status use_regressors(const frg_fe *f, const frg_table *t, uint64_t *hash)
{
    const size_t cells = (size_t)frg_table_rows(t) * (size_t)frg_fe_get(f)->n_coefficients;
    double *const x = calloc(cells + 1, sizeof *x);
    const frg_status s = frg_fe_regressors(f, t, x, NULL);
    if (s >= 0)
        fault_hash(hash, x, cells * sizeof *x);
    free(x);
    return s;
}

static frg_status use(frg_context *ctx, const job *j, const frg_table *t, frg_fe *f, uint64_t *hash)
{
    const frg_fe_result *const r = frg_fe_get(f);
    double *const out = calloc((size_t)j->n, sizeof *out);
    const frg_fe_vcov *v = NULL;
    frg_table *effects = NULL;
    int64_t unseen = 0, sets = 0;
    int32_t *const group = (int32_t *)out;
    (void)ctx;
    for (int c = 0; c < r->n_vcov; c++)
        for (int k = 0; k < r->n_coefficients; k++)
            fault_hash(hash, &r->vcov[c].coefficients[k].estimate, 6 * sizeof(double));
    frg_status s = frg_fe_vcov_add(f, "cluster=c+g", "fixef=full", &v);
    CHECK((s >= 0) == (v != NULL));
    if (s >= 0)
        fault_hash(hash, v->matrix, sizeof(double));
    frg_fe_test test;
    const double first[16] = {1};
    if (s >= 0)
        s = frg_fe_wald(f, v->projected ? &r->vcov[0] : v, first, NULL, 1, &test);
    if (s >= 0)
        fault_hash(hash, &test, sizeof test);
    if (s >= 0)
        s = frg_fe_residuals(f, out, NULL);
    if (s >= 0)
        fault_hash(hash, out, (size_t)j->n * sizeof *out);
    if (s >= 0 && j->connected) {
        s = frg_fe_groups(f, group, &sets);
        if (s >= 0)
            fault_hash(hash, group, (size_t)j->n * sizeof *group);
    }
    if (s >= 0 && r->n_factors)
        s = frg_fe_effects(f, &effects);
    if (effects)
        fault_hash(hash, frg_table_column(effects, 2)->numbers, sizeof(double));
    if (s >= 0)
        s = frg_fe_predict(f, t, out, &unseen);
    if (s >= 0)
        fault_hash(hash, out, (size_t)j->n * sizeof *out);
    if (s >= 0)
        s = use_regressors(f, t, hash);
    frg_table_destroy(effects);
    free(out);
    return s;
}

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    const job *const j = user;
    frg_table *t = NULL;
    frg_fe *f = (frg_fe *)&t; /* must become NULL on failure */
    frg_status s = frg_table_parse(&t, ctx, j->csv, (int64_t)strlen(j->csv), "memory", NULL);
    if (s < 0)
        return s;
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.n_vcov = 3;
    memcpy(o.vcov, j->vcov, sizeof j->vcov);
    o.keep_effects = 1;
    o.subset = j->subset;
    o.weights = j->weights;
    o.connected = j->connected;
    s = frg_fe_fit(&f, ctx, j->formula, t, &o);
    CHECK(s >= 0 || f == NULL);
    if (s >= 0)
        s = use(ctx, j, t, f, hash);
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return s;
}

/** Rows with everything: text, fractions as keys, missing cells, singletons, weights of zero. */
static char *make_csv(int n)
{
    char *const csv = calloc((size_t)n + 1, 96);
    size_t at = (size_t)sprintf(csv, "y,x,z,f,g,c,s,w,k,id\n");
    for (int i = 0; i < n; i++)
        at += (size_t)sprintf(
            csv + at, "%.3f,%.3f,%s,%d,%d,%d,%c,%d,%.2f,%d\n", test_normal(), test_normal(),
            i == 7 ? "" : "1.5", i / 4, i == 11 ? 99 : (int)test_below(5), (int)test_below(4),
            (char)('a' + i % 3), i == 13 ? 0 : 1 + i % 3, 0.25 * (double)test_below(6), i);
    return csv;
}

static void sweep(const char *name, job *j)
{
    enum { N = 48 };
    char *const csv = make_csv(N);
    j->csv = csv;
    j->n = N;
    const int64_t k = fault_sweep(name, body, j, test_now.threads);
    printf("# %s: %" PRId64 " allocations\n", name, k);
    CHECK_SAYS(k > 50, "%s: only %" PRId64 " allocations were seen", name, k);
    free(csv);
}

static void effects(void)
{
    sweep("effects", &(job){.formula = "y ~ x + z:x + i(s) | f + g",
                            .subset = "x < 10 & s %in% c('a', 'b', 'c')",
                            .vcov = {"iid", "hc1", "cluster=c"}});
}

static void joint_and_weighted(void)
{
    sweep("joint", &(job){.formula = "log(abs(y)) ~ x + I(2*x) | g^s + k",
                          .weights = "w",
                          .connected = FRG_CONNECTED_LARGEST,
                          .vcov = {"cluster=c+s", "cluster=c^s", "hc1"}});
}

static void without_effects(void)
{
    sweep("plain", &(job){.formula = "y ~ x*s + i(g, ref = 1, keep = c(1, 2, 3))",
                          .vcov = {"iid", "hc1", "cluster=c+s+g"}});
}

static void slopes(void)
{
    sweep("slopes", &(job){.formula = "y ~ x | g[c, log(w + 1)] + s[[f]]",
                           .vcov = {"iid", "hc1", "cluster=g"}});
}

static void panels(void)
{
    sweep("panels", &(job){.formula = "y ~ x | g",
                           .vcov = {"nw=id,c,1", "hac=id,c", "conley=w,c,100,kernel=bartlett"}});
}

static void leverages(void)
{
    sweep("leverages", &(job){.formula = "y ~ x | g + c",
                              .vcov = {"hc2", "hc3,leverage=approx,draws=40", "dk=c"}});
    sweep("units", &(job){.formula = "y ~ x | g[k]", .vcov = {"hc3", "cr2=g", "iid"}});
}

static void left_out(void)
{
    sweep("left out",
          &(job){.formula = "y ~ x | g + c", .vcov = {"cr2=c", "jackknife=c", "wild=c,99"}});
}

static const test_case cases[] = {
    {"panels", panels},
    {"leverages", leverages},
    {"left_out", left_out},
    {"slopes", slopes},
    {"effects", effects},
    {"joint_and_weighted", joint_and_weighted},
    {"without_effects", without_effects},
};
TEST_MAIN(cases)
