/* soap_options.c - defaults of the three profiles, and what is refused. */
#include <math.h>
#include <string.h>

#include "soap/soap_state.h"

void frg_soap_defaults(frg_soap_opts *o, size_t struct_size, frg_soap_profile profile)
{
    frg_soap_opts d = {
        .struct_size = struct_size,
        .profile = profile,
        .lr = 1e-3,
        .beta1 = 0.9,
        .beta2 = 0.95,
        .shampoo_beta = 0.95,
        .eps = 1e-8,
        .weight_decay = 0.01,
        .weight_decay_method = FRG_DECAY_DECOUPLED,
        .correct_bias = 1,
        .correct_shampoo_beta_bias = -1,
        .precondition_frequency = 1,
        .power_iter_steps = 1,
        .adaptive_tolerance = 1e-7,
        .adaptive_scope = FRG_SCOPE_PARAMETER,
        .sort_when = FRG_SORT_BEFORE_QR,
        .moment2_order = FRG_MOMENT2_FOLLOW,
        .order = FRG_GRAD_FIRST,
        .ridge_c = 64,
        .ortho_tol = 1e-5,
        .max_precond_dim = 10000,
    };
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
    memcpy(o, &d, struct_size < sizeof d ? struct_size : sizeof d);
}

static frg_status check_numbers(frg_context *ctx, const frg_soap_opts *o)
{
    const struct {
        const char *name;
        double value, low, high; /* low <= value < high */
    } rows[] = {
        {"lr", o->lr, 0, INFINITY},
        {"beta1", o->beta1, 0, 1},
        {"beta2", o->beta2, 0, 1},
        {"eps", o->eps, 0, INFINITY},
        {"weight_decay", o->weight_decay, 0, INFINITY},
        {"max_update_rms", o->max_update_rms, 0, INFINITY},
        {"denom_floor", o->denom_floor, 0, INFINITY},
        {"adaptive_tolerance", o->adaptive_tolerance, 0, 2},
        {"ridge_c", o->ridge_c, 0, INFINITY},
        {"ortho_tol", o->ortho_tol, 1e-7, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        REQUIRE(ctx, rows[i].value >= rows[i].low && rows[i].value < rows[i].high,
                "%s is %g, expected %g <= %s < %g", rows[i].name, rows[i].value, rows[i].low,
                rows[i].name, rows[i].high);
    }
    REQUIRE(ctx, o->shampoo_beta == -1 || (o->shampoo_beta >= 0 && o->shampoo_beta < 1),
            "shampoo_beta is %g, expected 0 <= shampoo_beta < 1, or -1 for beta2", o->shampoo_beta);
    return FRG_OK;
}

static frg_status check_choices(frg_context *ctx, const frg_soap_opts *o)
{
    const struct {
        const char *name;
        int value, last;
    } rows[] = {
        {"profile", (int)o->profile, FRG_SOAP_NIKHILVYAS},
        {"weight_decay_method", (int)o->weight_decay_method, FRG_DECAY_PALM},
        {"adaptive_scope", (int)o->adaptive_scope, FRG_SCOPE_FACTOR},
        {"adaptive_form", (int)o->adaptive_form, FRG_ADAPTIVE_OFFDIAGONAL},
        {"kl_init", (int)o->kl_init, FRG_KL_UNIT},
        {"sort_when", (int)o->sort_when, FRG_SORT_AFTER_QR},
        {"moment2_order", (int)o->moment2_order, FRG_MOMENT2_ROTATE},
        {"order", (int)o->order, FRG_UPDATE_FIRST},
        {"warmup_v", (int)o->warmup_v, FRG_WARMUP_V_ROTATE},
        {"moment1_basis", (int)o->moment1_basis, FRG_BASIS_ORIGINAL},
        {"qr_method", (int)o->qr_method, FRG_QR_VENDOR},
        {"nonfinite", (int)o->nonfinite, FRG_NONFINITE_PROPAGATE},
        {"merge_rule", (int)o->merge_rule, FRG_MERGE_STACKED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        REQUIRE(ctx, rows[i].value >= 0 && rows[i].value <= rows[i].last,
                "%s is %d, which is none of its values 0 .. %d", rows[i].name, rows[i].value,
                rows[i].last);
    }
    return FRG_OK;
}

/** Options of which one leaves the other nothing to act on. */
static frg_status check_together(frg_context *ctx, const frg_soap_opts *o)
{
    const bool after = o->order == FRG_UPDATE_FIRST;
    const struct {
        bool both;
        const char *one, *why;
    } rows[] = {
        {o->refresh_async && !after, "refresh_async",
         "needs order FRG_UPDATE_FIRST (profile nikhilvyas): with the gradient first, a step uses "
         "the bases that it refreshes"},
        {o->nesterov && o->profile == FRG_SOAP_NIKHILVYAS, "nesterov",
         "is not in the profile nikhilvyas; take another profile, or leave it off"},
        {o->adam_warmup_steps > 0 && after, "adam_warmup_steps",
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
    TRY(check_numbers(ctx, o));
    TRY(check_choices(ctx, o));
    const struct {
        const char *name;
        int64_t value, least;
    } rows[] = {
        {"precondition_frequency", o->precondition_frequency, 1},
        {"power_iter_steps", o->power_iter_steps, 1},
        {"precondition_warmup_steps", o->precondition_warmup_steps, 0},
        {"adam_warmup_steps", o->adam_warmup_steps, 0},
        {"max_precond_dim", o->max_precond_dim, -1},
        {"block_dim", o->block_dim, 0},
        {"n_frequencies", o->n_frequencies, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        REQUIRE(ctx, rows[i].value >= rows[i].least, "%s is %lld, expected at least %lld",
                rows[i].name, (long long)rows[i].value, (long long)rows[i].least);
    }
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

/** The weight of the past in the factors at the 1-based step t; 0 at t = 1 where bias is
 *  corrected. */
double frgi_soap_shampoo_beta(const frg_soap_opts *o, int64_t t)
{
    const double beta = o->shampoo_beta < 0 ? o->beta2 : o->shampoo_beta;
    const bool correct =
        o->correct_shampoo_beta_bias < 0 ? o->correct_bias : o->correct_shampoo_beta_bias;
    return correct ? 1 - (1 - beta) / (1 - pow(beta, (double)t)) : beta;
}
