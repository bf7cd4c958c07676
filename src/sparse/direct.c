/* direct.c - direct factor of a sparse symmetric positive semidefinite matrix: choice of the order.
 *
 *     analyse:  natural order -> envelope; Cuthill-McKee -> envelope; minimum degree -> supernodes,
 *               each only if the one before is not so cheap that looking further would cost more
 *     factor:   envelope.c or supernodal.c
 *     solve:    permute up to 4 or 8 columns into scratch, sweep, permute back
 *
 * Prediction costs linear time for the envelopes and AMD's time for the supernodes, and touches no
 * number.
 *
 * Rank.  The matrix is semidefinite: in exact arithmetic a pivot is 0 when its variable depends on
 * those before, and the whole column of L is 0 with it.  So a pivot <= null_pivot times the
 * original diagonal is taken for 0: the variable is grounded, its column of L and its reciprocal
 * pivot are set to 0, and the factor is that of the matrix without it.  Solving then gives a
 * solution for every right-hand side in the range, and n minus the null pivots is the rank.  Where
 * to draw the line: of pivots that ought to be 0, those of grids, rings of 6e4 levels and expanders
 * came to at most 1e-13 of the diagonal, mostly 1e-15; two expanders that hang together by an edge
 * of relative weight 1e-8 have a true one of about 1e-10.
 *
 * Memory: index arrays of n while analysed; the factor from the first frgi_direct_factor on. */
#include "sparse/direct.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/checkpoint_bytes.h"
#include "sparse/envelope.h"
#include "sparse/supernodal.h"

/* Seconds on one thread of a machine with AVX-512 or AVX2; they decide what is tried next and are
 * reported. */
static const double FLOP = 5e-11;        /* a multiply-add of the kernels */
static const double ENTRY = 3e-9;        /* laying an entry of the matrix into the factor */
static const double PANEL_PIVOTS = 2e-7; /* the 8 pivots of a panel */
static const double SUPERNODE = 4e-7;
static const double SEARCH = 6e-9; /* an entry of the matrix in Cuthill-McKee */
static const double AMD = 5e-8;    /* an entry in minimum degree */

struct frgi_direct {
    frg_context *ctx;
    frgi_direct_opts opts;
    const frgi_direct_ops *ops;
    frgi_pattern pattern; /* of the caller while analysing and factoring, or expanded */
    bool expanded;
    int64_t *expanded_starts, *where;
    int32_t *expanded_columns;
    int32_t *order, *place; /* of the chosen candidate */
    frgi_order chosen;
    frgi_direct_cost costs[FRGI_ORDER_COUNT];
    frgi_arena index;
    frgi_envelope envelope;
    frgi_supernodal tree;
    frgi_arena numbers;
    double *panels, *inverse, *lowest;
    frgi_supernodal_work work;
    int64_t null_pivots;
    bool factored;
};

void frgi_direct_defaults(frgi_direct_opts *o)
{
    *o = (frgi_direct_opts){
        .null_pivot = 1e-11, .cheap_flops = 1e7, .amd_max_nnz = 50000000, .solver = "direct"};
}

/* ---- analysis -------------------------------------------------------------------------------- */

/** The full pattern of an upper triangle, with the number of each entry's value. */
static frg_status expand(frgi_direct *f, const frgi_symmetric *s)
{
    const int64_t n = s->n;
    TRY(NEW0(f->ctx, &f->expanded_starts, n + 2, "expanded pattern"));
    int64_t *const starts = f->expanded_starts;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
            starts[i + 2]++;
            if (s->columns[e] != i)
                starts[s->columns[e] + 2]++;
        }
    }
    for (int64_t i = 1; i <= n + 1; i++)
        starts[i] += starts[i - 1];
    TRY(NEW(f->ctx, &f->expanded_columns, starts[n + 1], "expanded pattern"));
    TRY(NEW(f->ctx, &f->where, starts[n + 1], "expanded pattern"));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
            const int32_t j = s->columns[e];
            f->where[starts[i + 1]] = e;
            f->expanded_columns[starts[i + 1]++] = j;
            if (j != i) {
                f->where[starts[j + 1]] = e;
                f->expanded_columns[starts[j + 1]++] = (int32_t)i;
            }
        }
    }
    return FRG_OK;
}

