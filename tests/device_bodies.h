/* device_bodies.h - what tests run on every machine: the kernels of kernels/basic held against closed
 * forms, an arena with copies and events, a device opened and closed. */
#ifndef FOURGE_DEVICE_BODIES_H
#define FOURGE_DEVICE_BODIES_H

#include "devices.h"

enum { CHUNK = 4096 /* of kernels/basic */, N = 20000, SEGMENTS = 57 };

typedef struct {
    frgi_kernel_type type;
    double x[N], y[N];
    int64_t counts[N], start[SEGMENTS + 1];
} input;

static size_t element(frgi_kernel_type type)
{
    return type == FRGI_F64 ? 8 : 4;
}

static size_t wide_element(frgi_kernel_type type)
{
    return type == FRGI_F32 ? 4 : 8;
}

/** Values that float holds, so that every type has the same input. */
static void draw(input *in, frgi_kernel_type type)
{
    in->type = type;
    for (int i = 0; i < N; i++) {
        in->x[i] = (double)(float)test_normal();
        in->y[i] = (double)(float)test_normal();
        in->counts[i] = test_below(1000) - 300;
    }
    in->start[0] = 0;
    for (int s = 1; s < SEGMENTS; s++)
        in->start[s] = in->start[s - 1] + test_below(s % 3 ? 5 : 900);
    in->start[SEGMENTS] = N;
}

/** A buffer with n numbers of `bytes` each. */
static frg_status send(frgi_device *dev, const double *x, int n, size_t bytes, frgi_buffer *out)
{
    static float small[N];
    for (int i = 0; i < n; i++)
        small[i] = (float)x[i];
    TRY(frgi_device_alloc(dev, (size_t)n * bytes, "numbers", out));
    TRY(frgi_device_put(dev, *out, bytes == 4 ? (const void *)small : x, (size_t)n * bytes));
    return frgi_device_wait(dev);
}

static frg_status fetch(frgi_device *dev, double *x, int n, size_t bytes, frgi_buffer from)
{
    static float small[N];
    TRY(frgi_device_get(dev, bytes == 4 ? (void *)small : x, from, (size_t)n * bytes));
    TRY(frgi_device_wait(dev));
    for (int i = 0; i < n && bytes == 4; i++)
        x[i] = (double)small[i];
    return FRG_OK;
}

static double unit(size_t bytes)
{
    return bytes == 4 ? 0x1p-24 : 0x1p-53;
}

/** y + a x: one rounding with contraction, two without. */
static void check_axpy(frg_context *ctx, frgi_device *dev, const frgi_program *p, const input *in,
                       int size)
{
    const size_t bytes = element(in->type);
    const double a = -0.75;
    static double out[N];
    frgi_buffer x = {0}, y = {0};
    CHECK_OK(ctx, send(dev, in->x, N, bytes, &x));
    CHECK_OK(ctx, send(dev, in->y, N, bytes, &y));
    CHECK_OK(ctx, LAUNCH(dev, p, "axpy", (N + CHUNK - 1) / CHUNK, 1, size, BUFFER(y), BUFFER(x),
                         REAL(a), INT64(N)));
    CHECK_OK(ctx, fetch(dev, out, N, bytes, y));
    for (int i = 0; i < N; i++) {
        const double want = in->y[i] + a * in->x[i];
        const double bound = 2 * unit(bytes) * (fabs(in->y[i]) + fabs(a * in->x[i]));
        CHECK_SAYS(fabs(out[i] - want) <= bound, "axpy: element %d is %.9g, not %.9g", i, out[i],
                   want);
    }
    frgi_device_free(dev, &x);
    frgi_device_free(dev, &y);
}

/** A sum in any order of n terms is within n u sum|x| (Higham 2002, 4.4). */
static void check_sum(double got, const double *x, int64_t from, int64_t to, double u)
{
    double want = 0, all = 0;
    for (int64_t i = from; i < to; i++) {
        want += x[i];
        all += fabs(x[i]);
    }
    CHECK_SAYS(fabs(got - want) <= (double)(to - from) * (u + 0x1p-53) * all,
               "the sum from %" PRId64 " to %" PRId64 " is %.17g, not %.17g", from, to, got, want);
}

