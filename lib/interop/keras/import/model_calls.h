// The calls of a Keras model's layers in topological order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "interop/keras/files/model_tree.h"

namespace dtrain {

/// The output of one call, or an input of the model.
struct KerasValue {
  int call = -1;   ///< index in KerasCalls::calls; -1 for an input
  int input = -1;  ///< index in the model's inputs; -1 for the output of a call
  int output = 0;  ///< index of the call's output; the outputs after the first one are states
  bool operator==(const KerasValue&) const = default;
};

/// One call of a layer that is not a model.
struct KerasLayerCall {
  const KerasModelLayer* layer = nullptr;
  std::string path;  ///< path of the layer: "resnet50/conv1"
  std::vector<KerasValue> inputs;
  bool is_causal = false;  ///< true if an attention layer is called with use_causal_mask
  /// True if an embedding is called with `reverse`: the call multiplies its input by the transposed embedding
  /// matrix.
  bool is_reverse = false;
  /// constant second operand of an operation, such as a comparison
  std::optional<double> constant = std::nullopt;
};

/// A mask that is passed as an argument to a layer or to a model within the model.
struct KerasGivenMask {
  std::string path;  ///< path of the called layer or model
  KerasValue value;  ///< the input that the mask belongs to
  KerasValue mask;
  size_t call = 0;  ///< index of the call; for a model, the index of the first call of its layers
  /// true if a model is called; the layers that read this input within the model then find this mask
  bool of_model = false;
};

struct KerasCalls {
  std::vector<KerasLayerCall> calls;
  std::vector<KerasValue> outputs;
  /// Arguments of calls that would change predictions and that dtrain cannot express: "a: is called with
  /// b=1".
  std::vector<std::string> problems;
  std::vector<KerasGivenMask> given_masks;
};

/// Lists the calls that the model's outputs and masks depend on, including the calls within nested models.
/// Each call comes after the calls whose outputs it reads. Calls that do not depend on each other have the
/// same order as in Keras. Throws UserError for a cycle of calls, and for more than 100,000 calls.
KerasCalls list_calls(const KerasModel& model);

}  // namespace dtrain
