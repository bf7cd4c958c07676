/* fe_device.c - a demeaner's rows on a device: the transposed index, memory, copies.
 *
 * Their whole numbers have a block of their own, which the passes share.  Weights and what levels
 * have lie first in that of the vectors, so that a solve of fewer columns finds them where they
 * are.
 */
#include "fe/fe_device.h"

#include <string.h>

#include "fe/fe_device_rows.h"
#include "sparse/ritz.h"

enum { GROUP = 128, COPIED_ROWS = 32768 };
const double frgi_fe_gain_f32 = 4e-6;

frg_status frgi_fe_device_check(frg_context *ctx, const frgi_device *dev, const frg_demean_opts *o,
                                bool slopes)
{
    const struct {
        bool wrong;
        const char *what;
    } rules[] = {
        {slopes && o->method != FRG_FE_LSMR,
         "with varying slopes by another method than lsmr (take method lsmr)"},
        {o->method == FRG_FE_MLSMR, "by method mlsmr (take method lsmr)"},
        {o->method == FRG_FE_DIRECT, "by method direct (take method auto)"},
        {o->method == FRG_FE_MAP, "by method map (take method lsmr)"},
        {o->precond == FRG_FE_PRECOND_AC, "with precond ac (take method auto, and no precond)"},
        {o->precond == FRG_FE_PRECOND_SCHWARZ,
         "with precond schwarz (take method auto, and no precond)"},
        {o->method != FRG_FE_LSMR && o->fused != FRG_FE_FUSED_AUTO,
         "with fused on or off, which is of method lsmr, by another method"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].wrong) {
            FAIL(ctx, E_DEVICE_STEP, "demeaning %s does not run on %s", rules[i].what,
                 frgi_device_name(dev));
        }
    }
    return FRG_OK;
}

/* ---- varying slopes -------------------------------------------------------------------------- */

/** Columns of a row's eliminated level; 0: its dummy alone, of which no values are needed. */
static int elim_width(const fe_device *d)
{
    return d->design.slopes && d->design.slopes->elim.slopes ? d->design.slopes->elim.width : 0;
}

/** The row's values at its indices: 1 where 1 / sqrt(N_l) is the unknown's scale, else phi. */
static void row_values(const fe_basis *b, int64_t i, double *to)
{
    for (int r = 0; r < b->g->n_remaining; r++) {
        const fe_basis_factor *const f = &b->remaining[r];
        for (int j = 0; j < f->width; j++) {
            *to++ = j < f->intercept ? 1 : f->phi[i * f->slopes + j - f->intercept];
        }
    }
}

static void row_index(const fe_basis *b, int64_t i, int32_t *to)
{
    const int32_t *const level = b->g->index + i * b->g->n_remaining;
    for (int r = 0; r < b->g->n_remaining; r++) {
        const fe_basis_factor *const f = &b->remaining[r];
        for (int j = 0; j < f->width; j++) {
            *to++ = (int32_t)(f->first + (level[r] - f->index_base) * f->width + j);
        }
    }
}

/** The index of a design with slopes: a number for each column of a row's levels. */
static frg_status index_slopes(fe_device *d)
{
    const fe_basis *const b = d->design.slopes;
    const int64_t n = d->g->n;
    TRY(NEW(d->ctx, &d->design.own_index, n * d->design.width + 1, "index of slopes"));
    TRY(NEW(d->ctx, &d->design.own_inverse, d->design.unknowns + 1, "scales of slopes"));
    for (int64_t i = 0; i < n; i++) {
        row_index(b, i, d->design.own_index + i * d->design.width);
    }
    for (int r = 0; r < d->g->n_remaining; r++) {
        const fe_basis_factor *const f = &b->remaining[r];
        for (int64_t c = 0; c < f->levels * f->width; c++) {
            const double root = f->root[c / f->width];
            d->design.own_inverse[f->first + c] = c % f->width < f->intercept ? root * root : 1;
        }
    }
    d->design.index = d->design.own_index;
    d->design.inverse = d->design.own_inverse;
    return FRG_OK;
}

/* ---- the transposed index -------------------------------------------------------------------- */

