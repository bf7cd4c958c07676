/* soap_apply.c - one parameter: into the bases, Adam there, out again, W (Algorithm 3, lines 3-11).
 *
 *     G' = Q_L^T G Q_R              (of more axes than two: a contraction with Q along every one)
 *     M' <- b1 M' + (1 - b1) G',    V <- b2 V + (1 - b2) G' o G'
 *     N' = (M' / c1) / (sqrt(V / c2) + eps),   c1 = 1 - b1^t, c2 = 1 - b2^t at step t = 1, 2, ...
 *     N = Q_L N' Q_R^T,             W <- W - lr N
 *
 * Where Adam runs, m, v and G' are in the same bases.  m_generation is the generation of the bases
 * that m is in, 0: the parameter's own coordinates.  Two ways to keep m, by what is cheaper:
 *
 *     original  in the parameter's own coordinates: M <- b1 M + (1 - b1) G, M' = Q_L^T M Q_R in one
 *               product with G, the two stacked.  No change of basis concerns it.  Three pairs of
 *               products a step.
 *     eigen     in the bases; before they change it is projected back (m_generation 0), and the
 *               next update that finds it so projects it again, whether or not anything was
 *               refreshed in between.  Two pairs, and two at each refresh.
 *
 * m_generation is compared before every use, in every build. */
#include <math.h>
#include <string.h>

#include "soap/soap_state.h"

bool frgi_soap_is_m_original(const frg_soap_opts *o)
{
    if (o->moment1_basis != FRG_BASIS_AUTO) {
        return o->moment1_basis == FRG_BASIS_ORIGINAL;
    }
    return o->precondition_frequency <= 2 && !o->frequency && o->n_frequencies == 0;
}

static void copy(ptrdiff_t n, const float *from, float *to)
{
    memcpy(to, from, (size_t)n * sizeof *to);
}

/** m <- m contracted, into bases of that generation or out of them (0). */
static void move_moment(soap_param *p, soap_direction way, int64_t generation, soap_workspace *work)
{
    copy(p->count, p->m, work->x);
    copy(p->count, frgi_soap_contract_all(p, work, way, 1, work->x, work->y), p->m);
    p->m_generation = generation;
}

void frgi_soap_project_back(soap_param *p, soap_workspace *work)
{
    const double start = frgi_seconds();
    if (p->m_generation != 0) {
        assert(p->m_generation == p->generation);
        move_moment(p, SOAP_OUT, 0, work);
    }
    work->seconds[SOAP_PROJECT] += frgi_seconds() - start;
}

void frgi_soap_rescale(const frg_soap *soap, soap_param *p, int exponent)
{
    const float scale = ldexpf(1, p->exponent - exponent), square = scale * scale;
    const float of_k = frgi_soap_power(&soap->groups[p->group]) == 1 ? scale : square;
    for (ptrdiff_t i = 0; i < p->count; i++) {
        p->m[i] *= scale;
        p->v[i] *= square;
    }
    for (int k = 0; k < p->n_factors; k++) {
        soap_factor *const f = &p->factors[k];
        for (ptrdiff_t i = 0; i < f->size * f->size; i++) {
            f->k[i] *= of_k;
        }
        for (ptrdiff_t i = 0; i < f->size; i++) {
            f->lambda[i] *= (double)of_k;
        }
    }
    p->exponent = exponent;
}

/* ---- second moments where a basis changed ---------------------------------------------------- */

static void identity(ptrdiff_t n, float *x)
{
    memset(x, 0, (size_t)(n * n) * sizeof *x);
    for (ptrdiff_t i = 0; i < n; i++) {
        x[i * n + i] = 1;
    }
}

void frgi_soap_set_rotation(soap_factor *f, const float *turn)
{
    for (ptrdiff_t i = 0; i < f->size * f->size; i++) {
        f->rotation[i] = turn[i] * turn[i];
    }
    f->rotated = true;
}

/** With the first bases v, which is of the parameter's own coordinates until then, may be begun
 *  anew. Where bases were rotated:  v_j <- sum_i (Q_old^T Q_new)_ij^2 v_i  along every axis of
 *  which a factor was. */
