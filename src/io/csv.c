/* csv.c - text to typed columns: the main loop over waves, and the kinds of the columns.
 *
 * Each wave: index its blocks; convert every column of every block with the kind the column has so far,
 * straight into the column's array, while the calling thread reads the next wave first; then settle:
 *
 *     missing -> integer -> number      earlier rows are converted in place, the wave's blocks again
 *     missing, integer, number, bool -> category      the wave's blocks again; if earlier waves had
 *                                       values, their text is gone: the column is left out from here on
 *                                       and read in a second pass over the file, as a category
 *
 * The second pass opens the file again; of a pipe, which cannot be, the text is kept.  Memory: the columns
 * (8 bytes a number, 4 a code), two waves and their index; for a pipe the text besides.  Work in parallel
 * regions allocates nothing and touches no context; only the calling thread calls the file table.
 *
 * Everything that a result depends on (kinds, codes, order) is decided between waves in block order, so
 * threads, steps, and short reads change nothing.
 */
#include <omp.h>
#include <string.h>

#include "io/csv.h"

typedef struct {
    char *name;
    bool wanted;  /* asked for */
    bool active;  /* converted in this pass */
    bool pending; /* to be converted in this wave */
    bool fresh;   /* has just been, to codes of the blocks */
    bool again;   /* needs the second pass */
    frgi_cell_kind kind;
    void *values; /* int64_t, double or int32_t by the kind; NULL while all are missing */
    int64_t room; /* rows */
    int64_t n_missing;
    frgi_dictionary dictionary;
} text_column;

/** What converting a column of a block gave. */
typedef struct {
    frgi_cell_kind kind;
    int64_t n_missing;
    int64_t fresh, n_fresh; /* its new strings: from here on in the block's list */
    int64_t broken;         /* row of a cell with text behind its quotes, -1: none */
} converted;

typedef struct {
    frg_context *ctx;
    const frgi_input *input;
    const frg_table_opts *opts;
    const frgi_csv_steps *steps;
    frgi_decimal *decimal;
    frgi_cell_rules rules;
    frgi_waves waves;

    text_column *columns;
    int64_t n_columns;
    int64_t *active; /* numbers of the active columns */
    int64_t n_active;
    int64_t rows, lines; /* before this wave, in this pass */

    converted *parts; /* block b, active column k: at [b * n_active + k] */
    int64_t parts_room;
    frgi_fresh *fresh[FRGI_CSV_BLOCKS];
    int64_t fresh_room[FRGI_CSV_BLOCKS];
    frgi_encode_scratch *scratch; /* one a thread */
    int n_scratch;
    int64_t scratch_cell; /* bytes of each */

    bool keep;  /* the input cannot be opened again */
    bool again; /* this is the second pass */
    frgi_span *kept;
    int64_t n_kept, kept_room;
} text_reader;

/* ---- messages ----------------------------------------------------------------------------------- */

static int64_t count_newlines(const char *s, const char *e)
{
    int64_t n = 0;
    while ((s = memchr(s, '\n', (size_t)(e - s)))) {
        n++;
        s++;
    }
    return n;
}

/** The line, from 1, of a byte of block b. */
static int64_t line_at(const text_reader *t, int b, const char *at)
{
    int64_t line = t->lines + 1;
    for (int i = 0; i < b; i++) {
        line += t->waves.blocks[i].lines;
    }
    return line + count_newlines(t->waves.blocks[b].text, at);
}

static void place(const text_reader *t, int64_t line)
{
    frgi_at(t->ctx, "%s:%lld", t->input->name, (long long)line);
}

static frg_status report_index(const text_reader *t, int b)
{
    const frgi_csv_index *const x = &t->waves.blocks[b];
    const char *row = x->text + x->used;
    if (x->end == INDEX_GARBAGE) {
        place(t, line_at(t, b, x->text + x->at));
        FAIL(t->ctx, E_FORMAT,
             "text follows the closing quote of a cell; quotes in cells are doubled");
    }
    if (x->end == INDEX_RAGGED) {
        place(t, line_at(t, b, row));
        FAIL(t->ctx, E_FORMAT, "the row has %lld cells, the first one has %lld",
             (long long)x->found, (long long)t->n_columns);
    }
    place(t, line_at(t, b, row));
    FAIL(t->ctx, E_FORMAT, "a quote in this row is not closed before the end of the file");
}

