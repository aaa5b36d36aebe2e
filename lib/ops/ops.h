// The op vocabulary: everything that layers, losses and optimizers ask of a device. The CPU (oneDNN and
// kernels of our own) implements it; a GPU will. All pointers are memory of the Context's device. Arrays are
// row major float32 unless said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/philox.h"
#include "base/view.h"
#include "device/device.h"
#include "ops/specs.h"

namespace dtrain {

// Prepared operations: made once per shape by a plan, run every step. `scratch` is at least scratch_bytes()
// of memory that holds nothing between calls; `saved` at least saved_bytes() that the forward call writes and
// the backward call reads.

/// C = act(op(A) op(B) + bias), C of [m, n]; bias of [n] (null where the spec has none).
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual size_t scratch_bytes() const = 0;
  virtual void run(const float* a, const float* b, const float* bias, float* c, void* scratch) = 0;
};

/// Two-dimensional (cross-)correlation, as deep learning's convolutions are. Images in the layouts that the
/// operation names; kernels and their gradients always in Keras's: [height, width, channels, filters],
/// depthwise [height, width, channels, multiplier].
class Convolution {
 public:
  virtual ~Convolution() = default;
  /// What it wants of src and diff_src, and gives as dst (and wants as diff_dst): the fastest that the
  /// backend has.
  virtual Layout src_layout() const = 0;
  virtual Layout dst_layout() const = 0;
  virtual size_t scratch_bytes() const = 0;
  virtual void forward(const float* src, const float* kernel, const float* bias, float* dst,
                       void* scratch) = 0;
  /// diff_dst is the gradient before the epilogue's activation.
  virtual void backward_data(const float* diff_dst, const float* kernel, float* diff_src, void* scratch) = 0;
  virtual void backward_filter(const float* src, const float* diff_dst, float* diff_kernel, float* diff_bias,
                               void* scratch) = 0;
};

class Pooling {
 public:
  virtual ~Pooling() = default;
  virtual size_t scratch_bytes() const = 0;
  virtual size_t saved_bytes() const = 0;
  virtual void forward(const float* src, float* dst, void* saved, void* scratch) = 0;
  virtual void backward(const float* diff_dst, float* diff_src, const void* saved, void* scratch) = 0;
};

/// Normalisation over all axes but the channels. gamma or beta (and their gradients) are null where the spec
/// leaves them out.
class BatchNormalization {
 public:
  virtual ~BatchNormalization() = default;
  virtual size_t scratch_bytes() const = 0;
  virtual size_t saved_bytes() const = 0;
  /// By the batch's own statistics, which it writes: mean and (biased) variance, of [channels].
  virtual void forward_training(const float* src, const float* gamma, const float* beta, float* dst,
                                float* mean, float* variance, void* saved, void* scratch) = 0;
  /// By statistics that are given.
  virtual void forward_inference(const float* src, const float* gamma, const float* beta, const float* mean,
                                 const float* variance, float* dst, void* scratch) = 0;
  /// diff_dst is the gradient after the fused activation, where the spec has one. diff_src may be diff_dst.
  virtual void backward(const float* src, const float* gamma, const float* mean, const float* variance,
                        const float* diff_dst, float* diff_src, float* diff_gamma, float* diff_beta,
                        const void* saved, void* scratch) = 0;
};

/// From one memory layout of an image batch to another.
class Reorder {
 public:
  virtual ~Reorder() = default;
  virtual void run(const float* src, float* dst) = 0;
};

/// One device's operations, bound to a Context and used by its thread only.
class Ops {
 public:
  virtual ~Ops() = default;
  virtual Context& context() = 0;

  virtual std::unique_ptr<Matmul> matmul(const MatmulSpec& spec) = 0;
  virtual std::unique_ptr<Convolution> convolution(const ConvolutionSpec& spec) = 0;
  virtual std::unique_ptr<Pooling> pooling(const PoolingSpec& spec) = 0;
  virtual std::unique_ptr<BatchNormalization> batch_normalization(const BatchNormalizationSpec& spec) = 0;
  /// `shape` is [n, height, width, channels]; the channels fill whole blocks.
  virtual std::unique_ptr<Reorder> reorder(const Shape& shape, Layout from, Layout to) = 0;

  // Elementwise, over n elements. dst may be any of the sources.

