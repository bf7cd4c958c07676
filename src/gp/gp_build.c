/* gp_build.c - an expression over all pairs of points: binding, building, gradient pass, products, new points.
 *
 * A unit is a stretch of GP_ROWS rows of one tile row with all their columns; it writes rows, or sums, that no
 * other unit touches.  Sums of a pass are kept per unit (a double for each parameter) and added in the order of the
 * units, so the bits do not depend on the number of threads.
 *
 *     columns ->   tile 0        tile 1
 *     rows 0-63    patch patch | .
 *     rows 64-..   patch patch | patch ...
 *
 * Work: n^2/2 pairs, each what its leaves cost (radial: 3d + 20 operations, backward 3d + 10 more); with input
 * gradients, and for the products, n^2.  Memory: scaled copies of the points (n doubles a leaf and column), and for
 * each thread 8 KB a node and 512 bytes a parameter.
 *
 * Dangers.  Lengthscales of 1e-300 would make scaled coordinates overflow and coincident points NaN: the factor is
 * cut so that the largest is CAP, where different points are still so far apart that k is 0.
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "gp/gp_team.h"
#include "gp/gp_tiles_ops.h"

enum { SERIAL_ROWS = 192, SERIAL_ROWS_RADIAL = 400 }; /* below, threads cost more than they bring */

/* f64, f32 */
static const double CAP[2] = {1e140, 1e14}, LARGEST[2] = {1e250, 1e25},
                    SMALLEST[2] = {1e-300, 1e-30};

struct frgi_gp_bound {
    frgi_gp_program program;
    const frgi_gp_tiles_ops *ops;
    const frgi_gp_kernel *kernel;
    frgi_gp_points points;
    int user_node; /* -1: none */
    int threads;
    size_t size; /* of an element */
    frgi_gp_step *step;
    int *child;
    frgi_gp_slot *slot, *self; /* self: the columns are the patch's own rows */
    void **copy;               /* per slot: n values, NULL where the points serve as they are */
    void **constant;           /* per step */
    double *user_cols;
    frgi_gp_patch *patch;   /* per thread */
    double **user_rows;     /* per thread */
    frgi_team_share *share; /* per thread */
    double *partial;        /* units x (parameters + 1) */
    double *user_theta;
};

const frgi_gp_tiles_ops *frgi_gp_tiles(frgi_isa isa, frg_dtype dtype)
{
#pragma GCC visibility push(hidden)
    DECLARE_LEVELS(frgi_gp_tiles_ops[2], frgi_gp_tiles_table);
#pragma GCC visibility pop
    static const frgi_gp_tiles_ops *const levels[ISA_COUNT] = EACH_LEVEL(frgi_gp_tiles_table);
    return &levels[isa][dtype == FRG_F32];
}

/* ---- sizes -------------------------------------------------------------------------------------- */

static bool has_slots(frgi_gp_kind kind)
{
    return kind >= GP_RBF && kind <= GP_SM_GPYTORCH;
}

/** Leaves that read x through a factor or shift of their own. */
static bool has_copies(frgi_gp_kind kind)
{
    return frgi_gp_is_radial(kind) || kind == GP_LINEAR || kind == GP_POLY;
}

static int count_constants(const frgi_gp_node *node)
{
    switch (node->kind) {
    case GP_RQ:
    case GP_POLY:
    case GP_CONST:
    case GP_WHITE:
    case GP_SCALE:
        return 1;
    case GP_PERIODIC:
    case GP_PERIODIC_GPYTORCH:
        return 2 * node->dims;
    case GP_LINEAR:
    case GP_COSINE:
    case GP_COSINE_GPYTORCH:
        return node->dims;
    case GP_SM:
    case GP_SM_GPYTORCH:
        return node->degree * (1 + 2 * node->dims);
    default:
        return 0;
    }
}

static ptrdiff_t units_of(ptrdiff_t n)
{
    return n / GP_CHUNK +
           2; /* tiles are multiples of a vector, at least GP_CHUNK rows but for the last */
}

