/* csv.h - the parts of the text reader, which csv.c puts together.
 *
 *     segment     the bytes in memory at a time, cut into blocks that begin at a row and end at one
 *     index    where each cell of a block ends: rows x columns positions
 *     cells    one column of one block by its index
 *     kernels  what runs over every byte, compiled once per CPU level
 */
#ifndef FRGI_CSV_H
#define FRGI_CSV_H

#include "io/decimal.h"
#include "io/io.h"

#pragma GCC visibility push(hidden)

/** Readable bytes before and after the text of a segment: kernels load 64 at a time. */
enum { FRGI_CSV_MARGIN = 64 };

/* ---- the meaning of one cell ----------------------------------------------------------------- */

/** In the order of generality that frgi_cell_join follows. */
typedef enum { CELL_MISSING, CELL_INTEGER, CELL_NUMBER, CELL_BOOL, CELL_TEXT } frgi_cell_kind;

/** The kind of a column that holds cells of both kinds. */
frgi_cell_kind frgi_cell_join(frgi_cell_kind a, frgi_cell_kind b);

/** What cells mean: the strings that are missing values, and the decimal table. */
typedef struct {
    const char *const *na;
    int64_t n_na;
    bool na_begins[256]; /* first bytes of these strings */
    bool na_empty;       /* "" is one */
    bool na_numeric;     /* one reads as a number, so that no cell may skip the list */
    const frgi_decimal *decimal;
} frgi_cell_rules;
void frgi_cell_rules_make(frgi_cell_rules *r, const frgi_decimal *decimal, const frg_table_opts *o);

/** The text of a cell between its quotes; `doubled` if quotes in it are written twice. */
typedef struct {
    const char *s;
    int64_t n;
    bool doubled;
    bool broken; /* begins with a quote and does not end with one */
} frgi_cell_text;
frgi_cell_text frgi_cell_unquote(const char *s, const char *e);
/** Copies with doubled quotes made single; `to` has room for n bytes.  Returns the length. */
int64_t frgi_cell_copy(const frgi_cell_text *t, char *to);

bool frgi_cell_is_missing(const frgi_cell_rules *r, const char *s, int64_t n);
/** Reads one raw cell.  INTEGER sets both values, NUMBER *number (NaN is a missing value), BOOL
 *  *integer. */
frgi_cell_kind frgi_cell_read(const frgi_cell_rules *r, const char *s, const char *e,
                              int64_t *integer, double *number);

/* ---- the index of a block -------------------------------------------------------------------- */

typedef enum {
    INDEX_DONE,
    INDEX_FULL,      /* `ends` is too short */
    INDEX_RAGGED,    /* the row at `at` has `found` cells */
    INDEX_IRREGULAR, /* a quote inside an unquoted cell, or text behind a closing quote */
    INDEX_GARBAGE    /* text behind the closing quote before `at` */
} frgi_index_end;

/** Text of whole rows (the last block of a segment may end within one) and the ends of its
 *  cells. */
typedef struct {
    const char *text;
    int64_t count; /* bytes */
    uint32_t *
        ends; /* ends[row * n_columns + column]: the delimiter or newline; ends[-1] is UINT32_MAX */
    int64_t capacity; /* of ends, from 0 on */

    frgi_index_end end;
    int64_t rows;
    int64_t used;  /* bytes of the whole rows */
    int64_t lines; /* newlines in these, quoted ones too */
    int64_t at, found;
    bool open; /* the text ends inside quotes */
} frgi_csv_index;

/** The same index by the grammar alone, cell after cell: for files with quotes in unquoted
 *  cells. */
void frgi_csv_index_slow(frgi_csv_index *x, char delimiter, int64_t n_columns);

typedef enum { CELL_WHOLE, CELL_UNFINISHED, CELL_OPEN, CELL_GARBAGE } frgi_cell_end;
/** Where the cell at s ends: its delimiter or newline in [s, e).  UNFINISHED, OPEN (inside quotes):
 *  e comes first; GARBAGE: *end is the byte behind a closing quote. */
frgi_cell_end frgi_cell_find_end(const char *s, const char *e, char delimiter, const char **end);

/* ---- the columns of a block ------------------------------------------------------------------ */

typedef struct {
    const frgi_csv_index *index;
    int64_t n_columns, column;
    const frgi_cell_rules *rules;
} frgi_cells;

/** Raw cell of row r: quotes included, the CR of a CRLF not.  Blank lines, which have no index,
 *  stand before the first cell of the row that follows them. */
static inline void frgi_cell_at(const frgi_cells *c, ptrdiff_t r, const char **s, const char **e)
{
    const uint32_t *const end = c->index->ends + r * c->n_columns + c->column;
    *s = c->index->text + (uint32_t)(end[-1] + 1);
    *e = c->index->text + end[0];
    if (c->column == 0) {
        while (*s < *e && (**s == '\n' || **s == '\r')) {
            ++*s;
        }
    }
    if (c->column == c->n_columns - 1 && *s < *e && (*e)[-1] == '\r') {
        --*e;
    }
}

