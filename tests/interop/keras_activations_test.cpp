// Tests activations of layers that are imported from Keras.
#include <doctest/doctest.h>

#include "interop/keras/import/graph.h"
#include "support/errors.h"

using namespace dtrain;

namespace {

/// Returns the error of importing a Sequential model of one layer; "" if there is none.
std::string error_of_layer(const std::string& input_shape, const std::string& layer) {
  return test::error_of([&] {
    const auto file = parse_keras_model(Json::parse(
        R"({"class_name": "Sequential", "config": {"name": "net", "layers": [{"class_name": "InputLayer", )"
        R"("config": {"name": "x", "batch_input_shape": )" +
        input_shape + "}}, " + layer + "]}}"));
    import_keras_model(*file, 3);
  });
}

}  // namespace

TEST_CASE("a softmax layer as an activation must work along the last axis") {
  const auto error = [](const std::string& axis) {
    return error_of_layer("[null, 5, 4]",
                          R"({"class_name": "Dense", "config": {"name": "dense", "units": 4, "activation": )"
                          R"({"class_name": "Softmax", "config": {"name": "softmax", "axis": )" +
                              axis + "}}}}");
  };
  CHECK(error("-1").empty());
  CHECK(error("1").find("has the activation 'Softmax' along axis 1") != std::string::npos);
}

TEST_CASE("a convolution with channels first cannot have the activation softmax") {
  const auto error = [](const std::string& activation, const std::string& data_format) {
    return error_of_layer("[null, 3, 6, 5]",
                          R"({"class_name": "Conv2D", "config": {"name": "conv", "filters": 4, )"
                          R"("kernel_size": [3, 3], "data_format": ")" +
                              data_format + R"(", "activation": ")" + activation + R"("}})");
  };
  CHECK(error("relu", "channels_first").empty());
  CHECK(error("softmax", "channels_last").empty());
  CHECK(error("softmax", "channels_first").find("use a separate Softmax layer") != std::string::npos);
}
