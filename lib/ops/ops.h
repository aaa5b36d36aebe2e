// The op vocabulary: all operations that layers, losses and optimizers need from a device. Implemented for
// the CPU (oneDNN and our own kernels) and for CUDA (cuBLASLt, cuDNN and our own kernels). All pointers are
// memory of the Context's device. Calls may return before the work is done; operations run in the order of
// the calls.
// `void*` arrays have compute_type(), unless an operation names their type: activations, their gradients, and
// the copies of weights that matrix products and convolutions read. `float*` arrays are always float32:
// parameters, their gradients, statistics. All arrays are row major.
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
#include "ops/math/optimizers.h"
#include "ops/merging.h"
#include "ops/prelu.h"
#include "ops/specs.h"
#include "ops/upsampling.h"

namespace dtrain {

/// Thrown by functions that prepare an operation if the backend cannot compute it.
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// Notes for the user about how an operation is computed on its device; empty if there are none.
struct Remarks {
  std::string warning;  ///< about this operation only: why it will be slow
  std::string note;     ///< about all operations of this kind, so it is printed once
};

// Prepared operations: created once per shape by a plan, run in every step. `scratch` holds at least
// scratch_bytes() and keeps nothing between calls. `saved` holds at least saved_bytes(), which the forward
// call writes and the backward call reads.

/// C = act(op(A) op(B) + bias), C of [m, n]. `bias` is [n], or null if the spec has none.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual size_t scratch_bytes() const = 0;
  virtual void run(const void* a, const void* b, const void* bias, void* c, void* scratch) = 0;
};

/// Cross-correlation in two or three dimensions, the "convolution" of deep learning. Images have the layouts
/// that src_layout() and dst_layout() return. Kernels and their gradients always have Keras's layout:
/// [height, width, channels, filters], if depthwise [height, width, channels, multiplier], for volumes
/// [depth, height, width, channels, filters].
class Convolution {
 public:
  virtual ~Convolution() = default;
  /// The layouts of src and diff_src, and of dst and diff_dst: the backend's fastest ones.
  virtual Layout src_layout() const = 0;
  virtual Layout dst_layout() const = 0;
  virtual size_t scratch_bytes() const = 0;
  /// Size of a copy of the kernel in the backend's order, which forward() writes and backward_data() reads,
  /// so that it need not convert the kernel again. `saved` may be null in both calls.
  virtual size_t saved_bytes() const = 0;
  virtual Remarks remarks() const { return {}; }
  virtual void forward(const void* src, const void* kernel, const void* bias, void* dst, void* saved,
                       void* scratch) = 0;
  /// diff_dst is the gradient before the epilogue's activation.
  virtual void backward_data(const void* diff_dst, const void* kernel, void* diff_src, const void* saved,
                             void* scratch) = 0;
  /// Returns true if backward_filter() also computes the bias's gradient. Otherwise it is the sum over all
  /// pixels of diff_dst, which has the plain layout then: Ops::column_sum or Ops::sum_backward_bias.
  virtual bool gives_bias_gradient() const = 0;
  /// `diff_bias` is null if there is no bias or gives_bias_gradient() is false.
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

/// Normalisation over all axes except the channels. gamma or beta (and their gradients) are null if the spec
/// leaves them out.
class BatchNormalization {
 public:
  virtual ~BatchNormalization() = default;
  virtual size_t scratch_bytes() const = 0;
  virtual size_t saved_bytes() const = 0;

  struct TrainingArguments {
    const void* src;
    const float *gamma, *beta;
    void* dst;               ///< may be the addend
    float *mean, *variance;  ///< [channels], written: the batch's mean and biased variance
    void *saved, *scratch;
    const void* addend = nullptr;  ///< of dst's shape, if the spec adds
  };
  virtual void forward_training(const TrainingArguments& args) = 0;

  struct InferenceArguments {
    const void* src;
    const float *gamma, *beta;
    const float *mean, *variance;  ///< [channels], read
    void* dst;                     ///< may be the addend
    void* scratch;
    const void* addend = nullptr;  ///< of dst's shape, if the spec adds
  };
  virtual void forward_inference(const InferenceArguments& args) = 0;

