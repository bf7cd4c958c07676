/* fourge_r.h - what the files of the package share: a library object kept by an external pointer,
 * failures as R errors, data frames as tables. */
#ifndef FOURGE_R_H
#define FOURGE_R_H

#define R_NO_REMAP
#include <R.h>
#include <Rinternals.h>

#include <fourge/arrow.h>
#include <fourge/fe.h>

/* What the fits of one call stand on; freed with the last of them. */
typedef struct {
    frg_context *ctx;
    frg_table *table;
    frg_fe_many *many; /* of several models, until each has its object */
    int users;
} r_home;

/* One fit, one plan, or one design of local projections.  Freed by the finalizer of its external
 * pointer, which also keeps the data frame alive that the table borrows from. */
typedef struct {
    r_home *home;
    frg_table *effects; /* the last that were asked for */
    frg_fe *fit;
    frg_demean *plan;
    frg_lpdid *projections;
} r_object;

/* An external pointer to an empty object in a home of its own; `kept` lives as long as it. */
SEXP r_object_new(SEXP kept, int threads, double time_limit);
/* One to an empty object in the home of another, which keeps the same. */
SEXP r_object_beside(SEXP pointer);
/* The object behind a pointer; an R error where it is gone, as after readRDS. */
r_object *r_object_of(SEXP pointer);
/* An R error with message, place, code and hint where status < 0. */
void r_check(const r_object *object, frg_status status);
/* The warnings of the context since the last call, "code: text". */
SEXP r_warnings(const r_object *object);

/* A table on the columns of a list of vectors: numbers are borrowed, not copied. */
void r_table(r_object *object, SEXP columns, frg_table **out);

/* The defaults, changed by a named list; an R error for an unknown name.  `fit` with
 * `fit->demean`. */
void r_fit_options(frg_fe_opts *fit, SEXP options);
void r_demean_options(frg_demean_opts *demean, SEXP options);
void r_leave_out_options(frg_leave_out_opts *leave_out, SEXP options);
void r_ritest_options(frg_ritest_opts *ritest, SEXP options);
void r_lpdid_options(frg_lpdid_opts *lpdid, SEXP options);

/* A named list, filled in order. */
typedef struct {
    SEXP list, names;
    int filled;
} r_list;
r_list r_list_new(int n); /* two PROTECTs */
void r_list_add(r_list *l, const char *name, SEXP value);
SEXP r_strings(const char *const *words, int64_t n);
SEXP r_word(const char *word); /* NULL: R's */
typedef struct {
    const char *name;
    double value;
} r_number;
SEXP r_named(const r_number *rows, int n); /* a vector with names */
/* Estimates as the rows of a matrix: estimate, error, statistic, p value, low, high. */
SEXP r_coefficients(const frg_coefficient *c, int n);
SEXP r_terms(const frg_coefficient *c, int n); /* their names */
/* A covariance, and what a fit has of instruments, as lists. */
SEXP r_vcov(const frg_fe_result *fit, const frg_fe_vcov *v);
SEXP r_instruments(const frg_fe_result *fit);

#endif
