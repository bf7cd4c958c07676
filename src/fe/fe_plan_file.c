/* fe_plan_file.c - the solver of a plan in a file: what was found out of the graph, S, its factor.
 *
 * A plan's rows are made of the caller's codes in every process; they have to be read there
 * anyway to see that they are the same, and grouping them is a small part of a plan.  What takes
 * long is kept: the choice of a solver with its estimates and probes, the assembled S, its order
 * and its factor, or the approximate one.
 *
 *     plan        format, and the hashes of what the solver depends on
 *     cascade     choices and counts (fe_cascade.h);  s.*, d.*, a.*: S and the factors
 *
 * in a checkpoint file (core/checkpoint.c), which has a checksum for each section.
 */
#include <string.h>

#include "core/checkpoint_bytes.h"
#include "core/opts.h"
#include "fe/fe_demean_plan.h"

enum { FORMAT = 1 };
static const char writer[] = "fe plan";

static uint64_t hash_options(const frg_demean *d)
{
    const char *const version = frg_version();
    const uint64_t seed = frg_seed(d->ctx);
    const int64_t level = (int64_t)frgi_context_isa(d->ctx);
    uint64_t h = frg_hash(0, version, (int64_t)strlen(version));
    h = frg_hash(frg_hash(h, &seed, sizeof seed), &level, sizeof level);
    return frgi_options_hash(frg_demean_options(), &d->opts, h);
}

/** *h <- its hash with the caller's row of each row of the plan. */
static frg_status hash_order(const frg_demean *d, uint64_t *h)
{
    const int64_t n = d->rows.n;
    uint32_t *rows;
    if (d->rows.order) {
        *h = frg_hash(*h, d->rows.order, n * (int64_t)sizeof *rows);
    }
    if (!d->detour.there) {
        return FRG_OK;
    }
    TRY(NEW(d->ctx, &rows, n, "the order of the rows"));
    for (int64_t i = 0; i < n; i++) {
        rows[i] = (uint32_t)i;
    }
    const frgi_columns x = {rows, 1, n, 1, sizeof *rows};
    const frg_status status = frgi_row_order_forward(&d->detour.order, d->ctx, &x, &x, false);
    *h = frg_hash(*h, rows, n * (int64_t)sizeof *rows);
    DROP(d->ctx, &rows);
    return status;
}

/** Of the rows as they are grouped, which tells the caller's codes up to names of levels. */
static frg_status hash_codes(const frg_demean *d, uint64_t *h)
{
    const fe_rows *const g = &d->rows;
    const int64_t sizes[] = {g->n, g->n_factors, g->elim_factor, g->n_elim, g->n_reduced};
    *h = frg_hash(FORMAT, sizes, sizeof sizes);
    *h = frg_hash(*h, g->elim_start, (g->n_elim + 1) * (int64_t)sizeof *g->elim_start);
    *h = frg_hash(*h, g->index, g->n * g->n_remaining * (int64_t)sizeof *g->index);
    return hash_order(d, h);
}

static frg_status identify(const frg_demean *d, fe_plan_identity *out)
{
    const fe_rows *const g = &d->rows;
    *out = (fe_plan_identity){
        .format = FORMAT,
        .options = hash_options(d),
        .weights = g->weight ? frg_hash(1, g->weight, g->n * (int64_t)sizeof *g->weight) : 0};
    return hash_codes(d, &out->codes);
}

frg_status frgi_fe_plan_check(const frg_demean *d)
{
    if (d->row_lsmr) {
        FAIL(d->ctx, E_UNSUPPORTED,
             "a plan %s is not saved: methods auto, cg and direct without varying slopes are",
             d->has_slopes ? "with varying slopes" : "of method lsmr, mlsmr or map");
    }
    return FRG_OK;
}

