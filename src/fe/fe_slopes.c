/* fe_slopes.c - assembles S of fe_slopes.h one eliminated level after the other, decides whether
 * its factor pays, and builds it.
 *
 * An eliminated level u touches t_u reduced unknowns.  Its block of S is dense on them, with phi
 * the orthonormal columns:
 *
 *     S_u = sum over its rows of w a a' - sum over its columns j of c_j c_j'
 *     c_j = sum over its rows of w phi_j a
 *
 * Their lower triangles are stored side by side and added up row by row of S in the order of the
 * eliminated levels, so that any number of threads gives the same bits; the transpose of the
 * pattern has sorted rows.  A reduced unknown that the eliminated levels explain but for rounding
 * (diagonal below EXPLAINED, where 1 is the most) gets a row of zeros: its pivot could not be
 * distinguished from noise, relative to its own diagonal.
 *
 * Memory while it is assembled: 4 bytes times the sum of t_u^2, which also bounds the time, and 12
 * bytes a reduced unknown and thread; nothing is added up where the former are more than
 * PRODUCTS_A_ROW a row or half of byte_cap.  Afterwards: the factor.
 */
#include "fe/fe_slopes.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "fe/fe_cg.h"
#include "fe/fe_codes.h"
#include "fe/fe_steps.h"
#include "sparse/direct.h"

enum { FEW_STEPS = 10, SMALL_FACTOR = 256 };
static const double PRODUCTS_A_ROW = 30;
static const double EXPLAINED = 1e-12;
static const double NULL_PIVOT = 1e-9;
static const double SECONDS_PER_ROW_AND_COLUMN = 4e-9; /* of a step of LSMR through the rows */

struct fe_slopes {
    frg_context *ctx;
    int64_t n; /* R */
    frgi_direct *direct;
    double *scratch; /* of a solve with BASIS_MAX_LANES columns */
    size_t scratch_doubles;
};

/* ---- eliminated levels ----------------------------------------------------------------------- */

/** A thread's work memory for eliminated levels and rows of S. */
typedef struct {
    int32_t *slot;  /* R: place among the level's unknowns, or the last row that met it; -1: none */
    int32_t *place; /* of one row of the data */
    double *value;
    double *along; /* widest */
    double *sum;   /* R: the row of S at hand */
} workspace;

/** The blocks of all eliminated levels. */
typedef struct {
    const fe_basis *b;
    int threads;
    frgi_arena arena, blocks;
    workspace *of;          /* threads */
    int64_t *first_touched; /* n_elim + 1: into touched */
    int64_t *first_entry;   /* n_elim + 1: into block */
    int64_t widest;         /* largest t_u */
    int32_t *touched;
    double *block; /* t_u (t_u + 1) / 2: rows of the lower triangle */
} level_blocks;

/** Numbers the reduced unknowns of eliminated level u from 0 on; returns how many there are.  to
 *  may be NULL. */
static int32_t touch(const level_blocks *m, const workspace *w, int64_t u, int32_t *to)
{
    const fe_rows *g = m->b->g;
    int32_t count = 0;
    for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
        const int row = frgi_basis_row(m->b, i, w->place, w->value);
        for (int a = 0; a < row; a++) {
            if (w->slot[w->place[a]] >= 0) {
                continue;
            }
            w->slot[w->place[a]] = count;
            if (to) {
                to[count] = w->place[a];
            }
            count++;
        }
    }
    return count;
}

static void release(const level_blocks *m, const workspace *w, int64_t u)
{
    const fe_rows *g = m->b->g;
    for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
        const int row = frgi_basis_row(m->b, i, w->place, w->value);
        for (int a = 0; a < row; a++) {
            w->slot[w->place[a]] = -1;
        }
    }
}

/** along <- sum over the rows of w phi_j a */
static void sum_along(const level_blocks *m, const workspace *k, int64_t u, int j, int64_t t)
{
    const fe_rows *g = m->b->g;
    const fe_basis_factor *f = &m->b->elim;
    memset(k->along, 0, (size_t)t * sizeof *k->along);
    for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
        const int row = frgi_basis_row(m->b, i, k->place, k->value);
        const double w = (g->weight ? g->weight[i] : 1) * fe_basis_value(f, u, i, j);
        for (int a = 0; a < row; a++) {
            k->along[k->slot[k->place[a]]] += w * k->value[a];
        }
    }
}

