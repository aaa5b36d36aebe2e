// Reads files at any offset, or as a stream that decompresses gzip. Every error message names the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <sys/stat.h>

namespace dtrain {

/// A file that any thread can read at any offset.
class InputFile {
 public:
  /// Raises the process's soft limit on open files if it is reached. Throws UserError if the file cannot be
  /// opened or is not a regular file.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return status_.st_size; }
  /// Returns the time of the last change of the content, in nanoseconds since 1970.
  int64_t written_ns() const {
    return int64_t{status_.st_mtim.tv_sec} * 1'000'000'000 + status_.st_mtim.tv_nsec;
  }
  /// Throws Error if the file has changed since it was opened: it was truncated, has grown or was written to.
  /// Does not throw if a new file has replaced the file under the same name, because the old file stays open.
  void check_unchanged() const;
  /// Returns true if `descriptor` refers to this file and its content is as it was when this object opened
  /// it.
  bool is_same(int descriptor) const;
  /// Maps the file as read-only memory, which the caller unmaps. Returns MAP_FAILED and sets errno if the
  /// file cannot be mapped.
  void* map() const;
  /// Reads exactly `bytes` bytes at `offset`. Throws UserError if the file ends earlier, and Error if the
  /// system cannot read it.
  void read(int64_t offset, void* dst, size_t bytes) const;
  /// Marks the file as in use until it is closed, so that is_in_use() returns true in other processes. Has no
  /// effect if the file system does not support locks.
  void show_use() const;
  /// Returns true if another process, or another InputFile of this process, has marked the file as in use.
  bool is_in_use() const;
  /// Returns true if the file starts with gzip's magic number.
  bool is_gzip() const;

 private:
  std::string path_;
  int fd_ = -1;
  struct stat status_ {};
};

/// Reads a file sequentially and decompresses it if it is gzip. Throws Error if the file changes before its
/// end is read.
class InputStream {
 public:
  explicit InputStream(const std::string& path);
  ~InputStream();
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  const std::string& path() const { return file_->path(); }
  /// Returns the file itself. If the file is not compressed, callers can read it at any offset.
  const std::shared_ptr<const InputFile>& file() const { return file_; }
  bool is_packed() const { return unpacking_ != nullptr; }
  /// Returns the number of decompressed bytes read so far.
  int64_t offset() const { return offset_; }
  /// Reads up to `bytes` bytes and returns the number of bytes read. This number is smaller than `bytes` only
  /// at the end of the stream. Throws UserError for damaged or truncated gzip data.
  size_t read(void* dst, size_t bytes);
  /// Reads exactly `bytes` bytes; `what` names them in messages. Throws UserError if the file ends earlier.
  void read_exactly(void* dst, size_t bytes, const std::string& what);
  /// Returns an upper bound on the decompressed size: deflate compresses data by a factor of at most 1032.
  int64_t most_bytes() const { return unpacking_ ? file_->size() * 1032 : file_->size(); }

 private:
  struct Unpacking;

  size_t read_packed(void* dst, size_t most);
  void fill_packed();
  size_t unpack(void* dst, size_t most);

  std::shared_ptr<const InputFile> file_;
  int64_t packed_offset_ = 0;  // position in the compressed file
  int64_t offset_ = 0;
  std::unique_ptr<Unpacking> unpacking_;  // null if the file is not compressed
};

/// Reads the stream to its end.
std::string read_rest(InputStream& stream);

}  // namespace dtrain
