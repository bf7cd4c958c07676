/* csv_wave.c - text in waves of some MB, each cut into blocks of whole rows and indexed by all threads.
 *
 *     now    | rows of block 0 | rows of block 1 | ... | rest |      parsed
 *     next   | rest | bytes that are being read ...           |      read meanwhile
 *
 * Where a block may begin is known from the quotes in front of it: an even number means that a newline ends
 * a row.  The numbers of the blocks are counted in parallel and added up; then each block is moved to the
 * first row that begins in it.  The cuts depend on the text alone.  Once a block turned out to hold a quote
 * that does not count (see csv_kernels_cpu.c) the cuts and the index follow the grammar from there on.
 */
#include <string.h>

#include "io/csv.h"

enum { INDEX_LEAST = 128 };

const frgi_csv_steps frgi_csv_default_steps = {.block = 512 << 10, .wave = 8 << 20};

static frg_status fill(frgi_source *source, frgi_wave *wave)
{
    const int64_t want = wave->room - wave->length;
    int64_t got;
    TRY(frgi_source_get(source, wave->text + wave->length, want, &got));
    wave->length += got;
    wave->last = got < want;
    if (wave->last && wave->length > 0 && wave->text[wave->length - 1] != '\n') {
        wave->text[wave->length++] = '\n'; /* the margin has room for it */
    }
    return FRG_OK;
}

static frg_status make_room(frgi_wave *wave, frg_context *ctx, int64_t room)
{
    const size_t bytes = frgi_add((size_t)room, 2 * FRGI_CSV_MARGIN);
    TRY(frgi_resize(ctx, (void **)&wave->memory, bytes, "text"));
    wave->text = wave->memory + FRGI_CSV_MARGIN;
    wave->room = room;
    memset(wave->text + room, 0, FRGI_CSV_MARGIN);
    return FRG_OK;
}

frg_status frgi_waves_open(frgi_waves *w, frg_context *ctx, frgi_source *source,
                           const frgi_csv_steps *steps)
{
    *w = (frgi_waves){
        .ctx = ctx, .source = source, .kernels = frgi_csv_kernels_for(ctx), .steps = *steps};
    const int64_t size = frgi_source_size(source);
    TRY(make_room(&w->now, ctx, size >= 0 && size < steps->wave ? size + 1 : steps->wave));
    return fill(source, &w->now);
}

void frgi_waves_close(frgi_waves *w)
{
    DROP(w->ctx, &w->now.memory);
    DROP(w->ctx, &w->next.memory);
    for (int b = 0; b < FRGI_CSV_BLOCKS; b++) {
        DROP(w->ctx, &w->ends[b]);
    }
}

frg_status frgi_waves_enlarge(frgi_waves *w)
{
    if (w->now.room > INT64_MAX / 4) {
        FAIL(w->ctx, E_MEMORY, "a row of the text does not fit in memory");
    }
    TRY(make_room(&w->now, w->ctx, 2 * w->now.room));
    return fill(w->source, &w->now);
}

frg_status frgi_waves_prepare(frgi_waves *w)
{
    if (w->now.last) {
        return FRG_OK;
    }
    if (w->next.room < w->now.room) {
        DROP(w->ctx, &w->next.memory);
        TRY(make_room(&w->next, w->ctx, w->now.room));
    }
    w->next.length = w->now.length - w->used;
    memcpy(w->next.text, w->now.text + w->used, (size_t)w->next.length);
    return FRG_OK;
}

frg_status frgi_waves_read(frgi_waves *w)
{
    return w->now.last ? FRG_OK : fill(w->source, &w->next);
}

void frgi_waves_swap(frgi_waves *w)
{
    const frgi_wave now = w->now;
    w->now = w->next;
    w->next = now;
    w->start = 0;
}

/* ---- cuts --------------------------------------------------------------------------------------- */

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

