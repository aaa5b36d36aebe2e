#include "checkpoint/file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace dtrain {

namespace fs = std::filesystem;

namespace {
constexpr std::string_view kTemporary = ".tmp-";  // then the writer's process id

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  /// Some file systems report a failed write only here.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// Deletes the file unless it has been renamed.
class Temporary {
 public:
  explicit Temporary(Location location) : location_(std::move(location)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!renamed_) ::unlinkat(location_.directory, location_.path.c_str(), 0);
  }
  int create() const {
    return ::openat(location_.directory, location_.path.c_str(),
                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  }
  bool rename_to(const Location& target) {
    renamed_ =
        ::renameat(location_.directory, location_.path.c_str(), target.directory, target.path.c_str()) == 0;
    return renamed_;
  }

 private:
  Location location_;
  bool renamed_ = false;
};

/// What stands beside a file: its directory, for "." or "" as name.
Location beside(const Location& file, const std::string& name) {
  const fs::path parent = fs::path(file.path).parent_path();
  return {file.directory, (parent.empty() ? fs::path(".") : parent) / name, file.shown()};
}

int open_directory(const Location& directory) {
  return ::openat(directory.directory, directory.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

std::string reason() {
  return std::generic_category().message(errno);
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  constexpr size_t kAtOnce = size_t{1} << 30;  // Linux writes at most 2 GiB a call
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), std::min(bytes.size(), kAtOnce));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

bool sync_directory(const Location& directory) {
  const Descriptor fd(open_directory(directory));
  if (!fd) return false;
  return ::fsync(fd.get()) == 0 || errno == EINVAL;  // some file systems cannot, and need not
}
}  // namespace

void write_file(const Location& location, Parts parts) {
  const auto fail = [&](std::string_view doing) {
    const bool no_space = errno == ENOSPC || errno == EDQUOT;
    const std::string message = fmt::format("{}: could not {}: {}", location.shown(), doing, reason());
    if (no_space) throw NoSpace(message);
    throw Error(message);
  };
  const std::string name = fs::path(location.path).filename().string();
  Temporary temporary(beside(location, fmt::format(".{}{}{}", name, kTemporary, ::getpid())));
  Descriptor file(temporary.create());
  if (!file) fail("be created");
  for (const auto part : parts)
    if (!write_all(file.get(), part)) fail("be written");
  if (::fsync(file.get()) != 0 || !file.close()) fail("be written");
  if (!temporary.rename_to(location)) fail("get its name");
  if (!sync_directory(beside(location, "."))) fail("get its name onto the disk");
}

std::vector<std::string> names_in(const Location& directory) {
  std::vector<std::string> names;
  const int fd = open_directory(directory);
  const auto close = [](DIR* stream) { ::closedir(stream); };
  const std::unique_ptr<DIR, decltype(close)> stream(fd >= 0 ? ::fdopendir(fd) : nullptr, close);
  if (!stream && fd >= 0) ::close(fd);
  while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) names.emplace_back(entry->d_name);
  return names;
}

void remove_stale_temporaries(const Location& location) {
  for (const std::string& name : names_in(beside(location, "."))) {
    const size_t at = name.rfind(kTemporary);
    if (!name.starts_with('.') || at == std::string::npos) continue;
    pid_t writer = 0;
    const char* last = name.data() + name.size();
    const auto [end, error] = std::from_chars(name.data() + at + kTemporary.size(), last, writer);
    if (error != std::errc() || end != last || writer <= 0) continue;
    // What cannot be removed does no harm.
    if (::kill(writer, 0) != 0 && errno == ESRCH)
      ::unlinkat(location.directory, beside(location, name).path.c_str(), 0);
  }
}

Bytes read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe must not hang us
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0)
    throw UserError(fmt::format("{}: could not be read: {}", path, reason()));
  if (!S_ISREG(status.st_mode))
    throw UserError(fmt::format("{}: expected a file, found a directory or device", path));
  Bytes bytes;
  const auto size = static_cast<size_t>(status.st_size);
  bytes.data = std::make_shared_for_overwrite<std::byte[]>(size);
  while (bytes.size < size) {
    const ssize_t got = ::read(file.get(), bytes.data.get() + bytes.size, size - bytes.size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw UserError(fmt::format("{}: could not be read: {}", path, reason()));
    if (got == 0) break;  // it shrank meanwhile; whoever checks the length will say so
    bytes.size += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace dtrain
