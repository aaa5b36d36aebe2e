// The calls of a Keras model's layers in an order in which each comes after the calls that it reads.
#pragma once

#include <string>
#include <vector>

#include "interop/keras/model_tree.h"

namespace dtrain {

/// The output of one call, or an input of the model.
struct KerasValue {
  int call = -1;   ///< in KerasCalls::calls; -1 for an input
  int input = -1;  ///< in the model's inputs; -1 for the output of a call
};

/// One call of a layer that is no model.
struct KerasLayerCall {
  const KerasModelLayer* layer = nullptr;
  std::string path;  ///< of the layer: "resnet50/conv1"
  std::vector<KerasValue> inputs;
};

struct KerasCalls {
  std::vector<KerasLayerCall> calls;
  std::vector<KerasValue> outputs;
  std::vector<std::string>
      problems;  ///< calls with arguments that change predictions: "a: is called with b=1"
};

/// Lists the calls that the model's outputs depend on, those of models within the model included, otherwise
/// in Keras's order. Throws UserError for calls that read each other, and for more than 100,000 calls.
KerasCalls list_calls(const KerasModel& model);

}  // namespace dtrain
