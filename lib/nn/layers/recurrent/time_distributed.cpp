#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "nn/layers/array_offsets.h"
#include "nn/layers/common.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

/// An option whose value is a layer, such as {dense: {units: 3}}.
struct LayerOption {
  Configured<Layer> layer;
};

}  // namespace

template <>
struct Codec<LayerOption> {
  static bool parse(const ConfigNode& node, const std::string&, LayerOption& out, Diagnostics& diagnostics) {
    out.layer = registry<Layer>().parse(node, diagnostics);
    return static_cast<bool>(out.layer);
  }
  static ConfigNode write(const LayerOption& value) { return value.layer.resolved; }
  /// Returns a reference to the JSON schema of layers. The full schema cannot be included here, because the
  /// schema of layers contains this schema.
  static Json schema() { return Json::object().set("$ref", "#/$defs/layer"); }
};

namespace {

struct TimeDistributedOptions {
  LayerOption layer;

  static const Schema<TimeDistributedOptions>& schema() {
    using O = TimeDistributedOptions;
    static const auto schema =
        Schema<O>(
            "Applies a layer to every position of a sequence. The weights are the same for all positions.")
            .example("{layer: {dense: {units: 16}}}")
            .required("layer", &O::layer, "a layer with its options");
    return schema;
  }
};

/// Returns the shape and dtype of one position.
TensorSpec one_position(const TensorSpec& sequence) {
  const Shape& shape = sequence.shape;
  return {sequence.name, Shape(std::vector<int64_t>(shape.begin() + 1, shape.end())), sequence.dtype};
}

/// Returns the shape of a sequence of `positions` arrays, each of the shape `one`.
Shape sequence_of(int64_t positions, const Shape& one) {
  std::vector<int64_t> extents = {positions};
  extents.insert(extents.end(), one.begin(), one.end());
  return Shape(std::move(extents));
}

/// An input or output of the inner layer. If the inner layer requires a layout other than plain, its arrays
/// are converted. The sequence itself always has the plain layout, because no Layout describes a sequence
/// whose positions are blocked or planar.
struct PositionArray {
  // Conversions from the plain layout to the layout of the inner layer, and back. Null if the inner layer
  // uses the plain layout.
  std::unique_ptr<Reorder> to_layer, from_layer;
  size_t value = 0, gradient = 0;  // offsets of the reordered arrays in scratch memory

  /// Converts an array for the inner layer to read. If the inner layer reads the plain layout, returns
  /// `plain`. Otherwise reorders `plain` into the scratch memory at `offset` and returns that memory. If
  /// `plain` is null, returns null.
  const void* read(const void* plain, void* scratch, size_t offset) const {
    if (!plain || !to_layer) return plain;
    to_layer->run(plain, array_at(scratch, offset));
    return array_at(scratch, offset);
  }
  /// Returns the memory to which the inner layer writes: `plain` or, if the layouts differ, the scratch
  /// memory at `offset`. If `plain` is null, returns null.
  void* place(void* plain, void* scratch, size_t offset) const {
    return plain && to_layer ? array_at(scratch, offset) : plain;
  }
  /// Copies the result of the inner layer to `plain`, in the plain layout. Does nothing if the inner layer
  /// wrote directly to `plain` (see place()).
  void finish(void* plain, void* scratch, size_t offset) const {
    if (plain && from_layer) from_layer->run(array_at(scratch, offset), plain);
  }
};

/// Computes all positions of all samples as one batch of the inner layer.
class PreparedTimeDistributed : public PreparedLayer {
 public:
  /// `layer` is prepared for samples of the shapes `input` and `output`. Its batch contains `positions`
  /// samples for each sample of the request.
  PreparedTimeDistributed(const LayerRequest& request, std::unique_ptr<PreparedLayer> layer,
                          const TensorSpec& input, const TensorSpec& output, size_t parameters,
                          int64_t positions)
      : layer_(std::move(layer)), positions_(static_cast<uint64_t>(positions)) {
    requirements_ = layer_->requirements();
    args_.inputs.resize(1);
    args_.outputs.resize(1);
    args_.diff_inputs.resize(1);
    args_.diff_outputs.resize(1);
    args_.parameters.resize(parameters);
    args_.weights.resize(parameters);
    args_.diff_parameters.resize(parameters);
    const Layout reads = requirements_.input_layout(0), writes = requirements_.output_layout();
    if (reads == Layout::plain && writes == Layout::plain) return;
    ArrayOffsets scratch;
    inner_scratch_ = scratch.add(requirements_.scratch_bytes);
    const auto rows = request.batch * positions;
    input_ = position_array(request, reads, sequence_of(rows, input.shape), scratch);
    output_ = position_array(request, writes, sequence_of(rows, output.shape), scratch);
    requirements_.scratch_bytes = scratch.bytes();
    requirements_.input_layouts.clear();
    requirements_.output_layouts.clear();
    requirements_.forward_in_place = requirements_.backward_in_place = false;
  }

  void forward(const LayerArguments& args) override {
    set_common(args);
    args_.inputs[0] = input_.read(args.input(), args.scratch, input_.value);
    args_.outputs[0] = output_.place(args.output(), args.scratch, output_.value);
    layer_->forward(args_);
    output_.finish(args.output(), args.scratch, output_.value);
  }

