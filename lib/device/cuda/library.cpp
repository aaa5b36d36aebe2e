#include "device/cuda/library.h"

#include <dlfcn.h>
#include <link.h>
#include <string>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain::cuda {
namespace {

void* open(const char* name, const char* known) {
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;
  if (void* handle = dlopen(name, kFlags)) return handle;
  const std::string why = dlerror();
  if (void* handle = dlopen(known, kFlags)) return handle;
  throw Error(fmt::format("computing on a GPU needs {} of NVIDIA's: {}", name, why));
}

}  // namespace

Library::Library(const char* name, const char* known) : name_(name), handle_(open(name, known)) {}

void* Library::find(const char* function) const {
  void* found = dlsym(handle_, function);
  if (!found) throw Error(fmt::format("{} has no function {}: another version is needed", name_, function));
  return found;
}

std::string Library::path() const {
  const link_map* map = nullptr;
  return dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "";
}

}  // namespace dtrain::cuda
