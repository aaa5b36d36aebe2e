// Tests masks of padding in models that are imported from Keras.
#include <doctest/doctest.h>

#include "interop/keras/files/mask_rules.h"
#include "interop/keras/import/graph.h"
#include "support/errors.h"

using namespace dtrain;

namespace {

constexpr const char* kTokens =
    R"({"class_name": "InputLayer", "config": {"name": "x", "batch_input_shape": [null, 5], "dtype": "int32"}}, )"
    R"({"class_name": "Embedding", "config": {"name": "embedding", "input_dim": 9, "output_dim": 4, "mask_zero": true}}, )";

/// Returns a layer of a Sequential model.
std::string layer(const std::string& class_name, const std::string& options = "") {
  return R"({"class_name": ")" + class_name + R"(", "config": {)" + options + "}}";
}

std::string named(const std::string& class_name, const std::string& options = "") {
  return layer(class_name, R"("name": ")" + class_name + R"(")" + options);
}

/// An imported model, and the file's model, to which the imported model refers.
struct Imported : ImportedModel {
  std::shared_ptr<const KerasModel> file;
};

Imported imported(const std::string& layers, int keras_major = 3) {
  const auto file = parse_keras_model(
      Json::parse(R"({"class_name": "Sequential", "config": {"name": "net", "layers": [)" + layers + "]}}"));
  return {import_keras_model(*file, keras_major), file};
}

bool has(const ImportedModel& model, const std::string& text) {
  return model.model.to_yaml().find(text) != std::string::npos;
}

std::string problem_of(const std::string& layers) {
  return test::error_of([&] { imported(layers); });
}

/// Returns a tensor as Keras 3 writes it.
std::string tensor(const std::string& layer) {
  return R"({"class_name": "__keras_tensor__", "config": {"keras_history": [")" + layer + R"(", 0, 0]}})";
}

/// Returns a layer or operation of a functional model, with the arguments of its call.
std::string called(const std::string& class_name, const std::string& name, const std::string& args,
                   const std::string& keywords = "", const std::string& options = "") {
  return R"({"class_name": ")" + class_name + R"(", "name": ")" + name + R"(", "config": {"name": ")" + name +
         "\"" + options + R"(}, "inbound_nodes": [{"args": [)" + args + R"(], "kwargs": {)" + keywords +
         "}}]}";
}

std::string mask_of(const std::string& layer) {
  return R"("training": false, "mask": )" + tensor(layer);
}

/// Imports a functional model. The layer "embedding" embeds words; it masks padding unless `mask_zero` is
/// false. The output of the model is the output of the layer named `end`.
Imported functional(const std::vector<std::string>& layers, bool mask_zero = true) {
  std::string all =
      R"({"class_name": "InputLayer", "name": "x", "config": {"name": "x", "batch_shape": [null, 5], "dtype": "int32"}, "inbound_nodes": []}, )" +
      called(
          "Embedding", "embedding", tensor("x"), "",
          std::string(R"(, "input_dim": 9, "output_dim": 4)") + (mask_zero ? R"(, "mask_zero": true)" : ""));
  for (const std::string& layer : layers) all += ", " + layer;
  const auto file = parse_keras_model(
      Json::parse(R"({"class_name": "Functional", "config": {"name": "net", "layers": [)" + all +
                  R"(], "input_layers": ["x", 0, 0], "output_layers": ["end", 0, 0]}})"));
  return {import_keras_model(*file, 3), file};
}

std::string lstm_with(const std::string& keywords, const std::string& input = "embedding") {
  return called("LSTM", "end", tensor(input), keywords, R"(, "units": 3)");
}

}  // namespace

TEST_CASE("a mask that nothing reads is left out") {
  for (const std::string& loses : {named("Flatten"), named("RMSNormalization") + ", " + named("Flatten")}) {
    const Imported model = imported(kTokens + loses + ", " + named("Dense", R"(, "units": 2)"));
    CHECK_FALSE(has(model, "mask"));
    REQUIRE(model.left_out.size() == 1);
    CHECK(model.left_out[0] == "embedding: mask_zero, because no layer reads the mask");
    build_imported(model, model.model);
  }
}

