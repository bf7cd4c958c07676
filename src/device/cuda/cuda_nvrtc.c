/* cuda_nvrtc.c - PTX by NVRTC, which is opened where it is installed; it needs no GPU. */
#include "cuda_nvrtc.h"
#include "cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static frg_status load_api(nvrtc_api *api, frgi_device_error *e)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                        "libnvrtc.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    }
    bool whole = library;
    void *found;
#define FIND(name, arguments)                                                                      \
    found = library ? dlsym(library, #name) : NULL;                                                \
    whole = whole && found;                                                                        \
    memcpy(&api->name, &found, sizeof found);
    NVRTC_CALLS(FIND)
#undef FIND
    if (!whole) {
        snprintf(e->text, sizeof e->text,
                 "the plug-in has no kernels for this GPU, and NVRTC (libnvrtc.so), which would "
                 "make them, is not installed");
        return FRG_NO_DEVICE;
    }
    return FRG_OK;
}

/** prelude, dialect, names and text one after the other; NULL: no memory. */
static char *whole_text(const frg_allocator *memory, const frgi_kernels *k, frgi_kernel_type type,
                        size_t *bytes)
{
    const char *const texts[] = {k->prelude[type], k->dialect, k->names[type], k->text};
    size_t at = 0;
    *bytes = 1;
    for (int i = 0; i < 4; i++) {
        *bytes += strlen(texts[i]);
    }
    char *const all = memory->alloc(*bytes, memory->user);
    for (int i = 0; i < 4 && all; i++) {
        const size_t length = strlen(texts[i]);
        memcpy(all + at, texts[i], length);
        at += length;
    }
    if (all) {
        all[at] = '\0';
    }
    return all;
}

static frg_status no_memory(frgi_device_error *e)
{
    snprintf(e->text, sizeof e->text, "no memory for compiling kernels");
    return FRG_NO_MEMORY;
}

static frg_status tell_log(const nvrtc_api *api, cuda_object program, const frg_allocator *memory,
                           const char *room, frgi_device_error *e)
{
    size_t bytes = 0;
    api->nvrtcGetProgramLogSize(program, &bytes);
    char *const log = bytes ? memory->alloc(bytes, memory->user) : NULL;
    const bool there = log && api->nvrtcGetProgramLog(program, log) == 0;
    snprintf(e->text, sizeof e->text, "NVRTC does not compile the kernels of %s: %.400s", room,
             there ? log : "");
    if (log) {
        memory->free(log, bytes, memory->user);
    }
    return FRG_BROKE_DOWN;
}

static frg_status compile(const nvrtc_api *api, cuda_object program, const frg_allocator *memory,
                          const char *room, int arch, char **ptx, size_t *bytes,
                          frgi_device_error *e)
{
    char option[64];
    snprintf(option, sizeof option, "--gpu-architecture=compute_%d", arch);
    if (api->nvrtcCompileProgram(program, 1, (const char *const[]){option}) ||
        api->nvrtcGetPTXSize(program, bytes)) {
        return tell_log(api, program, memory, room, e);
    }
    char *const out = memory->alloc(*bytes, memory->user);
    if (!out) {
        return no_memory(e);
    }
    if (api->nvrtcGetPTX(program, out)) {
        memory->free(out, *bytes, memory->user);
        return tell_log(api, program, memory, room, e);
    }
    *ptx = out;
    return FRG_OK;
}

frg_status cuda_nvrtc(const frg_allocator *memory, const frgi_kernels *k, frgi_kernel_type type,
                      int arch, char **ptx, size_t *bytes, frgi_device_error *e)
{
    nvrtc_api api;
    cuda_object program = NULL;
    size_t text_bytes;
    TRY(load_api(&api, e));
    char *const text = whole_text(memory, k, type, &text_bytes);
    if (!text) {
        return no_memory(e);
    }
    frg_status status = FRG_BROKE_DOWN;
    if (api.nvrtcCreateProgram(&program, text, k->room, 0, NULL, NULL)) {
        snprintf(e->text, sizeof e->text, "NVRTC cannot be used");
    } else {
        status = compile(&api, program, memory, k->room, arch, ptx, bytes, e);
        api.nvrtcDestroyProgram(&program);
    }
    memory->free(text, text_bytes, memory->user);
    return status;
}
