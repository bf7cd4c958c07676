/* standin_opencl.c - libOpenCL.so.1 for tests: the entry points that the plug-in uses, one platform
 * with one device, see standin.h. */
#include "device/opencl/opencl_api.h"

enum {
    NOT_BUILT = -45, /* CL_INVALID_PROGRAM_EXECUTABLE, and so on */
    INVALID_MEM_OBJECT = -38,
    INVALID_KERNEL_NAME = -46,
    INVALID_ARG_INDEX = -49,
    INVALID_ARG_SIZE = -51,
    INVALID_KERNEL_ARGS = -52,
    INVALID_WORK_GROUP_SIZE = -54,
    MISALIGNED_PART = -13,
    COPY_OVERLAP = -8,
    QUEUED = 3,
    ILLEGAL_ADDRESS = -9999, /* as NVIDIA's OpenCL has it */
    GROUP_MOST = 256,
    KERNEL_GROUP_MOST = 64,
    LOCAL_MEMORY = 48 << 10
};

#define STANDIN standin_opencl
#include "standin_queue.h"

/** The calls' declarations, for the compiler. */
#define DECLARE(name, result, arguments) EXPORT result name arguments;
OPENCL_CALLS(DECLARE)
#undef DECLARE

EXPORT standin standin_opencl = {.memory = (size_t)1 << 30};

typedef enum { CONTEXT, QUEUE, BUFFER, PROGRAM, KERNEL_OBJECT, EVENT } object_kind;
typedef struct object object;
struct object {
    object_kind kind;
    int held;       /* by its owner, and by parts of it */
    object *parent; /* of a part of a buffer */
    char *at;       /* a buffer's memory */
    size_t bytes;
    cl_object context; /* of a queue or buffer */
    uint64_t flags;    /* of a queue */
    char *text;        /* a program's */
    bool built;
    function function; /* a kernel's */
    uint32_t given;    /* bits of the arguments that were set */
    uint64_t values[ARGS];
    event mark;
};

static char platform, device;

#define ENTER()                                                                                    \
    do {                                                                                           \
        const int error_ = enter();                                                                \
        if (error_)                                                                                \
            return error_;                                                                         \
    } while (0)
/** Of the calls that make an object. */
#define ENTER_MAKER()                                                                              \
    do {                                                                                           \
        *error = enter();                                                                          \
        if (*error)                                                                                \
            return NULL;                                                                           \
    } while (0)
#define REFUSE(code)                                                                               \
    do {                                                                                           \
        *error = (code);                                                                           \
        return NULL;                                                                               \
    } while (0)

static object *make(object_kind kind)
{
    object *const o = calloc(1, sizeof *o);
    o->kind = kind;
    o->held = 1;
    S.objects++;
    return o;
}

/** The object behind a handle, which a real loader would not look at twice. */
static object *object_of(cl_object handle, object_kind kind, const char *call)
{
    static object none;
    object *const o = handle;
    if (!o || o->kind != kind || o->held <= 0) {
        complain("%s with something that is none of its objects", call);
        none = (object){.kind = kind, .held = 1};
        return &none;
    }
    return o;
}

/** What is queued runs first, which a real one keeps its objects for. */
static int32_t release(cl_object handle, object_kind kind, const char *call)
{
    const int error = enter();
    object *const o = object_of(handle, kind, call);
    run_all();
    if (--o->held > 0) {
        return error;
    }
    if (o->parent) {
        o->parent->held--;
    } else if (o->at) {
        drop_block(o->at);
    }
    free(o->text);
    free(o);
    S.objects--;
    return error;
}

static int32_t retain(cl_object handle, object_kind kind, const char *call)
{
    ENTER();
    object_of(handle, kind, call)->held++;
    return 0;
}

static int32_t tell(const void *value, size_t bytes, size_t n, void *out, size_t *size)
{
    if (size) {
        *size = bytes;
    }
    if (out && n < bytes) {
        return OPENCL_INVALID_VALUE;
    }
    if (out) {
        memcpy(out, value, bytes);
    }
    return 0;
}

/* ---- platform and device --------------------------------------------------------------------- */

int32_t clGetPlatformIDs(uint32_t n, cl_object *out, uint32_t *count)
{
    ENTER();
    if (n > 0) {
        out[0] = &platform;
    }
    *count = 1;
    return 0;
}

