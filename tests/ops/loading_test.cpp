// Tests the gathering and conversion of rows of stored data for a batch.
#include <array>
#include <numeric>

#include <doctest/doctest.h>

#include "ops/fixture.h"

namespace dtrain::test {
namespace {

constexpr int64_t kStored = 23;

/// Returns the stored values: integers from 0 to 255, which every type represents exactly (bfloat16 up to
/// 256).
std::vector<int> numbers(int64_t row_elements) {
  const Floats random = random_floats(kStored * row_elements, 1);
  std::vector<int> values;
  for (const float x : random) values.push_back(static_cast<int>(128 * (x + 1)));
  return values;
}

struct Case {
  GatherSpec spec;
  bool gathered;  // loads rows in a given order; if false, in storage order
};

/// Returns the indices of the rows that a case loads.
std::vector<int64_t> rows_of(const Case& c) {
  if (!c.gathered) return {0, 1, 2, 3, 4};
  return {22, 0, 7, 7, 13};
}

/// Returns scale * src[row] + offset for each row of the batch, in float32.
Floats expected_of(const Case& c, const std::vector<int>& src, const Floats& scale, const Floats& offset) {
  Floats expected;
  for (const int64_t row : rows_of(c)) {
    for (int64_t e = 0; e < c.spec.row_elements; ++e) {
      const float x = static_cast<float>(src[static_cast<size_t>(row * c.spec.stride() + e)]);
      const size_t at = c.spec.scale_elements == 1 ? 0 : static_cast<size_t>(e);
      expected.push_back(scale.empty() ? x : scale[at] * x + offset[at]);
    }
  }
  return expected;
}

/// Loads rows of type T as type To, and compares the results. If To is void, the rows are loaded in the
/// compute type.
template <class T, class To>
void check(Device& device, Case c, const Floats& scale, const Floats& offset) {
  const auto src = numbers(c.spec.stride());
  const auto stored = device.array(std::vector<T>(src.begin(), src.end()));
  const auto own_scale = device.array(scale), own_offset = device.array(offset);
  if (!scale.empty()) {
    c.spec.scale = own_scale.data();
    c.spec.offset = own_offset.data();
    c.spec.scale_elements = static_cast<int64_t>(scale.size());
  }
  const auto rows = device.array(rows_of(c));
  const auto n = static_cast<int64_t>(rows_of(c).size());
  const Floats expected = expected_of(c, src, scale, offset);
  const auto load = [&](void* dst) {
    device.ops().gather_rows(c.spec, stored.data(), {c.gathered ? rows.data() : nullptr}, n, dst);
  };
  // The tolerance allows two roundings (of a product and of a sum) or one (of a fused multiply-add).
  if constexpr (std::is_void_v<To>) {
    const TypedArray dst = device.typed(expected.size());
    load(dst.data());
    check_close(dst.read(), expected, device.tolerance(1e-6));
  } else {
    const auto dst = device.array(std::vector<To>(expected.size(), To{77}));
    load(dst.data());
    const std::vector<To> found = dst.read();
    check_close(Floats(found.begin(), found.end()), expected, scale.empty() ? 0 : 1e-6);
  }
}

template <class T>
void check_all(Device& device, DType type) {
  const std::pair<int64_t, int64_t> sizes[] = {{1, 0},  {7, 0},   {16, 0}, {784, 0},
                                               {7, 10}, {16, 19}, {16, 48}};
  for (const auto& [row_elements, src_elements] : sizes) {
    for (const bool gathered : {false, true}) {
      CAPTURE(row_elements);
      CAPTURE(src_elements);
      CAPTURE(gathered);
      const auto with = [type, elements = row_elements, stride = src_elements, gathered](DType to) {
        return Case{{.from = type, .to = to, .row_elements = elements, .src_elements = stride}, gathered};
      };
      const DType computes = device.math.type;
      const Floats one{0.00392156886f}, more{-0.5f};
      const Floats each = random_floats(row_elements, 2, 0.01f), plus = random_floats(row_elements, 3);
      check<T, void>(device, with(computes), {}, {});
      check<T, void>(device, with(computes), one, more);
      check<T, void>(device, with(computes), each, plus);
      check<T, T>(device, with(type), {}, {});
      check<T, float>(device, with(DType::float32), one, more);
      check<T, float>(device, with(DType::float32), each, plus);
    }
  }
}

}  // namespace

DEVICE_TEST_CASE("stored rows are gathered, converted and scaled") {
  for (const size_t shift : {0, 1}) {
    device.shift = shift;
    check_all<uint8_t>(device, DType::uint8);
    check_all<int32_t>(device, DType::int32);
    check_all<float>(device, DType::float32);
  }
}

DEVICE_TEST_CASE("arrays are cast between types") {
  for (const size_t shift : {0, 1}) {
    device.shift = shift;
    for (const int64_t n : {1, 7, 1000}) {
      CAPTURE(n);
      const DType computes = device.math.type;
      const Floats numbers = random_floats(n, 1);
      const auto floats = device.array(numbers);
      const TypedArray narrow = device.typed(numbers.size());
      device.ops().cast(narrow.data(), computes, floats.data(), DType::float32, n);
      CHECK(narrow.read() == device.kept(numbers));
      const auto wide = device.floats(numbers.size());
      device.ops().cast(wide.data(), DType::float32, narrow.data(), computes, n);
      CHECK(wide.read() == device.kept(numbers));

      std::vector<int32_t> integers(numbers.size());
      std::iota(integers.begin(), integers.end(), -3);
      const auto own_integers = device.array(integers);
      device.ops().cast(wide.data(), DType::float32, own_integers.data(), DType::int32, n);
      CHECK(wide.read() == Floats(integers.begin(), integers.end()));
      const auto same = device.array(std::vector<int32_t>(integers.size()));
      device.ops().cast(same.data(), DType::int32, own_integers.data(), DType::int32, n);
      CHECK(same.read() == integers);
    }
  }
}

TEST_CASE("an unsupported conversion on the CPU is an error") {
  const auto device = cpu_device();
  std::array<uint8_t, 4> bytes{};
  Floats values(4);
  CHECK_THROWS_AS(device->ops().cast(values.data(), DType::float32, bytes.data(), DType::float16, 2),
                  Unsupported);
  CHECK_THROWS_AS(device->ops().cast(bytes.data(), DType::uint8, values.data(), DType::float32, 4),
                  Unsupported);
  CHECK_THROWS_AS(device->ops().gather_rows({.to = DType::bfloat16}, values.data(), {}, 1, bytes.data()),
                  Unsupported);
}

}  // namespace dtrain::test
