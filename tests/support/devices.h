// The devices on which operations and layers are tested: all present devices, arrays in their memory, and
// their precision. Test cases are the same for all devices and never access device memory directly.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/philox.h"
#include "device/device.h"
#include "ops/ops.h"
#include "support/compute_types.h"

namespace dtrain::test {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// Returns uniform random numbers in [-scale, scale), reproducible by seed.
inline Floats random_floats(int64_t n, uint64_t seed, float scale = 1) {
  const Philox random = Philox::of(seed, 0);
  Floats values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = scale * (2 * uniform01(random(0, i).v[0]) - 1);
  return values;
}

/// Device memory that starts `offset` bytes after an aligned address.
class DeviceBytes {
 public:
  DeviceBytes() = default;
  DeviceBytes(Context& context, const std::vector<std::byte>& bytes, size_t offset)
      : context_(&context),
        buffer_(context.allocate(offset + bytes.size())),
        offset_(offset),
        size_(bytes.size()) {
    if (size_) context.copy_to_device(data(), bytes.data(), size_);
  }
  std::byte* data() const { return static_cast<std::byte*>(buffer_.data()) + offset_; }
  std::vector<std::byte> read() const {
    std::vector<std::byte> bytes(size_);
    if (size_) context_->copy_to_host(bytes.data(), data(), size_);
    return bytes;
  }

 private:
  Context* context_ = nullptr;
  Buffer buffer_;
  size_t offset_ = 0, size_ = 0;
};

/// An array of T in device memory.
template <class T>
class Array {
 public:
  Array() = default;
  Array(Context& context, const std::vector<T>& values, size_t shift)
      : bytes_(context, bytes_of_all(values), shift * sizeof(T)) {}
  T* data() const { return reinterpret_cast<T*>(bytes_.data()); }
  DeviceBytes bytes() && { return std::move(bytes_); }
  std::vector<T> read() const {
    const std::vector<std::byte> bytes = bytes_.read();
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  static std::vector<std::byte> bytes_of_all(const std::vector<T>& values) {
    const auto* first = reinterpret_cast<const std::byte*>(values.data());
    return {first, first + values.size() * sizeof(T)};
  }
  DeviceBytes bytes_;
};

/// An array of the device's compute type, in device memory.
class TypedArray {
 public:
  TypedArray() = default;
  TypedArray(Context& context, DType type, const Floats& values, size_t shift)
      : type_(type), bytes_(context, bytes_of_values(values, type), shift * dtrain::bytes_of(type)) {}
  void* data() const { return bytes_.data(); }
  DeviceBytes bytes() && { return std::move(bytes_); }
  /// Address of element `first`.
  void* from(size_t first) const { return bytes_.data() + first * dtrain::bytes_of(type_); }
  Floats read() const { return values_of_bytes(bytes_.read(), type_); }

 private:
  DType type_ = DType::float32;
  DeviceBytes bytes_;
};

/// A device with its operations. Belongs to the thread that created it.
class Device {
 public:
  Device(std::string called, std::unique_ptr<Context> context, std::unique_ptr<Ops> ops,
         const GpuMath& computes)
      : name(std::move(called)), math(computes), context_(std::move(context)), ops_(std::move(ops)) {}

  Ops& ops() const { return *ops_; }
  Context& context() const { return *context_; }
  bool is_gpu() const { return context_->device().kind == DeviceId::Kind::gpu; }

  const std::string name;
  const GpuMath math;
  /// Offset of new arrays from an aligned address, in elements.
  size_t shift = 0;

  /// Returns the values after storing them in an array of the compute type.
  Floats kept(Floats values) const {
    for (float& value : values) value = rounded(value, format_of(math.type));
    return values;
  }
  /// Rounds each value to a number that an array of the compute type represents exactly. If matrix products
  /// use TF32, the number is also exact in TF32.
  Floats exact(Floats values) const {
    values = kept(std::move(values));
    for (float& value : values) value = math.tf32 ? rounded(value, kTf32) : value;
    return values;
  }
  /// Returns uniform random numbers in [-scale, scale), rounded by exact().
  Floats random(int64_t n, uint64_t seed, float scale = 1) const {
    return exact(random_floats(n, seed, scale));
  }

  TypedArray typed(const Floats& values) const { return {*context_, math.type, values, shift}; }
  template <class T>
  Array<T> array(const std::vector<T>& values) const {
    return {*context_, values, shift};
  }
  /// Returns an array for results, filled with NaNs.
  TypedArray typed(size_t n) const { return typed(Floats(n, NAN)); }
  Array<float> floats(size_t n) const { return array(Floats(n, NAN)); }
  /// Returns scratch or saved memory, filled with NaNs.
  Array<float> memory(size_t bytes) const { return {*context_, Floats((bytes + 3) / 4, NAN), 0}; }

  /// Returns the tolerance for a result. `error` is the relative error of the result in float32 arithmetic,
  /// and `roundings` is the number of times that the result is rounded to the compute type. If the result is
  /// smaller than about 1, the tolerance is absolute.
  double tolerance(double error, int roundings = 1) const {
    return math.type == DType::float32 ? error
                                       : error + roundings * std::ldexp(1.0, -format_of(math.type).bits);
  }

 private:
  std::unique_ptr<Context> context_;
  std::unique_ptr<Ops> ops_;
};

/// Returns a CPU device with one thread.
inline std::unique_ptr<Device> cpu_device() {
  auto context = make_cpu_context({}, {available_cores().front()}, false);
  context->attach();
  auto ops = make_cpu_ops(*context);
  return std::make_unique<Device>("cpu", std::move(context), std::move(ops), GpuMath{});
}

inline std::unique_ptr<Device> gpu_device(const GpuMath& math) {
  auto context = make_gpu_context({DeviceId::Kind::gpu, 0}, math.deterministic);
  context->attach();
  auto ops = make_cuda_ops(*context, math);
  const char* type = math.type == DType::bfloat16  ? "bfloat16"
                     : math.type == DType::float16 ? "float16"
                     : math.tf32                   ? "tf32"
                                                   : "float32";
  return std::make_unique<Device>(std::string("gpu, ") + type + (math.deterministic ? ", deterministic" : ""),
                                  std::move(context), std::move(ops), math);
}

/// Calls use(device) with the first GPU, once for each of its compute types. To be called by tests of the
/// suite "gpu", which are skipped on a machine without a GPU (support/gpu.h).
template <class Use>
void on_every_gpu(Use&& use) {
  using enum DType;
  for (const GpuMath& math :
       {GpuMath{float32, false, false}, GpuMath{float32, false, true}, GpuMath{float32, true, false},
        GpuMath{bfloat16, false, true}, GpuMath{float16, false, false}}) {
    const auto device = gpu_device(math);
    CAPTURE(device->name);
    use(*device);
  }
}

}  // namespace dtrain::test

/// Defines a test case as a function with the argument `device`. In the suite "cpu", the function runs for
/// each device of on_every_cpu(). In the suite "gpu", it runs on the GPU.
#define DTRAIN_DEVICE_CASE(function, name)                   \
  static void function(dtrain::test::Device&);               \
  TEST_CASE(name* doctest::test_suite("cpu")) {              \
    dtrain::test::on_every_cpu(function);                    \
  }                                                          \
  TEST_CASE("on a GPU: " name* doctest::test_suite("gpu")) { \
    dtrain::test::on_every_gpu(function);                    \
  }                                                          \
  static void function([[maybe_unused]] dtrain::test::Device& device)
#define DEVICE_TEST_CASE(name) DTRAIN_DEVICE_CASE(DOCTEST_ANONYMOUS(device_case_), name)
