/* ext_graph.c - graphs with their shortest paths, and meshes. */
#include "fourge/gw.h"
#include "fourge/mesh.h"

#include "ext.h"

#define AT(type, field) #field, offsetof(type, field)

EXT_UNSET(graph)

const ext_options ext_graph_takes[] = {
    EXT_TABLE(graph),
    {NULL, NULL, NULL, 0, NULL},
};

static const ext_field graph_report[] = {{AT(frg_graph_report, n), IS_INT64, NULL},
                                         {AT(frg_graph_report, arcs), IS_INT64, NULL},
                                         {AT(frg_graph_report, components), IS_INT64, NULL},
                                         {AT(frg_graph_report, stitched), IS_INT64, NULL},
                                         {AT(frg_graph_report, directed), IS_BOOL, NULL},
                                         {NULL, 0, IS_INT, NULL}};

static const ext_field paths_report[] = {
    {AT(frg_paths_report, method), IS_TEXT, NULL},
    {AT(frg_paths_report, sources), IS_INT64, NULL},
    {AT(frg_paths_report, relaxations_per_arc), IS_DOUBLE, NULL},
    {AT(frg_paths_report, seconds), IS_DOUBLE, NULL},
    {NULL, 0, IS_INT, NULL}};

typedef struct {
    EXT_HEAD
    frg_graph *graph;
} ext_graph;

static ext_graph *self_of(PyObject *self)
{
    return (ext_graph *)self;
}

static void graph_free(PyObject *self)
{
    frg_graph_destroy(self_of(self)->graph);
    ext_drop(self);
}

/** The object, or NULL with the exception where the status or an exception says so. */
static PyObject *made(ext_graph *g, PyObject *module, ext_context *c, frg_status status)
{
    if (status < 0 || PyErr_Occurred() || !g->graph) {
        ext_raise(module, status, c->ctx);
        Py_XDECREF((PyObject *)g);
        return NULL;
    }
    return (PyObject *)g;
}

const frg_graph *ext_graph_of(PyObject *module, PyObject *object)
{
    if (!PyObject_TypeCheck(object, (PyTypeObject *)ext_state_of(module)->graph_type)) {
        PyErr_Format(PyExc_TypeError, "expected a Graph, got %R", (PyObject *)Py_TYPE(object));
        return NULL;
    }
    return self_of(object)->graph;
}

/** knn(context, points, options). */
static PyObject *graph_knn(PyObject *type, PyObject *args)
{
    PyObject *const module = PyType_GetModule((PyTypeObject *)type), *context, *points, *options;
    ext_context *c;
    frg_graph_opts o;
    frg_graph_defaults(&o, sizeof o);
    if (!module || !PyArg_ParseTuple(args, "OOO", &context, &points, &options) ||
        !(c = ext_context_of(module, context)) ||
        ext_options_set(&o, frg_graph_options(), options) < 0) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array x;
    ext_graph *s = NULL;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, points, "points", 0, &x) == 0 && (s = ext_empty((PyTypeObject *)type, c))) {
        EXT_WORK(status = frg_graph_knn(&s->graph, c->ctx, x, &o));
    }
    ext_release(&h);
    return made(s, module, c, status);
}

/** csr(context, starts, targets, weights or None, directed). */
static PyObject *graph_csr(PyObject *type, PyObject *args)
{
    PyObject *const module = PyType_GetModule((PyTypeObject *)type), *context, *starts, *targets,
                    *weights;
    int directed;
    ext_context *c;
    if (!module ||
        !PyArg_ParseTuple(args, "OOOOp", &context, &starts, &targets, &weights, &directed) ||
        !(c = ext_context_of(module, context))) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array a, b, w, *to_w;
    ext_graph *s = NULL;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, starts, "starts", 0, &a) == 0 &&
        ext_hold(&h, targets, "targets", 0, &b) == 0 &&
        ext_maybe(&h, weights, "weights", 0, &w, &to_w) == 0 &&
        (s = ext_empty((PyTypeObject *)type, c))) {
        EXT_WORK(status = frg_graph_csr(&s->graph, c->ctx, a, b, to_w, directed));
    }
    ext_release(&h);
    return made(s, module, c, status);
}

