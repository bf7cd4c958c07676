/* fourge_r.h - what the files of the package share: a library object kept by an external pointer,
 * failures as R errors, data frames as tables. */
#ifndef FOURGE_R_H
#define FOURGE_R_H

#define R_NO_REMAP
#include <R.h>
#include <Rinternals.h>

#include <fourge/arrow.h>
#include <fourge/fe.h>

/* One fit with all that it stands on.  Freed by the finalizer of its external pointer, which also
 * keeps the data frame alive that the table borrows from. */
typedef struct {
    frg_context *ctx;
    frg_table *table;
    frg_table *effects; /* the last that were asked for */
    frg_fe *fit;
    frg_demean *plan;
} r_object;

/* An external pointer to an empty object with a context; `kept` lives as long as it. */
SEXP r_object_new(SEXP kept, int threads, double time_limit);
/* The object behind a pointer; an R error where it is gone, as after readRDS. */
r_object *r_object_of(SEXP pointer);
/* An R error with message, place, code and hint where status < 0. */
void r_check(const r_object *object, frg_status status);
/* The warnings of the context since the last call, "code: text". */
SEXP r_warnings(const r_object *object);

/* A table on the columns of a list of vectors: numbers are borrowed, not copied. */
void r_table(r_object *object, SEXP columns, frg_table **out);

/* Fills `fit` (with `fit->demean`) or `demean` from a named list; an R error for an unknown name. */
void r_fit_options(frg_fe_opts *fit, SEXP options);
void r_demean_options(frg_demean_opts *demean, SEXP options);

/* A named list, filled in order. */
typedef struct {
    SEXP list, names;
    int filled;
} r_list;
r_list r_list_new(int n); /* two PROTECTs */
void r_list_add(r_list *l, const char *name, SEXP value);
SEXP r_strings(const char *const *words, int64_t n);

#endif
