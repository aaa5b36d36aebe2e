// Being asked to stop.
#pragma once

#include <atomic>

namespace dtrain {

/// From now on SIGINT and SIGTERM set the number that is returned (0 until then), for the command to end in
/// good order; a second one ends the process at once, with 128 + its number.
const std::atomic<int>& catch_stop_signals();

/// A reader of our output that goes away, and a limit on the size of files, are met as errors of the write,
/// not as signals that kill.
void ignore_write_signals();

}  // namespace dtrain
