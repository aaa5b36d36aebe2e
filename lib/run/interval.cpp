#include "run/interval.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace dtrain {

namespace {

using Unit = Interval::Unit;

constexpr std::string_view kAutomatic = "auto";
// Names and lengths of the units, in the order of Interval::Unit.
constexpr std::array<std::string_view, 6> kUnits{"epoch", "step", "second", "minute", "hour", "day"};
constexpr std::array<double, 6> kSeconds{0, 0, 1, 60, 3600, 86400};

/// Parses text such as "10 minutes"; returns nullopt for any other form.
std::optional<Interval> parse_count(const std::string& text) {
  double count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || !(count > 0) || !(count < 1e15)) return std::nullopt;
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.ends_with('s')) unit.remove_suffix(1);
  for (size_t i = 0; i < kUnits.size(); ++i) {
    if (unit != kUnits[i]) continue;
    const Interval interval{count, static_cast<Unit>(i)};
    if (!interval.is_time() && count != std::floor(count)) return std::nullopt;
    return interval;
  }
  return std::nullopt;
}

std::string write_count(const Interval& value) {
  return fmt::format("{} {}{}", value.count, kUnits[static_cast<size_t>(value.unit)],
                     value.count == 1 ? "" : "s");
}

/// Returns a regular expression that matches the texts with these units that parse_count() accepts.
std::string pattern_of(std::string_view units) {
  return fmt::format("([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)? *({})s?", units);
}

}  // namespace

double Interval::seconds() const {
  return count * kSeconds[static_cast<size_t>(unit)];
}

std::string TimeSpan::str() const {
  return write_count(length);
}

bool Codec<Interval>::parse(const ConfigNode& node, const std::string& where, Interval& out,
                            Diagnostics& diagnostics) {
  if (node.is_scalar() && node.text() == kAutomatic) {
    out = Interval();
    return true;
  }
  const std::optional<Interval> interval = node.is_scalar() ? parse_count(node.text()) : std::nullopt;
  if (interval) {
    out = *interval;
    return true;
  }
  diagnostics.error(node, fmt::format("{}: expected an interval such as '1 epoch', '200 steps', '10 minutes' "
                                      "or 'auto', found {}",
                                      where, node.describe()));
  return false;
}

ConfigNode Codec<Interval>::write(const Interval& value) {
  return ConfigNode::scalar(value.unit == Unit::automatic ? std::string(kAutomatic) : write_count(value));
}

Json Codec<Interval>::schema() {
  return Json::object()
      .set("type", "string")
      .set("title", "interval")
      .set("pattern", fmt::format("^({}|{})$", kAutomatic, pattern_of("epoch|step|second|minute|hour|day")));
}

bool Codec<TimeSpan>::parse(const ConfigNode& node, const std::string& where, TimeSpan& out,
                            Diagnostics& diagnostics) {
  const std::optional<Interval> length = node.is_scalar() ? parse_count(node.text()) : std::nullopt;
  if (length && length->is_time()) {
    out.length = *length;
    return true;
  }
  diagnostics.error(node, fmt::format("{}: expected a duration such as '30 minutes' or '8 hours', found {}",
                                      where, node.describe()));
  return false;
}

ConfigNode Codec<TimeSpan>::write(const TimeSpan& value) {
  return ConfigNode::scalar(value.str());
}

Json Codec<TimeSpan>::schema() {
  return Json::object()
      .set("type", "string")
      .set("title", "duration")
      .set("pattern", fmt::format("^{}$", pattern_of("second|minute|hour|day")));
}

}  // namespace dtrain
