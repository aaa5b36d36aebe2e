// Datasets of HDF5 files: opened, looked at and read by libhdf5.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/shape.h"
#include "data/files/input_file.h"
#include "hdf5/hdf5_session.h"

namespace dtrain {

/// Whether an HDF5 file has something under all of these paths. Throws UserError where it is none.
bool holds_datasets(const std::string& path, const std::vector<std::string>& names);

/// A dataset whose first axis counts the samples. Made, used and dropped within a session.
struct Hdf5Dataset {
  /// Opens the dataset `name` (a path inside the file); "" stands for the only one at the top of the file.
  /// Throws UserError for what is none. The caller checks the datatype before any other call.
  Hdf5Dataset(const std::string& path, std::string name);

  Shape shape() const { return Shape(std::vector<int64_t>(extents.begin(), extents.end())); }
  /// Throws UserError for a dataset that is kept in other files or packed in a way that is not known, and
  /// unless the extents are sane, as check_shape(), the file is not far too small, and the first packed chunk
  /// holds as much as a chunk does. libhdf5 then looks at the fill value: where the type has references,
  /// Hdf5References have to live.
  void check_storage(int element_bytes) const;
  /// Reads `count` samples from `first` on as elements of a type that libhdf5 converts the file's to.
  void read_slab(int64_t first, int64_t count, hid_t type, void* dst) const;
  void close();

  std::shared_ptr<const InputFile> input;
  std::string where;  // "path:name"
  Hdf5Handle file, dataset;
  std::vector<hsize_t> extents;
};

}  // namespace dtrain
