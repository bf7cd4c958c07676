/* guard.h - the host's steps of fe_steps.h with their vectors out of reach between steps (pages.h).
 */
#ifndef FOURGE_TEST_GUARD_H
#define FOURGE_TEST_GUARD_H

#include "fe/fe_row_lsmr_plan.h"
#include "pages.h"

/** guard_NAME: the host's step, of one of its three contracts, within its rights. */
#define GUARDED(name, of, parameters, arguments)                                                   \
    static frg_status guard_##name parameters                                                      \
    {                                                                                              \
        return guard_enter() ? guard_leave(frgi_fe_host_steps.of.name arguments) : FRG_IO;         \
    }
#define ROWS(name, parameters, arguments)                                                          \
    static frg_status guard_rows_##name parameters                                                 \
    {                                                                                              \
        guard_row_calls++;                                                                         \
        return guard_enter() ? guard_leave(frgi_fe_row_lsmr_host_steps.name arguments) : FRG_IO;   \
    }
static int64_t guard_row_calls; /* of the row-space path */
/* clang-format off */
GUARDED(rhs, rows, (const fe_rows *g, frg_context *ctx, int f32, int lanes, const fe_row_work *w, const fe_block *x,
              double *b, fe_moments *total), (g, ctx, f32, lanes, w, x, b, total))
GUARDED(residual, rows, (const fe_rows *g, frg_context *ctx, int f32, int lanes, const fe_row_work *w, const fe_block *x,
                   const fe_block *out, const double *a, double *s, double *effect, fe_elim_audit *total),
        (g, ctx, f32, lanes, w, x, out, a, s, effect, total))
GUARDED(apply, reduced, (const fe_rows *g, const fe_bordered *b, frg_context *ctx, int f32, int lanes, const fe_row_work *w,
                bool low, const void *p, double *y), (g, b, ctx, f32, lanes, w, low, p, y))
GUARDED(multiply, reduced, (const fe_schur *s, frg_context *ctx, int f32, int lanes, const void *p, double *y),
        (s, ctx, f32, lanes, p, y))
GUARDED(solve, reduced, (const frgi_direct *d, int lanes, double *x, double *scratch), (d, lanes, x, scratch))
GUARDED(precondition, reduced, (const frgi_ac *ac, int lanes, const double *r, double *z, double *scratch),
        (ac, lanes, r, z, scratch))
GUARDED(project, reduced, (const fe_rows *g, int lanes, const int32_t *set, double *r, double *sum, double *weight),
        (g, lanes, set, r, sum, weight))
GUARDED(audit, reduced, (const fe_rows *g, int lanes, const double *s, int k, fe_reduced_audit *out), (g, lanes, s, k, out))
GUARDED(means, reduced, (const fe_rows *g, int lanes, const double *s, int k, double *to), (g, lanes, s, k, to))
GUARDED(draw, reduced, (int64_t n, frg_context *ctx, double *to), (n, ctx, to))
GUARDED(copy, reduced, (int64_t n, int lanes, const double *from, double *to), (n, lanes, from, to))
GUARDED(add, reduced, (int64_t n, int lanes, double alpha, const double *from, double *to), (n, lanes, alpha, from, to))
GUARDED(scale, reduced, (int64_t n, int lanes, const double *factor, double *v), (n, lanes, factor, v))
GUARDED(times_diagonal, reduced, (int64_t n, int lanes, const double *d, const double *s, double *z), (n, lanes, d, s, z))
GUARDED(dot, reduced, (int64_t n, int lanes, const double *s, const double *z, double *sum), (n, lanes, s, z, sum))
GUARDED(largest, reduced, (int64_t n, int lanes, const double *v, double *max_abs), (n, lanes, v, max_abs))
GUARDED(add_column, reduced, (int64_t n, int lanes, int k, const double *from, double *to), (n, lanes, k, from, to))
GUARDED(get_column, reduced, (int64_t n, int lanes, int k, const double *from, double *to), (n, lanes, k, from, to))
GUARDED(move, reduced, (int64_t n, int count, int lanes, int first, const double *from, int to_lanes, int at, double *to),
        (n, count, lanes, first, from, to_lanes, at, to))
