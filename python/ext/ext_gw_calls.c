/* ext_gw_calls.c - the functions of the Gromov-Wasserstein room: energies, bounds, gradients,
 * barycenters, embeddings. */
#include "fourge/gw.h"

#include "ext.h"

#define AT(type, field) #field, offsetof(type, field)

EXT_UNSET(embed)
EXT_UNSET(barycenter)

const ext_options ext_gw_calls_takes[] = {
    EXT_TABLE(embed),
    EXT_TABLE(barycenter),
    {NULL, NULL, NULL, 0, NULL},
};

static const ext_field barycenter_report[] = {
    {AT(frg_barycenter_report, iterations), IS_INT64, NULL},
    {AT(frg_barycenter_report, change), IS_DOUBLE, NULL},
    {AT(frg_barycenter_report, energy), IS_DOUBLE, NULL},
    {AT(frg_barycenter_report, converged), IS_BOOL, NULL},
    {AT(frg_barycenter_report, inner_iterations), IS_INT64, NULL},
    {AT(frg_barycenter_report, rounding_floor), IS_DOUBLE, NULL},
    {NULL, 0, IS_INT, NULL}};

static const ext_field emd_report[] = {{AT(frg_emd_report, cost), IS_DOUBLE, NULL},
                                       {AT(frg_emd_report, entries), IS_INT64, NULL},
                                       {AT(frg_emd_report, optimal), IS_BOOL, NULL},
                                       {NULL, 0, IS_INT, NULL}};

/** gw_lower_bound(context, c, a, d, b) -> bound of E; a and b may be None. */
static PyObject *lower_bound(PyObject *module, PyObject *args)
{
    PyObject *context, *c, *a, *d, *b;
    ext_context *ctx;
    if (!PyArg_ParseTuple(args, "OOOOO", &context, &c, &a, &d, &b) ||
        !(ctx = ext_context_of(module, context))) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array ca, da;
    double bound = 0;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, c, "c", 0, &ca) == 0 && ext_hold(&h, d, "d", 0, &da) == 0) {
        const double *const wa = ext_values(&h, a, "a", 0, FRG_F64, ca.shape[0]);
        const double *const wb =
            PyErr_Occurred() ? NULL : ext_values(&h, b, "b", 0, FRG_F64, da.shape[0]);
        if (!PyErr_Occurred()) {
            EXT_WORK(status = frg_gw_lower_bound(ctx->ctx, ca, wa, da, wb, &bound));
        }
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_raise(module, status, ctx->ctx) : PyFloat_FromDouble(bound);
}

/** The buffers of a list of arrays, as many as it has. */
typedef struct {
    Py_ssize_t n;
    Py_buffer *buffers; /* two a space: distances, weights */
    frg_array *spaces;
    const double **weights;
} held_spaces;

static void release_spaces(held_spaces *s)
{
    for (Py_ssize_t k = 0; s->buffers && k < 2 * s->n; k++) {
        if (s->buffers[k].obj) {
            PyBuffer_Release(&s->buffers[k]);
        }
    }
    PyMem_Free(s->buffers);
    PyMem_Free(s->spaces);
    PyMem_Free(s->weights);
}

/** spaces: a list of arrays; weights: a list of float64 arrays or None of the same length. */
static int hold_spaces(held_spaces *s, PyObject *spaces, PyObject *weights)
{
    s->n = PyList_Size(spaces);
    s->buffers = PyMem_Calloc(2 * (size_t)s->n + 1, sizeof *s->buffers);
    s->spaces = PyMem_Calloc((size_t)s->n + 1, sizeof *s->spaces);
    s->weights = PyMem_Calloc((size_t)s->n + 1, sizeof *s->weights);
    if (!s->buffers || !s->spaces || !s->weights) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t k = 0; k < s->n; k++) {
        PyObject *const given = PyList_GetItem(weights, k);
        frg_array view;
        if (!given || ext_array(PyList_GetItem(spaces, k), "spaces", 0, &s->buffers[2 * k],
                                &s->spaces[k]) < 0) {
            return -1;
        }
        if (given != Py_None) {
            if (ext_array(given, "weights", 0, &s->buffers[2 * k + 1], &view) < 0) {
                return -1;
            }
            if (view.dtype != FRG_F64 || view.ndim != 1 || view.shape[0] != s->spaces[k].shape[0]) {
                PyErr_Format(PyExc_ValueError, "weights[%zd]: expected %lld of float64", k,
                             (long long)s->spaces[k].shape[0]);
                return -1;
            }
            s->weights[k] = view.data;
        }
    }
    return 0;
}

