/* test_fe_columns.c - which columns a fit reads: formula, subset, weights, clusters, and no
 * function names. */
#include "fault.h"
#include "fourge/fe.h"
#include "test.h"

typedef struct {
    char text[512];
} list;

static void take(const char *name, void *user)
{
    list *l = user;
    const size_t used = strlen(l->text);
    snprintf(l->text + used, sizeof l->text - used, "%s%s", used ? " " : "", name);
}

static void names(void)
{
    frg_context *ctx = test_context();
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    list l = {{0}};
    CHECK_OK(ctx, frg_fe_columns(ctx, "log(y) ~ x1*x2 + i(year, ref=1980) | firm^`my id` + unit[z]",
                                 NULL, take, &l));
    CHECK_TEXT(l.text, "y x1 x2 year firm my id unit z");
    o.subset = "age > 20 & TRUE";
    o.weights = "w";
    o.vcov[0] = "cluster=a+b^c";
    o.vcov[1] = "hc1";
    o.n_vcov = 2;
    l.text[0] = '\0';
    CHECK_OK(ctx, frg_fe_columns(ctx, "y ~ x", &o, take, &l));
    CHECK_TEXT(l.text, "y x age w a b c");
    frg_context_destroy(ctx);
}

static void bad_input(void)
{
    frg_context *ctx = test_context();
    list l = {{0}};
    CHECK_STATUS(frg_fe_columns(ctx, "y x", NULL, take, &l), FRG_BAD_ARG);
    CHECK_TEXT(frg_error_code(ctx), "FRG-FE-001");
    CHECK_STATUS(frg_fe_columns(ctx, NULL, NULL, take, &l), FRG_BAD_ARG);
    CHECK_STATUS(frg_fe_columns(ctx, "y ~ x", NULL, NULL, NULL), FRG_BAD_ARG);
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.n_vcov = 9; /* behind the last of them */
    CHECK_STATUS(frg_fe_columns(ctx, "y ~ x", &o, take, &l), FRG_BAD_ARG);
    CHECK_TEXT(l.text, "");
    frg_context_destroy(ctx);
}

static frg_status once(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.subset = "s > 1";
    o.vcov[0] = "cluster=g";
    list l = {{0}};
    const frg_status status = frg_fe_columns(ctx, "y ~ x | f", &o, take, &l);
    if (status >= 0) {
        fault_hash(hash, l.text, strlen(l.text));
    }
    return status;
}

static void memory_fails(void)
{
    fault_sweep("columns", once, NULL, 1);
}

static const test_case cases[] = {
    {"names", names}, {"bad input", bad_input}, {"memory fails", memory_fails}};
TEST_MAIN(cases)
