// Kernels run as on a device.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "emulation/kernels.h"
#include "emulation/support.h"

namespace dtrain::emulation {

TEST_CASE("emulated kernels: every thread of a grid runs once") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> numbers(2 * 3 * 2 * 4 * 5 * 3);
  number_threads({2, 3, 2}, {4, 5, 3}, numbers.data, stream);
  std::vector<int> expected(numbers.size);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(numbers.read(stream) == expected);
}

TEST_CASE("emulated kernels: threads wait at barriers in any order of execution") {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Fresh fresh({.seed = seed});
    const Stream stream;
    std::vector<int> values(3 * 256);
    std::iota(values.begin(), values.end(), 0);
    const Array<int> data(values);
    reverse_blocks(data.data, 3, stream);
    for (auto part = values.begin(); part != values.end(); part += 256) std::reverse(part, part + 256);
    CHECK(data.read(stream) == values);
    reverse_without_barrier(data.data, 3, stream);
    CHECK(data.read(stream) != values);
  }
}

TEST_CASE("emulated kernels: shared memory has no data of the previous block") {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Fresh fresh({.seed = seed});
    const Stream stream;
    const Array<int> found(size_t{5});
    find_shared_memory(found.data, 5, stream);
    CHECK(found.read(stream) == std::vector<int>(5, -1));
  }
}

TEST_CASE("emulated kernels: blocks may run one after the other or interleaved") {
  bool in_turn = false, at_once = false;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Fresh fresh({.seed = seed});
    const Stream stream;
    const Array<int> counter(std::vector<int>{0}), before(size_t{4}), after(size_t{4});
    draw_numbers(counter.data, before.data, after.data, 4, stream);
    const std::vector<int> first = before.read(stream), second = after.read(stream);
    bool each = true;
    for (size_t i = 0; i < 4; ++i) each = each && second[i] == first[i] + 1;
    (each ? in_turn : at_once) = true;
    CHECK(counter.read(stream) == std::vector<int>{8});
  }
  CHECK(in_turn);
  CHECK(at_once);
}

TEST_CASE("emulated kernels: lanes of a warp exchange values") {
  const Fresh fresh;
  const Stream stream;
  std::vector<int> values(3 * 32), expected(6);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int>(i * i);
    expected[i / 32] += values[i];
    if (i % 2 == 0) expected[3 + i / 32] += values[i];
  }
  const Array<int> src(values), dst(6);
  sum_warps(src.data, dst.data, 3, stream);
  CHECK(dst.read(stream) == expected);
}

TEST_CASE("emulated kernels: __match_any_sync finds the lanes with the same value") {
  const Fresh fresh;
  const Stream stream;
  std::vector<int> values(32);
  for (int i = 0; i < 32; ++i) values[static_cast<size_t>(i)] = i % 3 == 0 ? 7 : -(i % 3);
  std::vector<unsigned> expected(64);
  for (unsigned i = 0; i < 32; ++i) {
    for (unsigned other = i % 3; other < 32; other += 3) expected[i] |= 1u << other;
    if (i % 2 == 0) expected[32 + i] = expected[i] & 0x55555555u;
  }
  const Array<int> src(values);
  const Array<unsigned> dst(std::vector<unsigned>(64));
  match_lanes(src.data, dst.data, stream);
  CHECK(dst.read(stream) == expected);
}

TEST_CASE("emulated kernels: vote functions and __syncthreads_count work") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> counter(std::vector<int>{0});
  count_odd(counter.data, 5, stream);
  CHECK(counter.read(stream) == std::vector<int>{5 * 128});
}

TEST_CASE("emulated kernels: barriers do not wait for threads that have ended") {
  for (const int n : {1, 31, 40, 128}) {
    const Fresh fresh;
    const Stream stream;
    const Array<int> dst(static_cast<size_t>(n));
    end_early(dst.data, n, stream);
    CHECK(dst.read(stream) == std::vector<int>(static_cast<size_t>(n), n));
  }
}

TEST_CASE("emulated kernels: threads that wait forever are an error") {
  const Fresh fresh;
  {
    const Stream stream;
    wait_forever(stream);
    CHECK(cudaStreamSynchronize(stream) == cudaErrorLaunchFailure);
    CHECK(take_failure() == "threads of a block wait for each other forever");
  }
  // The next kernel runs normally.
  const Stream stream;
  const Array<int> dst(size_t{3});
  end_early(dst.data, 3, stream);
  CHECK(dst.read(stream) == std::vector<int>(3, 3));
}

TEST_CASE("emulated kernels: lanes in different warp operations are an error") {
  const Fresh fresh;
  const Stream stream;
  disagree(stream);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorLaunchFailure);
  CHECK(take_failure() == "lanes of a warp call different operations");
}

TEST_CASE("emulated kernels: impossible grids are errors") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> dst(size_t{1});
  CHECK_THROWS(number_threads({1, 1, 1}, {1025, 1, 1}, dst.data, stream));
  CHECK_THROWS(number_threads({0, 1, 1}, {1, 1, 1}, dst.data, stream));
  CHECK_THROWS(number_threads({1, 65536, 1}, {1, 1, 1}, dst.data, stream));
}

}  // namespace dtrain::emulation
