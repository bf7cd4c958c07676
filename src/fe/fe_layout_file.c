/* fe_layout_file.c - the order of the rows of a plan in a file, for a run that goes on where it was
 * cut off.
 *
 *     head      core/kept_file.h; the sizes are rows and factors
 *     facts     which factor is eliminated, what there is; levels and labels of each factor
 *     arrays    labels, starts of the eliminated levels, their numbers, reduced indices, the order
 *               of the rows, in memory (fe_rows.h) or on the disk (core/row_order.h)
 *
 * Codes are counted, and rows sorted by level, once: reading this back is a copy.  Weights are not
 * in it: the caller has them, and one pass brings them into their places.  Numbers that are taken
 * for places are looked at before, whatever the checksums say.
 */
#include <string.h>

#include "core/checkpoint_bytes.h"
#include "core/kept_file.h"
#include "fe/fe_demean_plan.h"

static const frgi_keep_kind kind = {"fourgeOR", "order of rows"};

typedef struct {
    int64_t elim_factor;
    int64_t has_order, has_elim_level;
    int64_t window, buckets; /* of rows that are on the disk and scattered; else 0 */
} order_facts;
typedef struct {
    int64_t levels, has_label;
} factor_facts;

/** An array of the file and of memory. */
typedef struct {
    void *at;
    size_t bytes;
} piece;
enum { ARRAYS = 6, PIECES = FE_MAX_FACTORS + ARRAYS, CHECKSUMS = 2 };

/** The arrays that there are, in their order in the file. */
static int list_pieces(const frg_demean *d, piece pieces[PIECES])
{
    const fe_rows *const g = &d->rows;
    const frgi_row_order *const o = &d->detour.order;
    const size_t n = (size_t)g->n, levels = (size_t)g->n_elim;
    const piece arrays[ARRAYS] = {{g->elim_start, (levels + 1) * sizeof *g->elim_start},
                                  {g->elim_level, levels * sizeof *g->elim_level},
                                  {g->index, n * (size_t)g->n_remaining * sizeof *g->index},
                                  {g->order, n * sizeof *g->order},
                                  {o->bucket, n * sizeof *o->bucket},
                                  {o->place, n * sizeof *o->place}};
    int count = 0;
    for (int q = 0; q < g->n_factors; q++) {
        if (g->factor[q].label) {
            const size_t bytes = (size_t)g->factor[q].levels * sizeof *g->factor[q].label;
            pieces[count++] = (piece){g->factor[q].label, bytes};
        }
    }
    for (int i = 0; i < ARRAYS; i++) {
        if (arrays[i].at) {
            pieces[count++] = arrays[i];
        }
    }
    return count;
}

/* ---- out ------------------------------------------------------------------------------------- */

static frg_status put_layout(const frg_demean *d, frgi_keep_out *f)
{
    const fe_rows *const g = &d->rows;
    const frgi_row_order *const o = &d->detour.order;
    const order_facts facts = {g->elim_factor, g->order != NULL, g->elim_level != NULL,
                               d->detour.there ? o->window : 0, d->detour.there ? o->buckets : 0};
    piece pieces[PIECES];
    const int count = list_pieces(d, pieces);
    TRY(frgi_keep_put(f, &facts, sizeof facts));
    for (int q = 0; q < g->n_factors; q++) {
        const factor_facts factor = {g->factor[q].levels, g->factor[q].label != NULL};
        TRY(frgi_keep_put(f, &factor, sizeof factor));
    }
    TRY(frgi_keep_put_sum(f));
    for (int i = 0; i < count; i++) {
        TRY(frgi_keep_put(f, pieces[i].at, pieces[i].bytes));
    }
    return frgi_keep_put_sum(f);
}

