// Loops that copy rows of an array into a batch and convert them on the way.
#pragma once

#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace dtrain {

/// The map y = scale * (x - center) + offset: the difference in double, the rest in float32. The numbers are
/// the same for all elements, or there is one of each for each element of a row.
struct Affine {
  std::span<const float> scale, offset;  // both of one element, or of a row's
  std::span<const double> center = {};   // as long as they are; empty: 0
};

/// The numbers of a map y = scale * x + offset in double, of one element or of a row's.
struct ExactAffine {
  std::span<const double> scale, offset;
};

/// Copies rows to `dst`, one after the other, as float32 through `affine`. Row r has `row_elements` values of
/// type `from` and lies at element r * row_elements of `base`.
void gather_affine(const void* base, DType from, std::span<const int64_t> rows, int64_t row_elements,
                   const Affine& affine, float* dst);

/// Copies rows to `dst`, one after the other, as they are. Row r lies at byte r * row_bytes of `base`.
void gather_copy(const void* base, size_t row_bytes, std::span<const int64_t> rows, void* dst);

/// Asks the processor for a row that will be read soon.
inline void prefetch_row(const void* row, size_t bytes) {
  constexpr size_t kLine = 64, kMost = 16 * kLine;  // from there on the processor prefetches by itself
  for (size_t at = 0; at < bytes && at < kMost; at += kLine)
    __builtin_prefetch(static_cast<const char*>(row) + at);
}
inline constexpr size_t kPrefetchRows = 4;

}  // namespace dtrain
