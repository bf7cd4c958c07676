/* ext_context.c - the context: progress and signals, forks and the end of the process, and whose
 * turn it is.
 *
 * A call of the library runs without the interpreter lock and gives it back for a moment, through
 * the thread state that it came with, whenever a callback is due: so callbacks run in the
 * interpreter that called. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ext.h"

/* Daemon threads could compute on while the process ends: without an interpreter to ask for
 * signals, and in memory that the BLAS gives back at exit().  Their calls are stopped before, by
 * what atexit runs, and raise SystemExit, which ends a thread without a word. */
static atomic_ulong ending; /* the main thread where the process is about to end, 0 before */
static atomic_int running;  /* calls in the library, or waiting for another one */

int ext_is_late(void)
{
    const unsigned long last = ending;
    return last && last != PyThread_get_thread_ident();
}

/** Waits at most two seconds: a call looks for the end about once an iteration. */
static PyObject *end_calls(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    ending = PyThread_get_thread_ident();
    PyThreadState *const own = PyEval_SaveThread();
    for (int k = 0; running > 0 && k < 400; k++) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    PyEval_RestoreThread(own);
    return Py_NewRef(Py_None);
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

/* ---- the interpreter lock -------------------------------------------------------------------- */

/** What this thread gave the interpreter lock away with; NULL while it has it. */
static _Thread_local PyThreadState *given;

void ext_lock_give(void)
{
    given = PyEval_SaveThread();
}

void ext_lock_take(void)
{
    PyThreadState *const own = given;
    given = NULL;
    PyEval_RestoreThread(own);
}

int ext_lock_borrow(void)
{
    const int away = given != NULL;
    if (away) {
        ext_lock_take();
    }
    return away;
}

void ext_lock_return(int away)
{
    if (away) {
        ext_lock_give();
    }
}

/* ---- progress and signals -------------------------------------------------------------------- */

double ext_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** Whether a signal, or the caller's function, says stop; an exception of either stays set. */
static int is_stopped(ext_context *c, const frg_progress *p)
{
    if (PyErr_Occurred() || PyErr_CheckSignals() < 0) {
        return 1;
    }
    if (c->progress == Py_None) {
        return 0;
    }
    c->shown = 1;
    PyObject *const answer =
        PyObject_CallFunction(c->progress, "ssLLddd", p->solver, p->phase, (long long)p->done,
                              (long long)p->total, p->residual, p->target, p->seconds);
    const int stop = !answer || PyObject_IsTrue(answer) != 0;
    Py_XDECREF(answer);
    return stop;
}

/** Called by the solver about once an iteration in the caller's thread; looks at most 20 times a
 *  second. */
static int on_progress(const frg_progress *p, void *user)
{
    if (ext_is_late()) {
        return 1;
    }
    ext_context *const c = user;
    const double now = ext_seconds();
    if (now - c->last_check < 0.05) {
        return 0;
    }
    c->last_check = now;
    const int away = ext_lock_borrow();
    const int stop = is_stopped(c, p);
    ext_lock_return(away);
    return stop;
}

/* ---- forks ----------------------------------------------------------------------------------- */

/* A child of fork() has none of its parent's threads: OpenMP would wait for its pool for ever, a
 * lock for a holder that is not there.  Contexts of a child have one thread, which changes no bit;
 * those of its parent with more, or in use when it forked, are refused. */
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

/* ---- whose turn it is ------------------------------------------------------------------------ */

/** Waits for the lock without the interpreter's.  With `stops` a signal ends the wait, as it would
 *  end the call. */
static int wait_for(const ext_context *c, int stops)
{
    enum { SLICE = 50000 }; /* microseconds */
    for (;;) {
        PyThreadState *const own = PyEval_SaveThread();
        const PyLockStatus got = PyThread_acquire_lock_timed(c->lock, SLICE, 0);
        PyEval_RestoreThread(own);
        if (got == PY_LOCK_ACQUIRED) {
            return 0;
        }
        if (stops && PyErr_CheckSignals() < 0) {
            return -1;
        }
    }
}

static int take(ext_context *c, unsigned long me, int stops)
{
    const int mine = PyThread_acquire_lock(c->lock, NOWAIT_LOCK);
    if (!mine && c->forks != forks) {
        return refuse_forked();
    }
    running++;
    if (!mine && wait_for(c, stops) < 0) {
        running--;
        return -1;
    }
    c->owner = me;
    return 0;
}

int ext_enter(ext_context *c)
{
    const unsigned long me = PyThread_get_thread_ident();
    if (ext_is_late() || (c->owner == me && c->forks == forks)) {
        ext_raise(c->module, FRG_BUSY, NULL);
        return -1;
    }
    if (c->forks != forks && frg_threads(c->ctx) > 1) {
        return refuse_forked();
    }
    return take(c, me, 1);
}

int ext_enter_free(ext_context *c)
{
    const unsigned long me = PyThread_get_thread_ident();
    return c->owner != me && c->forks == forks && take(c, me, 0) == 0;
}

/* ---- warnings: of the thread whose call had them --------------------------------------------- */

enum { WARNINGS_KEPT = 100 }; /* of a thread that does not ask for them */

static PyObject *own_thread(void)
{
    return PyLong_FromUnsignedLong(PyThread_get_thread_ident());
}

/** The library's warnings behind those that wait for this thread. */
static int move_warnings(const ext_context *c)
{
    PyObject *const me = own_thread();
    PyObject *list = me ? PyDict_GetItemWithError(c->warnings, me) : NULL;
    Py_XINCREF(list);
    if (me && !list && !PyErr_Occurred()) {
        list = PyList_New(0);
        if (list && PyDict_SetItem(c->warnings, me, list) < 0) {
            Py_CLEAR(list);
        }
    }
    int result = list ? 0 : -1;
    for (int i = 0; result == 0 && i < frg_warning_count(c->ctx); i++) {
        PyObject *const pair =
            Py_BuildValue("ss", frg_warning_code(c->ctx, i), frg_warning_message(c->ctx, i));
        if (!pair || (PyList_Size(list) < WARNINGS_KEPT && PyList_Append(list, pair) < 0)) {
            result = -1;
        }
        Py_XDECREF(pair);
    }
    frg_warnings_clear(c->ctx);
    Py_XDECREF(list);
    Py_XDECREF(me);
    return result;
}

/** A bar that was shown ends with the call. */
static void end_bar(ext_context *c)
{
    c->shown = 0;
    PyObject *const end = PyObject_GetAttrString(c->progress, "_call_ended");
    PyObject *const done = end ? PyObject_CallNoArgs(end) : NULL;
    Py_XDECREF(end);
    Py_XDECREF(done);
    PyErr_Clear(); /* other functions have no such attribute */
}

void ext_exit(ext_context *c)
{
    if (c->shown || frg_warning_count(c->ctx) > 0) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        if (frg_warning_count(c->ctx) > 0 && move_warnings(c) < 0) {
            PyErr_Clear(); /* out of memory for a warning */
        }
        if (c->shown) {
            end_bar(c);
        }
        PyErr_Restore(type, value, trace);
    }
    running--;
    c->owner = 0;
    PyThread_release_lock(c->lock);
}

