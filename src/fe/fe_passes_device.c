/* fe_passes_device.c - the host's side of kernels/fe_passes: columns brought to a device, their
 * right-hand sides, their residuals with the audit, and the columns brought back.
 *
 * All sums are in double, of columns of either type; what is left of a column stays in double
 * between the rounds of its refinement.  Columns lie in the order of the device's rows, those of a
 * block side by side.  A row-major matrix of a few columns more goes over as a whole, so that
 * the host does not take it apart; anything else goes a block of columns at a time, and an array
 * that lies on the device is read and written where it is.
 */
#include "fe/fe_device_rows.h"

#include <string.h>

#include "fe/fe_passes_at.h"

enum {
    WHOLE_COLUMNS = 32,    /* of a matrix that goes over as a whole, at most */
    MOVED_TOGETHER = 65536 /* numbers of a block that is neither row- nor column-major */
};
enum { MOVED = 4096 }; /* numbers that a group of basic_rows.cl.h moves */

extern const frgi_kernels frgi_kernels_fe_passes;

/** Elements in the caller's type: (i, j) lies at `at + i row + j column`. */
typedef struct {
    frgi_buffer in;
    int64_t at, row, column;
} raw_matrix;

/** Sizes that there is memory for. */
typedef struct {
    int64_t lanes; /* of all blocks */
    int most;      /* lanes of a block */
    size_t raw;    /* bytes of columns in the caller's type */
} passes_shape;

typedef struct fe_device_columns {
    const frgi_program *program;
    const frgi_program *moves[2];        /* of columns of f64, of f32; loaded with the first */
    double scale[FE_MAX_LANES];          /* the queue's until a wait */
    int64_t at[FD_AT_COUNT];             /* the queue's from set_part to a wait */
    int64_t order, entry;                /* places of whole numbers; order -1: the caller's */
    int32_t *piece, *level_first, *last; /* until the device has them */
    passes_shape shape;
    frgi_device_arena memory;
    frgi_buffer v, counts, places, raw, effects;
    char *together;       /* on the host */
    int f32;              /* of the run */
    int64_t whole;        /* columns of the matrix that went over as a whole; 0: none did */
    bool placed;          /* `places` holds at */
    raw_matrix caller[2]; /* the caller's `in` and `out` where they lie there; else empty */
    int64_t x;            /* place of the columns */
} columns;

/* ---- the rows -------------------------------------------------------------------------------- */

static int64_t row_pieces_of(int64_t rows)
{
    return rows > FD_ITEM_ENTRIES ? (rows + FD_GROUP_ENTRIES - 1) / FD_GROUP_ENTRIES : 1;
}

/** Short pieces, a level each, first; a level's pieces follow one another. */
static void cut_levels(const fe_rows *g, columns *c)
{
    int64_t next[2] = {0, c->at[FC_ROW_SHORT]};
    for (int64_t u = 0; u < g->n_elim; u++) {
        const int64_t first = g->elim_start[u], rows = g->elim_start[u + 1] - first;
        const int64_t pieces = row_pieces_of(rows);
        int64_t *const at = &next[rows > FD_ITEM_ENTRIES];
        c->level_first[u] = (int32_t)*at;
        for (int64_t s = 0; s < pieces; s++, (*at)++) {
            const int64_t begin = s * FD_GROUP_ENTRIES, left = rows - begin;
            int32_t *const of = c->piece + 3 * *at;
            of[0] = (int32_t)u;
            of[1] = (int32_t)(first + begin);
            of[2] = (int32_t)(left < FD_GROUP_ENTRIES ? left : FD_GROUP_ENTRIES);
        }
    }
}

/** Of a row's values those behind which another factor's begin, or none. */
static void mark_last(const fe_basis *b, int32_t *last)
{
    for (int r = 0; r < b->g->n_remaining; r++) {
        for (int j = 1; j <= b->remaining[r].width; j++) {
            *last++ = j == b->remaining[r].width;
        }
    }
}

