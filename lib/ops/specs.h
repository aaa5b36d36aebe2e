// Specs: plain descriptions from which operations are prepared.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/host_device.h"
#include "base/view.h"

namespace dtrain {

/// Keras's activations except softmax, which needs whole rows. clipped_relu is Keras's relu with options.
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
  bool approximate = false;                                ///< gelu: uses tanh instead of erf
  float maximum = std::numeric_limits<float>::infinity();  ///< clipped_relu's max_value; above the threshold
  float threshold = 0;                                     ///< threshold of clipped_relu; not negative
  bool operator==(const ActivationSpec&) const = default;
};

/// Returns true if the gradient can be computed from the output, so that the input need not be kept and the
/// activation may be fused.
constexpr bool from_output(const ActivationSpec& spec) {
  switch (spec.kind) {
    case Activation::gelu:
    case Activation::silu:
    case Activation::softplus:
    case Activation::hard_sigmoid:  // 16-bit types round outputs just below 1 to 1
    case Activation::hard_silu:
    case Activation::mish:
      return false;
    case Activation::clipped_relu:
      // The gradient depends on which side of a limit the input is. If rounding to 16 bits changes the
      // maximum or the threshold, outputs at the limit are equal to outputs next to it.
      return spec.threshold == 0.0f && (spec.maximum == std::numeric_limits<float>::infinity() ||
                                        (spec.maximum >= 0x1p-14f && spec.maximum < 0x1p15f &&
                                         (std::bit_cast<uint32_t>(spec.maximum) & 0xffffu) == 0));
    default:
      return true;
  }
}

/// A matrix product. op(A) is [m, k], stored as [k, m] if transposed; op(B) is [k, n], stored as [n, k] if
/// transposed. `batch` products of different matrices, one after the other in A, B and C, are computed in one
/// call.
struct MatmulSpec {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool bias = false;
  bool float32_result = false;  ///< C is float32 for every compute type (a weight's gradient)
  ActivationSpec activation;    ///< must satisfy from_output()
  int64_t batch = 1;            ///< 1 if the products have a bias or an activation
};

/// Noise: it is added to a value, or the value is multiplied by 1 + noise.
struct NoiseSpec {
  bool multiplies = false;
  float deviation = 0;  ///< standard deviation of the noise; its mean is 0
};

struct Padding2 {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  bool operator==(const Padding2&) const = default;
};

/// Padding of the sides of an image; front and back are for volumes.
struct Padding3 {
  int64_t top = 0, bottom = 0, left = 0, right = 0, front = 0, back = 0;
  bool operator==(const Padding3&) const = default;
};

/// The sizes and options of a convolution. An image is a volume of depth 1.
struct ConvolutionSpec {
  int64_t batch = 0, depth = 1, height = 0, width = 0, channels = 0;  // shape of the source
  int64_t filters = 0;                                                // if depthwise: channels * multiplier
  int64_t kernel_depth = 1, kernel_height = 1, kernel_width = 1;
  int64_t stride_depth = 1, stride_height = 1, stride_width = 1;
  int64_t dilation_depth = 1, dilation_height = 1, dilation_width = 1;
  Padding3 padding;
  bool depthwise = false;
  bool bias = false;
  ActivationSpec activation;   ///< must satisfy from_output()
  bool plain_only = false;     ///< src and dst must have the plain layout, even if another is faster
  bool training = true;        ///< there will be backward calls
  bool needs_diff_src = true;  ///< backward_data() will be called, too

  /// Returns true for volumes. A depthwise convolution is never one.
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
  int64_t src_pixels() const { return depth * height * width; }  ///< number of source pixels per image
  int64_t dst_pixels() const { return out_depth() * out_height() * out_width(); }
  int64_t kernel_pixels() const { return kernel_depth * kernel_height * kernel_width; }
};

/// The sizes and options of pooling. An average does not include the padding, as in Keras. An image is a
/// volume of depth 1.
struct PoolingSpec {
  enum class Kind : uint8_t { max, average };
  Kind kind = Kind::max;
  int64_t batch = 0, depth = 1, height = 0, width = 0, channels = 0;
  int64_t pool_depth = 1, pool_height = 1, pool_width = 1;
  int64_t stride_depth = 1, stride_height = 1, stride_width = 1;
  Padding3 padding;
  Layout layout = Layout::plain;  ///< layout of src and dst
  bool training = true;

  bool is_volume() const { return depth != 1 || pool_depth != 1; }
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
  bool relu = false;  ///< relu after the normalization (and addition)
  /// Whether calls pass an addend, which is added to the normalized values before the relu. The caller must
  /// then apply the relu's gradient. Requires Ops::adds_in_normalization().
  bool adds = false;
  Layout layout = Layout::plain;
  bool training = true;
  /// Calls have a mask of the rows (SynchronizedBatchNormalization only); the layout must be plain.
  bool masked = false;
};

