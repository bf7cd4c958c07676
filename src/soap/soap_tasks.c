/* soap_tasks.c - a loop of a step: its tasks that are wanted, dealt to threads.
 *
 * Tasks share nothing but read-only state, so that no bit depends on who does which.  How many
 * threads a loop has follows from its work, and from whether steps like it gained by more. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/denormals.h"
#include "linalg/blas.h"
#include "soap/soap_state.h"

/* ---- how many threads ------------------------------------------------------------------------ */

void frgi_soap_begin_threading(frg_soap *soap)
{
    soap->threading.work = 0;
    soap->threading.worth_more = false;
}

/** Steps without and with new bases are watched apart, as one takes many times as long as the
 *  other. */
static frgi_oversubscription *oversubscription_of(frg_soap *soap)
{
    bool anew = false;
    for (int64_t i = 0; i < soap->n_params; i++) {
        for (int k = 0; k < soap->params[i]->n_factors; k++) {
            anew |= soap->params[i]->factors[k].decided.due;
        }
    }
    return &soap->threading.oversubscription[anew];
}

void frgi_soap_choose_team(frg_soap *soap)
{
    soap->threading.most = frgi_oversubscription_team(oversubscription_of(soap), soap->threads);
}

int frgi_soap_team_for(frg_soap *soap, double work)
{
    soap_threading *const threading = &soap->threading;
    const int team = frgi_team_for(threading->most, work);
    threading->work += work;
    threading->worth_more |= frgi_team_for(soap->threads, work) > 1;
    threading->loops_dealt += team > 1;
    return team;
}

/** It tells whether threads gain where one thread would take some 0.1 s at most, so that trying it
 *  costs little.  Eigendecompositions are none of the loops that the next steps have. */
void frgi_soap_end_threading(frg_soap *soap, bool by_eigh, double seconds)
{
    static const double MOST_WORK = 4e9;
    const soap_threading *const threading = &soap->threading;
    frgi_oversubscription *const oversubscription = oversubscription_of(soap);
    if (threading->work >= MOST_WORK) {
        *oversubscription = frgi_oversubscription_doubtful();
    } else if (threading->worth_more && !by_eigh) {
        frgi_oversubscription_note(oversubscription, soap->threads, seconds / threading->work);
    }
}

/* ---- the loop -------------------------------------------------------------------------------- */

static bool is_wanted(const frg_soap *soap, const soap_loop *loop, const soap_task *t)
{
    return frgi_soap_in_pass(soap, t->param) &&
           (!loop->wanted || loop->wanted(&soap->groups[t->param->group], t));
}

/** Denormals are zeros.  Moments of entries that have no gradient for long, as an embedding's rows
 *  of rare words, decay to the least denormal and stay there, as 0.95 of it is rounded to itself: a
 *  step took eighty times as long. */
static void run_task(frg_soap *soap, const soap_loop *loop, const soap_task *t, int thread)
{
    if (is_wanted(soap, loop, t)) {
        const unsigned mode = frgi_flush_denormals();
        loop->run(soap, t, &soap->plan.workspaces[thread]);
        frgi_restore_denormals(mode);
    }
}

/** The first tasks of a loop, which all of the team take part in, one after the other. */
static void run_shared(frg_soap *soap, const soap_loop *loop, int team, int64_t shared,
                       const soap_task *tasks)
{
    soap_workspace *const lead = &soap->plan.workspaces[0];
    double before[SOAP_TIMES];
    memcpy(before, lead->seconds, sizeof before);
    const int was = omp_get_max_threads();
    frgi_blas_single(); /* for what the lead does alone */
    lead->team = team;
    for (int64_t i = 0; i < shared; i++) {
        run_task(soap, loop, &tasks[i], 0);
    }
    lead->team = 1;
    soap->threading.tasks_shared += shared;
    omp_set_num_threads(was);
    for (int k = 0; k < SOAP_TIMES; k++) {
        lead->seconds[k] += (team - 1) * (lead->seconds[k] - before[k]);
    }
}

void frgi_soap_run(frg_soap *soap, const soap_loop *loop)
{
    const soap_task *const tasks =
        loop->by_param ? soap->plan.param_tasks : soap->plan.factor_tasks;
    const int64_t n = loop->by_param ? soap->n_params : soap->plan.n_factors;
    double work = 0;
    for (int64_t i = 0; i < n; i++) {
        const soap_task *const t = &tasks[i];
        soap->plan.costs[i] =
            is_wanted(soap, loop, t) ? loop->cost(&soap->groups[t->param->group], t) : 0;
        work += fabs(soap->plan.costs[i]);
    }
    if (work == 0) {
        return;
    }
    const int team = frgi_soap_team_for(soap, work);
    const int64_t shared = frgi_soap_shared_tasks(team, n, soap->plan.costs);
    run_shared(soap, loop, team, shared, tasks);
#pragma omp parallel num_threads(team)
    {
        frgi_blas_single();
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = shared; i < n; i++) {
            run_task(soap, loop, &tasks[i], omp_get_thread_num());
        }
    }
}
