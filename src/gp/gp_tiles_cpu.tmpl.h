/* gp_tiles_cpu.tmpl.h - an expression over one patch of pairs: operators, the table of kinds,
 * weights, in and out; included once for each type, after gp_patch, gp_leaves and gp_periodic.
 *
 * Products over children are taken apart by prefixes and suffixes, never by division.
 *
 * Template parameters: real, SUF, FN(name).
 */

/* ---- sums, products, scales ------------------------------------------------------------------ */

static void FN(operator_forward)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m;
    for (int j = 0; j < p->cols; j++) {
        real *restrict value = FN(values)(p, at) + j * GP_ROWS;
        const real f = step->kind == GP_SCALE ? FN(constants)(step)[0] : 1;
        const real *restrict first = FN(values)(p, g->child[step->child]) + j * GP_ROWS;
        EACH_ROW(i)
        {
            value[i] = f * first[i];
        }
        for (int c = 1; c < step->children; c++) {
            const real *restrict next = FN(values)(p, g->child[step->child + c]) + j * GP_ROWS;
            if (step->kind == GP_SUM) {
                EACH_ROW(i)
                {
                    value[i] += next[i];
                }
            } else {
                EACH_ROW(i)
                {
                    value[i] *= next[i];
                }
            }
        }
    }
}

/** Children of a product: g times the values before, then times the values after. */
static void FN(product_backward)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m;
    real *restrict run = FN(lane)(p, 0);
    for (int j = 0; j < p->cols; j++) {
        const real *restrict adjoint = FN(adjoints)(p, at) + j * GP_ROWS;
        memcpy(run, adjoint, sizeof *run * (size_t)m);
        for (int c = 0; c < step->children; c++) {
            const int child = g->child[step->child + c];
            const real *restrict value = FN(values)(p, child) + j * GP_ROWS;
            real *restrict to = FN(adjoints)(p, child) + j * GP_ROWS;
            EACH_ROW(i)
            {
                to[i] = run[i];
                run[i] *= value[i];
            }
        }
        FN(set)(run, 1, m);
        for (int c = step->children - 1; c >= 0; c--) {
            const int child = g->child[step->child + c];
            const real *restrict value = FN(values)(p, child) + j * GP_ROWS;
            real *restrict to = FN(adjoints)(p, child) + j * GP_ROWS;
            EACH_ROW(i)
            {
                to[i] *= run[i];
                run[i] *= value[i];
            }
        }
    }
}

static void FN(sum_backward)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m;
    const real f = step->kind == GP_SCALE ? FN(constants)(step)[0] : 1;
    const real *restrict adjoint = FN(adjoints)(p, at);
    for (int c = 0; c < step->children; c++) {
        real *restrict to = FN(adjoints)(p, g->child[step->child + c]);
        for (int j = 0; j < p->cols; j++) {
            EACH_ROW(i)
            {
                to[j * GP_ROWS + i] = f * adjoint[j * GP_ROWS + i];
            }
        }
    }
}

/* ---- the table of kinds ---------------------------------------------------------------------- */

static void FN(cosine_parameters)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    FN(cosine_sums)(g, p, at, false);
}

static void FN(cosine_inputs)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    FN(cosine_sums)(g, p, at, true);
}

static void FN(mixture_parameters)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    FN(mixture_sums)(g, p, at, false);
}

static void FN(mixture_inputs)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    FN(mixture_sums)(g, p, at, true);
}

static void FN(mixture_product_parameters)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    FN(mixture_product_sums)(g, p, at, false);
}

static void FN(mixture_product_inputs)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    FN(mixture_product_sums)(g, p, at, true);
}

typedef struct {
    void (*forward)(const frgi_gp_program *, frgi_gp_patch *, int);
    void (*backward)(const frgi_gp_program *, frgi_gp_patch *, int);   /* NULL: a leaf */
    void (*parameters)(const frgi_gp_program *, frgi_gp_patch *, int); /* NULL: none */
    void (*inputs)(const frgi_gp_program *, frgi_gp_patch *, int); /* NULL: does not depend on x */
} FN(kind_ops);

#define RADIAL                                                                                     \
    {                                                                                              \
        FN(radial_forward), NULL, FN(radial_parameters), FN(radial_inputs)                         \
    }