static frg_status check_index(const text_reader *t)
{
    const frgi_waves *const w = &t->waves;
    for (int b = 0; b < w->n_blocks; b++) {
        if (w->blocks[b].end != INDEX_DONE) {
            return report_index(t, b);
        }
    }
    return w->now.last && w->used < w->now.length ? report_index(t, w->n_blocks - 1) : FRG_OK;
}

/* ---- the header --------------------------------------------------------------------------------- */

static frg_status check_beginning(const text_reader *t)
{
    const frgi_wave *const wave = &t->waves.now;
    const char *const s = wave->text;
    if (wave->length == 0) {
        place(t, 1);
        FAIL(t->ctx, E_FORMAT, "'%s' is empty", t->input->name);
    }
    if (wave->length >= 2 && (memcmp(s, "\xff\xfe", 2) == 0 || memcmp(s, "\xfe\xff", 2) == 0)) {
        place(t, 1);
        FAIL(t->ctx, E_FORMAT, "'%s' is UTF-16; convert it: iconv -f UTF-16 -t UTF-8",
             t->input->name);
    }
    if (wave->length >= 4 && memcmp(s, "\x28\xb5\x2f\xfd", 4) == 0) {
        place(t, 1);
        FAIL(t->ctx, E_FILE_TYPE,
             "'%s' is compressed by zstd; csv and tsv are read plain or as .gz", t->input->name);
    }
    return FRG_OK;
}

/** Passes over the byte-order mark and blank lines, and reads on until the first row is whole.  Its cells
 *  are then counted. */
static frg_status find_first_row(text_reader *t, int64_t *begin, int64_t *cells)
{
    frgi_waves *const w = &t->waves;
    for (;;) {
        const char *s = w->now.text, *const e = s + w->now.length;
        s += e - s >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        while (s < e && (*s == '\n' || *s == '\r')) {
            s++;
        }
        *begin = s - w->now.text;
        const char *end = s;
        frgi_cell_end how = CELL_UNFINISHED;
        for (*cells = 1; s < e; s = end + 1, ++*cells) {
            how = frgi_cell_find_end(s, e, w->delimiter, &end);
            if (how != CELL_WHOLE || *end == '\n') {
                break;
            }
            how = CELL_UNFINISHED;
        }
        if (how == CELL_WHOLE) {
            w->start = end + 1 - w->now.text;
            return FRG_OK;
        }
        if (how == CELL_GARBAGE || w->now.last) {
            place(t, 1 + count_newlines(w->now.text, w->now.text + *begin));
            FAIL(t->ctx, E_FORMAT, "%s",
                 how == CELL_GARBAGE ? "text follows the closing quote of a cell"
                 : how == CELL_OPEN  ? "a quote is not closed before the end"
                                     : "the file has no rows");
        }
        TRY(frgi_waves_enlarge(w));
    }
}

/** A .txt file is separated by tabs if its first line has one, else by commas. */
static char guess_delimiter(const frgi_wave *wave)
{
    const char *const newline = memchr(wave->text, '\n', (size_t)wave->length);
    const size_t n = newline ? (size_t)(newline - wave->text) : (size_t)wave->length;
    return memchr(wave->text, '\t', n) ? '\t' : ',';
}

/** Names column `column` by the cell [s, e) on the given line. */
static frg_status add_name(text_reader *t, int64_t column, int64_t line, const char *s,
                           const char *e, frgi_dictionary *seen)
{
    frgi_cell_text cell = frgi_cell_unquote(s, e);
    while (cell.s == s && cell.n > 0 && (cell.s[cell.n - 1] == ' ' || cell.s[cell.n - 1] == '\t')) {
        cell.n--;
    }
    while (cell.n > 0 && *s != '"' && (*cell.s == ' ' || *cell.s == '\t')) {
        cell.s++;
        cell.n--;
    }
    char *name;
    TRY(frgi_strdup(t->ctx, &name, cell.s, (size_t)cell.n));
    t->columns[column].name = name;
    const int64_t n = frgi_cell_copy(&cell, name);
    name[n] = '\0';
    if (n == 0) {
        place(t, line);
        FAIL(t->ctx, E_FORMAT,
             "column %lld has no name in the first line (row numbers of R or "
             "pandas? write the file without them)",
             (long long)column + 1);
    }
    if (!frgi_is_utf8(name, n)) {
        place(t, line);
        FAIL(t->ctx, E_FORMAT,
             "the name of column %lld is not UTF-8; convert the file: "
             "iconv -f LATIN1 -t UTF-8",
             (long long)column + 1);
    }
    TRY(frgi_dictionary_reserve(seen, t->ctx, 1, n));
    const int32_t first = frgi_dictionary_put(seen, name, n, frgi_hash(name, n));
    if (first != column) {
        place(t, line);
        FAIL(t->ctx, E_FORMAT, "columns %d and %lld are both named '%s'", first + 1,
             (long long)column + 1, name);
    }
    return FRG_OK;
}

