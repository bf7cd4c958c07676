/* reg_frame.c - which rows are used: missing, subset, zero weight, singletons, connected set, in
 * this order.
 *
 * A mask of one byte a row holds the reason; it exists only once a reason was looked for, and where
 * no row is dropped there is no list of rows either and nothing is copied.
 *
 * Singletons (levels with one row) are dropped until none is left.  Each level keeps its count and
 * the exclusive or of its rows' numbers: when the count falls to one, that is the row.  A queue of
 * such levels makes it O(n + levels) in all, however many rounds it takes; a round is one
 * generation of the queue.
 */
#include "regress/reg_matches.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "fe/fe_rows.h"
#include "fe/fe_weights.h"
#include "formula/keys.h"
#include "formula/mistyped.h"
#include "regress/reg_sunab.h"

typedef enum { KEEP, MISSING, SUBSET, ZERO_WEIGHT, UNCOMPARED, REASONS } reason;

typedef struct {
    frg_context *ctx;
    const frgi_frame_input *in;
    frgi_frame *f;
    unsigned char *mask; /* reason of each row; NULL: none is dropped so far */
    const frg_column *weights;
} framer;

enum { REPORTED = 64 };             /* blocks between two reports of progress */
static const double MOST = 0x1p53;  /* whole numbers that a double counts by ones */
static const double ROUNDED = 1e-8; /* of what a regressor varies by */

/* ---- missing, subset, weights ---------------------------------------------------------------- */

static frg_status need_mask(framer *b)
{
    return b->mask ? FRG_OK : NEW0(b->ctx, &b->mask, b->f->n_rows, "the mask of rows");
}

/** Marks the rows where the program is NaN, or also 0 (`zero`), unless they are marked already. */
static frg_status exclude(framer *b, const frgi_program *p, reason why, bool zero)
{
    const int64_t n = b->f->n_rows;
    const int threads = frgi_pass_threads(b->ctx, n);
    const int64_t cells = ((int64_t)p->stack + 1) * FRGI_BLOCK;
    double *scratch;
    TRY(need_mask(b));
    TRY(NEW(b->ctx, &scratch, threads * cells, "an expression"));
    unsigned char *const mask = b->mask;
    frgi_pass_begins(b->ctx, "fe", "rows", n * (int64_t)sizeof *scratch);
#pragma omp parallel num_threads(threads)
    {
        const int64_t blocks = (n + FRGI_BLOCK - 1) / FRGI_BLOCK;
        double *const mine = scratch + omp_get_thread_num() * cells;
#pragma omp for schedule(static)
        for (int64_t k = 0; k < blocks; k++) {
            const int64_t begin = k * FRGI_BLOCK;
            const int64_t m = n - begin < FRGI_BLOCK ? n - begin : FRGI_BLOCK;
            frgi_program_block(p, NULL, begin, m, mine, mine + FRGI_BLOCK);
            for (ptrdiff_t i = 0; i < m; i++) {
                const bool hit = isnan(mine[i]) || (zero && mine[i] == 0);
                unsigned char *const at = &mask[begin + i];
                *at = *at == KEEP && hit ? (unsigned char)why : *at;
            }
            if (k % REPORTED == 0) {
                frgi_pass_did(b->ctx, REPORTED * FRGI_BLOCK * (int64_t)sizeof *mine);
            }
        }
    }
    DROP(b->ctx, &scratch);
    return FRG_OK;
}

static frg_status exclude_missing(framer *b, const frgi_program *p)
{
    return frgi_program_may_miss(p) ? exclude(b, p, MISSING, false) : FRG_OK;
}

static frg_status exclude_missing_column(framer *b, const frg_column *c)
{
    return exclude_missing(b, &(frgi_program){.column = c});
}

static frg_status exclude_missing_key(framer *b, const frgi_key *key)
{
    for (int i = 0; i < key->n; i++) {
        TRY(exclude_missing_column(b, key->columns[i]));
    }
    return FRG_OK;
}

static int64_t count_marked(const framer *b, reason why)
{
    int64_t count = 0;
    for (int64_t i = 0; b->mask && i < b->f->n_rows; i++) {
        count += b->mask[i] == why;
    }
    return count;
}

/** Was this said of other rows of the same call: by another model, or before the first stage? */
static bool is_said(const framer *b, frgi_error warning)
{
    return (b->in->pool || b->in->options->first_stage) && frgi_has_warned(b->ctx, warning);
}

