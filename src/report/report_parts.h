/* report_parts.h - what the files of src/report share: the output sink, escaping, the report's
 * elements. */
#ifndef FRGI_REPORT_PARTS_H
#define FRGI_REPORT_PARTS_H

#include "core/core.h"
#include "fourge/report.h"

#pragma GCC visibility push(hidden)

/* ---- the sink: text that keeps its first error, so that writers read straight ---------------- */

typedef struct {
    frg_context *ctx;
    frgi_text text;
    frg_status status; /* < 0: everything put later is ignored */
} frgi_sink;

void frgi_put(frgi_sink *k, const char *s);
void frgi_put_bytes(frgi_sink *k, const char *s, size_t length);
/** Whole numbers and strings alone: %f and %g would write the locale's decimal point. */
void frgi_putf(frgi_sink *k, const char *format, ...) FRG_PRINTF(2, 3);
void frgi_put_times(frgi_sink *k, const char *s, int64_t times);
/** Fixed notation with `decimals` places, trailing zeros dropped when `trim`; |value| < 1e15. */
void frgi_put_fixed(frgi_sink *k, double value, int decimals, bool trim);

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

/** The next code point, U+FFFD for broken bytes, 0 (and no advance) at the end. */
int32_t frgi_utf8_next(const char **s);
/** Is it a character that acts instead of being seen? */
bool frgi_utf8_hidden(int32_t c);
/** Terminal cells of a code point and of a string: 0 for combining marks, 2 for wide East Asian. */
int frgi_utf8_width(int32_t c);
int64_t frgi_text_width(const char *s, size_t length);

/* ---- escaping -------------------------------------------------------------------------------- */

/** How one format protects itself.  Hidden characters are shown as \n, \x1b, \u202e in all of
 *  them. */
typedef struct {
    const char *replace[128]; /* by ASCII character; NULL: as it is */
    const char *only_doubled; /* replaced only in front of themselves: LaTeX ligatures */
    const char *not_in_words; /* plain between two letters or digits: the _ of Markdown */
} frgi_escapes;

extern const frgi_escapes frgi_escapes_text, frgi_escapes_markdown, frgi_escapes_latex,
    frgi_escapes_html;

/** fold: white space of any kind becomes a blank (running text), instead of \n and \t (names). */
void frgi_put_escaped(frgi_sink *k, const char *s, const frgi_escapes *e, bool fold);
/** A name in at most `cells` cells, with an ellipsis for what does not fit. */
void frgi_put_elided(frgi_sink *k, const frgi_escapes *e, const char *s, int64_t cells);
/** Display width of a name as frgi_put_escaped writes it; errors go to the sink. */
int64_t frgi_escaped_width(frgi_sink *k, const char *s, const frgi_escapes *e);

/** A field of csv; quoted: in quotes whatever it holds. */
void frgi_put_csv(frgi_sink *k, const char *s, bool quoted);

/* ---- the report ------------------------------------------------------------------------------ */

typedef enum { CELL_TEXT, CELL_NUMBER, CELL_INTEGER } frgi_cell_kind;

typedef struct {
    frgi_cell_kind kind;
    int digits;
    double number;
    int64_t integer;
    char *text; /* owned */
} frgi_cell;

typedef struct {
    char *name; /* owned */
    frg_align align;
} frgi_report_column;

typedef struct {
    frgi_report_column *columns;
    frgi_cell *cells; /* row by row */
    int64_t n_columns, columns_capacity, n_cells, cells_capacity;
} frgi_report_table;

/** An owned copy of a frg_series; low and high are both set or both NULL. */
typedef struct {
    char *name;
    int64_t n;
    double *x, *y, *low, *high;
    int style;
} frgi_series;

typedef struct {
    char *x_label, *y_label; /* NULL: none */
    bool log_y, horizontal, map;
    double reference;
    char **categories;
    int n_categories;
    frgi_series *series;
    int n_series;
} frgi_plot;

typedef enum {
    ELEMENT_HEADING,
    ELEMENT_PARAGRAPH,
    ELEMENT_FACT,
    ELEMENT_TABLE,
    ELEMENT_PLOT
} frgi_element_kind;

