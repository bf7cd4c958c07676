/* standin_cuda.c - libcuda.so.1 for tests: the entry points that the plug-in uses, see standin.h. */
#include "device/cuda/cuda_api.h"

enum {
    INVALID_VALUE = 1,
    INVALID_CONTEXT = 201,
    INVALID_IMAGE = 200,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700
};

#define STANDIN standin_cuda
#include "standin_queue.h"

/** The calls' declarations, for the compiler. */
#define DECLARE(name, symbol, arguments) EXPORT int symbol arguments;
CUDA_CALLS(DECLARE)
#undef DECLARE

EXPORT standin standin_cuda = {.memory = (size_t)1 << 30, .major = 12, .minor = 0};

enum { FUNCTIONS = 256 };
typedef struct {
    int count;
    char *image;
    size_t bytes;
    function functions[FUNCTIONS];
} module;

static int contexts_pushed;
static char primary_context;

static int enter_context(const char *call)
{
    if (contexts_pushed == 0) {
        complain("%s without a current context", call);
    }
    return enter();
}

#define ENTER()                                                                                    \
    do {                                                                                           \
        const int error_ = enter();                                                                \
        if (error_)                                                                                \
            return error_;                                                                         \
    } while (0)
#define ENTER_CONTEXT()                                                                            \
    do {                                                                                           \
        const int error_ = enter_context(__func__);                                                \
        if (error_)                                                                                \
            return error_;                                                                         \
    } while (0)

int cuMemAlloc_v2(cuda_address *p, size_t bytes)
{
    ENTER_CONTEXT();
    if (bytes == 0) {
        return INVALID_VALUE;
    }
    const block *const b = take_block(bytes);
    if (!b) {
        return CUDA_OUT_OF_MEMORY;
    }
    *p = (cuda_address)(uintptr_t)b->at;
    return 0;
}

int cuMemFree_v2(cuda_address p)
{
    const int error = enter_context(__func__);
    run_all(); /* as the real one waits */
    if (!drop_block((const char *)(uintptr_t)p)) {
        return INVALID_VALUE;
    }
    return error;
}

int cuPointerGetAttribute(void *value, int key, cuda_address p)
{
    ENTER_CONTEXT();
    const char *const at = (const char *)(uintptr_t)p;
    const int device = S.ordinal, kind = CUDA_ON_DEVICE;
    const block *b = blocks;
    while (b && !(at >= b->at && at < b->at + b->bytes)) {
        b = b->next;
    }
    if (!b || (key != CUDA_KIND_OF_MEMORY && key != CUDA_DEVICE_OF_MEMORY)) {
        return INVALID_VALUE;
    }
    memcpy(value, key == CUDA_KIND_OF_MEMORY ? &kind : &device, sizeof device);
    return 0;
}

int cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
    (void)flags;
    ENTER_CONTEXT();
    *p = calloc(1, bytes);
    S.objects++;
    return *p ? 0 : CUDA_OUT_OF_MEMORY;
}

int cuMemFreeHost(void *p)
{
    const int error = enter_context(__func__);
    run_all();
    free(p);
    S.objects--;
    return error;
}

int cuMemcpyHtoDAsync_v2(cuda_address to, const void *from, size_t bytes, cuda_object stream)
{
    ENTER_CONTEXT();
    S.copies++;
    S.bytes_in += (int64_t)bytes;
    return add((command){
        .stream = stream, .kind = PUT, .to = (char *)(uintptr_t)to, .from = from, .bytes = bytes});
}

int cuMemcpyDtoHAsync_v2(void *to, cuda_address from, size_t bytes, cuda_object stream)
{
    ENTER_CONTEXT();
    S.copies++;
    S.bytes_out += (int64_t)bytes;
    return add((command){.stream = stream,
                         .kind = GET,
                         .to = to,
                         .from = (const char *)(uintptr_t)from,
                         .bytes = bytes});
}

int cuMemcpyDtoDAsync_v2(cuda_address to, cuda_address from, size_t bytes, cuda_object stream)
{
    ENTER_CONTEXT();
    return add((command){.stream = stream,
                         .kind = COPY,
                         .to = (char *)(uintptr_t)to,
                         .from = (const char *)(uintptr_t)from,
                         .bytes = bytes});
}

