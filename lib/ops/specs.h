// Specs: structs that describe operations. An operation is prepared from its spec.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/host_device.h"
#include "base/view.h"

namespace dtrain {

/// Keras's activations, except softmax, which is computed over whole rows. clipped_relu is Keras's relu with
/// options.
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
  /// negative_slope of leaky_relu (0.3 in Keras's layer, 0.2 in Keras's function) and of clipped_relu; alpha
  /// of elu; slope of hard_sigmoid.
  float alpha = 0;
  bool approximate = false;  ///< gelu: uses tanh instead of erf
  /// max_value of clipped_relu; must be greater than the threshold.
  float maximum = std::numeric_limits<float>::infinity();
  /// Threshold of clipped_relu; must not be negative.
  float threshold = 0;
  bool operator==(const ActivationSpec&) const = default;
};

/// Returns true if the gradient can be computed from the output. In this case, the input need not be kept,
/// and the activation can be fused with the operation before it.
constexpr bool from_output(const ActivationSpec& spec) {
  switch (spec.kind) {
    case Activation::gelu:
    case Activation::silu:
    case Activation::softplus:
    case Activation::hard_sigmoid:  // in 16-bit types, outputs just below 1 are rounded to 1
    case Activation::hard_silu:
    case Activation::mish:
      return false;
    case Activation::clipped_relu:
      // The gradient depends on whether the input is below or above the threshold and the maximum. If one of
      // these limits is changed by rounding to 16 bits, an output at the limit cannot be distinguished from
      // an output next to it.
      return spec.threshold == 0.0f && (spec.maximum == std::numeric_limits<float>::infinity() ||
                                        (spec.maximum >= 0x1p-14f && spec.maximum < 0x1p15f &&
                                         (std::bit_cast<uint32_t>(spec.maximum) & 0xffffu) == 0));
    default:
      return true;
  }
}

/// A matrix product. op(A) is [m, k] and is stored as [k, m] if transposed. op(B) is [k, n] and is stored as
/// [n, k] if transposed. One call computes `batch` products of different matrices, which follow each other in
/// A, B and C.
struct MatmulSpec {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool bias = false;
  bool float32_result = false;  ///< C is float32 for every compute type; used for gradients of weights
  ActivationSpec activation;    ///< must satisfy from_output()
  int64_t batch = 1;            ///< must be 1 if the products have a bias or an activation
};

/// Normally distributed noise. A value x becomes x + noise or, if `multiplies` is true, x * (1 + noise).
struct NoiseSpec {
  bool multiplies = false;
  float deviation = 0;  ///< standard deviation of the noise; its mean is 0
};

struct Padding2 {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  bool operator==(const Padding2&) const = default;
};

/// Padding of the sides of an image. `front` and `back` are only for volumes.
struct Padding3 {
  int64_t top = 0, bottom = 0, left = 0, right = 0, front = 0, back = 0;
  bool operator==(const Padding3&) const = default;
};

/// The sizes and options of a convolution. An image is a volume of depth 1.
struct ConvolutionSpec {
  int64_t batch = 0, depth = 1, height = 0, width = 0, channels = 0;  // shape of the source
  int64_t filters = 0;                                                // channels * multiplier if depthwise
  int64_t kernel_depth = 1, kernel_height = 1, kernel_width = 1;
  int64_t stride_depth = 1, stride_height = 1, stride_width = 1;
  int64_t dilation_depth = 1, dilation_height = 1, dilation_width = 1;
  Padding3 padding;
  /// The channels and the filters are divided into this number of groups, in order. The filters of a group
  /// read only the channels of the same group. Must divide both numbers.
  int64_t groups = 1;
  bool depthwise = false;  ///< each channel is a group; `groups` is ignored, and the kernels may be faster
  bool bias = false;
  ActivationSpec activation;   ///< must satisfy from_output()
  bool plain_only = false;     ///< src and dst must have the plain layout, even if another layout is faster
  bool training = true;        ///< true if there will be backward calls
  bool needs_diff_src = true;  ///< true if backward_data() will be called, too

