// Predictions in the units that the data's targets have.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "run/run_config.h"

namespace dtrain {

/// Undoes the data set's transforms of an output's target, as far as they are one affine map (standardize,
/// rescale, ...). A target that is an input (`target: {input: image}`) has the transforms of that input, too.
/// Classes have no unit.
class TargetScale {
 public:
  /// Of config.heads[head], by the facts of the run's training split. Throws UserError where those lack the
  /// numbers of a fitted transform.
  TargetScale(const RunConfig& config, size_t head);

  /// Whether the targets have another unit than the data.
  bool is_scaled() const { return !scale_.empty(); }
  /// Whether the output is logits, which are not in the target's unit: make_probabilities() comes first.
  bool takes_logits() const { return takes_logits_; }
  /// The map y = scale * x + offset to the data's unit, of one element or of each element of a row; empty
  /// where the unit stays.
  const std::vector<double>& scale() const { return scale_; }
  const std::vector<double>& offset() const { return offset_; }
  /// Whether float32 lacks digits that numbers in the data's unit need: these are large beside their
  /// differences.
  bool needs_double() const;
  /// Numbers in the data's unit, of the elements of whole rows of the target, or of an output that is no
  /// logits; rounded to float32 unless that lacks digits.
  std::vector<double> undone(std::span<const float> values) const;
  /// Changes differences in place, which no offset moves: the elements are as above.
  void undo_scale(std::span<float> values) const;
  /// Changes numbers in place: the elements of whole rows of the target, or of an output that is no logits.
  void undo(std::span<float> values) const;
  /// The size of one unit of the transformed target, in units of the data; nothing where the elements of a
  /// row differ in it, where it is 1, and for logits.
  std::optional<double> unit() const;

 private:
  bool takes_logits_;
  std::vector<double> scale_, offset_;  // of one element, or one for each element of a row; empty: as it is
};

}  // namespace dtrain