/** Entries of the rows before row a. */
static int64_t triangle(int64_t a)
{
    return a * (a + 1) / 2;
}

static void fill_block(const level_blocks *m, const workspace *k, int64_t u)
{
    const fe_rows *g = m->b->g;
    double *block = m->block + m->first_entry[u];
    const int64_t t = touch(m, k, u, m->touched + m->first_touched[u]);
    memset(block, 0, (size_t)triangle(t) * sizeof *block);
    for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
        const int row = frgi_basis_row(m->b, i, k->place, k->value);
        const double w = g->weight ? g->weight[i] : 1;
        for (int a = 0; a < row; a++) {
            for (int c = 0; c < row; c++) {
                const int64_t at = k->slot[k->place[a]], other = k->slot[k->place[c]];
                if (other <= at) {
                    block[triangle(at) + other] += w * (k->value[a] * k->value[c]);
                }
            }
        }
    }
    for (int j = 0; j < m->b->elim.width; j++) {
        sum_along(m, k, u, j, t);
        for (int64_t a = 0; a < t; a++) {
            for (int64_t c = 0; c <= a; c++) {
                block[triangle(a) + c] -= k->along[a] * k->along[c];
            }
        }
    }
    release(m, k, u);
}

static void lay_out_touched(frgi_arena *a, level_blocks *m, int row_width)
{
    const int64_t n = m->b->n_reduced;
    m->of = TAKE(a, workspace, m->threads);
    m->first_touched = TAKE(a, int64_t, m->b->g->n_elim + 1);
    m->first_entry = TAKE(a, int64_t, m->b->g->n_elim + 1);
    for (int t = 0; t < m->threads; t++) {
        const workspace w = {.slot = TAKE(a, int32_t, n),
                             .place = TAKE(a, int32_t, row_width),
                             .value = TAKE(a, double, row_width),
                             .sum = TAKE(a, double, n)};
        if (a->base) {
            m->of[t] = w;
            memset(w.slot, -1, (size_t)n * sizeof *w.slot);
        }
    }
}

static void lay_out_blocks(frgi_arena *a, level_blocks *m)
{
    const int64_t n = m->b->g->n_elim;
    m->touched = TAKE(a, int32_t, m->first_touched[n]);
    m->block = TAKE(a, double, m->first_entry[n]);
    for (int t = 0; t < m->threads; t++) {
        m->of[t].along = TAKE(a, double, m->widest);
    }
}

/** Counts what the eliminated levels touch; *entries is the size of all blocks. */
static frg_status count_touched(level_blocks *m, frg_context *ctx, double *entries)
{
    const int64_t n = m->b->g->n_elim;
    const int width = frgi_basis_row_width(m->b);
    frgi_arena fresh = {0};
    lay_out_touched(&fresh, m, width);
    TRY(frgi_arena_open(&fresh, ctx, "eliminated levels of the Schur complement"));
    lay_out_touched(&fresh, m, width);
    m->arena = fresh;
#pragma omp parallel for num_threads(m->threads) schedule(static) if (m->threads > 1)
    for (int64_t u = 0; u < n; u++) {
        const workspace *const w = &m->of[omp_get_thread_num()];
        m->first_touched[u + 1] = touch(m, w, u, NULL);
        release(m, w, u);
    }
    m->first_touched[0] = m->first_entry[0] = 0;
    *entries = 0;
    for (int64_t u = 0; u < n; u++) {
        const int64_t t = m->first_touched[u + 1];
        m->widest = t > m->widest ? t : m->widest;
        m->first_touched[u + 1] += m->first_touched[u];
        m->first_entry[u + 1] = m->first_entry[u] + triangle(t);
        *entries += (double)triangle(t);
    }
    return FRG_OK;
}

static frg_status fill_blocks(level_blocks *m, frg_context *ctx)
{
    frgi_arena fresh = {0};
    lay_out_blocks(&fresh, m);
    TRY(frgi_arena_open(&fresh, ctx, "blocks of the Schur complement"));
    lay_out_blocks(&fresh, m);
    m->blocks = fresh;
#pragma omp parallel for num_threads(m->threads) schedule(dynamic, 64) if (m->threads > 1)
    for (int64_t u = 0; u < m->b->g->n_elim; u++) {
        fill_block(m, &m->of[omp_get_thread_num()], u);
    }
    return FRG_OK;
}

/* ---- S --------------------------------------------------------------------------------------- */

