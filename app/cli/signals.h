// The signals by which a run is asked to stop, or to save.
#pragma once

#include "train/requests.h"

namespace dtrain {

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR1 in the calling thread, and thereby in every thread that starts
/// later, and starts a thread that takes them and computes nothing. main() calls this before any other thread
/// exists. A signal handler must not run on a thread that computes: oneDNN 2.6's sgemm keeps data below its
/// stack pointer, and the handler's stack frame would overwrite them.
///
/// Until catch_signals() is called, each of these signals ends the process as it does by default. Signals
/// that were ignored when the process began (by nohup, or SIGINT by a shell in the background) stay ignored.
void take_signals();

/// From now on SIGINT, SIGTERM and SIGHUP ask to stop, for the command to end in good order, and SIGUSR1 asks
/// to save. A message acknowledges the request to stop. A SIGINT or SIGTERM that comes a second later, or
/// after that, ends the process at once, with 128 + its number: `timeout` and some launchers send two at
/// once. A second SIGHUP does not, as a terminal that is closed sends several.
Requests& catch_signals();

/// A reader of our output that goes away, and a limit on the size of files, are met as errors of the write,
/// not as signals that kill.
void ignore_write_signals();

}  // namespace dtrain
