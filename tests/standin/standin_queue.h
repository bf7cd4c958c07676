/* standin_queue.h - what the stand-ins for drivers share: blocks of device memory without rights, the
 * queue of commands, launches of the plain C lives.  Included by one source of each, behind the
 * definition of STANDIN, its `standin`, and ILLEGAL_ADDRESS, the error of a lost device. */
#ifndef FOURGE_STANDIN_QUEUE_H
#define FOURGE_STANDIN_QUEUE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/device.h"
#include "standin.h"

#define EXPORT __attribute__((visibility("default")))
#define S      STANDIN
EXPORT extern standin STANDIN;

enum { ALIGN = 256, ARGS = FRGI_ARGS_MOST };

typedef struct block block;
struct block {
    block *next;
    char *map, *at;
    size_t mapped, bytes;
};

/** A command of a queue; an event is reached when its command has run. */
typedef struct command command;
struct command {
    command *next;
    void *stream;
    enum { PUT, GET, COPY, FILL, LAUNCH_KERNEL, MARK } kind;
    char *to;
    const char *from;
    size_t bytes;
    int byte;
    struct function *function;
    int64_t groups[2];
    uint64_t values[ARGS];
    struct event *event;
};

typedef struct event {
    bool pending;
} event;

typedef struct function {
    const frgi_kernel *kernel;
    frgi_kernel_type type;
    int count;
    int sizes[ARGS];
} function;

static block *blocks;
static command *first, *last;
static int sticky; /* the error that all calls give from now on */

static uint64_t draw(void)
{
    uint64_t z = (S.random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!S.complaint[0]) {
        vsnprintf(S.complaint, sizeof S.complaint, format, args);
    }
    va_end(args);
}

