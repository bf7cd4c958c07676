/* gp_process.h - a process: its parts, each with the file that owns it. */
#ifndef FRGI_GP_PROCESS_H
#define FRGI_GP_PROCESS_H

#include "core/core.h"
#include "fourge/gp.h"
#include "gp/gp_centre.h"
#include "gp/gp_matrix.h"
#include "gp/gp_mean.h"
#include "gp/gp_memory.h"
#include "gp/gp_params.h"
#include "gp/gp_steps.h"
#include "gp/gp_value.h"

#pragma GCC visibility push(hidden)

/** The covariance function, the parameters and their current values. */
typedef struct {
    frgi_gp_kernel *kernel;
    frgi_gp_params params; /* bounds, ties, priors */
    double *theta;         /* params.count current values */
    frgi_gp_param *unset;  /* frgi_gp_create_from: the parameters as the expression left them */
    frgi_text *printed;    /* the expression with current values, for the report */
    bool shared;           /* expression, names and unset are another's (frgi_gp_worker_copy) */
} frgi_gp_process_model;

/** What callers get. */
typedef struct {
    frg_gp_value value;   /* of the current theta from MATRIX_FACTOR on */
    bool rounding_warned; /* W_ROUNDING_GP was given for this value */
    double *gradient;     /* params.count: before it is handed out */
    double *dx;           /* n x d: gradient with respect to x, the same */
    frg_gp_trace *trace;  /* of the last fit */
    int64_t n_trace;
    frg_gp_start *starts;               /* of the last fit */
    int64_t start_values, start_points; /* likelihoods on how many points that chose its first
                                           start */
} frgi_gp_result;

/** Who keeps the states of fits (gp_state.c). */
typedef struct {
    frg_gp_saver save; /* NULL: nobody wants states */
    void *user;
    const frg_checkpoint *from;          /* the state that the next fit goes on from, NULL: none */
    struct frgi_gp_fit_state *fit_state; /* of the fit under way, where states are wanted */
} frgi_gp_saving;

struct frg_gp {
    frg_context *ctx;
    const frgi_gp_steps *steps;  /* on matrix and vectors */
    frg_gp_opts opts;            /* texts and arrays in it are not kept */
    frgi_gp_data data;           /* gp_create.c fills it, gp_memory.c places it */
    frgi_gp_columns columns;     /* gp_centre.c */
    frgi_gp_process_model model; /* gp_create.c */
    frgi_gp_mean mean;           /* gp_mean.c */
    frgi_gp_profile profile;     /* gp_mean.c */
    frgi_gp_memory memory;       /* gp_memory.c */
    frgi_gp_side own, other;  /* gp_matrix.c; other: f32 for mixed; f64 for f32, with auto_promote a
                                 matrix in the same memory, without one none */
    frgi_gp_mode mode;        /* gp_matrix.c */
    frgi_gp_evaluation state; /* gp_matrix.c; scale and quad: gp_mean.c */
    frgi_gp_vectors vectors;  /* of the steps alone */
    frgi_gp_result result;    /* gp_value.c, gp_fit.c */
    frgi_gp_saving saving;    /* gp_state.c */
};

#pragma GCC visibility pop
#endif
