/* gw_round.c - the plan of a transport problem: its rows, its marginals, and the rounding after
 * which they hold.
 *
 * Altschuler, Weed and Rigollet (2017), algorithm 2: with rows exact, columns above b are scaled
 * down, and what rows and columns then lack is added as a matrix of rank one,
 *
 *     P <- P diag(y),  y_j = min(1, b_j / col_j)
 *     P <- P + u v',   u = (a - row) / norm1(b - col),  v = b - col
 *
 * The plan is never stored: row i is p_i 2^(x_ij + G_j), made from its exponents whenever it is
 * asked for. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/tree_sum.h"
#include "gw/gw_marginals.h"
#include "gw/gw_transport.h"

/* ---- rows of the plan ------------------------------------------------------------------------ */

/** Whether the plan's rows are those of the exponents that passes look at. */
static bool is_direct(const frgi_sweep *s)
{
    return s->x.store == FRGI_X32 || s->x.store == FRGI_X64 || s->x.store == FRGI_X32W;
}

const void *frgi_transport_group(const frgi_sweep *s, int64_t i0, void *scratch)
{
    if (s->x.at && is_direct(s)) {
        return (const char *)s->x.at + (size_t)(i0 * s->ld) * frgi_exponent_size(s);
    }
    if (s->x.at && s->x.store == FRGI_X16) {
        const uint16_t *const q = (const uint16_t *)s->x.at + i0 * s->ld;
        float *const to = scratch;
        for (int64_t j = 0; j < FRGI_GROUP * s->ld; j++) {
            to[j] = s->x.low + s->x.step * (float)q[j];
        }
        return scratch;
    }
    s->x.fill(s, i0, 1, scratch);
    return scratch;
}

/** Row i of the plan: 0 where it has no weight, whatever its exponents are. */
static void plan_row(const frgi_transport *t, int64_t i, const void *exponents, double *out)
{
    if (t->s.to.a[i] > 0) {
        frgi_sweep_ops_of(t->ctx)->row(&t->s, i, exponents, out);
    } else {
        memset(out, 0, (size_t)t->s.m * sizeof *out);
    }
}

/** Rows of a plan that is a list; the same runs of rows. */
static void visit_list(const frgi_transport *t, int64_t first, int64_t last, int64_t chunks,
                       const int64_t *chosen, frgi_row_visitor visit, void *user)
{
    const frgi_transport_list *const list = t->list;
    const size_t bytes = (size_t)t->s.m * sizeof(double);
    const int threads =
        frgi_oversubscription_team_beside(&t->work.oversubscription, t->work.threads);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (last > first + 64)
    for (int64_t c = 0; c < chunks; c++) {
        double *const out = (double *)(void *)(t->work.scratch + (size_t)omp_get_thread_num() *
                                                                     t->work.scratch_bytes);
        const int64_t end = first + (c + 1) * (last - first) / chunks;
        for (int64_t i = first + c * (last - first) / chunks; i < end; i++) {
            if (chosen && chosen[i] == chosen[i + 1]) {
                continue;
            }
            memset(out, 0, bytes);
            for (int64_t e = list->starts[i]; e < list->starts[i + 1]; e++) {
                out[list->columns[e]] += list->values[e];
            }
            visit(user, i, out, c);
        }
    }
}

void frgi_host_rows(const frgi_transport *t, int64_t first, int64_t last, int64_t chunks,
                    const int64_t *chosen, frgi_row_visitor visit, void *user)
{
    if (t->list) {
        visit_list(t, first, last, chunks, chosen, visit, user);
        return;
    }
    frgi_host_step(t->ctx, chosen ? FRGI_HOST_SOME_ROWS : FRGI_HOST_PLAN);
    const frgi_sweep *const s = &t->s;
    const int64_t g0 = first / FRGI_GROUP, g1 = (last + FRGI_GROUP - 1) / FRGI_GROUP;
    const size_t size = frgi_exponent_size(s);
    const int threads =
        frgi_oversubscription_team_beside(&t->work.oversubscription, t->work.threads);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (g1 > g0 + 8)
    for (int64_t c = 0; c < chunks; c++) {
        /* scratch: a row of doubles, then 8 rows of exponents */
        char *const scratch =
            t->work.scratch + (size_t)omp_get_thread_num() * t->work.scratch_bytes;
        double *const out = (double *)(void *)scratch;
        const int64_t end = g0 + (c + 1) * (g1 - g0) / chunks;
        for (int64_t group = g0 + c * (g1 - g0) / chunks; group < end; group++) {
            const int64_t i0 = group * FRGI_GROUP;
            const int64_t i1 = i0 + FRGI_GROUP < last ? i0 + FRGI_GROUP : last;
            if (chosen && chosen[i0] == chosen[i1]) {
                continue;
            }
            const void *const rows =
                frgi_transport_group(s, i0, scratch + (size_t)s->ld * sizeof(double));
            for (int64_t i = i0 > first ? i0 : first; i < i1; i++) {
                if (chosen && chosen[i] == chosen[i + 1]) {
                    continue;
                }
                plan_row(t, i, (const char *)rows + (size_t)((i - i0) * s->ld) * size, out);
                const double u = t->rounding.u[i];
                for (int64_t j = 0; j < s->m && t->rounding.done; j++) {
                    out[j] = t->rounding.y[j] * out[j] + u * t->rounding.v[j];
                }
                visit(user, i, out, c);
            }
        }
    }
}

