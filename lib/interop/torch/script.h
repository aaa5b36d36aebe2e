// The Python script that loads a safetensors file as a PyTorch module.
#pragma once

#include <string>
#include <string_view>

#include "interop/exported_model.h"
#include "interop/torch/builder.h"

namespace dtrain {

/// The first line of every script that `dtrain export` writes.
inline constexpr std::string_view kScriptHead = "# Written by dtrain export.";

/// An array that the file contains in addition to the weights of the layers.
struct ScriptBuffer {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

struct TorchScript {
  std::string text;
  std::vector<ScriptBuffer> buffers;  ///< the scales and offsets of the inputs and outputs
};

/// Returns the script. `weights` and `probes`: names of the two safetensors files, which must be in the
/// folder of the script.
TorchScript torch_script(const ExportedModel& model, TorchBuilder& builder, const std::string& weights,
                         const std::string& probes);

}  // namespace dtrain
