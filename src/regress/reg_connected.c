/* reg_connected.c - the connected sets of the first two effects (mobility groups; Abowd, Creecy and
 * Kramarz 2002).
 *
 * Vertices: the levels of both effects; edges: the rows.  Effects of different sets cannot be
 * compared.  A level of the first effect is the root of every set, and levels are numbered as they
 * appear, so that of two sets of one size the one whose first row comes first is the larger.
 */
#include "fe/fe_union.h"
#include "regress/reg_frame.h"

typedef struct {
    int32_t root;
    double rows;
} set;

static int by_size(const void *a, const void *b, const void *user)
{
    (void)user;
    const set *const s = a, *const t = b;
    return s->rows != t->rows ? (s->rows < t->rows ? 1 : -1) : s->root - t->root;
}

frg_status frgi_find_pair(frg_context *ctx, const frgi_formula *formula, const frgi_frame *f,
                          int pair[2])
{
    int found = 0;
    for (int q = 0; q < formula->n_effects && found < 2; q++) {
        if (formula->effects[q].intercept) {
            pair[found++] = q;
        }
    }
    if (found < 2) {
        FAIL(ctx, E_OPTION, "connected sets are those of two fixed effects, the formula has %s",
             found ? "one" : "none");
    }
    const int64_t levels = f->levels[pair[0]] + f->levels[pair[1]];
    if (levels > INT32_MAX) {
        FAIL(ctx, E_TOO_BIG, "connected sets of %lld levels", (long long)levels);
    }
    return FRG_OK;
}

frg_status frgi_number_sets(frg_context *ctx, const int32_t *parent, const double *rows,
                            int64_t levels, int32_t *group, int32_t *n_groups)
{
    set *sets;
    int32_t n = 0;
    TRY(NEW(ctx, &sets, levels, "connected sets"));
    for (int64_t l = 0; l < levels; l++) {
        group[l] = 0;
        if (parent[l] == (int32_t)l && rows[l] > 0) {
            sets[n++] = (set){.root = (int32_t)l, .rows = rows[l]};
        }
    }
    frgi_sort(sets, n, sizeof *sets, by_size, NULL);
    for (int32_t k = 0; k < n; k++) {
        group[sets[k].root] = k + 1;
    }
    for (int64_t l = 0; l < levels; l++) { /* roots come before their levels */
        group[l] = group[parent[l]];
    }
    DROP(ctx, &sets);
    *n_groups = n;
    return FRG_OK;
}

frg_status frgi_connected_rows(int32_t *group, int32_t *n_groups, frg_context *ctx,
                               const frgi_frame *f, const frgi_formula *formula,
                               const double *counts)
{
    int pair[2];
    TRY(frgi_find_pair(ctx, formula, f, pair));
    const int32_t *const a = f->codes + pair[0] * f->n, *const b = f->codes + pair[1] * f->n;
    const int64_t levels = f->levels[pair[0]], all = levels + f->levels[pair[1]];
    int32_t *parent = NULL, *of_level = NULL;
    double *rows = NULL;
    frg_status status;
    TRY_TO(done, NEW(ctx, &parent, all, "connected sets"));
    TRY_TO(done, NEW(ctx, &of_level, levels, "connected sets"));
    TRY_TO(done, NEW0(ctx, &rows, levels, "connected sets"));
    for (int64_t l = 0; l < all; l++) {
        parent[l] = (int32_t)l;
    }
    for (int64_t i = 0; i < f->n; i++) {
        fe_join(parent, a[i], (int32_t)(levels + b[i]));
    }
    for (int64_t l = 0; l < levels; l++) {
        parent[l] = fe_root_of(parent, (int32_t)l);
    }
    for (int64_t i = 0; i < f->n; i++) {
        rows[parent[a[i]]] += counts ? counts[i] : 1;
    }
    TRY_TO(done, frgi_number_sets(ctx, parent, rows, levels, of_level, n_groups));
    for (int64_t i = 0; i < f->n; i++) {
        group[i] = of_level[a[i]];
    }
done:
    DROP(ctx, &parent);
    DROP(ctx, &of_level);
    DROP(ctx, &rows);
    return status;
}
