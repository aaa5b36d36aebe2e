#include "processes/launch.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

using Launcher = Launch::Launcher;

std::optional<int> number_of(const EnvironmentLookup& environment, const char* name) {
  const char* value = environment(name);
  if (!value || !*value) return std::nullopt;
  const std::string_view text(value);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw UserError(
        fmt::format("the environment variable {0} is '{1}', but launchers set it to an integer of at least "
                    "0; unset {0} to run a single process",
                    name, text));
  return number;
}

bool has(const EnvironmentLookup& environment, const char* name) {
  const char* value = environment(name);
  return value && *value;
}

/// Returns the launch if srun started this process, as part of a SLURM job step. The number of processes is
/// the number of tasks of the step. SLURM_NTASKS is used only if this number is not set, because it is the
/// number of tasks of the job, which is different if srun was started with its own -n.
std::optional<Launch> slurm_launch(const EnvironmentLookup& environment) {
  if (!has(environment, "SLURM_STEP_ID")) return std::nullopt;
  auto size = number_of(environment, "SLURM_STEP_NUM_TASKS");
  if (!size) size = number_of(environment, "SLURM_NTASKS");
  if (!size) return std::nullopt;
  Launch launch{.launcher = Launcher::slurm,
                .rank = number_of(environment, "SLURM_PROCID").value_or(0),
                .size = *size,
                .local_rank = number_of(environment, "SLURM_LOCALID").value_or(0),
                .families = {MpiFamily::open_mpi, MpiFamily::mpich},
                .slurm_plugin = ""};
  if (has(environment, "PMIX_RANK")) {
    launch.slurm_plugin = "pmix";
  } else if (has(environment, "PMI_RANK") || has(environment, "PMI_FD")) {
    launch.slurm_plugin = "pmi2";
    launch.families = {MpiFamily::mpich, MpiFamily::open_mpi};
  }
  return launch;
}

std::optional<Launch> launch_of(const EnvironmentLookup& environment) {
  const auto rank_of = [&](const char* name) { return number_of(environment, name).value_or(0); };
  if (const auto size = number_of(environment, "OMPI_COMM_WORLD_SIZE"))
    return Launch{.launcher = Launcher::open_mpi,
                  .rank = rank_of("OMPI_COMM_WORLD_RANK"),
                  .size = *size,
                  .local_rank = rank_of("OMPI_COMM_WORLD_LOCAL_RANK"),
                  .families = {MpiFamily::open_mpi},
                  .slurm_plugin = ""};
  // Hydra's variables are checked before those of SLURM, because Hydra under SLURM starts its daemons with
  // srun. PMI_RANK and PMI_SIZE do not show whether Hydra started this process, because srun --mpi=pmi2 also
  // sets these variables. MPI_LOCALRANKID shows it, because srun does not set this variable.
  const bool is_hydra = has(environment, "MPI_LOCALRANKID") || !has(environment, "SLURM_STEP_ID");
  if (const auto size = number_of(environment, "PMI_SIZE"); size && is_hydra)
    return Launch{.launcher = Launcher::hydra,
                  .rank = rank_of("PMI_RANK"),
                  .size = *size,
                  .local_rank = rank_of("MPI_LOCALRANKID"),
                  .families = {MpiFamily::mpich},
                  .slurm_plugin = ""};
  if (auto launch = slurm_launch(environment)) return launch;
  // prun of PRRTE sets these variables, but no variable with the number of processes.
  if (has(environment, "PMIX_NAMESPACE") && has(environment, "PMIX_RANK"))
    return Launch{.launcher = Launcher::open_mpi,
                  .rank = rank_of("PMIX_RANK"),
                  .size = 0,
                  .local_rank = 0,
                  .families = {MpiFamily::open_mpi},
                  .slurm_plugin = ""};
  return std::nullopt;
}

}  // namespace

const char* to_string(MpiFamily family) {
  return family == MpiFamily::open_mpi ? "Open MPI" : "MPICH";
}

std::string Launch::name() const {
  switch (launcher) {
    case Launcher::open_mpi:
      return "mpirun of Open MPI";
    case Launcher::hydra:
      return "mpiexec of MPICH";
    case Launcher::slurm:
      return slurm_plugin.empty() ? "srun" : "srun --mpi=" + slurm_plugin;
    case Launcher::none:
      break;
  }
  return "no launcher";
}

std::string Launch::cure() const {
  if (launcher == Launcher::slurm)
    return "Start dtrain with srun --mpi=pmix for Open MPI or with srun --mpi=pmi2 for MPICH (`srun "
           "--mpi=list` shows which of these this SLURM supports), or with mpirun inside the allocation";
  return "Start dtrain with the mpirun or mpiexec of the MPI that dtrain uses (dtrain --version names it)";
}

Launch detect_launch(const EnvironmentLookup& environment) {
  std::optional<Launch> launch = launch_of(environment);
  if (!launch || launch->size == 1) return {};
  if (launch->size > 0 && launch->rank >= launch->size)
    throw UserError(fmt::format(
        "according to the environment variables, {} started this process as rank {} of {} processes, but "
        "ranks must be from 0 to {}; the variables may have been set by an earlier program",
        launch->name(), launch->rank, launch->size, launch->size - 1));
  return *launch;
}

Launch detect_launch() {
  return detect_launch([](const char* name) { return std::getenv(name); });
}

void forget_launch() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_ID", "PMIX_NAMESPACE"})
    ::unsetenv(name);
}

}  // namespace dtrain
