// Collective calls among the replicas of all processes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collective/collective.h"
#include "collective/world.h"

namespace dtrain {

/// Creates a group of the replicas of all processes, and returns the members of this process's replicas. As
/// for World::make_gather(), all processes must create the same groups in the same order, on the thread that
/// owns the replicas. Several groups may be used at the same time. reduce_scatter() and share_pointers()
/// throw std::logic_error, because the replicas share no memory.
///
/// `local`: the members of a group of this process's replicas, on any threads. `ranks`: the number of members
/// of each process. `places`: rank() of each member, listed process by process. If `places` is empty, the
/// ranks are assigned process by process. Keeps references to the local members and to `world`.
std::vector<std::unique_ptr<Collective>> make_process_group(const std::vector<Collective*>& local,
                                                            World& world, const ReplicaRanks& ranks,
                                                            std::vector<int> places = {});

}  // namespace dtrain
