/* ext_soap.c - SOAP: a handle over parameters that lie in other libraries' memory.
 *
 * Weights and gradients come as DLPack capsules or as buffers.  Those of the weights are held as
 * long as the handle is; gradients are held during a step. */
#include <string.h>

#include "fourge/soap.h"

#include "ext.h"

#define AT(field)     #field, offsetof(frg_soap_opts, field)
#define REPORT(field) #field, offsetof(frg_soap_report, field)

static const ext_field soap_report[] = {{REPORT(updated), IS_INT64, NULL},
                                        {REPORT(nonfinite), IS_INT64, NULL},
                                        {REPORT(long_axes), IS_INT64, NULL},
                                        {REPORT(due), IS_INT64, NULL},
                                        {REPORT(skipped), IS_INT64, NULL},
                                        {REPORT(householder), IS_INT64, NULL},
                                        {REPORT(single_pass), IS_INT64, NULL},
                                        {REPORT(second_pass), IS_INT64, NULL},
                                        {REPORT(eigh), IS_INT64, NULL},
                                        {REPORT(eigh_failures), IS_INT64, NULL},
                                        {REPORT(indefinite), IS_INT64, NULL},
                                        {REPORT(lowest_quotient), IS_DOUBLE, NULL},
                                        {REPORT(orthogonality), IS_DOUBLE, NULL},
                                        {REPORT(seconds), IS_DOUBLE, NULL},
                                        {REPORT(factors_seconds), IS_DOUBLE, NULL},
                                        {REPORT(refresh_seconds), IS_DOUBLE, NULL},
                                        {REPORT(project_seconds), IS_DOUBLE, NULL},
                                        {REPORT(update_seconds), IS_DOUBLE, NULL},
                                        {NULL, 0, IS_INT, NULL}};

/* by the keys of `fourge soap train --dry-run` */
#define SIZE(key, field) key, offsetof(frg_soap_size, field)
static const ext_field soap_size[] = {
    {SIZE("parameters", parameters), IS_INT64, NULL},
    {SIZE("numbers", numbers), IS_INT64, NULL},
    {SIZE("factors", factors), IS_INT64, NULL},
    {SIZE("long_axes", long_axes), IS_INT64, NULL},
    {SIZE("largest_factor", largest_factor), IS_INT64, NULL},
    {SIZE("largest_of", largest_of), IS_TEXT, NULL},
    {SIZE("largest_axis", largest_axis), IS_INT, NULL},
    {SIZE("state_bytes", state_bytes), IS_SIZE, NULL},
    {SIZE("bytes", bytes), IS_SIZE, NULL},
    {SIZE("step_peak_bytes", peak_bytes), IS_SIZE, NULL},
    {SIZE("estimated_seconds", next_seconds), IS_DOUBLE, NULL},
    {SIZE("estimated_refresh_seconds", refresh_seconds), IS_DOUBLE, NULL},
    {SIZE("estimated_plain_seconds", plain_seconds), IS_DOUBLE, NULL},
    {NULL, 0, IS_INT, NULL}};

typedef struct {
    EXT_HEAD
    frg_soap *soap;
    PyObject *held;      /* capsules and views that the handle points to */
    PyObject *functions; /* {group: its frequency} */
    int64_t n;           /* parameters */
    frg_array *views;    /* as many gradients */
    frg_soap_report report;
} ext_soap;

