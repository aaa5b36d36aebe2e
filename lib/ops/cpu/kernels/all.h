// All kernels, compiled for one instruction set. Each .cpp file of x86/ and generic/ includes this header
// once and defines the table for its instruction set. Everything in this header has internal linkage, and
// calls only functions with internal linkage or always-inlined functions (DTRAIN_HOST_DEVICE). Otherwise, the
// linker could merge a function with the version for another instruction set, which would then run on a CPU
// without that instruction set.
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
