// The end of one of several processes after a failure.
#pragma once

#include <string>

#include "processes/processes.h"

namespace dtrain {

/// Returns whether this process prints messages in place of process 0 if process 0 is gone: the first process
/// of another machine, or process 1 if there is no other machine.
bool speaks_for_process_0(const Processes& processes);

/// Waits until process 0 has ended or is gone, and ends this process: the launcher, which ends all processes
/// after the first one, lets process 0 save and print. Not for process 0.
[[noreturn]] void end_after_process_0(Processes& processes, int exit_code);

/// Ends this process at once, process 0 last, because a call of MPI does not return after a failure. Prints
/// `why` unless an error was printed. Everything that must be saved was saved before.
[[noreturn]] void end_without_cleanup(Processes& processes, const std::string& why);

}  // namespace dtrain