  /// Returns true if the convolution is over volumes (3D). A depthwise convolution is never over volumes.
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
  int64_t group_count() const { return depthwise ? channels : groups; }
  /// Returns the number of channels that each filter reads.
  int64_t filter_channels() const { return channels / group_count(); }
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
  bool relu = false;  ///< if true, applies a relu after the normalization (and after the addition)
  /// Whether each call passes an addend, which is added to the normalized values before the relu. If true,
  /// the caller must compute the gradient of the relu. Only supported if Ops::adds_in_normalization() is
  /// true.
  bool adds = false;
  Layout layout = Layout::plain;
  bool training = true;
  /// If true, calls pass a mask of the rows. Only for SynchronizedBatchNormalization. The layout must be
  /// plain.
  bool masked = false;
};

/// The options of a cross-entropy. If `sparse` is true, the target is an array of int32 class indices,
/// [rows]; the loss of a row is NaN if its class index is out of range. Otherwise, the target is an array of
/// float32 probabilities, [rows, columns].
struct CrossEntropySpec {
  bool sparse = true;
  /// If true, the scores are logits. If false, they are probabilities; the probabilities of a row sum to 1,
  /// and each is clipped to [1e-7, 1 - 1e-7].
  bool from_logits = true;
  float label_smoothing = 0;  ///< fraction of the target that is spread evenly over the classes
};

/// Losses that are computed elementwise. The loss of a row is the mean over its columns (for kl_divergence,
/// the sum).
struct ElementwiseLossSpec {
  enum class Kind : uint8_t {
    binary_crossentropy,
    mean_squared_error,
    mean_absolute_error,
    huber,
    mean_absolute_percentage_error,
    mean_squared_logarithmic_error,
    hinge,  ///< for hinge and squared_hinge, a target of 0 is converted to -1
    squared_hinge,
    poisson,
    log_cosh,
    kl_divergence,
    binary_focal_crossentropy,
  };
  Kind kind = Kind::mean_squared_error;
  bool from_logits = false;  ///< option of the binary cross-entropies
  float delta = 1;           ///< option of huber
  /// Option of the binary cross-entropies: each target t is replaced by (1 - label_smoothing) * t +
  /// label_smoothing / 2.
  float label_smoothing = 0;
  float gamma = 2;  ///< option of binary_focal_crossentropy
  /// Option of binary_focal_crossentropy: weight of class 1, if balances_classes is true.
  float alpha = 0.25f;
  bool balances_classes = false;

  constexpr int64_t divisor(int64_t columns) const { return kind == Kind::kl_divergence ? 1 : columns; }
};

/// Losses that are computed over a whole row. The target is float32, [rows, columns].
struct RowLossSpec {
  enum class Kind : uint8_t { cosine_similarity, categorical_focal_crossentropy, dice, tversky };
  Kind kind = Kind::cosine_similarity;
  // Options of categorical_focal_crossentropy. `alpha` is also an option of tversky, with a different
  // meaning.
  bool from_logits = false;
  float label_smoothing = 0, gamma = 2, alpha = 0.25f;
  // Options of dice and tversky.
  float beta = 0.5f;    ///< option of tversky
  int64_t classes = 1;  ///< column c belongs to class c % classes; the loss is the mean over all classes
  double factor = 1;    ///< the loss is multiplied by this factor, but the gradient is not
};

/// The weights of rows. The weight of row r is values[r / rows_per_weight], or 1 if `values` is null.
struct RowWeights {
  const float* values = nullptr;  ///< device memory
  int64_t rows_per_weight = 1;

  DTRAIN_HOST_DEVICE float of(int64_t row) const { return values ? values[row / rows_per_weight] : 1.0f; }
};

struct MetricSpec {
  enum class Kind : uint8_t { sparse_top_k, categorical_top_k, binary_accuracy, mean_absolute_error };
  Kind kind = Kind::sparse_top_k;
  /// Option of the top-k kinds. A row is correct if fewer than k scores come before the score of its target.
  /// A score comes before the target's score if it is greater, or if it is equal and in an earlier column.
  /// With k = 1, a row is correct if the target is the argmax of the scores.
  int k = 1;
  float threshold = 0.5f;  ///< option of binary_accuracy
};

