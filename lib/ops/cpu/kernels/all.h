// All kernels, compiled for one instruction set: each .cpp file of x86/ and generic/ includes this once and
// names its table. Everything here has internal linkage and calls only functions with internal linkage or
// always-inlined ones (DTRAIN_HOST_DEVICE): the linker could otherwise merge a function with another
// instruction set's version, which would then run on a CPU that lacks that instruction set.
#pragma once

#include "ops/cpu/kernels/attention.h"
#include "ops/cpu/kernels/channels.h"
#include "ops/cpu/kernels/elementwise.h"
#include "ops/cpu/kernels/groups.h"
#include "ops/cpu/kernels/losses.h"
#include "ops/cpu/kernels/recurrence.h"
#include "ops/cpu/kernels/row_product.h"
#include "ops/cpu/kernels/rows.h"
#include "ops/cpu/kernels/weights.h"

namespace dtrain::cpu {
namespace {

constexpr Kernels kernels_named(const char* instruction_set) {
  return {
      .instruction_set = instruction_set,
#define DTRAIN_KERNEL(result, name, arguments) .name = name,
#include "ops/cpu/kernels/kernels.inc"
  };
}

}  // namespace
}  // namespace dtrain::cpu
