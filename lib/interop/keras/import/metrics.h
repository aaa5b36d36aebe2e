// Imports the metrics that a Keras model was compiled with, as `train.metrics` of a configuration.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/tensor_spec.h"
#include "config/node.h"
#include "nn/loss.h"

namespace dtrain {

/// An output of an imported model.
struct KerasOutput {
  std::string name;        ///< name in the graph
  std::string keras_name;  ///< name in the file
  TensorSpec spec;
  Configured<Loss> loss = {};  ///< empty if dtrain cannot express it
};

/// The Keras version that wrote a file.
struct KerasWriter {
  int major = 3;
  int minor = 0;
  bool is_alone = false;  ///< Keras 1 to 2.3 as a separate package (not tf.keras)

  /// `version`: the version in the file ("2.2.4-tf"); "" if the file has none.
  static KerasWriter of(int major, const std::string& version);
  bool is_since(int other_major, int other_minor) const {
    return major > other_major || (major == other_major && minor >= other_minor);
  }
};

/// Returns the item of a list (by index) or of a mapping (by the output's name) for output `i`. A single name
/// or object applies to all outputs. Returns null (the pointer) if there is no item.
const Json* said_of(const Json& written, const std::vector<KerasOutput>& outputs, size_t i);

/// Converts `metrics` or `weighted_metrics` in any form that Keras 1, 2 and 3 write. Returns null if there
/// are none. Metrics that dtrain does not have, or computes differently for such an output, are added to
/// `left_out` by name.
ConfigNode import_keras_metrics(const Json& written, const std::vector<KerasOutput>& outputs,
                                const KerasWriter& writer, std::vector<std::string>& left_out);

}  // namespace dtrain
