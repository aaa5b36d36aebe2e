// The op vocabulary: everything that layers, losses and optimizers ask of a device. The CPU (oneDNN and
// kernels of our own) and CUDA (cuBLASLt, cuDNN and kernels of our own) implement it. All pointers are memory
// of the Context's device; calls may return before the work is done, and follow one another in order.
//
// `void*` arrays are of compute_type(), unless an operation names their type: activations, their gradients,
// and the copies of weights that products read. `float*` arrays are float32 always: parameters, their
// gradients, statistics. All arrays are row major.
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
#include "ops/merging.h"
#include "ops/prelu.h"
#include "ops/specs.h"
#include "ops/upsampling.h"

namespace dtrain {

/// A backend has no way to compute what was to be prepared.
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// What a user should know of how something is computed on its device; empty where there is nothing to say.
struct Remarks {
  std::string warning;  ///< of this one alone: why it will be slow
  std::string note;     ///< a choice that is the same for all of its kind, so that it is said once
};

// Prepared operations: made once per shape by a plan, run every step. `scratch` is at least scratch_bytes()
// of memory that holds nothing between calls; `saved` at least saved_bytes() that the forward call writes and
// the backward call reads.

/// C = act(op(A) op(B) + bias), C of [m, n]; bias of [n] (null where the spec has none).
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual size_t scratch_bytes() const = 0;
  virtual void run(const void* a, const void* b, const void* bias, void* c, void* scratch) = 0;
};

/// (Cross-)correlation in two dimensions, or in three, as deep learning's convolutions are. Images in the
/// layouts that the operation names; kernels and their gradients always in Keras's: [height, width, channels,
/// filters], depthwise [height, width, channels, multiplier], of volumes [depth, height, width, channels,
/// filters].
class Convolution {
 public:
  virtual ~Convolution() = default;
  /// The layouts of src and diff_src, and of dst and diff_dst: the fastest ones that the backend has.
  virtual Layout src_layout() const = 0;
  virtual Layout dst_layout() const = 0;
  virtual size_t scratch_bytes() const = 0;
  /// For a copy of the kernel in the backend's order, which spares backward_data making it once more. `saved`
  /// may be null in both calls.
  virtual size_t saved_bytes() const = 0;
  virtual Remarks remarks() const { return {}; }
  virtual void forward(const void* src, const void* kernel, const void* bias, void* dst, void* saved,
                       void* scratch) = 0;
  /// diff_dst is the gradient before the epilogue's activation.
  virtual void backward_data(const void* diff_dst, const void* kernel, void* diff_src, const void* saved,
                             void* scratch) = 0;
  /// Whether backward_filter gives the bias's gradient, too. Else it is the sum of diff_dst, which is plain
  /// then, over all pixels: Ops::column_sum or Ops::sum_backward_bias.
  virtual bool gives_bias_gradient() const = 0;
  /// `diff_bias` is null where there is no bias, or its gradient is not given here.
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

/// Normalisation over all axes but the channels. gamma or beta (and their gradients) are null where the spec
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
    float *mean, *variance;  ///< of [channels], written: the batch's own, the variance biased
    void *saved, *scratch;
    const void* addend = nullptr;  ///< of dst's shape, where the spec adds
  };
  virtual void forward_training(const TrainingArguments& args) = 0;

  struct InferenceArguments {
    const void* src;
    const float *gamma, *beta;
    const float *mean, *variance;  ///< of [channels], read
    void* dst;                     ///< may be the addend
    void* scratch;
    const void* addend = nullptr;  ///< of dst's shape, where the spec adds
  };
  virtual void forward_inference(const InferenceArguments& args) = 0;

  struct BackwardArguments {
    const void* src;
    const float* gamma;
    const float *mean, *variance;  ///< as forward_training wrote them
    const void* diff_dst;          ///< the gradient after the fused activation, unless the spec adds
    void* diff_src;                ///< may be diff_dst
    float *diff_gamma, *diff_beta;
    float *diff_mean, *diff_variance;  ///< what moving averages take in: share times mean and variance
    float share;                       ///< these rows' part of the global batch
    const void* saved;
    void* scratch;
  };
  virtual void backward(const BackwardArguments& args) = 0;
};

/// The same in training, over the rows of all replicas: forward and backward take two calls each, between
/// which the replicas exchange their partial sums (all_gather; ops/math/normalization.h says of what), so
/// that all normalise by the same bits. A call touches only the arguments that its comment names.
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

/// A normalisation of each of `rows` rows of `columns` elements by the row's own mean and (biased) variance,
/// then scaled by gamma and shifted by beta.
struct LayerNormalizationArguments {
  const void* src;
  const float *gamma, *beta;  ///< of [columns]; null: 1 and 0
  float epsilon;
  void* dst;
  float *mean, *inverse_deviation;  ///< of [rows], written
  int64_t rows, columns;
};
/// The gradients of such a normalisation.
struct LayerNormalizationBackwardArguments {
  const void* src;
  const float* gamma;                     ///< null: 1
  const float *mean, *inverse_deviation;  ///< as the forward call wrote them
  const void* diff_dst;
  void* diff_src;                 ///< may be diff_dst
  float *diff_gamma, *diff_beta;  ///< null with their parameters
  int64_t rows, columns;
};