static frg_status exclude_all_missing(framer *b)
{
    const frgi_frame_input *const in = b->in;
    TRY(exclude_missing(b, in->depvar));
    TRY(in->offset ? exclude_missing(b, in->offset) : FRG_OK);
    for (int32_t id = 0; id < in->formula->names.count; id++) {
        const frgi_variable *const v = &in->variables[id];
        if (v->has_number) {
            TRY(exclude_missing(b, &v->number));
        }
        for (int k = 0; k < v->n_factors; k++) {
            TRY(exclude_missing_column(b, v->factor[k]));
        }
    }
    for (int q = 0; q < b->f->n_effects; q++) {
        TRY(exclude_missing_key(b, &b->f->keys[q]));
    }
    if (b->weights) {
        TRY(exclude_missing_column(b, b->weights));
    }
    const int64_t before = count_marked(b, MISSING);
    for (int k = 0; k < in->n_clusters; k++) {
        TRY(exclude_missing_key(b, &in->clusters[k]));
    }
    const int64_t added = count_marked(b, MISSING) - before;
    if (added && !is_said(b, W_CLUSTER_MISSING)) {
        frgi_warn(b->ctx, W_CLUSTER_MISSING,
                  "%lld row%s left out because a cluster variable is missing there",
                  (long long)added, added == 1 ? " is" : "s are");
    }
    return FRG_OK;
}

static frg_status exclude_missing_slopes(framer *b)
{
    const frgi_formula *const f = b->in->formula;
    for (int k = 0; k < f->n_slopes; k++) {
        frgi_program p;
        TRY(frgi_program_create(&p, b->ctx, &f->syntax, f->slopes[k].node, b->in->table));
        const bool text = p.column && p.column->kind == FRG_CATEGORY;
        const frg_status status =
            text ? frgi_refuse_mistyped(b->ctx, &f->syntax, f->slopes[k].node, p.column)
                 : exclude_missing(b, &p);
        frgi_program_destroy(&p, b->ctx);
        TRY(status);
        if (text) {
            frgi_syntax_at(&f->syntax, b->ctx, f->slopes[k].node);
            FAIL(b->ctx, E_TYPE, "slope '%s': the column holds text",
                 frgi_names_text(&f->names, f->slopes[k].name));
        }
    }
    return FRG_OK;
}

/** Refuses a column of whole numbers, NULL: none, some of which a double does not hold: others
 *  would compare as equal to them. */
static frg_status check_exact(frg_context *ctx, const frg_column *c)
{
    for (int64_t i = 0; c && c->kind == FRG_INTEGER && i < c->n; i++) {
        const int64_t v = c->integers[i];
        const double rounded = (double)v;
        if (fabs(rounded) > MOST && (rounded >= 0x1p63 || (int64_t)rounded != v)) {
            frgi_at(ctx, "%s:%lld", c->name, (long long)i + 1);
            FAIL(ctx, E_TYPE,
                 "subset: column '%s', row %lld: %lld is above 2^53, where expressions round whole "
                 "numbers and others compare as equal; give the column as text",
                 c->name, (long long)i + 1, (long long)v);
        }
    }
    return FRG_OK;
}

frg_status frgi_subset_program(frgi_program *p, frgi_syntax *s, frg_context *ctx, const char *text,
                               const frg_table *table)
{
    TRY(frgi_syntax_expression(s, ctx, text, (int64_t)strlen(text), "subset"));
    TRY(frgi_formula_check_expression(s, ctx, s->section[0]));
    TRY(frgi_program_create(p, ctx, s, s->section[0], table));
    if (p->column && p->column->kind == FRG_CATEGORY) {
        TRY(frgi_refuse_mistyped(ctx, s, s->section[0], p->column));
        frgi_syntax_at(s, ctx, s->section[0]);
        FAIL(ctx, E_TYPE, "subset: column '%s' holds text", p->column->name);
    }
    for (int32_t k = 0; k < p->n_steps; k++) {
        TRY(check_exact(ctx, p->steps[k].kind == NODE_NAME ? p->steps[k].column : NULL));
    }
    return FRG_OK;
}

static frg_status exclude_subset(framer *b)
{
    frgi_syntax s = {0};
    frgi_program p = {0};
    frg_status status = frgi_subset_program(&p, &s, b->ctx, b->in->options->subset, b->in->table);
    status = status < 0 ? status : exclude(b, &p, SUBSET, true);
    frgi_program_destroy(&p, b->ctx);
    frgi_syntax_free(&s, b->ctx);
    return status;
}

