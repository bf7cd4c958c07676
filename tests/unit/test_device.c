/* test_device.c - the machine under the rooms: kernels of every type on the host and on OpenCL, the
 * arena, events, refusals of what does not fit, plug-ins that are not ours. */
#include "caller_bodies.h"
#include "device/device_plugin.h"
#include "device_bodies.h"
#include "fault.h"
#include "fourge/fe.h"
#include "fourge/gp.h"
#include "fourge/gw.h"
#include "fourge/soap.h"

static void kernels_host(void)
{
    on_host(kernels);
}

static void kernels_opencl(void)
{
    on_opencl(kernels);
}

/** On a real GPU, where there is one: `tools/gpu-check.sh parity`. */
static void kernels_cuda(void)
{
    on_first(FRG_CUDA, kernels);
}

static void arena_cuda(void)
{
    on_first(FRG_CUDA, arena);
}

/** The kernels of all rooms compile for a device without double precision, and no others do. */
static void without_f64(void)
{
    setenv("FOURGE_OPENCL_F64", "0", 1);
    frg_context *ctx = test_context();
    frgi_device *dev = open_opencl(ctx);
    if (dev) {
        const frgi_program *p;
        CHECK(!frgi_device_is(dev)->f64);
        CHECK_STATUS(frgi_device_load(dev, &frgi_kernels_basic, FRGI_F64, &p), FRG_UNSUPPORTED);
        CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-010");
        CHECK_STATUS(frgi_device_load(dev, &frgi_kernels_basic, FRGI_MIXED, &p), FRG_UNSUPPORTED);
        for (const frgi_kernels *const *k = frgi_kernels_all; *k; k++)
            CHECK_OK(ctx, frgi_device_load(dev, *k, FRGI_F32, &p));
        kernels(ctx, dev, 64);
        frgi_device_close(&dev);
    }
    frg_context_destroy(ctx);
    setenv("FOURGE_OPENCL_F64", "", 1);
}

static void arena_host(void)
{
    on_host(arena);
}

static void arena_opencl(void)
{
    on_opencl(arena);
}

static void misuse(frg_context *ctx, frgi_device *dev, int size)
{
    const frgi_program *p;
    const frgi_buffer none = {0};
    frgi_buffer b;
    CHECK_OK(ctx, frgi_device_load(dev, &frgi_kernels_basic, FRGI_F32, &p));
    CHECK_STATUS(LAUNCH(dev, p, "no_such", 1, 1, size, INT64(1)), FRG_BUG);
    CHECK_STATUS(LAUNCH(dev, p, "axpy", 1, 1, size, BUFFER(none), BUFFER(none), REAL(1)), FRG_BUG);
    CHECK_STATUS(LAUNCH(dev, p, "axpy", 1, 1, size, BUFFER(none), BUFFER(none), WIDE(1), INT64(0)),
                 FRG_BUG);
    CHECK_STATUS(LAUNCH(dev, p, "axpy", 1, 1, 3, BUFFER(none), BUFFER(none), REAL(1), INT64(0)),
                 FRG_BUG);
    CHECK_OK(ctx, LAUNCH(dev, p, "axpy", 0, 1, 4, BUFFER(none), BUFFER(none), REAL(1), INT64(0)));
    CHECK_OK(ctx, frgi_device_alloc(dev, 0, "nothing", &b));
    CHECK(b.handle == NULL && b.bytes == 0);
    frgi_device_free(dev, &b);
    CHECK_STATUS(frgi_device_alloc(dev, SIZE_MAX / 2, "all", &b), FRG_NO_MEMORY);
}

static void misuse_host(void)
{
    on_host(misuse);
}

static void misuse_opencl(void)
{
    on_opencl(misuse);
}

