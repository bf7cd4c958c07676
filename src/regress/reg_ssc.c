/* reg_ssc.c - the small-sample rule, "adj=true,fixef=nonnested,...", parsed and printed. */
#include <stdio.h>
#include <string.h>

#include "regress/regress.h"

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
    if (key == KEYS) {
        frgi_at(ctx, "ssc");
        FAIL(ctx, E_SSC,
             "ssc: '%.*s' is not known; the keys are adj, fixef, cluster.adj, cluster.df and t.df",
             (int)length, name);
    }
    const int chosen = value_of(key, value, value_length);
    if (chosen < 0) {
        frgi_at(ctx, "ssc");
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
