/* char_transformer.c - a language model trained from scratch, by AdamW and by SOAP side by side.
 *
 *     char_transformer [STEPS [TEXT [RATE [SEED [CURVES]]]]]
 *
 * By default 120 steps on data/shakespeare.txt at the learning rate 3e-3; SEED makes other weights
 * and batches, and a file CURVES gets a line of step, AdamW's loss, SOAP's loss, seconds of both so
 * far.
 *
 * Two transformer layers of width 128 read 32 characters and guess the next one at every place.
 * Forward and backward are written out below; the optimizers are fourge's: matrices of the layers
 * go to a group with factors, embeddings and the output to a group that is plain Adam
 * (max_precond_dim 0).  AdamW is the first group without factors.  Both start from the same weights
 * and see the same batches.
 *
 *     x = E[character] + P[place];   twice:  x += attention(norm(x)) Wo, x += relu(norm(x) W1) W2;
 *                                    norm(x) U
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#if defined(__x86_64__)
#define CLONES __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#endif
#endif
#ifndef CLONES
#define CLONES
#endif

#include <fourge/soap.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    T = 32,
    B = 16,
    N = B * T,
    C = 128,
    HEADS = 4,
    D = C / HEADS,
    F = 4 * C,
    LAYERS = 2,
    VOCABULARY = 128
};
enum { E_, P_, U_, SINGLE, QKV_ = 0, O_, W1_, W2_, A_LAYER };
enum { PARAMS = SINGLE + LAYERS * A_LAYER };

/* ---- parameters ---- */

typedef struct {
    int rows, columns;
    float *w, *g;
} parameter;

/** What the way back needs of a layer. */
typedef struct {
    float n1[N * C], r1[N], qkv[N * 3 * C], att[B * HEADS * T * T], y[N * C];
    float n2[N * C], r2[N], a[N * F];
} layer;

typedef struct {
    parameter p[PARAMS];
    layer l[LAYERS];
    float x[N * C], n[N * C], r[N], logits[N * VOCABULARY];
    float d[N * F], e[N * 3 * C], dx[N * C], turned[C * F];
} model;

static unsigned long long random_state;

