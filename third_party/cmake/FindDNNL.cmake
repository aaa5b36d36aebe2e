# Finds oneDNN and defines DNNL::dnnl. oneDNN's own CMake package, as built by Debian and Ubuntu, requires the OpenCL
# headers, which dtrain does not need.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)

if(DNNL_INCLUDE_DIR)
  # The version numbers are in dnnl_version.h; newer versions spread them over dnnl_version_hash.h and similar headers.
  file(GLOB headers ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version*.h)
  foreach(header ${headers})
    foreach(part MAJOR MINOR PATCH)
      file(STRINGS ${header} line REGEX "define DNNL_VERSION_${part} ")
      if(line MATCHES "([0-9]+)")
        set(version_${part} ${CMAKE_MATCH_1})
      endif()
    endforeach()
  endforeach()
  set(DNNL_VERSION ${version_MAJOR}.${version_MINOR}.${version_PATCH})
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(DNNL REQUIRED_VARS DNNL_LIBRARY DNNL_INCLUDE_DIR VERSION_VAR DNNL_VERSION)

if(DNNL_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
endif()
