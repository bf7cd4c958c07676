/* gw_exact.c - L(P) without sampling: by two products with the distance matrices, or in the small
 * rank of squared landmark distances.
 *
 * Exact.  The cross term is 2 C P D = (2 C P) D: factors of rank m for the same tiles as the
 * sampled mode's, and C P itself comes from them too (C of rank n times P).  The plan is stored
 * here: n m floats.
 *
 * Landmark.  C_ik = |z_i - z_k|^2 = U V' with U = [|z|^2, 1, z], V = [1, |z|^2, -2 z], so that
 * 2 C P D = 2 U_x (V_x' P V_y) U_y': one look at the plan and a matrix of (L + 2)^2.
 */
#include "gw/gw_level_device.h"
#include "gw/gw_state.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SETTLED     0.05 /* change of the plan in its norm: the same for X and Y exchanged */
#define SETTLED_FAR 0.1  /* of the potentials, relative to epsilon */

struct frgi_average {
    frgi_level *l;
    const struct frgi_average_steps *steps;
    double settled; /* change relative to the norm at which epsilon may fall */
    /* exact */
    float *plan;             /* n x m, averaged */
    float *packed, *p_right; /* C by groups, P by panels; D is in product.right */
    float *middle, *zeros;   /* 2 C P; ld + rows of them */
    /* landmark */
    int64_t wide_x, wide_y; /* landmarks + 2 */
    double *u_x, *v_x, *u_y, *v_y;
    double *core;                      /* wide_x x wide_y, averaged */
    double *image;                     /* n x wide_y: P V_y */
    double change;                     /* Frobenius norm, exact mode */
    double *change_rows, *square_rows; /* squares of the change and of the plan */
    double norm;       /* what the change is relative to: of the plan, 1 for potentials */
    bool converged;    /* at this epsilon */
    frgi_arena memory; /* all of these arrays */
};

const char *frgi_exact_idle_option(const frg_gw_opts *o)
{
    frg_gw_opts usual;
    frg_gw_defaults(&usual, sizeof usual);
    const double beta = o->lambda_ema_beta; /* 0, 1: no memory, which is so */
    const bool memory =
        beta > 0 && beta < 1 && (beta < usual.lambda_ema_beta || beta > usual.lambda_ema_beta);
    const struct {
        const char *name;
        bool idle;
    } options[] = {{"anchors", o->anchors != usual.anchors},
                   {"sampling", o->sampling != usual.sampling},
                   {"scale batch_max", o->scale == FRG_GW_SCALE_BATCH_MAX},
                   {"lambda_ema_beta", memory},
                   {"multiscale", o->multiscale == FRG_GW_MULTISCALE_ON},
                   {"n_coarse", o->n_coarse != usual.n_coarse},
                   {"n_start", o->n_start != usual.n_start && o->n_start != 1},
                   {"fine_steps", o->fine_steps != usual.fine_steps},
                   {"lr_max_iter", o->lr_max_iter != usual.lr_max_iter},
                   {"lr_dykstra_max_iter", o->lr_dykstra_max_iter != usual.lr_dykstra_max_iter}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (options[i].idle) {
            return options[i].name;
        }
    }
    return NULL;
}

/* ---- exact ----------------------------------------------------------------------------------- */

/** P_i. <- (1 - alpha) P_i. + alpha row; squares of the change and of the row. */
static void average_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    frgi_average *const e = user;
    const int64_t m = e->l->y->n;
    const double alpha = e->l->o->damping;
    float *const to = e->plan + i * m;
    double square = 0, whole = 0;
    (void)chunk;
    for (int64_t j = 0; j < m; j++) {
        const double gap = alpha * (row[j] - (double)to[j]);
        const double now = (double)to[j] + gap;
        square += gap * gap;
        whole += row[j] * row[j];
        to[j] =
            (float)(now < (double)FLT_MIN ? 0 : now); /* denormals would slow every product down */
    }
    e->change_rows[i] = square;
    e->square_rows[i] = whole;
}

