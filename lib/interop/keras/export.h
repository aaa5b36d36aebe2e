// Writes a trained model as a .keras file, with which Keras 3 can continue the training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "interop/exported_model.h"

namespace dtrain {

/// The state from which Keras continues the training.
struct KerasTraining {
  Json compile_config;  ///< Keras 3's: optimizer, loss, metrics
  int64_t iteration = 0;
  std::optional<float> learning_rate;  ///< nothing if a schedule gives it
  std::vector<ArrayRef> slots;         ///< the optimizer's, in the order of Keras's variables
};

/// Writes the file, which appears whole or not at all; the same model gives the same bytes. `training` is
/// null for a model that is not to be trained on. Throws UserError, with the layer, for what Keras cannot
/// load; Error if the file cannot be written. Returns the names of the files written.
std::vector<std::string> export_keras(const ExportedModel& model,
                                      const std::optional<KerasTraining>& training, const std::string& path);

}  // namespace dtrain
