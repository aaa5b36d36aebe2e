#include "processes/launch.h"

#include <map>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "processes/mpi_library.h"

namespace dtrain {

namespace {

using Variables = std::map<std::string, std::string>;
using Launcher = Launch::Launcher;

Launch detect(const Variables& variables) {
  return detect_launch([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

/// Returns the message of the UserError that choosing a library throws.
std::string refusal(const Launch& launch, const std::vector<MpiLibrary>& libraries) {
  try {
    choose_mpi_library(launch, libraries);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

const Variables kOpenMpi = {{"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"PMIX_RANK", "2"},
                            {"PMIX_NAMESPACE", "x"}};
const Variables kHydra = {{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"PMI_FD", "6"}, {"MPI_LOCALRANKID", "1"}};
const Variables kSlurm = {{"SLURM_JOB_ID", "7"},  {"SLURM_STEP_ID", "0"},        {"SLURM_PROCID", "1"},
                          {"SLURM_LOCALID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_NTASKS", "8"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const MpiLibrary kOmpiLibrary = {MpiFamily::open_mpi, "Open MPI 4.1.4", "/lib/libmpi.so.40", "/shim"};
const MpiLibrary kMpichLibrary = {MpiFamily::mpich, "MPICH 4.0.2", "/lib/libmpich.so.12", "/shim"};

}  // namespace

TEST_CASE("launchers are detected by their environment variables") {
  const Launch ompi = detect(kOpenMpi);
  CHECK(ompi.launcher == Launcher::open_mpi);
  CHECK(ompi.rank == 2);
  CHECK(ompi.size == 4);
  CHECK(ompi.local_rank == 1);
  CHECK(ompi.families == std::vector{MpiFamily::open_mpi});

  const Launch hydra = detect(kHydra);
  CHECK(hydra.launcher == Launcher::hydra);
  CHECK(hydra.rank == 1);
  CHECK(hydra.size == 3);
  CHECK(hydra.families == std::vector{MpiFamily::mpich});

  const Launch slurm = detect(kSlurm);
  CHECK(slurm.launcher == Launcher::slurm);
  CHECK(slurm.rank == 1);
  CHECK(slurm.size == 2);
  CHECK(slurm.slurm_plugin == "");
  CHECK(slurm.name() == "srun");
  CHECK(slurm.cure().find("--mpi=pmix") != std::string::npos);

  const Launch pmix = detect({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "x"}});
  CHECK(pmix.launcher == Launcher::open_mpi);
  CHECK(pmix.size == 0);
}

TEST_CASE("under SLURM the launcher inside the job and srun's plugin are told apart") {
  CHECK(detect(with(kSlurm, kOpenMpi)).launcher == Launcher::open_mpi);
  CHECK(detect(with(kSlurm, kHydra)).launcher == Launcher::hydra);
  const Launch pmi2 = detect(with(kSlurm, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_FD", "5"}}));
  CHECK(pmi2.launcher == Launcher::slurm);
  CHECK(pmi2.slurm_plugin == "pmi2");
  CHECK(pmi2.families[0] == MpiFamily::mpich);
  const Launch pmix = detect(with(kSlurm, {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "slurm.pmix.7.0"}}));
  CHECK(pmix.name() == "srun --mpi=pmix");
  CHECK(pmix.families[0] == MpiFamily::open_mpi);
}

TEST_CASE("one process, and the shell of a job, have no launcher") {
  CHECK(detect({}).launcher == Launcher::none);
  CHECK(detect({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}).launcher == Launcher::none);
  CHECK(detect({{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}}).launcher == Launcher::none);
  // sbatch sets these variables for its script, and salloc for its shell. Neither starts several processes.
  CHECK(detect({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}).launcher == Launcher::none);
  CHECK(detect(with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}})).launcher ==
        Launcher::none);
}

TEST_CASE("environment variables with impossible values are errors") {
  CHECK_THROWS_WITH_AS(detect({{"PMI_SIZE", "two"}}),
                       doctest::Contains("the environment variable PMI_SIZE is 'two'"), UserError);
  CHECK_THROWS_WITH_AS(detect({{"PMI_SIZE", "2"}, {"PMI_RANK", "2"}}),
                       doctest::Contains("rank 2 of 2 processes, but ranks must be from 0 to 1"), UserError);
}

TEST_CASE("versions of MPI libraries are shortened") {
  CHECK(short_mpi_version("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4") == "Open MPI 4.1.4");
  CHECK(short_mpi_version("MPICH Version:      4.0.2\nMPICH Release date: Thu Apr 7") == "MPICH 4.0.2");
  CHECK(short_mpi_version("MPICH Version:\t5.0.2\n") == "MPICH 5.0.2");
  CHECK(short_mpi_version("Intel(R) MPI Library 2021.11 for Linux* OS\n") ==
        "Intel(R) MPI Library 2021.11 for Linux* OS");
}

TEST_CASE("the library suits the launcher, or an error names both") {
  const std::vector<MpiLibrary> both = {kOmpiLibrary, kMpichLibrary};
  CHECK(choose_mpi_library(detect(kOpenMpi), both).version == "Open MPI 4.1.4");
  CHECK(choose_mpi_library(detect(kHydra), both).version == "MPICH 4.0.2");
  CHECK(choose_mpi_library(detect(kSlurm), {kMpichLibrary}).version == "MPICH 4.0.2");

  const std::string wrong = refusal(detect(kOpenMpi), {kMpichLibrary});
  CHECK(wrong.find(
            "mpirun of Open MPI started this process, but no Open MPI library was found, only MPICH 4.0.2 "
            "(/lib/libmpich.so.12)") == 0);
  CHECK(refusal(detect(kHydra), {}).find("no MPI library was found") != std::string::npos);
  MpiLibrary without_shim = kMpichLibrary;
  without_shim.shim = "";
  CHECK(refusal(detect(kHydra), {without_shim}).find("built without the headers of this MPI") !=
        std::string::npos);
}

}  // namespace dtrain