/** middle <- 2 C P, row by row of groups, and the left factor from it. */
static frg_status product_rows(frgi_average *e)
{
    frgi_not_beside_device(e->l->ctx, "the linearisation of the mode exact");
    const frgi_build_ops *const ops = frgi_build_ops_of(e->l->ctx);
    const frgi_sweep *const s = &e->l->t.s;
    const int64_t n = s->n, m = s->m, groups = s->rows / FRGI_GROUP, panels = s->ld / FRGI_PANEL;
#pragma omp parallel for schedule(static) num_threads(frg_threads(e->l->ctx)) if (panels > 4)
    for (int64_t p = 0; p < panels; p++) {
        ops->pack(e->plan, m, n, m, FRGI_PANEL, 1, e->p_right, p, p + 1);
    }
    /* the same tiles, with nothing added: exponents 1 times the product */
    frgi_factors f = {.rank = n, .left = e->packed, .right = e->p_right, .k = 2};
    frgi_sweep bare = *s;
    bare.base.g = e->zeros;
    bare.base.h = e->zeros + s->ld;
    bare.x.source = &f;
#pragma omp parallel for schedule(dynamic, 1) num_threads(frg_threads(e->l->ctx)) if (groups > 4)
    for (int64_t g = 0; g < groups; g++) {
        float *const rows = e->middle + g * FRGI_GROUP * s->ld;
        ops->build(&bare, g * FRGI_GROUP, 1, rows);
    }
    /* packed as the left factor of rank m: [group][l][8] */
    float *const left = e->l->product.left;
#pragma omp parallel for schedule(static) num_threads(frg_threads(e->l->ctx)) if (groups > 4)
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t r = 0; r < m; r++) {
            for (int64_t i = 0; i < FRGI_GROUP; i++) {
                left[(g * m + r) * FRGI_GROUP + i] = e->middle[(g * FRGI_GROUP + i) * s->ld + r];
            }
        }
    }
    return FRG_OK;
}

static frg_status average_plan(frgi_average *e)
{
    frgi_not_beside_device(e->l->ctx, "the average of plans");
    frgi_level *const l = e->l;
    double square = 0, whole = 0;
    frgi_transport_rows(&l->t, 0, l->x->n, 64, average_row, e);
    for (int64_t i = 0; i < l->x->n; i++) {
        square += e->change_rows[i];
        whole += e->square_rows[i];
    }
    e->change = sqrt(square);
    e->norm = sqrt(whole);
    return FRG_OK;
}

/** Packed C, by groups; D, by panels. */
static void pack_distances(frgi_average *e, bool second, const float *all)
{
    frgi_not_beside_device(e->l->ctx, "distances of the mode exact");
    frgi_level *const l = e->l;
    const frgi_build_ops *const ops = frgi_build_ops_of(l->ctx);
    const frgi_sweep *const s = &l->t.s;
    if (second) {
        ops->pack(all, s->m, s->m, s->m, FRGI_PANEL, 1, l->product.right, 0, s->ld / FRGI_PANEL);
    } else {
        ops->pack(all, s->n, s->n, s->n, FRGI_GROUP, 1, e->packed, 0, s->rows / FRGI_GROUP);
    }
}

static void begin_with_plan(frgi_average *e)
{
    frgi_not_beside_device(e->l->ctx, "the averaged plan");
    const frgi_level *const l = e->l;
    const int64_t n = l->t.s.n, m = l->t.s.m;
    memset(e->zeros, 0, (size_t)(l->t.s.ld + l->t.s.rows) * sizeof *e->zeros);
    memset(e->change_rows, 0, (size_t)(2 * n) * sizeof *e->change_rows);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < m; j++) {
            e->plan[i * m + j] =
                l->initial.plan ? l->initial.plan[i * m + j] : (float)(l->a[i] * l->b[j]);
        }
    }
}

static void lay_out_exact(frgi_arena *a, frgi_average *e)
{
    const frgi_sweep *const s = &e->l->t.s;
    e->plan = TAKE(a, float, frgi_mul((size_t)s->n, (size_t)s->m));
    e->packed = TAKE(a, float, frgi_mul((size_t)s->rows, (size_t)s->n));
    e->p_right = TAKE(a, float, frgi_mul((size_t)s->ld, (size_t)s->n));
    e->middle = TAKE(a, float, frgi_mul((size_t)s->rows, (size_t)s->ld));
    e->zeros = TAKE(a, float, s->ld + s->rows);
    e->change_rows = TAKE(a, double, s->n);
    e->square_rows = TAKE(a, double, s->n);
}

/** The array of the mode that belongs to a saved state; at NULL: there. */
static void keep_in_states(const frgi_average *e, const char *name, void *at, size_t bytes,
                           frgi_buffer there)
{
    frgi_array *const own = &e->l->saved.own[0];
    *own = (frgi_array){.live = at, .bytes = bytes, .there = {there}};
    snprintf(own->name, sizeof own->name, "%s", name);
    e->l->saved.n_own = 1;
}

static void keep_plan(const frgi_average *e)
{
    const size_t cells = (size_t)(e->l->x->n * e->l->y->n);
    keep_in_states(e, "plan", e->plan, cells * sizeof *e->plan, (frgi_buffer){0});
}

