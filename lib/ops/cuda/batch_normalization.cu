// Batch normalisation of NHWC images, or rows.
#include "ops/cuda/batch_normalization_kernels.h"
#include "ops/cuda/cuda_ops.h"

namespace dtrain::cuda {
namespace {

template <class T>
class CudaBatchNormalization final : public BatchNormalization {
 public:
  CudaBatchNormalization(const CudaContext& context, const BatchNormalizationSpec& spec)
      : context_(context), spec_(spec), by_one_(tiling(1)), by_vectors_(tiling(kVector<T>)) {}

  /// Partial sums, and a Line.
  size_t scratch_bytes() const override {
    return partials_bytes() + 2 * static_cast<size_t>(spec_.channels) * sizeof(float);
  }
  size_t saved_bytes() const override { return 2 * static_cast<size_t>(spec_.channels) * sizeof(float); }

  void forward_training(const void* src, const float* gamma, const float* beta, void* dst, float* mean,
                        float* variance, void* saved, void* scratch) override {
    const auto* x = static_cast<const T*>(src);
    auto* partials = static_cast<double*>(scratch);
    const Kept kept = kept_in(saved);
    with_tiling(all_aligned(x), [&](auto width, const Tiling& tiling) {
      launch(statistics_kernel<decltype(width)::value, T>, tiling.grid(), kTileThreads, stream(), tiling, x,
             partials);
      launch(finish_statistics_kernel<T>, finish_blocks(tiling), kFinishThreads, stream(), tiling, partials,
             x, gamma, beta, spec_.epsilon, mean, variance, kept);
    });
    normalize(src, gamma, kept.shift, mean, variance, dst);
  }

  void forward_inference(const void* src, const float* gamma, const float* beta, const float* mean,
                         const float* variance, void* dst, void*) override {
    normalize(src, gamma, beta, mean, variance, dst);
  }

  void backward(const void* src, const float* gamma, const float* mean, const float* variance,
                const void* diff_dst, void* diff_src, float* diff_gamma, float* diff_beta, const void* saved,
                void* scratch) override {
    const BackwardArrays<T> arrays{static_cast<const T*>(src),
                                   static_cast<const T*>(diff_dst),
                                   gamma,
                                   mean,
                                   variance,
                                   spec_.epsilon,
                                   kept_in(const_cast<void*>(saved))};
    if (spec_.relu) {
      backward_with<true>(arrays, static_cast<T*>(diff_src), diff_gamma, diff_beta, scratch);
    } else {
      backward_with<false>(arrays, static_cast<T*>(diff_src), diff_gamma, diff_beta, scratch);
    }
  }

 private:
  template <bool kRelu>
  void backward_with(const BackwardArrays<T>& arrays, T* diff_src, float* diff_gamma, float* diff_beta,
                     void* scratch) {
    auto* partials = static_cast<double*>(scratch);
    float* const slope = reinterpret_cast<float*>(static_cast<char*>(scratch) + partials_bytes());
    const Line line{slope, slope + spec_.channels};
    with_tiling(all_aligned(arrays.src, arrays.diff_dst, diff_src), [&](auto width, const Tiling& tiling) {
      constexpr int N = decltype(width)::value;
      launch(gradient_sums_kernel<N, kRelu, T>, tiling.grid(), kTileThreads, stream(), tiling, arrays,
             partials);
      launch(finish_gradients_kernel<T>, finish_blocks(tiling), kFinishThreads, stream(), tiling, partials,
             arrays, diff_gamma, diff_beta, line);
      launch(diff_src_kernel<N, kRelu, T>, tiling.grid(), kTileThreads, stream(), tiling, arrays, line,
             diff_src);
    });
  }

  void normalize(const void* src, const float* gamma, const float* shift, const float* mean,
                 const float* variance, void* dst) {
    const auto* x = static_cast<const T*>(src);
    auto* y = static_cast<T*>(dst);
    with_tiling(all_aligned(x, y), [&](auto width, const Tiling& tiling) {
      launch(normalize_kernel<decltype(width)::value, T>, tiling.grid(), kTileThreads, stream(), tiling, x,
             gamma, shift, mean, variance, spec_.epsilon, spec_.relu, y);
    });
  }

  /// use(N, tiling).
  template <class Use>
  void with_tiling(bool aligned, const Use& use) const {
    with_width<T>(aligned && spec_.channels % kVector<T> == 0,
                  [&](auto width) { use(width, decltype(width)::value == 1 ? by_one_ : by_vectors_); });
  }

  Tiling tiling(int N) const {
    return tiling_of(spec_.batch * spec_.height * spec_.width, spec_.channels, N, context_.multiprocessors());
  }
  size_t partials_bytes() const {
    return 2 * sizeof(double) * static_cast<size_t>(spec_.channels) *
           std::max(by_one_.row_blocks, by_vectors_.row_blocks);
  }
  Kept kept_in(void* saved) const {
    auto* const shift = static_cast<float*>(saved);
    return {shift, shift + spec_.channels};
  }
  cudaStream_t stream() const { return context_.compute(); }

  const CudaContext& context_;
  BatchNormalizationSpec spec_;
  Tiling by_one_, by_vectors_;  // for one channel a thread, and for those of one access
};

}  // namespace

std::unique_ptr<BatchNormalization> CudaOps::batch_normalization(const BatchNormalizationSpec& spec) {
  std::unique_ptr<BatchNormalization> normalization;
  with_type(math_.type, [&](auto type) {
    normalization = std::make_unique<CudaBatchNormalization<decltype(type)>>(context_, spec);
  });
  return normalization;
}

}  // namespace dtrain::cuda
