// Imports the settings with which a Keras model was compiled for training, as the `train:` section of a
// configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/node.h"
#include "interop/keras/import/optimizer_state.h"

namespace dtrain {

struct ImportedTraining {
  ConfigNode train;      ///< loss, metrics, optimizer and clipping
  OptimizerState state;  ///< without slots if the file does not contain the optimizer's state
  /// The training settings that were not imported, with the reason: "the metric my_metric: dtrain has no
  /// metric of this name".
  std::vector<std::string> left_out;
};

/// The parts of a Keras file that are needed to import its training settings.
struct KerasTrainingFile {
  /// training_config of Keras 1 and 2, or compile_config of Keras 3; null if the model was not compiled.
  const Json& config;
  const KerasModel& model;  ///< the model in the file, including multi-GPU wrappers
  const KerasWeights& weights;
  KernelLayout kernels;
  int keras_major = 3;
  const std::string& keras_version;
};

/// Converts the loss, the loss weights, the metrics, and the optimizer with its state. Throws UserError with
/// a list of the optimizer, schedules and losses that dtrain cannot express. `imported` and `graph` are the
/// same as for match_weights().
ImportedTraining import_keras_training(const KerasTrainingFile& file, const ImportedModel& imported,
                                       const Graph& graph);

}  // namespace dtrain
