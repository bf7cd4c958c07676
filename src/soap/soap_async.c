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
    soap->async.pending = true;
    soap->async.in_flight = pthread_create(&soap->async.worker, NULL, work, soap) == 0;
    if (!soap->async
             .in_flight) { /* no thread to be had: the step takes as long as without the option */
        (void)work(soap);
    }
}

void frgi_soap_wait(frg_soap *soap)
{
    if (!soap || !soap->async.pending) {
        return;
    }
    if (soap->async.in_flight) {
        (void)pthread_join(soap->async.worker, NULL);
    }
    soap->async.pending = soap->async.in_flight = false;
    frgi_soap_end_refresh(soap, &soap->async.report);
    frgi_soap_eigh_end(soap);
    frgi_soap_sum_times(soap, &soap->async.report);
}
