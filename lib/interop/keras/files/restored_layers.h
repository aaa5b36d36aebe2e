// Restores dtrain layers that Keras lacks. Keras's files contain models or other layers in place of these
// layers.
#pragma once

#include <span>

#include "interop/keras/files/class_paths.h"
#include "interop/keras/files/keras_model.h"

namespace dtrain {

/// If `layer` is a Keras model or layer that stands for a dtrain layer that Keras lacks, replaces it by that
/// layer, with dtrain's options. Other layers do not change.
void restore_layer(KerasModelLayer& layer);

/// Returns the parts with weights of a layer that restore_layer() made from a model, in the order of the
/// layer's weights. Returns an empty span for other layers. In the file, the groups of the parts are below
/// the group of the model.
std::span<const KerasLayerPart> parts_of_restored(const KerasModelLayer& layer);

}  // namespace dtrain
