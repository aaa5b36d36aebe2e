# Finds the distribution's packages of all outside libraries except CUDA's. install.sh in this folder installs these
# packages on Debian and Ubuntu. lib/CMakeLists.txt declares which folder may use which library.
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR}/cmake)

find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
find_package(DNNL 2.6 REQUIRED)
find_package(yaml-cpp REQUIRED)

add_library(dtrain_yaml INTERFACE)
target_link_libraries(dtrain_yaml INTERFACE yaml-cpp)

# The process must have a single OpenMP runtime, oneDNN's, regardless of the compiler's default
# (lib/device/cpu/openmp.h).
set(DTRAIN_OPENMP_RUNTIME gomp CACHE STRING "The OpenMP runtime that oneDNN was built with, as an argument of -l")
add_library(dtrain_openmp INTERFACE)
target_compile_options(dtrain_openmp INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp-simd>)
target_link_libraries(dtrain_openmp INTERFACE ${DTRAIN_OPENMP_RUNTIME})

# Serial HDF5. CMake's FindHDF5 is not used because it requires a C compiler and also links the libraries that HDF5
# itself was linked with.
find_path(HDF5_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial REQUIRED)
find_library(HDF5_LIBRARY NAMES hdf5_serial hdf5 REQUIRED)
add_library(dtrain_libhdf5 INTERFACE)
target_include_directories(dtrain_libhdf5 SYSTEM INTERFACE ${HDF5_INCLUDE_DIR})
target_link_libraries(dtrain_libhdf5 INTERFACE ${HDF5_LIBRARY})

# ISA-L decompresses gzip twice as fast as zlib. With MNIST's files, the time until the first step is mostly the time of
# decompression.
find_path(ISAL_INCLUDE_DIR isa-l/igzip_lib.h REQUIRED)
find_library(ISAL_LIBRARY isal REQUIRED)
add_library(dtrain_isal INTERFACE)
target_include_directories(dtrain_isal SYSTEM INTERFACE ${ISAL_INCLUDE_DIR})
target_link_libraries(dtrain_isal INTERFACE ${ISAL_LIBRARY})

# For JPEG, libjpeg-turbo is used, which is several times as fast as other libraries with the same interface. For PNG,
# libpng is used.
find_path(JPEG_INCLUDE_DIR jpeglib.h REQUIRED)
find_library(JPEG_LIBRARY jpeg REQUIRED)
add_library(dtrain_jpeg INTERFACE)
target_include_directories(dtrain_jpeg SYSTEM INTERFACE ${JPEG_INCLUDE_DIR})
target_link_libraries(dtrain_jpeg INTERFACE ${JPEG_LIBRARY})
find_path(PNG_INCLUDE_DIR png.h REQUIRED)
find_library(PNG_LIBRARY NAMES png16 png REQUIRED)
add_library(dtrain_png INTERFACE)
target_include_directories(dtrain_png SYSTEM INTERFACE ${PNG_INCLUDE_DIR})
target_link_libraries(dtrain_png INTERFACE ${PNG_LIBRARY})

# CLI11 is header-only. Debian and Ubuntu do not provide the same CMake package for it, so only the header is searched.
find_path(CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)
add_library(dtrain_cli11 INTERFACE)
target_include_directories(dtrain_cli11 SYSTEM INTERFACE ${CLI11_INCLUDE_DIR})

find_path(DOCTEST_INCLUDE_DIR doctest/doctest.h)
