// Group normalization. A block normalizes one group of a sample. It reads the group again for each of its
// sums, mostly from the cache.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/reductions/column_sum.h"
#include "ops/cuda/reductions/reduce.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {
namespace {

constexpr int kGroupThreads = 256;

/// Sizes of a [samples, pixels, channels] array. The channels are divided into `groups` groups of adjacent
/// channels.
struct GroupExtent {
  int64_t samples, pixels, channels, groups;

  __device__ int64_t width() const { return channels / groups; }
  __device__ float share() const { return 1.0f / static_cast<float>(pixels * width()); }
  /// Returns the index of the first element of a group; groups are numbered over all samples.
  __device__ int64_t first(int64_t group) const {
    const Division place = divide(group, groups);
    return place.quotient * pixels * channels + place.rest * width();
  }
  /// Returns the first channel of a group.
  __device__ int64_t first_channel(int64_t group) const { return divide(group, groups).rest * width(); }
  /// Calls use(group) for the groups of this block.
  template <class Use>
  __device__ void each_group(Use&& use) const {
    for (int64_t group = blockIdx.x; group < samples * groups; group += gridDim.x) use(group);
  }
  /// Calls use(i, c) for every element of a group that this thread processes. i is the offset of the element
  /// from the group's first element, and c is the offset of its channel from the group's first channel.
  template <class Use>
  __device__ void each_element(Use&& use) const {
    const int64_t of_group = width();
    for (int64_t e = threadIdx.x; e < pixels * of_group; e += blockDim.x) {
      const Division place = divide(e, of_group);
      use(place.quotient * channels + place.rest, place.rest);
    }
  }
};

template <class T>
__global__ void __launch_bounds__(kGroupThreads)
    group_normalization_forward_kernel(const T* src, const float* gamma, const float* beta, float epsilon,
                                       T* dst, float* mean, float* inverse_deviation, GroupExtent extent) {
  const float share = extent.share();
  extent.each_group([&](int64_t group) {
    const int64_t first = extent.first(group), channel = extent.first_channel(group);
    const T* const x = src + first;
    T* const y = dst + first;
    // The first value of the group is subtracted from all values before they are summed, so that the mean is
    // accurate even if the values are large.
    const float middle = to_float(x[0]);
    float total = 0.0f, squares = 0.0f;
    extent.each_element([&](int64_t i, int64_t) { total += to_float(x[i]) - middle; });
    const float m = middle + block_reduce(total, Add{}) * share;
    extent.each_element([&](int64_t i, int64_t) {
      const float distance = to_float(x[i]) - m;
      squares += distance * distance;
    });
    const float inverse = 1.0f / ::sqrtf(block_reduce(squares, Add{}) * share + epsilon);
    if (threadIdx.x == 0) {
      mean[group] = m;
      inverse_deviation[group] = inverse;
    }
    extent.each_element([&](int64_t i, int64_t c) {
      const float scale = inverse * (gamma ? gamma[channel + c] : 1.0f);
      y[i] = from_float<T>((to_float(x[i]) - m) * scale + (beta ? beta[channel + c] : 0.0f));
    });
  });
}

/// Computes the gradient of the source. diff_src may be diff_dst: each element is read and written by the
/// same thread.
template <class T>
__global__ void __launch_bounds__(kGroupThreads)
    group_normalization_backward_kernel(const T* src, const float* gamma, const float* mean,
                                        const float* inverse_deviation, const T* diff_dst, T* diff_src,
                                        GroupExtent extent) {
  const float share = extent.share();
  extent.each_group([&](int64_t group) {
    const int64_t first = extent.first(group), channel = extent.first_channel(group);
    const T *const x = src + first, *const dy = diff_dst + first;
    T* const dx = diff_src + first;
    const float m = mean[group], inverse = inverse_deviation[group];
    const auto gradient = [&](int64_t i, int64_t c) {
      return to_float(dy[i]) * (gamma ? gamma[channel + c] : 1.0f);
    };
    float total = 0.0f, dot = 0.0f;
    extent.each_element([&](int64_t i, int64_t c) {
      total += gradient(i, c);
      dot += gradient(i, c) * (to_float(x[i]) - m);
    });
    total = block_reduce(total, Add{}) * share;
    dot = block_reduce(dot, Add{}) * share * inverse * inverse;
    extent.each_element([&](int64_t i, int64_t c) {
      dx[i] = from_float<T>(inverse * (gradient(i, c) - total - (to_float(x[i]) - m) * dot));
    });
  });
}

/// Terms whose column sums are the gradients of gamma and beta; rows are the pixels of all samples.
template <class T>
struct GroupGradients {
  static constexpr int kSums = 2;
  const T *src, *diff_dst;
  const float *mean, *inverse_deviation;
  GroupExtent extent;
  __device__ Floats<2> load(int64_t r, int64_t c) const {
    const int64_t group =
        divide(r, extent.pixels).quotient * extent.groups + divide(c, extent.width()).quotient;
    const float distance = to_float(src[r * extent.channels + c]) - mean[group];
    const float diff = to_float(diff_dst[r * extent.channels + c]);
    return {diff * distance * inverse_deviation[group], diff};
  }
  __device__ Floats<2> value(int64_t, int64_t, const Floats<2>& loaded) const { return loaded; }
};

}  // namespace

void CudaOps::group_normalization_forward(const GroupNormalizationArguments& args) {
  const GroupExtent extent{args.samples, args.pixels, args.channels, args.groups};
  if (args.samples * args.pixels * args.channels <= 0) return;
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    launch(group_normalization_forward_kernel<T>,
           blocks_for(args.samples * args.groups, 1, context_.multiprocessors()), kGroupThreads,
           context_.compute(), static_cast<const T*>(args.src), args.gamma, args.beta, args.epsilon,
           static_cast<T*>(args.dst), args.mean, args.inverse_deviation, extent);
  });
}

void CudaOps::group_normalization_backward(const GroupNormalizationBackwardArguments& args) {
  const GroupExtent extent{args.samples, args.pixels, args.channels, args.groups};
  if (args.samples * args.pixels * args.channels <= 0) return;
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const T *const x = static_cast<const T*>(args.src), *const dy = static_cast<const T*>(args.diff_dst);
    // The parameters' gradients are computed first, because diff_src may be diff_dst.
    if (args.diff_gamma || args.diff_beta)
      sum_columns(context_, GroupGradients<T>{x, dy, args.mean, args.inverse_deviation, extent},
                  {{args.diff_gamma, args.diff_beta}}, args.samples * args.pixels, args.channels);
    if (!args.diff_src) return;
    launch(group_normalization_backward_kernel<T>,
           blocks_for(args.samples * args.groups, 1, context_.multiprocessors()), kGroupThreads,
           context_.compute(), x, args.gamma, args.mean, args.inverse_deviation, dy,
           static_cast<T*>(args.diff_src), extent);
  });
}

}  // namespace dtrain::cuda
