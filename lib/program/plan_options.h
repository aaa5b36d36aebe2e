// The options of a program that depend on how it is run.
#pragma once

#include <cstdint>
#include <span>

#include "collective/collective.h"
#include "collective/remote_slots.h"

namespace dtrain {

/// Approximate maximum number of buckets of gradients if these are reduced during backward. A bucket consists
/// of whole layers, and each but the last has at least 1 / kGradientBuckets of the trained parameters. Few
/// buckets mean few collective calls; small ones need little memory for gradients that are not reduced yet.
inline constexpr int64_t kGradientBuckets = 32;

struct PlanOptions {
  /// Indexed by slot: the group of replicas for the collective calls of synchronized layers in training;
  /// empty: one replica.
  std::span<Collective* const> replicas = {};
  /// Indexed by slot: maximum number of microbatches in flight; empty: one.
  std::span<const int> in_flight = {};
  /// Whether each slot's thread has its own core, so that it may busy-wait for other slots.
  bool spin = false;
  /// The slots of the replica, if they are divided among processes; null: all are in this process.
  RemoteSlots* remote = nullptr;
  /// Whether the slot stores only a shard of the parameters. A layer's parameters are then gathered before
  /// each use and freed after it.
  bool gathers_parameters = false;
  /// Whether the slot stores only a shard of the gradients. They are then reduced during backward.
  bool reduces_gradients = false;
  /// If positive: the replicas' gradients are all-reduced in buckets of this many floats as soon as backward
  /// has computed them, in frames with SlotArrays::update. For programs with one slot.
  int64_t all_reduce_bucket = 0;
  /// Whether an all-reduce of the sum of row weights follows these all-reduces.
  bool all_reduces_row_weights = false;
  /// Whether some frames add their gradients to those of earlier microbatches (SlotArrays::accumulates).
  bool accumulates = false;
};

}  // namespace dtrain
