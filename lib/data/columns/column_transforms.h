// Which transforms a column undergoes, as `transforms:` says.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "config/registry.h"
#include "data/augment/augmentation.h"
#include "data/columns/column_plan.h"
#include "data/transforms/transform.h"

namespace dtrain {

/// An entry of `transforms:`.
struct TransformSpec {
  Configured<Transform> transform;
  /// Inputs or targets by name, a lone target as "target"; empty: those that Transform::is_for() says.
  std::vector<std::string> of;
  ConfigNode written_of;  // knows the places of these names
};

template <>
struct Codec<TransformSpec> {
  static bool parse(const ConfigNode& node, const std::string& where, TransformSpec& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const TransformSpec& spec);
  static Json schema();
};

/// The transforms of one input or target.
struct ColumnTransforms {
  std::vector<const TransformSpec*> chosen;  // in order; of the list that they were chosen from
  TensorSpec stored;  // what readers should find, for these to make what is wanted of it
};

/// Goes from the wanted column backwards, so that each transform is asked about what the column is after it.
ColumnTransforms transforms_of(const TensorSpec& wanted, bool target,
                               const std::vector<TransformSpec>& transforms);

/// Reports an `of:` that names neither an input nor a target of the model, and a transform that is for none
/// of them.
void check_transforms(const std::vector<TransformSpec>& transforms, const std::vector<TensorSpec>& inputs,
                      const std::vector<TensorSpec>& targets, Diagnostics& diagnostics);

/// The stream that the augmentation of this place in the list draws from.
constexpr uint32_t augment_stream(size_t place) {
  return 0x41554700 + static_cast<uint32_t>(place);  // "AUG"
}

/// What pictures undergo before the transforms, as `augment:` says.
struct AugmentPlan {
  std::span<const Configured<Augmentation>> augmentations;  // in order
  bool is_training = false;                                 // else what they do in evaluation
};

/// Gives the numbers of transforms that are fitted, one step after the other.
class Fitter {
 public:
  virtual ~Fitter() = default;
  /// The numbers of the next fitted transform, which is of this kind; `plan` is the column as it comes to it.
  /// `options`: of all transforms since the last call, this one's included, as its numbers depend on them.
  /// Throws UserError where the known step is of another kind, or is not known and cannot be fitted here.
  virtual FittedStep next(const ColumnPlan& plan, const std::string& kind, const std::string& options,
                          const std::function<FittedStep(const FitSamples&)>& fit) = 0;
};

/// What an `of:` calls a column: the lone target of a model has no name of its own (a reader's `target:`).
std::string name_for_of(const TensorSpec& column);

/// What the transforms and, of an input, the augmentations make of a stored column, as far as that needs no
/// samples: its shape and type. `wanted`: the column's name and type in the model. Throws UserError, with the
/// transform's place, where one of them does not suit the column.
TensorSpec transformed(const TensorSpec& stored, const TensorSpec& wanted, bool target,
                       const std::vector<TransformSpec>& transforms,
                       std::span<const Configured<Augmentation>> augmentations);

struct PlannedColumn {
  ColumnPlan plan;
  ColumnPlan evaluation;      // the same without what is done for training only
  bool is_augmented = false;  // it has the shape of a picture at some point
};

/// The way from a stored column to the wanted one: what `begun` begins with, and the transforms that were
/// chosen. An input is augmented as soon as it has the shape of a picture: a `reshape` before that is done
/// before. Throws UserError, with `place` or the transform's, where the transforms make something else of it.
PlannedColumn plan_column(PlannedColumn begun, const TensorSpec& wanted, bool target,
                          const std::vector<const TransformSpec*>& chosen, const AugmentPlan& augment,
                          Fitter& fitter, const Mark& place);

}  // namespace dtrain