TEST_CASE("layers that lose a mask in Keras ignore it") {
  const std::string lstm = named("LSTM", R"(, "units": 3, "return_sequences": true)");
  for (const std::string lost : {"Flatten", "GlobalMaxPooling1D", "RMSNormalization"}) {
    CAPTURE(lost);
    const Imported model = imported(kTokens + lstm + ", " + named(lost));
    CHECK(has(model, "mask_zero: true"));
    CHECK(has(model, "ignore_mask: true"));
    CHECK(model.left_out.empty());
    const Graph graph = build_imported(model, model.model);
    CHECK(graph.nodes.back().ignores_mask);
    CHECK(graph.nodes[2].masks.size() == 1);
  }
}

TEST_CASE("TimeDistributed passes a mask on, and its layer is read") {
  const auto distributed = [](const std::string& inner) {
    return named("TimeDistributed", R"(, "layer": )" + inner);
  };
  const std::string lstm = named("LSTM", R"(, "units": 3)");
  const Imported model =
      imported(kTokens + distributed(layer("Dense", R"("name": "d", "units": 3, "activation": "relu")")) +
               ", " + lstm);
  CHECK(has(model, "layer: {dense: {units: 3, activation: relu}}"));
  CHECK(build_imported(model, model.model).nodes.back().masks.size() == 1);
  CHECK(has(
      imported(kTokens + distributed(layer("LayerNormalization", R"("name": "n", "axis": 1)")) + ", " + lstm),
      "layer_normalization"));
  CHECK(problem_of(kTokens +
                   distributed(layer("Conv1DTranspose", R"("filters": 2, "kernel_size": 2, "groups": 2)")))
            .find("its layer has groups: 2") != std::string::npos);
  CHECK(problem_of(kTokens + distributed(layer("Flatten", R"("data_format": "channels_first")")))
            .find("its layer has data_format: channels_first") != std::string::npos);
  CHECK(problem_of(kTokens + distributed(layer("Lambda"))).find("has the layer 'Lambda'") !=
        std::string::npos);
}

TEST_CASE("a bidirectional layer reads a mask, and passes it on if its layers return sequences") {
  const auto bidirectional = [](const std::string& options) {
    return named("Bidirectional",
                 R"(, "merge_mode": "concat", "layer": )" + named("GRU", R"(, "units": 3)" + options));
  };
  const std::string sequences = R"(, "return_sequences": true)";
  const Imported both = imported(kTokens + bidirectional(sequences) + ", " + named("Flatten"));
  CHECK(has(both, "mask_zero: true"));
  CHECK(has(both, "ignore_mask: true"));
  CHECK(build_imported(both, both.model).nodes[2].masks.size() == 1);
  const Imported last = imported(kTokens + bidirectional("") + ", " + named("Dense", R"(, "units": 2)"));
  CHECK(has(last, "mask_zero: true"));
  CHECK_FALSE(has(last, "ignore_mask"));
  CHECK(problem_of(kTokens + bidirectional(sequences + R"(, "go_backwards": true)"))
            .find("reads a mask, which dtrain does not support for a layer that returns its steps in reverse "
                  "order (go_backwards)") != std::string::npos);
}

