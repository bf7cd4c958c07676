/* ext_calls.c - calls with their contexts to themselves.
 *
 * An object has the context that it was made with; what reads others besides (an alignment its
 * graphs, an embedding its alignments) holds theirs as well, in the order of their addresses, so
 * that no two calls wait for each other. */
#include <string.h>

#include "ext.h"

/** The contexts of one call, each once, by address. */
typedef struct {
    ext_context **all, *first[4];
    int n, capacity;
} contexts;

static int add(contexts *s, ext_context *c)
{
    int at = s->n;
    while (at > 0 && (uintptr_t)s->all[at - 1] > (uintptr_t)c) {
        at--;
    }
    if (!c || (at > 0 && s->all[at - 1] == c)) {
        return 0;
    }
    if (s->n == s->capacity) {
        ext_context **const more = PyMem_Malloc(2 * (size_t)s->capacity * sizeof(ext_context *));
        if (!more) {
            PyErr_NoMemory();
            return -1;
        }
        memcpy(more, s->all, (size_t)s->n * sizeof(ext_context *));
        if (s->all != s->first) {
            PyMem_Free(s->all);
        }
        s->all = more;
        s->capacity *= 2;
    }
    memmove(s->all + at + 1, s->all + at, (size_t)(s->n - at) * sizeof(ext_context *));
    s->all[at] = c;
    s->n++;
    return 0;
}

static int add_object(contexts *s, const ext_object *o)
{
    return add(s, o->context) < 0 || add(s, o->others[0]) < 0 || add(s, o->others[1]) < 0 ? -1 : 0;
}

/** The contexts among arguments, in tuples and lists of `depth` levels. */
static int add_arguments(contexts *s, const ext_state *types, PyObject *o, int depth)
{
    PyObject *const with_context[] = {types->table_type, types->fe_type,    types->gp_type,
                                      types->soap_type,  types->graph_type, types->sinkhorn_type,
                                      types->gw_type};
    PyTypeObject *const type = Py_TYPE(o);
    if ((PyObject *)type == types->context_type) {
        return add(s, (ext_context *)o);
    }
    for (size_t k = 0; k < sizeof with_context / sizeof *with_context; k++) {
        if ((PyObject *)type == with_context[k]) {
            return add_object(s, (ext_object *)o);
        }
    }
    const int is_list = PyList_CheckExact(o);
    if (depth > 0 && (is_list || PyTuple_CheckExact(o))) {
        const Py_ssize_t n = is_list ? PyList_Size(o) : PyTuple_Size(o);
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *const item = is_list ? PyList_GetItem(o, i) : PyTuple_GetItem(o, i);
            if (!item || add_arguments(s, types, item, depth - 1) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

static void exit_all(contexts *s)
{
    while (s->n > 0) {
        ext_exit(s->all[--s->n]);
    }
    if (s->all != s->first) {
        PyMem_Free(s->all);
    }
}

/** Takes them all; where one cannot be had those before it are given back. */
static int enter(contexts *s)
{
    const int n = s->n;
    for (s->n = 0; s->n < n; s->n++) {
        if (ext_enter(s->all[s->n]) < 0) {
            exit_all(s);
            return -1;
        }
    }
    return 0;
}

/** A result beside an exception, of a callback that the library could not stop for, is none. */
static PyObject *checked(PyObject *result)
{
    if (result && PyErr_Occurred()) {
        Py_DECREF(result);
        return NULL;
    }
    return result;
}

PyObject *ext_call_method(PyCFunction f, PyObject *self, PyObject *args)
{
    contexts s = {.capacity = 4};
    s.all = s.first;
    if (add_object(&s, (ext_object *)self) < 0 || enter(&s) < 0) {
        return NULL;
    }
    PyObject *const result = checked(f(self, args));
    exit_all(&s);
    return result;
}

/** The contexts of a call that `args` belong to; none where f is to say what is wrong with them. */
static int enter_arguments(contexts *s, PyObject *module, PyObject *args)
{
    enum { DEPTH = 3 }; /* the arguments, a list of queries, a query */
    *s = (contexts){.capacity = 4};
    s->all = s->first;
    if (module && add_arguments(s, ext_state_of(module), args, DEPTH) < 0) {
        s->n = 0;
        exit_all(s);
        return -1;
    }
    return enter(s);
}

PyObject *ext_call_function(PyCFunction f, PyObject *self, PyObject *args)
{
    contexts s;
    PyObject *const module = PyType_Check(self) ? PyType_GetModule((PyTypeObject *)self) : self;
    if (enter_arguments(&s, module, args) < 0) {
        return NULL;
    }
    PyObject *const result = checked(f(self, args));
    exit_all(&s);
    return result;
}

PyObject *ext_call_new(newfunc f, PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    contexts s;
    if (enter_arguments(&s, PyType_GetModule(type), args) < 0) {
        return NULL;
    }
    PyObject *const result = checked(f(type, args, kwargs));
    exit_all(&s);
    return result;
}

void ext_call_free(destructor f, PyObject *self)
{
    ext_context *const c = ((ext_object *)self)->context;
    PyObject_GC_UnTrack(self);
    Py_XINCREF((PyObject *)c); /* the lock outlives what f lets go of */
    const int entered = c && ext_enter_free(c);
    f(self);
    if (entered) {
        ext_exit(c);
    }
    Py_XDECREF((PyObject *)c);
}

int ext_visit(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)((ext_object *)self)->context);
    return 0;
}

void *ext_empty(PyTypeObject *type, ext_context *c)
{
    ext_object *const o = (ext_object *)PyType_GenericAlloc(type, 0);
    if (o) {
        o->context = (ext_context *)Py_NewRef((PyObject *)c);
    }
    return o;
}

void ext_drop(PyObject *self)
{
    PyTypeObject *const type = Py_TYPE(self);
    Py_XDECREF((PyObject *)((ext_object *)self)->context);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

PyObject *ext_failed(PyObject *self, frg_status status)
{
    const ext_context *const c = ((ext_object *)self)->context;
    return ext_raise(c->module, status, c->ctx);
}

PyObject *ext_answer(PyObject *self, frg_status status)
{
    return ext_has_failed(status) ? ext_failed(self, status) : Py_NewRef(Py_None);
}
