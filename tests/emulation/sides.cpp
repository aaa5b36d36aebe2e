#include "emulation/sides.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "emulation/support.h"

namespace dtrain::emulation {
namespace {

Number number_of(ComputeType type) {
  return type == ComputeType::float32    ? Number::float32
         : type == ComputeType::bfloat16 ? Number::bfloat16
                                         : Number::float16;
}

double epsilon_of(ComputeType type) {
  return type == ComputeType::float32 ? 0 : type == ComputeType::bfloat16 ? 0x1p-8 : 0x1p-11;
}

void check_close(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  int wrong = 0;
  for (size_t i = 0; i < found.size() && wrong < 3; ++i) {
    const double f = found[i], e = expected[i];
    if (f == e || (std::isnan(f) && std::isnan(e))) continue;
    if (std::abs(f - e) <= tolerance * std::max(1.0, std::abs(e))) continue;
    CAPTURE(i);
    CHECK(f == doctest::Approx(e).epsilon(tolerance));
    ++wrong;
  }
}

}  // namespace

Floats random_floats(int64_t n, uint64_t seed, float scale) {
  const Philox random = Philox::of(seed, 0);
  Floats values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = scale * (2 * uniform01(random(0, i).v[0]) - 1);
  return values;
}

void* Side::make(const void* values, size_t bytes, size_t element) {
  const size_t begin = static_cast<size_t>(shift_) * element;
  buffers_.push_back(ops_.context().allocate(begin + std::max<size_t>(bytes, 1)));
  void* data = static_cast<std::byte*>(buffers_.back().data()) + begin;
  if (values) ops_.context().copy_to_device(data, values, bytes);
  return data;
}

size_t Side::element_bytes(char kind) const {
  return kind == 'd' ? 8 : kind == 'f' ? 4 : bytes_of(ops_.compute_type());
}

void* Side::values(const Floats& values, bool result) {
  const Number type = number_of(ops_.compute_type());
  std::vector<std::byte> bytes(values.size() * bytes_of(ops_.compute_type()));
  for (size_t i = 0; i < values.size(); ++i) {
    float rounded = 0;
    std::byte small[4];
    write_number(small, rounded_, 0, static_cast<double>(values[i]));
    rounded = static_cast<float>(read_number(small, rounded_, 0));
    write_number(bytes.data(), type, static_cast<int64_t>(i), static_cast<double>(rounded));
  }
  void* data = make(bytes.data(), bytes.size(), bytes_of(ops_.compute_type()));
  if (result) results_.push_back({data, values.size(), 'c'});
  return data;
}

float* Side::f32(const Floats& values, bool result) {
  float* data = raw(values);
  if (result) results_.push_back({data, values.size(), 'f'});
  return data;
}

double* Side::f64(const std::vector<double>& values, bool result) {
  double* data = raw(values);
  if (result) results_.push_back({data, values.size(), 'd'});
  return data;
}

std::vector<std::byte> Side::read(const Result& result) {
  std::vector<std::byte> bytes(result.count * element_bytes(result.kind));
  ops_.context().copy_to_host(bytes.data(), result.data, bytes.size());
  return bytes;
}

std::vector<std::vector<std::byte>> Side::bits() {
  std::vector<std::vector<std::byte>> all;
  for (const Result& result : results_) all.push_back(read(result));
  return all;
}

std::vector<std::vector<double>> Side::results() {
  std::vector<std::vector<double>> all;
  for (const Result& result : results_) {
    const std::vector<std::byte> bytes = read(result);
    std::vector<double> values(result.count);
    for (size_t i = 0; i < values.size(); ++i) {
      if (result.kind == 'd') {
        std::memcpy(&values[i], bytes.data() + i * 8, 8);
      } else {
        const Number type = result.kind == 'f' ? Number::float32 : number_of(ops_.compute_type());
        values[i] = read_number(bytes.data(), type, static_cast<int64_t>(i));
      }
    }
    all.push_back(values);
  }
  return all;
}

void compare(const std::function<void(Side&)>& run, const Comparison& how) {
  const auto cpu = make_cpu_context({}, {available_cores()[0]}, false);
  cpu->attach();
  const auto cpu_ops = make_cpu_ops(*cpu);
  for (const ComputeType type : {ComputeType::float32, ComputeType::bfloat16, ComputeType::float16}) {
    CAPTURE(static_cast<int>(type));
    Side expected(*cpu_ops, number_of(type), 0);
    run(expected);
    const auto right = expected.results();
    const double tolerance = static_cast<double>(how.tolerance) + how.rounding * epsilon_of(type);
    for (const int64_t shift : how.shifts) {
      CAPTURE(shift);
      std::vector<std::vector<std::byte>> first;
      for (uint64_t seed = 1; seed <= 2; ++seed) {
        const Fresh fresh({.seed = seed});
        const auto gpu = make_gpu_context({DeviceId::Kind::gpu, 0}, how.deterministic);
        gpu->attach();
        const auto gpu_ops = make_cuda_ops(*gpu, {type, false, how.deterministic});
        Side found(*gpu_ops, number_of(type), shift);
        run(found);
        const auto values = found.results();
        REQUIRE(values.size() == right.size());
        for (size_t i = 0; i < values.size(); ++i) {
          CAPTURE("result " + std::to_string(i));
          check_close(values[i], right[i], tolerance);
        }
        if (seed == 1) first = found.bits();
        CHECK(found.bits() == first);
      }
    }
  }
}

}  // namespace dtrain::emulation
