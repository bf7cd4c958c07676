/* gp_leaves_cpu.tmpl.h - kernels that are not periodic: radial, linear, poly, const and white, the
 * user's; included once for each type.
 *
 * Letters: D_k = x_ik - x_jk (raw, centred), u_k = D_k / l_k (the slots are scaled), s = sum u_k^2.
 * A radial leaf leaves in aux[0] its slope q = -2 dk/ds,
 *
 *     dk/dlog l_k = q u_k^2,    dk/dx_ik = -q u_k / l_k
 *
 * in aux[1] s, and in aux[2] (rq) dlog k/dlog alpha.  poly leaves degree (x'x + c)^(degree-1) in
 * aux[0].
 *
 * Constants of a leaf, one number for each column even where all share a parameter:
 *     rq        alpha                            linear    v_k
 *     poly      c                                const, white: the variance; user: none
 *
 * Template parameters: real, SUF, SQRT, FAR, FARTHEST, FN(name), EF(name) for exp and its like.
 */

/* ---- radial leaves --------------------------------------------------------------------------- */

/** value, slope q and, for rq, dlog k/dlog alpha from s. */
static inline void FN(radial)(frgi_gp_kind kind, real alpha, int m, const real *restrict s,
                              real *restrict value, real *restrict slope, real *restrict extra)
{
    const real one_third = (real)(1.0 / 3), five_thirds = (real)(5.0 / 3);
    switch (kind) {
    case GP_RBF:
        EACH_ROW(i)
        {
            value[i] = slope[i] = EF(exp_low)((real)-0.5 * s[i]);
        }
        break;
    case GP_MATERN12:
        EACH_ROW(i)
        {
            const real r = SQRT(s[i]), e = EF(exp_low)(-r);
            value[i] = e;
            slope[i] = r > 0 ? e / r : 0;
        }
        break;
    case GP_MATERN32:
        EACH_ROW(i)
        {
            const real c = SQRT(3 * s[i]), e = EF(exp_low)(-c);
            value[i] = (1 + c) * e;
            slope[i] = 3 * e;
        }
        break;
    case GP_MATERN52:
        EACH_ROW(i)
        {
            const real c = SQRT(5 * s[i]), e = EF(exp_low)(-c);
            value[i] = (1 + c + c * c * one_third) * e;
            slope[i] = five_thirds * (1 + c) * e;
        }
        break;
    default:
        EACH_ROW(i)
        {
            const real raw = s[i] * ((real)0.5 / alpha), t = raw > FAR ? FAR : raw,
                       log_b = EF(log1p)(t), e = EF(exp_low)(-alpha * log_b);
            const real over = 1 / (1 + t);
            value[i] = e;
            slope[i] = e * over;
            extra[i] = alpha * (t * over - log_b);
        }
        break;
    }
}

static void FN(radial_forward)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const real alpha = step->kind == GP_RQ ? FN(constants)(step)[0] : 0;
    FN(squares)(g, p, step, FN(aux)(p, at, 1));
    for (int j = 0; j < p->cols; j++) {
        real *const s = FN(aux)(p, at, 1) + j * GP_ROWS, *const value =
                                                             FN(values)(p, at) + j * GP_ROWS;
        real *const slope = FN(aux)(p, at, 0) + j * GP_ROWS, *const extra =
                                                                 FN(aux)(p, at, 2) + j * GP_ROWS;
        FN(radial)(step->kind, alpha, p->m, s, value, slope, extra);
    }
}

/** weight = g q of all pairs, into the work patch */
static real *FN(radial_weight)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const real *restrict adjoint = FN(adjoints)(p, at), *restrict slope = FN(aux)(p, at, 0);
    real *restrict weight = FN(lane)(p, 3 * g->max_dims + 4);
    const int m = p->m;
    for (int j = 0; j < p->cols; j++) {
        EACH_ROW(i)
        {
            weight[j * GP_ROWS + i] = adjoint[j * GP_ROWS + i] * slope[j * GP_ROWS + i];
        }
    }
    return weight;
}