int cuMemsetD8Async(cuda_address to, unsigned char byte, size_t bytes, cuda_object stream)
{
    ENTER_CONTEXT();
    return add((command){
        .stream = stream, .kind = FILL, .to = (char *)(uintptr_t)to, .byte = byte, .bytes = bytes});
}

int cuLaunchKernel(cuda_object kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared, cuda_object stream, void **args,
                   void **extra)
{
    ENTER_CONTEXT();
    function *const f = kernel;
    if (gx < 1 || gx > INT32_MAX || gy < 1 || gy > 65535 || gz != 1 || bx < 1 || bx > 1024 ||
        by != 1 || bz != 1 || shared > 48 << 10 || extra) {
        complain("a launch of %u x %u x %u groups of %u", gx, gy, gz, bx);
        return INVALID_VALUE;
    }
    command c = {
        .stream = stream, .kind = LAUNCH_KERNEL, .function = f, .groups = {(int64_t)gx, gy}};
    for (int i = 0; i < f->count; i++) {
        memcpy(&c.values[i], args[i], (size_t)f->sizes[i]);
    }
    S.launches++;
    return add(c);
}

/* ---- streams and events ---------------------------------------------------------------------- */

int cuStreamCreate(cuda_object *stream, unsigned flags)
{
    (void)flags;
    ENTER_CONTEXT();
    *stream = malloc(1);
    S.objects++;
    return 0;
}

int cuStreamDestroy_v2(cuda_object stream)
{
    const int error = enter_context(__func__);
    run_all();
    free(stream);
    S.objects--;
    return error;
}

int cuStreamSynchronize(cuda_object stream)
{
    const int error = enter_context(__func__);
    S.waits++;
    while (run_one(stream)) {
    }
    return error ? error : sticky;
}

int cuEventCreate(cuda_object *out, unsigned flags)
{
    (void)flags;
    ENTER_CONTEXT();
    *out = calloc(1, sizeof(event));
    S.objects++;
    return 0;
}

int cuEventRecord(cuda_object e, cuda_object stream)
{
    ENTER_CONTEXT();
    ((event *)e)->pending = true;
    return add((command){.stream = stream, .kind = MARK, .event = e});
}

/** The stream in whose queue the event waits. */
static void *stream_of(const event *e)
{
    command *c = first;
    while (c && !(c->kind == MARK && c->event == e)) {
        c = c->next;
    }
    return c ? c->stream : NULL;
}

/** Asked for an event, the device may get on a little. */
int cuEventQuery(cuda_object e)
{
    ENTER_CONTEXT();
    if (((event *)e)->pending && draw() % 2) {
        run_one(stream_of(e));
    }
    return sticky ? sticky : ((event *)e)->pending ? CUDA_NOT_READY : 0;
}

int cuEventSynchronize(cuda_object e)
{
    ENTER_CONTEXT();
    S.waits++;
    while (((event *)e)->pending) {
        run_one(stream_of(e));
    }
    return sticky;
}

int cuEventDestroy_v2(cuda_object e)
{
    const int error = enter_context(__func__);
    while (((event *)e)->pending) {
        run_one(stream_of(e));
    }
    free(e);
    S.objects--;
    return error;
}

/* ---- modules --------------------------------------------------------------------------------- */

/** Do the parameters of PTX's .entry have the sizes of the kernel's arguments? */
static bool parameters_fit(const char *entry, const function *f)
{
    const char *const end = strchr(entry, ')');
    int n = 0;
    for (const char *p = strstr(entry, ".param ."); p && end && p < end;
         p = strstr(p + 1, ".param .")) {
        const int bits = atoi(p + strlen(".param .") + 1); /* u64, f32 */
        if (n >= f->count || bits != 8 * f->sizes[n]) {
            return false;
        }
        n++;
    }
    return end && n == f->count;
}

/** Bytes of an ELF file, up to the end of its table of sections. */
static size_t elf_bytes(const unsigned char *image)
{
    uint64_t table;
    uint16_t size, count;
    memcpy(&table, image + 0x28, sizeof table);
    memcpy(&size, image + 0x3a, sizeof size);
    memcpy(&count, image + 0x3c, sizeof count);
    return table + (size_t)size * count;
}

