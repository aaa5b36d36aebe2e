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

/// Measures the devices repeatedly, and shows the measurements. On a terminal, each measurement is drawn in
/// place of the previous one; otherwise it is printed below. With --json, each measurement is one JSON
/// document on one line.
void watch_devices(const OutputOptions& output, const WatchOptions& options);

}  // namespace dtrain
