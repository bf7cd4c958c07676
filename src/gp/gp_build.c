/* gp_build.c - a bound expression over all pairs of its points: building, gradient pass, products
 * with derivatives; and over new points.
 *
 *     C_ij,   1/2 sum_ij W_ij dC_ij/dlog theta,   sum_j W_ij dk(x_i, x_j)/dx_i,   dC/dlog theta_t a
 *
 * A task is a stretch of GP_ROWS rows of one tile row with all their columns; it writes rows, or
 * sums, that no other task touches.  Sums of a pass are kept per task (a double for each parameter)
 * and added in the order of the tasks, so the bits do not depend on the number of threads.
 *
 *     columns ->   tile 0        tile 1
 *     rows 0-63    patch patch | .
 *     rows 64-..   patch patch | patch ...
 *
 * Work: n^2/2 pairs, each what its leaves cost (radial: 3d + 20 operations, backward 3d + 10 more);
 * with input gradients, and for the products, n^2.
 */
#include <omp.h>
#include <string.h>

#include "core/tree_sum.h"
#include "gp/gp_bound.h"

enum { SERIAL_ROWS = 192, SERIAL_ROWS_RADIAL = 400 }; /* below, threads cost more than they bring */

/* ---- tasks ----------------------------------------------------------------------------------- */

/** A stretch of rows of one tile row. */
typedef struct {
    ptrdiff_t tile, row, rows; /* rows 0: there is none */
    ptrdiff_t first;           /* as a point */
} task;

static ptrdiff_t tasks_a_tile(const frgi_spd_layout *s)
{
    return (s->tile + GP_ROWS - 1) / GP_ROWS;
}

static task task_at(const frgi_spd_layout *s, ptrdiff_t u)
{
    const ptrdiff_t each = tasks_a_tile(s);
    task x = {.tile = u / each, .row = u % each * GP_ROWS};
    const ptrdiff_t left = frgi_spd_rows(s, x.tile) - x.row;
    x.rows = left < 0 ? 0 : left < GP_ROWS ? left : GP_ROWS;
    x.first = x.tile * s->tile + x.row;
    return x;
}

static void load(const frgi_gp_bound *b, frgi_gp_patch *p, const task *x)
{
    frgi_gp_set_rows(p, x->first, x->rows, true);
    b->ops->load_rows(&b->program, &b->points, x->first, p);
    p->user_rows = b->user_cols + x->first * b->program.user_dims;
}

static int team(const frgi_gp_bound *b, ptrdiff_t n)
{
    const ptrdiff_t most = b->program.radial ? SERIAL_ROWS_RADIAL : SERIAL_ROWS;
    return n < most || omp_in_parallel() ? 1 : b->threads;
}

typedef void (*task_body)(const frgi_gp_bound *b, const frgi_spd_layout *s, const void *job,
                          ptrdiff_t u, frgi_gp_patch *p);

typedef struct {
    frgi_team team;
    const frgi_gp_bound *b;
    const frgi_spd_layout *s;
    const void *job;
    task_body body;
} sweep;

static void sweep_body(void *run, int me)
{
    sweep *const w = run;
    const ptrdiff_t each = tasks_a_tile(w->s);
    const frgi_team_rows rows = {.rows = w->s->tiles, .each = each};
    frgi_team_deal(&w->team, me, &rows);
    frgi_team_meet(&w->team);
    for (ptrdiff_t i, row; (i = frgi_team_take_dealt(&w->team, me, &rows, &row)) >= 0;) {
        const ptrdiff_t u = row * each + i;
        if (task_at(w->s, u).rows > 0) {
            w->body(w->b, w->s, w->job, u, &w->b->patch[me]);
        }
    }
}

/** Runs body for all tasks.  A thread gets the same tile rows as in the factorisation, which are in
 *  its cache. */
static void run_tasks(const frgi_gp_bound *b, const frgi_spd_layout *s, const void *job,
                      task_body body)
{
    sweep w = {.b = b, .s = s, .job = job, .body = body};
    frgi_team_run(&w.team, b->share, team(b, s->n), sweep_body, &w);
}

/** Columns of tile `col` that lie on or below the diagonal for some row of the task. */
static ptrdiff_t columns_below(const frgi_spd_layout *s, const task *x, ptrdiff_t col)
{
    return col < x->tile ? s->tile : x->row + x->rows;
}

