/* reg_vcov_spec.c - the kinds of covariances, and what is asked for: "cluster=a+b^c",
 * "nw=unit,year,2", "hc3,leverage=approx", parsed by the table of kinds.
 *
 *     SPEC      KIND [ "=" VARIABLE {"," VARIABLE} ] {"," CHOICE}
 *     CHOICE    NAME "=" VALUE, or, once, the number that the kind takes without a name
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/decimal.h"
#include "regress/reg_vcov.h"

/* ---- the tables ------------------------------------------------------------------------------ */

#define BIT(choice) (1U << (choice))

static const frgi_vcov_kind kinds[] = {
    {.name = "iid", .type = "iid", .positional = VCOV_CHOICES},
    {.name = "hc1", .type = "hc1", .positional = VCOV_CHOICES, .meat = frgi_vcov_rows_meat},
    {.name = "hetero", .type = "hc1", .positional = VCOV_CHOICES, .meat = frgi_vcov_rows_meat},
    {.name = "cluster",
     .usage = "a+b",
     .type = "cluster",
     .n_variables = 1,
     .variables = {VARIABLE_CLUSTERS},
     .positional = VCOV_CHOICES,
     .rule = RULE_CLUSTERS,
     .meat = frgi_vcov_clusters_meat},
    {.name = "nw",
     .usage = "unit,time[,lag]",
     .type = "nw",
     .n_variables = 2,
     .variables = {VARIABLE_KEY, VARIABLE_NUMBERS},
     .choices = BIT(VCOV_LAG),
     .positional = VCOV_LAG,
     .rule = RULE_PERIODS,
     .meat = frgi_vcov_nw_meat},
    {.name = "dk",
     .usage = "time[,lag]",
     .type = "dk",
     .n_variables = 1,
     .variables = {VARIABLE_NUMBERS},
     .choices = BIT(VCOV_LAG),
     .positional = VCOV_LAG,
     .rule = RULE_PERIODS,
     .meat = frgi_vcov_dk_meat},
    {.name = "hac",
     .usage = "unit,time[,lag]",
     .type = "hac",
     .n_variables = 2,
     .variables = {VARIABLE_KEY, VARIABLE_NUMBERS},
     .choices = BIT(VCOV_LAG),
     .positional = VCOV_LAG,
     .rule = RULE_TWO_WAY,
     .meat = frgi_vcov_hac_meat},
    {.name = "hc2",
     .least_squares = true,
     .type = "hc2",
     .choices = BIT(VCOV_LEVERAGE) | BIT(VCOV_DRAWS),
     .positional = VCOV_CHOICES,
     .rule = RULE_NONE,
     .meat = frgi_vcov_hc2_meat},
    {.name = "hc3",
     .least_squares = true,
     .type = "hc3",
     .choices = BIT(VCOV_LEVERAGE) | BIT(VCOV_DRAWS),
     .positional = VCOV_CHOICES,
     .rule = RULE_NONE,
     .meat = frgi_vcov_hc3_meat},
    {.name = "cr2",
     .least_squares = true,
     .usage = "a",
     .type = "cr2",
     .n_variables = 1,
     .variables = {VARIABLE_KEY},
     .positional = VCOV_CHOICES,
     .rule = RULE_LEFT_OUT,
     .single = true,
     .meat = frgi_vcov_cr2_meat},
    {.name = "cr3",
     .least_squares = true,
     .usage = "a",
     .type = "cr3",
     .n_variables = 1,
     .variables = {VARIABLE_KEY},
     .positional = VCOV_CHOICES,
     .rule = RULE_LEFT_OUT,
     .meat = frgi_vcov_cr3_meat},
    {.name = "jackknife",
     .least_squares = true,
     .usage = "a",
     .type = "jackknife",
     .n_variables = 1,
     .variables = {VARIABLE_KEY},
     .positional = VCOV_CHOICES,
     .rule = RULE_LEFT_OUT,
     .meat = frgi_vcov_jackknife_meat},
    {.name = "crv3",
     .least_squares = true,
     .usage = "a",
     .type = "crv3",
     .n_variables = 1,
     .variables = {VARIABLE_KEY},
     .positional = VCOV_CHOICES,
     .rule = RULE_CLUSTERS,
     .meat = frgi_vcov_crv3_meat},
    {.name = "conley",
     .usage = "lat,lon,km[,kernel=bartlett]",
     .type = "conley",
     .n_variables = 2,
     .variables = {VARIABLE_NUMBERS, VARIABLE_NUMBERS},
     .choices = BIT(VCOV_CUTOFF) | BIT(VCOV_KERNEL),
     .positional = VCOV_CUTOFF,
     .required = true,
     .meat = frgi_vcov_conley_meat},
    {.name = "wild",
     .least_squares = true,
     .usage = "a[,reps][,weights=webb]",
     .type = "wild",
     .n_variables = 1,
     .variables = {VARIABLE_KEY},
     .choices = BIT(VCOV_REPS) | BIT(VCOV_WEIGHTS),
     .positional = VCOV_REPS,
     .rule = RULE_CLUSTERS,
     .meat = frgi_vcov_clusters_meat,
     .single = true,
     .tests = frgi_vcov_wild_tests},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/** Names, and either the words or the range (least .. most) of a number. */
static const struct {
    const char *name, *words[4];
    double least, most;
    bool whole;
} choices[VCOV_CHOICES] = {
    [VCOV_LAG] = {.name = "lag", .least = 0, .most = 1e6, .whole = true},
    [VCOV_CUTOFF] = {.name = "cutoff", .least = 1e-6, .most = 20015},
    [VCOV_KERNEL] = {.name = "kernel", .words = {"uniform", "bartlett"}},
    [VCOV_LEVERAGE] = {.name = "leverage", .words = {"exact", "approx"}},
    [VCOV_DRAWS] = {.name = "draws", .least = 8, .most = 1e5, .whole = true},
    [VCOV_REPS] = {.name = "reps", .least = 9, .most = 1e7, .whole = true},
    [VCOV_WEIGHTS] = {.name = "weights", .words = {"rademacher", "webb", "mammen"}},
};

const frgi_vcov_kind *frgi_vcov_kinds(int *count)
{
    *count = KINDS;
    return kinds;
}

const char *frgi_vcov_word(const frgi_vcov_request *r, frgi_vcov_choice choice)
{
    return isnan(r->choice[choice]) ? choices[choice].words[0]
                                    : choices[choice].words[(int)r->choice[choice]];
}

/* ---- texts ----------------------------------------------------------------------------------- */

typedef struct {
    const char *text;
    size_t length;
} slice;

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool equals(slice s, const char *word)
{
    for (size_t i = 0; i < s.length; i++) {
        if (lower(s.text[i]) != word[i]) { /* ends at the word's end, too */
            return false;
        }
    }
    return word[s.length] == '\0';
}

/** The text between the blanks. */
static slice trim(const char *begin, const char *end)
{
    while (begin < end && *begin == ' ') {
        begin++;
    }
    while (end > begin && end[-1] == ' ') {
        end--;
    }
    return (slice){begin, (size_t)(end - begin)};
}

/** The kind of a specification, NULL: none; *rest: what stands behind its name, where there is
 *  something. */
static const frgi_vcov_kind *kind_of(const char *spec, const char **rest, slice *word)
{
    const char *const end = spec + strcspn(spec, "=,");
    *word = trim(spec, end);
    *rest = *end ? end + 1 : NULL;
    for (int i = 0; i < KINDS; i++) {
        /* variables come behind '=', choices alone behind ',' */
        if (equals(*word, kinds[i].name) &&
            (*end == '=' ? kinds[i].n_variables > 0 : !*end || kinds[i].n_variables == 0)) {
            return &kinds[i];
        }
    }
    return NULL;
}

/** The next item of a list with commas, names in backticks as they are; false: there is none. */
static bool next_item(const char **at, slice *item)
{
    const char *const begin = *at, *end = begin;
    if (!begin) {
        return false;
    }
    for (bool quoted = false; *end && (quoted || *end != ','); end++) {
        quoted ^= *end == '`';
    }
    *item = trim(begin, end);
    *at = *end ? end + 1 : NULL;
    return true;
}

bool frgi_vcov_variable(const char *spec, int i, const char **text, size_t *length)
{
    const char *rest;
    slice item;
    const frgi_vcov_kind *const kind = kind_of(spec, &rest, &item);
    for (int k = 0; kind && i < kind->n_variables && next_item(&rest, &item); k++) {
        if (k == i) {
            *text = item.text;
            *length = item.length;
            return true;
        }
    }
    return false;
}

/* ---- variables ------------------------------------------------------------------------------- */

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

/** A variable by its place: one key, or the sum of up to four. */
static frg_status parse_variable(frgi_vcov_request *r, frg_context *ctx, slice text,
                                 frgi_vcov_variable_kind kind, const frg_table *table)
{
    frgi_syntax s;
    frg_status status;
    TRY_TO(done, frgi_syntax_expression(&s, ctx, text.text, (int64_t)text.length, "vcov"));
    status = kind == VARIABLE_CLUSTERS ? find_clusters(r, ctx, &s, table)
                                       : add_cluster(r, ctx, &s, s.section[0], table);
done:
    frgi_syntax_free(&s, ctx);
    TRY(status);
    const frgi_key *const key = &r->keys[r->n - 1];
    if (kind == VARIABLE_NUMBERS && key->n != 1) {
        frgi_at(ctx, "vcov");
        FAIL(ctx, E_VCOV, "vcov '%s': '%s' is joint; a column of numbers belongs there", r->spec,
             key->name);
    }
    return FRG_OK;
}

/* ---- choices --------------------------------------------------------------------------------- */

/** "2", or a word of the list. */
static frg_status set_choice(frgi_vcov_request *r, frg_context *ctx, frgi_vcov_choice c,
                             slice value)
{
    frgi_at(ctx, "vcov");
    if (!isnan(r->choice[c])) {
        FAIL(ctx, E_VCOV, "vcov '%s': %s is given twice", r->spec, choices[c].name);
    }
    for (int w = 0; choices[c].words[0] && w < 4 && choices[c].words[w]; w++) {
        if (equals(value, choices[c].words[w])) {
            r->choice[c] = w;
            return FRG_OK;
        }
    }
    if (choices[c].words[0]) {
        FAIL(ctx, E_VCOV, "vcov '%s': %s is %s%s%s%s%s, not '%.*s'", r->spec, choices[c].name,
             choices[c].words[0], choices[c].words[2] ? ", " : " or ", choices[c].words[1],
             choices[c].words[2] ? " or " : "", choices[c].words[2] ? choices[c].words[2] : "",
             (int)value.length, value.text);
    }
    frgi_decimal *decimal;
    double v = 0;
    TRY(frgi_decimal_open(&decimal, ctx));
    const bool is_number = frgi_decimal_parse(decimal, value.text, value.text + value.length, &v);
    frgi_decimal_close(&decimal, ctx);
    if (!is_number || !(v >= choices[c].least && v <= choices[c].most) ||
        (choices[c].whole && v != floor(v))) {
        FAIL(ctx, E_VCOV, "vcov '%s': %s is a %snumber from %.10g to %.10g, not '%.*s'", r->spec,
             choices[c].name, choices[c].whole ? "whole " : "", choices[c].least, choices[c].most,
             (int)value.length, value.text);
    }
    r->choice[c] = v;
    return FRG_OK;
}

static frg_status parse_choice(frgi_vcov_request *r, frg_context *ctx, slice item)
{
    const char *const end = item.text + item.length;
    const char *equal = item.text;
    while (equal < end && *equal != '=') {
        equal++;
    }
    if (equal == end && r->kind->positional < VCOV_CHOICES) {
        return set_choice(r, ctx, (frgi_vcov_choice)r->kind->positional, item);
    }
    const slice name = trim(item.text, equal);
    for (int c = 0; c < VCOV_CHOICES && equal < end; c++) {
        if ((r->kind->choices >> c & 1) && equals(name, choices[c].name)) {
            return set_choice(r, ctx, (frgi_vcov_choice)c, trim(equal + 1, end));
        }
    }
    char known[120] = "";
    for (int c = 0; c < VCOV_CHOICES; c++) {
        if (r->kind->choices >> c & 1) {
            const size_t used = strlen(known);
            snprintf(known + used, sizeof known - used, "%s%s=", used ? ", " : "", choices[c].name);
        }
    }
    frgi_at(ctx, "vcov");
    FAIL(ctx, E_VCOV, "vcov '%s': '%.*s' is not known; %s %s", r->spec, (int)item.length, item.text,
         known[0] ? "there is" : "nothing else belongs to", known[0] ? known : r->kind->name);
}

/* ---- the request ----------------------------------------------------------------------------- */

static frg_status unknown_kind(frg_context *ctx, const char *spec, slice word)
{
    frgi_at(ctx, "vcov");
    for (int i = 0; i < KINDS; i++) {
        if (equals(word, kinds[i].name) && kinds[i].n_variables) {
            FAIL(ctx, E_VCOV, "vcov '%s': write %s=%s", spec, kinds[i].name, kinds[i].usage);
        }
        if (equals(word, kinds[i].name)) {
            FAIL(ctx, E_VCOV, "vcov '%s': %s takes no variable", spec, kinds[i].name);
        }
    }
    FAIL(ctx, E_VCOV,
         "vcov '%s' is not known; there are iid, hc1, hc2, hc3, cluster=a+b, cr2=a, jackknife=a, "
         "wild=a, nw=unit,time, dk=time, hac=unit,time and conley=lat,lon,km",
         spec);
}

static frg_status parse_spec(frgi_vcov_request *r, frg_context *ctx, const frg_table *table)
{
    const char *rest;
    slice item;
    r->kind = kind_of(r->spec, &rest, &item);
    if (!r->kind) {
        return unknown_kind(ctx, r->spec, item);
    }
    for (int i = 0; i < r->kind->n_variables; i++) {
        if (!next_item(&rest, &item) || item.length == 0) {
            frgi_at(ctx, "vcov");
            FAIL(ctx, E_VCOV, "vcov '%s': %s takes %d variable%s: %s=%s", r->spec, r->kind->name,
                 r->kind->n_variables, r->kind->n_variables == 1 ? "" : "s", r->kind->name,
                 r->kind->usage);
        }
        TRY(parse_variable(r, ctx, item, r->kind->variables[i], table));
    }
    while (next_item(&rest, &item)) {
        TRY(parse_choice(r, ctx, item));
    }
    if (r->kind->required && isnan(r->choice[r->kind->positional])) {
        frgi_at(ctx, "vcov");
        FAIL(ctx, E_VCOV, "vcov '%s': the %s is missing: %s=%s", r->spec,
             choices[r->kind->positional].name, r->kind->name, r->kind->usage);
    }
    return FRG_OK;
}

frg_status frgi_vcov_request_create(frgi_vcov_request *r, frg_context *ctx, const char *spec,
                                    const frg_table *table)
{
    *r = (frgi_vcov_request){0};
    for (int c = 0; c < VCOV_CHOICES; c++) {
        r->choice[c] = (double)NAN;
    }
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

/* ---- what is numbered ------------------------------------------------------------------------ */

frgi_key frgi_vcov_joint_key(const frgi_vcov_request *r, unsigned subset)
{
    frgi_key joint = {.n = 0};
    for (int k = 0; k < r->n; k++) {
        const frgi_key *const key = &r->keys[k];
        if (!(subset >> k & 1)) {
            continue;
        }
        if (joint.n + key->n > FRGI_KEY_COLUMNS) {
            return (frgi_key){.n = 0};
        }
        for (int c = 0; c < key->n; c++) {
            joint.columns[joint.n++] = key->columns[c];
        }
        joint.name = key->name; /* of a single one */
    }
    return joint;
}

frg_status frgi_vcov_add_keys(const frgi_vcov_request *r, frg_context *ctx, frgi_key_list *keys)
{
    const bool several = r->kind->variables[0] == VARIABLE_CLUSTERS;
    for (unsigned subset = 1; subset < 1u << r->n && r->kind->rule != RULE_ROWS; subset++) {
        const frgi_key key = frgi_vcov_joint_key(r, subset);
        const bool single = (subset & (subset - 1)) == 0;
        TRY(key.n > 0 && (single || several) ? frgi_key_list_add(keys, ctx, &key) : FRG_OK);
    }
    return FRG_OK;
}
