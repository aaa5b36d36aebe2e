// The lines that a run prints at its start: model, devices, data, run directory.
#pragma once

#include <string>

#include "train/trainer.h"

namespace dtrain {

/// Returns lines about the model and devices, the data and epochs, and the run directory. The last line has
/// no line break.
std::string describe_start(const Trainer& trainer, const RunDirectory& directory);

}  // namespace dtrain
