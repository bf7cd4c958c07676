/* table.h - named columns: reading CSV, TSV, npy, npz and Stata's files, and tables made of
 * the caller's arrays. */
#ifndef FOURGE_TABLE_H
#define FOURGE_TABLE_H

#include "fourge/fourge.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a column holds.  Type inference of text files goes over the whole column: all whole numbers
 *  -> INTEGER, all numbers -> NUMBER, TRUE/FALSE only -> BOOL, anything else -> CATEGORY. */
typedef enum {
    FRG_NUMBER,  /* double */
    FRG_INTEGER, /* int64_t */
    FRG_BOOL,    /* codes 0 and 1 */
    FRG_CATEGORY /* codes of labels */
} frg_column_kind;

#define FRG_MISSING_INTEGER INT64_MIN /* a missing value of an INTEGER column */
#define FRG_MISSING_CODE    (-1)      /* of a BOOL or CATEGORY column; NaN in a NUMBER column */

/** A column of a table; the pointers live as long as the table.  Exactly one of the three arrays is
 *  set. */
typedef struct {
    const char *name;          /* as in the file, or as it was added */
    frg_column_kind kind;      /* which of the arrays is set */
    int64_t n;                 /* rows */
    int64_t n_missing;         /* of these without a value */
    const double *numbers;     /* NUMBER: n, NaN where missing */
    const int64_t *integers;   /* INTEGER: n */
    const int32_t *codes;      /* BOOL: 0, 1; CATEGORY: 0 .. n_labels-1 */
    const char *const *labels; /* CATEGORY: n_labels UTF-8 strings; NULL otherwise */
    int64_t n_labels;          /* CATEGORY; 0 otherwise */
    int ordered;  /* CATEGORY: 1: the labels stand in the order of the levels; 0: in that of first
                    appearance, and who needs an order sorts them */
    int labelled; /* CATEGORY: 1: numbers of a file of Stata, whose value labels these are */
} frg_column;

/** Named columns of one length.  Made by frg_table_read and its siblings or frg_table_create, freed
 *  by frg_table_destroy before its context. */
typedef struct frg_table frg_table;

/** How a file is read. */
typedef struct {
    size_t struct_size; /* set by frg_table_defaults */
    const char *format; /* "csv", "tsv", "npy", "npz", "dta" or NULL: by the extension (.gz and .zst
                              behind it but for npz) */
    char delimiter;     /* 0: ',' for csv, tab for tsv */
    int header;         /* 1 (default): the first line names the columns; 0: they are c1, c2,
                              ... */
    const char *const *na;      /* strings that mean missing; NULL: "", "NA", "NaN", "nan", "N/A",
                              "null", "NULL", "." */
    int64_t n_na;               /* strings in na */
    const char *const *columns; /* read these alone; NULL: all.  A text file where one of these is
                                   there twice is refused */
    int64_t n_columns;          /* names in columns */
    int untrusted; /* 1: who made the file may mean harm.  dta, npz, and what is compressed, are
                      decoded in a child process of this thread with limits (memory: as much again
                      as the context may take, 600 s, no files but for reading, no network, no
                      further process; W_UNFILTERED where limits are all that holds it), whose
                      columns are checked as they come: E_CRASHED where it crashed.  By one
                      thread, and without progress; 0 (default): in this process */
} frg_table_opts;

/** Defaults into the first struct_size bytes of o. */
FRG_API void frg_table_defaults(frg_table_opts *o, size_t struct_size);

/** Reads a file ("-": standard input).  Text is read in chunks through the context's file table and
 *  parsed by all threads; numbers are converted exactly (correctly rounded); quotes follow RFC
 *  4180; a byte-order mark and CRLF are accepted.  npy: a 1-D array is column c1, a 2-D array
 *  columns c1 .. cp; npz: one column for each 1-D member, NAME1 .. NAMEp for a 2-D member.
 *  dta: files of Stata, formats 104 to 119, through ReadStat.  Columns of byte, int and long are
 *  INTEGER, of float and double NUMBER, of texts (strL too; "" is missing) CATEGORY; numbers with
 *  value labels are CATEGORY in the order of the values where every value that occurs has a label,
 *  the level's text ("yes (2)" where a smaller value has the same text); where one has none they
 *  stay numbers, with W_HALF_LABELLED, as labels of single values mark an end (99: "99 or more").
 *  . and .a to .z are missing, and the latter counted in W_EXTENDED; dates stay numbers, whose unit
 *  on_log is told.  Texts before format 118 are taken for Windows-1252.
 *  Under a context with a spool (frg_context_opts.spool) a large .npy file may be mapped instead of
 *  read: columns of float64 or int64 that lie in it one after another are the file's own bytes, and
 *  a result that came from them while it was written to is refused (E_CHANGED).
 *  Streams of gzip and zstd are known by their first bytes and read as their contents.  Errors:
 *  E_NO_INPUT, E_READ, E_FORMAT with line and column, E_TRUNCATED, E_EXPANSION, E_FILE_TYPE,
 *  E_DECODER where the build has no zstd or the machine no ReadStat, E_COLUMN. */
FRG_API FRG_MUST_USE frg_status frg_table_read(frg_table **out, frg_context *ctx, const char *path,
                                               const frg_table_opts *o);

