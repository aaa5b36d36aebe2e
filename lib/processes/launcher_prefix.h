// The installation that the launcher of this process belongs to.
#pragma once

#include <filesystem>
#include <vector>

namespace dtrain {

/// Returns the library folders of the installation of the mpirun (or its daemon) that started this process:
/// it is searched among the process's ancestors, as a script may come between. So a process gets the libmpi
/// of its launcher even if the system's search path has another one. Empty if no ancestor is a known
/// launcher.
std::vector<std::filesystem::path> launcher_library_folders();

}  // namespace dtrain