/** row_entry: the same by rows, or NULL. */
static void fill_entries(const fe_device *d, int32_t *next, int32_t *entry, int32_t *row_entry)
{
    const fe_rows *const g = d->g;
    for (int64_t u = 0; u < g->n_elim; u++) {
        for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
            for (int64_t e = i * d->design.width; e < (i + 1) * d->design.width; e++) {
                const int32_t to = next[d->design.index[e]]++;
                entry[to] = (int32_t)(d->by_level ? u : d->design.slopes ? e : i);
                if (row_entry) {
                    row_entry[to] = (int32_t)i;
                }
            }
        }
    }
}

/** Pieces of a level with `count` entries, and how long each is at most. */
static int64_t pieces_of(int64_t count, int64_t *each)
{
    *each = count > FD_ITEM_ENTRIES ? FD_GROUP_ENTRIES : FD_ITEM_ENTRIES;
    return (count + *each - 1) / *each;
}

/** Short pieces first, then those that a group adds. */
static void cut_pieces(fe_device *d, const int32_t *first)
{
    fe_transposed *const t = &d->t;
    int64_t at[2] = {0, t->short_pieces}, listed = 0;
    for (int64_t l = 0; l < d->design.unknowns; l++) {
        const int64_t count = first[l + 1] - first[l];
        int64_t each;
        const int64_t pieces = pieces_of(count, &each);
        int64_t *const next = &at[count > FD_ITEM_ENTRIES];
        t->level_piece[l] = (int32_t)listed;
        for (int64_t s = 0; s < pieces; s++) {
            const int64_t left = count - s * each;
            t->piece[2 * *next] = (int32_t)(first[l] + s * each);
            t->piece[2 * *next + 1] = (int32_t)(left < each ? left : each);
            t->piece_of[listed++] = (int32_t)(*next)++;
        }
    }
    t->level_piece[d->design.unknowns] = (int32_t)listed;
}

static frg_status transpose(fe_device *d)
{
    fe_transposed *const t = &d->t;
    int32_t *first = NULL, *next = NULL;
    frg_status status = FRG_OK;
    t->entries = d->g->n * d->design.width;
    TRY_TO(done, NEW0(d->ctx, &first, d->design.unknowns + 2, "transposed index"));
    TRY_TO(done, NEW(d->ctx, &next, d->design.unknowns + 1, "transposed index"));
    for (int64_t e = 0; e < t->entries; e++) {
        first[d->design.index[e] + 1]++;
    }
    for (int64_t l = 0; l < d->design.unknowns; l++) {
        int64_t each;
        const int64_t count = first[l + 1], pieces = pieces_of(count, &each);
        t->pieces += pieces;
        t->short_pieces += count > FD_ITEM_ENTRIES ? 0 : pieces;
        first[l + 1] += first[l];
        next[l] = first[l];
    }
    TRY_TO(done, NEW(d->ctx, &t->entry, t->entries + 1, "transposed index"));
    if (d->by_level && d->passes) {
        TRY_TO(done, NEW(d->ctx, &t->row_entry, t->entries + 1, "transposed index"));
    }
    TRY_TO(done, NEW(d->ctx, &t->piece, 2 * t->pieces + 1, "transposed index"));
    TRY_TO(done, NEW(d->ctx, &t->piece_of, t->pieces + 1, "transposed index"));
    TRY_TO(done, NEW(d->ctx, &t->level_piece, d->design.unknowns + 1, "transposed index"));
    fill_entries(d, next, t->entry, t->row_entry);
    cut_pieces(d, first);
done:
    DROP(d->ctx, &first);
    DROP(d->ctx, &next);
    return status;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void frgi_fe_device_place_at(fe_device *d, int which, int64_t count, int64_t *used)
{
    d->at[which] = *used;
    *used += count;
}

/** Of the whole numbers, and what else does not depend on the columns. */
static void place_rows(fe_device *d)
{
    const fe_rows *const g = d->g;
    int64_t *const at = d->at, used = 0;
    at[FD_U] = g->n_elim;
    at[FD_R] = d->design.unknowns;
    at[FD_REMAINING] = d->design.width;
    at[FD_WEIGHTED] = g->weight != NULL;
    at[FD_VALUED] = d->design.slopes != NULL;
    at[FD_ELIM_WIDTH] = elim_width(d);
    at[FD_BY_LEVEL] = d->by_level;
    at[FD_SHORT] = d->t.short_pieces;
    at[FD_PIECES] = d->t.pieces;
    at[FD_SPREADS] = (g->n_elim + FD_SPREAD - 1) / FD_SPREAD;
    at[FD_UPDATES] = (d->design.unknowns + FD_UPDATE - 1) / FD_UPDATE;
    const struct {
        int which;
        int64_t count;
    } whole[] = {{FD_ELIM_START, g->n_elim + 1}, {FD_INDEX, d->t.entries},
                 {FD_PIECE, 2 * d->t.pieces},    {FD_LEVEL_PIECE, d->design.unknowns + 1},
                 {FD_PIECE_OF, d->t.pieces},     {FD_ENTRY, d->t.entries}};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        frgi_fe_device_place_at(d, whole[i].which, whole[i].count, &used);
    }
    frgi_fe_device_passes_place(d, &used);
    d->rows.count = used;
}

