// Error messages for invalid models, and their source locations.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "model_errors.h"
#include "support/text.h"

using namespace dtrain;
using namespace dtrain::test;

TEST_CASE("unsuitable shapes are reported at the layer") {
  CHECK(model_errors(with_layers("  - max_pooling2d: {pool_size: 29, name: pool1}\n"))
            .starts_with("m.yaml:3:5: error: max_pooling2d 'pool1': "));
}

TEST_CASE("a layer that would create a mask is an error if its input does not suit it") {
  CHECK(model_errors("inputs: {x: {shape: [6], dtype: int32}}\nlayers:\n  - masking: {mask_value: 0.5}\n")
            .starts_with("m.yaml:3:5: error: masking 'masking': expected a float32 input"));
}

TEST_CASE("after a layer with an error, options are still checked but shapes are not") {
  const std::string errors =
      model_errors(with_layers("  - max_pooling2d: {pool_size: 29}\n"
                               "  - conv2d: {filters: 1, kernel_size: 99}\n"
                               "  - dense: {units: 0}\n"));
  CHECK(errors.find("m.yaml:3:5: error: max_pooling2d") != std::string::npos);
  CHECK(errors.find("m.yaml:4") == std::string::npos);
  CHECK(errors.find("m.yaml:5:20: error: dense's units") != std::string::npos);
}

TEST_CASE("unknown layers, keys and names are reported with a suggestion") {
  CHECK(model_errors(with_layers("  - flaten\n")) ==
        "m.yaml:3:5: error: unknown layer 'flaten'; did you mean 'flatten'?");
  CHECK(model_errors(with_layers("  - conv2d: {filters: 1, kernal_size: 3, kernel_size: 3}\n")) ==
        "m.yaml:3:26: error: unknown key 'kernal_size' in conv2d; did you mean 'kernel_size'?");
  CHECK(model_errors(with_layers("  - flatten: {name: flat}\n"
                                 "  - dense: {units: 2, inputs: [falt]}\n")) ==
        "m.yaml:4:32: error: 'falt' is not defined before this layer; did you mean 'flat'?");
  CHECK(model_errors(with_layers("  - flatten: {inputs: later}\n"
                                 "  - flatten: {name: later}\n"))
            .starts_with("m.yaml:3:23: error: 'later' is not defined before this layer"));
  CHECK(model_errors(with_layers("  - flatten: {name: self, inputs: self}\n"))
            .starts_with("m.yaml:3:35: error: 'self' is not defined before this layer"));
}

TEST_CASE("misspelt common keys of layers and blocks are reported with a suggestion") {
  CHECK(model_errors(with_layers("  - flatten: {nmae: a}\n")) ==
        "m.yaml:3:15: error: unknown key 'nmae' in flatten; did you mean 'name'?");
  CHECK(model_errors(with_layers("  - dense: {units: 2, input: x}\n")) ==
        "m.yaml:3:23: error: unknown key 'input' in dense; did you mean 'inputs'?");
  CHECK(model_errors(with_blocks("  b: {layers: [flatten]}\n", "  - b: {repaet: 2}\n")) ==
        "m.yaml:5:9: error: unknown key 'repaet' in b; did you mean 'repeat'?");
}

TEST_CASE("duplicate and invalid names are errors") {
  CHECK(model_errors(with_layers("  - flatten: {name: a}\n"
                                 "  - flatten: {name: a}\n")) ==
        "m.yaml:4:21: error: the name 'a' is already used; choose another name");
  CHECK(model_errors(with_layers("  - flatten: {name: x}\n")) ==
        "m.yaml:3:21: error: the name 'x' is already used; choose another name");
  CHECK(model_errors(with_layers("  - flatten: {name: 'a b'}\n"))
            .starts_with("m.yaml:3:21: error: flatten's name: "));
  CHECK(model_errors(with_layers("  - flatten: {name: ../a}\n"))
            .starts_with("m.yaml:3:21: error: flatten's name: "));
  CHECK(model_errors(with_layers("  - dense: {units: 1, name: d, activation: relu}\n"
                                 "  - flatten: {name: d/activation}\n")) ==
        "m.yaml:3:5: error: the name 'd/activation' is already used; choose another name");
}

