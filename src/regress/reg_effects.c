/* reg_effects.c - after the fit: residuals, fixed effects, predictions.
 *
 * The demeaner gives for every column c some alpha_c with c = D alpha_c + r_c.  As y~ = X~ b + e,
 * the effects of the regression are alpha_y - sum_j b_j alpha_xj.  They are not unique: in each
 * connected component of the levels a constant can move from one factor to another.  As in fixest
 * the first level (in order of appearance) of every factor but the first is set to 0 in each
 * component.  With two factors that makes them unique; with more, or with slopes, more can be free.
 * Then further levels are set to 0, in their order, one null vector at a time:
 *
 *     v random,  c = D v,  c = D alpha_c by the demeaner  =>  D (v - alpha_c) = 0
 *
 * Without the references that are set, v - alpha_c is 0 on what they determine and, v being random,
 * nowhere else: its first level that is not 0, the first effect's coming last, is the next
 * reference, as in fixest.  `identified` is 0 where MOST_FREE of them are not enough.
 */
#include <math.h>
#include <string.h>

#include "fe/fe_demean.h"
#include "formula/keys.h"
#include "regress/reg_effects.h"

enum { MOST_FREE = 64, DRAWS = 8, SEED = 1 };
static const double GONE = 1e-6; /* of a random vector: what a solve leaves where nothing is free */
static const double PLAIN = 0.02; /* a reference that is less of it is drawn again */

/* ---- residuals ------------------------------------------------------------------------------- */

frg_status frg_fe_residuals(const frg_fe *f, double *residuals, double *fitted)
{
    if (!f) {
        return FRG_BAD_ARG;
    }
    const frgi_frame *const frame = &f->data.frame;
    double y[FRGI_BLOCK], left[FRGI_BLOCK], *scratch;
    TRY(frgi_spool_check(f->ctx));
    TRY(NEW(f->ctx, &scratch, ((int64_t)f->data.depvar.stack + 1) * FRGI_BLOCK, "residuals"));
    for (int64_t i = 0; i < frame->n_rows; i++) {
        if (residuals) {
            residuals[i] = (double)NAN;
        }
        if (fitted) {
            fitted[i] = (double)NAN;
        }
    }
    const double *const mu = f->glm.mu;
    for (int64_t begin = 0; begin < frame->n; begin += FRGI_BLOCK) {
        const int64_t n = frame->n - begin < FRGI_BLOCK ? frame->n - begin : FRGI_BLOCK;
        frgi_program_block(&f->data.depvar, frame->rows, begin, n, y, scratch);
        frgi_fe_errors(f, begin, mu ? 0 : n, left);
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = frame->rows ? frame->rows[begin + i] : begin + i;
            const double e = mu ? y[i] - mu[begin + i] : left[i];
            if (residuals) {
                residuals[row] = e;
            }
            if (fitted) {
                fitted[row] = mu ? mu[begin + i] : y[i] - e;
            }
        }
    }
    DROP(f->ctx, &scratch);
    return FRG_OK;
}

/* ---- connected sets -------------------------------------------------------------------------- */

frg_status frg_fe_groups(const frg_fe *f, int32_t *group, int64_t *n_groups)
{
    if (!f) {
        return FRG_BAD_ARG;
    }
    const frgi_frame *const frame = &f->data.frame;
    REQUIRE(f->ctx, group, "frg_fe_groups takes a place for the groups");
    int32_t *of_row, count;
    TRY(NEW(f->ctx, &of_row, frame->n, "connected sets"));
    const bool frequencies = f->policy.options.weights_kind == FRG_WEIGHTS_FREQUENCY;
    const frg_status status = frgi_connected_rows(of_row, &count, f->ctx, frame, &f->data.formula,
                                                  frequencies ? frame->weights : NULL);
    if (status >= 0) {
        memset(group, 0, (size_t)frame->n_rows * sizeof *group);
        for (int64_t i = 0; i < frame->n; i++) {
            group[frame->rows ? frame->rows[i] : i] = of_row[i];
        }
        if (n_groups) {
            *n_groups = count;
        }
    }
    DROP(f->ctx, &of_row);
    return status;
}

/* ---- the effects as numbers ------------------------------------------------------------------ */

void frgi_effects_destroy(frgi_effects *a, frg_context *ctx)
{
    DROP(ctx, &a->slope);
    DROP(ctx, &a->value);
}

