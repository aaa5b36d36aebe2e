// Divides the cores and the GPUs of a machine among the processes of a run.
#pragma once

#include "collective/world.h"
#include "processes/processes.h"

namespace dtrain {

/// Divides the cores of each machine among the processes on this machine that are allowed to use the same
/// cores. If a launcher has bound the processes to different cores, nothing changes. The calling thread, and
/// threads that it starts later, are bound to the cores of this process. Must be called before the first call
/// of available_cores() (device.h), because that function stores its first result. Warns if a launcher has
/// bound the processes of a machine to only some of its cores. All processes must call it.
void share_cores(const Processes& processes, World& world);
/// Divides the GPUs of each machine among the processes on this machine that see the same GPUs, unless there
/// are fewer GPUs than processes. If a launcher has given each process its own GPUs (with
/// CUDA_VISIBLE_DEVICES), nothing changes. The division also works if MPI has already initialized CUDA
/// (use_only_gpus() in device/gpu_info.h). Must be called before any GPU is used. All processes must call it.
void share_gpus(World& world);

}  // namespace dtrain
