/* cli.h - what the files of the program share.  The program uses the public headers of fourge
 * alone. */
#ifndef FOURGE_CLI_H
#define FOURGE_CLI_H

#include <stdio.h>

#include "fourge/fe.h"
#include "fourge/fourge.h"
#include "fourge/report.h"
#include "fourge/table.h"
#include "options.h"

/* Sanitizers' runtimes are not ready before main's libraries are: nothing stands in .preinit_array
 * then. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define FOURGE_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FOURGE_SANITIZED
#endif

/* ---- progress -------------------------------------------------------------------------------- */

enum { TRACE_ROOM = 4096 };

/** Residuals by iteration, for the convergence curve.  When full, every other point goes and the
 *  stride doubles, so that any number of iterations fits. */
typedef struct {
    int64_t n, stride, seen;
    double iteration[TRACE_ROOM], residual[TRACE_ROOM];
} trace;

typedef struct {
    progress_mode mode;
    int shown;         /* a line stands on the terminal */
    double last;       /* when it was written */
    double slope_time; /* the sample the slope is measured from */
    double slope_log;
    double slope; /* of log10(residual) by second, smoothed; 0: not known */
    double rate;  /* iterations by second */
    int64_t last_done;
    char phase[32]; /* the last one shown */
    double steps;   /* seen in all rounds and blocks: the axis of the trace */
    trace trace;
    int keep_trace;
} progress_state;

/* ---- the program ----------------------------------------------------------------------------- */

struct cli {
    const command_spec *command;
    int job; /* the place of its subcommand among command->jobs */
    settings set;
    const char *arguments[MAX_ARGUMENTS];
    int n_arguments;
    int argc;
    char **argv;
    unsigned char given[MAX_OPTIONS]; /* by row of option_table: it stands on the line */
    int json_errors;                  /* --format json stands somewhere on the line */
    int color_out, color_err;
    const char *program; /* argv[0] */
    frg_context *ctx;
    double began;      /* when cli_open was done */
    size_t left_bytes; /* the most memory of a context that a worker was left with; 0: none was */
    progress_state progress;
    const struct frg_checkpoint *origin; /* the file that the line came from, NULL: it was typed */
    struct frg_checkpoint *resumed;      /* the state to go on from, NULL: none */
    struct cli *resumed_by;              /* who read it */
    int begun;                           /* the file of --checkpoint holds the line alone */
};

/** Makes the context from the options; returns 0 or the exit code after an error was shown. */
int cli_open(cli *c);
/** The same of what computes nothing: without --device on the cpu, whatever FOURGE_DEVICE names. */
int cli_open_plain(cli *c);
void cli_close(cli *c);
/** Ends the program at once, as after a command with that exit code: threads that still compute end
 *  with it. */
void cli_end(cli *c, int code);
/** The options of input tables, checked and handed on; 0 or the exit code. */
int cli_table_options(cli *c);
/** frg_table_read, of Parquet and Arrow files through duckdb: 0 and the status of reading, or the
 *  exit code of an error that was shown.  *out is NULL where there is no table. */
int cli_load_table(const cli *c, const char *path, const frg_table_opts *o, frg_table **out,
                   frg_status *status);
/** A table with rows, as the options have it; 0 or the exit code.  *out is the caller's wherever it
 *  is not NULL. */
int cli_read_table(const cli *c, const char *path, frg_table **out);
/** Row i of a column as a number, codes as they are; NaN where missing. */
double cli_number_at(const frg_column *k, int64_t i);
/** The row that makes text of a column of numbers, -1: it is none of them; 0 or the exit code. */
int cli_find_mistyped(const cli *c, const frg_column *k, int64_t *row);
/** Refuses a column of text, by the cell that makes it text where there are few such (`hint` is
 *  what to do then); the exit code. */
int cli_refuse_text(const cli *c, const char *path, const frg_column *k, const char *hint);
/** Refuses the name of a column that the table of `path` has not: the nearest name, or those there
 *  are; the exit code. */
int cli_no_column(const cli *c, const char *path, const frg_table *t, const char *name);
/** Whether the option stands on the line. */
int was_given(const cli *c, const char *name);
/** Copies the fields of `settings` from `from` on that options on the line have set, of `bytes`, to
 *  the same places of `to`. */
void take_given(const cli *c, size_t from, size_t bytes, void *to);
/** Reads a command line into c, which is zeroed, and checks its words; 0 or the exit code.  Words
 *  have to live as long as c. */
int cli_read(cli *c, int argc, char **argv);
/** Reads a command line and runs it in c, which is zeroed; returns the exit code. */
int cli_run(cli *c, int argc, char **argv);
/** 130 or 143 once a signal asked to stop, else 0. */
int cli_signalled(void);
/** For loops of the program itself: FRG_INTERRUPTED, FRG_TIME_LIMIT (since cli_open), or FRG_OK. */
frg_status cli_over(const cli *c);