/** Factor after factor, its slopes behind its constants: the demeaner's order. */
static frg_status lay_out(frgi_effects *a, const frg_fe *f)
{
    const frgi_formula *const formula = &f->data.formula;
    TRY(NEW(f->ctx, &a->slope, formula->n_slopes, "effects"));
    for (int q = 0; q < f->data.frame.n_effects; q++) {
        a->constant[q] = formula->effects[q].intercept ? a->total : -1;
        a->total += formula->effects[q].intercept ? f->data.frame.levels[q] : 0;
        for (int s = 0; s < formula->n_slopes; s++) {
            if (formula->slopes[s].effect == q) {
                a->slope[s] = a->total;
                a->total += f->data.frame.levels[q];
            }
        }
    }
    return FRG_OK;
}

/** alpha_y - sum_j b_j alpha_xj */
static frg_status combine(frgi_effects *a, const frg_fe *f)
{
    double *alpha;
    TRY(NEW(f->ctx, &a->value, a->total, "effects"));
    TRY(frg_demean_effects(f->absorbed.plan, 0, a->value));
    TRY(NEW(f->ctx, &alpha, a->total, "effects"));
    frg_status status = FRG_OK;
    for (int j = 0; j < f->fit.k && status >= 0; j++) {
        status = frg_demean_effects(f->absorbed.plan, f->fit.column_of[j], alpha);
        for (int64_t l = 0; l < a->total && status >= 0; l++) {
            a->value[l] -= f->fit.b[j] * alpha[l];
        }
    }
    DROP(f->ctx, &alpha);
    return status;
}

static int64_t root_of(int64_t *parent, int64_t l)
{
    while (parent[l] != l) {
        parent[l] = parent[parent[l]];
        l = parent[l];
    }
    return l;
}

/** Joins the levels that meet in a row; the least level of a component becomes its root. */
static int64_t join_levels(const frgi_effects *a, const frg_fe *f, int64_t *parent)
{
    const int64_t n = f->data.frame.n;
    int64_t components = 0;
    for (int64_t l = 0; l < a->total; l++) {
        parent[l] = l;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t first = -1;
        for (int q = 0; q < f->data.frame.n_effects; q++) {
            if (a->constant[q] < 0) {
                continue;
            }
            const int64_t l = root_of(parent, a->constant[q] + f->data.frame.codes[q * n + i]);
            if (first >= 0 && first != l) {
                const int64_t low = first < l ? first : l;
                parent[first < l ? l : first] = low;
                first = low;
            } else {
                first = l;
            }
        }
    }
    for (int q = 0; q < f->data.frame.n_effects; q++) {
        for (int64_t l = 0; a->constant[q] >= 0 && l < f->data.frame.levels[q]; l++) {
            components += parent[a->constant[q] + l] == a->constant[q] + l;
        }
    }
    return components;
}

/** The reference of factor q in each component moves to the first factor with constants. */
static void move_reference(const frgi_effects *a, const frg_fe *f, int64_t *parent, double *shift,
                           int q, int first, double *value)
{
    for (int64_t l = 0; l < a->total; l++) {
        shift[l] = (double)NAN;
    }
    for (int64_t l = 0; l < f->data.frame.levels[q]; l++) {
        double *const s = &shift[root_of(parent, a->constant[q] + l)];
        *s = isnan(*s) ? value[a->constant[q] + l] : *s;
        value[a->constant[q] + l] -= *s;
    }
    for (int64_t l = 0; l < f->data.frame.levels[first]; l++) {
        value[a->constant[first] + l] += shift[root_of(parent, a->constant[first] + l)];
    }
}

/** What the normalisation of a vector of coefficients needs. */
typedef struct {
    const frgi_effects *a;
    const frg_fe *f;
    int64_t *parent; /* total: the components */
    double *shift;   /* total */
    int64_t first;   /* coefficient of the second effect */
    int64_t n_free;
    int64_t place[MOST_FREE]; /* further references, */
    double
        *vector[MOST_FREE]; /* total each: null vectors, 1 there and 0 at the references before */
    frg_demean *plan;
    double *column, *alpha, *elim;
} normaliser;