  struct BackwardArguments {
    const void* src;
    const float* gamma;
    const float *mean, *variance;  ///< as forward_training wrote them
    const void* diff_dst;          ///< the gradient after the fused activation, unless the spec adds
    void* diff_src;                ///< may be diff_dst
    float *diff_gamma, *diff_beta;
    float *diff_mean, *diff_variance;  ///< contributions to the moving averages: share times mean and
                                       ///< variance
    float share;                       ///< fraction of the global batch's rows that are in this batch
    const void* saved;
    void* scratch;
  };
  virtual void backward(const BackwardArguments& args) = 0;
};

/// Batch normalisation in training over the rows of all replicas. Forward and backward take two calls each;
/// between them, the replicas exchange their partial sums by all_gather (ops/math/normalization.h describes
/// the sums), so that all normalise by the same bits. A call accesses only the arguments that its comment
/// names.
class SynchronizedBatchNormalization {
 public:
  using TrainingArguments = BatchNormalization::TrainingArguments;
  using BackwardArguments = BatchNormalization::BackwardArguments;
  virtual ~SynchronizedBatchNormalization() = default;
  virtual size_t scratch_bytes() const = 0;
  virtual size_t saved_bytes() const = 0;

  /// Writes the moments of this replica's src, math::moments_size(channels) doubles, to `mine`.
  virtual void moments(const TrainingArguments& args, double* mine) = 0;
  /// `all`: every replica's moments, by rank. Writes dst, and the mean and variance over all rows.
  virtual void forward(const TrainingArguments& args, const double* all) = 0;
  /// Reads src and diff_dst. Writes this replica's sums, math::gradient_sums_size(channels) doubles, to
  /// `mine`, diff_gamma and diff_beta of its own rows, and its part of diff_mean and diff_variance.
  virtual void gradient_sums(const BackwardArguments& args, double* mine) = 0;
  /// `all`: every replica's sums, by rank. Writes diff_src.
  virtual void backward(const BackwardArguments& args, const double* all) = 0;
};

/// Copies an image batch from one memory layout to another.
class Reorder {
 public:
  virtual ~Reorder() = default;
  virtual void run(const void* src, void* dst) = 0;
};

/// Normalises each of `rows` rows of `columns` elements by the row's own mean and biased variance, then
/// scales it by gamma and adds beta.
struct LayerNormalizationArguments {
  const void* src;
  const float *gamma, *beta;  ///< [columns]; null: 1 and 0
  float epsilon;
  void* dst;
  float *mean, *inverse_deviation;  ///< [rows], written
  int64_t rows, columns;
};
/// Arguments of the backward pass of layer normalisation.
struct LayerNormalizationBackwardArguments {
  const void* src;
  const float* gamma;                     ///< null: 1
  const float *mean, *inverse_deviation;  ///< as the forward call wrote them
  const void* diff_dst;
  void* diff_src;                 ///< may be diff_dst
  float *diff_gamma, *diff_beta;  ///< null if the parameter is null
  int64_t rows, columns;
};

/// Arguments of the backward pass of PReLU.
struct PreluBackwardArguments {
  const void* src;
  const float* slopes;
  const void* diff_dst;
  void* diff_src;      ///< may be diff_dst; null if not needed
  float* diff_slopes;  ///< [spec.slopes()]; null if not needed
};

/// Arrays that a loss reads and writes, over [rows, columns] predictions.
struct LossArguments {
  const void* prediction = nullptr;
  View target;
  RowWeights weights = {};
  double* total = nullptr;  ///< device memory; the weighted sum over the rows is added to it
  int64_t rows = 0, columns = 0;
  void* diff_prediction = nullptr;  ///< gradient of `total`, times `scale` and *loss_scale; or null
  float scale = 1;
  const float* loss_scale = nullptr;  ///< device memory; null: 1
};
/// Arrays that a metric reads and writes, over [rows, columns] predictions.
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
  GroupRule group = {};           ///< settings of these elements' parameter group
  float* weights;                 ///< updated in place
  const float* gradient;          ///< read as state->gradient.gradient_scale * gradient, then clipped
  std::span<float* const> slots;  ///< in the order of the rule's functor
  void* weights_copy = nullptr;   ///< written, in the compute type; null if that is float32
  int64_t n;
};

/// One device's operations, bound to a Context and used by its thread only.
class Ops {
 public:
  virtual ~Ops() = default;
  virtual Context& context() = 0;
  virtual DType compute_type() const = 0;

  // Functions that prepare an operation throw Unsupported if the backend cannot compute the spec.

  virtual std::unique_ptr<Matmul> matmul(const MatmulSpec& spec) = 0;
  virtual std::unique_ptr<Convolution> convolution(const ConvolutionSpec& spec) = 0;
  virtual std::unique_ptr<Pooling> pooling(const PoolingSpec& spec) = 0;
  virtual std::unique_ptr<BatchNormalization> batch_normalization(const BatchNormalizationSpec& spec) = 0;
  /// Returns true if the backend supports BatchNormalizationSpec::adds.
  virtual bool adds_in_normalization() const { return false; }
  virtual std::unique_ptr<SynchronizedBatchNormalization> synchronized_batch_normalization(
      const BatchNormalizationSpec& spec, int replicas) = 0;
  /// `shape` is [n, height, width, channels]; the channels fill whole blocks. A volume is passed as an image
  /// of height depth * height, which has the same elements in every layout.
  virtual std::unique_ptr<Reorder> reorder(const Shape& shape, Layout from, Layout to) = 0;

