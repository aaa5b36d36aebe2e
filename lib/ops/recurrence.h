// Recurrent layers (LSTM, GRU, simple RNN). One call computes all steps of a batch of sequences.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/specs.h"

namespace dtrain {

/// The sizes and options of a recurrent layer. The columns of kernels, biases and gates are in Keras's order:
/// input, forget, cell, output for an LSTM, and update, reset, candidate for a GRU.
struct RecurrenceSpec {
  enum class Kind : uint8_t { lstm, gru, simple };
  Kind kind = Kind::lstm;
  int64_t batch = 0, steps = 0, inputs = 0, units = 0;
  ActivationSpec activation{.kind = Activation::tanh};
  /// Activation of the gates of an LSTM or a GRU.
  ActivationSpec recurrent_activation{.kind = Activation::sigmoid};
  bool bias = true;
  /// Only for a GRU. If true, the reset gate multiplies the product of the state and the candidate's kernel.
  /// If false, it multiplies the state before this product.
  bool reset_after = true;
  bool go_backwards = false;  ///< true if the last element of a sequence is processed first
  /// True if dst holds the state after every step (in the order of processing).
  bool return_sequences = false;
  bool training = true;            ///< true if there will be backward calls
  bool masked = false;             ///< true if calls have a mask
  bool has_state_factors = false;  ///< true if calls have state_factors

  /// Returns the number of blocks of `units` columns in the kernels.
  int64_t gates() const { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }
  /// Returns the number of rows of the bias. A GRU with reset_after has a second row, which is added to the
  /// product of the state and the recurrent kernel.
  int64_t bias_rows() const { return kind == Kind::gru && reset_after ? 2 : 1; }
  bool has_cell() const { return kind == Kind::lstm; }
};

/// All steps of a recurrent layer. Each row of the batch is a sequence.
class Recurrence {
 public:
  virtual ~Recurrence() = default;
  virtual size_t scratch_bytes() const = 0;
  virtual size_t saved_bytes() const = 0;

  struct ForwardArguments {
    const void* src;               ///< [batch, steps, inputs]
    const void* kernel;            ///< [inputs, gates * units]
    const void* recurrent_kernel;  ///< [units, gates * units]
    const float* bias;             ///< [bias_rows, gates * units]; null if the spec has none
    /// [batch, inputs]: factors by which the inputs of every step are multiplied. If null, the factors are 1.
    const void* input_factors = nullptr;
    /// [batch, gates * units]: factors for the state before each step, with separate factors for each gate.
    /// The state is multiplied by the factors of a gate before it is multiplied by this gate's part of the
    /// recurrent kernel. Null if the spec has no state factors.
    const void* state_factors = nullptr;
    const uint8_t* mask = nullptr;  ///< [batch, steps]: 0 for steps that keep the state (math::StepMask)
    const void *initial_state = nullptr, *initial_cell = nullptr;  ///< [batch, units]; if null, zeros
    /// [batch, steps, units] if the spec returns sequences, otherwise [batch, units] of the last step.
    void* dst = nullptr;
    void *last_state = nullptr, *last_cell = nullptr;  ///< [batch, units]; null if not needed
    /// `saved` may be null if the spec is not for training.
    void *saved = nullptr, *scratch = nullptr;
  };
  virtual void forward(const ForwardArguments& args) = 0;

  struct BackwardArguments {
    const void *src, *kernel, *recurrent_kernel, *input_factors = nullptr,
                                                 *state_factors = nullptr;  ///< as in the forward call
    const uint8_t* mask = nullptr;                                          ///< as in the forward call
    const void *diff_dst = nullptr, *diff_last_state = nullptr, *diff_last_cell = nullptr;  ///< null: 0
    void *diff_src = nullptr, *diff_initial_state = nullptr,
         *diff_initial_cell = nullptr;  ///< null if not needed
    /// The gradients of the weights; null if they are not needed. diff_bias is also null if the spec has no
    /// bias.
    float *diff_kernel = nullptr, *diff_recurrent_kernel = nullptr, *diff_bias = nullptr;
    const void* saved = nullptr;
    void* scratch = nullptr;
  };
  virtual void backward(const BackwardArguments& args) = 0;
};

}  // namespace dtrain