/** Marks the rows outside the level of `split` that `split_value` names. */
static frg_status exclude_split(framer *b)
{
    const frg_fe_opts *const o = b->in->options;
    const frgi_split *s = b->in->pool ? b->in->pool->split : NULL;
    frgi_split own = {0};
    if (!o->split_value) { /* all rows */
        return FRG_OK;
    }
    if (!s) {
        TRY(frgi_split_create(&own, b->ctx, o->split, b->in->table));
        s = &own;
    }
    frg_status status;
    TRY_TO(done, need_mask(b));
    const int32_t code = frgi_names_find(&s->levels.text, o->split_value, strlen(o->split_value));
    if (code < 0) {
        status = frgi_fail(b->ctx, E_OPTION, __FILE__, __LINE__,
                           "split_value: '%s' is no level of '%s'", o->split_value, o->split);
        goto done;
    }
    for (int64_t i = 0; i < b->f->n_rows; i++) {
        if (b->mask[i] == KEEP && s->codes[i] != code) {
            b->mask[i] = SUBSET;
        }
    }
done:
    frgi_split_destroy(&own, b->ctx);
    return status;
}

/** Refuses bad weights of rows still in use and marks zeros. */
static frg_status exclude_weights(framer *b)
{
    const bool whole = b->in->options->weights_kind == FRG_WEIGHTS_FREQUENCY;
    double w[FRGI_BLOCK];
    for (int64_t begin = 0; begin < b->f->n_rows; begin += FRGI_BLOCK) {
        const int64_t left = b->f->n_rows - begin, m = left < FRGI_BLOCK ? left : FRGI_BLOCK;
        frgi_column_block(b->weights, NULL, begin, m, w);
        for (ptrdiff_t i = 0; i < m; i++) {
            if (w[i] > 0 && !isinf(w[i]) && (!whole || (w[i] == rint(w[i]) && w[i] <= MOST))) {
                continue;
            }
            if (b->mask && b->mask[begin + i] != KEEP) {
                continue;
            }
            const long long row = begin + i + 1;
            if (w[i] != 0) {
                frgi_at(b->ctx, "%s:%lld", b->weights->name, row);
                FAIL(b->ctx, E_WEIGHT, "weights column '%s', row %lld: %.15g %s", b->weights->name,
                     row, w[i],
                     w[i] < 0      ? "is negative"
                     : isinf(w[i]) ? "is infinite"
                     : w[i] > MOST ? "is above 2^53: such rows are not counted"
                                   : "is no whole number, which a frequency weight must be");
            }
            TRY(need_mask(b));
            b->mask[begin + i] = ZERO_WEIGHT;
        }
    }
    return FRG_OK;
}

/** Marks the rows that sunab() compares with none. */
static frg_status exclude_uncompared(framer *b)
{
    for (int32_t id = 0; id < b->in->formula->names.count; id++) {
        const frgi_variable *const v = &b->in->variables[id];
        if (v->kind == VARIABLE_COHORTS) {
            const bool quiet = is_said(b, W_ALWAYS_TREATED) || is_said(b, W_LAST_TREATED);
            TRY(need_mask(b));
            TRY(frgi_cohorts_exclude(b->ctx, &b->in->formula->syntax, v, b->mask, b->f->n_rows,
                                     UNCOMPARED, quiet));
        }
    }
    return FRG_OK;
}

/* ---- the list of rows ------------------------------------------------------------------------ */

static frg_status no_rows(const framer *b)
{
    const frgi_frame *const f = b->f;
    char apart[192] = "";
    if (f->n_rows == 0) {
        FAIL(b->ctx, E_NO_OBS, "the data have columns, but no rows");
    }
    if (f->n_disconnected) {
        const frg_fe_connected sets = b->in->options->connected;
        snprintf(apart, sizeof apart, ", %lld are outside the largest %s",
                 (long long)f->n_disconnected,
                 sets == FRG_CONNECTED_MATCH         ? "set that is connected without any one match"
                 : sets == FRG_CONNECTED_OBSERVATION ? "set that is connected without any one row"
                                                     : "connected set");
    }
    if (f->n_uncompared) {
        const size_t used = strlen(apart);
        snprintf(apart + used, sizeof apart - used, ", %lld are compared with no untreated ones",
                 (long long)f->n_uncompared);
    }
    if (f->n_separated) {
        const size_t used = strlen(apart);
        snprintf(apart + used, sizeof apart - used, ", %lld are predicted perfectly",
                 (long long)f->n_separated);
    }
    FAIL(b->ctx, E_NO_OBS,
         "none of the %lld rows is left: %lld have missing values, %lld are outside the subset, "
         "%lld have "
         "zero weight, %lld were singletons, dropped in %lld round%s%s",
         (long long)f->n_rows, (long long)f->n_missing, (long long)f->n_subset,
         (long long)f->n_zero_weight, (long long)f->n_singleton, (long long)f->singleton_rounds,
         f->singleton_rounds == 1 ? "" : "s", apart);
}