/** S with both triangles and sorted rows, and the work memory of its assembly. */
typedef struct {
    int64_t n;
    frgi_arena arena, entries;
    int64_t *starts;   /* n + 1 */
    int64_t *first;    /* n + 1: reduced unknown -> its eliminated levels, */
    int32_t *elim;     /* and they; */
    int32_t *position; /* its place in each */
    int64_t *next;     /* n */
    double *diagonal;  /* n */
    int32_t *border;   /* n: room for a list */
    int32_t *met;      /* columns of the rows as they are met */
    int32_t *columns;
    double *values;
} sparse;

static void lay_out_sparse(frgi_arena *a, sparse *s, int64_t incidences)
{
    s->starts = TAKE(a, int64_t, s->n + 1);
    s->first = TAKE(a, int64_t, s->n + 1);
    s->elim = TAKE(a, int32_t, incidences);
    s->position = TAKE(a, int32_t, incidences);
    s->next = TAKE(a, int64_t, s->n);
    s->diagonal = TAKE(a, double, s->n);
    s->border = TAKE(a, int32_t, s->n);
}

static void lay_out_entries(frgi_arena *a, sparse *s)
{
    s->met = TAKE(a, int32_t, s->starts[s->n]);
    s->columns = TAKE(a, int32_t, s->starts[s->n]);
    s->values = TAKE(a, double, s->starts[s->n]);
}

/** The eliminated levels of every reduced unknown, in their order. */
static void invert(sparse *s, const level_blocks *m)
{
    const int64_t incidences = m->first_touched[m->b->g->n_elim];
    memset(s->first, 0, (size_t)(s->n + 1) * sizeof *s->first);
    for (int64_t e = 0; e < incidences; e++) {
        s->first[m->touched[e] + 1]++;
    }
    for (int64_t i = 0; i < s->n; i++) {
        s->first[i + 1] += s->first[i];
        s->next[i] = s->first[i];
    }
    for (int64_t u = 0; u < m->b->g->n_elim; u++) {
        for (int64_t e = m->first_touched[u]; e < m->first_touched[u + 1]; e++) {
            const int64_t at = s->next[m->touched[e]]++;
            s->elim[at] = (int32_t)u;
            s->position[at] = (int32_t)(e - m->first_touched[u]);
        }
    }
}

/** Lists the columns of row i as its eliminated levels have them, in met where it is not NULL;
 *  returns how many there are. */
static int64_t meet(const sparse *s, const level_blocks *m, const workspace *w, int64_t i,
                    int32_t *met)
{
    int64_t count = 0;
    for (int64_t e = s->first[i]; e < s->first[i + 1]; e++) {
        const int64_t u = s->elim[e];
        for (int64_t a = m->first_touched[u]; a < m->first_touched[u + 1]; a++) {
            const int32_t j = m->touched[a];
            if (w->slot[j] != i) {
                w->slot[j] = (int32_t)i;
                if (met) {
                    met[count] = j;
                }
                count++;
            }
        }
    }
    return count;
}

static void meet_rows(const sparse *s, const level_blocks *m, int32_t *met)
{
    for (int t = 0; t < m->threads; t++) {
        memset(m->of[t].slot, -1, (size_t)s->n * sizeof *m->of[t].slot);
    }
#pragma omp parallel for num_threads(m->threads) schedule(dynamic, 64) if (m->threads > 1)
    for (int64_t i = 0; i < s->n; i++) {
        const workspace *const w = &m->of[omp_get_thread_num()];
        const int64_t count = meet(s, m, w, i, met ? met + s->starts[i] : NULL);
        s->next[i] = met ? s->starts[i] : count;
    }
}

/** Row i, in the order of the eliminated levels. */
static void add_row(const sparse *s, const level_blocks *m, const workspace *w, int64_t i)
{
    w->sum[i] = 0; /* where no eliminated level has it */
    for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
        w->sum[s->columns[e]] = 0;
    }
    for (int64_t e = s->first[i]; e < s->first[i + 1]; e++) {
        const int64_t u = s->elim[e], from = m->first_touched[u];
        const int64_t t = m->first_touched[u + 1] - from, position = s->position[e];
        const double *block = m->block + m->first_entry[u];
        for (int64_t a = 0; a < t; a++) {
            w->sum[m->touched[from + a]] +=
                block[a > position ? triangle(a) + position : triangle(position) + a];
        }
    }
    for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
        s->values[e] = w->sum[s->columns[e]];
    }
    s->diagonal[i] = w->sum[i];
}

