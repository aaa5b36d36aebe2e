// Reads variable-length values of HDF5 files without libhdf5.
//
// An array of variable-length values contains global heap IDs. They are called references here, but are not
// HDF5's object references. The values are stored elsewhere in the file, in collections. All collections
// together are the global heap of the file (HDF5 File Format Specification, III.E).
//
// libhdf5 does not validate the content of a collection. Versions 1.10 to 2.0 loop forever if free space has
// the size 0, and version 1.10 writes out of bounds if a value is longer than its reference says. Therefore
// libhdf5 is only used to read the references, because it supports all ways to store arrays. The code in this
// file reads the values and validates the location of each value. It does not search the file for collections
// because the bytes of an image could look like a collection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "hdf5/hdf5_session.h"

namespace dtrain {

/// Registers a conversion function for the classes of the types `from` and `to`. libhdf5 uses it instead of
/// its built-in conversions for these classes. The function remains registered as long as this object exists.
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

/// As long as an object of this class exists (within a session), libhdf5 does not follow references. H5Dread
/// and H5Aread return the references as they are stored in the file if the type Hdf5Heap::reference_type() is
/// requested. Variable-length fill values are read as empty values. Variable-length data cannot be written
/// while the object exists.
class Hdf5References {
 public:
  Hdf5References();

 private:
  Hdf5Handle variable_, opaque_;
  Hdf5Conversion as_stored_, as_empty_;
};

/// Reads `bytes` bytes of a file, beginning at `offset`, into `dst`. Throws an exception on failure.
using ReadAt = std::function<void(int64_t offset, void* dst, size_t bytes)>;

/// The global heap of a file. Safe to use from several threads if `read` is safe to use from several threads.
class Hdf5Heap {
 public:
  /// `file` is the file that libhdf5 has opened, and `file_bytes` is its size. Needs a session. Throws
  /// UserError, with the path, if addresses or lengths have more than 8 bytes. No program writes such files.
  Hdf5Heap(hid_t file, const std::string& path, int64_t file_bytes, ReadAt read);

  int64_t file_bytes() const { return static_cast<int64_t>(file_bytes_); }
  size_t reference_bytes() const;
  /// Returns the in-memory type of a reference. Needs a session.
  Hdf5Handle reference_type() const;

  struct Place {
    int64_t offset, bytes;
  };
  /// Returns the location of the value to which a reference of reference_bytes() bytes refers. The whole
  /// value is within the file. If the value is empty, its location is meaningless. `where` is the name of the
  /// value in messages. Throws UserError if the value does not exist or if its collection is malformed.
  /// Always terminates because at most the 65536 objects of one collection are visited. For a typical
  /// collection, only one block of 4 KiB is read.
  Place find(std::span<const std::byte> reference, const std::string& where) const;
  /// Returns the value to which a reference refers.
  std::string text(std::span<const std::byte> reference, const std::string& where) const;

 private:
  // `base_` is the end of the user block. Addresses in the file are relative to it.
  uint64_t file_bytes_, base_ = 0;
  // Sizes of addresses and lengths in bytes, from the superblock of the file.
  size_t address_bytes_ = 0, length_bytes_ = 0;
  ReadAt read_;
};

}  // namespace dtrain
