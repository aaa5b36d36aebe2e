#include "nn/losses/class_target.h"

#include <fmt/format.h>

namespace dtrain {

std::optional<TensorSpec> floats_for(const TensorSpec& output, const ReportError& report_error) {
  if (output.dtype == DType::float32) return TensorSpec{{}, output.shape, DType::float32};
  report_error(
      fmt::format("expected a float32 output, but '{}' has the type {}", output.name, name_of(output.dtype)));
  return std::nullopt;
}

std::optional<TensorSpec> class_numbers_for(const TensorSpec& output, const ReportError& report_error) {
  if (!floats_for(output, report_error)) return std::nullopt;
  if (output.shape.rank() == 0) {
    report_error(
        fmt::format("expected an output with an axis of classes, but '{}' is a scalar", output.name));
    return std::nullopt;
  }
  std::vector<int64_t> rows = output.shape.extents();
  rows.pop_back();
  return TensorSpec{{}, Shape(rows), DType::int32};
}

}  // namespace dtrain
