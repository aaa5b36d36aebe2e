// The gradient of a table of which one row is named far more often than others, as that of padding is.
#include <doctest/doctest.h>

#include "ops/fixture.h"

namespace dtrain::test {
namespace {

constexpr int64_t kTableRows = 1000, kColumns = 40, kIndices = 5000, kHotRow = 901;
/// Added to 1 in float32, this leaves it 1: a single sum of many would stay there.
constexpr float kSmall = 0x1p-24f;

/// Of ten indices, seven name the hot row.
std::vector<int32_t> indices() {
  std::vector<int32_t> numbers(static_cast<size_t>(kIndices));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<int32_t>(i % 10 < 7 ? kHotRow : static_cast<int64_t>(i) * 7919 % kTableRows);
  }
  return numbers;
}

/// diff_table of diff_dst, (kIndices, kColumns).
Floats gradient(Device& device, const Floats& diff_dst) {
  const auto own_indices = device.array(indices());
  const TypedArray diff = device.typed(diff_dst);
  const auto table = device.floats(static_cast<size_t>(kTableRows * kColumns));
  device.ops().embedding_backward(own_indices.data(), diff.data(), table.data(), kIndices, kTableRows,
                                  kColumns);
  return table.read();
}

}  // namespace

TEST_CASE("on a GPU: a row that most indices name is summed in parts" * doctest::test_suite("gpu")) {
  on_every_gpu([](Device& device) {
    Floats diff_dst(static_cast<size_t>(kIndices * kColumns), kSmall);
    std::fill_n(diff_dst.begin(), kColumns, 1.0f);  // the first index names the hot row
    const Floats found = gradient(device, diff_dst);
    const double times = static_cast<double>(std::ranges::count(indices(), static_cast<int32_t>(kHotRow)));
    for (int64_t c = 0; c < kColumns; ++c) {
      CHECK(found[static_cast<size_t>(kHotRow * kColumns + c)] ==
            doctest::Approx(1 + (times - 1) * kSmall).epsilon(5e-5));
    }
  });
}

TEST_CASE("on a GPU: sums of a table's rows have an order" * doctest::test_suite("gpu")) {
  on_every_gpu([](Device& device) {
    const Floats diff_dst = device.random(kIndices * kColumns, 3);
    const Floats found = gradient(device, diff_dst);
    Doubles expected(found.size());
    const std::vector<int32_t> rows = indices();
    for (int64_t i = 0; i < kIndices * kColumns; ++i) {
      expected[static_cast<size_t>(rows[static_cast<size_t>(i / kColumns)] * kColumns + i % kColumns)] +=
          static_cast<double>(diff_dst[static_cast<size_t>(i)]);
    }
    check_close(found, expected, 1e-5);
    CHECK(gradient(device, diff_dst) == found);
  });
}

}  // namespace dtrain::test
