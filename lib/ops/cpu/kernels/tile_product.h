// Products of small matrices. Part of kernels/all.h. Every element of the product is summed in the order of
// the inner index, regardless of the numbers of rows and columns. Therefore, row i of the product depends
// only on row i of a and on b.
#pragma once

#include "ops/cpu/kernels/table.h"

namespace dtrain::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int64_t kProductLanes = 16;
constexpr int kProductRows = 12;
#elif defined(__AVX2__)
constexpr int64_t kProductLanes = 8;
constexpr int kProductRows = 6;
#else
constexpr int64_t kProductLanes = 4;
constexpr int kProductRows = 6;
#endif
using ProductVector = float __attribute__((vector_size(kProductLanes * sizeof(float))));
using UnalignedProductVector =
    float __attribute__((vector_size(kProductLanes * sizeof(float)), aligned(alignof(float)), may_alias));

/// The product c = a b or, if `adds`, c += a b. c is [rows, columns]; `columns` is a multiple of
/// kProductLanes. Element (r, k) of a is a[r * a_row + k * a_step].
struct TileProduct {
  int64_t rows, columns, depth;
  const float* a;
  int64_t a_row, a_step;
  const float* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
  bool adds = false;
};

template <int kRows, int kVectors>
void multiply_block(const TileProduct& p, int64_t row, int64_t column) {
  ProductVector sums[kRows][kVectors] = {};
  const float* a = p.a + row * p.a_row;
  const float* b = p.b + column;
  for (int64_t k = 0; k < p.depth; ++k, a += p.a_step, b += p.b_row) {
    ProductVector values[kVectors];
    for (int v = 0; v < kVectors; ++v)
      values[v] = *reinterpret_cast<const UnalignedProductVector*>(b + v * kProductLanes);
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectors; ++v) sums[r][v] += a[r * p.a_row] * values[v];
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      auto& c =
          *reinterpret_cast<UnalignedProductVector*>(p.c + (row + r) * p.c_row + column + v * kProductLanes);
      c = p.adds ? c + sums[r][v] : sums[r][v];
    }
  }
}

/// Computes the remaining rows, from `row` on. There are at most kRows of them.
template <int kRows, int kVectors>
void multiply_rest(const TileProduct& p, int64_t row, int64_t column) {
  if constexpr (kRows > 0) {
    if (p.rows - row >= kRows) {
      multiply_block<kRows, kVectors>(p, row, column);
    } else {
      multiply_rest<kRows - 1, kVectors>(p, row, column);
    }
  }
}

template <int kVectors>
void multiply_columns(const TileProduct& p, int64_t column) {
  int64_t row = 0;
  for (; row + kProductRows <= p.rows; row += kProductRows)
    multiply_block<kProductRows, kVectors>(p, row, column);
  multiply_rest<kProductRows - 1, kVectors>(p, row, column);
}

void multiply_tile(const TileProduct& p) {
  int64_t column = 0;
  for (; column + 2 * kProductLanes <= p.columns; column += 2 * kProductLanes) multiply_columns<2>(p, column);
  for (; column < p.columns; column += kProductLanes) multiply_columns<1>(p, column);
}

}  // namespace
}  // namespace dtrain::cpu
