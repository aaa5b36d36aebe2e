#include "run/record/held_directory.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

bool is_a_directory(const fs::path& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

/// Returns the absolute path without a trailing slash.
fs::path without_slash(const std::string& path) {
  std::error_code unknown;
  const fs::path absolute = without_dots(fs::absolute(path, unknown).string());
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Locks an open directory. Returns false if another process holds the lock; true on file systems without
/// locks. Retries for a moment, because is_held() in another process holds the lock briefly.
bool lock(int fd) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
    ::usleep(5000);
  }
  return false;
}

}  // namespace

void make_directories(const fs::path& path, std::vector<std::string>& made) {
  if (path.empty() || is_a_directory(path)) return;
  make_directories(path.parent_path(), made);
  if (::mkdir(path.c_str(), 0777) == 0) {
    made.push_back(path.string());
  } else if (const int why = errno; why != EEXIST || !is_a_directory(path)) {
    throw UserError(
        fmt::format("{}: cannot be created: {}", path.string(), std::generic_category().message(why)));
  }
}

HeldDirectory::HeldDirectory(std::string given) : path(std::move(given)), absolute(without_slash(path)) {}

void HeldDirectory::close() {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

bool HeldDirectory::open() {
  // Tries again if the process that previously held the lock removed the directory between open() and lock().
  for (struct stat ours{}, there{};; close()) {
    make_directories(path, made);
    fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) continue;
    if (fd < 0)
      throw UserError(fmt::format("{}: cannot be opened: {}", path, std::generic_category().message(errno)));
    if (!lock(fd)) {
      close();
      return false;
    }
    if (::fstat(fd, &ours) == 0 && ::stat(path.c_str(), &there) == 0 && same_file(ours, there)) return true;
  }
}

std::string HeldDirectory::current_path() const {
  struct stat ours {
  }, there{};
  if (fd < 0 || ::fstat(fd, &ours) != 0 || ours.st_nlink == 0) return path;
  if (::stat(path.c_str(), &there) == 0 && same_file(ours, there)) return path;
  std::error_code unknown;
  const fs::path now = fs::read_symlink(fmt::format("/proc/self/fd/{}", fd), unknown);
  return unknown ? path : now.string();
}

bool HeldDirectory::is_held() const {
  if (fd >= 0) return true;
  const int opened = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return false;
  const bool held = ::flock(opened, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(opened);
  return held;
}

bool HeldDirectory::is_gone() const {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_nlink == 0 : errno == ESTALE;
}

}  // namespace dtrain
