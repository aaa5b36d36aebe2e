#include "device/cuda/library.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <mutex>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "device/gpu_info.h"

namespace dtrain {

namespace {

struct Opened {
  std::mutex mutex;
  std::vector<GpuLibrary> libraries;
};

Opened& opened() {
  static Opened only;
  return only;
}

/// Lists the libraries that have been opened so far: "; already opened: cuBLASLt 13.1.0
/// (/usr/lib/libcublasLt.so.13)". Appended to error messages, because some errors are caused by libraries
/// from different installations.
std::string describe_opened() {
  std::string text;
  for (const GpuLibrary& library : opened_gpu_libraries())
    text += fmt::format("{}{} {} ({})", text.empty() ? "; already opened: " : ", ", library.name,
                        library.version, library.path);
  return text;
}

}  // namespace

std::vector<GpuLibrary> opened_gpu_libraries() {
  const std::lock_guard lock(opened().mutex);
  return opened().libraries;
}

namespace cuda {

Library::Library(const char* name, const char* file, const char* known, Identify identify) : name_(name) {
  std::string reasons;
  if (open(file, identify, reasons) || open(known, identify, reasons)) return;
  throw Error(fmt::format(
      "computing on a GPU needs NVIDIA's {0}, which could not be loaded ({1}){2}; install {0}, or put its "
      "folder first in LD_LIBRARY_PATH",
      name, reasons, describe_opened()));
}

bool Library::open(const char* file, Identify identify, std::string& reasons) {
  std::string reason;
  handle_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle_) {
    try {
      const Identity identity = identify(*this);
      if (identity.problem.empty()) {
        const std::lock_guard lock(opened().mutex);
        opened().libraries.push_back({name_, identity.version, path()});
        return true;
      }
      reason = fmt::format("{} {} ({}) {}", name_, identity.version, path(), identity.problem);
    } catch (const Error& error) {  // the library lacks a function
      reason = fmt::format("{} ({})", error.what(), path());
    }
    dlclose(handle_);
    handle_ = nullptr;
  } else {
    reason = dlerror();
  }
  if (reasons.find(reason) == reasons.npos) reasons += (reasons.empty() ? "" : "; ") + reason;
  return false;
}

void* Library::find(const char* function) const {
  void* found = dlsym(handle_, function);
  if (!found)
    throw Error(fmt::format("{0} lacks the function {1}; install another version of {0}", name_, function));
  return found;
}

std::string Library::path() const {
  const link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || !map) return "";
  std::error_code missing;
  const auto path = std::filesystem::canonical(map->l_name, missing);
  return missing ? map->l_name : path.string();
}

std::string cuda_major_problem(int cuda_version) {
  if (cuda_version / 1000 == CUDART_VERSION / 1000) return "";
  return fmt::format("is for CUDA {}, but this program needs CUDA {}", cuda_version / 1000,
                     CUDART_VERSION / 1000);
}

}  // namespace cuda

}  // namespace dtrain