  void backward(const LayerArguments& args) override {
    set_common(args);
    const bool reads_input = requirements_.backward_reads_inputs,
               reads_output = requirements_.backward_reads_outputs;
    args_.inputs[0] = reads_input ? input_.read(args.input(), args.scratch, input_.value) : nullptr;
    if (reads_output) output_.read(args.output(), args.scratch, output_.value);
    args_.outputs[0] = reads_output ? output_.place(args.output(), args.scratch, output_.value) : nullptr;
    args_.diff_outputs[0] = output_.read(args.diff_output(), args.scratch, output_.gradient);
    args_.diff_inputs[0] = input_.place(args.diff_inputs[0], args.scratch, input_.gradient);
    layer_->backward(args_);
    input_.finish(args.diff_inputs[0], args.scratch, input_.gradient);
  }

 private:
  static PositionArray position_array(const LayerRequest& request, Layout layout, const Shape& batch,
                                      ArrayOffsets& scratch) {
    PositionArray array;
    if (layout == Layout::plain) return array;
    array.to_layer = request.ops.reorder(image_batch(batch), Layout::plain, layout);
    array.from_layer = request.ops.reorder(image_batch(batch), layout, Layout::plain);
    const size_t element = bytes_of(request.ops.compute_type());
    array.value = scratch.add(batch.elements(), element);
    if (request.training) array.gradient = scratch.add(batch.elements(), element);
    return array;
  }

  void set_common(const LayerArguments& args) {
    args_.parameters = args.parameters;
    args_.weights = args.weights;
    args_.diff_parameters = args.diff_parameters;
    args_.saved = args.saved;
    args_.scratch = args.scratch ? array_at(args.scratch, inner_scratch_) : nullptr;
    args_.seed = args.seed;
    args_.step = args.step;
    args_.first_sample = args.first_sample * positions_;
    args_.share = args.share;
  }

  std::unique_ptr<PreparedLayer> layer_;
  LayerArguments args_;  // arguments for the inner layer; a member, so that calls do not allocate memory
  uint64_t positions_;
  size_t inner_scratch_ = 0;  // offset of the inner layer's scratch memory
  PositionArray input_, output_;
};

class TimeDistributed : public LayerWith<TimeDistributedOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    if (!one_input(inputs, report_error)) return {};
    if (inputs[0].shape.rank() < 2) {
      report_error(fmt::format(
          "expected an input with an axis of positions and at least one more axis, but '{}' has the shape {}",
          inputs[0].name, inputs[0].shape.str()));
      return {};
    }
    const ReportError of_layer = [&](const std::string& message) {
      report_error(fmt::format("the inner layer {}: {}", options_.layer.layer.name, message));
    };
    const TensorSpec one = one_position(inputs[0]);
    std::vector<TensorSpec> outputs = layer().infer({&one, 1}, of_layer);
    if (outputs.empty() || !is_supported(outputs, one, of_layer)) return {};
    outputs[0].shape = sequence_of(inputs[0].shape[0], outputs[0].shape);
    return outputs;
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    const TensorSpec one = one_position(inputs[0]);
    return layer().parameters({&one, 1});
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    const auto no_errors = [](const std::string& message) { throw std::logic_error(message); };
    const TensorSpec input = one_position(request.inputs[0]);
    const std::vector<TensorSpec> outputs = layer().infer({&input, 1}, no_errors);
    const int64_t positions = request.inputs[0].shape[0];
    const Layout plain = Layout::plain;
    LayerRequest of_layer = request;
    of_layer.batch = request.batch * positions;
    of_layer.inputs = {&input, 1};
    of_layer.outputs = outputs;
    of_layer.input_layouts = {&plain, 1};
    of_layer.masked.clear();
    return std::make_unique<PreparedTimeDistributed>(request, layer().prepare(of_layer), input, outputs[0],
                                                     layer().parameters({&input, 1}).size(), positions);
  }

  ConfigNode open_units() const override { return layer().open_units(); }
  Configured<Layer> activation() const override { return layer().activation(); }
  bool can_fuse(const ActivationSpec& spec) const override { return layer().can_fuse(spec); }
  std::optional<int64_t> indices() const override { return layer().indices(); }
  /// Refuses inner layers that read masks. In Keras, such a layer would get the mask of one position, which
  /// has no axis of steps, and Keras would fail.
  MaskRule mask_rule() const override {
    return layer().mask_rule() == MaskRule::read ? MaskRule::refused : MaskRule::passed;
  }
  bool is_by_position() const override { return true; }

 private:
  const Layer& layer() const { return *options_.layer.layer; }

  /// Returns whether the inner layer can be applied to all positions at once. Reports an error otherwise.
  bool is_supported(const std::vector<TensorSpec>& outputs, const TensorSpec& input,
                    const ReportError& report_error) const {
    if (layer().creates_mask()) {
      report_error(
          "expected a layer that does not create a mask, because a mask created separately at each position "
          "cannot be passed on to other layers");
      return false;
    }
    if (outputs.size() != 1) {
      report_error(
          fmt::format("expected a layer with one output, but the layer has {} outputs", outputs.size()));
      return false;
    }
    const std::vector<ParameterSpec> specs = layer().parameters({&input, 1});
    if (std::none_of(specs.begin(), specs.end(),
                     [](const ParameterSpec& spec) { return spec.moving_average.has_value(); }))
      return true;
    report_error(
        "expected a layer that does not compute batch statistics, because Keras would compute them "
        "separately for each position; use this layer without time_distributed, so that the statistics are "
        "computed over all positions");
    return false;
  }
};

}  // namespace

void add_time_distributed(Registry<Layer>& table) {
  table.add<TimeDistributed>("time_distributed", TimeDistributedOptions::schema());
}

}  // namespace dtrain
