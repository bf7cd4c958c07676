/* fe_ladder.c - builds the rungs of fe_ladder.h when they are needed, and climbs them.
 *
 * Costs that decide (seconds, one thread, measured on two machines; only their ratios matter):
 * a gradient step through the rows about 2 ns a row and 4 columns, an entry of S half of that.
 */
#include "fe/fe_ladder.h"

#include <math.h>
#include <string.h>

#include "fe/fe_approx_chol.h"
#include "fe/fe_border.h"
#include "fe/fe_classes.h"
#include "fe/fe_direct.h"
#include "fe/fe_parts.h"
#include "fe/fe_schur.h"
#include "fe/fe_union.h"

enum {
    ROW_STEPS = 30,    /* through the rows before S is looked at again: easy graphs need 5 to 15 */
    ROW_PATIENCE = 60, /* so many in sight, and S is looked at right away */
    FEW_STEPS = 20,    /* so few gradient steps need no factor */
    MANY_STEPS = 150   /* so many pay for an approximate factor */
};
static const double CHEAP_PRODUCTS = 1; /* a row: S is assembled at once */
static const double WORTH_PRODUCTS =
    30; /* a row: S is assembled when the rows' gradients are slow */
/* Entries between two factors are differences, w less c_u c_u' / N_u, and carry the rounding of N_u. */
static const double NULL_PIVOT = 1e-9;
static const double FORECAST_WORTH =
    1e8; /* entries in all steps, some tenths of a second: cheaper ones are made */
static const double SECONDS_PER_ROW = 1e-8, SECONDS_PER_ENTRY = 1e-9, SECONDS_PER_AMD_ENTRY = 1e-7;

typedef enum { RUNG_ROWS, RUNG_EXPLICIT, RUNG_DIRECT, RUNG_AC, RUNG_PARTS } rung;
static const char *const rung_names[] = {"cg rows", "cg explicit", "direct",
                                         "cg approximate cholesky", "parts"};

struct fe_ladder {
    const fe_rows *g;
    frg_demean_opts opts;
    frg_context *ctx;
    int threads;
    frgi_isa isa;
    double products; /* estimate of what S costs; -1: not yet asked */
    bool refused;    /* S does not fit fill_cap */
    fe_schur schur;  /* n > 0 once assembled */
    bool border_known;
    bool has_short;   /* with it: float32 gains in products through the rows */
    fe_border border; /* the rows' product where all factors but one are small */
    bool chosen;
    rung choice;     /* beyond the rows */
    bool parted;     /* components were looked at */
    fe_parts *parts; /* NULL: the whole is one */
    bool beyond;     /* gradients through the rows are known not to serve */
    frgi_direct *direct;
    bool factored;
    frgi_ac *ac;
    int32_t *null_set; /* n_coef: sets of levels whose indicator z has S z = 0; made when needed */
    double *ones;      /* Jacobi turned off */
    double *scratch;   /* of a factor's solves */
    size_t scratch_doubles;
    rung used;
};

void frgi_fe_block_work_layout(frgi_arena *a, const fe_rows *g, int kind, fe_block_work *w)
{
    const int lanes = 1 << kind;
    w->kind = kind;
    frgi_fe_row_work_layout(a, g, lanes, &w->rows);
    frgi_fe_cg_layout(a, g->n_coef, lanes, &w->cg);
    w->answer = TAKE(a, double, frgi_mul((size_t)g->n_coef, (size_t)lanes));
    w->keep = TAKE(a, double, frgi_mul((size_t)g->n_coef, (size_t)lanes));
}

frg_status frgi_fe_ladder_create(fe_ladder **out, frg_context *ctx, const fe_rows *g,
                                 const frg_demean_opts *o)
{
    *out = NULL;
    fe_ladder *l;
    TRY(NEW0(ctx, &l, 1, "ladder"));
    l->g = g;
    l->ctx = ctx;
    l->opts = *o;
    l->threads = frg_threads(ctx);
    l->isa = frgi_context_isa(ctx);
    l->products = -1;
    *out = l;
    return FRG_OK;
}

