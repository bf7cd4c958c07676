/* gp_state.h - where a fit stands: what the process has answered to its search.
 *
 * An optimiser is a function of the values, gradients and informations that it was given.  A state
 * is these answers, in order, of every start: a fit that goes on asks the same questions again, is
 * answered from the state (no flop of the likelihood), and computes from where the answers end.
 * The last value of a start and what was asked behind it are computed anew, so that the process
 * stands as it stood; other bits there than those of the state are an error.
 */
#ifndef FRGI_GP_STATE_H
#define FRGI_GP_STATE_H

#include <omp.h>
#include <stdatomic.h>

#include "gp/gp_process.h"

#pragma GCC visibility push(hidden)

typedef enum {
    GP_ASKED_VALUE,
    GP_ASKED_GRADIENT,
    GP_ASKED_INFORMATION,
    GP_QUESTIONS
} frgi_gp_question;

/** One answer as it lies in a file; `numbers` doubles follow it, none where status is not
 *  FRG_OK. */
typedef struct {
    int64_t question, start, numbers, status, swapped;
    uint64_t point; /* hash of the parameters */
    double jitter;  /* that the process has from then on */
    double seconds; /* of the fit, when it was given */
    frg_gp_value value;
} frgi_gp_answer;

/** The answers that a start has in the state: those before `anew` are taken, those from there on
 *  computed again. */
typedef struct {
    int64_t start, next, anew, end;
} frgi_gp_cursor;

typedef struct {
    uint64_t options, data; /* hashes */
    int64_t starts, bytes;
    double seconds;
} frgi_gp_state_head;

/** The state of a fit under way; all starts share it. */
struct frgi_gp_fit_state {
    frg_context *ctx;
    const frg_gp *gp;
    frg_gp_saver save; /* NULL: nobody wants states */
    void *user;
    frgi_gp_state_head head;
    double began;  /* of the fit's clock */
    int free;      /* coordinates */
    char *answers; /* so far; `bytes` of the head are filled */
    int64_t capacity;
    const char *from;       /* those of the state that the fit goes on from */
    int64_t taken;          /* its bytes */
    omp_lock_t lock;        /* of the answers: starts side by side add to them */
    atomic_int failed;      /* the last status below 0 of the calls below: the fit ends with it */
    int64_t *place, *first; /* where they lie by start, and the first of each start */
};

/** Takes up what frg_gp_fit_keep and frg_gp_fit_resume have left in gp; began: of the fit, moved
 *  back by the time of the state.  Close it in any case. */
FRG_MUST_USE frg_status frgi_gp_state_open(struct frgi_gp_fit_state *s, frg_gp *gp,
                                           const frg_gp_fit_opts *o, frg_gp_optimizer method,
                                           int free, double *began);
void frgi_gp_state_close(struct frgi_gp_fit_state *s);
/** Forgets what was answered since the state: all starts begin again. */
void frgi_gp_state_rewind(struct frgi_gp_fit_state *s);
frgi_gp_cursor frgi_gp_state_seek(const struct frgi_gp_fit_state *s, int start);
/** The answer to a->question at a->point, with a->numbers numbers where there is one, into *a and
 *  out; *known: it is there.  E_MISMATCH where the state has another question there. */
FRG_MUST_USE frg_status frgi_gp_state_recall(struct frgi_gp_fit_state *s, frgi_gp_cursor *c,
                                             frgi_gp_answer *a, double *out, bool *known);
/** Keeps an answer that was computed, or compares it with the one of the state. */
FRG_MUST_USE frg_status frgi_gp_state_add(struct frgi_gp_fit_state *s, frgi_gp_cursor *c,
                                          const frgi_gp_answer *a, const double *numbers);
/** Calls the one who keeps states; on the thread that called frg_gp_fit alone. */
FRG_MUST_USE frg_status frgi_gp_state_offer(struct frgi_gp_fit_state *s, int stopped);

#pragma GCC visibility pop
#endif