static frg_status open_exact(frgi_average *e)
{
    frgi_level *const l = e->l;
    frg_context *const ctx = l->ctx;
    const int64_t n = l->t.s.n, m = l->t.s.m, most = n > m ? n : m;
    const char *const what = "exact linearisation";
    float *all = NULL;
    int32_t *nodes = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, frgi_pairs_widen(l, m, what));
    lay_out_exact(&e->memory, e);
    TRY_TO(done, l->t.steps->open(&e->memory, ctx, what));
    lay_out_exact(&e->memory, e);
    TRY_TO(done, NEW(ctx, &all, frgi_mul((size_t)most, (size_t)most), "distances"));
    TRY_TO(done, NEW(ctx, &nodes, most, "distances"));
    for (int64_t i = 0; i < most; i++) {
        nodes[i] = (int32_t)i;
    }
    TRY_TO(done, frgi_distances_rows(l->x, nodes, n, all, n));
    e->steps->load(e, false, all);
    TRY_TO(done, frgi_distances_rows(l->y, nodes, m, all, m));
    e->steps->load(e, true, all);
    e->steps->begin(e);
    keep_plan(e);
done:
    DROP(ctx, &all);
    DROP(ctx, &nodes);
    return status;
}

const struct frgi_average_steps frgi_exact_host_steps = {.load = pack_distances,
                                                         .begin = begin_with_plan,
                                                         .linearise = product_rows,
                                                         .average = average_plan};

/* ---- landmark -------------------------------------------------------------------------------- */

static void landmark_side(frgi_average *e, bool second, const float *all)
{
    (void)all;
    const frgi_distances *const d = second ? e->l->y : e->l->x;
    double *const u = second ? e->u_y : e->u_x, *const v = second ? e->v_y : e->v_x;
    const int64_t w = d->d + 2;
    const double scale = (double)d->scale;
    for (int64_t i = 0; i < d->n; i++) {
        double square = 0;
        for (int64_t c = 0; c < d->d; c++) {
            const double z = scale * (double)(d->points[i * d->d + c] - d->points[c]);
            u[i * w + 2 + c] = z;
            v[i * w + 2 + c] = -2 * z;
            square += z * z;
        }
        u[i * w] = square;
        u[i * w + 1] = 1;
        v[i * w] = 1;
        v[i * w + 1] = square;
    }
}

/** image_i. <- row V_y */
static void image_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const frgi_average *const e = user;
    (void)chunk;
    double *const to = e->image + i * e->wide_y;
    memset(to, 0, (size_t)e->wide_y * sizeof *to);
    for (int64_t j = 0; j < e->l->y->n; j++) {
        const double p = row[j];
        const double *const v = e->v_y + j * e->wide_y;
        for (int64_t c = 0; c < e->wide_y; c++) {
            to[c] += p * v[c];
        }
    }
}

/** core <- (1 - alpha) core + alpha V_x' image. */
static void fold_core(frgi_average *e, double alpha)
{
    for (int64_t c = 0; c < e->wide_x * e->wide_y; c++) {
        e->core[c] *= 1 - alpha;
    }
    for (int64_t i = 0; i < e->l->x->n; i++) {
        for (int64_t c = 0; c < e->wide_x; c++) {
            const double v = alpha * e->v_x[i * e->wide_x + c];
            for (int64_t b = 0; b < e->wide_y; b++) {
                e->core[c * e->wide_y + b] += v * e->image[i * e->wide_y + b];
            }
        }
    }
}

/** The core of the plan to start from. */
static void begin_core(frgi_average *e)
{
    const frgi_level *const l = e->l;
    const frgi_sweep *const s = &l->t.s;
    memset(e->core, 0, (size_t)(e->wide_x * e->wide_y) * sizeof *e->core);
    memset(e->image, 0, (size_t)(s->n * e->wide_y) * sizeof *e->image);
    /* P = a b': its image is a (b' V_y) */
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t j = 0; j < s->m; j++) {
            const double p =
                l->initial.plan ? (double)l->initial.plan[i * s->m + j] : l->a[i] * l->b[j];
            for (int64_t c = 0; c < e->wide_y; c++) {
                e->image[i * e->wide_y + c] += p * e->v_y[j * e->wide_y + c];
            }
        }
    }
    fold_core(e, 1);
}

