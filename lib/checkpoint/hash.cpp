#include "checkpoint/hash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace dtrain {

namespace {
constexpr size_t kLanes = 8, kBlock = kLanes * sizeof(uint64_t);
constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;  // 2^64 over the golden ratio

using Lanes = std::array<uint64_t, kLanes>;

uint64_t step(uint64_t lane, uint64_t word) {
  uint64_t x = lane ^ word;
  x ^= x >> 32;  // without this shift, the next word could cancel a change of the top bit
  return std::rotl(x * kOdd, 29);
}

/// Hashes bytes into the lanes. `blocks`: a multiple of kBlock bytes.
void add_blocks(Lanes& shared, std::span<const std::byte> blocks) {
  Lanes lanes = shared;  // a local copy, which stays in registers
  for (size_t at = 0; at < blocks.size(); at += kBlock) {
    std::array<uint64_t, kLanes> words;
    std::memcpy(words.data(), blocks.data() + at, sizeof words);
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = step(lanes[i], words[i]);
  }
  shared = lanes;
}
}  // namespace

uint64_t checksum(Parts parts) {
  static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");
  Lanes lanes;
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = kOdd * (i + 1);
  std::array<std::byte, kBlock> block{};  // a block with bytes of several parts, or with the last bytes
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
  if (filled > 0) {  // padded with zeros; the length below tells padding from data
    std::fill(block.begin() + static_cast<ptrdiff_t>(filled), block.end(), std::byte{0});
    add_blocks(lanes, block);
  }
  uint64_t hash = length;
  for (const uint64_t lane : lanes) hash = step(hash, lane);
  hash = (hash ^ (hash >> 32)) * kOdd;
  return hash ^ (hash >> 29);
}

}  // namespace dtrain
