/* host_step.c - steps of the host beside a device: counted, or the end of a build with tests. */
#include "core/host_step.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/context.h"

enum { ALWAYS, WITHOUT_DOUBLE };

static const struct {
    int when;
    const char *name;
} steps[FRGI_HOST_STEPS] = {
#define HOST_STEP(id, when, name) {when, name},
#include "core/host_steps.def"
#undef HOST_STEP
};

_Static_assert((int)FRGI_HOST_STEPS <= (int)FRG_HOST_STEPS_MOST, "a report has room for all steps");

/** The plan of the run, where it computes on a device. */
static frgi_host_steps *beside(const frg_context *ctx)
{
    frgi_host_steps *const s = ctx ? ctx->host_steps : NULL;
    return s && s->beside != FRGI_BESIDE_NONE ? s : NULL;
}

/** The end, in a build with tests: a device was chosen, and the host did its work in silence. */
static void refuse(const char *step)
{
#if FOURGE_TESTS
    fprintf(stderr, "fourge: a step fell back to the host beside a device: %s\n", step);
    abort();
#else
    (void)step;
#endif
}

frgi_host_steps *frgi_host_steps_begin(frg_context *ctx, frgi_host_steps *own)
{
    frgi_host_steps *const outer = ctx->host_steps;
    ctx->host_steps = own;
    return outer;
}

void frgi_host_steps_end(frg_context *ctx, frgi_host_steps *outer)
{
    frgi_host_steps *const s = ctx->host_steps;
    s->list = (frg_host_steps){0};
    for (int q = 0; q < FRGI_HOST_STEPS; q++) {
        const int64_t calls = atomic_load_explicit(&s->calls[q], memory_order_relaxed);
        if (calls > 0) {
            s->list.steps[s->list.count++] = (frg_host_step){steps[q].name, calls};
        }
    }
    ctx->host_steps = outer;
}

void frgi_host_steps_keep(frgi_host_steps *s)
{
    for (int q = 0; q < FRGI_HOST_STEPS; q++) {
        s->kept[q] = atomic_load_explicit(&s->calls[q], memory_order_relaxed);
    }
}

void frgi_host_steps_rewind(frgi_host_steps *s)
{
    for (int q = 0; q < FRGI_HOST_STEPS; q++) {
        atomic_store_explicit(&s->calls[q], s->kept[q], memory_order_relaxed);
    }
}

void frgi_host_step(const frg_context *ctx, frgi_host_step_id step)
{
    frgi_host_steps *const s = beside(ctx);
    if (!s) {
        return;
    }
    atomic_fetch_add_explicit(&s->calls[step], 1, memory_order_relaxed);
    if (steps[step].when == WITHOUT_DOUBLE && s->beside == FRGI_BESIDE_F64 &&
        atomic_load_explicit(&s->open, memory_order_relaxed) == 0) {
        refuse(steps[step].name);
    }
}

void frgi_host_step_open(const frg_context *ctx, frgi_host_step_id step)
{
    frgi_host_steps *const s = beside(ctx);
    frgi_host_step(ctx, step);
    if (s) {
        atomic_fetch_add_explicit(&s->open, 1, memory_order_relaxed);
    }
}

void frgi_host_step_close(const frg_context *ctx)
{
    frgi_host_steps *const s = beside(ctx);
    if (s) {
        atomic_fetch_sub_explicit(&s->open, 1, memory_order_relaxed);
    }
}

void frgi_not_beside_device(const frg_context *ctx, const char *step)
{
    const frgi_host_steps *const s = beside(ctx);
    if (s && atomic_load_explicit(&s->open, memory_order_relaxed) == 0) {
        refuse(step);
    }
}
