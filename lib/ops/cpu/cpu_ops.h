// The op vocabulary on the CPU: oneDNN for what has its primitives, kernels of our own for the rest.
#pragma once

#include <new>
#include <string>
#include <vector>

#include "ops/cpu/kernels/table.h"
#include "ops/cpu/onednn/call.h"
#include "ops/cpu/parallel.h"
#include "ops/ops.h"

namespace dtrain::cpu {

/// The compute type here.
inline float* f32(void* data) {
  return static_cast<float*>(data);
}
inline const float* f32(const void* data) {
  return static_cast<const float*>(data);
}

/// Throws Unsupported for a conversion that the CPU does not have.
inline void check_converts(DType from, DType to) {
  if (to == DType::float32 && from != DType::bfloat16 && from != DType::float16) return;
  throw Unsupported("the CPU does not convert " + std::string(name_of(from)) + " to " +
                    std::string(name_of(to)));
}

/// What `make` makes of oneDNN's primitives, whose refusal becomes Unsupported.
template <class Make>
auto prepared(const char* what, Make&& make) try {
  return make();
} catch (const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
  throw Unsupported(std::string("oneDNN has no ") + what + " of these sizes");
}

/// Belongs to its context's thread. Results are the same bits for the same number of threads.
class CpuOps final : public Ops {
 public:
  CpuOps(Context& context, const Kernels& kernels);

  Context& context() override { return context_; }
  DType compute_type() const override { return DType::float32; }
  const Engine& engine() const { return engine_; }
  const Kernels& kernels() const { return kernels_; }
  int threads() const { return threads_; }

  std::unique_ptr<Matmul> matmul(const MatmulSpec& spec) override;
  std::unique_ptr<Convolution> convolution(const ConvolutionSpec& spec) override;
  std::unique_ptr<Pooling> pooling(const PoolingSpec& spec) override;
  std::unique_ptr<BatchNormalization> batch_normalization(const BatchNormalizationSpec& spec) override;
  std::unique_ptr<Reorder> reorder(const Shape& shape, Layout from, Layout to) override;

  void fill(float* dst, float value, int64_t n) override;
  void copy(void* dst, const void* src, int64_t n) override;
  void cast(void* dst, DType to, const void* src, DType from, int64_t n) override;
  void scale_add(float* dst, const float* src, float alpha, float beta, int64_t n) override;
  void sum(void* dst, std::span<const void* const> srcs, const ActivationSpec& activation,
           int64_t n) override;
  void multiply(void* dst, std::span<const void* const> srcs, int64_t n) override;
  void activation_forward(const ActivationSpec& spec, const void* src, void* dst, int64_t n) override;
  void activation_backward(const ActivationSpec& spec, const void* saved, const void* diff_dst,
                           void* diff_src, int64_t n) override;
  void sum_backward(const ActivationSpec& spec, const void* saved, std::span<const void* const> diff_dsts,
                    void* diff_src, int64_t n) override;
  void dropout(void* dst, const void* src, float rate, const Philox& random, const uint64_t* step,
               uint64_t first_sample, int64_t samples, int64_t per_sample) override;
  void add_bias(void* dst, const void* src, const void* bias, int64_t rows, int64_t columns) override;
  void column_sum(float* dst, const void* src, int64_t rows, int64_t columns) override;
  void softmax_forward(const void* src, void* dst, int64_t rows, int64_t columns) override;
  void softmax_backward(const void* dst, const void* diff_dst, void* diff_src, int64_t rows,
                        int64_t columns) override;
  void layer_normalization_forward(const LayerNormalizationArguments& args) override;
  void layer_normalization_backward(const LayerNormalizationBackwardArguments& args) override;
  void copy_block(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows,
                  int64_t columns) override;
  void pad_images(const Padding2& padding, const void* src, void* padded, const Shape& src_shape) override;
  void crop_images(const Padding2& padding, const void* padded, void* dst, const Shape& dst_shape) override;
  void embedding_forward(const float* table, const int32_t* indices, void* dst, int64_t n, int64_t table_rows,
                         int64_t columns) override;
  void embedding_backward(const int32_t* indices, const void* diff_dst, float* diff_table, int64_t n,
                          int64_t table_rows, int64_t columns) override;
  void gather_rows(const GatherSpec& spec, const void* src, const int64_t* rows, int64_t n,
                   void* dst) override;

  void cross_entropy_loss(const CrossEntropySpec& spec, const void* prediction, const View& target,
                          float scale, const float* loss_scale, void* diff_prediction, double* total,
                          int64_t rows, int64_t columns) override;
  void elementwise_loss(const ElementwiseLossSpec& spec, const void* prediction, const float* target,
                        float scale, const float* loss_scale, void* diff_prediction, double* total,
                        int64_t rows, int64_t columns) override;
  void metric(const MetricSpec& spec, const void* prediction, const View& target, double* total, int64_t rows,
              int64_t columns) override;
  void sum_of_squares(const float* src, double* squares, int64_t n) override;
  void update_gradient_scale(const GradientRule& rule, const double* squares, StepState* state) override;
  void update(const OptimizerRule& rule, const UpdateArguments& args) override;

 private:
  /// One thread's part of a sum, on a cache line of its own.
  struct alignas(64) Partial {
    double value;
  };

  /// body(begin, end) on each thread's share of n elements.
  template <class Body>
  void each(int64_t n, Body&& body) {
    parallel(threads_, n, 16, 1, [&](int64_t begin, int64_t end, int) { body(begin, end); });
  }
  /// body(begin, end) on each thread's share of rows.
  template <class Body>
  void each_row(int64_t rows, int64_t columns, Body&& body) {
    parallel(threads_, rows, 1, columns, [&](int64_t begin, int64_t end, int) { body(begin, end); });
  }
  /// The sum of body(begin, end) over the threads' shares, added in the threads' order.
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

  Context& context_;
  const Kernels& kernels_;
  Engine engine_;
  int threads_;
  std::vector<Partial> partials_;
  std::vector<float> column_partials_;  // of column_sum where rows are shared
};

}  // namespace dtrain::cpu
