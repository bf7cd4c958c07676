/* gw_level_device.h - the outer iteration of an alignment on a device, in the modes sampled, exact
 * and landmark.
 *
 * There run: the rows of distances at the sampled pairs, also divided by the largest, the cost from
 * them and its average over the steps, the passes, the averaged plan or its marginals where they
 * are kept, the draw of columns and, of plans whose marginals are relaxed or partial,
 * of rows, energies, the polish, the plan's sums.  Distances lie there whole, n^2 + m^2 floats, and
 * the cost, n m, and a linear cost, as many; paths between all nodes of a graph are found there
 * (gw_distances_device.c).
 *
 * On the host stay, by design: graphs of nearest neighbours and their landmarks, the rows of
 * balanced plans that are drawn, but with store_plan (these are the weights' and the seed's alone),
 * annealing and stopping, the means and the scale of distances that do not lie there, local
 * distance distributions, coarse levels (whose potentials and pairs go over once), rounding's
 * vectors (n + m numbers each way), the bound of the energy; and the plan's rows when they are
 * asked for, made from the last cost, which comes over once at the end.  Of the verdict behind the
 * run a device makes what it makes of any alignment (gw_verdict.c, gw_audit.c): costs of vertices,
 * passes on given costs, steps of the other start on all points; samples, assignments and products
 * with a dense plan are the host's.
 *
 * A step brings back its state (some twenty numbers) in one wait; every fifth one its energy, each
 * one of the mode exact or with store_plan its change, in another; a start that is kept its
 * potentials and pairs.
 */
#ifndef FRGI_GW_LEVEL_DEVICE_H
#define FRGI_GW_LEVEL_DEVICE_H

#include "device/device.h"
#include "gw/gw_solver.h"

#pragma GCC visibility push(hidden)

/** Where pairs lie: those of the lags, and two sets to look at. */
enum { FRGI_AREA_CHECK = FRGI_LAGS, FRGI_AREAS = FRGI_LAGS + 2 };

/** E_DEVICE_STEP, by name, for what does not run on a device; o is as it was given but for what is
 *  left to the mode. */
FRG_MUST_USE frg_status frgi_level_device_check(frg_context *ctx, frgi_device *dev,
                                                const frg_gw_opts *o);
/** Distances there, and memory; l is opened but for this.  group 0: the usual one.  Positive:
 *  stopped. */
FRG_MUST_USE frg_status frgi_level_device_open(frgi_level *l, frgi_device *dev, int group);
/** The same in the memory of `from`, a level of the same sides whose run has come to its end: its
 *  plan is that of the host from here on, and its next run begins anew.  Closed before `from`. */
FRG_MUST_USE frg_status frgi_level_device_lend(frgi_level *l, const frgi_level *from);
void frgi_level_device_close(frgi_level *l);

/** Potentials of l->t there; a plan is forgotten. */
FRG_MUST_USE frg_status frgi_level_device_potentials(frgi_level *l);
/** The pairs of l->sampled.lagged[0] there. */
FRG_MUST_USE frg_status frgi_level_device_put_pairs(frgi_level *l);
/** Potentials and the pairs of l->sampled.lagged[0] back. */
FRG_MUST_USE frg_status frgi_level_device_fetch(frgi_level *l);

/** out <- the arrays there that the next step depends on, but for those of the mode
 *  (l->saved.own); returns how many.  Bytes of them at most, whatever the step. */
int frgi_level_device_arrays(const frgi_level *l, frgi_array *out);
size_t frgi_level_device_arrays_most(const frgi_level *l);

/** Rows of distances at the R pairs whose places frgi_level_device_index lists. */
FRG_MUST_USE frg_status frgi_level_device_rows(frgi_level *l, int64_t R);
/** The list of these places, to be filled before. */
int32_t *frgi_level_device_index(const frgi_level *l);
/** Place `at` of an area among all pairs on the device. */
int32_t frgi_level_device_place(const frgi_level *l, int area, int64_t at);
/** Rows of both sides from l->product, R of them. */
FRG_MUST_USE frg_status frgi_level_device_pack(frgi_level *l, int64_t R);
/** frgi_level_solve there; share: of the new cost in the average. */
FRG_MUST_USE frg_status frgi_level_device_solve(frgi_level *l, double share, int64_t passes,
                                                double tol);
/** The mode exact: memory for the averaged plan, which is that to start from or a b'; *plan: where
 *  it lies. */
