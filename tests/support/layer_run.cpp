#include "support/layer_run.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include "config/load/load.h"
#include "support/errors.h"

namespace dtrain::test {
namespace {

Configured<Layer> parse_layer(const std::string& yaml, Diagnostics& diagnostics) {
  return registry<Layer>().parse(parse_yaml(yaml, "layer.yaml", diagnostics), diagnostics);
}

}  // namespace

Configured<Layer> layer_of(const std::string& yaml) {
  Diagnostics diagnostics;
  Configured<Layer> layer = parse_layer(yaml, diagnostics);
  REQUIRE_MESSAGE(layer, messages(diagnostics));
  return layer;
}

std::string errors_of(const std::string& yaml, const std::vector<TensorSpec>& inputs) {
  Diagnostics diagnostics;
  const Configured<Layer> layer = parse_layer(yaml, diagnostics);
  if (!layer) return messages(diagnostics);
  std::string errors;
  const auto outputs = layer->infer(inputs, [&](const std::string& message) { errors += message; });
  CHECK(outputs.empty() == !errors.empty());
  return messages(diagnostics) + errors;
}

TensorSpec output_of(const std::string& yaml, const std::vector<TensorSpec>& inputs) {
  const auto outputs = layer_of(yaml)->infer(inputs, [](const std::string& message) { FAIL_CHECK(message); });
  REQUIRE(!outputs.empty());
  return outputs[0];
}

void check_values(const Values& values, const Doubles& expected, double tolerance) {
  REQUIRE(values.size() == expected.size());
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i)
    worst = std::max(worst, std::abs(values[i] - expected[i]) / (1 + std::abs(expected[i])));
  CHECK(worst <= tolerance);
}

Values spread_values(int64_t n, float low, float high, uint32_t seed) {
  Values values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = low + (high - low) * (static_cast<float>(i) + 0.5f) / static_cast<float>(n);
  std::shuffle(values.begin(), values.end(), std::mt19937(seed));
  return values;
}

namespace {

/// Returns for each input whether it has a mask; empty if no input has a mask.
std::vector<bool> masked(const LayerCase& c) {
  std::vector<bool> inputs;
  for (const TensorSpec& input : c.inputs)
    if (!c.mask.empty()) inputs.push_back(input.shape.rank() == 2);
  return inputs;
}

}  // namespace

LayerRun::LayerRun(const LayerCase& c, Device* device)
    : case_(c),
      own_device_(device ? nullptr : cpu_device()),
      device_(device ? device : own_device_.get()),
      layer_(layer_of(c.yaml)) {
  output = output_of(c.yaml, c.inputs);
  outputs = layer_->infer(c.inputs, [](const std::string& message) { FAIL(message); });
  parameter_specs = layer_->parameters(c.inputs);
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const int64_t n = c.batch * c.inputs[i].shape.elements();
    inputs.push_back(device_->exact(spread_values(n, c.low, c.high, static_cast<uint32_t>(i) + 1)));
    if (c.inputs[i].dtype != DType::float32)
      for (float& value : inputs.back()) value = std::floor(value);
  }
  for (size_t i = 0; i < parameter_specs.size(); ++i) {
    // If gamma were near 0, all scaled values would be near the kink of relu.
    const std::string& name = parameter_specs[i].name;
    const float low = name == "gamma" || name == "moving_variance" ? 0.5f : -1.0f;
    parameters.push_back(device_->exact(
        spread_values(parameter_specs[i].shape.elements(), low, 1, static_cast<uint32_t>(i) + 100)));
  }
  const std::vector<Layout> layouts(c.inputs.size(), c.layout);
  kernel_ =
      layer_->prepare({.ops = ops(),
                       .batch = c.batch,
                       .training = c.training,
                       .inputs = case_.inputs,
                       .outputs = outputs,
                       .input_layouts = layouts,
                       .activation = c.fused,
                       .input_needs_gradient = std::vector<bool>(c.inputs.size(), c.inputs_need_gradient),
                       .masked = masked(c),
                       .stream = 7,
                       .trainable = c.trainable});
  REQUIRE((c.fused == ActivationSpec{} || layer_->can_fuse(c.fused)));
}

Layout LayerRun::wanted(size_t input) const {
  return requirements().input_layout(input);
}

void* LayerRun::hold(DeviceBytes bytes) {
  held_.push_back(std::move(bytes));
  return held_.back().data();
}

DeviceBytes LayerRun::to_device(const Values& values, const TensorSpec& spec, Layout layout) const {
  if (spec.dtype == DType::int32)
    return device_->array(std::vector<int32_t>(values.begin(), values.end())).bytes();
  TypedArray plain = device_->typed(values);
  if (layout == Layout::plain) return std::move(plain).bytes();
  TypedArray laid = device_->typed(values.size());
  ops()
      .reorder(image_batch(spec.shape.prepended(case_.batch)), Layout::plain, layout)
      ->run(plain.data(), laid.data());
  return std::move(laid).bytes();
}

