/* gp_tiles_cpu.tmpl.h - the steps over one patch of pairs; included once for each type.
 *
 * Letters: D_k = x_ik - x_jk (raw, centred), u_k = D_k / l_k (the slots are scaled), s = sum u_k^2.  A radial leaf
 * leaves in aux[0] its slope q = -2 dk/ds,
 *
 *     dk/dlog l_k = q u_k^2,    dk/dx_ik = -q u_k / l_k
 *
 * in aux[1] s, and in aux[2] (rq) dlog k/dlog alpha.  poly leaves degree (x'x + c)^(degree-1) in aux[0].
 * Products over columns or children are taken apart by prefixes and suffixes, never by division.
 *
 * Constants of a leaf, one number for each column even where all share a parameter:
 *     rq        alpha                            periodic  0.5/p_k, then 1/l_k^2 (GPyTorch: 1/l_k)
 *     linear    v_k                              cosine    1/p_k (GPyTorch: 0.5/p)
 *     poly      c                                sm        w_q, mu_qk, 2 pi^2 v_qk (GPyTorch: 2 pi^2 s_qk^2)
 *     const, white, scale: the variance          user      none
 *
 * Text parameters: real, SUF, SQRT, FAR, FN(name), EF(name) for exp and its like.
 */

static inline real *FN(values)(const frgi_gp_patch *p, int step)
{
    return (real *)p->value + (ptrdiff_t)step * GP_PATCH;
}

static inline real *FN(aux)(const frgi_gp_patch *p, int step, int which)
{
    return (real *)p->aux + ((ptrdiff_t)step * GP_AUX + which) * GP_PATCH;
}

static inline real *FN(adjoints)(const frgi_gp_patch *p, int step)
{
    return (real *)p->adjoint + (ptrdiff_t)step * GP_PATCH;
}

static inline const real *FN(rows)(const frgi_gp_patch *p, int slot)
{
    return (const real *)p->x + (ptrdiff_t)slot * GP_ROWS;
}

static inline const real *FN(cols)(const frgi_gp_program *g, const frgi_gp_patch *p, int slot)
{
    return (const real *)g->slot[slot].cols + p->j0;
}

static inline const real *FN(constants)(const frgi_gp_step *s)
{
    return (const real *)s->constant;
}

/** lane[0 ..]: work arrays of GP_ROWS */
static inline real *FN(lane)(const frgi_gp_patch *p, ptrdiff_t i)
{
    return (real *)p->lane + i * GP_ROWS;
}

static inline void FN(set)(real *restrict x, real value, int m)
{
    EACH_ROW(i)
    {
        x[i] = value;
    }
}

/** total += part: from the patch's arithmetic to double */
static inline void FN(flush)(double *restrict total, const real *restrict part, double factor,
                             int m)
{
    EACH_ROW(i)
    {
        total[i] += factor * (double)part[i];
    }
}

/* ---- sums over columns of x --------------------------------------------------------------------- */

/** First row of column j that is wanted: where only pairs on or below the diagonal are, the vector that holds the
 *  diagonal.  The same for LINE columns. */
static inline int FN(begin)(const frgi_gp_patch *p, int j)
{
    const ptrdiff_t same = p->j0 + j - p->i0;
    return p->lower && same > 0 ? (int)(same / LINE * LINE) : 0;
}

static inline int FN(lines)(const frgi_gp_patch *p)
{
    return (p->rows + LINE - 1) / LINE * LINE;
}

ALWAYS void FN(add_squares)(const frgi_gp_program *g, const frgi_gp_patch *p, int slot, int j,
                            const int count, bool more, real *restrict s)
{
    const int m = p->m;
    const real *restrict x = FN(rows)(p, slot);
    real c[8];
    for (int k = 0; k < count; k++) {
        c[k] = FN(cols)(g, p, slot + k)[j];
    }
    EACH_LINE(i, FN(begin)(p, j))
    {
        real sum = more ? s[i] : 0;
        for (int k = 0; k < count; k++) {
            const real u = x[k * GP_ROWS + i] - c[k];
            sum += u * u;
        }
        s[i] = sum;
    }
}

