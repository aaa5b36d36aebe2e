// The Keras form of a graph: layers in Keras's order, their names and options. tests/keras tests it with
// Keras.
#include <algorithm>

#include <doctest/doctest.h>

#include "interop/keras/export/model_config.h"
#include "interop/keras/files/model_tree.h"
#include "interop/layer_formats.h"
#include "interop/training_formats.h"
#include "nn/loss.h"
#include "support/graphs.h"
#include "support/kinds.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Returns the names of Keras's layers in Keras's order.
std::string order(const Graph& graph) {
  std::string names;
  for (const KerasLayer& layer : keras_layers(graph)) names += (names.empty() ? "" : " ") + layer.name;
  return names;
}

Json model_config(const Graph& graph, const std::string& name = "net") {
  const Json model = keras_model_config(graph, name, keras_layers(graph));
  CHECK(model.at("class_name").as_string() == "Functional");
  return model.at("config");
}

/// Returns the config of a layer that is the only one of its model.
Json config_of(const std::string& layer, const std::string& input = "[8, 8, 3]") {
  const Graph graph = graph_from("inputs: {x: " + input + "}\nlayers: [" + layer + "]\n");
  const Json layers = model_config(graph).at("layers");
  REQUIRE(layers.items().size() == 2);
  return layers.items()[1].at("config");
}

Json activation_of(const std::string& activation) {
  return config_of("activation: {activation: " + activation + "}").at("activation");
}

}  // namespace

TEST_CASE("a skip connection written before its branch has Keras's position") {
  const Graph graph = graph_from(R"(
inputs: {x: [4]}
layers:
  - dense: {units: 4, name: skip}
  - dense: {units: 4, name: first, inputs: x, activation: relu}
  - dense: {units: 4, name: second, activation: tanh}
  - add: {inputs: [second, skip]}
  - dense: {units: 4, name: head, activation: softmax}
)");
  CHECK(order(graph) == "x first second skip add head");
}

