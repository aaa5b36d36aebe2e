// Finds the MPI installation to which the launcher of this process belongs.
#pragma once

#include <filesystem>
#include <vector>

namespace dtrain {

/// Returns the library folders of the MPI installation whose mpirun (or daemon) started this process, so that
/// the process opens the libmpi of its launcher even if the system's search path contains a different libmpi.
/// Searches all ancestors of the process for the launcher, because the launcher may have started a script
/// that started this process. Returns an empty list if no ancestor is a known launcher.
std::vector<std::filesystem::path> launcher_library_folders();

}  // namespace dtrain
