/* csv_columns.c - the columns of a segment: their memory, values, kinds and codes.
 *
 *     reserve      all memory that the blocks of the segment will write to
 *     convert      every column of every block with the kind the column has so far, in parallel
 *     decide_kind  the kind over all blocks; where it is more general than it was:
 *         missing -> integer -> number    earlier rows in place, the blocks of the segment again
 *         anything else -> category       the blocks again; if earlier segments had values, their
 *                                         text is gone, and the column waits for the second pass
 *     encode       the blocks' new strings into the dictionaries, in file order
 *
 * Kinds, codes and counts are decided between the parallel parts, in block order.
 */
#include <omp.h>
#include <string.h>

#include "io/csv_reader.h"

/* ---- memory between segments ----------------------------------------------------------------- */

size_t frgi_csv_value_bytes(frgi_cell_kind kind)
{
    return kind == CELL_INTEGER || kind == CELL_NUMBER ? 8 : 4;
}

/** Rows that the whole input will have at the rate of what was read, with 2 % to spare; for a pipe,
 *  half as many again. */
static int64_t expected_rows(const frgi_csv_reader *t, int64_t rows)
{
    const int64_t total = frgi_source_total(t->segments.source);
    const int64_t consumed = frgi_source_consumed(t->segments.source);
    if (t->segments.now.last) {
        return rows;
    }
    if (total <= 0 || consumed <= 0) {
        return rows + rows / 2;
    }
    const double all = (double)rows * (double)total / (double)consumed;
    return all < 1e15 && all * 1.02 > (double)rows ? (int64_t)(all * 1.02) + 1024 : rows + rows / 4;
}

static frg_status reserve_rows(frgi_csv_reader *t, frgi_csv_column *c, int64_t rows)
{
    if (rows <= c->capacity && c->values) {
        return FRG_OK;
    }
    const int64_t capacity = expected_rows(t, rows);
    const size_t bytes = frgi_mul((size_t)capacity, frgi_csv_value_bytes(c->kind));
    TRY(frgi_source_bounded(t->segments.source, bytes));
    TRY(frgi_resize(t->ctx, &c->values, bytes, c->name));
    c->capacity = capacity;
    return FRG_OK;
}

static frg_status reserve_fresh(frgi_csv_reader *t)
{
    int64_t n_text = 0;
    for (int64_t k = 0; k < t->n_active; k++) {
        const frgi_csv_column *const c = &t->columns[t->active[k]];
        n_text += c->pending && c->kind == CELL_TEXT;
    }
    int64_t most_rows = 0, longest = 0;
    for (int b = 0; b < t->segments.n_blocks; b++) {
        const frgi_csv_index *const x = &t->segments.blocks[b];
        const int64_t need = x->rows * n_text;
        if (n_text > 0 && (!t->work.fresh[b] || t->work.fresh_capacity[b] < need)) {
            DROP(t->ctx, &t->work.fresh[b]);
            t->work.fresh_capacity[b] = 0;
            TRY(NEW(t->ctx, &t->work.fresh[b], need, "new strings of a block"));
            t->work.fresh_capacity[b] = need;
        }
        most_rows = x->rows > most_rows ? x->rows : most_rows;
        longest = x->count > longest ? x->count : longest;
    }
    int64_t slots = 64;
    while (slots < 2 * most_rows) {
        slots *= 2;
    }
    for (int i = 0; n_text > 0 && i < t->work.n_scratch; i++) {
        frgi_encode_scratch *const s = &t->work.scratch[i];
        if (s->n_slots < slots) {
            DROP(t->ctx, &s->slots);
            s->n_slots = 0;
            TRY(NEW0(t->ctx, &s->slots, slots, "new strings of a block"));
            s->n_slots = slots;
        }
        if (t->segments.now.n_quotes > 0 && (!s->cell || t->work.cell_bytes < longest)) {
            DROP(t->ctx, &s->cell);
            TRY(NEW(t->ctx, &s->cell, longest, "a cell"));
        }
    }
    if (n_text > 0 && t->segments.now.n_quotes > 0 && t->work.cell_bytes < longest) {
        t->work.cell_bytes = longest;
    }
    return FRG_OK;
}

/** Memory for what the parallel part writes: nothing is allocated there. */
static frg_status reserve(frgi_csv_reader *t)
{
    TRY(frgi_source_bounded(t->segments.source, 0)); /* labels grow too */
    for (int64_t k = 0; k < t->n_active; k++) {
        frgi_csv_column *const c = &t->columns[t->active[k]];
        if (c->pending && c->kind != CELL_MISSING) {
            TRY(reserve_rows(t, c, t->rows + t->segments.rows));
        }
    }
    const int64_t count = t->segments.n_blocks * t->n_active;
    if (t->work.converted_capacity < count) {
        DROP(t->ctx, &t->work.converted);
        t->work.converted_capacity = 0;
        TRY(NEW(t->ctx, &t->work.converted, count, "counts of the blocks"));
        t->work.converted_capacity = count;
    }
    return reserve_fresh(t);
}

