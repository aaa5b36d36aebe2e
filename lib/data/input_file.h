// Files as readers read them: by offset, or as a stream that unpacks gzip. Every error names the path.
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
  /// Throws UserError if it cannot be opened or is no regular file.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return status_.st_size; }
  /// Throws Error where the file is not any more what it was when it was opened: cut short, grown, written
  /// to. (Another file under its name is none of its business.)
  void check_unchanged() const;
  /// Whether the descriptor is open on this very file, as it was when this was opened.
  bool is_same(int descriptor) const;
  /// Whether another program holds a lock on the file, as those do that write to it by libhdf5.
  bool is_locked() const;
  /// The file as read-only memory, to be unmapped by the caller; MAP_FAILED, and errno, where it cannot be.
  void* map() const;
  /// Reads exactly `bytes` at `offset`. Throws UserError if the file ends before.
  void read(int64_t offset, void* dst, size_t bytes) const;
  /// Whether it begins as gzip files do.
  bool is_gzip() const;

 private:
  std::string path_;
  int fd_ = -1;
  struct stat status_ {};
};

/// A file from its beginning to its end, unpacked where it is gzip. Throws Error where the file has changed
/// until its end is read.
class InputStream {
 public:
  explicit InputStream(const std::string& path);
  ~InputStream();
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  const std::string& path() const { return file_->path(); }
  /// For reading on at any offset of what is not packed.
  const std::shared_ptr<const InputFile>& file() const { return file_; }
  bool is_packed() const { return unpacking_ != nullptr; }
  /// Bytes read so far, unpacked.
  int64_t offset() const { return offset_; }
  /// Reads up to `bytes`; fewer only at the end. Throws UserError for damaged or truncated gzip data.
  size_t read(void* dst, size_t bytes);
  /// Reads exactly `bytes` of `what`. Throws UserError if the file ends before.
  void read_exactly(void* dst, size_t bytes, const std::string& what);
  /// No file of this size can unpack to more than this (deflate packs at most 1032 to 1).
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
