/* fe_schur.c - assembling; notation and formulas in fe_schur.h, fe_groups.h and fe_coupling.h.
 *
 * Row l of S is gathered from the groups that contain l (Gustavson's row-wise product: a marker
 * array takes the sparse sums), so rows are independent of one another and any number of threads
 * gives the same bits.
 *
 * The diagonal is sum_u c (N_u - c) / N_u, of terms >= 0: a level that is alone in all its rows
 * gets exactly 0, where N_l - sum c^2 / N_u would give rounding of either sign.
 */
#include "fe/fe_schur.h"

#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>

#include "core/checkpoint_bytes.h"
#include "fe/fe_groups.h"

/* ---- rows of S ------------------------------------------------------------------------------- */

/** A sparse row under construction. */
typedef struct {
    int64_t *seen; /* n_reduced: the row (+ 1) that last touched the level */
    double *sum;   /* n_reduced */
    int32_t *list; /* n_reduced + 1: levels touched */
    int64_t count;
} accumulator;

/** Without a jump that depends on the levels. */
static inline void add_entry(accumulator *a, int64_t row, int32_t level, double v)
{
    const bool fresh = a->seen[level] != row + 1;
    a->seen[level] = row + 1;
    a->list[a->count] = level;
    a->count += fresh;
    a->sum[level] = (fresh ? 0 : a->sum[level]) + v;
}

static double count_of(const fe_groups *m, int64_t c, int32_t level)
{
    int64_t j = m->of[c].start;
    while (m->members[j].level != level) {
        j++;
    }
    return m->members[j].count;
}

/** Joint appearance of two sparse factors in the rows of group c: + w times for each other
 *  level. */
static void add_joint(const fe_split *s, const fe_groups *m, accumulator *a, int64_t c,
                      int32_t level)
{
    const fe_rows *g = s->g;
    const int64_t first = m->kept_start ? m->kept_start[c] : g->elim_start[m->elim[c]];
    const int32_t *const rows = m->kept_start ? m->kept_index : g->index;
    const double *const weight = m->kept_start ? m->kept_weight : g->weight;
    for (int64_t i = first; i < first + m->rows[c]; i++) {
        const int32_t *index = rows + i * g->n_remaining;
        int mine = -1;
        for (int q = 0; q < s->n_sparse; q++) {
            mine = index[s->sparse[q]] == level ? q : mine;
        }
        for (int q = 0; mine >= 0 && q < s->n_sparse; q++) {
            if (q != mine) {
                add_entry(a, level, index[s->sparse[q]], m->times[c] * (weight ? weight[i] : 1));
            }
        }
    }
}

/** Fetches the sums of a group of the level 2 FE_ELIM_AHEAD further, and the members of one
 *  FE_ELIM_AHEAD further.  GCC drops calls of a function that only fetches where it has not inlined
 *  them before. */
static inline __attribute__((always_inline)) void fetch_groups(const fe_groups *m, int64_t k,
                                                               int64_t end)
{
    if (k + 2 * FE_ELIM_AHEAD < end) {
        __builtin_prefetch(&m->of[m->level_group[k + 2 * FE_ELIM_AHEAD]], 0);
    }
    if (k + FE_ELIM_AHEAD < end) {
        __builtin_prefetch(&m->members[m->of[m->level_group[k + FE_ELIM_AHEAD]].start], 0);
    }
}

/** Row `level` of the sparse part: the diagonal comes first in the list. */
static void gather_row(const fe_split *s, const fe_groups *m, accumulator *a, int32_t level)
{
    const int64_t all = m->level_start[m->levels]; /* the next rows' groups follow */
    a->count = 0;
    add_entry(a, level, level, 0);
    for (int64_t k = m->level_start[level]; k < m->level_start[level + 1]; k++) {
        const int64_t c = m->level_group[k];
        fetch_groups(m, k, all);
        const double mine = count_of(m, c, level), total_weight = m->of[c].total_weight,
                     factor = m->of[c].factor;
        for (int64_t j = m->of[c].start; j < m->of[c].end; j++) {
            const fe_member *o = &m->members[j];
            const double other = o->level == level ? total_weight - mine : -o->count;
            add_entry(a, level, o->level, factor * mine * other);
        }
        if (s->n_sparse > 1) {
            add_joint(s, m, a, c, level);
        }
    }
}

