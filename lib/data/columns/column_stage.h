// One step in the conversion of a column's rows. Stages run after the rows are read from the file and before
// they are written to the batch.
#pragma once

#include <cstddef>
#include <span>

#include "base/tensor_spec.h"
#include "data/columns/samples.h"

namespace dtrain {

/// Input rows of a stage. Row i of the result is computed from the input row at the address base + places[i]
/// * (bytes per row).
struct StageInput {
  const void* base = nullptr;
  std::span<const int64_t> places;
  Samples samples;  // samples.key(i) is the key of the sample to which row i belongs

  size_t size() const { return places.size(); }
};

/// Base class of stages: conversions, decoders, random augmentations. Immutable; any number of threads may
/// run it at once.
class ColumnStage {
 public:
  /// `input` and `output` describe one row before and after the stage.
  ColumnStage(TensorSpec input, TensorSpec output) : input_(std::move(input)), output_(std::move(output)) {}
  virtual ~ColumnStage() = default;

  const TensorSpec& input() const { return input_; }
  const TensorSpec& output() const { return output_; }
  size_t output_bytes() const {
    return static_cast<size_t>(output_.shape.elements()) * bytes_of(output_.dtype);
  }

  /// Writes the result rows contiguously to `dst`. A result row depends only on its input row and on the key
  /// of its sample. Throws UserError if the stage cannot handle a value.
  virtual void run(const StageInput& rows, void* dst) const = 0;
  /// Returns true if the result depends on the key of the sample. The rows are then computed again in every
  /// epoch and are never cached.
  virtual bool is_random() const { return false; }
  /// Returns true if the stage takes much longer than copying the rows. Costly stages should run on other
  /// threads, before the step that needs the batch.
  virtual bool is_costly() const { return true; }

 private:
  TensorSpec input_, output_;
};

}  // namespace dtrain
