/* tour.h - jobs of the tour beside the regressions: one table of calls a room. */
#ifndef FOURGE_CLI_TOUR_H
#define FOURGE_CLI_TOUR_H

#include "cli.h"

typedef struct {
    /** Runs the job and leaves its result in *state; 0 or the exit code after an error was shown. */
    int (*run)(cli *c, void **state);
    /** Heading, text, tables; `full`: plots and options as well. */
    void (*report)(frg_report *r, cli *c, void *state, int full);
    void (*json)(frg_json *j, const cli *c, const void *state);
    int (*exit_code)(const void *state);
    void (*release)(void *state); /* NULL is fine */
} tour_part;

extern const tour_part tour_gp, tour_gw, tour_soap;

/** The place of a file of data/; 0 or the exit code after an error was shown. */
int tour_find_data(const cli *c, const char *file, char *path, size_t room);

#endif