/** Up to eight columns of x at once, so that s stays in a register. */
static void FN(squares)(const frgi_gp_program *g, const frgi_gp_patch *p, const frgi_gp_step *step,
                        real *restrict s)
{
    for (int k = 0; k < step->dims; k += 8) {
        const int slot = step->slot + k, left = step->dims - k;
        for (int j = 0; j < p->cols; j++) {
            real *const to = s + j * GP_ROWS;
            switch (left) {
            case 1:
                FN(add_squares)(g, p, slot, j, 1, k > 0, to);
                break;
            case 2:
                FN(add_squares)(g, p, slot, j, 2, k > 0, to);
                break;
            case 3:
                FN(add_squares)(g, p, slot, j, 3, k > 0, to);
                break;
            case 4:
                FN(add_squares)(g, p, slot, j, 4, k > 0, to);
                break;
            case 5:
                FN(add_squares)(g, p, slot, j, 5, k > 0, to);
                break;
            case 6:
                FN(add_squares)(g, p, slot, j, 6, k > 0, to);
                break;
            case 7:
                FN(add_squares)(g, p, slot, j, 7, k > 0, to);
                break;
            default:
                FN(add_squares)(g, p, slot, j, 8, k > 0, to);
                break;
            }
        }
    }
}

/** sum_k v_k x_ik x_jk; v NULL: 1 */
static inline void FN(products)(const frgi_gp_program *g, const frgi_gp_patch *p,
                                const frgi_gp_step *step, int j, const real *v, real start,
                                real *restrict out)
{
    const int m = p->m;
    FN(set)(out, start, m);
    for (int k = 0; k < step->dims; k++) {
        const real *restrict x = FN(rows)(p, step->slot + k);
        const real c = FN(cols)(g, p, step->slot + k)[j] * (v ? v[k] : 1);
        EACH_ROW(i)
        {
            out[i] += x[i] * c;
        }
    }
}

/* ---- radial leaves ------------------------------------------------------------------------------ */

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
    real *restrict part = FN(lane)(p, 0);
    const real *restrict weight = FN(radial_weight)(g, p, at), *restrict s = FN(aux)(p, at, 1);
    const bool vector = step->group[0].vector;
    for (int k = 0; k < (vector ? step->dims : 1); k++) {
        const real *restrict x = FN(rows)(p, step->slot + k);
        FN(set)(part, 0, m);
        for (int j = 0; j < p->cols; j++) {
            const real c = FN(cols)(g, p, step->slot + k)[j];
            const real *restrict w = weight + j * GP_ROWS, *restrict sj = s + j * GP_ROWS;
            if (vector) {
                EACH_ROW(i)
                {
                    const real u = x[i] - c;
                    part[i] += w[i] * (u * u);
                }
            } else {
                EACH_ROW(i)
                {
                    part[i] += w[i] * sj[i];
                }
            }
        }
        FN(flush)(p->sum + (ptrdiff_t)(step->group[0].first + k) * GP_ROWS, part, 1, m);
    }
    if (step->kind == GP_RQ) {
        const real *restrict adjoint = FN(adjoints)(p, at), *restrict value = FN(values)(p, at);
        const real *restrict extra = FN(aux)(p, at, 2);
        FN(set)(part, 0, m);
        for (int j = 0; j < p->cols; j++) {
            EACH_ROW(i)
            {
                part[i] +=
                    adjoint[j * GP_ROWS + i] * value[j * GP_ROWS + i] * extra[j * GP_ROWS + i];
            }
        }
        FN(flush)(p->sum + (ptrdiff_t)step->group[1].first * GP_ROWS, part, 1, m);
    }
}

static void FN(radial_inputs)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m;
    real *restrict part = FN(lane)(p, 0);
    const real *restrict weight = FN(radial_weight)(g, p, at);
    for (int k = 0; k < step->dims; k++) {
        const frgi_gp_slot *const slot = &g->slot[step->slot + k];
        const real *restrict x = FN(rows)(p, step->slot + k);
        FN(set)(part, 0, m);
        for (int j = 0; j < p->cols; j++) {
            const real c = FN(cols)(g, p, step->slot + k)[j];
            const real *restrict w = weight + j * GP_ROWS;
            EACH_ROW(i)
            {
                part[i] += w[i] * (x[i] - c);
            }
        }
        FN(flush)(p->gx + (ptrdiff_t)slot->column * GP_ROWS, part, -slot->factor, m);
    }
}

