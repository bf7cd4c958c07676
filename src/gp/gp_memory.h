/* gp_memory.h - what a process owns: its data, and the memory that grows with them. */
#ifndef FRGI_GP_MEMORY_H
#define FRGI_GP_MEMORY_H

#include "core/core.h"
#include "fourge/gp.h"
#include "gp/gp_kernel.h"

#pragma GCC visibility push(hidden)

/** The data as given. */
typedef struct {
    ptrdiff_t n, d, q, masked;
    ptrdiff_t capacity; /* points that the memory holds (frgi_gp_resize) */
    double *x;          /* n x d row-major */
    double *y;          /* n x q column-major */
    bool has_known_noise, has_groups;
    double *known_noise; /* n or NULL */
    int32_t *groups;     /* n or NULL */
    double *given_mean;  /* n or NULL */
    char **column_names; /* d */
    frgi_text names;     /* their characters */
} frgi_gp_data;

/** Bytes of what depends on the arithmetic, [0] the process's own, [1] the second one, for n points
 *  on so many threads; n = 0: not measured yet. */
typedef struct {
    ptrdiff_t n;
    int threads;
    frg_gp_precision precision;
    size_t matrix[2], work[2], bound[2];
} frgi_gp_sizes;

/** Memory of a process. */
typedef struct {
    frgi_gp_sizes sizes;    /* as they were measured last; copies need not do it again */
    frgi_arena data;        /* what grows with n and is no state: data, points as the kernel takes
                               them, results */
    frgi_arena state;       /* matrix and vectors; of the steps alone */
    frgi_arena loo;         /* leave-one-out: second triangle and vectors, had at its first call */
    frgi_arena information; /* the same for the information */
    frg_gp_storage storage; /* as it was chosen */
} frgi_gp_memory;

/** The number of points becomes n: memory is taken, the data of the first min(n, old n) points are
 *  kept, the matrix is forgotten.  Fills nothing else: the caller writes the new rows of x, y and
 *  so on, then calls frgi_gp_refresh.  On failure the process is as before. */
FRG_MUST_USE frg_status frgi_gp_resize(frg_gp *gp, ptrdiff_t n);
/** *kept grows to hold what `measured` counted; its contents are lost where it does. */
FRG_MUST_USE frg_status frgi_gp_need_memory(frg_gp *gp, frgi_arena *kept, frgi_arena measured,
                                            const char *what);
/** Measures gp->sizes for n points, once: a model's copies begin with them. */
void frgi_gp_measure_sizes(frg_gp *gp, ptrdiff_t n, int threads);
/** Closes both arenas. */
void frgi_gp_memory_close(frg_gp *gp);
/** Bytes of both arenas for n points. */
size_t frgi_gp_memory_bytes(const frg_gp *gp, ptrdiff_t n);
/** After x changed: centres, H; the points of each arithmetic follow when they are bound. */
void frgi_gp_refresh(frg_gp *gp);
/** The expression bound to the points at the current theta, in the process's own arithmetic and in
 *  the second one. */
const frgi_gp_bound *frgi_gp_need_bound(frg_gp *gp);
const frgi_gp_bound *frgi_gp_need_other_bound(frg_gp *gp);
/** Bytes of m points in the layout that frgi_gp_set_points fills, and the filling: x is m x d
 *  row-major. */
size_t frgi_gp_points_bytes(const frg_gp *gp, ptrdiff_t m);
void frgi_gp_set_points(const frg_gp *gp, const double *x, ptrdiff_t m, void *memory,
                        frgi_gp_points *out);

/** Another process at the same data and parameters, on ctx; it shares what never changes. */
FRG_MUST_USE frg_status frgi_gp_worker_copy(frg_gp **out, frg_context *ctx, const frg_gp *gp);
/** A process in float64 of m of the rows, at the same parameters and on the same context, whose
 *  factor has no jitter. */
FRG_MUST_USE frg_status frgi_gp_subset(frg_gp **out, const frg_gp *gp, ptrdiff_t m,
                                       const ptrdiff_t *rows);
/** One without points, with the parameters as the expression left them; model: of
 *  frgi_gp_create_from. */
FRG_MUST_USE frg_status frgi_gp_empty_copy(frg_gp **out, frg_context *ctx, const frg_gp *model);

#pragma GCC visibility pop
#endif
