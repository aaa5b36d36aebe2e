// How often something happens, "1 epoch", "200 steps", "10 minutes", and how long something takes, "8 hours".
#pragma once

#include <string>

#include "config/codec.h"

namespace dtrain {

struct Interval {
  /// automatic: every epoch, but not so often that short epochs are spent saving.
  enum class Unit { epoch, step, second, minute, hour, day, automatic };
  double count = 1;  // more than 0; whole for epochs and steps
  Unit unit = Unit::automatic;

  bool is_time() const { return unit >= Unit::second && unit <= Unit::day; }
  /// The length where is_time(); 0 for epochs and steps. Not for `automatic`.
  double seconds() const;
};

/// A length of time, kept in the unit in which it was written.
struct TimeSpan {
  Interval length{1, Interval::Unit::hour};
  double seconds() const { return length.seconds(); }
  /// "8 hours"
  std::string str() const;
};

template <>
struct Codec<Interval> {
  static bool parse(const ConfigNode& node, const std::string& where, Interval& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const Interval& value);
  static Json schema();
};

template <>
struct Codec<TimeSpan> {
  static bool parse(const ConfigNode& node, const std::string& where, TimeSpan& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const TimeSpan& value);
  static Json schema();
};

}  // namespace dtrain
