// Places the layers of a model on devices so that independent branches run in parallel.
#pragma once

#include <span>
#include <vector>

#include "distribute/stages.h"

namespace dtrain {

/// Returns the slot (device index) of each node. Each layer, in the model's order, goes to the slot on which
/// it finishes first (list scheduling; R. Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl.
/// Math. 17, 1969, here with copies as in H. Topcuoglu et al., "Performance-effective and low-complexity task
/// scheduling for heterogeneous computing", 2002). A chain of layers stays on slot 0. Ignores memory limits.
std::vector<int> place_branches(const StageProblem& problem);

/// Returns the seconds of forward and backward with nodes on these slots. A slot computes one layer at a
/// time, in the model's order in forward and in the reverse order in backward. Values that another slot reads
/// are copied, and so are their gradients in backward. Assumes that backward takes two thirds of a layer's
/// time.
double branches_seconds(const StageProblem& problem, std::span<const int> slots);

}  // namespace dtrain
