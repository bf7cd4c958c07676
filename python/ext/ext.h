/* ext.h - the Python extension `fourge._fourge`: what its files share.
 *
 * The stable ABI of Python 3.11, the public headers of fourge, and nothing else; no NumPy.  Arrays
 * come in by the buffer protocol and results go out as dicts, bytes and into the caller's buffers;
 * the Python files of the package give them names and shapes.  The interpreter lock is released
 * while the library works.
 */
#ifndef FOURGE_PYTHON_EXT_H
#define FOURGE_PYTHON_EXT_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "fourge/fe.h"
#include "fourge/fourge.h"
#include "fourge/gp.h"
#include "fourge/gw.h"
#include "fourge/table.h"

/* ---- structs by table ------------------------------------------------------------------------ */

typedef enum {
    IS_DOUBLE,
    IS_INT,
    IS_BOOL,
    IS_INT64,
    IS_SIZE,
    IS_TEXT,
    IS_CHOICE,
    IS_DEVICE,
    IS_HOST_STEPS /* of a report: a dict of calls by name */
} ext_kind;

/** One field of an options or result struct. */
typedef struct {
    const char *name;
    size_t offset;
    ext_kind kind;
    const char *choices; /* IS_CHOICE: the enum's names from 0 on, "a|b|c" */
} ext_field;

/** Sets the fields that `options` (a dict or None) names; strings live as long as the dict.
 *  0, or -1 with TypeError or ValueError naming the option. */
int ext_fields_set(void *into, const ext_field *fields, PyObject *options);
/** A new dict of all fields. */
PyObject *ext_fields_get(const void *from, const ext_field *fields);
/** dict[key] = value, taking the reference to value; 0, or -1 (also where value is NULL). */
int ext_put(PyObject *dict, const char *key, PyObject *value);

/** The same of a struct of options by the library's table of it, less what one value cannot say. */
int ext_options_set(void *into, const frg_option *table, PyObject *options);
PyObject *ext_options_get(const void *from, const frg_option *table);
/** The place of `word` among choices "a|b|c"; -1: it is none. */
int ext_choice(const char *choices, const char *word);

/** What one call takes: its fields (NULL: those of the table), and a function that sets all of them
 *  to their defaults. */
typedef struct {
    const char *name;
    const ext_field *fields;
    const frg_option *(*table)(void);
    size_t size;
    void (*unset)(void *options);
} ext_options;
/** unset of the struct frg_NAME_opts. */
#define EXT_UNSET(name)                                                                            \
    static void name##_unset(void *options)                                                        \
    {                                                                                              \
        frg_##name##_defaults(options, sizeof(frg_##name##_opts));                                 \
    }
#define EXT_OPTIONS(name, fields)                                                                  \
    {                                                                                              \
#name, fields, NULL, sizeof(frg_##name##_opts), name##_unset                               \
    }
/** Of a struct whose table is frg_NAME_options(). */
#define EXT_TABLE(name)                                                                            \
    {                                                                                              \
#name, NULL, frg_##name##_options, sizeof(frg_##name##_opts), name##_unset                 \
    }
/** Those of each file, up to one without a name. */
extern const ext_options ext_context_takes[], ext_fe_takes[], ext_gp_takes[], ext_graph_takes[],
    ext_gw_takes[], ext_gw_calls_takes[], ext_qr_takes[];

/* ---- the module ------------------------------------------------------------------------------ */

typedef struct {
    PyObject *context_type, *table_type, *fe_type, *gp_type, *soap_type, *graph_type,
        *sinkhorn_type, *gw_type;
    PyObject *raise; /* fourge.errors.from_status */
} ext_state;
ext_state *ext_state_of(PyObject *module);
/** The tuple of an array on a device. */
PyObject *ext_there(const frg_array *a);

/** Whether a call that has all its result or none has none: it failed, was stopped, or a callback
 *  raised. */
int ext_has_failed(frg_status status);
/** Raises what the status and the context's message say; always returns NULL. */
PyObject *ext_raise(PyObject *module, frg_status status, const frg_context *ctx);
/** The same with a text of the extension's own. */
PyObject *ext_raise_text(PyObject *module, frg_status status, const char *text,
                         const frg_context *ctx);

typedef struct {
    PyObject_HEAD frg_context *ctx;
    PyObject *module, *progress;
    PyObject *warnings; /* {thread: list of (code, message)}, until it asks for them */
    int shown;          /* the function was called during this call */
    double last_check;
    PyThread_type_lock lock; /* held by the call that uses the context */
    unsigned long owner;     /* the thread of that call, 0 if there is none */
    int forks;               /* of the process when it was made */
} ext_context;
/** Everything that is made from a context begins so; others: contexts of what it reads, or NULL. */
#define EXT_HEAD PyObject_HEAD ext_context *context, *others[2];
typedef struct {
    EXT_HEAD
} ext_object;
/** tp_traverse of what begins so; an object with more to visit calls it first. */
int ext_visit(PyObject *self, visitproc visit, void *arg);
/** A zeroed object of a type that begins so, made from `c`; NULL with MemoryError. */
void *ext_empty(PyTypeObject *type, ext_context *c);
/** The end of tp_dealloc of what begins so. */
void ext_drop(PyObject *self);
/** The exception of a status, out of an object that begins so: NULL. */
PyObject *ext_failed(PyObject *self, frg_status status);
/** None, or NULL with the exception where the status or one that is set says so. */
PyObject *ext_answer(PyObject *self, frg_status status);
enum { EXT_TYPE = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC };

/* ---- without the interpreter lock ------------------------------------------------------------ */