static frgi_pattern pattern_of(const frgi_direct *f, const frgi_symmetric *s)
{
    if (s->upper)
        return (frgi_pattern){s->n, f->expanded_starts, f->expanded_columns, f->where};
    return (frgi_pattern){s->n, s->starts, s->columns, NULL};
}

static void index_layout(frgi_arena *a, frgi_direct *f, int64_t n)
{
    f->order = TAKE(a, int32_t, n);
    f->place = TAKE(a, int32_t, n);
    frgi_envelope_layout(a, &f->envelope, n);
}

static frgi_direct_cost envelope_cost(const frgi_envelope *e, int64_t nnz)
{
    const double entries = (double)e->offset[e->blocks];
    const size_t index = (size_t)e->blocks * (sizeof *e->start + sizeof *e->offset);
    return (frgi_direct_cost){
        .tried = 1,
        .flops = e->flops,
        .solve_flops = 2 * entries,
        .bytes = frgi_add(frgi_mul((size_t)e->offset[e->blocks], sizeof(double)), index),
        .seconds = e->flops * FLOP + (double)nnz * ENTRY + (double)e->blocks * PANEL_PIVOTS,
    };
}

static bool fits(const frgi_direct *f, frgi_direct_cost c)
{
    return c.tried && (f->opts.byte_cap == 0 || c.bytes <= f->opts.byte_cap);
}

/** The better of the natural order and reverse Cuthill-McKee. */
static frg_status try_envelope(frgi_direct *f, const uint8_t *late)
{
    const int64_t n = f->pattern.n, nnz = f->pattern.starts[n];
    frgi_order_natural(n, late, f->order);
    frgi_order_invert(n, f->order, f->place);
    frgi_envelope_profile(&f->envelope, &f->pattern, f->order, f->place);
    const frgi_direct_cost natural = envelope_cost(&f->envelope, nnz);
    f->costs[FRGI_ORDER_RCM] = natural;
    if (natural.flops * FLOP < SEARCH * (double)nnz && fits(f, natural))
        return FRG_OK;
    int32_t *level;
    TRY(NEW(f->ctx, &level, n, "levels of the search"));
    frgi_order_rcm(&f->pattern, late, f->order, level);
    DROP(f->ctx, &level);
    frgi_order_invert(n, f->order, f->place);
    frgi_envelope_profile(&f->envelope, &f->pattern, f->order, f->place);
    f->costs[FRGI_ORDER_RCM] = envelope_cost(&f->envelope, nnz);
    if (natural.flops < f->costs[FRGI_ORDER_RCM].flops) {
        frgi_order_natural(n, late, f->order);
        frgi_order_invert(n, f->order, f->place);
        frgi_envelope_profile(&f->envelope, &f->pattern, f->order, f->place);
        f->costs[FRGI_ORDER_RCM] = natural;
    }
    return FRG_OK;
}

/** Minimum degree into fresh arrays; replaces the envelope's order if it is the cheaper one. */
static frg_status try_amd(frgi_direct *f, const uint8_t *late)
{
    frg_status status;
    const int64_t n = f->pattern.n;
    int32_t *order = NULL;
    TRY(NEW(f->ctx, &order, 2 * n, "ordering"));
    TRY_TO(done, frgi_order_amd(f->ctx, &f->pattern, late, order));
    TRY_TO(done, frgi_supernodal_analyse(&f->tree, f->ctx, &f->pattern, order, order + n));
    const size_t numbers = frgi_mul((size_t)f->tree.offset[f->tree.count], sizeof(double));
    const frgi_direct_cost cost = {
        .tried = 1,
        .flops = f->tree.flops,
        .solve_flops = f->tree.solve_flops,
        .bytes = frgi_add(numbers, frgi_supernodal_bytes(&f->tree)),
        .seconds = f->tree.flops * FLOP + (double)f->pattern.starts[n] * ENTRY +
                   (double)f->tree.count * SUPERNODE,
    };
    f->costs[FRGI_ORDER_AMD] = cost;
    const frgi_direct_cost other = f->costs[FRGI_ORDER_RCM];
    if (fits(f, cost) && (!fits(f, other) || cost.seconds < other.seconds)) {
        f->chosen = FRGI_ORDER_AMD;
        memcpy(f->order, order, (size_t)n * sizeof *order);
        memcpy(f->place, order + n, (size_t)n * sizeof *order);
    }
done:
    DROP(f->ctx, &order);
    return status;
}

