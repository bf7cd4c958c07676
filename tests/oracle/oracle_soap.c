#include "oracle_soap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static double *array(int64_t n)
{
    double *const x = calloc((size_t)n + 1, sizeof *x);
    if (!x)
        abort();
    return x;
}

soap_oracle *soap_oracle_create(const frg_soap_opts *o, int axes, const int64_t d[],
                                const double *w)
{
    soap_oracle *const s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->o = *o;
    s->axes = axes;
    s->n = 1;
    for (int a = 0; a < axes; a++) {
        s->d[a] = d[a];
        s->n *= d[a];
    }
    s->w = array(s->n);
    s->m = array(s->n);
    s->v = array(s->n);
    memcpy(s->w, w, (size_t)s->n * sizeof *w);
    for (int a = 0; a < axes; a++) {
        const bool none = d[a] == 1 || (axes == 1 && !o->precondition_1d) ||
                          (o->max_precond_dim >= 0 && d[a] > o->max_precond_dim);
        if (none)
            continue;
        s->k[a] = array(d[a] * d[a]);
        s->q[a] = array(d[a] * d[a]);
        s->lambda[a] = array(d[a]);
        for (int64_t i = 0; i < d[a]; i++)
            s->q[a][i * d[a] + i] = 1;
    }
    return s;
}

void soap_oracle_destroy(soap_oracle *s)
{
    for (int a = 0; a < s->axes; a++) {
        free(s->k[a]);
        free(s->q[a]);
        free(s->lambda[a]);
    }
    free(s->w);
    free(s->m);
    free(s->v);
    free(s);
}

static bool factored(const soap_oracle *s)
{
    bool any = false;
    for (int a = 0; a < s->axes; a++)
        any |= s->k[a] != NULL;
    return any;
}

/** y[.., j, ..] = sum_i q_ij x[.., i, ..] along axis a, or with out sum_i q_ji x_i. */
static void contract(const soap_oracle *s, int a, bool out, double *x)
{
    int64_t outer = 1, inner = 1;
    const int64_t d = s->d[a];
    for (int b = 0; b < s->axes; b++) {
        outer *= b < a ? s->d[b] : 1;
        inner *= b > a ? s->d[b] : 1;
    }
    double *const y = array(d);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            double *const at = x + o * d * inner + i;
            for (int64_t j = 0; j < d; j++) {
                y[j] = 0;
                for (int64_t k = 0; k < d; k++)
                    y[j] += (out ? s->q[a][k * d + j] : s->q[a][j * d + k]) * at[k * inner];
            }
            for (int64_t j = 0; j < d; j++)
                at[j * inner] = y[j];
        }
    free(y);
}

static void project(const soap_oracle *s, bool out, double *x)
{
    for (int a = 0; a < s->axes; a++)
        if (s->k[a])
            contract(s, a, out, x);
}

/** sum over all but axis a: c_ij = sum x_i x_j */
static void outer_product(const soap_oracle *s, int a, const double *x, double *c)
{
    int64_t outer = 1, inner = 1;
    const int64_t d = s->d[a];
    for (int b = 0; b < s->axes; b++) {
        outer *= b < a ? s->d[b] : 1;
        inner *= b > a ? s->d[b] : 1;
    }
    memset(c, 0, (size_t)(d * d) * sizeof *c);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j < d; j++)
                for (int64_t k = 0; k < inner; k++)
                    c[j * d + i] += x[(o * d + i) * inner + k] * x[(o * d + j) * inner + k];
}

static double shampoo_beta(const soap_oracle *s)
{
    const frg_soap_opts *o = &s->o;
    const double beta = o->shampoo_beta < 0 ? o->beta2 : o->shampoo_beta;
    const int correct =
        o->correct_shampoo_beta_bias < 0 ? o->correct_bias : o->correct_shampoo_beta_bias;
    return correct ? 1 - (1 - beta) / (1 - pow(beta, (double)(s->t + 1))) : beta;
}

static void quotients(soap_oracle *s, int a, double *lambda)
{
    const int64_t d = s->d[a];
    for (int64_t j = 0; j < d; j++) {
        lambda[j] = 0;
        for (int64_t i = 0; i < d; i++)
            for (int64_t k = 0; k < d; k++)
                lambda[j] += s->q[a][j * d + i] * s->k[a][k * d + i] * s->q[a][j * d + k];
    }
}

