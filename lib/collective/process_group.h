// Collective calls among the replicas of all processes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collective/collective.h"
#include "collective/world.h"

namespace dtrain {

/// Creates a group of the replicas of all processes, and returns the members for those of this process.
/// Member rank() is the replica's rank among all replicas, or `places` of that rank, if these are given.
/// reduce_scatter() and share_pointers() throw std::logic_error, because the replicas share no memory.
/// `local`: the members of a group of this process's replicas, on any threads; several groups may be used at
/// the same time. Must be called as World::make_gather() says. Keeps references to the local members and to
/// `world`.
std::vector<std::unique_ptr<Collective>> make_process_group(const std::vector<Collective*>& local,
                                                            World& world, const ReplicaRanks& ranks,
                                                            std::vector<int> places = {});

}  // namespace dtrain
