#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "nn/layers/recurrent/recurrent.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

enum class MergeMode { concat, sum, mul, ave, none };

/// A recurrent layer as an option: {lstm: {units: 3}}.
struct RecurrentKind {
  Configured<Layer> layer;
  /// Null if the layer is not recurrent.
  const RecurrentLayer* get() const { return dynamic_cast<const RecurrentLayer*>(layer.value.get()); }
};

}  // namespace

template <>
inline const EnumNames<MergeMode> names_of<MergeMode> = {{MergeMode::concat, "concat"},
                                                         {MergeMode::sum, "sum"},
                                                         {MergeMode::mul, "mul"},
                                                         {MergeMode::ave, "ave"},
                                                         {MergeMode::none, "none"}};

template <>
struct Codec<RecurrentKind> {
  static bool parse(const ConfigNode& node, const std::string& where, RecurrentKind& out,
                    Diagnostics& diagnostics) {
    out.layer = registry<Layer>().parse(node, diagnostics);
    if (!out.layer) return false;
    return out.get() || report_unexpected(node, where, "lstm, gru or simple_rnn", diagnostics);
  }
  static ConfigNode write(const RecurrentKind& value) { return value.layer.resolved; }
  /// A reference, because the schema of layers contains this one.
  static Json schema() { return Json::object().set("$ref", "#/$defs/layer"); }
};

namespace {

/// Returns the options in {kind: options}.
ConfigNode written_options(const Configured<Layer>& layer) {
  return layer.resolved.entries().front().second;
}

struct BidirectionalOptions {
  RecurrentKind layer;
  MergeMode merge_mode = MergeMode::concat;
  std::optional<RecurrentKind> backward_layer;

  static const Schema<BidirectionalOptions>& schema() {
    using O = BidirectionalOptions;
    static const auto schema =
        Schema<O>("Processes sequences in both directions, by a recurrent layer and its mirrored copy.")
            .example("{layer: {lstm: {units: 16}}}")
            .required("layer", &O::layer, "the recurrent layer, and its options")
            .optional("merge_mode", &O::merge_mode,
                      "how the outputs of both directions are merged; 'none': two outputs. States after all "
                      "steps are merged in the order of the input")
            .optional("backward_layer", &O::backward_layer,
                      "the layer of the other direction; null: a copy of the layer with the opposite "
                      "go_backwards")
            .rule([](const O& o, const ConfigNode& node, Diagnostics& diagnostics) {
              if (!o.backward_layer) return;
              const RecurrentOptions &a = o.layer.get()->options(), &b = o.backward_layer->get()->options();
              const ConfigNode& place = *node.find("backward_layer");
              if (a.go_backwards == b.go_backwards)
                diagnostics.error(place, "bidirectional's layers: expected opposite values of go_backwards");
              if (a.use_bias != b.use_bias)
                diagnostics.error(place, "bidirectional's layers: expected the same use_bias");
              if (a.return_sequences != b.return_sequences || a.return_state != b.return_state)
                diagnostics.error(place,
                                  "bidirectional's layers: expected the same return_sequences and "
                                  "return_state");
              if (o.merge_mode != MergeMode::concat && o.merge_mode != MergeMode::none && a.units != b.units)
                diagnostics.error(place, fmt::format("bidirectional's layers: this merge_mode needs the same "
                                                     "units, found {} and {}",
                                                     a.units, b.units));
            });
    return schema;
  }

