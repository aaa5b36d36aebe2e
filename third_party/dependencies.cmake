# Every outside library that dtrain uses, found as the distribution installs it; install.sh beside this file installs
# them on Debian and Ubuntu. lib/CMakeLists.txt says which folder may use which.
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR}/cmake)

find_package(fmt REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(dnnl REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)

add_library(dtrain_yaml INTERFACE)
target_link_libraries(dtrain_yaml INTERFACE yaml-cpp)

add_library(dtrain_hdf5 INTERFACE)
target_include_directories(dtrain_hdf5 SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(dtrain_hdf5 INTERFACE ${HDF5_C_LIBRARIES})

# CLI11 is headers only; Ubuntu and Debian install them without agreeing on a CMake package.
find_path(CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)
add_library(dtrain_cli11 INTERFACE)
target_include_directories(dtrain_cli11 SYSTEM INTERFACE ${CLI11_INCLUDE_DIR})

find_path(DOCTEST_INCLUDE_DIR doctest/doctest.h)
