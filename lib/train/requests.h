// Requests to a running trainer.
#pragma once

#include <atomic>
#include <chrono>

#include "run/record/run_directory.h"

namespace dtrain {

/// Requests made by signals. Another thread sets them when a signal arrives, and the trainer reads them.
struct Requests {
  std::atomic<int> stop{0};       // signal number if the run should save and end; else 0
  std::atomic<bool> save{false};  // the run should save and continue
};

/// Looks for a request by `dtrain stop`, at most once a second.
class StopCommand {
 public:
  /// Returns whether a request has arrived, and removes it from the directory of the run.
  bool take(const RunDirectory& directory) {
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < std::chrono::seconds(1)) return false;
    looked_ = now;
    return directory.take_stop_request();
  }

 private:
  std::chrono::steady_clock::time_point looked_;
};

}  // namespace dtrain
