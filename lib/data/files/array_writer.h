// Writes predictions to a file, row by row. HDF5 and .npy files contain float32 numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "base/view.h"

namespace dtrain {

/// Writes to a temporary file in the destination's folder. finish() renames it to its final name; the
/// destructor removes a file that was not finished. Used by one thread.
class ArrayWriter {
 public:
  virtual ~ArrayWriter() = default;
  /// Appends the next rows of each array. Each view has shape [count, ...] and layout `plain`, and is float32
  /// or float64. Text files can hold the extra digits of float64; array files convert to float32. Throws
  /// Error if the file cannot be written.
  virtual void append(std::span<const View> arrays) = 0;
  /// Finishes the file after all rows were appended. Throws Error if the file cannot be written.
  virtual void finish() = 0;
  /// Returns a text to append to the message of an error that occurs before finish(). The text says which
  /// files remain on disk; it is "" if no files remain.
  virtual std::string describe_written() const { return ""; }
};

/// Returns true if the path's extension is that of an array file (.h5, .hdf5 or .npy).
bool is_array_file(const std::string& path);

/// Opens a writer; the path's extension determines the format. An .h5 (or .hdf5) file gets one dataset per
/// array, with the name of the array (slashes in a name create groups). If there is only one array, its
/// dataset is called "predictions". An .npy file holds one array. For each array, `arrays` has the name and
/// the shape of one row. `rows` is the number of rows. Throws UserError for any other extension, for several
/// arrays in an .npy file, and if the file cannot be created.
std::unique_ptr<ArrayWriter> open_array_writer(const std::string& path, const std::vector<TensorSpec>& arrays,
                                               int64_t rows);

}  // namespace dtrain
