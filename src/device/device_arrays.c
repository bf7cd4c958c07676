/* device_arrays.c - vectors of the caller's on a device to host memory and back. */
#include "device/device.h"

/** Is it a vector of n elements that can be had? */
static frg_status check(frg_context *ctx, const frg_array *a, const char *what, int64_t n)
{
    frg_array view = *a;
    if (frgi_device_of(ctx)) {
        view.device = (frg_device){FRG_CPU, 0}; /* which device it is, that one looks at */
    }
    TRY(frgi_array_check(ctx, &view, what, 1, 1u << FRG_F32 | 1u << FRG_F64));
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

/** *host <- the vector itself, or of one on a device a contiguous one of *room. */
static frg_status open_host(frg_context *ctx, const frg_array *a, frg_array *host, char **room)
{
    *host = *a;
    *room = NULL;
    if (a->device.kind != FRG_CPU) {
        TRY(NEW(ctx, room, (size_t)a->shape[0] * frg_sizeof(a->dtype), "a vector of a device"));
        *host = frg_vector(*room, a->dtype, a->shape[0]);
    }
    return FRG_OK;
}

frg_status frgi_vector_get(frg_context *ctx, const frg_array *from, const char *what, int64_t n,
                           double *to)
{
    frg_array host;
    char *room;
    TRY(check(ctx, from, what, n));
    TRY(open_host(ctx, from, &host, &room));
    const frg_status status = room ? transfer(ctx, from, what, room, false) : FRG_OK;
    for (int64_t i = 0; i < n && status >= 0; i++) {
        to[i] = host_element(&host, i);
    }
    DROP(ctx, &room);
    return status;
}

frg_status frgi_vector_put(frg_context *ctx, const frg_array *to, const char *what, int64_t n,
                           const double *from)
{
    frg_array host;
    char *room;
    TRY(check(ctx, to, what, n));
    TRY(open_host(ctx, to, &host, &room));
    for (int64_t i = 0; i < n; i++) {
        put_host_element(&host, i, from[i]);
    }
    const frg_status status = room ? transfer(ctx, to, what, room, true) : FRG_OK;
    DROP(ctx, &room);
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