TEST_CASE(
    "layers of equal depth are in the order of Keras's search from the outputs, inputs in the order of the "
    "call") {
  CHECK(order(graph_from(R"(
inputs: {x: [4]}
layers:
  - dense: {units: 4, name: left, inputs: x}
  - dense: {units: 4, name: right, inputs: x}
outputs: [right, left]
)")) == "x right left");
  CHECK(order(graph_from(R"(
inputs: {a: [4], b: [4]}
layers:
  - dense: {units: 4, inputs: b}
  - add: {inputs: [a, dense]}
  - dense: {units: 4, inputs: dense, name: end}
outputs: [add, end]
)")) == "b a dense add end");
}

TEST_CASE("an output with readers has the depth of its farthest reader") {
  CHECK(order(graph_from(R"(
inputs: {x: [4]}
layers:
  - dense: {units: 4, name: early}
  - dense: {units: 4, name: middle}
  - dense: {units: 4, name: late}
  - dense: {units: 4, name: aside, inputs: x}
outputs: [early, aside, late]
)")) == "x early middle aside late");
}

TEST_CASE("an unused input comes first among the outputs") {
  Graph graph = graph_from(R"(
inputs: {a: [4], unread: [4]}
layers:
  - dense: {units: 4, inputs: a, name: below}
  - concatenate: {inputs: [below, unread]}
)");
  graph.nodes[3].inputs.pop_back();
  CHECK(order(graph) == "a below unread concatenate");
}

TEST_CASE("edges name their source output") {
  Graph graph = graph_from("inputs: {x: [4]}\nlayers: [dense: {units: 4}, dense: {units: 2}]\n");
  graph.nodes[1].outputs.push_back({"dense:1", {3}});
  graph.nodes[2].inputs = {{.node = 1, .output = 1}};
  graph.outputs.push_back({.node = 1, .output = 1});
  CHECK(graph.spec(graph.outputs[1]).shape == Shape{3});
  const Json config = model_config(graph, "m");
  CHECK(config.at("layers").items()[2].at("inbound_nodes").dump() == R"([[["dense", 0, 1, {}]]])");
  CHECK(config.at("output_layers").dump() == R"([["dense_1", 0, 0], ["dense", 0, 1]])");
}

TEST_CASE("a graph of 40,000 layers is ordered quickly") {
  std::string yaml = "inputs: {x: [1]}\nblocks: {one: {layers: [activation: relu]}}\nlayers:\n";
  for (int i = 0; i < 4; ++i) yaml += "  - one: {repeat: 10000}\n";
  const Graph graph = graph_from(yaml);
  const std::vector<KerasLayer> layers = keras_layers(graph);
  REQUIRE(layers.size() == 40'001);
  for (size_t i = 0; i < layers.size(); ++i) REQUIRE(layers[i].node == static_cast<int>(i));
}

TEST_CASE("names that Keras, TensorFlow or the file do not allow are changed and remain unique") {
  CHECK(order(graph_from(R"(
inputs: {_x: [4]}
layers:
  - dense: {units: 4, name: a.b}
  - dense: {units: 4, name: a/b}
  - dense: {units: 4, name: a.b_1}
  - dense: {units: 4, name: top_level_model_weights}
  - dense: {units: 4, name: 9-_}
)")) == "layer_x a.b a.b_2 a.b_1 top_level_model_weights_1 9-_");
  const Graph graph = graph_from("inputs: {x: [4]}\nlayers: [dense: {units: 4}]\n");
  CHECK(model_config(graph, "my run").at("name").as_string() == "my_run");
  CHECK(model_config(graph, "_x/y").at("name").as_string() == "model_x_y");
  CHECK(model_config(graph, "").at("name").as_string() == "model");
  CHECK(model_config(graph,
                     "gr\xc3\xbc\xc3\x9f"
                     "e")
            .at("name")
            .as_string() == "gr____e");
}

TEST_CASE("Keras's model_config: fused activations are not layers, names have no '/'") {
  const Graph graph = graph_from(R"(
inputs: {a: [4], b: {shape: [4], dtype: float32}}
blocks: {one: {layers: [dense: {units: 4, activation: relu}]}}
layers:
  - one: {inputs: a}
  - add: {inputs: [one, b], trainable: false}
)");
  const Json config = model_config(graph);
  CHECK(config.at("name").as_string() == "net");
  CHECK(config.at("input_layers").dump() == R"([["a", 0, 0], ["b", 0, 0]])");
  CHECK(config.at("output_layers").dump() == R"([["add", 0, 0]])");
  const auto& layers = config.at("layers").items();
  REQUIRE(layers.size() == 4);
  CHECK(layers[0].dump() ==
        R"({"class_name": "InputLayer", "config": {"batch_input_shape": [null, 4], "dtype": "float32", )"
        R"("name": "a"}, "name": "a", "inbound_nodes": []})");
  CHECK(layers[1].at("class_name").as_string() == "Dense");
  CHECK(layers[1].at("name").as_string() == "one.dense");
  CHECK(layers[1].at("config").at("name").as_string() == "one.dense");
  CHECK(layers[1].at("config").at("dtype").as_string() == "float32");
  CHECK(layers[1].at("config").at("activation").as_string() == "relu");
  CHECK(layers[1].at("config").at("units").as_int() == 4);
  CHECK(layers[1].at("inbound_nodes").dump() == R"([[["a", 0, 0, {}]]])");
  CHECK(layers[2].at("name").as_string() == "b");
  CHECK(layers[3].at("inbound_nodes").dump() == R"([[["one.dense", 0, 0, {}], ["b", 0, 0, {}]]])");
  CHECK_FALSE(layers[3].at("config").at("trainable").as_bool());
}

TEST_CASE("layers that share weights are calls of one Keras layer") {
  const Graph graph = graph_from(R"(
inputs: {x: [4], y: [4]}
layers:
  - dense: {units: 4, name: base, inputs: x, activation: {elu: {alpha: 0.5}}}
  - dense: {units: 4, name: between, inputs: y}
  - dense: {name: again, shared_with: base}
  - dense: {name: thrice, shared_with: base}
  - concatenate: {inputs: [base, thrice]}
)");
  // A layer's depth is that of its deepest call.
  CHECK(order(graph) == "y x between base again.activation base.activation thrice.activation concatenate");
  const Json config = model_config(graph);
  const auto& layers = config.at("layers").items();
  CHECK(layers[3].at("inbound_nodes").dump() ==
        R"([[["x", 0, 0, {}]], [["between", 0, 0, {}]], [["again.activation", 0, 0, {}]]])");
  CHECK(layers[4].at("inbound_nodes").dump() == R"([[["base", 1, 0, {}]]])");
  CHECK(layers[5].at("inbound_nodes").dump() == R"([[["base", 0, 0, {}]]])");
  CHECK(layers[6].at("inbound_nodes").dump() == R"([[["base", 2, 0, {}]]])");
}

TEST_CASE("an embedding whose weights a dense layer has is called in reverse") {
  const Graph graph = graph_from(R"(
inputs: {x: {shape: [4], dtype: int32}}
layers:
  - embedding: {input_dim: 9, output_dim: 3, name: token}
  - layer_normalization: {name: rows}
  - dense: {name: scores, shared_with: token, activation: relu}
)");
  CHECK(order(graph) == "x token rows scores.activation");
  const Json config = model_config(graph);
  const auto& layers = config.at("layers").items();
  CHECK(layers[1].at("class_name").as_string() == "ReversibleEmbedding");
  const auto& calls = layers[1].at("inbound_nodes").items();
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].at("kwargs").entries().empty());
  CHECK(calls[1].at("kwargs").at("reverse").as_bool());
  const auto read_by = [](const Json& call) {
    return call.at("args").items()[0].at("config").at("keras_history").dump();
  };
  CHECK(read_by(calls[1]) == R"(["rows", 0, 0])");
  CHECK(layers[3].at("class_name").as_string() == "Activation");
  CHECK(layers[3].at("config").at("activation").as_string() == "relu");
  CHECK(read_by(layers[3].at("inbound_nodes").items()[0]) == R"(["token", 1, 0])");
  CHECK(config.at("output_layers").dump() == R"(["scores.activation", 0, 0])");
}

TEST_CASE("dot has Keras's axes, as one number or two") {
  CHECK(config_of("dot: {inputs: [x, x], axes: -1}", "[2, 3]").at("axes").dump() == "-1");
  CHECK(config_of("dot: {inputs: [x, x], axes: [1, -2], normalize: true}", "[2, 3]").at("axes").dump() ==
        "[1, -2]");
}

TEST_CASE("image layers have data_format channels_last") {
  for (const char* layer : {"conv2d: {filters: 2, kernel_size: 3}",
                            "depthwise_conv2d: {kernel_size: 3}",
                            "conv2d_transpose: {filters: 2, kernel_size: 3}",
                            "max_pooling2d: {}",
                            "average_pooling2d: {}",
                            "global_max_pooling2d: {}",
                            "global_average_pooling2d: {}",
                            "zero_padding2d: {}",
                            "cropping2d: {}",
                            "separable_conv2d: {filters: 2, kernel_size: 3}",
                            "upsampling2d: {}",
                            "flatten: {}",
                            "conv3d: {filters: 2, kernel_size: 3}",
                            "max_pooling3d: {}",
                            "average_pooling3d: {}",
                            "global_max_pooling3d: {}",
                            "global_average_pooling3d: {}",
                            "zero_padding3d: {}",
                            "cropping3d: {}",
                            "upsampling3d: {}"}) {
    CAPTURE(layer);
    const bool is_of_volumes = std::string_view(layer).find("3d") != std::string_view::npos;
    CHECK(config_of(layer, is_of_volumes ? "[8, 8, 8, 3]" : "[8, 8, 3]").at("data_format").as_string() ==
          "channels_last");
  }
}

TEST_CASE("layers whose Keras class rejects the key trainable lack it") {
  const auto has_trainable = [](const std::string& layer, const std::string& input) {
    return config_of(layer, input).find("trainable") != nullptr;
  };
  CHECK(has_trainable("dropout: 0.5", "[4, 3]"));
  CHECK(!has_trainable("spatial_dropout1d: 0.5", "[4, 3]"));
  CHECK(!has_trainable("spatial_dropout2d: 0.5", "[5, 4, 3]"));
}

TEST_CASE("activations have names and options that both Keras 2 and 3 read") {
  CHECK(activation_of("silu").dump() == R"("silu")");
  CHECK(activation_of("leaky_relu").dump() == R"("leaky_relu")");
  CHECK(activation_of("{leaky_relu: {negative_slope: 0.2}}").dump() == R"("leaky_relu")");
  CHECK(activation_of("gelu").dump() == R"("gelu")");
  CHECK(activation_of("{gelu: {approximate: true}}").dump() == R"("gelu_tanh")");
}

TEST_CASE("activations with options are separate layers in Keras") {
  const Graph graph = graph_from(R"(
inputs: {x: [4]}
layers:
  - dense: {units: 4, name: skip, activation: {elu: {alpha: 0.5}}}
  - dense: {units: 4, name: body, inputs: x, activation: relu}
  - activation: {activation: {leaky_relu: {negative_slope: 0.25}}, name: leaky}
  - add: {inputs: [leaky, skip]}
  - dense: {units: 4, name: head, activation: {elu: {alpha: 2}}}
)");
  CHECK(order(graph) == "x body skip leaky skip.activation add head head.activation");
  const Json config = model_config(graph);
  CHECK(config.at("output_layers").dump() == R"([["head.activation", 0, 0]])");
  const auto& layers = config.at("layers").items();
  CHECK(layers[1].at("config").at("activation").as_string() == "relu");
  CHECK(layers[2].at("config").at("activation").as_string() == "linear");
  CHECK(layers[3].at("class_name").as_string() == "LeakyReLU");
  CHECK(layers[3].at("config").dump() ==
        R"({"name": "leaky", "trainable": true, "dtype": "float32", "alpha": 0.25})");
  CHECK(layers[4].at("class_name").as_string() == "ELU");
  CHECK(layers[4].at("config").at("alpha").as_double() == 0.5);
  CHECK(layers[4].at("inbound_nodes").dump() == R"([[["skip", 0, 0, {}]]])");
  CHECK(layers[5].at("inbound_nodes").dump() == R"([[["leaky", 0, 0, {}], ["skip.activation", 0, 0, {}]]])");
}

TEST_CASE("losses and metrics have Keras's form") {
  const auto loss = [](const std::string& yaml) {
    return keras_loss(parse_kind<Loss>(yaml).resolved).dump();
  };
  CHECK(loss("{sparse_categorical_crossentropy: {from_logits: true}}") ==
        R"({"class_name": "SparseCategoricalCrossentropy", "config": {"from_logits": true, )"
        R"("reduction": "sum_over_batch_size", "name": "sparse_categorical_crossentropy"}})");
  CHECK(loss("categorical_crossentropy")
            .find(R"("CategoricalCrossentropy", "config": {"from_logits": false)") != std::string::npos);
  CHECK(loss("{huber: {delta: 2}}").find(R"("Huber", "config": {"delta": 2.0)") != std::string::npos);
  for (const std::string& name : registry<Loss>().names())
    CHECK(keras_loss(parse_kind<Loss>(name).resolved).at("config").at("name").as_string().starts_with(name));

  const TensorSpec classes{{}, {10}, DType::float32}, one{{}, {1}, DType::float32},
      number{{}, {}, DType::int32};
  const auto metric = [](const std::string& yaml, const TensorSpec& output, const TensorSpec& target) {
    const Json config = keras_metric(parse_kind<Metric>(yaml).resolved, nullptr, output, target);
    return config.at("class_name").as_string() + config.at("config").dump();
  };
  CHECK(metric("accuracy", classes, number) == "SparseCategoricalAccuracy{}");
  CHECK(metric("accuracy", classes, classes) == "CategoricalAccuracy{}");
  CHECK(metric("accuracy", one, one) == R"(BinaryAccuracy{"threshold": 0.5})");
  CHECK(metric("top_k", classes, number) == R"(SparseTopKCategoricalAccuracy{"k": 5})");
  CHECK(metric("{top_k_categorical_accuracy: {k: 3}}", classes, classes) ==
        R"(TopKCategoricalAccuracy{"k": 3})");
  CHECK(metric("mean_absolute_error", one, one) == "MeanAbsoluteError{}");
}

TEST_CASE("losses and metrics that Keras computes differently are omitted") {
  CHECK(keras_loss(parse_kind<Loss>("sparse_categorical_crossentropy: {label_smoothing: 0.1}").resolved)
            .is_null());
  const auto written = [](const std::string& metric, const std::string& loss, const TensorSpec& output,
                          const TensorSpec& target) {
    return keras_metric(parse_kind<Metric>(metric).resolved, parse_kind<Loss>(loss).value.get(), output,
                        target);
  };
  const TensorSpec one{"y", {1}}, four{"y", {4}}, number{"t", {}, DType::int32};
  CHECK(written("sparse_categorical_crossentropy: {label_smoothing: 0.1}", "sparse_categorical_crossentropy",
                four, number)
            .is_null());
  const auto is_written = [&](const std::string& metric, const std::string& loss, const TensorSpec& output) {
    return !written(metric, loss, output, output).is_null();
  };
  const std::string logits = "binary_crossentropy: {from_logits: true}",
                    softmax_logits = "categorical_crossentropy: {from_logits: true}";
  for (const char* metric : {"precision", "recall", "f1_score", "binary_accuracy", "accuracy"}) {
    CAPTURE(metric);
    CHECK(is_written(metric, "binary_crossentropy", one));
    CHECK(!is_written(metric, logits, one));
  }
  CHECK(is_written("auc", logits, one));
  CHECK(is_written("auc", "categorical_crossentropy", four));
  CHECK(!is_written("auc", softmax_logits, four));
  CHECK(!is_written("precision", softmax_logits, four));
  CHECK(is_written("f1_score", softmax_logits, four));
  CHECK(is_written("accuracy", softmax_logits, four));
  const std::string at_recall = "precision_at_recall: {recall: 0.75, class_id: 2, num_thresholds: 50}";
  CHECK(
      written(at_recall, "binary_crossentropy", four, four).dump() ==
      R"({"class_name": "PrecisionAtRecall", "config": {"num_thresholds": 50, "recall": 0.75, "class_id": 2}})");
  CHECK(is_written("precision_at_recall: 0.5", "categorical_crossentropy", four));
  CHECK(!is_written("precision_at_recall: 0.5", logits, one));
  CHECK(written("precision_at_recall: 0.5", "sparse_categorical_crossentropy", four, number).is_null());
  const Json f1 = written("f1_score", "binary_crossentropy", four, four);
  CHECK(f1.at("config").at("threshold").as_double() == 0.5);
}

TEST_CASE("every loss, metric, optimizer and schedule has a row for Keras") {
  for (const std::string& name : registry<Loss>().names()) CHECK(loss_formats(name).kind == name);
  for (const std::string& name : registry<Metric>().names()) CHECK(metric_formats(name).kind == name);
  for (const std::string& name : registry<Optimizer>().names()) CHECK(optimizer_formats(name).kind == name);
  for (const std::string& name : registry<Schedule>().names()) CHECK(schedule_formats(name).kind == name);
}

TEST_CASE("dtrain accepts the Keras classes of losses, optimizers and schedules") {
  for (const std::string& name : registry<Loss>().names())
    CHECK(registry<Loss>().canonical(loss_formats(name).keras_class) == name);
  for (const std::string& name : registry<Optimizer>().names())
    CHECK(registry<Optimizer>().canonical(optimizer_formats(name).keras_class) == name);
  for (const std::string& name : registry<Schedule>().names())
    if (const std::string& keras = schedule_formats(name).keras_class; !keras.empty())
      CHECK(registry<Schedule>().canonical(keras) == name);
}

TEST_CASE("a decay to the end of training has the run's steps in Keras") {
  const RunLength run{.steps_per_epoch = 10, .steps = 200};
  const auto rate = [&](const std::string& yaml) {
    return keras_learning_rate(parse_kind<Schedule>(yaml), run, Json()).dump();
  };
  CHECK(rate("{polynomial_decay: {initial: 1}}") == rate("{polynomial_decay: {initial: 1, steps: 200}}"));
  CHECK(rate("{cosine_decay: {initial: 1, warmup_steps: 1 epoch}}") ==
        rate("{cosine_decay: {initial: 1, warmup_steps: 10, steps: 190}}"));
  CHECK(rate("{linear_warmup: {steps: 2 epochs, then: {cosine_decay: {initial: 1}}}}") ==
        rate("{cosine_decay: {initial: 1, steps: 180}}"));
  CHECK(rate("{one_cycle: {max: 1, div_factor: 4, final_div_factor: 2}}") == "0.125");
}

TEST_CASE("layers have Keras's form") {
  const auto config = [](const std::string& yaml) {
    const KerasLayerConfig written = keras_config_of(parse_kind<Layer>(yaml));
    const std::string kind = yaml.substr(0, yaml.find(':')), &keras = written.class_name;
    // dtrain accepts Keras's class name as a name of the layer.
    const bool has_other_name = keras == "LeakyReLU" || keras == "ReLU" || keras == "GroupQueryAttention";
    if (!has_other_name) CHECK(registry<Layer>().canonical(keras) == kind);
    return keras + " " + written.config.dump();
  };
  CHECK(config("dense: {units: 3, activation: relu, kernel_initializer: {random_normal: {stddev: 0.5}}}") ==
        R"(Dense {"units": 3, "activation": "relu", "use_bias": true, )"
        R"("kernel_initializer": {"class_name": "RandomNormal", "config": {"mean": 0, "stddev": 0.5}}, )"
        R"("bias_initializer": {"class_name": "Zeros", "config": {}}})");
  CHECK(
      config("embedding: {input_dim: 3, output_dim: 2, embeddings_regularizer: {l1_l2: {l1: 0.5}}, "
             "embeddings_constraint: {max_norm: {axis: 1}}}") ==
      R"(Embedding {"input_dim": 3, "output_dim": 2, "mask_zero": false, )"
      R"("embeddings_initializer": {"class_name": "RandomUniform", "config": {"minval": -0.05, "maxval": 0.05}}, )"
      R"("embeddings_regularizer": {"class_name": "L1L2", "config": {"l1": 0.5, "l2": 0}}, )"
      R"("embeddings_constraint": {"class_name": "MaxNorm", "config": {"max_value": 2, "axis": 1}}})");
  CHECK(config("activation: leaky_relu") == R"(Activation {"activation": "leaky_relu"})");
  CHECK(config("activation: {leaky_relu: {negative_slope: 0.5}}") == R"(LeakyReLU {"alpha": 0.5})");
  CHECK(config("activation: {relu: {negative_slope: 0}}") == R"(Activation {"activation": "relu"})");
  CHECK(config("activation: relu6") == R"(ReLU {"max_value": 6.0, "negative_slope": 0.0, "threshold": 0.0})");
  CHECK(config("activation: {relu: {negative_slope: 0.5, threshold: 1}}") ==
        R"(ReLU {"max_value": null, "negative_slope": 0.5, "threshold": 1.0})");
  CHECK(config("activation: hard_swish") == R"(Activation {"activation": "hard_silu"})");
  CHECK(config("activation: hard_sigmoid") == R"(Activation {"activation": "hard_sigmoid"})");
  CHECK(config("activation: {hard_sigmoid: {slope: 0.2}}") ==
        R"(Activation {"activation": "hard_sigmoid_0.2"})");
  CHECK(
      config("max_pooling2d") ==
      R"(MaxPooling2D {"pool_size": 2, "strides": null, "padding": "valid", "data_format": "channels_last"})");
  CHECK(config("zero_padding2d: [1, 2]") ==
        R"(ZeroPadding2D {"padding": [[1, 1], [2, 2]], "data_format": "channels_last"})");
  CHECK(config("zero_padding3d: [1, 2, 0]") ==
        R"(ZeroPadding3D {"padding": [[1, 1], [2, 2], [0, 0]], "data_format": "channels_last"})");
  CHECK(config("cropping3d") ==
        R"(Cropping3D {"cropping": [[1, 1], [1, 1], [1, 1]], "data_format": "channels_last"})");
  CHECK(config("upsampling3d: [1, 2, 3]") ==
        R"(UpSampling3D {"size": [1, 2, 3], "data_format": "channels_last"})");
  CHECK(
      config("average_pooling3d: {strides: [1, 2, 1]}") ==
      R"(AveragePooling3D {"pool_size": 2, "strides": [1, 2, 1], "padding": "valid", "data_format": "channels_last"})");
  CHECK(config("permute: [2, 1]") == R"(Permute {"dims": [2, 1]})");
  CHECK(config("repeat_vector: 3") == R"(RepeatVector {"n": 3})");
  CHECK(config("maximum") == "Maximum {}");
  CHECK(
      config("time_distributed: {layer: {max_pooling2d: {pool_size: 3}}}") ==
      R"(TimeDistributed {"layer": {"module": "keras.layers", "class_name": "MaxPooling2D", "config": {"pool_size": 3, "strides": null, "padding": "valid", "data_format": "channels_last"}, "registered_name": null}})");
  CHECK(config("upsampling2d: {interpolation: bilinear}") ==
        R"(UpSampling2D {"size": 2, "interpolation": "bilinear", "data_format": "channels_last"})");
  CHECK(config("prelu") ==
        R"(PReLU {"alpha_initializer": {"class_name": "Zeros", "config": {}}, "shared_axes": null})");
  CHECK(config("prelu: {shared_axes: 1}").ends_with(R"("shared_axes": [1]})"));
  CHECK(config("conv1d: {filters: 1, kernel_size: 2, padding: causal}").find(R"("padding": "causal")") !=
        std::string::npos);
  CHECK(config("upsampling2d: 3") ==
        R"(UpSampling2D {"size": 3, "interpolation": "nearest", "data_format": "channels_last"})");
  CHECK(config("cropping2d: [1, 2]") ==
        R"(Cropping2D {"cropping": [[1, 1], [2, 2]], "data_format": "channels_last"})");
  CHECK(config("softmax") == "Softmax {}");
  CHECK(config("resizing: {height: 4, width: 6, interpolation: nearest}") ==
        R"(Resizing {"height": 4, "width": 6, "interpolation": "nearest"})");
  CHECK(config("rescaling: {scale: 1/4}") == R"(Rescaling {"scale": 0.25, "offset": 0})");
  CHECK(config("rescaling: {scale: [1, 2.5], offset: -1}") ==
        R"(Rescaling {"scale": [1, 2.5], "offset": -1})");
  CHECK(config("unit_normalization") == "UnitNormalization {}");
  CHECK(config("rms_normalization: {epsilon: 0.5}") == R"(RMSNormalization {"epsilon": 0.5})");
  CHECK(config("group_normalization: {groups: 4, center: false}") ==
        R"(GroupNormalization {"groups": 4, "epsilon": 0.001, "center": false, "scale": true, )"
        R"("beta_initializer": {"class_name": "Zeros", "config": {}}, )"
        R"("gamma_initializer": {"class_name": "Ones", "config": {}}})");
  CHECK(config("masking: {mask_value: -1}") == R"(Masking {"mask_value": -1})");
  CHECK(config("gaussian_noise: 0.5") == R"(GaussianNoise {"stddev": 0.5})");
  CHECK(config("gaussian_dropout: 0.5") == R"(GaussianDropout {"rate": 0.5})");
  CHECK(config("spatial_dropout1d: 0.5") == R"(SpatialDropout1D {"rate": 0.5})");
  CHECK(config("spatial_dropout2d: 0.5") ==
        R"(SpatialDropout2D {"rate": 0.5, "data_format": "channels_last"})");
  CHECK(config("batch_normalization").find("synchronized") == std::string::npos);
  CHECK(config("batch_normalization: {synchronized: true}").ends_with(R"("synchronized": true})"));
  CHECK(config("reshape: [2, -1]") == R"(Reshape {"target_shape": [2, -1]})");
  CHECK(config("dense: {units: 1}").find(R"("activation": "linear")") != std::string::npos);
  CHECK(config("lstm: {units: 3, dropout: 0.5}") ==
        R"(LSTM {"units": 3, "activation": "tanh", "recurrent_activation": "sigmoid", "use_bias": true, )"
        R"("kernel_initializer": {"class_name": "GlorotUniform", "config": {}}, )"
        R"("recurrent_initializer": {"class_name": "Orthogonal", "config": {"gain": 1}}, )"
        R"("bias_initializer": {"class_name": "Zeros", "config": {}}, "unit_forget_bias": true, )"
        R"("return_sequences": false, "return_state": false, "go_backwards": false, "dropout": 0.5, )"
        R"("recurrent_dropout": 0})");
  CHECK(
      config("multi_head_attention: {num_heads: 2, key_dim: 4}") ==
      R"(MultiHeadAttention {"num_heads": 2, "key_dim": 4, "value_dim": null, "dropout": 0, "use_bias": true, )"
      R"("kernel_initializer": {"class_name": "GlorotUniform", "config": {}}, )"
      R"("bias_initializer": {"class_name": "Zeros", "config": {}}})");
  CHECK(config("multi_head_attention: {num_heads: 4, key_dim: 2, num_key_value_heads: 2, causal: true}")
            .starts_with(
                R"(GroupQueryAttention {"num_query_heads": 4, "head_dim": 2, "num_key_value_heads": 2, )"));
  CHECK(config("gru: {units: 3, recurrent_activation: {hard_sigmoid: {slope: 0.2}}}")
            .find(R"("recurrent_activation": "hard_sigmoid_0.2")") != std::string::npos);
  CHECK(config("gru: {units: 3, reset_after: false}").find(R"("reset_after": false)") != std::string::npos);
  // Keras has this function only as a layer, which cannot be part of a step.
  CHECK(config("simple_rnn: {units: 3, activation: {leaky_relu: {negative_slope: 0.5}}}")
            .find(R"("activation": "leaky_relu{)") != std::string::npos);
}

TEST_CASE("Keras computes positions with layers that it has") {
  const Graph graph = graph_from(R"(
inputs: {x: [3, 4]}
layers:
  - position_embedding: {sequence_length: 5, initializer: zeros, activity_regularizer: {l2: 0.5}, name: learned}
  - sinusoidal_position_encoding: {max_wavelength: 100, name: fixed}
outputs: [learned, fixed]
)");
  const Json model = keras_model_config(graph, "net", keras_layers(graph));
  const std::vector<Json>& layers = model.at("config").at("layers").items();
  REQUIRE(layers.size() == 3);
  CHECK(layers[1].at("class_name").as_string() == "Functional");
  const std::vector<Json>& inner = layers[1].at("config").at("layers").items();
  REQUIRE(inner.size() == 5);
  CHECK(inner[1].at("config").at("offset").dump() == "[[0.0], [1.0], [2.0]]");
  CHECK(inner[3].at("config").at("input_dim").as_int() == 5);
  CHECK(inner[3].at("config").at("output_dim").as_int() == 4);
  CHECK(inner[4].at("config").at("activity_regularizer").at("config").at("l2").as_double() == 0.5);
  CHECK(layers[2].at("class_name").as_string() == "Rescaling");
  CHECK(layers[2].at("config").at("offset").items()[1].dump() ==
        "[0.841470957, 0.540302277, 0.099833414, 0.995004177]");
  // Keras counts the calls of a model from 1 in output_layers only.
  CHECK(model.at("config").at("output_layers").dump() == R"([["learned", 1, 0], ["fixed", 0, 0]])");
  CHECK(layers[2].at("inbound_nodes").dump().find(R"(["learned", 0, 0])") != std::string::npos);
  // An import finds the layers again.
  const auto found = parse_keras_model(model);
  REQUIRE(found->layers.size() == 3);
  CHECK(!found->layers[1].model);
  CHECK(found->layers[1].config.at("sequence_length").as_int() == 5);
  CHECK(found->layers[1].config.at("initializer").at("class_name").as_string() == "Zeros");
  CHECK(found->layers[1].config.at("activity_regularizer").at("class_name").as_string() == "L2");
  CHECK(found->layers[2].class_name == "AddSinePositionEncoding");
  CHECK(found->layers[2].config.at("max_wavelength").as_double() == 100);
  CHECK(!found->layers[2].config.find("offset"));
}

TEST_CASE("Keras computes rotary attention with layers and operations that it has") {
  const Graph graph = graph_from(R"(
inputs: {x: [3, 4], y: [5, 6]}
layers:
  - multi_head_attention: {num_heads: 2, key_dim: 4, inputs: [x, y], causal: true, rotary: {base: 100},
                           kernel_regularizer: {l2: 0.5}}
)");
  const Json model = keras_model_config(graph, "net", keras_layers(graph));
  const Json& layer = model.at("config").at("layers").items().back();
  CHECK(layer.at("class_name").as_string() == "Functional");
  CHECK(layer.at("inbound_nodes").items()[0].at("args").items()[0].items().size() == 2);
  CHECK(model.at("config").at("output_layers").dump() == R"(["multi_head_attention", 1, 0])");
  CHECK(layer.at("config").at("input_layers").dump() == R"([["query_input", 0, 0], ["value_input", 0, 0]])");
  const std::vector<Json>& inner = layer.at("config").at("layers").items();
  const auto config_of_inner = [&](const std::string& name) {
    const auto found = std::find_if(inner.begin(), inner.end(),
                                    [&](const Json& one) { return one.at("name").as_string() == name; });
    REQUIRE(found != inner.end());
    return found->at("config");
  };
  CHECK(config_of_inner("key_product").at("output_shape").dump() == "[5, 2, 4]");
  CHECK(config_of_inner("key_product").at("kernel_regularizer").at("class_name").as_string() == "L2");
  CHECK(config_of_inner("query_positions").at("offset").dump() == "[[[0.0]], [[1.0]], [[2.0]]]");
  CHECK(config_of_inner("query_angles").at("scale").dump() == "[1.0, 0.1, 1.0, 0.1]");
  CHECK(config_of_inner("query_angles").at("dtype").as_string() == "float64");
  CHECK(config_of_inner("attended").at("is_causal").as_bool());
  CHECK(config_of_inner("attention_output").at("output_shape").dump() == "[3, 4]");
}

TEST_CASE("every kind of layer has one row of formats") {
  std::vector<std::string> kinds = registry<Layer>().names(), rows;
  for (const LayerFormats& row : all_layer_formats()) rows.push_back(row.kind);
  std::sort(kinds.begin(), kinds.end());
  std::sort(rows.begin(), rows.end());
  CHECK(rows == kinds);
  CHECK_THROWS_AS(formats_of("lambda"), std::logic_error);
}
