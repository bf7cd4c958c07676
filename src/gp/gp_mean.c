/* gp_mean.c - the mean function: parameters, residuals, gradients; what is profiled, mean and
 * scale.
 *
 *     zero, values        m given
 *     const, linear       m = b_0 (+ x'b), parameters b for every column of y
 *     profiled            m = H beta,  beta = (H'K^-1 H)^-1 H'K^-1 y,  H = [1] or [1, x - centre]
 *
 * The profiled mean comes out of the triangular solves that the value needs anyway: with Z = L^-1
 * H, z = L^-1 y
 *
 *     A = H'K^-1 H = Z'Z = L_A L_A',   beta = A^-1 Z'z,   z <- z - Z beta,   a = L^-T z
 *     E = K^-1 H L_A^-T,   K^-1 H A^-1 H'K^-1 = E E'
 *
 * and K^-1 - E E' is the matrix of the restricted likelihood (Harville 1977; A as in Rasmussen and
 * Williams 2006, 2.45): 2 m n^2 flop for the m columns of H.  Each column of y is centred first: an
 * offset of 1e6 standard deviations would cost six digits of beta.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gp/gp_process.h"
#include "gp/gp_tree.h"
#include "io/decimal.h"
#include "linalg/cholesky.h"

/* The share of a column's square, beside the columns before it, that counts as none. */
static const double COLLINEAR = 1e-12;

/* ---- reading --------------------------------------------------------------------------------- */

/** The value between the brackets of "const(v)" and "const(v!)". */
static frg_status read_constant(frg_gp *gp, const char *from, const char *end)
{
    gp->mean.fixed = end > from && end[-1] == '!';
    frgi_decimal *numbers;
    TRY(frgi_decimal_open(&numbers, gp->ctx));
    const bool good = frgi_decimal_parse(numbers, from, end - gp->mean.fixed, &gp->mean.start);
    frgi_decimal_close(&numbers, gp->ctx);
    if (!good || !isfinite(gp->mean.start)) {
        FAIL(gp->ctx, E_OPTION, "mean: const(%.*s) does not hold a number", (int)(end - from),
             from);
    }
    return FRG_OK;
}

frg_status frgi_gp_mean_parse(frg_gp *gp, const char *text)
{
    static const struct {
        const char *name;
        frgi_gp_mean_kind mean;
        bool all_columns; /* profiled: the inputs beside the constant */
    } words[] = {
        {"zero", GP_MEAN_ZERO, false},
        {"const", GP_MEAN_CONST, false},
        {"linear", GP_MEAN_LINEAR, false},
        {"profiled", GP_MEAN_PROFILED, false},
        {"profiled(linear)", GP_MEAN_PROFILED, true},
        {"values", GP_MEAN_VALUES, false},
    };
    gp->mean.start = (double)NAN;
    const char *const word = text ? text : "const";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i].name) == 0) {
            gp->mean.kind = words[i].mean;
            gp->profile.count = gp->mean.kind != GP_MEAN_PROFILED ? 0
                                : words[i].all_columns            ? 1 + gp->data.d
                                                                  : 1;
            return FRG_OK;
        }
    }
    const size_t length = strlen(word);
    if (strncmp(word, "const(", 6) == 0 && word[length - 1] == ')') {
        gp->mean.kind = GP_MEAN_CONST;
        return read_constant(gp, word + 6, word + length - 1);
    }
    FAIL(
        gp->ctx, E_OPTION,
        "mean \"%s\" is not known; it is zero, const, const(v), linear, profiled, profiled(linear) "
        "or values",
        word);
}

static double column_mean(const frg_gp *gp, ptrdiff_t c)
{
    return frgi_gp_mean_of(gp->data.y + c * gp->data.n, gp->data.n, 1);
}

