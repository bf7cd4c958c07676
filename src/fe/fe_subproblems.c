/* fe_subproblems.c - see fe_subproblems.h.
 *
 *     study     rows and levels of each component
 *     assign    components to subproblems: each large one is one, the middle ones together are one,
 *               the small ones go with the largest
 *     take      the eliminated levels of each with their rows, levels renumbered; 4 bytes a row and
 *               factor more
 *     solve     gather b, run the subproblem's cascade, scatter a; those with the fewest rows first
 *
 * The subproblem of the middle ones is split once more by its own cascade where it has to be: what
 * is middle in the whole is large there.
 */
#include "fe/fe_subproblems.h"

#include <math.h>
#include <string.h>

#include "fe/fe_graph.h"
#include "fe/fe_runs.h"
#include "fe/fe_steps.h"

enum {
    LARGE_SHARE = 16,  /* a component with one in so many rows is a subproblem of its own */
    SMALL_LEVELS = 256 /* CG ends soon with so few, whatever they are: no reason to split */
};

typedef struct {
    fe_rows rows;
    int32_t *level; /* rows.n_reduced: the whole's reduced unknown */
    int64_t components;
    fe_cascade *cascade;
    frgi_arena arena[FE_HOST_LANES + 1];
    fe_block_work work[FE_HOST_LANES + 1]; /* by lanes, laid out when first asked for */
    int64_t steps;                         /* the most that a solve took */
    double lambda
        [FE_MAX_LANES]; /* of the columns of the current block: the smallest Ritz value seen */
    double error[FE_MAX_LANES]; /* of the last solve, where choose_for_factor has computed it */
    double seen[FE_MAX_LANES];  /* audits of the columns of the current block */
    double audit;               /* the largest that was committed */
    bool prepared;
    bool to_factor; /* the current solve factors it */
} subproblem;

struct fe_subproblems {
    int64_t n;
    subproblem *of;         /* n, ascending by rows */
    int lane[FE_MAX_LANES]; /* the columns of the last solve, as subproblem.lambda counts them */
    bool at_end;
};

/* ---- which components make a subproblem ------------------------------------------------------ */

typedef struct {
    int64_t levels, rows, elims;
    int32_t subproblem; /* -1: none */
} component;

static frg_status study_components(const fe_rows *whole, frg_context *ctx, const int32_t *label,
                                   component *c)
{
    for (int64_t l = 0; l < whole->n_reduced; l++) {
        c[label[l]].levels++;
    }
    fe_runs runs = frgi_fe_runs(whole, ctx);
    for (const fe_rows *w; (w = frgi_fe_runs_next(&runs));) {
        for (int64_t u = 0; u < w->n_elim; u++) { /* by the component of its first row */
            component *const mine = &c[label[w->index[w->elim_start[u] * w->n_remaining]]];
            mine->rows += w->elim_start[u + 1] - w->elim_start[u];
            mine->elims++;
        }
    }
    return frgi_fe_runs_close(&runs);
}

/** c[].subproblem; returns the number of subproblems.  Large components come first, in the order of
 *  their levels; then the middle ones together, if there are any; the small ones go with the
 *  largest. */
static int64_t assign_subproblems(const fe_rows *g, component *c, int64_t count)
{
    int64_t most = 0;
    int32_t next = 0, with_small = 0;
    for (int64_t i = 0; i < count; i++) {
        const bool large = c[i].levels > SMALL_LEVELS && c[i].rows >= g->n / LARGE_SHARE;
        c[i].subproblem = large ? next++ : -1;
        if (large && c[i].rows > most) {
            most = c[i].rows;
            with_small = c[i].subproblem;
        }
    }
    bool middle = false;
    for (int64_t i = 0; i < count; i++) {
        if (c[i].subproblem < 0 && c[i].levels > 1) {
            const bool small = c[i].levels <= SMALL_LEVELS;
            c[i].subproblem = small ? with_small : next;
            middle = middle || !small;
        }
    }
    return next + middle;
}

/* ---- a subproblem's rows --------------------------------------------------------------------- */

