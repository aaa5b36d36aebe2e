# nvidia_wheels(VARIABLE): sets VARIABLE to the nvidia/* folders of the Python on PATH, where `pip install nvidia-...`
# installs NVIDIA's libraries (each has include/ and lib/).
function(nvidia_wheels variable)
  if(NOT DEFINED DTRAIN_NVIDIA_WHEELS)
    execute_process(
      COMMAND python3 -c "import glob, site, sys
folders = [*sys.path, *site.getsitepackages(), site.getusersitepackages()]
print(';'.join(sorted({wheel for folder in folders if folder for wheel in glob.glob(folder + '/nvidia/*/')})))"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    set(DTRAIN_NVIDIA_WHEELS "${found}" CACHE INTERNAL "Folders of NVIDIA's Python wheels")
  endif()
  set(${variable} ${DTRAIN_NVIDIA_WHEELS} PARENT_SCOPE)
endfunction()

# nvidia_find(NAME HEADER SONAME VERSION_HEADER PARTS...): finds HEADER and the library SONAME (the wheels have no
# libNAME.so). Sets NAME_INCLUDE_DIR, NAME_LIBRARY, and NAME_VERSION from the macros NAME_PART in VERSION_HEADER.
# Searches NAME_ROOT first, then the system, the CUDA toolkit and the wheels.
macro(nvidia_find name header soname version_header)
  nvidia_wheels(wheels)
  find_path(${name}_INCLUDE_DIR ${header} HINTS ${${name}_ROOT} ENV ${name}_ROOT PATH_SUFFIXES include
            PATHS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda ${wheels})
  find_library(${name}_LIBRARY NAMES ${soname} HINTS ${${name}_ROOT} ENV ${name}_ROOT PATH_SUFFIXES lib lib64
               PATHS ${CUDAToolkit_LIBRARY_DIR} /usr/local/cuda ${wheels})
  set(${name}_VERSION)
  if(${name}_INCLUDE_DIR)
    foreach(part ${ARGN})
      file(STRINGS ${${name}_INCLUDE_DIR}/${version_header} line REGEX "define ${name}_${part} +[0-9]+")
      string(REGEX MATCH "[0-9]+" number "${line}")
      list(APPEND ${name}_VERSION ${number})
    endforeach()
    list(JOIN ${name}_VERSION . ${name}_VERSION)
  endif()
endmacro()