/// Counts over predictions and targets. Metrics that are not simple means over the rows are computed from
/// these counts.
struct CountSpec {
  enum class Kind : uint8_t {
    /// [3][columns]: for each class, the number of correct predictions, of predictions, and of targets.
    classes,
    /// [n][n]: number of rows by target class and predicted class; n is 2 if there is only one column.
    confusion,
    /// [2][buckets], for each column or for all columns together: the number of negative targets and the
    /// number of positive targets in each bucket of scores.
    buckets,
    /// [1]: the sum over the rows of the fraction of columns in which the answer equals the target; the
    /// answer is 1 if the score is above the threshold, and 0 otherwise.
    answers,
    /// [3][columns]: for each column, the sums of t, of t^2, and of (t - p)^2 for target t and prediction p;
    /// followed by [1]: the number of rows (if rows have weights, the sum of the weights).
    regression,
  };
  Kind kind = Kind::classes;
  /// True if the target is int32 class indices, [rows]; false if it is float32, with the prediction's shape.
  bool sparse = false;
  /// If true, a row can have several classes: the predicted classes are those whose score is above the
  /// threshold, and the target classes are those whose column is above 0.5. If false, a row has one class,
  /// which is the index of its maximum.
  bool by_threshold = false;
  /// The kind of the scores. It determines how scores are assigned to buckets and compared with the
  /// threshold: for softmax_logits, the softmax of the row is compared with the threshold; sigmoid_logits are
  /// compared directly.
  enum class Scores : uint8_t { probabilities, sigmoid_logits, softmax_logits };
  Scores scores = Scores::probabilities;
  float threshold = 0.5f;

  /// Number of buckets, at least 2, into which scores are sorted in ascending order. The bucket of a
  /// probability is that of its logit. Half of the buckets are for numbers below 0. In each half, the limits
  /// of the buckets are absolute values from 2^-kOctaves to 2^kOctaves. The limits are evenly spaced in the
  /// bit pattern of the absolute value, which is approximately its logarithm.
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

/// Gathers rows of an array and converts them from type `from` to type `to`. Only the first row_elements
/// elements of a source row are used. If there is a scale, dst = scale * src + offset; otherwise, dst = src.
/// `to` must be a floating type, unless it equals `from` and there is no scale.
struct GatherSpec {
  DType from = DType::float32;
  DType to = DType::float32;
  int64_t row_elements = 1;
  int64_t src_elements = 0;      ///< number of elements from one source row to the next; 0 means row_elements
  const float* scale = nullptr;  ///< device memory, like offset
  const float* offset = nullptr;
  /// Number of elements of `scale` and of `offset`: 1 if all elements share one scale, and at least
  /// row_elements if each element of a row has its own scale.
  int64_t scale_elements = 1;

  int64_t stride() const { return src_elements > 0 ? src_elements : row_elements; }
};

/// A list of row indices, in device memory.
struct RowList {
  const int64_t* rows = nullptr;   ///< if null, the rows are 0, 1, 2, ...
  const int64_t* first = nullptr;  ///< index into `rows` at which the list begins; if null, it begins at 0

