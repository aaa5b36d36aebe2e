// Restores dtrain layers that Keras lacks. Keras's files contain models or other layers in place of these
// layers.
#pragma once

#include <span>

#include "interop/keras/files/class_paths.h"
#include "interop/keras/files/keras_model.h"

namespace dtrain {

/// Some Keras models and layers represent a dtrain layer that Keras lacks. If `layer` is one of them,
/// replaces it by the dtrain layer with its options. Other layers do not change.
void restore_layer(KerasModelLayer& layer);

/// If restore_layer() made `layer` from a model, returns the parts of the layer that have weights, in the
/// order of the weights. Returns an empty span for other layers. In the file, the groups of the parts are
/// below the group of the model.
std::span<const KerasLayerPart> parts_of_restored(const KerasModelLayer& layer);

}  // namespace dtrain
