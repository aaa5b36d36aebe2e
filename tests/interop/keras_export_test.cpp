// Tests models that `.keras` files cannot express. tests/keras loads exported files in Keras.
#include <doctest/doctest.h>

#include "exported.h"
#include "interop/keras/export/export.h"
#include "support/errors.h"
#include "support/temp_dir.h"

using namespace dtrain;

namespace {

/// Returns the error message of the export of layers that read an input of shape [5, 2]. Returns "" if the
/// export succeeds.
std::string export_error(const std::string& layers) {
  const test::TempDir directory;
  const TestExport exported("inputs: {x: [5, 2]}\nlayers: [" + layers + "]\n");
  return test::error_of([&] { export_keras(exported.model, std::nullopt, directory / "m.keras"); });
}

}  // namespace

TEST_CASE("activations that Keras lacks are refused, also in the layers of bidirectional") {
  const std::string gru = "gru: {units: 3, recurrent_activation: {hard_sigmoid: {slope: 0.2}}}";
  const std::string lacks =
      " cannot be exported to Keras, because Keras 3 has no recurrent_activation `hard_sigmoid: {slope: "
      "0.2}`";
  CHECK(export_error("{" + gru + "}") == "gru 'gru'" + lacks);
  CHECK(export_error("{bidirectional: {layer: {" + gru + "}}}") == "bidirectional 'bidirectional'" + lacks);
  CHECK(export_error(
            "{bidirectional: {layer: {gru: {units: 3}}, backward_layer: {gru: {units: 3, go_backwards: "
            "true, recurrent_activation: {hard_sigmoid: {slope: 0.2}}}}}}") ==
        "bidirectional 'bidirectional'" + lacks);
  CHECK(export_error("{bidirectional: {layer: {gru: {units: 3}}}}").empty());
}

TEST_CASE("layers that Keras lacks are refused in time_distributed, too") {
  CHECK(export_error(
            "{time_distributed: {layer: {dense: {units: 2, activation: {hard_sigmoid: {slope: 0.2}}}}}}")
            .starts_with(
                "time_distributed 'time_distributed' cannot be exported to Keras, because Keras 3 has no "
                "activation"));
  CHECK(export_error(
            "{reshape: [5, 2, 1]}, {time_distributed: {layer: {multi_head_attention: {num_heads: 1}}}}") ==
        "time_distributed 'time_distributed' cannot be exported to Keras, because Keras has no "
        "multi_head_attention in TimeDistributed");
  CHECK(
      export_error("{masking: {}}, {time_distributed: {layer: softmax}}").find("use `activation: softmax`") !=
      std::string::npos);
  CHECK(export_error("{masking: {}}, {time_distributed: {layer: {dense: {units: 2}}}}").empty());
}

TEST_CASE("the model that computes attention in Keras loses masks") {
  const auto of = [](const std::string& options) {
    return "{masking: {}}, {multi_head_attention: {num_heads: 2, key_dim: 2, " + options + "}}";
  };
  const std::string loses =
      "multi_head_attention 'multi_head_attention' cannot be exported to Keras, because Keras's Functional "
      "does not pass on the mask of its input";
  CHECK(export_error(of("num_key_value_heads: 1")).empty());
  CHECK(export_error(of("num_key_value_heads: 1, value_dim: 3")) == loses);
  CHECK(export_error(of("rotary: {}, dropout: 0.5")) == loses);
  CHECK(export_error(of("rotary: {}, dropout: 0.5, ignore_mask: true")).empty());
}
