/* gp_cross.c - new points against those of a bound expression, and with themselves.
 *
 *     k(new_i, x_j),   k(new_i, new_i), sum_j w_ij dk(new_i, x_j)/dnew_i, dk(new_i, new_i)/dnew_i
 *
 * GP_ROWS new points at a time, with all columns, by one thread: a new point's numbers have one
 * owner.
 */
#include <omp.h>
#include <string.h>

#include "gp/gp_bound.h"

enum { SERIAL_ROWS = 192 }; /* below, threads cost more than they bring */

static int team(const frgi_gp_bound *b, ptrdiff_t m)
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
            "the new points are not like the bound ones");
    const ptrdiff_t blocks = (m + GP_ROWS - 1) / GP_ROWS;
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(b, m))
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

/** Visits points with themselves, as those of a process (they have white) or as others; gx NULL:
 *  values into diagonal. */
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