static void sort_levels(int32_t *list, int64_t n)
{
    int64_t ascend = 1;
    while (ascend < n && list[ascend - 1] < list[ascend]) {
        ascend++;
    }
    if (ascend >= n) { /* as the dense rows of the border do */
        return;
    }
    /* shell sort: rows are short, or almost ascending already */
    for (int64_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
        for (int64_t i = gap; i < n; i++) {
            const int32_t v = list[i];
            int64_t j = i;
            for (; j >= gap && list[j - gap] > v; j -= gap) {
                list[j] = list[j - gap];
            }
            list[j] = v;
        }
    }
}

/* ---- assembly -------------------------------------------------------------------------------- */

/** One thread's accumulators. */
static frg_status accumulator_create(frg_context *ctx, accumulator *a, int64_t n)
{
    TRY(NEW0(ctx, &a->seen, n, "row accumulator"));
    TRY(NEW(ctx, &a->sum, n, "row accumulator"));
    TRY(NEW(ctx, &a->list, n + 1, "row accumulator"));
    return FRG_OK;
}

static void accumulator_destroy(frg_context *ctx, accumulator *a)
{
    DROP(ctx, &a->seen);
    DROP(ctx, &a->sum);
    DROP(ctx, &a->list);
}

/** Row `level` of S into a: sparse part, then the border; or the dense row of a border level. */
static void whole_row(const fe_split *s, const fe_groups *m, const fe_coupling *b,
                      const fe_schur *out, accumulator *a, int32_t level)
{
    const int64_t place = s->width > 0 ? frgi_fe_border_place(s, level) : -1, t = s->width;
    if (place < 0) {
        gather_row(s, m, a, level);
        for (int64_t j = 0; j < t; j++) {
            add_entry(a, level, out->border[j], b->coupling[level * t + j]);
        }
        return;
    }
    a->count = 0;
    for (int64_t l = 0; l < s->g->n_reduced; l++) {
        const int64_t other = frgi_fe_border_place(s, (int32_t)l);
        add_entry(a, level, (int32_t)l,
                  other < 0 ? b->coupling[l * t + place] : b->block22[place * t + other]);
    }
}

/** Differences of counts that cancel leave rounding, which is replaced by 0, so that a null pivot
 *  is recognised. */
static void clean_row(const fe_rows *g, accumulator *a, int32_t level)
{
    const double mine = g->level_weight[level];
    for (int64_t j = 0; j < a->count; j++) {
        const int32_t o = a->list[j];
        const double other = g->level_weight[o], scale = mine < other ? mine : other;
        if (fabs(a->sum[o]) <= (o == level ? 1e-13 : 1e-14) * scale) {
            a->sum[o] = 0;
        }
    }
}

/** Entries that row l has at most: itself, the border, the other members of its groups. */
static double bound_row(const fe_split *s, const fe_groups *m, int64_t l)
{
    const double n = (double)s->g->n_reduced;
    double length = 1 + (double)s->width;
    for (int64_t k = m->level_start[l]; k < m->level_start[l + 1]; k++) {
        const int64_t c = m->level_group[k];
        length += (double)(m->of[c].end - m->of[c].start - 1);
    }
    return length > n || (s->width > 0 && frgi_fe_border_place(s, (int32_t)l) >= 0) ? n : length;
}

/** Bounds of the rows' lengths, summed: bound[l] is where row l may begin. */
static double bound_rows(const fe_split *s, const fe_groups *m, int threads, int64_t *bound)
{
    const int64_t n = s->g->n_reduced;
    double total = 0;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t l = 0; l < n; l++) {
        bound[l] = (int64_t)bound_row(s, m, l); /* at most n */
    }
    for (int64_t l = 0; l <= n; l++) {
        const double length = l < n ? (double)bound[l] : 0;
        bound[l] = total < 9e18 ? (int64_t)total : INT64_MAX;
        total += length;
    }
    return total;
}

enum { POLL_ROWS = 64 };

/** The heartbeat, after `done` rows of S. */
static frg_status poll(frg_context *ctx, int64_t done, int64_t total)
{
    const frg_progress p = {.solver = "fe",
                            .phase = "assembly",
                            .done = done,
                            .total = total,
                            .residual = (double)NAN,
                            .target = (double)NAN};
    return frgi_heartbeat(ctx, &p);
}

