#include "report/step_log_comparison.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/location.h"

namespace dtrain {

namespace {

/// Returns the losses of a step log, indexed by step. If a resume repeated a step, the last value counts.
std::map<int64_t, double> read_step_log(const std::string& path) {
  std::map<int64_t, double> losses;
  std::ifstream file(path, std::ios::binary);
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (file.eof()) break;  // the last line is incomplete because the run was killed
    try {
      const Json step = Json::parse(line);
      losses[step.at("step").as_int()] = step.at("loss").as_double();
    } catch (const UserError& error) {
      throw UserError(
          fmt::format("{}:{}: this line is not a valid line of a step log: {}", path, number, error.what()));
    }
  }
  return losses;
}

}  // namespace

bool is_step_log(const std::string& path) {
  constexpr std::string_view kBegins = R"({"step")";
  return first_bytes(path, kBegins.size()) == kBegins;
}

StepLogComparison compare_step_logs(const std::string& path_a, const std::string& path_b, double tolerance) {
  const std::map<int64_t, double> a = read_step_log(path_a), b = read_step_log(path_b);
  StepLogComparison result;
  for (const auto& [step, loss] : a) {
    const auto other = b.find(step);
    if (other == b.end()) continue;
    ++result.common;
    const double distance = std::abs(loss - other->second);
    const bool both_nan = std::isnan(loss) && std::isnan(other->second);
    if (both_nan || loss == other->second || distance <= tolerance * std::max(1.0, std::abs(other->second)))
      continue;
    if (!result.first) result.first = {step, loss, other->second};
    ++result.different;
    result.largest = std::max(result.largest, std::isnan(distance) ? INFINITY : distance);
  }
  result.only_a = static_cast<int64_t>(a.size()) - result.common;
  result.only_b = static_cast<int64_t>(b.size()) - result.common;
  return result;
}

}  // namespace dtrain
