/* device_host.c - the machine `host`: the plain C life of the kernels on this processor's threads,
 * where every command is done when its call returns.  Nothing is fast here: it is what the other
 * machines are held against, and where sanitizers see the kernels. */
#include "device/device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct frgi_machine {
    frg_allocator memory;
    int threads;
};

/** A kernel of a type. */
typedef void (*plain_kernel)(const frgi_item *item, void *const *args);

typedef struct {
    size_t bytes;
    const frgi_kernels *texts;
    frgi_kernel_type type;
    plain_kernel kernels[]; /* by the index in `texts` */
} host_program;

/** A block lies behind its length. */
enum { BLOCK_HEAD = 64 };

static frg_status host_count(const frgi_device_setup *s, int *out, frgi_device_error *e)
{
    (void)s, (void)e;
    *out = 1;
    return FRG_OK;
}

static frg_status host_properties(const frgi_device_setup *s, int index,
                                  frgi_device_properties *out, frgi_device_error *e)
{
    (void)s, (void)index, (void)e;
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const size_t all = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
    *out = (frgi_device_properties){.name = "host",
                                    .driver = "plain C",
                                    .memory = all,
                                    .largest = all > 0 ? all : SIZE_MAX / 2,
                                    .local_memory = (size_t)1 << 16,
                                    .align = 64,
                                    .group_most = 1,
                                    .f64 = 1};
    return FRG_OK;
}

static frg_status no_memory(frgi_device_error *e, size_t bytes)
{
    snprintf(e->text, sizeof e->text, "no memory for %zu bytes", bytes);
    return FRG_NO_MEMORY;
}

static frg_status host_open(const frgi_device_setup *s, int index, void *stream, frgi_machine **out,
                            frgi_device_error *e)
{
    (void)index, (void)stream;
    frgi_machine *const m = s->memory.alloc(sizeof *m, s->memory.user);
    if (!m) {
        return no_memory(e, sizeof *m);
    }
    *m = (frgi_machine){.memory = s->memory, .threads = s->threads};
    *out = m;
    return FRG_OK;
}

static frg_status host_follow(frgi_machine *m, void *stream, frgi_device_error *e)
{
    (void)m;
    if (stream) {
        snprintf(e->text, sizeof e->text, "the host has no streams");
        return FRG_UNSUPPORTED;
    }
    return FRG_OK;
}

static void host_close(frgi_machine *m)
{
    const frg_allocator memory = m->memory;
    memory.free(m, sizeof *m, memory.user);
}

static frg_status host_allocate(frgi_machine *m, size_t bytes, void **out, frgi_device_error *e)
{
    const size_t all = frgi_add(bytes, BLOCK_HEAD);
    char *const block = m->memory.alloc(all, m->memory.user);
    if (!block) {
        return no_memory(e, bytes);
    }
    memcpy(block, &all, sizeof all);
    *out = block + BLOCK_HEAD;
    return FRG_OK;
}

static void host_release(frgi_machine *m, void *handle)
{
    if (handle) {
        char *const block = (char *)handle - BLOCK_HEAD;
        size_t all;
        memcpy(&all, block, sizeof all);
        m->memory.free(block, all, m->memory.user);
    }
}

/** A handle is the address. */
static frg_status host_adopt(frgi_machine *m, frgi_buffer asked, size_t unit, frgi_buffer *out,
                             frgi_device_error *e)
{
    (void)m;
    if (((uintptr_t)asked.handle + asked.offset) % unit != 0) {
        snprintf(e->text, sizeof e->text, "the address is no multiple of %zu, an element's bytes",
                 unit);
        return FRG_BAD_ARG;
    }
    *out = asked;
    return FRG_OK;
}

static void host_disown(frgi_machine *m, void *handle)
{
    (void)m, (void)handle; /* nothing was taken */
}

static frg_status host_load(frgi_machine *m, const frgi_kernels *k, frgi_kernel_type type,
                            void **out, frgi_device_error *e)
{
    const size_t bytes = sizeof(host_program) + (size_t)k->count * sizeof(plain_kernel);
    host_program *const p = m->memory.alloc(bytes, m->memory.user);
    if (!p) {
        return no_memory(e, bytes);
    }
    *p = (host_program){.bytes = bytes, .texts = k, .type = type};
    for (int i = 0; i < k->count; i++) {
        p->kernels[i] = k->kernels[i].host[type];
    }
    *out = p;
    return FRG_OK;
}

