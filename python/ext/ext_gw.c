/* ext_gw.c - the Gromov-Wasserstein room: Sinkhorn, alignments, and what is made of their plans.
 *
 * A solver of either kind owns a plan that is never stored; both types share the methods that read
 * it. */
#include <math.h>
#include <string.h>

#include "fourge/checkpoint.h"
#include "fourge/gw.h"

#include "ext.h"

#define AT(type, field) #field, offsetof(type, field)

static const char dtypes[] = "auto|f32|f64";
static const char modes[] = "auto|sampled|exact|landmark|vertex";
static const char started_from[] =
    "auto|product|profiles|vertex|given|annealed|axes|random|coarse|spectral|near";
static const char stores[] = "auto|f32|u16|u16r|fly|f64";

static const ext_field gw_report[] = {{AT(frg_gw_report, n), IS_INT64, NULL},
                                      {AT(frg_gw_report, m), IS_INT64, NULL},
                                      {AT(frg_gw_report, mode), IS_CHOICE, modes},
                                      {AT(frg_gw_report, energy), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, energy_standard_error), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, objective), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, lower_bound), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, epsilon_end), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, outer_iterations), IS_INT64, NULL},
                                      {AT(frg_gw_report, inner_iterations), IS_INT64, NULL},
                                      {AT(frg_gw_report, coarse_iterations), IS_INT64, NULL},
                                      {AT(frg_gw_report, multiscale), IS_BOOL, NULL},
                                      {AT(frg_gw_report, components_source), IS_INT64, NULL},
                                      {AT(frg_gw_report, components_target), IS_INT64, NULL},
                                      {AT(frg_gw_report, graph_seconds), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, distances_seconds), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, build_seconds), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, inner_seconds), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, sample_seconds), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, polish_seconds), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, total_seconds), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, truncated_ages), IS_INT64, NULL},
                                      {AT(frg_gw_report, anchors), IS_INT64, NULL},
                                      {AT(frg_gw_report, starts), IS_INT64, NULL},
                                      {AT(frg_gw_report, cost_store), IS_CHOICE, stores},
                                      {AT(frg_gw_report, started_from), IS_CHOICE, started_from},
                                      {AT(frg_gw_report, energy_product), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, vertex_energy), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, sharpened_energy), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, blur), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, other_energy), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, next_energy), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, starts_agree), IS_INT64, NULL},
                                      {AT(frg_gw_report, vertex), IS_BOOL, NULL},
                                      {AT(frg_gw_report, symmetric), IS_BOOL, NULL},
                                      {AT(frg_gw_report, rounding_floor), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, dtype), IS_CHOICE, dtypes},
                                      {AT(frg_gw_report, verdict_points), IS_INT64, NULL},
                                      {AT(frg_gw_report, step_gain), IS_DOUBLE, NULL},
                                      {AT(frg_gw_report, device_launches), IS_INT64, NULL},
                                      {AT(frg_gw_report, device_waits), IS_INT64, NULL},
                                      {AT(frg_gw_report, device_bytes_in), IS_INT64, NULL},
                                      {AT(frg_gw_report, device_bytes_out), IS_INT64, NULL},
                                      {AT(frg_gw_report, host_steps), IS_HOST_STEPS, NULL},
                                      {NULL, 0, IS_INT, NULL}};

EXT_UNSET(gw)
EXT_UNSET(sinkhorn)

const ext_options ext_gw_takes[] = {
    EXT_TABLE(gw),
    EXT_TABLE(sinkhorn),
    {NULL, NULL, NULL, 0, NULL},
};

