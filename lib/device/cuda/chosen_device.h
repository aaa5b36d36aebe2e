// The GPU that a thread works on.
#pragma once

namespace dtrain::cuda {

/// The GPU that the calling thread's CUDA calls go to, as chosen by use_device() (current.h); -1: none yet.
/// Not asked of the runtime, which would answer 0 for a thread that chose none, and start GPU 0 when that is
/// "restored".
inline thread_local int chosen_device = -1;

}  // namespace dtrain::cuda
