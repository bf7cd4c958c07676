/* cuda.c - the plug-in for NVIDIA's GPUs: the driver by dlopen, kernels as cubin or PTX that nvcc
 * made when the plug-in was built, or as PTX by NVRTC.
 *
 * The device's primary context is used, as by everybody else in the process, and made current for
 * the length of a call alone. */
#include "core/version.h"
#include "cuda_api.h"
#include "cuda_nvrtc.h"
#include "device/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct frgi_machine {
    cuda_api cu;
    frg_allocator memory;
    int device, arch; /* 80: compute capability 8.0 */
    cuda_object context;
    cuda_object stream; /* that commands go to: the caller's, or own */
    cuda_object own;    /* NULL: none was needed yet */
};

typedef struct {
    const frgi_kernels *texts;
    frgi_kernel_type type;
    cuda_object module;
    cuda_object functions[]; /* by the index in `texts` */
} cuda_program;

static frg_status said(const cuda_api *cu, frgi_device_error *e, const char *call, int error)
{
    const char *text = NULL;
    cu->cuGetErrorString(error, &text);
    snprintf(e->text, sizeof e->text, "%s gave the error %d of CUDA: %.200s", call, error,
             text ? text : "");
    return error == CUDA_OUT_OF_MEMORY ? FRG_NO_MEMORY
           : error == CUDA_NO_DEVICE   ? FRG_NO_DEVICE
                                       : FRG_BROKE_DOWN;
}

