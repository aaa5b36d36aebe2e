// The options of a program that depend on how it is run.
#pragma once

#include <cstdint>
#include <span>

#include "collective/collective.h"
#include "collective/remote_slots.h"

namespace dtrain {

/// Approximate maximum number of gradient buckets if gradients are reduced during the backward pass. A bucket
/// consists of whole layers, and each bucket except the last has at least 1 / kGradientBuckets of the
/// trained parameters. A small number of buckets means few collective calls. A large number means small
/// buckets, which need little memory for gradients that are not reduced yet.
inline constexpr int64_t kGradientBuckets = 32;

struct PlanOptions {
  /// Indexed by slot: communicators that connect the replicas, for the collective calls of synchronized
  /// layers in training. Empty if there is only one replica.
  std::span<Collective* const> replicas = {};
  /// Indexed by slot: maximum number of microbatches in flight. Empty if the maximum is one for all slots.
  std::span<const int> in_flight = {};
  /// Whether each slot's thread has its own core, so that it may busy-wait for other slots.
  bool spin = false;
  /// Connects the slots of the replica if they are divided among processes. Null if all slots are in this
  /// process.
  RemoteSlots* remote = nullptr;
  /// Whether the slot stores only a shard of the parameters. In this case, a layer's parameters are gathered
  /// before each use, and their memory is released after the use.
  bool gathers_parameters = false;
  /// Whether the slot stores only a shard of the gradients. In this case, gradients are reduced during the
  /// backward pass.
  bool reduces_gradients = false;
  /// If positive: the number of floats in each bucket of gradients that is all-reduced during the backward
  /// pass, as soon as the gradients are computed. Applies to frames with SlotArrays::update, in programs with
  /// one slot.
  int64_t all_reduce_bucket = 0;
  /// Whether the sum of row weights is all-reduced after the gradients.
  bool all_reduces_row_weights = false;
  /// Whether some frames add their gradients to those of earlier microbatches (SlotArrays::accumulates).
  bool accumulates = false;
};

}  // namespace dtrain
