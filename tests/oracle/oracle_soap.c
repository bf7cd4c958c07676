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

/** The axes that the optimizer sees: m x b n of a stack b x m x n, or neighbours joined. */
static void merge(soap_oracle *s, int axes, const int64_t d[])
{
    const frg_soap_opts *const o = &s->o;
    const int64_t limit = o->max_precond_dim < 0 ? INT64_MAX : o->max_precond_dim;
    const bool stack = o->merge_dims && o->merge_rule == FRG_MERGE_STACKED && axes == 3;
    s->axes = 0;
    if (stack) {
        s->axes = 2;
        s->d[0] = d[2] <= d[1] ? d[1] : d[0] * d[1];
        s->d[1] = d[2] <= d[1] ? d[0] * d[2] : d[2];
    } else if (o->merge_dims && o->merge_rule == FRG_MERGE_LEFT) {
        for (int a = 0; a < axes; a++)
            if (s->axes > 0 && s->d[s->axes - 1] * d[a] <= limit)
                s->d[s->axes - 1] *= d[a];
            else
                s->d[s->axes++] = d[a];
    } else if (o->merge_dims && o->merge_rule == FRG_MERGE_FAN_IN) {
        int64_t from_right[4];
        for (int a = axes - 1; a >= 0; a--)
            if (s->axes > 0 && a > 0 && from_right[s->axes - 1] * d[a] <= limit)
                from_right[s->axes - 1] *= d[a];
            else
                from_right[s->axes++] = d[a];
        for (int a = 0; a < s->axes; a++)
            s->d[a] = from_right[s->axes - 1 - a];
    } else {
        s->axes = axes;
        memcpy(s->d, d, (size_t)axes * sizeof *d);
    }
    for (int64_t i = 0; i < s->n; i++)
        s->from[i] = i;
    for (int64_t b = 0; stack && d[2] <= d[1] && b < d[0]; b++)
        for (int64_t i = 0; i < d[1]; i++)
            for (int64_t j = 0; j < d[2]; j++)
                s->from[(i * d[0] + b) * d[2] + j] = (b * d[1] + i) * d[2] + j;
}

/** The factors of an axis: one, or one for each of its blocks. */
static void add_factors(soap_oracle *s, int axis, int64_t block)
{
    for (int64_t at = 0; at < s->d[axis]; at += block) {
        if (s->factors == SOAP_ORACLE_FACTORS)
            abort();
        soap_oracle_factor *const f = &s->factor[s->factors++];
        const int64_t n = s->d[axis] - at < block ? s->d[axis] - at : block;
        *f = (soap_oracle_factor){.axis = axis, .at = at, .n = n};
        f->k = array(n * n);
        f->q = array(n * n);
        f->lambda = array(n);
        f->exact = array(n * n);
        f->turns = array(n);
        for (int64_t i = 0; i < n; i++)
            f->q[i * n + i] = 1;
    }
}

soap_oracle *soap_oracle_create(const frg_soap_opts *o, int axes, const int64_t d[],
                                const double *w)
{
    soap_oracle *const s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->o = *o;
    s->n = 1;
    for (int a = 0; a < axes; a++)
        s->n *= d[a];
    s->w = array(s->n);
    s->m = array(s->n);
    s->v = array(s->n);
    s->from = calloc((size_t)s->n + 1, sizeof *s->from);
    if (!s->from)
        abort();
    memcpy(s->w, w, (size_t)s->n * sizeof *w);
    merge(s, axes, d);
    for (int a = 0; a < s->axes; a++) {
        const bool none = s->d[a] == 1 || (axes == 1 && !o->precondition_1d) ||
                          (o->max_precond_dim >= 0 && s->d[a] > o->max_precond_dim);
        if (!none)
            add_factors(s, a, o->block_dim > 0 ? o->block_dim : s->d[a]);
    }
    return s;
}

void soap_oracle_destroy(soap_oracle *s)
{
    for (int i = 0; i < s->factors; i++) {
        free(s->factor[i].k);
        free(s->factor[i].q);
        free(s->factor[i].lambda);
        free(s->factor[i].exact);
        free(s->factor[i].turns);
    }
    free(s->w);
    free(s->m);
    free(s->v);
    free(s->from);
    free(s);
}

/** How often the lines of an axis stand beside each other, and how far their entries are apart. */
static int64_t outer_of(const soap_oracle *s, int axis)
{
    int64_t outer = 1;
    for (int b = 0; b < axis; b++)
        outer *= s->d[b];
    return outer;
}

