/* gp_oracle.c - see gp_oracle.h. */
#include "oracle/gp_oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SIZEOF_FLOAT128__
typedef __float128 quad;
#define Q(number) number##Q
#else
typedef long double quad; /* 113 bits on the other 64-bit machines */
#define Q(number) number##L
#endif

static const quad PI = Q(3.14159265358979323846264338327950288419716939937510);
static const quad LN2 = Q(0.693147180559945309417232121458176568075500134360255);
static const quad STEP = Q(1e-9);

/* ---- functions by their series --------------------------------------------------------------- */

static quad q_abs(quad a)
{
    return a < 0 ? -a : a;
}

/** 2^k e^r with |r| <= ln 2 / 2, r / 64 summed and squared six times. */
static quad q_exp(quad a)
{
    if (a < -11000) {
        return 0;
    }
    const long k = lround((double)(a / LN2));
    const quad r = (a - (quad)k * LN2) / 64;
    quad term = 1, sum = 0; /* e^r - 1, so that squaring loses nothing */
    for (int i = 1; i < 20; i++) {
        term *= r / i;
        sum += term;
    }
    for (int i = 0; i < 6; i++) {
        sum = sum * (2 + sum);
    }
    quad power = 1, base = k < 0 ? Q(0.5) : 2;
    for (long i = labs(k); i > 0; i /= 2) {
        power *= i % 2 ? base : 1;
        base *= base;
    }
    return (1 + sum) * power;
}

/** Newton's steps on e^x = a from the double's logarithm. */
static quad q_log(quad a)
{
    quad scale = 0;
    while (a > Q(1e300)) {
        a /= 2;
        scale += LN2;
    }
    while (a < Q(1e-300)) {
        a *= 2;
        scale -= LN2;
    }
    quad x = (quad)log((double)a);
    for (int i = 0; i < 3; i++) {
        x += a * q_exp(-x) - 1;
    }
    return x + scale;
}

static quad q_sqrt(quad a)
{
    if (a <= 0) {
        return 0;
    }
    quad x = (quad)sqrt((double)a);
    for (int i = 0; i < 3; i++) {
        x = (x + a / x) / 2;
    }
    return x;
}

/** cos of a reduced to [-pi, pi], halved eight times: cos 2t = 2 cos^2 t - 1 through 1 - cos. */
static quad q_cos(quad a)
{
    a = q_abs(a) - 2 * PI * (quad)floor((double)(q_abs(a) / (2 * PI)));
    const quad t = a / 256, square = t * t;
    quad term = 1, one_less = 0;
    for (int i = 1; i < 14; i++) {
        term *= -square / ((2 * i - 1) * (2 * i));
        one_less -= term;
    }
    for (int i = 0; i < 8; i++) {
        one_less = 2 * one_less * (2 - one_less);
    }
    return 1 - one_less;
}

static quad q_sin(quad a)
{
    return q_cos(a - PI / 2);
}

/* ---- the model ------------------------------------------------------------------------------- */

typedef struct {
    const gp_oracle *o;
    const quad *theta, *x, *y;
} model;

/** Parameter of group g of a node for column k (of the node's) of `dims`, component c. */
static quad entry(const model *m, const gp_oracle_node *v, int g, int k, int dims, int c)
{
    return m->theta[v->at[g] + (v->vector[g] ? c * dims + k : 0)];
}

static quad spectral(const model *m, const gp_oracle_node *v, const quad *difference, int dims)
{
    const bool product = v->kind == ORACLE_SM_GPYTORCH;
    quad total = product ? 1 : 0;
    for (int outer = 0; outer < (product ? dims : v->degree); outer++) {
        quad inner = product ? 0 : m->theta[v->at[0] + outer];
        for (int i = 0; i < (product ? v->degree : dims); i++) {
            const int k = product ? outer : i, c = product ? i : outer;
            const quad d = difference[k], width = entry(m, v, 2, k, dims, c);
            const quad bell = product ? q_exp(-2 * PI * PI * d * d * width * width)
                                      : q_exp(-2 * PI * PI * width * d * d);
            const quad wave = bell * q_cos(2 * PI * entry(m, v, 1, k, dims, c) * d);
            inner = product ? inner + m->theta[v->at[0] + c] * wave : inner * wave;
        }
        total = product ? total * inner : total + inner;
    }
    return total;
}

