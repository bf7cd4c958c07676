/* caller_bodies.h - arrays of the caller's on a device, in its memory and its queue: used in place,
 * refused by name, given back as they were. */
#ifndef FOURGE_CALLER_BODIES_H
#define FOURGE_CALLER_BODIES_H

#include "caller.h"
#include "device_bodies.h"

enum { PLACED = 1000, SKIPPED = 1024 };

/** The context's device; of the cpu the machine `host`, opened. */
static frgi_device *device_in_place(frg_context *ctx, frg_device which)
{
    frgi_device *dev = frgi_device_of(ctx);
    if (!dev)
        CHECK_OK(ctx, frgi_device_open(&dev, ctx, which));
    return dev;
}

/** y <- y + 2 x where they lie, x behind 1024 elements of its block; the status of the first call
 *  that fails. */
static frg_status add_in_place(frgi_device *dev, frg_array y, frg_array x)
{
    const frgi_program *p;
    frgi_buffer in = {0}, out = {0};
    frg_status status = frgi_device_load(dev, &frgi_kernels_basic, FRGI_F32, &p);
    if (status >= 0)
        status = frgi_device_adopt(dev, &x, "x", &in);
    if (status >= 0)
        status = frgi_device_adopt(dev, &y, "y", &out);
    if (status >= 0)
        status =
            LAUNCH(dev, p, "axpy", 1, 1, 32, BUFFER(out), BUFFER(in), REAL(2), INT64(x.shape[0]));
    frgi_device_disown(dev, &in);
    frgi_device_disown(dev, &out);
    CHECK(!in.handle && !out.handle);
    return status;
}

/** What cannot be used in place says why, and takes nothing. */
static void refused_in_place(frg_context *ctx, frgi_device *dev, const caller *c, frg_array x)
{
    const frgi_buffer untouched = {dev, 1, 2};
    frgi_buffer b = untouched;
    frg_array odd = x;
    odd.device = (frg_device){c->which.kind == FRG_CUDA ? FRG_OPENCL : FRG_CUDA, 3};
    CHECK_STATUS(frgi_device_adopt(dev, &odd, "x", &b), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "x lies on ") && strstr(frg_message(ctx), ":3"));
    CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-015");
    odd = x;
    odd.stride[0] = -1;
    CHECK_STATUS(frgi_device_adopt(dev, &odd, "x", &b), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "axis 0 runs backwards"));
    odd = x;
    odd.offset += 2;
    odd.shape[0]--;
    CHECK_STATUS(frgi_device_adopt(dev, &odd, "x", &b), FRG_BAD_ARG);
    CHECK_SAYS(strstr(frg_message(ctx), "multiple of"), "%s", frg_message(ctx));
    odd = x;
    odd.shape[0] = INT64_MAX / 2;
    CHECK_STATUS(frgi_device_adopt(dev, &odd, "x", &b), FRG_BAD_ARG);
    odd = x;
    odd.data = NULL;
    CHECK_STATUS(frgi_device_adopt(dev, &odd, "x", &b), FRG_BAD_ARG);
    if (c->which.kind != FRG_CPU) {
        odd = x;
        odd.shape[0] = 1 << 20;
        CHECK_STATUS(frgi_device_adopt(dev, &odd, "x", &b), FRG_BAD_ARG);
        CHECK_SAYS(strncmp(frg_message(ctx), "x: ", 3) == 0, "%s", frg_message(ctx));
        CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-015");
    }
    CHECK_BITS(&b, &untouched, sizeof b);
    odd = x;
    odd.data = NULL;
    odd.shape[0] = 0;
    CHECK_OK(ctx, frgi_device_adopt(dev, &odd, "x", &b));
    CHECK(!b.handle && b.bytes == 0);
    frgi_device_disown(dev, &b);
}

/** Whole: added where they lie behind the caller's writes, which nobody has waited for, without a
 *  copy of ours; refusals; another queue between the calls. */
TEST_UNUSED static void in_place_on(frg_device which)
{
    static float in[SKIPPED + PLACED], out[PLACED], got[PLACED];
    caller c;
    for (int i = 0; i < SKIPPED + PLACED; i++)
        in[i] = (float)(i + 1);
    for (int i = 0; i < PLACED; i++)
        out[i] = (float)(-i);
    if (!caller_open(&c, which))
        return;
    frg_context *ctx = caller_context(&c);
    frgi_device *dev = ctx ? device_in_place(ctx, which) : NULL;
    void *const px = caller_array(&c, in, sizeof in), *const py = caller_array(&c, out, sizeof out);
    frg_array x = caller_vector(&c, px, FRG_F32, PLACED),
              y = caller_vector(&c, py, FRG_F32, PLACED);
    x.offset = SKIPPED * sizeof(float);
    if (dev) {
        CHECK_OK(ctx, add_in_place(dev, y, x));
        CHECK_OK(ctx, frg_context_set_stream(ctx, NULL));
        CHECK_OK(ctx, add_in_place(dev, y, x));
        CHECK_OK(ctx, frg_context_set_stream(ctx, c.queue));
        CHECK_INT(frgi_device_counted(dev)->copies, 0);
        refused_in_place(ctx, dev, &c, x);
        CHECK_OK(ctx, frgi_device_wait(dev));
    }
    caller_read(&c, got, py, sizeof got);
    for (int i = 0; i < PLACED; i++)
        CHECK_SAYS(got[i] == (float)(-i + 4 * (SKIPPED + i + 1)), "element %d is %.9g", i,
                   (double)got[i]);
    if (which.kind == FRG_CPU)
        frgi_device_close(&dev);
    frg_context_destroy(ctx);
    caller_free(&c, px);
    caller_free(&c, py);
    caller_close(&c);
}

#endif
