// Removes the multi-GPU wrappers that Keras's multi_gpu_model (or its predecessor make_parallel) puts around
// models.
#pragma once

#include <memory>
#include <vector>

#include "interop/keras/files/model_tree.h"

namespace dtrain {

/// If a model is a multi-GPU wrapper, replaces it by the model that it calls. If wrappers are nested,
/// removes all of them. Returns the number of towers of each wrapper, beginning with the outermost; the list
/// is empty if there is no wrapper. A wrapper calls one model N >= 2 times. Each call gets 1/N of every
/// input, sliced by a Lambda layer. For each output, a Concatenate along the batch axis joins the outputs of
/// the N calls. These N calls are the towers.
std::vector<int> remove_towers(std::shared_ptr<const KerasModel>& model);

}  // namespace dtrain
