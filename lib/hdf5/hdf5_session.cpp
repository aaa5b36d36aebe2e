#include "hdf5/hdf5_session.h"

#include <string>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

Hdf5Session::Hdf5Session() : lock_(hdf5_mutex()) {
  // Without this call, the exit handler of libhdf5 crashes after a failed write. The call must be made before
  // any other HDF5 call. It has no effect if it is repeated.
  H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5Eclear2(H5E_DEFAULT);
}

bool hdf5_said(std::string_view words) {
  struct Search {
    std::string_view words;
    bool found;
  } search{words, false};
  const auto look = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    auto& into = *static_cast<Search*>(out);
    if (error->desc && std::string_view(error->desc).find(into.words) != std::string_view::npos)
      into.found = true;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, look, &search);
  return search.found;
}

void throw_hdf5_error(std::string_view doing) {
  std::string reason = "unknown reason";
  const auto first = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    if (error->desc) *static_cast<std::string*>(out) = error->desc;
    return 1;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first, &reason);
  H5Eclear2(H5E_DEFAULT);
  throw Error(fmt::format("HDF5 could not {}: {}", doing, reason));
}

}  // namespace dtrain
