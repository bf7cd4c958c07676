/* host_alone.h - what runs on the host alone refuses a context for another device, by name. */
#ifndef FRGI_HOST_ALONE_H
#define FRGI_HOST_ALONE_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** E_DEVICE_STEP unless the context (which may be NULL) is for the cpu: "WHAT does not run on
 *  opencl:0". */
FRG_MUST_USE frg_status frgi_host_alone(frg_context *ctx, const char *what);

#pragma GCC visibility pop
#endif
