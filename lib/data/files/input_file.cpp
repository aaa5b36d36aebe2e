#include "data/files/input_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <isa-l/igzip_lib.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/stopwatch.h"
#include "data/loader/read_seconds.h"

namespace dtrain {

namespace {

/// Raises the soft limit on open files to the hard limit, if the system allows it.
void raise_limit_of_open_files() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int open_to_read(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // opening a pipe must not wait for its writer
  const int fd = open(path.c_str(), kFlags);
  if (fd >= 0 || errno != EMFILE) return fd;
  raise_limit_of_open_files();
  return open(path.c_str(), kFlags);
}

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  fd_ = open_to_read(path_);
  if (fd_ < 0 || fstat(fd_, &status_) != 0) {
    const std::string reason = std::strerror(errno);
    if (fd_ >= 0) close(fd_);
    throw UserError(fmt::format("{}: cannot open the file: {}", path_, reason));
  }
  if (!S_ISREG(status_.st_mode)) {
    close(fd_);
    throw UserError(fmt::format("{}: expected a file, found {}", path_, name_of_type(status_.st_mode)));
  }
}

InputFile::~InputFile() {
  close(fd_);
}

namespace {

bool same_content(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

void InputFile::check_unchanged() const {
  struct stat now {};
  if (fstat(fd_, &now) != 0)
    throw Error(fmt::format("{}: cannot be accessed any more: {}", path_, std::strerror(errno)));
  if (same_content(status_, now)) return;
  throw Error(
      fmt::format("{}: the file was changed while it was in use; expected {} bytes, found {}", path_, size(),
                  now.st_size == size() ? "the same number of bytes with a different modification time"
                                        : fmt::to_string(now.st_size)));
}

bool InputFile::is_same(int descriptor) const {
  struct stat other {};
  return fstat(descriptor, &other) == 0 && other.st_dev == status_.st_dev && other.st_ino == status_.st_ino &&
         same_content(status_, other);
}

void* InputFile::map() const {
  return mmap(nullptr, static_cast<size_t>(size()), PROT_READ, MAP_SHARED, fd_, 0);
}

void InputFile::read(int64_t offset, void* dst, size_t bytes) const {
  const Stopwatch stopwatch(read_seconds_of_thread().files);
  auto* out = static_cast<char*>(dst);
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = pread(fd_, out + done, bytes - done, offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw Error(fmt::format("{}: cannot be read at byte {}: {}", path_, offset, std::strerror(errno)));
    if (got == 0)
      throw UserError(
          fmt::format("{}: expected {} bytes at byte {}, found only {} bytes before the end of the file",
                      path_, bytes, offset, done));
    done += static_cast<size_t>(got);
  }
}

void InputFile::show_use() const {
  flock(fd_, LOCK_SH | LOCK_NB);
}

bool InputFile::is_in_use() const {
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  flock(fd_, LOCK_UN);
  return false;
}

bool InputFile::is_gzip() const {
  unsigned char magic[2] = {0, 0};
  if (size() < 2) return false;
  read(0, magic, sizeof magic);
  return magic[0] == 0x1f && magic[1] == 0x8b;
}

struct InputStream::Unpacking {
  inflate_state state;
  std::vector<uint8_t> packed = std::vector<uint8_t>(size_t{1} << 18);
};

InputStream::InputStream(const std::string& path) : file_(std::make_shared<const InputFile>(path)) {
  if (!file_->is_gzip()) return;
  unpacking_ = std::make_unique<Unpacking>();
  isal_inflate_init(&unpacking_->state);
  unpacking_->state.next_in = unpacking_->packed.data();
  unpacking_->state.crc_flag = ISAL_GZIP;  // verify the gzip header and checksum
}

InputStream::~InputStream() = default;

size_t InputStream::read(void* dst, size_t bytes) {
  auto* out = static_cast<std::byte*>(dst);
  size_t done = 0;
  while (done < bytes) {
    const size_t got = unpacking_ ? unpack(out + done, bytes - done) : read_packed(out + done, bytes - done);
    if (got == 0) break;
    done += got;
    offset_ += static_cast<int64_t>(got);
  }
  return done;
}

/// Reads bytes without decompressing them. Returns their number, which is 0 at the end of the file.
size_t InputStream::read_packed(void* dst, size_t most) {
  const size_t bytes = std::min(most, static_cast<size_t>(file_->size() - packed_offset_));
  file_->read(packed_offset_, dst, bytes);
  packed_offset_ += static_cast<int64_t>(bytes);
  if (packed_offset_ == file_->size()) file_->check_unchanged();
  return bytes;
}

/// Moves the remaining compressed data to the front of the buffer and fills the rest.
void InputStream::fill_packed() {
  auto& [state, packed] = *unpacking_;
  std::memmove(packed.data(), state.next_in, state.avail_in);
  state.next_in = packed.data();
  state.avail_in +=
      static_cast<uint32_t>(read_packed(packed.data() + state.avail_in, packed.size() - state.avail_in));
}

/// Decompresses bytes to `dst` and returns their number. Returns 0 after the last member (a gzip file may
/// have several members).
size_t InputStream::unpack(void* dst, size_t most) {
  inflate_state& state = unpacking_->state;
  const auto fail = [&](const char* what, uint32_t unpacked) {
    throw UserError(fmt::format("{}: expected complete gzip data, found {} after {} decompressed bytes",
                                path(), what, offset_ + unpacked));
  };
  const auto room = static_cast<uint32_t>(std::min<size_t>(most, 1u << 30));
  state.next_out = static_cast<uint8_t*>(dst);
  state.avail_out = room;
  for (;;) {
    if (state.avail_in == 0) fill_packed();
    const bool ended = state.avail_in == 0;
    if (state.block_state == ISAL_BLOCK_FINISH) {
      fill_packed();  // ISA-L needs a complete member header
      const uint8_t* next = state.next_in;
      // Ignores trailing bytes (usually zeros), which do not begin another gzip member.
      if (state.avail_in < 2 || next[0] != 0x1f || next[1] != 0x8b) return 0;
      isal_inflate_reset(&state);
    }
    const int status = isal_inflate(&state);
    const uint32_t unpacked = room - state.avail_out;
    if (status == ISAL_INCORRECT_CHECKSUM) fail("a wrong checksum", unpacked);
    if (status < 0) fail("damage", unpacked);
    if (unpacked > 0) return unpacked;
    if (ended && state.block_state != ISAL_BLOCK_FINISH) fail("the end of the file", unpacked);
  }
}

void InputStream::read_exactly(void* dst, size_t bytes, const std::string& what) {
  const int64_t start = offset_;
  const size_t got = read(dst, bytes);
  if (got < bytes)
    throw UserError(
        fmt::format("{}: expected {} ({} bytes at byte {}), found only {} bytes before the end of the data",
                    path(), what, bytes, start, got));
}

std::string read_rest(InputStream& stream) {
  std::string all;
  if (!stream.is_packed()) {
    all.resize(static_cast<size_t>(stream.file()->size() - stream.offset()));
    stream.read(all.data(), all.size());
    return all;
  }
  size_t size = 0;
  for (;;) {
    if (size == all.size()) all.resize(std::max<size_t>(size_t{1} << 16, 2 * size));
    const size_t got = stream.read(all.data() + size, all.size() - size);
    if (got == 0) break;
    size += got;
  }
  all.resize(size);
  all.shrink_to_fit();
  return all;
}

}  // namespace dtrain
