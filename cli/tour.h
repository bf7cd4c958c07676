/* tour.h - the jobs of the tour: one table of calls a room. */
#ifndef FOURGE_CLI_TOUR_H
#define FOURGE_CLI_TOUR_H

#include "cli.h"

enum { MAX_TOUR_WORDS = 64 };

typedef struct {
    /** Runs the job and leaves its result in *state; 0 or the exit code after an error was
     *  shown. */
    int (*run)(cli *c, void **state);
    /** What the page begins with: heading, what came out in words, pictures; `full`: of the page,
     *  else of the terminal. */
    void (*picture)(frg_report *r, const cli *c, const void *state, int full);
    /** Heading, text, tables; `full`: plots and options as well. */
    void (*report)(frg_report *r, cli *c, void *state, int full);
    void (*json)(frg_json *j, const cli *c, const void *state);
    int (*exit_code)(const void *state);
    void (*release)(void *state); /* NULL is fine */
} tour_part;

/** A command as a user would type it: what is shown is what is run.  Its settings are line->set. */
typedef struct {
    cli *line; /* NULL: none */
    char *words[MAX_TOUR_WORDS];
    int n;
} tour_command;

/** Reads the `n` words of a command, and behind them the options of `c` that the command has as
 *  well; 0 or the exit code. */
int tour_command_read(cli *c, const char *const *words, int n, tour_command *out);
void tour_command_release(tour_command *k);
/** The fact "Command". */
void tour_command_fact(frg_report *r, const tour_command *k);

extern const tour_part tour_fe, tour_gp, tour_gw, tour_soap;

/** The place of a file of data/; 0 or the exit code after an error was shown. */
int tour_find_data(const cli *c, const char *file, char *path, size_t room);

#endif
