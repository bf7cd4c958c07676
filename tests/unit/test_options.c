/* test_options.c - the public tables of options: they hold all fields of their structs with the
 * defaults that the structs have, and the calls refuse what is outside of them. */
#include "fourge/fe.h"
#include "fourge/gp.h"
#include "fourge/gw.h"
#include "fourge/qr.h"
#include "fourge/soap.h"
#include "test.h"

typedef frg_status try_fn(frg_context *ctx, const void *opts);

static const double numbers[4] = {0.5, 1.5, 3, 4};

static frg_status try_soap(frg_context *ctx, const void *opts)
{
    frg_soap *soap = NULL;
    const frg_status status = frg_soap_create(&soap, ctx, opts);
    frg_soap_destroy(soap);
    return status;
}

static frg_status try_demean(frg_context *ctx, const void *opts)
{
    static const int32_t codes[4] = {0, 0, 1, 1};
    frg_demean *d = NULL;
    const frg_status status =
        frg_demean_create(&d, ctx, frg_matrix(codes, FRG_I32, 4, 1, 1), NULL, NULL, 0, 0, opts);
    frg_demean_destroy(d);
    return status;
}

static frg_status try_fe(frg_context *ctx, const void *opts)
{
    frg_fe *f = NULL;
    frg_table *t = NULL;
    const double y[4] = {1, 2, 4, 3};
    CHECK_OK(ctx, frg_table_create(&t, ctx, 4));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", y));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", numbers));
    const frg_status status = frg_fe_fit(&f, ctx, "y ~ x", t, opts);
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return status;
}

static frg_status try_gp(frg_context *ctx, const void *opts)
{
    size_t bytes;
    return frg_gp_estimate(ctx, 4, 1, 1, "rbf + noise", opts, &bytes);
}

static frg_status try_gp_fit(frg_context *ctx, const void *opts)
{
    const frg_array v = frg_matrix(numbers, FRG_F64, 4, 1, 1);
    frg_gp *gp = NULL;
    frg_gp_fit_result r;
    frg_status status =
        frg_gp_create(&gp, ctx, v, frg_vector(numbers, FRG_F64, 4), "rbf(l=1!) + noise(0.1)", NULL);
    if (CHECK_OK(ctx, status))
        status = frg_gp_fit(gp, opts, &r);
    frg_gp_destroy(gp);
    return status;
}

static frg_status try_gw(frg_context *ctx, const void *opts)
{
    const frg_array v = frg_matrix(numbers, FRG_F64, 4, 1, 1);
    frg_gw_opts o = *(const frg_gw_opts *)opts;
    o.k_clamp |= o.k > 0;
    frg_gw *s = NULL;
    const frg_status status =
        frg_gw_create(&s, ctx, (frg_gw_side){.data = &v}, (frg_gw_side){.data = &v}, NULL, &o);
    frg_gw_destroy(s);
    return status;
}

static frg_status try_sinkhorn(frg_context *ctx, const void *opts)
{
    frg_sinkhorn *s = NULL;
    const frg_status status =
        frg_sinkhorn_create(&s, ctx, frg_matrix(numbers, FRG_F64, 2, 2, 2), NULL, NULL, opts);
    frg_sinkhorn_destroy(s);
    return status;
}

static frg_status try_lsmr(frg_context *ctx, const void *opts)
{
    static const int64_t starts[3] = {0, 1, 2};
    static const int32_t columns[2] = {0, 1};
    const frg_csr csr = {.m = 2, .n = 2, .starts = starts, .columns = columns};
    double x[2] = {0};
    return frg_lsmr_solve(ctx, NULL, &csr, frg_matrix(numbers, FRG_F64, 2, 1, 1), NULL,
                          frg_matrix(x, FRG_F64, 2, 1, 1), opts, NULL, NULL);
}

static frg_status try_qr(frg_context *ctx, const void *opts)
{
    double q[4] = {0};
    const frg_qr_item item = {.a = frg_matrix(numbers, FRG_F64, 2, 2, 2),
                              .q = frg_matrix(q, FRG_F64, 2, 2, 2)};
    frg_qr *qr = NULL;
    const frg_status status = frg_qr_create(&qr, ctx, 1, &item, opts);
    frg_qr_destroy(qr);
    return status;
}

static frg_status try_graph(frg_context *ctx, const void *opts)
{
    frg_graph_opts o = *(const frg_graph_opts *)opts;
    o.k_clamp |= o.k > 0;
    frg_graph *g = NULL;
    const frg_status status = frg_graph_knn(&g, ctx, frg_matrix(numbers, FRG_F64, 4, 1, 1), &o);
    frg_graph_destroy(g);
    return status;
}