/** Counts components, rows, eliminated levels and reduced unknowns of the subproblems. */
static void count_subproblems(const component *c, int64_t count, subproblem *p)
{
    for (int64_t i = 0; i < count; i++) {
        if (c[i].subproblem >= 0) {
            subproblem *const mine = &p[c[i].subproblem];
            mine->components++;
            mine->rows.n_reduced += c[i].levels;
            mine->rows.n_elim += c[i].elims;
            mine->rows.n += c[i].rows;
        }
    }
}

static frg_status allocate_subproblem(frg_context *ctx, const fe_rows *g, subproblem *p)
{
    fe_rows *r = &p->rows;
    r->n_factors = g->n_factors;
    r->elim_factor = g->elim_factor;
    r->n_remaining = g->n_remaining;
    r->weighted = g->weighted;
    r->steps = g->steps;
    TRY(NEW(ctx, &p->level, r->n_reduced, "subproblem's levels"));
    TRY(NEW0(ctx, &r->factor, r->n_factors, "subproblem's factors"));
    TRY(NEW(ctx, &r->elim_start, r->n_elim + 1, "subproblem's eliminated levels"));
    TRY(NEW(ctx, &r->elim_inverse, r->n_elim, "subproblem's eliminated levels"));
    TRY(NEW(ctx, &r->index, (r->n + FE_ROWS_AHEAD) * r->n_remaining, "subproblem's rows"));
    TRY(NEW(ctx, &r->level_weight, r->n_reduced, "subproblem's levels"));
    TRY(NEW(ctx, &r->level_inverse, r->n_reduced, "subproblem's levels"));
    if (g->weighted) {
        TRY(NEW(ctx, &r->weight, r->n, "subproblem's weights"));
    }
    memset(r->index + r->n * r->n_remaining, 0,
           (size_t)(FE_ROWS_AHEAD * r->n_remaining) * sizeof *r->index);
    return FRG_OK;
}

/** Levels of the subproblems in the whole's order, factor after factor; place[l]: l's number within
 *  its subproblem. */
static void take_levels(const fe_rows *g, const int32_t *owner, int64_t n, subproblem *p,
                        int32_t *place)
{
    for (int64_t i = 0; i < n; i++) {
        p[i].rows.n_reduced = 0;
    }
    for (int q = 0; q < g->n_factors; q++) {
        for (int64_t i = 0; i < n; i++) {
            const bool eliminated = q == g->elim_factor;
            p[i].rows.factor[q] = (fe_factor){.levels = eliminated ? p[i].rows.n_elim : 0,
                                              .first = eliminated ? -1 : p[i].rows.n_reduced};
        }
        for (int64_t l = g->factor[q].first;
             q != g->elim_factor && l < g->factor[q].first + g->factor[q].levels; l++) {
            if (owner[l] < 0) {
                continue;
            }
            subproblem *mine = &p[owner[l]];
            fe_rows *r = &mine->rows;
            place[l] = (int32_t)r->n_reduced;
            mine->level[r->n_reduced] = (int32_t)l;
            r->level_weight[r->n_reduced] = g->level_weight[l];
            r->level_inverse[r->n_reduced++] = g->level_inverse[l];
            r->factor[q].levels++;
        }
    }
}

/** Appends the eliminated levels of a window to their subproblems. */
static void take_elims(const fe_rows *g, const int32_t *owner, const int32_t *place, subproblem *p)
{
    for (int64_t u = 0; u < g->n_elim; u++) {
        const int64_t begin = g->elim_start[u], rows = g->elim_start[u + 1] - begin;
        const int32_t *index = g->index + begin * g->n_remaining;
        if (owner[index[0]] < 0) {
            continue;
        }
        fe_rows *r = &p[owner[index[0]]].rows;
        r->elim_start[r->n_elim] = r->n;
        r->elim_inverse[r->n_elim++] = g->elim_inverse[u];
        for (int64_t i = 0; i < rows * g->n_remaining; i++) {
            r->index[r->n * g->n_remaining + i] = place[index[i]];
        }
        if (g->weight) {
            memcpy(r->weight + r->n, g->weight + begin, (size_t)rows * sizeof *g->weight);
        }
        r->n += rows;
    }
}