static PyObject *graph_get(PyObject *self, PyObject *unused)
{
    (void)unused;
    const frg_graph_report r = frg_graph_get(self_of(self)->graph);
    return ext_fields_get(&r, graph_report);
}

/** paths(sources or None, out) -> report. */
static PyObject *graph_paths(PyObject *self, PyObject *args)
{
    PyObject *sources, *out;
    if (!PyArg_ParseTuple(args, "OO", &sources, &out)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array to;
    frg_paths_report r;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, out, "out", 1, &to) == 0) {
        const int64_t *const from = ext_values(&h, sources, "sources", 0, FRG_I64, to.shape[0]);
        if (!PyErr_Occurred()) {
            EXT_WORK(status = frg_graph_paths(self_of(self)->graph, from, to.shape[0], to, &r));
        }
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_failed(self, status) : ext_fields_get(&r, paths_report);
}

static frg_status graph_of_file(frg_graph **out, frg_context *ctx, const char *path)
{
    frg_mesh *mesh;
    frg_status status = frg_mesh_read(&mesh, ctx, path);
    if (status == FRG_OK) {
        status = frg_graph_mesh(out, ctx, mesh);
        frg_mesh_destroy(mesh);
    }
    return status;
}

/** mesh(context, path): the edges of a mesh with their lengths. */
static PyObject *graph_mesh(PyObject *type, PyObject *args)
{
    PyObject *const module = PyType_GetModule((PyTypeObject *)type), *context;
    const char *path;
    ext_context *c;
    if (!module || !PyArg_ParseTuple(args, "Os", &context, &path) ||
        !(c = ext_context_of(module, context))) {
        return NULL;
    }
    ext_graph *const s = ext_empty((PyTypeObject *)type, c);
    frg_status status = FRG_BAD_ARG;
    if (s) {
        EXT_WORK(status = graph_of_file(&s->graph, c->ctx, path));
    }
    return made(s, module, c, status);
}

/** mesh_read(context, path) -> (points, ends): the bytes of n x 3 float64 and of e x 2 int32. */
static PyObject *mesh_read(PyObject *module, PyObject *args)
{
    PyObject *context;
    const char *path;
    ext_context *c;
    if (!PyArg_ParseTuple(args, "Os", &context, &path) || !(c = ext_context_of(module, context))) {
        return NULL;
    }
    frg_mesh *mesh = NULL;
    frg_status status;
    EXT_WORK(status = frg_mesh_read(&mesh, c->ctx, path));
    if (ext_has_failed(status)) {
        return ext_raise(module, status, c->ctx);
    }
    const frg_array x = frg_mesh_points(mesh);
    const int32_t *ends;
    const int64_t edges = frg_mesh_edges(mesh, &ends);
    PyObject *const out =
        Py_BuildValue("y#y#", (const char *)x.data, (Py_ssize_t)(x.shape[0] * 3 * 8),
                      edges ? (const char *)ends : "", (Py_ssize_t)(edges * 2 * 4));
    frg_mesh_destroy(mesh);
    return out;
}

/** read(context, path, directed). */
static PyObject *graph_read(PyObject *type, PyObject *args)
{
    PyObject *const module = PyType_GetModule((PyTypeObject *)type), *context;
    const char *path;
    int directed;
    ext_context *c;
    if (!module || !PyArg_ParseTuple(args, "Osp", &context, &path, &directed) ||
        !(c = ext_context_of(module, context))) {
        return NULL;
    }
    ext_graph *const s = ext_empty((PyTypeObject *)type, c);
    frg_status status = FRG_BAD_ARG;
    if (s) {
        EXT_WORK(status = frg_graph_read(&s->graph, c->ctx, path, directed));
    }
    return made(s, module, c, status);
}

