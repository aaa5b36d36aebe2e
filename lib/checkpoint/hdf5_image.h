// Builds HDF5 files in memory without copying the arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/sparse_file.h"
#include "hdf5/hdf5_session.h"

namespace dtrain {

/// Builds one HDF5 file in memory. libhdf5 therefore never has to handle a disk error. The same calls always
/// produce the same bytes. The object holds the process's Hdf5Session. Every function throws Error if libhdf5
/// fails.
class Hdf5Image {
 public:
  /// `target`: receives the file. It refers to the arrays instead of copying them.
  explicit Hdf5Image(SparseFile& target);

  hid_t file() const { return file_; }
  /// Opens a group. Creates the group and its parents if they do not exist.
  Hdf5Handle make_group(const std::string& path);
  /// Writes an array. Its memory must outlive the target, and its group must exist.
  void write_array(const std::string& path, const ArrayRef& array);
  /// Writes text as an array of bytes. The text must outlive the target.
  void write_bytes(const std::string& path, const std::string& text);
  /// Writes one number. The variable must outlive the target.
  void write_number(const std::string& path, const int64_t& number);
  /// Writes an attribute with one string.
  void write_text(hid_t object, const std::string& name, const std::string& text);
  /// Writes an attribute with fixed-length strings, padded with zeros.
  void write_names(hid_t object, const std::string& name, const std::vector<std::string>& names);
  /// Completes the file.
  void close();

 private:
  void write_attribute(hid_t object, const std::string& name, hid_t space, const char* data, size_t width);
  void write_dataset(const std::string& path, hid_t type, hid_t space, std::span<const std::byte> bytes);

  Hdf5Session session_;
  Hdf5Handle file_list_{H5Pcreate(H5P_FILE_CREATE), "create a property list"};
  Hdf5Handle group_list_{H5Pcreate(H5P_GROUP_CREATE), "create a property list"};
  Hdf5Handle dataset_list_{H5Pcreate(H5P_DATASET_CREATE), "create a property list"};
  Hdf5Handle file_;
  SparseFile& target_;
  std::unordered_set<std::string> groups_;
};

}  // namespace dtrain
