// The arithmetic of recurrent layers: one step of one unit, for the CPU and the GPU. The values of the gates
// are replaced in place. The forward pass replaces the pre-activation of a gate by a value that the backward
// pass needs (`kept`). The backward pass replaces this value by the gradient of the pre-activation.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "ops/math/activations.h"

namespace dtrain::math {

/// An activation whose gradient is computed from its output.
template <class Function>
struct KeptOutput {
  Function function;
  DTRAIN_HOST_DEVICE float keep(float sum) const { return function.forward(sum); }
  DTRAIN_HOST_DEVICE float value(float kept) const { return kept; }
  DTRAIN_HOST_DEVICE float backward(float kept, float diff) const { return function.backward(kept, diff); }
};

/// Any activation. The activation is selected at run time for every element.
struct AnyKept {
  ActivationSpec spec;
  bool by_output;  ///< from_output(spec)

  DTRAIN_HOST_DEVICE float keep(float sum) const { return by_output ? forward(sum) : sum; }
  DTRAIN_HOST_DEVICE float value(float kept) const { return by_output ? kept : forward(kept); }
  DTRAIN_HOST_DEVICE float backward(float kept, float diff) const {
    float result = diff;
    with_activation(spec, [&](auto function) { result = function.backward(kept, diff); });
    return result;
  }
  DTRAIN_HOST_DEVICE float forward(float x) const {
    float y = x;
    with_activation(spec, [&](auto function) { y = function.forward(x); });
    return y;
  }
};

/// Calls use(activation, recurrent_activation). Keras's default activations have a separate type and
/// therefore a fast separate instance; all other pairs of activations share one instance.
template <class Use>
inline void with_gate_activations(const ActivationSpec& activation, const ActivationSpec& recurrent,
                                  Use&& use) {
  if (activation.kind == Activation::tanh && recurrent.kind == Activation::sigmoid) {
    use(KeptOutput<Tanh>{}, KeptOutput<Sigmoid>{});
  } else {
    use(AnyKept{activation, from_output(activation)}, AnyKept{recurrent, from_output(recurrent)});
  }
}

/// The mask of one step, for a batch of sequences. In a masked step, the state does not change. The output is
/// 0 until the first step that is not masked.
struct StepMask {
  const uint8_t* mask = nullptr;  ///< [rows, steps]: 0 for a masked step; if null, no step is masked
  int64_t steps = 0;
  int64_t step = 0;  ///< index of the step, in the order of processing
  bool reverses = false;