/// The gradients of a PReLU.
struct PreluBackwardArguments {
  const void* src;
  const float* slopes;
  const void* diff_dst;
  void* diff_src;      ///< may be diff_dst; null where nobody wants it
  float* diff_slopes;  ///< of [spec.slopes()]; null where nobody wants it
};

/// What a loss reads and writes, over [rows, columns] predictions.
struct LossArguments {
  const void* prediction = nullptr;
  View target;
  RowWeights weights = {};
  double* total = nullptr;  ///< device memory; the weighted sum over the rows is added to it
  int64_t rows = 0, columns = 0;
  void* diff_prediction = nullptr;    ///< null, or the sum's gradient, times
  float scale = 1;                    ///< this,
  const float* loss_scale = nullptr;  ///< and this where it is not null, of device memory
};
/// What a metric reads and writes, over [rows, columns] predictions.
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
  GroupRule group = {};           ///< of these elements
  float* weights;                 ///< moved in place
  const float* gradient;          ///< read as state->gradient.gradient_scale * gradient, then clipped
  std::span<float* const> slots;  ///< as the rule has them
  void* weights_copy = nullptr;   ///< in the compute type, written; null where that is float32
  int64_t n;
};

/// One device's operations, bound to a Context and used by its thread only.
class Ops {
 public:
  virtual ~Ops() = default;
  virtual Context& context() = 0;
  virtual DType compute_type() const = 0;

  // Those that prepare something throw Unsupported where the backend cannot compute what the spec says.

  virtual std::unique_ptr<Matmul> matmul(const MatmulSpec& spec) = 0;
  virtual std::unique_ptr<Convolution> convolution(const ConvolutionSpec& spec) = 0;
  virtual std::unique_ptr<Pooling> pooling(const PoolingSpec& spec) = 0;
  virtual std::unique_ptr<BatchNormalization> batch_normalization(const BatchNormalizationSpec& spec) = 0;
  /// Whether it does what BatchNormalizationSpec::adds asks for.
  virtual bool adds_in_normalization() const { return false; }
  virtual std::unique_ptr<SynchronizedBatchNormalization> synchronized_batch_normalization(
      const BatchNormalizationSpec& spec, int replicas) = 0;
  /// `shape` is [n, height, width, channels]; the channels fill whole blocks. The rows of volumes are those
  /// of images of height depth * height, in every layout.
  virtual std::unique_ptr<Reorder> reorder(const Shape& shape, Layout from, Layout to) = 0;

  // Elementwise, over n elements. dst may be any of the sources.

