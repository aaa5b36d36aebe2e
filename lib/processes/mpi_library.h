// Finds and opens an MPI library at run time. The program is not linked with an MPI library.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "processes/launch.h"
#include "processes/shim/mpi_shim.h"

namespace dtrain {

/// An MPI library (libmpi) that is installed on this machine.
struct MpiLibrary {
  MpiFamily family = MpiFamily::open_mpi;
  std::string version;  // "Open MPI 4.1.4"
  std::string path;     // path of the opened file
  std::string shim;     // path of the shim for the ABI of the library; "" if it is not installed
};

/// Returns the libraries that can be opened. If the environment variable DTRAIN_MPI_LIBRARY (a path) is set,
/// returns only the library at this path. Otherwise searches the launcher's own installation, the system's
/// search path, and the folders found at build time. Returns at most one library of each family. With `only`,
/// stops as soon as a library of this family was found.
std::vector<MpiLibrary> find_mpi_libraries(std::optional<MpiFamily> only = std::nullopt);

/// Describes the libraries that would be used, for users: "Open MPI 4.1.4 (/usr/lib/libmpi.so.40)", or
/// "none". If a launcher started this process, describes only the libraries that work with the launcher, if
/// there are any.
std::string describe_mpi_libraries();

/// Opens a library that works with the launcher, and the shim of the library, and keeps both open. Stores a
/// description of the library in `library`. Throws UserError if no library works with the launcher. The
/// message names the launcher and the libraries that were found, and tells the user how to fix the problem.
const MpiTable& open_mpi_for(const Launch& launch, MpiLibrary& library);

/// Returns the first library, in the order of launch.families, that has a shim. Throws UserError as
/// open_mpi_for() does.
const MpiLibrary& choose_mpi_library(const Launch& launch, const std::vector<MpiLibrary>& libraries);

/// Shortens the text of MPI_Get_library_version: "Open MPI v4.1.4, package: ..." becomes "Open MPI 4.1.4",
/// and "MPICH Version:\t4.0.2\n..." becomes "MPICH 4.0.2".
std::string short_mpi_version(const std::string& text);

}  // namespace dtrain
