/* ext_gp.c - Gaussian processes: processes with their data, and the dense core. */
#include "fourge/checkpoint.h"
#include "fourge/gp.h"

#include "ext.h"

#define AT(type, field) #field, offsetof(type, field)

static const char precisions[] = "f64|f32|mixed";
static const char storages[] = "auto|full|packed";
static const char transforms[] = "log|softplus|interval|identity";

EXT_UNSET(gp)
EXT_UNSET(gp_fit)

const ext_options ext_gp_takes[] = {
    EXT_TABLE(gp),
    EXT_TABLE(gp_fit),
    {NULL, NULL, NULL, 0, NULL},
};

static const ext_field parameter_fields[] = {
    {AT(frg_gp_parameter, name), IS_TEXT, NULL},
    {AT(frg_gp_parameter, entry), IS_INT, NULL},
    {AT(frg_gp_parameter, value), IS_DOUBLE, NULL},
    {AT(frg_gp_parameter, lower), IS_DOUBLE, NULL},
    {AT(frg_gp_parameter, upper), IS_DOUBLE, NULL},
    {AT(frg_gp_parameter, transform), IS_CHOICE, transforms},
    {AT(frg_gp_parameter, fixed), IS_BOOL, NULL},
    {AT(frg_gp_parameter, active), IS_INT, NULL},
    {AT(frg_gp_parameter, std_error), IS_DOUBLE, NULL},
    {AT(frg_gp_parameter, tied), IS_INT, NULL},
    {NULL, 0, IS_INT, NULL}};

static const ext_field value_fields[] = {{AT(frg_gp_value, log_likelihood), IS_DOUBLE, NULL},
                                         {AT(frg_gp_value, log_prior), IS_DOUBLE, NULL},
                                         {AT(frg_gp_value, per_point), IS_DOUBLE, NULL},
                                         {AT(frg_gp_value, scale), IS_DOUBLE, NULL},
                                         {AT(frg_gp_value, jitter), IS_DOUBLE, NULL},
                                         {AT(frg_gp_value, jitter_tries), IS_INT, NULL},
                                         {AT(frg_gp_value, pivot), IS_INT64, NULL},
                                         {AT(frg_gp_value, trace_residual), IS_DOUBLE, NULL},
                                         {AT(frg_gp_value, error_estimate), IS_DOUBLE, NULL},
                                         {AT(frg_gp_value, promoted), IS_BOOL, NULL},
                                         {AT(frg_gp_value, storage), IS_CHOICE, storages},
                                         {AT(frg_gp_value, build_seconds), IS_DOUBLE, NULL},
                                         {AT(frg_gp_value, factor_seconds), IS_DOUBLE, NULL},
                                         {AT(frg_gp_value, inverse_seconds), IS_DOUBLE, NULL},
                                         {AT(frg_gp_value, gradient_seconds), IS_DOUBLE, NULL},
                                         {NULL, 0, IS_INT, NULL}};

PyObject *ext_gp_value_dict(const frg_gp_value *v)
{
    PyObject *const dict = ext_fields_get(v, value_fields);
    if (dict &&
        ext_put(dict, "closest",
                Py_BuildValue("LL", (long long)v->closest[0], (long long)v->closest[1])) < 0) {
        Py_DECREF(dict);
        return NULL;
    }
    return dict;
}

static const ext_field trace_fields[] = {{AT(frg_gp_trace, log_likelihood), IS_DOUBLE, NULL},
                                         {AT(frg_gp_trace, gradient_norm), IS_DOUBLE, NULL},
                                         {AT(frg_gp_trace, seconds), IS_DOUBLE, NULL},
                                         {AT(frg_gp_trace, values), IS_INT64, NULL},
                                         {AT(frg_gp_trace, gradients), IS_INT64, NULL},
                                         {NULL, 0, IS_INT, NULL}};

static const ext_field fit_fields[] = {{AT(frg_gp_fit_result, log_likelihood), IS_DOUBLE, NULL},
                                       {AT(frg_gp_fit_result, gradient_norm), IS_DOUBLE, NULL},
                                       {AT(frg_gp_fit_result, iterations), IS_INT64, NULL},
                                       {AT(frg_gp_fit_result, values), IS_INT64, NULL},
                                       {AT(frg_gp_fit_result, gradients), IS_INT64, NULL},
                                       {AT(frg_gp_fit_result, failures), IS_INT64, NULL},
                                       {AT(frg_gp_fit_result, best_start), IS_INT, NULL},
                                       {AT(frg_gp_fit_result, optimizer), IS_TEXT, NULL},
                                       {AT(frg_gp_fit_result, ended), IS_TEXT, NULL},
                                       {AT(frg_gp_fit_result, starts_reached), IS_INT64, NULL},
                                       {AT(frg_gp_fit_result, next_optimum), IS_DOUBLE, NULL},
                                       {AT(frg_gp_fit_result, choice_values), IS_INT64, NULL},
                                       {AT(frg_gp_fit_result, choice_points), IS_INT64, NULL},
                                       {AT(frg_gp_fit_result, total_seconds), IS_DOUBLE, NULL},
                                       {NULL, 0, IS_INT, NULL}};