frg_status frgi_gp_mean_add(frg_gp *gp)
{
    const ptrdiff_t width = gp->mean.kind == GP_MEAN_CONST    ? 1
                            : gp->mean.kind == GP_MEAN_LINEAR ? 1 + gp->data.d
                                                              : 0;
    frgi_gp_params *const ps = &gp->model.params;
    ps->mean_first = ps->count;
    ps->mean_count = (int)(width * gp->data.q);
    for (ptrdiff_t k = 0; k < width * gp->data.q; k++) {
        const double start = k % width != 0 ? 0 : gp->mean.start;
        TRY(frgi_gp_params_add(ps, "mean",
                               (frgi_gp_param){.entry = width * gp->data.q == 1 ? -1 : (int)k,
                                               .role = GP_ROLE_MEAN,
                                               .column = -1,
                                               .value = start,
                                               .start_factor = 1,
                                               .lower = -INFINITY,
                                               .upper = INFINITY,
                                               .transform = FRG_GP_IDENTITY,
                                               .fixed = gp->mean.fixed,
                                               .per_value = true,
                                               .std_error = (double)NAN}));
    }
    return FRG_OK;
}

void frgi_gp_mean_start(frg_gp *gp)
{
    const frgi_gp_params *const ps = &gp->model.params;
    const ptrdiff_t width = ps->mean_count / gp->data.q;
    for (ptrdiff_t k = 0; k < ps->mean_count; k++) {
        double *const value = &ps->p[ps->mean_first + k].value;
        const double start = gp->opts.preset == FRG_GP_PRESET_NONE ? column_mean(gp, k / width) : 0;
        *value = isnan(*value) ? start : *value;
    }
}

/** Entry (i, a) of H. */
static double basis_at(const frg_gp *gp, ptrdiff_t i, ptrdiff_t a)
{
    return a == 0 ? 1 : gp->data.x[i * gp->data.d + a - 1] - gp->columns.centre[a - 1];
}

void frgi_gp_mean_basis(frg_gp *gp)
{
    for (ptrdiff_t a = 0; a < gp->profile.count; a++) {
        for (ptrdiff_t i = 0; i < gp->data.n; i++) {
            gp->profile.basis[a * gp->data.n + i] = basis_at(gp, i, a);
        }
    }
}

