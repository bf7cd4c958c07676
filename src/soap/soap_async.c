/* soap_async.c - the refresh of one step while the caller computes the next gradients.
 *
 * Where a step updates first (order FRG_UPDATE_FIRST), nobody needs the new bases before the next
 * step.  With refresh_async the factors are averaged within the call, as they read the gradients;
 * products, QR and the moment's way out of its basis then run on a thread that the handle starts,
 * with the threads of its context.  Whatever looks at the state next waits for it first: the
 * results have the bits of a refresh within the step. */
#include "linalg/blas.h"
#include "soap/soap_state.h"

static void *work(void *handle)
{
    const frgi_blas_guard guard = frgi_blas_begin();
    frgi_soap_change_bases(handle);
    frgi_blas_end(guard);
    return NULL;
}

void frgi_soap_launch(frg_soap *soap)
{
    frgi_soap_clear_times(soap);
    soap->later.pending = true;
    soap->later.in_flight = pthread_create(&soap->later.worker, NULL, work, soap) == 0;
    if (!soap->later
             .in_flight) { /* no thread to be had: the step takes as long as without the option */
        (void)work(soap);
    }
}

void frgi_soap_wait(frg_soap *soap)
{
    if (!soap || !soap->later.pending) {
        return;
    }
    if (soap->later.in_flight) {
        (void)pthread_join(soap->later.worker, NULL);
    }
    soap->later.pending = soap->later.in_flight = false;
    frgi_soap_end_refresh(soap, &soap->later.report);
    frgi_soap_eigh_end(soap);
    frgi_soap_sum_times(soap, &soap->later.report);
}
