// Arguments of the calls of Keras layers.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "interop/keras/import/fold_blocks.h"
#include "interop/keras/import/graph.h"
#include "interop/keras/import/model_calls.h"
#include "support/errors.h"

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

/// An imported model, and the file's model, to which the imported model refers.
struct Imported : ImportedModel {
  std::shared_ptr<const KerasModel> file;
};

/// Imports a functional model that ends with `layers`, of which the last has the name `end`. The model's
/// input is `x`, of shape [5, 4].
Imported imported(const std::string& layers) {
  const auto file = parse_keras_model(Json::parse(
      R"({"class_name": "Functional", "config": {"name": "net", "layers": [{"class_name": "InputLayer", "name": "x", )"
      R"("config": {"name": "x", "batch_shape": [null, 5, 4]}, "inbound_nodes": []}, )" +
      layers + R"(], "input_layers": [["x", 0, 0]], "output_layers": [["end", 0, 0]]}})"));
  return {import_keras_model(*file, 3), file};
}

std::string layer(const std::string& class_name, const std::string& name, const std::string& options,
                  const std::string& calls) {
  return fmt::format(R"({{"class_name": "{0}", "name": "{1}", "config": {{"name": "{1}", {2}}}, )"
                     R"("inbound_nodes": [{3}]}})",
                     class_name, name, options, calls);
}

std::string tensor(const std::string& name, int output = 0) {
  return fmt::format(R"({{"class_name": "__keras_tensor__", "config": {{"keras_history": ["{}", 0, {}]}}}})",
                     name, output);
}

std::string call(const std::string& args, const std::string& keywords) {
  return fmt::format(R"({{"args": [{}], "kwargs": {{{}}}}})", args, keywords);
}

std::string layers_of(const ImportedModel& model) {
  return model.model.find("layers")->to_yaml();
}

}  // namespace

TEST_CASE("arguments of calls that change predictions are problems") {
  const std::vector<std::string> none;
  CHECK(problems("Dropout", R"({"training": false})") == none);
  CHECK(problems("Dropout", R"({"training": true})") ==
        std::vector<std::string>{"one: is called with training=true"});
  CHECK(problems("Resizing", R"({"training": true})") == none);
  CHECK(problems("Resizing", R"({"other": 1})") == std::vector<std::string>{"one: is called with other=1"});
  CHECK(problems("MultiHeadAttention", R"({"attention_mask": )" + tensor("x") + "}") ==
        std::vector<std::string>{"one: is called with attention_mask=the output of 'x'"});
}

TEST_CASE("constants in calls are problems") {
  const std::string text = layer("Add", "end", R"("trainable": true)", call(tensor("x") + ", 1.5", ""));
  CHECK(test::error_of([&] { imported(text); }).find("end: is called with the constant 1.5") !=
        std::string::npos);
}

TEST_CASE("inputs may be keyword arguments") {
  const std::string heads = R"("num_heads": 2, "key_dim": 3)",
                    dense = layer("Dense", "dense", R"("units": 4)", call(tensor("x"), "")) + ", ";
  const auto attention = [&](const std::string& calls) {
    return layers_of(imported(dense + layer("MultiHeadAttention", "end", heads, calls)));
  };
  CHECK(attention(call("", R"("query": )" + tensor("x") + R"(, "value": )" + tensor("dense")))
            .find("inputs: [x, dense]") != std::string::npos);
  CHECK(attention(call(tensor("dense"), R"("key": )" + tensor("dense") + R"(, "value": )" + tensor("x")))
            .find("inputs: [dense, x, dense]") != std::string::npos);
  CHECK(attention(R"([["x", 0, 0, {"value": ["dense", 0, 0]}]])").find("inputs: [x, dense]") !=
        std::string::npos);
  CHECK(layers_of(imported(layer("Dense", "end", R"("units": 2)", call("", R"("inputs": )" + tensor("x")))))
            .find("dense: {units: 2, name: end}") != std::string::npos);
}

TEST_CASE("attention may have the default output_shape") {
  const auto error = [](const std::string& shape) {
    return test::error_of([&] {
      const Imported model = imported(layer("MultiHeadAttention", "end",
                                            R"("num_heads": 2, "key_dim": 3, "output_shape": )" + shape,
                                            call(tensor("x") + ", " + tensor("x"), "")));
      build_imported(model, model.model);
    });
  };
  for (const char* equal : {"null", "[]", "4", "[4]"}) CHECK(error(equal) == "");
  CHECK(error("[6]").find(
            "end (MultiHeadAttention): has an output_shape of width 6, but the output of dtrain's "
            "layer always has the width of its input, which is 4") != std::string::npos);
  CHECK(error("[2, 2]").find("end (MultiHeadAttention): has output_shape: [2, 2]") != std::string::npos);
}