static ext_soap *self_of(PyObject *self)
{
    return (ext_soap *)self;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/** A Python function of the step as a frequency; 0, which is refused, where it raises. */
static int64_t call_frequency(int64_t t0, void *function)
{
    const int away = ext_lock_borrow();
    PyObject *const answer =
        PyErr_Occurred() ? NULL : PyObject_CallFunction(function, "L", (long long)t0);
    const long long f = answer ? PyLong_AsLongLong(answer) : 0;
    Py_XDECREF(answer);
    ext_lock_return(away);
    return f;
}

static int profile_of(const char *text, frg_soap_profile *out)
{
    const int place = ext_choice(frg_soap_options()->choices, text);
    if (place < 0) {
        PyErr_Format(PyExc_ValueError,
                     "profile='%s': expected 'emerging', 'emerging-0.4' or 'nikhilvyas'", text);
        return -1;
    }
    *out = (frg_soap_profile)place;
    return 0;
}

/** Options over those in `o`; frequency is a function or None. */
static int read_options(frg_soap_opts *o, PyObject *options, PyObject *frequency)
{
    if (ext_options_set(o, frg_soap_options() + 1 /* but the profile */, options) < 0) {
        return -1;
    }
    o->frequency = NULL;
    if (frequency != Py_None) {
        o->frequency = call_frequency;
        o->user = frequency;
    }
    return 0;
}

/** Keeps the function that group `group` has now, in place of the one before. */
static int keep_function(const ext_soap *s, int group, PyObject *frequency)
{
    PyObject *const number = PyLong_FromLong(group);
    const int result = number ? PyDict_SetItem(s->functions, number, frequency) : -1;
    Py_XDECREF(number);
    if (result < 0) {
        Py_INCREF(frequency); /* the handle has it already: never let go of, for want of memory */
    }
    return result;
}

/** Soap(context, profile, options, frequency): a handle with group 0. */
static PyObject *soap_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *const module = PyType_GetModule(type), *context, *options, *frequency;
    const char *profile;
    ext_context *c;
    frg_soap_profile p;
    if (!module || !PyArg_ParseTuple(args, "OsOO", &context, &profile, &options, &frequency) ||
        !(c = ext_context_of(module, context)) || profile_of(profile, &p) < 0) {
        return NULL;
    }
    ext_soap *const s = ext_empty(type, c);
    if (!s) {
        return NULL;
    }
    s->held = PyList_New(0);
    s->functions = PyDict_New();
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, p);
    frg_status status = FRG_BAD_ARG;
    if (s->held && s->functions && read_options(&o, options, frequency) == 0) {
        status = frg_soap_create(&s->soap, c->ctx, &o);
    }
    if (status < 0 || keep_function(s, 0, frequency) < 0) {
        ext_raise(module, status, c->ctx);
        Py_DECREF(s);
        return NULL;
    }
    return (PyObject *)s;
}

static void soap_free(PyObject *self)
{
    frg_soap_destroy(self_of(self)->soap);
    PyMem_Free(self_of(self)->views);
    Py_XDECREF(self_of(self)->held);
    Py_XDECREF(self_of(self)->functions);
    ext_drop(self);
}

static int soap_visit(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(self_of(self)->held);
    Py_VISIT(self_of(self)->functions);
    return ext_visit(self, visit, arg);
}

/** add_group(profile, options, frequency) -> number. */
static PyObject *soap_add_group(PyObject *self, PyObject *args)
{
    PyObject *options, *frequency;
    const char *profile;
    frg_soap_profile p;
    if (!PyArg_ParseTuple(args, "sOO", &profile, &options, &frequency) ||
        profile_of(profile, &p) < 0) {
        return NULL;
    }
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, p);
    if (read_options(&o, options, frequency) < 0) {
        return NULL;
    }
    int group;
    const frg_status status = frg_soap_add_group(self_of(self)->soap, &o, &group);
    return status < 0 || keep_function(self_of(self), group, frequency) < 0
               ? ext_failed(self, status)
               : PyLong_FromLong(group);
}

/** set_group(group, options, frequency): changes what is named; frequency None takes a function
 *  away. */
static PyObject *soap_set_group(PyObject *self, PyObject *args)
{
    PyObject *options, *frequency;
    int group;
    if (!PyArg_ParseTuple(args, "iOO", &group, &options, &frequency)) {
        return NULL;
    }
    ext_soap *const s = self_of(self);
    frg_soap_opts o;
    frg_status status = frg_soap_get_group(s->soap, group, &o, sizeof o);
    if (status >= 0) {
        if (read_options(&o, options, frequency) < 0) {
            return NULL;
        }
        status = frg_soap_set_group(s->soap, group, &o);
    }
    return status < 0 || keep_function(s, group, frequency) < 0 ? ext_failed(self, status)
                                                                : Py_NewRef(Py_None);
}

/** A group's options; also the defaults that a profile has. */
static PyObject *soap_get_group(PyObject *self, PyObject *args)
{
    int group;
    frg_soap_opts o;
    if (!PyArg_ParseTuple(args, "i", &group)) {
        return NULL;
    }
    const frg_status status = frg_soap_get_group(self_of(self)->soap, group, &o, sizeof o);
    return status < 0 ? ext_failed(self, status)
                      : ext_options_get(&o, frg_soap_options() + 1 /* but the profile */);
}

/* ---- parameters and steps -------------------------------------------------------------------- */

/** The view of a capsule, which its owner keeps, or of a buffer through a memoryview that goes to
 *  *held. */
