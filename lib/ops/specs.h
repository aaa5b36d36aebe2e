// The plain descriptions that operations are prepared from.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <variant>

#include "base/host_device.h"
#include "base/view.h"

namespace dtrain {

/// Keras's activations (softmax apart, which looks at a whole row). clipped_relu is relu with its options.
enum class Activation : uint8_t {
  linear,
  relu,
  leaky_relu,
  gelu,
  silu,
  tanh,
  sigmoid,
  elu,
  clipped_relu,
  softplus,
  softsign,
  hard_sigmoid,
  hard_silu,
  selu,
  exponential,
  mish,
};

struct ActivationSpec {
  Activation kind = Activation::linear;
  /// negative_slope of leaky_relu (0.3 in Keras's layer, 0.2 in its function) and clipped_relu, elu's alpha,
  /// hard_sigmoid's slope
  float alpha = 0;
  bool approximate = false;                                ///< gelu by tanh instead of erf
  float maximum = std::numeric_limits<float>::infinity();  ///< clipped_relu's max_value; above the threshold
  float threshold = 0;                                     ///< clipped_relu's; not negative
  bool operator==(const ActivationSpec&) const = default;
};

/// Whether the gradient can be had from the output, so that the input need not be kept (and the activation
/// may be fused).
constexpr bool from_output(const ActivationSpec& spec) {
  switch (spec.kind) {
    case Activation::gelu:
    case Activation::silu:
    case Activation::softplus:
    case Activation::hard_sigmoid:  // 16 bits round outputs just below 1 to 1
    case Activation::hard_silu:
    case Activation::mish:
      return false;
    case Activation::clipped_relu:
      // A maximum or threshold that 16 bits round cannot be told from the numbers beside it.
      return spec.threshold == 0.0f && (spec.maximum == std::numeric_limits<float>::infinity() ||
                                        (spec.maximum >= 0x1p-14f && spec.maximum < 0x1p15f &&
                                         (std::bit_cast<uint32_t>(spec.maximum) & 0xffffu) == 0));
    default:
      return true;
  }
}

/// op(A) is [m, k], stored [k, m] where transposed; op(B) is [k, n], stored [n, k] where transposed.
struct MatmulSpec {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool bias = false;
  bool float32_result = false;  ///< C is float32 whatever the compute type is (a weight's gradient)
  ActivationSpec activation;    ///< with from_output only
};

struct Padding2 {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  bool operator==(const Padding2&) const = default;
};

/// The sides of an image, or of a volume, which has two more.
struct Padding3 {
  int64_t top = 0, bottom = 0, left = 0, right = 0, front = 0, back = 0;
  bool operator==(const Padding3&) const = default;
};

/// An image is a volume of depth 1.
struct ConvolutionSpec {
  int64_t batch = 0, depth = 1, height = 0, width = 0, channels = 0;  // of the source
  int64_t filters = 0;  // of a depthwise one: channels * multiplier
  int64_t kernel_depth = 1, kernel_height = 1, kernel_width = 1;
  int64_t stride_depth = 1, stride_height = 1, stride_width = 1;
  int64_t dilation_depth = 1, dilation_height = 1, dilation_width = 1;
  Padding3 padding;
  bool depthwise = false;
  bool bias = false;
  ActivationSpec activation;   ///< with from_output only
  bool plain_only = false;     ///< src and dst in the plain layout, whatever would be faster
  bool training = true;        ///< backward calls will come
  bool needs_diff_src = true;  ///< backward_data among them

