#include "data/columns/gather.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "base/vector_clones.h"

namespace dtrain {

namespace {

template <class T>
[[gnu::always_inline]] inline void affine_loop(const T* __restrict src, float* __restrict dst, int64_t count,
                                               const Affine& affine) {
  const float* __restrict scale = affine.scale.data();
  const float* __restrict offset = affine.offset.data();
  if (affine.scale.size() == 1) {
    const float a = scale[0], b = offset[0];
    for (int64_t i = 0; i < count; ++i) dst[i] = static_cast<float>(src[i]) * a + b;
  } else {
    for (int64_t i = 0; i < count; ++i) dst[i] = static_cast<float>(src[i]) * scale[i] + offset[i];
  }
}

DTRAIN_VECTOR_CLONES void affine_uint8(const uint8_t* src, float* dst, int64_t count, const Affine& affine) {
  affine_loop(src, dst, count, affine);
}

DTRAIN_VECTOR_CLONES void affine_int32(const int32_t* src, float* dst, int64_t count, const Affine& affine) {
  affine_loop(src, dst, count, affine);
}

DTRAIN_VECTOR_CLONES void affine_float32(const float* src, float* dst, int64_t count, const Affine& affine) {
  affine_loop(src, dst, count, affine);
}

/// Like affine_loop(), but subtracts `affine.center` from the values first.
template <class T>
[[gnu::always_inline]] inline void centered_loop(const T* __restrict src, float* __restrict dst,
                                                 int64_t count, const Affine& affine) {
  const size_t step = affine.scale.size() == 1 ? 0 : 1;
  for (int64_t i = 0; i < count; ++i) {
    const size_t at = static_cast<size_t>(i) * step;
    const double center = affine.center.empty() ? 0.0 : affine.center[at];
    dst[i] = static_cast<float>(static_cast<double>(src[i]) - center) * affine.scale[at] + affine.offset[at];
  }
}

DTRAIN_VECTOR_CLONES void centered_uint8(const uint8_t* src, float* dst, int64_t count,
                                         const Affine& affine) {
  centered_loop(src, dst, count, affine);
}

DTRAIN_VECTOR_CLONES void centered_int32(const int32_t* src, float* dst, int64_t count,
                                         const Affine& affine) {
  centered_loop(src, dst, count, affine);
}

DTRAIN_VECTOR_CLONES void centered_float32(const float* src, float* dst, int64_t count,
                                           const Affine& affine) {
  centered_loop(src, dst, count, affine);
}

DTRAIN_VECTOR_CLONES void centered_float64(const double* src, float* dst, int64_t count,
                                           const Affine& affine) {
  centered_loop(src, dst, count, affine);
}

template <class T, class Row>
void gather(const void* base, std::span<const int64_t> rows, int64_t row_elements, Row row_kernel) {
  const auto* from = static_cast<const T*>(base);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kPrefetchRows < rows.size())
      prefetch_row(from + rows[i + kPrefetchRows] * row_elements,
                   static_cast<size_t>(row_elements) * sizeof(T));
    row_kernel(from + rows[i] * row_elements, static_cast<int64_t>(i));
  }
}

}  // namespace

void gather_affine(const void* base, DType from, std::span<const int64_t> rows, int64_t row_elements,
                   const Affine& affine, float* dst) {
  const auto each = [&](auto kernel) {
    return [=, &affine](const auto* src, int64_t i) {
      kernel(src, dst + i * row_elements, row_elements, affine);
    };
  };
  const bool plain = affine.center.empty();
  switch (from) {
    case DType::uint8:
      return gather<uint8_t>(base, rows, row_elements, each(plain ? affine_uint8 : centered_uint8));
    case DType::int32:
      return gather<int32_t>(base, rows, row_elements, each(plain ? affine_int32 : centered_int32));
    case DType::float32:
      return gather<float>(base, rows, row_elements, each(plain ? affine_float32 : centered_float32));
    case DType::float64:
      return gather<double>(base, rows, row_elements, each(centered_float64));
    case DType::bfloat16:
    case DType::float16:
      break;
  }
  throw std::logic_error("gather_affine() cannot read data of the type " + std::string(name_of(from)));
}

void gather_copy(const void* base, size_t row_bytes, std::span<const int64_t> rows, void* dst) {
  auto* out = static_cast<std::byte*>(dst);
  gather<std::byte>(base, rows, static_cast<int64_t>(row_bytes), [&](const std::byte* src, int64_t) {
    std::memcpy(out, src, row_bytes);
    out += row_bytes;
  });
}

}  // namespace dtrain
