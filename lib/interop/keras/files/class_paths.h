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
  /// Returns the name of the next layer of a class. `count`: how many numbers of its class the layer takes.
  std::string next(const std::string& class_name, int count = 1);

 private:
  std::map<std::string, int> numbers_;
};

/// A part of a layer with its own weights in files of the layout `vars`.
struct KerasLayerPart {
  std::string_view group;       ///< "query_dense"
  std::string_view prefix;      ///< prefix of the names of its weights, such as "query/"
  std::string_view class_name;  ///< Keras class of the part in snake case; "": its weights have the names of
                                ///< the layer's weights
};

/// The parts of all layers: the cells of recurrent layers, the products of attention. The parts of one layer
/// are in the order of its weights. A group whose name is the end of another group's path comes after it.
inline constexpr KerasLayerPart kKerasLayerParts[] = {{"forward_layer/cell", "forward_", ""},
                                                      {"backward_layer/cell", "backward_", ""},
                                                      {"cell", "", ""},
                                                      {"query_dense", "query/", "dense"},
                                                      {"key_dense", "key/", "dense"},
                                                      {"value_dense", "value/", "dense"},
                                                      {"output_dense", "attention_output/", "dense"},
                                                      {"_query_dense", "query/", "dense"},
                                                      {"_key_dense", "key/", "dense"},
                                                      {"_value_dense", "value/", "dense"},
                                                      {"_output_dense", "attention_output/", "dense"}};

/// The end of the path of the layer that a TimeDistributed wraps. That layer may have parts.
inline constexpr std::string_view kKerasWrappedLayer = "/layer";

}  // namespace dtrain