static void lay_out_patch(frgi_arena *a, const frgi_gp_kernel *k, const frgi_gp_bound *b, int slots,
                          int dims, int user_dims, frgi_gp_patch *p, double **user_rows)
{
    const size_t size = b->size, steps = (size_t)k->n_nodes;
    *p = (frgi_gp_patch){0};
    p->x = frgi_take(a, frgi_mul((size_t)slots * GP_ROWS, size));
    p->value = frgi_take(a, steps * GP_PATCH * size);
    p->aux = frgi_take(a, steps * GP_AUX * GP_PATCH * size);
    p->adjoint = frgi_take(a, steps * GP_PATCH * size);
    p->lane = frgi_take(a, ((size_t)(3 * dims + 4) * GP_ROWS + GP_PATCH) * size);
    p->sum = TAKE(a, double, (k->n_parameters + 1) * GP_ROWS);
    p->gx = TAKE(a, double, k->d *GP_ROWS);
    p->tile = TAKE(a, double, k->has_user ? GP_PATCH + k->user.n_parameters : 0);
    *user_rows = TAKE(a, double, user_dims *GP_ROWS);
}

static frgi_gp_bound *lay_out(frgi_arena *a, const frgi_gp_kernel *k, frg_dtype dtype, ptrdiff_t n,
                              int threads)
{
    frgi_gp_bound *const b = TAKE(a, frgi_gp_bound, 1);
    frgi_gp_bound head = {.threads = threads, .size = frg_sizeof(dtype)};
    int slots = 0, most = 0, user_dims = 0;
    for (int i = 0; i < k->n_nodes; i++) {
        slots += has_slots(k->node[i].kind) ? k->node[i].dims : 0;
        most = k->node[i].dims > most ? k->node[i].dims : most;
        user_dims =
            k->node[i].kind == GP_USER && k->node[i].dims > user_dims ? k->node[i].dims : user_dims;
    }
    head.step = TAKE(a, frgi_gp_step, k->n_nodes);
    head.child = TAKE(a, int, k->n_nodes);
    head.slot = TAKE(a, frgi_gp_slot, slots);
    head.self = TAKE(a, frgi_gp_slot, slots);
    head.copy = TAKE(a, void *, slots);
    head.constant = TAKE(a, void *, k->n_nodes);
    head.user_cols = TAKE(a, double, user_dims *n);
    head.patch = TAKE(a, frgi_gp_patch, threads);
    head.user_rows = TAKE(a, double *, threads);
    head.share = TAKE(a, frgi_team_share, threads);
    head.partial = TAKE(a, double, units_of(n) * (k->n_parameters + 1));
    head.user_theta = TAKE(a, double, k->has_user ? k->user.n_parameters : 0);
    int slot = 0;
    for (int i = 0; i < k->n_nodes; i++) {
        void *const constant = frgi_take(a, (size_t)count_constants(&k->node[i]) * head.size);
        if (b) {
            head.constant[i] = constant;
        }
        for (int c = 0; c < k->node[i].dims && has_slots(k->node[i].kind); c++, slot++) {
            void *const copy =
                has_copies(k->node[i].kind) ? frgi_take(a, frgi_mul((size_t)n, head.size)) : NULL;
            if (b) {
                head.copy[slot] = copy;
            }
        }
    }
    for (int t = 0; t < threads; t++) {
        frgi_gp_patch patch;
        double *rows;
        lay_out_patch(a, k, &head, slots, most, user_dims, &patch, &rows);
        if (b) {
            head.patch[t] = patch;
            head.user_rows[t] = rows;
        }
    }
    if (b) {
        head.program.n_slots = slots;
        head.program.max_dims = most;
        head.program.user_dims = user_dims;
        *b = head;
    }
    return b;
}

size_t frgi_gp_bound_bytes(const frgi_gp_kernel *k, frg_dtype dtype, ptrdiff_t n, int threads)
{
    frgi_arena a = {0};
    lay_out(&a, k, dtype, n, threads);
    return a.used;
}

/* ---- binding ------------------------------------------------------------------------------------ */

static void put_constant(frgi_gp_bound *b, void *to, int i, double value)
{
    const double most = LARGEST[b->size == sizeof(float)], v = value < most ? value : most;
    if (b->size == sizeof(double)) {
        ((double *)to)[i] = v;
    } else {
        ((float *)to)[i] = (float)v;
    }
}

static double parameter(const frgi_gp_node *node, int group, int i, const double *theta)
{
    const frgi_gp_group *const g = &node->group[group];
    return theta[g->first + (g->count > 1 ? i : 0)];
}

