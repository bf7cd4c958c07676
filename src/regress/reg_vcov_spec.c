/* reg_vcov_spec.c - what is asked for: "cluster=a+b^c" and "adj=true,fixef=nonnested,...", parsed
 * and printed. */
#include <stdio.h>
#include <string.h>

#include "regress/regress.h"

/* ---- the small-sample rule ------------------------------------------------------------------- */

typedef enum { KEY_ADJ, KEY_FIXEF, KEY_CLUSTER_ADJ, KEY_CLUSTER_DF, KEY_T_DF, KEYS } ssc_key;

static bool equals(const char *s, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(s, word, length) == 0;
}

static ssc_key key_of(const char *s, size_t length)
{
    static const struct {
        const char *name;
        ssc_key key;
    } names[] = {
        {"adj", KEY_ADJ},           {"K.adj", KEY_ADJ},
        {"fixef", KEY_FIXEF},       {"fixef.K", KEY_FIXEF},
        {"K.fixef", KEY_FIXEF},     {"cluster.adj", KEY_CLUSTER_ADJ},
        {"G.adj", KEY_CLUSTER_ADJ}, {"cluster.df", KEY_CLUSTER_DF},
        {"G.df", KEY_CLUSTER_DF},   {"t.df", KEY_T_DF},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (equals(s, length, names[i].name)) {
            return names[i].key;
        }
    }
    return KEYS;
}

/** The values of each kind of key, and what they stand for. */
static int value_of(ssc_key key, const char *s, size_t length)
{
    static const struct {
        const char *name;
        unsigned keys;
        int value;
    } values[] = {
        {"true", 1 << KEY_ADJ | 1 << KEY_CLUSTER_ADJ, 1},
        {"TRUE", 1 << KEY_ADJ | 1 << KEY_CLUSTER_ADJ, 1},
        {"false", 1 << KEY_ADJ | 1 << KEY_CLUSTER_ADJ, 0},
        {"FALSE", 1 << KEY_ADJ | 1 << KEY_CLUSTER_ADJ, 0},
        {"none", 1 << KEY_FIXEF, SSC_NONE},
        {"nonnested", 1 << KEY_FIXEF, SSC_NONNESTED},
        {"nested", 1 << KEY_FIXEF, SSC_NONNESTED},
        {"full", 1 << KEY_FIXEF, SSC_FULL},
        {"min", 1 << KEY_CLUSTER_DF | 1 << KEY_T_DF, 1},
        {"conventional", 1 << KEY_CLUSTER_DF | 1 << KEY_T_DF, 0},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if ((values[i].keys >> key & 1) && equals(s, length, values[i].name)) {
            return values[i].value;
        }
    }
    return -1;
}

/** The text between the blanks. */
static const char *trim(const char *begin, const char *end, size_t *length)
{
    while (begin < end && *begin == ' ') {
        begin++;
    }
    while (end > begin && end[-1] == ' ') {
        end--;
    }
    *length = (size_t)(end - begin);
    return begin;
}

static frg_status set_key(frgi_ssc *ssc, frg_context *ctx, const char *item, const char *end)
{
    static const char *const allowed[KEYS] = {"true or false", "none, nonnested or full",
                                              "true or false", "min or conventional",
                                              "min or conventional"};
    const char *equal = item;
    while (equal < end && *equal != '=') {
        equal++;
    }
    size_t length, value_length;
    const char *const name = trim(item, equal, &length);
    const char *const value =
        equal < end ? trim(equal + 1, end, &value_length) : trim(end, end, &value_length);
    const ssc_key key = key_of(name, length);
    frgi_at(ctx, "ssc");
    if (key == KEYS) {
        FAIL(ctx, E_SSC,
             "ssc: '%.*s' is not known; the keys are adj, fixef, cluster.adj, cluster.df and t.df",
             (int)length, name);
    }
    const int chosen = value_of(key, value, value_length);
    if (chosen < 0) {
        FAIL(ctx, E_SSC, "ssc: %.*s is %s, not '%.*s'", (int)length, name, allowed[key],
             (int)value_length, value);
    }
    switch (key) {
    case KEY_ADJ:
        ssc->adj = chosen;
        break;
    case KEY_FIXEF:
        ssc->fixef = (frgi_ssc_fixef)chosen;
        break;
    case KEY_CLUSTER_ADJ:
        ssc->cluster_adj = chosen;
        break;
    case KEY_CLUSTER_DF:
        ssc->cluster_min = chosen;
        break;
    default:
        ssc->t_min = chosen;
    }
    return FRG_OK;
}

frg_status frgi_ssc_parse(frgi_ssc *ssc, frg_context *ctx, const char *text)
{
    *ssc = (frgi_ssc){.adj = true,
                      .cluster_adj = true,
                      .cluster_min = true,
                      .t_min = true,
                      .fixef = SSC_NONNESTED};
    for (const char *item = text; item && *item;) {
        const char *const end = item + strcspn(item, ",");
        TRY(set_key(ssc, ctx, item, end));
        item = *end ? end + 1 : end;
    }
    return FRG_OK;
}