/** gw_barycenter(context, spaces, weights, shares, p, start, options, out) -> report. */
static PyObject *barycenter(PyObject *module, PyObject *args)
{
    PyObject *context, *spaces, *weights, *shares, *p, *start, *options, *out;
    ext_context *ctx;
    frg_barycenter_opts o;
    frg_barycenter_defaults(&o, sizeof o);
    if (!PyArg_ParseTuple(args, "OO!O!OOOOO", &context, &PyList_Type, &spaces, &PyList_Type,
                          &weights, &shares, &p, &start, &options, &out) ||
        !(ctx = ext_context_of(module, context)) ||
        ext_options_set(&o, frg_barycenter_options(), options) < 0) {
        return NULL;
    }
    held_spaces s = {.n = 0};
    ext_held h = {.n = 0};
    frg_array to, from, *from_or_null;
    frg_barycenter_report r = {.iterations = 0};
    frg_status status = FRG_BAD_ARG;
    if (hold_spaces(&s, spaces, weights) == 0 && ext_hold(&h, out, "out", 1, &to) == 0 &&
        ext_maybe(&h, start, "start", 0, &from, &from_or_null) == 0) {
        const double *const each = ext_values(&h, shares, "shares", 0, FRG_F64, s.n);
        const double *const mine =
            PyErr_Occurred() ? NULL : ext_values(&h, p, "p", 0, FRG_F64, to.shape[0]);
        if (!PyErr_Occurred()) {
            EXT_WORK(status = frg_gw_barycenter(ctx->ctx, s.spaces, s.weights, each, s.n, mine,
                                                from_or_null, &o, to, &r));
        }
    }
    ext_release(&h);
    release_spaces(&s);
    return status < 0 || (ext_has_failed(status) && r.iterations == 0) || PyErr_Occurred()
               ? ext_raise(module, status, ctx->ctx)
               : ext_fields_get(&r, barycenter_report);
}

/** gw_landmark_bounds(z, w) -> (lower, upper): float32 distances of two nodes to the same
 *  landmarks. */
static PyObject *landmark_bounds(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *z, *w;
    if (!PyArg_ParseTuple(args, "OO", &z, &w)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array view;
    float lower = 0, upper = 0;
    if (ext_hold(&h, z, "z", 0, &view) == 0) {
        const int64_t n = view.ndim == 1 ? view.shape[0] : -1;
        const float *const from = ext_values(&h, z, "z", 0, FRG_F32, n);
        const float *const to = from ? ext_values(&h, w, "w", 0, FRG_F32, n) : NULL;
        if (from && to) {
            frg_landmark_bounds(from, to, n, &lower, &upper);
        }
    }
    ext_release(&h);
    return PyErr_Occurred() ? NULL : Py_BuildValue("dd", (double)lower, (double)upper);
}

/** gw_energy(context, c, d, plan) -> E. */
static PyObject *energy(PyObject *module, PyObject *args)
{
    PyObject *context, *c, *d, *plan;
    ext_context *ctx;
    if (!PyArg_ParseTuple(args, "OOOO", &context, &c, &d, &plan) ||
        !(ctx = ext_context_of(module, context))) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array ca, da, pa;
    double e = 0;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, c, "c", 0, &ca) == 0 && ext_hold(&h, d, "d", 0, &da) == 0 &&
        ext_hold(&h, plan, "plan", 0, &pa) == 0) {
        EXT_WORK(status = frg_gw_energy(ctx->ctx, ca, da, pa, &e));
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_raise(module, status, ctx->ctx) : PyFloat_FromDouble(e);
}