  DTRAIN_HOST_DEVICE int64_t operator[](int64_t i) const {
    if (!rows) return i;
    return rows[first ? *first + i : i];
  }
};

/// The scalars of a step, which the host uploads before each step.
struct StepNumbers {
  uint64_t step = 0;  ///< index of the global step, counted from 0
  double learning_rate = 0;
  /// learning_rate * weight_decay: this fraction of each weight is subtracted before the update.
  float decay = 0;
  /// The sum of the row weights of the global batch, if the host computes this sum before the step.
  /// Otherwise, the number of row weights.
  double row_weights = 1;
  int64_t first = 0;  ///< index of the batch's first sample in the order of the epoch
};

/// Update settings of one parameter group.
struct GroupRule {
  float learning_rate_factor = 1;
  bool own_weight_decay = false;  ///< true if weight_decay replaces the optimizer's weight decay
  float weight_decay = 0;
  float clip_value = INFINITY;  ///< limit of the absolute value of each element of the gradient
  uint64_t slots_since = 0;     ///< number of steps that were done before the slots of the group were created
  bool operator==(const GroupRule&) const = default;
};

/// A part of a flat buffer: consecutive elements of one parameter.
struct ParameterPart {
  int64_t n;         // number of elements of the part, possibly including padding after the parameter
  int64_t elements;  // number of elements of the whole parameter
  float learning_rate_factor;
};

/// The penalty of an L1 and L2 regularizer: the sum of l1 * |x| + l2 * x^2 over all elements x of a weight.
struct PenaltySpec {
  float l1 = 0, l2 = 0;
  bool operator==(const PenaltySpec&) const = default;
  explicit operator bool() const { return l1 != 0 || l2 != 0; }
};

/// The penalty of the orthogonal regularizer on the rows or columns of a matrix: factor times the mean of
/// |cos(angle)| over all pairs of different vectors. A vector of zeros has no direction, so its cosines are
/// 0, and its gradient is 0, too.
struct OrthogonalSpec {
  float factor = 0;
  int64_t vectors = 0, extent = 0;  ///< number of vectors; number of elements per vector
  /// Distance, in elements, from one vector to the next; distance from one element of a vector to the next.
  int64_t stride = 0, step = 1;
};

/// A constraint on an array of [outer, extent, inner] elements. Either negative elements are set to 0, or the
/// Euclidean norm of each column is limited. A column consists of the `extent` elements that have the same
/// outer and inner index.
struct ConstraintSpec {
  /// If true, negative elements are set to 0, and the following members are not used.
  bool non_negative = false;
  /// The elements of a column are multiplied by (rate * limited + (1 - rate) * norm) / norm, where `norm` is
  /// the norm of the column and `limited` is this norm, limited to [min, max].
  float min = 0, max = 0, rate = 1;
  int64_t outer = 1, extent = 1, inner = 1;
};

/// The scales of the losses and of the gradient. They are in device memory. Each step updates gradient_scale
/// for itself and loss_scale for the next step.
struct GradientScale {
  /// The gradients of the losses are multiplied by this factor, so that float16 can represent them.
  float loss_scale = 1;
  /// The summed gradient is multiplied by this factor before it is used. It is 1 / loss_scale, times the
  /// factor of clipping by norm, times the factor of row weights.
  float gradient_scale = 1;
  int32_t good_steps = 0;  ///< number of steps with finite gradients since loss_scale changed
  int32_t skip = 0;        ///< not 0: the step updates nothing, because the gradient is not finite or
                           ///< all row weights are 0
};

/// The scalars of a step. They are in device memory, so that a captured step can be replayed with different
/// values.
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

/// The rule by which GradientScale is computed from the gradient.
struct GradientRule {
  float clip_norm = 0;  ///< maximum L2 norm of the whole gradient; 0 means no limit
  /// If true, loss_scale is halved when the gradient overflows, and doubled after kGrowthSteps finite steps.
  bool dynamic_scaling = false;
  bool is_weighted = false;  ///< true if the mean loss is weighted by row weights
  /// If true, a step in which all row weights are 0 (because of a mask) updates nothing.
  bool skips_unweighted = false;
  // The values of kGrowthSteps and kFirstLossScale are those of Keras's LossScaleOptimizer.
  static constexpr int kGrowthSteps = 2000;
  static constexpr float kFirstLossScale = 32768.0f;
};

/// Options of the computation on a GPU.
struct GpuMath {
  /// The compute type, which is a floating type. Activations, their gradients, and the copies of weights that
  /// matrix products and convolutions read have this type. Parameters, their gradients, optimizer slots and
  /// statistics are always float32.
  DType type = DType::float32;
  /// If true, matrix products of float32 numbers use TF32, which has a mantissa of 10 bits.
  bool tf32 = false;
  /// If true, uses only algorithms whose results are bitwise the same in every run.
  bool deterministic = false;
};

}  // namespace dtrain
