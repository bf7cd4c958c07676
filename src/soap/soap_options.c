/* soap_options.c - the table of options, defaults of the three profiles, and what is refused. */
#include <math.h>

#include "core/opts.h"
#include "soap/soap_state.h"

#define OPTIONS_OF frg_soap_opts
static const frg_option options[] = {
#include "soap/soap_opts.def"
    {.name = NULL}};

const frg_option *frg_soap_options(void)
{
    return options;
}

void frg_soap_defaults(frg_soap_opts *o, size_t struct_size, frg_soap_profile profile)
{
    frg_soap_opts d = {0};
    frgi_options_set(options, &d);
    d.profile = profile;
    if (profile == FRG_SOAP_EMERGING_04) {
        d.sort_when = FRG_SORT_AFTER_QR;
        d.moment2_order = FRG_MOMENT2_RANK;
        d.merge_dims = 1;
        d.merge_rule = FRG_MERGE_STACKED;
    } else if (profile == FRG_SOAP_NIKHILVYAS) {
        d.lr = 3e-3;
        d.beta1 = 0.95;
        d.shampoo_beta = -1;
        d.weight_decay_method = FRG_DECAY_DECOUPLED_AFTER;
        d.precondition_frequency = 10;
        d.correct_shampoo_beta_bias = 0;
        d.order = FRG_UPDATE_FIRST;
    }
    frgi_options_give(o, struct_size, &d, sizeof d);
}

/** Options of which one leaves the other nothing to act on. */
static frg_status check_together(frg_context *ctx, const frg_soap_opts *o)
{
    const bool update_first = o->order == FRG_UPDATE_FIRST;
    const struct {
        bool both;
        const char *one, *why;
    } rows[] = {
        {o->refresh_async && !update_first, "refresh_async",
         "needs order FRG_UPDATE_FIRST (profile nikhilvyas): with the gradient first, a step uses "
         "the bases that it refreshes"},
        {o->nesterov && o->profile == FRG_SOAP_NIKHILVYAS, "nesterov",
         "is not in the profile nikhilvyas; take another profile, or leave it off"},
        {o->adam_warmup_steps > 0 && update_first, "adam_warmup_steps",
         "needs order FRG_GRAD_FIRST: with the update first, the first gradient makes the bases"},
        {o->moment2_order == FRG_MOMENT2_ROTATE && o->use_eigh, "moment2_order FRG_MOMENT2_ROTATE",
         "goes with refreshes by QR, and use_eigh leaves none"},
        {o->power_iter_steps > 1 && o->use_eigh, "power_iter_steps",
         "counts the products of refreshes by QR, and use_eigh leaves none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].both) {
            FAIL(ctx, E_UNSUPPORTED, "%s %s", rows[i].one, rows[i].why);
        }
    }
    return FRG_OK;
}

frg_status frgi_soap_check(frg_context *ctx, const frg_soap_opts *o)
{
    TRY(frgi_options_check(ctx, options, o));
    if (o->shampoo_beta < 0 && o->shampoo_beta != -1) {
        FAIL(ctx, E_OPTION, "shampoo_beta is %g, expected 0 <= shampoo_beta < 1, or -1 for beta2",
             o->shampoo_beta);
    }
    REQUIRE(ctx, o->n_frequencies >= 0, "n_frequencies is %lld, expected at least 0",
            (long long)o->n_frequencies);
    for (int64_t i = 0; i < o->n_frequencies && o->frequencies; i++) {
        REQUIRE(ctx,
                o->frequencies[i][1] >= 1 &&
                    (i == 0 || o->frequencies[i][0] > o->frequencies[i - 1][0]),
                "row %lld of frequencies is (%lld, %lld); steps must ascend, frequencies be >= 1",
                (long long)i + 1, (long long)o->frequencies[i][0], (long long)o->frequencies[i][1]);
    }
    return check_together(ctx, o);
}

frg_status frgi_soap_frequency(frg_context *ctx, const frg_soap_opts *o, int64_t t0, int64_t *f)
{
    *f = o->precondition_frequency;
    for (int64_t i = 0; i < o->n_frequencies && o->frequencies; i++) {
        *f = o->frequencies[i][0] <= t0 ? o->frequencies[i][1] : *f;
    }
    if (o->frequency) {
        *f = o->frequency(t0, o->user);
        REQUIRE(ctx, *f >= 1, "the callback frequency gave %lld at step %lld, expected at least 1",
                (long long)*f, (long long)t0);
    }
    return FRG_OK;
}

/** The weight of the past in the factors at the 1-based step t: beta, or where bias is corrected
 *  1 - (1 - beta) / (1 - beta^t), which is 0 at t = 1. */
double frgi_soap_shampoo_beta(const frg_soap_opts *o, int64_t t)
{
    const double beta = o->shampoo_beta < 0 ? o->beta2 : o->shampoo_beta;
    const bool correct =
        o->correct_shampoo_beta_bias < 0 ? o->correct_bias : o->correct_shampoo_beta_bias;
    return correct ? 1 - (1 - beta) / (1 - pow(beta, (double)t)) : beta;
}
