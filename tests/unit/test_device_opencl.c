/* test_device_opencl.c - the plug-in for OpenCL on a stand-in for its loader: kernels by the names of
 * their texts, late; every call of the loader failing once; a device lost; less memory; what the
 * loader would not bear. */
#include "opencl_driver.h"

#include "driver_bodies.h"

static void kernels_late(void)
{
    if (!with_driver())
        return;
    on_driver(kernels, 32);
    on_driver(kernels, 256); /* more than a kernel there takes */
    CHECK(driver->texts == 2 * FRGI_TYPES);
    CHECK(driver->launches > 0 && driver->bytes_in > 0);
}

/** A command past the end of a block is refused at once, and the device stays refused. */
static void past_the_end(void)
{
    frgi_device *dev;
    frgi_buffer x = {0};
    char byte;
    if (!with_driver())
        return;
    frg_context *ctx = test_context();
    CHECK_OK(ctx, frgi_device_open(&dev, ctx, opencl));
    CHECK_OK(ctx, frgi_device_alloc(dev, 100, "x", &x));
    const frgi_buffer beyond = {x.handle, 100, 1};
    CHECK_STATUS(frgi_device_get(dev, &byte, beyond, 1), FRG_NO_DEVICE);
    CHECK(strstr(frg_message(ctx), "clEnqueueReadBuffer") && driver->complaint[0]);
    CHECK_STATUS(frgi_device_wait(dev), FRG_NO_DEVICE);
    driver->complaint[0] = '\0';
    frgi_device_free(dev, &x);
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
    check_clean("past the end");
}

/** What the compiler says is in the message, and a second try builds. */
static void compiler_says(void)
{
    frgi_device *dev;
    const frgi_program *p;
    if (!with_driver())
        return;
    frg_context *ctx = test_context();
    CHECK_OK(ctx, frgi_device_open(&dev, ctx, opencl));
    driver->fail_at = driver->calls + 2; /* behind clCreateProgramWithSource */
    driver->fail_with = -11;
    CHECK_STATUS(frgi_device_load(dev, &frgi_kernels_basic, FRGI_F32, &p), FRG_NO_DEVICE);
    CHECK(strstr(frg_message(ctx), "clBuildProgram"));
    CHECK(strstr(frg_message(ctx), "for the kernels of basic: a stand-in's log"));
    frgi_device_close(&dev);
    CHECK_OK(ctx, frgi_device_open(&dev, ctx, opencl));
    CHECK_OK(ctx, frgi_device_load(dev, &frgi_kernels_basic, FRGI_F32, &p));
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
    check_clean("the compiler");
}

static void listed(void)
{
    frg_device_info info;
    if (!with_driver())
        return;
    CHECK_INT(frg_device_count(FRG_OPENCL), 1);
    CHECK_STATUS(frg_device_get(opencl, &info), FRG_OK);
    CHECK_TEXT(info.name, "stand-in");
    CHECK_TEXT(info.driver, "stand-in 1.2");
    CHECK(info.f64 && info.memory == (int64_t)driver->memory);
    setenv("FOURGE_OPENCL_F64", "0", 1);
    CHECK_STATUS(frg_device_get(opencl, &info), FRG_OK);
    CHECK(!info.f64);
    unsetenv("FOURGE_OPENCL_F64");
    CHECK_STATUS(frg_device_get((frg_device){FRG_OPENCL, 1}, &info), FRG_NO_DEVICE);
    CHECK_TEXT(info.reason, "the driver has 1 devices of this kind");
}

/** Where a number of the device is not told, it is not taken for 0: nothing computes in float
 *  because a question failed. */
static void numbers_untold(void)
{
    frg_device_info info;
    if (!with_driver())
        return;
    CHECK_STATUS(frg_device_get(opencl, &info), FRG_OK);
    const int64_t calls = driver->calls;
    int refused = 0;
    for (int64_t k = 1; k <= calls; k++) {
        driver->calls = 0;
        driver->fail_at = k;
        driver->fail_with = -5;
        const frg_status status = frg_device_get(opencl, &info);
        CHECK(status == FRG_OK ? info.f64 && info.memory > 0 : info.reason[0] != '\0');
        refused += status != FRG_OK;
    }
    CHECK(refused >= 8);
    check_clean("a question failed");
}

static const test_case cases[] = {
    {"kernels_late", kernels_late},
    {"arena_late", arena_late},
    {"runs_late", runs_late},
    {"each_call_fails", each_call_fails},
    {"each_call_of_demeaning_fails", each_call_of_demeaning_fails},
    {"demeaning_in_any_order", demeaning_in_any_order},
    {"lost", lost},
    {"less_memory", less_memory},
    {"past_the_end", past_the_end},
    {"compiler_says", compiler_says},
    {"faults", faults},
    {"listed", listed},
    {"numbers_untold", numbers_untold},
};
TEST_MAIN(cases)
