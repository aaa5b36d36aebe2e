// The metrics that a Keras file was compiled with, as `train.metrics` of a configuration.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/tensor_spec.h"
#include "config/node.h"
#include "nn/loss.h"

namespace dtrain {

/// An output of an imported model, for what Keras says of each output.
struct KerasOutput {
  std::string name;        ///< in the graph
  std::string keras_name;  ///< in the file
  TensorSpec spec;
  Configured<Loss> loss = {};  ///< empty if dtrain cannot express it
};

/// The Keras that wrote a file.
struct KerasWriter {
  int major = 3;
  int minor = 0;
  bool is_alone = false;  ///< Keras 1 to 2.3 without TensorFlow's name: not tf.keras

  /// `version`: as the file has it ("2.2.4-tf"); "" if it does not say.
  static KerasWriter of(int major, const std::string& version);
  bool is_since(int other_major, int other_minor) const {
    return major > other_major || (major == other_major && minor >= other_minor);
  }
};

/// Returns what a list or mapping says of output `i`: the item at its place, or under its name. One name or
/// object is for all outputs. Null (the pointer) if nothing is said.
const Json* said_of(const Json& written, const std::vector<KerasOutput>& outputs, size_t i);

/// Translates `metrics` or `weighted_metrics` in any of the forms that Keras 1, 2 and 3 write. Null if there
/// are none. A metric that dtrain lacks, or counts in another way for such an output, is added to `left_out`,
/// with its name.
ConfigNode import_keras_metrics(const Json& written, const std::vector<KerasOutput>& outputs,
                                const KerasWriter& writer, std::vector<std::string>& left_out);

}  // namespace dtrain