static void FN(radial_parameters)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m;
    real *restrict partial = FN(lane)(p, 0);
    const real *restrict weight = FN(radial_weight)(g, p, at), *restrict s = FN(aux)(p, at, 1);
    const bool vector = step->group[0].vector;
    for (int k = 0; k < (vector ? step->dims : 1); k++) {
        const real *restrict x = FN(rows)(p, step->slot + k);
        FN(set)(partial, 0, m);
        for (int j = 0; j < p->cols; j++) {
            const real c = FN(cols)(g, p, step->slot + k)[j];
            const real *restrict w = weight + j * GP_ROWS, *restrict sj = s + j * GP_ROWS;
            if (vector) {
                EACH_ROW(i)
                {
                    const real u = x[i] - c;
                    partial[i] += w[i] * (u * u);
                }
            } else {
                EACH_ROW(i)
                {
                    partial[i] += w[i] * sj[i];
                }
            }
        }
        FN(flush)(p->sum + (ptrdiff_t)(step->group[0].first + k) * GP_ROWS, partial, 1, m);
    }
    if (step->kind == GP_RQ) {
        const real *restrict adjoint = FN(adjoints)(p, at), *restrict value = FN(values)(p, at);
        const real *restrict extra = FN(aux)(p, at, 2);
        FN(set)(partial, 0, m);
        for (int j = 0; j < p->cols; j++) {
            EACH_ROW(i)
            {
                partial[i] +=
                    adjoint[j * GP_ROWS + i] * value[j * GP_ROWS + i] * extra[j * GP_ROWS + i];
            }
        }
        FN(flush)(p->sum + (ptrdiff_t)step->group[1].first * GP_ROWS, partial, 1, m);
    }
}

static void FN(radial_inputs)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m;
    real *restrict partial = FN(lane)(p, 0);
    const real *restrict weight = FN(radial_weight)(g, p, at);
    for (int k = 0; k < step->dims; k++) {
        const frgi_gp_slot *const slot = &g->slot[step->slot + k];
        const real *restrict x = FN(rows)(p, step->slot + k);
        FN(set)(partial, 0, m);
        for (int j = 0; j < p->cols; j++) {
            const real c = FN(cols)(g, p, step->slot + k)[j];
            const real *restrict w = weight + j * GP_ROWS;
            EACH_ROW(i)
            {
                partial[i] += w[i] * (x[i] - c);
            }
        }
        FN(flush)(p->gx + (ptrdiff_t)slot->column * GP_ROWS, partial, -slot->factor, m);
    }
}

/* ---- linear and poly ------------------------------------------------------------------------- */

static void FN(linear_forward)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m;
    for (int j = 0; j < p->cols; j++) {
        real *restrict value = FN(values)(p, at) + j * GP_ROWS;
        if (step->kind == GP_LINEAR) {
            FN(products)(g, p, step, j, FN(constants)(step), 0, value);
            continue;
        }
        real *restrict base = FN(lane)(p, 0), *restrict slope = FN(aux)(p, at, 0) + j * GP_ROWS;
        FN(products)(g, p, step, j, NULL, FN(constants)(step)[0], base);
        FN(set)(slope, 1, m);
        for (int power = 1; power < step->degree; power++) {
            EACH_ROW(i)
            {
                slope[i] *= base[i];
            }
        }
        const real degree = (real)step->degree;
        EACH_ROW(i)
        {
            value[i] = slope[i] * base[i];
            slope[i] *= degree;
        }
    }
}

/** sum_j g (or g slope), each times the column's x_jk where k >= 0, into partial. */
static void FN(linear_sum)(const frgi_gp_program *g, frgi_gp_patch *p, int at, int k,
                           real *restrict partial)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m;
    FN(set)(partial, 0, m);
    for (int j = 0; j < p->cols; j++) {
        const real *restrict adjoint = FN(adjoints)(p, at) + j * GP_ROWS;
        const real *restrict slope = FN(aux)(p, at, 0) + j * GP_ROWS;
        const real c = k >= 0 ? FN(cols)(g, p, step->slot + k)[j] : 1;
        if (step->kind == GP_LINEAR) {
            EACH_ROW(i)
            {
                partial[i] += adjoint[i] * c;
            }
        } else {
            EACH_ROW(i)
            {
                partial[i] += adjoint[i] * slope[i] * c;
            }
        }
    }
}