static frg_status name_columns(text_reader *t, int64_t begin, frgi_dictionary *seen)
{
    const frgi_waves *const w = &t->waves;
    const char *s = w->now.text + begin, *const e = w->now.text + w->start, *end;
    const int64_t line = 1 + count_newlines(w->now.text, s);
    for (int64_t i = 0; i < t->n_columns; i++, s = end + 1) {
        if (!t->opts->header) {
            frgi_text name = {0};
            TRY(frgi_text_printf(t->ctx, &name, "c%lld", (long long)i + 1));
            t->columns[i].name = name.text;
            continue;
        }
        (void)frgi_cell_find_end(s, e, w->delimiter, &end); /* found before */
        TRY(add_name(t, i, line, s, end - (*end == '\n' && end > s && end[-1] == '\r'), seen));
    }
    return FRG_OK;
}

static frg_status choose_columns(text_reader *t)
{
    const char **names;
    TRY(NEW(t->ctx, &names, t->n_columns, "column names"));
    for (int64_t i = 0; i < t->n_columns; i++) {
        names[i] = t->columns[i].name;
        t->columns[i].wanted = frgi_column_is_wanted(t->opts, names[i]);
        t->columns[i].active = t->columns[i].wanted;
    }
    const frg_status status =
        frgi_columns_exist(t->ctx, t->opts, t->input->name, names, t->n_columns);
    DROP(t->ctx, &names);
    return status;
}

/** Sets waves.start behind the header; in the first pass makes the columns. */
static frg_status read_header(text_reader *t)
{
    TRY(check_beginning(t));
    if (!t->waves.delimiter) {
        t->waves.delimiter = guess_delimiter(&t->waves.now);
    }
    int64_t begin, cells;
    TRY(find_first_row(t, &begin, &cells));
    t->waves.n_columns = cells;
    if (!t->columns) {
        TRY(NEW0(t->ctx, &t->columns, cells, "columns"));
        t->n_columns = cells;
        TRY(NEW(t->ctx, &t->active, cells, "columns"));
        frgi_dictionary seen = {0};
        const frg_status status = name_columns(t, begin, &seen);
        frgi_dictionary_free(&seen, t->ctx);
        TRY(status);
        TRY(choose_columns(t));
    }
    if (cells != t->n_columns) {
        FAIL(t->ctx, E_READ, "'%s' was changed while it was read", t->input->name);
    }
    if (!t->opts->header) {
        t->waves.start = begin;
    }
    t->lines = count_newlines(t->waves.now.text, t->waves.now.text + t->waves.start);
    return FRG_OK;
}

/* ---- memory between waves ----------------------------------------------------------------------- */

static size_t value_bytes(frgi_cell_kind kind)
{
    return kind == CELL_INTEGER || kind == CELL_NUMBER ? 8 : 4;
}

/** Rows that the whole input will have at the rate of what was read, with 2 % to spare; for a pipe, half
 *  as many again. */
static int64_t expected_rows(const text_reader *t, int64_t rows)
{
    const int64_t total = frgi_source_total(t->waves.source);
    const int64_t consumed = frgi_source_consumed(t->waves.source);
    if (t->waves.now.last) {
        return rows;
    }
    if (total <= 0 || consumed <= 0) {
        return rows + rows / 2;
    }
    const double all = (double)rows * (double)total / (double)consumed;
    return all < 1e15 && all * 1.02 > (double)rows ? (int64_t)(all * 1.02) + 1024 : rows + rows / 4;
}

static frg_status reserve_rows(text_reader *t, text_column *c, int64_t rows)
{
    if (rows <= c->room && c->values) {
        return FRG_OK;
    }
    const int64_t room = expected_rows(t, rows);
    TRY(frgi_resize(t->ctx, &c->values, frgi_mul((size_t)room, value_bytes(c->kind)), c->name));
    c->room = room;
    return FRG_OK;
}

