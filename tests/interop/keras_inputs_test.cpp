// Tests inputs of models that are imported from Keras.
#include <doctest/doctest.h>

#include "interop/keras/import/graph.h"

using namespace dtrain;

TEST_CASE("an integer input that no embedding reads is a float32 input") {
  const auto file = parse_keras_model(Json::parse(
      R"({"class_name": "Sequential", "config": {"name": "net", "layers": [)"
      R"({"class_name": "InputLayer", "config": {"name": "im", "batch_shape": [null, 6, 6, 3], "dtype": "uint8"}}, )"
      R"({"class_name": "Rescaling", "config": {"name": "rescaling", "scale": 0.5, "offset": 0.0}}]}})"));
  const ImportedModel imported = import_keras_model(*file, 3);
  CHECK(imported.model.to_yaml().find("int32") == std::string::npos);
  REQUIRE(imported.left_out.size() == 1);
  CHECK(imported.left_out[0] == "im: dtype uint8, because no Embedding reads the input");
  build_imported(imported, imported.model);
}

TEST_CASE("a normalization along the first axis of an image input reads the image with channels last") {
  for (const std::string name : {"BatchNormalization", "GroupNormalization"}) {
    CAPTURE(name);
    const std::string groups = name == "GroupNormalization" ? R"(, "groups": 3)" : "";
    const auto file = parse_keras_model(Json::parse(
        R"({"class_name": "Sequential", "config": {"name": "net", "layers": [)"
        R"({"class_name": "InputLayer", "config": {"name": "im", "batch_shape": [null, 3, 6, 5]}}, )"
        R"({"class_name": ")" +
        name + R"(", "config": {"name": "norm", "axis": 1)" + groups + "}}]}}"));
    const ImportedModel imported = import_keras_model(*file, 3);
    const Graph graph = build_imported(imported, imported.model);
    CHECK(graph.nodes.back().outputs[0].shape == Shape{3, 6, 5});
    CHECK(imported.model.to_yaml().find("permute") != std::string::npos);
  }
}
