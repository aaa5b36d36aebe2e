// Tests convolutions with groups that are imported from Keras.
#include <doctest/doctest.h>

#include "interop/keras/import/graph.h"
#include "support/errors.h"

using namespace dtrain;

namespace {

struct Imported : ImportedModel {
  std::shared_ptr<const KerasModel> file;  // the imported model refers to the file's model
};

/// Imports a Sequential model of one layer. `options`: the options of the layer except for its name.
Imported imported(const std::string& input_shape, const std::string& class_name, const std::string& options) {
  const auto file = parse_keras_model(Json::parse(
      R"({"class_name": "Sequential", "config": {"name": "net", "layers": [{"class_name": "InputLayer", )"
      R"("config": {"name": "x", "batch_input_shape": )" +
      input_shape + R"(}}, {"class_name": ")" + class_name + R"(", "config": {"name": "layer", )" + options +
      "}}]}}"));
  return {import_keras_model(*file, 3), file};
}

/// Returns the shape of the kernel of the imported layer.
Shape kernel_of(const Imported& model) {
  return build_imported(model, model.model).nodes.back().parameters[0].shape;
}

bool has_groups(const Imported& model) {
  return model.model.to_yaml().find("groups") != std::string::npos;
}

}  // namespace

TEST_CASE("the groups of Keras's convolutions are read") {
  const std::string sizes = R"("filters": 6, "kernel_size": 3, "groups": )";
  const Imported image = imported("[null, 8, 8, 4]", "Conv2D", sizes + "2");
  CHECK(has_groups(image));
  CHECK(kernel_of(image) == Shape{3, 3, 2, 6});
  CHECK(kernel_of(imported("[null, 8, 4]", "Conv1D", sizes + "2")) == Shape{3, 2, 6});
  CHECK(kernel_of(imported("[null, 8, 8, 8, 4]", "Conv3D", sizes + "2")) == Shape{3, 3, 3, 2, 6});
  for (const std::string kind : {"Conv1D", "Conv2D"}) {
    const Imported single =
        imported(kind == "Conv1D" ? "[null, 8, 4]" : "[null, 8, 8, 4]", kind, sizes + "1");
    CHECK(!has_groups(single));
  }
}

TEST_CASE("groups of layers without this option are problems") {
  const auto problem = [](const std::string& class_name, const std::string& options) {
    return test::error_of([&] { imported("[null, 8, 8, 4]", class_name, options); });
  };
  CHECK(problem("Conv2DTranspose", R"("filters": 6, "kernel_size": 3, "groups": 2)").find("has groups: 2") !=
        std::string::npos);
  CHECK(problem("DepthwiseConv2D", R"("kernel_size": 3, "groups": 2)").find("has groups: 2") !=
        std::string::npos);
  CHECK(problem("DepthwiseConv2D", R"("kernel_size": 3, "groups": 1)").empty());
  CHECK(problem("Conv2D", R"("filters": 6, "kernel_size": 3, "groups": "2")").find("has groups") !=
        std::string::npos);
}
