/* reg_matrix.c - the columns of a regression, [y X], as numbers.
 *
 * Column 0 is y, then, where no effect spans the constant, a column of ones, then the terms in
 * formula order.  They are filled in blocks of FRGI_BLOCK rows, all columns of a block together,
 * with their weighted moments: runs of blocks go to the threads, and their moments are joined by
 * the tree of core/tree_sum.h.  Columns that all are the table's as they are wanted stay where they
 * are: the demeaner reads them there.
 */
#include "core/tree_sum.h"
#include "fe/fe_verify.h"
#include "regress/regress.h"

#include <math.h>
#include <omp.h>
#include <string.h>

const char *frgi_fe_column_name(const frg_fe *f, int32_t c)
{
    if (c == 0) {
        return frgi_names_text(&f->data.formula.names, f->data.formula.depvar);
    }
    if (f->data.ones && c == 1) {
        return "(Intercept)";
    }
    return frgi_names_text(&f->data.design.names,
                           f->data.design.columns[c - 1 - f->data.ones].name);
}

typedef struct {
    frg_fe *f;
    frgi_factor_codes *codes;
    int64_t runs, blocks; /* consecutive blocks of FRGI_BLOCK rows that share their moments */
    const frgi_gram_ops *ops;
    frgi_moments *partial;
    double *scratch;
    int64_t scratch_each;
} filler;

/** m rows of a column from `begin` on. */
static void fill_column(const filler *w, int c, int64_t begin, int64_t m, double *scratch,
                        double *to)
{
    const frg_fe *const f = w->f;
    const int64_t *const rows = f->data.frame.rows;
    if (c == 0) {
        frgi_program_block(&f->data.depvar, rows, begin, m, to, scratch);
    } else if (f->data.ones && c == 1) {
        for (ptrdiff_t i = 0; i < m; i++) {
            to[i] = 1;
        }
    } else {
        frgi_design_block(&f->data.design, f->data.variables, w->codes, c - 1 - f->data.ones, rows,
                          begin, m, to, scratch);
    }
}

/** One block of rows of all columns, with their moments. */
static void fill_block(const filler *w, int64_t block, double *scratch, frgi_moments *moments)
{
    frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n, begin = block * FRGI_BLOCK;
    const int64_t m = n - begin < FRGI_BLOCK ? n - begin : FRGI_BLOCK;
    const double *const weights = f->data.frame.weights ? f->data.frame.weights + begin : NULL;
    for (int c = 0; c <= f->data.p; c++) {
        double *const to = f->matrix.columns[c] + begin;
        if (frgi_sample_has(f, c)) {
            continue;
        }
        if (!f->matrix.lent) {
            fill_column(w, c, begin, m, scratch, to);
        }
        moments[c] = frgi_moments_join(moments[c], w->ops->moments(to, weights, m));
    }
}

static void fill_runs(const filler *w)
{
    const frg_fe *const f = w->f;
    const int columns = f->data.p + 1;
    const int64_t bytes = columns * (int64_t)sizeof(double);
    frgi_pass_begins(f->ctx, "fe", "columns", f->data.frame.n * bytes);
#pragma omp parallel for schedule(dynamic, 1)                                                      \
    num_threads(frgi_pass_threads(f->ctx, f->data.frame.n *columns))
    for (int64_t r = 0; r < w->runs; r++) {
        double *const scratch = w->scratch + omp_get_thread_num() * w->scratch_each;
        const int64_t end = (r + 1) * w->blocks / w->runs;
        for (int64_t b = r * w->blocks / w->runs; b < end && !frgi_fe_gives_up(f); b++) {
            fill_block(w, b, scratch, w->partial + r * columns);
        }
        frgi_pass_did(f->ctx, (end - r * w->blocks / w->runs) * FRGI_BLOCK * bytes);
    }
    for (frgi_tree_pair p = {.n = w->runs}; frgi_tree_next(&p);) {
        for (int c = 0; c < columns; c++) {
            frgi_moments *const to = &w->partial[p.to * columns + c];
            *to = frgi_moments_join(*to, w->partial[p.from * columns + c]);
        }
    }
    memcpy(f->matrix.moments, w->partial, (size_t)columns * sizeof *w->partial);
}

/** The squares of column c, whose mean is this small, may all have underflowed: what is left of it
 *  is meaningless. */
static bool too_small(const frg_fe *f, int c)
{
    const frgi_moments *const m = &f->matrix.moments[c];
    if (m->mean * m->mean + m->square / m->weight > FE_SMALLEST * FE_SMALLEST) {
        return false;
    }
    double largest = 0;
    for (int64_t i = 0; i < f->data.frame.n; i++) {
        largest = fmax(largest, fabs(f->matrix.columns[c][i]));
    }
    return largest > 0 && largest * f->data.frame.weight_root < FE_SMALLEST;
}

/** Names the first infinite value of a column, or the largest one where that is why its squares are
 *  none. */