/** Drops the unknowns that the eliminated levels explain from S: their rows and columns become
 *  zeros. */
static void clear_explained(const sparse *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
            if (!(s->diagonal[i] > EXPLAINED && s->diagonal[s->columns[e]] > EXPLAINED)) {
                s->values[e] = 0;
            }
        }
    }
}

static frg_status add_up(sparse *s, frg_context *ctx, const level_blocks *m)
{
    frgi_arena fresh = {0};
    const int64_t incidences = m->first_touched[m->b->g->n_elim];
    lay_out_sparse(&fresh, s, incidences);
    TRY(frgi_arena_open(&fresh, ctx, "rows of the Schur complement"));
    lay_out_sparse(&fresh, s, incidences);
    s->arena = fresh;
    invert(s, m);
    meet_rows(s, m, NULL);
    s->starts[0] = 0;
    for (int64_t i = 0; i < s->n; i++) {
        s->starts[i + 1] = s->starts[i] + s->next[i];
    }
    fresh = (frgi_arena){0};
    lay_out_entries(&fresh, s);
    TRY(frgi_arena_open(&fresh, ctx, "Schur complement with slopes"));
    lay_out_entries(&fresh, s);
    s->entries = fresh;
    meet_rows(s, m, s->met);
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
            s->columns[s->next[s->met[e]]++] = (int32_t)i;
        }
    }
#pragma omp parallel for num_threads(m->threads) schedule(dynamic, 64) if (m->threads > 1)
    for (int64_t i = 0; i < s->n; i++) {
        add_row(s, m, &m->of[omp_get_thread_num()], i);
    }
    clear_explained(s);
    return FRG_OK;
}

/** Counts, fills and adds up.  *fits: false where there would be more than `most` products. */
static frg_status assemble(sparse *s, frg_context *ctx, const fe_basis *b, double most, bool *fits)
{
    level_blocks m = {.b = b, .threads = b->g->n < FE_SMALL_ROWS ? 1 : frg_threads(ctx)};
    double products = 0;
    frg_status status;
    TRY_TO(done, count_touched(&m, ctx, &products));
    *fits = products <= most;
    if (*fits) {
        TRY_TO(done, fill_blocks(&m, ctx));
        TRY_TO(done, add_up(s, ctx, &m));
    }
done:
    frgi_arena_close(&m.blocks, ctx);
    frgi_arena_close(&m.arena, ctx);
    return status;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static frg_status times(const void *data, int lanes, const void *x, double *y)
{
    const sparse *s = data;
    const double *from = x;
    for (int64_t i = 0; i < s->n; i++) {
        double sum = 0;
        for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
            sum += s->values[e] * from[s->columns[e] * lanes];
        }
        y[i * lanes] = sum;
    }
    return FRG_OK;
}

typedef struct {
    fe_cg_work cg;
    double *ones;
} probe_work;

static void lay_out_probe(frgi_arena *a, int64_t n, probe_work *w)
{
    frgi_fe_cg_layout(a, n, 1, &w->cg);
    w->ones = TAKE(a, double, n);
}

/** Steps that LSMR would need without the factor. */
static frg_status predict_steps(const sparse *s, frg_context *ctx, double *steps)
{
    probe_work w;
    frgi_arena memory = {0};
    lay_out_probe(&memory, s->n, &w);
    TRY(frgi_arena_open(&memory, ctx, "probe of the Schur complement"));
    lay_out_probe(&memory, s->n, &w);
    for (int64_t i = 0; i < s->n; i++) {
        w.ones[i] = 1;
    }
    const fe_system system = {.n = s->n,
                              .steps = &frgi_fe_host_steps,
                              .times = times,
                              .data = s,
                              .inverse_diag = w.ones,
                              .level_inverse = w.ones};
    const frg_status status = frgi_fe_cg_predict(ctx, &system, &w.cg, FE_PROBE_STEPS, steps);
    frgi_arena_close(&memory, ctx);
    return status;
}

/** Coefficients of small factors, whose rows of S are dense: eliminated last. */
static int64_t list_border(const fe_basis *b, int32_t *list)
{
    int64_t count = 0;
    for (int r = 0; r < b->g->n_remaining; r++) {
        const fe_basis_factor *f = &b->remaining[r];
        const int64_t size = f->levels * f->width;
        for (int64_t j = 0; size <= SMALL_FACTOR && size < b->n_reduced && j < size; j++) {
            list[count++] = (int32_t)(f->first + j);
        }
    }
    return count;
}