frg_status frgi_fe_plan_put(const frg_demean *d, fe_plan_facts *facts, frg_checkpoint **out)
{
    *out = NULL;
    frg_checkpoint *c = NULL;
    frg_status status;
    TRY(frgi_fe_plan_check(d));
    TRY(identify(d, &facts->own));
    TRY(frg_checkpoint_create(&c, d->ctx, writer, facts->own.options,
                              facts->own.codes ^ facts->own.weights));
    TRY_TO(failed, frg_checkpoint_put(c, "plan", &facts->own, sizeof facts->own));
    TRY_TO(failed, frgi_fe_cascade_put(d->cascade, &facts->cascade, c));
    *out = c;
    return FRG_OK;
failed:
    frg_checkpoint_destroy(c);
    return status;
}

frg_status frg_demean_save(const frg_demean *d, const char *path)
{
    if (!d) {
        return FRG_BAD_ARG;
    }
    REQUIRE(d->ctx, path, "frg_demean_save takes a path");
    fe_plan_facts facts;
    frg_checkpoint *c;
    TRY(frgi_fe_plan_put(d, &facts, &c));
    const frg_status status = frg_checkpoint_save(c, path);
    frg_checkpoint_destroy(c);
    return status;
}

/** E_MISMATCH with what differs. */
static frg_status check_identity(const frg_demean *d, const frg_checkpoint *c, const char *path)
{
    fe_plan_identity saved;
    fe_plan_identity own;
    TRY(identify(d, &own));
    if (strcmp(frg_checkpoint_solver(c), writer) != 0) {
        FAIL(d->ctx, E_MISMATCH, "'%s' was written by '%s' and is no plan of a demeaner", path,
             frg_checkpoint_solver(c));
    }
    TRY(frgi_checkpoint_copy(c, "plan", &saved, sizeof saved));
    if (saved.format != FORMAT) {
        FAIL(d->ctx, E_MISMATCH, "the plan in '%s' has format %lld, this fourge reads %d", path,
             (long long)saved.format, FORMAT);
    }
    const struct {
        bool differs;
        const char *what;
    } parts[] = {{saved.codes != own.codes, "other codes (levels, rows or their order)"},
                 {saved.weights != own.weights, "other weights"},
                 {saved.options != own.options,
                  "other options (method, precond, dtype, tol, max_iter, fill_cap, dof, seed), by "
                  "another version of fourge or at another CPU level"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].differs) {
            FAIL(d->ctx, E_MISMATCH,
                 "the plan in '%s' was made with %s: delete it, or name another file", path,
                 parts[i].what);
        }
    }
    return FRG_OK;
}

frg_status frgi_fe_plan_take(frg_demean *d, const frg_checkpoint *c, const char *path)
{
    fe_cascade *fresh = NULL;
    frg_status status;
    TRY(frgi_fe_plan_check(d));
    TRY(check_identity(d, c, path));
    TRY(frgi_fe_cascade_create(&fresh, d->ctx, &d->rows, &d->opts));
    TRY_TO(failed, frgi_fe_cascade_get(fresh, c));
    frgi_fe_cascade_destroy(d->cascade, d->ctx);
    d->cascade = fresh;
    return FRG_OK;
failed:
    frgi_at(d->ctx, "%s", path);
    frgi_fe_cascade_destroy(fresh, d->ctx);
    return status;
}

frg_status frgi_fe_plan_load(frg_demean *d, const char *path)
{
    if (frgi_fe_cascade_device(d->cascade)) {
        FAIL(d->ctx, E_UNSUPPORTED, "a plan on a device is not read from a file: make it anew");
    }
    frg_checkpoint *c;
    const frg_status read = frgi_checkpoint_load(&c, d->ctx, path);
    if (read != FRG_OK) {
        return read;
    }
    const frg_status status = frgi_fe_plan_take(d, c, path);
    frg_checkpoint_destroy(c);
    return status;
}

frg_status frg_demean_load(frg_demean *d, const char *path)
{
    if (!d) {
        return FRG_BAD_ARG;
    }
    REQUIRE(d->ctx, path, "frg_demean_load takes a path");
    frgi_run_begins(d->ctx);
    return frgi_fe_plan_load(d, path);
}
