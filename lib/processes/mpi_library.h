// Finds and opens an MPI library at run time. The program links no MPI.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "processes/launch.h"
#include "processes/shim/mpi_shim.h"

namespace dtrain {

/// A libmpi of this machine.
struct MpiLibrary {
  MpiFamily family = MpiFamily::open_mpi;
  std::string version;  // "Open MPI 4.1.4"
  std::string path;     // path of the opened file
  std::string shim;     // path of the shim that fits its binary interface; "" if this installation has none
};

/// Returns the libraries that can be opened. If the environment variable DTRAIN_MPI_LIBRARY (a path) is set,
/// returns only the library at this path. Otherwise searches the launcher's own installation, the system's
/// search path, and the folders found at build time. Each family is listed once or not at all. With `only`,
/// opens no more libraries than are needed to find one of this family.
std::vector<MpiLibrary> find_mpi_libraries(std::optional<MpiFamily> only = std::nullopt);

/// Describes the libraries that would be used, for users: "Open MPI 4.1.4 (/usr/lib/libmpi.so.40)", or
/// "none". If a launcher started this process and a library suits the launcher, describes only such
/// libraries.
std::string describe_mpi_libraries();

/// Opens the library and the shim that suit the launcher, and keeps them open. `library` receives its
/// description. Throws UserError if there is no such library. The message names the launcher, the libraries
/// found, and the cure.
const MpiTable& open_mpi_for(const Launch& launch, MpiLibrary& library);

/// Returns the first library, in the order of launch.families, that has a shim. Throws UserError as
/// open_mpi_for() does.
const MpiLibrary& choose_mpi_library(const Launch& launch, const std::vector<MpiLibrary>& libraries);

/// Shortens the text of MPI_Get_library_version: "Open MPI v4.1.4, package: ..." becomes "Open MPI 4.1.4",
/// and "MPICH Version:\t4.0.2\n..." becomes "MPICH 4.0.2".
std::string short_mpi_version(const std::string& text);

}  // namespace dtrain