static void bind_constants(frgi_gp_bound *b, const frgi_gp_node *node, const double *theta,
                           void *to)
{
    const int d = node->dims, q = node->degree;
    switch (node->kind) {
    case GP_RQ:
        put_constant(b, to, 0,
                     fmax(parameter(node, 1, 0, theta), SMALLEST[b->size == sizeof(float)]));
        break;
    case GP_POLY:
    case GP_CONST:
    case GP_WHITE:
    case GP_SCALE:
        put_constant(b, to, 0, parameter(node, 0, 0, theta));
        break;
    case GP_PERIODIC:
    case GP_PERIODIC_GPYTORCH:
        for (int k = 0; k < d; k++) {
            const double l = parameter(node, 0, k, theta);
            put_constant(b, to, k, 0.5 / parameter(node, 1, k, theta));
            put_constant(b, to, d + k, node->kind == GP_PERIODIC ? 1 / (l * l) : 1 / l);
        }
        break;
    case GP_LINEAR:
        for (int k = 0; k < d; k++) {
            put_constant(b, to, k, parameter(node, 0, k, theta));
        }
        break;
    case GP_COSINE:
    case GP_COSINE_GPYTORCH:
        for (int k = 0; k < d; k++) {
            put_constant(b, to, k,
                         (node->kind == GP_COSINE ? 1 : 0.5) / parameter(node, 0, k, theta));
        }
        break;
    case GP_SM:
    case GP_SM_GPYTORCH:
        for (int i = 0; i < q * d; i++) {
            const double v = parameter(node, 2, i, theta);
            put_constant(b, to, q + i, parameter(node, 1, i, theta));
            put_constant(b, to, q + q * d + i, 2 * M_PI * M_PI * (node->kind == GP_SM ? v : v * v));
        }
        for (int i = 0; i < q; i++) {
            put_constant(b, to, i, parameter(node, 0, i, theta));
        }
        break;
    default:
        break;
    }
}

static double largest(const frgi_gp_points *points, ptrdiff_t column)
{
    if (points->largest) {
        return points->largest[column];
    }
    double most = 0;
    for (ptrdiff_t i = 0; i < points->n; i++) {
        const double v = points->dtype == FRG_F64
                             ? ((const double *)points->x)[column * points->ld + i]
                             : (double)((const float *)points->x)[column * points->ld + i];
        most = fabs(v) > most ? fabs(v) : most;
    }
    return most;
}

static void bind_slots(frgi_gp_bound *b, const frgi_gp_kernel *k, const frgi_gp_node *node,
                       const double *theta, int first)
{
    const frgi_gp_points *const points = &b->points;
    for (int c = 0; c < node->dims; c++) {
        frgi_gp_slot *const slot = &b->slot[first + c];
        *slot = (frgi_gp_slot){.column = k->column[node->column + c], .factor = 1};
        slot->cols = (const char *)points->x + (size_t)(slot->column * points->ld) * b->size;
        if (frgi_gp_is_radial(node->kind)) {
            const double most = largest(points, slot->column), cap = CAP[b->size == sizeof(float)];
            const double factor = 1 / parameter(node, 0, c, theta),
                         limit = most > 0 ? cap / most : cap;
            slot->factor = factor < limit ? factor : limit;
        } else if (b->copy[first + c] && points->centre) {
            slot->shift = points->centre[slot->column];
        }
        if (b->copy[first + c]) {
            b->ops->fill_slot(slot, points, b->copy[first + c]);
            slot->cols = b->copy[first + c];
        }
    }
}

/** The user's columns of `count` points, row-major, as they were given. */
static void pack_user(const frgi_gp_bound *b, const frgi_gp_points *points, ptrdiff_t first,
                      ptrdiff_t count, double *to)
{
    const frgi_gp_kernel *const k = b->kernel;
    const frgi_gp_node *const node = &k->node[b->user_node];
    for (ptrdiff_t i = first; i < first + count; i++) {
        for (int c = 0; c < node->dims; c++) {
            const int32_t column = k->column[node->column + c];
            const ptrdiff_t at = column * points->ld + i;
            const double shift = points->centre ? points->centre[column] : 0;
            const double centred = points->dtype == FRG_F64
                                       ? ((const double *)points->x)[at]
                                       : (double)((const float *)points->x)[at];
            *to++ = points->raw ? points->raw[i * points->d + column] : centred + shift;
        }
    }
}

