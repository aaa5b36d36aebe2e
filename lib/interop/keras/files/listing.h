// Lists the layers and arrays of a Keras file, without their values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/shape.h"
#include "checkpoint/keras_layout.h"

namespace dtrain {

struct KerasArray {
  std::string name;  ///< name in the file: "dense/kernel:0", "dense/vars/0"; without a model, "vars/0"
  Shape shape;
  std::string dtype;  ///< "float32", "int64", "string" and so on; "other" for other types
  /// the name by which the options `rename` and `unused` of a model's `weights` refer to the array:
  /// "conv_a/kernel"; "" if the array is not a weight of a layer
  std::string weight = {};
};

struct KerasLayerEntry {
  std::string name;
  std::string kind;  ///< Keras class, such as "Dense"; "" if the file has no model configuration
  std::vector<KerasArray> arrays;
};

struct KerasContent {
  std::string path;
  size_t file_bytes = 0;
  KerasLayout layout = KerasLayout::none;
  std::string keras_version, backend;   ///< "" if the file does not contain it
  std::string model_class, model_name;  ///< "" if the file has no model configuration
  bool is_compiled = false;             ///< whether the file has a training_config
  /// in the model's order if the file contains the model's configuration, else in the file's order
  std::vector<KerasLayerEntry> layers;
  std::vector<KerasArray> optimizer;  ///< arrays of the optimizer
};

/// Reads an .h5, .weights.h5 or .keras file. If Keras did not write the file, throws UserError with the path,
/// the expected content and the content found.
KerasContent read_keras_file(const std::string& path);

}  // namespace dtrain