static quad leaf(const model *m, const gp_oracle_node *v, int64_t i, int64_t j)
{
    const int dims = v->columns ? v->columns : (int)m->o->d;
    quad s = 0, dot = 0, waves = 1, sines = 0, difference[64];
    for (int k = 0; k < dims; k++) {
        const int column = v->columns ? v->column[k] : k;
        const quad a = m->x[i * m->o->d + column], b = m->x[j * m->o->d + column], d = a - b;
        difference[k] = d;
        if (v->kind == ORACLE_LINEAR) {
            dot += entry(m, v, 0, k, dims, 0) * a * b;
        } else if (v->kind == ORACLE_POLY) {
            dot += a * b;
        } else if (v->kind == ORACLE_COSINE) {
            waves *= q_cos(2 * PI * d / entry(m, v, 0, k, dims, 0));
        } else if (v->kind == ORACLE_PERIODIC || v->kind == ORACLE_PERIODIC_GPYTORCH) {
            const quad l = entry(m, v, 0, k, dims, 0),
                       t = q_sin(PI * d / entry(m, v, 1, k, dims, 0));
            sines += t * t / (v->kind == ORACLE_PERIODIC ? l * l : l);
        } else if (v->kind <= ORACLE_RQ) {
            const quad l = entry(m, v, 0, k, dims, 0);
            s += d * d / (l * l);
        }
    }
    const quad r = q_sqrt(s);
    quad power = 1;
    switch (v->kind) {
    case ORACLE_RBF:
        return q_exp(-s / 2);
    case ORACLE_MATERN12:
        return q_exp(-r);
    case ORACLE_MATERN32:
        return (1 + q_sqrt(3) * r) * q_exp(-q_sqrt(3) * r);
    case ORACLE_MATERN52:
        return (1 + q_sqrt(5) * r + 5 * s / 3) * q_exp(-q_sqrt(5) * r);
    case ORACLE_RQ: {
        const quad alpha = m->theta[v->at[1]];
        return q_exp(-alpha * q_log(1 + s / (2 * alpha)));
    }
    case ORACLE_PERIODIC:
    case ORACLE_PERIODIC_GPYTORCH:
        return q_exp(-2 * sines);
    case ORACLE_LINEAR:
        return dot;
    case ORACLE_POLY:
        for (int k = 0; k < v->degree; k++) {
            power *= dot + m->theta[v->at[0]];
        }
        return power;
    case ORACLE_COSINE:
        return waves;
    case ORACLE_SM:
    case ORACLE_SM_GPYTORCH:
        return spectral(m, v, difference, dims);
    case ORACLE_CONST:
        return m->theta[v->at[0]];
    case ORACLE_WHITE:
        return i == j ? m->theta[v->at[0]] : 0;
    default:
        return 0;
    }
}

static quad kernel(const model *m, int64_t i, int64_t j)
{
    quad stack[64];
    int top = 0;
    for (int k = 0; k < m->o->n_nodes; k++) {
        const gp_oracle_node *v = &m->o->node[k];
        if (v->kind == ORACLE_SUM) {
            top--;
            stack[top - 1] += stack[top];
        } else if (v->kind == ORACLE_PRODUCT) {
            top--;
            stack[top - 1] *= stack[top];
        } else if (v->kind == ORACLE_SCALE) {
            stack[top - 1] *= m->theta[v->at[0]];
        } else {
            stack[top++] = leaf(m, v, i, j);
        }
    }
    return stack[0];
}

static quad noise_of(const model *m, int64_t i)
{
    quad sum = 0;
    if (m->o->noise_count > 0)
        sum += m->theta[m->o->noise_first + (m->o->groups ? m->o->groups[i] : 0)];
    if (m->o->known_noise)
        sum += (quad)m->o->known_noise[i];
    return sum;
}