void frgi_fe_ladder_destroy(fe_ladder *l, frg_context *ctx)
{
    if (!l) {
        return;
    }
    frgi_direct_destroy(l->direct);
    frgi_ac_destroy(l->ac);
    frgi_fe_schur_destroy(&l->schur, ctx);
    frgi_fe_border_destroy(&l->border, ctx);
    frgi_fe_parts_destroy(l->parts, ctx);
    DROP(ctx, &l->null_set);
    DROP(ctx, &l->ones);
    DROP(ctx, &l->scratch);
    DROP(ctx, &l);
}

/* ---- building ----------------------------------------------------------------------------------- */

size_t frgi_fe_fill_cap(const frg_context *ctx, const frg_demean_opts *o)
{
    return o->fill_cap > 0 ? o->fill_cap : frgi_memory_allowed(ctx) / 4;
}

/** Bytes that S may take: an entry for each product, but no more of them than pairs of levels. */
static double schur_bytes(const fe_ladder *l)
{
    const double levels = (double)l->g->n_coef;
    return 12 * fmin(l->products, levels * levels);
}

/** Assembles S unless it is there; a matrix over the cap is no failure but a rung that is missing. */
static frg_status build_schur(fe_ladder *l, frg_context *ctx)
{
    if (l->schur.n > 0 || l->refused) {
        return FRG_OK;
    }
    const size_t cap = frgi_fe_fill_cap(ctx, &l->opts);
    if (schur_bytes(l) > (double)cap) {
        l->refused = true;
        return FRG_OK;
    }
    const frg_status status = frgi_fe_schur_create(&l->schur, ctx, l->g, cap);
    l->refused = frgi_direct_refused(ctx, status);
    return l->refused ? FRG_OK : status;
}

/** Scratch for the factors' solves; two factors share the larger. */
static frg_status need_scratch(fe_ladder *l, frg_context *ctx, size_t doubles)
{
    if (doubles > l->scratch_doubles) {
        DROP(ctx, &l->scratch);
        l->scratch_doubles = 0;
        TRY(NEW(ctx, &l->scratch, doubles, "scratch of the factor"));
        l->scratch_doubles = doubles;
    }
    return FRG_OK;
}

static frg_status analyse(fe_ladder *l, frg_context *ctx, double seconds_to_beat)
{
    if (l->direct) {
        return FRG_OK;
    }
    frgi_direct_opts o;
    frgi_direct_defaults(&o);
    o.byte_cap = frgi_fe_fill_cap(ctx, &l->opts);
    if (l->g->n_rest > 1) {
        o.null_pivot = NULL_PIVOT;
    }
    const double entries = seconds_to_beat / SECONDS_PER_AMD_ENTRY;
    o.amd_max_nnz = entries < (double)o.amd_max_nnz ? (int64_t)entries : o.amd_max_nnz;
    const frgi_symmetric s = frgi_fe_schur_view(&l->schur);
    return frgi_direct_analyse(&l->direct, ctx, &s, l->schur.border, l->schur.n_border, &o);
}

static double factor_seconds(const fe_ladder *l)
{
    return frgi_direct_costs(l->direct, frgi_direct_chosen(l->direct)).seconds;
}

static frg_status build_factor(fe_ladder *l, frg_context *ctx)
{
    if (l->factored) {
        return FRG_OK;
    }
    TRY(analyse(l, ctx, INFINITY));
    const frgi_symmetric s = frgi_fe_schur_view(&l->schur);
    const frg_status status = frgi_direct_factor(l->direct, &s);
    if (status != FRG_OK) {
        return status;
    }
    TRY(need_scratch(l, ctx, frgi_direct_scratch(l->direct, FE_MAX_LANES)));
    l->factored = true;
    return FRG_OK;
}

static void drop_factor(fe_ladder *l)
{
    frgi_direct_destroy(l->direct);
    l->direct = NULL;
    l->factored = false;
}

static int factor_of(const fe_rows *g, int32_t level)
{
    int q = 0;
    while (g->factor[q].first < 0 || level < g->factor[q].first ||
           level >= g->factor[q].first + g->factor[q].levels) {
        q++;
    }
    return q;
}