static int64_t inner_of(const soap_oracle *s, int axis)
{
    int64_t inner = 1;
    for (int b = axis + 1; b < s->axes; b++)
        inner *= s->d[b];
    return inner;
}

/** y[.., j, ..] = sum_i q_ij x[.., i, ..] along the factor's block, or with out sum_i q_ji x_i. */
static void contract(const soap_oracle *s, const soap_oracle_factor *f, const double *q, bool out,
                     double *x)
{
    const int64_t outer = outer_of(s, f->axis), inner = inner_of(s, f->axis), n = f->n;
    double *const y = array(n);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            double *const at = x + (o * s->d[f->axis] + f->at) * inner + i;
            for (int64_t j = 0; j < n; j++) {
                y[j] = 0;
                for (int64_t k = 0; k < n; k++)
                    y[j] += (out ? q[k * n + j] : q[j * n + k]) * at[k * inner];
            }
            for (int64_t j = 0; j < n; j++)
                at[j * inner] = y[j];
        }
    free(y);
}

static void project(const soap_oracle *s, bool out, double *x)
{
    for (int i = 0; i < s->factors; i++)
        contract(s, &s->factor[i], s->factor[i].q, out, x);
}

/** sum over all but the factor's axis, in its block: c_ij = sum x_i x_j */
static void outer_product(const soap_oracle *s, const soap_oracle_factor *f, const double *x,
                          double *c)
{
    const int64_t outer = outer_of(s, f->axis), inner = inner_of(s, f->axis), n = f->n;
    memset(c, 0, (size_t)(n * n) * sizeof *c);
    for (int64_t o = 0; o < outer; o++) {
        const double *const at = x + (o * s->d[f->axis] + f->at) * inner;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                for (int64_t k = 0; k < inner; k++)
                    c[j * n + i] += at[i * inner + k] * at[j * inner + k];
    }
}

static double shampoo_beta(const soap_oracle *s)
{
    const frg_soap_opts *o = &s->o;
    const double beta = o->shampoo_beta < 0 ? o->beta2 : o->shampoo_beta;
    const int correct =
        o->correct_shampoo_beta_bias < 0 ? o->correct_bias : o->correct_shampoo_beta_bias;
    return correct ? 1 - (1 - beta) / (1 - pow(beta, (double)(s->t + 1))) : beta;
}

static void quotients(const soap_oracle_factor *f, double *lambda)
{
    const int64_t n = f->n;
    for (int64_t j = 0; j < n; j++) {
        lambda[j] = 0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < n; k++)
                lambda[j] += f->q[j * n + i] * f->k[k * n + i] * f->q[j * n + k];
    }
}

static double norm_of(int64_t n, const double *k)
{
    double sum = 0;
    for (int64_t i = 0; i < n * n; i++)
        sum += k[i] * k[i];
    return sqrt(sum);
}

/** x Q diag(lambda)^(-1/2) along the axis that f is not of (KL-Shampoo); over its length. */
static double weigh_other_axis(const soap_oracle *s, const soap_oracle_factor *f, double *x)
{
    const int other = 1 - f->axis;
    const bool units = s->o.kl_init == FRG_KL_UNIT && s->t == 0;
    const int64_t inner = inner_of(s, other);
    for (int i = 0; i < s->factors; i++) {
        const soap_oracle_factor *const g = &s->factor[i];
        if (g->axis != other)
            continue;
        contract(s, g, g->q, false, x);
        for (int64_t o = 0; o < outer_of(s, other); o++)
            for (int64_t j = 0; j < g->n * inner; j++)
                x[(o * s->d[other] + g->at) * inner + j] /=
                    units ? 1 : sqrt(fmax(g->lambda[j / inner], s->o.eps));
    }
    return 1 / (double)s->d[other];
}

