/* report.h - results as text: tables in five formats, JSON, and a self-contained HTML page with SVG
 * plots.
 *
 * A report is built once and rendered to any format.  All text handed in is data: it is escaped for
 * the format it is written to, whatever it contains.
 */
#ifndef FOURGE_REPORT_H
#define FOURGE_REPORT_H

#include "fourge/fourge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- JSON ------------------------------------------------------------------------------------ */

/** Writes JSON into growing memory; errors are kept and come out of frg_json_finish alone. NULL
 *  keys are for array elements.  Doubles are the shortest text that reads back to the same value;
 *  NaN and infinities are null with a "KEY_note" beside them. */
typedef struct frg_json frg_json;
/** An empty document.  Errors: E_ARG, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_json_create(frg_json **out, frg_context *ctx);
/** on: everything on one line, as JSON lines want it.  Default: indented by two.  Call it first. */
FRG_API void frg_json_compact(frg_json *j, int on);
/** on: csv in place of JSON, a line "name,value" for each number, word and truth value:
 *  "seconds.total,0.5", "audit.0,1e-11". Words are quoted, null is an empty cell.  Call it
 *  first. */
FRG_API void frg_json_flat(frg_json *j, int on);
/** Opens an object: what follows are its members, each with a key, up to frg_json_close_object.  At
 *  most 64 objects and arrays are open at a time.  The key, here and below: copied; needed within
 *  an object, NULL in an array and for the outermost value. */
FRG_API void frg_json_open_object(frg_json *j, const char *key);
/** Closes the object that was opened last. */
FRG_API void frg_json_close_object(frg_json *j);
/** Opens an array: what follows are its elements, without keys, up to frg_json_close_array. */
FRG_API void frg_json_open_array(frg_json *j, const char *key);
/** Closes the array that was opened last. */
FRG_API void frg_json_close_array(frg_json *j);
/** A string of UTF-8, escaped; what is none becomes U+FFFD.  value NULL: null. */
FRG_API void frg_json_string(frg_json *j, const char *key, const char *value);
/** A number: the shortest text of the double, or null with KEY_note (in arrays null alone). */
FRG_API void frg_json_number(frg_json *j, const char *key, double value);
/** A whole number, every digit of it. */
FRG_API void frg_json_integer(frg_json *j, const char *key, int64_t value);
/** false for 0, true for any other value. */
FRG_API void frg_json_bool(frg_json *j, const char *key, int value);
/** The text with a newline at its end, alive until destroy; fails with what went wrong on the
 *  way.  Errors: E_ARG for what was not opened or closed, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_json_finish(frg_json *j, const char **text, int64_t *length);
/** Frees it and its text; NULL is fine. */
FRG_API void frg_json_destroy(frg_json *j);

/* ---- reports --------------------------------------------------------------------------------- */

/** What a report is rendered to. */
typedef enum {
    FRG_TEXT,     /* for a terminal, of a width */
    FRG_MARKDOWN, /* with tables of pipes */
    FRG_LATEX,    /* to be included in a document */
    FRG_CSV,      /* the tables alone, RFC 4180 */
    FRG_HTML      /* one page with its style and SVG plots; nothing is loaded */
} frg_report_format;
/** Where the cells of a column stand. */
typedef enum {
    FRG_LEFT, /* at its left */
    FRG_RIGHT /* at its right, the points of numbers in one line */
} frg_align;

/** A title, then headings, paragraphs, facts, tables and plots in the order of the calls, which
 *  copy what they are given.  Made by frg_report_create, freed by frg_report_destroy. */
typedef struct frg_report frg_report;
/** An empty report; title NULL: none.  Errors: E_ARG, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_report_create(frg_report **out, frg_context *ctx,
                                                  const char *title);
/** Frees the report and the text that was rendered last; NULL is fine. */
FRG_API void frg_report_destroy(frg_report *r);

/** A heading.  The building calls, this and those up to frg_report_plot, keep the first error for
 *  frg_report_render, and do nothing after it; they may be chained without checks.  Text NULL is
 *  empty text. */
