/* bench_lines.h - what the parts of `fourge bench` share: a JSON line for every case, as soon as it
 * is ready. */
#ifndef FOURGE_CLI_BENCH_LINES_H
#define FOURGE_CLI_BENCH_LINES_H

#include "cli.h"

/** Before a case, whose memory and warnings are its own; 0: it is slow, and --quick leaves it
 *  out. */
int bench_case_begins(cli *c, int slow);
/** An object with the schema, the bench, the machine and the build; what is measured comes
 *  between. */
int bench_line_begin(cli *c, const char *bench, int repeats, frg_json **j);
/** Writes it as one line and destroys it; 0 or the exit code. */
int bench_line_end(cli *c, frg_json *j, FILE *to);
int bench_repeats(const cli *c);
/** 0 of a run whose result may be verified; else the exit code of what failed or stopped it. */
int bench_check(const cli *c, frg_status status);
/** Runs the job once and checks it, then `repeats` times for their seconds; 0 or the exit code. */
int bench_time(cli *c, frg_status (*once)(cli *, void *job, double *seconds),
               int (*check)(cli *, void *job), void *job, int repeats, double *seconds);
/** The median and the least of them; they are sorted. */
void bench_line_seconds(frg_json *j, double *seconds, int repeats);

int bench_gp(cli *c, FILE *to);
int bench_gw(cli *c, FILE *to);
int bench_soap(cli *c, FILE *to);

#endif
