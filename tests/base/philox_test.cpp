#include "base/philox.h"

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

namespace dtrain {

namespace {

std::vector<uint32_t> words(const Philox& generator, uint64_t high, uint64_t low) {
  const Philox::Block block = generator(high, low);
  return {block.v, block.v + 4};
}

}  // namespace

// The vectors "philox4x32 10" are from the file kat_vectors of Random123, the authors' implementation.
TEST_CASE("Philox reproduces the test vectors of its paper") {
  CHECK(words({.key0 = 0, .key1 = 0}, 0, 0) ==
        std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(words({.key0 = 0xffffffff, .key1 = 0xffffffff}, UINT64_MAX, UINT64_MAX) ==
        std::vector<uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  // The counter consists of these words, lowest first: 243f6a88 85a308d3 13198a2e 03707344.
  CHECK(words({.key0 = 0xa4093822, .key1 = 0x299f31d0}, 0x0370734413198a2e, 0x85a308d3243f6a88) ==
        std::vector<uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a random number depends only on seed, stream and counter") {
  const Philox generator = Philox::of(1, 2);
  CHECK(words(generator, 3, 4) == words(Philox::of(1, 2), 3, 4));
  CHECK(words(generator, 3, 4) != words(Philox::of(2, 2), 3, 4));
  CHECK(words(generator, 3, 4) != words(Philox::of(1, 3), 3, 4));
  CHECK(words(generator, 3, 4) != words(generator, 4, 4));
  CHECK(words(generator, 3, 4) != words(generator, 3, 5));
}

TEST_CASE("uniform01 includes 0 and excludes 1") {
  CHECK(uniform01(0) == 0.0f);
  CHECK(uniform01(UINT32_MAX) == 1.0f - 0x1p-24f);
  CHECK(uniform01(1u << 31) == 0.5f);
}

}  // namespace dtrain