/** Rows in parallel, each into its bound; then they are moved together.  A stop leaves the rows
 *  that follow. */
static frg_status write_rows(frg_context *ctx, const fe_split *s, const fe_groups *m,
                             const fe_coupling *b, int threads, fe_schur *out)
{
    accumulator *a = NULL;
    int64_t *length = NULL;
    atomic_int stopped = FRG_OK;
    frg_status status;
    TRY_TO(done, NEW0(ctx, &a, threads, "row accumulators"));
    for (int t = 0; t < threads; t++) {
        TRY_TO(done, accumulator_create(ctx, &a[t], out->n));
    }
    TRY_TO(done, NEW(ctx, &length, out->n, "row lengths"));
    TRY_TO(done, NEW(ctx, &out->columns, out->starts[out->n], "Schur complement"));
    TRY_TO(done, NEW(ctx, &out->values, out->starts[out->n], "Schur complement"));
    TRY_TO(done, NEW0(ctx, &out->inverse_diag, out->n, "Schur complement"));
#pragma omp parallel for num_threads(threads) schedule(dynamic, 64) if (threads > 1)
    for (int64_t l = 0; l < out->n; l++) {
        accumulator *mine = &a[omp_get_thread_num()];
        if (l % POLL_ROWS == 0 && frgi_stopped(ctx) != FRG_OK) {
            atomic_store_explicit(&stopped, (int)frgi_stopped(ctx), memory_order_relaxed);
        }
        if (atomic_load_explicit(&stopped, memory_order_relaxed) != FRG_OK) {
            continue;
        }
        whole_row(s, m, b, out, mine, (int32_t)l);
        clean_row(s->g, mine, (int32_t)l);
        sort_levels(mine->list, mine->count);
        for (int64_t j = 0; j < mine->count; j++) {
            out->columns[out->starts[l] + j] = mine->list[j];
            out->values[out->starts[l] + j] = mine->sum[mine->list[j]];
        }
        length[l] = mine->count;
        out->inverse_diag[l] = mine->sum[l] > 0 ? 1 / mine->sum[l] : 0;
    }
    status = (frg_status)atomic_load(&stopped);
    if (status != FRG_OK) {
        goto done;
    }
    int64_t used = 0;
    for (int64_t l = 0; l < out->n; l++) {
        const int64_t from = out->starts[l];
        if (from > used) {
            memmove(out->columns + used, out->columns + from,
                    (size_t)length[l] * sizeof *out->columns);
            memmove(out->values + used, out->values + from,
                    (size_t)length[l] * sizeof *out->values);
        }
        out->starts[l] = used;
        used += length[l];
    }
    out->starts[out->n] = used;
done:
    for (int t = 0; a && t < threads; t++) {
        accumulator_destroy(ctx, &a[t]);
    }
    DROP(ctx, &a);
    DROP(ctx, &length);
    return status;
}

frg_status frgi_fe_schur_create(fe_schur *out, frg_context *ctx, const fe_rows *g, size_t byte_cap)
{
    const fe_split s = frgi_fe_split_factors(g);
    fe_groups m = {0};
    fe_coupling b = {0};
    frg_status status;
    out->n = g->n_reduced;
    /* arrays of all levels a thread, as long as they do not outweigh the rows */
    const int64_t worth = g->n_chunks > 1 ? 1 + g->n / (out->n + 1) : 1;
    const int threads = worth < frg_threads(ctx) ? (int)worth : frg_threads(ctx);
    status = poll(ctx, 0, out->n);
    if (status != FRG_OK) {
        goto done;
    }
    status = frgi_fe_groups_create(&m, ctx, &s, threads);
    if (status != FRG_OK) {
        goto done;
    }
    out->groups = m.n;
    TRY_TO(done, NEW(ctx, &out->starts, out->n + 1, "Schur complement"));
    const double bytes = 12 * bound_rows(&s, &m, threads, out->starts);
    if (bytes > (double)byte_cap) {
        status = frgi_fail(ctx, E_TOO_BIG, __FILE__, __LINE__,
                           "the Schur complement could take %.3g bytes, %zu are allowed", bytes,
                           byte_cap);
        goto done;
    }
    out->n_border = s.width;
    TRY_TO(done, frgi_fe_border_levels(ctx, &s, &out->border));
    if (s.width > 0) {
        status = frgi_fe_coupling_gather(&b, ctx, &s, false);
    }
    status = status == FRG_OK ? poll(ctx, 0, out->n) : status;
    status = status == FRG_OK ? write_rows(ctx, &s, &m, &b, threads, out) : status;
    status = status == FRG_OK ? poll(ctx, out->n, out->n) : status;
done:
    DROP(ctx, &b.coupling);
    frgi_fe_groups_destroy(&m, ctx);
    if (status != FRG_OK) {
        frgi_fe_schur_destroy(out, ctx);
    }
    return status;
}

