#include "nn/layers/one_dimensional.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "nn/layers/common.h"

namespace dtrain {

namespace {

TensorSpec as_image(const TensorSpec& sequence) {
  return {sequence.name, Shape{1, sequence.shape[0], sequence.shape[1]}, sequence.dtype};
}

Shape without_first_axis(const Shape& shape) {
  return Shape(std::vector<int64_t>(shape.begin() + 1, shape.end()));
}

class SequenceLayer : public Layer {
 public:
  explicit SequenceLayer(std::shared_ptr<const Layer> image) : image_(std::move(image)) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = float_input(inputs, report_error);
    if (!input) return {};
    if (input->shape.rank() != 2) {
      report_error(fmt::format("expected sequences of shape [length, channels], but '{}' has the shape {}",
                               input->name, input->shape.str()));
      return {};
    }
    const TensorSpec image = as_image(*input);
    std::vector<TensorSpec> outputs = image_->infer({&image, 1}, report_error);
    for (TensorSpec& output : outputs)
      if (output.shape.rank() == 3) output.shape = without_first_axis(output.shape);
    return outputs;
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    const TensorSpec image = as_image(inputs[0]);
    std::vector<ParameterSpec> specs = image_->parameters({&image, 1});
    for (ParameterSpec& spec : specs)
      if (spec.shape.rank() == 4) spec.shape = without_first_axis(spec.shape);
    return specs;
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    const TensorSpec input = as_image(request.inputs[0]);
    const auto no_errors = [](const std::string& message) { throw std::logic_error(message); };
    const std::vector<TensorSpec> outputs = image_->infer({&input, 1}, no_errors);
    LayerRequest of_image = request;
    of_image.inputs = {&input, 1};
    of_image.outputs = outputs;
    return image_->prepare(of_image);
  }

  Configured<Layer> activation() const override { return image_->activation(); }
  bool can_fuse(const ActivationSpec& spec) const override { return image_->can_fuse(spec); }

 private:
  std::shared_ptr<const Layer> image_;
};

bool is_among(std::string_view key, const std::vector<std::string_view>& keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool parse_side(const ConfigNode& node, const std::string& where, int64_t& out, Diagnostics& diagnostics) {
  constexpr int64_t kMost = 1 << 20;
  if (!Codec<int64_t>::parse(node, where, out, diagnostics)) return false;
  if (out >= 0 && out <= kMost) return true;
  return report_unexpected(node, where, fmt::format("a number from 0 to {}", kMost), diagnostics);
}

}  // namespace

std::shared_ptr<const Layer> layer_of_sequences(std::shared_ptr<const Layer> image) {
  return std::make_shared<const SequenceLayer>(std::move(image));
}

std::shared_ptr<const Layer> layer_of_sequences(const ImageOptions& image, const ConfigNode& options) {
  const auto number = [](const char* text) { return ConfigNode::scalar(text); };
  std::vector<ConfigNode::Entry> entries;
  if (options.is_mapping())
    for (const auto& [key, value] : options.entries()) {
      ConfigNode changed = value;
      if (is_among(key.text(), image.windows) && !value.is_null())
        changed = ConfigNode::sequence({number("1"), value});
      if (is_among(key.text(), image.sides))
        changed = ConfigNode::sequence({ConfigNode::sequence({number("0"), number("0")}), value});
      entries.emplace_back(key, changed);
    }
  Diagnostics diagnostics;
  Configured<Layer> layer = registry<Layer>().parse(ConfigNode::scalar(image.kind),
                                                    ConfigNode::mapping(std::move(entries)), diagnostics);
  if (!layer) throw std::logic_error(image.kind + " does not accept the options of its sequence layer");
  return layer_of_sequences(layer.value);
}

bool Codec<Sides>::parse(const ConfigNode& node, const std::string& where, Sides& out,
                         Diagnostics& diagnostics) {
  if (!node.is_sequence()) {
    if (!parse_side(node, where, out.before, diagnostics)) return false;
    out.after = out.before;
    return true;
  }
  if (node.items().size() != 2)
    return report_unexpected(node, where, "one number, or [before, after]", diagnostics);
  return parse_side(node.items()[0], where, out.before, diagnostics) &&
         parse_side(node.items()[1], where, out.after, diagnostics);
}

ConfigNode Codec<Sides>::write(const Sides& value) {
  return ConfigNode::sequence({Codec<int64_t>::write(value.before), Codec<int64_t>::write(value.after)});
}

Json Codec<Sides>::schema() {
  const Json number = Json(json_type("integer")).set("minimum", 0);
  const Json pair = json_type("array").set("items", number).set("minItems", 2).set("maxItems", 2);
  return Json::object().set("anyOf", Json::array().push(number).push(pair));
}

}  // namespace dtrain
