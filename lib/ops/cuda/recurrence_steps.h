// The elementwise parts of recurrent layers. Each functor computes one element of one step, in the forward or
// backward pass, and is run by for_each() (ops/cuda/vector.h). Arrays of one step are [batch, units] or
// [batch, gates * units].
#pragma once

#include "ops/cuda/read_ahead.h"
#include "ops/cuda/vector.h"
#include "ops/math/recurrence.h"

namespace dtrain::cuda {

/// If to_steps is true, copies the inputs from [batch, steps, inputs] to [steps, batch, inputs]; otherwise,
/// copies in the opposite direction. The elements are multiplied by the factors, if there are any.
template <class T>
struct TransposeSteps {
  const T* src;
  const T* factors;  // [batch, inputs] or null
  T* dst;
  int64_t batch, steps, inputs;
  bool reverses, to_steps;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division column = divide(i, inputs),
                   row = divide(column.quotient, batch);  // row of the time-major array
    const int64_t step = reverses ? steps - 1 - row.quotient : row.quotient;
    const int64_t other = (row.rest * steps + step) * inputs + column.rest;
    const float factor = factors ? to_float(factors[row.rest * inputs + column.rest]) : 1.0f;
    if (to_steps) {
      dst[i] = from_float<T>(to_float(src[other]) * factor);
    } else {
      dst[other] = from_float<T>(to_float(src[i]) * factor);
    }
  }
};

/// Copies [rows, columns] between two arrays whose rows have different strides.
template <class T>
struct CopyColumns {
  const T* src;
  T* dst;
  int64_t columns, src_stride, dst_stride;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division at = divide(i, columns);
    dst[at.quotient * dst_stride + at.rest] = src[at.quotient * src_stride + at.rest];
  }
};

/// dst = states times a gate's factors; states are [steps, batch, units].
template <class T>
struct TimesFactors {
  const T *states, *factors;  // the factors of the batch's rows are `stride` elements apart
  T* dst;
  int64_t batch, units, stride;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division at = divide(i, units);
    const int64_t row = divide(at.quotient, batch).rest;
    dst[i] = from_float<T>(to_float(states[i]) * to_float(factors[row * stride + at.rest]));
  }
};

/// Multiplies src by a gate's factors. If `adds` is true, adds the product to dst; otherwise, writes it to
/// dst. dst and src are [batch, units].
template <class T>
struct AddTimesFactors {
  const float* src;
  const T* factors;  // the factors of the batch's rows are `stride` elements apart
  float* dst;
  int64_t units, stride;
  bool adds;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division at = divide(i, units);
    const float product = src[i] * to_float(factors[at.quotient * stride + at.rest]);
    dst[i] = adds ? dst[i] + product : product;
  }
};

/// Sets the state and the cell before the first step.
template <class T>
struct SetInitial {
  const T *state, *cell;  // null: 0
  T *states, *current;
  float* cells;  // null if there is no cell

  template <int N>
  __device__ void run(int64_t i) const {
    states[i] = current[i] = state ? state[i] : from_float<T>(0.0f);
    if (cells) cells[i] = cell ? to_float(cell[i]) : 0.0f;
  }
};

/// Computes, for each row of the batch, the index of its first step that is not masked, in the order of
/// processing. If all steps of the row are masked, the result is the number of steps.
struct FindFirstValid {
  math::StepMask mask;
  int64_t* first_valid;  // [batch]

  template <int N>
  __device__ void run(int64_t row) const {
    int64_t first = mask.steps;
    const auto load = [&](int64_t i) { return mask.at(row, mask.steps - 1 - i); };
    read_ahead<4>(0, mask.steps, 1, load,
                  [&](int64_t i, bool valid) { first = valid ? mask.steps - 1 - i : first; });
    first_valid[row] = first;
  }
};

/// The mask of one step, and the results of FindFirstValid. With these results, has_output() does not have to
/// read the masks of all earlier steps, which would be slow for a sequence that begins with a lot of padding.
struct PreparedStepMask : math::StepMask {
  const int64_t* first_valid = nullptr;  // [batch]

