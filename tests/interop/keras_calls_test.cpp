// Arguments of the calls of Keras layers.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "interop/keras/import/model_calls.h"

using namespace dtrain;

namespace {

/// Returns the problems of a model with one layer, which is called with these keyword arguments.
std::vector<std::string> problems(const std::string& layer, const std::string& arguments) {
  const std::string text = fmt::format(
      R"({{"class_name": "Functional", "config": {{"name": "net", "layers": [
        {{"class_name": "InputLayer", "name": "x", "config": {{"name": "x"}}, "inbound_nodes": []}},
        {{"class_name": "{}", "name": "one", "config": {{"name": "one"}}, "inbound_nodes": [
          {{"args": [{{"class_name": "__keras_tensor__", "config": {{"keras_history": ["x", 0, 0]}}}}],
           "kwargs": {}}}]}}],
      "input_layers": ["x", 0, 0], "output_layers": ["one", 0, 0]}}}})",
      layer, arguments);
  return list_calls(*parse_keras_model(Json::parse(text))).problems;
}

}  // namespace

TEST_CASE("arguments of calls that change predictions are problems") {
  const std::vector<std::string> none;
  CHECK(problems("Dropout", R"({"training": false})") == none);
  CHECK(problems("Dropout", R"({"training": true})") ==
        std::vector<std::string>{"one: is called with training=true"});
  CHECK(problems("Resizing", R"({"training": true})") == none);
  CHECK(problems("Resizing", R"({"other": 1})") == std::vector<std::string>{"one: is called with other=1"});
}
