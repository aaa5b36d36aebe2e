// Our own CPU kernels: single-threaded loops over a range, in one table per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/host_device.h"
#include "base/philox.h"
#include "ops/math/inverse_norm.h"
#include "ops/math/optimizers.h"
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

/// The functions of one instruction set (ops/cpu/kernels/kernels.inc).
struct Kernels {
  const char* instruction_set;

#define DTRAIN_KERNEL(result, name, arguments) result(*name) arguments;
#include "ops/cpu/kernels/kernels.inc"
};

/// Returns the tables that this CPU supports, best first.
std::vector<const Kernels*> supported_kernels();

}  // namespace dtrain::cpu