typedef struct {
    /** Quotes in `count` bytes. */
    int64_t (*count_quotes)(const char *text, int64_t count);
    void (*index)(frgi_csv_index *x, char delimiter, int64_t n_columns);
    /** Convert a column; return its kind, or, where a cell does not fit, a kind that it needs. */
    frgi_cell_kind (*integers)(const frgi_cells *c, int64_t *out, int64_t *n_missing);
    frgi_cell_kind (*numbers)(const frgi_cells *c, double *out, int64_t *n_missing);
} frgi_csv_kernels;
const frgi_csv_kernels *frgi_csv_kernels_for(const frg_context *ctx);

/* ---- segments -------------------------------------------------------------------------------- */

enum { FRGI_CSV_BLOCKS = 16 }; /* of a segment, at most */

typedef struct {
    char *memory, *text; /* text = memory + margin */
    int64_t capacity, length;
    bool last;  /* the end of the file is in it; its last line ends in a newline */
    int n_cuts; /* 0: not cut yet */
    int64_t cut[FRGI_CSV_BLOCKS + 1]; /* where the blocks begin and end */
    int64_t n_quotes;
} frgi_segment;

/** The text in memory: the segment whose rows are being parsed and the one that is read
 *  meanwhile. */
typedef struct {
    frg_context *ctx;
    frgi_source *source;
    const frgi_csv_kernels *kernels;
    frgi_csv_steps steps;
    char delimiter;
    int64_t n_columns;
    bool by_grammar; /* quotes stand in unquoted cells: counting them does not do */

    frgi_segment now, next;
    int64_t start; /* of the rows in now.text: behind the header, then 0 */
    int64_t used;  /* the end of the whole rows in now.text */
    int64_t rows;
    int n_blocks;
    frgi_csv_index blocks[FRGI_CSV_BLOCKS];
    uint32_t
        *ends[FRGI_CSV_BLOCKS]; /* memory of the blocks' indexes: one before, then ends_capacity */
    int64_t ends_capacity[FRGI_CSV_BLOCKS];
} frgi_segments;

/** Opens on a source, which it does not own, and fills the first segment. */
FRG_MUST_USE frg_status frgi_segments_open(frgi_segments *w, frg_context *ctx, frgi_source *source,
                                           const frgi_csv_steps *steps);
void frgi_segments_close(frgi_segments *w);
/** Makes `now` larger and reads on, for a row that does not fit. */
FRG_MUST_USE frg_status frgi_segments_enlarge(frgi_segments *w);
/** Cuts [start, length) into blocks and indexes them; at least one row unless `now` is the last
 *  segment. */
FRG_MUST_USE frg_status frgi_segments_index(frgi_segments *w);
/** Gives `next` memory and the rest of `now` behind `used`; then reading into it needs no
 *  memory. */
FRG_MUST_USE frg_status frgi_segments_prepare(frgi_segments *w);
/** Reads the next segment and cuts it, while other threads work on `now`. */
FRG_MUST_USE frg_status frgi_segments_read(frgi_segments *w);
void frgi_segments_swap(frgi_segments *w);

/* ---- dictionaries ---------------------------------------------------------------------------- */

/** Strings numbered in the order in which they were put in. */
typedef struct {
    char *text; /* one after another, each ended by NUL */
    int64_t used, text_capacity;
    int64_t *starts; /* of each in text */
    int64_t count, starts_capacity;
    struct frgi_slot *slots; /* open addressing, a power of two of them, at most half full */
    int64_t n_slots;
} frgi_dictionary;

uint64_t frgi_hash(const char *s, int64_t n);
/** The number of the string, or -1. */
int32_t frgi_dictionary_find(const frgi_dictionary *d, const char *s, int64_t n, uint64_t hash);
/** Room for `count` more strings of `bytes` bytes in all. */
FRG_MUST_USE frg_status frgi_dictionary_reserve(frgi_dictionary *d, frg_context *ctx, int64_t count,
                                                int64_t bytes);
/** The number of the string, which is put in if it is not there; memory must have been reserved. */
int32_t frgi_dictionary_put(frgi_dictionary *d, const char *s, int64_t n, uint64_t hash);
void frgi_dictionary_free(frgi_dictionary *d, frg_context *ctx);

/** A string of a block that the dictionary did not have, in order of first appearance. */
typedef struct {
    uint64_t hash;         /* of its text; later its number in the dictionary */
    uint32_t start, count; /* raw, in the block's text, between the quotes */
    bool doubled;
} frgi_fresh;

/** Scratch of one thread: slots (all zero between calls) and room for the longest cell. */
typedef struct {
    uint32_t *slots; /* n_slots, a power of two >= twice the rows of a block */
    int64_t n_slots;
    char *cell;
} frgi_encode_scratch;

/** Codes of a column: the dictionary's number, -1 missing, -2 - k for fresh[k].  Returns the number
 *  of fresh strings (fresh has room for one a row), or -1 where a quoted cell is broken (row in
 *  *broken). */
int64_t frgi_cells_encode(const frgi_cells *c, const frgi_dictionary *d, int32_t *out,
                          frgi_fresh *fresh, frgi_encode_scratch *scratch, int64_t *n_missing,
                          int64_t *broken);
/** TRUE, FALSE columns; as the kernels. */
frgi_cell_kind frgi_cells_bools(const frgi_cells *c, int32_t *out, int64_t *n_missing);
/** Are all cells missing?  MISSING, or the kind of the first that is not. */
frgi_cell_kind frgi_cells_missing(const frgi_cells *c, int64_t *n_missing);

#pragma GCC visibility pop
#endif
