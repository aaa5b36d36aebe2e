// Keras's form of attention that none of its layers computes: a model of layers and operations that it has.
#pragma once

#include "base/json.h"
#include "interop/keras/files/attention_layers.h"
#include "interop/keras/files/class_paths.h"
#include "interop/keras/files/keras_model.h"

namespace dtrain {

/// The class of a restored attention; not one of Keras.
inline constexpr const char* kKerasModelOfAttention = "ModelOfAttention";

/// The groups with the weights of such an attention, within the group of its model.
inline constexpr KerasLayerPart kKerasAttentionParts[] = {
    {"layers/einsum_dense", "query/", "dense"},
    {"layers/einsum_dense_1", "key/", "dense"},
    {"layers/einsum_dense_2", "value/", "dense"},
    {"layers/einsum_dense_3", "attention_output/", "dense"}};

/// Returns the config of the model. `outer`: the config of a layer, with the keys `name` and `trainable`.
/// `weights`: initializers, regularizers and constraints of the kernels and biases, in Keras's form.
Json keras_attention_model(const KerasAttention& attention, const Json& outer, const Json& weights);

/// Replaces such a model, written by dtrain or, after loading, by Keras, by one layer with dtrain's options.
/// Other layers are unchanged.
void restore_attention(KerasModelLayer& layer);

}  // namespace dtrain
