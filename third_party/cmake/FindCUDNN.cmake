# cuDNN 9: CUDNN_INCLUDE_DIR, CUDNN_LIBRARY (which is opened at run time, so that nothing links it), CUDNN_VERSION.
include(${CMAKE_CURRENT_LIST_DIR}/NvidiaWheels.cmake)
nvidia_find(CUDNN cudnn.h libcudnn.so.9 cudnn_version.h MAJOR MINOR PATCHLEVEL)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR VERSION_VAR CUDNN_VERSION)