static void set_references(const normaliser *w, double *value)
{
    int first = -1;
    for (int q = 0; q < w->f->data.frame.n_effects; q++) {
        if (w->a->constant[q] >= 0 && first >= 0) {
            move_reference(w->a, w->f, w->parent, w->shift, q, first, value);
        }
        first = first < 0 && w->a->constant[q] >= 0 ? q : first;
    }
    for (int64_t k = 0; k < w->n_free; k++) {
        const double by = value[w->place[k]];
        for (int64_t l = 0; l < w->a->total && by != 0; l++) {
            value[l] -= by * w->vector[k][l];
        }
        value[w->place[k]] = 0;
    }
}

/** Of each coefficient: what is 1 of it, the inverse of a slope's root mean square. */
static void measure_elim(const normaliser *w)
{
    const frgi_frame *const frame = &w->f->data.frame;
    for (int64_t l = 0; l < w->a->total; l++) {
        w->elim[l] = 1;
    }
    for (int s = 0; s < w->f->data.formula.n_slopes; s++) {
        const double *const z = frame->slopes + s * frame->n;
        double max_abs = 0, square = 0;
        for (int64_t i = 0; i < frame->n; i++) {
            max_abs = fmax(max_abs, fabs(z[i]));
        }
        for (int64_t i = 0; i < frame->n && max_abs > 0; i++) {
            square += z[i] / max_abs * (z[i] / max_abs);
        }
        const double size = max_abs * sqrt(square / (double)frame->n);
        for (int64_t l = 0; l < frame->levels[w->f->data.formula.slopes[s].effect]; l++) {
            w->elim[w->a->slope[s] + l] = size > 0 ? 1 / size : 1;
        }
    }
}

/** column <- D v */
static void broadcast(const normaliser *w, const double *v)
{
    const frgi_frame *const frame = &w->f->data.frame;
    const int64_t n = frame->n;
    memset(w->column, 0, sizeof *w->column * (size_t)n);
    for (int q = 0; q < frame->n_effects; q++) {
        for (int64_t i = 0; w->a->constant[q] >= 0 && i < n; i++) {
            w->column[i] += v[w->a->constant[q] + frame->codes[q * n + i]];
        }
    }
    for (int s = 0; s < w->f->data.formula.n_slopes; s++) {
        const int32_t *const codes = frame->codes + w->f->data.formula.slopes[s].effect * n;
        for (int64_t i = 0; i < n; i++) {
            w->column[i] += frame->slopes[s * n + i] * v[w->a->slope[s] + codes[i]];
        }
    }
}

/** v <- a null vector under the references so far; *found: its first level that is not 0, -1 where
 *  all are, and -2 where the demeaner does not tell. */
static frg_status draw(const normaliser *w, uint64_t stream, double *v, int64_t *found)
{
    const frg_array column =
        frg_matrix_columns(w->column, FRG_F64, w->f->data.frame.n, 1, w->f->data.frame.n);
    frg_demean_column report;
    for (int64_t l = 0; l < w->a->total; l++) {
        uint32_t bits[4];
        frgi_philox(SEED, stream, (uint64_t)l, 0, bits);
        v[l] = w->elim[l] * ldexp((double)bits[0] - 0x1p31, -31);
    }
    broadcast(w, v);
    const frg_status status = frgi_fe_demean_run(w->plan, column, column, &report, NULL);
    TRY(status);
    TRY(frg_demean_effects(w->plan, 0, w->alpha));
    for (int64_t l = 0; l < w->a->total; l++) {
        v[l] -= w->alpha[l];
    }
    set_references(w, v);
    *found = report.converged ? -1 : -2;
    for (int64_t i = 0; report.converged && i < w->a->total && *found < 0; i++) {
        const int64_t l = (w->first + i) % w->a->total; /* the first effect comes last */
        *found = fabs(v[l]) > GONE * w->elim[l] ? l : -1;
    }
    return FRG_OK;
}