frg_status frgi_gp_mean_check(frg_gp *gp)
{
    const ptrdiff_t n = gp->data.n, m = gp->profile.count;
    if (m == 0) {
        return FRG_OK;
    }
    REQUIRE(gp->ctx, n >= m, "a profiled mean of %lld columns needs as many points, got %lld",
            (long long)m, (long long)n);
    double *gram, *scale;
    unsigned char *kept;
    TRY(NEW(gp->ctx, &gram, m * m + 2 * m, "the profiled mean"));
    scale = gram + m * m;
    kept = (unsigned char *)(scale + m);
    for (ptrdiff_t a = 0; a < m; a++) {
        for (ptrdiff_t b = 0; b <= a; b++) {
            double sum = 0;
            for (ptrdiff_t i = 0; i < n; i++) {
                sum += basis_at(gp, i, a) * basis_at(gp, i, b);
            }
            gram[a * m + b] = sum;
        }
        scale[a] = gram[a * m + a] > 0 ? 1 / sqrt(gram[a * m + a]) : 0;
    }
    for (ptrdiff_t a = 0; a < m; a++) {
        for (ptrdiff_t b = 0; b <= a; b++) {
            gram[a * m + b] *= scale[a] * scale[b];
            gram[b * m + a] = gram[a * m + b];
        }
    }
    frgi_cholesky_keep((int)m, gram, COLLINEAR, kept, 1, NULL);
    ptrdiff_t dropped = 0;
    while (dropped < m && kept[dropped]) {
        dropped++;
    }
    DROP(gp->ctx, &gram);
    REQUIRE(gp->ctx, dropped == m,
            "mean: column %s is constant or a combination of those before it; leave it out or use "
            "mean profiled",
            gp->data.column_names[dropped - 1]);
    return FRG_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

/** Parameters of column c. */
static const double *coefficients(const frg_gp *gp, ptrdiff_t c)
{
    return gp->model.theta + gp->model.params.mean_first +
           c * (gp->model.params.mean_count / gp->data.q);
}

void frgi_gp_mean_at(const frg_gp *gp, ptrdiff_t m, const double *x, ptrdiff_t c, double *out)
{
    const ptrdiff_t d = gp->data.d;
    const bool profiled = gp->mean.kind == GP_MEAN_PROFILED,
               given = gp->mean.kind == GP_MEAN_LINEAR;
    const double *const b = profiled ? gp->profile.beta + c * gp->profile.count
                            : given || gp->mean.kind == GP_MEAN_CONST ? coefficients(gp, c)
                                                                      : NULL;
    const ptrdiff_t slopes = given ? d : profiled ? gp->profile.count - 1 : 0;
    for (ptrdiff_t i = 0; i < m; i++) {
        double sum = b ? b[0] : 0;
        for (ptrdiff_t k = 0; k < slopes; k++) {
            sum += b[1 + k] * (x[i * d + k] - (profiled ? gp->columns.centre[k] : 0));
        }
        out[i] = sum;
    }
}

void frgi_gp_mean_residual(frg_gp *gp)
{
    const ptrdiff_t n = gp->data.n;
    for (ptrdiff_t c = 0; c < gp->data.q; c++) {
        double *const r = gp->vectors.residual + c * n;
        const double *const y = gp->data.y + c * n;
        const double constant = gp->mean.kind == GP_MEAN_CONST      ? *coefficients(gp, c)
                                : gp->mean.kind == GP_MEAN_PROFILED ? column_mean(gp, c)
                                                                    : 0;
        if (gp->mean.kind == GP_MEAN_LINEAR) {
            frgi_gp_mean_at(gp, n, gp->data.x, c, r);
        }
        for (ptrdiff_t i = 0; i < n; i++) {
            r[i] = y[i] - (gp->mean.kind == GP_MEAN_LINEAR   ? r[i]
                           : gp->mean.kind == GP_MEAN_VALUES ? gp->data.given_mean[i]
                                                             : constant);
        }
    }
}

/* ---- the profiled mean ----------------------------------------------------------------------- */

static void subtract(ptrdiff_t n, double factor, const double *a, double *from)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        from[i] -= factor * a[i];
    }
}

/** L_A L_A' = Z'Z, row by row; logdet <- log |A|; false where a pivot is rounding. */
static bool factor_gram(ptrdiff_t n, ptrdiff_t m, const double *z, double *root, double *logdet)
{
    *logdet = 0;
    for (ptrdiff_t a = 0; a < m; a++) {
        const double whole = frgi_gp_dot(n, z + a * n, z + a * n);
        for (ptrdiff_t b = 0; b < m; b++) {
            double sum = b <= a ? frgi_gp_dot(n, z + a * n, z + b * n) : 0;
            for (ptrdiff_t k = 0; k < b && b <= a; k++) {
                sum -= root[a * m + k] * root[b * m + k];
            }
            if (a == b && !(sum > COLLINEAR * whole)) {
                return false;
            }
            root[a * m + b] = b < a ? sum / root[b * m + b] : b == a ? sqrt(sum) : 0;
        }
        *logdet += 2 * log(root[a * m + a]);
    }
    return true;
}

bool frgi_gp_mean_profile(frg_gp *gp)
{
    const ptrdiff_t n = gp->data.n, m = gp->profile.count;
    const double *const z = gp->profile.solved, *const root = gp->profile.root;
    if (!factor_gram(n, m, z, gp->profile.root, &gp->profile.logdet)) {
        return false;
    }
    for (ptrdiff_t c = 0; c < gp->data.q; c++) {
        double *const w = gp->vectors.alpha + c * n, *const b = gp->profile.beta + c * m;
        for (ptrdiff_t a = 0; a < m; a++) {
            b[a] =
                (frgi_gp_dot(n, z + a * n, w) - frgi_gp_dot(a, root + a * m, b)) / root[a * m + a];
        }
        for (ptrdiff_t a = m - 1; a >= 0; a--) {
            for (ptrdiff_t k = a + 1; k < m; k++) {
                b[a] -= root[k * m + a] * b[k];
            }
            b[a] /= root[a * m + a];
        }
        for (ptrdiff_t a = 0; a < m; a++) {
            subtract(n, b[a], z + a * n, w);
            subtract(n, b[a], gp->profile.basis + a * n, gp->vectors.residual + c * n);
        }
        b[0] += column_mean(gp, c);
    }
    return true;
}

