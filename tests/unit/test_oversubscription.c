/* test_oversubscription.c - who does a pass, by what the passes before took. */
#include "core/oversubscription.h"
#include "test.h"

enum { THREADS = 2, PASSES = 4000 };

/** Passes alone among so many, where one takes `alone`, or `together` and every `period`-th
 *  `slow`. */
static int passes_alone_from(frgi_oversubscription c, int threads, double together, double alone,
                             double slow, int period)
{
    int count = 0;
    for (int i = 0; i < PASSES; i++) {
        const int team = frgi_oversubscription_team(&c, threads);
        CHECK(team == threads || team == 1);
        count += team == 1;
        frgi_oversubscription_note(&c, threads,
                                   team == 1         ? alone
                                   : i % period == 0 ? slow
                                                     : together);
    }
    return count;
}

static int passes_alone(int threads, double together, double alone, double slow, int period)
{
    return passes_alone_from((frgi_oversubscription){0}, threads, together, alone, slow, period);
}

/** Nobody else: one thread is tried for 4 of 516 passes, so for 28 to 32 of 4000. */
static void quiet(void)
{
    const int alone = passes_alone(THREADS, 1, 2, 1, 1);
    CHECK_SAYS(alone >= 28 && alone <= 32, "%d", alone);
}

/** Passes a fifth apart, as they are on a quiet machine, change nothing. */
static void uneven_a_little(void)
{
    CHECK(passes_alone(THREADS, 1, 2, 1.2, 2) <= 32);
}

/** Every third pass waits for a time slice: 8 together, then 64, 128, .. alone and 8 together after
 *  each, so at most 7 windows in 4000. */
static void waits(void)
{
    const int alone = passes_alone(THREADS, 1, 2, 80, 3);
    CHECK_SAYS(alone >= PASSES - 7 * 8, "%d", alone);
}

/** All wait alike: one thread is tried after 512. */
static void all_wait(void)
{
    const int alone = passes_alone(THREADS, 80, 2, 80, 1);
    CHECK_SAYS(alone >= PASSES - 512 - 7 * 8, "%d", alone);
}

/** In doubt it is tried after 8 already; where it is slower it is tried as seldom as ever then. */
static void doubtful(void)
{
    const frgi_oversubscription c = frgi_oversubscription_doubtful();
    int alone = passes_alone_from(c, THREADS, 80, 2, 80, 1);
    CHECK_SAYS(alone >= PASSES - 8 - 7 * 8, "%d", alone);
    alone = passes_alone_from(c, THREADS, 1, 2, 1, 1);
    CHECK_SAYS(alone >= 32 && alone <= 36, "%d", alone);
}

/** One in 8 is slow, and one thread would be slower still: it is tried for 4 passes after 8, not
 *  more. */
static void slow_for_another_reason(void)
{
    const int alone = passes_alone(THREADS, 1, 10, 40, 8);
    CHECK_SAYS(alone <= PASSES / 3 + 1, "%d", alone);
}

/** One pass waited as long as 16 passes take: alone they are dearer by 1 each, so 4 on trial, 4 +
 *  16 in all, and 4 on trial once more. */
static void once(void)
{
    const int alone = passes_alone(THREADS, 1, 2, 17, PASSES);
    CHECK_SAYS(alone >= 4 + 16 + 4 && alone <= 32 + 4 + 16 + 4, "%d", alone);
}

/** Others come and go: after they have gone at most 4096 passes more are alone. */
static void calm_again(void)
{
    frgi_oversubscription c = {0};
    int alone = 0;
    for (int i = 0; i < 20000; i++) {
        const int team = frgi_oversubscription_team(&c, THREADS);
        alone += i >= 10000 && team == 1;
        frgi_oversubscription_note(&c, THREADS, team == 1 ? 2 : i < 10000 ? 80 : 1);
    }
    CHECK_SAYS(alone <= 4096 + 10000 / 100, "%d", alone);
}

static void one_thread(void)
{
    CHECK_INT(passes_alone(1, 80, 80, 80, 3), PASSES);
}

/** Threads for so much work: one until there is enough for two, and not more than there are. */
static void teams(void)
{
    static const struct {
        int most;
        double worth; /* in what is worth a thread */
        int team;
    } jobs[] = {{8, 0, 1}, {8, 1.99, 1}, {8, 2, 2},   {8, 3.5, 3}, {8, 7.99, 7},
                {8, 8, 8}, {8, 1e9, 8},  {1, 1e9, 1}, {2, 2, 2}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        CHECK_INT(frgi_team_for(jobs[i].most, jobs[i].worth * (1 << 22)), jobs[i].team);
}

static const test_case cases[] = {
    {"quiet", quiet},
    {"uneven a little", uneven_a_little},
    {"waits", waits},
    {"all wait", all_wait},
    {"doubtful", doubtful},
    {"slow for another reason", slow_for_another_reason},
    {"once", once},
    {"calm again", calm_again},
    {"one thread", one_thread},
    {"teams", teams},
};
TEST_MAIN(cases)