static double uniform(void)
{
    unsigned long long z = (random_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static void make(parameter *p, int rows, int columns, double size)
{
    p->rows = rows;
    p->columns = columns;
    p->w = calloc((size_t)(rows * columns), sizeof(float));
    p->g = calloc((size_t)(rows * columns), sizeof(float));
    if (!p->w || !p->g) {
        exit(1);
    }
    for (int i = 0; i < rows * columns; i++) {
        p->w[i] = (float)(size * (2 * uniform() - 1));
    }
}

static model *new_model(void)
{
    model *m = calloc(1, sizeof *m);
    if (!m) {
        exit(1);
    }
    make(&m->p[E_], VOCABULARY, C, 0.1);
    make(&m->p[P_], T, C, 0.1);
    make(&m->p[U_], C, VOCABULARY, 0.05);
    for (int l = 0; l < LAYERS; l++) {
        parameter *p = m->p + SINGLE + l * A_LAYER;
        make(p + QKV_, C, 3 * C, sqrt(3.0 / C));
        make(p + O_, C, C, sqrt(3.0 / C) / 2);
        make(p + W1_, C, F, sqrt(3.0 / C));
        make(p + W2_, F, C, sqrt(3.0 / F) / 2);
    }
    return m;
}

static void free_model(model *m)
{
    for (int i = 0; i < PARAMS; i++) {
        free(m->p[i].w);
        free(m->p[i].g);
    }
    free(m);
}

/* ---- products: c (m x n) += a b, element (i, k) of a at i*di + k*dk ---- */

CLONES static void multiply(int m, int depth, int n, const float *a, int di, int dk,
                            const float *restrict b, float *restrict c)
{
    for (int i = 0; i < m; i += 4) { /* m is a multiple of 4 everywhere */
        float *restrict c0 = c + i * n, *restrict c1 = c0 + n, *restrict c2 = c1 + n,
                        *restrict c3 = c2 + n;
        for (int k = 0; k < depth; k++) {
            const float *restrict row = b + k * n, *at = a + i * di + k * dk;
            const float x0 = at[0], x1 = at[di], x2 = at[2 * di], x3 = at[3 * di];
            for (int j = 0; j < n; j++) {
                c0[j] += x0 * row[j];
                c1[j] += x1 * row[j];
                c2[j] += x2 * row[j];
                c3[j] += x3 * row[j];
            }
        }
    }
}

static void clear(float *x, int n)
{
    memset(x, 0, (size_t)n * sizeof *x);
}

/** y += x W */
static void forward(const parameter *p, const float *x, float *y)
{
    multiply(N, p->rows, p->columns, x, p->rows, 1, p->w, y);
}

/** W's gradient += x'dy; dx += dy W' */
static void backward(model *m, parameter *p, const float *x, const float *dy, float *dx)
{
    multiply(p->rows, N, p->columns, x, 1, p->rows, dy, p->g);
    for (int i = 0; i < p->rows; i++) {
        for (int j = 0; j < p->columns; j++) {
            m->turned[j * p->rows + i] = p->w[i * p->columns + j];
        }
    }
    multiply(N, p->columns, p->rows, dy, p->columns, 1, m->turned, dx);
}

/* ---- pieces ---- */

/** n = x / r, r the root mean square of a row. */
static void norm(const float *x, float *n, float *r)
{
    for (int i = 0; i < N; i++) {
        float sum = 0;
        for (int j = 0; j < C; j++) {
            sum += x[i * C + j] * x[i * C + j];
        }
        r[i] = sqrtf(sum / C + 1e-5f);
        for (int j = 0; j < C; j++) {
            n[i * C + j] = x[i * C + j] / r[i];
        }
    }
}

/** dx += (dn - n mean(dn n)) / r */
static void norm_back(const float *n, const float *r, const float *dn, float *dx)
{
    for (int i = 0; i < N; i++) {
        float mean = 0;
        for (int j = 0; j < C; j++) {
            mean += n[i * C + j] * dn[i * C + j];
        }
        for (int j = 0; j < C; j++) {
            dx[i * C + j] += (dn[i * C + j] - n[i * C + j] * mean / C) / r[i];
        }
    }
}

static float dot(const float *a, const float *b)
{
    float sum = 0;
    for (int j = 0; j < D; j++) {
        sum += a[j] * b[j];
    }
    return sum;
}

static void add(float scale, const float *x, float *y)
{
    for (int j = 0; j < D; j++) {
        y[j] += scale * x[j];
    }
}

/** y = softmax(q k' / sqrt(D)) v over the places up to one's own, head by head. */
static void attend(layer *l)
{
    memset(l->y, 0, sizeof l->y);
    for (int b = 0; b < B * HEADS; b++) {
        const float *q = l->qkv + b / HEADS * T * 3 * C + b % HEADS * D, *k = q + C, *v = k + C;
        float *y = l->y + b / HEADS * T * C + b % HEADS * D;
        for (int t = 0; t < T; t++) {
            float *a = l->att + (b * T + t) * T, top = -1e30f, sum = 0;
            for (int s = 0; s <= t; s++) {
                a[s] = dot(q + t * 3 * C, k + s * 3 * C) / sqrtf(D);
                top = a[s] > top ? a[s] : top;
            }
            for (int s = 0; s <= t; s++) {
                sum += a[s] = expf(a[s] - top);
            }
            for (int s = 0; s <= t; s++) {
                a[s] /= sum;
                add(a[s], v + s * 3 * C, y + t * C);
            }
        }
    }
}

/** d(qkv) from d(y). */
static void attend_back(const layer *l, const float *dy, float *d)
{
    clear(d, N * 3 * C);
    for (int b = 0; b < B * HEADS; b++) {
        const int from = b / HEADS * T * 3 * C + b % HEADS * D;
        const float *q = l->qkv + from, *k = q + C, *v = k + C;
        float *dq = d + from, *dk = dq + C, *dv = dk + C;
        for (int t = 0; t < T; t++) {
            const float *a = l->att + (b * T + t) * T,
                        *g = dy + (b / HEADS * T + t) * C + b % HEADS * D;
            float da[T], mean = 0;
            for (int s = 0; s <= t; s++) {
                da[s] = dot(g, v + s * 3 * C);
                mean += a[s] * da[s];
                add(a[s], g, dv + s * 3 * C);
            }
            for (int s = 0; s <= t; s++) {
                const float x = a[s] * (da[s] - mean) / sqrtf(D);
                add(x, k + s * 3 * C, dq + t * 3 * C);
                add(x, q + t * 3 * C, dk + s * 3 * C);
            }
        }
    }
}

/* ---- the model ---- */

static double loss_and_gradient(model *m, const unsigned char *in, const unsigned char *next)
{
    for (int i = 0; i < PARAMS; i++) {
        memset(m->p[i].g, 0, sizeof(float) * (size_t)(m->p[i].rows * m->p[i].columns));
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < C; j++) {
            m->x[i * C + j] = m->p[E_].w[in[i] * C + j] + m->p[P_].w[i % T * C + j];
        }
    }
    for (int k = 0; k < LAYERS; k++) {
        layer *l = &m->l[k];
        const parameter *p = m->p + SINGLE + k * A_LAYER;
        norm(m->x, l->n1, l->r1);
        memset(l->qkv, 0, sizeof l->qkv);
        forward(p + QKV_, l->n1, l->qkv);
        attend(l);
        forward(p + O_, l->y, m->x);
        norm(m->x, l->n2, l->r2);
        memset(l->a, 0, sizeof l->a);
        forward(p + W1_, l->n2, l->a);
        for (int i = 0; i < N * F; i++) {
            l->a[i] = l->a[i] > 0 ? l->a[i] : 0;
        }
        forward(p + W2_, l->a, m->x);
    }
    norm(m->x, m->n, m->r);
    memset(m->logits, 0, sizeof m->logits);
    forward(&m->p[U_], m->n, m->logits);

    double loss = 0;
    for (int i = 0; i < N; i++) { /* logits become their own gradient */
        float *z = m->logits + i * VOCABULARY, top = -1e30f;
        double sum = 0;
        for (int j = 0; j < VOCABULARY; j++) {
            top = z[j] > top ? z[j] : top;
        }
        for (int j = 0; j < VOCABULARY; j++) {
            sum += exp((double)(z[j] - top));
        }
        loss += log(sum) - (double)(z[next[i]] - top);
        for (int j = 0; j < VOCABULARY; j++) {
            z[j] = (float)((exp((double)(z[j] - top)) / sum - (j == next[i])) / N);
        }
    }

    clear(m->d, N * C);
    memset(m->dx, 0, sizeof m->dx);
    backward(m, &m->p[U_], m->n, m->logits, m->d);
    norm_back(m->n, m->r, m->d, m->dx);
    for (int k = LAYERS - 1; k >= 0; k--) {
        layer *l = &m->l[k];
        parameter *p = m->p + SINGLE + k * A_LAYER;
        clear(m->d, N * F);
        backward(m, p + W2_, l->a, m->dx, m->d);
        for (int i = 0; i < N * F; i++) {
            m->d[i] = l->a[i] > 0 ? m->d[i] : 0;
        }
        clear(m->e, N * C);
        backward(m, p + W1_, l->n2, m->d, m->e);
        norm_back(l->n2, l->r2, m->e, m->dx);
        clear(m->d, N * C);
        backward(m, p + O_, l->y, m->dx, m->d);
        attend_back(l, m->d, m->e);
        clear(m->d, N * C);
        backward(m, p + QKV_, l->n1, m->e, m->d);
        norm_back(l->n1, l->r1, m->d, m->dx);
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < C; j++) {
            m->p[E_].g[in[i] * C + j] += m->dx[i * C + j];
            m->p[P_].g[i % T * C + j] += m->dx[i * C + j];
        }
    }
    return loss / N;
}

