/* soap_work.c - the work of tasks, in about floating-point operations: below zero where one thread
 * has to do it, as small tasks and eigendecompositions.
 *
 *     a factor of order n, of a parameter of N numbers
 *       average   n N, half of a square's      product K Q   2 n^3
 *       refresh   5 n^3: that and a QR         eigendecomposition   20 n^3, as slow as that many
 *     a parameter (the cost of its task)       (1 + sum of n) N */
#include "soap/soap_state.h"

enum { WORTH_IT = 256 }; /* size of a factor, or of a square parameter, from which a team gains */

static double cube(const soap_task *t)
{
    const double n = (double)t->factor->size;
    return n * n * n;
}

static double of_factor(const soap_task *t, double cost)
{
    return t->factor->size < WORTH_IT ? -cost : cost;
}

double frgi_soap_work_param(const frg_soap_opts *o, const soap_task *t)
{
    (void)o;
    return t->param->count >= WORTH_IT * WORTH_IT ? t->cost : -t->cost;
}

double frgi_soap_work_rotate(const frg_soap_opts *o, const soap_task *t)
{
    (void)o;
    return -t->cost;
}

double frgi_soap_work_product(const frg_soap_opts *o, const soap_task *t)
{
    (void)o;
    return of_factor(t, 2 * cube(t));
}

static double average_work(const soap_task *t)
{
    return (double)t->factor->size * (double)t->param->count;
}

double frgi_soap_work_average(const frg_soap_opts *o, const soap_task *t)
{
    (void)o;
    return of_factor(t, average_work(t));
}

/** Of a new basis, after so much other work. */
static double of_refresh_after(const frg_soap_opts *o, const soap_task *t, double before)
{
    const bool by_eigh = frgi_soap_decomposes(o, t->param, t->factor);
    const double cost = before + (by_eigh ? 20 : 5) * cube(t);
    return by_eigh ? -cost : of_factor(t, cost);
}

double frgi_soap_work_refresh(const frg_soap_opts *o, const soap_task *t)
{
    return of_refresh_after(o, t, 0);
}

/** Of an adaptive test and a basis that need not wait, after so much other work. */
static double of_examination_after(const frg_soap_opts *o, const soap_task *t, double before)
{
    const double cost = before + (frgi_soap_tests(o, t->param, t->factor) ? 2 * cube(t) : 0);
    return frgi_soap_at_once(o, t->param, t->factor) ? of_refresh_after(o, t, cost)
                                                     : of_factor(t, cost);
}

double frgi_soap_work_examine(const frg_soap_opts *o, const soap_task *t)
{
    return of_examination_after(o, t, 0);
}

double frgi_soap_work_average_examine(const frg_soap_opts *o, const soap_task *t)
{
    return of_examination_after(o, t, average_work(t));
}
