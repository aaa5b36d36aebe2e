// The table of a sweep: mean and deviation of the monitored value by setting.
#pragma once

#include <span>
#include <string>

#include "report/sweep.h"

namespace dtrain {

/// For people; a column for each key that varies.
std::string sweep_text(std::span<const SweepRun> runs);
/// A row for each setting, with the keys as they were written.
std::string sweep_csv(std::span<const SweepRun> runs);

}  // namespace dtrain
