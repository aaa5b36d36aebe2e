// Intervals ("1 epoch", "200 steps", "10 minutes") and time spans ("8 hours").
#pragma once

#include <string>

#include "config/codec.h"

namespace dtrain {

struct Interval {
  /// `automatic` means every epoch, but less often if epochs are so short that saving would take a large part
  /// of the time.
  enum class Unit { epoch, step, second, minute, hour, day, automatic };
  double count = 1;  // positive; an integer for epochs and steps
  Unit unit = Unit::automatic;

  bool is_time() const { return unit >= Unit::second && unit <= Unit::day; }
  /// Returns the length in seconds if is_time(); 0 for epochs and steps. Not defined for `automatic`.
  double seconds() const;
};

/// A length of time, in the unit in which it was written.
struct TimeSpan {
  Interval length{1, Interval::Unit::hour};
  double seconds() const { return length.seconds(); }
  /// Returns a text such as "8 hours".
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
