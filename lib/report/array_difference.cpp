#include "report/array_difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace dtrain {

namespace {

/// Maps a float to an integer. Neighboring floats are mapped to neighboring integers, and 0 and -0 to the
/// same integer.
int64_t place_of(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits >= 0 ? int64_t{bits} : int64_t{std::numeric_limits<int32_t>::min()} - bits;
}

size_t distance_class(int64_t ulps) {
  return ulps <= 1 ? 0 : ulps <= 3 ? 1 : ulps <= 15 ? 2 : ulps <= 255 ? 3 : 4;
}

void compare(float a, float b, double tolerance, ArrayDifference& result) {
  constexpr size_t kNan = 5;
  const bool a_is_nan = std::isnan(a), b_is_nan = std::isnan(b);
  if (a_is_nan && b_is_nan) return;
  if (a_is_nan || b_is_nan) {
    ++result.different;
    ++result.distances[kNan];
    result.largest = result.relative = std::numeric_limits<double>::infinity();
    return;
  }
  if (a == b) return;
  const double difference = std::abs(static_cast<double>(a) - static_cast<double>(b));
  const double size = std::abs(static_cast<double>(b));
  if (difference <= tolerance * std::max(1.0, size)) return;
  ++result.different;
  ++result.distances[distance_class(ulps_between(a, b))];
  result.largest = std::max(result.largest, difference);
  result.relative =
      std::max(result.relative, size > 0 ? difference / size : std::numeric_limits<double>::infinity());
}

}  // namespace

int64_t ulps_between(float a, float b) {
  return std::abs(place_of(a) - place_of(b));
}

ArrayDifference compare_arrays(std::span<const float> a, std::span<const float> b, double tolerance) {
  ArrayDifference result{.elements = static_cast<int64_t>(a.size())};
  // Arrays are first compared block by block with memcmp(), which is fast for equal blocks.
  constexpr size_t kBlock = 4096;
  for (size_t begin = 0; begin < a.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, a.size());
    if (std::memcmp(a.data() + begin, b.data() + begin, (end - begin) * sizeof(float)) == 0) continue;
    for (size_t i = begin; i < end; ++i) compare(a[i], b[i], tolerance, result);
  }
  return result;
}

}  // namespace dtrain
