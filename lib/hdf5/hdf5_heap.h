// Reads variable-length values of HDF5 files without libhdf5.
//
// An array of such values holds global heap IDs (called references here; not HDF5's object references). The
// values are stored elsewhere, in collections that make up the file's global heap (HDF5 File Format
// Specification, III.E). libhdf5 trusts the contents of a collection: versions 1.10 to 2.0 loop forever if
// free space has size 0, and 1.10 writes out of bounds if a value is longer than its reference says. So
// libhdf5 only reads the references (it handles all packings of arrays), and this code validates each value's
// location as it reads it. It does not search the file for collections: an image's bytes could look like one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "hdf5/hdf5_session.h"

namespace dtrain {

/// Registers a conversion that libhdf5 prefers to its built-in conversions between the classes of the types
/// `from` and `to`. The conversion is registered for the lifetime of the object.
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

/// While an object of this class exists (within a session), libhdf5 follows no references. H5Dread and
/// H5Aread return references as stored in the file if asked for Hdf5Heap::reference_type(). A variable-length
/// fill value reads as empty. Variable-length data cannot be written meanwhile.
class Hdf5References {
 public:
  Hdf5References();

 private:
  Hdf5Handle variable_, opaque_;
  Hdf5Conversion as_stored_, as_empty_;
};

/// Reads `bytes` bytes of a file at `offset` into `dst`. Throws on failure.
using ReadAt = std::function<void(int64_t offset, void* dst, size_t bytes)>;

/// The global heap of a file. Thread-safe if `read` is.
class Hdf5Heap {
 public:
  /// `file` is the file as opened by libhdf5, and `file_bytes` its size. Needs a session. Throws UserError,
  /// with the path, if addresses have more than 8 bytes, which real files never have.
  Hdf5Heap(hid_t file, const std::string& path, int64_t file_bytes, ReadAt read);

  int64_t file_bytes() const { return static_cast<int64_t>(file_bytes_); }
  size_t reference_bytes() const;
  /// Returns the in-memory type of a reference. Needs a session.
  Hdf5Handle reference_type() const;

  struct Place {
    int64_t offset, bytes;
  };
  /// Returns the location of the value for a reference of reference_bytes() bytes; all of it is within the
  /// file. The location of an empty value is meaningless. `where` names the value in messages. Throws
  /// UserError if the value does not exist or its collection is malformed. Visits at most the 65536 objects
  /// of a collection, so it always terminates; for a typical collection it reads one block of 4 KiB.
  Place find(std::span<const std::byte> reference, const std::string& where) const;
  /// Returns the value itself.
  std::string text(std::span<const std::byte> reference, const std::string& where) const;

 private:
  uint64_t file_bytes_, base_ = 0;               // addresses are relative to the end of the user block
  size_t address_bytes_ = 0, length_bytes_ = 0;  // sizes of addresses and lengths, from the file's superblock
  ReadAt read_;
};

}  // namespace dtrain