/** The approximate factor takes a Laplacian: within one factor S is one, across factors it is not. */
static frg_status build_ac(fe_ladder *l, frg_context *ctx)
{
    if (l->ac) {
        return FRG_OK;
    }
    const fe_schur *s = &l->schur;
    int64_t *starts = NULL;
    int32_t *columns = NULL;
    double *values = NULL;
    frg_status status;
    TRY_TO(done, NEW(ctx, &starts, s->n + 1, "blocks of the Schur complement"));
    TRY_TO(done, NEW(ctx, &columns, s->starts[s->n], "blocks of the Schur complement"));
    TRY_TO(done, NEW(ctx, &values, s->starts[s->n], "blocks of the Schur complement"));
    int64_t used = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const fe_factor *f = &l->g->factor[factor_of(l->g, (int32_t)i)];
        starts[i] = used;
        for (int64_t j = s->starts[i]; j < s->starts[i + 1]; j++) {
            if (s->columns[j] >= f->first && s->columns[j] < f->first + f->levels) {
                columns[used] = s->columns[j];
                values[used++] = s->values[j];
            }
        }
    }
    starts[s->n] = used;
    const frgi_symmetric blocks = {s->n, starts, columns, values, 0};
    frgi_ac_opts o;
    frgi_ac_defaults(&o);
    o.seed = frg_seed(ctx);
    frgi_ac *ac;
    TRY_TO(done, frgi_ac_create(&ac, ctx, &blocks, &o));
    if (ac) {
        const frg_status room = need_scratch(l, ctx, frgi_ac_scratch(ac, FE_MAX_LANES));
        if (room < 0) {
            frgi_ac_destroy(ac);
            ac = NULL;
        }
        status = room < 0 ? room : status;
        l->ac = ac;
    }
done:
    DROP(ctx, &starts);
    DROP(ctx, &columns);
    DROP(ctx, &values);
    return status;
}

/* ---- applying ----------------------------------------------------------------------------------- */

typedef struct {
    const fe_ladder *l;
    const fe_row_work *work;
    int kind, f32; /* width, and type of the search direction */
} product;

static const fe_coef_ops *coef_ops(const product *p)
{
    return frgi_fe_coef_ops(p->l->isa, p->f32, p->kind);
}

static void rows_product(const product *p, int lanes, bool brief, const void *a, double *y)
{
    const fe_ladder *l = p->l;
    if (l->border.width > 0) {
        frgi_fe_border_apply(&l->border, coef_ops(p), p->work, l->threads, lanes, brief,
                             p->f32 ? sizeof(float) : sizeof(double), a, y);
        return;
    }
    frgi_fe_apply(l->g, coef_ops(p), p->work, l->threads, lanes, brief, a, y);
}

static void times_rows(const void *data, int lanes, const void *a, double *y)
{
    rows_product(data, lanes, false, a, y);
}

static void times_rows_short(const void *data, int lanes, const void *a, double *y)
{
    rows_product(data, lanes, true, a, y);
}

static void times_schur(const void *data, int lanes, const void *a, double *y)
{
    (void)lanes;
    const product *p = data;
    const fe_schur *s = &p->l->schur;
    const fe_coef_ops *ops = coef_ops(p);
    enum { ROWS = 512 };
    const int64_t pieces = (s->n + ROWS - 1) / ROWS;
#pragma omp parallel for num_threads(p->l->threads)                                                \
    schedule(dynamic, 4) if (s->starts[s->n] > 20000)
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t end = (i + 1) * ROWS;
        ops->spmv(i * ROWS, end < s->n ? end : s->n, s->starts, s->columns, s->values, a, y);
    }
}

static void apply_ac(const void *data, int lanes, const void *r, double *z)
{
    const product *p = data;
    frgi_ac_apply(p->l->ac, lanes, r, z, p->l->scratch);
}

static const double *jacobi(const fe_ladder *l, rung which)
{
    if (l->ones) {
        return l->ones;
    }
    return which == RUNG_ROWS ? l->g->level_inverse : l->schur.inverse_diag;
}

/** Small factors leave the rows' product once for all. */
static frg_status build_border(fe_ladder *l, frg_context *ctx)
{
    if (!l->border_known) {
        TRY(frgi_fe_border_create(&l->border, ctx, l->g));
        l->has_short = frgi_fe_has_short(l->border.width > 0 ? &l->border.lean : l->g, l->threads);
        l->border_known = true;
    }
    return FRG_OK;
}