/* ---- periodic ----------------------------------------------------------------------------------- */

static void FN(periodic_forward)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const real *const half = FN(constants)(step), *const weight = half + step->dims;
    const int m = p->m;
    for (int j = 0; j < p->cols; j++) {
        real *restrict value = FN(values)(p, at) + j * GP_ROWS;
        FN(set)(value, 0, m);
        for (int k = 0; k < step->dims; k++) {
            const real *restrict x = FN(rows)(p, step->slot + k);
            const real c = FN(cols)(g, p, step->slot + k)[j], turn = half[k], w = weight[k];
            EACH_ROW(i)
            {
                real sine, cosine;
                EF(turns)((x[i] - c) * turn, &sine, &cosine);
                value[i] += w * (sine * sine);
            }
        }
        EACH_ROW(i)
        {
            value[i] = EF(exp_low)(-2 * value[i]);
        }
    }
}

/** dk/dlog l_k = 4 k sin^2 t / l^2 (GPyTorch: 2 k sin^2 t / l),  dk/dlog p_k = 4 k t sin t cos t w. */
static void FN(periodic_parameters)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const real *const half = FN(constants)(step), *const weight = half + step->dims;
    const int m = p->m;
    real *restrict of_l = FN(lane)(p, 0), *restrict of_p = FN(lane)(p, 1);
    for (int k = 0; k < step->dims; k++) {
        const real *restrict x = FN(rows)(p, step->slot + k);
        const real turn = half[k];
        FN(set)(of_l, 0, m);
        FN(set)(of_p, 0, m);
        for (int j = 0; j < p->cols; j++) {
            const real *restrict adjoint = FN(adjoints)(p, at) + j * GP_ROWS;
            const real *restrict value = FN(values)(p, at) + j * GP_ROWS;
            const real c = FN(cols)(g, p, step->slot + k)[j];
            EACH_ROW(i)
            {
                real sine, cosine;
                const real t = (x[i] - c) * turn, w = adjoint[i] * value[i];
                EF(turns)(t, &sine, &cosine);
                of_l[i] += w * (sine * sine);
                of_p[i] += w * (t * sine * cosine);
            }
        }
        const double factor = (double)weight[k], power = step->kind == GP_PERIODIC ? 4 : 2;
        const int l = step->group[0].vector ? k : 0, period = step->group[1].vector ? k : 0;
        FN(flush)
        (p->sum + (ptrdiff_t)(step->group[0].first + l) * GP_ROWS, of_l, power * factor, m);
        FN(flush)
        (p->sum + (ptrdiff_t)(step->group[1].first + period) * GP_ROWS, of_p, 4 * TWO_PI * factor,
         m);
    }
}

static void FN(periodic_inputs)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const real *const half = FN(constants)(step), *const weight = half + step->dims;
    const int m = p->m;
    real *restrict part = FN(lane)(p, 0);
    for (int k = 0; k < step->dims; k++) {
        const real *restrict x = FN(rows)(p, step->slot + k);
        const real turn = half[k];
        FN(set)(part, 0, m);
        for (int j = 0; j < p->cols; j++) {
            const real *restrict adjoint = FN(adjoints)(p, at) + j * GP_ROWS;
            const real *restrict value = FN(values)(p, at) + j * GP_ROWS;
            const real c = FN(cols)(g, p, step->slot + k)[j];
            EACH_ROW(i)
            {
                real sine, cosine;
                EF(turns)((x[i] - c) * turn, &sine, &cosine);
                part[i] += adjoint[i] * value[i] * (sine * cosine);
            }
        }
        const double factor = -4 * TWO_PI * (double)turn * (double)weight[k];
        FN(flush)(p->gx + (ptrdiff_t)g->slot[step->slot + k].column * GP_ROWS, part, factor, m);
    }
}

/* ---- linear and poly ---------------------------------------------------------------------------- */

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

