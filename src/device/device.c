/* device.c - what rooms call of a device: checks and counts before the machine's table, and its
 * errors as the context's. */
#include "device/device.h"
#include "device/device_plugin.h"

#include <stdio.h>
#include <string.h>

#include "core/context.h"

enum { DEVICE_NAME = 24 };

struct frgi_program {
    frgi_program *next;
    const frgi_kernels *texts;
    frgi_kernel_type type;
    void *loaded;
    void **kernels; /* by the index in `texts` */
};

struct frgi_device {
    frg_context *ctx;
    frg_device which;
    const frgi_device_ops *ops;
    frgi_machine *machine;
    frgi_device_setup setup;
    frgi_device_properties is;
    frgi_device_counts counted;
    frgi_program *programs;
    size_t held; /* bytes of blocks */
    char name[DEVICE_NAME];
    char lost[sizeof(frgi_device_error)]; /* the first failure that it will not recover from */
};

/** The context's error for what a machine has said.  Copies that wait in the queue may be of memory
 *  that the caller gives up on hearing of it: they end first. */
static frg_status failed(frgi_device *dev, frg_status status, const frgi_device_error *e)
{
    frg_context *const ctx = dev->ctx;
    frgi_device_error more = {""};
    if (dev->machine) {
        const frg_status ended = dev->ops->event.wait(dev->machine, NULL, &more);
        (void)ended; /* what is reported is the first failure */
    }
    switch (status) {
    case FRG_NO_MEMORY:
        FAIL(ctx, E_MEMORY, "%s: %s", dev->name, e->text);
    case FRG_UNSUPPORTED:
        FAIL(ctx, E_DEVICE_STEP, "%s: %s", dev->name, e->text);
    case FRG_BAD_ARG:
        FAIL(ctx, E_DEVICE_HANDLE, "%s: %s", dev->name, e->text);
    case FRG_NO_DEVICE:
        FAIL(ctx, E_DEVICE, "%s: %s", dev->name, e->text);
    default:
        memcpy(dev->lost, e->text, sizeof dev->lost);
        FAIL(ctx, E_DEVICE_LOST, "%s: %s", dev->name, e->text);
    }
}

/** Runs a call of the table, which writes into `e`; a device that has failed is asked nothing. */
#define ASK(dev, call)                                                                             \
    do {                                                                                           \
        if ((dev)->lost[0])                                                                        \
            FAIL((dev)->ctx, E_DEVICE_LOST, "%s has failed before: %s", (dev)->name, (dev)->lost); \
        frgi_device_error e = {""};                                                                \
        const frg_status asked_ = (call);                                                          \
        if (asked_ < 0)                                                                            \
            return failed((dev), asked_, &e);                                                      \
    } while (0)

/* ---- open and close -------------------------------------------------------------------------- */

static void *take_memory(size_t bytes, void *ctx)
{
    void *p;
    return frgi_alloc(ctx, &p, bytes, "device plug-in") < 0 ? NULL : p;
}

static void give_memory(void *p, size_t bytes, void *ctx)
{
    (void)bytes;
    frgi_free(ctx, &p);
}

static frg_status open_machine(frgi_device *dev, frg_device which)
{
    ASK(dev, frgi_plugin_find(which.kind, &dev->ops, &e));
    int count;
    ASK(dev, dev->ops->machine.count(&dev->setup, &count, &e));
    if (which.index < 0 || which.index >= count) {
        FAIL(dev->ctx, E_DEVICE, "there is no device %s: the driver has %d of its kind", dev->name,
             count);
    }
    ASK(dev, dev->ops->machine.properties(&dev->setup, which.index, &dev->is, &e));
    const frg_device own = dev->ctx->opts.device;
    const bool same = own.kind == which.kind && own.index == which.index;
    void *const stream = same ? dev->ctx->opts.stream : NULL;
    ASK(dev, dev->ops->machine.open(&dev->setup, which.index, stream, &dev->machine, &e));
    return FRG_OK;
}

frg_status frgi_device_open(frgi_device **out, frg_context *ctx, frg_device which)
{
    frgi_device *dev;
    *out = NULL;
    TRY(NEW0(ctx, &dev, 1, "device"));
    dev->ctx = ctx;
    dev->which = which;
    dev->setup = (frgi_device_setup){.memory = {take_memory, give_memory, ctx},
                                     .threads = frg_threads(ctx),
                                     .hide_f64 = frgi_hides_f64()};
    frgi_plugin_name(which, dev->name, sizeof dev->name);
    const frg_status status = open_machine(dev, which);
    if (status < 0) {
        frgi_device_close(&dev);
        return status;
    }
    *out = dev;
    return FRG_OK;
}