  __device__ bool has_output(int64_t row) const { return !mask || step >= first_valid[row]; }
};

/// The arrays to which a step's state is written.
template <class T>
struct StateOutputs {
  const T* before;      // [batch, units]
  T *states, *current;  // [batch, units]
  T* dst;               // null, or rows that are dst_stride elements apart
  int64_t dst_stride;
  PreparedStepMask mask;

  __device__ void write(int64_t i, const Division& at, T state) const {
    states[i] = current[i] = state;
    if (!dst) return;
    dst[at.quotient * dst_stride + at.rest] = mask.has_output(at.quotient) ? state : from_float<T>(0.0f);
  }
  /// If the step is masked, copies the state before the step to the outputs and returns true. Otherwise,
  /// returns false.
  __device__ bool keeps(int64_t i, const Division& at) const {
    if (mask.is_valid(at.quotient)) return false;
    write(i, at, before[i]);
    return true;
  }
};

__device__ inline float bias_of(const float* bias, int64_t column) {
  return bias ? bias[column] : 0.0f;
}

// Each of the following functors computes one element of one step. At the start, `gates` contains the
// products of the inputs and the kernel; the functor replaces them by the values that the backward pass
// needs. `sums` contains the products of the state and the recurrent kernel.

template <class T, class Function, class Gate>
struct LstmForward {
  Function function;
  Gate gate;
  int64_t units;
  T* gates;
  const float *sums, *bias, *cell_before;
  float* cell;
  StateOutputs<T> out;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division at = divide(i, units);
    if (out.keeps(i, at)) {
      cell[i] = cell_before[i];
      return;
    }
    const int64_t first = at.quotient * 4 * units + at.rest;
    float s[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int64_t place = first + k * units;
      s[k] = to_float(gates[place]) + sums[place] + bias_of(bias, at.rest + k * units);
    }
    math::LstmGates values{s[0], s[1], s[2], s[3]};
    float c = cell_before[i];
    const float state = math::lstm_forward(function, gate, values, c);
    cell[i] = c;
    gates[first] = from_float<T>(values.input);
    gates[first + units] = from_float<T>(values.forget);
    gates[first + 2 * units] = from_float<T>(values.cell);
    gates[first + 3 * units] = from_float<T>(values.output);
    out.write(i, at, from_float<T>(state));
  }
};

template <class T, class Function>
struct SimpleForward {
  Function function;
  int64_t units;
  T* gates;
  const float *sums, *bias;
  StateOutputs<T> out;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division at = divide(i, units);
    if (out.keeps(i, at)) return;
    const float kept = function.keep(to_float(gates[i]) + sums[i] + bias_of(bias, at.rest));
    gates[i] = from_float<T>(kept);
    out.write(i, at, from_float<T>(function.value(kept)));
  }
};

/// Returns the factor by which this element of the state is multiplied before the matrix product with the
/// candidate's kernel.
template <class T>
__device__ inline float candidate_factor(const T* factors, const Division& at, int64_t units) {
  return factors ? to_float(factors[(at.quotient * 3 + 2) * units + at.rest]) : 1.0f;
}

