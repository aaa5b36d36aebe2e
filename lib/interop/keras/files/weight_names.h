// Names for the weights in Keras 3's files, which only number them: "layers/dense_1/vars/0".
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "interop/keras/files/weights.h"

namespace dtrain {

/// Returns the names of each group's weights, such as "dense_1/kernel". The layer's name comes from the
/// model's configuration; in files without one, it is the name that the file stores for the group, or the
/// group's own name. Layers of models within the model have names such as "base/conv". Weights are named by
/// their numbers if their class is unknown, or if their count does not determine which weights they are.
std::vector<std::vector<std::string>> names_of_vars(const std::vector<KerasWeightGroup>& groups,
                                                    const Json& model_config);

}  // namespace dtrain
