/* opencl_api.h - what the plug-in uses of OpenCL 1.2, by its numbers (Khronos, The OpenCL
 * Specification 1.2), so that a build needs no headers; tests/build holds them
 * against Khronos's. */
#ifndef OPENCL_API_H
#define OPENCL_API_H

#include <stddef.h>
#include <stdint.h>

/** Objects of OpenCL are pointers to structs that nobody sees. */
typedef void *cl_object;

enum {
    OPENCL_OUT_OF_MEMORY = -4, /* CL_MEM_OBJECT_ALLOCATION_FAILURE */
    OPENCL_OUT_OF_RESOURCES = -5,
    OPENCL_OUT_OF_HOST_MEMORY = -6,
    OPENCL_BUILD_FAILURE = -11,
    OPENCL_INVALID_VALUE = -30,
    OPENCL_INVALID_QUEUE = -36,
    OPENCL_INVALID_BUFFER = -38, /* CL_INVALID_MEM_OBJECT */
    OPENCL_INVALID_BUFFER_SIZE = -61,
    OPENCL_MEM_AS_WHOLE = 0, /* a part has the rights of its buffer */
    OPENCL_MEM_READ_WRITE = 1,
    OPENCL_BUFFER_REGION = 0x1220,
    OPENCL_BUFFER = 0x10F0, /* CL_MEM_OBJECT_BUFFER */
    OPENCL_MEM_KIND = 0x1100,
    OPENCL_MEM_BYTES = 0x1102,
    OPENCL_MEM_CONTEXT = 0x1106,
    OPENCL_MEM_WHOLE = 0x1107, /* CL_MEM_ASSOCIATED_MEMOBJECT: NULL, but of a part */
    OPENCL_MEM_OFFSET = 0x1108,
    OPENCL_QUEUE_CONTEXT = 0x1090,
    OPENCL_QUEUE_DEVICE = 0x1091,
    OPENCL_QUEUE_PROPERTIES = 0x1093,
    OPENCL_ANY_ORDER = 1, /* CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE */
    OPENCL_BUILD_LOG = 0x1183,
    OPENCL_KERNEL_GROUP_SIZE = 0x11B0,
    OPENCL_EVENT_STATUS = 0x11D3,
    OPENCL_COMPLETE = 0,
    OPENCL_PLATFORM_NAME = 0x0902,
    OPENCL_DEVICE_GROUP_SIZE = 0x1004,
    OPENCL_DEVICE_LARGEST_BLOCK = 0x1010,
    OPENCL_DEVICE_ALIGN_BITS = 0x1019,
    OPENCL_DEVICE_MEMORY = 0x101F,
    OPENCL_DEVICE_LOCAL_MEMORY = 0x1023,
    OPENCL_DEVICE_AVAILABLE = 0x1027,
    OPENCL_DEVICE_COMPILER = 0x1028,
    OPENCL_DEVICE_NAME = 0x102B,
    OPENCL_DRIVER_VERSION = 0x102D,
    OPENCL_DEVICE_PLATFORM = 0x1031,
    OPENCL_DEVICE_DOUBLE = 0x1032 /* CL_DEVICE_DOUBLE_FP_CONFIG */
};
#define OPENCL_DEVICE_ALL UINT64_C(0xFFFFFFFF)

typedef struct {
    size_t origin, size;
} opencl_region;