/** Is the way to solve the ladder's to choose? */
static bool is_free(const fe_ladder *l)
{
    return l->opts.method == FRG_FE_AUTO && l->opts.precond == FRG_FE_PRECOND_AUTO;
}

/** Do the columns look ahead, as no other rung comes after this one, and the steps they may make take long? */
static bool looks_ahead(const fe_ladder *l, rung which)
{
    const int64_t entries =
        which == RUNG_ROWS ? l->g->n * l->g->n_rest : l->schur.starts[l->schur.n];
    return !is_free(l) && (double)entries * (double)l->opts.max_iter >= FORECAST_WORTH;
}

/** Conjugate gradients on one of the operators, from w->cg.r, added to w->answer. */
static frg_status gradients(fe_ladder *l, frg_context *ctx, rung which, const fe_block_work *w,
                            int64_t max_steps, const fe_cg_target *goal, fe_cg_column *column)
{
    const int lanes = 1 << w->kind;
    fe_cg_target target[FE_MAX_LANES];
    memcpy(target, goal, (size_t)lanes * sizeof *target);
    for (int k = 0; k < lanes; k++) {
        target[k].forecast = looks_ahead(l, which);
    }
    const product p = {l, &w->rows, w->kind, l->opts.dtype != FRG_FE_F64};
    if (which == RUNG_ROWS) {
        TRY(build_border(l, ctx));
    }
    const fe_system s = {
        .n = l->g->n_coef,
        .times = which == RUNG_ROWS ? times_rows : times_schur,
        .times_short = which == RUNG_ROWS && l->has_short ? times_rows_short : NULL,
        .data = &p,
        .inverse_diag = jacobi(l, which),
        .precondition = which == RUNG_AC ? apply_ac : NULL,
        .precondition_data = &p,
        .level_inverse = l->g->level_inverse,
    };
    const frg_status status =
        frgi_fe_cg_run(ctx, &s, coef_ops(&p), frgi_fe_coef_ops(l->isa, 0, w->kind), &w->cg, lanes,
                       max_steps, rung_names[which], target, column);
    for (int64_t j = 0; j < s.n * lanes; j++) {
        w->answer[j] += w->cg.x[j];
    }
    return status;
}

/** Finds the null space of S that belongs to the graph: levels of one factor that units join, whose indicator z
 *  is the sum of the dummies of these units.  Within a factor S has an entry where a unit joins two levels. */
static frg_status find_null_sets(fe_ladder *l, frg_context *ctx)
{
    if (l->null_set) {
        return FRG_OK;
    }
    const fe_schur *const s = &l->schur;
    TRY(NEW(ctx, &l->null_set, s->n, "null space of S"));
    for (int32_t i = 0; i < s->n; i++) {
        l->null_set[i] = i;
    }
    for (int q = 0; q < l->g->n_factors; q++) {
        const int64_t first = l->g->factor[q].first, end = first + l->g->factor[q].levels;
        for (int64_t i = first < 0 ? end : first; i < end; i++) {
            for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
                if (s->columns[e] >= first && s->columns[e] < end) {
                    fe_join(l->null_set, (int32_t)i, s->columns[e]);
                }
            }
        }
    }
    for (int32_t i = 0; i < s->n; i++) {
        l->null_set[i] = fe_root_of(l->null_set, i);
    }
    return FRG_OK;
}

/** w->cg.r <- r - W z (z'r) / (z'W z) for each z of the null space, W the weights of the levels: what rounding
 *  has left of z'r would all end in the mean of the level that the factor grounds, which may be a light one. */
static void project_on_range(const fe_ladder *l, const fe_block_work *w)
{
    const int lanes = 1 << w->kind;
    const int64_t n = l->g->n_coef;
    double *const sum = w->cg.q, *const weight = w->cg.z;
    memset(sum, 0, (size_t)(n * lanes) * sizeof *sum);
    memset(weight, 0, (size_t)n * sizeof *weight);
    for (int64_t i = 0; i < n; i++) {
        const int64_t z = l->null_set[i];
        weight[z] += l->g->level_weight[i];
        for (int k = 0; k < lanes; k++) {
            sum[z * lanes + k] += w->cg.r[i * lanes + k];
        }
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t z = l->null_set[i];
        const double share = weight[z] > 0 ? l->g->level_weight[i] / weight[z] : 0;
        for (int k = 0; k < lanes; k++) {
            w->cg.r[i * lanes + k] -= share * sum[z * lanes + k];
        }
    }
}

