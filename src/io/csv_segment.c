/* csv_segment.c - text in segments of some MB, each cut into blocks of whole rows and indexed by
 * all threads.
 *
 *     now    | rows of block 0 | rows of block 1 | ... | rest |      parsed
 *     next   | rest | bytes that are being read ...           |      read meanwhile
 *
 * Where a block may begin is known from the quotes in front of it: an even number means that a
 * newline ends a row.  Whoever reads a segment counts them, a fiftieth of the work, and moves each
 * block to the first row that begins in it; so a segment needs two parallel parts, index and
 * conversion.  The cuts depend on the text alone.  Once a block turned out to hold a quote that
 * does not count (see csv_kernels_cpu.c) the cuts and the index follow the grammar from there on.
 */
#include <string.h>

#include "io/csv.h"

enum { INDEX_LEAST = 128 };

const frgi_csv_steps frgi_csv_default_steps = {
    .block = 256 << 10, .segment = 4 << 20, .keep = 32 << 20};

static frg_status fill(frgi_source *source, frgi_segment *segment)
{
    const int64_t want = segment->capacity - segment->length;
    int64_t got;
    TRY(frgi_source_get(source, segment->text + segment->length, want, &got));
    segment->length += got;
    segment->n_cuts = 0;
    segment->last = got < want;
    if (segment->last && segment->length > 0 && segment->text[segment->length - 1] != '\n') {
        segment->text[segment->length++] = '\n'; /* the margin has room for it */
    }
    /* what kernels load behind the text decides nothing, and is the same every time */
    memset(segment->text + segment->length, 0, FRGI_CSV_MARGIN - 1);
    return FRG_OK;
}

static frg_status reserve(frgi_segment *segment, frg_context *ctx, int64_t capacity)
{
    const size_t bytes = frgi_add((size_t)capacity, 2 * FRGI_CSV_MARGIN);
    TRY(frgi_resize(ctx, (void **)&segment->memory, bytes, "text"));
    segment->text = segment->memory + FRGI_CSV_MARGIN;
    segment->capacity = capacity;
    memset(segment->memory, 0, FRGI_CSV_MARGIN);
    return FRG_OK;
}

frg_status frgi_segments_open(frgi_segments *w, frg_context *ctx, frgi_source *source,
                              const frgi_csv_steps *steps)
{
    *w = (frgi_segments){
        .ctx = ctx, .source = source, .kernels = frgi_csv_kernels_for(ctx), .steps = *steps};
    const int64_t size = frgi_source_size(source);
    TRY(reserve(&w->now, ctx, size >= 0 && size < steps->segment ? size + 1 : steps->segment));
    return fill(source, &w->now);
}

void frgi_segments_close(frgi_segments *w)
{
    DROP(w->ctx, &w->now.memory);
    DROP(w->ctx, &w->next.memory);
    for (int b = 0; b < FRGI_CSV_BLOCKS; b++) {
        DROP(w->ctx, &w->ends[b]);
    }
}

frg_status frgi_segments_enlarge(frgi_segments *w)
{
    if (w->now.capacity > INT64_MAX / 4) {
        FAIL(w->ctx, E_MEMORY, "a row of the text does not fit in memory");
    }
    TRY(frgi_source_bounded(w->source, 2 * (size_t)w->now.capacity));
    TRY(reserve(&w->now, w->ctx, 2 * w->now.capacity));
    return fill(w->source, &w->now);
}

frg_status frgi_segments_prepare(frgi_segments *w)
{
    if (w->now.last) {
        return FRG_OK;
    }
    if (w->next.capacity < w->now.capacity) {
        DROP(w->ctx, &w->next.memory);
        TRY(reserve(&w->next, w->ctx, w->now.capacity));
    }
    w->next.length = w->now.length - w->used;
    memcpy(w->next.text, w->now.text + w->used, (size_t)w->next.length);
    return FRG_OK;
}

void frgi_segments_swap(frgi_segments *w)
{
    const frgi_segment now = w->now;
    w->now = w->next;
    w->next = now;
    w->start = 0;
}

/* ---- cuts ------------------------------------------------------------------------------------ */

/** The first row that begins at or behind `from`, where `odd` says whether quotes are open. */
static int64_t next_row(const char *text, int64_t from, int64_t length, bool odd)
{
    if (from > 0 && text[from - 1] == '\n' && !odd) {
        return from;
    }
    for (int64_t at = from; at < length; at++) {
        odd ^= text[at] == '"';
        if (text[at] == '\n' && !odd) {
            return at + 1;
        }
    }
    return length;
}

static void cut_by_quotes(const frgi_segments *w, frgi_segment *segment, const int64_t bound[],
                          int n)
{
    segment->n_quotes = 0;
    for (int b = 1; b <= n; b++) {
        const int64_t length = bound[b] - bound[b - 1];
        segment->n_quotes += w->kernels->count_quotes(segment->text + bound[b - 1], length);
        /* a row may span several blocks: no need to look for its end again */
        segment->cut[b] =
            segment->cut[b - 1] >= bound[b]
                ? segment->cut[b - 1]
                : next_row(segment->text, bound[b], segment->length, segment->n_quotes & 1);
    }
}