/// The options of a cross-entropy. If `sparse` is true, the target is int32 class numbers, [rows]; a number
/// out of range gives NaN. Otherwise it is float32 probabilities, [rows, columns].
struct CrossEntropySpec {
  bool sparse = true;
  bool from_logits = true;    ///< true: scores are logits; false: probabilities, clipped to [1e-7, 1 - 1e-7],
                              ///< whose rows sum to 1
  float label_smoothing = 0;  ///< fraction of the target that is spread evenly over the classes
};

/// Losses of single elements. A row's loss is the mean over its columns (kl_divergence: the sum).
struct ElementwiseLossSpec {
  enum class Kind : uint8_t {
    binary_crossentropy,
    mean_squared_error,
    mean_absolute_error,
    huber,
    mean_absolute_percentage_error,
    mean_squared_logarithmic_error,
    hinge,  ///< a target of 0 counts as -1; also in squared_hinge
    squared_hinge,
    poisson,
    log_cosh,
    kl_divergence,
    binary_focal_crossentropy,
  };
  Kind kind = Kind::mean_squared_error;
  bool from_logits = false;  ///< option of the binary cross-entropies
  float delta = 1;           ///< option of huber
  /// Option of the binary cross-entropies: fraction of the target that is replaced by 1/2.
  float label_smoothing = 0;
  float gamma = 2;      ///< option of binary_focal_crossentropy
  float alpha = 0.25f;  ///< option of binary_focal_crossentropy if balances_classes: weight of class 1
  bool balances_classes = false;

  constexpr int64_t divisor(int64_t columns) const { return kind == Kind::kl_divergence ? 1 : columns; }
};

/// Losses of whole rows. The target is float32, [rows, columns].
struct RowLossSpec {
  enum class Kind : uint8_t { cosine_similarity, categorical_focal_crossentropy, dice, tversky };
  Kind kind = Kind::cosine_similarity;
  // Options of categorical_focal_crossentropy. tversky has its own alpha.
  bool from_logits = false;
  float label_smoothing = 0, gamma = 2, alpha = 0.25f;
  // Options of dice and tversky.
  float beta = 0.5f;    ///< option of tversky
  int64_t classes = 1;  ///< column c belongs to class c % classes; the loss is the mean over the classes
  double factor = 1;    ///< factor of the loss, but not of the gradient
};

/// The weights of rows. The weight of row r is values[r / rows_per_weight]; 1 if `values` is null.
struct RowWeights {
  const float* values = nullptr;  ///< device memory
  int64_t rows_per_weight = 1;

  DTRAIN_HOST_DEVICE float of(int64_t row) const { return values ? values[row / rows_per_weight] : 1.0f; }
};

struct MetricSpec {
  enum class Kind : uint8_t { sparse_top_k, categorical_top_k, binary_accuracy, mean_absolute_error };
  Kind kind = Kind::sparse_top_k;
  /// Option of the top-k kinds: a row is correct if fewer than k scores are greater than the target's score,
  /// or equal to it and earlier in the row (k = 1 is argmax).
  int k = 1;
  float threshold = 0.5f;  ///< option of binary_accuracy
};

/// Counts over predictions and targets. Metrics that are not means over rows are computed from these sums.
struct CountSpec {
  enum class Kind : uint8_t {
    classes,    ///< [3][columns]: number of correct predictions, of predictions and of targets of each class
    confusion,  ///< [n][n], by target class, then predicted class; n is 2 for a single column
    /// [2][buckets] for each column, or for all columns together: number of negative and of positive targets
    /// in each bucket of scores.
    buckets,
    answers,     ///< [1]: the fraction of a row's columns in which the answer (1 above the threshold, else 0)
                 ///< equals the target
    regression,  ///< [3][columns]: sums of t, t^2 and (t - p)^2 for target t and prediction p; then [1]: the
                 ///< sum of 1
  };
  Kind kind = Kind::classes;
  bool sparse = false;  ///< the target is int32 class numbers, [rows]; else float32 like the prediction
  /// If true, a row's prediction has each class whose score is above the threshold, and its target each class
  /// whose column is above 0.5. If false, a row's class is the index of its maximum.
  bool by_threshold = false;
  /// The kind of scores that buckets and thresholds apply to. For softmax_logits, the row's softmax is
  /// compared with the threshold; sigmoid_logits are compared directly.
  enum class Scores : uint8_t { probabilities, sigmoid_logits, softmax_logits };
  Scores scores = Scores::probabilities;
  float threshold = 0.5f;

  /// Number of buckets, at least 2, for scores in ascending order. Half of them are for scores below 0. In
  /// each half, the limits are spaced evenly in the bit pattern of the score's absolute value, thus about
  /// evenly in its logarithm, from 2^-kOctaves to 2^kOctaves. A probability is counted by its logit; logits
  /// are counted directly.
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

/// Converts rows, or the beginnings of rows, of an array of type `from` to rows of an array of type `to`: dst
/// = scale * src + offset if there is a scale, else dst = src. `to` is a floating type, unless it equals
/// `from` and there is no scale.
struct GatherSpec {
  DType from = DType::float32;
  DType to = DType::float32;
  int64_t row_elements = 1;
  int64_t src_elements = 0;      ///< elements from one source row to the next; 0: row_elements
  const float* scale = nullptr;  ///< device memory, like offset
  const float* offset = nullptr;
  int64_t scale_elements = 1;  ///< 1, or at least row_elements if each element of a row has its own scale

