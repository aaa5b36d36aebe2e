# Every outside library that dtrain uses, found as the distribution installs it; install.sh beside this file installs
# them on Debian and Ubuntu. lib/CMakeLists.txt says which folder may use which.
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR}/cmake)

find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
find_package(DNNL 2.6 REQUIRED)
find_package(yaml-cpp REQUIRED)

add_library(dtrain_yaml INTERFACE)
target_link_libraries(dtrain_yaml INTERFACE yaml-cpp)

# One OpenMP runtime in the process: oneDNN's, whatever the compiler would link by itself (lib/device/cpu/openmp.h).
set(DTRAIN_OPENMP_RUNTIME gomp CACHE STRING "The OpenMP runtime that oneDNN was built with, as -l takes it")
add_library(dtrain_openmp INTERFACE)
target_compile_options(dtrain_openmp INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp-simd>)
target_link_libraries(dtrain_openmp INTERFACE ${DTRAIN_OPENMP_RUNTIME})

# The serial HDF5. CMake's own FindHDF5 wants a C compiler and links what HDF5 itself was linked with as well.
find_path(HDF5_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial REQUIRED)
find_library(HDF5_LIBRARY NAMES hdf5_serial hdf5 REQUIRED)
add_library(dtrain_libhdf5 INTERFACE)
target_include_directories(dtrain_libhdf5 SYSTEM INTERFACE ${HDF5_INCLUDE_DIR})
target_link_libraries(dtrain_libhdf5 INTERFACE ${HDF5_LIBRARY})

# ISA-L unpacks gzip twice as fast as zlib, which is most of the time to the first step from MNIST's files.
find_path(ISAL_INCLUDE_DIR isa-l/igzip_lib.h REQUIRED)
find_library(ISAL_LIBRARY isal REQUIRED)
add_library(dtrain_isal INTERFACE)
target_include_directories(dtrain_isal SYSTEM INTERFACE ${ISAL_INCLUDE_DIR})
target_link_libraries(dtrain_isal INTERFACE ${ISAL_LIBRARY})

# JPEG: libjpeg-turbo, which decodes several times as fast as others of the same interface. PNG: libpng.
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

# CLI11 is headers only; Ubuntu and Debian install them without agreeing on a CMake package.
find_path(CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)
add_library(dtrain_cli11 INTERFACE)
target_include_directories(dtrain_cli11 SYSTEM INTERFACE ${CLI11_INCLUDE_DIR})

find_path(DOCTEST_INCLUDE_DIR doctest/doctest.h)
