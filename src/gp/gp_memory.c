/* gp_memory.c - everything of a process that grows with its points: one arena, the points in their
 * arithmetic, copies.
 *
 * Elements for n points, d inputs, q outputs, m columns of a profiled mean, T(n) = n^2 / 2 + O(n
 * tile):
 *
 *     data               n (d + q), noise and groups where given
 *     matrix             T(n); FULL: 2 T(n); mixed: T(n) doubles and T(n) floats
 *     points, bound      about 2 n d
 *     r, alpha, nu ...   n (2 q + d + 5), with a profiled mean 3 n m more (q > 1: 4 n m)
 *
 * An evaluation takes nothing beyond it.  Leave-one-out gradients and the information have memory
 * of their own from their first call on.
 */
#include <math.h>
#include <string.h>

#include "gp/gp_process.h"
#include "gp/gp_trust.h"

/* Rows are padded to 64 bytes, 8 doubles or 16 floats: no order in between needs more. */
enum { GROUP_ROWS = 8 };

/** The most elements and bytes of scratch of all orders up to n, so that points can be removed in
 *  place. */
typedef struct {
    size_t matrix, work;
} dense_bytes;

static dense_bytes most_dense(ptrdiff_t n, frg_dtype dtype, int threads)
{
    dense_bytes most = {0};
    for (ptrdiff_t k = n; k > 0; k -= GROUP_ROWS) {
        const size_t matrix = frgi_spd_bytes(k, dtype);
        most.matrix = matrix > most.matrix ? matrix : most.matrix;
        const size_t work = frgi_spd_work_bytes(k, dtype, threads);
        most.work = work > most.work ? work : most.work;
    }
    return most;
}

static frg_dtype own_dtype(const frg_gp *gp)
{
    return gp->opts.precision == FRG_GP_F32 ? FRG_F32 : FRG_F64;
}

static frg_dtype second_dtype(const frg_gp *gp)
{
    return own_dtype(gp) == FRG_F64 ? FRG_F32 : FRG_F64;
}

/** Is there a second arithmetic: f32 for mixed, f64 beside f32? */
static bool has_other(const frg_gp *gp)
{
    return gp->opts.precision != FRG_GP_F64;
}

void frgi_gp_measure_sizes(frg_gp *gp, ptrdiff_t n, int threads)
{
    frgi_gp_sizes *const s = &gp->memory.sizes;
    const frg_gp_opts *const o = &gp->opts;
    if (s->n == n && s->threads == threads && s->precision == o->precision) {
        return;
    }
    *s = (frgi_gp_sizes){.n = n, .threads = threads, .precision = o->precision};
    const bool second_matrix = o->precision == FRG_GP_MIXED || (has_other(gp) && o->auto_promote);
    for (int i = 0; i < (has_other(gp) ? 2 : 1); i++) {
        const frg_dtype dtype = i == 0 ? own_dtype(gp) : second_dtype(gp);
        if (i == 0 || second_matrix) {
            const dense_bytes dense = most_dense(n, dtype, threads);
            s->matrix[i] = dense.matrix;
            s->work[i] = dense.work;
        }
        s->bound[i] = frgi_gp_bound_bytes(gp->model.kernel, dtype, n, threads);
    }
}

/** FULL where asked for, or where both triangles take at most a quarter of the memory; mixed
 *  recomputes. */
static frg_gp_storage choose_storage(const frg_gp *gp, ptrdiff_t n)
{
    const frg_gp_opts *o = &gp->opts;
    if (o->precision == FRG_GP_MIXED || o->storage == FRG_GP_PACKED) {
        return FRG_GP_PACKED;
    }
    const size_t square = frgi_mul(frgi_mul((size_t)n, (size_t)n), sizeof(double));
    const bool small = square <= frgi_memory_allowed(gp->ctx) / 4;
    return o->storage == FRG_GP_FULL || small ? FRG_GP_FULL : FRG_GP_PACKED;
}

static size_t points_bytes(ptrdiff_t n, ptrdiff_t d, frg_dtype dtype)
{
    const size_t row = frgi_add(frgi_mul((size_t)n, frg_sizeof(dtype)), 63) & ~(size_t)63;
    return frgi_mul(row, (size_t)d);
}

/** One triangle for f32 and f64 where f32 may give way: the larger. */
static bool shares(const frg_gp *gp)
{
    return gp->opts.precision == FRG_GP_F32;
}

