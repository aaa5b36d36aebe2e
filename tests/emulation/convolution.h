// Convolutions and their gradients, computed from their definition.
#pragma once

#include <array>
#include <cstdint>

#include "emulation/numbers.h"

namespace dtrain::emulation {

/// A tensor with five dimensions: samples or filters, channels, depth (1 for images), height, width.
struct Tensor {
  int64_t name = 0;
  Number type = Number::float32;
  std::array<int64_t, 5> dimensions{}, strides{};
  int64_t elements() const {
    int64_t product = 1;
    for (const int64_t dimension : dimensions) product *= dimension;
    return product;
  }
  int64_t at(int64_t n, int64_t c, int64_t z, int64_t y, int64_t x) const {
    return n * strides[0] + c * strides[1] + z * strides[2] + y * strides[3] + x * strides[4];
  }
};

/// Padding, strides and dilations along depth, height and width.
struct Convolution {
  std::array<int64_t, 3> before{}, after{}, strides{}, dilations{};
};

enum class Direction { forward, data, filter };

/// A convolution or one of its gradients. The direction determines which of the three tensors is computed.
/// The other two tensors have the same type.
struct Operation {
  Direction direction = Direction::forward;
  Convolution convolution;
  Tensor x, w, y;
};

/// Computes the tensor that the direction determines, in double precision. `arrays`: the arrays of x, w and
/// y. Every result is multiplied by 1 + error.
void convolve(const Operation& operation, double error, const std::array<void*, 3>& arrays);

}  // namespace dtrain::emulation