static frg_status list_rows(framer *b)
{
    frgi_frame *const f = b->f;
    int64_t counts[REASONS] = {0};
    for (int64_t i = 0; i < f->n_rows; i++) {
        counts[b->mask ? b->mask[i] : KEEP]++;
    }
    f->n_missing = counts[MISSING];
    f->n_subset = counts[SUBSET];
    f->n_zero_weight = counts[ZERO_WEIGHT];
    f->n_uncompared = counts[UNCOMPARED];
    f->n = counts[KEEP];
    if (f->n == 0) {
        return no_rows(b);
    }
    if (f->n == f->n_rows) {
        return FRG_OK;
    }
    TRY(NEW(b->ctx, &f->rows, f->n, "the list of rows"));
    for (int64_t i = 0, k = 0; i < f->n_rows; i++) {
        if (b->mask[i] == KEEP) {
            f->rows[k++] = i;
        }
    }
    return FRG_OK;
}

static bool has_frequencies(const framer *b)
{
    return b->f->weights && b->in->options->weights_kind == FRG_WEIGHTS_FREQUENCY;
}

/** Brought near 1, but for frequencies, which are counts. */
static frg_status gather_weights(framer *b)
{
    frgi_frame *const f = b->f;
    f->weight_root = 1;
    if (!b->weights) {
        return FRG_OK;
    }
    TRY(NEW(b->ctx, &f->weights, f->n, "weights"));
    frgi_column_block(b->weights, f->rows, 0, f->n, f->weights);
    const frgi_weight_range range = frgi_weights_study(f->weights, 1, f->n);
    if (frgi_weights_apart(&range)) {
        const long long least = (f->rows ? f->rows[range.least_at] : range.least_at) + 1,
                        largest = (f->rows ? f->rows[range.largest_at] : range.largest_at) + 1;
        frgi_at(b->ctx, "%s:%lld", b->weights->name, least);
        FAIL(b->ctx, E_WEIGHT, "weights column '%s', row %lld: %g vanishes beside %g in row %lld",
             b->weights->name, least, range.least, range.largest, largest);
    }
    if (!has_frequencies(b)) {
        f->weight_root = frgi_weights_root(&range);
        f->weight_exponent = frgi_weights_exponent(&range);
        const double scale = ldexp(1, -f->weight_exponent);
        for (int64_t i = 0; i < f->n; i++) {
            f->weights[i] *= scale;
        }
    }
    return FRG_OK;
}

/** Of the codes of `count` keys those of the rows that stay, key behind key, and dense. */
static frg_status remove_codes(frg_context *ctx, int32_t *codes, int64_t levels[], int count,
                               int64_t n, int64_t kept, const unsigned char *gone)
{
    int32_t *to = codes;
    for (int q = 0; q < count; q++) {
        const int32_t *const from = codes + q * n;
        for (int64_t i = 0; i < n; i++) {
            if (!gone[i]) {
                *to++ = from[i];
            }
        }
    }
    for (int q = 0; q < count; q++) {
        TRY(frgi_keys_compact(ctx, kept, codes + q * kept, &levels[q]));
    }
    return FRG_OK;
}

/** Removes `count` rows that are gone from the list, the weights and the codes. */
static frg_status remove_rows(framer *b, const unsigned char *gone, int64_t count)
{
    frgi_frame *const f = b->f;
    const int64_t n = f->n;
    f->n -= count;
    if (f->n == 0) {
        return no_rows(b);
    }
    if (!f->rows) {
        TRY(NEW(b->ctx, &f->rows, n, "the list of rows"));
        for (int64_t i = 0; i < n; i++) {
            f->rows[i] = i;
        }
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!gone[i]) {
            f->rows[kept] = f->rows[i];
            if (f->weights) {
                f->weights[kept] = f->weights[i];
            }
            kept++;
        }
    }
    TRY(remove_codes(b->ctx, f->codes, f->levels, f->n_effects, n, f->n, gone));
    f->later.rows = kept;
    return f->later.codes
               ? remove_codes(b->ctx, f->later.codes, f->later.levels, f->later.n, n, f->n, gone)
               : FRG_OK;
}

/* ---- singletons ------------------------------------------------------------------------------ */

