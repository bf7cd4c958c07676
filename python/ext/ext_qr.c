/* ext_qr.c - QR factorisations of many matrices in one call. */
#include "fourge/qr.h"

#include "ext.h"

#define AT(type, field) #field, offsetof(type, field)

static const char methods[] = "auto|householder|cholesky|vendor";

EXT_UNSET(qr)

const ext_options ext_qr_takes[] = {
    EXT_TABLE(qr),
    {NULL, NULL, NULL, 0, NULL},
};

static const ext_field report_fields[] = {{AT(frg_qr_report, method), IS_CHOICE, methods},
                                          {AT(frg_qr_report, passes), IS_INT, NULL},
                                          {AT(frg_qr_report, pivot), IS_DOUBLE, NULL},
                                          {AT(frg_qr_report, orthogonality), IS_DOUBLE, NULL},
                                          {AT(frg_qr_report, rank), IS_INT64, NULL},
                                          {NULL, 0, IS_INT, NULL}};

/** The matrices of one call; three arrays a stack. */
typedef struct {
    frg_array (*stacks)[3]; /* a, q, r */
    Py_buffer *buffers;
    Py_ssize_t n_stacks, n_buffers;
    frg_qr_item *items;
    frg_qr_report *reports;
    int64_t n;
} factoring;

static void release(factoring *f)
{
    while (f->n_buffers > 0) {
        PyBuffer_Release(&f->buffers[--f->n_buffers]);
    }
    PyMem_Free(f->buffers);
    PyMem_Free(f->stacks);
    PyMem_Free(f->items);
    PyMem_Free(f->reports);
}

/** A capsule, which the list keeps, or a buffer. */
static int view(factoring *f, PyObject *object, const char *name, int writable, frg_array *out)
{
    if (PyCapsule_CheckExact(object)) {
        return ext_tensor(object, name, out);
    }
    if (ext_array(object, name, writable, &f->buffers[f->n_buffers], out) < 0) {
        return -1;
    }
    f->n_buffers++;
    return 0;
}

/** Matrices in a stack: 1, or as many as the first of three axes is long. */
static int64_t depth(const frg_array *a)
{
    return a->ndim == 3 ? a->shape[0] : 1;
}

static frg_array matrix(const frg_array *stack, int64_t i)
{
    frg_array a = *stack;
    if (a.ndim == 3) {
        a.offset += (size_t)(i * a.stride[0]) * frg_sizeof(a.dtype);
        a.ndim = 2;
        a.shape[0] = a.shape[1];
        a.shape[1] = a.shape[2];
        a.stride[0] = a.stride[1];
        a.stride[1] = a.stride[2];
    }
    return a;
}

static int read_stacks(factoring *f, PyObject *list)
{
    f->n_stacks = PyList_Size(list);
    f->stacks = PyMem_Calloc((size_t)f->n_stacks + 1, sizeof *f->stacks);
    f->buffers = PyMem_Calloc(3 * (size_t)f->n_stacks + 1, sizeof *f->buffers);
    if (!f->stacks || !f->buffers) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t k = 0; k < f->n_stacks; k++) {
        PyObject *a, *q, *r;
        frg_array *const s = f->stacks[k];
        if (!PyArg_ParseTuple(PyList_GetItem(list, k), "OOO", &a, &q, &r) ||
            view(f, a, "a", 0, &s[0]) < 0 || view(f, q, "q", 1, &s[1]) < 0 ||
            (r != Py_None && view(f, r, "r", 1, &s[2]) < 0)) {
            return -1;
        }
        if (s[0].ndim < 2 || s[0].ndim > 3 || s[1].ndim != s[0].ndim ||
            depth(&s[1]) != depth(&s[0]) ||
            (s[2].data && (s[2].ndim != s[0].ndim || depth(&s[2]) != depth(&s[0])))) {
            PyErr_SetString(PyExc_ValueError,
                            "expected matrices, or stacks of as many in a, q and r");
            return -1;
        }
        f->n += depth(&s[0]);
    }
    return 0;
}

static int make_items(factoring *f)
{
    f->items = PyMem_Calloc((size_t)f->n + 1, sizeof *f->items);
    f->reports = PyMem_Calloc((size_t)f->n + 1, sizeof *f->reports);
    if (!f->items || !f->reports) {
        PyErr_NoMemory();
        return -1;
    }
    int64_t at = 0;
    for (Py_ssize_t k = 0; k < f->n_stacks; k++) {
        const frg_array *const s = f->stacks[k];
        for (int64_t i = 0; i < depth(&s[0]); i++) {
            f->items[at++] = (frg_qr_item){.a = matrix(&s[0], i),
                                           .q = matrix(&s[1], i),
                                           .r = s[2].data ? matrix(&s[2], i) : s[2]};
        }
    }
    return 0;
}

static frg_status factor(frg_context *ctx, factoring *f, const frg_qr_opts *o)
{
    frg_qr *qr;
    frg_status status = frg_qr_create(&qr, ctx, f->n, f->items, o);
    if (status >= 0) {
        status = frg_qr_run(qr, f->items, f->reports, NULL);
        frg_qr_destroy(qr);
    }
    return status;
}

static PyObject *reports_of(const factoring *f)
{
    PyObject *const list = ext_list_of(f->reports, f->n, sizeof *f->reports, report_fields);
    for (int64_t i = 0; list && i < f->n; i++) {
        PyObject *const one = PyList_GetItem(list, (Py_ssize_t)i);
        const unsigned flags = f->reports[i].flags;
        if (ext_put(one, "nonfinite", PyBool_FromLong(flags & FRG_QR_NONFINITE)) < 0 ||
            ext_put(one, "deficient", PyBool_FromLong(flags & FRG_QR_DEFICIENT)) < 0 ||
            ext_put(one, "fell_back", PyBool_FromLong(flags & FRG_QR_FELL_BACK)) < 0 ||
            ext_put(one, "shifted", PyBool_FromLong(flags & FRG_QR_SHIFTED)) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/** qr(context, stacks, options) -> one report a matrix; stacks: a list of (a, q, r), r may be
 *  None. */
static PyObject *qr(PyObject *module, PyObject *args)
{
    PyObject *context, *list, *options;
    ext_context *c;
    frg_qr_opts o;
    frg_qr_defaults(&o, sizeof o);
    if (!PyArg_ParseTuple(args, "OO!O", &context, &PyList_Type, &list, &options) ||
        !(c = ext_context_of(module, context)) ||
        ext_options_set(&o, frg_qr_options(), options) < 0) {
        return NULL;
    }
    factoring f = {.n = 0};
    frg_status status = FRG_BAD_ARG;
    if (read_stacks(&f, list) == 0 && make_items(&f) == 0) {
        status = FRG_OK;
        if (f.n > 0) {
            EXT_WORK(status = factor(c->ctx, &f, &o));
        }
    }
    PyObject *const result =
        ext_has_failed(status) ? ext_raise(module, status, c->ctx) : reports_of(&f);
    release(&f);
    return result;
}

/* ---- with the context to itself -------------------------------------------------------------- */

EXT_FUNCTION(qr)

PyMethodDef ext_qr_functions[] = {
    {"qr", qr_alone, METH_VARARGS, "qr(context, stacks, options) -> reports"},
    {NULL, NULL, 0, NULL},
};