/// One step of a GRU. If reset_after is true, one call computes the whole step. Otherwise, a step needs two
/// calls:
///
/// 1. `sums` has only the columns of the update and reset gates. The call computes these gates. It also
///    writes `inner`, which is the product of the state, the reset gate and the candidate's state_factors (1
///    if null), and copies `inner` to `current_inner`.
/// 2. The call computes the new state from `candidate_sums`, the product of `inner` and the candidate's
///    kernel.
template <class T, class Function, class Gate>
struct GruForward {
  Function function;
  Gate gate;
  int64_t units;
  bool reset_after, second;
  T *gates, *inner, *current_inner;
  const float *sums, *candidate_sums, *bias;
  const T* state_factors;
  StateOutputs<T> out;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division at = divide(i, units);
    if (out.keeps(i, at)) {
      inner[i] = current_inner[i] = from_float<T>(0.0f);
      return;
    }
    const int64_t first = at.quotient * 3 * units + at.rest, j = at.rest;
    const float h = to_float(out.before[i]);
    math::GruGates values{to_float(gates[first]), to_float(gates[first + units]), to_float(inner[i]),
                          to_float(gates[first + 2 * units])};
    float state = 0.0f;
    if (reset_after) {
      const float* const recurrent = bias ? bias + 3 * units : nullptr;
      values.update += sums[first] + bias_of(bias, j) + bias_of(recurrent, j);
      values.reset += sums[first + units] + bias_of(bias, j + units) + bias_of(recurrent, j + units);
      values.inner = sums[first + 2 * units] + bias_of(recurrent, j + 2 * units);
      values.candidate += bias_of(bias, j + 2 * units);
      state = math::gru_forward(function, gate, values, h);
    } else if (!second) {
      const int64_t place = at.quotient * 2 * units + j;
      values.update += sums[place] + bias_of(bias, j);
      values.reset += sums[place + units] + bias_of(bias, j + units);
      math::gru_reset(gate, values, h);
      values.inner *= candidate_factor(state_factors, at, units);
      current_inner[i] = from_float<T>(values.inner);
    } else {
      values.candidate += candidate_sums[i] + bias_of(bias, j + 2 * units);
      state = math::gru_finish(function, gate, values, h);
    }
    gates[first] = from_float<T>(values.update);
    gates[first + units] = from_float<T>(values.reset);
    gates[first + 2 * units] = from_float<T>(values.candidate);
    inner[i] = from_float<T>(values.inner);
    if (reset_after || second) out.write(i, at, from_float<T>(state));
  }
};

/// The parts of the gradient of a step's state. The gradient is the sum of the parts that are not null.
template <class T>
struct StateGradient {
  const float *product, *direct;  // both come from the next step
  // `last` is the gradient of the last state. `dst` is the gradient of the output; its rows are dst_stride
  // elements apart.
  const T *last, *dst;
  int64_t dst_stride;
  PreparedStepMask mask;

  __device__ float read(int64_t i, const Division& at) const {
    float sum = product ? product[i] : 0.0f;
    if (direct) sum += direct[i];
    if (last) sum += to_float(last[i]);
    if (dst && mask.has_output(at.quotient)) sum += to_float(dst[at.quotient * dst_stride + at.rest]);
    return sum;
  }
};

template <class T, class Function, class Gate>
struct LstmBackward {
  Function function;
  Gate gate;
  int64_t units;
  const T* gates;
  T *diff_gates, *current;
  const float *cell_before, *cell;
  float *diff_cell, *direct;
  StateGradient<T> diff;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division at = divide(i, units);
    const int64_t first = at.quotient * 4 * units + at.rest;
    const bool valid = diff.mask.is_valid(at.quotient);
    const float dh = diff.read(i, at);
    if (direct) direct[i] = valid ? 0.0f : dh;
    if (!valid) {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        diff_gates[first + k * units] = current[first + k * units] = from_float<T>(0.0f);
      return;
    }
    math::LstmGates values{to_float(gates[first]), to_float(gates[first + units]),
                           to_float(gates[first + 2 * units]), to_float(gates[first + 3 * units])};
    float dc = diff_cell[i];
    math::lstm_backward(function, gate, values, cell_before[i], cell[i], dh, dc);
    diff_cell[i] = dc;
    const float results[4] = {values.input, values.forget, values.cell, values.output};
#pragma unroll
    for (int k = 0; k < 4; ++k)
      diff_gates[first + k * units] = current[first + k * units] = from_float<T>(results[k]);
  }
};

template <class T, class Function>
struct SimpleBackward {
  Function function;
  int64_t units;
  const T* gates;
  T *diff_gates, *current;
  float* direct;
  StateGradient<T> diff;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division at = divide(i, units);
    const bool valid = diff.mask.is_valid(at.quotient);
    const float dh = diff.read(i, at);
    if (direct) direct[i] = valid ? 0.0f : dh;
    diff_gates[i] = current[i] = from_float<T>(valid ? function.backward(to_float(gates[i]), dh) : 0.0f);
  }
};

