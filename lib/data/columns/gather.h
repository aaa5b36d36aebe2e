// Loops that gather rows of an array into a batch and convert their values.
#pragma once

#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace dtrain {

/// The map y = scale * (x - center) + offset. The difference is computed in double, the rest in float32.
struct Affine {
  std::span<const float> scale, offset;  // one element each, or one per element of a row
  std::span<const double> center = {};   // one center per element of scale; empty if all are 0
};

/// The map y = scale * x + offset in double. Both vectors have one element, or one per element of a row.
struct ExactAffine {
  std::span<const double> scale, offset;
};

/// Copies rows contiguously to `dst` as float32, applying `affine`. Row r has `row_elements` values of type
/// `from` and starts at element r * row_elements of `base`.
void gather_affine(const void* base, DType from, std::span<const int64_t> rows, int64_t row_elements,
                   const Affine& affine, float* dst);

/// Copies rows contiguously and unchanged to `dst`. Row r starts at byte r * row_bytes of `base`.
void gather_copy(const void* base, size_t row_bytes, std::span<const int64_t> rows, void* dst);

/// Prefetches a row into the processor's cache. Call this function shortly before the row is read.
inline void prefetch_row(const void* row, size_t bytes) {
  constexpr size_t kLine = 64, kMost = 16 * kLine;  // the processor itself prefetches later bytes
  for (size_t at = 0; at < bytes && at < kMost; at += kLine)
    __builtin_prefetch(static_cast<const char*>(row) + at);
}
inline constexpr size_t kPrefetchRows = 4;

}  // namespace dtrain
