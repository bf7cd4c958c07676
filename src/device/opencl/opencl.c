/* opencl.c - the plug-in for OpenCL 1.2 devices: loader by dlopen, programs built from the texts.
 *
 * A device of FOURGE_OPENCL_F64=0 has no double precision, as those of Apple have none.  A part of
 * a block that a kernel is given is a sub-buffer, made at its first use and kept with the block.
 * The context is that of the caller's queue, where there is one: the caller's buffers are used in
 * place. */
#include "core/version.h"
#include "device/device.h"
#include "opencl_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { DEVICES_MOST = 32, PLATFORMS_MOST = 16, LOG_BYTES = 4096 };

struct frgi_machine {
    opencl_api cl;
    frg_allocator memory;
    cl_object device, context;
    cl_object queue; /* that commands go to: the caller's, retained, or own */
    cl_object own;   /* NULL: none was needed yet */
    size_t align;    /* of a sub-buffer */
};

typedef struct part part;
struct part {
    part *next;
    cl_object buffer;
    size_t offset, bytes;
};

typedef struct {
    cl_object buffer;
    size_t bytes; /* that the buffer itself is handed on for; others are parts */
    part *parts;
} block;

typedef struct {
    cl_object kernel;
    size_t group_most;
} opencl_kernel;

typedef struct {
    const frgi_kernels *texts;
    frgi_kernel_type type;
    cl_object program;
    opencl_kernel kernels[]; /* by the index in `texts` */
} opencl_program;

/* ---- errors and memory ----------------------------------------------------------------------- */

/** The status of an error of OpenCL's, with its text. */
static frg_status said(frgi_device_error *e, const char *call, int32_t error)
{
    snprintf(e->text, sizeof e->text, "%s gave the error %d of OpenCL", call, error);
    return error == OPENCL_OUT_OF_MEMORY || error == OPENCL_OUT_OF_HOST_MEMORY ||
                   error == OPENCL_OUT_OF_RESOURCES || error == OPENCL_INVALID_BUFFER_SIZE
               ? FRG_NO_MEMORY
               : FRG_BROKE_DOWN;
}

