// Ends one of several processes after a failure.
#pragma once

#include <string>

#include "processes/processes.h"

namespace dtrain {

/// Returns whether this process is the process that prints messages if process 0 has ended or does not
/// respond: the first process of another machine or, if there is no other machine, process 1.
bool speaks_for_process_0(const Processes& processes);

/// Waits until process 0 has finished or failed, and then ends this process. A launcher ends all processes as
/// soon as one process has ended, but process 0 needs time to save files and to print messages. Must not be
/// called in process 0.
[[noreturn]] void end_after_process_0(Processes& processes, int exit_code);

/// Ends this process without running destructors, because an MPI call may not return after a failure.
/// Processes other than process 0 first wait for the end of process 0. Prints `why` unless an error was
/// already printed. Must be called only after all files have been saved.
[[noreturn]] void end_without_cleanup(Processes& processes, const std::string& why);

}  // namespace dtrain
