/* fe_device.c - the host's side of kernels/fe/fe_cg.cl.h: the transposed index, memory, batches.
 *
 * Steps are submitted in batches of 1, 2, 4, ... BATCH, four kernels each; kernels behind a
 * column's last step leave it alone, and those behind the last of all do nothing.
 */
#include "fe/fe_device.h"

#include <math.h>
#include <string.h>

#include "device/device.h"
#include "fe/fe_at.cl.h"
#include "sparse/ritz.h"

enum { GROUP = 128, BATCH = 16 };
static const double GAIN_F32 = 4e-6; /* a solve in float leaves this much of the level means */

extern const frgi_kernels frgi_kernels_fe;

/** The transposed index: for each reduced unknown its rows (or their eliminated levels), in pieces.
 */
typedef struct {
    int64_t entries, pieces, short_pieces;
    int32_t *entry, *piece, *level_piece, *piece_of;
} transposed;

struct fe_device {
    frg_context *ctx;
    frgi_device *dev;
    const fe_rows *g;
    const frgi_program *program;
    size_t real; /* bytes */
    int group;
    bool by_level, plain; /* plain: no preconditioner */
    transposed t;
    int64_t at[FD_AT_COUNT], reals, whole;
    int columns; /* K that memory is laid out for; 0: none */
    frgi_buffer v, w, counts, places;
    frgi_device_arena memory;
    double *buffer; /* of copies, R x K */
};

frg_status frgi_fe_device_check(frg_context *ctx, const frgi_device *dev, const frg_demean_opts *o,
                                bool slopes)
{
    const struct {
        bool wrong;
        const char *what;
    } rules[] = {
        {slopes, "varying slopes"},
        {o->method == FRG_FE_AUTO, "method auto (take method cg)"},
        {o->method == FRG_FE_LSMR || o->method == FRG_FE_MLSMR, "method lsmr"},
        {o->method == FRG_FE_DIRECT, "method direct"},
        {o->precond == FRG_FE_PRECOND_AC, "precond ac"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].wrong) {
            FAIL(ctx, E_DEVICE_STEP, "demeaning: %s does not run on %s", rules[i].what,
                 frgi_device_name(dev));
        }
    }
    return FRG_OK;
}

/* ---- the transposed index -------------------------------------------------------------------- */

