// Export of recurrent layers, used for the layers themselves and for bidirectional.
#pragma once

#include <functional>
#include <string>

#include "interop/keras/files/json.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

/// Returns true if the option has this value or the layer does not have the option.
bool option_is(const Json& options, const char* key, const char* value);

/// One recurrent layer in an exported model: a layer, or a direction of a bidirectional layer.
struct Recurrent {
  std::string kind;
  Json options = {};        ///< options of the recurrent layer
  std::string prefix = {};  ///< prefix of the names of its parameters
  std::string part = {};    ///< its module in the layer's nn.ModuleDict; "": the layer has one module
  /// With go_backwards: whether the states of all steps are in the order of the input instead of the order in
  /// which they are computed.
  bool in_input_order = false;

  bool goes_backwards() const { return is_true_at(options, "go_backwards"); }
};

/// Adds the operators of a recurrent layer. Returns its output, channels last. Throws UserError if ONNX lacks
/// it.
std::string add_onnx_recurrence(OnnxLayer& layer, const Recurrent& recurrent);

/// The computation of a recurrent layer in PyTorch: the constructor of its module, and, once the module
/// exists, the function that stores its weights, adds its lines and returns its output.
struct TorchRecurrence {
  std::string constructor;
  std::function<std::string(TorchLayer&)> add;
};

/// Returns the computation of a recurrent layer. Throws UserError if PyTorch lacks it.
TorchRecurrence recurrence_in_torch(const TorchLayer& layer, const Recurrent& recurrent);

}  // namespace dtrain
