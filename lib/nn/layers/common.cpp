#include "nn/layers/common.h"

#include <cctype>

#include <fmt/format.h>

#include "nn/layers/activation_function.h"

namespace dtrain {
namespace {

/// "GlorotUniform" of "glorot_uniform".
std::string camel_case(std::string_view name) {
  std::string camel;
  bool start = true;
  for (const char c : name) {
    if (c != '_') camel += start ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    start = c == '_';
  }
  return camel;
}

/// Keras's initializers have our names in camel case and options of our names.
Json keras_initializer(const ConfigNode& kind) {
  const bool bare = kind.is_scalar();
  const std::string& name = bare ? kind.text() : kind.entries().front().first.text();
  return Json::object()
      .set("class_name", camel_case(name))
      .set("config", bare ? Json::object() : to_json(kind.entries().front().second));
}

bool is_float(const TensorSpec& input, const ReportError& report_error) {
  if (input.dtype == DType::float32) return true;
  report_error(fmt::format("expected a float32 input, found '{}' of {}", input.name, name_of(input.dtype)));
  return false;
}

}  // namespace

Json keras_options(const ConfigNode& options) {
  Json config = Json::object();
  for (const auto& [key, value] : options.entries()) {
    if (key.text().ends_with("_initializer"))
      config.set(key.text(), keras_initializer(value));
    else if (key.text() == "activation")
      config.set(key.text(), keras_activation(value));
    else
      config.set(key.text(), to_json(value));
  }
  return config;
}

bool one_input(std::span<const TensorSpec> inputs, const ReportError& report_error) {
  if (inputs.size() == 1) return true;
  report_error(fmt::format("expected one input, found {}", inputs.size()));
  return false;
}

const TensorSpec* float_input(std::span<const TensorSpec> inputs, const ReportError& report_error) {
  return one_input(inputs, report_error) && is_float(inputs[0], report_error) ? &inputs[0] : nullptr;
}

const TensorSpec* float_input_with_axis(std::span<const TensorSpec> inputs, std::string_view purpose,
                                        const ReportError& report_error) {
  const TensorSpec* input = float_input(inputs, report_error);
  if (!input || input->shape.rank() > 0) return input;
  report_error(fmt::format("expected an input with an axis {}, found a scalar '{}'", purpose, input->name));
  return nullptr;
}

const TensorSpec* image_input(std::span<const TensorSpec> inputs, const ReportError& report_error) {
  const TensorSpec* input = float_input(inputs, report_error);
  if (!input || input->shape.rank() == 3) return input;
  report_error(fmt::format("expected an input of height x width x channels, found '{}' of {}", input->name,
                           input->shape.str()));
  return nullptr;
}

bool several_float_inputs(std::span<const TensorSpec> inputs, const ReportError& report_error) {
  if (inputs.size() < 2) {
    report_error(fmt::format("expected at least two inputs, found {}", inputs.size()));
    return false;
  }
  bool good = true;
  for (const TensorSpec& input : inputs) good = is_float(input, report_error) && good;
  return good;
}

const TensorSpec* equal_float_inputs(std::span<const TensorSpec> inputs, const ReportError& report_error) {
  if (!several_float_inputs(inputs, report_error)) return nullptr;
  for (const TensorSpec& input : inputs.subspan(1)) {
    if (input.shape == inputs[0].shape) continue;
    report_error(fmt::format("expected inputs of one shape, found '{}' of {} and '{}' of {}", inputs[0].name,
                             inputs[0].shape.str(), input.name, input.shape.str()));
    return nullptr;
  }
  return &inputs[0];
}

std::vector<TensorSpec> same_as(const TensorSpec* input) {
  if (!input) return {};
  return {TensorSpec{{}, input->shape, input->dtype}};
}

}  // namespace dtrain