frg_status frgi_fe_device_passes_create(fe_device *d)
{
    const fe_rows *const g = d->g;
    columns *c;
    TRY(NEW0(d->ctx, &c, 1, "passes on a device"));
    d->passes = c;
    for (int64_t u = 0; u < g->n_elim; u++) {
        const int64_t rows = g->elim_start[u + 1] - g->elim_start[u];
        c->at[FC_ROW_PIECES] += row_pieces_of(rows);
        c->at[FC_ROW_SHORT] += rows <= FD_ITEM_ENTRIES;
    }
    TRY(NEW(d->ctx, &c->piece, 3 * c->at[FC_ROW_PIECES] + 1, "pieces of levels"));
    TRY(NEW(d->ctx, &c->level_first, g->n_elim + 1, "pieces of levels"));
    cut_levels(g, c);
    if (d->design.slopes) {
        TRY(NEW(d->ctx, &c->last, d->design.width + 1, "columns of a row"));
        mark_last(d->design.slopes, c->last);
    }
    return frgi_device_load(d->dev, &frgi_kernels_fe_passes, FRGI_F64, &c->program);
}

static void drop_pieces(fe_device *d)
{
    DROP(d->ctx, &d->passes->piece);
    DROP(d->ctx, &d->passes->level_first);
    DROP(d->ctx, &d->passes->last);
}

static void drop_memory(fe_device *d)
{
    columns *const c = d->passes;
    frgi_device_arena_close(&c->memory, d->dev);
    DROP(d->ctx, &c->together);
    c->shape = (passes_shape){0};
    c->placed = false;
}

void frgi_fe_device_passes_destroy(fe_device *d)
{
    if (d->passes) {
        drop_memory(d);
        drop_pieces(d);
        DROP(d->ctx, &d->passes);
    }
}

void frgi_fe_device_passes_place(fe_device *d, int64_t *used)
{
    columns *const c = d->passes;
    if (!c) {
        return;
    }
    c->at[FC_ROW_PIECE] = *used;
    *used += 3 * c->at[FC_ROW_PIECES];
    c->at[FC_LEVEL_FIRST] = *used;
    *used += d->g->n_elim;
    c->at[FC_LAST] = *used;
    *used += c->last ? d->design.width : 0;
    c->order = d->g->order ? *used : -1;
    *used += d->g->order ? d->g->n : 0;
    c->entry = d->t.row_entry ? *used : d->at[FD_ENTRY];
    *used += d->t.row_entry ? d->t.entries : 0;
}

