// How often something happens: "1 epoch", "200 steps", "10 minutes".
#pragma once

#include <string>

#include "config/codec.h"

namespace dtrain {

struct Interval {
  enum class Unit { epoch, step, minute };
  double count = 1;  // whole, but for minutes; more than 0
  Unit unit = Unit::epoch;
};

template <>
struct Codec<Interval> {
  static bool parse(const Node& node, const std::string& where, Interval& out, Diagnostics& diagnostics);
  static Node write(const Interval& value);
  static Json schema();
};

}  // namespace dtrain