void ext_lock_give(void);
void ext_lock_take(void);
/** Work of the library, without the interpreter lock; whatever may take long or report progress. */
#define EXT_WORK(...) (ext_lock_give(), (void)(__VA_ARGS__), ext_lock_take())
/** For callbacks out of EXT_WORK, in the thread that does it: the lock for a moment; the answer
 *  goes to ext_lock_return. */
int ext_lock_borrow(void);
void ext_lock_return(int away);
/** Of the clock. */
double ext_seconds(void);
/** Whether the process is about to end and this thread is not the one that ends it. */
int ext_is_late(void);

/* ---- one call at a time ---------------------------------------------------------------------- */

/** A context and what is made from it serve one call at a time; others wait here, without the
 *  interpreter lock. 0, or -1 with fourge.errors.Internal where the call comes out of a callback of
 *  the one it would wait for, and with KeyboardInterrupt where Ctrl-C ends the wait. */
int ext_enter(ext_context *c);
void ext_exit(ext_context *c);
/** For destructors: nothing to wait for where the thread's own call is the one. */
int ext_enter_free(ext_context *c);

PyObject *ext_call_method(PyCFunction f, PyObject *self, PyObject *args);
/** The same for a function or class method, with the contexts of all its arguments. */
PyObject *ext_call_function(PyCFunction f, PyObject *self, PyObject *args);
PyObject *ext_call_new(newfunc f, PyTypeObject *type, PyObject *args, PyObject *kwargs);
void ext_call_free(destructor f, PyObject *self);

/** name_alone: `name` with its contexts to itself. */
#define EXT_METHOD(name)                                                                           \
    static PyObject *name##_alone(PyObject *self, PyObject *args)                                  \
    {                                                                                              \
        return ext_call_method(name, self, args);                                                  \
    }
#define EXT_FUNCTION(name)                                                                         \
    static PyObject *name##_alone(PyObject *self, PyObject *args)                                  \
    {                                                                                              \
        return ext_call_function(name, self, args);                                                \
    }
#define EXT_NEW(name)                                                                              \
    static PyObject *name##_alone(PyTypeObject *type, PyObject *args, PyObject *kwargs)            \
    {                                                                                              \
        return ext_call_new(name, type, args, kwargs);                                             \
    }
#define EXT_FREE(name)                                                                             \
    static void name##_alone(PyObject *self)                                                       \
    {                                                                                              \
        ext_call_free(name, self);                                                                 \
    }
/** The context of a Python object, or NULL with TypeError. */
ext_context *ext_context_of(PyObject *module, PyObject *object);

typedef struct {
    EXT_HEAD
    frg_table *table;
} ext_table;
ext_table *ext_table_of(PyObject *module, PyObject *object);
/** The graph of a Python object, or NULL with TypeError. */
const frg_graph *ext_graph_of(PyObject *module, PyObject *object);
/** The plan of a solver, or NULL with ValueError before its first run. */
const frg_plan *ext_gw_plan(PyObject *solver);
/** A table as {name: (kind, bytes, labels or None)}. */
PyObject *ext_table_dict(const frg_table *t);

/** A view of an object that has a buffer, or of a tuple that tells of an array on a device (as
 *  tensor_there of the module does), which the caller keeps; release it with PyBuffer_Release.  0,
 *  or -1 with an exception that names the argument. */
int ext_array(PyObject *object, const char *name, int writable, Py_buffer *buffer, frg_array *out);

/** The view of a DLPack capsule, which the caller keeps as long as the view is used.  0, or -1 with
 *  TypeError. */
int ext_tensor(PyObject *capsule, const char *name, frg_array *out);

/** The buffers that one call holds; released together. */
typedef struct {
    Py_buffer buffers[10]; /* as many as a call has arrays at most */
    int n;
} ext_held;
/** ext_array into the call's list. */
int ext_hold(ext_held *h, PyObject *object, const char *name, int writable, frg_array *out);
void ext_release(ext_held *h);
/** As ext_hold; *out is NULL where the object is None, `view` otherwise. */
int ext_maybe(ext_held *h, PyObject *object, const char *name, int writable, frg_array *view,
              frg_array **out);
/** Contiguous values of one type, or NULL with an exception (None gives NULL without). */
void *ext_values(ext_held *h, PyObject *object, const char *name, int writable, frg_dtype dtype,
                 int64_t n);

/** The strings of a list in PyMem memory; they live as long as `list`.  NULL with an exception. */
const char **ext_strings(PyObject *list, const char *name, Py_ssize_t *n);
/** n structs of `size` bytes as a list of dicts. */
PyObject *ext_list_of(const void *first, int64_t n, size_t size, const ext_field *fields);

int ext_types_context(PyObject *module);
int ext_types_table(PyObject *module);
int ext_types_fe(PyObject *module);
/** The fields of a row of a table of coefficients. */
extern const ext_field ext_coefficient_fields[];
/** First stages and tests under the keys of the JSON; None without instruments. */
PyObject *ext_fe_iv(const frg_fe_result *r);
/** What a generalised linear model has beside; None for least squares. */
PyObject *ext_fe_glm(const frg_fe_result *r);
/** Leave-out variance components. */
PyObject *ext_fe_leave_out(const frg_leave_out *l);
int ext_types_gp(PyObject *module);
int ext_types_soap(PyObject *module);
int ext_types_graph(PyObject *module);
int ext_types_gw(PyObject *module);
/** A value with its certificates, `closest` a pair. */
PyObject *ext_gp_value_dict(const frg_gp_value *v);
extern PyMethodDef ext_fe_functions[], ext_gp_functions[], ext_gp_many_functions[],
    ext_graph_functions[], ext_gw_functions[], ext_qr_functions[];

#endif