/** warnings() -> list of (code, message), and forgets them. */
static PyObject *context_warnings(PyObject *self, PyObject *unused)
{
    (void)unused;
    const ext_context *const c = (ext_context *)self;
    PyObject *const me = own_thread();
    PyObject *list = me ? PyDict_GetItemWithError(c->warnings, me) : NULL;
    Py_XINCREF(list);
    if (list && PyDict_DelItem(c->warnings, me) < 0) {
        Py_CLEAR(list);
    }
    Py_XDECREF(me);
    return list || PyErr_Occurred() ? list : PyList_New(0);
}

/* ---- the type -------------------------------------------------------------------------------- */

static const ext_field context_fields[] = {
    {"threads", offsetof(frg_context_opts, threads), IS_INT, NULL},
    {"seed", offsetof(frg_context_opts, seed), IS_INT64, NULL},
    {"memory_limit", offsetof(frg_context_opts, memory_limit), IS_INT64, NULL},
    {"time_limit", offsetof(frg_context_opts, time_limit), IS_DOUBLE, NULL},
    {"device", offsetof(frg_context_opts, device), IS_DEVICE, NULL},
    {"spool", offsetof(frg_context_opts, spool), IS_TEXT, NULL},
    {NULL, 0, IS_INT, NULL}};

EXT_UNSET(context)

