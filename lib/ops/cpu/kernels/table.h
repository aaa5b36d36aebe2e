// dtrain's own CPU kernels. Each kernel is a single-threaded loop over a range. For every supported
// instruction set, there is a table (Kernels) with pointers to the kernels that were compiled for it.
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

/// Memory layout of a batch of images: [images, blocks, pixels, inner]. A block holds `inner` channels;
/// element i of block b belongs to channel b * inner + i.
struct ChannelLayout {
  int64_t blocks = 1, pixels = 1, inner = 1;
  DTRAIN_HOST_DEVICE int64_t channels() const { return blocks * inner; }
};
/// The values that normalize each channel (see math::Normalizer), as arrays of [channels].
struct NormalizedChannels {
  const float *mean, *scale, *shift;
};

/// The panels of a matrix product (row_product). A panel consists of kColumns columns of the result; it is
/// the smallest part of the product that is assigned to a thread.
struct ProductPanels {
  static constexpr int64_t kColumns = 32, kRows = 32;

  static int64_t count(const MatmulSpec& spec) { return (spec.n + kColumns - 1) / kColumns; }
  /// Returns the number of floats of a thread's work memory.
  static int64_t work_floats(const MatmulSpec& spec) { return (spec.k + kRows) * kColumns; }
};

/// One step of a recurrent layer, for some of the sequences of the batch. All arrays but `bias` have one row
/// per sequence, without gaps between the rows. Gates are [rows, width]. An LSTM has Keras's four gates, a
/// simple RNN has one, and a GRU has update, reset, inner and candidate (math::GruGates).
struct RecurrentStep {
  /// Pre-activations, which are replaced by the numbers that the backward pass needs.
  float* gates;
  const float* bias;                   ///< [width], in the order of the gates
  const float* state_before;           ///< [rows, units]
  float* state;                        ///< [rows, units], written
  const float* cell_before = nullptr;  ///< lstm: [rows, units]
  float* cell = nullptr;               ///< lstm: [rows, units], written
  /// True for the second call of a step. Only used for a GRU whose reset gate comes before the matrix
  /// product. Each step of such a GRU needs two calls. The first call computes `inner`. After `inner` has
  /// been multiplied by the candidate's kernel, the second call computes the rest of the step.
  bool second = false;
  math::StepMask mask = {};  ///< mask of the rows

  static int64_t width(const RecurrenceSpec& spec) {
    return (spec.kind == RecurrenceSpec::Kind::simple ? 1 : 4) * spec.units;
  }
};
struct RecurrentBackwardStep {
  const float* gates;  ///< as the forward step wrote them
  float* diff_gates;   ///< gradients of the pre-activations, written
  const float* state_before;
  const float *cell_before = nullptr, *cell = nullptr;  ///< lstm
  /// The gradient of the state after the step. The kernel first adds the gradient of the output to this
  /// array. For a GRU, and for all layers if there is a mask, the kernel then overwrites the array with a
  /// part of the gradient of the state before the step: the part that does not pass through a matrix product.
  float* diff_state;
  /// For an LSTM: gradient of the cell after the step, replaced by the gradient of the cell before it.
  float* diff_cell = nullptr;
  const float* diff_dst = nullptr;  ///< gradient of the output, or null
  int64_t diff_dst_stride = 0;      ///< elements from one row of diff_dst to the next
  /// True for the second call of a step. Only used for a GRU whose reset gate comes before the matrix
  /// product. Each step of such a GRU needs two calls. The first call computes the gradients of the update
  /// gate and the candidate. The second call computes the gradient of the reset gate from the gradient of
  /// `inner`.
  bool second = false;
  math::StepMask mask = {};  ///< mask of the rows
};

/// Pointers to all kernels (ops/cpu/kernels/kernels.inc), compiled for one instruction set.
struct Kernels {
  const char* instruction_set;

#define DTRAIN_KERNEL(result, name, arguments) result(*name) arguments;
#include "ops/cpu/kernels/kernels.inc"
};

/// Returns the tables of the instruction sets that this CPU supports, the best instruction set first.
std::vector<const Kernels*> supported_kernels();

}  // namespace dtrain::cpu
