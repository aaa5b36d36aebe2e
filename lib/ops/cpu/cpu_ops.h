// Implementation of Ops on the CPU. It uses oneDNN where oneDNN has a suitable primitive, and dtrain's own
// kernels otherwise.
#pragma once

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "ops/cpu/kernels/table.h"
#include "ops/cpu/onednn/call.h"
#include "ops/cpu/parallel.h"
#include "ops/ops.h"

namespace dtrain::cpu {

/// Casts a pointer to float*, because the CPU computes in float32.
inline float* f32(void* data) {
  return static_cast<float*>(data);
}
inline const float* f32(const void* data) {
  return static_cast<const float*>(data);
}

/// Writes this replica's contribution to the mean and variance of the global batch: the mean and variance of
/// the replica's rows, times args.share. The moving averages are updated from the sum of all contributions.
inline void give_statistics(const BatchNormalization::BackwardArguments& args, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    args.diff_mean[c] = args.share * args.mean[c];
    args.diff_variance[c] = args.share * args.variance[c];
  }
}

/// Throws Unsupported if the CPU cannot convert `from` to `to`.
inline void check_converts(DType from, DType to) {
  if (to == DType::float32 && from != DType::bfloat16 && from != DType::float16) return;
  throw Unsupported("the CPU cannot convert " + std::string(name_of(from)) + " to " +
                    std::string(name_of(to)));
}

/// Returns make(), which creates oneDNN primitives. Throws Unsupported if oneDNN has no implementation, and
/// std::bad_alloc if the memory is exhausted.
template <class Make>
auto prepared(const char* what, Make&& make) try {
  return make();
} catch (const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
  throw Unsupported(std::string("oneDNN has no implementation of a ") + what + " with these sizes");
}

/// The operations of a CPU. They may only be called by the thread of their context. Results are bitwise
/// reproducible for a given number of threads.
class CpuOps final : public Ops {
 public:
  CpuOps(Context& context, const Kernels& kernels, bool independent_rows = false);

  Context& context() override { return context_; }
  DType compute_type() const override { return DType::float32; }
  const Engine& engine() const { return engine_; }
  const Kernels& kernels() const { return kernels_; }
  int threads() const { return threads_; }

#define DTRAIN_OP(result, name, arguments) result name arguments override;
#include "ops/ops.inc"

 private:
  /// One thread's part of a sum, on a separate cache line.
  struct alignas(64) Partial {
    double value;
  };

  /// Calls body(begin, end) on each thread's share of n elements.
  template <class Body>
  void each(int64_t n, Body&& body) {
    parallel(threads_, n, 16, 1, [&](int64_t begin, int64_t end, int) { body(begin, end); });
  }
  /// Calls body(begin, end) on each thread's share of rows.
  template <class Body>
  void each_row(int64_t rows, int64_t columns, Body&& body) {
    parallel(threads_, rows, 1, columns, [&](int64_t begin, int64_t end, int) { body(begin, end); });
  }
  /// Returns the sum of body(begin, end) over the threads' shares, added in thread order.
  template <class Body>
  double total_of(int64_t n, int64_t unit, int64_t work, Body&& body) {
    for (Partial& partial : partials_) partial.value = 0;
    parallel(threads_, n, unit, work, [&](int64_t begin, int64_t end, int thread) {
      partials_[static_cast<size_t>(thread)].value = body(begin, end);
    });
    double total = 0;
    for (const Partial& partial : partials_) total += partial.value;
    return total;
  }

  /// If there are at least this number of columns per thread, the columns are divided among the threads.
  /// Otherwise, the rows are divided.
  static constexpr int64_t kColumnsPerThread = 64;

  /// Writes the sum of each column to dst. The function sum(dst, first_column, last_column, first_row,
  /// last_row) must write the sums of the given columns over the given rows. Results are bitwise reproducible
  /// for a given number of threads.
  template <class Sum>
  void sum_by_columns(float* dst, int64_t rows, int64_t columns, Sum&& sum) {
    if (columns >= threads_ * kColumnsPerThread || rows < threads_) {
      parallel(threads_, columns, 16, rows,
               [&](int64_t begin, int64_t end, int) { sum(dst, begin, end, int64_t{0}, rows); });
      return;
    }
    if (threads_ == 1 || rows * columns < kWorthSharing) {
      sum(dst, int64_t{0}, columns, int64_t{0}, rows);
      return;
    }
    // Each thread sums its rows; the partial sums are added in thread order.
    const int64_t stride = threads_ * kColumnsPerThread;
    parallel(threads_, rows, 1, columns, [&](int64_t begin, int64_t end, int thread) {
      sum(column_partials_.data() + thread * stride, int64_t{0}, columns, begin, end);
    });
    std::copy_n(column_partials_.data(), columns, dst);
    for (int thread = 1; thread < threads_; ++thread) {
      const float* partial = column_partials_.data() + thread * stride;
      for (int64_t c = 0; c < columns; ++c) dst[c] += partial[c];
    }
  }

  Context& context_;
  const Kernels& kernels_;
  Engine engine_;
  int threads_;
  bool independent_rows_;  // each row of a matrix product is computed independently of the others
  std::vector<Partial> partials_;
  std::vector<float> column_partials_;               // for sum_by_columns() when threads divide the rows
  std::vector<std::vector<double>> count_partials_;  // for count(), one per thread except the first
};

}  // namespace dtrain::cpu
