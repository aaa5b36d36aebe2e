// How HDF5 files of Keras's are laid out.
#pragma once

namespace dtrain {

/// With layer_names, as whole models and the weights of Keras 2 are; with .../vars/N, as the .weights.h5 of
/// Keras 3 are; or not of Keras.
enum class KerasLayout { none, layers, vars };

}  // namespace dtrain
