#include "base/location.h"

#include <dirent.h>
#include <filesystem>
#include <memory>
#include <unistd.h>

namespace dtrain {

namespace fs = std::filesystem;

Location beside(const Location& file, const std::string& name) {
  const fs::path parent = fs::path(file.path).parent_path();
  return {file.directory, (parent.empty() ? fs::path(".") : parent) / name, file.shown()};
}

std::vector<std::string> names_in(const Location& directory) {
  std::vector<std::string> names;
  const int fd = ::openat(directory.directory, directory.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const auto close = [](DIR* stream) { ::closedir(stream); };
  const std::unique_ptr<DIR, decltype(close)> stream(fd >= 0 ? ::fdopendir(fd) : nullptr, close);
  if (!stream && fd >= 0) ::close(fd);
  while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) names.emplace_back(entry->d_name);
  return names;
}

}  // namespace dtrain
