# find_package(fourge) gives fourge::fourge (shared) and fourge::fourge_static.
include(CMakeFindDependencyMacro)
find_dependency(OpenMP COMPONENTS C)
find_dependency(ZLIB)
include(${CMAKE_CURRENT_LIST_DIR}/fourge_targets.cmake)