static frg_status take_rows(const fe_rows *g, frg_context *ctx, const int32_t *owner,
                            const int32_t *place, int64_t n, subproblem *p)
{
    for (int64_t i = 0; i < n; i++) {
        p[i].rows.n_elim = p[i].rows.n = 0;
    }
    fe_runs runs = frgi_fe_runs(g, ctx);
    for (const fe_rows *w; (w = frgi_fe_runs_next(&runs));) {
        take_elims(w, owner, place, p);
    }
    for (int64_t i = 0; i < n; i++) {
        p[i].rows.elim_start[p[i].rows.n_elim] = p[i].rows.n;
    }
    return frgi_fe_runs_close(&runs);
}

/* ---- creating -------------------------------------------------------------------------------- */

static bool goes_before(const subproblem *x, const subproblem *y)
{
    return x->rows.n != y->rows.n ? x->rows.n < y->rows.n : x->level[0] < y->level[0];
}

/** Fewest rows first.  There are LARGE_SHARE + 1 subproblems at most, and frgi_sort holds no
 *  element of their size. */
static void sort_subproblems(subproblem *p, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const subproblem moved = p[i];
        int64_t at = i;
        for (; at > 0 && goes_before(&moved, &p[at - 1]); at--) {
            p[at] = p[at - 1];
        }
        p[at] = moved;
    }
}

/** A subproblem may use memory in proportion to its rows. */
static frg_status make_cascade(subproblem *p, frg_context *ctx, const fe_rows *g,
                               const frg_demean_opts *o)
{
    frg_demean_opts own = *o;
    own.fill_cap =
        1 + (size_t)((double)frgi_fe_fill_cap(ctx, o) * (double)p->rows.n / (double)g->n);
    TRY(frgi_fe_rows_cut(&p->rows, ctx));
    return frgi_fe_cascade_create(&p->cascade, ctx, &p->rows, &own);
}

/** place: n_reduced, takes the numbers within the subproblems */
static frg_status build_subproblems(fe_subproblems *p, frg_context *ctx, const fe_rows *g,
                                    const frg_demean_opts *o, const int32_t *owner, int32_t *place)
{
    for (int64_t i = 0; i < p->n; i++) {
        TRY(allocate_subproblem(ctx, g, &p->of[i]));
    }
    take_levels(g, owner, p->n, p->of, place);
    const frg_status status = take_rows(g, ctx, owner, place, p->n, p->of);
    if (status != FRG_OK) {
        return status;
    }
    sort_subproblems(p->of, p->n); /* from here on their rows stay where they are */
    for (int64_t i = 0; i < p->n; i++) {
        TRY(make_cascade(&p->of[i], ctx, g, o));
    }
    return FRG_OK;
}

frg_status frgi_fe_subproblems_create(fe_subproblems **out, frg_context *ctx, const fe_rows *g,
                                      const frg_demean_opts *o)
{
    *out = NULL;
    int64_t count = 0;
    int32_t *label = NULL, *place = NULL;
    component *c = NULL;
    fe_subproblems *p = NULL;
    frg_status status;
    status = frgi_fe_label_components(g, ctx, &label, &count);
    if (status != FRG_OK || !label) { /* NULL: one component */
        goto done;
    }
    TRY_TO(done, NEW0(ctx, &c, count, "components"));
    status = study_components(g, ctx, label, c);
    if (status != FRG_OK) {
        goto done;
    }
    const int64_t n = assign_subproblems(g, c, count);
    if (n <= 1) {
        goto done;
    }
    TRY_TO(done, NEW0(ctx, &p, 1, "subproblems"));
    p->n = n;
    TRY_TO(done, NEW0(ctx, &p->of, n, "subproblems"));
    TRY_TO(done, NEW0(ctx, &place, g->n_reduced, "numbers within the subproblems"));
    count_subproblems(c, count, p->of);
    for (int64_t l = 0; l < g->n_reduced; l++) {
        label[l] = c[label[l]].subproblem;
    }
    status = build_subproblems(p, ctx, g, o, label, place);
done:
    DROP(ctx, &place);
    DROP(ctx, &label);
    DROP(ctx, &c);
    if (status != FRG_OK) {
        frgi_fe_subproblems_destroy(p, ctx);
        return status;
    }
    *out = p;
    return FRG_OK;
}