/** Has LSMR the values of the passes, both in double? */
static bool shares_values(const fe_device *d)
{
    return d->passes && d->real == sizeof(double);
}

frgi_buffer frgi_fe_device_values(const fe_device *d)
{
    const int64_t *at;
    return d->design.slopes && shares_values(d) ? frgi_fe_device_passes_numbers(d, &at) : d->v;
}

static void set_places(fe_device *d, int columns)
{
    const fe_rows *const g = d->g;
    const bool own = !shares_values(d);
    int64_t *const at = d->at, k = columns, used = 0;
    at[FD_K] = k;
    const struct {
        int which;
        int64_t count;
    } levels[] = {{FD_WEIGHT, g->weight ? g->n : 0},
                  {FD_VALUE, d->design.slopes && own ? d->t.entries : 0},
                  {FD_ELIM_VALUE, own ? g->n * elim_width(d) : 0},
                  {FD_ELIM_INVERSE, g->n_elim},
                  {FD_LEVEL_INVERSE, d->design.unknowns}},
      vectors[] = {{FD_HISTORY, 2 * FD_KNOWN * k},
                   {FD_Z, (d->by_level ? g->n_elim : g->n) * k},
                   {FD_SUM, d->t.pieces * k},
                   {FD_OF_SPREADS, at[FD_SPREADS] * k}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        frgi_fe_device_place_at(d, levels[i].which, levels[i].count, &used);
    }
    d->method->place_levels(d, &used);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        frgi_fe_device_place_at(d, vectors[i].which, vectors[i].count, &used);
    }
    d->method->place_columns(d, &used);
    d->reals = used;
    if (!own) { /* which do not move with the columns */
        const int64_t *there;
        frgi_fe_device_passes_numbers(d, &there);
        at[FD_VALUE] = there[FD_VALUE];
        at[FD_ELIM_VALUE] = there[FD_ELIM_VALUE];
    }
}

static void layout(fe_device *d)
{
    frgi_device_arena *const a = &d->memory;
    d->v = frgi_device_take(a, (size_t)d->reals * d->real);
    d->counts = frgi_device_take(a, (size_t)(2 * FDC_COUNT * d->at[FD_K]) * sizeof(int32_t));
    d->places = frgi_device_take(a, sizeof d->at);
}

static frgi_buffer part(frgi_buffer b, int64_t at, int64_t count, size_t size)
{
    return frgi_device_slice(b, (size_t)at * size, (size_t)count * size);
}

frgi_buffer frgi_fe_device_range(const fe_device *d, int which, int64_t from, int64_t count)
{
    return part(d->v, d->at[which] + from, count, d->real);
}

/** to <- x in reals of `real` bytes; waits. */
static frg_status put_reals(fe_device *d, frgi_buffer to, size_t real, const double *x,
                            int64_t count)
{
    if (real == sizeof(double)) {
        TRY(frgi_device_put(d->dev, to, x, to.bytes));
        return frgi_device_wait(d->dev);
    }
    float *const narrow = (float *)(void *)d->buffer;
    for (int64_t first = 0; first < count; first += d->capacity) {
        const int64_t left = count - first, n = left < d->capacity ? left : d->capacity;
        const frgi_buffer some = part(to, first, n, real);
        for (int64_t i = 0; i < n; i++) {
            narrow[i] = (float)x[first + i];
        }
        TRY(frgi_device_put(d->dev, some, narrow, some.bytes));
        TRY(frgi_device_wait(d->dev));
    }
    return FRG_OK;
}