/** sum_j g (or g slope), each times the column's x_jk where k >= 0, into part. */
static void FN(linear_sum)(const frgi_gp_program *g, frgi_gp_patch *p, int at, int k,
                           real *restrict part)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m;
    FN(set)(part, 0, m);
    for (int j = 0; j < p->cols; j++) {
        const real *restrict adjoint = FN(adjoints)(p, at) + j * GP_ROWS;
        const real *restrict slope = FN(aux)(p, at, 0) + j * GP_ROWS;
        const real c = k >= 0 ? FN(cols)(g, p, step->slot + k)[j] : 1;
        if (step->kind == GP_LINEAR) {
            EACH_ROW(i)
            {
                part[i] += adjoint[i] * c;
            }
        } else {
            EACH_ROW(i)
            {
                part[i] += adjoint[i] * slope[i] * c;
            }
        }
    }
}

static void FN(linear_parameters)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const real *const constant = FN(constants)(step);
    const int m = p->m;
    real *restrict part = FN(lane)(p, 0);
    if (step->kind == GP_POLY) {
        FN(linear_sum)(g, p, at, -1, part);
        FN(flush)(p->sum + (ptrdiff_t)step->group[0].first * GP_ROWS, part, (double)constant[0], m);
        return;
    }
    for (int k = 0; k < step->dims; k++) {
        const real *restrict x = FN(rows)(p, step->slot + k);
        FN(linear_sum)(g, p, at, k, part);
        EACH_ROW(i)
        {
            part[i] *= x[i];
        }
        const int t = step->group[0].first + (step->group[0].vector ? k : 0);
        FN(flush)(p->sum + (ptrdiff_t)t * GP_ROWS, part, (double)constant[k], m);
    }
}

static void FN(linear_inputs)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    real *restrict part = FN(lane)(p, 0);
    for (int k = 0; k < step->dims; k++) {
        const double v = step->kind == GP_LINEAR ? (double)FN(constants)(step)[k] : 1;
        FN(linear_sum)(g, p, at, k, part);
        FN(flush)(p->gx + (ptrdiff_t)g->slot[step->slot + k].column * GP_ROWS, part, v, p->m);
    }
}

/* ---- products over columns: cosine, spectral mixtures ------------------------------------------- */

/** others[k] = product of all factor[k'] but k', each GP_ROWS long; returns the whole product in `all`. */
static inline void FN(leave_one_out)(int count, int m, const real *restrict factor,
                                     real *restrict others, real *restrict all)
{
    FN(set)(all, 1, m);
    for (int k = 0; k < count; k++) {
        EACH_ROW(i)
        {
            others[k * GP_ROWS + i] = all[i];
            all[i] *= factor[k * GP_ROWS + i];
        }
    }
    FN(set)(all, 1, m);
    for (int k = count - 1; k >= 0; k--) {
        EACH_ROW(i)
        {
            others[k * GP_ROWS + i] *= all[i];
            all[i] *= factor[k * GP_ROWS + i];
        }
    }
}

/** cosine[k] = cos 2 pi f_k D_k and sine[k] */
static inline void FN(waves)(const frgi_gp_program *g, const frgi_gp_patch *p,
                             const frgi_gp_step *step, int j, const real *f, real *restrict cosine,
                             real *restrict sine)
{
    const int m = p->m;
    for (int k = 0; k < step->dims; k++) {
        const real *restrict x = FN(rows)(p, step->slot + k);
        const real c = FN(cols)(g, p, step->slot + k)[j], turn = f[k];
        EACH_ROW(i)
        {
            EF(turns)((x[i] - c) * turn, &sine[k * GP_ROWS + i], &cosine[k * GP_ROWS + i]);
        }
    }
}

static void FN(cosine_forward)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m;
    real *restrict cosine = FN(lane)(p, 0), *restrict sine = FN(lane)(p, step->dims);
    for (int j = 0; j < p->cols; j++) {
        real *restrict value = FN(values)(p, at) + j * GP_ROWS;
        FN(waves)(g, p, step, j, FN(constants)(step), cosine, sine);
        FN(set)(value, 1, m);
        for (int k = 0; k < step->dims; k++) {
            EACH_ROW(i)
            {
                value[i] *= cosine[k * GP_ROWS + i];
            }
        }
    }
}

