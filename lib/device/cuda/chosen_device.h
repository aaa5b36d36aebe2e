// The current GPU of a thread.
#pragma once

namespace dtrain::cuda {

/// The GPU that use_device() (current.h) selected for the calling thread; -1 if none. cudaGetDevice() is not
/// used because it returns 0 for a thread that selected none, and "restoring" that would initialize GPU 0.
inline thread_local int chosen_device = -1;

}  // namespace dtrain::cuda
