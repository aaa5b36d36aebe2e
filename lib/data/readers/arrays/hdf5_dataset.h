// Opens, checks and reads datasets of HDF5 files with libhdf5.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/shape.h"
#include "data/files/input_file.h"
#include "hdf5/hdf5_session.h"

namespace dtrain {

/// Returns true if an HDF5 file has an object at each of these paths. Throws UserError if it is not an HDF5
/// file.
bool holds_datasets(const std::string& path, const std::vector<std::string>& names);

/// A dataset whose first axis is the sample axis. Must be created, used and destroyed within an Hdf5Session.
struct Hdf5Dataset {
  /// Opens the dataset `name` (a path inside the file); "" selects the only dataset at the top level of the
  /// file. Throws UserError if it is not a dataset. The caller must check the data type before any other
  /// call.
  Hdf5Dataset(const std::string& path, std::string name);

  Shape shape() const { return Shape(std::vector<int64_t>(extents.begin(), extents.end())); }
  /// Throws UserError if the dataset is stored in other files, uses an unknown filter, or has a shape that
  /// check_shape() rejects; if the file is far too small for the dataset; or if the first compressed chunk or
  /// the chunk index is damaged. These checks make libhdf5 read the fill value. Therefore, if the
  /// elements contain references, an Hdf5References object must exist during the call.
  void check_storage(int element_bytes) const;
  /// Reads `count` samples, starting at sample `first`. libhdf5 converts their elements to `type`.
  void read_slab(int64_t first, int64_t count, hid_t type, void* dst) const;
  void close();

  std::shared_ptr<const InputFile> input;
  std::string where;  // "path:name"
  Hdf5Handle file, dataset;
  std::vector<hsize_t> extents;
};

}  // namespace dtrain