static const ext_field start_fields[] = {
    {AT(frg_gp_start, objective), IS_DOUBLE, NULL}, {AT(frg_gp_start, iterations), IS_INT64, NULL},
    {AT(frg_gp_start, values), IS_INT64, NULL},     {AT(frg_gp_start, gradients), IS_INT64, NULL},
    {AT(frg_gp_start, failures), IS_INT64, NULL},   {NULL, 0, IS_INT, NULL}};

static const ext_field report_fields[] = {{AT(frg_gp_report, n), IS_INT64, NULL},
                                          {AT(frg_gp_report, d), IS_INT64, NULL},
                                          {AT(frg_gp_report, q), IS_INT64, NULL},
                                          {AT(frg_gp_report, n_masked), IS_INT64, NULL},
                                          {AT(frg_gp_report, kernel), IS_TEXT, NULL},
                                          {AT(frg_gp_report, given_mean), IS_BOOL, NULL},
                                          {AT(frg_gp_report, storage), IS_CHOICE, storages},
                                          {AT(frg_gp_report, precision), IS_CHOICE, precisions},
                                          {AT(frg_gp_report, bytes), IS_SIZE, NULL},
                                          {NULL, 0, IS_INT, NULL}};

typedef struct {
    EXT_HEAD
    frg_gp *gp;
} ext_gp;

static ext_gp *self_of(PyObject *self)
{
    return (ext_gp *)self;
}

static void gp_free(PyObject *self)
{
    frg_gp_destroy(self_of(self)->gp);
    ext_drop(self);
}

/* ---- life ------------------------------------------------------------------------------------ */

/** Gp(context, x, y, kernel, options, mean_values, noise_variances, noise_groups, column_names). */
static PyObject *gp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *const module = PyType_GetModule(type), *context, *x, *y, *options, *mean, *noise,
                    *groups, *columns;
    const char *kernel;
    ext_context *c;
    if (!module ||
        !PyArg_ParseTuple(args, "OOOsOOOOO", &context, &x, &y, &kernel, &options, &mean, &noise,
                          &groups, &columns) ||
        !(c = ext_context_of(module, context))) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array xa, ya;
    frg_gp_opts o;
    frg_gp_defaults(&o, sizeof o);
    ext_gp *g = NULL;
    const char **names = NULL;
    Py_ssize_t n_names = 0;
    if (ext_options_set(&o, frg_gp_options(), options) < 0 || ext_hold(&h, x, "x", 0, &xa) < 0 ||
        ext_hold(&h, y, "y", 0, &ya) < 0 ||
        (columns != Py_None && !(names = ext_strings(columns, "columns", &n_names)))) {
        ext_release(&h);
        return NULL;
    }
    const int64_t n = xa.shape[0];
    o.column_names = names;
    o.mean_values = ext_values(&h, mean, "mean_values", 0, FRG_F64, n);
    o.noise_variances =
        PyErr_Occurred() ? NULL : ext_values(&h, noise, "noise_variances", 0, FRG_F64, n);
    o.noise_groups =
        PyErr_Occurred() ? NULL : ext_values(&h, groups, "noise_groups", 0, FRG_I32, n);
    if (names && n_names != (xa.ndim == 2 ? xa.shape[1] : 1)) {
        PyErr_Format(PyExc_ValueError, "columns: expected %lld names, got %zd",
                     (long long)(xa.ndim == 2 ? xa.shape[1] : 1), n_names);
    }
    frg_status status = FRG_BAD_ARG;
    if (!PyErr_Occurred() && (g = ext_empty(type, c))) {
        EXT_WORK(status = frg_gp_create(&g->gp, c->ctx, xa, ya, kernel, &o));
    }
    PyMem_Free(names);
    ext_release(&h);
    if (status < 0 || PyErr_Occurred()) {
        ext_raise(module, status, c->ctx);
        Py_XDECREF((PyObject *)g);
        return NULL;
    }
    return (PyObject *)g;
}

