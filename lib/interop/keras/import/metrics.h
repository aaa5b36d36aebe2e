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
  Configured<Loss> loss = {};  ///< empty if dtrain has no equivalent loss
};

/// The Keras version that wrote a file.
struct KerasWriter {
  int major = 3;
  int minor = 0;
  bool is_alone = false;  ///< true for the separate keras package (versions 1 to 2.3), false for tf.keras

  /// `version`: the version in the file, such as "2.2.4-tf"; "" if the file does not contain a version.
  static KerasWriter of(int major, const std::string& version);
  bool is_since(int other_major, int other_minor) const {
    return major > other_major || (major == other_major && minor >= other_minor);
  }
};

/// Returns the part of a setting that applies to output `i`. The setting may be a list (indexed by output), a
/// mapping (from the names of outputs), or a single name or object that applies to all outputs. Returns
/// nullptr if the setting has no part for this output.
const Json* said_of(const Json& written, const std::vector<KerasOutput>& outputs, size_t i);

/// Converts `metrics` or `weighted_metrics` in any notation that Keras 1, 2 or 3 writes. Returns null if
/// there are none. If dtrain lacks a metric, or computes it differently for an output of this kind, the name
/// of the metric is added to `left_out`.
ConfigNode import_keras_metrics(const Json& written, const std::vector<KerasOutput>& outputs,
                                const KerasWriter& writer, std::vector<std::string>& left_out);

}  // namespace dtrain
