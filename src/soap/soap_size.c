/* soap_size.c - what steps take, before they do: memory by the layouts, time by counts of
 * operations.
 *
 *     a factor of order n, of a parameter of N numbers, multiply-adds:
 *       average   n N / 2        in the bases and out   3 n N
 *       refresh   7/3 n^3 a product and its QR       eigendecomposition   some 4 n^3, on one thread
 *
 * Speeds are those of one core with AVX-512; plain and v4 were measured, beside other work. */
#include "soap/soap_state.h"

/** Multiply-adds a second of one thread: products; QR with its products; eigendecompositions. */
typedef struct {
    double product, qr, eigh;
} speed;

/* below v4 products are those of the BLAS, as the eigendecompositions are at all levels */
static const speed SPEEDS[ISA_COUNT] = {[ISA_PLAIN] = {30e9, 18e9, 20e9},
                                        [ISA_V2] = {30e9, 18e9, 20e9},
                                        [ISA_V3] = {30e9, 20e9, 20e9},
                                        [ISA_V4] = {35e9, 35e9, 20e9}};
enum { ELEMENT = 8 }; /* one number through Adam takes as long as so many multiply-adds */

/** Seconds of one thread in all, and the most that one thread has to do by itself. */
typedef struct {
    double all, alone;
} load;

static void add_load(load *to, double seconds, bool alone)
{
    to->all += seconds;
    to->alone = alone && seconds > to->alone ? seconds : to->alone;
}

static double spread(const load *l, int threads)
{
    const double shared = l->all / threads;
    return shared > l->alone ? shared : l->alone;
}

static void add_param(const frg_soap *soap, const soap_param *p, load *next, load *refresh,
                      load *plain)
{
    const frg_soap_opts *const o = &soap->groups[p->group];
    const speed *const s = &SPEEDS[frgi_context_isa(soap->ctx)];
    double numbers = ELEMENT * (double)p->count;
    for (int k = 0; k < p->n_factors; k++) {
        const soap_factor *const f = &p->factors[k];
        const double n = (double)f->size, cube = n * n * n;
        const double by_eigh = 4 * cube / s->eigh;
        const double by_qr = 7.0 / 3 * o->power_iter_steps * cube / s->qr;
        numbers += 3.5 * n * (double)p->count;
        if (f->decided.due) {
            const bool alone = frgi_soap_decomposes(o, p, f);
            add_load(next, alone ? by_eigh : by_qr, alone);
        }
        add_load(refresh, o->use_eigh ? by_eigh : by_qr, o->use_eigh);
    }
    add_load(next, numbers / s->product, false);
    add_load(refresh, numbers / s->product, false);
    add_load(plain, numbers / s->product, false);
}

static void count_param(const soap_param *p, frg_soap_size *out)
{
    out->numbers += p->count;
    out->factors += p->n_factors;
    out->long_axes += p->long_axes;
    for (int k = 0; k < p->n_factors; k++) {
        if (p->factors[k].size > out->largest_factor) {
            out->largest_factor = p->factors[k].size;
            out->largest_of = p->name;
            out->largest_axis = p->factors[k].axis;
        }
    }
}

frg_status frg_soap_estimate(frg_soap *soap, frg_soap_size *out)
{
    if (!soap) {
        FAIL(NULL, E_ARG, "soap is NULL");
    }
    REQUIRE(soap->ctx, out, "out is NULL");
    frgi_soap_wait(soap);
    ptrdiff_t eigh;
    TRY(frgi_soap_decide(soap, true, &eigh));
    load next = {0}, refresh = {0}, plain = {0};
    frg_soap_size size = {.parameters = soap->n_params, .state_bytes = frg_soap_state_bytes(soap)};
    for (int64_t i = 0; i < soap->n_params; i++) {
        count_param(soap->params[i], &size);
        add_param(soap, soap->params[i], &next, &refresh, &plain);
    }
    size.bytes = frgi_add(size.state_bytes, frgi_soap_plan_bytes(soap));
    size.peak_bytes = frgi_add(size.bytes, frgi_soap_eigh_bytes(soap, eigh));
    size.next_seconds = spread(&next, soap->threads);
    size.refresh_seconds = spread(&refresh, soap->threads);
    size.plain_seconds = spread(&plain, soap->threads);
    *out = size;
    return FRG_OK;
}

frg_status frgi_soap_warn_slow(frg_soap *soap)
{
    static const double LONG = 1; /* second */
    frg_soap_size s;
    if (soap->warned_params == soap->n_params) {
        return FRG_OK;
    }
    TRY(frg_soap_estimate(soap, &s));
    soap->warned_params = soap->n_params;
    if ((s.next_seconds > LONG || s.refresh_seconds > LONG) && s.factors > 0) {
        frgi_warn(soap->ctx, W_SLOW_STEP,
                  "the next step will take about %.2g s, one that refreshes all bases %.2g s: of "
                  "%lld factors the largest has order %lld (axis %d of '%s')",
                  s.next_seconds, s.refresh_seconds, (long long)s.factors,
                  (long long)s.largest_factor, s.largest_axis, s.largest_of);
    }
    return FRG_OK;
}

frg_status frg_soap_prepare(frg_soap *soap)
{
    if (!soap) {
        FAIL(NULL, E_ARG, "soap is NULL");
    }
    TRY(frgi_soap_plan(soap));
    return frgi_soap_warn_slow(soap);
}