void frgi_device_close(frgi_device **dev)
{
    frgi_device *const d = *dev;
    if (!d) {
        return;
    }
    for (frgi_program *p = d->programs, *next; p; p = next) {
        next = p->next;
        d->ops->program.unload(d->machine, p->loaded);
        DROP(d->ctx, &p->kernels);
        DROP(d->ctx, &p);
    }
    if (d->machine) {
        d->ops->machine.close(d->machine);
    }
    DROP(d->ctx, dev);
}

frg_status frgi_context_open_device(frg_context *ctx)
{
    return frgi_device_open(&ctx->device, ctx, ctx->opts.device);
}

void frgi_context_close_device(frg_context *ctx)
{
    frgi_device_close(&ctx->device);
}

frg_status frg_context_set_stream(frg_context *ctx, void *stream)
{
    if (!ctx) {
        return FRG_BAD_ARG;
    }
    frgi_device *const dev = ctx->device;
    if (!dev && stream) {
        FAIL(ctx, E_UNSUPPORTED, "the cpu has no streams: make the context for a device");
    }
    if (dev && stream != ctx->opts.stream) {
        ASK(dev, dev->ops->machine.follow(dev->machine, stream, &e));
        ctx->opts.stream = stream;
    }
    return FRG_OK;
}

frgi_device *frgi_device_of(const frg_context *ctx)
{
    return ctx->device;
}

const frgi_device_properties *frgi_device_is(const frgi_device *dev)
{
    return &dev->is;
}

frgi_beside frgi_device_beside(const frgi_device *dev)
{
    return !dev ? FRGI_BESIDE_NONE : frgi_device_is(dev)->f64 ? FRGI_BESIDE_F64 : FRGI_BESIDE_F32;
}

const char *frgi_device_name(const frgi_device *dev)
{
    return dev->name;
}

frgi_device_counts *frgi_device_counted(frgi_device *dev)
{
    return &dev->counted;
}

frgi_device_counts frgi_device_counts_now(const frgi_device *dev)
{
    return dev ? dev->counted : (frgi_device_counts){0};
}

void frgi_device_counts_since(const frgi_device *dev, frgi_device_counts before,
                              frgi_device_counts *total)
{
    const frgi_device_counts now = frgi_device_counts_now(dev);
    total->launches += now.launches - before.launches;
    total->waits += now.waits - before.waits;
    total->copies += now.copies - before.copies;
    total->bytes_in += now.bytes_in - before.bytes_in;
    total->bytes_out += now.bytes_out - before.bytes_out;
}

/* ---- programs -------------------------------------------------------------------------------- */

static frg_status load(frgi_device *dev, frgi_program *p)
{
    TRY(NEW0(dev->ctx, &p->kernels, p->texts->count, "kernels"));
    ASK(dev, dev->ops->program.load(dev->machine, p->texts, p->type, &p->loaded, &e));
    for (int i = 0; i < p->texts->count; i++) {
        ASK(dev, dev->ops->program.find(dev->machine, p->loaded, i, &p->kernels[i], &e));
    }
    return FRG_OK;
}

frg_status frgi_device_load(frgi_device *dev, const frgi_kernels *k, frgi_kernel_type type,
                            const frgi_program **out)
{
    for (frgi_program *p = dev->programs; p; p = p->next) {
        if (p->texts == k && p->type == type) {
            *out = p;
            return FRG_OK;
        }
    }
    if (type != FRGI_F32 && !dev->is.f64) {
        FAIL(dev->ctx, E_PRECISION, "%s (%s) has no double precision", dev->name, dev->is.name);
    }
    frgi_program *p;
    TRY(NEW0(dev->ctx, &p, 1, "program"));
    *p = (frgi_program){.texts = k, .type = type};
    const frg_status status = load(dev, p);
    if (status < 0) {
        dev->ops->program.unload(dev->machine, p->loaded);
        DROP(dev->ctx, &p->kernels);
        DROP(dev->ctx, &p);
        return status;
    }
    p->next = dev->programs;
    dev->programs = p;
    *out = p;
    return FRG_OK;
}

/** Index of the kernel of that name, -1: none. */
static int index_of(const frgi_kernels *k, const char *name)
{
    int i = k->count - 1;
    while (i >= 0 && strcmp(k->kernels[i].name, name) != 0) {
        i--;
    }
    return i;
}

/** An argument in the type that the kernel has: r and w become f or d. */
static frgi_arg typed(frgi_arg a, frgi_kernel_type type)
{
    if (a.kind == 'r' || a.kind == 'w') {
        const double x = a.as.f64;
        const bool wide = type == FRGI_F64 || (type == FRGI_MIXED && a.kind == 'w');
        a.kind = wide ? 'd' : 'f';
        if (!wide) {
            a.as.f32 = (float)x;
        }
    }
    return a;
}

