/* ext_module.c - the module, the context with its progress and signals, structs by table, arrays. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "ext.h"

ext_state *ext_state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

/* Daemon threads could compute on while the process ends: without an interpreter to ask for signals, and in memory that
 * the BLAS gives back at exit().  Their calls are stopped before, by what atexit runs, and raise SystemExit, which ends
 * a thread without a word. */
static atomic_ulong ending; /* the main thread where the process is about to end, 0 before */
static atomic_int running;  /* calls in the library, or waiting for another one */

static int is_late(void)
{
    const unsigned long last = ending;
    return last && last != PyThread_get_thread_ident();
}

PyObject *ext_raise(PyObject *module, frg_status status, const frg_context *ctx)
{
    if (PyErr_Occurred()) { /* a callback's exception, Ctrl-C among them, says more than "interrupted" */
        return NULL;
    }
    if (is_late()) {
        PyErr_SetNone(PyExc_SystemExit);
        return NULL;
    }
    PyObject *const error = PyObject_CallFunction(
        ext_state_of(module)->raise, "sssss", frg_status_name(status),
        ctx ? frg_message(ctx) : frg_status_sentence(status), ctx ? frg_error_code(ctx) : "",
        ctx ? frg_error_where(ctx) : "", ctx ? frg_error_hint(ctx) : "");
    if (error) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

/* ---- structs by table --------------------------------------------------------------------------- */

static int set_choice(int *to, const ext_field *f, PyObject *value)
{
    const char *const text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    for (int k = 0; text && f->choices[k]; k++) {
        if (strcmp(text, f->choices[k]) == 0) {
            *to = k;
            return 0;
        }
    }
    if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError, "%s=%R: expected one of '%s', '%s', ...", f->name, value,
                     f->choices[0], f->choices[1] ? f->choices[1] : f->choices[0]);
    }
    return -1;
}

static int set_field(char *at, const ext_field *f, PyObject *value)
{
    switch (f->kind) {
    case IS_DOUBLE:
        *(double *)(void *)at = PyFloat_AsDouble(value);
        break;
    case IS_INT:
        *(int *)(void *)at = (int)PyLong_AsLong(value);
        break;
    case IS_BOOL:
        *(int *)(void *)at = PyObject_IsTrue(value);
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
    case IS_CHOICE:
        return set_choice((int *)(void *)at, f, value);
    }
    if (!PyErr_Occurred()) {
        return 0;
    }
    if (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Format(PyExc_TypeError, "%s=%R: expected %s", f->name, value,
                     f->kind == IS_TEXT     ? "a str"
                     : f->kind == IS_DOUBLE ? "a number"
                                            : "an integer of 64 bits at most");
    }
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
            PyErr_Format(PyExc_TypeError, "there is no option '%s'", name);
            return -1;
        }
        if (set_field((char *)into + f->offset, f, value) < 0) {
            return -1;
        }
    }
    return 0;
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
        return PyUnicode_FromString(f->choices[*(const int *)(const void *)at]);
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

/* ---- arrays ------------------------------------------------------------------------------------- */

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