TEST_CASE("further outputs that do not exist are errors") {
  const auto errors = [](const std::string& first, const std::string& second) {
    return model_errors("inputs: {x: [5, 3]}\nlayers:\n  - " + first + "\n  - " + second + "\n");
  };
  CHECK(errors("gru: {units: 2, name: g}", "dense: {units: 1, inputs: \"g:1\"}") ==
        "m.yaml:4:31: error: 'g:1' does not exist, because 'g' has only one output; write its name without a "
        "number");
  CHECK(errors("gru: {units: 2, name: g, return_state: true}", "dense: {units: 1, inputs: \"g:2\"}") ==
        "m.yaml:4:31: error: 'g:2' does not exist, because 'g' has 2 outputs, numbered from 0");
  // If a layer has an error, its outputs are unknown. An unknown output causes no further errors.
  CHECK(errors("gru: {units: 0, name: g, return_state: true}", "dense: {units: 1, inputs: \"g:1\"}")
            .find("'g:1'") == std::string::npos);
}

TEST_CASE("values without a reader are errors") {
  CHECK(model_errors(with_layers("  - flatten\n"
                                 "  - dense: {units: 2, activation: relu}\n"
                                 "  - dense: {units: 2, inputs: flatten}\n")) ==
        "m.yaml:4:5: error: the output of 'dense' is not used: no layer reads it, and it is not an output of "
        "the model");
  CHECK(model_errors("inputs: {x: [4], y: [4]}\nlayers:\n  - dense: {units: 2, inputs: x}\n") ==
        "m.yaml:1:18: error: the input 'y' is not read by any layer");
  CHECK(model_errors(with_blocks("  b: {layers: [{dense: {units: 4}}, {dense: {units: 4, inputs: input}}]}\n",
                                 "  - b: {repeat: 3}\n")) ==
        "m.yaml:3:17: error: the output of 'b/dense' is not used: no layer reads it, and it is not an output "
        "of the model");
}

TEST_CASE("with several inputs, the first layer must name its inputs") {
  CHECK(model_errors("inputs: {x: [4], y: [4]}\nlayers:\n  - dense: {units: 2}\n") ==
        "m.yaml:3:5: error: dense needs the option `inputs`, because the model has several inputs: x, y");
}

TEST_CASE("invalid outputs are errors") {
  CHECK(model_errors(with_layers("  - flatten\n", "outputs: flaten\n")) ==
        "m.yaml:4:10: error: 'flaten' is not a layer of the model; did you mean 'flatten'?");
  CHECK(model_errors(with_layers("  - flatten\n", "outputs: [flatten, x]\n")) ==
        "m.yaml:4:20: error: outputs: 'x' is an input of the model, not a layer");
  CHECK(model_errors(with_layers("  - flatten\n", "outputs: [flatten, flatten]\n")) ==
        "m.yaml:4:20: error: outputs: 'flatten' is listed twice");
  CHECK(model_errors(with_layers("  - flatten\n", "outputs: []\n")).starts_with("m.yaml:4:10: error: "));
}

TEST_CASE("missing and unknown parts of a model are errors") {
  CHECK(model_errors("layers: [flatten]\n").starts_with("m.yaml:1:1: error: missing key 'inputs' in model"));
  CHECK(model_errors("inputs: {x: [4]}\n").starts_with("m.yaml:1:1: error: missing key 'layers' in model"));
  CHECK(model_errors("inputs: {x: [4]}\nlayers: []\n") ==
        "m.yaml:2:9: error: model's layers: expected at least one layer, found an empty list");
  CHECK(model_errors("inputs: {}\nlayers: [flatten]\n")
            .starts_with("m.yaml:1:9: error: inputs: expected a mapping"));
  CHECK(model_errors("inputs: {x: [0]}\nlayers: [flatten]\n")
            .starts_with("m.yaml:1:14: error: input 'x': shape"));
  CHECK(model_errors("inputs: {x: {shape: [4], dtype: flaot32}}\nlayers: [flatten]\n")
            .find("did you mean 'float32'?") != std::string::npos);
  CHECK(model_errors("inputs: {x: [4]}\nlayer: []\nlayers: [flatten]\n") ==
        "m.yaml:2:1: error: unknown key 'layer' in model; did you mean 'layers'?");
  CHECK(model_errors("[]\n").starts_with("m.yaml:1:1: error: model: expected a mapping"));
  CHECK(model_errors(with_layers("  - flatten:\n    name: a\n"))
            .starts_with("m.yaml:3:5: error: layer: expected a name"));
  CHECK(model_errors(with_layers("  - [flatten]\n")).starts_with("m.yaml:3:5: error: layer: expected"));
}