static frg_status choose(frgi_direct *f, const uint8_t *late)
{
    const int64_t nnz = f->pattern.starts[f->pattern.n];
    const unsigned orders = f->opts.orders;
    f->chosen = FRGI_ORDER_RCM;
    if (orders & (1u << FRGI_ORDER_RCM))
        TRY(try_envelope(f, late));
    const frgi_direct_cost envelope = f->costs[FRGI_ORDER_RCM];
    const bool cheap = fits(f, envelope) && (envelope.flops <= f->opts.cheap_flops ||
                                             envelope.flops * FLOP < AMD * (double)nnz);
    if (orders & (1u << FRGI_ORDER_AMD) && !cheap && nnz <= f->opts.amd_max_nnz)
        TRY(try_amd(f, late));
    if (f->chosen == FRGI_ORDER_RCM && f->tree.memory.base)
        frgi_supernodal_close(&f->tree, f->ctx);
    if (!fits(f, f->costs[f->chosen]))
        FAIL(f->ctx, E_TOO_BIG, "the factor of %lld unknowns needs %zu bytes, %zu are allowed",
             (long long)f->pattern.n,
             f->costs[FRGI_ORDER_AMD].tried ? f->costs[FRGI_ORDER_AMD].bytes : envelope.bytes,
             f->opts.byte_cap);
    return FRG_OK;
}

static const frgi_direct_ops *ops_of(const frg_context *ctx)
{
    static const frgi_direct_ops *const table[ISA_COUNT] = EACH_LEVEL(&frgi_direct_ops);
    return table[frgi_context_isa(ctx)];
}

frg_status frgi_direct_analyse(frgi_direct **out, frg_context *ctx, const frgi_symmetric *s,
                               const int32_t *last, int64_t n_last, const frgi_direct_opts *o)
{
    *out = NULL;
    if (s->n >= INT32_MAX - PANEL)
        FAIL(ctx, E_TOO_BIG, "a factor takes fewer than 2^31 unknowns, there are %lld",
             (long long)s->n);
    frg_status status;
    uint8_t *late = NULL;
    frgi_direct *f;
    TRY(NEW0(ctx, &f, 1, "direct factor"));
    f->ctx = ctx;
    f->ops = ops_of(ctx);
    frgi_direct_defaults(&f->opts);
    if (o)
        f->opts = *o;
    if (f->opts.orders == 0)
        f->opts.orders = ~0u;
    index_layout(&f->index, f, s->n);
    TRY_TO(failed, frgi_arena_open(&f->index, ctx, "order of the factor"));
    index_layout(&f->index, f, s->n);
    TRY_TO(failed, NEW0(ctx, &late, s->n, "variables held back"));
    for (int64_t i = 0; i < n_last; i++)
        late[last[i]] = 1;
    if (s->upper)
        TRY_TO(failed, expand(f, s));
    f->pattern = pattern_of(f, s);
    TRY_TO(failed, choose(f, late));
    DROP(ctx, &late);
    *out = f;
    return FRG_OK;
failed:
    DROP(ctx, &late);
    frgi_direct_destroy(f);
    return status;
}

bool frgi_direct_refused(const frg_context *ctx, frg_status status)
{
    return status < 0 && strcmp(frg_error_code(ctx), frg_error_catalogue(E_TOO_BIG - 1)->code) == 0;
}

frgi_order frgi_direct_chosen(const frgi_direct *f)
{
    return f->chosen;
}

frgi_direct_cost frgi_direct_costs(const frgi_direct *f, frgi_order order)
{
    return f->costs[order];
}

/* ---- factor ---------------------------------------------------------------------------------- */

static int64_t diagonal_size(const frgi_direct *f)
{
    return f->chosen == FRGI_ORDER_RCM ? PANEL * f->envelope.blocks
                                       : f->tree.diagonal[f->tree.count];
}

