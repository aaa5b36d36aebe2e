#include "nn/metrics/target_checks.h"

#include <fmt/format.h>

#include "nn/losses/class_target.h"

namespace dtrain {
namespace {

bool equal(const std::optional<TensorSpec>& wanted, const TensorSpec& target,
           const ReportError& report_error) {
  if (!wanted) return false;
  if (wanted->dtype == target.dtype && wanted->shape == target.shape) return true;
  const std::string found = target.name.empty() ? "one" : fmt::format("'{}'", target.name);
  report_error(fmt::format("expected a target of type {} and shape {}, but found {} of type {} and shape {}",
                           name_of(wanted->dtype), wanted->shape.str(), found, name_of(target.dtype),
                           target.shape.str()));
  return false;
}

}  // namespace

bool is_sparse_target(const TensorSpec& output, const TensorSpec& target, const ReportError& report_error) {
  return equal(class_numbers_for(output, report_error), target, report_error);
}

bool is_dense_target(const TensorSpec& output, const TensorSpec& target, const ReportError& report_error) {
  return equal(floats_for(output, report_error), target, report_error);
}

}  // namespace dtrain