frg_status frgi_fe_device_put(fe_device *d, int which, const double *x, int64_t count)
{
    return put_reals(d, frgi_fe_device_range(d, which, 0, count), d->real, x, count);
}

frg_status frgi_fe_device_get(fe_device *d, int which, int64_t from, double *x, int64_t count)
{
    float *const narrow = (float *)(void *)d->buffer;
    const bool wide = d->real == sizeof(double);
    const int64_t most = wide ? count : d->capacity;
    for (int64_t first = 0; first < count; first += most) {
        const int64_t left = count - first, n = left < most ? left : most;
        const frgi_buffer of = frgi_fe_device_range(d, which, from + first, n);
        TRY(frgi_device_get(d->dev, wide ? (void *)x : narrow, of, of.bytes));
        TRY(frgi_device_wait(d->dev));
        for (int64_t i = 0; i < n && !wide; i++) {
            x[first + i] = (double)narrow[i];
        }
    }
    return FRG_OK;
}

frg_status frgi_fe_device_get_counts(fe_device *d, int slot, int32_t *count)
{
    const size_t bytes = (size_t)(FDC_COUNT * d->columns) * sizeof *count;
    const frgi_buffer of = frgi_device_slice(d->counts, (size_t)slot * bytes, bytes);
    return frgi_device_get(d->dev, count, of, bytes);
}

frg_status frgi_fe_device_get_history(fe_device *d, const int32_t *count)
{
    const int64_t k = d->columns, second = FD_KNOWN * k;
    int64_t known = 0;
    for (int64_t c = 0; c < k; c++) {
        const int64_t steps = count[FDC_STEPS * k + c];
        known = steps > known ? steps : known;
    }
    known = known < FD_KNOWN ? known : FD_KNOWN;
    TRY(frgi_fe_device_get(d, FD_HISTORY, 0, d->history, known * k));
    return frgi_fe_device_get(d, FD_HISTORY, second, d->history + second, known * k);
}

frg_status frgi_fe_device_put_numbers(fe_device *d, int64_t at, const int32_t *x, int64_t count)
{
    return frgi_device_put(d->dev, part(d->rows.w, at, count, sizeof *x), x,
                           (size_t)count * sizeof *x);
}

static frg_status put_whole(fe_device *d, int which, const int32_t *x, int64_t count)
{
    return frgi_fe_device_put_numbers(d, d->at[which], x, count);
}

static frg_status put_starts(fe_device *d)
{
    const int64_t count = d->g->n_elim + 1;
    int32_t *starts;
    TRY(NEW(d->ctx, &starts, count, "starts of levels"));
    for (int64_t u = 0; u < count; u++) {
        starts[u] = (int32_t)d->g->elim_start[u];
    }
    frg_status status = put_whole(d, FD_ELIM_START, starts, count);
    status = status < 0 ? status : frgi_device_wait(d->dev);
    DROP(d->ctx, &starts);
    return status;
}

/** to <- the values of all rows at their indices, or `own`: of their eliminated level. */
static frg_status put_values(fe_device *d, bool own, frgi_buffer to, size_t real)
{
    enum { ROWS = 4096 };
    const fe_basis *const b = d->design.slopes;
    const int width = own ? elim_width(d) : d->design.width;
    double *values;
    frg_status status = FRG_OK;
    TRY(NEW(d->ctx, &values, (int64_t)ROWS * width, "values of slopes"));
    for (int64_t i = 0, u = 0; i < d->g->n && status >= 0; i++) {
        while (i == d->g->elim_start[u + 1]) {
            u++;
        }
        double *const at = values + i % ROWS * width;
        for (int j = 0; j < width && own; j++) {
            at[j] = fe_basis_value(&b->elim, u, i, j);
        }
        if (!own) {
            row_values(b, i, at);
        }
        if (i % ROWS == ROWS - 1 || i == d->g->n - 1) {
            const int64_t rows = i % ROWS + 1, count = rows * width;
            const frgi_buffer some = part(to, (i + 1 - rows) * width, count, real);
            status = put_reals(d, some, real, values, count);
        }
    }
    DROP(d->ctx, &values);
    return status;
}

