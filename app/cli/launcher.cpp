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
  const char* variable;  // the environment variable that the launcher sets to the number of tasks
  const char* one_task;  // the command to start one task
};
constexpr std::array kLaunchers{
    Launcher{"mpirun of MVAPICH", "MV2_COMM_WORLD_SIZE", "mpirun -n 1"},
    Launcher{"torchrun", "WORLD_SIZE", "torchrun --nproc-per-node 1"},
};

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
    if (tasks < 2) continue;
    throw UserError(fmt::format(
        "{0} started this process as one of {1} tasks ({2}={1}). dtrain does not support this launcher for "
        "several processes: each task would train the whole run. To train one run with several processes, "
        "start them with mpirun, mpiexec or srun. To train with one process, start one task: {3} dtrain ... "
        "To train a different run in each task, remove the variable: env -u {2} dtrain ...",
        launcher.name, tasks, launcher.variable, launcher.one_task));
  }
}

}  // namespace dtrain
