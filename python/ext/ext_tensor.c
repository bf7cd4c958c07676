/* ext_tensor.c - tensors by DLPack: memory of other libraries, bfloat16 among it, without a copy.
 * One on a device is handed on as such: the library refuses by name what it takes from the host
 * alone.
 *
 * A capsule "dltensor" (or "dltensor_versioned", from version 1.0 on) describes memory that lives
 * as long as the capsule.  It is read and never taken over, so its own destructor frees what its
 * maker made for it. https://dmlc.github.io/dlpack/latest/c_api.html */
#include <string.h>

#include "ext.h"

typedef struct {
    int32_t kind; /* see place_of */
    int32_t index;
} dl_device;

typedef struct {
    uint8_t code; /* 0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool */
    uint8_t bits;
    uint16_t lanes;
} dl_type;

typedef struct {
    void *data;
    dl_device device;
    int32_t ndim;
    dl_type type;
    int64_t *shape;
    int64_t *strides; /* elements; NULL: row-major */
    uint64_t byte_offset;
} dl_tensor;

typedef struct {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(void *);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

static const dl_tensor *described(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        return PyCapsule_GetPointer(capsule, "dltensor");
    }
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        const dl_versioned *const v = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        return v->major == 1 ? &v->tensor : NULL;
    }
    return NULL;
}

static int type_of(const dl_tensor *t, frg_dtype *out)
{
    static const struct {
        uint8_t code, bits;
        frg_dtype dtype;
    } known[] = {{2, 64, FRG_F64},  {2, 32, FRG_F32}, {2, 16, FRG_F16},
                 {4, 16, FRG_BF16}, {0, 64, FRG_I64}, {0, 32, FRG_I32},
                 {1, 16, FRG_U16},  {1, 8, FRG_U8},   {6, 8, FRG_U8}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (t->type.lanes == 1 && t->type.code == known[k].code && t->type.bits == known[k].bits) {
            *out = known[k].dtype;
            return 0;
        }
    }
    return -1;
}

PyObject *ext_there(const frg_array *a)
{
    PyObject *const shape = PyTuple_New(a->ndim), *const strides = PyTuple_New(a->ndim);
    for (int k = 0; shape && strides && k < a->ndim; k++) {
        PyTuple_SetItem(shape, k, PyLong_FromLongLong(a->shape[k]));
        PyTuple_SetItem(strides, k, PyLong_FromLongLong(a->stride[k]));
    }
    if (!shape || !strides || PyErr_Occurred()) {
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        return NULL;
    }
    const char *const format = a->dtype == FRG_F64 ? "d" : a->dtype == FRG_F32 ? "f" : "?";
    return Py_BuildValue("iiKKsNN", (int)a->device.kind, a->device.index,
                         (unsigned long long)(uintptr_t)a->data, (unsigned long long)a->offset,
                         format, shape, strides);
}

/** Where the elements lie, by DLPack's numbers: memory of the host is the CPU's, pinned by the
 *  driver of CUDA or ROCm or not; -1 for devices that the library has no kind for. */
static int place_of(const dl_device *d, frg_device *out)
{
    enum { CPU = 1, CUDA = 2, CUDA_HOST = 3, OPENCL = 4, ROCM_HOST = 11, CUDA_MANAGED = 13 };
    const int on_host = d->kind == CPU || d->kind == CUDA_HOST || d->kind == ROCM_HOST;
    const int on_cuda = d->kind == CUDA || d->kind == CUDA_MANAGED;
    if (!on_host && !on_cuda && d->kind != OPENCL) {
        return -1;
    }
    *out = (frg_device){on_host   ? FRG_CPU
                        : on_cuda ? FRG_CUDA
                                  : FRG_OPENCL,
                        on_host ? 0 : d->index};
    return 0;
}

int ext_tensor(PyObject *capsule, const char *name, frg_array *out)
{
    const dl_tensor *const t = described(capsule);
    if (!t) {
        PyErr_Format(PyExc_TypeError, "%s: expected a DLPack capsule, got %R", name,
                     (PyObject *)Py_TYPE(capsule));
        return -1;
    }
    *out = (frg_array){.data = t->data, .offset = (size_t)t->byte_offset, .ndim = t->ndim};
    if (place_of(&t->device, &out->device) < 0 || t->ndim < 0 || t->ndim > FRG_MAX_DIM ||
        type_of(t, &out->dtype) < 0) {
        PyErr_Format(
            PyExc_TypeError,
            "%s: expected a tensor of real numbers in the memory of the CPU with at most %d "
            "axes, got one of %d axes on device kind %d, type %d of %d bits",
            name, FRG_MAX_DIM, (int)t->ndim, (int)t->device.kind, (int)t->type.code,
            (int)t->type.bits);
        return -1;
    }
    int64_t stride = 1;
    for (int k = t->ndim - 1; k >= 0; k--) {
        out->shape[k] = t->shape[k];
        out->stride[k] = t->strides ? t->strides[k] : stride;
        stride *= t->shape[k];
    }
    return 0;
}
