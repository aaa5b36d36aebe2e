# Finds NCCL 2: sets NCCL_INCLUDE_DIR, NCCL_LIBRARY (opened at run time, so no target links it) and NCCL_VERSION.
include(${CMAKE_CURRENT_LIST_DIR}/NvidiaWheels.cmake)
nvidia_find(NCCL nccl.h libnccl.so.2 nccl.h MAJOR MINOR PATCH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