int32_t clGetPlatformInfo(cl_object p, uint32_t key, size_t n, void *out, size_t *size)
{
    ENTER();
    return p != &platform || key != OPENCL_PLATFORM_NAME
               ? OPENCL_INVALID_VALUE
               : tell("stand-in", sizeof "stand-in", n, out, size);
}

int32_t clGetDeviceIDs(cl_object p, uint64_t type, uint32_t n, cl_object *out, uint32_t *count)
{
    ENTER();
    if (p != &platform || type != OPENCL_DEVICE_ALL) {
        return OPENCL_INVALID_VALUE;
    }
    if (n > 0) {
        out[0] = &device;
    }
    *count = 1;
    return 0;
}

int32_t clGetDeviceInfo(cl_object d, uint32_t key, size_t n, void *out, size_t *size)
{
    ENTER();
    const uint32_t yes = 1, align = 8 * ALIGN;
    const size_t group = GROUP_MOST;
    const uint64_t memory = S.memory, local = LOCAL_MEMORY, doubles = 63;
    const void *const of = &platform;
    const struct {
        uint32_t key;
        size_t bytes;
        const void *value;
    } known[] = {{OPENCL_DEVICE_AVAILABLE, sizeof yes, &yes},
                 {OPENCL_DEVICE_COMPILER, sizeof yes, &yes},
                 {OPENCL_DEVICE_NAME, sizeof "stand-in", "stand-in"},
                 {OPENCL_DRIVER_VERSION, sizeof "1.2", "1.2"},
                 {OPENCL_DEVICE_PLATFORM, sizeof of, &of},
                 {OPENCL_DEVICE_GROUP_SIZE, sizeof group, &group},
                 {OPENCL_DEVICE_LARGEST_BLOCK, sizeof memory, &memory},
                 {OPENCL_DEVICE_ALIGN_BITS, sizeof align, &align},
                 {OPENCL_DEVICE_MEMORY, sizeof memory, &memory},
                 {OPENCL_DEVICE_LOCAL_MEMORY, sizeof local, &local},
                 {OPENCL_DEVICE_DOUBLE, sizeof doubles, &doubles}};
    for (size_t i = 0; d == &device && i < sizeof known / sizeof *known; i++) {
        if (known[i].key == key) {
            return tell(known[i].value, known[i].bytes, n, out, size);
        }
    }
    return OPENCL_INVALID_VALUE;
}

cl_object clCreateContext(const intptr_t *properties, uint32_t n, const cl_object *devices,
                          void (*said)(const char *, const void *, size_t, void *), void *user,
                          int32_t *error)
{
    (void)properties;
    (void)said;
    (void)user;
    ENTER_MAKER();
    if (n != 1 || devices[0] != &device) {
        REFUSE(OPENCL_INVALID_VALUE);
    }
    return make(CONTEXT);
}

int32_t clRetainContext(cl_object c)
{
    return retain(c, CONTEXT, __func__);
}

/** A context that is given back takes its errors along. */
int32_t clReleaseContext(cl_object c)
{
    const int32_t error = release(c, CONTEXT, __func__);
    sticky = 0;
    return error;
}

cl_object clCreateCommandQueue(cl_object c, cl_object d, uint64_t flags, int32_t *error)
{
    object_of(c, CONTEXT, __func__);
    ENTER_MAKER();
    if (d != &device || flags & ~(uint64_t)OPENCL_ANY_ORDER) {
        REFUSE(OPENCL_INVALID_VALUE);
    }
    object *const o = make(QUEUE);
    o->context = c;
    o->flags = flags;
    return o;
}

int32_t clRetainCommandQueue(cl_object q)
{
    return retain(q, QUEUE, __func__);
}

/** What is no object of the kind is refused, as a real loader does where it can. */
static const object *asked_of(cl_object handle, object_kind kind)
{
    const object *const o = handle;
    return o && o->kind == kind && o->held > 0 ? o : NULL;
}

int32_t clGetCommandQueueInfo(cl_object q, uint32_t key, size_t n, void *out, size_t *size)
{
    ENTER();
    const void *const own = &device;
    const object *const o = asked_of(q, QUEUE);
    return !o                               ? OPENCL_INVALID_QUEUE
           : key == OPENCL_QUEUE_CONTEXT    ? tell(&o->context, sizeof o->context, n, out, size)
           : key == OPENCL_QUEUE_DEVICE     ? tell(&own, sizeof own, n, out, size)
           : key == OPENCL_QUEUE_PROPERTIES ? tell(&o->flags, sizeof o->flags, n, out, size)
                                            : OPENCL_INVALID_VALUE;
}

