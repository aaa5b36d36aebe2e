// The op vocabulary on a GPU: cuBLASLt, cuDNN, and kernels of our own.
#pragma once

#include "device/cuda/context.h"
#include "ops/ops.h"

namespace dtrain::cuda {

/// Belongs to its context's thread. Everything is enqueued on the context's compute stream, waits for nothing
/// and allocates nothing, so that it can be captured. Results are the same bits run after run, but for the
/// algorithms that cuBLASLt and cuDNN choose where the context is not deterministic.
class CudaOps final : public Ops {
 public:
  CudaOps(CudaContext& context, const GpuMath& math)
      : context_(context), math_(math), partials_(context.allocate(kPartials * sizeof(double))) {}

  CudaContext& context() override { return context_; }
  DType compute_type() const override { return math_.type; }
  const GpuMath& math() const { return math_; }

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
  cudaStream_t stream() const { return context_.compute(); }
  /// Where the blocks of a kernel leave their sums, [kPartials] at most, for the next kernel to add in order.
  double* partials() const { return static_cast<double*>(partials_.data()); }
  static constexpr int kPartials = 8192;

  CudaContext& context_;
  GpuMath math_;
  Buffer partials_;
};

}  // namespace dtrain::cuda
