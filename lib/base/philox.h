// Random numbers as a pure function of a key and a counter: results do not depend on which thread or replica
// draws them.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace dtrain {

/// Philox4x32-10 of J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
struct Philox {
  uint32_t key0 = 0, key1 = 0;

  /// The four random words that are generated from one counter.
  struct Block {
    uint32_t v[4];
  };

  /// Returns a generator for a run with this seed. `stream` identifies the purpose of the random numbers:
  /// generators of different streams are independent.
  DTRAIN_HOST_DEVICE static Philox of(uint64_t seed, uint32_t stream) {
    // SplitMix64's finalizer: similar seeds and streams give unrelated keys.
    uint64_t z = seed + 0x9e3779b97f4a7c15ull * (static_cast<uint64_t>(stream) + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return {static_cast<uint32_t>(z), static_cast<uint32_t>(z >> 32)};
  }

  /// Returns four independent 32-bit words for the counter high * 2^64 + low.
  DTRAIN_HOST_DEVICE Block operator()(uint64_t high, uint64_t low) const {
    uint32_t c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32);
    uint32_t c2 = static_cast<uint32_t>(high), c3 = static_cast<uint32_t>(high >> 32);
    uint32_t k0 = key0, k1 = key1;
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
      const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<uint32_t>(p1);
      c3 = static_cast<uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
  }
};

/// Returns a float in [0, 1) with 24 random bits.
DTRAIN_HOST_DEVICE inline float uniform01(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

}  // namespace dtrain