static void accumulate(soap_oracle *s, const double *g)
{
    const frg_soap_opts *o = &s->o;
    const double beta = shampoo_beta(s);
    double *fresh[4] = {NULL};
    for (int a = 0; a < s->axes && o->use_kl_shampoo; a++)
        if (s->k[a] && o->sort_when == FRG_SORT_BEFORE_QR)
            quotients(s, a, s->lambda[a]);
    for (int a = 0; a < s->axes; a++) {
        if (!s->k[a])
            continue;
        double *const x = array(s->n);
        double scale = 1;
        memcpy(x, g, (size_t)s->n * sizeof *x);
        if (o->use_kl_shampoo) {
            const int b = 1 - a;
            if (s->k[b]) {
                contract(s, b, false, x);
                for (int64_t i = 0; i < s->d[0]; i++)
                    for (int64_t j = 0; j < s->d[1]; j++) {
                        const double l = fmax(s->lambda[b][b == 0 ? i : j], o->eps);
                        if (!(o->kl_init == FRG_KL_UNIT && s->t == 0))
                            x[i * s->d[1] + j] /= sqrt(l);
                    }
            }
            scale = 1 / (double)s->d[b];
        }
        fresh[a] = array(s->d[a] * s->d[a]);
        outer_product(s, a, x, fresh[a]);
        for (int64_t i = 0; i < s->d[a] * s->d[a]; i++)
            fresh[a][i] *= scale;
        free(x);
    }
    for (int a = 0; a < s->axes; a++) {
        for (int64_t i = 0; fresh[a] && i < s->d[a] * s->d[a]; i++)
            s->k[a][i] = beta * s->k[a][i] + (1 - beta) * fresh[a][i];
        free(fresh[a]);
    }
}

/** Eigenvectors by cyclic Jacobi rotations, descending. */
static void eigenvectors(int64_t n, const double *k, double *q)
{
    double *const a = array(n * n);
    memcpy(a, k, (size_t)(n * n) * sizeof *a);
    memset(q, 0, (size_t)(n * n) * sizeof *q);
    for (int64_t i = 0; i < n; i++)
        q[i * n + i] = 1;
    for (int sweep = 0; sweep < 60; sweep++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < n; j++) {
                const double off = a[j * n + i];
                if (fabs(off) <= 1e-300)
                    continue;
                const double theta = (a[j * n + j] - a[i * n + i]) / (2 * off);
                const double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(1 + theta * theta));
                const double c = 1 / sqrt(1 + t * t), e = t * c;
                for (int64_t l = 0; l < n; l++) {
                    const double x = a[i * n + l], y = a[j * n + l];
                    a[i * n + l] = c * x - e * y;
                    a[j * n + l] = e * x + c * y;
                }
                for (int64_t l = 0; l < n; l++) {
                    const double x = a[l * n + i], y = a[l * n + j];
                    a[l * n + i] = c * x - e * y;
                    a[l * n + j] = e * x + c * y;
                    const double u = q[i * n + l], w = q[j * n + l];
                    q[i * n + l] = c * u - e * w;
                    q[j * n + l] = e * u + c * w;
                }
            }
    for (int64_t i = 0; i < n; i++) /* selection sort, columns and values */
        for (int64_t j = i + 1; j < n; j++)
            if (a[j * n + j] > a[i * n + i]) {
                const double x = a[i * n + i];
                a[i * n + i] = a[j * n + j];
                a[j * n + j] = x;
                for (int64_t l = 0; l < n; l++) {
                    const double y = q[i * n + l];
                    q[i * n + l] = q[j * n + l];
                    q[j * n + l] = y;
                }
            }
    free(a);
}

static void orthonormalise(int64_t n, double *a)
{
    for (int64_t j = 0; j < n; j++) {
        for (int again = 0; again < 2; again++)
            for (int64_t k = 0; k < j; k++) {
                double dot = 0;
                for (int64_t i = 0; i < n; i++)
                    dot += a[k * n + i] * a[j * n + i];
                for (int64_t i = 0; i < n; i++)
                    a[j * n + i] -= dot * a[k * n + i];
            }
        double norm = 0;
        for (int64_t i = 0; i < n; i++)
            norm += a[j * n + i] * a[j * n + i];
        for (int64_t i = 0; i < n; i++)
            a[j * n + i] /= sqrt(norm);
    }
}

/** Columns of q (and v along the axis, when it follows) in descending order of lambda. */
static void sort_columns(soap_oracle *s, int a, double *lambda, bool v_follows)
{
    const int64_t d = s->d[a];
    int64_t outer = 1, inner = 1;
    for (int b = 0; b < s->axes; b++) {
        outer *= b < a ? s->d[b] : 1;
        inner *= b > a ? s->d[b] : 1;
    }
    for (int64_t i = 1; i < d; i++)
        for (int64_t j = i; j > 0 && lambda[j] > lambda[j - 1]; j--) {
            const double x = lambda[j];
            lambda[j] = lambda[j - 1];
            lambda[j - 1] = x;
            for (int64_t l = 0; l < d; l++) {
                const double y = s->q[a][j * d + l];
                s->q[a][j * d + l] = s->q[a][(j - 1) * d + l];
                s->q[a][(j - 1) * d + l] = y;
            }
            for (int64_t o = 0; o < outer && v_follows; o++)
                for (int64_t l = 0; l < inner; l++) {
                    double *const one = s->v + (o * d + j) * inner + l, *const two = one - inner;
                    const double y = *one;
                    *one = *two;
                    *two = y;
                }
        }
}

