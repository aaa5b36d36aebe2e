// Sequence masks.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/read_ahead.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {
namespace {

struct MaskOfIndices {
  const int32_t* indices;
  uint8_t* mask;

  template <int N>
  __device__ void run(int64_t i) const {
    mask[i] = indices[i] != 0;
  }
};

/// Computes one element of the mask: whether any element of the row differs from `value`, which is rounded to
/// the elements' type.
template <class T>
struct MaskOfRows {
  const T* src;
  uint8_t* mask;
  float value;
  int64_t columns;

  template <int N>
  __device__ void run(int64_t row) const {
    const T* const from = src + row * columns;
    const float rounded = to_float(from_float<T>(value));
    bool differs = false;
    for (int64_t c = 0; c < columns && !differs; ++c) differs = to_float(from[c]) != rounded;
    mask[row] = differs;
  }
};

template <class T>
struct ApplyMask {
  const T* src;
  const uint8_t* mask;
  T* dst;
  int64_t columns;

  template <int N>
  __device__ void run(int64_t i) const {
    dst[i] = mask[divide(i, columns).quotient] ? src[i] : from_float<T>(0.0f);
  }
};

/// Computes one feature of one sample. Also loads the elements of masked steps, so that no load waits for the
/// mask.
template <class T>
struct MaskedAverage {
  MaskedAverageSpec spec;
  const T* src;
  const uint8_t* mask;
  T* dst;

  struct Step {
    T value;
    bool valid;
  };

  template <int N>
  __device__ void run(int64_t i) const {
    const Division at = divide(i, spec.features);
    const int64_t first = at.quotient * spec.steps;
    float sum = 0.0f, count = 0.0f;
    const auto load = [&](int64_t t) {
      return Step{src[(first + t) * spec.features + at.rest], mask[first + t] != 0};
    };
    read_ahead<4>(0, spec.steps, 1, load, [&](int64_t, const Step& step) {
      sum = step.valid ? sum + to_float(step.value) : sum;
      count = step.valid ? count + 1.0f : count;
    });
    dst[i] = from_float<T>(count > 0.0f ? sum / count : 0.0f);
  }
};

/// Computes the gradients of one feature of one sample, at all steps.
template <class T>
struct MaskedAverageBackward {
  MaskedAverageSpec spec;
  const uint8_t* mask;
  const T* diff_dst;
  T* diff_src;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division at = divide(i, spec.features);
    const int64_t first = at.quotient * spec.steps;
    float count = 0.0f;
    for (int64_t t = 0; t < spec.steps; ++t) count += mask[first + t] ? 1.0f : 0.0f;
    const T diff = from_float<T>(count > 0.0f ? to_float(diff_dst[i]) / count : 0.0f);
    for (int64_t t = 0; t < spec.steps; ++t)
      diff_src[(first + t) * spec.features + at.rest] = mask[first + t] ? diff : from_float<T>(0.0f);
  }
};

struct MaskWeights {
  MaskWeightsArguments args;

  template <int N>
  __device__ void run(int64_t i) const {
    const float weight = args.weights ? args.weights[divide(i, args.per_weight).quotient] : 1.0f;
    args.dst[i] = args.mask[divide(i, args.per_mask).quotient] ? weight : 0.0f;
  }
};

}  // namespace

void CudaOps::mask_of_indices(const int32_t* indices, uint8_t* mask, int64_t n) {
  for_each<1>(context_, n, false, MaskOfIndices{indices, mask});
}

void CudaOps::mask_rows(const void* src, float value, void* dst, uint8_t* mask, int64_t rows,
                        int64_t columns) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    for_each<1>(context_, rows, false, MaskOfRows<T>{static_cast<const T*>(src), mask, value, columns});
  });
  apply_mask(src, mask, dst, rows, columns);
}

void CudaOps::apply_mask(const void* src, const uint8_t* mask, void* dst, int64_t rows, int64_t columns) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    for_each<1>(context_, rows * columns, false,
                ApplyMask<T>{static_cast<const T*>(src), mask, static_cast<T*>(dst), columns});
  });
}

void CudaOps::masked_average(const MaskedAverageSpec& spec, const void* src, const uint8_t* mask, void* dst) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    for_each<1>(context_, spec.samples * spec.features, false,
                MaskedAverage<T>{spec, static_cast<const T*>(src), mask, static_cast<T*>(dst)});
  });
}

void CudaOps::masked_average_backward(const MaskedAverageSpec& spec, const uint8_t* mask,
                                      const void* diff_dst, void* diff_src) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    for_each<1>(
        context_, spec.samples * spec.features, false,
        MaskedAverageBackward<T>{spec, mask, static_cast<const T*>(diff_dst), static_cast<T*>(diff_src)});
  });
}

void CudaOps::mask_weights(const MaskWeightsArguments& args) {
  for_each<1>(context_, args.n, false, MaskWeights{args});
}

}  // namespace dtrain::cuda
