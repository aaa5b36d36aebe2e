// Signals that ask a run to stop or to save.
#pragma once

#include "train/requests.h"

namespace dtrain {

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR1 in the calling thread, and therefore in all threads started
/// later. Starts a thread that only handles these signals. main() calls this before any other thread exists.
/// A signal handler must not run on a computing thread: oneDNN 2.6's sgemm keeps data below its stack
/// pointer, which the handler's stack frame would overwrite.
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