  // Elementwise, over n elements. dst may be any of the sources.

  /// Sets all n floats of dst to `value`.
  virtual void fill(float* dst, float value, int64_t n) = 0;
  virtual void copy(void* dst, const void* src, int64_t n) = 0;
  /// Converts `src`, an array of type `from`, to type `to`: rounded to nearest, ties to even. `to` is a
  /// floating type or equal to `from`; the CPU does not support bfloat16 and float16. dst must not overlap
  /// src.
  virtual void cast(void* dst, DType to, const void* src, DType from, int64_t n) = 0;
  /// dst = alpha * src + beta * dst, in float32. If beta is 0, dst is not read.
  virtual void scale_add(float* dst, const float* src, float alpha, float beta, int64_t n) = 0;
  /// dst = act(sum of srcs), in order. Activations with `from_output` only.
  virtual void sum(void* dst, std::span<const void* const> srcs, const ActivationSpec& activation,
                   int64_t n) = 0;
  /// dst = product of srcs.
  virtual void multiply(void* dst, std::span<const void* const> srcs, int64_t n) = 0;
  /// dst = the srcs merged. There are 2 to kMostMerged srcs.
  virtual void merge(MergeKind kind, void* dst, std::span<const void* const> srcs, int64_t n) = 0;
  /// diff_src = the gradient of srcs[which]. Among equal largest (smallest) values, the first gets the
  /// gradient. For the other kinds the srcs are not read and may be null.
  virtual void merge_backward(MergeKind kind, std::span<const void* const> srcs, size_t which,
                              const void* diff_dst, void* diff_src, int64_t n) = 0;
  virtual void activation_forward(const ActivationSpec& spec, const void* src, void* dst, int64_t n) = 0;
  /// `saved` is the output if from_output(spec), else the input. diff_src may be diff_dst.
  virtual void activation_backward(const ActivationSpec& spec, const void* saved, const void* diff_dst,
                                   void* diff_src, int64_t n) = 0;
  /// diff_src = activation_backward(sum of diff_dsts), in one pass. diff_dsts are the gradients from all
  /// readers of a value that the activation computed.
  virtual void sum_backward(const ActivationSpec& spec, const void* saved,
                            std::span<const void* const> diff_dsts, void* diff_src, int64_t n) = 0;
  /// Like sum_backward() over [rows, columns]; also sets diff_bias[c] = the sum over r of diff_src[r, c],
  /// with the same bits as column_sum(). In one pass if that is faster.
  virtual void sum_backward_bias(const ActivationSpec& spec, const void* saved,
                                 std::span<const void* const> diff_dsts, void* diff_src, float* diff_bias,
                                 int64_t rows, int64_t columns) = 0;
  /// Inverted dropout on [samples, per_sample]: keeps an element with probability 1 - rate and divides it by
  /// that probability. Element e of sample s is decided by word e % 4 of random(high = *step, low =
  /// (first_sample + s) << 32 | e / 4). `step` is in device memory. The backward pass is the same call on
  /// gradients.
  virtual void dropout(void* dst, const void* src, float rate, const Philox& random, const uint64_t* step,
                       uint64_t first_sample, int64_t samples, int64_t per_sample) = 0;

  // Rows and columns.