/** One level during the pruning. */
typedef struct {
    int64_t count; /* rows left */
    int64_t sum;   /* exclusive or of their numbers */
} level_state;

typedef struct {
    framer *b;
    int64_t start[FRGI_EFFECTS]; /* of an effect's levels; -1: slopes alone, no singletons */
    level_state *levels;
    int64_t *queue; /* levels with one row; each enters once */
    int64_t queued;
    unsigned char *gone;
} pruning;

/** Does a single row of this weight make a singleton?  A frequency weight of 2 stands for two
 *  rows. */
static bool is_single(const framer *b, int64_t i)
{
    return !(has_frequencies(b) && b->f->weights[i] > 1);
}

/** Rows of one level that follow each other are counted in registers. */
static void count_rows(pruning *c)
{
    const frgi_frame *const f = c->b->f;
#pragma omp parallel for schedule(dynamic, 1) num_threads(frgi_pass_threads(c->b->ctx, f->n))
    for (int q = 0; q < f->n_effects; q++) {
        const int32_t *const codes = f->codes + q * f->n;
        level_state *const levels = c->levels + c->start[q];
        for (int64_t i = 0; i < f->n && c->start[q] >= 0;) {
            const int32_t code = codes[i];
            level_state now = levels[code];
            for (; i < f->n && codes[i] == code; i++) {
                now.count++;
                now.sum ^= i;
            }
            levels[code] = now;
        }
    }
}

/** Takes row i out of all its levels; those left with one row enter the queue. */
static void drop_row(pruning *c, int64_t i)
{
    const frgi_frame *const f = c->b->f;
    c->gone[i] = 1;
    c->b->f->n_singleton++;
    for (int q = 0; q < f->n_effects; q++) {
        if (c->start[q] < 0) {
            continue;
        }
        const int64_t l = c->start[q] + f->codes[q * f->n + i];
        c->levels[l].count--;
        c->levels[l].sum ^= i;
        if (c->levels[l].count == 1) {
            c->queue[c->queued++] = l;
        }
    }
}

/** Empties the queue, generation by generation. */
static void prune(pruning *c)
{
    int64_t begin = 0;
    while (begin < c->queued) {
        const int64_t end = c->queued, before = c->b->f->n_singleton;
        for (; begin < end; begin++) {
            const level_state l = c->levels[c->queue[begin]];
            if (l.count == 1 && is_single(c->b, l.sum)) {
                drop_row(c, l.sum);
            }
        }
        c->b->f->singleton_rounds += c->b->f->n_singleton > before;
    }
}

static frg_status drop_singletons(framer *b)
{
    frgi_frame *const f = b->f;
    pruning c = {.b = b};
    int64_t total = 0, singles = 0;
    frg_status status;
    for (int q = 0; q < f->n_effects; q++) {
        c.start[q] = b->in->formula->effects[q].intercept ? total : -1;
        total += c.start[q] < 0 ? 0 : f->levels[q];
    }
    TRY_TO(done, NEW0(b->ctx, &c.levels, total, "the levels' counts"));
    count_rows(&c);
    for (int64_t l = 0; l < total; l++) {
        singles += c.levels[l].count == 1;
    }
    if (singles) {
        TRY_TO(done, NEW(b->ctx, &c.queue, total, "singletons"));
        TRY_TO(done, NEW0(b->ctx, &c.gone, f->n, "singletons"));
        for (int64_t l = 0; l < total; l++) {
            if (c.levels[l].count == 1) {
                c.queue[c.queued++] = l;
            }
        }
        const int64_t before = f->n_singleton;
        prune(&c);
        if (f->n_singleton > before) {
            TRY_TO(done, remove_rows(b, c.gone, f->n_singleton - before));
        }
    }
    status = FRG_OK;
done:
    DROP(b->ctx, &c.levels);
    DROP(b->ctx, &c.queue);
    DROP(b->ctx, &c.gone);
    return status;
}

/* ---- the largest connected set --------------------------------------------------------------- */

/** The connected set of each row, or that which stays connected whatever is left out. */
static frg_status number_rows(const framer *b, int32_t *group, int32_t *groups)
{
    const frg_fe_connected sets = b->in->options->connected;
    const double *const counts = has_frequencies(b) ? b->f->weights : NULL;
    if (sets == FRG_CONNECTED_LARGEST) {
        return frgi_connected_rows(group, groups, b->ctx, b->f, b->in->formula, counts);
    }
    return frgi_leave_out_rows(group, groups, b->ctx, b->f, b->in->formula, counts,
                               sets == FRG_CONNECTED_OBSERVATION);
}

