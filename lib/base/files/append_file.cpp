#include "base/files/append_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

/// Returns 0, or the errno of the failure. Writes all bytes in one call, so that a killed process nearly
/// always leaves a whole line or none.
int append(int fd, std::string_view bytes) {
  struct stat before {};
  if (::fstat(fd, &before) != 0) return errno;
  const ssize_t written = ::write(fd, bytes.data(), bytes.size());
  if (written == static_cast<ssize_t>(bytes.size())) return 0;
  const int why = written < 0 ? errno : ENOSPC;
  // Removes a partially written record, because later calls append other records after it.
  if (written > 0 && ::ftruncate(fd, before.st_size) != 0) return errno;
  return why;
}

}  // namespace

void append_file(const Location& location, std::string_view bytes) {
  const int fd =
      ::openat(location.directory, location.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const int why = fd < 0 ? errno : append(fd, bytes);
  if (fd >= 0) ::close(fd);
  if (why == 0) return;
  throw Error(
      fmt::format("{}: could not be written: {}", location.shown(), std::generic_category().message(why)));
}

}  // namespace dtrain