static int64_t panels_size(const frgi_direct *f)
{
    return f->chosen == FRGI_ORDER_RCM ? f->envelope.offset[f->envelope.blocks]
                                       : f->tree.offset[f->tree.count];
}

static void numbers_layout(frgi_arena *a, frgi_direct *f)
{
    f->panels = TAKE(a, double, panels_size(f) + 1);
    f->inverse = TAKE(a, double, diagonal_size(f));
    f->lowest = TAKE(a, double, diagonal_size(f));
    if (f->chosen == FRGI_ORDER_AMD) {
        f->work.address = TAKE(a, int64_t, f->tree.tallest);
        f->work.map = TAKE(a, int32_t, f->tree.n);
        f->work.head = TAKE(a, int32_t, f->tree.count);
        f->work.next = TAKE(a, int32_t, f->tree.count);
        f->work.done = TAKE(a, int32_t, f->tree.count);
    }
}

static frg_status open_numbers(frgi_direct *f)
{
    if (f->numbers.base)
        return FRG_OK;
    if (f->chosen == FRGI_ORDER_AMD && !f->tree.rows)
        TRY(frgi_supernodal_rows(&f->tree, f->ctx, &f->pattern, f->order, f->place));
    f->numbers = (frgi_arena){0};
    numbers_layout(&f->numbers, f);
    TRY(frgi_arena_open(&f->numbers, f->ctx, "factor"));
    numbers_layout(&f->numbers, f);
    return FRG_OK;
}

frg_status frgi_direct_poll(frg_context *ctx, const char *solver, double *since, int64_t done,
                            int64_t total)
{
    static const double between = 2e7; /* multiply-adds: some milliseconds */
    if (*since <= between)
        return FRG_OK;
    *since = 0;
    const frg_progress p = {.solver = solver,
                            .phase = "factor",
                            .done = done,
                            .total = total,
                            .residual = (double)NAN,
                            .target = (double)NAN};
    return frgi_heartbeat(ctx, &p);
}

frg_status frgi_direct_factor(frgi_direct *f, const frgi_symmetric *s)
{
    f->factored = false;
    f->pattern = pattern_of(f, s);
    TRY(open_numbers(f));
    int64_t nulls;
    frg_status status;
    if (f->chosen == FRGI_ORDER_RCM) {
        const frgi_envelope_work w = {
            .pattern = &f->pattern,
            .matrix = s->values,
            .order = f->order,
            .place = f->place,
            .ops = f->ops,
            .null_pivot = f->opts.null_pivot,
            .solver = f->opts.solver,
            .panels = f->panels,
            .inverse = f->inverse,
            .lowest = f->lowest,
        };
        status = frgi_envelope_factor(&f->envelope, &w, f->ctx, &nulls);
    } else {
        f->work.pattern = &f->pattern;
        f->work.matrix = s->values;
        f->work.order = f->order;
        f->work.place = f->place;
        f->work.ops = f->ops;
        f->work.panels = f->panels;
        f->work.inverse = f->inverse;
        f->work.lowest = f->lowest;
        f->work.null_pivot = f->opts.null_pivot;
        f->work.solver = f->opts.solver;
        status = frgi_supernodal_factor(&f->tree, &f->work, f->ctx, &nulls);
    }
    f->null_pivots = nulls - (diagonal_size(f) - f->pattern.n);
    f->factored = status == FRG_OK;
    return status;
}

size_t frgi_direct_bytes(const frgi_direct *f)
{
    size_t bytes = sizeof *f + f->index.bytes + f->numbers.bytes;
    if (f->expanded_starts)
        bytes += (size_t)(f->pattern.n + 2) * sizeof *f->expanded_starts +
                 (size_t)f->expanded_starts[f->pattern.n] *
                     (sizeof *f->expanded_columns + sizeof *f->where);
    return bytes + (f->tree.rows ? frgi_supernodal_bytes(&f->tree) : f->tree.memory.bytes);
}

int64_t frgi_direct_rank(const frgi_direct *f)
{
    return f->pattern.n - f->null_pivots;
}