/** The factor's solution, in every round but the first of what the rounds before have left: x <- x + S^+ r, r <- r - S x;
 *  `project`: of right-hand sides in the range of S. */
static void solve_direct(fe_ladder *l, const fe_block_work *w, int rounds, bool project,
                         fe_cg_column *column)
{
    const int lanes = 1 << w->kind;
    const int64_t length = l->g->n_coef * lanes;
    const product p = {l, &w->rows, w->kind, 0};
    for (int round = 1; round <= rounds; round++) {
        if (project) {
            project_on_range(l, w);
        }
        memcpy(w->cg.x, w->cg.r, (size_t)length * sizeof(double));
        frgi_direct_solve(l->direct, lanes, w->cg.x, l->scratch);
        for (int64_t j = 0; j < length; j++) {
            w->answer[j] += w->cg.x[j];
        }
        if (round == rounds) {
            break;
        }
        times_schur(&p, lanes, w->cg.x, w->cg.q);
        for (int64_t j = 0; j < length; j++) {
            w->cg.r[j] -= w->cg.q[j];
        }
    }
    for (int k = 0; k < lanes; k++) {
        column[k] = (fe_cg_column){.done = 1, .lambda = (double)NAN};
    }
}

/* ---- choosing ----------------------------------------------------------------------------------- */

/** Gradient steps that an operator will need. */
static frg_status probe(fe_ladder *l, frg_context *ctx, rung which, const fe_block_work *single,
                        double *steps)
{
    const product p = {l, &single->rows, 0, 0};
    const fe_system s = {.n = l->g->n_coef,
                         .times = which == RUNG_ROWS ? times_rows : times_schur,
                         .data = &p,
                         .inverse_diag = jacobi(l, which),
                         .level_inverse = l->g->level_inverse};
    return frgi_fe_cg_predict(ctx, &s, coef_ops(&p), &single->cg, steps);
}

/** Takes components apart, where there are several that matter; asked once. */
static frg_status take_apart(fe_ladder *l, frg_context *ctx)
{
    if (l->parted || !is_free(l)) {
        return FRG_OK;
    }
    TRY(frgi_fe_parts_create(&l->parts, ctx, l->g, &l->opts));
    l->parted = true;
    if (l->parts) {
        l->choice = RUNG_PARTS;
        drop_factor(l);
        frgi_fe_schur_destroy(&l->schur, ctx);
    }
    return FRG_OK;
}

/** Gradients or a factor for the assembled S?  An envelope that costs less than a few gradient steps needs
 *  no probe.  Otherwise: few steps -> gradients; a factor that costs less than the steps -> direct; several
 *  large components -> each by itself; many steps -> the approximate factor. */
static frg_status weigh_rungs(fe_ladder *l, frg_context *ctx, const fe_block_work *single)
{
    const double step = (double)l->schur.starts[l->schur.n] * 4 * SECONDS_PER_ENTRY;
    frg_status status = analyse(l, ctx, 0);
    if (status != FRG_OK && !frgi_direct_refused(ctx, status)) {
        return status;
    }
    if (status == FRG_OK && factor_seconds(l) < FEW_STEPS * step) {
        l->choice = RUNG_DIRECT;
        return FRG_OK;
    }
    double steps;
    status = probe(l, ctx, RUNG_EXPLICIT, single, &steps);
    if (status != FRG_OK) {
        return status;
    }
    l->choice = steps > MANY_STEPS ? RUNG_AC : RUNG_EXPLICIT;
    if (steps <= FEW_STEPS) {
        return FRG_OK;
    }
    TRY(take_apart(l, ctx));
    if (l->parts) {
        return FRG_OK;
    }
    drop_factor(l);
    status = analyse(l, ctx, steps * step);
    if (status == FRG_OK && factor_seconds(l) < steps * step) {
        l->choice = RUNG_DIRECT;
    }
    return frgi_direct_refused(ctx, status) ? FRG_OK : status;
}

