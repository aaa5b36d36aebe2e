#include "data/loader/shuffle.h"

#include <utility>

#include "base/philox.h"
#include "data/columns/column.h"

namespace dtrain {

namespace {

__extension__ using Uint128 = unsigned __int128;

}  // namespace

std::vector<int64_t> shuffled_order(int64_t size, uint64_t seed, int64_t epoch, ShuffleOf what) {
  std::vector<int64_t> order = row_numbers(0, size);
  const Philox random = Philox::of(seed, static_cast<uint32_t>(what));
  for (int64_t i = size - 1; i > 0; --i) {
    const Philox::Block block = random(static_cast<uint64_t>(epoch), static_cast<uint64_t>(i));
    const uint64_t word = static_cast<uint64_t>(block.v[1]) << 32 | block.v[0];
    // Scales the 64 random bits to [0, i]. The bias of the result is below i / 2^64.
    const auto other = static_cast<size_t>((static_cast<Uint128>(word) * static_cast<uint64_t>(i + 1)) >> 64);
    std::swap(order[static_cast<size_t>(i)], order[other]);
  }
  return order;
}

}  // namespace dtrain
