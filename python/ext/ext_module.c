/* ext_module.c - the module, structs by table, arrays. */
#include <limits.h>
#include <string.h>

#include "ext.h"

ext_state *ext_state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

int ext_has_failed(frg_status status)
{
    return status < 0 || status == FRG_INTERRUPTED || status == FRG_TIME_LIMIT || PyErr_Occurred();
}

PyObject *ext_raise(PyObject *module, frg_status status, const frg_context *ctx)
{
    if (PyErr_Occurred()) { /* a callback's exception, Ctrl-C among them, says more than
                               "interrupted" */
        return NULL;
    }
    if (ext_is_late()) {
        PyErr_SetNone(PyExc_SystemExit);
        return NULL;
    }
    if (status >= 0) { /* the message is that of an earlier error */
        ctx = NULL;
    }
    return ext_raise_text(module, status, ctx ? frg_message(ctx) : frg_status_sentence(status),
                          ctx);
}

PyObject *ext_raise_text(PyObject *module, frg_status status, const char *text,
                         const frg_context *ctx)
{
    PyObject *const error =
        PyObject_CallFunction(ext_state_of(module)->raise, "sssss", frg_status_name(status), text,
                              ctx ? frg_error_code(ctx) : "", ctx ? frg_error_where(ctx) : "",
                              ctx ? frg_error_hint(ctx) : "");
    if (error) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

/* ---- structs by table ------------------------------------------------------------------------ */

/** Length of the k-th of the words "a|b|c", from *word on; -1: there are fewer. */
static int choice_at(const char *choices, int k, const char **word)
{
    const char *at = choices;
    for (; at && k > 0; k--) {
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    *word = at;
    return at ? (int)strcspn(at, "|") : -1;
}

int ext_choice(const char *choices, const char *word)
{
    const char *at;
    int length;
    for (int k = 0; (length = choice_at(choices, k, &at)) >= 0; k++) {
        if (strlen(word) == (size_t)length && memcmp(at, word, (size_t)length) == 0) {
            return k;
        }
    }
    return -1;
}

static int set_choice(int *to, const ext_field *f, PyObject *value)
{
    const char *const text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    const int place = text ? ext_choice(f->choices, text) : -1;
    if (place >= 0) {
        *to = place;
        return 0;
    }
    if (!PyErr_Occurred()) {
        char all[256] = "";
        const char *word;
        int length;
        for (int k = 0; (length = choice_at(f->choices, k, &word)) >= 0; k++) {
            const size_t used = strlen(all);
            PyOS_snprintf(all + used, sizeof all - used, "%s'%.*s'", k ? ", " : "", length, word);
        }
        PyErr_Format(PyExc_ValueError, "%s=%R: expected one of %s", f->name, value, all);
    }
    return -1;
}

static int int_of(PyObject *value)
{
    const long long v = PyLong_AsLongLong(value);
    if (!PyErr_Occurred() && (v < INT_MIN || v > INT_MAX)) {
        PyErr_SetString(PyExc_OverflowError, "an int");
    }
    return (int)v;
}

/** Words are neither true nor false: "off" would be true. */
static int truth_of(PyObject *value)
{
    if (PyUnicode_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "a str");
        return -1;
    }
    return PyObject_IsTrue(value);
}

static const char *const kind_names[] = {[IS_DOUBLE] = "a number",
                                         [IS_INT] = "an integer of 32 bits at most",
                                         [IS_BOOL] = "True or False",
                                         [IS_INT64] = "an integer of 64 bits at most",
                                         [IS_SIZE] = "a number of bytes, an integer >= 0",
                                         [IS_TEXT] = "a str",
                                         [IS_CHOICE] = "a str",
                                         [IS_DEVICE] = "'cpu', 'cuda[:i]' or 'opencl[:i]'"};

/** None is the default: that of FOURGE_DEVICE, or the cpu. */
static void set_device(frg_device *at, PyObject *value)
{
    const char *const text = value == Py_None ? NULL : PyUnicode_AsUTF8AndSize(value, NULL);
    if (text && frg_device_parse(text, at) < 0) {
        PyErr_SetString(PyExc_ValueError, "no device");
    }
}

static PyObject *get_device(const frg_device *d)
{
    static const char *const names[] = {"cpu", "cuda", "opencl"};
    return d->index == 0 ? PyUnicode_FromString(names[d->kind])
                         : PyUnicode_FromFormat("%s:%d", names[d->kind], d->index);
}

static PyObject *get_host_steps(const frg_host_steps *s)
{
    PyObject *const calls = PyDict_New();
    for (int64_t i = 0; calls && i < s->count; i++) {
        if (ext_put(calls, s->steps[i].name, PyLong_FromLongLong(s->steps[i].calls)) < 0) {
            Py_DECREF(calls);
            return NULL;
        }
    }
    return calls;
}

static int set_field(char *at, const ext_field *f, PyObject *value)
{
    switch (f->kind) {
    case IS_DOUBLE:
        *(double *)(void *)at = PyFloat_AsDouble(value);
        break;
    case IS_INT:
        *(int *)(void *)at = int_of(value);
        break;
    case IS_BOOL:
        *(int *)(void *)at = truth_of(value);
        break;
    case IS_INT64:
        *(int64_t *)(void *)at = PyLong_AsLongLong(value);
        break;
    case IS_SIZE:
        *(size_t *)(void *)at = PyLong_AsSize_t(value);
        break;
    case IS_TEXT:
        *(const char **)(void *)at = value == Py_None ? NULL : PyUnicode_AsUTF8AndSize(value, NULL);
        break;
    case IS_DEVICE:
        set_device((frg_device *)(void *)at, value);
        break;
    case IS_CHOICE:
        return set_choice((int *)(void *)at, f, value);
    case IS_HOST_STEPS: /* of reports alone */
        break;
    }
    if (!PyErr_Occurred()) {
        return 0;
    }
    if (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_OverflowError) ||
        PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Format(PyExc_TypeError, "%s=%R: expected %s", f->name, value, kind_names[f->kind]);
    }
    return -1;
}

