// How a batch's samples come to a replica.
#pragma once

#include <array>
#include <vector>

#include "collective/collective.h"
#include "data/loader.h"
#include "nn/plan.h"
#include "ops/ops.h"

namespace dtrain {

/// Belongs to one replica and its thread.
class Feed {
 public:
  explicit Feed(Ops& ops) : ops_(ops), context_(ops.context()) {}

  /// Samples `range` of the batch come into the plan's columns. The host copies them right there; to a GPU
  /// they go by one of two staging areas, so that this may be called, and the copying goes on, while the step
  /// before still computes.
  void load(const Batch& batch, Range range, const Plan& plan);

 private:
  struct Staging {
    Buffer host, device;
  };
  void stage(const Batch& batch, Range range, const Plan& plan);

  Ops& ops_;
  Context& context_;
  std::array<Staging, 2> staging_;
  int slot_ = 0;
  std::vector<View> host_columns_;
  std::vector<size_t> offsets_;
};

}  // namespace dtrain
