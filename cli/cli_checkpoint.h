/* cli_checkpoint.h - the state of a long run, as the commands keep it. */
#ifndef FOURGE_CLI_CHECKPOINT_H
#define FOURGE_CLI_CHECKPOINT_H

#include "cli.h"
#include "fourge/checkpoint.h"

typedef struct keeper {
    cli *c;
    const char *solver;
    int64_t item; /* bytes of a value */
    uint64_t options, data;
    char *line, *folder;
    int64_t line_bytes;
    double began, saved, cost; /* when the last state was begun and written, and how long it took */
} keeper;

typedef frg_status (*keeper_put)(const void *solver, frg_checkpoint *state);

/** The words, each ended by NUL; free it.  NULL: no memory. */
char *join_words(char **words, int count, int64_t *length);
/** Of arrays that lie in one piece; of all columns of a table. */
uint64_t hash_array(uint64_t seed, const frg_array *a);
uint64_t hash_table(const frg_table *t);

/** With --checkpoint, before the data are read: a file with the line alone.  0 or the exit code. */
int checkpoint_begin(cli *c);
/** The table of a resumed run, where it was kept and `path`, the file that it was read from, is
 *  what it was; *out stays NULL where it has to be read.  0 or the exit code. */
int kept_rows_load(cli *c, const char *path, frg_table **out);
/** Has the run of that file rows, or what it made of them, beside it? */
int kept_rows_there(const char *file);
/** Refuses what stands in the place of these files and is none.  0 or the exit code. */
int kept_rows_check(cli *c);
/** What tells a file that was written to from the one that it was: its length and time. */
uint64_t hash_source(const char *path);
/** Keeps the table of a run with --checkpoint under a memory limit, read from `path`, which had
 *  that hash before.  0 or the exit code. */
int kept_rows_save(cli *c, const char *path, uint64_t source, const frg_table *t);
/** Does this run keep what it makes of its rows, or would it, of a dry run? */
int keeps_layout(const cli *c);
/** Bytes of the table that was read from `path`, where the run keeps it; else 0. */
size_t kept_rows_bytes(const cli *c, const char *path, const frg_table *t);
/** What is made of the rows, as the library keeps it. */
typedef struct {
    const frg_layout_files *files; /* NULL: it is not kept */
    frg_layout_files own;
    char *codes, *order;
} kept_layout;
/** source: of the data, by hash_source before they were read.  0 or the exit code; close it in any
 *  case. */
int kept_layout_open(kept_layout *k, cli *c, uint64_t source);
void kept_layout_close(kept_layout *k);
/** The exit code of a run that failed; where its data have changed it says what to do. */
int kept_layout_failed(cli *c, const kept_layout *k, frg_status status);
/** The run needs none of them any longer. */
void kept_rows_remove(const cli *c);
/** Refuses a resumed state that belongs to another run; returns 0 or the exit code.  Close it in
 *  any case. */
int keeper_open(keeper *k, cli *c, const char *solver, int64_t item, uint64_t data);
void keeper_close(keeper *k);
/** The calls of frg_column_store, user a keeper. */
frg_status keeper_load(void *user, int64_t n, int64_t p, void *values, frg_demean_column *columns,
                       int64_t *done, frg_status *worst);
frg_status keeper_save(void *user, int64_t n, int64_t p, const void *values,
                       const frg_demean_column *columns, int64_t done, frg_status worst,
                       int stopped);
/** Whether a state is due: where the run stops, and so seldom that states take a twentieth of the
 *  time. */
int keeper_is_due(const keeper *k, int stopped);
/** A state with the line and the folder; sections may be put into it before keeper_write, which
 *  ends it. */
frg_status keeper_begin(keeper *k, frg_checkpoint **state);
/** Writes the state unless status is negative, and destroys it; returns the worse of both. */
frg_status keeper_write(keeper *k, frg_checkpoint *state, frg_status status);
/** A state of a solver, where one is due; `put` puts the solver's sections into it. */
frg_status keeper_save_solver(keeper *k, const void *solver, keeper_put put, int stopped);
/** Says how to go on; returns the exit code. */
int keeper_stopped(const cli *c, frg_status status);

#endif