/** TypeError with the nearest name, or all of them. */
static int refuse_option(const ext_field *fields, const char *name)
{
    enum { MOST = 64 };
    const char *names[MOST];
    char all[1024] = "";
    int64_t n = 0;
    for (; fields[n].name && n < MOST; n++) {
        const size_t used = strlen(all);
        names[n] = fields[n].name;
        PyOS_snprintf(all + used, sizeof all - used, "%s%s", n ? ", " : "", names[n]);
    }
    const char *const near = frg_nearest_name(name, names, n);
    PyErr_Format(PyExc_TypeError,
                 near ? "there is no option '%s'; did you mean '%s'?"
                      : "there is no option '%s'; there are %s",
                 name, near ? near : all);
    return -1;
}

int ext_fields_set(void *into, const ext_field *fields, PyObject *options)
{
    if (!options || options == Py_None) {
        return 0;
    }
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(options, &at, &key, &value)) {
        const char *const name = PyUnicode_AsUTF8AndSize(key, NULL);
        const ext_field *f = fields;
        while (name && f->name && strcmp(f->name, name) != 0) {
            f++;
        }
        if (!name) {
            return -1;
        }
        if (!f->name) {
            return refuse_option(fields, name);
        }
        if (set_field((char *)into + f->offset, f, value) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *choice_word(const char *choices, int k)
{
    const char *word;
    const int length = choice_at(choices, k, &word);
    return PyUnicode_FromStringAndSize(word, length < 0 ? 0 : length);
}

static PyObject *get_field(const char *at, const ext_field *f)
{
    switch (f->kind) {
    case IS_DOUBLE:
        return PyFloat_FromDouble(*(const double *)(const void *)at);
    case IS_INT:
        return PyLong_FromLong(*(const int *)(const void *)at);
    case IS_BOOL:
        return PyBool_FromLong(*(const int *)(const void *)at);
    case IS_INT64:
        return PyLong_FromLongLong(*(const int64_t *)(const void *)at);
    case IS_SIZE:
        return PyLong_FromSize_t(*(const size_t *)(const void *)at);
    case IS_CHOICE:
        return choice_word(f->choices, *(const int *)(const void *)at);
    case IS_DEVICE:
        return get_device((const frg_device *)(const void *)at);
    case IS_HOST_STEPS:
        return get_host_steps((const frg_host_steps *)(const void *)at);
    case IS_TEXT:
        break;
    }
    const char *const text = *(const char *const *)(const void *)at;
    return text ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

int ext_put(PyObject *dict, const char *key, PyObject *value)
{
    const int result = value ? PyDict_SetItemString(dict, key, value) : -1;
    Py_XDECREF(value);
    return result;
}

PyObject *ext_fields_get(const void *from, const ext_field *fields)
{
    PyObject *const dict = PyDict_New();
    for (const ext_field *f = fields; dict && f->name; f++) {
        if (ext_put(dict, f->name, get_field((const char *)from + f->offset, f)) < 0) {
            Py_DECREF(dict);
            return NULL;
        }
    }
    return dict;
}

/* ---- options by the library's tables --------------------------------------------------------- */

enum { MOST_OPTIONS = 64 };

/** As many fields as the table has options that are one value. */
static void fields_of(const frg_option *table, ext_field fields[MOST_OPTIONS])
{
    static const ext_kind kinds[] = {
        [FRG_OPTION_FLAG] = IS_BOOL, [FRG_OPTION_INT] = IS_INT,     [FRG_OPTION_INT64] = IS_INT64,
        [FRG_OPTION_SIZE] = IS_SIZE, [FRG_OPTION_REAL] = IS_DOUBLE, [FRG_OPTION_CHOICE] = IS_CHOICE,
        [FRG_OPTION_TEXT] = IS_TEXT};
    int n = 0;
    for (const frg_option *o = table; o->name && n + 1 < MOST_OPTIONS; o++) {
        if (o->type != FRG_OPTION_DATA) {
            fields[n++] = (ext_field){o->name, o->offset, kinds[o->type], o->choices};
        }
    }
    fields[n] = (ext_field){NULL, 0, IS_INT, NULL};
}

int ext_options_set(void *into, const frg_option *table, PyObject *options)
{
    ext_field fields[MOST_OPTIONS];
    fields_of(table, fields);
    return ext_fields_set(into, fields, options);
}

PyObject *ext_options_get(const void *from, const frg_option *table)
{
    ext_field fields[MOST_OPTIONS];
    fields_of(table, fields);
    return ext_fields_get(from, fields);
}

PyObject *ext_list_of(const void *first, int64_t n, size_t size, const ext_field *fields)
{
    PyObject *const list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *const item = ext_fields_get((const char *)first + (size_t)i * size, fields);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static int find_dtype(const char *format, Py_ssize_t bytes, frg_dtype *out)
{
    static const struct {
        const char *letters;
        Py_ssize_t bytes;
        frg_dtype dtype;
    } known[] = {{"d", 8, FRG_F64}, {"f", 4, FRG_F32},  {"e", 2, FRG_F16}, {"B?", 1, FRG_U8},
                 {"H", 2, FRG_U16}, {"il", 4, FRG_I32}, {"lq", 8, FRG_I64}};
    const char letter =
        format ? format[format[0] == '<' || format[0] == '=' || format[0] == '@'] : 'B';
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (letter && strchr(known[k].letters, letter) && known[k].bytes == bytes) {
            *out = known[k].dtype;
            return 0;
        }
    }
    return -1;
}

/** The numbers of a tuple, at most FRG_MAX_DIM; how many, or -1 with an exception. */
static int read_axes(PyObject *tuple, int64_t to[FRG_MAX_DIM])
{
    const Py_ssize_t n = PyTuple_Size(tuple);
    for (Py_ssize_t k = 0; k < n && k < FRG_MAX_DIM; k++) {
        to[k] = PyLong_AsLongLong(PyTuple_GetItem(tuple, k));
    }
    return PyErr_Occurred() || n > FRG_MAX_DIM ? -1 : (int)n;
}

/** An array on a device, (kind, index, handle, offset, format, shape, strides) and its owner, which
 *  the tuple keeps: bytes to its first element, elements from one to the next. */
static int array_there(PyObject *tuple, const char *name, frg_array *out)
{
    int kind, index;
    unsigned long long handle, offset;
    const char *format;
    PyObject *shape, *strides, *owner;
    if (!PyArg_ParseTuple(tuple, "iiKKsO!O!|O", &kind, &index, &handle, &offset, &format,
                          &PyTuple_Type, &shape, &PyTuple_Type, &strides, &owner)) {
        return -1;
    }
    *out = (frg_array){.data = (void *)(uintptr_t)handle,
                       .offset = (size_t)offset,
                       .device = {(frg_device_kind)kind, index}};
    out->ndim = read_axes(shape, out->shape);
    if (out->ndim < 0 || read_axes(strides, out->stride) != out->ndim ||
        (find_dtype(format, 8, &out->dtype) < 0 && find_dtype(format, 4, &out->dtype) < 0)) {
        PyErr_Format(PyExc_TypeError, "%s: expected an array of float32 or float64 on a device",
                     name);
        return -1;
    }
    return 0;
}

int ext_array(PyObject *object, const char *name, int writable, Py_buffer *buffer, frg_array *out)
{
    if (PyTuple_Check(object)) {
        *buffer = (Py_buffer){.obj = NULL};
        return array_there(object, name, out);
    }
    const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, buffer, flags) < 0) {
        PyErr_Format(PyExc_TypeError, "%s: expected %s array of numbers, got %R", name,
                     writable ? "a writable" : "an", (PyObject *)Py_TYPE(object));
        return -1;
    }
    *out = (frg_array){.data = buffer->buf, .ndim = buffer->ndim};
    int fits = buffer->ndim <= FRG_MAX_DIM &&
               find_dtype(buffer->format, buffer->itemsize, &out->dtype) == 0;
    for (int k = 0; fits && k < buffer->ndim; k++) {
        out->shape[k] = buffer->shape[k];
        out->stride[k] = buffer->strides[k] / buffer->itemsize;
        fits = buffer->strides[k] % buffer->itemsize == 0;
    }
    if (!fits) {
        PyErr_Format(PyExc_TypeError, "%s: arrays of format '%s' with %d axes are not taken", name,
                     buffer->format ? buffer->format : "B", buffer->ndim);
        PyBuffer_Release(buffer);
        return -1;
    }
    return 0;
}

const char **ext_strings(PyObject *list, const char *name, Py_ssize_t *n)
{
    if (!PyList_Check(list)) { /* other sequences need not hold what they answer */
        PyErr_Format(PyExc_TypeError, "%s: expected a list of strings, got %R", name,
                     (PyObject *)Py_TYPE(list));
        return NULL;
    }
    *n = PyList_Size(list);
    const char **const out = PyMem_Malloc(sizeof *out * (size_t)(*n + 1));
    for (Py_ssize_t k = 0; out && k < *n; k++) {
        PyObject *const item = PyList_GetItem(list, k);
        out[k] = item && PyUnicode_Check(item) ? PyUnicode_AsUTF8AndSize(item, NULL) : NULL;
        if (!out[k]) {
            PyErr_Format(PyExc_TypeError, "%s: expected strings, item %zd is not one", name, k);
            PyMem_Free(out);
            return NULL;
        }
    }
    return out;
}

int ext_hold(ext_held *h, PyObject *object, const char *name, int writable, frg_array *out)
{
    if (ext_array(object, name, writable, &h->buffers[h->n], out) < 0) {
        return -1;
    }
    h->n++;
    return 0;
}

void ext_release(ext_held *h)
{
    while (h->n > 0) {
        PyBuffer_Release(&h->buffers[--h->n]);
    }
}

int ext_maybe(ext_held *h, PyObject *object, const char *name, int writable, frg_array *view,
              frg_array **out)
{
    *out = NULL;
    if (object == Py_None) {
        return 0;
    }
    *out = view;
    return ext_hold(h, object, name, writable, view);
}

void *ext_values(ext_held *h, PyObject *object, const char *name, int writable, frg_dtype dtype,
                 int64_t n)
{
    frg_array view, *a;
    if (ext_maybe(h, object, name, writable, &view, &a) < 0 || !a) {
        return NULL;
    }
    if (a->ndim != 1 || a->shape[0] != n) {
        const int64_t got = a->ndim == 1 ? a->shape[0] : a->ndim;
        PyErr_Format(PyExc_ValueError, "%s: expected %lld values, got %lld%s", name, (long long)n,
                     (long long)got, a->ndim == 1 ? "" : " axes");
        return NULL;
    }
    if (a->device.kind != FRG_CPU) {
        PyErr_Format(PyExc_TypeError, "%s: expected values in host memory", name);
        return NULL;
    }
    if (a->dtype != dtype || (n > 1 && a->stride[0] != 1)) {
        PyErr_Format(PyExc_ValueError, "%s: expected %lld contiguous values of type %s", name,
                     (long long)n, frg_dtype_name(dtype));
        return NULL;
    }
    return a->data;
}

/* ---- the module ------------------------------------------------------------------------------ */

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return Py_BuildValue("sss", frg_version(), frg_commit(), frg_blas_name());
}

