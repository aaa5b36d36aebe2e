#include "data/input_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd_ < 0 || fstat(fd_, &status) != 0) {
    const std::string reason = std::strerror(errno);
    if (fd_ >= 0) close(fd_);
    throw UserError(fmt::format("{}: cannot open the file: {}", path_, reason));
  }
  if (!S_ISREG(status.st_mode)) {
    close(fd_);
    throw UserError(fmt::format("{}: expected a file, found {}", path_,
                                S_ISDIR(status.st_mode) ? "a directory" : "something else"));
  }
  size_ = status.st_size;
}

InputFile::~InputFile() {
  close(fd_);
}

void InputFile::read(int64_t offset, void* dst, size_t bytes) const {
  auto* out = static_cast<char*>(dst);
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = pread(fd_, out + done, bytes - done, offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(fmt::format("{}: reading at byte {}: {}", path_, offset, std::strerror(errno)));
    if (got == 0)
      throw UserError(fmt::format("{}: expected {} bytes at byte {}, found the file's end after {}", path_,
                                  bytes, offset, done));
    done += static_cast<size_t>(got);
  }
}

bool InputFile::is_gzip() const {
  unsigned char magic[2] = {0, 0};
  if (size_ < 2) return false;
  read(0, magic, sizeof magic);
  return magic[0] == 0x1f && magic[1] == 0x8b;
}

InputStream::InputStream(const std::string& path) : path_(path) {
  const InputFile file(path);  // says what is wrong where something is; zlib does not
  most_bytes_ = file.is_gzip() ? file.size() * 1032 : file.size();
  file_.reset(gzopen(path.c_str(), "rbe"));
  if (!file_) throw UserError(fmt::format("{}: cannot open the file", path));
  gzbuffer(file_.get(), 1u << 18);
}

size_t InputStream::read(void* dst, size_t bytes) {
  auto* out = static_cast<char*>(dst);
  size_t done = 0;
  while (done < bytes) {
    const auto want = static_cast<unsigned>(std::min<size_t>(bytes - done, 1u << 30));
    const int got = gzread(file_.get(), out + done, want);
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
      std::string_view reason = message;
      if (reason.starts_with(path_ + ": ")) reason.remove_prefix(path_.size() + 2);
      throw UserError(fmt::format("{}: expected whole gzip data, found damage after {} unpacked bytes: {}",
                                  path_, offset_ + std::max(got, 0), reason));
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
    offset_ += got;
  }
  return done;
}

void InputStream::read_exactly(void* dst, size_t bytes, const std::string& what) {
  const int64_t start = offset_;
  const size_t got = read(dst, bytes);
  if (got < bytes)
    throw UserError(fmt::format("{}: expected {} ({} bytes at byte {}), found the end after {}", path_, what,
                                bytes, start, got));
}

}  // namespace dtrain