frg_status frgi_fe_device_passes_put_rows(fe_device *d)
{
    columns *const c = d->passes;
    if (!c) {
        return FRG_OK;
    }
    const int64_t pieces = c->at[FC_ROW_PIECES];
    TRY(frgi_fe_device_put_numbers(d, c->at[FC_ROW_PIECE], c->piece, 3 * pieces));
    TRY(frgi_fe_device_put_numbers(d, c->at[FC_LEVEL_FIRST], c->level_first, d->g->n_elim));
    if (c->last) {
        TRY(frgi_fe_device_put_numbers(d, c->at[FC_LAST], c->last, d->design.width));
    }
    if (d->g->order) {
        TRY(frgi_fe_device_put_numbers(d, c->order, (const int32_t *)d->g->order, d->g->n));
    }
    if (d->t.row_entry) {
        TRY(frgi_fe_device_put_numbers(d, c->entry, d->t.row_entry, d->t.entries));
    }
    return FRG_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static frgi_buffer range(const columns *c, int which, int64_t count)
{
    const size_t size = sizeof(double);
    return frgi_device_slice(c->v, (size_t)c->at[which] * size, (size_t)count * size);
}

frgi_buffer frgi_fe_device_passes_numbers(const fe_device *d, const int64_t **at)
{
    const columns *const c = d->passes;
    *at = c ? c->at : NULL;
    return c && c->shape.most > 0 ? c->v : (frgi_buffer){0};
}

static int64_t row_groups(const columns *c)
{
    const int64_t short_pieces = c->at[FC_ROW_SHORT];
    return (short_pieces + FD_PIECE_GROUP - 1) / FD_PIECE_GROUP + c->at[FC_ROW_PIECES] -
           short_pieces;
}

/** Places of numbers for columns of up to `most` lanes; how many there are. */
static int64_t set_places(fe_device *d, int most)
{
    columns *const c = d->passes;
    const fe_rows *const g = d->g;
    int64_t *const at = c->at, k = most, used = 0;
    memcpy(at, d->at, FD_WEIGHT * sizeof *at);
    at[FD_ENTRY] = c->entry;
    at[FD_BY_LEVEL] = 0;
    const struct {
        int which;
        int64_t count;
    } numbers[] = {{FD_WEIGHT, g->weight ? g->n : 0},
                   {FD_VALUE, at[FD_VALUED] ? d->t.entries : 0},
                   {FD_ELIM_VALUE, g->n * at[FD_ELIM_WIDTH]},
                   {FD_ELIM_INVERSE, g->n_elim},
                   {FC_X, g->n * k},
                   {FD_Z, g->n * k},
                   {FD_SUM, at[FD_PIECES] * k},
                   {FC_A, at[FD_R] * k},
                   {FC_UNKNOWNS, at[FD_R] * k},
                   {FC_BASE, g->n_elim * k},
                   {FC_PIECE_SUM, at[FC_ROW_PIECES] * k},
                   {FC_LEFT, at[FC_ROW_PIECES] * k},
                   {FC_SLOPE_SUM, FC_ROUNDS * at[FC_ROW_PIECES] * at[FD_ELIM_WIDTH] * k},
                   {FC_OF_ROWS, row_groups(c) * 2 * k},
                   {FC_OF_LEVELS, at[FD_SPREADS] * 4 * k},
                   {FC_TOTAL, FCT_COUNT * k},
                   {FC_SCALE, k}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        at[numbers[i].which] = used;
        used += numbers[i].count;
    }
    return used;
}

/** Effects of the eliminated levels: of their dummies, or of their orthonormal columns. */
static int64_t elim_effects(const fe_device *d)
{
    const int64_t width = d->at[FD_ELIM_WIDTH];
    return d->g->n_elim * (width > 0 ? width : 1);
}

static void lay_out(fe_device *d, int64_t reals, const passes_shape *s)
{
    columns *const c = d->passes;
    frgi_device_arena *const a = &c->memory;
    c->v = frgi_device_take(a, (size_t)reals * sizeof(double));
    c->counts = frgi_device_take(a, (size_t)(FDC_COUNT * s->most) * sizeof(int32_t));
    c->places = frgi_device_take(a, sizeof c->at);
    c->raw = frgi_device_take(a, s->raw);
    c->effects = frgi_device_take(a, (size_t)(elim_effects(d) * s->lanes) * sizeof(double));
}

static frg_status open_memory(fe_device *d, const passes_shape *s)
{
    columns *const c = d->passes;
    const int64_t reals = set_places(d, s->most);
    frg_status status;
    c->memory = (frgi_device_arena){.align = frgi_device_is(d->dev)->align};
    TRY_TO(failed, NEW(d->ctx, &c->together, MOVED_TOGETHER * (int64_t)sizeof(double),
                       "columns to a device"));
    lay_out(d, reals, s);
    TRY_TO(failed, frgi_device_arena_open(&c->memory, d->dev, "columns on a device"));
    lay_out(d, reals, s);
    c->shape = *s;
    c->x = c->at[FC_X];
    TRY_TO(failed, frgi_device_fill(d->dev, c->counts, 0, c->counts.bytes)); /* all go on */
    TRY_TO(failed, frgi_fe_device_passes_put_weights(d));
    TRY_TO(failed, frgi_fe_device_put_values(d, c->v, c->at, sizeof(double)));
    return FRG_OK;
failed:
    drop_memory(d);
    return status;
}

frg_status frgi_fe_device_passes_put_weights(fe_device *d)
{
    const columns *const c = d->passes;
    const fe_rows *const g = d->g;
    if (!c || c->shape.most == 0) {
        return FRG_OK; /* they are put when there is memory for them */
    }
    if (g->weight) {
        const frgi_buffer to = range(c, FD_WEIGHT, g->n);
        TRY(frgi_device_put(d->dev, to, g->weight, to.bytes));
    }
    const frgi_buffer to = range(c, FD_ELIM_INVERSE, g->n_elim);
    TRY(frgi_device_put(d->dev, to, g->elim_inverse, to.bytes));
    return frgi_device_wait(d->dev);
}

/* ---- columns there and back ------------------------------------------------------------------ */

static size_t size_of(const columns *c)
{
    return c->f32 ? sizeof(float) : sizeof(double);
}

static bool is_row_major(const frg_array *a)
{
    return a->stride[1] == 1 && a->stride[0] == a->shape[1];
}

/** Elements of a host block, `count` rows from `first` on, to `together` or back. */
static void pack(const fe_block *x, int64_t first, int64_t count, size_t size, char *together,
                 bool back)
{
    for (int64_t i = 0; i < count; i++) {
        for (int k = 0; k < x->live; k++) {
            char *const own = x->base + ((first + i) * x->row + k * x->column) * (ptrdiff_t)size;
            char *const at = together + (i * x->live + k) * (int64_t)size;
            memcpy(back ? own : at, back ? at : own, size);
        }
    }
}

static frg_status copy_part(fe_device *d, size_t at, char *own, size_t bytes, bool back)
{
    const frgi_buffer part = frgi_device_slice(d->passes->raw, at, bytes);
    return back ? frgi_device_get(d->dev, own, part, bytes)
                : frgi_device_put(d->dev, part, own, bytes);
}

/** Where a block's columns come from or go to: the caller's own array there, or `raw`, in which
 *  those of a host block lie column by column where they do so there. */
static raw_matrix raw_of(const fe_device *d, const fe_device_block *b, const fe_block *x, bool back)
{
    const columns *const c = d->passes;
    raw_matrix m = c->caller[back];
    if (m.in.handle) {
        m.at += b->first * m.column;
        return m;
    }
    return c->whole      ? (raw_matrix){c->raw, b->first, c->whole, 1}
           : x->row == 1 ? (raw_matrix){c->raw, 0, 1, d->g->n}
                         : (raw_matrix){c->raw, 0, x->live, 1};
}

/** The same block, neither row- nor column-major, piece by piece. */
static frg_status copy_together(fe_device *d, const fe_block *x, bool back)
{
    const size_t size = size_of(d->passes);
    const int64_t n = d->g->n, most = MOVED_TOGETHER / x->live;
    char *const together = d->passes->together;
    for (int64_t i = 0; i < n; i += most) {
        const int64_t rows = n - i < most ? n - i : most;
        const size_t bytes = (size_t)(rows * x->live) * size;
        if (!back) {
            pack(x, i, rows, size, together, false);
        }
        TRY(copy_part(d, (size_t)(i * x->live) * size, together, bytes, back));
        TRY(frgi_device_wait(d->dev));
        if (back) {
            pack(x, i, rows, size, together, true);
        }
    }
    return FRG_OK;
}

/** A host block to where raw_of says, or back from there. */
static frg_status copy_block(fe_device *d, const fe_block *x, bool back)
{
    const size_t size = size_of(d->passes);
    const int64_t n = d->g->n;
    if (x->row != 1 && x->column == 1 && x->row == x->live) {
        return copy_part(d, 0, x->base, (size_t)(n * x->live) * size, back);
    }
    if (x->row != 1) {
        return copy_together(d, x, back);
    }
    for (int k = 0; k < x->live; k++) {
        char *const own = x->base + k * x->column * (ptrdiff_t)size;
        TRY(copy_part(d, (size_t)(k * n) * size, own, (size_t)n * size, back));
    }
    return FRG_OK;
}

/** Columns in the order of the device's rows <- those of m, or back. */
static frg_status move_columns(fe_device *d, const raw_matrix *m, const fe_device_block *b,
                               bool back)
{
    const columns *const c = d->passes;
    const int64_t n = d->g->n, groups = (n * b->lanes + MOVED - 1) / MOVED;
    const frgi_arg own = BUFFER(c->v), own_at = INT64(c->x), raw = BUFFER(m->in),
                   raw_at = INT64(m->at);
    return LAUNCH(d->dev, c->moves[c->f32], back ? "scatter_rows" : "gather_rows", groups, 1,
                  d->group, back ? raw : own, back ? raw_at : own_at, back ? own : raw,
                  back ? own_at : raw_at, INT64(m->row), INT64(m->column), BUFFER(d->rows.w),
                  INT64(c->order), INT64(n), INT32(b->lanes), INT32(b->live));
}

/** Takes an array of the caller's that lies on a device. */
static frg_status adopt(fe_device *d, const frg_array *a, bool back)
{
    raw_matrix *const m = &d->passes->caller[back];
    *m = (raw_matrix){.row = a->stride[0], .column = a->stride[1]};
    return frgi_device_adopt(d->dev, a, back ? "out" : "x", &m->in);
}

void frgi_fe_device_columns_drop(fe_device *d)
{
    for (int i = 0; i < 2; i++) {
        frgi_device_disown(d->dev, &d->passes->caller[i].in);
    }
}

frg_status frgi_fe_device_columns_open(fe_device *d, const fe_device_run *r)
{
    columns *const c = d->passes;
    const int64_t n = d->g->n, p = r->in ? r->in->shape[1] : 0;
    const bool in_there = r->in && r->in->device.kind != FRG_CPU;
    const bool out_there = r->out && r->out->device.kind != FRG_CPU;
    const bool whole = !in_there && !out_there && p > r->most && p <= WHOLE_COLUMNS &&
                       is_row_major(r->in) && is_row_major(r->out);
    const int64_t effects = elim_effects(d), most = n > effects ? n : effects;
    const size_t column = (size_t)most * sizeof(double);
    TRY(in_there ? adopt(d, r->in, false) : FRG_OK);
    TRY(out_there ? adopt(d, r->out, true) : FRG_OK);
    c->f32 = r->f32;
    c->whole = whole ? p : 0;
    const size_t raw = (size_t)(n * (whole ? p : r->most)) * size_of(c);
    const passes_shape s = {r->lanes, r->most, raw > column ? raw : column};
    TRY(frgi_device_load(d->dev, &frgi_kernels_basic, FRGI_F64, &c->moves[0]));
    if (r->f32 || frgi_fe_device_in_float(d)) {
        TRY(frgi_device_load(d->dev, &frgi_kernels_basic, FRGI_MIXED, &c->moves[1]));
    }
    TRY(frgi_fe_device_open_rows(d));
    drop_pieces(d);
    if (s.lanes > c->shape.lanes || s.most > c->shape.most || s.raw > c->shape.raw) {
        drop_memory(d);
        TRY(open_memory(d, &s));
    }
    return whole ? frgi_device_put(d->dev, c->raw, frgi_array_base(r->in), raw) : FRG_OK;
}

bool frgi_fe_device_columns_whole(const fe_device *d)
{
    return d->passes->whole > 0;
}

frg_status frgi_fe_device_columns_take(fe_device *d, const fe_device_block *b, const fe_block *x)
{
    const raw_matrix m = raw_of(d, b, x, false);
    const bool there = d->passes->whole || d->passes->caller[0].in.handle;
    TRY(there ? FRG_OK : copy_block(d, x, false));
    return move_columns(d, &m, b, false);
}

frg_status frgi_fe_device_columns_give(fe_device *d, const fe_device_block *b, const fe_block *x)
{
    const raw_matrix m = raw_of(d, b, x, true);
    TRY(move_columns(d, &m, b, true));
    if (d->passes->whole || d->passes->caller[1].in.handle) {
        return FRG_OK;
    }
    TRY(copy_block(d, x, true));
    return frgi_device_wait(d->dev);
}

frg_status frgi_fe_device_columns_close(fe_device *d, const frg_array *out)
{
    const columns *const c = d->passes;
    const size_t bytes = (size_t)(d->g->n * c->whole) * size_of(c);
    TRY(c->whole ? frgi_device_get(d->dev, frgi_array_base(out), c->raw, bytes) : FRG_OK);
    return c->whole || c->caller[1].in.handle ? frgi_device_wait(d->dev) : FRG_OK;
}

/* ---- the passes ------------------------------------------------------------------------------ */

/** The block's columns, or column k of them alone (k >= 0), from now on. */
static frg_status set_part(fe_device *d, const fe_device_block *b, int k)
{
    columns *const c = d->passes;
    const int64_t lane = k < 0 ? 0 : k;
    int64_t before[FD_AT_COUNT];
    memcpy(before, c->at, sizeof before);
    c->at[FD_K] = k < 0 ? b->lanes : 1;
    c->at[FC_X] = c->x + lane;
    c->at[FC_STRIDE] = b->lanes;
    c->at[FC_EFFECT] = elim_effects(d) * b->lane + lane;
    c->at[FC_EFFECT_STRIDE] = b->lanes;
    if (c->placed && memcmp(before, c->at, sizeof before) == 0) {
        return FRG_OK;
    }
    c->placed = true;
    return frgi_device_put(d->dev, c->places, c->at, sizeof c->at);
}

/** Takes the eliminated levels' means out of the rows, or by a residual their orthonormal
 *  columns. */
static frg_status launch_rows(fe_device *d, int pass)
{
    const columns *const c = d->passes;
    const int64_t rows = row_groups(c);
    const int rounds = pass != FC_RHS && c->at[FD_ELIM_WIDTH] ? FC_ROUNDS : 0;
    const frgi_arg v = BUFFER(c->v), w = BUFFER(d->rows.w), places = BUFFER(c->places),
                   what = INT32(pass);
    for (int round = 0; round < rounds; round++) {
        TRY(LAUNCH(d->dev, c->program, "fe_slope_rows", rows, 1, d->group, v, w, places, what,
                   INT32(round)));
    }
    if (rounds > 0) {
        return FRG_OK;
    }
    TRY(LAUNCH(d->dev, c->program, "fe_column_sums", rows, 1, d->group, v, w, places, what));
    return LAUNCH(d->dev, c->program, "fe_column_rows", rows, 1, d->group, v, w, places, what);
}

/** The kernels of a pass; `add`: effects of eliminated levels are added to those that are there. */
static frg_status launch_pass(fe_device *d, int pass, bool add)
{
    const columns *const c = d->passes;
    const int64_t *const at = c->at;
    const int64_t sums =
        (at[FD_SHORT] + FD_PIECE_GROUP - 1) / FD_PIECE_GROUP + at[FD_PIECES] - at[FD_SHORT];
    const frgi_arg v = BUFFER(c->v), w = BUFFER(d->rows.w), places = BUFFER(c->places);
    TRY(launch_rows(d, pass));
    TRY(LAUNCH(d->dev, c->program, "fe_column_levels", at[FD_SPREADS], 1, d->group, v,
               BUFFER(c->effects), w, places, INT32(pass), INT32(add)));
    TRY(LAUNCH(d->dev, c->program, "fe_pieces", sums, 1, d->group, v, v, w, BUFFER(c->counts),
               places, INT32(0)));
    TRY(LAUNCH(d->dev, c->program, "fe_column_unknowns", at[FD_UPDATES], 1, d->group, v, w,
               places));
    return LAUNCH(d->dev, c->program, pass == FC_RHS ? "fe_column_moments" : "fe_column_audit", 1,
                  1, d->group, v, places);
}

/** The pass, and what it leaves: sums of the reduced unknowns and totals. */
static frg_status run_pass(fe_device *d, int pass, bool add, double *unknowns, double *total)
{
    const columns *const c = d->passes;
    const int64_t k = c->at[FD_K];
    const frgi_buffer sums = range(c, FC_UNKNOWNS, c->at[FD_R] * k),
                      totals = range(c, FC_TOTAL, FCT_COUNT * k);
    TRY(launch_pass(d, pass, add));
    TRY(frgi_device_get(d->dev, unknowns, sums, sums.bytes));
    TRY(frgi_device_get(d->dev, total, totals, totals.bytes));
    return frgi_device_wait(d->dev);
}

frg_status frgi_fe_device_rhs(fe_device *d, const fe_device_block *b, int k, double *sums,
                              fe_moments *m)
{
    double total[FCT_COUNT * FE_MAX_LANES];
    TRY(set_part(d, b, k));
    TRY(run_pass(d, FC_RHS, false, sums, total));
    const int64_t lanes = d->passes->at[FD_K];
    *m = (fe_moments){.rows = d->g->n};
    for (int64_t l = 0; l < lanes; l++) {
        m->weight[l] = total[FCT_WEIGHT * lanes + l];
        m->shift[l] = total[FCT_MEAN * lanes + l];
        m->square[l] = total[FCT_SQUARE * lanes + l];
        m->within[l] = total[FCT_WITHIN * lanes + l];
        m->max_abs[l] = total[FCT_LARGEST * lanes + l];
    }
    return FRG_OK;
}

frg_status frgi_fe_device_residual(fe_device *d, const fe_device_block *b, int k,
                                   fe_device_residuals what, const double *a, double *sums,
                                   fe_elim_audit *audit)
{
    double total[FCT_COUNT * FE_MAX_LANES];
    TRY(set_part(d, b, k));
    const int64_t lanes = d->passes->at[FD_K];
    const frgi_buffer to = range(d->passes, FC_A, d->design.unknowns * lanes);
    TRY(a ? frgi_device_put(d->dev, to, a, to.bytes) : frgi_device_fill(d->dev, to, 0, to.bytes));
    TRY(run_pass(d, what == FE_RESIDUALS_TRIED ? FC_TRY : FC_RESIDUAL, what == FE_RESIDUALS_ADDED,
                 sums, total));
    *audit = (fe_elim_audit){.rows = d->g->n};
    for (int64_t l = 0; l < lanes; l++) {
        audit->square[l] = total[FCT_LEFT_SQUARE * lanes + l];
        audit->gradient[l] = total[FCT_GRADIENT * lanes + l];
        audit->mean[l] = total[FCT_WORST_MEAN * lanes + l];
        audit->worst[l] = (int64_t)total[FCT_WORST * lanes + l];
        audit->effect[l] = total[FCT_EFFECT * lanes + l];
    }
    return FRG_OK;
}

frg_status frgi_fe_device_columns_scale(fe_device *d, const fe_device_block *b,
                                        const double *factor)
{
    columns *const c = d->passes;
    const int64_t n = d->g->n, groups = (n * b->lanes + FC_SCALED - 1) / FC_SCALED;
    const frgi_buffer to = range(c, FC_SCALE, b->lanes);
    TRY(set_part(d, b, -1));
    memcpy(c->scale, factor, (size_t)b->lanes * sizeof *factor);
    TRY(frgi_device_put(d->dev, to, c->scale, to.bytes));
    TRY(LAUNCH(d->dev, c->program, "fe_column_scale", groups, 1, d->group, BUFFER(c->v),
               BUFFER(c->places), INT64(n)));
    return frgi_device_wait(d->dev);
}

frg_status frgi_fe_device_columns_copy(fe_device *d, const fe_device_block *b, int k,
                                       frgi_buffer to, int64_t at)
{
    const columns *const c = d->passes;
    const int64_t n = d->g->n, groups = (n * b->lanes + MOVED - 1) / MOVED;
    const int lane = k < 0 ? 0 : k, count = k < 0 ? b->lanes : 1;
    return LAUNCH(d->dev, c->moves[frgi_fe_device_in_float(d)], "scatter_rows", groups, 1, d->group,
                  BUFFER(to), INT64(at), BUFFER(c->v), INT64(c->x + lane), INT64(count), INT64(1),
                  BUFFER(d->rows.w), INT64(-1), INT64(n), INT32(b->lanes), INT32(count));
}

/** to (n) <- the first of the `lanes` numbers of each row of `from`, row i of the order to place
 *  order[i]. */
static frg_status get_strided(fe_device *d, frgi_buffer from, int64_t at, int64_t n, int lanes,
                              int64_t order, double *to)
{
    const columns *const c = d->passes;
    const int64_t groups = (n * lanes + MOVED - 1) / MOVED;
    TRY(LAUNCH(d->dev, c->moves[0], "scatter_rows", groups, 1, d->group, BUFFER(c->raw), INT64(0),
               BUFFER(from), INT64(at), INT64(1), INT64(0), BUFFER(d->rows.w), INT64(order),
               INT64(n), INT32(lanes), INT32(1)));
    TRY(frgi_device_get(d->dev, to, c->raw, (size_t)n * sizeof *to));
    return frgi_device_wait(d->dev);
}

frg_status frgi_fe_device_column(fe_device *d, const fe_device_block *b, int k, double *to)
{
    const columns *const c = d->passes;
    return get_strided(d, c->v, c->x + k, d->g->n, b->lanes, c->order, to);
}

frg_status frgi_fe_device_elim_effects(fe_device *d, const fe_device_block *b, int k, double *to)
{
    const int64_t n = elim_effects(d);
    return get_strided(d, d->passes->effects, n * b->lane + k, n, b->lanes, -1, to);
}

frg_status frgi_fe_device_effects(fe_device *d, const fe_device_block *b, int k, double factor,
                                  double *alpha)
{
    const fe_rows *const g = d->g;
    const int64_t count = elim_effects(d);
    double *effects;
    TRY(NEW(d->ctx, &effects, count + 1, "effects from a device"));
    const frg_status status = frgi_fe_device_elim_effects(d, b, k, effects);
    for (int64_t e = 0; e < count && status >= 0; e++) {
        effects[e] *= factor;
    }
    if (status >= 0 && d->at[FD_ELIM_WIDTH]) {
        frgi_basis_effects(d->design.slopes, &d->design.slopes->elim, effects, alpha);
    } else if (status >= 0) {
        for (int64_t u = 0; u < g->n_elim; u++) {
            alpha[g->elim_level ? g->elim_level[u] : u] = effects[u];
        }
    }
    DROP(d->ctx, &effects);
    return status;
}

bool frgi_fe_device_has_passes(const fe_device *d)
{
    return d && d->passes;
}
