/* r_options.c - named lists to option structs, by the library's own tables of options. */
#include "fourge_r.h"

#include <string.h>

static const frg_option *find(const frg_option *table, const char *name)
{
    for (; table->name; table++) {
        if (!strcmp(table->name, name)) {
            return table;
        }
    }
    return NULL;
}

static int choice(const frg_option *o, SEXP value)
{
    if (TYPEOF(value) != STRSXP || Rf_length(value) != 1) {
        Rf_error("option '%s': expected one of %s", o->name, o->choices);
    }
    const char *word = CHAR(STRING_ELT(value, 0));
    const size_t length = strlen(word);
    int place = 0;
    for (const char *at = o->choices; at; place++) {
        const char *end = strchr(at, '|');
        if (length == (end ? (size_t)(end - at) : strlen(at)) && !strncmp(at, word, length)) {
            return place;
        }
        at = end ? end + 1 : NULL;
    }
    Rf_error("option '%s': '%s' is none of %s", o->name, word, o->choices);
}

static double number(const frg_option *o, SEXP value)
{
    if (Rf_length(value) != 1 ||
        !(Rf_isReal(value) || Rf_isInteger(value) || Rf_isLogical(value)) ||
        ISNAN(Rf_asReal(value))) {
        Rf_error("option '%s': expected one number", o->name);
    }
    return Rf_asReal(value);
}

static void set(const frg_option *o, void *opts, SEXP value)
{
    char *field = (char *)opts + o->offset;
    switch (o->type) {
    case FRG_OPTION_FLAG:
    case FRG_OPTION_INT:
        *(int *)field = (int)number(o, value);
        break;
    case FRG_OPTION_INT64:
        *(int64_t *)field = (int64_t)number(o, value);
        break;
    case FRG_OPTION_SIZE:
        *(size_t *)field = (size_t)number(o, value);
        break;
    case FRG_OPTION_REAL:
        *(double *)field = number(o, value);
        break;
    case FRG_OPTION_CHOICE:
        *(int *)field = choice(o, value);
        break;
    case FRG_OPTION_TEXT:
        if (TYPEOF(value) != STRSXP || Rf_length(value) != 1) {
            Rf_error("option '%s': expected one text", o->name);
        }
        *(const char **)field = Rf_translateCharUTF8(STRING_ELT(value, 0));
        break;
    case FRG_OPTION_DATA:
        Rf_error("option '%s' cannot be set from R", o->name);
    }
}

static void set_vcov(frg_fe_opts *fit, SEXP value)
{
    fit->n_vcov = Rf_length(value);
    if (TYPEOF(value) != STRSXP || fit->n_vcov < 1 || fit->n_vcov > 8) {
        Rf_error("vcov: expected 1 to 8 texts");
    }
    for (int i = 0; i < fit->n_vcov; i++) {
        fit->vcov[i] = Rf_translateCharUTF8(STRING_ELT(value, i));
    }
}

/* A table of options, and the struct that it describes. */
typedef struct {
    const frg_option *table;
    void *opts;
} target;

/* Sets each of the list in the first of the targets that has it; the covariances of `fit`, where
 * there is one. */
static void set_all(const target *targets, int n, frg_fe_opts *fit, SEXP options)
{
    SEXP names = Rf_getAttrib(options, R_NamesSymbol);
    for (int i = 0; i < Rf_length(options); i++) {
        const char *name = names == R_NilValue ? "" : CHAR(STRING_ELT(names, i));
        SEXP value = VECTOR_ELT(options, i);
        if (fit && !strcmp(name, "vcov")) {
            set_vcov(fit, value);
            continue;
        }
        const frg_option *o = NULL;
        int t = 0;
        while (t < n && !(o = find(targets[t].table, name))) {
            t++;
        }
        if (!o) {
            Rf_error("there is no option '%s'", name);
        }
        set(o, targets[t].opts, value);
    }
}

void r_fit_options(frg_fe_opts *fit, SEXP options)
{
    frg_fe_defaults(fit, sizeof *fit);
    const target targets[] = {{frg_fe_options(), fit}, {frg_demean_options(), &fit->demean}};
    set_all(targets, 2, fit, options);
}

/* Sets each of the list in the one struct that has it. */
static void set_own(const frg_option *table, void *opts, SEXP options)
{
    const target own = {table, opts};
    set_all(&own, 1, NULL, options);
}

void r_demean_options(frg_demean_opts *demean, SEXP options)
{
    frg_demean_defaults(demean, sizeof *demean);
    set_own(frg_demean_options(), demean, options);
}

void r_leave_out_options(frg_leave_out_opts *leave_out, SEXP options)
{
    frg_leave_out_defaults(leave_out, sizeof *leave_out);
    set_own(frg_leave_out_options(), leave_out, options);
}

void r_ritest_options(frg_ritest_opts *ritest, SEXP options)
{
    frg_ritest_defaults(ritest, sizeof *ritest);
    set_own(frg_ritest_options(), ritest, options);
}

void r_lpdid_options(frg_lpdid_opts *lpdid, SEXP options)
{
    frg_lpdid_defaults(lpdid, sizeof *lpdid);
    set_own(frg_lpdid_options(), lpdid, options);
}