static void accumulate(soap_oracle *s, const double *g)
{
    const frg_soap_opts *o = &s->o;
    const double beta = shampoo_beta(s);
    double *fresh[SOAP_ORACLE_FACTORS] = {NULL};
    for (int i = 0; i < s->factors && o->use_kl_shampoo; i++)
        if (o->sort_when == FRG_SORT_BEFORE_QR)
            quotients(&s->factor[i], s->factor[i].lambda);
    for (int i = 0; i < s->factors; i++) {
        const soap_oracle_factor *const f = &s->factor[i];
        double *const x = array(s->n);
        memcpy(x, g, (size_t)s->n * sizeof *x);
        const double scale = o->use_kl_shampoo ? weigh_other_axis(s, f, x) : 1;
        fresh[i] = array(f->n * f->n);
        outer_product(s, f, x, fresh[i]);
        for (int64_t j = 0; j < f->n * f->n; j++)
            fresh[i][j] *= scale;
        free(x);
    }
    for (int i = 0; i < s->factors; i++) {
        soap_oracle_factor *const f = &s->factor[i];
        for (int64_t j = 0; j < f->n * f->n; j++)
            f->k[j] = beta * f->k[j] + (1 - beta) * fresh[i][j];
        free(fresh[i]);
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
static void sort_columns(soap_oracle *s, soap_oracle_factor *f, bool v_follows)
{
    const int64_t n = f->n, inner = inner_of(s, f->axis), outer = outer_of(s, f->axis);
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = i; j > 0 && f->lambda[j] > f->lambda[j - 1]; j--) {
            const double x = f->lambda[j];
            f->lambda[j] = f->lambda[j - 1];
            f->lambda[j - 1] = x;
            for (int64_t l = 0; l < n; l++) {
                const double y = f->q[j * n + l];
                f->q[j * n + l] = f->q[(j - 1) * n + l];
                f->q[(j - 1) * n + l] = y;
            }
            for (int64_t o = 0; o < outer && v_follows; o++)
                for (int64_t l = 0; l < inner; l++) {
                    double *const one = s->v + (o * s->d[f->axis] + f->at + j) * inner + l,
                                  *const two = one - inner;
                    const double y = *one;
                    *one = *two;
                    *two = y;
                }
        }
}

/** v <- sum over old coordinates of (Q_old'Q)^2 v. */
static void rotate_v(soap_oracle *s, const soap_oracle_factor *f, const double *old)
{
    const int64_t n = f->n;
    double *const turn = array(n * n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double dot = 0;
            for (int64_t l = 0; l < n; l++)
                dot += old[i * n + l] * f->q[j * n + l];
            turn[j * n + i] = dot * dot;
        }
    contract(s, f, turn, false, s->v);
    free(turn);
}

static void power_iteration(soap_oracle *s, soap_oracle_factor *f)
{
    const frg_soap_opts *o = &s->o;
    const int64_t n = f->n;
    const bool follow = o->moment2_order == FRG_MOMENT2_FOLLOW;
    double *const x = array(n * n), *const old = array(n * n);
    memcpy(old, f->q, (size_t)(n * n) * sizeof *old);
    const double ridge = s->ridge * norm_of(n, f->k);
    if (o->sort_when == FRG_SORT_BEFORE_QR) {
        quotients(f, f->lambda);
        sort_columns(s, f, follow);
    }
    for (int step = 0; step < o->power_iter_steps; step++) {
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < n; i++) {
                x[j * n + i] = ridge * f->q[j * n + i];
                for (int64_t k = 0; k < n; k++)
                    x[j * n + i] += f->k[k * n + i] * f->q[j * n + k];
            }
        memcpy(f->q, x, (size_t)(n * n) * sizeof *x);
        orthonormalise(n, f->q);
    }
    if (o->sort_when == FRG_SORT_AFTER_QR) {
        quotients(f, f->lambda);
        sort_columns(s, f, follow);
    }
    if (o->moment2_order == FRG_MOMENT2_ROTATE)
        rotate_v(s, f, old);
    free(x);
    free(old);
}

/** The adaptive test, whose quotients are the newest there are. */
static bool passes(soap_oracle *s, soap_oracle_factor *f)
{
    const double norm = norm_of(f->n, f->k);
    double diagonal = 0;
    quotients(f, f->lambda);
    for (int64_t i = 0; i < f->n; i++)
        diagonal += f->lambda[i] * f->lambda[i];
    return s->o.adaptive_form == FRG_ADAPTIVE_DIAGONAL
               ? sqrt(diagonal) >= (1 - s->o.adaptive_tolerance) * norm
               : sqrt(fmax(norm * norm - diagonal, 0)) <= s->o.adaptive_tolerance * norm;
}

/** Of the basis of a refresh: norm(K) / (lambda_j - lambda_j+1), and what that does to coordinates
 *  of the size of sqrt(lambda_j), those of the gradients in K. */
