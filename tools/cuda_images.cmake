# cuda_images.cmake - what nvcc and ptxas made of a program, as C:
#     cmake -DROOM= -DTYPE= -DHASH= -DPTX= -DSM_80= -DSM_90= -DOUT= -P cuda_images.cmake
function(bytes name file end)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}${end}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" hex "${hex}")
  # a cubin is read as an ELF file: aligned as such
  string(APPEND text "static const unsigned char ${name}[] __attribute__((aligned(16))) = {\n${hex}};\n")
  set(text "${text}" PARENT_SCOPE)
endfunction()
set(text "")
bytes(ptx_${ROOM}_${TYPE} ${PTX} 00)
bytes(sm_80_${ROOM}_${TYPE} ${SM_80} "")
bytes(sm_90_${ROOM}_${TYPE} ${SM_90} "")
file(WRITE ${OUT} "${text}")
