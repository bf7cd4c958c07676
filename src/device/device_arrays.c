/* device_arrays.c - vectors of the caller's on a device to host memory and back. */
#include "device/device.h"

frg_status frgi_device_array_check(const frgi_device *dev, frg_context *ctx, const frg_array *a,
                                   const char *what, int ndim, unsigned types)
{
    frg_array view = *a;
    if (dev) {
        view.device = (frg_device){FRG_CPU, 0};
    }
    return frgi_array_check(ctx, &view, what, ndim, types);
}

/** Is it a vector of n elements that can be had? */
static frg_status check(frg_context *ctx, const frg_array *a, const char *what, int64_t n)
{
    TRY(frgi_device_array_check(frgi_device_of(ctx), ctx, a, what, 1,
                                1u << FRG_F32 | 1u << FRG_F64));
    if (a->shape[0] != n) {
        FAIL(ctx, E_SHAPE, "%s has %lld values, %lld are needed", what, (long long)a->shape[0],
             (long long)n);
    }
    if (a->device.kind != FRG_CPU && n > 1 && a->stride[0] != 1) {
        FAIL(ctx, E_DEVICE_HANDLE, "%s has %lld elements from one to the next: 1 is needed", what,
             (long long)a->stride[0]);
    }
    return FRG_OK;
}

/** All elements between the adopted vector and `here`, contiguous. */
static frg_status transfer(frg_context *ctx, const frg_array *a, const char *what, char *here,
                           bool out)
{
    frgi_device *const dev = frgi_device_of(ctx);
    const size_t bytes = (size_t)a->shape[0] * frg_sizeof(a->dtype);
    frgi_buffer there;
    TRY(frgi_device_adopt(dev, a, what, &there));
    frg_status status =
        out ? frgi_device_put(dev, there, here, bytes) : frgi_device_get(dev, here, there, bytes);
    if (status >= 0) {
        status = frgi_device_wait(dev);
    }
    frgi_device_disown(dev, &there);
    return status;
}

/** *host <- the vector itself, or of one on a device a contiguous one of *packed. */
static frg_status open_host(frg_context *ctx, const frg_array *a, frg_array *host, char **packed)
{
    *host = *a;
    *packed = NULL;
    if (a->device.kind != FRG_CPU) {
        TRY(NEW(ctx, packed, (size_t)a->shape[0] * frg_sizeof(a->dtype), "a vector of a device"));
        *host = frg_vector(*packed, a->dtype, a->shape[0]);
    }
    return FRG_OK;
}

frg_status frgi_vector_get(frg_context *ctx, const frg_array *from, const char *what, int64_t n,
                           double *to)
{
    frg_array host;
    char *packed;
    TRY(check(ctx, from, what, n));
    TRY(open_host(ctx, from, &host, &packed));
    const frg_status status = packed ? transfer(ctx, from, what, packed, false) : FRG_OK;
    for (int64_t i = 0; i < n && status >= 0; i++) {
        to[i] = frgi_array_get(&host, i, 0);
    }
    DROP(ctx, &packed);
    return status;
}

frg_status frgi_vector_put(frg_context *ctx, const frg_array *to, const char *what, int64_t n,
                           const double *from)
{
    frg_array host;
    char *packed;
    TRY(check(ctx, to, what, n));
    TRY(open_host(ctx, to, &host, &packed));
    for (int64_t i = 0; i < n; i++) {
        frgi_array_put(&host, i, 0, from[i]);
    }
    const frg_status status = packed ? transfer(ctx, to, what, packed, true) : FRG_OK;
    DROP(ctx, &packed);
    return status;
}

frg_status frg_array_get(frg_context *ctx, frg_array from, double *to)
{
    REQUIRE(ctx, ctx && (to || from.shape[0] == 0), "frg_array_get takes a context and a place");
    return frgi_vector_get(ctx, &from, "the vector", from.shape[0], to);
}

frg_status frg_array_put(frg_context *ctx, frg_array to, const double *from)
{
    REQUIRE(ctx, ctx && (from || to.shape[0] == 0), "frg_array_put takes a context and numbers");
    return frgi_vector_put(ctx, &to, "the vector", to.shape[0], from);
}
