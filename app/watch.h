// dtrain gpus --watch: the devices as they work.
#pragma once

#include <cstdint>
#include <optional>

#include "cli/options.h"

namespace dtrain {

struct WatchOptions {
  std::optional<int64_t> interval;  // seconds between two looks; 1 where not given
  std::optional<int64_t> count;     // of looks; without it until somebody ends it
};

/// On a terminal what is seen is drawn in place, elsewhere look by look; with --json a document a line.
void watch_devices(const OutputOptions& output, const WatchOptions& options);

}  // namespace dtrain