/* ---- finishing ------------------------------------------------------------------------------- */

typedef struct {
    const frgi_transport *t;
    double *row_sum;     /* n */
    double *column_sums; /* chunks x ld column sums, or NULL */
} sums_job;

/** Row sums, and column sums by chunk: a chunk is one thread's, chunks are added by the tree. */
static void plan_sums(const frgi_transport *t, sums_job *job, bool exact_rows)
{
    const frgi_sweep *const s = &t->s;
    const frgi_sweep_ops *const ops = frgi_sweep_ops_of(t->ctx);
    const int64_t groups = s->rows / FRGI_GROUP;
    const int threads =
        frgi_oversubscription_team_beside(&t->work.oversubscription, t->work.threads);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t c = 0; c < s->chunks; c++) {
        char *const scratch =
            t->work.scratch + (size_t)omp_get_thread_num() * t->work.scratch_bytes;
        double *const out = (double *)(void *)scratch, *const part = job->column_sums + c * s->ld;
        memset(part, 0, (size_t)s->ld * sizeof *part);
        const int64_t last = (c + 1) * groups / s->chunks * FRGI_GROUP;
        for (int64_t i0 = c * groups / s->chunks * FRGI_GROUP; i0 < last; i0 += FRGI_GROUP) {
            const void *const rows =
                frgi_transport_group(s, i0, scratch + (size_t)s->ld * sizeof(double));
            for (int64_t i = i0; i < i0 + FRGI_GROUP && i < s->n; i++) {
                plan_row(t, i,
                         (const char *)rows + (size_t)((i - i0) * s->ld) * frgi_exponent_size(s),
                         out);
                const double sum = ops->multiply(out, t->rounding.y, s->m);
                const double scale = exact_rows && s->to.a[i] > 0 ? s->to.a[i] / sum : 1;
                s->p[i] *= scale;
                job->row_sum[i] = scale * sum;
                ops->add(part, out, scale, s->m);
            }
        }
    }
    frgi_tree_rows(job->column_sums, s->chunks, s->ld, s->m, s->col);
}

static frgi_marginal_error compare(const frgi_sweep *s, const double *row, const double *col)
{
    frgi_marginal_error e = {0};
    for (int64_t i = 0; i < s->n; i++) {
        const double d = fabs(row[i] - s->to.a[i]);
        e.source_l1 += d;
        e.source_most = fmax(e.source_most, d);
        e.over += fmax(row[i] - s->to.a[i], 0);
        e.mass += row[i];
    }
    for (int64_t j = 0; j < s->m; j++) {
        const double d = fabs(col[j] - s->to.b[j]);
        e.target_l1 += d;
        e.target_most = fmax(e.target_most, d);
        e.over += fmax(col[j] - s->to.b[j], 0);
    }
    return e;
}

/** The rank-one term: what is missing in rows times what is missing in columns, over `missing`. */
static void rank_one(frgi_transport *t, const double *row)
{
    frgi_sweep *const s = &t->s;
    double missing = 0, carried = 0, over_columns = 0;
    for (int64_t i = 0; i < s->n; i++) {
        t->rounding.u[i] = fmax(s->to.a[i] - row[i], 0);
        missing += t->rounding.u[i];
        carried += row[i];
    }
    for (int64_t j = 0; j < s->m; j++) {
        t->rounding.v[j] = fmax(s->to.b[j] - s->col[j], 0);
        over_columns += t->rounding.v[j];
    }
    const double add = t->how.mass > 0 ? fmax(t->how.mass - carried, 0) : missing;
    const double scale = missing > 0 && over_columns > 0 ? add / (missing * over_columns) : 0;
    for (int64_t i = 0; i < s->n; i++) {
        t->rounding.u[i] *= scale;
    }
}

