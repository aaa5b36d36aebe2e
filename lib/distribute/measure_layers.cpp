#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/stopwatch.h"
#include "distribute/graph_flow.h"
#include "distribute/layer_times.h"

namespace dtrain {

namespace {

/// Prepares the layers of a graph and measures each of them.
class DryRuns {
 public:
  DryRuns(const Graph& graph, int64_t batch, Ops& ops)
      : graph_(graph), batch_(batch), ops_(ops), flow_(flow_of(graph)), layouts_(graph.nodes.size()) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) add(i);
  }

  /// Returns the seconds of each node.
  std::vector<double> measure(double most_seconds) {
    std::vector<double> seconds(graph_.nodes.size(), 0);
    const auto start = std::chrono::steady_clock::now();
    size_t left = alike_.size();
    for (auto& [key, run] : alike_) {
      const double share = (most_seconds - seconds_since(start)) / static_cast<double>(left--);
      const double each = time(run, share);
      for (const size_t node : run.nodes) seconds[node] = each;
    }
    return seconds;
  }

 private:
  /// A group of layers with equal options, shapes, layouts and use. Only the first layer of a group is
  /// measured.
  struct DryRun {
    std::vector<size_t> nodes;
    std::unique_ptr<PreparedLayer> layer;
    std::vector<bool> input_needs_gradient;
  };

  void add(size_t i) {
    const GraphNode& node = graph_.nodes[i];
    if (!node.layer) {
      layouts_[i] = {Layout::plain};
      return;
    }
    if (const int into = flow_[i].fused_into; into >= 0) {
      layouts_[i] = layouts_[static_cast<size_t>(into)];
      return;
    }
    std::vector<TensorSpec> inputs;
    std::vector<Layout> layouts;
    std::vector<bool> needs_gradient;
    for (const ValueRef input : node.inputs) {
      const auto from = static_cast<size_t>(input.node);
      inputs.push_back(graph_.spec(input));
      layouts.push_back(layouts_[from][static_cast<size_t>(input.output)]);
      needs_gradient.push_back(flow_[from].needs_gradient);
    }
    DryRun& run = alike_[key_of(i, layouts, needs_gradient)];
    run.nodes.push_back(i);
    if (!run.layer) {
      run.layer = node.layer->prepare({ops_,
                                       batch_,
                                       true,
                                       inputs,
                                       node.outputs,
                                       layouts,
                                       flow_[i].activation,
                                       false,
                                       needs_gradient,
                                       {},
                                       0,
                                       node.has_moving_parameters()});
      run.input_needs_gradient = needs_gradient;
    }
    for (size_t k = 0; k < node.outputs.size(); ++k)
      layouts_[i].push_back(run.layer->requirements().output_layout(k));
  }

  std::string key_of(size_t i, const std::vector<Layout>& layouts, const std::vector<bool>& gradients) const {
    const GraphNode& node = graph_.nodes[i];
    const NodeFlow& flow = flow_[i];
    std::string key = node.layer.resolved.to_yaml();
    for (const ValueRef input : node.inputs) key += " " + graph_.spec(input).shape.str();
    for (const ParameterSpec& parameter : node.parameters) key += node.trains(parameter) ? " t" : " -";
    for (const Layout layout : layouts) key += fmt::format(" {}", static_cast<int>(layout));
    return key + fmt::format(" {} {} {} {} {}", fmt::join(gradients, ""),
                             static_cast<int>(flow.activation.kind), flow.activation.alpha,
                             flow.needs_gradient, flow.readers);
  }

  double time(const DryRun& run, double most_seconds);

  const Graph& graph_;
  const int64_t batch_;
  Ops& ops_;
  const std::vector<NodeFlow> flow_;
  std::vector<std::vector<Layout>> layouts_;  // for each node, the layouts of its outputs
  std::map<std::string, DryRun> alike_;
};

