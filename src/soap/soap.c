/* soap.c - the handle and its groups.
 *
 * Parameters and their states are soap_param.c's, tasks and workspaces soap_plan.c's, a step is
 * soap_step.c's. */
#include <string.h>

#include "core/host_alone.h"
#include "soap/soap_state.h"

frg_status frg_soap_create(frg_soap **out, frg_context *ctx, const frg_soap_opts *o)
{
    if (!out) {
        FAIL(ctx, E_ARG, "out is NULL");
    }
    *out = NULL;
    if (!ctx) {
        FAIL(NULL, E_ARG, "ctx is NULL");
    }
    TRY(frgi_host_alone(ctx, "the SOAP optimizer"));
    static const soap_ops *const tables[ISA_COUNT] = EACH_LEVEL(&frgi_soap_ops);
    frg_soap_opts defaults;
    frg_soap_defaults(&defaults, sizeof defaults, FRG_SOAP_EMERGING);
    frg_status status;
    frg_soap *soap = NULL;
    TRY(NEW0(ctx, &soap, 1, "an optimizer"));
    soap->ctx = ctx;
    soap->steps = &frgi_soap_host_steps;
    soap->ops = tables[frgi_context_isa(ctx)];
    soap->qr = frgi_qr_ops_of(ctx, false);
    soap->threads = soap->threading.most = frg_threads(ctx);
    soap->threading.oversubscription[0] = soap->threading.oversubscription[1] =
        frgi_oversubscription_doubtful();
    TRY_TO(failed, frg_soap_add_group(soap, o ? o : &defaults, NULL));
    *out = soap;
    return FRG_OK;
failed:
    frg_soap_destroy(soap);
    return status;
}

void frg_soap_destroy(frg_soap *soap)
{
    if (!soap) {
        return;
    }
    frgi_soap_wait(soap);
    frg_context *const ctx = soap->ctx;
    frgi_soap_drop_plan(soap);
    frgi_soap_eigh_close(soap);
    for (int64_t i = 0; i < soap->n_params; i++) {
        frgi_soap_drop_param(soap, &soap->params[i]);
    }
    DROP(ctx, &soap->params);
    DROP(ctx, &soap->groups);
    DROP(ctx, &soap);
}

frg_status frg_soap_add_group(frg_soap *soap, const frg_soap_opts *o, int *group)
{
    if (!soap) {
        FAIL(NULL, E_ARG, "soap is NULL");
    }
    frgi_soap_wait(soap);
    frg_context *const ctx = soap->ctx;
    REQUIRE(ctx, o, "the options of a group are NULL");
    frg_soap_opts taken;
    frg_soap_defaults(&taken, sizeof taken, FRG_SOAP_EMERGING);
    TRY(frgi_take_opts(ctx, &taken, sizeof taken, o));
    TRY(frgi_soap_check(ctx, &taken));
    if (soap->n_groups == soap->groups_capacity) {
        TRY(GROW(ctx, &soap->groups, 2 * soap->groups_capacity + 2, "groups"));
        soap->groups_capacity = 2 * soap->groups_capacity + 2;
    }
    soap->groups[soap->n_groups] = taken;
    if (group) {
        *group = (int)soap->n_groups;
    }
    soap->n_groups++;
    return FRG_OK;
}

frg_status frgi_soap_check_group(const frg_soap *soap, int group)
{
    if (!soap) {
        FAIL(NULL, E_ARG, "soap is NULL");
    }
    REQUIRE(soap->ctx, group >= 0 && group < soap->n_groups, "group is %d, there are 0 .. %lld",
            group, (long long)soap->n_groups - 1);
    return FRG_OK;
}

frg_status frg_soap_get_group(const frg_soap *soap, int group, frg_soap_opts *o, size_t struct_size)
{
    TRY(frgi_soap_check_group(soap, group));
    REQUIRE(soap->ctx, o, "o is NULL");
    const size_t bytes = struct_size < sizeof *o ? struct_size : sizeof *o;
    frg_soap_opts copy = soap->groups[group];
    copy.struct_size = bytes;
    memcpy(o, &copy, bytes);
    return FRG_OK;
}

/** What was laid out when parameters were added cannot change any more. */
static frg_status check_layout(frg_context *ctx, const frg_soap_opts *a, const frg_soap_opts *b)
{
    const struct {
        const char *name;
        int64_t is, was;
    } rows[] = {
        {"precondition_1d", a->precondition_1d, b->precondition_1d},
        {"max_precond_dim", a->max_precond_dim, b->max_precond_dim},
        {"block_dim", a->block_dim, b->block_dim},
        {"merge_dims", a->merge_dims, b->merge_dims},
        {"merge_rule", a->merge_rule, b->merge_rule},
        {"profile", a->profile, b->profile},
        {"order", a->order, b->order},
        {"use_kl_shampoo", a->use_kl_shampoo, b->use_kl_shampoo},
        {"moment2_order", a->moment2_order, b->moment2_order},
        {"warmup_v", a->warmup_v, b->warmup_v},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        REQUIRE(ctx, rows[i].is == rows[i].was,
                "%s cannot change after parameters were added; make another group", rows[i].name);
    }
    return FRG_OK;
}

frg_status frg_soap_set_group(frg_soap *soap, int group, const frg_soap_opts *o)
{
    TRY(frgi_soap_check_group(soap, group));
    REQUIRE(soap->ctx, o, "the options of a group are NULL");
    frgi_soap_wait(soap);
    frg_soap_opts taken = soap->groups[group];
    TRY(frgi_take_opts(soap->ctx, &taken, sizeof taken, o));
    TRY(frgi_soap_check(soap->ctx, &taken));
    bool used = false;
    for (int64_t i = 0; i < soap->n_params; i++) {
        used |= soap->params[i]->group == group;
    }
    if (used) {
        TRY(check_layout(soap->ctx, &taken, &soap->groups[group]));
    }
    const frg_soap_opts *const was = &soap->groups[group];
    if (taken.qr_method != was->qr_method || taken.stagger != was->stagger ||
        (taken.stagger && frgi_soap_stagger_interval(&taken) != frgi_soap_stagger_interval(was))) {
        soap->plan.ready = false;
    }
    soap->groups[group] = taken;
    return FRG_OK;
}