TEST_CASE("a mask that is an argument of a call may be the mask of the input") {
  const std::string not_equal = called("NotEqual", "not_equal", tensor("x") + ", 0");
  const auto masked_node = [](const std::vector<std::string>& layers) {
    const Imported model = functional(layers);
    CHECK(has(model, "mask_zero: true"));
    CHECK(model.left_out.empty());
    const Graph graph = build_imported(model, model.model);
    CHECK(graph.nodes.back().name == "end");
    CHECK(graph.nodes.back().masks.size() == 1);
    return graph.nodes.size();
  };
  CHECK(masked_node({not_equal, lstm_with(mask_of("not_equal"))}) == 3);
  CHECK(masked_node({not_equal, called("Dense", "dense", tensor("embedding"), "", R"(, "units": 4)"),
                     called("Add", "add", "[" + tensor("embedding") + ", " + tensor("dense") + "]"),
                     called("LogicalOr", "logical_or", tensor("not_equal") + ", " + tensor("not_equal")),
                     lstm_with(mask_of("logical_or"), "add")}) == 5);
  CHECK(masked_node(
            {not_equal, called("Dense", "dense", tensor("embedding"), "", R"(, "units": 3)"),
             called("Concatenate", "joined", "[" + tensor("embedding") + ", " + tensor("dense") + "]", "",
                    R"(, "axis": -1)"),
             called("ExpandDims", "expand_dims", tensor("not_equal"), "", R"(, "axis": -1)"),
             called("ZerosLike", "zeros_like", tensor("embedding"), R"("dtype": "bool")"),
             called("ZerosLike", "zeros_like_1", tensor("dense"), R"("dtype": "bool")"),
             called("LogicalOr", "logical_or", tensor("expand_dims") + ", " + tensor("zeros_like")),
             called("LogicalOr", "logical_or_1", tensor("expand_dims") + ", " + tensor("zeros_like_1")),
             called("Concatenate", "concatenate",
                    "[" + tensor("logical_or") + ", " + tensor("logical_or_1") + "]", "", R"(, "axis": -1)"),
             called("Any", "any", tensor("concatenate"), "", R"(, "axis": -1, "keepdims": false)"),
             lstm_with(mask_of("any"), "joined")}) == 5);
}

TEST_CASE("a mask in a call of Keras 2 may be the mask of the input") {
  const auto layer_of_keras_2 = [](const std::string& class_name, const std::string& name,
                                   const std::string& options, const std::string& calls) {
    return R"({"class_name": ")" + class_name + R"(", "name": ")" + name + R"(", "config": {)" + options +
           R"(}, "inbound_nodes": [)" + calls + "]}";
  };
  const auto file = parse_keras_model(Json::parse(
      R"({"class_name": "Functional", "config": {"name": "net", "layers": [)" +
      layer_of_keras_2("InputLayer", "x", R"("name": "x", "batch_input_shape": [null, 5], "dtype": "int32")",
                       "") +
      ", " +
      layer_of_keras_2("Embedding", "embedding", R"("input_dim": 9, "output_dim": 4, "mask_zero": true)",
                       R"([["x", 0, 0, {}]])") +
      ", " +
      layer_of_keras_2("TFOpLambda", "tf.math.not_equal", R"("function": "math.not_equal")",
                       R"(["x", 0, 0, {"y": 0}])") +
      ", " +
      layer_of_keras_2("LSTM", "end", R"("units": 3)",
                       R"([["embedding", 0, 0, {"mask": ["tf.math.not_equal", 0, 0]}]])") +
      R"(], "input_layers": [["x", 0, 0]], "output_layers": [["end", 0, 0]]}})"));
  const ImportedModel model = import_keras_model(*file, 2);
  CHECK(build_imported(model, model.model).nodes.back().masks.size() == 1);
}

TEST_CASE("a layer that reads the merged masks of two embeddings is a problem") {
  const std::string other = called("Embedding", "other", tensor("x"), "",
                                   R"(, "input_dim": 9, "output_dim": 4, "mask_zero": true)"),
                    both = "[" + tensor("embedding") + ", " + tensor("other") + "]";
  for (const std::string& merged :
       {called("Concatenate", "merged", both, "", R"(, "axis": -1)"), called("Add", "merged", both)})
    CHECK(test::error_of([&] {
            functional({other, merged, lstm_with("", "merged")});
          }).find("end (LSTM): reads a mask that dtrain cannot pass on") != std::string::npos);
}

TEST_CASE("a mask that is an argument of a call may be the mask of a masking layer") {
  const auto lstm_after_masking = [](const std::string& padding) {
    return functional({called("Masking", "masking", tensor("embedding"), "", R"(, "mask_value": -1.0)"),
                       called("Cast", "cast", tensor("embedding"), "", R"(, "dtype": "float16")"),
                       called("NotEqual", "not_equal", tensor("cast") + ", " + padding),
                       called("Any", "any", tensor("not_equal"), "", R"(, "axis": -1, "keepdims": false)"),
                       lstm_with(mask_of("any"), "masking")},
                      false);
  };
  const Imported model = lstm_after_masking("-1.0");
  CHECK(build_imported(model, model.model).nodes.back().masks.size() == 1);
  CHECK(test::error_of([&] {
          lstm_after_masking("0.0");
        }).find("end: is called with a mask that is not the mask of its input") != std::string::npos);
}