/** sum_p of t sin t times the others; gx of -2 pi f sin t times the others. */
static void FN(cosine_sums)(const frgi_gp_program *g, frgi_gp_patch *p, int at, bool inputs)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m, dims = step->dims;
    const real *const f = FN(constants)(step);
    real *restrict cosine = FN(lane)(p, 0), *restrict sine = FN(lane)(p, dims);
    real *restrict others = FN(lane)(p, 2 * dims), *restrict all = FN(lane)(p, 3 * dims);
    for (int j = 0; j < p->cols; j++) {
        const real *restrict adjoint = FN(adjoints)(p, at) + j * GP_ROWS;
        FN(waves)(g, p, step, j, f, cosine, sine);
        FN(leave_one_out)(dims, m, cosine, others, all);
        for (int k = 0; k < dims; k++) {
            const real *restrict x = FN(rows)(p, step->slot + k);
            const real c = FN(cols)(g, p, step->slot + k)[j];
            const int t = step->group[0].first + (step->group[0].vector ? k : 0);
            double *restrict to = inputs
                                      ? p->gx + (ptrdiff_t)g->slot[step->slot + k].column * GP_ROWS
                                      : p->sum + (ptrdiff_t)t * GP_ROWS;
            const double factor = inputs ? -TWO_PI * (double)f[k] : TWO_PI * (double)f[k];
            EACH_ROW(i)
            {
                const real slope = adjoint[i] * sine[k * GP_ROWS + i] * others[k * GP_ROWS + i];
                to[i] += factor * (double)(inputs ? slope : slope * (x[i] - c));
            }
        }
    }
}

/** One component: e = w exp(-sum a D^2), cosines and sines. */
static inline void FN(component)(const frgi_gp_program *g, const frgi_gp_patch *p,
                                 const frgi_gp_step *step, int j, int q, real *restrict cosine,
                                 real *restrict sine, real *restrict e)
{
    const int m = p->m, dims = step->dims;
    const real *const w = FN(constants)(step), *const mu = w + step->degree + q * dims;
    const real *const a = w + step->degree + (step->degree + q) * dims;
    FN(waves)(g, p, step, j, mu, cosine, sine);
    FN(set)(e, 0, m);
    for (int k = 0; k < dims; k++) {
        const real *restrict x = FN(rows)(p, step->slot + k);
        const real c = FN(cols)(g, p, step->slot + k)[j], ak = a[k];
        EACH_ROW(i)
        {
            const real d = x[i] - c;
            e[i] += ak * (d * d);
        }
    }
    const real weight = w[q];
    EACH_ROW(i)
    {
        e[i] = weight * EF(exp_low)(-e[i]);
    }
}

/** Sum over components of products over columns (Wilson and Adams 2013). */
static void FN(mixture_forward)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m, dims = step->dims;
    real *restrict cosine = FN(lane)(p, 0), *restrict sine = FN(lane)(p, dims);
    real *restrict e = FN(lane)(p, 2 * dims);
    for (int j = 0; j < p->cols; j++) {
        real *restrict value = FN(values)(p, at) + j * GP_ROWS;
        FN(set)(value, 0, m);
        for (int q = 0; q < step->degree; q++) {
            FN(component)(g, p, step, j, q, cosine, sine, e);
            for (int k = 0; k < dims; k++) {
                EACH_ROW(i)
                {
                    e[i] *= cosine[k * GP_ROWS + i];
                }
            }
            EACH_ROW(i)
            {
                value[i] += e[i];
            }
        }
    }
}