/** Is a rung asked for by name that stands on the assembled S? */
static bool is_forced(const fe_ladder *l)
{
    return l->opts.method == FRG_FE_DIRECT || l->opts.precond == FRG_FE_PRECOND_AC;
}

/** Fixes the rung beyond the rows, once for the plan.  Components are looked at before S is assembled, unless that
 *  costs no more than looking. */
static frg_status choose(fe_ladder *l, frg_context *ctx, const fe_block_work *single)
{
    if (l->chosen) {
        return FRG_OK;
    }
    if (l->products > CHEAP_PRODUCTS * (double)l->g->n) {
        TRY(take_apart(l, ctx));
    }
    const frg_status built = l->parts ? FRG_OK : build_schur(l, ctx);
    if (built != FRG_OK) {
        return built;
    }
    if (l->refused && is_forced(l)) {
        FAIL(ctx, E_TOO_BIG,
             "%s needs an assembled matrix of about %.0f bytes, fill_cap allows %zu",
             l->opts.method == FRG_FE_DIRECT ? "method direct" : "precond ac", schur_bytes(l),
             frgi_fe_fill_cap(ctx, &l->opts));
    }
    if (l->parts) {
        l->choice = RUNG_PARTS;
    } else if (l->refused) {
        TRY(take_apart(l, ctx));
        l->choice = l->parts ? RUNG_PARTS : RUNG_ROWS;
    } else if (l->opts.precond == FRG_FE_PRECOND_AC) {
        l->choice = RUNG_AC;
    } else if (l->opts.method == FRG_FE_DIRECT) {
        l->choice = RUNG_DIRECT;
    } else if (l->opts.precond != FRG_FE_PRECOND_AUTO) {
        l->choice = RUNG_EXPLICIT;
    } else {
        const frg_status status = weigh_rungs(l, ctx, single);
        if (status != FRG_OK) {
            return status;
        }
    }
    l->chosen = true;
    return FRG_OK;
}

/** What S would cost, asked once; where that is too much, components go apart before a step is made. */
static frg_status study(fe_ladder *l, frg_context *ctx)
{
    if (l->products < 0) {
        const double products = frgi_fe_classes_estimate(l->g, frg_seed(ctx));
        if (products > WORTH_PRODUCTS * (double)l->g->n) {
            TRY(take_apart(l, ctx));
            l->beyond = l->parts != NULL;
        }
        l->products = products;
    }
    return FRG_OK;
}

/** Does the climb begin above the rows? */
static bool skips_rows(const fe_ladder *l, fe_ladder_start start)
{
    return l->beyond || l->opts.method == FRG_FE_DIRECT || l->opts.precond == FRG_FE_PRECOND_AC ||
           start != FE_FROM_ROWS ||
           (l->opts.method != FRG_FE_CG && l->products <= CHEAP_PRODUCTS * (double)l->g->n);
}

/** The columns that are done leave the right-hand side; returns how many go on. */
static int retire(const fe_rows *g, const fe_block_work *w, const fe_cg_column *column,
                  fe_cg_target *target)
{
    const int lanes = 1 << w->kind;
    int left = 0;
    for (int k = 0; k < lanes; k++) {
        target[k].within -= column[k].energy;
        target[k].most -= column[k].steps;
        left += !column[k].done;
        for (int64_t l = 0; column[k].done && l < g->n_coef; l++) {
            w->cg.r[l * lanes + k] = 0;
        }
    }
    return left;
}

static frg_status build_rung(fe_ladder *l, frg_context *ctx, rung which)
{
    return which == RUNG_DIRECT ? build_factor(l, ctx)
           : which == RUNG_AC   ? build_ac(l, ctx)
                                : FRG_OK;
}

bool frgi_fe_ladder_begins_beyond(const fe_ladder *l)
{
    return skips_rows(l, FE_FROM_ROWS);
}