/** Partial plans carry at most the mass; then rows, which are at most a, and columns above b are
 *  scaled down, and what is missing is added. */
static frg_status round_plan(frgi_transport *t, frgi_add_plan sums, void *user, double *row)
{
    frgi_sweep *const s = &t->s;
    const bool partial = t->how.mass > 0;
    double carried = 0;
    for (int64_t i = 0; i < s->n && partial; i++) {
        carried += fmin(row[i], s->to.a[i]);
    }
    for (int64_t i = 0; i < s->n && partial; i++) {
        const double scale = row[i] > s->to.a[i] ? s->to.a[i] / row[i] : 1;
        s->p[i] *= carried > t->how.mass ? scale * t->how.mass / carried : scale;
    }
    if (partial) {
        TRY(sums(user, row, false));
    }
    for (int64_t j = 0; j < s->m; j++) {
        t->rounding.y[j] = s->col[j] > s->to.b[j] ? s->to.b[j] / s->col[j] : 1;
    }
    TRY(sums(user, row, false));
    rank_one(t, row);
    t->rounding.done = true;
    const double u = frgi_transport_sum(t->rounding.u, s->n),
                 v = frgi_transport_sum(t->rounding.v, s->m);
    for (int64_t i = 0; i < s->n; i++) {
        row[i] += t->rounding.u[i] * v;
    }
    for (int64_t j = 0; j < s->m; j++) {
        s->col[j] += t->rounding.v[j] * u;
    }
    return FRG_OK;
}

/** Marginals of a plan that is a list. */
static frg_status finish_list(const frgi_transport *t, frgi_marginal_error *before,
                              frgi_marginal_error *after)
{
    const frgi_sweep *const s = &t->s;
    double *sums = NULL;
    TRY(NEW0(t->ctx, &sums, s->n + s->m, "marginals of a plan"));
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t e = t->list->starts[i]; e < t->list->starts[i + 1]; e++) {
            sums[i] += t->list->values[e];
            sums[s->n + t->list->columns[e]] += t->list->values[e];
        }
    }
    *before = *after = compare(s, sums, sums + s->n);
    DROP(t->ctx, &sums);
    return FRG_OK;
}

frg_status frgi_transport_finish_with(frgi_transport *t, bool round, frgi_add_plan sums, void *user,
                                      frgi_marginal_error *before, frgi_marginal_error *after)
{
    frgi_sweep *const s = &t->s;
    const bool balanced = s->to.tau_a == 1 && s->to.tau_b == 1, partial = t->how.mass > 0;
    double *row = NULL;
    frg_status status = FRG_OK;
    TRY(NEW(t->ctx, &row, s->n, "row sums"));
    for (int64_t i = 0; i < s->n; i++) {
        s->p[i] = s->to.a[i] > 0 ? exp2(s->F[i] - s->base.H0[i]) : 0;
    }
    TRY_TO(done, sums(user, row, s->to.tau_a == 1 && !partial));
    *before = compare(s, row, s->col);
    *after = *before;
    if (round && (balanced || partial)) {
        TRY_TO(done, round_plan(t, sums, user, row));
        *after = compare(s, row, s->col);
    }
done:
    DROP(t->ctx, &row);
    return status;
}

static frg_status sums_here(void *user, double *row, bool exact_rows)
{
    sums_job *const job = user;
    job->row_sum = row;
    plan_sums(job->t, job, exact_rows);
    return FRG_OK;
}

frg_status frgi_host_finish(frgi_transport *t, bool round, frgi_marginal_error *before,
                            frgi_marginal_error *after)
{
    if (t->list) {
        return finish_list(t, before, after);
    }
    frgi_host_step(t->ctx, FRGI_HOST_PLAN);
    frgi_sweep *const s = &t->s;
    sums_job job = {.t = t};
    TRY(NEW(t->ctx, &job.column_sums, frgi_mul((size_t)s->chunks, (size_t)s->ld), "column sums"));
    /* wide passes end nearer than exponents that are filled with other potentials agree with
     * theirs */
    const bool stays = is_direct(s) && !s->x.fresh && (s->x.at || s->x.store == FRGI_X32W);
    if (!stays || t->last.out_of_range >
                      0) { /* exponents from their source, with the potentials of the end */
        s->x.store = is_direct(s) ? s->x.store : FRGI_X32;
        s->x.at = NULL;
        frgi_transport_renew(t, FRGI_LOG2_E / t->k, s->x.fill, s->x.source);
    }
    s->x.fresh = false;
    const frg_status status = frgi_transport_finish_with(t, round, sums_here, &job, before, after);
    DROP(t->ctx, &job.column_sums);
    return status;
}
