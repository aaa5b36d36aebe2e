// Converts the training state of a saved run to a training state of Keras 3.
#pragma once

#include <optional>
#include <string>

#include "interop/keras/export/export.h"
#include "train/saved_run.h"

namespace dtrain {

/// Returns the state from which Keras 3 continues the training of a checkpoint, step for step. Returns
/// nullopt and sets `why_not` if Keras cannot continue it; sets `warning` if Keras would continue it in a
/// different way. The returned arrays refer to the checkpoint.
std::optional<KerasTraining> keras_training(const SavedRun& run, std::string& why_not, std::string& warning);

}  // namespace dtrain
