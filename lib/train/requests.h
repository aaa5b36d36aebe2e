// Requests to a running trainer.
#pragma once

#include <atomic>

namespace dtrain {

/// Set by another thread when a signal arrives; read by the trainer.
struct Requests {
  std::atomic<int> stop{0};       // signal number if the run should save and end; else 0
  std::atomic<bool> save{false};  // the run should save and continue
};

}  // namespace dtrain
