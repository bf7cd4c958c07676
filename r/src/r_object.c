/* r_object.c - library objects behind external pointers, failures and warnings. */
#include "fourge_r.h"

#include <stdlib.h>

static void destroy(SEXP pointer)
{
    r_object *o = R_ExternalPtrAddr(pointer);
    if (!o) {
        return;
    }
    R_ClearExternalPtr(pointer);
    frg_table_destroy(o->effects);
    frg_fe_destroy(o->fit);
    frg_demean_destroy(o->plan);
    frg_lpdid_destroy(o->projections);
    if (--o->home->users == 0) {
        frg_fe_many_destroy(o->home->many);
        frg_table_destroy(o->home->table);
        frg_context_destroy(o->home->ctx);
        free(o->home);
    }
    free(o);
}

static void check_interrupt(void *unused)
{
    (void)unused;
    R_CheckUserInterrupt();
}

/* Ctrl-C stops a solver at its next iteration; the callback comes on R's own thread. */
static int on_progress(const frg_progress *p, void *user)
{
    (void)p;
    (void)user;
    return !R_ToplevelExec(check_interrupt, NULL);
}

static SEXP object_in(r_home *home, SEXP kept)
{
    SEXP pointer = PROTECT(R_MakeExternalPtr(NULL, R_NilValue, kept));
    R_RegisterCFinalizerEx(pointer, destroy, TRUE);
    r_object *o = calloc(1, sizeof *o);
    r_home *own = home ? home : calloc(1, sizeof *own);
    if (!o || !own) {
        free(o);
        free(home ? NULL : own);
        Rf_error("out of memory");
    }
    o->home = own;
    own->users++;
    R_SetExternalPtrAddr(pointer, o);
    UNPROTECT(1);
    return pointer;
}

SEXP r_object_beside(SEXP pointer)
{
    return object_in(r_object_of(pointer)->home, R_ExternalPtrProtected(pointer));
}

SEXP r_object_new(SEXP kept, int threads, double time_limit)
{
    SEXP pointer = PROTECT(object_in(NULL, kept));
    r_home *home = r_object_of(pointer)->home;
    frg_context_opts opts;
    frg_context_defaults(&opts, sizeof opts);
    opts.threads = threads;
    opts.time_limit = time_limit;
    opts.count_from = 1;
    opts.on_progress = on_progress;
    const frg_status status = frg_context_create(&home->ctx, &opts);
    if (status < 0) {
        Rf_error("no context: %s", frg_status_sentence(status));
    }
    UNPROTECT(1);
    return pointer;
}

r_object *r_object_of(SEXP pointer)
{
    r_object *o = TYPEOF(pointer) == EXTPTRSXP ? R_ExternalPtrAddr(pointer) : NULL;
    if (!o) {
        Rf_errorcall(R_NilValue, "the fit was saved and loaded, or made by another process: what "
                                 "it needs of its data is gone; fit it again");
    }
    return o;
}

/* What lives as long as the object: the columns of the data. */
SEXP R_fourge_kept(SEXP pointer)
{
    r_object_of(pointer);
    return R_ExternalPtrProtected(pointer);
}

void r_check(const r_object *object, frg_status status)
{
    if (status >= 0) {
        return;
    }
    const frg_context *ctx = object->home->ctx;
    const char *hint = frg_error_hint(ctx);
    Rf_errorcall(R_NilValue, "%s [%s]%s%s", frg_message(ctx), frg_error_code(ctx),
                 *hint ? "\n  hint: " : "", hint);
}

SEXP r_warnings(const r_object *object)
{
    const int n = frg_warning_count(object->home->ctx);
    SEXP out = PROTECT(Rf_allocVector(STRSXP, n));
    for (int i = 0; i < n; i++) {
        SET_STRING_ELT(out, i, Rf_mkCharCE(frg_warning_message(object->home->ctx, i), CE_UTF8));
    }
    frg_warnings_clear(object->home->ctx);
    UNPROTECT(1);
    return out;
}

r_list r_list_new(int n)
{
    r_list l = {PROTECT(Rf_allocVector(VECSXP, n)), PROTECT(Rf_allocVector(STRSXP, n)), 0};
    Rf_setAttrib(l.list, R_NamesSymbol, l.names);
    return l;
}

void r_list_add(r_list *l, const char *name, SEXP value)
{
    SET_VECTOR_ELT(l->list, l->filled, value);
    SET_STRING_ELT(l->names, l->filled++, Rf_mkChar(name));
}

SEXP r_strings(const char *const *words, int64_t n)
{
    SEXP out = PROTECT(Rf_allocVector(STRSXP, n));
    for (int64_t i = 0; i < n; i++) {
        SET_STRING_ELT(out, i, Rf_mkCharCE(words[i], CE_UTF8));
    }
    UNPROTECT(1);
    return out;
}

SEXP r_word(const char *word)
{
    return word ? Rf_ScalarString(Rf_mkCharCE(word, CE_UTF8)) : R_NilValue;
}

SEXP r_named(const r_number *rows, int n)
{
    SEXP out = PROTECT(Rf_allocVector(REALSXP, n));
    SEXP names = PROTECT(Rf_allocVector(STRSXP, n));
    for (int i = 0; i < n; i++) {
        REAL(out)[i] = rows[i].value;
        SET_STRING_ELT(names, i, Rf_mkChar(rows[i].name));
    }
    Rf_setAttrib(out, R_NamesSymbol, names);
    UNPROTECT(2);
    return out;
}
