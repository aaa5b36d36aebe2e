// Tests the conversion of layers to Keras's classes and options. tests/keras tests the result with Keras.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "interop/keras/files/json.h"
#include "interop/keras/files/model_tree.h"
#include "interop/layer_formats.h"
#include "keras_config.h"
#include "support/kinds.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Returns the Keras config of a layer, which is the only layer of its model.
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

TEST_CASE("convolutions are written with the key groups if they have several groups") {
  CHECK(config_of("conv2d: {filters: 4, kernel_size: 3, groups: 2}", "[8, 8, 4]").at("groups").as_int() == 2);
  CHECK(config_of("conv1d: {filters: 4, kernel_size: 3, groups: 4}", "[8, 4]").at("groups").as_int() == 4);
  CHECK(config_of("conv3d: {filters: 4, kernel_size: 3, groups: 2}", "[8, 8, 8, 4]").at("groups").as_int() ==
        2);
  CHECK(config_of("conv2d: {filters: 4, kernel_size: 3, groups: 1}").dump() ==
        config_of("conv2d: {filters: 4, kernel_size: 3}").dump());
}

TEST_CASE("layers are written without the key trainable if their Keras class rejects it") {
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

TEST_CASE("the config of a bidirectional layer that goes backwards has both layers") {
  // If a config has only one layer, Keras makes the layer for the other direction with go_backwards: true. If
  // the only layer went backwards, both layers would go backwards.
  const auto config = [](const std::string& options) {
    return config_of("{bidirectional: {layer: {gru: {units: 2" + options + "}}}}", "[5, 3]");
  };
  const Json both = config(", go_backwards: true, reset_after: false");
  CHECK(is_true_at(both.at("layer").at("config"), "go_backwards"));
  const Json& backward = both.at("backward_layer").at("config");
  CHECK_FALSE(is_true_at(backward, "go_backwards"));
  CHECK_FALSE(is_true_at(backward, "reset_after"));
  CHECK(backward.at("units").as_int() == 2);
  CHECK(config("").find("backward_layer") == nullptr);
}

TEST_CASE("layers are converted to Keras's classes and options") {
  const auto config = [](const std::string& yaml) {
    const KerasLayerConfig written = keras_config_of(parse_kind<Layer>(yaml));
    const std::string kind = yaml.substr(0, yaml.find(':')), &keras = written.class_name;
    // Except for these classes, dtrain also accepts Keras's class name as the name of the layer.
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
  // Keras has this function only as a layer, and a recurrent layer cannot use a layer as its activation. The
  // config therefore contains dtrain's name and options of the activation.
  CHECK(config("simple_rnn: {units: 3, activation: {leaky_relu: {negative_slope: 0.5}}}")
            .find(R"("activation": "leaky_relu{)") != std::string::npos);
}

TEST_CASE("position embeddings are exported as models of Keras's layers") {
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
  // Only output_layers counts the calls of a model from 1. In inbound_nodes, the calls are counted from 0.
  CHECK(model.at("config").at("output_layers").dump() == R"([["learned", 1, 0], ["fixed", 0, 0]])");
  CHECK(layers[2].at("inbound_nodes").dump().find(R"(["learned", 0, 0])") != std::string::npos);
  // An import turns the models in this config back into the original layers.
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

TEST_CASE("rotary attention is exported as a model of Keras's layers and operations") {
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
  const std::vector<std::string> kinds = registry<Layer>().names();
  const std::vector<LayerFormats>& rows = all_layer_formats();
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    CHECK(std::count_if(rows.begin(), rows.end(), [&](const auto& row) { return row.kind == kind; }) == 1);
  }
  for (const LayerFormats& row : rows) {
    CAPTURE(row.kind);
    CHECK(std::find(kinds.begin(), kinds.end(), row.kind) != kinds.end());
  }
  CHECK_THROWS_AS(formats_of("lambda"), std::logic_error);
}
