// Error messages for `shared_with` of layers, `shared_with` of blocks, and `shared_with` of a dense layer
// that uses the weights of an embedding.
#include <doctest/doctest.h>

#include "model_errors.h"

using namespace dtrain;
using namespace dtrain::test;

TEST_CASE("sharing weights with an unsuitable layer is an error") {
  const auto errors = [](const std::string& layers) {
    return model_errors("inputs: {x: [4]}\nlayers:\n  - dense: {units: 4, name: a}\n" + layers);
  };
  CHECK(errors("  - dense: {shared_with: b}\n") ==
        "m.yaml:4:26: error: shared_with: 'b' is not an earlier dense layer; expected one of a");
  CHECK(errors("  - dense: {shared_with: x}\n")
            .starts_with("m.yaml:4:26: error: shared_with: 'x' is not an earlier dense layer"));
  CHECK(errors("  - dense: {name: b, shared_with: c}\n  - dense: {units: 4, name: c}\n")
            .starts_with("m.yaml:4:35: error: shared_with: 'c' is not an earlier dense layer"));
  CHECK(
      errors("  - dense: {name: b, shared_with: ~}\n").starts_with("m.yaml:4:5: error: missing key 'units'"));
  CHECK(errors("  - dense: {name: b, shared_with: b}\n")
            .starts_with("m.yaml:4:35: error: shared_with: 'b' is not an earlier dense layer"));
  // A cycle: each of the two layers would have to be before the other layer.
  CHECK(errors("  - dense: {name: b, shared_with: c}\n  - dense: {name: c, shared_with: b}\n")
            .starts_with("m.yaml:4:35: error: shared_with: 'c' is not an earlier dense layer"));
  CHECK(errors("  - layer_normalization: {shared_with: a}\n") ==
        "m.yaml:4:40: error: shared_with: 'a' is a dense layer, but this is a layer_normalization layer");
  CHECK(errors("  - flatten: {name: f}\n  - flatten: {shared_with: f}\n") ==
        "m.yaml:5:28: error: shared_with: flatten 'f' has no weights to share");
  CHECK(errors("  - dense: {shared_with: a, units: 4, use_bias: true, name: b}\n") ==
        "m.yaml:4:29: error: dense 'b' shares the weights and the options of 'a' (shared_with); remove this "
        "option\n"
        "m.yaml:4:39: error: dense 'b' shares the weights and the options of 'a' (shared_with); remove this "
        "option");
  CHECK(errors("  - dense: {shared_with: a, name: b, trainable: false}\n") ==
        "m.yaml:4:5: error: dense 'b' is not trainable, but it shares the weights of 'a', which is trained; "
        "set `trainable: false` in both layers");
  CHECK(errors("  - dense: {units: 3, name: c}\n  - dense: {shared_with: a, name: b}\n") ==
        "m.yaml:5:5: error: dense 'b': the layer needs a kernel of shape 3x4, but the kernel that it shares "
        "with 'a' has the shape 4x4");
  CHECK(errors("  - dense: {shared_with: [a], name: b}\n")
            .starts_with("m.yaml:4:26: error: dense's shared_with: "));
  CHECK(errors("  - dense: {shared_wiht: a, units: 4}\n") ==
        "m.yaml:4:13: error: unknown key 'shared_wiht' in dense; did you mean 'shared_with'?");
  CHECK(errors("  - dense: {shared_with: a, name: b}\nfreeze: b\n") ==
        "m.yaml:5:9: error: freeze: 'b' shares the weights of 'a', which is trained; freeze both layers");
  CHECK(model_errors(with_blocks("  b: {layers: [{dense: {shared_with: outside}}]}\n",
                                 "  - dense: {units: 4, name: outside}\n  - b\n")) ==
        "m.yaml:3:38: error: shared_with: 'outside' is not an earlier dense layer");
}

