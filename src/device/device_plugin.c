/* device_plugin.c - plug-ins found and checked: in the folders of FOURGE_PLUGINS, beside the
 * library, or linked in.
 *
 * A plug-in is opened by its whole path alone, so that none is taken from where a program is
 * run. */
#include "device/device_plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/context.h"

enum { PATH_BYTES = 4096 };

#if FOURGE_LINKED_PLUGINS
extern const frgi_device_ops frgi_opencl_device, frgi_cuda_device;
#endif

static const struct {
    const char *name, *file;
    const frgi_device_ops *linked;
} kinds[] = {
    [FRG_CPU] = {"cpu", NULL, &frgi_host_device},
#if FOURGE_LINKED_PLUGINS
    [FRG_CUDA] = {"cuda", NULL, &frgi_cuda_device},
    [FRG_OPENCL] = {"opencl", NULL, &frgi_opencl_device},
#else
    [FRG_CUDA] = {"cuda", "libfourge_cuda.so", NULL},
    [FRG_OPENCL] = {"opencl", "libfourge_opencl.so", NULL},
#endif
};
enum { KINDS = sizeof kinds / sizeof *kinds };

void frgi_plugin_name(frg_device which, char *out, size_t bytes)
{
    const bool known = (unsigned)which.kind < KINDS;
    snprintf(out, bytes, "%s:%d", known ? kinds[which.kind].name : "?", which.index);
}

bool frgi_plugin_fits(const frgi_device_ops *ops, frgi_device_error *e)
{
    if (ops->abi != FRGI_DEVICE_ABI || ops->bytes != sizeof *ops) {
        snprintf(
            e->text, sizeof e->text,
            "the plug-in has the interface %u with %u bytes, this library %d with %zu: install "
            "both from one release",
            ops->abi, ops->bytes, FRGI_DEVICE_ABI, sizeof *ops);
        return false;
    }
    if (strcmp(ops->library, frg_version()) != 0) {
        snprintf(e->text, sizeof e->text,
                 "the plug-in is of fourge %s, this library of %s: install both from one release",
                 ops->library, frg_version());
        return false;
    }
    return true;
}

/** Folder of the library that this function is in, of a program's own file by the kernel's name of
 *  it. */
static bool own_folder(char folder[PATH_BYTES])
{
    Dl_info self;
    if (dladdr((const void *)(uintptr_t)own_folder, &self) && self.dli_fname &&
        self.dli_fname[0] == '/') {
        snprintf(folder, PATH_BYTES, "%s", self.dli_fname);
    } else {
        const ssize_t n = readlink("/proc/self/exe", folder, PATH_BYTES - 1);
        if (n <= 0) {
            return false;
        }
        folder[n] = '\0';
    }
    char *const slash = strrchr(folder, '/');
    if (!slash) {
        return false;
    }
    *slash = '\0';
    return true;
}

/** The plug-in `file` of a folder; FRG_NO_DEVICE with e->text "" where the folder has none. */
static frg_status open_in(const char *folder, size_t length, const char *file,
                          const frgi_device_ops **out, frgi_device_error *e)
{
    char path[PATH_BYTES];
    const int n = snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, file);
    if (length == 0 || n < 0 || n >= PATH_BYTES || access(path, F_OK) != 0) {
        return FRG_NO_DEVICE;
    }
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const frgi_device_ops *const ops = library ? dlsym(library, FRGI_DEVICE_SYMBOL) : NULL;
    if (!ops) {
        const char *const why = dlerror();
        snprintf(e->text, sizeof e->text, "the plug-in cannot be loaded: %.400s", why ? why : path);
        return FRG_NO_DEVICE;
    }
    if (!frgi_plugin_fits(ops, e)) {
        return FRG_NO_DEVICE;
    }
    *out = ops;
    return FRG_OK;
}

/** The first of the folders of a list, "a:b", that has the file. */
static frg_status search_list(const char *list, const char *file, const frgi_device_ops **out,
                              frgi_device_error *e)
{
    for (const char *at = list; at;) {
        const size_t length = strcspn(at, ":");
        if (open_in(at, length, file, out, e) == FRG_OK) {
            return FRG_OK;
        }
        if (e->text[0]) {
            break;
        }
        at = at[length] ? at + length + 1 : NULL;
    }
    return FRG_NO_DEVICE;
}

frg_status frgi_plugin_find(frg_device_kind kind, const frgi_device_ops **out, frgi_device_error *e)
{
    if ((unsigned)kind >= KINDS) {
        snprintf(e->text, sizeof e->text, "this is no kind of device: cpu, cuda[:i], opencl[:i]");
        return FRG_NO_DEVICE;
    }
    if (kinds[kind].linked) {
        *out = kinds[kind].linked;
        return FRG_OK;
    }
    char folder[PATH_BYTES] = "", installed[PATH_BYTES + sizeof FOURGE_PLUGIN_FOLDER];
    const char *const file = kinds[kind].file;
    if (search_list(frgi_plugin_folders(), file, out, e) == FRG_OK) {
        return FRG_OK;
    }
    if (!e->text[0] && own_folder(folder)) {
        snprintf(installed, sizeof installed, "%s/%s", folder, FOURGE_PLUGIN_FOLDER);
        if (open_in(folder, strlen(folder), file, out, e) == FRG_OK ||
            (!e->text[0] && open_in(installed, strlen(installed), file, out, e) == FRG_OK)) {
            return FRG_OK;
        }
    }
    if (!e->text[0]) {
        snprintf(e->text, sizeof e->text,
                 "the plug-in %s is neither in %.300s nor in a folder of FOURGE_PLUGINS", file,
                 folder);
    }
    return FRG_NO_DEVICE;
}

/* ---- what is public of devices --------------------------------------------------------------- */

static frgi_device_setup plain_setup(void)
{
    return (frgi_device_setup){
        .memory = *frg_system_allocator(), .threads = 1, .hide_f64 = frgi_hides_f64()};
}

int frg_device_count(frg_device_kind kind)
{
    const frgi_device_setup setup = plain_setup();
    const frgi_device_ops *ops;
    frgi_device_error e = {""};
    int count = 0;
    return frgi_plugin_find(kind, &ops, &e) < 0 || ops->machine.count(&setup, &count, &e) < 0
               ? 0
               : count;
}

static frg_status get_properties(frg_device which, frgi_device_properties *out,
                                 frgi_device_error *e)
{
    const frgi_device_setup setup = plain_setup();
    const frgi_device_ops *ops;
    int count;
    TRY(frgi_plugin_find(which.kind, &ops, e));
    TRY(ops->machine.count(&setup, &count, e));
    if (which.index < 0 || which.index >= count) {
        snprintf(e->text, sizeof e->text, "number %d, and the driver has %d of this kind, from 0",
                 which.index, count);
        return FRG_NO_DEVICE;
    }
    return ops->machine.properties(&setup, which.index, out, e);
}

frg_status frg_device_get(frg_device which, frg_device_info *out)
{
    if (!out) {
        return FRG_BAD_ARG;
    }
    frgi_device_properties is = {.name = ""};
    frgi_device_error e = {""};
    const frg_status status = get_properties(which, &is, &e);
    *out = (frg_device_info){.there = status == FRG_OK};
    snprintf(out->reason, sizeof out->reason, "%.*s", (int)sizeof out->reason - 1, e.text);
    if (status < 0) {
        return FRG_NO_DEVICE;
    }
    memcpy(out->name, is.name, sizeof out->name);
    memcpy(out->driver, is.driver, sizeof out->driver);
    out->memory = (int64_t)is.memory;
    out->f64 = is.f64;
    return FRG_OK;
}
