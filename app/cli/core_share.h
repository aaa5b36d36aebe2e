// Divides the cores and the GPUs of a machine among the processes of a run.
#pragma once

#include "collective/world.h"
#include "processes/processes.h"

namespace dtrain {

/// Divides the cores of each machine among its processes that are allowed to use the same cores; processes
/// that a launcher has bound to different cores keep theirs. Applies to the calling thread and to threads
/// that it starts later. Must be called before available_cores() (device.h), which keeps its first result.
/// Warns if a launcher has bound the processes of a machine to few of its cores. All processes must call it.
void share_cores(const Processes& processes, World& world);
/// Divides the GPUs of each machine among its processes that see the same GPUs, unless there are fewer GPUs
/// than processes. Launchers that give each process its own GPUs (CUDA_VISIBLE_DEVICES) keep their choice.
/// Must be called before the first CUDA call. All processes must call it.
void share_gpus(World& world);

}  // namespace dtrain
