/* confine.h - work in a child process that can do little, for decoders of files that nobody
 * trusts.
 *
 *     frgi_confined c;
 *     TRY(frgi_confined_start(&c, ctx, file));
 *     if (c.child == 0)                                     the child, with its limits
 *         work, frgi_confined_put ..., frgi_confined_leave
 *     status = frgi_confined_get ...                        the parent
 *     return frgi_confined_end(&c, status);
 *
 * The child is a fork of this thread: it has the context's memory as it was, one thread, and none
 * of the callbacks.  It cannot make files or make them longer, start processes, or use more memory
 * and processor time than its limits say; on Linux, with seccomp, it can open files for reading,
 * map memory and write into the pipe, and every other call of the system fails.  What it sends is
 * to be checked like a file.
 */
#ifndef FRGI_CONFINE_H
#define FRGI_CONFINE_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

typedef struct {
    frg_context *ctx;
    const char *file;   /* stands in messages */
    int pipe;           /* the child's end, or the parent's */
    int64_t child;      /* its process; 0 in the child itself */
    frg_status stopped; /* the parent: why it no longer waits */
    bool filtered;      /* in the child: seccomp holds it, besides its limits */
} frgi_confined;

/** Starts the child.  E_MEMORY where there is no process or pipe to be had. */
FRG_MUST_USE frg_status frgi_confined_start(frgi_confined *c, frg_context *ctx, const char *file);
/** Bytes that the child may take beside what there is: as many as the context may, or half of the
 *  machine's memory. */
size_t frgi_confined_memory(const frgi_confined *c);
/** The child sends; it ends where nobody listens. */
void frgi_confined_put(const frgi_confined *c, const void *from, size_t bytes);
/** The child ends. */
_Noreturn void frgi_confined_leave(const frgi_confined *c);
/** The parent takes exactly so many bytes.  A failure where it is asked to stop meanwhile (which
 *  frgi_confined_end tells); E_CRASHED, with how the child ended, where it did so before. */
FRG_MUST_USE frg_status frgi_confined_get(frgi_confined *c, void *to, size_t bytes);
/** The parent is through: the child is ended.  Gives `status` back, or FRG_INTERRUPTED and
 *  FRG_TIME_LIMIT where that was why. */
frg_status frgi_confined_end(frgi_confined *c, frg_status status);

/** Of the context, in a child: one thread, no spool, no callbacks but this log. */
void frgi_context_alone(frg_context *ctx, frg_log_fn on_log, void *user);

#pragma GCC visibility pop

#endif
