/* gp_bind.c - an expression bound to parameter values: a program of steps, its constants, scaled
 * copies of the points.
 *
 *     radial leaves        x_k / l_k              (k reads (x_ik - x_jk) / l_k as one difference)
 *     linear, polynomial   x_k + centre_k (points are centred, these are not translation-invariant)
 *     others               x_k as it is, 1/(2 p_k), 1/l_k^2, v_k, 2 pi^2 v_k ... as constants
 *
 * Memory: n values for a leaf and column that reads x through a factor or shift, and for each
 * thread 8 KB a node and 512 bytes a parameter.
 *
 * Dangers.  Lengthscales of 1e-300 would make scaled coordinates overflow and coincident points
 * NaN: the factor is limited so that no scaled coordinate is above CAP, where different points are
 * still so far apart that k is 0.
 */
#include <math.h>
#include <string.h>

#include "gp/gp_bound.h"

/* f64, f32; largest constant, smallest alpha of rq */
static const double CAP[2] = {1e140, 1e14}, LARGEST[2] = {1e250, 1e25},
                    SMALLEST[2] = {1e-300, 1e-30};

#pragma GCC visibility push(hidden)
DECLARE_LEVELS(frgi_gp_tiles_ops[2], frgi_gp_tiles_table);
#pragma GCC visibility pop

/** Of a level's table, [0]: f64, [1]: f32. */
static const frgi_gp_tiles_ops *tiles_of(frgi_isa isa, frg_dtype dtype)
{
    static const frgi_gp_tiles_ops *const levels[ISA_COUNT] = EACH_LEVEL(frgi_gp_tiles_table);
    return &levels[isa][dtype == FRG_F32];
}

/* ---- sizes ----------------------------------------------------------------------------------- */

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

/** The most tasks of gp_build.c, some of which have no rows: tiles have at least GP_CHUNK rows but
 *  for the last. */
static ptrdiff_t tasks_of(ptrdiff_t n)
{
    return n / GP_CHUNK + 2;
}

static void lay_out_patch(frgi_arena *a, const frgi_gp_kernel *k, const frgi_gp_bound *b,
                          frgi_gp_patch *p, double **user_rows)
{
    const size_t size = b->size, steps = (size_t)k->n_nodes;
    const int slots = b->program.n_slots, dims = b->program.max_dims;
    *p = (frgi_gp_patch){0};
    p->x = frgi_take(a, frgi_mul((size_t)slots * GP_ROWS, size));
    p->value = frgi_take(a, steps * GP_PATCH * size);
    p->aux = frgi_take(a, steps * GP_AUX * GP_PATCH * size);
    p->adjoint = frgi_take(a, steps * GP_PATCH * size);
    p->lane = frgi_take(a, ((size_t)(3 * dims + 4) * GP_ROWS + GP_PATCH) * size);
    p->sum = TAKE(a, double, (k->n_parameters + 1) * GP_ROWS);
    p->gx = TAKE(a, double, k->d *GP_ROWS);
    p->tile = TAKE(a, double, k->has_user ? GP_PATCH + k->user.n_parameters : 0);
    *user_rows = TAKE(a, double, b->program.user_dims *GP_ROWS);
}

/** What the expression asks of patches: how many slots, the most columns of a leaf and of a user's
 *  kernel. */
static void count_slots(const frgi_gp_kernel *k, frgi_gp_program *g)
{
    g->n_slots = g->max_dims = g->user_dims = 0;
    for (int i = 0; i < k->n_nodes; i++) {
        const int dims = k->node[i].dims;
        g->n_slots += has_slots(k->node[i].kind) ? dims : 0;
        g->max_dims = dims > g->max_dims ? dims : g->max_dims;
        g->user_dims = k->node[i].kind == GP_USER && dims > g->user_dims ? dims : g->user_dims;
    }
}

/** Constants and scaled copies of every node; `there`: b's lists have memory. */
static void lay_out_nodes(frgi_arena *a, const frgi_gp_kernel *k, ptrdiff_t n,
                          const frgi_gp_bound *b, bool there)
{
    int slot = 0;
    for (int i = 0; i < k->n_nodes; i++) {
        const frgi_gp_node *const node = &k->node[i];
        void *const constant = frgi_take(a, (size_t)count_constants(node) * b->size);
        if (there) {
            b->constant[i] = constant;
        }
        for (int c = 0; c < node->dims && has_slots(node->kind); c++, slot++) {
            void *const copy =
                has_copies(node->kind) ? frgi_take(a, frgi_mul((size_t)n, b->size)) : NULL;
            if (there) {
                b->copy[slot] = copy;
            }
        }
    }
}

static frgi_gp_bound *lay_out(frgi_arena *a, const frgi_gp_kernel *k, frg_dtype dtype, ptrdiff_t n,
                              int threads)
{
    frgi_gp_bound *const b = TAKE(a, frgi_gp_bound, 1);
    frgi_gp_bound head = {.threads = threads, .size = frg_sizeof(dtype)};
    count_slots(k, &head.program);
    const int slots = head.program.n_slots;
    head.step = TAKE(a, frgi_gp_step, k->n_nodes);
    head.child = TAKE(a, int, k->n_nodes);
    head.slot = TAKE(a, frgi_gp_slot, slots);
    head.self = TAKE(a, frgi_gp_slot, slots);
    head.copy = TAKE(a, void *, slots);
    head.constant = TAKE(a, void *, k->n_nodes);
    head.user_cols = TAKE(a, double, head.program.user_dims *n);
    head.patch = TAKE(a, frgi_gp_patch, threads);
    head.user_rows = TAKE(a, double *, threads);
    head.share = TAKE(a, frgi_team_share, threads);
    head.partial = TAKE(a, double, tasks_of(n) * (k->n_parameters + 1));
    head.user_theta = TAKE(a, double, k->has_user ? k->user.n_parameters : 0);
    lay_out_nodes(a, k, n, &head, b != NULL);
    for (int t = 0; t < threads; t++) {
        frgi_gp_patch patch;
        double *rows;
        lay_out_patch(a, k, &head, &patch, &rows);
        if (b) {
            head.patch[t] = patch;
            head.user_rows[t] = rows;
        }
    }
    if (b) {
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

/* ---- binding --------------------------------------------------------------------------------- */

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

void frgi_gp_pack_user(const frgi_gp_bound *b, const frgi_gp_points *points, ptrdiff_t first,
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
        frgi_gp_pack_user(b, &b->points, 0, b->points.n, b->user_cols);
    }
}

frgi_gp_bound *frgi_gp_bind(const frg_context *ctx, const frgi_gp_kernel *k, const double *theta,
                            const frgi_gp_points *points, void *memory, int threads)
{
    frgi_arena a = {.base = memory, .bytes = SIZE_MAX};
    frgi_gp_bound *const b = lay_out(&a, k, points->dtype, points->n, threads);
    b->ops = tiles_of(frgi_context_isa(ctx), points->dtype);
    b->kernel = k;
    b->points = *points;
    b->user_node = -1;
    int step_of[GP_MAX_NODES], children = 0, slot = 0, steps = 0;
    for (int i = 0; i < k->n_nodes; i++) {
        const bool selects = k->node[i].kind == GP_SELECT; /* its child's step is its own */
        step_of[i] = selects ? steps - 1 : steps;
        if (!selects) {
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