static frg_status try_barycenter(frg_context *ctx, const void *opts)
{
    static const double distances[4] = {0, 1, 1, 0};
    const frg_array space = frg_matrix(distances, FRG_F64, 2, 2, 2);
    double out[4];
    return frg_gw_barycenter(ctx, &space, NULL, NULL, 1, NULL, NULL, opts,
                             frg_matrix(out, FRG_F64, 2, 2, 2), NULL);
}

/** Two sets of four points on a line and the plan between them. */
static frg_status try_embed(frg_context *ctx, const void *opts)
{
    const frg_array v = frg_matrix(numbers, FRG_F64, 4, 1, 1);
    double anchor[8], query[8];
    int64_t found;
    frg_gw *s = NULL;
    frg_graph *g = NULL;
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.k = 2;
    CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &v}, (frg_gw_side){.data = &v}, NULL,
                                &o));
    CHECK_OK(ctx, frg_gw_run(s, NULL));
    CHECK_OK(ctx, frg_graph_knn(&g, ctx, v, &(frg_graph_opts){sizeof(frg_graph_opts), 2, 0, 1}));
    const int64_t columns = ((const frg_embed_opts *)opts)->dimensions == 2 ? 2 : 1;
    const frg_embed_query q = {
        .graph = g, .plan = frg_gw_plan(s), .out = frg_matrix(query, FRG_F64, 4, columns, columns)};
    const frg_status status =
        frg_gw_embed(ctx, g, frg_matrix(anchor, FRG_F64, 4, columns, columns), &q, 1, opts, &found);
    frg_graph_destroy(g);
    frg_gw_destroy(s);
    return status;
}

static frg_status with_process(frg_context *ctx, const frg_gp_predict_opts *predict,
                               const frg_gp_fantasy_opts *fantasy)
{
    const frg_array v = frg_matrix(numbers, FRG_F64, 4, 1, 1);
    frg_array three = {.data = (void *)numbers,
                       .dtype = FRG_F64,
                       .ndim = 3,
                       .shape = {1, 4, 1},
                       .stride = {4, 1, 1}};
    frg_gp *gp = NULL;
    frg_status status =
        frg_gp_create(&gp, ctx, v, frg_vector(numbers, FRG_F64, 4), "rbf(l=1) + noise(0.1)", NULL);
    if (CHECK_OK(ctx, status))
        status = predict ? frg_gp_predict(gp, v, predict)
                         : frg_gp_predict_fantasies(gp, three, three, v, fantasy);
    frg_gp_destroy(gp);
    return status;
}

static frg_status try_gp_predict(frg_context *ctx, const void *opts)
{
    return with_process(ctx, opts, NULL);
}

static frg_status try_gp_fantasy(frg_context *ctx, const void *opts)
{
    return with_process(ctx, NULL, opts);
}

static union {
    frg_lsmr_opts lsmr;
    frg_qr_opts qr;
    frg_graph_opts graph;
    frg_embed_opts embed;
    frg_barycenter_opts barycenter;
    frg_gp_predict_opts gp_predict;
    frg_gp_fantasy_opts gp_fantasy;
    frg_soap_opts soap;
    frg_demean_opts demean;
    frg_fe_opts fe;
    frg_gp_opts gp;
    frg_gp_fit_opts gp_fit;
    frg_gw_opts gw;
    frg_sinkhorn_opts sinkhorn;
} usual, opts;

static void soap_usual(void)
{
    frg_soap_defaults(&usual.soap, sizeof usual.soap, FRG_SOAP_EMERGING);
}
#define USUAL(name)                                                                                \
    static void name##_usual(void)                                                                 \
    {                                                                                              \
        frg_##name##_defaults(&usual.name, sizeof usual.name);                                     \
    }
USUAL(demean)
USUAL(fe)
USUAL(gp)
USUAL(gp_fit)
USUAL(gw)
USUAL(sinkhorn)
USUAL(lsmr)
USUAL(qr)
USUAL(graph)
USUAL(embed)
USUAL(barycenter)
USUAL(gp_predict)
USUAL(gp_fantasy)

#define TABLE(name)                                                                                \
    {                                                                                              \
#name, frg_##name##_options, sizeof(frg_##name##_opts), name##_usual, try_##name           \
    }