/** The limit of the context holds for the device's blocks too. */
static void memory_limit(void)
{
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.memory_limit = 1 << 20;
    frg_context *ctx;
    frgi_device *dev = NULL;
    frgi_buffer a = {0}, b = {0};
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    CHECK_OK(ctx, frgi_device_open(&dev, ctx, (frg_device){FRG_CPU, 0}));
    CHECK_OK(ctx, frgi_device_alloc(dev, 600000, "a", &a));
    CHECK_STATUS(frgi_device_alloc(dev, 600000, "b", &b), FRG_NO_MEMORY);
    frgi_device_free(dev, &a);
    CHECK_OK(ctx, frgi_device_alloc(dev, 600000, "b", &b));
    frgi_device_free(dev, &b);
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
}

static frg_status whole(frg_context *ctx, void *user, uint64_t *hash)
{
    double out[4];
    TRY(whole_on(ctx, (frg_device){FRG_CPU, 0}, user, out));
    fault_hash(hash, out, sizeof out);
    return FRG_OK;
}

static void faults(void)
{
    static input in;
    draw(&in, FRGI_F64);
    CHECK(fault_sweep("a device of the host", whole, &in, 1) > 4);
}

static frg_status whole_opencl(frg_context *ctx, void *user, uint64_t *hash)
{
    double out[4];
    TRY(whole_on(ctx, (frg_device){FRG_OPENCL, 0}, user, out));
    fault_hash(hash, out, sizeof out);
    return FRG_OK;
}

/** The plug-in's own memory refused, block by block. */
static void faults_opencl(void)
{
    static input in;
    frg_context *ctx = test_context();
    frgi_device *dev = open_opencl(ctx);
    const bool there = dev && frgi_device_is(dev)->f64;
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
    if (!there)
        return;
    draw(&in, FRGI_F64);
    CHECK(fault_sweep("a device of OpenCL", whole_opencl, &in, 1) > 4);
}

/** Tables of other releases are refused, and the reason says what to do. */
static void other_plugins(void)
{
    frgi_device_ops other = frgi_host_device;
    frgi_device_error e = {""};
    other.library = frg_version();
    CHECK(frgi_plugin_fits(&other, &e));
    other.abi++;
    CHECK(!frgi_plugin_fits(&other, &e) && strstr(e.text, "install both from one release"));
    other.abi--;
    other.bytes -= 8;
    CHECK(!frgi_plugin_fits(&other, &e));
    other.bytes += 8;
    other.library = "0.0.9";
    CHECK(!frgi_plugin_fits(&other, &e) && strstr(e.text, "0.0.9"));
}

/** A file that is no plug-in, in a folder of FOURGE_PLUGINS, is said and not passed over. */
static void broken_plugin(void)
{
    char folder[] = "/tmp/fourge-plugins-XXXXXX", path[64], command[96];
    frg_device_info info;
    if (!CHECK(mkdtemp(folder)))
        return;
    snprintf(path, sizeof path, "%s/libfourge_cuda.so", folder);
    FILE *const f = fopen(path, "w");
    if (CHECK(f)) {
        fputs("no library", f);
        fclose(f);
    }
    snprintf(command, sizeof command, "/none:%s", folder);
    setenv("FOURGE_PLUGINS", command, 1);
    CHECK_STATUS(frg_device_get((frg_device){FRG_CUDA, 0}, &info), FRG_NO_DEVICE);
    CHECK(!info.there && strstr(info.reason, path));
    CHECK_INT(frg_device_count(FRG_CUDA), 0);
    setenv("FOURGE_PLUGINS", "", 1);
    remove(path);
    remove(folder);
}

