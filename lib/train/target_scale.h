// Predictions in the units that the data's targets have.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "train/run_config.h"

namespace dtrain {

/// Undoes what the data set's transforms made of an output's target, as far as that was one affine map
/// (standardize, rescale, ...). Nothing is undone where the target is a class.
class TargetScale {
 public:
  /// Of config.heads[head], by the facts of the run's training split. Throws UserError where those lack what
  /// a transform goes by.
  TargetScale(const RunConfig& config, size_t head);

  /// Changes `count` numbers, the elements of whole rows of the output or the target, in place.
  void undo(float* values, int64_t count) const;
  /// The size of one unit of the transformed target, in units of the data; nothing where the elements of a
  /// row differ in it, and where it is 1.
  std::optional<double> unit() const;

 private:
  std::vector<double> scale_, offset_;  // of one element, or one for each element of a row; empty: as it is
};

}  // namespace dtrain
