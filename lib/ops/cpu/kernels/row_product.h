// Matrix products in which each row of the result is computed independently of the other rows. Part of
// kernels/all.h.
#pragma once

#include "ops/cpu/kernels/table.h"
#include "ops/cpu/kernels/tile_product.h"

namespace dtrain::cpu {
namespace {

/// Copies `count` columns of b to `panel`. A row of the panel has ProductPanels::kColumns elements; those
/// from `count` on are set to 0.
void pack_panel(const MatmulSpec& spec, const float* b, int64_t first, int64_t count, float* panel) {
  constexpr int64_t kColumns = ProductPanels::kColumns;
  for (int64_t k = 0; k < spec.k; ++k) {
    float* const to = panel + k * kColumns;
    if (spec.transpose_b) {
      for (int64_t c = 0; c < count; ++c) to[c] = b[(first + c) * spec.k + k];
    } else {
      for (int64_t c = 0; c < count; ++c) to[c] = b[k * spec.n + first + c];
    }
    for (int64_t c = count; c < kColumns; ++c) to[c] = 0.0f;
  }
}

void row_product(const MatmulSpec& spec, const float* a, const float* b, float* c, float* work, int64_t begin,
                 int64_t end) {
  constexpr int64_t kColumns = ProductPanels::kColumns, kRows = ProductPanels::kRows;
  float* const panel = work;
  float* const tile = work + spec.k * kColumns;
  for (int64_t p = begin; p < end; ++p) {
    const int64_t first = p * kColumns, left = spec.n - first;
    const int64_t count = left < kColumns ? left : kColumns;
    pack_panel(spec, b, first, count, panel);
    if (count == kColumns) {
      multiply_tile({spec.m, kColumns, spec.k, a, spec.k, 1, panel, kColumns, c + first, spec.n});
      continue;
    }
    for (int64_t row = 0; row < spec.m; row += kRows) {
      const int64_t rows = spec.m - row < kRows ? spec.m - row : kRows;
      multiply_tile({rows, kColumns, spec.k, a + row * spec.k, spec.k, 1, panel, kColumns, tile, kColumns});
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < count; ++i) c[(row + r) * spec.n + first + i] = tile[r * kColumns + i];
    }
  }
}

}  // namespace
}  // namespace dtrain::cpu
