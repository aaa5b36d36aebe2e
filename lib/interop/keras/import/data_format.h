// The order of the axes of images in a Keras model ("data_format"), and the layers that depend on it.
#pragma once

#include "config/node.h"
#include "interop/keras/files/model_tree.h"

namespace dtrain {

/// Returns true if the layer processes images or volumes with channels first.
bool has_channels_first(const KerasModelLayer& layer);

/// Returns true if the layer works along axis 1, which is the channel axis of images with channels first.
bool is_along_first_axis(const KerasModelLayer& layer);

/// Returns true if the layer computes each element independently, so that the order of axes does not matter.
bool is_elementwise(const KerasModelLayer& layer);

/// Returns true if the layer returns an image with channels last when it reads an image with channels last.
bool gives_image(const KerasModelLayer& layer);

/// Converts a PReLU's options from channels first to channels last.
ConfigNode with_channels_last(const ConfigNode& options, bool is_volume);

}  // namespace dtrain