static const ext_field sinkhorn_report[] = {
    {AT(frg_sinkhorn_report, iterations), IS_INT64, NULL},
    {AT(frg_sinkhorn_report, cost), IS_DOUBLE, NULL},
    {AT(frg_sinkhorn_report, objective), IS_DOUBLE, NULL},
    {AT(frg_sinkhorn_report, build_seconds), IS_DOUBLE, NULL},
    {AT(frg_sinkhorn_report, inner_seconds), IS_DOUBLE, NULL},
    {AT(frg_sinkhorn_report, polish_seconds), IS_DOUBLE, NULL},
    {AT(frg_sinkhorn_report, total_seconds), IS_DOUBLE, NULL},
    {AT(frg_sinkhorn_report, bytes_read), IS_DOUBLE, NULL},
    {AT(frg_sinkhorn_report, host_steps), IS_HOST_STEPS, NULL},
    {AT(frg_sinkhorn_report, converged), IS_BOOL, NULL},
    {AT(frg_sinkhorn_report, cost_store), IS_CHOICE, stores},
    {AT(frg_sinkhorn_report, rounding_floor), IS_DOUBLE, NULL},
    {AT(frg_sinkhorn_report, device_launches), IS_INT64, NULL},
    {AT(frg_sinkhorn_report, device_waits), IS_INT64, NULL},
    {AT(frg_sinkhorn_report, device_bytes_in), IS_INT64, NULL},
    {AT(frg_sinkhorn_report, device_bytes_out), IS_INT64, NULL},
    {NULL, 0, IS_INT, NULL}};

static const ext_field plan_report[] = {{AT(frg_plan_report, n), IS_INT64, NULL},
                                        {AT(frg_plan_report, m), IS_INT64, NULL},
                                        {AT(frg_plan_report, mass), IS_DOUBLE, NULL},
                                        {AT(frg_plan_report, source_error), IS_DOUBLE, NULL},
                                        {AT(frg_plan_report, target_error), IS_DOUBLE, NULL},
                                        {AT(frg_plan_report, source_error_max), IS_DOUBLE, NULL},
                                        {AT(frg_plan_report, target_error_max), IS_DOUBLE, NULL},
                                        {AT(frg_plan_report, source_before), IS_DOUBLE, NULL},
                                        {AT(frg_plan_report, target_before), IS_DOUBLE, NULL},
                                        {AT(frg_plan_report, rounded), IS_BOOL, NULL},
                                        {NULL, 0, IS_INT, NULL}};

/** How a derivative goes through a plan: "implicit", "unrolled" or "frozen". */
typedef struct {
    frg_gw_grad_mode grad_mode;
} pull_opts;
static const char grad_modes[] = "implicit|unrolled|frozen";
static const ext_field pull_options[] = {{AT(pull_opts, grad_mode), IS_CHOICE, grad_modes},
                                         {NULL, 0, IS_INT, NULL}};

/** An alignment or a Sinkhorn solver: one of the two is not NULL. */
typedef struct {
    EXT_HEAD
    frg_gw *gw;
    frg_sinkhorn *sinkhorn;
    PyObject *held;       /* what the solver points to */
    int64_t n, m;         /* the plan's shape */
    double epsilon;       /* of a Sinkhorn solver */
    char *kept;           /* the file that states go to, or NULL */
    double every, saved;  /* seconds between them; when the last was written */
    frg_checkpoint *from; /* the state that the run goes on from, or NULL */
} ext_gw;

static ext_gw *self_of(PyObject *self)
{
    return (ext_gw *)self;
}

static void gw_free(PyObject *self)
{
    ext_gw *const s = self_of(self);
    frg_gw_destroy(s->gw);
    frg_checkpoint_destroy(s->from);
    PyMem_Free(s->kept);
    frg_sinkhorn_destroy(s->sinkhorn);
    Py_XDECREF(s->held);
    ext_drop(self);
}

static int gw_visit(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(self_of(self)->held);
    return ext_visit(self, visit, arg);
}

/** The object, or NULL with the exception where the status or an exception says so. */
static PyObject *made(ext_gw *s, PyObject *module, ext_context *c, frg_status status)
{
    if (status < 0 || PyErr_Occurred() || !(s->gw || s->sinkhorn)) {
        ext_raise(module, status, c->ctx);
        Py_XDECREF((PyObject *)s);
        return NULL;
    }
    return (PyObject *)s;
}

const frg_plan *ext_gw_plan(PyObject *self)
{
    const ext_gw *const s = self_of(self);
    const frg_plan *const p = s->gw ? frg_gw_plan(s->gw) : frg_sinkhorn_plan(s->sinkhorn);
    if (!p) {
        PyErr_SetString(PyExc_ValueError, "there is no plan before the run");
    }
    return p;
}