static void lay_out_data(frgi_arena *a, frg_gp *gp, ptrdiff_t n)
{
    const ptrdiff_t d = gp->data.d, m = gp->profile.count;
    const frgi_gp_sizes *const s = &gp->memory.sizes;
    gp->data.capacity = n;
    gp->data.x = TAKE(a, double, n *d);
    gp->data.y = TAKE(a, double, n * gp->data.q);
    gp->data.known_noise = gp->data.has_known_noise ? TAKE(a, double, n) : NULL;
    gp->data.groups = gp->data.has_groups ? TAKE(a, int32_t, n) : NULL;
    gp->data.given_mean = gp->mean.kind == GP_MEAN_VALUES ? TAKE(a, double, n) : NULL;
    gp->columns.centre = TAKE(a, double, d);
    gp->columns.largest = TAKE(a, double, d);
    gp->columns.spread = TAKE(a, double, d);
    gp->result.dx = TAKE(a, double, n *d);
    gp->profile.root = TAKE(a, double, m *m);
    gp->profile.beta = TAKE(a, double, m * gp->data.q);
    gp->own.points_memory = frgi_take(a, points_bytes(n, d, own_dtype(gp)));
    gp->own.bound_memory = frgi_take(a, s->bound[0]);
    if (shares(gp)) {
        gp->other.points_memory = frgi_take(a, points_bytes(n, d, second_dtype(gp)));
        gp->other.bound_memory = frgi_take(a, s->bound[1]);
    }
}

static void lay_out_state(frgi_arena *a, frg_gp *gp, ptrdiff_t n)
{
    const ptrdiff_t q = gp->data.q, m = gp->profile.count;
    const frgi_gp_sizes *const s = &gp->memory.sizes;
    gp->vectors.residual = TAKE(a, double, n *q);
    gp->vectors.alpha = TAKE(a, double, n *(q + m));
    gp->vectors.forward = TAKE(a, double, n);
    gp->vectors.swept = TAKE(a, double, n);
    gp->vectors.noise = TAKE(a, double, n);
    gp->vectors.diagonal = TAKE(a, double, n);
    gp->vectors.scratch = TAKE(a, double, n);
    if (m > 0) {
        gp->profile.basis = TAKE(a, double, n *m);
        gp->profile.correction = TAKE(a, double, n *m);
        gp->profile.extra = q > 1 ? TAKE(a, double, n *m) : gp->profile.correction;
    }
    if (shares(gp)) {
        gp->vectors.solved_low = TAKE(a, float, n *(q + m));
        gp->vectors.trust_memory = frgi_take(a, frgi_gp_trust_bytes(n));
    }
    const size_t matrix = shares(gp) && s->matrix[1] > s->matrix[0] ? s->matrix[1] : s->matrix[0];
    gp->memory.storage = choose_storage(gp, n);
    void *const elements = frgi_take(a, matrix);
    gp->own.kept = gp->memory.storage == FRG_GP_FULL ? frgi_take(a, matrix) : NULL;
    void *const work = frgi_take(a, s->work[0] > s->work[1] ? s->work[0] : s->work[1]);
    gp->own.matrix = frgi_spd_place(gp->data.n, own_dtype(gp), elements, work, "gp");
    if (has_other(gp)) {
        void *const others = shares(gp) ? elements : frgi_take(a, s->matrix[1]);
        gp->other.matrix = frgi_spd_place(gp->data.n, second_dtype(gp), others, work, "gp");
        gp->other.kept = shares(gp) ? gp->own.kept : NULL;
    }
}

/** What `data` and `state` count for n points; with memory behind them, its places. */
static void lay_out(frgi_arena *data, frgi_arena *state, frg_gp *gp, ptrdiff_t n)
{
    frgi_gp_measure_sizes(gp, n, frg_threads(gp->ctx));
    lay_out_data(data, gp, n);
    lay_out_state(state, gp, n);
}

size_t frgi_gp_memory_bytes(const frg_gp *gp, ptrdiff_t n)
{
    frgi_arena data = {0}, state = {0};
    frg_gp copy = *gp;
    lay_out(&data, &state, &copy, n);
    return frgi_add(data.used, state.used);
}

/** The first rows of a column-major array move from leading dimension from_n to to_n; to may be
 *  from. */
static void keep_columns(double *to, ptrdiff_t to_n, const double *from, ptrdiff_t from_n,
                         ptrdiff_t columns)
{
    const ptrdiff_t rows = to_n < from_n ? to_n : from_n;
    const bool forward = to_n <= from_n; /* in place, columns move towards the start or the end */
    for (ptrdiff_t k = 0; k < columns; k++) {
        const ptrdiff_t c = forward ? k : columns - 1 - k;
        memmove(to + c * to_n, from + c * from_n, (size_t)rows * sizeof *to);
    }
}