static frg_status reserve_fresh(text_reader *t)
{
    int64_t n_text = 0;
    for (int64_t k = 0; k < t->n_active; k++) {
        const text_column *const c = &t->columns[t->active[k]];
        n_text += c->pending && c->kind == CELL_TEXT;
    }
    int64_t most_rows = 0, longest = 0;
    for (int b = 0; b < t->waves.n_blocks; b++) {
        const frgi_csv_index *const x = &t->waves.blocks[b];
        const int64_t need = x->rows * n_text;
        if (t->fresh_room[b] < need) {
            DROP(t->ctx, &t->fresh[b]);
            t->fresh_room[b] = 0;
            TRY(NEW(t->ctx, &t->fresh[b], need, "new strings of a block"));
            t->fresh_room[b] = need;
        }
        most_rows = x->rows > most_rows ? x->rows : most_rows;
        longest = x->count > longest ? x->count : longest;
    }
    int64_t slots = 64;
    while (slots < 2 * most_rows) {
        slots *= 2;
    }
    for (int i = 0; n_text > 0 && i < t->n_scratch; i++) {
        frgi_encode_scratch *const s = &t->scratch[i];
        if (s->n_slots < slots) {
            DROP(t->ctx, &s->slots);
            s->n_slots = 0;
            TRY(NEW0(t->ctx, &s->slots, slots, "new strings of a block"));
            s->n_slots = slots;
        }
        if (t->waves.n_quotes > 0 && (!s->cell || t->scratch_cell < longest)) {
            DROP(t->ctx, &s->cell);
            TRY(NEW(t->ctx, &s->cell, longest, "a cell"));
        }
    }
    if (n_text > 0 && t->waves.n_quotes > 0 && t->scratch_cell < longest) {
        t->scratch_cell = longest;
    }
    return FRG_OK;
}

/** Room for what the parallel part writes: nothing is allocated there. */
static frg_status reserve(text_reader *t)
{
    for (int64_t k = 0; k < t->n_active; k++) {
        text_column *const c = &t->columns[t->active[k]];
        if (c->pending && c->kind != CELL_MISSING) {
            TRY(reserve_rows(t, c, t->rows + t->waves.rows));
        }
    }
    const int64_t parts = t->waves.n_blocks * t->n_active;
    if (t->parts_room < parts) {
        DROP(t->ctx, &t->parts);
        t->parts_room = 0;
        TRY(NEW(t->ctx, &t->parts, parts, "counts of the blocks"));
        t->parts_room = parts;
    }
    return reserve_fresh(t);
}

/* ---- conversion --------------------------------------------------------------------------------- */

/** Converts the pending columns of block b, whose first row is `row` of the table. */
static void convert_block(text_reader *t, int b, int64_t row, frgi_encode_scratch *scratch)
{
    const frgi_csv_kernels *const kernels = t->waves.kernels;
    int64_t n_fresh = 0;
    for (int64_t k = 0; k < t->n_active; k++) {
        const text_column *const c = &t->columns[t->active[k]];
        if (!c->pending) {
            continue;
        }
        converted *const part = &t->parts[b * t->n_active + k];
        *part = (converted){.kind = c->kind, .fresh = n_fresh, .broken = -1};
        const frgi_cells cells = {.index = &t->waves.blocks[b],
                                  .n_columns = t->n_columns,
                                  .column = t->active[k],
                                  .rules = &t->rules};
        int64_t *const missing = &part->n_missing;
        switch (c->kind) {
        case CELL_MISSING:
            part->kind = frgi_cells_missing(&cells, missing);
            break;
        case CELL_INTEGER:
            part->kind = kernels->integers(&cells, (int64_t *)c->values + row, missing);
            break;
        case CELL_NUMBER:
            part->kind = kernels->numbers(&cells, (double *)c->values + row, missing);
            break;
        case CELL_BOOL:
            part->kind = frgi_cells_bools(&cells, (int32_t *)c->values + row, missing);
            break;
        case CELL_TEXT:
            part->n_fresh =
                frgi_cells_encode(&cells, &c->dictionary, (int32_t *)c->values + row,
                                  t->fresh[b] + n_fresh, scratch, missing, &part->broken);
            n_fresh += part->n_fresh > 0 ? part->n_fresh : 0;
            break;
        }
    }
}