/* ---- solvers --------------------------------------------------------------------------------- */

/** Sinkhorn(context, cost, a, b, options): the cost is held. */
static PyObject *sinkhorn_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *const module = PyType_GetModule(type), *context, *cost, *a, *b, *options;
    ext_context *c;
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    if (!module || !PyArg_ParseTuple(args, "OOOOO", &context, &cost, &a, &b, &options) ||
        !(c = ext_context_of(module, context)) ||
        ext_options_set(&o, frg_sinkhorn_options(), options) < 0) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array view, of_a, of_b, *to_a, *to_b;
    ext_gw *s = NULL;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, cost, "cost", 0, &view) == 0 && ext_maybe(&h, a, "a", 0, &of_a, &to_a) == 0 &&
        ext_maybe(&h, b, "b", 0, &of_b, &to_b) == 0 && (s = ext_empty(type, c)) &&
        (s->held = PyTuple_Check(cost) ? Py_NewRef(cost) : PyMemoryView_FromObject(cost))) {
        s->n = view.shape[0];
        s->m = view.ndim == 2 ? view.shape[1] : 0;
        s->epsilon = o.epsilon;
        EXT_WORK(status = frg_sinkhorn_create_arrays(&s->sinkhorn, c->ctx, view, to_a, to_b, &o));
    }
    ext_release(&h);
    return made(s, module, c, status);
}

/** One side of an alignment: an array, or a Graph. */
static int read_side(ext_held *h, PyObject *module, PyObject *object, PyObject *weights,
                     const char *name, frg_array *view, frg_gw_side *out, int64_t *n)
{
    *out = (frg_gw_side){.data = NULL};
    if (PyObject_TypeCheck(object, (PyTypeObject *)ext_state_of(module)->graph_type)) {
        out->graph = ext_graph_of(module, object);
        *n = frg_graph_get(out->graph).n;
    } else {
        if (ext_hold(h, object, name, 0, view) < 0) {
            return -1;
        }
        out->data = view;
        *n = view->ndim > 0 ? view->shape[0] : 0;
    }
    out->weights = ext_values(h, weights, "weights", 0, FRG_F64, *n);
    return PyErr_Occurred() ? -1 : 0;
}

/** Options that are named are given, at whatever value. */
static void give_options(frg_gw_opts *o, PyObject *options)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (options != Py_None && PyDict_Next(options, &at, &key, &value)) {
        const char *const name = PyUnicode_AsUTF8AndSize(key, NULL);
        if (name) {
            frg_gw_give(o, name);
        }
    }
}

/** Gw(context, x, y, a, b, linear, options): x and y are arrays or graphs, which are held. */
static PyObject *gw_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *const module = PyType_GetModule(type), *context, *x, *y, *a, *b, *linear, *options;
    ext_context *c;
    if (!module ||
        !PyArg_ParseTuple(args, "OOOOOOO", &context, &x, &y, &a, &b, &linear, &options) ||
        !(c = ext_context_of(module, context))) {
        return NULL;
    }
    frg_gw_opts o, named;
    frg_gw_defaults(&named, sizeof named);
    o = named;
    if (ext_options_set(&named, frg_gw_options(), options) < 0) {
        return NULL;
    }
    frg_gw_apply_preset(&o, named.preset); /* what is named stands above the preset */
    if (ext_options_set(&o, frg_gw_options(), options) < 0) {
        return NULL;
    }
    give_options(&o, options);
    o.preset = FRG_GW_PRESET_NONE; /* it would be taken once more, above what is named */
    ext_held h = {.n = 0};
    frg_array xa, ya, la, *to_linear;
    frg_gw_side from, to;
    ext_gw *s = NULL;
    frg_status status = FRG_BAD_ARG;
    int64_t n, m;
    if (read_side(&h, module, x, a, "source", &xa, &from, &n) == 0 &&
        read_side(&h, module, y, b, "target", &ya, &to, &m) == 0 &&
        ext_maybe(&h, linear, "linear cost", 0, &la, &to_linear) == 0 && (s = ext_empty(type, c)) &&
        (s->held = PyTuple_Pack(2, x, y))) {
        s->n = n;
        s->m = m;
        s->others[0] = from.graph ? ((ext_object *)x)->context : NULL;
        s->others[1] = to.graph ? ((ext_object *)y)->context : NULL;
        EXT_WORK(status = frg_gw_create(&s->gw, c->ctx, from, to, to_linear, &o));
    }
    ext_release(&h);
    return made(s, module, c, status);
}

