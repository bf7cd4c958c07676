/* test_host_step.c - beside a device the host's steps on the list are counted, and every other one
 * ends the process: a child that plants one in a run of each room is aborted, with the step's name,
 * and a child that plants none is not.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/host_step.h"
#include "devices.h"
#include "fe/fe_demean.h"
#include "fe/fe_steps.h"
#include "fourge/fe.h"
#include "fourge/gw.h"
#include "gw/gw_sinkhorn.h"

/* ---- counts ---------------------------------------------------------------------------------- */

static void counts(void)
{
    frg_context *ctx = test_context_with(4, NULL, NULL);
    frgi_host_steps own = {.beside = FRGI_BESIDE_F32}, host = {.beside = FRGI_BESIDE_NONE};
    frgi_host_step(ctx, FRGI_HOST_FACTOR); /* no run is under way */
    frgi_not_beside_device(ctx, "a product");
    frgi_host_step(NULL, FRGI_HOST_FACTOR);
    frgi_host_steps *const outer = frgi_host_steps_begin(ctx, &own);
    CHECK(!outer);
    frgi_host_step(ctx, FRGI_HOST_FACTOR);
    frgi_host_steps_keep(&own);
#pragma omp parallel for num_threads(4)
    for (int q = 0; q < 100; q++)
        frgi_host_step(ctx, FRGI_HOST_TRIANGULAR);
    frg_context *thread = NULL;
    if (CHECK_OK(ctx, frgi_context_fork(&thread, ctx, 2, NULL)))
        frgi_host_step(thread, FRGI_HOST_TRIANGULAR);
    frg_context_destroy(thread);
    frgi_host_step(ctx, FRGI_HOST_PASSES); /* on the list where there is no double precision */
    frgi_host_step_open(ctx, FRGI_HOST_COARSE);
    frgi_not_beside_device(ctx, "a product"); /* part of what is open */
    frgi_host_step_close(ctx);
    frgi_host_steps *const around = frgi_host_steps_begin(ctx, &host);
    frgi_host_step(ctx, FRGI_HOST_FACTOR); /* of a run on the host inside of it */
    frgi_not_beside_device(ctx, "a product");
    frgi_host_steps_end(ctx, around);
    CHECK_INT(own.list.count, 0); /* until its end */
    frgi_host_steps_end(ctx, outer);
    CHECK_INT(host.list.count, 0);
    CHECK_INT(own.list.count, 4);
    CHECK_INT(host_calls(&own.list, "sparse factor"), 1);
    CHECK_INT(host_calls(&own.list, "triangular solves"), 101);
    CHECK_INT(host_calls(&own.list, "passes over the columns in double"), 1);
    frgi_host_steps_rewind(&own); /* another run */
    frgi_host_steps_end(ctx, frgi_host_steps_begin(ctx, &own));
    CHECK_INT(own.list.count, 1);
    CHECK_INT(host_calls(&own.list, "sparse factor"), 1);
    frg_context_destroy(ctx);
}

/* ---- the end of a child ---------------------------------------------------------------------- */

typedef void (*body)(frg_context *ctx, int planted);

/** Whether a child with this body is aborted, with `name` in what it says; NULL: it comes to its
 *  end. */
static bool ends(body run, int planted, const char *name)
{
    char said[2048] = "";
    int out[2], how = 0;
    fflush(stdout);
    if (!CHECK(pipe(out) == 0))
        return false;
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        dup2(out[1], STDERR_FILENO);
        frg_context *ctx = test_context_with(1, NULL, NULL);
        run(ctx, planted);
        frg_context_destroy(ctx);
        fflush(stdout);
        _exit(test_now.failures > 0);
    }
    close(out[1]);
    size_t length = 0;
    for (ssize_t got = 1; got > 0 && length + 1 < sizeof said; length += (size_t)got) {
        got = read(out[0], said + length, sizeof said - 1 - length);
        got = got < 0 ? 0 : got;
    }
    close(out[0]);
    if (!CHECK(child > 0 && waitpid(child, &how, 0) == child))
        return false;
    const bool aborted = WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT;
    return name ? CHECK_SAYS(aborted && strstr(said, name), "ended with %d: %s", how, said)
                : CHECK_SAYS(WIFEXITED(how) && WEXITSTATUS(how) == 0, "ended with %d: %s", how,
                             said);
}

/** planted 0: steps beside a device without double precision; 1: one that is on no list, there;
 *  2: one that is on the list without double precision, beside a device that has it. */
static void alone(frg_context *ctx, int planted)
{
    frgi_host_steps own = {.beside = planted == 2 ? FRGI_BESIDE_F64 : FRGI_BESIDE_F32};
    frgi_host_steps *const outer = frgi_host_steps_begin(ctx, &own);
    frgi_host_step(ctx, FRGI_HOST_PASSES);
    if (planted == 1)
        frgi_not_beside_device(ctx, "a product");
    frgi_host_steps_end(ctx, outer);
}

