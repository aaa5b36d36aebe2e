// Writes float32 arrays to a file row by row: predictions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "base/view.h"

namespace dtrain {

/// Writes to a temporary file beside the final one. finish() gives it the final name; a writer that ends
/// without it removes the temporary file. Used by one thread.
class ArrayWriter {
 public:
  virtual ~ArrayWriter() = default;
  /// Appends the next rows of each array: plain, of shape [count, ...], of float32, or of float64 where a
  /// file of text can hold more digits; files of arrays hold float32. Throws Error where the file cannot be
  /// written.
  virtual void append(std::span<const View> arrays) = 0;
  /// Ends the file, once all rows are written. Throws Error where the file cannot be written.
  virtual void finish() = 0;
};

/// Whether the path's ending is of a file of arrays.
bool is_array_file(const std::string& path);

/// The path's ending chooses the format: .h5 (a dataset for each array, or "predictions" where there is only
/// one; slashes in a name make groups) or .npy. `arrays` has the arrays' names and the shapes of one row,
/// `rows` how many rows there will be. Throws UserError for another ending, for several arrays in a format
/// that holds one, and where the file cannot be made.
std::unique_ptr<ArrayWriter> open_array_writer(const std::string& path, const std::vector<TensorSpec>& arrays,
                                               int64_t rows);

}  // namespace dtrain
