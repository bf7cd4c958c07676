/* options.h - the table of commands and options, and everything that reads it.
 *
 * One row of option_table describes an option completely: name, type, range, place in `settings`,
 * help.  The parser, --help, the man pages, the completions, the Markdown reference and
 * --options-json are readers of that table, so that they always agree.  Solver options point
 * straight into the library's option structs, whose defaults functions fill them; the default shown
 * in the help is read back from there.
 */
#ifndef FOURGE_CLI_OPTIONS_H
#define FOURGE_CLI_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "fourge/fe.h"
#include "fourge/fourge.h"
#include "fourge/gp.h"
#include "fourge/soap.h"
#include "fourge/table.h"
#include "gw/gw_settings.h"

enum { MAX_ARGUMENTS = 16, MAX_NA = 32, MAX_SET = 32, MAX_TERMS = 32, MAX_OPTIONS = 512 };

typedef enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV, FORMAT_MD, FORMAT_TEX } output_format;
typedef enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color_mode;
typedef enum { PROGRESS_AUTO, PROGRESS_JSON, PROGRESS_NONE } progress_mode;

typedef enum { KEEP_AUTO, KEEP_NO, KEEP_YES } keep_mode;

/** Places in the choices of --leave-out. */
typedef enum {
    LEAVE_OUT_NO,
    LEAVE_OUT_MATCH,
    LEAVE_OUT_OBSERVATION,
    LEAVE_OUT_NONE
} leave_out_mode;

/** How tables are read. */
typedef struct {
    const char *delimiter;
    const char *na[MAX_NA];
    int n_na;
} input_settings;

/** Beside frg_fe_opts. */
typedef struct {
    const char *save_effects, *save_residuals, *save_groups, *predict, *predictions;
    int keep_effects, leave_out;
    /* the table of several models */
    const char *keep[MAX_TERMS], *drop[MAX_TERMS], *order[MAX_TERMS], *label[MAX_TERMS];
    int n_keep, n_drop, n_order, n_label, digits, stars;
    const char *statistics;
} fe_settings;

/** What is asked of a fit of fe, or made of fits. */
typedef struct {
    frg_leave_out_opts leave_out;
    frg_ritest_opts ritest;
    frg_lpdid_opts lpdid;
} study_settings;

/** Beside frg_gp_opts and frg_gp_fit_opts. */
typedef struct {
    const char *x, *y, *kernel, *noise_column, *noise_groups, *save_model, *covariance;
    int no_gradient, observed, prior_draws, batch_fit;
    int64_t samples;
    double variance_floor;
} gp_settings;

/** Files of demean; out is simulate's, too. */
typedef struct {
    const char *columns, *codes, *weights_file, *out, *plan;
} array_settings;

/** The data that simulate writes and bench solves. */
typedef struct {
    double rows;
    const char *set[MAX_SET];
    int n_set;
    int quick;
} design_settings;

/** Beside frg_soap_opts. */
typedef struct {
    int layers, hidden, mlp, steps, warmup, gradients, optimizer, batched;
    const char *label, *q, *r;
    double target;
} soap_settings;

/** What is printed instead of a run. */
typedef struct {
    int help, version, options_json, markdown;
    const char *explain, *man, *completion;
} page_settings;

/** All that the command line can set. */
typedef struct {
    frg_context_opts context;
    frg_table_opts table;
    frg_fe_opts fe;
    study_settings studies;
    frg_gp_opts gp;
    frg_gp_fit_opts gp_fit;
    frg_soap_opts soap;
    gw_settings gw;
    input_settings input;
    fe_settings fe_job;
    gp_settings gp_job;
    soap_settings soap_job;
    array_settings arrays;
    design_settings design;
    page_settings pages;
    int format, color, progress;
    int quiet, verbose, dry_run, repeat;
    const char *output, *report, *checkpoint;
} settings;

typedef enum {
    KIND_FLAG,   /* int: 1 where given */
    KIND_COUNT,  /* int: how often given */
    KIND_TEXT,   /* const char * */
    KIND_INPUT,  /* const char *, a file that is read */
    KIND_OUTPUT, /* const char *, a file that is written */
    KIND_CHOICE, /* int: position in `choices` */
    KIND_INT,    /* int */
    KIND_INT64,  /* int64_t */
    KIND_UINT64, /* uint64_t */
    KIND_REAL,   /* double */
    KIND_BYTES,  /* int64_t, suffixes K M G T */
    KIND_SIZE,   /* size_t, the same suffixes */
    KIND_LIST,  /* const char *[limit], a value each time it is given; `count` is the place of their
                   number */
    KIND_DEVICE /* frg_device */
} option_kind;

typedef enum { OPTION_READY, OPTION_LATER } option_state;

