// Places the layers of a model on devices so that independent branches run in parallel.
#pragma once

#include <span>
#include <vector>

#include "distribute/stages.h"

namespace dtrain {

/// Returns the slot (device index) of each node. The layers are placed in the model's order. Each layer is
/// placed on the slot on which it finishes first (list scheduling: R. Graham, "Bounds on multiprocessing
/// timing anomalies", SIAM J. Appl. Math. 17, 1969). Copies between slots are taken into account, as in H.
/// Topcuoglu et al., "Performance-effective and low-complexity task scheduling for heterogeneous computing",
/// 2002. If the model is a chain of layers, all layers are on slot 0. Memory limits are ignored.
std::vector<int> place_branches(const StageProblem& problem);

/// Returns the time, in seconds, of forward and backward if the nodes are on these slots. A slot computes one
/// layer at a time: in forward in the model's order, in backward in the reverse order. If a value is read on
/// another slot, it is copied in forward, and its gradient is copied in backward. The estimate assumes that
/// backward takes two thirds of a layer's time.
double branches_seconds(const StageProblem& problem, std::span<const int> slots);

}  // namespace dtrain
