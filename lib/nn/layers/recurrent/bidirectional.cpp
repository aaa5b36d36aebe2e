#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "nn/layers/recurrent/recurrent.h"
#include "nn/layers/recurrent/two_directions.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

/// An option whose value is a recurrent layer, such as {lstm: {units: 3}}.
struct RecurrentKind {
  Configured<Layer> layer;
  /// Returns the layer, or null if the layer is not recurrent.
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
  /// Returns a reference to the JSON schema of layers. The full schema cannot be included here, because the
  /// schema of layers contains this schema.
  static Json schema() { return Json::object().set("$ref", "#/$defs/layer"); }
};

namespace {

/// Returns the options of a layer, which is written as {kind: options}.
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
        Schema<O>("Processes sequences in both directions, with one recurrent layer for each direction.")
            .example("{layer: {lstm: {units: 16}}}")
            .required("layer", &O::layer, "a recurrent layer with its options")
            .optional("merge_mode", &O::merge_mode,
                      "Method that merges the outputs of the two directions: `concat` concatenates them, "
                      "`sum` adds them, `mul` multiplies them, and `ave` computes their mean. With `none`, "
                      "the layer has two separate outputs. With return_sequences, the steps of the second "
                      "direction's output are first put in the order of the first direction.")
            .optional("backward_layer", &O::backward_layer,
                      "Recurrent layer for the other direction. Default: a copy of `layer` with the opposite "
                      "value of go_backwards.")
            .rule([](const O& o, const ConfigNode& node, Diagnostics& diagnostics) {
              if (!o.backward_layer) return;
              const RecurrentOptions &a = o.layer.get()->options(), &b = o.backward_layer->get()->options();
              const ConfigNode& place = *node.find("backward_layer");
              if (a.go_backwards == b.go_backwards)
                diagnostics.error(
                    place,
                    "bidirectional: layer and backward_layer must have opposite values of go_backwards");
              if (a.use_bias != b.use_bias)
                diagnostics.error(place,
                                  "bidirectional: layer and backward_layer must have the same use_bias");
              if (a.return_sequences != b.return_sequences || a.return_state != b.return_state)
                diagnostics.error(place,
                                  "bidirectional: layer and backward_layer must have the same "
                                  "return_sequences and the same return_state");
              if (o.merge_mode != MergeMode::concat && o.merge_mode != MergeMode::none && a.units != b.units)
                diagnostics.error(place,
                                  fmt::format("bidirectional: with this merge_mode, layer and backward_layer "
                                              "must have the same units, but they have {} and {}",
                                              a.units, b.units));
            });
    return schema;
  }

  /// Returns the layer for the second direction.
  Configured<Layer> backward() const {
    if (backward_layer) return backward_layer->layer;
    const ConfigNode options =
        written_options(layer.layer)
            .with("go_backwards", ConfigNode::scalar(layer.get()->options().go_backwards ? "false" : "true"));
    Diagnostics none;
    return registry<Layer>().parse(ConfigNode::scalar(layer.layer.name), options, none);
  }
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
          fmt::format("expected one input (the sequences), or {} inputs (the sequences, and the initial "
                      "states of both directions), but found {} inputs",
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

  /// Both directions read the mask. The steps of the second direction's output are reversed before the merge.
  /// Therefore the order of the output's steps is the order of the input's steps, unless the first direction
  /// is reversed.
  MaskRule mask_rule() const override { return layer(0).mask_rule(); }
  bool masks_output(size_t output) const override {
    return layer(0).options().return_sequences && output < (options_.merge_mode == MergeMode::none ? 2 : 1);
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    std::array<PreparedDirection, 2> directions = {direction(0, request), direction(1, request)};
    return prepare_two_directions(request, options_.merge_mode, std::move(directions),
                                  layer(0).options().return_sequences);
  }

 private:
  const RecurrentLayer& layer(size_t d) const {
    return d == 0 ? *options_.layer.get() : dynamic_cast<const RecurrentLayer&>(*backward_);
  }

  /// `all` has one element per input of the bidirectional layer. Returns the elements of one direction: first
  /// the element of the sequences and then, if there are initial states, the elements of this direction's
  /// initial states.
  template <class List>
  std::vector<typename List::value_type> inputs_of(size_t d, const List& all) const {
    std::vector<typename List::value_type> own = {all[0]};
    if (all.size() == 1) return own;
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(d == 0 ? 1 : 1 + layer(0).states());
    own.insert(own.end(), first, first + static_cast<std::ptrdiff_t>(layer(d).states()));
    return own;
  }

  /// Prepares the recurrent layer of one direction.
  PreparedDirection direction(size_t d, const LayerRequest& request) const {
    const auto no_errors = [](const std::string& message) { throw std::logic_error(message); };
    const std::vector<TensorSpec> inputs = inputs_of(d, request.inputs);
    const std::vector<TensorSpec> outputs = layer(d).infer(inputs, no_errors);
    LayerRequest own = request;
    own.inputs = inputs;
    own.outputs = outputs;
    own.input_needs_gradient = inputs_of(d, request.input_needs_gradient);
    own.masked = {request.is_masked(0)};
    own.input_layouts = request.input_layouts.first(std::min(inputs.size(), request.input_layouts.size()));
    // The second direction gets a different random stream, so that dropout in the two directions drops
    // different features.
    if (d == 1) own.stream += 0x9e3779b9u;
    // The second layer processes the steps in the opposite order. As in Keras, the steps of its output are
    // reversed if return_sequences is true.
    return {.layer = layer(d).prepare(own),
            .inputs = inputs.size(),
            .outputs = outputs.size(),
            .parameters = layer(d).parameters(inputs).size(),
            .units = layer(d).options().units,
            .flips = d == 1 && layer(d).options().return_sequences};
  }

  Configured<Layer> backward_;
};

}  // namespace

void add_bidirectional(Registry<Layer>& table) {
  table.add<Bidirectional>("bidirectional", BidirectionalOptions::schema());
}

}  // namespace dtrain