/** tensor_there(capsule) -> the tuple of an array on a device, as long as the capsule lives. */
static PyObject *tensor_there(PyObject *module, PyObject *capsule)
{
    (void)module;
    frg_array a;
    return ext_tensor(capsule, "a tensor", &a) < 0 ? NULL : ext_there(&a);
}

static PyObject *list_of_choices(const ext_field *f)
{
    if (f->kind != IS_CHOICE) {
        return Py_NewRef(Py_None);
    }
    PyObject *const list = PyList_New(0);
    const char *at;
    for (int k = 0; list && choice_at(f->choices, k, &at) >= 0; k++) {
        PyObject *const word = choice_word(f->choices, k);
        if (word) {
            PyList_Append(list, word);
            Py_DECREF(word);
        }
    }
    return list;
}

/** {option: (default, choices or None)}. */
static PyObject *described(const ext_options *set)
{
    ext_field of_table[MOST_OPTIONS];
    void *const values = PyMem_Calloc(1, set->size);
    PyObject *const dict = values ? PyDict_New() : PyErr_NoMemory();
    if (dict) {
        set->unset(values);
    }
    if (set->table) {
        fields_of(set->table(), of_table);
    }
    for (const ext_field *f = set->table ? of_table : set->fields; dict && f->name; f++) {
        ext_put(dict, f->name,
                Py_BuildValue("NN", get_field((const char *)values + f->offset, f),
                              list_of_choices(f)));
    }
    PyMem_Free(values);
    return dict;
}

