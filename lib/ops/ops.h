// All operations that layers, losses and optimizers need from a device. ops/ops.inc lists the operations;
// this file has the classes of prepared operations and the structs of arguments. There are two
// implementations: for the CPU (oneDNN and dtrain's own kernels) and for CUDA (cuBLASLt, cuDNN and dtrain's
// own kernels).
//
// All pointers point to memory of the Context's device. Calls may return before the work is done; operations
// run in the order of the calls. All arrays are row major.
//
// Arrays of type `void*` have the type compute_type(), unless an operation states a different type. These are
// the activations, their gradients, and the copies of weights that matrix products and convolutions read.
// Arrays of type `float*` are always float32. These are the parameters, their gradients, and statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/philox.h"
#include "base/view.h"
#include "device/device.h"
#include "ops/attention.h"
#include "ops/math/inverse_norm.h"
#include "ops/math/noise.h"
#include "ops/math/optimizers.h"
#include "ops/merging.h"
#include "ops/positions.h"
#include "ops/prelu.h"
#include "ops/recurrence.h"
#include "ops/resize.h"
#include "ops/specs.h"

namespace dtrain {

/// Thrown by functions that prepare an operation if the backend cannot compute it.
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// Notes for the user about how an operation is computed on its device; empty if there are none.
struct Remarks {
  std::string warning;  ///< why this operation will be slow
  std::string note;     ///< a note about all operations of this kind; printed once
};

// A plan prepares these operations once per shape and runs them in every step. `scratch` must point to at
// least scratch_bytes() bytes, whose contents need not be kept between calls. `saved` must point to at least
// saved_bytes() bytes, which the forward call writes and the backward call reads.

/// C = act(op(A) op(B) + bias), for each matrix product of the batch. C is [m, n]. `bias` is [n], or null if
/// the spec has no bias.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual size_t scratch_bytes() const = 0;
  virtual void run(const void* a, const void* b, const void* bias, void* c, void* scratch) = 0;
};

/// Cross-correlation in two or three dimensions, which is called "convolution" in deep learning. Images have
/// the layouts that src_layout() and dst_layout() return. Kernels and their gradients always have Keras's
/// layout: [height, width, channels, filters] for images, [depth, height, width, channels, filters] for
/// volumes, and [height, width, channels, multiplier] for depthwise convolutions. With groups, kernels have
/// only channels / groups channels; filters are ordered by group.
class Convolution {
 public:
  virtual ~Convolution() = default;
  /// Return the layout of src and diff_src, and the layout of dst and diff_dst. These are the fastest layouts
  /// of the backend.
  virtual Layout src_layout() const = 0;
  virtual Layout dst_layout() const = 0;
  virtual size_t scratch_bytes() const = 0;
  /// Returns the size of a copy of the kernel in the backend's order. forward() writes the copy to `saved`,
  /// and backward_data() reads it, so it need not convert the kernel again. `saved` may be null in both
  /// calls.
  virtual size_t saved_bytes() const = 0;
  virtual Remarks remarks() const { return {}; }
  virtual void forward(const void* src, const void* kernel, const void* bias, void* dst, void* saved,
                       void* scratch) = 0;
  /// diff_dst is the gradient before the fused activation, that is, the activation's backward pass has
  /// already been applied.
  virtual void backward_data(const void* diff_dst, const void* kernel, void* diff_src, const void* saved,
                             void* scratch) = 0;
  /// Returns true if backward_filter() also computes the gradient of the bias. Otherwise, diff_dst has the
  /// plain layout, and the caller must compute this gradient as the sum of diff_dst over all pixels, with
  /// Ops::column_sum or Ops::sum_backward_bias.
  virtual bool computes_bias_gradient() const = 0;
  /// `diff_bias` is null if there is no bias or computes_bias_gradient() is false.
  virtual void backward_filter(const void* src, const void* diff_dst, float* diff_kernel, float* diff_bias,
                               void* scratch) = 0;
};

class Pooling {
 public:
  virtual ~Pooling() = default;
  virtual size_t scratch_bytes() const = 0;
  virtual size_t saved_bytes() const = 0;
  virtual void forward(const void* src, void* dst, void* saved, void* scratch) = 0;
  virtual void backward(const void* diff_dst, void* diff_src, const void* saved, void* scratch) = 0;
};

/// Batch normalization: normalization over all axes except the channels. gamma and beta (and their gradients)
/// are null if the spec leaves them out.
class BatchNormalization {
 public:
  virtual ~BatchNormalization() = default;
  virtual size_t scratch_bytes() const = 0;
  virtual size_t saved_bytes() const = 0;

  struct TrainingArguments {
    const void* src;
    const float *gamma, *beta;
    void* dst;               ///< may be the same array as the addend
    float *mean, *variance;  ///< [channels], written: the batch's mean and biased variance
    void *saved, *scratch;
    const void* addend = nullptr;  ///< array of the shape of dst; null unless spec.adds
    const uint8_t* mask =
        nullptr;  ///< [rows], if the spec is masked: 0 for rows that are excluded from the statistics
  };
  virtual void forward_training(const TrainingArguments& args) = 0;

