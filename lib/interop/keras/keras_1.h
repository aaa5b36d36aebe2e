// Model files of Keras 1: other names of layers and options, other shapes of kernels.
#pragma once

#include "base/json.h"
#include "interop/keras/model_tree.h"
#include "interop/keras/weights.h"

namespace dtrain {

/// Returns a model's configuration, {class_name, config}, with Keras 2's names of layers and options. A layer
/// or an option that Keras 2 lacks keeps its name.
Json with_keras_2_names(const Json& model_config);

/// How the kernels of convolutions in a file differ from those that Keras 3 writes.
struct KernelLayout {
  bool is_keras_1 = false;  ///< Keras 1's order of axes
  bool is_flipped = false;  ///< Theano's: reversed along the axes of the window
};

/// Returns the kernel of a convolution as Keras 3 would write it; a kernel of another layer is returned as it
/// is.
KerasWeight restored_kernel(const KerasModelLayer& layer, const KerasWeight& kernel,
                            const KernelLayout& layout);

}  // namespace dtrain