frg_status frgi_fe_device_put_values(fe_device *d, frgi_buffer v, const int64_t *at, size_t real)
{
    const int64_t entries = d->design.slopes ? d->t.entries : 0, own = d->g->n * elim_width(d);
    TRY(entries > 0 ? put_values(d, false, part(v, at[FD_VALUE], entries, real), real) : FRG_OK);
    return own > 0 ? put_values(d, true, part(v, at[FD_ELIM_VALUE], own, real), real) : FRG_OK;
}

/** Numbers of the rows, which the passes may have there in double already. */
static frg_status put_or_copy(fe_device *d, int which, const double *x, int64_t count)
{
    const int64_t *at;
    const frgi_buffer there = frgi_fe_device_passes_numbers(d, &at);
    if (there.handle && d->real == sizeof(double)) {
        const frgi_buffer from = part(there, at[which], count, sizeof(double));
        return frgi_device_copy(d->dev, frgi_fe_device_range(d, which, 0, count), from, from.bytes);
    }
    return frgi_fe_device_put(d, which, x, count);
}

/** The weights of rows and what depends on them. */
static frg_status put_weights(fe_device *d)
{
    const fe_rows *const g = d->g;
    double *scratch;
    TRY(g->weight ? put_or_copy(d, FD_WEIGHT, g->weight, g->n) : FRG_OK);
    TRY(put_or_copy(d, FD_ELIM_INVERSE, g->elim_inverse, g->n_elim));
    TRY(frgi_fe_device_put(d, FD_LEVEL_INVERSE, d->design.inverse, d->design.unknowns));
    TRY(NEW(d->ctx, &scratch, d->design.unknowns, "levels on a device"));
    const frg_status status = d->method->put_levels(d, scratch);
    DROP(d->ctx, &scratch);
    return status;
}

frg_status frgi_fe_device_reweight(fe_device *d)
{
    TRY(frgi_fe_device_passes_put_weights(d));
    return d->most > 0 ? put_weights(d) : FRG_OK; /* which are put when there is memory for them */
}

static void drop_transposed(fe_device *d)
{
    DROP(d->ctx, &d->t.entry);
    DROP(d->ctx, &d->t.row_entry);
    DROP(d->ctx, &d->t.piece);
    DROP(d->ctx, &d->t.piece_of);
    DROP(d->ctx, &d->t.level_piece);
}

static frg_status put_rows(fe_device *d)
{
    TRY(put_starts(d));
    TRY(put_whole(d, FD_INDEX, d->design.index, d->t.entries));
    TRY(put_whole(d, FD_PIECE, d->t.piece, 2 * d->t.pieces));
    TRY(put_whole(d, FD_LEVEL_PIECE, d->t.level_piece, d->design.unknowns + 1));
    TRY(put_whole(d, FD_PIECE_OF, d->t.piece_of, d->t.pieces));
    TRY(put_whole(d, FD_ENTRY, d->t.entry, d->t.entries));
    TRY(frgi_fe_device_passes_put_rows(d));
    return frgi_device_wait(d->dev);
}

frg_status frgi_fe_device_open_rows(fe_device *d)
{
    fe_device_numbers *const r = &d->rows;
    const size_t bytes = (size_t)r->count * sizeof(int32_t);
    frg_status status;
    if (r->w.handle) {
        return FRG_OK;
    }
    r->memory = (frgi_device_arena){.align = frgi_device_is(d->dev)->align};
    frgi_device_take(&r->memory, bytes);
    TRY(frgi_device_arena_open(&r->memory, d->dev, "rows of fixed effects on a device"));
    r->w = frgi_device_take(&r->memory, bytes);
    TRY_TO(failed, put_rows(d));
    drop_transposed(d); /* the device has it */
    return FRG_OK;
failed:
    frgi_device_arena_close(&r->memory, d->dev);
    r->w = (frgi_buffer){0};
    return status;
}

/** What belongs to rows and levels in the type of the vectors. */
static frg_status put_numbers(fe_device *d)
{
    TRY(shares_values(d) ? FRG_OK : frgi_fe_device_put_values(d, d->v, d->at, d->real));
    return put_weights(d);
}

static void drop_memory(fe_device *d)
{
    frgi_device_arena_close(&d->memory, d->dev);
    DROP(d->ctx, &d->buffer);
    DROP(d->ctx, &d->history);
    d->columns = d->most = 0;
}