int ext_array(PyObject *object, const char *name, int writable, Py_buffer *buffer, frg_array *out)
{
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

const char **ext_strings(PyObject *sequence, const char *name, Py_ssize_t *n)
{
    *n = PySequence_Size(sequence);
    const char **const out = *n < 0 ? NULL : PyMem_Malloc(sizeof *out * (size_t)(*n + 1));
    for (Py_ssize_t k = 0; out && k < *n; k++) {
        PyObject *const item = PySequence_GetItem(sequence, k);
        out[k] = item && PyUnicode_Check(item) ? PyUnicode_AsUTF8AndSize(item, NULL) : NULL;
        Py_XDECREF(item); /* the sequence holds it */
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
    if (a->dtype != dtype || a->ndim != 1 || a->shape[0] != n || (n > 1 && a->stride[0] != 1)) {
        PyErr_Format(PyExc_ValueError, "%s: expected %lld contiguous values of type %s", name,
                     (long long)n, frg_dtype_name(dtype));
        return NULL;
    }
    return a->data;
}

/* ---- the context -------------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** Waits at most two seconds: a call looks for the end about once an iteration. */
static PyObject *end_calls(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    ending = PyThread_get_thread_ident();
    Py_BEGIN_ALLOW_THREADS for (int k = 0; running > 0 && k < 400; k++)
    {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    Py_END_ALLOW_THREADS return Py_NewRef(Py_None);
}

/** atexit.register(end_calls) in the main interpreter: others end before the process does. */
static int watch_the_end(void)
{
    static PyMethodDef method = {"end_calls", end_calls, METH_NOARGS,
                                 "Stops what daemon threads compute."};
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        return 0;
    }
    PyObject *const atexit = PyImport_ImportModule("atexit");
    PyObject *const function = PyCFunction_NewEx(&method, NULL, NULL);
    PyObject *const done =
        atexit && function ? PyObject_CallMethod(atexit, "register", "O", function) : NULL;
    Py_XDECREF(atexit);
    Py_XDECREF(function);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/** Called by the solver about once an iteration, without the lock: takes it at most 20 times a second to see
 *  signals and to tell the caller's function. */
static int on_progress(const frg_progress *p, void *user)
{
    if (is_late()) {
        return 1;
    }
    ext_context *const c = user;
    const double now = seconds();
    if (now - c->last_check < 0.05) {
        return 0;
    }
    c->last_check = now;
    const PyGILState_STATE state = PyGILState_Ensure();
    int stop = PyErr_CheckSignals() < 0;
    if (!stop && c->progress != Py_None) {
        PyObject *const answer =
            PyObject_CallFunction(c->progress, "ssLLddd", p->solver, p->phase, (long long)p->done,
                                  (long long)p->total, p->residual, p->target, p->seconds);
        stop = !answer || PyObject_IsTrue(answer) == 1;
        Py_XDECREF(answer);
    }
    PyGILState_Release(state);
    return stop;
}

/* A child of fork() has none of its parent's threads: OpenMP would wait for its pool for ever, a lock for a holder
 * that is not there.  Contexts of a child have one thread, which changes no bit; those of its parent with more, or
 * in use when it forked, are refused. */
static int forks;

static void count_fork(void)
{
    forks++;
    running = 0;
}

static int refuse_forked(void)
{
    PyErr_SetString(PyExc_RuntimeError,
                    "this object was made before os.fork(), by a process whose threads the child "
                    "does not have: make "
                    "it anew in the child (pickles go along), or make it with threads=1");
    return -1;
}

static const ext_field context_fields[] = {
    {"threads", offsetof(frg_context_opts, threads), IS_INT, NULL},
    {"seed", offsetof(frg_context_opts, seed), IS_INT64, NULL},
    {"memory_limit", offsetof(frg_context_opts, memory_limit), IS_INT64, NULL},
    {"time_limit", offsetof(frg_context_opts, time_limit), IS_DOUBLE, NULL},
    {NULL, 0, IS_INT, NULL}};

/** Context(options, progress): the library's context; progress is a function or None. */
static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *options = Py_None, *progress = Py_None;
    if (!PyArg_ParseTuple(args, "|OO", &options, &progress) ||
        (kwargs && PyDict_Size(kwargs) > 0)) {
        return NULL;
    }
    ext_context *const c = (ext_context *)PyType_GenericAlloc(type, 0);
    if (!c) {
        return NULL;
    }
    c->module = Py_XNewRef(PyType_GetModule(type));
    c->progress = Py_NewRef(progress);
    c->lock = PyThread_allocate_lock();
    if (!c->lock) {
        PyErr_NoMemory();
        Py_DECREF(c);
        return NULL;
    }
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.on_progress = on_progress;
    o.user = c;
    if (ext_fields_set(&o, context_fields, options) < 0) {
        Py_DECREF(c);
        return NULL;
    }
    c->forks = forks;
    o.threads = forks > 0 && o.threads >= 0 ? 1 : o.threads;
    const frg_status status = frg_context_create(&c->ctx, &o);
    if (status == FRG_BAD_ARG) {
        PyErr_Format(PyExc_ValueError,
                     "%R: expected threads from 0 to 4096, memory_limit and time_limit >= 0",
                     options);
    }
    if (status < 0) {
        ext_raise(c->module, status, NULL);
        Py_DECREF(c);
        return NULL;
    }
    return (PyObject *)c;
}

static void context_free(PyObject *self)
{
    ext_context *const c = (ext_context *)self;
    PyTypeObject *const type = Py_TYPE(self);
    frg_context_destroy(c->ctx);
    if (c->lock) {
        PyThread_free_lock(c->lock);
    }
    Py_XDECREF(c->module);
    Py_XDECREF(c->progress);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/** Takes the lock with the interpreter lock held; gives that one away only to wait. */
static int take(ext_context *c, unsigned long me)
{
    const int mine = PyThread_acquire_lock(c->lock, NOWAIT_LOCK);
    if (!mine && c->forks != forks) {
        return refuse_forked();
    }
    running++;
    if (!mine) {
        Py_BEGIN_ALLOW_THREADS PyThread_acquire_lock(c->lock, WAIT_LOCK);
        Py_END_ALLOW_THREADS
    }
    c->owner = me;
    return 0;
}

int ext_enter(ext_context *c)
{
    const unsigned long me = PyThread_get_thread_ident();
    if (is_late() || (c->owner == me && c->forks == forks)) {
        ext_raise(c->module, FRG_BUSY, NULL);
        return -1;
    }
    if (c->forks != forks && frg_threads(c->ctx) > 1) {
        return refuse_forked();
    }
    return take(c, me);
}

int ext_enter_free(ext_context *c)
{
    const unsigned long me = PyThread_get_thread_ident();
    if (c->owner == me || c->forks != forks) {
        return 0;
    }
    take(c, me);
    return 1;
}

void ext_leave(ext_context *c)
{
    running--;
    c->owner = 0;
    PyThread_release_lock(c->lock);
}

PyObject *ext_call_method(PyCFunction f, PyObject *self, PyObject *args)
{
    ext_context *const c = ((ext_object *)self)->context;
    if (ext_enter(c) < 0) {
        return NULL;
    }
    PyObject *const result = f(self, args);
    ext_leave(c);
    return result;
}

/** The context that comes first among the arguments; NULL where f is to say what is wrong with them. */
static ext_context *first_context(PyObject *module, PyObject *args)
{
    PyObject *const first = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
    return first && module &&
                   PyObject_TypeCheck(first, (PyTypeObject *)ext_state_of(module)->context_type)
               ? (ext_context *)first
               : NULL;
}

PyObject *ext_call_function(PyCFunction f, PyObject *self, PyObject *args)
{
    PyObject *const module = PyType_Check(self) ? PyType_GetModule((PyTypeObject *)self) : self;
    ext_context *const c = first_context(module, args);
    if (c && ext_enter(c) < 0) {
        return NULL;
    }
    PyObject *const result = f(self, args);
    if (c) {
        ext_leave(c);
    }
    return result;
}

PyObject *ext_call_new(newfunc f, PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    ext_context *const c = first_context(PyType_GetModule(type), args);
    if (c && ext_enter(c) < 0) {
        return NULL;
    }
    PyObject *const result = f(type, args, kwargs);
    if (c) {
        ext_leave(c);
    }
    return result;
}

void ext_call_free(destructor f, PyObject *self)
{
    ext_context *const c = ((ext_object *)self)->context;
    Py_XINCREF((PyObject *)c); /* the lock outlives what f lets go of */
    const int entered = c && ext_enter_free(c);
    f(self);
    if (entered) {
        ext_leave(c);
    }
    Py_XDECREF((PyObject *)c);
}

/** warnings() -> list of (code, message), and forgets them. */
static PyObject *context_warnings(PyObject *self, PyObject *unused)
{
    (void)unused;
    ext_context *const c = (ext_context *)self;
    PyObject *list = PyList_New(0);
    if (!list || ext_enter(c) < 0) {
        Py_XDECREF(list);
        return NULL;
    }
    for (int i = 0; list && i < frg_warning_count(c->ctx); i++) {
        PyObject *const pair =
            Py_BuildValue("ss", frg_warning_code(c->ctx, i), frg_warning_message(c->ctx, i));
        if (!pair || PyList_Append(list, pair) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(pair);
    }
    if (list) {
        frg_warnings_clear(c->ctx);
    }
    ext_leave(c);
    return list;
}

static PyObject *context_held(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromSize_t(frg_bytes_held(((ext_context *)self)->ctx));
}

ext_context *ext_context_of(PyObject *module, PyObject *object)
{
    if (!PyObject_TypeCheck(object, (PyTypeObject *)ext_state_of(module)->context_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a Context");
        return NULL;
    }
    return (ext_context *)object;
}

int ext_types_context(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"warnings", context_warnings, METH_NOARGS, "List of (code, message) since the last call."},
        {"bytes_held", context_held, METH_NOARGS, "Bytes the library holds for this context."},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_new, context_new},
        {Py_tp_dealloc, context_free},
        {Py_tp_methods, methods},
        {Py_tp_doc, "Context(options=None, progress=None): threads, seed, limits."},
        {0, NULL}};
    static PyType_Spec spec = {"fourge._fourge.Context", sizeof(ext_context), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    ext_state *const s = ext_state_of(module);
    s->context_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return s->context_type ? PyModule_AddObjectRef(module, "Context", s->context_type) : -1;
}

/* ---- the module --------------------------------------------------------------------------------- */

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return Py_BuildValue("sss", frg_version(), frg_commit(), frg_blas_name());
}

static PyMethodDef functions[] = {
    {"version", version, METH_NOARGS, "version() -> (version, commit, blas)"},
    {NULL, NULL, 0, NULL},
};

static int module_exec(PyObject *module)
{
    static int counting;
    if (!counting) {
        counting = pthread_atfork(NULL, NULL, count_fork) == 0;
    }
    PyObject *const errors = PyImport_ImportModule("fourge.errors");
    if (!errors || watch_the_end() < 0) {
        Py_XDECREF(errors);
        return -1;
    }
    ext_state_of(module)->raise = PyObject_GetAttrString(errors, "from_status");
    Py_DECREF(errors);
    if (!ext_state_of(module)->raise || ext_types_context(module) < 0 ||
        ext_types_table(module) < 0 || ext_types_fe(module) < 0 || ext_types_gp(module) < 0 ||
        ext_types_soap(module) < 0 || ext_types_gw(module) < 0) {
        return -1;
    }
    PyMethodDef *const tables[] = {ext_fe_functions, ext_gp_functions, ext_gw_functions};
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
