/* ext_fe.c - the fixed-effects room: demean, lsmr, and regressions. */
#include <string.h>

#include "fourge/fe.h"

#include "ext.h"

#define AT(type, field) #field, offsetof(type, field)

EXT_UNSET(demean)
EXT_UNSET(lsmr)
EXT_UNSET(fe)
EXT_UNSET(leave_out)
EXT_UNSET(ritest)
EXT_UNSET(lpdid)
EXT_UNSET(event_study)

const ext_options ext_fe_takes[] = {
    EXT_TABLE(demean), EXT_TABLE(lsmr),  EXT_TABLE(fe),          EXT_TABLE(leave_out),
    EXT_TABLE(ritest), EXT_TABLE(lpdid), EXT_TABLE(event_study), {NULL, NULL, NULL, 0, NULL},
};

static const ext_field column_fields[] = {{AT(frg_demean_column, iterations), IS_INT64, NULL},
                                          {AT(frg_demean_column, audit), IS_DOUBLE, NULL},
                                          {AT(frg_demean_column, gradient), IS_DOUBLE, NULL},
                                          {AT(frg_demean_column, error_bound), IS_DOUBLE, NULL},
                                          {AT(frg_demean_column, absorbed), IS_BOOL, NULL},
                                          {AT(frg_demean_column, converged), IS_BOOL, NULL},
                                          {NULL, 0, IS_INT, NULL}};

static const ext_field lsmr_column_fields[] = {{AT(frg_lsmr_column, stop), IS_INT, NULL},
                                               {AT(frg_lsmr_column, iterations), IS_INT64, NULL},
                                               {AT(frg_lsmr_column, norm_r), IS_DOUBLE, NULL},
                                               {AT(frg_lsmr_column, norm_ar), IS_DOUBLE, NULL},
                                               {AT(frg_lsmr_column, norm_a), IS_DOUBLE, NULL},
                                               {AT(frg_lsmr_column, cond_a), IS_DOUBLE, NULL},
                                               {AT(frg_lsmr_column, norm_x), IS_DOUBLE, NULL},
                                               {NULL, 0, IS_INT, NULL}};

const ext_field ext_coefficient_fields[] = {{AT(frg_coefficient, term), IS_TEXT, NULL},
                                            {AT(frg_coefficient, estimate), IS_DOUBLE, NULL},
                                            {AT(frg_coefficient, std_error), IS_DOUBLE, NULL},
                                            {AT(frg_coefficient, statistic), IS_DOUBLE, NULL},
                                            {AT(frg_coefficient, p_value), IS_DOUBLE, NULL},
                                            {AT(frg_coefficient, conf_low), IS_DOUBLE, NULL},
                                            {AT(frg_coefficient, conf_high), IS_DOUBLE, NULL},
                                            {NULL, 0, IS_INT, NULL}};

static const ext_field dropped_fields[] = {{AT(frg_dropped_term, term), IS_TEXT, NULL},
                                           {AT(frg_dropped_term, reason), IS_TEXT, NULL},
                                           {NULL, 0, IS_INT, NULL}};

static const ext_field vcov_fields[] = {{AT(frg_fe_vcov, spec), IS_TEXT, NULL},
                                        {AT(frg_fe_vcov, type), IS_TEXT, NULL},
                                        {AT(frg_fe_vcov, df_t), IS_DOUBLE, NULL},
                                        {AT(frg_fe_vcov, k), IS_INT64, NULL},
                                        {AT(frg_fe_vcov, ssc), IS_TEXT, NULL},
                                        {AT(frg_fe_vcov, projected), IS_BOOL, NULL},
                                        {AT(frg_fe_vcov, wald_f), IS_DOUBLE, NULL},
                                        {AT(frg_fe_vcov, k_naive), IS_INT64, NULL},
                                        {AT(frg_fe_vcov, lag), IS_INT64, NULL},
                                        {AT(frg_fe_vcov, kernel), IS_TEXT, NULL},
                                        {AT(frg_fe_vcov, cutoff), IS_DOUBLE, NULL},
                                        {AT(frg_fe_vcov, leverage), IS_TEXT, NULL},
                                        {AT(frg_fe_vcov, leverage_max), IS_DOUBLE, NULL},
                                        {AT(frg_fe_vcov, leverage_error), IS_DOUBLE, NULL},
                                        {AT(frg_fe_vcov, weights), IS_TEXT, NULL},
                                        {AT(frg_fe_vcov, reps), IS_INT64, NULL},
                                        {NULL, 0, IS_INT, NULL}};

static const ext_field event_fields[] = {{AT(frg_fe_event, time), IS_DOUBLE, NULL},
                                         {AT(frg_fe_event, coefficient), IS_INT, NULL},
                                         {NULL, 0, IS_INT, NULL}};

static const ext_field ritest_fields[] = {{AT(frg_ritest, term), IS_TEXT, NULL},
                                          {AT(frg_ritest, estimate), IS_DOUBLE, NULL},
                                          {AT(frg_ritest, observed), IS_DOUBLE, NULL},
                                          {AT(frg_ritest, p_value), IS_DOUBLE, NULL},
                                          {AT(frg_ritest, std_error), IS_DOUBLE, NULL},
                                          {AT(frg_ritest, reps), IS_INT64, NULL},
                                          {AT(frg_ritest, permuted), IS_INT64, NULL},
                                          {AT(frg_ritest, converged), IS_BOOL, NULL},
                                          {NULL, 0, IS_INT, NULL}};

