#include "train/interval.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace dtrain {

namespace {
constexpr std::array<std::string_view, 3> kUnits{"epoch", "step",
                                                 "minute"};  // in the order of Interval::Unit
}

bool Codec<Interval>::parse(const Node& node, const std::string& where, Interval& out,
                            Diagnostics& diagnostics) {
  const auto fail = [&] {
    diagnostics.error(
        node, fmt::format("{}: expected an interval such as '1 epoch', '200 steps' or '10 minutes', found {}",
                          where, node.describe()));
    return false;
  };
  if (!node.is_scalar()) return fail();
  const std::string& text = node.text();
  double count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || !(count > 0) || !(count < 1e15)) return fail();
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.ends_with('s')) unit.remove_suffix(1);
  for (size_t i = 0; i < kUnits.size(); ++i) {
    if (unit != kUnits[i]) continue;
    const auto kind = static_cast<Interval::Unit>(i);
    if (kind != Interval::Unit::minute && count != std::floor(count)) return fail();
    out = {count, kind};
    return true;
  }
  return fail();
}

Node Codec<Interval>::write(const Interval& value) {
  return Node::scalar(fmt::format("{} {}{}", value.count, kUnits[static_cast<size_t>(value.unit)],
                                  value.count == 1 ? "" : "s"));
}

Json Codec<Interval>::schema() {
  return Json::object()
      .set("type", "string")
      .set("pattern", "^([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)? *(epochs?|steps?|minutes?)$");
}

}  // namespace dtrain