/** K in full, n x n. */
static void fill(const model *m, quad *k)
{
    const int64_t n = m->o->n;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            k[i * n + j] = k[j * n + i] = kernel(m, i, j);
        }
        k[i * n + i] += noise_of(m, i);
    }
}

/** Lower Cholesky factor in place; log |K|, NaN where a pivot is not positive. */
static quad factor(int64_t n, quad *k)
{
    quad logdet = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            quad sum = k[i * n + j];
            for (int64_t l = 0; l < j; l++) {
                sum -= k[i * n + l] * k[j * n + l];
            }
            if (i == j && !(sum > 0)) {
                return (quad)NAN;
            }
            k[i * n + j] = i == j ? q_sqrt(sum) : sum / k[j * n + j];
        }
        logdet += 2 * q_log(k[i * n + i]);
    }
    return logdet;
}

/** b <- L^-1 b. */
static void solve(int64_t n, const quad *l, quad *b)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            b[i] -= l[i * n + j] * b[j];
        }
        b[i] /= l[i * n + i];
    }
}

static quad dot(int64_t n, const quad *a, const quad *b)
{
    quad sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static quad mean(const model *m, int64_t i, int64_t c)
{
    const gp_oracle *o = m->o;
    const int64_t width = o->mean == ORACLE_LINEAR_MEAN ? 1 + o->d : 1;
    if (o->mean != ORACLE_CONSTANT && o->mean != ORACLE_LINEAR_MEAN) {
        return 0;
    }
    const quad *b = m->theta + o->mean_first + c * width;
    quad sum = b[0];
    for (int64_t k = 1; k < width; k++) {
        sum += b[k] * m->x[i * o->d + k - 1];
    }
    return sum;
}

/** |z|^2 for z = L^-1 y less its projection on Z = L^-1 H, and log |Z'Z|. */
static quad project(const model *m, const quad *l, quad *z, quad *logdet)
{
    const int64_t n = m->o->n, h = m->o->mean == ORACLE_GLS ? 1 : 1 + m->o->d;
    quad *basis = malloc((size_t)(h * n) * sizeof *basis);
    *logdet = 0;
    for (int64_t a = 0; a < h; a++) { /* Gram-Schmidt twice; |Z'Z| is the product of the squares */
        quad *b = basis + a * n;
        for (int64_t i = 0; i < n; i++) {
            b[i] = a == 0 ? 1 : m->x[i * m->o->d + a - 1];
        }
        solve(n, l, b);
        for (int64_t e = 0; e < 2 * a; e++) {
            const quad *other = basis + e % a * n, share = dot(n, other, b);
            for (int64_t i = 0; i < n; i++) {
                b[i] -= share * other[i];
            }
        }
        const quad square = dot(n, b, b);
        *logdet += q_log(square);
        for (int64_t i = 0; i < n; i++) {
            b[i] /= q_sqrt(square);
        }
        const quad share = dot(n, b, z);
        for (int64_t i = 0; i < n; i++) {
            z[i] -= share * b[i];
        }
    }
    free(basis);
    return dot(n, z, z);
}

static quad value(const model *m)
{
    const gp_oracle *o = m->o;
    const int64_t n = o->n;
    quad *k = malloc((size_t)(n * n) * sizeof *k), *z = malloc((size_t)n * sizeof *z), ell = 0;
    fill(m, k);
    const quad logdet = factor(n, k);
    for (int64_t c = 0; c < o->q; c++) {
        quad lost = 0, extra = 0;
        for (int64_t i = 0; i < n; i++) {
            z[i] = m->y[c * n + i] - mean(m, i, c);
        }
        solve(n, k, z);
        const bool gls = o->mean == ORACLE_GLS || o->mean == ORACLE_GLS_LINEAR;
        const quad square = gls ? project(m, k, z, &lost) : dot(n, z, z);
        if (o->reml) {
            extra = (o->mean == ORACLE_GLS ? 1 : 1 + o->d) * q_log(2 * PI) - lost;
        }
        ell += (extra - square - logdet - n * q_log(2 * PI)) / 2;
    }
    free(k);
    free(z);
    return ell;
}

/* ---- in doubles ------------------------------------------------------------------------------ */

typedef struct {
    quad *theta, *x, *y;
} numbers;

static int parameters(const gp_oracle *o)
{
    const int64_t width = o->mean == ORACLE_CONSTANT      ? 1
                          : o->mean == ORACLE_LINEAR_MEAN ? 1 + o->d
                                                          : 0;
    return o->mean_first + (int)(width * o->q);
}

static quad *raise(const double *from, int64_t count)
{
    quad *to = malloc((size_t)(count + 1) * sizeof *to);
    for (int64_t i = 0; i < count; i++) {
        to[i] = (quad)from[i];
    }
    return to;
}

static model open_model(const gp_oracle *o, const double *theta, numbers *v)
{
    v->theta = raise(theta, parameters(o));
    v->x = raise(o->x, o->n * o->d);
    v->y = raise(o->y, o->n * o->q);
    return (model){o, v->theta, v->x, v->y};
}

static void close_model(numbers *v)
{
    free(v->theta);
    free(v->x);
    free(v->y);
}

double gp_oracle_value(const gp_oracle *o, const double *theta)
{
    numbers v;
    const model m = open_model(o, theta, &v);
    const double ell = (double)value(&m);
    close_model(&v);
    return ell;
}

/** d f / d *p, per log where wanted. */
static double differentiate(const model *m, quad (*f)(const model *), quad *p, bool per_log)
{
    const quad kept = *p;
    *p = per_log ? kept * q_exp(STEP) : kept + STEP;
    const quad up = f(m);
    *p = per_log ? kept * q_exp(-STEP) : kept - STEP;
    const quad down = f(m);
    *p = kept;
    return (double)((up - down) / (2 * STEP));
}

void gp_oracle_gradient(const gp_oracle *o, const double *theta, int p, double *gradient)
{
    numbers v;
    const model m = open_model(o, theta, &v);
    for (int t = 0; t < p; t++) {
        gradient[t] = differentiate(&m, value, &v.theta[t], t < o->mean_first);
    }
    close_model(&v);
}

void gp_oracle_data_gradient(const gp_oracle *o, const double *theta, double *dx, double *dy)
{
    numbers v;
    const model m = open_model(o, theta, &v);
    for (int64_t i = 0; dx && i < o->n * o->d; i++) {
        dx[i] = differentiate(&m, value, &v.x[i], false);
    }
    for (int64_t i = 0; dy && i < o->n * o->q; i++) {
        dy[i] = differentiate(&m, value, &v.y[i], false);
    }
    close_model(&v);
}

/** b <- L^-T b. */
static void solve_back(int64_t n, const quad *l, quad *b)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t j = i + 1; j < n; j++) {
            b[i] -= l[j * n + i] * b[j];
        }
        b[i] /= l[i * n + i];
    }
}

