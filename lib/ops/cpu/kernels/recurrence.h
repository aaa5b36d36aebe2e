// The elementwise part of a recurrent layer's step. Part of kernels/all.h.
#pragma once

#include <algorithm>

#include "ops/cpu/kernels/table.h"
#include "ops/math/recurrence.h"

namespace dtrain::cpu {
namespace {

/// For a masked step, copies the state of row r (and the cell of an LSTM) before the step to the state after
/// the step.
void keep_state(const RecurrenceSpec& spec, const RecurrentStep& step, int64_t r) {
  const int64_t first = r * spec.units;
  std::copy_n(step.state_before + first, spec.units, step.state + first);
  if (spec.kind == RecurrenceSpec::Kind::lstm)
    std::copy_n(step.cell_before + first, spec.units, step.cell + first);
}

void recurrence_forward(const RecurrenceSpec& spec, const RecurrentStep& step, int64_t rows) {
  using Kind = RecurrenceSpec::Kind;
  const int64_t units = spec.units, width = RecurrentStep::width(spec);
  const float* const bias = step.bias;
  math::with_gate_activations(spec.activation, spec.recurrent_activation, [&](auto function, auto gate) {
    for (int64_t r = 0; r < rows; ++r) {
      float* const g = step.gates + r * width;
      float *const g1 = g + units, *const g2 = g1 + units, *const g3 = g2 + units;
      const float *const b1 = bias + units, *const b2 = b1 + units, *const b3 = b2 + units;
      float* const state = step.state + r * units;
      const float* const before = step.state_before + r * units;
      if (!step.mask.is_valid(r)) {
        keep_state(spec, step, r);
        continue;
      }
      if (spec.kind == Kind::lstm) {
        float* const cell = step.cell + r * units;
        const float* const cell_before = step.cell_before + r * units;
#pragma omp simd
        for (int64_t j = 0; j < units; ++j) {
          math::LstmGates gates{g[j] + bias[j], g1[j] + b1[j], g2[j] + b2[j], g3[j] + b3[j]};
          float c = cell_before[j];
          state[j] = math::lstm_forward(function, gate, gates, c);
          cell[j] = c;
          g[j] = gates.input, g1[j] = gates.forget, g2[j] = gates.cell, g3[j] = gates.output;
        }
      } else if (spec.kind == Kind::simple) {
#pragma omp simd
        for (int64_t j = 0; j < units; ++j) {
          g[j] = function.keep(g[j] + bias[j]);
          state[j] = function.value(g[j]);
        }
      } else if (spec.reset_after) {
#pragma omp simd
        for (int64_t j = 0; j < units; ++j) {
          math::GruGates gates{g[j] + bias[j], g1[j] + b1[j], g2[j] + b2[j], g3[j] + b3[j]};
          state[j] = math::gru_forward(function, gate, gates, before[j]);
          g[j] = gates.update, g1[j] = gates.reset, g2[j] = gates.inner, g3[j] = gates.candidate;
        }
      } else if (!step.second) {
#pragma omp simd
        for (int64_t j = 0; j < units; ++j) {
          math::GruGates gates{g[j] + bias[j], g1[j] + b1[j], 0.0f, 0.0f};
          math::gru_reset(gate, gates, before[j]);
          g[j] = gates.update, g1[j] = gates.reset, g2[j] = gates.inner;
        }
      } else {
#pragma omp simd
        for (int64_t j = 0; j < units; ++j) {
          math::GruGates gates{g[j], g1[j], g2[j], g3[j] + b3[j]};
          state[j] = math::gru_finish(function, gate, gates, before[j]);
          g3[j] = gates.candidate;
        }
      }
    }
  });
}

/// Adds the gradient of this step's output to the gradient of the state, if row r has an output.
void add_diff_output(const RecurrenceSpec& spec, const RecurrentBackwardStep& step, int64_t r) {
  if (step.second || !step.diff_dst || !step.mask.has_output(r)) return;
  float* const diff = step.diff_state + r * spec.units;
  const float* const from = step.diff_dst + r * step.diff_dst_stride;
#pragma omp simd
  for (int64_t j = 0; j < spec.units; ++j) diff[j] += from[j];
}

void recurrence_backward(const RecurrenceSpec& spec, const RecurrentBackwardStep& step, int64_t rows) {
  using Kind = RecurrenceSpec::Kind;
  const int64_t units = spec.units, width = RecurrentStep::width(spec);
  math::with_gate_activations(spec.activation, spec.recurrent_activation, [&](auto function, auto gate) {
    for (int64_t r = 0; r < rows; ++r) {
      const float* const g = step.gates + r * width;
      const float *const g1 = g + units, *const g2 = g1 + units, *const g3 = g2 + units;
      float* const d = step.diff_gates + r * width;
      float *const d1 = d + units, *const d2 = d1 + units, *const d3 = d2 + units;
      float* const diff = step.diff_state + r * units;
      const float* const before = step.state_before + r * units;
      add_diff_output(spec, step, r);
      if (!step.mask.is_valid(r)) {
        std::fill_n(d, width, 0.0f);
        continue;
      }
      if (spec.kind == Kind::lstm) {
        const float *const cell = step.cell + r * units, *const cell_before = step.cell_before + r * units;
        float* const diff_cell = step.diff_cell + r * units;
#pragma omp simd
        for (int64_t j = 0; j < units; ++j) {
          math::LstmGates gates{g[j], g1[j], g2[j], g3[j]};
          float dc = diff_cell[j];
          math::lstm_backward(function, gate, gates, cell_before[j], cell[j], diff[j], dc);
          diff_cell[j] = dc;
          d[j] = gates.input, d1[j] = gates.forget, d2[j] = gates.cell, d3[j] = gates.output;
        }
      } else if (spec.kind == Kind::simple) {
#pragma omp simd
        for (int64_t j = 0; j < units; ++j) d[j] = function.backward(g[j], diff[j]);
      } else if (spec.reset_after) {
#pragma omp simd
        for (int64_t j = 0; j < units; ++j) {
          math::GruGates gates{g[j], g1[j], g2[j], g3[j]};
          float dh = diff[j];
          math::gru_backward(function, gate, gates, before[j], dh);
          diff[j] = dh;
          d[j] = gates.update, d1[j] = gates.reset, d2[j] = gates.inner, d3[j] = gates.candidate;
        }
      } else if (!step.second) {
#pragma omp simd
        for (int64_t j = 0; j < units; ++j) {
          math::GruGates gates{g[j], g1[j], g2[j], g3[j]};
          float dh = diff[j];
          math::gru_backward_mix(function, gate, gates, before[j], dh);
          diff[j] = dh;
          d[j] = gates.update, d3[j] = gates.candidate;
        }
      } else {
#pragma omp simd
        for (int64_t j = 0; j < units; ++j) {
          float dh = diff[j];
          d1[j] = math::gru_backward_reset(gate, g1[j], d2[j], before[j], dh);
          diff[j] = dh;
        }
      }
      if (step.mask.mask && spec.kind != Kind::gru) std::fill_n(diff, units, 0.0f);
    }
  });
}

}  // namespace
}  // namespace dtrain::cpu
