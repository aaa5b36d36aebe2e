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

  void forward_training(const TrainingArguments& args) override {
    const auto* x = static_cast<const T*>(args.src);
    auto* partials = static_cast<double*>(args.scratch);
    const Kept kept = kept_in(args.saved);
    with_tiling(all_aligned(x), [&](auto width, const Tiling& tiling) {
      launch(statistics_kernel<decltype(width)::value, T>, tiling.grid(), kTileThreads, stream(), tiling, x,
             partials);
      launch(finish_statistics_kernel<T>, finish_blocks(tiling), kFinishThreads, stream(), tiling, partials,
             x, args.gamma, args.beta, spec_.epsilon, args.mean, args.variance, kept);
    });
    normalize({args.src, args.gamma, kept.shift, args.mean, args.variance, args.dst, nullptr});
  }

  void forward_inference(const InferenceArguments& args) override { normalize(args); }

  void backward(const BackwardArguments& args) override {
    const BackwardArrays<T> arrays{static_cast<const T*>(args.src),
                                   static_cast<const T*>(args.diff_dst),
                                   args.gamma,
                                   args.mean,
                                   args.variance,
                                   spec_.epsilon,
                                   kept_in(const_cast<void*>(args.saved))};
    if (spec_.relu) {
      backward_with<true>(arrays, args);
    } else {
      backward_with<false>(arrays, args);
    }
  }

 private:
  template <bool kRelu>
  void backward_with(const BackwardArrays<T>& arrays, const BackwardArguments& args) {
    auto* const diff_src = static_cast<T*>(args.diff_src);
    auto* partials = static_cast<double*>(args.scratch);
    float* const slope = reinterpret_cast<float*>(static_cast<char*>(args.scratch) + partials_bytes());
    const Line line{slope, slope + spec_.channels};
    with_tiling(all_aligned(arrays.src, arrays.diff_dst, diff_src), [&](auto width, const Tiling& tiling) {
      constexpr int N = decltype(width)::value;
      launch(gradient_sums_kernel<N, kRelu, T>, tiling.grid(), kTileThreads, stream(), tiling, arrays,
             partials);
      launch(finish_gradients_kernel<T>, finish_blocks(tiling), kFinishThreads, stream(), tiling, partials,
             arrays, args.diff_gamma, args.diff_beta, line);
      launch(diff_src_kernel<N, kRelu, T>, tiling.grid(), kTileThreads, stream(), tiling, arrays, line,
             diff_src);
    });
  }

  void normalize(const InferenceArguments& args) {
    const auto* x = static_cast<const T*>(args.src);
    auto* y = static_cast<T*>(args.dst);
    with_tiling(all_aligned(x, y), [&](auto width, const Tiling& tiling) {
      launch(normalize_kernel<decltype(width)::value, T>, tiling.grid(), kTileThreads, stream(), tiling, x,
             args.gamma, args.beta, args.mean, args.variance, spec_.epsilon, spec_.relu, y);
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