/** dlog w: term; dlog v: -a D^2 term; dlog mu: -e 2 pi mu D sin times the others; by x: -2 a D term - e 2 pi mu sin. */
static void FN(mixture_sums)(const frgi_gp_program *g, frgi_gp_patch *p, int at, bool inputs)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m, dims = step->dims, parts = step->degree;
    const real *const w = FN(constants)(step), *const mu = w + parts, *const a = mu + parts * dims;
    real *restrict cosine = FN(lane)(p, 0), *restrict sine = FN(lane)(p, dims);
    real *restrict others = FN(lane)(p, 2 * dims), *restrict all = FN(lane)(p, 3 * dims);
    real *restrict e = FN(lane)(p, 3 * dims + 1);
    for (int j = 0; j < p->cols; j++) {
        const real *restrict adjoint = FN(adjoints)(p, at) + j * GP_ROWS;
        for (int q = 0; q < parts; q++) {
            FN(component)(g, p, step, j, q, cosine, sine, e);
            FN(leave_one_out)(dims, m, cosine, others, all);
            EACH_ROW(i)
            {
                e[i] *= adjoint[i];
                all[i] *= e[i];
            }
            if (!inputs) {
                FN(flush)(p->sum + (ptrdiff_t)(step->group[0].first + q) * GP_ROWS, all, 1, m);
            }
            for (int k = 0; k < dims; k++) {
                const real *restrict x = FN(rows)(p, step->slot + k);
                const real c = FN(cols)(g, p, step->slot + k)[j];
                const double turn = TWO_PI * (double)mu[q * dims + k],
                             width = (double)a[q * dims + k];
                double *restrict gx = p->gx + (ptrdiff_t)g->slot[step->slot + k].column * GP_ROWS;
                double *restrict of_mu =
                    p->sum + (ptrdiff_t)(step->group[1].first + q * dims + k) * GP_ROWS;
                double *restrict of_v =
                    p->sum + (ptrdiff_t)(step->group[2].first + q * dims + k) * GP_ROWS;
                EACH_ROW(i)
                {
                    const real d = x[i] - c;
                    const double wave =
                        turn * (double)(e[i] * sine[k * GP_ROWS + i] * others[k * GP_ROWS + i]);
                    const double bell = width * (double)(d * all[i]);
                    if (inputs) {
                        gx[i] -= 2 * bell + wave;
                    } else {
                        of_mu[i] -= (double)d * wave;
                        of_v[i] -= (double)d * bell;
                    }
                }
            }
        }
    }
}

/** One column's sum over components as GPyTorch has it, w exp(-a D^2) cos 2 pi mu D; `sine` is its twin. */
static inline void FN(bell)(const frgi_gp_step *step, int q, int k, real c, const real *restrict x,
                            int m, real *restrict cosine, real *restrict sine)
{
    const int dims = step->dims, parts = step->degree;
    const real *const w = FN(constants)(step), *const mu = w + parts, *const a = mu + parts * dims;
    const real weight = w[q], turn = mu[q * dims + k], width = a[q * dims + k];
    EACH_ROW(i)
    {
        const real d = x[i] - c, e = weight * EF(exp_low)(-width * (d * d));
        real si, co;
        EF(turns)(d * turn, &si, &co);
        cosine[i] = e * co;
        sine[i] = e * si;
    }
}

/** factor[k] = sum over components, for one column j. */
static inline void FN(bells)(const frgi_gp_program *g, const frgi_gp_patch *p,
                             const frgi_gp_step *step, int j, real *restrict factor,
                             real *restrict work)
{
    const int m = p->m;
    for (int k = 0; k < step->dims; k++) {
        const real *restrict x = FN(rows)(p, step->slot + k);
        const real c = FN(cols)(g, p, step->slot + k)[j];
        FN(set)(factor + k * GP_ROWS, 0, m);
        for (int q = 0; q < step->degree; q++) {
            FN(bell)(step, q, k, c, x, m, work, work + GP_ROWS);
            EACH_ROW(i)
            {
                factor[k * GP_ROWS + i] += work[i];
            }
        }
    }
}

/** Product over columns of sums over components (GPyTorch). */
static void FN(mixture_product_forward)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m, dims = step->dims;
    real *restrict factor = FN(lane)(p, 0), *restrict work = FN(lane)(p, 2 * dims);
    for (int j = 0; j < p->cols; j++) {
        real *restrict value = FN(values)(p, at) + j * GP_ROWS;
        FN(bells)(g, p, step, j, factor, work);
        FN(set)(value, 1, m);
        for (int k = 0; k < dims; k++) {
            EACH_ROW(i)
            {
                value[i] *= factor[k * GP_ROWS + i];
            }
        }
    }
}