int32_t clReleaseCommandQueue(cl_object q)
{
    return release(q, QUEUE, __func__);
}

/* ---- buffers --------------------------------------------------------------------------------- */

cl_object clCreateBuffer(cl_object c, uint64_t flags, size_t bytes, void *host, int32_t *error)
{
    object_of(c, CONTEXT, __func__);
    ENTER_MAKER();
    if (bytes == 0 || bytes > S.memory) {
        REFUSE(OPENCL_INVALID_BUFFER_SIZE);
    }
    if (flags != OPENCL_MEM_READ_WRITE || host) {
        REFUSE(OPENCL_INVALID_VALUE);
    }
    const block *const b = take_block(bytes);
    if (!b) {
        REFUSE(OPENCL_OUT_OF_MEMORY);
    }
    object *const o = make(BUFFER);
    o->at = b->at;
    o->bytes = bytes;
    o->context = c;
    return o;
}

cl_object clCreateSubBuffer(cl_object b, uint64_t flags, uint32_t kind, const void *region,
                            int32_t *error)
{
    object *const whole = object_of(b, BUFFER, __func__);
    const opencl_region *const r = region;
    ENTER_MAKER();
    if (flags != OPENCL_MEM_AS_WHOLE || kind != OPENCL_BUFFER_REGION || r->size == 0 ||
        r->origin > whole->bytes || r->size > whole->bytes - r->origin) {
        complain("a part of %zu bytes at %zu of a buffer of %zu", r->size, r->origin, whole->bytes);
        REFUSE(OPENCL_INVALID_VALUE);
    }
    if (whole->parent || r->origin % ALIGN) {
        complain("a part that begins at %zu, or of a part", r->origin);
        REFUSE(whole->parent ? INVALID_MEM_OBJECT : MISALIGNED_PART);
    }
    object *const o = make(BUFFER);
    o->parent = whole;
    o->context = whole->context;
    o->at = whole->at + r->origin;
    o->bytes = r->size;
    whole->held++;
    return o;
}

int32_t clRetainMemObject(cl_object b)
{
    return retain(b, BUFFER, __func__);
}

int32_t clGetMemObjectInfo(cl_object b, uint32_t key, size_t n, void *out, size_t *size)
{
    ENTER();
    const object *const o = asked_of(b, BUFFER);
    const uint32_t kind = OPENCL_BUFFER;
    const size_t from = o && o->parent ? (size_t)(o->at - o->parent->at) : 0;
    return !o                          ? OPENCL_INVALID_BUFFER
           : key == OPENCL_MEM_KIND    ? tell(&kind, sizeof kind, n, out, size)
           : key == OPENCL_MEM_BYTES   ? tell(&o->bytes, sizeof o->bytes, n, out, size)
           : key == OPENCL_MEM_CONTEXT ? tell(&o->context, sizeof o->context, n, out, size)
           : key == OPENCL_MEM_WHOLE   ? tell(&o->parent, sizeof o->parent, n, out, size)
           : key == OPENCL_MEM_OFFSET  ? tell(&from, sizeof from, n, out, size)
                                       : OPENCL_INVALID_VALUE;
}

int32_t clReleaseMemObject(cl_object b)
{
    return release(b, BUFFER, __func__);
}

/** Where `bytes` of a buffer from `at` on lie; NULL: it has not so many. */
static char *inside(cl_object b, size_t at, size_t bytes, const char *call)
{
    const object *const o = object_of(b, BUFFER, call);
    if (bytes == 0 || at > o->bytes || bytes > o->bytes - at) {
        complain("%s: %zu bytes at %zu of a buffer of %zu", call, bytes, at, o->bytes);
        return NULL;
    }
    return o->at + at;
}

/** Nothing here is waited for, or says that it is done. */
static void check_queue(cl_object q, uint32_t waits, uint32_t n, const cl_object *done,
                        const char *call)
{
    object_of(q, QUEUE, call);
    if (waits || n || done) {
        complain("%s waits, or has events", call);
    }
}

int32_t clEnqueueWriteBuffer(cl_object q, cl_object b, uint32_t waits, size_t at, size_t bytes,
                             const void *from, uint32_t n, const cl_object *before, cl_object *done)
{
    (void)before;
    ENTER();
    check_queue(q, waits, n, done, __func__);
    char *const to = inside(b, at, bytes, __func__);
    if (!to) {
        return OPENCL_INVALID_VALUE;
    }
    S.copies++;
    S.bytes_in += (int64_t)bytes;
    return add((command){.stream = q, .kind = PUT, .to = to, .from = from, .bytes = bytes});
}