frg_status frgi_device_launch(frgi_device *dev, const frgi_program *p, const char *kernel,
                              const int64_t groups[2], int size, const frgi_arg *args, int count)
{
    const int at = index_of(p->texts, kernel);
    if (at < 0) {
        FAIL(dev->ctx, E_BUG, "there is no kernel %s in %s", kernel, p->texts->room);
    }
    const char *const kinds = p->texts->kernels[at].args;
    frgi_arg own[FRGI_ARGS_MOST];
    bool fits = count <= FRGI_ARGS_MOST && count == (int)strlen(kinds);
    for (int i = 0; i < count && fits; i++) {
        fits = args[i].kind == kinds[i];
        own[i] = typed(args[i], p->type);
    }
    fits = fits && size > 0 && size <= FRGI_GROUP_MOST && (size & (size - 1)) == 0;
    fits = fits && groups[0] <= INT32_MAX && groups[1] <= UINT16_MAX;
    if (!fits) {
        FAIL(dev->ctx, E_BUG, "kernel %s (%s): %d arguments, groups of %d do not fit", kernel,
             kinds, count, size);
    }
    if (groups[0] <= 0 || groups[1] <= 0) {
        return FRG_OK;
    }
    dev->counted.launches++;
    const int fitted = size < dev->is.group_most ? size : dev->is.group_most;
    ASK(dev,
        dev->ops->program.launch(dev->machine, p->kernels[at], groups, fitted, own, count, &e));
    return FRG_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

frg_status frgi_device_alloc(frgi_device *dev, size_t bytes, const char *what, frgi_buffer *out)
{
    const int64_t limit = dev->ctx->opts.memory_limit;
    frgi_buffer b = {.bytes = bytes};
    if (bytes == 0) {
        *out = b;
        return FRG_OK;
    }
    if (limit > 0 && (bytes > (size_t)limit || dev->held > (size_t)limit - bytes)) {
        FAIL(dev->ctx, E_MEMORY, "%s: %zu bytes for %s beside %zu are more than the limit of %lld",
             dev->name, bytes, what, dev->held, (long long)limit);
    }
    if (bytes > dev->is.largest) {
        FAIL(dev->ctx, E_MEMORY, "%s: %zu bytes for %s are more than a block may have (%zu)",
             dev->name, bytes, what, dev->is.largest);
    }
    ASK(dev, dev->ops->memory.allocate(dev->machine, bytes, &b.handle, &e));
    dev->held += bytes;
    *out = b;
    return FRG_OK;
}

void frgi_device_free(frgi_device *dev, frgi_buffer *b)
{
    if (b->handle) {
        dev->ops->memory.release(dev->machine, b->handle);
        dev->held -= b->bytes;
    }
    *b = (frgi_buffer){0};
}

/** Bytes from the first element of a view to the end of its last; 0: it has none. */
static frg_status extent(frgi_device *dev, const frg_array *a, const char *what, size_t *out)
{
    int64_t last = 0;
    bool empty = false, fits = a->ndim >= 0 && a->ndim <= FRG_MAX_DIM && frg_sizeof(a->dtype) > 0;
    for (int d = 0; fits && d < a->ndim; d++) {
        const int64_t length = a->shape[d];
        int64_t reach = 0;
        empty = empty || length == 0;
        fits = length >= 0 && !__builtin_mul_overflow(length - 1, a->stride[d], &reach) &&
               !__builtin_add_overflow(last, length > 1 ? reach : 0, &last);
        if (length > 1 && a->stride[d] < 0) {
            FAIL(dev->ctx, E_DEVICE_HANDLE, "%s: axis %d runs backwards; give a copy", what, d);
        }
    }
    REQUIRE(dev->ctx, fits && last < INT64_MAX / 8, "%s: axes, lengths or type are none", what);
    *out = empty ? 0 : ((size_t)last + 1) * frg_sizeof(a->dtype);
    return FRG_OK;
}

static frg_status ask_to_adopt(frgi_device *dev, frgi_buffer asked, size_t unit, frgi_buffer *out)
{
    ASK(dev, dev->ops->memory.adopt(dev->machine, asked, unit, out, &e));
    return FRG_OK;
}

frg_status frgi_device_adopt(frgi_device *dev, const frg_array *view, const char *what,
                             frgi_buffer *out)
{
    frg_context *const ctx = dev->ctx;
    frgi_buffer asked = {view->data, view->offset, 0}, b = {0};
    TRY(extent(dev, view, what, &asked.bytes));
    if (view->device.kind != dev->which.kind || view->device.index != dev->which.index) {
        char where[DEVICE_NAME];
        frgi_plugin_name(view->device, where, sizeof where);
        FAIL(ctx, E_DEVICE_HANDLE, "%s lies on %s, and %s computes: give an array of its own", what,
             where, dev->name);
    }
    if (asked.bytes > 0) {
        REQUIRE(ctx, asked.handle, "%s: data is NULL", what);
        const frg_status status = ask_to_adopt(dev, asked, frg_sizeof(view->dtype), &b);
        if (status < 0) {
            frgi_fail_of(ctx, what);
            return status;
        }
    }
    *out = b;
    return FRG_OK;
}

void frgi_device_disown(frgi_device *dev, frgi_buffer *b)
{
    if (b->handle) {
        dev->ops->memory.disown(dev->machine, b->handle);
    }
    *b = (frgi_buffer){0};
}

frg_status frgi_device_pin(frgi_device *dev, size_t bytes, void **out)
{
    *out = NULL;
    ASK(dev, dev->ops->memory.pin(dev->machine, bytes, out, &e));
    return FRG_OK;
}

void frgi_device_unpin(frgi_device *dev, void **p)
{
    dev->ops->memory.unpin(dev->machine, *p);
    *p = NULL;
}

frgi_buffer frgi_device_slice(frgi_buffer b, size_t offset, size_t bytes)
{
    assert(offset <= b.bytes && bytes <= b.bytes - offset);
    return (frgi_buffer){b.handle, b.offset + offset, bytes};
}

frgi_buffer frgi_device_take(frgi_device_arena *a, size_t bytes)
{
    const frgi_buffer part = {a->block.handle, a->used, bytes};
    const size_t align = a->align ? a->align : 1;
    a->used = frgi_add(a->used, bytes);
    a->used = a->used > SIZE_MAX - align ? SIZE_MAX : (a->used + align - 1) & ~(align - 1);
    assert(!a->block.handle || a->used <= a->block.bytes);
    return part;
}

frg_status frgi_device_arena_open(frgi_device_arena *a, frgi_device *dev, const char *what)
{
    const size_t bytes = a->used;
    a->used = 0;
    return frgi_device_alloc(dev, bytes, what, &a->block);
}

void frgi_device_arena_close(frgi_device_arena *a, frgi_device *dev)
{
    frgi_device_free(dev, &a->block);
    a->used = 0;
}

frg_status frgi_device_put(frgi_device *dev, frgi_buffer to, const void *from, size_t bytes)
{
    assert(bytes <= to.bytes);
    if (bytes == 0) {
        return FRG_OK;
    }
    dev->counted.copies++;
    dev->counted.bytes_in += (int64_t)bytes;
    ASK(dev, dev->ops->transfer.put(dev->machine, to, from, bytes, &e));
    return FRG_OK;
}

frg_status frgi_device_get(frgi_device *dev, void *to, frgi_buffer from, size_t bytes)
{
    assert(bytes <= from.bytes);
    if (bytes == 0) {
        return FRG_OK;
    }
    dev->counted.copies++;
    dev->counted.bytes_out += (int64_t)bytes;
    ASK(dev, dev->ops->transfer.get(dev->machine, to, from, bytes, &e));
    return FRG_OK;
}

frg_status frgi_device_copy(frgi_device *dev, frgi_buffer to, frgi_buffer from, size_t bytes)
{
    assert(bytes <= from.bytes && bytes <= to.bytes);
    if (bytes > 0) {
        ASK(dev, dev->ops->transfer.copy(dev->machine, to, from, bytes, &e));
    }
    return FRG_OK;
}

frg_status frgi_device_fill(frgi_device *dev, frgi_buffer to, int byte, size_t bytes)
{
    assert(bytes <= to.bytes);
    if (bytes > 0) {
        ASK(dev, dev->ops->transfer.fill(dev->machine, to, byte, bytes, &e));
    }
    return FRG_OK;
}

/* ---- waiting --------------------------------------------------------------------------------- */

frg_status frgi_device_wait(frgi_device *dev)
{
    dev->counted.waits++;
    ASK(dev, dev->ops->event.wait(dev->machine, NULL, &e));
    return FRG_OK;
}

frg_status frgi_event_record(frgi_device *dev, frgi_event *out)
{
    ASK(dev, dev->ops->event.record(dev->machine, &out->handle, &e));
    return FRG_OK;
}

frg_status frgi_event_reached(frgi_device *dev, frgi_event event, bool *out)
{
    int reached;
    ASK(dev, dev->ops->event.reached(dev->machine, event.handle, &reached, &e));
    *out = reached;
    return FRG_OK;
}

frg_status frgi_event_wait(frgi_device *dev, frgi_event event)
{
    dev->counted.waits++;
    ASK(dev, dev->ops->event.wait(dev->machine, event.handle, &e));
    return FRG_OK;
}

void frgi_event_forget(frgi_device *dev, frgi_event *event)
{
    dev->ops->event.forget(dev->machine, event->handle);
    event->handle = NULL;
}
