// The current GPU of a thread.
#pragma once

namespace dtrain::cuda {

/// The GPU that use_device() (current.h) has selected for the calling thread, or -1 if none has been
/// selected. cudaGetDevice() cannot be used for this purpose, because it returns 0 for a thread that has not
/// selected a GPU. Code that saves this result and later selects the saved GPU again would then initialize
/// GPU 0.
inline thread_local int chosen_device = -1;

}  // namespace dtrain::cuda
