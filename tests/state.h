/* state.h - a run that is stopped or killed at one of its states, for tests of going on: a saver
 * that counts them, writes one into a file and ends the run there. */
#ifndef FOURGE_TESTS_STATE_H
#define FOURGE_TESTS_STATE_H

#include <unistd.h>

#include "fourge/checkpoint.h"
#include "test.h"

typedef enum { RUNS_ON, IS_KILLED, IS_STOPPED } ending;

typedef struct {
    frg_context *ctx;
    const char *name; /* of the solver in the file */
    frg_status (*put)(const void *solver, frg_checkpoint *c);
    const char *path;
    int64_t calls, at; /* states so far; the one to end at, 0: none */
    ending how;
    bool said_stopped;
} keeper;

#define STATE_PATH "/tmp/fourge_state_XXXXXX"

/** A new file; *path has the room of STATE_PATH. */
static inline void open_path(char *path)
{
    strcpy(path, STATE_PATH);
    const int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
}

/** Takes the file away, and the state before the last one. */
static inline void close_path(const char *path)
{
    char older[sizeof STATE_PATH + 1];
    snprintf(older, sizeof older, "%s~", path);
    remove(path);
    remove(older);
}

static inline frg_status write_state(keeper *k, const void *solver)
{
    frg_checkpoint *c = NULL;
    frg_status status = frg_checkpoint_create(&c, k->ctx, k->name, 1, 2);
    if (status >= 0)
        status = k->put(solver, c);
    if (status >= 0)
        status = frg_checkpoint_save(c, k->path);
    frg_checkpoint_destroy(c);
    return status;
}

/** At a state; stopped: behind the run's end.  Killed runs end with FRG_IO, as if writing had
 *  failed. */
static inline frg_status keep(keeper *k, const void *solver, int stopped)
{
    if (stopped) {
        k->said_stopped = true;
        return write_state(k, solver);
    }
    if (++k->calls != k->at)
        return FRG_OK;
    if (k->how == IS_STOPPED) {
        frg_interrupt(k->ctx);
        return FRG_OK;
    }
    const frg_status status = write_state(k, solver);
    return status < 0 ? status : k->how == IS_KILLED ? FRG_IO : FRG_OK;
}

#endif
