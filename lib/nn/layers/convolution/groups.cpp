#include "nn/layers/convolution/groups.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace dtrain {

namespace {

/// Returns the largest divisor of `number` that is at most `most`.
int64_t largest_divisor(int64_t number, int64_t most) {
  int64_t largest = 1;
  for (int64_t i = 1; i <= number / i; ++i) {
    if (number % i != 0) continue;
    if (i <= most) largest = std::max(largest, i);
    if (number / i <= most) largest = std::max(largest, number / i);
  }
  return largest;
}

/// Returns the positive multiples of `unit` that are closest to `number`: "4 or 8".
std::string multiples_near(int64_t number, int64_t unit) {
  const int64_t lower = number / unit * unit;
  return lower > 0 ? fmt::format("{} or {}", lower, lower + unit) : fmt::format("{}", unit);
}

}  // namespace

void check_groups(const std::string& kind, int64_t groups, int64_t filters, const ConfigNode& options,
                  Diagnostics& diagnostics) {
  if (filters % groups == 0) return;
  diagnostics.error(
      *options.find("groups"),
      fmt::format("{}: filters must be a multiple of groups, but filters is {} and groups is "
                  "{}; use {} filters, or groups: {}",
                  kind, filters, groups, multiples_near(filters, groups), largest_divisor(filters, groups)));
}

bool has_whole_groups(const TensorSpec& input, int64_t groups, int64_t filters,
                      const ReportError& report_error) {
  const int64_t channels = input.shape.back();
  if (channels % groups == 0) return true;
  report_error(
      fmt::format("the number of input channels must be a multiple of groups, but '{}' has {} "
                  "channel{} and groups is {}; use an input with {} channels, or groups: {}",
                  input.name, channels, channels == 1 ? "" : "s", groups, multiples_near(channels, groups),
                  largest_divisor(std::gcd(channels, filters), groups)));
  return false;
}

}  // namespace dtrain
