// How a training run is shown while it goes on.
#pragma once

#include <memory>

#include "train/trainer.h"

namespace dtrain {

/// On a lively terminal a bar that moves, else a plain line an epoch; `quiet`: warnings only.
std::unique_ptr<Observer> make_progress(bool quiet);

/// "loss 0.3121  accuracy 0.9134" - what an epoch's record says of loss and metrics, joined by `separator`.
std::string format_metrics(const Json& record, const std::string& separator);

}  // namespace dtrain
