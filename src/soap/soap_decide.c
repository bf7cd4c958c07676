/* soap_decide.c - what a step does to which parameter and factor: masks that stand before its first
 * write, and a second time once all factors were tested. */
#include "soap/soap_state.h"

bool frgi_soap_in_pass(const frg_soap *soap, const soap_param *p)
{
    return p->grad && soap->groups[p->group].order == soap->order;
}

/* ---- what is due ----------------------------------------------------------------------------- */

/** Is a refresh due?  (t0 + offset) mod f = 0, t0 the steps made, and always in the warm-up. */
static bool due_now(const frg_soap_opts *o, const soap_param *p, int64_t offset, int64_t freq)
{
    const bool updated = o->order == FRG_UPDATE_FIRST; /* counts the step just made */
    const bool early = p->step <= o->precondition_warmup_steps && o->precondition_warmup_steps > 0;
    return early || (p->step + (updated ? 1 : 0) + offset) % freq == 0;
}

/** Emerging-Optimizers 0.2 makes eigenvectors at the end of Adam's warm-up where a refresh is due
 *  there.  Else its bases are I until one is due, which is a step of orthogonal iteration from
 *  I. */
static bool begins_at_identity(const frg_soap_opts *o, const soap_param *p)
{
    return o->profile == FRG_SOAP_EMERGING && o->order == FRG_GRAD_FIRST && !o->stagger &&
           o->warmup_v == FRG_WARMUP_V_KEEP && p->step >= o->adam_warmup_steps;
}

static void decide_factor(const frg_soap *soap, const soap_param *p, soap_factor *f, int64_t freq)
{
    const frg_soap_opts *const o = &soap->groups[p->group];
    const int64_t offset = o->stagger ? f->refresh_offset % freq : 0;
    const bool first = p->decided.first_bases;
    const bool due =
        first || ((p->generation > 0 || begins_at_identity(o, p)) && due_now(o, p, offset, freq));
    const bool no_basis = due && (first || f->decompose_again);
    f->decided.due = due;
    f->decided.fresh = no_basis && (frgi_soap_shampoo_beta(o, p->step + 1) <= 0 || !f->k ||
                                    soap->steps->norm(soap, f) <= 0);
}

bool frgi_soap_decomposes(const frg_soap_opts *o, const soap_param *p, const soap_factor *f)
{
    return (p->decided.first_bases && !frgi_soap_is_derived(o, p, f)) || o->use_eigh ||
           f->decompose_again;
}

static frg_status decide_param(const frg_soap *soap, soap_param *p)
{
    const frg_soap_opts *const o = &soap->groups[p->group];
    const bool update_first = o->order == FRG_UPDATE_FIRST;
    int64_t f;
    TRY(frgi_soap_frequency(soap->ctx, o, p->step, &f));
    p->decided.updates = !update_first || p->started;
    p->decided.first_bases = p->n_factors > 0 && p->generation == 0 &&
                             (update_first ? !p->started : p->step >= o->adam_warmup_steps);
    if (begins_at_identity(o, p)) {
        p->decided.first_bases =
            p->decided.first_bases && p->step == o->adam_warmup_steps && due_now(o, p, 0, f);
    }
    for (int k = 0; k < p->n_factors; k++) {
        decide_factor(soap, p, &p->factors[k], f);
    }
    return FRG_OK;
}

/** The largest order of a parameter's eigendecompositions; 0: there are none. */
static ptrdiff_t largest_to_decompose(const frg_soap_opts *o, const soap_param *p)
{
    ptrdiff_t largest = 0;
    for (int k = 0; k < p->n_factors; k++) {
        const soap_factor *const f = &p->factors[k];
        if (f->decided.due && frgi_soap_decomposes(o, p, f) && f->size > largest) {
            largest = f->size;
        }
    }
    return largest;
}

frg_status frgi_soap_decide(frg_soap *soap, bool all, ptrdiff_t *eigh)
{
    *eigh = 0;
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        p->decided = (soap_param_decision){0};
        for (int k = 0; k < p->n_factors; k++) {
            p->factors[k].decided = (soap_factor_decision){0};
            frgi_soap_begin_factor(&p->factors[k]);
        }
        if (all ? p->count > 0 : p->grad != NULL) {
            TRY(decide_param(soap, p));
            const ptrdiff_t largest = largest_to_decompose(&soap->groups[p->group], p);
            *eigh = largest > *eigh ? largest : *eigh;
        }
    }
    return FRG_OK;
}

/* ---- which bases change, and when ------------------------------------------------------------ */

static bool adaptive_over_parameter(const frg_soap_opts *o)
{
    return o->use_adaptive_criteria && o->adaptive_scope == FRG_SCOPE_PARAMETER;
}

bool frgi_soap_tests(const frg_soap_opts *o, const soap_param *p, const soap_factor *f)
{
    return o->use_adaptive_criteria && f->decided.due && !p->decided.first_bases &&
           !f->decompose_again;
}

/** Must a basis wait until all factors of its parameter were tested, or the first moment has
 *  left? */
static bool waits(const frg_soap_opts *o, const soap_param *p, const soap_factor *f)
{
    return o->use_kl_shampoo || frgi_soap_is_derived(o, p, f) ||
           (!p->decided.first_bases &&
            (adaptive_over_parameter(o) || !frgi_soap_is_m_original(o) || p->m_generation != 0));
}

/** Does a factor's own test let its basis be? */
static bool stays(const frg_soap_opts *o, const soap_factor *f)
{
    return f->result.passes && !adaptive_over_parameter(o);
}

bool frgi_soap_at_once(const frg_soap_opts *o, const soap_param *p, const soap_factor *f)
{
    return f->decided.due && !waits(o, p, f) && !stays(o, f);
}

/** Does the adaptive test over a parameter let all its bases be? */
static bool all_stay(const frg_soap_opts *o, const soap_param *p)
{
    bool all = adaptive_over_parameter(o) && !p->decided.first_bases;
    for (int k = 0; k < p->n_factors; k++) {
        all = all && (!p->factors[k].decided.due || p->factors[k].result.passes);
    }
    return all;
}

bool frgi_soap_decide_waiting(frg_soap *soap)
{
    bool any = false;
    for (int64_t i = 0; i < soap->n_params; i++) {
        soap_param *const p = soap->params[i];
        const frg_soap_opts *const o = &soap->groups[p->group];
        if (!frgi_soap_in_pass(soap, p) || all_stay(o, p)) {
            continue;
        }
        for (int k = 0; k < p->n_factors; k++) {
            soap_factor *const f = &p->factors[k];
            f->decided.refresh = f->decided.due && waits(o, p, f) && !stays(o, f);
            p->decided.basis_changes |= f->decided.refresh;
        }
        any |= p->decided.basis_changes;
    }
    return any;
}
