/* reg_layout.c - the levels of the effects and the rows of a regression in a file, for a run that
 * goes on where it was cut off.
 *
 *     head     core/kept_file.h; the sizes are rows of the table and effects
 *     facts    the rows before and after some were left out by the effects, and why; the levels
 *              of the effects and of the keys of columns and covariances
 *     arrays   the codes of each; which rows are used, where some were left out
 *
 * What is missing, outside the subset or of no weight is found again in a pass; keys are looked up
 * in tables, and singletons and small sets looked for, once.
 */
#include <string.h>

#include "core/checkpoint_bytes.h"
#include "core/kept_file.h"
#include "core/opts.h"
#include "fe/fe_rows.h"
#include "regress/reg_frame.h"

static const frgi_keep_kind kind = {"fourgeCO", "list of codes"};
enum { CHECKSUMS = 2 };

typedef struct {
    int64_t before, n; /* rows */
    int64_t n_singleton, singleton_rounds, n_disconnected, n_groups;
    int64_t n_later; /* keys beside the effects */
} frame_facts;

/** The columns of the keys. */
static frg_status put_keys(frgi_text *out, frg_context *ctx, const frgi_key_list *keys)
{
    for (int k = 0; k < keys->n; k++) {
        for (int c = 0; c < keys->keys[k].n; c++) {
            const char *const name = keys->keys[k].columns[c]->name;
            TRY(frgi_text_printf(ctx, out, "%c%zu:%s", c ? '^' : '+', strlen(name), name));
        }
    }
    return FRG_OK;
}

/** What the options of the caller's hash need not know: the effects, the keys, and what else
 *  decides rows. */
static frg_status identify(frgi_keep_head *h, const frgi_frame *f, frg_context *ctx,
                           const frgi_frame_input *in, const frg_layout_files *files)
{
    frgi_text effects = {0};
    frg_status status = frgi_pool_effects(&effects, ctx, in->formula);
    status = status < 0 ? status : put_keys(&effects, ctx, &f->later);
    const uint64_t own = frg_hash(files->options, effects.text, (int64_t)effects.length);
    frgi_text_free(ctx, &effects);
    *h = (frgi_keep_head){.options = frgi_options_hash(frg_fe_options(), in->options, own),
                          .source = files->source,
                          .sizes = {frg_table_rows(in->table), in->formula->n_effects}};
    return status;
}

/* ---- out ------------------------------------------------------------------------------------- */

size_t frgi_frame_save_bytes(const frgi_frame *f, int64_t before)
{
    const size_t n = (size_t)f->n, keys = (size_t)(f->n_effects + f->later.n);
    return frgi_keep_bytes(CHECKSUMS) + sizeof(frame_facts) + keys * sizeof *f->levels +
           n * keys * sizeof *f->codes + (f->n < before ? n * sizeof *f->rows : 0);
}

static frg_status put_frame(const frgi_frame *f, frgi_keep_out *file, int64_t before)
{
    const size_t n = (size_t)f->n, effects = (size_t)f->n_effects, later = (size_t)f->later.n;
    const frame_facts facts = {
        before,      f->n,      f->n_singleton, f->singleton_rounds, f->n_disconnected,
        f->n_groups, f->later.n};
    TRY(frgi_keep_put(file, &facts, sizeof facts));
    TRY(frgi_keep_put(file, f->levels, effects * sizeof *f->levels));
    TRY(frgi_keep_put(file, f->later.levels, later * sizeof *f->later.levels));
    TRY(frgi_keep_put_sum(file));
    TRY(frgi_keep_put(file, f->codes, n * effects * sizeof *f->codes));
    TRY(frgi_keep_put(file, f->later.codes, n * later * sizeof *f->later.codes));
    if (f->n < before) {
        TRY(frgi_keep_put(file, f->rows, n * sizeof *f->rows));
    }
    return frgi_keep_put_sum(file);
}

frg_status frgi_frame_save(const frgi_frame *f, frg_context *ctx, const frgi_frame_input *in,
                           const frg_layout_files *files, int64_t before)
{
    frgi_keep_out file;
    frgi_keep_head h;
    TRY(identify(&h, f, ctx, in, files));
    TRY(frgi_keep_room(ctx, files->codes, frgi_frame_save_bytes(f, before)));
    TRY(frgi_keep_create(&file, ctx, files->codes, &kind, &h));
    return frgi_keep_end(&file, put_frame(f, &file, before));
}

/* ---- in -------------------------------------------------------------------------------------- */

/** What a file holds, until all of it is found to be sound. */
typedef struct {
    frame_facts facts;
    int64_t levels[FRGI_EFFECTS], *later_levels;
    int32_t *codes, *later_codes;
    int64_t *rows; /* NULL: those of before */
} kept_frame;

static bool are_facts(const kept_frame *k, const frgi_frame *f)
{
    const frame_facts *const s = &k->facts;
    bool sound = s->before == f->n && s->n > 0 && s->n <= s->before && s->n_singleton >= 0 &&
                 s->singleton_rounds >= 0 && s->n_disconnected >= 0 && s->n_groups >= 0 &&
                 s->n_groups <= s->before && s->n_singleton <= s->before - s->n &&
                 s->before - s->n - s->n_singleton == s->n_disconnected && s->n_later == f->later.n;
    for (int q = 0; q < f->n_effects + f->later.n && sound; q++) {
        const int64_t levels = q < f->n_effects ? k->levels[q] : k->later_levels[q - f->n_effects];
        sound = levels >= 1 && levels <= s->n && levels <= INT32_MAX;
    }
    return sound;
}