void frgi_fe_schur_destroy(fe_schur *s, frg_context *ctx)
{
    DROP(ctx, &s->starts);
    DROP(ctx, &s->columns);
    DROP(ctx, &s->values);
    DROP(ctx, &s->inverse_diag);
    DROP(ctx, &s->border);
    *s = (fe_schur){0};
}

size_t frgi_fe_schur_bytes(const fe_schur *s)
{
    return s->starts ? (size_t)(s->starts[s->n] * 12 + s->n * 16) : 0;
}

/* ---- saved and read back --------------------------------------------------------------------- */

frg_status frgi_fe_schur_put(const fe_schur *s, frg_checkpoint *to)
{
    const int64_t entries = s->starts[s->n];
    TRY(frg_checkpoint_put(to, "s.starts", s->starts, (s->n + 1) * (int64_t)sizeof *s->starts));
    TRY(frg_checkpoint_put(to, "s.columns", s->columns, entries * (int64_t)sizeof *s->columns));
    TRY(frg_checkpoint_put(to, "s.values", s->values, entries * (int64_t)sizeof *s->values));
    TRY(frg_checkpoint_put(to, "s.inverse", s->inverse_diag,
                           s->n * (int64_t)sizeof *s->inverse_diag));
    return frg_checkpoint_put(to, "s.border", s->border, s->n_border * (int64_t)sizeof *s->border);
}

/** Rows of ascending columns that are there, and a border of them. */
static bool is_sound(const fe_schur *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
            const int64_t before = e > s->starts[i] ? s->columns[e - 1] : -1;
            if (s->columns[e] <= before || s->columns[e] >= s->n) {
                return false;
            }
        }
    }
    for (int64_t i = 0; i < s->n_border; i++) {
        if (s->border[i] < 0 || s->border[i] >= s->n) {
            return false;
        }
    }
    return true;
}

frg_status frgi_fe_schur_get(fe_schur *s, frg_context *ctx, const frg_checkpoint *from, int64_t n)
{
    int64_t bytes = 0;
    TRY(NEW(ctx, &s->starts, n + 1, "Schur complement"));
    TRY(frgi_checkpoint_copy(from, "s.starts", s->starts, (size_t)(n + 1) * sizeof *s->starts));
    const void *const columns = frg_checkpoint_get(from, "s.columns", &bytes);
    const int64_t entries = bytes / (int64_t)sizeof *s->columns;
    bool sound = columns && s->starts[0] == 0 && s->starts[n] == entries;
    for (int64_t i = 0; sound && i < n; i++) {
        sound = s->starts[i] <= s->starts[i + 1];
    }
    if (!sound) {
        return frgi_checkpoint_unsound(from, "s.starts");
    }
    const size_t count = (size_t)entries;
    TRY(NEW(ctx, &s->columns, entries, "Schur complement"));
    TRY(NEW(ctx, &s->values, entries, "Schur complement"));
    TRY(NEW(ctx, &s->inverse_diag, n, "Schur complement"));
    TRY(NEW(ctx, &s->border, s->n_border, "Schur complement"));
    TRY(frgi_checkpoint_copy(from, "s.columns", s->columns, count * sizeof *s->columns));
    TRY(frgi_checkpoint_copy(from, "s.values", s->values, count * sizeof *s->values));
    TRY(frgi_checkpoint_copy(from, "s.inverse", s->inverse_diag,
                             (size_t)n * sizeof *s->inverse_diag));
    TRY(frgi_checkpoint_copy(from, "s.border", s->border, (size_t)s->n_border * sizeof *s->border));
    s->n = n;
    return is_sound(s) ? FRG_OK : frgi_checkpoint_unsound(from, "s.columns");
}