static void check_sums(frg_context *ctx, frgi_device *dev, const frgi_program *p, const input *in,
                       int size)
{
    const size_t bytes = wide_element(in->type);
    const int chunks = (N + CHUNK - 1) / CHUNK;
    double sum = NAN, again = NAN, segments[SEGMENTS];
    frgi_buffer x = {0}, partial = {0}, out = {0}, start = {0}, sums = {0};
    CHECK_OK(ctx, send(dev, in->x, N, element(in->type), &x));
    CHECK_OK(ctx, frgi_device_alloc(dev, (size_t)chunks * bytes, "partial sums", &partial));
    CHECK_OK(ctx, frgi_device_alloc(dev, bytes, "a sum", &out));
    CHECK_OK(ctx, frgi_device_alloc(dev, sizeof in->start, "starts", &start));
    CHECK_OK(ctx, frgi_device_alloc(dev, SEGMENTS * bytes, "sums", &sums));
    CHECK_OK(ctx, frgi_device_put(dev, start, in->start, sizeof in->start));
    for (int run = 0; run < 2; run++) {
        CHECK_OK(ctx, frgi_device_fill(dev, partial, 0xff, (size_t)chunks * bytes)); /* NaN */
        CHECK_OK(ctx, LAUNCH(dev, p, "sum_chunks", chunks, 1, size, BUFFER(partial), BUFFER(x),
                             INT64(N)));
        CHECK_OK(ctx, LAUNCH(dev, p, "sum_partials", 1, 1, size, BUFFER(out), BUFFER(partial),
                             INT64(chunks)));
        CHECK_OK(ctx, fetch(dev, run ? &again : &sum, 1, bytes, out));
    }
    check_sum(sum, in->x, 0, N, unit(bytes));
    CHECK_BITS(&again, &sum, sizeof sum);
    CHECK_OK(ctx, LAUNCH(dev, p, "sum_segments", SEGMENTS, 1, size, BUFFER(sums), BUFFER(x),
                         BUFFER(start)));
    CHECK_OK(ctx, fetch(dev, segments, SEGMENTS, bytes, sums));
    for (int s = 0; s < SEGMENTS; s++)
        check_sum(segments[s], in->x, in->start[s], in->start[s + 1], unit(bytes));
    frgi_buffer *const all[] = {&x, &partial, &out, &start, &sums};
    for (int i = 0; i < 5; i++)
        frgi_device_free(dev, all[i]);
}

/** Running sums of integers are exact: chunk totals, their running sums on the host, then all. */
static void check_scan(frg_context *ctx, frgi_device *dev, const frgi_program *p, const input *in,
                       int size)
{
    enum { CHUNKS = (N + CHUNK - 1) / CHUNK };
    static int64_t got[N];
    int64_t totals[CHUNKS] = {0}, before[CHUNKS] = {0}, want = 0;
    frgi_buffer x = {0}, out = {0}, chunks = {0};
    CHECK_OK(ctx, frgi_device_alloc(dev, sizeof in->counts, "counts", &x));
    CHECK_OK(ctx, frgi_device_alloc(dev, sizeof in->counts, "sums", &out));
    CHECK_OK(ctx, frgi_device_alloc(dev, sizeof totals, "totals", &chunks));
    CHECK_OK(ctx, frgi_device_put(dev, x, in->counts, sizeof in->counts));
    CHECK_OK(ctx,
             LAUNCH(dev, p, "count_chunks", CHUNKS, 1, size, BUFFER(chunks), BUFFER(x), INT64(N)));
    CHECK_OK(ctx, frgi_device_get(dev, totals, chunks, sizeof totals));
    CHECK_OK(ctx, frgi_device_wait(dev));
    for (int c = 1; c < CHUNKS; c++)
        before[c] = before[c - 1] + totals[c - 1];
    CHECK_OK(ctx, frgi_device_put(dev, chunks, before, sizeof before));
    CHECK_OK(ctx, LAUNCH(dev, p, "scan_chunks", CHUNKS, 1, size, BUFFER(out), BUFFER(x),
                         BUFFER(chunks), INT64(N)));
    CHECK_OK(ctx, frgi_device_get(dev, got, out, sizeof got));
    CHECK_OK(ctx, frgi_device_wait(dev));
    for (int i = 0; i < N; i++) {
        want += in->counts[i];
        CHECK_INT(got[i], want);
    }
    frgi_device_free(dev, &x);
    frgi_device_free(dev, &out);
    frgi_device_free(dev, &chunks);
}

