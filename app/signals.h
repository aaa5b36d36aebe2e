// The signals by which a run is asked to stop, or to save.
#pragma once

#include "train/requests.h"

namespace dtrain {

/// From now on SIGINT, SIGTERM and SIGHUP ask to stop, for the command to end in good order, and SIGUSR1 to
/// save. A second SIGINT or SIGTERM ends the process at once, with 128 + its number; a second SIGHUP does
/// not, for a terminal that is closed sends several. What was ignored when the process began (by nohup, or
/// SIGINT by a shell in the background) stays ignored.
Requests& catch_signals();

/// A reader of our output that goes away, and a limit on the size of files, are met as errors of the write,
/// not as signals that kill.
void ignore_write_signals();

}  // namespace dtrain
