// The plain descriptions that operations are prepared from.
#pragma once

#include <cstdint>
#include <variant>

#include "base/view.h"

namespace dtrain {

/// Keras's activations (softmax apart, which looks at a whole row).
enum class Activation : uint8_t { linear, relu, leaky_relu, gelu, silu, tanh, sigmoid, elu };

struct ActivationSpec {
  Activation kind = Activation::linear;
  float alpha = 0;  ///< leaky_relu's negative_slope (0.3 in Keras's layer, 0.2 in its function), elu's alpha
  bool approximate = false;  ///< gelu by tanh instead of erf
  bool operator==(const ActivationSpec&) const = default;
};

/// Whether the gradient can be had from the output, so that the input need not be kept (and the activation
/// may be fused).
constexpr bool from_output(const ActivationSpec& spec) {
  return spec.kind != Activation::gelu && spec.kind != Activation::silu;
}

/// op(A) is [m, k], stored [k, m] where transposed; op(B) is [k, n], stored [n, k] where transposed.
struct MatmulSpec {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool bias = false;
  ActivationSpec activation;  ///< with from_output only
};

struct Padding2 {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  bool operator==(const Padding2&) const = default;
};

struct ConvolutionSpec {
  int64_t batch = 0, height = 0, width = 0, channels = 0;  // of the source
  int64_t filters = 0;                                     // of a depthwise one: channels * multiplier
  int64_t kernel_height = 1, kernel_width = 1;
  int64_t stride_height = 1, stride_width = 1;
  int64_t dilation_height = 1, dilation_width = 1;
  Padding2 padding;
  bool depthwise = false;
  bool bias = false;
  ActivationSpec activation;   ///< with from_output only
  bool plain_only = false;     ///< src and dst in the plain layout, whatever would be faster
  bool training = true;        ///< backward calls will come
  bool needs_diff_src = true;  ///< backward_data among them

  int64_t out_height() const {
    return (height + padding.top + padding.bottom - (dilation_height * (kernel_height - 1) + 1)) /
               stride_height +
           1;
  }
  int64_t out_width() const {
    return (width + padding.left + padding.right - (dilation_width * (kernel_width - 1) + 1)) / stride_width +
           1;
  }
};

/// The average is over the pixels that exist, padding left out, as in Keras.
struct PoolingSpec {
  enum class Kind : uint8_t { max, average };
  Kind kind = Kind::max;
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  int64_t pool_height = 1, pool_width = 1;
  int64_t stride_height = 1, stride_width = 1;
  Padding2 padding;
  Layout layout = Layout::plain;  ///< of source and destination
  bool training = true;

  int64_t out_height() const {
    return (height + padding.top + padding.bottom - pool_height) / stride_height + 1;
  }
  int64_t out_width() const { return (width + padding.left + padding.right - pool_width) / stride_width + 1; }
};

struct BatchNormalizationSpec {
  int64_t batch = 0, height = 1, width = 1, channels = 0;
  float epsilon = 1e-3f;
  bool scale = true, center = true;
  bool relu = false;  ///< a fused relu behind it
  Layout layout = Layout::plain;
  bool training = true;
};

/// Sparse: the target is int32 class numbers of [rows] (one out of range gives NaN); else float32
/// probabilities of [rows, columns].
struct CrossEntropySpec {
  bool sparse = true;
  bool from_logits = true;  ///< else probabilities, clipped to [1e-7, 1 - 1e-7] as Keras does
};

struct ElementwiseLossSpec {
  enum class Kind : uint8_t { binary_crossentropy, mean_squared_error, mean_absolute_error, huber };
  Kind kind = Kind::mean_squared_error;
  bool from_logits = false;  ///< binary_crossentropy
  float delta = 1;           ///< huber
};

struct MetricSpec {
  enum class Kind : uint8_t { sparse_top_k, categorical_top_k, binary_accuracy, mean_absolute_error };
  Kind kind = Kind::sparse_top_k;
  int k = 1;  ///< top_k: fewer than k scores are greater, or equal and before it (so that k = 1 is argmax)
  float threshold = 0.5f;  ///< binary_accuracy
};

// Optimizer steps, with Keras's rules. Decoupled weight decay first where it is not 0: w -= learning_rate *
// weight_decay * w.

struct SgdStep {  // slots: velocity, where momentum is not 0
  float learning_rate, momentum;
  bool nesterov;
};
struct RmspropStep {  // slots: mean square; mean gradient where centered; momentum where it is not 0
  float learning_rate, rho, momentum, epsilon;
  bool centered;
};
struct AdagradStep {  // slots: accumulator
  float learning_rate, epsilon;
};
struct AdamStep {  // slots: m, v. alpha = learning_rate * sqrt(1 - beta_2^t) / (1 - beta_1^t); w -= alpha * m
                   // / (sqrt(v) + epsilon)
  float alpha, beta_1, beta_2, epsilon;
};
/// state = momentum * state + (1 - momentum) * gradient: batch normalisation's moving statistics. No slots,
/// no decay.
struct MovingAverageStep {
  float momentum;
};

struct OptimizerStep {
  std::variant<SgdStep, RmspropStep, AdagradStep, AdamStep, MovingAverageStep> rule;
  float gradient_scale = 1;  ///< clipping
  float decay = 0;           ///< learning_rate * weight_decay
};

}  // namespace dtrain
