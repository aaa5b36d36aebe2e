// How a training run is shown while it goes on.
#pragma once

#include <memory>

#include "train/trainer.h"

namespace dtrain {

/// An observer that shows a moving bar on a lively terminal, and elsewhere a plain line an epoch and, within
/// a longer epoch, a line a minute. A `quiet` one shows warnings only. `gpus`: whether the run is on GPUs,
/// whose utilisation the bar shows then.
std::unique_ptr<Observer> make_progress(bool quiet, bool gpus);

/// "loss 0.3121  accuracy 0.9134" is what an epoch's record says of loss and metrics, joined by
/// `separator`.
std::string format_metrics(const Json& record, const std::string& separator);

}  // namespace dtrain