/* ---- conversion ------------------------------------------------------------------------------ */

/** Converts the pending columns of block b, whose first row is `row` of the table. */
static void convert_block(frgi_csv_reader *t, int b, int64_t row, frgi_encode_scratch *scratch)
{
    const frgi_csv_kernels *const kernels = t->segments.kernels;
    int64_t n_fresh = 0;
    for (int64_t k = 0; k < t->n_active; k++) {
        const frgi_csv_column *const c = &t->columns[t->active[k]];
        if (!c->pending) {
            continue;
        }
        frgi_csv_converted *const converted = &t->work.converted[b * t->n_active + k];
        *converted = (frgi_csv_converted){.kind = c->kind, .fresh = n_fresh, .broken = -1};
        const frgi_cells cells = {.index = &t->segments.blocks[b],
                                  .n_columns = t->n_columns,
                                  .column = t->active[k],
                                  .rules = &t->rules};
        int64_t *const missing = &converted->n_missing;
        switch (c->kind) {
        case CELL_MISSING:
            converted->kind = frgi_cells_missing(&cells, missing);
            break;
        case CELL_INTEGER:
            converted->kind = kernels->integers(&cells, (int64_t *)c->values + row, missing);
            break;
        case CELL_NUMBER:
            converted->kind = kernels->numbers(&cells, (double *)c->values + row, missing);
            break;
        case CELL_BOOL:
            converted->kind = frgi_cells_bools(&cells, (int32_t *)c->values + row, missing);
            break;
        case CELL_TEXT:
            converted->n_fresh =
                frgi_cells_encode(&cells, &c->dictionary, (int32_t *)c->values + row,
                                  t->work.fresh[b] + n_fresh, scratch, missing, &converted->broken);
            n_fresh += converted->n_fresh > 0 ? converted->n_fresh : 0;
            break;
        }
    }
}

/** All blocks; with `read`, the calling thread reads the next segment before it takes part. */
static frg_status convert_segment(frgi_csv_reader *t, bool read)
{
    frg_status status = FRG_OK;
    frgi_segments *const w = &t->segments;
    int64_t row[FRGI_CSV_BLOCKS] = {t->rows};
    for (int b = 1; b < w->n_blocks; b++) {
        row[b] = row[b - 1] + w->blocks[b - 1].rows;
    }
#pragma omp parallel num_threads(t->work.n_scratch) if (w->n_blocks > 1)
    {
        const int thread = omp_get_thread_num();
        if (thread == 0 && read) {
            status = frgi_segments_read(w);
        }
#pragma omp for schedule(dynamic, 1)
        for (int b = 0; b < w->n_blocks; b++) {
            convert_block(t, b, row[b], &t->work.scratch[thread]);
        }
    }
    return status;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

void frgi_csv_fill_missing(frgi_csv_column *c, int64_t rows)
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

/** Gives the column a more general kind; its rows of earlier segments follow, those of this segment
 *  do not. */
static frg_status promote(frgi_csv_reader *t, frgi_csv_column *c, frgi_cell_kind kind)
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
    /* nothing but strings of the NA list so far; in a number column it may be "nan", which is a
     * label */
    if (t->rows == 0 || (c->n_missing == t->rows && c->kind != CELL_NUMBER)) {
        DROP(t->ctx, &c->values);
        c->capacity = 0;
        c->kind = kind;
        TRY(reserve_rows(t, c, t->rows + t->segments.rows));
        frgi_csv_fill_missing(c, t->rows);
        return FRG_OK;
    }
    DROP(t->ctx, &c->values);
    c->again = true;
    c->pending = false;
    return FRG_OK;
}