/** Commands as bits, to say which options belong to which. */
typedef enum {
    CMD_FE = 1,
    CMD_DEMEAN = 2,
    CMD_TOUR = 4,
    CMD_BENCH = 8,
    CMD_SIMULATE = 16,
    CMD_DOCTOR = 32,
    CMD_HELP = 64,
    CMD_GP = 256,
    CMD_GW = 512,
    CMD_SOAP = 1024,
    CMD_RESUME = 8192, /* its words belong to the line that it goes on with */
    CMD_ALL = 65535
} command_bit;

typedef struct {
    const char *name;
    char letter; /* 0: none */
    option_kind kind;
    unsigned commands; /* those that know it */
    unsigned
        jobs;     /* of a command with subcommands, those that do: 1 << place in its jobs; 0: all */
    size_t field; /* in settings */
    size_t count; /* in settings; lists alone */
    int limit;    /* most values of a list */
    const char *value;    /* how the value is called in the help */
    const char *choices;  /* "a|b|c" */
    const char *fallback; /* what the default means, where its value does not say so */
    double low, high;     /* range; none where both are 0 */
    int open;             /* 1: low itself is outside, 2: high, 3: both */
    option_state state;
    const char *group; /* heading in the help */
    const char *help;
    const frg_option *(*of)(void); /* the library's table that the rest is in; NULL: none */
    size_t place;                  /* of its row: the offset there */
    int dashes;                    /* 1: the words of `choices` are written with dashes */
} option_spec;

/** The subcommands of `fourge gp`, `soap` and `bench` as bits; those of `gw` are in
 *  gw_settings.h. */
enum {
    GP_JOB_VALUE = 1,
    GP_JOB_FIT = 2,
    GP_JOB_PREDICT = 4,
    GP_JOB_LOO = 8,
    GP_JOB_SAMPLE = 16,
    GP_JOB_BATCH = 32,
    GP_JOBS_OF_DATA = GP_JOB_VALUE | GP_JOB_FIT | GP_JOB_LOO,
    GP_JOBS_OF_POINTS = GP_JOB_PREDICT | GP_JOB_SAMPLE,
    GP_JOBS_THAT_FIT = GP_JOB_FIT | GP_JOB_BATCH | GP_JOBS_OF_POINTS,
    SOAP_JOB_BENCH = 1,
    SOAP_JOB_TRAIN = 2,
    SOAP_JOB_QR = 4,
    SOAP_JOBS_OF_STEPS = SOAP_JOB_BENCH | SOAP_JOB_TRAIN,
    BENCH_JOB_FE = 1
};

typedef struct cli cli;

typedef struct {
    const char *name;
    command_bit bit;
    const char *jobs;      /* "align|sinkhorn": its subcommands, the first argument; NULL: none */
    const char *arguments; /* "FORMULA DATA" */
    int min_arguments, max_arguments;
    int first_file; /* the argument from which on they are files */
    const char *summary;
    const char *description;
    const char *examples; /* one a line */
    int (*run)(cli *c);
} command_spec;

/** Both tables end with a row whose name is NULL. */
extern option_spec option_table[];
extern const command_spec command_table[];

const command_spec *find_command(const char *name);
/** The place of `word` in a list "a|b|c"; -1: it is not there. */
int place_of(const char *list, const char *word);
/** Of those in such a list, the word nearest to another, in `room`; NULL when none is near. */
const char *nearest_of(const char *list, const char *word, char room[256]);
/** The option `name` (of `length` bytes, without dashes) of the commands in `mask`, or NULL. */
const option_spec *find_option(const char *name, size_t length, unsigned mask);
const char *nearest_option(const char *name, size_t length, unsigned mask);
const char *nearest_command(const char *name);

/** Fills in what the library says of its options; before anything reads option_table. */
void options_open(void);
void settings_defaults(settings *s);
/** Of the field of a number, a flag or a choice. */
size_t option_bytes(const option_spec *o);
/** Stores a value; returns NULL, or what was expected ("a whole number in 1 .. 32"), in
 *  `expected`. */
const char *option_store(const option_spec *o, settings *s, const char *value, char expected[256]);
int option_takes_value(const option_spec *o);
/** The default as the help shows it; "" where there is none. */
void option_default_text(const option_spec *o, const settings *defaults, char *text, size_t room);
/** The default of a number or a choice as text, without the words that explain it; "" of other
 *  kinds. */
void option_value_text(const option_spec *o, const settings *s, char *text, size_t room);
/** The values in `s` as the line has them, exactly: several of a list, "yes" or "no" of a flag,
 *  none where there is no text. Returns their number, at most `most`; `number` holds the word of a
 *  value that is no text. */
int option_words(const option_spec *o, const settings *s, const char *words[], int most,
                 char number[64]);
/** The range as text: "1 .. 32", "(0, 1)", ">= 1"; "" where there is none. */
void option_range_text(const option_spec *o, char *text, size_t room);

#endif