static void keep_data(frg_gp *to, const frg_gp *from)
{
    const size_t rows = (size_t)(to->data.n < from->data.n ? to->data.n : from->data.n);
    memmove(to->data.x, from->data.x, rows * (size_t)to->data.d * sizeof *to->data.x);
    keep_columns(to->data.y, to->data.n, from->data.y, from->data.n, to->data.q);
    if (to->data.known_noise) {
        memmove(to->data.known_noise, from->data.known_noise, rows * sizeof *to->data.known_noise);
    }
    if (to->data.groups) {
        memmove(to->data.groups, from->data.groups, rows * sizeof *to->data.groups);
    }
    if (to->data.given_mean) {
        memmove(to->data.given_mean, from->data.given_mean, rows * sizeof *to->data.given_mean);
    }
}

static frg_status refuse_size(const frg_gp *gp, ptrdiff_t n, size_t needed, size_t allowed)
{
    frg_gp packed = *gp;
    packed.opts.storage = FRG_GP_PACKED;
    const size_t others = frg_bytes_held(gp->ctx) - gp->memory.data.bytes - gp->memory.state.bytes;
    const size_t least = frgi_add(frgi_gp_memory_bytes(&packed, n), others);
    packed.opts.precision = FRG_GP_F32;
    const size_t single = frgi_add(frgi_gp_memory_bytes(&packed, n), others);
    const char *const fits = least <= allowed    ? "packed storage fits"
                             : single <= allowed ? "packed storage in f32 fits"
                                                 : "no storage fits";
    FAIL(gp->ctx, E_TOO_BIG_GP, "%lld points need %zu bytes, %zu are allowed; %s (%zu bytes)",
         (long long)n, needed, allowed, fits, least <= allowed ? least : single);
}

void frgi_gp_memory_close(frg_gp *gp)
{
    frgi_arena_close(&gp->memory.data, gp->ctx);
    gp->steps->close(&gp->memory.state, gp->ctx);
}

/** Memory for `capacity` points, in place of none. */
static frg_status open_memory(frg_gp *gp, ptrdiff_t capacity)
{
    const size_t allowed = frgi_memory_allowed(gp->ctx), held = frg_bytes_held(gp->ctx);
    frgi_arena data = {0}, state = {0};
    lay_out(&data, &state, gp, capacity);
    const size_t needed = frgi_add(frgi_add(data.used, state.used), held);
    if (needed > allowed) {
        return refuse_size(gp, capacity, needed, allowed);
    }
    TRY(frgi_arena_open(&data, gp->ctx, "the data of the process"));
    const frg_status status =
        gp->steps->open(&state, gp->ctx, "the covariance matrix and its vectors");
    if (status < 0) {
        frgi_arena_close(&data, gp->ctx);
        return status;
    }
    gp->memory.data = data;
    gp->memory.state = state;
    gp->memory.data.used = gp->memory.state.used = 0;
    lay_out(&gp->memory.data, &gp->memory.state, gp, capacity);
    return FRG_OK;
}

frg_status frgi_gp_resize(frg_gp *gp, ptrdiff_t n)
{
    frg_gp next = *gp;
    next.data.n = n;
    if (n > gp->data.capacity) {
        if (next.state.swapped) { /* memory is laid out for the process's own precision */
            frgi_gp_swap_sides(&next);
        }
        const size_t allowed = frgi_memory_allowed(gp->ctx), held = frg_bytes_held(gp->ctx);
        ptrdiff_t capacity = n;
        if (gp->data.capacity > 0) { /* room for an eighth more: further points may be appended */
            capacity += n / 8;
            capacity = frgi_add(frgi_gp_memory_bytes(gp, capacity), held) <= allowed ? capacity : n;
        }
        TRY(open_memory(&next, capacity));
    }
    if (gp->data.capacity > 0) {
        keep_data(&next, gp);
    }
    if (next.memory.data.base != gp->memory.data.base) {
        frgi_gp_memory_close(gp);
    }
    *gp = next;
    frgi_arena_close(&gp->memory.loo, gp->ctx);
    frgi_arena_close(&gp->memory.information, gp->ctx);
    frgi_gp_forget(gp);
    return FRG_OK;
}

