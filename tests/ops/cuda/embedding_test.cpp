// Tests the gradient of an embedding table if one index, such as padding, occurs far more often than the
// others.
#include <doctest/doctest.h>

#include "ops/fixture.h"

namespace dtrain::test {
namespace {

using Indices = std::vector<int32_t>;

constexpr int64_t kTableRows = 1200, kColumns = 40;
/// Two rows whose gradients are summed by the same group of thread blocks if the number of groups is 2, 4,
/// 54, 66, 108 or 132. In these cases, both indices have the same remainder.
constexpr int32_t kHotRow = 5, kOtherHotRow = kHotRow + 1188;

/// Returns `n` indices: 7 of 10 are the hot row, the others are arbitrary rows.
Indices indices(int64_t n, int32_t hot_row) {
  Indices numbers(static_cast<size_t>(n));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = i % 10 < 7 ? hot_row : static_cast<int32_t>(static_cast<int64_t>(i) * 7919 % kTableRows);
  }
  return numbers;
}

/// Returns the gradient of the table for diff_dst, which has the shape [of.size(), kColumns].
Floats gradient(Device& device, const Indices& of, const Floats& diff_dst) {
  const auto own_indices = device.array(of);
  const TypedArray diff = device.typed(diff_dst);
  const auto table = device.floats(static_cast<size_t>(kTableRows * kColumns));
  device.ops().embedding_backward(own_indices.data(), diff.data(), table.data(),
                                  static_cast<int64_t>(of.size()), kTableRows, kColumns);
  return table.read();
}

void check_gradient(Device& device, const Indices& of) {
  CAPTURE(of.size());
  const auto columns = static_cast<size_t>(kColumns);
  const Floats diff_dst = device.random(static_cast<int64_t>(of.size()) * kColumns, 3);
  const Floats found = gradient(device, of, diff_dst);
  Doubles expected(found.size());
  for (size_t i = 0; i < of.size(); ++i) {
    if (of[i] < 0 || of[i] >= kTableRows) continue;
    for (size_t c = 0; c < columns; ++c) {
      expected[static_cast<size_t>(of[i]) * columns + c] += static_cast<double>(diff_dst[i * columns + c]);
    }
  }
  check_close(found, expected, 1e-5);
  CHECK(gradient(device, of, diff_dst) == found);
}

}  // namespace

TEST_CASE("on a GPU: an embedding row with most of the indices is summed in parts" *
          doctest::test_suite("gpu")) {
  on_every_gpu([](Device& device) {
    // Adding kSmall to 1 in float32 gives 1, so a single running sum would stay at 1.
    constexpr float kSmall = 0x1p-24f;
    const Indices of = indices(5000, kHotRow);
    Floats diff_dst(of.size() * static_cast<size_t>(kColumns), kSmall);
    std::fill_n(diff_dst.begin(), kColumns, 1.0f);  // the first index is the hot row
    const Floats found = gradient(device, of, diff_dst);
    const double small_ones = static_cast<double>(std::ranges::count(of, kHotRow)) - 1;
    for (int64_t c = 0; c < kColumns; ++c) {
      CHECK(found[static_cast<size_t>(kHotRow * kColumns + c)] ==
            doctest::Approx(1 + small_ones * kSmall).epsilon(5e-6));
    }
  });
}

TEST_CASE("on a GPU: an embedding row with few indices is summed in order" * doctest::test_suite("gpu")) {
  on_every_gpu([](Device& device) {
    // The kernel processes 2048 indices at a time. Each row occurs at most once among these indices.
    // Therefore, the warps of a block never share the work for one row.
    Indices of(9001, -1);
    for (size_t i = 0; i < of.size(); ++i)
      if (static_cast<int64_t>(i) % 2048 < kTableRows)
        of[i] = static_cast<int32_t>(static_cast<int64_t>(i) * 7919 % kTableRows);
    const Floats diff_dst = device.random(static_cast<int64_t>(of.size()) * kColumns, 5);
    Floats expected(static_cast<size_t>(kTableRows * kColumns));
    for (size_t i = 0; i < of.size(); ++i)
      for (size_t c = 0; of[i] >= 0 && c < static_cast<size_t>(kColumns); ++c)
        expected[static_cast<size_t>(of[i] * kColumns) + c] +=
            diff_dst[i * static_cast<size_t>(kColumns) + c];
    CHECK(gradient(device, of, diff_dst) == expected);
  });
}

TEST_CASE("on a GPU: gradients of an embedding table are summed in a fixed order" *
          doctest::test_suite("gpu")) {
  on_every_gpu([](Device& device) {
    check_gradient(device, indices(5000, kHotRow));
    for (const size_t n : {0, 1, 31, 32, 33}) check_gradient(device, Indices(n, kHotRow));
    // The kernel makes one list of every 2048 indices. The three lists of this test have different most
    // frequent rows, and the last list is short.
    Indices of = indices(2048, kHotRow);
    const Indices second = indices(2048, kOtherHotRow);
    of.insert(of.end(), second.begin(), second.end());
    of.resize(of.size() + 2048, -1);
    of[5000] = of[5001] = of[5002] = kHotRow;
    of[5003] = kOtherHotRow;
    of[5004] = static_cast<int32_t>(kTableRows);
    check_gradient(device, of);
  });
}

}  // namespace dtrain::test
