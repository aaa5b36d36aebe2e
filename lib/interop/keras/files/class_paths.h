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

}  // namespace dtrain