void gp_oracle_information(const gp_oracle *o, const double *theta, int p, double *information)
{
    numbers v;
    const model m = open_model(o, theta, &v);
    const int64_t n = o->n;
    quad *l = malloc((size_t)(n * n) * sizeof *l), *up = malloc((size_t)(n * n) * sizeof *up),
         *down = malloc((size_t)(n * n) * sizeof *down), *a = malloc((size_t)n * sizeof *a),
         *w = malloc((size_t)(n * p + 1) * sizeof *w);
    memset(information, 0, (size_t)(p * p) * sizeof *information);
    fill(&m, l);
    factor(n, l);
    for (int64_t c = 0; c < o->q; c++) {
        for (int64_t i = 0; i < n; i++) {
            a[i] = m.y[c * n + i] - mean(&m, i, c);
        }
        solve(n, l, a);
        solve_back(n, l, a);
        for (int t = 0; t < p; t++) { /* w_t = L^-1 K_t a */
            const quad kept = v.theta[t];
            v.theta[t] = kept * q_exp(STEP);
            fill(&m, up);
            v.theta[t] = kept * q_exp(-STEP);
            fill(&m, down);
            v.theta[t] = kept;
            for (int64_t i = 0; i < n; i++) {
                w[t * n + i] = (dot(n, up + i * n, a) - dot(n, down + i * n, a)) / (2 * STEP);
            }
            solve(n, l, w + t * n);
        }
        for (int s = 0; s < p; s++) {
            for (int t = 0; t < p; t++) {
                information[s * p + t] += 0.5 * (double)dot(n, w + s * n, w + t * n);
            }
        }
    }
    free(l);
    free(up);
    free(down);
    free(a);
    free(w);
    close_model(&v);
}