  struct InferenceArguments {
    const void* src;
    const float *gamma, *beta;
    const float *mean, *variance;  ///< [channels], read
    void* dst;                     ///< may be the same array as the addend
    void* scratch;
    const void* addend = nullptr;  ///< array of the shape of dst; null unless spec.adds
  };
  virtual void forward_inference(const InferenceArguments& args) = 0;

  struct BackwardArguments {
    const void* src;
    const float* gamma;
    const float *mean, *variance;  ///< as forward_training wrote them
    const void* diff_dst;          ///< gradient of dst or, if spec.adds, of dst before the relu
    void* diff_src;                ///< may be diff_dst
    float *diff_gamma, *diff_beta;
    /// Outputs: this batch's contributions to the moving averages, which are share * mean and share *
    /// variance.
    float *diff_mean, *diff_variance;
    float share;  ///< fraction of the global batch's rows that are in this batch
    const void* saved;
    void* scratch;
    const uint8_t* mask = nullptr;  ///< as in the forward call
  };
  virtual void backward(const BackwardArguments& args) = 0;
};

/// Batch normalization in training with statistics over the rows of all replicas. The forward pass and the
/// backward pass consist of two calls each. Between these calls, the replicas exchange their partial sums
/// with all_gather (ops/math/normalization.h describes the sums). Therefore, the statistics of all replicas
/// are bitwise identical. A call accesses only the arguments that its comment names.
class SynchronizedBatchNormalization {
 public:
  using TrainingArguments = BatchNormalization::TrainingArguments;
  using BackwardArguments = BatchNormalization::BackwardArguments;
  virtual ~SynchronizedBatchNormalization() = default;
  virtual size_t scratch_bytes() const = 0;
  virtual size_t saved_bytes() const = 0;

  /// Writes the moments of this replica's src to `mine`, which has math::moments_size(channels) doubles.
  virtual void moments(const TrainingArguments& args, double* mine) = 0;
  /// `all` holds the moments of every replica, in the order of ranks. Writes dst, and the mean and variance
  /// over all rows that are not masked. If all rows are masked, mean and variance are 0, as in Keras.
  virtual void forward(const TrainingArguments& args, const double* all) = 0;
  /// Reads src and diff_dst. Writes this replica's gradient sums to `mine`, which has
  /// math::gradient_sums_size(channels) doubles. Also writes diff_gamma and diff_beta for the rows of this
  /// replica, and this replica's contribution to diff_mean and diff_variance.
  virtual void gradient_sums(const BackwardArguments& args, double* mine) = 0;
  /// `all` holds the gradient sums of every replica, in the order of ranks. Writes diff_src.
  virtual void backward(const BackwardArguments& args, const double* all) = 0;
};

/// Copies an image batch from one memory layout to another.
class Reorder {
 public:
  virtual ~Reorder() = default;
  virtual void run(const void* src, void* dst) = 0;
};

/// Arguments of layer normalization. It normalizes each of `rows` rows of `columns` elements by the mean and
/// the biased variance of this row, multiplies the row by gamma, and adds beta.
struct LayerNormalizationArguments {
  const void* src;
  const float *gamma, *beta;  ///< [columns]; if null, gamma is 1 and beta is 0
  float epsilon;
  void* dst;
  float *mean, *inverse_deviation;  ///< [rows], written
  int64_t rows, columns;
};
/// Arguments of the backward pass of layer normalization.
struct LayerNormalizationBackwardArguments {
  const void* src;
  const float* gamma;                     ///< null: 1
  const float *mean, *inverse_deviation;  ///< as the forward call wrote them
  const void* diff_dst;
  void* diff_src;                 ///< may be diff_dst
  float *diff_gamma, *diff_beta;  ///< null if the parameter is null
  int64_t rows, columns;
};

/// Arguments of RMS normalization. It multiplies each of `rows` rows of `columns` elements by the inverse of
/// the row's norm, and then each column by a scale.
struct RmsNormalizationArguments {
  const void* src;
  const float* scale;  ///< [columns]; null: 1
  math::InverseNorm norm;
  void* dst;
  float* inverse;  ///< [rows], written
  int64_t rows, columns;
};
/// Arguments of the backward pass of RMS normalization.
struct RmsNormalizationBackwardArguments {
  const void* src;
  const float* scale;  ///< null: 1
  math::InverseNorm norm;
  const float* inverse;  ///< as the forward call wrote it
  const void* diff_dst;
  void* diff_src;     ///< may be diff_dst; null if not needed
  float* diff_scale;  ///< null if not needed
  int64_t rows, columns;
};

