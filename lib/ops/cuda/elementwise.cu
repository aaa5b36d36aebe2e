// Elementwise operations.
#include <algorithm>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/reductions/column_sum.h"
#include "ops/cuda/reductions/reduce.h"
#include "ops/cuda/vector.h"
#include "ops/math/activations.h"

namespace dtrain::cuda {
namespace {

/// Capacities of struct Sources, which holds the source arrays that an operation combines elementwise and is
/// passed to the kernel as an argument. With capacity 1 or 2, the number of arrays is a compile-time
/// constant, so a thread issues all loads before it waits for the first one. With up to kFewSources arrays,
/// the argument is so small that it costs nothing. With more arrays, it takes about 2 KiB of the 4 KiB that
/// the arguments of a kernel may have. All sources are combined in one pass, so the destination may be one of
/// the sources.
constexpr size_t kFewSources = 8, kMostSources = 256;

template <class T, size_t kCapacity>
struct Sources {
  const T* arrays[kCapacity];
  int count;

  template <int N, class Combine>
  __device__ void combine(int64_t i, Combine combine, float (&values)[N]) const {
    load(arrays[0] + i, values);
    const int all = kCapacity <= 2 ? static_cast<int>(kCapacity) : count;
    for (int s = 1; s < all; ++s) {
      float next[N];
      load(arrays[s] + i, next);
#pragma unroll
      for (int j = 0; j < N; ++j) values[j] = combine(values[j], next[j]);
    }
  }
};

template <class T, class Combine, class Activation, size_t kCapacity>
struct Combined {
  Sources<T, kCapacity> srcs;
  T* dst;
  Activation activation;

  template <int N>
  __device__ Floats<N> read(int64_t i) const {
    Floats<N> values;
    srcs.combine(i, Combine{}, values.v);
    return values;
  }
  template <int N>
  __device__ void finish(int64_t i, Floats<N> values) const {
#pragma unroll
    for (int j = 0; j < N; ++j) values.v[j] = activation.forward(values.v[j]);
    store(dst + i, values.v);
  }
};

template <class T, class Activation, size_t kCapacity>
struct SumBackward {
  Sources<T, kCapacity> diff_dsts;
  const T* saved;
  T* diff_src;
  Activation activation;

  template <int N>
  struct Loaded {
    float diffs[N], kept[N];
  };
  template <int N>
  __device__ Loaded<N> read(int64_t i) const {
    Loaded<N> loaded{};
    diff_dsts.combine(i, Add{}, loaded.diffs);
    // A linear activation saves nothing.
    if constexpr (!std::is_same_v<Activation, math::Linear>) load(saved + i, loaded.kept);
    return loaded;
  }
  template <int N>
  __device__ void finish(int64_t i, Loaded<N> loaded) const {
#pragma unroll
    for (int j = 0; j < N; ++j) loaded.diffs[j] = activation.backward(loaded.kept[j], loaded.diffs[j]);
    store(diff_src + i, loaded.diffs);
  }
};

/// The term whose column sums are the gradient of a bias: the values that SumBackward writes. A value is
/// rounded to its stored type before it is added, so the sums are the same as if a separate pass had read the
/// stored values.
template <class Body>
struct SumBackwardTerm {
  static constexpr int kSums = 1;
  Body body;
  int64_t columns;

  __device__ auto load(int64_t r, int64_t c) const { return body.template read<1>(r * columns + c); }
  template <class Loaded>
  __device__ Floats<1> value(int64_t r, int64_t c, const Loaded& loaded) const {
    auto& written = body.diff_src[r * columns + c];
    written = from_float<std::remove_reference_t<decltype(written)>>(
        body.activation.backward(loaded.kept[0], loaded.diffs[0]));
    return {to_float(written)};
  }
};

struct Fill {
  float* dst;
  float value;

  template <int N>
  __device__ void run(int64_t i) const {
    float values[N];
#pragma unroll
    for (int j = 0; j < N; ++j) values[j] = value;
    store(dst + i, values);
  }
};

template <bool kAddsToDst>
struct ScaleAdd {
  float* dst;
  const float* src;
  float alpha, beta;

