// Names for the weights in Keras's files. Keras 3's files only number the weights: "layers/dense_1/vars/0".
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/keras_layout.h"
#include "interop/keras/files/weights.h"

namespace dtrain {

/// Returns the names of each group's weights, such as "dense_1/kernel". The name of the layer comes from the
/// model's configuration. In files without a configuration, it is the name that the file stores for the
/// group, or else the name of the group itself. Layers of models within the model have names such as
/// "base/conv". If the class of the layer is unknown, or if the number of weights does not tell which weights
/// they are, the weights are named after their indices.
std::vector<std::vector<std::string>> names_of_vars(const std::vector<KerasWeightGroup>& groups,
                                                    const Json& model_config);

/// Returns the names of each group's weights in files of any layout. In the layout `layers`, the name of a
/// weight is the name of its group and the last part of its name in the file: "dense_1/kernel". The name
/// keeps more parts if two names in the group would otherwise be equal.
std::vector<std::vector<std::string>> names_of_weights(const std::vector<KerasWeightGroup>& groups,
                                                       KerasLayout layout, const Json& model_config);

}  // namespace dtrain