frg_status frgi_fe_layout_save(const frg_demean *d, const frg_layout_files *files)
{
    const fe_rows *const g = &d->rows;
    frgi_keep_out f;
    piece pieces[PIECES];
    size_t bytes = frgi_keep_bytes(CHECKSUMS) + sizeof(order_facts) +
                   (size_t)g->n_factors * sizeof(factor_facts);
    const int count = list_pieces(d, pieces);
    for (int i = 0; i < count; i++) {
        bytes += pieces[i].bytes;
    }
    const frgi_keep_head h = {files->options, files->source, {g->n, g->n_factors}};
    TRY(frgi_keep_room(d->ctx, files->order, bytes));
    TRY(frgi_keep_create(&f, d->ctx, files->order, &kind, &h));
    return frgi_keep_end(&f, put_layout(d, &f));
}

size_t frg_demean_layout_bytes(const frg_demean_shape *s)
{
    const size_t n = s ? (size_t)s->n : 0, factors = s ? (size_t)s->n_factors : 0;
    size_t levels = 0, most = 0;
    if (factors == 0) {
        return 0;
    }
    for (size_t q = 0; q < factors; q++) {
        const size_t own = s->levels ? (size_t)s->levels[q] : n;
        levels += own;
        most = own > most ? own : most;
    }
    enum { LABEL = 4, START_AND_NUMBER = 12, INDEX = 4, ORDER = 5 };
    return frgi_keep_bytes(CHECKSUMS) + sizeof(order_facts) + factors * sizeof(factor_facts) +
           levels * LABEL + (most + 1) * START_AND_NUMBER + n * (INDEX * (factors - 1) + ORDER);
}

/* ---- in -------------------------------------------------------------------------------------- */

/** Sizes that can be, from which the arrays are allocated. */
static frg_status take_sizes(frg_demean *d, frgi_keep_in *f, const order_facts *facts,
                             const factor_facts *factor)
{
    fe_rows *const g = &d->rows;
    int64_t reduced = 0;
    bool sound = facts->elim_factor >= 0 && facts->elim_factor < g->n_factors;
    for (int q = 0; q < g->n_factors; q++) {
        const int64_t levels = factor[q].levels;
        sound = sound && levels >= 1 && levels <= g->n;
        reduced += sound && q != facts->elim_factor ? levels : 0;
        g->factor[q].levels = levels;
    }
    sound =
        sound && reduced <= INT32_MAX && frgi_row_order_fits(g->n, facts->window, facts->buckets);
    if (!sound) {
        return frgi_keep_refuse(f, "it tells of levels that cannot be");
    }
    g->elim_factor = (int)facts->elim_factor;
    g->n_elim = factor[g->elim_factor].levels;
    return frgi_fe_rows_place_factors(g, d->ctx);
}

/** Memory for what the file has. */
static frg_status open_arrays(frg_demean *d, const order_facts *facts, const factor_facts *factor)
{
    fe_rows *const g = &d->rows;
    frgi_row_order *const o = &d->detour.order;
    for (int q = 0; q < g->n_factors; q++) {
        if (factor[q].has_label) {
            TRY(NEW(d->ctx, &g->factor[q].label, factor[q].levels, "level labels"));
        }
    }
    TRY(NEW(d->ctx, &g->elim_start, g->n_elim + 1, "starts of the eliminated levels"));
    if (facts->has_elim_level) {
        TRY(NEW(d->ctx, &g->elim_level, g->n_elim, "numbers of the eliminated levels"));
    }
    TRY(frgi_fe_rows_open_index(g, d->ctx));
    TRY(facts->has_order ? frgi_fe_rows_open_order(g, d->ctx) : FRG_OK);
    d->detour.there = facts->buckets > 0;
    return d->detour.there
               ? frgi_row_order_open(o, d->ctx, g->n, facts->window, (int)facts->buckets)
               : FRG_OK;
}

static bool are_labels(const fe_factor *f)
{
    int32_t before = -1;
    bool sound = true;
    for (int64_t l = 0; f->label && l < f->levels && sound; l++) {
        sound = f->label[l] > before;
        before = f->label[l];
    }
    return sound;
}

static bool are_starts(const fe_rows *g)
{
    bool sound = g->elim_start[0] == 0 && g->elim_start[g->n_elim] == g->n;
    for (int64_t u = 0; u < g->n_elim && sound; u++) {
        sound = g->elim_start[u] < g->elim_start[u + 1];
    }
    return sound;
}

