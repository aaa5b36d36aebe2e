#include "checkpoint/hash.h"

#include <set>
#include <vector>

#include <doctest/doctest.h>

namespace dtrain {
namespace {
std::vector<std::byte> sequence(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

uint64_t checksum_of(std::span<const std::byte> bytes) {
  return checksum({&bytes, 1});
}
}  // namespace

TEST_CASE("a checksum does not depend on how the bytes are divided") {
  const auto bytes = sequence(1000);
  const std::span<const std::byte> all(bytes);
  const uint64_t whole = checksum_of(all);
  for (size_t cut = 0; cut <= all.size(); ++cut)
    CHECK(checksum(std::vector{all.first(cut), all.subspan(cut)}) == whole);
  std::vector<std::span<const std::byte>> singles;
  for (size_t i = 0; i < all.size(); ++i) singles.push_back(all.subspan(i, 1));
  CHECK(checksum(singles) == whole);
}

TEST_CASE("a checksum depends on every bit, the order and the length") {
  std::set<uint64_t> seen;
  auto bytes = sequence(200);
  seen.insert(checksum_of(bytes));
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    seen.insert(checksum_of(bytes));
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  CHECK(seen.size() == 1 + 8 * bytes.size());
  std::swap(bytes[3], bytes[80]);
  CHECK(seen.insert(checksum_of(bytes)).second);
  const std::vector<std::byte> zeros(130);
  for (size_t length = 0; length <= zeros.size(); ++length)
    CHECK(seen.insert(checksum_of(std::span(zeros).first(length))).second);
}
}  // namespace dtrain