static void bind_step(frgi_gp_bound *b, const frgi_gp_kernel *k, int node, const int *step_of,
                      int *children, int *slot, const double *theta)
{
    const frgi_gp_node *const from = &k->node[node];
    frgi_gp_step *const step = &b->step[step_of[node]];
    *step = (frgi_gp_step){.kind = from->kind,
                           .children = from->children,
                           .child = *children,
                           .dims = has_slots(from->kind) ? from->dims : 0,
                           .degree = from->degree,
                           .slot = *slot,
                           .n_groups = from->n_groups,
                           .constant = b->constant[node]};
    memcpy(step->group, from->group, sizeof step->group);
    for (int c = 0; c < from->children; c++) {
        b->child[(*children)++] = step_of[frgi_gp_child(k, node, c)];
    }
    bind_constants(b, from, theta, b->constant[node]);
    if (has_slots(from->kind)) {
        bind_slots(b, k, from, theta, *slot);
        *slot += from->dims;
    }
    if (from->kind == GP_USER) {
        b->user_node = node;
        memcpy(b->user_theta, theta + from->group[0].first,
               sizeof *theta * (size_t)from->group[0].count);
        pack_user(b, &b->points, 0, b->points.n, b->user_cols);
    }
}

frgi_gp_bound *frgi_gp_bind(const frg_context *ctx, const frgi_gp_kernel *k, const double *theta,
                            const frgi_gp_points *points, void *memory, int threads)
{
    frgi_arena a = {.base = memory, .bytes = SIZE_MAX};
    frgi_gp_bound *const b = lay_out(&a, k, points->dtype, points->n, threads);
    b->ops = frgi_gp_tiles(frgi_context_isa(ctx), points->dtype);
    b->kernel = k;
    b->points = *points;
    b->user_node = -1;
    int step_of[GP_MAX_NODES], children = 0, slot = 0, steps = 0;
    for (int i = 0; i < k->n_nodes; i++) {
        const bool passes = k->node[i].kind == GP_SELECT; /* is its child */
        step_of[i] = passes ? steps - 1 : steps;
        if (!passes) {
            steps++;
            bind_step(b, k, i, step_of, &children, &slot, theta);
        }
    }
    frgi_gp_program *const g = &b->program;
    g->n_steps = steps;
    g->n_parameters = k->n_parameters;
    g->step = b->step;
    g->child = b->child;
    g->slot = b->slot;
    g->radial = frgi_gp_is_radial(b->step[0].kind) &&
                (steps == 1 || (steps == 2 && b->step[1].kind == GP_SCALE));
    g->user = k->user;
    g->user_theta = b->user_theta;
    g->user_cols = b->user_cols;
    return b;
}

/* ---- units -------------------------------------------------------------------------------------- */

/** A stretch of rows of one tile row. */
typedef struct {
    ptrdiff_t tile, row, rows; /* rows 0: there is none */
    ptrdiff_t first;           /* as a point */
} unit;

static ptrdiff_t units_a_tile(const frgi_spd_shape *s)
{
    return (s->tile + GP_ROWS - 1) / GP_ROWS;
}

static unit unit_at(const frgi_spd_shape *s, ptrdiff_t u)
{
    const ptrdiff_t each = units_a_tile(s);
    unit x = {.tile = u / each, .row = u % each * GP_ROWS};
    const ptrdiff_t left = frgi_spd_rows(s, x.tile) - x.row;
    x.rows = left < 0 ? 0 : left < GP_ROWS ? left : GP_ROWS;
    x.first = x.tile * s->tile + x.row;
    return x;
}

static void set_rows(frgi_gp_patch *p, ptrdiff_t first, ptrdiff_t rows, bool training)
{
    p->i0 = first;
    p->rows = (int)rows;
    p->m = (int)((rows + GP_CHUNK - 1) / GP_CHUNK * GP_CHUNK);
    p->training = training;
    p->by_row = p->lower = false;
}

static void set_cols(frgi_gp_patch *p, ptrdiff_t first, ptrdiff_t end)
{
    p->j0 = first;
    p->cols = (int)(end - first < GP_COLS ? end - first : GP_COLS);
}

