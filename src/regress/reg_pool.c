/* reg_pool.c - rows, plans and demeaned columns shared by the models of one call.
 *
 * Two models have one sample where the same rows are left out for the same reasons and the effects
 * are the same: weights and options are those of the call.  Everything that follows (codes,
 * singletons, slopes, the graph and its solver) is then the same, too.  A column of the sample is
 * known by what it is made of, not by its values: the names of its terms, their functions, and the
 * codes of levels, which depend on the rows alone.  It is filled and demeaned once; its bits do not
 * depend on the columns beside it, so that the model has those of a fit by itself.
 */
#include "regress/reg_pool.h"

#include <string.h>

#include "fe/fe_demean.h"
#include "formula/keys.h"
#include "fourge/checkpoint.h" /* frg_hash */
#include "regress/regress.h"

/* ---- levels to split by ---------------------------------------------------------------------- */

static bool is_missing(const frg_column *c, int64_t i)
{
    return c->numbers    ? c->numbers[i] != c->numbers[i]
           : c->integers ? c->integers[i] == FRG_MISSING_INTEGER
                         : c->codes[i] < 0;
}

static frg_status encode_split(frgi_split *s, frg_context *ctx, int64_t *rows, int32_t *codes)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->column->n; i++) {
        s->codes[i] = -1;
        rows[n] = i;
        n += !is_missing(s->column, i);
    }
    frgi_key_job job = {.column = s->column, .codes = codes};
    TRY(frgi_keys_encode(ctx, &job, 1, rows, n));
    for (int64_t k = 0; k < n; k++) {
        s->codes[rows[k]] = codes[k];
    }
    return frgi_levels_create(&s->levels, ctx, s->column, rows, n, codes, job.n_levels);
}

frg_status frgi_split_create(frgi_split *s, frg_context *ctx, const char *name,
                             const frg_table *table)
{
    *s = (frgi_split){0};
    TRY(frgi_column_named(&s->column, ctx, name, "split", table));
    const int64_t n = s->column->n;
    int64_t *rows = NULL;
    int32_t *codes = NULL;
    frg_status status;
    TRY_TO(done, NEW(ctx, &s->codes, n, "codes of a split"));
    TRY_TO(done, NEW(ctx, &rows, n + 1, "codes of a split"));
    TRY_TO(done, NEW(ctx, &codes, n, "codes of a split"));
    status = encode_split(s, ctx, rows, codes);
done:
    DROP(ctx, &rows);
    DROP(ctx, &codes);
    if (status < 0) {
        frgi_split_destroy(s, ctx);
    }
    return status;
}

void frgi_split_destroy(frgi_split *s, frg_context *ctx)
{
    DROP(ctx, &s->codes);
    frgi_levels_destroy(&s->levels, ctx);
}

/* ---- samples --------------------------------------------------------------------------------- */

/** The text of a node with its kind: a column named "log(x)" is not the call. */
static frg_status put_node(frgi_text *out, frg_context *ctx, const frgi_syntax *s, int32_t node)
{
    frgi_text text = {0};
    frg_status status = frgi_syntax_text(s, ctx, node, &text);
    if (status >= 0) {
        status = frgi_text_printf(ctx, out, "%d.%zu:%s;", (int)s->nodes[node].kind, text.length,
                                  text.text ? text.text : "");
    }
    frgi_text_free(ctx, &text);
    return status;
}

frg_status frgi_pool_effects(frgi_text *out, frg_context *ctx, const frgi_formula *formula)
{
    TRY(frgi_text_append(ctx, out, "", 0));
    for (int q = 0; q < formula->n_effects; q++) {
        const frgi_effect *const e = &formula->effects[q];
        TRY(frgi_text_printf(ctx, out, "%s|", e->intercept ? "f" : "s"));
        for (int i = 0; i < e->key.n; i++) {
            TRY(put_node(out, ctx, &formula->syntax, e->key.node[i]));
        }
    }
    for (int k = 0; k < formula->n_slopes; k++) {
        TRY(frgi_text_printf(ctx, out, "z%d|", (int)formula->slopes[k].effect));
        TRY(put_node(out, ctx, &formula->syntax, formula->slopes[k].node));
    }
    return FRG_OK;
}

frgi_sample *frgi_pool_find(const frgi_pool *pool, const unsigned char *mask, int64_t n_rows,
                            const char *effects)
{
    for (frgi_sample *s = pool->first; s; s = s->next) {
        const bool rows =
            !mask == !s->mask && (!mask || memcmp(mask, s->mask, (size_t)n_rows) == 0);
        if (rows && strcmp(effects, s->effects.text) == 0) {
            return s;
        }
    }
    return NULL;
}