static int view_of(PyObject *object, const char *name, int writable, PyObject **held,
                   frg_array *out)
{
    if (PyCapsule_CheckExact(object)) {
        return ext_tensor(object, name, out);
    }
    Py_buffer buffer;
    if ((!*held && !(*held = PyList_New(0))) ||
        ext_array(object, name, writable, &buffer, out) < 0) {
        return -1;
    }
    PyObject *const view = PyMemoryView_FromObject(object); /* keeps the buffer exported */
    PyBuffer_Release(&buffer);
    const int result = view ? PyList_Append(*held, view) : -1;
    Py_XDECREF(view);
    return result;
}

/** add_param(group, w, name) -> id. */
static PyObject *soap_add_param(PyObject *self, PyObject *args)
{
    PyObject *w;
    const char *name;
    int group;
    if (!PyArg_ParseTuple(args, "iOs", &group, &w, &name)) {
        return NULL;
    }
    ext_soap *const s = self_of(self);
    frg_array view;
    frg_array *const views = PyMem_Realloc(s->views, sizeof *views * (size_t)(s->n + 1));
    if (!views) {
        return PyErr_NoMemory();
    }
    s->views = views;
    if (view_of(w, name, 1, &s->held, &view) < 0 || PyList_Append(s->held, w) < 0) {
        return NULL;
    }
    int64_t id;
    const frg_status status = frg_soap_add_param(s->soap, group, view, name, &id);
    s->n += status >= 0;
    return status < 0 ? ext_failed(self, status) : PyLong_FromLongLong(id);
}

