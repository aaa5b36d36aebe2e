// The steps from gradients to an update that the gradient syncs have in common.
#pragma once

#include "collective/collective.h"
#include "engine/gradient_norm.h"
#include "engine/update.h"
#include "engine/worker.h"

namespace dtrain {

/// Enqueues the update of the gradient's scale in worker.state() (clipping, float16's loss scaling) by
/// worker.squares() and `weights`, the sum of all rows' weights in device memory (null: rows have none).
void update_gradient_scale(Worker& worker, const Update& update, const double* weights);

/// The update of `whole` by the worker's gradients, whose scale is known.
void update_whole(Worker& worker, const Update& update, const ParameterMemory& memory, Range whole);
/// The same where the whole gradient is at hand and its scale is not known yet.
void update_alone(Worker& worker, const Update& update, const ParameterMemory& memory, Range whole,
                  const double* weights);

/// Adds the gradient's sums of squares and the sums of the rows' weights over `everyone`, and updates the
/// gradient's scale in worker.state() by them. `gradient`: of `mine`, in the memory of `worker`. `computed`:
/// the worker whose plan ran, of which own_weights() is read; another one where the host updates for a GPU.
void all_reduce_sums(Worker& worker, Worker& computed, Collective& everyone, const Update& update,
                     const GradientNorm& norm, const float* gradient, Range mine);

/// The update of a member's part by its gradient. The norms of whole parameters are of the sums over all
/// members' parts, whatever these are.
void update_part(Worker& worker, Collective& member, const Update& update, const ParameterMemory& memory,
                 float* gradient, Range mine);

}  // namespace dtrain