/** Does a factor pay?  The costs of a factor and of an LSMR step are known; the number of steps is
 *  probed last. */
static frg_status compare_costs(const sparse *s, frg_context *ctx, const fe_basis *b,
                                const frgi_direct *direct, bool *pays)
{
    const double seconds = frgi_direct_costs(direct, frgi_direct_chosen(direct)).seconds;
    const double columns = frgi_basis_row_width(b) + b->elim.width + 1;
    const double step = SECONDS_PER_ROW_AND_COLUMN * (double)b->g->n * columns;
    *pays = seconds < FEW_STEPS * step;
    if (*pays) {
        return FRG_OK;
    }
    double steps;
    const frg_status status = predict_steps(s, ctx, &steps);
    *pays = seconds < steps * step;
    return status;
}

/** Analyses and factors.  f->direct is NULL where it does not pay, or where the heartbeat stopped
 *  it. */
static frg_status build(fe_slopes *f, const sparse *s, const fe_basis *b, size_t cap, bool forced)
{
    frg_context *ctx = f->ctx;
    const frgi_symmetric view = {s->n, s->starts, s->columns, s->values, 0};
    frgi_direct_opts o;
    frgi_direct_defaults(&o);
    o.byte_cap = cap;
    o.null_pivot = NULL_PIVOT;
    o.solver = "fe";
    bool pays = forced;
    frg_status status =
        frgi_direct_analyse(&f->direct, ctx, &view, s->border, list_border(b, s->border), &o);
    if (!forced && frgi_direct_refused(ctx, status)) {
        return FRG_OK;
    }
    TRY(status);
    if (!forced) {
        TRY(status = compare_costs(s, ctx, b, f->direct, &pays));
    }
    if (pays && status == FRG_OK) {
        TRY(status = frgi_direct_factor(f->direct, &view));
    }
    if (!pays || status != FRG_OK) {
        frgi_direct_destroy(f->direct);
        f->direct = NULL;
        return FRG_OK;
    }
    f->scratch_doubles = frgi_direct_scratch(f->direct, BASIS_MAX_LANES);
    return NEW(ctx, &f->scratch, f->scratch_doubles, "scratch of the factor");
}

frg_status frgi_fe_slopes_create(fe_slopes **out, frg_context *ctx, const fe_basis *b,
                                 size_t byte_cap, bool forced)
{
    *out = NULL;
    sparse s = {.n = b->n_reduced};
    fe_slopes *f = NULL;
    frg_status status;
    const double capacity = (double)byte_cap / (2 * sizeof(double)),
                 rows = PRODUCTS_A_ROW * (double)b->g->n;
    bool fits = false;
    TRY_TO(done, assemble(&s, ctx, b, forced || rows > capacity ? capacity : rows, &fits));
    if (!fits && forced) {
        status = frgi_fail(
            ctx, E_TOO_BIG, __FILE__, __LINE__,
            "the Schur complement of the slopes is too dense for fill_cap = %zu bytes", byte_cap);
    }
    if (!fits) {
        goto done;
    }
    TRY_TO(done, NEW0(ctx, &f, 1, "factor of the slopes"));
    f->ctx = ctx;
    f->n = s.n;
    TRY_TO(done, build(f, &s, b, byte_cap, forced));
    if (f->direct) {
        *out = f;
        f = NULL;
    }
done:
    frgi_fe_slopes_destroy(f, ctx);
    frgi_arena_close(&s.arena, ctx);
    frgi_arena_close(&s.entries, ctx);
    return status;
}

void frgi_fe_slopes_destroy(fe_slopes *s, frg_context *ctx)
{
    if (!s) {
        return;
    }
    frgi_direct_destroy(s->direct);
    DROP(ctx, &s->scratch);
    DROP(ctx, &s);
}

void frgi_fe_slopes_solve(const void *data, int64_t k, const double *p, double *v)
{
    const fe_slopes *s = data;
    memcpy(v, p, (size_t)(s->n * k) * sizeof *v);
    frgi_direct_solve(s->direct, k, v, s->scratch);
}

int64_t frgi_fe_slopes_rank(const fe_slopes *s)
{
    return frgi_direct_rank(s->direct);
}

size_t frgi_fe_slopes_bytes(const fe_slopes *s)
{
    return sizeof *s + frgi_direct_bytes(s->direct) + s->scratch_doubles * sizeof *s->scratch;
}
