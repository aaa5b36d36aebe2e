// Layers of dtrain that Keras lacks. Keras's files have models or other layers in their place.
#pragma once

#include <span>

#include "interop/keras/files/class_paths.h"
#include "interop/keras/files/keras_model.h"

namespace dtrain {

/// Replaces Keras's replacement of a layer that it lacks by one layer with dtrain's options. Other layers are
/// unchanged.
void restore_layer(KerasModelLayer& layer);

/// Returns the parts with the weights of a restored model, in the order of its weights; empty for other
/// layers. Their groups are within the group of the model.
std::span<const KerasLayerPart> parts_of_restored(const KerasModelLayer& layer);

}  // namespace dtrain
