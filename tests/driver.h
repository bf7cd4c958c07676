/* driver.h - tests on the stand-in for a driver: it is opened, nothing is left on it, and each of its
 * calls fails once. */
#ifndef FOURGE_DRIVER_H
#define FOURGE_DRIVER_H

#include <dlfcn.h>
#include <string.h>

#include "device/device.h"
#include "standin/standin.h"
#include "test.h"

static standin *driver;
static frg_device driven;    /* its device */
static int driver_errors[2]; /* one of memory, one that stays */

/** The stand-in of that name, new; false with the case skipped where the build has none. */
static bool open_driver(const char *library, const char *symbol)
{
    void *const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    driver = opened ? dlsym(opened, symbol) : NULL;
    if (!driver) {
        test_skip("the build has no stand-in for this driver");
        return false;
    }
    *driver = (standin){.memory = (size_t)1 << 28, .major = 12, .random = test_random()};
    return true;
}

/** Nothing is left on the device, and nothing was done that a real one refuses. */
static void check_clean(const char *when)
{
    CHECK_SAYS(driver->objects == 0, "%s: %" PRId64 " objects are left", when, driver->objects);
    CHECK_SAYS(driver->held == 0, "%s: %zu bytes are left", when, driver->held);
    CHECK_SAYS(!driver->complaint[0], "%s: %s", when, driver->complaint);
}

/** The k-th call of the driver from now on fails, with either error in turn. */
static void fail_call(int64_t k)
{
    driver->calls = 0;
    driver->fail_at = k;
    driver->fail_with = driver_errors[k % 2];
}

/** The end of work with a call that was to fail, and its status: was there such a call? */
static bool call_was_made(frg_status status, int64_t *refused)
{
    const bool made = driver->calls >= driver->fail_at;
    driver->fail_at = 0;
    *refused += status < 0;
    return made;
}

/** Work on a device, `out` <- what it computes. */
typedef frg_status (*driver_body)(frg_context *ctx, frg_device which, const void *user,
                                  double *out);

/** Each call of the driver fails once: the status and a message, nothing left behind, and a second
 *  try gives the result: `bytes` of want, of got, which has as many.  At least `least` calls.  Tiny:
 *  each seventh call, with either error in turn. */
static void fail_each_call(driver_body body, const void *user, int64_t least, double *want,
                           double *got, size_t bytes)
{
    frg_context *ctx = test_context();
    char name[FRGI_NAME_BYTES];
    snprintf(name, sizeof name, "%s:0", driven.kind == FRG_CUDA ? "cuda" : "opencl");
    CHECK_OK(ctx, body(ctx, driven, user, want));
    const int64_t calls = driver->calls;
    CHECK(calls > least);
    const int64_t step = test_size(1, 7);
    int64_t refused = 0, tried = 0;
    for (int64_t k = 1; k <= calls; k += step) {
        tried++;
        fail_call(k);
        const frg_status status = body(ctx, driven, user, got);
        if (status < 0)
            CHECK(strstr(frg_message(ctx), name) && frg_error_code(ctx)[0]);
        else
            CHECK_BITS(got, want, bytes);
        check_clean("a call failed");
        call_was_made(status, &refused);
    }
    CHECK_SAYS(refused > tried / 2, "%" PRId64 " of %" PRId64 " were told", refused, tried);
    CHECK_OK(ctx, body(ctx, driven, user, got));
    CHECK_BITS(got, want, bytes);
    frg_context_destroy(ctx);
}

#endif
