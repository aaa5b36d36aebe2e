// Layers of dtrain that Keras lacks. Keras's files have models or other layers in their place.
#pragma once

#include <span>

#include "interop/keras/files/class_paths.h"
#include "interop/keras/files/keras_model.h"

namespace dtrain {

/// If a Keras file has this model or layer in place of a layer of dtrain, replaces it by dtrain's layer, with
/// dtrain's options. Does nothing to other layers.
void restore_layer(KerasModelLayer& layer);

/// For a layer that restore_layer() made from a model, returns the parts that have weights, in the order of
/// the layer's weights; empty for other layers. In the file, the groups of the parts are in the group of the
/// model.
std::span<const KerasLayerPart> parts_of_restored(const KerasModelLayer& layer);

}  // namespace dtrain
