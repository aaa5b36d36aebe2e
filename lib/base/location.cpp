#include "base/location.h"

#include <algorithm>
#include <dirent.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace dtrain {

namespace fs = std::filesystem;

Location beside(const Location& file, const std::string& name) {
  const fs::path parent = fs::path(file.path).parent_path();
  return {file.directory, (parent.empty() ? fs::path(".") : parent) / name, file.shown()};
}

std::string first_bytes(const Location& file, size_t count) {
  // O_NONBLOCK: without it, opening a pipe that has no writer would block.
  const int fd = ::openat(file.directory, file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return "";
  std::string bytes(count, '\0');
  size_t size = 0;
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    for (ssize_t got = 1; got > 0 && size < count; size += static_cast<size_t>(std::max<ssize_t>(got, 0)))
      got = ::read(fd, bytes.data() + size, count - size);
  }
  ::close(fd);
  bytes.resize(size);
  return bytes;
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