static void rotate_v(soap_oracle *s, int a, const double *old)
{
    const int64_t d = s->d[a];
    double *const turn = array(d * d), *const keep = s->q[a];
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++) {
            double dot = 0;
            for (int64_t l = 0; l < d; l++)
                dot += old[i * d + l] * keep[j * d + l];
            turn[j * d + i] = dot * dot;
        }
    s->q[a] = turn;
    contract(s, a, false, s->v);
    s->q[a] = keep;
    free(turn);
}

static void power_iteration(soap_oracle *s, int a)
{
    const frg_soap_opts *o = &s->o;
    const int64_t d = s->d[a];
    const bool follow = o->moment2_order == FRG_MOMENT2_FOLLOW;
    double *const x = array(d * d), *const old = array(d * d);
    memcpy(old, s->q[a], (size_t)(d * d) * sizeof *old);
    double norm = 0;
    for (int64_t i = 0; i < d * d; i++)
        norm += s->k[a][i] * s->k[a][i];
    const double ridge = s->ridge * sqrt(norm);
    if (o->sort_when == FRG_SORT_BEFORE_QR) {
        quotients(s, a, s->lambda[a]);
        sort_columns(s, a, s->lambda[a], follow);
    }
    for (int step = 0; step < o->power_iter_steps; step++) {
        for (int64_t j = 0; j < d; j++)
            for (int64_t i = 0; i < d; i++) {
                x[j * d + i] = ridge * s->q[a][j * d + i];
                for (int64_t k = 0; k < d; k++)
                    x[j * d + i] += s->k[a][k * d + i] * s->q[a][j * d + k];
            }
        memcpy(s->q[a], x, (size_t)(d * d) * sizeof *x);
        orthonormalise(d, s->q[a]);
    }
    if (o->sort_when == FRG_SORT_AFTER_QR) {
        quotients(s, a, s->lambda[a]);
        sort_columns(s, a, s->lambda[a], follow);
    }
    if (o->moment2_order == FRG_MOMENT2_ROTATE)
        rotate_v(s, a, old);
    free(x);
    free(old);
}

static bool passes(soap_oracle *s, int a)
{
    const int64_t d = s->d[a];
    double *const lambda = array(d), diagonal = 0, all = 0;
    quotients(s, a, lambda);
    for (int64_t i = 0; i < d; i++)
        diagonal += lambda[i] * lambda[i];
    for (int64_t i = 0; i < d * d; i++)
        all += s->k[a][i] * s->k[a][i];
    free(lambda);
    return s->o.adaptive_form == FRG_ADAPTIVE_DIAGONAL
               ? sqrt(diagonal) >= (1 - s->o.adaptive_tolerance) * sqrt(all)
               : sqrt(fmax(all - diagonal, 0)) <= s->o.adaptive_tolerance * sqrt(all);
}

static void refresh(soap_oracle *s)
{
    const frg_soap_opts *o = &s->o;
    bool skip[4] = {false}, all = true;
    for (int a = 0; a < s->axes; a++)
        if (s->k[a]) {
            skip[a] = o->use_adaptive_criteria && passes(s, a);
            all &= skip[a];
        }
    project(s, true, s->m);
    for (int a = 0; a < s->axes; a++) {
        const bool leaves = o->adaptive_scope == FRG_SCOPE_FACTOR ? skip[a] : all;
        if (!s->k[a] || (leaves && o->use_adaptive_criteria))
            continue;
        if (o->use_eigh)
            eigenvectors(s->d[a], s->k[a], s->q[a]);
        else
            power_iteration(s, a);
    }
    project(s, false, s->m);
}

static void first_basis(soap_oracle *s)
{
    for (int a = 0; a < s->axes; a++)
        if (s->k[a]) {
            eigenvectors(s->d[a], s->k[a], s->q[a]);
            quotients(s, a, s->lambda[a]);
        }
    s->based = 1;
    project(s, false, s->m);
    if (s->o.warmup_v == FRG_WARMUP_V_RESET)
        memset(s->v, 0, (size_t)s->n * sizeof *s->v);
    for (int a = 0; a < s->axes && s->o.warmup_v == FRG_WARMUP_V_ROTATE; a++)
        if (s->k[a]) {
            double *const unit = array(s->d[a] * s->d[a]);
            for (int64_t i = 0; i < s->d[a]; i++)
                unit[i * s->d[a] + i] = 1;
            rotate_v(s, a, unit);
            free(unit);
        }
}