int cuModuleLoadData(cuda_object *out, const void *image)
{
    ENTER_CONTEXT();
    const bool elf = memcmp(image,
                            "\x7f"
                            "ELF",
                            4) == 0;
    if (!elf && !strstr(image, ".version ")) {
        return INVALID_IMAGE;
    }
    module *const m = calloc(1, sizeof *m);
    m->bytes = elf ? elf_bytes(image) : strlen(image) + 1;
    m->image = malloc(m->bytes);
    memcpy(m->image, image, m->bytes);
    S.cubins += elf;
    S.texts += !elf;
    S.objects++;
    *out = m;
    return 0;
}

int cuModuleUnload(cuda_object mod)
{
    const int error = enter_context(__func__);
    module *const m = mod;
    run_all();
    free(m->image);
    free(m);
    S.objects--;
    return error;
}

/** Where `what` is in the image; looked up first where it was in the one before, which is mostly
 *  the same: images are megabytes. */
static const char *find_entry(const module *m, const char *what)
{
    static size_t places[1024];
    const size_t bytes = strlen(what);
    size_t slot = 0;
    for (size_t q = 0; q < bytes; q++) {
        slot = (31 * slot + (unsigned char)what[q]) % (sizeof places / sizeof *places);
    }
    const size_t before = places[slot];
    if (before + bytes <= m->bytes && memcmp(m->image + before, what, bytes) == 0) {
        return m->image + before;
    }
    const char *const at = memmem(m->image, m->bytes, what, bytes);
    places[slot] = at ? (size_t)(at - m->image) : 0;
    return at;
}

int cuModuleGetFunction(cuda_object *out, cuda_object mod, const char *name)
{
    ENTER_CONTEXT();
    module *const m = mod;
    char entry[FRGI_NAME_BYTES + 16];
    const frgi_kernel *kernel;
    frgi_kernel_type type;
    snprintf(entry, sizeof entry, ".entry %s(", name);
    const bool elf = m->image[0] == '\x7f';
    const char *const at = find_entry(m, elf ? name : entry);
    if (!at || !split_name(name, &kernel, &type) || m->count == FUNCTIONS) {
        return NOT_FOUND;
    }
    function *const f = &m->functions[m->count++];
    set_function(f, kernel, type);
    if (!elf && !parameters_fit(at, f)) {
        complain("the parameters of %s in PTX are not those of the plain C life", name);
        return INVALID_IMAGE;
    }
    *out = f;
    return 0;
}

/* ---- the device ------------------------------------------------------------------------------ */

int cuInit(unsigned flags)
{
    ENTER();
    return flags ? INVALID_VALUE : 0;
}

int cuDriverGetVersion(int *version)
{
    ENTER();
    *version = 13000;
    return 0;
}

int cuGetErrorString(int error, const char **text)
{
    (void)error;
    *text = "a stand-in's error";
    return 0;
}

int cuDeviceGetCount(int *count)
{
    ENTER();
    *count = 1;
    return 0;
}

int cuDeviceGet(int *device, int index)
{
    ENTER();
    *device = index;
    return index == 0 ? 0 : INVALID_VALUE;
}

int cuDeviceGetName(char *name, int bytes, int device)
{
    (void)device;
    ENTER();
    snprintf(name, (size_t)bytes, "stand-in");
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    ENTER();
    *bytes = S.memory;
    return 0;
}

int cuDeviceGetAttribute(int *value, int key, int device)
{
    (void)device;
    ENTER();
    *value = key == CUDA_GROUP_MOST     ? 1024
             : key == CUDA_LOCAL_MEMORY ? 48 << 10
             : key == CUDA_MAJOR        ? S.major
                                        : S.minor;
    return 0;
}

int cuDevicePrimaryCtxRetain(cuda_object *context, int device)
{
    (void)device;
    ENTER();
    S.objects++;
    *context = &primary_context;
    return 0;
}

/** A context that is given back takes its errors along, as a process that ends does. */
int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    const int error = enter();
    S.objects--;
    sticky = 0;
    return error;
}

int cuCtxPushCurrent_v2(cuda_object context)
{
    const int error = enter();
    if (error && !sticky) { /* a lost device still has a context */
        return error;
    }
    if (context != &primary_context) {
        complain("a context that is none was made current");
        return INVALID_CONTEXT;
    }
    contexts_pushed++;
    return 0;
}

int cuCtxPopCurrent_v2(cuda_object *context)
{
    *context = &primary_context;
    contexts_pushed--;
    return 0;
}
