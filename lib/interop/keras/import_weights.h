// The weights of a Keras file as the parameters of the graph that was made of its model.
#pragma once

#include <map>
#include <string>

#include "checkpoint/keras_layout.h"
#include "interop/keras/import_model.h"
#include "interop/keras/keras_1.h"
#include "interop/keras/weights.h"

namespace dtrain {

/// Returns the arrays of all parameters by "<layer>/<weight>", kernels in Keras 3's layout. `file_model` is
/// the model as the file has it, towers included. Keras's files have weights by position: of layers, and
/// within the group of a model of all its trained weights before all others. Throws UserError, with the
/// layer, for weights that are missing, left over or of another shape.
std::map<std::string, KerasWeight> match_weights(const KerasModel& file_model, const ImportedModel& imported,
                                                 const Graph& graph, const KerasWeights& weights,
                                                 KerasLayout layout, const KernelLayout& kernels);

}  // namespace dtrain
