// All kernels, compiled for one instruction set: each .cpp file of x86/ and generic/ includes this once and
// names its table. Everything here has internal linkage and calls only functions with internal linkage or
// always-inlined ones (DTRAIN_HOST_DEVICE): the linker could otherwise merge a function with another
// instruction set's version, which would then run on a CPU that lacks that instruction set.
#pragma once

#include "ops/cpu/kernels/channels.h"
#include "ops/cpu/kernels/elementwise.h"
#include "ops/cpu/kernels/losses.h"
#include "ops/cpu/kernels/rows.h"

namespace dtrain::cpu {
namespace {

constexpr Kernels kernels_named(const char* instruction_set) {
  return {.instruction_set = instruction_set,
          .fill = fill,
          .scale_add = scale_add,
          .sum = sum,
          .multiply = multiply,
          .sum_backward = sum_backward,
          .dropout = dropout,
          .bias_activation = bias_activation,
          .softmax_forward = softmax_forward,
          .softmax_backward = softmax_backward,
          .layer_normalization_forward = layer_normalization_forward,
          .layer_normalization_backward = layer_normalization_backward,
          .convert_row = convert_row,
          .column_sum = column_sum,
          .layer_normalization_scale = layer_normalization_scale,
          .embedding_backward = embedding_backward,
          .channel_moments = channel_moments,
          .normalize_channels = normalize_channels,
          .channel_gradient_sums = channel_gradient_sums,
          .normalize_channels_backward = normalize_channels_backward,
          .cross_entropy = cross_entropy,
          .elementwise_loss = elementwise_loss,
          .row_loss = row_loss,
          .metric = metric,
          .sum_of = sum_of,
          .sum_of_squares = sum_of_squares,
          .update = update};
}

}  // namespace
}  // namespace dtrain::cpu
