// The lines that a run prints at its start: model, devices, data, where it saves.
#pragma once

#include <string>

#include "train/trainer.h"

namespace dtrain {

/// What is trained, where, on what, from where to where: a line each, without the last line's end.
std::string describe_start(const Trainer& trainer, const RunDirectory& directory);

}  // namespace dtrain