/* ---- fe -------------------------------------------------------------------------------------- */

static struct {
    frg_context *ctx;
    const fe_rows *rows;
    int what; /* 1: a product, 2: a right-hand side */
} plant;

/** The audit, with a step of the host in front of it. */
static frg_status audit(const fe_rows *g, int lanes, const double *s, int k, fe_reduced_audit *out)
{
    fe_moments moments;
    if (plant.what == 1)
        return frgi_fe_host_steps.reduced.apply(g, NULL, plant.ctx, 0, lanes, NULL, false, s, NULL);
    if (plant.what == 2)
        return frgi_fe_host_steps.rows.rhs(g, plant.ctx, 0, lanes, NULL, NULL, NULL, &moments);
    return frgi_fe_host_steps.reduced.audit(g, lanes, s, k, out);
}

/** Two factors of 20 and 12 levels. */
static void demean(frg_context *ctx, int planted)
{
    enum { ROWS = 300 };
    int32_t codes[2 * ROWS];
    double x[ROWS];
    for (int i = 0; i < ROWS; i++) {
        codes[2 * i] = (int32_t)test_below(20);
        codes[2 * i + 1] = (int32_t)test_below(12);
        x[i] = test_normal();
    }
    fe_steps steps = frgi_fe_host_steps;
    steps.reduced.audit = audit;
    plant.ctx = ctx;
    plant.what = planted;
    frgi_device *dev = NULL;
    frg_demean *plan = NULL;
    frg_demean_opts o;
    frg_demean_defaults(&o, sizeof o);
    if (!CHECK_OK(ctx, frgi_device_open(&dev, ctx, (frg_device){FRG_CPU, 0})) ||
        !CHECK_OK(ctx, frgi_fe_demean_open(&plan, ctx, (fe_device_place){dev, 0, &steps},
                                           frg_matrix(codes, FRG_I32, ROWS, 2, 2), NULL,
                                           &(fe_slopes_asked){NULL, 0, 0}, &o)))
        return;
    const frg_array column = frg_matrix(x, FRG_F64, ROWS, 1, 1);
    CHECK_OK(ctx, frg_demean_run(plan, column, column, NULL, NULL));
    const frg_host_steps left = frg_demean_get(plan).host_steps;
    CHECK_INT(host_calls(&left, "rows: order, index, weights"), 1);
    CHECK(host_calls(&left, "vectors of reduced unknowns") > 0);
    CHECK_INT(host_calls(&left, "passes over the columns in double"), 0);
    frg_demean_destroy(plan);
    frgi_device_close(&dev);
}

/* ---- gw -------------------------------------------------------------------------------------- */

/** A copy of bytes, with a pass of the host's in front of it. */
static void restart(frgi_transport *t)
{
    if (plant.what)
        frgi_transport_host_steps.pass(t);
    frgi_transport_host_steps.restart(t);
}

static void transport(frg_context *ctx, int planted)
{
    enum { POINTS = 12 };
    double cost[POINTS * POINTS];
    for (int i = 0; i < POINTS * POINTS; i++)
        cost[i] = test_uniform();
    frgi_transport_steps steps = frgi_transport_host_steps;
    steps.restart = restart;
    plant.what = planted;
    frgi_device *dev = NULL;
    frg_sinkhorn *s = NULL;
    if (!CHECK_OK(ctx, frgi_device_open(&dev, ctx, (frg_device){FRG_CPU, 0})) ||
        !CHECK_OK(ctx, frgi_sinkhorn_open(&s, ctx, (frgi_sinkhorn_place){dev, 0, &steps},
                                          frg_matrix(cost, FRG_F64, POINTS, POINTS, POINTS), NULL,
                                          NULL, NULL)))
        return;
    CHECK_OK(ctx, frg_sinkhorn_run(s, NULL));
    CHECK_INT(frg_sinkhorn_get(s).host_steps.count, 0); /* all of it was there */
    frg_sinkhorn_destroy(s);
    frgi_device_close(&dev);
}

static void others_end(void)
{
    CHECK(ends(alone, 0, NULL));
    CHECK(ends(alone, 1, "beside a device: a product"));
    CHECK(ends(alone, 2, "beside a device: passes over the columns in double"));
}

static void planted_in_fe(void)
{
    CHECK(ends(demean, 0, NULL));
    CHECK(ends(demean, 1, "a product through the rows"));
    CHECK(ends(demean, 2, "passes over the columns in double"));
}

static void planted_in_gw(void)
{
    CHECK(ends(transport, 0, NULL));
    CHECK(ends(transport, 1, "Sinkhorn passes in double"));
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {{"other steps end the process", others_end},
                                      {"a step of the host in a run of fe", planted_in_fe},
                                      {"a step of the host in a run of gw", planted_in_gw},
                                      {"counts", counts}}; /* starts threads: behind the forks */
    return test_main(argc, argv, cases, (int)(sizeof cases / sizeof *cases));
}
