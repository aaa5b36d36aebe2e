#include "data/hdf5_library.h"

#include "base/hdf5_mutex.h"

namespace dtrain {

LibraryLock::LibraryLock() : lock_(hdf5_mutex()) {
  // Without this the library's exit handler crashes after a failed write. Only the first call, ours or
  // another folder's, can succeed, and has to come before anything else.
  H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5Eclear2(H5E_DEFAULT);
}

bool hdf5_said(const std::string& words) {
  struct Search {
    const std::string& words;
    bool found;
  } search{words, false};
  const auto look = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    auto& into = *static_cast<Search*>(out);
    if (error->desc && std::string(error->desc).find(into.words) != std::string::npos) into.found = true;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, look, &search);
  return search.found;
}

}  // namespace dtrain