/** start_potentials(f, g), of float64: where the passes of the first step begin; either may be
 *  None. */
static PyObject *gw_start_potentials(PyObject *self, PyObject *args)
{
    PyObject *f, *g;
    if (!PyArg_ParseTuple(args, "OO", &f, &g)) {
        return NULL;
    }
    ext_gw *const s = self_of(self);
    ext_held h = {.n = 0};
    const double *const from = ext_values(&h, f, "f", 0, FRG_F64, s->n);
    const double *const to = PyErr_Occurred() ? NULL : ext_values(&h, g, "g", 0, FRG_F64, s->m);
    const frg_status status =
        PyErr_Occurred() ? FRG_BAD_ARG : frg_gw_start_potentials(s->gw, from, to);
    ext_release(&h);
    return ext_answer(self, status);
}

/** start(f, g): where the next run of a Sinkhorn solver begins, vectors in host memory or on the
 *  device; either may be None. */
static PyObject *sinkhorn_start(PyObject *self, PyObject *args)
{
    PyObject *f, *g;
    if (!PyArg_ParseTuple(args, "OO", &f, &g)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array of_f, of_g, *from, *to;
    frg_status status = FRG_BAD_ARG;
    if (ext_maybe(&h, f, "f", 0, &of_f, &from) == 0 && ext_maybe(&h, g, "g", 0, &of_g, &to) == 0) {
        EXT_WORK(status = frg_sinkhorn_start_arrays(self_of(self)->sinkhorn, from, to));
    }
    ext_release(&h);
    return ext_answer(self, status);
}

/** start(plan). */
static PyObject *gw_start_plan(PyObject *self, PyObject *plan)
{
    ext_held h = {.n = 0};
    frg_array view;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, plan, "plan", 0, &view) == 0) {
        EXT_WORK(status = frg_gw_start_plan(self_of(self)->gw, view));
    }
    ext_release(&h);
    return ext_answer(self, status);
}

/** A frg_gw_saver: a file when it is due, and when the run is stopped. */
static frg_status save_state(void *user, const frg_gw *gw, int stopped)
{
    ext_gw *const s = user;
    const double now = ext_seconds();
    if (!stopped && now - s->saved < s->every) {
        return FRG_OK;
    }
    frg_checkpoint *c;
    frg_status status = frg_checkpoint_create(&c, s->context->ctx, "gw", 0, 0);
    if (status < 0) {
        return status;
    }
    status = frg_gw_save(gw, c);
    if (status >= 0) {
        status = frg_checkpoint_save(c, s->kept);
    }
    frg_checkpoint_destroy(c);
    s->saved = ext_seconds();
    return status;
}

/** keep(path, every): the run writes its state there every so many seconds, and when it is
 *  stopped. */
static PyObject *gw_keep(PyObject *self, PyObject *args)
{
    ext_gw *const s = self_of(self);
    const char *path;
    double every;
    if (!PyArg_ParseTuple(args, "sd", &path, &every)) {
        return NULL;
    }
    const size_t bytes = strlen(path) + 1;
    char *const copy = PyMem_Realloc(s->kept, bytes);
    if (!copy) {
        return PyErr_NoMemory();
    }
    s->kept = memcpy(copy, path, bytes);
    s->every = every;
    s->saved = ext_seconds();
    EXT_WORK(frg_gw_keep(s->gw, save_state, s));
    return Py_NewRef(Py_None);
}

