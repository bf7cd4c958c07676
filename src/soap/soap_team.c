/* soap_team.c - one task by several threads, and which tasks are done so.
 *
 * Tasks are dealt to threads whole, as a factor alone is fastest on one.  Where that leaves threads
 * idle, because one factor is most of the work or the last ones cannot be dealt evenly, the largest
 * are done first, each by all threads: columns of products, of matrices and ranges of elements are
 * dealt in slices that depend on the sizes alone, so that the bits are those of one thread. */
#include <math.h>
#include <omp.h>

#include "core/denormals.h"
#include "linalg/blas.h"
#include "soap/soap_state.h"

enum { BLAS_COLUMNS = 256, COLUMNS = 128 }; /* of a slice of a product */

static ptrdiff_t slice_start(ptrdiff_t n, ptrdiff_t slices, ptrdiff_t i)
{
    return n / slices * i + (n % slices < i ? n % slices : i);
}

void frgi_soap_share(const soap_workspace *work, ptrdiff_t n, ptrdiff_t width, soap_slice slice,
                     const void *job)
{
    const ptrdiff_t slices = n / width > 1 ? n / width : 1;
    if (work->team == 1) { /* within a region of the caller's */
        for (ptrdiff_t i = 0; i < slices; i++) {
            slice(job, work, slice_start(n, slices, i),
                  slice_start(n, slices, i + 1) - slice_start(n, slices, i));
        }
        return;
    }
#pragma omp parallel num_threads(work->team)
    {
        const soap_workspace *const mine = work + omp_get_thread_num();
        const unsigned mode = frgi_flush_denormals();
        frgi_blas_single();
#pragma omp for schedule(dynamic, 1)
        for (ptrdiff_t i = 0; i < slices; i++) {
            slice(job, mine, slice_start(n, slices, i),
                  slice_start(n, slices, i + 1) - slice_start(n, slices, i));
        }
        frgi_restore_denormals(mode);
    }
}

void frgi_soap_share_product(const soap_workspace *work, const soap_param *p, ptrdiff_t columns,
                             ptrdiff_t least, soap_slice slice, const void *job)
{
    const bool own = frgi_product_is_own(frgi_soap_products(p, work), least);
    if (work->team == 1 && own) {
        slice(job, work, 0, columns);
    } else {
        frgi_soap_share(work, columns, own ? COLUMNS : BLAS_COLUMNS, slice, job);
    }
}

/* ---- which tasks ----------------------------------------------------------------------------- */

enum { MOST_THREADS = 64, MOST_SHARED = 16 };
static const double TEAM_LOSS = 1.25; /* threads on one factor wait for its panels */

/** When the last thread is done, where each takes the next task whenever it is free. */
static double finish_time(int threads, int64_t n, const double cost[])
{
    double load[MOST_THREADS] = {0}, end = 0;
    for (int64_t i = 0; i < n; i++) {
        int least = 0;
        for (int t = 1; t < threads; t++) {
            least = load[t] < load[least] ? t : least;
        }
        load[least] += fabs(cost[i]);
        end = load[least] > end ? load[least] : end;
    }
    return end;
}

int64_t frgi_soap_shared_tasks(int threads, int64_t n, const double cost[])
{
    int64_t best = 0;
    if (threads == 1) {
        return 0;
    }
    const int team = threads < MOST_THREADS ? threads : MOST_THREADS;
    double shared = 0, least = finish_time(team, n, cost);
    for (int64_t k = 0; k < n && k < MOST_SHARED && cost[k] >= 0; k++) {
        shared += TEAM_LOSS * cost[k] / team;
        const double end = shared + finish_time(team, n - k - 1, cost + k + 1);
        if (end < least) {
            least = end;
            best = k + 1;
        }
    }
    return best;
}