/** options() -> {call: {option: (default, choices or None)}}. */
static PyObject *options(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    const ext_options *const files[] = {ext_context_takes, ext_fe_takes, ext_gp_takes,
                                        ext_graph_takes,   ext_gw_takes, ext_gw_calls_takes,
                                        ext_qr_takes};
    PyObject *dict = PyDict_New();
    for (size_t k = 0; dict && k < sizeof files / sizeof *files; k++) {
        for (const ext_options *set = files[k]; set->name; set++) {
            ext_put(dict, set->name, described(set));
        }
    }
    if (PyErr_Occurred()) {
        Py_CLEAR(dict);
    }
    return dict;
}

static PyMethodDef functions[] = {
    {"options", options, METH_NOARGS, "options() -> {call: {option: (default, choices or None)}}"},
    {"tensor_there", tensor_there, METH_O, "What a DLPack capsule says of memory on a device."},
    {"version", version, METH_NOARGS, "version() -> (version, commit, blas)"},
    {NULL, NULL, 0, NULL},
};

static int module_exec(PyObject *module)
{
    PyObject *const errors = PyImport_ImportModule("fourge.errors");
    if (!errors) {
        return -1;
    }
    ext_state_of(module)->raise = PyObject_GetAttrString(errors, "from_status");
    Py_DECREF(errors);
    if (!ext_state_of(module)->raise || ext_types_context(module) < 0 ||
        ext_types_table(module) < 0 || ext_types_fe(module) < 0 || ext_types_gp(module) < 0 ||
        ext_types_soap(module) < 0 || ext_types_graph(module) < 0 || ext_types_gw(module) < 0) {
        return -1;
    }
    PyMethodDef *const tables[] = {ext_fe_functions,    ext_gp_functions, ext_gp_many_functions,
                                   ext_graph_functions, ext_gw_functions, ext_qr_functions};
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
        if (PyModule_AddFunctions(module, tables[k]) < 0) {
            return -1;
        }
    }
    return 0;
}

