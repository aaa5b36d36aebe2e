// The versions of dtrain, its libraries and its compiler, for --version.
#pragma once

#include <string>

namespace dtrain {

/// Returns "dtrain 0.1.0", followed by a line per library and the compiler, without a final line break. The
/// MPI line lists the MPI libraries on this machine that dtrain would open.
std::string version_text();

}  // namespace dtrain