/* ---- points given others --------------------------------------------------------------------- */

/** b <- A^-1 b for A of order n by Gauss's elimination with pivots; A is spoilt. */
static void eliminate(int64_t n, quad *a, quad *b)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (q_abs(a[i * n + k]) > q_abs(a[pivot * n + k]))
                pivot = i;
        for (int64_t j = 0; j < n; j++) {
            const quad x = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = x;
        }
        const quad y = b[k];
        b[k] = b[pivot];
        b[pivot] = y;
        for (int64_t i = k + 1; i < n; i++) {
            const quad times = a[i * n + k] / a[k * n + k];
            for (int64_t j = k; j < n; j++)
                a[i * n + j] -= times * a[k * n + j];
            b[i] -= times * b[k];
        }
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t j = i + 1; j < n; j++)
            b[i] -= a[i * n + j] * b[j];
        b[i] /= a[i * n + i];
    }
}

static int64_t columns_of_mean(const gp_oracle *o)
{
    return o->mean == ORACLE_GLS ? 1 : o->mean == ORACLE_GLS_LINEAR ? 1 + o->d : 0;
}

static quad column_of_mean(const model *m, int64_t i, int64_t a)
{
    return a == 0 ? 1 : m->x[i * m->o->d + a - 1];
}

typedef struct {
    quad mean[ORACLE_COLUMNS], variance, latent;
} conditional;

/** Row `at` of x given all rows below n but itself, whose point is also in row `copy`; k: kernels
 *  of all pairs of the `rows` of x.  The weights l of the rows and the multipliers g of
 *  sum_i l_i h_i = h solve
 *
 *      [K H; H' 0] [l; g] = [k; h],   mean l'y,   variance k** - l'k - g'h
 */
static conditional given_others(const model *m, const quad *k, int64_t rows, int64_t at,
                                int64_t copy)
{
    const gp_oracle *const o = m->o;
    const int64_t n = o->n, h = columns_of_mean(o), order = n + h;
    const quad noise = at < n ? noise_of(m, at) : 0;
    conditional c = {.variance = k[at * rows + at] + noise, .latent = k[at * rows + copy]};
    quad *const a = calloc((size_t)(order * order), sizeof *a),
                *const right = calloc((size_t)order, sizeof *right),
                *const weight = calloc((size_t)order, sizeof *weight);
    for (int64_t i = 0; i < n; i++) {
        const bool out = i == at;
        for (int64_t j = 0; j < n; j++)
            a[i * order + j] = out || j == at ? i == j : k[i * rows + j];
        a[i * order + i] += out ? 0 : noise_of(m, i);
        right[i] = out ? 0 : k[i * rows + at];
        for (int64_t b = 0; b < h; b++)
            a[i * order + n + b] = a[(n + b) * order + i] = out ? 0 : column_of_mean(m, i, b);
    }
    for (int64_t b = 0; b < h; b++)
        right[n + b] = column_of_mean(m, at, b);
    memcpy(weight, right, (size_t)order * sizeof *weight);
    eliminate(order, a, weight);
    for (int64_t q = 0; q < o->q; q++) {
        c.mean[q] = mean(m, at, q);
        for (int64_t i = 0; i < n; i++)
            c.mean[q] += i == at ? 0 : weight[i] * (m->y[q * n + i] - mean(m, i, q));
    }
    const quad explained = dot(order, weight, right);
    c.variance -= explained;
    c.latent -= explained;
    free(a);
    free(right);
    free(weight);
    return c;
}