/// A single layer with its own memory, which is filled with zeros.
class LayerAlone {
 public:
  LayerAlone(const Graph& graph, const GraphNode& node, const NodeFlow& flow, PreparedLayer& layer,
             const std::vector<bool>& input_needs_gradient, int64_t batch, Ops& ops)
      : node_(node), flow_(flow), layer_(layer), batch_(batch), ops_(ops) {
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const TensorSpec& spec = graph.spec(node.inputs[k]);
      args_.inputs.push_back(values(spec));
      args_.diff_inputs.push_back(input_needs_gradient[k] ? values(spec) : nullptr);
    }
    for (const TensorSpec& spec : node.outputs) {
      args_.outputs.push_back(values(spec));
      args_.diff_outputs.push_back(diff_outputs_.emplace_back(values(spec)));
    }
    for (const ParameterSpec& spec : node.parameters) take_parameter(spec);
    args_.saved = take(layer.requirements().saved_bytes);
    args_.scratch = take(layer.requirements().scratch_bytes);
    args_.step = static_cast<const uint64_t*>(take(sizeof(uint64_t)));
  }

  /// Runs forward and backward of the layer in the same way as a plan.
  void run() {
    const LayerRequirements& requirements = layer_.requirements();
    if (requirements.is_view) return;
    layer_.forward(args_);
    if (!flow_.needs_gradient) return;
    gather_gradients();
    if (!requirements.passes_gradient) layer_.backward(args_);
  }

 private:
  void* take(size_t bytes) {
    if (bytes == 0) return nullptr;
    return buffers_.emplace_back(ops_.context().allocate(bytes)).data();
  }
  void* values(const TensorSpec& spec) {
    const DType type = spec.dtype == DType::float32 ? ops_.compute_type() : spec.dtype;
    return take(static_cast<size_t>(batch_ * spec.shape.elements()) * bytes_of(type));
  }
  void take_parameter(const ParameterSpec& spec) {
    const auto elements = static_cast<size_t>(spec.shape.elements());
    const DType type = ops_.compute_type();
    args_.parameters.push_back(static_cast<const float*>(take(elements * sizeof(float))));
    args_.weights.push_back(type == DType::float32 ? args_.parameters.back()
                                                   : take(elements * bytes_of(type)));
    // If at least one parameter of the layer is trained, backward writes the gradients of all its parameters.
    const bool wants_gradient = node_.has_moving_parameters();
    args_.diff_parameters.push_back(
        static_cast<float*>(wants_gradient ? take(elements * sizeof(float)) : nullptr));
  }
  /// Adds the gradients from all readers of the output, and runs the backward pass of a fused activation.
  void gather_gradients() {
    const LayerRequirements& requirements = layer_.requirements();
    const bool undone = flow_.activation.kind == Activation::linear || requirements.undoes_activation;
    const Shape& shape = node_.outputs[0].shape;
    const int64_t n = batch_ * shape.elements(), columns = shape.columns();
    float* diff_bias =
        requirements.bias < 0 ? nullptr : args_.diff_parameters[static_cast<size_t>(requirements.bias)];
    if (undone && flow_.readers <= 1) {
      if (diff_bias) ops_.column_sum(diff_bias, diff_outputs_[0], n / columns, columns);
      return;
    }
    const std::vector<const void*> sources(static_cast<size_t>(std::max(flow_.readers, 1)), diff_outputs_[0]);
    const ActivationSpec activation = undone ? ActivationSpec{} : flow_.activation;
    if (diff_bias) {
      ops_.sum_backward_bias(activation, args_.output(), sources, diff_outputs_[0], diff_bias, n / columns,
                             columns);
    } else {
      ops_.sum_backward(activation, args_.output(), sources, diff_outputs_[0], n);
    }
  }

  const GraphNode& node_;
  const NodeFlow& flow_;
  PreparedLayer& layer_;
  const int64_t batch_;
  Ops& ops_;
  std::vector<Buffer> buffers_;
  std::vector<void*> diff_outputs_;
  LayerArguments args_;
};

double DryRuns::time(const DryRun& run, double most_seconds) {
  const size_t first = run.nodes.front();
  if (run.layer->requirements().is_view) return 0;
  LayerAlone alone(graph_, graph_.nodes[first], flow_[first], *run.layer, run.input_needs_gradient, batch_,
                   ops_);
  // If a run is short, it is repeated several times before the device is synchronized. Otherwise the wait for
  // the device would dominate the measurement.
  const auto seconds_of = [&](int in_a_row) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < in_a_row; ++i) alone.run();
    ops_.context().synchronize();
    return seconds_since(start) / in_a_row;
  };
  constexpr double kShort = 1e-3;
  constexpr int kMostInARow = 16, kMostTimes = 5;
  const auto start = std::chrono::steady_clock::now();
  seconds_of(1);  // warm-up: libraries load their kernels and select algorithms
  double best = seconds_of(1);
  for (int times = 1; times < kMostTimes && seconds_since(start) < most_seconds; ++times)
    best = std::min(best, seconds_of(std::clamp(static_cast<int>(kShort / best), 1, kMostInARow)));
  return best;
}

}  // namespace

std::vector<double> measure_layer_seconds(const Graph& graph, int64_t batch, Ops& ops, double most_seconds) {
  return DryRuns(graph, batch, ops).measure(most_seconds);
}

}  // namespace dtrain
