// Converts the training state of a saved run to a training state of Keras 3.
#pragma once

#include <optional>
#include <string>

#include "interop/keras/export/export.h"
#include "train/saved_run.h"

namespace dtrain {

/// Returns the state from which Keras 3 continues the training of a checkpoint with the same steps as dtrain.
/// If Keras cannot continue the training, returns nullopt and sets `why_not`. If Keras would continue it with
/// different steps, sets `warning`. The returned arrays refer to the checkpoint.
std::optional<KerasTraining> keras_training(const SavedRun& run, std::string& why_not, std::string& warning);

}  // namespace dtrain
