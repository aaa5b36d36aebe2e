#include "base/new_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <random>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kTemporary = ".tmp-";  // then the writer's process id, "-" and a random number

/// Held while a temporary file of this process is made but not yet locked.
std::mutex& making() {
  static std::mutex mutex;
  return mutex;
}

std::string reason() {
  return std::generic_category().message(errno);
}

fs::path folder_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

[[noreturn]] void fail(const std::string& path, std::string_view doing) {
  throw Error(fmt::format("{}: could not {}: {}", path, doing, reason()));
}

/// The process that a temporary file's name says, or nothing (0) for another name.
pid_t writer_of(const std::string& name) {
  const size_t at = name.rfind(kTemporary);
  if (!name.starts_with('.') || at == std::string::npos) return 0;
  pid_t writer = 0;
  const char* last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data() + at + kTemporary.size(), last, writer);
  const bool number_follows = end != last && *end == '-' && std::all_of(end + 1, last, [](char c) {
                                return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                              });
  return error == std::errc() && (end == last || number_follows) && writer > 0 ? writer : 0;
}

/// Whether a writer holds the file's lock. Where the file system knows no locks the process ids have to do.
bool is_locked(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return locked;
}

}  // namespace

NewFile::NewFile(const std::string& path) : path_(path) {
  remove_leftovers(path);
  const std::lock_guard lock(making());
  std::random_device random;
  const std::string name = fs::path(path).filename().string();
  do {
    temporary_ =
        (fs::path(path).parent_path() / fmt::format(".{}{}{}-{:08x}", name, kTemporary, ::getpid(), random()))
            .string();
    fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  } while (fd_ < 0 && errno == EEXIST);
  if (fd_ < 0) throw UserError(fmt::format("{}: could not be created: {}", path, reason()));
  ::flock(fd_, LOCK_EX | LOCK_NB);
}

NewFile::~NewFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (fd_ >= 0) ::close(fd_);
}

void NewFile::append(const void* data, size_t bytes) {
  write(appended_, data, bytes);
  appended_ += static_cast<int64_t>(bytes);
}

void NewFile::write(int64_t offset, const void* data, size_t bytes) {
  constexpr size_t kAtOnce = size_t{1} << 30;  // Linux writes at most 2 GiB a call
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::pwrite(fd_, from, std::min(bytes, kAtOnce), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, "be written");
    from += written;
    offset += written;
    bytes -= static_cast<size_t>(written);
  }
}

void NewFile::finish() {
  if (::fsync(fd_) != 0) fail(path_, "be written");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, "get its name");
  temporary_.clear();
  ::close(std::exchange(fd_, -1));  // fsync has reported every failed write
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail(path_, "get its name onto the disk");
  const bool synced = ::fsync(folder) == 0 || errno == EINVAL;  // some file systems cannot, and need not
  const int code = errno;
  ::close(folder);
  errno = code;
  if (!synced) fail(path_, "get its name onto the disk");
}

void remove_leftovers(const std::string& path) {
  const std::lock_guard lock(making());
  std::error_code ignored;  // what cannot be cleaned does no harm
  for (fs::directory_iterator entry(folder_of(path), ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const pid_t writer = writer_of(entry->path().filename().string());
    if (writer == 0) continue;
    // A dead process may have had this one's number; what this one writes is locked.
    const bool gone = writer == ::getpid() || (::kill(writer, 0) != 0 && errno == ESRCH);
    if (gone && !is_locked(entry->path())) ::unlink(entry->path().c_str());
  }
}

}  // namespace dtrain
