// Values of variable length in HDF5 files, which dtrain reads itself.
//
// An array of them holds global heap IDs (here: references; not HDF5's object references), and the values lie
// elsewhere, in collections that make up the file's global heap (HDF5 File Format Specification, III.E).
// libhdf5 trusts what a collection says: 1.10 to 2.0 run for ever where free space has no size, and 1.10
// writes beyond its memory where a value is longer than its reference says. So libhdf5 reads the references,
// whatever way they are packed, and no more, and each value is checked where it lies as it is read. The file
// is not searched for collections: a picture's bytes could look like one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "hdf5/hdf5_session.h"

namespace dtrain {

/// A conversion of values that libhdf5 prefers to its own for these classes of types, while this lives.
class Hdf5Conversion {
 public:
  Hdf5Conversion(const char* name, hid_t from, hid_t to, H5T_conv_t convert);
  ~Hdf5Conversion();
  Hdf5Conversion(const Hdf5Conversion&) = delete;
  Hdf5Conversion& operator=(const Hdf5Conversion&) = delete;

 private:
  const char* name_;
  H5T_conv_t convert_;
};

/// While this lives, within a session, libhdf5 follows no reference. H5Dread and H5Aread give references as
/// the file has them when they are asked for Hdf5Heap::reference_type(); a fill value of
/// variable length counts as empty. Nothing of variable length can be written meanwhile.
class Hdf5References {
 public:
  Hdf5References();

 private:
  Hdf5Handle variable_, opaque_;
  Hdf5Conversion as_stored_, as_empty_;
};

/// Puts so many bytes of a file, from `offset` on, into `dst`; throws where it cannot.
using ReadAt = std::function<void(int64_t offset, void* dst, size_t bytes)>;

/// The global heap of a file. Safe to use from several threads, if `read` is.
class Hdf5Heap {
 public:
  /// Of the file that libhdf5 has open as `file`, which has `file_bytes` bytes. Needs a session. Throws
  /// UserError, with the path, where addresses have more than 8 bytes, as no file's have.
  Hdf5Heap(hid_t file, const std::string& path, int64_t file_bytes, ReadAt read);

  int64_t file_bytes() const { return static_cast<int64_t>(file_bytes_); }
  size_t reference_bytes() const;
  /// The type in memory of a reference. Needs a session.
  Hdf5Handle reference_type() const;

  struct Place {
    int64_t offset, bytes;
  };
  /// Where the value lies that a reference of reference_bytes() bytes leads to: all of it is within the file.
  /// An empty value may be anywhere. `where` is what messages call the value. Throws UserError where there is
  /// none, or a collection that is malformed on the way to it. The collection's 65536 objects at most are
  /// gone over, so this comes to an end, and one block of 4 KiB is read for the usual collection.
  Place find(std::span<const std::byte> reference, const std::string& where) const;
  /// The value itself.
  std::string text(std::span<const std::byte> reference, const std::string& where) const;

 private:
  uint64_t file_bytes_, base_ = 0;               // addresses count from the end of the user block
  size_t address_bytes_ = 0, length_bytes_ = 0;  // what the file's superblock gives addresses and lengths
  ReadAt read_;
};

}  // namespace dtrain