static void cut_by_grammar(const frgi_segments *w, frgi_segment *segment, const int64_t bound[],
                           int n)
{
    const char *s = segment->text + segment->cut[0], *const e = segment->text + segment->length,
               *end;
    segment->n_quotes = 1; /* there are some */
    for (int b = 1; b < n; b++) {
        segment->cut[b] = segment->length;
    }
    for (int b = 1; s < e && b < n; s = end + 1) {
        if (frgi_cell_find_end(s, e, w->delimiter, &end) != CELL_WHOLE) {
            return; /* the block's index will say why */
        }
        for (; b < n && *end == '\n' && end + 1 - segment->text >= bound[b]; b++) {
            segment->cut[b] = end + 1 - segment->text;
        }
    }
}

static void cut_segment(const frgi_segments *w, frgi_segment *segment, int64_t start)
{
    const int64_t length = segment->length - start, wanted = length / w->steps.block + 1;
    const int n = wanted < FRGI_CSV_BLOCKS ? (int)wanted : FRGI_CSV_BLOCKS;
    int64_t bound[FRGI_CSV_BLOCKS + 1];
    for (int b = 0; b <= n; b++) {
        bound[b] = start + length / n * b + length % n * b / n;
    }
    segment->cut[0] = start;
    (w->by_grammar ? cut_by_grammar : cut_by_quotes)(w, segment, bound, n);
    segment->cut[n] = segment->length;
    segment->n_cuts = n;
}

frg_status frgi_segments_read(frgi_segments *w)
{
    if (w->now.last) {
        return FRG_OK;
    }
    TRY(fill(w->source, &w->next));
    cut_segment(w, &w->next, 0);
    return FRG_OK;
}

/* ---- the index ------------------------------------------------------------------------------- */

static frg_status reserve_index(frgi_segments *w, int b, int64_t capacity)
{
    if (w->ends_capacity[b] < capacity) {
        capacity += capacity / 16; /* the blocks of the next segment are about as long */
        DROP(w->ctx, &w->ends[b]);
        w->ends_capacity[b] = 0;
        TRY(NEW(w->ctx, &w->ends[b], capacity + 1, "index of a block"));
        w->ends_capacity[b] = capacity;
        w->ends[b][0] = UINT32_MAX;
    }
    w->blocks[b].ends = w->ends[b] + 1;
    w->blocks[b].capacity = w->ends_capacity[b];
    return FRG_OK;
}

/** The blocks between the cuts, empty ones left out. */
static frg_status make_blocks(frgi_segments *w)
{
    const frgi_segment *const segment = &w->now;
    w->n_blocks = 0;
    for (int c = 0; c < segment->n_cuts; c++) {
        const int64_t count = segment->cut[c + 1] - segment->cut[c];
        if (count == 0) {
            continue;
        }
        if (count > UINT32_MAX - FRGI_CSV_MARGIN) {
            FAIL(w->ctx, E_FORMAT, "a row is longer than 4 GB; is a quote not closed?");
        }
        const int b = w->n_blocks++;
        w->blocks[b] = (frgi_csv_index){.text = segment->text + segment->cut[c], .count = count};
        TRY(reserve_index(w, b, count / 4 + INDEX_LEAST));
    }
    return FRG_OK;
}

static void index_blocks(frgi_segments *w, frgi_index_end which)
{
#pragma omp parallel for schedule(dynamic, 1) num_threads(frg_threads(w->ctx)) if (w->n_blocks > 1)
    for (int b = 0; b < w->n_blocks; b++) {
        frgi_csv_index *const x = &w->blocks[b];
        if (x->end == which) {
            (w->by_grammar ? frgi_csv_index_slow : w->kernels->index)(x, w->delimiter,
                                                                      w->n_columns);
        }
    }
}

/** Most cells have more than three bytes; a block where they do not gets the capacity of the worst
 *  case. */
static frg_status index_once(frgi_segments *w)
{
    if (!w->now.n_cuts) {
        cut_segment(w, &w->now, w->start);
    }
    TRY(make_blocks(w));
    index_blocks(w, INDEX_DONE);
    bool again = false;
    for (int b = 0; b < w->n_blocks; b++) {
        if (w->blocks[b].end == INDEX_FULL) {
            TRY(reserve_index(w, b, w->blocks[b].count + INDEX_LEAST));
            again = true;
        }
    }
    if (again) {
        index_blocks(w, INDEX_FULL);
    }
    return FRG_OK;
}

frg_status frgi_segments_index(frgi_segments *w)
{
    for (;;) {
        TRY(index_once(w));
        bool irregular = false;
        for (int b = 0; b < w->n_blocks; b++) {
            irregular |= w->blocks[b].end == INDEX_IRREGULAR;
        }
        if (irregular) {
            w->by_grammar = true;
            w->now.n_cuts = 0;
            continue;
        }
        w->rows = 0;
        w->used = w->start;
        for (int b = 0; b < w->n_blocks; b++) {
            const frgi_csv_index *const x = &w->blocks[b];
            w->rows += x->rows;
            w->used = x->text - w->now.text + x->used;
            if (x->end != INDEX_DONE) {
                return FRG_OK; /* the reader of the blocks reports it */
            }
        }
        if (w->used > w->start || w->now.last) {
            return FRG_OK;
        }
        TRY(frgi_segments_enlarge(w));
    }
}
