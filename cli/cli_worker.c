/* cli_worker.c - a thread for work that nobody can stop: a step of an optimizer, LAPACK's
 * decompositions, plain loops.
 *
 * The caller's thread waits and looks for signals and the time limit.  Where the work goes on for
 * longer after one than a short step takes, the process ends under it: it has nothing to finish. */
#include "cli_worker.h"

#include <time.h>

static const double GRACE = 0.03; /* seconds; a stop is to take 0.1 at most */
enum { LOOK = 5000000 };          /* nanoseconds between two looks */

static void *body(void *user)
{
    worker *const w = user;
    const int code = w->work(w->job);
    worker_lock(w);
    w->code = code;
    w->has_ended = 1;
    pthread_cond_signal(&w->ended);
    worker_unlock(w);
    return NULL;
}

void worker_lock(worker *w)
{
    pthread_mutex_lock(&w->lock);
}

void worker_unlock(worker *w)
{
    w->peak_bytes = frg_peak_bytes(w->c->ctx);
    pthread_mutex_unlock(&w->lock);
}

/** With the lock, which is not given back: the work stands still where it would change what is
 *  shown. */
static void abandon(const worker *w, frg_status why)
{
    cli *const c = w->c;
    frg_context *fresh;
    if (frg_context_create(&fresh, &c->set.context) < 0) {
        cli_end(c, cli_fail_memory(c));
    }
    c->ctx = fresh;
    c->left_bytes = w->peak_bytes;
    cli_end(c, w->abandon(w->job, why));
}

/** Waits for the end of the work or the next look, with the lock. */
static void wait_a_little(worker *w)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&w->ended, &w->lock, &until);
}

int worker_run(worker *w)
{
    pthread_t thread;
    pthread_condattr_t clock;
    double asked = 0; /* when the work could have heard of a stop */
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&w->ended, &clock);
    pthread_condattr_destroy(&clock);
    const int alone = pthread_create(&thread, NULL, body, w) != 0;
    if (alone) { /* no thread to be had: a stop takes as long as a step */
        (void)body(w);
    }
    worker_lock(w);
    while (!w->has_ended) {
        wait_a_little(w);
        const frg_status why = cli_over(w->c);
        asked = why == FRG_OK ? 0 : asked > 0 ? asked : now_seconds();
        if (asked > 0 && now_seconds() - asked > GRACE && !w->has_ended &&
            (!w->may_abandon || w->may_abandon(w->job))) {
            abandon(w, why);
        }
    }
    pthread_mutex_unlock(&w->lock);
    if (!alone) {
        pthread_join(thread, NULL);
    }
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->lock);
    return w->code;
}
