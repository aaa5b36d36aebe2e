// The groups of layers in Keras 3's files of weights, which are named by class: "dense", "dense_1", "conv2d".
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace dtrain {

/// Keras's to_snake_case of a class: "conv2d_transpose" of "Conv2DTranspose".
std::string keras_snake_case(std::string_view class_name);

/// Numbers the layers of one model by their classes, in Keras's order.
class KerasClassNumbers {
 public:
  /// The name of the next layer of a class. `count`: how many numbers the layer takes.
  std::string next(const std::string& class_name, int count = 1);

 private:
  std::map<std::string, int> numbers_;
};

}  // namespace dtrain
