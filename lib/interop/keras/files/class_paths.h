// Names of layer groups in Keras 3's weight files. Keras derives them from the layers' classes: "dense",
// "dense_1", "conv2d".
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace dtrain {

/// Returns the class name in snake case as Keras's to_snake_case() does: "Conv2DTranspose" gives
/// "conv2d_transpose".
std::string keras_snake_case(std::string_view class_name);

/// Numbers the layers of one model by class, in Keras's order.
class KerasClassNumbers {
 public:
  /// Returns the name for the next layer of a class. `count`: how many consecutive numbers the layer uses up;
  /// the name contains the first one.
  std::string next(const std::string& class_name, int count = 1);

 private:
  std::map<std::string, int> numbers_;
};

/// A part of a layer, with its own group of weights in files of the layout `vars` (KerasLayout).
struct KerasLayerPart {
  std::string_view group;   ///< "query_dense"
  std::string_view prefix;  ///< prefix of the names of its weights, such as "query/"
  /// Keras class of the part, in snake case. "" if the part has the class of the layer: the weights of the
  /// part are then named like the weights of this class.
  std::string_view class_name;
};

/// All layer parts: the cells of recurrent layers, and the dense layers of attention layers. The parts of one
/// layer are in the order of the layer's weights. A path belongs to the first entry for which the path ends
/// with "/" and the entry's group. Therefore "cell" comes after "forward_layer/cell".
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

/// Suffix of the group path of a TimeDistributed's inner layer. If the inner layer has parts, their paths
/// continue after this suffix.
inline constexpr std::string_view kKerasWrappedLayer = "/layer";

}  // namespace dtrain
