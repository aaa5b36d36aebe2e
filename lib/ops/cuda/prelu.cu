// PReLU and its gradients.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/reductions/column_sum.h"
#include "ops/cuda/vector.h"
#include "ops/math/prelu.h"

namespace dtrain::cuda {
namespace {

constexpr int kPreluAxes = static_cast<int>(PreluSpec::kAxes);

__device__ inline int64_t slope_of(const PreluSpec& spec, int64_t element) {
  int64_t slope = 0;
#pragma unroll
  for (int axis = kPreluAxes - 1; axis >= 0; --axis) {
    if (spec.extents[axis] == 1) continue;
    const Division place = divide(element, spec.extents[axis]);
    slope += place.rest * spec.steps[axis];
    element = place.quotient;
  }
  return slope;
}

/// If N is greater than 1, the extent of the last axis must be a multiple of N.
template <class T>
struct PreluForward {
  PreluSpec spec;
  const T* src;
  const float* slopes;
  T* dst;

  template <int N>
  __device__ void run(int64_t i) const {
    const int64_t first = slope_of(spec, i), step = spec.steps[kPreluAxes - 1];
    float values[N];
    load(src + i, values);
#pragma unroll
    for (int j = 0; j < N; ++j) values[j] = math::prelu(values[j], slopes[first + j * step]);
    store(dst + i, values);
  }
};

template <class T>
struct PreluBackward {
  PreluSpec spec;
  const T* src;
  const float* slopes;
  const T* diff_dst;
  T* diff_src;

  template <int N>
  __device__ void run(int64_t i) const {
    const int64_t first = slope_of(spec, i), step = spec.steps[kPreluAxes - 1];
    float values[N], diffs[N];
    load(src + i, values);
    load(diff_dst + i, diffs);
#pragma unroll
    for (int j = 0; j < N; ++j)
      diffs[j] = math::prelu_backward(values[j], slopes[first + j * step], diffs[j]);
    store(diff_src + i, diffs);
  }
};

/// The terms of the slopes' gradients. Column c holds the terms of slope c, so the column sums are the
/// gradients.
template <class T>
struct SlopeGradients {
  static constexpr int kSums = 1;
  PreluSpec spec;
  const T *src, *diff_dst;

  __device__ Floats<1> load(int64_t r, int64_t c) const {
    const int64_t at = element(r, c);
    return {math::prelu_slope_gradient(to_float(src[at]), to_float(diff_dst[at]))};
  }
  __device__ Floats<1> value(int64_t, int64_t, const Floats<1>& loaded) const { return loaded; }

 private:
  __device__ int64_t element(int64_t row, int64_t column) const {
    int64_t element = 0, stride = 1;
#pragma unroll
    for (int axis = kPreluAxes - 1; axis >= 0; --axis) {
      const int64_t extent = spec.extents[axis], step = spec.steps[axis];
      if (extent == 1) continue;
      if (step != 0) {
        element += divide(divide(column, step).quotient, extent).rest * stride;
      } else {
        const Division place = divide(row, extent);
        element += place.rest * stride;
        row = place.quotient;
      }
      stride *= extent;
    }
    return element;
  }
};

}  // namespace

void CudaOps::prelu_forward(const PreluSpec& spec, const void* src, const float* slopes, void* dst) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    for_each<kVector<T>>(context_, spec.elements(),
                         spec.extents.back() % kVector<T> == 0 && all_aligned(src, dst),
                         PreluForward<T>{spec, static_cast<const T*>(src), slopes, static_cast<T*>(dst)});
  });
}

void CudaOps::prelu_backward(const PreluSpec& spec, const PreluBackwardArguments& args) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const T *const src = static_cast<const T*>(args.src), *const diff = static_cast<const T*>(args.diff_dst);
    // The slopes' gradients are computed first, because diff_src may be diff_dst.
    if (args.diff_slopes)
      sum_columns(context_, SlopeGradients<T>{spec, src, diff}, {{args.diff_slopes}},
                  spec.elements() / spec.slopes(), spec.slopes());
    if (!args.diff_src) return;
    for_each<kVector<T>>(context_, spec.elements(),
                         spec.extents.back() % kVector<T> == 0 && all_aligned(src, diff, args.diff_src),
                         PreluBackward<T>{spec, src, args.slopes, diff, static_cast<T*>(args.diff_src)});
  });
}

}  // namespace dtrain::cuda