TEST_CASE("layers read the states of recurrent layers") {
  const std::string encoder =
      layer("LSTM", "encoder", R"("units": 3, "return_state": true)", call(tensor("x"), "")) + ", ";
  const std::string states =
      R"("initial_state": [)" + tensor("encoder", 1) + ", " + tensor("encoder", 2) + "]";
  const std::string as_keras_3 = layer("LSTM", "end", R"("units": 3)", call(tensor("x"), states)),
                    as_keras_2 = layer("LSTM", "end", R"("units": 3)",
                                       R"([["x", 0, 0, {}], ["encoder", 0, 1, {}], ["encoder", 0, 2, {}]])");
  for (const std::string& decoder : {as_keras_3, as_keras_2}) {
    const Imported model = imported(encoder + decoder);
    CHECK(layers_of(model).find("inputs: [x, encoder:1, encoder:2]") != std::string::npos);
    const Graph graph = build_imported(model, model.model);
    CHECK(graph.nodes[2].inputs == std::vector<ValueRef>{{0}, {1, 1}, {1, 2}});
    CHECK(fold_blocks(model.model, graph).uses.empty());
  }
  CHECK(test::error_of([&] {
          imported(encoder + layer("Dense", "end", R"("units": 3)", call(tensor("encoder", 3), "")));
        }).find("encoder: an output is read before it is computed, or does not exist") != std::string::npos);
}

TEST_CASE("a model that is called with a mapping gets the inputs by their keys") {
  const auto inner = [](const std::string& inputs, const std::string& outputs) {
    const auto input = [](const std::string& name) {
      return layer("InputLayer", name, R"("batch_shape": [null, 5, 4])", "");
    };
    return R"("layers": [)" + input("q") + ", " + input("p") + ", " +
           layer("Subtract", "less", R"("trainable": true)",
                 call("[" + tensor("p") + ", " + tensor("q") + "]", "")) +
           ", " +
           layer("Add", "more", R"("trainable": true)",
                 call("[" + tensor("p") + ", " + tensor("q") + "]", "")) +
           R"(], "input_layers": )" + inputs + R"(, "output_layers": )" + outputs;
  };
  const std::string dense = layer("Dense", "dense", R"("units": 4)", call(tensor("x"), "")) + ", ",
                    of_keys = R"({"q": ["q", 0, 0], "p": ["p", 0, 0]})",
                    of_list = R"([["q", 0, 0], ["p", 0, 0]])", less = R"([["less", 0, 0]])";
  const std::string args = R"({"q": )" + tensor("dense") + R"(, "p": )" + tensor("x") + "}",
                    no_masks = R"("mask": {"p": null, "q": [null]})";
  for (const std::string& inputs : {of_keys, of_list})
    CHECK(layers_of(imported(dense + layer("Functional", "end", inner(inputs, less), call(args, no_masks))))
              .find("subtract: {name: end/less, inputs: [x, dense]") != std::string::npos);
  const std::string list = "[" + tensor("dense") + ", " + tensor("x") + "]";
  CHECK(layers_of(imported(dense + layer("Functional", "end", inner(of_list, less),
                                         call(list, R"("mask": [null, null])"))))
            .find("subtract: {name: end/less, inputs: [x, dense]") != std::string::npos);
  // The outputs are numbered by their sorted keys, too.
  const std::string outputs = R"({"z": ["less", 0, 0], "a": ["more", 0, 0]})";
  const std::string both = layers_of(
      imported(dense + layer("Functional", "inner", inner(of_list, outputs), call(list, "")) + ", " +
               layer("Subtract", "end", R"("trainable": true)",
                     call("[" + tensor("inner", 0) + ", " + tensor("inner", 1) + "]", ""))));
  CAPTURE(both);
  CHECK(both.find("inputs: [inner/more, inner/less]") != std::string::npos);
  const std::string missing = R"({"q": )" + tensor("dense") + "}";
  CHECK(test::error_of([&] {
          imported(dense + layer("Functional", "end", inner(of_keys, less), call(missing, "")));
        }).find("the model 'net': expected the input 'p' in a call of 'end', found no such key") !=
        std::string::npos);
}

TEST_CASE("options that dtrain's layers do not have are problems, and are not taken for others") {
  CHECK(test::error_of([&] {
          imported(layer("ReLU", "end", R"("max_value": 0)", call(tensor("x"), "")));
        }).find("end (ReLU): has max_value: 0, but a relu must have a max_value above 0") !=
        std::string::npos);
  // One row of offsets applies to every position, so it is no position encoding.
  const std::string offset = R"("scale": 1.0, "offset": [[0.0, 1.0, 0.0, 1.0]])";
  CHECK(test::error_of([&] {
          imported(layer("Rescaling", "end", offset, call(tensor("x"), "")));
        }).find("end (Rescaling): rescaling's offset: expected a finite number") != std::string::npos);
}
