// A dense layer that computes with the parameter of an embedding.
#pragma once

#include "config/diagnostics.h"
#include "nn/layer.h"

namespace dtrain {

/// Returns the layer `dense: {shared_with: EMBEDDING}`: activation(x embeddings^T), over the last axis. Its
/// units are the vectors of the embedding, and it has no bias. `embeddings` is the embedding's parameter, of
/// shape [input_dim, output_dim]; `kind` is the written name of the layer, `options` are its own options.
/// Returns an empty object after reporting an error in the options.
Configured<Layer> tied_dense(const ParameterSpec& embeddings, const ConfigNode& kind,
                             const ConfigNode& options, Diagnostics& diagnostics);

}  // namespace dtrain