TEST_CASE("attention of Keras 3 removes the masks of its inputs") {
  const auto attention = [](const std::string& name, const std::string& input) {
    return called("MultiHeadAttention", name, tensor(input) + ", " + tensor(input), "",
                  R"(, "num_heads": 2, "key_dim": 3)");
  };
  const std::string sum = called("Add", "sum", "[" + tensor("first") + ", " + tensor("second") + "]");
  const auto pooled = [](const std::string& input, const std::string& keywords = "") {
    return called("GlobalAveragePooling1D", "end", tensor(input), keywords);
  };
  // The first attention removes the mask of the embedding. The second attention therefore finds no mask, and
  // neither its output nor the sum has a mask.
  const std::vector<std::string> both = {
      attention("first", "embedding"), called("Dense", "dense", tensor("first"), "", R"(, "units": 4)"),
      attention("second", "embedding"),
      called("Add", "sum", "[" + tensor("dense") + ", " + tensor("second") + "]"),
      called("Dense", "end", tensor("sum"), "", R"(, "units": 2)")};
  const Imported model = functional(both);
  const Graph graph = build_imported(model, model.model);
  CHECK(graph.nodes[2].masks.size() == 1);
  CHECK(graph.nodes[4].ignores_mask);
  CHECK(graph.nodes[5].output_masks.empty());
  // Keras 2 does not remove masks.
  const Imported of_keras_2 = {import_keras_model(*model.file, 2), model.file};
  CHECK_FALSE(has(of_keras_2, "ignore_mask"));
  CHECK(test::error_of([&] {
          functional({attention("first", "embedding"), attention("second", "embedding"), sum,
                      called("Dense", "end", tensor("sum"), "", R"(, "units": 2)")});
        }).find("first: reads a mask that 'second' removes") != std::string::npos);
  // A mask that is passed as an argument replaces the removed mask.
  const std::vector<std::string> residual = {
      attention("second", "embedding"),
      called("Add", "sum", "[" + tensor("embedding") + ", " + tensor("second") + "]")};
  std::vector<std::string> given = residual;
  given.push_back(called("NotEqual", "not_equal", tensor("x") + ", 0"));
  given.push_back(pooled("sum", R"("mask": )" + tensor("not_equal")));
  const Imported read = functional(given);
  CHECK(build_imported(read, read.model).nodes.back().masks.size() == 1);
  // Without the argument `mask`, the pooling layer reads padded positions as data.
  std::vector<std::string> unread = residual;
  unread.push_back(pooled("sum"));
  CHECK(test::error_of([&] {
          functional(unread);
        }).find("end (GlobalAveragePooling1D): reads the output of attention at padded positions") !=
        std::string::npos);
}

TEST_CASE("a layer that reads attention's padding as data is a problem") {
  const std::string attention = called("MultiHeadAttention", "attention",
                                       tensor("embedding") + ", " + tensor("embedding"), "",
                                       R"(, "num_heads": 2, "key_dim": 3)"),
                    norm = called("RMSNormalization", "norm", tensor("attention"));
  const auto flattened = [](const std::string& input) { return called("Flatten", "end", tensor(input)); };
  for (const std::vector<std::string>& layers :
       {std::vector<std::string>{attention, flattened("attention")}, {attention, norm, flattened("norm")}})
    CHECK(test::error_of([&] { functional(layers); }).find("end (Flatten): reads the output of attention") !=
          std::string::npos);
  CHECK(test::error_of([&] { functional({attention, flattened("attention")}, false); }).empty());
  CHECK(test::error_of([&] {
          functional({attention, called("GlobalAveragePooling1D", "end", tensor("attention"))});
        }).empty());
}