/** All blocks; with `read`, the calling thread reads the next wave before it takes part. */
static frg_status convert_wave(text_reader *t, bool read)
{
    frg_status status = FRG_OK;
    frgi_waves *const w = &t->waves;
    int64_t row[FRGI_CSV_BLOCKS] = {t->rows};
    for (int b = 1; b < w->n_blocks; b++) {
        row[b] = row[b - 1] + w->blocks[b - 1].rows;
    }
#pragma omp parallel num_threads(t->n_scratch) if (w->n_blocks > 1)
    {
        const int thread = omp_get_thread_num();
        if (thread == 0 && read) {
            status = frgi_waves_read(w);
        }
#pragma omp for schedule(dynamic, 1)
        for (int b = 0; b < w->n_blocks; b++) {
            convert_block(t, b, row[b], &t->scratch[thread]);
        }
    }
    return status;
}

/* ---- kinds -------------------------------------------------------------------------------------- */

static void fill_missing(text_column *c, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        switch (c->kind) {
        case CELL_INTEGER:
            ((int64_t *)c->values)[i] = FRG_MISSING_INTEGER;
            break;
        case CELL_NUMBER:
            ((double *)c->values)[i] = __builtin_nan("");
            break;
        default:
            ((int32_t *)c->values)[i] = FRG_MISSING_CODE;
            break;
        }
    }
}

/** Gives the column a more general kind; its rows of earlier waves follow, those of this wave do not. */
static frg_status promote(text_reader *t, text_column *c, frgi_cell_kind kind)
{
    if (c->kind == CELL_INTEGER && kind == CELL_NUMBER) {
        for (int64_t i = 0; i < t->rows;
             i++) { /* in place, both have 8 bytes; the rounding is exact */
            int64_t x;
            memcpy(&x, (int64_t *)c->values + i, sizeof x);
            const double y = x == FRG_MISSING_INTEGER ? __builtin_nan("") : (double)x;
            memcpy((double *)c->values + i, &y, sizeof y);
        }
        c->kind = kind;
        return FRG_OK;
    }
    if (c->n_missing == t->rows) {
        DROP(t->ctx, &c->values);
        c->room = 0;
        c->kind = kind;
        TRY(reserve_rows(t, c, t->rows + t->waves.rows));
        fill_missing(c, t->rows);
        return FRG_OK;
    }
    DROP(t->ctx, &c->values);
    c->again = true;
    c->active = c->pending = false;
    return FRG_OK;
}

/** A column's kind over all blocks; counts its missing values once it is final. */
static frg_status settle(text_reader *t, int64_t k)
{
    text_column *const c = &t->columns[t->active[k]];
    frgi_cell_kind kind = c->kind;
    int64_t missing = 0;
    for (int b = 0; b < t->waves.n_blocks; b++) {
        const converted *const part = &t->parts[b * t->n_active + k];
        kind = frgi_cell_join(kind, part->kind);
        missing += part->n_missing;
        if (part->broken >= 0) {
            const frgi_csv_index *const x = &t->waves.blocks[b];
            place(t, line_at(t, b, x->text + x->ends[part->broken * t->n_columns + t->active[k]]));
            FAIL(t->ctx, E_FORMAT, "text follows the closing quote of a cell of column '%s'",
                 c->name);
        }
    }
    if (kind != c->kind) {
        return promote(t, c, kind);
    }
    c->pending = false;
    c->fresh = c->kind == CELL_TEXT;
    c->n_missing += missing;
    return FRG_OK;
}

/** A good guess at the kinds before the first wave saves converting it twice. */
static void guess_kinds(text_reader *t)
{
    for (int64_t k = 0; k < t->n_active && t->waves.n_blocks > 0; k++) {
        text_column *const c = &t->columns[t->active[k]];
        frgi_csv_index first = t->waves.blocks[0];
        first.rows = first.rows < 100 ? first.rows : 100;
        const frgi_cells cells = {
            .index = &first, .n_columns = t->n_columns, .column = t->active[k], .rules = &t->rules};
        int64_t missing;
        c->kind = frgi_cell_join(c->kind, frgi_cells_missing(&cells, &missing));
    }
}

/* ---- strings ------------------------------------------------------------------------------------ */

