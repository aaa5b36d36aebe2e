// The steps from gradients to an update that the gradient syncs have in common.
#pragma once

#include "collective/collective.h"
#include "train/gradient_norm.h"
#include "train/update.h"
#include "train/worker.h"

namespace dtrain {

/// What the gradient is worth, by the sums that are known of it: `worker.squares()`, and the sum of the
/// weights where rows have some.
void update_gradient_scale(Worker& worker, const Update& update, const double* weights);

/// The update of `whole` by the worker's gradients, whose scale is known.
void update_whole(Worker& worker, const Update& update, const ParameterMemory& memory, Range whole);
/// The same where the whole gradient is at hand and its scale is not known yet.
void update_alone(Worker& worker, const Update& update, const ParameterMemory& memory, Range whole,
                  const double* weights);

/// The sums of squares over everyone's parts, and of weights over their shares, and what follows from them
/// for each. `gradient`: of `mine`, in the memory of `worker`; `computed` has the weights.
void all_reduce_sums(Worker& worker, Worker& computed, Collective& everyone, const Update& update,
                     const GradientNorm& norm, const float* gradient, Range mine);

/// The update of a member's part by its gradient. The norms of whole parameters are sums over all members'
/// parts.
void update_part(Worker& worker, Collective& member, const Update& update, const ParameterMemory& memory,
                 float* gradient, Range mine);

}  // namespace dtrain