void frgi_gp_mean_correction(frg_gp *gp)
{
    const ptrdiff_t n = gp->data.n, m = gp->profile.count;
    const double *const root = gp->profile.root;
    const double weight = sqrt((double)gp->data.q);
    for (ptrdiff_t a = 0; a < m; a++) { /* E L_A' = K^-1 H, column after column */
        double *const e = gp->profile.correction + a * n;
        memcpy(e, gp->profile.solved + a * n, (size_t)n * sizeof *e);
        for (ptrdiff_t k = 0; k < a; k++) {
            subtract(n, root[a * m + k], gp->profile.correction + k * n, e);
        }
        for (ptrdiff_t i = 0; i < n; i++) {
            e[i] /= root[a * m + a];
        }
    }
    for (ptrdiff_t i = 0; gp->data.q > 1 && i < n * m; i++) {
        gp->profile.extra[i] = weight * gp->profile.correction[i];
    }
}

/* ---- gradients ------------------------------------------------------------------------------- */

/** Adds the effect of x through H, whose column k is input k: d ell/dx_ik = sum_c beta_kc a_ic, and
 *  under REML - q (K^-1 H A^-1)_ik of -q/2 log |A|. */
static void profiled_dx(const frg_gp *gp, const double *a, double *dx)
{
    const ptrdiff_t n = gp->data.n, d = gp->data.d, m = gp->profile.count;
    const double unit = 1 / sqrt(gp->state.scale);
    for (ptrdiff_t k = 1; k < m; k++) {
        for (ptrdiff_t c = 0; c < gp->data.q; c++) {
            for (ptrdiff_t i = 0; i < n; i++) {
                dx[i * d + k - 1] += unit * a[c * n + i] * gp->profile.beta[c * m + k];
            }
        }
    }
    if (!gp->opts.reml) {
        return;
    }
    const double *const root = gp->profile.root;
    double *const t = gp->vectors.scratch; /* column k of L_A^-1: K^-1 H A^-1 = E L_A^-1 */
    for (ptrdiff_t k = 1; k < m; k++) {
        for (ptrdiff_t j = k; j < m; j++) {
            t[j] = ((j == k) - frgi_gp_dot(j - k, root + j * m + k, t + k)) / root[j * m + j];
            for (ptrdiff_t i = 0; i < n; i++) {
                dx[i * d + k - 1] -= (double)gp->data.q * t[j] * gp->profile.correction[j * n + i];
            }
        }
    }
}

void frgi_gp_mean_gradient(const frg_gp *gp, const double *a, double *gradient, double *dx)
{
    const ptrdiff_t n = gp->data.n, d = gp->data.d;
    const double unit = 1 / sqrt(gp->state.scale);
    if (dx && gp->mean.kind == GP_MEAN_PROFILED) {
        profiled_dx(gp, a, dx);
    }
    const ptrdiff_t width = gp->model.params.mean_count / gp->data.q;
    for (ptrdiff_t k = 0; k < gp->model.params.mean_count; k++) {
        const double *const column = a + k / width * n;
        const ptrdiff_t input = k % width - 1;
        double sum = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            sum += input < 0 ? column[i] : column[i] * gp->data.x[i * d + input];
        }
        gradient[gp->model.params.mean_first + k] += unit * sum;
        for (ptrdiff_t i = 0; dx && input >= 0 && i < n; i++) {
            dx[i * d + input] +=
                unit * column[i] * gp->model.theta[gp->model.params.mean_first + k];
        }
    }
}