typedef struct {
    frgi_element_kind kind;
    char *text; /* heading, paragraph, name of the fact, caption; never NULL */
    union {
        frgi_cell fact;
        frgi_report_table table;
        frgi_plot plot;
    };
} frgi_element;

struct frg_report {
    frg_context *ctx;
    char *title;
    frgi_element *elements;
    int64_t n_elements, capacity;
    bool table_open; /* the last element is a table that still takes cells */
    frg_status status;
    frgi_text rendered;
};

/** What a cell says, unescaped: its text, or its number written into `buffer`. */
const char *frgi_cell_words(const frgi_cell *c, char buffer[32]);

/** The parts of a text that is a number, perhaps in brackets or with stars: "(-0.12)", "1.5e-7**",
 *  "<0.0001". */
typedef struct {
    int sign;      /* index of its minus sign, -1: none */
    int whole;     /* index of its first digit */
    int point;     /* index where the figures before the decimal point end */
    int mantissa;  /* index where the mantissa ends */
    int exponent;  /* index of the exponent's first figure that is no leading zero, -1: none */
    bool negative; /* the exponent has a minus sign */
    int end;       /* index where the number ends; brackets, stars and percent signs may follow */
} frgi_number_parts;
bool frgi_number_split(const char *s, frgi_number_parts *p);

/** The widths that line up the decimal points of a right-aligned column: `tail` is the number of
 *  characters from the decimal point on, 0 for what is not lined up (words, scientific
 *  notation). */
bool frgi_cell_tail(const frgi_report_table *t, int64_t cell, int64_t *tail);
int64_t frgi_column_tail(const frgi_report_table *t, int64_t column);

/** The formats.  Each appends the whole report to the sink. */
void frgi_write_text(frgi_sink *k, const frg_report *r, int width);
void frgi_write_markdown(frgi_sink *k, const frg_report *r);
void frgi_write_latex(frgi_sink *k, const frg_report *r);
void frgi_write_csv(frgi_sink *k, const frg_report *r);
void frgi_write_html(frgi_sink *k, const frg_report *r);

/** Text tables shared by text and Markdown: every cell escaped and measured. */
typedef struct {
    int64_t rows, columns; /* rows without the header, which is row 0 of the cells */
    size_t *start;         /* cell (i, j) is text + start[i * columns + j], NUL-terminated */
    int64_t *width;        /* of cell (i, j) */
    int64_t *natural;      /* widest cell of column j */
    int64_t *least;        /* widest number of column j, which may not be wrapped */
    char *text;
} frgi_grid;
FRG_MUST_USE frg_status frgi_grid_make(frgi_grid *g, frg_context *ctx, const frgi_report_table *t,
                                       const frgi_escapes *e);
void frgi_grid_free(frgi_grid *g, frg_context *ctx);

/** Is there anything to show in a text format?  Plots without lines have no sparks, and their
 *  caption would stand alone. */
bool frgi_has_text(const frgi_element *e);
/** One line of block characters for each line series: "name  ▇▅▃▁  1.2 → 3e-11". */
void frgi_put_sparks(frgi_sink *k, const frgi_plot *p, const frgi_escapes *e, int width,
                     const char *indent);

/** The plot as <svg>; `number` makes the ids of its title and description unique in the page. */
void frgi_put_svg(frgi_sink *k, const frgi_plot *p, const char *caption, int number);
/** The style rules that the page needs for it. */
extern const char frgi_svg_style[];

/* ---- axes ------------------------------------------------------------------------------------ */

#define FRGI_TICKS 24

typedef struct {
    double low, high; /* the ends; log10 of them when `log` */
    bool log;
    int n, n_minor;
    double at
        [FRGI_TICKS]; /* in the units of low and high, minor ones included after the n major ones */
    int decimals;     /* of the labels */
    int power;        /* labels are value / 10^power; 0: plain */
    double step;
} frgi_axis;

/** An axis for data in [low, high] with about `wanted` ticks at 1, 2, 5 times powers of ten. */
frgi_axis frgi_axis_make(double low, double high, bool log, int wanted);
/** Position of a value on the axis, 0 .. 1; NaN where it has none. */
double frgi_axis_place(const frgi_axis *a, double value);
/** Label of tick i as SVG text content. */
void frgi_put_tick_label(frgi_sink *k, const frgi_axis *a, int i);

#pragma GCC visibility pop
#endif
