// Determines the shapes and the numbers of classes from the training samples. They are needed to complete a
// model whose configuration contains `auto`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "data/dataset_spec.h"

namespace dtrain {

/// An input or target of a model whose shape may not be known yet.
struct WantedColumn {
  std::string name;
  std::optional<Shape> shape;
  DType dtype = DType::float32;  // int32 for a target of class indices
};

/// The shapes that the wanted columns have after the transforms, in the same order.
struct SampleForms {
  std::vector<Shape> inputs, targets;
  // Number of classes of each target; 0 if the target does not consist of class indices.
  std::vector<int64_t> classes;
};

/// Opens the reader of the training split. `spec` must have a training split.
/// The number of classes is taken from the reader's options if possible. Otherwise the classes of all rows of
/// the reader are counted, so that a split drawn from these rows has the same number of classes.
/// Throws UserError with the location of the split if the files cannot be read, and with the location of a
/// transform if the transform cannot be applied to the data. If the files do not determine the shapes or
/// classes, throws UserError with `place`, the location of the first `auto`.
SampleForms training_forms(const DatasetSpec& spec, const std::vector<WantedColumn>& inputs,
                           const std::vector<WantedColumn>& targets, const Mark& place);

}  // namespace dtrain
