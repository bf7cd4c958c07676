/* cli_worker.h - work that nobody can stop, on a thread of its own, which a stop leaves to
 * itself. */
#ifndef FOURGE_CLI_WORKER_H
#define FOURGE_CLI_WORKER_H

#include <pthread.h>

#include "cli.h"

/** `work` runs on a thread, and the caller's waits.  The work may hear of a signal or the time
 *  limit by cli_over and end; where it has not 0.03 s later, the program ends: `abandon` shows what
 *  there is and gives the exit code.  What both threads see is changed by the work between
 *  worker_lock and worker_unlock alone.  Nothing of the work's is freed then, and c->ctx is a new
 *  context: the old one is still in use. */
typedef struct worker {
    cli *c;
    int (*work)(void *job); /* its exit code */
    int (*abandon)(void *job, frg_status why);
    int (*may_abandon)(
        void *job); /* NULL: at any time; 0: not before the work changes something or ends */
    void *job;
    /* worker_run's own */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int has_ended, code;
    size_t peak_bytes; /* of the work's context, when the lock was last given back */
} worker;

/** The exit code of the work; does not return where the work is left. */
int worker_run(worker *w);
void worker_lock(worker *w);
void worker_unlock(worker *w);

#endif