static void begin_with_image(frgi_average *e)
{
    frgi_level_product *const p = &e->l->product;
    for (int64_t j = 0; j < e->l->t.s.m; j++) {
        for (int64_t c = 0; c < e->wide_y; c++) {
            p->right[(j / FRGI_PANEL * p->rank + c) * FRGI_PANEL + j % FRGI_PANEL] =
                (float)e->u_y[j * e->wide_y + c];
        }
    }
    begin_core(e);
}

static void lay_out_landmark(frgi_arena *a, frgi_average *e)
{
    const frgi_sweep *const s = &e->l->t.s;
    e->u_x = TAKE(a, double, frgi_mul((size_t)s->n, (size_t)e->wide_x));
    e->v_x = TAKE(a, double, frgi_mul((size_t)s->n, (size_t)e->wide_x));
    e->u_y = TAKE(a, double, frgi_mul((size_t)s->m, (size_t)e->wide_y));
    e->v_y = TAKE(a, double, frgi_mul((size_t)s->m, (size_t)e->wide_y));
    e->core = TAKE(a, double, e->wide_x * e->wide_y);
    e->image = TAKE(a, double, frgi_mul((size_t)s->n, (size_t)e->wide_y));
}

static frg_status take_landmark(frgi_average *e)
{
    frgi_level *const l = e->l;
    e->wide_x = l->x->d + 2;
    e->wide_y = l->y->d + 2;
    e->norm = 1;
    lay_out_landmark(&e->memory, e);
    TRY(l->t.steps->open(&e->memory, l->ctx, "landmark factors"));
    lay_out_landmark(&e->memory, e);
    return FRG_OK;
}

static void keep_core(frgi_average *e)
{
    keep_in_states(e, "core", e->core, (size_t)(e->wide_x * e->wide_y) * sizeof *e->core,
                   (frgi_buffer){0});
}

static frg_status open_landmark(frgi_average *e)
{
    TRY(take_landmark(e));
    TRY(frgi_pairs_widen(e->l, e->wide_y, "landmark factors"));
    e->steps->load(e, false, NULL);
    e->steps->load(e, true, NULL);
    e->steps->begin(e);
    keep_core(e);
    return FRG_OK;
}

/** left <- 2 U_x core, of which the cross term is left U_y'. */
static frg_status landmark_left(frgi_average *e)
{
    frgi_not_beside_device(e->l->ctx, "the linearisation of the mode landmark");
    frgi_level *const l = e->l;
    for (int64_t i = 0; i < l->x->n; i++) {
        for (int64_t b = 0; b < e->wide_y; b++) {
            double sum = 0;
            for (int64_t c = 0; c < e->wide_x; c++) {
                sum += e->u_x[i * e->wide_x + c] * e->core[c * e->wide_y + b];
            }
            l->product.left[(i / FRGI_GROUP * l->product.rank + b) * FRGI_GROUP + i % FRGI_GROUP] =
                (float)(2 * sum);
        }
    }
    return FRG_OK;
}

static frg_status average_image(frgi_average *e)
{
    frgi_transport_rows(&e->l->t, 0, e->l->x->n, 64, image_row, e);
    fold_core(e, e->l->o->damping);
    e->change = e->l->stopping.change;
    return FRG_OK;
}

const struct frgi_average_steps frgi_landmark_host_steps = {.load = landmark_side,
                                                            .begin = begin_with_image,
                                                            .linearise = landmark_left,
                                                            .average = average_image};

/* ---- on a device ----------------------------------------------------------------------------- */

static frg_status linearise_there(frgi_average *e)
{
    return frgi_level_device_linearise(e->l);
}

static frg_status average_there(frgi_average *e)
{
    return frgi_level_device_average(e->l, &e->change, &e->norm);
}

/** The averaged plan lies on the device (gw_level_device.h). */
static const struct frgi_average_steps exact_there = {.linearise = linearise_there,
                                                      .average = average_there};

static frg_status open_exact_there(frgi_average *e)
{
    frgi_buffer plan;
    TRY(frgi_level_device_exact_open(e->l, &plan));
    keep_in_states(e, "plan", NULL, plan.bytes, plan);
    return FRG_OK;
}

static frg_status left_there(frgi_average *e)
{
    return frgi_level_device_landmark_linearise(e->l);
}

static frg_status image_there(frgi_average *e)
{
    e->change = e->l->stopping.change;
    return frgi_level_device_landmark_average(e->l);
}

static const struct frgi_average_steps landmark_there = {.linearise = left_there,
                                                         .average = image_there};