frg_status frgi_pool_add(frgi_pool *pool, frg_context *ctx, unsigned char **mask,
                         frgi_text *effects, frgi_frame *frame)
{
    frgi_sample *s;
    frgi_frame *own;
    TRY(NEW0(ctx, &s, 1, "a sample"));
    const frg_status status = NEW(ctx, &own, 1, "a sample");
    if (status < 0) {
        DROP(ctx, &s);
        return status;
    }
    *own = *frame;
    *s = (frgi_sample){.ctx = ctx,
                       .users = 2,
                       .next = pool->first,
                       .mask = *mask,
                       .n_rows = frame->n_rows,
                       .effects = *effects,
                       .frame = own};
    *mask = NULL;
    *effects = (frgi_text){0};
    frame->sample = s;
    pool->first = s;
    return FRG_OK;
}

/** Forgets the columns that a model that failed has left without values. */
static void forget_unsettled(frgi_sample *s)
{
    while (s->n_columns > s->n_ready) {
        DROP(s->ctx, &s->columns[--s->n_columns].key);
    }
    DROP(s->ctx, &s->pending);
}

void frgi_sample_release(frgi_sample *s)
{
    if (--s->users > 0) {
        return;
    }
    frg_context *ctx = s->ctx;
    for (int c = 0; c < s->n_columns; c++) {
        DROP(ctx, &s->columns[c].key);
    }
    DROP(ctx, &s->pending);
    for (int b = 0; b < s->n_blocks; b++) {
        DROP(ctx, &s->blocks[b]);
    }
    frg_demean_destroy(s->plan);
    frgi_frame_destroy(s->frame, ctx);
    frgi_text_free(ctx, &s->effects);
    DROP(ctx, &s->frame);
    DROP(ctx, &s->mask);
    DROP(ctx, &s->columns);
    DROP(ctx, &s->blocks);
    DROP(ctx, &s);
}

void frgi_pool_close(frgi_pool *pool)
{
    while (pool->first) {
        frgi_sample *const s = pool->first;
        pool->first = s->next;
        frg_demean_destroy(s->plan);
        s->plan = NULL;
        DROP(s->ctx, &s->mask);
        frgi_sample_release(s);
    }
}

/* ---- columns --------------------------------------------------------------------------------- */

static frg_status put_column(frgi_text *out, frg_context *ctx, const frg_column *c)
{
    return frgi_text_printf(ctx, out, "c%zu:%s;", strlen(c->name), c->name);
}

/** What column c of f's matrix is. */
static frg_status put_key(const frg_fe *f, int c, frgi_text *out)
{
    const frgi_fe_data *const d = &f->data;
    frg_context *const ctx = f->ctx;
    out->length = 0;
    TRY(frgi_text_printf(ctx, out, "%s", d->centred ? "centred " : "as is "));
    if (c == 0) {
        return d->depvar.column ? put_column(out, ctx, d->depvar.column)
                                : put_node(out, ctx, &d->formula.syntax, d->formula.syntax.left);
    }
    if (d->ones && c == 1) {
        return frgi_text_append(ctx, out, "1", 1);
    }
    const frgi_design_column *const column = &d->design.columns[c - 1 - d->ones];
    for (int32_t k = 0; k < column->n_multiplicands; k++) {
        const frgi_multiplicand m = d->design.multiplicands[column->first_multiplicand + k];
        const frgi_variable *const v = &d->variables[m.variable];
        if (m.level >= 0) {
            TRY(frgi_text_printf(ctx, out, "level %d of ", (int)m.level));
            TRY(m.which == FRGI_WHICH_CELL ? put_node(out, ctx, &d->formula.syntax, v->node)
                                           : put_column(out, ctx, v->factor[m.which]));
        } else {
            TRY(frgi_text_append(ctx, out, "not ", m.level == FRGI_MULTIPLICAND_FALSE ? 4 : 0));
            TRY(v->number.column ? put_column(out, ctx, v->number.column)
                                 : put_node(out, ctx, &d->formula.syntax, v->node));
        }
    }
    return FRG_OK;
}

static frg_status add_column(frgi_sample *s, const frgi_text *key, uint64_t hash)
{
    if (s->n_columns == s->capacity) {
        const int capacity = s->capacity ? 2 * s->capacity : 16;
        TRY(GROW(s->ctx, &s->columns, capacity, "shared columns"));
        s->capacity = capacity;
    }
    frgi_shared_column one = {.hash = hash};
    TRY(frgi_strdup(s->ctx, &one.key, key->text, key->length));
    s->columns[s->n_columns++] = one;
    return FRG_OK;
}

/** The place of a column in the sample, where it is added if it is not there. */
static frg_status place_column(frgi_sample *s, const frgi_text *key, int32_t *place)
{
    const uint64_t hash = frg_hash(0, key->text, (int64_t)key->length);
    for (*place = 0; *place < s->n_columns; ++*place) {
        const frgi_shared_column *const c = &s->columns[*place];
        if (c->hash == hash && strcmp(c->key, key->text) == 0) {
            return FRG_OK;
        }
    }
    return add_column(s, key, hash);
}