int frgi_direct_grounded(const frgi_direct *f, int64_t i)
{
    const int64_t new = f->place[i];
    if (f->chosen == FRGI_ORDER_RCM)
        return f->inverse[new] == 0;
    int64_t low = 0, high = f->tree.count; /* first[low] <= new < first[high] */
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        *(f->tree.first[middle] <= new ? &low : &high) = middle;
    }
    return f->inverse[f->tree.diagonal[low] + new - f->tree.first[low]] == 0;
}

/* ---- solve ----------------------------------------------------------------------------------- */

static int64_t padded_rows(const frgi_direct *f)
{
    return (f->pattern.n + PANEL - 1) / PANEL * PANEL;
}

/** Doubles of scratch of one group of 8 columns. */
static size_t group_scratch(const frgi_direct *f)
{
    return 8 * (size_t)(padded_rows(f) + f->tree.tallest);
}

static int64_t groups_of(int64_t k)
{
    return (k + 7) / 8;
}

size_t frgi_direct_scratch(const frgi_direct *f, int64_t k)
{
    return frgi_mul(group_scratch(f), (size_t)groups_of(k)) + PANEL;
}

/** Solves for columns c0 .. c0 + count - 1 of x, 1 to 8 of them. */
static void solve_group(const frgi_direct *f, int64_t k, int64_t c0, int64_t count, double *x,
                        double *scratch)
{
    const int width = count <= 4 ? WIDTH_4 : WIDTH_8;
    const int64_t w = count <= 4 ? 4 : 8, n = f->pattern.n;
    for (int64_t i = 0; i < n; i++) {
        const double *const from = x + f->order[i] * k + c0;
        for (int64_t c = 0; c < w; c++)
            scratch[i * w + c] = c < count ? from[c] : 0;
    }
    memset(scratch + n * w, 0, (size_t)((padded_rows(f) - n) * w) * sizeof *scratch);
    if (f->chosen == FRGI_ORDER_RCM) {
        const frgi_panels panels =
            frgi_envelope_panels(&f->envelope, f->panels, f->inverse, f->lowest);
        frgi_envelope_solve(&panels, f->ops, width, scratch);
    } else {
        frgi_supernodal_solve(&f->tree, f->ops, f->panels, f->inverse, width, scratch,
                              scratch + padded_rows(f) * w);
    }
    for (int64_t i = 0; i < n; i++) {
        double *const to = x + f->order[i] * k + c0;
        for (int64_t c = 0; c < count; c++)
            to[c] = scratch[i * w + c];
    }
}

