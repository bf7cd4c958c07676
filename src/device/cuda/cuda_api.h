/* cuda_api.h - what the plug-in uses of CUDA's driver and of NVRTC, by its numbers (NVIDIA, CUDA
 * Driver API and NVRTC), so that a build needs no toolkit; tests/build holds them against
 * cuda.h. */
#ifndef CUDA_API_H
#define CUDA_API_H

#include <stddef.h>
#include <stdint.h>

/** CUdeviceptr; handles of the driver are pointers to structs that nobody sees. */
typedef unsigned long long cuda_address;
typedef void *cuda_object;

enum {
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NO_DEVICE = 100,
    CUDA_NO_BINARY = 209,
    CUDA_INVALID_PTX = 218,
    CUDA_UNSUPPORTED_PTX = 222,
    CUDA_NOT_READY = 600,
    CUDA_KIND_OF_MEMORY = 2,   /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
    CUDA_DEVICE_OF_MEMORY = 9, /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
    CUDA_ON_DEVICE = 2,        /* CU_MEMORYTYPE_DEVICE */
    CUDA_GROUP_MOST = 1,       /* CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK */
    CUDA_LOCAL_MEMORY = 8,
    CUDA_MAJOR = 75,
    CUDA_MINOR = 76,
    CUDA_STREAM_ALONE = 1, /* CU_STREAM_NON_BLOCKING */
    CUDA_EVENT_PLAIN = 2   /* CU_EVENT_DISABLE_TIMING */
};

/** name as called here, symbol of the driver, arguments; all return CUresult. */
#define CUDA_CALLS(X)                                                                              \
    X(cuInit, cuInit, (unsigned flags))                                                            \
    X(cuDriverGetVersion, cuDriverGetVersion, (int *version))                                      \
    X(cuGetErrorString, cuGetErrorString, (int error, const char **text))                          \
    X(cuDeviceGetCount, cuDeviceGetCount, (int *count))                                            \
    X(cuDeviceGet, cuDeviceGet, (int *device, int index))                                          \
    X(cuDeviceGetName, cuDeviceGetName, (char *name, int bytes, int device))                       \
    X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes, int device))                         \
    X(cuDeviceGetAttribute, cuDeviceGetAttribute, (int *value, int key, int device))               \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (cuda_object * context, int device))     \
    X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (int device))                       \
    X(cuCtxPushCurrent, cuCtxPushCurrent_v2, (cuda_object context))                                \
    X(cuCtxPopCurrent, cuCtxPopCurrent_v2, (cuda_object * context))                                \
    X(cuMemAlloc, cuMemAlloc_v2, (cuda_address * p, size_t bytes))                                 \
    X(cuMemFree, cuMemFree_v2, (cuda_address p))                                                   \
    X(cuPointerGetAttribute, cuPointerGetAttribute, (void *value, int key, cuda_address p))        \
    X(cuMemHostAlloc, cuMemHostAlloc, (void **p, size_t bytes, unsigned flags))                    \
    X(cuMemFreeHost, cuMemFreeHost, (void *p))                                                     \
    X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                     \
      (cuda_address to, const void *from, size_t bytes, cuda_object stream))                       \
    X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                     \
      (void *to, cuda_address from, size_t bytes, cuda_object stream))                             \
    X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                                     \
      (cuda_address to, cuda_address from, size_t bytes, cuda_object stream))                      \
    X(cuMemsetD8Async, cuMemsetD8Async,                                                            \
      (cuda_address to, unsigned char byte, size_t bytes, cuda_object stream))                     \
    X(cuStreamCreate, cuStreamCreate, (cuda_object * stream, unsigned flags))                      \
    X(cuStreamDestroy, cuStreamDestroy_v2, (cuda_object stream))                                   \
    X(cuStreamSynchronize, cuStreamSynchronize, (cuda_object stream))                              \
    X(cuEventCreate, cuEventCreate, (cuda_object * event, unsigned flags))                         \
    X(cuEventRecord, cuEventRecord, (cuda_object event, cuda_object stream))                       \
    X(cuEventQuery, cuEventQuery, (cuda_object event))                                             \
    X(cuEventSynchronize, cuEventSynchronize, (cuda_object event))                                 \
    X(cuEventDestroy, cuEventDestroy_v2, (cuda_object event))                                      \
    X(cuModuleLoadData, cuModuleLoadData, (cuda_object * module, const void *image))               \
    X(cuModuleUnload, cuModuleUnload, (cuda_object module))                                        \
    X(cuModuleGetFunction, cuModuleGetFunction,                                                    \
      (cuda_object * function, cuda_object module, const char *name))                              \
    X(cuLaunchKernel, cuLaunchKernel,                                                              \
      (cuda_object function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,      \
       unsigned bz, unsigned shared, cuda_object stream, void **args, void **extra))

typedef struct {
#define CUDA_MEMBER(name, symbol, arguments) int(*name) arguments;
    CUDA_CALLS(CUDA_MEMBER)
#undef CUDA_MEMBER
} cuda_api;

/** All return nvrtcResult. */
#define NVRTC_CALLS(X)                                                                             \
    X(nvrtcCreateProgram, (cuda_object * program, const char *text, const char *name, int n,       \
                           const char *const *texts, const char *const *names))                    \
    X(nvrtcCompileProgram, (cuda_object program, int n, const char *const *options))               \
    X(nvrtcGetPTXSize, (cuda_object program, size_t * bytes))                                      \
    X(nvrtcGetPTX, (cuda_object program, char *ptx))                                               \
    X(nvrtcGetProgramLogSize, (cuda_object program, size_t * bytes))                               \
    X(nvrtcGetProgramLog, (cuda_object program, char *log))                                        \
    X(nvrtcDestroyProgram, (cuda_object * program))

typedef struct {
#define NVRTC_MEMBER(name, arguments) int(*name) arguments;
    NVRTC_CALLS(NVRTC_MEMBER)
#undef NVRTC_MEMBER
} nvrtc_api;

/** What nvcc made of a program when the plug-in was built. */
typedef struct {
    const char *room, *hash; /* as in frgi_kernels */
    int type;
    const unsigned char *ptx, *sm_80, *sm_90; /* PTX ends with a NUL */
} cuda_image;
/** Up to one whose room is NULL. */
extern const cuda_image cuda_images[];

#endif