int32_t clEnqueueReadBuffer(cl_object q, cl_object b, uint32_t waits, size_t at, size_t bytes,
                            void *to, uint32_t n, const cl_object *before, cl_object *done)
{
    (void)before;
    ENTER();
    check_queue(q, waits, n, done, __func__);
    const char *const from = inside(b, at, bytes, __func__);
    if (!from) {
        return OPENCL_INVALID_VALUE;
    }
    S.copies++;
    S.bytes_out += (int64_t)bytes;
    return add((command){.stream = q, .kind = GET, .to = to, .from = from, .bytes = bytes});
}

int32_t clEnqueueCopyBuffer(cl_object q, cl_object from, cl_object to, size_t at_from, size_t at_to,
                            size_t bytes, uint32_t n, const cl_object *before, cl_object *done)
{
    (void)before;
    ENTER();
    check_queue(q, 0, n, done, __func__);
    const char *const x = inside(from, at_from, bytes, __func__);
    char *const y = inside(to, at_to, bytes, __func__);
    if (!x || !y) {
        return OPENCL_INVALID_VALUE;
    }
    if (x < y + bytes && y < x + bytes) {
        return COPY_OVERLAP;
    }
    return add((command){.stream = q, .kind = COPY, .to = y, .from = x, .bytes = bytes});
}

int32_t clEnqueueFillBuffer(cl_object q, cl_object b, const void *pattern, size_t length, size_t at,
                            size_t bytes, uint32_t n, const cl_object *before, cl_object *done)
{
    (void)before;
    ENTER();
    check_queue(q, 0, n, done, __func__);
    char *const to = inside(b, at, bytes, __func__);
    if (!to || length != 1) {
        return OPENCL_INVALID_VALUE;
    }
    return add((command){.stream = q,
                         .kind = FILL,
                         .to = to,
                         .byte = *(const unsigned char *)pattern,
                         .bytes = bytes});
}

/* ---- programs and kernels -------------------------------------------------------------------- */

cl_object clCreateProgramWithSource(cl_object c, uint32_t n, const char **texts,
                                    const size_t *lengths, int32_t *error)
{
    object_of(c, CONTEXT, __func__);
    ENTER_MAKER();
    if (n == 0 || lengths) {
        REFUSE(OPENCL_INVALID_VALUE);
    }
    size_t bytes = 1;
    for (uint32_t i = 0; i < n; i++) {
        bytes += strlen(texts[i]);
    }
    object *const o = make(PROGRAM);
    o->text = calloc(1, bytes);
    for (uint32_t i = 0; i < n; i++) {
        strcat(o->text, texts[i]);
    }
    S.texts++;
    return o;
}

int32_t clBuildProgram(cl_object p, uint32_t n, const cl_object *devices, const char *options,
                       void (*done)(cl_object, void *), void *user)
{
    (void)user;
    ENTER();
    object *const o = object_of(p, PROGRAM, __func__);
    if (n != 1 || devices[0] != &device || done || !strstr(options, "-cl-std=CL1.2")) {
        return OPENCL_INVALID_VALUE;
    }
    o->built = true;
    return 0;
}

int32_t clGetProgramBuildInfo(cl_object p, cl_object d, uint32_t key, size_t n, void *out,
                              size_t *size)
{
    ENTER();
    object_of(p, PROGRAM, __func__);
    return d != &device || key != OPENCL_BUILD_LOG
               ? OPENCL_INVALID_VALUE
               : tell("a stand-in's log", sizeof "a stand-in's log", n, out, size);
}

int32_t clReleaseProgram(cl_object p)
{
    return release(p, PROGRAM, __func__);
}

cl_object clCreateKernel(cl_object p, const char *name, int32_t *error)
{
    const object *const of = object_of(p, PROGRAM, __func__);
    const frgi_kernel *kernel;
    frgi_kernel_type type;
    ENTER_MAKER();
    if (!of->built) {
        REFUSE(NOT_BUILT);
    }
    if (!strstr(of->text, name) || !split_name(name, &kernel, &type)) {
        REFUSE(INVALID_KERNEL_NAME);
    }
    object *const o = make(KERNEL_OBJECT);
    set_function(&o->function, kernel, type);
    return o;
}

int32_t clReleaseKernel(cl_object k)
{
    return release(k, KERNEL_OBJECT, __func__);
}