const ext_options ext_context_takes[] = {
    EXT_OPTIONS(context, context_fields),
    {NULL, NULL, NULL, 0, NULL},
};

/** NoDevice with the reason. */
static void refuse_device(PyObject *module, frg_device device)
{
    static const char *const names[] = {"cpu", "cuda", "opencl"};
    frg_device_info info;
    char text[sizeof info.reason + 128];
    if (device.kind == FRG_CPU) {
        snprintf(text, sizeof text,
                 "the environment variable FOURGE_DEVICE names no device: cpu, cuda[:i] or "
                 "opencl[:i]");
    } else {
        const int there = frg_device_get(device, &info) == FRG_OK;
        snprintf(text, sizeof text, "there is no device %s:%d here: %s", names[device.kind],
                 device.index, there ? "it cannot be opened" : info.reason);
    }
    ext_raise_text(module, FRG_NO_DEVICE, text, NULL);
}

/** BadArgument for options, or a queue, that no context can be made with. */
static void refuse_options(PyObject *module, PyObject *options, const frg_context_opts *o)
{
    if (o->stream) {
        ext_raise_text(
            module, FRG_BAD_ARG,
            "the queue of the array is none that the device can use: it has to be one of "
            "that device, in order",
            NULL);
        return;
    }
    PyErr_Format(PyExc_ValueError,
                 "%R: expected threads from 0 to 4096, memory_limit and time_limit >= 0", options);
}

/** Context(options, progress, stream): the library's context; progress is a function or None,
 *  stream the handle of the caller's queue or 0. */
static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *options = Py_None, *progress = Py_None;
    unsigned long long stream = 0;
    if (!PyArg_ParseTuple(args, "|OOK", &options, &progress, &stream) ||
        (kwargs && PyDict_Size(kwargs) > 0)) {
        return NULL;
    }
    ext_context *const c = (ext_context *)PyType_GenericAlloc(type, 0);
    if (!c) {
        return NULL;
    }
    c->module = Py_XNewRef(PyType_GetModule(type));
    c->progress = Py_NewRef(progress);
    c->warnings = PyDict_New();
    c->lock = PyThread_allocate_lock();
    if (!c->lock || !c->warnings) {
        PyErr_NoMemory();
        Py_DECREF(c);
        return NULL;
    }
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.stream = (void *)(uintptr_t)stream;
    o.on_progress = on_progress;
    o.user = c;
    o.copies_files = 1; /* a fault would take the interpreter with it */
    if (ext_fields_set(&o, context_fields, options) < 0) {
        Py_DECREF(c);
        return NULL;
    }
    c->forks = forks;
    o.threads = forks > 0 && o.threads >= 0 ? 1 : o.threads;
    const frg_status status = frg_context_create(&c->ctx, &o);
    if (status == FRG_NO_DEVICE) {
        refuse_device(c->module, o.device);
        Py_DECREF(c);
        return NULL;
    }
    if (status == FRG_BAD_ARG) {
        refuse_options(c->module, options, &o);
        Py_DECREF(c);
        return NULL;
    }
    if (status < 0) {
        ext_raise(c->module, status, NULL);
        Py_DECREF(c);
        return NULL;
    }
    return (PyObject *)c;
}

/** A function for progress may hold what holds the context; it was there before, so that a cycle
 *  has another object that can let go, and tp_clear is not needed. */