Values LayerRun::to_host(const void* data, const TensorSpec& spec, Layout layout) const {
  const Shape shape = spec.shape.prepended(case_.batch);
  if (spec.dtype == DType::uint8) {
    std::vector<uint8_t> mask(static_cast<size_t>(shape.elements()));
    device_->context().copy_to_host(mask.data(), data, mask.size());
    return Values(mask.begin(), mask.end());
  }
  TypedArray plain;
  if (layout != Layout::plain) {
    plain = device_->typed(static_cast<size_t>(shape.elements()));
    ops().reorder(image_batch(shape), layout, Layout::plain)->run(data, plain.data());
    data = plain.data();
  }
  std::vector<std::byte> bytes(static_cast<size_t>(shape.elements()) * bytes_of(device_->math.type));
  device_->context().copy_to_host(bytes.data(), data, bytes.size());
  return test::values_of_bytes(bytes, device_->math.type);
}

/// Sets the parameters' pointers as a plan does: if the compute type is float32, the parameters have no
/// separate copy.
void LayerRun::use_parameters() {
  for (const Values& values : parameters) {
    const auto* data = static_cast<float*>(hold(device_->array(values).bytes()));
    const bool copied = device_->math.type != DType::float32;
    args_.parameters.push_back(data);
    args_.weights.push_back(copied ? hold(device_->typed(values).bytes()) : data);
  }
}

Values LayerRun::forward(bool in_place) {
  held_.clear();
  args_ = LayerArguments();
  step_ = device_->array(std::vector<uint64_t>{step});
  args_.seed = 3, args_.step = step_.data(), args_.share = share, args_.first_sample = first_sample;
  for (size_t i = 0; i < inputs.size(); ++i)
    args_.inputs.push_back(hold(to_device(inputs[i], case_.inputs[i], wanted(i))));
  for (const bool is_masked : masked(case_))
    args_.masks.push_back(is_masked ? static_cast<uint8_t*>(hold(device_->array(case_.mask).bytes()))
                                    : nullptr);
  use_parameters();
  if (requirements().is_view) {
    args_.outputs = {const_cast<void*>(args_.inputs[0])};
    return to_host(args_.output(), output, Layout::plain);
  }
  scratch_ = device_->memory(requirements().scratch_bytes);
  args_.saved = hold(device_->memory(requirements().saved_bytes).bytes());
  args_.scratch = scratch_.data();
  args_.outputs = {in_place ? const_cast<void*>(args_.inputs[0])
                            : hold(device_->typed(static_cast<size_t>(output_elements())).bytes())};
  for (size_t k = 1; k < outputs.size(); ++k)
    args_.outputs.push_back(
        hold(device_->typed(static_cast<size_t>(case_.batch * outputs[k].shape.elements())).bytes()));
  kernel_->forward(args_);
  further.clear();
  for (size_t k = 1; k < outputs.size(); ++k)
    further.push_back(to_host(args_.outputs[k], outputs[k], requirements().output_layout(k)));
  return to_host(args_.output(), output, requirements().output_layout());
}

LayerRun::Gradients LayerRun::backward(const Values& diff_output, bool in_place) {
  const DeviceBytes diff = to_device(diff_output, output, requirements().output_layout());
  if (case_.fused.kind != Activation::linear && !requirements().undoes_activation)
    ops().activation_backward(case_.fused, args_.output(), diff.data(), diff.data(), output_elements());
  Gradients gradients;
  if (requirements().is_view || requirements().passes_gradient) {
    for (const TensorSpec& input : case_.inputs)
      gradients.inputs.push_back(to_host(diff.data(), input, requirements().output_layout()));
    return gradients;
  }
  args_.diff_outputs = {diff.data()};
  args_.diff_outputs.resize(outputs.size(), nullptr);
  for (size_t k = 0; k < diff_further.size(); ++k)
    args_.diff_outputs[k + 1] = hold(to_device(diff_further[k], outputs[k + 1], Layout::plain));
  std::vector<TypedArray> of_inputs;
  std::vector<Array<float>> of_parameters;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool want = case_.inputs_need_gradient && case_.inputs[i].dtype == DType::float32;
    of_inputs.push_back(device_->typed(inputs[i].size()));
    args_.diff_inputs.push_back(!want ? nullptr : in_place && i == 0 ? diff.data() : of_inputs[i].data());
  }
  for (const Values& values : parameters) {
    of_parameters.push_back(device_->floats(values.size()));
    args_.diff_parameters.push_back(case_.trainable ? of_parameters.back().data() : nullptr);
  }
  scratch_ = device_->memory(requirements().scratch_bytes);
  args_.scratch = scratch_.data();
  // Arrays that the layer does not require in backward are not available.
  if (!requirements().backward_reads_inputs) std::fill(args_.inputs.begin(), args_.inputs.end(), nullptr);
  if (!requirements().backward_reads_outputs) std::fill(args_.outputs.begin(), args_.outputs.end(), nullptr);
  if (const int bias = requirements().bias; bias >= 0) {
    const int64_t columns = output.shape.columns();
    ops().column_sum(args_.diff_parameters.at(static_cast<size_t>(bias)), diff.data(),
                     output_elements() / columns, columns);
  }
  kernel_->backward(args_);
  for (size_t i = 0; i < inputs.size(); ++i)
    gradients.inputs.push_back(
        args_.diff_inputs[i] ? to_host(args_.diff_inputs[i], case_.inputs[i], wanted(i)) : Values());
  for (size_t i = 0; i < parameters.size(); ++i)
    gradients.parameters.push_back(args_.diff_parameters[i] ? of_parameters[i].read() : Values());
  return gradients;
}

}  // namespace dtrain::test
