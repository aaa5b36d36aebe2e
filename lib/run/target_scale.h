// Converts predictions to the units of the data's targets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "run/run_config.h"

namespace dtrain {

/// Inverts the data set's transforms of an output's target, if they are an affine map (standardize, rescale,
/// ...). A target that is one of the inputs (`target: {input: image}`) also has that input's transforms.
/// Classes have no unit.
class TargetScale {
 public:
  /// Collects the transforms of the target of config.heads[head]. Throws UserError if the facts of the
  /// training split lack the numbers of a fitted transform.
  TargetScale(const RunConfig& config, size_t head);

  /// Returns whether the targets' unit differs from the data's unit.
  bool is_scaled() const { return !scale_.empty(); }
  /// Returns whether the output is logits, which must be converted by make_probabilities() before they have
  /// the target's unit.
  bool takes_logits() const { return takes_logits_; }
  /// The map y = scale * x + offset to the data's unit: one number, or one per element of a row; empty for
  /// the identity.
  const std::vector<double>& scale() const { return scale_; }
  const std::vector<double>& offset() const { return offset_; }
  /// Returns whether float32 has too few digits for numbers in the data's unit, because they are large
  /// compared with their differences.
  bool needs_double() const;
  /// Returns `values` in the data's unit. `values`: whole rows of the target, or of an output without logits.
  /// Rounds to float32 unless needs_double().
  std::vector<double> undone(std::span<const float> values) const;
  /// Converts differences of values in place to the data's unit: applies the scale but not the offset.
  void undo_scale(std::span<float> values) const;
  /// Converts values in place to the data's unit.
  void undo(std::span<float> values) const;
  /// Returns the size of one unit of the transformed target in units of the data; nullopt if the size varies
  /// between elements of a row, if it is 1, or if the output has logits.
  std::optional<double> unit() const;

 private:
  bool takes_logits_;
  std::vector<double> scale_, offset_;  // one number, or one per element of a row; empty: identity
};

}  // namespace dtrain