static bool are_indices(const fe_rows *g)
{
    bool sound = true;
    for (int r = 0; r < g->n_remaining; r++) {
        const fe_factor *const f = fe_remaining(g, r);
        for (int64_t i = 0; i < g->n && sound; i++) {
            const int64_t l = g->index[i * g->n_remaining + r] - f->first;
            sound = l >= 0 && l < f->levels;
        }
    }
    return sound;
}

/** What is wrong with the arrays; NULL: nothing. */
static frg_status check_arrays(const frg_demean *d, const char **wrong)
{
    const fe_rows *const g = &d->rows;
    bool once = true;
    *wrong = !are_starts(g)    ? "levels begin where they cannot"
             : !are_indices(g) ? "rows are of levels that there are not"
                               : NULL;
    for (int q = 0; q < g->n_factors && !*wrong; q++) {
        *wrong = are_labels(&g->factor[q]) ? NULL : "codes of levels do not ascend";
    }
    if (!*wrong && g->elim_level) {
        TRY(frgi_row_order_once(d->ctx, (const uint32_t *)g->elim_level, g->n_elim, &once));
    }
    if (!*wrong && once && g->order) {
        TRY(frgi_row_order_once(d->ctx, g->order, g->n, &once));
    }
    if (!*wrong && once && d->detour.there) {
        TRY(frgi_row_order_check(&d->detour.order, d->ctx, &once));
    }
    *wrong = *wrong ? *wrong : once ? NULL : "two rows have one place";
    return FRG_OK;
}

static frg_status take_arrays(frg_demean *d, frgi_keep_in *f)
{
    piece pieces[PIECES];
    const char *wrong;
    const int count = list_pieces(d, pieces);
    for (int i = 0; i < count; i++) {
        TRY(frgi_keep_get(f, pieces[i].at, pieces[i].bytes));
    }
    TRY(frgi_keep_check_sum(f));
    TRY(frgi_keep_check_end(f));
    TRY(check_arrays(d, &wrong));
    return wrong ? frgi_keep_refuse(f, wrong) : FRG_OK;
}

static frg_status take_layout(frg_demean *d, frgi_keep_in *f, const frgi_keep_head *h, int64_t n,
                              int factors)
{
    fe_rows *const g = &d->rows;
    order_facts facts;
    factor_facts factor[FE_MAX_FACTORS];
    if (h->sizes[0] != n || h->sizes[1] != factors) {
        return frgi_keep_refuse(f, "it is of other rows");
    }
    TRY(frgi_keep_get(f, &facts, sizeof facts));
    TRY(frgi_keep_get(f, factor, (size_t)factors * sizeof *factor));
    TRY(frgi_keep_check_sum(f));
    g->n = n;
    g->n_factors = factors;
    g->n_remaining = factors - 1;
    TRY(NEW0(d->ctx, &g->factor, factors, "factors"));
    TRY(take_sizes(d, f, &facts, factor));
    TRY(open_arrays(d, &facts, factor));
    return take_arrays(d, f);
}

static void drop_layout(frg_demean *d)
{
    const struct fe_steps *const steps = d->rows.steps;
    frgi_fe_rows_destroy(&d->rows, d->ctx);
    frgi_row_order_destroy(&d->detour.order, d->ctx);
    d->rows = (fe_rows){.steps = steps};
    d->detour.there = false;
}

frg_status frgi_fe_layout_load(frg_demean *d, const frg_layout_files *files, int64_t n, int factors,
                               bool *read)
{
    frgi_keep_in f;
    frgi_keep_head h = {.options = files->options, .source = files->source};
    *read = false;
    if (!frgi_checkpoint_is_there(d->ctx, files->order)) {
        return FRG_OK;
    }
    frg_status status = frgi_keep_open(&f, d->ctx, files->order, &kind, &h);
    if (status == FRG_OK) {
        status = take_layout(d, &f, &h, n, factors);
        frgi_keep_close(&f);
    }
    *read = status == FRG_OK;
    if (!*read) {
        drop_layout(d);
    }
    return frgi_keep_or_anew(d->ctx, status);
}