void frgi_soap_rotate(const frg_soap *soap, soap_param *p, soap_workspace *work)
{
    if (p->decided.first_bases && soap->groups[p->group].warmup_v == FRG_WARMUP_V_RESET) {
        memset(p->v, 0, (size_t)p->count * sizeof *p->v);
    }
    for (int first = 0, end; first < p->n_factors; first = end) {
        const int axis = p->factors[first].axis;
        bool any = false;
        for (end = first; end < p->n_factors && p->factors[end].axis == axis; end++) {
            any |= p->factors[end].rotated;
        }
        for (int i = first; i < end && any; i++) {
            if (!p->factors[i].rotated) {
                identity(p->factors[i].size, p->factors[i].rotation);
            }
        }
        if (any) {
            copy(p->count, p->v, work->x);
            frgi_soap_contract(p, work, axis, SOAP_ROTATE, 1, work->x, p->v);
        }
        for (int i = first; i < end; i++) {
            p->factors[i].rotated = false;
        }
    }
}

/** to[.., p, ..] = from[.., order[p], ..] along an axis. */
static void reorder(const soap_param *p, int axis, const float *from, float *to)
{
    ptrdiff_t outer, inner;
    const ptrdiff_t d = p->dims[axis];
    frgi_soap_around(p, axis, &outer, &inner);
    for (int k = 0; k < p->n_factors; k++) {
        const soap_factor *const f = &p->factors[k];
        for (ptrdiff_t o = 0; o < outer && f->axis == axis; o++) {
            for (ptrdiff_t i = 0; i < f->size; i++) {
                copy(inner, from + (o * d + f->at + f->order[i]) * inner,
                     to + (o * d + f->at + i) * inner);
            }
        }
    }
}

float *frgi_soap_in_order(const soap_param *p, float *x, float *y)
{
    int last = -1;
    for (int k = 0; k < p->n_factors; k++) {
        if (p->factors[k].axis != last) {
            last = p->factors[k].axis;
            reorder(p, last, x, y);
            float *const other = x;
            x = y;
            y = other;
        }
    }
    return x;
}

void frgi_soap_apply_permutation(soap_param *p, soap_workspace *work)
{
    int last = -1;
    for (int k = 0; k < p->n_factors; k++) {
        const int axis = p->factors[k].axis;
        if (axis == last) {
            continue;
        }
        last = axis;
        copy(p->count, p->v, work->x);
        reorder(p, axis, work->x, p->v);
        if (p->m_generation != 0) {
            copy(p->count, p->m, work->x);
            reorder(p, axis, work->x, p->m);
        }
    }
    for (int k = 0; k < p->n_factors; k++) {
        soap_factor *const f = &p->factors[k];
        float *const q = work->qr.other;
        double *const lambda = work->qr.norm2;
        for (ptrdiff_t i = 0; i < f->size; i++) {
            copy(f->size, f->q + f->order[i] * f->size, q + i * f->size);
            lambda[i] = f->lambda[f->order[i]];
        }
        copy(f->size * f->size, q, f->q);
        memcpy(f->lambda, lambda, (size_t)f->size * sizeof *lambda);
        for (ptrdiff_t i = 0; i < f->size; i++) {
            f->order[i] = (int32_t)i;
        }
    }
}

/* ---- Adam ------------------------------------------------------------------------------------ */

/** With the bias corrections of the head and u = 2^-24:
 *
 *     profile        numerator of N'                            denominator         lr
 *     nikhilvyas     M'                                         sqrt(V) + eps       lr sqrt(c2)/c1
 *     the others     M' / c1                                    sqrt(V / c2) + eps  lr
 *     with nesterov  b1 M' / (1 - b1^(t+1)) + (1 - b1) G' / c1  the same            lr
 *
 *  (nesterov: NAdam, Dozat 2016).  To eps is added denom_floor u sqrt(max d_i) max|G'|, d_i the
 *  sizes. */