static const FN(kind_ops) FN(kinds)[GP_KINDS] = {
    [GP_SUM] = {FN(operator_forward), FN(sum_backward), NULL, NULL},
    [GP_PRODUCT] = {FN(operator_forward), FN(product_backward), NULL, NULL},
    [GP_SCALE] = {FN(operator_forward), FN(sum_backward), FN(variance_parameters), NULL},
    [GP_RBF] = RADIAL,
    [GP_MATERN12] = RADIAL,
    [GP_MATERN32] = RADIAL,
    [GP_MATERN52] = RADIAL,
    [GP_RQ] = RADIAL,
    [GP_PERIODIC] = {FN(periodic_forward), NULL, FN(periodic_parameters), FN(periodic_inputs)},
    [GP_PERIODIC_GPYTORCH] = {FN(periodic_forward), NULL, FN(periodic_parameters),
                              FN(periodic_inputs)},
    [GP_LINEAR] = {FN(linear_forward), NULL, FN(linear_parameters), FN(linear_inputs)},
    [GP_POLY] = {FN(linear_forward), NULL, FN(linear_parameters), FN(linear_inputs)},
    [GP_COSINE] = {FN(cosine_forward), NULL, FN(cosine_parameters), FN(cosine_inputs)},
    [GP_COSINE_GPYTORCH] = {FN(cosine_forward), NULL, FN(cosine_parameters), FN(cosine_inputs)},
    [GP_SM] = {FN(mixture_forward), NULL, FN(mixture_parameters), FN(mixture_inputs)},
    [GP_SM_GPYTORCH] = {FN(mixture_product_forward), NULL, FN(mixture_product_parameters),
                        FN(mixture_product_inputs)},
    [GP_CONST] = {FN(constant_forward), NULL, FN(variance_parameters), NULL},
    [GP_WHITE] = {FN(constant_forward), NULL, FN(variance_parameters), NULL},
    [GP_USER] = {FN(user_forward), NULL, FN(user_parameters), NULL},
};
#undef RADIAL

static void FN(forward)(const frgi_gp_program *g, frgi_gp_patch *p)
{
    for (int at = 0; at < g->n_steps; at++) {
        FN(kinds)[g->step[at].kind].forward(g, p, at);
    }
}

static void FN(backward)(const frgi_gp_program *g, frgi_gp_patch *p)
{
    for (int at = g->n_steps - 1; at >= 0; at--) {
        if (FN(kinds)[g->step[at].kind].backward) {
            FN(kinds)[g->step[at].kind].backward(g, p, at);
        }
    }
}

static void FN(parameters)(const frgi_gp_program *g, frgi_gp_patch *p)
{
    for (int at = 0; at < g->n_steps; at++) {
        if (FN(kinds)[g->step[at].kind].parameters) {
            FN(kinds)[g->step[at].kind].parameters(g, p, at);
        }
    }
}

static void FN(inputs)(const frgi_gp_program *g, frgi_gp_patch *p)
{
    for (int at = 0; at < g->n_steps; at++) {
        if (FN(kinds)[g->step[at].kind].inputs) {
            FN(kinds)[g->step[at].kind].inputs(g, p, at);
        }
    }
}

/* ---- weights --------------------------------------------------------------------------------- */

/** Entry (i, j) of the patch in the inverse's tile. */
static inline real FN(entry)(const frgi_gp_weights *w, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t row = w->row + i, col = w->col + j;
    const bool mirror = w->transposed || (w->diagonal && row < col);
    return ((const real *)w->tile)[mirror ? col + row * w->ld : row + col * w->ld];
}

/** One column of W without regard to the diagonal. */
static inline void FN(weights_column)(const frgi_gp_weights *w, const frgi_gp_patch *p, int j,
                                      real *restrict to)
{
    const real sign = w->alpha ? -(real)w->q : 1;
    if (w->transposed || w->diagonal) {
        for (int i = 0; i < p->rows; i++) {
            to[i] = sign * FN(entry)(w, i, j);
        }
    } else {
        const real *restrict from = (const real *)w->tile + w->row + (w->col + j) * w->ld;
        for (int i = 0; i < p->rows; i++) {
            to[i] = sign * from[i];
        }
    }
    for (ptrdiff_t c = 0; w->alpha && c < w->q; c++) {
        const real *restrict a = (const real *)w->alpha + c * w->n;
        const real *restrict b = w->beta ? (const real *)w->beta + c * w->n : a;
        const real aj = a[p->j0 + j], bj = b[p->j0 + j], half = (real)0.5;
        if (!w->beta) {
            for (int i = 0; i < p->rows; i++) {
                to[i] += a[p->i0 + i] * aj;
            }
        } else {
            for (int i = 0; i < p->rows; i++) {
                to[i] += half * (a[p->i0 + i] * bj + b[p->i0 + i] * aj);
            }
        }
    }
    for (ptrdiff_t c = 0; c < w->extra_q; c++) {
        const double *restrict e = w->extra + c * w->n;
        const double ej = e[p->j0 + j];
        for (int i = 0; i < p->rows; i++) {
            to[i] += (real)(e[p->i0 + i] * ej);
        }
    }
    for (int i = p->rows; i < p->m; i++) {
        to[i] = 0;
    }
}

