// The in-memory file that libhdf5 writes while a checkpoint is built.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hdf5.h>

namespace dtrain {

/// A file in memory that stores libhdf5's metadata and refers to the arrays, so building a checkpoint copies
/// none of them. Requires an Hdf5Session, except for parts().
class SparseFile {
 public:
  SparseFile() = default;
  SparseFile(const SparseFile&) = delete;
  SparseFile& operator=(const SparseFile&) = delete;

  /// Sets up an access list so that libhdf5 creates or opens its next file in this object.
  void install(hid_t access_list);

  /// Makes `bytes` the content of the file from `offset` on. The bytes are not copied and must outlive this
  /// object.
  void refer(size_t offset, std::span<const std::byte> bytes);

  /// Returns the whole file, in order. Call it after libhdf5 has closed the file. Valid for the lifetime of
  /// this object.
  std::vector<std::span<const std::byte>> parts();

 private:
  friend struct SparseFileDriver;

  static constexpr size_t kPage = 4096;
  using Page = std::array<std::byte, kPage>;

  void write(size_t offset, std::span<const std::byte> bytes);
  void read(size_t offset, std::span<std::byte> bytes) const;
  /// Returns the data at `offset`, null for zeros. Sets `end` to the end of the array or page that contains
  /// it.
  const std::byte* find(size_t offset, size_t& end) const;

  std::map<size_t, Page> pages_;  ///< indexed by page number; bytes on no page are zero
  std::map<size_t, std::span<const std::byte>> arrays_;
  std::deque<std::vector<std::byte>> between_;  ///< the bytes between arrays, filled in by parts()
  size_t size_ = 0;
};

}  // namespace dtrain
