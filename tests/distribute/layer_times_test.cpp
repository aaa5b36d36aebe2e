// The training time of layers: estimated and measured.
#include "distribute/layer_times.h"

#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "base/stopwatch.h"
#include "distribute/graph_flow.h"
#include "support/graphs.h"
#include "support/one_cpu.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

using Seconds = std::vector<double>;

double sum(const Seconds& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

Seconds estimate(const Graph& graph, int64_t batch) {
  return estimate_layer_seconds(graph, batch, typical_speed(DeviceId::Kind::cpu));
}

Seconds measure(const Graph& graph, int64_t batch, double most_seconds) {
  const auto device = test::cpu_device();
  return measure_layer_seconds(graph, batch, device->ops(), most_seconds);
}

constexpr const char* kEverySort = R"(
inputs: {image: [16, 16, 16], word: {shape: [7], dtype: int32}}
layers:
  - conv2d: {name: conv, filters: 32, kernel_size: 3, padding: same, activation: relu, inputs: image}
  - conv2d: {name: frozen, filters: 32, kernel_size: 1, trainable: false}
  - batch_normalization: {name: normal}
  - activation: {name: relu, activation: relu}
  - add: {name: sum, inputs: [relu, conv]}
  - max_pooling2d: {name: pool, pool_size: 2}
  - depthwise_conv2d: {name: depthwise, kernel_size: 3}
  - conv2d_transpose: {name: up, filters: 8, kernel_size: 2, strides: 2}
  - dropout: {name: drop, rate: 0.5}
  - activation: {name: gelu, activation: gelu}
  - flatten: {name: flat}
  - dense: {name: hidden, units: 12, activation: tanh}
  - embedding: {name: words, input_dim: 50, output_dim: 6, inputs: word}
  - layer_normalization: {name: rows}
  - flatten: {name: row}
  - concatenate: {name: both, inputs: [hidden, row]}
  - dense: {name: out, units: 5, activation: softmax}
)";

}  // namespace

TEST_CASE("flow_of() returns fused activations, required gradients and numbers of readers") {
  const Graph graph = graph_from(kEverySort);
  const auto flow = flow_of(graph);
  const auto of = [&](const std::string& name) { return flow[node_named(graph, name)]; };
  const auto after = [&](const std::string& name) { return flow[node_named(graph, name) + 1]; };
  CHECK(of("relu").fused_into == static_cast<int>(node_named(graph, "normal")));
  CHECK(of("normal").activation.kind == Activation::relu);
  CHECK(after("conv").fused_into == static_cast<int>(node_named(graph, "conv")));
  // The activation is fused into `conv`, so the readers of the activation count.
  CHECK(of("conv").readers == 2);
  CHECK(of("gelu").fused_into == -1);
  CHECK(of("out").fused_into == -1);
  CHECK(!of("image").needs_gradient);
  CHECK(!of("word").needs_gradient);
  CHECK(of("frozen").needs_gradient);
}

DEVICE_TEST_CASE("every layer that computes something takes time") {
  const Graph graph = graph_from(kEverySort);
  const auto flow = flow_of(graph);
  const Seconds estimated = estimate(graph, 4);
  const Seconds measured = measure_layer_seconds(graph, 4, device.ops(), 0.2);
  REQUIRE(estimated.size() == graph.nodes.size());
  REQUIRE(measured.size() == graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    CAPTURE(node.name);
    const bool free = !node.layer || flow[i].fused_into >= 0;
    CHECK((estimated[i] > 0) == !free);
    CHECK((measured[i] > 0) == (!free && node.kind != "flatten"));
  }
}

TEST_CASE("equal layers are measured once") {
  const Graph graph = graph_from(R"(
inputs: {x: [64]}
layers:
  - dense: {name: first, units: 64, activation: relu}
  - dense: {name: second, units: 64, activation: relu}
  - dense: {name: third, units: 64, activation: relu}
  - dense: {name: other, units: 64, activation: tanh}
)");
  const Seconds seconds = measure(graph, 32, 0.1);
  const auto of = [&](const std::string& name) { return seconds[node_named(graph, name)]; };
  CHECK(of("second") == of("third"));
  CHECK(of("first") != of("second"));  // `first` does not compute the gradient of its input
  CHECK(of("other") != of("second"));
}

