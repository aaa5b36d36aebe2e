// Steps of a parameter update that several gradient syncs share.
#pragma once

#include "collective/collective.h"
#include "engine/gradient_norm.h"
#include "engine/update.h"
#include "engine/worker.h"

namespace dtrain {

/// Enqueues the update of the gradient scale in worker.state() (clipping, float16 loss scaling) from
/// worker.squares() and `weights`, the sum of all rows' weights in device memory (null: rows have no
/// weights).
void update_gradient_scale(Worker& worker, const Update& update, const double* weights);

/// Updates the parameters in `whole` from the worker's gradients. The gradient scale must be up to date.
void update_whole(Worker& worker, const Update& update, const ParameterMemory& memory, Range whole);
/// The same for a worker that has the whole gradient; computes the gradient scale first.
void update_alone(Worker& worker, const Update& update, const ParameterMemory& memory, Range whole,
                  const double* weights);

/// Sums the squares of the gradient and the row weights over `everyone`, and updates the gradient scale in
/// worker.state(). `gradient`: the range `mine`, in the memory of `worker`. `computed`: the worker whose plan
/// ran and whose own_weights() is read; differs from `worker` if the host updates for a GPU.
void all_reduce_sums(Worker& worker, Worker& computed, Collective& everyone, const Update& update,
                     const GradientNorm& norm, const float* gradient, Range mine);

/// Updates a rank's part from its gradient. For optimizers that use norms of whole parameters, the norms are
/// summed over all ranks' parts.
void update_part(Worker& worker, Collective& member, const Update& update, const ParameterMemory& memory,
                 float* gradient, Range mine);

}  // namespace dtrain
