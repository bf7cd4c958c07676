/* test_fe_runs.c - what reads rows gives the same bits where these come in windows, however they
 * are cut, and ends where one cannot be read.
 *
 * Every reader is run on rows in memory and on the same rows in windows of 1, 7 and all eliminated
 * levels, of whole chunks or of stretches of one: the results agree to the bit, whatever the
 * design.
 */
#include "fault.h"
#include "fe/fe_bordered.h"
#include "fe/fe_cg.h"
#include "fe/fe_graph.h"
#include "fe/fe_groups.h"
#include "fe/fe_schur.h"
#include "fe/fe_subproblems.h"
#include "panel.h"
#include "windows.h"

enum { DESIGNS = 7 };

/** Two factors; a border with patterns of its own, few and many; several sparse factors; weights;
 *  components; levels enough for products in float32. */
static panel design_of(int which)
{
    const int64_t n = test_size(which % 3 == 1 ? 20000 : 7000, 3000); /* 2 chunks or more; 1 */
    if (which == 1 || which == 2)
        return panel_workers(n, which == 1 ? 2 : 3, 3);
    panel d = panel_make(n, which == 0 ? 2 : 3, 3);
    panel_random_codes(&d, (const int64_t[]){n / 10, n / 40, which == 3 ? n / 50 : 9});
    if (which >= 4)
        panel_random_weights(&d, 0.5, 2);
    for (int64_t i = 0; i < n && which == 5; i++) { /* four apart, rows in order */
        const int32_t part = (int32_t)(i * 4 / n), width = (int32_t)(n / 40);
        d.codes[3 * i] = (int32_t)(i / 6);
        d.codes[3 * i + 1] = (int32_t)(part * width + test_below(width));
        d.codes[3 * i + 2] = 4 * (int32_t)test_below(3) + part;
    }
    return d;
}

static void rows_of(fe_rows *g, frg_context *ctx, const panel *d)
{
    const frg_array codes = frg_matrix(d->codes, FRG_I32, d->n, d->q, d->q);
    const frg_array weights = frg_vector(d->weights, FRG_F64, d->n);
    *g = (fe_rows){0};
    CHECK_OK(ctx, frgi_fe_rows_create(g, ctx, &codes, d->weights ? &weights : NULL));
}

/* ---- the readers: each hashes what it gives ---- */

static frg_status graph(frg_context *ctx, const fe_rows *g, uint64_t *hash)
{
    int32_t *label = NULL;
    int64_t count = 0, all = 0, rank = 0;
    frg_status s = frgi_fe_label_components(g, ctx, &label, &count);
    if (s == FRG_OK && label)
        fault_hash(hash, label, (size_t)g->n_reduced * sizeof *label);
    DROP(ctx, &label);
    s = s == FRG_OK ? frgi_fe_components(g, ctx, 0, -1, &all) : s;
    s = s == FRG_OK ? frgi_fe_count_rank(g, ctx, FRG_DOF_PAIRWISE, &rank) : s;
    fault_hash(hash, (const int64_t[]){count, all, rank}, 3 * sizeof count);
    return s;
}

static frg_status ranks(frg_context *ctx, const fe_rows *g, uint64_t *hash)
{
    const frgi_prime_limits most = {.work = 1e9, .entries = 1e9, .bytes = (size_t)1 << 28};
    int64_t modular = 0, sparse = 0;
    frg_status s = frgi_fe_modular_rank(g, ctx, 1e9, &modular);
    s = s == FRG_OK ? frgi_fe_sparse_rank(g, ctx, &most, &sparse) : s;
    fault_hash(hash, (const int64_t[]){modular, sparse}, 2 * sizeof modular);
    return s;
}

static frg_status schur(frg_context *ctx, const fe_rows *g, uint64_t *hash)
{
    fe_schur m = {0};
    double products = 0;
    frg_status s = frgi_fe_groups_estimate(g, ctx, &products);
    fault_hash(hash, &products, sizeof products);
    s = s == FRG_OK ? frgi_fe_schur_create(&m, ctx, g, (size_t)1 << 30) : s;
    if (s == FRG_OK) {
        fault_hash(hash, m.starts, (size_t)(m.n + 1) * sizeof *m.starts);
        fault_hash(hash, m.columns, (size_t)m.starts[m.n] * sizeof *m.columns);
        fault_hash(hash, m.values, (size_t)m.starts[m.n] * sizeof *m.values);
    }
    frgi_fe_schur_destroy(&m, ctx);
    return s;
}