TEST_CASE("a mask argument that is not the mask of the input is a problem") {
  const auto error = [](const std::vector<std::string>& layers, bool mask_zero = true) {
    return test::error_of([&] { functional(layers, mask_zero); });
  };
  const std::string not_equal = called("NotEqual", "not_equal", tensor("x") + ", 0"),
                    lstm = lstm_with(mask_of("not_equal"));
  CHECK(error({not_equal, lstm}, false).find("end: is called with a mask that its input does not have") !=
        std::string::npos);
  CHECK(error({called("NotEqual", "not_equal", tensor("x") + ", 1"), lstm})
            .find("is called with a mask that is not the mask of its input") != std::string::npos);
  // In this mask, every position is valid.
  const Imported all =
      functional({called("OnesLike", "ones", tensor("embedding"), R"("dtype": "bool")"),
                  called("Any", "any", tensor("ones"), "", R"(, "axis": -1, "keepdims": false)"),
                  lstm_with(mask_of("any"))},
                 false);
  CHECK_FALSE(has(all, "mask"));
}

TEST_CASE("a model within the model may be called with a mask") {
  const std::string inner =
      R"({"class_name": "Functional", "name": "inner", "config": {"name": "inner", "layers": [)"
      R"({"class_name": "InputLayer", "name": "y", "config": {"name": "y", "batch_shape": [null, 5, 4]}, "inbound_nodes": []}, )" +
      called("LSTM", "lstm", tensor("y"), R"("mask": null)", R"(, "units": 3)") +
      R"(], "input_layers": ["y", 0, 0], "output_layers": ["lstm", 0, 0]}, "inbound_nodes": [{"args": [)" +
      tensor("embedding") + R"(], "kwargs": {)" + mask_of("not_equal") + "}}]}";
  const Imported model = functional({called("NotEqual", "not_equal", tensor("x") + ", 0"), inner,
                                     called("Dense", "end", tensor("inner"), "", R"(, "units": 2)")});
  CHECK(build_imported(model, model.model).nodes[2].masks.size() == 1);
}

TEST_CASE("a mask of the model's output is kept for the loss") {
  const Imported model = imported(kTokens + named("Dense", R"(, "units": 2)"));
  CHECK(has(model, "mask_zero: true"));
  CHECK_FALSE(has(model, "ignore_mask"));
}

TEST_CASE("masking is kept, because it changes values, too") {
  const Imported model = imported(
      R"({"class_name": "InputLayer", "config": {"name": "x", "batch_input_shape": [null, 5, 2]}}, )" +
      named("Masking", R"(, "mask_value": -1.0)") + ", " + named("Flatten"));
  CHECK(has(model, "masking"));
  CHECK(has(model, "ignore_mask: true"));
}

TEST_CASE("masks that dtrain cannot pass on, or read, are problems") {
  const std::string lost =
      problem_of(kTokens + named("Concatenate", R"(, "axis": 1)") + ", " + named("LSTM", R"(, "units": 3)"));
  CAPTURE(lost);
  CHECK(lost.find("LSTM (LSTM): reads a mask that dtrain cannot pass on through an earlier layer") !=
        std::string::npos);
  CHECK(problem_of(kTokens + named("GRU", R"(, "units": 3, "return_sequences": true, "go_backwards": true)"))
            .find("reads a mask, which dtrain does not support for a layer that returns its steps in reverse "
                  "order (go_backwards)") != std::string::npos);
  // If no layer reads the mask, the import ignores it.
  CHECK_FALSE(has(imported(kTokens + named("LayerNormalization") + ", " + named("Flatten")), "mask"));
}

TEST_CASE("batch normalization reads a mask, and passes it on") {
  const Imported model = imported(kTokens + named("BatchNormalization") + ", " + named("Flatten"));
  CHECK(has(model, "mask_zero: true"));
  CHECK(has(model, "ignore_mask: true"));
  const Imported read =
      imported(kTokens + named("BatchNormalization") + ", " + named("LSTM", R"(, "units": 3)"));
  CHECK_FALSE(has(read, "ignore_mask"));
}

TEST_CASE("attention with grouped heads reads masks under both of its names") {
  for (const char* name : {"GroupQueryAttention", "GroupedQueryAttention"})
    CHECK(keras_mask_rule(name) == KerasMaskRule::read);
}
