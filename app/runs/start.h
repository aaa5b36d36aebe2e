// The lines that a run prints at its start: model, devices, data, where it saves.
#pragma once

#include <string>

#include "train/trainer.h"

namespace dtrain {

/// One line each for the model, the devices, the data and the epochs to come; the last line has no end.
std::string describe_start(const Trainer& trainer, const RunDirectory& directory);

}  // namespace dtrain
