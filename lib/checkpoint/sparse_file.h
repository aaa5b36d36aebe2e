// The file that libhdf5 sees while a checkpoint is built.
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

/// A file in memory that keeps what libhdf5 writes (its metadata) and refers to the arrays where they are, so
/// that building a checkpoint copies none of them. Used under an Hdf5Session, except for `parts`.
class SparseFile {
 public:
  SparseFile() = default;
  SparseFile(const SparseFile&) = delete;
  SparseFile& operator=(const SparseFile&) = delete;

  /// Makes libhdf5 create or open its next file with this access list in here.
  void install(hid_t access_list);

  /// Lets the file hold `bytes` from `offset` on; they stay the caller's and have to outlive this.
  void refer(size_t offset, std::span<const std::byte> bytes);

  /// The whole file, in order, once libhdf5 has closed it; valid as long as this lives.
  std::vector<std::span<const std::byte>> parts();

 private:
  friend struct SparseFileDriver;

  static constexpr size_t kPage = 4096;
  using Page = std::array<std::byte, kPage>;

  void write(size_t offset, std::span<const std::byte> bytes);
  void read(size_t offset, std::span<std::byte> bytes) const;
  /// What there is at `offset`, up to the end of its array or page; `end` says where that is. Null for zeros.
  const std::byte* find(size_t offset, size_t& end) const;

  std::map<size_t, Page> pages_;  ///< by their number; what is in none is zero
  std::map<size_t, std::span<const std::byte>> arrays_;
  std::deque<std::vector<std::byte>> between_;  ///< what `parts` found between arrays
  size_t size_ = 0;
};

}  // namespace dtrain
