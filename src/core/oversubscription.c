/* oversubscription.c - stretches of passes together and alone, and which of them goes on. */
#include "core/oversubscription.h"

enum {
    WINDOW = 8, /* passes together that are looked at */
    TRIAL = 4,  /* passes alone that tell */
    STAY = 64,  /* passes alone where they were faster, at most; twice as many each time they are
                   again */
    STAY_MOST = 4096,
    UNTRIED = 512 /* passes together until one thread is tried anyway: all may be slow alike */
};
static const double UNEVEN = 2; /* a mean of so many times the fastest pass: others take a core */

int frgi_team_for(int most, double work)
{
    /* multiply-adds of a thread, about 0.15 ms: threads that sleep take 0.05 ms to come, and where
     * another library's threads spin on their cores milliseconds */
    static const double WORTH_IT = 1 << 22;
    const double worth = work / WORTH_IT;
    return worth < 2 ? 1 : worth < most ? (int)worth : most;
}

frgi_oversubscription frgi_oversubscription_doubtful(void)
{
    return (frgi_oversubscription){.sure = UNTRIED};
}

static void begin(frgi_oversubscription *c, bool alone)
{
    c->alone = alone;
    c->passes = 0;
    c->seconds = 0;
}

static void saw_together(frgi_oversubscription *c, double seconds)
{
    c->least = c->least == 0 || seconds < c->least ? seconds : c->least;
    if (c->passes < WINDOW) {
        return;
    }
    c->sure += c->passes;
    c->together = c->seconds / c->passes;
    const bool try_alone = c->stay > 0 || c->together > UNEVEN * c->least || c->sure >= UNTRIED;
    c->sure = try_alone ? 0 : c->sure;
    begin(c, try_alone);
}

/** The first stretch alone: one pass in a window may have waited for something that does not come
 *  again, so that it costs no more than waiting did, beside passes together that wait for
 *  nothing. */
static int first_stretch(const frgi_oversubscription *c)
{
    const double waited = WINDOW * (c->together - c->least);
    const double dearer = c->seconds / TRIAL - c->least;
    return waited < STAY * dearer ? (int)(waited / dearer) : STAY;
}

static void saw_alone(frgi_oversubscription *c)
{
    if (c->passes == TRIAL) {
        const bool faster = c->seconds < TRIAL * c->together;
        const int longer = c->stay == 0          ? first_stretch(c)
                           : c->stay < STAY_MOST ? 2 * c->stay
                                                 : c->stay;
        c->stay = faster ? longer : 0;
    }
    if (c->passes >= TRIAL + c->stay) {
        begin(c, false);
    }
}

void frgi_oversubscription_note(frgi_oversubscription *c, int threads, double seconds)
{
    if (threads == 1) {
        return;
    }
    c->passes++;
    c->seconds += seconds;
    if (c->alone) {
        saw_alone(c);
    } else {
        saw_together(c, seconds);
    }
}
