/* device_arrays.c - vectors of the caller's on a device to host memory and back. */
#include "device/device.h"

/** Is it a vector that can be had?  Its bytes. */
static frg_status check(frg_context *ctx, const frg_array *a, size_t *bytes)
{
    frg_array view = *a;
    if (frgi_device_of(ctx)) {
        view.device = (frg_device){FRG_CPU, 0}; /* which device it is, that one looks at */
    }
    TRY(frgi_array_check(ctx, &view, "the vector", 1, 1u << FRG_F32 | 1u << FRG_F64));
    if (a->device.kind != FRG_CPU && a->shape[0] > 1 && a->stride[0] != 1) {
        FAIL(ctx, E_DEVICE_HANDLE, "the vector has %lld elements from one to the next: 1 is needed",
             (long long)a->stride[0]);
    }
    *bytes = (size_t)a->shape[0] * frg_sizeof(a->dtype);
    return FRG_OK;
}

static double host_element(const frg_array *a, int64_t i)
{
    const char *const at = frgi_array_base(a) + i * a->stride[0] * (int64_t)frg_sizeof(a->dtype);
    return a->dtype == FRG_F64 ? *(const double *)(const void *)at
                               : (double)*(const float *)(const void *)at;
}

static void put_host_element(const frg_array *a, int64_t i, double x)
{
    char *const at = frgi_array_base(a) + i * a->stride[0] * (int64_t)frg_sizeof(a->dtype);
    if (a->dtype == FRG_F64) {
        *(double *)(void *)at = x;
    } else {
        *(float *)(void *)at = (float)x;
    }
}

/** All elements between the adopted vector and `here`, contiguous. */
static frg_status transfer(frg_context *ctx, const frg_array *a, char *here, size_t bytes, bool out)
{
    frgi_device *const dev = frgi_device_of(ctx);
    frgi_buffer there;
    TRY(frgi_device_adopt(dev, a, "the vector", &there));
    frg_status status =
        out ? frgi_device_put(dev, there, here, bytes) : frgi_device_get(dev, here, there, bytes);
    if (status >= 0) {
        status = frgi_device_wait(dev);
    }
    frgi_device_disown(dev, &there);
    return status;
}

frg_status frg_array_get(frg_context *ctx, frg_array from, double *to)
{
    size_t bytes;
    REQUIRE(ctx, ctx && (to || from.shape[0] == 0), "frg_array_get takes a context and a place");
    TRY(check(ctx, &from, &bytes));
    frg_array host = from;
    char *room = NULL;
    frg_status status = FRG_OK;
    if (from.device.kind != FRG_CPU) {
        TRY(NEW(ctx, &room, bytes, "a vector of a device"));
        host = frg_vector(room, from.dtype, from.shape[0]);
        status = transfer(ctx, &from, room, bytes, false);
    }
    for (int64_t i = 0; i < from.shape[0] && status >= 0; i++) {
        to[i] = host_element(&host, i);
    }
    DROP(ctx, &room);
    return status;
}

frg_status frg_array_put(frg_context *ctx, frg_array to, const double *from)
{
    size_t bytes;
    REQUIRE(ctx, ctx && (from || to.shape[0] == 0), "frg_array_put takes a context and numbers");
    TRY(check(ctx, &to, &bytes));
    frg_array host = to;
    char *room = NULL;
    if (to.device.kind != FRG_CPU) {
        TRY(NEW(ctx, &room, bytes, "a vector of a device"));
        host = frg_vector(room, to.dtype, to.shape[0]);
    }
    for (int64_t i = 0; i < to.shape[0]; i++) {
        put_host_element(&host, i, from[i]);
    }
    const frg_status status = room ? transfer(ctx, &to, room, bytes, true) : FRG_OK;
    DROP(ctx, &room);
    return status;
}
