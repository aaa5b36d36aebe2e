// Builds the graph of an imported Keras model.
#pragma once

#include "config/node.h"
#include "interop/keras/import/model.h"
#include "nn/graph.h"

namespace dtrain {

/// Returns the model without names that layers would get automatically (their kind with a number).
ConfigNode without_automatic_names(const ConfigNode& model, const Graph& graph);

/// Builds the graph of `model`, which is imported.model with the user's changes. Throws UserError with all
/// errors: inputs with open extents (with a --set that sets them), layers that do not fit together, and axes
/// that dtrain's layers do not support.
Graph build_imported(const ImportedModel& imported, const ConfigNode& model);

}  // namespace dtrain
