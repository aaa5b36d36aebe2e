#include "version.h"

#include <fmt/format.h>

#include "checkpoint/checkpoint.h"
#include "device/device.h"
#include "processes/mpi_library.h"

namespace dtrain {

namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "Clang " __clang_version__;
#elif defined(__GNUC__)
constexpr const char* kCompiler = "GCC " __VERSION__;
#else
constexpr const char* kCompiler = "unknown";
#endif

}  // namespace

std::string version_text() {
  const std::string cuda = cuda_build_version();
  return fmt::format("dtrain {}\noneDNN    {}\nHDF5      {}\nCUDA      {}\nMPI       {}\ncompiler  {}, {}",
                     DTRAIN_VERSION, onednn_version(), hdf5_version(), cuda.empty() ? "none" : cuda,
                     describe_mpi_libraries(), kCompiler, DTRAIN_BUILD_TYPE);
}

}  // namespace dtrain
