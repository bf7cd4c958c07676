# find_package(fourge) gives fourge::fourge (shared) and fourge::fourge_static.
include(${CMAKE_CURRENT_LIST_DIR}/fourge_targets.cmake)