frg_status frgi_gp_need_memory(frg_gp *gp, frgi_arena *kept, frgi_arena measured, const char *what)
{
    if (!kept->base || measured.used > kept->bytes) {
        frgi_arena_close(kept, gp->ctx);
        TRY(frgi_arena_open(&measured, gp->ctx, what));
        *kept = measured;
    }
    kept->used = 0;
    return FRG_OK;
}

/* ---- points ---------------------------------------------------------------------------------- */

size_t frgi_gp_points_bytes(const frg_gp *gp, ptrdiff_t m)
{
    return points_bytes(m, gp->data.d, frgi_spd_dtype(&gp->own.matrix));
}

static void fill_points(const frg_gp *gp, const double *x, ptrdiff_t m, frg_dtype dtype,
                        void *memory, frgi_gp_points *out)
{
    const ptrdiff_t d = gp->data.d, size = (ptrdiff_t)frg_sizeof(dtype);
    const ptrdiff_t ld = (m * size + 63) / 64 * 64 / size;
    for (ptrdiff_t k = 0; k < d; k++) {
        const double centre = gp->columns.centre[k];
        double *const wide = (double *)memory + k * ld;
        float *const narrow = (float *)memory + k * ld;
        for (ptrdiff_t i = 0; dtype == FRG_F64 && i < m; i++) {
            wide[i] = x[i * d + k] - centre;
        }
        for (ptrdiff_t i = 0; dtype == FRG_F32 && i < m; i++) {
            narrow[i] = (float)(x[i * d + k] - centre);
        }
    }
    *out = (frgi_gp_points){.dtype = dtype,
                            .n = m,
                            .d = d,
                            .ld = ld,
                            .x = memory,
                            .centre = gp->columns.centre,
                            .raw = x};
}

/** The process's own points in one arithmetic, filled when the first expression is bound to
 *  them. */
static void need_points(const frg_gp *gp, frg_dtype dtype, void *memory, frgi_gp_points *points)
{
    if (points->n == 0) {
        fill_points(gp, gp->data.x, gp->data.n, dtype, memory, points);
        points->largest = gp->columns.largest;
    }
}

void frgi_gp_set_points(const frg_gp *gp, const double *x, ptrdiff_t m, void *memory,
                        frgi_gp_points *out)
{
    fill_points(gp, x, m, frgi_spd_dtype(&gp->own.matrix), memory, out);
}

const frgi_gp_bound *frgi_gp_need_bound(frg_gp *gp)
{
    if (!gp->own.bound) {
        need_points(gp, frgi_spd_dtype(&gp->own.matrix), gp->own.points_memory, &gp->own.points);
        gp->own.bound = frgi_gp_bind(gp->ctx, gp->model.kernel, gp->model.theta, &gp->own.points,
                                     gp->own.bound_memory, frg_threads(gp->ctx));
    }
    return gp->own.bound;
}

const frgi_gp_bound *frgi_gp_need_other_bound(frg_gp *gp)
{
    frgi_gp_side *const o = &gp->other;
    if (!o->bound) {
        need_points(gp, frgi_spd_dtype(&o->matrix), o->points_memory, &o->points);
        o->bound = frgi_gp_bind(gp->ctx, gp->model.kernel, gp->model.theta, &o->points,
                                o->bound_memory, frg_threads(gp->ctx));
    }
    return o->bound;
}

