// The choices in a program that depend on how it is run.
#pragma once

#include <cstdint>
#include <span>

#include "collective/collective.h"

namespace dtrain {

/// Gradients that are reduced as backward makes them go in buckets of whole layers, each but the last of at
/// least one of so many parts of the trained parameters: few collective calls, and little memory for what is
/// not reduced yet.
inline constexpr int64_t kGradientBuckets = 32;

struct PlanOptions {
  /// The group that synchronised layers meet in training, by slot; empty where there is one replica.
  std::span<Collective* const> replicas = {};
  /// Microbatches that are under way at once at most, by slot; empty: one.
  std::span<const int> in_flight = {};
  /// Whether each slot's thread has a core of its own, so that it may wait busily for the others.
  bool spin = false;
  /// The slot has no whole parameters: a layer's are gathered ahead of each use, and freed behind it.
  bool gathers_parameters = false;
  /// The slot has no whole gradients: they are reduced as backward makes them.
  bool reduces_gradients = false;
  /// Some frames add their gradients to those of earlier microbatches (SlotArrays::accumulates).
  bool accumulates = false;
};

}  // namespace dtrain
