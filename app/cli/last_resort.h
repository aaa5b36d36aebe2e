// How the process ends when it runs out of memory.
#pragma once

namespace dtrain {

/// Installs the handler. If a large allocation fails, std::bad_alloc propagates as usual. If an exception
/// cannot propagate (a destructor, a library's thread), the process prints a message and exits with code 1
/// instead of dying by a signal. Any other termination still aborts.
///
/// If even a small allocation fails, the process exits in the same way at once (last_resort.cpp replaces
/// malloc for this): it could do nothing useful, and the libraries that dtrain uses would crash or exit
/// silently. Saved files are complete on disk.
void install_last_resort();

}  // namespace dtrain
