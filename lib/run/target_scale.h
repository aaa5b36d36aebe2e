// Converts predictions to the units of the data's targets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "run/run_config.h"

namespace dtrain {

/// Inverts the data set's transforms of an output's target if they are an affine map, as standardize and
/// rescale are. For a target that is one of the inputs (`target: {input: image}`), the transforms of the
/// input are also inverted. Targets that are classes are not converted.
class TargetScale {
 public:
  /// Collects the transforms of the target of config.heads[head]. Throws UserError if the facts of the
  /// training split lack the parameters (such as the mean) of a fitted transform.
  TargetScale(const RunConfig& config, size_t head);

  /// Returns whether the unit of the transformed targets differs from the unit of the data.
  bool is_scaled() const { return !scale_.empty(); }
  /// Returns whether the outputs are logits. make_probabilities() must convert logits to probabilities before
  /// they can be converted to the unit of the data.
  bool takes_logits() const { return takes_logits_; }
  /// The map y = scale * x + offset from the transformed target to the unit of the data. Each array has one
  /// number, or one number per element of a row; the arrays are empty for the identity.
  const std::vector<double>& scale() const { return scale_; }
  const std::vector<double>& offset() const { return offset_; }
  /// Returns whether numbers in the unit of the data need float64, because they are so large compared with
  /// their differences that float32 has too few digits.
  bool needs_double() const;
  /// Returns `values` in the data's unit. `values`: whole rows of the target, or of an output without logits.
  /// Rounds to float32 unless needs_double().
  std::vector<double> undone(std::span<const float> values) const;
  /// Converts differences of values in place to the data's unit: applies the scale but not the offset.
  void undo_scale(std::span<float> values) const;
  /// Converts values in place to the data's unit.
  void undo(std::span<float> values) const;
  /// Returns the difference in the unit of the data that corresponds to a difference of 1 in the transformed
  /// target. Returns nullopt if it is not the same for all elements of a row, if it is 1, or if the output
  /// has logits.
  std::optional<double> unit() const;

 private:
  bool takes_logits_;
  std::vector<double> scale_, offset_;  // one number, or one per element of a row; empty: identity
};

}  // namespace dtrain
