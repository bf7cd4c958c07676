/* cuda_nvrtc.h - PTX from a kernel text on the user's machine. */
#ifndef CUDA_NVRTC_H
#define CUDA_NVRTC_H

#include "device/device.h"

#pragma GCC visibility push(hidden)

/** PTX of a program for compute capability `arch` (80 is 8.0), NUL-terminated, of `*bytes` bytes of
 *  the allocator's.  FRG_NO_DEVICE where NVRTC is not there, FRG_BROKE_DOWN with its log. */
FRG_MUST_USE frg_status cuda_nvrtc(const frg_allocator *memory, const frgi_kernels *k,
                                   frgi_kernel_type type, int arch, char **ptx, size_t *bytes,
                                   frgi_device_error *e);

#pragma GCC visibility pop
#endif