  /// Whether the depth counts. No depthwise convolution is of volumes.
  bool is_volume() const {
    return depth != 1 || kernel_depth != 1 || padding.front != 0 || padding.back != 0;
  }
  int64_t out_depth() const {
    return (depth + padding.front + padding.back - (dilation_depth * (kernel_depth - 1) + 1)) / stride_depth +
           1;
  }
  int64_t out_height() const {
    return (height + padding.top + padding.bottom - (dilation_height * (kernel_height - 1) + 1)) /
               stride_height +
           1;
  }
  int64_t out_width() const {
    return (width + padding.left + padding.right - (dilation_width * (kernel_width - 1) + 1)) / stride_width +
           1;
  }
  int64_t src_pixels() const { return depth * height * width; }  ///< of one image
  int64_t dst_pixels() const { return out_depth() * out_height() * out_width(); }
  int64_t kernel_pixels() const { return kernel_depth * kernel_height * kernel_width; }
};

/// The average is over the pixels that exist, padding left out, as in Keras. An image is a volume of depth 1.
struct PoolingSpec {
  enum class Kind : uint8_t { max, average };
  Kind kind = Kind::max;
  int64_t batch = 0, depth = 1, height = 0, width = 0, channels = 0;
  int64_t pool_depth = 1, pool_height = 1, pool_width = 1;
  int64_t stride_depth = 1, stride_height = 1, stride_width = 1;
  Padding3 padding;
  Layout layout = Layout::plain;  ///< of source and destination
  bool training = true;

  bool is_volume() const { return depth != 1 || pool_depth != 1; }  ///< whether the depth counts
  int64_t out_depth() const { return (depth + padding.front + padding.back - pool_depth) / stride_depth + 1; }
  int64_t out_height() const {
    return (height + padding.top + padding.bottom - pool_height) / stride_height + 1;
  }
  int64_t out_width() const { return (width + padding.left + padding.right - pool_width) / stride_width + 1; }
};

struct BatchNormalizationSpec {
  int64_t batch = 0, height = 1, width = 1, channels = 0;
  float epsilon = 1e-3f;
  bool scale = true, center = true;
  bool relu = false;  ///< a fused relu after it
  /// The addend of a call is added to what the normalisation gives, ahead of the relu, whose gradient is then
  /// left to the caller. For Ops::adds_in_normalization().
  bool adds = false;
  Layout layout = Layout::plain;
  bool training = true;
};

/// Sparse: the target is int32 class numbers of [rows] (one out of range gives NaN); else float32
/// probabilities of [rows, columns].
struct CrossEntropySpec {
  bool sparse = true;
  bool from_logits = true;    ///< else probabilities, clipped to [1e-7, 1 - 1e-7]; a row sums to 1
  float label_smoothing = 0;  ///< so much of the target is spread evenly over the classes
};

/// Losses of single elements; a row's is the mean over its columns (kl_divergence: their sum).
struct ElementwiseLossSpec {
  enum class Kind : uint8_t {
    binary_crossentropy,
    mean_squared_error,
    mean_absolute_error,
    huber,
    mean_absolute_percentage_error,
    mean_squared_logarithmic_error,
    hinge,  ///< a target of 0 is as one of -1, in squared_hinge, too
    squared_hinge,
    poisson,
    log_cosh,
    kl_divergence,
    binary_focal_crossentropy,
  };
  Kind kind = Kind::mean_squared_error;
  bool from_logits = false;   ///< the binary cross-entropies
  float delta = 1;            ///< huber
  float label_smoothing = 0;  ///< the binary cross-entropies: so much of the target becomes a half
  float gamma = 2;            ///< binary_focal_crossentropy
  float alpha = 0.25f;        ///< binary_focal_crossentropy, where it balances classes: of a target of 1
  bool balances_classes = false;

  constexpr int64_t divisor(int64_t columns) const { return kind == Kind::kl_divergence ? 1 : columns; }
};

/// Losses of whole rows; the target is float32 of [rows, columns].
struct RowLossSpec {
  enum class Kind : uint8_t { cosine_similarity, categorical_focal_crossentropy };
  Kind kind = Kind::cosine_similarity;
  // categorical_focal_crossentropy:
  bool from_logits = false;
  float label_smoothing = 0, gamma = 2, alpha = 0.25f;
};

/// What each row counts for: row r as much as values[r / rows_per_weight]; 1 where there are no values.
struct RowWeights {
  const float* values = nullptr;  ///< device memory
  int64_t rows_per_weight = 1;