void frgi_direct_solve(const frgi_direct *f, int64_t k, double *x, double *scratch)
{
    assert(f->factored);
    double *const aligned = (double *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    const int64_t groups = groups_of(k);
#pragma omp parallel for schedule(static, 1) num_threads(frg_threads(f->ctx)) if (groups > 1)
    for (int64_t g = 0; g < groups; g++)
        solve_group(f, k, 8 * g, k - 8 * g < 8 ? k - 8 * g : 8, x,
                    aligned + (size_t)g * group_scratch(f));
}

void frgi_direct_destroy(frgi_direct *f)
{
    if (!f)
        return;
    frg_context *const ctx = f->ctx;
    frgi_supernodal_close(&f->tree, ctx);
    frgi_arena_close(&f->numbers, ctx);
    frgi_arena_close(&f->index, ctx);
    DROP(ctx, &f->expanded_starts);
    DROP(ctx, &f->expanded_columns);
    DROP(ctx, &f->where);
    DROP(ctx, &f);
}

/* ---- saved and read back --------------------------------------------------------------------- */

frg_status frgi_direct_put(const frgi_direct *f, frgi_direct_facts *facts, frg_checkpoint *c)
{
    const bool by_envelope = f->chosen == FRGI_ORDER_RCM;
    const frgi_envelope *const e = &f->envelope;
    *facts = (frgi_direct_facts){f->pattern.n, (int64_t)f->chosen, f->null_pivots,
                                 by_envelope ? 0 : f->tree.count};
    TRY(frg_checkpoint_put(c, "direct", facts, sizeof *facts));
    TRY(frg_checkpoint_put(c, "d.order", f->order, facts->n * (int64_t)sizeof *f->order));
    if (by_envelope) {
        TRY(frg_checkpoint_put(c, "d.start", e->start, e->blocks * (int64_t)sizeof *e->start));
    } else {
        TRY(frgi_supernodal_put(&f->tree, c));
    }
    TRY(frg_checkpoint_put(c, "d.panels", f->panels, panels_size(f) * (int64_t)sizeof *f->panels));
    return frg_checkpoint_put(c, "d.inverse", f->inverse,
                              diagonal_size(f) * (int64_t)sizeof *f->inverse);
}

/** order and its inverse; E_CHECKPOINT where it is no permutation. */
static frg_status get_order(frgi_direct *f, const frg_checkpoint *c, int64_t n)
{
    TRY(frgi_checkpoint_copy(c, "d.order", f->order, (size_t)n * sizeof *f->order));
    for (int64_t i = 0; i < n; i++) {
        f->place[i] = -1;
    }
    for (int32_t i = 0; i < n; i++) {
        const int32_t old = f->order[i];
        if (old < 0 || old >= n || f->place[old] >= 0) {
            return frgi_checkpoint_unsound(c, "d.order");
        }
        f->place[old] = i;
    }
    return FRG_OK;
}

static frg_status get_envelope(frgi_envelope *e, const frg_checkpoint *c)
{
    TRY(frgi_checkpoint_copy(c, "d.start", e->start, (size_t)e->blocks * sizeof *e->start));
    e->offset[0] = 0;
    for (int64_t b = 0; b < e->blocks; b++) {
        if (e->start[b] < 0 || e->start[b] > b) {
            return frgi_checkpoint_unsound(c, "d.start");
        }
        e->offset[b + 1] = e->offset[b] + TILE * (b + 1 - e->start[b]);
    }
    return FRG_OK;
}

static frg_status get_numbers(frgi_direct *f, const frg_checkpoint *c)
{
    const size_t panels = (size_t)panels_size(f) * sizeof *f->panels;
    int64_t there = 0;
    if (!frg_checkpoint_get(c, "d.panels", &there) || (uint64_t)there != panels) {
        return frgi_checkpoint_unsound(c, "d.panels"); /* before memory is taken for them */
    }
    TRY(open_numbers(f));
    TRY(frgi_checkpoint_copy(c, "d.panels", f->panels, panels));
    return frgi_checkpoint_copy(c, "d.inverse", f->inverse,
                                (size_t)diagonal_size(f) * sizeof *f->inverse);
}

static frg_status get_sections(frgi_direct *f, const frg_checkpoint *c,
                               const frgi_direct_facts *facts)
{
    TRY(get_order(f, c, facts->n));
    if (f->chosen == FRGI_ORDER_RCM) {
        TRY(get_envelope(&f->envelope, c));
    } else {
        TRY(frgi_supernodal_get(&f->tree, f->ctx, c, facts->n, facts->supernodes));
    }
    return get_numbers(f, c);
}

frg_status frgi_direct_get(frgi_direct **out, frg_context *ctx, const frg_checkpoint *c,
                           const frgi_symmetric *s, const frgi_direct_opts *o)
{
    *out = NULL;
    frgi_direct_facts facts;
    TRY(frgi_checkpoint_copy(c, "direct", &facts, sizeof facts));
    if (facts.n != s->n || facts.order < 0 || facts.order >= FRGI_ORDER_COUNT ||
        facts.null_pivots < 0 || facts.null_pivots > facts.n || facts.supernodes < 0 ||
        facts.supernodes > facts.n) {
        return frgi_checkpoint_unsound(c, "direct");
    }
    frgi_direct *f;
    frg_status status;
    TRY(NEW0(ctx, &f, 1, "direct factor"));
    f->ctx = ctx;
    f->ops = ops_of(ctx);
    f->opts = *o;
    f->chosen = (frgi_order)facts.order;
    f->null_pivots = facts.null_pivots;
    f->pattern = pattern_of(f, s);
    index_layout(&f->index, f, s->n);
    TRY_TO(failed, frgi_arena_open(&f->index, ctx, "order of the factor"));
    index_layout(&f->index, f, s->n);
    TRY_TO(failed, get_sections(f, c, &facts));
    f->factored = true;
    *out = f;
    return FRG_OK;
failed:
    frgi_direct_destroy(f);
    return status;
}