/* ---- build ----------------------------------------------------------------------------------- */

typedef struct {
    char *a, *kept;
} build_job;

static void build_task(const frgi_gp_bound *b, const frgi_spd_layout *s, const void *job,
                       ptrdiff_t u, frgi_gp_patch *p)
{
    const build_job *const to = job;
    const task x = task_at(s, u);
    load(b, p, &x);
    p->lower = b->program.radial;
    for (ptrdiff_t col = 0; col <= x.tile; col++) {
        const ptrdiff_t end = columns_below(s, &x, col), begin = col * s->tile;
        const ptrdiff_t tile = frgi_spd_tile(s, x.tile, col) + x.row;
        for (ptrdiff_t j = 0; j < end; j += GP_COLS) {
            const size_t at = (size_t)(tile + j * s->ld) * b->size;
            frgi_gp_set_cols(p, begin + j, begin + end);
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

frg_status frgi_gp_build(frg_context *ctx, const frgi_gp_bound *b, const frgi_spd *a, void *kept)
{
    const frgi_spd_layout *const s = &a->layout;
    REQUIRE(ctx, s->n == b->points.n && s->dtype == b->points.dtype,
            "the matrix has another order or type than the points");
    const build_job job = {.a = a->elements, .kept = kept};
    run_tasks(b, s, &job, build_task);
    return FRG_OK;
}

/* ---- gradient pass --------------------------------------------------------------------------- */

typedef struct {
    const frgi_gp_pass *pass;
} pass_job;

static frgi_gp_weights weights_of(const frgi_spd_layout *s, const frgi_gp_pass *pass, const task *x,
                                  ptrdiff_t col)
{
    const bool above = col > x->tile;
    const ptrdiff_t tile = above ? frgi_spd_tile(s, col, x->tile) : frgi_spd_tile(s, x->tile, col);
    return (frgi_gp_weights){.tile = (const char *)pass->inverse->elements +
                                     (size_t)tile * frg_sizeof(s->dtype),
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

/** Does the inverse come in f32 to a pass in f64?  Its patches are widened then: the pass costs
 *  n^2, the inverse n^3. */
static bool is_narrow(const frgi_gp_bound *b, const frgi_spd_layout *s)
{
    return s->dtype != b->points.dtype;
}

/** to (GP_PATCH doubles) <- the patch of an inverse in f32, mirrored where it lies above the
 *  diagonal; w then reads it there. */
static void widen(const frgi_gp_patch *p, frgi_gp_weights *w, double *to)
{
    const float *const from = w->tile;
    const bool apart = w->transposed || w->diagonal;
    for (ptrdiff_t j = 0; j < p->cols; j++) {
        for (ptrdiff_t i = 0; i < p->m; i++) {
            const ptrdiff_t row = w->row + i, col = w->col + j;
            const bool mirror = w->transposed || (w->diagonal && row < col);
            to[i + j * GP_ROWS] =
                apart && i >= p->rows
                    ? 0
                    : (double)from[mirror ? col + row * w->ld : row + col * w->ld];
        }
    }
    w->tile = to;
    w->ld = GP_ROWS;
    w->row = w->col = 0;
    w->transposed = w->diagonal = false;
}

static double add_rows(const double *x)
{
    double sum = 0;
    for (int i = 0; i < GP_ROWS; i++) {
        sum += x[i];
    }
    return sum;
}

static void pass_task(const frgi_gp_bound *b, const frgi_spd_layout *s, const void *job,
                      ptrdiff_t u, frgi_gp_patch *p)
{
    const frgi_gp_pass *const pass = ((const pass_job *)job)->pass;
    const frgi_gp_program *const g = &b->program;
    const task x = task_at(s, u);
    _Alignas(64) double wide[GP_PATCH];
    double *const trace = p->sum + (ptrdiff_t)g->n_parameters * GP_ROWS;
    memset(p->sum, 0, sizeof *p->sum * (size_t)(g->n_parameters + 1) * GP_ROWS);
    load(b, p, &x);
    p->lower = g->radial;
    for (ptrdiff_t col = 0; col <= x.tile; col++) {
        const ptrdiff_t end = columns_below(s, &x, col), begin = col * s->tile;
        const frgi_gp_weights of_tile = weights_of(s, pass, &x, col);
        for (ptrdiff_t j = 0; j < end; j += GP_COLS) {
            frgi_gp_weights w = of_tile;
            w.col = j;
            frgi_gp_set_cols(p, begin + j, begin + end);
            if (is_narrow(b, s)) {
                widen(p, &w, wide);
            }
            if (g->radial) {
                const size_t at =
                    (size_t)(frgi_spd_tile(s, x.tile, col) + x.row + j * s->ld) * b->size;
                b->ops->radial_pass(g, &w, p, pass->kept ? (const char *)pass->kept + at : NULL,
                                    s->ld, trace);
                continue;
            }
            b->ops->forward(g, p);
            b->ops->seed_weights(g, &w, p);
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

/** dx_i = sum_j W_ij dk(x_i, x_j)/dx_i over all j: pairs above the diagonal are visited as well, so
 *  that one task computes a row. */
static void inputs_task(const frgi_gp_bound *b, const frgi_spd_layout *s, const void *job,
                        ptrdiff_t u, frgi_gp_patch *p)
{
    const frgi_gp_pass *const pass = ((const pass_job *)job)->pass;
    const frgi_gp_program *const g = &b->program;
    const ptrdiff_t d = b->points.d;
    const task x = task_at(s, u);
    _Alignas(64) double wide[GP_PATCH];
    memset(p->gx, 0, sizeof *p->gx * (size_t)(d * GP_ROWS));
    load(b, p, &x);
    for (ptrdiff_t col = 0; col < s->tiles; col++) {
        const ptrdiff_t end = frgi_spd_rows(s, col), begin = col * s->tile;
        frgi_gp_weights of_tile = weights_of(s, pass, &x, col);
        of_tile.full = true;
        of_tile.diagonal = col == x.tile;
        for (ptrdiff_t j = 0; j < end; j += GP_COLS) {
            frgi_gp_weights w = of_tile;
            w.col = j;
            frgi_gp_set_cols(p, begin + j, begin + end);
            if (is_narrow(b, s)) {
                widen(p, &w, wide);
            }
            b->ops->forward(g, p);
            b->ops->seed_weights(g, &w, p);
            b->ops->backward(g, p);
            b->ops->inputs(g, p);
        }
    }
    frgi_gp_give_inputs(p, x.rows, d, pass->dx + x.first * d);
}

frg_status frgi_gp_run_pass(frg_context *ctx, const frgi_gp_bound *b, const frgi_gp_pass *pass)
{
    const frgi_spd_layout *const s = &pass->inverse->layout;
    REQUIRE(ctx, s->n == b->points.n && (!is_narrow(b, s) || (s->dtype == FRG_F32 && !pass->kept)),
            "the matrix has another order or type than the points");
    if (pass->dx && b->user_node >= 0) {
        FAIL(ctx, E_UNSUPPORTED, "a user's kernel gives no gradient with respect to x");
    }
    const pass_job job = {.pass = pass};
    const int stride = b->program.n_parameters + 1;
    const ptrdiff_t tasks = tasks_a_tile(s) * s->tiles;
    memset(b->partial, 0, sizeof *b->partial * (size_t)(tasks * stride)); /* some have no rows */
    run_tasks(b, s, &job, pass_task);
    frgi_tree_rows(b->partial, tasks, stride, b->program.n_parameters, pass->gradient);
    if (pass->trace) {
        frgi_tree_rows(b->partial + b->program.n_parameters, tasks, stride, 1, pass->trace);
    }
    const int scale = frgi_gp_kernel_scale(b->kernel);
    if (pass->scale && scale >= 0) {
        pass->gradient[scale] = *pass->scale;
    }
    if (pass->dx) {
        run_tasks(b, s, &job, inputs_task);
    }
    return FRG_OK;
}

/* ---- products with derivatives --------------------------------------------------------------- */

typedef struct {
    const double *a;
    double *v;
} product_job;

/** The root's adjoint is a_j in every row: the sums over j are then entries of dC/dlog theta a. */
static void product_task(const frgi_gp_bound *b, const frgi_spd_layout *s, const void *job,
                         ptrdiff_t u, frgi_gp_patch *p)
{
    const product_job *const to = job;
    const frgi_gp_program *const g = &b->program;
    const task x = task_at(s, u);
    memset(p->sum, 0, sizeof *p->sum * (size_t)g->n_parameters * GP_ROWS);
    load(b, p, &x);
    p->by_row = true;
    for (ptrdiff_t j = 0; j < s->n; j += GP_COLS) {
        frgi_gp_set_cols(p, j, s->n);
        b->ops->forward(g, p);
        b->ops->seed_columns(g, to->a + j, p);
        b->ops->backward(g, p);
        b->ops->parameters(g, p);
    }
    for (int t = 0; t < g->n_parameters; t++) {
        memcpy(to->v + t * s->n + x.first, p->sum + (ptrdiff_t)t * GP_ROWS,
               sizeof(double) * (size_t)x.rows);
    }
}

frg_status frgi_gp_derivative_products(frg_context *ctx, const frgi_gp_bound *b,
                                       const frgi_spd *like, const double *a, double *v)
{
    const frgi_spd_layout *const s = &like->layout;
    REQUIRE(ctx, s->n == b->points.n, "the matrix has another order or type than the points");
    const product_job job = {.a = a, .v = v};
    run_tasks(b, s, &job, product_task);
    return FRG_OK;
}

/* ---- new points ------------------------------------------------------------------------------ */

/* New points against those of a bound expression, and with themselves.
 *
 *     k(new_i, x_j),                          k(new_i, new_i)
 *     sum_j w_ij dk(new_i, x_j)/dnew_i,       dk(new_i, new_i)/dnew_i
 *
 * GP_ROWS new points at a time, with all columns, by one thread: a new point's numbers have one
 * owner. */

static int new_team(const frgi_gp_bound *b, ptrdiff_t m)
{
    return m < SERIAL_ROWS || omp_in_parallel() ? 1 : b->threads;
}

static void load_new(const frgi_gp_bound *b, frgi_gp_patch *p, double *user_rows,
                     const frgi_gp_points *points, ptrdiff_t first, ptrdiff_t rows)
{
    frgi_gp_set_rows(p, first, rows, false);
    b->ops->load_rows(&b->program, points, first, p);
    if (b->user_node >= 0) {
        frgi_gp_pack_user(b, points, first, rows, user_rows);
        p->user_rows = user_rows;
    }
}

/** What becomes of the pairs of new points and columns: values k(new_i, x_j) at out[i + j ld]; or,
 *  where gx is not NULL, sum_j w[i + j ldw] dk(new_i, x_j)/dnew_i, d numbers a point. */
typedef struct {
    void *out;
    ptrdiff_t ld;
    const double *w;
    ptrdiff_t ldw;
    double *gx;
} crossing;

/** GP_ROWS new points or fewer, from row `at` of the result on, which are loaded in p, against all
 *  columns. */
static void visit_rows(const frgi_gp_bound *b, frgi_gp_patch *p, ptrdiff_t at, ptrdiff_t rows,
                       const crossing *c)
{
    const ptrdiff_t n = b->points.n, d = b->points.d;
    if (c->gx) {
        memset(p->gx, 0, sizeof *p->gx * (size_t)(d * GP_ROWS));
    }
    for (ptrdiff_t j = 0; j < n; j += GP_COLS) {
        frgi_gp_set_cols(p, j, n);
        b->ops->forward(&b->program, p);
        if (c->gx) {
            b->ops->copy_weights(&b->program, c->w + at + j * c->ldw, c->ldw, p);
            b->ops->backward(&b->program, p);
            b->ops->inputs(&b->program, p);
        } else {
            char *const to = (char *)c->out + (size_t)(at + j * c->ld) * b->size;
            b->ops->store(&b->program, p, to, c->ld);
        }
    }
    if (c->gx) {
        frgi_gp_give_inputs(p, rows, d, c->gx + at * d);
    }
}

static frg_status visit_cross(frg_context *ctx, const frgi_gp_bound *b,
                              const frgi_gp_points *new_points, ptrdiff_t first, ptrdiff_t m,
                              const crossing *c)
{
    REQUIRE(ctx, new_points->dtype == b->points.dtype && new_points->d == b->points.d,
            "the new points have another type or number of columns than the bound ones");
    const ptrdiff_t blocks = (m + GP_ROWS - 1) / GP_ROWS;
#pragma omp parallel for schedule(dynamic, 1) num_threads(new_team(b, m))
    for (ptrdiff_t block = 0; block < blocks; block++) {
        const int me = omp_get_thread_num();
        const ptrdiff_t at = block * GP_ROWS, rows = m - at < GP_ROWS ? m - at : GP_ROWS;
        load_new(b, &b->patch[me], b->user_rows[me], new_points, first + at, rows);
        visit_rows(b, &b->patch[me], at, rows, c);
    }
    return FRG_OK;
}

frg_status frgi_gp_cross(frg_context *ctx, const frgi_gp_bound *b, const frgi_gp_points *new_points,
                         ptrdiff_t first, ptrdiff_t m, void *out, ptrdiff_t ld)
{
    const crossing values = {.out = out, .ld = ld};
    return visit_cross(ctx, b, new_points, first, m, &values);
}

frg_status frgi_gp_cross_dx(frg_context *ctx, const frgi_gp_bound *b,
                            const frgi_gp_points *new_points, ptrdiff_t first, ptrdiff_t m,
                            const double *w, ptrdiff_t ldw, double *gx)
{
    if (b->user_node >= 0) {
        FAIL(ctx, E_UNSUPPORTED, "a user's kernel gives no gradient with respect to x");
    }
    const crossing gradients = {.w = w, .ldw = ldw, .gx = gx};
    return visit_cross(ctx, b, new_points, first, m, &gradients);
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

/** k(x_i, x_i) into diagonal, or where gx is not NULL its gradient; training: points of the
 *  process, which have white(...). */
static void visit_self(const frgi_gp_bound *b, const frgi_gp_points *points, ptrdiff_t first,
                       ptrdiff_t m, bool training, double *diagonal, double *gx)
{
    frgi_gp_patch *const p = &b->patch[0];
    const ptrdiff_t d = b->points.d;
    for (ptrdiff_t at = 0; at < m; at += GP_ROWS) {
        const ptrdiff_t rows = m - at < GP_ROWS ? m - at : GP_ROWS;
        load_new(b, p, b->user_rows[0], points, first + at, rows);
        p->training = training;
        p->i0 = 0; /* the columns are the rows */
        const frgi_gp_program g = self_program(b, p, b->user_rows[0]);
        memset(p->gx, 0, sizeof *p->gx * (size_t)(d * GP_ROWS));
        for (ptrdiff_t j = 0; j < rows; j += GP_COLS) {
            frgi_gp_set_cols(p, j, rows);
            b->ops->forward(&g, p);
            if (gx) {
                b->ops->seed_diagonal(&g, p);
                b->ops->backward(&g, p);
                b->ops->inputs(&g, p);
            } else {
                b->ops->read_diagonal(&g, p, diagonal + at + j);
            }
        }
        if (gx) {
            frgi_gp_give_inputs(p, rows, d, gx + at * d);
        }
    }
}

void frgi_gp_self(const frgi_gp_bound *b, const frgi_gp_points *new_points, ptrdiff_t first,
                  ptrdiff_t m, double *diagonal)
{
    visit_self(b, new_points, first, m, false, diagonal, NULL);
}

void frgi_gp_self_training(const frgi_gp_bound *b, const frgi_gp_points *points, ptrdiff_t first,
                           ptrdiff_t m, double *diagonal)
{
    visit_self(b, points, first, m, true, diagonal, NULL);
}

void frgi_gp_white(const frgi_gp_bound *b, const frgi_gp_points *points, ptrdiff_t first,
                   ptrdiff_t m, double *white)
{
    double without[GP_ROWS];
    frgi_gp_self_training(b, points, first, m, white);
    for (ptrdiff_t at = 0; at < m; at += GP_ROWS) {
        const ptrdiff_t rows = m - at < GP_ROWS ? m - at : GP_ROWS;
        frgi_gp_self(b, points, first + at, rows, without);
        for (ptrdiff_t i = 0; i < rows; i++) {
            white[at + i] -= without[i];
        }
    }
}

void frgi_gp_self_dx(const frgi_gp_bound *b, const frgi_gp_points *new_points, ptrdiff_t first,
                     ptrdiff_t m, double *gx)
{
    visit_self(b, new_points, first, m, false, NULL, gx);
}