/** resume(path): the run goes on from the state in a file. */
static PyObject *gw_resume(PyObject *self, PyObject *args)
{
    ext_gw *const s = self_of(self);
    const char *path;
    if (!PyArg_ParseTuple(args, "s", &path)) {
        return NULL;
    }
    frg_checkpoint *from;
    frg_status status;
    EXT_WORK(status = frg_checkpoint_load(&from, s->context->ctx, path));
    if (status == FRG_OK) {
        EXT_WORK(status = frg_gw_resume(s->gw, from));
        frg_checkpoint_destroy(s->from);
        s->from = from; /* which the run needs */
    }
    return ext_answer(self, status);
}

/** What the report of an alignment has beyond its fields. */
static int put_alignment(PyObject *dict, const frg_gw *gw, const frg_gw_report *r)
{
    const double distance = sqrt(r->energy > 0 ? r->energy : 0);
    return ext_put(dict, "mode_reason", PyUnicode_FromString(r->mode_reason)) < 0 ||
                   ext_put(dict, "verdict", PyUnicode_FromString(r->verdict)) < 0 ||
                   ext_put(dict, "reason", PyUnicode_FromString(frg_gw_reason_name(r->reason))) <
                       0 ||
                   ext_put(dict, "rank", PyLong_FromLongLong(frg_gw_rank(gw))) < 0 ||
                   ext_put(dict, "gw_distance", PyFloat_FromDouble(distance)) < 0
               ? -1
               : 0;
}

/** The same of Sinkhorn's. */
static int put_sinkhorn(PyObject *dict, double epsilon, const frg_sinkhorn_report *r)
{
    return ext_put(dict, "epsilon", PyFloat_FromDouble(epsilon)) < 0 ||
                   ext_put(dict, "column_error", PyFloat_FromDouble(r->marginal_error)) < 0
               ? -1
               : 0;
}

/** run() -> report. */
static PyObject *solver_run(PyObject *self, PyObject *unused)
{
    (void)unused;
    ext_gw *const s = self_of(self);
    frg_status status;
    EXT_WORK(status = s->gw ? frg_gw_run(s->gw, NULL) : frg_sinkhorn_run(s->sinkhorn, NULL));
    const int has_plan = status >= 0 && (s->gw ? frg_gw_plan(s->gw) != NULL : 1);
    if (status < 0 || PyErr_Occurred() || (!has_plan && ext_has_failed(status))) {
        return ext_failed(self, status);
    }
    const frg_gw_report *const g = s->gw ? frg_gw_get(s->gw) : NULL;
    const frg_sinkhorn_report k = s->gw ? (frg_sinkhorn_report){0} : frg_sinkhorn_get(s->sinkhorn);
    PyObject *const dict = g ? ext_fields_get(g, gw_report) : ext_fields_get(&k, sinkhorn_report);
    if (!dict || ext_put(dict, "status", PyUnicode_FromString(frg_status_name(status))) < 0 ||
        (g ? put_alignment(dict, s->gw, g) : put_sinkhorn(dict, s->epsilon, &k)) < 0) {
        Py_XDECREF(dict);
        return NULL;
    }
    return dict;
}

/** potentials(f, g) of a Sinkhorn solver: fills vectors in host memory or on the device. */
static PyObject *sinkhorn_potentials(PyObject *self, PyObject *args)
{
    PyObject *f, *g;
    if (!PyArg_ParseTuple(args, "OO", &f, &g) || !ext_gw_plan(self)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array of_f, of_g;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, f, "f", 1, &of_f) == 0 && ext_hold(&h, g, "g", 1, &of_g) == 0) {
        EXT_WORK(status = frg_sinkhorn_potentials_arrays(self_of(self)->sinkhorn, &of_f, &of_g));
    }
    ext_release(&h);
    return ext_answer(self, status);
}