static void load(const frgi_gp_bound *b, frgi_gp_patch *p, const unit *x)
{
    set_rows(p, x->first, x->rows, true);
    b->ops->load_rows(&b->program, &b->points, x->first, p);
    p->user_rows = b->user_cols + x->first * b->program.user_dims;
}

static int team(const frgi_gp_bound *b, ptrdiff_t n)
{
    const ptrdiff_t most = b->program.radial ? SERIAL_ROWS_RADIAL : SERIAL_ROWS;
    return n < most || omp_in_parallel() ? 1 : b->threads;
}

typedef void (*unit_body)(const frgi_gp_bound *b, const frgi_spd_shape *s, const void *job,
                          ptrdiff_t u, frgi_gp_patch *p);

typedef struct {
    frgi_team team;
    const frgi_gp_bound *b;
    const frgi_spd_shape *s;
    const void *job;
    unit_body body;
} sweep;

static void sweep_body(void *run, int me)
{
    sweep *const w = run;
    const ptrdiff_t each = units_a_tile(w->s);
    const frgi_team_rows rows = {.rows = w->s->tiles, .each = each};
    frgi_team_deal(&w->team, me, &rows);
    frgi_team_meet(&w->team);
    for (ptrdiff_t i, row; (i = frgi_team_take_dealt(&w->team, me, &rows, &row)) >= 0;) {
        const ptrdiff_t u = row * each + i;
        if (unit_at(w->s, u).rows > 0) {
            w->body(w->b, w->s, w->job, u, &w->b->patch[me]);
        }
    }
}

/** Runs body for all units.  Threads have the tile rows that they have in the dense core, and so find what they wrote
 *  in their own cache. */
static void run_units(const frgi_gp_bound *b, const frgi_spd_shape *s, const void *job,
                      unit_body body)
{
    sweep w = {.b = b, .s = s, .job = job, .body = body};
    frgi_team_run(&w.team, b->share, team(b, s->n), sweep_body, &w);
}

/** Columns of tile `col` that lie on or below the diagonal for some row of the unit. */
static ptrdiff_t columns_below(const frgi_spd_shape *s, const unit *x, ptrdiff_t col)
{
    return col < x->tile ? s->tile : x->row + x->rows;
}

/* ---- build -------------------------------------------------------------------------------------- */

typedef struct {
    char *a, *kept;
} build_job;

static void build_unit(const frgi_gp_bound *b, const frgi_spd_shape *s, const void *job,
                       ptrdiff_t u, frgi_gp_patch *p)
{
    const build_job *const to = job;
    const unit x = unit_at(s, u);
    load(b, p, &x);
    p->lower = b->program.radial;
    for (ptrdiff_t col = 0; col <= x.tile; col++) {
        const ptrdiff_t end = columns_below(s, &x, col), begin = col * s->tile;
        const ptrdiff_t tile = frgi_spd_tile(s, x.tile, col) + x.row;
        for (ptrdiff_t j = 0; j < end; j += GP_COLS) {
            const size_t at = (size_t)(tile + j * s->ld) * b->size;
            set_cols(p, begin + j, begin + end);
            if (b->program.radial) {
                b->ops->radial_build(&b->program, p, to->a + at, to->kept ? to->kept + at : NULL,
                                     s->ld);
            } else {
                b->ops->forward(&b->program, p);
                b->ops->store(&b->program, p, to->a + at, s->ld);
            }
        }
    }
}

frg_status frgi_gp_build(frg_context *ctx, const frgi_gp_bound *b, const frgi_spd_shape *s, void *a,
                         void *kept)
{
    REQUIRE(ctx, s->n == b->points.n && s->dtype == b->points.dtype,
            "the shape is not that of the points");
    const build_job job = {.a = a, .kept = kept};
    run_units(b, s, &job, build_unit);
    return FRG_OK;
}

/* ---- gradient pass ------------------------------------------------------------------------------ */

typedef struct {
    const frgi_gp_pass *pass;
} pass_job;

static frgi_gp_weights weights_of(const frgi_gp_bound *b, const frgi_spd_shape *s,
                                  const frgi_gp_pass *pass, const unit *x, ptrdiff_t col)
{
    const bool above = col > x->tile;
    const ptrdiff_t tile = above ? frgi_spd_tile(s, col, x->tile) : frgi_spd_tile(s, x->tile, col);
    return (frgi_gp_weights){.tile = (const char *)pass->inverse + (size_t)tile * b->size,
                             .ld = s->ld,
                             .row = x->row,
                             .transposed = above,
                             .alpha = pass->alpha,
                             .beta = pass->beta,
                             .q = pass->q,
                             .n = s->n,
                             .extra = pass->extra,
                             .extra_q = pass->extra_q};
}

