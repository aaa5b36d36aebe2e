// How HDF5 files of Keras's are laid out.
#pragma once

#include <string>

namespace dtrain {

/// With layer_names, as whole models and the weights of Keras 2 are; with .../vars/N, as the .weights.h5 of
/// Keras 3 are; or not of Keras.
enum class KerasLayout { none, layers, vars };

/// `none` also for a file that libhdf5 does not open. The caller holds no session.
KerasLayout keras_layout_of(const std::string& path);

}  // namespace dtrain
