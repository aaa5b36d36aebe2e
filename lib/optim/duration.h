// How long a part of a schedule is: 400, "400 steps" or "5 epochs".
#pragma once

#include "config/schema.h"

namespace dtrain {

/// Whole and at least 0, but for epochs, which may be parts of one.
struct Duration {
  double count = 0;
  bool in_epochs = false;

  /// In steps, to the nearest.
  double steps(int64_t steps_per_epoch) const;
};

template <>
struct Codec<Duration> {
  static bool parse(const Node& node, const std::string& where, Duration& out, Diagnostics& diagnostics);
  static Node write(const Duration& value);
  static Json schema();
};

/// More than none of it.
inline Check<Duration> some_time() {
  return {"more than 0 steps", [](const Duration& duration) { return duration.count > 0; }};
}

}  // namespace dtrain
