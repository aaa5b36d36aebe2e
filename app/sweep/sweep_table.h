// A sweep's table: mean and deviation of the monitored value for each setting.
#pragma once

#include <span>
#include <string>

#include "report/sweep.h"

namespace dtrain {

/// Returns a table for display, with a column for each varied key.
std::string sweep_text(std::span<const SweepRun> runs);
/// Returns CSV with a row for each setting. The column titles of the varied keys are the keys as the user
/// wrote them.
std::string sweep_csv(std::span<const SweepRun> runs);

}  // namespace dtrain
