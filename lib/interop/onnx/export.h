// A trained model as an ONNX file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interop/exported_model.h"
#include "interop/onnx/model.h"

namespace dtrain {

struct OnnxOptions {
  int64_t opset = 17;
  bool float16 = false;        ///< weights and computation in float16; inputs and outputs stay float32
  bool external_data = false;  ///< weights in a file beside; models over 2 GB have one in any case
};

/// The versions of ONNX's operators that models are written for.
inline constexpr int64_t kLeastOpset = 13, kMostOpset = 21;

/// The model as ONNX's operators. Inputs and outputs lie as dtrain has them, images channels last, with an
/// open batch axis. Throws UserError for a layer that the opset has no operator for, and for numbers that
/// float16 does not hold.
OnnxModel onnx_model(const ExportedModel& model, const OnnxOptions& options);

/// Writes the model to `path`, and with external data its numbers to `path`.data, after the model's probes
/// came out as they should. The files appear whole or not at all, the model last. Gives their names. Throws
/// UserError as above, and Error where the probes come out otherwise or a file cannot be written.
std::vector<std::string> export_onnx(const ExportedModel& model, const OnnxOptions& options,
                                     const std::string& path);

}  // namespace dtrain
