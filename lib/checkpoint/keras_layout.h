// Layouts of Keras's HDF5 files.
#pragma once

#include <string>

namespace dtrain {

/// Ways in which a file stores weights. `layers`: a group for each layer, which the attribute layer_names
/// lists, as in whole models and weights of Keras 2. `vars`: arrays named .../vars/0, .../vars/1 and so on,
/// as in .weights.h5 files of Keras 3. `none`: the file is not from Keras.
enum class KerasLayout { none, layers, vars };

/// Returns the layout of a file; `none` also if libhdf5 cannot open it. The caller must not hold an
/// Hdf5Session.
KerasLayout keras_layout_of(const std::string& path);

}  // namespace dtrain