static double add_rows(const double *x)
{
    double sum = 0;
    for (int i = 0; i < GP_ROWS; i++) {
        sum += x[i];
    }
    return sum;
}

static void pass_unit(const frgi_gp_bound *b, const frgi_spd_shape *s, const void *job, ptrdiff_t u,
                      frgi_gp_patch *p)
{
    const frgi_gp_pass *const pass = ((const pass_job *)job)->pass;
    const frgi_gp_program *const g = &b->program;
    const unit x = unit_at(s, u);
    double *const trace = p->sum + (ptrdiff_t)g->n_parameters * GP_ROWS;
    memset(p->sum, 0, sizeof *p->sum * (size_t)(g->n_parameters + 1) * GP_ROWS);
    load(b, p, &x);
    p->lower = g->radial;
    for (ptrdiff_t col = 0; col <= x.tile; col++) {
        const ptrdiff_t end = columns_below(s, &x, col), begin = col * s->tile;
        frgi_gp_weights w = weights_of(b, s, pass, &x, col);
        for (ptrdiff_t j = 0; j < end; j += GP_COLS) {
            w.col = j;
            set_cols(p, begin + j, begin + end);
            if (g->radial) {
                const size_t at =
                    (size_t)(frgi_spd_tile(s, x.tile, col) + x.row + j * s->ld) * b->size;
                b->ops->radial_pass(g, &w, p, pass->kept ? (const char *)pass->kept + at : NULL,
                                    s->ld, trace);
                continue;
            }
            b->ops->forward(g, p);
            b->ops->weigh(g, &w, p);
            if (pass->trace) {
                b->ops->trace(g, &w, p, trace);
            }
            b->ops->backward(g, p);
            b->ops->parameters(g, p);
        }
    }
    for (int t = 0; t <= g->n_parameters; t++) {
        b->partial[u * (g->n_parameters + 1) + t] = add_rows(p->sum + (ptrdiff_t)t * GP_ROWS);
    }
}

/** dx_i = sum over all j: the pairs above the diagonal are visited as well, so that a row has one owner. */
static void inputs_unit(const frgi_gp_bound *b, const frgi_spd_shape *s, const void *job,
                        ptrdiff_t u, frgi_gp_patch *p)
{
    const frgi_gp_pass *const pass = ((const pass_job *)job)->pass;
    const frgi_gp_program *const g = &b->program;
    const ptrdiff_t d = b->points.d;
    const unit x = unit_at(s, u);
    memset(p->gx, 0, sizeof *p->gx * (size_t)(d * GP_ROWS));
    load(b, p, &x);
    for (ptrdiff_t col = 0; col < s->tiles; col++) {
        const ptrdiff_t end = frgi_spd_rows(s, col), begin = col * s->tile;
        frgi_gp_weights w = weights_of(b, s, pass, &x, col);
        w.full = true;
        w.diagonal = col == x.tile;
        for (ptrdiff_t j = 0; j < end; j += GP_COLS) {
            w.col = j;
            set_cols(p, begin + j, begin + end);
            b->ops->forward(g, p);
            b->ops->weigh(g, &w, p);
            b->ops->backward(g, p);
            b->ops->inputs(g, p);
        }
    }
    for (ptrdiff_t i = 0; i < x.rows; i++) {
        for (ptrdiff_t k = 0; k < d; k++) {
            pass->dx[(x.first + i) * d + k] = p->gx[k * GP_ROWS + i];
        }
    }
}

