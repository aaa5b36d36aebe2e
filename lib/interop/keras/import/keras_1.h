// Conversion of Keras 1 model files. Keras 1 has different names for layers and options, and different kernel
// shapes.
#pragma once

#include "base/json.h"
#include "interop/keras/files/model_tree.h"
#include "interop/keras/files/weights.h"

namespace dtrain {

/// Converts the names of layers and options in a model's configuration, {class_name, config}, to Keras 2's
/// names. Layers and options that Keras 2 lacks keep their names.
Json with_keras_2_names(const Json& model_config);

/// Describes how convolution kernels in a file differ from the kernels that Keras 3 writes.
struct KernelLayout {
  bool is_keras_1 = false;  ///< the axes have Keras 1's order
  bool is_flipped = false;  ///< the kernel is reversed along the axes of the window, as in Theano
};

/// Converts the kernel of a convolution to the layout that Keras 3 writes. Returns the kernels of other
/// layers unchanged.
KerasWeight restored_kernel(const KerasModelLayer& layer, const KerasWeight& kernel,
                            const KernelLayout& layout);

}  // namespace dtrain
