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
        fmt::format("the environment variable {} is '{}', but a launcher sets it to a number; unset it "
                    "to run a single process",
                    name, text));
  return number;
}

bool has(const EnvironmentLookup& environment, const char* name) {
  const char* value = environment(name);
  return value && *value;
}

Launch open_mpi_launch(int rank, int size) {
  return {Launcher::open_mpi, rank, size, {MpiFamily::open_mpi}, ""};
}

Launch hydra_launch(int rank, int size) {
  return {Launcher::hydra, rank, size, {MpiFamily::mpich}, ""};
}

/// Returns the launch of a step of srun. The number of tasks of a step differs from SLURM_NTASKS, which is
/// the job's, if srun was started with another -n.
std::optional<Launch> slurm_launch(const EnvironmentLookup& environment) {
  if (!has(environment, "SLURM_STEP_ID")) return std::nullopt;
  const auto rank = number_of(environment, "SLURM_PROCID");
  auto size = number_of(environment, "SLURM_STEP_NUM_TASKS");
  if (!size) size = number_of(environment, "SLURM_NTASKS");
  if (!rank || !size) return std::nullopt;
  Launch launch{Launcher::slurm, *rank, *size, {MpiFamily::open_mpi, MpiFamily::mpich}, ""};
  if (has(environment, "PMIX_RANK")) {
    launch.slurm_plugin = "pmix";
  } else if (has(environment, "PMI_RANK") || has(environment, "PMI_FD")) {
    launch.slurm_plugin = "pmi2";
    launch.families = {MpiFamily::mpich, MpiFamily::open_mpi};
  }
  return launch;
}

std::optional<Launch> launch_of(const EnvironmentLookup& environment) {
  const auto ompi_rank = number_of(environment, "OMPI_COMM_WORLD_RANK");
  const auto ompi_size = number_of(environment, "OMPI_COMM_WORLD_SIZE");
  if (ompi_rank && ompi_size) return open_mpi_launch(*ompi_rank, *ompi_size);
  // mpirun under SLURM starts its daemons by srun, so SLURM's variables come after those of Hydra. srun sets
  // PMI_RANK, too, but never MPI_LOCALRANKID.
  const bool hydra = has(environment, "MPI_LOCALRANKID") || has(environment, "HYDI_CONTROL_FD") ||
                     !has(environment, "SLURM_STEP_ID");
  const auto pmi_rank = number_of(environment, "PMI_RANK"), pmi_size = number_of(environment, "PMI_SIZE");
  if (hydra && pmi_rank && pmi_size) return hydra_launch(*pmi_rank, *pmi_size);
  if (auto launch = slurm_launch(environment)) return launch;
  // PRRTE's prun sets no size.
  const auto pmix_rank = number_of(environment, "PMIX_RANK");
  if (pmix_rank && has(environment, "PMIX_NAMESPACE")) return open_mpi_launch(*pmix_rank, 0);
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
    return "start it with srun --mpi=pmix for Open MPI or srun --mpi=pmi2 for MPICH (srun --mpi=list shows "
           "which "
           "ones this SLURM has), or with mpirun inside the allocation";
  return "start it with the mpirun or mpiexec of the MPI that dtrain uses (dtrain --version names it)";
}

Launch detect_launch(const EnvironmentLookup& environment) {
  std::optional<Launch> launch = launch_of(environment);
  if (!launch || launch->size == 1) return {};
  if (launch->size > 0 && launch->rank >= launch->size)
    throw UserError(
        fmt::format("{} started this process as number {} of {}, which is impossible; its environment "
                    "variables may come from an earlier program",
                    launch->name(), launch->rank, launch->size));
  return *launch;
}

Launch detect_launch() {
  return detect_launch([](const char* name) { return std::getenv(name); });
}

}  // namespace dtrain
