#include "checkpoint/hash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace dtrain {

namespace {
constexpr size_t kLanes = 8, kBlock = kLanes * sizeof(uint64_t);
constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;  // 2^64 divided by the golden ratio

using Lanes = std::array<uint64_t, kLanes>;

uint64_t step(uint64_t lane, uint64_t word) {
  uint64_t x = lane ^ word;
  x ^= x >> 32;  // without this shift, a change of the top bit could be canceled by the next word
  return std::rotl(x * kOdd, 29);
}

/// Hashes bytes into the lanes. The length of `blocks` must be a multiple of kBlock.
void add_blocks(Lanes& shared, std::span<const std::byte> blocks) {
  Lanes lanes = shared;  // a local copy that the compiler can keep in registers
  for (size_t at = 0; at < blocks.size(); at += kBlock) {
    std::array<uint64_t, kLanes> words;
    std::memcpy(words.data(), blocks.data() + at, sizeof words);
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = step(lanes[i], words[i]);
  }
  shared = lanes;
}
}  // namespace

uint64_t checksum(Parts parts) {
  static_assert(std::endian::native == std::endian::little,
                "words are read in the byte order of the memory, which must be little-endian");
  Lanes lanes;
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = kOdd * (i + 1);
  // collects a block that spans several parts, or the incomplete last block
  std::array<std::byte, kBlock> block{};
  size_t filled = 0;
  uint64_t length = 0;
  for (std::span<const std::byte> part : parts) {
    length += part.size();
    while (!part.empty()) {
      if (filled == 0 && part.size() >= kBlock) {
        const size_t whole = part.size() / kBlock * kBlock;
        add_blocks(lanes, part.first(whole));
        part = part.subspan(whole);
        continue;
      }
      const size_t count = std::min(part.size(), kBlock - filled);
      std::memcpy(block.data() + filled, part.data(), count);
      part = part.subspan(count);
      filled = (filled + count) % kBlock;
      if (filled == 0) add_blocks(lanes, block);
    }
  }
  // pads the last block with zeros; the hash also contains the length, so padding and data are distinguished
  if (filled > 0) {
    std::fill(block.begin() + static_cast<ptrdiff_t>(filled), block.end(), std::byte{0});
    add_blocks(lanes, block);
  }
  uint64_t hash = length;
  for (const uint64_t lane : lanes) hash = step(hash, lane);
  hash = (hash ^ (hash >> 32)) * kOdd;
  return hash ^ (hash >> 29);
}

}  // namespace dtrain