static const ext_field test_fields[] = {{AT(frg_fe_test, wald), IS_DOUBLE, NULL},
                                        {AT(frg_fe_test, f), IS_DOUBLE, NULL},
                                        {AT(frg_fe_test, df1), IS_INT64, NULL},
                                        {AT(frg_fe_test, df2), IS_DOUBLE, NULL},
                                        {AT(frg_fe_test, p_f), IS_DOUBLE, NULL},
                                        {AT(frg_fe_test, p_chi2), IS_DOUBLE, NULL},
                                        {NULL, 0, IS_INT, NULL}};

static const ext_field subproblem_fields[] = {{AT(frg_demean_part, n), IS_INT64, NULL},
                                              {AT(frg_demean_part, levels), IS_INT64, NULL},
                                              {AT(frg_demean_part, components), IS_INT64, NULL},
                                              {AT(frg_demean_part, method), IS_TEXT, NULL},
                                              {AT(frg_demean_part, iterations), IS_INT64, NULL},
                                              {AT(frg_demean_part, audit), IS_DOUBLE, NULL},
                                              {NULL, 0, IS_INT, NULL}};

static const ext_field report_fields[] = {{AT(frg_demean_report, method), IS_TEXT, NULL},
                                          {AT(frg_demean_report, levels), IS_INT64, NULL},
                                          {AT(frg_demean_report, plan_bytes), IS_SIZE, NULL},
                                          {AT(frg_demean_report, factor_bytes), IS_SIZE, NULL},
                                          {AT(frg_demean_report, tol), IS_DOUBLE, NULL},
                                          {AT(frg_demean_report, passes_on), IS_TEXT, NULL},
                                          {AT(frg_demean_report, device_launches), IS_INT64, NULL},
                                          {AT(frg_demean_report, device_waits), IS_INT64, NULL},
                                          {AT(frg_demean_report, device_bytes_in), IS_INT64, NULL},
                                          {AT(frg_demean_report, device_bytes_out), IS_INT64, NULL},
                                          {AT(frg_demean_report, host_steps), IS_HOST_STEPS, NULL},
                                          {NULL, 0, IS_INT, NULL}};

static const ext_field result_fields[] = {{AT(frg_fe_result, formula), IS_TEXT, NULL},
                                          {AT(frg_fe_result, depvar), IS_TEXT, NULL},
                                          {AT(frg_fe_result, first_stage), IS_TEXT, NULL},
                                          {AT(frg_fe_result, n_first_stage), IS_INT64, NULL},
                                          {AT(frg_fe_result, split_name), IS_TEXT, NULL},
                                          {AT(frg_fe_result, split_value), IS_TEXT, NULL},
                                          {AT(frg_fe_result, n_rows), IS_INT64, NULL},
                                          {AT(frg_fe_result, n), IS_INT64, NULL},
                                          {AT(frg_fe_result, n_missing), IS_INT64, NULL},
                                          {AT(frg_fe_result, n_subset), IS_INT64, NULL},
                                          {AT(frg_fe_result, n_zero_weight), IS_INT64, NULL},
                                          {AT(frg_fe_result, n_uncompared), IS_INT64, NULL},
                                          {AT(frg_fe_result, n_singleton), IS_INT64, NULL},
                                          {AT(frg_fe_result, singleton_rounds), IS_INT64, NULL},
                                          {AT(frg_fe_result, n_disconnected), IS_INT64, NULL},
                                          {AT(frg_fe_result, n_groups), IS_INT64, NULL},
                                          {AT(frg_fe_result, plan_read), IS_BOOL, NULL},
                                          {AT(frg_fe_result, rank), IS_INT64, NULL},
                                          {AT(frg_fe_result, rank_method), IS_TEXT, NULL},
                                          {AT(frg_fe_result, n_components), IS_INT64, NULL},
                                          {AT(frg_fe_result, df_residual), IS_INT64, NULL},
                                          {AT(frg_fe_result, r2), IS_DOUBLE, NULL},
                                          {AT(frg_fe_result, r2_adjusted), IS_DOUBLE, NULL},
                                          {AT(frg_fe_result, r2_within), IS_DOUBLE, NULL},
                                          {AT(frg_fe_result, rmse), IS_DOUBLE, NULL},
                                          {AT(frg_fe_result, rss), IS_DOUBLE, NULL},
                                          {AT(frg_fe_result, tss), IS_DOUBLE, NULL},
                                          {AT(frg_fe_result, converged), IS_BOOL, NULL},
                                          {AT(frg_fe_result, encode_seconds), IS_DOUBLE, NULL},
                                          {AT(frg_fe_result, solve_seconds), IS_DOUBLE, NULL},
                                          {AT(frg_fe_result, vcov_seconds), IS_DOUBLE, NULL},
                                          {AT(frg_fe_result, total_seconds), IS_DOUBLE, NULL},
                                          {NULL, 0, IS_INT, NULL}};

/* ---- demean ---------------------------------------------------------------------------------- */

/** Where the solver of a plan is kept; path NULL: nowhere. */
typedef struct {
    const char *path;
    int there;        /* it is to be read, else written */
    frg_status saved; /* < 0: it could not be written */
    int written;
} plan_file;

/** One demeaning from plan to report, without the interpreter lock; seconds: of the plan, of the
 *  run. */
static frg_status run_demean(frg_demean **plan, frg_context *ctx, frg_array codes,
                             const frg_array *weights, frg_array in, frg_array out,
                             const frg_demean_opts *o, plan_file *file, frg_demean_column *columns,
                             double *seconds)
{
    const double begin = ext_seconds();
    frg_status status = frg_demean_create(plan, ctx, codes, weights, NULL, 0, 0, o);
    if (status == FRG_OK && file->path && file->there) {
        status = frg_demean_load(*plan, file->path);
    }
    const double made = ext_seconds();
    if (status == FRG_OK) {
        status = frg_demean_run(*plan, in, out, columns, NULL);
    }
    if (status >= 0 && status != FRG_INTERRUPTED && status != FRG_TIME_LIMIT && file->path &&
        !file->there) {
        file->saved = frg_demean_save(*plan, file->path);
        file->written = file->saved == FRG_OK;
    }
    seconds[0] = made - begin;
    seconds[1] = ext_seconds() - made;
    return status;
}