/** Rows of a strided matrix into an order and side by side, then into another matrix of the same
 *  strides, whose other numbers stay. */
static void check_moved(frg_context *ctx, frgi_device *dev, const frgi_program *p, const input *in,
                        int size, bool ordered)
{
    enum {
        M = 1500,
        COUNT = 3,
        K = 4,
        ROW = 13,
        COLUMN = 2,
        AT = 5,
        MOVED = (M * K + CHUNK - 1) / CHUNK
    };
    static double got[N], want[N];
    int32_t order[1 + M] = {-1};
    frgi_buffer x = {0}, y = {0}, side = {0}, w = {0};
    const int64_t first = ordered ? 1 : -1;
    memcpy(want, in->y, sizeof want);
    for (int i = 0; i < M; i++)
        order[1 + i] = i * 7 % M;
    CHECK_OK(ctx, send(dev, in->x, N, element(in->type), &x));
    CHECK_OK(ctx, send(dev, in->y, N, element(in->type), &y));
    CHECK_OK(ctx, frgi_device_alloc(dev, M * K * wide_element(in->type), "rows", &side));
    CHECK_OK(ctx, frgi_device_alloc(dev, sizeof order, "order", &w));
    CHECK_OK(ctx, frgi_device_put(dev, w, order, sizeof order));
    CHECK_OK(ctx, LAUNCH(dev, p, "gather_rows", MOVED, 1, size, BUFFER(side), INT64(0), BUFFER(x),
                         INT64(AT), INT64(ROW), INT64(COLUMN), BUFFER(w), INT64(first), INT64(M),
                         INT32(K), INT32(COUNT)));
    CHECK_OK(ctx, fetch(dev, got, M * K, wide_element(in->type), side));
    for (int i = 0; i < M * K; i++) {
        const int row = ordered ? order[1 + i / K] : i / K, at = AT + row * ROW + i % K * COLUMN;
        CHECK_SAYS(got[i] == (i % K < COUNT ? in->x[at] : 0), "row %d: %.9g", i / K, got[i]);
        if (i % K < COUNT)
            want[at] = in->x[at];
    }
    CHECK_OK(ctx, LAUNCH(dev, p, "scatter_rows", MOVED, 1, size, BUFFER(y), INT64(AT), BUFFER(side),
                         INT64(0), INT64(ROW), INT64(COLUMN), BUFFER(w), INT64(first), INT64(M),
                         INT32(K), INT32(COUNT)));
    CHECK_OK(ctx, fetch(dev, got, N, element(in->type), y));
    CHECK_BITS(got, want, sizeof want);
    frgi_buffer *const all[] = {&x, &y, &side, &w};
    for (int i = 0; i < 4; i++)
        frgi_device_free(dev, all[i]);
}

TEST_UNUSED static void kernels(frg_context *ctx, frgi_device *dev, int size)
{
    static input in;
    for (int type = 0; type < FRGI_TYPES; type++) {
        const frgi_program *p, *same;
        if (type != FRGI_F32 && !frgi_device_is(dev)->f64)
            continue;
        draw(&in, (frgi_kernel_type)type);
        if (!CHECK_OK(ctx, frgi_device_load(dev, &frgi_kernels_basic, in.type, &p)))
            return;
        CHECK_OK(ctx, frgi_device_load(dev, &frgi_kernels_basic, in.type, &same));
        CHECK(p == same);
        check_axpy(ctx, dev, p, &in, size);
        check_sums(ctx, dev, p, &in, size);
        check_scan(ctx, dev, p, &in, size);
        check_moved(ctx, dev, p, &in, size, false);
        check_moved(ctx, dev, p, &in, size, true);
    }
}

