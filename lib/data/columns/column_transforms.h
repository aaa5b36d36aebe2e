// Chooses the transforms of each column according to `transforms:` in the configuration.
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
  /// Names of the inputs or targets to transform. A model's only target is called "target". If empty,
  /// Transform::is_for() chooses the columns.
  std::vector<std::string> of;
  ConfigNode written_of;  // the configuration node of `of`, which has the locations of the names
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
  // The transforms in the order in which they are applied. The pointers point into the list that was passed
  // to transforms_of().
  std::vector<const TransformSpec*> chosen;
  TensorSpec stored;  // the stored column; the transforms convert it to the wanted column
};

/// Chooses the transforms of the column `wanted`. The list is searched from the last transform to the first
/// because Transform::is_for() depends on the shape and type that the column has after the transform.
ColumnTransforms transforms_of(const TensorSpec& wanted, bool target,
                               const std::vector<TransformSpec>& transforms);

/// Reports an error for each name in `of:` that is neither an input nor a target of the model, and for each
/// transform that applies to no column.
void check_transforms(const std::vector<TransformSpec>& transforms, const std::vector<TensorSpec>& inputs,
                      const std::vector<TensorSpec>& targets, Diagnostics& diagnostics);

/// Returns the random stream of the augmentation at index `place` of the list in the configuration.
constexpr uint32_t augment_stream(size_t place) {
  return 0x41554700 + static_cast<uint32_t>(place);  // "AUG"
}

/// Augmentations of images, applied before the transforms (`augment:`).
struct AugmentPlan {
  std::span<const Configured<Augmentation>> augmentations;  // augmentations in order
  bool is_training = false;  // if false, apply_in_evaluation() is called instead of apply()
  /// Set if the column is a target that is an image. Contains the meaning of its pixels and the stored shape
  /// of the input to which it belongs.
  struct Target {
    TargetPicture pixels;
    Shape input;
  };
  std::optional<Target> target = {};
};

/// Supplies the statistics of fitted transforms, such as means. Each call returns the statistics of the next
/// fitted transform of a column.
class Fitter {
 public:
  virtual ~Fitter() = default;
  /// Returns the statistics of the next fitted transform, whose name is `kind`. `plan` is the column's plan
  /// before this transform. `options` holds the options of all transforms since the last call, including this
  /// transform, because the statistics depend on them. Calls `fit` if the statistics are not known. Throws
  /// UserError if they are not known and there are no samples to compute them from.
  virtual FittedStep next(const ColumnPlan& plan, const std::string& kind, const std::string& options,
                          const std::function<FittedStep(const FitSamples&)>& fit) = 0;
};

/// Returns the name by which `of:` refers to a column. If a model has only one target, the target has no name
/// and is called "target".
std::string name_for_of(const TensorSpec& column);

/// Returns the shape and type that a stored column has after the transforms and the augmentations. No samples
/// are needed. Augmentations are applied to inputs, and to a target if `augment.target` is set. `wanted`
/// gives the name and the type of the column in the model. Throws UserError with the location of the
/// transform if a transform cannot be applied to the column.
TensorSpec transformed(const TensorSpec& stored, const TensorSpec& wanted, bool target,
                       const std::vector<TransformSpec>& transforms, const AugmentPlan& augment);

struct PlannedColumn {
  ColumnPlan plan;
  ColumnPlan evaluation;  // plan without random augmentation, for samples that are not used for training
  // Whether the augmentations have been added, that is, the column had the shape of an image at some point.
  bool is_augmented = false;
};

/// Completes a plan: adds the chosen transforms to `begun`, so that the stored column is converted to the
/// wanted one. The column is augmented if it is an input, or a target that is an image (AugmentPlan::target).
/// The augmentations are added as soon as the column has the shape of an image. A `reshape` that gives it
/// this shape therefore runs before the augmentations. If the result is not the wanted column, throws
/// UserError with the location `place` or with the location of the transform.
PlannedColumn plan_column(PlannedColumn begun, const TensorSpec& wanted, bool target,
                          const std::vector<const TransformSpec*>& chosen, const AugmentPlan& augment,
                          Fitter& fitter, const Mark& place);

}  // namespace dtrain
