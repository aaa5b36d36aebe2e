# Finds cuDNN 9: sets CUDNN_INCLUDE_DIR, CUDNN_LIBRARY (opened at run time, so no target links it) and CUDNN_VERSION.
include(${CMAKE_CURRENT_LIST_DIR}/NvidiaWheels.cmake)
nvidia_find(CUDNN cudnn.h libcudnn.so.9 cudnn_version.h MAJOR MINOR PATCHLEVEL)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR VERSION_VAR CUDNN_VERSION)
