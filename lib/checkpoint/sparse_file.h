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

/// A file in memory. It stores the metadata that libhdf5 writes, but only refers to the arrays, so that no
/// array is copied while a checkpoint is built. All functions except parts() require an Hdf5Session.
class SparseFile {
 public:
  SparseFile() = default;
  SparseFile(const SparseFile&) = delete;
  SparseFile& operator=(const SparseFile&) = delete;

  /// Sets up an access list. The next file that libhdf5 creates or opens with this list is then this object.
  void install(hid_t access_list);

  /// Makes `bytes` the content of the file that begins at `offset`. The bytes are not copied, so they must
  /// outlive this object.
  void refer(size_t offset, std::span<const std::byte> bytes);

  /// Returns the whole file as a list of parts in order. Call this function after libhdf5 has closed the
  /// file. The result is valid as long as this object exists.
  std::vector<std::span<const std::byte>> parts();

 private:
  friend struct SparseFileDriver;

  static constexpr size_t kPage = 4096;
  using Page = std::array<std::byte, kPage>;

  void write(size_t offset, std::span<const std::byte> bytes);
  void read(size_t offset, std::span<std::byte> bytes) const;
  /// Returns the data at `offset`, or null if the bytes there are zero. Sets `end` to the end of the array or
  /// page that contains `offset`.
  const std::byte* find(size_t offset, size_t& end) const;

  std::map<size_t, Page> pages_;  ///< indexed by page number; missing pages contain zeros
  std::map<size_t, std::span<const std::byte>> arrays_;
  std::deque<std::vector<std::byte>> between_;  ///< the bytes between arrays; parts() fills this list
  size_t size_ = 0;
};

}  // namespace dtrain
