#include "checkpoint/hdf5_session.h"

#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hdf5_mutex.h"
#include "checkpoint/checkpoint.h"

namespace dtrain {

Hdf5Session::Hdf5Session() : lock_(hdf5_mutex()) {
  // Without this the library's exit handler crashes after a failed write. Only the first call, ours or
  // another folder's, can succeed, and has to come before anything else.
  H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5Eclear2(H5E_DEFAULT);
}

std::string hdf5_version() {
  const Hdf5Session session;
  unsigned major = 0, minor = 0, release = 0;
  checked(H5get_libversion(&major, &minor, &release), "say its version");
  const std::string built = fmt::format("{}.{}.{}", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
  const std::string found = fmt::format("{}.{}.{}", major, minor, release);
  return built == found ? built : fmt::format("{} (running with {})", built, found);
}

void throw_hdf5_error(std::string_view doing) {
  std::string reason = "for no given reason";
  const auto first = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    if (error->desc) *static_cast<std::string*>(out) = error->desc;
    return 1;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first, &reason);
  H5Eclear2(H5E_DEFAULT);
  throw Error(fmt::format("HDF5 could not {}: {}", doing, reason));
}

}  // namespace dtrain