/* ---- training ---- */

static void insist(frg_context *ctx, frg_status s)
{
    if (s < 0) {
        fprintf(stderr, "%s: %s\n", frg_status_name(s), frg_message(ctx));
        exit(frg_status_exit_code(s));
    }
}

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct {
    const unsigned char *text;
    long length;
    int steps, seed;
    double rate;
} task;

/** Trains a fresh model; fills the loss and the time of every step. */
static void train(frg_context *ctx, int with_factors, const task *t, double losses[],
                  double seconds[])
{
    random_state = 2 * (unsigned long long)t->seed - 1;
    model *m = new_model();
    frg_soap_opts matrices, others;
    frg_soap *soap;
    int plain;
    frg_soap_defaults(&others, sizeof others, FRG_SOAP_EMERGING);
    others.max_precond_dim = 0;
    others.lr = t->rate;
    matrices = others;
    if (with_factors) {
        matrices.max_precond_dim = -1;
        matrices.precondition_frequency = 5;
    }
    insist(ctx, frg_soap_create(&soap, ctx, &matrices));
    insist(ctx, frg_soap_add_group(soap, &others, &plain));
    frg_array grads[PARAMS];
    for (int i = 0; i < PARAMS; i++) {
        const parameter *p = &m->p[i];
        grads[i] = frg_matrix(p->g, FRG_F32, p->rows, p->columns, p->columns);
        insist(ctx, frg_soap_add_param(soap, i < SINGLE ? plain : 0,
                                       frg_matrix(p->w, FRG_F32, p->rows, p->columns, p->columns),
                                       NULL, NULL));
    }
    random_state = 2 * (unsigned long long)t->seed;
    const double start = now();
    for (int step = 0; step < t->steps; step++) {
        unsigned char in[N], next[N];
        for (int b = 0; b < B; b++) {
            const long at = (long)(uniform() * (double)(t->length - T - 1));
            memcpy(in + b * T, t->text + at, T);
            memcpy(next + b * T, t->text + at + 1, T);
        }
        losses[step] = loss_and_gradient(m, in, next);
        insist(ctx, frg_soap_step(soap, grads, PARAMS, NULL));
        seconds[step] = now() - start;
    }
    frg_soap_destroy(soap);
    free_model(m);
}