/** Kernels of all pairs of the first rows of x. */
static quad *kernels(const model *m, int64_t rows)
{
    quad *const k = malloc((size_t)(rows * rows) * sizeof *k);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j <= i; j++)
            k[i * rows + j] = k[j * rows + i] = kernel(m, i, j);
    return k;
}

/** Row `at` given the others, of a model with two more rows at its point. */
static conditional given_others_once(const model *m, int64_t at)
{
    const int64_t rows = m->o->n + 2;
    quad *const k = kernels(m, rows);
    const conditional c = given_others(m, k, rows, at, m->o->n + 1);
    free(k);
    return c;
}

/** The numbers of a model whose x has two more rows, at the point. */
static model open_beside(const gp_oracle *o, const double *theta, const double *x, numbers *v)
{
    v->theta = raise(theta, parameters(o));
    v->y = raise(o->y, o->n * o->q);
    v->x = malloc((size_t)((o->n + 2) * o->d) * sizeof *v->x);
    for (int64_t i = 0; i < o->n * o->d; i++)
        v->x[i] = (quad)o->x[i];
    for (int64_t i = 0; i < 2 * o->d; i++)
        v->x[o->n * o->d + i] = (quad)x[i % o->d];
    return (model){o, v->theta, v->x, v->y};
}

static gp_oracle_point lower(const gp_oracle *o, const conditional *c)
{
    gp_oracle_point p = {.variance = (double)c->variance, .latent = (double)c->latent};
    for (int64_t k = 0; k < o->q; k++)
        p.mean[k] = (double)c->mean[k];
    return p;
}

gp_oracle_point gp_oracle_predict(const gp_oracle *o, const double *theta, const double *x)
{
    numbers v;
    const model m = open_beside(o, theta, x, &v);
    quad noise = 0;
    for (int64_t i = 0; i < o->n; i++)
        noise += noise_of(&m, i) / o->n;
    conditional c = given_others_once(&m, o->n);
    c.variance += noise;
    close_model(&v);
    return lower(o, &c);
}

gp_oracle_point gp_oracle_left_out(const gp_oracle *o, const double *theta, int64_t i)
{
    numbers v;
    const model m = open_beside(o, theta, o->x + i * o->d, &v);
    const conditional c = given_others_once(&m, i);
    close_model(&v);
    return lower(o, &c);
}

static quad density(const model *m)
{
    const gp_oracle *const o = m->o;
    quad *const whole = kernels(m, o->n), sum = 0;
    for (int64_t i = 0; i < o->n; i++) {
        const conditional c = given_others(m, whole, o->n, i, i);
        for (int64_t k = 0; k < o->q; k++) {
            const quad e = m->y[k * o->n + i] - c.mean[k];
            sum -= (e * e / c.variance + q_log(2 * PI * c.variance)) / 2;
        }
    }
    free(whole);
    return sum;
}

double gp_oracle_loo(const gp_oracle *o, const double *theta, int p, double *gradient)
{
    numbers v;
    const model m = open_model(o, theta, &v);
    const double sum = (double)density(&m);
    for (int t = 0; gradient && t < p; t++)
        gradient[t] = differentiate(&m, density, &v.theta[t], t < o->mean_first);
    close_model(&v);
    return sum;
}

double gp_oracle_condition(const gp_oracle *o, const double *theta)
{
    numbers v;
    const model m = open_model(o, theta, &v);
    const int64_t n = o->n;
    quad *const k = malloc((size_t)(n * n) * sizeof *k), *const b = malloc((size_t)n * sizeof *b);
    double of_k = 0, of_inverse = 0;
    for (int64_t j = 0; j < n; j++) {
        fill(&m, k);
        for (int64_t i = 0; i < n; i++) {
            of_k += (double)(k[j * n + i] * k[j * n + i]);
            b[i] = i == j;
        }
        eliminate(n, k, b);
        of_inverse += (double)dot(n, b, b);
    }
    free(k);
    free(b);
    close_model(&v);
    return sqrt(of_k * of_inverse);
}
