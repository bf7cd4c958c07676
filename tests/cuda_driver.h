/* cuda_driver.h - tests on the stand-in for CUDA's driver. */
#ifndef FOURGE_CUDA_DRIVER_H
#define FOURGE_CUDA_DRIVER_H

#include "driver.h"

static const frg_device cuda = {FRG_CUDA, 0};

/** The stand-in, new; false with the case skipped where the build has none. */
static bool with_driver(void)
{
    if (!HAVE_NVCC) {
        test_skip("CUDA not compiled: no nvcc");
        return false;
    }
    driven = cuda;
    driver_errors[0] = 999;
    driver_errors[1] = 2;
    return open_driver(STANDINS "/libcuda.so.1", "standin_cuda");
}

#endif