  DTRAIN_HOST_DEVICE float of(int64_t row) const { return values ? values[row / rows_per_weight] : 1.0f; }
};

struct MetricSpec {
  enum class Kind : uint8_t { sparse_top_k, categorical_top_k, binary_accuracy, mean_absolute_error };
  Kind kind = Kind::sparse_top_k;
  int k = 1;  ///< top_k: fewer than k scores are greater, or equal and before it (so that k = 1 is argmax)
  float threshold = 0.5f;  ///< binary_accuracy
};

/// What is counted of predictions and targets: sums, from which metrics follow that are no means over rows.
struct CountSpec {
  enum class Kind : uint8_t {
    classes,    ///< [3][columns]: how often a class was predicted rightly, was predicted, was the target
    confusion,  ///< [n][n] by the target's class and then the predicted one; n is 2 for a single column
    buckets,    ///< [columns, or 1 for all of them][2][buckets] by score: targets that are not, that are
    answers,    ///< [1]: the share of a row's columns whose answer, 1 above the threshold or 0, is the target
    regression,  ///< [3][columns] sums of t, t^2 and (t - p)^2 of a target t and its prediction p; and [1] 1
  };
  Kind kind = Kind::classes;
  bool sparse = false;  ///< the target is int32 class numbers of [rows]; else float32 like the prediction
  bool by_threshold = false;  ///< each column says yes above the threshold, and so does a target above 0.5;
                              ///< else the class is that of a row's maximum
  /// What scores are, for buckets and thresholds. Of a row of softmax_logits the softmax is what is compared
  /// with the threshold; sigmoid_logits are compared with it as they are.
  enum class Scores : uint8_t { probabilities, sigmoid_logits, softmax_logits };
  Scores scores = Scores::probabilities;
  float threshold = 0.5f;

  /// At least 2, for scores in ascending order: half of them below 0. In each half they are even in the bits
  /// of the score's size, and so about even in its logarithm, from 2^-kOctaves to 2^kOctaves. Logits are
  /// scores as they are; of a probability it is the logit that counts.
  int64_t buckets = 0;
  bool by_column = false;
  static constexpr int kOctaves = 32;

  constexpr int64_t sums(int64_t columns) const {
    const int64_t n = columns == 1 ? 2 : columns;
    return kind == Kind::classes     ? 3 * columns
           : kind == Kind::confusion ? n * n
           : kind == Kind::buckets   ? (by_column ? columns : 1) * 2 * buckets
           : kind == Kind::answers   ? 1
                                     : 3 * columns + 1;
  }
};

/// Rows of an array of `from` that become rows of an array of `to`: dst = scale * src + offset where there is
/// a scale, else dst = src. Unless `from` is `to` and there is no scale, `to` is a floating type.
struct GatherSpec {
  DType from = DType::float32;
  DType to = DType::float32;
  int64_t row_elements = 1;
  const float* scale = nullptr;  ///< device memory, like offset
  const float* offset = nullptr;
  int64_t scale_elements = 1;  ///< 1, or row_elements: one for each element of a row
};

/// Rows by their numbers, both in device memory.
struct RowList {
  const int64_t* rows = nullptr;   ///< null: in order
  const int64_t* first = nullptr;  ///< where in `rows` they begin; null: at 0