static void host_unload(frgi_machine *m, void *program)
{
    if (program) {
        m->memory.free(program, ((host_program *)program)->bytes, m->memory.user);
    }
}

static frg_status host_find(frgi_machine *m, void *program, int index, void **out,
                            frgi_device_error *e)
{
    (void)m, (void)e;
    *out = &((host_program *)program)->kernels[index];
    return FRG_OK;
}

static char *at(frgi_buffer b)
{
    return (char *)b.handle + b.offset;
}

static frg_status host_put(frgi_machine *m, frgi_buffer to, const void *from, size_t bytes,
                           frgi_device_error *e)
{
    (void)m, (void)e;
    memcpy(at(to), from, bytes);
    return FRG_OK;
}

static frg_status host_get(frgi_machine *m, void *to, frgi_buffer from, size_t bytes,
                           frgi_device_error *e)
{
    (void)m, (void)e;
    memcpy(to, at(from), bytes);
    return FRG_OK;
}

static frg_status host_copy(frgi_machine *m, frgi_buffer to, frgi_buffer from, size_t bytes,
                            frgi_device_error *e)
{
    (void)m, (void)e;
    memcpy(at(to), at(from), bytes);
    return FRG_OK;
}

static frg_status host_fill(frgi_machine *m, frgi_buffer to, int byte, size_t bytes,
                            frgi_device_error *e)
{
    (void)m, (void)e;
    memset(at(to), byte, bytes);
    return FRG_OK;
}

static frg_status host_launch(frgi_machine *m, void *kernel, const int64_t groups[2], int size,
                              const frgi_arg *args, int count, frgi_device_error *e)
{
    (void)size, (void)e; /* a group has one work-item */
    const plain_kernel run = *(const plain_kernel *)kernel;
    frgi_arg own[FRGI_ARGS_MOST];
    char *pointers[FRGI_ARGS_MOST];
    void *values[FRGI_ARGS_MOST];
    for (int i = 0; i < count; i++) {
        own[i] = args[i];
        pointers[i] = args[i].kind == 'p' ? at(args[i].as.buffer) : NULL;
        values[i] = args[i].kind == 'p' ? (void *)&pointers[i] : (void *)&own[i].as;
    }
    const int64_t all = groups[0] * groups[1];
#pragma omp parallel for num_threads(m->threads) if (all > 1)
    for (int64_t g = 0; g < all; g++) {
        const frgi_item item = {{g % groups[0], g / groups[0]}};
        run(&item, values);
    }
    return FRG_OK;
}

static frg_status host_record(frgi_machine *m, void **out, frgi_device_error *e)
{
    (void)e;
    *out = m;
    return FRG_OK;
}

static frg_status host_reached(frgi_machine *m, void *event, int *out, frgi_device_error *e)
{
    (void)m, (void)event, (void)e;
    *out = 1;
    return FRG_OK;
}

static frg_status host_wait(frgi_machine *m, void *event, frgi_device_error *e)
{
    (void)m, (void)event, (void)e;
    return FRG_OK;
}

static void host_forget(frgi_machine *m, void *event)
{
    (void)m, (void)event;
}

const frgi_device_ops frgi_host_device = {
    .abi = FRGI_DEVICE_ABI,
    .bytes = sizeof(frgi_device_ops),
    .name = "host",
    .library = "",
    .machine = {.count = host_count,
                .properties = host_properties,
                .open = host_open,
                .follow = host_follow,
                .close = host_close},
    .memory = {.allocate = host_allocate,
               .release = host_release,
               .adopt = host_adopt,
               .disown = host_disown,
               .pin = host_allocate,
               .unpin = host_release},
    .transfer = {.put = host_put, .get = host_get, .copy = host_copy, .fill = host_fill},
    .program = {.load = host_load, .unload = host_unload, .find = host_find, .launch = host_launch},
    .event = {.record = host_record,
              .reached = host_reached,
              .wait = host_wait,
              .forget = host_forget},
};