static frg_status put_fresh(text_reader *t, text_column *c, int b, frgi_fresh *f)
{
    frgi_cell_text cell = {
        .s = t->waves.blocks[b].text + f->start, .n = f->count, .doubled = f->doubled};
    const char *s = cell.s;
    int64_t n = cell.n;
    if (cell.doubled) {
        n = frgi_cell_copy(&cell, t->scratch[0].cell);
        s = t->scratch[0].cell;
    }
    const int64_t before = c->dictionary.count;
    const int32_t code = frgi_dictionary_put(&c->dictionary, s, n, f->hash);
    f->hash = (uint64_t)code;
    if (c->dictionary.count > before && !frgi_is_utf8(s, n)) {
        place(t, line_at(t, b, cell.s));
        FAIL(t->ctx, E_FORMAT,
             memchr(s, '\0', (size_t)n)
                 ? "a cell of column '%s' holds a NUL byte; is this a text file?"
                 : "a cell of column '%s' is not UTF-8; convert the file: "
                   "iconv -f LATIN1 -t UTF-8",
             c->name);
    }
    return FRG_OK;
}

/** Puts the new strings of all blocks into the dictionary of active column k, in file order. */
static frg_status merge_strings(text_reader *t, int64_t k, bool *any)
{
    text_column *const c = &t->columns[t->active[k]];
    int64_t count = 0, bytes = 0;
    for (int b = 0; b < t->waves.n_blocks; b++) {
        const converted *const part = &t->parts[b * t->n_active + k];
        count += part->n_fresh;
        for (int64_t i = 0; i < part->n_fresh; i++) {
            bytes += t->fresh[b][part->fresh + i].count;
        }
    }
    if (count == 0) {
        return FRG_OK;
    }
    *any = true;
    TRY(frgi_dictionary_reserve(&c->dictionary, t->ctx, count, bytes));
    for (int b = 0; b < t->waves.n_blocks; b++) {
        const converted *const part = &t->parts[b * t->n_active + k];
        for (int64_t i = 0; i < part->n_fresh; i++) {
            TRY(put_fresh(t, c, b, &t->fresh[b][part->fresh + i]));
        }
    }
    return FRG_OK;
}

/** Replaces the codes of the blocks by the dictionary's. */
static void recode_block(text_reader *t, int b, int64_t row)
{
    for (int64_t k = 0; k < t->n_active; k++) {
        const text_column *const c = &t->columns[t->active[k]];
        const converted *const part = &t->parts[b * t->n_active + k];
        if (c->fresh && part->n_fresh > 0) {
            const frgi_fresh *const fresh = t->fresh[b] + part->fresh;
            int32_t *const codes = (int32_t *)c->values + row;
            for (int64_t r = 0; r < t->waves.blocks[b].rows; r++) {
                codes[r] = codes[r] <= -2 ? (int32_t)fresh[-2 - codes[r]].hash : codes[r];
            }
        }
    }
}

static frg_status encode(text_reader *t)
{
    bool any = false;
    for (int64_t k = 0; k < t->n_active; k++) {
        if (t->columns[t->active[k]].fresh) {
            TRY(merge_strings(t, k, &any));
        }
    }
    int64_t row[FRGI_CSV_BLOCKS] = {t->rows};
    for (int b = 1; b < t->waves.n_blocks; b++) {
        row[b] = row[b - 1] + t->waves.blocks[b - 1].rows;
    }
#pragma omp parallel for schedule(dynamic, 1)                                                      \
    num_threads(t->n_scratch) if (any && t->waves.n_blocks > 1)
    for (int b = 0; b < t->waves.n_blocks; b++) {
        recode_block(t, b, row[b]);
    }
    for (int64_t k = 0; k < t->n_active; k++) {
        t->columns[t->active[k]].fresh = false;
    }
    return FRG_OK;
}

static frg_status convert(text_reader *t)
{
    for (int64_t k = 0; k < t->n_active; k++) {
        t->columns[t->active[k]].pending = true;
    }
    if (t->rows == 0) {
        guess_kinds(t);
    }
    bool pending = true;
    for (bool first = true; pending; first = false) {
        TRY(reserve(t));
        TRY(convert_wave(t, first));
        pending = false;
        for (int64_t k = 0; k < t->n_active; k++) {
            if (t->columns[t->active[k]].pending) {
                TRY(settle(t, k));
            }
            pending |= t->columns[t->active[k]].pending;
        }
        TRY(encode(t)); /* the next round writes over the blocks' strings */
    }
    return FRG_OK;
}

