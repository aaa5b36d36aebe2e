#include "base/bytes.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace dtrain {

std::string format_bytes(uint64_t bytes) {
  constexpr std::array kUnits{"B", "kB", "MB", "GB", "TB", "PB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit == 0 || value >= 99.95 ? 0 : 1, kUnits[unit]);
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [stopped, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(stopped - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  constexpr std::string_view kPrefixes = "kMGTP";
  double unit = 1;
  if (const size_t power = text.empty() ? text.npos : kPrefixes.find(text[0] == 'K' ? 'k' : text[0]);
      power != text.npos) {
    text.remove_prefix(1);
    const bool binary = text.starts_with('i');
    if (binary) text.remove_prefix(1);
    unit = std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
    if (text.empty()) return std::nullopt;  // a prefix without the B, e.g. "24G"
  }
  if (!text.empty() && text != "B") return std::nullopt;
  const double bytes = std::round(number * unit);
  constexpr double kMost = 1e18;
  if (!(bytes <= kMost)) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

}  // namespace dtrain