  DTRAIN_HOST_DEVICE bool at(int64_t row, int64_t t) const {
    return mask[row * steps + (reverses ? steps - 1 - t : t)] != 0;
  }
  DTRAIN_HOST_DEVICE bool is_valid(int64_t row) const { return !mask || at(row, step); }
  /// Returns whether this step or any step before it is not masked.
  DTRAIN_HOST_DEVICE bool has_output(int64_t row) const {
    if (!mask) return true;
    for (int64_t t = step; t >= 0; --t)
      if (at(row, t)) return true;
    return false;
  }
};

struct LstmGates {
  float input, forget, cell, output;
};

/// Computes the gates, updates the cell, and returns the new state.
template <class Function, class Gate>
DTRAIN_HOST_DEVICE inline float lstm_forward(const Function& function, const Gate& gate, LstmGates& gates,
                                             float& cell) {
  gates = {gate.keep(gates.input), gate.keep(gates.forget), function.keep(gates.cell),
           gate.keep(gates.output)};
  cell = gate.value(gates.forget) * cell + gate.value(gates.input) * function.value(gates.cell);
  return gate.value(gates.output) * function.value(function.keep(cell));
}

/// Replaces the gates by their gradients. `diff` is the gradient of the state. `diff_cell` is the gradient of
/// the cell after the step; it is replaced by the gradient of the cell before the step.
template <class Function, class Gate>
DTRAIN_HOST_DEVICE inline void lstm_backward(const Function& function, const Gate& gate, LstmGates& gates,
                                             float cell_before, float cell, float diff, float& diff_cell) {
  const LstmGates value = {gate.value(gates.input), gate.value(gates.forget), function.value(gates.cell),
                           gate.value(gates.output)};
  const float kept = function.keep(cell);
  const float diff_here = diff_cell + function.backward(kept, diff * value.output);
  gates = {gate.backward(gates.input, diff_here * value.cell),
           gate.backward(gates.forget, diff_here * cell_before),
           function.backward(gates.cell, diff_here * value.input),
           gate.backward(gates.output, diff * function.value(kept))};
  diff_cell = diff_here * value.forget;
}

/// The gates of one unit of a GRU. If the reset gate comes after the matrix product, `inner` is the product
/// of the state and the candidate's part of the recurrent kernel. If the reset gate comes before the matrix
/// product, `inner` is the state times the reset gate, and `inner` is then multiplied by the candidate's part
/// of the recurrent kernel.
struct GruGates {
  float update, reset, inner, candidate;
};

/// Computes the gates and returns the new state. Used for a GRU whose reset gate comes after the matrix
/// product.
template <class Function, class Gate>
DTRAIN_HOST_DEVICE inline float gru_forward(const Function& function, const Gate& gate, GruGates& gates,
                                            float before) {
  const float update = gate.keep(gates.update), reset = gate.keep(gates.reset);
  gates = {update, reset, gates.inner, function.keep(gates.candidate + gate.value(reset) * gates.inner)};
  return gate.value(update) * before + (1.0f - gate.value(update)) * function.value(gates.candidate);
}

/// Computes the update and reset gates, and `inner`. Used for a GRU whose reset gate comes before the matrix
/// product.
template <class Gate>
DTRAIN_HOST_DEVICE inline void gru_reset(const Gate& gate, GruGates& gates, float before) {
  gates.update = gate.keep(gates.update);
  gates.reset = gate.keep(gates.reset);
  gates.inner = gate.value(gates.reset) * before;
}

/// Computes the candidate and returns the new state. Used for a GRU whose reset gate comes before the matrix
/// product. gates.candidate must include the product of `inner` and the candidate's kernel.
template <class Function, class Gate>
DTRAIN_HOST_DEVICE inline float gru_finish(const Function& function, const Gate& gate, GruGates& gates,
                                           float before) {
  gates.candidate = function.keep(gates.candidate);
  const float update = gate.value(gates.update);
  return update * before + (1.0f - update) * function.value(gates.candidate);
}

/// Replaces the update gate and the candidate by their gradients. `diff` is the gradient of the state after
/// the step. It is replaced by a part of the gradient of the state before the step: the part that does not
/// pass through a matrix product.
template <class Function, class Gate>
DTRAIN_HOST_DEVICE inline void gru_backward_mix(const Function& function, const Gate& gate, GruGates& gates,
                                                float before, float& diff) {
  const float update = gate.value(gates.update);
  gates.update = gate.backward(gates.update, diff * (before - function.value(gates.candidate)));
  gates.candidate = function.backward(gates.candidate, diff * (1.0f - update));
  diff = diff * update;
}

/// Computes all gradients of a step. Used for a GRU whose reset gate comes after the matrix product.
template <class Function, class Gate>
DTRAIN_HOST_DEVICE inline void gru_backward(const Function& function, const Gate& gate, GruGates& gates,
                                            float before, float& diff) {
  gru_backward_mix(function, gate, gates, before, diff);
  const float reset = gate.value(gates.reset);
  gates.reset = gate.backward(gates.reset, gates.candidate * gates.inner);
  gates.inner = gates.candidate * reset;
}

/// Returns the gradient of the reset gate's pre-activation. Used for a GRU whose reset gate comes before the
/// matrix product. `reset` is the value that the forward pass has kept, and diff_inner is the gradient of
/// `inner`. A part of the gradient of the previous state passes through `inner`; this part is added to
/// `diff`.
template <class Gate>
DTRAIN_HOST_DEVICE inline float gru_backward_reset(const Gate& gate, float reset, float diff_inner,
                                                   float before, float& diff) {
  diff = diff + diff_inner * gate.value(reset);
  return gate.backward(reset, diff_inner * before);
}

}  // namespace dtrain::math