TEST_CASE("layer keys of the wrong type are errors") {
  CHECK(model_errors(with_layers("  - flatten: {trainable: 3}\n")) ==
        "m.yaml:3:26: error: flatten's trainable: expected true or false, found '3'");
  CHECK(model_errors(with_layers("  - flatten: {inputs: {a: b}}\n"))
            .starts_with("m.yaml:3:23: error: flatten's inputs"));
  CHECK(model_errors(with_layers("  - flatten: {inputs: [x, [x]]}\n"))
            .starts_with("m.yaml:3:27: error: flatten's inputs: expected a name"));
  CHECK(model_errors(with_layers("  - flatten: {repeat: 2}\n"))
            .starts_with("m.yaml:3:15: error: unknown key 'repeat'"));
}

TEST_CASE("invalid devices and recompute segments are errors") {
  CHECK(model_errors(with_layers("  - flatten: {device: tpu:0}\n")) ==
        "m.yaml:3:23: error: flatten's device: expected a device such as cpu:0 or gpu:1, found 'tpu:0'");
  CHECK(model_errors(with_layers("  - flatten: {device: [cpu:0, cpu:1]}\n"))
            .starts_with("m.yaml:3:23: error: flatten's device: expected a device"));
  CHECK(model_errors(with_layers("  - flatten: {recompute: yes}\n")) ==
        "m.yaml:3:26: error: flatten's recompute: expected true, false or {segment: NAME}, found 'yes'");
  CHECK(
      model_errors(with_layers("  - flatten: {recompute: {segmnet: a}}\n"))
          .find(
              "m.yaml:3:27: error: unknown key 'segmnet' in flatten's recompute; did you mean 'segment'?") !=
      std::string::npos);
  CHECK(model_errors(with_layers("  - flatten: {name: a, recompute: {segment: s}}\n"
                                 "  - dense: {name: b, units: 3}\n"
                                 "  - dense: {name: c, units: 3, recompute: {segment: s}}\n")) ==
        "m.yaml:5:5: error: recompute: the layers of a segment must be consecutive, but 'b', which is not "
        "in the segment of 'c', comes between 'c' and an earlier layer of that segment");
}

TEST_CASE("missing and unknown block parameters are errors") {
  const std::string block = "  b: {parameters: {units: 4}, layers: [{dense: {units: $units}}]}\n";
  CHECK(model_errors(with_blocks(block, "  - b: {unit: 3}\n")) ==
        "m.yaml:5:9: error: unknown parameter 'unit' of block 'b'; did you mean 'units'?");
  CHECK(model_errors(with_blocks(block, "  - b: {units: many}\n")) ==
        "m.yaml:5:16: error: dense's units: expected an integer, found 'many'");
  CHECK(model_errors(with_blocks(block, "  - b: {repeat: 0}\n"))
            .starts_with("m.yaml:5:17: error: b's repeat: expected a number from 1 to 10000"));
  CHECK(model_errors(with_blocks(block, "  - b: 4\n"))
            .starts_with("m.yaml:5:8: error: block 'b': expected a mapping"));
  CHECK(model_errors(
            with_blocks("  b: {parameters: {units: 4}, layers: [{dense: {units: $unit}}]}\n", "  - b\n")) ==
        "m.yaml:3:56: error: the block has no parameter 'unit'; did you mean 'units'?");
  CHECK(model_errors(with_layers("  - dense: {units: $units}\n")) ==
        "m.yaml:3:20: error: '$units' refers to a block parameter, but is used outside a block; use it only "
        "in the layers of a block");
  CHECK(
      model_errors(with_blocks("  b: {parameters: {name: 4}, layers: [{dense: {units: 4}}]}\n", "  - b\n")) ==
      "m.yaml:3:20: error: block 'b': 'name' is a key of every block and cannot be the name of a parameter");
}

