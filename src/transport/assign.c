/* assign.c - assignments from coarse to fine: the duals of a problem of half the rows and
 * columns are where a cold one begins.
 *
 * From every second row p and column the duals u_p of the smaller problem are known, and v_j =
 * min_p c_pj - u_p is feasible and near the end for costs that are smooth in both indices' points:
 * at n = 3000 a tenth of the looks at rows are left. So do costs that have moved far from those of
 * the last duals: where a third of the rows find their column taken these are worse than none (n =
 * 1200: 600000 looks at rows, 25000 from coarse to fine).  Costs of a plan that are summed over
 * other rows than before have other terms of rows and columns, which are nearly alike for a point
 * and its image: half of what the last assignment's entries cost more is the column's (n = 5000:
 * 400000 looks at rows without that, 20000 with it).  The work itself is in assign.tmpl.h.
 */
#include "transport/assign.h"

enum {
    SMALLEST = 200, /* of a problem that begins with half of itself */
    LISTED = 500,   /* of one whose paths have lists */
    TOO_MANY =
        3 /* the part of the rows that find their column taken where the last duals are no longer
             near */
};

#pragma GCC visibility push(hidden)
DECLARE_LEVELS(frgi_assign_ops[2], frgi_assign_ops);
#pragma GCC visibility pop

const frgi_assign_ops *frgi_assign_ops_of(const frg_context *ctx)
{
    static const frgi_assign_ops *const table[ISA_COUNT] = EACH_LEVEL(frgi_assign_ops);
    return table[frgi_context_isa(ctx)];
}

/** Lists of all rows. */
static frg_status open_lists(frgi_assign *a, frg_context *ctx, size_t size)
{
    const char *const what = "an assignment";
    const size_t n = (size_t)a->n, bytes = frgi_mul((size_t)a->ld, size);
    char *reals = NULL;
    TRY(NEW(ctx, &a->lists.column, frgi_mul(n, FRGI_ASSIGN_LIST + 2), what));
    TRY(NEW0(ctx, &reals, frgi_mul(bytes, FRGI_ASSIGN_LIST + 5), what));
    a->lists.length = a->lists.column + n * FRGI_ASSIGN_LIST;
    a->lists.row = a->lists.length + n;
    a->lists.cost = reals;
    a->lists.bound = reals + bytes * FRGI_ASSIGN_LIST;
    a->lists.reached = reals + bytes * (FRGI_ASSIGN_LIST + 1);
    a->lists.less = reals + bytes * (FRGI_ASSIGN_LIST + 2);
    a->lists.others = reals + bytes * (FRGI_ASSIGN_LIST + 3);
    a->lists.least = reals + bytes * (FRGI_ASSIGN_LIST + 4);
    return FRG_OK;
}

frg_status frgi_assign_open(frgi_assign *a, frg_context *ctx, int64_t n, bool single)
{
    const char *const what = "an assignment";
    const int64_t half = n / 2, ld = frgi_costs_ld(n), half_ld = frgi_costs_ld(half);
    const size_t size = frgi_costs_size(single), bytes = frgi_mul((size_t)ld, size);
    char *reals = NULL;
    *a = (frgi_assign){.n = n, .ld = ld, .ctx = ctx, .ops = &frgi_assign_ops_of(ctx)[single]};
    TRY(NEW(ctx, &a->column, frgi_mul(4, (size_t)n), what));
    TRY(NEW0(ctx, &reals, frgi_mul(5, bytes), what));
    a->row = a->column + n;
    a->scanned = a->row + n;
    a->waiting = a->scanned + n;
    a->v = reals;
    a->open = reals + bytes;
    a->key = reals + 2 * bytes;
    a->from = reals + 3 * bytes;
    a->paid = reals + 4 * bytes;
    if (n >= LISTED) {
        TRY(open_lists(a, ctx, size));
    }
    if (n < SMALLEST) {
        return FRG_OK;
    }
    char *costs = NULL;
    TRY(NEW0(ctx, &costs, frgi_mul(frgi_mul((size_t)half, (size_t)half_ld), size), what));
    a->coarse_costs = (frgi_costs){costs, half, half, half_ld, single};
    TRY(NEW0(ctx, &a->coarse, 1, what));
    return frgi_assign_open(a->coarse, ctx, half, single);
}

void frgi_assign_close(frgi_assign *a, frg_context *ctx)
{
    char *reals = a->v, *costs = a->coarse_costs.at, *lists = a->lists.cost;
    if (a->coarse) {
        frgi_assign_close(a->coarse, ctx);
    }
    DROP(ctx, &a->coarse);
    DROP(ctx, &a->column);
    DROP(ctx, &reals);
    DROP(ctx, &costs);
    DROP(ctx, &a->lists.column);
    DROP(ctx, &lists);
    *a = (frgi_assign){0};
}

/** Begins with the duals of every second row and column. */
static int64_t begin_coarse(frgi_assign *a, const frgi_costs *c)
{
    a->ops->coarsen(c, &a->coarse_costs);
    frgi_assign_forget(a->coarse);
    frgi_assign_solve(a->coarse, &a->coarse_costs, false);
    a->ops->extend(a, c);
    a->warm = true;
    return a->ops->begin(a, c);
}

void frgi_assign_forget(frgi_assign *a)
{
    a->warm = false;
}

const int32_t *frgi_assign_image(const frgi_assign *a)
{
    return a->column;
}

void frgi_assign_duals(const frgi_assign *a, const frgi_costs *c, double *u, double *v)
{
    for (int64_t j = 0; j < a->n; j++) {
        v[j] = c->single ? (double)((const float *)a->v)[j] : ((const double *)a->v)[j];
    }
    for (int64_t i = 0; i < a->n; i++) {
        u[i] = frgi_costs_get(c, i, a->column[i]) - v[a->column[i]];
    }
}

void frgi_assign_solve(frgi_assign *a, const frgi_costs *c, bool moved)
{
    const bool cold = !a->warm && a->coarse;
    a->moved = moved && a->warm;
    int64_t waiting = cold ? begin_coarse(a, c) : a->ops->begin(a, c);
    if (!cold && a->coarse && !a->moved && waiting > a->n / TOO_MANY) {
        waiting = begin_coarse(a, c);
    }
    a->ops->finish(a, c, waiting);
}