static void FN(mixture_product_sums)(const frgi_gp_program *g, frgi_gp_patch *p, int at,
                                     bool inputs)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m, dims = step->dims, parts = step->degree;
    const real *const w = FN(constants)(step), *const mu = w + parts, *const a = mu + parts * dims;
    real *restrict factor = FN(lane)(p, 0), *restrict others = FN(lane)(p, dims);
    real *restrict all = FN(lane)(p, 2 * dims), *restrict work = FN(lane)(p, 2 * dims + 1);
    for (int j = 0; j < p->cols; j++) {
        const real *restrict adjoint = FN(adjoints)(p, at) + j * GP_ROWS;
        FN(bells)(g, p, step, j, factor, work);
        FN(leave_one_out)(dims, m, factor, others, all);
        for (int k = 0; k < dims; k++) {
            const real *restrict x = FN(rows)(p, step->slot + k);
            const real c = FN(cols)(g, p, step->slot + k)[j];
            double *restrict gx = p->gx + (ptrdiff_t)g->slot[step->slot + k].column * GP_ROWS;
            for (int q = 0; q < parts; q++) {
                const double turn = TWO_PI * (double)mu[q * dims + k],
                             width = 2 * (double)a[q * dims + k];
                double *restrict of_w = p->sum + (ptrdiff_t)(step->group[0].first + q) * GP_ROWS;
                double *restrict of_mu =
                    p->sum + (ptrdiff_t)(step->group[1].first + q * dims + k) * GP_ROWS;
                double *restrict of_s =
                    p->sum + (ptrdiff_t)(step->group[2].first + q * dims + k) * GP_ROWS;
                FN(bell)(step, q, k, c, x, m, work, work + GP_ROWS);
                EACH_ROW(i)
                {
                    const double d = (double)(x[i] - c),
                                 outer = (double)(adjoint[i] * others[k * GP_ROWS + i]);
                    const double term = outer * (double)work[i];
                    const double wave = turn * outer * (double)work[GP_ROWS + i],
                                 bell = width * d * term;
                    if (inputs) {
                        gx[i] -= bell + wave;
                    } else {
                        of_w[i] += term;
                        of_mu[i] -= d * wave;
                        of_s[i] -= d * bell;
                    }
                }
            }
        }
    }
}

/* ---- constants and the user's kernel ------------------------------------------------------------ */

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
    real *restrict part = FN(lane)(p, 0);
    FN(set)(part, 0, m);
    for (int j = 0; j < p->cols; j++) {
        EACH_ROW(i)
        {
            part[i] += adjoint[j * GP_ROWS + i] * value[j * GP_ROWS + i];
        }
    }
    FN(flush)(p->sum + (ptrdiff_t)g->step[at].group[0].first * GP_ROWS, part, 1, m);
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

/* ---- sums, products, scales --------------------------------------------------------------------- */

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

/* ---- the table of kinds ------------------------------------------------------------------------- */

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

/* ---- weights ------------------------------------------------------------------------------------ */

/** Entry (i, j) of the patch in the inverse's tile. */
static inline real FN(entry)(const frgi_gp_weights *w, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t row = w->row + i, col = w->col + j;
    const bool mirror = w->transposed || (w->diagonal && row < col);
    return ((const real *)w->tile)[mirror ? col + row * w->ld : row + col * w->ld];
}

/** One column of W without regard to the diagonal. */
static inline void FN(weigh_column)(const frgi_gp_weights *w, const frgi_gp_patch *p, int j,
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

static void FN(weigh)(const frgi_gp_program *g, const frgi_gp_weights *w, frgi_gp_patch *p)
{
    real *const root = FN(adjoints)(p, g->n_steps - 1);
    for (int j = 0; j < p->cols; j++) {
        real *const to = root + j * GP_ROWS;
        FN(weigh_column)(w, p, j, to);
        const ptrdiff_t same = p->j0 + j - p->i0;
        for (ptrdiff_t i = 0; !w->full && i < same && i < p->m; i++) {
            to[i] = 0;
        }
        if (!w->full && same >= 0 && same < p->rows) {
            to[same] *= (real)0.5;
        }
    }
}

static void FN(spread)(const frgi_gp_program *g, const double *a, frgi_gp_patch *p)
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

static void FN(mark)(const frgi_gp_program *g, frgi_gp_patch *p)
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

/* ---- in and out --------------------------------------------------------------------------------- */

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