static int context_visit(PyObject *self, visitproc visit, void *arg)
{
    const ext_context *const c = (ext_context *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(c->module);
    Py_VISIT(c->progress);
    return 0;
}

static void context_free(PyObject *self)
{
    ext_context *const c = (ext_context *)self;
    PyTypeObject *const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    frg_context_destroy(c->ctx);
    if (c->lock) {
        PyThread_free_lock(c->lock);
    }
    Py_XDECREF(c->module);
    Py_XDECREF(c->progress);
    Py_XDECREF(c->warnings);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *context_held(PyObject *self, PyObject *unused)
{
    (void)unused;
    ext_context *const c = (ext_context *)self;
    if (ext_enter(c) < 0) {
        return NULL;
    }
    const size_t held = frg_bytes_held(c->ctx);
    ext_exit(c);
    return PyLong_FromSize_t(held);
}

static PyObject *context_peak(PyObject *self, PyObject *unused)
{
    (void)unused;
    ext_context *const c = (ext_context *)self;
    if (ext_enter(c) < 0) {
        return NULL;
    }
    const size_t peak = frg_peak_bytes(c->ctx);
    ext_exit(c);
    return PyLong_FromSize_t(peak);
}

/** check_spool(): raises where the folder that was given cannot be used. */
static PyObject *context_check_spool(PyObject *self, PyObject *unused)
{
    (void)unused;
    ext_context *const c = (ext_context *)self;
    if (ext_enter(c) < 0) {
        return NULL;
    }
    const frg_status status = frg_spool_usable(c->ctx);
    ext_exit(c);
    return status < 0 ? ext_raise(c->module, status, c->ctx) : Py_NewRef(Py_None);
}

/** set_stream(handle): the caller's queue, 0: the context's own. */
static PyObject *context_set_stream(PyObject *self, PyObject *handle)
{
    ext_context *const c = (ext_context *)self;
    const unsigned long long stream = PyLong_AsUnsignedLongLong(handle);
    if (PyErr_Occurred() || ext_enter(c) < 0) {
        return NULL;
    }
    frg_status status;
    EXT_WORK(status = frg_context_set_stream(c->ctx, (void *)(uintptr_t)stream));
    ext_exit(c);
    return status < 0 ? ext_raise(c->module, status, c->ctx) : Py_NewRef(Py_None);
}

/** get(vector, out): from the device. */
static PyObject *context_get(PyObject *self, PyObject *args)
{
    ext_context *const c = (ext_context *)self;
    PyObject *there, *here;
    if (!PyArg_ParseTuple(args, "OO", &there, &here) || ext_enter(c) < 0) {
        return NULL;
    }
    ext_held h = {.n = 0};
    frg_array view;
    frg_status status = FRG_BAD_ARG;
    if (ext_hold(&h, there, "the vector", 0, &view) == 0) {
        double *const x = ext_values(&h, here, "numbers", 1, FRG_F64, view.shape[0]);
        if (x) {
            EXT_WORK(status = frg_array_get(c->ctx, view, x));
        }
    }
    ext_release(&h);
    ext_exit(c);
    return status < 0 || PyErr_Occurred()
               ? (PyErr_Occurred() ? NULL : ext_raise(c->module, status, c->ctx))
               : Py_NewRef(Py_None);
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
        {"warnings", context_warnings, METH_NOARGS,
         "List of (code, message) that calls of this thread had since it asked last."},
        {"bytes_held", context_held, METH_NOARGS, "Bytes the library holds for this context."},
        {"peak_bytes", context_peak, METH_NOARGS, "The most bytes that it held at a time."},
        {"check_spool", context_check_spool, METH_NOARGS,
         "Raises where the spool's folder cannot be used."},
        {"set_stream", context_set_stream, METH_O, "The caller's queue of the device; 0: its own."},
        {"get", context_get, METH_VARARGS, "get(vector, out): from the device."},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_new, context_new},
        {Py_tp_dealloc, context_free},
        {Py_tp_traverse, context_visit},
        {Py_tp_methods, methods},
        {Py_tp_doc, "Context(options=None, progress=None, stream=0): threads, seed, limits."},
        {0, NULL}};
    static PyType_Spec spec = {"fourge._fourge.Context", sizeof(ext_context), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
    static int counting;
    if (!counting) {
        counting = pthread_atfork(NULL, NULL, count_fork) == 0;
    }
    ext_state *const s = ext_state_of(module);
    s->context_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return s->context_type && watch_the_end() == 0
               ? PyModule_AddObjectRef(module, "Context", s->context_type)
               : -1;
}
