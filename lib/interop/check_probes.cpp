#include "interop/check_probes.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

void check_probes(const ExportedModel& model, const std::vector<std::vector<float>>& outputs,
                  ProbeTolerance tolerance, const std::string& path) {
  for (size_t output = 0; output < outputs.size(); ++output) {
    const std::vector<float>&expected = model.probes.outputs[output], &found = outputs[output];
    if (expected.size() != found.size())
      throw Error(
          fmt::format("{}: expected {} numbers for the output '{}', but the exported model computes {}; "
                      "nothing was written",
                      path, expected.size(), model.outputs[output].name, found.size()));
    float largest = 1;
    for (const float value : expected)
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool is_equal = expected[i] == found[i] || (std::isnan(expected[i]) && std::isnan(found[i]));
      if (is_equal || std::abs(expected[i] - found[i]) <= tolerance_of(tolerance) * largest) continue;
      throw Error(fmt::format(
          "{}: the exported model's output '{}' differs from dtrain's: expected {}, found {} "
          "(tolerance {}); nothing was written",
          path, model.outputs[output].name, expected[i], found[i], tolerance_of(tolerance) * largest));
    }
  }
}

}  // namespace dtrain
