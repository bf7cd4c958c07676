/* soap_report.c - what a step has done, counted. */
#include <math.h>
#include <string.h>

#include "soap/soap_state.h"

void frgi_soap_count_updates(const frg_soap *soap, frg_soap_report *report)
{
    for (int64_t i = 0; i < soap->n_params; i++) {
        const soap_param *const p = soap->params[i];
        report->updated += p->grad && p->decided.updates;
        report->long_axes += p->grad ? p->long_axes : 0;
    }
}

static void count_orthogonalisation(const frg_qr_report *qr, frg_soap_report *report)
{
    const bool cholesky = qr->method == FRG_QR_CHOLESKY;
    const double error = qr->orthogonality;
    report->householder += !cholesky;
    report->single_pass += cholesky && qr->passes == 1;
    report->second_pass += cholesky && qr->passes > 1;
    report->orthogonality = error > report->orthogonality ? error : report->orthogonality;
}

static void count_factor(const soap_factor *f, frg_soap_report *report)
{
    const soap_outcome done = f->result.done;
    const bool refreshed = done == SOAP_BY_QR || done == SOAP_BY_EIGH;
    const double lowest = refreshed ? f->result.lowest : 0;
    report->due += f->decided.due;
    report->skipped += f->decided.due && f->result.passes && !refreshed;
    report->eigh += done == SOAP_BY_EIGH;
    report->eigh_failures += done == SOAP_FAILED;
    report->indefinite += lowest < 0;
    report->lowest_quotient = fmin(report->lowest_quotient, lowest);
    if (done == SOAP_BY_QR) {
        count_orthogonalisation(&f->result.report, report);
    }
}

void frgi_soap_count_factors(const frg_soap *soap, frg_soap_report *report)
{
    for (int64_t i = 0; i < soap->n_params; i++) {
        const soap_param *const p = soap->params[i];
        for (int k = 0; k < p->n_factors && frgi_soap_in_pass(soap, p); k++) {
            count_factor(&p->factors[k], report);
            if (p->factors[k].result.done == SOAP_FAILED) {
                frgi_warn(soap->ctx, W_BASIS,
                          "the eigendecomposition of factor %d of '%s' failed, its basis stayed", k,
                          p->name);
            }
        }
    }
}

void frgi_soap_clear_times(frg_soap *soap)
{
    for (int t = 0; t < soap->threads; t++) {
        memset(soap->plan.workspaces[t].seconds, 0, sizeof soap->plan.workspaces[t].seconds);
    }
}

void frgi_soap_sum_times(const frg_soap *soap, frg_soap_report *report)
{
    double *const to[SOAP_TIMES] = {&report->factors_seconds, &report->refresh_seconds,
                                    &report->project_seconds, &report->update_seconds};
    for (int t = 0; t < soap->threads; t++) {
        for (int k = 0; k < SOAP_TIMES; k++) {
            *to[k] += soap->plan.workspaces[t].seconds[k];
        }
    }
}
