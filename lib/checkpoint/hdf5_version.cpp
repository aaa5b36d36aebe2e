#include <fmt/format.h>

#include "checkpoint/checkpoint.h"
#include "hdf5/hdf5_session.h"

namespace dtrain {

std::string hdf5_version() {
  const Hdf5Session session;
  unsigned major = 0, minor = 0, release = 0;
  checked(H5get_libversion(&major, &minor, &release), "get the version of libhdf5");
  const std::string built = fmt::format("{}.{}.{}", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
  const std::string found = fmt::format("{}.{}.{}", major, minor, release);
  return built == found ? built : fmt::format("{} (running with {})", built, found);
}

}  // namespace dtrain