/* ---- passes ------------------------------------------------------------------------------------- */

static void list_active(text_reader *t)
{
    t->n_active = 0;
    for (int64_t i = 0; i < t->n_columns; i++) {
        if (t->columns[i].active) {
            t->active[t->n_active++] = i;
        }
    }
}

/** Copies the text of the wave that the second pass of a pipe would need. */
static frg_status keep_text(text_reader *t, int64_t from)
{
    if (!t->keep || t->again) {
        return FRG_OK;
    }
    if (t->n_kept == t->kept_room) {
        const int64_t room = t->kept_room ? 2 * t->kept_room : 16;
        TRY(GROW(t->ctx, &t->kept, room, "text of a pipe"));
        t->kept_room = room;
    }
    const int64_t count = t->waves.used - from;
    char *copy;
    TRY(NEW(t->ctx, &copy, count, "text of a pipe"));
    memcpy(copy, t->waves.now.text + from, (size_t)count);
    t->kept[t->n_kept++] = (frgi_span){copy, count};
    return FRG_OK;
}

static frg_status report_progress(const text_reader *t)
{
    const frg_progress p = {
        .solver = "table",
        .phase = "read",
        .done = frgi_source_consumed(t->waves.source),
        .total = frgi_source_total(t->waves.source) > 0 ? frgi_source_total(t->waves.source) : 0,
        .residual = __builtin_nan(""),
        .target = __builtin_nan("")};
    return frgi_heartbeat(t->ctx, &p);
}

/** One reading of the whole text into the active columns; FRG_INTERRUPTED, FRG_TIME_LIMIT pass through. */
static frg_status read_waves(text_reader *t)
{
    TRY(read_header(t));
    for (int64_t from = 0;; from = 0) {
        const frg_status beat = report_progress(t);
        if (beat != FRG_OK) {
            return beat;
        }
        TRY(frgi_waves_index(&t->waves));
        TRY(check_index(t));
        list_active(t);
        TRY(frgi_waves_prepare(&t->waves));
        TRY(convert(t));
        TRY(keep_text(t, from));
        t->rows += t->waves.rows;
        for (int b = 0; b < t->waves.n_blocks; b++) {
            t->lines += t->waves.blocks[b].lines;
        }
        if (t->waves.now.last) {
            return FRG_OK;
        }
        frgi_waves_swap(&t->waves);
    }
}

static frg_status read_pass(text_reader *t, frgi_source *source)
{
    t->rows = t->lines = 0;
    frg_status status = frgi_waves_open(&t->waves, t->ctx, source, t->steps);
    t->waves.delimiter = t->opts->delimiter;
    if (status == FRG_OK) {
        status = read_waves(t);
    }
    frgi_waves_close(&t->waves);
    return status;
}

/** Reads the columns that became categories too late, from the beginning. */
static frg_status read_again(text_reader *t)
{
    bool any = false;
    for (int64_t i = 0; i < t->n_columns; i++) {
        text_column *const c = &t->columns[i];
        any |= c->again;
        c->active = c->again;
        if (c->again) {
            c->kind = CELL_TEXT;
            c->room = c->n_missing = 0;
        }
    }
    if (!any) {
        return FRG_OK;
    }
    t->again = true;
    const frgi_input kept = {.name = t->input->name, .spans = t->kept, .n_spans = t->n_kept};
    const int64_t rows = t->rows;
    frgi_source *source;
    TRY(frgi_source_open(&source, t->ctx, t->keep ? &kept : t->input, true));
    const frg_status status = read_pass(t, source);
    frgi_source_close(&source);
    if (status == FRG_OK && t->rows != rows) {
        frgi_at(t->ctx, "%s", t->input->name);
        FAIL(t->ctx, E_READ, "'%s' was changed while it was read", t->input->name);
    }
    return status;
}

/* ---- the table ---------------------------------------------------------------------------------- */

/** The dictionary becomes labels: its text goes to *m, the rest is freed. */
static frg_status make_labels(frg_context *ctx, frgi_dictionary *d, frgi_column_memory *m)
{
    if (d->text_room > d->used + d->used / 4) {
        TRY(GROW(ctx, &d->text, d->used, "labels of a column"));
        d->text_room = d->used;
    }
    DROP(ctx, &d->slots);
    TRY(NEW(ctx, &m->labels, d->count, "labels of a column"));
    for (int64_t i = 0; i < d->count; i++) {
        m->labels[i] = d->text + d->starts[i];
    }
    m->label_text = d->text;
    d->text = NULL;
    return FRG_OK;
}