TEST_CASE("layers with more multiply-adds take longer") {
  const Graph graph = graph_from(R"(
inputs: {image: [32, 32, 8]}
layers:
  - conv2d: {name: small, filters: 16, kernel_size: 3, padding: same}
  - conv2d: {name: more_filters, filters: 128, kernel_size: 3, padding: same, inputs: image}
  - conv2d: {name: larger_kernel, filters: 16, kernel_size: 9, padding: same, inputs: image}
outputs: [small, more_filters, larger_kernel]
)");
  for (const Seconds& seconds : {estimate(graph, 8), measure(graph, 8, 0.5)}) {
    const auto of = [&](const std::string& name) { return seconds[node_named(graph, name)]; };
    CHECK(of("more_filters") > 2 * of("small"));
    CHECK(of("larger_kernel") > 2 * of("small"));
  }
}

TEST_CASE("an estimate depends on the numbers of multiply-adds, bytes and calls") {
  const Graph graph = graph_from(R"(
inputs: {image: [10, 10, 4], word: {shape: [3], dtype: int32}, volume: [5, 6, 7, 2]}
layers:
  - conv2d: {name: conv, filters: 8, kernel_size: 3, strides: 2, use_bias: false, inputs: image}
  - conv2d_transpose: {name: up, filters: 5, kernel_size: 2, strides: 2, use_bias: false}
  - embedding: {name: words, input_dim: 1000, output_dim: 2, inputs: word}
  - conv3d: {name: solid, filters: 3, kernel_size: [2, 3, 1], strides: 2, use_bias: false, inputs: volume}
outputs: [up, words, solid]
)");
  const auto by = [&](const DeviceSpeed& speed, const std::string& name) {
    return estimate_layer_seconds(graph, 7, speed)[node_named(graph, name)];
  };
  constexpr double kNever = 1e300;
  // Each layer computes its output and the gradient of its kernel. Only the second layer also computes the
  // gradient of its input.
  const DeviceSpeed multiply_adds{1, kNever, 0};
  CHECK(by(multiply_adds, "conv") == doctest::Approx(2 * 7 * (4 * 4 * 8) * (3 * 3 * 4)));
  CHECK(by(multiply_adds, "up") == doctest::Approx(3 * 7 * (4 * 4 * 8) * (2 * 2 * 5)));
  CHECK(by(multiply_adds, "solid") == doctest::Approx(2 * 7 * (2 * 2 * 4 * 3) * (2 * 3 * 1 * 2)));
  CHECK(by(multiply_adds, "words") == doctest::Approx(0).epsilon(1e-9));
  const DeviceSpeed bytes{kNever, 1, 0};
  const double passes = 2 * (7 * (10 * 10 * 4 + 4 * 4 * 8) + 3 * 3 * 4 * 8);
  CHECK(by(bytes, "conv") == doctest::Approx(4 * (passes + 2 * 3 * 3 * 4 * 8)));
  CHECK(by(bytes, "words") == doctest::Approx(4 * (2 * 7 * (3 + 3 * 2) + 2 * 1000 * 2)));
  CHECK(by({kNever, kNever, 1}, "up") == doctest::Approx(3));
  const Graph grouped = graph_from(R"(
inputs: {image: [10, 10, 4]}
layers:
  - conv2d: {name: conv, filters: 8, kernel_size: 3, strides: 2, groups: 2, use_bias: false}
)");
  CHECK(estimate_layer_seconds(grouped, 7, multiply_adds)[node_named(grouped, "conv")] ==
        doctest::Approx(2 * 7 * (4 * 4 * 8) * (3 * 3 * 2)));
}

TEST_CASE("estimates have the order of magnitude of measured times") {
  for (const char* config : {"configs/resnet20.yaml", "configs/wide-mlp.yaml"}) {
    CAPTURE(config);
    constexpr int64_t batch = 16;
    const Graph graph = graph_of_config(config);
    const double estimated = sum(estimate(graph, batch)), measured = sum(measure(graph, batch, 0.3));
    CAPTURE(estimated);
    CAPTURE(measured);
    CHECK(estimated < 10 * measured);
    CHECK(measured < 10 * estimated);
  }
}
