// Assigns the weights of a Keras file to the parameters of the imported graph.
#pragma once

#include <map>
#include <string>

#include "checkpoint/keras_layout.h"
#include "interop/keras/files/weights.h"
#include "interop/keras/import/keras_1.h"
#include "interop/keras/import/model.h"
#include "nn/graph.h"

namespace dtrain {

/// Returns the arrays of all parameters, indexed by "<layer>/<weight>". Kernels have Keras 3's layout.
/// `file_model` is the model in the file, including towers. Keras's files assign weights by position: layer
/// by layer, and within the group of a nested model, first all trained weights and then the others. Throws
/// UserError with the name of the layer if weights are missing, left over or have the wrong shape.
std::map<std::string, KerasWeight> match_weights(const KerasModel& file_model, const ImportedModel& imported,
                                                 const Graph& graph, const KerasWeights& weights,
                                                 KerasLayout layout, const KernelLayout& kernels);

}  // namespace dtrain