static void devices_listed(void)
{
    frg_device_info info;
    CHECK_STATUS(frg_device_get((frg_device){FRG_CPU, 0}, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_device_get((frg_device){FRG_CPU, 0}, &info), FRG_OK);
    CHECK(info.there && info.memory > 0 && info.f64 && info.reason[0] == '\0');
    CHECK_INT(frg_device_count(FRG_CPU), 1);
    CHECK_STATUS(frg_device_get((frg_device){FRG_CPU, 1}, &info), FRG_NO_DEVICE);
    CHECK(!info.there && info.reason[0]);
    CHECK_STATUS(frg_device_get((frg_device){(frg_device_kind)9, 0}, &info), FRG_NO_DEVICE);
    CHECK_INT(frg_device_count((frg_device_kind)9), 0);
    if (frg_device_count(FRG_OPENCL) > 0) {
        CHECK_STATUS(frg_device_get((frg_device){FRG_OPENCL, 0}, &info), FRG_OK);
        CHECK(info.name[0] && info.driver[0] && info.memory > 0);
    }
}

/** FOURGE_DEVICE is the default; what names no device is refused, never taken for the cpu. */
static void environment(void)
{
    frg_context_opts o;
    frg_context *ctx;
    setenv("FOURGE_DEVICE", "opencl:7", 1);
    frg_context_defaults(&o, sizeof o);
    CHECK(o.device.kind == FRG_OPENCL && o.device.index == 7);
    CHECK_STATUS(frg_context_create(&ctx, NULL), FRG_NO_DEVICE);
    o.device = (frg_device){FRG_CPU, 0};
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    frg_context_destroy(ctx);
    setenv("FOURGE_DEVICE", "gpu", 1);
    CHECK_STATUS(frg_context_create(&ctx, NULL), FRG_NO_DEVICE);
    CHECK(ctx == NULL);
    setenv("FOURGE_DEVICE", "", 1);
    CHECK_STATUS(frg_context_create(&ctx, NULL), FRG_OK);
    frg_context_destroy(ctx);
}

/** What does not run on the context's device says so by name. */
static void refused_by_name(void)
{
    frg_context *ctx = test_context();
    frgi_device *dev = open_opencl(ctx);
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
    if (test_now.skipped)
        return;
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.device.kind = FRG_OPENCL;
    double x[4] = {1, 2, 3, 4};
    const frg_array m = frg_matrix(x, FRG_F64, 2, 2, 2);
    frg_gp *gp;
    frg_soap *soap;
    if (!CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK))
        return;
    CHECK_STATUS(frg_gp_create(&gp, ctx, m, m, "rbf", NULL), FRG_UNSUPPORTED);
    CHECK(gp == NULL && strstr(frg_message(ctx), "a Gaussian process does not run on opencl:0"));
    CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-013");
    CHECK_STATUS(frg_soap_create(&soap, ctx, NULL), FRG_UNSUPPORTED);
    CHECK(soap == NULL && strstr(frg_message(ctx), "SOAP"));
    frg_context_destroy(ctx);
}

/** The cpu has no streams. */
static void stream_of_the_cpu(void)
{
    frg_context_opts o;
    frg_context *ctx;
    frg_context_defaults(&o, sizeof o);
    o.stream = &o;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_UNSUPPORTED);
    ctx = test_context();
    CHECK_OK(ctx, frg_context_set_stream(ctx, NULL));
    CHECK_STATUS(frg_context_set_stream(ctx, &o), FRG_UNSUPPORTED);
    CHECK_STATUS(frg_context_set_stream(NULL, NULL), FRG_BAD_ARG);
    frg_context_destroy(ctx);
}

static void in_place_host(void)
{
    in_place_on((frg_device){FRG_CPU, 0});
}

static void in_place_opencl(void)
{
    frg_context *ctx = test_context();
    frgi_device *dev = open_opencl(ctx);
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
    if (!test_now.skipped)
        in_place_on((frg_device){kind_asked(), 0});
}

static const test_case cases[] = {
    {"kernels_host", kernels_host},
    {"kernels_opencl", kernels_opencl},
    {"kernels_cuda", kernels_cuda},
    {"arena_cuda", arena_cuda},
    {"without_f64", without_f64},
    {"arena_host", arena_host},
    {"arena_opencl", arena_opencl},
    {"misuse_host", misuse_host},
    {"misuse_opencl", misuse_opencl},
    {"memory_limit", memory_limit},
    {"faults", faults},
    {"faults_opencl", faults_opencl},
    {"other_plugins", other_plugins},
    {"broken_plugin", broken_plugin},
    {"devices_listed", devices_listed},
    {"environment", environment},
    {"refused_by_name", refused_by_name},
    {"stream_of_the_cpu", stream_of_the_cpu},
    {"in_place_host", in_place_host},
    {"in_place_opencl", in_place_opencl},
};
TEST_MAIN(cases)
