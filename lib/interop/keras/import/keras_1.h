// Conversion of Keras 1 model files, which have other names of layers and options and other kernel shapes.
#pragma once

#include "base/json.h"
#include "interop/keras/files/model_tree.h"
#include "interop/keras/files/weights.h"

namespace dtrain {

/// Returns a model's configuration, {class_name, config}, with Keras 2's names of layers and options. Layers
/// and options that Keras 2 lacks keep their names.
Json with_keras_2_names(const Json& model_config);

/// Describes how convolution kernels in a file differ from the kernels that Keras 3 writes.
struct KernelLayout {
  bool is_keras_1 = false;  ///< the axes have Keras 1's order
  bool is_flipped = false;  ///< reversed along the axes of the window, as in Theano
};

/// Converts the kernel of a convolution to the form that Keras 3 writes. Kernels of other layers are returned
/// unchanged.
KerasWeight restored_kernel(const KerasModelLayer& layer, const KerasWeight& kernel,
                            const KernelLayout& layout);

}  // namespace dtrain