/** The components that were solved apart. */
static PyObject *list_of_subproblems(const frg_demean *plan, int64_t n)
{
    PyObject *const list = PyList_New(0);
    for (int64_t i = 0; list && i < n; i++) {
        frg_demean_part part = {.n = 0};
        PyObject *const one = frg_demean_get_part(plan, i, &part) < 0
                                  ? NULL
                                  : ext_fields_get(&part, subproblem_fields);
        if (one) {
            PyList_Append(list, one);
            Py_DECREF(one);
        }
    }
    return list;
}

static PyObject *demean(PyObject *module, PyObject *args)
{
    PyObject *context, *x, *codes, *weights, *out, *options, *result = NULL;
    ext_context *c;
    plan_file file = {.path = NULL};
    if (!PyArg_ParseTuple(args, "OOOOOOzp", &context, &x, &codes, &weights, &out, &options,
                          &file.path, &file.there) ||
        !(c = ext_context_of(module, context))) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array in, to, code, weight;
    frg_demean_opts o;
    frg_demean_defaults(&o, sizeof o);
    if (ext_options_set(&o, frg_demean_options(), options) < 0 ||
        ext_hold(&h, x, "x", 0, &in) < 0 || ext_hold(&h, codes, "fixed effects", 0, &code) < 0 ||
        ext_hold(&h, out, "out", 1, &to) < 0 ||
        (weights != Py_None && ext_hold(&h, weights, "weights", 0, &weight) < 0)) {
        ext_release(&h);
        return NULL;
    }
    const int64_t p = in.ndim == 2 ? in.shape[1] : 1;
    frg_demean_column *const columns = PyMem_Calloc((size_t)p, sizeof *columns);
    frg_demean *plan = NULL;
    double seconds[2] = {0, 0};
    frg_status status = FRG_NO_MEMORY;
    if (columns) {
        EXT_WORK(status = run_demean(&plan, c->ctx, code, weights == Py_None ? NULL : &weight, in,
                                     to, &o, &file, columns, seconds));
    }
    ext_release(&h);
    if (status < 0 || PyErr_Occurred()) {
        ext_raise(module, status, c->ctx);
    } else {
        const frg_demean_report report = frg_demean_get(plan);
        result = ext_fields_get(&report, report_fields);
        if (result &&
            (ext_put(result, "columns", ext_list_of(columns, p, sizeof *columns, column_fields)) <
                 0 ||
             ext_put(result, "parts", list_of_subproblems(plan, report.n_parts)) < 0 ||
             ext_put(result, "setup_seconds", PyFloat_FromDouble(seconds[0])) < 0 ||
             ext_put(result, "solve_seconds", PyFloat_FromDouble(seconds[1])) < 0 ||
             ext_put(result, "plan_written", PyBool_FromLong(file.written)) < 0 ||
             ext_put(result, "status", PyUnicode_FromString(frg_status_name(status))) < 0)) {
            Py_CLEAR(result);
        }
        if (result && file.saved < 0 &&
            PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "plan: %s", frg_message(c->ctx)) < 0) {
            Py_CLEAR(result);
        }
    }
    frg_demean_destroy(plan);
    PyMem_Free(columns);
    return result;
}

/* ---- lsmr ------------------------------------------------------------------------------------ */

static PyObject *lsmr(PyObject *module, PyObject *args)
{
    PyObject *context, *starts, *columns, *values, *b, *x, *options, *result = NULL;
    long long m, n;
    ext_context *c;
    if (!PyArg_ParseTuple(args, "OLLOOOOOO", &context, &m, &n, &starts, &columns, &values, &b, &x,
                          &options) ||
        !(c = ext_context_of(module, context))) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array start, column, value, rhs, to;
    frg_lsmr_opts o;
    frg_lsmr_defaults(&o, sizeof o);
    if (ext_options_set(&o, frg_lsmr_options(), options) < 0 ||
        ext_hold(&h, starts, "indptr", 0, &start) < 0 ||
        ext_hold(&h, columns, "indices", 0, &column) < 0 ||
        ext_hold(&h, values, "data", 0, &value) < 0 || ext_hold(&h, b, "b", 0, &rhs) < 0 ||
        ext_hold(&h, x, "x", 1, &to) < 0) {
        ext_release(&h);
        return NULL;
    }
    if (start.dtype != FRG_I64 || column.dtype != FRG_I32 || value.dtype != FRG_F64 ||
        start.shape[0] != m + 1 || column.shape[0] != value.shape[0]) {
        PyErr_SetString(PyExc_TypeError,
                        "expected indptr int64 (m + 1), indices int32 and data float64 (nnz)");
        ext_release(&h);
        return NULL;
    }
    const frg_csr a = {
        .m = m, .n = n, .starts = start.data, .columns = column.data, .values = value.data};
    const int64_t p = rhs.ndim == 2 ? rhs.shape[1] : 1;
    frg_lsmr_column *const reports = PyMem_Calloc((size_t)p, sizeof *reports);
    frg_status status = FRG_NO_MEMORY;
    if (reports) {
        EXT_WORK(status = frg_lsmr_solve(c->ctx, NULL, &a, rhs, NULL, to, &o, reports, NULL));
    }
    ext_release(&h);
    result = status < 0 || PyErr_Occurred()
                 ? ext_raise(module, status, c->ctx)
                 : Py_BuildValue("sN", frg_status_name(status),
                                 ext_list_of(reports, p, sizeof *reports, lsmr_column_fields));
    PyMem_Free(reports);
    return result;
}