static bool due(const soap_oracle *s, int64_t count)
{
    const frg_soap_opts *o = &s->o;
    int64_t f = o->precondition_frequency;
    for (int64_t i = 0; i < o->n_frequencies; i++)
        f = o->frequencies[i][0] <= s->t ? o->frequencies[i][1] : f;
    f = o->frequency ? o->frequency(s->t, o->user) : f;
    return count % f == 0 ||
           (o->precondition_warmup_steps > 0 && s->t <= o->precondition_warmup_steps);
}

static void adam(soap_oracle *s, const double *gradient)
{
    const frg_soap_opts *o = &s->o;
    const double t = (double)(s->t + 1);
    const double c1 = o->correct_bias ? 1 - pow(o->beta1, t) : 1,
                 c2 = o->correct_bias ? 1 - pow(o->beta2, t) : 1,
                 next = o->correct_bias ? 1 - pow(o->beta1, t + 1) : 1;
    const bool nv = o->profile == FRG_SOAP_NIKHILVYAS;
    double *const p = array(s->n), *const g = array(s->n), lr = nv ? o->lr * sqrt(c2) / c1 : o->lr;
    const double wd = o->weight_decay;
    for (int64_t i = 0; i < s->n; i++) {
        g[i] = p[i] = gradient[i] + (o->weight_decay_method == FRG_DECAY_L2 ? wd * s->w[i] : 0);
        s->w[i] *= o->weight_decay_method == FRG_DECAY_DECOUPLED     ? 1 - o->lr * wd
                   : o->weight_decay_method == FRG_DECAY_INDEPENDENT ? 1 - wd
                   : o->weight_decay_method == FRG_DECAY_PALM        ? 1 - o->lr * o->lr * wd
                                                                     : 1;
    }
    if (s->based)
        project(s, false, p);
    double top = 0, longest = 1, sum = 0, scale = 1;
    for (int64_t i = 0; i < s->n; i++)
        top = fmax(top, fabs(p[i]));
    for (int a = 0; a < s->axes; a++)
        longest = fmax(longest, (double)s->d[a]);
    const double floor = o->denom_floor * 0x1p-24 * sqrt(longest) * top;
    for (int64_t i = 0; i < s->n; i++) {
        s->m[i] += (1 - o->beta1) * (p[i] - s->m[i]);
        s->v[i] += (1 - o->beta2) * (p[i] * p[i] - s->v[i]);
        double above =
            o->nesterov ? o->beta1 * s->m[i] / next + (1 - o->beta1) * p[i] / c1 : s->m[i] / c1;
        double below = sqrt(s->v[i] / c2) + o->eps + floor;
        if (nv) {
            above = s->m[i];
            below = sqrt(s->v[i]) + o->eps + floor;
        }
        p[i] = below > 0 ? above / below : 0;
    }
    if (s->based)
        project(s, true, p);
    if (o->trace_normalization && s->k[0]) {
        scale = 0;
        for (int64_t i = 0; i < s->d[0]; i++)
            scale += s->k[0][i * s->d[0] + i];
        scale = sqrt(scale);
    }
    for (int64_t i = 0; i < s->n; i++)
        sum += scale * scale * p[i] * p[i];
    double rms = sqrt(sum / (double)s->n);
    if (o->normalize_update) {
        scale /= 1e-30 + rms;
        rms = 1;
    }
    if (o->max_update_rms > 0)
        scale *= fmin(1, o->max_update_rms / (rms + 1e-7));
    for (int64_t i = 0; i < s->n; i++) {
        s->w[i] -= lr * scale * p[i];
        s->w[i] *= o->weight_decay_method == FRG_DECAY_DECOUPLED_AFTER ? 1 - o->lr * wd : 1;
    }
    free(p);
    free(g);
    s->t++;
}

void soap_oracle_step(soap_oracle *s, const double *gradient)
{
    double *const g = array(s->n);
    for (int64_t i = 0; i < s->n; i++)
        g[i] = s->o.maximize ? -gradient[i] : gradient[i];
    if (!factored(s)) {
        if (s->started || s->o.order == FRG_GRAD_FIRST)
            adam(s, g);
    } else if (s->o.order == FRG_UPDATE_FIRST) {
        if (s->started) {
            adam(s, g);
            accumulate(s, g);
            if (due(s, s->t))
                refresh(s);
        } else {
            accumulate(s, g);
            first_basis(s);
        }
    } else {
        accumulate(s, g);
        if (!s->based && s->t >= s->o.adam_warmup_steps) {
            if (s->o.profile != FRG_SOAP_EMERGING || s->o.warmup_v != FRG_WARMUP_V_KEEP ||
                due(s, s->t))
                first_basis(s);
            s->based = 1; /* on I, if nothing was due */
        } else if (s->based && due(s, s->t)) {
            refresh(s);
        }
        adam(s, g);
    }
    s->started = 1;
    free(g);
}
