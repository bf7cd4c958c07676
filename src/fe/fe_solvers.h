/* fe_solvers.h - the solvers of S a = b inside a cascade (fe_cascade.h): what each needs, built
 * when it is needed, and one solve by it.  Which one is taken is the cascade's to say. */
#ifndef FRGI_FE_SOLVERS_H
#define FRGI_FE_SOLVERS_H

#include "fe/fe_bordered.h"
#include "fe/fe_cascade.h"
#include "fe/fe_schur.h"
#include "fe/fe_schwarz.h"

#pragma GCC visibility push(hidden)

typedef enum {
    FE_SOLVER_ROWS,
    FE_SOLVER_EXPLICIT,
    FE_SOLVER_DIRECT,
    FE_SOLVER_AC,
    FE_SOLVER_SCHWARZ,
    FE_SOLVER_SUBPROBLEMS
} fe_solver;

typedef struct {
    const fe_rows *g;
    frg_demean_opts opts;
    frg_context *ctx;
    fe_device *device;    /* NULL: the host */
    bool device_used;     /* it has solved */
    double products;      /* estimate of the products that S takes; -1: not yet made */
    bool refused;         /* S does not fit fill_cap */
    fe_schur schur;       /* n > 0 once assembled */
    bool bordered_tried;  /* `bordered` was built where it pays, and has_low is known */
    fe_bordered bordered; /* the rows' product where all factors but one are small */
    bool has_low;         /* float32 products through the rows are faster and exact enough */
    frgi_direct *direct;
    bool factored;
    struct {            /* of other weights */
        fe_schur schur; /* the pattern that `direct` was analysed for; or empty */
        bool usable;    /* `direct` is still that, and its order is right for S */
    } previous;
    fe_schwarz approximate; /* of the blocks or of the pairs */
    int32_t
        *null_set; /* n_reduced: sets of levels whose indicator z has S z = 0; made when needed */
    double *ones;  /* Jacobi turned off; made when needed */
    struct {
        double *memory;
        size_t doubles;
    } scratch; /* of a factor's solves */
} fe_solvers;

const char *frgi_fe_solver_name(fe_solver which);
/** Of one that runs on the host though the plan has a device. */
const char *frgi_fe_solver_name_beside_device(fe_solver which);
static inline bool frgi_fe_solver_approximate(fe_solver which)
{
    return which == FE_SOLVER_AC || which == FE_SOLVER_SCHWARZ;
}
/** Is the solver the cascade's to choose? */
static inline bool frgi_fe_solvers_are_free(const fe_solvers *all)
{
    return all->opts.method == FRG_FE_AUTO && all->opts.precond == FRG_FE_PRECOND_AUTO;
}
/** Destroys the device, too. */
void frgi_fe_solvers_destroy(fe_solvers *all, frg_context *ctx);
/** What depends on the weights is dropped; by_factor: the order of the factor stays for an S of the
 *  same pattern. */
void frgi_fe_solvers_renew(fe_solvers *all, frg_context *ctx, double tol, bool by_factor);
size_t frgi_fe_solvers_bytes(const fe_solvers *all);

/** Bytes that S may take: an entry for each product, but no more of them than pairs of levels. */
double frgi_fe_solvers_schur_bytes(const fe_solvers *all);
/** Assembles S unless it is there; a matrix over the cap is no failure: the solvers that need it
 *  are then left out. */
FRG_MUST_USE frg_status frgi_fe_solvers_assemble(fe_solvers *all, frg_context *ctx);
/** Moves the small factors out of the rows' product, once. */
FRG_MUST_USE frg_status frgi_fe_solvers_border(fe_solvers *all, frg_context *ctx);
/** Orders S unless that is done: by AMD where that is expected to take less than so many seconds;
 *  steps: what CG is forecast to take, which tells how well the graph mixes. */
FRG_MUST_USE frg_status frgi_fe_solvers_analyse(fe_solvers *all, frg_context *ctx,
                                                double seconds_to_beat, double steps);
/** Of the factor of the order found. */
double frgi_fe_solvers_factor_seconds(const fe_solvers *all);
void frgi_fe_solvers_drop_factor(fe_solvers *all);
/** The exact or approximate factor that the solver takes, unless it is there. */
FRG_MUST_USE frg_status frgi_fe_solvers_build(fe_solvers *all, frg_context *ctx, fe_solver which);
/** Ones in place of Jacobi's diagonal, where precond is off. */
FRG_MUST_USE frg_status frgi_fe_solvers_ones(fe_solvers *all, frg_context *ctx);

/** Conjugate gradients on one of the operators, from w->cg.r, added to w->answer. */
FRG_MUST_USE frg_status frgi_fe_solvers_cg(fe_solvers *all, frg_context *ctx, fe_solver which,
                                           const fe_block_work *w, int64_t max_steps,
                                           const fe_cg_target *goal, fe_cg_column *column);
/** The factor's solution, in every round but the first of what the rounds before have left: x <- x
 *  + S^+ r, r <- r - S x; `project`: of right-hand sides in the range of S, since what rounding has
 *  left of z'r would all end in the mean of the level that the factor grounds, which may be a light
 *  one. */
FRG_MUST_USE frg_status frgi_fe_solvers_direct(fe_solvers *all, frg_context *ctx,
                                               const fe_block_work *w, int rounds, bool project,
                                               fe_cg_column *column);
/** CG iterations that an operator will need, by `length` of them on a random right-hand side. */
FRG_MUST_USE frg_status frgi_fe_solvers_probe(fe_solvers *all, frg_context *ctx, fe_solver which,
                                              const fe_block_work *single, int64_t length,
                                              double *steps);
/** z <- S^+ s of the factor, else M^-1 s with the solver's preconditioner. */
FRG_MUST_USE frg_status frgi_fe_solvers_precondition(const fe_solvers *all, fe_solver which,
                                                     int lanes, const double *s, double *z);

/** Puts what is built into `to`, and fills its part of *facts. */
FRG_MUST_USE frg_status frgi_fe_solvers_put(const fe_solvers *all, fe_cascade_facts *facts,
                                            frg_checkpoint *to);
/** Builds what the facts say is in `from`; pairs: the approximate factor is Schwarz's. */
FRG_MUST_USE frg_status frgi_fe_solvers_get(fe_solvers *all, const fe_cascade_facts *facts,
                                            bool pairs, const frg_checkpoint *from);

#pragma GCC visibility pop
#endif