/** The same from bytes in memory; `name` stands in messages.  Errors: as of frg_table_read but
 *  those of opening a file: E_FORMAT, E_COLUMN, E_OPTION, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_table_parse(frg_table **out, frg_context *ctx,
                                                const char *bytes, int64_t count, const char *name,
                                                const frg_table_opts *o);

/** An empty table of n rows, to which columns are added.  The `add` calls copy.  Errors: E_ARG for
 *  n < 0, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_table_create(frg_table **out, frg_context *ctx, int64_t n);
/** A NUMBER column of n values, NaN is missing.  Errors, of all `add` calls: E_ARG for a name that
 *  is empty or there already, for values NULL, and for values that a column of the kind cannot
 *  have; E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_table_add_numbers(frg_table *t, const char *name,
                                                      const double *values);
/** An INTEGER column of n values, FRG_MISSING_INTEGER is missing.  Errors: as
 *  frg_table_add_numbers: E_ARG, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_table_add_integers(frg_table *t, const char *name,
                                                       const int64_t *values);
/** A CATEGORY column.  The order of the labels is that of the levels, as in formulas: the first is
 *  what the others are compared with.  codes: n, 0 .. n_labels-1 or FRG_MISSING_CODE, else E_ARG;
 *  labels: n_labels, none NULL; E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_table_add_codes(frg_table *t, const char *name,
                                                    const int32_t *codes, const char *const *labels,
                                                    int64_t n_labels);
/** A BOOL column of n values: 1 for TRUE, 0 for FALSE, or FRG_MISSING_CODE; E_ARG for others,
 *  E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_table_add_bools(frg_table *t, const char *name,
                                                    const int32_t *values);
/** Frees the table and its columns; NULL is fine. */
FRG_API void frg_table_destroy(frg_table *t);

/** The number of rows. */
FRG_API int64_t frg_table_rows(const frg_table *t);
/** The number of columns. */
FRG_API int64_t frg_table_columns(const frg_table *t);
/** Column i, or NULL outside 0 .. columns-1.  It stays where it is until the table is destroyed. */
FRG_API const frg_column *frg_table_column(const frg_table *t, int64_t i);
/** The column of that name, or NULL. */
FRG_API const frg_column *frg_table_find(const frg_table *t, const char *name);
/** The column name nearest in spelling, or NULL: for "did you mean". */
FRG_API const char *frg_table_nearest(const frg_table *t, const char *name);

/** What the cells of a CATEGORY column read as; missing ones do not count. */
typedef struct {
    int64_t numbers;    /* as text files have them: spaces around them do not count */
    int64_t dates;      /* "2024-02-29", "2024/02/29", "29.02.2024", with a time behind or not */
    int64_t commas;     /* numbers as some write them: "1,5", "1.234,5", "1,234.50" */
    int64_t words;      /* all others */
    int64_t first_date; /* row; -1: there is none */
    /** where most cells are numbers, with commas or not, the row of the first word, else date, else
     *  number with commas: what made text of the column; -1 of a column of words or dates */
    int64_t mistyped;
} frg_column_inference;
/** Tells columns of words from those of numbers that few cells made text, which to take for
 *  categories is a mistake.  Errors: E_ARG for a column that is not of text, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_column_count(frg_column_inference *out, frg_context *ctx,
                                                 const frg_column *c);

/** Writes csv (shortest text of the same double), whole or not at all: FRG_INTERRUPTED where
 *  frg_interrupt came meanwhile. */
FRG_API FRG_MUST_USE frg_status frg_table_write(const frg_table *t, frg_context *ctx,
                                                const char *path);

/** Keeps a table in a file as it lies in memory, for a later process of the same kind of machine:
 *  each column with a checksum, the file whole or not at all.  options, source: hashes (frg_hash)
 *  of what decides what was read, and of the file that it was read from: frg_table_load compares.
 *  Errors: E_ROOM where its folder has no room for it, before anything is written; E_CREATE,
 *  E_WRITE, E_ARG for "-"; FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped, and there is no file. */
FRG_API FRG_MUST_USE frg_status frg_table_save(const frg_table *t, frg_context *ctx,
                                               const char *path, uint64_t options, uint64_t source);
/** Bytes that the file will have. */
FRG_API size_t frg_table_save_bytes(const frg_table *t);
/** That table once more, to the bit.  Errors: E_NO_INPUT, E_READ; E_CHECKPOINT where the file is
 *  damaged or none, E_MISMATCH of other options, another format or byte order, E_CHANGED of another
 *  source; FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped, *out is NULL. */
FRG_API FRG_MUST_USE frg_status frg_table_load(frg_table **out, frg_context *ctx, const char *path,
                                               uint64_t options, uint64_t source);

/* ---- npy arrays ------------------------------------------------------------------------------ */

/** One array of an .npy file, in memory of the library; free with frg_npy_destroy. */
typedef struct frg_npy frg_npy;
/** Reads bool, integers and floats of any width (float16 too), C or Fortran order, either byte
 *  order. dtype of the view: f64, f32, i32 or i64 as stored (other integer types widen to i64,
 *  float16 to f32). FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped before all was there, *out is NULL; so
 *  of frg_table_read. */
FRG_API FRG_MUST_USE frg_status frg_npy_read(frg_npy **out, frg_context *ctx, const char *path);
/** Up to FRG_MAX_DIM axes; the view borrows from the frg_npy. */
FRG_API frg_array frg_npy_array(const frg_npy *a);
/** Frees the array, views of it included; NULL is fine. */
FRG_API void frg_npy_destroy(frg_npy *a);
/** Writes a host view, in Fortran order where it is column-major; FRG_INTERRUPTED as of
 *  frg_table_write. */
FRG_API FRG_MUST_USE frg_status frg_npy_write(frg_context *ctx, const char *path, frg_array a);

#ifdef __cplusplus
}
#endif
#endif
