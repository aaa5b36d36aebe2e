// One pass over the rows of a column, between the file and the batch.
#pragma once

#include <cstddef>
#include <span>

#include "base/tensor_spec.h"
#include "data/columns/samples.h"

namespace dtrain {

/// The rows that a stage reads: row i of the result is made from the row at base + places[i] * bytes of a
/// row.
struct StageInput {
  const void* base = nullptr;
  std::span<const int64_t> places;
  Samples samples;  // samples.key(i) is the key of the sample that row i belongs to

  size_t size() const { return places.size(); }
};

/// A kind of stage derives from this: a conversion, a decoder, a random augmentation. Immutable; any number
/// of threads may run it at once.
class ColumnStage {
 public:
  /// What one row is before the stage and after it.
  ColumnStage(TensorSpec input, TensorSpec output) : input_(std::move(input)), output_(std::move(output)) {}
  virtual ~ColumnStage() = default;

  const TensorSpec& input() const { return input_; }
  const TensorSpec& output() const { return output_; }
  size_t output_bytes() const {
    return static_cast<size_t>(output_.shape.elements()) * bytes_of(output_.dtype);
  }

  /// Writes the rows of the result to `dst`, one after the other. A row depends on the row it is made from
  /// and on its sample's key, and on nothing else. Throws UserError where a value is not what the stage can
  /// take.
  virtual void run(const StageInput& rows, void* dst) const = 0;
  /// Whether the result depends on the sample's key: such rows are made anew every epoch, and never kept.
  virtual bool is_random() const { return false; }
  /// Whether the stage costs much more than copying the rows: then it is worth running ahead of the step that
  /// needs the batch, on other threads.
  virtual bool is_costly() const { return true; }

 private:
  TensorSpec input_, output_;
};

}  // namespace dtrain