static frg_status open_memory(fe_device *d, int columns)
{
    const fe_rows *const g = d->g;
    const int64_t rows = g->n < COPIED_ROWS ? g->n : COPIED_ROWS;
    const int64_t sums = d->at[FD_SPREADS] + 2 * d->at[FD_UPDATES];
    const int64_t unknowns = d->design.unknowns > FD_KNOWN ? d->design.unknowns : FD_KNOWN;
    const int64_t vectors = rows > unknowns ? rows : unknowns;
    d->capacity = (vectors > sums ? vectors : sums) * columns;
    TRY(NEW(d->ctx, &d->buffer, d->capacity, "copies to a device"));
    TRY(NEW(d->ctx, &d->history, 2 * FD_KNOWN * columns, "history of a solve"));
    d->memory = (frgi_device_arena){.align = frgi_device_is(d->dev)->align};
    layout(d);
    TRY(frgi_device_arena_open(&d->memory, d->dev, "fixed effects on a device"));
    layout(d);
    return put_numbers(d);
}

frg_status frgi_fe_device_prepare(fe_device *d, int columns)
{
    if (d->columns == columns) {
        return FRG_OK;
    }
    TRY(frgi_fe_device_open_rows(d));
    frg_status status = FRG_OK;
    const bool fits = columns <= d->most;
    if (!fits) {
        drop_memory(d);
    }
    set_places(d, columns);
    if (!fits) {
        TRY_TO(failed, open_memory(d, columns));
        d->most = columns;
    }
    TRY_TO(failed, frgi_device_put(d->dev, d->places, d->at, sizeof d->at));
    TRY_TO(failed, frgi_device_wait(d->dev));
    d->columns = columns;
    return FRG_OK;
failed:
    drop_memory(d);
    return status;
}

/* ---- columns side by side -------------------------------------------------------------------- */

/* A row's indices are read once for all K columns.  By a model that no GPU has been held against a
 * step of conjugate gradients moves these bytes of a row and a column, with r reduced indices, in
 * double:
 *
 *     8 r / K           indices, by rows and transposed
 *     8                 z, written
 *     32 r s(K) / K     z, gathered by sectors of 32 bytes; K numbers touch s(K) of them on average
 *     32 r s(K) / K     p, the same, where its R K numbers are more than the cache holds
 *
 *     K                        1     2     3     4     5     8    11    12    16
 *     r = 1, p in the cache   48    28  26.7    18  22.4    17  18.9  16.7  16.5
 *     r = 1, p beyond it      80    44  42.7    26  35.2    25  29.1  24.7  24.5
 *
 * So wide blocks are the better ones, fewer lanes only where p then stays in the cache: 4 of them
 * there move less than 16 beyond it, and 2 do not. */
enum { NEAR_BYTES = 32 << 20 /* of p: of the 40 MB of an A100, the 50 of an H100 */ };
static const struct {
    int lanes, most; /* bytes of a column of p */
} widths[] = {{FE_MAX_LANES, NEAR_BYTES / FE_MAX_LANES},
              {FE_HOST_LANES, NEAR_BYTES / FE_HOST_LANES},
              {4, NEAR_BYTES / 4}};

/** More than the host's only where x and z of the passes, which lie in one block of memory, fit. */
static int lanes_of(const frgi_device *dev, const fe_rows *g, int64_t unknowns, size_t real)
{
    const double column = (double)unknowns * (double)real;
    const double both = 2 * sizeof(double) * (double)g->n * FE_MAX_LANES;
    const bool fits = both <= (double)frgi_device_is(dev)->largest;
    int lanes = FE_MAX_LANES;
    for (size_t i = sizeof widths / sizeof *widths; i-- > 0;) {
        lanes = column <= widths[i].most ? widths[i].lanes : lanes;
    }
    return lanes > FE_HOST_LANES && !fits ? FE_HOST_LANES : lanes;
}

static size_t size_of(const frgi_device *dev, frg_fe_dtype dtype)
{
    return frgi_device_is(dev)->f64 && dtype == FRG_FE_F64 ? sizeof(double) : sizeof(float);
}

int frgi_fe_device_lanes(const fe_device *d)
{
    return lanes_of(d->dev, d->g, d->design.unknowns, d->real);
}

