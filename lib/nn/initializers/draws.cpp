#include "nn/initializers/draws.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace dtrain {
namespace {

/// Returns four independent standard normal numbers from one block, using the Box-Muller transform.
std::array<double, 4> normals(const Philox::Block& block) {
  std::array<double, 4> z;
  for (size_t pair = 0; pair < 2; ++pair) {
    // Adding 0.5 keeps u in (0, 1), so the logarithm is finite.
    const double u = (block.v[2 * pair] + 0.5) * 0x1p-32;
    const double angle = 2 * std::numbers::pi * (block.v[2 * pair + 1] + 0.5) * 0x1p-32;
    const double radius = std::sqrt(-2 * std::log(u));
    z[2 * pair] = radius * std::cos(angle);
    z[2 * pair + 1] = radius * std::sin(angle);
  }
  return z;
}

}  // namespace

void draw_uniform(float* values, int64_t n, double low, double high, const Philox& random) {
  for (int64_t i = 0; i < n; i += 4) {
    const Philox::Block block = random(0, static_cast<uint64_t>(i) / 4);
    const int64_t count = std::min<int64_t>(4, n - i);
    for (int64_t j = 0; j < count; ++j)
      values[i + j] = static_cast<float>(low + (high - low) * static_cast<double>(uniform01(block.v[j])));
  }
}

void draw_normal(float* values, int64_t n, double mean, double deviation, const Philox& random) {
  for (int64_t i = 0; i < n; i += 4) {
    const auto z = normals(random(0, static_cast<uint64_t>(i) / 4));
    const int64_t count = std::min<int64_t>(4, n - i);
    for (int64_t j = 0; j < count; ++j)
      values[i + j] = static_cast<float>(mean + deviation * z[static_cast<size_t>(j)]);
  }
}

void draw_truncated_normal(float* values, int64_t n, double mean, double deviation, const Philox& random) {
  for (int64_t i = 0; i < n; ++i) {
    const auto inside = [](double z) { return std::abs(z) < 2; };
    // Each element has its own blocks of four random numbers. Almost always, the first block contains a
    // number between -2 and 2: only about one element in 230,000 needs a second block.
    for (uint64_t attempt = 0;; ++attempt) {
      const auto z = normals(random(attempt, static_cast<uint64_t>(i)));
      const auto found = std::find_if(z.begin(), z.end(), inside);
      if (found == z.end()) continue;
      values[i] = static_cast<float>(mean + deviation * *found);
      break;
    }
  }
}

}  // namespace dtrain