static frg_status not_finite(const frg_fe *f, int c)
{
    const double *const x = f->matrix.columns[c];
    const char *const name = frgi_fe_column_name(f, c);
    int64_t i = 0, largest = 0;
    while (i < f->data.frame.n && isfinite(x[i])) {
        largest = fabs(x[i]) > fabs(x[largest]) ? i : largest;
        i++;
    }
    const bool finite = i == f->data.frame.n;
    i = finite ? largest : i;
    const long long row = (f->data.frame.rows ? f->data.frame.rows[i] : i) + 1;
    frgi_at(f->ctx, "%s:%lld", name, row);
    if (finite) {
        FAIL(f->ctx, E_NOT_FINITE,
             "'%s', row %lld: %g is too %s to be squared and added; scale the column", name, row,
             x[i], fabs(x[i]) < 1 ? "small" : "large");
    }
    FAIL(f->ctx, E_NOT_FINITE, "'%s', row %lld: the value is %s", name, row,
         isnan(x[i]) ? "not a number" : "infinite");
}

/** The numbers of column c in the table; NULL where it is none of the table's. */
static double *in_the_table(const frg_fe *f, int c)
{
    const frgi_program *p = &f->data.depvar;
    if (c > 0) {
        const frgi_design_column *const d = &f->data.design.columns[c - 1];
        const frgi_multiplicand *const m = &f->data.design.multiplicands[d->first_multiplicand];
        const bool number = d->n_multiplicands == 1 && m->level == FRGI_MULTIPLICAND_NUMBER;
        p = number ? &f->data.variables[m->variable].number : NULL;
    }
    const bool plain = p && p->column && p->column->kind == FRG_NUMBER;
    return plain ? (double *)(uintptr_t)p->column->numbers : NULL;
}

/** Takes the table's own columns where the demeaner can read them as one array: all rows of them,
 *  equally far apart.  What is done anew, by other weights or in a later run, needs copies. */
static void borrow_columns(frg_fe *f)
{
    const bool once = !f->glm.family && !f->two_stage.text && !f->policy.options.store;
    ptrdiff_t apart = 0;
    f->matrix.lent = once && f->data.frame.n_effects > 0 && !f->data.frame.rows && !f->data.ones;
    for (int c = 0; c <= f->data.p && f->matrix.lent; c++) {
        double *const x = in_the_table(f, c);
        f->matrix.columns[c] = x;
        const intptr_t step = c > 0 ? (intptr_t)x - (intptr_t)f->matrix.columns[c - 1] : 0;
        apart = c == 1 ? step : apart;
        f->matrix.lent = x && step % (intptr_t)sizeof *x == 0 && (c == 0 || step == apart);
    }
}

void frgi_fe_own_columns(frg_fe *f)
{
    f->matrix.lent = false;
    for (int c = 0; c <= f->data.p; c++) {
        f->matrix.columns[c] = f->matrix.values + c * f->data.frame.n;
    }
}

/** Memory of the columns: their own, or the sample's, which may have them filled. */
static frg_status place_columns(frg_fe *f)
{
    const int64_t n = f->data.frame.n, columns = f->data.p + 1;
    TRY(NEW(f->ctx, &f->matrix.columns, columns, "the model matrix"));
    TRY(NEW0(f->ctx, &f->matrix.moments, columns, "moments"));
    if (f->data.frame.sample) {
        return frgi_sample_columns(f);
    }
    TRY(NEW(f->ctx, &f->matrix.values, columns * n, "the model matrix"));
    borrow_columns(f);
    if (!f->matrix.lent) {
        frgi_fe_own_columns(f);
    }
    return FRG_OK;
}

frg_status frgi_fe_fill_matrix(frg_fe *f, frgi_factor_codes *codes)
{
    enum { RUNS = 64 };
    const int threads = frgi_pass_threads(f->ctx, f->data.frame.n * (f->data.p + 1));
    filler w = {.f = f,
                .codes = codes,
                .ops = frgi_gram_ops_of(f->ctx),
                .blocks = (f->data.frame.n + FRGI_BLOCK - 1) / FRGI_BLOCK};
    int64_t stack = frgi_design_scratch(&f->data.design, f->data.variables);
    stack = f->data.depvar.stack > stack ? f->data.depvar.stack : stack;
    w.runs = w.blocks < RUNS ? w.blocks : RUNS;
    w.scratch_each = stack * FRGI_BLOCK;
    frg_status status;
    TRY(place_columns(f));
    TRY_TO(done, NEW0(f->ctx, &w.partial, w.runs * (f->data.p + 1), "moments"));
    TRY_TO(done, NEW(f->ctx, &w.scratch, threads * w.scratch_each, "expressions"));
    fill_runs(&w);
    if (f->data.frame.sample) {
        frgi_sample_moments(f);
    }
    for (int c = 0; c <= f->data.p && !frgi_fe_gives_up(f); c++) {
        if (!isfinite(f->matrix.moments[c].square) || too_small(f, c)) {
            status = not_finite(f, c);
            goto done;
        }
    }
done:
    DROP(f->ctx, &w.partial);
    DROP(f->ctx, &w.scratch);
    return status;
}

void frgi_fe_centre(frg_fe *f)
{
    if (f->data.frame.sample) {
        frgi_sample_centre(f->data.frame.sample);
        return;
    }
    const int64_t n = f->data.frame.n;
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(f->ctx, n))
    for (int c = 0; c <= f->data.p; c++) {
        double *const x = f->matrix.columns[c];
        const double mean = c == 1 ? 0 : f->matrix.moments[c].mean;
        for (ptrdiff_t i = 0; i < n; i++) {
            x[i] -= mean;
        }
    }
}
