/* gp_bound.h - the inside of a bound expression, for gp_build.c, which runs it over patches of
 * pairs of its points and of new points against them. */
#ifndef FRGI_GP_BOUND_H
#define FRGI_GP_BOUND_H

#include "gp/gp_tiles_ops.h"
#include "linalg/team.h"

#pragma GCC visibility push(hidden)

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
    frgi_gp_slot *slot, *self; /* self: for points with themselves, the patch's rows as columns */
    void **copy;               /* per slot: n values, NULL where the points serve as they are */
    void **constant;           /* per step */
    double *user_cols;
    frgi_gp_patch *patch;   /* per thread */
    double **user_rows;     /* per thread */
    frgi_team_share *share; /* per thread */
    double *partial;        /* tasks x (parameters + 1) */
    double *user_theta;
};

/** The user's columns of `count` points from `first` on, row-major, as they were given. */
void frgi_gp_pack_user(const frgi_gp_bound *b, const frgi_gp_points *points, ptrdiff_t first,
                       ptrdiff_t count, double *to);

static inline void frgi_gp_set_rows(frgi_gp_patch *p, ptrdiff_t first, ptrdiff_t rows,
                                    bool training)
{
    p->i0 = first;
    p->rows = (int)rows;
    p->m = (int)((rows + GP_CHUNK - 1) / GP_CHUNK * GP_CHUNK);
    p->training = training;
    p->by_row = p->lower = false;
}

/** Columns from `first` on, as many as a patch has before `end`. */
static inline void frgi_gp_set_cols(frgi_gp_patch *p, ptrdiff_t first, ptrdiff_t end)
{
    p->j0 = first;
    p->cols = (int)(end - first < GP_COLS ? end - first : GP_COLS);
}

/** The patch's sums for its first `rows` rows: out (rows x d, row-major). */
static inline void frgi_gp_give_inputs(const frgi_gp_patch *p, ptrdiff_t rows, ptrdiff_t d,
                                       double *out)
{
    for (ptrdiff_t i = 0; i < rows; i++) {
        for (ptrdiff_t k = 0; k < d; k++) {
            out[i * d + k] = p->gx[k * GP_ROWS + i];
        }
    }
}

#pragma GCC visibility pop
#endif