static void FN(seed_weights)(const frgi_gp_program *g, const frgi_gp_weights *w, frgi_gp_patch *p)
{
    real *const root = FN(adjoints)(p, g->n_steps - 1);
    for (int j = 0; j < p->cols; j++) {
        real *const to = root + j * GP_ROWS;
        FN(weights_column)(w, p, j, to);
        const ptrdiff_t same = p->j0 + j - p->i0;
        for (ptrdiff_t i = 0; !w->full && i < same && i < p->m; i++) {
            to[i] = 0;
        }
        if (!w->full && same >= 0 && same < p->rows) {
            to[same] *= (real)0.5;
        }
    }
}

static void FN(seed_columns)(const frgi_gp_program *g, const double *a, frgi_gp_patch *p)
{
    for (int j = 0; j < p->cols; j++) {
        FN(set)(FN(adjoints)(p, g->n_steps - 1) + j * GP_ROWS, (real)a[j], p->m);
    }
}

static void FN(copy_weights)(const frgi_gp_program *g, const double *w, ptrdiff_t ld,
                             frgi_gp_patch *p)
{
    real *const root = FN(adjoints)(p, g->n_steps - 1);
    for (int j = 0; j < p->cols; j++) {
        for (int i = 0; i < p->m; i++) {
            root[j * GP_ROWS + i] = i < p->rows ? (real)w[i + j * ld] : 0;
        }
    }
}

static void FN(seed_diagonal)(const frgi_gp_program *g, frgi_gp_patch *p)
{
    real *const root = FN(adjoints)(p, g->n_steps - 1);
    for (int j = 0; j < p->cols; j++) {
        FN(set)(root + j * GP_ROWS, 0, p->m);
        root[j * GP_ROWS + p->j0 + j] = 2;
    }
}

static void FN(read_diagonal)(const frgi_gp_program *g, const frgi_gp_patch *p, double *diagonal)
{
    const real *const root = FN(values)(p, g->n_steps - 1);
    for (int j = 0; j < p->cols; j++) {
        diagonal[j] = (double)root[j * GP_ROWS + p->j0 + j];
    }
}

static void FN(trace)(const frgi_gp_program *g, const frgi_gp_weights *w, const frgi_gp_patch *p,
                      double *trace)
{
    const real *const value = FN(values)(p, g->n_steps - 1);
    for (int j = 0; j < p->cols; j++) {
        const ptrdiff_t same = p->j0 + j - p->i0;
        const real *restrict k = value + j * GP_ROWS;
        const real *restrict inverse = (const real *)w->tile + w->row + (w->col + j) * w->ld;
        for (ptrdiff_t i = same > 0 ? same : 0; i < p->rows; i++) {
            trace[i] += (i == same ? 1 : 2) * (double)inverse[i] * (double)k[i];
        }
    }
}

/* ---- in and out ------------------------------------------------------------------------------ */

static void FN(store)(const frgi_gp_program *g, const frgi_gp_patch *p, void *out, ptrdiff_t ld)
{
    const real *const value = FN(values)(p, g->n_steps - 1);
    for (int j = 0; j < p->cols; j++) {
        memcpy((real *)out + j * ld, value + j * GP_ROWS, sizeof(real) * (size_t)p->rows);
    }
}

static inline void FN(copy_slot)(const frgi_gp_slot *slot, const frgi_gp_points *points,
                                 ptrdiff_t first, ptrdiff_t count, real *restrict to)
{
    const real *restrict x = (const real *)points->x + slot->column * points->ld + first;
    const double factor = slot->factor, shift = slot->shift;
    for (ptrdiff_t i = 0; i < count; i++) {
        const double v = (double)x[i] * factor + shift, high = v > FARTHEST ? FARTHEST : v;
        to[i] = (real)(high < -FARTHEST ? -FARTHEST : high);
    }
}

static void FN(load_rows)(const frgi_gp_program *g, const frgi_gp_points *points, ptrdiff_t first,
                          frgi_gp_patch *p)
{
    for (int s = 0; s < g->n_slots; s++) {
        real *const to = (real *)p->x + (ptrdiff_t)s * GP_ROWS;
        FN(copy_slot)(&g->slot[s], points, first, p->rows, to);
        for (int i = p->rows; i < GP_ROWS; i++) {
            to[i] = 0;
        }
    }
}

static void FN(fill_slot)(const frgi_gp_slot *slot, const frgi_gp_points *points, void *out)
{
    FN(copy_slot)(slot, points, 0, points->n, out);
}