TEST_CASE("errors within a block are reported in the block") {
  CHECK(model_errors(with_blocks("  dense: {layers: [flatten]}\n", "  - flatten\n")) ==
        "m.yaml:3:3: error: block 'dense' has the same name as a layer type; choose another name");
  CHECK(model_errors(with_blocks("  b: {layers: []}\n", "  - flatten\n")) ==
        "m.yaml:3:3: error: block 'b' has no layers");
  CHECK(model_errors(with_blocks("  b: {layer: [flatten]}\n", "  - flatten\n"))
            .starts_with("m.yaml:3:6: error: missing key 'layers' in block 'b'"));
  CHECK(model_errors(with_blocks("  a: {layers: [b]}\n  b: {layers: [flatten, a]}\n", "  - a\n")) ==
        "m.yaml:4:25: error: block 'a' contains itself (a > b > a)");
  CHECK(model_errors(with_blocks("  b: {layers: [{add: {inputs: [input, outer]}}]}\n",
                                 "  - dense: {units: 4, name: outer}\n  - b\n"))
            .starts_with("m.yaml:3:39: error: 'outer' is not defined before this layer"));
  CHECK(model_errors(with_blocks("  b: {layers: [{flatten: {name: input}}]}\n", "  - b\n")) ==
        "m.yaml:3:33: error: the name 'input' is already used; choose another name");
  CHECK(model_errors(with_blocks("  b: {layers: [{flatten: {name: a/c}}]}\n", "  - b\n")) ==
        "m.yaml:3:33: error: the name 'a/c' contains '/', which is not allowed in names inside a block");
  CHECK(model_errors(with_blocks("  b: {layers: [flatten]}\n",
                                 "  - dense: {units: 4}\n  - b: {inputs: [x, dense]}\n")) ==
        "m.yaml:6:21: error: block 'b' has one input, but `inputs` lists 2");
}

TEST_CASE("an unused block is checked except for its shapes") {
  CHECK(model_errors(with_blocks("  b: {layers: [{dense: {unit: 4}}]}\n", "  - flatten\n"))
            .find("m.yaml:3:25: error: unknown key 'unit' in dense; did you mean 'units'?") !=
        std::string::npos);
  CHECK(model_errors(with_blocks("  b: {layers: [global_average_pooling2d]}\n", "  - flatten\n")) == "");
}

TEST_CASE("an error in a repeated block is reported once, and its copies can be referred to") {
  const std::string errors =
      model_errors(with_blocks("  b: {layers: [{max_pooling2d: {pool_size: 2}}]}\n",
                               "  - b: {repeat: 1000}\n  - add: {inputs: [b_999, b_500]}\n"));
  CHECK(errors.starts_with("m.yaml:3:17: error: max_pooling2d 'b/max_pooling2d': "));
  CHECK(errors.find('\n') == std::string::npos);
}

TEST_CASE("all errors are reported at once in the order of the file") {
  CHECK(model_errors("inputs: {x: [4]}\n"
                     "layers:\n"
                     "  - dense: {units: 2, activation: rleu}\n"
                     "  - dens: {units: 2}\n"
                     "  - dense: {units: -1, name: out}\n"
                     "outputs: uot\n") ==
        "m.yaml:3:35: error: unknown activation 'rleu'; did you mean 'relu'?\n"
        "m.yaml:4:5: error: unknown layer 'dens'; did you mean 'dense'?\n"
        "m.yaml:5:20: error: dense's units: expected a number from 1 to 1073741824, found '-1'\n"
        "m.yaml:6:10: error: 'uot' is not a layer of the model; did you mean 'out'?");
}

TEST_CASE("a model of excessive size is rejected quickly") {
  // Each block uses the previous one twice, which gives 2^40 layers after expansion.
  std::string blocks = "  b0: {layers: [flatten]}\n";
  for (int i = 1; i <= 40; ++i) blocks += fmt::format("  b{0}: {{layers: [b{1}, b{1}]}}\n", i, i - 1);
  CHECK(model_errors(with_blocks(blocks, "  - b40\n")).find("the model has more than 100000 layers") !=
        std::string::npos);
  CHECK(model_errors(with_blocks("  a: {layers: [{b: {repeat: 10000}}]}\n  b: {layers: [flatten]}\n",
                                 "  - a: {repeat: 10000}\n"))
            .find("the model has more than 100000 layers") != std::string::npos);
  // The blocks are deeply nested, but not recursive.
  std::string deep = "  b0: {layers: [flatten]}\n";
  for (int i = 1; i <= 300; ++i) deep += fmt::format("  b{}: {{layers: [b{}]}}\n", i, i - 1);
  CHECK(model_errors(with_blocks(deep, "  - b300\n")).find("blocks are nested more than 100 levels deep") !=
        std::string::npos);
}

