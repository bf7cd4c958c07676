/* ext_gp_many.c - many small processes with one expression, each with data of its own size. */
#include "fourge/gp.h"

#include <math.h>

#include "ext.h"

/** The members of one call and what they point to. */
typedef struct {
    int64_t n, n_buffers;
    frg_gp_member *members;
    Py_buffer *buffers; /* x, y and theta of each */
    double *numbers;    /* gradients, then fitted values, of each member `parameters[i]` */
    int64_t *parameters, total;
} many;

static void release(many *m)
{
    while (m->n_buffers > 0) {
        PyBuffer_Release(&m->buffers[--m->n_buffers]);
    }
    PyMem_Free(m->buffers);
    PyMem_Free(m->members);
    PyMem_Free(m->parameters);
    PyMem_Free(m->numbers);
}

static int hold(many *m, PyObject *object, const char *name, frg_array *out)
{
    if (ext_array(object, name, 0, &m->buffers[m->n_buffers], out) < 0) {
        return -1;
    }
    m->n_buffers++;
    return 0;
}

/** problems: a list of (x, y, theta or None). */
static int read_problems(many *m, PyObject *list)
{
    m->n = PyList_Size(list);
    m->members = PyMem_Calloc((size_t)m->n + 1, sizeof *m->members);
    m->buffers = PyMem_Calloc(3 * (size_t)m->n + 1, sizeof *m->buffers);
    m->parameters = PyMem_Calloc((size_t)m->n + 1, sizeof *m->parameters);
    if (!m->members || !m->buffers || !m->parameters) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < m->n; i++) {
        PyObject *x, *y, *theta;
        frg_array start;
        frg_gp_value *const value = &m->members[i].value; /* stays so where there is none */
        value->log_likelihood = value->log_prior = value->per_point = (double)NAN;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "OOO", &x, &y, &theta) ||
            hold(m, x, "x", &m->members[i].x) < 0 || hold(m, y, "y", &m->members[i].y) < 0) {
            return -1;
        }
        if (theta != Py_None) {
            if (hold(m, theta, "theta", &start) < 0) {
                return -1;
            }
            m->members[i].theta = start.data;
            m->parameters[i] = start.ndim == 1 && start.dtype == FRG_F64 ? start.shape[0] : -1;
        }
    }
    return 0;
}

/** Parameters of a process with the data of member i: they depend on its columns. */
static frg_status count_parameters(frg_context *ctx, const frg_gp_member *one, const char *kernel,
                                   const frg_gp_opts *o, int64_t *count)
{
    frg_gp *gp;
    const frg_status status = frg_gp_create(&gp, ctx, one->x, one->y, kernel, o);
    if (status >= 0) {
        *count = frg_gp_parameter_count(gp);
        frg_gp_destroy(gp);
    }
    return status;
}

/** The parameters of each member, by the first good one with as many columns; 0 where there is
 *  none. */