FRG_MUST_USE frg_status frgi_level_device_exact_open(frgi_level *l, frgi_buffer *plan);
/** The next cost is -2 C P D, by two products. */
FRG_MUST_USE frg_status frgi_level_device_linearise(frgi_level *l);
/** The plan into the averaged one; the norms of the change and of the plan. */
FRG_MUST_USE frg_status frgi_level_device_average(frgi_level *l, double *change, double *norm);
/** The mode landmark: distances squared are U V', of wide_x (wide_y) columns, and core is
 *  V_x' P V_y of the plan to start from (gw_exact.c). */
typedef struct {
    int64_t wide_x, wide_y;
    const double *u_x, *v_x, *u_y, *v_y, *core;
} frgi_landmark_factors;
/** Copies of f there; *core: that of the core, which is averaged. */
FRG_MUST_USE frg_status frgi_level_device_landmark_open(frgi_level *l,
                                                        const frgi_landmark_factors *f,
                                                        frgi_buffer *core);
/** The next cost is -2 U_x core U_y', by two products. */
FRG_MUST_USE frg_status frgi_level_device_landmark_linearise(frgi_level *l);
/** V_x' P V_y of the plan into the averaged one. */
FRG_MUST_USE frg_status frgi_level_device_landmark_average(frgi_level *l);
/** Ends what either mode has opened, or not. */
void frgi_level_device_averaged_close(frgi_level *l);
/** frgi_kept_reset and frgi_kept_fold there. */
FRG_MUST_USE frg_status frgi_level_device_keep_reset(frgi_level *l, bool known);
FRG_MUST_USE frg_status frgi_level_device_keep_fold(frgi_level *l);
/** A state was taken up whose averaged plan has these bytes, n m floats: zeros say that nothing is
 *  known of it. */
void frgi_level_device_keep_taken(const frgi_level *l, const char *plan);
/** Columns of the pairs pairs[r].i, where a row's weights pass the share of their sum that
 *  frgi_level_device_uniforms holds for r; they stay there, as the pairs of that area.  pairs NULL:
 *  rows too are found there, where the plan's row sums pass the share that it holds count later.
 *  averaged: of the averaged plan that is kept. */
FRG_MUST_USE frg_status frgi_level_device_draw(frgi_level *l, int area, bool averaged,
                                               const frgi_pair *pairs, int64_t count);
/** To be filled before: count doubles, 2 count where pairs are NULL. */
double *frgi_level_device_uniforms(const frgi_level *l, int area);
/** Of the two sets to look at: the energy between them and its standard error (gw_energy.c); with a
 *  linear cost its mean over both and the sum of the squares of what it differs from that; the
 *  plan's mass, where rows were drawn there. */
typedef struct frgi_pair_moments {
    double energy, error, linear, linear_square, mass;
} frgi_pair_moments;
/** *cost, *error <- what frgi_cost_estimate makes of these, of `count` pairs, and of the mass. */
void frgi_join_moments(const frgi_level *l, const frgi_pair_moments *of, int64_t count, double mass,
                       double *cost, double *error);
FRG_MUST_USE frg_status frgi_level_device_energy(frgi_level *l, int64_t count, double scale_x,
                                                 double scale_y, const frgi_means *means,
                                                 frgi_pair_moments *out);
/** frgi_plan_entropy there. */
FRG_MUST_USE frg_status frgi_level_device_entropy(frgi_level *l, double *entropy);
/** sum_ij (scale_x u_i - scale_y v_j)^2 P_ij of the finished plan. */
FRG_MUST_USE frg_status frgi_level_device_middle(frgi_level *l, double scale_x, double scale_y,
                                                 const frgi_means *means, double *middle);
/** frgi_plan_sums_take of the finished plan. */
FRG_MUST_USE frg_status frgi_level_device_sums(frgi_level *l, frgi_plan_sums *out);
/** frgi_level_final_passes there: the first ones at larger epsilon where columns are far off. */
FRG_MUST_USE frg_status frgi_level_device_final_passes(frgi_level *l, double tol, int64_t most);
/** frgi_transport_finish there; the cost comes over. */
FRG_MUST_USE frg_status frgi_level_device_finish(frgi_level *l, bool round,
                                                 frgi_marginal_error *before,
                                                 frgi_marginal_error *after);

#pragma GCC visibility pop
#endif
