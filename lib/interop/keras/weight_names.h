// Names for the weights in Keras 3's files, which have them as "layers/dense_1/vars/0".
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "interop/keras/weights.h"

namespace dtrain {

/// Returns the names of each group's weights: "dense_1/kernel". The layer's name is that in the model's
/// configuration; in files without one, the name that the file has for the group, or the group's own. Layers
/// of models within the model have names such as "base/conv". Weights of a class that is not known, or whose
/// number leaves it open which they are, have their numbers for names.
std::vector<std::vector<std::string>> names_of_vars(const std::vector<KerasWeightGroup>& groups,
                                                    const Json& model_config);

}  // namespace dtrain
