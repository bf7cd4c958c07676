/* test_device_cuda.c - the plug-in for CUDA on the stand-in driver: kernels as nvcc's PTX names them,
 * late and in random order; every call of the driver failing once; a device lost; less memory;
 * NVRTC on every text. */
#include "cuda_driver.h"
#include "device/cuda/cuda_nvrtc.h"
#include "driver_bodies.h"
#include "fourge/gp.h"

/** NVRTC makes PTX of every text of every room, with all kernels in it.  It runs before the stand-in
 *  is loaded: NVRTC asks a driver that is there for more than the plug-in does. */
static void nvrtc(void)
{
    static const char *const types[FRGI_TYPES] = {"f32", "f64", "mixed"};
    if (DEVICES_SANITIZED || !dlopen(NVRTC, RTLD_NOW | RTLD_LOCAL)) {
        test_skip(DEVICES_SANITIZED ? "NVRTC is not run under a sanitizer"
                                    : "NVRTC is not installed");
        return;
    }
    const frg_allocator *const memory = frg_system_allocator();
    for (const frgi_kernels *const *k = frgi_kernels_all; *k; k++)
        for (int type = 0; type < FRGI_TYPES; type++) {
            frgi_device_error e = {""};
            char *ptx, entry[2 * FRGI_NAME_BYTES];
            size_t bytes;
            const frg_status status =
                cuda_nvrtc(memory, *k, (frgi_kernel_type)type, 90, &ptx, &bytes, &e);
            if (!CHECK_SAYS(status == FRG_OK, "%s %s: %s", (*k)->room, types[type], e.text))
                continue;
            for (int i = 0; i < (*k)->count; i++) {
                snprintf(entry, sizeof entry, ".entry %s_%s_%s(", (*k)->room, (*k)->kernels[i].name,
                         types[type]);
                CHECK_SAYS(strstr(ptx, entry), "there is no %s", entry);
            }
            CHECK_SAYS(type != FRGI_F32 || !strstr(ptx, ".f64"), "%s f32 has doubles", (*k)->room);
            memory->free(ptx, bytes, memory->user);
        }
}

static void kernels_by_ptx(void)
{
    if (!with_driver())
        return;
    on_driver(kernels, 64);
    CHECK(driver->texts == FRGI_TYPES && driver->cubins == 0);
    CHECK(driver->launches > 0 && driver->bytes_in > 0);
}

/** On a GPU that nvcc made a cubin for that is taken. */
static void kernels_by_cubin(void)
{
    static const int majors[] = {8, 9};
    for (int i = 0; i < 2 && with_driver(); i++) {
        driver->major = majors[i];
        on_driver(kernels, 256);
        CHECK(driver->cubins == FRGI_TYPES && driver->texts == 0);
    }
}

/** A kernel that is given an address past its block is a lost device, not a wrong number. */
static void stray_address(void)
{
    frgi_device *dev;
    frgi_buffer x = {0};
    char byte;
    if (!with_driver())
        return;
    frg_context *ctx = test_context();
    CHECK_OK(ctx, frgi_device_open(&dev, ctx, cuda));
    CHECK_OK(ctx, frgi_device_alloc(dev, 100, "x", &x));
    const frgi_buffer beyond = {x.handle, 100, 1};
    CHECK_OK(ctx, frgi_device_get(dev, &byte, beyond, 1));
    CHECK_STATUS(frgi_device_wait(dev), FRG_NO_DEVICE);
    CHECK(driver->complaint[0]);
    driver->complaint[0] = '\0';
    frgi_device_free(dev, &x);
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
    check_clean("a stray address");
}

/** The caller's stream is the queue, and it is the caller's afterwards. */
static void callers_stream(void)
{
    frg_context_opts o;
    frg_context *ctx;
    frg_gp *gp;
    static char stream[1];
    double x[2] = {1, 2};
    const frg_array m = frg_matrix(x, FRG_F64, 2, 1, 1);
    if (!with_driver())
        return;
    frg_context_defaults(&o, sizeof o);
    o.device = cuda;
    o.stream = stream;
    if (!CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK))
        return;
    CHECK_INT(driver->objects, 1); /* the primary context, and no stream */
    CHECK_STATUS(frg_gp_create(&gp, ctx, m, m, "rbf", NULL), FRG_UNSUPPORTED);
    CHECK(strstr(frg_message(ctx), "does not run on cuda:0"));
    frg_context_destroy(ctx);
    check_clean("the caller's stream");
}

/** Memory of another GPU, and of the host, is told from its own. */
static void other_memory(void)
{
    caller c;
    float here[4] = {0};
    frgi_buffer b;
    if (!with_driver() || !caller_open(&c, cuda))
        return;
    frg_context *ctx = caller_context(&c);
    void *const array = caller_array(&c, NULL, sizeof here);
    frg_array x = caller_vector(&c, array, FRG_F32, 4);
    driver->ordinal = 1;
    CHECK_STATUS(frgi_device_adopt(frgi_device_of(ctx), &x, "cost", &b), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "cost: cuda:0: ") &&
          strstr(frg_message(ctx), "is in memory of device 1"));
    driver->ordinal = 0;
    x.data = here;
    CHECK_STATUS(frgi_device_adopt(frgi_device_of(ctx), &x, "cost", &b), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "is in no memory of a device"));
    x.data = array;
    CHECK_OK(ctx, frgi_device_adopt(frgi_device_of(ctx), &x, "cost", &b));
    frgi_device_disown(frgi_device_of(ctx), &b);
    frg_context_destroy(ctx);
    caller_free(&c, array);
    caller_close(&c);
    check_clean("other memory");
}

