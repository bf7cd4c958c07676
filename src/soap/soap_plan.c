/* soap_plan.c - the plan: tasks, the turns of staggered refreshes, workspaces.
 *
 * A step (soap_step.c) is a sequence of parallel loops over the tasks of the plan, largest first,
 * each task one thread.  Where that leaves threads idle, the largest tasks are done first, each by
 * all of them (soap_team.c).  Tasks share nothing but read-only state, so bits do not depend on
 * threads or on what else is in the handle (but for staggered refreshes, whose turns are dealt over
 * all of its factors).
 *
 * Memory: per thread one workspace for the largest: 5 tensors, 3 matrices, panels. */
#include "soap/soap_state.h"

enum { MOST_STEPS = 1024 };

int64_t frgi_soap_stagger_interval(const frg_soap_opts *o)
{
    int64_t most = o->frequency ? MOST_STEPS : o->precondition_frequency;
    for (int64_t i = 0; i < o->n_frequencies && o->frequencies; i++) {
        most = o->frequencies[i][1] > most ? o->frequencies[i][1] : most;
    }
    return most < MOST_STEPS ? most : MOST_STEPS;
}

void frgi_soap_drop_plan(frg_soap *soap)
{
    frgi_arena_close(&soap->plan.arena, soap->ctx);
    soap->plan.arena = (frgi_arena){0};
    DROP(soap->ctx, &soap->plan.workspaces);
    DROP(soap->ctx, &soap->plan.factor_tasks);
    DROP(soap->ctx, &soap->plan.param_tasks);
    DROP(soap->ctx, &soap->plan.costs);
    DROP(soap->ctx, &soap->plan.ranges);
    soap->plan.n_factors = 0;
    soap->plan.ready = false;
}

/** Most work first, by Shell's sort.  The order of equal ones decides the turns of staggered
 *  refreshes, and so their bits: it must stay. */
static void sort_by_cost(soap_task *tasks, int64_t n)
{
    int64_t gap = 1;
    while (gap < n / 3) {
        gap = 3 * gap + 1;
    }
    for (; gap > 0; gap /= 3) {
        for (int64_t i = gap; i < n; i++) {
            const soap_task x = tasks[i];
            int64_t j = i;
            for (; j >= gap && tasks[j - gap].cost < x.cost; j -= gap) {
                tasks[j] = tasks[j - gap];
            }
            tasks[j] = x;
        }
    }
}

/** Refreshes of staggered groups are dealt to the steps of the interval, the dearest first, each to
 *  the step that has least so far. */
static void stagger_refreshes(frg_soap *soap)
{
    for (int64_t g = 0; g < soap->n_groups; g++) {
        const frg_soap_opts *const o = &soap->groups[g];
        double load[MOST_STEPS] = {0};
        const int64_t f = frgi_soap_stagger_interval(o);
        for (int64_t i = 0; o->stagger && i < soap->plan.n_factors; i++) {
            const soap_task *const t = &soap->plan.factor_tasks[i];
            if (t->param->group != g) {
                continue;
            }
            int64_t least = 0;
            for (int64_t s = 1; s < f; s++) {
                least = load[s] < load[least] ? s : least;
            }
            const double n = (double)t->factor->size;
            load[least] += n * n * n;
            t->factor->refresh_offset = least;
        }
    }
}

/** Sizes of the largest parameter and factor, and how many factors there are. */
typedef struct {
    ptrdiff_t count, size;
    int64_t factors;
} extent;

static extent extent_of(const frg_soap *soap)
{
    extent e = {0};
    for (int64_t i = 0; i < soap->n_params; i++) {
        const soap_param *const p = soap->params[i];
        e.factors += p->n_factors;
        e.count = p->count > e.count ? p->count : e.count;
        for (int k = 0; k < p->n_factors; k++) {
            e.size = p->factors[k].size > e.size ? p->factors[k].size : e.size;
        }
    }
    return e;
}

