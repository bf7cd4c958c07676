/* dta.h - Stata's files through ReadStat: the library when it is asked for, and columns as they are
 * filled cell by cell.
 */
#ifndef FRGI_DTA_H
#define FRGI_DTA_H

#include <readstat.h>

#include "io/csv.h" /* dictionaries */

#pragma GCC visibility push(hidden)

/* ---- ReadStat -------------------------------------------------------------------------------- */

/** What is called of it. */
/* clang-format off */
#define FRGI_READSTAT(each)                                                                       \
    each(parser_init) each(parser_free) each(parse_dta) each(error_message) each(set_io_ctx)      \
    each(set_open_handler) each(set_close_handler) each(set_seek_handler) each(set_read_handler)  \
    each(set_metadata_handler) each(set_variable_handler) each(set_value_handler)                 \
    each(set_value_label_handler) each(get_row_count) each(get_var_count)                         \
    each(get_file_format_version) each(variable_get_index_after_skipping)                         \
    each(variable_get_name) each(variable_get_format) each(variable_get_type) \
    each(variable_get_storage_width)
/* clang-format on */

typedef struct {
#define FRGI_READSTAT_POINTER(name) __typeof__(readstat_##name) *name;
    FRGI_READSTAT(FRGI_READSTAT_POINTER)
#undef FRGI_READSTAT_POINTER
} frgi_readstat;

/** The library of this machine; E_DECODER where there is none.  `file` stands in the message. */
FRG_MUST_USE frg_status frgi_readstat_open(frgi_readstat *out, frg_context *ctx, const char *file);

/** Refuses long strings that do not end in a NUL, which ReadStat would read beyond. */
FRG_MUST_USE frg_status frgi_dta_check_strls(frg_context *ctx, const char *bytes, int64_t count,
                                             int version, const char *file);

/* ---- columns --------------------------------------------------------------------------------- */

enum {
    FRGI_DTA_TAGS = 26,     /* .a to .z */
    FRGI_DTA_SET_NAME = 132 /* bytes of the name of a set of labels, with its end */
};

/** A column that was asked for.  Texts, and numbers that may have labels, are coded as they come:
 *  its dictionary holds the texts, or the numbers' 8 bytes. */
typedef struct {
    char *name;
    char label_set[FRGI_DTA_SET_NAME]; /* "": the numbers have no labels */
    bool labels_seen;   /* of the first column that names a set: the file has labels of it, */
    bool numbers_named; /* and not of missing values alone */
    bool coded;         /* values are codes */
    readstat_type_t type;
    void *values; /* int64_t, double, or int32_t codes */
    frgi_dictionary dictionary;
    int64_t missing;
    int64_t tagged[FRGI_DTA_TAGS];
} frgi_dta_column;

/** Labels of all sets that a column names: key -> text. */
typedef struct {
    frgi_dictionary keys; /* frgi_dta_key, numbered */
    int64_t *starts;      /* of each key's label in texts */
    int64_t capacity;
    frgi_text texts; /* each ended by NUL */
} frgi_dta_labels;

typedef struct {
    double value;
    int64_t set; /* number of the first column that names it */
} frgi_dta_key;

/** Room for `rows` cells. */
FRG_MUST_USE frg_status frgi_dta_column_open(frgi_dta_column *c, frg_context *ctx, int64_t rows);
FRG_MUST_USE frg_status frgi_dta_column_put(frgi_dta_column *c, frg_context *ctx, int64_t row,
                                            const readstat_value_t *value);
/** What the column becomes; `first` is the first column that names its set of labels, the
 *  `set`-th.  Numbers stay numbers where a value that occurs has no label, with W_HALF_LABELLED
 *  where others have one, and W_UNLABELLED where the file lacks the set. */
FRG_MUST_USE frg_status frgi_dta_column_finish(frgi_dta_column *c, frg_context *ctx,
                                               const frgi_dta_labels *labels,
                                               const frgi_dta_column *first, int64_t set,
                                               frg_table *t);
void frgi_dta_column_free(frgi_dta_column *c, frg_context *ctx);

FRG_MUST_USE frg_status frgi_dta_labels_put(frgi_dta_labels *l, frg_context *ctx, frgi_dta_key key,
                                            const char *text);
void frgi_dta_labels_free(frgi_dta_labels *l, frg_context *ctx);

#pragma GCC visibility pop
#endif