/** Refuses a line whose results have no folder, or would replace each other or what is read; 0 or
 *  the exit code. */
int cli_check_paths(const cli *c);
/** Whether a result of that name can be made where it shall lie; 0 or the exit code. */
int cli_check_folder(const cli *c, const char *path);
/** The option whose result goes to standard output, "save-effects"; NULL: the table alone does. */
const char *standard_output_taker(const cli *c);

int command_fe(cli *c);
int command_demean(cli *c);
int command_gp(cli *c);
int command_gw(cli *c);
int command_soap(cli *c);
int command_tour(cli *c);
int command_bench(cli *c);
int command_simulate(cli *c);
int command_doctor(cli *c);
int command_help(cli *c);
int command_resume(cli *c);
/** After a command: one that failed with that exit code leaves no file of a run that has only
 *  begun. */
void checkpoint_end(cli *c, int code);

/* ---- errors ---------------------------------------------------------------------------------- */

/** Shows an error of the program itself: `name` is a row of the catalogue ("E_OPTION"); `where` and
 *  `hint` may be NULL (the row's own hint).  Returns the exit code. */
int cli_fail(const cli *c, const char *name, const char *where, const char *hint,
             const char *format, ...) FRG_PRINTF(5, 6);
/** Shows why the last call of the library failed; returns the exit code. */
int cli_fail_library(const cli *c, frg_status status);
/** Shows that the time limit or a signal ended the run without a result; returns the exit code. */
int cli_fail_stopped(const cli *c, frg_status status, const char *hint, const char *format, ...)
    FRG_PRINTF(4, 5);
/** 0 of a call that came to its end, converged or not; else shows what failed, or that it was
 *  stopped before `before`, as in "the data were read", and returns the exit code. */
int cli_check(const cli *c, frg_status status, const char *before);
/** The exit code of a run whose result is shown: the signal's, or the status'. */
int cli_ended(frg_status status);
/** An option, and whether it was given. */
typedef struct {
    const char *name;
    int given;
} given_option;
/** 0 where none of them is given; else shows that the first `why` ("is of one model"), and returns
 *  the exit code. */
int cli_refuse_given(const cli *c, const given_option *options, size_t count, const char *why,
                     const char *hint);
/** The exit code of a read that left no data. */
int cli_fail_read(const cli *c, frg_status status);
int cli_fail_memory(const cli *c);
/** Refuses --format of a text that comes in one form alone. */
int cli_text_alone(const cli *c, const char *what);
/** All of a file or, for "-", of standard input, with a zero behind it; the caller frees it.  NULL
 *  and an exit code where it cannot be had. */
char *cli_read_text(const cli *c, const char *path, size_t *length, int *code);
/** Prints the context's warnings on stderr unless -q was given. */
void cli_show_warnings(const cli *c);
/** Those that came after the first `first`. */
void cli_show_warnings_from(const cli *c, int first);
/** The catalogue's row with this code or name, NULL if there is none. */
const frg_error_entry *find_error(const char *code_or_name);
/** The line of an error, and its object of JSON. */
void error_text(FILE *file, const cli *c, const char *code, const char *message, const char *where,
                const char *hint);
void error_json(FILE *file, const char *code, const char *message, const char *where,
                const char *hint);
/* cli_spool.c */
/** cli_open of a command whose rows come from `path`: those beyond --memory-limit lie on the disk
 *  by themselves where that is a file, so that a limit alone is no end of it.  What comes out of a
 *  pipe may have no end, and would fill the disk: there --spool has to be given, and a folder that
 *  is given has to be of use, whether or not it is needed.  A disk that fails under them ends the
 *  program with E_DISK.  The exit code. */
int open_with_spool(cli *c, const char *path);
int explain_code(const cli *c, const char *code);
void write_json_string(FILE *file, const char *text);
/** Text of unknown origin for a terminal: characters that act instead of being seen are spelled
 *  out, as \x1b. */
void write_visible(FILE *file, const char *text);

void progress_start(progress_state *p, const cli *c);
int progress_report(const frg_progress *p, void *user);
void progress_log(int level, const char *line, void *user);
void progress_clear(progress_state *p);

/* ---- output ---------------------------------------------------------------------------------- */

double now_seconds(void);
/** Writes the finished text to --output (or standard output); returns 0 or the exit code. */
int write_output(const cli *c, const char *text, int64_t length);
/** Renders a report in the format asked for and writes it. */
int write_report(cli *c, frg_report *report);
/** Finishes the text of `json` and writes it with a line end. */
int write_json(cli *c, frg_json *json);
/** What fills an object, and a report, with the result of a job. */
typedef void (*json_writer)(frg_json *, const cli *, const void *job);
typedef void (*report_writer)(frg_report *, const cli *, const void *job);
/** The result of `job` as --format asks for it, the report under that title; csv without a table is
 *  the object's numbers and words, a line "name,value" each. */
