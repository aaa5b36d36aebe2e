// Collective calls among the replicas of all processes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collective/collective.h"
#include "collective/world.h"

namespace dtrain {

/// Creates a group of the replicas of all processes, and returns the members for those of this process.
/// Member rank() is the replica's rank among all replicas. reduce_scatter() and share_pointers() throw
/// std::logic_error, because the replicas share no memory. `local`: the members of a group of this process's
/// replicas. The replica of local rank 0 must run on the thread that owns the World. Keeps references to all
/// arguments except the vector.
std::vector<std::unique_ptr<Collective>> make_process_group(const std::vector<Collective*>& local,
                                                            World& world, const ReplicaRanks& ranks);

}  // namespace dtrain
