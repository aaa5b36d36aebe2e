// What a run is asked for while it goes on.
#pragma once

#include <atomic>

namespace dtrain {

/// Another thread than the trainer's sets these, when a signal arrives.
struct Requests {
  std::atomic<int> stop{0};       // a signal's number once the run is to save and end
  std::atomic<bool> save{false};  // the run is to save and go on
};

}  // namespace dtrain