static soap_rule rule_of(const frg_soap_opts *o, const soap_param *p, double max_abs)
{
    const double t = (double)(p->step + 1);
    const double c1 = o->correct_bias ? 1 - pow(o->beta1, t) : 1;
    const double c2 = o->correct_bias ? 1 - pow(o->beta2, t) : 1;
    const double next = o->correct_bias ? 1 - pow(o->beta1, t + 1) : 1;
    const bool bias_in_lr = o->profile == FRG_SOAP_NIKHILVYAS;
    double longest = 1;
    for (int a = 0; a < p->axes; a++) {
        longest = fmax(longest, (double)p->dims[a]);
    }
    const double floor = o->denom_floor * 0x1p-24 * sqrt(longest) * max_abs;
    soap_rule r = {
        .adam = {.rate1 = (float)(1 - o->beta1),
                 .rate2 = (float)(1 - o->beta2),
                 .from_m = (float)(bias_in_lr    ? 1
                                   : o->nesterov ? o->beta1 / next
                                                 : 1 / c1),
                 .from_g = (float)(o->nesterov && !bias_in_lr ? (1 - o->beta1) / c1 : 0),
                 .scale_v = (float)(bias_in_lr ? 1 : 1 / c2),
                 .eps = (float)(ldexp(o->eps, -p->exponent) + floor)},
        .lr = bias_in_lr ? o->lr * sqrt(c2) / c1 : o->lr,
        .keep = 1,
    };
    switch (o->weight_decay_method) {
    case FRG_DECAY_DECOUPLED:
        r.keep = 1 - o->lr * o->weight_decay;
        break;
    case FRG_DECAY_DECOUPLED_AFTER:
        r.keep = 1 - o->lr * o->weight_decay;
        r.after = true;
        break;
    case FRG_DECAY_INDEPENDENT:
        r.keep = 1 - o->weight_decay;
        break;
    case FRG_DECAY_PALM:
        r.keep = 1 - o->lr * o->lr * o->weight_decay;
        break;
    case FRG_DECAY_L2: /* in the gradient */
        break;
    }
    return r;
}

/** m <- its average with g; g and m after one another at `to`. */
typedef struct {
    const soap_ops *ops;
    ptrdiff_t count;
    float rate;
    const float *g;
    float *m, *to;
} stacking;

static void stack_slice(const void *job, const soap_workspace *work, ptrdiff_t from,
                        ptrdiff_t count)
{
    (void)work;
    const stacking *const s = job;
    s->ops->blend(count, s->rate, s->g + from, s->m + from);
    copy(count, s->g + from, s->to + from);
    copy(count, s->m + from, s->to + s->count + from);
}

/** M <- b1 M + (1 - b1) G; G' and M' by one product. */
static void enter_both(const frg_soap *soap, soap_param *p, const float *g, soap_workspace *work,
                       soap_update *u)
{
    const frg_soap_opts *const o = &soap->groups[p->group];
    if (p->m_generation != 0) { /* moment1_basis was changed since */
        move_moment(p, SOAP_OUT, 0, work);
    }
    const stacking s = {soap->ops, p->count, (float)(1 - o->beta1), g, p->m, work->x};
    frgi_soap_share(work, p->count, SOAP_ELEMENTS, stack_slice, &s);
    u->x = frgi_soap_contract_all(p, work, SOAP_IN, 2, work->x, work->y);
    u->m_in_bases = u->x + p->count;
}

/** G, or G + weight_decay W with FRG_DECAY_L2. */
static const float *decayed_gradient(const frg_soap *soap, const soap_param *p,
                                     soap_workspace *work, const frg_array *w)
{
    const frg_soap_opts *const o = &soap->groups[p->group];
    const float *const g = frgi_soap_gradient(soap, p, work);
    if (o->weight_decay_method != FRG_DECAY_L2 || o->weight_decay == 0) {
        return g;
    }
    if (g != work->g) {
        copy(p->count, g, work->g);
    }
    frgi_soap_add(w, ldexp(o->weight_decay, -p->exponent), work->g);
    return work->g;
}