/** Codes count up in the order of their first rows. */
static bool are_codes(const int32_t *codes, const int64_t *levels, int count, int64_t n)
{
    bool sound = true;
    for (int q = 0; q < count && sound; q++, codes += n) {
        int64_t next = 0;
        for (int64_t i = 0; i < n && sound; i++) {
            sound = codes[i] >= 0 && codes[i] <= next;
            next += codes[i] == next;
        }
        sound = sound && next == levels[q];
    }
    return sound;
}

/** The rows of before that are left, one after another. */
static bool are_rows(const kept_frame *k, const frgi_frame *f)
{
    int64_t at = 0;
    for (int64_t i = 0; k->rows && i < k->facts.n; i++, at++) {
        while (at < f->n && (f->rows ? f->rows[at] : at) != k->rows[i]) {
            at++;
        }
        if (at == f->n) {
            return false;
        }
    }
    return true;
}

static frg_status take_kept(kept_frame *k, frgi_keep_in *file, const frgi_frame *f)
{
    const size_t effects = (size_t)f->n_effects, later = (size_t)f->later.n;
    TRY(NEW(file->ctx, &k->later_levels, later, "levels of keys"));
    TRY(frgi_keep_get(file, &k->facts, sizeof k->facts));
    TRY(frgi_keep_get(file, k->levels, effects * sizeof *k->levels));
    TRY(frgi_keep_get(file, k->later_levels, later * sizeof *k->later_levels));
    TRY(frgi_keep_check_sum(file));
    if (!are_facts(k, f)) {
        return frgi_keep_refuse(file, "it is of other rows");
    }
    const size_t n = (size_t)k->facts.n;
    TRY(NEW(file->ctx, &k->codes, n * effects + FE_ROWS_AHEAD, "codes of the effects"));
    memset(k->codes + n * effects, 0, FE_ROWS_AHEAD * sizeof *k->codes);
    TRY(frgi_keep_get(file, k->codes, n * effects * sizeof *k->codes));
    TRY(NEW(file->ctx, &k->later_codes, n * later, "codes of keys"));
    TRY(frgi_keep_get(file, k->later_codes, n * later * sizeof *k->later_codes));
    if (k->facts.n < k->facts.before) {
        TRY(NEW(file->ctx, &k->rows, n, "the list of rows"));
        TRY(frgi_keep_get(file, k->rows, n * sizeof *k->rows));
    }
    TRY(frgi_keep_check_sum(file));
    TRY(frgi_keep_check_end(file));
    const bool sound = are_codes(k->codes, k->levels, f->n_effects, k->facts.n) &&
                       are_codes(k->later_codes, k->later_levels, f->later.n, k->facts.n);
    return !sound            ? frgi_keep_refuse(file, "a code is of no level")
           : !are_rows(k, f) ? frgi_keep_refuse(file, "it uses rows that are left out")
                             : FRG_OK;
}

/** The weights of the rows that are left, brought near 1 as they are. */
static void keep_weights(frgi_frame *f, const int64_t *rows, int64_t n)
{
    for (int64_t i = 0, at = 0; f->weights && i < n; i++, at++) {
        while ((f->rows ? f->rows[at] : at) != rows[i]) {
            at++;
        }
        f->weights[i] = f->weights[at];
    }
}

/** What is in *k becomes the frame's. */
static void take_over(frgi_frame *f, frg_context *ctx, kept_frame *k)
{
    const frame_facts *const s = &k->facts;
    if (k->rows) {
        keep_weights(f, k->rows, s->n);
        DROP(ctx, &f->rows);
        f->rows = k->rows;
    }
    f->codes = k->codes;
    memcpy(f->levels, k->levels, sizeof f->levels);
    DROP(ctx, &f->later.levels);
    f->later.levels = k->later_levels;
    f->later.codes = k->later_codes;
    f->later.rows = s->n;
    f->n = s->n;
    f->n_singleton = s->n_singleton;
    f->singleton_rounds = s->singleton_rounds;
    f->n_disconnected = s->n_disconnected;
    f->n_groups = s->n_groups;
}

frg_status frgi_frame_load(frgi_frame *f, frg_context *ctx, const frgi_frame_input *in,
                           const frg_layout_files *files, bool *read)
{
    kept_frame k = {.codes = NULL};
    frgi_keep_in file;
    frgi_keep_head h;
    *read = false;
    if (!frgi_checkpoint_is_there(ctx, files->codes)) {
        return FRG_OK;
    }
    TRY(identify(&h, f, ctx, in, files));
    const int64_t sizes[2] = {h.sizes[0], h.sizes[1]};
    frg_status status = frgi_keep_open(&file, ctx, files->codes, &kind, &h);
    if (status == FRG_OK) {
        status = memcmp(sizes, h.sizes, sizeof sizes) != 0
                     ? frgi_keep_refuse(&file, "it is of other rows")
                     : take_kept(&k, &file, f);
        frgi_keep_close(&file);
    }
    *read = status == FRG_OK;
    if (*read) {
        take_over(f, ctx, &k);
        return FRG_OK;
    }
    DROP(ctx, &k.codes);
    DROP(ctx, &k.rows);
    DROP(ctx, &k.later_codes);
    DROP(ctx, &k.later_levels);
    return frgi_keep_or_anew(ctx, status);
}