/** The views of a list with one gradient or None a parameter. */
static int read_gradients(PyObject *list, PyObject **held, int64_t n, frg_array *out)
{
    if (!PyList_Check(list) || PyList_Size(list) != n) {
        PyErr_Format(PyExc_ValueError, "gradients: expected a list of %lld, one a parameter",
                     (long long)n);
        return -1;
    }
    for (int64_t i = 0; i < n; i++) {
        PyObject *const g = PyList_GetItem(list, (Py_ssize_t)i);
        out[i] = (frg_array){.data = NULL};
        char name[48] = "gradient";
        if (!PyCapsule_CheckExact(g)) {
            PyOS_snprintf(name, sizeof name, "gradient %lld", (long long)i);
        }
        if (g != Py_None && view_of(g, name, 0, held, &out[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

/** What the steps take, by the names above. */
static PyObject *soap_estimate(PyObject *self, PyObject *unused)
{
    (void)unused;
    frg_soap_size size;
    const frg_status status = frg_soap_estimate(self_of(self)->soap, &size);
    return status < 0 || PyErr_Occurred() ? ext_failed(self, status)
                                          : ext_fields_get(&size, soap_size);
}

/** prepare() -> how many warnings the context has. */
static PyObject *soap_prepare(PyObject *self, PyObject *unused)
{
    (void)unused;
    ext_soap *const s = self_of(self);
    frg_status status;
    EXT_WORK(status = frg_soap_prepare(s->soap));
    return status < 0 || PyErr_Occurred() ? ext_failed(self, status)
                                          : PyLong_FromLong(frg_warning_count(s->context->ctx));
}

/** step(gradients) -> how many warnings the context has; the list keeps the gradients. */
static PyObject *soap_step(PyObject *self, PyObject *list)
{
    ext_soap *const s = self_of(self);
    PyObject *held = NULL;
    frg_status status = FRG_BAD_ARG;
    if (read_gradients(list, &held, s->n, s->views) == 0) {
        EXT_WORK(status = frg_soap_step(s->soap, s->views, s->n, &s->report));
    }
    Py_XDECREF(held);
    return status < 0 || PyErr_Occurred() ? ext_failed(self, status)
                                          : PyLong_FromLong(frg_warning_count(s->context->ctx));
}

/** What the last step did. */
static PyObject *soap_get_report(PyObject *self, PyObject *unused)
{
    (void)unused;
    return ext_fields_get(&self_of(self)->report, soap_report);
}

/* ---- state ----------------------------------------------------------------------------------- */

/** state_shape(id, key) -> tuple, or None for a part that the parameter does not have. */
static PyObject *soap_state_shape(PyObject *self, PyObject *args)
{
    long long id;
    const char *key;
    frg_array a;
    if (!PyArg_ParseTuple(args, "Ls", &id, &key)) {
        return NULL;
    }
    const frg_status status = frg_soap_state_shape(self_of(self)->soap, id, key, &a);
    if (status < 0) {
        return ext_failed(self, status);
    }
    PyObject *const shape = PyTuple_New(a.ndim);
    for (int k = 0; shape && k < a.ndim; k++) {
        if (PyTuple_SetItem(shape, k, PyLong_FromLongLong(a.shape[k])) < 0) {
            Py_DECREF(shape);
            return NULL;
        }
    }
    return shape;
}

static PyObject *soap_reset(PyObject *self, PyObject *args)
{
    long long id;
    if (!PyArg_ParseTuple(args, "L", &id)) {
        return NULL;
    }
    const frg_status status = frg_soap_reset(self_of(self)->soap, id);
    return status < 0 ? ext_failed(self, status) : Py_NewRef(Py_None);
}

static PyObject *move_state(PyObject *self, PyObject *args, int get)
{
    long long id;
    const char *key;
    PyObject *array;
    if (!PyArg_ParseTuple(args, "LsO", &id, &key, &array)) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array view;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, array, key, get, &view) == 0) {
        EXT_WORK(status = get ? frg_soap_state_get(self_of(self)->soap, id, key, view)
                              : frg_soap_state_set(self_of(self)->soap, id, key, view));
    }
    ext_release(&h);
    return status < 0 ? ext_failed(self, status) : Py_NewRef(Py_None);
}

static PyObject *soap_state_get(PyObject *self, PyObject *args)
{
    return move_state(self, args, 1);
}

static PyObject *soap_state_set(PyObject *self, PyObject *args)
{
    return move_state(self, args, 0);
}

/** The state of parameter `id`, of all for -1. */
static frg_status save_state(frg_soap *soap, int64_t id, void *to, int64_t capacity, int64_t *count)
{
    return id < 0 ? frg_soap_save_bytes(soap, to, capacity, count)
                  : frg_soap_save_param(soap, id, to, capacity, count);
}

static PyObject *state_bytes(PyObject *self, int64_t id)
{
    frg_soap *const soap = self_of(self)->soap;
    int64_t count = 0;
    frg_status status = save_state(soap, id, NULL, 0, &count);
    if (status < 0) {
        return ext_failed(self, status);
    }
    PyObject *const bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)count);
    char *const to = bytes ? PyBytes_AsString(bytes) : NULL;
    if (!to) {
        return NULL;
    }
    EXT_WORK(status = save_state(soap, id, to, count, &count));
    if (status < 0) {
        Py_DECREF(bytes);
        return ext_failed(self, status);
    }
    return bytes;
}

/** save() -> bytes; save(path) writes a file that appears whole or not at all. */
static PyObject *soap_save(PyObject *self, PyObject *args)
{
    const char *path = NULL;
    if (!PyArg_ParseTuple(args, "|s", &path)) {
        return NULL;
    }
    if (!path) {
        return state_bytes(self, -1);
    }
    frg_status status;
    EXT_WORK(status = frg_soap_save(self_of(self)->soap, path));
    return status < 0 ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/** save_param(id) -> bytes. */
static PyObject *soap_save_param(PyObject *self, PyObject *args)
{
    long long id;
    if (!PyArg_ParseTuple(args, "L", &id)) {
        return NULL;
    }
    if (id < 0) {
        PyErr_Format(PyExc_ValueError, "id is %lld, it must be >= 0", id);
        return NULL;
    }
    return state_bytes(self, id);
}

/** load(bytes-like, name). */
static PyObject *soap_load(PyObject *self, PyObject *args)
{
    Py_buffer b;
    const char *name;
    if (!PyArg_ParseTuple(args, "y*s", &b, &name)) {
        return NULL;
    }
    frg_status status;
    EXT_WORK(status = frg_soap_load_bytes(self_of(self)->soap, b.buf, b.len, name));
    PyBuffer_Release(&b);
    return status < 0 ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/** load_param(id, bytes-like, name). */
static PyObject *soap_load_param(PyObject *self, PyObject *args)
{
    Py_buffer b;
    long long id;
    const char *name;
    if (!PyArg_ParseTuple(args, "Ly*s", &id, &b, &name)) {
        return NULL;
    }
    frg_status status;
    EXT_WORK(status = frg_soap_load_param(self_of(self)->soap, id, b.buf, b.len, name));
    PyBuffer_Release(&b);
    return status < 0 ? ext_failed(self, status) : Py_NewRef(Py_None);
}

static PyObject *move_layout(PyObject *self, PyObject *args, int out)
{
    const char *path;
    int layout;
    if (!PyArg_ParseTuple(args, "si", &path, &layout)) {
        return NULL;
    }
    frg_soap *const soap = self_of(self)->soap;
    const frg_status status = out ? frg_soap_export(soap, path, (frg_soap_layout)layout)
                                  : frg_soap_import(soap, path, (frg_soap_layout)layout);
    return status < 0 ? ext_failed(self, status) : Py_NewRef(Py_None);
}

/** export(path, layout): layout by its number in fourge/soap.h. */
static PyObject *soap_export(PyObject *self, PyObject *args)
{
    return move_layout(self, args, 1);
}

static PyObject *soap_import(PyObject *self, PyObject *args)
{
    return move_layout(self, args, 0);
}

/** bytes() -> (state, all). */
static PyObject *soap_bytes(PyObject *self, PyObject *unused)
{
    (void)unused;
    const frg_soap *const soap = self_of(self)->soap;
    return Py_BuildValue("KK", (unsigned long long)frg_soap_state_bytes(soap),
                         (unsigned long long)frg_soap_bytes(soap));
}

/* ---- with the context to themselves ---------------------------------------------------------- */

EXT_METHOD(soap_add_group)
EXT_METHOD(soap_set_group)
EXT_METHOD(soap_get_group)
EXT_METHOD(soap_add_param)
EXT_METHOD(soap_estimate)
EXT_METHOD(soap_prepare)
EXT_METHOD(soap_step)
EXT_METHOD(soap_get_report)
EXT_METHOD(soap_state_shape)
EXT_METHOD(soap_reset)
EXT_METHOD(soap_state_get)
EXT_METHOD(soap_state_set)
EXT_METHOD(soap_save)
EXT_METHOD(soap_load)
EXT_METHOD(soap_save_param)
EXT_METHOD(soap_load_param)
EXT_METHOD(soap_export)
EXT_METHOD(soap_import)
EXT_METHOD(soap_bytes)
EXT_NEW(soap_new)
EXT_FREE(soap_free)

int ext_types_soap(PyObject *module)
{
    static PyMethodDef members[] = {
        {"add_group", soap_add_group_alone, METH_VARARGS, "add_group(profile, options, frequency)"},
        {"set_group", soap_set_group_alone, METH_VARARGS, "set_group(group, options, frequency)"},
        {"get_group", soap_get_group_alone, METH_VARARGS, "get_group(group) -> options"},
        {"add_param", soap_add_param_alone, METH_VARARGS, "add_param(group, w, name) -> id"},
        {"estimate", soap_estimate_alone, METH_NOARGS, "estimate() -> what the steps take"},
        {"prepare", soap_prepare_alone, METH_NOARGS, "prepare() -> warnings"},
        {"step", soap_step_alone, METH_O, "step(gradients) -> warnings"},
        {"report", soap_get_report_alone, METH_NOARGS, "What the last step did."},
        {"state_shape", soap_state_shape_alone, METH_VARARGS, "state_shape(id, key) -> shape"},
        {"reset", soap_reset_alone, METH_VARARGS, "reset(id): the state as before the first step"},
        {"state_get", soap_state_get_alone, METH_VARARGS, "state_get(id, key, out)"},
        {"state_set", soap_state_set_alone, METH_VARARGS, "state_set(id, key, array)"},
        {"save", soap_save_alone, METH_VARARGS, "save() -> bytes; save(path)"},
        {"load", soap_load_alone, METH_VARARGS, "load(bytes, name)"},
        {"save_param", soap_save_param_alone, METH_VARARGS, "save_param(id) -> bytes"},
        {"load_param", soap_load_param_alone, METH_VARARGS, "load_param(id, bytes, name)"},
        {"export", soap_export_alone, METH_VARARGS, "export(path, layout)"},
        {"import_", soap_import_alone, METH_VARARGS, "import_(path, layout)"},
        {"bytes", soap_bytes_alone, METH_NOARGS, "bytes() -> (state, all)"},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_new, soap_new_alone},
                                  {Py_tp_dealloc, soap_free_alone},
                                  {Py_tp_traverse, soap_visit},
                                  {Py_tp_methods, members},
                                  {Py_tp_doc, "An optimizer's handle; use fourge.soap.SOAP."},
                                  {0, NULL}};
    static PyType_Spec spec = {"fourge._fourge.Soap", sizeof(ext_soap), 0, EXT_TYPE, slots};
    ext_state *const s = ext_state_of(module);
    s->soap_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return s->soap_type ? PyModule_AddObjectRef(module, "Soap", s->soap_type) : -1;
}
