// What the samples of the training split are like, before there is a model that says what they must be.
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
  DType dtype = DType::float32;  // int32 of a target: numbers of classes
};

/// One for each wanted column, as it is after the transforms.
struct SampleForms {
  std::vector<Shape> inputs, targets;
  std::vector<int64_t> classes;  // how many numbers of classes a target has; 0 of targets that have none
};

/// Opens the reader of the training split, which `spec` has. Classes are counted over all rows that the
/// reader gives: a split that is drawn from these has the same. Throws UserError with `place` where the files
/// cannot be read, and with a transform's place where that does not suit them.
SampleForms training_forms(const DatasetSpec& spec, const std::vector<WantedColumn>& inputs,
                           const std::vector<WantedColumn>& targets, const Mark& place);

}  // namespace dtrain
