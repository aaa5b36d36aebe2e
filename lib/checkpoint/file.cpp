#include "checkpoint/file.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <new>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/new_file.h"
#include "base/files/paths.h"

namespace dtrain {

namespace {
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

std::string reason() {
  return std::generic_category().message(errno);
}

}  // namespace

Bytes allocate_block(size_t size) {
  constexpr size_t kLargePage = size_t{2} << 20, kLarge = 8 * kLargePage;
  if (size < kLarge) return {std::make_shared_for_overwrite<std::byte[]>(size), size};
  const size_t whole = (size + kLargePage - 1) / kLargePage * kLargePage;
  void* const block = std::aligned_alloc(kLargePage, whole);
  if (!block) throw std::bad_alloc();
  // only a hint: if large pages are not available, small pages are used
  ::madvise(block, whole, MADV_HUGEPAGE);
  return {std::shared_ptr<std::byte[]>(static_cast<std::byte*>(block), std::free), size};
}

void write_file(const Location& location, Parts parts) {
  std::optional<NewFile> file;
  try {
    file.emplace(location);
  } catch (const UserError& error) {
    throw Error(error.what());  // an error during a run is not an error in the user's configuration
  }
  for (const auto part : parts) file->append(part.data(), part.size());
  file->finish();
}

Bytes read_file(const std::string& path) {
  // O_NONBLOCK is needed because opening a pipe would otherwise wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0)
    throw UserError(fmt::format("{}: could not be read: {}", path, reason()));
  if (!S_ISREG(status.st_mode))
    throw UserError(fmt::format("{}: expected a file, found {}", path, name_of_type(status.st_mode)));
  const auto size = static_cast<size_t>(status.st_size);
  Bytes bytes = allocate_block(size);
  bytes.size = 0;
  while (bytes.size < size) {
    const ssize_t got = ::read(file.get(), bytes.data.get() + bytes.size, size - bytes.size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw UserError(fmt::format("{}: could not be read: {}", path, reason()));
    // the file was shortened in the meantime; the caller notices this when it checks the length
    if (got == 0) break;
    bytes.size += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace dtrain