/* ---- the profiled scale ---------------------------------------------------------------------- */

/* The scale f at which the likelihood is largest.
 *
 *     K = f R,   f = r'R^-1 r / N,   N = n q, or (n - m) q under REML
 *
 * The code computes with R and the residual r / sqrt(f).  With a = R^-1 r / sqrt(f) and W = a a' -
 * q R^-1 the gradient is 1/2 sum_ij W_ij dR_ij: that f depends on theta adds nothing, as d ell/df =
 * 0.  Results in the units of y are multiplied last: means by sqrt(f), variances by f.  Jones,
 * Schonlau and Welch (1998). */

static const double ROUNDING = 8 * DBL_EPSILON; /* residuals of so much of y are rounding */

/* ---- the variance that a profiled scale replaces --------------------------------------------- */

static bool is_free(const frgi_gp_params *ps, int i)
{
    return !ps->p[i].fixed && ps->p[i].tie == 0;
}

/** The first free parameter that multiplies the node's value by itself, alone or with others of its
 *  group; -1: none. */
static int variance_of(const frgi_gp_kernel *k, const frgi_gp_params *ps, int at)
{
    const frgi_gp_node *const node = &k->node[at];
    const bool own = node->kind == GP_SCALE || node->kind == GP_LINEAR || node->kind == GP_SM ||
                     node->kind == GP_CONST || node->kind == GP_WHITE;
    for (int e = 0; own && e < node->group[0].count; e++) {
        const int i = node->group[0].first + e;
        if (is_free(ps, i)) {
            return i;
        }
    }
    int first = -1;
    for (int c = 0; c < node->children; c++) {
        const int i = variance_of(k, ps, frgi_gp_child(k, at, c));
        if (node->kind == GP_SUM && i < 0) {
            return -1;
        }
        first = first < 0 ? i : first;
    }
    return first;
}

void frgi_gp_scale_hold(frg_gp *gp)
{
    gp->state.scale = 1;
    frgi_gp_params *const ps = &gp->model.params;
    const int at = gp->opts.profile_scale
                       ? variance_of(gp->model.kernel, ps, gp->model.kernel->n_nodes - 1)
                       : -1;
    bool moves = at >= 0;
    for (int i = ps->noise_first; i < ps->noise_first + ps->noise_count; i++) {
        moves = moves && is_free(ps, i);
    }
    if (moves) {
        frgi_gp_param *const p = &ps->p[at];
        p->value = isnan(p->value) ? 1 : p->value;
        p->fixed = true;
    }
}

/* ---- the scale ------------------------------------------------------------------------------- */

double frgi_gp_scale_count(const frg_gp *gp)
{
    return (double)(gp->data.q * (gp->data.n - (gp->opts.reml ? gp->profile.count : 0)));
}

static double largest_of(const double *v, ptrdiff_t n)
{
    double largest = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        largest = fabs(v[i]) > largest ? fabs(v[i]) : largest;
    }
    return largest;
}

bool frgi_gp_scale_profile(frg_gp *gp)
{
    const ptrdiff_t all = gp->data.n * gp->data.q;
    gp->state.quad = 0;
    for (ptrdiff_t i = 0; i < all; i++) {
        gp->state.quad += gp->vectors.alpha[i] * gp->vectors.alpha[i];
    }
    if (!gp->opts.profile_scale) {
        return true;
    }
    const double count = frgi_gp_scale_count(gp);
    gp->state.scale = 0;
    if (!(count > 0 &&
          largest_of(gp->vectors.residual, all) > ROUNDING * largest_of(gp->data.y, all))) {
        return false;
    }
    gp->state.scale = gp->state.quad / count;
    const double divide = 1 / sqrt(gp->state.scale);
    for (ptrdiff_t i = 0; i < all; i++) {
        gp->vectors.alpha[i] *= divide;
        gp->vectors.residual[i] *= divide;
    }
    gp->state.quad = count;
    return gp->state.scale > 0;
}