TEST_CASE("arrays larger than any memory are errors") {
  CHECK(model_errors("inputs: {x: [1000000]}\nlayers:\n  - dense: {units: 1073741824}\n") ==
        "m.yaml:3:5: error: dense 'dense': the kernel of shape 1000000x1073741824 has more than 2147483647 "
        "elements");
  CHECK(model_errors("inputs: {x: [46340, 46340, 1]}\nlayers:\n  - zero_padding2d\n")
            .starts_with("m.yaml:3:5: error: zero_padding2d 'zero_padding2d': the output of shape "
                         "46342x46342x1 has more"));
  // The table of an embedding may be larger than this limit, because no library reads the table.
  CHECK(model_errors("inputs: {x: {shape: [4], dtype: int32}}\nlayers:\n"
                     "  - embedding: {input_dim: 1000000000, output_dim: 100}\n") == "");
}

TEST_CASE("windows too large for the libraries are errors without overflow") {
  const auto errors = [](const std::string& layer) {
    return model_errors("inputs: {x: [8, 8, 1]}\nlayers:\n  - " + layer + "\n");
  };
  const std::string many = "2147483647", more = "4294967297";
  for (const char* kind :
       {"conv2d: {filters: 1, ", "conv2d_transpose: {filters: 1, ", "depthwise_conv2d: {"}) {
    CHECK(errors(kind + ("kernel_size: 3, padding: same, dilation_rate: " + many + "}")).find("spans") !=
          std::string::npos);
    CHECK(errors(kind + ("kernel_size: 1, dilation_rate: " + more + "}"))
              .find("an integer from 1 to 2147483647") != std::string::npos);
    CHECK(errors(kind + ("kernel_size: " + many + ", padding: same, dilation_rate: " + many + "}"))
              .find("spans") != std::string::npos);
    CHECK(errors(kind + std::string("kernel_size: 1000001, padding: same}"))
              .find("has more than 2147483647 elements") != std::string::npos);
    CHECK(errors(kind + std::string("kernel_size: 3, padding: same, dilation_rate: 100}")) == "");
  }
  CHECK(errors("conv2d_transpose: {filters: 1, kernel_size: 1, strides: " + many + "}")
            .find("has more than 2147483647 elements") != std::string::npos);
  CHECK(errors("max_pooling2d: {pool_size: " + many + ", padding: same}") == "");
}

TEST_CASE("a repeat count out of range is reported immediately") {
  const auto repeated = [](const std::string& count) {
    return model_errors(
        with_blocks("  b: {layers: [{dense: {units: 4}}]}\n", "  - b: {repeat: " + count + "}\n"));
  };
  CHECK(repeated("10001") ==
        "m.yaml:5:17: error: b's repeat: expected a number from 1 to 10000, found '10001'");
  CHECK(repeated("2147483647") ==
        "m.yaml:5:17: error: b's repeat: expected a number from 1 to 10000, found '2147483647'");
  CHECK(repeated("0") == "m.yaml:5:17: error: b's repeat: expected a number from 1 to 10000, found '0'");
  CHECK(model_errors(with_blocks("  a: {layers: [{b: {repeat: 2147483647}}]}\n  b: {layers: [flatten]}\n",
                                 "  - a: {repeat: 10000}\n"))
            .starts_with("m.yaml:3:29: error: b's repeat: "));
}

