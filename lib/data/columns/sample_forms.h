// Determines the shapes and classes of the training samples before there is a model that requires them.
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

/// Shapes after the transforms, one for each wanted column.
struct SampleForms {
  std::vector<Shape> inputs, targets;
  std::vector<int64_t> classes;  // number of classes of each target; 0 if it has no class indices
};

/// Opens the reader of the training split, which `spec` must have. Unless the reader's options determine the
/// classes, they are counted over all rows of the reader, so a split drawn from these rows has the same
/// number. Throws UserError with the split's location if the files cannot be read, with a transform's
/// location if it does not fit the files, and with `place`, the location of the first `auto`, if the files do
/// not determine the shapes or classes.
SampleForms training_forms(const DatasetSpec& spec, const std::vector<WantedColumn>& inputs,
                           const std::vector<WantedColumn>& targets, const Mark& place);

}  // namespace dtrain
