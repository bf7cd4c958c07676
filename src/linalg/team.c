/* team.c - barrier and shares of team.h.
 *
 * The barrier spins: a phase of a matrix of 500 rows lasts 20 microseconds, a sleep and a wake-up
 * as much. After about 0.1 ms it sleeps: the thread that it waits for has then been put aside for
 * another program, or for this one, and needs the core. */
#include "linalg/team.h"

#include <omp.h>
#include <sched.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "core/denormals.h"

enum { SPINS = 2000 };

int frgi_team_size(const frg_context *ctx, bool worth_it)
{
    return worth_it && !omp_in_parallel() ? frg_threads(ctx) : 1;
}

/** Denormals are zeros: covariances of points far apart, and their products, are denormals, and a
 *  Gaussian process of 2000 points with a short length scale took ten times as long. */
static void run(void (*body)(void *user, int me), void *user, int me)
{
    const unsigned mode = frgi_flush_denormals();
    body(user, me);
    frgi_restore_denormals(mode);
}

void frgi_team_run(frgi_team *t, frgi_team_share *share, int threads,
                   void (*body)(void *user, int me), void *user)
{
    t->threads = 1;
    t->share = share;
    atomic_init(&t->arrived, 0);
    atomic_init(&t->round, 0);
    atomic_init(&t->asleep, 0);
    for (int i = 0; i < threads; i++) {
        atomic_init(&share[i].range[0], 0);
        atomic_init(&share[i].range[1], 0);
        share[i].phase = 0;
    }
    if (threads == 1) {
        run(body, user, 0);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
#pragma omp single
        t->threads = omp_get_num_threads();
        run(body, user, omp_get_thread_num());
    }
}

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

#if defined(__linux__)
/** Sleeps as long as no new round has begun; who ends a round reads `asleep` after it has begun the
 *  next, and the kernel reads the round after `asleep` was counted up, so that one of the two sees
 *  the other. */
static void sleep_through(frgi_team *t, unsigned round)
{
    atomic_fetch_add(&t->asleep, 1);
    while (atomic_load(&t->round) == round)
        syscall(SYS_futex, &t->round, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
    atomic_fetch_sub(&t->asleep, 1);
}

static void wake_all(frgi_team *t)
{
    if (atomic_load(&t->asleep) > 0)
        syscall(SYS_futex, &t->round, FUTEX_WAKE_PRIVATE, t->threads, NULL, NULL, 0);
}
#else
static void sleep_through(frgi_team *t, unsigned round)
{
    while (atomic_load_explicit(&t->round, memory_order_acquire) == round)
        sched_yield();
}

static void wake_all(frgi_team *t)
{
    (void)t;
}
#endif

void frgi_team_meet(frgi_team *t)
{
    if (t->threads == 1)
        return;
    const unsigned round = atomic_load_explicit(&t->round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) == t->threads - 1) {
        atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
        atomic_store(&t->round, round + 1);
        wake_all(t);
        return;
    }
    for (int spins = 0; spins < SPINS; spins++) {
        if (atomic_load_explicit(&t->round, memory_order_acquire) != round)
            return;
        pause_briefly();
    }
    sleep_through(t, round);
}

/** The share [lo, hi) of thread `me`. */
static void offer(frgi_team *t, int me, ptrdiff_t lo, ptrdiff_t hi)
{
    frgi_team_share *const mine = &t->share[me];
    const uint64_t range = (uint64_t)lo | (uint64_t)hi << 32;
    atomic_store_explicit(&mine->range[++mine->phase & 1], range, memory_order_release);
}

void frgi_team_offer_equal(frgi_team *t, int me, ptrdiff_t count)
{
    offer(t, me, count * me / t->threads, count * (me + 1) / t->threads);
}

/** The same of the only thread's share. */
static ptrdiff_t take_alone(frgi_team_share *mine)
{
    _Atomic uint64_t *const range = &mine->range[mine->phase & 1];
    const uint64_t now = atomic_load_explicit(range, memory_order_relaxed);
    if ((uint32_t)now >= now >> 32)
        return -1;
    atomic_store_explicit(range, now + 1, memory_order_relaxed);
    return (ptrdiff_t)(uint32_t)now;
}

ptrdiff_t frgi_team_take(frgi_team *t, int me)
{
    if (t->threads == 1)
        return take_alone(&t->share[0]);
    const unsigned side = t->share[me].phase & 1;
    for (int n = 0; n < t->threads; n++) {
        _Atomic uint64_t *const range = &t->share[(me + n) % t->threads].range[side];
        uint64_t now = atomic_load_explicit(range, memory_order_acquire);
        while ((uint32_t)now < now >> 32) {
            const uint64_t left = n == 0 ? now + 1 : now - ((uint64_t)1 << 32);
            if (atomic_compare_exchange_weak_explicit(range, &now, left, memory_order_acq_rel,
                                                      memory_order_acquire))
                return n == 0 ? (ptrdiff_t)(uint32_t)now : (ptrdiff_t)(left >> 32);
        }
    }
    return -1;
}

static ptrdiff_t tasks_of_row(const frgi_team_rows *r, ptrdiff_t row)
{
    return r->triangle ? (row + 1) * r->each : r->each;
}

/** Tasks of the threads before `me`. */
static ptrdiff_t dealt_before(const frgi_team_rows *r, int threads, int me)
{
    ptrdiff_t tasks = 0;
    for (ptrdiff_t row = 0; row < r->rows; row++)
        tasks += row % threads < me ? tasks_of_row(r, row) : 0;
    return tasks;
}

void frgi_team_deal(frgi_team *t, int me, const frgi_team_rows *r)
{
    const int last = me == t->threads - 1;
    offer(t, me, dealt_before(r, t->threads, me),
          dealt_before(r, t->threads, me + 1) + (last ? r->more : 0));
}

ptrdiff_t frgi_team_take_dealt(frgi_team *t, int me, const frgi_team_rows *r, ptrdiff_t *row)
{
    ptrdiff_t task = frgi_team_take(t, me);
    for (int owner = 0; task >= 0 && owner < t->threads; owner++) {
        for (*row = owner; *row < r->rows; *row += t->threads) {
            const ptrdiff_t tasks = tasks_of_row(r, *row);
            if (task < tasks)
                return task;
            task -= tasks;
        }
    }
    *row = r->rows;
    return task;
}