int32_t clGetKernelWorkGroupInfo(cl_object k, cl_object d, uint32_t key, size_t n, void *out,
                                 size_t *size)
{
    const size_t most = KERNEL_GROUP_MOST;
    ENTER();
    object_of(k, KERNEL_OBJECT, __func__);
    return d != &device || key != OPENCL_KERNEL_GROUP_SIZE ? OPENCL_INVALID_VALUE
                                                           : tell(&most, sizeof most, n, out, size);
}

int32_t clSetKernelArg(cl_object k, uint32_t i, size_t bytes, const void *value)
{
    ENTER();
    object *const o = object_of(k, KERNEL_OBJECT, __func__);
    const function *const f = &o->function;
    if (i >= (uint32_t)f->count) {
        return INVALID_ARG_INDEX;
    }
    if (bytes != (size_t)f->sizes[i]) {
        complain("argument %u of %s has %zu bytes", i, f->kernel->name, bytes);
        return INVALID_ARG_SIZE;
    }
    if (f->kernel->args[i] == 'p') {
        cl_object buffer;
        memcpy(&buffer, value, sizeof buffer);
        o->values[i] = buffer ? (uintptr_t)object_of(buffer, BUFFER, __func__)->at : 0;
    } else {
        memcpy(&o->values[i], value, bytes);
    }
    o->given |= UINT32_C(1) << i;
    return 0;
}

int32_t clEnqueueNDRangeKernel(cl_object q, cl_object k, uint32_t axes, const size_t *from,
                               const size_t *global, const size_t *local, uint32_t n,
                               const cl_object *before, cl_object *done)
{
    (void)before;
    ENTER();
    check_queue(q, 0, n, done, __func__);
    object *const o = object_of(k, KERNEL_OBJECT, __func__);
    if (o->given + UINT64_C(1) != UINT64_C(1) << o->function.count) {
        return INVALID_KERNEL_ARGS;
    }
    if (axes != 2 || from || local[0] < 1 || local[0] > KERNEL_GROUP_MOST || local[1] != 1 ||
        global[0] == 0 || global[1] == 0 || global[0] % local[0]) {
        complain("a launch of %zu x %zu items in groups of %zu", global[0], global[1], local[0]);
        return INVALID_WORK_GROUP_SIZE;
    }
    command c = {.stream = q,
                 .kind = LAUNCH_KERNEL,
                 .function = &o->function,
                 .groups = {(int64_t)(global[0] / local[0]), (int64_t)global[1]}};
    memcpy(c.values, o->values, sizeof c.values);
    S.launches++;
    return add(c);
}

/* ---- waiting --------------------------------------------------------------------------------- */

int32_t clEnqueueMarkerWithWaitList(cl_object q, uint32_t n, const cl_object *before,
                                    cl_object *made)
{
    (void)before;
    ENTER();
    check_queue(q, 0, n, NULL, __func__);
    object *const o = make(EVENT);
    o->mark.pending = true;
    *made = o;
    return add((command){.stream = q, .kind = MARK, .event = &o->mark});
}

/** Asked for an event, the device may get on a little. */
int32_t clGetEventInfo(cl_object e, uint32_t key, size_t n, void *out, size_t *size)
{
    ENTER();
    const object *const o = object_of(e, EVENT, __func__);
    if (o->mark.pending && draw() % 2) {
        run_one(first->stream);
    }
    const int32_t at = sticky ? sticky : o->mark.pending ? QUEUED : OPENCL_COMPLETE;
    return key == OPENCL_EVENT_STATUS ? tell(&at, sizeof at, n, out, size) : OPENCL_INVALID_VALUE;
}

int32_t clWaitForEvents(uint32_t n, const cl_object *events)
{
    ENTER();
    S.waits++;
    for (uint32_t i = 0; i < n; i++) {
        while (object_of(events[i], EVENT, __func__)->mark.pending) {
            run_one(first->stream);
        }
    }
    return sticky;
}

int32_t clReleaseEvent(cl_object e)
{
    return release(e, EVENT, __func__);
}

/** Some commands may begin. */
int32_t clFlush(cl_object q)
{
    ENTER();
    object_of(q, QUEUE, __func__);
    while (first && draw() % 2) {
        run_one(first->stream);
    }
    return 0;
}

int32_t clFinish(cl_object q)
{
    const int error = enter();
    object_of(q, QUEUE, __func__);
    S.waits++;
    while (run_one(q)) {
    }
    return error ? error : sticky;
}
