/* caller.h - the caller's side of arrays on a device: memory and a queue made by the driver's own
 * calls, as programs beside the library make them. */
#ifndef FOURGE_CALLER_H
#define FOURGE_CALLER_H

#include <dlfcn.h>

#include "device/cuda/cuda_api.h"
#include "device/opencl/opencl_api.h"
#include "test.h"

/** What the caller has open of a driver; of the host nothing. */
typedef struct {
    frg_device which;
    opencl_api cl;
    cuda_api cu;
    cl_object device, context, queue; /* of cuda the queue alone */
} caller;

TEST_UNUSED static bool caller_finds(caller *c)
{
    const bool is_opencl = c->which.kind == FRG_OPENCL;
    void *const library =
        dlopen(is_opencl ? "libOpenCL.so.1" : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found;
    bool all = library != NULL;
#define FIND(name, result, arguments)                                                              \
    if (all && is_opencl) {                                                                        \
        found = dlsym(library, #name);                                                             \
        all = all && found;                                                                        \
        memcpy(&c->cl.name, &found, sizeof found);                                                 \
    }
    OPENCL_CALLS(FIND)
#undef FIND
#define FIND(name, symbol, arguments)                                                              \
    if (all && !is_opencl) {                                                                       \
        found = dlsym(library, #symbol);                                                           \
        all = all && found;                                                                        \
        memcpy(&c->cu.name, &found, sizeof found);                                                 \
    }
    CUDA_CALLS(FIND)
#undef FIND
    return CHECK(all);
}

/** A queue of the device, with a context of its own (OpenCL) or in the primary one (CUDA). */
TEST_UNUSED static bool caller_open(caller *c, frg_device which)
{
    cl_object platform = NULL;
    int32_t error = 0;
    *c = (caller){.which = which};
    if (which.kind == FRG_CPU)
        return true;
    if (!caller_finds(c))
        return false;
    if (which.kind == FRG_OPENCL) {
        error = c->cl.clGetPlatformIDs(1, &platform, &(uint32_t){0}) ||
                c->cl.clGetDeviceIDs(platform, OPENCL_DEVICE_ALL, 1, &c->device, &(uint32_t){0});
        c->context = error ? NULL : c->cl.clCreateContext(NULL, 1, &c->device, NULL, NULL, &error);
        c->queue = error ? NULL : c->cl.clCreateCommandQueue(c->context, c->device, 0, &error);
        return CHECK_INT(error, 0);
    }
    error = c->cu.cuInit(0) || c->cu.cuDevicePrimaryCtxRetain(&c->context, which.index) ||
            c->cu.cuCtxPushCurrent(c->context) ||
            c->cu.cuStreamCreate(&c->queue, CUDA_STREAM_ALONE);
    return CHECK_INT(error, 0);
}

TEST_UNUSED static void caller_wait(const caller *c)
{
    if (c->which.kind == FRG_OPENCL)
        CHECK_INT(c->cl.clFinish(c->queue), 0);
    else if (c->which.kind == FRG_CUDA)
        CHECK_INT(c->cu.cuStreamSynchronize(c->queue), 0);
}

TEST_UNUSED static void caller_close(caller *c)
{
    if (c->which.kind == FRG_OPENCL) {
        CHECK_INT(c->cl.clReleaseCommandQueue(c->queue), 0);
        CHECK_INT(c->cl.clReleaseContext(c->context), 0);
    } else if (c->which.kind == FRG_CUDA) {
        CHECK_INT(c->cu.cuStreamDestroy(c->queue), 0);
        CHECK_INT(c->cu.cuCtxPopCurrent(&c->context), 0);
        CHECK_INT(c->cu.cuDevicePrimaryCtxRelease(c->which.index), 0);
    }
}

/** Memory with `bytes` of `from` (NULL: of anything) on their way into it: nobody has waited. */
TEST_UNUSED static void *caller_array(const caller *c, const void *from, size_t bytes)
{
    void *array = NULL;
    int32_t error = 0;
    if (c->which.kind == FRG_CPU) {
        array = aligned_alloc(64, (bytes + 63) / 64 * 64);
        if (from)
            memcpy(array, from, bytes);
    } else if (c->which.kind == FRG_OPENCL) {
        array = c->cl.clCreateBuffer(c->context, OPENCL_MEM_READ_WRITE, bytes, NULL, &error);
        if (from && error == 0)
            error = c->cl.clEnqueueWriteBuffer(c->queue, array, 0, 0, bytes, from, 0, NULL, NULL);
    } else {
        cuda_address p = 0;
        error = c->cu.cuMemAlloc(&p, bytes);
        if (from && error == 0)
            error = c->cu.cuMemcpyHtoDAsync(p, from, bytes, c->queue);
        array = (void *)(uintptr_t)p;
    }
    CHECK_INT(error, 0);
    return array;
}

/** Through the caller's own queue. */
TEST_UNUSED static void caller_read(const caller *c, void *to, void *array, size_t bytes)
{
    int32_t error = 0;
    if (c->which.kind == FRG_CPU)
        memcpy(to, array, bytes);
    else if (c->which.kind == FRG_OPENCL)
        error = c->cl.clEnqueueReadBuffer(c->queue, array, 0, 0, bytes, to, 0, NULL, NULL);
    else
        error = c->cu.cuMemcpyDtoHAsync(to, (cuda_address)(uintptr_t)array, bytes, c->queue);
    CHECK_INT(error, 0);
    caller_wait(c);
}

TEST_UNUSED static void caller_free(const caller *c, void *array)
{
    if (c->which.kind == FRG_CPU)
        free(array);
    else
        CHECK_INT(c->which.kind == FRG_OPENCL ? c->cl.clReleaseMemObject(array)
                                              : c->cu.cuMemFree((cuda_address)(uintptr_t)array),
                  0);
}

/** A contiguous vector of the caller's on its device. */
TEST_UNUSED static frg_array caller_vector(const caller *c, void *array, frg_dtype type, int64_t n)
{
    frg_array a = frg_vector(array, type, n);
    a.device = c->which;
    return a;
}

/** The same as a row-major matrix. */
TEST_UNUSED static frg_array caller_matrix(const caller *c, void *array, frg_dtype type, int64_t n,
                                           int64_t m)
{
    frg_array a = frg_matrix(array, type, n, m, m);
    a.device = c->which;
    return a;
}

/** A context for the caller's device, its work in the caller's queue. */
TEST_UNUSED static frg_context *caller_context(const caller *c)
{
    frg_context_opts o;
    frg_context *ctx = NULL;
    frg_context_defaults(&o, sizeof o);
    o.device = c->which;
    o.threads = 2;
    o.stream = c->queue;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    return ctx;
}

#endif
