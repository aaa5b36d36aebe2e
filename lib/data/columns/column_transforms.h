// Chooses the transforms of each column, following `transforms:`.
#pragma once

#include <functional>
#include <optional>
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
  /// Names of inputs or targets, "target" for a model's only target. If empty, Transform::is_for() chooses
  /// the columns.
  std::vector<std::string> of;
  ConfigNode written_of;  // the node of `of`, for the source locations of these names
};

template <>
struct Codec<TransformSpec> {
  static bool parse(const ConfigNode& node, const std::string& where, TransformSpec& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const TransformSpec& spec);
  static Json schema();
};

/// Transforms of one input or target.
struct ColumnTransforms {
  std::vector<const TransformSpec*> chosen;  // transforms in order; pointers into the list passed in
  TensorSpec stored;  // stored column from which these transforms produce the wanted column
};

/// Chooses the transforms from the last to the first: each is chosen for the form that the column has after
/// it.
ColumnTransforms transforms_of(const TensorSpec& wanted, bool target,
                               const std::vector<TransformSpec>& transforms);

/// Reports each `of:` name that is no input or target of the model, and each transform that applies to no
/// column.
void check_transforms(const std::vector<TransformSpec>& transforms, const std::vector<TensorSpec>& inputs,
                      const std::vector<TensorSpec>& targets, Diagnostics& diagnostics);

/// Returns the random stream of the augmentation at index `place` of the list.
constexpr uint32_t augment_stream(size_t place) {
  return 0x41554700 + static_cast<uint32_t>(place);  // "AUG"
}

/// Augmentations of images, applied before the transforms (`augment:`).
struct AugmentPlan {
  std::span<const Configured<Augmentation>> augmentations;  // augmentations in order
  bool is_training = false;  // if false, apply_in_evaluation() is called instead of apply()
  /// Set for the column of a target that is an image: the meaning of its pixels, and the shape of the stored
  /// input that it belongs to.
  struct Target {
    TargetPicture pixels;
    Shape input;
  };
  std::optional<Target> target = {};
};

/// Supplies the numbers of fitted transforms, one step after the other.
class Fitter {
 public:
  virtual ~Fitter() = default;
  /// Returns the numbers of the next fitted transform, whose name is `kind`. `plan` is the column's plan
  /// before this transform. `options` holds the options of all transforms since the last call, including this
  /// one, because its numbers depend on them. Throws UserError if the known step is of another kind, or if
  /// the step is unknown and cannot be fitted here.
  virtual FittedStep next(const ColumnPlan& plan, const std::string& kind, const std::string& options,
                          const std::function<FittedStep(const FitSamples&)>& fit) = 0;
};

/// Returns the name by which `of:` refers to a column: a model's only target has no name and is called
/// "target".
std::string name_for_of(const TensorSpec& column);

/// Returns the shape and type of a stored column after the transforms and the augmentations of an input or a
/// target that is an image; needs no samples. `wanted` gives the column's name and type in the model. Throws
/// UserError with the transform's location if a transform does not fit the column.
TensorSpec transformed(const TensorSpec& stored, const TensorSpec& wanted, bool target,
                       const std::vector<TransformSpec>& transforms, const AugmentPlan& augment);

struct PlannedColumn {
  ColumnPlan plan;
  ColumnPlan evaluation;      // plan without training-only augmentation
  bool is_augmented = false;  // whether the column has the shape of an image at some point
};

/// Completes the plan from the stored column to the wanted one: continues `begun` with the chosen transforms.
/// An input, or a target that is an image (AugmentPlan::target), is augmented as soon as it has the shape of
/// an image, so a `reshape` before that runs first. Throws UserError with `place` or the transform's location
/// if the result is not the wanted column.
PlannedColumn plan_column(PlannedColumn begun, const TensorSpec& wanted, bool target,
                          const std::vector<const TransformSpec*>& chosen, const AugmentPlan& augment,
                          Fitter& fitter, const Mark& place);

}  // namespace dtrain
