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

/// The training state that the file contains, so that Keras can continue the training.
struct KerasTraining {
  Json compile_config;  ///< Keras 3's compile_config: optimizer, loss, metrics
  int64_t iteration = 0;
  std::optional<float> learning_rate;  ///< nullopt if a schedule sets the learning rate
  std::vector<ArrayRef> slots;         ///< optimizer state, in the order of Keras's variables
  /// Owners of the arrays in `slots` that are computed for the export because dtrain does not store them.
  std::vector<std::shared_ptr<const std::vector<float>>> computed;
  /// value of OptimizerFormats::number_after_slots; nullopt if the optimizer has no such number
  std::optional<float> last_number;
};

/// Writes the file atomically: either the complete file appears or none. The same model always produces the
/// same bytes. `training` is nullopt for a model that will not be trained further. Throws UserError with the
/// name of the layer if Keras could not load the file, and Error if the file cannot be written. Returns the
/// names of the written files.
std::vector<std::string> export_keras(const ExportedModel& model,
                                      const std::optional<KerasTraining>& training, const std::string& path);

}  // namespace dtrain
