// Writes a trained model as a .keras file, from which Keras 3 can continue training.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "interop/exported_model.h"

namespace dtrain {

/// The state from which Keras continues the training.
struct KerasTraining {
  Json compile_config;  ///< Keras 3's compile_config: optimizer, loss, metrics
  int64_t iteration = 0;
  std::optional<float> learning_rate;  ///< nullopt if a schedule sets it
  std::vector<ArrayRef> slots;         ///< optimizer state, in the order of Keras's variables
  /// Arrays in `slots` that dtrain does not store.
  std::vector<std::shared_ptr<const std::vector<float>>> computed;
  std::optional<float> last_number;  ///< OptimizerFormats::number_after_slots; nullopt if there is none
};

/// Writes the file, which appears complete or not at all; equal models give equal bytes. `training` is
/// nullopt for a model that will not be trained further. Throws UserError with the layer if Keras could not
/// load the file; Error if the file cannot be written. Returns the names of the files.
std::vector<std::string> export_keras(const ExportedModel& model,
                                      const std::optional<KerasTraining>& training, const std::string& path);

}  // namespace dtrain
