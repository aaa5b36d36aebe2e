// dtrain gpus --watch: monitors the devices.
#pragma once

#include <cstdint>
#include <optional>

#include "cli/options.h"

namespace dtrain {

struct WatchOptions {
  std::optional<int64_t> interval;  // seconds between measurements; 1 if not given
  std::optional<int64_t> count;     // number of measurements; unlimited if not given
};

/// Redraws in place on a terminal; otherwise prints each measurement. With --json prints one document per
/// line.
void watch_devices(const OutputOptions& output, const WatchOptions& options);

}  // namespace dtrain
