// Builds the graph of an imported Keras model.
#pragma once

#include "config/node.h"
#include "interop/keras/import/model.h"
#include "nn/graph.h"

namespace dtrain {

/// Removes the names that layers would also get automatically: their kind, or their kind with a number.
/// Returns the changed model.
ConfigNode without_automatic_names(const ConfigNode& model, const Graph& graph);

/// Builds the graph of `model`, which is imported.model with the user's changes. Throws UserError with a list
/// of all errors: inputs with unspecified dimensions (the message contains the --set options that would
/// specify them), layers that do not fit together, and axes that dtrain's layers do not support.
Graph build_imported(const ImportedModel& imported, const ConfigNode& model);

}  // namespace dtrain