static int measure(many *m, frg_context *ctx, const char *kernel, const frg_gp_opts *o)
{
    for (int64_t i = 0; i < m->n; i++) {
        const int64_t d = m->members[i].x.ndim == 2 ? m->members[i].x.shape[1] : 1;
        int64_t same = 0, count = 0;
        while (same < i && ((m->members[same].x.ndim == 2 ? m->members[same].x.shape[1] : 1) != d ||
                            m->parameters[same] <= 0)) {
            same++;
        }
        if (same < i) {
            count = m->parameters[same];
        } else if (count_parameters(ctx, &m->members[i], kernel, o, &count) < 0) {
            count = 0; /* the batch says why */
        }
        if (m->members[i].theta && count > 0 && m->parameters[i] != count) {
            PyErr_Format(PyExc_ValueError, "theta of problem %lld: expected %lld float64",
                         (long long)i, (long long)count);
            return -1;
        }
        m->parameters[i] = count;
        m->total += count;
    }
    m->numbers = PyMem_Calloc(2 * (size_t)m->total + 1, sizeof *m->numbers);
    if (!m->numbers) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static void place(many *m, int gradients, int fits)
{
    int64_t at = 0;
    for (int64_t i = 0; i < m->n; i++) {
        if (m->parameters[i] > 0) {
            m->members[i].gradient = gradients ? m->numbers + at : NULL;
            m->members[i].fitted = fits ? m->numbers + m->total + at : NULL;
        }
        at += m->parameters[i];
    }
}

static PyObject *numbers(const double *from, int64_t n)
{
    return from ? PyBytes_FromStringAndSize((const char *)from, (Py_ssize_t)(n * 8))
                : Py_NewRef(Py_None);
}

static PyObject *results(const many *m)
{
    PyObject *const list = PyList_New(0);
    for (int64_t i = 0; list && i < m->n; i++) {
        const frg_gp_member *const one = &m->members[i];
        PyObject *const dict = ext_gp_value_dict(&one->value);
        if (!dict ||
            ext_put(dict, "status", PyUnicode_FromString(frg_status_name(one->status))) < 0 ||
            ext_put(dict, "message", PyUnicode_FromString(one->message)) < 0 ||
            ext_put(dict, "warnings", PyLong_FromLong(one->n_warnings)) < 0 ||
            ext_put(dict, "gradient", numbers(one->gradient, m->parameters[i])) < 0 ||
            ext_put(dict, "theta", numbers(one->fitted, m->parameters[i])) < 0 ||
            PyList_Append(list, dict) < 0) {
            Py_XDECREF(dict);
            Py_DECREF(list);
            return NULL;
        }
        Py_DECREF(dict);
    }
    return list;
}

/** gp_many(context, problems, kernel, options, columns, gradients, fit) -> a dict a problem; fit:
 *  options or None. */
static PyObject *gp_many(PyObject *module, PyObject *args)
{
    PyObject *context, *list, *options, *columns, *fit;
    const char *kernel;
    int gradients;
    ext_context *c;
    frg_gp_opts o;
    frg_gp_fit_opts f;
    frg_gp_defaults(&o, sizeof o);
    frg_gp_fit_defaults(&f, sizeof f);
    if (!PyArg_ParseTuple(args, "OO!sOOpO", &context, &PyList_Type, &list, &kernel, &options,
                          &columns, &gradients, &fit) ||
        !(c = ext_context_of(module, context)) ||
        ext_options_set(&o, frg_gp_options(), options) < 0 ||
        ext_options_set(&f, frg_gp_fit_options(), fit) < 0) {
        return NULL;
    }
    const char **names = NULL;
    Py_ssize_t n_names = 0;
    if (columns != Py_None && !(names = ext_strings(columns, "columns", &n_names))) {
        return NULL;
    }
    o.column_names = names;
    many m = {.n = 0};
    PyObject *result = NULL;
    int good = read_problems(&m, list) == 0;
    for (int64_t i = 0; good && names && i < m.n; i++) {
        if (n_names != (m.members[i].x.ndim == 2 ? m.members[i].x.shape[1] : 1)) {
            PyErr_Format(PyExc_ValueError, "columns: %zd names, problem %lld has %lld columns",
                         n_names, (long long)i, (long long)m.members[i].x.shape[1]);
            good = 0;
        }
    }
    if (good && measure(&m, c->ctx, kernel, &o) == 0) {
        frg_status status;
        place(&m, gradients, fit != Py_None);
        EXT_WORK(status = fit == Py_None
                              ? frg_gp_batch_eval(c->ctx, m.n, m.members, kernel, &o)
                              : frg_gp_batch_fit(c->ctx, m.n, m.members, kernel, &o, &f));
        result = status < 0 || PyErr_Occurred() ? ext_raise(module, status, c->ctx) : results(&m);
    }
    release(&m);
    PyMem_Free(names);
    return result;
}

/* ---- with the context to itself -------------------------------------------------------------- */

EXT_FUNCTION(gp_many)

PyMethodDef ext_gp_many_functions[] = {
    {"gp_many", gp_many_alone, METH_VARARGS,
     "gp_many(context, problems, kernel, options, columns, gradients, fit) -> results"},
    {NULL, NULL, 0, NULL},
};