/* ---- regressions ----------------------------------------------------------------------------- */

typedef struct {
    EXT_HEAD
    ext_table *table;
    frg_fe *fit;
    frg_status status;
    const frg_fe_vcov **added; /* beside those of the fit */
    int n_added;
} ext_fe;

static void fe_free(PyObject *self)
{
    ext_fe *const f = (ext_fe *)self;
    frg_fe_destroy(f->fit);
    PyMem_Free(f->added);
    Py_XDECREF((PyObject *)f->table);
    ext_drop(self);
}

static int fe_visit(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT((PyObject *)((ext_fe *)self)->table);
    return ext_visit(self, visit, arg);
}

static int take_vcovs(PyObject *list, frg_fe_opts *o)
{
    const Py_ssize_t n = PyList_Size(list);
    if (n < 1 || n > (Py_ssize_t)(sizeof o->vcov / sizeof *o->vcov)) {
        PyErr_SetString(PyExc_ValueError, "vcov: expected a list of 1 to 8 specifications");
        return -1;
    }
    for (Py_ssize_t k = 0; k < n; k++) {
        o->vcov[k] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, k), NULL);
        if (!o->vcov[k]) {
            return -1;
        }
    }
    o->n_vcov = (int)n;
    return 0;
}

/** Fe(context, formula, table, vcovs, options, demean_options): fits. */
static PyObject *fe_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *const module = PyType_GetModule(type), *context, *table, *vcovs, *options, *inner;
    const char *formula;
    if (!module ||
        !PyArg_ParseTuple(args, "OsOOOO", &context, &formula, &table, &vcovs, &options, &inner)) {
        return NULL;
    }
    ext_context *const c = ext_context_of(module, context);
    ext_table *const t = c ? ext_table_of(module, table) : NULL;
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    if (!t || take_vcovs(vcovs, &o) < 0 || ext_options_set(&o, frg_fe_options(), options) < 0 ||
        ext_options_set(&o.demean, frg_demean_options(), inner) < 0) {
        return NULL;
    }
    ext_fe *const f = ext_empty(type, c);
    if (!f) {
        return NULL;
    }
    f->table = (ext_table *)Py_NewRef((PyObject *)t);
    EXT_WORK(f->status = frg_fe_fit(&f->fit, c->ctx, formula, t->table, &o));
    if (f->status < 0 || PyErr_Occurred() || !f->fit) {
        ext_raise(module, f->status, c->ctx);
        Py_DECREF(f);
        return NULL;
    }
    return (PyObject *)f;
}

