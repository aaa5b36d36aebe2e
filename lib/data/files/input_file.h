// Readers read files by offset, or as a stream that unpacks gzip. Every error names the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <sys/stat.h>

namespace dtrain {

/// A file that is read at any offset, by any thread.
class InputFile {
 public:
  /// Raises the process's soft limit of open files where it is reached. Throws UserError where the file
  /// cannot be opened or is no regular file.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return status_.st_size; }
  /// When its content was last changed, in nanoseconds since 1970.
  int64_t written_ns() const {
    return int64_t{status_.st_mtim.tv_sec} * 1'000'000'000 + status_.st_mtim.tv_nsec;
  }
  /// Throws Error where the file is not any more what it was when it was opened: it was cut short, has grown,
  /// or was written to. A new file under the same name is no such change, for the old one stays open.
  void check_unchanged() const;
  /// Whether the descriptor is open on this very file, as it was when this was opened.
  bool is_same(int descriptor) const;
  /// Maps the file as read-only memory, which the caller unmaps. Returns MAP_FAILED, and sets errno, where
  /// the file cannot be mapped.
  void* map() const;
  /// Reads exactly `bytes` bytes at `offset`. Throws UserError where the file ends before, and Error where
  /// the system cannot read it.
  void read(int64_t offset, void* dst, size_t bytes) const;
  /// Shows other processes that the file is in use, as long as it is open (where the file system has locks).
  void show_use() const;
  /// Whether another process shows that it uses the file, or this one by another InputFile.
  bool is_in_use() const;
  /// Whether it begins as gzip files do.
  bool is_gzip() const;

 private:
  std::string path_;
  int fd_ = -1;
  struct stat status_ {};
};

/// Reads a file from its beginning to its end, and unpacks it where it is gzip. Throws Error where the file
/// changes before its end is read.
class InputStream {
 public:
  explicit InputStream(const std::string& path);
  ~InputStream();
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  const std::string& path() const { return file_->path(); }
  /// The file itself, for reading on at any offset where it is not packed.
  const std::shared_ptr<const InputFile>& file() const { return file_; }
  bool is_packed() const { return unpacking_ != nullptr; }
  /// How many bytes were read so far, unpacked.
  int64_t offset() const { return offset_; }
  /// Reads up to `bytes` bytes and returns how many; fewer only at the end. Throws UserError for damaged or
  /// truncated gzip data.
  size_t read(void* dst, size_t bytes);
  /// Reads exactly `bytes` bytes, which messages call `what`. Throws UserError where the file ends before.
  void read_exactly(void* dst, size_t bytes, const std::string& what);
  /// The most bytes that a file of this size can unpack to: deflate packs at most 1032 to 1.
  int64_t most_bytes() const { return unpacking_ ? file_->size() * 1032 : file_->size(); }

 private:
  struct Unpacking;

  size_t read_packed(void* dst, size_t most);
  void fill_packed();
  size_t unpack(void* dst, size_t most);

  std::shared_ptr<const InputFile> file_;
  int64_t packed_offset_ = 0;  // in the file
  int64_t offset_ = 0;
  std::unique_ptr<Unpacking> unpacking_;  // null for a plain file
};

}  // namespace dtrain