static double mean_to(const double *losses, int step)
{
    double sum = 0;
    int n = 0;
    for (int i = step < 20 ? 0 : step - 20; i < step; i++, n++) {
        sum += losses[i];
    }
    return sum / n;
}

/** The whole file, as characters of the vocabulary; NULL where it cannot be read or is too
 *  short. */
static unsigned char *read_text(const char *path, long *length)
{
    FILE *const file = fopen(path, "rb");
    if (!file) {
        return NULL;
    }
    fseek(file, 0, SEEK_END);
    *length = ftell(file);
    rewind(file);
    unsigned char *const text = *length < 2 * T ? NULL : malloc((size_t)*length);
    const int whole = text && fread(text, 1, (size_t)*length, file) == (size_t)*length;
    fclose(file);
    for (long i = 0; i < *length && whole; i++) {
        text[i] &= VOCABULARY - 1;
    }
    if (!whole) {
        free(text);
    }
    return whole ? text : NULL;
}

static void show(const task *t, double *const losses[2], double *const seconds[2])
{
    const int steps = t->steps;
    printf("mean loss of the last 20 steps\n%8s %10s %10s\n", "step", "AdamW", "SOAP");
    for (int i = 0; i < 10; i++) {
        const int step = (int)((long)steps * (i + 1) / 10);
        if (step > 0) {
            printf("%8d %10.4f %10.4f\n", step, mean_to(losses[0], step), mean_to(losses[1], step));
        }
    }
    int reached = 1;
    while (reached < steps && mean_to(losses[1], reached) > mean_to(losses[0], steps)) {
        reached++;
    }
    printf("%.1f s and %.1f s; SOAP is at AdamW's last loss after %d of %d steps\n",
           seconds[0][steps - 1], seconds[1][steps - 1], reached, steps);
}

static int write_curves(const char *path, const task *t, double *const losses[2],
                        double *const seconds[2])
{
    FILE *const file = fopen(path, "w");
    for (int i = 0; file && i < t->steps; i++) {
        fprintf(file, "%d %.6f %.6f %.4f %.4f\n", i + 1, losses[0][i], losses[1][i], seconds[0][i],
                seconds[1][i]);
    }
    return file && fclose(file) == 0 ? 0 : 73;
}

int main(int argc, char **argv)
{
    const char *path = argc > 2 ? argv[2] : "data/shakespeare.txt";
    task t = {.steps = argc > 1 ? atoi(argv[1]) : 120,
              .rate = argc > 3 ? atof(argv[3]) : 3e-3,
              .seed = argc > 4 ? atoi(argv[4]) : 1};
    if (t.steps < 1 || t.seed < 1 || !(t.rate > 0)) {
        fprintf(stderr, "char_transformer: STEPS and SEED are at least 1, RATE is above 0\n");
        return 64;
    }
    unsigned char *const text = read_text(path, &t.length);
    if (!text) {
        fprintf(stderr, "char_transformer: no text of %d characters in %s\n", 2 * T, path);
        return 66;
    }
    t.text = text;
    double *const room = malloc((size_t)t.steps * 4 * sizeof *room);
    frg_context *ctx;
    if (!room || frg_context_create(&ctx, NULL) < 0) {
        return 1;
    }
    double *const losses[2] = {room, room + t.steps};
    double *const seconds[2] = {room + 2 * (size_t)t.steps, room + 3 * (size_t)t.steps};
    for (int k = 0; k < 2; k++) {
        train(ctx, k, &t, losses[k], seconds[k]);
    }
    show(&t, losses, seconds);
    const int code = argc > 5 ? write_curves(argv[5], &t, losses, seconds) : 0;
    frg_context_destroy(ctx);
    free(text);
    free(room);
    return code;
}
