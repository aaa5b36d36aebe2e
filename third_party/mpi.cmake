# The shims for MPI: small libraries, one for each MPI whose header is found. At run time, the program opens a shim and
# the machine's libmpi (lib/processes/mpi_library.h). The program itself does not link MPI. Without any header, the
# program supports only single processes. OPENMPI_ROOT, MPICH_ROOT and MPI_ABI_ROOT name installations in unusual
# places.
#
# dtrain_mpi_shim(NAME SHIM HEADER MACRO LIBRARIES...): finds a HEADER that defines MACRO, and one of the LIBRARIES.
# Defines the target dtrain_mpi_SHIM, and passes the library's path to the program, which opens this library if the
# system's search path has none.
set(DTRAIN_MPI_SHIMS)
add_library(dtrain_mpi INTERFACE)
function(dtrain_mpi_shim name shim header macro)
  set(arch ${CMAKE_LIBRARY_ARCHITECTURE})
  find_path(${name}_INCLUDE_DIR ${header} HINTS ${${name}_ROOT} ENV ${name}_ROOT
            PATHS /usr/lib/${arch}/${shim} /usr/lib64/${shim} /usr/include/${shim}-${CMAKE_SYSTEM_PROCESSOR}
            PATH_SUFFIXES include ${shim})
  find_library(${name}_LIBRARY NAMES ${ARGN} HINTS ${${name}_ROOT} ENV ${name}_ROOT
               PATHS /usr/lib/${arch}/${shim} /usr/lib64/${shim} PATH_SUFFIXES lib lib64)
  set(library "")
  if(${name}_LIBRARY)
    set(library ${${name}_LIBRARY})
  endif()
  target_compile_definitions(dtrain_mpi INTERFACE DTRAIN_${name}_LIBRARY="${library}")
  set(defined "")
  if(${name}_INCLUDE_DIR)  # another MPI may have a header of the same name
    file(STRINGS ${${name}_INCLUDE_DIR}/${header} defined REGEX "define +${macro}" LIMIT_COUNT 1)
  endif()
  if(NOT defined)
    return()
  endif()
  set(target dtrain_mpi_${shim})
  add_library(${target} MODULE ${PROJECT_SOURCE_DIR}/lib/processes/shim/mpi_shim.cpp)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/lib)
  target_include_directories(${target} SYSTEM PRIVATE ${${name}_INCLUDE_DIR})
  target_compile_options(${target} PRIVATE ${warnings})
  target_compile_definitions(${target} PRIVATE DTRAIN_MPI_HEADER=<${header}>)
  # The program looks for shims in ../lib/dtrain, in the build folder and in an installation.
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden
                                             LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/dtrain)
  install(TARGETS ${target} LIBRARY DESTINATION lib/dtrain)
  list(APPEND DTRAIN_MPI_SHIMS ${target})
  set(DTRAIN_MPI_SHIMS ${DTRAIN_MPI_SHIMS} PARENT_SCOPE)
endfunction()

dtrain_mpi_shim(OPENMPI openmpi mpi.h OMPI_MAJOR_VERSION libmpi.so.40)
dtrain_mpi_shim(MPICH mpich mpi.h MPICH_VERSION libmpi.so.12 libmpich.so.12)
dtrain_mpi_shim(MPI_ABI abi mpi_abi.h MPI_ABI_VERSION libmpi_abi.so.1 libmpi_abi.so.0)
if(DTRAIN_MPI_SHIMS)
  string(REPLACE "dtrain_mpi_" "" shims "${DTRAIN_MPI_SHIMS}")
  list(JOIN shims ", " shims)
  message(STATUS "dtrain: with MPI shims for: ${shims}")
else()
  message(STATUS "dtrain: without MPI (no mpi.h): no support for several machines")
endif()
