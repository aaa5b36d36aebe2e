// Our own CPU kernels: single-threaded loops over a range, in one table per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/host_device.h"
#include "base/philox.h"
#include "ops/cpu/kernels/attention_tiles.h"
#include "ops/math/inverse_norm.h"
#include "ops/math/optimizers.h"
#include "ops/math/recurrence.h"
#include "ops/recurrence.h"
#include "ops/specs.h"

namespace dtrain::cpu {

/// Memory layout of images by channel: [images, blocks, pixels, inner]; element i of block b belongs to
/// channel b * inner + i.
struct ChannelLayout {
  int64_t blocks = 1, pixels = 1, inner = 1;
  DTRAIN_HOST_DEVICE int64_t channels() const { return blocks * inner; }
};
/// Normalization of each channel (math::Normalizer), arrays of [channels].
struct NormalizedChannels {
  const float *mean, *scale, *shift;
};

/// Parts of a matrix product that a thread computes at once (row_product).
struct ProductPanels {
  static constexpr int64_t kColumns = 32, kRows = 32;

  static int64_t count(const MatmulSpec& spec) { return (spec.n + kColumns - 1) / kColumns; }
  /// Returns the number of floats of a thread's work memory.
  static int64_t work_floats(const MatmulSpec& spec) { return (spec.k + kRows) * kColumns; }
};

/// One step of some rows of a recurrent layer. All arrays but `bias` have one row per sequence, without gaps.
/// Gates are [rows, width]. An lstm has Keras's four gates, a simple layer has one, and a gru has update,
/// reset, inner, candidate (math::GruGates).
struct RecurrentStep {
  float* gates;                        ///< pre-activations, replaced by the numbers that backward needs
  const float* bias;                   ///< [width], in the order of the gates
  const float* state_before;           ///< [rows, units]
  float* state;                        ///< [rows, units], written
  const float* cell_before = nullptr;  ///< lstm: [rows, units]
  float* cell = nullptr;               ///< lstm: [rows, units], written
  /// For a gru that resets before the product: false for the part of the step before the product of `inner`
  /// and the candidate's kernel, true for the part after it.
  bool second = false;
  math::StepMask mask = {};  ///< mask of the rows

  static int64_t width(const RecurrenceSpec& spec) {
    return (spec.kind == RecurrenceSpec::Kind::simple ? 1 : 4) * spec.units;
  }
};
struct RecurrentBackwardStep {
  const float* gates;  ///< as the forward step left them
  float* diff_gates;   ///< gradients of the pre-activations, written
  const float* state_before;
  const float *cell_before = nullptr, *cell = nullptr;  ///< lstm
  /// The gradient of the state. The step adds the gradient of the output to it. A gru, and every kind if
  /// there is a mask, then replaces it by the part of the previous state's gradient that passes through no
  /// matrix product.
  float* diff_state;
  /// For an LSTM: gradient of the cell after the step, replaced by the gradient of the cell before it.
  float* diff_cell = nullptr;
  const float* diff_dst = nullptr;  ///< gradient of the output, or null
  int64_t diff_dst_stride = 0;      ///< elements from one row of diff_dst to the next
  /// For a gru that resets before the product: false for the gradients of the update gate and the candidate,
  /// true for the gradient of the reset gate, which needs the gradient of `inner`.
  bool second = false;
  math::StepMask mask = {};  ///< mask of the rows
};

/// The functions of one instruction set (ops/cpu/kernels/kernels.inc).
struct Kernels {
  const char* instruction_set;

#define DTRAIN_KERNEL(result, name, arguments) result(*name) arguments;
#include "ops/cpu/kernels/kernels.inc"
};

/// Returns the tables that this CPU supports, best first.
std::vector<const Kernels*> supported_kernels();

}  // namespace dtrain::cpu
