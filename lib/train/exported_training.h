// The state of a saved run's training as Keras 3 takes it.
#pragma once

#include <optional>
#include <string>

#include "interop/keras/export.h"
#include "train/saved_run.h"

namespace dtrain {

/// The state with which Keras 3 goes on training where a checkpoint ends, step for step. Nothing if Keras
/// cannot, and then `why_not` says why; `warning` is set if Keras goes on in another way. The arrays are the
/// checkpoint's.
std::optional<KerasTraining> keras_training(const SavedRun& run, std::string& why_not, std::string& warning);

}  // namespace dtrain
