# plugins.cmake - the sources of the plug-ins for devices: SOURCES_opencl, SOURCES_cuda.
#
# The one for CUDA has what nvcc and ptxas make of the kernels in it, PTX and cubins for sm_80 and sm_90; where there is no
# nvcc, it compiles them by NVRTC when it runs.  include()d by CMakeLists.txt, behind kernels.cmake.

file(GLOB SOURCES_opencl CONFIGURE_DEPENDS src/device/opencl/*.c)
file(GLOB SOURCES_cuda CONFIGURE_DEPENDS src/device/cuda/*.c)
find_program(NVCC nvcc HINTS /usr/local/cuda/bin)
set(CUDA_OUTPUT ${KERNEL_BUILD}/cuda)
set(CUDA_ROWS "")
set(CUDA_INCLUDES "")
set(CUDA_DATA "")
set(CUDA_PTX "")

# cuda_program ROOM TYPE HASH SOURCE INDEX: its PTX, its cubins and these as C.
function(cuda_program room type hash source index)
  set(base ${CUDA_OUTPUT}/${room}_${type})
  set(flags -DROOM=${room} -DTYPE=${type} -DPTX=${base}.ptx -DSM_80=${base}_sm_80.cubin -DSM_90=${base}_sm_90.cubin)
  get_filename_component(bin ${NVCC} DIRECTORY)
  string(REGEX REPLACE "_.*" "" shared ${room}) # whose headers its kernels begin with (kernels.cmake)
  file(GLOB texts CONFIGURE_DEPENDS ${KERNEL_FOLDER}/${shared}/*.h ${KERNEL_FOLDER}/${room}/*.h)
  add_custom_command(OUTPUT ${base}.ptx
    COMMAND ${NVCC} -ptx -arch=compute_80 -Werror=all-warnings -I${KERNEL_FOLDER} ${source} -o ${base}.ptx
    DEPENDS ${source} ${texts} ${KERNEL_FOLDER}/dialect.h VERBATIM)
  add_custom_command(OUTPUT ${base}.inc
    COMMAND ${bin}/ptxas -arch=sm_80 ${base}.ptx -o ${base}_sm_80.cubin
    COMMAND ${bin}/ptxas -arch=sm_90 ${base}.ptx -o ${base}_sm_90.cubin
    COMMAND ${CMAKE_COMMAND} ${flags} -DOUT=${base}.inc -P ${CMAKE_SOURCE_DIR}/tools/cuda_images.cmake
    DEPENDS ${base}.ptx ${CMAKE_SOURCE_DIR}/tools/cuda_images.cmake VERBATIM)
  set(name ${room}_${type})
  set(CUDA_ROWS "${CUDA_ROWS}    {\"${room}\", \"${hash}\", ${index}, ptx_${name}, sm_80_${name}, sm_90_${name}},\n" PARENT_SCOPE)
  set(CUDA_INCLUDES "${CUDA_INCLUDES}#include \"cuda/${name}.inc\"\n" PARENT_SCOPE)
  set(CUDA_DATA ${CUDA_DATA} ${base}.inc PARENT_SCOPE)
  set(CUDA_PTX ${CUDA_PTX} ${base}.ptx PARENT_SCOPE)
endfunction()

if(NVCC)
  file(MAKE_DIRECTORY ${CUDA_OUTPUT})
  foreach(program IN LISTS KERNEL_CUDA)
    string(REPLACE "|" ";" program "${program}")
    list(GET program 1 type)
    list(FIND KERNEL_TYPES ${type} index)
    cuda_program(${program} ${index})
  endforeach()
else()
  message(STATUS "CUDA not compiled: no nvcc")
endif()
string(CONCAT source "/* Made by tools/plugins.cmake. */\n#include \"device/cuda/cuda_api.h\"\n${CUDA_INCLUDES}"
  "const cuda_image cuda_images[] = {\n${CUDA_ROWS}    {0}};\n")
kernel_write(${KERNEL_BUILD}/cuda_images.c "${source}")
set_source_files_properties(${KERNEL_BUILD}/cuda_images.c PROPERTIES OBJECT_DEPENDS "${CUDA_DATA}" INCLUDE_DIRECTORIES ${KERNEL_BUILD})
list(APPEND SOURCES_cuda ${KERNEL_BUILD}/cuda_images.c)
set_source_files_properties(${SOURCES_opencl} ${SOURCES_cuda} PROPERTIES COMPILE_DEFINITIONS
  FOURGE_LINKED_PLUGINS=$<BOOL:${FOURGE_LINKED_PLUGINS}>)