static void fill_entries(const fe_rows *g, bool by_level, int32_t *next, int32_t *entry)
{
    for (int64_t u = 0; u < g->n_elim; u++) {
        for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
            for (int f = 0; f < g->n_remaining; f++) {
                const int32_t l = g->index[i * g->n_remaining + f];
                entry[next[l]++] = (int32_t)(by_level ? u : i);
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
    transposed *const t = &d->t;
    int64_t at[2] = {0, t->short_pieces}, listed = 0;
    for (int64_t l = 0; l < d->g->n_reduced; l++) {
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
    t->level_piece[d->g->n_reduced] = (int32_t)listed;
}

static frg_status transpose(fe_device *d)
{
    const fe_rows *const g = d->g;
    transposed *const t = &d->t;
    int32_t *first = NULL, *next = NULL;
    frg_status status = FRG_OK;
    t->entries = g->n * g->n_remaining;
    TRY_TO(done, NEW0(d->ctx, &first, g->n_reduced + 2, "transposed index"));
    TRY_TO(done, NEW(d->ctx, &next, g->n_reduced + 1, "transposed index"));
    for (int64_t e = 0; e < t->entries; e++) {
        first[g->index[e] + 1]++;
    }
    for (int64_t l = 0; l < g->n_reduced; l++) {
        int64_t each;
        const int64_t count = first[l + 1], pieces = pieces_of(count, &each);
        t->pieces += pieces;
        t->short_pieces += count > FD_ITEM_ENTRIES ? 0 : pieces;
        first[l + 1] += first[l];
        next[l] = first[l];
    }
    TRY_TO(done, NEW(d->ctx, &t->entry, t->entries + 1, "transposed index"));
    TRY_TO(done, NEW(d->ctx, &t->piece, 2 * t->pieces + 1, "transposed index"));
    TRY_TO(done, NEW(d->ctx, &t->piece_of, t->pieces + 1, "transposed index"));
    TRY_TO(done, NEW(d->ctx, &t->level_piece, g->n_reduced + 1, "transposed index"));
    fill_entries(g, d->by_level, next, t->entry);
    cut_pieces(d, first);
done:
    DROP(d->ctx, &first);
    DROP(d->ctx, &next);
    return status;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void place(int64_t *at, int which, int64_t count, int64_t *used)
{
    at[which] = *used;
    *used += count;
}

static void set_places(fe_device *d, int columns)
{
    const fe_rows *const g = d->g;
    int64_t *const at = d->at, k = columns, unknowns = g->n_reduced * k, used = 0;
    at[FD_U] = g->n_elim;
    at[FD_R] = g->n_reduced;
    at[FD_K] = k;
    at[FD_REMAINING] = g->n_remaining;
    at[FD_WEIGHTED] = g->weight != NULL;
    at[FD_BY_LEVEL] = d->by_level;
    at[FD_SHORT] = d->t.short_pieces;
    at[FD_PIECES] = d->t.pieces;
    at[FD_SPREADS] = (g->n_elim + FD_SPREAD - 1) / FD_SPREAD;
    at[FD_UPDATES] = (g->n_reduced + FD_UPDATE - 1) / FD_UPDATE;
    place(at, FD_ELIM_START, g->n_elim + 1, &used);
    place(at, FD_INDEX, d->t.entries, &used);
    place(at, FD_PIECE, 2 * d->t.pieces, &used);
    place(at, FD_LEVEL_PIECE, g->n_reduced + 1, &used);
    place(at, FD_PIECE_OF, d->t.pieces, &used);
    place(at, FD_ENTRY, d->t.entries, &used);
    d->whole = used;
    used = 0;
    place(at, FD_WEIGHT, g->weight ? g->n : 0, &used);
    place(at, FD_ELIM_INVERSE, g->n_elim, &used);
    place(at, FD_BASE, g->n_reduced, &used);
    place(at, FD_INVERSE, g->n_reduced, &used);
    place(at, FD_LEVEL_INVERSE, g->n_reduced, &used);
    place(at, FD_TARGET, FDT_COUNT * k, &used);
    place(at, FD_STATE, 2 * FDS_COUNT * k, &used);
    place(at, FD_ALPHA, k, &used);
    place(at, FD_HISTORY, 2 * FD_KNOWN * k, &used);
    place(at, FD_A, unknowns, &used);
    place(at, FD_RESIDUAL, unknowns, &used);
    place(at, FD_P, unknowns, &used);
    place(at, FD_Z, (d->by_level ? g->n_elim : g->n) * k, &used);
    place(at, FD_SUM, d->t.pieces * k, &used);
    place(at, FD_OF_SPREADS, at[FD_SPREADS] * k, &used);
    place(at, FD_OF_UPDATES, at[FD_UPDATES] * 3 * k, &used);
    d->reals = used;
}

static void layout(fe_device *d)
{
    frgi_device_arena *const a = &d->memory;
    d->v = frgi_device_take(a, (size_t)d->reals * d->real);
    d->w = frgi_device_take(a, (size_t)d->whole * sizeof(int32_t));
    d->counts = frgi_device_take(a, (size_t)(2 * FDC_COUNT * d->at[FD_K]) * sizeof(int32_t));
    d->places = frgi_device_take(a, sizeof d->at);
}

static frgi_buffer part(frgi_buffer b, int64_t at, int64_t count, size_t size)
{
    return (frgi_buffer){b.handle, b.offset + (size_t)at * size, (size_t)count * size};
}

/** Vector `which` <- x in the device's type; waits. */
static frg_status put(fe_device *d, int which, const double *x, int64_t count)
{
    const size_t most = (size_t)(d->g->n_reduced * d->columns);
    const frgi_buffer to = part(d->v, d->at[which], count, d->real);
    if (d->real == sizeof(double)) {
        TRY(frgi_device_put(d->dev, to, x, to.bytes));
        return frgi_device_wait(d->dev);
    }
    float *const narrow = (float *)(void *)d->buffer;
    for (int64_t first = 0; first < count; first += (int64_t)most) {
        const int64_t left = count - first, n = left < (int64_t)most ? left : (int64_t)most;
        for (int64_t i = 0; i < n; i++) {
            narrow[i] = (float)x[first + i];
        }
        TRY(frgi_device_put(d->dev, part(to, first, n, d->real), narrow, (size_t)n * d->real));
        TRY(frgi_device_wait(d->dev));
    }
    return FRG_OK;
}

/** Up to R x K numbers, or FD_KNOWN x K, of vector `which`, from `from` on. */
static frg_status get(fe_device *d, int which, int64_t from, double *x, int64_t count)
{
    const frgi_buffer of = part(d->v, d->at[which] + from, count, d->real);
    float *const narrow = (float *)(void *)d->buffer;
    const bool wide = d->real == sizeof(double);
    TRY(frgi_device_get(d->dev, wide ? (void *)x : narrow, of, of.bytes));
    TRY(frgi_device_wait(d->dev));
    for (int64_t i = 0; i < count && !wide; i++) {
        x[i] = (double)narrow[i];
    }
    return FRG_OK;
}

static frg_status put_whole(fe_device *d, int which, const int32_t *x, int64_t count)
{
    return frgi_device_put(d->dev, part(d->w, d->at[which], count, sizeof *x), x,
                           (size_t)count * sizeof *x);
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

/** The rows and what belongs to levels, in memory that is laid out for d->columns. */
static frg_status put_rows(fe_device *d)
{
    const fe_rows *const g = d->g;
    double *base;
    frg_status status = FRG_OK;
    TRY(put_starts(d));
    TRY(put_whole(d, FD_INDEX, g->index, d->t.entries));
    TRY(put_whole(d, FD_PIECE, d->t.piece, 2 * d->t.pieces));
    TRY(put_whole(d, FD_LEVEL_PIECE, d->t.level_piece, g->n_reduced + 1));
    TRY(put_whole(d, FD_PIECE_OF, d->t.piece_of, d->t.pieces));
    TRY(put_whole(d, FD_ENTRY, d->t.entry, d->t.entries));
    TRY(frgi_device_put(d->dev, d->places, d->at, sizeof d->at));
    if (g->weight) {
        TRY(put(d, FD_WEIGHT, g->weight, g->n));
    }
    TRY(put(d, FD_ELIM_INVERSE, g->elim_inverse, g->n_elim));
    TRY(put(d, FD_LEVEL_INVERSE, g->level_inverse, g->n_reduced));
    TRY(NEW(d->ctx, &base, g->n_reduced, "levels on a device"));
    for (int64_t l = 0; l < g->n_reduced; l++) {
        base[l] = d->by_level ? g->level_weight[l] : 0;
    }
    TRY_TO(done, put(d, FD_BASE, base, g->n_reduced));
    for (int64_t l = 0; l < g->n_reduced; l++) {
        base[l] = d->plain ? 1 : g->level_inverse[l];
    }
    TRY_TO(done, put(d, FD_INVERSE, base, g->n_reduced));
done:
    DROP(d->ctx, &base);
    return status;
}

static void drop_memory(fe_device *d)
{
    frgi_device_arena_close(&d->memory, d->dev);
    DROP(d->ctx, &d->buffer);
    d->columns = 0;
}

/** Memory for K columns, where it is not there. */
static frg_status prepare(fe_device *d, int columns)
{
    if (d->columns == columns) {
        return FRG_OK;
    }
    drop_memory(d);
    set_places(d, columns);
    const int64_t rows = d->g->n_reduced > FD_KNOWN ? d->g->n_reduced : FD_KNOWN;
    TRY(NEW(d->ctx, &d->buffer, rows * columns, "copies to a device"));
    d->memory = (frgi_device_arena){.align = frgi_device_is(d->dev)->align};
    layout(d);
    TRY(frgi_device_arena_open(&d->memory, d->dev, "fixed effects on a device"));
    layout(d);
    d->columns = columns;
    const frg_status status = put_rows(d);
    if (status < 0) {
        drop_memory(d);
    }
    return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

frg_status frgi_fe_device_create(fe_device **out, frg_context *ctx, fe_device_place where,
                                 const fe_rows *g, const frg_demean_opts *o)
{
    fe_device *d;
    *out = NULL;
    const double entries = (double)g->n * (g->n_remaining > 1 ? g->n_remaining : 1);
    if (entries >= INT32_MAX) {
        FAIL(ctx, E_TOO_BIG, "%.0f entries of the design on %s, which takes %d", entries,
             frgi_device_name(where.dev), INT32_MAX);
    }
    const bool wide = frgi_device_is(where.dev)->f64 && o->dtype == FRG_FE_F64;
    TRY(NEW0(ctx, &d, 1, "fixed effects on a device"));
    d->ctx = ctx;
    d->dev = where.dev;
    d->g = g;
    d->real = wide ? sizeof(double) : sizeof(float);
    d->by_level = g->n_remaining == 1 && !g->weight;
    d->plain = o->precond == FRG_FE_PRECOND_OFF;
    d->group = where.group > 0 ? where.group : GROUP;
    while (d->group > frgi_device_is(d->dev)->group_most) {
        d->group /= 2;
    }
    frg_status status =
        frgi_device_load(d->dev, &frgi_kernels_fe, wide ? FRGI_F64 : FRGI_F32, &d->program);
    status = status < 0 ? status : transpose(d);
    if (status < 0) {
        frgi_fe_device_destroy(d);
        return status;
    }
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
    DROP(ctx, &d->t.entry);
    DROP(ctx, &d->t.piece);
    DROP(ctx, &d->t.piece_of);
    DROP(ctx, &d->t.level_piece);
    DROP(ctx, &d);
}

const char *frgi_fe_device_place(const fe_device *d)
{
    return frgi_device_name(d->dev);
}

const char *frgi_fe_device_method(const fe_device *d)
{
    return d->real == sizeof(double) ? "cg rows on a device" : "cg rows on a device, float32";
}

/* ---- the iteration --------------------------------------------------------------------------- */

/** Where a solve is. */
typedef struct {
    int slot;
    int32_t count[FDC_COUNT * FE_MAX_LANES];
    double state[FDS_COUNT * FE_MAX_LANES];
} progress;

static frg_status update(fe_device *d, int slot, bool start)
{
    return LAUNCH(d->dev, d->program, "fe_update", d->at[FD_UPDATES], 1, d->group, BUFFER(d->v),
                  BUFFER(d->w), BUFFER(d->counts), BUFFER(d->places), INT32(slot), INT32(start));
}

static frg_status direction(fe_device *d, int slot, bool start)
{
    return LAUNCH(d->dev, d->program, "fe_direction", d->at[FD_UPDATES], 1, d->group, BUFFER(d->v),
                  BUFFER(d->counts), BUFFER(d->places), INT32(slot), INT32(start));
}

static frg_status submit(fe_device *d, int64_t steps, int *slot)
{
    const int64_t groups =
        (d->t.short_pieces + FD_PIECE_GROUP - 1) / FD_PIECE_GROUP + d->t.pieces - d->t.short_pieces;
    for (int64_t s = 0; s < steps; s++) {
        TRY(LAUNCH(d->dev, d->program, "fe_spread", d->at[FD_SPREADS], 1, d->group, BUFFER(d->v),
                   BUFFER(d->w), BUFFER(d->counts), BUFFER(d->places), INT32(*slot)));
        TRY(LAUNCH(d->dev, d->program, "fe_pieces", groups, 1, d->group, BUFFER(d->v), BUFFER(d->w),
                   BUFFER(d->counts), BUFFER(d->places), INT32(*slot)));
        TRY(update(d, *slot, false));
        TRY(direction(d, *slot, false));
        *slot = 1 - *slot;
    }
    return FRG_OK;
}

/** The counts and states of all columns; the one wait between two batches. */
static frg_status poll(fe_device *d, progress *p)
{
    const int64_t k = d->columns;
    float narrow[FDS_COUNT * FE_MAX_LANES];
    const bool wide = d->real == sizeof(double);
    const frgi_buffer of =
        part(d->v, d->at[FD_STATE] + p->slot * FDS_COUNT * k, FDS_COUNT * k, d->real);
    TRY(frgi_device_get(d->dev, wide ? (void *)p->state : narrow, of, of.bytes));
    const frgi_buffer counts =
        part(d->counts, p->slot * FDC_COUNT * k, FDC_COUNT * k, sizeof(int32_t));
    TRY(frgi_device_get(d->dev, p->count, counts, counts.bytes));
    TRY(frgi_device_wait(d->dev));
    for (int64_t i = 0; i < FDS_COUNT * k && !wide; i++) {
        p->state[i] = (double)narrow[i];
    }
    return FRG_OK;
}

static frg_status put_targets(fe_device *d, const fe_cg_target *target, int64_t max_steps)
{
    const int k = d->columns;
    double numbers[FDT_COUNT * FE_MAX_LANES];
    int32_t count[FDC_COUNT * FE_MAX_LANES] = {0};
    for (int c = 0; c < k; c++) {
        const fe_cg_target *const t = &target[c];
        numbers[FDT_WEIGHT * k + c] = t->total_weight;
        numbers[FDT_WITHIN * k + c] = t->within;
        numbers[FDT_NOISE * k + c] = t->noise;
        numbers[FDT_TOTAL * k + c] = t->total;
        numbers[FDT_TOL * k + c] = t->tol;
        numbers[FDT_FLOOR * k + c] = t->floor;
        numbers[FDT_GAIN * k + c] = d->real == sizeof(double) ? 0 : GAIN_F32;
        const int64_t most = t->most < max_steps ? t->most : max_steps;
        count[FDC_MOST * k + c] = (int32_t)(most < INT32_MAX ? most : INT32_MAX);
    }
    TRY(put(d, FD_TARGET, numbers, FDT_COUNT * k));
    TRY(frgi_device_put(d->dev, d->counts, count, (size_t)(FDC_COUNT * k) * sizeof *count));
    return frgi_device_wait(d->dev);
}

/** How the columns ended; their smallest Ritz values. */
static frg_status finish(fe_device *d, const fe_cg_work *w, const progress *p, fe_cg_column *column)
{
    const int k = d->columns;
    int64_t known = 0;
    for (int c = 0; c < k; c++) {
        const int64_t steps = p->count[FDC_STEPS * k + c];
        known = steps > known ? steps : known;
    }
    known = known < FD_KNOWN ? known : FD_KNOWN;
    TRY(get(d, FD_HISTORY, 0, w->diagonal, known * k));
    TRY(get(d, FD_HISTORY, (int64_t)FD_KNOWN * k, w->below2, known * k));
    for (int c = 0; c < k; c++) {
        const int done = p->count[FDC_DONE * k + c];
        const int64_t steps = p->count[FDC_STEPS * k + c];
        const double rho = p->state[FDS_RHO * k + c], first = p->state[FDS_FIRST_RHO * k + c];
        column[c] = (fe_cg_column){
            .steps = steps,
            .done = done == FD_REACHED || done == FD_NULL,
            .given_up = done == FD_GIVEN_UP,
            .energy = p->state[FDS_ENERGY * k + c],
            .rate = steps > 0 && first > 0 ? pow(rho / first, 0.5 / (double)steps) : 0,
            .lambda = frgi_ritz_smallest(w->diagonal + c, w->below2 + c, k,
                                         steps < FD_KNOWN ? steps : FD_KNOWN)};
    }
    return FRG_OK;
}

/** Columns that go on, and the largest of their residuals. */
static int look(const fe_device *d, const progress *p, const fe_cg_target *target, double *worst)
{
    const int k = d->columns;
    int running = 0;
    *worst = 0;
    for (int c = 0; c < k; c++) {
        if (p->count[FDC_DONE * k + c] == FD_RUNNING) {
            running++;
            *worst = fmax(*worst, sqrt(p->state[FDS_GRADIENT * k + c] / target[c].total));
        }
    }
    return running;
}

frg_status frgi_fe_device_cg(fe_device *d, const fe_cg_work *w, int lanes, int64_t max_steps,
                             const char *phase, const fe_cg_target *target, fe_cg_column *column)
{
    const int64_t length = d->g->n_reduced * lanes;
    progress p = {.slot = 0};
    frg_status beat = FRG_OK;
    double worst;
    TRY(prepare(d, lanes));
    memset(w->x, 0, (size_t)length * sizeof *w->x);
    TRY(put(d, FD_A, w->x, length));
    TRY(put(d, FD_RESIDUAL, w->r, length));
    TRY(put_targets(d, target, max_steps));
    TRY(update(d, p.slot, true));
    TRY(direction(d, p.slot, true));
    p.slot = 1 - p.slot;
    TRY(poll(d, &p));
    int running = look(d, &p, target, &worst);
    for (int64_t made = 0, batch = 1; running > 0 && made < max_steps && beat == FRG_OK;
         batch = 2 * batch < BATCH ? 2 * batch : BATCH) {
        const int64_t steps = batch < max_steps - made ? batch : max_steps - made;
        TRY(submit(d, steps, &p.slot));
        TRY(poll(d, &p));
        made += steps;
        running = look(d, &p, target, &worst);
        beat = frgi_heartbeat(d->ctx, &(frg_progress){.solver = "fe",
                                                      .phase = phase,
                                                      .done = made,
                                                      .total = max_steps,
                                                      .residual = worst,
                                                      .target = target[0].tol});
    }
    TRY(get(d, FD_A, 0, w->x, length));
    TRY(get(d, FD_RESIDUAL, 0, w->r, length));
    TRY(finish(d, w, &p, column));
    return beat;
}