FRG_API void frg_report_heading(frg_report *r, const char *text);
/** A paragraph of text. */
FRG_API void frg_report_paragraph(frg_report *r, const char *text);
/** A line "name: value" of the facts under the heading; consecutive facts form one block. */
FRG_API void frg_report_fact(frg_report *r, const char *name, const char *value);
/** A fact whose value is a number, shown with `digits` significant digits as of
 *  frg_format_short. */
FRG_API void frg_report_fact_number(frg_report *r, const char *name, double value, int digits);
/** A table: open, then columns, then cells row by row, then close.  Until then nothing else may be
 *  added (E_ARG). */
FRG_API void frg_report_table_open(frg_report *r, const char *caption);
/** Another column of the open table, with its heading; E_ARG once there are cells. */
FRG_API void frg_report_table_column(frg_report *r, const char *name, frg_align align);
/** The next cell of the open table: text. */
FRG_API void frg_report_cell_text(frg_report *r, const char *text);
/** The next cell: a number, shown with `digits` significant digits as of frg_format_short; in csv
 *  with all of them. */
FRG_API void frg_report_cell_number(frg_report *r, double value, int digits);
/** The next cell: a whole number. */
FRG_API void frg_report_cell_integer(frg_report *r, int64_t value);
/** Closes the table; E_ARG where it has no columns, or its last row is not full. */
FRG_API void frg_report_table_close(frg_report *r);

/** One series of a plot; low and high give intervals, both or neither.  Points that are NaN are
 *  left out.  Links are thin lines between the points 0 and 1, 2 and 3, ... of an even number. */
typedef struct {
    const char *name;                 /* in the legend */
    int64_t n;                        /* points */
    const double *x, *y, *low, *high; /* copied; x NULL: 1, 2, ...; y NULL: a band without its
                                         line */
    /** How the points are drawn. */
    enum {
        FRG_LINE,   /* a line through them */
        FRG_POINTS, /* each for itself, intervals as bars */
        FRG_BAND,   /* a line, the intervals as an area */
        FRG_LINKS   /* lines between the points 0 and 1, 2 and 3, ... */
    } style;        /* which of these */
} frg_series;

/** A plot; the call copies it and what it points to. */
typedef struct {
    const char *caption;           /* above the plot; NULL: none */
    const char *x_label, *y_label; /* as seen: below the plot, and above its left side; NULL:
                                      none */
    int log_y;                     /* decades on the axis of the values y */
    int horizontal;                /* x runs down, y to the right: coefficient plots */
    const char *const *categories; /* names of positions x = 1..n_categories; NULL: numeric axis */
    int n_categories;              /* names in categories */
    double reference;              /* a thin line at this value of y; NaN: none */
    int n_series;                  /* curves in series */
    const frg_series *series;      /* drawn in this order */
    int map; /* x and y have one unit, the same length on the page, and no ticks */
} frg_plot;
/** Adds a plot: SVG in HTML, a sparkline or nothing in the text formats.  E_ARG, kept as above, for
 *  a series without y that is no band, low without high, an odd number of linked points, or a map
 *  with log_y, horizontal or categories. */
FRG_API void frg_report_plot(frg_report *r, const frg_plot *p);

/** Renders; csv takes the tables alone, with numbers in full precision and a blank line between
 *  tables. width: columns of the terminal for FRG_TEXT, 0: 80.  The text lives until the next
 *  render or destroy.  Errors: E_ARG for an unknown format, E_MEMORY, and what went wrong while it
 *  was built. */
FRG_API FRG_MUST_USE frg_status frg_report_render(frg_report *r, frg_report_format format,
                                                  int width, const char **text, int64_t *length);
/** Renders into a file that appears whole or not at all; "-" is standard output.  Errors: of
 *  frg_report_render, E_CREATE, E_WRITE. */
FRG_API FRG_MUST_USE frg_status frg_report_save(frg_report *r, frg_report_format format,
                                                const char *path);

/** Shortest decimal text of a double that reads back to the same bits; returns its length, < 32.
 *  "NaN", "Inf" and "-Inf" for the others.  The locale has no say, here or below. */
FRG_API int frg_format_double(double value, char out[32]);
/** `digits` significant digits, plain notation where it is short, for people: 0.01230, 1234567,
 *  2.1e-16. */
FRG_API int frg_format_short(double value, int digits, char out[32]);

#ifdef __cplusplus
}
#endif
#endif
