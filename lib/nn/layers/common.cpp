#include "nn/layers/common.h"

#include <fmt/format.h>

namespace dtrain {
namespace {

bool is_float(const TensorSpec& input, const ReportError& report_error) {
  if (input.dtype == DType::float32) return true;
  report_error(
      fmt::format("expected a float32 input, but '{}' has the type {}", input.name, name_of(input.dtype)));
  return false;
}

}  // namespace

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
  report_error(fmt::format("expected an input with an axis {}, but '{}' is a scalar", purpose, input->name));
  return nullptr;
}

const TensorSpec* image_input(std::span<const TensorSpec> inputs, const ReportError& report_error) {
  const TensorSpec* input = float_input(inputs, report_error);
  if (!input || input->shape.rank() == 3) return input;
  report_error(fmt::format("expected images of shape [height, width, channels], but '{}' has the shape {}",
                           input->name, input->shape.str()));
  return nullptr;
}

const TensorSpec* volume_input(std::span<const TensorSpec> inputs, const ReportError& report_error) {
  const TensorSpec* input = float_input(inputs, report_error);
  if (!input || input->shape.rank() == 4) return input;
  report_error(
      fmt::format("expected volumes of shape [depth, height, width, channels], but '{}' has the shape {}",
                  input->name, input->shape.str()));
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
    report_error(
        fmt::format("expected inputs of the same shape, but '{}' has the shape {} and '{}' has the shape {}",
                    inputs[0].name, inputs[0].shape.str(), input.name, input.shape.str()));
    return nullptr;
  }
  return &inputs[0];
}

std::vector<TensorSpec> same_as(const TensorSpec* input) {
  if (!input) return {};
  return {TensorSpec{{}, input->shape, input->dtype}};
}

}  // namespace dtrain
