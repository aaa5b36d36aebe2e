// Common parts of the operation benchmarks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "device/cuda/context.h"
#include "ops/ops.h"

namespace dtrain::bench {

/// Number of parameters of the wide-mlp workload.
constexpr int64_t kParameters = 41157101;

/// A GPU with its operations, random input data, and a timer.
class Bench {
 public:
  explicit Bench(const GpuMath& math);

  cuda::CudaContext& context() { return context_; }
  Ops& ops() { return *ops_; }
  const GpuMath& math() const { return math_; }

  /// Returns n random numbers between -scale and scale. floats() returns them as float32, numbers() in the
  /// compute type. The data must be random, because a GPU that multiplies zeros draws less power and runs
  /// faster than in real training.
  Buffer floats(int64_t n, float scale = 1);
  Buffer numbers(int64_t n, float scale = 1);
  /// Returns n zeros of the compute type.
  Buffer room(int64_t n) { return context_.allocate(static_cast<size_t>(n) * bytes_of(math_.type)); }

  /// Returns the seconds that one run of the enqueued work takes. After some warm-up runs, the time is
  /// measured in windows of many runs each; the result is the median of the windows.
  double seconds(const std::function<void()>& work);

 private:
  float milliseconds(const std::function<void()>& work, int runs);
  Buffer upload(int64_t n, size_t element, const void* pattern);

  GpuMath math_;
  cuda::CudaContext context_;
  std::unique_ptr<Ops> ops_;
  cuda::EventHandle begin_, end_;
};

/// Returns "bf16", "tf32" or "float32".
std::string name_of(const GpuMath& math);

/// Returns a row of the result. `bytes` is the minimum number of bytes that the operation must read and
/// write, and `operations` is its number of multiplications and additions. If one of them is 0, the row omits
/// it.
Json row(const std::string& name, double seconds, double bytes, double operations);

// Each function returns an array of rows.
Json measure_optimizer();
Json measure_products();
Json measure_images();
Json measure_convolutions();
Json measure_collective();

/// Writes a checkpoint's weights to `file`, one array after another, as stored in memory. Returns their
/// layers, names and shapes.
Json export_weights(const std::string& checkpoint, const std::string& file);

}  // namespace dtrain::bench
