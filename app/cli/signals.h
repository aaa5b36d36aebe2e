// Signals that ask a run to stop or to save.
#pragma once

#include "train/requests.h"

namespace dtrain {

/// Starts a thread that handles the signals SIGINT, SIGTERM, SIGHUP and SIGUSR1, and blocks these signals in
/// the calling thread. Threads that start later inherit the blocked signals, so only the new thread receives
/// them. main() calls this function before any other thread exists. The signals must not be handled on a
/// computing thread, because oneDNN 2.6's sgemm keeps data below its stack pointer, and the stack frame of a
/// signal handler would overwrite these data.
///
/// Until catch_signals() is called, each of these signals ends the process, which is the default action.
/// Signals that were ignored when the process started stay ignored: nohup ignores SIGHUP, and shells may
/// ignore SIGINT for background processes.
void take_signals();

/// After this call SIGINT, SIGTERM and SIGHUP request an orderly stop, and SIGUSR1 requests a save. A message
/// acknowledges a stop request. A SIGINT or SIGTERM at least a second later ends the process at once with
/// exit code 128 + the signal's number; the delay exists because `timeout` and some launchers send two
/// signals at once. A second SIGHUP does not end the process, because a closing terminal sends several.
Requests& catch_signals();

/// After this call SIGINT, SIGTERM, SIGHUP and SIGUSR1 have no effect: the process is about to end.
void ignore_stop_signals();

/// Makes a closed output pipe and the file size limit appear as write errors instead of signals that kill the
/// process.
void ignore_write_signals();

}  // namespace dtrain