/** name, result, arguments */
#define OPENCL_CALLS(X)                                                                            \
    X(clGetPlatformIDs, int32_t, (uint32_t n, cl_object * out, uint32_t * count))                  \
    X(clGetPlatformInfo, int32_t, (cl_object p, uint32_t key, size_t n, void *out, size_t *size))  \
    X(clGetDeviceIDs, int32_t,                                                                     \
      (cl_object p, uint64_t type, uint32_t n, cl_object * out, uint32_t * count))                 \
    X(clGetDeviceInfo, int32_t, (cl_object d, uint32_t key, size_t n, void *out, size_t *size))    \
    X(clCreateContext, cl_object,                                                                  \
      (const intptr_t *properties, uint32_t n, const cl_object *devices,                           \
       void (*said)(const char *, const void *, size_t, void *), void *user, int32_t *error))      \
    X(clRetainContext, int32_t, (cl_object c))                                                     \
    X(clReleaseContext, int32_t, (cl_object c))                                                    \
    X(clCreateCommandQueue, cl_object,                                                             \
      (cl_object c, cl_object d, uint64_t flags, int32_t * error))                                 \
    X(clRetainCommandQueue, int32_t, (cl_object q))                                                \
    X(clReleaseCommandQueue, int32_t, (cl_object q))                                               \
    X(clGetCommandQueueInfo, int32_t,                                                              \
      (cl_object q, uint32_t key, size_t n, void *out, size_t *size))                              \
    X(clCreateBuffer, cl_object,                                                                   \
      (cl_object c, uint64_t flags, size_t bytes, void *host, int32_t *error))                     \
    X(clCreateSubBuffer, cl_object,                                                                \
      (cl_object b, uint64_t flags, uint32_t kind, const void *region, int32_t *error))            \
    X(clRetainMemObject, int32_t, (cl_object b))                                                   \
    X(clReleaseMemObject, int32_t, (cl_object b))                                                  \
    X(clGetMemObjectInfo, int32_t, (cl_object b, uint32_t key, size_t n, void *out, size_t *size)) \
    X(clCreateProgramWithSource, cl_object,                                                        \
      (cl_object c, uint32_t n, const char **texts, const size_t *lengths, int32_t *error))        \
    X(clBuildProgram, int32_t,                                                                     \
      (cl_object p, uint32_t n, const cl_object *devices, const char *options,                     \
       void (*done)(cl_object, void *), void *user))                                               \
    X(clGetProgramBuildInfo, int32_t,                                                              \
      (cl_object p, cl_object d, uint32_t key, size_t n, void *out, size_t *size))                 \
    X(clReleaseProgram, int32_t, (cl_object p))                                                    \
    X(clCreateKernel, cl_object, (cl_object p, const char *name, int32_t *error))                  \
    X(clReleaseKernel, int32_t, (cl_object k))                                                     \
    X(clGetKernelWorkGroupInfo, int32_t,                                                           \
      (cl_object k, cl_object d, uint32_t key, size_t n, void *out, size_t *size))                 \
    X(clSetKernelArg, int32_t, (cl_object k, uint32_t i, size_t bytes, const void *value))         \
    X(clEnqueueNDRangeKernel, int32_t,                                                             \
      (cl_object q, cl_object k, uint32_t axes, const size_t *first, const size_t *global,         \
       const size_t *local, uint32_t n, const cl_object *before, cl_object *event))                \
    X(clEnqueueWriteBuffer, int32_t,                                                               \
      (cl_object q, cl_object b, uint32_t waits, size_t at, size_t bytes, const void *from,        \
       uint32_t n, const cl_object *before, cl_object *event))                                     \
    X(clEnqueueReadBuffer, int32_t,                                                                \
      (cl_object q, cl_object b, uint32_t waits, size_t at, size_t bytes, void *to, uint32_t n,    \
       const cl_object *before, cl_object *event))                                                 \
    X(clEnqueueCopyBuffer, int32_t,                                                                \
      (cl_object q, cl_object from, cl_object to, size_t at_from, size_t at_to, size_t bytes,      \
       uint32_t n, const cl_object *before, cl_object *event))                                     \
    X(clEnqueueFillBuffer, int32_t,                                                                \
      (cl_object q, cl_object b, const void *pattern, size_t length, size_t at, size_t bytes,      \
       uint32_t n, const cl_object *before, cl_object *event))                                     \
    X(clEnqueueMarkerWithWaitList, int32_t,                                                        \
      (cl_object q, uint32_t n, const cl_object *before, cl_object *event))                        \
    X(clGetEventInfo, int32_t, (cl_object e, uint32_t key, size_t n, void *out, size_t *size))     \
    X(clWaitForEvents, int32_t, (uint32_t n, const cl_object *events))                             \
    X(clReleaseEvent, int32_t, (cl_object e))                                                      \
    X(clFlush, int32_t, (cl_object q))                                                             \
    X(clFinish, int32_t, (cl_object q))

typedef struct {
#define OPENCL_MEMBER(name, result, arguments) result(*name) arguments;
    OPENCL_CALLS(OPENCL_MEMBER)
#undef OPENCL_MEMBER
} opencl_api;

#endif