  virtual void fill(float* dst, float value, int64_t n) = 0;
  virtual void copy(float* dst, const float* src, int64_t n) = 0;
  /// dst = alpha * src + beta * dst; with beta 0 dst is not read.
  virtual void scale_add(float* dst, const float* src, float alpha, float beta, int64_t n) = 0;
  /// dst = act(sum of srcs), in order. Activations with `from_output` only.
  virtual void sum(float* dst, std::span<const float* const> srcs, const ActivationSpec& activation,
                   int64_t n) = 0;
  /// dst = product of srcs.
  virtual void multiply(float* dst, std::span<const float* const> srcs, int64_t n) = 0;
  virtual void activation_forward(const ActivationSpec& spec, const float* src, float* dst, int64_t n) = 0;
  /// `saved` is the output where from_output(spec), else the input. diff_src may be diff_dst.
  virtual void activation_backward(const ActivationSpec& spec, const float* saved, const float* diff_dst,
                                   float* diff_src, int64_t n) = 0;
  /// diff_src = activation_backward(sum of diff_dsts): the gradients that several readers of one value give
  /// back, summed, and the activation that made the value undone, in one pass.
  virtual void sum_backward(const ActivationSpec& spec, const float* saved,
                            std::span<const float* const> diff_dsts, float* diff_src, int64_t n) = 0;
  /// Inverted dropout on [samples, per_sample]: keeps an element with probability 1 - rate and divides it by
  /// that. Element e of sample s is decided by word e % 4 of random(high = step, low = (first_sample + s) <<
  /// 32 | e / 4). The backward pass is the same call on gradients.
  virtual void dropout(float* dst, const float* src, float rate, const Philox& random, uint64_t step,
                       uint64_t first_sample, int64_t samples, int64_t per_sample) = 0;

  // Rows and columns.

  /// dst[r, c] = src[r, c] + bias[c].
  virtual void add_bias(float* dst, const float* src, const float* bias, int64_t rows, int64_t columns) = 0;
  /// dst[c] = sum over r of src[r, c].
  virtual void column_sum(float* dst, const float* src, int64_t rows, int64_t columns) = 0;
  virtual void softmax_forward(const float* src, float* dst, int64_t rows, int64_t columns) = 0;
  virtual void softmax_backward(const float* dst, const float* diff_dst, float* diff_src, int64_t rows,
                                int64_t columns) = 0;
  /// Each row by its own mean and (biased) variance; those are written as mean[r] and inverse_deviation[r].
  virtual void layer_normalization_forward(const float* src, const float* gamma, const float* beta,
                                           float epsilon, float* dst, float* mean, float* inverse_deviation,
                                           int64_t rows, int64_t columns) = 0;
  /// gamma may be null, and diff_gamma and diff_beta with their parameters.
  virtual void layer_normalization_backward(const float* src, const float* gamma, const float* mean,
                                            const float* inverse_deviation, const float* diff_dst,
                                            float* diff_src, float* diff_gamma, float* diff_beta,
                                            int64_t rows, int64_t columns) = 0;
  /// Copies a [rows, columns] block between arrays whose rows are `dst_stride` and `src_stride` elements
  /// apart (concatenate).
  virtual void copy_block(float* dst, int64_t dst_stride, const float* src, int64_t src_stride, int64_t rows,
                          int64_t columns) = 0;
  /// Plain NHWC images: `padded` is the larger one, [n, height + top + bottom, width + left + right,
  /// channels].
  virtual void pad_images(const Padding2& padding, const float* src, float* padded,
                          const Shape& src_shape) = 0;
  virtual void crop_images(const Padding2& padding, const float* padded, float* dst,
                           const Shape& dst_shape) = 0;
  /// dst[i] = table[indices[i]] for i in [0, n), rows of `columns`; an index out of [0, table_rows) gives
  /// NaN.
  virtual void embedding_forward(const float* table, const int32_t* indices, float* dst, int64_t n,
                                 int64_t table_rows, int64_t columns) = 0;
  /// diff_table (all table_rows of it) = the sum of the rows of diff_dst by their index, in the order of i.
  virtual void embedding_backward(const int32_t* indices, const float* diff_dst, float* diff_table, int64_t n,
                                  int64_t table_rows, int64_t columns) = 0;

  // Losses. Over [rows, columns] predictions: adds the sum over the rows (mean over the columns for
  // elementwise losses) to *total, and where diff_prediction is not null writes scale times its gradient
  // there. `total` is one double of device memory.

  virtual void cross_entropy_loss(const CrossEntropySpec& spec, const float* prediction, const View& target,
                                  float scale, float* diff_prediction, double* total, int64_t rows,
                                  int64_t columns) = 0;
  virtual void elementwise_loss(const ElementwiseLossSpec& spec, const float* prediction, const float* target,
                                float scale, float* diff_prediction, double* total, int64_t rows,
                                int64_t columns) = 0;
  /// Adds to *total what the metric sums over rows (per row: 1 or 0 for top-k; the mean over the columns
  /// else).
  virtual void metric(const MetricSpec& spec, const float* prediction, const View& target, double* total,
                      int64_t rows, int64_t columns) = 0;

  // Optimizers, over n elements of flat buffers; weights are updated in place. `gradient` is read as
  // gradient_scale * gradient.

  /// The sum of squares, exactly the same for the same n and threads.
  virtual double sum_of_squares(const float* src, int64_t n) = 0;
  virtual void update(const OptimizerStep& step, float* weights, const float* gradient,
                      std::span<float* const> slots, int64_t n) = 0;
};

std::unique_ptr<Ops> make_cpu_ops(Context& context);

}  // namespace dtrain