/** arcs() -> (starts, targets, weights): bytes of int64, int32 and float32. */
static PyObject *graph_arcs(PyObject *self, PyObject *unused)
{
    (void)unused;
    const frg_graph *const g = self_of(self)->graph;
    const frg_graph_report r = frg_graph_get(g);
    const int64_t *starts;
    const int32_t *targets;
    const float *weights;
    frg_graph_arcs(g, &starts, &targets, &weights);
    return Py_BuildValue("y#y#y#", starts, (Py_ssize_t)(r.n + 1) * (Py_ssize_t)sizeof *starts,
                         targets, (Py_ssize_t)r.arcs * (Py_ssize_t)sizeof *targets, weights,
                         (Py_ssize_t)r.arcs * (Py_ssize_t)sizeof *weights);
}

/** landmarks(nodes, out) -> how many were found; nodes: count of int64, out: n x count. */
static PyObject *graph_landmarks(PyObject *self, PyObject *args)
{
    PyObject *nodes, *out;
    if (!PyArg_ParseTuple(args, "OO", &nodes, &out)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array to;
    int64_t found = 0;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, out, "out", 1, &to) == 0) {
        const int64_t count = to.ndim == 2 ? to.shape[1] : 0;
        int64_t *const chosen = ext_values(&h, nodes, "nodes", 1, FRG_I64, count);
        if (!PyErr_Occurred()) {
            EXT_WORK(status = frg_graph_landmarks(self_of(self)->graph, count, chosen, to, &found));
        }
    }
    ext_release(&h);
    return ext_has_failed(status) ? ext_failed(self, status) : PyLong_FromLongLong(found);
}

/* ---- with the context to themselves ---------------------------------------------------------- */

EXT_FUNCTION(graph_knn)
EXT_FUNCTION(graph_csr)
EXT_METHOD(graph_get)
EXT_FUNCTION(graph_read)
EXT_FUNCTION(graph_mesh)
EXT_FUNCTION(mesh_read)
EXT_METHOD(graph_arcs)
EXT_METHOD(graph_paths)
EXT_METHOD(graph_landmarks)
EXT_FREE(graph_free)

PyMethodDef ext_graph_functions[] = {
    {"mesh_read", mesh_read_alone, METH_VARARGS, "mesh_read(context, path) -> (points, ends)"},
    {NULL, NULL, 0, NULL},
};

int ext_types_graph(PyObject *module)
{
    static PyMethodDef members[] = {
        {"knn", graph_knn_alone, METH_VARARGS | METH_CLASS, "knn(context, points, options)"},
        {"csr", graph_csr_alone, METH_VARARGS | METH_CLASS,
         "csr(context, starts, targets, weights, directed)"},
        {"report", graph_get_alone, METH_NOARGS, "What the graph is."},
        {"read", graph_read_alone, METH_VARARGS | METH_CLASS, "read(context, path, directed)"},
        {"mesh", graph_mesh_alone, METH_VARARGS | METH_CLASS, "mesh(context, path)"},
        {"arcs", graph_arcs_alone, METH_NOARGS, "arcs() -> (starts, targets, weights)"},
        {"paths", graph_paths_alone, METH_VARARGS, "paths(sources, out) -> report"},
        {"landmarks", graph_landmarks_alone, METH_VARARGS, "landmarks(nodes, out) -> found"},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_dealloc, graph_free_alone},
                                  {Py_tp_traverse, ext_visit},
                                  {Py_tp_methods, members},
                                  {Py_tp_doc, "A graph; use fourge.gw.Graph."},
                                  {0, NULL}};
    static PyType_Spec spec = {"fourge._fourge.Graph", sizeof(ext_graph), 0,
                               EXT_TYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    ext_state *const s = ext_state_of(module);
    s->graph_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return s->graph_type && PyModule_AddObjectRef(module, "Graph", s->graph_type) == 0 ? 0 : -1;
}