GUARDED(gather, reduced, (int64_t n, int lanes, const int32_t *level, const double *from, double *to),
        (n, lanes, level, from, to))
GUARDED(scatter, reduced, (int64_t n, int lanes, const int32_t *level, const double *from, const double *b, double *to,
                  double *energy), (n, lanes, level, from, b, to, energy))
GUARDED(start, recurrence, (const fe_cg_call *c, const fe_cg_target *target), (c, target))
GUARDED(step, recurrence, (const fe_cg_call *c, int64_t step), (c, step))
/* those of the row-space path */
ROWS(load, (fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k), (f, a, first, k))
ROWS(store, (fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k), (f, a, first, k))
ROWS(again, (fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k), (f, a, first, k))
ROWS(end, (fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k), (f, a, first, k))
ROWS(moments, (fe_row_lsmr *f, int64_t k, double *norm2, double *square), (f, k, norm2, square))
ROWS(take_out, (fe_row_lsmr *f, int64_t k, fe_taken_out how, double *effect), (f, k, how, effect))
ROWS(audit, (fe_row_lsmr *f, int64_t k, fe_row_audit out[]), (f, k, out))
ROWS(energy, (fe_row_lsmr *f, int64_t k, int64_t c, double *out), (f, k, c, out))
ROWS(zero, (fe_row_lsmr *f, int64_t k, const bool columns[]), (f, k, columns))
ROWS(no_answer, (fe_row_lsmr *f, int64_t k), (f, k))
ROWS(no_effects, (fe_row_lsmr *f, int64_t first, int64_t k), (f, first, k))
ROWS(add_effects, (fe_row_lsmr *f, int64_t first, int64_t k), (f, first, k))
ROWS(start, (fe_row_lsmr *f, frg_context *ctx, int64_t k, bool preconditioned, const frgi_lsmr_rule *rule,
             frg_lsmr_column reports[]), (f, ctx, k, preconditioned, rule, reports))
ROWS(step, (fe_row_lsmr *f), (f))
ROWS(finish, (fe_row_lsmr *f), (f))
ROWS(project, (fe_row_lsmr *f, frg_context *ctx, int64_t k, const fe_map_rule *rule), (f, ctx, k, rule))
ROWS(effects, (const fe_row_lsmr *f, int64_t column, double *alpha), (f, column, alpha))
GUARDED(poll, recurrence, (const fe_cg_call *c, fe_cg_summary *summary, fe_cg_column *column), (c, summary, column))
/* clang-format on */

static const struct fe_row_lsmr_steps guarded_row_steps = {.load = guard_rows_load,
                                                           .store = guard_rows_store,
                                                           .again = guard_rows_again,
                                                           .end = guard_rows_end,
                                                           .moments = guard_rows_moments,
                                                           .take_out = guard_rows_take_out,
                                                           .audit = guard_rows_audit,
                                                           .energy = guard_rows_energy,
                                                           .zero = guard_rows_zero,
                                                           .no_answer = guard_rows_no_answer,
                                                           .no_effects = guard_rows_no_effects,
                                                           .add_effects = guard_rows_add_effects,
                                                           .start = guard_rows_start,
                                                           .step = guard_rows_step,
                                                           .finish = guard_rows_finish,
                                                           .project = guard_rows_project,
                                                           .effects = guard_rows_effects};

TEST_UNUSED static const fe_steps guarded_steps = {
    .open = guard_open,
    .close = guard_close,
    .rows = {.rhs = guard_rhs, .residual = guard_residual},
    .reduced = {.apply = guard_apply,
                .multiply = guard_multiply,
                .solve = guard_solve,
                .precondition = guard_precondition,
                .project = guard_project,
                .audit = guard_audit,
                .means = guard_means,
                .draw = guard_draw,
                .copy = guard_copy,
                .add = guard_add,
                .scale = guard_scale,
                .times_diagonal = guard_times_diagonal,
                .dot = guard_dot,
                .largest = guard_largest,
                .add_column = guard_add_column,
                .get_column = guard_get_column,
                .move = guard_move,
                .gather = guard_gather,
                .scatter = guard_scatter},
    .recurrence = {.start = guard_start, .step = guard_step, .poll = guard_poll},
    .row_lsmr = &guarded_row_steps,
};

#endif
