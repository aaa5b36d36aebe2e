// The arithmetic of one element of a recurrent layer's step, for the CPU and the GPU. Gates are replaced in
// place: forward turns a gate's pre-activation into the number that backward needs (`kept`), and backward
// turns that number into the gradient of the pre-activation.
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

/// Any activation. It is selected again for every element.
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

/// Calls use(activation, recurrent_activation). Keras's defaults have their own instance; all other pairs
/// share one.
template <class Use>
inline void with_gate_activations(const ActivationSpec& activation, const ActivationSpec& recurrent,
                                  Use&& use) {
  if (activation.kind == Activation::tanh && recurrent.kind == Activation::sigmoid) {
    use(KeptOutput<Tanh>{}, KeptOutput<Sigmoid>{});
  } else {
    use(AnyKept{activation, from_output(activation)}, AnyKept{recurrent, from_output(recurrent)});
  }
}

/// The mask of one step of a batch of sequences. A masked step keeps the state. The output is 0 until the
/// first step that is not masked.
struct StepMask {
  const uint8_t* mask = nullptr;  ///< [rows, steps], 0 for a masked step; null: no step is masked
  int64_t steps = 0;
  int64_t step = 0;  ///< number of the step, in the order of processing
  bool reverses = false;

  DTRAIN_HOST_DEVICE bool at(int64_t row, int64_t t) const {
    return mask[row * steps + (reverses ? steps - 1 - t : t)] != 0;
  }
  DTRAIN_HOST_DEVICE bool is_valid(int64_t row) const { return !mask || at(row, step); }
  /// Returns whether this step or an earlier one is not masked.
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

/// Updates the cell and returns the state.
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

/// The gates of one unit of a gru. `inner` is the candidate's part of the product of the state and the
/// recurrent kernel. If the reset gate comes before that product, `inner` is the state times the reset gate,
/// which is then multiplied by the candidate's kernel.
struct GruGates {
  float update, reset, inner, candidate;
};

/// Returns the state, if the reset gate comes after the product.
template <class Function, class Gate>
DTRAIN_HOST_DEVICE inline float gru_forward(const Function& function, const Gate& gate, GruGates& gates,
                                            float before) {
  const float update = gate.keep(gates.update), reset = gate.keep(gates.reset);
  gates = {update, reset, gates.inner, function.keep(gates.candidate + gate.value(reset) * gates.inner)};
  return gate.value(update) * before + (1.0f - gate.value(update)) * function.value(gates.candidate);
}

/// Computes the gates and `inner` if the reset gate comes before the product.
template <class Gate>
DTRAIN_HOST_DEVICE inline void gru_reset(const Gate& gate, GruGates& gates, float before) {
  gates.update = gate.keep(gates.update);
  gates.reset = gate.keep(gates.reset);
  gates.inner = gate.value(gates.reset) * before;
}

/// Returns the state if the reset gate comes before the product. gates.candidate must include the product of
/// `inner` and the candidate's kernel.
template <class Function, class Gate>
DTRAIN_HOST_DEVICE inline float gru_finish(const Function& function, const Gate& gate, GruGates& gates,
                                           float before) {
  gates.candidate = function.keep(gates.candidate);
  const float update = gate.value(gates.update);
  return update * before + (1.0f - update) * function.value(gates.candidate);
}

/// Writes the gradients of the update gate and the candidate. Replaces `diff`, the gradient of the state, by
/// the part of the previous state's gradient that passes through no matrix product.
template <class Function, class Gate>
DTRAIN_HOST_DEVICE inline void gru_backward_mix(const Function& function, const Gate& gate, GruGates& gates,
                                                float before, float& diff) {
  const float update = gate.value(gates.update);
  gates.update = gate.backward(gates.update, diff * (before - function.value(gates.candidate)));
  gates.candidate = function.backward(gates.candidate, diff * (1.0f - update));
  diff = diff * update;
}

/// Computes all gradients of a step if the reset gate comes after the product.
template <class Function, class Gate>
DTRAIN_HOST_DEVICE inline void gru_backward(const Function& function, const Gate& gate, GruGates& gates,
                                            float before, float& diff) {
  gru_backward_mix(function, gate, gates, before, diff);
  const float reset = gate.value(gates.reset);
  gates.reset = gate.backward(gates.reset, gates.candidate * gates.inner);
  gates.inner = gates.candidate * reset;
}

/// Returns the gradient of the reset gate's pre-activation if the reset gate comes before the product.
/// `reset` is the number that forward kept, diff_inner is the gradient of `inner`. Adds the part that passes
/// through `inner` to `diff`, the gradient of the previous state.
template <class Gate>
DTRAIN_HOST_DEVICE inline float gru_backward_reset(const Gate& gate, float reset, float diff_inner,
                                                   float before, float& diff) {
  diff = diff + diff_inner * gate.value(reset);
  return gate.backward(reset, diff_inner * before);
}

}  // namespace dtrain::math