static void note_gaps(soap_oracle *s, soap_oracle_factor *f)
{
    double *const lambda = array(f->n);
    const double norm = norm_of(f->n, f->k);
    eigenvectors(f->n, f->k, f->exact);
    soap_oracle_factor exact = *f;
    exact.q = f->exact;
    quotients(&exact, lambda);
    for (int64_t j = 0; j + 1 < f->n; j++) {
        f->turns[j] = norm / fabs(lambda[j] - lambda[j + 1]);
        s->enlarges = fmax(s->enlarges, f->turns[j] * sqrt(fabs(lambda[j]) / norm));
    }
    free(lambda);
}

/** The same of a gradient that is not in K. */
static void note_gradient(soap_oracle *s, const double *g)
{
    for (int i = 0; i < s->factors; i++) {
        const soap_oracle_factor *const f = &s->factor[i];
        double *const square = array(f->n), *const outer = array(f->n * f->n);
        double sum = 0;
        soap_oracle_factor of_g = *f;
        outer_product(s, f, g, outer);
        of_g.k = outer;
        of_g.q = f->exact;
        quotients(&of_g, square);
        for (int64_t j = 0; j < f->n; j++)
            sum += square[j];
        for (int64_t j = 0; j + 1 < f->n && sum > 0; j++)
            s->enlarges = fmax(s->enlarges,
                               f->turns[j] * sqrt(fmax(fmax(square[j], square[j + 1]), 0) / sum));
        free(square);
        free(outer);
    }
}

static int64_t frequency_of(const soap_oracle *s)
{
    const frg_soap_opts *o = &s->o;
    int64_t f = o->precondition_frequency;
    for (int64_t i = 0; i < o->n_frequencies; i++)
        f = o->frequencies[i][0] <= s->t ? o->frequencies[i][1] : f;
    return o->frequency ? o->frequency(s->t, o->user) : f;
}

/** Is a factor due at the count of steps? */
static bool due(const soap_oracle *s, const soap_oracle_factor *f, int64_t count)
{
    const frg_soap_opts *o = &s->o;
    const int64_t often = frequency_of(s), early = o->stagger ? f->turn % often : 0;
    return (count + early) % often == 0 ||
           (o->precondition_warmup_steps > 0 && s->t <= o->precondition_warmup_steps);
}

static void refresh(soap_oracle *s, int64_t count)
{
    const frg_soap_opts *o = &s->o;
    bool skip[SOAP_ORACLE_FACTORS] = {false}, all = o->use_adaptive_criteria;
    for (int i = 0; i < s->factors; i++) {
        const bool is_due = due(s, &s->factor[i], count);
        skip[i] = o->use_adaptive_criteria && is_due && passes(s, &s->factor[i]);
        all &= skip[i] || !is_due;
    }
    project(s, true, s->m);
    for (int i = 0; i < s->factors; i++) {
        soap_oracle_factor *const f = &s->factor[i];
        if (!due(s, f, count) || (o->adaptive_scope == FRG_SCOPE_FACTOR ? skip[i] : all))
            continue;
        note_gaps(s, f);
        if (o->use_eigh)
            eigenvectors(f->n, f->k, f->q);
        else
            power_iteration(s, f);
    }
    project(s, false, s->m);
}

static void first_basis(soap_oracle *s)
{
    for (int i = 0; i < s->factors; i++) {
        soap_oracle_factor *const f = &s->factor[i];
        note_gaps(s, f);
        eigenvectors(f->n, f->k, f->q);
        quotients(f, f->lambda);
    }
    s->based = 1;
    project(s, false, s->m);
    if (s->o.warmup_v == FRG_WARMUP_V_RESET)
        memset(s->v, 0, (size_t)s->n * sizeof *s->v);
    for (int i = 0; i < s->factors && s->o.warmup_v == FRG_WARMUP_V_ROTATE; i++) {
        const soap_oracle_factor *const f = &s->factor[i];
        double *const unit = array(f->n * f->n);
        for (int64_t j = 0; j < f->n; j++)
            unit[j * f->n + j] = 1;
        rotate_v(s, f, unit);
        free(unit);
    }
}

