// The content of a file that Keras wrote: its layers and arrays, without their values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/shape.h"
#include "checkpoint/keras_layout.h"

namespace dtrain {

struct KerasArray {
  std::string name;  ///< as the file has it, below its layer: "dense/kernel:0", "vars/0"
  Shape shape;
  std::string dtype;  ///< "float32", "int64", "string", ...; "other"
};

struct KerasLayerEntry {
  std::string name;
  std::string kind;  ///< Keras's class, "Dense"; "" in a file without the model's configuration
  std::vector<KerasArray> arrays;
};

struct KerasContent {
  std::string path;
  size_t file_bytes = 0;
  KerasLayout layout = KerasLayout::none;
  std::string keras_version, backend;   ///< "" where the file does not say
  std::string model_class, model_name;  ///< "" in a file without the model's configuration
  bool is_compiled = false;             ///< it has a training_config
  std::vector<KerasLayerEntry> layers;  ///< in the model's order, or else the file's
  std::vector<KerasArray> optimizer;    ///< the optimizer's arrays
};

/// Reads an .h5, a .weights.h5 or a .keras. Throws UserError, with the path, what was expected and what was
/// found, for a file that Keras did not write.
KerasContent read_keras_file(const std::string& path);

}  // namespace dtrain