/** Further references until nothing is free. */
static frg_status set_free(normaliser *w, bool *unique)
{
    uint64_t stream = 1;
    TRY(frgi_fe_plan(w->f, &w->plan));
    TRY(NEW(w->f->ctx, &w->column, w->f->data.frame.n, "null vectors"));
    TRY(NEW(w->f->ctx, &w->alpha, w->a->total, "null vectors"));
    TRY(NEW(w->f->ctx, &w->elim, w->a->total, "null vectors"));
    measure_elim(w);
    w->first = w->a->constant[0] >= 0 ? w->f->data.frame.levels[0] : 0;
    for (int s = 0; s < w->f->data.formula.n_slopes; s++) {
        w->first += w->f->data.formula.slopes[s].effect == 0 ? w->f->data.frame.levels[0] : 0;
    }
    for (*unique = false; w->n_free < MOST_FREE; w->n_free++) {
        double **const v = &w->vector[w->n_free];
        int64_t place = -1;
        TRY(NEW(w->f->ctx, v, w->a->total, "null vectors"));
        for (int d = 0; d < DRAWS; d++) {
            TRY(draw(w, stream++, *v, &place));
            if (place < 0 || fabs((*v)[place]) > PLAIN * w->elim[place]) {
                break;
            }
        }
        if (place < 0) {
            *unique = place == -1;
            break;
        }
        const double size = (*v)[place];
        for (int64_t l = 0; l < w->a->total; l++) {
            (*v)[l] = fabs((*v)[l]) > GONE * w->elim[l] ? (*v)[l] / size : 0;
        }
        w->place[w->n_free] = place;
    }
    return FRG_OK;
}

static frg_status normalise(frgi_effects *a, const frg_fe *f)
{
    normaliser w = {.a = a, .f = f};
    int constants = 0;
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &w.parent, a->total, "components"));
    TRY_TO(done, NEW(f->ctx, &w.shift, a->total, "components"));
    const int64_t components = join_levels(a, f, w.parent);
    for (int q = 0; q < f->data.frame.n_effects; q++) {
        constants += a->constant[q] >= 0;
    }
    const int64_t free = constants > 1 ? (constants - 1) * components : 0;
    a->identified = f->absorbed.rank_exact && (double)(a->total - free) == f->absorbed.rank;
    if (!a->identified) {
        TRY_TO(done, set_free(&w, &a->identified));
    }
    set_references(&w, a->value);
done:
    for (int k = 0; k < MOST_FREE; k++) {
        DROP(f->ctx, &w.vector[k]);
    }
    frg_demean_destroy(w.plan);
    DROP(f->ctx, &w.parent);
    DROP(f->ctx, &w.shift);
    DROP(f->ctx, &w.column);
    DROP(f->ctx, &w.alpha);
    DROP(f->ctx, &w.elim);
    return status;
}

frg_status frgi_effects_create(frgi_effects *a, const frg_fe *f)
{
    *a = (frgi_effects){0};
    if (!f->absorbed.plan) {
        FAIL(f->ctx, E_OPTION, "the fixed effects were not kept: %s",
             f->data.frame.n_effects ? "set keep_effects in the options of the fit"
                                     : "the model has none");
    }
    frg_status status;
    TRY(frgi_spool_check(f->ctx));
    TRY_TO(failed, lay_out(a, f));
    TRY_TO(failed, combine(a, f));
    TRY_TO(failed, normalise(a, f));
    return FRG_OK;
failed:
    frgi_effects_destroy(a, f->ctx);
    return status;
}

/* ---- the effects as a table ------------------------------------------------------------------ */

typedef struct {
    const frg_fe *f;
    const frgi_effects *a;
    frgi_names labels; /* of levels */
    int64_t n;
    int32_t *factor, *level;
    int64_t *identified;
    double *value;
} tabulator;

/** "1980", "CA", and "CA_1980" for a joint key. */
static frg_status add_labels(tabulator *t, int q, const int64_t *first, int32_t *ids)
{
    const frg_fe *const f = t->f;
    const frgi_key *const key = &f->data.frame.keys[q];
    frgi_text text = {0};
    frg_status status = FRG_OK;
    for (int64_t l = 0; l < f->data.frame.levels[q] && status >= 0; l++) {
        const int64_t row = f->data.frame.rows ? f->data.frame.rows[first[l]] : first[l];
        text.length = 0;
        for (int c = 0; c < key->n; c++) {
            TRY_TO(done, frgi_level_text(f->ctx, key->columns[c], row, c ? "_" : "", &text));
        }
        status = frgi_names_intern(&t->labels, f->ctx, text.text, text.length, &ids[l]);
    }
done:
    frgi_text_free(f->ctx, &text);
    return status;
}

static void add_block(tabulator *t, int64_t start, int64_t levels, int32_t factor,
                      const int32_t *ids)
{
    for (int64_t l = 0; l < levels; l++) {
        t->factor[t->n] = factor;
        t->level[t->n] = ids[l];
        t->identified[t->n] = t->a->identified;
        t->value[t->n++] = t->a->value[start + l];
    }
}

