/* csv_reader.h - one reading of a text file: what csv.c, csv_header.c and csv_columns.c work on. */
#ifndef FRGI_CSV_READER_H
#define FRGI_CSV_READER_H

#include "io/csv.h"

#pragma GCC visibility push(hidden)

/** A column of the file. */
typedef struct {
    char *name;
    bool wanted;  /* asked for */
    bool pending; /* to be converted in this segment */
    bool fresh;   /* has just been, to codes of the blocks */
    bool again;   /* needs the second pass */
    frgi_cell_kind kind;
    void *values;     /* int64_t, double or int32_t by the kind; NULL while all are missing */
    int64_t capacity; /* rows */
    int64_t n_missing;
    frgi_dictionary dictionary;
} frgi_csv_column;

/** What converting a column of a block gave. */
typedef struct {
    frgi_cell_kind kind;
    int64_t n_missing;
    int64_t fresh, n_fresh; /* its new strings: from here on in the block's list */
    int64_t broken;         /* row of a cell with text behind its quotes, -1: none */
} frgi_csv_converted;

/** Memory of the blocks of a segment, and of the threads that convert them. */
typedef struct {
    frgi_csv_converted *converted; /* block b, active column k: at [b * n_active + k] */
    int64_t converted_capacity;
    frgi_fresh *fresh[FRGI_CSV_BLOCKS];
    int64_t fresh_capacity[FRGI_CSV_BLOCKS];
    frgi_encode_scratch *scratch; /* one a thread */
    int n_scratch;
    int64_t cell_bytes; /* of the cell of each */
} frgi_csv_work;

/** The text of an input that cannot be opened again, of csv.c alone. */
typedef struct {
    bool keep; /* the input is such a one */
    frgi_span *text;
    int64_t n, capacity, bytes;
    bool let_go; /* it grew too long to be kept */
} frgi_csv_pipe;

typedef struct {
    frg_context *ctx;
    const frgi_input *input;
    const frg_table_opts *opts;
    const frgi_csv_steps *steps;
    frgi_decimal *decimal;
    frgi_cell_rules rules;
    frgi_segments segments;

    frgi_csv_column *columns;
    int64_t n_columns;
    int64_t *active; /* numbers of the active columns */
    int64_t n_active;
    int64_t rows, lines; /* before this segment, in this pass */

    frgi_csv_work work;
    bool again; /* this is the second pass */
    frgi_csv_pipe pipe;
} frgi_csv_reader;

/** The newlines in [s, e). */
int64_t frgi_count_newlines(const char *s, const char *e);
/** The line, from 1, of a byte of block b. */
int64_t frgi_csv_line_at(const frgi_csv_reader *t, int b, const char *at);
/** The next failure is at this line of the input. */
void frgi_csv_place(const frgi_csv_reader *t, int64_t line);

/** Sets segments.start behind the header; in the first pass makes the columns. */
FRG_MUST_USE frg_status frgi_csv_read_header(frgi_csv_reader *t);

/** Converts the active columns of the segment's rows and reads the next segment meanwhile. */
FRG_MUST_USE frg_status frgi_csv_convert(frgi_csv_reader *t);
/** Bytes of a value in memory. */
size_t frgi_csv_value_bytes(frgi_cell_kind kind);
/** Makes the first `rows` values missing. */
void frgi_csv_fill_missing(frgi_csv_column *c, int64_t rows);

#pragma GCC visibility pop
#endif
