/* ext_table.c - tables from Arrow streams and from arrays, and back to Python. */
#include "fourge/arrow.h"

#include "ext.h"

ext_table *ext_table_of(PyObject *module, PyObject *object)
{
    if (!PyObject_TypeCheck(object, (PyTypeObject *)ext_state_of(module)->table_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a Table");
        return NULL;
    }
    return (ext_table *)object;
}

static PyObject *wrap(PyTypeObject *type, ext_context *context, frg_table *table)
{
    ext_table *const t = ext_empty(type, context);
    if (!t) {
        frg_table_destroy(table);
        return NULL;
    }
    t->table = table;
    return (PyObject *)t;
}

static void table_free(PyObject *self)
{
    ext_table *const t = (ext_table *)self;
    frg_table_destroy(t->table);
    ext_drop(self);
}

/** Table(context, rows): empty, for add_*. */
static PyObject *table_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *const module = PyType_GetModule(type), *object;
    long long rows;
    ext_context *c;
    if (!module || !PyArg_ParseTuple(args, "OL", &object, &rows) ||
        !(c = ext_context_of(module, object))) {
        return NULL;
    }
    frg_table *t;
    const frg_status status = frg_table_create(&t, c->ctx, rows);
    return status < 0 ? ext_raise(module, status, c->ctx) : wrap(type, c, t);
}

/** Options for the columns of a list of names, or all for None; *names is the caller's to free. */
static int column_options(PyObject *columns, frg_table_opts *o, const char ***names)
{
    Py_ssize_t n = 0;
    frg_table_defaults(o, sizeof *o);
    *names = NULL;
    if (columns != Py_None && !(*names = ext_strings(columns, "columns", &n))) {
        return -1;
    }
    o->columns = *names;
    o->n_columns = n;
    return 0;
}

/** The table that was read.  A reading that was stopped has none. */
static PyObject *wrap_read(PyTypeObject *type, ext_context *c, frg_status status, frg_table *t)
{
    return status != FRG_OK ? ext_raise(c->module, status, c->ctx) : wrap(type, c, t);
}

/** from_arrow(context, capsule, columns): reads an Arrow stream; columns is a list of names or
 *  None. */
static PyObject *table_from_arrow(PyObject *type, PyObject *args)
{
    PyObject *const module = PyType_GetModule((PyTypeObject *)type), *object, *capsule, *columns;
    ext_context *c;
    if (!module || !PyArg_ParseTuple(args, "OOO", &object, &capsule, &columns) ||
        !(c = ext_context_of(module, object))) {
        return NULL;
    }
    struct ArrowArrayStream *const stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    frg_table_opts o;
    const char **names;
    if (!stream || column_options(columns, &o, &names) < 0) {
        return NULL;
    }
    frg_table *t = NULL;
    frg_status status;
    EXT_WORK(status = frg_table_read_arrow(
                 &t, c->ctx, stream, &o)); /* producers that need the lock take it themselves */
    PyMem_Free(names);
    return wrap_read((PyTypeObject *)type, c, status, t);
}

/** read(context, path, columns, untrusted): reads a file; columns as above. */
static PyObject *table_read(PyObject *type, PyObject *args)
{
    PyObject *const module = PyType_GetModule((PyTypeObject *)type), *object, *path, *columns;
    ext_context *c;
    frg_table_opts o;
    const char **names;
    int untrusted;
    if (!module || !PyArg_ParseTuple(args, "OO&Op", &object, PyUnicode_FSConverter, &path, &columns,
                                     &untrusted)) {
        return NULL;
    }
    if (!(c = ext_context_of(module, object)) || column_options(columns, &o, &names) < 0) {
        Py_DECREF(path);
        return NULL;
    }
    o.untrusted = untrusted;
    frg_table *t = NULL;
    frg_status status;
    const char *const name = PyBytes_AsString(path);
    EXT_WORK(status = frg_table_read(&t, c->ctx, name, &o));
    PyMem_Free(names);
    Py_DECREF(path);
    return wrap_read((PyTypeObject *)type, c, status, t);
}

/** add(name, array, labels): float64 -> numbers, int64 -> integers, int32 with labels -> codes,
 *  without -> booleans. */