static void FN(linear_parameters)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const real *const constant = FN(constants)(step);
    const int m = p->m;
    real *restrict partial = FN(lane)(p, 0);
    if (step->kind == GP_POLY) {
        FN(linear_sum)(g, p, at, -1, partial);
        FN(flush)
        (p->sum + (ptrdiff_t)step->group[0].first * GP_ROWS, partial, (double)constant[0], m);
        return;
    }
    for (int k = 0; k < step->dims; k++) {
        const real *restrict x = FN(rows)(p, step->slot + k);
        FN(linear_sum)(g, p, at, k, partial);
        EACH_ROW(i)
        {
            partial[i] *= x[i];
        }
        const int t = step->group[0].first + (step->group[0].vector ? k : 0);
        FN(flush)(p->sum + (ptrdiff_t)t * GP_ROWS, partial, (double)constant[k], m);
    }
}

static void FN(linear_inputs)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    real *restrict partial = FN(lane)(p, 0);
    for (int k = 0; k < step->dims; k++) {
        const double v = step->kind == GP_LINEAR ? (double)FN(constants)(step)[k] : 1;
        FN(linear_sum)(g, p, at, k, partial);
        FN(flush)(p->gx + (ptrdiff_t)g->slot[step->slot + k].column * GP_ROWS, partial, v, p->m);
    }
}

/* ---- constants and the user's kernel --------------------------------------------------------- */

static void FN(constant_forward)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const real v = FN(constants)(step)[0];
    const bool white = step->kind == GP_WHITE;
    for (int j = 0; j < p->cols; j++) {
        real *restrict value = FN(values)(p, at) + j * GP_ROWS;
        FN(set)(value, white ? 0 : v, p->m);
        const ptrdiff_t same = p->j0 + j - p->i0;
        if (white && p->training && same >= 0 && same < p->rows) {
            value[same] = v;
        }
    }
}

/** The variance of a constant, of white noise or of a scale: sum of g times the value. */
static void FN(variance_parameters)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const int m = p->m;
    const real *restrict adjoint = FN(adjoints)(p, at), *restrict value = FN(values)(p, at);
    real *restrict partial = FN(lane)(p, 0);
    FN(set)(partial, 0, m);
    for (int j = 0; j < p->cols; j++) {
        EACH_ROW(i)
        {
            partial[i] += adjoint[j * GP_ROWS + i] * value[j * GP_ROWS + i];
        }
    }
    FN(flush)(p->sum + (ptrdiff_t)g->step[at].group[0].first * GP_ROWS, partial, 1, m);
}

static void FN(user_forward)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const int m = p->m, d = g->user_dims;
    real *restrict value = FN(values)(p, at);
    memset(p->tile, 0, sizeof *p->tile * GP_PATCH);
    g->user.fill(g->user_theta, p->rows, p->user_rows, p->cols, g->user_cols + p->j0 * d, d,
                 p->tile, GP_ROWS, g->user.user);
    for (int j = 0; j < p->cols; j++) {
        EACH_ROW(i)
        {
            value[j * GP_ROWS + i] = (real)p->tile[j * GP_ROWS + i];
        }
    }
}

static void FN(user_parameters)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const int d = g->user_dims, count = g->user.n_parameters;
    const real *restrict adjoint = FN(adjoints)(p, at);
    double *const gradient = p->tile + GP_PATCH;
    for (int i = 0; i < GP_PATCH; i++) {
        p->tile[i] = i % GP_ROWS < p->rows && i / GP_ROWS < p->cols ? (double)adjoint[i] : 0;
    }
    const int calls = p->by_row ? p->rows : 1;
    for (int i = 0; i < calls; i++) {
        memset(gradient, 0, sizeof *gradient * (size_t)count);
        g->user.pull(g->user_theta, p->by_row ? 1 : p->rows, p->user_rows + (ptrdiff_t)i * d,
                     p->cols, g->user_cols + p->j0 * d, d, p->tile + i, GP_ROWS, gradient,
                     g->user.user);
        for (int t = 0; t < count; t++) {
            p->sum[(ptrdiff_t)(g->step[at].group[0].first + t) * GP_ROWS + i] += gradient[t];
        }
    }
}
