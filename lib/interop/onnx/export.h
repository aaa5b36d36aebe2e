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
  bool float16 = false;        ///< weights and computation in float16; inputs and outputs stay float32
  bool external_data = false;  ///< store weights in a separate file; models over 2 GB always do
};

/// The range of supported ONNX operator set versions.
inline constexpr int64_t kLeastOpset = 13, kMostOpset = 23;

/// Converts the model to ONNX operators. Inputs and outputs have dtrain's layout (images channels last) and a
/// dynamic batch axis. Throws UserError for a layer that the opset has no operator for, and for numbers out
/// of float16's range.
OnnxModel onnx_model(const ExportedModel& model, const OnnxOptions& options);

/// Checks the model against its probes, then writes it to `path` and external data to `path`.data. Each file
/// appears complete or not at all, the model last. Returns the names of the files. Throws UserError like
/// onnx_model(), and Error if a probe's output differs or a file cannot be written.
std::vector<std::string> export_onnx(const ExportedModel& model, const OnnxOptions& options,
                                     const std::string& path);

}  // namespace dtrain