/** potentials(f, g) of an alignment: fills float64. */
static PyObject *gw_potentials(PyObject *self, PyObject *args)
{
    PyObject *f, *g;
    if (!PyArg_ParseTuple(args, "OO", &f, &g)) {
        return NULL;
    }
    ext_gw *const s = self_of(self);
    if (!ext_gw_plan(self)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    double *const to_f = ext_values(&h, f, "f", 1, FRG_F64, s->n);
    double *const to_g = PyErr_Occurred() ? NULL : ext_values(&h, g, "g", 1, FRG_F64, s->m);
    frg_status status = FRG_BAD_ARG;
    if (!PyErr_Occurred()) {
        EXT_WORK(status = frg_gw_potentials(s->gw, to_f, to_g));
    }
    ext_release(&h);
    return ext_answer(self, status);
}

/** distances(side, out). */
static PyObject *gw_distances(PyObject *self, PyObject *args)
{
    PyObject *out;
    int side;
    if (!PyArg_ParseTuple(args, "iO", &side, &out)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array view;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, out, "out", 1, &view) == 0) {
        EXT_WORK(status = frg_gw_distances(self_of(self)->gw, side, view));
    }
    ext_release(&h);
    return ext_answer(self, status);
}

/** factors(q, w, h): fills n rank, m rank and rank values; the rank without arguments. */
static PyObject *gw_factors(PyObject *self, PyObject *args)
{
    PyObject *q = NULL, *w = NULL, *h = NULL;
    if (!PyArg_ParseTuple(args, "|OOO", &q, &w, &h)) {
        return NULL;
    }
    ext_gw *const s = self_of(self);
    const int64_t rank = frg_gw_rank(s->gw);
    if (!h) {
        return PyLong_FromLongLong(rank);
    }
    ext_held held = {.n = 0};
    double *const to_q = ext_values(&held, q, "q", 1, FRG_F64, s->n * rank);
    double *const to_w =
        PyErr_Occurred() ? NULL : ext_values(&held, w, "w", 1, FRG_F64, s->m * rank);
    double *const to_h = PyErr_Occurred() ? NULL : ext_values(&held, h, "h", 1, FRG_F64, rank);
    const frg_status status =
        PyErr_Occurred() ? FRG_BAD_ARG : frg_gw_factors(s->gw, to_q, to_w, to_h);
    ext_release(&held);
    return ext_answer(self, status);
}

/* ---- plans ----------------------------------------------------------------------------------- */

static PyObject *plan_get(PyObject *self, PyObject *unused)
{
    (void)unused;
    const frg_plan *const p = ext_gw_plan(self);
    const frg_plan_report r = p ? frg_plan_get(p) : (frg_plan_report){0};
    return p ? ext_fields_get(&r, plan_report) : NULL;
}

/** rows(first, last, out). */
static PyObject *plan_rows(PyObject *self, PyObject *args)
{
    PyObject *out;
    long long first, last;
    const frg_plan *const p = ext_gw_plan(self);
    if (!p || !PyArg_ParseTuple(args, "LLO", &first, &last, &out)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array view;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, out, "out", 1, &view) == 0) {
        EXT_WORK(status = frg_plan_rows(p, first, last, view));
    }
    ext_release(&h);
    return ext_answer(self, status);
}

