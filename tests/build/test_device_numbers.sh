#!/bin/sh
# The numbers and types of OpenCL and CUDA that the plug-ins are built with are those of the makers' headers, where these are
# installed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)

# same FILE OURS THEIRS: a line that compiles if the two are equal.
same() {
    echo "_Static_assert((long long)($2) == (long long)($3), \"$3\");" >>"$scratch/$1.c"
}
compiles() {
    ${CC:-cc} -std=c11 -fsyntax-only -DCL_TARGET_OPENCL_VERSION=120 -I"$root/src" -I"$root/include" -I"$2" "$scratch/$1.c"
}

printf '#include <CL/cl.h>\n#include "device/opencl/opencl_api.h"\n' >"$scratch/opencl.c"
while read -r ours theirs; do
    same opencl "$ours" "$theirs"
done <<'END'
OPENCL_OUT_OF_MEMORY CL_MEM_OBJECT_ALLOCATION_FAILURE
OPENCL_OUT_OF_RESOURCES CL_OUT_OF_RESOURCES
OPENCL_OUT_OF_HOST_MEMORY CL_OUT_OF_HOST_MEMORY
OPENCL_BUILD_FAILURE CL_BUILD_PROGRAM_FAILURE
OPENCL_INVALID_VALUE CL_INVALID_VALUE
OPENCL_INVALID_BUFFER_SIZE CL_INVALID_BUFFER_SIZE
OPENCL_INVALID_QUEUE CL_INVALID_COMMAND_QUEUE
OPENCL_INVALID_BUFFER CL_INVALID_MEM_OBJECT
OPENCL_BUFFER CL_MEM_OBJECT_BUFFER
OPENCL_MEM_KIND CL_MEM_TYPE
OPENCL_MEM_BYTES CL_MEM_SIZE
OPENCL_MEM_CONTEXT CL_MEM_CONTEXT
OPENCL_MEM_WHOLE CL_MEM_ASSOCIATED_MEMOBJECT
OPENCL_MEM_OFFSET CL_MEM_OFFSET
OPENCL_QUEUE_CONTEXT CL_QUEUE_CONTEXT
OPENCL_QUEUE_DEVICE CL_QUEUE_DEVICE
OPENCL_QUEUE_PROPERTIES CL_QUEUE_PROPERTIES
OPENCL_ANY_ORDER CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
OPENCL_MEM_READ_WRITE CL_MEM_READ_WRITE
OPENCL_BUFFER_REGION CL_BUFFER_CREATE_TYPE_REGION
OPENCL_BUILD_LOG CL_PROGRAM_BUILD_LOG
OPENCL_KERNEL_GROUP_SIZE CL_KERNEL_WORK_GROUP_SIZE
OPENCL_EVENT_STATUS CL_EVENT_COMMAND_EXECUTION_STATUS
OPENCL_COMPLETE CL_COMPLETE
OPENCL_PLATFORM_NAME CL_PLATFORM_NAME
OPENCL_DEVICE_GROUP_SIZE CL_DEVICE_MAX_WORK_GROUP_SIZE
OPENCL_DEVICE_LARGEST_BLOCK CL_DEVICE_MAX_MEM_ALLOC_SIZE
OPENCL_DEVICE_ALIGN_BITS CL_DEVICE_MEM_BASE_ADDR_ALIGN
OPENCL_DEVICE_MEMORY CL_DEVICE_GLOBAL_MEM_SIZE
OPENCL_DEVICE_LOCAL_MEMORY CL_DEVICE_LOCAL_MEM_SIZE
OPENCL_DEVICE_AVAILABLE CL_DEVICE_AVAILABLE
OPENCL_DEVICE_COMPILER CL_DEVICE_COMPILER_AVAILABLE
OPENCL_DEVICE_NAME CL_DEVICE_NAME
OPENCL_DRIVER_VERSION CL_DRIVER_VERSION
OPENCL_DEVICE_PLATFORM CL_DEVICE_PLATFORM
OPENCL_DEVICE_DOUBLE CL_DEVICE_DOUBLE_FP_CONFIG
OPENCL_DEVICE_ALL CL_DEVICE_TYPE_ALL
sizeof(opencl_region) sizeof(cl_buffer_region)
END
printf '#include <cuda.h>\n#include "device/cuda/cuda_api.h"\n' >"$scratch/cuda.c"
while read -r ours theirs; do
    same cuda "$ours" "$theirs"
done <<'END'
CUDA_INVALID_VALUE CUDA_ERROR_INVALID_VALUE
CUDA_OUT_OF_MEMORY CUDA_ERROR_OUT_OF_MEMORY
CUDA_KIND_OF_MEMORY CU_POINTER_ATTRIBUTE_MEMORY_TYPE
CUDA_DEVICE_OF_MEMORY CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
CUDA_ON_DEVICE CU_MEMORYTYPE_DEVICE
CUDA_NO_DEVICE CUDA_ERROR_NO_DEVICE
CUDA_NO_BINARY CUDA_ERROR_NO_BINARY_FOR_GPU
CUDA_INVALID_PTX CUDA_ERROR_INVALID_PTX
CUDA_UNSUPPORTED_PTX CUDA_ERROR_UNSUPPORTED_PTX_VERSION
CUDA_NOT_READY CUDA_ERROR_NOT_READY
CUDA_GROUP_MOST CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK
CUDA_LOCAL_MEMORY CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK
CUDA_MAJOR CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
CUDA_MINOR CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
CUDA_STREAM_ALONE CU_STREAM_NON_BLOCKING
CUDA_EVENT_PLAIN CU_EVENT_DISABLE_TIMING
sizeof(cuda_address) sizeof(CUdeviceptr)
END
# The symbols that are looked up are those that cuda.h gives the names of the calls.
symbols_are_cudas() {
    sed -nE 's/.*X\((cu[A-Za-z]+), (cu[A-Za-z0-9_]+).*/\1 \2/p' "$root/src/device/cuda/cuda_api.h" >"$scratch/names" &&
        [ -s "$scratch/names" ] && { echo '#include <cuda.h>' && sed 's/\(.*\) .*/"\1" \1/' "$scratch/names"; } >"$scratch/names.c" &&
        ${CC:-cc} -E -P -I"$1" "$scratch/names.c" >"$scratch/read" &&
        sed -n 's/^"\(cu[A-Za-z]*\)" \(cu[A-Za-z0-9_]*\)$/\1 \2/p' "$scratch/read" | diff "$scratch/names" -
}

if echo '#include <CL/cl.h>' | ${CC:-cc} -DCL_TARGET_OPENCL_VERSION=120 -fsyntax-only -x c - 2>/dev/null; then
    check "numbers of OpenCL" compiles opencl /usr/include
else
    skip "numbers of OpenCL" "no CL/cl.h: install opencl-headers"
fi
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
headers=$(dirname "$(dirname "$nvcc")")/include
if [ -f "$headers/cuda.h" ]; then
    check "numbers of CUDA" compiles cuda "$headers"
    check "symbols of CUDA" symbols_are_cudas "$headers"
else
    skip "numbers and symbols of CUDA" "no cuda.h"
fi
finish
