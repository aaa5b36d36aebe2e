// The form of an attention that no layer of Keras computes: a model that consists of Keras's layers and
// operations.
#pragma once

#include "base/json.h"
#include "interop/keras/files/attention_layers.h"
#include "interop/keras/files/class_paths.h"
#include "interop/keras/files/keras_model.h"

namespace dtrain {

/// The class of a restored attention. Keras has no class of this name.
inline constexpr const char* kKerasModelOfAttention = "ModelOfAttention";

/// The groups with the weights of an attention that Keras has as a model, within the group of that model.
inline constexpr KerasLayerPart kKerasAttentionParts[] = {
    {"layers/einsum_dense", "query/", "dense"},
    {"layers/einsum_dense_1", "key/", "dense"},
    {"layers/einsum_dense_2", "value/", "dense"},
    {"layers/einsum_dense_3", "attention_output/", "dense"}};

/// Returns the config of the model. `outer`: the config of a layer, with the keys `name` and `trainable`.
/// `weights`: initializers, regularizers and constraints of the kernels and biases, in Keras's form.
Json keras_attention_model(const KerasAttention& attention, const Json& outer, const Json& weights);

/// Replaces the Keras model of an attention, which dtrain wrote or Keras saved after loading it, by one layer
/// with dtrain's options. Other layers are unchanged.
void restore_attention(KerasModelLayer& layer);

}  // namespace dtrain