static frg_status transport_body(frg_context *ctx, void *user, uint64_t *hash)
{
    const frg_array *const cost = user;
    frgi_device *dev = NULL;
    frg_sinkhorn *s = NULL;
    frg_sinkhorn_opts o;
    double plan[SMALL];
    frg_sinkhorn_defaults(&o, sizeof o);
    o.max_iter = 2;
    frg_status status = frgi_device_open(&dev, ctx, cuda);
    if (status >= 0)
        status =
            frgi_sinkhorn_open(&s, ctx, (frgi_sinkhorn_place){.dev = dev}, *cost, NULL, NULL, &o);
    if (status >= 0)
        status = frg_sinkhorn_run(s, NULL);
    if (status >= 0)
        status = frg_plan_rows(frg_sinkhorn_plan(s), 0, SMALL_ROWS,
                               frg_matrix(plan, FRG_F64, SMALL_ROWS, SMALL_COLUMNS, SMALL_COLUMNS));
    if (status >= 0)
        fault_hash(hash, plan, sizeof plan);
    frg_sinkhorn_destroy(s);
    frgi_device_close(&dev);
    return status >= 0 ? FRG_OK : status;
}

/** Memory refused, block by block, with costs that lie on the device. */
static void faults_of_transport(void)
{
    double costs[SMALL];
    caller c;
    for (int e = 0; e < SMALL; e++)
        costs[e] = e * 5 % 13;
    if (!with_driver() || !caller_open(&c, cuda))
        return;
    void *const array = caller_array(&c, costs, sizeof costs);
    caller_wait(&c);
    frg_array cost = caller_matrix(&c, array, FRG_F64, SMALL_ROWS, SMALL_COLUMNS);
    CHECK(fault_sweep("transport in place", transport_body, &cost, 1) > 10);
    caller_free(&c, array);
    caller_close(&c);
    check_clean("memory refused to transport in place");
}

static frg_status opening_body(frg_context *ctx, void *user, uint64_t *hash)
{
    const align_arrays *const sides = user;
    frg_gw_opts o = few_steps(FRG_GW_SAMPLED);
    frgi_device *dev = NULL;
    frg_gw *s = NULL;
    float row[SIDE_X];
    o.linear_weight = 0.25;
    frg_status status = frgi_device_open(&dev, ctx, cuda);
    if (status >= 0)
        status = open_alignment(&s, ctx, (frgi_gw_place){.dev = dev}, sides, &o);
    if (status >= 0)
        status = frgi_distances_rows(&s->x, &(int32_t){7}, 1, row, SIDE_X);
    if (status >= 0)
        fault_hash(hash, row, sizeof row);
    frg_gw_destroy(s);
    frgi_device_close(&dev);
    return status;
}

/** The same with distances and a linear cost that lie on the device, while an alignment is made. */
static void faults_of_opening(void)
{
    caller c;
    if (!with_driver() || !caller_open(&c, cuda))
        return;
    draw_alignment();
    align_arrays s = sides_here(false);
    s.fused = true;
    move_sides(&c, &s);
    CHECK(fault_sweep("an alignment in place", opening_body, &s, 1) > 20);
    free_sides(&c, &s);
    caller_close(&c);
    check_clean("memory refused to an alignment in place");
}

static void listed(void)
{
    frg_device_info info;
    if (!with_driver())
        return;
    CHECK_INT(frg_device_count(FRG_CUDA), 1);
    CHECK_STATUS(frg_device_get(cuda, &info), FRG_OK);
    CHECK_TEXT(info.name, "stand-in");
    CHECK_TEXT(info.driver, "CUDA 13.0");
    CHECK(info.f64 && info.memory == (int64_t)driver->memory);
    driver->calls = 0;
    driver->fail_at = 1;
    driver->fail_with = 100;
    CHECK_STATUS(frg_device_get(cuda, &info), FRG_NO_DEVICE);
    CHECK(strstr(info.reason, "cuInit"));
}

static const test_case cases[] = {
    {"nvrtc", nvrtc},
    {"kernels_by_ptx", kernels_by_ptx},
    {"kernels_by_cubin", kernels_by_cubin},
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
    {"other_memory", other_memory},
    {"less_memory", less_memory},
    {"stray_address", stray_address},
    {"faults", faults},
    {"faults_of_transport", faults_of_transport},
    {"faults_of_opening", faults_of_opening},
    {"callers_stream", callers_stream},
    {"listed", listed},
};
TEST_MAIN(cases)