/** Drops the rows of all sets but the largest. */
static frg_status drop_disconnected(framer *b)
{
    frgi_frame *const f = b->f;
    int32_t *group = NULL, groups = 0;
    unsigned char *gone = NULL;
    int64_t count = 0;
    frg_status status;
    TRY_TO(done, NEW(b->ctx, &group, f->n, "connected sets"));
    TRY_TO(done, NEW(b->ctx, &gone, f->n, "connected sets"));
    TRY_TO(done, number_rows(b, group, &groups));
    f->n_groups = f->n_groups ? f->n_groups : groups;
    for (int64_t i = 0; i < f->n; i++) {
        gone[i] = group[i] != 1;
        count += gone[i];
    }
    f->n_disconnected += count;
    if (count) {
        TRY_TO(done, remove_rows(b, gone, count));
    }
done:
    DROP(b->ctx, &group);
    DROP(b->ctx, &gone);
    return status;
}

/** Keeps the numbers of the rows that are gone, ascending, and drops them. */
static frg_status separate(framer *b, const unsigned char *gone, int64_t count)
{
    frgi_frame *const f = b->f;
    const int64_t n = f->n_separated;
    TRY(GROW(b->ctx, &f->separated, n + count, "separated rows"));
    int64_t *const rows = f->separated;
    int64_t to = n + count;
    for (int64_t i = f->n - 1, old = n - 1; to > 0;) { /* merged from the end */
        while (i >= 0 && !gone[i]) {
            i--;
        }
        const int64_t row = i < 0 ? -1 : f->rows ? f->rows[i] : i;
        const bool take = row >= 0 && (old < 0 || row > rows[old]);
        rows[--to] = take ? row : rows[old];
        i -= take;
        old -= !take;
    }
    f->n_separated += count;
    return remove_rows(b, gone, count);
}

static frg_status drop_separated(framer *b)
{
    unsigned char *gone;
    int64_t count = 0;
    if (!b->in->family) {
        return FRG_OK;
    }
    TRY(NEW0(b->ctx, &gone, b->f->n, "separated rows"));
    frg_status status = frgi_separated_levels(b->ctx, b->f, b->in, gone, &count);
    if (status >= 0 && count > 0) {
        status = separate(b, gone, count);
    }
    DROP(b->ctx, &gone);
    return status;
}

/** Until all rules hold: without a singleton of a third effect two sets may fall apart, and without
 *  the small sets there may be new singletons, and levels whose other outcomes are gone. */
