#include "layer_harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <doctest/doctest.h>

#include "config/load.h"

namespace dtrain {
namespace {

Kind<Layer> parse_layer(const std::string& yaml, Diagnostics& diagnostics) {
  return kinds<Layer>().parse(parse_yaml(yaml, "layer.yaml", diagnostics), diagnostics);
}

std::string text_of(const Diagnostics& diagnostics) {
  try {
    diagnostics.throw_if_errors();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

Kind<Layer> layer_of(const std::string& yaml) {
  Diagnostics diagnostics;
  Kind<Layer> layer = parse_layer(yaml, diagnostics);
  REQUIRE_MESSAGE(layer, text_of(diagnostics));
  return layer;
}

std::string complaints_of(const std::string& yaml, const std::vector<TensorSpec>& inputs) {
  Diagnostics diagnostics;
  const Kind<Layer> layer = parse_layer(yaml, diagnostics);
  std::string said = text_of(diagnostics);
  if (!layer) return said;
  const auto output = layer->infer(inputs, [&](const std::string& message) { said += message; });
  CHECK(output.has_value() == said.empty());
  return said;
}

TensorSpec output_of(const std::string& yaml, const std::vector<TensorSpec>& inputs) {
  const auto output = layer_of(yaml)->infer(inputs, [](const std::string& message) { FAIL_CHECK(message); });
  REQUIRE(output);
  return *output;
}

Values spread_values(int64_t n, float low, float high, uint32_t seed) {
  Values values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = low + (high - low) * (static_cast<float>(i) + 0.5f) / static_cast<float>(n);
  std::shuffle(values.begin(), values.end(), std::mt19937(seed));
  return values;
}

LayerRun::LayerRun(const LayerCase& c)
    : case_(c),
      context_(make_cpu_context({}, {available_cores().front()}, false)),
      ops_(make_cpu_ops(*context_)),
      layer_(layer_of(c.yaml)) {
  context_->attach();
  output = output_of(c.yaml, c.inputs);
  parameter_specs = layer_->parameters(c.inputs);
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const int64_t n = c.batch * c.inputs[i].shape.elements();
    inputs.push_back(spread_values(n, c.low, c.high, static_cast<uint32_t>(i) + 1));
    if (c.inputs[i].dtype != DType::float32)
      for (float& value : inputs.back()) value = std::floor(value);
  }
  for (size_t i = 0; i < parameter_specs.size(); ++i) {
    // A gamma near 0 would put all that it scales near a relu's kink.
    const std::string& name = parameter_specs[i].name;
    const float low = name == "gamma" || name == "moving_variance" ? 0.5f : -1.0f;
    parameters.push_back(
        spread_values(parameter_specs[i].shape.elements(), low, 1, static_cast<uint32_t>(i) + 100));
  }
  const std::vector<Layout> layouts(c.inputs.size(), c.layout);
  kernel_ =
      layer_->prepare({.ops = *ops_,
                       .batch = c.batch,
                       .training = c.training,
                       .inputs = case_.inputs,
                       .output = output,
                       .input_layouts = layouts,
                       .activation = c.fused,
                       .input_needs_gradient = std::vector<bool>(c.inputs.size(), c.inputs_need_gradient),
                       .stream = 7,
                       .trainable = c.trainable});
  REQUIRE((c.fused == ActivationSpec{} || layer_->can_fuse(c.fused)));
}

Layout LayerRun::wanted(size_t input) const {
  const auto& layouts = traits().input_layouts;
  return layouts.empty() ? Layout::plain : layouts[input];
}

Buffer LayerRun::nan_buffer(size_t bytes) {
  Buffer buffer = context_->allocate(std::max<size_t>(bytes, 64));
  std::memset(buffer.data(), 0xff, buffer.bytes());
  return buffer;
}

Buffer LayerRun::to_device(const Values& values, const TensorSpec& spec, Layout layout) {
  Buffer plain = nan_buffer(values.size() * 4);
  if (spec.dtype == DType::int32)
    std::copy(values.begin(), values.end(), static_cast<int32_t*>(plain.data()));
  else
    std::copy(values.begin(), values.end(), plain.f32());
  if (layout == Layout::plain) return plain;
  Buffer laid = nan_buffer(values.size() * 4);
  ops_->reorder(spec.shape.prepended(case_.batch), Layout::plain, layout)->run(plain.f32(), laid.f32());
  return laid;
}

Values LayerRun::to_host(const void* data, const TensorSpec& spec, Layout layout) {
  const auto* floats = static_cast<const float*>(data);
  Values values(static_cast<size_t>(case_.batch * spec.shape.elements()));
  if (layout == Layout::plain)
    std::copy_n(floats, values.size(), values.begin());
  else
    ops_->reorder(spec.shape.prepended(case_.batch), layout, Layout::plain)->run(floats, values.data());
  return values;
}

Values LayerRun::forward(bool in_place) {
  held_.clear();
  pass_ = Pass();
  pass_.seed = 3, pass_.step = 5, pass_.share = share;
  for (size_t i = 0; i < inputs.size(); ++i) {
    held_.push_back(to_device(inputs[i], case_.inputs[i], wanted(i)));
    pass_.inputs.push_back(held_.back().data());
  }
  for (const Values& values : parameters) {
    held_.push_back(to_device(values, {}, Layout::plain));
    pass_.parameters.push_back(held_.back().f32());
  }
  if (traits().is_view) {
    pass_.output = const_cast<void*>(pass_.inputs[0]);
    return to_host(pass_.output, output, Layout::plain);
  }
  saved_ = nan_buffer(traits().saved_bytes);
  scratch_ = nan_buffer(traits().scratch_bytes);
  pass_.saved = saved_.data();
  pass_.scratch = scratch_.data();
  if (in_place) {
    pass_.output = const_cast<void*>(pass_.inputs[0]);
  } else {
    held_.push_back(nan_buffer(static_cast<size_t>(output_elements()) * 4));
    pass_.output = held_.back().data();
  }
  kernel_->forward(pass_);
  return to_host(pass_.output, output, traits().output_layout);
}

LayerRun::Gradients LayerRun::backward(const Values& diff_output, bool in_place) {
  Buffer diff = to_device(diff_output, output, traits().output_layout);
  if (case_.fused.kind != Activation::linear && !traits().undoes_activation)
    ops_->activation_backward(case_.fused, pass_.out(), diff.f32(), diff.f32(), output_elements());
  Gradients gradients;
  if (traits().is_view || traits().passes_gradient) {
    for (const TensorSpec& input : case_.inputs)
      gradients.inputs.push_back(to_host(diff.data(), input, traits().output_layout));
    return gradients;
  }
  pass_.diff_output = diff.f32();
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool want = case_.inputs_need_gradient && case_.inputs[i].dtype == DType::float32;
    buffers.push_back(nan_buffer(inputs[i].size() * 4));
    pass_.diff_inputs.push_back(!want ? nullptr : in_place && i == 0 ? diff.f32() : buffers.back().f32());
  }
  for (const Values& values : parameters) {
    buffers.push_back(nan_buffer(values.size() * 4));
    pass_.diff_parameters.push_back(case_.trainable ? buffers.back().f32() : nullptr);
  }
  scratch_ = nan_buffer(traits().scratch_bytes);
  pass_.scratch = scratch_.data();
  // What the traits do not ask for is not there any more.
  if (!traits().backward_reads_inputs) std::fill(pass_.inputs.begin(), pass_.inputs.end(), nullptr);
  if (!traits().backward_reads_output) pass_.output = nullptr;
  kernel_->backward(pass_);
  for (size_t i = 0; i < inputs.size(); ++i)
    gradients.inputs.push_back(
        pass_.diff_inputs[i] ? to_host(pass_.diff_inputs[i], case_.inputs[i], wanted(i)) : Values());
  for (size_t i = 0; i < parameters.size(); ++i)
    gradients.parameters.push_back(
        pass_.diff_parameters[i]
            ? Values(pass_.diff_parameters[i], pass_.diff_parameters[i] + parameters[i].size())
            : Values());
  return gradients;
}

}  // namespace dtrain
