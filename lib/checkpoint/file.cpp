#include "checkpoint/file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

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
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  const char* path() const { return path_.c_str(); }
  bool rename_to(const std::string& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return false;
    path_.clear();
    return true;
  }

 private:
  std::string path_;
};

fs::path directory_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? fs::path(".") : parent;
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

bool sync_directory(const fs::path& directory) {
  const Descriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return false;
  return ::fsync(fd.get()) == 0 || errno == EINVAL;  // some file systems cannot, and need not
}
}  // namespace

void write_file(const std::string& path, Parts parts) {
  const auto fail = [&](std::string_view doing) {
    throw Error(fmt::format("{}: could not {}: {}", path, doing, reason()));
  };
  const fs::path directory = directory_of(path);
  const std::string name = fs::path(path).filename().string();
  Temporary temporary((directory / fmt::format(".{}{}{}", name, kTemporary, ::getpid())).string());
  Descriptor file(::open(temporary.path(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!file) fail("be created");
  for (const auto part : parts)
    if (!write_all(file.get(), part)) fail("be written");
  if (::fsync(file.get()) != 0 || !file.close()) fail("be written");
  if (!temporary.rename_to(path)) fail("get its name");
  if (!sync_directory(directory)) fail("get its name onto the disk");
}

void remove_stale_temporaries(const std::string& path) {
  std::error_code ignored;  // what cannot be cleaned does no harm
  for (const auto& entry : fs::directory_iterator(directory_of(path), ignored)) {
    const std::string name = entry.path().filename().string();
    const size_t at = name.rfind(kTemporary);
    if (!name.starts_with('.') || at == std::string::npos) continue;
    pid_t writer = 0;
    const char* last = name.data() + name.size();
    const auto [end, error] = std::from_chars(name.data() + at + kTemporary.size(), last, writer);
    if (error != std::errc() || end != last || writer <= 0) continue;
    if (::kill(writer, 0) != 0 && errno == ESRCH) fs::remove(entry.path(), ignored);
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
