#include "base/files/new_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <random>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

// The name of a temporary file is ".", the name of the file, this text, the writer's process id, "-" and a
// random number of 8 hexadecimal digits. The text contains "dtrain", because remove_leftovers() must not
// remove the files of other programs, some of which use names such as ".NAME.tmp-123".
constexpr std::string_view kTemporary = ".dtrain-tmp-";

/// Returns this process's mutex, which is held while a temporary file is created and locked.
std::mutex& making() {
  static std::mutex mutex;
  return mutex;
}

std::string reason() {
  return std::generic_category().message(errno);
}

std::string temporary_name(const std::string& name, pid_t writer, uint32_t number) {
  return fmt::format(".{}{}{}-{:08x}", name, kTemporary, writer, number);
}

/// Returns the process id in a temporary file's name, or 0 for other names.
pid_t writer_of(const std::string& name) {
  const size_t at = name.rfind(kTemporary), dash = name.rfind('-');
  if (at == std::string::npos || at < 2 || dash < at + kTemporary.size()) return 0;
  pid_t writer = 0;
  uint32_t number = 0;
  constexpr int kHexadecimal = 16;
  std::from_chars(name.data() + at + kTemporary.size(), name.data() + dash, writer);
  std::from_chars(name.data() + dash + 1, name.data() + name.size(), number, kHexadecimal);
  // The comparison rejects names with other characters or with leading zeros.
  return writer > 0 && name == temporary_name(name.substr(1, at - 1), writer, number) ? writer : 0;
}

/// Returns true if no process holds the file's lock, as far as the file system can tell. Tests with a shared
/// lock, because an exclusive lock would require write access on NFS.
bool is_unlocked(const Location& file) {
  const int fd = ::openat(file.directory, file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool unlocked = ::flock(fd, LOCK_SH | LOCK_NB) == 0;
  ::close(fd);
  return unlocked;
}

void remove(const Location& file) {
  ::unlinkat(file.directory, file.path.c_str(), 0);
}

/// Returns true once changes in a directory are on the disk. A directory with write but no read permission
/// cannot be opened to sync it; this counts as success.
bool sync_directory(const Location& directory) {
  const int fd = ::openat(directory.directory, directory.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno == EACCES;
  const bool synced = ::fsync(fd) == 0 ||
                      errno == EINVAL;  // some file systems neither support nor need syncing of directories
  const int code = errno;
  ::close(fd);
  errno = code;
  return synced;
}

}  // namespace

NewFile::NewFile(Location location, Leftovers leftovers)
    : location_(std::move(location)), temporary_(location_) {
  if (leftovers == Leftovers::removed) remove_leftovers(location_);
  const std::lock_guard lock(making());
  std::random_device random;
  constexpr size_t kMostOfName = 200;  // leaves room for the suffix; a file name may have at most 255 bytes
  const std::string name = fs::path(location_.path).filename().string().substr(0, kMostOfName);
  do {
    temporary_ = beside(location_, temporary_name(name, ::getpid(), random()));
    fd_ = ::openat(temporary_.directory, temporary_.path.c_str(),
                   O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  } while (fd_ < 0 && errno == EEXIST);
  if (fd_ < 0 && (errno == ENOSPC || errno == EDQUOT)) fail("be created");
  if (fd_ < 0) throw UserError(fmt::format("{}: could not be created: {}", location_.shown(), reason()));
  ::flock(fd_, LOCK_EX | LOCK_NB);
}

NewFile::~NewFile() {
  if (!finished_ && fd_ >= 0) remove(temporary_);
  if (fd_ >= 0) ::close(fd_);
}

void NewFile::fail(const char* doing) const {
  const bool no_space = errno == ENOSPC || errno == EDQUOT;
  const std::string message = fmt::format("{}: could not {}: {}", location_.shown(), doing, reason());
  if (no_space) throw NoSpace(message);
  throw Error(message);
}

void NewFile::append(const void* data, size_t bytes) {
  write(appended_, data, bytes);
  appended_ += static_cast<int64_t>(bytes);
}

void NewFile::write(int64_t offset, const void* data, size_t bytes) {
  constexpr size_t kAtOnce = size_t{1} << 30;  // Linux writes at most 2 GiB per call
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::pwrite(fd_, from, std::min(bytes, kAtOnce), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("be written");
    from += written;
    offset += written;
    bytes -= static_cast<size_t>(written);
  }
}

void NewFile::finish() {
  if (::fsync(fd_) != 0) fail("be written");
  if (::renameat(temporary_.directory, temporary_.path.c_str(), location_.directory,
                 location_.path.c_str()) != 0)
    fail("be renamed");
  finished_ = true;
  // fsync() has already reported write errors, so close() cannot report new ones.
  ::close(std::exchange(fd_, -1));
  // Throws Error instead of NoSpace: the file has already replaced the old one, so freeing space and writing
  // again would not help.
  if (!sync_directory(beside(location_, ".")))
    throw Error(fmt::format("{}: the file was written, but its folder could not be synced to the disk: {}",
                            location_.shown(), reason()));
}

void write_new_file(Location location, std::string_view content) {
  NewFile file(std::move(location));
  file.append(content.data(), content.size());
  file.finish();
}

void remove_leftovers(const Location& file) {
  const std::lock_guard lock(making());
  for (const std::string& name : names_in(beside(file, "."))) {
    const pid_t writer = writer_of(name);
    if (writer == 0) continue;
    // An earlier process may have had the same id as this process, so files with this id can be leftovers,
    // too. The files that this process is still writing are kept, because they are locked.
    const bool gone = writer == ::getpid() || (::kill(writer, 0) != 0 && errno == ESRCH);
    const Location leftover = beside(file, name);
    if (gone && is_unlocked(leftover)) remove(leftover);  // failing to remove a leftover is harmless
  }
}

}  // namespace dtrain