/** Parts of one block: copied, filled, fetched behind an event; the counts are those of the calls. */
TEST_UNUSED static void arena(frg_context *ctx, frgi_device *dev, int size)
{
    enum { COUNT = 1000 };
    frgi_device_arena a = {.align = frgi_device_is(dev)->align};
    frgi_buffer head, x, y;
    float in[COUNT], *out = NULL;
    const size_t bytes = sizeof in;
    const frgi_program *p;
    frgi_event done;
    bool reached = false;
    for (int i = 0; i < COUNT; i++)
        in[i] = (float)i;
    for (int pass = 0; pass < 2; pass++) {
        head = frgi_device_take(&a, 3);
        x = frgi_device_take(&a, bytes);
        y = frgi_device_take(&a, bytes);
        if (pass == 0 && !CHECK_OK(ctx, frgi_device_arena_open(&a, dev, "arena")))
            return;
    }
    CHECK(head.offset == 0 && x.offset == a.align && y.offset >= x.offset + bytes);
    CHECK_OK(ctx, frgi_device_load(dev, &frgi_kernels_basic, FRGI_F32, &p));
    CHECK_OK(ctx, frgi_device_pin(dev, bytes, (void **)&out));
    const frgi_device_counts before = *frgi_device_counted(dev);
    CHECK_OK(ctx, frgi_device_fill(dev, head, 7, 3));
    CHECK_OK(ctx, frgi_device_put(dev, x, in, bytes));
    CHECK_OK(ctx, frgi_device_copy(dev, y, x, bytes));
    CHECK_OK(ctx, LAUNCH(dev, p, "axpy", 1, 1, size, BUFFER(y), BUFFER(x), REAL(2), INT64(COUNT)));
    CHECK_OK(ctx, frgi_device_get(dev, out, y, bytes));
    CHECK_OK(ctx, frgi_event_record(dev, &done));
    CHECK_OK(ctx, frgi_event_reached(dev, done, &reached));
    CHECK_OK(ctx, frgi_event_wait(dev, done));
    CHECK_OK(ctx, frgi_event_reached(dev, done, &reached));
    CHECK(reached);
    frgi_event_forget(dev, &done);
    for (int i = 0; i < COUNT; i++)
        CHECK(out[i] == 3 * in[i]);
    unsigned char three[3] = {0};
    CHECK_OK(ctx, frgi_device_get(dev, three, head, 3));
    CHECK_OK(ctx, frgi_device_wait(dev));
    CHECK(three[0] == 7 && three[1] == 7 && three[2] == 7);
    const frgi_device_counts *const now = frgi_device_counted(dev);
    CHECK_INT(now->launches - before.launches, 1);
    CHECK_INT(now->waits - before.waits, 2);
    CHECK_INT(now->copies - before.copies, 3);
    CHECK_INT(now->bytes_in - before.bytes_in, bytes);
    CHECK_INT(now->bytes_out - before.bytes_out, bytes + 3);
    frgi_device_unpin(dev, (void **)&out);
    frgi_device_arena_close(&a, dev);
}

/** A device opened, given work and closed, for sweeps of faults. */
TEST_UNUSED static frg_status whole_on(frg_context *ctx, frg_device which, const input *in,
                                       double out[4])
{
    frgi_device *dev = NULL;
    frgi_buffer x = {0}, y = {0};
    const frgi_program *p;
    frg_status status = frgi_device_open(&dev, ctx, which);
    if (status >= 0)
        status = frgi_device_load(dev, &frgi_kernels_basic, FRGI_F64, &p);
    if (status >= 0)
        status = send(dev, in->x, 4, 8, &x);
    if (status >= 0)
        status = send(dev, in->y, 4, 8, &y);
    if (status >= 0)
        status = LAUNCH(dev, p, "axpy", 1, 1, 1, BUFFER(y), BUFFER(x), REAL(2), INT64(4));
    if (status >= 0)
        status = fetch(dev, out, 4, 8, y);
    if (dev) {
        frgi_device_free(dev, &x);
        frgi_device_free(dev, &y);
    }
    frgi_device_close(&dev);
    return status;
}

#endif