/** Factors and the core of the plan to start from are made here once. */
static frg_status open_landmark_there(frgi_average *e)
{
    frgi_host_step(e->l->ctx, FRGI_HOST_LANDMARKS);
    TRY(take_landmark(e));
    landmark_side(e, false, NULL);
    landmark_side(e, true, NULL);
    begin_core(e);
    const frgi_landmark_factors factors = {e->wide_x, e->wide_y, e->u_x, e->v_x,
                                           e->u_y,    e->v_y,    e->core};
    frgi_buffer core;
    TRY(frgi_level_device_landmark_open(e->l, &factors, &core));
    keep_in_states(e, "core", NULL, core.bytes, core);
    return FRG_OK;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static frg_status one_step(frgi_average *e)
{
    frgi_level *const l = e->l;
    double begun = frgi_seconds();
    TRY(e->steps->linearise(e));
    double now = frgi_seconds();
    l->spent.build += now - begun;
    begun = now;
    TRY(frgi_level_solve(l, l->o->max_inner, l->o->marginal_tol));
    now = frgi_seconds();
    l->spent.inner += now - begun;
    begun = now;
    TRY(e->steps->average(e));
    e->converged = e->change < e->settled * e->norm;
    l->spent.sample += frgi_seconds() - begun;
    l->step++;
    return FRG_OK;
}

/** What rounding may leave of the change: exponents 2 C P D / epsilon are floats, and so is what is
 *  added to them. */
static double noise_of(const frgi_average *e)
{
    const frgi_level *const l = e->l;
    const frgi_sweep *const s = &l->t.s;
    const double most = (double)(l->x->most * l->x->scale) * (double)(l->y->most * l->y->scale),
                 linear = l->linear ? (double)frgi_build_ops_of(l->ctx)->largest(l->linear,
                                                                                 s->rows * s->ld)
                                    : 0;
    return 0x1p-24 * (64 + FRGI_LOG2_E / l->epsilon * (2 * most + linear)) * e->norm;
}

static frg_status loop(frgi_average *e, frg_gw_reason *reason, int64_t *steps)
{
    frgi_level *const l = e->l;
    const frg_gw_opts *const o = l->o;
    const double start = frgi_epsilon_start(o), end = frgi_epsilon_end(o);
    const bool anneals = o->anneal != FRG_GW_ANNEAL_NONE;
    int64_t t = 0;
    *reason = FRG_GW_MAX_ITER;
    l->saved.phase = FRGI_EXACT;
    l->saved.turn = 0;
    TRY(frgi_state_enter(l, o->max_iter, &t));
    for (; t < o->max_iter; t++) {
        TRY(frgi_state_point(l, t));
        if (o->anneal == FRG_GW_ANNEAL_ITER) {
            l->epsilon = start * pow(end / start, (double)t / (double)o->max_iter);
        }
        TRY(one_step(e));
        ++*steps;
        TRY(frgi_trace_add(l));
        const frg_status beat = frgi_level_beat(l, "outer", t + 1, o->max_iter, e->change, o->tol);
        if (beat != FRG_OK) {
            *reason = FRG_GW_CANCELLED;
            return beat;
        }
        const bool may_end = t > 0 && t + 1 >= o->min_iter && (!anneals || l->epsilon <= end);
        if (may_end && e->change < o->tol) {
            *reason = FRG_GW_CONVERGED_CHANGE;
            break;
        }
        if (may_end && o->tol > 0 &&
            frgi_floor_reached(&l->stopping.floor, e->change, noise_of(e))) {
            *reason = FRG_GW_ROUNDING_FLOOR;
            break;
        }
        /* the next epsilon once the plan has settled at this one */
        if (o->anneal == FRG_GW_ANNEAL_PROGRESS && e->converged) {
            l->epsilon = fmax(end, l->epsilon * pow(10, -0.125));
        }
    }
    return FRG_OK;
}

frg_status frgi_exact_loop(frgi_level *l, bool landmark, frg_gw_reason *reason, int64_t *steps)
{
    const bool there = l->device;
    frgi_average e = {.l = l, .settled = landmark ? SETTLED_FAR : SETTLED};
    frg_status status;
    if (landmark) {
        e.steps = there ? &landmark_there : l->t.steps->landmark;
        status = there ? open_landmark_there(&e) : open_landmark(&e);
    } else {
        e.steps = there ? &exact_there : l->t.steps->exact;
        status = there ? open_exact_there(&e) : open_exact(&e);
    }
    if (status >= 0) {
        status = loop(&e, reason, steps);
    }
    if (there) {
        frgi_level_device_averaged_close(l);
    }
    l->saved.n_own = 0;
    if (e.memory.bytes > 0) {
        l->t.steps->close(&e.memory, l->ctx);
    }
    return status;
}