frg_status frgi_fe_ladder_prepare(fe_ladder *l, frg_context *ctx, const fe_block_work *single)
{
    TRY(study(l, ctx));
    double steps = 0;
    frg_status status = FRG_OK;
    if (!skips_rows(l, FE_FROM_ROWS) && l->products <= WORTH_PRODUCTS * (double)l->g->n) {
        TRY(build_border(l, ctx));
        status = probe(l, ctx, RUNG_ROWS, single, &steps);
        l->beyond = status == FRG_OK && steps > ROW_STEPS;
    }
    if (status == FRG_OK && skips_rows(l, FE_FROM_ROWS)) {
        status = choose(l, ctx, single);
        status = status == FRG_OK ? build_rung(l, ctx, l->choice) : status;
    }
    return status;
}

/** The rungs above the rows. */
static frg_status climb(fe_ladder *l, frg_context *ctx, const fe_block_work *w,
                        const fe_block_work *single, fe_ladder_start start,
                        const fe_cg_target *target, fe_cg_column *column)
{
    /* the probe takes the work memory of one column: what w holds is kept aside when they are the same */
    const size_t bytes = (size_t)l->g->n_coef * sizeof(double);
    const bool shared = single->cg.r == w->cg.r;
    if (shared) {
        memcpy(w->cg.z, w->cg.r, bytes);
    }
    const frg_status status = choose(l, ctx, single);
    if (shared) {
        memcpy(w->cg.r, w->cg.z, bytes);
    }
    if (status != FRG_OK) {
        return status;
    }
    rung next = l->choice;
    if (start == FE_FROM_FACTOR && next != RUNG_PARTS && !l->refused) {
        next = RUNG_DIRECT;
    }
    const frg_status built = build_rung(l, ctx, next);
    if (built != FRG_OK) { /* `used` stays what it was: an interrupted rung is not there */
        return built;
    }
    l->used = next;
    if (next == RUNG_PARTS) {
        return frgi_fe_parts_solve(l->parts, ctx, w, start, target, column);
    }
    if (next == RUNG_DIRECT) {
        const bool project = start == FE_FROM_FACTOR;
        if (project) {
            TRY(find_null_sets(l, ctx));
        }
        /* a refinement of the result is looked at right afterwards, and may be repeated */
        solve_direct(l, w, start == FE_FROM_ASSEMBLED ? 1 : 2, project, column);
        return FRG_OK;
    }
    return gradients(l, ctx, next, w, l->opts.max_iter, target, column);
}

frg_status frgi_fe_ladder_solve(fe_ladder *l, frg_context *ctx, const fe_block_work *w,
                                const fe_block_work *single, fe_ladder_start start,
                                const fe_cg_target *goal, fe_cg_column *column)
{
    const int lanes = 1 << w->kind;
    fe_cg_target target[FE_MAX_LANES];
    fe_cg_column before[FE_MAX_LANES] = {0};
    memcpy(target, goal, (size_t)lanes * sizeof *target);
    memset(w->answer, 0, (size_t)(l->g->n_coef * lanes) * sizeof(double));
    memset(column, 0, (size_t)lanes * sizeof *column);
    if (l->opts.precond == FRG_FE_PRECOND_OFF && !l->ones) {
        TRY(NEW(ctx, &l->ones, l->g->n_coef, "ones"));
        for (int64_t i = 0; i < l->g->n_coef; i++) {
            l->ones[i] = 1;
        }
    }

    TRY(study(l, ctx));
    if (!skips_rows(l, start)) {
        const bool further =
            l->opts.method != FRG_FE_CG && l->products <= WORTH_PRODUCTS * (double)l->g->n;
        const int64_t steps =
            further && l->opts.max_iter > ROW_STEPS ? ROW_STEPS : l->opts.max_iter;
        l->used = RUNG_ROWS;
        for (int k = 0; k < lanes; k++) {
            target[k].patience = further ? ROW_PATIENCE : 0;
        }
        const frg_status status = gradients(l, ctx, RUNG_ROWS, w, steps, target, column);
        if (status != FRG_OK || !further || retire(l->g, w, column, target) == 0) {
            return status;
        }
        memcpy(before, column, sizeof before);
        for (int k = 0; k < lanes; k++) {
            target[k].patience = 0;
        }
    }
    const frg_status status = climb(l, ctx, w, single, start, target, column);
    for (int k = 0; k < lanes; k++) {
        column[k].steps += before[k].steps;
        column[k].lambda = before[k].done ? before[k].lambda : column[k].lambda;
        column[k].climbed = l->used != RUNG_ROWS && !before[k].done;
    }
    return status;
}