void frgi_fe_subproblems_destroy(fe_subproblems *p, frg_context *ctx)
{
    if (!p) {
        return;
    }
    for (int64_t i = 0; p->of && i < p->n; i++) {
        subproblem *mine = &p->of[i];
        frgi_fe_cascade_destroy(mine->cascade, ctx);
        frgi_fe_rows_destroy(&mine->rows, ctx);
        DROP(ctx, &mine->level);
        for (int lanes = 1; lanes <= FE_HOST_LANES; lanes++) {
            if (mine->arena[lanes].base) {
                mine->rows.steps->close(&mine->arena[lanes], ctx);
            }
        }
    }
    DROP(ctx, &p->of);
    DROP(ctx, &p);
}

/* ---- solving --------------------------------------------------------------------------------- */

static frg_status need_work(subproblem *p, frg_context *ctx, int lanes)
{
    if (p->arena[lanes].base) {
        return FRG_OK;
    }
    frgi_arena fresh = {0};
    frgi_fe_block_work_layout(&fresh, &p->rows, lanes, true, &p->work[lanes]);
    TRY(p->rows.steps->open(&fresh, ctx, "work memory of a subproblem"));
    p->arena[lanes] = fresh;
    frgi_fe_block_work_layout(&p->arena[lanes], &p->rows, lanes, true, &p->work[lanes]);
    return FRG_OK;
}

static frg_status gather(const subproblem *p, int lanes, const double *from, double *to)
{
    return p->rows.steps->reduced.gather(p->rows.n_reduced, lanes, p->level, from, to);
}

/** error[k] of one subproblem for the whole's sums s; lambda: of the whole, for one that has made
 *  no iteration. */
static frg_status subproblem_error(const fe_subproblems *all, const subproblem *p, int lanes,
                                   const double *s, const double *lambda, bool prepared,
                                   double *error)
{
    const fe_block_work *own = &p->work[lanes];
    double mine[FE_MAX_LANES];
    for (int k = 0; k < lanes; k++) {
        const double seen = p->lambda[all->lane[k]];
        mine[k] = isnan(seen) ? lambda[k] : seen;
    }
    TRY(gather(p, lanes, s, own->keep));
    return frgi_fe_cascade_error(p->cascade, own, own->keep, mine, prepared, error);
}

/** Chooses the subproblems that hold more than half their share of a column's error to be
 *  factored. */
static frg_status choose_for_factor(fe_subproblems *p, const fe_block_work *w, const double *lambda)
{
    const int lanes = w->lanes;
    double total[FE_MAX_LANES] = {0};
    for (int64_t i = 0; i < p->n; i++) {
        TRY(subproblem_error(p, &p->of[i], w->lanes, w->cg.r, lambda, true, p->of[i].error));
        for (int k = 0; k < lanes; k++) {
            total[k] += fabs(p->of[i].error[k]);
        }
    }
    for (int64_t i = 0; i < p->n; i++) {
        for (int k = 0; k < lanes; k++) { /* one with an unknown error too */
            p->of[i].to_factor |=
                !(2 * (double)p->n * fabs(p->of[i].error[k]) < total[k]) && total[k] != 0;
        }
    }
    return FRG_OK;
}

static double smaller_known(double a, double b)
{
    return a < b || isnan(b) ? a : b;
}

static void merge_column(fe_cg_column *whole, const fe_cg_column *mine, double energy)
{
    whole->done = whole->done && mine->done;
    whole->steps = mine->steps > whole->steps ? mine->steps : whole->steps;
    whole->energy += energy;
    whole->lambda = smaller_known(mine->lambda, whole->lambda);
}

/** What the subproblems need before a solve: work memory, and where their cascades begin.  All the
 *  memory first: when one is stopped, the error bound is still asked of every subproblem. */