/** top(k, index, value): fills n k of int64 and float64. */
static PyObject *plan_top(PyObject *self, PyObject *args)
{
    PyObject *index, *value;
    long long k;
    const frg_plan *const p = ext_gw_plan(self);
    if (!p || !PyArg_ParseTuple(args, "LOO", &k, &index, &value)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    const int64_t n = frg_plan_get(p).n;
    int64_t *const to_index = ext_values(&h, index, "index", 1, FRG_I64, n * k);
    double *const to_value =
        PyErr_Occurred() ? NULL : ext_values(&h, value, "value", 1, FRG_F64, n * k);
    frg_status status = FRG_BAD_ARG;
    if (!PyErr_Occurred()) {
        EXT_WORK(status = frg_plan_top(p, k, to_index, to_value));
    }
    ext_release(&h);
    return ext_answer(self, status);
}

/** sparse(threshold, starts, columns, values): columns and values None fill starts alone. */
static PyObject *plan_sparse(PyObject *self, PyObject *args)
{
    PyObject *starts, *columns, *values;
    double threshold;
    const frg_plan *const p = ext_gw_plan(self);
    if (!p || !PyArg_ParseTuple(args, "dOOO", &threshold, &starts, &columns, &values)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    int64_t *const at = ext_values(&h, starts, "starts", 1, FRG_I64, frg_plan_get(p).n + 1);
    const int64_t count = at && columns != Py_None ? at[frg_plan_get(p).n] : 0;
    int32_t *const to_columns =
        PyErr_Occurred() ? NULL : ext_values(&h, columns, "columns", 1, FRG_I32, count);
    double *const to_values =
        PyErr_Occurred() ? NULL : ext_values(&h, values, "values", 1, FRG_F64, count);
    frg_status status = FRG_BAD_ARG;
    if (!PyErr_Occurred()) {
        EXT_WORK(status = frg_plan_sparse(p, threshold, at, to_columns, to_values));
    }
    ext_release(&h);
    return ext_answer(self, status);
}

/** apply(v, transposed, out). */
static PyObject *plan_apply(PyObject *self, PyObject *args)
{
    PyObject *v, *out;
    int transposed;
    const frg_plan *const p = ext_gw_plan(self);
    if (!p || !PyArg_ParseTuple(args, "OpO", &v, &transposed, &out)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array from, to;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, v, "v", 0, &from) == 0 && ext_hold(&h, out, "out", 1, &to) == 0) {
        EXT_WORK(status = frg_plan_apply(p, from, transposed, to));
    }
    ext_release(&h);
    return ext_answer(self, status);
}

/** labels(labels, count, out, share): int32 and float64. */
static PyObject *plan_labels(PyObject *self, PyObject *args)
{
    PyObject *labels, *out, *share;
    long long count;
    const frg_plan *const p = ext_gw_plan(self);
    if (!p || !PyArg_ParseTuple(args, "OLOO", &labels, &count, &out, &share)) {
        return NULL;
    }
    const frg_plan_report r = frg_plan_get(p);
    ext_held h = {.n = 0};
    const int32_t *const from = ext_values(&h, labels, "labels", 0, FRG_I32, r.m);
    int32_t *const to = PyErr_Occurred() ? NULL : ext_values(&h, out, "out", 1, FRG_I32, r.n);
    double *const shares =
        PyErr_Occurred() ? NULL : ext_values(&h, share, "share", 1, FRG_F64, r.n);
    frg_status status = FRG_BAD_ARG;
    if (!PyErr_Occurred()) {
        EXT_WORK(status = frg_plan_labels(p, from, count, to, shares));
    }
    ext_release(&h);
    return ext_answer(self, status);
}

/** vjp(g, grad_mode, out, a, b): out is filled, a and b (float64) where they are not None. */
static PyObject *plan_vjp(PyObject *self, PyObject *args)
{
    PyObject *g, *options, *out, *a, *b;
    pull_opts o = {FRG_GW_GRAD_IMPLICIT};
    const frg_plan *const p = ext_gw_plan(self);
    if (!p || !PyArg_ParseTuple(args, "OOOOO", &g, &options, &out, &a, &b) ||
        ext_fields_set(&o, pull_options, options) < 0) {
        return NULL;
    }
    const frg_plan_report r = frg_plan_get(p);
    ext_held h = {.n = 0};
    frg_array from, to;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, g, "g", 0, &from) == 0 && ext_hold(&h, out, "out", 1, &to) == 0) {
        double *const to_a = ext_values(&h, a, "a", 1, FRG_F64, r.n);
        double *const to_b = PyErr_Occurred() ? NULL : ext_values(&h, b, "b", 1, FRG_F64, r.m);
        if (!PyErr_Occurred()) {
            EXT_WORK(status = frg_plan_vjp(p, from, o.grad_mode, to, to_a, to_b));
        }
    }
    ext_release(&h);
    return ext_answer(self, status);
}

/* ---- with the context to themselves ---------------------------------------------------------- */

