// A dense layer that shares the weights of an embedding.
#pragma once

#include "config/diagnostics.h"
#include "nn/layer.h"

namespace dtrain {

/// Returns a dense layer that shares the weights of an embedding (`dense: {shared_with: EMBEDDING}`). It
/// computes activation(x embeddings^T) along the last axis. Each vector of the embedding gives one unit, and
/// the layer has no bias. `embeddings` is the embedding's parameter, of shape [input_dim, output_dim]. `kind`
/// is the kind of the dense layer as the user wrote it, and `options` are the options of the dense layer. If
/// an option is wrong, reports an error and returns an empty object.
Configured<Layer> tied_dense(const ParameterSpec& embeddings, const ConfigNode& kind,
                             const ConfigNode& options, Diagnostics& diagnostics);

}  // namespace dtrain