static frg_status bordered(frg_context *ctx, const fe_rows *g, uint64_t *hash)
{
    fe_bordered b = {0};
    bool low = false;
    frg_status s = frgi_fe_bordered_create(&b, ctx, g);
    if (s == FRG_OK && b.width > 0) {
        fault_hash(hash, b.lean.index, (size_t)g->n * sizeof *b.lean.index);
        fault_hash(hash, b.coupling, (size_t)(g->n_reduced * b.width) * sizeof(double));
        fault_hash(hash, b.block22, (size_t)(b.width * b.width) * sizeof(double));
    }
    s = s == FRG_OK ? frgi_fe_has_low(g, ctx, &low) : s;
    fault_hash(hash, &low, sizeof low);
    frgi_fe_bordered_destroy(&b, ctx);
    return s;
}

static frg_status subproblems(frg_context *ctx, const fe_rows *g, uint64_t *hash)
{
    fe_subproblems *p = NULL;
    const frg_demean_opts o = panel_options();
    const frg_status s = frgi_fe_subproblems_create(&p, ctx, g, &o);
    const int64_t count = p ? frgi_fe_subproblems_count(p) : 0;
    for (int64_t i = 0; i < count; i++) {
        const frg_demean_part part = frgi_fe_subproblems_get(p, i);
        fault_hash(hash, (const int64_t[]){part.n, part.levels, part.components}, 24);
    }
    frgi_fe_subproblems_destroy(p, ctx);
    return s;
}

typedef frg_status reader(frg_context *ctx, const fe_rows *g, uint64_t *hash);
static reader *const readers[] = {graph, ranks, schur, bordered, subproblems};
enum { READERS = sizeof readers / sizeof *readers };

static void compare_cuts(reader *read, frg_context *ctx, const fe_rows *g, int which)
{
    uint64_t want = 0;
    CHECK_OK(ctx, read(ctx, g, &want));
    for (int cut = 0; cut < 6; cut++) {
        windows w;
        uint64_t got = 0;
        const fe_rows away =
            windows_open(&w, g, (const int64_t[]){1, 7, g->n_elim}[cut / 2], cut % 2);
        CHECK_OK(ctx, read(ctx, &away, &got));
        CHECK_SAYS(got == want, "design %d: other bits in windows of %lld levels", which,
                   (long long)w.most);
        CHECK_INT(w.readers, 0);
    }
}

static void cuts(void)
{
    for (int which = 0; which < DESIGNS; which++) {
        frg_context *ctx = test_context();
        fe_rows g;
        panel d = design_of(which);
        rows_of(&g, ctx, &d);
        for (int r = 0; r < READERS; r++)
            compare_cuts(readers[r], ctx, &g, which);
        frgi_fe_rows_destroy(&g, ctx);
        frg_context_destroy(ctx);
        panel_free(&d);
    }
}

/** Each window refused once: the reader ends with that status and leaves nothing. */
static void refuse_windows(reader *read, const panel *d, frg_status refusal)
{
    fault_memory memory;
    fault_memory_open(&memory);
    frg_context *ctx = test_context_with(test_now.threads, &memory.table, NULL);
    fe_rows g;
    rows_of(&g, ctx, d);
    const int64_t live = memory.live_blocks;
    bool refused = true;
    for (int64_t k = 1; refused && k < 400; k++) {
        windows w;
        uint64_t hash = 0;
        const fe_rows away = windows_open(&w, &g, (g.n_elim + 2) / 3, false);
        w.fail_at = k;
        w.refusal = refusal;
        const frg_status s = read(ctx, &away, &hash);
        refused = w.calls >= k;
        CHECK_STATUS(s, refused ? refusal : FRG_OK);
        CHECK_INT(memory.live_blocks, live);
        CHECK_INT(w.readers, 0);
    }
    CHECK(!refused);
    frgi_fe_rows_destroy(&g, ctx);
    frg_context_destroy(ctx);
    CHECK_INT(memory.broken, 0);
}

static void refusals(void)
{
    for (int which = 2; which < 6; which += 3) {
        panel d = design_of(which);
        for (int r = 0; r < READERS; r++) {
            refuse_windows(readers[r], &d, FRG_IO);
            refuse_windows(readers[r], &d, FRG_INTERRUPTED);
        }
        panel_free(&d);
    }
}

/* ---- the passes ---- */

/** rhs, residual and product of a block of 4 columns, from g or in its windows; to: moments, audit,
 *  b, s, y, effects, residuals, one behind the other. */