EXT_METHOD(solver_run)
EXT_METHOD(gw_potentials)
EXT_METHOD(sinkhorn_potentials)
EXT_METHOD(sinkhorn_start)
EXT_METHOD(plan_get)
EXT_METHOD(plan_rows)
EXT_METHOD(plan_top)
EXT_METHOD(plan_sparse)
EXT_METHOD(plan_apply)
EXT_METHOD(plan_vjp)
EXT_METHOD(plan_labels)
EXT_METHOD(gw_start_potentials)
EXT_METHOD(gw_start_plan)
EXT_METHOD(gw_keep)
EXT_METHOD(gw_resume)
EXT_METHOD(gw_distances)
EXT_METHOD(gw_factors)
EXT_NEW(sinkhorn_new)
EXT_NEW(gw_new)
EXT_FREE(gw_free)

#define PLAN_METHODS                                                                               \
    {"run", solver_run_alone, METH_NOARGS, "run() -> report"},                                     \
        {"plan", plan_get_alone, METH_NOARGS, "What the plan is."},                                \
        {"rows", plan_rows_alone, METH_VARARGS, "rows(first, last, out)"},                         \
        {"top", plan_top_alone, METH_VARARGS, "top(k, index, value)"},                             \
        {"sparse", plan_sparse_alone, METH_VARARGS, "sparse(threshold, starts, columns, values)"}, \
        {"apply", plan_apply_alone, METH_VARARGS, "apply(v, transposed, out)"},                    \
        {"vjp", plan_vjp_alone, METH_VARARGS, "vjp(g, options, out, a, b)"},                       \
    {                                                                                              \
        "labels", plan_labels_alone, METH_VARARGS, "labels(labels, count, out, share)"             \
    }

int ext_types_gw(PyObject *module)
{
    static PyMethodDef sinkhorn_members[] = {
        {"start", sinkhorn_start_alone, METH_VARARGS, "start(f, g)"},
        {"potentials", sinkhorn_potentials_alone, METH_VARARGS, "potentials(f, g)"},
        PLAN_METHODS,
        {NULL, NULL, 0, NULL}};
    static PyMethodDef gw_members[] = {
        {"start", gw_start_plan_alone, METH_O, "start(plan)"},
        {"start_potentials", gw_start_potentials_alone, METH_VARARGS, "start_potentials(f, g)"},
        {"potentials", gw_potentials_alone, METH_VARARGS, "potentials(f, g)"},
        {"keep", gw_keep_alone, METH_VARARGS, "keep(path, every)"},
        {"resume", gw_resume_alone, METH_VARARGS, "resume(path)"},
        {"distances", gw_distances_alone, METH_VARARGS, "distances(side, out)"},
        {"factors", gw_factors_alone, METH_VARARGS, "factors(q, w, h), or factors() -> rank"},
        PLAN_METHODS,
        {NULL, NULL, 0, NULL}};
    static PyType_Slot sinkhorn_slots[] = {{Py_tp_new, sinkhorn_new_alone},
                                           {Py_tp_traverse, gw_visit},
                                           {Py_tp_dealloc, gw_free_alone},
                                           {Py_tp_methods, sinkhorn_members},
                                           {Py_tp_doc, "Sinkhorn's iteration; use fourge.gw."},
                                           {0, NULL}};
    static PyType_Slot gw_slots[] = {{Py_tp_new, gw_new_alone},
                                     {Py_tp_traverse, gw_visit},
                                     {Py_tp_dealloc, gw_free_alone},
                                     {Py_tp_methods, gw_members},
                                     {Py_tp_doc, "An alignment; use fourge.gw."},
                                     {0, NULL}};
    static PyType_Spec specs[] = {
        {"fourge._fourge.Sinkhorn", sizeof(ext_gw), 0, EXT_TYPE, sinkhorn_slots},
        {"fourge._fourge.Gw", sizeof(ext_gw), 0, EXT_TYPE, gw_slots}};
    ext_state *const s = ext_state_of(module);
    s->sinkhorn_type = PyType_FromModuleAndSpec(module, &specs[0], NULL);
    s->gw_type = PyType_FromModuleAndSpec(module, &specs[1], NULL);
    return s->sinkhorn_type && s->gw_type &&
                   PyModule_AddObjectRef(module, "Sinkhorn", s->sinkhorn_type) == 0 &&
                   PyModule_AddObjectRef(module, "Gw", s->gw_type) == 0
               ? 0
               : -1;
}
