// Being asked to stop.
#pragma once

#include <atomic>

namespace dtrain {

/// From now on SIGINT and SIGTERM set the number that is returned (0 until then), for the command to end in
/// good order; a second one ends the process at once, with 128 + its number.
const std::atomic<int>& catch_stop_signals();

/// A reader of our output that goes away is met as an error of the write, not as a signal that kills.
void ignore_broken_pipes();

}  // namespace dtrain