static frg_status drop_by_effects(framer *b)
{
    const bool singletons = !b->in->options->keep_singletons,
               connected = b->in->options->connected != FRG_CONNECTED_ALL;
    int64_t n;
    do {
        n = b->f->n;
        TRY(drop_separated(b));
        if (singletons) {
            TRY(drop_singletons(b));
        }
        if (connected) {
            TRY(drop_disconnected(b));
        }
    } while (((connected && singletons) || b->in->family) && b->f->n < n);
    return FRG_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static frg_status find_inputs(framer *b)
{
    const frgi_frame_input *const in = b->in;
    const frgi_formula *const formula = in->formula;
    b->f->n_effects = formula->n_effects;
    for (int q = 0; q < formula->n_effects; q++) {
        const frgi_key_spec *const spec = &formula->effects[q].key;
        const char *const name = frgi_names_text(&formula->names, spec->name);
        TRY(frgi_key_find(&b->f->keys[q], b->ctx, &formula->syntax, spec, name, in->table));
        frgi_key_list_without(&b->f->later, &b->f->keys[q]);
    }
    if (in->options->weights) {
        TRY(frgi_column_named(&b->weights, b->ctx, in->options->weights, "weights", in->table));
        if (b->weights->kind == FRG_CATEGORY) {
            TRY(frgi_refuse_mistyped(b->ctx, NULL, 0, b->weights));
            FAIL(b->ctx, E_TYPE, "weights: column '%s' holds text", b->weights->name);
        }
    }
    return FRG_OK;
}

/** The levels of the effects, and the rows without those that are left out by them: from the file
 *  that keeps them, or made, and put there, with what else the fit will number. */
static frg_status number_effects(framer *b)
{
    frgi_frame *const f = b->f;
    const frg_column_store *const store = b->in->options->store;
    const frg_layout_files *const files = store ? store->layout : NULL;
    const bool keeps = files && files->codes;
    const int64_t before = f->n;
    bool read = false;
    TRY(keeps ? frgi_frame_load(f, b->ctx, b->in, files, &read) : FRG_OK);
    if (read) {
        frgi_log(b->ctx, 1, "the levels of the effects are those of '%s'", files->codes);
        return FRG_OK;
    }
    const int64_t numbers = f->n_effects * f->n; /* a plan may read some behind the last */
    TRY(NEW(b->ctx, &f->codes, numbers + FE_ROWS_AHEAD, "codes of the effects"));
    memset(f->codes + numbers, 0, FE_ROWS_AHEAD * sizeof *f->codes);
    TRY(frgi_key_codes(b->ctx, f->keys, f->n_effects, f->rows, f->n, f->codes, f->levels));
    TRY(drop_by_effects(b));
    if (keeps) {
        TRY(frgi_key_list_number(&f->later, b->ctx, f->rows, f->n));
        frgi_log(b->ctx, 1, "the levels of the effects are numbered");
        return frgi_frame_save(f, b->ctx, b->in, files, before);
    }
    return FRG_OK;
}

static frg_status encode_effects(framer *b)
{
    frgi_frame *const f = b->f;
    if (f->n_effects == 0) {
        TRY(drop_separated(b));
        return b->in->options->connected != FRG_CONNECTED_ALL ? drop_disconnected(b) : FRG_OK;
    }
    TRY(number_effects(b));
    for (int q = 0; q < f->n_effects; q++) {
        if (f->levels[q] == 1) {
            frgi_warn(b->ctx, W_ONE_LEVEL, "the effect '%s' has one level", f->keys[q].name);
        }
    }
    return FRG_OK;
}

frg_status frgi_frame_slope(frg_context *ctx, const frgi_frame *f, const frgi_frame_input *in,
                            int k, double *z)
{
    const frgi_formula *const formula = in->formula;
    double *scratch = NULL;
    frgi_program p;
    TRY(frgi_program_create(&p, ctx, &formula->syntax, formula->slopes[k].node, in->table));
    const frg_status status = NEW(ctx, &scratch, ((int64_t)p.stack + 1) * FRGI_BLOCK, "slopes");
    for (int64_t i = 0; i < f->n && status >= 0; i += FRGI_BLOCK) {
        frgi_program_block(&p, f->rows, i, f->n - i < FRGI_BLOCK ? f->n - i : FRGI_BLOCK, z + i,
                           scratch);
    }
    DROP(ctx, &scratch);
    frgi_program_destroy(&p, ctx);
    TRY(status);
    for (int64_t i = 0; i < f->n; i++) {
        if (!isfinite(z[i])) {
            FAIL(ctx, E_NOT_FINITE, "slope '%s', row %lld: the value is infinite",
                 frgi_names_text(&formula->names, formula->slopes[k].name),
                 (long long)(f->rows ? f->rows[i] : i) + 1);
        }
    }
    return FRG_OK;
}

static frg_status evaluate_slopes(framer *b)
{
    frgi_frame *const f = b->f;
    const int n_slopes = b->in->formula->n_slopes;
    if (n_slopes == 0) {
        return FRG_OK;
    }
    TRY(NEW(b->ctx, &f->slopes, n_slopes * f->n, "slopes"));
    for (int k = 0; k < n_slopes; k++) {
        TRY(frgi_frame_slope(b->ctx, f, b->in, k, f->slopes + k * f->n));
    }
    return FRG_OK;
}

/** Refuses a regressor of whole numbers above 2^53 that vary by little beside what a double rounds
 *  them by. */
static frg_status check_integers(const framer *b, const frg_column *c)
{
    const frgi_frame *const f = b->f;
    int64_t least = INT64_MAX, greatest = -INT64_MAX, at = 0;
    for (int64_t i = 0; c && c->kind == FRG_INTEGER && i < f->n; i++) {
        const int64_t row = f->rows ? f->rows[i] : i, v = c->integers[row];
        at = v > greatest ? row : at;
        least = v < least ? v : least;
        greatest = v > greatest ? v : greatest;
    }
    const double largest = fmax(fabs((double)least), fabs((double)greatest));
    const double apart = (double)((uint64_t)greatest - (uint64_t)least);
    if (!(least < greatest) || largest <= MOST ||
        ldexp(1, ilogb(largest) - 53) <= ROUNDED * apart) {
        return FRG_OK;
    }
    frgi_at(b->ctx, "%s:%lld", c->name, (long long)at + 1);
    FAIL(b->ctx, E_TYPE,
         "column '%s', row %lld: %lld is above 2^53, where doubles round whole numbers, and the "
         "column varies by %g alone; subtract a constant from it before",
         c->name, (long long)at + 1, (long long)greatest, apart);
}

static frg_status check_program(const framer *b, const frgi_program *p)
{
    TRY(check_integers(b, p->n_steps == 0 ? p->column : NULL));
    for (int32_t k = 0; k < p->n_steps; k++) {
        TRY(check_integers(b, p->steps[k].kind == NODE_NAME ? p->steps[k].column : NULL));
    }
    return FRG_OK;
}

static frg_status check_regressors(const framer *b)
{
    TRY(check_program(b, b->in->depvar));
    for (int32_t id = 0; id < b->in->formula->names.count; id++) {
        const frgi_variable *const v = &b->in->variables[id];
        TRY(v->has_number ? check_program(b, &v->number) : FRG_OK);
    }
    return FRG_OK;
}

/** What is known once no row is dropped any more. */
static frg_status finish(framer *b)
{
    frgi_frame *const f = b->f;
    TRY(evaluate_slopes(b));
    f->count = (double)f->n;
    if (has_frequencies(b)) {
        f->count = 0;
        for (int64_t i = 0; i < f->n; i++) {
            f->count += f->weights[i];
        }
    }
    return FRG_OK;
}

static frg_status exclude_rows(framer *b)
{
    TRY(find_inputs(b));
    TRY(exclude_missing_slopes(b));
    TRY(exclude_all_missing(b));
    if (b->in->options->subset) {
        TRY(exclude_subset(b));
    }
    if (b->in->options->split) {
        TRY(exclude_split(b));
    }
    TRY(b->weights ? exclude_weights(b) : FRG_OK);
    return exclude_uncompared(b);
}

static frg_status build(framer *b)
{
    TRY(list_rows(b));
    TRY(check_regressors(b));
    TRY(gather_weights(b));
    TRY(encode_effects(b));
    return finish(b);
}

frg_status frgi_frame_separate(frgi_frame *f, frg_context *ctx, const frgi_frame_input *in,
                               const unsigned char *gone, int64_t count)
{
    framer b = {.ctx = ctx, .in = in, .f = f};
    DROP(ctx, &f->slopes);
    TRY(separate(&b, gone, count));
    TRY(f->n_effects ? drop_by_effects(&b) : FRG_OK);
    return finish(&b);
}

/** The memory of a sample in the pool, with the names of this formula. */
static void borrow(frgi_frame *f, frgi_sample *s)
{
    frgi_frame other = *s->frame;
    memcpy(other.keys, f->keys, sizeof other.keys);
    other.sample = s;
    s->users++;
    *f = other;
}

/** As build, or a sample of the pool with the same rows and effects; a new one goes there. */
static frg_status build_shared(framer *b)
{
    frgi_text effects = {0};
    frg_status status;
    if (b->mask && count_marked(b, KEEP) == b->f->n_rows) {
        DROP(b->ctx, &b->mask);
    }
    TRY_TO(done, frgi_pool_effects(&effects, b->ctx, b->in->formula));
    frgi_sample *const found = frgi_pool_find(b->in->pool, b->mask, b->f->n_rows, effects.text);
    if (found) {
        borrow(b->f, found);
        status = check_regressors(b);
        goto done;
    }
    TRY_TO(done, build(b));
    status = frgi_pool_add(b->in->pool, b->ctx, &b->mask, &effects, b->f);
done:
    frgi_text_free(b->ctx, &effects);
    return status;
}

frg_status frgi_frame_create(frgi_frame *f, frg_context *ctx, const frgi_frame_input *in)
{
    *f = (frgi_frame){.n_rows = frg_table_rows(in->table)};
    framer b = {.ctx = ctx, .in = in, .f = f};
    if (in->later) {
        f->later = *in->later;
        *in->later = (frgi_key_list){.n = 0};
    }
    frg_status status = exclude_rows(&b);
    if (status >= 0) {
        status = in->pool ? build_shared(&b) : build(&b);
    }
    DROP(ctx, &b.mask);
    if (status < 0) {
        frgi_frame_destroy(f, ctx);
    }
    return status;
}

void frgi_frame_destroy(frgi_frame *f, frg_context *ctx)
{
    if (f->sample) {
        frgi_sample_release(f->sample);
        *f = (frgi_frame){0};
        return;
    }
    DROP(ctx, &f->separated);
    DROP(ctx, &f->rows);
    DROP(ctx, &f->weights);
    DROP(ctx, &f->codes);
    DROP(ctx, &f->slopes);
    frgi_key_list_destroy(&f->later, ctx);
}