static frg_status passes(frg_context *ctx, const fe_rows *g, const fe_rows *sizes, const panel *d,
                         uint64_t *hash)
{
    enum { LANES = 4 };
    const frgi_isa isa = frgi_context_isa(ctx);
    const fe_row_ops *ops = frgi_fe_row_ops(isa, 0, LANES);
    const fe_reduced_ops *steps = frgi_fe_reduced_ops(isa, 0, LANES);
    const int64_t length = sizes->n_reduced * LANES;
    double *x = panel_zeros(d->n * LANES, sizeof *x), *out = panel_zeros(d->n * LANES, sizeof *x);
    double *b = panel_zeros(3 * length, sizeof *b), *s = b + length, *y = s + length;
    double *effect = panel_zeros(sizes->n_elim * LANES, sizeof *effect);
    fe_row_work w;
    frgi_arena arena = {0};
    fe_moments moments;
    fe_elim_audit audit;
    memset(&moments, 0, sizeof moments);
    memset(&audit, 0, sizeof audit);
    for (int64_t i = 0; i < d->n; i++) /* in the order of the rows, as a buffer is filled */
        for (int k = 0; k < d->p; k++)
            x[i * LANES + k] = d->x[k * d->n + (sizes->order ? sizes->order[i] : i)];
    frgi_fe_row_work_layout(&arena, sizes, LANES, &w);
    CHECK_OK(ctx, frgi_arena_open(&arena, ctx, "work"));
    frgi_fe_row_work_layout(&arena, sizes, LANES, &w);
    const int threads = frg_threads(ctx);
    frg_status status = FRG_OK;
    for (int pass = 0; pass < 3 && status == FRG_OK; pass++) {
        fe_runs runs = frgi_fe_runs(g, ctx);
        for (const fe_rows *at; (at = frgi_fe_runs_next(&runs));) {
            fe_rows here = *at; /* columns of a window lie in its order */
            here.order = NULL;
            const fe_block from = {(char *)(x + here.at.row * LANES), LANES, 1, d->p};
            const fe_block to = {(char *)(out + here.at.row * LANES), LANES, 1, d->p};
            if (pass == 0)
                frgi_fe_rhs_window(&here, ops, &w, threads, LANES, &from);
            else if (pass == 1)
                frgi_fe_residual_window(&here, ops, &w, threads, LANES, &from, &to, b,
                                        effect + here.at.elim * LANES);
            else
                frgi_fe_apply_window(&here, steps, &w, threads, LANES, false, b);
        }
        status = frgi_fe_runs_close(&runs);
        if (pass == 0)
            frgi_fe_rhs_total(g, &w, threads, LANES, b, &moments);
        else if (pass == 1)
            frgi_fe_residual_total(g, ops, &w, threads, LANES, s, &audit);
        else
            frgi_fe_apply_total(g, steps, &w, threads, false, b, y);
    }
    fault_hash(hash, &moments, sizeof moments);
    fault_hash(hash, &audit, sizeof audit);
    fault_hash(hash, b, (size_t)(3 * length) * sizeof *b);
    fault_hash(hash, effect, (size_t)(sizes->n_elim * LANES) * sizeof *effect);
    fault_hash(hash, out, (size_t)(d->n * LANES) * sizeof *out);
    frgi_arena_close(&arena, ctx);
    free(x);
    free(out);
    free(b);
    free(effect);
    return status;
}

static void pass_cuts(void)
{
    for (int which = 0; which < DESIGNS; which++) {
        frg_context *ctx = test_context();
        fe_rows g;
        panel d = design_of(which);
        rows_of(&g, ctx, &d);
        uint64_t want = 0;
        CHECK_OK(ctx, passes(ctx, &g, &g, &d, &want));
        for (int cut = 0; cut < 6; cut++) {
            windows w;
            uint64_t got = 0;
            const fe_rows away =
                windows_open(&w, &g, (const int64_t[]){1, 7, g.n_elim}[cut / 2], cut % 2);
            CHECK_OK(ctx, passes(ctx, &away, &g, &d, &got));
            CHECK_SAYS(got == want, "design %d: other bits in windows of %lld levels", which,
                       (long long)w.most);
        }
        frgi_fe_rows_destroy(&g, ctx);
        frg_context_destroy(ctx);
        panel_free(&d);
    }
}

static const test_case cases[] = {
    {"every reader in windows", cuts},
    {"windows that are refused", refusals},
    {"the passes in windows", pass_cuts},
};
TEST_MAIN(cases)
