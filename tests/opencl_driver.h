/* opencl_driver.h - tests on the stand-in for OpenCL's loader, in programs that open no other. */
#ifndef FOURGE_OPENCL_DRIVER_H
#define FOURGE_OPENCL_DRIVER_H

#include "driver.h"

static const frg_device opencl = {FRG_OPENCL, 0};

/** The stand-in, new; false with the case skipped where the build has none. */
static bool with_driver(void)
{
    driven = opencl;
    driver_errors[0] = -9999;
    driver_errors[1] = -5; /* CL_OUT_OF_RESOURCES */
    return open_driver(STANDINS "/libOpenCL.so.1", "standin_opencl");
}

#endif