frg_status frgi_gp_run_pass(frg_context *ctx, const frgi_gp_bound *b, const frgi_spd_shape *s,
                            const frgi_gp_pass *pass)
{
    REQUIRE(ctx, s->n == b->points.n && s->dtype == b->points.dtype,
            "the shape is not that of the points");
    if (pass->dx && b->user_node >= 0) {
        FAIL(ctx, E_UNSUPPORTED, "a user's kernel gives no gradient with respect to x");
    }
    const pass_job job = {.pass = pass};
    const int stride = b->program.n_parameters + 1;
    const ptrdiff_t units = units_a_tile(s) * s->tiles;
    run_units(b, s, &job, pass_unit);
    for (int t = 0; t < stride; t++) {
        double sum = 0;
        for (ptrdiff_t u = 0; u < units; u++) {
            sum += unit_at(s, u).rows > 0 ? b->partial[u * stride + t] : 0;
        }
        if (t < b->program.n_parameters) {
            pass->gradient[t] = sum;
        } else if (pass->trace) {
            *pass->trace = sum;
        }
    }
    const int scale = frgi_gp_kernel_scale(b->kernel);
    if (pass->scale && scale >= 0) {
        pass->gradient[scale] = *pass->scale;
    }
    if (pass->dx) {
        run_units(b, s, &job, inputs_unit);
    }
    return FRG_OK;
}

/* ---- products with derivatives ------------------------------------------------------------------ */

typedef struct {
    const double *a;
    double *v;
} product_job;

/** The root's adjoint is a_j in every row: the sums over j are then entries of dC/dlog theta a. */
static void product_unit(const frgi_gp_bound *b, const frgi_spd_shape *s, const void *job,
                         ptrdiff_t u, frgi_gp_patch *p)
{
    const product_job *const to = job;
    const frgi_gp_program *const g = &b->program;
    const unit x = unit_at(s, u);
    memset(p->sum, 0, sizeof *p->sum * (size_t)g->n_parameters * GP_ROWS);
    load(b, p, &x);
    p->by_row = true;
    for (ptrdiff_t j = 0; j < s->n; j += GP_COLS) {
        set_cols(p, j, s->n);
        b->ops->forward(g, p);
        b->ops->spread(g, to->a + j, p);
        b->ops->backward(g, p);
        b->ops->parameters(g, p);
    }
    for (int t = 0; t < g->n_parameters; t++) {
        memcpy(to->v + t * s->n + x.first, p->sum + (ptrdiff_t)t * GP_ROWS,
               sizeof(double) * (size_t)x.rows);
    }
}

frg_status frgi_gp_derivative_products(frg_context *ctx, const frgi_gp_bound *b,
                                       const frgi_spd_shape *s, const double *a, double *v)
{
    REQUIRE(ctx, s->n == b->points.n, "the shape is not that of the points");
    const product_job job = {.a = a, .v = v};
    run_units(b, s, &job, product_unit);
    return FRG_OK;
}

/* ---- new points --------------------------------------------------------------------------------- */

static void load_new(const frgi_gp_bound *b, frgi_gp_patch *p, double *user_rows,
                     const frgi_gp_points *points, ptrdiff_t first, ptrdiff_t rows)
{
    set_rows(p, first, rows, false);
    b->ops->load_rows(&b->program, points, first, p);
    if (b->user_node >= 0) {
        pack_user(b, points, first, rows, user_rows);
        p->user_rows = user_rows;
    }
}

frg_status frgi_gp_cross(frg_context *ctx, const frgi_gp_bound *b, const frgi_gp_points *new_points,
                         ptrdiff_t first, ptrdiff_t m, void *out, ptrdiff_t ld)
{
    REQUIRE(ctx, new_points->dtype == b->points.dtype && new_points->d == b->points.d,
            "the new points are not like the bound ones");
    const ptrdiff_t n = b->points.n, blocks = (m + GP_ROWS - 1) / GP_ROWS;
#pragma omp parallel for schedule(dynamic, 1)                                                      \
    num_threads(team(b, m < SERIAL_ROWS ? 0 : SERIAL_ROWS_RADIAL))
    for (ptrdiff_t block = 0; block < blocks; block++) {
        const int me = omp_get_thread_num();
        const ptrdiff_t at = block * GP_ROWS, rows = m - at < GP_ROWS ? m - at : GP_ROWS;
        frgi_gp_patch *const p = &b->patch[me];
        load_new(b, p, b->user_rows[me], new_points, first + at, rows);
        for (ptrdiff_t j = 0; j < n; j += GP_COLS) {
            set_cols(p, j, n);
            b->ops->forward(&b->program, p);
            b->ops->store(&b->program, p, (char *)out + (size_t)(at + j * ld) * b->size, ld);
        }
    }
    return FRG_OK;
}