static PyObject *table_add(PyObject *self, PyObject *args)
{
    ext_table *const t = (ext_table *)self;
    const char *name;
    PyObject *object, *labels;
    Py_buffer buffer;
    frg_array a;
    if (!PyArg_ParseTuple(args, "sOO", &name, &object, &labels) ||
        ext_array(object, name, 0, &buffer, &a) < 0) {
        return NULL;
    }
    frg_status status = FRG_BAD_ARG;
    const int fits = a.ndim == 1 && a.shape[0] == frg_table_rows(t->table) &&
                     (a.stride[0] == 1 || a.shape[0] < 2);
    Py_ssize_t n = 0;
    const char **words = NULL;
    if (!fits) {
        PyErr_Format(PyExc_ValueError, "column '%s': expected %lld contiguous values", name,
                     (long long)frg_table_rows(t->table));
    } else if (a.dtype == FRG_F64) {
        status = frg_table_add_numbers(t->table, name, a.data);
    } else if (a.dtype == FRG_I64) {
        status = frg_table_add_integers(t->table, name, a.data);
    } else if (a.dtype == FRG_I32 && labels == Py_None) {
        status = frg_table_add_bools(t->table, name, a.data);
    } else if (a.dtype == FRG_I32 && (words = ext_strings(labels, name, &n))) {
        status = frg_table_add_codes(t->table, name, a.data, words, n);
    } else if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_TypeError, "column '%s': expected float64, int64, or int32 codes", name);
    }
    PyMem_Free(words);
    PyBuffer_Release(&buffer);
    return status < 0 ? ext_raise(t->context->module, status, t->context->ctx) : Py_NewRef(Py_None);
}

static PyObject *column_values(const frg_column *c)
{
    const void *const values = c->numbers    ? (const void *)c->numbers
                               : c->integers ? (const void *)c->integers
                                             : (const void *)c->codes;
    const Py_ssize_t bytes = c->numbers || c->integers ? 8 : 4;
    PyObject *labels = Py_NewRef(Py_None);
    if (c->labels) {
        Py_DECREF(labels);
        labels = PyList_New(0);
        for (int64_t k = 0; labels && k < c->n_labels; k++) {
            PyObject *const word = PyUnicode_FromString(c->labels[k]);
            if (!word || PyList_Append(labels, word) < 0) {
                Py_CLEAR(labels);
            }
            Py_XDECREF(word);
        }
    }
    PyObject *const out = labels ? Py_BuildValue("iy#O", (int)c->kind, values ? values : "",
                                                 (Py_ssize_t)c->n * bytes, labels)
                                 : NULL;
    Py_XDECREF(labels);
    return out;
}

PyObject *ext_table_dict(const frg_table *t)
{
    PyObject *const dict = PyDict_New();
    for (int64_t i = 0; dict && i < frg_table_columns(t); i++) {
        const frg_column *const c = frg_table_column(t, i);
        if (ext_put(dict, c->name, column_values(c)) < 0) {
            Py_DECREF(dict);
            return NULL;
        }
    }
    return dict;
}

static PyObject *table_columns(PyObject *self, PyObject *unused)
{
    (void)unused;
    return ext_table_dict(((ext_table *)self)->table);
}

/** The names of the columns whose labels stand in the order of their levels. */
static PyObject *table_ordered(PyObject *self, PyObject *unused)
{
    const frg_table *const t = ((ext_table *)self)->table;
    PyObject *const names = PyList_New(0);
    (void)unused;
    for (int64_t i = 0; names && i < frg_table_columns(t); i++) {
        const frg_column *const c = frg_table_column(t, i);
        PyObject *const name = c->ordered ? PyUnicode_FromString(c->name) : NULL;
        if (c->ordered && (!name || PyList_Append(names, name) < 0)) {
            Py_XDECREF(name);
            Py_DECREF(names);
            return NULL;
        }
        Py_XDECREF(name);
    }
    return names;
}

static PyObject *table_rows(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLongLong(frg_table_rows(((ext_table *)self)->table));
}

/* ---- with the context to themselves ---------------------------------------------------------- */

EXT_FUNCTION(table_from_arrow)
EXT_FUNCTION(table_read)
EXT_METHOD(table_add)
EXT_METHOD(table_columns)
EXT_METHOD(table_ordered)
EXT_METHOD(table_rows)
EXT_NEW(table_new)
EXT_FREE(table_free)

int ext_types_table(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"from_arrow", table_from_arrow_alone, METH_VARARGS | METH_CLASS,
         "from_arrow(context, capsule, columns)"},
        {"read", table_read_alone, METH_VARARGS | METH_CLASS,
         "read(context, path, columns, untrusted)"},
        {"add", table_add_alone, METH_VARARGS, "add(name, array, labels): copies one column."},
        {"columns", table_columns_alone, METH_NOARGS, "{name: (kind, bytes, labels)}"},
        {"ordered", table_ordered_alone, METH_NOARGS,
         "The names of the columns whose labels stand in the order of their levels."},
        {"rows", table_rows_alone, METH_NOARGS, "The number of rows."},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_new, table_new_alone},
                                  {Py_tp_dealloc, table_free_alone},
                                  {Py_tp_traverse, ext_visit},
                                  {Py_tp_methods, methods},
                                  {Py_tp_doc, "Table(context, rows): named columns."},
                                  {0, NULL}};
    static PyType_Spec spec = {"fourge._fourge.Table", sizeof(ext_table), 0, EXT_TYPE, slots};
    ext_state *const s = ext_state_of(module);
    s->table_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return s->table_type ? PyModule_AddObjectRef(module, "Table", s->table_type) : -1;
}