/** A list of floats; None for NULL. */
static PyObject *numbers_of(const double *x, int n)
{
    PyObject *list = x ? PyList_New(n) : Py_NewRef(Py_None);
    for (int i = 0; x && list && i < n; i++) {
        PyObject *const one = PyFloat_FromDouble(x[i]);
        if (!one || PyList_SetItem(list, i, one) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/** The fits of m as a list of objects of the type, which take them over; NULL with an exception. */
static PyObject *list_of_fits(PyTypeObject *type, ext_context *c, ext_table *t, frg_fe_many *m)
{
    PyObject *const list = PyList_New(0);
    for (int64_t i = 0; list && i < frg_fe_many_count(m); i++) {
        ext_fe *const f = ext_empty(type, c);
        if (!f) {
            Py_DECREF(list);
            return NULL;
        }
        f->table = (ext_table *)Py_NewRef((PyObject *)t);
        f->status = frg_fe_many_status(m, i);
        f->fit = frg_fe_many_take(m, i);
        const int failed = PyList_Append(list, (PyObject *)f);
        Py_DECREF(f);
        if (failed) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/** fe_many(context, formula, table, vcovs, options, demean_options) -> [Fe, ...]. */
static PyObject *fe_many(PyObject *module, PyObject *args)
{
    PyObject *context, *table, *vcovs, *options, *inner;
    const char *formula;
    ext_context *c;
    ext_table *t;
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    if (!PyArg_ParseTuple(args, "OsOOOO", &context, &formula, &table, &vcovs, &options, &inner) ||
        !(c = ext_context_of(module, context)) || !(t = ext_table_of(module, table)) ||
        take_vcovs(vcovs, &o) < 0 || ext_options_set(&o, frg_fe_options(), options) < 0 ||
        ext_options_set(&o.demean, frg_demean_options(), inner) < 0) {
        return NULL;
    }
    frg_fe_many *m = NULL;
    frg_status status;
    EXT_WORK(status = frg_fe_fit_many(&m, c->ctx, formula, t->table, &o));
    PyObject *const list =
        status < 0 || PyErr_Occurred() || !m
            ? ext_raise(module, status, c->ctx)
            : list_of_fits((PyTypeObject *)ext_state_of(module)->fe_type, c, t, m);
    frg_fe_many_destroy(m);
    return list;
}

static PyObject *vcov_dict(const frg_fe_vcov *v, int k)
{
    PyObject *const dict = ext_fields_get(v, vcov_fields);
    PyObject *const clusters = PyDict_New();
    for (int i = 0; clusters && i < v->n_clusters; i++) {
        ext_put(clusters, v->cluster_name[i], PyLong_FromLongLong(v->cluster_count[i]));
    }
    if (!dict || !clusters || ext_put(dict, "clusters", clusters) < 0 ||
        ext_put(dict, "df", numbers_of(v->df, k)) < 0 ||
        ext_put(dict, "matrix",
                PyBytes_FromStringAndSize((const char *)v->matrix,
                                          (Py_ssize_t)((size_t)k * (size_t)k * sizeof(double)))) <
            0 ||
        ext_put(dict, "coefficients",
                ext_list_of(v->coefficients, k, sizeof *v->coefficients, ext_coefficient_fields)) <
            0) {
        Py_XDECREF(dict);
        return NULL;
    }
    return dict;
}

static PyObject *fe_result(PyObject *self, PyObject *unused)
{
    (void)unused;
    const ext_fe *const f = (ext_fe *)self;
    const frg_fe_result *const r = frg_fe_get(f->fit);
    PyObject *const dict = ext_fields_get(r, result_fields);
    PyObject *const factors = PyDict_New(), *const vcovs = PyList_New(0),
                    *const columns = PyDict_New();
    for (int q = 0; factors && q < r->n_factors; q++) {
        ext_put(factors, r->factor_name[q], PyLong_FromLongLong(r->factor_levels[q]));
    }
    for (int v = 0; vcovs && v < r->n_vcov; v++) {
        PyObject *const one = vcov_dict(&r->vcov[v], r->n_coefficients);
        if (one) {
            PyList_Append(vcovs, one);
            Py_DECREF(one);
        }
    }
    for (int64_t i = 0; columns && i < r->n_demeaned; i++) {
        ext_put(columns, r->column_names[i], ext_fields_get(&r->columns[i], column_fields));
    }
    if (!dict || ext_put(dict, "factors", factors) < 0 || ext_put(dict, "vcovs", vcovs) < 0 ||
        ext_put(dict, "columns", columns) < 0 ||
        ext_put(dict, "dropped",
                ext_list_of(r->dropped, r->n_dropped, sizeof *r->dropped, dropped_fields)) < 0 ||
        ext_put(dict, "events",
                ext_list_of(r->events, r->n_events, sizeof *r->events, event_fields)) < 0 ||
        ext_put(dict, "solver", ext_fields_get(&r->demean, report_fields)) < 0 ||
        ext_put(dict, "parts",
                ext_list_of(r->parts, r->demean.n_parts, sizeof *r->parts, subproblem_fields)) <
            0 ||
        ext_put(dict, "iv", ext_fe_iv(r)) < 0 || ext_put(dict, "glm", ext_fe_glm(r)) < 0 ||
        ext_put(dict, "status", PyUnicode_FromString(frg_status_name(f->status))) < 0 ||
        PyErr_Occurred()) {
        Py_XDECREF(dict);
        return NULL;
    }
    return dict;
}

/** A covariance that the fit has, or NULL; ssc: all its keys. */
static const frg_fe_vcov *find_vcov(const ext_fe *f, const char *spec, const char *ssc)
{
    const frg_fe_result *const r = frg_fe_get(f->fit);
    for (int i = 0; i < r->n_vcov + f->n_added; i++) {
        const frg_fe_vcov *const v = i < r->n_vcov ? &r->vcov[i] : f->added[i - r->n_vcov];
        if (strcmp(v->spec, spec) == 0 && strcmp(v->ssc, ssc) == 0) {
            return v;
        }
    }
    return NULL;
}

/** Another covariance, remembered; NULL with an exception. */
static const frg_fe_vcov *add_vcov(ext_fe *f, const char *spec, const char *ssc)
{
    const frg_fe_vcov **const more =
        PyMem_Realloc(f->added, sizeof *f->added * (size_t)(f->n_added + 1));
    const frg_fe_vcov *v;
    frg_status status = FRG_NO_MEMORY;
    if (more) {
        f->added = more;
        EXT_WORK(status = frg_fe_vcov_add(f->fit, spec, ssc, &v));
    }
    if (ext_has_failed(status)) {
        ext_raise(f->context->module, status, f->context->ctx);
        return NULL;
    }
    f->added[f->n_added++] = v;
    return v;
}

/** vcov(spec, ssc) -> dict: another covariance of the same fit. */
static PyObject *fe_vcov(PyObject *self, PyObject *args)
{
    ext_fe *const f = (ext_fe *)self;
    const char *spec, *ssc;
    if (!PyArg_ParseTuple(args, "sz", &spec, &ssc)) {
        return NULL;
    }
    const frg_fe_vcov *const v = add_vcov(f, spec, ssc);
    return v ? vcov_dict(v, frg_fe_get(f->fit)->n_coefficients) : NULL;
}

/** wald(spec, ssc, r, q) -> dict: a joint test under a covariance that result() or vcov() has
 *  given. */
static PyObject *fe_wald(PyObject *self, PyObject *args)
{
    ext_fe *const f = (ext_fe *)self;
    const char *spec, *ssc;
    PyObject *r, *q;
    if (!PyArg_ParseTuple(args, "ssOO", &spec, &ssc, &r, &q)) {
        return NULL;
    }
    const frg_fe_vcov *v = find_vcov(f, spec, ssc);
    v = v ? v : add_vcov(f, spec, ssc);
    if (!v) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array matrix;
    frg_fe_test test;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, r, "R", 0, &matrix) == 0) {
        const int64_t rows = matrix.ndim == 2 ? matrix.shape[0] : -1;
        const double *const b = ext_values(&h, q, "q", 0, FRG_F64, rows);
        if (!PyErr_Occurred() && (rows < 1 || matrix.dtype != FRG_F64 ||
                                  matrix.shape[1] != frg_fe_get(f->fit)->n_coefficients ||
                                  matrix.stride[1] != 1 || matrix.stride[0] != matrix.shape[1])) {
            PyErr_Format(PyExc_ValueError, "R: expected contiguous float64, restrictions x %d",
                         frg_fe_get(f->fit)->n_coefficients);
        } else if (!PyErr_Occurred()) {
            status = frg_fe_wald(f->fit, v, matrix.data, b, rows, &test);
        }
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_raise(f->context->module, status, f->context->ctx)
                                  : ext_fields_get(&test, test_fields);
}

/** residuals(residuals, fitted): fills two float64 arrays of n_rows, NaN where a row was
 *  dropped. */
static PyObject *fe_residuals(PyObject *self, PyObject *args)
{
    ext_fe *const f = (ext_fe *)self;
    PyObject *residuals, *fitted;
    if (!PyArg_ParseTuple(args, "OO", &residuals, &fitted)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array r, y;
    const int64_t n = frg_table_rows(f->table->table);
    if (ext_hold(&h, residuals, "residuals", 1, &r) < 0 ||
        ext_hold(&h, fitted, "fitted", 1, &y) < 0) {
        ext_release(&h);
        return NULL;
    }
    if (r.dtype != FRG_F64 || y.dtype != FRG_F64 || r.shape[0] != n || y.shape[0] != n) {
        PyErr_SetString(PyExc_ValueError, "expected two float64 arrays with the rows of the data");
        ext_release(&h);
        return NULL;
    }
    frg_status status;
    EXT_WORK(status = frg_fe_residuals(f->fit, r.data, y.data));
    ext_release(&h);
    return ext_has_failed(status) ? ext_raise(f->context->module, status, f->context->ctx)
                                  : Py_NewRef(Py_None);
}

/** glm_values(what, out): fills a float64 array of n_rows, NaN where a row was dropped. */
static PyObject *fe_glm_values(PyObject *self, PyObject *args)
{
    ext_fe *const f = (ext_fe *)self;
    PyObject *object;
    int what;
    if (!PyArg_ParseTuple(args, "iO", &what, &object)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    double *const out = ext_values(&h, object, "out", 1, FRG_F64, frg_table_rows(f->table->table));
    frg_status status = FRG_BAD_ARG;
    if (out) {
        EXT_WORK(status = frg_fe_glm_values(f->fit, (frg_glm_value)what, out));
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_raise(f->context->module, status, f->context->ctx)
                                  : Py_NewRef(Py_None);
}

/** groups(out) -> how many connected sets; fills int32 of n_rows, 0 where a row was dropped. */
static PyObject *fe_groups(PyObject *self, PyObject *args)
{
    ext_fe *const f = (ext_fe *)self;
    PyObject *object;
    if (!PyArg_ParseTuple(args, "O", &object)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    int32_t *const out = ext_values(&h, object, "out", 1, FRG_I32, frg_table_rows(f->table->table));
    int64_t count = 0;
    frg_status status = FRG_BAD_ARG;
    if (out) {
        EXT_WORK(status = frg_fe_groups(f->fit, out, &count));
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_raise(f->context->module, status, f->context->ctx)
                                  : PyLong_FromLongLong(count);
}

/** save_plan(path): writes the solver of a fit with the option plan. */
static PyObject *fe_save_plan(PyObject *self, PyObject *args)
{
    ext_fe *const f = (ext_fe *)self;
    const char *path;
    if (!PyArg_ParseTuple(args, "s", &path)) {
        return NULL;
    }
    frg_status status;
    EXT_WORK(status = frg_fe_save_plan(f->fit, path));
    return ext_has_failed(status) ? ext_raise(f->context->module, status, f->context->ctx)
                                  : Py_NewRef(Py_None);
}

/** leave_out(options) -> dict: variance components. */
static PyObject *fe_leave_out(PyObject *self, PyObject *args)
{
    ext_fe *const f = (ext_fe *)self;
    PyObject *options;
    frg_leave_out_opts o;
    frg_leave_out found;
    frg_leave_out_defaults(&o, sizeof o);
    if (!PyArg_ParseTuple(args, "O", &options) ||
        ext_options_set(&o, frg_leave_out_options(), options) < 0) {
        return NULL;
    }
    frg_status status;
    EXT_WORK(status = frg_fe_leave_out(f->fit, &o, &found));
    return ext_has_failed(status) || !found.leave_out
               ? ext_raise(f->context->module, status, f->context->ctx)
               : ext_fe_leave_out(&found);
}

/** ritest(vcovs, options, demean_options, asked, statistics) -> dict: randomisation inference,
 *  under the options that the fit was made with; statistics: float64, filled. */
static PyObject *fe_ritest(PyObject *self, PyObject *args)
{
    ext_fe *const f = (ext_fe *)self;
    PyObject *vcovs, *options, *inner, *asked, *statistics;
    frg_fe_opts fit;
    frg_ritest_opts o;
    frg_fe_defaults(&fit, sizeof fit);
    frg_ritest_defaults(&o, sizeof o);
    if (!PyArg_ParseTuple(args, "OOOOO", &vcovs, &options, &inner, &asked, &statistics) ||
        take_vcovs(vcovs, &fit) < 0 || ext_options_set(&fit, frg_fe_options(), options) < 0 ||
        ext_options_set(&fit.demean, frg_demean_options(), inner) < 0 ||
        ext_options_set(&o, frg_ritest_options(), asked) < 0) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_ritest found = {.reps = 0};
    double *const out = ext_values(&h, statistics, "statistics", 1, FRG_F64, o.reps);
    frg_status status = FRG_BAD_ARG;
    if (out) {
        EXT_WORK(status = frg_fe_ritest(f->fit, &fit, &o, out, &found));
    }
    ext_release(&h);
    if (ext_has_failed(status) || !found.term) {
        return ext_raise(f->context->module, status, f->context->ctx);
    }
    return ext_fields_get(&found, ritest_fields);
}

/** effects() -> {column: (kind, bytes, labels)}: factor, level, effect, identified. */
static PyObject *fe_effects(PyObject *self, PyObject *unused)
{
    (void)unused;
    ext_fe *const f = (ext_fe *)self;
    frg_table *t;
    frg_status status;
    EXT_WORK(status = frg_fe_effects(f->fit, &t));
    if (ext_has_failed(status)) {
        return ext_raise(f->context->module, status, f->context->ctx);
    }
    PyObject *const dict = ext_table_dict(t);
    frg_table_destroy(t);
    return dict;
}

typedef frg_status (*of_new_data)(const frg_fe *, const frg_table *, double *, int64_t *);

/** Calls it with a table and an array of as many axes; its count. */
static PyObject *fill_of_new_data(PyObject *self, PyObject *args, of_new_data call, int axes)
{
    ext_fe *const f = (ext_fe *)self;
    PyObject *table, *out;
    ext_table *t;
    if (!PyArg_ParseTuple(args, "OO", &table, &out) ||
        !(t = ext_table_of(f->context->module, table))) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array to;
    if (ext_hold(&h, out, "out", 1, &to) < 0) {
        return NULL;
    }
    int64_t unseen = 0;
    frg_status status = FRG_BAD_ARG;
    if (to.dtype != FRG_F64 || to.ndim != axes || to.shape[axes - 1] != frg_table_rows(t->table) ||
        (axes == 2 && to.shape[0] != frg_fe_get(f->fit)->n_coefficients)) {
        PyErr_SetString(PyExc_ValueError, "out: expected float64 with the rows of the new data");
    } else {
        EXT_WORK(status = call(f->fit, t->table, to.data, &unseen));
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_raise(f->context->module, status, f->context->ctx)
                                  : PyLong_FromLongLong(unseen);
}

/** predict(table, out) -> rows with a level that the fit has not seen. */
static PyObject *fe_predict(PyObject *self, PyObject *args)
{
    return fill_of_new_data(self, args, frg_fe_predict, 1);
}

/** regressors(table, out) -> the same; out has a row a coefficient. */
static PyObject *fe_regressors(PyObject *self, PyObject *args)
{
    return fill_of_new_data(self, args, frg_fe_regressors, 2);
}

static void collect_name(const char *name, void *user)
{
    PyObject *const word = PyUnicode_FromString(name);
    if (word) {
        PyList_Append(user, word);
        Py_DECREF(word);
    }
}

/** fe_columns(context, formula, vcovs, options) -> names of the columns the fit would read. */
static PyObject *fe_columns(PyObject *module, PyObject *args)
{
    PyObject *context, *vcovs, *options;
    const char *formula;
    ext_context *c;
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    if (!PyArg_ParseTuple(args, "OsOO", &context, &formula, &vcovs, &options) ||
        !(c = ext_context_of(module, context)) || take_vcovs(vcovs, &o) < 0 ||
        ext_options_set(&o, frg_fe_options(), options) < 0) {
        return NULL;
    }
    PyObject *const names = PyList_New(0);
    const frg_status status =
        names ? frg_fe_columns(c->ctx, formula, &o, collect_name, names) : FRG_NO_MEMORY;
    if (status < 0 || PyErr_Occurred()) {
        Py_XDECREF(names);
        return ext_raise(module, status, c->ctx);
    }
    return names;
}

/** fe_expand(context, formula) -> the formulas of one model each that it stands for. */
static PyObject *fe_expand(PyObject *module, PyObject *args)
{
    PyObject *context;
    const char *formula;
    ext_context *c;
    if (!PyArg_ParseTuple(args, "Os", &context, &formula) ||
        !(c = ext_context_of(module, context))) {
        return NULL;
    }
    PyObject *const texts = PyList_New(0);
    const frg_status status =
        texts ? frg_fe_expand(c->ctx, formula, collect_name, texts) : FRG_NO_MEMORY;
    if (status < 0 || PyErr_Occurred()) {
        Py_XDECREF(texts);
        return ext_raise(module, status, c->ctx);
    }
    return texts;
}

/** A column of the table as bytes of float64. */
static PyObject *bytes_of(const frg_table *t, const char *name)
{
    const frg_column *const c = frg_table_find(t, name);
    return PyBytes_FromStringAndSize((const char *)c->numbers,
                                     (Py_ssize_t)((size_t)c->n * sizeof *c->numbers));
}

/** What a design of local projections has: the treatment and, by horizon, the outcomes. */
static PyObject *lpdid_dict(const frg_lpdid_design *d)
{
    PyObject *const dict = PyDict_New(), *const outcomes = PyList_New(0);
    for (int i = 0; outcomes && i < d->n; i++) {
        PyObject *const one =
            Py_BuildValue("iN", d->outcomes[i].horizon, bytes_of(d->table, d->outcomes[i].name));
        if (one) {
            PyList_Append(outcomes, one);
            Py_DECREF(one);
        }
    }
    if (!dict || ext_put(dict, "outcomes", outcomes) < 0 ||
        ext_put(dict, "treatment", bytes_of(d->table, d->term)) < 0 || PyErr_Occurred()) {
        Py_XDECREF(dict);
        return NULL;
    }
    return dict;
}

/** lpdid(context, formula, table, options) -> dict of the columns of local projections. */
static PyObject *lpdid(PyObject *module, PyObject *args)
{
    PyObject *context, *table, *options;
    const char *formula;
    ext_context *c;
    ext_table *t;
    frg_lpdid_opts o;
    frg_lpdid_defaults(&o, sizeof o);
    if (!PyArg_ParseTuple(args, "OsOO", &context, &formula, &table, &options) ||
        !(c = ext_context_of(module, context)) || !(t = ext_table_of(module, table)) ||
        ext_options_set(&o, frg_lpdid_options(), options) < 0) {
        return NULL;
    }
    frg_lpdid *l = NULL;
    frg_status status;
    EXT_WORK(status = frg_lpdid_create(&l, c->ctx, formula, t->table, &o));
    PyObject *const dict =
        ext_has_failed(status) ? ext_raise(module, status, c->ctx) : lpdid_dict(frg_lpdid_get(l));
    frg_lpdid_destroy(l);
    return dict;
}

/** event_study(context, table, options, treated, since, first) -> reference; the arrays, float64 of
 *  the table's rows, are filled. */
static PyObject *event_study(PyObject *module, PyObject *args)
{
    PyObject *context, *table, *options, *arrays[3];
    ext_context *c;
    ext_table *t;
    frg_event_study_opts o;
    frg_event_study_defaults(&o, sizeof o);
    if (!PyArg_ParseTuple(args, "OOOOOO", &context, &table, &options, &arrays[0], &arrays[1],
                          &arrays[2]) ||
        !(c = ext_context_of(module, context)) || !(t = ext_table_of(module, table)) ||
        ext_options_set(&o, frg_event_study_options(), options) < 0) {
        return NULL;
    }
    static const char *const names[] = {"treated", "since", "first"};
    ext_held h = {.n = 0};
    double *out[3], reference = 0;
    int held = 1;
    for (int i = 0; i < 3; i++) {
        out[i] = ext_values(&h, arrays[i], names[i], 1, FRG_F64, frg_table_rows(t->table));
        held = held && out[i];
    }
    frg_status status = FRG_BAD_ARG;
    if (held) {
        EXT_WORK(status =
                     frg_event_study(c->ctx, t->table, &o, out[0], out[1], out[2], &reference));
    }
    ext_release(&h);
    if (!held) {
        return NULL;
    }
    return ext_has_failed(status) ? ext_raise(module, status, c->ctx)
                                  : PyFloat_FromDouble(reference);
}

/* ---- with the context to themselves ---------------------------------------------------------- */

EXT_FUNCTION(demean)
EXT_FUNCTION(lsmr)
EXT_FUNCTION(fe_columns)
EXT_FUNCTION(fe_expand)
EXT_FUNCTION(fe_many)
EXT_FUNCTION(lpdid)
EXT_FUNCTION(event_study)
EXT_METHOD(fe_result)
EXT_METHOD(fe_vcov)
EXT_METHOD(fe_wald)
EXT_METHOD(fe_residuals)
EXT_METHOD(fe_glm_values)
EXT_METHOD(fe_groups)
EXT_METHOD(fe_save_plan)
EXT_METHOD(fe_leave_out)
EXT_METHOD(fe_ritest)
EXT_METHOD(fe_effects)
EXT_METHOD(fe_predict)
EXT_METHOD(fe_regressors)
EXT_NEW(fe_new)
EXT_FREE(fe_free)

PyMethodDef ext_fe_functions[] = {
    {"demean", demean_alone, METH_VARARGS,
     "demean(context, x, codes, weights, out, options, plan, there) -> report"},
    {"lsmr", lsmr_alone, METH_VARARGS,
     "lsmr(context, m, n, indptr, indices, data, b, x, options) -> (status, reports)"},
    {"fe_columns", fe_columns_alone, METH_VARARGS,
     "fe_columns(context, formula, vcovs, options) -> names"},
    {"fe_expand", fe_expand_alone, METH_VARARGS, "fe_expand(context, formula) -> formulas"},
    {"event_study", event_study_alone, METH_VARARGS,
     "event_study(context, table, options, treated, since, first) -> reference"},
    {"lpdid", lpdid_alone, METH_VARARGS, "lpdid(context, formula, table, options) -> columns"},
    {"fe_many", fe_many_alone, METH_VARARGS,
     "fe_many(context, formula, table, vcovs, options, demean_options) -> fits"},
    {NULL, NULL, 0, NULL},
};

int ext_types_fe(PyObject *module)
{
    static PyMethodDef members[] = {
        {"result", fe_result_alone, METH_NOARGS, "Everything the fit reports, as a dict."},
        {"vcov", fe_vcov_alone, METH_VARARGS,
         "vcov(spec, ssc): another covariance of the same fit."},
        {"wald", fe_wald_alone, METH_VARARGS, "wald(spec, ssc, r, q): a joint test."},
        {"residuals", fe_residuals_alone, METH_VARARGS,
         "residuals(residuals, fitted): fills two arrays."},
        {"glm_values", fe_glm_values_alone, METH_VARARGS,
         "glm_values(what, out): fills an array with a value of each row."},
        {"groups", fe_groups_alone, METH_VARARGS,
         "groups(out) -> count: the connected set of each row."},
        {"save_plan", fe_save_plan_alone, METH_VARARGS,
         "save_plan(path): writes the solver of a fit with the option plan."},
        {"leave_out", fe_leave_out_alone, METH_VARARGS,
         "leave_out(options) -> dict: variance components of two effects."},
        {"ritest", fe_ritest_alone, METH_VARARGS,
         "ritest(vcovs, options, demean_options, asked, statistics) -> dict: randomisation "
         "inference."},
        {"effects", fe_effects_alone, METH_NOARGS, "The fixed effects as columns."},
        {"predict", fe_predict_alone, METH_VARARGS,
         "predict(table, out): fills out; rows with unseen levels."},
        {"regressors", fe_regressors_alone, METH_VARARGS,
         "regressors(table, out): fills out, a row a coefficient; rows with unseen levels."},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_new, fe_new_alone},
                                  {Py_tp_dealloc, fe_free_alone},
                                  {Py_tp_traverse, fe_visit},
                                  {Py_tp_methods, members},
                                  {Py_tp_doc, "A fitted regression; use fourge.fe.feols."},
                                  {0, NULL}};
    static PyType_Spec spec = {"fourge._fourge.Fe", sizeof(ext_fe), 0, EXT_TYPE, slots};
    ext_state *const s = ext_state_of(module);
    s->fe_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return s->fe_type ? PyModule_AddObjectRef(module, "Fe", s->fe_type) : -1;
}
