#include "data/readers/csv/decimal.h"

#include <charconv>
#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "data/support.h"

namespace dtrain::test {

TEST_CASE("a decimal number is read as the nearest double") {
  const Philox random = Philox::of(5, 1);
  int fast = 0;
  for (uint64_t i = 0; i < 200000; ++i) {
    const Philox::Block block = random(0, i);
    const uint64_t word = static_cast<uint64_t>(block.v[0]) << 32 | block.v[1];
    const auto number = static_cast<double>(static_cast<int64_t>(word));
    std::string text;
    switch (i % 5) {
      case 0:
        text = fmt::format("{}", std::ldexp(number, -static_cast<int>(block.v[2] % 90)));
        break;
      case 1:
        text = fmt::format("{:.6f}", number / 1e18);
        break;
      case 2:
        text = fmt::format("{:.17g}", number / 9.3e18);
        break;
      case 3:
        text = fmt::format("{}e{}", word >> block.v[2] % 60, static_cast<int>(block.v[3] % 60) - 30);
        break;
      default:  // halfway between two doubles
        text = fmt::format("{}.5", ((word >> 11) | uint64_t{1} << 52) >> block.v[2] % 8);
    }
    double expected = 0, found = 0;
    const char* const end = text.data() + text.size();
    std::from_chars(text.data(), end, expected);
    const char* const stop = read_decimal(text.data(), end, found);
    if (!stop) continue;
    ++fast;
    CHECK(stop == end);
    CHECK(found == expected);
  }
  CHECK(fast > 150000);
  double value = 0;
  for (const std::string text : {"", "-", ".", "e5", "1e", "nan", "123456789012345678901"})
    CHECK(read_decimal(text.data(), text.data() + text.size(), value) == nullptr);
}

}  // namespace dtrain::test