  int64_t stride() const { return src_elements > 0 ? src_elements : row_elements; }
};

/// A list of row numbers, in device memory.
struct RowList {
  const int64_t* rows = nullptr;   ///< null: rows 0, 1, 2, ...
  const int64_t* first = nullptr;  ///< the first row is rows[*first]; null: rows[0]

  DTRAIN_HOST_DEVICE int64_t operator[](int64_t i) const {
    if (!rows) return i;
    return rows[first ? *first + i : i];
  }
};

/// Per-step scalars that the host uploads before each step.
struct StepNumbers {
  uint64_t step = 0;  ///< number of the global step, from 0
  double learning_rate = 0;
  float decay = 0;  ///< learning_rate * weight_decay: fraction that is first subtracted from each weight
  /// If rows have weights: the sum of the global batch's row weights if the host knows it before the step,
  /// else the number of row weights.
  double row_weights = 1;
  int64_t first = 0;  ///< number of the batch's first sample, in the order of the epoch
};

/// Update settings of one parameter group.
struct GroupRule {
  float learning_rate_factor = 1;
  bool own_weight_decay = false;  ///< whether weight_decay replaces the optimizer's
  float weight_decay = 0;
  float clip_value = INFINITY;  ///< limit of the absolute value of a gradient's element
  uint64_t slots_since = 0;     ///< number of steps done before the group's slots were created
  bool operator==(const GroupRule&) const = default;
};

/// Consecutive elements of one parameter in a flat buffer.
struct ParameterPart {
  int64_t n;         // may include padding after the parameter
  int64_t elements;  // number of elements of the whole parameter
  float learning_rate_factor;
};

/// The penalty of a regularizer: the sum over a weight's elements x of l1 * |x| + l2 * x^2.
struct PenaltySpec {
  float l1 = 0, l2 = 0;
  bool operator==(const PenaltySpec&) const = default;
  explicit operator bool() const { return l1 != 0 || l2 != 0; }
};

/// The penalty of a regularizer on the directions of a matrix's rows or columns: factor times the mean, over
/// the pairs of different vectors, of the absolute cosine of the angle between them. A vector of zeros has no
/// direction: its cosines are 0, and so is its gradient.
struct OrthogonalSpec {
  float factor = 0;
  int64_t vectors = 0, extent = 0;  ///< number of vectors, and of elements per vector
  int64_t stride = 0, step = 1;     ///< elements from a vector to the next, from an element to the next
};

/// A constraint on an array of [outer, extent, inner] elements: either no element may be negative, or the
/// Euclidean norms over the extent are limited.
struct ConstraintSpec {
  bool non_negative = false;  ///< negative elements become 0, and the members below are not used
  /// Elements are multiplied by (rate * (their norm, limited to [min, max]) + (1 - rate) * norm) / norm.
  float min = 0, max = 0, rate = 1;
  int64_t outer = 1, extent = 1, inner = 1;
};

/// Gradient scale factors. Each step updates them on the device, for itself and for the next step.
struct GradientScale {
  float loss_scale = 1;  ///< factor of the losses' gradients, so that float16 can represent them
  /// Factor of the summed gradient before use: 1 / loss_scale times the factors of clipping by norm and of
  /// row weights.
  float gradient_scale = 1;
  int32_t good_steps = 0;  ///< number of finite steps since loss_scale changed
  int32_t skip = 0;        ///< not 0: the step updates nothing, because the gradient is not finite or
                           ///< all row weights are 0
};

/// The numbers of a step. They are in device memory, so that a captured step can be replayed with other
/// numbers.
struct StepState {
  StepNumbers now;
  GradientScale gradient;
};

/// The scalars of one step for one parameter group, as computed by math::update_numbers().
struct UpdateNumbers {
  float decay = 0;
  float gradient_scale = 1;
  float clip_value = INFINITY;
};

/// The computation of GradientScale from the gradient.
struct GradientRule {
  float clip_norm = 0;            ///< maximum L2 norm of the whole gradient; 0: no limit
  bool dynamic_scaling = false;   ///< loss_scale is halved when the gradient overflows, and doubled after
                                  ///< kGrowthSteps finite steps
  bool is_weighted = false;       ///< the mean loss is weighted by row weights
  bool skips_unweighted = false;  ///< a step in which all weights are 0 updates nothing (masks)
  // The values of kGrowthSteps and kFirstLossScale are those of Keras's LossScaleOptimizer.
  static constexpr int kGrowthSteps = 2000;
  static constexpr float kFirstLossScale = 32768.0f;
};

/// Compute options of a GPU.
struct GpuMath {
  /// The compute type, which is a floating type. Activations, their gradients, and the copies of weights that
  /// matrix products and convolutions read have this type. Parameters, their gradients, optimizer slots and
  /// statistics are always float32.
  DType type = DType::float32;
  bool tf32 = false;           ///< float32 products use TF32, with 10 bits of mantissa
  bool deterministic = false;  ///< only uses algorithms that give the same bits in every run
};

}  // namespace dtrain