void soap_oracle_take_turns(soap_oracle *const s[], int n)
{
    double load[1024] = {0};
    for (;;) {
        soap_oracle_factor *most = NULL;
        double dearest = -1;
        for (int p = 0; p < n; p++)
            for (int i = 0; i < s[p]->factors; i++) {
                soap_oracle_factor *const f = &s[p]->factor[i];
                const double size = (double)f->n,
                             cost = 5 * size * size * size + size * (double)s[p]->n;
                if (!f->has_turn && cost > dearest) {
                    dearest = cost;
                    most = f;
                }
            }
        if (!most)
            return;
        int64_t least = 0;
        for (int64_t t = 1; t < s[0]->o.precondition_frequency; t++)
            least = load[t] < load[least] ? t : least;
        load[least] += (double)(most->n * most->n * most->n);
        most->turn = least;
        most->has_turn = 1;
    }
}

static double sum_of_squares(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

static void adam(soap_oracle *s, const double *gradient)
{
    const frg_soap_opts *o = &s->o;
    const double t = (double)(s->t + 1);
    const double c1 = o->correct_bias ? 1 - pow(o->beta1, t) : 1,
                 c2 = o->correct_bias ? 1 - pow(o->beta2, t) : 1,
                 next = o->correct_bias ? 1 - pow(o->beta1, t + 1) : 1;
    const bool nv = o->profile == FRG_SOAP_NIKHILVYAS;
    double *const p = array(s->n), lr = nv ? o->lr * sqrt(c2) / c1 : o->lr;
    const double wd = o->weight_decay;
    for (int64_t i = 0; i < s->n; i++) {
        double *const w = &s->w[s->from[i]];
        p[i] = gradient[i] + (o->weight_decay_method == FRG_DECAY_L2 ? wd * *w : 0);
        *w *= o->weight_decay_method == FRG_DECAY_DECOUPLED     ? 1 - o->lr * wd
              : o->weight_decay_method == FRG_DECAY_INDEPENDENT ? 1 - wd
              : o->weight_decay_method == FRG_DECAY_PALM        ? 1 - o->lr * o->lr * wd
                                                                : 1;
    }
    if (s->based) {
        note_gradient(s, p);
        project(s, false, p);
    }
    double top = 0, longest = 1, sum, scale = 1;
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
    if (o->trace_normalization && s->factors > 0) {
        const soap_oracle_factor *const f = &s->factor[0];
        scale = 0;
        for (int64_t i = 0; i < f->n; i++)
            scale += f->k[i * f->n + i];
        scale = sqrt(scale);
    }
    sum = scale * scale * sum_of_squares(s->n, p);
    double rms = sqrt(sum / (double)s->n);
    if (o->normalize_update) {
        scale /= 1e-30 + rms;
        rms = 1;
    }
    if (o->max_update_rms > 0)
        scale *= fmin(1, o->max_update_rms / (rms + 1e-7));
    for (int64_t i = 0; i < s->n; i++) {
        s->w[s->from[i]] -= lr * scale * p[i];
        s->w[s->from[i]] *=
            o->weight_decay_method == FRG_DECAY_DECOUPLED_AFTER ? 1 - o->lr * wd : 1;
    }
    s->travelled += lr * scale * sqrt(sum_of_squares(s->n, p));
    free(p);
    s->t++;
}

/** The first step with bases: eigenvectors, or I where emerging 0.2 has nothing due at it. */
static void begin_bases(soap_oracle *s)
{
    const frg_soap_opts *o = &s->o;
    const soap_oracle_factor now = {.turn = 0};
    if (o->profile != FRG_SOAP_EMERGING || o->warmup_v != FRG_WARMUP_V_KEEP || o->stagger ||
        due(s, &now, s->t))
        first_basis(s);
    s->based = 1;
}

void soap_oracle_step(soap_oracle *s, const double *gradient)
{
    double *const g = array(s->n);
    for (int64_t i = 0; i < s->n; i++)
        g[i] = s->o.maximize ? -gradient[s->from[i]] : gradient[s->from[i]];
    if (s->factors == 0) {
        if (s->started || s->o.order == FRG_GRAD_FIRST)
            adam(s, g);
    } else if (s->o.order == FRG_UPDATE_FIRST) {
        if (s->started) {
            adam(s, g);
            accumulate(s, g);
            s->t--; /* what is due is asked at the step just made */
            refresh(s, s->t + 1);
            s->t++;
        } else {
            accumulate(s, g);
            first_basis(s);
        }
    } else {
        accumulate(s, g);
        if (!s->based && s->t >= s->o.adam_warmup_steps)
            begin_bases(s);
        else if (s->based)
            refresh(s, s->t);
        adam(s, g);
    }
    s->started = 1;
    free(g);
}
