// Layouts of Keras's HDF5 files.
#pragma once

#include <string>

namespace dtrain {

/// `layers`: with layer_names, as in whole models and Keras 2 weights. `vars`: with .../vars/N, as in
/// .weights.h5 files of Keras 3. `none`: not from Keras.
enum class KerasLayout { none, layers, vars };

/// Returns `none` also if libhdf5 cannot open the file. The caller must not hold an Hdf5Session.
KerasLayout keras_layout_of(const std::string& path);

}  // namespace dtrain