/** load(context, path): a process from a file. */
static PyObject *gp_load(PyObject *type, PyObject *args)
{
    PyObject *const module = PyType_GetModule((PyTypeObject *)type), *context;
    const char *path;
    ext_context *c;
    if (!module || !PyArg_ParseTuple(args, "Os", &context, &path) ||
        !(c = ext_context_of(module, context))) {
        return NULL;
    }
    ext_gp *const g = ext_empty((PyTypeObject *)type, c);
    frg_status status = FRG_NO_MEMORY;
    if (g) {
        EXT_WORK(status = frg_gp_load(&g->gp, c->ctx, path));
    }
    if (ext_has_failed(status)) {
        ext_raise(module, status, c->ctx);
        Py_XDECREF((PyObject *)g);
        return NULL;
    }
    return (PyObject *)g;
}

static PyObject *gp_save(PyObject *self, PyObject *args)
{
    const char *path;
    if (!PyArg_ParseTuple(args, "s", &path)) {
        return NULL;
    }
    frg_status status;
    EXT_WORK(status = frg_gp_save(self_of(self)->gp, path));
    return status < 0 ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static PyObject *gp_parameters(PyObject *self, PyObject *unused)
{
    (void)unused;
    const int count = frg_gp_parameter_count(self_of(self)->gp);
    PyObject *const list = PyList_New(count);
    for (int i = 0; list && i < count; i++) {
        frg_gp_parameter p;
        const frg_status status = frg_gp_get_parameter(self_of(self)->gp, i, &p);
        PyObject *const item =
            status < 0 ? ext_failed(self, status) : ext_fields_get(&p, parameter_fields);
        if (!item || PyList_SetItem(list, i, item) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/** update(theta): float64 values, one a parameter. */
static PyObject *gp_update(PyObject *self, PyObject *args)
{
    PyObject *theta;
    if (!PyArg_ParseTuple(args, "O", &theta)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    const double *const values =
        ext_values(&h, theta, "theta", 0, FRG_F64, frg_gp_parameter_count(self_of(self)->gp));
    const frg_status status =
        values ? frg_gp_update_parameters(self_of(self)->gp, values) : FRG_BAD_ARG;
    ext_release(&h);
    return status < 0 ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/** set(changes): a list of (name, entry, value, lower, upper), NaN stays, entry -1: all; all of
 *  them or none. */
static PyObject *gp_set(PyObject *self, PyObject *args)
{
    PyObject *list;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &list)) {
        return NULL;
    }
    const Py_ssize_t count = PyList_Size(list);
    frg_gp_change *const changes = PyMem_Malloc((size_t)count * sizeof *changes + 1);
    frg_status status = FRG_BAD_ARG;
    Py_ssize_t i = 0;
    for (; changes && i < count; i++) {
        frg_gp_change *const c = &changes[i];
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "siddd", &c->name, &c->entry, &c->value,
                              &c->lower, &c->upper)) {
            break;
        }
    }
    if (!changes) {
        PyErr_NoMemory();
    } else if (i == count) {
        status = frg_gp_update_named(self_of(self)->gp, changes, (int)count);
    }
    PyMem_Free(changes);
    return PyErr_Occurred() ? NULL : status < 0 ? ext_failed(self, status) : Py_NewRef(Py_None);
}

static PyObject *gp_fix(PyObject *self, PyObject *args)
{
    int i, fixed;
    if (!PyArg_ParseTuple(args, "ip", &i, &fixed)) {
        return NULL;
    }
    const frg_status status = frg_gp_update_fixed(self_of(self)->gp, i, fixed);
    return status < 0 ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/** tie(i, to): parameter i follows parameter `to`; -1: none. */
static PyObject *gp_tie(PyObject *self, PyObject *args)
{
    int i, to;
    if (!PyArg_ParseTuple(args, "ii", &i, &to)) {
        return NULL;
    }
    const frg_status status = frg_gp_update_tied(self_of(self)->gp, i, to);
    return status < 0 ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/** A list of n strings. */
static PyObject *names_of(const char *const *names, int64_t n)
{
    PyObject *const list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *const name = PyUnicode_FromString(names[i]);
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *gp_report(PyObject *self, PyObject *unused)
{
    (void)unused;
    const frg_gp_report r = frg_gp_get(self_of(self)->gp);
    PyObject *const dict = ext_fields_get(&r, report_fields);
    if (dict && ext_put(dict, "columns", names_of(r.column_names, r.d)) < 0) {
        Py_DECREF(dict);
        return NULL;
    }
    return dict;
}

/* ---- value, gradient, leave-one-out ---------------------------------------------------------- */

static PyObject *gp_value(PyObject *self, PyObject *unused)
{
    (void)unused;
    frg_gp_value v;
    frg_status status;
    EXT_WORK(status = frg_gp_eval(self_of(self)->gp, &v));
    PyObject *const dict =
        ext_has_failed(status) ? ext_failed(self, status) : ext_gp_value_dict(&v);
    if (dict && ext_put(dict, "status", PyUnicode_FromString(frg_status_name(status))) < 0) {
        Py_DECREF(dict);
        return NULL;
    }
    return dict;
}

/** gradient(out, x, y): fills float64 arrays; x and y may be None.  Returns the value. */
static PyObject *gp_gradient(PyObject *self, PyObject *args)
{
    PyObject *gradient, *x, *y;
    if (!PyArg_ParseTuple(args, "OOO", &gradient, &x, &y)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array out, dx, dy, *to_x, *to_y;
    frg_gp *const gp = self_of(self)->gp;
    frg_gp_value v;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, gradient, "gradient", 1, &out) == 0 &&
        ext_maybe(&h, x, "x gradient", 1, &dx, &to_x) == 0 &&
        ext_maybe(&h, y, "y gradient", 1, &dy, &to_y) == 0) {
        if (out.dtype != FRG_F64 || out.shape[0] != frg_gp_parameter_count(gp)) {
            PyErr_SetString(PyExc_ValueError, "gradient: expected one float64 a parameter");
        } else {
            EXT_WORK(status = frg_gp_eval_gradient(gp, out.data, to_x, to_y, &v));
        }
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_failed(self, status) : ext_gp_value_dict(&v);
}

/** step(y, theta, gradient, dx, dy): values at other observations and parameters; gradient, x and y
 *  are filled and may be None.  Returns the log likelihood alone: for loops that make small
 *  steps. */
static PyObject *gp_step(PyObject *self, PyObject *args)
{
    PyObject *y, *theta, *gradient, *x_out, *y_out;
    if (!PyArg_ParseTuple(args, "OOOOO", &y, &theta, &gradient, &x_out, &y_out)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array ya, dx, dy, *to_x, *to_y;
    frg_gp *const gp = self_of(self)->gp;
    const int64_t count = frg_gp_parameter_count(gp);
    frg_gp_value v = {.log_likelihood = 0};
    frg_status status = FRG_BAD_ARG;
    const double *const values = ext_values(&h, theta, "theta", 0, FRG_F64, count);
    double *const out = values ? ext_values(&h, gradient, "gradient", 1, FRG_F64, count) : NULL;
    if (values && !PyErr_Occurred() && ext_hold(&h, y, "y", 0, &ya) == 0 &&
        ext_maybe(&h, x_out, "x gradient", 1, &dx, &to_x) == 0 &&
        ext_maybe(&h, y_out, "y gradient", 1, &dy, &to_y) == 0) {
        EXT_WORK(status = frg_gp_update_y(gp, ya),
                 status = status < 0 ? status : frg_gp_update_parameters(gp, values),
                 status = status < 0 ? status
                          : out      ? frg_gp_eval_gradient(gp, out, to_x, to_y, &v)
                                     : frg_gp_eval(gp, &v));
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_failed(self, status) : PyFloat_FromDouble(v.log_likelihood);
}

/** information(out): fills p x p float64. */
static PyObject *gp_information(PyObject *self, PyObject *args)
{
    PyObject *object;
    if (!PyArg_ParseTuple(args, "O", &object)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    const int p = frg_gp_parameter_count(self_of(self)->gp);
    double *const out = ext_values(&h, object, "information", 1, FRG_F64, (int64_t)p * p);
    frg_status status = FRG_BAD_ARG;
    if (out) {
        EXT_WORK(status = frg_gp_eval_information(self_of(self)->gp, out));
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/** Means and variances of left-out points: of one at a time, or of a fold where `folds` has
 *  codes. */
static PyObject *left_out(PyObject *self, PyObject *codes, PyObject *const outs[3])
{
    ext_held h = {.n = 0};
    frg_gp *const gp = self_of(self)->gp;
    const frg_gp_report r = frg_gp_get(gp);
    const int32_t *const folds = ext_values(&h, codes, "folds", 0, FRG_I32, r.n);
    static const char *const names[] = {"mean", "variance", "gradient"};
    const int64_t lengths[] = {r.n * r.q, r.n, frg_gp_parameter_count(gp)};
    double *to[3] = {NULL, NULL, NULL};
    for (int k = 0; k < 3 && !PyErr_Occurred(); k++) {
        to[k] = ext_values(&h, outs[k], names[k], 1, FRG_F64, lengths[k]);
    }
    frg_gp_loo out = {.log_density = 0};
    frg_status status = FRG_BAD_ARG;
    if (!PyErr_Occurred()) {
        EXT_WORK(status = folds ? frg_gp_eval_folds(gp, folds, to[0], to[1], to[2], &out)
                                : frg_gp_eval_loo(gp, to[0], to[1], to[2], &out));
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_failed(self, status)
                                  : Py_BuildValue("dd", out.log_density, out.rmse);
}

/** loo(mean, variance, gradient) -> (log_density, rmse); gradient may be None. */
static PyObject *gp_loo(PyObject *self, PyObject *args)
{
    PyObject *outs[3];
    return PyArg_ParseTuple(args, "OOO", &outs[0], &outs[1], &outs[2])
               ? left_out(self, Py_None, outs)
               : NULL;
}

/** folds(codes, mean, variance, gradient) -> (log_density, rmse); gradient may be None. */
static PyObject *gp_folds(PyObject *self, PyObject *args)
{
    PyObject *codes, *outs[3];
    return PyArg_ParseTuple(args, "OOOO", &codes, &outs[0], &outs[1], &outs[2])
               ? left_out(self, codes, outs)
               : NULL;
}

/** loo_latent(variance): fills n float64. */
static PyObject *gp_loo_latent(PyObject *self, PyObject *args)
{
    PyObject *object;
    if (!PyArg_ParseTuple(args, "O", &object)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_gp *const gp = self_of(self)->gp;
    double *const out = ext_values(&h, object, "variance", 1, FRG_F64, frg_gp_get(gp).n);
    frg_status status = FRG_BAD_ARG;
    if (out) {
        EXT_WORK(status = frg_gp_eval_loo_latent(gp, out));
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/* ---- fit and prediction ---------------------------------------------------------------------- */

/** What became of each start. */
static PyObject *starts_of(const frg_gp_fit_result *r)
{
    PyObject *const list = ext_list_of(r->starts, r->n_starts, sizeof *r->starts, start_fields);
    for (int64_t i = 0; list && i < r->n_starts; i++) {
        if (ext_put(PyList_GetItem(list, (Py_ssize_t)i), "status",
                    PyUnicode_FromString(frg_status_name(r->starts[i].status))) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/** Where the states of a fit go: a file every so many seconds. */
typedef struct {
    frg_context *ctx;
    const char *path;
    double every, saved;
} fit_keeper;

/** A frg_gp_saver: a file when it is due, and when the fit is stopped. */
static frg_status save_fit(void *user, const frg_gp *gp, int stopped)
{
    fit_keeper *const k = user;
    if (!stopped && ext_seconds() - k->saved < k->every) {
        return FRG_OK;
    }
    frg_checkpoint *c;
    frg_status status = frg_checkpoint_create(&c, k->ctx, "gp", 0, 0);
    if (status < 0) {
        return status;
    }
    status = frg_gp_fit_save(gp, c);
    if (status >= 0) {
        status = frg_checkpoint_save(c, k->path);
    }
    frg_checkpoint_destroy(c);
    k->saved = ext_seconds();
    return status;
}

/** The fit with its states in and out; the file to go on from and the one to write may be NULL. */
static frg_status fit_kept(frg_gp *gp, const frg_gp_fit_opts *o, frg_gp_fit_result *r,
                           fit_keeper *k, const char *resume)
{
    frg_checkpoint *from = NULL;
    frg_status status = resume ? frg_checkpoint_load(&from, k->ctx, resume) : FRG_OK;
    if (status == FRG_OK && from) {
        status = frg_gp_fit_resume(gp, from);
    }
    if (status == FRG_OK) {
        frg_gp_fit_keep(gp, k->path ? save_fit : NULL, k);
        status = frg_gp_fit(gp, o, r);
        frg_gp_fit_keep(gp, NULL, NULL);
    }
    frg_checkpoint_destroy(from);
    return status;
}

/** fit(options, checkpoint, every, resume) -> dict with the trace and the starts. */
static PyObject *gp_fit(PyObject *self, PyObject *args)
{
    PyObject *options;
    frg_gp_fit_opts o;
    fit_keeper k = {.ctx = self_of(self)->context->ctx, .saved = ext_seconds()};
    const char *resume;
    frg_gp_fit_defaults(&o, sizeof o);
    if (!PyArg_ParseTuple(args, "Ozdz", &options, &k.path, &k.every, &resume) ||
        ext_options_set(&o, frg_gp_fit_options(), options) < 0) {
        return NULL;
    }
    frg_gp_fit_result r = {.status = FRG_OK};
    frg_status status;
    EXT_WORK(status = fit_kept(self_of(self)->gp, &o, &r, &k, resume));
    if (status < 0 || PyErr_Occurred()) {
        return ext_failed(self, status);
    }
    PyObject *const dict = ext_fields_get(&r, fit_fields);
    if (!dict ||
        ext_put(dict, "trace", ext_list_of(r.trace, r.n_trace, sizeof *r.trace, trace_fields)) <
            0 ||
        ext_put(dict, "starts", starts_of(&r)) < 0 ||
        ext_put(dict, "value", ext_gp_value_dict(&r.value)) < 0 ||
        ext_put(dict, "status", PyUnicode_FromString(frg_status_name(r.status))) < 0) {
        Py_XDECREF(dict);
        return NULL;
    }
    return dict;
}

/** predict(x, observed, variance_floor, mean_values, mean, variance, covariance, mean_dx,
 *  variance_dx): fills what is not None of the last five. */
static PyObject *gp_predict(PyObject *self, PyObject *args)
{
    PyObject *x, *values, *outs[5];
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    if (!PyArg_ParseTuple(args, "OpdOOOOOO", &x, &o.observed, &o.variance_floor, &values, &outs[0],
                          &outs[1], &outs[2], &outs[3], &outs[4])) {
        return NULL;
    }
    static const char *const names[] = {"mean", "variance", "covariance", "mean_dx", "variance_dx"};
    frg_array **const views[] = {&o.mean, &o.variance, &o.covariance, &o.mean_dx, &o.variance_dx};
    ext_held h = {.n = 0};
    frg_array at, arrays[5];
    frg_status status = FRG_BAD_ARG;
    int good = ext_hold(&h, x, "x", 0, &at) == 0;
    for (int k = 0; good && k < 5; k++) {
        good = ext_maybe(&h, outs[k], names[k], 1, &arrays[k], views[k]) == 0;
    }
    o.mean_values = good ? ext_values(&h, values, "mean_values", 0, FRG_F64, at.shape[0]) : NULL;
    if (good && !PyErr_Occurred()) {
        EXT_WORK(status = frg_gp_predict(self_of(self)->gp, at, &o));
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/** fantasies(x, y, at, observed, noise_variances, mean, variance): fills what is not None. */
static PyObject *gp_fantasies(PyObject *self, PyObject *args)
{
    PyObject *x, *y, *at, *noise, *mean, *variance;
    frg_gp_fantasy_opts o;
    frg_gp_fantasy_defaults(&o, sizeof o);
    if (!PyArg_ParseTuple(args, "OOOpOOO", &x, &y, &at, &o.observed, &noise, &mean, &variance)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array xa, ya, ta, ma, va;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, x, "x", 0, &xa) == 0 && ext_hold(&h, y, "y", 0, &ya) == 0 &&
        ext_hold(&h, at, "at", 0, &ta) == 0 && ext_maybe(&h, mean, "mean", 1, &ma, &o.mean) == 0 &&
        ext_maybe(&h, variance, "variance", 1, &va, &o.variance) == 0) {
        o.noise_variances = ext_values(&h, noise, "noise_variances", 0, FRG_F64,
                                       xa.shape[0] * (xa.ndim == 3 ? xa.shape[1] : 1));
        if (!PyErr_Occurred()) {
            EXT_WORK(status = frg_gp_predict_fantasies(self_of(self)->gp, xa, ya, ta, &o));
        }
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/** sample(x, prior, observed, out): out is count x m float64. */
static PyObject *gp_sample(PyObject *self, PyObject *args)
{
    PyObject *x, *out;
    int prior, observed;
    if (!PyArg_ParseTuple(args, "OppO", &x, &prior, &observed, &out)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array at, to;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, x, "x", 0, &at) == 0 && ext_hold(&h, out, "out", 1, &to) == 0) {
        EXT_WORK(status = frg_gp_sample(self_of(self)->gp, at, to.shape[0], prior, observed, to));
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/** append(x, y, noise_variances or None). */
static PyObject *gp_append(PyObject *self, PyObject *args)
{
    PyObject *x, *y, *noise;
    if (!PyArg_ParseTuple(args, "OOO", &x, &y, &noise)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array xa, ya;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, x, "x", 0, &xa) == 0 && ext_hold(&h, y, "y", 0, &ya) == 0) {
        const double *const v = ext_values(&h, noise, "noise_variances", 0, FRG_F64, xa.shape[0]);
        if (!PyErr_Occurred()) {
            EXT_WORK(status = frg_gp_update_append(self_of(self)->gp, xa, ya, v));
        }
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_failed(self, status) : Py_NewRef(Py_None);
}

static PyObject *gp_remove(PyObject *self, PyObject *args)
{
    long long i;
    if (!PyArg_ParseTuple(args, "L", &i)) {
        return NULL;
    }
    frg_status status;
    EXT_WORK(status = frg_gp_update_remove(self_of(self)->gp, i));
    return ext_has_failed(status) ? ext_failed(self, status) : Py_NewRef(Py_None);
}

static PyObject *gp_update_y(PyObject *self, PyObject *args)
{
    PyObject *y;
    if (!PyArg_ParseTuple(args, "O", &y)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array ya;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, y, "y", 0, &ya) == 0) {
        EXT_WORK(status = frg_gp_update_y(self_of(self)->gp, ya));
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/** update_noise(i, variance). */
static PyObject *gp_update_noise(PyObject *self, PyObject *args)
{
    long long i;
    double variance;
    if (!PyArg_ParseTuple(args, "Ld", &i, &variance)) {
        return NULL;
    }
    frg_status status;
    EXT_WORK(status = frg_gp_update_noise(self_of(self)->gp, i, variance));
    return ext_has_failed(status) ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/* ---- the dense core -------------------------------------------------------------------------- */

/** invquad_logdet(context, k, r, inv_quad, logdet, a, inverse): fills; a and inverse may be
 *  None. */
static PyObject *invquad_logdet(PyObject *module, PyObject *args)
{
    PyObject *context, *k, *r, *inv_quad, *logdet, *a, *inverse;
    ext_context *c;
    if (!PyArg_ParseTuple(args, "OOOOOOO", &context, &k, &r, &inv_quad, &logdet, &a, &inverse) ||
        !(c = ext_context_of(module, context))) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array ka, ra, qa, la, aa, ia, *to_a, *to_inverse;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, k, "k", 0, &ka) == 0 && ext_hold(&h, r, "r", 0, &ra) == 0 &&
        ext_hold(&h, inv_quad, "inv_quad", 1, &qa) == 0 &&
        ext_hold(&h, logdet, "logdet", 1, &la) == 0 && ext_maybe(&h, a, "a", 1, &aa, &to_a) == 0 &&
        ext_maybe(&h, inverse, "inverse", 1, &ia, &to_inverse) == 0) {
        EXT_WORK(status =
                     frg_gp_invquad_logdet(c->ctx, ka, ra, qa.data, la.data, to_a, to_inverse));
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_raise(module, status, c->ctx) : Py_NewRef(Py_None);
}

/** invquad_logdet_backward(context, inverse, a, g_inv_quad, g_logdet, dk, dr): inverse, g_* and d*
 *  may be None. */
static PyObject *invquad_logdet_backward(PyObject *module, PyObject *args)
{
    PyObject *context, *inverse, *a, *g_iq, *g_ld, *dk, *dr;
    ext_context *c;
    if (!PyArg_ParseTuple(args, "OOOOOOO", &context, &inverse, &a, &g_iq, &g_ld, &dk, &dr) ||
        !(c = ext_context_of(module, context))) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array ia, aa, qa, la, ka, ra, *from, *q, *l, *to_k, *to_r;
    frg_status status = FRG_BAD_ARG;
    if (ext_maybe(&h, inverse, "inverse", 0, &ia, &from) == 0 &&
        ext_hold(&h, a, "a", 0, &aa) == 0 && ext_maybe(&h, g_iq, "g_inv_quad", 0, &qa, &q) == 0 &&
        ext_maybe(&h, g_ld, "g_logdet", 0, &la, &l) == 0 &&
        ext_maybe(&h, dk, "dk", 1, &ka, &to_k) == 0 &&
        ext_maybe(&h, dr, "dr", 1, &ra, &to_r) == 0) {
        EXT_WORK(status = frg_gp_invquad_logdet_backward(c->ctx, from, aa, q ? q->data : NULL,
                                                         l ? l->data : NULL, to_k, to_r));
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_raise(module, status, c->ctx) : Py_NewRef(Py_None);
}

/* ---- with the context to themselves ---------------------------------------------------------- */

EXT_FUNCTION(invquad_logdet)
EXT_FUNCTION(invquad_logdet_backward)
EXT_FUNCTION(gp_load)
EXT_METHOD(gp_save)
EXT_METHOD(gp_parameters)
EXT_METHOD(gp_update)
EXT_METHOD(gp_set)
EXT_METHOD(gp_fix)
EXT_METHOD(gp_tie)
EXT_METHOD(gp_report)
EXT_METHOD(gp_value)
EXT_METHOD(gp_gradient)
EXT_METHOD(gp_step)
EXT_METHOD(gp_information)
EXT_METHOD(gp_loo)
EXT_METHOD(gp_folds)
EXT_METHOD(gp_loo_latent)
EXT_METHOD(gp_fit)
EXT_METHOD(gp_predict)
EXT_METHOD(gp_fantasies)
EXT_METHOD(gp_sample)
EXT_METHOD(gp_append)
EXT_METHOD(gp_remove)
EXT_METHOD(gp_update_y)
EXT_METHOD(gp_update_noise)
EXT_NEW(gp_new)
EXT_FREE(gp_free)

PyMethodDef ext_gp_functions[] = {
    {"invquad_logdet", invquad_logdet_alone, METH_VARARGS,
     "invquad_logdet(context, k, r, inv_quad, logdet, a, inverse)"},
    {"invquad_logdet_backward", invquad_logdet_backward_alone, METH_VARARGS,
     "invquad_logdet_backward(context, inverse, a, g_inv_quad, g_logdet, dk, dr)"},
    {NULL, NULL, 0, NULL},
};

int ext_types_gp(PyObject *module)
{
    static PyMethodDef members[] = {
        {"load", gp_load_alone, METH_VARARGS | METH_CLASS, "load(context, path)"},
        {"save", gp_save_alone, METH_VARARGS, "save(path)"},
        {"parameters", gp_parameters_alone, METH_NOARGS, "One dict a parameter."},
        {"update", gp_update_alone, METH_VARARGS, "update(theta)"},
        {"set", gp_set_alone, METH_VARARGS, "set(changes)"},
        {"fix", gp_fix_alone, METH_VARARGS, "fix(i, fixed)"},
        {"tie", gp_tie_alone, METH_VARARGS, "tie(i, to)"},
        {"report", gp_report_alone, METH_NOARGS, "What the process is."},
        {"value", gp_value_alone, METH_NOARGS, "The log likelihood with its certificates."},
        {"gradient", gp_gradient_alone, METH_VARARGS, "gradient(out, x, y) -> value"},
        {"step", gp_step_alone, METH_VARARGS, "step(y, theta, gradient, dx, dy) -> log likelihood"},
        {"information", gp_information_alone, METH_VARARGS, "information(out)"},
        {"loo", gp_loo_alone, METH_VARARGS, "loo(mean, variance, gradient) -> (log_density, rmse)"},
        {"folds", gp_folds_alone, METH_VARARGS,
         "folds(codes, mean, variance, gradient) -> (log_density, rmse)"},
        {"loo_latent", gp_loo_latent_alone, METH_VARARGS, "loo_latent(variance)"},
        {"fit", gp_fit_alone, METH_VARARGS, "fit(options, checkpoint, every, resume) -> report"},
        {"predict", gp_predict_alone, METH_VARARGS,
         "predict(x, observed, variance_floor, mean_values, mean, variance, covariance, mean_dx, "
         "variance_dx)"},
        {"fantasies", gp_fantasies_alone, METH_VARARGS,
         "fantasies(x, y, at, observed, noise_variances, mean, variance)"},
        {"sample", gp_sample_alone, METH_VARARGS, "sample(x, prior, observed, out)"},
        {"append", gp_append_alone, METH_VARARGS, "append(x, y, noise_variances)"},
        {"remove", gp_remove_alone, METH_VARARGS, "remove(i)"},
        {"update_y", gp_update_y_alone, METH_VARARGS, "update_y(y)"},
        {"update_noise", gp_update_noise_alone, METH_VARARGS, "update_noise(i, variance)"},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_new, gp_new_alone},
        {Py_tp_dealloc, gp_free_alone},
        {Py_tp_traverse, ext_visit},
        {Py_tp_methods, members},
        {Py_tp_doc, "A Gaussian process with its data; use fourge.gp.GP."},
        {0, NULL}};
    static PyType_Spec spec = {"fourge._fourge.Gp", sizeof(ext_gp), 0, EXT_TYPE, slots};
    ext_state *const s = ext_state_of(module);
    s->gp_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return s->gp_type ? PyModule_AddObjectRef(module, "Gp", s->gp_type) : -1;
}