/** A column's kind over all blocks; counts its missing values once it is final. */
static frg_status decide_kind(frgi_csv_reader *t, int64_t k)
{
    frgi_csv_column *const c = &t->columns[t->active[k]];
    frgi_cell_kind kind = c->kind;
    int64_t missing = 0;
    for (int b = 0; b < t->segments.n_blocks; b++) {
        const frgi_csv_converted *const converted = &t->work.converted[b * t->n_active + k];
        kind = frgi_cell_join(kind, converted->kind);
        missing += converted->n_missing;
        if (converted->broken >= 0) {
            const frgi_csv_index *const x = &t->segments.blocks[b];
            frgi_csv_place(
                t, frgi_csv_line_at(
                       t, b, x->text + x->ends[converted->broken * t->n_columns + t->active[k]]));
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

/** A good guess at the kinds before the first segment saves converting it twice. */
static void guess_kinds(frgi_csv_reader *t)
{
    for (int64_t k = 0; k < t->n_active && t->segments.n_blocks > 0; k++) {
        frgi_csv_column *const c = &t->columns[t->active[k]];
        frgi_csv_index first = t->segments.blocks[0];
        first.rows = first.rows < 100 ? first.rows : 100;
        const frgi_cells cells = {
            .index = &first, .n_columns = t->n_columns, .column = t->active[k], .rules = &t->rules};
        int64_t missing;
        c->kind = frgi_cell_join(c->kind, frgi_cells_missing(&cells, &missing));
    }
}

/* ---- strings --------------------------------------------------------------------------------- */

static frg_status put_fresh(frgi_csv_reader *t, frgi_csv_column *c, int b, frgi_fresh *f)
{
    frgi_cell_text cell = {
        .s = t->segments.blocks[b].text + f->start, .n = f->count, .doubled = f->doubled};
    const char *s = cell.s;
    int64_t n = cell.n;
    if (cell.doubled) {
        n = frgi_cell_copy(&cell, t->work.scratch[0].cell);
        s = t->work.scratch[0].cell;
    }
    const int64_t before = c->dictionary.count;
    const int32_t code = frgi_dictionary_put(&c->dictionary, s, n, f->hash);
    f->hash = (uint64_t)code;
    if (c->dictionary.count > before && !frgi_is_utf8(s, n)) {
        frgi_csv_place(t, frgi_csv_line_at(t, b, cell.s));
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
static frg_status merge_strings(frgi_csv_reader *t, int64_t k, bool *any)
{
    frgi_csv_column *const c = &t->columns[t->active[k]];
    int64_t count = 0, bytes = 0;
    for (int b = 0; b < t->segments.n_blocks; b++) {
        const frgi_csv_converted *const converted = &t->work.converted[b * t->n_active + k];
        count += converted->n_fresh;
        for (int64_t i = 0; i < converted->n_fresh; i++) {
            bytes += t->work.fresh[b][converted->fresh + i].count;
        }
    }
    if (count == 0) {
        return FRG_OK;
    }
    *any = true;
    TRY(frgi_dictionary_reserve(&c->dictionary, t->ctx, count, bytes));
    for (int b = 0; b < t->segments.n_blocks; b++) {
        const frgi_csv_converted *const converted = &t->work.converted[b * t->n_active + k];
        for (int64_t i = 0; i < converted->n_fresh; i++) {
            TRY(put_fresh(t, c, b, &t->work.fresh[b][converted->fresh + i]));
        }
    }
    return FRG_OK;
}

/** Replaces the codes of the blocks by the dictionary's. */
static void recode_block(frgi_csv_reader *t, int b, int64_t row)
{
    for (int64_t k = 0; k < t->n_active; k++) {
        const frgi_csv_column *const c = &t->columns[t->active[k]];
        const frgi_csv_converted *const converted = &t->work.converted[b * t->n_active + k];
        if (c->fresh && converted->n_fresh > 0) {
            const frgi_fresh *const fresh = t->work.fresh[b] + converted->fresh;
            int32_t *const codes = (int32_t *)c->values + row;
            for (int64_t r = 0; r < t->segments.blocks[b].rows; r++) {
                codes[r] = codes[r] <= -2 ? (int32_t)fresh[-2 - codes[r]].hash : codes[r];
            }
        }
    }
}

static frg_status encode(frgi_csv_reader *t)
{
    bool any = false;
    for (int64_t k = 0; k < t->n_active; k++) {
        if (t->columns[t->active[k]].fresh) {
            TRY(merge_strings(t, k, &any));
        }
    }
    int64_t row[FRGI_CSV_BLOCKS] = {t->rows};
    for (int b = 1; b < t->segments.n_blocks; b++) {
        row[b] = row[b - 1] + t->segments.blocks[b - 1].rows;
    }
#pragma omp parallel for schedule(dynamic, 1)                                                      \
    num_threads(t->work.n_scratch) if (any && t->segments.n_blocks > 1)
    for (int b = 0; b < t->segments.n_blocks; b++) {
        recode_block(t, b, row[b]);
    }
    for (int64_t k = 0; k < t->n_active; k++) {
        t->columns[t->active[k]].fresh = false;
    }
    return FRG_OK;
}

frg_status frgi_csv_convert(frgi_csv_reader *t)
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
        TRY(convert_segment(t, first));
        pending = false;
        for (int64_t k = 0; k < t->n_active; k++) {
            if (t->columns[t->active[k]].pending) {
                TRY(decide_kind(t, k));
            }
            pending |= t->columns[t->active[k]].pending;
        }
        TRY(encode(t)); /* the next round writes over the blocks' strings */
    }
    return FRG_OK;
}