frg_status frgi_gp_cross_dx(frg_context *ctx, const frgi_gp_bound *b,
                            const frgi_gp_points *new_points, ptrdiff_t first, ptrdiff_t m,
                            const double *w, ptrdiff_t ldw, double *gx)
{
    REQUIRE(ctx, new_points->dtype == b->points.dtype && new_points->d == b->points.d,
            "the new points are not like the bound ones");
    if (b->user_node >= 0) {
        FAIL(ctx, E_UNSUPPORTED, "a user's kernel gives no gradient with respect to x");
    }
    const ptrdiff_t n = b->points.n, d = b->points.d, blocks = (m + GP_ROWS - 1) / GP_ROWS;
#pragma omp parallel for schedule(dynamic, 1)                                                      \
    num_threads(team(b, m < SERIAL_ROWS ? 0 : SERIAL_ROWS_RADIAL))
    for (ptrdiff_t block = 0; block < blocks; block++) {
        const int me = omp_get_thread_num();
        const ptrdiff_t at = block * GP_ROWS, rows = m - at < GP_ROWS ? m - at : GP_ROWS;
        frgi_gp_patch *const p = &b->patch[me];
        load_new(b, p, b->user_rows[me], new_points, first + at, rows);
        memset(p->gx, 0, sizeof *p->gx * (size_t)(d * GP_ROWS));
        for (ptrdiff_t j = 0; j < n; j += GP_COLS) {
            set_cols(p, j, n);
            b->ops->forward(&b->program, p);
            b->ops->copy_weights(&b->program, w + at + j * ldw, ldw, p);
            b->ops->backward(&b->program, p);
            b->ops->inputs(&b->program, p);
        }
        for (ptrdiff_t i = 0; i < rows; i++) {
            for (ptrdiff_t k = 0; k < d; k++) {
                gx[(at + i) * d + k] = p->gx[k * GP_ROWS + i];
            }
        }
    }
    return FRG_OK;
}

/** The program with the patch's own rows as its columns: its diagonal is k(x, x). */
static frgi_gp_program self_program(const frgi_gp_bound *b, const frgi_gp_patch *p,
                                    const double *user_rows)
{
    frgi_gp_program g = b->program;
    for (int s = 0; s < g.n_slots; s++) {
        b->self[s] = b->slot[s];
        b->self[s].cols = (const char *)p->x + (size_t)s * GP_ROWS * b->size;
    }
    g.slot = b->self;
    g.user_cols = user_rows;
    return g;
}

/** Visits the new points with themselves; gx NULL: values into diagonal. */
static void visit_self(const frgi_gp_bound *b, const frgi_gp_points *new_points, ptrdiff_t first,
                       ptrdiff_t m, double *diagonal, double *gx)
{
    frgi_gp_patch *const p = &b->patch[0];
    const ptrdiff_t d = b->points.d;
    for (ptrdiff_t at = 0; at < m; at += GP_ROWS) {
        const ptrdiff_t rows = m - at < GP_ROWS ? m - at : GP_ROWS;
        load_new(b, p, b->user_rows[0], new_points, first + at, rows);
        const frgi_gp_program g = self_program(b, p, b->user_rows[0]);
        memset(p->gx, 0, sizeof *p->gx * (size_t)(d * GP_ROWS));
        for (ptrdiff_t j = 0; j < rows; j += GP_COLS) {
            set_cols(p, j, rows);
            b->ops->forward(&g, p);
            if (gx) {
                b->ops->mark(&g, p);
                b->ops->backward(&g, p);
                b->ops->inputs(&g, p);
            } else {
                b->ops->read_diagonal(&g, p, diagonal + at + j);
            }
        }
        for (ptrdiff_t i = 0; gx && i < rows; i++) {
            for (ptrdiff_t k = 0; k < d; k++) {
                gx[(at + i) * d + k] = p->gx[k * GP_ROWS + i];
            }
        }
    }
}

void frgi_gp_self(const frgi_gp_bound *b, const frgi_gp_points *new_points, ptrdiff_t first,
                  ptrdiff_t m, double *diagonal)
{
    visit_self(b, new_points, first, m, diagonal, NULL);
}

void frgi_gp_self_dx(const frgi_gp_bound *b, const frgi_gp_points *new_points, ptrdiff_t first,
                     ptrdiff_t m, double *gx)
{
    visit_self(b, new_points, first, m, NULL, gx);
}