/** The workspace of thread t. */
static soap_workspace layout_workspace(const frg_soap *soap, frgi_arena *a, int t, const extent *e)
{
    const frgi_product_way way = frgi_product_way_of(soap->ctx);
    soap_workspace work = {.team = 1};
    if (e->size > 0) {
        const int team = t == 0 ? soap->threads : 1; /* it leads where all take part */
        frgi_qr_extent largest = {0};
        frgi_qr_extend(&largest, e->size, e->size);
        frgi_qr_workspace_take(a, &work.qr, way, false, &largest, team, true, true, false);
    }
    frgi_product_workspace_take(a, &work.product, way);
    work.g = TAKE(a, float, e->count);
    work.x = TAKE(a, float, 2 * e->count);
    work.y = TAKE(a, float, 2 * e->count);
    return work;
}

static size_t task_bytes(const frg_soap *soap, int64_t factors)
{
    return (size_t)(factors + soap->n_params) * sizeof(soap_task);
}

size_t frgi_soap_plan_bytes(const frg_soap *soap)
{
    frgi_arena counted = {0};
    const extent e = extent_of(soap);
    for (int t = 0; t < soap->threads; t++) {
        (void)layout_workspace(soap, &counted, t, &e);
    }
    return frgi_add(counted.used, task_bytes(soap, e.factors));
}

frg_status frgi_soap_plan(frg_soap *soap)
{
    TRY(frgi_soap_open(soap));
    if (soap->plan.ready) {
        return FRG_OK;
    }
    frg_context *const ctx = soap->ctx;
    frgi_soap_drop_plan(soap);
    const extent e = extent_of(soap);
    const int64_t n = e.factors;
    TRY(NEW(ctx, &soap->plan.factor_tasks, n, "tasks"));
    TRY(NEW(ctx, &soap->plan.param_tasks, soap->n_params, "tasks"));
    TRY(NEW(ctx, &soap->plan.costs, n > soap->n_params ? n : soap->n_params, "tasks"));
    TRY(NEW(ctx, &soap->plan.ranges, soap->n_params, "ranges"));
    TRY(NEW0(ctx, &soap->plan.workspaces, soap->threads, "workspaces"));
    frgi_soap_note_ranges(soap);
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        double sizes = 1;
        for (int k = 0; k < p->n_factors; k++) {
            const double d = (double)p->factors[k].size;
            sizes += d;
            soap->plan.factor_tasks[soap->plan.n_factors++] =
                (soap_task){p, &p->factors[k], 5 * d * d * d + d * (double)p->count};
        }
        soap->plan.param_tasks[i] = (soap_task){p, NULL, sizes * (double)p->count};
    }
    sort_by_cost(soap->plan.factor_tasks, soap->plan.n_factors);
    sort_by_cost(soap->plan.param_tasks, soap->n_params);
    stagger_refreshes(soap);
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < soap->threads; t++) {
            soap->plan.workspaces[t] = layout_workspace(soap, &soap->plan.arena, t, &e);
        }
        if (pass == 0) {
            TRY(frgi_arena_open(&soap->plan.arena, ctx, "room for the threads of an optimizer"));
        }
    }
    soap->plan.ready = true;
    return FRG_OK;
}

size_t frg_soap_state_bytes(const frg_soap *soap)
{
    size_t sum = 0;
    for (int64_t i = 0; soap && i < soap->n_params; i++) {
        sum = frgi_add(sum, soap->params[i]->state_bytes);
    }
    return sum;
}

size_t frg_soap_bytes(const frg_soap *soap)
{
    if (!soap) {
        return 0;
    }
    size_t states = 0;
    for (int64_t i = 0; i < soap->n_open; i++) {
        states += soap->params[i]->state.bytes;
    }
    const size_t tasks = soap->plan.ready ? task_bytes(soap, soap->plan.n_factors) : 0;
    return states + soap->plan.arena.bytes + soap->eigh.arena.bytes + tasks;
}
