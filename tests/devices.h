/* devices.h - the machines that a test of kernels runs on: the plain C life always, OpenCL's where a
 * driver is installed (PoCL in CI), each with several sizes of group. */
#ifndef FOURGE_DEVICES_H
#define FOURGE_DEVICES_H

#include "device/device.h"
#include "test.h"

/** Under a sanitizer, which GCC tells by macros and clang by features, the drivers' own compilers are
 *  not run. */
#if defined(__has_feature)
#define DEVICES_FEATURE(name) __has_feature(name)
#else
#define DEVICES_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    DEVICES_FEATURE(address_sanitizer) || DEVICES_FEATURE(thread_sanitizer)
enum { DEVICES_SANITIZED = 1 };
#else
enum { DEVICES_SANITIZED = 0 };
#endif

/** The first device of the kind; NULL with the case skipped where there is none. */
TEST_UNUSED static frgi_device *open_first(frg_context *ctx, frg_device_kind kind)
{
    frgi_device *dev = NULL;
    if (DEVICES_SANITIZED)
        test_skip("drivers are not run under a sanitizer");
    else if (frg_device_count(kind) == 0)
        test_skip(kind == FRG_OPENCL
                      ? "no OpenCL device: install pocl-opencl-icd, ocl-icd-libopencl1"
                      : "no GPU of NVIDIA's");
    else
        CHECK_OK(ctx, frgi_device_open(&dev, ctx, (frg_device){kind, 0}));
    return dev;
}

/** Calls of a step of the host in a report; 0: it is not there. */
TEST_UNUSED static int64_t host_calls(const frg_host_steps *s, const char *name)
{
    for (int64_t i = 0; i < s->count; i++)
        if (strcmp(s->steps[i].name, name) == 0)
            return s->steps[i].calls;
    return 0;
}

typedef void (*device_body)(frg_context *ctx, frgi_device *dev, int size);

/** On a device of the context, which ends with it. */
TEST_UNUSED static void on_device(frg_context *ctx, frg_device which, device_body body, int size)
{
    frgi_device *dev = NULL;
    if (CHECK_OK(ctx, frgi_device_open(&dev, ctx, which)))
        body(ctx, dev, size);
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
}

/** On the host. */
TEST_UNUSED static void on_host(device_body body)
{
    on_device(test_context(), (frg_device){FRG_CPU, 0}, body, 128);
}

/** The same of one thread: bits do not depend on how many, and problems are small. */
TEST_UNUSED static void on_one_thread(device_body body)
{
    on_device(test_context_with(1, NULL, NULL), (frg_device){FRG_CPU, 0}, body, 128);
}

/** On the first device of the kind with groups of 32 and of 256. */
TEST_UNUSED static void on_first(frg_device_kind kind, device_body body)
{
    frg_context *ctx = test_context();
    frgi_device *dev = open_first(ctx, kind);
    if (dev) {
        body(ctx, dev, 32);
        body(ctx, dev, 256);
        frgi_device_close(&dev);
    }
    frg_context_destroy(ctx);
}

/** OpenCL; FOURGE_TEST_DEVICE=cuda: the same cases on a GPU of NVIDIA's (`tools/gpu-check.sh parity`). */
TEST_UNUSED static frg_device_kind kind_asked(void)
{
    const char *const asked = getenv("FOURGE_TEST_DEVICE");
    return asked && strcmp(asked, "cuda") == 0 ? FRG_CUDA : FRG_OPENCL;
}

/** The same on OpenCL. */
TEST_UNUSED static void on_opencl(device_body body)
{
    on_first(kind_asked(), body);
}

TEST_UNUSED static frgi_device *open_opencl(frg_context *ctx)
{
    return open_first(ctx, kind_asked());
}

#endif
