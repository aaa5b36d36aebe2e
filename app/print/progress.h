// Shows the progress of a training run.
#pragma once

#include <memory>

#include "train/trainer.h"

namespace dtrain {

/// Returns an observer that shows a progress bar on an interactive terminal, and otherwise prints a line per
/// epoch and, within a long epoch, a line per minute. If `quiet`, it shows only warnings. `gpus`: whether the
/// run uses GPUs; the bar then shows their utilization.
std::unique_ptr<Observer> make_progress(bool quiet, bool gpus);

/// Returns the loss and metrics of an epoch's record, joined by `separator`: "loss 0.3121  accuracy 0.9134".
std::string format_metrics(const Json& record, const std::string& separator);

}  // namespace dtrain
