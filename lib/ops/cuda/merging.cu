// Array merging, and sums of strided elements.
#include <algorithm>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/vector.h"
#include "ops/math/merging.h"

namespace dtrain::cuda {
namespace {

template <class T>
struct Merged {
  math::Merge merge;
  int count;
  const T* srcs[kMostMerged];

  template <int N>
  __device__ void read(int64_t i, float (&values)[N]) const {
    load(srcs[0] + i, values);
    for (int s = 1; s < count; ++s) {
      float next[N];
      load(srcs[s] + i, next);
#pragma unroll
      for (int j = 0; j < N; ++j) values[j] = merge.add(values[j], next[j]);
    }
  }
};

template <class T>
Merged<T> merged_of(MergeKind kind, std::span<const void* const> srcs) {
  Merged<T> merged{{kind, static_cast<float>(srcs.size())}, static_cast<int>(srcs.size()), {}};
  for (size_t s = 0; s < srcs.size(); ++s) merged.srcs[s] = static_cast<const T*>(srcs[s]);
  return merged;
}

bool are_aligned(std::span<const void* const> arrays) {
  return std::all_of(arrays.begin(), arrays.end(), [](const void* array) { return aligned_16(array); });
}

template <class T>
struct MergeForward {
  Merged<T> srcs;
  T* dst;

  template <int N>
  __device__ void run(int64_t i) const {
    float values[N];
    srcs.read(i, values);
#pragma unroll
    for (int j = 0; j < N; ++j) values[j] = srcs.merge.finish(values[j]);
    store(dst + i, values);
  }
};

/// The gradient of an array that is merged by arithmetic (subtract, average).
template <class T>
struct MergeBackward {
  math::Merge merge;
  bool is_first;
  const T* diff_dst;
  T* diff_src;

  template <int N>
  __device__ void run(int64_t i) const {
    float diffs[N];
    load(diff_dst + i, diffs);
#pragma unroll
    for (int j = 0; j < N; ++j) diffs[j] = merge.gradient(diffs[j], is_first);
    store(diff_src + i, diffs);
  }
};

/// The gradient of an array that is merged by comparison: the first array with the merged value gets the
/// whole gradient.
template <class T>
struct SelectBackward {
  Merged<T> srcs;
  int which;
  const T* diff_dst;
  T* diff_src;

  template <int N>
  __device__ void run(int64_t i) const {
    float best[N], own[N], diffs[N];
    srcs.read(i, best);
    load(srcs.srcs[which] + i, own);
    load(diff_dst + i, diffs);
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (own[j] != best[j]) diffs[j] = 0;
    for (int s = 0; s < which; ++s) {
      float earlier[N];
      load(srcs.srcs[s] + i, earlier);
#pragma unroll
      for (int j = 0; j < N; ++j)
        if (earlier[j] == best[j]) diffs[j] = 0;
    }
    store(diff_src + i, diffs);
  }
};

template <class T>
struct SumStrided {
  StridedSum spec;
  const T* src;
  T* dst;

  template <int N>
  __device__ void run(int64_t i) const {
    int64_t offset = 0, rest = i;
#pragma unroll
    for (int axis = 5; axis > 0; --axis) {
      const Division place = divide(rest, spec.extents[axis]);
      offset += place.rest * spec.strides[axis];
      rest = place.quotient;
    }
    offset += rest * spec.strides[0];
    float sum = to_float(src[offset]);
    for (int64_t j0 = 0; j0 < spec.sum_extents[0]; ++j0)
      for (int64_t j1 = j0 == 0 ? 1 : 0; j1 < spec.sum_extents[1]; ++j1)
        sum += to_float(src[offset + j0 * spec.sum_strides[0] + j1 * spec.sum_strides[1]]);
    dst[i] = from_float<T>(sum);
  }
};

}  // namespace

void CudaOps::merge(MergeKind kind, void* dst, std::span<const void* const> srcs, int64_t n) {
  const bool aligned = are_aligned(srcs) && aligned_16(dst);
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    for_each<kVector<T>>(context_, n, aligned,
                         MergeForward<T>{merged_of<T>(kind, srcs), static_cast<T*>(dst)});
  });
}

void CudaOps::merge_backward(MergeKind kind, std::span<const void* const> srcs, size_t which,
                             const void* diff_dst, void* diff_src, int64_t n) {
  const bool aligned = are_aligned(srcs) && all_aligned(diff_dst, diff_src);
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const auto* const diff = static_cast<const T*>(diff_dst);
    auto* const out = static_cast<T*>(diff_src);
    const Merged<T> merged = merged_of<T>(kind, srcs);
    if (merged.merge.selects()) {
      for_each<kVector<T>>(context_, n, aligned,
                           SelectBackward<T>{merged, static_cast<int>(which), diff, out});
    } else {
      for_each<kVector<T>>(context_, n, aligned, MergeBackward<T>{merged.merge, which == 0, diff, out});
    }
  });
}

void CudaOps::strided_sum(const StridedSum& spec, const void* src, void* dst) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    for_each<1>(context_, spec.elements(), false,
                SumStrided<T>{spec, static_cast<const T*>(src), static_cast<T*>(dst)});
  });
}

}  // namespace dtrain::cuda
