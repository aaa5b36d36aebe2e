// Exports a trained model as an ONNX file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interop/exported_model.h"
#include "interop/onnx/model.h"

namespace dtrain {

struct OnnxOptions {
  int64_t opset = 17;
  bool float16 = false;        ///< use float16 for weights and computation; inputs and outputs remain float32
  bool external_data = false;  ///< store weights in a separate file; always done for models over 2 GB
};

/// The range of supported ONNX operator set versions.
inline constexpr int64_t kLeastOpset = 13, kMostOpset = 23;

/// Converts the model to ONNX operators. The inputs and outputs have dtrain's layout (images with channels
/// last) and a dynamic batch axis. Throws UserError if a layer needs an operator that the opset does not
/// contain, or if numbers exceed the range of float16.
OnnxModel onnx_model(const ExportedModel& model, const OnnxOptions& options);

/// Checks the model against its probes. Then writes external data to `path`.data and the model to `path`.
/// Each file is written atomically, and the model is written last. Returns the names of the files. Throws
/// UserError like onnx_model(), and Error if an output differs from the probe or a file cannot be written.
std::vector<std::string> export_onnx(const ExportedModel& model, const OnnxOptions& options,
                                     const std::string& path);

}  // namespace dtrain