TEST_CASE("a layer with errors only in details still has its shape checked") {
  CHECK(model_errors(with_layers("  - flatten: {foo: 1}\n"
                                 "  - dense: {units: 4, activation: rleu, trainable: maybe}\n"
                                 "  - dropout: {rate: 7}\n"
                                 "  - max_pooling2d\n")) ==
        "m.yaml:3:15: error: unknown key 'foo' in flatten; it has no options\n"
        "m.yaml:4:35: error: unknown activation 'rleu'; did you mean 'relu'?\n"
        "m.yaml:4:52: error: dense's trainable: expected true or false, found 'maybe'\n"
        "m.yaml:5:21: error: dropout's rate: expected a number of at least 0 and less than 1, found '7'\n"
        "m.yaml:6:5: error: max_pooling2d 'max_pooling2d': expected images of shape [height, width, "
        "channels], but 'dropout' has the shape 4");
  // The misspelt option may change the shape, so there are no follow-up errors about later layers.
  CHECK(model_errors(with_layers("  - conv2d: {filters: 4, kernel_size: 3, stride: 4}\n"
                                 "  - max_pooling2d: {pool_size: 20}\n"
                                 "  - dense: {}\n"))
            .find("m.yaml:4:") == std::string::npos);
}

TEST_CASE("known outputs are returned even for a model with errors") {
  const auto outputs_of = [](const std::string& yaml) {
    Diagnostics diagnostics;
    ModelEnds ends;
    parse_model(parse_yaml(yaml, "m.yaml", diagnostics), diagnostics, &ends);
    return ends.outputs;
  };
  const auto known =
      outputs_of(with_layers("  - flatten: {foo: 1}\n  - dense: {units: 4, name: a, activation: relu}\n"));
  REQUIRE(known.size() == 1);
  CHECK(known[0].name == "a");
  REQUIRE(known[0].spec);
  CHECK(known[0].spec->shape == Shape{4});
  const auto unknown = outputs_of(with_layers("  - flaten\n"));
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].name.empty());
  CHECK_FALSE(unknown[0].spec);
  const auto named = outputs_of(
      with_layers("  - flatten: {name: f}\n  - dense: {units: 0, name: b}\n", "outputs: [f, b]\n"));
  REQUIRE(named.size() == 2);
  CHECK(named[1].name == "b");
  CHECK_FALSE(named[1].spec);
}

TEST_CASE("`units: auto` is allowed only in output layers") {
  const auto ends_of = [](const std::string& yaml) {
    Diagnostics diagnostics;
    ModelEnds ends;
    CHECK_FALSE(parse_model(parse_yaml(yaml, "m.yaml", diagnostics), diagnostics, &ends));
    CHECK_FALSE(diagnostics.has_errors());
    return ends;
  };
  const ModelEnds ends = ends_of(
      "inputs: {x: auto, y: {shape: auto, dtype: int32}}\n"
      "layers:\n"
      "  - dense: {units: auto, activation: softmax, inputs: x, name: a}\n"
      "  - embedding: {input_dim: 3, output_dim: 2, inputs: y}\n"
      "  - dense: {units: auto}\n"
      "  - activation: sigmoid\n"
      "outputs: [a, activation]\n");
  REQUIRE(ends.inputs.size() == 2);
  CHECK(ends.inputs[0].open_shape.mark().str() == "m.yaml:1:13");
  CHECK(ends.inputs[1].open_shape.mark().str() == "m.yaml:1:30");
  CHECK(ends.inputs[1].dtype == DType::int32);
  REQUIRE(ends.outputs.size() == 2);
  CHECK(ends.outputs[0].open_units.mark().str() == "m.yaml:3:20");
  CHECK(ends.outputs[1].open_units.mark().str() == "m.yaml:5:20");
  // `units: auto` does not prevent the check of the layer's other options.
  CHECK(model_errors("inputs: {x: auto}\nlayers: [{dense: {units: auto, unit: 3}}]\n") ==
        "m.yaml:2:32: error: unknown key 'unit' in dense; did you mean 'units'?");
  CHECK(contains(model_errors("inputs: {x: [auto]}\nlayers: [{dense: {units: 3}}]\n"),
                 "shape: expected auto without brackets, found the list [auto]"));
  CHECK(contains(model_errors(with_layers("  - dense: {units: [auto]}\n")),
                 "dense's units: expected auto without brackets, found the list [auto]"));
  CHECK(model_errors(with_layers("  - dense: {units: auto, name: h}\n  - dense: {units: 2}\n")) ==
        "m.yaml:3:20: error: dense 'h': units must be a number, but is 'auto'; 'auto' is only possible in "
        "layers that produce an output of the model");
}
