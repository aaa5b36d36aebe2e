// The installation that the launcher of this process belongs to.
#pragma once

#include <filesystem>
#include <vector>

namespace dtrain {

/// Returns the library folders of the installation of the mpirun (or its daemon) that started this process,
/// so that the process opens the libmpi of its launcher even if the system's search path has another one.
/// Looks for the launcher among all ancestors of the process, because a script may be between them. Returns
/// an empty list if no ancestor is a known launcher.
std::vector<std::filesystem::path> launcher_library_folders();

}  // namespace dtrain