  /// Returns the layer of the other direction.
  Configured<Layer> backward() const {
    if (backward_layer) return backward_layer->layer;
    const ConfigNode options =
        written_options(layer.layer)
            .with("go_backwards", ConfigNode::scalar(layer.get()->options().go_backwards ? "false" : "true"));
    Diagnostics none;
    return registry<Layer>().parse(ConfigNode::scalar(layer.layer.name), options, none);
  }
};

/// Assigns aligned offsets to arrays in one block of memory.
class ArrayOffsets {
 public:
  size_t add(size_t bytes) {
    constexpr size_t kUnit = 256;
    const size_t offset = size_;
    size_ += (bytes + kUnit - 1) / kUnit * kUnit;
    return offset;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

void* at(void* memory, size_t offset) {
  return static_cast<std::byte*>(memory) + offset;
}

/// One of the two directions.
struct OneDirection {
  std::unique_ptr<PreparedLayer> layer;
  std::vector<TensorSpec> inputs, outputs;
  size_t parameters = 0;  // number of parameters
  int64_t units = 0;      // columns of the first output
  bool flips = false;     // its output is reversed before it is merged
  size_t saved = 0;       // offset of the layer's saved memory
  size_t output = 0,
         flipped = 0;  // offsets of its first output, in scratch memory, or in saved memory if kept
  size_t gradient = 0, reversed = 0;  // offsets of the output's gradient, in scratch memory
  LayerArguments args = {};           // of its calls; reused, so that calls do not allocate
};

class PreparedBidirectional : public PreparedLayer {
 public:
  PreparedBidirectional(const LayerRequest& request, MergeMode mode, std::array<OneDirection, 2> directions,
                        bool sequences)
      : ops_(request.ops),
        mode_(mode),
        steps_(sequences ? request.inputs[0].shape[0] : 1),
        batch_(request.batch),
        directions_(std::move(directions)),
        zeroes_masked_(request.is_masked(0) && sequences) {
    keeps_outputs_ = mode == MergeMode::mul && request.training;
    ArrayOffsets saved, scratch;
    size_t inner = 0;
    for (OneDirection& one : directions_) {
      const size_t bytes = bytes_of_output(one);
      one.saved = saved.add(one.layer->requirements().saved_bytes);
      one.output = scratch.add(bytes);
      // The factors of a product are kept for backward.
      one.flipped = (keeps_outputs_ ? saved : scratch).add(bytes);
      if (request.training) {
        one.gradient = scratch.add(bytes);
        one.reversed = scratch.add(bytes);
      }
      inner = std::max(inner, one.layer->requirements().scratch_bytes);
      requirements_.backward_reads_inputs |= one.layer->requirements().backward_reads_inputs;
    }
    if (request.training && request.input_needs_gradient[0])
      second_gradient_ = scratch.add(static_cast<size_t>(batch_elements(request, request.inputs[0].shape)) *
                                     element_bytes());
    input_elements_ = batch_elements(request, request.inputs[0].shape);
    inner_ = scratch.add(inner);
    requirements_.saved_bytes = request.training ? saved.size() : 0;
    requirements_.scratch_bytes = scratch.size();
  }

  void forward(const LayerArguments& args) override {
    for (size_t d = 0; d < 2; ++d) {
      OneDirection& one = directions_[d];
      set_common(one, d, args);
      one.args.outputs[0] = output_of(d, args, !one.flips);
      one.layer->forward(one.args);
      void* const merged = merged_in(d, args);
      if (one.flips) flip(one, one.args.outputs[0], merged);
      if (zeroes_masked_) ops_.apply_mask(merged, args.mask(), merged, rows(), one.units);
    }
    merge(args);
  }

  void backward(const LayerArguments& args) override {
    for (size_t d = 0; d < 2; ++d) {
      OneDirection& one = directions_[d];
      set_common(one, d, args);
      one.args.diff_outputs[0] = output_gradient(d, args);
      for (size_t i = 0; i < one.args.diff_inputs.size(); ++i)
        one.args.diff_inputs[i] = args.diff_inputs[input_at(d, i)];
      if (d == 1 && args.diff_inputs[0]) one.args.diff_inputs[0] = at(args.scratch, second_gradient_);
      one.layer->backward(one.args);
    }
    if (!args.diff_inputs[0]) return;
    const std::array<const void*, 2> both = {args.diff_inputs[0], at(args.scratch, second_gradient_)};
    ops_.sum(args.diff_inputs[0], both, {}, input_elements_);
  }

 private:
  size_t element_bytes() const { return bytes_of(ops_.compute_type()); }
  int64_t rows() const { return batch_ * steps_; }
  size_t bytes_of_output(const OneDirection& one) const {
    return static_cast<size_t>(rows() * one.units) * element_bytes();
  }

  /// Returns the layer's index of a direction's input: the sequences are read by both; the initial states of
  /// the first direction come before those of the second.
  size_t input_at(size_t d, size_t i) const {
    return i == 0 || d == 0 ? i : i + directions_[0].inputs.size() - 1;
  }
  /// Returns the layer's index of a direction's state among its outputs (`i` from 1).
  size_t state_at(size_t d, size_t i) const {
    const size_t merged = mode_ == MergeMode::none ? 2 : 1;
    return merged + (i - 1) + (d == 0 ? 0 : directions_[0].outputs.size() - 1);
  }

  void set_common(OneDirection& one, size_t d, const LayerArguments& args) const {
    LayerArguments& to = one.args;
    for (size_t i = 0; i < to.inputs.size(); ++i)
      to.inputs[i] = args.inputs.empty() ? nullptr : args.inputs[input_at(d, i)];
    for (size_t i = 1; i < to.outputs.size(); ++i) {
      to.outputs[i] = args.outputs.empty() ? nullptr : args.outputs[state_at(d, i)];
      to.diff_outputs[i] = args.diff_outputs.empty() ? nullptr : args.diff_outputs[state_at(d, i)];
    }
    to.masks[0] = args.mask();
    const size_t first = d == 0 ? 0 : directions_[0].parameters;
    for (size_t i = 0; i < one.parameters; ++i) {
      to.parameters[i] = args.parameters[first + i];
      to.weights[i] = args.weights[first + i];
      to.diff_parameters[i] = args.diff_parameters.empty() ? nullptr : args.diff_parameters[first + i];
    }
    to.saved = args.saved ? at(args.saved, one.saved) : nullptr;
    to.scratch = at(args.scratch, inner_);
    to.seed = args.seed;
    to.step = args.step;
    to.first_sample = args.first_sample;
    to.share = args.share;
  }

  /// Returns where the merge reads a direction's output, in the order of the input.
  void* merged_in(size_t d, const LayerArguments& args) const {
    if (mode_ == MergeMode::none) return args.outputs[d];
    return at(keeps_outputs_ ? args.saved : args.scratch, directions_[d].flipped);
  }
  /// Returns where a direction writes its output.
  void* output_of(size_t d, const LayerArguments& args, bool is_in_order) const {
    return is_in_order ? merged_in(d, args) : at(args.scratch, directions_[d].output);
  }

  /// Reverses the order of the steps.
  void flip(const OneDirection& one, const void* src, void* dst) const {
    const int64_t row = one.units, sequence = steps_ * row;
    const auto last = static_cast<size_t>((steps_ - 1) * row) * element_bytes();
    ops_.strided_sum({.extents = {1, 1, 1, batch_, steps_, row}, .strides = {0, 0, 0, sequence, -row, 1}},
                     static_cast<const std::byte*>(src) + last, dst);
  }

  void merge(const LayerArguments& args) const {
    if (mode_ == MergeMode::none) return;
    const std::array<const void*, 2> both = {merged_in(0, args), merged_in(1, args)};
    const int64_t n = rows() * directions_[0].units;
    switch (mode_) {
      case MergeMode::concat:
        return concatenate(args, both);
      case MergeMode::sum:
        return ops_.sum(args.output(), both, {}, n);
      case MergeMode::mul:
        return ops_.multiply(args.output(), both, n);
      case MergeMode::ave:
        return ops_.merge(MergeKind::average, args.output(), both, n);
      case MergeMode::none:
        return;
    }
  }

  int64_t columns() const { return directions_[0].units + directions_[1].units; }

  void concatenate(const LayerArguments& args, const std::array<const void*, 2>& both) const {
    size_t offset = 0;
    for (size_t d = 0; d < 2; ++d) {
      const int64_t units = directions_[d].units;
      ops_.copy_block(at(args.output(), offset), columns(), both[d], units, rows(), units);
      offset += static_cast<size_t>(units) * element_bytes();
    }
  }

  /// Returns the gradient of a direction's output, in the order of processing; null if it is zero.
  const void* output_gradient(size_t d, const LayerArguments& args) const {
    const OneDirection& one = directions_[d];
    const void* gradient = args.diff_outputs[mode_ == MergeMode::none ? d : 0];
    if (!gradient) return nullptr;
    void* const own = at(args.scratch, one.gradient);
    const int64_t n = rows() * one.units;
    if (mode_ == MergeMode::concat) {
      const auto offset = d == 0 ? 0 : static_cast<size_t>(directions_[0].units) * element_bytes();
      ops_.copy_block(own, one.units, static_cast<const std::byte*>(gradient) + offset, columns(), rows(),
                      one.units);
      gradient = own;
    } else if (mode_ == MergeMode::mul) {
      const std::array<const void*, 2> factors = {gradient, at(args.saved, directions_[1 - d].flipped)};
      ops_.multiply(own, factors, n);
      gradient = own;
    } else if (mode_ == MergeMode::ave) {
      const std::array<const void*, 2> values = {nullptr, nullptr};
      ops_.merge_backward(MergeKind::average, values, d, gradient, own, n);
      gradient = own;
    }
    if (zeroes_masked_) {
      ops_.apply_mask(gradient, args.mask(), own, rows(), one.units);
      gradient = own;
    }
    if (!one.flips) return gradient;
    flip(one, gradient, at(args.scratch, one.reversed));
    return at(args.scratch, one.reversed);
  }

  Ops& ops_;
  MergeMode mode_;
  int64_t steps_, batch_;  // steps of the output: 1 if it is the last state
  int64_t input_elements_ = 0;
  std::array<OneDirection, 2> directions_;
  bool zeroes_masked_;  // as in Keras, the outputs after masked steps are 0
  bool keeps_outputs_ = false;
  size_t second_gradient_ = 0, inner_ = 0;  // offsets in scratch memory
};

class Bidirectional : public LayerWith<BidirectionalOptions> {
 public:
  explicit Bidirectional(const BidirectionalOptions& options)
      : LayerWith(options), backward_(options.backward()) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const size_t states = layer(0).states() + layer(1).states();
    if (inputs.size() != 1 && inputs.size() != 1 + states) {
      report_error(
          fmt::format("expected one input, or {} with the initial states of both directions, found {}",
                      1 + states, inputs.size()));
      return {};
    }
    std::array<std::vector<TensorSpec>, 2> outputs;
    for (size_t d = 0; d < 2; ++d) {
      outputs[d] = layer(d).infer(inputs_of(d, inputs), report_error);
      if (outputs[d].empty()) return {};
    }
    std::vector<TensorSpec> merged = {outputs[0][0]};
    if (options_.merge_mode == MergeMode::none) merged.push_back(outputs[1][0]);
    if (options_.merge_mode == MergeMode::concat)
      merged[0].shape[merged[0].shape.rank() - 1] += outputs[1][0].shape.back();
    for (const auto& own : outputs) merged.insert(merged.end(), own.begin() + 1, own.end());
    return merged;
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    std::vector<ParameterSpec> specs;
    for (size_t d = 0; d < 2; ++d)
      for (ParameterSpec& spec : layer(d).parameters(inputs_of(d, inputs))) {
        spec.name = (d == 0 ? "forward_" : "backward_") + spec.name;
        specs.push_back(std::move(spec));
      }
    return specs;
  }

  /// Both directions read the mask. The second output is reversed, so the outputs have the input's order if
  /// the first direction does.
  MaskRule mask_rule() const override { return layer(0).mask_rule(); }
  bool masks_output(size_t output) const override {
    return layer(0).options().return_sequences && output < (options_.merge_mode == MergeMode::none ? 2 : 1);
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    const auto no_errors = [](const std::string& message) { throw std::logic_error(message); };
    std::array<OneDirection, 2> directions;
    for (size_t d = 0; d < 2; ++d) {
      OneDirection& one = directions[d];
      one.inputs = inputs_of(d, request.inputs);
      one.outputs = layer(d).infer(one.inputs, no_errors);
      one.parameters = layer(d).parameters(one.inputs).size();
      one.units = layer(d).options().units;
      // Keras reverses the output of the second layer, which is that of the opposite direction.
      one.flips = d == 1 && layer(d).options().return_sequences;
      LayerRequest own = request;
      own.inputs = one.inputs;
      own.outputs = one.outputs;
      std::vector<bool> needs = request.input_needs_gradient;
      if (d == 1 && one.inputs.size() > 1)
        needs.erase(needs.begin() + 1,
                    needs.begin() + static_cast<std::ptrdiff_t>(directions[0].inputs.size()));
      needs.resize(one.inputs.size());
      own.input_needs_gradient = needs;
      own.masked = {request.is_masked(0)};
      own.input_layouts =
          request.input_layouts.first(std::min(one.inputs.size(), request.input_layouts.size()));
      if (d == 1) own.stream += 0x9e3779b9u;  // another one, so that the directions drop different features
      one.layer = layer(d).prepare(own);
      one.args.inputs.resize(one.inputs.size());
      one.args.diff_inputs.resize(one.inputs.size());
      one.args.masks.resize(1);
      one.args.outputs.resize(one.outputs.size());
      one.args.diff_outputs.resize(one.outputs.size());
      one.args.parameters.resize(one.parameters);
      one.args.weights.resize(one.parameters);
      one.args.diff_parameters.resize(one.parameters);
    }
    return std::make_unique<PreparedBidirectional>(request, options_.merge_mode, std::move(directions),
                                                   layer(0).options().return_sequences);
  }

 private:
  const RecurrentLayer& layer(size_t d) const {
    return d == 0 ? *options_.layer.get() : dynamic_cast<const RecurrentLayer&>(*backward_);
  }

  /// Returns the inputs of a direction: the sequences, then its initial states if there are any.
  std::vector<TensorSpec> inputs_of(size_t d, std::span<const TensorSpec> inputs) const {
    std::vector<TensorSpec> own = {inputs[0]};
    if (inputs.size() == 1) return own;
    const size_t first = d == 0 ? 1 : 1 + layer(0).states();
    const auto states = inputs.subspan(first, layer(d).states());
    own.insert(own.end(), states.begin(), states.end());
    return own;
  }

  Configured<Layer> backward_;
};

}  // namespace

void add_bidirectional(Registry<Layer>& table) {
  table.add<Bidirectional>("bidirectional", BidirectionalOptions::schema());
}

}  // namespace dtrain