/** emd(context, cost, a, b, plan, f, g) -> {cost, entries, optimal}: fills the last three; a and b
 *  may be None. */
static PyObject *emd(PyObject *module, PyObject *args)
{
    PyObject *context, *cost, *a, *b, *plan, *f, *g;
    ext_context *ctx;
    if (!PyArg_ParseTuple(args, "OOOOOOO", &context, &cost, &a, &b, &plan, &f, &g) ||
        !(ctx = ext_context_of(module, context))) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array from, to;
    frg_emd_report r = {0};
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, cost, "cost", 0, &from) == 0 && ext_hold(&h, plan, "plan", 1, &to) == 0) {
        const int64_t n = from.shape[0], m = from.ndim > 1 ? from.shape[1] : 1;
        const double *const wa = ext_values(&h, a, "a", 0, FRG_F64, n);
        const double *const wb = PyErr_Occurred() ? NULL : ext_values(&h, b, "b", 0, FRG_F64, m);
        double *const to_f = PyErr_Occurred() ? NULL : ext_values(&h, f, "f", 1, FRG_F64, n);
        double *const to_g = PyErr_Occurred() ? NULL : ext_values(&h, g, "g", 1, FRG_F64, m);
        if (!PyErr_Occurred()) {
            EXT_WORK(status = frg_emd(ctx->ctx, from, wa, wb, to, to_f, to_g, &r));
        }
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_raise(module, status, ctx->ctx)
                                  : ext_fields_get(&r, emd_report);
}

/** gw_gradient(context, c, d, plan, linear, linear_weight, epsilon, dc, dd, dlinear, da, db):
 *  linear may be None; the last five are filled where they are not. */
static PyObject *gradient(PyObject *module, PyObject *args)
{
    PyObject *context, *c, *d, *plan, *linear, *dc, *dd, *dlinear, *da, *db;
    ext_context *ctx;
    frg_gw_point at = {.linear = NULL};
    if (!PyArg_ParseTuple(args, "OOOOOddOOOOO", &context, &c, &d, &plan, &linear, &at.linear_weight,
                          &at.epsilon, &dc, &dd, &dlinear, &da, &db) ||
        !(ctx = ext_context_of(module, context))) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array from_linear, to_c, to_d, to_linear, *linear_or_null, *c_or_null, *d_or_null,
        *m_or_null;
    frg_gw_gradients out = {.a = NULL};
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, c, "c", 0, &at.c) == 0 && ext_hold(&h, d, "d", 0, &at.d) == 0 &&
        ext_hold(&h, plan, "plan", 0, &at.plan) == 0 &&
        ext_maybe(&h, linear, "linear", 0, &from_linear, &linear_or_null) == 0 &&
        ext_maybe(&h, dc, "dc", 1, &to_c, &c_or_null) == 0 &&
        ext_maybe(&h, dd, "dd", 1, &to_d, &d_or_null) == 0 &&
        ext_maybe(&h, dlinear, "dlinear", 1, &to_linear, &m_or_null) == 0) {
        at.linear = linear_or_null;
        out.c = c_or_null;
        out.d = d_or_null;
        out.linear = m_or_null;
        out.a = ext_values(&h, da, "da", 1, FRG_F64, at.plan.shape[0]);
        out.b = PyErr_Occurred() ? NULL : ext_values(&h, db, "db", 1, FRG_F64, at.plan.shape[1]);
        if (!PyErr_Occurred()) {
            EXT_WORK(status = frg_gw_gradient(ctx->ctx, &at, &out));
        }
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_raise(module, status, ctx->ctx) : Py_NewRef(Py_None);
}