static void cut_by_quotes(frgi_waves *w, const int64_t bound[], int64_t cut[], int n)
{
    int64_t quotes[FRGI_CSV_BLOCKS];
#pragma omp parallel for schedule(static) num_threads(frg_threads(w->ctx)) if (n > 1)
    for (int b = 0; b < n; b++) {
        quotes[b] = w->kernels->count_quotes(w->now.text + bound[b], bound[b + 1] - bound[b]);
    }
    w->n_quotes = 0;
    for (int b = 1; b <= n; b++) {
        w->n_quotes += quotes[b - 1];
        if (b < n) { /* a row may span several blocks: no need to look for its end again */
            cut[b] = cut[b - 1] >= bound[b]
                         ? cut[b - 1]
                         : next_row(w->now.text, bound[b], w->now.length, w->n_quotes & 1);
        }
    }
}

static void cut_by_grammar(frgi_waves *w, const int64_t bound[], int64_t cut[], int n)
{
    const char *s = w->now.text + cut[0], *const e = w->now.text + w->now.length, *end;
    w->n_quotes = 1; /* there are some */
    for (int b = 1; b < n; b++) {
        cut[b] = w->now.length;
    }
    for (int b = 1; s < e && b < n; s = end + 1) {
        if (frgi_cell_find_end(s, e, w->delimiter, &end) != CELL_WHOLE) {
            return; /* the block's index will say why */
        }
        for (; b < n && *end == '\n' && end + 1 - w->now.text >= bound[b]; b++) {
            cut[b] = end + 1 - w->now.text;
        }
    }
}

static frg_status cut_blocks(frgi_waves *w)
{
    const int64_t length = w->now.length - w->start;
    const int64_t wanted = length / w->steps.block + 1;
    const int n = wanted < FRGI_CSV_BLOCKS ? (int)wanted : FRGI_CSV_BLOCKS;
    int64_t bound[FRGI_CSV_BLOCKS + 1], cut[FRGI_CSV_BLOCKS + 1];
    for (int b = 0; b <= n; b++) {
        bound[b] = w->start + length / n * b + length % n * b / n;
    }
    cut[0] = w->start;
    (w->by_grammar ? cut_by_grammar : cut_by_quotes)(w, bound, cut, n);
    cut[n] = w->now.length;
    w->n_blocks = 0;
    for (int b = 0; b < n; b++) {
        if (cut[b + 1] == cut[b]) {
            continue;
        }
        frgi_csv_index *const x = &w->blocks[w->n_blocks++];
        *x = (frgi_csv_index){.text = w->now.text + cut[b], .count = cut[b + 1] - cut[b]};
        if (x->count > UINT32_MAX - FRGI_CSV_MARGIN) {
            FAIL(w->ctx, E_FORMAT, "a row is longer than 4 GB; is a quote not closed?");
        }
    }
    return FRG_OK;
}

/* ---- the index ---------------------------------------------------------------------------------- */

static frg_status make_index_room(frgi_waves *w, int b, int64_t room)
{
    if (w->ends_room[b] < room) {
        DROP(w->ctx, &w->ends[b]);
        w->ends_room[b] = 0;
        TRY(NEW(w->ctx, &w->ends[b], room + 1, "index of a block"));
        w->ends_room[b] = room;
        w->ends[b][0] = UINT32_MAX;
    }
    w->blocks[b].ends = w->ends[b] + 1;
    w->blocks[b].room = w->ends_room[b];
    return FRG_OK;
}

static void index_blocks(frgi_waves *w, frgi_index_end which)
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

/** Most cells have more than three bytes; a block where they do not gets the room of the worst case. */
static frg_status index_once(frgi_waves *w)
{
    TRY(cut_blocks(w));
    for (int b = 0; b < w->n_blocks; b++) {
        TRY(make_index_room(w, b, w->blocks[b].count / 4 + INDEX_LEAST));
    }
    index_blocks(w, INDEX_DONE);
    for (int b = 0; b < w->n_blocks; b++) {
        if (w->blocks[b].end == INDEX_ROOM) {
            TRY(make_index_room(w, b, w->blocks[b].count + INDEX_LEAST));
        }
    }
    index_blocks(w, INDEX_ROOM);
    return FRG_OK;
}

frg_status frgi_waves_index(frgi_waves *w)
{
    for (;;) {
        TRY(index_once(w));
        bool irregular = false;
        for (int b = 0; b < w->n_blocks; b++) {
            irregular |= w->blocks[b].end == INDEX_IRREGULAR;
        }
        if (irregular) {
            w->by_grammar = true;
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
        TRY(frgi_waves_enlarge(w));
    }
}
