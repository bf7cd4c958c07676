/* gw_level_there.h - what an alignment has on a device, shared by its steps (gw_level_device.c) and
 * what is made of its plan (gw_plan_device.c).
 */
#ifndef FRGI_GW_LEVEL_THERE_H
#define FRGI_GW_LEVEL_THERE_H

#include "gw/gw_level_device.h"
#include "gw/gw_stage_device.h"

#pragma GCC visibility push(hidden)

enum { FRGI_STAGES_OF_PAIRS = 3 }; /* a draw for the lags, two to look at */

/** Host memory of a draw, its own so that the queue may still read it while the next is filled. */
typedef struct {
    int32_t *rows;
    double *uniforms;
} frgi_draw_memory;

struct frgi_level_device {
    frgi_stage_place place;
    frgi_stage loop, end;
    const frgi_program *steps; /* the kernels around the passes, of the type mixed */
    frgi_device_arena memory;
    bool lent;                      /* memory is another level's */
    frgi_buffer x, y;               /* distances, scaled: n x n, m x m floats */
    struct {                        /* of both sides */
        frgi_buffer mean_x, mean_y; /* zeros where pairs are not centred */
        frgi_buffer rows_x, rows_y; /* at the pairs of a step */
        frgi_buffer most;           /* of each of these rows: scale batch_max */
    } of_pairs;
    frgi_buffer costs, linear;   /* n x m floats; linear: where there is such a cost */
    struct {                     /* the pairs themselves */
        frgi_buffer row, column; /* FRGI_AREAS x count */
        frgi_buffer index;       /* of a step's among them */
        int64_t count;           /* of an area, at most */
    } pairs;
    frgi_buffer uniforms, sides, moments, by_row;
    struct {
        frgi_buffer left, right; /* rank x n, rank x m */
        int64_t rank;
        double scale, of_means; /* of their product, of that of the means */
    } of_cost;
    struct {                      /* of the averaged plan */
        frgi_buffer plan, by_row; /* store_plan: n x m floats, 3 n doubles (level_average) */
        bool known;               /* the plan is one, not zeros */
        frgi_buffer sums[2];      /* diag_exact, not balanced: its marginals, doubles */
        frgi_buffer squares;      /* sum_k C_ik^2 r_k of a side, doubles */
    } kept;
    struct { /* of the mode exact */
        frgi_device_arena memory;
        frgi_buffer plan, middle, by_row; /* n x m, m x n floats, 3 n doubles */
    } exact;
    struct { /* of the mode landmark; doubles, but for left and right */
        frgi_device_arena memory;
        frgi_buffer u_x, v_x, v_y; /* n x wide_x twice, m x wide_y */
        frgi_buffer image, core;   /* n x wide_y, wide_x x wide_y */
        frgi_buffer left, right;   /* wide_y x n, wide_y x m */
        int64_t wide_x, wide_y;
    } landmark;
    frgi_stage_state state;
    bool ahead; /* the potentials there are newer than those of the host */
    struct {
        float change; /* of G over the step, largest less smallest */
        double moments[LV_MOMENTS];
        int32_t *index;
        frgi_draw_memory drawn[FRGI_STAGES_OF_PAIRS];
        float *costs; /* n x m: the last ones, once the plan is finished */
    } host;
};

/** Two sets of `count` pairs at places first and other of row and column, and what is beside them:
 *  all distances, a linear cost where there is one, memory for their moments. */
typedef struct {
    frgi_buffer x, y, linear, row, column;
    frgi_buffer sides, moments; /* 2 count, LV_MOMENTS doubles */
    int64_t n, m, first, other, count;
} frgi_pairs_there;
/** Means to centre distances with. */
typedef struct {
    frgi_buffer u, v; /* n, m floats */
    double mean_u, mean_v;
} frgi_means_there;
/** Energy and linear cost from these pairs; steps: the kernels of gw, of the type mixed.  means:
 *  NULL, or as frgi_energy_estimate has them.  moments: LV_MOMENTS of the host, the queue's until
 *  this returns. */
FRG_MUST_USE frg_status frgi_pairs_there_moments(const frgi_stage_place *place,
                                                 const frgi_program *steps,
                                                 const frgi_pairs_there *p,
                                                 const frgi_means_there *means, bool fused,
                                                 const double scales[2], double *moments,
                                                 frgi_pair_moments *out);
/** The first `count` numbers of an area of row or column. */
frgi_buffer frgi_level_device_area(const frgi_level_device *d, frgi_buffer all, int area,
                                   int64_t count);
/** to_x (n), to_y (m floats) <- u, v; zeros where these are NULL. */
FRG_MUST_USE frg_status frgi_level_device_put_means(const frgi_level *l, frgi_buffer to_x,
                                                    frgi_buffer to_y, const float *u,
                                                    const float *v);
/** out (rows x columns) <- left' right, of `rank` rows each; right: floats. */
FRG_MUST_USE frg_status frgi_level_device_product(const frgi_level_device *d, const frgi_program *p,
                                                  frgi_buffer out, frgi_buffer left,
                                                  frgi_buffer right, int64_t rows, int64_t columns,
                                                  int64_t rank);

#pragma GCC visibility pop
#endif
