// Where the layers of a model are computed so that branches which need nothing of each other run at once.
#pragma once

#include <span>
#include <vector>

#include "distribute/stages.h"

namespace dtrain {

/// The slot of each node, a device a slot: each layer, in the model's order, goes where it ends first (list
/// scheduling; R. Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17, 1969, here
/// with copies as in H. Topcuoglu et al., "Performance-effective and low-complexity task scheduling for
/// heterogeneous computing", 2002). A chain of layers stays on slot 0. Memory is not looked at.
std::vector<int> place_branches(const StageProblem& problem);

/// Seconds of forward and backward where nodes are on these slots: a slot computes its layers one at a time
/// in the model's order, and backward in the opposite one; what another slot reads is copied, and its
/// gradient copied back. Two thirds of a layer's time are backward's.
double branches_seconds(const StageProblem& problem, std::span<const int> slots);

}  // namespace dtrain
