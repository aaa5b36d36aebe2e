// Models that Keras's multi_gpu_model, or make_parallel before it, wrapped for several GPUs.
#pragma once

#include <memory>
#include <vector>

#include "interop/keras/model_tree.h"

namespace dtrain {

/// Puts the model that such wrappers call in their place, as often as it was wrapped. Returns the number of
/// towers of each wrapper, outermost first; none if there is no wrapper.
///
/// A wrapper calls one model N >= 2 times. Each call gets the N-th part of every input, cut out by a Lambda,
/// and a Concatenate along the batch puts each output together. The N calls are the towers.
std::vector<int> remove_towers(std::shared_ptr<const KerasModel>& model);

}  // namespace dtrain
