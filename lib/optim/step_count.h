// How long a part of a schedule is: 400, "400 steps" or "5 epochs".
#pragma once

#include "config/schema.h"

namespace dtrain {

/// Whole and at least 0, but for epochs, which may be parts of one.
struct StepCount {
  double count = 0;
  bool in_epochs = false;

  /// In steps, to the nearest.
  int64_t steps(int64_t steps_per_epoch) const;
};

template <>
struct Codec<StepCount> {
  static bool parse(const ConfigNode& node, const std::string& where, StepCount& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const StepCount& value);
  static Json schema();
};

/// More than none of it.
inline Check<StepCount> some_time() {
  return {"more than 0 steps", [](const StepCount& count) { return count.count > 0; }};
}

}  // namespace dtrain