/// The gradients of one step of a GRU. diff_gates [batch, 3 units] is the gradient of the products of the
/// inputs and the kernel. diff_state_gates is the gradient of the products of the state and the recurrent
/// kernel. `current` is an aligned copy of diff_state_gates.
///
/// If reset_after is true, one call computes the whole step, and diff_state_gates is [batch, 3 units].
/// Otherwise, a step needs two calls, and diff_state_gates is [batch, 2 units]. diff_candidate [batch, units]
/// is then the gradient of the product of `inner` and the candidate's kernel, and current_candidate is an
/// aligned copy of diff_candidate.
template <class T, class Function, class Gate>
struct GruBackward {
  Function function;
  Gate gate;
  int64_t units;
  bool reset_after, second;
  const T *gates, *inner, *before;
  T *diff_gates, *diff_state_gates, *current, *diff_candidate, *current_candidate;
  const float* diff_inner;  // gradient of GruForward::inner, for the second call
  const T* state_factors;   // as in the forward step
  // Part of the gradient of the previous state that passes through no matrix product.
  float* direct;
  StateGradient<T> diff;

  /// Computes a masked step: the gradient of the state passes to the previous state unchanged, and all other
  /// gradients are 0.
  __device__ void pass(int64_t i, const Division& at) const {
    const T zero = from_float<T>(0.0f);
    if (!second) direct[i] = diff.read(i, at);
    const int64_t columns = (reset_after ? 3 : 2) * units;
    for (int k = 0; k < 3; ++k) diff_gates[at.quotient * 3 * units + k * units + at.rest] = zero;
    for (int64_t place = at.rest; place < columns; place += units)
      diff_state_gates[at.quotient * columns + place] = current[at.quotient * columns + place] = zero;
    if (!reset_after) diff_candidate[i] = current_candidate[i] = zero;
  }

  template <int N>
  __device__ void run(int64_t i) const {
    const Division at = divide(i, units);
    const int64_t first = at.quotient * 3 * units + at.rest;
    if (!diff.mask.is_valid(at.quotient)) return pass(i, at);
    const float h = to_float(before[i]);
    math::GruGates values{to_float(gates[first]), to_float(gates[first + units]), to_float(inner[i]),
                          to_float(gates[first + 2 * units])};
    if (reset_after) {
      float dh = diff.read(i, at);
      math::gru_backward(function, gate, values, h, dh);
      direct[i] = dh;
      diff_gates[first] = diff_state_gates[first] = current[first] = from_float<T>(values.update);
      diff_gates[first + units] = diff_state_gates[first + units] = current[first + units] =
          from_float<T>(values.reset);
      diff_gates[first + 2 * units] = from_float<T>(values.candidate);
      diff_state_gates[first + 2 * units] = current[first + 2 * units] = from_float<T>(values.inner);
      return;
    }
    const int64_t place = at.quotient * 2 * units + at.rest;
    if (!second) {
      float dh = diff.read(i, at);
      math::gru_backward_mix(function, gate, values, h, dh);
      direct[i] = dh;
      diff_gates[first] = diff_state_gates[place] = current[place] = from_float<T>(values.update);
      diff_gates[first + 2 * units] = diff_candidate[i] = current_candidate[i] =
          from_float<T>(values.candidate);
    } else {
      float dh = direct[i];
      const float from = diff_inner[i] * candidate_factor(state_factors, at, units);
      const float reset = math::gru_backward_reset(gate, values.reset, from, h, dh);
      direct[i] = dh;
      diff_gates[first + units] = diff_state_gates[place + units] = current[place + units] =
          from_float<T>(reset);
    }
  }
};

template <class T>
struct InitialGradient {
  StateGradient<T> diff;
  T* dst;

  template <int N>
  __device__ void run(int64_t i) const {
    dst[i] = from_float<T>(diff.read(i, {0, i}));
  }
};

}  // namespace dtrain::cuda
