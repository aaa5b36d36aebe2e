#include "cli/launcher.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

struct Launcher {
  const char* name;
  const char* variable;  // the variable that it sets to the number of tasks
  const char* one_task;  // the command to start one task
};
constexpr std::array kLaunchers{
    Launcher{"mpirun", "OMPI_COMM_WORLD_SIZE", "mpirun -n 1"},
    Launcher{"mpirun", "PMI_SIZE", "mpirun -n 1"},
    Launcher{"mpirun", "MV2_COMM_WORLD_SIZE", "mpirun -n 1"},
    Launcher{"torchrun", "WORLD_SIZE", "torchrun --nproc-per-node 1"},
    Launcher{"srun", "SLURM_STEP_NUM_TASKS", "srun --ntasks 1"},
    Launcher{"srun", "SLURM_NTASKS", "srun --ntasks 1"},
};

/// Returns true if the variable counts tasks that were started. Slurm sets SLURM_NTASKS for a whole
/// allocation, also in the shell of `salloc`, which starts no tasks. It counts only within a step, and only
/// if the step's own variable is missing.
bool counts(std::string_view variable) {
  return variable != "SLURM_NTASKS" || (std::getenv("SLURM_STEP_ID") && !std::getenv("SLURM_STEP_NUM_TASKS"));
}

/// Returns the number in an environment variable, or 0 if there is none.
int64_t number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  int64_t number = 0;
  if (text) std::from_chars(text, text + std::string_view(text).size(), number);
  return number;
}

}  // namespace

void reject_several_tasks() {
  for (const Launcher& launcher : kLaunchers) {
    const int64_t tasks = number_in(launcher.variable);
    if (tasks < 2 || !counts(launcher.variable)) continue;
    throw UserError(fmt::format(
        "{0} started this as one of {1} tasks ({2}={1}), and each of them would train the whole run: dtrain "
        "does not train over several tasks or machines yet. One task drives all devices of its machine: {3} "
        "dtrain ...; to train a different run in each task: env -u {2} dtrain ...",
        launcher.name, tasks, launcher.variable, launcher.one_task));
  }
}

}  // namespace dtrain