int frgi_fe_device_lanes_of(const frgi_device *dev, const fe_rows *g, frg_fe_dtype dtype)
{
    return lanes_of(dev, g, g->n_reduced, size_of(dev, dtype));
}

/* ---- opening --------------------------------------------------------------------------------- */

frg_status frgi_fe_device_create(fe_device **out, frg_context *ctx, fe_device_place where,
                                 const fe_rows *g, const fe_basis *slopes, const frg_demean_opts *o)
{
    fe_device *d;
    *out = NULL;
    const int width = slopes ? frgi_basis_row_width(slopes) : g->n_remaining;
    const int most = slopes && slopes->elim.width > width ? slopes->elim.width : width;
    const double entries = (double)g->n * (most > 1 ? most : 1);
    if (entries >= INT32_MAX) {
        FAIL(ctx, E_TOO_BIG, "%.0f entries of the design on %s, which takes %d", entries,
             frgi_device_name(where.dev), INT32_MAX);
    }
    const size_t real = size_of(where.dev, o->dtype);
    TRY(NEW0(ctx, &d, 1, "fixed effects on a device"));
    d->ctx = ctx;
    d->dev = where.dev;
    d->g = g;
    d->design = (fe_device_design){.slopes = slopes,
                                   .unknowns = slopes ? slopes->n_reduced : g->n_reduced,
                                   .width = width,
                                   .index = g->index,
                                   .inverse = g->level_inverse};
    d->real = real;
    d->method = o->method == FRG_FE_LSMR ? &frgi_fe_device_lsmr_method : &frgi_fe_device_cg_method;
    d->by_level = d->method->by_level && g->n_remaining == 1 && !g->weight;
    d->eager = o->fused == FRG_FE_FUSED_OFF;
    d->plain = o->precond == FRG_FE_PRECOND_OFF;
    d->group = where.group > 0 ? where.group : GROUP;
    while (d->group > frgi_device_is(d->dev)->group_most) {
        d->group /= 2;
    }
    frg_status status = FRG_OK;
    if (d->design.unknowns > 0) {
        status = frgi_device_load(d->dev, *d->method->kernels,
                                  real == sizeof(double) ? FRGI_F64 : FRGI_F32, &d->program);
    }
    if (status >= 0 && frgi_device_is(d->dev)->f64) {
        status = frgi_fe_device_passes_create(d);
    }
    status = status < 0 || !slopes ? status : index_slopes(d);
    status = status < 0 ? status : transpose(d);
    if (status < 0) {
        frgi_fe_device_destroy(d);
        return status;
    }
    place_rows(d);
    *out = d;
    return FRG_OK;
}

void frgi_fe_device_destroy(fe_device *d)
{
    if (!d) {
        return;
    }
    frg_context *const ctx = d->ctx;
    drop_memory(d);
    frgi_fe_device_passes_destroy(d);
    frgi_device_arena_close(&d->rows.memory, d->dev);
    drop_transposed(d);
    DROP(ctx, &d->design.own_index);
    DROP(ctx, &d->design.own_inverse);
    DROP(ctx, &d);
}

bool frgi_fe_device_in_float(const fe_device *d)
{
    return d->real == sizeof(float);
}

const char *frgi_fe_device_place(const fe_device *d)
{
    return frgi_device_name(d->dev);
}

const char *frgi_fe_device_method(const fe_device *d)
{
    return d->method->name[2 * d->eager + frgi_fe_device_in_float(d)];
}

frg_status frgi_fe_device_pieces(fe_device *d, int slot)
{
    const int64_t groups =
        (d->t.short_pieces + FD_PIECE_GROUP - 1) / FD_PIECE_GROUP + d->t.pieces - d->t.short_pieces;
    return LAUNCH(d->dev, d->program, "fe_pieces", groups, 1, d->group, BUFFER(d->v),
                  BUFFER(frgi_fe_device_values(d)), BUFFER(d->rows.w), BUFFER(d->counts),
                  BUFFER(d->places), INT32(slot));
}

double frgi_fe_device_ritz(const fe_device *d, int c, int64_t steps)
{
    const double *const below2 = d->history + FD_KNOWN * (int64_t)d->columns;
    return frgi_ritz_smallest(d->history + c, below2 + c, d->columns,
                              steps < FD_KNOWN ? steps : FD_KNOWN);
}
