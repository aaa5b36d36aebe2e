// Detects from environment variables how this process was launched.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dtrain {

/// The implementations of MPI that differ in how their processes find each other. `mpich` includes the
/// implementations that derive from MPICH: Intel MPI, MVAPICH, Cray MPICH.
enum class MpiFamily { open_mpi, mpich };

/// Returns "Open MPI" or "MPICH".
const char* to_string(MpiFamily family);

/// The launcher that started this process.
struct Launch {
  enum class Launcher { none, open_mpi, hydra, slurm };
  Launcher launcher = Launcher::none;
  int rank = 0;
  // Number of processes; 0 if the launcher does not set it, so that it is known only after MPI_Init.
  int size = 1;
  int local_rank = 0;  // rank among the processes of this machine
  /// The MPI implementations that work with this launcher, the most likely one first.
  std::vector<MpiFamily> families;
  /// The protocol by which srun exchanges the addresses of the processes: "pmix" or "pmi2". Empty if srun
  /// uses neither, and for other launchers.
  std::string slurm_plugin;

  /// Returns "mpirun of Open MPI", "mpiexec of MPICH", "srun --mpi=pmix", ...
  std::string name() const;
  /// Returns advice on how to start the processes so that MPI connects them.
  std::string cure() const;
};

/// Returns the value of an environment variable, or nullptr.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// Reads the variables of Open MPI and PRRTE, of Hydra (MPICH, Intel MPI), and of SLURM's job steps.
/// Variables of a batch script outside a step do not count. If a launcher started only one process, the
/// result is Launcher::none. Throws UserError if a variable is not a number, or the rank is not less than the
/// size.
Launch detect_launch(const EnvironmentLookup& environment);
/// Calls detect_launch() with the environment of this process.
Launch detect_launch();
/// Removes the variables that detect_launch() reads from the environment of this process. Programs that this
/// process starts, such as further dtrain processes, then do not join the run.
void forget_launch();

}  // namespace dtrain