static frg_status prepare(fe_subproblems *p, frg_context *ctx, int lanes)
{
    for (int64_t i = 0; i < p->n; i++) {
        TRY(need_work(&p->of[i], ctx, lanes));
        TRY(need_work(&p->of[i], ctx, 1)); /* a cascade's probe */
        p->of[i].to_factor = false;
    }
    for (int64_t i = 0; i < p->n; i++) {
        subproblem *mine = &p->of[i];
        if (!mine->prepared) {
            const frg_status status = frgi_fe_cascade_prepare(mine->cascade, ctx, &mine->work[1]);
            if (status != FRG_OK) {
                return status;
            }
            mine->prepared = true;
        }
    }
    return FRG_OK;
}

/** A refinement begins where a subproblem's solve began: one that CG through the rows solves keeps
 *  to it. */
static fe_cascade_start start_of(const subproblem *p, fe_cascade_start whole)
{
    if (p->to_factor) {
        return FE_FROM_FACTOR;
    }
    return whole == FE_FROM_ROWS || !frgi_fe_cascade_begins_beyond(p->cascade) ? FE_FROM_ROWS
                                                                               : FE_FROM_ASSEMBLED;
}

frg_status frgi_fe_subproblems_solve(fe_subproblems *p, frg_context *ctx, const fe_block_work *w,
                                     fe_cascade_start start, const fe_cg_target *goal,
                                     fe_cg_column *column)
{
    const int lanes = w->lanes;
    fe_cg_target target[FE_MAX_LANES];
    double lambda[FE_MAX_LANES], energy[FE_MAX_LANES];
    for (int k = 0; k < lanes; k++) {
        target[k] = goal[k];
        target[k].total /= (double)p->n; /* the squared gradients of the subproblems add up */
        lambda[k] = goal[k].lambda;
        column[k] = (fe_cg_column){.done = 1, .lambda = (double)NAN};
        p->lane[k] = goal[k].lane;
        for (int64_t i = 0; i < p->n && isnan(lambda[k]); i++) { /* a column's first solve */
            p->of[i].lambda[p->lane[k]] = (double)NAN;
        }
    }
    frg_status status = prepare(p, ctx, w->lanes);
    TRY(status);
    if (start == FE_FROM_FACTOR && status == FRG_OK) {
        TRY(choose_for_factor(p, w, lambda));
    }
    p->at_end = true;
    for (int64_t i = 0; i < p->n && status == FRG_OK; i++) {
        subproblem *mine = &p->of[i];
        const fe_block_work *own = &mine->work[w->lanes];
        fe_cg_column done[FE_MAX_LANES];
        TRY(gather(mine, w->lanes, w->cg.r, own->cg.r));
        status = frgi_fe_cascade_solve(mine->cascade, ctx, own, mine->work, start_of(mine, start),
                                       target, done);
        TRY(status);
        TRY(mine->rows.steps->reduced.scatter(mine->rows.n_reduced, w->lanes, mine->level,
                                              own->answer, w->cg.r, w->answer, energy));
        for (int k = 0; k < lanes; k++) {
            target[k].within -= energy[k];
            merge_column(&column[k], &done[k], energy[k]);
            double *const seen = &mine->lambda[p->lane[k]];
            *seen = smaller_known(done[k].lambda, *seen);
            mine->steps = done[k].steps > mine->steps ? done[k].steps : mine->steps;
        }
        p->at_end = p->at_end && (frgi_fe_cascade_is_direct(mine->cascade) ||
                                  (start == FE_FROM_FACTOR && !mine->to_factor));
    }
    for (int k = 0; k < lanes && status != FRG_OK; k++) {
        column[k].done = 0;
    }
    return status;
}

frg_status frgi_fe_subproblems_error(const fe_subproblems *p, const fe_block_work *w,
                                     const double *s, const double *lambda, bool prepared,
                                     double *error)
{
    const int lanes = w->lanes;
    double mine[FE_MAX_LANES];
    memset(error, 0, (size_t)lanes * sizeof *error);
    for (int64_t i = 0; i < p->n; i++) {
        TRY(subproblem_error(p, &p->of[i], w->lanes, s, lambda, prepared, mine));
        for (int k = 0; k < lanes; k++) {
            error[k] += mine[k];
        }
    }
    return FRG_OK;
}

