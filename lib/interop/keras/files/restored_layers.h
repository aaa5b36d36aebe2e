// Layers of dtrain that Keras lacks. Keras's files have models or other layers in their place.
#pragma once

#include <span>

#include "interop/keras/files/class_paths.h"
#include "interop/keras/files/keras_model.h"

namespace dtrain {

/// Turns the model or layer that a Keras file has in place of a layer of dtrain back into that layer, with
/// dtrain's options. Does nothing to other layers.
void restore_layer(KerasModelLayer& layer);

/// Returns the parts that have weights of a layer that restore_layer() made from a model, in the order of the
/// layer's weights; empty for other layers. In the file, the groups of the parts are in the group of the
/// model.
std::span<const KerasLayerPart> parts_of_restored(const KerasModelLayer& layer);

}  // namespace dtrain