/** The references in the state, one after the other. */
#define EACH_REFERENCE(X)                                                                          \
    X(context_type)                                                                                \
    X(table_type)                                                                                  \
    X(fe_type) X(gp_type) X(soap_type) X(graph_type) X(sinkhorn_type) X(gw_type) X(raise)

static int module_visit(PyObject *module, visitproc visit, void *arg)
{
    ext_state *const s = ext_state_of(module);
#define VISIT(member) Py_VISIT(s->member);
    EACH_REFERENCE(VISIT)
#undef VISIT
    return 0;
}

static int module_clear(PyObject *module)
{
    ext_state *const s = ext_state_of(module);
#define CLEAR(member) Py_CLEAR(s->member);
    EACH_REFERENCE(CLEAR)
#undef CLEAR
    return 0;
}

PyMODINIT_FUNC PyInit__fourge(void);
PyMODINIT_FUNC PyInit__fourge(void)
{
    static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)module_exec}, {0, NULL}};
    static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                     .m_name = "fourge._fourge",
                                     .m_doc = "The C side of fourge; use the fourge package.",
                                     .m_size = sizeof(ext_state),
                                     .m_methods = functions,
                                     .m_slots = slots,
                                     .m_traverse = module_visit,
                                     .m_clear = module_clear};
    return PyModuleDef_Init(&definition);
}
