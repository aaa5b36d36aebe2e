// Names of layer groups in Keras 3's weight files, which derive from classes: "dense", "dense_1", "conv2d".
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace dtrain {

/// Returns Keras's to_snake_case of a class: "Conv2DTranspose" gives "conv2d_transpose".
std::string keras_snake_case(std::string_view class_name);

/// Numbers the layers of one model by class, in Keras's order.
class KerasClassNumbers {
 public:
  /// Returns the name of the next layer of a class. `count`: numbers that the layer takes.
  std::string next(const std::string& class_name, int count = 1);

 private:
  std::map<std::string, int> numbers_;
};

/// A part of a layer that has weights of its own in files of the layout `vars`.
struct KerasLayerPart {
  std::string_view group;   ///< "query_dense"
  std::string_view prefix;  ///< of the names of its weights: "query/"
};

/// The parts of all layers: the cell of recurrent layers, the products of attention. The parts of one layer
/// are in the order of its weights.
inline constexpr KerasLayerPart kKerasLayerParts[] = {{"cell", ""},
                                                      {"query_dense", "query/"},
                                                      {"key_dense", "key/"},
                                                      {"value_dense", "value/"},
                                                      {"output_dense", "attention_output/"},
                                                      {"_query_dense", "query/"},
                                                      {"_key_dense", "key/"},
                                                      {"_value_dense", "value/"},
                                                      {"_output_dense", "attention_output/"}};

}  // namespace dtrain