static frg_status add_factor(tabulator *t, int q)
{
    const frg_fe *const f = t->f;
    const int64_t levels = f->data.frame.levels[q];
    int64_t *first = NULL;
    int32_t *ids = NULL;
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &first, levels, "levels"));
    TRY_TO(done, NEW(f->ctx, &ids, levels, "levels"));
    frgi_keys_first(f->data.frame.n, f->data.frame.codes + q * f->data.frame.n, levels, first);
    TRY_TO(done, add_labels(t, q, first, ids));
    if (t->a->constant[q] >= 0) {
        add_block(t, t->a->constant[q], levels, q, ids);
    }
    for (int s = 0; s < f->data.formula.n_slopes; s++) {
        if (f->data.formula.slopes[s].effect == q) {
            add_block(t, t->a->slope[s], levels, f->data.frame.n_effects + s, ids);
        }
    }
done:
    DROP(f->ctx, &first);
    DROP(f->ctx, &ids);
    return status;
}

/** Names of the blocks: "firm", and "firm[[x]]" for slopes. */
static frg_status name_factors(const tabulator *t, frgi_names *names)
{
    const frg_fe *const f = t->f;
    frgi_text text = {0};
    frg_status status = FRG_OK;
    int32_t id;
    for (int q = 0; q < f->data.frame.n_effects && status >= 0; q++) {
        status = frgi_names_intern(names, f->ctx, f->data.frame.keys[q].name,
                                   strlen(f->data.frame.keys[q].name), &id);
    }
    for (int s = 0; s < f->data.formula.n_slopes && status >= 0; s++) {
        const frgi_slope_spec *const slope = &f->data.formula.slopes[s];
        text.length = 0;
        TRY_TO(done,
               frgi_text_printf(f->ctx, &text, "%s[[%s]]", f->data.frame.keys[slope->effect].name,
                                frgi_names_text(&f->data.formula.names, slope->name)));
        status = frgi_names_intern(names, f->ctx, text.text, text.length, &id);
    }
done:
    frgi_text_free(f->ctx, &text);
    return status;
}

static frg_status add_column(frg_table *table, tabulator *t, const char *name, const int32_t *codes,
                             const frgi_names *labels)
{
    const char **texts;
    TRY(NEW(t->f->ctx, &texts, labels->count, "labels"));
    for (int32_t id = 0; id < labels->count; id++) {
        texts[id] = frgi_names_text(labels, id);
    }
    const frg_status status = frg_table_add_codes(table, name, codes, texts, labels->count);
    DROP(t->f->ctx, &texts);
    return status;
}

static frg_status fill_table(frg_table *table, tabulator *t, const frgi_names *factors)
{
    TRY(add_column(table, t, "factor", t->factor, factors));
    TRY(add_column(table, t, "level", t->level, &t->labels));
    TRY(frg_table_add_numbers(table, "effect", t->value));
    return frg_table_add_integers(table, "identified", t->identified);
}

frg_status frg_fe_effects(const frg_fe *f, frg_table **out)
{
    if (!f) {
        return FRG_BAD_ARG;
    }
    REQUIRE(f->ctx, out, "frg_fe_effects takes a place for the table");
    *out = NULL;
    frgi_effects a = {0};
    frg_table *table = NULL;
    frgi_names factors = {0};
    tabulator t = {.f = f, .a = &a};
    frg_status status;
    TRY_TO(done, frgi_effects_create(&a, f));
    TRY_TO(done, NEW(f->ctx, &t.factor, a.total, "effects"));
    TRY_TO(done, NEW(f->ctx, &t.level, a.total, "effects"));
    TRY_TO(done, NEW(f->ctx, &t.identified, a.total, "effects"));
    TRY_TO(done, NEW(f->ctx, &t.value, a.total, "effects"));
    for (int q = 0; q < f->data.frame.n_effects; q++) {
        TRY_TO(done, add_factor(&t, q));
    }
    TRY_TO(done, name_factors(&t, &factors));
    TRY_TO(done, frg_table_create(&table, f->ctx, a.total));
    TRY_TO(done, fill_table(table, &t, &factors));
    *out = table;
    table = NULL;
done:
    frg_table_destroy(table);
    frgi_names_free(&factors, f->ctx);
    frgi_names_free(&t.labels, f->ctx);
    DROP(f->ctx, &t.factor);
    DROP(f->ctx, &t.level);
    DROP(f->ctx, &t.identified);
    DROP(f->ctx, &t.value);
    frgi_effects_destroy(&a, f->ctx);
    return status;
}