  /// dst, of float32, becomes `value` throughout.
  virtual void fill(float* dst, float value, int64_t n) = 0;
  virtual void copy(void* dst, const void* src, int64_t n) = 0;
  /// Writes the numbers of `src`, an array of `from`, as `to`: rounded to nearest, ties to even. `to` is a
  /// floating type or `from`; the CPU does not have bfloat16 and float16. dst must not overlap src.
  virtual void cast(void* dst, DType to, const void* src, DType from, int64_t n) = 0;
  /// dst = alpha * src + beta * dst, of float32; with beta 0 dst is not read.
  virtual void scale_add(float* dst, const float* src, float alpha, float beta, int64_t n) = 0;
  /// dst = act(sum of srcs), in order. Activations with `from_output` only.
  virtual void sum(void* dst, std::span<const void* const> srcs, const ActivationSpec& activation,
                   int64_t n) = 0;
  /// dst = product of srcs.
  virtual void multiply(void* dst, std::span<const void* const> srcs, int64_t n) = 0;
  /// dst = the srcs merged, of which there are 2 to kMostMerged.
  virtual void merge(MergeKind kind, void* dst, std::span<const void* const> srcs, int64_t n) = 0;
  /// diff_src = the gradient of srcs[which]. Of equal largest (smallest) ones the first has it. Other kinds
  /// do not read the srcs, which may be null then.
  virtual void merge_backward(MergeKind kind, std::span<const void* const> srcs, size_t which,
                              const void* diff_dst, void* diff_src, int64_t n) = 0;
  virtual void activation_forward(const ActivationSpec& spec, const void* src, void* dst, int64_t n) = 0;
  /// `saved` is the output where from_output(spec), else the input. diff_src may be diff_dst.
  virtual void activation_backward(const ActivationSpec& spec, const void* saved, const void* diff_dst,
                                   void* diff_src, int64_t n) = 0;
  /// diff_src = activation_backward(sum of diff_dsts): the gradients that several readers of one value give
  /// back, summed, and the activation that made the value undone, in one pass.
  virtual void sum_backward(const ActivationSpec& spec, const void* saved,
                            std::span<const void* const> diff_dsts, void* diff_src, int64_t n) = 0;
  /// The same over [rows, columns], with diff_bias[c] = the sum over r of diff_src[r, c] as column_sum has
  /// it; in one pass, too, where that is faster.
  virtual void sum_backward_bias(const ActivationSpec& spec, const void* saved,
                                 std::span<const void* const> diff_dsts, void* diff_src, float* diff_bias,
                                 int64_t rows, int64_t columns) = 0;
  /// Inverted dropout on [samples, per_sample]: keeps an element with probability 1 - rate and divides it by
  /// that. Element e of sample s is decided by word e % 4 of random(high = *step (of device memory), low =
  /// (first_sample + s) << 32 | e / 4). The backward pass is the same call on gradients.
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
  /// Copies a [rows, columns] block between arrays whose rows are `dst_stride` and `src_stride` elements
  /// apart (concatenate).
  virtual void copy_block(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows,
                          int64_t columns) = 0;
  /// Sums elements that lie apart. dst must not overlap src.
  virtual void strided_sum(const StridedSum& spec, const void* src, void* dst) = 0;
  /// dst = src where positive, else src times the element's slope.
  virtual void prelu_forward(const PreluSpec& spec, const void* src, const float* slopes, void* dst) = 0;
  virtual void prelu_backward(const PreluSpec& spec, const PreluBackwardArguments& args) = 0;
  /// Interpolates images, and sums what each pixel has to do with the larger image's gradient.
  virtual void upsample_bilinear(const BilinearSpec& spec, const void* src, void* dst) = 0;
  virtual void upsample_bilinear_backward(const BilinearSpec& spec, const void* diff_dst, void* diff_src) = 0;
  /// Plain NHWC images: `padded`, [n, height + top + bottom, width + left + right, channels], is 0 around
  /// src.
  virtual void pad_images(const Padding2& padding, const void* src, void* padded, const Shape& src_shape) = 0;
  virtual void crop_images(const Padding2& padding, const void* padded, void* dst,
                           const Shape& dst_shape) = 0;
  /// dst[i] = table[indices[i]] for i in [0, n), rows of `columns`; an index out of [0, table_rows) gives
  /// NaN.
  virtual void embedding_forward(const float* table, const int32_t* indices, void* dst, int64_t n,
                                 int64_t table_rows, int64_t columns) = 0;
  /// diff_table (all table_rows of it) = the sum of the rows of diff_dst by their index: on a CPU in the
  /// order of i, on a GPU in one that follows from the indices and the number of its multiprocessors. An
  /// index out of [0, table_rows) adds nothing.
  virtual void embedding_backward(const int32_t* indices, const void* diff_dst, float* diff_table, int64_t n,
                                  int64_t table_rows, int64_t columns) = 0;

  /// Row i of dst = row rows[i] of src, for i in [0, n).
  virtual void gather_rows(const GatherSpec& spec, const void* src, const RowList& rows, int64_t n,
                           void* dst) = 0;

  // Losses, fused with their gradients, and metrics.

  virtual void cross_entropy_loss(const CrossEntropySpec& spec, const LossArguments& args) = 0;
  virtual void elementwise_loss(const ElementwiseLossSpec& spec, const LossArguments& args) = 0;
  virtual void row_loss(const RowLossSpec& spec, const LossArguments& args) = 0;
  /// One sum (per row: 1 or 0 for top-k; the mean over the columns else).
  virtual void metric(const MetricSpec& spec, const MetricArguments& args) = 0;
  /// spec.sums(columns) sums.
  virtual void count(const CountSpec& spec, const MetricArguments& args) = 0;
  /// Adds the sum of src to *total, both of device memory.
  virtual void add_sum(const float* src, double* total, int64_t n) = 0;

  // Optimizers. `state`, `squares` and `weights` are device memory.

  /// squares[i] = the sum of the squares of arrays[i], summed pairwise (ops/math/pairwise.h): the same bits
  /// on every device, and what is made of parts of an array by such sums. The arrays are in device memory,
  /// the span of them in the host's.
  virtual void sums_of_squares(std::span<const std::span<const float>> arrays, double* squares) = 0;
  void sum_of_squares(const float* src, double* squares, int64_t n) {
    const std::span<const float> array(src, static_cast<size_t>(n));
    sums_of_squares({&array, 1}, squares);
  }
  /// Sets what a gradient whose sum of squares is *squares is worth in this step, and what the next step
  /// starts from. `weights`: the sum of the weights of all rows, where the rule asks for it, else null.
  /// `squares` may be null where the rule does not ask for the norm.
  virtual void update_gradient_scale(const GradientRule& rule, const double* squares, const double* weights,
                                     StepState* state) = 0;
  /// Moves weights and slots by the rule; does nothing where the state's gradient.skip is not 0.
  virtual void update(const OptimizerRule& rule, const UpdateArguments& args) = 0;
};

std::unique_ptr<Ops> make_cpu_ops(Context& context);
/// The operations of a GPU; `context` is such a one's.
std::unique_ptr<Ops> make_cuda_ops(Context& context, const GpuMath& math);

}  // namespace dtrain