/* ---- reporting ------------------------------------------------------------------------------- */

frg_status frgi_fe_subproblems_record(fe_subproblems *p, int lane, const double *mean, double scale)
{
    for (int64_t i = 0; i < p->n; i++) {
        subproblem *mine = &p->of[i];
        if (!mine->prepared) {
            continue;
        }
        double *const own = mine->work[1].keep;
        double most;
        TRY(gather(mine, 1, mean, own));
        TRY(mine->rows.steps->reduced.largest(mine->rows.n_reduced, 1, own, &most));
        mine->seen[lane] = most * scale;
        fe_subproblems *const inner = frgi_fe_cascade_subproblems(mine->cascade);
        if (inner) {
            TRY(frgi_fe_subproblems_record(inner, lane, own, scale));
        }
    }
    return FRG_OK;
}

void frgi_fe_subproblems_commit(fe_subproblems *p, int lanes)
{
    for (int64_t i = 0; i < p->n; i++) {
        subproblem *mine = &p->of[i];
        for (int k = 0; k < lanes; k++) {
            mine->audit = mine->seen[k] > mine->audit ? mine->seen[k] : mine->audit;
        }
        fe_subproblems *const inner = frgi_fe_cascade_subproblems(mine->cascade);
        if (inner) {
            frgi_fe_subproblems_commit(inner, lanes);
        }
    }
}

bool frgi_fe_subproblems_at_end(const fe_subproblems *p)
{
    return p->at_end;
}

int64_t frgi_fe_subproblems_count(const fe_subproblems *p)
{
    int64_t count = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const fe_subproblems *inner = frgi_fe_cascade_subproblems(p->of[i].cascade);
        count += inner ? frgi_fe_subproblems_count(inner) : 1;
    }
    return count;
}

frg_demean_part frgi_fe_subproblems_get(const fe_subproblems *p, int64_t i)
{
    const subproblem *mine = p->of;
    for (;; mine++) {
        const fe_subproblems *inner = frgi_fe_cascade_subproblems(mine->cascade);
        const int64_t count = inner ? frgi_fe_subproblems_count(inner) : 1;
        if (i < count && inner) {
            return frgi_fe_subproblems_get(inner, i);
        }
        if (i < count) {
            break;
        }
        i -= count;
    }
    return (frg_demean_part){.n = mine->rows.n,
                             .levels = mine->rows.n_elim + mine->rows.n_reduced,
                             .components = mine->components,
                             .iterations = mine->steps,
                             .audit = mine->audit,
                             .method = frgi_fe_cascade_method(mine->cascade)};
}

const char *frgi_fe_subproblems_method(const fe_subproblems *p)
{
    int64_t factored = 0;
    const int64_t count = frgi_fe_subproblems_count(p);
    for (int64_t i = 0; i < count; i++) {
        factored += strcmp(frgi_fe_subproblems_get(p, i).method, "direct") == 0;
    }
    return factored == count ? "direct by components"
           : factored == 0   ? "cg by components"
                             : "direct and cg by components";
}

size_t frgi_fe_subproblems_bytes(const fe_subproblems *p)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const subproblem *mine = &p->of[i];
        bytes += frgi_fe_rows_bytes(&mine->rows) + frgi_fe_cascade_factor_bytes(mine->cascade);
        for (int lanes = 1; lanes <= FE_HOST_LANES; lanes++) {
            bytes += mine->arena[lanes].bytes;
        }
    }
    return bytes;
}

frg_status frgi_fe_subproblems_rank(fe_subproblems *p, frg_context *ctx, bool cheap_only,
                                    int64_t *rank)
{
    frg_status status = FRG_OK;
    int64_t total = 0, mine = 0;
    for (int64_t i = 0; status == FRG_OK && i < p->n && mine >= 0; i++) {
        status = frgi_fe_cascade_count(p->of[i].cascade, ctx, cheap_only, &mine);
        total += mine;
    }
    *rank = status == FRG_OK && mine >= 0 ? total : -1;
    return status;
}
