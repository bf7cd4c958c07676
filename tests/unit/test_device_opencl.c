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

/** A queue that keeps no order, one of another cl_context and what is no queue are refused, and the
 *  former one goes on. */
static void other_queues(void)
{
    caller c, other;
    int32_t error;
    frg_context_opts o;
    frg_context *none;
    if (!with_driver() || !caller_open(&c, opencl) || !caller_open(&other, opencl))
        return;
    frg_context *ctx = caller_context(&c);
    const cl_object loose =
        c.cl.clCreateCommandQueue(c.context, c.device, OPENCL_ANY_ORDER, &error);
    CHECK_STATUS(frg_context_set_stream(ctx, loose), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "the caller's queue runs its commands in any order"));
    CHECK_STATUS(frg_context_set_stream(ctx, other.queue), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "the caller's queue is of another cl_context"));
    CHECK_STATUS(frg_context_set_stream(ctx, c.context), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "what was given is no cl_command_queue"));
    CHECK_OK(ctx, frgi_device_wait(frgi_device_of(ctx)));
    frg_context_defaults(&o, sizeof o);
    o.device = opencl;
    o.stream = loose;
    CHECK_STATUS(frg_context_create(&none, &o), FRG_BAD_ARG);
    CHECK(none == NULL);
    frg_context_destroy(ctx);
    CHECK_INT(c.cl.clReleaseCommandQueue(loose), 0);
    caller_close(&c);
    caller_close(&other);
    check_clean("other queues");
}

/** The array is a part of a buffer: taken in place where it begins, with what is behind it refused;
 *  buffers of another cl_context, and what is no buffer, are told from it. */
static void parts_of_buffers(void)
{
    static float in[PLACED], got[PLACED];
    caller c, other;
    int32_t error;
    if (!with_driver() || !caller_open(&c, opencl) || !caller_open(&other, opencl))
        return;
    for (int i = 0; i < PLACED; i++)
        in[i] = (float)i;
    frg_context *ctx = caller_context(&c);
    void *const all = caller_array(&c, NULL, 4096 + sizeof in), *const py =
                                                                    caller_array(&c, in, sizeof in);
    const opencl_region behind = {4096, sizeof in};
    const cl_object part =
        c.cl.clCreateSubBuffer(all, OPENCL_MEM_AS_WHOLE, OPENCL_BUFFER_REGION, &behind, &error);
    CHECK_INT(c.cl.clEnqueueWriteBuffer(c.queue, part, 0, 0, sizeof in, in, 0, NULL, NULL), 0);
    frg_array x = caller_vector(&c, part, FRG_F32, PLACED);
    const frg_array y = caller_vector(&c, py, FRG_F32, PLACED);
    CHECK_OK(ctx, add_in_place(frgi_device_of(ctx), y, x));
    x.shape[0] = PLACED / 2;
    x.offset = 1024;
    CHECK_OK(ctx, add_in_place(frgi_device_of(ctx), y, x));
    x.shape[0] = PLACED + 1;
    x.offset = 0;
    CHECK_STATUS(add_in_place(frgi_device_of(ctx), y, x), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "4004 bytes from byte 0 on of a cl_mem of 4000"));
    void *const foreign = caller_array(&other, in, sizeof in);
    x = caller_vector(&other, foreign, FRG_F32, PLACED);
    CHECK_STATUS(add_in_place(frgi_device_of(ctx), y, x), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "is of another cl_context"));
    x.data = c.queue;
    CHECK_STATUS(add_in_place(frgi_device_of(ctx), y, x), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "what was given is no cl_mem"));
    caller_read(&c, got, py, sizeof got);
    for (int i = 0; i < PLACED; i++)
        CHECK(got[i] == (float)(3 * i + (i < PLACED / 2 ? 2 * (i + 256) : 0)));
    frg_context_destroy(ctx);
    CHECK_INT(c.cl.clReleaseMemObject(part), 0);
    caller_free(&c, all);
    caller_free(&c, py);
    caller_free(&other, foreign);
    caller_close(&c);
    caller_close(&other);
    check_clean("parts of buffers");
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
    CHECK_TEXT(info.reason, "number 1, and the driver has 1 of this kind, from 0");
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
    {"demeaning_in_place", demeaning_in_place},
    {"lost", lost},
    {"in_place", in_place},
    {"each_call_in_place_fails", each_call_in_place_fails},
    {"sinkhorn_in_place", sinkhorn_in_place},
    {"each_call_of_transport_fails", each_call_of_transport_fails},
    {"alignments_in_place", alignments_in_place},
    {"each_call_of_opening_fails", each_call_of_opening_fails},
    {"other_queues", other_queues},
    {"parts_of_buffers", parts_of_buffers},
    {"less_memory", less_memory},
    {"past_the_end", past_the_end},
    {"compiler_says", compiler_says},
    {"faults", faults},
    {"listed", listed},
    {"numbers_untold", numbers_untold},
};
TEST_MAIN(cases)