void frgi_gp_refresh(frg_gp *gp)
{
    const ptrdiff_t n = gp->data.n;
    frgi_gp_data_changed(gp); /* and the process's own arithmetic is back */
    frgi_gp_measure_columns(gp);
    frgi_spd_reorder(&gp->own.matrix, n, own_dtype(gp));
    gp->own.points = gp->other.points = (frgi_gp_points){.n = 0};
    if (has_other(gp)) {
        frgi_spd_reorder(&gp->other.matrix, n, second_dtype(gp));
    }
    gp->profile.solved = gp->vectors.alpha + n * gp->data.q;
    gp->steps->value.basis(gp);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Copies of a process on contexts of their own: the expression and the names of columns
 * and parameters, which never change, are shared with the original, which must outlive them.
 *
 * A worker copy has the data, parameters and storage of the original, so that two threads search at
 * once and compute the same bits.  An empty copy has no data: a batch parses its expression once
 * and fills one copy a member.  A subset has some of the rows. */

static void copy_data(frg_gp *to, const frg_gp *from)
{
    const size_t n = (size_t)from->data.n;
    memcpy(to->data.x, from->data.x, n * (size_t)from->data.d * sizeof *to->data.x);
    memcpy(to->data.y, from->data.y, n * (size_t)from->data.q * sizeof *to->data.y);
    if (from->data.known_noise) {
        memcpy(to->data.known_noise, from->data.known_noise, n * sizeof *to->data.known_noise);
    }
    if (from->data.groups) {
        memcpy(to->data.groups, from->data.groups, n * sizeof *to->data.groups);
    }
    if (from->data.given_mean) {
        memcpy(to->data.given_mean, from->data.given_mean, n * sizeof *to->data.given_mean);
    }
}

/** A process without points on ctx; its parameters begin as `from`. */
static frg_status share(frg_gp **out, frg_context *ctx, const frg_gp *gp, const frgi_gp_param *from)
{
    const size_t count = (size_t)gp->model.params.count;
    frg_gp *copy;
    frg_status status;
    TRY(NEW(ctx, &copy, 1, "process"));
    *copy = *gp;
    copy->model.shared = true;
    copy->ctx = copy->model.params.ctx = ctx;
    copy->model.params.p = NULL;
    copy->model.theta = copy->result.gradient = NULL;
    copy->model.printed = NULL;
    copy->result.trace = NULL;
    copy->result.n_trace = 0;
    copy->result.starts = NULL;
    copy->saving.save = NULL;
    copy->saving.from = NULL;
    copy->saving.fit_state = NULL;
    copy->memory.data = copy->memory.state = (frgi_arena){0};
    copy->memory.loo = copy->memory.information = (frgi_arena){0};
    copy->data.n = copy->data.capacity = 0;
    frgi_gp_open_state(copy);
    TRY_TO(failed, NEW(ctx, &copy->model.params.p, count, "parameters"));
    TRY_TO(failed, NEW(ctx, &copy->model.theta, count, "parameters"));
    TRY_TO(failed, NEW0(ctx, &copy->result.gradient, count, "the gradient"));
    memcpy(copy->model.params.p, from, count * sizeof *from);
    copy->model.params.capacity = copy->model.params.count;
    memcpy(copy->model.theta, gp->model.theta, count * sizeof *gp->model.theta);
    *out = copy;
    return FRG_OK;
failed:
    frg_gp_destroy(copy);
    return status;
}

frg_status frgi_gp_empty_copy(frg_gp **out, frg_context *ctx, const frg_gp *model)
{
    return share(out, ctx, model, model->model.unset);
}

static void copy_row(frg_gp *to, ptrdiff_t at, const frg_gp *from, ptrdiff_t row)
{
    const size_t d = (size_t)from->data.d;
    memcpy(to->data.x + at * to->data.d, from->data.x + row * from->data.d, d * sizeof *to->data.x);
    for (ptrdiff_t c = 0; c < from->data.q; c++) {
        to->data.y[c * to->data.n + at] = from->data.y[c * from->data.n + row];
    }
    if (from->data.known_noise) {
        to->data.known_noise[at] = from->data.known_noise[row];
    }
    if (from->data.groups) {
        to->data.groups[at] = from->data.groups[row];
    }
    if (from->data.given_mean) {
        to->data.given_mean[at] = from->data.given_mean[row];
    }
}

frg_status frgi_gp_subset(frg_gp **out, const frg_gp *gp, ptrdiff_t m, const ptrdiff_t *rows)
{
    frg_gp *subset;
    frg_status status;
    TRY(share(&subset, gp->ctx, gp, gp->model.params.p));
    subset->opts.precision = FRG_GP_F64;
    subset->opts.jitter = FRG_GP_JITTER_NONE;
    TRY_TO(failed, frgi_gp_resize(subset, m));
    for (ptrdiff_t i = 0; i < m; i++) {
        copy_row(subset, i, gp, rows[i]);
    }
    frgi_gp_refresh(subset);
    frgi_gp_set_monotone(subset, true); /* no warnings about points that nobody asked for */
    *out = subset;
    return FRG_OK;
failed:
    frg_gp_destroy(subset);
    return status;
}

frg_status frgi_gp_worker_copy(frg_gp **out, frg_context *ctx, const frg_gp *gp)
{
    frg_gp *copy;
    frg_status status;
    TRY(share(&copy, ctx, gp, gp->model.params.p));
    copy->opts.storage = gp->memory.storage;
    TRY_TO(failed, frgi_gp_resize(copy, gp->data.n));
    copy_data(copy, gp);
    frgi_gp_refresh(copy);
    *out = copy;
    return FRG_OK;
failed:
    frg_gp_destroy(copy);
    return status;
}
