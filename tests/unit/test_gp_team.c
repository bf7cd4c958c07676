/* test_gp_team.c - threads that meet: nobody goes on before all have come, and who waits long
 * sleeps. */
#include <time.h>

#include "linalg/team.h"
#include "test.h"

enum { THREADS = 4, ROUNDS = 3000, WAITS = 5 };

typedef struct {
    frgi_team team;
    frgi_team_share share[THREADS];
    atomic_int here; /* threads that have come to a round, all rounds together */
    atomic_int early;
} meeting;

static void come_and_go(void *user, int me)
{
    meeting *const m = user;
    (void)me;
    for (int i = 1; i <= ROUNDS; i++) {
        atomic_fetch_add(&m->here, 1);
        frgi_team_meet(&m->team);
        atomic_fetch_add(&m->early, atomic_load(&m->here) < i * m->team.threads);
    }
}

/** More threads than the two cores of the smallest machines: some wait asleep, and none for
 *  ever. */
static void all_come(void)
{
    meeting m = {.here = 0};
    frgi_team_run(&m.team, m.share, THREADS, come_and_go, &m);
    CHECK_INT(atomic_load(&m.early), 0);
    CHECK_INT(atomic_load(&m.here), ROUNDS * m.team.threads);
}

static void come_late(void *user, int me)
{
    meeting *const m = user;
    for (int i = 0; i < WAITS; i++) {
        if (me == 0) {
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        }
        frgi_team_meet(&m->team);
    }
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** Three threads wait 5 times 0.1 s for the fourth: asleep they take below a millisecond each time,
 *  under the thread sanitizer some, and spinning 0.5 s on a single core that is free. */
static void waits_asleep(void)
{
    meeting m = {.here = 0};
    const double before = cpu_seconds();
    frgi_team_run(&m.team, m.share, THREADS, come_late, &m);
    const double took = cpu_seconds() - before;
    CHECK_SAYS(took < 0.25, "%g s", took);
}

static const test_case cases[] = {
    {"all come", all_come},
    {"waits asleep", waits_asleep},
};
TEST_MAIN(cases)