void frgi_ssc_print(const frgi_ssc *ssc, char *out, size_t capacity)
{
    static const char *const fixef[] = {"none", "nonnested", "full"};
    snprintf(out, capacity, "adj=%s,fixef=%s,cluster.adj=%s,cluster.df=%s,t.df=%s",
             ssc->adj ? "true" : "false", fixef[ssc->fixef], ssc->cluster_adj ? "true" : "false",
             ssc->cluster_min ? "min" : "conventional", ssc->t_min ? "min" : "conventional");
}

/* ---- what is asked for ----------------------------------------------------------------------- */

/** Adds the variable at a node: a or a^b. */
static frg_status add_cluster(frgi_vcov_request *r, frg_context *ctx, const frgi_syntax *s,
                              int32_t node, const frg_table *table)
{
    frgi_key_spec spec;
    frgi_text name = {0};
    TRY(frgi_formula_key(s, ctx, s->nodes[node].begin, node, &spec));
    const frg_status status = frgi_formula_key_text(s, ctx, &spec, &name);
    r->names[r->n] = name.text;
    TRY(status);
    TRY(frgi_key_find(&r->keys[r->n], ctx, s, &spec, name.text, table));
    r->n++;
    return FRG_OK;
}

/** The columns of "a + b^c"; the sum leans to the left, so its last variable comes first. */
static frg_status find_clusters(frgi_vcov_request *r, frg_context *ctx, const frgi_syntax *s,
                                const frg_table *table)
{
    int32_t variables[FRGI_CLUSTERS], n = 0;
    for (int32_t i = s->section[0]; i >= 0;) {
        if (s->nodes[i].kind == NODE_ADD) {
            i--;
            continue;
        }
        if (n == FRGI_CLUSTERS) {
            frgi_at(ctx, "vcov");
            FAIL(ctx, E_VCOV, "vcov '%s': at most %d variables may cluster", r->spec,
                 (int)FRGI_CLUSTERS);
        }
        variables[n++] = i;
        i = s->nodes[i].begin - 1;
    }
    while (n > 0) {
        TRY(add_cluster(r, ctx, s, variables[--n], table));
    }
    return FRG_OK;
}

static frg_status parse_clusters(frgi_vcov_request *r, frg_context *ctx, const char *text,
                                 const frg_table *table)
{
    frgi_syntax s;
    frg_status status;
    r->type = VCOV_CLUSTER;
    TRY_TO(done, frgi_syntax_expression(&s, ctx, text, (int64_t)strlen(text), "vcov"));
    status = find_clusters(r, ctx, &s, table);
done:
    frgi_syntax_free(&s, ctx);
    return status;
}

static frg_status parse_spec(frgi_vcov_request *r, frg_context *ctx, const frg_table *table)
{
    static const struct {
        const char *name;
        frgi_vcov_type type;
    } plain[] = {{"iid", VCOV_IID}, {"hc1", VCOV_HC1}, {"HC1", VCOV_HC1}, {"hetero", VCOV_HC1}};
    static const char *const later[] = {"hc2", "hc3", "nw", "dk", "conley", "jackknife", "wild"};
    const char *const equal = r->spec + strcspn(r->spec, "=");
    size_t length;
    const char *const word = trim(r->spec, equal, &length);
    if (equals(word, length, "cluster") && *equal) {
        return parse_clusters(r, ctx, equal + 1, table);
    }
    for (size_t i = 0; i < sizeof plain / sizeof *plain && !*equal; i++) {
        if (equals(word, length, plain[i].name)) {
            r->type = plain[i].type;
            return FRG_OK;
        }
    }
    frgi_at(ctx, "vcov");
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        if (equals(word, length, later[i])) {
            FAIL(ctx, E_UNSUPPORTED, "vcov '%s': %s is not built yet", r->spec, later[i]);
        }
    }
    FAIL(ctx, E_VCOV, "vcov '%s' is not known; there are iid, hc1 and cluster=a+b", r->spec);
}

frg_status frgi_vcov_request_create(frgi_vcov_request *r, frg_context *ctx, const char *spec,
                                    const frg_table *table)
{
    *r = (frgi_vcov_request){0};
    REQUIRE(ctx, spec, "a vcov is missing");
    TRY(frgi_strdup(ctx, &r->spec, spec, strlen(spec)));
    const frg_status status = parse_spec(r, ctx, table);
    if (status < 0) {
        frgi_vcov_request_destroy(r, ctx);
    }
    return status;
}

void frgi_vcov_request_destroy(frgi_vcov_request *r, frg_context *ctx)
{
    DROP(ctx, &r->spec);
    for (int k = 0; k < FRGI_CLUSTERS; k++) {
        DROP(ctx, &r->names[k]);
    }
}
