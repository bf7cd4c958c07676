/* host_step.h - what the host does while a run computes on a device: the steps that stay here are
 * counted, and in a build with tests (FOURGE_TESTS) any other one ends the process, so that no step
 * falls back to the host in silence.
 *
 *     frgi_host_steps *const outer = frgi_host_steps_begin(ctx, &plan->host_steps);
 *     ... a run; deep in it, on the host:
 *         frgi_host_step(ctx, FRGI_HOST_FACTOR);     on the list: counted
 *         frgi_not_beside_device(ctx, "a product");  not on it
 *     frgi_host_steps_end(ctx, outer);
 *
 * Between begin and end the context knows the plan; without a device all of this does nothing.
 * Steps of several threads, and of the contexts of their own (frgi_context_fork), are counted
 * together.
 */
#ifndef FRGI_HOST_STEP_H
#define FRGI_HOST_STEP_H

#include <stdatomic.h>

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** The list. */
typedef enum {
#define HOST_STEP(id, when, name) FRGI_HOST_##id,
#include "core/host_steps.def"
#undef HOST_STEP
    FRGI_HOST_STEPS
} frgi_host_step_id;

/** What a plan computes on. */
typedef enum {
    FRGI_BESIDE_NONE, /* the host alone */
    FRGI_BESIDE_F32,  /* a device without double precision */
    FRGI_BESIDE_F64
} frgi_beside;

/** Of a plan.  All zeros: of one on the host. */
typedef struct frgi_host_steps {
    frgi_beside beside;
    atomic_int open; /* steps that are made of others, and under way */
    atomic_llong calls[FRGI_HOST_STEPS];
    int64_t kept[FRGI_HOST_STEPS]; /* of them, those that every run begins with */
    frg_host_steps list;           /* for a report: those with calls, as of the last end */
} frgi_host_steps;

/** The runs from now on are those of this plan, until the end with what this returns.  Runs may be
 *  inside of each other. */
frgi_host_steps *frgi_host_steps_begin(frg_context *ctx, frgi_host_steps *own);
void frgi_host_steps_end(frg_context *ctx, frgi_host_steps *outer);
/** The calls so far are those of making the plan, which the report of every run counts, too. */
void frgi_host_steps_keep(frgi_host_steps *s);
/** A run begins with these alone. */
void frgi_host_steps_rewind(frgi_host_steps *s);

/** One call of a step on the list. */
void frgi_host_step(const frg_context *ctx, frgi_host_step_id step);
/** The same of a step that is made of others, which are not on the list: until it closes they are
 *  part of it. */
void frgi_host_step_open(const frg_context *ctx, frgi_host_step_id step);
void frgi_host_step_close(const frg_context *ctx);
/** At the head of a step of the host that a device has, too, or that does not run beside one. */
void frgi_not_beside_device(const frg_context *ctx, const char *step);

#pragma GCC visibility pop

#endif