/** (Graph, Gw, out) as a query of the embedding. */
static int read_query(PyObject *module, PyObject *tuple, Py_buffer *buffer, frg_embed_query *q)
{
    PyObject *graph, *solver, *out;
    if (!PyArg_ParseTuple(tuple, "OOO", &graph, &solver, &out) ||
        !(q->graph = ext_graph_of(module, graph))) {
        return -1;
    }
    if (!PyObject_TypeCheck(solver, (PyTypeObject *)ext_state_of(module)->gw_type)) {
        PyErr_SetString(PyExc_TypeError, "expected an alignment");
        return -1;
    }
    q->plan = ext_gw_plan(solver);
    return q->plan ? ext_array(out, "out", 1, buffer, &q->out) : -1;
}

/** gw_embed(context, anchor, anchor_out, queries, options) -> columns that were filled. */
static PyObject *embed(PyObject *module, PyObject *args)
{
    PyObject *context, *anchor, *anchor_out, *list, *options;
    ext_context *ctx;
    frg_embed_opts o;
    frg_embed_defaults(&o, sizeof o);
    if (!PyArg_ParseTuple(args, "OOOO!O", &context, &anchor, &anchor_out, &PyList_Type, &list,
                          &options) ||
        !(ctx = ext_context_of(module, context)) ||
        ext_options_set(&o, frg_embed_options(), options) < 0) {
        return NULL;
    }
    const frg_graph *const graph = ext_graph_of(module, anchor);
    const Py_ssize_t n = PyList_Size(list);
    frg_embed_query *const queries = PyMem_Malloc(sizeof *queries * (size_t)(n + 1));
    Py_buffer *const buffers = PyMem_Malloc(sizeof *buffers * (size_t)(n + 1));
    ext_held h = {.n = 0};
    frg_array to;
    Py_ssize_t held = 0;
    int64_t found = 0;
    frg_status status = FRG_BAD_ARG;
    int good = graph && queries && buffers && ext_hold(&h, anchor_out, "anchor_out", 1, &to) == 0;
    for (; good && held < n; held += good) {
        good = read_query(module, PyList_GetItem(list, held), &buffers[held], &queries[held]) == 0;
    }
    if (good) {
        EXT_WORK(status = frg_gw_embed(ctx->ctx, graph, to, queries, n, &o, &found));
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    while (held > 0) {
        PyBuffer_Release(&buffers[--held]);
    }
    ext_release(&h);
    PyMem_Free(buffers);
    PyMem_Free(queries);
    return ext_has_failed(status) ? ext_raise(module, status, ctx->ctx)
                                  : PyLong_FromLongLong(found);
}

/* ---- with the context to themselves ---------------------------------------------------------- */

EXT_FUNCTION(embed)
EXT_FUNCTION(gradient)
EXT_FUNCTION(lower_bound)
EXT_FUNCTION(barycenter)
EXT_FUNCTION(energy)
EXT_FUNCTION(emd)

PyMethodDef ext_gw_functions[] = {
    {"gw_embed", embed_alone, METH_VARARGS,
     "gw_embed(context, anchor, anchor_out, queries, options) -> columns"},
    {"gw_gradient", gradient_alone, METH_VARARGS,
     "gw_gradient(context, c, d, plan, linear, linear_weight, epsilon, dc, dd, dlinear, da, db)"},
    {"gw_lower_bound", lower_bound_alone, METH_VARARGS,
     "gw_lower_bound(context, c, a, d, b) -> bound"},
    {"gw_barycenter", barycenter_alone, METH_VARARGS,
     "gw_barycenter(context, spaces, weights, shares, p, start, options, out) -> report"},
    {"gw_landmark_bounds", landmark_bounds, METH_VARARGS,
     "gw_landmark_bounds(z, w) -> (lower, upper)"},
    {"emd", emd_alone, METH_VARARGS, "emd(context, cost, a, b, plan, f, g) -> report"},
    {"gw_energy", energy_alone, METH_VARARGS, "gw_energy(context, c, d, plan) -> energy"},
    {NULL, NULL, 0, NULL},
};