/** A call without a context. */
#define PLAIN(cu, name, ...)                                                                       \
    do {                                                                                           \
        const int error_ = (cu)->name(__VA_ARGS__);                                                \
        if (error_)                                                                                \
            return said((cu), e, #name, error_);                                                   \
    } while (0)

/** The same in the machine's context, which is given back before the answer is looked at. */
#define CALL(m, name, ...)                                                                         \
    do {                                                                                           \
        cuda_object current_;                                                                      \
        PLAIN(&(m)->cu, cuCtxPushCurrent, (m)->context);                                           \
        const int error_ = (m)->cu.name(__VA_ARGS__);                                              \
        (m)->cu.cuCtxPopCurrent(&current_);                                                        \
        if (error_)                                                                                \
            return said(&(m)->cu, e, #name, error_);                                               \
    } while (0)

/** Of what is given back: nobody can be told, and a context that was not to be had is asked for
 *  again. */
#define QUIETLY(m, name, ...)                                                                      \
    do {                                                                                           \
        cuda_object current_;                                                                      \
        if ((m)->cu.cuCtxPushCurrent((m)->context) == 0 ||                                         \
            (m)->cu.cuCtxPushCurrent((m)->context) == 0) {                                         \
            (void)(m)->cu.name(__VA_ARGS__);                                                       \
            (m)->cu.cuCtxPopCurrent(&current_);                                                    \
        }                                                                                          \
    } while (0)

/* ---- devices --------------------------------------------------------------------------------- */

static frg_status load_api(cuda_api *cu, frgi_device_error *e)
{
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        snprintf(e->text, sizeof e->text, "there is no driver of NVIDIA's (libcuda.so.1)");
        return FRG_NO_DEVICE;
    }
    const char *missing = NULL;
    void *found;
#define FIND(name, symbol, arguments)                                                              \
    found = dlsym(library, #symbol);                                                               \
    missing = found ? missing : #symbol;                                                           \
    memcpy(&cu->name, &found, sizeof found);
    CUDA_CALLS(FIND)
#undef FIND
    if (missing) {
        snprintf(e->text, sizeof e->text, "the driver has no %s: install one of CUDA 11 or later",
                 missing);
        return FRG_NO_DEVICE;
    }
    const int error = cu->cuInit(0);
    if (error) {
        said(cu, e, "cuInit", error);
        return FRG_NO_DEVICE;
    }
    return FRG_OK;
}

static frg_status cuda_count(const frgi_device_setup *s, int *out, frgi_device_error *e)
{
    (void)s;
    cuda_api cu;
    int count;
    TRY(load_api(&cu, e));
    PLAIN(&cu, cuDeviceGetCount, &count);
    *out = count;
    return FRG_OK;
}

static frg_status attribute(const cuda_api *cu, int device, int key, int *out, frgi_device_error *e)
{
    PLAIN(cu, cuDeviceGetAttribute, out, key, device);
    return FRG_OK;
}

static frg_status cuda_properties(const frgi_device_setup *s, int index,
                                  frgi_device_properties *out, frgi_device_error *e)
{
    (void)s;
    cuda_api cu;
    int device, version, local;
    frgi_device_properties p = {.align = 512, .f64 = 1};
    TRY(load_api(&cu, e));
    PLAIN(&cu, cuDeviceGet, &device, index);
    PLAIN(&cu, cuDeviceGetName, p.name, (int)sizeof p.name, device);
    PLAIN(&cu, cuDriverGetVersion, &version);
    PLAIN(&cu, cuDeviceTotalMem, &p.memory, device);
    TRY(attribute(&cu, device, CUDA_GROUP_MOST, &p.group_most, e));
    TRY(attribute(&cu, device, CUDA_LOCAL_MEMORY, &local, e));
    snprintf(p.driver, sizeof p.driver, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    p.local_memory = (size_t)local;
    p.largest = p.memory;
    *out = p;
    return FRG_OK;
}

static void cuda_close(frgi_machine *m)
{
    if (m->context) {
        if (m->stream) {
            QUIETLY(m, cuStreamSynchronize, m->stream);
        }
        if (m->own) {
            QUIETLY(m, cuStreamDestroy, m->own);
        }
        (void)m->cu.cuDevicePrimaryCtxRelease(m->device);
    }
    const frg_allocator memory = m->memory;
    memory.free(m, sizeof *m, memory.user);
}

static frg_status have_own_stream(frgi_machine *m, frgi_device_error *e)
{
    cuda_object own = NULL;
    if (!m->own) {
        CALL(m, cuStreamCreate, &own, CUDA_STREAM_ALONE);
        m->own = own;
    }
    return FRG_OK;
}

static frg_status cuda_follow(frgi_machine *m, void *stream, frgi_device_error *e)
{
    if (!stream) {
        TRY(have_own_stream(m, e));
    }
    CALL(m, cuStreamSynchronize, m->stream);
    m->stream = stream ? stream : m->own;
    return FRG_OK;
}

static frg_status start(frgi_machine *m, int index, void *stream, frgi_device_error *e)
{
    int major, minor;
    TRY(load_api(&m->cu, e));
    PLAIN(&m->cu, cuDeviceGet, &m->device, index);
    TRY(attribute(&m->cu, m->device, CUDA_MAJOR, &major, e));
    TRY(attribute(&m->cu, m->device, CUDA_MINOR, &minor, e));
    m->arch = 10 * major + minor;
    const int error = m->cu.cuDevicePrimaryCtxRetain(&m->context, m->device);
    if (error) {
        m->context = NULL;
        return said(&m->cu, e, "cuDevicePrimaryCtxRetain", error);
    }
    m->stream = stream;
    if (!stream) {
        TRY(have_own_stream(m, e));
        m->stream = m->own;
    }
    return FRG_OK;
}

static frg_status no_memory(frgi_device_error *e, size_t bytes)
{
    snprintf(e->text, sizeof e->text, "no memory for %zu bytes of the plug-in", bytes);
    return FRG_NO_MEMORY;
}

static frg_status cuda_open(const frgi_device_setup *s, int index, void *stream, frgi_machine **out,
                            frgi_device_error *e)
{
    frgi_machine *const m = s->memory.alloc(sizeof *m, s->memory.user);
    if (!m) {
        return no_memory(e, sizeof *m);
    }
    memset(m, 0, sizeof *m);
    m->memory = s->memory;
    const frg_status status = start(m, index, stream, e);
    if (status < 0) {
        cuda_close(m);
        return status;
    }
    *out = m;
    return FRG_OK;
}

/* ---- blocks: a handle is the address --------------------------------------------------------- */

static cuda_address address(frgi_buffer b)
{
    return (cuda_address)(uintptr_t)b.handle + b.offset;
}

static frg_status cuda_allocate(frgi_machine *m, size_t bytes, void **out, frgi_device_error *e)
{
    cuda_address p;
    CALL(m, cuMemAlloc, &p, bytes);
    *out = (void *)(uintptr_t)p;
    return FRG_OK;
}

static void cuda_release(frgi_machine *m, void *handle)
{
    if (handle) {
        QUIETLY(m, cuMemFree, (cuda_address)(uintptr_t)handle);
    }
}

/** Does p lie in memory of the machine's device? */
static frg_status check_address(frgi_machine *m, cuda_address p, frgi_device_error *e)
{
    int kind = 0, device = -1;
    cuda_object current;
    PLAIN(&m->cu, cuCtxPushCurrent, m->context);
    int error = m->cu.cuPointerGetAttribute(&kind, CUDA_KIND_OF_MEMORY, p);
    if (error == 0) {
        error = m->cu.cuPointerGetAttribute(&device, CUDA_DEVICE_OF_MEMORY, p);
    }
    m->cu.cuCtxPopCurrent(&current);
    if (error && error != CUDA_INVALID_VALUE) {
        return said(&m->cu, e, "cuPointerGetAttribute", error);
    }
    if (error || kind != CUDA_ON_DEVICE) {
        snprintf(e->text, sizeof e->text, "the address %#llx is in no memory of a device", p);
        return FRG_BAD_ARG;
    }
    if (device != m->device) {
        snprintf(e->text, sizeof e->text, "the address %#llx is in memory of device %d", p, device);
        return FRG_BAD_ARG;
    }
    return FRG_OK;
}

/** The first byte and the last are looked at: allocators hand out parts of larger blocks. */
static frg_status cuda_adopt(frgi_machine *m, frgi_buffer asked, size_t unit, frgi_buffer *out,
                             frgi_device_error *e)
{
    const cuda_address begin = address(asked);
    if (begin % unit != 0) {
        snprintf(e->text, sizeof e->text,
                 "the address %#llx is no multiple of %zu, an element's bytes", begin, unit);
        return FRG_BAD_ARG;
    }
    TRY(check_address(m, begin, e));
    TRY(check_address(m, begin + asked.bytes - 1, e));
    *out = asked;
    return FRG_OK;
}

static void cuda_disown(frgi_machine *m, void *handle)
{
    (void)m, (void)handle; /* nothing was taken */
}

static frg_status cuda_pin(frgi_machine *m, size_t bytes, void **out, frgi_device_error *e)
{
    void *p;
    CALL(m, cuMemHostAlloc, &p, bytes, 0);
    *out = p;
    return FRG_OK;
}

static void cuda_unpin(frgi_machine *m, void *p)
{
    if (p) {
        QUIETLY(m, cuMemFreeHost, p);
    }
}

static frg_status cuda_put(frgi_machine *m, frgi_buffer to, const void *from, size_t bytes,
                           frgi_device_error *e)
{
    CALL(m, cuMemcpyHtoDAsync, address(to), from, bytes, m->stream);
    return FRG_OK;
}

static frg_status cuda_get(frgi_machine *m, void *to, frgi_buffer from, size_t bytes,
                           frgi_device_error *e)
{
    CALL(m, cuMemcpyDtoHAsync, to, address(from), bytes, m->stream);
    return FRG_OK;
}

static frg_status cuda_copy(frgi_machine *m, frgi_buffer to, frgi_buffer from, size_t bytes,
                            frgi_device_error *e)
{
    CALL(m, cuMemcpyDtoDAsync, address(to), address(from), bytes, m->stream);
    return FRG_OK;
}

static frg_status cuda_fill(frgi_machine *m, frgi_buffer to, int byte, size_t bytes,
                            frgi_device_error *e)
{
    CALL(m, cuMemsetD8Async, address(to), (unsigned char)byte, bytes, m->stream);
    return FRG_OK;
}

/* ---- programs -------------------------------------------------------------------------------- */

static size_t program_bytes(const frgi_kernels *k)
{
    return sizeof(cuda_program) + (size_t)k->count * sizeof(cuda_object);
}

static void cuda_unload(frgi_machine *m, void *program)
{
    cuda_program *const p = program;
    if (!p) {
        return;
    }
    if (p->module) {
        QUIETLY(m, cuModuleUnload, p->module);
    }
    m->memory.free(p, program_bytes(p->texts), m->memory.user);
}

/** What nvcc made of the very texts; NULL: nothing. */
static const cuda_image *image_of(const frgi_kernels *k, frgi_kernel_type type)
{
    for (const cuda_image *i = cuda_images; i->room; i++) {
        if (i->type == (int)type && strcmp(i->room, k->room) == 0 &&
            strcmp(i->hash, k->hash) == 0) {
            return i;
        }
    }
    return NULL;
}

static frg_status load_image(frgi_machine *m, cuda_program *p, const void *image,
                             frgi_device_error *e)
{
    cuda_object module;
    CALL(m, cuModuleLoadData, &module, image);
    p->module = module;
    return FRG_OK;
}

static frg_status load_by_nvrtc(frgi_machine *m, cuda_program *p, frgi_device_error *e)
{
    char *ptx;
    size_t bytes;
    TRY(cuda_nvrtc(&m->memory, p->texts, p->type, m->arch, &ptx, &bytes, e));
    const frg_status status = load_image(m, p, ptx, e);
    m->memory.free(ptx, bytes, m->memory.user);
    return status;
}

/** The cubin for exactly this GPU, else the PTX; where there is neither, or the driver is older
 *  than nvcc's PTX, NVRTC's. */
static frg_status load_program(frgi_machine *m, cuda_program *p, frgi_device_error *e)
{
    const cuda_image *const image = image_of(p->texts, p->type);
    if (!image) {
        return load_by_nvrtc(m, p, e);
    }
    const unsigned char *const cubin = m->arch == 80   ? image->sm_80
                                       : m->arch == 90 ? image->sm_90
                                                       : NULL;
    cuda_object module = NULL, current;
    PLAIN(&m->cu, cuCtxPushCurrent, m->context);
    const int error = m->cu.cuModuleLoadData(&module, cubin ? cubin : image->ptx);
    m->cu.cuCtxPopCurrent(&current);
    if (error == CUDA_NO_BINARY || error == CUDA_INVALID_PTX || error == CUDA_UNSUPPORTED_PTX) {
        return load_by_nvrtc(m, p, e);
    }
    if (error) {
        return said(&m->cu, e, "cuModuleLoadData", error);
    }
    p->module = module;
    return FRG_OK;
}

static frg_status cuda_load(frgi_machine *m, const frgi_kernels *k, frgi_kernel_type type,
                            void **out, frgi_device_error *e)
{
    const size_t bytes = program_bytes(k);
    cuda_program *const p = m->memory.alloc(bytes, m->memory.user);
    if (!p) {
        return no_memory(e, bytes);
    }
    memset(p, 0, bytes);
    p->texts = k;
    p->type = type;
    const frg_status status = load_program(m, p, e);
    if (status < 0) {
        cuda_unload(m, p);
        return status;
    }
    *out = p;
    return FRG_OK;
}

static frg_status cuda_find(frgi_machine *m, void *program, int index, void **out,
                            frgi_device_error *e)
{
    static const char *const types[FRGI_TYPES] = {"f32", "f64", "mixed"};
    cuda_program *const p = program;
    char name[FRGI_NAME_BYTES];
    cuda_object function;
    snprintf(name, sizeof name, "%s_%s_%s", p->texts->room, p->texts->kernels[index].name,
             types[p->type]);
    CALL(m, cuModuleGetFunction, &function, p->module, name);
    p->functions[index] = function;
    *out = function;
    return FRG_OK;
}

static frg_status cuda_launch(frgi_machine *m, void *kernel, const int64_t groups[2], int size,
                              const frgi_arg *args, int count, frgi_device_error *e)
{
    frgi_arg own[FRGI_ARGS_MOST];
    cuda_address addresses[FRGI_ARGS_MOST];
    void *values[FRGI_ARGS_MOST];
    for (int i = 0; i < count; i++) {
        own[i] = args[i];
        addresses[i] = args[i].kind == 'p' ? address(args[i].as.buffer) : 0;
        values[i] = args[i].kind == 'p' ? (void *)&addresses[i] : (void *)&own[i].as;
    }
    CALL(m, cuLaunchKernel, kernel, (unsigned)groups[0], (unsigned)groups[1], 1, (unsigned)size, 1,
         1, 0, m->stream, values, NULL);
    return FRG_OK;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void cuda_forget(frgi_machine *m, void *event)
{
    if (event) {
        QUIETLY(m, cuEventDestroy, event);
    }
}

static frg_status cuda_record(frgi_machine *m, void **out, frgi_device_error *e)
{
    cuda_object event, current;
    CALL(m, cuEventCreate, &event, CUDA_EVENT_PLAIN);
    int error = m->cu.cuCtxPushCurrent(m->context);
    if (error == 0) {
        error = m->cu.cuEventRecord(event, m->stream);
        m->cu.cuCtxPopCurrent(&current);
    }
    if (error) {
        cuda_forget(m, event);
        return said(&m->cu, e, "cuEventRecord", error);
    }
    *out = event;
    return FRG_OK;
}

static frg_status cuda_reached(frgi_machine *m, void *event, int *out, frgi_device_error *e)
{
    cuda_object current;
    PLAIN(&m->cu, cuCtxPushCurrent, m->context);
    const int error = m->cu.cuEventQuery(event);
    m->cu.cuCtxPopCurrent(&current);
    if (error && error != CUDA_NOT_READY) {
        return said(&m->cu, e, "cuEventQuery", error);
    }
    *out = error == 0;
    return FRG_OK;
}

static frg_status cuda_wait(frgi_machine *m, void *event, frgi_device_error *e)
{
    if (event) {
        CALL(m, cuEventSynchronize, event);
    } else {
        CALL(m, cuStreamSynchronize, m->stream);
    }
    return FRG_OK;
}

#if FOURGE_LINKED_PLUGINS
extern const frgi_device_ops frgi_cuda_device;
const frgi_device_ops frgi_cuda_device = {
#else
FRG_API extern const frgi_device_ops frg_device_table;
const frgi_device_ops frg_device_table = {
#endif
    .abi = FRGI_DEVICE_ABI,
    .bytes = sizeof(frgi_device_ops),
    .name = "cuda",
    .library = FRGI_VERSION,
    .machine = {.count = cuda_count,
                .properties = cuda_properties,
                .open = cuda_open,
                .follow = cuda_follow,
                .close = cuda_close},
    .memory = {.allocate = cuda_allocate,
               .release = cuda_release,
               .adopt = cuda_adopt,
               .disown = cuda_disown,
               .pin = cuda_pin,
               .unpin = cuda_unpin},
    .transfer = {.put = cuda_put, .get = cuda_get, .copy = cuda_copy, .fill = cuda_fill},
    .program = {.load = cuda_load, .unload = cuda_unload, .find = cuda_find, .launch = cuda_launch},
    .event = {.record = cuda_record,
              .reached = cuda_reached,
              .wait = cuda_wait,
              .forget = cuda_forget},
};
