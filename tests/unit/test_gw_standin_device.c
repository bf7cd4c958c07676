/* test_gw_standin_device.c - each call of OpenCL's driver fails once under alignments: plans in
 * factors, potentials, states of both that are saved and taken up.  With tests/standin, and no
 * other driver, in this program. */
#include "gw_states.h"
#include "opencl_driver.h"

/** Late, and with groups in random order. */
static void each_call_fails_of(int64_t rank)
{
    double want[STATE_FEW], got[STATE_FEW];
    if (!with_driver())
        return;
    state_points *const p = state_points_new();
    const state_few of = {p, rank};
    fail_each_call(state_body, &of, 0, want, got, sizeof want);
    free(p);
}

static void of_potentials(void)
{
    each_call_fails_of(0);
}

static void of_factors(void)
{
    each_call_fails_of(3);
}

static const test_case cases[] = {{"potentials", of_potentials}, {"factors", of_factors}};
TEST_MAIN(cases)
