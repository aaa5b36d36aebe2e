// Copies data between the arrays of a recurrent layer's batch and the arrays for a block of its rows.
#pragma once

#include <algorithm>
#include <cstring>

#include "ops/cpu/cpu_ops.h"
#include "ops/recurrence.h"

namespace dtrain::cpu {

/// The rows of the batch that one thread computes.
struct RowBlock {
  int64_t first, count;
};

/// Copies data between the arrays of a batch and the arrays of a block. In a block, the steps of a sequence
/// are in the order of processing, which is reversed if the layer goes backwards.
class SequenceRows {
 public:
  explicit SequenceRows(const RecurrenceSpec& spec) : spec_(spec) {}

  /// Copies [rows, units] from the array of a batch. If `src` is null, writes zeros.
  void copy_rows(float* dst, const void* src, const RowBlock& rows) const {
    const auto bytes = static_cast<size_t>(rows.count * spec_.units) * sizeof(float);
    if (src) {
      std::memcpy(dst, f32(src) + rows.first * spec_.units, bytes);
    } else {
      std::memset(dst, 0, bytes);
    }
  }

  /// Gathers the inputs of the steps [first, first + count) as [count, rows, inputs].
  void gather_inputs(const void* src, const void* factors, const RowBlock& rows, int64_t first, int64_t count,
                     float* dst) const {
    const int64_t inputs = spec_.inputs;
    for (int64_t r = 0; r < rows.count; ++r) {
      const float* const factor = factors ? f32(factors) + (rows.first + r) * inputs : nullptr;
      for (int64_t t = 0; t < count; ++t) {
        const float* const from =
            f32(src) + ((rows.first + r) * spec_.steps + source_step(first + t)) * inputs;
        float* const to = dst + (t * rows.count + r) * inputs;
        if (!factor) {
          std::memcpy(to, from, static_cast<size_t>(inputs) * sizeof(float));
        } else {
          for (int64_t i = 0; i < inputs; ++i) to[i] = from[i] * factor[i];
        }
      }
    }
  }

  /// Does the reverse of gather_inputs(), for gradients.
  void scatter_inputs(const float* src, const void* factors, const RowBlock& rows, int64_t first,
                      int64_t count, void* dst) const {
    const int64_t inputs = spec_.inputs;
    for (int64_t r = 0; r < rows.count; ++r) {
      const float* const factor = factors ? f32(factors) + (rows.first + r) * inputs : nullptr;
      for (int64_t t = 0; t < count; ++t) {
        const float* const from = src + (t * rows.count + r) * inputs;
        float* const to = f32(dst) + ((rows.first + r) * spec_.steps + source_step(first + t)) * inputs;
        if (!factor) {
          std::memcpy(to, from, static_cast<size_t>(inputs) * sizeof(float));
        } else {
          for (int64_t i = 0; i < inputs; ++i) to[i] = from[i] * factor[i];
        }
      }
    }
  }

  math::StepMask mask_of(const uint8_t* mask, const RowBlock& rows, int64_t step) const {
    if (!mask) return {};
    return {mask + rows.first * spec_.steps, spec_.steps, step, spec_.go_backwards};
  }

  /// Writes a step's outputs to rows of dst; `stride` is the number of elements from one row to the next.
  void write_output(float* dst, int64_t stride, const RecurrentStep& step, const RowBlock& rows) const {
    for (int64_t r = 0; r < rows.count; ++r) {
      float* const to = dst + (rows.first + r) * stride;
      if (step.mask.has_output(r)) {
        std::copy_n(step.state + r * spec_.units, spec_.units, to);
      } else {
        std::fill_n(to, spec_.units, 0.0f);
      }
    }
  }

  void set_output_gradient(const Recurrence::BackwardArguments& args, const RowBlock& rows, int64_t t,
                           RecurrentBackwardStep& step) const {
    if (!args.diff_dst || (!spec_.return_sequences && t + 1 < spec_.steps)) return;
    const int64_t stride = (spec_.return_sequences ? spec_.steps : 1) * spec_.units;
    step.diff_dst = f32(args.diff_dst) + rows.first * stride + (spec_.return_sequences ? t * spec_.units : 0);
    step.diff_dst_stride = stride;
  }

 private:
  int64_t source_step(int64_t step) const { return spec_.go_backwards ? spec_.steps - 1 - step : step; }

  const RecurrenceSpec spec_;
};

}  // namespace dtrain::cpu
