// Models that Keras's multi_gpu_model, or make_parallel before it, wrapped for several GPUs.
#pragma once

#include <memory>
#include <vector>

#include "interop/keras/files/model_tree.h"

namespace dtrain {

/// Replaces the wrapper of a model by the model that it calls, repeatedly if wrappers are nested. Returns the
/// number of towers of each wrapper, outermost first; empty if there is no wrapper.
/// A wrapper calls one model N >= 2 times. Each call gets 1/N of every input, sliced by a Lambda layer; a
/// Concatenate along the batch axis joins each output. The N calls are the towers.
std::vector<int> remove_towers(std::shared_ptr<const KerasModel>& model);

}  // namespace dtrain