void frgi_fe_ladder_error(const fe_ladder *l, const fe_block_work *w, const double *s,
                          const double *lambda, bool prepared, double *error)
{
    const rung which = !prepared                         ? l->used
                       : frgi_fe_ladder_begins_beyond(l) ? l->choice
                                                         : RUNG_ROWS;
    const int lanes = 1 << w->kind;
    const int64_t length = l->g->n_coef * lanes;
    const product p = {l, &w->rows, w->kind, 0};
    double *z = w->cg.z;
    if (which == RUNG_PARTS) {
        frgi_fe_parts_error(l->parts, w, s, lambda, prepared, error);
        return;
    }
    if (which == RUNG_DIRECT) {
        memcpy(z, s, (size_t)length * sizeof(double));
        frgi_direct_solve(l->direct, lanes, z, l->scratch);
    } else if (which == RUNG_AC) {
        apply_ac(&p, lanes, s, z);
    } else {
        const double *d = jacobi(l, which);
        for (int64_t j = 0; j < length; j++) {
            z[j] = s[j] * d[j / lanes];
        }
    }
    for (int k = 0; k < lanes; k++) {
        double sum = 0;
        for (int64_t i = 0; i < l->g->n_coef; i++) {
            sum += s[i * lanes + k] * z[i * lanes + k];
        }
        error[k] = which == RUNG_DIRECT ? sum : sum / lambda[k];
    }
}

/* ---- reporting ---------------------------------------------------------------------------------- */

bool frgi_fe_ladder_is_direct(const fe_ladder *l)
{
    return l->used == RUNG_PARTS ? frgi_fe_parts_at_end(l->parts) : l->used == RUNG_DIRECT;
}

fe_parts *frgi_fe_ladder_parts(const fe_ladder *l)
{
    return l->parts;
}

const char *frgi_fe_ladder_method(const fe_ladder *l)
{
    if (l->g->n_coef == 0) {
        return "closed form";
    }
    if (l->used == RUNG_PARTS) {
        return frgi_fe_parts_method(l->parts);
    }
    return l->used == RUNG_ROWS && l->opts.dtype != FRG_FE_F64 ? "cg rows, float32 directions"
                                                               : rung_names[l->used];
}

size_t frgi_fe_ladder_factor_bytes(const fe_ladder *l)
{
    return frgi_fe_schur_bytes(&l->schur) + frgi_fe_border_bytes(&l->border) +
           (l->direct ? frgi_direct_bytes(l->direct) : 0) + (l->ac ? frgi_ac_bytes(l->ac) : 0) +
           (l->parts ? frgi_fe_parts_bytes(l->parts) : 0);
}

/** Rank of S where a factor has counted it; -1 otherwise. */
static int64_t counted_rank(const fe_ladder *l)
{
    return l->factored ? frgi_direct_rank(l->direct) : -1;
}

frg_status frgi_fe_ladder_count(fe_ladder *l, frg_context *ctx, bool cheap_only, int64_t *rank)
{
    TRY(study(l, ctx));
    if (l->parts) {
        return frgi_fe_parts_rank(l->parts, ctx, cheap_only, rank);
    }
    const double rows = (double)l->g->n;
    *rank = counted_rank(l);
    if (*rank >= 0 || (cheap_only && l->products > CHEAP_PRODUCTS * rows)) {
        return FRG_OK;
    }
    const frg_status built = build_schur(l, ctx);
    if (built != FRG_OK || (l->refused && cheap_only)) {
        return built;
    }
    if (l->refused) {
        FAIL(ctx, E_TOO_BIG, "the exact rank needs a factor that fill_cap does not allow");
    }
    if (cheap_only) {
        const frg_status status = analyse(l, ctx, 0);
        if (frgi_direct_refused(ctx, status) ||
            (status == FRG_OK && factor_seconds(l) > SECONDS_PER_ROW * rows)) {
            return FRG_OK;
        }
        TRY(status);
    }
    TRY(build_factor(l, ctx));
    *rank = counted_rank(l);
    return FRG_OK;
}