  DTRAIN_HOST_DEVICE int64_t operator[](int64_t i) const {
    if (!rows) return i;
    return rows[first ? *first + i : i];
  }
};

// Optimizer rules, as Keras has them: what stays the same from step to step.

struct SgdRule {  // slots: velocity, where momentum is not 0
  float momentum;
  bool nesterov;
};
struct RmspropRule {  // slots: mean square; mean gradient where centered; momentum where it is not 0
  float rho, momentum, epsilon;
  bool centered;
};
struct AdagradRule {  // slots: accumulator
  float epsilon;
};
struct AdamRule {  // slots: m, v. w -= rate * m / (sqrt(v) + epsilon), where rate = learning_rate *
                   // sqrt(1 - beta_2^t) / (1 - beta_1^t)
  float beta_1, beta_2, epsilon;
};
struct LionRule {  // slots: m
  float beta_1, beta_2;
};
/// The first half of LAMB's step: the weights decay, the slots move, and no weight moves by the gradient.
struct LambRule {  // slots: m, v, and where the direction is written, which may be the gradient's place
  float beta_1, beta_2, epsilon;
};
/// The second half, whose "gradient" is such a direction d: w -= rate * |w| / |d| * d, or rate * d where a
/// norm is 0. The norms are those of whole parameters: the elements of a call are parts of parameters, one
/// after another. No slots, no decay; nothing scales the direction, and the call's GroupRule is not read.
struct TrustRatioRule {
  struct Part {
    int64_t n;
    float learning_rate_factor;
  };
  std::span<const Part> parts;  // host memory
  const double* squares;        // device memory, [parts][2]: the sums of squares of the whole w and d
};
/// state = momentum * state + (1 - momentum) * gradient: batch normalisation's moving statistics. No slots,
/// no rate, no decay.
struct MovingAverageRule {
  float momentum;
};
using OptimizerRule = std::variant<SgdRule, RmspropRule, AdagradRule, AdamRule, LionRule, LambRule,
                                   TrustRatioRule, MovingAverageRule>;

/// What the host says anew before each step.
struct StepNumbers {
  uint64_t step = 0;  ///< global, from 0
  float rate = 0;     ///< the learning rate; Adam's has its corrections in it
  float decay = 0;    ///< learning_rate * weight_decay: each weight first loses so much of itself
  float learning_rate = 0;
  float samples = 1;                       ///< of the global batch
  int64_t first = 0;                       ///< the batch's first sample, in the order of the epoch
  float mean_scale = 1, square_scale = 1;  ///< LAMB's corrections of its slots' biases
};

/// How an update applies a step's numbers to one group of parameters.
struct GroupRule {
  float learning_rate_factor = 1;
  bool own_weight_decay = false;  ///< weight_decay counts, in place of the optimizer's
  float weight_decay = 0;
  float clip_value = INFINITY;  ///< the greatest size of an element of the gradient
  uint64_t slots_since = 0;     ///< the steps that were done when the group's slots began
  bool operator==(const GroupRule&) const = default;
};

/// What a gradient is worth, which each step finds out for itself and leaves for the next.
struct GradientScale {
  float loss_scale = 1;      ///< losses' gradients are multiplied by it, so that float16 holds them
  float gradient_scale = 1;  ///< of the summed gradient before use: 1 / loss_scale, clipping, weights
  int32_t good_steps = 0;    ///< since loss_scale changed
  int32_t skip = 0;          ///< not 0: the gradient was not finite, and nothing moves in this step
};

/// In device memory, so that a step that was captured once can be replayed.
struct StepState {
  StepNumbers now;
  GradientScale gradient;
};

/// What math::update_numbers() makes of a step's numbers for one group of parameters.
struct UpdateNumbers {
  float rate = 0, decay = 0;
  float gradient_scale = 1;
  float clip_value = INFINITY;
};

/// How GradientScale follows from the gradient.
struct GradientRule {
  float clip_norm = 0;           ///< greatest L2 norm of the whole gradient; 0: any
  bool dynamic_scaling = false;  ///< loss_scale halves when the gradient overflows, and doubles after
                                 ///< kGrowthSteps steps that went well
  float weights_per_sample =
      0;  ///< not 0: the gradient is of a mean by weights, of which each sample has so many
  static constexpr int kGrowthSteps = 2000;  // as Keras's LossScaleOptimizer, and its first scale
  static constexpr float kFirstLossScale = 32768.0f;
};

/// How a GPU computes.
struct GpuMath {
  /// The compute type, a floating one: of activations, their gradients, and the copies of weights that
  /// products read. Parameters, their gradients, optimizer slots and statistics are float32 always.
  DType type = DType::float32;
  bool tf32 = false;           ///< products of float32 in TF32: 10 bits of mantissa
  bool deterministic = false;  ///< the same bits run after run: only algorithms that give them
};

}  // namespace dtrain
