// Export of recurrent layers, including the two recurrent layers within a bidirectional.
#pragma once

#include <functional>
#include <string>

#include "interop/keras/files/json.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

/// Returns true if the option has this value, or if the layer does not have the option.
bool option_is(const Json& options, const char* key, const char* value);

/// A recurrent layer in an exported model. It may be one direction of a bidirectional layer.
struct Recurrent {
  std::string kind;
  Json options = {};        ///< options of the recurrent layer
  std::string prefix = {};  ///< prefix of the names of the recurrent layer's parameters
  /// name of its module in the nn.ModuleDict of a bidirectional layer; "" for other layers
  std::string part = {};
  /// Only matters with go_backwards. True if the states of all steps are in the order of the input, false if
  /// they are in the order of processing.
  bool in_input_order = false;

  bool goes_backwards() const { return is_true_at(options, "go_backwards"); }
};

/// Adds the operators of a recurrent layer. Returns its output with channels last. Throws UserError if ONNX
/// cannot express the layer.
std::string add_onnx_recurrence(OnnxLayer& layer, const Recurrent& recurrent);

/// The PyTorch code of a recurrent layer. `constructor` is the expression that creates its module. `add` must
/// be called after the module was added to the class: it stores the weights, adds the lines of forward() and
/// returns the variable of the output.
struct TorchRecurrence {
  std::string constructor;
  std::function<std::string(TorchLayer&)> add;
};

/// Returns the PyTorch code of a recurrent layer. Throws UserError if PyTorch cannot express the layer.
TorchRecurrence recurrence_in_torch(const TorchLayer& layer, const Recurrent& recurrent);

}  // namespace dtrain