/// Arguments of group normalization. It normalizes each group of channels of each sample by the mean and the
/// biased variance over all pixels and all channels of the group, multiplies each channel by gamma, and adds
/// beta. A group has channels / groups consecutive channels.
struct GroupNormalizationArguments {
  const void* src;            ///< [samples, pixels, channels]
  const float *gamma, *beta;  ///< [channels]; if null, gamma is 1 and beta is 0
  float epsilon;
  void* dst;
  float *mean, *inverse_deviation;  ///< [samples, groups], written
  int64_t samples, pixels, channels, groups;
};
/// Arguments of the backward pass of group normalization.
struct GroupNormalizationBackwardArguments {
  const void* src;
  const float* gamma;                     ///< null: 1
  const float *mean, *inverse_deviation;  ///< as the forward call wrote them
  const void* diff_dst;
  void* diff_src;                 ///< may be diff_dst; null if not needed
  float *diff_gamma, *diff_beta;  ///< null if not needed
  int64_t samples, pixels, channels, groups;
};

/// Arguments of the backward pass of PReLU.
struct PreluBackwardArguments {
  const void* src;
  const float* slopes;
  const void* diff_dst;
  void* diff_src;      ///< may be diff_dst; null if not needed
  float* diff_slopes;  ///< [spec.slopes()]; null if not needed
};

/// Computes row weights that are 0 for masked rows: dst[i] is 0 if mask[i / per_mask] is 0, and weights[i /
/// per_weight] otherwise.
struct MaskWeightsArguments {
  const float* weights = nullptr;  ///< null: 1
  int64_t per_weight = 1;
  const uint8_t* mask = nullptr;
  int64_t per_mask = 1;
  float* dst = nullptr;
  int64_t n = 0;  ///< elements of dst
};

/// Mean over the steps of a sequence, without the masked steps.
struct MaskedAverageSpec {
  int64_t samples = 0, steps = 0, features = 0;
};

/// Arrays that a loss reads and writes. The predictions are [rows, columns].
struct LossArguments {
  const void* prediction = nullptr;
  View target;
  RowWeights weights = {};
  double* total = nullptr;  ///< device memory; the weighted sum of the rows' losses is added to this number
  int64_t rows = 0, columns = 0;
  /// Number of rows per sample; the rows of a sample are consecutive. Only used by losses that are computed
  /// over a whole sample.
  int64_t positions = 1;
  /// Gradient of `total`, times `scale` and *loss_scale; null if not needed. Must not overlap the prediction.
  void* diff_prediction = nullptr;
  float scale = 1;
  const float* loss_scale = nullptr;  ///< device memory; if null, the loss scale is 1
};
/// Arrays that a metric reads and writes. The predictions are [rows, columns].
struct MetricArguments {
  const void* prediction = nullptr;
  View target;
  RowWeights weights = {};
  double* sums = nullptr;  ///< device memory; the weighted sums over the rows are added to them
  int64_t rows = 0, columns = 0;
};

/// The arrays of an optimizer's step over n elements of flat buffers.
struct UpdateArguments {
  const StepState* state;         ///< device memory
  GroupRule group = {};           ///< settings of the parameter group to which these elements belong
  float* weights;                 ///< updated in place
  const float* gradient;          ///< multiplied by state->gradient.gradient_scale and clipped before use
  std::span<float* const> slots;  ///< slots in the order of the rule's functor
  /// Output: a copy of the weights in the compute type. Null if the compute type is float32.
  void* weights_copy = nullptr;
  int64_t n;
};

/// The arrays of Ops::find_factored_direction(), for a parameter of `matrices` matrices [rows, columns].
struct FactoredArguments {
  const StepState* state;  ///< device memory
  GroupRule group = {};
  float* weights;       ///< [matrices, rows, columns]
  float* gradient;      ///< [matrices, rows, columns], replaced by the direction
  float* row_means;     ///< [matrices, rows]
  float* column_means;  ///< [matrices, columns]
  int64_t matrices, rows, columns;
};

/// The arrays for the gradient of a penalty with respect to n elements.
struct PenaltyArguments {
  const GradientRule& rule;
  /// Sum of the row weights, in device memory. Null if rows have no weights.
  const double* row_weights;
  const StepState* state;  ///< device memory
  const float* weights;
  float* gradient;  ///< the gradient of the penalty is added to this array
  int64_t n;
};

/// The operations of one device. They are bound to a Context and may only be called by its thread.
class Ops {
 public:
  virtual ~Ops() = default;
  virtual Context& context() = 0;
  virtual DType compute_type() const = 0;

  /// Returns true if the backend supports BatchNormalizationSpec::adds.
  virtual bool adds_in_normalization() const { return false; }

#define DTRAIN_OP(result, name, arguments) virtual result name arguments = 0;
#include "ops/ops.inc"

  /// Computes sums_of_squares() of one array of n elements.
  void sum_of_squares(const float* src, double* squares, int64_t n) {
    const std::span<const float> array(src, static_cast<size_t>(n));
    sums_of_squares({&array, 1}, squares);
  }
};

/// Returns the operations of a CPU. If `independent_rows` is true, each row of a matrix product is computed
/// independently: it is bitwise the same for any number of rows and threads. Such products are slower.
std::unique_ptr<Ops> make_cpu_ops(Context& context, bool independent_rows = false);
/// Returns the operations of a GPU; `context` must belong to a GPU.
std::unique_ptr<Ops> make_cuda_ops(Context& context, const GpuMath& math);

}  // namespace dtrain