#define CALL(m, name, ...)                                                                         \
    do {                                                                                           \
        const int32_t error_ = (m)->cl.name(__VA_ARGS__);                                          \
        if (error_)                                                                                \
            return said(e, #name, error_);                                                         \
    } while (0)

static void *take(const frg_allocator *a, size_t bytes, frgi_device_error *e)
{
    void *const p = a->alloc(bytes, a->user);
    if (!p) {
        snprintf(e->text, sizeof e->text, "no memory for %zu bytes of the plug-in", bytes);
        return NULL;
    }
    return memset(p, 0, bytes);
}

static void give(const frg_allocator *a, void *p, size_t bytes)
{
    if (p) {
        a->free(p, bytes, a->user);
    }
}

/* ---- devices --------------------------------------------------------------------------------- */

static frg_status load_api(opencl_api *cl, frgi_device_error *e)
{
#if defined(__APPLE__)
    const char *const name = "/System/Library/Frameworks/OpenCL.framework/OpenCL";
#else
    const char *const name = "libOpenCL.so.1";
#endif
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        snprintf(e->text, sizeof e->text, "there is no loader of OpenCL (%s)", name);
        return FRG_NO_DEVICE;
    }
    const char *missing = NULL;
    void *found;
#define FIND(name, result, arguments)                                                              \
    found = dlsym(library, #name);                                                                 \
    missing = found ? missing : #name;                                                             \
    memcpy(&cl->name, &found, sizeof found);
    OPENCL_CALLS(FIND)
#undef FIND
    if (missing) {
        snprintf(e->text, sizeof e->text, "the loader of OpenCL has no %s: OpenCL 1.2 is needed",
                 missing);
        return FRG_NO_DEVICE;
    }
    return FRG_OK;
}

static bool is_set(const opencl_api *cl, cl_object device, uint32_t key)
{
    uint32_t flag = 0;
    return cl->clGetDeviceInfo(device, key, sizeof flag, &flag, NULL) == 0 && flag;
}

/** The devices of all platforms that can be used, in the loader's order. */
static int list_devices(const opencl_api *cl, cl_object out[DEVICES_MOST])
{
    cl_object platforms[PLATFORMS_MOST], devices[DEVICES_MOST];
    uint32_t n_platforms = 0;
    int count = 0;
    if (cl->clGetPlatformIDs(PLATFORMS_MOST, platforms, &n_platforms)) {
        return 0;
    }
    for (uint32_t p = 0; p < n_platforms && p < PLATFORMS_MOST; p++) {
        uint32_t n = 0;
        if (cl->clGetDeviceIDs(platforms[p], OPENCL_DEVICE_ALL, DEVICES_MOST, devices, &n)) {
            continue;
        }
        for (uint32_t d = 0; d < n && d < DEVICES_MOST && count < DEVICES_MOST; d++) {
            if (is_set(cl, devices[d], OPENCL_DEVICE_AVAILABLE) &&
                is_set(cl, devices[d], OPENCL_DEVICE_COMPILER)) {
                out[count++] = devices[d];
            }
        }
    }
    return count;
}

static frg_status opencl_count(const frgi_device_setup *s, int *out, frgi_device_error *e)
{
    (void)s;
    opencl_api cl;
    cl_object devices[DEVICES_MOST];
    TRY(load_api(&cl, e));
    *out = list_devices(&cl, devices);
    return FRG_OK;
}

static frg_status find_device(opencl_api *cl, int index, cl_object *out, frgi_device_error *e)
{
    cl_object devices[DEVICES_MOST];
    TRY(load_api(cl, e));
    const int count = list_devices(cl, devices);
    if (index < 0 || index >= count) {
        snprintf(e->text, sizeof e->text, "OpenCL has %d devices here", count);
        return FRG_NO_DEVICE;
    }
    *out = devices[index];
    return FRG_OK;
}

/** *out <- a number of the device: cl_uint, size_t and cl_ulong, all of one byte order.  An old
 *  driver that does not know the key has none: 0. */
static frg_status number(const opencl_api *cl, cl_object device, uint32_t key, size_t *out,
                         frgi_device_error *e)
{
    uint64_t wide = 0;
    const int32_t error = cl->clGetDeviceInfo(device, key, sizeof wide, &wide, NULL);
    if (error && error != OPENCL_INVALID_VALUE) {
        return said(e, "clGetDeviceInfo", error);
    }
    *out = error ? 0 : (size_t)wide;
    return FRG_OK;
}

static frg_status opencl_properties(const frgi_device_setup *s, int index,
                                    frgi_device_properties *out, frgi_device_error *e)
{
    opencl_api cl;
    cl_object device, platform = NULL;
    char version[FRGI_NAME_BYTES / 2] = "", maker[FRGI_NAME_BYTES / 2 - 2] = "";
    TRY(find_device(&cl, index, &device, e));
    frgi_device_properties p = {.name = ""};
    cl.clGetDeviceInfo(device, OPENCL_DEVICE_NAME, sizeof p.name - 1, p.name, NULL);
    cl.clGetDeviceInfo(device, OPENCL_DRIVER_VERSION, sizeof version - 1, version, NULL);
    if (cl.clGetDeviceInfo(device, OPENCL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) == 0) {
        cl.clGetPlatformInfo(platform, OPENCL_PLATFORM_NAME, sizeof maker - 1, maker, NULL);
    }
    snprintf(p.driver, sizeof p.driver, "%s%s%s", maker, *maker ? " " : "", version);
    size_t align, group, doubles;
    TRY(number(&cl, device, OPENCL_DEVICE_ALIGN_BITS, &align, e));
    TRY(number(&cl, device, OPENCL_DEVICE_MEMORY, &p.memory, e));
    TRY(number(&cl, device, OPENCL_DEVICE_LARGEST_BLOCK, &p.largest, e));
    TRY(number(&cl, device, OPENCL_DEVICE_LOCAL_MEMORY, &p.local_memory, e));
    TRY(number(&cl, device, OPENCL_DEVICE_GROUP_SIZE, &group, e));
    TRY(number(&cl, device, OPENCL_DEVICE_DOUBLE, &doubles, e));
    p.align = align < 64 * 8 ? 64 : align / 8;
    p.group_most = (int)group;
    p.f64 = !s->hide_f64 && doubles != 0;
    *out = p;
    return FRG_OK;
}

static void opencl_close(frgi_machine *m)
{
    if (m->queue) {
        m->cl.clFinish(m->queue);
    }
    if (m->queue && m->queue != m->own) {
        m->cl.clReleaseCommandQueue(m->queue);
    }
    if (m->own) {
        m->cl.clReleaseCommandQueue(m->own);
    }
    if (m->context) {
        m->cl.clReleaseContext(m->context);
    }
    const frg_allocator memory = m->memory;
    give(&memory, m, sizeof *m);
}

/** A question about a handle of the caller's. */
#define ASK(m, name, handle, key, to, what)                                                        \
    do {                                                                                           \
        const int32_t error_ = (m)->cl.name((handle), (key), sizeof *(to), (to), NULL);            \
        if (error_ == OPENCL_INVALID_QUEUE || error_ == OPENCL_INVALID_BUFFER) {                   \
            snprintf(e->text, sizeof e->text, "what was given is no %s", (what));                  \
            return FRG_BAD_ARG;                                                                    \
        }                                                                                          \
        if (error_)                                                                                \
            return said(e, #name, error_);                                                         \
    } while (0)

/** *context <- that of the caller's queue, which has to be one that the machine can go on with. */
static frg_status check_queue(const frgi_machine *m, cl_object queue, cl_object *context,
                              frgi_device_error *e)
{
    cl_object device;
    uint64_t how;
    const char *wrong = NULL;
    ASK(m, clGetCommandQueueInfo, queue, OPENCL_QUEUE_CONTEXT, context, "cl_command_queue");
    ASK(m, clGetCommandQueueInfo, queue, OPENCL_QUEUE_DEVICE, &device, "cl_command_queue");
    ASK(m, clGetCommandQueueInfo, queue, OPENCL_QUEUE_PROPERTIES, &how, "cl_command_queue");
    wrong =
        m->context && *context != m->context ? "is of another cl_context than this one's" : wrong;
    wrong = how & OPENCL_ANY_ORDER ? "runs its commands in any order; give one in order" : wrong;
    wrong = device != m->device ? "is of another device" : wrong;
    if (wrong) {
        snprintf(e->text, sizeof e->text, "the caller's queue %s", wrong);
        return FRG_BAD_ARG;
    }
    return FRG_OK;
}

static frg_status have_own_queue(frgi_machine *m, frgi_device_error *e)
{
    int32_t error = 0;
    if (!m->own) {
        m->own = m->cl.clCreateCommandQueue(m->context, m->device, 0, &error);
    }
    if (error) {
        m->own = NULL;
        return said(e, "clCreateCommandQueue", error);
    }
    return FRG_OK;
}

static frg_status opencl_follow(frgi_machine *m, void *stream, frgi_device_error *e)
{
    cl_object context;
    if (stream) {
        TRY(check_queue(m, stream, &context, e));
    } else {
        TRY(have_own_queue(m, e));
    }
    CALL(m, clFinish, m->queue);
    if (stream) {
        CALL(m, clRetainCommandQueue, stream);
    }
    if (m->queue != m->own) {
        m->cl.clReleaseCommandQueue(m->queue);
    }
    m->queue = stream ? stream : m->own;
    return FRG_OK;
}

/** The caller's queue and its context. */
static frg_status take_queue(frgi_machine *m, cl_object queue, frgi_device_error *e)
{
    cl_object context;
    TRY(check_queue(m, queue, &context, e));
    CALL(m, clRetainContext, context);
    m->context = context;
    CALL(m, clRetainCommandQueue, queue);
    m->queue = queue;
    return FRG_OK;
}

static frg_status start(frgi_machine *m, int index, cl_object queue, frgi_device_error *e)
{
    int32_t error = 0;
    size_t bits;
    TRY(find_device(&m->cl, index, &m->device, e));
    TRY(number(&m->cl, m->device, OPENCL_DEVICE_ALIGN_BITS, &bits, e));
    m->align = bits < 8 ? 1 : bits / 8;
    if (queue) {
        return take_queue(m, queue, e);
    }
    m->context = m->cl.clCreateContext(NULL, 1, &m->device, NULL, NULL, &error);
    if (error) {
        m->context = NULL;
        return said(e, "clCreateContext", error);
    }
    TRY(have_own_queue(m, e));
    m->queue = m->own;
    return FRG_OK;
}

static frg_status opencl_open(const frgi_device_setup *s, int index, void *stream,
                              frgi_machine **out, frgi_device_error *e)
{
    frgi_machine *const m = take(&s->memory, sizeof *m, e);
    if (!m) {
        return FRG_NO_MEMORY;
    }
    m->memory = s->memory;
    const frg_status status = start(m, index, stream, e);
    if (status < 0) {
        opencl_close(m);
        return status;
    }
    *out = m;
    return FRG_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void opencl_release(frgi_machine *m, void *handle)
{
    block *const b = handle;
    if (!b) {
        return;
    }
    for (part *p = b->parts, *next; p; p = next) {
        next = p->next;
        m->cl.clReleaseMemObject(p->buffer);
        give(&m->memory, p, sizeof *p);
    }
    if (b->buffer) {
        m->cl.clReleaseMemObject(b->buffer);
    }
    give(&m->memory, b, sizeof *b);
}

static frg_status opencl_allocate(frgi_machine *m, size_t bytes, void **out, frgi_device_error *e)
{
    int32_t error = 0;
    block *const b = take(&m->memory, sizeof *b, e);
    if (!b) {
        return FRG_NO_MEMORY;
    }
    b->bytes = bytes;
    b->buffer = m->cl.clCreateBuffer(m->context, OPENCL_MEM_READ_WRITE, bytes, NULL, &error);
    if (error) {
        b->buffer = NULL;
        opencl_release(m, b);
        return said(e, "clCreateBuffer", error);
    }
    *out = b;
    return FRG_OK;
}

/** Where an array of the caller's lies: buffers that are parts of another are looked through, as a
 *  part has no parts. */
static frg_status find_array(frgi_machine *m, frgi_buffer *at, frgi_device_error *e)
{
    cl_object buffer = at->handle, context, whole;
    uint32_t kind;
    size_t size, from;
    ASK(m, clGetMemObjectInfo, buffer, OPENCL_MEM_KIND, &kind, "cl_mem");
    ASK(m, clGetMemObjectInfo, buffer, OPENCL_MEM_CONTEXT, &context, "cl_mem");
    ASK(m, clGetMemObjectInfo, buffer, OPENCL_MEM_BYTES, &size, "cl_mem");
    ASK(m, clGetMemObjectInfo, buffer, OPENCL_MEM_WHOLE, &whole, "cl_mem");
    ASK(m, clGetMemObjectInfo, buffer, OPENCL_MEM_OFFSET, &from, "cl_mem");
    const size_t begin = at->offset + (whole ? from : 0);
    if (kind != OPENCL_BUFFER) {
        snprintf(e->text, sizeof e->text, "the cl_mem is no buffer");
    } else if (context != m->context) {
        snprintf(e->text, sizeof e->text,
                 "the cl_mem is of another cl_context: make the context with a queue of that one");
    } else if (at->offset > size || at->bytes > size - at->offset) {
        snprintf(e->text, sizeof e->text, "%zu bytes from byte %zu on of a cl_mem of %zu",
                 at->bytes, at->offset, size);
    } else if (begin % m->align != 0) {
        snprintf(e->text, sizeof e->text,
                 "it begins at byte %zu of a cl_mem, and not at a multiple of %zu", begin,
                 m->align);
    } else {
        *at = (frgi_buffer){whole ? whole : buffer, begin, at->bytes};
        return FRG_OK;
    }
    return FRG_BAD_ARG;
}

static frg_status opencl_adopt(frgi_machine *m, frgi_buffer asked, size_t unit, frgi_buffer *out,
                               frgi_device_error *e)
{
    (void)unit; /* a buffer, and where a part may begin, are aligned to more */
    TRY(find_array(m, &asked, e));
    block *const b = take(&m->memory, sizeof *b, e);
    if (!b) {
        return FRG_NO_MEMORY;
    }
    const int32_t error = m->cl.clRetainMemObject(asked.handle);
    if (error) {
        give(&m->memory, b, sizeof *b);
        return said(e, "clRetainMemObject", error);
    }
    b->buffer = asked.handle;
    b->bytes = asked.bytes;
    *out = (frgi_buffer){b, asked.offset, asked.bytes};
    return FRG_OK;
}

/** What a kernel is given for b: the block's buffer, or the sub-buffer of that part. */
static frg_status buffer_of(frgi_machine *m, frgi_buffer b, cl_object *out, frgi_device_error *e)
{
    block *const whole = b.handle;
    if (!whole || (b.offset == 0 && b.bytes == whole->bytes) || b.bytes == 0) {
        *out = whole ? whole->buffer : NULL;
        return FRG_OK;
    }
    part *p = whole->parts;
    while (p && (p->offset != b.offset || p->bytes != b.bytes)) {
        p = p->next;
    }
    if (!p) {
        const opencl_region region = {b.offset, b.bytes};
        int32_t error = 0;
        p = take(&m->memory, sizeof *p, e);
        if (!p) {
            return FRG_NO_MEMORY;
        }
        *p = (part){.next = whole->parts, .offset = b.offset, .bytes = b.bytes};
        p->buffer = m->cl.clCreateSubBuffer(whole->buffer, OPENCL_MEM_AS_WHOLE,
                                            OPENCL_BUFFER_REGION, &region, &error);
        if (error) {
            give(&m->memory, p, sizeof *p);
            return said(e, "clCreateSubBuffer", error);
        }
        whole->parts = p;
    }
    *out = p->buffer;
    return FRG_OK;
}

/** Pinned memory begins with its length; OpenCL's copies never wait for the memory of the host. */
enum { PIN_HEAD = 64 };

static frg_status opencl_pin(frgi_machine *m, size_t bytes, void **out, frgi_device_error *e)
{
    const size_t all = bytes > SIZE_MAX - PIN_HEAD ? SIZE_MAX : bytes + PIN_HEAD;
    char *const p = take(&m->memory, all, e);
    if (!p) {
        return FRG_NO_MEMORY;
    }
    memcpy(p, &all, sizeof all);
    *out = p + PIN_HEAD;
    return FRG_OK;
}

static void opencl_unpin(frgi_machine *m, void *pinned)
{
    if (pinned) {
        char *const p = (char *)pinned - PIN_HEAD;
        size_t all;
        memcpy(&all, p, sizeof all);
        give(&m->memory, p, all);
    }
}

static cl_object whole_of(frgi_buffer b)
{
    return ((const block *)b.handle)->buffer;
}

static frg_status opencl_put(frgi_machine *m, frgi_buffer to, const void *from, size_t bytes,
                             frgi_device_error *e)
{
    CALL(m, clEnqueueWriteBuffer, m->queue, whole_of(to), 0, to.offset, bytes, from, 0, NULL, NULL);
    return FRG_OK;
}

static frg_status opencl_get(frgi_machine *m, void *to, frgi_buffer from, size_t bytes,
                             frgi_device_error *e)
{
    CALL(m, clEnqueueReadBuffer, m->queue, whole_of(from), 0, from.offset, bytes, to, 0, NULL,
         NULL);
    return FRG_OK;
}

static frg_status opencl_copy(frgi_machine *m, frgi_buffer to, frgi_buffer from, size_t bytes,
                              frgi_device_error *e)
{
    CALL(m, clEnqueueCopyBuffer, m->queue, whole_of(from), whole_of(to), from.offset, to.offset,
         bytes, 0, NULL, NULL);
    return FRG_OK;
}

static frg_status opencl_fill(frgi_machine *m, frgi_buffer to, int byte, size_t bytes,
                              frgi_device_error *e)
{
    const unsigned char pattern = (unsigned char)byte;
    CALL(m, clEnqueueFillBuffer, m->queue, whole_of(to), &pattern, 1, to.offset, bytes, 0, NULL,
         NULL);
    return FRG_OK;
}

/* ---- programs -------------------------------------------------------------------------------- */

static size_t program_bytes(const frgi_kernels *k)
{
    return sizeof(opencl_program) + (size_t)k->count * sizeof(opencl_kernel);
}

static void opencl_unload(frgi_machine *m, void *program)
{
    opencl_program *const p = program;
    if (!p) {
        return;
    }
    for (int i = 0; i < p->texts->count; i++) {
        if (p->kernels[i].kernel) {
            m->cl.clReleaseKernel(p->kernels[i].kernel);
        }
    }
    if (p->program) {
        m->cl.clReleaseProgram(p->program);
    }
    give(&m->memory, p, program_bytes(p->texts));
}

/** The compiler's first words. */
static frg_status build_failed(frgi_machine *m, const opencl_program *p, int32_t error,
                               frgi_device_error *e)
{
    char log[LOG_BYTES] = "";
    size_t size = 0;
    if (m->cl.clGetProgramBuildInfo(p->program, m->device, OPENCL_BUILD_LOG, 0, NULL, &size) == 0 &&
        size <= sizeof log) {
        m->cl.clGetProgramBuildInfo(p->program, m->device, OPENCL_BUILD_LOG, sizeof log, log, NULL);
    }
    log[sizeof log - 1] = '\0';
    const frg_status status = said(e, "clBuildProgram", error);
    const size_t used = strlen(e->text);
    snprintf(e->text + used, sizeof e->text - used, " for the kernels of %s: %.300s",
             p->texts->room, log);
    return status;
}

static frg_status build(frgi_machine *m, opencl_program *p, frgi_device_error *e)
{
    const frgi_kernels *const k = p->texts;
    const char *texts[] = {k->prelude[p->type], k->dialect, k->names[p->type], k->text};
    int32_t error = 0;
    p->program = m->cl.clCreateProgramWithSource(m->context, 4, texts, NULL, &error);
    if (error) {
        p->program = NULL;
        return said(e, "clCreateProgramWithSource", error);
    }
    const char *const options =
        p->type == FRGI_F32 ? "-cl-std=CL1.2 -cl-single-precision-constant" : "-cl-std=CL1.2";
    error = m->cl.clBuildProgram(p->program, 1, &m->device, options, NULL, NULL);
    return error ? build_failed(m, p, error, e) : FRG_OK;
}

static frg_status opencl_load(frgi_machine *m, const frgi_kernels *k, frgi_kernel_type type,
                              void **out, frgi_device_error *e)
{
    opencl_program *const p = take(&m->memory, program_bytes(k), e);
    if (!p) {
        return FRG_NO_MEMORY;
    }
    p->texts = k;
    p->type = type;
    const frg_status status = build(m, p, e);
    if (status < 0) {
        opencl_unload(m, p);
        return status;
    }
    *out = p;
    return FRG_OK;
}

static frg_status opencl_find(frgi_machine *m, void *program, int index, void **out,
                              frgi_device_error *e)
{
    static const char *const types[FRGI_TYPES] = {"f32", "f64", "mixed"};
    opencl_program *const p = program;
    opencl_kernel *const k = &p->kernels[index];
    char name[FRGI_NAME_BYTES];
    int32_t error = 0;
    snprintf(name, sizeof name, "%s_%s_%s", p->texts->room, p->texts->kernels[index].name,
             types[p->type]);
    if (!k->kernel) {
        k->kernel = m->cl.clCreateKernel(p->program, name, &error);
        if (error) {
            k->kernel = NULL;
            return said(e, name, error);
        }
    }
    if (k->group_most == 0) {
        CALL(m, clGetKernelWorkGroupInfo, k->kernel, m->device, OPENCL_KERNEL_GROUP_SIZE,
             sizeof k->group_most, &k->group_most, NULL);
    }
    *out = k;
    return FRG_OK;
}

static frg_status set_argument(frgi_machine *m, const opencl_kernel *k, uint32_t i,
                               const frgi_arg *a, frgi_device_error *e)
{
    cl_object buffer;
    if (a->kind == 'p') {
        TRY(buffer_of(m, a->as.buffer, &buffer, e));
        CALL(m, clSetKernelArg, k->kernel, i, sizeof buffer, &buffer);
    } else {
        const size_t bytes = a->kind == 'l' || a->kind == 'd' ? 8 : 4;
        CALL(m, clSetKernelArg, k->kernel, i, bytes, &a->as);
    }
    return FRG_OK;
}

static frg_status opencl_launch(frgi_machine *m, void *kernel, const int64_t groups[2], int size,
                                const frgi_arg *args, int count, frgi_device_error *e)
{
    const opencl_kernel *const k = kernel;
    size_t local[2] = {(size_t)size, 1};
    while (local[0] > 1 && local[0] > k->group_most) {
        local[0] /= 2;
    }
    const size_t global[2] = {(size_t)groups[0] * local[0], (size_t)groups[1]};
    for (int i = 0; i < count; i++) {
        TRY(set_argument(m, k, (uint32_t)i, &args[i], e));
    }
    CALL(m, clEnqueueNDRangeKernel, m->queue, k->kernel, 2, NULL, global, local, 0, NULL, NULL);
    return FRG_OK;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void opencl_forget(frgi_machine *m, void *event)
{
    if (event) {
        m->cl.clReleaseEvent(event);
    }
}

static frg_status opencl_record(frgi_machine *m, void **out, frgi_device_error *e)
{
    cl_object event = NULL;
    CALL(m, clEnqueueMarkerWithWaitList, m->queue, 0, NULL, &event);
    const int32_t error = m->cl.clFlush(m->queue);
    if (error) {
        opencl_forget(m, event);
        return said(e, "clFlush", error);
    }
    *out = event;
    return FRG_OK;
}

static frg_status opencl_reached(frgi_machine *m, void *event, int *out, frgi_device_error *e)
{
    int32_t at = 0;
    CALL(m, clGetEventInfo, event, OPENCL_EVENT_STATUS, sizeof at, &at, NULL);
    if (at < 0) {
        return said(e, "a command", at);
    }
    *out = at == OPENCL_COMPLETE;
    return FRG_OK;
}

static frg_status opencl_wait(frgi_machine *m, void *event, frgi_device_error *e)
{
    if (event) {
        CALL(m, clWaitForEvents, 1, &event);
    } else {
        CALL(m, clFinish, m->queue);
    }
    return FRG_OK;
}

#if FOURGE_LINKED_PLUGINS
extern const frgi_device_ops frgi_opencl_device;
const frgi_device_ops frgi_opencl_device = {
#else
FRG_API extern const frgi_device_ops frg_device_table;
const frgi_device_ops frg_device_table = {
#endif
    .abi = FRGI_DEVICE_ABI,
    .bytes = sizeof(frgi_device_ops),
    .name = "opencl",
    .library = FRGI_VERSION,
    .machine = {.count = opencl_count,
                .properties = opencl_properties,
                .open = opencl_open,
                .follow = opencl_follow,
                .close = opencl_close},
    .memory = {.allocate = opencl_allocate,
               .release = opencl_release,
               .adopt = opencl_adopt,
               .disown = opencl_release,
               .pin = opencl_pin,
               .unpin = opencl_unpin},
    .transfer = {.put = opencl_put, .get = opencl_get, .copy = opencl_copy, .fill = opencl_fill},
    .program = {.load = opencl_load,
                .unload = opencl_unload,
                .find = opencl_find,
                .launch = opencl_launch},
    .event = {.record = opencl_record,
              .reached = opencl_reached,
              .wait = opencl_wait,
              .forget = opencl_forget},
};