/** What the call has to answer before it does anything; 0: it works. */
static int enter(void)
{
    S.calls++;
    if (S.lose_at && S.calls >= S.lose_at) {
        sticky = ILLEGAL_ADDRESS;
    }
    return sticky ? sticky : S.calls == S.fail_at ? S.fail_with : 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static block *block_of(const char *p, size_t bytes)
{
    block *b = blocks;
    while (b && !(p >= b->at && p + bytes <= b->at + b->bytes)) {
        b = b->next;
    }
    if (!b) {
        complain("an address of the device that belongs to no block, or %zu bytes past its end",
                 bytes);
        sticky = ILLEGAL_ADDRESS;
    }
    return b;
}

static void open_block(const block *b, bool open)
{
    mprotect(b->map, b->mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/** A block of `bytes`, filled with what no test expects; NULL: the device has not so much. */
static block *take_block(size_t bytes)
{
    if (bytes > S.memory - S.held) {
        return NULL;
    }
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t whole = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    const size_t pages = (whole + page - 1) / page * page;
    block *const b = calloc(1, sizeof *b);
    b->mapped = pages;
    b->map = mmap(NULL, pages + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    b->at = b->map + (pages - whole); /* the end of the block is that of its pages */
    b->bytes = bytes;
    open_block(b, true);
    memset(b->map, 0xa5, pages);
    open_block(b, false);
    b->next = blocks;
    blocks = b;
    S.held += bytes;
    S.objects++;
    return b;
}

/** Gives back the block that begins at p; false: there is none. */
static bool drop_block(const char *p)
{
    block **at = &blocks;
    while (*at && (*at)->at != p) {
        at = &(*at)->next;
    }
    block *const b = *at;
    if (!b) {
        complain("a block freed twice");
        return false;
    }
    *at = b->next;
    S.held -= b->bytes;
    S.objects--;
    munmap(b->map, b->mapped + (size_t)sysconf(_SC_PAGESIZE));
    free(b);
    return true;
}

/* ---- the queue ------------------------------------------------------------------------------- */

static void run_launch(const command *c)
{
    void *values[ARGS];
    const char *const kinds = c->function->kernel->args;
    for (int i = 0; i < c->function->count; i++) {
        values[i] = (void *)(uintptr_t)&c->values[i];
        if (kinds[i] == 'p' && c->values[i]) {
            const block *const b = block_of((const char *)(uintptr_t)c->values[i], 1);
            if (!b) {
                return;
            }
            open_block(b, true);
        }
    }
    const int64_t all = c->groups[0] * c->groups[1];
    int64_t *const order = malloc((size_t)all * sizeof *order);
    for (int64_t g = 0; g < all; g++) {
        const int64_t other = (int64_t)(draw() % (uint64_t)(g + 1));
        order[g] = order[other];
        order[other] = g;
    }
    for (int64_t g = 0; g < all; g++) {
        const frgi_item item = {{order[g] % c->groups[0], order[g] / c->groups[0]}};
        c->function->kernel->host[c->function->type](&item, values);
    }
    free(order);
    for (const block *b = blocks; b; b = b->next) {
        open_block(b, false);
    }
}

static void run_copy(const command *c)
{
    const block *const to = c->kind == GET ? NULL : block_of(c->to, c->bytes);
    const block *const from =
        c->kind == PUT || c->kind == FILL ? NULL : block_of(c->from, c->bytes);
    if ((c->kind != GET && !to) || (c->kind != PUT && c->kind != FILL && !from)) {
        return;
    }
    if (to) {
        open_block(to, true);
    }
    if (from) {
        open_block(from, true);
    }
    if (c->kind == FILL) {
        memset(c->to, c->byte, c->bytes);
    } else {
        memcpy(c->to, c->from, c->bytes);
    }
    if (to) {
        open_block(to, false);
    }
    if (from) {
        open_block(from, false);
    }
}

static void run(const command *c)
{
    if (c->kind == MARK) {
        c->event->pending = false;
    } else if (sticky) {
        return;
    } else if (c->kind == LAUNCH_KERNEL) {
        run_launch(c);
    } else {
        run_copy(c);
    }
}

/** Takes the oldest command of a stream out of the queue; NULL: there is none. */
static command *oldest(const void *stream)
{
    command *before = NULL, *c = first;
    while (c && c->stream != stream) {
        before = c;
        c = c->next;
    }
    if (c) {
        *(before ? &before->next : &first) = c->next;
        last = last == c ? before : last;
    }
    return c;
}

/** Runs one command of the stream, and by chance some of the others before. */
static bool run_one(const void *stream)
{
    while (first && first->stream != stream && draw() % 2) {
        command *const other = oldest(first->stream);
        run(other);
        free(other);
    }
    command *const c = oldest(stream);
    if (c) {
        run(c);
    }
    free(c);
    return c;
}

static void run_all(void)
{
    while (first) {
        run_one(first->stream);
    }
}

static int add(command c)
{
    command *const own = malloc(sizeof *own);
    *own = c;
    own->next = NULL;
    *(first ? &last->next : &first) = own;
    last = own;
    return 0;
}

/* ---- kernels ------------------------------------------------------------------------------ */

static int size_of(char kind, frgi_kernel_type type)
{
    const bool wide = type == FRGI_F64 || (type == FRGI_MIXED && kind == 'w');
    return kind == 'p' || kind == 'l' || ((kind == 'r' || kind == 'w') && wide) ? 8 : 4;
}

static void set_function(function *f, const frgi_kernel *k, frgi_kernel_type type)
{
    *f = (function){.kernel = k, .type = type, .count = (int)strlen(k->args)};
    for (int i = 0; i < f->count; i++) {
        f->sizes[i] = size_of(k->args[i], type);
    }
}

/** What is behind "PART_" in a name that begins so; NULL: it does not. */
static const char *behind(const char *name, const char *part)
{
    const size_t length = strlen(part);
    return strncmp(name, part, length) == 0 && name[length] == '_' ? name + length + 1 : NULL;
}

/** The kernel of the name room_kernel_type. */
static bool split_name(const char *name, const frgi_kernel **kernel, frgi_kernel_type *type)
{
    static const char *const types[] = {"f32", "f64", "mixed"};
    for (const frgi_kernels *const *r = frgi_kernels_all; *r; r++) {
        const char *const own = behind(name, (*r)->room);
        for (int i = 0; own && i < (*r)->count; i++) {
            const char *const real = behind(own, (*r)->kernels[i].name);
            for (int t = 0; real && t < FRGI_TYPES; t++) {
                if (strcmp(real, types[t]) == 0) {
                    *kernel = &(*r)->kernels[i];
                    *type = (frgi_kernel_type)t;
                    return true;
                }
            }
        }
    }
    return false;
}

#endif