static frg_status make_column(text_reader *t, text_column *c, frg_table *table)
{
    static const frg_column_kind kinds[] = {[CELL_MISSING] = FRG_NUMBER,
                                            [CELL_INTEGER] = FRG_INTEGER,
                                            [CELL_NUMBER] = FRG_NUMBER,
                                            [CELL_BOOL] = FRG_BOOL,
                                            [CELL_TEXT] = FRG_CATEGORY};
    const frg_column_kind kind = kinds[c->kind];
    const bool empty = c->kind == CELL_MISSING;
    c->kind = empty ? CELL_NUMBER : c->kind;
    if (!c->values || c->room > t->rows + t->rows / 8 + 1024) {
        const size_t bytes = frgi_mul((size_t)t->rows, value_bytes(c->kind));
        TRY(frgi_resize(t->ctx, &c->values, bytes, c->name));
    }
    if (empty) {
        fill_missing(c, t->rows);
        c->n_missing = t->rows;
    }
    const int64_t n_labels = c->dictionary.count;
    frgi_column_memory memory = {.name = c->name, .values = c->values};
    c->name = NULL;
    c->values = NULL;
    frg_status status =
        kind == FRG_CATEGORY ? make_labels(t->ctx, &c->dictionary, &memory) : FRG_OK;
    if (status == FRG_OK) {
        status = frgi_table_adopt(table, memory, kind, c->n_missing, n_labels);
    }
    if (status < 0) {
        frgi_column_memory_free(t->ctx, &memory);
    }
    frgi_dictionary_free(&c->dictionary, t->ctx);
    return status;
}

static frg_status make_table(text_reader *t, frg_table **out)
{
    frg_table *table;
    TRY(frg_table_create(&table, t->ctx, t->rows));
    for (int64_t i = 0; i < t->n_columns; i++) {
        const frg_status status =
            t->columns[i].wanted ? make_column(t, &t->columns[i], table) : FRG_OK;
        if (status < 0) {
            frg_table_destroy(table);
            return status;
        }
    }
    *out = table;
    return FRG_OK;
}

static void close_reader(text_reader *t)
{
    for (int64_t i = 0; i < t->n_columns; i++) {
        DROP(t->ctx, &t->columns[i].name);
        DROP(t->ctx, &t->columns[i].values);
        frgi_dictionary_free(&t->columns[i].dictionary, t->ctx);
    }
    DROP(t->ctx, &t->columns);
    DROP(t->ctx, &t->active);
    DROP(t->ctx, &t->parts);
    for (int b = 0; b < FRGI_CSV_BLOCKS; b++) {
        DROP(t->ctx, &t->fresh[b]);
    }
    for (int i = 0; t->scratch && i < t->n_scratch; i++) {
        DROP(t->ctx, &t->scratch[i].slots);
        DROP(t->ctx, &t->scratch[i].cell);
    }
    DROP(t->ctx, &t->scratch);
    for (int64_t i = 0; i < t->n_kept; i++) {
        void *text = (void *)(uintptr_t)t->kept[i].bytes;
        frgi_free(t->ctx, &text);
    }
    DROP(t->ctx, &t->kept);
    frgi_decimal_close(&t->decimal, t->ctx);
}

frg_status frgi_csv_read(frg_table **out, frg_context *ctx, const frgi_input *input,
                         frgi_source *source, const frg_table_opts *o, const frgi_csv_steps *steps)
{
    *out = NULL;
    text_reader t = {.ctx = ctx, .input = input, .opts = o, .steps = steps};
    t.keep = input->path && (frgi_source_total(source) < 0 || strcmp(input->path, "-") == 0);
    t.n_scratch = frg_threads(ctx);
    frg_status status;
    TRY_TO(done, NEW0(ctx, &t.scratch, t.n_scratch, "scratch of the threads"));
    TRY_TO(done, frgi_decimal_open(&t.decimal, ctx));
    frgi_cell_rules_make(&t.rules, t.decimal, o);
    TRY_TO(done, read_pass(&t, source));
    if (status == FRG_OK) {
        TRY_TO(done, read_again(&t));
    }
    if (status == FRG_OK) {
        status = make_table(&t, out);
    }
done:
    close_reader(&t);
    return status;
}