void frgi_soap_into_bases(const frg_soap *soap, soap_param *p, soap_workspace *work, soap_update *u)
{
    const double start = frgi_seconds();
    const bool original = frgi_soap_is_m_original(&soap->groups[p->group]);
    *u = (soap_update){.w = frgi_soap_oriented(p, &p->w)};
    const float *const g = decayed_gradient(soap, p, work, &u->w);
    if (p->generation > 0 && original) {
        enter_both(soap, p, g, work, u);
    } else {
        if (p->m_generation != p->generation) {
            assert(p->m_generation == 0);
            move_moment(p, SOAP_IN, p->generation, work);
        }
        copy(p->count, g, work->x);
        u->x = p->generation > 0 ? frgi_soap_contract_all(p, work, SOAP_IN, 1, work->x, work->y)
                                 : work->x;
    }
    /* m is where the head of this file says */
    assert(p->m_generation == (original || p->generation == 0 ? 0 : p->generation));
    work->seconds[SOAP_PROJECT] += frgi_seconds() - start;
}

typedef struct {
    const soap_ops *ops;
    const soap_adam *adam;
    float *g, *m, *v;
    const float *m_in_bases;
} adaption;

static void adapt_slice(const void *job, const soap_workspace *work, ptrdiff_t from,
                        ptrdiff_t count)
{
    (void)work;
    const adaption *const a = job;
    a->ops->adam(count, a->adam, a->g + from, a->m ? a->m + from : NULL,
                 a->m_in_bases ? a->m_in_bases + from : NULL, a->v + from);
}

/** What N is multiplied with beside lr:  s = sqrt(trace K_0) with trace_normalization, else 1; over
 *  the root mean square of s N with normalize_update; at last so that max_update_rms is that of the
 *  update at most. */
static double update_scale(const frg_soap *soap, const soap_param *p, const float *d)
{
    const frg_soap_opts *const o = &soap->groups[p->group];
    double scale = 1;
    if (o->trace_normalization && p->n_factors > 0) {
        const soap_factor *const f = &p->factors[0];
        double trace = 0;
        for (ptrdiff_t i = 0; i < f->size; i++) {
            trace += (double)f->k[i * f->size + i];
        }
        scale = sqrt(ldexp(trace, frgi_soap_power(o) * p->exponent));
    }
    if (o->normalize_update || o->max_update_rms > 0) {
        const double count = p->count > 0 ? (double)p->count : 1;
        double rms = scale * sqrt(soap->ops->sum_squares(p->count, d) / count);
        if (o->normalize_update) {
            scale /= 1e-30 + rms;
            rms /= 1e-30 + rms;
        }
        if (o->max_update_rms > 0) {
            const double clip = o->max_update_rms / (rms + 1e-7);
            scale *= clip < 1 ? clip : 1;
        }
    }
    return scale;
}

void frgi_soap_adam(const frg_soap *soap, soap_param *p, soap_workspace *work, soap_update *u)
{
    const frg_soap_opts *const o = &soap->groups[p->group];
    const double start = frgi_seconds();
    const double max_abs = o->denom_floor > 0 ? soap->ops->largest(p->count, u->x) : 0;
    u->rule = rule_of(o, p, max_abs);
    const adaption a = {soap->ops, &u->rule.adam, u->x, u->m_in_bases ? NULL : p->m,
                        p->v,      u->m_in_bases};
    frgi_soap_share(work, p->count, SOAP_ELEMENTS, adapt_slice, &a);
    work->seconds[SOAP_UPDATE] += frgi_seconds() - start;
}

void frgi_soap_out_of_bases(const soap_param *p, soap_workspace *work, soap_update *u)
{
    const double start = frgi_seconds();
    float *const other = u->x == work->x ? work->y : work->x;
    u->d = p->generation > 0 ? frgi_soap_contract_all(p, work, SOAP_OUT, 1, u->x, other) : u->x;
    work->seconds[SOAP_PROJECT] += frgi_seconds() - start;
}

void frgi_soap_write(const frg_soap *soap, soap_param *p, soap_workspace *work, soap_update *u)
{
    const double start = frgi_seconds();
    const soap_rule *const r = &u->rule;
    frgi_soap_give(soap->ops, work, &u->w, r->keep, r->after, r->lr * update_scale(soap, p, u->d),
                   frgi_soap_rounding(&soap->groups[p->group], p), u->d);
    p->step++;
    work->seconds[SOAP_UPDATE] += frgi_seconds() - start;
}
