// The launch of this process, as the environment variables of launchers describe it.
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
  int size = 1;        // 0 if the launcher does not set it, so that only MPI knows it
  int local_rank = 0;  // rank among the processes of this machine
  /// The implementations whose processes can find each other under this launcher, the most likely one first.
  std::vector<MpiFamily> families;
  /// The way in which srun passes addresses between processes: "pmix", "pmi2", or "" for neither. "" for
  /// other launchers.
  std::string slurm_plugin;

  /// Returns "mpirun of Open MPI", "mpiexec of MPICH", "srun --mpi=pmix", ...
  std::string name() const;
  /// Returns advice for starting processes that see each other.
  std::string cure() const;
};

/// Returns the value of an environment variable, or nullptr.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// Reads the variables of Open MPI and PRRTE, of Hydra (MPICH, Intel MPI), and of SLURM's job steps.
/// Variables of a batch script outside a step do not count. A launcher that started one process only is
/// Launcher::none. Throws UserError if a variable is not a number, or the rank is not less than the size.
Launch detect_launch(const EnvironmentLookup& environment);
/// Calls detect_launch() with the environment of this process.
Launch detect_launch();
/// Removes the variables from the process's environment, so that programs that it starts, such as further
/// dtrain processes, run alone.
void forget_launch();

}  // namespace dtrain
