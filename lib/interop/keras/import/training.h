// Imports the training that a Keras model was compiled for, as the `train:` section of a configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/node.h"
#include "interop/keras/import/optimizer_state.h"

namespace dtrain {

struct ImportedTraining {
  ConfigNode train;      ///< loss, metrics, optimizer and clipping
  OptimizerState state;  ///< no slots if the file has no state
  /// Parts of the training that were not imported, with the reason: "the metric my_metric: dtrain has no
  /// metric of this name".
  std::vector<std::string> left_out;
};

/// The parts of a file that are needed to import its training.
struct KerasTrainingFile {
  /// Keras 1's and 2's training_config or Keras 3's compile_config; null if not compiled.
  const Json& config;
  const KerasModel& model;  ///< the model as in the file
  const KerasWeights& weights;
  KernelLayout kernels;
  int keras_major = 3;
  const std::string& keras_version;
};

/// Converts loss, loss weights, metrics and the optimizer with its state. Throws UserError with every
/// optimizer, schedule and loss that dtrain cannot express. `imported` and `graph` are the same as for
/// match_weights().
ImportedTraining import_keras_training(const KerasTrainingFile& file, const ImportedModel& imported,
                                       const Graph& graph);

}  // namespace dtrain
