// What the measurements of operations share.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "device/cuda/context.h"
#include "ops/ops.h"

namespace dtrain::bench {

/// The parameters of the wide-mlp workload.
constexpr int64_t kParameters = 41157101;

/// A GPU and its operations, random numbers to compute with, and a clock.
class Bench {
 public:
  explicit Bench(const GpuMath& math);

  cuda::CudaContext& context() { return context_; }
  Ops& ops() { return *ops_; }
  const GpuMath& math() const { return math_; }

  /// n numbers between -scale and scale, float32 or of the compute type: a GPU that multiplies zeros draws
  /// less power and runs faster than one that trains.
  Buffer floats(int64_t n, float scale = 1);
  Buffer numbers(int64_t n, float scale = 1);
  /// n zeros of the compute type.
  Buffer room(int64_t n) { return context_.allocate(static_cast<size_t>(n) * bytes_of(math_.type)); }

  /// Of one run of what this enqueues: the median of windows of many runs each, behind some that do not
  /// count.
  double seconds(const std::function<void()>& work);

 private:
  float milliseconds(const std::function<void()>& work, int runs);
  Buffer upload(int64_t n, size_t element, const void* pattern);

  GpuMath math_;
  cuda::CudaContext context_;
  std::unique_ptr<Ops> ops_;
  cuda::EventHandle begin_, end_;
};

/// "bf16", "tf32", "float32".
std::string name_of(const GpuMath& math);

/// A line of the result; `bytes` are the fewest that must be moved, `operations` the multiplications and
/// additions. What is 0 is left out.
Json row(const std::string& name, double seconds, double bytes, double operations);

// Each gives an array of rows.
Json measure_optimizer();
Json measure_products();
Json measure_images();
Json measure_convolutions();
Json measure_collective();

/// Writes a checkpoint's weights to `file`, one array behind the other, as they lie in memory; gives their
/// layers, names and shapes.
Json export_weights(const std::string& checkpoint, const std::string& file);

}  // namespace dtrain::bench
