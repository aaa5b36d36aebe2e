// Which transforms a column undergoes, as `transforms:` says.
#pragma once

#include <vector>

#include "data/column_plan.h"
#include "data/dataset_spec.h"
#include "data/transforms/transform.h"

namespace dtrain {

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

/// Goes from the wanted column backwards, so that each transform is asked about what the column is behind it.
ColumnTransforms transforms_of(const TensorSpec& wanted, bool target,
                               const std::vector<TransformSpec>& transforms);

/// The way from a stored column to the wanted one. Throws UserError, with `place` or the transform's, where
/// the transforms make something else of it.
ColumnPlan plan_column(const TensorSpec& stored, const TensorSpec& wanted, bool target,
                       const std::vector<TransformSpec>& transforms, const Mark& place);

}  // namespace dtrain
