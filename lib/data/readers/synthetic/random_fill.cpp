#include "data/readers/synthetic/random_fill.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/vector_clones.h"

namespace dtrain {

namespace {

constexpr int kLanes = 16;

/// Computes the 64 words of a group with the rounds of base/philox.h. Compilers can vectorize the code
/// because it loops over the lanes, and because the variables have 64 bits, which is enough for the products.
[[gnu::always_inline]] inline void group_words(Philox random, uint64_t row, uint64_t group,
                                               uint32_t* __restrict words) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint64_t low = group * kLanes + static_cast<uint64_t>(lane);
    uint64_t c0 = low & 0xffffffffu, c1 = low >> 32, c2 = row & 0xffffffffu, c3 = row >> 32;
    uint32_t k0 = random.key0, k1 = random.key1;
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
      c0 = (p1 >> 32) ^ c1 ^ k0;
      c2 = (p0 >> 32) ^ c3 ^ k1;
      c1 = p1 & 0xffffffffu;
      c3 = p0 & 0xffffffffu;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    words[lane] = static_cast<uint32_t>(c0);
    words[kLanes + lane] = static_cast<uint32_t>(c1);
    words[2 * kLanes + lane] = static_cast<uint32_t>(c2);
    words[3 * kLanes + lane] = static_cast<uint32_t>(c3);
  }
}

/// Calls map(words, out) for each group of elements, which is computed from one block of random words. A
/// partial last group is written to a buffer and then copied.
template <class T, class Map>
[[gnu::always_inline]] inline void for_each_group(Philox random, int64_t row, T* dst, int64_t count,
                                                  Map map) {
  alignas(64) uint32_t words[kRandomGroup];
  for (int64_t first = 0; first < count; first += kRandomGroup) {
    group_words(random, static_cast<uint64_t>(row), static_cast<uint64_t>(first / kRandomGroup), words);
    if (count - first >= kRandomGroup) {
      map(words, dst + first);
    } else {
      T rest[kRandomGroup];
      map(words, rest);
      std::copy_n(rest, count - first, dst + first);
    }
  }
}

}  // namespace

DTRAIN_VECTOR_CLONES void fill_uniform(Philox random, int64_t row, float low, float high, float* dst,
                                       int64_t count) {
  const float range = high - low;
  for_each_group(random, row, dst, count, [=](const uint32_t* words, float* out) {
    // Uses a conversion from signed integers, because every processor has one. The upper 24 bits of a word
    // always fit into int32.
    for (int i = 0; i < kRandomGroup; ++i)
      out[i] = low + range * (static_cast<float>(static_cast<int32_t>(words[i] >> 8)) * 0x1p-24f);
  });
}

DTRAIN_VECTOR_CLONES void fill_integers(Philox random, int64_t row, int32_t low, uint32_t range, int32_t* dst,
                                        int64_t count) {
  for_each_group(random, row, dst, count, [=](const uint32_t* words, int32_t* out) {
    for (int i = 0; i < kRandomGroup; ++i)
      out[i] = static_cast<int32_t>(static_cast<uint32_t>(low) +
                                    static_cast<uint32_t>((static_cast<uint64_t>(words[i]) * range) >> 32));
  });
}

void fill_normal(Philox random, int64_t row, float mean, float stddev, float* dst, int64_t count) {
  for_each_group(random, row, dst, count, [=](const uint32_t* words, float* out) {
    constexpr int kHalf = kRandomGroup / 2;
    for (int i = 0; i < kHalf; ++i) {
      const float radius = std::sqrt(-2.0f * std::log(1.0f - uniform01(words[i])));  // never log(0)
      const float angle = 2.0f * std::numbers::pi_v<float> * uniform01(words[i + kHalf]);
      out[i] = mean + stddev * radius * std::cos(angle);
      out[i + kHalf] = mean + stddev * radius * std::sin(angle);
    }
  });
}

}  // namespace dtrain