TEST_CASE("a dense layer that cannot have an embedding's weights is an error") {
  const auto errors = [](const std::string& layers) {
    return model_errors(
        "inputs: {x: {shape: [4], dtype: int32}}\nlayers:\n"
        "  - embedding: {input_dim: 9, output_dim: 3, name: token}\n" +
        layers);
  };
  CHECK(errors("  - dense: {units: 5}\n  - dense: {shared_with: token, name: b}\n") ==
        "m.yaml:5:5: error: dense 'b': the embedding has vectors of length 3, so the last axis of the input "
        "must have this length, but 'dense' has the shape 4x5");
  CHECK(errors("  - dense: {shared_with: token, use_bias: true}\n") ==
        "m.yaml:4:43: error: use_bias must be false, because a dense layer with the weights of an embedding "
        "has no bias");
  CHECK(errors("  - dense: {shared_with: token, units: 9}\n")
            .starts_with(
                "m.yaml:4:33: error: unknown key 'units' in dense with the weights of an embedding; expected "
                "one of"));
  CHECK(errors("  - dense: {shared_with: tokn}\n") ==
        "m.yaml:4:26: error: shared_with: 'tokn' is not an earlier dense layer; did you mean 'token'?");
  CHECK(errors("  - layer_normalization: {name: n}\n  - dense: {shared_with: n}\n") ==
        "m.yaml:5:26: error: shared_with: 'n' is a layer_normalization layer, but this is a dense layer");
  CHECK(errors("  - dense: {shared_with: token, name: b, trainable: false}\n") ==
        "m.yaml:4:5: error: dense 'b' is not trainable, but it shares the weights of 'token', which is "
        "trained; set `trainable: false` in both layers");
  CHECK(errors("  - dense: {shared_with: token, name: b}\n  - dense: {shared_with: b, activation: relu}\n") ==
        "m.yaml:5:5: error: dense 'dense': the embedding has vectors of length 3, so the last axis of the "
        "input must have this length, but 'b' has the shape 4x9\n"
        "m.yaml:5:29: error: dense 'dense' shares the weights and the options of 'b' (shared_with); remove "
        "this option");
  // Only the error of the embedding is reported, because it explains the others.
  CHECK(model_errors("inputs: {x: {shape: [4], dtype: int32}}\nlayers:\n"
                     "  - embedding: {input_dim: 9, name: token}\n  - dense: {shared_with: token}\n")
            .find('\n') == std::string::npos);
}

TEST_CASE("sharing weights with an unsuitable block is an error") {
  const auto errors = [](const std::string& layers) {
    return model_errors(
        with_blocks("  one: {parameters: {units: 4}, layers: [dense: {units: $units, name: a}]}\n"
                    "  two: {layers: [dense: {units: 4}]}\n",
                    "  - one: {name: first}\n  - two: {name: second}\n" + layers));
  };
  CHECK(errors("  - one: {shared_with: frist}\n")
            .find("shared_with: 'frist' is not an earlier use of block 'one'; did you mean 'first'?") !=
        std::string::npos);
  CHECK(errors("  - one: {shared_with: second}\n")
            .find("shared_with: 'second' is not an earlier use of block 'one'") != std::string::npos);
  CHECK(errors("  - one: {name: itself, shared_with: itself}\n")
            .find("shared_with: 'itself' is not an earlier use of block 'one'") != std::string::npos);
  CHECK(errors("  - one: {shared_with: first, units: 4}\n")
            .find("block 'one' shares the weights and the parameters of 'first' (shared_with); remove this "
                  "parameter") != std::string::npos);
  CHECK(errors("  - dense: {units: 3}\n  - one: {shared_with: first}\n")
            .find("the layer needs a kernel of shape 3x4, but the kernel that it shares with 'first/a' has "
                  "the shape 4x4") != std::string::npos);
  CHECK(
      errors("  - one: {shared_with: first, trainable: false}\n")
          .find("dense 'one/a' is not trainable, but it shares the weights of 'first/a', which is trained") !=
      std::string::npos);
}
