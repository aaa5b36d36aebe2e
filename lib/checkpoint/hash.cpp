#include "checkpoint/hash.h"

#include <array>
#include <bit>
#include <cstring>

namespace dtrain {

namespace {
constexpr size_t kLanes = 8, kWord = sizeof(uint64_t);
constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;  // 2^64 over the golden ratio

using Lanes = std::array<uint64_t, kLanes>;

uint64_t step(uint64_t lane, uint64_t word) {
  return std::rotl((lane ^ word) * kOdd, 29);
}

void add_block(Lanes& lanes, const std::byte* block) {
  std::array<uint64_t, kLanes> words;
  std::memcpy(words.data(), block, sizeof words);
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = step(lanes[i], words[i]);
}
}  // namespace

uint64_t checksum(std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");
  constexpr size_t kBlock = kLanes * kWord;
  Lanes lanes;
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = kOdd * (i + 1);
  const size_t whole = bytes.size() / kBlock * kBlock;
  for (size_t at = 0; at < whole; at += kBlock) add_block(lanes, bytes.data() + at);
  if (whole != bytes.size()) {  // the rest, filled up with zeros: the length below tells them from real ones
    std::array<std::byte, kBlock> rest{};
    std::memcpy(rest.data(), bytes.data() + whole, bytes.size() - whole);
    add_block(lanes, rest.data());
  }
  uint64_t hash = bytes.size();
  for (const uint64_t lane : lanes) hash = step(hash, lane);
  hash = (hash ^ (hash >> 32)) * kOdd;
  return hash ^ (hash >> 29);
}

}  // namespace dtrain
