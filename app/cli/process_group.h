// Connects this process with the other processes of a run if a launcher (mpirun, srun) has started several
// processes.
#pragma once

#include <memory>
#include <string>

#include "cli/command_line.h"
#include "processes/processes.h"

namespace dtrain {

/// Returns whether the processes run this command line together (fit, resume, evaluate, check without --fit,
/// and gpus without --watch). Other commands are run by process 0 alone.
bool runs_together(int argc, const char* const* argv);

/// Returns the network that is chosen by --interface or, if this option is not given, by the environment
/// variable DTRAIN_INTERFACE. Searches the command line for the option, because the processes are connected
/// before the command line is parsed.
ChosenNetwork chosen_network(int argc, const char* const* argv);
/// Adds the option --interface to a command for which runs_together() is true. chosen_network() reads it.
void add_interface_option(Command& command);

/// Connects the processes over the chosen network, checks that all processes have the same program and
/// libraries, and divides the cores and GPUs of each machine among its processes. After this call, only
/// process 0 prints. It also prints the warnings of the other processes. When another process fails, the
/// transport is aborted, and this process ends within a limited time. Sets `processes`, unless there is only
/// one process. Throws the exceptions of connect_processes() and Processes::check_agreement(). Even if it
/// throws, leave_processes() must be called if `processes` was set.
void join_processes(const Launch& launch, const ChosenNetwork& network,
                    std::unique_ptr<Processes>& processes);

/// Ends this process's part of the run, and returns its exit code. `error`: the error message; empty after
/// success and after a stop by a signal. Process 0 prints the error, even if it comes from another process.
/// After a failure this function ends the process itself, because MPI_Finalize would wait for the failed
/// process.
int leave_processes(Processes& processes, int exit_code, const std::string& error);

/// Prints an error that happened before the processes were connected: once on each machine, with the
/// machine's name unless it is the machine of process 0. Prints nothing if `error` is empty, which means that
/// process 0 prints the error. Must be called before a failed process ends, because in processes other than
/// process 0 this function waits, to give process 0 time to print its error.
void print_error_of(const Launch& launch, const std::string& error);

}  // namespace dtrain
