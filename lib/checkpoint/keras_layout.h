// Layouts of Keras's HDF5 files.
#pragma once

#include <string>

namespace dtrain {

/// The two layouts in which Keras stores weights in HDF5 files. `layers`: whole models and weights of Keras
/// 2. Each layer has a group, and the attribute layer_names lists the groups. `vars`: .weights.h5 files of
/// Keras 3. The arrays are named .../vars/0, .../vars/1 and so on. `none`: the file is not from Keras.
enum class KerasLayout { none, layers, vars };

/// Returns the layout of a file. Also returns `none` if libhdf5 cannot open the file. The caller must not
/// hold an Hdf5Session.
KerasLayout keras_layout_of(const std::string& path);

}  // namespace dtrain
