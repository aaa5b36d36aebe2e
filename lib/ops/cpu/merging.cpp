#include "ops/math/merging.h"

#include <algorithm>

#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {

namespace {

math::Merge merge_of(MergeKind kind, std::span<const void* const> srcs) {
  return {kind, static_cast<float>(srcs.size())};
}

float merged(const math::Merge& merge, std::span<const void* const> srcs, int64_t i) {
  float value = f32(srcs[0])[i];
  for (size_t s = 1; s < srcs.size(); ++s) value = merge.add(value, f32(srcs[s])[i]);
  return value;
}

/// Returns the offset in src of the first element of a row of dst.
int64_t offset_of(const StridedSum& spec, int64_t row) {
  int64_t offset = 0;
  for (size_t axis = 5; axis-- > 0; row /= spec.extents[axis])
    offset += row % spec.extents[axis] * spec.strides[axis];
  return offset;
}

void sum_row(const StridedSum& spec, const float* src, float* dst) {
  const int64_t columns = spec.extents[5], stride = spec.strides[5];
  for (int64_t j0 = 0; j0 < spec.sum_extents[0]; ++j0) {
    for (int64_t j1 = 0; j1 < spec.sum_extents[1]; ++j1) {
      const float* from = src + j0 * spec.sum_strides[0] + j1 * spec.sum_strides[1];
      if (j0 == 0 && j1 == 0) {
        for (int64_t c = 0; c < columns; ++c) dst[c] = from[c * stride];
      } else {
        for (int64_t c = 0; c < columns; ++c) dst[c] += from[c * stride];
      }
    }
  }
}

}  // namespace

void CpuOps::merge(MergeKind kind, void* dst, std::span<const void* const> srcs, int64_t n) {
  const math::Merge merge = merge_of(kind, srcs);
  each(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f32(dst)[i] = merge.finish(merged(merge, srcs, i));
  });
}

void CpuOps::merge_backward(MergeKind kind, std::span<const void* const> srcs, size_t which,
                            const void* diff_dst, void* diff_src, int64_t n) {
  const math::Merge merge = merge_of(kind, srcs);
  each(n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float diff = f32(diff_dst)[i];
      if (!merge.selects()) {
        f32(diff_src)[i] = merge.gradient(diff, which == 0);
        continue;
      }
      const float best = merged(merge, srcs, i);
      size_t selected = 0;
      while (selected < which && f32(srcs[selected])[i] != best) ++selected;
      f32(diff_src)[i] = selected == which && f32(srcs[which])[i] == best ? diff : 0.0f;
    }
  });
}

void CpuOps::strided_sum(const StridedSum& spec, const void* src, void* dst) {
  const int64_t columns = spec.extents[5], rows = spec.elements() / std::max<int64_t>(columns, 1);
  each_row(rows, columns * spec.sum_extents[0] * spec.sum_extents[1], [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      sum_row(spec, f32(src) + offset_of(spec, r), f32(dst) + r * columns);
  });
}

}  // namespace dtrain::cpu
