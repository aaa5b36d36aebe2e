// The state of a saved run's training as Keras 3 takes it.
#pragma once

#include <optional>
#include <string>

#include "interop/keras/export.h"
#include "train/saved_run.h"

namespace dtrain {

/// Returns the state from which Keras 3 continues the training of a checkpoint, step for step. Returns
/// nothing and sets `why_not` if Keras cannot; sets `warning` if Keras would continue in another way. The
/// arrays are the checkpoint's.
std::optional<KerasTraining> keras_training(const SavedRun& run, std::string& why_not, std::string& warning);

}  // namespace dtrain
