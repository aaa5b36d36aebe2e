// Conversion of attention layers that have no equivalent in Keras. They are exported as a Keras model that
// consists of Keras's layers and operations, and restored from it.
#pragma once

#include "base/json.h"
#include "interop/keras/files/attention_layers.h"
#include "interop/keras/files/class_paths.h"
#include "interop/keras/files/keras_model.h"

namespace dtrain {

/// Class name of an attention layer that was restored from its Keras model. Keras has no class of this name.
inline constexpr const char* kKerasModelOfAttention = "ModelOfAttention";

/// Groups that contain the weights of an attention layer that is stored as a Keras model. The paths are
/// relative to the group of this model.
inline constexpr KerasLayerPart kKerasAttentionParts[] = {
    {"layers/einsum_dense", "query/", "dense"},
    {"layers/einsum_dense_1", "key/", "dense"},
    {"layers/einsum_dense_2", "value/", "dense"},
    {"layers/einsum_dense_3", "attention_output/", "dense"}};

/// Returns the config of the Keras model for an attention layer. `outer`: a config with the keys `name` and
/// `trainable`. `weights`: initializers, regularizers and constraints of the kernels and biases,
/// in Keras's serialized form.
Json keras_attention_model(const KerasAttention& attention, const Json& outer, const Json& weights);

/// If `layer` is a Keras model in which dtrain stored an attention layer, replaces it by a single layer with
/// dtrain's options. Keras may have loaded the model and saved it again. Other layers do not change.
void restore_attention(KerasModelLayer& layer);

}  // namespace dtrain
