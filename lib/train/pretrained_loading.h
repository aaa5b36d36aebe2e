// A model's first weights out of a file, as `model.weights` says.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "interop/weight_file.h"
#include "nn/graph.h"

namespace dtrain {

/// A weight of PyTorch's as Keras has it.
struct TorchArray {
  ArrayRef array;
  std::vector<float> values;  // of the array, if its axes were in another order
};

/// What of a file a model begins with.
struct Pretrained {
  std::string path;                                // of the file
  WeightFile file;                                 // owns the arrays
  std::map<std::string, const ArrayRef*> weights;  // by the model's names; what is not here begins anew
  std::deque<TorchArray> of_torch;                 // weights of PyTorch's in the order of Keras's axes
  std::vector<std::string> warnings;
  std::string description;  // "12 of 14 weights from base.h5; begin anew: 'head/kernel'"
};

/// Reads the file of graph.pretrained, which must be there. Throws UserError that names, at its place, every
/// weight of the model that is not found in its shape, every one of the file that is not wanted, and every
/// pattern that matches nothing.
Pretrained load_pretrained(const Graph& graph);

}  // namespace dtrain