static const struct {
    const char *name;
    const frg_option *(*table)(void);
    size_t bytes;
    void (*usual)(void);
    try_fn *try;
} tables[] = {TABLE(soap),  TABLE(demean),     TABLE(fe),         TABLE(gp),        TABLE(gp_fit),
              TABLE(gw),    TABLE(sinkhorn),   TABLE(lsmr),       TABLE(qr),        TABLE(graph),
              TABLE(embed), TABLE(barycenter), TABLE(gp_predict), TABLE(gp_fantasy)};
enum { TABLES = sizeof tables / sizeof *tables };

static size_t bytes_of(const frg_option *o)
{
    return o->type == FRG_OPTION_FLAG || o->type == FRG_OPTION_INT || o->type == FRG_OPTION_CHOICE
               ? sizeof(int)
               : 8;
}

/** The number in a field; 0 where it holds none. */
static double number_in(const frg_option *o, const void *from)
{
    const char *const at = (const char *)from + o->offset;
    int i;
    int64_t l;
    double d;
    memcpy(&i, at, sizeof i);
    if (bytes_of(o) == sizeof i)
        return i;
    memcpy(&l, at, sizeof l);
    memcpy(&d, at, sizeof d);
    return o->type == FRG_OPTION_INT64 ? (double)l : o->type == FRG_OPTION_REAL ? d : 0;
}

static void put_number(const frg_option *o, double value, void *to)
{
    char *const at = (char *)to + o->offset;
    if (bytes_of(o) == sizeof(int))
        memcpy(at, &(int){(int)value}, sizeof(int));
    else if (o->type == FRG_OPTION_INT64)
        memcpy(at, &(int64_t){(int64_t)value}, sizeof(int64_t));
    else
        memcpy(at, &value, sizeof value);
}

/** All fields in their order; between two of them padding, or data of more than one word. */
static void whole(void)
{
    for (int t = 0; t < TABLES; t++) {
        size_t end = sizeof(size_t);
        int is_data = 0;
        tables[t].usual();
        for (const frg_option *o = tables[t].table(); o->name; o++) {
            CHECK_SAYS(o->offset >= end && (is_data || o->offset - end < bytes_of(o)),
                       "%s: a field before %s is missing", tables[t].name, o->name);
            CHECK_SAYS(o->text && *o->text, "%s: %s has no text", tables[t].name, o->name);
            is_data = o->type == FRG_OPTION_DATA;
            end = o->offset + (is_data ? sizeof(int) : bytes_of(o));
            if (!is_data && o->type != FRG_OPTION_TEXT && o->type != FRG_OPTION_SIZE) {
                const double v = number_in(o, &usual);
                CHECK_SAYS(!(v < o->value) && !(v > o->value), "%s: %s is %g by default, not %g",
                           tables[t].name, o->name, v, o->value);
            }
        }
        CHECK_SAYS(end <= tables[t].bytes && (is_data || tables[t].bytes - end < 8),
                   "%s: the last field is missing", tables[t].name);
    }
}

static int words_in(const char *choices)
{
    int n = 1;
    for (; *choices; choices++)
        n += *choices == '|';
    return n;
}

static void refused(frg_context *ctx, int t, const frg_option *o, double value)
{
    memcpy(&opts, &usual, tables[t].bytes);
    put_number(o, value, &opts);
    const frg_status status = tables[t].try(ctx, &opts);
    CHECK_SAYS(status == FRG_BAD_ARG && strstr(frg_message(ctx), o->name), "%s: %s = %g: %s, %s",
               tables[t].name, o->name, value, frg_status_name(status), frg_message(ctx));
}

/** Below the range, above it, at its end where that is open; a place that no choice has; NaN. */
static void outside(void)
{
    frg_context *ctx = test_context();
    for (int t = 0; t < TABLES; t++) {
        tables[t].usual();
        CHECK_OK(ctx, tables[t].try(ctx, &usual));
        for (const frg_option *o = tables[t].table(); o->name; o++) {
            if (o->type == FRG_OPTION_CHOICE) {
                refused(ctx, t, o, -1);
                refused(ctx, t, o, words_in(o->choices));
            }
            if (!(o->low < o->high))
                continue;
            if (!isinf(o->low))
                refused(ctx, t, o, o->open & 1 ? o->low : o->low - 1);
            if (o->high < 1e9)
                refused(ctx, t, o, o->open & 2 ? o->high : o->high + 1);
            if (o->type == FRG_OPTION_REAL)
                refused(ctx, t, o, (double)NAN);
        }
    }
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"whole", whole}, {"outside", outside}};
TEST_MAIN(cases)
