/* gp_periodic_cpu.tmpl.h - periodic kernels: periodic, cosine, spectral mixture; included once for
 * each type.
 *
 * D_k = x_ik - x_jk (raw, centred).  Products over columns are taken apart by prefixes and
 * suffixes, never by division.
 *
 * Constants of a leaf, one number for each column even where all share a parameter:
 *     periodic  0.5/p_k, then 1/l_k^2 (GPyTorch: 1/l_k)
 *     cosine    1/p_k (GPyTorch: 0.5/p)
 *     sm        w_q, mu_qk, 2 pi^2 v_qk (GPyTorch: 2 pi^2 s_qk^2)
 *
 * Template parameters: real, SUF, FAR, FN(name), EF(name) for exp and its like.
 */

/* ---- periodic -------------------------------------------------------------------------------- */

static void FN(periodic_forward)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const real *const frequency = FN(constants)(step), *const weight = frequency + step->dims;
    const int m = p->m;
    for (int j = 0; j < p->cols; j++) {
        real *restrict value = FN(values)(p, at) + j * GP_ROWS;
        FN(set)(value, 0, m);
        for (int k = 0; k < step->dims; k++) {
            const real *restrict x = FN(rows)(p, step->slot + k);
            const real c = FN(cols)(g, p, step->slot + k)[j], turn = frequency[k], w = weight[k];
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

/** dk/dlog l_k = 4 k sin^2 t / l^2 (GPyTorch: 2 k sin^2 t / l), dk/dlog p_k = 4 k t sin t cos t
 *  w. */
static void FN(periodic_parameters)(const frgi_gp_program *g, frgi_gp_patch *p, int at)
{
    const frgi_gp_step *const step = &g->step[at];
    const real *const frequency = FN(constants)(step), *const weight = frequency + step->dims;
    const int m = p->m;
    real *restrict of_l = FN(lane)(p, 0), *restrict of_p = FN(lane)(p, 1);
    for (int k = 0; k < step->dims; k++) {
        const real *restrict x = FN(rows)(p, step->slot + k);
        const real turn = frequency[k];
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
    const real *const frequency = FN(constants)(step), *const weight = frequency + step->dims;
    const int m = p->m;
    real *restrict partial = FN(lane)(p, 0);
    for (int k = 0; k < step->dims; k++) {
        const real *restrict x = FN(rows)(p, step->slot + k);
        const real turn = frequency[k];
        FN(set)(partial, 0, m);
        for (int j = 0; j < p->cols; j++) {
            const real *restrict adjoint = FN(adjoints)(p, at) + j * GP_ROWS;
            const real *restrict value = FN(values)(p, at) + j * GP_ROWS;
            const real c = FN(cols)(g, p, step->slot + k)[j];
            EACH_ROW(i)
            {
                real sine, cosine;
                EF(turns)((x[i] - c) * turn, &sine, &cosine);
                partial[i] += adjoint[i] * value[i] * (sine * cosine);
            }
        }
        const double factor = -4 * TWO_PI * (double)turn * (double)weight[k];
        FN(flush)(p->gx + (ptrdiff_t)g->slot[step->slot + k].column * GP_ROWS, partial, factor, m);
    }
}

/* ---- products over columns: cosine, spectral mixtures ---------------------------------------- */

/** others[k] = product of all factor[k'] but k', each GP_ROWS long; returns the whole product in
 *  `all`. */
ALWAYS void FN(leave_one_out)(int count, int m, const real *restrict factor, real *restrict others,
                              real *restrict all)
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
ALWAYS void FN(cosines)(const frgi_gp_program *g, const frgi_gp_patch *p, const frgi_gp_step *step,
                        int j, const real *f, real *restrict cosine, real *restrict sine)
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
        FN(cosines)(g, p, step, j, FN(constants)(step), cosine, sine);
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
ALWAYS void FN(cosine_sums)(const frgi_gp_program *g, frgi_gp_patch *p, int at, bool inputs)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m, dims = step->dims;
    const real *const f = FN(constants)(step);
    real *restrict cosine = FN(lane)(p, 0), *restrict sine = FN(lane)(p, dims);
    real *restrict others = FN(lane)(p, 2 * dims), *restrict all = FN(lane)(p, 3 * dims);
    for (int j = 0; j < p->cols; j++) {
        const real *restrict adjoint = FN(adjoints)(p, at) + j * GP_ROWS;
        FN(cosines)(g, p, step, j, f, cosine, sine);
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
    FN(cosines)(g, p, step, j, mu, cosine, sine);
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

/** dlog w: term; dlog v: -a D^2 term; dlog mu: -e 2 pi mu D sin times the others; by x: -2 a D term
 *  - e 2 pi mu sin. */
ALWAYS void FN(mixture_sums)(const frgi_gp_program *g, frgi_gp_patch *p, int at, bool inputs)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m, dims = step->dims, terms = step->degree;
    const real *const w = FN(constants)(step), *const mu = w + terms, *const a = mu + terms * dims;
    real *restrict cosine = FN(lane)(p, 0), *restrict sine = FN(lane)(p, dims);
    real *restrict others = FN(lane)(p, 2 * dims), *restrict all = FN(lane)(p, 3 * dims);
    real *restrict e = FN(lane)(p, 3 * dims + 1);
    for (int j = 0; j < p->cols; j++) {
        const real *restrict adjoint = FN(adjoints)(p, at) + j * GP_ROWS;
        for (int q = 0; q < terms; q++) {
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
                    const double oscillation =
                        turn * (double)(e[i] * sine[k * GP_ROWS + i] * others[k * GP_ROWS + i]);
                    const double bell = width * (double)(d * all[i]);
                    if (inputs) {
                        gx[i] -= 2 * bell + oscillation;
                    } else {
                        of_mu[i] -= (double)d * oscillation;
                        of_v[i] -= (double)d * bell;
                    }
                }
            }
        }
    }
}

/** One column's sum over components as GPyTorch has it, w exp(-a D^2) cos 2 pi mu D; `sine`: with
 *  sin. */
static inline void FN(bell)(const frgi_gp_step *step, int q, int k, real c, const real *restrict x,
                            int m, real *restrict cosine, real *restrict sine)
{
    const int dims = step->dims, terms = step->degree;
    const real *const w = FN(constants)(step), *const mu = w + terms, *const a = mu + terms * dims;
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

ALWAYS void FN(mixture_product_sums)(const frgi_gp_program *g, frgi_gp_patch *p, int at,
                                     bool inputs)
{
    const frgi_gp_step *const step = &g->step[at];
    const int m = p->m, dims = step->dims, terms = step->degree;
    const real *const w = FN(constants)(step), *const mu = w + terms, *const a = mu + terms * dims;
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
            for (int q = 0; q < terms; q++) {
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
                    const double oscillation = turn * outer * (double)work[GP_ROWS + i],
                                 bell = width * d * term;
                    if (inputs) {
                        gx[i] -= bell + oscillation;
                    } else {
                        of_w[i] += term;
                        of_mu[i] -= d * oscillation;
                        of_s[i] -= d * bell;
                    }
                }
            }
        }
    }
}
