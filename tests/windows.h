/* windows.h - rows of the fixed-effects room that lie elsewhere: a run source that hands out windows
 * of a few eliminated levels, each in memory of its own that is filled with 0xff once it may not
 * be read any more.
 *
 * A window ends where `most` levels are full, or, `whole`, at the chunk's end behind that.  The
 * fail_at-th window (from 1) is refused with `refusal`.
 */
#ifndef FOURGE_TEST_WINDOWS_H
#define FOURGE_TEST_WINDOWS_H

#include "fe/fe_runs.h"
#include "test.h"

typedef struct {
    const fe_rows *rows; /* in memory */
    int64_t most;
    bool whole;
    int64_t calls, fail_at;
    frg_status refusal;
    int64_t readers; /* open */
    int64_t *elim_start, *chunk_elim;
    double *elim_inverse, *weight;
    int32_t *index;
    uint32_t *order;
    int64_t bytes[6]; /* of these */
    void **dead;      /* blocks that may not be read any more: freed with the reader, so that none
                         comes back as another */
    int64_t n_dead;
    struct fe_run_source source;
} windows;

static void windows_drop(windows *w)
{
    void *const block[] = {w->elim_start, w->chunk_elim, w->elim_inverse,
                           w->weight,     w->index,      w->order};
    w->dead = realloc(w->dead, (size_t)(w->n_dead + 6) * sizeof *w->dead);
    if (!w->dead)
        abort();
    for (int i = 0; i < 6; i++) {
        if (block[i])
            memset(block[i], 0xff, (size_t)w->bytes[i]);
        w->dead[w->n_dead++] = block[i];
    }
    w->elim_start = w->chunk_elim = NULL;
    w->elim_inverse = w->weight = NULL;
    w->index = NULL;
    w->order = NULL;
}

static void *windows_copy(windows *w, int i, const void *from, int64_t count, int64_t extra,
                          size_t size)
{
    w->bytes[i] = (count + extra) * (int64_t)size;
    char *to = calloc((size_t)(count + extra) + 1, size);
    if (!to)
        abort();
    memcpy(to, from, (size_t)count * size);
    return to;
}

/** The level behind the window that begins with `elim` in chunk `chunk`. */
static int64_t windows_end(const windows *w, int64_t elim, int chunk)
{
    const fe_rows *g = w->rows;
    const int64_t end = elim + w->most < g->n_elim ? elim + w->most : g->n_elim;
    if (!w->whole)
        return end < g->chunk_elim[chunk + 1] ? end : g->chunk_elim[chunk + 1];
    while (g->chunk_elim[chunk + 1] < end)
        chunk++;
    return g->chunk_elim[chunk + 1];
}

static frg_status windows_read(void *state, frg_context *ctx, int64_t elim, fe_rows *to)
{
    windows *w = state;
    const fe_rows *g = w->rows;
    const int many = g->n_remaining;
    (void)ctx;
    windows_drop(w);
    w->readers = 1;
    if (++w->calls == w->fail_at)
        return w->refusal;
    int chunk = 0;
    while (chunk + 1 < g->n_chunks && g->chunk_elim[chunk + 1] <= elim)
        chunk++;
    const int64_t end = windows_end(w, elim, chunk), row = g->elim_start[elim];
    int last = chunk;
    while (g->chunk_elim[last + 1] < end)
        last++;
    to->n_elim = end - elim;
    to->n = g->elim_start[end] - row;
    to->n_chunks = last - chunk + 1;
    to->at =
        (fe_place){row, elim, chunk, g->chunk_elim[chunk] < elim, end < g->chunk_elim[last + 1]};
    w->elim_start = windows_copy(w, 0, g->elim_start + elim, to->n_elim + 1, 0, sizeof(int64_t));
    w->chunk_elim = windows_copy(w, 1, g->chunk_elim + chunk, to->n_chunks + 1, 0, sizeof(int64_t));
    w->elim_inverse = windows_copy(w, 2, g->elim_inverse + elim, to->n_elim, 0, sizeof(double));
    w->index = windows_copy(w, 4, g->index + row * many, to->n * many, FE_ROWS_AHEAD * many,
                            sizeof(int32_t));
    if (g->weight)
        w->weight = windows_copy(w, 3, g->weight + row, to->n, 0, sizeof(double));
    if (g->order)
        w->order = windows_copy(w, 5, g->order + row, to->n, FE_ROWS_AHEAD, sizeof(uint32_t));
    for (int64_t u = 0; u <= to->n_elim; u++)
        w->elim_start[u] -= row;
    for (int k = 0; k <= to->n_chunks; k++) {
        const int64_t at = w->chunk_elim[k] < elim ? elim : w->chunk_elim[k];
        w->chunk_elim[k] = (at < end ? at : end) - elim;
    }
    to->elim_start = w->elim_start;
    to->chunk_elim = w->chunk_elim;
    to->elim_inverse = w->elim_inverse;
    to->index = w->index;
    to->weight = w->weight;
    to->order = w->order;
    return FRG_OK;
}

static void windows_rest(void *state)
{
    windows *w = state;
    windows_drop(w);
    for (int64_t i = 0; i < w->n_dead; i++)
        free(w->dead[i]);
    free(w->dead);
    w->dead = NULL;
    w->n_dead = w->readers = 0;
}

/** g without its rows, which come from w. */
TEST_UNUSED static fe_rows windows_open(windows *w, const fe_rows *g, int64_t most, bool whole)
{
    *w = (windows){.rows = g, .most = most, .whole = whole, .refusal = FRG_IO};
    w->source = (struct fe_run_source){windows_read, windows_rest, w};
    fe_rows away = *g;
    away.elim_start = NULL;
    away.elim_inverse = NULL;
    away.index = NULL;
    away.weight = NULL;
    away.order = NULL;
    away.source = &w->source;
    return away;
}

#endif