int write_result(cli *c, const char *title, json_writer json, report_writer text, const void *job);
/** The page --report of what `write` writes. */
int save_page(cli *c, const char *title, report_writer write, const void *job);
/** The same of what stands in a table for people, with the curve of convergence and the run's facts
 *  behind it. */
int save_plain_page(cli *c, const char *title, report_writer write, const void *job);
/** What gave a page: the command line, versions, machine, the settings that are on the line, each
 *  as a shell takes it, and under a heading of their own what the others were.  `line`: whose
 *  command it is, c but in the tour. */
void page_run_facts(frg_report *r, const cli *c, const cli *line);
/** The command line with quotes where a shell needs them; the caller frees it.  NULL: no memory. */
char *command_text(const cli *line);
/** The keys that every JSON object has: schema and version first, the rest at the end. */
void json_head(frg_json *j, const char *schema);
void json_foot(frg_json *j, const cli *c);
/** With --repeat, an array "repeats" of the runs' totals. */
void repeats_json(frg_json *j, const cli *c, const double *totals, int n);
/** What a device was given to do: the keys device_launches to device_bytes_out; a fact, none where
 *  no kernel was launched.  passes_on: what has computed residuals and their audit, or NULL. */
typedef struct {
    int64_t launches, waits, bytes_in, bytes_out;
} device_work;
device_work device_work_of_demean(const frg_demean_report *r);
void device_work_json(frg_json *j, device_work w);
void device_work_fact(frg_report *r, const char *passes_on, device_work w);
/** What a run on a device has left to the host: an object "host_steps" of calls by name, empty on
 *  the cpu; a table, or none. */
void host_steps_json(frg_json *j, const frg_host_steps *s);
void host_steps_table(frg_report *r, const frg_host_steps *s);
/** The parts of a design that were solved apart: an array "parts", empty where there are none; a
 *  table. */
void subproblems_json(frg_json *j, const frg_demean_part *subproblems, int64_t n);
void subproblems_table(frg_report *r, const frg_demean_part *subproblems, int64_t n);
/** Where the solver of --plan came from, or went to; nothing for file NULL. */
void plan_json(frg_json *j, const char *file, int read, int written);
void plan_fact(frg_report *r, const char *file, int read, int written);
typedef enum { SIZE_COUNT, SIZE_BYTES, SIZE_SECONDS } size_kind;
/** A number of --dry-run. */
typedef struct {
    const char *key; /* of the JSON object */
    size_kind kind;
    double value;               /* counts and bytes are whole and below 2^53 */
    const char *label;          /* of the fact for people; NULL: none */
    const char *before, *after; /* what stands beside the value there; NULL: nothing */
    const char *text;           /* what stands there instead; NULL: the value */
} size_line;
/** --dry-run: its lines as facts or as an object of that schema; the exit code. */
int show_sizes(cli *c, const char *schema, const size_line *lines, int n);
/** The same of n rows, factors and columns: memory and time.  kept: bytes that the run keeps beside
 *  FILE of --checkpoint, 0: none. */
int show_estimate(cli *c, const char *schema, const frg_fe_size *size, size_t kept);
/** Columns of the terminal behind standard output; 0 where there is none. */
int terminal_width(void);
/* cli_sort.c */
void sort_numbers(double *values, int64_t n);
double median_of(double *values, int n); /* sorts them */
/** How many of n sorted numbers are below x. */
int64_t count_below(const double *sorted, int64_t n, double x);
/** Grouped decimal: 1234567 -> "1,234,567". */
const char *grouped(int64_t value, char text[32]);
const char *bytes_text(double bytes, char text[32]);
const char *seconds_text(double seconds, char text[32]);
/** frg_format_short as a value: 1.2e-9, where printf's %e has e-09. */
const char *short_text(double value, int digits, char text[32]);

/* ---- the machine ----------------------------------------------------------------------------- */

typedef struct {
    char cpu[128];
    char blas[128], core[64];
    int online, affinity;
    double quota;         /* CPUs of the control group, 0: no limit */
    int64_t memory_total; /* of the machine */
    int64_t memory_limit; /* of the control group, 0: no limit */
    int avx2, avx512;
    double load;  /* programs that run or want to, the mean of the last minute; 0: not known */
    double steal; /* share of the virtual cores' time that the host gave to others since it
                     started */
} machine;

void machine_read(machine *m);
/** Bytes of address space that OpenBLAS maps when it is loaded, with the variables of
 *  `environment`. */
int64_t openblas_address_space(char *const *environment);

#endif
