#include "data/files/memory_file.h"

#include <cerrno>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

[[noreturn]] void fail(const char* doing) {
  throw Error(fmt::format("{}: {}", doing, std::generic_category().message(errno)));
}

}  // namespace

MemoryFile::MemoryFile() : fd_(memfd_create("dtrain", MFD_CLOEXEC)) {
  if (fd_ < 0) fail("a file in memory could not be created");
}

MemoryFile::MemoryFile(std::string_view text) : MemoryFile() {
  append(text.data(), text.size());
}

MemoryFile::~MemoryFile() {
  if (fd_ >= 0) close(fd_);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

MemoryFile MemoryFile::read_from(int descriptor) {
  MemoryFile file;
  std::vector<char> block(size_t{1} << 20);
  for (;;) {
    const ssize_t got = read(descriptor, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("standard input could not be read");
    if (got == 0) return file;
    file.append(block.data(), static_cast<size_t>(got));
  }
}

void MemoryFile::append(const char* data, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t done = write(fd_, data, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("a file in memory could not be written");
    data += done;
    bytes -= static_cast<size_t>(done);
  }
}

std::string MemoryFile::path() const {
  return fmt::format("/proc/self/fd/{}", fd_);
}

}  // namespace dtrain