/** Memory of the columns that were added. */
static frg_status add_block(frgi_sample *s)
{
    const int64_t n = s->frame->n;
    TRY(GROW(s->ctx, &s->blocks, s->n_blocks + 1, "shared columns")); /* for frgi_sample_finish */
    TRY(NEW(s->ctx, &s->pending, frgi_mul((size_t)(s->n_columns - s->n_ready), (size_t)n),
            "the model matrix"));
    for (int c = s->n_ready; c < s->n_columns; c++) {
        s->columns[c].values = s->pending + (c - s->n_ready) * n;
    }
    return FRG_OK;
}

frg_status frgi_sample_columns(frg_fe *f)
{
    frgi_sample *const s = f->data.frame.sample;
    frgi_text key = {0};
    frg_status status;
    forget_unsettled(s);
    TRY_TO(done, NEW(f->ctx, &f->matrix.shared, f->data.p + 1, "the model matrix"));
    for (int c = 0; c <= f->data.p; c++) {
        TRY_TO(done, put_key(f, c, &key));
        TRY_TO(done, place_column(s, &key, &f->matrix.shared[c]));
        s->columns[f->matrix.shared[c]].ones = f->data.ones && c == 1;
    }
    if (s->n_columns > s->n_ready) {
        TRY_TO(done, add_block(s));
    }
    for (int c = 0; c <= f->data.p; c++) {
        f->matrix.columns[c] = s->columns[f->matrix.shared[c]].values;
    }
done:
    frgi_text_free(f->ctx, &key);
    return status;
}

bool frgi_sample_has(const frg_fe *f, int c)
{
    const frgi_sample *const s = f->data.frame.sample;
    return s && f->matrix.shared[c] < s->n_ready;
}

void frgi_sample_moments(frg_fe *f)
{
    const frgi_sample *const s = f->data.frame.sample;
    for (int c = 0; c <= f->data.p; c++) {
        frgi_moments *const kept = &s->columns[f->matrix.shared[c]].moments;
        if (frgi_sample_has(f, c)) {
            f->matrix.moments[c] = *kept;
        } else {
            *kept = f->matrix.moments[c];
        }
    }
}

void frgi_sample_centre(frgi_sample *s)
{
    const int64_t n = s->frame->n;
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(s->ctx, n))
    for (int c = s->n_ready; c < s->n_columns; c++) {
        double *const x = s->columns[c].values;
        const double mean = s->columns[c].ones ? 0 : s->columns[c].moments.mean;
        for (ptrdiff_t i = 0; i < n; i++) {
            x[i] -= mean;
        }
    }
}

void frgi_sample_finish(frgi_sample *s)
{
    if (s->pending) {
        s->blocks[s->n_blocks++] = s->pending;
        s->pending = NULL;
    }
    s->n_ready = s->n_columns;
}

static int severity(frg_status status)
{
    static const frg_status order[] = {FRG_OK, FRG_STALLED, FRG_MAX_ITER, FRG_TIME_LIMIT,
                                       FRG_INTERRUPTED};
    int i = 0;
    while (i < 4 && order[i] != status) {
        i++;
    }
    return i;
}

/** The new columns lie in one block. */
static frg_status demean_new(frgi_sample *s, frg_demean_column *reports, bool *stopped)
{
    const int64_t n = s->frame->n, m = s->n_columns - s->n_ready;
    const frg_array block = frg_matrix_columns(s->columns[s->n_ready].values, FRG_F64, n, m, n);
    const frg_status status = frgi_fe_demean_run(s->plan, block, block, reports, NULL);
    TRY(status);
    *stopped = status == FRG_INTERRUPTED || status == FRG_TIME_LIMIT;
    for (int64_t c = 0; c < m; c++) {
        s->columns[s->n_ready + c].report = reports[c];
    }
    frgi_sample_finish(s);
    return FRG_OK;
}

frg_status frgi_sample_demean(frg_fe *f, frg_status *worst, bool *stopped)
{
    frgi_sample *const s = f->data.frame.sample;
    const int64_t m = s->n_columns - s->n_ready;
    *stopped = false;
    if (!s->plan) {
        TRY(frgi_fe_plan(f, &s->plan));
    }
    if (m > 0) {
        frg_demean_column *reports;
        TRY(NEW0(f->ctx, &reports, m, "reports"));
        const frg_status status = demean_new(s, reports, stopped);
        DROP(f->ctx, &reports);
        TRY(status);
    }
    for (int c = 0; c <= f->data.p; c++) {
        const frg_demean_column *const r = &s->columns[f->matrix.shared[c]].report;
        f->matrix.reports[c] = *r;
        *worst = severity(r->status) > severity(*worst) ? r->status : *worst;
    }
    return FRG_OK;
}
