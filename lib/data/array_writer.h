// Predictions on their way to a file: float32 arrays written row by row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "base/view.h"

namespace dtrain {

/// Writes to a temporary file beside the final one, which finish() gives its name; what was not finished is
/// removed. Used by one thread.
class ArrayWriter {
 public:
  virtual ~ArrayWriter() = default;
  /// The next rows of each array: float32, plain, of shape [count, ...]. Throws Error where the file cannot
  /// be written.
  virtual void append(std::span<const View> arrays) = 0;
  /// All rows are there. Throws Error.
  virtual void finish() = 0;
};

/// By the path's ending: .h5 (a dataset for each array, "predictions" where there is one only; a name with
/// slashes stands in groups), .npy, .csv (a line a row, its elements in order, no header). `arrays`: names
/// and the shapes of one row; `rows`: how many there will be. Throws UserError for another ending, for
/// several arrays in a format of one, and where the file cannot be made.
std::unique_ptr<ArrayWriter> open_array_writer(const std::string& path, const std::vector<TensorSpec>& arrays,
                                               int64_t rows);

}  // namespace dtrain