  /// dst[r, c] = src[r, c] + bias[c].
  virtual void add_bias(void* dst, const void* src, const void* bias, int64_t rows, int64_t columns) = 0;
  /// dst[c] = sum over r of src[r, c].
  virtual void column_sum(float* dst, const void* src, int64_t rows, int64_t columns) = 0;
  virtual void softmax_forward(const void* src, void* dst, int64_t rows, int64_t columns) = 0;
  virtual void softmax_backward(const void* dst, const void* diff_dst, void* diff_src, int64_t rows,
                                int64_t columns) = 0;
  virtual void layer_normalization_forward(const LayerNormalizationArguments& args) = 0;
  virtual void layer_normalization_backward(const LayerNormalizationBackwardArguments& args) = 0;
  /// Copies a [rows, columns] block between arrays with `dst_stride` and `src_stride` elements from one row
  /// to the next (concatenate).
  virtual void copy_block(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows,
                          int64_t columns) = 0;
  /// Sums strided elements. dst must not overlap src.
  virtual void strided_sum(const StridedSum& spec, const void* src, void* dst) = 0;
  /// dst = src where src is positive, else src times the element's slope.
  virtual void prelu_forward(const PreluSpec& spec, const void* src, const float* slopes, void* dst) = 0;
  virtual void prelu_backward(const PreluSpec& spec, const PreluBackwardArguments& args) = 0;
  /// Interpolates images. The backward function sums, for each source pixel, the gradients of the larger
  /// image's pixels with the weights of the interpolation.
  virtual void upsample_bilinear(const BilinearSpec& spec, const void* src, void* dst) = 0;
  virtual void upsample_bilinear_backward(const BilinearSpec& spec, const void* diff_dst, void* diff_src) = 0;
  /// Plain NHWC images. `padded` is [n, height + top + bottom, width + left + right, channels], with zeros
  /// around src.
  virtual void pad_images(const Padding2& padding, const void* src, void* padded, const Shape& src_shape) = 0;
  virtual void crop_images(const Padding2& padding, const void* padded, void* dst,
                           const Shape& dst_shape) = 0;
  /// dst[i] = table[indices[i]] for i in [0, n), rows of `columns` elements. An index outside [0, table_rows)
  /// gives NaN.
  virtual void embedding_forward(const float* table, const int32_t* indices, void* dst, int64_t n,
                                 int64_t table_rows, int64_t columns) = 0;
  /// Writes all table_rows rows of diff_table: row r = the sum of the rows of diff_dst with index r. On the
  /// CPU, rows are added in the order of i; on a GPU, in an order that depends on the indices and on the
  /// number of multiprocessors. An index outside [0, table_rows) is ignored.
  virtual void embedding_backward(const int32_t* indices, const void* diff_dst, float* diff_table, int64_t n,
                                  int64_t table_rows, int64_t columns) = 0;

  /// Row i of dst = row rows[i] of src, for i in [0, n).
  virtual void gather_rows(const GatherSpec& spec, const void* src, const RowList& rows, int64_t n,
                           void* dst) = 0;

  // Losses, fused with their gradients, and metrics.

  virtual void cross_entropy_loss(const CrossEntropySpec& spec, const LossArguments& args) = 0;
  virtual void elementwise_loss(const ElementwiseLossSpec& spec, const LossArguments& args) = 0;
  virtual void row_loss(const RowLossSpec& spec, const LossArguments& args) = 0;
  /// Adds to one sum: 1 or 0 per row for top-k; for the other kinds, the row's mean over its columns.
  virtual void metric(const MetricSpec& spec, const MetricArguments& args) = 0;
  /// Adds to spec.sums(columns) sums.
  virtual void count(const CountSpec& spec, const MetricArguments& args) = 0;
  /// Adds the sum of src to *total. Both are in device memory.
  virtual void add_sum(const float* src, double* total, int64_t n) = 0;

  // Optimizers. `state`, `squares` and `weights` are in device memory.

  /// squares[i] = the sum of the squares of arrays[i], summed pairwise (ops/math/pairwise.h): it has the same
  /// bits on every device, and if it is combined from the sums of an array's parts. The arrays are in device
  /// memory, the span of them in host memory.
  virtual void sums_of_squares(std::span<const std::span<const float>> arrays, double* squares) = 0;
  void sum_of_squares(const float* src, double* squares, int64_t n) {
    const std::span<const float> array(src, static_cast<size_t>(n));
    sums_of_squares({&array, 1}, squares);
  }
  /// Computes the gradient scale of this step from *squares, the sum of squares of the gradient, and the loss
  /// scale of the next step. `weights` is the sum of the weights of all rows if the rule uses weights, else
  /// null. `squares` may be null if the rule does not use the norm.
  virtual void update_gradient_scale(const GradientRule& rule, const double* squares, const double* weights,
                                     StepState* state) = 0;
  /// Updates weights and slots by the rule; does nothing if state->gradient.skip is not 0.
  virtual void update(const OptimizerRule& rule, const UpdateArguments& args) = 0;
  /// The second phase of a rule with RuleTraits::finds_direction: updates consecutive parts of parameters by
  /// math::TrustRatio. args.gradient is the direction; args.slots and args.group are ignored. squares:
  /// [parts][2], the sums of squares of the whole parameter and of its direction. `parts` is in host memory.
  virtual void apply_directions(std::span<const ParameterPart> parts, const double* squares,
                                const UpdateArguments& args) = 0;
};

std::unique_ptr<Ops> make_cpu_ops(Context& context);
/// Returns the operations of a GPU; `context` must belong to a GPU.
std::unique_ptr<Ops> make_cuda_ops(Context& context, const GpuMath& math);

}  // namespace dtrain