  template <int N>
  struct Loaded {
    float values[N], before[N];
  };
  template <int N>
  __device__ Loaded<N> read(int64_t i) const {
    Loaded<N> loaded{};
    load(src + i, loaded.values);
    if constexpr (kAddsToDst) load(dst + i, loaded.before);
    return loaded;
  }
  template <int N>
  __device__ void finish(int64_t i, Loaded<N> loaded) const {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float value = alpha * loaded.values[j];
      loaded.values[j] = kAddsToDst ? value + beta * loaded.before[j] : value;
    }
    store(dst + i, loaded.values);
  }
};

template <size_t kCapacity, class T>
Sources<T, kCapacity> sources_of(std::span<const void* const> arrays) {
  Sources<T, kCapacity> sources{};
  sources.count = static_cast<int>(arrays.size());
  for (size_t s = 0; s < arrays.size(); ++s) sources.arrays[s] = static_cast<const T*>(arrays[s]);
  return sources;
}

bool all_aligned_16(std::span<const void* const> arrays) {
  return std::all_of(arrays.begin(), arrays.end(), [](const void* array) { return aligned_16(array); });
}

/// Calls use(sources), where `sources` is a Sources object that holds these arrays and has the smallest
/// suitable capacity.
template <class T, class Use>
void with_sources(std::span<const void* const> arrays, Use&& use) {
  if (arrays.size() == 1) return use(sources_of<1, T>(arrays));
  if (arrays.size() == 2) return use(sources_of<2, T>(arrays));
  if (arrays.size() <= kFewSources) return use(sources_of<kFewSources, T>(arrays));
  if (arrays.size() <= kMostSources) return use(sources_of<kMostSources, T>(arrays));
  throw Error("a GPU can combine at most " + std::to_string(kMostSources) +
              " arrays in one operation, but found " + std::to_string(arrays.size()));
}

template <class Combine, class T, class Activation>
void combine(const CudaContext& context, T* dst, std::span<const void* const> srcs, Activation activation,
             int64_t n) {
  const bool aligned = aligned_16(dst) && all_aligned_16(srcs);
  with_sources<T>(srcs, [&]<size_t kCapacity>(const Sources<T, kCapacity>& sources) {
    for_each<kVector<T>>(context, n, aligned,
                         Combined<T, Combine, Activation, kCapacity>{sources, dst, activation});
  });
}

/// Calls use(body), where `body` is the SumBackward for these arrays.
template <class T, class Use>
void with_sum_backward(const ActivationSpec& spec, const void* saved, std::span<const void* const> diff_dsts,
                       void* diff_src, Use&& use) {
  with_sources<T>(diff_dsts, [&]<size_t kCapacity>(const Sources<T, kCapacity>& sources) {
    math::with_activation_kernel(spec, [&](auto activation) {
      use(SumBackward<T, decltype(activation), kCapacity>{sources, static_cast<const T*>(saved),
                                                          static_cast<T*>(diff_src), activation});
    });
  });
}

}  // namespace

void CudaOps::fill(float* dst, float value, int64_t n) {
  for_each<kVector<float>>(context_, n, aligned_16(dst), Fill{dst, value});
}

void CudaOps::copy(void* dst, const void* src, int64_t n) {
  if (dst == src || n <= 0) return;
  const size_t bytes = static_cast<size_t>(n) * bytes_of(math_.type);
  check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, stream()), "copying an array");
}

void CudaOps::scale_add(float* dst, const float* src, float alpha, float beta, int64_t n) {
  const bool aligned = all_aligned(dst, src);
  if (beta == 0.0f) {
    for_each<kVector<float>>(context_, n, aligned, ScaleAdd<false>{dst, src, alpha, beta});
  } else {
    for_each<kVector<float>>(context_, n, aligned, ScaleAdd<true>{dst, src, alpha, beta});
  }
}

void CudaOps::sum(void* dst, std::span<const void* const> srcs, const ActivationSpec& activation, int64_t n) {
  with_type(math_.type, [&](auto type) {
    auto* const out = static_cast<decltype(type)*>(dst);
    math::with_activation_kernel(activation, [&](auto act) { combine<Add>(context_, out, srcs, act, n); });
  });
}

void CudaOps::multiply(void* dst, std::span<const void* const> srcs, int64_t n) {
  with_type(math_.type, [&](auto type) {
    combine<Multiply>(context_, static_cast<decltype(type)*>(dst), srcs, math::Linear{}, n);
  });
}

void CudaOps::activation_forward(const ActivationSpec& spec, const void* src, void* dst, int64_t n) {
  sum(dst, {&src, 1}, spec, n);
}

void CudaOps::activation_backward(const ActivationSpec& spec, const void* saved, const void* diff_dst,
                                  void* diff_src, int64_t n) {
  sum_backward(spec, saved, {&diff_dst, 1}, diff_src, n);
}

void CudaOps::sum_backward(const ActivationSpec& spec, const void* saved,
                           std::span<const void* const> diff_dsts, void* diff_src, int64_t n) {
  const bool aligned = all_aligned_16(diff_dsts) && all_aligned(saved, diff_src);
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    with_sum_backward<T>(spec, saved, diff_dsts, diff_src,
                         [&](const auto& body) { for_each<kVector<T>>(context_, n, aligned, body); });
  });
}

void CudaOps::sum_backward_bias(const ActivationSpec& spec, const void* saved,
                                std::span<const void* const> diff_dsts, void* diff_src, float* diff_bias,
                                int64_t rows, int64_t columns) {
  with_type(math_.type, [&](auto type) {
    with_sum_backward<decltype(type)>(spec, saved, diff_dsts, diff_src, [&](const auto& body) {
      sum_columns(context_, SumBackwardTerm<std::remove_cvref_t<decltype(body)>>{body, columns},
                  {{diff_bias}}, rows, columns);
    });
  });
}

}  // namespace dtrain::cuda
